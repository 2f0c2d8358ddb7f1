//! The measured window as JSON: when it was, whether it was steady, what became of `--until`, whether its numbers may be quoted, and its
//! course in rows of one line each.

use super::servers::Span;
use crate::assertion_text::AssertionText;
use crate::instant::in_window_ns;
use crate::server;
use brunt_plan::plan::Plan;
use brunt_stats::assertion::{Assertion, Reason};
use brunt_stats::bound::Bounds;
use brunt_stats::change_point::ChangePoint;
use brunt_stats::check::CheckId;
use brunt_stats::confidence::PercentileInterval;
use brunt_stats::convergence::GoalResult;
use brunt_stats::convergence::UntilResult;
use brunt_stats::interval::Activity;
use brunt_stats::status::RunStatus;
use brunt_stats::summary::Summary;
use brunt_stats::timeline::{OpPoint, PointLatency, Timeline, TimelinePoint};
use brunt_stats::usage::ClientShares;
use brunt_stats::warmup::WarmupEnd;
use indexmap::IndexMap;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::ops::Range;

/// The measured window.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Window {
    /// Its beginning by the wall clock of the host, in nanoseconds since 1970, to the microsecond. All instants count from it.
    pub start_unix_ns: Option<u64>,
    /// Its length.
    pub duration_ns: u64,
    /// Length of the warm-up before it.
    pub warmup_ns: u64,
    /// Why a warm-up of `auto` ended: `"level"`, `"trouble"` (a server was down or a connection failed), `"hit_ratio_fell"`, `"unknown"`
    /// (nothing to judge) or `"longest"` (not level after 60 s); `null` for one of a fixed length.
    pub warmup_end: Option<String>,
    /// Does a class send by a schedule (an open loop)?
    pub is_open_loop: bool,
    /// Was the schedule cut short from outside?
    pub interrupted: bool,
    /// The change point that STEADY found, or `null`.
    pub change: Option<ChangePoint>,
    /// Result of `--until`: at the check that ended the run, otherwise of the whole window; `null` without it.
    pub until: Option<Until>,
}

/// The result of `--until`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Until {
    /// Was every goal reached?
    pub reached: bool,
    /// Checks made.
    pub looks: u32,
    /// Their limit.
    pub looks_max: u32,
    /// Length of the window at the check that ended the run, `null` if none did.
    pub enough_ns: Option<u64>,
    /// Checks of the status that spoke against ending then.
    pub held_by: Vec<CheckId>,
    /// Those that could not be judged then.
    pub unjudged: Vec<CheckId>,
    /// Each goal.
    pub goals: Vec<Goal>,
}

/// A goal of `--until`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Goal {
    /// Its text.
    pub goal: String,
    /// Was it reached?
    pub reached: bool,
    /// Half the width of the interval as a fraction of the percentile, `null` if there was none.
    pub half_width: Option<f64>,
}

impl Window {
    pub(crate) fn of(summary: &Summary) -> Self {
        let (window, run) = (&summary.window, &summary.record.run);
        let start_unix_ns =
            |epoch_us: u64| epoch_us.saturating_add(window.measure_ns / 1_000).saturating_mul(1_000);
        Self {
            start_unix_ns: run.times.epoch_us.map(start_unix_ns),
            duration_ns: window.duration_ns(),
            warmup_ns: window.measure_ns.saturating_sub(window.start_ns),
            warmup_end: run.warmup_end.map(|end| WarmupEnd::name(end).to_owned()),
            is_open_loop: summary.record.plan.has_open_loop(),
            interrupted: run.interrupted,
            change: summary.steady.change_point().copied(),
            until: summary.until.as_ref().map(Until::of),
        }
    }
}

impl Until {
    fn of(until: &UntilResult) -> Self {
        let goal = |goal: &GoalResult| Goal {
            goal: goal.precision.to_string(),
            reached: goal.is_reached,
            half_width: goal.interval.as_ref().and_then(PercentileInterval::relative_half_width),
        };
        Self {
            reached: until.is_reached() && !until.is_interrupted,
            looks: until.taken,
            looks_max: until.looks,
            enough_ns: until.enough_at_ns(),
            held_by: until.look.held_by.clone(),
            unjudged: until.look.unjudged.clone(),
            goals: until.look.goals.iter().map(goal).collect(),
        }
    }
}

/// Length of a piece: long enough for a p99 at 1000 requests a second.
const PIECE_NS: u64 = 1_000_000_000;

/// A piece of the window. Pieces in which nothing happened are present; the last may be shorter.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Piece {
    /// Its beginning.
    pub start_ns: i64,
    /// Its end.
    pub end_ns: i64,
    /// Requests, whatever their phase.
    #[serde(flatten)]
    pub activity: Activity,
    /// Response times of measured requests that completed in it.
    #[serde(flatten)]
    pub latency: PointLatency,
    /// By operation, of those that occurred.
    pub ops: IndexMap<String, OpPiece>,
    /// What went on at the servers between the answers nearest to its edges, of the servers that have one within half a second of each edge
    /// and did not restart; `null` if none has, and in pieces of less than a second by `--interval`.
    pub server: Option<ServerPiece>,
    /// Fractions of time to 0.1 %; `null` where no clock was read, as each of them may be.
    pub client: Option<ClientShares>,
}

/// Measured requests of one operation.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct OpPiece {
    /// Completed.
    pub completed: u64,
    /// Failed.
    pub failed: u64,
    /// Their response times.
    #[serde(flatten)]
    pub latency: PointLatency,
}

/// What went on at the servers.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ServerPiece {
    /// Of all of them together.
    #[serde(flatten)]
    pub span: Span,
    /// How many servers.
    pub count: usize,
}

impl Piece {
    pub(crate) fn all(summary: &Summary) -> Vec<Self> {
        summary.intervals(PIECE_NS).iter().map(|point| Self::of(summary, point)).collect()
    }

    fn of(summary: &Summary, point: &TimelinePoint) -> Self {
        let TimelinePoint { start_ns, end_ns, activity, latency, client, .. } = *point;
        let records = &summary.record.run.server_records;
        let width_ns = summary.timeline().row_ns(start_ns, PIECE_NS);
        let server = server::piece(records, width_ns, start_ns, end_ns);
        Self {
            start_ns: in_window_ns(summary, start_ns),
            end_ns: in_window_ns(summary, end_ns),
            activity,
            latency,
            ops: OpPiece::all(&summary.record.plan, summary.timeline(), start_ns..end_ns),
            server: server.map(|(span, count)| ServerPiece { span: Span::of(summary, &span), count }),
            client: client.shares(),
        }
    }
}

impl OpPiece {
    /// The operations of a piece of time, by name.
    pub(crate) fn all(plan: &Plan, timeline: &Timeline, span: Range<u64>) -> IndexMap<String, Self> {
        let named = |point: OpPoint| {
            let OpPoint { op, completed, failed, latency } = point;
            (plan.op_name(op).to_string(), Self { completed, failed, latency })
        };
        timeline.ops(span).into_iter().map(named).collect()
    }
}

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
