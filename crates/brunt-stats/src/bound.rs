//! What a run says of a quantity: two bounds, and whether they decide a question.
//!
//! Not an estimate and not a verdict: the bounds enclose what a client without any delay would have measured, joined with the
//! confidence interval, and a question is decided only where both ends answer it alike. One function, [`decide`], for
//! assertions, the steps of a search, looks of a run that ends early, and comparisons. docs/measurement.md has the rule with its proof.
//! Invariant: what is not known lies between 0 and infinity, and so decides nothing.

use crate::histogram::Histogram;
use crate::latency::LatencySummary;
use crate::op_summary::OpSummary;
use brunt_plan::objective::{Ceiling, Metric, Statistic};
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

    /// A value with half the width of its interval; a quantity that is never negative.
    fn around(value: f64, half_width: f64) -> Self {
        Self { low: (value - half_width).max(0.0), high: value + half_width }
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
        Inconclusive = "inconclusive",
    }
}

/// Is a requirement that compares a quantity with a bound met, whatever the quantity is between `bounds`?
pub fn decide(bounds: Bounds, is_met: impl Fn(f64) -> bool) -> Decision {
    match (is_met(bounds.low), is_met(bounds.high)) {
        (true, true) => Decision::Holds,
        (false, false) => Decision::Fails,
        _ => Decision::Inconclusive,
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
    /// It was the client that could do no more.
    pub is_limit: bool,
    /// For which part of the window its workers stood still, all of them together.
    pub stood_still: f64,
}

impl Client {
    /// The bounds of a quantity of these requests; [`Bounds::UNKNOWN`] where they are too few.
    pub fn bounds(&self, metric: Metric, row: &OpSummary) -> Bounds {
        match metric {
            Metric::Response(_) | Metric::Service(_) if row.is_lag_the_load() => Bounds::UNKNOWN,
            Metric::Response(Statistic::Percentile(quantile)) => self.percentile(row, quantile),
            Metric::Response(Statistic::Mean) => self.mean(row),
            Metric::Response(Statistic::Max) => self.maximum(row),
            Metric::Service(statistic) => self.service(row, statistic),
            Metric::Rate => self.rate(row),
            Metric::Hit => ratio(row.keys.hit, row.keys.requested, row.half_widths.hit),
            Metric::Errors => {
                let (failed, all) = row.requests.faulty();
                ratio(failed, all, row.half_widths.errors)
            }
            // What the schedule offered is known, and so is what of it was never sent.
            Metric::Unsent => ratio(row.requests.unsent, row.requests.scheduled, Some(0.0)),
        }
    }

    /// Does a percentile of the response time of these requests lie below its bound?
    pub fn decide_ceiling(&self, ceiling: &Ceiling, row: &OpSummary) -> Decision {
        let bounds = self.bounds(Metric::Response(Statistic::Percentile(ceiling.quantile)), row);
        decide(bounds, |ns| ns < ceiling.bound_ns as f64)
    }

    fn percentile(&self, row: &OpSummary, quantile: Quantile) -> Bounds {
        let response = &row.latency.response.histogram;
        if !quantile.is_supported_by(response.count()) {
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
        // The busy periods of a server that other hosts load, too, are not known: no request was later than the latest.
        let elsewhere_ns = if self.has_others { row.latency.send_lag.summary.max_ns.unwrap_or(0) } else { 0 };
        ns.saturating_sub(elsewhere_ns.saturating_add(self.stop_ns)) as f64
    }

    /// The extremes of the sample, which has no interval.
    fn maximum(&self, row: &OpSummary) -> Bounds {
        let Some(max_ns) = row.latency.response.summary.max_ns else { return Bounds::UNKNOWN };
        let high = if row.unanswered() > 0 { f64::INFINITY } else { max_ns as f64 };
        let low = row.latency.least.summary.max_ns.map_or(0.0, |ns| self.less(row, ns));
        Bounds { low: low.min(high), high }
    }

    fn mean(&self, row: &OpSummary) -> Bounds {
        let (response, least) = (&row.latency.response.summary, &row.latency.least.summary);
        let (Some(mean_ns), Some(least_ns)) = (response.mean_ns, least.mean_ns) else {
            return Bounds::UNKNOWN;
        };
        let Some(half_width_ns) = row.half_widths.mean_ns else { return Bounds::UNKNOWN };
        let high = if row.unanswered() > 0 { f64::INFINITY } else { mean_ns + half_width_ns };
        let low = self.less(row, (least_ns - half_width_ns).max(0.0) as u64);
        Bounds { low: low.min(high), high }
    }

    /// Of the service time no busy period is kept: the client's share of the same statistic of the response time is in.
    fn service(&self, row: &OpSummary, statistic: Statistic) -> Bounds {
        let service = &row.latency.service;
        let nothing_missing = |high: f64| if row.unanswered() > 0 { f64::INFINITY } else { high };
        let (low_ns, high) = match statistic {
            Statistic::Percentile(quantile) => {
                let Some(interval) = row.intervals.iter().find(|interval| interval.quantile == quantile)
                else {
                    return Bounds::UNKNOWN;
                };
                let high = upper(&service.histogram, row.unanswered(), interval.fraction_above_high);
                (lower(&service.histogram, interval.fraction_below_low), high)
            }
            Statistic::Mean => match (service.summary.mean_ns, row.half_widths.mean_ns) {
                (Some(mean_ns), Some(half_ns)) => {
                    ((mean_ns - half_ns).max(0.0) as u64, nothing_missing(mean_ns + half_ns))
                }
                _ => return Bounds::UNKNOWN,
            },
            Statistic::Max => {
                let Some(max_ns) = service.summary.max_ns else { return Bounds::UNKNOWN };
                (max_ns, nothing_missing(max_ns as f64))
            }
        };
        let low = self.less(row, low_ns.saturating_sub(client_share_ns(row, statistic)));
        Bounds { low: low.min(high), high }
    }

    fn rate(&self, row: &OpSummary) -> Bounds {
        let Some(half_width) = row.half_widths.rate else { return Bounds::UNKNOWN };
        let bounds = Bounds::around(row.rate.completed, half_width);
        // A client that could do more, or did not stand still, would have had at least that.
        match self.is_limit || row.is_lag_the_load() {
            true => Bounds { high: f64::INFINITY, ..bounds },
            false => Bounds { high: bounds.high / (1.0 - self.stood_still).max(0.0), ..bounds },
        }
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

fn ratio(part: u64, whole: u64, half_width: Option<f64>) -> Bounds {
    match (whole, half_width) {
        (0, _) => Bounds::UNKNOWN,
        (_, Some(half_width)) => {
            let bounds = Bounds::around(part as f64 / whole as f64, half_width);
            Bounds { high: bounds.high.min(1.0), ..bounds }
        }
        // Too short for batches: a count is what it is.
        (_, None) => Bounds::exact(part as f64 / whole as f64),
    }
}

/// Client error of a statistic of the response time.
fn client_share_ns(row: &OpSummary, statistic: Statistic) -> u64 {
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
