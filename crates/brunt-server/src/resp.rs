//! Redis's protocol, versions 2 and 3, from the server's side: bytes to commands.
//!
//! Only the grammar: `answer` writes the replies. A command is an array of strings and is seen whole or not at all; the
//! same bytes, cut anywhere, are the same commands. Inline commands are refused unless an option allows them. Words,
//! limits and texts are those of redis-server 7.0.

pub(crate) mod answer;
pub(crate) mod calls;
pub(crate) mod inline;

use crate::cache::integer;
use crate::grammar::{Parsed, Verb};
use memchr::memchr;
use std::ops::RangeInclusive;

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
/// The longest name of a command that is known.
const NAME_BYTES_MAX: usize = 12;

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

impl Words<'_> {
    /// How many are still to come.
    pub(crate) const fn len(&self) -> usize {
        self.left
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

/// What a command does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CommandKind {
    Get,
    Mget,
    Set,
    /// A time to live between key and value.
    SetEx {
        unit_ms: i64,
    },
    /// By one, or by the number behind the key.
    Incr {
        is_increment: bool,
    },
    Append,
    Delete,
    Touch,
    /// A time to live.
    Expire {
        unit_ms: i64,
    },
    Ttl,
    Exists,
    StringLength,
    HashSet,
    HashGet,
    HashGetAll,
    Hello,
    Auth,
    Select,
    Client,
    Ping,
    Echo,
    Info,
    DatabaseSize,
    FlushAll,
    CommandList,
    Quit,
}

/// A command as it was read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Command<'a> {
    /// One that is known, with as many arguments as it takes; it concerns items where it has a verb.
    Known { name: &'static str, what: CommandKind, verb: Option<Verb>, arguments: Words<'a> },
    /// One that is known, with too many arguments or too few.
    WrongCount(&'a [u8]),
    /// One that is not known, and its arguments.
    Unknown(&'a [u8], Words<'a>),
    /// An empty array.
    Nothing,
}

/// What a name stands for: its name among the counters, where the two that remove are one, and so are the two that empty; what it does, to items or not, and how many arguments it takes behind the name.
fn known(name: &[u8]) -> Option<(&'static str, CommandKind, Option<Verb>, RangeInclusive<usize>)> {
    const MANY: usize = usize::MAX;
    let data = |name, what, verb, arguments| Some((name, what, Some(verb), arguments));
    let control = |name, what, arguments| Some((name, what, None, arguments));
    match name {
        b"GET" => data("get", CommandKind::Get, Verb::Get, 1..=1),
        b"SET" => data("set", CommandKind::Set, Verb::Set, 2..=MANY),
        b"MGET" => data("mget", CommandKind::Mget, Verb::Get, 1..=MANY),
        b"SETEX" => data("setex", CommandKind::SetEx { unit_ms: 1000 }, Verb::Set, 3..=3),
        b"PSETEX" => data("psetex", CommandKind::SetEx { unit_ms: 1 }, Verb::Set, 3..=3),
        b"INCR" => data("incr", CommandKind::Incr { is_increment: true }, Verb::Incr, 1..=1),
        b"INCRBY" => data("incrby", CommandKind::Incr { is_increment: true }, Verb::Incr, 2..=2),
        b"DECR" => data("decr", CommandKind::Incr { is_increment: false }, Verb::Decr, 1..=1),
        b"DECRBY" => data("decrby", CommandKind::Incr { is_increment: false }, Verb::Decr, 2..=2),
        b"APPEND" => data("append", CommandKind::Append, Verb::Append, 2..=2),
        b"DEL" | b"UNLINK" => data("del", CommandKind::Delete, Verb::Delete, 1..=MANY),
        b"TOUCH" => data("touch", CommandKind::Touch, Verb::Touch, 1..=MANY),
        b"EXPIRE" => data("expire", CommandKind::Expire { unit_ms: 1000 }, Verb::Touch, 2..=2),
        b"PEXPIRE" => data("pexpire", CommandKind::Expire { unit_ms: 1 }, Verb::Touch, 2..=2),
        b"TTL" => data("ttl", CommandKind::Ttl, Verb::Get, 1..=1),
        b"EXISTS" => data("exists", CommandKind::Exists, Verb::Get, 1..=MANY),
        b"STRLEN" => data("strlen", CommandKind::StringLength, Verb::Get, 1..=1),
        b"HSET" => data("hset", CommandKind::HashSet, Verb::Set, 3..=MANY),
        b"HGET" => data("hget", CommandKind::HashGet, Verb::Get, 2..=2),
        b"HGETALL" => data("hgetall", CommandKind::HashGetAll, Verb::Get, 1..=1),
        b"HELLO" => control("hello", CommandKind::Hello, 0..=MANY),
        b"AUTH" => control("auth", CommandKind::Auth, 1..=MANY),
        b"SELECT" => control("select", CommandKind::Select, 1..=1),
        b"CLIENT" => control("client", CommandKind::Client, 1..=MANY),
        b"PING" => control("ping", CommandKind::Ping, 0..=1),
        b"ECHO" => control("echo", CommandKind::Echo, 1..=1),
        b"INFO" => control("info", CommandKind::Info, 0..=MANY),
        b"DBSIZE" => control("dbsize", CommandKind::DatabaseSize, 0..=0),
        b"FLUSHALL" | b"FLUSHDB" => control("flushall", CommandKind::FlushAll, 0..=1),
        b"COMMAND" => control("command", CommandKind::CommandList, 0..=MANY),
        b"QUIT" => control("quit", CommandKind::Quit, 0..=MANY),
        _ => None,
    }
}

impl<'a> Command<'a> {
    /// The command that these words are. Names are in any case.
    pub(crate) fn of(mut words: Words<'a>) -> Self {
        let Some(name) = words.next() else { return Self::Nothing };
        let mut upper = [0; NAME_BYTES_MAX];
        let found = upper.get_mut(..name.len()).and_then(|upper| {
            upper.copy_from_slice(name);
            upper.make_ascii_uppercase();
            known(upper)
        });
        match found {
            Some((name, what, verb, counts)) if counts.contains(&words.len()) => {
                let verb = if what == CommandKind::Set { Some(verb_of_set(words)) } else { verb };
                Self::Known { name, what, verb, arguments: words }
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
    pub(crate) const fn is_allowed_before_login(&self) -> bool {
        matches!(
            self,
            Self::Nothing
                | Self::Known { what: CommandKind::Hello | CommandKind::Auth | CommandKind::Quit, .. }
        )
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
}
