//! Quantities with their units: durations, rates, sizes, counts; parsing and printing.
//!
//! Not a calendar and not floating point: every quantity is an exact integer, so that a plan that is printed and read
//! again is the same plan. Printing uses the largest unit that loses nothing.

use std::fmt;

/// Gives a type its text form, of which it says how it is read (`of_text`) and how it is written (`write_text`): in flags, plan files and
/// results alike. Bare numbers are accepted where the text form would accept them.
macro_rules! text_form {
    ($type:ty, without serde) => {
        impl std::str::FromStr for $type {
            type Err = String;

            fn from_str(text: &str) -> Result<Self, String> {
                Self::of_text(text)
            }
        }
        impl std::fmt::Display for $type {
            fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                self.write_text(formatter)
            }
        }
    };
    ($type:ty) => {
        $crate::units::text_form!($type, without serde);
        impl serde::Serialize for $type {
            fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.collect_str(self)
            }
        }
        impl<'de> serde::Deserialize<'de> for $type {
            fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                // Only what people write has numbers where a text is meant; what hosts send each other does not say what comes.
                let text = match deserializer.is_human_readable() {
                    true => deserializer.deserialize_any($crate::units::TextOrNumber)?,
                    false => deserializer.deserialize_str($crate::units::TextOrNumber)?,
                };
                text.parse().map_err(serde::de::Error::custom)
            }
        }
    };
}
pub(crate) use text_form;

/// Accepts a string or a number and yields its text.
pub(crate) struct TextOrNumber;

impl serde::de::Visitor<'_> for TextOrNumber {
    type Value = String;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("a string or a number")
    }
    fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<String, E> {
        Ok(text.to_owned())
    }
    fn visit_i64<E: serde::de::Error>(self, number: i64) -> Result<String, E> {
        Ok(number.to_string())
    }
    fn visit_u64<E: serde::de::Error>(self, number: u64) -> Result<String, E> {
        Ok(number.to_string())
    }
    fn visit_f64<E: serde::de::Error>(self, number: f64) -> Result<String, E> {
        Ok(number.to_string())
    }
}

/// Splits `12.5ms` into its number and its unit.
fn split_number(text: &str) -> (&str, &str) {
    let end = text.find(|c: char| !(c.is_ascii_digit() || c == '.')).unwrap_or(text.len());
    text.split_at(end)
}

/// `number × scale` as an exact integer: `None` when the text is no plain decimal, when a fraction of the smallest
/// unit would be left over, or when the product does not fit.
pub(crate) fn scaled(number: &str, scale: u64) -> Option<u64> {
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    if whole.is_empty() || (number.contains('.') && fraction.is_empty()) || fraction.len() > 18 {
        return None;
    }
    if !whole.bytes().all(|b| b.is_ascii_digit()) || !fraction.bytes().all(|b| b.is_ascii_digit()) {
        return None;
    }
    let denominator = 10u128.pow(fraction.len() as u32);
    let digits: u128 = format!("{whole}{fraction}").parse().ok()?;
    let product = digits.checked_mul(u128::from(scale))?;
    (product % denominator == 0).then(|| u64::try_from(product / denominator).ok()).flatten()
}

/// The smallest units of a quantity that a text stands for, or what is `expected`.
fn quantity(text: &str, units: &[(&str, u64)], expected: &str) -> Result<u64, String> {
    let (number, unit) = split_number(text.trim());
    let scale = units.iter().find(|(name, _)| *name == unit).map(|(_, scale)| *scale);
    scale.and_then(|scale| scaled(number, scale)).ok_or_else(|| expected.to_owned())
}

/// `number / scale`, a power of ten, as a decimal without zeros at its end.
pub(crate) fn decimal(number: u64, scale: u64) -> String {
    let (whole, rest) = (number / scale, number % scale);
    let digits = format!("{rest:00$}", scale.ilog10() as usize);
    match digits.trim_end_matches('0') {
        "" => whole.to_string(),
        digits => format!("{whole}.{digits}"),
    }
}

/// A span of time in nanoseconds. Text form: `10s`, `500us`, `1.5ms`, `2m`, `1h`; `0` needs no unit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct DurationNs(pub u64);

const DURATION_UNITS: [(&str, u64); 7] = [
    ("h", 3_600_000_000_000),
    ("m", 60_000_000_000),
    ("s", 1_000_000_000),
    ("ms", 1_000_000),
    ("us", 1_000),
    ("ns", 1),
    ("µs", 1_000),
];

impl DurationNs {
    /// Whole seconds.
    pub const fn from_secs(seconds: u64) -> Self {
        Self(seconds * 1_000_000_000)
    }
    /// Whole milliseconds.
    pub const fn from_millis(millis: u64) -> Self {
        Self(millis * 1_000_000)
    }
    /// As seconds, for arithmetic that ends in a report.
    pub fn as_secs_f64(self) -> f64 {
        self.0 as f64 / 1e9
    }

    fn of_text(text: &str) -> Result<Self, String> {
        const EXPECTED: &str = "expected a duration with its unit, such as 10s, 500us, 1.5ms, 2m";
        match quantity(text, &[("", 1)], EXPECTED) {
            Ok(0) => Ok(Self(0)),
            _ => quantity(text, &DURATION_UNITS, EXPECTED).map(Self),
        }
    }

    fn write_text(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (unit, scale) = DURATION_UNITS
            .iter()
            .find(|(_, scale)| self.0 != 0 && self.0.is_multiple_of(*scale))
            .unwrap_or(&DURATION_UNITS[2]);
        write!(formatter, "{}{unit}", self.0 / scale)
    }
}
text_form!(DurationNs);

/// Events per second, in millionths of an event per second so that `0.5/s` and `333333.25/s` are exact.
/// Text form: `200k`, `200k/s`, `1.5M/s`, `0.5/s`. It is above 0, except in a point of a rate profile
/// ([`crate::arrival::RatePoint::rate`]); the text form has no 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Rate {
    /// Millionths of an event per second; at least 1 (0 only in a point of a rate profile), at most 10¹⁵ (a billion a second).
    pub micro_per_second: u64,
}

impl Rate {
    /// A whole number of events per second.
    pub const fn per_second(events: u64) -> Self {
        Self { micro_per_second: events * 1_000_000 }
    }
    /// As a float, for samplers and reports.
    pub fn as_f64(self) -> f64 {
        self.micro_per_second as f64 / 1e6
    }
    /// When event `index` (from 0) of an evenly spaced stream is due: `floor(index · 10⁹ / rate)` nanoseconds, exact
    /// and without drift. The product fits 128 bits for every index and rate. The rate is above 0.
    pub fn slot_ns(self, index: u64) -> u64 {
        debug_assert!(self.micro_per_second > 0, "a stream without events has no slots");
        let numerator = u128::from(index) * 1_000_000_000_000_000;
        u64::try_from(numerator / u128::from(self.micro_per_second)).unwrap_or(u64::MAX)
    }

    fn of_text(text: &str) -> Result<Self, String> {
        const EXPECTED: &str = "expected a number per second above 0, such as 1000, 200k, 1.5M/s";
        const UNITS: [(&str, u64); 4] =
            [("", 1_000_000), ("k", 1_000_000_000), ("K", 1_000_000_000), ("M", 1_000_000_000_000)];
        let plain = text.trim();
        match quantity(plain.strip_suffix("/s").unwrap_or(plain), &UNITS, EXPECTED)? {
            micro_per_second @ 1..=1_000_000_000_000_000 => Ok(Self { micro_per_second }),
            _ => Err(EXPECTED.to_owned()),
        }
    }

    fn write_text(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}/s", decimal(self.micro_per_second, 1_000_000))
    }
}
text_form!(Rate);

/// A number of bytes. Text form: `200`, `200B`, `4KiB`, `1MiB`, `2GiB`; `4k`, `4kB`, `1M`, `2G` are decimal multiples, as in every
/// other quantity.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ByteSize(pub u64);

/// Those that sizes are printed in.
const SIZE_UNITS: [(&str, u64); 3] = [("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10)];
/// Decimal multiples, of counts and of bytes.
const DECIMAL_UNITS: [(&str, u64); 7] = [
    ("", 1),
    ("k", 1_000),
    ("K", 1_000),
    ("m", 1_000_000),
    ("M", 1_000_000),
    ("g", 1_000_000_000),
    ("G", 1_000_000_000),
];

impl ByteSize {
    fn of_text(text: &str) -> Result<Self, String> {
        const EXPECTED: &str = "expected a size in bytes, such as 200, 4KiB, 1MiB";
        let without_unit = text.trim_end().strip_suffix('B').unwrap_or(text);
        let size = quantity(text, &SIZE_UNITS, EXPECTED);
        size.or_else(|_| quantity(without_unit, &DECIMAL_UNITS, EXPECTED)).map(Self)
    }

    fn write_text(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match SIZE_UNITS.iter().find(|(_, scale)| self.0 != 0 && self.0.is_multiple_of(*scale)) {
            Some((unit, scale)) => write!(formatter, "{}{unit}", self.0 / scale),
            None => write!(formatter, "{}", self.0),
        }
    }
}
text_form!(ByteSize);

/// A number of things. Text form: `1000`, `100k`, `1.5M`, `2G` (decimal multiples). Printed as a bare number.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Count(pub u64);

impl Count {
    fn of_text(text: &str) -> Result<Self, String> {
        quantity(text, &DECIMAL_UNITS, "expected a whole number, such as 1000, 100k, 2M").map(Self)
    }

    fn write_text(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}", self.0)
    }
}
text_form!(Count, without serde);

impl serde::Serialize for Count {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        // TOML integers end at i64; a larger seed or key count travels as text.
        match i64::try_from(self.0) {
            Ok(number) => serializer.serialize_i64(number),
            Err(_) => serializer.collect_str(self),
        }
    }
}

impl<'de> serde::Deserialize<'de> for Count {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = deserializer.deserialize_any(TextOrNumber)?;
        text.parse().map_err(serde::de::Error::custom)
    }
}

/// The texts of these, with commas between them.
pub(crate) fn joined<T: fmt::Display>(items: impl IntoIterator<Item = T>) -> String {
    items.into_iter().map(|item| item.to_string()).collect::<Vec<_>>().join(",")
}

/// Splits `name:a,b` into name and arguments; a bare number is its own name.
pub(crate) fn name_and_arguments(text: &str) -> (&str, Vec<&str>) {
    match text.trim().split_once(':') {
        Some((name, arguments)) => (name, arguments.split(',').map(str::trim).collect()),
        None => (text.trim(), Vec::new()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn printed_values_read_back(ns in any::<u64>(), micro in 1..=1_000_000_000_000_000u64, bytes in any::<u64>()) {
            prop_assert_eq!(DurationNs(ns).to_string().parse(), Ok(DurationNs(ns)));
            let rate = Rate { micro_per_second: micro };
            prop_assert_eq!(rate.to_string().parse(), Ok(rate));
            prop_assert_eq!(ByteSize(bytes).to_string().parse(), Ok(ByteSize(bytes)));
        }
    }
}
