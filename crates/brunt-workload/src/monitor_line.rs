//! Lines of MONITOR: `SECONDS.MICROSECONDS [DATABASE CLIENT] "command" "argument" ...`, as Redis and Valkey print them.
//!
//! Not which requests they are for a load: that is [`crate::trace_decoder`]. Invariant: a text between quotes is read byte for byte as it was
//! before it was escaped, or the line is refused.

use brunt_plan::op::OpKind;
use std::iter::StepBy;
use std::ops::Range;

const MILLISECOND_NS: u64 = 1_000_000;

/// What stands before the command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct LineHead<'a> {
    pub(crate) time_us: u64,
    /// An address, the path of a Unix socket, or `lua`.
    pub(crate) client: &'a [u8],
}

/// Is it what the server says before the first line?
pub(crate) fn is_answer(line: &[u8]) -> bool {
    matches!(line, b"OK" | b"+OK")
}

/// Is it a line of MONITOR, as far as its beginning tells? It may be cut.
pub(crate) fn has_form(line: &[u8]) -> bool {
    split(line).is_some()
}

/// What stands before the command, and the command.
pub(crate) fn split(line: &[u8]) -> Option<(LineHead<'_>, &[u8])> {
    let line = line.strip_prefix(b"+").unwrap_or(line);
    let point = line.iter().take(20).position(|byte| *byte == b'.')?;
    let (seconds, behind) = (whole(&line[..point])?, &line[point + 1..]);
    let (micros, behind) = behind.split_at_checked(6)?;
    let time_us = seconds.checked_mul(1_000_000)?.checked_add(whole(micros)?)?;
    let behind = behind.strip_prefix(b" [")?;
    let blank = behind.iter().position(|byte| *byte == b' ')?;
    whole(&behind[..blank])?;
    let behind = &behind[blank + 1..];
    // A path may have brackets and blanks.
    let end = behind.windows(3).position(|three| three == b"] \"")?;
    Some((LineHead { time_us, client: &behind[..end] }, &behind[end + 2..]))
}

/// The words of a command.
#[derive(Clone, Debug, Default)]
pub(crate) struct Arguments {
    bytes: Vec<u8>,
    ends: Vec<usize>,
}

/// A command that brunt can send.
#[derive(Clone, Debug)]
pub(crate) struct Command {
    pub(crate) kind: OpKind,
    /// The places of its keys.
    pub(crate) keys: StepBy<Range<usize>>,
    /// How far behind its key a value is.
    pub(crate) value_behind: Option<usize>,
    pub(crate) ttl_ns: Option<u64>,
}

impl Arguments {
    /// Reads words in quotes with blanks between them; `None` where the text is something else.
    pub(crate) fn read(&mut self, mut text: &[u8]) -> Option<()> {
        self.bytes.clear();
        self.ends.clear();
        loop {
            text = self.read_word(text.strip_prefix(b"\"")?)?;
            self.ends.push(self.bytes.len());
            match text {
                [] => return Some(()),
                [b' ', rest @ ..] => text = rest,
                _ => return None,
            }
        }
    }

    /// Reads up to the quote that ends a word. Yields what is behind it.
    fn read_word<'a>(&mut self, mut text: &'a [u8]) -> Option<&'a [u8]> {
        loop {
            let plain = text.iter().position(|byte| matches!(byte, b'"' | b'\\'))?;
            self.bytes.extend_from_slice(&text[..plain]);
            let (byte, rest) = match &text[plain..] {
                [b'"', rest @ ..] => return Some(rest),
                [_, b'x', high, low, rest @ ..] => {
                    let digit = |byte: &u8| char::from(*byte).to_digit(16);
                    ((digit(high)? << 4 | digit(low)?) as u8, rest)
                }
                [_, escaped, rest @ ..] => {
                    let byte = match escaped {
                        b'\\' | b'"' => *escaped,
                        b'n' => b'\n',
                        b'r' => b'\r',
                        b't' => b'\t',
                        b'a' => 0x07,
                        b'b' => 0x08,
                        _ => return None,
                    };
                    (byte, rest)
                }
                _ => return None,
            };
            self.bytes.push(byte);
            text = rest;
        }
    }

    /// The word at this place; that of the command is 0.
    pub(crate) fn get(&self, at: usize) -> Option<&[u8]> {
        let end = *self.ends.get(at)?;
        let start = if at > 0 { self.ends[at - 1] } else { 0 };
        Some(&self.bytes[start..end])
    }

    /// What is asked, if brunt can ask it. A command that lacks words was an error, or a form that is not known here.
    pub(crate) fn command(&self) -> Option<Command> {
        let count = self.ends.len();
        let name = self.get(0)?.to_ascii_lowercase();
        let of = |kind, keys: Range<usize>, step, value_behind| Command {
            kind,
            keys: keys.step_by(step),
            value_behind,
            ttl_ns: None,
        };
        let first = 1..2;
        // (the command, how many words it has at least)
        let (command, least) = match &name[..] {
            b"get" | b"getex" => (of(OpKind::Get, first, 1, None), 2),
            b"mget" => (of(OpKind::Get, 1..count, 1, None), 2),
            b"set" => (self.set(of(OpKind::Set, first, 1, Some(1))), 3),
            b"setex" => (Command { ttl_ns: self.ttl(2, 1_000), ..of(OpKind::Set, first, 1, Some(2)) }, 4),
            b"psetex" => (Command { ttl_ns: self.ttl(2, 1), ..of(OpKind::Set, first, 1, Some(2)) }, 4),
            b"setnx" => (of(OpKind::Add, first, 1, Some(1)), 3),
            b"mset" if count % 2 == 1 => (of(OpKind::Set, 1..count, 2, Some(1)), 3),
            b"append" => (of(OpKind::Append, first, 1, Some(1)), 3),
            b"del" | b"unlink" => (of(OpKind::Delete, 1..count, 1, None), 2),
            b"incr" | b"incrby" => (of(OpKind::Incr, first, 1, None), 2),
            b"decr" | b"decrby" => (of(OpKind::Decr, first, 1, None), 2),
            _ => return None,
        };
        (count >= least).then_some(command)
    }

    /// The options of SET, in any order and in capitals or not. A time to live that is given as a date is not told.
    fn set(&self, mut command: Command) -> Command {
        for at in 3..self.ends.len() {
            let word = self.get(at).unwrap_or_default().to_ascii_lowercase();
            match &word[..] {
                b"nx" => command.kind = OpKind::Add,
                b"xx" => command.kind = OpKind::Replace,
                b"ex" => command.ttl_ns = self.ttl(at + 1, 1_000),
                b"px" => command.ttl_ns = self.ttl(at + 1, 1),
                _ => {}
            }
        }
        command
    }

    fn ttl(&self, at: usize, unit_ms: u64) -> Option<u64> {
        Some(whole(self.get(at)?)?.saturating_mul(unit_ms).saturating_mul(MILLISECOND_NS))
    }
}

/// A whole number.
pub(crate) fn whole(text: &[u8]) -> Option<u64> {
    let add = |sum: u64, digit: &u8| {
        digit.is_ascii_digit().then(|| sum.checked_mul(10)?.checked_add(u64::from(digit - b'0'))).flatten()
    };
    if text.is_empty() { None } else { text.iter().try_fold(0, add) }
}
