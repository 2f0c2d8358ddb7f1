//! Bounds of a quantity, whether they decide a question, and what the client may have held back.
//!
//! A question is decided only where both ends answer it alike. Assertions about percentiles of one run count its requests instead
//! (`assertion.rs`).

use crate::latency::LatencySummary;
use crate::op_summary::OpSummary;
use brunt_plan::objective::Statistic;

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
    /// For how long at the most, in nanoseconds, the client may have held a request beside what its least time leaves out.
    pub(crate) fn held_ns(&self, row: &OpSummary) -> u64 {
        // The busy periods of a server that other hosts load, too, are not known: no request was later than the latest.
        let elsewhere_ns = if self.has_others { row.latency.send_lag.summary.max_ns.unwrap_or(0) } else { 0 };
        elsewhere_ns.saturating_add(self.stop_ns)
    }
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
