//! Client time that the worker's clock readings leave out: its kernel's, and that of wake-ups longer than those allowed for.
//!
//! An estimate: kernel timestamps are taken of a sample of the requests, and of these both are known, the time that the wire and
//! the server took, and what the clock readings leave of the response time without the client. The difference of their quantiles is
//! what the client error of all requests lacks (docs/method.md). Invariants: it is never less than what a timestamp may be wrong by; and where too few requests have
//! timestamps it is the cost of a wake-up, unless the clock readings hold that.

use crate::histogram::Histogram;
use brunt_plan::objective::Statistic;
use brunt_plan::quantile::Quantile;
use std::sync::Arc;

/// Fewer requests with timestamps say nothing.
pub const SAMPLES_MIN: u64 = 20;
/// A packet that comes in is stamped when its driver has handed it over, at most so long after it was on the wire (docs/method.md, *What is
/// printed, and what the packets show*).
const STAMP_NS: u64 = 1_000;
/// Standard deviations of a sample's rank within which the difference of the quantiles is looked for.
const DEVIATIONS: f64 = 2.0;
/// How many ranks are compared in that range.
const LOOKS: u64 = 16;

/// Two distributions of the same requests.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct StackDelay {
    without_client: Arc<Histogram>,
    wire: Arc<Histogram>,
    /// What it is where too few requests have timestamps.
    unread_ns: u64,
}

impl StackDelay {
    /// From the times of requests with kernel timestamps: less what the clock readings hold of the client, and on the wire and in the
    /// server.
    pub fn of(without_client: Histogram, wire: Histogram) -> Self {
        Self { without_client: Arc::new(without_client), wire: Arc::new(wire), unread_ns: 0 }
    }

    /// Sets what it is where too few requests have timestamps: the cost of a wake-up, if the clock readings do not hold it.
    pub(crate) fn or_wake_up(self, unread_ns: u64) -> Self {
        Self { unread_ns, ..self }
    }

    /// Requests that it rests on; 0 where they are too few.
    pub fn samples(&self) -> u64 {
        let samples = self.wire.count().min(self.without_client.count());
        if samples < SAMPLES_MIN { 0 } else { samples }
    }

    /// What it adds to the client error of a statistic, in nanoseconds.
    pub fn ns(&self, statistic: Statistic) -> u64 {
        match statistic {
            _ if self.samples() == 0 => self.unread_ns,
            Statistic::Percentile(quantile) => self.quantile_ns(quantile),
            Statistic::Mean => {
                let mean_ns = |histogram: &Histogram| histogram.moments().mean().unwrap_or(0.0);
                (mean_ns(&self.without_client) - mean_ns(&self.wire)).max(0.0) as u64 + STAMP_NS
            }
            Statistic::Max => self.difference_ns(self.samples()),
        }
    }

    /// The largest difference at the ranks among which that of the quantile lies with 95 % confidence.
    fn quantile_ns(&self, quantile: Quantile) -> u64 {
        let (count, above) = (self.samples(), quantile.share_above());
        let spread = DEVIATIONS * (count as f64 * above * (1.0 - above)).sqrt();
        let rank = quantile.rank(count) as f64;
        let (first, last) = ((rank - spread).max(1.0) as u64, ((rank + spread).ceil() as u64).min(count));
        let step = (last - first).div_ceil(LOOKS).max(1);
        let ranks = (first..last).step_by(step as usize).chain([last]);
        ranks.map(|rank| self.difference_ns(rank)).max().unwrap_or(0)
    }

    fn difference_ns(&self, rank: u64) -> u64 {
        let ends = self.without_client.at_rank(rank).zip(self.wire.at_rank(rank));
        ends.map_or(0, |(without, wire)| without.end().saturating_sub(*wire.start()) + STAMP_NS)
    }
}

brunt_plan::named! { serialized
    /// What the client error rests on; of several, the largest is the weakest.
    pub enum ClientBasis {
        /// Clock readings, which hold wake-ups: an upper bound.
        Clock = "clock": "upper bound of the client's part",
        /// Clock readings, and kernel timestamps of a sample of the requests: an estimate.
        Timestamps = "timestamps": "estimated part of the client",
        /// Clock readings and the cost of a wake-up, as too few requests have the timestamps that were to be taken.
        Incomplete = "incomplete": "incomplete bound of the client's part",
    }
}

impl ClientBasis {
    /// Stands between `client` and the error in texts.
    pub const fn sign(self) -> &'static str {
        match self {
            Self::Clock => "<=",
            Self::Timestamps => "<~",
            Self::Incomplete => "<=?",
        }
    }

    /// Stands before the error on pages.
    pub const fn symbol(self) -> &'static str {
        match self {
            Self::Clock => "≤",
            Self::Timestamps => "≲",
            Self::Incomplete => "≤?",
        }
    }

    /// A row or a column of client errors, without blanks: `client<=`.
    pub fn label(self) -> String {
        format!("client{}", self.sign())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn histogram(values: impl Iterator<Item = u64>) -> Histogram {
        let mut histogram = Histogram::new();
        values.for_each(|value| histogram.record(value));
        histogram
    }

    #[test]
    fn what_the_clock_readings_leave_out() {
        // samples, by sample: wire and what it is over that → statistic, from, to
        type Times = fn(u64) -> (u64, u64);
        let p = |quantile| Statistic::Percentile(quantile);
        let table: [(u64, Times, Statistic, u64, u64); 9] = [
            (1_000, |_| (20_000, 5_000), p(Quantile::P50), 6_000, 6_400),
            (1_000, |_| (20_000, 5_000), p(Quantile::P99), 6_000, 6_400),
            (1_000, |_| (20_000, 5_000), Statistic::Mean, 6_000, 6_000),
            (1_000, |_| (20_000, 5_000), Statistic::Max, 6_000, 6_400),
            // One in ten needed a wake-up: the median has none of it, the p99 all.
            (1_000, |of| (20_000, if of % 10 == 0 { 50_000 } else { 0 }), p(Quantile::P50), 1_000, 1_400),
            (1_000, |of| (20_000, if of % 10 == 0 { 50_000 } else { 0 }), p(Quantile::P99), 51_000, 52_000),
            (1_000, |of| (20_000, if of % 10 == 0 { 50_000 } else { 0 }), Statistic::Mean, 6_000, 6_000),
            // The few that are slow lie where the p99 of so small a sample may lie.
            (200, |of| (20_000, if of == 0 { 90_000 } else { 0 }), p(Quantile::P99), 91_000, 92_000),
            (19, |_| (20_000, 5_000), p(Quantile::P50), 0, 0),
        ];
        for (samples, times, statistic, low_ns, high_ns) in table {
            let wire = histogram((0..samples).map(|of| times(of).0));
            let without_client = histogram((0..samples).map(|of| times(of).0 + times(of).1));
            let delay_ns = StackDelay::of(without_client, wire).ns(statistic);
            assert!(
                (low_ns..=high_ns).contains(&delay_ns),
                "{samples} samples, {statistic:?}: {delay_ns} ns"
            );
        }
        // Where clock readings hold more of the client than it took, no more is added than a timestamp may be wrong by.
        let (long, short) = (histogram([30_000; 50].into_iter()), histogram([20_000; 50].into_iter()));
        assert_eq!(StackDelay::of(short, long).ns(Statistic::Percentile(Quantile::P50)), STAMP_NS);
        assert_eq!(StackDelay::default().ns(Statistic::Mean), 0);
        // The cost of a wake-up counts where too few requests have timestamps, and there alone.
        let with = |samples| {
            let times = || histogram((0..samples).map(|_| 20_000));
            StackDelay::of(times(), times()).or_wake_up(52_000)
        };
        for statistic in [p(Quantile::P50), Statistic::Mean, Statistic::Max] {
            assert_eq!(with(19).ns(statistic), 52_000);
            assert!(with(20).ns(statistic) < 1_100, "{statistic:?}");
        }
    }
}
