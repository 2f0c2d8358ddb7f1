//! The status of a run and its assertions as JSON.

use crate::assertion_text::AssertionText;
use brunt_stats::assertion::{Assertion, Reason};
use brunt_stats::bound::Bounds;
use brunt_stats::status::RunStatus;
use brunt_stats::summary::Summary;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// May the numbers be quoted, and what came of `--assert`?
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct StatusTree {
    /// The status.
    #[serde(flatten)]
    pub status: RunStatus,
    /// Results of `--assert`, in the order given.
    pub assertions: Vec<AssertionResult>,
}

/// An assertion and how it came out.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct AssertionResult {
    /// What was asserted.
    pub text: String,
    /// `"holds"`, `"fails"` or `"undecided"`.
    pub outcome: String,
    /// The number, in nanoseconds, per second, or as a fraction from 0 to 1.
    pub value: Option<f64>,
    /// The bound, in the same unit.
    pub bound: f64,
    /// Of a percentile or the maximum: requests due that ask for a reply.
    pub requests: Option<u64>,
    /// How many of them reached the bound, as measured.
    pub reached: Option<u64>,
    /// How many did without the client's part.
    pub reached_without_client: Option<u64>,
    /// How many may reach the bound.
    pub allowed: Option<u64>,
    /// The finding as the report has it.
    pub message: String,
    /// Of a latency in closed loop: requests per second that were reached.
    pub at_rate: Option<f64>,
    /// How many requests are missing to decide it.
    pub needs_requests: u64,
    /// Their time at the rate of the run.
    pub needs_ns: Option<u64>,
}

impl StatusTree {
    pub(crate) fn of(summary: &Summary) -> Self {
        Self {
            status: summary.status.clone(),
            assertions: summary.assertions.iter().map(AssertionResult::of).collect(),
        }
    }
}

impl AssertionResult {
    pub(crate) fn of(assertion: &Assertion) -> Self {
        let (needs_requests, needs_ns) = match assertion.reason {
            Some(Reason::Requests { more, ns }) => (more, ns),
            _ => (0, None),
        };
        let reached = assertion.reached;
        Self {
            text: assertion.objective.to_string(),
            outcome: assertion.decision.name().to_owned(),
            value: assertion.measured,
            bound: assertion.objective.bound.value(),
            requests: reached.map(|reached| reached.requests),
            reached: reached.map(|reached| reached.with_client),
            reached_without_client: reached.map(|reached| reached.without_client),
            allowed: reached.map(|reached| reached.allowed),
            message: AssertionText::of(assertion).finding,
            at_rate: assertion.at_rate,
            needs_requests,
            needs_ns,
        }
    }
}

/// The ends; `null` where nothing bounds it.
pub(crate) fn bounds(bounds: Bounds) -> (f64, Option<f64>) {
    (bounds.low, Some(bounds.high).filter(|high| high.is_finite()))
}
