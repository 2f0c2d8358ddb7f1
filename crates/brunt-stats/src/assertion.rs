//! What the user asserted of a run, beside what was measured.
//!
//! Not a check of the verdict: whether a number may be believed and whether it is good enough are two questions, with two
//! exit codes. Invariant: what is not known never passes.

use crate::confidence::PercentileInterval;
use crate::latency::LatencySummary;
use crate::summary::{OpSummary, Summary};
use brunt_plan::objective::{Metric, Objective, Statistic, Subject};

/// One assertion and how it came out.
#[derive(Clone, Debug, PartialEq)]
pub struct Assertion {
    /// What was asserted.
    pub objective: Objective,
    /// The number, in the unit of the bound; `None` where the run does not give it.
    pub measured: Option<f64>,
    /// The confidence interval of a percentile of the response time, where the run has it.
    pub interval: Option<PercentileInterval>,
    /// How many more completed requests it takes until the number is given; 0 where it is, or where requests are not what
    /// is missing.
    pub needs_more: u64,
    /// How long that is at the rate the run had, in nanoseconds; `None` where it had none.
    pub needs_ns: Option<u64>,
}

/// How an assertion came out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AssertionStatus {
    /// The number meets its bound.
    Holds,
    /// It does not.
    Fails,
    /// There is no number: too few requests, or none of this kind. Counts as failed.
    Unknown,
}

impl AssertionStatus {
    /// The word in JSON.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Holds => "holds",
            Self::Fails => "fails",
            Self::Unknown => "unknown",
        }
    }
}

impl Assertion {
    /// Compares an objective with what a run came to.
    pub fn of(objective: Objective, summary: &Summary) -> Self {
        let unknown = Self { objective, measured: None, interval: None, needs_more: 0, needs_ns: None };
        let Some(row) = row(&objective.subject, summary) else { return unknown };
        let measured = measured(objective.subject.metric, row);
        let missing = match objective.subject.metric {
            Metric::Response(statistic) | Metric::Service(statistic) => missing(statistic, row),
            _ => 0,
        };
        let rate = row.rate.completed;
        let needs_ns = (missing > 0 && rate > 0.0).then(|| (missing as f64 / rate * 1e9) as u64);
        let interval = match objective.subject.metric {
            Metric::Response(Statistic::Percentile(quantile)) if measured.is_some() => {
                row.intervals.iter().find(|interval| interval.quantile == quantile).copied()
            }
            _ => None,
        };
        Self { measured, interval, needs_more: missing, needs_ns, ..unknown }
    }

    /// Does the whole confidence interval say what the estimate says? Where it rests on too little, where there is none,
    /// and where nothing was measured, it does not. Counts (rates, shares) are exact: there is nothing to doubt.
    pub fn is_beyond_doubt(&self) -> bool {
        let is_estimate = matches!(self.objective.subject.metric, Metric::Response(_) | Metric::Service(_));
        match (self.measured, self.interval) {
            (Some(_), None) => !is_estimate,
            (Some(measured), Some(interval)) if !interval.is_thin() => {
                let high = interval.high_ns.map_or(f64::INFINITY, |ns| ns as f64);
                let is_met = self.objective.is_met_by(measured);
                [interval.low_ns as f64, high].into_iter().all(|end| self.objective.is_met_by(end) == is_met)
            }
            _ => false,
        }
    }

    /// How it came out.
    pub fn status(&self) -> AssertionStatus {
        match self.measured {
            None => AssertionStatus::Unknown,
            Some(measured) if self.objective.is_met_by(measured) => AssertionStatus::Holds,
            Some(_) => AssertionStatus::Fails,
        }
    }
}

/// The requests that a number is of; `None` where there were none of this kind.
fn row<'a>(subject: &Subject, summary: &'a Summary) -> Option<&'a OpSummary> {
    match subject.op {
        None => Some(&summary.total),
        Some(op) => summary.ops.iter().find(|row| row.op == op).map(|row| &row.summary),
    }
}

/// The number; `None` where the requests do not support it.
fn measured(metric: Metric, row: &OpSummary) -> Option<f64> {
    let part = |part: u64, whole: u64| (whole > 0).then(|| part as f64 / whole as f64);
    let book = &row.requests;
    match metric {
        Metric::Response(statistic) => latency(statistic, &row.latency.response.summary),
        Metric::Service(statistic) => latency(statistic, &row.latency.service.summary),
        Metric::Rate => Some(row.rate.completed),
        Metric::Hit => part(row.keys.hit, row.keys.asked),
        Metric::Errors => {
            let (failed, all) = book.faulty();
            part(failed, all)
        }
        Metric::Unsent => part(book.unsent, book.scheduled),
    }
}

fn latency(statistic: Statistic, latency: &LatencySummary) -> Option<f64> {
    match statistic {
        Statistic::Percentile(quantile) => latency.percentile_ns(quantile).map(|ns| ns as f64),
        Statistic::Mean => latency.mean_ns,
        Statistic::Max => latency.max_ns.map(|ns| ns as f64),
    }
}

/// How many more completed requests a statistic takes.
fn missing(statistic: Statistic, row: &OpSummary) -> u64 {
    let summary = &row.latency.response.summary;
    match statistic {
        Statistic::Percentile(quantile) => {
            let percentile = summary.percentiles.iter().find(|held| held.quantile == quantile);
            percentile.map_or(0, |percentile| percentile.needs_more)
        }
        Statistic::Mean | Statistic::Max => u64::from(summary.count == 0),
    }
}
