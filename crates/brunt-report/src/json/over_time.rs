//! A run over time as JSON: rows of one line each.

use super::servers::Span;
use crate::instant::in_window_ns;
use crate::server;
use brunt_plan::plan::Plan;
use brunt_stats::interval::Activity;
use brunt_stats::summary::Summary;
use brunt_stats::timeline::{OpPoint, PointLatency, Timeline, TimelinePoint};
use brunt_stats::usage::ClientShares;
use indexmap::IndexMap;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::ops::Range;

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
