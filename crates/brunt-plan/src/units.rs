//! Quantities with their units: durations, rates, sizes, counts; parsing and printing.
//!
//! Not a calendar and not floating point: every quantity is an exact integer, so that a plan that is printed and read
//! again is the same plan. Printing uses the largest unit that loses nothing.

use std::fmt;
use std::str::FromStr;

/// Implements serde through `Display` and `FromStr`, so that a plan file, a flag and a result speak one language.
/// Bare numbers are accepted where the text form would accept them.
macro_rules! serde_as_text {
    ($type:ty) => {
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
pub(crate) use serde_as_text;

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

/// A span of time in nanoseconds. Text form: `10s`, `500us`, `1.5ms`, `2m`, `1h`; `0` needs no unit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct DurationNs(pub u64);

const DURATION_UNITS: [(&str, u64); 6] = [
    ("h", 3_600_000_000_000),
    ("m", 60_000_000_000),
    ("s", 1_000_000_000),
    ("ms", 1_000_000),
    ("us", 1_000),
    ("ns", 1),
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
}

impl FromStr for DurationNs {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (number, unit) = split_number(text.trim());
        let scale = match unit {
            "" if scaled(number, 1) == Some(0) => Some(1),
            "µs" => Some(1_000),
            _ => DURATION_UNITS.iter().find(|(name, _)| *name == unit).map(|(_, scale)| *scale),
        };
        scale
            .and_then(|scale| scaled(number, scale))
            .map(Self)
            .ok_or_else(|| "expected a duration with its unit, such as 10s, 500us, 1.5ms, 2m".to_owned())
    }
}

impl fmt::Display for DurationNs {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (unit, scale) = DURATION_UNITS
            .iter()
            .find(|(_, scale)| self.0 != 0 && self.0.is_multiple_of(*scale))
            .unwrap_or(&DURATION_UNITS[2]);
        write!(formatter, "{}{unit}", self.0 / scale)
    }
}
serde_as_text!(DurationNs);

/// Events per second, in millionths of an event per second so that `0.5/s` and `333333.25/s` are exact.
/// Text form: `200k`, `200k/s`, `1.5M/s`, `0.5/s`. Zero is not a rate.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Rate {
    /// Millionths of an event per second; at least 1, at most 10¹⁵ (a billion a second).
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
    /// and without drift. The product fits 128 bits for every index and rate.
    pub fn slot_ns(self, index: u64) -> u64 {
        let numerator = u128::from(index) * 1_000_000_000_000_000;
        u64::try_from(numerator / u128::from(self.micro_per_second)).unwrap_or(u64::MAX)
    }
}

impl FromStr for Rate {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let plain = text.trim();
        let (number, unit) = split_number(plain.strip_suffix("/s").unwrap_or(plain));
        let scale = match unit {
            "" => Some(1_000_000),
            "k" | "K" => Some(1_000_000_000),
            "M" => Some(1_000_000_000_000),
            _ => None,
        };
        scale
            .and_then(|scale| scaled(number, scale))
            .filter(|micro| (1..=1_000_000_000_000_000).contains(micro))
            .map(|micro_per_second| Self { micro_per_second })
            .ok_or_else(|| "expected a number per second above 0, such as 1000, 200k, 1.5M/s".to_owned())
    }
}

impl fmt::Display for Rate {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (whole, fraction) = (self.micro_per_second / 1_000_000, self.micro_per_second % 1_000_000);
        if fraction == 0 {
            write!(formatter, "{whole}/s")
        } else {
            let digits = format!("{fraction:06}");
            write!(formatter, "{whole}.{}/s", digits.trim_end_matches('0'))
        }
    }
}
serde_as_text!(Rate);

/// A number of bytes. Text form: `200`, `200B`, `4KiB`, `4KB` (1000), `1MiB`, `2GiB`; `k`, `m`, `g` alone mean KiB, MiB, GiB
/// as memcached's own options do.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ByteSize(pub u64);

const SIZE_UNITS: [(&str, u64); 3] = [("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10)];

impl FromStr for ByteSize {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (number, unit) = split_number(text.trim());
        let scale = match unit {
            "" | "B" => Some(1),
            "k" | "K" => Some(1 << 10),
            "m" | "M" => Some(1 << 20),
            "g" | "G" => Some(1 << 30),
            "KB" | "kB" => Some(1_000),
            "MB" => Some(1_000_000),
            "GB" => Some(1_000_000_000),
            _ => SIZE_UNITS.iter().find(|(name, _)| *name == unit).map(|(_, scale)| *scale),
        };
        scale
            .and_then(|scale| scaled(number, scale))
            .map(Self)
            .ok_or_else(|| "expected a size in bytes, such as 200, 4KiB, 1MiB".to_owned())
    }
}

impl fmt::Display for ByteSize {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match SIZE_UNITS.iter().find(|(_, scale)| self.0 != 0 && self.0.is_multiple_of(*scale)) {
            Some((unit, scale)) => write!(formatter, "{}{unit}", self.0 / scale),
            None => write!(formatter, "{}", self.0),
        }
    }
}
serde_as_text!(ByteSize);

/// A number of things. Text form: `1000`, `100k`, `1.5M`, `2G` (decimal multiples). Printed as a bare number.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Count(pub u64);

impl FromStr for Count {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (number, unit) = split_number(text.trim());
        let scale = match unit {
            "" => Some(1),
            "k" | "K" => Some(1_000),
            "M" | "m" => Some(1_000_000),
            "G" | "g" => Some(1_000_000_000),
            _ => None,
        };
        scale
            .and_then(|scale| scaled(number, scale))
            .map(Self)
            .ok_or_else(|| "expected a whole number, such as 1000, 100k, 2M".to_owned())
    }
}

impl fmt::Display for Count {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}", self.0)
    }
}

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

/// Splits `name:a,b` into name and arguments; a bare number is its own name.
pub(crate) fn name_and_arguments(text: &str) -> (&str, Vec<&str>) {
    match text.trim().split_once(':') {
        Some((name, arguments)) => (name, arguments.split(',').map(str::trim).collect()),
        None => (text.trim(), Vec::new()),
    }
}

/// Checks that texts parse and print as expected.
#[cfg(test)]
pub(crate) fn check<T: FromStr<Err = String> + fmt::Display + PartialEq + fmt::Debug>(
    table: &[(&str, &str)],
) {
    for (text, expected) in table {
        let value: T = text.parse().unwrap();
        assert_eq!(value.to_string(), *expected, "{text:?}");
        assert_eq!(expected.parse(), Ok(value));
    }
}

/// Checks the messages of texts that do not parse.
#[cfg(test)]
pub(crate) fn check_faults<T: FromStr<Err = String> + fmt::Debug>(table: &[(&str, &str)]) {
    for (text, fault) in table {
        let error = text.parse::<T>().unwrap_err();
        assert_eq!(error.strip_prefix(&format!("{text}: ")), Some(*fault), "{error}");
    }
}

/// Tests what texts of a type read as: each with the text that its value prints as, or none where it is no value.
#[cfg(test)]
pub(crate) fn check_texts<T: FromStr<Err = String> + fmt::Display>(table: &[(&str, Option<&str>)]) {
    for (text, expected) in table {
        let printed = text.parse::<T>().ok().map(|value| value.to_string());
        assert_eq!(printed.as_deref(), *expected, "{text:?}");
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn durations() {
        check_texts::<DurationNs>(&[
            ("10s", Some("10s")),
            ("0", Some("0s")),
            ("0ms", Some("0s")),
            ("500us", Some("500us")),
            ("500µs", Some("500us")),
            ("1.5ms", Some("1500us")),
            ("90s", Some("90s")),
            ("120s", Some("2m")),
            ("0.5h", Some("30m")),
            ("1.5ns", None),
            ("10", None),
            ("s", None),
            ("-1s", None),
            ("1e3s", None),
            ("10 s", None),
            ("", None),
            ("99999999999999h", None),
        ]);
    }

    #[test]
    fn rates() {
        check_texts::<Rate>(&[
            ("200k", Some("200000/s")),
            ("200k/s", Some("200000/s")),
            ("1.5M", Some("1500000/s")),
            ("0.5/s", Some("0.5/s")),
            ("333333.25", Some("333333.25/s")),
            ("0", None),
            ("0.0000001", None),
            ("2G", None),
            ("1000M", Some("1000000000/s")),
            ("1001M", None),
            ("fast", None),
            ("/s", None),
        ]);
    }

    #[test]
    fn sizes_and_counts() {
        check_texts::<ByteSize>(&[
            ("200", Some("200")),
            ("4KiB", Some("4KiB")),
            ("4KB", Some("4000")),
            ("1.5KiB", Some("1536")),
            ("64m", Some("64MiB")),
            ("1MiB", Some("1MiB")),
            ("1.3", None),
            ("4XB", None),
        ]);
        check_texts::<Count>(&[
            ("100k", Some("100000")),
            ("1.5M", Some("1500000")),
            ("1.5", None),
            ("many", None),
        ]);
    }

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
