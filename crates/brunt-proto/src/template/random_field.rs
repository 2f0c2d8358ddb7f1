//! Random bytes and numbers (`{rand:MIN,MAX}`) of a command: functions of the operation's own number and of the place of the draw.
//!
//! Nothing here holds state.

use brunt_plan::split_mix::output;

/// What random bytes are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RandomField {
    /// Letters and digits, each as often as the others.
    Letters,
    /// Any bytes.
    Bytes,
    /// 0 or 1.
    Bool,
    /// The eight bytes of a floating-point number from 0 to 1, the highest first.
    UnitDouble,
}

const LETTERS: &[u8; 62] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789";

impl RandomField {
    /// The bytes from `at` on of an operation's draws, as many as `to` has room for.
    pub(super) fn write(self, number: u64, at: u64, to: &mut [u8]) {
        match self {
            Self::UnitDouble => {
                let double = (output(number, at) >> 11) as f64 / (1_u64 << 53) as f64;
                to.copy_from_slice(&double.to_be_bytes());
            }
            _ => to.iter_mut().zip(at..).for_each(|(byte, at)| *byte = self.byte(output(number, at))),
        }
    }

    fn byte(self, draw: u64) -> u8 {
        match self {
            Self::Letters => LETTERS[(((draw >> 32) * LETTERS.len() as u64) >> 32) as usize],
            Self::Bytes | Self::UnitDouble => (draw >> 56) as u8,
            Self::Bool => (draw >> 63) as u8,
        }
    }
}

/// Its draws lie behind those of all letters of a command.
const FIRST_DRAW: u64 = 1 << 63;

/// A number from `min` to `max`, each as often as the others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Number {
    min: i64,
    max: i64,
    /// The place of its draw.
    from: u64,
}

impl Number {
    /// The longest decimal: `-9223372036854775808`.
    pub(super) const BYTES_MAX: usize = 20;

    /// What `MIN,MAX` says; `None` if that is no range.
    pub(super) fn parse(text: &str) -> Option<Self> {
        let (min, max) = text.split_once(',')?;
        let (min, max) = (min.parse().ok()?, max.parse().ok()?);
        (min <= max).then_some(Self { min, max, from: FIRST_DRAW })
    }

    /// The number at this place of its command: no two have the same draw.
    pub(super) fn at(self, place: usize) -> Self {
        Self { from: FIRST_DRAW + place as u64, ..self }
    }

    fn value(self, operand: u64) -> i128 {
        let span = (i128::from(self.max) - i128::from(self.min) + 1) as u128;
        // The high half of the product: off by less than a part in 2^64 / span.
        let above = (u128::from(output(operand, self.from)) * span) >> 64;
        i128::from(self.min) + above as i128
    }

    /// The decimal of an operation, in the end of `room`.
    pub(super) fn decimal(self, operand: u64, room: &mut [u8; Self::BYTES_MAX]) -> &[u8] {
        let value = self.value(operand);
        let mut rest = value.unsigned_abs() as u64;
        let mut at = Self::BYTES_MAX;
        loop {
            at -= 1;
            room[at] = b'0' + (rest % 10) as u8;
            rest /= 10;
            if rest == 0 {
                break;
            }
        }
        if value < 0 {
            at -= 1;
            room[at] = b'-';
        }
        &room[at..]
    }

    /// How long that is.
    pub(super) fn len(self, operand: u64) -> usize {
        self.decimal(operand, &mut [0; Self::BYTES_MAX]).len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, expected: Option<(i64, i64)>) {
        let number = Number::parse(text);
        assert_eq!(number.map(|number| (number.min, number.max)), expected, "{text}");
    }

    #[test]
    fn ranges() {
        check("1,100", Some((1, 100)));
        check("-3,-3", Some((-3, -3)));
        check("-9223372036854775808,9223372036854775807", Some((i64::MIN, i64::MAX)));
        for text in ["", "1", "2,1", "1,", "a,b", "1,2,3", "1,9223372036854775808"] {
            check(text, None);
        }
    }

    #[test]
    fn numbers_of_a_range_are_uniform() {
        let number = Number::parse("-2,7").unwrap();
        let mut counts = [0_i64; 10];
        for operand in 0..100_000_u64 {
            let mut room = [0; Number::BYTES_MAX];
            let text = std::str::from_utf8(number.decimal(output(7, operand), &mut room)).unwrap().to_owned();
            assert_eq!(number.len(output(7, operand)), text.len());
            counts[(text.parse::<i64>().unwrap() + 2) as usize] += 1;
        }
        // Four standard deviations of 100000 draws with a share of 0.1.
        assert!(counts.iter().all(|count| (count - 10_000).abs() < 380), "{counts:?}");
    }

    #[test]
    fn the_widest_range_does_not_overflow() {
        for text in ["-9223372036854775808,-9223372036854775808", "9223372036854775807,9223372036854775807"] {
            let mut room = [0; Number::BYTES_MAX];
            let decimal = Number::parse(text).unwrap().decimal(3, &mut room);
            assert_eq!(std::str::from_utf8(decimal).unwrap(), text.split(',').next().unwrap());
        }
    }
}
