//! What the servers say of themselves over the measured window, in a paragraph, and side by side where there are several.
//!
//! Not our own counts (those are above) and not whether the two agree (that is the verdict's).

use crate::paragraph::{self, printable};
use crate::quantity;
use crate::server;
use brunt_stats::server_stats::{ServerRecord, ServerSpan};
use brunt_stats::summary::Summary;

/// The headings of what a server says, for a table in which each server has a row.
pub(super) const HEADING: [&str; 5] = ["hit ratio", "evictions", "items", "memory", "CPU/request"];

pub(super) fn write(out: &mut String, summary: &Summary) {
    if summary.record.run.server_records.is_empty() {
        return;
    }
    let mut facts = server::window(summary).map(|span| facts(&span)).unwrap_or_default();
    for (name, record, trouble) in server::troubles(summary) {
        let nothing = if record.snapshots().is_empty() { "nothing" } else { "nothing any more" };
        facts.push(printable(&format!("{name}{nothing}: {trouble}")));
    }
    if !facts.is_empty() {
        paragraph::facts(out, "server stats", &facts);
    }
}

fn facts(span: &ServerSpan) -> Vec<String> {
    let evictions = |evictions: u64| match evictions {
        0 => "no evictions".to_owned(),
        _ => {
            let per_second = quantity::significant(span.per_second(evictions));
            format!("{} ({per_second}/s)", quantity::things(evictions, "eviction"))
        }
    };
    let requests = |requests: u64| format!("{} requests/s", quantity::significant(span.per_second(requests)));
    let cpu = |ns: f64| format!("{} of CPU per request", quantity::time(ns.round() as u64));
    let all = [
        span.requests.map(requests),
        span.hit_ratio().map(|ratio| format!("hit ratio {}", percent(ratio))),
        span.evictions.map(evictions),
        span.items.map(|items| quantity::things(items, "item")),
        memory(span),
        span.cpu_ns_per_request().map(cpu),
    ];
    all.into_iter().flatten().collect()
}

fn percent(ratio: f64) -> String {
    format!("{} %", quantity::significant(ratio * 100.0))
}

fn memory(span: &ServerSpan) -> Option<String> {
    let used = quantity::bytes(span.bytes?);
    Some(match span.bytes_max {
        Some(most) => format!("{used} of {}", quantity::bytes(most)),
        None => used,
    })
}

/// A server's cells under [`HEADING`].
pub(super) fn cells(summary: &Summary, record: &ServerRecord) -> Vec<String> {
    let span = record.span_of_window(&summary.window).unwrap_or_default();
    let cells = [
        span.hit_ratio().map(percent),
        span.evictions.map(|count| count.to_string()),
        span.items.map(|count| count.to_string()),
        memory(&span),
        span.cpu_ns_per_request().map(|ns| quantity::time(ns.round() as u64)),
    ];
    cells.into_iter().map(|cell| cell.unwrap_or_else(|| "-".to_owned())).collect()
}
