//! Lines of the protocol: where they end, and the numbers that they consist of.
//!
//! A function that cannot tell yet says [`Stop::Short`], and says the same of the same bytes for ever.

use crate::Malformed;
use crate::step::{BAD_NUMBER, Step, Stop, UNKNOWN};
use memchr::memchr;

/// What is behind the first byte of a value that has a length.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Length {
    /// The number of bytes or elements.
    Of(u32),
    /// -1: there is no value.
    Null,
}

/// The line without its end, and its length with it.
pub(super) fn text(line: &[u8]) -> Step<(&[u8], usize)> {
    let feed = memchr(b'\n', line).ok_or(Stop::Short)?;
    match line[..feed].split_last() {
        Some((b'\r', text)) if !text.is_empty() => Ok((text, feed + 1)),
        _ => Err(UNKNOWN),
    }
}

/// The length behind the first byte of the line, and the position of the byte behind it, which is visible.
#[inline]
pub(super) fn length(line: &[u8]) -> Step<(Length, usize)> {
    match line.get(1).ok_or(Stop::Short)? {
        b'-' => match line.get(2).ok_or(Stop::Short)? {
            b'1' if line.len() > 3 => Ok((Length::Null, 3)),
            b'1' => Err(Stop::Short),
            _ => Err(BAD_NUMBER),
        },
        b'?' => Err(Stop::Bad(Malformed::Streamed)),
        _ => {
            let (mut number, mut at) = (0u64, 1);
            loop {
                let digit = line.get(at).ok_or(Stop::Short)?.wrapping_sub(b'0');
                if digit > 9 {
                    break;
                }
                number = 10 * number + u64::from(digit);
                if number > u64::from(u32::MAX) {
                    return Err(BAD_NUMBER);
                }
                at += 1;
            }
            if at == 1 { Err(BAD_NUMBER) } else { Ok((Length::Of(number as u32), at)) }
        }
    }
}

/// The number behind the colon of an integer.
pub(super) fn integer(text: &[u8]) -> Step<i64> {
    let (is_negative, digits) = signed(text);
    // Downwards, because there is one number more below zero than above it.
    let below = digits.iter().try_fold(0i64, |number, byte| {
        let digit = byte.wrapping_sub(b'0');
        let tens = number.checked_mul(10).filter(|_| digit <= 9)?;
        tens.checked_sub(i64::from(digit))
    });
    let below = below.filter(|_| !digits.is_empty()).ok_or(BAD_NUMBER)?;
    if is_negative { Ok(below) } else { below.checked_neg().ok_or(BAD_NUMBER) }
}

/// Is this an integer of any size?
pub(super) fn big_number(text: &[u8]) -> Step<()> {
    let (_, digits) = signed(text);
    let is_number = !digits.is_empty() && digits.iter().all(u8::is_ascii_digit);
    if is_number { Ok(()) } else { Err(BAD_NUMBER) }
}

/// Is this a floating-point number? Servers before Redis 7.2 write what is none in the way of their C library, which may
/// be `-nan` or `nan(…)`.
pub(super) fn double(text: &[u8]) -> Step<()> {
    let (_, size) = signed(text);
    let is_none = size.get(..3).is_some_and(|word| word.eq_ignore_ascii_case(b"nan"));
    let is_number = std::str::from_utf8(size).is_ok_and(|size| size.parse::<f64>().is_ok());
    if is_none || (is_number && !matches!(size, [b'+' | b'-', ..])) { Ok(()) } else { Err(BAD_NUMBER) }
}

/// Is there a minus, and what is behind the sign?
fn signed(text: &[u8]) -> (bool, &[u8]) {
    match text {
        [b'-', size @ ..] => (true, size),
        [b'+', size @ ..] | size => (false, size),
    }
}
