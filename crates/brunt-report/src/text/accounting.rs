//! Lines of facts below the tables: what became of requests and keys, connections, what the servers and the client spent.
//!
//! Not latencies. What the client errors rest on is always there. Lines about trouble and about kinds of transport are there only where there is something to say. Counts are exact.

use super::latency::{rate, times_text};
use crate::cost::{self, RequestCost};
use crate::page::Page;
use crate::paragraph::beginning;
use crate::quantity;
use crate::server;
use brunt_plan::op::OpKind;
use brunt_plan::outcome::OutcomeClass;
use brunt_plan::plan::Transport;
use brunt_plan::quoted_bytes::QuotedBytes;
use brunt_stats::check::{CheckId, CheckStatus};
use brunt_stats::client_basis::ClientBasis;
use brunt_stats::stack_delay::SAMPLES_MIN;
use brunt_stats::summary::Summary;
use brunt_stats::usage::WorkerUsage;

/// Characters of a server's own words; `--details` has more.
const QUOTED_MAX: usize = 40;

pub(super) fn write(page: &mut Page<'_>, summary: &Summary) {
    for (label, is_lesser, facts) in lines(summary) {
        if !facts.is_empty() && (page.room.has_lesser_facts || !is_lesser) {
            page.facts(label, &facts);
        }
    }
    if !page.room.has_lesser_facts {
        page.facts("client", &client_basis(summary));
    }
}

/// The lines by label, and whether no check rests on one.
pub(crate) fn lines(summary: &Summary) -> [(&'static str, bool, Vec<String>); 9] {
    [
        ("books", false, books(summary)),
        ("values", true, values(summary)),
        ("errors", false, errors(summary)),
        ("connections", true, connections(summary)),
        ("cluster", true, cluster(summary)),
        ("tls", true, tls(summary)),
        ("udp", true, udp(summary)),
        ("server", false, servers(summary)),
        ("client", true, client(summary)),
    ]
}

/// What became of every request and key.
fn books(summary: &Summary) -> Vec<String> {
    let (requests, rates) = (&summary.total.requests, &summary.total.rate);
    let (offered, sent) = (rate(rates.offered), rate(rates.sent));
    let failed = requests.failed() + requests.abandoned;
    let mut facts = Vec::new();
    if summary.record.plan.has_open_loop() {
        facts.push(format!("offered {offered}/s, sent {sent}/s, {failed} failed"));
    } else {
        facts.push(format!("{} sent, {failed} failed", requests.sent));
    }
    let late = summary.total.in_window.in_flight_at_end + summary.total.in_window.waiting_at_end;
    if summary.status.status_of(CheckId::Load) > CheckStatus::Ok && late > 0 {
        facts.push(format!("{late} pending when the window ended"));
    }
    let kinds = [
        (error_word(summary), requests.outcome(OutcomeClass::Error)),
        ("timed out", requests.outcome(OutcomeClass::Timeout)),
        ("lost with their connection", requests.outcome(OutcomeClass::Lost)),
        ("wrong values", requests.outcome(OutcomeClass::Mismatch)),
        ("rejected", requests.outcome(OutcomeClass::Rejected)),
        (
            "without a reply asked for, so without a response time",
            requests.outcome(OutcomeClass::Unacknowledged),
        ),
        ("in flight at the end", requests.in_flight),
        ("never sent", requests.unsent),
    ];
    facts.extend(quantity::counted(kinds));
    if requests.followup > 0 {
        facts.push(format!("{} of those scheduled are fills after misses", requests.followup));
    }
    facts.push(keys(summary));
    facts.retain(|fact| !fact.is_empty());
    facts
}

fn keys(summary: &Summary) -> String {
    let keys = &summary.total.keys;
    let has_own_commands = summary.record.plan.classes.iter().any(|class| class.mix.contains(OpKind::Raw));
    match keys.requested {
        0 if has_own_commands => "hits not counted: own commands".to_owned(),
        0 => String::new(),
        _ => format!("{} keys hit, {} missed", keys.hit, keys.miss),
    }
}

/// What `--verify` found.
fn values(summary: &Summary) -> Vec<String> {
    let found = &summary.counts().verification;
    let mut facts: Vec<String> = found
        .rows()
        .map(|(fault, number, first)| format!("{number} {} (first: key {})", fault.describe(), first.key))
        .collect();
    if summary.record.plan.verify.is_some() {
        facts.insert(0, format!("{} checked in full", found.checked));
        if facts.len() == 1 {
            facts.push("nothing wrong".to_owned());
        }
    }
    facts
}

/// What requests that ended as errors were answered with.
fn error_word(summary: &Summary) -> &'static str {
    let counts = summary.counts();
    match (counts.error_replies.rows().is_empty(), counts.first_malformed.is_some()) {
        (true, true) => "malformed replies",
        (false, true) => "error or malformed replies",
        (_, false) => "error replies",
    }
}

/// What servers answered with that no plan foresees, in their own words.
fn errors(summary: &Summary) -> Vec<String> {
    let counts = summary.counts();
    let rows = counts.error_replies.rows();
    let mut facts: Vec<String> = rows.iter().take(3).map(|(word, times)| format!("{times} {word}")).collect();
    let all: u64 = rows.iter().map(|(_, times)| times).sum();
    if all > summary.total.requests.outcome(OutcomeClass::Error) {
        facts.push("in all phases".to_owned());
    }
    facts.extend(
        counts
            .first_error
            .as_ref()
            .map(|error| format!("first: \"{}\"", beginning(&error.to_string(), QUOTED_MAX))),
    );
    facts.extend(counts.first_malformed.as_ref().map(|garbage| {
        format!("no valid reply: \"{}\"", beginning(&QuotedBytes(garbage.bytes()).to_string(), QUOTED_MAX))
    }));
    facts
}

/// Connections, where they come and go, or fail.
fn connections(summary: &Summary) -> Vec<String> {
    let counts = &summary.connections;
    let is_planned = summary.record.plan.classes.iter().any(|class| class.lifetime.is_planned());
    if !is_planned && counts.failed + counts.lost == 0 {
        return Vec::new();
    }
    let numbers = [("failed", counts.failed), ("closed as planned", counts.retired), ("lost", counts.lost)];
    let mut facts = vec![format!("{} opened", counts.established)];
    facts.extend(quantity::counted(numbers));
    facts.extend(times_text(&summary.connect_time).map(|times| format!("connect time {times}")));
    facts
}

fn cluster(summary: &Summary) -> Vec<String> {
    if summary.record.run.cluster.is_none() {
        return Vec::new();
    }
    let counts = &summary.counts().redirections;
    let mut facts = match counts.operations {
        0 => vec!["no redirection".to_owned()],
        operations => {
            let hops = quantity::things(u64::from(counts.hops_max), "hop");
            vec![format!("{operations} redirected, at most {hops}")]
        }
    };
    let failed =
        [("failed after too many redirections", counts.too_many), ("sent to unknown nodes", counts.unknown)];
    facts.extend(quantity::counted(failed));
    facts
}

fn tls(summary: &Summary) -> Vec<String> {
    let plan = &summary.record.plan;
    if !plan.uses_transport(Transport::Tls) {
        return Vec::new();
    }
    let time = &summary.handshake_time;
    let handshakes = std::iter::once(quantity::things(time.count, "handshake")).chain(times_text(time));
    let verified = if plan.tls.is_insecure { "certificates not verified" } else { "certificates verified" };
    vec![handshakes.collect::<Vec<_>>().join(", "), verified.to_owned()]
}

fn udp(summary: &Summary) -> Vec<String> {
    let Some(counts) = summary.datagrams() else { return Vec::new() };
    let rows = counts.rows();
    let discarded: u64 = rows.iter().map(|(_, number)| number).sum();
    if discarded == 0 {
        return vec!["no datagram discarded".to_owned()];
    }
    let kinds: Vec<String> = quantity::counted(rows).collect();
    vec![format!("{discarded} datagrams discarded: {}", kinds.join(", "))]
}

/// What the servers counted, and whether that is what we did.
fn servers(summary: &Summary) -> Vec<String> {
    if summary.record.run.server_records.is_empty() {
        return Vec::new();
    }
    let mut facts = Vec::new();
    if let Some(span) = server::window(summary) {
        // memcached counts each key of a multi-get, Redis what it executed.
        let things = if summary.record.plan.protocol.is_resp() { "commands" } else { "keys" };
        facts.extend(
            span.requests.map(|requests| format!("counted {} {things}/s", rate(span.per_second(requests)))),
        );
        let is_compared = summary.agreement.iter().any(|held| held.most + held.counted > 0);
        let differs = summary.agreement.iter().any(|held| held.difference() != 0);
        let word = if differs { "differ from" } else { "agree with" };
        facts.extend(is_compared.then(|| format!("its counters {word} ours")));
        let cpu = span.cpu_ns_per_request();
        facts.extend(cpu.map(|ns| format!("{} CPU/request", quantity::time(ns.round() as u64))));
        facts.extend(span.evictions.map(|evictions| format!("{evictions} evictions")));
    }
    facts.extend(
        server::troubles(summary).map(|(name, _, trouble)| format!("{name}no statistics: {trouble}")),
    );
    // Of many servers the same trouble is said once.
    facts.truncate(6);
    facts
}

/// What a request cost the client, without what went into waiting for the next one, and how busy that kept it.
fn client(summary: &Summary) -> Vec<String> {
    let cost = RequestCost::of(summary)
        .map(|cost| format!("{} CPU/request", quantity::time(cost.cpu_working_ns().round() as u64)));
    let busiest = busiest(&summary.record.run.usage.workers);
    cost.into_iter().chain(busiest).chain(client_basis(summary)).collect()
}

/// What the client errors rest on beside clock readings, and why not on more.
pub(crate) fn client_basis(summary: &Summary) -> Vec<String> {
    let run = &summary.record.run;
    let wake_up = |name: &str| format!("{name} {}", quantity::time(run.host.wake_up_ns));
    match summary.client_basis() {
        ClientBasis::Timestamps => {
            vec![format!("{} kernel timestamps", summary.total.stack_delay.samples())]
        }
        ClientBasis::Clock => {
            let reason = run.usage.timestamps_reason.as_ref().map(|reason| format!(": {reason}"));
            vec![format!("no kernel timestamps{}", reason.unwrap_or_default()), wake_up("wake-ups")]
        }
        ClientBasis::Incomplete => {
            let stamped = quantity::things(summary.counts().stamps.matched, "request");
            let is_in = run.unread_ns(summary.record.plan.has_open_loop()) > 0;
            let facts = [format!("kernel timestamps of {stamped}, {SAMPLES_MIN} needed")];
            facts.into_iter().chain(is_in.then(|| wake_up("one wake-up"))).collect()
        }
    }
}

/// The worker that worked most of the window, or was kept from it.
fn busiest(workers: &[WorkerUsage]) -> Option<String> {
    let most = cost::busiest(workers)?;
    let percent = |ns: u64| {
        let percent = ns as f64 / most.wall_ns as f64 * 100.0;
        format!("{percent:.*}", if percent < 9.995 { 2 } else { 1 })
    };
    let delay = most.run_delay_ns.map(|ns| format!(", waiting for a CPU {} %", percent(ns)));
    let who = if workers.len() > 1 { "busiest worker" } else { "worker" };
    Some(format!("{who} busy {} %{}", percent(most.busy_ns), delay.unwrap_or_default()))
}
