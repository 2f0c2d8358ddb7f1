//! A run at an instant as OpenMetrics text, for scrapers such as Prometheus.
//!
//! Not the counts (those are [`crate::live`]'s) and not how they are asked for. docs/metrics.md has every name. Invariants: names keep
//! their meaning, units and labels; no label holds a key, a connection, a server's words or the address of a client; there is no
//! quantile, for quantiles cannot be added.

mod families;

use crate::live::{Buckets, HostCounters, JudgedRun, LiveRun, OTHER, Row, State, checks_of, worker_name};
use brunt_plan::destination::Server;
use brunt_plan::outcome::OutcomeClass;
use brunt_plan::plan::{Load, Plan};
use brunt_stats::check::CheckStatus;
use brunt_stats::server_stats::Snapshot;
use brunt_stats::status::Status;
use brunt_stats::summary::Summary;
use families::{Families, Kind, seconds};
use std::collections::BTreeMap;

/// What the text is to who asks for it by HTTP.
pub const CONTENT_TYPE: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// What a sample counts of a server, and the family that it is in.
type OfServer = (&'static str, Kind, &'static str, fn(&Snapshot) -> Option<u64>);

/// The text of a run, with what it has come to so far, if that is known; before the first one there is nothing but that.
pub fn text(run: Option<&LiveRun>, so_far: Option<&Summary>) -> String {
    let mut families = Families::default();
    if let Some(run) = run {
        info(&mut families, run);
    }
    let state = run.map_or(State::Starting, |run| run.state);
    let states = State::ALL.map(|held| (held.name(), held == state));
    families.states("phase", "How far the run is.", &states);
    if let Some(run) = run {
        status(&mut families, run.judged.as_ref(), so_far);
        requests(&mut families, run);
        latencies(&mut families, run);
        wire(&mut families, run);
        servers(&mut families, run);
        client(&mut families, &run.host, &run.busy);
        let merged = "Series that have no name of their own and are counted in those of 'other'.";
        families.family("merged_series", Kind::Gauge, merged);
        families.sample("", &[], run.names.merged);
    }
    families.end()
}

fn info(families: &mut Families, run: &LiveRun) {
    let plan = &run.header.plan;
    families.family("run", Kind::Info, "What runs.");
    families.sample(
        "_info",
        &[
            ("version", &run.header.version),
            ("protocol", &distinct(plan, |server| server.protocol.name())),
            ("transport", &distinct(plan, |server| server.transport.name())),
            ("loop", loop_name(plan)),
            ("plan", &run.header.plan_id),
        ],
        1,
    );
}

/// What the servers of a plan have, each once.
fn distinct(plan: &Plan, of: impl Fn(&Server) -> &'static str) -> String {
    let mut found: Vec<&str> = Vec::new();
    for name in plan.servers().iter().map(of) {
        if !found.contains(&name) {
            found.push(name);
        }
    }
    found.join(",")
}

fn loop_name(plan: &Plan) -> &'static str {
    let is_open = |load: &Load| matches!(load, Load::Open { .. });
    let open = plan.classes.iter().filter(|class| is_open(&class.load)).count();
    match open {
        0 => "closed",
        _ if open == plan.classes.len() => "open",
        _ => "both",
    }
}

fn status(families: &mut Families, judged: Option<&JudgedRun>, so_far: Option<&Summary>) {
    let status = judged.map(|judged| judged.status);
    let states = [
        ("pending", status.is_none()),
        ("ok", status == Some(Status::Ok)),
        ("caution", status == Some(Status::Caution)),
        ("invalid", status == Some(Status::Invalid)),
    ];
    families.states(
        "status",
        "Whether the numbers of the run may be quoted; pending until it has ended.",
        &states,
    );
    let so_far = || so_far.map(|summary| checks_of(&summary.status)).unwrap_or_default();
    let checks = judged.map_or_else(so_far, |judged| judged.checks.clone());
    if checks.is_empty() {
        return;
    }
    let help = "The six checks of the run, or of the run so far: 0 ok, 1 caution, 2 invalid; absent where one was skipped.";
    families.family("check", Kind::Gauge, help);
    for (check, status) in checks {
        let level = match status {
            CheckStatus::Skipped | CheckStatus::Ok => 0,
            CheckStatus::Caution => 1,
            CheckStatus::Invalid => 2,
        };
        families.sample("", &[("check", check.name())], level);
    }
}

/// A row that is shown: its labels, and whether any of its operations ask for keys.
struct ShownRow<'a> {
    row: &'a Row,
    labels: [(&'static str, &'a str); 2],
    is_retrieval: bool,
}

/// Those that are shown: that of the rest only where there is any.
fn rows(run: &LiveRun) -> impl Iterator<Item = ShownRow<'_>> {
    let rows = &run.names.rows;
    rows.iter().zip(&run.rows).filter_map(|(name, row)| match name {
        Some(name) => {
            let labels = [("class", name.class.as_str()), ("op", name.op.as_str())];
            Some(ShownRow { row, labels, is_retrieval: name.is_retrieval })
        }
        None if rows.has_rest() || !row.book.is_empty() => {
            Some(ShownRow { row, labels: [("class", OTHER), ("op", OTHER)], is_retrieval: true })
        }
        None => None,
    })
}

fn requests(families: &mut Families, run: &LiveRun) {
    families.family("requests_scheduled", Kind::Counter, "Requests that became due, in all phases.");
    for ShownRow { row, labels, .. } in rows(run) {
        families.sample("_total", &labels, row.book.requests.scheduled);
    }
    families.family("requests_sent", Kind::Counter, "Requests that were sent, in all phases.");
    for ShownRow { row, labels, .. } in rows(run) {
        families.sample("_total", &labels, row.book.requests.sent);
    }
    families.family("requests", Kind::Counter, "Requests that ended, by what became of them, in all phases.");
    for ShownRow { row, labels: [class, op], .. } in rows(run) {
        for outcome in OutcomeClass::ALL {
            let labels = [class, op, ("outcome", outcome.name())];
            families.sample("_total", &labels, row.book.requests.outcome(outcome));
        }
    }
    let help = "Keys of retrievals that ended, by what became of them, in all phases.";
    families.family("keys", Kind::Counter, help);
    for ShownRow { row, labels: [class, op], .. } in rows(run).filter(|shown| shown.is_retrieval) {
        let keys = &row.book.keys;
        for (outcome, count) in [("hit", keys.hit), ("miss", keys.miss), ("failed", keys.failed)] {
            families.sample("_total", &[class, op, ("outcome", outcome)], count);
        }
    }
}

fn latencies(families: &mut Families, run: &LiveRun) {
    let histograms = [
        (
            "response_seconds",
            "Response times of completed requests of the measured window, from when each was due.",
        ),
        (
            "response_without_client_seconds",
            "The same without all that the client may have held: the least that each can have been.",
        ),
        ("service_seconds", "Service times of the same requests, from when each was sent."),
    ];
    for (index, (name, help)) in histograms.into_iter().enumerate() {
        families.family(name, Kind::Histogram, help);
        for ShownRow { row, labels, .. } in rows(run) {
            if let Some(latencies) = &row.latencies {
                histogram(families, &labels, &latencies[index], run);
            }
        }
    }
}

fn histogram(families: &mut Families, labels: &[(&str, &str)], held: &Buckets, run: &LiveRun) {
    let bounds = run.header.bounds.iter_ns().map(|bound_ns| seconds(bound_ns.into()));
    for (bound, count) in bounds.zip(&held.cumulative) {
        families.sample("_bucket", &[labels, &[("le", &bound)]].concat(), count);
    }
    families.sample("_bucket", &[labels, &[("le", "+Inf")]].concat(), held.count);
    families.sample("_count", labels, held.count);
    families.sample("_sum", labels, seconds(held.sum_ns));
}

fn wire(families: &mut Families, run: &LiveRun) {
    families.family("wire_bytes", Kind::Counter, "Bytes of requests and replies, in all phases.");
    let of = |direction: fn(&brunt_stats::interval::Bytes) -> u64| {
        run.phases.iter().map(|(_, bytes)| direction(bytes)).sum::<u64>()
    };
    families.sample("_total", &[("direction", "tx")], of(|bytes| bytes.tx));
    families.sample("_total", &[("direction", "rx")], of(|bytes| bytes.rx));
    let counts = &run.connections;
    families.family("connections_open", Kind::Gauge, "Connections that stand.");
    families.sample("", &[], counts.open());
    families.family("connection_events", Kind::Counter, "What happened to connections, in all phases.");
    for (event, count) in [
        ("begun", counts.begun),
        ("established", counts.established),
        ("failed", counts.failed),
        ("retired", counts.retired),
        ("lost", counts.lost),
    ] {
        families.sample("_total", &[("event", event)], count);
    }
    let help = "Times from beginning a connection until it was established.";
    families.family("connect_seconds", Kind::Histogram, help);
    histogram(families, &[], &run.connect, run);
}

fn servers(families: &mut Families, run: &LiveRun) {
    let outages = || run.names.servers.iter().zip(&run.outages);
    families.family("outages", Kind::Counter, "Outages of a server that are over.");
    for (server, total) in outages() {
        families.sample("_total", &[("server", server)], total.count);
    }
    families.family("outage_seconds", Kind::Counter, "How long these outages were together.");
    for (server, total) in outages() {
        families.sample("_total", &[("server", server)], seconds(total.length_ns.into()));
    }
    let of_server: [OfServer; 5] = [
        ("server_requests", Kind::Counter, "Requests by the server's own account.", Snapshot::requests),
        (
            "server_cpu_seconds",
            Kind::Counter,
            "Processor time by the server's own account.",
            Snapshot::cpu_ns,
        ),
        ("server_evictions", Kind::Counter, "Evictions by the server's own account.", Snapshot::evictions),
        ("server_items", Kind::Gauge, "Items that the server holds.", Snapshot::items),
        (
            "server_memory_bytes",
            Kind::Gauge,
            "Bytes that its items take, or those of a Redis in all.",
            Snapshot::bytes,
        ),
    ];
    for (name, kind, help, of) in of_server {
        let told = |(place, held): (usize, &Option<Snapshot>)| {
            Some((run.names.polled_servers.of_place(place), of(held.as_ref()?)?))
        };
        let mut sums = BTreeMap::new();
        for (place, number) in run.statistics.iter().enumerate().filter_map(told) {
            *sums.entry(place).or_insert(0) += number;
        }
        if sums.is_empty() {
            continue;
        }
        families.family(name, kind, help);
        let suffix = if kind == Kind::Counter { "_total" } else { "" };
        for (place, server) in run.names.polled_servers.iter().enumerate() {
            let Some(sum) = sums.get(&place) else { continue };
            let text = if name.ends_with("seconds") { seconds((*sum).into()) } else { sum.to_string() };
            families.sample(suffix, &[("server", server)], text);
        }
    }
}

fn client(families: &mut Families, host: &HostCounters, shares: &[f64]) {
    let help = "Processor time of this process, all its threads together, since it began.";
    families.family("client_cpu_seconds", Kind::Counter, help);
    families.sample("_total", &[("mode", "user")], seconds(host.cpu_user_ns.into()));
    families.sample("_total", &[("mode", "system")], seconds(host.cpu_system_ns.into()));
    if let Some(stolen_ns) = host.stolen_ns {
        let help = "Time that the hypervisor took from this host's processors since the host began.";
        families.family("host_stolen_seconds", Kind::Counter, help);
        families.sample("_total", &[], seconds(stolen_ns.into()));
    }
    if shares.is_empty() {
        return;
    }
    let help = "The share of the last second in which a worker was busy; of the measured window when the run has ended.";
    families.family("worker_busy_ratio", Kind::Gauge, help);
    let mut rest: Option<f64> = None;
    for (worker, busy) in shares.iter().enumerate() {
        match worker_name(worker, shares.len()) {
            Some(name) => families.sample("", &[("worker", &name)], busy),
            // Of the rest the busiest.
            None => rest = Some(rest.map_or(*busy, |rest| rest.max(*busy))),
        }
    }
    if let Some(busy) = rest {
        families.sample("", &[("worker", OTHER)], busy);
    }
}
