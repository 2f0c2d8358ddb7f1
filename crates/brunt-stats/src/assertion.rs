//! Assertions of the user about a run, decided by counting its requests.
//!
//! An assertion is about this run, not about another one: of the N requests that were due, `N(1 − p)` rounded down may reach the
//! bound of a percentile. How many reached it is counted twice, as measured and without the client's part (docs/method.md,
//! "Assertions"). What another run might say is a note, which decides nothing. Invariants: `without_client ≤ with_client ≤
//! requests`; the ends of histogram buckets count on the side that decides less.

use crate::bound::{Bounds, Client, Decision, client_share_ns, decide};
use crate::histogram::Histogram;
use crate::latency::LatencySummary;
use crate::median::upper_median_of_sorted;
use crate::op_summary::OpSummary;
use brunt_plan::objective::{Comparison, Metric, Objective, Statistic};
use brunt_plan::outcome::OutcomeClass;
use brunt_plan::quantile::{Quantile, SAMPLES_ABOVE_MIN};
use std::ops::RangeInclusive;

/// A percentile holds where no request reached its bound and at least this many could have: of 300 requests a p99.
const ALLOWED_MIN: u64 = 3;
/// Where more than one run in so many says the opposite of all together, nothing is decided.
const RUNS_OPPOSITE: usize = 3;

/// One assertion and how it came out.
#[derive(Clone, Debug, PartialEq)]
pub struct Assertion {
    /// What was asserted.
    pub objective: Objective,
    /// The number, in the unit of the bound; `None` where the run does not give it.
    pub measured: Option<f64>,
    /// How it came out.
    pub decision: Decision,
    /// Of a percentile or a maximum: the requests that reached the bound.
    pub reached: Option<Reached>,
    /// Requests of which it is counted that failed, or were never answered or sent.
    pub unanswered: u64,
    /// Why it is undecided; `None` where it is not.
    pub reason: Option<Reason>,
    /// The end of the 95 % interval of the percentile that lies on the other side of the bound, in nanoseconds: another run may come
    /// out otherwise.
    pub another_run_ns: Option<u64>,
    /// Of a latency in closed loop, the requests per second that were reached: it is a latency at this load.
    pub at_rate: Option<f64>,
}

/// How many of the requests that were due in the window reached a bound.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reached {
    /// Requests due that ask for a reply.
    pub requests: u64,
    /// How many of them may reach the bound.
    pub allowed: u64,
    /// How many did, failed, or were never answered or sent.
    pub with_client: u64,
    /// How many did whatever the client did, failed at the server, or were never sent for want of a connection.
    pub without_client: u64,
}

/// Why an assertion is undecided.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reason {
    /// No such request was due.
    NoRequests,
    /// Too few requests.
    Requests {
        /// Requests that are missing.
        more: u64,
        /// Time that they take at the rate of the run; `None` without a rate.
        ns: Option<u64>,
    },
    /// The number lies so close to the bound that the width of a histogram bucket, a thousandth, decides.
    Resolution,
    /// Of several runs too many say the opposite of all of them together.
    Runs {
        /// How many do.
        opposite: usize,
        /// Of how many.
        of: usize,
    },
    /// The client's part decides.
    Client {
        /// The client's part of the number, in nanoseconds.
        part_ns: u64,
        /// Requests that it had no time to send.
        unsent: u64,
    },
}

impl Assertion {
    /// Decides an objective about a run. `drain_ns` is how long the run waited for replies after its window.
    pub fn of(
        objective: Objective,
        row: Option<&OpSummary>,
        client: &Client,
        drain_ns: u64,
        has_open_loop: bool,
    ) -> Self {
        let requests = row.map_or(0, requests_due);
        let open = Self {
            objective,
            measured: row.and_then(|row| measured(objective.subject.metric, row)),
            decision: Decision::Undecided,
            reached: None,
            unanswered: row.map_or(0, OpSummary::unanswered),
            reason: Some(Reason::NoRequests),
            another_run_ns: None,
            at_rate: None,
        };
        let Some(row) = row.filter(|_| requests > 0) else { return open };
        let count = Count { objective, row, client, drain_ns };
        let decided = match objective.subject.metric {
            Metric::Response(Statistic::Mean) | Metric::Service(Statistic::Mean) => count.mean(open),
            Metric::Response(statistic) | Metric::Service(statistic) => count.extreme(statistic, open),
            Metric::Client(_) if open.measured.is_none() => count.too_few(open),
            Metric::Client(_) | Metric::Rate | Metric::Hit | Metric::Errors | Metric::Unsent => exact(open),
        };
        let is_closed_latency = objective.subject.metric.is_latency() && !has_open_loop;
        Self { at_rate: is_closed_latency.then_some(row.rate.completed), ..decided }
    }

    /// The same assertion about several runs: their requests are counted together, of other numbers the majority decides. Undecided where
    /// more than a third of the runs say the opposite.
    pub fn of_runs(runs: &[Self]) -> Option<Self> {
        let first = runs.first()?;
        let reached = runs.iter().map(|run| run.reached).reduce(|sum, run| Some(sum?.with(&run?))).flatten();
        let count = |decision| runs.iter().filter(|run| run.decision == decision).count();
        let (holds, fails) = (count(Decision::Holds), count(Decision::Fails));
        let together = match reached {
            Some(reached) => decision(&first.objective, reached.is_statistic_below(&first.objective)),
            None if holds == fails => Decision::Undecided,
            None if holds > fails => Decision::Holds,
            None => Decision::Fails,
        };
        let opposite = match together {
            Decision::Holds => fails,
            Decision::Fails => holds,
            Decision::Undecided => 0,
        };
        let is_contested = RUNS_OPPOSITE * opposite > runs.len();
        let reason = match together {
            _ if is_contested => Some(Reason::Runs { opposite, of: runs.len() }),
            Decision::Undecided => {
                let more = reached.map_or(0, |reached| reached.missing(first.objective.subject.percentile()));
                let of_run = runs.iter().find_map(|run| run.reason);
                match of_run {
                    _ if more > 0 => Some(Reason::Requests { more, ns: None }),
                    Some(reason) if !matches!(reason, Reason::Requests { .. }) => Some(reason),
                    _ => Some(Reason::Runs { opposite: holds.min(fails), of: runs.len() }),
                }
            }
            _ => None,
        };
        let mut measured: Vec<f64> = runs.iter().filter_map(|run| run.measured).collect();
        measured.sort_by(f64::total_cmp);
        Some(Self {
            measured: upper_median_of_sorted(&measured),
            decision: if is_contested { Decision::Undecided } else { together },
            reached,
            unanswered: runs.iter().map(|run| run.unanswered).sum(),
            reason,
            another_run_ns: None,
            ..first.clone()
        })
    }
}

/// What it means for an objective whether its statistic lies below the bound.
fn decision(objective: &Objective, is_below: Option<bool>) -> Decision {
    let is_upper = matches!(objective.comparison, Comparison::Less | Comparison::LessOrEqual);
    match is_below {
        Some(is_below) if is_below == is_upper => Decision::Holds,
        Some(_) => Decision::Fails,
        None => Decision::Undecided,
    }
}

impl Reached {
    fn with(&self, other: &Self) -> Self {
        Self {
            requests: self.requests + other.requests,
            allowed: self.allowed + other.allowed,
            with_client: self.with_client + other.with_client,
            without_client: self.without_client + other.without_client,
        }
    }

    /// How many more requests the percentile takes, or the maximum.
    fn missing(&self, quantile: Option<Quantile>) -> u64 {
        let above = if self.with_client == 0 { ALLOWED_MIN } else { SAMPLES_ABOVE_MIN };
        let needed = quantile.map_or(1, |quantile| quantile.samples_with_above(above).unwrap_or(u64::MAX));
        needed.saturating_sub(self.requests)
    }

    fn is_statistic_below(&self, objective: &Objective) -> Option<bool> {
        match objective.subject.metric {
            Metric::Response(Statistic::Max) | Metric::Service(Statistic::Max) => self.is_maximum_below(),
            _ => self.is_below(),
        }
    }

    /// Does the percentile that allows so many lie below the bound? `None` where the requests do not decide.
    fn is_below(&self) -> Option<bool> {
        let Self { allowed, with_client, without_client, .. } = *self;
        if with_client <= allowed && allowed >= SAMPLES_ABOVE_MIN
            || with_client == 0 && allowed >= ALLOWED_MIN
        {
            Some(true)
        } else if without_client > allowed && without_client >= SAMPLES_ABOVE_MIN {
            Some(false)
        } else {
            None
        }
    }

    /// As [`Self::is_below`], of the maximum, which a single request decides.
    fn is_maximum_below(&self) -> Option<bool> {
        match (self.with_client, self.without_client) {
            (0, _) => Some(true),
            (_, 0) => None,
            _ => Some(false),
        }
    }
}

/// Requests due in the window that ask for a reply.
fn requests_due(row: &OpSummary) -> u64 {
    row.requests.scheduled.saturating_sub(row.requests.outcome(OutcomeClass::Unacknowledged))
}

/// A count of this run, compared exactly.
fn exact(open: Assertion) -> Assertion {
    let Some(measured) = open.measured else { return open };
    let decision = decide(Bounds::exact(measured), |value| open.objective.is_met_by(value));
    Assertion { decision, reason: None, ..open }
}

/// An objective about a latency beside the requests that decide it.
struct Count<'a> {
    objective: Objective,
    row: &'a OpSummary,
    client: &'a Client,
    drain_ns: u64,
}

impl Count<'_> {
    /// The mean of the run, with and without the client's part.
    fn mean(&self, open: Assertion) -> Assertion {
        let Some(mean_ns) = open.measured else { return self.too_few(open) };
        let part_ns = self.part_ns(Statistic::Mean, mean_ns);
        let bounds = Bounds { low: (mean_ns - part_ns as f64).max(0.0), high: mean_ns };
        let decision = decide(bounds, |value| self.objective.is_met_by(value));
        let reason = (decision == Decision::Undecided).then_some(Reason::Client { part_ns, unsent: 0 });
        Assertion { decision, reason, ..open }
    }

    /// The statistic is not given.
    fn too_few(&self, open: Assertion) -> Assertion {
        let needed = self
            .objective
            .subject
            .percentile()
            .and_then(|quantile| quantile.samples_with_above(SAMPLES_ABOVE_MIN));
        let more = needed.unwrap_or(1).saturating_sub(self.row.latency.response.summary.count).max(1);
        Assertion { reason: Some(Reason::Requests { more, ns: None }), ..open }
    }

    /// A percentile or the maximum, by the requests that reached the bound.
    fn extreme(&self, statistic: Statistic, open: Assertion) -> Assertion {
        let quantile = self.objective.subject.percentile();
        let reached = self.reached(statistic, quantile);
        let is_below = reached.is_statistic_below(&self.objective);
        let decision = decision(&self.objective, is_below);
        let reason = is_below.is_none().then(|| self.reason(statistic, quantile, &reached, open.measured));
        let another_run_ns = is_below.and_then(|is_below| self.another_run_ns(is_below, quantile, decision));
        Assertion { decision, reached: Some(reached), reason, another_run_ns, ..open }
    }

    fn reached(&self, statistic: Statistic, quantile: Option<Quantile>) -> Reached {
        let row = self.row;
        let requests = requests_due(row);
        let rank = quantile.map_or(requests, |quantile| quantile.rank(requests));
        let bound_ns = self.bound_ns();
        let is_service = matches!(self.objective.subject.metric, Metric::Service(_));
        // Of the service time no busy period is kept: the client's part of the same statistic of the response time is taken off.
        let (measured, least, part_ns) = match is_service {
            true => (&row.latency.service, &row.latency.service, client_share_ns(row, statistic)),
            false => (&row.latency.response, &row.latency.least, row.stack_delay.ns(statistic)),
        };
        let with_client = at_most_from(&measured.histogram, bound_ns) + row.unanswered();
        let held_ns = self.client.held_ns(row).saturating_add(part_ns);
        let at_least = at_least_from(&least.histogram, bound_ns.saturating_add(held_ns));
        let failed = row.requests.failed() + row.requests.abandoned + row.requests.unsent_connection();
        // Least times hold those of failed requests, too: no request is counted twice.
        let counted = if is_service { 0 } else { at_most_from(&row.latency.failed.histogram, bound_ns) };
        // A request without a reply when the run ended is at least as old as the drain was long.
        let is_old = self.drain_ns >= bound_ns.saturating_add(held_ns);
        let out = if is_old { row.requests.in_flight } else { 0 };
        let without_client = (at_least + failed.saturating_sub(counted) + out).min(with_client);
        Reached { requests, allowed: requests - rank.min(requests), with_client, without_client }
    }

    /// The lowest time that reaches the bound: more than it, or it as well.
    fn bound_ns(&self) -> u64 {
        let bound_ns = self.objective.bound.value() as u64;
        match self.objective.comparison {
            Comparison::Less | Comparison::GreaterOrEqual => bound_ns,
            Comparison::LessOrEqual | Comparison::Greater => bound_ns.saturating_add(1),
        }
    }

    /// The client's part of a statistic whose value this is, in nanoseconds.
    fn part_ns(&self, statistic: Statistic, value: f64) -> u64 {
        let held_ns = self.client.held_ns(self.row);
        if matches!(self.objective.subject.metric, Metric::Service(_)) {
            return client_share_ns(self.row, statistic).saturating_add(held_ns).min(value as u64);
        }
        let least_ns = latency(statistic, &self.row.latency.least.summary).unwrap_or(0.0);
        (value - (least_ns - held_ns as f64).max(0.0)).max(0.0) as u64
    }

    fn reason(
        &self,
        statistic: Statistic,
        quantile: Option<Quantile>,
        reached: &Reached,
        measured: Option<f64>,
    ) -> Reason {
        let more = reached.missing(quantile);
        if more > 0 {
            let rate = self.row.rate.completed;
            return Reason::Requests { more, ns: (rate > 0.0).then(|| (more as f64 / rate * 1e9) as u64) };
        }
        let part_ns = measured.map_or(0, |value| self.part_ns(statistic, value));
        match self.row.requests.unsent_client {
            0 if part_ns == 0 => Reason::Resolution,
            unsent => Reason::Client { part_ns, unsent },
        }
    }

    fn another_run_ns(&self, is_below: bool, quantile: Option<Quantile>, decision: Decision) -> Option<u64> {
        let Metric::Response(_) = self.objective.subject.metric else { return None };
        let interval = self.row.interval(quantile?)?;
        let end_ns = if is_below { interval.high_ns? } else { interval.low_ns };
        let holds = self.objective.is_met_by(end_ns as f64);
        (holds != (decision == Decision::Holds)).then_some(end_ns)
    }
}

/// How many values may be `from` or above: buckets by their upper ends.
fn at_most_from(histogram: &Histogram, from: u64) -> u64 {
    count_where(histogram, |values| *values.end() >= from)
}

/// How many values are `from` or above, whatever they are within their buckets; the largest is known exactly.
fn at_least_from(histogram: &Histogram, from: u64) -> u64 {
    let counted = count_where(histogram, |values| *values.start() >= from);
    counted.max(u64::from(histogram.max().is_some_and(|max| max >= from)))
}

fn count_where(histogram: &Histogram, is_counted: impl Fn(&RangeInclusive<u64>) -> bool) -> u64 {
    histogram.ranges().filter(|(values, _)| is_counted(values)).map(|(_, count)| count).sum()
}

/// The number; `None` where the requests do not support it.
fn measured(metric: Metric, row: &OpSummary) -> Option<f64> {
    let part = |part: u64, whole: u64| (whole > 0).then(|| part as f64 / whole as f64);
    let counts = &row.requests;
    match metric {
        Metric::Response(statistic) => latency(statistic, &row.latency.response.summary),
        Metric::Service(statistic) => latency(statistic, &row.latency.service.summary),
        Metric::Client(quantile) => row.client_error_ns(quantile).map(|ns| ns as f64),
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

#[cfg(test)]
mod tests;
