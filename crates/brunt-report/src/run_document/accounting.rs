//! What became of requests and keys, and how servers answered those that ended otherwise than a plan foresees. Counts are exact.
//!
//! Invariant: every due request is in exactly one of [`outcomes`].

use super::latency::{Row, is_unbounded, rows};
use crate::document::Document;
use crate::grid::{Column, Grid, Rows};
use crate::instant::phase_duration_ns;
use crate::layout::Style;
use crate::quantity::{self, rate};
use crate::text::{beginning, printable};
use brunt_plan::op::OpKind;
use brunt_plan::outcome::OutcomeClass;
use brunt_plan::phase::Phase;
use brunt_plan::plan::Trace;
use brunt_plan::quoted_bytes::QuotedBytes;
use brunt_plan::trace_record::TraceRecord;
use brunt_stats::request_counts::{CountEntry, KeyCounts, RequestCounts};
use brunt_stats::summary::{PhaseSummary, Summary};
use brunt_stats::window::WindowCounts;
use brunt_stats::worker_counts::RecacheCounts;

/// Characters of a server's own words in a short report.
const QUOTED_MAX: usize = 40;

/// A longer command has more servers than anybody would copy.
const REMOVAL_BYTES_MAX: usize = 600;
/// Characters of the names of servers.
const SERVERS_CHARS_MAX: usize = 100;

/// How requests ended that neither hit, missed nor were done.
pub(crate) fn outcomes(requests: &RequestCounts) -> [(&'static str, u64); 8] {
    [
        ("error replies", requests.outcome(OutcomeClass::Error)),
        ("timed out", requests.outcome(OutcomeClass::Timeout)),
        ("lost with their connection", requests.outcome(OutcomeClass::Lost)),
        ("wrong values", requests.outcome(OutcomeClass::Mismatch)),
        ("rejected", requests.outcome(OutcomeClass::Rejected)),
        ("without a reply asked for", requests.outcome(OutcomeClass::Unacknowledged)),
        ("in flight at the end", requests.in_flight),
        ("never sent", requests.unsent),
    ]
}

/// `offered 49693/s, sent 49693/s, 0 failed`, and how they ended.
pub(super) fn requests(summary: &Summary) -> Vec<String> {
    let (requests, rates) = (&summary.total.requests, &summary.total.rate);
    let failed = requests.failed() + requests.abandoned;
    let mut facts = vec![match summary.record.plan.has_open_loop() {
        true => format!("offered {}/s, sent {}/s, {failed} failed", rate(rates.offered), rate(rates.sent)),
        false => format!("{} sent, {failed} failed", requests.sent),
    }];
    facts.extend(hits(summary));
    let late = summary.total.in_window.in_flight_at_end + summary.total.in_window.waiting_at_end;
    if is_unbounded(summary) && late > 0 {
        facts.push(format!("{late} pending when the window ended"));
    }
    facts.extend(quantity::counted(outcomes(requests)));
    facts.extend((requests.followup > 0).then(|| format!("{} fills after misses", requests.followup)));
    facts.extend(quantity::counted(summary.counts().fills.rows()));
    facts
}

fn hits(summary: &Summary) -> Option<String> {
    let keys = &summary.total.keys;
    let has_own_commands = summary.record.plan.classes.iter().any(|class| class.mix.contains(OpKind::Raw));
    match keys.requested {
        0 => has_own_commands.then(|| "hits not counted: own commands".to_owned()),
        _ => Some(format!("keys {} hit, {} missed", keys.hit, keys.miss)),
    }
}

/// What the run has left on the servers of the user, and the commands that remove it.
pub(super) fn stored(summary: &Summary) -> Vec<String> {
    let (plan, removals) = (&summary.record.plan, summary.record.plan.removal_commands());
    let sets: u64 = summary.phases.iter().flat_map(|phase| &phase.ops).map(sets_done).sum();
    let kept = plan.kept().filter(|_| !plan.needs_embedded() && (sets > 0 || !plan.commands.is_empty()));
    let kept = kept.map(|kept| if sets > 0 { format!("{sets} sets done · {kept}") } else { kept });
    if removals.is_empty() || !plan.preload && !plan.writes() {
        return kept.into_iter().collect();
    }
    let keys = plan.preload_stores();
    let bytes = summary.phase(Phase::Preload).map_or(0, |phase| phase.bytes.tx);
    let stored = match plan.preload {
        false => "keys of sets".to_owned(),
        true if bytes == 0 => format!("{keys} keys, by an earlier run"),
        true => format!("{keys} keys ({} sent)", quantity::bytes(bytes)),
    };
    let removals = removals.into_iter().map(|command| match command.len() {
        ..=REMOVAL_BYTES_MAX => format!("removed by: {command}"),
        _ => "removed by: brunt load --delete PLAN.toml, with the plan of this run".to_owned(),
    });
    let servers = beginning(&printable(&summary.record.server), SERVERS_CHARS_MAX);
    std::iter::once(format!("{stored} on {servers}")).chain(removals).chain(kept).collect()
}

/// Values that were stored while the load was sent.
fn sets_done(entry: &CountEntry) -> u64 {
    let stores = entry.phase != Phase::Preload && entry.op.kind().carries_value();
    if stores { entry.counts.requests.outcome(OutcomeClass::Done) } else { 0 }
}

/// What `--verify` found.
pub(super) fn values(summary: &Summary) -> Vec<String> {
    let found = &summary.counts().verification;
    let mut facts: Vec<String> = found
        .rows()
        .map(|(fault, number, first)| {
            let held = match (first.other_key, first.version) {
                (Some(id), _) => format!(" held that of key {id}"),
                (None, Some(version)) => format!(" held version {version}"),
                (None, None) => String::new(),
            };
            let wanted = first.wanted.map(|version| format!(", not {version} or later")).unwrap_or_default();
            format!("{number} {} (first: key {}{held}{wanted})", fault.describe(), first.key)
        })
        .collect();
    if summary.record.plan.verify.is_some() {
        facts.insert(0, format!("{} checked in full", found.checked));
        facts.extend((facts.len() == 1).then(|| "nothing wrong".to_owned()));
    }
    facts
}

/// What servers answered with that no plan foresees, in their own words, as far as there is room.
pub(super) fn errors(summary: &Summary) -> Vec<String> {
    error_words(summary, 3, QUOTED_MAX)
}

fn error_words(summary: &Summary, words_max: usize, quoted_max: usize) -> Vec<String> {
    let counts = summary.counts();
    let rows = counts.error_replies.rows();
    let mut facts: Vec<String> =
        rows.iter().take(words_max).map(|(word, times)| format!("{times} {word}")).collect();
    let all: u64 = rows.iter().map(|(_, times)| times).sum();
    if all > summary.total.requests.outcome(OutcomeClass::Error) {
        facts.push("in all phases".to_owned());
    }
    let quoted = |text: String| format!("\"{}\"", beginning(&text, quoted_max));
    facts.extend(counts.first_error.iter().map(|error| format!("first: {}", quoted(error.to_string()))));
    facts.extend(counts.first_malformed.iter().map(|malformed| {
        format!(
            "no valid reply: {}: {}",
            quoted(QuotedBytes(malformed.bytes()).to_string()),
            malformed.reason
        )
    }));
    facts
}

// ---- the part of a long report ----------------------------------------------------------------------------------------

/// Counts by operation, by phase and operation, and of keys and replies.
pub(super) fn part(document: &mut Document, summary: &Summary) {
    document.heading("accounting");
    let of_row = |row: &Row<'_>| (row.name('.'), row.summary.requests, row.summary.keys, Style::Plain);
    document.table(counts_grid("window", rows(summary).iter().map(of_row).collect()));
    document.facts("ended as", quantity::counted(outcomes(&summary.total.requests)).collect());
    document.facts("in window", in_window(&summary.total.in_window));
    document.gap();
    document.table(counts_grid(
        "phase",
        summary.phases.iter().flat_map(|phase| phase_rows(summary, phase)).collect(),
    ));
    document.facts("lengths", summary.phases.iter().filter_map(|phase| phase_text(summary, phase)).collect());
    document.facts("wire", wire(summary));
    document.heading("keys");
    document.facts("keys", keys(summary));
    document.facts("objects", quantity::counted(summary.counts().windows.rows()).collect());
    replies(document, summary);
}

/// What servers answered with that no plan foresees.
pub(crate) fn replies(document: &mut Document, summary: &Summary) {
    document.heading("errors");
    document.facts("replies", error_words(summary, usize::MAX, usize::MAX));
}

/// What a row counts, by name.
type CountsRow = (String, RequestCounts, KeyCounts, Style);

fn counts_grid(corner: &str, rows: Vec<CountsRow>) -> Grid {
    let of_keys = |keys: &KeyCounts, number: u64| match keys.requested {
        0 => "-".to_owned(),
        _ => number.to_string(),
    };
    Rows::of(rows, |row| row.3)
        .texts(Column::of_words(corner, 14), |(name, ..)| name.clone())
        .texts(Column::spaced("due", 8), |(_, requests, ..)| requests.scheduled)
        .texts(Column::spaced("sent", 8), |(_, requests, ..)| requests.sent)
        .texts(Column::spaced("done", 8), |(_, requests, ..)| requests.completed())
        .texts(Column::spaced("failed", 8), |(_, requests, ..)| requests.failed())
        .texts(Column::spaced("unsent", 8), |(_, requests, ..)| requests.unsent)
        .texts(Column::spaced("hit", 8), |(_, _, keys, _)| of_keys(keys, keys.hit))
        .texts(Column::spaced("missed", 8), |(_, _, keys, _)| of_keys(keys, keys.miss))
        .grid(None)
}

/// A phase that the plan does not have has no row.
fn phase_rows(summary: &Summary, phase: &PhaseSummary) -> Vec<CountsRow> {
    let has_classes = summary.record.plan.classes.len() > 1;
    let of_op = |entry: &CountEntry| {
        let op = summary.record.plan.op_name(entry.op);
        let name = match has_classes {
            true => format!("  {}.{op}", summary.record.plan.classes[usize::from(entry.class)].name),
            false => format!("  {op}"),
        };
        (name, entry.counts.requests, entry.counts.keys, Style::Plain)
    };
    let of = &phase.counts;
    let all = (phase.phase.name().to_owned(), of.requests, of.keys, Style::Bold);
    let all = (!phase.ops.is_empty()).then_some(all);
    all.into_iter().chain(phase.ops.iter().map(of_op)).collect()
}

/// `preload 41.2 ms, 250 kB out, 8.00 kB in, all confirmed`.
fn phase_text(summary: &Summary, phase: &PhaseSummary) -> Option<String> {
    let duration_ns = phase_duration_ns(summary, phase.phase).filter(|ns| *ns > 0)?;
    let (name, bytes) = (phase.phase.name(), phase.bytes);
    let confirmed = match summary.record.preload.filter(|_| phase.phase == Phase::Preload) {
        None => String::new(),
        Some(preload) if preload.is_earlier => ", stored by an earlier run".to_owned(),
        Some(preload) if preload.confirmed == preload.wanted => ", all confirmed".to_owned(),
        Some(preload) => format!(", {} confirmed", preload.confirmed),
    };
    let [out, back] = [bytes.tx, bytes.rx].map(quantity::bytes);
    Some(format!("{name} {}, {out} out, {back} in{confirmed}", quantity::time(duration_ns)))
}

/// What happened in the window, whenever it was due; the table counts what was due in it, whenever it happened.
fn in_window(counts: &WindowCounts) -> Vec<String> {
    if *counts == WindowCounts::default() {
        return Vec::new();
    }
    let at_edges = |what: &str, at_start: u64, at_end: u64| {
        format!("{what} {at_start} at its start, {at_end} at its end")
    };
    let waiting = (counts.waiting_at_start + counts.waiting_at_end > 0)
        .then(|| at_edges("waiting", counts.waiting_at_start, counts.waiting_at_end));
    [
        format!("{} sent, {} done, {} failed", counts.sent, counts.completed(), counts.failed()),
        at_edges("in flight", counts.in_flight_at_start, counts.in_flight_at_end),
    ]
    .into_iter()
    .chain(waiting)
    .collect()
}

fn keys(summary: &Summary) -> Vec<String> {
    let keys = &summary.total.keys;
    if keys.requested == 0 {
        return Vec::new();
    }
    let RecacheCounts { won, stale, taken } = summary.counts().recache;
    let others = [
        ("missed", keys.miss),
        ("failed", keys.failed),
        ("foreign values, not checked", summary.counts().values_foreign),
        ("stale", stale),
        ("recache won", won),
        ("recache taken", taken),
    ];
    let hit = format!("{} hit ({})", keys.hit, quantity::share(keys.hit, keys.requested));
    [format!("{} requested", keys.requested), hit].into_iter().chain(quantity::counted(others)).collect()
}

fn wire(summary: &Summary) -> Vec<String> {
    let (bytes, seconds) = (summary.bytes(), summary.window.seconds());
    let rate = |bytes: u64| if seconds > 0.0 { bytes as f64 / seconds } else { 0.0 };
    let mut facts: Vec<String> = [("out", bytes.tx), ("in", bytes.rx)]
        .map(|(name, bytes)| format!("{name} {}", quantity::byte_rate(rate(bytes))))
        .into();
    let requests = &summary.total.requests;
    if requests.wire_requests != requests.sent {
        facts.push(format!("{} commands on the wire", requests.wire_requests));
    }
    facts.extend(quantity::counted(summary.counts().rows()));
    facts
}

/// What became of the files that were replayed.
pub(super) fn traces(summary: &Summary) -> Vec<String> {
    let of = |record: &TraceRecord| {
        let piece = summary.record.piece_of(record);
        let end = if record.is_whole { "to its end" } else { "and not to its end" };
        let lines = &record.lines;
        let passed_over = [("without a request", lines.passed_over), ("unsupported", lines.unsupported)];
        let unreadable = lines.first_unreadable.as_ref().map(|first| {
            let (line, text, reason) = (first.line, &first.text, &first.reason);
            format!("{} skipped (first: {piece} {line}, \"{text}\": {reason})", lines.unreadable)
        });
        let error = record.error.as_ref().map(|error| format!("it cannot be read any further: {error}"));
        let cut = format!("cut to {} B", Trace::VALUE_BYTES_MAX);
        let changed = [
            (record.sampled_out, "request", "not in the sample"),
            (record.replaced_by_fills, "recorded set", "left to fills"),
            (record.cut, "value", &cut),
            (record.substituted, "record", "sent as another operation"),
            (record.hashed_keys, "request", "with a hash for its key"),
            (record.unsized_retrievals, "retrieval", "without a size to fill"),
            (record.raised_ttls, "ttl", "raised to 1 s"),
            (record.clamped_times, "time", "before an earlier one, raised to that"),
            (record.not_stored, "request", "without anything to store for"),
            (record.overfull_seconds, "second", "with more records than are held, spread in parts"),
        ];
        let changed = changed.into_iter().filter(|(count, ..)| *count > 0);
        let changed = changed.map(|(count, noun, fate)| format!("{} {fate}", quantity::things(count, noun)));
        [
            record.file.clone(),
            format!("{} read {end}", quantity::things(lines.read, piece)),
            quantity::things(record.records, "request"),
        ]
        .into_iter()
        .chain(quantity::counted(passed_over))
        .chain(unreadable)
        .chain(changed)
        .chain(error)
        .collect::<Vec<_>>()
    };
    summary.record.run.traces.iter().flat_map(of).collect()
}
