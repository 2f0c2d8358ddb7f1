//! Lines of memcached's two text protocols: words, decimals, line ends; and for how long errors of memcached hold, whose texts are
//! those of memcached 1.6.
//!
//! Invariant: what is said of a line is said by its first bytes, however many more are visible; [`Stop::Short`] is used
//! for "not enough of them".

use crate::step::{BAD_NUMBER, Step, Stop, UNKNOWN, line_end};
use brunt_plan::outcome::{ErrorPersistence, ReplyKind};
use memchr::memchr;

/// A space, or a byte below: what a word of a line cannot hold, and a key written as a word neither.
#[inline]
const fn ends_word(byte: u8) -> bool {
    byte <= b' '
}

/// No byte of it ends a word. Up to 32 bytes it is two blocks that overlap, each a handful of instructions.
#[inline]
pub(super) fn is_word(key: &[u8]) -> bool {
    match (key.first_chunk::<16>(), key.last_chunk::<16>()) {
        (Some(front), Some(back)) if key.len() <= 32 => !(ends_in(front) | ends_in(back)),
        _ => key.iter().all(|byte| !ends_word(*byte)),
    }
}

#[inline]
fn ends_in(block: &[u8; 16]) -> bool {
    block.iter().fold(false, |ends, byte| ends | ends_word(*byte))
}

/// The length of the word at the front, if it ends within `len_max` bytes and the next byte is visible.
#[inline]
pub(super) fn word_len(line: &[u8], len_max: usize) -> Option<usize> {
    line.iter().take(len_max + 1).position(|byte| ends_word(*byte))
}

/// Bytes that most replies have in common with the one before them: to compare takes less than to read.
#[derive(Clone, Copy, Debug)]
pub(super) struct LastBytes {
    /// The first byte in the lowest place.
    bytes: u128,
    /// The bits that are of them, and not of what follows.
    mask: u128,
    pub(super) len: usize,
}

impl Default for LastBytes {
    /// Zeros, which no reply has.
    fn default() -> Self {
        Self { bytes: 0, mask: u128::MAX, len: 0 }
    }
}

impl LastBytes {
    /// These, if they are one at least and not too many.
    pub(super) fn of(bytes: &[u8]) -> Option<Self> {
        let (len, mut all) = (bytes.len(), [0; size_of::<u128>()]);
        all.get_mut(..len)?.copy_from_slice(bytes);
        let mask = u128::MAX.checked_shr(8 * (all.len() - len) as u32)?;
        Some(Self { bytes: u128::from_le_bytes(all), mask, len })
    }

    /// Does the input begin with them?
    #[inline(always)]
    pub(super) fn fit(&self, input: &[u8]) -> bool {
        let Some(front) = input.first_chunk() else { return false };
        (u128::from_le_bytes(*front) ^ self.bytes) & self.mask == 0
    }
}

/// The text of an error line whose word has this length, or that word where there is no text; and the length of the line with its end.
pub(super) fn error_text(line: &[u8], word_len: usize) -> Step<(&[u8], usize)> {
    let word = &line[..word_len];
    match line.get(word_len).ok_or(Stop::Short)? {
        b' ' => {
            let (text, used) = rest_of_line(line, word_len + 1)?;
            let text = &text[word_len + 1..];
            Ok((if text.is_empty() { word } else { text }, used))
        }
        _ => Ok((word, line_end(line, word_len, UNKNOWN)?)),
    }
}

/// The line without its end, which is looked for from `from` on, behind the word; and its length with the end.
pub(super) fn rest_of_line(line: &[u8], from: usize) -> Step<(&[u8], usize)> {
    let feed = from + memchr(b'\n', &line[from..]).ok_or(Stop::Short)?;
    if line[feed - 1] != b'\r' {
        return Err(UNKNOWN);
    }
    Ok((&line[..feed - 1], feed + 1))
}

/// The number at `from`, and the position of the byte behind it, which is visible.
#[inline]
pub(super) fn decimal(line: &[u8], from: usize) -> Step<(u64, usize)> {
    let mut number = 0u64;
    let mut at = from;
    loop {
        let &byte = line.get(at).ok_or(Stop::Short)?;
        let digit = byte.wrapping_sub(b'0');
        if digit > 9 {
            break;
        }
        number =
            number.checked_mul(10).and_then(|tens| tens.checked_add(u64::from(digit))).ok_or(BAD_NUMBER)?;
        at += 1;
    }
    if at == from { Err(BAD_NUMBER) } else { Ok((number, at)) }
}

/// As [`decimal`], for numbers of 32 bits.
#[inline]
pub(super) fn decimal_u32(line: &[u8], from: usize) -> Step<(u32, usize)> {
    let (number, at) = decimal(line, from)?;
    Ok((u32::try_from(number).map_err(|_| BAD_NUMBER)?, at))
}

/// For how long an error holds. Proxies say of a server that is down what they like, with `SERVER_ERROR`.
pub(super) fn persistence(reply: ReplyKind, text: &[u8]) -> ErrorPersistence {
    let says = |words: &[u8]| text.windows(words.len()).any(|part| part.eq_ignore_ascii_case(words));
    match reply {
        ReplyKind::Error if says(b"too many open connections") => ErrorPersistence::Transient,
        ReplyKind::Error | ReplyKind::ClientError | ReplyKind::Redirect => ErrorPersistence::Permanent,
        _ if says(b"too large") => ErrorPersistence::Permanent,
        _ if says(b"out of memory") => ErrorPersistence::OutOfMemory,
        _ => ErrorPersistence::Transient,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ErrorPersistence::{OutOfMemory, Permanent, Transient};
    use ReplyKind::{ClientError, Error, ServerError};

    #[test]
    fn last_bytes_are_one_to_sixteen() {
        let input = [b'x'; 17];
        for (len, is_held) in [(0, false), (1, true), (16, true), (17, false)] {
            let held = LastBytes::of(&input[..len]);
            assert_eq!(
                held.map(|held| (held.len, held.fit(&input))),
                is_held.then_some((len, true)),
                "{len}"
            );
        }
    }

    #[test]
    fn persistence_of_errors() {
        let table: [(ReplyKind, &[u8], ErrorPersistence); 13] = [
            (Error, b"ERROR", Permanent),
            (Error, b"Unknown command", Permanent),
            (Error, b"Too many open connections", Transient),
            (ClientError, b"line too long", Permanent),
            (ClientError, b"Auth failure.", Permanent),
            (ServerError, b"object too large for cache", Permanent),
            (ServerError, b"Too large.", Permanent),
            (ServerError, b"value too large (status 0x0003)", Permanent),
            (ServerError, b"out of memory storing object", OutOfMemory),
            (ServerError, b"Out of memory", OutOfMemory),
            (ServerError, b"out of memory (status 0x0082)", OutOfMemory),
            (ServerError, b"temporary failure (status 0x0086)", Transient),
            (ServerError, b"Connection refused", Transient),
        ];
        for (reply, text, expected) in table {
            assert_eq!(persistence(reply, text), expected, "{}", String::from_utf8_lossy(text));
        }
    }
}
