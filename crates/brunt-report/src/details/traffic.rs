//! What became of the requests: rates, books, bytes, phases, faults of connections.
//!
//! Not latencies. Lines about trouble are there only when there was some.

use super::{Row, cluster, connectivity, traces};
use crate::instant::{in_window_ns, phase_duration_ns};
use crate::paragraph::{self, printable};
use crate::quantity;
use crate::table::Table;
use brunt_plan::outcome::OutcomeClass;
use brunt_plan::phase::Phase;
use brunt_plan::quoted_bytes::QuotedBytes;
use brunt_stats::fault::FaultKind;
use brunt_stats::recache::RecacheCounts;
use brunt_stats::request_counts::RequestCounts;
use brunt_stats::server_stats::ServerStat;
use brunt_stats::summary::{PhaseSummary, Summary};
use brunt_stats::window::WindowCounts;

pub(super) fn write(out: &mut String, summary: &Summary, rows: &[Row<'_>]) {
    rates(out, rows);
    let outcomes = unusual_outcomes(&summary.total.requests);
    if !outcomes.is_empty() {
        paragraph::facts(out, "outcomes", &outcomes);
    }
    happened(out, summary);
    out.push('\n');
    phases(out, summary);
    keys(out, summary);
    values(out, summary);
    windows(out, summary);
    wire(out, summary);
    connectivity::connections(out, summary);
    cluster::write(out, summary);
    traces::write(out, summary);
    unexpected(out, summary);
    connectivity::servers(out, summary);
    cluster::nodes(out, summary);
    connectivity::outages(out, summary);
    faults(out, summary);
}

fn rates(out: &mut String, rows: &[Row<'_>]) {
    let mut table =
        Table::new(&["requests", "offered/s", "sent/s", "completed/s", "completed", "hit", "miss", "failed"]);
    for Row { name, summary } in rows {
        let (rate, book) = (&summary.rate, &summary.requests);
        let is_retrieval = summary.keys.requested > 0;
        let found = |class| if is_retrieval { book.outcome(class).to_string() } else { "-".to_owned() };
        table.push(vec![
            name.clone(),
            quantity::significant(rate.offered),
            quantity::significant(rate.sent),
            quantity::significant(rate.completed),
            book.completed().to_string(),
            found(OutcomeClass::Hit),
            found(OutcomeClass::Miss),
            book.failed().to_string(),
        ]);
    }
    table.write(out);
}

/// What happened in the window, which is what the rates count, whenever it was due; the counts of the table are those of
/// what was due in it, whenever it happened.
fn happened(out: &mut String, summary: &Summary) {
    let counts = &summary.total.in_window;
    if *counts == WindowCounts::default() {
        return;
    }
    let at_edges =
        |what: &str, at_start: u64, at_end: u64| format!("{what} {at_start} at start, {at_end} at end");
    let mut facts =
        vec![format!("{} sent, {} completed, {} failed", counts.sent, counts.completed(), counts.failed())];
    facts.push(at_edges("in flight", counts.in_flight_at_start, counts.in_flight_at_end));
    if counts.waiting_at_start + counts.waiting_at_end > 0 {
        facts.push(at_edges("waiting", counts.waiting_at_start, counts.waiting_at_end));
    }
    facts.push("table above: by due time".to_owned());
    paragraph::facts(out, "in window", &facts);
}

/// Everything in the books of the measured requests that the table has no column for, as far as there was any.
fn unusual_outcomes(book: &RequestCounts) -> Vec<String> {
    let numbers = [
        ("rejected", book.outcome(OutcomeClass::Rejected)),
        ("errors", book.outcome(OutcomeClass::Error)),
        ("timed out", book.outcome(OutcomeClass::Timeout)),
        ("wrong values", book.outcome(OutcomeClass::Mismatch)),
        ("lost with their connection", book.outcome(OutcomeClass::Lost)),
        ("unacknowledged", book.outcome(OutcomeClass::Unacknowledged)),
        ("in flight at the end", book.in_flight),
        ("never sent", book.unsent),
        ("abandoned", book.abandoned),
        ("follow-ups", book.followup),
    ];
    quantity::counted(numbers).collect()
}

fn keys(out: &mut String, summary: &Summary) {
    let book = &summary.total.keys;
    if book.requested == 0 {
        return;
    }
    let mut facts = vec![
        format!("{} requested", book.requested),
        format!("{} hit ({})", book.hit, quantity::share(book.hit, book.requested)),
        format!("{} missed", book.miss),
    ];
    if book.failed > 0 {
        facts.push(format!("{} failed", book.failed));
    }
    if summary.counts().values_foreign > 0 {
        facts.push(format!("{} foreign values, not checked", summary.counts().values_foreign));
    }
    let RecacheCounts { won, stale, taken } = summary.counts().recache;
    let marks = [("stale", stale), ("recache won", won), ("recache taken", taken)];
    facts.extend(quantity::counted(marks));
    paragraph::facts(out, "keys", &facts);
}

/// What was checked in full, what was wrong, and the first of each kind.
fn values(out: &mut String, summary: &Summary) {
    let found = &summary.counts().verification;
    let mut facts = Vec::new();
    if let Some(share) = summary.record.plan.verify {
        facts.push(format!("{} checked in full (--verify={share})", found.checked));
        if found.misses > 0 {
            facts.push(format!("{} checked", quantity::things(found.misses, "miss")));
        }
        if found.rows().next().is_none() && found.checked + found.misses > 0 {
            facts.push("nothing wrong".to_owned());
        }
    }
    for (fault, number, first) in found.rows() {
        let held = match (first.other_key, first.version) {
            (Some(id), _) => format!(" held that of key {id}"),
            (None, Some(version)) => format!(" held version {version}"),
            (None, None) => String::new(),
        };
        let wanted = first.wanted.map(|version| format!(", not {version} or later")).unwrap_or_default();
        facts.push(format!("{number} {} (first: key {}{held}{wanted})", fault.describe(), first.key));
    }
    if !facts.is_empty() {
        paragraph::facts(out, "values", &facts);
    }
}

/// What was found out about the objects of windows.
fn windows(out: &mut String, summary: &Summary) {
    let rows = summary.counts().windows.rows();
    let some: Vec<String> =
        quantity::counted(rows.into_iter().map(|(_, words, number)| (words, number))).collect();
    if !some.is_empty() {
        paragraph::facts(out, "objects", &some);
    }
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

fn wire(out: &mut String, summary: &Summary) {
    let (bytes, seconds) = (summary.bytes(), summary.window.seconds());
    let rate = |bytes: u64| if seconds > 0.0 { bytes as f64 / seconds } else { 0.0 };
    let direction = |name: &str, bytes| format!("{name} {}", quantity::byte_rate(rate(bytes)));
    let mut facts = vec![direction("out", bytes.tx), direction("in", bytes.rx)];
    let book = &summary.total.requests;
    if book.wire_requests != book.sent {
        facts.push(format!("{} commands on the wire", book.wire_requests));
    }
    let rows = summary.counts().rows();
    facts.extend(quantity::counted(rows.into_iter().map(|(_, words, number)| (words, number))));
    if let Some(counts) = summary.datagrams() {
        let listed = |rows: &[(&str, u64)]| {
            let said: Vec<String> = quantity::counted(rows.iter().copied()).collect();
            (!said.is_empty()).then(|| said.join(", "))
        };
        facts.extend(listed(&counts.rows()).map(|rows| format!("discarded datagrams: {rows}")));
        facts.extend(listed(&counts.packet_rows()));
        facts.extend(losses(summary));
    }
    paragraph::facts(out, "network", &facts);
}

fn phases(out: &mut String, summary: &Summary) {
    let heading = ["phase", "duration", "sent", "completed", "failed", "out", "in", "ops sent"];
    let mut table = Table::new(&heading).with_prose_last();
    for phase in &summary.phases {
        table.push_some(phase_row(summary, phase));
    }
    if !table.is_empty() {
        table.write(out);
        remedies(out, summary);
        out.push('\n');
    }
}

/// What helps where this host had no room for connections.
fn remedies(out: &mut String, summary: &Summary) {
    for (kind, missing) in
        [(FaultKind::NoPort, "no port"), (FaultKind::NoDescriptor, "no file"), (FaultKind::NoFile, "no file")]
    {
        if let Some(remedy) = kind.remedy().filter(|_| summary.faults().count_of(kind) > 0) {
            paragraph::prose(out, missing, remedy);
        }
    }
}

/// `None` for a phase that had no length and no op: one that the plan does not have.
fn phase_row(summary: &Summary, phase: &PhaseSummary) -> Option<Vec<String>> {
    let book = &phase.counts.requests;
    let duration_ns = phase_duration_ns(summary, phase.phase).filter(|ns| *ns > 0);
    if duration_ns.is_none() && phase.ops.is_empty() {
        return None;
    }
    let mut ops: Vec<String> = Vec::new();
    for entry in &phase.ops {
        let sent = phase.ops.iter().filter(|held| held.op == entry.op).map(|held| held.counts.requests.sent);
        let text = format!("{} {}", summary.record.plan.op_name(entry.op), sent.sum::<u64>());
        if !ops.contains(&text) {
            ops.push(text);
        }
    }
    if let (Phase::Preload, Some(preload)) = (phase.phase, summary.record.preload) {
        ops.push(match preload.confirmed == preload.wanted {
            _ if preload.is_earlier => "stored by an earlier run".to_owned(),
            true => "all confirmed".to_owned(),
            false => format!("{} confirmed", preload.confirmed),
        });
    }
    Some(vec![
        phase.phase.name().to_owned(),
        duration_ns.map_or("-".to_owned(), quantity::time),
        book.sent.to_string(),
        book.completed().to_string(),
        book.failed().to_string(),
        quantity::bytes(phase.bytes.tx),
        quantity::bytes(phase.bytes.rx),
        ops.join(" · "),
    ])
}

/// The first of what no codec or plan foresees, in the server's own words.
fn unexpected(out: &mut String, summary: &Summary) {
    let words = summary.counts().error_replies.rows();
    if !words.is_empty() {
        let facts: Vec<String> = words.iter().map(|(word, times)| format!("{times} {word}")).collect();
        paragraph::facts(out, "errors", &facts);
    }
    if let Some(error) = &summary.counts().first_error {
        paragraph::prose(out, "first error", &printable(&format!("\"{error}\"")));
    }
    if let Some(garbage) = &summary.counts().first_malformed {
        let text = format!("\"{}\": {}", QuotedBytes(garbage.bytes()), garbage.reason);
        paragraph::prose(out, "malformed", &text);
    }
}

fn faults(out: &mut String, summary: &Summary) {
    let mut table = Table::new(&["connection fault", "phase", "count", "first"]);
    for fault in summary.faults().rows() {
        let name = match fault.kind {
            FaultKind::Other(errno) => format!("error number {errno}"),
            kind => kind.name().replace('_', " "),
        };
        let (phase, first) =
            (fault.phase.name().to_owned(), quantity::signed_time(in_window_ns(summary, fault.first_ns)));
        table.push(vec![name, phase, fault.count.to_string(), first]);
    }
    if !table.is_empty() {
        paragraph::separate(out);
        table.write(out);
        out.push('\n');
    }
}
