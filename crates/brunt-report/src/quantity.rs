//! Quantities as a person reads them: three significant digits and a unit that suits. Counts are exact; no number has a blank in it, so
//! that scripts can cut a line into fields.
//!
//! Three digits say more than most runs support and keep columns narrow. A number that rounds up to a thousand moves on to the next unit: 999.6 us is 1.00 ms.

use brunt_stats::latency::LatencySummary;

/// Units of time with their length in nanoseconds. Microseconds are `us`, so that every column is plain ASCII.
const TIME_UNITS: [(f64, &str); 6] =
    [(1.0, "ns"), (1e3, "us"), (1e6, "ms"), (1e9, "s"), (6e10, "min"), (3.6e12, "h")];

/// Decimal units of bytes, as network rates have them.
const BYTE_UNITS: [(f64, &str); 5] = [(1.0, "B"), (1e3, "kB"), (1e6, "MB"), (1e9, "GB"), (1e12, "TB")];

/// The number rounded to three significant digits, and the power of ten of the first of them.
pub(crate) fn rounded(number: f64) -> (f64, i32) {
    let scientific = format!("{number:.2e}");
    let exponent = scientific.split_once('e').and_then(|(_, exponent)| exponent.parse().ok()).unwrap_or(0);
    (scientific.parse().unwrap_or(number), exponent)
}

/// A number of at least 0 with three significant digits, or all of them where there are more before the point.
pub fn significant(number: f64) -> String {
    if number == 0.0 || !number.is_finite() {
        return "0".to_owned();
    }
    let (value, exponent) = rounded(number);
    let decimals = (2 - exponent).clamp(0, 9) as usize;
    if decimals == 0 { count(number.round() as u64) } else { format!("{value:.decimals$}") }
}

/// The number in the first unit in which it stays below a thousand, else in the last.
fn in_unit(number: f64, units: &[(f64, &str)]) -> String {
    let fits = |(scale, _): &&(f64, &str)| rounded(number / scale).0 < 1e3;
    match units.iter().find(fits).or(units.last()) {
        // Nanoseconds and bytes are whole.
        Some((1.0, unit)) => format!("{} {unit}", count(number.round() as u64)),
        Some((scale, unit)) => format!("{} {unit}", significant(number / scale)),
        None => significant(number),
    }
}

/// A time in nanoseconds.
pub fn time(ns: u64) -> String {
    in_unit(ns as f64, &TIME_UNITS)
}

/// A time in nanoseconds; `-` where it is not known.
pub(crate) fn time_or_dash(ns: Option<u64>) -> String {
    ns.map_or("-".to_owned(), time)
}

/// A time in nanoseconds without its unit, which is that of another time.
pub(crate) fn time_as(unit_of_ns: u64, ns: u64) -> String {
    let unit_of = time(unit_of_ns);
    let scale = TIME_UNITS.iter().find(|(_, unit)| unit_of.ends_with(&format!(" {unit}")));
    significant(ns as f64 / scale.map_or(1.0, |(scale, _)| *scale))
}

/// A number of bytes.
pub fn bytes(bytes: u64) -> String {
    in_unit(bytes as f64, &BYTE_UNITS)
}

/// Bytes per second.
pub(crate) fn byte_rate(bytes_per_second: f64) -> String {
    format!("{}/s", in_unit(bytes_per_second, &BYTE_UNITS))
}

/// An exact number of things.
pub fn count(number: u64) -> String {
    number.to_string()
}

/// A count with the name of what is counted.
pub fn things(number: u64, name: &str) -> String {
    let plural = match number {
        1 => "",
        _ if name.ends_with('s') => "es",
        _ => "s",
    };
    format!("{} {name}{plural}", count(number))
}

/// Those of the counts that are not 0, each with what it counts: `3 lost`.
pub(crate) fn counted<'a>(counts: impl IntoIterator<Item = (&'a str, u64)>) -> impl Iterator<Item = String> {
    counts.into_iter().filter(|(_, number)| *number > 0).map(|(name, number)| format!("{number} {name}"))
}

/// A rate as a number of a table: whole, but where that is less than three digits.
pub(crate) fn rate(per_second: f64) -> String {
    match per_second {
        none if none <= 0.0 => "0".to_owned(),
        few if few < 99.95 => {
            let decimals = if few < 9.995 { 2 } else { 1 };
            format!("{few:.decimals$}")
        }
        many => format!("{many:.0}"),
    }
}

/// The percentiles that are known, and the longest: `p50 88.1 us, p99 1.21 ms, max 2.00 ms`.
pub(crate) fn times(times: &LatencySummary) -> Option<String> {
    let known = [("p50", times.p50_ns()), ("p99", times.p99_ns()), ("max", times.max_ns)];
    let known = known.into_iter().filter_map(|(name, ns)| Some(format!("{name} {}", time(ns?))));
    times.max_ns.map(|_| known.collect::<Vec<_>>().join(", "))
}

/// A part of a whole in per cent that is 100 only where it is all, without the sign; `-` where there is no whole.
pub(crate) fn exact_percent(part: u64, whole: u64) -> String {
    match (part, whole) {
        (_, 0) => "-".to_owned(),
        (part, whole) if part == whole => "100".to_owned(),
        (part, whole) => format!("{:.1}", (part as f64 / whole as f64 * 1_000.0).floor() / 10.0),
    }
}

/// A part of a whole in per cent; `-` where there is no whole.
pub(crate) fn share(part: u64, whole: u64) -> String {
    if whole == 0 { "-".to_owned() } else { format!("{} %", significant(100.0 * part as f64 / whole as f64)) }
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
    }

    #[test]
    fn numbers_counts_and_shares() {
        let table = [
            (0.0, "0"),
            (f64::NAN, "0"),
            (0.5, "0.500"),
            (0.031_25, "0.0312"),
            (1.0, "1.00"),
            (99.95, "100"),
            (123.4, "123"),
            (199_998.4, "199998"),
        ];
        for (number, expected) in table {
            assert_eq!(significant(number), expected, "{number}");
        }
        let things = [(0, "run"), (1, "run"), (1_000, "run"), (1, "class"), (2, "class")];
        let named = things.map(|(number, name)| super::things(number, name));
        assert_eq!(named, ["0 runs", "1 run", "1000 runs", "1 class", "2 classes"]);
        let table = [(0, "0"), (999, "999"), (1_000, "1000"), (12_000_000, "12000000")];
        for (number, expected) in table {
            assert_eq!(count(number), expected);
        }
        assert_eq!(count(u64::MAX), "18446744073709551615");
        assert_eq!(
            [share(9, 10), share(1, 3_000), share(0, 4), share(0, 0)],
            ["90.0 %", "0.0333 %", "0 %", "-"]
        );
    }
}
