//! Quantities as a person reads them, in every text, page and figure: three significant digits and a unit that suits. Counts are exact.
//!
//! Three digits say more than most runs support and keep columns narrow. Invariant: a number that rounds up to a thousand has the next unit:
//! 999.6 us is 1.00 ms.

use std::borrow::Borrow;

/// Units of time with their length in nanoseconds. Microseconds are `us`, so that every column is plain ASCII.
const TIME_UNITS: [(f64, &str); 6] =
    [(1.0, "ns"), (1e3, "us"), (1e6, "ms"), (1e9, "s"), (6e10, "min"), (3.6e12, "h")];

/// Decimal units of bytes, as network rates have them.
const BYTE_UNITS: [(f64, &str); 5] = [(1.0, "B"), (1e3, "kB"), (1e6, "MB"), (1e9, "GB"), (1e12, "TB")];

/// The number rounded to three significant digits, and the power of ten of the first of them.
pub fn rounded(number: f64) -> (f64, i32) {
    let scientific = format!("{number:.2e}");
    let exponent = scientific.split_once('e').and_then(|(_, exponent)| exponent.parse().ok()).unwrap_or(0);
    (scientific.parse().unwrap_or(number), exponent)
}

/// A number with three significant digits, or all of them where there are more before the point.
pub fn significant(number: f64) -> String {
    if number == 0.0 || !number.is_finite() {
        return "0".to_owned();
    }
    let (value, exponent) = rounded(number);
    let decimals = (2 - exponent).clamp(0, 9) as usize;
    if decimals == 0 { format!("{:.0}", number.round()) } else { format!("{value:.decimals$}") }
}

/// The number in the first unit in which it stays below a thousand, else in the last.
fn in_unit(number: f64, units: &[(f64, &'static str)]) -> (String, &'static str) {
    let fits = |(scale, _): &&(f64, &str)| rounded(number / scale).0 < 1e3;
    match units.iter().find(fits).or(units.last()) {
        // Nanoseconds and bytes are whole.
        Some((1.0, unit)) => (format!("{:.0}", number.round()), unit),
        Some((scale, unit)) => (significant(number / scale), unit),
        None => (significant(number), ""),
    }
}

/// A time in nanoseconds.
pub fn time(ns: u64) -> String {
    let (number, unit) = in_unit(ns as f64, &TIME_UNITS);
    format!("{number} {unit}")
}

/// A time in nanoseconds that is a round number, such as one on an axis: without zeros at the end of its decimals.
pub fn round_time(ns: u64) -> String {
    let (number, unit) = in_unit(ns as f64, &TIME_UNITS);
    let number =
        if number.contains('.') { number.trim_end_matches('0').trim_end_matches('.') } else { &number };
    format!("{number} {unit}")
}

/// A time in nanoseconds without its unit, which is that of another time.
pub fn time_as(unit_of_ns: u64, ns: u64) -> String {
    let (_, unit_of) = in_unit(unit_of_ns as f64, &TIME_UNITS);
    let scale = TIME_UNITS.iter().find(|(_, unit)| *unit == unit_of);
    significant(ns as f64 / scale.map_or(1.0, |(scale, _)| *scale))
}

/// A number of bytes.
pub fn bytes(bytes: u64) -> String {
    let (number, unit) = in_unit(bytes as f64, &BYTE_UNITS);
    format!("{number} {unit}")
}

/// Bytes per second.
pub fn byte_rate(bytes_per_second: f64) -> String {
    let (number, unit) = in_unit(bytes_per_second, &BYTE_UNITS);
    format!("{number} {unit}/s")
}

/// A fraction in per cent.
pub fn percent(fraction: f64) -> String {
    format!("{} %", significant(fraction * 100.0))
}

/// Several names as a sentence has them: `a, b and c`.
pub fn listed(names: &[impl Borrow<str>]) -> String {
    match names {
        [] => String::new(),
        [one] => one.borrow().to_owned(),
        [others @ .., last] => format!("{} and {}", others.join(", "), last.borrow()),
    }
}

/// Each of them once, in the order in which they come.
pub fn each_once<T: PartialEq>(names: impl IntoIterator<Item = T>) -> Vec<T> {
    let mut once = Vec::new();
    for name in names {
        if !once.contains(&name) {
            once.push(name);
        }
    }
    once
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_and_bytes_have_three_digits() {
        let table = [
            (0, "0 ns", "0 B"),
            (7, "7 ns", "7 B"),
            (999, "999 ns", "999 B"),
            (1_000, "1.00 us", "1.00 kB"),
            (9_994, "9.99 us", "9.99 kB"),
            (9_996, "10.0 us", "10.0 kB"),
            (99_960, "100 us", "100 kB"),
            (412_345, "412 us", "412 kB"),
            (999_499, "999 us", "999 kB"),
            (999_500, "1.00 ms", "1.00 MB"),
            (999_600, "1.00 ms", "1.00 MB"),
            (1_210_000, "1.21 ms", "1.21 MB"),
            (47_000_000_000, "47.0 s", "47.0 GB"),
            (999_000_000_000, "999 s", "999 GB"),
            (1_000_000_000_000, "16.7 min", "1.00 TB"),
            (86_400_000_000_000, "24.0 h", "86.4 TB"),
            (5_000_000_000_000_000, "1389 h", "5000 TB"),
        ];
        for (number, expected_time, expected_bytes) in table {
            assert_eq!((time(number).as_str(), bytes(number).as_str()), (expected_time, expected_bytes));
        }
        assert_eq!([byte_rate(0.4), byte_rate(45_260_000.0)], ["0 B/s", "45.3 MB/s"]);
        let round = [0, 200, 1_500, 20_000_000, 999_600, 3_000_000_000].map(round_time);
        assert_eq!(round, ["0 ns", "200 ns", "1.5 us", "20 ms", "1 ms", "3 s"]);
        assert_eq!(time_as(999_600, 412_345), "0.412");
    }

    #[test]
    fn the_last_of_several_names_has_an_and() {
        let names = ["a", "b", "c"];
        assert_eq!([0, 1, 2, 3].map(|count| listed(&names[..count])), ["", "a", "a and b", "a, b and c"]);
    }

    #[test]
    fn numbers_and_fractions_have_three_digits() {
        let table = [
            (0.0, "0"),
            (f64::NAN, "0"),
            (0.5, "0.500"),
            (0.031_25, "0.0312"),
            (1.0, "1.00"),
            (-2.5, "-2.50"),
            (99.95, "100"),
            (123.4, "123"),
            (199_998.4, "199998"),
        ];
        for (number, expected) in table {
            assert_eq!(significant(number), expected, "{number}");
        }
        let percents = [0.0, 0.009_996, 0.099_96, 0.999_6, 1.0, 1.0 / 3_000.0].map(percent);
        assert_eq!(percents, ["0 %", "1.00 %", "10.0 %", "100 %", "100 %", "0.0333 %"]);
    }
}
