//! Files that hold traces: unpacked, their layout known, and cut into lines or records, one after the other.
//!
//! Not what a record says (`brunt-workload/src/trace_decoder.rs`). Invariants: packed files are told by their first bytes; memory is bounded by a
//! chunk, the longest line of the layout and the window of the packer; what was read before a file ends or fails is yielded first.

use crate::input_file;
use brunt_plan::plan::TraceLayout;
use brunt_plan::quoted_bytes::QuotedBytes;
use brunt_stats::run_record::FirstUnreadable;
use brunt_workload::trace_decoder::{
    Decoded, LineError, Piece, RecordedRequest, TraceDecoder, recognised,
};
use flate2::bufread::MultiGzDecoder;
use ruzstd::decoding::BlockDecodingStrategy::UptoBytes;
use ruzstd::decoding::FrameDecoder;
use ruzstd::decoding::errors::{FrameDecoderError, ReadFrameHeaderError};
use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::ops::Range;
use std::path::Path;

/// Bytes read at a time.
const CHUNK_BYTES: usize = 256 << 10;
/// Lines at the beginning of a trace of which one has to be a record.
const TRIED_LINES: u64 = 1_000;

/// What became of the lines or records of a file so far.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LineCounts {
    /// All.
    pub lines: u64,
    /// Heads, and others that stand for no request.
    pub passed_over: u64,
    /// Commands that brunt does not send.
    pub unsupported: u64,
    /// Those that do not have the layout, or were refused.
    pub unreadable: u64,
    /// The first of these.
    pub first_unreadable: Option<FirstUnreadable>,
}

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
    /// Opens a file whose layout is given, or which tells it.
    ///
    /// # Errors
    /// It cannot be read, is empty, tells no layout, or has another than is given.
    pub fn open(path: &Path, layout: Option<TraceLayout>) -> io::Result<Self> {
        let (mut buffer, mut end, mut failure) = (vec![0; CHUNK_BYTES], 0, None);
        let mut unpacked = unpack(path)?;
        let is_over = match fill(&mut unpacked, &mut buffer, &mut end) {
            Ok(is_over) => is_over,
            Err(error) if end == 0 => return Err(error),
            Err(error) => {
                failure = Some(error);
                true
            }
        };
        if end == 0 {
            return Err(io::Error::other("it is empty"));
        }
        let layout = layout.or_else(|| recognised(&buffer[..end])).ok_or_else(|| {
            io::Error::other(format!(
                "it does not tell its layout, as those of {} do; name one: --trace-layout {}",
                listed(&TraceLayout::TOLD_BY_FILES),
                listed(&TraceLayout::ALL)
            ))
        })?;
        let decoder = TraceDecoder::begin(layout, &buffer[..end]).map_err(io::Error::other)?;
        let start = decoder.head_bytes();
        let file = Self { unpacked, decoder, buffer, start, end, is_over, failure, counts: LineCounts::default() };
        file.check()?;
        Ok(file)
    }

    /// How it is written.
    pub const fn layout(&self) -> TraceLayout {
        self.decoder.layout()
    }

    /// Has it records of a fixed length instead of lines?
    pub const fn has_records(&self) -> bool {
        matches!(self.decoder.piece(), Piece::Record(_))
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
        self.counts.lines += 1;
        let decoded =
            if is_whole { self.decoder.decode(piece, &mut each) } else { Err(LineError::TooLong) };
        match decoded {
            Ok(Decoded::Requests) => {}
            Ok(Decoded::PassedOver) => self.counts.passed_over += 1,
            Ok(Decoded::Unsupported) => self.counts.unsupported += 1,
            Err(why) => {
                self.counts.unreadable += 1;
                let line = self.counts.lines;
                let is_text = matches!(self.decoder.piece(), Piece::Line(_));
                self.counts.first_unreadable.get_or_insert_with(|| unreadable(line, piece, is_text, why));
            }
        }
        Ok(true)
    }

    /// Where the next piece is in the buffer, and whether it is whole: of a line that is too long only the beginning is.
    fn next_piece(&mut self) -> io::Result<Option<(Range<usize>, bool)>> {
        let mut searched = 0;
        loop {
            let held = &self.buffer[self.start..self.end];
            let found = match self.decoder.piece() {
                Piece::Record(len) => (held.len() >= len).then_some((len, len)),
                Piece::Line(_) => memchr::memchr(b'\n', &held[searched..]).map(|at| (searched + at, searched + at + 1)),
            };
            searched = held.len();
            if let Some((len, taken)) = found {
                let start = self.start;
                self.start += taken;
                let is_whole = !matches!(self.decoder.piece(), Piece::Line(most) if len > most);
                return Ok(Some((start..start + len, is_whole)));
            }
            if self.is_over {
                return self.last_piece();
            }
            match self.decoder.piece() {
                Piece::Line(most) if searched > most => return self.skip_line().map(Some),
                _ => self.read_more(),
            }
        }
    }

    /// What is left when nothing more can be read: a last line may lack its end.
    fn last_piece(&mut self) -> io::Result<Option<(Range<usize>, bool)>> {
        let rest = std::mem::replace(&mut self.start, self.end)..self.end;
        if let Some(error) = self.failure.take() {
            return Err(error);
        }
        match self.decoder.piece() {
            _ if rest.is_empty() => Ok(None),
            Piece::Line(_) => Ok(Some((rest, true))),
            Piece::Record(_) => {
                Err(io::Error::other(format!("it ends within record {}", self.counts.lines + 1)))
            }
        }
    }

    /// Passes over a line, of which the beginning stays in the buffer.
    fn skip_line(&mut self) -> io::Result<(Range<usize>, bool)> {
        let quoted = FirstUnreadable::TEXT_BYTES;
        self.buffer.copy_within(self.start..self.start + quoted, 0);
        loop {
            (self.start, self.end) = (quoted, quoted);
            self.is_over = self.read_into_rest();
            let found = memchr::memchr(b'\n', &self.buffer[self.start..self.end]);
            self.start = found.map_or(self.end, |at| self.start + at + 1);
            if found.is_some() || self.is_over {
                return Ok((0..quoted, false));
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
        self.is_over = self.read_into_rest();
    }

    /// Fills the buffer. Is that the end?
    fn read_into_rest(&mut self) -> bool {
        fill(&mut self.unpacked, &mut self.buffer, &mut self.end).unwrap_or_else(|error| {
            self.failure = Some(error);
            true
        })
    }

    /// Refuses a file of whose first lines none is a record.
    fn check(&self) -> io::Result<()> {
        let mut decoder = self.decoder.clone();
        let (mut first, mut tried) = (None, 0);
        let held = &self.buffer[self.start.min(self.end)..self.end];
        let pieces: Box<dyn Iterator<Item = &[u8]>> = match decoder.piece() {
            Piece::Record(len) => Box::new(held.chunks_exact(len)),
            // What is behind the last end of a line may be cut.
            Piece::Line(_) if !self.is_over => Box::new(held.split_inclusive(|byte| *byte == b'\n').filter(|line| line.ends_with(b"\n"))),
            Piece::Line(_) => Box::new(held.split_inclusive(|byte| *byte == b'\n')),
        };
        for piece in pieces.take(TRIED_LINES as usize) {
            tried += 1;
            let is_text = matches!(decoder.piece(), Piece::Line(_));
            let piece = if is_text { piece.strip_suffix(b"\n").unwrap_or(piece) } else { piece };
            match decoder.decode(piece, &mut |_| Ok(())) {
                Ok(Decoded::PassedOver) => {}
                Ok(_) => return Ok(()),
                Err(why) => _ = first.get_or_insert_with(|| unreadable(tried, piece, is_text, why)),
            }
        }
        let Some(FirstUnreadable { line, text, reason }) = first else { return Ok(()) };
        let (layout, text) = (self.layout(), QuotedBytes(text.as_bytes()));
        let name = if self.has_records() { "record" } else { "line" };
        Err(io::Error::other(format!(
            "no {name} up to {name} {tried} has the layout {layout} (brunt help trace-layout); {name} {line}, \"{text}\", has {reason}"
        )))
    }
}

fn unreadable(line: u64, piece: &[u8], is_text: bool, why: LineError) -> FirstUnreadable {
    let quoted = &piece[..piece.len().min(FirstUnreadable::TEXT_BYTES)];
    let text = match is_text {
        true => String::from_utf8_lossy(quoted).into_owned(),
        false => quoted.iter().map(|byte| format!("{byte:02x}")).collect(),
    };
    FirstUnreadable { line, text, reason: why.name().to_owned() }
}

/// The names of layouts between commas.
fn listed(layouts: &[TraceLayout]) -> String {
    layouts.iter().map(|layout| layout.name()).collect::<Vec<_>>().join(", ")
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

/// A zstd file, frame by frame.
struct Unpacked {
    decoder: FrameDecoder,
    packed: BufReader<File>,
}

impl Unpacked {
    /// Opens the first frame, so that other files are rejected at once.
    fn new(mut packed: BufReader<File>) -> io::Result<Self> {
        let mut decoder = FrameDecoder::new();
        let refused = |error| io::Error::other(format!("not a zstd file: {error}"));
        begin_frame(&mut decoder, &mut packed).map_err(refused)?;
        Ok(Self { decoder, packed })
    }
}

/// Begins the next frame, if there is one. Skippable frames are skipped (RFC 8878, section 3.1.2).
fn begin_frame(
    decoder: &mut FrameDecoder,
    packed: &mut BufReader<File>,
) -> io::Result<bool> {
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
                self.decoder
                    .decode_blocks(&mut self.packed, UptoBytes(CHUNK_BYTES))
                    .map_err(io::Error::other)?;
                continue;
            }
            check_frame(&self.decoder)?;
            if !begin_frame(&mut self.decoder, &mut self.packed)? {
                return Ok(0);
            }
        }
    }
}

