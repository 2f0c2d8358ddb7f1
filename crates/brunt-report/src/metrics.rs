//! A run at an instant as OpenMetrics text, for scrapers such as Prometheus.
//!
//! Not how it is asked for. docs/results.md has every name. Invariants: a count never falls while a run goes on, and when it has ended each is
//! that of its summary; names keep their meaning, units and labels; no label holds a key, a connection, a server's words or the address of a client; there is no
//! quantile, for quantiles cannot be added; no run has more than `SERIES_MAX` series, however many classes, servers and workers it has, the
//! rest of which share the name `OTHER`, by the plan alone, so that no series comes or goes while a run goes on.

mod families;

use crate::live::State;
use brunt_plan::op::OpName;
use brunt_plan::op::{ClassId, OpId, OpKind};
use brunt_plan::outcome::OutcomeClass;
use brunt_plan::phase::Phase;
use brunt_plan::plan::{Load, MeterKind, Plan, Server};
use brunt_plan::quantity::each_once;
use brunt_stats::check::CheckStatus;
use brunt_stats::interval::Bytes;
use brunt_stats::request_counts::{KeyCounts, OpCounts};
use brunt_stats::server_stats::Snapshot;
use brunt_stats::status::Status;
use brunt_stats::store::IntervalStore;
use brunt_stats::summary::Summary;
use brunt_stats::usage::ClientTime;
use brunt_stats::usage::WorkerUsage;
pub use families::Bounds;
use families::Kind::{self, Counter, Gauge, Histogram, Info, StateSet};
use families::{Buckets, Families};

/// What the text is to who asks for it by HTTP.
pub const CONTENT_TYPE: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// What writes the samples of a family.
type Samples = fn(&NamedRun<'_>, &mut Families);

/// Every family of a run, in the order of the text. Durations are given in nanoseconds and written in the unit that the name ends with.
const FAMILIES: [(Kind, &str, &str, Samples); 25] = [
    (Info, "run", "What runs.", info),
    (StateSet, "status", "Whether the numbers of the run may be quoted; pending until it has ended.", status),
    (Gauge, "check", CHECK_HELP, checks),
    (Counter, "requests_scheduled", "Requests that became due, in all phases.", |run, out| {
        run.rows().for_each(|shown| out.add(&shown.labels, shown.row.counts.requests.scheduled));
    }),
    (Counter, "requests_sent", "Requests that were sent, in all phases.", |run, out| {
        run.rows().for_each(|shown| out.add(&shown.labels, shown.row.counts.requests.sent));
    }),
    (Counter, "requests", "Requests that ended, by what became of them, in all phases.", |run, out| {
        for ShownRow { row, labels, .. } in run.rows() {
            let named = |outcome: OutcomeClass| (outcome.name(), row.counts.requests.outcome(outcome));
            out.add_each(&labels, "outcome", &OutcomeClass::ALL.map(named));
        }
    }),
    (Counter, "keys", "Keys of retrievals that ended, by what became of them, in all phases.", |run, out| {
        for ShownRow { row, labels, .. } in run.rows().filter(|shown| shown.is_retrieval) {
            let KeyCounts { hit, miss, failed, .. } = row.counts.keys;
            out.add_each(&labels, "outcome", &[("hit", hit), ("miss", miss), ("failed", failed)]);
        }
    }),
    (Histogram, "response_seconds", RESPONSE_HELP, |run, out| run.write_histograms(out, 0)),
    (Histogram, "response_without_client_seconds", LEAST_HELP, |run, out| run.write_histograms(out, 1)),
    (Histogram, "service_seconds", SERVICE_HELP, |run, out| run.write_histograms(out, 2)),
    (Counter, "wire_bytes", "Bytes of requests and replies, in all phases.", |run, out| {
        let sum = |of: fn(Bytes) -> u64| Phase::ALL.map(|phase| of(run.store().bytes_in(phase))).iter().sum();
        out.add_each(&[], "direction", &[("tx", sum(|bytes| bytes.tx)), ("rx", sum(|bytes| bytes.rx))]);
    }),
    (Gauge, "connections_open", "Connections that stand.", |run, out| {
        out.add(&[], run.summary.connections.open());
    }),
    (Counter, "connection_events", "What happened to connections, in all phases.", |run, out| {
        let counts = &run.summary.connections;
        out.add_each(&[], "event", &[("begun", counts.begun), ("established", counts.established)]);
        let ends = [("failed", counts.failed), ("retired", counts.retired), ("lost", counts.lost)];
        out.add_each(&[], "event", &ends);
    }),
    (
        Histogram,
        "connect_seconds",
        "Times from beginning a connection until it was established.",
        |run, out| {
            let connect = run.store().meter(MeterKind::ConnectTime);
            out.add_histogram(
                &[],
                &Buckets::of(connect.buckets(), connect.moments(), run.bounds),
                run.bounds,
            );
        },
    ),
    (Counter, "outages", "Outages of a server that are over.", |run, out| {
        let totals = run.names.servers.iter().zip(&run.outages);
        totals.for_each(|(server, (count, _))| out.add(&[("server", server)], *count));
    }),
    (Counter, "outage_seconds", "How long these outages were together.", |run, out| {
        let totals = run.names.servers.iter().zip(&run.outages);
        totals.for_each(|(server, (_, length_ns))| out.add(&[("server", server)], *length_ns));
    }),
    (Counter, "server_requests", "Requests by the server's own account.", |run, out| {
        run.write_servers(out, Snapshot::requests);
    }),
    (Counter, "server_cpu_seconds", "Processor time by the server's own account.", |run, out| {
        run.write_servers(out, Snapshot::cpu_ns);
    }),
    (Counter, "server_evictions", "Evictions by the server's own account.", |run, out| {
        run.write_servers(out, Snapshot::evictions);
    }),
    (Gauge, "server_items", "Items that the server holds.", |run, out| {
        run.write_servers(out, Snapshot::items);
    }),
    (Gauge, "server_memory_bytes", "Bytes that its items take, or those of a Redis in all.", |run, out| {
        run.write_servers(out, Snapshot::bytes);
    }),
    (Counter, "client_cpu_seconds", CPU_HELP, |run, out| {
        out.add_each(&[], "mode", &[("user", run.host.cpu_user_ns), ("system", run.host.cpu_system_ns)]);
    }),
    (Counter, "host_stolen_seconds", STOLEN_HELP, |run, out| {
        run.host.stolen_ns.into_iter().for_each(|stolen_ns| out.add(&[], stolen_ns));
    }),
    (Gauge, "worker_busy_ratio", BUSY_HELP, workers),
    (Gauge, "merged_series", MERGED_HELP, |run, out| out.add(&[], run.names.merged as u64)),
];

const CHECK_HELP: &str = "The six checks of the run, or of the run so far: 0 ok, 1 caution, 2 invalid; absent where one was skipped.";
const RESPONSE_HELP: &str =
    "Response times of completed requests of the measured window, from when each was due.";
const LEAST_HELP: &str =
    "The same without all that the client may have held: the least that each can have been.";
const SERVICE_HELP: &str = "Service times of the same requests, from when each was sent.";
const CPU_HELP: &str = "Processor time of this process, all its threads together, since it began.";
const STOLEN_HELP: &str = "Time that the hypervisor took from this host's processors since the host began.";
const BUSY_HELP: &str =
    "The share of the last second in which a worker was busy; of the measured window when the run has ended.";
const MERGED_HELP: &str = "Series that have no name of their own and are counted in those of 'other'.";

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
    counts: OpCounts,
    /// Of measured operations: response times, those without the client's part, and service times. Nothing where none are measured.
    latencies: Option<[Buckets; 3]>,
}

/// A run whose series have their names.
struct NamedRun<'a> {
    state: State<'a>,
    summary: &'a Summary,
    plan_id: &'a str,
    names: RunNames<'a>,
    /// In the order of [`RunNames::rows`], and the rest.
    rows: Vec<Row>,
    /// By server: outages that are over, and how long they were together.
    outages: Vec<(u64, u64)>,
    bounds: &'a Bounds,
    host: HostCounters,
}

impl<'a> NamedRun<'a> {
    fn of(state: State<'a>, summary: &'a Summary, scrape: &'a mut Scrape<'_>) -> Self {
        let Scrape { plan_id, bounds, host, .. } = *scrape;
        let names = RunNames::of(&summary.record.plan, bounds.len());
        let mut rows = vec![Row::default(); names.rows.len() + 1];
        let store = &summary.record.run.intervals;
        for entry in store.request_counts().entries() {
            rows[names.row_of(entry.class, entry.op)].counts.merge(&entry.counts);
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
        let mut outages = vec![(0, 0); names.servers.len()];
        for outage in &summary.outages {
            let total: &mut (u64, u64) = &mut outages[place(&names.servers, usize::from(outage.server))];
            *total = (total.0 + 1, total.1 + outage.length_ns().unwrap_or(0));
        }
        // Those of a run that goes on are never taken back: what another worker tells later may show that one was shorter than it seemed.
        if state.so_far().is_some() {
            let said = &mut scrape.outages.0;
            said.resize(outages.len(), (0, 0));
            said.iter_mut()
                .zip(&outages)
                .for_each(|(said, now)| *said = (said.0.max(now.0), said.1.max(now.1)));
            outages.clone_from(said);
        }
        Self { state, summary, plan_id, names, rows, outages, bounds, host }
    }

    fn store(&self) -> &IntervalStore {
        &self.summary.record.run.intervals
    }

    /// The rows that are shown: that of the rest only where there is any.
    fn rows(&self) -> impl Iterator<Item = ShownRow<'_>> {
        let names = self.names.rows.iter().map(Some).chain([None]);
        names.zip(&self.rows).filter_map(|(name, row)| match name {
            Some(name) => {
                let labels = [("class", name.class), ("op", name.op.as_str())];
                Some(ShownRow { row, labels, is_retrieval: name.is_retrieval })
            }
            None if self.names.has_rest || !row.counts.is_empty() => {
                Some(ShownRow { row, labels: [("class", OTHER), ("op", OTHER)], is_retrieval: true })
            }
            None => None,
        })
    }

    /// One of the histograms of each row.
    fn write_histograms(&self, out: &mut Families, which: usize) {
        for ShownRow { row, labels, .. } in self.rows() {
            row.latencies.iter().for_each(|held| out.add_histogram(&labels, &held[which], self.bounds));
        }
    }

    /// What servers that tell last said.
    fn write_servers(&self, out: &mut Families, of: fn(&Snapshot) -> Option<u64>) {
        let names = &self.names.polled_servers;
        let mut sums: Vec<Option<u64>> = vec![None; names.len()];
        for (server, record) in self.summary.record.run.server_records.iter().enumerate() {
            if let Some(number) = record.snapshots().last().and_then(of) {
                *sums[place(names, server)].get_or_insert(0) += number;
            }
        }
        for (server, sum) in names.iter().zip(sums) {
            sum.into_iter().for_each(|sum| out.add(&[("server", server)], sum));
        }
    }
}

/// A row that is shown: its labels, and whether any of its operations ask for keys.
struct ShownRow<'a> {
    row: &'a Row,
    labels: [(&'static str, &'a str); 2],
    is_retrieval: bool,
}

/// The text of a run; before the first one there is nothing but that.
pub fn text(state: State<'_>, scrape: &mut Scrape<'_>) -> String {
    let mut families = Families::default();
    families.begin("phase", StateSet, "How far the run is.");
    families.add_states(State::NAMES.map(|name| (name, name == state.name())));
    if let Some(summary) = state.summary() {
        let run = NamedRun::of(state, summary, scrape);
        for (kind, name, help, write) in FAMILIES {
            families.begin(name, kind, help);
            write(&run, &mut families);
        }
    }
    families.end()
}

fn info(run: &NamedRun<'_>, out: &mut Families) {
    let plan = &run.summary.record.plan;
    let labels = [
        ("version", run.summary.record.environment.brunt_version.as_str()),
        ("protocol", &distinct(plan, |server| server.protocol.name())),
        ("transport", &distinct(plan, |server| server.transport.name())),
        ("loop", loop_name(plan)),
        ("plan", run.plan_id),
    ];
    out.add(&labels, 1_u64);
}

/// What the servers of a plan have, each once.
fn distinct(plan: &Plan, of: impl Fn(&Server) -> &'static str) -> String {
    each_once(plan.servers.iter().map(of)).join(",")
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

fn status(run: &NamedRun<'_>, out: &mut Families) {
    let status = Some(run.summary.status.status).filter(|_| matches!(run.state, State::Ended(_)));
    let names = [("ok", Status::Ok), ("caution", Status::Caution), ("invalid", Status::Invalid)];
    let states = names.map(|(name, held)| (name, status == Some(held)));
    out.add_states([("pending", status.is_none())].into_iter().chain(states));
}

fn checks(run: &NamedRun<'_>, out: &mut Families) {
    for check in &run.summary.status.checks {
        let level: u64 = match check.status {
            CheckStatus::Skipped => continue,
            CheckStatus::Ok => 0,
            CheckStatus::Caution => 1,
            CheckStatus::Invalid => 2,
        };
        out.add(&[("check", check.id.name())], level);
    }
}

/// Of each worker the share of the last second in which it was busy, where it told; when the run has ended, of the window.
fn workers(run: &NamedRun<'_>, out: &mut Families) {
    let shares: Vec<Option<f64>> = match run.state.so_far() {
        Some(so_far) => {
            let second = so_far.last_second();
            second
                .map(|second| second.workers.iter().map(ClientTime::busy_share).collect())
                .unwrap_or_default()
        }
        None => {
            let busy =
                |of: &WorkerUsage| (of.wall_ns > 0).then(|| (of.busy_ns as f64 / of.wall_ns as f64).min(1.0));
            run.summary.record.run.usage.workers.iter().map(busy).collect()
        }
    };
    let mut rest: Option<f64> = None;
    for (worker, busy) in shares.iter().enumerate() {
        let Some(busy) = busy else { continue };
        match worker_name(worker, shares.len()) {
            Some(name) => out.add_ratio(&[("worker", &name)], *busy),
            // Of the rest the busiest.
            None => rest = Some(rest.map_or(*busy, |rest| rest.max(*busy))),
        }
    }
    rest.into_iter().for_each(|busy| out.add_ratio(&[("worker", OTHER)], busy));
}

/// What has no name of its own.
const OTHER: &str = "other";
/// Series of a run at most.
const SERIES_MAX: usize = 5_000;
const CLASSES_MAX: usize = 16;
const SERVERS_MAX: usize = 64;
const WORKERS_MAX: usize = 64;
/// Outages, their length, and what a server says of itself.
const SERIES_OF_SERVER: usize = 7;
/// Of a row beside its histograms: scheduled, sent, by outcome, keys by what became of them.
const COUNTS_OF_ROW: usize = 2 + OutcomeClass::COUNT + 3;
/// Response, without the client's part, service.
const HISTOGRAMS_OF_ROW: usize = 3;
/// What there is once: states, checks, bytes, events; a few more than there are.
const SERIES_OF_RUN: usize = 100;

/// The names of a run.
#[derive(Debug)]
struct RunNames<'a> {
    /// Operations by class, as far as they have a row of their own; one more row is the rest.
    pub rows: Vec<RowName<'a>>,
    /// Is anything in the rest?
    pub has_rest: bool,
    /// The servers of the plan, and those that are asked for their stats.
    pub servers: Vec<String>,
    pub polled_servers: Vec<String>,
    /// How many series share those of [`OTHER`].
    pub merged: usize,
}

/// What the operations of a row are.
#[derive(Debug)]
struct RowName<'a> {
    id: (usize, OpId),
    pub class: &'a str,
    pub op: OpName,
    pub is_retrieval: bool,
}

impl<'a> RunNames<'a> {
    /// The names of a plan whose histograms have this number of bounds.
    fn of(plan: &'a Plan, bounds: usize) -> Self {
        let servers = server_names(plan.server_names());
        let polled_servers = server_names(plan.polled_server_names());
        // Its bounds, the rest, count and sum.
        let of_histogram = bounds + 3;
        let of_row = COUNTS_OF_ROW + HISTOGRAMS_OF_ROW * of_histogram;
        let of_servers = SERIES_OF_SERVER * servers.len();
        let room = SERIES_MAX.saturating_sub(SERIES_OF_RUN + of_histogram + of_servers + WORKERS_MAX);
        let rows_max = (room / of_row).max(1);
        let all = plan_rows(plan);
        let is_enough = plan.classes.len() <= CLASSES_MAX && all.len() <= rows_max;
        let (classes, rows_max) =
            if is_enough { (CLASSES_MAX, rows_max) } else { (CLASSES_MAX - 1, rows_max - 1) };
        let name = |(class, op): &(usize, OpId)| RowName {
            id: (*class, *op),
            class: &plan.classes[*class].name,
            op: plan.op_name(*op),
            is_retrieval: op.is_retrieval(),
        };
        let rows: Vec<_> =
            all.iter().filter(|(class, _)| *class < classes).take(rows_max).map(name).collect();
        let merged_rows = all.len() - rows.len();
        let merged = merged_rows * of_row + (plan.server_count() - servers.len()) * SERIES_OF_SERVER;
        Self { rows, has_rest: merged_rows > 0, servers, polled_servers, merged }
    }

    /// The row of such operations of a class.
    fn row_of(&self, class: ClassId, op: OpId) -> usize {
        let id = (usize::from(class), op);
        self.rows.iter().position(|row| row.id == id).unwrap_or(self.rows.len())
    }
}

/// The rows that a plan can have: kinds of the mix, what follows misses, what stores the data set.
fn plan_rows(plan: &Plan) -> Vec<(usize, OpId)> {
    let mut all = Vec::new();
    for (index, class) in plan.classes.iter().enumerate() {
        let mut ops = class.ops();
        if plan.preload && !ops.contains(&OpKind::Set.into()) {
            ops.push(OpKind::Set.into());
        }
        all.extend(ops.into_iter().map(|op| (index, op)));
    }
    all
}

/// Servers by name, in their order. The plan does not name the one that is started for it.
fn server_names(mut names: Vec<Option<String>>) -> Vec<String> {
    if names.len() > SERVERS_MAX {
        names.truncate(SERVERS_MAX - 1);
        names.push(Some(OTHER.to_owned()));
    }
    names.into_iter().map(|name| name.unwrap_or_else(|| "embedded".to_owned())).collect()
}

/// The place of the name of a server.
fn place(names: &[String], server: usize) -> usize {
    server.min(names.len() - 1)
}

/// The name of a worker; those that have none of their own are one.
fn worker_name(worker: usize, workers: usize) -> Option<String> {
    (workers <= WORKERS_MAX || worker < WORKERS_MAX - 1).then(|| worker.to_string())
}
