//! A time slice of one worker's recorder: everything that it recorded since the last one; and how a host's becomes that of the whole run.
//!
//! Not a summary and not for printing: an interval is a difference, and adding all of them up is the run. Invariants:
//! no number is in two intervals; mapping to the whole run changes no count.

use crate::connection::{ConnectionCounts, FaultTable, FirstMalformed};
use crate::counts::counts;
use crate::histogram::{Histogram, PartSums, SparseHistogram};
use crate::meter::Meter;
use crate::request_counts::CountEntry;
use crate::sample::{Sample, Times};
use crate::server::{OutageSpans, ServerCounts};
use crate::verification::{ObjectFaults, Verification};
use brunt_plan::op::{ClassId, OpId};
use brunt_plan::phase::Phase;
use serde::{Deserialize, Serialize};

/// The shortest time slice that is kept, and the unit of all longer ones.
pub const SLICE_NS: u64 = 100_000_000;

counts! {
    /// Bytes on the wire.
    pub struct Bytes {
        /// Sent.
        pub tx: u64,
        /// Received.
        pub rx: u64,
    }
}

/// The histograms of one op of one class, in one of the forms of a histogram. Nanoseconds; measured ops only.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Latencies<H> {
    /// Response times of completed ops.
    pub response: H,
    /// Service times of completed ops.
    pub service: H,
    /// Send lags of completed ops.
    pub send_lag: H,
    /// Response times of completed ops without all that the client may have held.
    pub without_client: H,
    /// The least that the response times of completed ops can have been, whatever the client did to the server's queue
    /// (`R − M − min(g, S)`), of an open loop; of failed ops, the same of the time until they were given up, in both loops.
    pub least: H,
    /// Response times of failed ops, up to the instant they were given up: a time-out has the time-out value or more.
    pub failed: H,
}

impl<H> Latencies<H> {
    /// Every histogram.
    pub const fn each(&self) -> [&H; 6] {
        let Self { response, service, send_lag, without_client, least, failed } = self;
        [response, service, send_lag, without_client, least, failed]
    }

    const fn each_mut(&mut self) -> [&mut H; 6] {
        let Self { response, service, send_lag, without_client, least, failed } = self;
        [response, service, send_lag, without_client, least, failed]
    }

    /// Converts every histogram.
    pub fn map<T>(&mut self, turn: impl FnMut(&mut H) -> T) -> Latencies<T> {
        let [response, service, send_lag, without_client, least, failed] = self.each_mut().map(turn);
        Latencies { response, service, send_lag, without_client, least, failed }
    }
}

impl Latencies<Histogram> {
    /// Adds to each histogram that of `other`; `merge` does it to one.
    pub fn merge<T>(&mut self, other: &Latencies<T>, merge: impl Fn(&mut Histogram, &T)) {
        self.each_mut().into_iter().zip(other.each()).for_each(|(ours, theirs)| merge(ours, theirs));
    }
}

/// What an interval holds of one op of one class.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct IntervalRow {
    /// The class.
    pub class: ClassId,
    /// The op.
    pub op: OpId,
    /// Latencies of measured ops that ended in the interval.
    pub latencies: Latencies<SparseHistogram>,
    /// The client lags of those that were completed, together.
    pub client_lag_ns: u64,
}

/// What a worker did in an interval.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct WorkerTime {
    /// CPU time, without iterations of its loop that only waited.
    pub busy_ns: u64,
    /// Time in which it was ready to run, without a CPU; `None` where the kernel does not tell.
    pub run_delay_ns: Option<u64>,
}

/// What became of the time of the CPUs that workers may use.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CpuTime {
    /// All of it.
    pub total_ns: u64,
    /// What the hypervisor took.
    pub stolen_ns: u64,
}

/// Everything that one worker recorded from `start_ns` to `end_ns`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Interval {
    /// Which worker.
    pub worker: u32,
    /// When it began: where the worker's previous one ended.
    pub start_ns: u64,
    /// When it ended.
    pub end_ns: u64,
    /// What was counted, by the phase of the intended times.
    pub request_counts: Vec<CountEntry>,
    /// The (class, op) that have measured ops in this interval, in the order of the layout.
    pub rows: Vec<IntervalRow>,
    /// What the response times of all of them that were completed consist of.
    pub part_sums: PartSums,
    /// Response times of completed ops of the warm-up, where they are recorded. Hosts that work together know their windows
    /// beforehand, and have none to tell.
    #[serde(skip)]
    pub warmup: SparseHistogram,
    /// Bytes by the phase they crossed the wire in; `phase as usize` is the index.
    pub bytes: [Bytes; Phase::COUNT],
    /// Connections by the phase in which things happened to them; `phase as usize` is the index.
    pub connections: [ConnectionCounts; Phase::COUNT],
    /// Faults of connections.
    pub faults: FaultTable,
    /// What each server did, in the order of the plan.
    pub servers: Vec<ServerCounts>,
    /// Response times of measured requests, or of parts of some, by the server that answered; empty where they are not told apart.
    pub server_responses: Vec<SparseHistogram>,
    /// Outage spans that ended in the interval, or with the run.
    pub outages: OutageSpans,
    /// One per metered quantity, in the order of the layout.
    pub meters: Vec<Meter>,
    /// Objects of windows that were not as they were to be.
    pub object_faults: ObjectFaults,
    /// What the worker did with its time, where it read its clocks.
    pub worker_time: Option<WorkerTime>,
    /// What became of the time of the host's CPUs since one of its intervals last told.
    pub cpu_time: Option<CpuTime>,
}

counts! {
    /// What went on in a time slice, whatever its phase.
    pub struct Activity {
        /// Ops that became due.
        pub scheduled: u64,
        /// Ops sent.
        pub sent: u64,
        /// Ops completed.
        pub completed: u64,
        /// Ops that failed: error, timeout, mismatch, lost.
        pub failed: u64,
    }
}

impl Activity {
    /// It without a part of it.
    pub fn without(&self, part: &Self) -> Self {
        Self {
            scheduled: self.scheduled - part.scheduled,
            sent: self.sent - part.sent,
            completed: self.completed - part.completed,
            failed: self.failed - part.failed,
        }
    }
}

impl Interval {
    /// What went on in it, over all phases, classes and ops.
    pub fn activity(&self) -> Activity {
        self.activity_in(|_| true)
    }

    /// What went on in it of the phases that `of` selects, over all classes and ops.
    pub fn activity_in(&self, of: impl Fn(Phase) -> bool) -> Activity {
        let mut sum = Activity::default();
        for CountEntry { counts, .. } in self.request_counts.iter().filter(|entry| of(entry.phase)) {
            sum.merge(&Activity {
                scheduled: counts.requests.scheduled,
                sent: counts.requests.sent,
                completed: counts.requests.completed(),
                failed: counts.requests.failed(),
            });
        }
        sum
    }
}

/// From a host's own numbers to those of the whole run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HostMapping {
    /// Added to every time, in nanoseconds.
    pub clock_shift_ns: i64,
    /// The number of its first worker.
    pub first_worker: u32,
    /// What its classes are in the whole; empty where they are the same.
    pub classes: Vec<ClassId>,
}

impl HostMapping {
    /// An instant of the host on the clock of the whole. The end of time stays where it is.
    pub fn time(&self, at_ns: u64) -> u64 {
        if at_ns == u64::MAX { at_ns } else { at_ns.saturating_add_signed(self.clock_shift_ns) }
    }

    /// A class of the host in the whole.
    pub fn class(&self, class: ClassId) -> ClassId {
        self.classes.get(usize::from(class)).copied().unwrap_or(class)
    }

    /// The interval as the whole run has it.
    pub fn interval(&self, mut interval: Interval) -> Interval {
        interval.worker = interval.worker.saturating_add(self.first_worker);
        interval.start_ns = self.time(interval.start_ns);
        interval.end_ns = self.time(interval.end_ns);
        interval.request_counts.iter_mut().for_each(|entry| entry.class = self.class(entry.class));
        interval.rows.iter_mut().for_each(|row| row.class = self.class(row.class));
        self.faults(&mut interval.faults);
        self.outages(&mut interval.outages);
        interval
    }

    pub(crate) fn faults(&self, table: &mut FaultTable) {
        table.rows_mut().iter_mut().for_each(|fault| fault.first_ns = self.time(fault.first_ns));
    }

    pub(crate) fn outages(&self, outages: &mut OutageSpans) {
        for span in &mut outages.spans {
            (span.start_ns, span.end_ns) = (self.time(span.start_ns), self.time(span.end_ns));
        }
    }

    /// A raw sample as the whole run has it.
    pub fn sample(&self, sample: Sample) -> Sample {
        let Times { intended_ns, picked_ns, sent_ns, polled_ns, first_byte_ns, done_ns } = sample.times;
        let times = Times {
            intended_ns: self.time(intended_ns),
            picked_ns: self.time(picked_ns),
            sent_ns: self.time(sent_ns),
            polled_ns: self.time(polled_ns),
            first_byte_ns: self.time(first_byte_ns),
            done_ns: self.time(done_ns),
        };
        Sample { class: self.class(sample.class), times, ..sample }
    }

    /// The first bytes that were no reply, as the whole run has them.
    pub fn first_malformed(&self, mut first: FirstMalformed) -> FirstMalformed {
        (first.at_ns, first.class) = (self.time(first.at_ns), self.class(first.class));
        first
    }

    /// What was wrong with values, as the whole run has it.
    pub fn verification(&self, verification: &mut Verification) {
        verification.examples_mut().for_each(|example| example.at_ns = self.time(example.at_ns));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::connection::FaultKind;
    use crate::recorder::Layout;
    use crate::recorder::RecorderSet;
    use crate::server::{OutageKinds, OutageSpan};
    use brunt_plan::op::OpKind;
    use brunt_plan::outcome::{Outcome, ReplyKind};
    use brunt_plan::phase::Phase;
    use brunt_plan::plan::MeterKind;

    fn layout(classes: usize) -> Layout {
        Layout {
            ops: vec![vec![OpKind::Get.into()]; classes],
            meters: vec![MeterKind::SendCost],
            servers: 1,
            ..Layout::default()
        }
    }

    fn sample(class: ClassId, from_ns: u64) -> Sample {
        let times = Times {
            intended_ns: from_ns,
            picked_ns: from_ns + 1,
            sent_ns: from_ns + 2,
            polled_ns: from_ns + 3,
            first_byte_ns: from_ns + 4,
            done_ns: from_ns + 5,
        };
        Sample {
            op: OpKind::Get.into(),
            class,
            outcome: Outcome::of_reply(OpKind::Get, ReplyKind::Value),
            busy_lag_ns: None,
            times,
        }
    }

    fn interval(layout: &Layout, class: ClassId, worker: u32, from_ns: u64) -> Interval {
        let mut set = RecorderSet::new(layout);
        set.record(Phase::Measure, &sample(class, from_ns), 1, 1);
        let mut interval = set.take_interval(worker, from_ns - 100, from_ns + 100);
        interval.faults.record(Phase::Measure, FaultKind::Reset, from_ns);
        let span = OutageSpan {
            server: 0,
            start_ns: from_ns,
            end_ns: u64::MAX,
            failed: 1,
            kinds: OutageKinds::NONE,
        };
        interval.outages.spans.push(span);
        interval
    }

    /// It is as if it had been recorded there: with these numbers, at these times.
    #[test]
    fn mapped_intervals_equal_those_recorded_on_the_run_clock() {
        let there = HostMapping { clock_shift_ns: -4_000, first_worker: 7, classes: vec![2] };
        let mut expected = interval(&layout(3), 2, 8, 1_000);
        // A recorder of one class has the counts of one.
        expected.request_counts.retain(|entry| entry.class == 2);
        assert_eq!(there.interval(interval(&layout(1), 0, 1, 5_000)), expected);
        assert_eq!(there.sample(sample(0, 5_000)), sample(2, 1_000));
        let nowhere = HostMapping::default();
        assert_eq!(nowhere.interval(interval(&layout(1), 0, 1, 5_000)), interval(&layout(1), 0, 1, 5_000));
    }

    #[test]
    fn intervals_of_another_layout_are_rejected() {
        let layout = layout(1);
        let changed = |change: fn(&mut Interval)| {
            let mut interval = interval(&layout, 0, 0, 5_000);
            change(&mut interval);
            interval.check(&layout).err()
        };
        assert_eq!(changed(|_| ()), None);
        type Change = fn(&mut Interval);
        let table: [(Change, &str); 6] = [
            (|interval| interval.start_ns = u64::MAX, "an interval that ends before it begins"),
            (
                |interval| interval.request_counts[0].class = 1,
                "counts of a class or a command that does not exist",
            ),
            (|interval| interval.rows[0].class = 1, "latencies of an operation that is not measured"),
            (
                |interval| interval.rows[0].op = OpKind::Set.into(),
                "latencies of an operation that is not measured",
            ),
            (|interval| interval.outages.spans[0].server = 1, "counts of servers that there are not"),
            (|interval| interval.meters.clear(), "other meters than those of the plan"),
        ];
        for (change, reason) in table {
            assert_eq!(changed(change), Some(reason));
        }
    }
}
