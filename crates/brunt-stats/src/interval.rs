//! A time slice of one worker's recorder: everything that it recorded since the last one.
//!
//! Not a summary and not for printing: an interval is a difference, and adding all of them up is the run. Invariant:
//! no number is in two intervals.

mod host_mapping;

pub use host_mapping::HostMapping;

use crate::connection::ConnectionCounts;
use crate::counts::counts;
use crate::fault::FaultTable;
use crate::histogram::{Histogram, SparseHistogram};
use crate::meter::Meter;
use crate::object_fault::ObjectFaults;
use crate::outage_span::OutageSpans;
use crate::part_sums::PartSums;
use crate::request_counts::CountEntry;
use crate::server::ServerCounts;
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
    /// Converts every histogram.
    pub fn map<T>(&mut self, mut turn: impl FnMut(&mut H) -> T) -> Latencies<T> {
        Latencies {
            response: turn(&mut self.response),
            service: turn(&mut self.service),
            send_lag: turn(&mut self.send_lag),
            without_client: turn(&mut self.without_client),
            least: turn(&mut self.least),
            failed: turn(&mut self.failed),
        }
    }
}

impl Latencies<Histogram> {
    /// Adds the values of every histogram of `other`.
    pub fn merge(&mut self, other: &Self) {
        self.response.merge(&other.response);
        self.service.merge(&other.service);
        self.send_lag.merge(&other.send_lag);
        self.without_client.merge(&other.without_client);
        self.least.merge(&other.least);
        self.failed.merge(&other.failed);
    }

    /// Adds those of an interval.
    pub fn merge_sparse(&mut self, other: &Latencies<SparseHistogram>) {
        self.response.merge_sparse(&other.response);
        self.service.merge_sparse(&other.service);
        self.send_lag.merge_sparse(&other.send_lag);
        self.without_client.merge_sparse(&other.without_client);
        self.least.merge_sparse(&other.least);
        self.failed.merge_sparse(&other.failed);
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
    /// What was booked, by the phase of the intended times.
    pub books: Vec<CountEntry>,
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

impl Interval {
    /// What went on in it, over all phases, classes and ops.
    pub fn activity(&self) -> Activity {
        self.activity_in(|_| true)
    }

    /// What went on in it of the phases that `of` selects, over all classes and ops.
    pub fn activity_in(&self, of: impl Fn(Phase) -> bool) -> Activity {
        let mut sum = Activity::default();
        for CountEntry { counts, .. } in self.books.iter().filter(|entry| of(entry.phase)) {
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
