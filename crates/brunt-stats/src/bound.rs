//! What a run says of a percentile: two bounds, and whether they decide a question.
//!
//! The bounds enclose what a client without any delay would have measured, joined with the confidence interval, and a question
//! is decided only where both ends answer it alike: the steps of a search, interim looks of a run that ends early, and comparisons. Assertions about
//! one run are counted instead (`assertion.rs`). docs/measurement.md has the rule with its proof. Invariant: what is not known lies
//! between 0 and infinity, and so decides nothing.

use crate::histogram::Histogram;
use crate::latency::LatencySummary;
use crate::op_summary::OpSummary;
use brunt_plan::objective::{Ceiling, Statistic};
use brunt_plan::quantile::Quantile;

/// What a quantity is at the least and at the most, in the unit of its metric.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Bounds {
    /// Lower bound.
    pub low: f64,
    /// Upper bound; infinite where nothing bounds it.
    pub high: f64,
}

impl Bounds {
    /// Nothing is known.
    pub const UNKNOWN: Self = Self { low: 0.0, high: f64::INFINITY };

    /// The quantity is known exactly.
    pub const fn exact(value: f64) -> Self {
        Self { low: value, high: value }
    }
}

brunt_plan::named! {
    /// The answer to a question.
    pub enum Decision {
        /// Whatever the quantity is between its bounds, the requirement is met.
        Holds = "holds",
        /// Whatever it is, the requirement is not met.
        Fails = "fails",
        /// It depends on where between the bounds it is.
        Undecided = "undecided",
    }
}

/// Is a requirement that compares a quantity with a bound met, whatever the quantity is between `bounds`?
pub fn decide(bounds: Bounds, is_met: impl Fn(f64) -> bool) -> Decision {
    match (is_met(bounds.low), is_met(bounds.high)) {
        (true, true) => Decision::Holds,
        (false, false) => Decision::Fails,
        _ => Decision::Undecided,
    }
}

/// What is known of the client, beside the requests themselves.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Client {
    /// For how long it may have held any request of a closed loop, in nanoseconds: its longest stop, and without limit where it was
    /// kept from its processor for much of the window. 0 beside an open loop, whose late requests tell.
    pub stop_ns: u64,
    /// Other hosts send to the same servers, and how late they were in a busy period is not known here.
    pub has_others: bool,
}

impl Client {
    /// Does a percentile of the response time of these requests lie below its bound?
    pub fn decide_ceiling(&self, ceiling: &Ceiling, row: &OpSummary) -> Decision {
        let bounds = self.percentile(row, ceiling.quantile);
        decide(bounds, |ns| ns < ceiling.bound_ns as f64)
    }

    /// The bounds of a percentile of the response time; [`Bounds::UNKNOWN`] where the requests are too few, or the load is the client's own.
    pub(crate) fn percentile(&self, row: &OpSummary, quantile: Quantile) -> Bounds {
        let response = &row.latency.response.histogram;
        if row.is_lag_the_load() || !quantile.is_supported_by(response.count()) {
            return Bounds::UNKNOWN;
        }
        let interval = row.intervals.iter().find(|interval| interval.quantile == quantile);
        // Without an interval the largest value serves as its upper end.
        let share_above = interval.map_or(0.0, |interval| interval.fraction_above_high);
        let high = upper(response, row.unanswered(), share_above);
        let delay_ns = row.stack_delay.ns(Statistic::Percentile(quantile));
        let low = interval.map_or(0.0, |interval| {
            let least_ns = lower(&row.latency.least.histogram, interval.fraction_below_low);
            self.less(row, least_ns.saturating_sub(delay_ns))
        });
        Bounds { low: low.min(high), high }
    }

    /// A least response time without what the client may have cost beside it.
    fn less(&self, row: &OpSummary, ns: u64) -> f64 {
        ns.saturating_sub(self.held_ns(row)) as f64
    }

    /// For how long at the most, in nanoseconds, the client may have held a request beside what its least time leaves out.
    pub(crate) fn held_ns(&self, row: &OpSummary) -> u64 {
        // The busy periods of a server that other hosts load, too, are not known: no request was later than the latest.
        let elsewhere_ns = if self.has_others { row.latency.send_lag.summary.max_ns.unwrap_or(0) } else { 0 };
        elsewhere_ns.saturating_add(self.stop_ns)
    }
}

/// The highest value above which this fraction lies of these values and of `above` more that are larger than all of them.
fn upper(histogram: &Histogram, above: u64, share_above: f64) -> f64 {
    let count = histogram.count() + above;
    let rank = count - (share_above * count as f64) as u64;
    histogram.at_rank(rank).map_or(f64::INFINITY, |values| *values.end() as f64)
}

/// The lowest value of this rank, as a share; 0 where there is none.
fn lower(histogram: &Histogram, share_below: f64) -> u64 {
    let rank = (share_below * histogram.count() as f64).ceil() as u64;
    histogram.at_rank(rank).map_or(0, |values| *values.start())
}

/// Client error of a statistic of the response time.
pub(crate) fn client_share_ns(row: &OpSummary, statistic: Statistic) -> u64 {
    let of = |summary: &LatencySummary| match statistic {
        Statistic::Percentile(quantile) => summary.percentile_ns(quantile),
        Statistic::Mean => summary.mean_ns.map(|ns| ns as u64),
        Statistic::Max => summary.max_ns,
    };
    let (full, less) = (of(&row.latency.response.summary), of(&row.latency.without_client.summary));
    full.zip(less).map_or(u64::MAX, |(full_ns, less_ns)| full_ns.saturating_sub(less_ns))
}

#[cfg(test)]
mod replications;
#[cfg(test)]
mod tests;
