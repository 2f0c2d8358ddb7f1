//! Everything a run yields, or the part of it that one host carried out.
//!
//! Not a summary: nothing is judged or turned into percentiles. Invariant: merging the parts of a run in any order comes to what one
//! host with all the workers would have yielded, but for what only one host can say of itself.

use crate::kernel_interface::KernelInterface;
use brunt_plan::plan::Wait;
use brunt_stats::cluster::ClusterRecord;
use brunt_stats::datagrams::DatagramCounts;
use brunt_stats::fault::FirstGarbage;
use brunt_stats::host::HostEvidence;
use brunt_stats::interval::Move;
use brunt_stats::presence::PresenceTotal;
use brunt_stats::recorder::Layout;
use brunt_stats::renewal::RenewalCounts;
use brunt_stats::sample::Sample;
use brunt_stats::stamps::StampCounts;
use brunt_stats::statistics::ServerRecord;
use brunt_stats::steady::warmup::WarmupEnd;
use brunt_stats::store::IntervalStore;
use brunt_stats::trace::TraceRecord;
use brunt_stats::usage::WorkerUsage;
use brunt_stats::verification::Verification;
use serde::{Deserialize, Serialize};
use std::borrow::Cow;

/// The times of a run on its own clock, nanoseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunTimes {
    /// Preload was over and the schedule began.
    pub start_ns: u64,
    /// The measured window began.
    pub measure_ns: u64,
    /// It ended.
    pub end_ns: u64,
    /// The last operation had ended or was given up.
    pub drained_ns: u64,
    /// From the first attempt to connect until every key was confirmed.
    pub prepare_ns: u64,
}

/// What the workers cost during the measured window.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Usage {
    /// Processor time in user space.
    pub cpu_user_ns: u64,
    /// Processor time in the kernel.
    pub cpu_system_ns: u64,
    /// System calls.
    pub syscalls: u64,
}

/// Everything a run yields, or a part of it.
#[derive(Debug, Serialize, Deserialize)]
pub struct RunData {
    /// What all workers recorded. Goes from host to host while the run goes on, not with the rest.
    #[serde(skip, default = "nothing_recorded")]
    pub intervals: IntervalStore,
    /// The times.
    pub times: RunTimes,
    /// What it cost.
    pub usage: Usage,
    /// How busy each worker was.
    pub workers: Vec<WorkerUsage>,
    /// What the host did to it.
    pub host: HostEvidence,
    /// Operations in the system over the measured window, all workers together.
    pub presence: PresenceTotal,
    /// The first bytes that were no reply.
    pub garbage: Option<FirstGarbage>,
    /// The text of the first error reply.
    pub error_text: Option<Vec<u8>>,
    /// Raw samples, where the plan asked for them.
    pub samples: Vec<Sample>,
    /// Samples there was no room for.
    pub samples_overflow: u64,
    /// Values read that were none of ours, where others may have stored some.
    pub values_foreign: u64,
    /// What was wrong with those that were.
    pub verification: Verification,
    /// Messages of servers that nobody asked for.
    pub pushes: u64,
    /// Replies that no operation waited for, where replies carry tokens.
    pub stray_replies: u64,
    /// Datagrams that were of no use.
    pub datagrams: DatagramCounts,
    /// Values that a server marked as to be renewed.
    pub renewals: RenewalCounts,
    /// Error replies by what they begin with, each word once, where a protocol has such words; over all phases.
    pub error_replies: Vec<(Cow<'static, str>, u64)>,
    /// What became of the requests whose kernel timestamps were asked for.
    pub stamps: StampCounts,
    /// What it saw of the cluster that its servers are nodes of, if they are. A cluster has no agents.
    #[serde(skip)]
    pub cluster: Option<ClusterRecord>,
    /// What became of the files that were replayed, in the order of their classes. Agents replay none.
    #[serde(skip)]
    pub traces: Vec<TraceRecord>,
    /// How the workers waited.
    pub wait: Wait,
    /// Which kernel interface ran.
    pub io: KernelInterface,
    /// Why not a better one, where the plan would have taken it.
    pub io_reason: Option<String>,
    /// The schedule was cut short from outside.
    pub interrupted: bool,
    /// Why the warm-up ended, where the plan leaves that open. Agents have theirs fixed.
    #[serde(skip)]
    pub warmup_end: Option<WarmupEnd>,
    /// What each server said of itself, in the order of the plan; empty where the plan asks nobody. Only whoever leads asks.
    #[serde(skip)]
    pub server_records: Vec<ServerRecord>,
}

fn nothing_recorded() -> IntervalStore {
    IntervalStore::new(&Layout {
        kinds: Vec::new(),
        meters: Vec::new(),
        meters_asked: 0,
        servers: 0,
        records_warmup: false,
    })
}

impl Default for RunData {
    /// Nobody did anything.
    fn default() -> Self {
        Self {
            intervals: nothing_recorded(),
            times: RunTimes { start_ns: u64::MAX, measure_ns: u64::MAX, ..RunTimes::default() },
            usage: Usage::default(),
            workers: Vec::new(),
            host: HostEvidence::default(),
            presence: PresenceTotal::default(),
            garbage: None,
            error_text: None,
            samples: Vec::new(),
            samples_overflow: 0,
            values_foreign: 0,
            verification: Verification::default(),
            pushes: 0,
            stray_replies: 0,
            datagrams: DatagramCounts::default(),
            renewals: RenewalCounts::default(),
            error_replies: Vec::new(),
            stamps: StampCounts::default(),
            cluster: None,
            traces: Vec::new(),
            wait: Wait::Sleep,
            io: KernelInterface::Epoll,
            io_reason: None,
            interrupted: false,
            warmup_end: None,
            server_records: Vec::new(),
        }
    }
}

impl RunData {
    /// Gives everything but the intervals the times and numbers that it has in a whole of which it is a part.
    pub fn place(&mut self, place: &Move) {
        let times = &mut self.times;
        for at_ns in [&mut times.start_ns, &mut times.measure_ns, &mut times.end_ns, &mut times.drained_ns] {
            *at_ns = place.time(*at_ns);
        }
        self.workers
            .iter_mut()
            .for_each(|worker| worker.worker = worker.worker.saturating_add(place.first_worker));
        self.garbage = self.garbage.take().map(|garbage| place.garbage(garbage));
        self.samples.iter_mut().for_each(|sample| *sample = place.sample(*sample));
        place.verification(&mut self.verification);
    }

    /// Adds another part of the same run. Intervals are added as they come.
    pub fn merge(&mut self, other: Self) {
        if self.workers.is_empty() {
            (self.wait, self.io, self.io_reason) = (other.wait, other.io, other.io_reason);
        }
        self.times.merge(&other.times);
        self.usage.merge(&other.usage);
        self.workers.extend(other.workers);
        self.host.merge(&other.host);
        self.presence.merge(&other.presence);
        self.garbage = FirstGarbage::earliest(self.garbage.take(), other.garbage);
        self.error_text = self.error_text.take().or(other.error_text);
        self.samples.extend(other.samples);
        self.samples_overflow += other.samples_overflow;
        self.values_foreign += other.values_foreign;
        self.verification.merge(&other.verification);
        self.pushes += other.pushes;
        self.stray_replies += other.stray_replies;
        self.datagrams.merge(&other.datagrams);
        self.renewals.merge(&other.renewals);
        other.error_replies.into_iter().for_each(|(prefix, count)| self.count_errors(prefix, count));
        self.stamps.merge(&other.stamps);
        self.interrupted |= other.interrupted;
        self.server_records.extend(other.server_records);
    }

    /// Adds error replies that begin with this.
    pub(crate) fn count_errors(&mut self, prefix: Cow<'static, str>, count: u64) {
        match self.error_replies.iter_mut().find(|(name, _)| *name == prefix) {
            Some((_, sum)) => *sum += count,
            None => self.error_replies.push((prefix, count)),
        }
    }
}

impl RunTimes {
    /// From the first worker's to the last one's.
    pub(crate) fn merge(&mut self, other: &Self) {
        self.start_ns = self.start_ns.min(other.start_ns);
        self.measure_ns = self.measure_ns.min(other.measure_ns);
        self.end_ns = self.end_ns.max(other.end_ns);
        self.drained_ns = self.drained_ns.max(other.drained_ns);
        self.prepare_ns = self.prepare_ns.max(other.prepare_ns);
    }
}

impl Usage {
    pub(crate) fn merge(&mut self, other: &Self) {
        self.cpu_user_ns += other.cpu_user_ns;
        self.cpu_system_ns += other.cpu_system_ns;
        self.syscalls += other.syscalls;
    }
}
