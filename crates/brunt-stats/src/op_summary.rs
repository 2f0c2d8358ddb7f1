//! The numbers of one row of a report: all requests, those of one op, or those of one class.
//!
//! Invariant: percentiles come from merged histograms, rates from counts of what happened inside the measured window.

use crate::batch::Batch;
use crate::confidence::{PercentileInterval, intervals};
use crate::histogram::Histogram;
use crate::interval::Latencies;
use crate::latency::{ClientError, LatencySummary, client_errors};
use crate::measured_window::MeasuredWindow;
use crate::request_counts::{KeyCounts, OpCounts, RequestCounts};
use crate::stack_delay::StackDelay;
use crate::store::RowTotals;
use crate::window::WindowCounts;
use brunt_plan::op::{ClassId, OpId, OpName};
use brunt_plan::quantile::Quantile;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
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
        window: &MeasuredWindow,
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
