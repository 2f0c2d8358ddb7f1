//! What happened to connections and servers: counts, servers side by side, outages.
//!
//! Not what became of requests. Each part is there only when there is something to say: connections that come and go
//! or fail, several servers, outages.

use super::server_stats;
use crate::instant::in_window_ns;
use crate::paragraph::{self, printable};
use crate::quantity;
use crate::server;
use crate::table::Table;
use crate::text::events::longest_outages;
use crate::text::latency::times_text;
use brunt_plan::phase::Phase;
use brunt_stats::outage::Outage;
use brunt_stats::summary::Summary;

/// Rows that are shown; JSON has all of them.
const OUTAGES_SHOWN: usize = 20;

/// Is there more to say of connections than how long connecting took?
pub(super) fn has_connections(summary: &Summary) -> bool {
    let counts = &summary.connections;
    let is_planned = summary.record.plan.classes.iter().any(|class| class.lifetime.is_planned());
    is_planned || counts.failed + counts.lost > 0
}

/// What became of the connections, in a line.
pub(super) fn connections(out: &mut String, summary: &Summary) {
    if !has_connections(summary) {
        return;
    }
    let counts = &summary.connections;
    let numbers = [
        ("established", counts.established),
        ("failed", counts.failed),
        ("closed as planned", counts.retired),
        ("lost", counts.lost),
        ("pending at the end", counts.pending()),
        ("open at the end", counts.open()),
    ];
    let mut facts = vec![format!("{} begun", counts.begun)];
    facts.extend(quantity::counted(numbers));
    facts.extend(most_at_a_time(summary));
    let seconds = summary.window.seconds();
    let measured = summary.connections_by_phase()[Phase::Measure as usize].established;
    if measured > 0 && seconds > 0.0 {
        facts.push(format!(
            "{}/s established in the window",
            quantity::significant(measured as f64 / seconds)
        ));
    }
    facts.extend(connect_times(summary));
    paragraph::facts(out, "connections", &facts);
}

/// How many stood at one time, where they come and go by plan.
fn most_at_a_time(summary: &Summary) -> Option<String> {
    let most = summary.counts().connections_most;
    let is_planned = summary.record.plan.classes.iter().any(|class| class.lifetime.is_planned());
    let sum = match summary.record.run.usage.workers.len() {
        0 | 1 => String::new(),
        workers => format!(" (the sum over {workers} workers)"),
    };
    (is_planned && most > 0).then(|| format!("at most {most} at a time{sum}"))
}

/// How long connecting took, and how much of that the handshake of TLS.
pub(super) fn connect_times(summary: &Summary) -> impl Iterator<Item = String> {
    let times = [("connect time", &summary.connect_time), ("handshake time", &summary.handshake_time)];
    times.into_iter().filter_map(|(name, time)| Some(format!("{name} {}", times_text(time)?)))
}

/// The servers side by side, where there are several.
pub(super) fn servers(out: &mut String, summary: &Summary) {
    if summary.servers().len() < 2 {
        return;
    }
    let all: u64 = summary.servers().iter().map(|counts| counts.answered).sum();
    let mut heading = vec!["server", "answered", "share", "failed", "unsent"];
    if !summary.record.run.server_records.is_empty() {
        heading.extend(server_stats::HEADING);
    }
    let mut table = Table::new(&heading);
    let polled_servers = summary.record.plan.polled_servers();
    for (index, counts) in summary.servers().iter().enumerate() {
        let record = polled_servers.iter().position(|server| *server == index);
        let mut row = vec![
            printable(&server::name(summary, index)),
            counts.answered.to_string(),
            quantity::share(counts.answered, all),
            counts.failed.to_string(),
            counts.unsent.to_string(),
        ];
        row.extend(
            record
                .and_then(|record| summary.record.run.server_records.get(record))
                .into_iter()
                .flat_map(|record| server_stats::cells(summary, record)),
        );
        table.push(row);
    }
    paragraph::separate(out);
    table.write(out);
    out.push('\n');
    response_times(out, summary);
}

/// The response times of each server, where they are told apart.
fn response_times(out: &mut String, summary: &Summary) {
    if summary.server_responses.is_empty() {
        return;
    }
    let mut table = Table::new(&["response time of server", "p50", "p99", "max"]);
    for (index, times) in summary.server_responses.iter().enumerate() {
        let [p50, p99, max] = [times.p50_ns(), times.p99_ns(), times.max_ns].map(quantity::time_or_dash);
        table.push(vec![printable(&server::name(summary, index)), p50, p99, max]);
    }
    table.write(out);
    out.push('\n');
}

/// The outages, if there were any: where there are too many, the longest, by start.
pub(super) fn outages(out: &mut String, summary: &Summary) {
    let (total, overflow) = (summary.outages.len(), summary.outages_overflow());
    if total == 0 && overflow == 0 {
        return;
    }
    let mut table =
        Table::new(&["outage", "start", "length", "recovery", "failed", "kinds"]).with_prose_last();
    longest_outages(&summary.outages, OUTAGES_SHOWN)
        .into_iter()
        .for_each(|outage| table.push(row(summary, outage)));
    paragraph::separate(out);
    table.write(out);
    if total > OUTAGES_SHOWN {
        out.push_str(&format!("and {} more, none of them longer\n", total - OUTAGES_SHOWN));
    }
    if overflow > 0 {
        out.push_str(&format!("{overflow} more outages dropped\n"));
    }
    out.push('\n');
}

fn row(summary: &Summary, outage: &Outage) -> Vec<String> {
    let recovery_ns = outage.recovered_ns.map(|at_ns| at_ns.saturating_sub(outage.start_ns));
    vec![
        printable(&server::name(summary, usize::from(outage.server))),
        quantity::signed_time(in_window_ns(summary, outage.start_ns)),
        outage.length_ns().map_or("ongoing".to_owned(), quantity::time),
        quantity::time_or_dash(recovery_ns),
        outage.failed.to_string(),
        outage.kinds.names().map(|name| name.replace('_', " ")).collect::<Vec<_>>().join(", "),
    ]
}
