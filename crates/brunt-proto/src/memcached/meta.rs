//! memcached's meta protocol: `mg`, `ms`, `md`, `ma` and `mn` out, two-letter replies with named flags in.
//!
//! Not the classic commands ([`super::text`]), not UDP framing, not authentication. The source is the part on meta
//! commands of memcached's `doc/protocol.txt`; where it leaves a question, memcached 1.6.18 was asked. Invariant: every
//! request that is replied to is answered by one `End` or `Found`; a multi-get whose first key fails may be by one more for
//! each further key that fails, because errors do not say what they answer.

mod pairs;

use super::line::{LastBytes, decimal, decimal_u32, error_text, is_word, persistence, rest_of_line};
use crate::out::Out;
use crate::step::{BAD_NUMBER, LINE_END, OUT_OF_STEP, Step, Stop, UNKNOWN, as_event, line_end};
use crate::{Codec, Encoded, Event, Form, Found, KeyNames, Malformed, Matching, NO_TOKEN, Recache, Request};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use brunt_plan::op::OpKind;
use brunt_plan::outcome::{ErrorPersistence, ReplyKind};
use memchr::{memchr, memchr2};

/// The meta protocol's codec: the parse state of one connection.
///
/// What the [`Codec`] contract leaves open:
///
/// - Every command carries an opaque: a letter for what its reply means, then the token. So `HD` is told as what was done,
///   and a number from a value.
/// - A retrieval of one key does not ask for the key to be repeated: its `key` is empty. A multi-get does, and missing
///   keys of it are passed over, but for the first.
/// - A multi-get is its first key aloud, the others quietly, and an `mn`. The first reply gives the token away even if all
///   keys are missing, and shows that whatever fails from there on fails within this multi-get. After an error, what
///   is still to come of it is `Push`, with a `Begin` of its own for every line that is alone.
/// - Errors name no request: memcached sends them without the opaque. Their token is [`NO_TOKEN`], but within a multi-get. What a
///   multi-get without its first reply has left may only come behind such an error; else it is `Bad`.
/// - A key that holds a space or a control character is sent in base64, and repeated so.
/// - `touch` has no quiet form (`mg` says `HD` in spite of `q`); the others report failures in spite of it, under a token
///   that no request has.
/// - Flags may come in any order; those that are not known are passed over.
#[derive(Clone, Debug, Default)]
pub struct MetaCodec {
    expects: Expects,
    progress: Progress,
    /// An error that may have been the first reply of a multi-get is told, and no end of one since.
    may_remain: bool,
    last_header: LastHeader,
}

/// What the next byte belongs to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Expects {
    /// A line of a reply.
    #[default]
    Line,
    /// A value of which this many bytes, at least one, are still to come.
    Value { remaining: u32 },
    /// The line end behind a value.
    ValueEnd,
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
    /// The only value of a reply.
    Single { token: u32 },
    /// The first key of a multi-get at least.
    Batch { token: u32, hit: bool },
    /// What follows an error of a multi-get, up to its `mn`.
    Remains,
}

/// What a command's reply means: the letter before the token in its opaque.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
enum OpaqueTag {
    /// A value.
    Value = b'g',
    /// The first value of several.
    First = b'm',
    /// A further one.
    Further = b'q',
    /// A number.
    Number = b'n',
    /// That it was stored.
    Stored = b's',
    /// That it was deleted.
    Deleted = b'd',
    /// That the time to live was changed.
    Touched = b't',
}

impl OpaqueTag {
    /// The reverse of `as u8`.
    #[inline]
    const fn of(letter: u8) -> Option<Self> {
        Some(match letter {
            b'g' => Self::Value,
            b'm' => Self::First,
            b'q' => Self::Further,
            b'n' => Self::Number,
            b's' => Self::Stored,
            b'd' => Self::Deleted,
            b't' => Self::Touched,
            _ => return None,
        })
    }

    /// What a bare success means.
    const fn done(self) -> ReplyMeaning {
        match self {
            Self::Stored => (ReplyKind::Stored, pairs::STORED),
            Self::Deleted => (ReplyKind::Deleted, pairs::DELETED),
            Self::Touched => (ReplyKind::Touched, pairs::TOUCHED),
            Self::Value | Self::First | Self::Further | Self::Number => UNASKED,
        }
    }
}

/// What a reply says, and in which form.
type ReplyMeaning = (ReplyKind, Form);

const HAS_VALUE: ReplyMeaning = (ReplyKind::Value, pairs::VALUE);
const MISSING: ReplyMeaning = (ReplyKind::NotFound, pairs::MISSING);
const UNASKED: ReplyMeaning = (ReplyKind::Ok, pairs::UNASKED);

/// What the first letters of a line say about it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Shape {
    /// `VA`: a length, flags, and a value.
    Value,
    /// `HD`: done.
    Done,
    /// `EN`: a retrieval or touch of a missing key.
    Missing,
    /// `NF`, `NS`, `EX`: a change that was declined.
    Declined(ReplyMeaning),
    /// `MN`: everything before it is answered.
    Noop,
    /// An error; a text may follow the word of this length.
    Error(ReplyKind, usize),
}

const VALUE: &[u8] = b"VA ";

const CODE_LEN: usize = 2;

/// How errors begin.
const ERRORS: [(&[u8], ReplyKind); 3] = [
    (b"SERVER_ERROR", ReplyKind::ServerError),
    (b"CLIENT_ERROR", ReplyKind::ClientError),
    (b"ERROR", ReplyKind::Error),
];

/// The longest number, 2⁶⁴ − 1.
const NUMBER_BYTES_MAX: usize = 20;

/// The longest line, its end included; a `VA` line with a key of 250 bytes, memcached's limit, and every flag there is takes
/// less than 500, error texts stay far below 1 KiB. Less than the unit by what a line is looked at together with: the line
/// end of the value before it, or its number.
const LINE_BYTES_MAX: usize = MetaCodec::UNIT_BYTES_MAX - NUMBER_BYTES_MAX - 2 * LINE_END.len();

/// Bytes of a token in an opaque: one for every four bits.
const TOKEN_BYTES: usize = 8;

/// The digit 0 of a token; the others follow it in ASCII. Sixteen letters that differ in their low four bits alone are read
/// and checked eight at a time, which decimal digits are not.
const TOKEN_ZERO: u64 = 0x40 * EVERY_BYTE;

const EVERY_BYTE: u64 = 0x0101_0101_0101_0101;

/// The most that a command takes beside its key and value: base64 of a key takes up to four bytes more than four thirds.
const KEY_FIXED_MAX: usize = "mg ".len() + 4 + " b k c f v q".len() + OPAQUE_LEN + LINE_END.len();

/// A space, the flag's name, the letter, the token.
const OPAQUE_LEN: usize = " Os".len() + TOKEN_BYTES;

/// The most that a request takes beyond that of its keys: a storage command's numbers.
const FIXED_BYTES_MAX: usize = " 18446744073709551615".len() // length of the value
    + 2 * " F4294967295".len() // flags, time to live
    + " C18446744073709551615".len() // unique; a delta is as long
    + " MA".len()
    + LINE_END.len();

impl Codec for MetaCodec {
    const MATCHING: Matching = Matching::Token;

    const KEY_NAMES: KeyNames = KeyNames::OfSeveral;

    const UNIT_BYTES_MAX: usize = 2048;

    const FOUND: Form = pairs::VALUE;

    #[inline]
    fn encoded_len_max(&self, keys: usize, key_bytes: usize, value_bytes: usize) -> usize {
        FIXED_BYTES_MAX + keys * KEY_FIXED_MAX + key_bytes + key_bytes / 3 + value_bytes
    }

    /// Retrievals ask for every key; they and `touch` ignore `noreply`. The other kinds have one key.
    ///
    /// # Panics
    ///
    /// If the kind is `Raw`: this protocol has no command templates, and a plan that asks for them is refused.
    #[inline(always)] // Where the kind is known, so is the way, and nothing is left of the choice.
    fn encode(&mut self, request: &Request<'_>, out: &mut Out) -> Encoded {
        if request.kind == OpKind::Get && request.keys.ends.len() == 1 && is_word(request.keys.first()) {
            out.put_around(b"mg ", request.keys.first(), &single_get_end(request.token));
            return Encoded { wire_requests: 1, replied: true };
        }
        encode_any(request, out)
    }

    // Always: as a call it would write what it found to memory, to be read again.
    #[inline(always)]
    fn decode_found<'a>(&mut self, input: &'a [u8]) -> Option<(usize, Found<'a>)> {
        let is_idle = self.progress == Progress::Idle && self.expects == Expects::Line;
        if is_idle { self.found(input) } else { None }
    }

    #[inline(never)]
    fn decode_any<'a>(&mut self, input: &'a [u8]) -> (usize, Option<Event<'a>>) {
        let step = match self.expects {
            Expects::Line if self.progress == Progress::Idle => {
                self.progress = Progress::Begun;
                return (0, Some(Event::Begin));
            }
            Expects::Line => match bare_line(input) {
                Some((said, token)) if self.progress == Progress::Begun => {
                    Ok((BARE_LINE_BYTES, self.end(said, token)))
                }
                _ => self.line(input),
            },
            Expects::Value { remaining } => return self.value(input, remaining),
            Expects::ValueEnd => self.value_end(input),
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

// --- Requests ---

/// [`Codec::encode`] without the short way of a single key.
fn encode_any(request: &Request<'_>, out: &mut Out) -> Encoded {
    let noreply = request.noreply;
    match request.kind {
        OpKind::Get | OpKind::Gets if request.keys.ends.len() == 1 => {
            put_key(b"mg ", request.keys.first(), out);
            out.put(if request.kind == OpKind::Gets { b" c f v" } else { b" f v" });
            put_opaque(OpaqueTag::Value, request.token, out);
            return Encoded { wire_requests: 1, replied: true };
        }
        OpKind::Get | OpKind::Gets | OpKind::Mget => return batch(request, out),
        OpKind::Set => storage(b"", request, out),
        OpKind::Cas => storage(b" C", request, out),
        OpKind::Add => storage(b" ME", request, out),
        OpKind::Replace => storage(b" MR", request, out),
        OpKind::Append => storage(b" MA", request, out),
        OpKind::Prepend => storage(b" MP", request, out),
        OpKind::Incr => arithmetic(b" D", request, out),
        OpKind::Decr => arithmetic(b" MD D", request, out),
        OpKind::Delete => {
            put_key(b"md ", request.only_key(), out);
            put_quiet(noreply, out);
            put_opaque(OpaqueTag::Deleted, request.token, out);
        }
        OpKind::Touch => {
            put_key(b"mg ", request.only_key(), out);
            put_number(b" T", u64::from(request.ttl_s), out);
            put_opaque(OpaqueTag::Touched, request.token, out);
            return Encoded { wire_requests: 1, replied: true };
        }
        OpKind::Raw => unreachable!("a plan with raw commands is refused for memcached"),
    }
    Encoded { wire_requests: 1, replied: !noreply }
}

/// `mg <key> k f v O<opaque>`, the same with `q` for each further key, then `mn`.
fn batch(request: &Request<'_>, out: &mut Out) -> Encoded {
    for (index, key) in request.keys.iter().enumerate() {
        put_key(b"mg ", key, out);
        out.put(if request.kind == OpKind::Gets { b" k c f v" } else { b" k f v" });
        put_quiet(index > 0, out);
        put_opaque(if index == 0 { OpaqueTag::First } else { OpaqueTag::Further }, request.token, out);
    }
    out.put(b"mn\r\n");
    Encoded { wire_requests: request.keys.ends.len() as u32 + 1, replied: true }
}

/// `ms <key> <bytes> [F<flags>] [T<ttl>] [<mode>] [q] O<opaque>`, then the value. What is 0 is left out.
#[inline]
fn storage(mode: &[u8], request: &Request<'_>, out: &mut Out) {
    let key = request.only_key();
    out.put(b"ms ");
    let is_encoded = put_key_alone(key, out);
    put_number(b" ", request.value.total_len() as u64, out);
    if is_encoded {
        out.put(b" b");
    }
    for (flag, number) in [(b" F", request.flags), (b" T", request.ttl_s)] {
        if number != 0 {
            put_number(flag, u64::from(number), out);
        }
    }
    out.put(mode);
    if request.kind == OpKind::Cas {
        out.put_decimal(request.operand);
    }
    put_quiet(request.noreply, out);
    put_opaque(OpaqueTag::Stored, request.token, out);
    out.put_value(&request.value);
    out.put(LINE_END);
}

/// `ma <key> [MD] D<delta> v [q] O<opaque>`
fn arithmetic(mode: &[u8], request: &Request<'_>, out: &mut Out) {
    put_key(b"ma ", request.only_key(), out);
    put_number(mode, request.operand, out);
    out.put(b" v");
    put_quiet(request.noreply, out);
    put_opaque(OpaqueTag::Number, request.token, out);
}

/// Command and key, and the flag that says the key is encoded, if it is.
#[inline]
fn put_key(command: &[u8], key: &[u8], out: &mut Out) {
    out.put(command);
    if put_key_alone(key, out) {
        out.put(b" b");
    }
}

/// The key as a word. True if it had to be encoded.
#[inline]
fn put_key_alone(key: &[u8], out: &mut Out) -> bool {
    let is_encoded = !is_word(key);
    if is_encoded {
        let room = out.grow(4 * key.len().div_ceil(3));
        STANDARD.encode_slice(key, room).expect("four letters stand for up to three bytes");
    } else {
        out.put(key);
    }
    is_encoded
}

#[inline]
fn put_number(flag: &[u8], number: u64, out: &mut Out) {
    out.put(flag);
    out.put_decimal(number);
}

#[inline]
fn put_quiet(quiet: bool, out: &mut Out) {
    if quiet {
        out.put(b" q");
    }
}

/// The opaque, and the end of the line.
#[inline]
fn put_opaque(tag: OpaqueTag, token: u32, out: &mut Out) {
    out.put(&[b' ', b'O', tag as u8]);
    out.put_around(&token_letters(token), LINE_END, b"");
}

/// What follows the key of a get of one key.
#[inline]
fn single_get_end(token: u32) -> [u8; 17] {
    let mut end = *b" f v Og--------\r\n";
    end[7..15].copy_from_slice(&token_letters(token));
    end
}

/// A token as letters, the highest four bits first.
#[inline]
fn token_letters(token: u32) -> [u8; TOKEN_BYTES] {
    let halves = spread(u64::from(token), 16, 0x0000_ffff_0000_ffff);
    let bytes = spread(halves, 8, 0x00ff_00ff_00ff_00ff);
    (spread(bytes, 4, 0x0f * EVERY_BYTE) | TOKEN_ZERO).to_be_bytes()
}

/// Spreads the pieces of a number apart by `bits` bits.
#[inline]
const fn spread(pieces: u64, bits: u32, mask: u64) -> u64 {
    (pieces | pieces << bits) & mask
}

/// The token that these letters are.
#[inline]
fn token_of(letters: [u8; TOKEN_BYTES]) -> Option<u32> {
    let digits = u64::from_be_bytes(letters) ^ TOKEN_ZERO;
    let bytes = (digits | digits >> 4) & 0x00ff_00ff_00ff_00ff;
    let halves = (bytes | bytes >> 8) & 0x0000_ffff_0000_ffff;
    (digits & (0xf0 * EVERY_BYTE) == 0).then_some((halves | halves >> 16) as u32)
}

// --- Replies ---

/// What the flags of a reply line say.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct ReplyFlags<'a> {
    tag: Option<OpaqueTag>,
    token: u32,
    key: &'a [u8],
    flags: u32,
    unique: u64,
    recache: Recache,
}

impl<'a> ReplyFlags<'a> {
    /// Reads the flags of a line, from `from` on to the line end.
    fn of(line: &'a [u8], from: usize) -> Step<Self> {
        let mut reply_flags =
            Self { tag: None, token: NO_TOKEN, key: &[], flags: 0, unique: 0, recache: Recache::NONE };
        let body = &line[..line.len() - LINE_END.len()];
        let mut at = from;
        while at < body.len() {
            let (end, otherwise) = reply_flags.take(line, body, at)?;
            if body.get(end).is_some_and(|byte| *byte != b' ') {
                return Err(otherwise);
            }
            at = end + 1;
        }
        Ok(reply_flags)
    }

    /// Reads the flag at `at` of a line, of which `body` is what is before the line end. Yields the position behind it,
    /// and what is wrong if no space is there.
    #[inline]
    fn take(&mut self, line: &'a [u8], body: &'a [u8], at: usize) -> Step<(usize, Stop)> {
        match line[at] {
            b'O' => {
                let end = at + OPAQUE_LEN - 1;
                let (tag, token) = body.get(at + 1..end).and_then(opaque).ok_or(UNKNOWN)?;
                (self.tag, self.token) = (Some(tag), token);
                Ok((end, UNKNOWN))
            }
            b'f' => {
                let (flags, end) = decimal_u32(line, at + 1)?;
                self.flags = flags;
                Ok((end, BAD_NUMBER))
            }
            b'c' => {
                let (unique, end) = decimal(line, at + 1)?;
                self.unique = unique;
                Ok((end, BAD_NUMBER))
            }
            name => {
                let end = memchr(b' ', &body[at..]).map_or(body.len(), |len| at + len);
                match name {
                    b'k' => self.key = &body[at + 1..end],
                    b'W' => self.recache.won = true,
                    b'X' => self.recache.stale = true,
                    b'Z' => self.recache.taken = true,
                    _ => {}
                }
                Ok((end, UNKNOWN))
            }
        }
    }
}

/// The line before a value or number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Item<'a> {
    /// With its end.
    line_len: usize,
    /// Length of the value.
    bytes: u32,
    reply_flags: ReplyFlags<'a>,
}

impl<'a> Item<'a> {
    /// The line of a multi-get's key as it usually is: key, client flags and opaque, in the order they were requested.
    /// Whatever is cut, rare or wrong is left to [`MetaCodec::value_line`].
    #[inline]
    fn last_header(input: &'a [u8]) -> Option<Self> {
        let line = &input[..input.len().min(LINE_BYTES_MAX)];
        let (bytes, at) =
            if line.starts_with(VALUE) { decimal_u32(line, VALUE.len()).ok()? } else { return None };
        let key_at = at + line[at..].starts_with(b" k").then_some(2)?;
        let key = &line[key_at..key_at + memchr2(b' ', b'\n', &line[key_at..])?];
        let rest = line[key_at + key.len()..].strip_prefix(b" f")?;
        let (flags, at) = decimal_u32(rest, 0).ok()?;
        let (text, rest) = rest[at..].strip_prefix(b" O")?.split_first_chunk::<{ OPAQUE_LEN - 2 }>()?;
        let (tag, token) = opaque(text)?;
        let line_len = line.len() - rest.strip_prefix(LINE_END)?.len();
        let reply_flags = ReplyFlags { tag: Some(tag), token, key, flags, unique: 0, recache: Recache::NONE };
        Some(Self { line_len, bytes, reply_flags })
    }
}

/// What was sent as an opaque.
fn opaque(text: &[u8]) -> Option<(OpaqueTag, u32)> {
    let (&letter, token) = text.split_first()?;
    Some((OpaqueTag::of(letter)?, token_of(token.try_into().ok()?)?))
}

/// The number that these digits are.
fn number(digits: &[u8]) -> Option<u64> {
    let more = |number: u64, digit: &u8| {
        let digit = Some(digit.wrapping_sub(b'0')).filter(|digit| *digit <= 9)?;
        number.checked_mul(10)?.checked_add(u64::from(digit))
    };
    if digits.is_empty() { None } else { digits.iter().try_fold(0, more) }
}

/// What a line of two letters is.
#[inline]
const fn shape_of(code: [u8; CODE_LEN]) -> Option<Shape> {
    Some(match &code {
        b"HD" => Shape::Done,
        b"VA" => Shape::Value,
        b"EN" => Shape::Missing,
        b"NF" => Shape::Declined((ReplyKind::NotFound, pairs::NOT_FOUND)),
        b"NS" => Shape::Declined((ReplyKind::NotStored, pairs::NOT_STORED)),
        b"EX" => Shape::Declined((ReplyKind::Exists, pairs::EXISTS)),
        b"MN" => Shape::Noop,
        _ => return None,
    })
}

/// What the line is. A space or the line end follows the two letters of most.
#[inline]
fn shape(line: &[u8]) -> Step<Shape> {
    let shape = match *line {
        [first, second, b' ' | b'\r', ..] => shape_of([first, second]),
        _ => None,
    };
    shape.map_or_else(|| shape_of_error(line), Ok)
}

#[inline(never)]
fn shape_of_error(line: &[u8]) -> Step<Shape> {
    for (word, reply) in ERRORS {
        if line.starts_with(word) {
            return Ok(Shape::Error(reply, word.len()));
        }
    }
    let is_cut = match *line {
        [first] if b"HVENM".contains(&first) => true,
        [first, second] if shape_of([first, second]).is_some() => true,
        _ => ERRORS.iter().any(|(word, _)| word.starts_with(line)),
    };
    Err(if is_cut { Stop::Short } else { UNKNOWN })
}

/// The usual line of a reply without a value: two letters and our opaque. What it says and to which token; whatever else
/// is there is left to [`MetaCodec::line`].
#[inline]
fn bare_line(input: &[u8]) -> Option<(ReplyMeaning, u32)> {
    let (&[first, second, b' ', b'O', letter], rest) = input.split_first_chunk()? else { return None };
    let (letters, rest) = rest.split_first_chunk()?;
    let (tag, token) = (OpaqueTag::of(letter)?, token_of(*letters)?);
    let said = match (shape_of([first, second])?, tag) {
        (Shape::Done, tag) => tag.done(),
        (Shape::Declined(said), _) => said,
        (Shape::Missing, OpaqueTag::First | OpaqueTag::Further) => return None,
        (Shape::Missing, _) => MISSING,
        _ => return None,
    };
    rest.starts_with(LINE_END).then_some((said, token))
}

/// Bytes of such a line.
const BARE_LINE_BYTES: usize = CODE_LEN + OPAQUE_LEN + LINE_END.len();

impl MetaCodec {
    /// The codec of a connection on which nothing has been sent.
    pub fn new() -> Self {
        Self::default()
    }

    /// Reads one line, which may be the first of a reply or a further one.
    fn line<'a>(&mut self, input: &'a [u8]) -> Step<(usize, Event<'a>)> {
        if let Some(item) = Item::last_header(input) {
            return self.item(input, item);
        }
        let shape = shape(input)?;
        let window = &input[..input.len().min(LINE_BYTES_MAX)];
        let (body, used) = match rest_of_line(window, CODE_LEN) {
            Err(Stop::Short) if window.len() == LINE_BYTES_MAX => Err(Stop::Bad(Malformed::LineTooLong)),
            line => line,
        }?;
        if !matches!(shape, Shape::Error(..)) && body.get(CODE_LEN).is_some_and(|byte| *byte != b' ') {
            return Err(UNKNOWN);
        }
        match (shape, self.progress) {
            (Shape::Error(reply, word_len), _) => self.error(&input[..used], reply, word_len),
            (Shape::Value, _) => self.value_line(input, used),
            (Shape::Missing, _) => self.missing(&input[..used]),
            (Shape::Noop, Progress::Begun) if !self.may_remain => Err(OUT_OF_STEP),
            (Shape::Noop, progress) => Ok((used, self.noop(progress))),
            (Shape::Done, Progress::Begun) => {
                let reply_flags = ReplyFlags::of(&input[..used], CODE_LEN + 1)?;
                Ok((used, self.end(reply_flags.tag.map_or(UNASKED, OpaqueTag::done), reply_flags.token)))
            }
            (Shape::Declined(said), Progress::Begun) => {
                let reply_flags = ReplyFlags::of(&input[..used], CODE_LEN + 1)?;
                Ok((used, self.end(said, reply_flags.token)))
            }
            (Shape::Done | Shape::Declined(_), _) => Err(UNKNOWN),
        }
    }

    /// Reads an error: the end of a reply, or one more of a multi-get that has failed already.
    fn error<'a>(&mut self, line: &'a [u8], reply: ReplyKind, word_len: usize) -> Step<(usize, Event<'a>)> {
        let (text, used) = error_text(line, word_len)?;
        self.expects = Expects::Line;
        let (progress, token) = match self.progress {
            Progress::Remains => return Ok((used, Event::Push { is_over: false })),
            Progress::Batch { token, .. } => (Progress::Remains, token),
            _ => (Progress::Idle, NO_TOKEN),
        };
        self.progress = progress;
        self.may_remain |= token == NO_TOKEN;
        Ok((used, Event::End { reply, form: pairs::ERROR, number: 0, token, text }))
    }

    /// Reads `VA <bytes> <flags>*`, and the number behind it if it is one.
    fn value_line<'a>(&mut self, input: &'a [u8], used: usize) -> Step<(usize, Event<'a>)> {
        let line = &input[..used];
        let (bytes, at) = decimal_u32(line, VALUE.len())?;
        if line[at] != b' ' && at + LINE_END.len() != used {
            return Err(BAD_NUMBER);
        }
        self.item(input, Item { line_len: used, bytes, reply_flags: ReplyFlags::of(line, at + 1)? })
    }

    /// Begins with a value, or reads the number that it is.
    #[inline]
    fn item<'a>(&mut self, input: &'a [u8], item: Item<'a>) -> Step<(usize, Event<'a>)> {
        let Item { line_len: used, bytes, reply_flags } = item;
        let ReplyFlags { tag, token, key, flags, unique, recache } = reply_flags;
        self.progress = match (tag, self.progress) {
            (Some(OpaqueTag::Number), Progress::Begun) => {
                return self.number(input, used, bytes as usize, token);
            }
            (Some(OpaqueTag::First), Progress::Begun) => Progress::Batch { token, hit: true },
            (Some(OpaqueTag::Further), Progress::Batch { token: own, .. }) if own == token => {
                Progress::Batch { token, hit: true }
            }
            (Some(OpaqueTag::Further), Progress::Begun) if !self.may_remain => return Err(OUT_OF_STEP),
            (Some(OpaqueTag::Further), Progress::Begun | Progress::Remains) => Progress::Remains,
            (Some(OpaqueTag::Value) | None, Progress::Begun) => Progress::Single { token },
            _ => return Err(UNKNOWN),
        };
        self.expects = if bytes == 0 { Expects::ValueEnd } else { Expects::Value { remaining: bytes } };
        let event = match self.progress {
            Progress::Remains => Event::Push { is_over: false },
            _ => Event::Key { hit: true, key, flags, bytes, unique, token, recache },
        };
        Ok((used, event))
    }

    /// Reads the number that follows a line of this length.
    fn number<'a>(
        &mut self,
        input: &'a [u8],
        line_len: usize,
        bytes: usize,
        token: u32,
    ) -> Step<(usize, Event<'a>)> {
        if bytes > NUMBER_BYTES_MAX {
            return Err(BAD_NUMBER);
        }
        let digits = input[line_len..].get(..bytes).ok_or(Stop::Short)?;
        let number = number(digits).ok_or(BAD_NUMBER)?;
        let used = line_end(input, line_len + bytes, Stop::Bad(Malformed::ValueNotTerminated))?;
        self.progress = Progress::Idle;
        let (reply, form) = (ReplyKind::Number, pairs::NUMBER);
        Ok((used, Event::End { reply, form, number, token, text: &[] }))
    }

    /// Reads `EN <flags>*`: a reply of its own, or a key of a multi-get.
    fn missing<'a>(&mut self, line: &'a [u8]) -> Step<(usize, Event<'a>)> {
        let ReplyFlags { tag, token, key, .. } = ReplyFlags::of(line, CODE_LEN + 1)?;
        let used = line.len();
        self.progress = match (tag, self.progress) {
            (Some(OpaqueTag::First), Progress::Begun) => Progress::Batch { token, hit: false },
            (Some(OpaqueTag::Further), batch @ Progress::Batch { token: own, .. }) if own == token => batch,
            (Some(OpaqueTag::First | OpaqueTag::Further), _) => return Err(UNKNOWN),
            (_, Progress::Begun) => return Ok((used, self.end(MISSING, token))),
            _ => return Err(UNKNOWN),
        };
        self.expects = Expects::Line;
        let recache = Recache::NONE;
        Ok((used, Event::Key { hit: false, key, flags: 0, bytes: 0, unique: 0, token, recache }))
    }

    /// The end of a multi-get: of its reply, or of what an error had left of it.
    fn noop<'a>(&mut self, progress: Progress) -> Event<'a> {
        if let Progress::Batch { token, hit } = progress {
            let none = (ReplyKind::NotFound, pairs::NONE_OF_SEVERAL);
            return self.end(if hit { (ReplyKind::Value, pairs::SEVERAL) } else { none }, token);
        }
        (self.expects, self.progress) = (Expects::Line, Progress::Idle);
        self.may_remain = false;
        Event::Push { is_over: true }
    }

    /// Passes on what is visible of a value.
    fn value<'a>(&mut self, input: &'a [u8], remaining: u32) -> (usize, Option<Event<'a>>) {
        let (piece, rest) = input.split_at(input.len().min(remaining as usize));
        let remaining = remaining - piece.len() as u32;
        let mut used = piece.len();
        self.expects = match (remaining, self.progress) {
            (1.., _) => Expects::Value { remaining },
            // The line end behind the only value is what the end of the reply uses up.
            (0, Progress::Batch { .. } | Progress::Remains) if rest.starts_with(LINE_END) => {
                used += LINE_END.len();
                Expects::Line
            }
            (0, _) => Expects::ValueEnd,
        };
        let event = match self.progress {
            Progress::Remains => Event::Push { is_over: false },
            _ => Event::Value(piece),
        };
        (used, Some(event))
    }

    /// Reads the line end behind a value: alone if it ends the reply, else together with the next line.
    fn value_end<'a>(&mut self, input: &'a [u8]) -> Step<(usize, Event<'a>)> {
        let start = line_end(input, 0, Stop::Bad(Malformed::ValueNotTerminated))?;
        if let Progress::Single { token } = self.progress {
            return Ok((start, self.end(HAS_VALUE, token)));
        }
        let (used, event) = self.line(&input[start..])?;
        Ok((start + used, event))
    }

    /// Closes the reply.
    #[inline]
    fn end<'a>(&mut self, (reply, form): ReplyMeaning, token: u32) -> Event<'a> {
        (self.expects, self.progress) = (Expects::Line, Progress::Idle);
        Event::End { reply, form, number: 0, token, text: &[] }
    }

    /// The short way: a whole `VA` of a single key and its value, if that is what lies at the front. Its length,
    /// and what it holds.
    #[inline(always)]
    fn found<'a>(&mut self, input: &'a [u8]) -> Option<(usize, Found<'a>)> {
        if !self.last_header.header.fit(input) {
            self.last_header = LastHeader::of(input)?;
        }
        let LastHeader { header, flags, value_len } = self.last_header;
        let (letters, rest) = input.get(header.len..)?.split_first_chunk()?;
        let (line_end, rest) = rest.split_first_chunk()?;
        let (value, rest) = rest.split_at_checked(value_len)?;
        let token = token_of(*letters)?;
        let used = header.len + TOKEN_BYTES + value_len + 2 * LINE_END.len();
        let ends = line_end == b"\r\n" && rest.starts_with(LINE_END);
        ends.then_some((used, Found { key: &[], flags, value, token }))
    }
}

/// The form of the last reply of a single key. Most look like the one before them in all but the token and the value's
/// bytes: whatever does not fit is read anew.
#[derive(Clone, Copy, Debug, Default)]
struct LastHeader {
    /// What is before the token: `VA BYTES fFLAGS Og`.
    header: LastBytes,
    flags: u32,
    value_len: usize,
}

impl LastHeader {
    /// Reads the form. Nothing is decided here: what is cut, rare or wrong is `None`, and left to
    /// [`Codec::decode_any`].
    #[inline(never)]
    fn of(input: &[u8]) -> Option<Self> {
        if !input.starts_with(VALUE) {
            return None;
        }
        let (value_len, at) = decimal_u32(input, VALUE.len()).ok()?;
        let flags_at = at + input.get(at..)?.starts_with(b" f").then_some(2)?;
        let (flags, at) = decimal_u32(input, flags_at).ok()?;
        let header_len = at + input.get(at..)?.starts_with(b" Og").then_some(3)?;
        Some(Self { header: LastBytes::of(&input[..header_len])?, flags, value_len: value_len as usize })
    }
}

#[cfg(test)]
mod tests;
