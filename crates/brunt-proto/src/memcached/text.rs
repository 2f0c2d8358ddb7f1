//! memcached's classic text protocol: command lines out, reply lines and value bytes in.
//!
//! Not the meta commands (`mg`, `ms` …), not UDP framing, not authentication. The source is memcached's
//! `doc/protocol.txt`. Every decision of the decoder is taken at the first byte that settles it, so where the input
//! is cut cannot change what it means; value bytes pass through unbuffered and unlooked at.

mod pairs;

use super::line::{
    LastBytes, decimal, decimal_u32, error_text, is_word, persistence, rest_of_line, word_len,
};
use crate::out::Out;
use crate::step::{BAD_NUMBER, LINE_END, Step, Stop, UNKNOWN, as_event, line_end};
use crate::template::Templates;
use crate::{Codec, Encoded, Event, Form, Found, KEY_BYTES_MAX, Malformed, Matching, Recache, Request};
use brunt_plan::op::OpKind;
use brunt_plan::outcome::{ErrorPersistence, ReplyKind};
use memchr::memchr2;

/// The text protocol's codec: the parse state of one connection.
///
/// What the [`Codec`] contract leaves open:
///
/// - A whole reply of one value without a unique is `Found` where its numbers are written in the usual way.
/// - `Begin` uses up no bytes. A `Key` uses up its line; the last `Value` of a key also uses up the line end behind it,
///   if that is visible.
/// - Line ends are `\r\n`, as memcached always sends them. A lone `\n` is `Bad`.
/// - `END` is `Value` after values, `Ok` after statistics, and else `NotFound`: an empty list of statistics looks the
///   same as a miss.
/// - `VERSION` and `STAT` lines are `Control` events: the whole line without its end. A `VERSION` is followed by the
///   `End` with `Ok`.
/// - A line that cannot follow the ones before it in the same reply (`STORED` after a value, a value with a unique after one
///   without) is `Bad`.
/// - After `Bad` the codec uses up nothing and says nothing more: a loop that runs until `None` ends.
#[derive(Debug)]
pub struct TextCodec {
    expects: Expects,
    progress: Progress,
    last_header: LastHeader,
    /// Command lines but those of retrievals end with a blank.
    has_trailing_blank: bool,
    templates: Templates,
    /// The most that a request takes beside its keys, a space before each, and its value.
    fixed_bytes: usize,
}

impl Clone for TextCodec {
    fn clone(&self) -> Self {
        Self { templates: self.templates.clone(), ..*self }
    }

    fn clone_from(&mut self, source: &Self) {
        (self.expects, self.progress, self.last_header) =
            (source.expects, source.progress, source.last_header);
        self.templates.clone_from(&source.templates);
        (self.fixed_bytes, self.has_trailing_blank) = (source.fixed_bytes, source.has_trailing_blank);
    }
}

impl Default for TextCodec {
    fn default() -> Self {
        Self {
            expects: Expects::default(),
            progress: Progress::default(),
            last_header: LastHeader::default(),
            has_trailing_blank: false,
            templates: Templates::default(),
            fixed_bytes: FIXED_BYTES_MAX,
        }
    }
}

/// What the next byte belongs to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Expects {
    /// A line of a reply.
    #[default]
    Line,
    /// A value of which this many bytes, at least one, are still to come.
    Value { remaining: u32 },
    /// The line end behind a value, then a line.
    ValueEnd,
    /// The line end behind a version.
    VersionEnd,
    /// Nothing: the bytes were malformed.
    Nothing,
}

/// What the reply being read has consisted of so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Progress {
    /// No byte of it is here.
    #[default]
    Idle,
    /// `Begin` is told, no line is read.
    Begun,
    /// At least one value, none with a unique.
    Values,
    /// At least one value, all with uniques.
    Uniques,
    /// At least one statistic.
    Statistics,
}

/// What the first word of a line says about the line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Shape {
    /// `VALUE`: key, flags, length and perhaps unique follow.
    Item,
    /// `END` of values or statistics.
    ListEnd,
    /// A whole line that is a whole reply.
    Complete(ReplyKind, Form),
    /// A line of digits.
    Number,
    /// An error; a text may follow.
    Error(ReplyKind),
    /// One of the lines that statistics consist of.
    Statistic,
    /// The server's version.
    Version,
}

const VALUE: &[u8] = b"VALUE ";
const END: &[u8] = b"END\r\n";
const STORED: &[u8] = b"STORED\r\n";

/// How every line but a number begins. No entry is the beginning of another.
const WORDS: [(&[u8], Shape); 15] = [
    (VALUE, Shape::Item),
    (END, Shape::ListEnd),
    (STORED, Shape::Complete(ReplyKind::Stored, pairs::STORED)),
    (b"NOT_FOUND\r\n", Shape::Complete(ReplyKind::NotFound, pairs::NOT_FOUND)),
    (b"NOT_STORED\r\n", Shape::Complete(ReplyKind::NotStored, pairs::NOT_STORED)),
    (b"DELETED\r\n", Shape::Complete(ReplyKind::Deleted, pairs::DELETED)),
    (b"TOUCHED\r\n", Shape::Complete(ReplyKind::Touched, pairs::TOUCHED)),
    (b"EXISTS\r\n", Shape::Complete(ReplyKind::Exists, pairs::EXISTS)),
    (b"OK\r\n", Shape::Complete(ReplyKind::Ok, pairs::UNASKED)),
    (b"SERVER_ERROR", Shape::Error(ReplyKind::ServerError)),
    (b"CLIENT_ERROR", Shape::Error(ReplyKind::ClientError)),
    // With a text too: a server at its limit of connections greets with "ERROR Too many open connections".
    (b"ERROR", Shape::Error(ReplyKind::Error)),
    (b"STAT ", Shape::Statistic),
    (b"VERSION ", Shape::Version),
    (b"RESET\r\n", Shape::Complete(ReplyKind::Ok, pairs::UNASKED)),
];

/// The longest line, its end included. A `VALUE` line with a key of 250 bytes, memcached's limit, takes 302; statistics
/// and error texts stay far below 1 KiB. Two less than the unit, because a line is looked at together with the line end
/// of the value before it.
const LINE_BYTES_MAX: usize = TextCodec::UNIT_BYTES_MAX - LINE_END.len();

/// The longest decimal of a `u64`, and the space before it.
const FIELD_U64_MAX: usize = " 18446744073709551615".len();

/// The longest decimal of a `u32`, and the space before it.
const FIELD_U32_MAX: usize = " 4294967295".len();

/// The most that a request of the plan's operations takes beside its keys, a space before each, and its value.
const FIXED_BYTES_MAX: usize = "replace".len()
    + 2 * FIELD_U32_MAX // flags, time to live
    + 2 * FIELD_U64_MAX // length of the value, unique or delta
    + " noreply".len() // which is longer than a blank
    + 2 * LINE_END.len();

impl TextCodec {
    /// The codec of a connection on which nothing has been sent.
    pub fn new() -> Self {
        Self::default()
    }

    /// The codec with a blank at the end of command lines, as mcperf writes them: of all but retrievals, and of none with `noreply`.
    pub fn with_trailing_blank(mut self, has_trailing_blank: bool) -> Self {
        self.has_trailing_blank = has_trailing_blank;
        self
    }

    /// The codec for a plan with these command templates.
    pub fn with_templates(self, templates: Templates) -> Self {
        let fixed_bytes = FIXED_BYTES_MAX.max(templates.encoded_len_max(KEY_BYTES_MAX));
        Self { templates, fixed_bytes, ..self }
    }

    /// Reads one line, which may be the first of a reply or a further one.
    #[inline]
    fn line<'a>(&mut self, input: &'a [u8]) -> Step<(usize, Event<'a>)> {
        let line = &input[..input.len().min(LINE_BYTES_MAX)];
        match self.line_within(line) {
            Err(Stop::Short) if line.len() == LINE_BYTES_MAX => Err(Stop::Bad(Malformed::LineTooLong)),
            step => step,
        }
    }

    #[inline]
    fn line_within<'a>(&mut self, line: &'a [u8]) -> Step<(usize, Event<'a>)> {
        let (word_len, shape) = shape(line)?;
        if !self.progress.admits(shape) {
            return Err(UNKNOWN);
        }
        match shape {
            Shape::Item => self.item(line),
            Shape::ListEnd => {
                let (reply, form) = match self.progress {
                    Progress::Values => (ReplyKind::Value, pairs::VALUES),
                    Progress::Uniques => (ReplyKind::Value, pairs::VALUES_WITH_UNIQUES),
                    Progress::Statistics => (ReplyKind::Ok, pairs::UNASKED),
                    Progress::Idle | Progress::Begun => (ReplyKind::NotFound, pairs::END),
                };
                Ok((word_len, self.end(reply, form, 0, &[])))
            }
            Shape::Complete(reply, form) => Ok((word_len, self.end(reply, form, 0, &[]))),
            Shape::Number => {
                let (number, used) = number_line(line)?;
                Ok((used, self.end(ReplyKind::Number, pairs::NUMBER, number, &[])))
            }
            Shape::Error(reply) => {
                let (text, used) = error_text(line, word_len)?;
                Ok((used, self.end(reply, pairs::ERROR, 0, text)))
            }
            Shape::Statistic => {
                let (text, used) = rest_of_line(line, word_len)?;
                self.progress = Progress::Statistics;
                Ok((used, Event::Control(text)))
            }
            Shape::Version => {
                let (text, _) = rest_of_line(line, word_len)?;
                // The line end is left for the event that ends the reply, so that no event comes without a byte
                // and a caller whose input is used up need not ask again.
                self.expects = Expects::VersionEnd;
                Ok((text.len(), Event::Control(text)))
            }
        }
    }

    /// Reads `VALUE <key> <flags> <bytes> [<unique>]`.
    #[inline]
    fn item<'a>(&mut self, line: &'a [u8]) -> Step<(usize, Event<'a>)> {
        let key_end = VALUE.len() + memchr2(b' ', b'\n', &line[VALUE.len()..]).ok_or(Stop::Short)?;
        if line[key_end] == b'\n' || key_end == VALUE.len() {
            return Err(UNKNOWN);
        }
        let (flags, at) = decimal_u32(line, key_end + 1)?;
        let (bytes, at) = decimal_u32(line, after_space(line, at)?)?;
        let ((unique, at), progress) = match line.get(at) {
            Some(b' ') => (decimal(line, at + 1)?, Progress::Uniques),
            _ => ((0, at), Progress::Values),
        };
        let used = line_end(line, at, BAD_NUMBER)?;
        if !matches!(self.progress, Progress::Idle | Progress::Begun) && self.progress != progress {
            return Err(UNKNOWN);
        }
        self.expects = if bytes == 0 { Expects::ValueEnd } else { Expects::Value { remaining: bytes } };
        self.progress = progress;
        let key = &line[VALUE.len()..key_end];
        Ok((used, Event::Key { hit: true, key, flags, bytes, unique, token: 0, recache: Recache::NONE }))
    }

    /// Passes on what is visible of a value.
    #[inline]
    fn value<'a>(&mut self, input: &'a [u8], remaining: u32) -> (usize, Option<Event<'a>>) {
        let (piece, rest) = input.split_at(input.len().min(remaining as usize));
        let mut used = piece.len();
        self.expects = match remaining - used as u32 {
            0 if rest.starts_with(LINE_END) => {
                used += LINE_END.len();
                Expects::Line
            }
            0 => Expects::ValueEnd,
            remaining => Expects::Value { remaining },
        };
        (used, Some(Event::Value(piece)))
    }

    /// Reads the line end behind a value together with the next line: alone it is no event.
    fn value_end<'a>(&mut self, input: &'a [u8]) -> Step<(usize, Event<'a>)> {
        let start = line_end(input, 0, Stop::Bad(Malformed::ValueNotTerminated))?;
        let (used, event) = self.line(&input[start..])?;
        Ok((start + used, event))
    }

    /// Closes the reply.
    #[inline]
    fn end<'a>(&mut self, reply: ReplyKind, form: Form, number: u64, text: &'a [u8]) -> Event<'a> {
        self.expects = Expects::Line;
        self.progress = Progress::Idle;
        Event::End { reply, form, number, token: 0, text }
    }
}

impl Progress {
    /// May a line of this shape come next?
    #[inline]
    fn admits(self, shape: Shape) -> bool {
        match self {
            Self::Idle | Self::Begun => true,
            Self::Values | Self::Uniques => {
                matches!(shape, Shape::Item | Shape::ListEnd | Shape::Error(_))
            }
            Self::Statistics => matches!(shape, Shape::Statistic | Shape::ListEnd | Shape::Error(_)),
        }
    }
}

impl Codec for TextCodec {
    const MATCHING: Matching = Matching::Fifo;

    const UNIT_BYTES_MAX: usize = 2048;

    const FOUND: Form = pairs::VALUES;

    #[inline]
    fn encoded_len_max(&self, keys: usize, key_bytes: usize, value_bytes: usize) -> usize {
        self.fixed_bytes + keys + key_bytes + value_bytes
    }

    /// Without a look at the templates, which gets are none of.
    #[inline]
    fn get_len_max(&self, key_bytes: usize) -> usize {
        FIXED_BYTES_MAX + 1 + key_bytes
    }

    /// Retrievals ask for every key and ignore `noreply`; the other kinds have one key.
    ///
    /// # Panics
    ///
    /// If there is no such template: a plan that asks for it is refused.
    fn encode(&mut self, request: &Request<'_>, out: &mut Out) -> Encoded {
        let end = match (request.noreply, self.has_trailing_blank) {
            (true, _) => b" noreply\r\n".as_slice(),
            (false, true) => b" \r\n",
            (false, false) => LINE_END,
        };
        match request.kind {
            OpKind::Get | OpKind::Mget => return retrieval(b"get ", request, out),
            OpKind::Gets => return retrieval(b"gets ", request, out),
            OpKind::Set => storage(b"set ", request, end, out),
            OpKind::Add => storage(b"add ", request, end, out),
            OpKind::Replace => storage(b"replace ", request, end, out),
            OpKind::Append => storage(b"append ", request, end, out),
            OpKind::Prepend => storage(b"prepend ", request, end, out),
            OpKind::Cas => storage(b"cas ", request, end, out),
            OpKind::Incr => change(b"incr ", Some(request.operand), request, end, out),
            OpKind::Decr => change(b"decr ", Some(request.operand), request, end, out),
            OpKind::Delete => change(b"delete ", None, request, end, out),
            OpKind::Touch => change(b"touch ", Some(u64::from(request.ttl_s)), request, end, out),
            OpKind::Raw => {
                let replied = self.templates.encode(request, out);
                return Encoded { wire_requests: 1, replied };
            }
        }
        Encoded { wire_requests: 1, replied: !request.noreply }
    }

    #[inline(always)]
    fn encode_get(
        &mut self,
        key_len: usize,
        _: u32,
        out: &mut Out,
        write: impl FnOnce(&mut [u8]),
    ) -> Encoded {
        out.put_in_place(b"get ", key_len, write, LINE_END);
        Encoded { wire_requests: 1, replied: true }
    }

    // Always: as a call it would write what it found to memory, to be read again.
    #[inline(always)]
    fn decode_found<'a>(&mut self, input: &'a [u8]) -> Option<(usize, Found<'a>)> {
        if self.progress != Progress::Idle || self.expects != Expects::Line {
            return None;
        }
        let line = input.strip_prefix(VALUE)?;
        if !self.last_header.fits(line) {
            self.last_header = LastHeader::of(line)?;
        }
        let LastHeader { key_len, header, flags, value_len } = self.last_header;
        let (key, rest) = line.split_at_checked(key_len)?;
        let (value, end) = rest.get(header.len..)?.split_at_checked(value_len)?;
        let used = VALUE.len() + key_len + header.len + value_len + FOUND_END.len();
        let found = Found { key, flags: u32::from(flags), value, token: 0 };
        end.starts_with(FOUND_END).then_some((used, found))
    }

    #[inline(never)]
    fn decode_any<'a>(&mut self, input: &'a [u8]) -> (usize, Option<Event<'a>>) {
        let step = match self.expects {
            Expects::Line if self.progress == Progress::Idle => {
                self.progress = Progress::Begun;
                return (0, Some(Event::Begin));
            }
            Expects::Line => self.line(input),
            Expects::Value { remaining } => return self.value(input, remaining),
            Expects::ValueEnd => self.value_end(input),
            Expects::VersionEnd => line_end(input, 0, UNKNOWN)
                .map(|used| (used, self.end(ReplyKind::Ok, pairs::UNASKED, 0, &[]))),
            Expects::Nothing => return (0, None),
        };
        as_event(step, || self.expects = Expects::Nothing)
    }

    #[inline]
    fn meaning(&self, kind: OpKind, reply: ReplyKind, form: Form) -> Option<ReplyKind> {
        pairs::PAIRS.meaning(kind, reply, form)
    }

    fn error_persistence(reply: ReplyKind, text: &[u8]) -> ErrorPersistence {
        persistence(reply, text)
    }
}

/// What follows the last value of a reply.
const FOUND_END: &[u8; 7] = b"\r\nEND\r\n";

/// The form of the last reply of one value. Most look like the one before them in all but the key's letters and the
/// value's bytes: whatever does not fit is read anew.
#[derive(Clone, Copy, Debug, Default)]
struct LastHeader {
    key_len: usize,
    /// What is behind the key: ` FLAGS BYTES\r\n`.
    header: LastBytes,
    flags: u8,
    value_len: usize,
}

impl LastHeader {
    /// Does the line of a value, from its key on, have this form?
    #[inline(always)]
    fn fits(&self, line: &[u8]) -> bool {
        let Some((key, rest)) = line.split_at_checked(self.key_len) else { return false };
        self.header.fit(rest) && is_word(key)
    }

    /// Reads the form of such a line. Nothing is decided here: what is cut, rare or wrong is `None`, and left to
    /// [`Codec::decode_any`].
    #[inline(never)]
    fn of(line: &[u8]) -> Option<Self> {
        let key_len = word_len(line, KEY_BYTES_MAX)?;
        let rest = &line[key_len..];
        // brunt sets no flags, so that one digit is the rule.
        let &[b' ', flags @ b'0'..=b'9', b' ', ref digits @ ..] = rest else { return None };
        let (value_len, digits_len) = decimal_u32(digits, 0).ok()?;
        let header = LastBytes::of(&rest[..line_end(rest, 3 + digits_len, BAD_NUMBER).ok()?])?;
        (key_len > 0).then_some(Self { key_len, header, flags: flags - b'0', value_len: value_len as usize })
    }
}

/// `get <key>*`
fn retrieval(verb: &[u8], request: &Request<'_>, out: &mut Out) -> Encoded {
    for (index, key) in request.keys.iter().enumerate() {
        out.put(if index == 0 { verb } else { b" " });
        out.put(key);
    }
    out.put(LINE_END);
    Encoded { wire_requests: 1, replied: true }
}

/// `<verb> <key> <flags> <ttl> <bytes> [<unique>] [noreply]`, then the value.
#[inline]
fn storage(verb: &[u8], request: &Request<'_>, end: &[u8], out: &mut Out) {
    out.put(verb);
    out.put(request.only_key());
    put_field(u64::from(request.flags), out);
    put_field(u64::from(request.ttl_s), out);
    put_field(request.value.total_len() as u64, out);
    if request.kind == OpKind::Cas {
        put_field(request.operand, out);
    }
    out.put(end);
    out.put_value(&request.value);
    out.put(LINE_END);
}

/// `<verb> <key> [<number>] [noreply]`
#[inline]
fn change(verb: &[u8], number: Option<u64>, request: &Request<'_>, end: &[u8], out: &mut Out) {
    out.put(verb);
    out.put(request.only_key());
    if let Some(number) = number {
        put_field(number, out);
    }
    out.put(end);
}

#[inline]
fn put_field(number: u64, out: &mut Out) {
    out.put(b" ");
    out.put_decimal(number);
}

/// What the line is, and the length of the word that says so.
#[inline]
fn shape(line: &[u8]) -> Step<(usize, Shape)> {
    // The replies of gets and sets, nearly all of any traffic, each told by one or two comparisons of words.
    if line.starts_with(VALUE) {
        Ok((VALUE.len(), Shape::Item))
    } else if line.starts_with(END) {
        Ok((END.len(), Shape::ListEnd))
    } else if line.starts_with(STORED) {
        Ok((STORED.len(), Shape::Complete(ReplyKind::Stored, pairs::STORED)))
    } else {
        shape_of_any(line)
    }
}

#[inline(never)]
fn shape_of_any(line: &[u8]) -> Step<(usize, Shape)> {
    let &first = line.first().ok_or(Stop::Short)?;
    if first.is_ascii_digit() {
        return Ok((0, Shape::Number));
    }
    let mut undecided = false;
    for (word, shape) in WORDS {
        if word[0] == first {
            if line.starts_with(word) {
                return Ok((word.len(), shape));
            }
            undecided |= word.starts_with(line);
        }
    }
    Err(if undecided { Stop::Short } else { UNKNOWN })
}

/// Reads `<number>`, which decr may pad with spaces, and its line end: the number and the length of it all.
fn number_line(line: &[u8]) -> Step<(u64, usize)> {
    let (number, at) = decimal(line, 0)?;
    let padding = line[at..].iter().take_while(|&&byte| byte == b' ').count();
    Ok((number, line_end(line, at + padding, BAD_NUMBER)?))
}

/// The position behind the space at `at`, where another number must follow.
#[inline]
fn after_space(line: &[u8], at: usize) -> Step<usize> {
    match line.get(at) {
        Some(b' ') => Ok(at + 1),
        Some(_) => Err(BAD_NUMBER),
        None => Err(Stop::Short),
    }
}

#[cfg(test)]
mod tests;
