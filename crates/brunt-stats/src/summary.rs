//! Everything that a run came to, merged, as data for every report.
//!
//! Not text: reports turn it into that. Built once, from what the control thread kept, and never changed. Invariants:
//! percentiles come from merged histograms, rates from counts of what happened inside the measured window, and the embedded plan with
//! its seeds repeats the run.

use crate::assertion::Assertion;
use crate::backlog::Backlog;
use crate::bottleneck::{Limit, LimitFacts};
use crate::bound::Client;
use crate::change_point::Steadiness;
use crate::confidence::BATCHES;
use crate::connection::{ConnectionCounts, FaultTable};
use crate::convergence::UntilResult;
use crate::histogram::Histogram;
use crate::interval::Bytes;
use crate::latency::LatencySummary;
use crate::meter::Meter;
use crate::op_summary::{ClassSummary, OpRow, OpSummary, RowSums, class_summaries};
use crate::outage::{self, Outage, outages};
use crate::request_counts::{CountEntry, OpCounts};
use crate::run_record::RunRecord;
use crate::server::ServerCounts;
use crate::server_evidence::{ServerEvidence, StatComparison};
use crate::slowest::Slowest;
use crate::stack_delay::ClientBasis;
use crate::status::{Facts, RunStatus};
use crate::store::IntervalStore;
use crate::timeline::{Timeline, TimelinePoint};
use crate::usage::{ClientTime, StallCounts, WorkerUsage};
use crate::window::RunTimes;
use crate::worker_counts::{DatagramCounts, WorkerCounts};
use brunt_plan::objective::Objective;
use brunt_plan::op::OpName;
use brunt_plan::phase::Phase;
use brunt_plan::plan::{MeterKind, Timestamps, Transport};
use std::ops::Range;

/// Where a worker was ready to run and did not for more than this share of the window, how long replies of a closed loop lay unread is not known.
const RUN_DELAY_MAX: f64 = 0.05;

/// One phase: ops by intended time, bytes by the time they crossed the wire.
#[derive(Clone, Debug, PartialEq)]
pub struct PhaseSummary {
    /// Which.
    pub phase: Phase,
    /// What became of all its requests and keys.
    pub counts: OpCounts,
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
    pub window: RunTimes,
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
    pub until: Option<UntilResult>,
    /// Our counts beside the servers'; empty where they cannot be compared.
    pub agreement: Vec<StatComparison>,
    /// May the numbers be quoted?
    pub status: RunStatus,
    /// What the user asserted of them, in the order given.
    pub assertions: Vec<Assertion>,
}

impl Summary {
    /// Merges everything and judges it.
    pub fn build(mut record: RunRecord) -> Self {
        record.run.samples.sort_by_key(|sample| sample.times.intended_ns);
        record.run.fit();
        Self::judged(record, true)
    }

    /// Merges what a run has come to that goes on.
    pub(crate) fn so_far(record: RunRecord) -> Self {
        Self::judged(record, false)
    }

    fn judged(record: RunRecord, is_over: bool) -> Self {
        let RunRecord { plan, run, .. } = &record;
        let (store, window) = (&run.intervals, run.times);
        let rows = RowSums::new(plan, store, &window, run.unread_ns(plan.has_open_loop()));
        let total = rows.sum(|_, _| true);
        let ops = rows.by_op(|_| true);
        let classes = class_summaries(plan, &rows);
        let phases = [Phase::Preload, Phase::Warmup, Phase::Measure, Phase::Drain];
        let phases = phases.map(|phase| phase_summary(store, phase)).into();
        let outages =
            outages(&store.totals.outages.spans, &store.totals.timeline, &(window.start_ns..window.end_ns));
        let own = outage::of_servers(&outages, store.totals.servers.len(), &window, &run.usage.workers);
        let own: Vec<&Outage> = own.collect();
        // What was due in one is answered up to a batch later.
        let batch_ns = window.duration_ns() / BATCHES;
        let effects = |outage: &&Outage| {
            let Range { start, end } = outage.disturbed(&window);
            start..end + batch_ns
        };
        let left_out: Vec<_> = own.iter().map(effects).collect();
        let steady = Steadiness::of(plan, store, &window, &left_out);
        let client = client_of(&record);
        let until = record
            .convergence
            .as_ref()
            .map(|convergence| convergence.end(plan, (&total, &ops), &steady, &window, run.interrupted));
        let mut backlogs = Backlog::of(plan, store, &window);
        backlogs.extend(Backlog::of_agents(&record.agents, &run.usage.workers, &window));
        let facts = LimitFacts::of(&record, &window, &total);
        let has_limit =
            is_over && (Backlog::is_overload(&backlogs) || !plan.has_open_loop() && facts.is_known());
        let limit = has_limit.then(|| Limit::of(&facts));
        let servers = ServerEvidence::of(&record, &window);
        let status = RunStatus::of(&Facts {
            record: &record,
            window: &window,
            total: &total,
            classes: &classes,
            steady: &steady,
            outages: &own,
            servers: &servers,
            until: until.as_ref(),
            backlogs,
            asked: plan.asked_quantiles(),
            limit,
            is_over,
        });
        Self {
            window,
            steady,
            total,
            ops,
            classes,
            phases,
            connections: store.all_connections(),
            connect_time: LatencySummary::of(&store.meter(MeterKind::ConnectTime)),
            handshake_time: LatencySummary::of(&store.meter(MeterKind::HandshakeTime)),
            server_responses: store.totals.server_responses.iter().map(LatencySummary::of).collect(),
            meters: store.meters(),
            outages,
            client,
            until,
            agreement: servers.comparisons,
            status,
            assertions: Vec::new(),
            record,
        }
    }

    /// What the client errors rest on.
    pub fn client_basis(&self) -> ClientBasis {
        match self.total.stack_delay.samples() {
            0 if self.record.run.usage.counts_wake_ups => ClientBasis::Clock,
            0 => ClientBasis::Incomplete,
            _ => ClientBasis::Timestamps,
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

    /// The outages that are the servers' own and in which one of them did not answer, by start: those of which checks speak.
    pub fn server_outages(&self) -> impl Iterator<Item = &Outage> {
        let workers = &self.record.run.usage.workers;
        let own = outage::of_servers(&self.outages, self.servers().len(), &self.window, workers);
        own.filter(|outage| !outage.kinds.are_errors_alone())
    }

    /// Where the slowest 1 % of the completed requests spent their time; `None` with fewer than 1 000.
    pub fn slowest(&self) -> Option<Slowest> {
        let outages = self.server_outages().map(|outage| outage.span(&self.window));
        let stop = StallCounts::longest_of(&self.record.run.usage.workers)
            .map(|worker| worker.stalls.longest_span(self.window.measure_ns));
        let store = &self.record.run.intervals;
        let response = &self.total.latency.response.histogram;
        Slowest::of(response, &store.totals.part_sums, &store.totals.timeline, outages.chain(stop).collect())
    }

    /// Outage spans beyond the capacity, so that outages may be missing.
    pub fn outages_overflow(&self) -> u64 {
        self.record.run.intervals.totals.outages.overflow
    }

    /// Connection faults.
    pub fn faults(&self) -> &FaultTable {
        self.record.run.intervals.faults()
    }

    /// The run over time.
    pub fn timeline(&self) -> &Timeline {
        self.record.run.intervals.timeline()
    }

    /// Adds the results of assertions.
    pub fn with_assertions(mut self, objectives: &[Objective]) -> Self {
        self.assertions = objectives
            .iter()
            .map(|objective| {
                Assertion::of(
                    *objective,
                    self.row(objective.subject.op),
                    &self.client,
                    self.window.drained_ns.saturating_sub(self.window.end_ns),
                    self.record.plan.has_open_loop(),
                )
            })
            .collect();
        self
    }

    /// The requests of an op, or all of them; `None` where there is no such op.
    pub fn row(&self, op: Option<OpName>) -> Option<&OpSummary> {
        match op {
            None => Some(&self.total),
            Some(op) => self.ops.iter().find(|row| row.name == op).map(|row| &row.summary),
        }
    }

    /// One of the phases; connecting has no ops and is none of them.
    pub fn phase(&self, phase: Phase) -> Option<&PhaseSummary> {
        self.phases.iter().find(|held| held.phase == phase)
    }

    /// The spans that kernel timestamps part a request into, in the order of time; `None` where none were taken.
    pub fn spans(&self) -> Option<[(MeterKind, LatencySummary); 3]> {
        (self.record.plan.timestamps == Timestamps::Kernel || self.counts().stamps.matched > 0).then(|| {
            MeterKind::SPANS.map(|kind| (kind, LatencySummary::of(&self.record.run.intervals.meter(kind))))
        })
    }

    /// Bytes on the wire during the measured window.
    pub fn bytes(&self) -> Bytes {
        self.phase(Phase::Measure).map(|phase| phase.bytes).unwrap_or_default()
    }

    /// The measured window in rows of a table over time: as long as was asked for, or else no shorter than `least_ns` and as
    /// little longer as the slices let them be.
    pub fn intervals(&self, least_ns: u64) -> Vec<TimelinePoint> {
        let RunTimes { measure_ns, end_ns, .. } = self.window;
        let timeline = self.timeline();
        timeline.points(measure_ns..end_ns, timeline.row_ns(measure_ns, least_ns))
    }

    /// The rows of the warm-up, counted from its beginning as those of a run that goes on are, and those of the window. Each has the span of
    /// time that its slices begin in.
    pub fn rows(&self, least_ns: u64) -> impl Iterator<Item = (Phase, Range<u64>, TimelinePoint)> + '_ {
        let RunTimes { start_ns, measure_ns, .. } = self.window;
        let timeline = self.timeline();
        let width_ns = timeline.row_ns(start_ns, least_ns);
        let mut sum = Histogram::new();
        let warmup = (start_ns..measure_ns).step_by(width_ns as usize).map(move |at_ns| {
            // The slice that the schedule begins in may begin before it.
            let from_ns = if at_ns == start_ns { timeline.cell_of(at_ns) } else { at_ns };
            let span = from_ns..measure_ns.min(at_ns + width_ns);
            let point = timeline.point(span.clone(), &mut sum);
            (Phase::Warmup, span, TimelinePoint { start_ns: at_ns, ..point })
        });
        let window = self.intervals(least_ns).into_iter();
        warmup.chain(window.map(|point| (Phase::Measure, point.start_ns..point.end_ns, point)))
    }

    /// What the client did in the measured window, as far as workers have told.
    pub fn client_time(&self) -> ClientTime {
        let RunTimes { measure_ns, end_ns, .. } = self.window;
        self.timeline().client_time(measure_ns..end_ns)
    }
}

fn phase_summary(store: &IntervalStore, phase: Phase) -> PhaseSummary {
    let ops: Vec<CountEntry> = store.request_counts.entries().filter(|entry| entry.phase == phase).collect();
    let mut counts = OpCounts::default();
    ops.iter().for_each(|entry| counts.merge(&entry.counts));
    PhaseSummary { phase, counts, ops, bytes: store.totals.bytes[phase as usize] }
}

/// What bounds the client's own part.
fn client_of(record: &RunRecord) -> Client {
    let usage = &record.run.usage;
    let is_kept = |worker: &WorkerUsage| {
        worker.run_delay_ns.is_some_and(|delay_ns| delay_ns as f64 > RUN_DELAY_MAX * worker.wall_ns as f64)
    };
    let stop_ns = match record.plan.has_open_loop() {
        true => 0,
        false if usage.workers.iter().any(is_kept) => u64::MAX,
        false => usage.workers.iter().map(|worker| worker.stalls.longest_ns).max().unwrap_or(0),
    };
    let has_others = !record.agents.is_empty();
    Client { stop_ns, has_others }
}

#[cfg(test)]
pub(crate) mod tests;
