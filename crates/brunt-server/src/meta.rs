//! memcached's meta commands from the server's side: bytes to commands.
//!
//! Only the grammar: `answer` writes the replies. They are beside the classic commands on one connection; a command
//! is seen whole or not at all, and the same bytes, cut anywhere, are the same commands. Flags that only other clients send are
//! refused as unknown. The source is the part on meta commands of memcached's `doc/protocol.txt`, and what memcached 1.6.18 does where that is silent.

pub(crate) mod answer;

use crate::grammar::{self, Parsed, Verb};
use crate::text::{BAD_FORMAT, ERROR, KEY_BYTES_MAX, LINE_BYTES_MAX, signed, unsigned, words};
use base64::engine::general_purpose::{GeneralPurpose, GeneralPurposeConfig};
use base64::{Engine, alphabet};
use memchr::memchr;
use std::borrow::Cow;

/// An opaque is shorter than this.
const OPAQUE_BYTES_MAX: usize = 32;
/// memcached does not look at the bits behind the last byte.
const MEMCACHED: GeneralPurpose = GeneralPurpose::new(
    &alphabet::STANDARD,
    GeneralPurposeConfig::new().with_decode_allow_trailing_bits(true),
);

const BAD_KEY: &[u8] = b"CLIENT_ERROR error decoding key\r\n";
const BAD_FLAG: &[u8] = b"CLIENT_ERROR invalid flag\r\n";
const DUPLICATE_FLAG: &[u8] = b"CLIENT_ERROR duplicate flag\r\n";
const BAD_FLAG_OR_DUPLICATE: &[u8] = b"CLIENT_ERROR invalid or duplicate flag\r\n";
const BAD_TOKEN: &[u8] = b"CLIENT_ERROR bad token in command line format\r\n";
const OPAQUE_TOO_LONG: &[u8] = b"CLIENT_ERROR opaque token too long\r\n";
const BAD_MODE_LENGTH: &[u8] = b"CLIENT_ERROR incorrect length for M token\r\n";

/// What a command does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CommandKind {
    Get,
    Set,
    Delete,
    Arithmetic,
    Noop,
    /// Not a command; this is the reply.
    Refused(&'static [u8]),
    /// A value that does not end where its length says. It is counted as a write.
    BadChunk,
}

/// What the flags of a command say; those that only ask for something in the reply are read again there.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Flags {
    /// b: the key is in base64.
    pub(crate) is_encoded: bool,
    /// q
    pub(crate) is_quiet: bool,
    /// v
    pub(crate) wants_value: bool,
    /// c
    pub(crate) wants_unique: bool,
    /// T, seconds.
    pub(crate) exptime_s: Option<i64>,
    /// C
    pub(crate) compare: Option<u64>,
    /// F
    pub(crate) client_flags: u32,
    /// D
    pub(crate) delta: Option<u64>,
    /// M; 0 is none.
    pub(crate) mode: u8,
}

/// A command as it was read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Command<'a> {
    pub(crate) what: CommandKind,
    /// The key as it was sent.
    pub(crate) key: &'a [u8],
    /// The flags as they were sent.
    pub(crate) flag_words: &'a [u8],
    pub(crate) flags: Flags,
    pub(crate) value: &'a [u8],
    /// Bytes of a refused value that follow and are discarded.
    pub(crate) excess_bytes: u64,
}

/// Does the input begin with a word of this protocol? Not sure yet is no: no command is whole then.
pub(crate) fn is_meta(input: &[u8]) -> bool {
    let blanks = input.iter().take_while(|byte| **byte == b' ').count();
    matches!(input[blanks..], [b'm', b'g' | b's' | b'd' | b'a' | b'n', b' ' | b'\r' | b'\n', ..])
}

/// Looks at the front of `input`, which is [one of these](is_meta). Values above `value_bytes_max` are refused.
pub(crate) fn parse(input: &[u8], value_bytes_max: u64) -> Parsed<Command<'_>> {
    let (line, end) = match grammar::line(input, LINE_BYTES_MAX, b"") {
        Ok(found) => found,
        Err(parsed) => return parsed,
    };
    let (code, rest) = line.trim_ascii_start().split_at(2);
    let what = match code[1] {
        b'g' => CommandKind::Get,
        b's' => CommandKind::Set,
        b'd' => CommandKind::Delete,
        b'a' => CommandKind::Arithmetic,
        _ => CommandKind::Noop,
    };
    if what == CommandKind::Set {
        return parse_set(input, end, rest, value_bytes_max);
    }
    let mut command = Command::of(what, rest);
    if what == CommandKind::Noop {
        (command.key, command.flag_words) = (&[], &[]);
    } else if command.key.is_empty() {
        command.what = CommandKind::Refused(ERROR);
    } else if let Err(reply) = command.read_flags() {
        command.what = CommandKind::Refused(reply);
    }
    Parsed::Complete { used: end, request: command }
}

/// The command with a value, which begins at `body`.
fn parse_set<'a>(input: &'a [u8], body: usize, rest: &'a [u8], value_bytes_max: u64) -> Parsed<Command<'a>> {
    let mut command = Command::of(CommandKind::Set, rest);
    let complete = |used, command| Parsed::Complete { used, request: command };
    let refused = |reply, command| Command { what: CommandKind::Refused(reply), ..command };
    if command.key.is_empty() {
        return complete(body, refused(ERROR, command));
    }
    let (length, flag_words) = split_word(command.flag_words);
    command.flag_words = flag_words;
    // memcached holds lengths in 31 bits and adds the two bytes of the line end.
    let Some(value_bytes) = unsigned(length).filter(|bytes| *bytes <= i32::MAX as u64 - 2) else {
        return complete(body, refused(BAD_FORMAT, command));
    };
    if let Err(reply) = command.read_flags() {
        return complete(body, Command { excess_bytes: value_bytes + 2, ..refused(reply, command) });
    }
    if value_bytes > value_bytes_max {
        return complete(body, Command { excess_bytes: value_bytes + 2, ..command });
    }
    let used = body + value_bytes as usize + 2;
    let Some(value) = input.get(body..used) else { return Parsed::Partial { need: used } };
    match value.strip_suffix(b"\r\n") {
        Some(value) => complete(used, Command { value, ..command }),
        None => complete(used, Command { what: CommandKind::BadChunk, ..command }),
    }
}

/// The first word, and what is behind it.
fn split_word(text: &[u8]) -> (&[u8], &[u8]) {
    let text = text.trim_ascii_start();
    text.split_at(memchr(b' ', text).unwrap_or(text.len()))
}

impl<'a> Command<'a> {
    fn of(what: CommandKind, rest: &'a [u8]) -> Self {
        let (key, flag_words) = split_word(rest);
        Self { what, key, flag_words, flags: Flags::default(), value: &[], excess_bytes: 0 }
    }

    /// Reads the flags.
    ///
    /// # Errors
    /// With the reply, if there is something wrong with them or with the key.
    fn read_flags(&mut self) -> Result<(), &'static [u8]> {
        let what = self.what;
        let explained = |reply| match what {
            CommandKind::Delete | CommandKind::Arithmetic if reply != OPAQUE_TOO_LONG => {
                BAD_FLAG_OR_DUPLICATE
            }
            CommandKind::Set if reply == BAD_TOKEN => BAD_FORMAT,
            _ => reply,
        };
        if self.key.len() > KEY_BYTES_MAX {
            return Err(BAD_FORMAT);
        }
        let mut seen = 0u128;
        for word in words(self.flag_words) {
            let (letter, token) = (word[0], &word[1..]);
            if !letter.is_ascii() {
                return Err(explained(BAD_FLAG));
            }
            if seen & 1 << letter != 0 {
                return Err(explained(DUPLICATE_FLAG));
            }
            seen |= 1 << letter;
            self.flags.take(letter, token).map_err(explained)?;
        }
        if self.flags.is_encoded && decode_base64(self.key).is_none() {
            return Err(BAD_KEY);
        }
        Ok(())
    }

    /// The key itself.
    pub(crate) fn decoded_key(&self) -> Cow<'a, [u8]> {
        match self.flags.is_encoded.then(|| decode_base64(self.key)).flatten() {
            Some(decoded) => decoded.into(),
            None => self.key.into(),
        }
    }

    /// What it does to items, if it concerns any.
    pub(crate) fn verb(&self) -> Option<Verb> {
        if self.excess_bytes > 0 {
            return None;
        }
        let flags = &self.flags;
        Some(match self.what {
            CommandKind::Get if flags.exptime_s.is_some() && !flags.wants_value => Verb::Touch,
            CommandKind::Get if flags.wants_unique => Verb::Gets,
            CommandKind::Get => Verb::Get,
            CommandKind::Set => match (flags.mode, flags.compare) {
                (b'E', _) => Verb::Add,
                (b'A', _) => Verb::Append,
                (b'P', _) => Verb::Prepend,
                (_, Some(_)) => Verb::Cas,
                (b'R', None) => Verb::Replace,
                (_, None) => Verb::Set,
            },
            CommandKind::Delete => Verb::Delete,
            CommandKind::Arithmetic if matches!(flags.mode, b'D' | b'-') => Verb::Decr,
            CommandKind::Arithmetic => Verb::Incr,
            CommandKind::Noop | CommandKind::Refused(_) | CommandKind::BadChunk => return None,
        })
    }

    /// Is its usual reply held back?
    pub(crate) const fn is_quiet(&self) -> bool {
        self.flags.is_quiet
    }
}

impl Flags {
    /// Takes in one flag.
    fn take(&mut self, letter: u8, token: &[u8]) -> Result<(), &'static [u8]> {
        let number = || unsigned(token).ok_or(BAD_TOKEN);
        match letter {
            b'b' => self.is_encoded = true,
            b'q' => self.is_quiet = true,
            b'v' => self.wants_value = true,
            b'c' => self.wants_unique = true,
            b'T' => self.exptime_s = Some(signed(token).ok_or(BAD_TOKEN)?),
            b'C' => self.compare = Some(number()?),
            b'D' => self.delta = Some(number()?),
            b'F' => self.client_flags = u32::try_from(number()?).map_err(|_| BAD_TOKEN)?,
            b'M' => match token {
                [mode] => self.mode = *mode,
                _ => return Err(BAD_MODE_LENGTH),
            },
            b'O' if token.len() >= OPAQUE_BYTES_MAX => return Err(OPAQUE_TOO_LONG),
            // Asked of the reply.
            b'O' | b'f' | b'k' => {}
            _ => return Err(BAD_FLAG),
        }
        Ok(())
    }
}

/// What base64 stands for as memcached takes keys in (the standard alphabet, padded: RFC 4648, section 4), if it is that.
fn decode_base64(text: &[u8]) -> Option<Vec<u8>> {
    MEMCACHED.decode(text).ok().filter(|bytes| !bytes.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn meta_commands_are_recognised() {
        for (text, expected) in [
            ("mg a", true),
            ("  ms a 1", true),
            ("mn\r\n", true),
            ("mn", false),
            ("mget a", false),
            ("mx a", false),
            ("me a", false),
            ("get a", false),
            ("", false),
            (" ", false),
        ] {
            assert_eq!(is_meta(text.as_bytes()), expected, "{text:?}");
        }
    }

    #[test]
    fn how_much_more_is_needed() {
        let input = b"ms key 5 F7 T60 q Oab\r\nhello\r\nmn\r\n";
        for len in 3..30 {
            let need = if len < 23 { len + 1 } else { 30 };
            assert_eq!(parse(&input[..len], 100), Parsed::Partial { need }, "{len}");
        }
        let Parsed::Complete { used: 30, request: command } = parse(input, 100) else {
            panic!("a whole command")
        };
        assert_eq!(
            (command.key, command.value, command.verb()),
            (&b"key"[..], &b"hello"[..], Some(Verb::Set))
        );
        let flags = Flags { client_flags: 7, exptime_s: Some(60), is_quiet: true, ..Flags::default() };
        assert_eq!(command.flags, flags);
        let Parsed::Complete { used: 23, request: command } = parse(input, 4) else { panic!("a whole head") };
        assert_eq!((command.excess_bytes, command.verb()), (7, None));
        let endless = [b"mg ", &vec![b'k'; LINE_BYTES_MAX][..]].concat();
        assert_eq!(parse(&endless, 100), Parsed::Broken(b""));
    }

    #[test]
    fn commands_map_to_verbs() {
        let table = [
            ("mg a v", Some(Verb::Get)),
            ("mg a c v", Some(Verb::Gets)),
            ("mg a T5", Some(Verb::Touch)),
            ("mg a T5 v", Some(Verb::Get)),
            ("md a C5", Some(Verb::Delete)),
            ("ma a", Some(Verb::Incr)),
            ("ma a MD D5", Some(Verb::Decr)),
            ("mn", None),
            ("mg a y", None),
            ("mg a N30 v", None),
            ("md a I", None),
            ("ms a 0\r\n", Some(Verb::Set)),
            ("ms a 0 MR C5\r\n", Some(Verb::Cas)),
            ("ms a 0 ME C5\r\n", Some(Verb::Add)),
            ("ms a 0 MA\r\n", Some(Verb::Append)),
            ("ms a 0 MP\r\n", Some(Verb::Prepend)),
            ("ms a 0 MR\r\n", Some(Verb::Replace)),
        ];
        for (text, expected) in table {
            let input = format!("{text}\r\n");
            let Parsed::Complete { request: command, .. } = parse(input.as_bytes(), 100) else {
                panic!("{text}")
            };
            assert_eq!(command.verb(), expected, "{text:?}");
        }
    }

    #[test]
    fn base64_texts_and_bytes() {
        // RFC 4648, section 10, and what is none.
        let table: [(&str, Option<&[u8]>); 13] = [
            ("Zg==", Some(b"f")),
            ("Zm8=", Some(b"fo")),
            ("Zm9v", Some(b"foo")),
            ("Zm9vYg==", Some(b"foob")),
            ("Zm9vYmE=", Some(b"fooba")),
            ("Zm9vYmFy", Some(b"foobar")),
            ("YSAA/w==", Some(b"a \0\xff")),
            ("", None),
            ("Zg", None),
            ("Zg=", None),
            ("Zg=a", None),
            ("Z===", None),
            ("Zm8-", None),
        ];
        for (text, expected) in table {
            assert_eq!(decode_base64(text.as_bytes()).as_deref(), expected, "{text:?}");
        }
    }
}
