//! Everything a run yields, or the part of it that one host carried out: the one record of what was measured, from the workers to the
//! summary.
//!
//! Not a summary: nothing is judged or turned into percentiles. Invariant: merging the parts of a run in any order comes to what one
//! host with all the workers would have yielded, but for what only one host can say of itself.

use crate::cluster::ClusterRecord;
use crate::host::HostEvidence;
use crate::interval::HostMapping;
use crate::run_times::RunTimes;
use crate::sample::Sample;
use crate::server_stats::{ServerRecord, SizeShare};
use crate::store::IntervalStore;
use crate::trace::TraceRecord;
use crate::usage::ClientUsage;
use crate::warmup::WarmupEnd;
use crate::worker_counts::WorkerCounts;
use brunt_plan::plan::Wait;
use serde::{Deserialize, Serialize};

/// The longest result of one run.
const RESULT_CHARACTERS_MAX: usize = 2_000_000;
/// Characters of the slices over time, at most.
pub(crate) const SLICES_CHARACTERS_MAX: usize = 850_000;
/// Characters left to the keys for scripts, in all and for each server.
const KEYS_CHARACTERS: usize = 750_000;
const KEYS_CHARACTERS_OF_SERVER: usize = 850;
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
    /// What became of the files that were replayed, in the order of their classes. Agents replay none.
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
        let statistics: usize = self.server_records.iter().map(|record| record.text_len(share)).sum();
        let keys = KEYS_CHARACTERS + KEYS_CHARACTERS_OF_SERVER * self.intervals.servers().len();
        let taken = self.intervals.totals_len() + statistics + keys;
        self.intervals.fit(RESULT_CHARACTERS_MAX.saturating_sub(taken).min(SLICES_CHARACTERS_MAX));
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
    }
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
