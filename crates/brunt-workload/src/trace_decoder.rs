//! Layouts of traces: a line, or a record of a fixed length, becomes the requests that it stands for.
//!
//! Not files, which a caller cuts into pieces, and not what may be sent, which depends on a plan. Invariants: a layout is told by the file itself
//! or given, never guessed; whatever the bytes are, a piece is decoded, passed over, of no use to brunt, or refused with a reason; nothing is
//! yielded of a line that is refused.

use crate::monitor_line::{self, Arguments, whole};
use brunt_plan::op::OpKind::{self, Delete, Get, Set};
use brunt_plan::plan::{KEY_BYTES_MAX, TraceLayout};
use brunt_plan::recorded_request::RecordedRequest;
use std::io::Write;

const SECOND_NS: i64 = 1_000_000_000;

brunt_plan::named! {
    /// Why a line or record is no request.
    pub enum LineError {
        /// It has fewer columns than its layout.
        Columns = "fewer columns than the layout has",
        /// It has more bytes than a line may have.
        TooLong = "too many bytes for a line",
        /// A time that is no whole number.
        Time = "a time that is no whole number",
        /// No time, where it is to be sent at that.
        Untimed = "no time at which to replay it",
        /// A length that is no whole number.
        Length = "a length that is no whole number",
        /// A time to live that is no whole number.
        Ttl = "a ttl that is no whole number",
        /// A key of no bytes, or, where it is sent, of too many with its prefix, or of others than printable ASCII without spaces.
        Key = "a key that is empty, too long or not printable",
        /// An operation that the layout does not know.
        Operation = "an unknown operation",
        /// A count of repeats outside of 1 to 65535.
        Repeats = "a number of repeats that is not from 1 to 65535",
        /// A place of the next request that no trace has.
        Next = "a place of the next request that cannot be",
        /// A line that is not in the form of MONITOR.
        Form = "no line of MONITOR",
        /// A line before that which names the columns.
        Head = "no head that names key, op and size",
    }
}

/// What a line or record was.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Decoded {
    /// One request or more.
    Requests,
    /// None, as it should be: a head, the answer to MONITOR, a command of a script, an object without bytes.
    PassedOver,
    /// A command that brunt does not send.
    Unsupported,
}

/// Into what the file is cut.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Piece {
    /// Lines of at most so many bytes.
    Line(usize),
    /// Records of so many bytes.
    Record(usize),
}

/// What is in the columns of Meta's layout.
const META_COLUMNS: [&[u8]; 7] = [b"key", b"op", b"size", b"op_time", b"key_size", b"op_count", b"ttl"];
/// The first of them are needed.
const META_NEEDED: usize = 3;
/// More columns than these no line has.
const COLUMNS_MAX: usize = 32;
/// Longer lines are unreadable, but for those of MONITOR, which have values in them.
const LINE_BYTES_MAX: usize = 4096;
/// Room for a value of the longest that is sent, each byte of which takes four.
const MONITOR_LINE_BYTES_MAX: usize = 8 << 20;
/// A record of oracleGeneral.
const ORACLE_BYTES: usize = 24;
/// No file has as many records.
const NEXT_MAX: i64 = 1 << 48;
/// Takes requests, or refuses one.
pub type TakeRequest<'a> = dyn FnMut(&RecordedRequest<'_>) -> Result<(), LineError> + 'a;

/// Reads the pieces of one file.
#[derive(Clone, Debug)]
pub struct TraceDecoder {
    layout: TraceLayout,
    /// Of Meta's columns: which of the line's each is.
    columns: Option<[Option<usize>; META_COLUMNS.len()]>,
    /// The time of the first record, in the layout's own unit.
    first: Option<u64>,
    /// The key that is made of several columns, and the arguments of a command.
    key: Vec<u8>,
    arguments: Arguments,
}

/// The layout that a file tells by how it begins.
pub fn recognised(head: &[u8]) -> Option<TraceLayout> {
    let mut lines = head.split(|byte| *byte == b'\n').map(trimmed);
    let first = lines.next()?;
    let line = if monitor_line::is_answer(first) { lines.next()? } else { first };
    if monitor_line::has_form(line) {
        return Some(TraceLayout::Monitor);
    }
    meta_columns(first).map(|_| TraceLayout::Meta)
}

/// A line without what ends it.
fn trimmed(line: &[u8]) -> &[u8] {
    line.strip_suffix(b"\r").unwrap_or(line)
}

impl TraceDecoder {
    /// A decoder of a whole file.
    pub fn new(layout: TraceLayout) -> Self {
        Self { layout, columns: None, first: None, key: Vec::new(), arguments: Arguments::default() }
    }

    /// How the file is written.
    pub const fn layout(&self) -> TraceLayout {
        self.layout
    }

    /// Into what it is cut.
    pub const fn piece(&self) -> Piece {
        match self.layout {
            TraceLayout::Oracle => Piece::Record(ORACLE_BYTES),
            TraceLayout::Monitor => Piece::Line(MONITOR_LINE_BYTES_MAX),
            _ => Piece::Line(LINE_BYTES_MAX),
        }
    }

    /// Yields what a piece stands for; a line comes without its end.
    ///
    /// # Errors
    /// It stands for nothing of this layout, or `each` refused a request of it, the first of which is named.
    pub fn decode(&mut self, piece: &[u8], each: &mut TakeRequest<'_>) -> Result<Decoded, LineError> {
        match self.layout {
            TraceLayout::Oracle => self.record(piece, each),
            TraceLayout::Monitor => self.command(trimmed(piece), each),
            _ => self.columns(trimmed(piece), each),
        }
    }

    /// Words between commas. Nothing is quoted.
    fn columns(&mut self, line: &[u8], each: &mut TakeRequest<'_>) -> Result<Decoded, LineError> {
        // A key of Twitter's keeps its blanks.
        let (words, count) = words_of(line, self.layout != TraceLayout::Twitter);
        let words = &words[..count];
        let is_comment = self.layout == TraceLayout::OracleText && line.starts_with(b"#");
        if is_comment || (self.layout == TraceLayout::Meta && self.takes_head(line)?) {
            return Ok(Decoded::PassedOver);
        }
        let layout = self.layout;
        let request = match layout {
            TraceLayout::Meta => self.of_meta(words)?,
            TraceLayout::OracleText => self.of_oracle(words)?,
            TraceLayout::Twitter => self.of_twitter(words)?,
            _ => self.of_mutilate(words)?,
        };
        if layout == TraceLayout::OracleText && request.value_len == Some(0) {
            return Ok(Decoded::PassedOver);
        }
        each(&request).map(|()| Decoded::Requests)
    }

    fn of_twitter<'a>(&mut self, words: &[&'a [u8]]) -> Result<RecordedRequest<'a>, LineError> {
        let [time, key, key_len, value_len, _, operation] = first_words(words)?;
        let kinds = TraceLayout::Twitter.kinds();
        let kind = kinds.iter().find(|kind| kind.name().as_bytes() == operation);
        let value_len = whole(value_len).ok_or(LineError::Length)?;
        let kind = *kind.ok_or(LineError::Operation)?;
        Ok(RecordedRequest {
            time_ns: Some(self.seconds(time)?),
            key_len: short(key_len),
            value_len: stored(kind, value_len),
            ttl_ns: ttl_ns(words.get(6).copied())?,
            ..RecordedRequest::of(kind, filled(key)?)
        })
    }

    fn of_mutilate<'a>(&self, words: &[&'a [u8]]) -> Result<RecordedRequest<'a>, LineError> {
        let [_, _, third, key, value_len] = first_words(words)?;
        let value_len = whole(value_len).ok_or(LineError::Length)?;
        let key = filled(key)?;
        let kind = match (self.layout, third) {
            (TraceLayout::MutilateAllGets, _)
            | (TraceLayout::MutilateReadWrite, b"read")
            | (TraceLayout::MutilateOneTwo, b"1") => Get,
            (TraceLayout::MutilateReadWrite, b"write") | (TraceLayout::MutilateOneTwo, b"2") => Set,
            _ => return Err(LineError::Operation),
        };
        // Its times have no unit.
        let key_len = Some(key.len() as u32);
        Ok(RecordedRequest { key_len, value_len: Some(value_len), ..RecordedRequest::of(kind, key) })
    }

    fn of_oracle<'a>(&mut self, words: &[&'a [u8]]) -> Result<RecordedRequest<'a>, LineError> {
        let [time, key, value_len] = first_words(words)?;
        let time_ns = Some(self.seconds(time)?);
        let value_len = Some(whole(value_len).ok_or(LineError::Length)?);
        Ok(RecordedRequest { time_ns, value_len, ..RecordedRequest::of(Get, filled(key)?) })
    }

    /// Is the line the one that names the columns, which is before all others?
    fn takes_head(&mut self, line: &[u8]) -> Result<bool, LineError> {
        if self.columns.is_some() {
            return Ok(false);
        }
        self.columns = meta_columns(line);
        self.columns.map(|_| true).ok_or(LineError::Head)
    }

    fn of_meta(&mut self, words: &[&[u8]]) -> Result<RecordedRequest<'_>, LineError> {
        let columns = self.columns.ok_or(LineError::Head)?;
        let [key, operation, size, time, key_size, repeats, ttl] =
            columns.map(|place| place.and_then(|place| words.get(place).copied()));
        let (Some(key), Some(operation), Some(size)) = (key, operation, size) else {
            return Err(LineError::Columns);
        };
        let kind = match operation {
            b"GET" | b"GET_LEASE" => Get,
            b"SET" | b"SET_LEASE" => Set,
            b"DELETE" => Delete,
            _ => return Err(LineError::Operation),
        };
        let value_len = whole(size).ok_or(LineError::Length)?;
        let repeats = repeats.map_or(Some(1), short).filter(|repeats| (1..=65_535).contains(repeats));
        let repeats = repeats.ok_or(LineError::Repeats)?;
        let time_ns = time.map(|time| self.seconds(time)).transpose()?;
        let (key_len, ttl_ns) = (key_size.and_then(short), ttl_ns(ttl)?);
        self.key.clear();
        self.key.extend_from_slice(filled(key)?);
        // By a byte that ids do not have, so that no two keys become one. One that is too long stays so, for who sends it to count.
        let padded = key_len.unwrap_or(0).min(KEY_BYTES_MAX + 1) as usize;
        self.key.resize(padded.max(self.key.len()), b'.');
        Ok(RecordedRequest {
            time_ns,
            key_len,
            value_len: stored(kind, value_len),
            ttl_ns,
            repeats,
            ..RecordedRequest::of(kind, &self.key)
        })
    }

    /// A record of oracleGeneral: u32 time, u64 object, u32 size, i64 place of the next request for it, in little endian.
    fn record(&mut self, bytes: &[u8], each: &mut TakeRequest<'_>) -> Result<Decoded, LineError> {
        let record: &[u8; ORACLE_BYTES] = bytes.try_into().map_err(|_| LineError::Columns)?;
        let number = |at: usize| (0..4).fold(0, |sum, byte| sum | u64::from(record[at + byte]) << (8 * byte));
        let next = (number(16) | number(20) << 32) as i64;
        if !(-1..NEXT_MAX).contains(&next) && next != i64::MAX {
            return Err(LineError::Next);
        }
        let (object, size) = (number(4) | number(8) << 32, number(12));
        if size == 0 {
            return Ok(Decoded::PassedOver);
        }
        let time_ns = Some(self.since_first(number(0), SECOND_NS));
        self.key.clear();
        // Writing into memory does not fail.
        let _ = write!(self.key, "{object}");
        let request =
            RecordedRequest { time_ns, value_len: Some(size), ..RecordedRequest::of(Get, &self.key) };
        each(&request).map(|()| Decoded::Requests)
    }

    /// A line of MONITOR.
    fn command(&mut self, line: &[u8], each: &mut TakeRequest<'_>) -> Result<Decoded, LineError> {
        if monitor_line::is_answer(line) {
            return Ok(Decoded::PassedOver);
        }
        let (head, command) = monitor_line::split(line).ok_or(LineError::Form)?;
        self.arguments.read(command).ok_or(LineError::Form)?;
        if head.client == b"lua" {
            return Ok(Decoded::PassedOver);
        }
        let time_ns = Some(self.since_first(head.time_us, 1_000));
        let Some(command) = self.arguments.command() else { return Ok(Decoded::Unsupported) };
        if command.keys.clone().any(|at| self.arguments.get(at).is_none_or(<[u8]>::is_empty)) {
            return Err(LineError::Key);
        }
        let mut refused = Ok(());
        for at in command.keys {
            let key = self.arguments.get(at).unwrap_or_default();
            let value = command.value_behind.and_then(|behind| self.arguments.get(at + behind));
            let request = RecordedRequest {
                time_ns,
                key_len: Some(key.len() as u32),
                value_len: value.map(|value| value.len() as u64),
                ttl_ns: command.ttl_ns,
                ..RecordedRequest::of(command.kind, key)
            };
            refused = refused.and(each(&request));
        }
        refused.map(|()| Decoded::Requests)
    }

    fn seconds(&mut self, text: &[u8]) -> Result<i64, LineError> {
        let time = whole(text).ok_or(LineError::Time)?;
        Ok(self.since_first(time, SECOND_NS))
    }

    fn since_first(&mut self, time: u64, unit_ns: i64) -> i64 {
        let since = i128::from(time) - i128::from(*self.first.get_or_insert(time));
        (since.clamp(i64::MIN.into(), i64::MAX.into()) as i64).saturating_mul(unit_ns)
    }
}

/// Which of a line's words are Meta's columns; `None` where one that is needed lacks.
fn meta_columns(line: &[u8]) -> Option<[Option<usize>; META_COLUMNS.len()]> {
    let (words, count) = words_of(line, true);
    let columns = META_COLUMNS.map(|name| words[..count].iter().position(|word| *word == name));
    columns[..META_NEEDED].iter().all(Option::is_some).then_some(columns)
}

/// The words between commas, without blanks around them if so, and how many there are.
fn words_of(line: &[u8], is_trimmed: bool) -> ([&[u8]; COLUMNS_MAX], usize) {
    let mut words = [&line[..0]; COLUMNS_MAX];
    let mut count = 0;
    for (place, word) in words.iter_mut().zip(line.split(|byte| *byte == b',')) {
        *place = if is_trimmed { word.trim_ascii() } else { word };
        count += 1;
    }
    (words, count)
}

/// The first words of a line.
fn first_words<'a, const N: usize>(words: &[&'a [u8]]) -> Result<[&'a [u8]; N], LineError> {
    words.first_chunk().copied().ok_or(LineError::Columns)
}

/// The length of a value that is or was there: without bytes a retrieval has missed, and a deletion has none.
fn stored(kind: OpKind, len: u64) -> Option<u64> {
    (len > 0 || kind.carries_value()).then_some(len)
}

fn filled(key: &[u8]) -> Result<&[u8], LineError> {
    if key.is_empty() { Err(LineError::Key) } else { Ok(key) }
}

/// Of seconds; 0 is none.
fn ttl_ns(text: Option<&[u8]>) -> Result<Option<u64>, LineError> {
    let text = text.filter(|text| !text.is_empty());
    let ttl = text.map_or(Some(0), whole).ok_or(LineError::Ttl)?;
    Ok(Some(ttl.saturating_mul(SECOND_NS as u64)).filter(|ttl_ns| *ttl_ns > 0))
}

fn short(text: &[u8]) -> Option<u32> {
    whole(text)?.try_into().ok()
}

#[cfg(test)]
mod tests;
