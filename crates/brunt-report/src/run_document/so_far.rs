//! Parts of a screen that shows a run while it goes on: the report's own head, table, events and status, each by itself.
//!
//! Not where they stand on the screen, nor how much of each has room there. Invariant: every line reads as it will in the report.

use super::{conclusion, events, fact_lines, head, latency};
use crate::document::{Content, Document, Level};
use crate::layout::{Layout, Line};
use crate::quantity;
use crate::server;
use brunt_stats::client_time::{ClientShares, ClientTime};
use brunt_stats::latency::LatencySummary;
use brunt_stats::summary::Summary;

const SECOND_NS: u64 = 1_000_000_000;

/// Lines of each part.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SoFarText {
    /// What runs, and against which servers.
    pub head: Vec<Line>,
    /// The table of response times.
    pub latency: Vec<Line>,
    /// What became of requests, and how late the client was.
    pub requests: Vec<Line>,
    /// Outages, and the p99 over time.
    pub events: Vec<Line>,
    /// Which percentiles may be quoted so far, and why not more.
    pub conclusion: Vec<Line>,
}

/// The parts of a run that goes on, with at most so many rows of operations.
pub fn so_far(summary: &Summary, layout: &Layout, rows: usize) -> SoFarText {
    let lines = |write: &dyn Fn(&mut Document)| {
        let lines = Document::of(write).lines(layout, Level::Long).into_iter();
        lines.filter(|line| !line.is_empty()).collect()
    };
    SoFarText {
        head: lines(&|document| {
            let lines = head::load_lines(summary);
            lines.into_iter().for_each(|(label, facts)| document.facts(label, facts));
        }),
        latency: lines(&|document| {
            let tables = latency::tables(summary, layout, rows);
            tables.into_iter().for_each(|grid| document.table(grid));
        }),
        requests: lines(&|document| requests(document, summary)),
        events: lines(&|document| {
            events::write(document, summary);
            events::over_time(document, summary);
        }),
        conclusion: lines(&|document| found(document, summary)),
    }
}

fn requests(document: &mut Document, summary: &Summary) {
    for (label, _, facts) in fact_lines(summary) {
        if matches!(label, "requests" | "errors") {
            document.facts(label, facts);
        }
    }
    let requests = &summary.total.requests;
    let in_system = requests.scheduled.saturating_sub(requests.unsent + requests.ended());
    let lag = &summary.total.latency.send_lag.summary;
    document
        .facts("backlog", [format!("{in_system} in the system")].into_iter().chain(lag_text(lag)).collect());
    document.facts("client", client(summary));
    document.facts("server", server(summary));
}

/// What a request costs the servers, and the connections to them: `4.58 us CPU/request · 16 connections open`.
fn server(summary: &Summary) -> Vec<String> {
    let cpu_ns = server::window(summary).and_then(|span| span.cpu_ns_per_request());
    let cpu = cpu_ns.map(|ns| format!("{} CPU/request", quantity::time(ns.round() as u64)));
    let open = quantity::things(summary.connections.open(), "connection");
    cpu.into_iter().chain([format!("{open} open")]).collect()
}

/// What workers did with their time in the window: `workers busy 39.0 %`.
fn client(summary: &Summary) -> Vec<String> {
    let mut sum = ClientTime::default();
    summary.intervals(SECOND_NS).iter().for_each(|point| sum.merge(&point.client));
    let Some(ClientShares { busy, run_delay, stolen, .. }) = sum.shares() else { return Vec::new() };
    let named = [("workers busy", busy), ("run delay", run_delay), ("stolen", stolen)];
    let known = named.into_iter().filter_map(|(name, share)| Some(format!("{name} {:.1} %", share? * 100.0)));
    known.collect()
}

/// How late requests were sent: `send lag p99 12.0 us, max 1.20 ms`.
fn lag_text(lag: &LatencySummary) -> Option<String> {
    let times = [("p99", lag.p99_ns()), ("max", lag.max_ns)];
    let known = times.into_iter().filter_map(|(name, ns)| Some(format!("{name} {}", quantity::time(ns?))));
    lag.max_ns.map(|_| format!("send lag {}", known.collect::<Vec<_>>().join(" ")))
}

/// The status so far first, the one line that a small screen has room for, then a line for each check that is not ok.
fn found(document: &mut Document, summary: &Summary) {
    let status = &summary.status;
    let (label, style) = ("so far".to_owned(), conclusion::style(status.status));
    document.push(0, Content::Sentence { label, text: status.headline(), style });
    for (name, text) in conclusion::findings(status) {
        document.push(0, Content::Advice { name, text });
    }
}
