//! A run at an instant as OpenMetrics text, for scrapers such as Prometheus.
//!
//! Not how it is asked for. docs/results.md has every name. Invariants: a count never falls while a run goes on, and when it has ended each is
//! that of its summary; names keep their meaning, units and labels; no label holds a key, a connection, a server's words or the address of a client; there is no
//! quantile, for quantiles cannot be added.

mod bounds;
mod families;
mod names;

pub use bounds::Bounds;

use crate::live::State;
use bounds::Buckets;
use brunt_plan::destination::Server;
use brunt_plan::outcome::OutcomeClass;
use brunt_plan::phase::Phase;
use brunt_plan::plan::{Load, MeterKind, Plan};
use brunt_stats::check::CheckStatus;
use brunt_stats::client_time::ClientTime;
use brunt_stats::interval::Bytes;
use brunt_stats::live_run::RunSoFar;
use brunt_stats::request_counts::OpCounts;
use brunt_stats::server_stats::Snapshot;
use brunt_stats::status::Status;
use brunt_stats::summary::Summary;
use families::{Families, Kind, seconds};
use names::{OTHER, RunNames, place, worker_name};
use std::collections::BTreeMap;

/// What the text is to who asks for it by HTTP.
pub const CONTENT_TYPE: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// What a sample counts of a server, and the family that it is in.
type OfServer = (&'static str, Kind, &'static str, fn(&Snapshot) -> Option<u64>);

/// What is scraped.
#[derive(Clone, Copy, Debug)]
pub enum Scraped<'a> {
    /// A run that goes on, has not begun or failed.
    Live(State<'a>),
    /// The result of one that has ended.
    Result(&'a Summary),
}

impl<'a> Scraped<'a> {
    const RESULT: &'static str = "ended";

    fn state_name(self) -> &'static str {
        match self {
            Self::Live(state) => state.name(),
            Self::Result(_) => Self::RESULT,
        }
    }

    /// The run at the end of its last second, unless it has ended.
    fn so_far(self) -> Option<&'a RunSoFar> {
        match self {
            Self::Live(state) => state.so_far(),
            Self::Result(_) => None,
        }
    }

    /// What it came to, or has come to so far.
    fn summary(self) -> Option<&'a Summary> {
        match self {
            Self::Live(state) => state.so_far().map(RunSoFar::summary),
            Self::Result(summary) => Some(summary),
        }
    }
}

impl<'a> From<State<'a>> for Scraped<'a> {
    fn from(state: State<'a>) -> Self {
        Self::Live(state)
    }
}

/// Counters of this process and of its host, since they began.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct HostCounters {
    /// Processor time of all threads in user space.
    pub cpu_user_ns: u64,
    /// CPU time of all threads in the kernel.
    pub cpu_system_ns: u64,
    /// What the hypervisor took from the host's processors; `None` where the host does not tell.
    pub stolen_ns: Option<u64>,
}

/// The outages of each server that are over: how many, and how long they were together.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OutageTotals(Vec<(u64, u64)>);

/// What the text of a run has beside what the run has come to.
#[derive(Debug)]
pub struct Scrape<'a> {
    /// Tells the plan, without its seed, from others.
    pub plan_id: &'a str,
    /// What response times are counted up to.
    pub bounds: &'a Bounds,
    /// Counters of this process and its host.
    pub host: HostCounters,
    /// What earlier texts of the same run said of outages.
    pub outages: &'a mut OutageTotals,
}

/// What became of the operations of a row.
#[derive(Clone, Debug, Default)]
struct Row {
    /// In all phases.
    book: OpCounts,
    /// Of measured operations: response times, those without the client's part, and service times. Nothing where none are measured.
    latencies: Option<[Buckets; 3]>,
}

/// A run whose series have their names.
struct NamedRun<'a> {
    scraped: Scraped<'a>,
    summary: &'a Summary,
    names: RunNames<'a>,
    /// In the order of [`RunNames::rows`], and the rest.
    rows: Vec<Row>,
    bounds: &'a Bounds,
}

impl<'a> NamedRun<'a> {
    fn of(scraped: Scraped<'a>, summary: &'a Summary, bounds: &'a Bounds) -> Self {
        let names = RunNames::of(&summary.record.plan, bounds.len());
        let mut rows = vec![Row::default(); names.rows.len() + 1];
        let store = &summary.record.run.intervals;
        for entry in store.books().entries() {
            rows[names.row_of(entry.class, entry.op)].book.merge(&entry.counts);
        }
        for (class, op, totals) in store.rows() {
            let latencies = &totals.latencies;
            let found = [&latencies.response, &latencies.without_client, &latencies.service]
                .map(|histogram| Buckets::of(histogram.buckets(), histogram.moments(), bounds));
            match &mut rows[names.row_of(class, op)].latencies {
                Some(held) => held.iter_mut().zip(&found).for_each(|(held, found)| held.merge(found)),
                none => *none = Some(found),
            }
        }
        Self { scraped, summary, names, rows, bounds }
    }
}

/// The text of a run; before the first one there is nothing but that.
pub fn text<'a>(scraped: impl Into<Scraped<'a>>, scrape: &mut Scrape<'_>) -> String {
    let scraped = scraped.into();
    let mut families = Families::default();
    let summary = scraped.summary();
    if let Some(summary) = summary {
        info(&mut families, summary, scrape.plan_id);
    }
    let names = State::NAMES.into_iter().chain([Scraped::RESULT]);
    let states: Vec<_> = names.map(|name| (name, name == scraped.state_name())).collect();
    families.states("phase", "How far the run is.", &states);
    if let Some(summary) = summary {
        let run = NamedRun::of(scraped, summary, scrape.bounds);
        status(&mut families, &run);
        requests(&mut families, &run);
        latencies(&mut families, &run);
        wire(&mut families, &run);
        outages(&mut families, &run, scrape.outages);
        servers(&mut families, &run);
        client(&mut families, &scrape.host, &busy_shares(&run));
        let merged = "Series that have no name of their own and are counted in those of 'other'.";
        families.family("merged_series", Kind::Gauge, merged);
        families.sample("", &[], run.names.merged);
    }
    families.end()
}

fn info(families: &mut Families, summary: &Summary, plan_id: &str) {
    let plan = &summary.record.plan;
    families.family("run", Kind::Info, "What runs.");
    families.sample(
        "_info",
        &[
            ("version", &summary.record.environment.brunt_version),
            ("protocol", &distinct(plan, |server| server.protocol.name())),
            ("transport", &distinct(plan, |server| server.transport.name())),
            ("loop", loop_name(plan)),
            ("plan", plan_id),
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

fn status(families: &mut Families, run: &NamedRun<'_>) {
    let status = Some(run.summary.status.status).filter(|_| matches!(run.scraped, Scraped::Result(_)));
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
    let help = "The six checks of the run, or of the run so far: 0 ok, 1 caution, 2 invalid; absent where one was skipped.";
    families.family("check", Kind::Gauge, help);
    for check in &run.summary.status.checks {
        let level = match check.status {
            CheckStatus::Skipped => continue,
            CheckStatus::Ok => 0,
            CheckStatus::Caution => 1,
            CheckStatus::Invalid => 2,
        };
        families.sample("", &[("check", check.id.name())], level);
    }
}

/// A row that is shown: its labels, and whether any of its operations ask for keys.
struct ShownRow<'a> {
    row: &'a Row,
    labels: [(&'static str, &'a str); 2],
    is_retrieval: bool,
}

/// Those that are shown: that of the rest only where there is any.
fn rows<'a>(run: &'a NamedRun<'_>) -> impl Iterator<Item = ShownRow<'a>> {
    let names = run.names.rows.iter().map(Some).chain([None]);
    names.zip(&run.rows).filter_map(|(name, row)| match name {
        Some(name) => {
            let labels = [("class", name.class), ("op", name.op.as_str())];
            Some(ShownRow { row, labels, is_retrieval: name.is_retrieval })
        }
        None if run.names.has_rest || !row.book.is_empty() => {
            Some(ShownRow { row, labels: [("class", OTHER), ("op", OTHER)], is_retrieval: true })
        }
        None => None,
    })
}

fn requests(families: &mut Families, run: &NamedRun<'_>) {
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

fn latencies(families: &mut Families, run: &NamedRun<'_>) {
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

fn histogram(families: &mut Families, labels: &[(&str, &str)], held: &Buckets, run: &NamedRun<'_>) {
    let bounds = run.bounds.iter_ns().map(|bound_ns| seconds(bound_ns.into()));
    for (bound, count) in bounds.zip(&held.cumulative) {
        families.sample("_bucket", &[labels, &[("le", &bound)]].concat(), count);
    }
    families.sample("_bucket", &[labels, &[("le", "+Inf")]].concat(), held.count);
    families.sample("_count", labels, held.count);
    families.sample("_sum", labels, seconds(held.sum_ns));
}

fn wire(families: &mut Families, run: &NamedRun<'_>) {
    families.family("wire_bytes", Kind::Counter, "Bytes of requests and replies, in all phases.");
    let store = &run.summary.record.run.intervals;
    let of = |direction: fn(&Bytes) -> u64| {
        Phase::ALL.iter().map(|phase| direction(&store.bytes_in(*phase))).sum::<u64>()
    };
    families.sample("_total", &[("direction", "tx")], of(|bytes| bytes.tx));
    families.sample("_total", &[("direction", "rx")], of(|bytes| bytes.rx));
    let counts = &run.summary.connections;
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
    let connect = store.meter(MeterKind::ConnectTime);
    histogram(families, &[], &Buckets::of(connect.buckets(), connect.moments(), run.bounds), run);
}

/// Those of a run that goes on are never taken back: what another worker tells later may show that one was shorter than it seemed.
fn outages(families: &mut Families, run: &NamedRun<'_>, said: &mut OutageTotals) {
    let names = &run.names.servers;
    let mut totals = vec![(0, 0); names.len()];
    for outage in &run.summary.outages {
        let total: &mut (u64, u64) = &mut totals[place(names, usize::from(outage.server))];
        *total = (total.0 + 1, total.1 + outage.length_ns().unwrap_or(0));
    }
    if run.scraped.so_far().is_some() {
        said.0.resize(totals.len(), (0, 0));
        let most = said.0.iter().zip(&totals).map(|(one, other)| (one.0.max(other.0), one.1.max(other.1)));
        totals = most.collect();
        said.0.clone_from(&totals);
    }
    families.family("outages", Kind::Counter, "Outages of a server that are over.");
    for (server, (count, _)) in names.iter().zip(&totals) {
        families.sample("_total", &[("server", server)], count);
    }
    families.family("outage_seconds", Kind::Counter, "How long these outages were together.");
    for (server, (_, length_ns)) in names.iter().zip(&totals) {
        families.sample("_total", &[("server", server)], seconds((*length_ns).into()));
    }
}

fn servers(families: &mut Families, run: &NamedRun<'_>) {
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
        let mut sums = BTreeMap::new();
        for (server, record) in run.summary.record.run.server_records.iter().enumerate() {
            if let Some(number) = record.snapshots().last().and_then(of) {
                *sums.entry(place(&run.names.polled_servers, server)).or_insert(0) += number;
            }
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

/// Of each worker the share of the last second in which it was busy, where it told; when the run has ended, of the window.
fn busy_shares(run: &NamedRun<'_>) -> Vec<Option<f64>> {
    let last_second = run.scraped.so_far().map(|so_far| so_far.last_second());
    let Some(last_second) = last_second else {
        let workers = run.summary.record.run.usage.workers.iter();
        return workers
            .map(|of| (of.wall_ns > 0).then(|| (of.busy_ns as f64 / of.wall_ns as f64).min(1.0)))
            .collect();
    };
    last_second.map(|second| second.workers.iter().map(ClientTime::busy_share).collect()).unwrap_or_default()
}

fn client(families: &mut Families, host: &HostCounters, shares: &[Option<f64>]) {
    let help = "Processor time of this process, all its threads together, since it began.";
    families.family("client_cpu_seconds", Kind::Counter, help);
    families.sample("_total", &[("mode", "user")], seconds(host.cpu_user_ns.into()));
    families.sample("_total", &[("mode", "system")], seconds(host.cpu_system_ns.into()));
    if let Some(stolen_ns) = host.stolen_ns {
        let help = "Time that the hypervisor took from this host's processors since the host began.";
        families.family("host_stolen_seconds", Kind::Counter, help);
        families.sample("_total", &[], seconds(stolen_ns.into()));
    }
    if shares.iter().all(Option::is_none) {
        return;
    }
    let help = "The share of the last second in which a worker was busy; of the measured window when the run has ended.";
    families.family("worker_busy_ratio", Kind::Gauge, help);
    let mut rest: Option<f64> = None;
    for (worker, busy) in shares.iter().enumerate() {
        let Some(busy) = busy else { continue };
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
