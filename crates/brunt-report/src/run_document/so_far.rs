//! Parts of a screen that shows a run while it goes on: the report's own head, table, events and status, each by itself.
//!
//! Not where they stand on the screen, nor how much of each has room there. Invariant: every line reads as it will in the report.

use super::{OpRows, conclusion, events, fact_lines, head, latency};
use crate::document::{Content, Document, Level};
use crate::layout::{Layout, Line};
use crate::{quantity, server};
use brunt_stats::latency::LatencySummary;
use brunt_stats::summary::Summary;
use brunt_stats::usage::ClientShares;

brunt_plan::named! {
    /// A part, in the order in which they stand below each other.
    pub enum Part {
        /// What runs, and against which servers.
        Head = "head",
        /// The table of response times.
        Latency = "latency",
        /// What became of requests, and how late the client was.
        Requests = "requests",
        /// Outages, and the p99 over time.
        Events = "events",
        /// Which percentiles may be quoted so far, and why not more.
        Conclusion = "conclusion",
    }
}

/// Lines of each part.
pub type SoFarText = [Vec<Line>; Part::COUNT];

/// The parts of a run that goes on, with these rows of operations.
pub fn so_far(summary: &Summary, layout: &Layout, rows: OpRows) -> SoFarText {
    Part::ALL.map(|part| {
        let mut document = Document::default();
        match part {
            Part::Head => {
                let lines = head::load_lines(summary);
                lines.into_iter().for_each(|(label, facts)| document.facts(label, facts));
            }
            Part::Latency => {
                let tables = latency::tables(summary, layout, rows);
                tables.into_iter().for_each(|grid| document.table(grid));
            }
            Part::Requests => requests(&mut document, summary),
            Part::Events => {
                events::write(&mut document, summary);
                events::over_time(&mut document, summary);
            }
            Part::Conclusion => found(&mut document, summary),
        }
        let lines = document.lines(layout, Level::Long).into_iter();
        lines.filter(|line| !line.is_empty()).collect()
    })
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
    let shares = summary.client_time().shares();
    let Some(ClientShares { busy, run_delay, stolen, .. }) = shares else { return Vec::new() };
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
