//! The servers' own account as JSON: what they said, and what went on from snapshot to snapshot.
//!
//! Not what we counted. docs/formats.md says what every key means.

use super::{list, object, whole};
use crate::instant::in_window_ns;
use crate::server;
use brunt_stats::server_stats::{ServerRecord, ServerSpan, SizeShare, Snapshot, StatComparison};
use brunt_stats::summary::Summary;
use serde_json::{Value, json};

/// `null` where no server was polled.
pub(super) fn server_stats(summary: &Summary) -> Value {
    if summary.record.run.server_records.is_empty() {
        return Value::Null;
    }
    let servers = summary.record.run.server_records.iter().enumerate();
    json!({
        "window": server::window(summary).map(|held| span(summary, &held)),
        "agreement": list(&summary.agreement, comparison),
        "servers": servers.map(|(index, held)| record(summary, index, held)).collect::<Vec<_>>(),
    })
}

/// What went on in a piece of the timeline, all servers together that were there.
pub(super) fn interval(summary: &Summary, start_ns: u64, end_ns: u64) -> Option<Value> {
    let width_ns = summary.timeline().row_ns(start_ns, 1_000_000_000);
    server::piece(&summary.record.run.server_records, width_ns, start_ns, end_ns).map(|(held, count)| {
        let mut value = span(summary, &held);
        value["count"] = json!(count);
        value
    })
}

fn comparison(held: &StatComparison) -> Value {
    let StatComparison { statistic, least, most, counted } = *held;
    json!({ "statistic": statistic.name(), "least": least, "most": most, "counted": counted })
}

fn record(summary: &Summary, index: usize, record: &ServerRecord) -> Value {
    let window = &summary.window;
    let (first, last) = (record.snapshots().first(), record.snapshots().last());
    let is_told = SizeShare::of(summary.record.run.server_records.len()).is_told;
    let told = |held: Option<&Snapshot>| held.filter(|_| is_told).map(|held| snapshot(summary, held));
    json!({
        "server": server::polled_server_name(summary, index),
        "version": last.and_then(|snapshot| snapshot.version.as_ref()),
        "trouble": record.trouble,
        "first": told(first),
        "prepared": told(record.prepared.as_ref()),
        "last": told(last),
        "window": record.span_of_window(window).map(|held| span(summary, &held)),
        "series": record.series().filter(|_| is_told).map(|held| span(summary, &held)).collect::<Vec<_>>(),
    })
}

fn snapshot(summary: &Summary, snapshot: &Snapshot) -> Value {
    let values: Vec<_> = snapshot.values().collect();
    let entry = |(statistic, value): &(brunt_stats::server_stats::ServerStat, u64)| {
        let unit = if statistic.is_time() { "_ns" } else { "" };
        (format!("{}{unit}", statistic.name()), json!(value))
    };
    json!({
        "asked_ns": in_window_ns(summary, snapshot.asked_ns),
        "at_ns": in_window_ns(summary, snapshot.at_ns),
        "statistics": object(&values, entry),
    })
}

fn span(summary: &Summary, span: &ServerSpan) -> Value {
    let per_second = |count: Option<u64>| count.map(|count| span.per_second(count));
    json!({
        "start_ns": in_window_ns(summary, span.start_ns),
        "end_ns": in_window_ns(summary, span.end_ns),
        "requests": span.requests,
        "requests_per_s": per_second(span.requests),
        "hits": span.hits,
        "misses": span.misses,
        "hit_ratio": span.hit_ratio(),
        "evictions": span.evictions,
        "evictions_per_s": per_second(span.evictions),
        "cpu_ns": span.cpu_ns,
        "cpu_ns_per_request": whole(span.cpu_ns_per_request()),
        "items": span.items,
        "bytes": span.bytes,
        "bytes_max": span.bytes_max,
    })
}
