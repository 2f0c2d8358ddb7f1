//! What a run cost the client and what its hosts did to it: processor time, system calls, clocks, packets that got lost; of the agents and of
//! each worker, over the window and in each piece of time.
//!
//! Measured elsewhere; here it is data for the checks and the report. A number that a host does not tell is `None`, which is not 0.
//! Everything covers the measured window but for what says otherwise. Invariant: pieces of time add up to longer ones in any order.

use crate::agent_requests::AgentRequests;
use crate::counts::{Most, counts, share};
use crate::interval::{CpuTime, Interval, SLICE_NS, WorkerTime};
use brunt_plan::op::ClassId;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::ops::Range;

/// A worker that was busy or kept from its processor for this share of the window has no time left, whether or not its lateness shows in a
/// percentile.
pub const BUSY: f64 = 0.95;

/// How often a worker found that a server on its host had sent from the processor that the worker runs on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Colocation {
    /// How often it looked.
    pub looks: u64,
    /// How often it was so.
    pub shared: u64,
}

/// A turn of a worker's loop that took longer than this stood still: the work of a turn takes microseconds, a whole batch of
/// replies a millisecond, and a scheduler's slice 3 to 4 ms.
pub const STALL_MIN_NS: u64 = 10_000_000;

/// Turns of a worker's loop that stood still: from when it woke, or was to wake by its timer, to when it waited again. Of
/// each the part inside the measured window counts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct StallCounts {
    /// How many took longer than 10 ms.
    pub count: u64,
    /// How long all of these took.
    pub total_ns: u64,
    /// How long the longest took.
    pub longest_ns: u64,
    /// When it began, counted from the beginning of the window; `None` without one.
    pub longest_at_ns: Option<u64>,
    /// For how long at the most the worker was ready to run in it, without a processor: for the rest it was stopped, or in a system call.
    /// `None` where the kernel does not say.
    pub longest_run_delay_ns: Option<u64>,
}

impl StallCounts {
    /// Notes a turn, of a window that lies there, if it stood still inside it. `run_delay_ns`: for how long at the most the worker was
    /// ready to run meanwhile.
    pub fn note(&mut self, turn: Range<u64>, window: Range<u64>, run_delay_ns: Option<u64>) {
        let begin_ns = turn.start.max(window.start);
        let took_ns = turn.end.min(window.end).saturating_sub(begin_ns);
        if took_ns <= STALL_MIN_NS {
            return;
        }
        self.count += 1;
        self.total_ns += took_ns;
        if took_ns > self.longest_ns {
            (self.longest_ns, self.longest_at_ns) = (took_ns, Some(begin_ns - window.start));
            self.longest_run_delay_ns = run_delay_ns.map(|ns| ns.min(took_ns));
        }
    }

    /// The longest one, of a window that begins at `measure_ns`.
    pub fn longest_span(&self, measure_ns: u64) -> Range<u64> {
        let start_ns = measure_ns + self.longest_at_ns.unwrap_or(0);
        start_ns..start_ns + self.longest_ns
    }

    /// For how long at least the worker was not even ready to run while it stood still longest; 0 where that is not known.
    pub fn longest_stop_ns(&self) -> u64 {
        self.longest_run_delay_ns.map_or(0, |ns| self.longest_ns - ns.min(self.longest_ns))
    }

    /// Usage of all workers together.
    pub fn of_all(workers: &[WorkerUsage]) -> Self {
        let mut sum = Self::default();
        for WorkerUsage { stalls, .. } in workers {
            sum.count += stalls.count;
            sum.total_ns += stalls.total_ns;
        }
        if let Some(WorkerUsage { stalls, .. }) = Self::longest_of(workers) {
            (sum.longest_ns, sum.longest_at_ns) = (stalls.longest_ns, stalls.longest_at_ns);
            sum.longest_run_delay_ns = stalls.longest_run_delay_ns;
        }
        sum
    }

    /// The worker that stood still longest; `None` where none did.
    pub fn longest_of(workers: &[WorkerUsage]) -> Option<&WorkerUsage> {
        let stood = workers.iter().filter(|usage| usage.stalls.count > 0);
        stood.reduce(|one, other| if other.stalls.longest_ns > one.stalls.longest_ns { other } else { one })
    }
}

/// The requests of all classes of an open loop of one worker.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct WorkerBacklog {
    /// By how many more were due and not ended at the end of the measured window than at its beginning.
    pub growth: i64,
    /// Those that were due in the window.
    pub due: u64,
}

impl WorkerBacklog {
    /// Adds what an interval of the worker counted of classes of an open loop.
    pub fn add(&mut self, interval: &Interval, is_open: impl Fn(ClassId) -> bool) {
        for entry in interval.request_counts.iter().filter(|entry| is_open(entry.class)) {
            let counts = entry.in_window();
            self.growth += (counts.waiting_at_end + counts.in_flight_at_end) as i64;
            self.growth -= (counts.waiting_at_start + counts.in_flight_at_start) as i64;
            self.due += entry.due_in_window();
        }
    }
}

/// What one worker did with its time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct WorkerUsage {
    /// Which worker.
    pub worker: u32,
    /// How long it was observed: the measured window, up to the turns of its loop.
    pub wall_ns: u64,
    /// Processor time, user and system, but for turns that only waited for something to do.
    pub busy_ns: u64,
    /// Processor time, user and system.
    pub cpu_ns: u64,
    /// Time in which it was ready to run and did not: its processor was another's, or its control group's quota was used
    /// up. `None` where the kernel does not say.
    pub run_delay_ns: Option<u64>,
    /// How often its processor was taken from it.
    pub involuntary_switches: u64,
    /// How often it slept.
    pub voluntary_switches: u64,
    /// Whom it shared its processor with.
    pub colocation: Colocation,
    /// When it stood still.
    pub stalls: StallCounts,
    /// How its backlog grew.
    pub backlog: WorkerBacklog,
}

impl WorkerUsage {
    /// The share of its time in which it worked or waited for a processor.
    pub fn busy_share(&self) -> f64 {
        share(self.busy_ns + self.run_delay_ns.unwrap_or(0), self.wall_ns)
    }
}

/// What the client used during the measured window.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ClientUsage {
    /// Processor time in user space, in nanoseconds.
    pub cpu_user_ns: u64,
    /// Processor time in the kernel on our behalf, in nanoseconds.
    pub cpu_system_ns: u64,
    /// System calls that workers made.
    pub syscalls: u64,
    /// The kernel interface that ran.
    pub io: String,
    /// Why that one, where the plan left it open and the best there is was not to be had.
    pub io_reason: Option<String>,
    /// How workers waited.
    pub wait: String,
    /// A reply that ended a sleep counts as unread for as long as a wake-up takes: there are no kernel timestamps.
    pub counts_wake_ups: bool,
    /// Why there are none, where the plan left it open.
    pub timestamps_reason: Option<String>,
    /// Each worker.
    pub workers: Vec<WorkerUsage>,
}

impl ClientUsage {
    /// Adds that of other workers, which wait and talk to their kernels as the first ones do as far as this tells.
    pub fn merge(&mut self, other: Self) {
        if self.workers.is_empty() {
            (self.io, self.io_reason, self.wait) = (other.io, other.io_reason, other.wait);
            (self.counts_wake_ups, self.timestamps_reason) = (other.counts_wake_ups, other.timestamps_reason);
        }
        self.cpu_user_ns += other.cpu_user_ns;
        self.cpu_system_ns += other.cpu_system_ns;
        self.syscalls += other.syscalls;
        self.workers.extend(other.workers);
    }
}

/// One agent of a run.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct AgentRecord {
    /// Name, as given to the controller.
    pub name: String,
    /// Name of its host, as the host reports it.
    pub host: String,
    /// The number of its first worker in the run.
    pub first_worker: u32,
    /// Number of its workers.
    pub workers: u32,
    /// Weight of each worker: open-loop requests are divided among all workers in proportion to it.
    pub weight: u32,
    /// Its clock less the controller's clock, in nanoseconds.
    pub clock_offset_ns: i64,
    /// Limit of the error of `clock_offset_ns`, and of the agent's start.
    pub clock_error_ns: u64,
    /// Why it was lost while it measured; what it recorded up to then is in the totals.
    pub lost: Option<String>,
    /// How long after the schedule began the last interval ended that it had sent, in nanoseconds: from then on its load is missing.
    pub lost_after_ns: Option<u64>,
    /// It was lost while it ended its part after the run was interrupted.
    pub lost_after_interruption: bool,
    /// What its measured requests came to; null of the only part of a run.
    pub requests: Option<AgentRequests>,
    /// When it was told to begin, by its own clock, in microseconds since 1970; null with a controller.
    pub start_unix_us: Option<u64>,
}

impl AgentRecord {
    /// Is this worker of the run one of its own?
    pub fn has_worker(&self, worker: u32) -> bool {
        (self.first_worker..self.first_worker.saturating_add(self.workers)).contains(&worker)
    }
}

/// Clocksources that are read without a system call and tick in nanoseconds, on x86, Arm, RISC-V, Power and in guests of
/// KVM and Hyper-V. Of all others (`hpet`, `acpi_pm`, `jiffies`) a reading costs a microsecond or is as coarse as a tick.
const FAST_CLOCKSOURCES: [&str; 6] =
    ["tsc", "arch_sys_counter", "kvm-clock", "hyperv_clocksource_tsc_page", "riscv_clocksource", "timebase"];

/// Is reading this clocksource cheap and fine enough to time single requests?
pub fn is_fast_clocksource(name: &str) -> bool {
    FAST_CLOCKSOURCES.contains(&name)
}

/// What the host's clocks did.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ClockEvidence {
    /// What clock reads come from, at the end of the window.
    pub source: Option<String>,
    /// The largest step of CLOCK_REALTIME against CLOCK_MONOTONIC, in nanoseconds; 0 where there was none.
    pub realtime_step_ns: u64,
    /// How often CLOCK_MONOTONIC was read lower than before.
    pub backwards: u64,
}

impl ClockEvidence {
    /// Adds another host's: the worse of each value.
    fn merge(&mut self, other: &Self) {
        let is_slow =
            |source: &Option<String>| source.as_deref().is_some_and(|name| !is_fast_clocksource(name));
        if self.source.is_none() || is_slow(&other.source) {
            self.source.clone_from(&other.source);
        }
        self.realtime_step_ns = self.realtime_step_ns.max(other.realtime_step_ns);
        self.backwards += other.backwards;
    }
}

/// What the host did to a run.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct HostEvidence {
    /// How long the host was observed.
    pub wall_ns: u64,
    /// The processors that the workers may run on.
    pub cpus: u64,
    /// Time of these processors that the hypervisor gave to others, all of them together; the kernel counts it in ticks of
    /// 10 ms.
    pub stolen_ns: Option<u64>,
    /// Time for which these processors worked for any process, this one included, all of them together; in ticks, too.
    pub busy_ns: Option<u64>,
    /// How long our control group, or one around it, had used up its quota; on several processors at once it counts once
    /// for each.
    pub throttled_ns: Option<u64>,
    /// How late a timed sleep ends on this host, in nanoseconds: what a wake-up costs. Measured before the schedule began.
    pub wake_up_ns: u64,
    /// The clocks.
    pub clock: ClockEvidence,
    /// Segments that our connections sent again, from the start of the schedule to the end of the drain.
    pub retransmits: u64,
    /// Attempts to connect that servers on this host turned away because they did not accept fast enough, all servers of
    /// the host together, in the same time; `None` where no server of the plan is on this host.
    pub listen_drops: Option<u64>,
}

impl HostEvidence {
    /// Adds another host of the same run. What is a share of one host's processors is that of the host where it is the worst, for what
    /// one of them did to its requests is not made better by the others; what is counted is added.
    pub fn merge(&mut self, other: &Self) {
        let throttled = |host: &Self| host.throttled_ns.map(|ns| ns as f64 / host.wall_ns.max(1) as f64);
        self.throttled_ns =
            if throttled(other) > throttled(self) { other.throttled_ns } else { self.throttled_ns };
        if self.wall_ns == 0 || other.stolen_share() > self.stolen_share() {
            (self.wall_ns, self.cpus) = (other.wall_ns, other.cpus);
            (self.stolen_ns, self.busy_ns) = (other.stolen_ns, other.busy_ns);
        }
        self.wake_up_ns = self.wake_up_ns.max(other.wake_up_ns);
        self.clock.merge(&other.clock);
        self.retransmits += other.retransmits;
        self.listen_drops = match (self.listen_drops, other.listen_drops) {
            (Some(one), Some(other)) => Some(one + other),
            (one, other) => one.or(other),
        };
    }

    /// The share of our processors' time that was stolen.
    pub fn stolen_share(&self) -> Option<f64> {
        let whole_ns = self.wall_ns as f64 * self.cpus as f64;
        self.stolen_ns.filter(|_| whole_ns > 0.0).map(|ns| ns as f64 / whole_ns)
    }
}

/// In shorter intervals, such as a worker's last one, a share says little.
const INTERVAL_MIN_NS: u64 = SLICE_NS / 2;
const MILLION: u64 = 1_000_000;

counts! {
    /// Times of all workers in a piece of time, and those of their CPUs. Microseconds, as there are hundreds of pieces in a result.
    pub struct ClientTime {
        /// The intervals whose workers read their clocks, together.
        wall_us: u64,
        busy_us: u64,
        /// Of `wall_us` the part in which the run delay is known.
        delay_wall_us: u64,
        run_delay_us: u64,
        /// The largest share that one worker was busy or delayed in an interval, in millionths.
        busiest_ppm: Most,
        /// The largest share that one worker was delayed, likewise.
        most_delayed_ppm: Most,
        cpus_us: u64,
        stolen_us: u64,
    }
}

/// Shares of time, from 0 to 1; `None` where nothing is known.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ClientShares {
    /// Of the workers' time in which they were busy.
    pub busy: Option<f64>,
    /// Of 100 ms, the most in which one worker was busy or delayed.
    pub busiest: Option<f64>,
    /// Of the workers' time in which they were ready to run, without a CPU.
    pub run_delay: Option<f64>,
    /// Of 100 ms, the most in which one worker was.
    pub most_delayed: Option<f64>,
    /// Of the CPUs' time that the hypervisor took.
    pub stolen: Option<f64>,
}

impl ClientTime {
    /// What an interval tells.
    pub fn of(interval: &Interval) -> Self {
        let mut time = Self::default();
        let wall_ns = interval.end_ns - interval.start_ns;
        if let Some(WorkerTime { busy_ns, run_delay_ns }) = interval.worker_time {
            (time.wall_us, time.busy_us) = (wall_ns / 1_000, busy_ns / 1_000);
            if let Some(delay_ns) = run_delay_ns {
                (time.delay_wall_us, time.run_delay_us) = (time.wall_us, delay_ns / 1_000);
            }
            let ppm = |ns: u64| u128::from(ns) * u128::from(MILLION) / u128::from(wall_ns.max(1));
            if wall_ns >= INTERVAL_MIN_NS {
                // A clock that is read a little later than the interval ends may show more than all of it.
                let [busiest, delayed] =
                    [busy_ns.saturating_add(run_delay_ns.unwrap_or(0)), run_delay_ns.unwrap_or(0)]
                        .map(|ns| Most(ppm(ns).min(MILLION.into()) as u64));
                (time.busiest_ppm, time.most_delayed_ppm) = (busiest, delayed);
            }
        }
        if let Some(CpuTime { total_ns, stolen_ns }) = interval.cpu_time {
            (time.cpus_us, time.stolen_us) = (total_ns / 1_000, stolen_ns / 1_000);
        }
        time
    }

    /// The share of the workers' time in which they were busy, exactly; `None` where too little of it is known.
    pub fn busy_share(&self) -> Option<f64> {
        share_of_workers(self.busy_us, self.wall_us)
    }

    /// As shares; `None` where no clock was read.
    pub fn shares(&self) -> Option<ClientShares> {
        // In steps of 0.1 %: a result has hundreds of them.
        let rounded = |share: f64| (share.min(1.0) * 1e3).round() / 1e3;
        let of = |part: u64, whole: u64| (whole > 0).then(|| rounded(part as f64 / whole as f64));
        let shares = ClientShares {
            busy: self.busy_share().map(rounded),
            busiest: of(self.busiest_ppm.0, MILLION).filter(|_| self.wall_us > 0),
            run_delay: share_of_workers(self.run_delay_us, self.delay_wall_us).map(rounded),
            most_delayed: of(self.most_delayed_ppm.0, MILLION).filter(|_| self.delay_wall_us > 0),
            stolen: of(self.stolen_us, self.cpus_us),
        };
        (*self != Self::default()).then_some(shares)
    }
}

fn share_of_workers(part_us: u64, whole_us: u64) -> Option<f64> {
    (whole_us >= INTERVAL_MIN_NS / 1_000).then(|| (part_us as f64 / whole_us as f64).min(1.0))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::recorder::{Layout, RecorderSet};

    const MS: u64 = 1_000_000;

    #[test]
    fn stalls_inside_the_window_count() {
        // Beginnings and ends of turns → how many, how long in all, how long and when the longest. The window lies from 100
        // to 200 ms.
        type Turns = &'static [(u64, u64)];
        let table: [(Turns, [u64; 4]); 7] = [
            (&[], [0, 0, 0, 0]),
            (&[(150 * MS, 160 * MS)], [0, 0, 0, 0]),
            (&[(150 * MS, 160 * MS + 1)], [1, 10 * MS + 1, 10 * MS + 1, 50 * MS]),
            (
                &[(110 * MS, 130 * MS), (140 * MS, 170 * MS), (180 * MS, 195 * MS)],
                [3, 65 * MS, 30 * MS, 40 * MS],
            ),
            // Over its edges, and outside.
            (&[(50 * MS, 120 * MS), (185 * MS, 999 * MS)], [2, 35 * MS, 20 * MS, 0]),
            (&[(50 * MS, 110 * MS), (190 * MS, 999 * MS), (0, 99 * MS), (300 * MS, 400 * MS)], [0, 0, 0, 0]),
            (&[(0, u64::MAX)], [1, 100 * MS, 100 * MS, 0]),
        ];
        for (turns, expected) in table {
            let mut stalls = StallCounts::default();
            let delay_ns = |end_ns: u64| Some(end_ns / 10);
            turns.iter().for_each(|(begin_ns, end_ns)| {
                stalls.note(*begin_ns..*end_ns, 100 * MS..200 * MS, delay_ns(*end_ns));
            });
            let StallCounts { count, total_ns, longest_ns, longest_at_ns, longest_run_delay_ns } = stalls;
            assert_eq!([count, total_ns, longest_ns, longest_at_ns.unwrap_or(0)], expected, "{turns:?}");
            assert_eq!(longest_at_ns.is_some(), count > 0, "{turns:?}");
            let is_longest = |(begin_ns, end_ns): &&(u64, u64)| {
                (*end_ns).min(200 * MS).saturating_sub((*begin_ns).max(100 * MS)) == longest_ns
            };
            let longest = turns.iter().find(is_longest).filter(|_| count > 0);
            let expected_ns = longest.and_then(|(_, end_ns)| delay_ns(*end_ns)).map(|ns| ns.min(longest_ns));
            assert_eq!(longest_run_delay_ns, expected_ns, "{turns:?}");
        }
    }

    #[test]
    fn a_stop_is_what_was_no_run_delay() {
        for (longest_run_delay_ns, expected_ns) in [(None, 0), (Some(0), 30), (Some(29), 1), (Some(31), 0)] {
            let stalls = StallCounts { longest_ns: 30, longest_run_delay_ns, ..StallCounts::default() };
            assert_eq!(stalls.longest_stop_ns(), expected_ns, "{longest_run_delay_ns:?}");
        }
    }

    #[test]
    fn the_longest_of_all_workers_is_named() {
        let of = |worker, longest_ns| {
            let count = u64::from(longest_ns > 0);
            let stalls = StallCounts {
                count,
                total_ns: longest_ns,
                longest_ns,
                longest_at_ns: Some(u64::from(worker)),
                longest_run_delay_ns: Some(7),
            };
            WorkerUsage { worker, stalls, ..WorkerUsage::default() }
        };
        let workers = [of(0, 0), of(1, 20 * MS), of(2, 30 * MS), of(3, 30 * MS)];
        assert_eq!(StallCounts::longest_of(&workers).map(|usage| usage.worker), Some(2));
        let all = StallCounts { total_ns: 80 * MS, count: 3, ..workers[2].stalls };
        assert_eq!(StallCounts::of_all(&workers), all);
        assert_eq!(StallCounts::longest_of(&workers[..1]), None);
    }

    fn time(length_ns: u64, worker: Option<(u64, Option<u64>)>, cpus: Option<(u64, u64)>) -> ClientTime {
        let mut interval = RecorderSet::new(&Layout::default()).take_interval(0, 7, 7 + length_ns);
        interval.worker_time = worker.map(|(busy_ns, run_delay_ns)| WorkerTime { busy_ns, run_delay_ns });
        interval.cpu_time = cpus.map(|(total_ns, stolen_ns)| CpuTime { total_ns, stolen_ns });
        ClientTime::of(&interval)
    }

    /// Two workers, of which one is delayed and one does not know, and an interval that is too short to be a maximum.
    #[test]
    fn shares_are_those_of_all_workers_and_of_the_worst() {
        let pieces = [
            time(100 * MS, Some((30 * MS, Some(20 * MS))), Some((200 * MS, 10 * MS))),
            time(100 * MS, Some((10 * MS, Some(0))), Some((200 * MS, 0))),
            time(100 * MS, Some((44 * MS, None)), None),
            time(MS, Some((MS, Some(MS))), None),
            time(100 * MS, None, None),
        ];
        let sum = |order: &[usize]| {
            let mut sum = ClientTime::default();
            order.iter().for_each(|index| sum.merge(&pieces[*index]));
            sum
        };
        let whole = sum(&[0, 1, 2, 3, 4]);
        assert_eq!(whole, sum(&[4, 2, 0, 3, 1]));
        assert_eq!(
            whole.shares().unwrap(),
            ClientShares {
                busy: Some(0.282),
                busiest: Some(0.5),
                run_delay: Some(0.104),
                most_delayed: Some(0.2),
                stolen: Some(0.025),
            }
        );
        assert_eq!(pieces[4].shares(), None);
        // What a worker does when it ends takes all of its last interval.
        assert_eq!(pieces[3].shares().unwrap().busy, None);
        assert_eq!(pieces[2].shares().unwrap().run_delay, None);
    }
}
