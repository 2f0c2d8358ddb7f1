//! memcached's binary protocol from the server's side: bytes to frames.
//!
//! Only the grammar: `answer` writes the replies. A frame is seen whole or not at all; the same bytes, cut anywhere,
//! are the same frames. The source is memcached's `doc/protocol-binary.xml`, and what memcached 1.6 does where that is
//! silent.

pub(crate) mod answer;

use crate::grammar::{Parsed, Verb};
use crate::text::KEY_BYTES_MAX;

/// Where a request begins.
pub(crate) const REQUEST_MAGIC: u8 = 0x80;
pub(crate) const HEADER_BYTES: usize = 24;

/// Extras of a store: flags and time to live.
const STORE_EXTRAS: usize = 8;
/// Extras of an increment: delta, what to begin with, time to live.
const CHANGE_EXTRAS: usize = 20;
/// Extras that are a time to live, or a delay.
const TIME_EXTRAS: usize = 4;

/// What a frame asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FrameKind {
    Get,
    /// A get with a new time to live.
    GetAndTouch,
    /// Set, add, replace; with a unique it is a cas.
    Store(Verb),
    /// Append, prepend.
    Extend(Verb),
    Delete,
    Change {
        is_increment: bool,
    },
    Touch,
    Quit,
    Flush,
    Noop,
    Version,
    Statistics,
    Verbosity,
    SaslMechanisms,
    SaslAuth,
    SaslStep,
    /// An opcode that is not known.
    Unknown,
}

/// What an opcode stands for: what it asks for, whether its usual answer is held back, and whether the key is repeated.
const fn known(opcode: u8) -> (FrameKind, bool, bool) {
    let aloud = match opcode {
        0x09 => 0x00,
        0x0d | 0x1e | 0x24 => opcode - 1,
        0x11..=0x18 => opcode - 0x10,
        0x19 | 0x1a => opcode - 0x0b,
        _ => opcode,
    };
    let what = match aloud {
        0x00 | 0x0c => FrameKind::Get,
        0x01 => FrameKind::Store(Verb::Set),
        0x02 => FrameKind::Store(Verb::Add),
        0x03 => FrameKind::Store(Verb::Replace),
        0x04 => FrameKind::Delete,
        0x05 => FrameKind::Change { is_increment: true },
        0x06 => FrameKind::Change { is_increment: false },
        0x07 => FrameKind::Quit,
        0x08 => FrameKind::Flush,
        0x0a => FrameKind::Noop,
        0x0b => FrameKind::Version,
        0x0e => FrameKind::Extend(Verb::Append),
        0x0f => FrameKind::Extend(Verb::Prepend),
        0x10 => FrameKind::Statistics,
        0x1b => FrameKind::Verbosity,
        0x1c => FrameKind::Touch,
        0x1d | 0x23 => FrameKind::GetAndTouch,
        0x20 => FrameKind::SaslMechanisms,
        0x21 => FrameKind::SaslAuth,
        0x22 => FrameKind::SaslStep,
        _ => FrameKind::Unknown,
    };
    (what, aloud != opcode, matches!(aloud, 0x0c | 0x23))
}

/// A frame as it was read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Frame<'a> {
    pub(crate) what: FrameKind,
    /// The usual answer is held back: a miss of a retrieval, a success of anything else.
    pub(crate) is_quiet: bool,
    /// A retrieval repeats its key.
    pub(crate) names_key: bool,
    pub(crate) opcode: u8,
    pub(crate) extras: &'a [u8],
    pub(crate) key: &'a [u8],
    /// Empty where it is longer than the limit.
    pub(crate) value: &'a [u8],
    /// Given back in the reply.
    pub(crate) opaque: [u8; 4],
    /// 0 is none.
    pub(crate) unique: u64,
    /// Bytes of a value above the limit that follow and are discarded.
    pub(crate) excess_bytes: u64,
    /// Extras, key and value are there, or not, as the opcode has them.
    pub(crate) is_valid: bool,
}

/// Looks at the front of `input`. Values above `value_bytes_max` are refused.
pub(crate) fn parse(input: &[u8], value_bytes_max: u64) -> Parsed<Frame<'_>> {
    if input.first().is_some_and(|magic| *magic != REQUEST_MAGIC) {
        return Parsed::Broken(b"");
    }
    let Some((header, body)) = input.split_first_chunk::<HEADER_BYTES>() else {
        return Parsed::Partial { need: HEADER_BYTES };
    };
    let &[_, opcode, k0, k1, extras_len, _, _, _, b0, b1, b2, b3, o0, o1, o2, o3, unique @ ..] = header;
    let (key_len, extras_len) = (usize::from(u16::from_be_bytes([k0, k1])), usize::from(extras_len));
    let body_len = u32::from_be_bytes([b0, b1, b2, b3]) as usize;
    let front_len = key_len + extras_len;
    let Some(value_len) = body_len.checked_sub(front_len) else { return Parsed::Broken(b"") };
    let excess_bytes = if value_len as u64 > value_bytes_max { value_len } else { 0 };
    let used = HEADER_BYTES + body_len - excess_bytes;
    if input.len() < used {
        return Parsed::Partial { need: used };
    }
    let (extras, rest) = body.split_at(extras_len);
    let (key, rest) = rest.split_at(key_len);
    let (what, is_quiet, names_key) = known(opcode);
    let frame = Frame {
        what,
        is_quiet,
        names_key,
        opcode,
        extras,
        key,
        value: &rest[..value_len - excess_bytes],
        opaque: [o0, o1, o2, o3],
        unique: u64::from_be_bytes(unique),
        excess_bytes: excess_bytes as u64,
        is_valid: is_valid(what, extras_len, key_len, value_len),
    };
    Parsed::Complete { used, request: frame }
}

/// Does a frame consist of what its opcode takes?
fn is_valid(what: FrameKind, extras: usize, key: usize, value: usize) -> bool {
    let is_key = (1..=KEY_BYTES_MAX).contains(&key);
    match what {
        FrameKind::Get | FrameKind::Delete => extras == 0 && is_key && value == 0,
        FrameKind::GetAndTouch | FrameKind::Touch => extras == TIME_EXTRAS && is_key && value == 0,
        FrameKind::Store(_) => extras == STORE_EXTRAS && is_key,
        FrameKind::Extend(_) => extras == 0 && is_key,
        FrameKind::Change { .. } => extras == CHANGE_EXTRAS && is_key && value == 0,
        FrameKind::Flush => (extras == 0 || extras == TIME_EXTRAS) && key == 0 && value == 0,
        FrameKind::Verbosity => extras == TIME_EXTRAS && key == 0 && value == 0,
        FrameKind::Quit | FrameKind::Noop | FrameKind::Version | FrameKind::SaslMechanisms => {
            extras + key + value == 0
        }
        FrameKind::Statistics => extras == 0 && value == 0,
        FrameKind::SaslAuth | FrameKind::SaslStep => extras == 0 && key > 0,
        FrameKind::Unknown => true,
    }
}

impl Frame<'_> {
    /// What it does to items, if it concerns any and can be carried out.
    pub(crate) fn verb(&self) -> Option<Verb> {
        if !self.is_valid || self.excess_bytes > 0 {
            return None;
        }
        Some(match self.what {
            FrameKind::Get | FrameKind::GetAndTouch => Verb::Get,
            FrameKind::Store(_) if self.unique != 0 => Verb::Cas,
            FrameKind::Store(verb) | FrameKind::Extend(verb) => verb,
            FrameKind::Delete => Verb::Delete,
            FrameKind::Change { is_increment: true } => Verb::Incr,
            FrameKind::Change { is_increment: false } => Verb::Decr,
            FrameKind::Touch => Verb::Touch,
            _ => return None,
        })
    }

    /// Is it allowed before login?
    pub(crate) const fn is_allowed_before_login(&self) -> bool {
        matches!(
            self.what,
            FrameKind::SaslMechanisms | FrameKind::SaslAuth | FrameKind::SaslStep | FrameKind::Version
        )
    }

    /// Only over an item with this unique, if there is one.
    fn compare(&self) -> Option<u64> {
        Some(self.unique).filter(|unique| *unique != 0)
    }

    /// The number in the extras at this place.
    fn number<const BYTES: usize>(&self, at: usize) -> u64 {
        let mut bytes = [0; 8];
        bytes[8 - BYTES..].copy_from_slice(&self.extras[at..at + BYTES]);
        u64::from_be_bytes(bytes)
    }

    /// A time to live, in memcached's seconds. Above 31 bits it is as large to it as it is to us: long past the year 2038.
    fn exptime_s(&self, at: usize) -> i64 {
        self.number::<4>(at) as i64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn header(opcode: u8, key: u16, extras: u8, body: u32) -> Vec<u8> {
        let mut header = vec![REQUEST_MAGIC, opcode];
        header.extend(key.to_be_bytes());
        header.extend([extras, 0, 0, 0]);
        header.extend(body.to_be_bytes());
        header.extend(*b"TOKN");
        header.extend(7u64.to_be_bytes());
        header
    }

    #[test]
    fn frames_parse() {
        let input = [header(0x11, 3, 8, 16), b"\0\0\0\x05\0\0\0\x09keyvalue\x80".to_vec()].concat();
        for len in 0..input.len() - 1 {
            let need = if len < HEADER_BYTES { HEADER_BYTES } else { 40 };
            assert_eq!(parse(&input[..len], 100), Parsed::Partial { need });
        }
        let Parsed::Complete { used: 40, request: frame } = parse(&input, 100) else {
            panic!("a whole frame")
        };
        assert_eq!(
            (frame.key, frame.value, &frame.opaque, frame.unique),
            (&b"key"[..], &b"value"[..], b"TOKN", 7)
        );
        assert_eq!((frame.verb(), frame.is_quiet), (Some(Verb::Cas), true));
        assert_eq!((frame.number::<4>(0), frame.exptime_s(4)), (5, 9));
        // A value above the limit is left where it is, behind its key.
        let Parsed::Complete { used: 35, request: frame } = parse(&input, 4) else { panic!("a whole head") };
        assert_eq!(
            (frame.key, frame.value, frame.excess_bytes, frame.verb()),
            (&b"key"[..], &b""[..], 5, None)
        );
    }

    #[test]
    fn malformed_frames_are_broken() {
        assert_eq!(parse(b"get a\r\n", 100), Parsed::Broken(b""));
        assert_eq!(parse(&header(0, 3, 0, 2), 100), Parsed::Broken(b""));
        // (opcode, key, extras, value, valid)
        let table = [
            (0x00, 3, 0, 0, true),
            (0x00, 0, 0, 0, false),
            (0x00, 251, 0, 0, false),
            (0x00, 3, 4, 0, false),
            (0x01, 3, 8, 5, true),
            (0x01, 3, 0, 5, false),
            (0x05, 3, 20, 0, true),
            (0x05, 3, 20, 1, false),
            (0x0a, 0, 0, 0, true),
            (0x0a, 1, 0, 0, false),
            (0x08, 0, 4, 0, true),
            (0x1c, 3, 4, 0, true),
            (0x21, 5, 0, 9, true),
            (0x7f, 9, 9, 9, true),
        ];
        for (opcode, key, extras, value, is_valid) in table {
            let body = u32::from(key) + u32::from(extras) + value;
            let input = [header(opcode, key, extras, body), vec![b'x'; body as usize]].concat();
            let Parsed::Complete { request: frame, .. } = parse(&input, 100) else { panic!("a whole frame") };
            assert_eq!(frame.is_valid, is_valid, "{opcode:#x} {key} {extras} {value}");
        }
    }
}
