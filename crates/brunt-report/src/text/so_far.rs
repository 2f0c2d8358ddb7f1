//! Parts of a screen that shows a run while it goes on: the report's own head, table, events and causes, each by itself.
//!
//! Not where they stand on the screen, nor how much of each has room there. Invariant: every line reads as it will in the report.

use super::{accounting, conclusion, events, head, latency};
use crate::layout::{Layout, Style};
use crate::page::{Page, Room};
use crate::quantity;
use crate::server;
use brunt_stats::client_time::{ClientShares, ClientTime};
use brunt_stats::latency::LatencySummary;
use brunt_stats::summary::Summary;

const SECOND_NS: u64 = 1_000_000_000;

/// Lines of each part, painted as the layout has it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SoFarText {
    /// What runs, and against which servers.
    pub head: Vec<String>,
    /// The table of response times.
    pub latency: Vec<String>,
    /// What became of requests, and how late the client was.
    pub requests: Vec<String>,
    /// Servers side by side, and outages.
    pub events: Vec<String>,
    /// How far the percentiles may be trusted so far, and why not further.
    pub conclusion: Vec<String>,
}

/// The parts of a run that goes on, with at most so many rows of operations or servers.
pub fn so_far(summary: &Summary, layout: &Layout, rows: usize) -> SoFarText {
    let room = Room { rows, has_bounds_by_row: false, has_lesser_facts: false, ..Room::STEPS[0] };
    let lines = |write: &dyn Fn(&mut Page<'_>)| {
        let mut page = Page::new(layout);
        page.room = room;
        write(&mut page);
        page.into_text().lines().filter(|line| !line.is_empty()).map(str::to_owned).collect()
    };
    SoFarText {
        head: lines(&|page| head::write(page, summary)),
        latency: lines(&|page| {
            latency::grids(summary, layout, room).iter().for_each(|grid| page.grid(grid));
        }),
        requests: lines(&|page| requests(page, summary)),
        events: lines(&|page| events::write(page, summary)),
        conclusion: lines(&|page| found(page, summary)),
    }
}

fn requests(page: &mut Page<'_>, summary: &Summary) {
    for (label, _, facts) in accounting::lines(summary) {
        if matches!(label, "books" | "errors") && !facts.is_empty() {
            page.facts(label, &facts);
        }
    }
    let requests = &summary.total.requests;
    let in_system = requests.scheduled.saturating_sub(requests.unsent + requests.ended());
    let lag = &summary.total.latency.send_lag.summary;
    let mut facts = vec![format!("{in_system} in the system")];
    facts.extend(lag_text(lag));
    page.facts("backlog", &facts);
    for (label, facts) in [("client", client(summary)), ("server", server(summary))] {
        if !facts.is_empty() {
            page.facts(label, &facts);
        }
    }
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

/// A line for what is said of the whole, and one for each finding.
fn found(page: &mut Page<'_>, summary: &Summary) {
    page.facts("so far", &[summary.status.headline()]);
    for (name, text) in conclusion::findings(&summary.status) {
        page.prose(&format!("  {name}"), 14, &text, Style::Doubt);
    }
}
