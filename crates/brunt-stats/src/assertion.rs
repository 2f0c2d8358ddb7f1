//! Assertions of the user, compared with what a run measured.
//!
//! Not a check of the verdict: whether a number can be trusted and whether it is good enough are two questions, with two
//! exit codes. Invariant: an unknown number neither holds nor fails.

use crate::bound::{Bounds, Client, Decision, decide};
use crate::latency::LatencySummary;
use crate::op_summary::OpSummary;
use brunt_plan::objective::{Metric, Objective, Statistic};

/// One assertion and how it came out.
#[derive(Clone, Debug, PartialEq)]
pub struct Assertion {
    /// What was asserted.
    pub objective: Objective,
    /// The number, in the unit of the bound; `None` where the run does not give it.
    pub measured: Option<f64>,
    /// Bounds of the number, with client error and confidence interval.
    pub bounds: Bounds,
    /// Whether the bounds meet the objective.
    pub decision: Decision,
    /// Why the decision is inconclusive; `None` where it is not.
    pub doubt: Option<Doubt>,
    /// Of a latency in closed loop, the requests per second that were reached: it is a latency at this load.
    pub at_rate: Option<f64>,
}

/// Why an assertion is inconclusive.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Doubt {
    /// No such request was sent.
    NoRequests,
    /// Too few completed requests.
    Requests {
        /// Completed requests that are missing.
        more: u64,
        /// Time that they take at the rate of the run; `None` without a rate.
        ns: Option<u64>,
    },
    /// The client held requests back for more of its slots' time than a twentieth: the load is its own.
    ClosedLoopLag,
    /// Requests that were not answered would decide.
    Unanswered,
    /// Nothing but the client's own part would decide.
    Client,
    /// The confidence interval holds the bound, or there is none.
    Interval,
}

impl Assertion {
    /// Compares an objective with what a run came to.
    pub fn of(objective: Objective, row: Option<&OpSummary>, client: &Client, has_open_loop: bool) -> Self {
        let bounds = row.map_or(Bounds::UNKNOWN, |row| client.bounds(objective.subject.metric, row));
        let decision = decide(bounds, |value| objective.is_met_by(value));
        let measured = row.and_then(|row| measured(objective.subject.metric, row));
        let is_open = decision == Decision::Inconclusive;
        let of_latency = objective.subject.metric.is_latency();
        let at_rate = row.filter(|_| of_latency && !has_open_loop).map(|row| row.rate.completed);
        let doubt = match row {
            _ if !is_open => None,
            None => Some(Doubt::NoRequests),
            Some(row) => Some(doubt(&objective, measured, bounds, row)),
        };
        Self { objective, measured, bounds, decision, doubt, at_rate }
    }
}

/// What keeps an assertion from being decided.
fn doubt(objective: &Objective, measured: Option<f64>, bounds: Bounds, row: &OpSummary) -> Doubt {
    let metric = objective.subject.metric;
    let (Metric::Response(statistic) | Metric::Service(statistic)) = metric else {
        return if measured.is_none() { Doubt::NoRequests } else { Doubt::Interval };
    };
    let more = missing(statistic, row);
    if more > 0 {
        let rate = row.rate.completed;
        return Doubt::Requests { more, ns: (rate > 0.0).then(|| (more as f64 / rate * 1e9) as u64) };
    }
    if row.is_lag_the_load() {
        return Doubt::ClosedLoopLag;
    }
    let is_met = |value: f64| objective.is_met_by(value);
    // As if the client had no part in it.
    let mut servers_own = row.clone();
    servers_own.latency.least = row.latency.response.clone();
    servers_own.latency.without_client = row.latency.response.clone();
    let without_client = Client::default().bounds(metric, &servers_own);
    if bounds.high.is_infinite() && row.unanswered() > 0 && measured.is_some_and(is_met) {
        Doubt::Unanswered
    } else if decide(without_client, is_met) != Decision::Inconclusive {
        Doubt::Client
    } else {
        Doubt::Interval
    }
}

/// The number; `None` where the requests do not support it.
fn measured(metric: Metric, row: &OpSummary) -> Option<f64> {
    let part = |part: u64, whole: u64| (whole > 0).then(|| part as f64 / whole as f64);
    let counts = &row.requests;
    match metric {
        Metric::Response(statistic) => latency(statistic, &row.latency.response.summary),
        Metric::Service(statistic) => latency(statistic, &row.latency.service.summary),
        Metric::Rate => Some(row.rate.completed),
        Metric::Hit => part(row.keys.hit, row.keys.requested),
        Metric::Errors => {
            let (failed, all) = counts.faulty();
            part(failed, all)
        }
        Metric::Unsent => part(counts.unsent, counts.scheduled),
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
