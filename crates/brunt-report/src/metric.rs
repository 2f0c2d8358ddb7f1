//! The numbers that can be asserted and compared, as a person reads them.
//!
//! Not their values (the summary's, or a result's): the unit of each metric.

use crate::quantity;
use brunt_plan::objective::Metric;

/// A value of a metric, in nanoseconds, requests per second, or as a share from 0 to 1.
pub(crate) fn text(metric: Metric, value: f64) -> String {
    match metric {
        Metric::Response(_) | Metric::Service(_) => quantity::time(value.round() as u64),
        Metric::Rate => format!("{}/s", quantity::significant(value)),
        Metric::Hit | Metric::Errors | Metric::Unsent => percent(value),
    }
}

/// A share in per cent. Close to a whole, what is missing has three digits: 99.9 % and 99.99 % are not the same.
fn percent(share: f64) -> String {
    if (0.9..1.0).contains(&share) {
        let missing = quantity::significant((1.0 - share) * 100.0);
        let decimals = missing.split_once('.').map_or(0, |(_, digits)| digits.len());
        format!("{:.decimals$} %", share * 100.0)
    } else {
        format!("{} %", quantity::significant(share * 100.0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn units() {
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
            assert_eq!(text(metric.parse().unwrap(), value), expected, "{metric}");
        }
    }
}
