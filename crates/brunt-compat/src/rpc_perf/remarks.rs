//! What rpc-perf's log has no place for, in lines for standard error.
//!
//! Not the log. Invariant: each line begins with its level.

use crate::remarks::{said, status, unsent};
use brunt_plan::quantile::Quantile;
use brunt_stats::summary::Summary;

/// Remarks on a run that is over.
pub(super) fn of(summary: &Summary) -> Vec<String> {
    let said = said(summary).map(|said| format!("warning: the server sent {said}"));
    let unsent = unsent(summary, "requests");
    said.into_iter().chain(unsent).chain(waited(summary)).chain(status(summary)).collect()
}

/// The 99th percentile from both beginnings, where they differ by more than a tenth.
fn waited(summary: &Summary) -> Option<String> {
    let latency = &summary.total.latency;
    let [due_us, sent_us] = [&latency.response, &latency.service]
        .map(|latency| latency.histogram.quantile(Quantile::P99).unwrap_or(0) as f64 / 1e3);
    (due_us > sent_us * 1.1).then(|| {
        format!("note: p99 of all windows: {due_us:.0} us from when a request was due, {sent_us:.0} us from when it was sent")
    })
}
