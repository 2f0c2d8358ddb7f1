//! What the requests of one agent came to, beside those of the others.
//!
//! Not its part of the run, which is in the totals. Invariant: what is kept does not grow with the length of the run.

use crate::histogram::Histogram;
use crate::interval::Interval;
use crate::latency::LatencySummary;
use crate::request_counts::CountEntry;
use brunt_plan::phase::Phase;
use brunt_plan::quantile::Quantile;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Measured requests of an agent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct AgentRequests {
    /// Completed.
    pub completed: u64,
    /// Failed, or abandoned while a server was down.
    pub failed: u64,
    /// Median response time in nanoseconds; null with too few.
    pub p50_ns: Option<u64>,
    /// The same at the 99th percentile.
    pub p99_ns: Option<u64>,
    /// The longest.
    pub max_ns: Option<u64>,
}

/// Adds up the measured requests of an agent.
#[derive(Clone, Debug, Default)]
pub struct AgentTotals {
    response: Histogram,
    completed: u64,
    failed: u64,
}

impl AgentTotals {
    /// Adds what one of its workers recorded.
    pub fn add(&mut self, interval: &Interval) {
        interval.request_counts.iter().for_each(|entry| self.count(entry));
        interval.rows.iter().for_each(|row| self.response.merge_sparse(&row.latencies.response));
    }

    /// What all of its workers recorded: counts, and response times by operation.
    pub(crate) fn of<'a>(
        counts: impl Iterator<Item = CountEntry>,
        responses: impl Iterator<Item = &'a Histogram>,
    ) -> Self {
        let mut totals = Self::default();
        counts.for_each(|entry| totals.count(&entry));
        responses.for_each(|response| totals.response.merge(response));
        totals
    }

    fn count(&mut self, CountEntry { phase, counts, .. }: &CountEntry) {
        if *phase == Phase::Measure {
            self.completed += counts.requests.completed();
            self.failed += counts.requests.failed() + counts.requests.abandoned;
        }
    }

    /// What they come to.
    pub fn requests(&self) -> AgentRequests {
        let response = LatencySummary::with(&self.response, &[Quantile::P50, Quantile::P99]);
        AgentRequests {
            completed: self.completed,
            failed: self.failed,
            p50_ns: response.p50_ns(),
            p99_ns: response.p99_ns(),
            max_ns: response.max_ns,
        }
    }
}
