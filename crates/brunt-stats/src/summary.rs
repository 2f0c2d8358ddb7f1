//! Everything that a run came to, merged, as data for every report.
//!
//! Not text: reports turn it into that. Built once, from what the control thread kept, and never changed. Invariants:
//! percentiles come from merged histograms, rates from counts of what happened inside the measured window, and the embedded plan with
//! its seeds repeats the run.

use crate::agent::AgentRecord;
use crate::assertion::Assertion;
use crate::batch::{BATCHES, Batch, batches};
use crate::bound::{Client, Decision, HalfWidths};
use crate::calibration::Lookup;
use crate::confidence::{PercentileInterval, half_width_of_quotient, intervals};
use crate::connection::ConnectionCounts;
use crate::convergence::{Convergence, UntilResult};
use crate::datagrams::DatagramCounts;
use crate::fault::FaultTable;
use crate::histogram::Histogram;
use crate::interval::{Bytes, HostMapping, Latencies, SLICE_NS};
use crate::latency::{ClientError, LatencySummary, client_errors};
use crate::limit::{Bottleneck, Limit};
use crate::meter::Meter;
use crate::outage::{Outage, outages};
use crate::request_counts::{CountEntry, KeyCounts, OpCounts, RequestCounts};
use crate::run_data::{RunData, RunTimes};
use crate::server::ServerCounts;
use crate::server_stats::{self, StatComparison};
use crate::steady::Steadiness;
use crate::store::{IntervalStore, RowTotals};
use crate::timeline::{Timeline, TimelinePoint};
use crate::usage::WorkerUsage;
use crate::verdict::little::{ClosedLoop, InSystem};
use crate::verdict::{
    self, Check, DownServer, Evidence, FaultEvidence, Judgement, LagRow, LastHalf, MeasuredOutage, OpenLoop,
    RequestTarget, Verdict,
};
use crate::window::WindowCounts;
use crate::worker_counts::WorkerCounts;
use brunt_plan::objective::Objective;
use brunt_plan::op::{ClassId, OpId, OpKind};
use brunt_plan::op_name::OpName;
use brunt_plan::outcome::OutcomeClass;
use brunt_plan::phase::Phase;
use brunt_plan::plan::{Class, Load, MeterKind, OnMiss, Plan, Timestamps, Transport, Wait};
use brunt_plan::quantile::Quantile;
use serde::{Deserialize, Serialize};
use std::borrow::Cow;
use std::cell::RefCell;
use std::sync::Arc;

/// Where a worker was ready to run and did not for more than this share of the window, how long replies of a closed loop lay unread is not known.
const RUN_DELAY_MAX: f64 = 0.05;
/// In a closed loop that lost more than this share of its slots' time to the client, the load that was reached is the client's.
pub const LAG_SHARE_MAX: f64 = 0.05;

/// The times that part the phases of a schedule, in nanoseconds on the run's clock; ascending.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MeasuredWindow {
    /// The schedule began: connections stand, preload is over.
    pub start_ns: u64,
    /// The measured window began.
    pub measure_ns: u64,
    /// It ended.
    pub end_ns: u64,
    /// The last op had ended or was given up.
    pub drained_ns: u64,
}

impl MeasuredWindow {
    /// Of a run with these times.
    pub const fn of(times: &RunTimes) -> Self {
        let RunTimes { start_ns, measure_ns, end_ns, drained_ns, .. } = *times;
        Self { start_ns, measure_ns, end_ns, drained_ns }
    }

    /// Length of the measured window in nanoseconds.
    pub const fn duration_ns(&self) -> u64 {
        self.end_ns.saturating_sub(self.measure_ns)
    }

    /// Length of the measured window in seconds.
    pub fn seconds(&self) -> f64 {
        self.duration_ns() as f64 / 1e9
    }

    /// `count` per second of the window; 0 for a window without length.
    fn rate(&self, count: u64) -> f64 {
        if self.duration_ns() == 0 { 0.0 } else { count as f64 / self.seconds() }
    }
}

/// What was found on the host, as name and value, and the version of the tool.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Environment {
    /// Version of brunt.
    pub brunt_version: String,
    /// What the host calls itself; empty in results of older versions.
    #[serde(default)]
    pub host: String,
    /// Facts by name, in the order to print them.
    pub facts: Vec<(String, String)>,
}

/// How preload went.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct PreloadResult {
    /// Keys to be stored.
    pub wanted: u64,
    /// Keys that the server confirmed.
    pub confirmed: u64,
    /// An earlier run of the same campaign stored and confirmed them; this one found them there.
    pub is_earlier: bool,
    /// From the first attempt to connect until the last key was confirmed, in nanoseconds.
    pub duration_ns: u64,
}

/// What a summary is built from, and nothing else: what the run yielded, and what only its leader knows.
#[derive(Clone, Debug)]
pub struct RunRecord {
    /// The plan that ran.
    pub plan: Plan,
    /// What was measured.
    pub run: RunData,
    /// The host.
    pub environment: Environment,
    /// What the server says of itself, in a line.
    pub server: String,
    /// The hosts that carried the plan out, where that was not this one alone.
    pub agents: Vec<AgentRecord>,
    /// How preload went; `None` where the plan has none.
    pub preload: Option<PreloadResult>,
    /// Were the values read compared with those stored?
    pub values_checked: bool,
    /// The precision that was asked for, with the looks that were taken at it.
    pub convergence: Option<Convergence>,
    /// What is known of this client on this host.
    pub calibration: Lookup,
    /// How the run is to be judged.
    pub judgement: Judgement,
}

impl RunRecord {
    /// Adds the record of another part of the same run, as those of several agents are. Its window is taken to begin at the same instant.
    /// What only one host can say of itself stays that of the first. What servers said is dropped: it is of the load of all parts, in the
    /// window of one.
    ///
    /// # Errors
    /// What the two do not have in common.
    pub fn merge(&mut self, mut other: Self) -> Result<(), &'static str> {
        let clock_shift_ns = self.run.times.measure_ns as i64 - other.run.times.measure_ns as i64;
        let first_worker = self.run.usage.workers.len() as u32;
        let place = HostMapping { clock_shift_ns, first_worker, ..HostMapping::default() };
        other.run.map_host(&place);
        other.run.intervals.map_host(&place);
        self.run.intervals.merge(&other.run.intervals)?;
        self.run.server_records.clear();
        other.run.server_records.clear();
        self.run.merge(other.run);
        self.agents.extend(other.agents);
        Ok(())
    }
}

/// A distribution: what is printed and what it was made from.
#[derive(Clone, Debug, PartialEq)]
pub struct Distribution {
    /// Moments and percentiles.
    pub summary: LatencySummary,
    /// Every value, to a bucket. One that is in several rows is there once.
    pub histogram: Arc<Histogram>,
}

impl Distribution {
    fn of(histogram: Histogram, quantiles: &[Quantile]) -> Self {
        Self { summary: LatencySummary::with(&histogram, quantiles), histogram: Arc::new(histogram) }
    }
}

/// Ops of one row of the report: of one kind, of one class, or of all. Measured ones, which are those that were due in the
/// window, but for what happened in it.
#[derive(Clone, Debug, PartialEq)]
pub struct OpSummary {
    /// What became of the requests.
    pub requests: RequestCounts,
    /// What became of the keys.
    pub keys: KeyCounts,
    /// What happened inside the window, whenever it was due.
    pub in_window: WindowCounts,
    /// Per second of the window.
    pub rate: Rates,
    /// Latencies in nanoseconds.
    pub latency: Latencies<Distribution>,
    /// The client error of every percentile of the response time that is given.
    pub client_error: Vec<ClientError>,
    /// The confidence interval of every percentile of the response time that is given; none where the window is too
    /// short for batches.
    pub intervals: Vec<PercentileInterval>,
    /// Half of the 95 % interval of what is no percentile.
    pub half_widths: HalfWidths,
    /// The share of the slots' time in closed loop for which the client held the next request back; 0 in open loop.
    pub lag_share: f64,
}

/// Half of the 95 % interval of each quantity that is a quotient of sums over batches. In a window that is too short for batches a rate is
/// known as well as a Poisson count is, within four of its standard deviations.
fn half_widths(batches: &[Batch], book: &OpCounts, window: &MeasuredWindow) -> HalfWidths {
    let moments = |batch: &Batch| {
        let moments = batch.response.moments();
        (moments.sum as f64, moments.count as f64)
    };
    let per_second = |batch: &Batch| (batch.completed as f64, (batch.end_ns - batch.start_ns) as f64 / 1e9);
    let completed = book.in_window.completed() as f64;
    let counted = (window.duration_ns() > 0).then(|| 4.0 * completed.sqrt() / window.seconds());
    let faulty = |batch: &Batch| (batch.faulty as f64, (batch.completed + batch.faulty) as f64);
    // Keys asked for are not kept over time; a request asks for as many of them at all times.
    let keys_per_request = book.keys.asked as f64 / book.requests.completed().max(1) as f64;
    let missed = |batch: &Batch| (batch.missed as f64, batch.completed as f64 * keys_per_request);
    HalfWidths {
        mean_ns: half_width_of_quotient(batches.iter().map(moments)),
        rate: half_width_of_quotient(batches.iter().map(per_second)).or(counted),
        hit: half_width_of_quotient(batches.iter().map(missed)),
        errors: half_width_of_quotient(batches.iter().map(faulty)),
    }
}

impl OpSummary {
    pub(crate) fn of(
        book: OpCounts,
        mut totals: RowTotals,
        window: &MeasuredWindow,
        batches: &[Batch],
        quantiles: &[Quantile],
        lag_share: f64,
    ) -> Self {
        let intervals = intervals(batches, quantiles);
        let half_widths = half_widths(batches, &book, window);
        let latency =
            totals.latencies.map(|histogram| Distribution::of(std::mem::take(histogram), quantiles));
        Self {
            requests: book.requests,
            keys: book.keys,
            in_window: book.in_window,
            rate: Rates {
                offered: window.rate(book.requests.offered()),
                sent: window.rate(book.in_window.sent),
                completed: window.rate(book.in_window.completed()),
            },
            client_error: client_errors(&latency.response.summary, &latency.without_client.summary),
            latency,
            intervals,
            half_widths,
            lag_share,
        }
    }

    /// Requests that ended without an answer as the protocol provides, or were never sent: each would have taken longer than any bound.
    pub fn unanswered(&self) -> u64 {
        self.requests.failed() + self.requests.unsent + self.requests.in_flight
    }

    /// Did the client hold requests of a closed loop back for so much of the slots' time that the load that was reached is its own?
    pub fn is_lag_the_load(&self) -> bool {
        self.lag_share > LAG_SHARE_MAX
    }

    /// Response times of completed and of failed ops together: what a user saw who waits for whatever comes.
    pub fn including_failures(&self) -> LatencySummary {
        let Latencies { response, failed, .. } = &self.latency;
        if failed.histogram.count() == 0 {
            return response.summary.clone();
        }
        let mut histogram = Histogram::clone(&response.histogram);
        histogram.merge(&failed.histogram);
        let quantiles: Vec<Quantile> =
            response.summary.percentiles.iter().map(|held| held.quantile).collect();
        LatencySummary::with(&histogram, &quantiles)
    }
}

/// Requests per second of the measured window.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Rates {
    /// Due in the window, but for follow-ups: what the schedule offered.
    pub offered: f64,
    /// Sent inside the window, whenever they were due.
    pub sent: f64,
    /// Completed inside the window, whenever they were due.
    pub completed: f64,
}

impl Rates {
    /// The most of the three: what the client had to be capable of.
    pub fn busiest(&self) -> f64 {
        self.offered.max(self.sent).max(self.completed)
    }
}

/// One op.
#[derive(Clone, Debug, PartialEq)]
pub struct OpRow {
    /// The op.
    pub op: OpId,
    /// What it is called.
    pub name: OpName,
    /// Its numbers.
    pub summary: OpSummary,
}

/// One class.
#[derive(Clone, Debug, PartialEq)]
pub struct ClassSummary {
    /// Its index in the plan.
    pub class: ClassId,
    /// Its name.
    pub name: String,
    /// All its ops.
    pub total: OpSummary,
    /// By op, in the order of its mix.
    pub ops: Vec<OpRow>,
}

/// One phase: ops by intended time, bytes by the time they crossed the wire.
#[derive(Clone, Debug, PartialEq)]
pub struct PhaseSummary {
    /// Which.
    pub phase: Phase,
    /// What became of all its requests and keys.
    pub book: OpCounts,
    /// By class and op; only those that there were.
    pub ops: Vec<CountEntry>,
    /// Bytes on the wire.
    pub bytes: Bytes,
}

/// Everything that a run came to.
#[derive(Clone, Debug)]
pub struct Summary {
    /// What it was built from.
    pub record: RunRecord,
    /// The times.
    pub window: MeasuredWindow,
    /// Whether it was a steady state, and how it began.
    pub steady: Steadiness,
    /// All measured ops.
    pub total: OpSummary,
    /// By kind over all classes, in the order of the first class that has each.
    pub ops: Vec<OpRow>,
    /// By class, in the order of the plan.
    pub classes: Vec<ClassSummary>,
    /// By phase: preload, warmup, measure, drain.
    pub phases: Vec<PhaseSummary>,
    /// The run over time where the plan asks for slices of a certain length, which may be longer than those that were looked at.
    printed_timeline: Option<Timeline>,
    /// Metered quantities, in the order of the plan.
    pub meters: Vec<Meter>,
    /// Connections of the whole run.
    pub connections: ConnectionCounts,
    /// From starting a connection until it was established, over all phases.
    pub connect_time: LatencySummary,
    /// How much of that the handshake of TLS took; empty without TLS.
    pub handshake_time: LatencySummary,
    /// Response times of measured requests by the server that answered; empty where there is one, or too many.
    pub server_responses: Vec<LatencySummary>,
    /// Outages by start.
    pub outages: Vec<Outage>,
    /// What bounds the client's own part in the numbers, beside the requests themselves.
    pub client: Client,
    /// What became of the precision that was asked for; `None` where none was.
    pub looked: Option<UntilResult>,
    /// Our counts beside the servers'; empty where they cannot be compared.
    pub agreement: Vec<StatComparison>,
    /// Should the numbers be believed?
    pub verdict: Verdict,
    /// What the user asserted of them, in the order given.
    pub assertions: Vec<Assertion>,
}

impl Summary {
    /// Merges everything and judges it.
    pub fn build(mut record: RunRecord) -> Self {
        record.run.samples.sort_by_key(|sample| sample.times.intended_ns);
        record.run.fit();
        let RunRecord { plan, run, .. } = &record;
        let (store, window) = (&run.intervals, MeasuredWindow::of(&run.times));
        let steady = Steadiness::of(plan, store, &window);
        let rows = Rows::new(plan, store, &window);
        let total = rows.sum(|_, _| true);
        let ops = rows.by_op(|_| true);
        let classes = class_summaries(plan, &rows);
        let phases = [Phase::Preload, Phase::Warmup, Phase::Measure, Phase::Drain];
        let phases = phases.map(|phase| phase_summary(store, phase)).into();
        let schedule = window.start_ns..window.end_ns;
        let outages = outages(&store.outages.spans, &store.timeline, &schedule);
        let mut evidence = evidence(&record, &window, &total, &classes, &steady);
        evidence.gone = DownServer::all(plan, &outages, &store.servers, &window);
        let workers = &run.usage.workers;
        evidence.outages = MeasuredOutage::all(plan, &outages, &store.servers, &window, workers);
        if !evidence.outages.is_empty() {
            let batch_ns = window.duration_ns() / BATCHES;
            let spans: Vec<_> = evidence.outages.iter().map(|outage| outage.effects(batch_ns)).collect();
            evidence.steady_beside = Steadiness::without(plan, store, &window, &spans);
        }
        let meters = store.meters();
        let mut client = client_of(&record, &window);
        evidence.looked = record.convergence.as_ref().map(|convergence| {
            let checks = verdict::while_running(&evidence);
            convergence.end(&client, (&total, &ops), &checks, &window, run.interrupted)
        });
        let verdict = Verdict::of(&evidence);
        client.is_limit |= Limit::of(&verdict).is_some_and(|limit| limit.bottleneck == Bottleneck::Client);
        let (looked, agreement) = (evidence.looked, evidence.servers.comparisons);
        Self {
            window,
            steady,
            total,
            ops,
            classes,
            phases,
            connections: all_connections(store),
            connect_time: duration(&meters, MeterKind::ConnectTime),
            handshake_time: duration(&meters, MeterKind::HandshakeTime),
            printed_timeline: store
                .timeline
                .is_width_asked()
                .then(|| store.timeline.clone().at_asked_width()),
            server_responses: store.server_responses.iter().map(LatencySummary::of).collect(),
            meters,
            outages,
            client,
            looked,
            agreement,
            verdict,
            assertions: Vec::new(),
            record,
        }
    }

    /// What the workers counted beside their intervals.
    pub fn counts(&self) -> &WorkerCounts {
        &self.record.run.counts
    }

    /// Does a class work on windows of objects?
    pub fn has_windows(&self) -> bool {
        self.record.plan.classes.iter().any(|class| class.popularity.window().is_some())
    }

    /// Datagrams that were of no use, where they carry the bytes.
    pub fn datagrams(&self) -> Option<&DatagramCounts> {
        self.record.plan.uses_transport(Transport::Udp).then_some(&self.counts().datagrams)
    }

    /// What each server did, in the order of the plan, over all phases.
    pub fn servers(&self) -> &[ServerCounts] {
        self.record.run.intervals.servers()
    }

    /// Connections by the phase in which things happened to them; `phase as usize` is the index.
    pub fn connections_by_phase(&self) -> &[ConnectionCounts; Phase::COUNT] {
        self.record.run.intervals.connections()
    }

    /// Spans of trouble that there was no room for, so that outages may be missing.
    pub fn outages_overflow(&self) -> u64 {
        self.record.run.intervals.outages.overflow
    }

    /// Connection faults.
    pub fn faults(&self) -> &FaultTable {
        self.record.run.intervals.faults()
    }

    /// The run over time, as it is printed.
    pub fn timeline(&self) -> &Timeline {
        self.printed_timeline.as_ref().unwrap_or(self.record.run.intervals.timeline())
    }

    /// The same summary beside what is asserted of it.
    pub fn with_assertions(mut self, objectives: &[Objective]) -> Self {
        self.assertions = objectives.iter().map(|objective| Assertion::of(*objective, &self)).collect();
        self
    }

    /// The requests of an op, or all of them; `None` where there is no such op.
    pub fn row(&self, op: Option<OpName>) -> Option<&OpSummary> {
        match op {
            None => Some(&self.total),
            Some(op) => self.ops.iter().find(|row| row.name == op).map(|row| &row.summary),
        }
    }

    /// Does what this check found leave what was asserted as it is? Bounds allow for a late client, so that LAG does where latencies are
    /// asserted and the bounds decide every assertion there is; a strict judgement accepts nothing.
    pub fn decides_beside(&self, id: &str) -> bool {
        let is_decided = |assertion: &Assertion| assertion.decision != Decision::Inconclusive;
        let is_lenient = id == "LAG" && !self.verdict.judgement.is_strict;
        let mut metrics = self.assertions.iter().map(|assertion| assertion.objective.subject.metric);
        is_lenient && metrics.any(|metric| metric.is_latency()) && self.assertions.iter().all(is_decided)
    }

    /// One of the phases; connecting has no ops and is none of them.
    pub fn phase(&self, phase: Phase) -> Option<&PhaseSummary> {
        self.phases.iter().find(|held| held.phase == phase)
    }

    /// The spans that kernel timestamps part a request into, in the order of time; `None` where none were taken.
    pub fn spans(&self) -> Option<[(MeterKind, LatencySummary); 3]> {
        (self.record.plan.timestamps == Timestamps::Kernel)
            .then(|| MeterKind::OF_TIMESTAMPS.map(|kind| (kind, duration(&self.meters, kind))))
    }

    /// Bytes on the wire during the measured window.
    pub fn bytes(&self) -> Bytes {
        self.phase(Phase::Measure).map(|phase| phase.bytes).unwrap_or_default()
    }

    /// The measured window in rows of a table over time: as long as was asked for, or else no shorter than `least_ns` and as
    /// little longer as the slices let them be.
    pub fn intervals(&self, least_ns: u64) -> Vec<TimelinePoint> {
        let MeasuredWindow { measure_ns, end_ns, .. } = self.window;
        let timeline = self.timeline();
        timeline.points(measure_ns..end_ns, timeline.row_ns(measure_ns, least_ns))
    }
}

/// The sum over these (class, op).
type Known = (Vec<(ClassId, OpId)>, OpSummary);

/// Sums over (class, op) of the measured phase.
struct Rows<'a> {
    plan: &'a Plan,
    store: &'a IntervalStore,
    window: &'a MeasuredWindow,
    /// What was summed up before, by the (class, op) that it holds: with one class the total is also the class's, with one
    /// kind of op also the kind's.
    known: RefCell<Vec<Known>>,
}

impl<'a> Rows<'a> {
    fn new(plan: &'a Plan, store: &'a IntervalStore, window: &'a MeasuredWindow) -> Self {
        Self { plan, store, window, known: RefCell::default() }
    }

    /// The row of everything that `of` selects. Counts and histograms cover the same ops: the recorders have a row for
    /// every (class, op) that they measure.
    fn sum(&self, of: impl Fn(ClassId, OpId) -> bool) -> OpSummary {
        let all = self.store.rows().map(|(class, op, _)| (class, op));
        let chosen: Vec<(ClassId, OpId)> = all.filter(|(class, op)| of(*class, *op)).collect();
        if let Some((_, known)) = self.known.borrow().iter().find(|(held, _)| *held == chosen) {
            return known.clone();
        }
        let sum = self.sum_anew(of);
        self.known.borrow_mut().push((chosen, sum.clone()));
        sum
    }

    fn sum_anew(&self, of: impl Fn(ClassId, OpId) -> bool) -> OpSummary {
        let mut totals = RowTotals::default();
        let (mut lag_ns, mut slots_ns) = (0, 0.0);
        for (class, _, row) in self.store.rows().filter(|(class, op, _)| of(*class, *op)) {
            totals.merge(row);
            if let Load::Closed { think } = self.plan.classes[usize::from(class)].load {
                let response = row.latencies.response.moments();
                lag_ns += row.client_lag_ns;
                slots_ns += response.sum as f64 + response.count as f64 * think.0 as f64;
            }
        }
        if !self.plan.has_open_loop() {
            // No request had to queue behind others that a schedule wanted earlier: what the client held is its own part.
            totals.latencies.least.merge(&totals.latencies.without_client);
        }
        let lag_share = if slots_ns > 0.0 { lag_ns as f64 / slots_ns } else { 0.0 };
        let mut book = OpCounts::default();
        let mut in_window = WindowCounts::default();
        for entry in self.store.books.entries().filter(|entry| of(entry.class, entry.op)) {
            in_window.merge(&entry.in_window());
            if entry.phase == Phase::Measure {
                book.merge(&entry.book);
            }
        }
        book.in_window = in_window;
        let batches = batches(&self.store.timeline, self.window, self.window.measure_ns, of);
        OpSummary::of(book, totals, self.window, &batches, &self.plan.quantiles(), lag_share)
    }

    fn by_op(&self, of: impl Fn(ClassId) -> bool) -> Vec<OpRow> {
        let mut ops: Vec<OpId> = Vec::new();
        for (class, op, _) in self.store.rows() {
            if of(class) && !ops.contains(&op) {
                ops.push(op);
            }
        }
        let row = |op| OpRow {
            op,
            name: self.plan.op_name(op),
            summary: self.sum(|class, held| of(class) && held == op),
        };
        ops.into_iter().map(row).collect()
    }
}

fn class_summaries(plan: &Plan, rows: &Rows<'_>) -> Vec<ClassSummary> {
    let classes = plan.classes.iter().enumerate();
    let summary = |(index, class): (usize, &brunt_plan::plan::Class)| ClassSummary {
        class: index as ClassId,
        name: class.name.clone(),
        total: rows.sum(|held, _| usize::from(held) == index),
        ops: rows.by_op(|held| usize::from(held) == index),
    };
    classes.map(summary).collect()
}

fn all_connections(store: &IntervalStore) -> ConnectionCounts {
    let mut sum = ConnectionCounts::default();
    store.connections.iter().for_each(|counts| sum.merge(counts));
    sum
}

/// A meter as a latency: its percentiles follow the same rules.
fn duration(meters: &[Meter], kind: MeterKind) -> LatencySummary {
    let mut histogram = Histogram::new();
    meters
        .iter()
        .filter(|meter| meter.kind == kind)
        .for_each(|meter| histogram.merge_sparse(&meter.histogram));
    LatencySummary::of(&histogram)
}

fn phase_summary(store: &IntervalStore, phase: Phase) -> PhaseSummary {
    let ops: Vec<CountEntry> = store.books.entries().filter(|entry| entry.phase == phase).collect();
    let mut book = OpCounts::default();
    ops.iter().for_each(|entry| book.merge(&entry.book));
    PhaseSummary { phase, book, ops, bytes: store.bytes[phase as usize] }
}

/// What the window would come to if it ended as this one does, while the run goes on: all requests, every kind of op, and
/// the checks that speak against ending it.
pub(crate) fn look_at(
    plan: &Plan,
    store: &IntervalStore,
    window: &MeasuredWindow,
) -> (OpSummary, Vec<OpRow>, Vec<Check>) {
    let steady = Steadiness::of(plan, store, window);
    let rows = Rows::new(plan, store, window);
    let (total, ops) = (rows.sum(|_, _| true), rows.by_op(|_| true));
    let lag_rows = lag_rows(&total, &class_summaries(plan, &rows), is_open(plan));
    let checks = verdict::while_running(&Evidence { lag_rows, steady, ..Evidence::default() });
    (total, ops, checks)
}

/// What bounds the client's own part. A worker without any time left is the limit, whatever else is.
fn client_of(record: &RunRecord, window: &MeasuredWindow) -> Client {
    let RunData { usage, host, .. } = &record.run;
    let is_busy = usage.workers.iter().any(|worker| worker.is_busy());
    // A worker that only looks never has to be woken.
    let wake_up_ns = if usage.wait == Wait::Spin.name() { 0 } else { host.wake_up_ns };
    let stood_ns: u64 = usage.workers.iter().map(|worker| worker.stalls.total_ns).sum();
    let stood_still = stood_ns as f64 / window.duration_ns().max(1) as f64;
    let is_kept = |worker: &WorkerUsage| {
        worker.run_delay_ns.is_some_and(|delay_ns| delay_ns as f64 > RUN_DELAY_MAX * worker.wall_ns as f64)
    };
    let stop_ns = match record.plan.has_open_loop() {
        true => 0,
        false if usage.workers.iter().any(is_kept) => u64::MAX,
        false => usage.workers.iter().map(|worker| worker.stalls.longest_ns).max().unwrap_or(0),
    };
    let has_others = !record.agents.is_empty();
    Client { wake_up_ns, stop_ns, has_others, is_limit: is_busy, stood_still }
}

fn is_open(plan: &Plan) -> impl Fn(ClassId) -> bool + Copy {
    |class| matches!(plan.classes[usize::from(class)].load, Load::Open { .. })
}

/// Gathers what the checks look at.
fn evidence<'a>(
    record: &'a RunRecord,
    window: &MeasuredWindow,
    total: &OpSummary,
    classes: &[ClassSummary],
    steady: &Steadiness,
) -> Evidence<'a> {
    let RunRecord { plan, run, .. } = record;
    let store = &run.intervals;
    let books: Vec<CountEntry> = store.books.entries().collect();
    let is_earlier = record.preload.is_some_and(|preload| preload.is_earlier);
    let is_open = is_open(plan);
    let open_loop = plan.has_open_loop().then(|| {
        let mut open = OpenLoop { scheduled: 0, unsent: 0, given_up: 0 };
        for class in classes.iter().filter(|class| is_open(class.class)) {
            open.scheduled += class.total.requests.offered();
            open.unsent += class.total.requests.unsent;
            open.given_up += class.total.requests.given_up;
        }
        open
    });
    Evidence {
        run: Cow::Borrowed(run),
        asked: asked(record, window, total.requests.offered() + keys_beside(plan, classes)),
        open_loop,
        judgement: record.judgement.clone(),
        last_half: last_half(plan, store, window),
        lag_rows: lag_rows(total, classes, is_open),
        intervals: total.intervals.clone(),
        slices: window.duration_ns() / SLICE_NS,
        looked: None,
        steady: steady.clone(),
        calibration: record.calibration.clone(),
        busiest_rate: total.rate.busiest(),
        sent: total.requests.sent,
        completed: total.requests.completed(),
        unacknowledged: total.requests.outcome(OutcomeClass::Unacknowledged),
        errors: total.requests.outcome(OutcomeClass::Error),
        timeouts: total.requests.outcome(OutcomeClass::Timeout),
        lost: total.requests.outcome(OutcomeClass::Lost),
        given_up: total.requests.given_up,
        gone: Vec::new(),
        outages: Vec::new(),
        steady_beside: Steadiness::default(),
        measure_ns: window.measure_ns,
        window_ns: window.duration_ns(),
        is_fleet: !record.agents.is_empty(),
        servers: server_stats::evidence(plan, is_earlier, &books, &run.server_records, window)
            .without_replicas(run.counts.replicas_missed),
        books,
        connections: all_connections(store),
        faults: fault_evidence(run),
        is_verified: record.values_checked,
        is_verify_asked: plan.verify.is_some(),
        is_by_unix_socket: plan.servers().iter().all(|server| server.transport == Transport::Unix),
        is_by_udp: plan.uses_transport(Transport::Udp),
        is_peer_verified: plan.uses_transport(Transport::Tls).then_some(!plan.tls.is_insecure),
        connects_in_schedule: [Phase::Warmup, Phase::Measure, Phase::Drain]
            .iter()
            .any(|phase| store.connections[*phase as usize].begun > 0),
        in_system: InSystem {
            integral: run.counts.presence.integral as f64,
            sum: run.counts.presence.sum as f64,
            window_ns: window.duration_ns(),
        },
        closed_loops: closed_loops(record, window),
    }
}

fn fault_evidence(run: &RunData) -> FaultEvidence {
    let is_of_schedule = |phase| matches!(phase, Phase::Warmup | Phase::Measure | Phase::Drain);
    let of_schedule = run.intervals.books.entries().filter(|entry| is_of_schedule(entry.phase));
    FaultEvidence {
        table: run.intervals.faults.clone(),
        measure_ns: run.times.measure_ns,
        sent: of_schedule.map(|entry| entry.book.requests.sent).sum(),
    }
}

/// The classes whose slots are always taken. Where connections come and go, or are lost, slots wait for them; a follow-up
/// shares a slot; without a reply there is no response time; and where the run ends by number, or by hand, workers do not
/// end together.
fn closed_loops(record: &RunRecord, window: &MeasuredWindow) -> Vec<ClosedLoop> {
    let RunRecord { plan, run, .. } = record;
    let store = &run.intervals;
    let ends_by_time = plan.stop.time.is_some_and(|time| window.duration_ns() >= time.0);
    let is_disturbed = store.connections.iter().any(|counts| counts.lost > 0) || run.interrupted;
    if !ends_by_time || plan.stop.requests.is_some() || is_disturbed {
        return Vec::new();
    }
    let is_regular =
        |class: &Class| !class.lifetime.is_planned() && !class.noreply && class.on_miss == OnMiss::Ignore;
    let closed = plan.classes.iter().enumerate().filter(|(_, class)| is_regular(class));
    let closed = closed.filter_map(|(index, class)| match class.load {
        Load::Closed { think } => Some((index, class, think.0)),
        Load::Open { .. } => None,
    });
    let of_class = |(index, class, think_ns): (usize, &Class, u64)| {
        let mut held = ClosedLoop {
            class: class.name.clone(),
            slots: plan.in_flight_slots(class),
            think_ns,
            window_ns: window.duration_ns(),
            ..ClosedLoop::default()
        };
        for (_, _, row) in store.rows().filter(|(of, _, _)| usize::from(*of) == index) {
            for histogram in [&row.latencies.response, &row.latencies.failed] {
                let moments = histogram.moments();
                held.ended += moments.count;
                held.response_ns += moments.sum as f64;
                held.longest_ns = held.longest_ns.max(moments.max);
            }
        }
        held
    };
    closed.map(of_class).collect()
}

/// Of multi-gets of windows each key is one of the requests that a plan asks for: how many there were beside the first ones, of those that
/// have ended.
fn keys_beside(plan: &Plan, classes: &[ClassSummary]) -> u64 {
    let has_window =
        |class: &&ClassSummary| plan.classes[usize::from(class.class)].popularity.window().is_some();
    let multigets = classes.iter().filter(has_window).flat_map(|class| &class.ops);
    let beside = |row: &OpRow| {
        let RequestCounts { scheduled, unsent, in_flight, .. } = row.summary.requests;
        row.summary.keys.asked.saturating_sub(scheduled.saturating_sub(unsent + in_flight))
    };
    multigets.filter(|row| row.op.kind() == OpKind::Mget).map(beside).sum()
}

/// The number of requests that the plan asks for, and how many of them there were.
fn asked(record: &RunRecord, window: &MeasuredWindow, issued: u64) -> Option<RequestTarget> {
    let stop = &record.plan.stop;
    let requests = stop.requests.filter(|_| !record.run.interrupted)?;
    Some(RequestTarget {
        requests,
        issued,
        is_time_up: stop.time.is_some_and(|time| window.duration_ns() >= time.0),
        connections_end: record.plan.classes.iter().any(|class| class.lifetime.total.is_some()),
    })
}

fn last_half(plan: &Plan, store: &IntervalStore, window: &MeasuredWindow) -> Option<LastHalf> {
    let is_offered = |class: &Class| matches!(&class.load, Load::Open { rate, .. } if rate.is_known());
    if !plan.classes.iter().any(is_offered) || window.duration_ns() == 0 {
        return None;
    }
    let half_ns = window.measure_ns + window.duration_ns() / 2;
    let seconds = (window.end_ns - half_ns) as f64 / 1e9;
    let (from_ns, to_ns) = (half_ns - window.measure_ns, window.duration_ns());
    let offered: f64 = plan
        .classes
        .iter()
        .map(|class| match &class.load {
            Load::Open { rate, .. } => rate.requests_between(from_ns, to_ns),
            Load::Closed { .. } => 0.0,
        })
        .sum();
    let of_class = |class: ClassId| is_offered(&plan.classes[usize::from(class)]);
    let answered = store.timeline.answered_within(half_ns..window.end_ns, window.end_ns, of_class);
    Some(LastHalf { offered, answered, seconds })
}

/// Every row that a report prints: the total, and where there are several the classes and their ops.
fn lag_rows(total: &OpSummary, classes: &[ClassSummary], is_open: impl Fn(ClassId) -> bool) -> Vec<LagRow> {
    let row = |name: String, is_closed_loop: bool, summary: &OpSummary| LagRow {
        name,
        is_closed_loop,
        errors: summary.client_error.clone(),
        intervals: summary.intervals.clone(),
        unanswered: summary.unanswered() as f64 / summary.requests.scheduled.max(1) as f64,
    };
    let any_closed = classes.iter().any(|class| !is_open(class.class));
    let mut rows = vec![row("all requests".to_owned(), any_closed, total)];
    for class in classes {
        let is_closed = !is_open(class.class);
        let within = if classes.len() > 1 { format!(" of class '{}'", class.name) } else { String::new() };
        if classes.len() > 1 {
            rows.push(row(format!("all requests{within}"), is_closed, &class.total));
        }
        rows.extend(class.ops.iter().map(|op| row(format!("{}{within}", op.name), is_closed, &op.summary)));
    }
    rows
}

#[cfg(test)]
mod tests;
