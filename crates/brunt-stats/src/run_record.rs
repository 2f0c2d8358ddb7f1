//! What a summary is built from: everything that a run yields, from the workers on, and what only its controller knows.
//!
//! A result file holds it, so that every report can be made again from the file. Nothing is judged or turned into percentiles. Invariant:
//! merging the parts of a run in any order comes to what one host with all the workers would have yielded, but for what only one host can
//! say of itself.

use crate::agent_requests::AgentTotals;
use crate::calibration::Lookup;
use crate::check::Judgement;
use crate::convergence::Convergence;
use crate::interval::HostMapping;
use crate::sample::Sample;
use crate::server_stats::{ServerRecord, ServerSpan, SizeShare};
use crate::store::IntervalStore;
use crate::usage::{AgentRecord, ClientUsage, HostEvidence};
use crate::warmup::WarmupEnd;
use crate::window::RunTimes;
use crate::worker_counts::WorkerCounts;
use brunt_plan::plan::{Plan, TraceLayout, Wait};
use brunt_plan::trace_record::TraceRecord;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

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
    /// It is what was received of a run whose end is not known.
    pub is_cut: bool,
}

impl RunRecord {
    /// What a file consists of that was replayed.
    pub fn piece_of(&self, trace: &TraceRecord) -> &'static str {
        let class = self.plan.classes.iter().find(|class| class.name == trace.class);
        class.and_then(|class| class.trace.as_ref()?.layout).map_or("line", TraceLayout::piece)
    }

    /// Of a run of which nothing but its plan is known.
    pub fn of(plan: Plan) -> Self {
        Self {
            plan,
            run: RunData::default(),
            environment: Environment::default(),
            server: String::new(),
            agents: Vec::new(),
            preload: None,
            values_checked: true,
            convergence: None,
            calibration: Lookup::Absent,
            judgement: Judgement::default(),
            is_cut: false,
        }
    }

    /// Adds the record of another part of the same run, as those of several agents are. Its window is taken to begin at the same instant.
    /// What only one host can say of itself stays that of the first. What servers said is dropped: it is of the load of all parts, in the
    /// window of one.
    ///
    /// # Errors
    /// What the two do not have in common.
    pub fn merge(&mut self, mut other: Self) -> Result<(), &'static str> {
        let differ = |(one, other): (&TraceRecord, &TraceRecord)| {
            one.is_whole && other.is_whole && one.lines != other.lines
        };
        if self.run.traces.iter().zip(&other.run.traces).any(differ) {
            return Err("they replayed files of different lengths");
        }
        self.sum_up_agent();
        other.sum_up_agent();
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

    /// Says what the requests of its agent came to, where it is the part of one.
    fn sum_up_agent(&mut self) {
        if let [AgentRecord { requests: requests @ None, .. }] = &mut self.agents[..] {
            let recorded = &self.run.intervals;
            let responses = recorded.rows().map(|(_, _, row)| &row.latencies.response);
            *requests = Some(AgentTotals::of(recorded.request_counts().entries(), responses).requests());
        }
    }
}

/// What was found on the host, as name and value, and the version of the tool.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Environment {
    /// Version of brunt.
    pub brunt_version: String,
    /// What the host calls itself.
    pub host: String,
    /// Facts by name, in the order to print them.
    pub facts: Vec<(String, String)>,
}

/// How preload went.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct PreloadResult {
    /// Keys to store.
    pub wanted: u64,
    /// Keys that the server confirmed.
    pub confirmed: u64,
    /// Were they stored by an earlier run of the campaign?
    pub is_earlier: bool,
    /// From the first attempt to connect until the last key was confirmed.
    pub duration_ns: u64,
}

/// What a result of 2 MB has room for beside the keys for scripts: histograms, of which packing makes about as many characters as they have
/// bytes, what servers did and what they said.
const ROOM_BYTES: usize = 1_250_000;
/// The keys for scripts of a server.
const SERVER_BYTES: usize = 850;
/// Rows over time with what servers say are no shorter.
const ROW_MIN_NS: u64 = 1_000_000_000;

/// Everything a run yields, or a part of it.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct RunData {
    /// What all workers recorded. Goes from host to host while the run goes on, not with the rest.
    #[serde(skip)]
    pub intervals: IntervalStore,
    /// Raw samples, where the plan asked for them. They go from host to host by themselves.
    #[serde(skip)]
    pub samples: Vec<Sample>,
    /// The times.
    pub times: RunTimes,
    /// What the workers counted beside.
    pub counts: WorkerCounts,
    /// What it cost the client.
    pub usage: ClientUsage,
    /// What the host did to it.
    pub host: HostEvidence,
    /// The schedule was cut short from outside.
    pub interrupted: bool,
    /// What it saw of the cluster that its servers are nodes of, if they are.
    pub cluster: Option<ClusterRecord>,
    /// What became of the files that were replayed, in the order of their classes.
    pub traces: Vec<TraceRecord>,
    /// Median service time of up to 50 requests that one worker asked one at a time before the schedule, of all servers together; `None`
    /// where none did. Agents ask none.
    pub unloaded_service_ns: Option<u64>,
    /// Why the warm-up ended, where the plan leaves that open. Agents have theirs fixed.
    pub warmup_end: Option<WarmupEnd>,
    /// What each server said of itself, in the order of the plan; empty where the plan asks no server. Only the leader of a run asks.
    pub server_records: Vec<ServerRecord>,
}

impl RunData {
    /// Cost of a wake-up to a worker; 0 where none sleeps while replies are pending, that is with `--wait spin` in an
    /// open loop.
    pub fn wake_up_ns(&self, is_open_loop: bool) -> u64 {
        let never_sleeps = is_open_loop && self.usage.wait == Wait::Spin.name();
        if never_sleeps { 0 } else { self.host.wake_up_ns }
    }

    /// What a wake-up costs beside what the clock readings of requests hold of it.
    pub fn unread_ns(&self, is_open_loop: bool) -> u64 {
        if self.usage.counts_wake_ups { 0 } else { self.wake_up_ns(is_open_loop) }
    }

    /// What went on in the measured window by the servers' own account, all of them together; `None` where one does not say.
    pub fn servers_in(&self, window: &RunTimes) -> Option<ServerSpan> {
        ServerSpan::sum(self.server_records.iter().map(|record| record.span_of_window(window)))
    }

    /// Gives everything but the intervals the times and numbers that it has in a whole of which it is a part.
    pub fn map_host(&mut self, mapping: &HostMapping) {
        let times = &mut self.times;
        for at_ns in [&mut times.start_ns, &mut times.measure_ns, &mut times.end_ns, &mut times.drained_ns] {
            *at_ns = mapping.time(*at_ns);
        }
        // The clock that its times are of now is at another instant of the wall clock when it is at 0.
        times.epoch_us =
            times.epoch_us.map(|epoch_us| epoch_us.saturating_add_signed(-mapping.clock_shift_ns / 1_000));
        let workers = self.usage.workers.iter_mut();
        workers.for_each(|worker| worker.worker = worker.worker.saturating_add(mapping.first_worker));
        self.samples.iter_mut().for_each(|sample| *sample = mapping.sample(*sample));
        let counts = &mut self.counts;
        counts.first_malformed = counts.first_malformed.take().map(|first| mapping.first_malformed(first));
        mapping.verification(&mut counts.verification);
    }

    /// Makes it fit into a result file of 2 MB, whatever the length of the run. Called before a summary is built, so that all that
    /// is printed of a run can be printed of its file: what fits already stays as it is.
    pub(crate) fn fit(&mut self) {
        let measure_ns = self.times.measure_ns;
        let (row_ns, servers) =
            (self.intervals.timeline().row_ns(measure_ns, ROW_MIN_NS), self.server_records.len());
        let share = SizeShare::of(servers);
        for record in &mut self.server_records {
            record.fit(measure_ns, row_ns, 0, share);
        }
        let snapshots: usize = self.server_records.iter().map(|record| record.snapshots().len()).sum();
        let taken = share.snapshot_bytes * snapshots + SERVER_BYTES * self.intervals.servers().len();
        self.intervals.fit(ROOM_BYTES.saturating_sub(taken));
    }

    /// Adds another part of the same run. Intervals are added as they come.
    pub fn merge(&mut self, other: Self) {
        self.samples.extend(other.samples);
        self.times.merge(&other.times);
        self.counts.merge(&other.counts);
        self.usage.merge(other.usage);
        self.host.merge(&other.host);
        self.interrupted |= other.interrupted;
        self.unloaded_service_ns = self.unloaded_service_ns.or(other.unloaded_service_ns);
        self.warmup_end = self.warmup_end.max(other.warmup_end);
        if let (Some(ours), Some(theirs)) = (&mut self.cluster, other.cluster) {
            // Who has which slots is the leader's to say, who asks last.
            ours.refreshes += theirs.refreshes;
        }
        self.server_records.extend(other.server_records);
        if self.traces.is_empty() {
            self.traces = other.traces;
        } else {
            self.traces.iter_mut().zip(other.traces).for_each(|(ours, theirs)| ours.merge(theirs));
        }
    }
}

/// Who has how many slots.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SlotCounts {
    /// Of each server, in the order of the plan.
    pub of_servers: Vec<u16>,
    /// Of nodes that are none of them.
    pub elsewhere: u16,
    /// Slots without a node.
    pub unserved: u16,
}

/// What a run saw of its cluster.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ClusterRecord {
    /// By the last map that a node gave.
    pub slots: SlotCounts,
    /// Was that after the last reply? If not, no node gave a map at the end.
    pub is_final: bool,
    /// How often the map was asked for again while the run went on, by all hosts together.
    pub refreshes: u64,
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A part whose warm-up did not end well is not hidden by one whose did, whichever comes first.
    #[test]
    fn the_worst_warm_up_end_is_kept() {
        use WarmupEnd::{HitRatioFell, Level, Longest, Trouble, Unknown};
        for (one, other, whole) in [
            (None, None, None),
            (Some(Level), None, Some(Level)),
            (Some(Level), Some(Level), Some(Level)),
            (Some(Level), Some(Unknown), Some(Unknown)),
            (Some(Unknown), Some(Longest), Some(Longest)),
            (Some(Longest), Some(HitRatioFell), Some(HitRatioFell)),
            (Some(HitRatioFell), Some(Trouble), Some(Trouble)),
        ] {
            let of = |warmup_end| RunData { warmup_end, ..RunData::default() };
            for (first, second) in [(one, other), (other, one)] {
                let mut merged = of(first);
                merged.merge(of(second));
                assert_eq!(merged.warmup_end, whole, "{first:?} and {second:?}");
            }
        }
    }
}
