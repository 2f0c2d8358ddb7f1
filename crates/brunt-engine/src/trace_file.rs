//! Files that hold traces: unpacked, their layout known, and cut into lines or records, one after the other.
//!
//! Not what a record says (`brunt-workload/src/trace_decoder.rs`). Invariants: packed files are told by their first bytes; memory is bounded by a
//! chunk, the longest line of the layout and the window of the packer; what was read before a file ends or fails is yielded first,
//! but for the last window of a zstd frame that is damaged.

use crate::input_file;
use brunt_plan::plan::TraceLayout;
use brunt_plan::quantity::listed;
use brunt_plan::quoted_bytes::QuotedBytes;
use brunt_plan::recorded_request::RecordedRequest;
use brunt_plan::trace_record::{FirstUnreadable, LineCounts};
use brunt_workload::trace_decoder::{Decoded, LineError, Piece, TraceDecoder, recognised};
use flate2::bufread::MultiGzDecoder;
use ruzstd::decoding::BlockDecodingStrategy::UptoBytes;
use ruzstd::decoding::FrameDecoder;
use ruzstd::decoding::errors::{FrameDecoderError, ReadFrameHeaderError};
use std::error::Error;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::iter::successors;
use std::ops::Range;
use std::path::Path;

/// Bytes read at a time.
const CHUNK_BYTES: usize = 256 << 10;
/// What some programs write before UTF-8 text.
const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";
/// Bytes of a line without the layout that are quoted.
const QUOTED_BYTES: usize = 80;
/// Lines at the beginning of a trace of which one has to be a record.
const TRIED_LINES: u64 = 1_000;

/// A trace that is open.
pub struct TraceFile {
    unpacked: Box<dyn Read + Send>,
    decoder: TraceDecoder,
    /// What was unpacked and not yet yielded is at `start..end`.
    buffer: Vec<u8>,
    start: usize,
    end: usize,
    /// Nothing follows what is in the buffer: the file has ended, or cannot be read any further.
    is_over: bool,
    failure: Option<io::Error>,
    counts: LineCounts,
}

impl TraceFile {
    /// Opens a file whose layout is given, or which tells it. Refuses one of whose first lines none is a record, where they are needed one
    /// with a time.
    ///
    /// # Errors
    /// It cannot be read, is empty, tells no layout, or has another than is given.
    pub fn open(path: &Path, layout: Option<TraceLayout>, needs_times: bool) -> io::Result<Self> {
        let is_fit = |request: &RecordedRequest<'_>| match request.time_ns {
            None if needs_times => Err(LineError::Untimed),
            _ => Ok(()),
        };
        let mut tried = Self::begin(path, layout)?;
        while tried.counts.read < TRIED_LINES && matches!(tried.advance(is_fit), Ok(true)) {
            if tried.counts.unreadable + tried.counts.passed_over < tried.counts.read {
                return Self::begin(path, layout);
            }
        }
        let LineCounts { read, first_unreadable: Some(first), .. } = &tried.counts else {
            return Self::begin(path, layout);
        };
        let (FirstUnreadable { line, text, reason }, layout) = (first, tried.layout());
        let (text, name) = (QuotedBytes(text.as_bytes()), layout.piece());
        Err(io::Error::other(format!(
            "no {name} up to {name} {read} has the layout {layout} (brunt help trace-layout); {name} {line}, \"{text}\", has {reason}"
        )))
    }

    /// Reads the beginning of a file.
    fn begin(path: &Path, layout: Option<TraceLayout>) -> io::Result<Self> {
        let (mut buffer, mut end) = (vec![0; CHUNK_BYTES], 0);
        let mut unpacked = unpack(path)?;
        let filled = fill(&mut unpacked, &mut buffer, &mut end);
        if end == 0 {
            return Err(filled.err().unwrap_or_else(|| io::Error::other("it is empty")));
        }
        let text = if buffer[..end].starts_with(BYTE_ORDER_MARK) { BYTE_ORDER_MARK.len() } else { 0 };
        let layout = layout.or_else(|| recognised(&buffer[text..end])).ok_or_else(|| {
            io::Error::other(format!(
                "it does not tell its layout, as those of {} do; name one by brunt run --set trace-layout=LAYOUT or brunt trace --trace-layout LAYOUT: {}",
                listed(&TraceLayout::TOLD_BY_FILES.map(TraceLayout::name)),
                listed(&TraceLayout::NAMES)
            ))
        })?;
        let decoder = TraceDecoder::new(layout);
        let start = if let Piece::Line(_) = decoder.piece() { text } else { 0 };
        let is_over = !matches!(filled, Ok(false));
        let (failure, counts) = (filled.err(), LineCounts::default());
        Ok(Self { unpacked, decoder, buffer, start, end, is_over, failure, counts })
    }

    /// How it is written.
    pub const fn layout(&self) -> TraceLayout {
        self.decoder.layout()
    }

    /// What became of it so far.
    pub const fn counts(&self) -> &LineCounts {
        &self.counts
    }

    /// Goes on by a line or record, and yields its requests, which `each` may refuse. False at the end of the file.
    ///
    /// # Errors
    /// The file cannot be read any further.
    pub fn advance(
        &mut self,
        mut each: impl FnMut(&RecordedRequest<'_>) -> Result<(), LineError>,
    ) -> io::Result<bool> {
        let Some((piece, is_whole)) = self.next_piece()? else { return Ok(false) };
        let piece = &self.buffer[piece];
        self.counts.read += 1;
        let decoded = if is_whole { self.decoder.decode(piece, &mut each) } else { Err(LineError::TooLong) };
        match decoded {
            Ok(Decoded::Requests) => {}
            Ok(Decoded::PassedOver) => self.counts.passed_over += 1,
            Ok(Decoded::Unsupported) => self.counts.unsupported += 1,
            Err(why) => {
                self.counts.unreadable += 1;
                let line = self.counts.read;
                let is_text = matches!(self.decoder.piece(), Piece::Line(_));
                self.counts.first_unreadable.get_or_insert_with(|| unreadable(line, piece, is_text, why));
            }
        }
        Ok(true)
    }

    /// Where the next piece is in the buffer, and whether it is whole: of a line that is too long only the beginning is.
    fn next_piece(&mut self) -> io::Result<Option<(Range<usize>, bool)>> {
        let (mut searched, mut is_cut) = (0, false);
        loop {
            let held = &self.buffer[self.start..self.end];
            let (found, most) = match self.decoder.piece() {
                Piece::Record(len) => ((held.len() >= len).then_some((len, len)), len),
                Piece::Line(most) => {
                    let end = memchr::memchr(b'\n', &held[searched..]).map(|at| searched + at);
                    (end.map(|end| (end, end + 1)), most)
                }
            };
            searched = held.len();
            if let Some((len, taken)) = found {
                let start = self.start;
                self.start += taken;
                return Ok(Some((start..start + len, !is_cut && len <= most)));
            }
            if self.is_over {
                return Ok(self.last_piece()?.map(|rest| (rest, !is_cut && searched <= most)));
            }
            if searched > most {
                is_cut = true;
                searched = QUOTED_BYTES;
                self.end = self.start + searched;
            }
            self.read_more();
        }
    }

    /// What is left when nothing more can be read: a last line may lack its end.
    fn last_piece(&mut self) -> io::Result<Option<Range<usize>>> {
        let rest = std::mem::replace(&mut self.start, self.end)..self.end;
        if let Some(error) = self.failure.take() {
            return Err(error);
        }
        match self.decoder.piece() {
            _ if rest.is_empty() => Ok(None),
            Piece::Line(_) => Ok(Some(rest)),
            Piece::Record(_) => {
                Err(io::Error::other(format!("it ends within record {}", self.counts.read + 1)))
            }
        }
    }

    /// Reads behind what is held, which moves to the front; a buffer that is full of one line becomes larger.
    fn read_more(&mut self) {
        self.buffer.copy_within(self.start..self.end, 0);
        (self.start, self.end) = (0, self.end - self.start);
        if self.end == self.buffer.len() {
            self.buffer.resize(self.buffer.len() * 2, 0);
        }
        let filled = fill(&mut self.unpacked, &mut self.buffer, &mut self.end);
        self.is_over = !matches!(filled, Ok(false));
        self.failure = filled.err();
    }
}

fn unreadable(line: u64, piece: &[u8], is_text: bool, why: LineError) -> FirstUnreadable {
    let quoted = &piece[..piece.len().min(QUOTED_BYTES)];
    let text = match is_text {
        true => String::from_utf8_lossy(quoted).into_owned(),
        false => quoted.iter().map(|byte| format!("{byte:02x}")).collect(),
    };
    FirstUnreadable { line, text, reason: why.name().to_owned() }
}

/// Reads until the buffer is full. Is that the end of the file?
fn fill(from: &mut impl Read, buffer: &mut [u8], end: &mut usize) -> io::Result<bool> {
    while *end < buffer.len() {
        match from.read(&mut buffer[*end..]) {
            Ok(0) => return Ok(true),
            Ok(len) => *end += len,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(false)
}

/// The bytes of a trace, unpacked where it is packed.
fn unpack(path: &Path) -> io::Result<Box<dyn Read + Send>> {
    // No pipe: a trace is opened once to check it, and a reader of a pipe could block after the run.
    let mut file = BufReader::with_capacity(CHUNK_BYTES, input_file::open_regular(path)?);
    let head = file.fill_buf()?;
    match (head, path.extension().and_then(|ending| ending.to_str())) {
        // RFC 8878, sections 3.1.1 and 3.1.2: frames, and frames to skip.
        ([0x28, 0xb5, 0x2f, 0xfd, ..] | [0x50..=0x5f, 0x2a, 0x4d, 0x18, ..], _) | (_, Some("zst")) => {
            Ok(Box::new(Unpacked::new(file)?))
        }
        // RFC 1952, section 2.3.1.
        ([0x1f, 0x8b, ..], _) => Ok(Box::new(MultiGzDecoder::new(file))),
        (_, Some("gz")) => Err(io::Error::other("not a gzip file")),
        _ => Ok(Box::new(file)),
    }
}

/// A block that is cut is lost; of a damaged frame, what the decoder keeps for later blocks to refer to, too.
const CUT: &str = "it is cut or damaged within a zstd frame, the end of which is lost";
/// A last block without bytes, and a checksum, which a frame may have (RFC 8878, sections 3.1.1 and 3.1.1.2).
const FRAME_END: [u8; 7] = [1, 0, 0, 0, 0, 0, 0];

/// A zstd file, frame by frame.
struct Unpacked {
    decoder: FrameDecoder,
    packed: BufReader<File>,
    is_cut: bool,
}

impl Unpacked {
    /// Opens the first frame, so that other files are rejected at once.
    fn new(mut packed: BufReader<File>) -> io::Result<Self> {
        let mut decoder = FrameDecoder::new();
        let refused = |error| io::Error::other(format!("not a zstd file: {error}"));
        begin_frame(&mut decoder, &mut packed).map_err(refused)?;
        Ok(Self { decoder, packed, is_cut: false })
    }
}

/// Begins the next frame, if there is one. Skippable frames are skipped (RFC 8878, section 3.1.2).
fn begin_frame(decoder: &mut FrameDecoder, packed: &mut BufReader<File>) -> io::Result<bool> {
    while !packed.fill_buf()?.is_empty() {
        match decoder.reset(&mut *packed) {
            Ok(()) => return Ok(true),
            Err(FrameDecoderError::ReadFrameHeaderError(ReadFrameHeaderError::SkipFrame {
                length, ..
            })) => {
                io::copy(&mut packed.by_ref().take(u64::from(length)), &mut io::sink())?;
            }
            Err(error) => return Err(io::Error::other(error)),
        }
    }
    Ok(false)
}

/// Verifies the checksum of a frame, if it has one (RFC 8878, section 3.1.1.1.1.5).
fn check_frame(decoder: &FrameDecoder) -> io::Result<()> {
    let stored = decoder.get_checksum_from_data();
    if stored.is_none() || stored == decoder.get_calculated_checksum() {
        return Ok(());
    }
    Err(io::Error::other("checksum mismatch"))
}

impl Read for Unpacked {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        loop {
            if self.decoder.can_collect() > 0 {
                return self.decoder.read(into);
            }
            if !self.decoder.is_finished() {
                if let Err(error) = self.decoder.decode_blocks(&mut self.packed, UptoBytes(CHUNK_BYTES)) {
                    let mut causes =
                        successors(Some(&error as &(dyn Error + 'static)), |cause| (*cause).source());
                    self.is_cut = causes.any(|cause| cause.is::<io::Error>());
                    // Lets the decoder yield what it has kept.
                    let ended = self.decoder.decode_blocks(&FRAME_END[..], UptoBytes(1));
                    if !self.is_cut || ended.is_err() {
                        return Err(io::Error::other(CUT));
                    }
                }
                continue;
            }
            if self.is_cut {
                return Err(io::Error::other(CUT));
            }
            check_frame(&self.decoder)?;
            let has_next = begin_frame(&mut self.decoder, &mut self.packed);
            if !has_next.map_err(|_| io::Error::other("no zstd frame follows the last one"))? {
                return Ok(0);
            }
        }
    }
}
