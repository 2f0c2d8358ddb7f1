//! What one worker records into: counts of requests, histograms, counters, meters, all preallocated.
//!
//! Not shared and not merged here. A worker owns two sets: it records into one while the control thread takes an
//! [`Interval`] out of the other and hands it back. Recording an op is a handful of plain integer additions; it
//! allocates nothing, reads no clock and never fails. Invariant: what was recorded is in exactly one interval.

use crate::connection::{ConnectionCounts, ConnectionEvent, FaultKind, FaultTable};
use crate::histogram::{RecordingHistogram, RecordingPartSums};
use crate::interval::{Bytes, Interval, IntervalRow, Latencies};
use crate::meter::MeterRecorder;
use crate::request_counts::{CountEntry, CountTable, OpCounts, is_failed};
use crate::sample::{Sample, Times};
use crate::server::{OutageSpan, OutageSpans, ServerCounts};
use crate::verification::{ObjectFault, ObjectFaults};
use crate::window::WindowEdges;
use brunt_plan::op::{ClassId, Op, OpId};
use brunt_plan::phase::Phase;
use brunt_plan::plan::{Class, MeterKind, Plan, Timestamps, Transport};
use brunt_plan::warmup::Warmup;

/// What a set needs room for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Layout {
    /// For every class the ops that it measures: those of its mix and their follow-ups.
    pub ops: Vec<Vec<OpId>>,
    /// How many commands of the user's own the plan has.
    pub commands: usize,
    /// The metered quantities, each once.
    pub meters: Vec<MeterKind>,
    /// How many of these, from the front, the plan asks for: only they have their logarithms summed, which costs more than
    /// all the rest of a meter.
    pub meters_asked: usize,
    /// How many servers there are; at least 1.
    pub servers: usize,
    /// The response times of the warm-up are recorded, too, of all classes and ops together: `--warmup auto` waits until they
    /// are level.
    pub records_warmup: bool,
}

/// Metered in every run: the first is part of what a connection costs, the second bounds how evenly requests can be
/// spaced. The report states both, the second where sends are calls of their own.
const ALWAYS_METERED: [MeterKind; 2] = [MeterKind::ConnectTime, MeterKind::SendCost];

/// Largest number of servers with response times of their own: each takes a histogram in both sets of every worker.
const SERVERS_TIMED_MAX: usize = 64;

impl Layout {
    /// The layout of a plan's recorders.
    pub fn of(plan: &Plan) -> Self {
        let mut meters = plan.meters.clone();
        let of_timestamps = MeterKind::OF_TIMESTAMPS.iter().filter(|_| plan.timestamps != Timestamps::Off);
        let of_tls = [MeterKind::HandshakeTime];
        let of_tls = of_tls.iter().filter(|_| plan.uses_transport(Transport::Tls));
        let always = ALWAYS_METERED.iter().chain(of_tls).chain(of_timestamps);
        meters.extend(always.filter(|kind| !plan.meters.contains(kind)));
        Self {
            ops: plan.classes.iter().map(Class::ops).collect(),
            commands: plan.commands.len(),
            meters,
            meters_asked: plan.meters.len(),
            servers: plan.server_count(),
            records_warmup: plan.warmup == Warmup::Auto,
        }
    }

    /// Checks that a recorder of this layout can have counted these.
    ///
    /// # Errors
    /// What there is that the layout does not have.
    pub(crate) fn check(
        &self,
        counts: &[CountEntry],
        servers: &[ServerCounts],
        outages: &OutageSpans,
        server_responses: usize,
        meters: impl Iterator<Item = MeterKind>,
    ) -> Result<(), &'static str> {
        // Every kind is counted, in the mix or not.
        let is_counted = |entry: &CountEntry| {
            usize::from(entry.class) < self.ops.len() && entry.op.index() < OpId::count(self.commands)
        };
        if !counts.iter().all(is_counted) {
            return Err("counts of a class or a command that does not exist");
        }
        let has_server = |span: &OutageSpan| usize::from(span.server) < self.servers;
        if servers.len() != self.servers || !outages.spans.iter().all(has_server) {
            return Err("counts of servers that there are not");
        }
        if server_responses != self.servers_timed() {
            return Err("response times of servers that are not told apart");
        }
        let is_same = meters.eq(self.meters.iter().copied());
        is_same.then_some(()).ok_or("other meters than those of the plan")
    }

    /// Of how many servers the response times are told apart: of all, or of none.
    pub fn servers_timed(&self) -> usize {
        if (2..=SERVERS_TIMED_MAX).contains(&self.servers) { self.servers } else { 0 }
    }

    /// Every (class, op) that has histograms, in order.
    pub fn rows(&self) -> impl Iterator<Item = (ClassId, OpId)> + '_ {
        let of_class = |(class, ops): (usize, &Vec<OpId>)| {
            ops.iter().map(move |op| (class as ClassId, *op)).collect::<Vec<_>>()
        };
        self.ops.iter().enumerate().flat_map(of_class)
    }
}

impl Interval {
    /// Could a recorder of this layout have made it? What comes from another host is asked before it is added up.
    ///
    /// # Errors
    /// What it has that the layout does not.
    pub fn check(&self, layout: &Layout) -> Result<(), &'static str> {
        if self.start_ns > self.end_ns {
            return Err("an interval that ends before it begins");
        }
        if !self.rows.iter().all(|row| layout.rows().any(|known| known == (row.class, row.op))) {
            return Err("latencies of an operation that is not measured");
        }
        let meters = self.meters.iter().map(|meter| meter.kind);
        layout.check(&self.request_counts, &self.servers, &self.outages, self.server_responses.len(), meters)
    }
}

/// For every (class, op) its place among the rows of a [`Layout`].
#[derive(Clone, Debug)]
pub(crate) struct RowIndex {
    /// By class, then op.
    rows: Vec<u16>,
    /// How many ops a plan with these commands can have.
    ops: usize,
}

impl RowIndex {
    const NONE: u16 = u16::MAX;

    pub(crate) fn new(layout: &Layout) -> Self {
        let ops = OpId::count(layout.commands);
        let mut rows = vec![Self::NONE; layout.ops.len() * ops];
        for (row, (class, op)) in layout.rows().enumerate() {
            rows[usize::from(class) * ops + op.index()] = row as u16;
        }
        Self { rows, ops }
    }

    /// The row of a (class, op). Panics when the layout has none: the engine measures what the plan does not hold.
    #[inline]
    pub(crate) fn row(&self, class: ClassId, op: OpId) -> usize {
        let row = self.rows[usize::from(class) * self.ops + op.index()];
        assert!(row != Self::NONE, "class {class} has no histograms for {op}");
        usize::from(row)
    }
}

/// The histograms of one (class, op).
///
/// This, and all else here that is written per op, begins and ends with cache lines of its own: the sets of all workers are
/// made on one thread, one behind the other. Two lines each, because processors fetch them in pairs.
#[derive(Debug, Default)]
#[repr(align(128))]
struct Row {
    latencies: Latencies<RecordingHistogram>,
    /// The client lags of completed ops together.
    client_lag_ns: u64,
}

impl Row {
    /// Records several ops that have ended alike.
    fn record_many(&mut self, sample: &Sample, count: u32, part_sums: &mut RecordingPartSums) {
        self.record_with(sample, count, part_sums, |histogram, value| histogram.record_many(value, count));
    }

    /// Records `count` ops that have ended alike; `record` adds a value to a histogram, and says which bucket it lies in.
    #[inline(always)]
    fn record_with(
        &mut self,
        sample: &Sample,
        count: u32,
        part_sums: &mut RecordingPartSums,
        record: impl Fn(&mut RecordingHistogram, u64) -> usize,
    ) {
        let (class, times) = (sample.outcome.class, &sample.times);
        if class.is_completed() {
            self.client_lag_ns += times.client_lag_ns() * u64::from(count);
            let bucket = record(&mut self.latencies.response, times.response_ns());
            part_sums.add(bucket, times, count);
            record(&mut self.latencies.service, times.service_ns());
            record(&mut self.latencies.send_lag, times.send_lag_ns());
            record(&mut self.latencies.without_client, times.response_without_client_ns());
            if let Some(busy_lag_ns) = sample.busy_lag_ns {
                record(&mut self.latencies.least, times.least_response_ns(busy_lag_ns));
            }
        } else if is_failed(class) {
            record(&mut self.latencies.failed, times.response_ns());
            record(&mut self.latencies.least, times.least_response_ns(sample.busy_lag_ns.unwrap_or(0)));
        }
    }
}

/// Where an op is recorded: its counts and, if it is measured, its histograms. Good for both sets of a worker, so that it is
/// looked up once in the life of an op.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RowHandle {
    counts: u32,
    /// [`RowHandle::UNMEASURED`] outside the measured phase, which alone has histograms.
    row: u32,
}

impl RowHandle {
    const UNMEASURED: u32 = u32::MAX;
    /// That of nothing: whatever is recorded there is refused.
    pub const UNUSED: Self = Self { counts: u32::MAX, row: Self::UNMEASURED };

    /// Does the intended time of its ops lie in the measured window?
    #[inline]
    pub fn is_measured(self) -> bool {
        self.row != Self::UNMEASURED
    }
}

/// What a worker counts of one server.
#[derive(Clone, Debug, Default)]
#[repr(align(128))]
struct ServerRow(ServerCounts);

/// One of a worker's two sets.
#[derive(Debug)]
#[repr(align(128))]
pub struct RecorderSet {
    window: WindowEdges,
    layout: Layout,
    row_index: RowIndex,
    rows: Vec<Row>,
    part_sums: RecordingPartSums,
    /// Response times of completed ops of the warm-up, where they are recorded.
    warmup: Option<Box<RecordingHistogram>>,
    request_counts: CountTable,
    bytes: [Bytes; Phase::COUNT],
    connections: [ConnectionCounts; Phase::COUNT],
    faults: FaultTable,
    servers: Vec<ServerRow>,
    /// Response times by server, where they are told apart.
    server_responses: Vec<RecordingHistogram>,
    outages: OutageSpans,
    object_faults: ObjectFaults,
    meters: Vec<MeterRecorder>,
    meter_index: [u8; MeterKind::COUNT],
}

impl RecorderSet {
    /// Takes all the memory it will ever need: 396 KiB per (class, op) of the layout, 66 KiB per meter and per server
    /// that is timed.
    /// Boxed, because sets travel between threads.
    pub fn new(layout: &Layout) -> Box<Self> {
        let mut meter_index = [u8::MAX; MeterKind::COUNT];
        for (index, kind) in layout.meters.iter().enumerate() {
            meter_index[*kind as usize] = index as u8;
        }
        Box::new(Self {
            window: WindowEdges::UNKNOWN,
            layout: layout.clone(),
            row_index: RowIndex::new(layout),
            rows: layout.rows().map(|_| Row::default()).collect(),
            part_sums: RecordingPartSums::default(),
            warmup: layout.records_warmup.then(Box::default),
            request_counts: CountTable::new(layout.ops.len(), layout.commands),
            bytes: [Bytes::default(); Phase::COUNT],
            connections: [ConnectionCounts::default(); Phase::COUNT],
            faults: FaultTable::new(),
            servers: vec![ServerRow::default(); layout.servers],
            server_responses: (0..layout.servers_timed()).map(|_| RecordingHistogram::default()).collect(),
            outages: OutageSpans::with_room(),
            object_faults: ObjectFaults::with_room(),
            meters: layout
                .meters
                .iter()
                .enumerate()
                .map(|(index, kind)| MeterRecorder::new(*kind, index < layout.meters_asked))
                .collect(),
            meter_index,
        })
    }

    /// Where the measured window begins and ends: what is sent or ends inside it counts into its rates. To be set on both
    /// sets of a worker as soon as it is known, and again when it is to end earlier: not before anything that was recorded.
    pub fn set_window(&mut self, measure_ns: u64, end_ns: u64) {
        self.window = WindowEdges::new(measure_ns, end_ns);
    }

    /// Where such an op of this class is recorded. The phase, here and below, is the one that the intended time lies in.
    #[inline]
    pub fn row_handle(&self, phase: Phase, class: ClassId, op: OpId) -> RowHandle {
        let row = match phase {
            Phase::Measure => self.row_index.row(class, op) as u32,
            _ => RowHandle::UNMEASURED,
        };
        RowHandle { counts: self.request_counts.index(phase, class, op) as u32, row }
    }

    /// An op became due.
    #[inline]
    pub fn scheduled(&mut self, phase: Phase, op: &Op) {
        self.request_counts.get_mut(phase, op.class, op.id()).requests.scheduled += 1;
    }

    /// Several of the same handle became due.
    #[inline]
    pub fn scheduled_many(&mut self, handle: RowHandle, count: u32) {
        self.request_counts.at_mut(handle.counts).requests.scheduled += u64::from(count);
    }

    /// A follow-up op became due. Counts as scheduled, too.
    #[inline]
    pub fn followup(&mut self, phase: Phase, op: &Op) {
        let counts = &mut self.request_counts.get_mut(phase, op.class, op.id()).requests;
        counts.scheduled += 1;
        counts.followup += 1;
    }

    /// The last byte of an op, which was `wire_requests` commands, was written.
    #[inline]
    pub fn sent(&mut self, phase: Phase, op: &Op, wire_requests: u32, at_ns: u64) {
        self.sent_many(self.row_handle(phase, op.class, op.id()), 1, wire_requests, at_ns);
    }

    /// `count` ops of one row were handed over, as `wire_requests` commands on the wire.
    #[inline]
    pub fn sent_many(&mut self, handle: RowHandle, count: u32, wire_requests: u32, at_ns: u64) {
        let counts = self.request_counts.at_mut(handle.counts);
        counts.requests.sent += u64::from(count);
        counts.requests.wire_requests += u64::from(wire_requests);
        if self.window.is_out_of_phase(handle.is_measured(), at_ns) {
            self.sent_out_of_phase(handle, count, at_ns);
        }
    }

    /// Counts sent ops that were due in the window and are sent after it, or were due outside it and are not sent before it.
    #[cold]
    fn sent_out_of_phase(&mut self, handle: RowHandle, count: u32, at_ns: u64) {
        if handle.is_measured() || self.window.holds(at_ns) {
            self.request_counts.at_mut(handle.counts).in_window.sent += u64::from(count);
        }
    }

    /// The run is over at `times.done_ns`, and an op that was due will never be sent. `busy_lag_ns` as in a [`Sample`].
    pub fn unsent(&mut self, phase: Phase, op: &Op, times: &Times, busy_lag_ns: Option<u64>) {
        let counts = self.request_counts.get_mut(phase, op.class, op.id());
        counts.requests.unsent += 1;
        counts.requests.unsent_client += u64::from(times.is_clients(busy_lag_ns.unwrap_or(0)));
        self.window.note(&mut counts.in_window, phase, [times.intended_ns, u64::MAX, u64::MAX], 1);
    }

    /// An op that was due is given up at `times.done_ns`, because its server does not answer: it will never be sent.
    pub fn abandoned(&mut self, phase: Phase, op: &Op, times: &Times) {
        let counts = self.request_counts.get_mut(phase, op.class, op.id());
        counts.requests.unsent += 1;
        counts.requests.abandoned += 1;
        counts.in_window.abandoned += u64::from(self.window.holds(times.done_ns));
        let instants = [times.intended_ns, times.done_ns, times.done_ns];
        self.window.note(&mut counts.in_window, phase, instants, 1);
        if phase == Phase::Measure {
            let latencies = &mut self.rows[self.row_index.row(op.class, op.id())].latencies;
            latencies.failed.record(times.response_ns());
            // It was never sent, so that no lateness of others can have held it up in the server.
            latencies.least.record(times.response_without_client_ns());
        }
    }

    /// The run is over, and an op that was sent at `sent_ns` has not ended.
    pub fn in_flight(&mut self, phase: Phase, op: &Op, intended_ns: u64, sent_ns: u64) {
        let counts = self.request_counts.get_mut(phase, op.class, op.id());
        counts.requests.in_flight += 1;
        self.window.note(&mut counts.in_window, phase, [intended_ns, sent_ns, u64::MAX], 1);
    }

    /// An op has ended. Counts it; in the measured phase its latencies go into the histograms. `asked` is how many keys
    /// it asked for and `hits` how many of them the reply held; both matter for retrievals only.
    pub fn record(&mut self, phase: Phase, sample: &Sample, asked: u32, hits: u32) {
        self.record_many(self.row_handle(phase, sample.class, sample.op), sample, asked, hits, 1);
    }

    /// Several ops of one handle have ended alike: each as `sample` says.
    #[inline(always)]
    pub fn record_many(&mut self, handle: RowHandle, sample: &Sample, asked: u32, hits: u32, count: u32) {
        if count == 1 {
            if self.window.is_out_of_phase(handle.is_measured(), sample.times.done_ns) {
                self.record_out_of_phase(handle, sample, asked, hits, 1);
            }
            self.request_counts.at_mut(handle.counts).record_many(sample.op, sample.outcome, asked, hits, 1);
            if let Some(row) = self.rows.get_mut(handle.row as usize) {
                row.record_with(sample, 1, &mut self.part_sums, RecordingHistogram::record);
            } else if self.warmup.is_some() {
                self.record_warmup(handle, sample, 1);
            }
        } else {
            self.record_together(handle, sample, asked, hits, count);
        }
    }

    fn record_together(&mut self, handle: RowHandle, sample: &Sample, asked: u32, hits: u32, count: u32) {
        if self.window.is_out_of_phase(handle.is_measured(), sample.times.done_ns) {
            self.record_out_of_phase(handle, sample, asked, hits, count);
        }
        self.request_counts.at_mut(handle.counts).record_many(sample.op, sample.outcome, asked, hits, count);
        if let Some(row) = self.rows.get_mut(handle.row as usize) {
            row.record_many(sample, count, &mut self.part_sums);
        } else if self.warmup.is_some() {
            self.record_warmup(handle, sample, count);
        }
    }

    /// Of an op outside the measured window.
    #[cold]
    fn record_warmup(&mut self, handle: RowHandle, sample: &Sample, count: u32) {
        if let Some(warmup) = &mut self.warmup
            && self.request_counts.phase_of(handle.counts) == Phase::Warmup
            && sample.outcome.class.is_completed()
        {
            warmup.record_many(sample.times.response_ns(), count);
        }
    }

    /// Counts for the window ops that were due in it and have ended behind it, or were due elsewhere and have not ended
    /// before it.
    #[cold]
    fn record_out_of_phase(&mut self, handle: RowHandle, sample: &Sample, asked: u32, hits: u32, count: u32) {
        let Times { intended_ns, sent_ns, done_ns, .. } = sample.times;
        let phase = self.request_counts.phase_of(handle.counts);
        let counts = &mut self.request_counts.at_mut(handle.counts).in_window;
        if handle.is_measured() || self.window.holds(done_ns) {
            counts.outcomes[sample.outcome.class as usize] += u64::from(count);
            if sample.op.is_retrieval() && sample.outcome.class.is_completed() {
                counts.missed += u64::from(asked.saturating_sub(hits)) * u64::from(count);
            }
        }
        self.window.note(counts, phase, [intended_ns, sent_ns, done_ns], count);
    }

    /// Bytes were written to a connection. The phase, here and below, is the worker's own at that instant.
    #[inline]
    pub fn transmitted(&mut self, phase: Phase, bytes: u64) {
        self.bytes[phase as usize].tx += bytes;
    }

    /// Bytes were read from a connection.
    #[inline]
    pub fn received(&mut self, phase: Phase, bytes: u64) {
        self.bytes[phase as usize].rx += bytes;
    }

    /// Something happened to a connection.
    pub fn connection(&mut self, phase: Phase, event: ConnectionEvent) {
        self.connections[phase as usize].record(event);
    }

    /// What is counted of a server. `server` is its index in the plan, here and below.
    #[inline]
    pub fn server(&mut self, server: u16) -> &mut ServerCounts {
        &mut self.servers[usize::from(server)].0
    }

    /// Requests to a server, or parts of them, were answered `response_ns` after they were due. Only measured ones have times.
    #[inline]
    pub fn responded(&mut self, server: u16, handle: RowHandle, response_ns: u64, times: u32) {
        if let Some(histogram) = self.server_responses.get_mut(usize::from(server))
            && handle.is_measured()
        {
            histogram.record_many(response_ns, times);
        }
    }

    /// An object of a window is not as it was to be: with the bytes of its key, of the value expected and of the value received, each in
    /// pieces. What there is no room for is counted.
    #[cold]
    pub fn object_fault(&mut self, fault: &ObjectFault, pieces: [&[&[u8]]; 3]) {
        self.object_faults.note(fault, pieces);
    }

    /// An outage span has ended, or the run. Spans beyond the capacity are counted.
    pub fn outage(&mut self, span: OutageSpan) {
        self.outages.note(span);
    }

    /// Something went wrong with a connection.
    pub fn fault(&mut self, phase: Phase, kind: FaultKind, at_ns: u64) {
        self.faults.record(phase, kind, at_ns);
    }

    /// Meters a value in the unit of its kind; nothing happens where the plan does not ask for the kind.
    #[inline]
    pub fn meter(&mut self, kind: MeterKind, value: u64) {
        if let Some(meter) = self.meters.get_mut(usize::from(self.meter_index[kind as usize])) {
            meter.record(value);
        }
    }

    /// Yields everything that this worker recorded since the last take and leaves the set empty. For the control
    /// thread: allocates, and looks at every bucket between the smallest and the largest value of each histogram.
    pub fn take_interval(&mut self, worker: u32, start_ns: u64, end_ns: u64) -> Interval {
        let rows = self.layout.rows().zip(&mut self.rows).map(|((class, op), row)| IntervalRow {
            class,
            op,
            latencies: row.latencies.map(RecordingHistogram::take),
            client_lag_ns: std::mem::take(&mut row.client_lag_ns),
        });
        let is_used = |row: &IntervalRow| row.latencies.response.count() + row.latencies.failed.count() > 0;
        Interval {
            worker,
            start_ns,
            end_ns,
            rows: rows.filter(is_used).collect(),
            part_sums: self.part_sums.take(),
            warmup: self.warmup.as_mut().map(|warmup| warmup.take()).unwrap_or_default(),
            request_counts: self.take_request_counts(),
            bytes: std::mem::take(&mut self.bytes),
            connections: std::mem::take(&mut self.connections),
            faults: self.faults.take(),
            servers: self.servers.iter_mut().map(|row| std::mem::take(&mut row.0)).collect(),
            server_responses: self.server_responses.iter_mut().map(RecordingHistogram::take).collect(),
            outages: self.outages.take(),
            meters: self.meters.iter_mut().map(MeterRecorder::take).collect(),
            object_faults: self.object_faults.take(),
            worker_time: None,
            cpu_time: None,
        }
    }

    /// Of ops that were due in the window, what was sent or ended outside it is counted while they are recorded, which spares
    /// the usual ones a second count: what happened inside is the rest.
    fn take_request_counts(&mut self) -> Vec<CountEntry> {
        let mut entries = self.request_counts.take();
        for entry in entries.iter_mut().filter(|entry| entry.phase == Phase::Measure) {
            let OpCounts { requests, keys, in_window } = &mut entry.counts;
            in_window.sent = requests.sent - in_window.sent;
            in_window.missed = keys.miss - in_window.missed;
            let ended = in_window.outcomes.iter_mut().zip(requests.outcomes);
            ended.for_each(|(outside, all)| *outside = all - *outside);
        }
        entries
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample::Times;
    use crate::window::WindowCounts;
    use brunt_plan::op::KeyRef;
    use brunt_plan::op::OpKind;
    use brunt_plan::outcome::{Outcome, OutcomeClass, ReplyKind};

    fn layout() -> Layout {
        Layout {
            ops: vec![vec![OpKind::Get.into(), OpKind::Set.into()], vec![OpKind::Mget.into()]],
            meters: vec![MeterKind::SendCost],
            meters_asked: 1,
            servers: 2,
            ..Layout::default()
        }
    }

    #[test]
    fn servers_are_timed_where_there_are_several() {
        for (servers, timed) in [(1, 0), (2, 2), (64, 64), (65, 0)] {
            let layout = Layout { servers, ..layout() };
            let mut set = RecorderSet::new(&layout);
            let measured = set.row_handle(Phase::Measure, 0, OpKind::Get.into());
            set.responded(0, measured, 1_000, 3);
            set.responded(0, set.row_handle(Phase::Warmup, 0, OpKind::Get.into()), 9_000, 1);
            set.responded(servers as u16 - 1, measured, 2_000, 1);
            let interval = set.take_interval(0, 0, 100);
            let times: Vec<_> =
                interval.server_responses.iter().map(|times| (times.count(), times.max())).collect();
            let mut expected = vec![(0, None); timed];
            expected.first_mut().into_iter().for_each(|first| *first = (3, Some(1_000)));
            expected.last_mut().into_iter().for_each(|last| *last = (1, Some(2_000)));
            assert_eq!(times, expected, "{servers}");
            assert!(set.take_interval(0, 100, 200).server_responses.iter().all(|times| times.count() == 0));
            let mut store = crate::store::IntervalStore::new(&layout);
            (0..2).for_each(|_| store.push(&interval));
            let counts: Vec<u64> = store.server_responses().iter().map(|times| times.count()).collect();
            assert_eq!(counts, expected.iter().map(|(count, _)| 2 * count).collect::<Vec<_>>());
        }
    }

    fn asked(class: ClassId, kind: OpKind) -> Op {
        Op { class, ..Op::of(kind, KeyRef::Id(0)) }
    }

    fn sample(op: OpKind, class: ClassId, outcome: Outcome, intended_ns: u64, done_ns: u64) -> Sample {
        let (picked_ns, sent_ns, polled_ns) = (intended_ns, intended_ns + 10, done_ns);
        let times = Times { intended_ns, picked_ns, sent_ns, polled_ns, first_byte_ns: done_ns, done_ns };
        Sample { op: op.into(), class, outcome, busy_lag_ns: None, times }
    }

    #[test]
    fn an_interval_holds_what_was_recorded_and_leaves_nothing() {
        let mut set = RecorderSet::new(&layout());
        set.set_window(100, 1_000);
        let hit = Outcome::of_reply(OpKind::Get, ReplyKind::Value);
        let lost = Outcome::without_reply(OutcomeClass::Lost);
        // Warm-up: counts only. Preload may store through kinds that are in no mix.
        for (phase, class, op) in [(Phase::Warmup, 0, OpKind::Get), (Phase::Preload, 1, OpKind::Set)] {
            set.scheduled(phase, &asked(class, op));
            set.sent(phase, &asked(class, op), 1, 10);
            set.record(phase, &sample(op, class, Outcome::of_reply(op, ReplyKind::Value), 0, 90), 1, 1);
        }
        // Measured: one inside the window, one after it, one lost.
        for (op, class, outcome, done_ns) in
            [(OpKind::Get, 0, hit, 999), (OpKind::Get, 0, hit, 1_000), (OpKind::Mget, 1, lost, 900)]
        {
            set.scheduled(Phase::Measure, &asked(class, op));
            set.sent(Phase::Measure, &asked(class, op), 2, 510);
            set.record(Phase::Measure, &sample(op, class, outcome, 500, done_ns), 1, 1);
        }
        set.transmitted(Phase::Measure, 77);
        set.received(Phase::Drain, 88);
        set.fault(Phase::Measure, FaultKind::Reset, 900);
        set.meter(MeterKind::SendCost, 5);
        set.meter(MeterKind::Oversleep, 6);

        let interval = set.take_interval(3, 0, 1_000);
        assert_eq!((interval.worker, interval.start_ns, interval.end_ns), (3, 0, 1_000));
        assert!(interval.request_counts.iter().all(|entry| entry.counts.adds_up()));
        let activity = interval.activity();
        assert_eq!((activity.scheduled, activity.sent, activity.completed, activity.failed), (5, 5, 3, 2));
        let [get, mget] = interval.rows.as_slice() else { panic!("{:?}", interval.rows) };
        assert_eq!((get.class, get.op, mget.class, mget.op), (0, OpKind::Get.into(), 1, OpKind::Mget.into()));
        let counted = |op| {
            let entry =
                interval.request_counts.iter().find(|entry| (entry.phase, entry.op) == (Phase::Measure, op));
            let counts = entry.unwrap().in_window();
            (counts.sent, counts.completed(), counts.answered(), counts.failed(), counts.in_flight_at_end)
        };
        assert_eq!(counted(OpKind::Get.into()), (2, 1, 1, 0, 1));
        assert_eq!(counted(OpKind::Mget.into()), (1, 0, 0, 1, 0));
        let moments = get.latencies.response.moments();
        assert_eq!((moments.count, moments.min, moments.max), (2, 499, 500));
        assert_eq!(get.latencies.service.moments().max, 490);
        assert_eq!((get.latencies.send_lag.moments().sum, get.client_lag_ns), (20, 0));
        assert_eq!((mget.latencies.response.count(), mget.latencies.failed.moments().max), (0, 400));
        assert_eq!(interval.bytes[Phase::Measure as usize], Bytes { tx: 77, rx: 0 });
        assert_eq!(interval.bytes[Phase::Drain as usize], Bytes { tx: 0, rx: 88 });
        assert_eq!(interval.faults.total(), 1);
        assert_eq!(interval.meters.len(), 1);
        assert_eq!(interval.meters[0].histogram.moments().sum, 5);

        check_empty(&set.take_interval(3, 1_000, 2_000));
    }

    #[test]
    fn requests_without_an_end_are_counted() {
        let mut set = RecorderSet::new(&layout());
        set.set_window(100, 1_000);
        for sent_ns in [999, 1_000] {
            set.scheduled(Phase::Measure, &asked(0, OpKind::Set));
            set.sent(Phase::Measure, &asked(0, OpKind::Set), 1, sent_ns);
            set.in_flight(Phase::Measure, &asked(0, OpKind::Set), sent_ns, sent_ns);
        }
        set.followup(Phase::Measure, &asked(0, OpKind::Set));
        let late = Times {
            picked_ns: 90,
            sent_ns: 100,
            polled_ns: 100,
            first_byte_ns: 100,
            done_ns: 100,
            ..Times::default()
        };
        set.unsent(Phase::Measure, &asked(0, OpKind::Set), &late, None);
        set.scheduled(Phase::Measure, &asked(0, OpKind::Set));
        let times = Times { intended_ns: 100, picked_ns: 110, sent_ns: 600, ..Times::default() };
        let times = Times { polled_ns: 600, first_byte_ns: 600, done_ns: 600, ..times };
        set.abandoned(Phase::Measure, &asked(0, OpKind::Set), &times);
        let left = set.take_interval(3, 1_000, 1_000);
        let [entry] = left.request_counts.as_slice() else { panic!("{:?}", left.request_counts) };
        let counts = entry.counts.requests;
        assert!(counts.adds_up());
        assert_eq!(
            (counts.scheduled, counts.sent, counts.in_flight, counts.unsent, counts.followup),
            (4, 2, 2, 2, 1)
        );
        assert_eq!((counts.abandoned, left.rows[0].latencies.failed.moments().max), (1, 500));
        let expected = WindowCounts {
            sent: 1,
            abandoned: 1,
            waiting_at_end: 2,
            in_flight_at_end: 1,
            ..WindowCounts::default()
        };
        assert_eq!(entry.in_window(), expected);
        assert!(entry.adds_up_in_window());
        check_empty(&set.take_interval(3, 1_000, 2_000));
    }

    /// What follows an interval has nothing of it.
    fn check_empty(rest: &Interval) {
        assert_eq!((rest.request_counts.len(), rest.rows.len(), rest.faults.total()), (0, 0, 0));
        assert_eq!(rest.bytes, [Bytes::default(); Phase::COUNT]);
        assert_eq!(rest.meters[0].histogram.count(), 0);
    }

    #[test]
    fn misses_count_only_inside_the_window() {
        let mut set = RecorderSet::new(&layout());
        set.set_window(100, 1_000);
        let miss = Outcome::without_reply(OutcomeClass::Miss);
        for (op, outcome, done_ns, keys, hits) in [
            (OpKind::Get, miss, 999, 1, 0),
            (OpKind::Get, miss, 1_000, 1, 0),
            (OpKind::Get, Outcome::of_reply(OpKind::Get, ReplyKind::Value), 900, 1, 1),
        ] {
            set.scheduled(Phase::Measure, &asked(0, op));
            set.sent(Phase::Measure, &asked(0, op), 1, 510);
            set.record(Phase::Measure, &sample(op, 0, outcome, 500, done_ns), keys, hits);
        }
        let interval = set.take_interval(0, 0, 2_000);
        let counts = interval.request_counts[0].in_window();
        assert_eq!((counts.missed, counts.completed()), (1, 2));
    }

    /// What may become of an op.
    enum Fate {
        /// Sent and done then.
        Done(u64, u64),
        /// Sent then and in flight when the run is over.
        InFlight(u64),
        GivenUp(u64),
        Unsent,
    }

    /// Counts one get, of a window from 100 to 1000, as it comes and again as three of them.
    fn fate(phase: Phase, fate: Fate) -> [u64; 7] {
        let (op, mut set) = (asked(0, OpKind::Get), RecorderSet::new(&layout()));
        set.set_window(100, 1_000);
        let handle = set.row_handle(phase, 0, OpKind::Get.into());
        let intended_ns = [0, 0, 50, 500, 1_500][phase as usize];
        for count in [1, 3] {
            set.scheduled_many(handle, count);
            match fate {
                Fate::Done(sent_ns, done_ns) => {
                    let hit = Outcome::of_reply(OpKind::Get, ReplyKind::Value);
                    let mut sample = sample(OpKind::Get, 0, hit, intended_ns, done_ns);
                    sample.times.sent_ns = sent_ns;
                    set.sent_many(handle, count, count, sent_ns);
                    set.record_many(handle, &sample, 1, 1, count);
                }
                Fate::InFlight(sent_ns) => {
                    set.sent_many(handle, count, count, sent_ns);
                    (0..count).for_each(|_| set.in_flight(phase, &op, intended_ns, sent_ns));
                }
                Fate::GivenUp(done_ns) => {
                    let times =
                        sample(OpKind::Get, 0, Outcome::without_reply(OutcomeClass::Lost), 0, done_ns).times;
                    (0..count).for_each(|_| set.abandoned(phase, &op, &times));
                }
                Fate::Unsent => {
                    let times = sample(
                        OpKind::Get,
                        0,
                        Outcome::without_reply(OutcomeClass::Lost),
                        intended_ns,
                        2_000,
                    )
                    .times;
                    (0..count).for_each(|_| set.unsent(phase, &op, &times, None));
                }
            }
        }
        let interval = set.take_interval(0, 0, 2_000);
        let [entry] = interval.request_counts.as_slice() else { panic!("{:?}", interval.request_counts) };
        assert!(entry.counts.adds_up() && entry.adds_up_in_window(), "{entry:?}");
        let counts = entry.in_window();
        let numbers = [
            counts.waiting_at_start,
            counts.in_flight_at_start,
            counts.sent,
            counts.ended(),
            counts.abandoned,
            counts.waiting_at_end,
            counts.in_flight_at_end,
        ];
        assert!(numbers.iter().all(|number| number % 4 == 0), "{numbers:?}");
        numbers.map(|number| number / 4)
    }

    #[test]
    fn the_window_counts_what_happens_in_it() {
        use Fate::{Done, GivenUp, InFlight, Unsent};
        let (warmup, measure, drain) = (Phase::Warmup, Phase::Measure, Phase::Drain);
        // Waiting and in flight at the start, sent, ended, given up, waiting and in flight at the end.
        let table = [
            (warmup, Done(60, 99), [0, 0, 0, 0, 0, 0, 0]),
            (warmup, Done(60, 100), [0, 1, 0, 1, 0, 0, 0]),
            (warmup, Done(99, 1_000), [0, 1, 0, 0, 0, 0, 1]),
            (warmup, Done(100, 999), [1, 0, 1, 1, 0, 0, 0]),
            (warmup, Done(500, 1_000), [1, 0, 1, 0, 0, 0, 1]),
            (warmup, Done(1_000, 1_100), [1, 0, 0, 0, 0, 1, 0]),
            (measure, Done(500, 999), [0, 0, 1, 1, 0, 0, 0]),
            (measure, Done(999, 1_000), [0, 0, 1, 0, 0, 0, 1]),
            (measure, Done(1_000, 1_001), [0, 0, 0, 0, 0, 1, 0]),
            (drain, Done(1_500, 1_600), [0, 0, 0, 0, 0, 0, 0]),
            (warmup, InFlight(60), [0, 1, 0, 0, 0, 0, 1]),
            (warmup, InFlight(100), [1, 0, 1, 0, 0, 0, 1]),
            (measure, InFlight(999), [0, 0, 1, 0, 0, 0, 1]),
            (measure, InFlight(1_000), [0, 0, 0, 0, 0, 1, 0]),
            (warmup, GivenUp(99), [0, 0, 0, 0, 0, 0, 0]),
            (warmup, GivenUp(100), [1, 0, 0, 0, 1, 0, 0]),
            (warmup, GivenUp(1_000), [1, 0, 0, 0, 0, 1, 0]),
            (measure, GivenUp(999), [0, 0, 0, 0, 1, 0, 0]),
            (measure, GivenUp(1_000), [0, 0, 0, 0, 0, 1, 0]),
            (warmup, Unsent, [1, 0, 0, 0, 0, 1, 0]),
            (measure, Unsent, [0, 0, 0, 0, 0, 1, 0]),
            (drain, Unsent, [0, 0, 0, 0, 0, 0, 0]),
        ];
        for (index, (phase, became, expected)) in table.into_iter().enumerate() {
            assert_eq!(fate(phase, became), expected, "row {index}");
        }
    }

    #[test]
    fn a_run_that_ends_in_its_warm_up_has_an_empty_window() {
        let mut set = RecorderSet::new(&layout());
        set.set_window(1_000, 500);
        for (sent_ns, done_ns) in [(10, 400), (10, 700), (600, 1_500), (10, 1_500), (1_200, 1_500)] {
            set.scheduled(Phase::Warmup, &asked(0, OpKind::Get));
            set.sent(Phase::Warmup, &asked(0, OpKind::Get), 1, sent_ns);
            let hit = Outcome::of_reply(OpKind::Get, ReplyKind::Value);
            let mut sample = sample(OpKind::Get, 0, hit, 0, done_ns);
            sample.times.sent_ns = sent_ns;
            set.record(Phase::Warmup, &sample, 1, 1);
        }
        let interval = set.take_interval(0, 0, 2_000);
        let expected = WindowCounts {
            waiting_at_start: 1,
            waiting_at_end: 1,
            in_flight_at_start: 2,
            in_flight_at_end: 2,
            ..WindowCounts::default()
        };
        assert_eq!(interval.request_counts[0].in_window(), expected);
        assert!(interval.request_counts[0].adds_up_in_window());
    }

    #[test]
    #[should_panic(expected = "class 1 has no histograms for set")]
    fn measuring_an_unplanned_op_panics() {
        let done = Outcome::of_reply(OpKind::Set, ReplyKind::Stored);
        RecorderSet::new(&layout()).record(Phase::Measure, &sample(OpKind::Set, 1, done, 0, 20), 0, 0);
    }
}
