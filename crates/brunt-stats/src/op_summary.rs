//! The numbers of one row of a report: all requests, those of one op, or those of one class.
//!
//! Invariants: percentiles come from merged histograms, rates from counts of what happened inside the measured window; a sum over the same
//! (class, op) is made once; the client's part alone makes a percentile an upper limit, and the number of requests alone keeps it back.

use crate::check::CheckStatus;
use crate::confidence::{Batch, PercentileInterval, batches, intervals};
use crate::histogram::Histogram;
use crate::interval::Latencies;
use crate::latency::{ClientError, LatencySummary, client_errors};
use crate::request_counts::{KeyCounts, OpCounts, RequestCounts};
use crate::stack_delay::StackDelay;
use crate::store::IntervalStore;
use crate::store::RowTotals;
use crate::window::RunTimes;
use crate::window::WindowCounts;
use brunt_plan::op::{ClassId, OpId, OpName};
use brunt_plan::phase::Phase;
use brunt_plan::plan::{Class, Load, MeterKind, Plan};
use brunt_plan::quantile::Quantile;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::cell::RefCell;
use std::sync::Arc;

/// In a closed loop that lost more than this share of its slots' time to the client, the client limits the load that was reached.
pub const LAG_SHARE_MAX: f64 = 0.05;

/// Ops of one row of the report: of one kind, of one class, or of all. Measured ones, which are those that were due in the
/// window, but for what happened in it.
#[derive(Clone, Debug, PartialEq)]
pub struct OpSummary {
    /// What became of the requests.
    pub requests: RequestCounts,
    /// What became of the keys.
    pub keys: KeyCounts,
    /// What happened inside the window, whenever it was due.
    pub in_window: WindowCounts,
    /// Per second of the window.
    pub rate: Rates,
    /// Latencies in nanoseconds.
    pub latency: Latencies<Distribution>,
    /// The client error of every percentile of the response time that is given.
    pub client_error: Vec<ClientError>,
    /// The confidence interval of every percentile of the response time that is given; none where the window is too
    /// short for batches.
    pub intervals: Vec<PercentileInterval>,
    /// What the client's clock readings leave out, which is in the client error and in the bounds of decisions.
    pub stack_delay: StackDelay,
    /// The share of the slots' time in closed loop for which the client held the next request back; 0 in open loop.
    pub lag_fraction: f64,
}

impl OpSummary {
    pub(crate) fn of(
        counts: OpCounts,
        mut totals: RowTotals,
        window: &RunTimes,
        batches: &[Batch],
        quantiles: &[Quantile],
        lag_fraction: f64,
        stack_delay: StackDelay,
    ) -> Self {
        let intervals = intervals(batches, quantiles);
        let mut latency =
            totals.latencies.map(|histogram| Distribution::of(std::mem::take(histogram), quantiles));
        // Histograms stay as they are: what the clock readings leave out is known of each statistic, not of each request.
        latency.without_client.summary.less(|statistic| stack_delay.ns(statistic));
        latency.least.summary.less(|statistic| stack_delay.ns(statistic));
        Self {
            requests: counts.requests,
            keys: counts.keys,
            in_window: counts.in_window,
            rate: Rates {
                offered: window.rate(counts.requests.offered()),
                sent: window.rate(counts.in_window.sent),
                completed: window.rate(counts.in_window.completed()),
            },
            client_error: client_errors(&latency.response.summary, &latency.without_client.summary),
            latency,
            intervals,
            stack_delay,
            lag_fraction,
        }
    }

    /// Requests that ended without an answer as the protocol provides, or were never sent: each would have taken longer than any bound.
    pub fn unanswered(&self) -> u64 {
        self.requests.failed() + self.requests.unsent + self.requests.in_flight
    }

    /// The confidence interval of a percentile, where it has one.
    pub fn interval(&self, quantile: Quantile) -> Option<&PercentileInterval> {
        self.intervals.iter().find(|interval| interval.quantile == quantile)
    }

    /// At most so much of a percentile is the client's, in nanoseconds.
    pub fn client_error_ns(&self, quantile: Quantile) -> Option<u64> {
        self.client_error.iter().find(|error| error.quantile == quantile).map(|error| error.error_ns)
    }

    /// Response times of completed and of failed ops together: what a user saw who waits for whatever comes.
    pub fn including_failures(&self) -> LatencySummary {
        let Latencies { response, failed, .. } = &self.latency;
        if failed.histogram.count() == 0 {
            return response.summary.clone();
        }
        let mut histogram = Histogram::clone(&response.histogram);
        histogram.merge(&failed.histogram);
        let quantiles: Vec<Quantile> =
            response.summary.percentiles.iter().map(|held| held.quantile).collect();
        LatencySummary::with(&histogram, &quantiles)
    }
}

/// Requests per second of the measured window.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Rates {
    /// Due in the window, but for follow-ups: what the schedule offered.
    pub offered: f64,
    /// Sent inside the window, whenever they were due.
    pub sent: f64,
    /// Completed inside the window, whenever they were due.
    pub completed: f64,
}

impl Rates {
    /// The most of the three: what the client had to be capable of.
    pub fn busiest(&self) -> f64 {
        self.offered.max(self.sent).max(self.completed)
    }
}

/// A distribution: what is printed and what it was made from.
#[derive(Clone, Debug, PartialEq)]
pub struct Distribution {
    /// Moments and percentiles.
    pub summary: LatencySummary,
    /// Every value, to a bucket. One that is in several rows is there once.
    pub histogram: Arc<Histogram>,
}

impl Distribution {
    fn of(histogram: Histogram, quantiles: &[Quantile]) -> Self {
        Self { summary: LatencySummary::with(&histogram, quantiles), histogram: Arc::new(histogram) }
    }
}

/// One op.
#[derive(Clone, Debug, PartialEq)]
pub struct OpRow {
    /// The op.
    pub op: OpId,
    /// What it is called.
    pub name: OpName,
    /// Its numbers.
    pub summary: OpSummary,
}

/// One class.
#[derive(Clone, Debug, PartialEq)]
pub struct ClassSummary {
    /// Its index in the plan.
    pub class: ClassId,
    /// Its name.
    pub name: String,
    /// All its ops.
    pub total: OpSummary,
    /// By op, in the order of its mix.
    pub ops: Vec<OpRow>,
}

/// The client's part up to this is below what a kernel's wake-up costs: it is never too much.
const CLIENT_PART_FLOOR_NS: u64 = 10_000;
/// Of more than this share of a number the client's part leaves an upper limit,
const UPPER_LIMIT_SHARE: f64 = 0.20;
/// in a strict judgement of more than this.
const UPPER_LIMIT_SHARE_STRICT: f64 = 0.05;
/// More than this share of a percentile may not be the client's.
pub(crate) const CLIENT_SHARE_MAX: f64 = 0.5;

brunt_plan::named! {
    /// How a percentile is shown.
    pub enum PercentileMark {
        /// A number.
        Quoted = "quoted": "may be quoted",
        /// `<=` and the number: the true one lies between it less the client's part and it.
        UpperLimit = "upper_limit": "an upper limit, as much of it may be the client's",
        /// `-`: fewer than ten requests lie above it.
        TooFew = "too_few": "too few requests",
    }
}

impl PercentileMark {
    /// Of a percentile of so many requests with this value, of which so much may be the client's part.
    pub fn of(count: u64, quantile: Quantile, value_ns: u64, client_part_ns: u64, is_strict: bool) -> Self {
        let most = if is_strict { UPPER_LIMIT_SHARE_STRICT } else { UPPER_LIMIT_SHARE };
        if !quantile.is_supported_by(count) {
            Self::TooFew
        } else if client_part_ns > CLIENT_PART_FLOOR_NS && client_part_ns as f64 > most * value_ns as f64 {
            Self::UpperLimit
        } else {
            Self::Quoted
        }
    }
}

impl OpSummary {
    /// How a percentile of its response time is shown.
    pub fn mark(&self, quantile: Quantile, is_strict: bool) -> PercentileMark {
        let response = &self.latency.response.summary;
        let value_ns = response.percentile_ns(quantile).unwrap_or(0);
        let part_ns = self.client_error_ns(quantile).unwrap_or(0);
        PercentileMark::of(response.count, quantile, value_ns, part_ns, is_strict)
    }
}

/// How the client's part of all requests comes out while a run goes on.
pub(crate) fn status_of_part(plan: &Plan, total: &OpSummary) -> CheckStatus {
    let asked = plan.asked_quantiles();
    let errors = || judged(total, &asked);
    match (errors().any(is_most), errors().all(is_most)) {
        _ if errors().next().is_none() => CheckStatus::Skipped,
        (true, true) if plan.has_open_loop() => CheckStatus::Invalid,
        (true, _) => CheckStatus::Caution,
        (false, _) => CheckStatus::Ok,
    }
}

/// The client's part of each of these percentiles that a row has.
pub(crate) fn judged<'a>(row: &'a OpSummary, asked: &'a [Quantile]) -> impl Iterator<Item = &'a ClientError> {
    row.client_error.iter().filter(|error| asked.contains(&error.quantile))
}

/// Is more than half of it the client's?
pub(crate) fn is_most(error: &ClientError) -> bool {
    error.error_ns > CLIENT_PART_FLOOR_NS
        && error.error_ns as f64 > CLIENT_SHARE_MAX * error.response_ns as f64
}

/// Sums over (class, op) of the measured phase.
pub(crate) struct RowSums<'a> {
    plan: &'a Plan,
    store: &'a IntervalStore,
    window: &'a RunTimes,
    stack_delay: StackDelay,
    /// What was summed up before, by the (class, op) that it holds: with one class the total is also the class's, with one
    /// kind of op also the kind's.
    known: RefCell<Vec<Known>>,
}

impl<'a> RowSums<'a> {
    /// `unread_ns`: what counts as the client's where too few requests have kernel timestamps.
    pub(crate) fn new(
        plan: &'a Plan,
        store: &'a IntervalStore,
        window: &'a RunTimes,
        unread_ns: u64,
    ) -> Self {
        let stack_delay =
            StackDelay::of(store.meter(MeterKind::WithoutClient), store.meter(MeterKind::WireAndServer));
        let stack_delay = stack_delay.or_wake_up(unread_ns);
        Self { plan, store, window, stack_delay, known: RefCell::default() }
    }

    /// The row of everything that `of` selects. Counts and histograms cover the same ops: the recorders have a row for
    /// every (class, op) that they measure.
    pub(crate) fn sum(&self, of: impl Fn(ClassId, OpId) -> bool) -> OpSummary {
        let all = self.store.rows().map(|(class, op, _)| (class, op));
        let chosen: Vec<(ClassId, OpId)> = all.filter(|(class, op)| of(*class, *op)).collect();
        if let Some((_, known)) = self.known.borrow().iter().find(|(held, _)| *held == chosen) {
            return known.clone();
        }
        let sum = self.sum_anew(of);
        self.known.borrow_mut().push((chosen, sum.clone()));
        sum
    }

    fn sum_anew(&self, of: impl Fn(ClassId, OpId) -> bool) -> OpSummary {
        let mut totals = RowTotals::default();
        let (mut lag_ns, mut slots_ns) = (0, 0.0);
        for (class, _, row) in self.store.rows().filter(|(class, op, _)| of(*class, *op)) {
            totals.merge(row);
            if let Load::Closed { think } = self.plan.classes[usize::from(class)].load {
                let response = row.latencies.response.moments();
                lag_ns += row.client_lag_ns;
                slots_ns += response.sum as f64 + response.count as f64 * think.0 as f64;
            }
        }
        if !self.plan.has_open_loop() {
            // No request had to queue behind others that a schedule wanted earlier: what the client held is its own part.
            totals.latencies.least.merge(&totals.latencies.without_client);
        }
        let lag_fraction = if slots_ns > 0.0 { lag_ns as f64 / slots_ns } else { 0.0 };
        let mut counts = OpCounts::default();
        let mut in_window = WindowCounts::default();
        for entry in self.store.request_counts.entries().filter(|entry| of(entry.class, entry.op)) {
            in_window.merge(&entry.in_window());
            if entry.phase == Phase::Measure {
                counts.merge(&entry.counts);
            }
        }
        counts.in_window = in_window;
        let batches = batches(&self.store.totals.timeline, self.window, self.window.measure_ns, of);
        let quantiles = self.plan.quantiles();
        let stack_delay = self.stack_delay.clone();
        OpSummary::of(counts, totals, self.window, &batches, &quantiles, lag_fraction, stack_delay)
    }

    pub(crate) fn by_op(&self, of: impl Fn(ClassId) -> bool) -> Vec<OpRow> {
        let mut ops: Vec<OpId> = Vec::new();
        for (class, op, _) in self.store.rows() {
            if of(class) && !ops.contains(&op) {
                ops.push(op);
            }
        }
        let row = |op| OpRow {
            op,
            name: self.plan.op_name(op),
            summary: self.sum(|class, held| of(class) && held == op),
        };
        ops.into_iter().map(row).collect()
    }
}

/// The sum over these (class, op).
type Known = (Vec<(ClassId, OpId)>, OpSummary);

pub(crate) fn class_summaries(plan: &Plan, rows: &RowSums<'_>) -> Vec<ClassSummary> {
    let classes = plan.classes.iter().enumerate();
    let summary = |(index, class): (usize, &Class)| ClassSummary {
        class: index as ClassId,
        name: class.name.clone(),
        total: rows.sum(|held, _| usize::from(held) == index),
        ops: rows.by_op(|held| usize::from(held) == index),
    };
    classes.map(summary).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use PercentileMark::{Quoted, TooFew, UpperLimit};

    #[test]
    fn marks_at_their_limits() {
        const US: u64 = 1_000;
        // Requests, percentile, value, client's part; the mark, and that of a strict judgement.
        let table = [
            (999, Quantile::P99, 100 * US, 0, TooFew, TooFew),
            (1_000, Quantile::P99, 100 * US, 0, Quoted, Quoted),
            (1_000, Quantile::P99, 100 * US, 20 * US, Quoted, UpperLimit),
            (1_000, Quantile::P99, 100 * US, 20 * US + 1, UpperLimit, UpperLimit),
            // What a wake-up costs is never held against a number.
            (1_000, Quantile::P99, 10 * US, 10 * US, Quoted, Quoted),
            (1_000, Quantile::P99, 10 * US, 10 * US + 1, UpperLimit, UpperLimit),
            (1_000, Quantile::P99, 1_000 * US, 50 * US, Quoted, Quoted),
            (1_000, Quantile::P99, 1_000 * US, 50 * US + 1, Quoted, UpperLimit),
        ];
        for (count, quantile, value_ns, part_ns, mark, strict) in table {
            let of = |is_strict| PercentileMark::of(count, quantile, value_ns, part_ns, is_strict);
            assert_eq!([of(false), of(true)], [mark, strict], "{count} {value_ns} {part_ns}");
        }
    }
}
