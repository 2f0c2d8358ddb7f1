//! Servers: what they counted and spent, each beside the others, and who of a cluster has which slots; connections to them, and
//! what their transports did beside carrying requests.

use super::latency::times_table;
use crate::document::{Content, Document};
use crate::grid::{Column, Grid, Rows, shortened};
use crate::layout::{Layout, Style, TimeUnit};
use crate::quantity::{self, rate};
use crate::server;
use brunt_plan::phase::Phase;
use brunt_plan::plan::Transport;
use brunt_stats::server::ServerCounts;
use brunt_stats::server_evidence::StatComparison;
use brunt_stats::server_stats::{ServerSpan, ServerStat};
use brunt_stats::summary::Summary;
use brunt_stats::worker_counts::HOPS_MAX;

/// All slots of a cluster.
const SLOTS: u64 = 16_384;
/// Servers that have a row in a short report, and in a long one.
const ROWS_SHORT_MAX: usize = 6;
const ROWS_MAX: usize = 64;

/// What the servers counted, whether that is what brunt did, and what it cost them.
pub(super) fn server(summary: &Summary) -> Vec<String> {
    if summary.record.run.server_records.is_empty() {
        return Vec::new();
    }
    let mut facts = Vec::new();
    if let Some(span) = server::window(summary) {
        // memcached counts each key of a multi-get, Redis what it executed.
        let thing = if summary.record.plan.protocol.is_resp() { "command" } else { "key" };
        let is_compared = summary.agreement.iter().any(|held| held.most + held.counted > 0);
        let differs = summary.agreement.iter().any(|held| held.difference() != 0);
        let agreement = match (is_compared, differs) {
            (false, _) => "",
            (_, false) => ", as we counted",
            (_, true) => ", not as we counted",
        };
        facts.extend(span.requests.map(|requests| {
            format!("{} {thing}s/s by its own count{agreement}", rate(span.per_second(requests)))
        }));
        let cpu = span.cpu_ns_per_request();
        facts.extend(cpu.map(|ns| format!("{} CPU/{thing}", quantity::time(ns.round() as u64))));
        facts.extend(span.evictions.filter(|count| *count > 0).map(|count| format!("{count} evictions")));
    }
    facts.extend(troubles(summary));
    // Of many servers the same trouble is said once.
    facts.truncate(6);
    facts
}

fn troubles(summary: &Summary) -> impl Iterator<Item = String> + '_ {
    server::troubles(summary).map(|(name, record, trouble)| {
        let none = if record.snapshots().is_empty() { "no statistics" } else { "no statistics any more" };
        format!("{name}{none}: {trouble}")
    })
}

/// What nodes of a cluster sent elsewhere.
pub(super) fn cluster(summary: &Summary) -> Vec<String> {
    let counts = &summary.counts().redirections;
    if summary.record.run.cluster.is_none() || counts.operations + counts.too_many + counts.unknown == 0 {
        return Vec::new();
    }
    let hops = quantity::things(u64::from(counts.hops_max), "hop");
    let mut facts = vec![format!("{} redirected, at most {hops}", counts.operations)];
    let failed =
        [("failed after too many redirections", counts.too_many), ("sent to unknown nodes", counts.unknown)];
    facts.extend(quantity::counted(failed));
    facts
}

/// Several servers side by side, where one failed or sent requests elsewhere.
pub(super) fn write(document: &mut Document, summary: &Summary) {
    let is_eventful = |counts: &ServerCounts| counts.failed + counts.abandoned + counts.redirected > 0;
    if summary.servers().len() > 1 && summary.servers().iter().any(is_eventful) {
        document.gap();
        document.push(6, Content::Table(server_table(summary, ROWS_SHORT_MAX)));
    }
}

// ---- the part of a long report ----------------------------------------------------------------------------------------

pub(super) fn part(document: &mut Document, summary: &Summary, layout: &Layout) {
    document.heading("servers");
    document.table(server_table(summary, ROWS_MAX));
    let names = server::names(summary).map(|name| shortened(&server::cell(&name), 30));
    let times = names.zip(&summary.server_responses);
    let times = times.map(|(name, times)| (name, vec![times.p50_ns(), times.p99_ns(), times.max_ns]));
    let times: Vec<_> = times.collect();
    if !times.is_empty() {
        document.gap();
    }
    document.table(times_table("response", &["p50", "p99", "max"], times, layout));
    document.facts("all of them", server::window(summary).map(|span| span_facts(&span)).unwrap_or_default());
    document.facts("", troubles(summary).collect());
    document.gap();
    document.table(agreement(summary));
    cluster_part(document, summary);
}

/// The servers side by side.
pub(crate) fn server_table(summary: &Summary, rows_max: usize) -> Grid {
    let (lines, is_cluster) = (server_lines(summary, rows_max), summary.record.run.cluster.is_some());
    let all: f64 = lines.iter().map(|line| line.done_per_s).sum();
    let has_cpu = lines.iter().any(|line| line.cpu_ns.is_some());
    let share = |line: &ServerLine| match all > 0.0 {
        true => format!("{:.1}", 100.0 * line.done_per_s / all),
        false => "-".to_owned(),
    };
    let failed = |line: &ServerLine| line.counts.failed + line.counts.abandoned;
    Rows::of(lines, |line| if failed(line) > 0 { Style::Bad } else { Style::Plain })
        .texts(Column::of_words(if is_cluster { "node" } else { "server" }, 19), |line| line.name.clone())
        .texts(Column::spaced("share%", 8), share)
        .texts(Column::spaced("done/s", 10), |line| rate(line.done_per_s))
        .texts(Column::spaced("failed", 8), failed)
        .texts_if(is_cluster, Column::spaced("moved", 8), |line| line.counts.redirected)
        .texts_if(has_cpu, Column::spaced("CPU,us", 8), |line| {
            line.cpu_ns.map_or("-".to_owned(), |ns| quantity::significant(ns / TimeUnit::Us.ns()))
        })
        .grid(None)
}

/// What all servers say of themselves over the window.
fn span_facts(span: &ServerSpan) -> Vec<String> {
    let memory = span.bytes.map(|used| match span.bytes_max {
        Some(most) => format!("{} of {}", quantity::bytes(used), quantity::bytes(most)),
        None => quantity::bytes(used),
    });
    let all = [
        span.requests.map(|count| format!("{} requests/s", quantity::significant(span.per_second(count)))),
        span.hit_ratio().map(|ratio| format!("hit ratio {} %", quantity::significant(ratio * 100.0))),
        span.evictions.map(|count| quantity::things(count, "eviction")),
        span.items.map(|count| quantity::things(count, "item")),
        memory,
    ];
    all.into_iter().flatten().collect()
}

/// The servers' counts beside brunt's; those that differ first.
pub(crate) fn agreement(summary: &Summary) -> Grid {
    let mut held: Vec<_> = summary.agreement.iter().filter(|held| held.most + held.counted > 0).collect();
    held.sort_by_key(|held| held.difference() == 0);
    let style = |held: &&StatComparison| if held.difference() == 0 { Style::Plain } else { Style::Doubt };
    Rows::of(held, style)
        .texts(Column::of_words("counted", 19), |held| held.statistic.name())
        .texts(Column::spaced("least", 10), |held| held.least)
        .texts(Column::spaced("most", 10), |held| held.most)
        .texts(Column::spaced("server", 10), |held| held.counted)
        .texts(Column::spaced("differ", 10), |held| held.difference())
        .grid(None)
}

fn cluster_part(document: &mut Document, summary: &Summary) {
    let Some(record) = &summary.record.run.cluster else { return };
    let counts = &summary.counts().redirections;
    document.heading("cluster");
    let table = Rows::of(server::names(summary).zip(&record.slots.of_servers), |_| Style::Plain)
        .texts(Column::of_words("node", 19), |(name, _)| server::cell(name))
        .texts(Column::spaced("slots", 8), |(_, slots)| **slots)
        .texts(Column::spaced("share%", 8), |(_, slots)| {
            format!("{:.1}", 100.0 * f64::from(**slots) / SLOTS as f64)
        });
    document.table(table.grid(None));
    let (moved, ask, again) = (counts.moved, counts.ask, counts.try_again);
    let mut facts = vec![format!("moved {moved}, ask {ask}, tryagain {again}")];
    if counts.operations > 0 {
        let hops = quantity::things(u64::from(counts.hops_max), "hop");
        facts.push(format!("{} redirected, at most {hops}", quantity::things(counts.operations, "request")));
    }
    if counts.too_many > 0 {
        facts.push(format!("{} failed after {HOPS_MAX} hops: too many redirections", counts.too_many));
    }
    if counts.unknown > 0 {
        let first = counts.unknown_node.as_ref().map_or(String::new(), |node| format!(" (first: {node})"));
        facts.push(format!("{} sent to nodes that were not known at the start{first}", counts.unknown));
    }
    let slots =
        [("of nodes not known at the start", record.slots.elsewhere), ("unassigned", record.slots.unserved)];
    for (whose, number) in slots.into_iter().filter(|(_, number)| *number > 0) {
        facts.push(format!("{} {whose}", quantity::things(u64::from(number), "slot")));
    }
    if !record.is_final {
        facts.push("no node says who has which slot at the end".to_owned());
    }
    document.facts("redirections", facts);
}

/// What one server did from the beginning of the window on.
struct ServerLine {
    name: String,
    counts: ServerCounts,
    done_per_s: f64,
    cpu_ns: Option<f64>,
}

/// Where there are many, those that failed most, then the busiest, in the order of the plan; the others as one.
fn server_lines(summary: &Summary, rows_max: usize) -> Vec<ServerLine> {
    let seconds = summary.window.seconds();
    let cpu_ns = server::cpu_ns_per_request(summary);
    let mut lines: Vec<ServerLine> = Vec::new();
    for ((index, (window, counts)), name) in
        since_window(summary).into_iter().enumerate().zip(server::names(summary))
    {
        lines.push(ServerLine {
            name: server::cell(&name),
            counts,
            done_per_s: if seconds > 0.0 { window.answered as f64 / seconds } else { 0.0 },
            cpu_ns: cpu_ns[index],
        });
    }
    if lines.len() <= rows_max {
        return lines;
    }
    let mut worst: Vec<usize> = (0..lines.len()).collect();
    let rank = |index: &usize| {
        (lines[*index].counts.failed + lines[*index].counts.abandoned, lines[*index].counts.answered)
    };
    worst.sort_by_key(|index| std::cmp::Reverse(rank(index)));
    worst.truncate(rows_max - 1);
    let count = lines.len() - worst.len();
    let mut rest = ServerLine {
        name: format!("rest-{count}"),
        counts: ServerCounts::default(),
        done_per_s: 0.0,
        cpu_ns: None,
    };
    let mut shown = Vec::new();
    for (index, line) in lines.into_iter().enumerate() {
        if worst.contains(&index) {
            shown.push(line);
        } else {
            rest.counts.merge(&line.counts);
            rest.done_per_s += line.done_per_s;
        }
    }
    shown.push(rest);
    shown
}

/// Of each server: what was counted in the window, and from its beginning to the end of the run.
fn since_window(summary: &Summary) -> Vec<(ServerCounts, ServerCounts)> {
    let mut sums = vec![(ServerCounts::default(), ServerCounts::default()); summary.servers().len()];
    for slice in summary.record.run.intervals.timeline().slices() {
        let middle_ns = slice.start_ns + (slice.end_ns - slice.start_ns) / 2;
        if middle_ns < summary.window.measure_ns {
            continue;
        }
        for ((window, all), counts) in sums.iter_mut().zip(&slice.servers) {
            all.merge(counts);
            if middle_ns < summary.window.end_ns {
                window.merge(counts);
            }
        }
    }
    sums
}

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

/// Certificates that were not verified.
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

pub(super) fn connections_part(document: &mut Document, summary: &Summary) {
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
