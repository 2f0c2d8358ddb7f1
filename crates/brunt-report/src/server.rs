//! Servers by name, as reports call them, and what all of them together say of a span of time.
//!
//! Not what each of them did. The plan names servers in an order, and everything else refers to them by their place in it.

use crate::text::printable;
use brunt_stats::server_stats::{ServerRecord, ServerSpan};
use brunt_stats::summary::Summary;

const SECOND: u64 = 1_000_000_000;

/// The name of a server of the plan; the plan does not name the one that is started for it.
pub(crate) fn name(summary: &Summary, index: usize) -> String {
    summary.record.plan.server_name(index).unwrap_or_else(|| "embedded".to_owned())
}

/// The names of all servers of the plan, without end.
pub(crate) fn names(summary: &Summary) -> impl Iterator<Item = String> {
    with_embedded(summary.record.plan.server_names())
}

/// A name as a cell of a table, without blanks.
pub(crate) fn cell(name: &str) -> String {
    printable(name).replace(' ', "_")
}

/// Of those that were asked for their statistics.
pub(crate) fn polled_server_names(summary: &Summary) -> impl Iterator<Item = String> {
    with_embedded(summary.record.plan.polled_server_names())
}

fn with_embedded(names: Vec<Option<String>>) -> impl Iterator<Item = String> {
    let names = names.into_iter().chain(std::iter::repeat(None));
    names.map(|name| name.unwrap_or_else(|| "embedded".to_owned()))
}

/// Servers that do not tell of themselves, or no more: the name, where there are several, what they told, and why.
pub(crate) fn troubles(summary: &Summary) -> impl Iterator<Item = (String, &ServerRecord, &str)> {
    let records = &summary.record.run.server_records;
    polled_server_names(summary).zip(records).filter_map(move |(name, record)| {
        let trouble = record.trouble.as_deref()?;
        let name = name + ": ";
        Some((if records.len() > 1 { name } else { String::new() }, record, trouble))
    })
}

/// CPU time per request of each server of the plan in the measured window, in nanoseconds; `None` where a server does not tell.
pub(crate) fn cpu_ns_per_request(summary: &Summary) -> Vec<Option<f64>> {
    let mut cpu_ns = vec![None; summary.servers().len()];
    let polled_servers = summary.record.plan.polled_servers();
    for (index, record) in polled_servers.into_iter().zip(&summary.record.run.server_records) {
        if let Some(cpu_ns) = cpu_ns.get_mut(index) {
            *cpu_ns = record.span_of_window(&summary.window).and_then(|span| span.cpu_ns_per_request());
        }
    }
    cpu_ns
}

/// What went on in the measured window by the servers' own account, all of them together; `None` where one does not say.
pub(crate) fn window(summary: &Summary) -> Option<ServerSpan> {
    summary.record.run.servers_in(&summary.window)
}

/// Sums the statistics over a piece of the timeline, of those servers that were up all through it, and counts these servers: one that is
/// gone for a while must not make the others unknown. `None` where there is none, or pieces (`width_ns`) are shorter than a second.
pub(crate) fn piece(
    records: &[ServerRecord],
    width_ns: u64,
    start_ns: u64,
    end_ns: u64,
) -> Option<(ServerSpan, usize)> {
    // Servers are not asked more often than once a second.
    if width_ns < SECOND {
        return None;
    }
    let spans = records.iter().filter_map(|record| record.span_of_piece(start_ns, end_ns));
    // Of one that was started anew in it the counters tell nothing.
    let spans: Vec<_> = spans.filter(|span| span.requests.is_some()).collect();
    let count = spans.len();
    ServerSpan::sum(spans.into_iter().map(Some)).map(|sum| (sum, count))
}
