//! The state of a run while it goes on: what [`crate::metrics`] writes for scrapers and [`json`] for programs.
//!
//! Not a summary: nothing is judged before the run has ended. Taken from what the control thread keeps ([`IntervalStore`]), once a
//! second, so that it costs the same however many look on. Invariants: a count never falls while a run goes on, and when it has ended each is
//! that of its summary; which series there are is decided by the plan when the run begins, and how many there are is bounded.

mod bounds;
pub mod json;
mod names;

pub use bounds::Bounds;
pub(crate) use bounds::Buckets;
pub(crate) use names::{OTHER, RunNames, worker_name};

use brunt_plan::phase::Phase;
use brunt_plan::plan::{MeterKind, Plan};
use brunt_stats::check::{CheckId, CheckStatus};
use brunt_stats::connection::ConnectionCounts;
use brunt_stats::histogram::Histogram;
use brunt_stats::interval::{Bytes, Interval};
use brunt_stats::latency::LatencySummary;
use brunt_stats::measured_window::MeasuredWindow;
use brunt_stats::observer::RunPosition;
use brunt_stats::outage::{Outage, outages};
use brunt_stats::recorder::Layout;
use brunt_stats::request_counts::OpCounts;
use brunt_stats::server_stats::Snapshot;
use brunt_stats::status::{RunStatus, Status};
use brunt_stats::store::IntervalStore;
use brunt_stats::summary::Summary;
use brunt_stats::usage::WorkerUsage;
use std::sync::Arc;

/// What is known of a run before it begins.
#[derive(Clone, Debug)]
pub struct RunHeader {
    /// Version of brunt.
    pub version: String,
    /// What will run.
    pub plan: Plan,
    /// Tells the plan, without its seed, from others.
    pub plan_id: String,
    /// The servers as the report names them.
    pub server: String,
    /// Which run of its command it is.
    pub place: RunPosition,
    /// What response times are counted up to.
    pub bounds: Bounds,
}

/// How far a run is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// No run has begun.
    Starting,
    /// It goes on.
    Running(Phase),
    /// It is over, and there is a result.
    Ended,
    /// It failed.
    Failed,
}

impl State {
    /// Every state.
    pub(crate) const ALL: [Self; Phase::COUNT + 3] = [
        Self::Starting,
        Self::Running(Phase::Connect),
        Self::Running(Phase::Preload),
        Self::Running(Phase::Warmup),
        Self::Running(Phase::Measure),
        Self::Running(Phase::Drain),
        Self::Ended,
        Self::Failed,
    ];

    /// As a value in JSON and in labels.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Starting => "starting",
            Self::Running(phase) => phase.name(),
            Self::Ended => "ended",
            Self::Failed => "failed",
        }
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

/// What became of the operations of a row.
#[derive(Clone, Debug, Default)]
pub(crate) struct Row {
    /// In all phases.
    pub book: OpCounts,
    /// Of measured operations: response times, those without the client's part, and service times. Nothing where none are measured.
    pub latencies: Option<[Buckets; 3]>,
}

/// What a summary adds when the run has ended.
#[derive(Clone, Debug)]
pub(crate) struct JudgedRun {
    pub status: Status,
    /// Without those that were skipped.
    pub checks: Vec<(CheckId, CheckStatus)>,
}

/// How long a worker was observed, and busy.
#[derive(Clone, Copy, Debug, Default)]
struct WorkerShare {
    wall_ns: u64,
    busy_ns: u64,
}

impl WorkerShare {
    fn share(self) -> f64 {
        (self.busy_ns as f64 / self.wall_ns.max(1) as f64).min(1.0)
    }
}

/// Those that were not skipped.
pub(crate) fn checks_of(status: &RunStatus) -> Vec<(CheckId, CheckStatus)> {
    let judged = status.checks.iter().filter(|check| check.status != CheckStatus::Skipped);
    judged.map(|check| (check.id, check.status)).collect()
}

/// Outages of a server that are over.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct OutageTotal {
    pub count: u64,
    pub length_ns: u64,
}

/// A run at an instant.
#[derive(Clone, Debug)]
pub struct LiveRun {
    pub(crate) header: Arc<RunHeader>,
    pub(crate) names: Arc<RunNames>,
    /// How far it is.
    pub state: State,
    /// Counters of the process and its host, which are for others to read.
    pub host: HostCounters,
    pub(crate) window: Option<MeasuredWindow>,
    /// The instant of the counts, on the run's clock.
    pub(crate) at_ns: u64,
    /// In the order of [`RunNames::rows`].
    pub(crate) rows: Vec<Row>,
    /// What was booked in each phase, and what crossed the wire in it; `phase as usize` is the index.
    pub(crate) phases: [(OpCounts, Bytes); Phase::COUNT],
    pub(crate) connections: ConnectionCounts,
    pub(crate) connect: Buckets,
    pub(crate) response: LatencySummary,
    pub(crate) service: LatencySummary,
    /// In the order of [`RunNames::servers`].
    pub(crate) outages: Vec<OutageTotal>,
    spans_seen: usize,
    /// In the order of the servers that are asked.
    pub(crate) statistics: Vec<Option<Snapshot>>,
    pub(crate) judged: Option<JudgedRun>,
    /// Of each worker the share of the last second in which it was busy; when the run has ended, of the window.
    pub(crate) busy: Vec<f64>,
    /// By worker, since the last second ended.
    second: Vec<WorkerShare>,
}

impl LiveRun {
    /// Before anything is recorded.
    pub fn new(header: RunHeader) -> Self {
        let names = RunNames::of(&header.plan, header.bounds.len());
        let nothing = LatencySummary::of(&Histogram::new());
        let layout = Layout::of(&header.plan);
        let mut run = Self {
            state: State::Running(Phase::Connect),
            host: HostCounters::default(),
            window: None,
            at_ns: 0,
            rows: vec![Row::default(); names.rows.len()],
            phases: Default::default(),
            connections: ConnectionCounts::default(),
            connect: Buckets::empty(&header.bounds),
            response: nothing.clone(),
            service: nothing,
            outages: vec![OutageTotal::default(); names.servers.len()],
            spans_seen: 0,
            statistics: vec![None; header.plan.polled_servers().len()],
            judged: None,
            busy: Vec::new(),
            second: Vec::new(),
            header: Arc::new(header),
            names: Arc::new(names),
        };
        // Every series is there from the beginning.
        run.count(&IntervalStore::new(&layout));
        run
    }

    /// The schedule has its times; they may be told again.
    pub fn start(&mut self, window: MeasuredWindow) {
        self.window = Some(window);
    }

    /// A server said something of itself.
    pub fn hear(&mut self, server: usize, snapshot: &Snapshot) {
        if let Some(held) = self.statistics.get_mut(server) {
            *held = Some(snapshot.clone());
        }
    }

    /// A worker has handed over an interval.
    pub fn told(&mut self, interval: &Interval) {
        let Some(time) = interval.worker_time else { return };
        let worker = interval.worker as usize;
        if worker >= self.second.len() {
            self.second.resize_with(worker + 1, WorkerShare::default);
        }
        self.second[worker].wall_ns += interval.end_ns - interval.start_ns;
        self.second[worker].busy_ns += time.busy_ns;
    }

    /// Takes in everything that was recorded up to an instant.
    pub fn look(&mut self, at_ns: u64, so_far: &IntervalStore) {
        self.at_ns = at_ns;
        self.busy = self.second.iter().map(|second| second.share()).collect();
        self.second.fill(WorkerShare::default());
        self.count(so_far);
        let spans = so_far.outage_spans();
        if spans.len() != self.spans_seen {
            self.spans_seen = spans.len();
            let found = self.outage_totals(&outages(spans, so_far.timeline(), &(0..u64::MAX)));
            // What another worker tells later may show that one was shorter than it seemed.
            for (held, found) in self.outages.iter_mut().zip(found) {
                held.count = held.count.max(found.count);
                held.length_ns = held.length_ns.max(found.length_ns);
            }
        }
        self.state = State::Running(self.phase());
    }

    /// The run is over: what it came to, unless it failed.
    pub fn end(&mut self, summary: Option<&Summary>) {
        let Some(summary) = summary else {
            self.state = State::Failed;
            return;
        };
        self.state = State::Ended;
        self.window = Some(summary.window);
        self.at_ns = summary.window.drained_ns;
        self.count(&summary.record.run.intervals);
        self.outages = self.outage_totals(&summary.outages);
        for (held, record) in self.statistics.iter_mut().zip(&summary.record.run.server_records) {
            *held = record.snapshots().last().cloned();
        }
        let status = &summary.status;
        let workers = summary.record.run.usage.workers.iter();
        let of_window =
            |worker: &WorkerUsage| WorkerShare { wall_ns: worker.wall_ns, busy_ns: worker.busy_ns }.share();
        self.busy = workers.map(of_window).collect();
        self.judged = Some(JudgedRun { status: status.status, checks: checks_of(status) });
    }

    /// The phase of the schedule that the counts belong to.
    fn phase(&self) -> Phase {
        match self.window {
            Some(window) if self.at_ns >= window.end_ns => Phase::Drain,
            Some(window) if self.at_ns >= window.measure_ns => Phase::Measure,
            Some(window) if self.at_ns >= window.start_ns => Phase::Warmup,
            _ if self.phases[Phase::Preload as usize].0.requests.sent > 0 => Phase::Preload,
            _ => Phase::Connect,
        }
    }

    /// Every count and histogram.
    fn count(&mut self, so_far: &IntervalStore) {
        let bounds = &self.header.bounds;
        self.rows.fill(Row::default());
        self.phases = Phase::ALL.map(|phase| (OpCounts::default(), so_far.bytes_in(phase)));
        for entry in so_far.books().entries() {
            self.rows[self.names.rows.of_op(entry.class, entry.op)].book.merge(&entry.counts);
            self.phases[entry.phase as usize].0.merge(&entry.counts);
        }
        let (mut response, mut service) = (Histogram::new(), Histogram::new());
        for (class, op, totals) in so_far.rows() {
            let latencies = &totals.latencies;
            response.merge(&latencies.response);
            service.merge(&latencies.service);
            let found = [&latencies.response, &latencies.without_client, &latencies.service]
                .map(|histogram| Buckets::of(histogram.buckets(), histogram.moments(), bounds));
            match &mut self.rows[self.names.rows.of_op(class, op)].latencies {
                Some(held) => held.iter_mut().zip(&found).for_each(|(held, found)| held.merge(found)),
                none => *none = Some(found),
            }
        }
        (self.response, self.service) = (LatencySummary::of(&response), LatencySummary::of(&service));
        self.connections = ConnectionCounts::default();
        so_far.connections().iter().for_each(|counts| self.connections.merge(counts));
        let meters = so_far.meters();
        let connect = meters.iter().find(|meter| meter.kind == MeterKind::ConnectTime);
        self.connect = connect.map_or_else(
            || Buckets::empty(bounds),
            |meter| Buckets::of(meter.histogram.buckets(), meter.histogram.moments(), bounds),
        );
    }

    fn outage_totals(&self, outages: &[Outage]) -> Vec<OutageTotal> {
        let mut totals = vec![OutageTotal::default(); self.names.servers.len()];
        for outage in outages {
            let total = &mut totals[self.names.servers.of_place(usize::from(outage.server))];
            total.count += 1;
            total.length_ns += outage.length_ns().unwrap_or(0);
        }
        totals
    }
}
