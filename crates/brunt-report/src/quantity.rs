//! Quantities as the cells and sentences of reports have them. Counts are exact; no number has a blank in it, so that scripts can cut a
//! line into fields.

pub(crate) use brunt_plan::quantity::{byte_rate, percent, round_time, rounded, time_as};
pub use brunt_plan::quantity::{bytes, significant, time};

use brunt_plan::objective::Metric;
use brunt_stats::latency::LatencySummary;

/// A time in nanoseconds; `-` where it is not known.
pub(crate) fn time_or_dash(ns: Option<u64>) -> String {
    ns.map_or("-".to_owned(), time)
}

/// A count with the name of what is counted.
pub fn things(number: u64, name: &str) -> String {
    let plural = match number {
        1 => "",
        _ if name.ends_with('s') => "es",
        _ => "s",
    };
    format!("{number} {name}{plural}")
}

/// Those of the counts that are not 0, each with what it counts: `3 lost`.
pub(crate) fn counted<'a>(counts: impl IntoIterator<Item = (&'a str, u64)>) -> impl Iterator<Item = String> {
    counts.into_iter().filter(|(_, number)| *number > 0).map(|(name, number)| format!("{number} {name}"))
}

/// A rate as a number of a table: whole, but where that is less than three digits.
pub fn rate(per_second: f64) -> String {
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
pub fn share(part: u64, whole: u64) -> String {
    if whole == 0 { "-".to_owned() } else { percent(part as f64 / whole as f64) }
}

/// A value of a metric, in nanoseconds, requests per second, or as a share from 0 to 1.
pub(crate) fn of_metric(metric: Metric, value: f64) -> String {
    match metric {
        Metric::Response(_) | Metric::Service(_) | Metric::Client(_) => time(value.round() as u64),
        Metric::Rate => format!("{}/s", significant(value)),
        Metric::Hit | Metric::Errors | Metric::Unsent => close_percent(value),
    }
}

/// A share in per cent. Close to a whole, what is missing has three digits: 99.9 % and 99.99 % are not the same.
fn close_percent(share: f64) -> String {
    if (0.9..1.0).contains(&share) {
        let missing = significant((1.0 - share) * 100.0);
        let decimals = missing.split_once('.').map_or(0, |(_, digits)| digits.len());
        format!("{:.decimals$} %", share * 100.0)
    } else {
        format!("{} %", significant(share * 100.0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_and_shares() {
        let things = [(0, "run"), (1, "run"), (1_000, "run"), (1, "class"), (2, "class")];
        let named = things.map(|(number, name)| super::things(number, name));
        assert_eq!(named, ["0 runs", "1 run", "1000 runs", "1 class", "2 classes"]);
        assert_eq!(
            [share(9, 10), share(1, 3_000), share(0, 4), share(0, 0)],
            ["90.0 %", "0.0333 %", "0 %", "-"]
        );
    }

    #[test]
    fn metrics_have_units() {
        let table = [
            ("p99", 1_210_400.0, "1.21 ms"),
            ("service.mean", 88_123.4, "88.1 us"),
            ("rate", 199_998.4, "199998/s"),
            ("hit", 0.5, "50.0 %"),
            ("hit", 1.0, "100 %"),
            ("hit", 0.949_96, "95.00 %"),
            ("hit", 0.999_9, "99.9900 %"),
            ("errors", 0.000_333, "0.0333 %"),
            ("unsent", 0.0, "0 %"),
        ];
        for (metric, value, expected) in table {
            assert_eq!(of_metric(metric.parse().unwrap(), value), expected, "{metric}");
        }
    }
}
