//! The classic text protocol of memcached, from the server's side: bytes to commands.
//!
//! Only the grammar: `cache` executes and `answer` writes the replies. A command is seen whole or not at all; the same
//! bytes, cut anywhere, are the same commands. Words and limits are those of memcached 1.6 (its `doc/protocol.txt`, and
//! what its server answers where that is silent).

pub(crate) mod answer;

use crate::grammar;
pub use crate::grammar::{Parsed, Verb};
use memchr::memchr;

/// The longest key.
pub const KEY_BYTES_MAX: usize = 250;
/// The longest command line without its end, as memcached draws it.
pub const LINE_BYTES_MAX: usize = 2048;
/// The longest line of a retrieval, which may name thousands of keys. memcached has no bound here; we do.
pub const RETRIEVAL_LINE_BYTES_MAX: usize = 1 << 20;

/// The reply to a line that is no command.
pub const ERROR: &[u8] = b"ERROR\r\n";
/// The reply to a key that is too long or a number that is none.
pub const BAD_FORMAT: &[u8] = b"CLIENT_ERROR bad command line format\r\n";
/// The reply to a value that does not end where its length says.
pub const BAD_CHUNK: &[u8] = b"CLIENT_ERROR bad data chunk\r\n";
const BAD_DELTA: &[u8] = b"CLIENT_ERROR invalid numeric delta argument\r\n";
const BAD_EXPTIME: &[u8] = b"CLIENT_ERROR invalid exptime argument\r\n";
const BAD_DELETE: &[u8] = b"CLIENT_ERROR bad command line format.  Usage: delete <key> [noreply]\r\n";

/// A command that concerns items. Fields that a verb does not have are empty or 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DataCommand<'a> {
    /// What to do.
    pub verb: Verb,
    /// The key; of a retrieval all keys, with spaces between them, each within bounds.
    pub key: &'a [u8],
    /// The value of a write.
    pub value: &'a [u8],
    /// Client flags of a write.
    pub flags: u32,
    /// Expiry of a write or touch, in seconds, as sent: 0 is never, above 30 days is Unix time, negative is the past.
    pub exptime_s: i64,
    /// The unique of a cas, the delta of incr and decr.
    pub operand: u64,
    /// The client wants no reply.
    pub noreply: bool,
}

impl<'a> DataCommand<'a> {
    /// The keys of a retrieval.
    pub fn keys(&self) -> impl Iterator<Item = &'a [u8]> + use<'a> {
        words(self.key)
    }
}

/// A command as it was read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "the fields are the protocol's own")]
pub enum Command<'a> {
    /// Concerns items.
    Data(DataCommand<'a>),
    /// A write whose value is longer than the limit. Its `body_bytes` follow and are to be thrown away.
    TooLarge { verb: Verb, key: &'a [u8], body_bytes: u64, noreply: bool },
    /// A write whose value does not end where its length says. It is counted as a write.
    BadChunk { noreply: bool },
    /// flush_all, with its delay in seconds.
    FlushAll { delay_s: i64, noreply: bool },
    /// verbosity, which changes nothing here.
    Verbosity { noreply: bool },
    /// version
    Version,
    /// stats, with its argument or nothing.
    Stats(&'a [u8]),
    /// quit
    Quit,
    /// Not a command; this is the reply, empty where the client wants none.
    Refused(&'static [u8]),
}

/// Looks at the front of `input`. Values above `value_bytes_max` are refused.
pub fn parse(input: &[u8], value_bytes_max: u64) -> Parsed<Command<'_>> {
    let bound = if is_retrieval(input) { RETRIEVAL_LINE_BYTES_MAX } else { LINE_BYTES_MAX };
    let (line, end) = match grammar::line(input, bound, b"") {
        Ok(found) => found,
        Err(parsed) => return parsed,
    };
    let rest = &input[end..];
    let command = match line_of(line) {
        Line::Whole(command) => command,
        Line::Write { command, value_bytes } if value_bytes > value_bytes_max => {
            let DataCommand { verb, key, noreply, .. } = command;
            Command::TooLarge { verb, key, body_bytes: value_bytes + 2, noreply }
        }
        Line::Write { command, value_bytes } => {
            let body_bytes = value_bytes as usize + 2;
            let used = end + body_bytes;
            if rest.len() < body_bytes {
                return Parsed::Partial { need: used };
            }
            let command = match rest[..body_bytes].strip_suffix(b"\r\n") {
                Some(value) => Command::Data(DataCommand { value, ..command }),
                None => Command::BadChunk { noreply: command.noreply },
            };
            return Parsed::Complete { used, request: command };
        }
    };
    Parsed::Complete { used: end, request: command }
}

fn is_retrieval(input: &[u8]) -> bool {
    input.starts_with(b"get ") || input.starts_with(b"gets ")
}

fn verb_of(word: &[u8]) -> Option<Verb> {
    Some(match word {
        b"get" => Verb::Get,
        b"gets" => Verb::Gets,
        b"set" => Verb::Set,
        b"add" => Verb::Add,
        b"replace" => Verb::Replace,
        b"append" => Verb::Append,
        b"prepend" => Verb::Prepend,
        b"cas" => Verb::Cas,
        b"incr" => Verb::Incr,
        b"decr" => Verb::Decr,
        b"delete" => Verb::Delete,
        b"touch" => Verb::Touch,
        _ => return None,
    })
}

/// What a line came to: a command of its own, or the head of a value.
enum Line<'a> {
    Whole(Command<'a>),
    Write { command: DataCommand<'a>, value_bytes: u64 },
}

pub(crate) fn words(line: &[u8]) -> impl Iterator<Item = &[u8]> {
    line.split(|byte| *byte == b' ').filter(|word| !word.is_empty())
}

fn refused(reply: &'static [u8], noreply: bool) -> Command<'static> {
    Command::Refused(if noreply { b"" } else { reply })
}

fn line_of(line: &[u8]) -> Line<'_> {
    let line = line.trim_ascii_start();
    let word_end = memchr(b' ', line).unwrap_or(line.len());
    let (word, rest) = line.split_at(word_end);
    let whole = match verb_of(word) {
        Some(verb) if verb.is_retrieval() => retrieval(verb, rest),
        Some(verb) => {
            let arguments = Arguments::of(rest);
            match verb {
                Verb::Incr | Verb::Decr | Verb::Touch => with_number(verb, &arguments),
                Verb::Delete => delete(&arguments),
                _ => return write(verb, &arguments),
            }
        }
        None => control(word, &Arguments::of(rest)),
    };
    Line::Whole(whole)
}

/// The words behind the command; more than fit are more than any command takes.
struct Arguments<'a> {
    words: [&'a [u8]; 6],
    /// Of all words, those that did not fit included.
    count: usize,
}

impl<'a> Arguments<'a> {
    fn of(rest: &'a [u8]) -> Self {
        let mut arguments = Self { words: [&[]; 6], count: 0 };
        for word in words(rest) {
            if let Some(place) = arguments.words.get_mut(arguments.count) {
                *place = word;
            }
            arguments.count += 1;
        }
        arguments
    }

    /// Is the last word `noreply`?
    fn noreply(&self) -> bool {
        self.count > 0 && self.words.get(self.count - 1).is_some_and(|word| *word == b"noreply")
    }
}

const fn bare(verb: Verb, key: &[u8]) -> DataCommand<'_> {
    DataCommand { verb, key, value: &[], flags: 0, exptime_s: 0, operand: 0, noreply: false }
}

fn retrieval(verb: Verb, rest: &[u8]) -> Command<'_> {
    let mut keys = 0;
    for key in words(rest) {
        if key.len() > KEY_BYTES_MAX {
            return Command::Refused(BAD_FORMAT);
        }
        keys += 1;
    }
    if keys == 0 { Command::Refused(ERROR) } else { Command::Data(bare(verb, rest)) }
}

fn write<'a>(verb: Verb, arguments: &Arguments<'a>) -> Line<'a> {
    let required = if verb == Verb::Cas { 5 } else { 4 };
    if arguments.count != required && arguments.count != required + 1 {
        return Line::Whole(Command::Refused(ERROR));
    }
    let noreply = arguments.noreply();
    let [key, flags, exptime, bytes, unique, _] = arguments.words;
    let numbers = || {
        let flags = u32::try_from(unsigned(flags)?).ok()?;
        let operand = if verb == Verb::Cas { unsigned(unique)? } else { 0 };
        // memcached holds lengths in 31 bits and adds the two bytes of the line end.
        let value_bytes = unsigned(bytes).filter(|bytes| *bytes <= i32::MAX as u64 - 2)?;
        Some((
            DataCommand { flags, exptime_s: signed(exptime)?, operand, noreply, ..bare(verb, key) },
            value_bytes,
        ))
    };
    match numbers() {
        Some((command, value_bytes)) if key.len() <= KEY_BYTES_MAX => Line::Write { command, value_bytes },
        _ => Line::Whole(refused(BAD_FORMAT, noreply)),
    }
}

/// A command of a key and a number: a delta, or an expiry time.
fn with_number<'a>(verb: Verb, arguments: &Arguments<'a>) -> Command<'a> {
    if !(2..=3).contains(&arguments.count) {
        return Command::Refused(ERROR);
    }
    let (key, number, noreply) = (arguments.words[0], arguments.words[1], arguments.noreply());
    if key.len() > KEY_BYTES_MAX {
        return refused(BAD_FORMAT, noreply);
    }
    let command = DataCommand { noreply, ..bare(verb, key) };
    match verb {
        Verb::Touch => signed(number).map_or(refused(BAD_EXPTIME, noreply), |exptime_s| {
            Command::Data(DataCommand { exptime_s, ..command })
        }),
        _ => unsigned(number)
            .map_or(refused(BAD_DELTA, noreply), |operand| Command::Data(DataCommand { operand, ..command })),
    }
}

fn delete<'a>(arguments: &Arguments<'a>) -> Command<'a> {
    if !(1..=3).contains(&arguments.count) {
        return Command::Refused(ERROR);
    }
    // Ancient clients send a hold time, which may only be 0.
    let noreply = arguments.count > 1 && arguments.noreply();
    let holds_zero = arguments.words[1] == b"0";
    let valid = match arguments.count {
        1 => true,
        2 => holds_zero || noreply,
        _ => holds_zero && noreply,
    };
    let key = arguments.words[0];
    if !valid {
        refused(BAD_DELETE, noreply)
    } else if key.len() > KEY_BYTES_MAX {
        refused(BAD_FORMAT, noreply)
    } else {
        Command::Data(DataCommand { noreply, ..bare(Verb::Delete, key) })
    }
}

fn control<'a>(word: &[u8], arguments: &Arguments<'a>) -> Command<'a> {
    let noreply = arguments.noreply();
    match (word, arguments.count) {
        (b"version", _) => Command::Version,
        (b"quit", _) => Command::Quit,
        (b"stats", _) => Command::Stats(arguments.words[0]),
        (b"verbosity", 1..=2) if noreply || unsigned(arguments.words[0]).is_some() => {
            Command::Verbosity { noreply }
        }
        (b"verbosity", 1..=2) => Command::Refused(BAD_FORMAT),
        (b"flush_all", 0) => Command::FlushAll { delay_s: 0, noreply },
        (b"flush_all", 1) if noreply => Command::FlushAll { delay_s: 0, noreply },
        (b"flush_all", 1..=2) => match signed(arguments.words[0]) {
            Some(delay_s) => Command::FlushAll { delay_s, noreply },
            None => refused(BAD_EXPTIME, noreply),
        },
        _ => Command::Refused(ERROR),
    }
}

/// A number as memcached reads one with the C library: blanks and a sign before it, a blank behind it. That latitude
/// matters for stored values, which incr and decr pad with blanks. A minus is taken modulo 2⁶⁴, but a number from 2⁶³ on
/// may have no minus anywhere in its text: zero may be negative, one may not.
pub fn unsigned(text: &[u8]) -> Option<u64> {
    let text = text.trim_ascii_start();
    let is_negative = text.first() == Some(&b'-');
    let unsigned = text.strip_prefix(if is_negative { b"-" } else { b"+" }).unwrap_or(text);
    let digits = unsigned.iter().take_while(|byte| byte.is_ascii_digit()).count();
    if digits == 0 || unsigned.get(digits).is_some_and(|byte| !byte.is_ascii_whitespace()) {
        return None;
    }
    let magnitude = unsigned[..digits]
        .iter()
        .try_fold(0u64, |number, digit| number.checked_mul(10)?.checked_add(u64::from(digit - b'0')))?;
    let number = if is_negative { magnitude.wrapping_neg() } else { magnitude };
    (number < 1 << 63 || memchr(b'-', text).is_none()).then_some(number)
}

/// A number with a sign as memcached reads one, for expiry times.
pub(crate) fn signed(text: &[u8]) -> Option<i64> {
    match text.strip_prefix(b"-") {
        Some(magnitude) if magnitude.first().is_some_and(u8::is_ascii_digit) => unsigned(magnitude)
            .and_then(|magnitude| i64::try_from(magnitude).ok())
            .map(|magnitude| -magnitude),
        Some(_) => None,
        None => unsigned(text).and_then(|number| i64::try_from(number).ok()),
    }
}

/// Appends a number in decimal.
pub fn push_decimal(out: &mut Vec<u8>, number: impl itoa::Integer) {
    out.extend_from_slice(itoa::Buffer::new().format(number).as_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(input: &[u8], expected: Parsed<Command<'_>>) {
        assert_eq!(
            parse(input, 100),
            expected,
            "{:?}",
            String::from_utf8_lossy(&input[..input.len().min(80)])
        );
    }

    #[test]
    fn how_much_more_is_needed() {
        check(b"", Parsed::Partial { need: 1 });
        check(b"set a 0 0 5\r", Parsed::Partial { need: 13 });
        check(b"set a 0 0 5\r\n", Parsed::Partial { need: 20 });
        check(b"set a 0 0 5\r\nhello\r", Parsed::Partial { need: 20 });
        let command = DataCommand { value: b"hello", ..bare(Verb::Set, b"a") };
        check(b"set a 0 0 5\r\nhello\r\nget", Parsed::Complete { used: 20, request: Command::Data(command) });
        let too_large = Command::TooLarge { verb: Verb::Set, key: b"a", body_bytes: 103, noreply: false };
        check(b"set a 0 0 101\r\n", Parsed::Complete { used: 15, request: too_large });
    }

    #[test]
    fn lines_are_bounded() {
        let line = |head: &str, len: usize, end: &str| {
            let mut line = head.as_bytes().to_vec();
            line.resize(len, b'k');
            line.extend_from_slice(end.as_bytes());
            line
        };
        let refused = |used| Parsed::Complete { used, request: Command::Refused(BAD_FORMAT) };
        let unknown = |used| Parsed::Complete { used, request: Command::Refused(ERROR) };
        check(&line("x", LINE_BYTES_MAX, ""), Parsed::Partial { need: LINE_BYTES_MAX + 1 });
        check(&line("x", LINE_BYTES_MAX, "\n"), unknown(LINE_BYTES_MAX + 1));
        check(&line("x", LINE_BYTES_MAX + 1, ""), Parsed::Broken(b""));
        check(&line("x", LINE_BYTES_MAX + 1, "\n"), Parsed::Broken(b""));
        check(&line("get ", LINE_BYTES_MAX + 1, "\r\n"), refused(LINE_BYTES_MAX + 3));
        check(&line("gets ", RETRIEVAL_LINE_BYTES_MAX, "\n"), refused(RETRIEVAL_LINE_BYTES_MAX + 1));
        check(&line("get ", RETRIEVAL_LINE_BYTES_MAX + 1, "\n"), Parsed::Broken(b""));
    }

    #[test]
    fn numbers() {
        let table: [(&str, Option<u64>, Option<i64>); 16] = [
            ("0", Some(0), Some(0)),
            ("007", Some(7), Some(7)),
            (" +12 x", Some(12), Some(12)),
            ("18446744073709551615", Some(u64::MAX), None),
            ("18446744073709551616", None, None),
            ("-1", None, Some(-1)),
            ("-0", Some(0), Some(0)),
            ("7 -1", Some(7), Some(7)),
            ("18446744073709551615 -", None, None),
            ("-18446744073709551615", Some(1), None),
            ("--1", None, None),
            ("- 1", None, None),
            ("1x", None, None),
            ("+", None, None),
            ("", None, None),
            (" ", None, None),
        ];
        for (text, as_unsigned, as_signed) in table {
            assert_eq!(
                (unsigned(text.as_bytes()), signed(text.as_bytes())),
                (as_unsigned, as_signed),
                "{text:?}"
            );
        }
        for number in [0, 9, 10, 12345, u64::MAX] {
            let mut out = Vec::new();
            push_decimal(&mut out, number);
            assert_eq!(out, number.to_string().into_bytes());
        }
    }
}
