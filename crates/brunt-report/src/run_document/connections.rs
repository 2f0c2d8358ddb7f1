//! What became of connections, and what their transports did beside carrying requests: handshakes of TLS, datagrams of UDP.

use crate::document::Document;
use crate::quantity;
use brunt_plan::phase::Phase;
use brunt_plan::plan::Transport;
use brunt_stats::server_stats::ServerStat;
use brunt_stats::summary::Summary;

fn is_planned(summary: &Summary) -> bool {
    summary.record.plan.classes.iter().any(|class| class.lifetime.is_planned())
}

/// Connections, where they come and go, or fail.
pub(super) fn connections(summary: &Summary) -> Vec<String> {
    let counts = &summary.connections;
    if !is_planned(summary) && counts.failed + counts.lost == 0 {
        return Vec::new();
    }
    let numbers = [("failed", counts.failed), ("closed as planned", counts.retired), ("lost", counts.lost)];
    let mut facts = vec![format!("{} opened", counts.established)];
    facts.extend(quantity::counted(numbers));
    facts.extend(quantity::times(&summary.connect_time).map(|times| format!("connect time {times}")));
    facts
}

/// Certificates that nobody verified.
pub(super) fn tls(summary: &Summary) -> Vec<String> {
    let plan = &summary.record.plan;
    let is_unverified = plan.uses_transport(Transport::Tls) && plan.tls.is_insecure;
    is_unverified.then(|| "certificates not verified".to_owned()).into_iter().collect()
}

/// Datagrams of no use.
pub(super) fn udp(summary: &Summary) -> Vec<String> {
    let Some(counts) = summary.datagrams() else { return Vec::new() };
    let rows = counts.rows();
    let discarded: u64 = rows.iter().map(|(_, number)| number).sum();
    let kinds: Vec<String> = quantity::counted(rows).collect();
    match discarded {
        0 => Vec::new(),
        _ => vec![format!("{discarded} datagrams discarded: {}", kinds.join(", "))],
    }
}

// ---- the part of a long report ----------------------------------------------------------------------------------------

pub(super) fn part(document: &mut Document, summary: &Summary) {
    document.heading("connections");
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
        let per_s = quantity::significant(measured as f64 / seconds);
        facts.push(format!("{per_s}/s established in the window"));
    }
    facts.extend(quantity::times(&summary.connect_time).map(|times| format!("connect time {times}")));
    document.facts("connections", facts);
    if summary.record.plan.uses_transport(Transport::Tls) {
        let time = &summary.handshake_time;
        let handshakes = quantity::things(time.count, "handshake");
        document.facts("tls", [handshakes].into_iter().chain(quantity::times(time)).collect());
    }
    if let Some(counts) = summary.datagrams() {
        let mut facts: Vec<String> = quantity::counted(counts.rows()).collect();
        facts.extend(quantity::counted(counts.packet_rows()));
        facts.extend(losses(summary));
        document.facts("udp", facts);
    }
}

/// How many stood at one time, where they come and go by plan.
fn most_at_a_time(summary: &Summary) -> Option<String> {
    let most = summary.counts().connections_most;
    let sum = match summary.record.run.usage.workers.len() {
        0 | 1 => String::new(),
        workers => format!(" (the sum over {workers} workers)"),
    };
    (is_planned(summary) && most > 0).then(|| format!("at most {most} at a time{sum}"))
}

/// Of requests over UDP without a reply, whether the request was lost or what the server said: it was the request if the server has
/// not counted it. Only of what servers count once for each request, or each of its keys.
fn losses(summary: &Summary) -> impl Iterator<Item = String> + '_ {
    let things = [(ServerStat::CmdGet, "keys requested"), (ServerStat::CmdSet, "stores")];
    things.into_iter().filter_map(|(statistic, what)| {
        let found = summary.agreement.iter().find(|held| held.statistic == statistic)?;
        let is_told = found.most > found.least && found.difference() == 0;
        let (there, back) = (found.most.checked_sub(found.counted)?, found.counted.checked_sub(found.least)?);
        is_told.then(|| format!("{what}: {there} requests lost, {back} replies lost"))
    })
}
