//! Servers by name, as reports call them, and what all of them together say of a span of time.
//!
//! Not what each of them did. The plan names servers in an order, and everything else refers to them by their place in it.

use brunt_stats::statistics::ServerSpan;
use brunt_stats::summary::Summary;

/// The name of a server of the plan; the plan does not name the one that is started for it.
pub(crate) fn name(summary: &Summary, index: usize) -> String {
    summary.plan.servers().get(index).map_or_else(|| "embedded".to_owned(), ToString::to_string)
}

/// What went on in the measured window by the servers' own account, all of them together; `None` where one does not say.
pub(crate) fn window(summary: &Summary) -> Option<ServerSpan> {
    ServerSpan::sum(summary.server_records.iter().map(|record| record.span_of_window(&summary.window)))
}

/// The same for a piece of the timeline, where there are snapshots at its edges.
pub(crate) fn piece(summary: &Summary, start_ns: u64, end_ns: u64) -> Option<ServerSpan> {
    ServerSpan::sum(summary.server_records.iter().map(|record| record.span_of_piece(start_ns, end_ns)))
}
