//! A distribution of latencies as it is printed: moments and percentiles, where the samples support them.
//!
//! Not a histogram; made from a merged one. Percentiles are never averaged and never guessed: one that fewer than ten
//! samples lie above is absent, and says how many more it would take.

use crate::histogram::Histogram;
use brunt_plan::objective::Statistic;
use brunt_plan::quantile::Quantile;

/// One percentile.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Percentile {
    /// Which.
    pub quantile: Quantile,
    /// Its value in nanoseconds, at most 0.1 % too high and never too low; `None` where there are too few samples.
    pub value_ns: Option<u64>,
    /// How many more samples it takes; 0 where it is given.
    pub needs_more: u64,
}

/// A distribution as it is printed. Times in nanoseconds.
#[derive(Clone, Debug, PartialEq)]
pub struct LatencySummary {
    /// How many samples.
    pub count: u64,
    /// Exact mean; `None` without samples, like the three below.
    pub mean_ns: Option<f64>,
    /// Exact standard deviation.
    pub stddev_ns: Option<f64>,
    /// Exact minimum.
    pub min_ns: Option<u64>,
    /// Exact maximum.
    pub max_ns: Option<u64>,
    /// The requested percentiles, ascending.
    pub percentiles: Vec<Percentile>,
}

impl LatencySummary {
    /// Of a merged histogram, with the usual percentiles.
    pub fn of(histogram: &Histogram) -> Self {
        Self::with(histogram, &Quantile::PRINTED)
    }

    /// Of a merged histogram, with these percentiles, ascending.
    pub fn with(histogram: &Histogram, quantiles: &[Quantile]) -> Self {
        let count = histogram.count();
        let percentile = |quantile: Quantile| Percentile {
            quantile,
            value_ns: quantile.is_supported_by(count).then(|| histogram.quantile(quantile)).flatten(),
            needs_more: quantile.samples_needed().unwrap_or(u64::MAX).saturating_sub(count),
        };
        Self {
            count,
            mean_ns: histogram.moments().mean(),
            stddev_ns: histogram.moments().stddev(),
            min_ns: histogram.min(),
            max_ns: histogram.max(),
            percentiles: quantiles.iter().copied().map(percentile).collect(),
        }
    }

    /// Less by so much for each statistic.
    pub(crate) fn less(&mut self, of: impl Fn(Statistic) -> u64) {
        self.mean_ns = self.mean_ns.map(|ns| (ns - of(Statistic::Mean) as f64).max(0.0));
        self.max_ns = self.max_ns.map(|ns| ns.saturating_sub(of(Statistic::Max)));
        for held in &mut self.percentiles {
            let delay_ns = of(Statistic::Percentile(held.quantile));
            held.value_ns = held.value_ns.map(|ns| ns.saturating_sub(delay_ns));
        }
    }

    /// The value of one of its percentiles, in nanoseconds; `None` where there are too few samples, or where it is none of them.
    pub fn percentile_ns(&self, quantile: Quantile) -> Option<u64> {
        self.percentiles.iter().find(|held| held.quantile == quantile).and_then(|held| held.value_ns)
    }

    /// The median, in nanoseconds.
    pub fn p50_ns(&self) -> Option<u64> {
        self.percentile_ns(Quantile::P50)
    }

    /// The 99th percentile, in nanoseconds.
    pub fn p99_ns(&self) -> Option<u64> {
        self.percentile_ns(Quantile::P99)
    }
}

/// Client error of a percentile: `e_p = Q_p(R) − Q_p(R_lo)`. The percentile that a client without any
/// delay would have measured lies between the two.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClientError {
    /// Which percentile.
    pub quantile: Quantile,
    /// Its response time Q_p(R) in nanoseconds.
    pub response_ns: u64,
    /// Client error of it, in nanoseconds.
    pub error_ns: u64,
}

/// The client error of every percentile that is given, ascending.
pub fn client_errors(response: &LatencySummary, without_client: &LatencySummary) -> Vec<ClientError> {
    let pairs = response.percentiles.iter().zip(&without_client.percentiles);
    pairs
        .filter_map(|(full, less)| {
            let (response_ns, without_ns) = (full.value_ns?, less.value_ns?);
            Some(ClientError {
                quantile: full.quantile,
                response_ns,
                error_ns: response_ns.saturating_sub(without_ns),
            })
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample::Times;

    fn histogram(values: impl IntoIterator<Item = u64>) -> Histogram {
        let mut histogram = Histogram::new();
        values.into_iter().for_each(|value| histogram.record(value));
        histogram
    }

    #[test]
    fn percentiles_need_ten_samples_above_them() {
        let names = |count: u64| {
            let summary = LatencySummary::of(&histogram(1..=count));
            let given = summary.percentiles.iter().filter(|percentile| percentile.value_ns.is_some());
            given.map(|percentile| percentile.quantile.to_string()).collect::<Vec<_>>().join(" ")
        };
        let table = [
            (0, ""),
            (19, ""),
            (20, "p50"),
            (100, "p50 p90"),
            (999, "p50 p90 p95"),
            (1_000, "p50 p90 p95 p99"),
            (99_999, "p50 p90 p95 p99 p99.9"),
            (100_000, "p50 p90 p95 p99 p99.9 p99.99"),
        ];
        for (count, expected) in table {
            assert_eq!(names(count), expected, "{count} samples");
        }
        let summary = LatencySummary::of(&histogram(1..=999));
        let missing = summary.percentiles.iter().map(|percentile| percentile.needs_more).collect::<Vec<_>>();
        assert_eq!(missing, [0, 0, 0, 1, 9_001, 99_001]);
        assert_eq!((summary.p50_ns(), summary.p99_ns()), (Some(500), None));
        assert_eq!((summary.min_ns, summary.max_ns, summary.mean_ns), (Some(1), Some(999), Some(500.0)));
    }

    #[test]
    fn an_empty_histogram_has_no_percentiles() {
        let summary = LatencySummary::of(&Histogram::new());
        assert_eq!((summary.count, summary.mean_ns, summary.stddev_ns), (0, None, None));
        assert_eq!((summary.min_ns, summary.max_ns), (None, None));
    }

    #[test]
    fn client_error_is_the_time_held_by_the_client() {
        // 1000 ops at 100 µs. The client picked the last 20 of them 50 µs late, and looked for every reply 7 µs late.
        let times = (0..1_000u64).map(|index| {
            let late_ns = if index >= 980 { 50_000 } else { 0 };
            Times {
                intended_ns: 0,
                picked_ns: late_ns,
                sent_ns: late_ns,
                polled_ns: late_ns + 93_000,
                first_byte_ns: late_ns + 100_000,
                done_ns: late_ns + 100_000,
            }
        });
        let response = LatencySummary::of(&histogram(times.clone().map(|times| times.response_ns())));
        let without = LatencySummary::of(&histogram(times.map(|times| times.response_without_client_ns())));
        let errors = client_errors(&response, &without);
        let names: Vec<_> = errors.iter().map(|error| error.quantile.to_string()).collect();
        assert_eq!(names, ["p50", "p90", "p95", "p99"]);
        for (error, expected_ns) in errors.iter().zip([7_000, 7_000, 7_000, 57_000]) {
            let tolerance_ns = error.response_ns >> 9; // A bucket at either end.
            assert!(error.error_ns.abs_diff(expected_ns) <= tolerance_ns, "{error:?}");
        }
    }
}
