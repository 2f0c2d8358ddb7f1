//! Redis's protocol, versions 2 and 3, from the server's side: bytes to commands.
//!
//! Only the grammar: `answer` writes the replies. A command is an array of strings and is seen whole or not at all; the
//! same bytes, cut anywhere, are the same commands. Inline commands are refused unless an option allows them; their
//! words are separated and quoted as redis-server 7.0 reads them (`sdssplitargs`). Words,
//! limits and texts are those of redis-server 7.0.

pub(crate) mod answer;

use crate::cache::integer;
use crate::grammar::{self, Parsed, Verb};
use crate::text::push_decimal;
use answer::{COMMANDS, Known};
use memchr::memchr;

/// The most arguments of a command, its name included.
const ARGUMENTS_MAX: i64 = 1 << 20;
/// The longest line that tells a number.
const NUMBER_LINE_BYTES_MAX: usize = 32;
/// Arguments up to this length are accepted, however short values must be.
const ARGUMENT_BYTES_MIN: u64 = 64 << 10;
/// Bytes of a command beside the longest value: keys, options and lengths.
const COMMAND_BYTES_BESIDE_VALUE: usize = 1 << 20;
/// Limits of a request before AUTH: arguments, and bytes of each (redis-server 7.0, `networking.c`).
const ARGUMENTS_MAX_BEFORE_LOGIN: i64 = 10;
const ARGUMENT_BYTES_MAX_BEFORE_LOGIN: i64 = 16 << 10;

const EXPECTED_ARRAY: &[u8] = b"-ERR Protocol error: expected '*', inline commands are refused\r\n";
const EXPECTED_STRING: &[u8] = b"-ERR Protocol error: expected '$'\r\n";
const BAD_ARRAY: &[u8] = b"-ERR Protocol error: invalid multibulk length\r\n";
const BAD_STRING: &[u8] = b"-ERR Protocol error: invalid bulk length\r\n";
const EARLY_ARRAY: &[u8] = b"-ERR Protocol error: unauthenticated multibulk length\r\n";
const EARLY_STRING: &[u8] = b"-ERR Protocol error: unauthenticated bulk length\r\n";
const TOO_LONG: &[u8] = b"-ERR Protocol error: too big command\r\n";
const NOT_TERMINATED: &[u8] = b"-ERR Protocol error: a string does not end where its length says\r\n";

/// The arguments of a command, which were looked through before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Words<'a> {
    rest: &'a [u8],
    left: usize,
}

impl<'a> Words<'a> {
    /// How many are still to come.
    pub(crate) const fn len(&self) -> usize {
        self.left
    }

    /// The next one, of a command whose arguments were counted.
    pub(crate) fn word(&mut self) -> &'a [u8] {
        self.next().unwrap_or_default()
    }
}

impl<'a> Iterator for Words<'a> {
    type Item = &'a [u8];

    fn next(&mut self) -> Option<&'a [u8]> {
        self.left = self.left.checked_sub(1)?;
        let (len, body) = number_line(self.rest, 0).ok()?;
        let word = self.rest.get(body..body + len as usize)?;
        self.rest = &self.rest[body + word.len() + 2..];
        Some(word)
    }
}

/// Why a line does not tell a number.
enum Stop {
    Partial { need: usize },
    Bad,
}

/// Reads the number in the line at `at`, behind its first letter, and where the next line begins.
fn number_line(input: &[u8], at: usize) -> Result<(i64, usize), Stop> {
    let line = &input[at..input.len().min(at + NUMBER_LINE_BYTES_MAX)];
    let Some(end) = memchr(b'\n', line) else {
        let is_long = line.len() == NUMBER_LINE_BYTES_MAX;
        return Err(if is_long { Stop::Bad } else { Stop::Partial { need: input.len() + 1 } });
    };
    let number = line.get(1..end).and_then(|text| text.strip_suffix(b"\r")).and_then(integer);
    number.map(|number| (number, at + end + 1)).ok_or(Stop::Bad)
}

/// Looks at the front of `input`. Arguments above `value_bytes_max` are refused, and so are commands that are much longer;
/// unauthenticated clients may send only much shorter ones.
pub(crate) fn parse(input: &[u8], value_bytes_max: u64, is_authenticated: bool) -> Parsed<Words<'_>> {
    let argument_bytes_max = value_bytes_max.max(ARGUMENT_BYTES_MIN) as i64;
    let command_bytes_max = (argument_bytes_max as usize).saturating_add(COMMAND_BYTES_BESIDE_VALUE);
    match input.first() {
        None => return Parsed::Partial { need: 1 },
        Some(b'*') => {}
        Some(_) => return Parsed::Broken(EXPECTED_ARRAY),
    }
    let (count, begin) = match number_line(input, 0) {
        Ok((count, _)) if count > ARGUMENTS_MAX => return Parsed::Broken(BAD_ARRAY),
        Ok((count, _)) if count > ARGUMENTS_MAX_BEFORE_LOGIN && !is_authenticated => {
            return Parsed::Broken(EARLY_ARRAY);
        }
        Ok((count, begin)) => (count.max(0) as usize, begin),
        Err(Stop::Partial { need }) => return Parsed::Partial { need },
        Err(Stop::Bad) => return Parsed::Broken(BAD_ARRAY),
    };
    let mut at = begin;
    for _ in 0..count {
        match input.get(at) {
            None => return Parsed::Partial { need: at + 1 },
            Some(b'$') => {}
            Some(_) => return Parsed::Broken(EXPECTED_STRING),
        }
        let end = match number_line(input, at) {
            Ok((len, _)) if len > ARGUMENT_BYTES_MAX_BEFORE_LOGIN && !is_authenticated => {
                return Parsed::Broken(EARLY_STRING);
            }
            Ok((len, body)) if (0..=argument_bytes_max).contains(&len) => body + len as usize,
            Err(Stop::Partial { need }) => return Parsed::Partial { need },
            Ok(_) | Err(Stop::Bad) => return Parsed::Broken(BAD_STRING),
        };
        at = end + 2;
        // Before it is waited for: what is not read is not kept.
        if at > command_bytes_max {
            return Parsed::Broken(TOO_LONG);
        }
        match input.get(end..at) {
            None => return Parsed::Partial { need: at },
            Some(b"\r\n") => {}
            Some(_) => return Parsed::Broken(NOT_TERMINATED),
        }
    }
    Parsed::Complete { used: at, request: Words { rest: &input[begin..at], left: count } }
}

/// A command as it was read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Command<'a> {
    /// One that is known, with as many arguments as it takes; it concerns items where it has a verb.
    Known { known: &'static Known, verb: Option<Verb>, arguments: Words<'a> },
    /// One that is known, with too many arguments or too few.
    WrongCount(&'a [u8]),
    /// One that is not known, and its arguments.
    Unknown(&'a [u8], Words<'a>),
    /// An empty array.
    Nothing,
}

impl<'a> Command<'a> {
    /// The command that these words are. Names are in any case.
    pub(crate) fn of(mut words: Words<'a>) -> Self {
        let Some(name) = words.next() else { return Self::Nothing };
        match COMMANDS.iter().find(|known| known.name.as_bytes().eq_ignore_ascii_case(name)) {
            Some(known) if known.arguments.contains(&words.len()) => {
                let verb = if known.name == "set" { Some(verb_of_set(words)) } else { known.verb };
                Self::Known { known, verb, arguments: words }
            }
            Some(_) => Self::WrongCount(name),
            None => Self::Unknown(name, words),
        }
    }

    /// What it does to items, if it concerns any.
    pub(crate) const fn verb(&self) -> Option<Verb> {
        match self {
            Self::Known { verb, .. } => *verb,
            _ => None,
        }
    }

    /// Is it allowed before login?
    pub(crate) fn is_allowed_before_login(&self) -> bool {
        match self {
            Self::Known { known, .. } => ["hello", "auth", "quit"].contains(&known.name),
            other => *other == Self::Nothing,
        }
    }
}

/// A set on the condition that nothing, or something, is there is an add or a replace.
fn verb_of_set(arguments: Words<'_>) -> Verb {
    let options = || arguments.skip(2);
    if options().any(|word| word.eq_ignore_ascii_case(b"NX")) {
        Verb::Add
    } else if options().any(|word| word.eq_ignore_ascii_case(b"XX")) {
        Verb::Replace
    } else {
        Verb::Set
    }
}

// --- Inline commands: a line of words becomes the array that says the same ---

/// The longest line (`PROTO_INLINE_MAX_SIZE`).
const INLINE_BYTES_MAX: usize = 64 << 10;
const INLINE_TOO_LONG: &[u8] = b"-ERR Protocol error: too big inline request\r\n";
const UNBALANCED: &[u8] = b"-ERR Protocol error: unbalanced quotes in request\r\n";

/// Writes the line at the front of `input` as an array; how long it is.
pub(crate) fn inline_to_array<T>(input: &[u8], array: &mut Vec<u8>) -> Result<usize, Parsed<T>> {
    let (line, used) = grammar::line(input, INLINE_BYTES_MAX, INLINE_TOO_LONG)?;
    let Some(words) = split_line(line) else { return Err(Parsed::Broken(UNBALANCED)) };
    array.clear();
    array.push(b'*');
    push_decimal(array, words.len());
    array.extend_from_slice(b"\r\n");
    for word in words {
        array.push(b'$');
        push_decimal(array, word.len());
        array.extend_from_slice(b"\r\n");
        array.extend_from_slice(&word);
        array.extend_from_slice(b"\r\n");
    }
    Ok(used)
}

/// The words of a line; `None` where a quote is not closed, or something follows it at once.
fn split_line(line: &[u8]) -> Option<Vec<Vec<u8>>> {
    let mut words = Vec::new();
    let mut rest = line.iter().copied().peekable();
    loop {
        while rest.next_if(u8::is_ascii_whitespace).is_some() {}
        if rest.peek().is_none() {
            return Some(words);
        }
        let mut word = Vec::new();
        while let Some(byte) = rest.next_if(|byte| !byte.is_ascii_whitespace()) {
            match byte {
                b'"' | b'\'' => {
                    quoted(byte, &mut rest, &mut word)?;
                    if rest.peek().is_some_and(|behind| !behind.is_ascii_whitespace()) {
                        return None;
                    }
                    break;
                }
                byte => word.push(byte),
            }
        }
        words.push(word);
    }
}

/// Reads up to the closing quote.
fn quoted(quote: u8, rest: &mut impl Iterator<Item = u8>, word: &mut Vec<u8>) -> Option<()> {
    loop {
        let byte = rest.next()?;
        if byte == quote {
            return Some(());
        }
        if byte != b'\\' {
            word.push(byte);
            continue;
        }
        let escaped = rest.next()?;
        match (quote, escaped) {
            (b'\'', b'\'') => word.push(b'\''),
            (b'\'', _) => word.extend_from_slice(&[b'\\', escaped]),
            (_, b'x') => {
                let mut digit = || char::from(rest.next()?).to_digit(16);
                word.push((digit()? * 16 + digit()?) as u8);
            }
            (_, b'n') => word.push(b'\n'),
            (_, b'r') => word.push(b'\r'),
            (_, b't') => word.push(b'\t'),
            (_, b'b') => word.push(8),
            (_, b'a') => word.push(7),
            (_, other) => word.push(other),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `|` stands for a line end.
    fn wire(text: &str) -> Vec<u8> {
        text.replace('|', "\r\n").into_bytes()
    }

    #[test]
    fn how_much_more_is_needed() {
        for (text, need) in
            [("", 1), ("*", 2), ("*2\r", 4), ("*1|", 5), ("*1|$", 6), ("*1|$3|", 13), ("*1|$3|GE", 13)]
        {
            assert_eq!(parse(&wire(text), 100, true), Parsed::Partial { need }, "{text:?}");
        }
    }

    #[test]
    fn malformed_commands_are_broken() {
        let table = [
            ("GET a|", EXPECTED_ARRAY),
            ("*x|", BAD_ARRAY),
            ("*|", BAD_ARRAY),
            ("*1048577|", BAD_ARRAY),
            ("*1\n", BAD_ARRAY),
            ("*0000000000000000000000000000000000", BAD_ARRAY),
            ("*1|:3|", EXPECTED_STRING),
            ("*1|$-1|", BAD_STRING),
            ("*1|$65537|", BAD_STRING),
            ("*1|$x|", BAD_STRING),
            ("*1|$1|ab|", NOT_TERMINATED),
        ];
        for (text, expected) in table {
            assert_eq!(parse(&wire(text), 100, true), Parsed::Broken(expected), "{text:?}");
        }
    }

    #[test]
    fn commands_are_bounded() {
        let words = |count: usize, len: usize| {
            let word = format!("${len}|{}|", "x".repeat(len));
            wire(&format!("*{count}|{}", word.repeat(count)))
        };
        // Each argument is short enough, and so are 16 of them; a seventeenth is not waited for.
        assert!(matches!(parse(&words(16, 65_536), 100, true), Parsed::Complete { .. }));
        let long = words(17, 65_536);
        assert_eq!(parse(&long, 100, true), Parsed::Broken(TOO_LONG));
        assert_eq!(parse(&long[..long.len() - 65_538], 100, true), Parsed::Broken(TOO_LONG));
        assert_eq!(parse(&words(1 << 18, 0), 100, true), Parsed::Broken(TOO_LONG));
        assert!(matches!(parse(&words(10, 16_384), 100, false), Parsed::Complete { .. }));
        assert_eq!(parse(&wire("*11|"), 100, false), Parsed::Broken(EARLY_ARRAY));
        assert_eq!(parse(&wire("*1|$16385|"), 100, false), Parsed::Broken(EARLY_STRING));
    }

    #[test]
    fn arguments_read_back() {
        let input = wire("*3|$3|SeT|$0||$4|a\r\nb|*0|");
        let Parsed::Complete { used, request: words } = parse(&input, 100, true) else {
            panic!("a whole command")
        };
        assert_eq!((used, words.len()), (input.len() - 4, 3));
        assert_eq!(words.collect::<Vec<_>>(), [b"SeT".as_slice(), b"", b"a\r\nb"]);
        let Parsed::Complete { used: 4, request: words } = parse(b"*0\r\n", 100, true) else {
            panic!("nothing")
        };
        assert_eq!(Command::of(words), Command::Nothing);
    }

    fn check_inline_refused(line: &[u8], expected: Parsed<()>) {
        assert_eq!(inline_to_array(line, &mut Vec::new()), Err(expected), "{}", line.escape_ascii());
    }

    #[test]
    fn inline_commands_become_arrays() {
        let table = [
            ("GET a\r\n", "*2|$3|GET|$1|a|"),
            ("  get\ta  \n", "*2|$3|get|$1|a|"),
            ("SET a \"b c\\x00\\n\\\"\\\\\"\r\n", "*3|$3|SET|$1|a|$7|b c\0\n\"\\|"),
            ("SET a 'it\\'s'\r\n", "*3|$3|SET|$1|a|$4|it's|"),
            ("SET a \"\"\r\n", "*3|$3|SET|$1|a|$0||"),
            ("\r\n", "*0|"),
        ];
        for (line, expected) in table {
            let mut array = Vec::new();
            assert_eq!(inline_to_array::<()>(line.as_bytes(), &mut array), Ok(line.len()), "{line:?}");
            assert_eq!(String::from_utf8_lossy(&array).replace("\r\n", "|"), expected, "{line:?}");
        }
        for line in ["SET a \"b\n", "SET a 'b\n", "SET a \"b\"c\n", "SET a \"\\xg0\"\n"] {
            check_inline_refused(line.as_bytes(), Parsed::Broken(UNBALANCED));
        }
        check_inline_refused(b"GET", Parsed::Partial { need: 4 });
        check_inline_refused(&vec![b'x'; INLINE_BYTES_MAX + 1], Parsed::Broken(INLINE_TOO_LONG));
    }
}
