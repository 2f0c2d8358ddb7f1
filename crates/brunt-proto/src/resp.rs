//! Redis's protocol, versions 2 and 3: commands as arrays of bulk strings, or as lines, out; typed replies in.
//!
//! The sources are Redis's protocol specifications and, where they are silent or a server disagrees, the bytes of
//! redis-server 7.0. One decoder reads both versions: what a server of version 2 writes is a part of version 3, and
//! which one is spoken is settled by the handshake alone. Every decision is taken at the same byte wherever the input
//! is cut, so a cut cannot change what it means; however deep a reply is, nothing of it is kept but how much is still
//! to come.

pub mod error;
pub mod handshake;
pub mod info;
mod inline;
mod line;
mod pairs;
pub mod reply;
mod request;
pub mod slot;

use crate::out::Out;
use crate::step::{BAD_NUMBER, LINE_END, Step, Stop, UNKNOWN, as_event, line_end};
use crate::template::Templates;
use crate::{
    Codec, ConnectionSetup, Encoded, Event, Form, Found, KeyNames, Malformed, Matching, Recache, Request,
    encode_copied_get,
};
use brunt_plan::op::OpKind;
use brunt_plan::outcome::{ErrorPersistence, ReplyKind};
use brunt_plan::quoted_bytes::QuotedBytes;
use error::ErrorPrefix;
use handshake::{Handshake, SetupCommand};
use line::Length;
use std::sync::Arc;

/// The codec of both versions: the parse state of one connection.
///
/// What the [`Codec`] contract leaves open:
///
/// - A whole bulk string is `Found`, where its length has at most five digits. No reply repeats a key: `key` is empty,
///   and so are the flags and uniques that this protocol does not have.
/// - `Begin` uses up no bytes. Line ends wait for the event behind them, so that none comes without a byte.
/// - A bulk or verbatim string is one key with its value (of the latter, without the format in front of it); so is each
///   element of an array of strings and nulls, a null being a `Key` that is no hit. Such an array ends with `Value` if
///   one of them was there, and else with `NotFound`. Its head is `Control`, and so are the bytes of all other replies
///   that have parts, whose `End` is `Ok`.
/// - Simple strings, doubles, booleans and big numbers are `Ok`; a null is `NotFound`; an integer is `Number`.
///   What that is to the op is in a table of its own. An error is what its first word makes it ([`ErrorPrefix`]),
///   and its text is all of its line.
/// - Attributes are passed over as `Control` of the reply that they are in.
/// - After `Bad` the codec uses up nothing and says nothing more: a loop that runs until `None` ends.
#[derive(Clone, Debug)]
pub struct RespCodec {
    last_header: LastHeader,
    expects: Expects,
    progress: Progress,
    levels: Levels,
    templates: Templates,
    handshake: Option<Arc<Handshake>>,
    commands: Commands,
}

/// How commands are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Commands {
    /// As arrays of bulk strings.
    Arrays,
    /// As arrays, where this many bytes at the end of a key, at least one, are the field of a hash.
    Fields(u32),
    /// As lines.
    Inline,
}

/// What the next byte belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Expects {
    /// A value or the head of one: a line.
    Line,
    /// A string of which this many bytes, at least one, are still to come.
    Bytes { remaining: u32 },
    /// The line end behind what was told last.
    LineEnd,
    /// Nothing: the bytes were malformed.
    Nothing,
}

/// What the reply being read has been so far.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Progress {
    /// No byte of it is here. Then a line is expected.
    Idle,
    /// `Begin` is told; no more than attributes is read.
    Begun,
    /// A string.
    Single { form: Form },
    /// An array of strings and nulls.
    Row { found: bool },
    /// Something else that has parts.
    Mixed,
    /// No reply: a message of the server.
    Push,
}

/// The values that are begun and not over, from the outermost.
#[derive(Clone, Copy, Debug, Default)]
struct Levels {
    depth: u8,
    /// Which of them are attributes, from the lowest bit.
    attributes: u16,
    /// How many elements of each are still to come, the one being read included: at least one.
    remaining: [u32; DEPTH_MAX],
}

/// The most values within values. The deepest reply of Redis 7.0 has 12 levels (COMMAND DOCS); 16 are what
/// there are bits for.
pub const DEPTH_MAX: usize = 16;

/// The most elements of a value: what leaves room to count the keys and values of a map together in 32 bits. Redis's
/// own collections hold up to twice as many, which would be a reply of more than 4 GB.
pub const ELEMENTS_MAX: u32 = 1 << 30;

/// The longest string: Redis's own bound on one (`proto-max-bulk-len`).
pub const STRING_BYTES_MAX: u32 = 512 << 20;

/// The longest line, its end included. Error texts are the longest that servers write; those of Redis stay below 500
/// bytes. Two less than the unit, because a line is looked at together with the line end before it.
const LINE_BYTES_MAX: usize = RespCodec::UNIT_BYTES_MAX - LINE_END.len();

/// What nearly every store is answered with, and every miss, which the versions write each in its own way. They are told
/// here with a comparison each; [`RespCodec::line`] would tell them the same.
const FREQUENT: [(&[u8], ReplyKind, Form); 3] = [
    (b"+OK\r\n", ReplyKind::Ok, pairs::OK),
    (b"$-1\r\n", ReplyKind::NotFound, pairs::NULL),
    (b"_\r\n", ReplyKind::NotFound, pairs::NULL),
];

/// What is in front of a verbatim string and counts as a part of it: three letters of a format, and a colon.
const FORMAT_BYTES: u32 = 4;

impl Default for RespCodec {
    fn default() -> Self {
        Self::new(Templates::default(), None)
    }
}

impl RespCodec {
    /// The codec of a connection on which nothing has been sent, for a plan with these command templates, whose connections
    /// begin with this handshake.
    pub fn new(templates: Templates, handshake: Option<Arc<Handshake>>) -> Self {
        Self {
            last_header: LastHeader::default(),
            expects: Expects::Line,
            progress: Progress::Idle,
            levels: Levels::default(),
            templates,
            handshake,
            commands: Commands::Arrays,
        }
    }

    /// The codec for keys that end with the field of a hash of this length; 0: they do not.
    pub fn with_hash_field(mut self, bytes: usize) -> Self {
        self.commands = if bytes == 0 { Commands::Arrays } else { Commands::Fields(bytes as u32) };
        self
    }

    /// The codec with inline commands. The handshake stays one of arrays, which Redis reads beside them.
    pub fn with_inline_commands(mut self) -> Self {
        self.commands = Commands::Inline;
        self.templates = inline::with_bound(self.templates);
        self
    }
}

impl Codec for RespCodec {
    const MATCHING: Matching = Matching::Fifo;

    const KEY_NAMES: KeyNames = KeyNames::Never;

    const HAS_SETUP: bool = true;

    const REDIRECTS: bool = true;

    const UNIT_BYTES_MAX: usize = 2048;

    const FOUND: Form = pairs::BULK;

    #[inline]
    fn encoded_len_max(&self, keys: usize, key_bytes: usize, value_bytes: usize) -> usize {
        let plain = request::encoded_len_max(keys, key_bytes);
        plain.max(self.templates.encoded_len_max(key_bytes)) + value_bytes
    }

    /// Client flags are dropped and `noreply` is not heeded: the protocol has neither. (`CLIENT REPLY SKIP` would be a
    /// second command for each request, and so another measurement.) A touch without a time to live only marks the key
    /// as used, because a time of 0 would delete it here.
    ///
    /// # Panics
    ///
    /// If the protocol has no such kind, or if there is no such template: a plan that asks for them is refused.
    fn encode(&mut self, request: &Request<'_>, out: &mut Out) -> Encoded {
        match (request.kind, self.commands) {
            (OpKind::Raw, _) => {
                self.templates.encode(request, out);
            }
            (_, Commands::Arrays) => request::put(request, out),
            (_, Commands::Fields(bytes)) => {
                match request::split_field(request.keys.first(), bytes as usize) {
                    Some(place) => request::put_of_field(request, place, out),
                    None => request::put(request, out),
                }
            }
            (_, Commands::Inline) => inline::put(request, out),
        }
        Encoded { wire_requests: 1, replied: true }
    }

    #[inline(always)]
    fn encode_get(
        &mut self,
        key_len: usize,
        token: u32,
        out: &mut Out,
        write: impl FnOnce(&mut [u8]),
    ) -> Encoded {
        match self.commands {
            Commands::Arrays => {
                request::put_get_in_place(key_len, out, write);
                Encoded { wire_requests: 1, replied: true }
            }
            Commands::Fields(_) | Commands::Inline => encode_copied_get(self, key_len, token, out, write),
        }
    }

    // Always: as a call it would write what it found to memory, to be read again.
    #[inline(always)]
    fn decode_found<'a>(&mut self, input: &'a [u8]) -> Option<(usize, Found<'a>)> {
        if self.progress != Progress::Idle {
            return None;
        }
        let (used, value) = self.last_header.found(input)?;
        Some((used, Found { key: &[], flags: 0, value, token: 0 }))
    }

    #[inline(never)]
    fn decode_any<'a>(&mut self, input: &'a [u8]) -> (usize, Option<Event<'a>>) {
        if self.progress == Progress::Idle {
            if input[0] != b'>' {
                self.progress = Progress::Begun;
                return (0, Some(Event::Begin));
            }
            self.progress = Progress::Push;
        }
        let step = match self.expects {
            Expects::Line => self.line(input),
            Expects::Bytes { remaining } => return self.bytes(input, remaining),
            Expects::LineEnd => match self.next_of_row(input) {
                Some((used, event)) => return (used, Some(event)),
                None => self.after_line_end(input),
            },
            Expects::Nothing => return (0, None),
        };
        as_event(step, || self.expects = Expects::Nothing)
    }

    #[inline]
    fn meaning(&self, kind: OpKind, reply: ReplyKind, form: Form) -> Option<ReplyKind> {
        let has_fields = matches!(self.commands, Commands::Fields(_));
        let pairs = if has_fields { &pairs::HASH_PAIRS } else { &pairs::PAIRS };
        pairs.meaning(kind, reply, form)
    }

    fn connection_setup(&self) -> ConnectionSetup<'_> {
        self.handshake.as_ref().map_or(ConnectionSetup::NONE, |handshake| ConnectionSetup {
            bytes: handshake.bytes(),
            replies: handshake.steps().len() as u32,
        })
    }

    fn setup_step(&self, number: u32) -> &'static str {
        self.handshake.as_ref().and_then(|handshake| handshake.step(number)).map_or("", SetupCommand::name)
    }

    fn setup_error(&self, number: u32, _reply: ReplyKind, text: &[u8]) -> String {
        match self.setup_step(number) {
            // Not one of ours: a server that is full, say, speaks first.
            "" => QuotedBytes(text).to_string(),
            step => format!("{step} refused: {}", QuotedBytes(text)),
        }
    }

    fn error_prefix(text: &[u8]) -> Option<ErrorPrefix> {
        Some(ErrorPrefix::of(text))
    }

    fn error_persistence(_reply: ReplyKind, text: &[u8]) -> ErrorPersistence {
        ErrorPrefix::of(text).persistence(text)
    }
}

impl RespCodec {
    /// Reads a value that is a line, or the line that a value begins with.
    #[inline]
    fn line<'a>(&mut self, input: &'a [u8]) -> Step<(usize, Event<'a>)> {
        if self.is_outermost()
            && let Some((line, reply, form)) = FREQUENT.iter().find(|(line, ..)| input.starts_with(line))
        {
            return Ok((line.len(), self.end(*reply, *form, 0, &[])));
        }
        let line = &input[..input.len().min(LINE_BYTES_MAX)];
        let step = match line.first().ok_or(Stop::Short)? {
            b'$' => self.string(line, 0),
            b'=' => self.string(line, FORMAT_BYTES),
            b'!' if self.is_outermost() => {
                Self::blob_error(line).map(|(text, used)| (used, self.error(text)))
            }
            b'!' => self.string(line, 0),
            sort @ (b'*' | b'~' | b'%' | b'|') => self.aggregate(*sort, line),
            b'>' if self.progress == Progress::Push && self.levels.depth == 0 => self.aggregate(b'>', line),
            b'+' | b'-' | b':' | b'_' | b',' | b'#' | b'(' => self.scalar(line),
            _ => Err(UNKNOWN),
        };
        match step {
            Err(Stop::Short) if line.len() == LINE_BYTES_MAX => Err(Stop::Bad(Malformed::LineTooLong)),
            step => step,
        }
    }

    /// Is the next value the reply itself, not a part of one?
    fn is_outermost(&self) -> bool {
        self.progress == Progress::Begun && self.levels.depth == 0
    }

    /// Is the next value, or the string being read, one of those that are told as keys?
    fn is_reported(&self) -> bool {
        match self.progress {
            Progress::Single { .. } => true,
            Progress::Row { .. } => self.levels.depth == 1 && self.levels.attributes == 0,
            _ => self.is_outermost(),
        }
    }

    /// Reads the line end behind what was told last together with what follows: alone it is no event.
    fn after_line_end<'a>(&mut self, input: &'a [u8]) -> Step<(usize, Event<'a>)> {
        let start = line_end(input, 0, Stop::Bad(Malformed::ValueNotTerminated))?;
        if self.levels.depth > 0 || self.progress == Progress::Begun {
            let (used, event) = self.line(&input[start..])?;
            return Ok((start + used, event));
        }
        let (reply, form) = match self.progress {
            Progress::Push => {
                self.rest();
                return Ok((start, Event::Push { is_over: true }));
            }
            Progress::Single { form } => (ReplyKind::Value, form),
            Progress::Row { found: true } => (ReplyKind::Value, pairs::ROW),
            Progress::Row { found: false } => (ReplyKind::NotFound, pairs::ROW_OF_NULLS),
            _ => (ReplyKind::Ok, pairs::OTHER_OK),
        };
        Ok((start, self.end(reply, form, 0, &[])))
    }

    /// The short way of [`RespCodec::after_line_end`]: the head of a string that is the next of a row.
    #[inline]
    fn next_of_row<'a>(&mut self, input: &'a [u8]) -> Option<(usize, Event<'a>)> {
        if !matches!(self.progress, Progress::Row { .. }) || !self.is_reported() {
            return None;
        }
        let front = u64::from_le_bytes(*input.strip_prefix(LINE_END)?.first_chunk()?);
        let last_header = self.last_header.fitting(front).filter(|last_header| last_header.value_len > 0)?;
        self.progress = Progress::Row { found: true };
        self.expects = Expects::Bytes { remaining: last_header.value_len };
        Some((LINE_END.len() + last_header.head_len as usize, key(true, last_header.value_len)))
    }

    /// Reads a value that is a whole line.
    fn scalar<'a>(&mut self, line: &'a [u8]) -> Step<(usize, Event<'a>)> {
        let (text, used) = line::text(line)?;
        let body = &text[1..];
        let other = (ReplyKind::Ok, pairs::OTHER_OK, 0);
        let (reply, form, number) = match text[0] {
            b':' => {
                let number = line::integer(body)?;
                (ReplyKind::Number, pairs::of_integer(number), number as u64)
            }
            b'_' if body.is_empty() => (ReplyKind::NotFound, pairs::NULL, 0),
            b'+' if body == b"OK" => (ReplyKind::Ok, pairs::OK, 0),
            b'+' | b'-' => other,
            b'#' if matches!(body, b"t" | b"f") => other,
            b',' => line::double(body).map(|()| other)?,
            b'(' => line::big_number(body).map(|()| other)?,
            _ => return Err(UNKNOWN),
        };
        if !self.is_outermost() {
            return Ok(self.element(text, reply == ReplyKind::NotFound));
        }
        let event = if text[0] == b'-' { self.error(body) } else { self.end(reply, form, number, &[]) };
        Ok((used, event))
    }

    /// An element is over, but for its line end; `text` is all of it, or its head and it has nothing else.
    fn element<'a>(&mut self, text: &'a [u8], is_null: bool) -> (usize, Event<'a>) {
        let event = if is_null && self.is_reported() {
            key(false, 0)
        } else {
            self.mix();
            self.opaque_bytes(text)
        };
        self.levels.complete();
        self.expects = Expects::LineEnd;
        (text.len(), event)
    }

    /// Something other than a string or null is here: the reply is no row.
    fn mix(&mut self) {
        if matches!(self.progress, Progress::Row { .. }) && self.levels.attributes == 0 {
            self.progress = Progress::Mixed;
        }
    }

    /// Bytes that are not told apart any further.
    fn opaque_bytes<'a>(&self, bytes: &'a [u8]) -> Event<'a> {
        if self.progress == Progress::Push { Event::Push { is_over: false } } else { Event::Control(bytes) }
    }

    /// Reads the head of a string, which has this many bytes in front that belong to it and are passed over.
    fn string<'a>(&mut self, line: &'a [u8], format_bytes: u32) -> Step<(usize, Event<'a>)> {
        let (length, at) = line::length(line)?;
        let used = line_end(line, at, BAD_NUMBER)?;
        let bytes = match length {
            Length::Null if line[0] != b'$' => return Err(BAD_NUMBER),
            Length::Null => return Ok(self.null(&line[..at])),
            Length::Of(bytes) if bytes > STRING_BYTES_MAX => return Err(BAD_NUMBER),
            Length::Of(bytes) => bytes.checked_sub(format_bytes).ok_or(BAD_NUMBER)?,
        };
        let used = used + format_bytes as usize;
        if line.get(..used).ok_or(Stop::Short)?.last() != Some(&if format_bytes == 0 { b'\n' } else { b':' })
        {
            return Err(UNKNOWN);
        }
        let event = if line[0] != b'!' && self.is_reported() {
            self.progress = match self.progress {
                Progress::Row { .. } => Progress::Row { found: true },
                _ if format_bytes == 0 => Progress::Single { form: pairs::BULK },
                _ => Progress::Single { form: pairs::OTHER_VALUE },
            };
            key(true, bytes)
        } else {
            self.mix();
            self.opaque_bytes(&line[..used])
        };
        self.expects = Expects::Bytes { remaining: bytes };
        if bytes == 0 {
            self.levels.complete();
            self.expects = Expects::LineEnd;
        }
        Ok((used, event))
    }

    /// A null that version 2 writes as a length of -1.
    fn null<'a>(&mut self, text: &'a [u8]) -> (usize, Event<'a>) {
        if self.is_outermost() {
            let form = if text[0] == b'$' { pairs::NULL } else { pairs::OTHER_NULL };
            return (text.len() + LINE_END.len(), self.end(ReplyKind::NotFound, form, 0, &[]));
        }
        self.element(text, true)
    }

    /// Passes on what is visible of a string.
    fn bytes<'a>(&mut self, input: &'a [u8], remaining: u32) -> (usize, Option<Event<'a>>) {
        let piece = &input[..input.len().min(remaining as usize)];
        let event = if self.is_reported() { Event::Value(piece) } else { self.opaque_bytes(piece) };
        self.expects = match remaining - piece.len() as u32 {
            0 => {
                self.levels.complete();
                Expects::LineEnd
            }
            remaining => Expects::Bytes { remaining },
        };
        (piece.len(), Some(event))
    }

    /// The text of an error that has a length, as the reply itself, and the length of it all.
    fn blob_error(line: &[u8]) -> Step<(&[u8], usize)> {
        let (length, at) = line::length(line)?;
        let start = line_end(line, at, BAD_NUMBER)?;
        let Length::Of(bytes) = length else { return Err(BAD_NUMBER) };
        let end = start + bytes as usize;
        if end + LINE_END.len() > LINE_BYTES_MAX {
            return Err(Stop::Bad(Malformed::LineTooLong));
        }
        let text = line.get(start..end).ok_or(Stop::Short)?;
        Ok((text, line_end(line, end, Stop::Bad(Malformed::ValueNotTerminated))?))
    }

    /// Reads the head of a value that has elements.
    fn aggregate<'a>(&mut self, sort: u8, line: &'a [u8]) -> Step<(usize, Event<'a>)> {
        let (length, at) = line::length(line)?;
        line_end(line, at, BAD_NUMBER)?;
        let elements = match length {
            Length::Null if sort == b'*' => return Ok(self.null(&line[..at])),
            Length::Of(elements) if elements <= ELEMENTS_MAX => elements,
            _ => return Err(BAD_NUMBER),
        };
        let is_attribute = sort == b'|';
        if self.is_outermost() {
            self.progress = match sort {
                b'|' => Progress::Begun,
                b'*' => Progress::Row { found: false },
                _ => Progress::Mixed,
            };
        } else if !is_attribute {
            self.mix();
        }
        match elements * (1 + u32::from(matches!(sort, b'%' | b'|'))) {
            0 if is_attribute => {}
            0 => self.levels.complete(),
            elements => self.levels.begin(elements, is_attribute)?,
        }
        self.expects = Expects::LineEnd;
        Ok((at, self.opaque_bytes(&line[..at])))
    }

    /// Closes a reply that is an error.
    fn error<'a>(&mut self, text: &'a [u8]) -> Event<'a> {
        let text = if text.is_empty() { b"-" } else { text };
        self.end(ErrorPrefix::of(text).reply, pairs::ERROR, 0, text)
    }

    /// Closes the reply.
    fn end<'a>(&mut self, reply: ReplyKind, form: Form, number: u64, text: &'a [u8]) -> Event<'a> {
        self.rest();
        Event::End { reply, form, number, token: 0, text }
    }

    /// Waits for the next reply.
    fn rest(&mut self) {
        self.expects = Expects::Line;
        self.progress = Progress::Idle;
    }
}

impl Levels {
    /// A value with this many elements, at least one, begins.
    fn begin(&mut self, elements: u32, is_attribute: bool) -> Step<()> {
        let level = usize::from(self.depth);
        *self.remaining.get_mut(level).ok_or(Stop::Bad(Malformed::TooDeep))? = elements;
        self.attributes |= u16::from(is_attribute) << level;
        self.depth += 1;
        Ok(())
    }

    /// An element is over, and with it every value whose last one it was. An attribute is no element of what it is in.
    fn complete(&mut self) {
        while let Some(level) = self.depth.checked_sub(1) {
            let remaining = &mut self.remaining[usize::from(level)];
            *remaining -= 1;
            if *remaining > 0 {
                return;
            }
            self.depth = level;
            let aside = 1 << level;
            if self.attributes & aside != 0 {
                self.attributes &= !aside;
                return;
            }
        }
    }
}

/// A key that was requested, with the length of its value.
fn key<'a>(hit: bool, bytes: u32) -> Event<'a> {
    Event::Key { hit, key: &[], flags: 0, bytes, unique: 0, token: 0, recache: Recache::NONE }
}

/// The head of the last string that was a whole reply, or one of a row. Most look like the one before them, and to compare takes less than
/// to read: whatever does not fit is read anew.
#[derive(Clone, Copy, Debug)]
struct LastHeader {
    /// `$LENGTH\r\n`, the first byte in the lowest place, and zeros.
    head: u64,
    /// The bits of `head` that are not of what follows.
    head_mask: u64,
    head_len: u32,
    value_len: u32,
}

impl Default for LastHeader {
    /// The head of nothing: zeros, behind which no value ends.
    fn default() -> Self {
        Self { head: 0, head_mask: u64::MAX, head_len: 0, value_len: 0 }
    }
}

impl LastHeader {
    /// The short way: a whole string, if that is what lies at the front. Its length on the wire, and its bytes.
    #[inline(always)]
    fn found<'a>(&mut self, input: &'a [u8]) -> Option<(usize, &'a [u8])> {
        let Self { head_len, value_len, .. } = self.fitting(u64::from_le_bytes(*input.first_chunk()?))?;
        let (head_len, value_len) = (head_len as usize, value_len as usize);
        let (value, end) = input.get(head_len..)?.split_at_checked(value_len)?;
        end.starts_with(LINE_END).then_some((head_len + value_len + LINE_END.len(), value))
    }

    /// The head that is there, if it is that of a string.
    #[inline(always)]
    fn fitting(&mut self, front: u64) -> Option<Self> {
        if (front ^ self.head) & self.head_mask != 0 {
            *self = Self::of(front)?;
        }
        Some(*self)
    }

    /// Reads the head of a string. Nothing is decided here: what is rare or wrong is `None`, and left to
    /// [`Codec::decode_any`].
    #[inline]
    fn of(front: u64) -> Option<Self> {
        let bytes = front.to_le_bytes();
        if bytes[0] != b'$' {
            return None;
        }
        let digits = bytes[1..].iter().take_while(|byte| byte.is_ascii_digit()).count();
        let head_len = 1 + digits + LINE_END.len();
        if digits == 0 || bytes.get(1 + digits..head_len)? != LINE_END {
            return None;
        }
        let value_len =
            bytes[1..=digits].iter().fold(0, |number, digit| 10 * number + u32::from(digit - b'0'));
        let head_mask = u64::MAX >> (8 * (size_of::<u64>() - head_len));
        Some(Self { head: front & head_mask, head_mask, head_len: head_len as u32, value_len })
    }
}

#[cfg(test)]
mod tests;
