//! What a run cost the client: processor time, system calls, and what of its time each worker could use.
//!
//! Measured elsewhere; here it is data for the checks and the report. Everything covers the measured window.

use crate::interval::Interval;
use brunt_plan::op::ClassId;
use brunt_plan::phase::Phase;
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
    /// When it began, counted from the beginning of the window.
    pub longest_at_ns: u64,
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
            (self.longest_ns, self.longest_at_ns) = (took_ns, begin_ns - window.start);
            self.longest_run_delay_ns = run_delay_ns.map(|ns| ns.min(took_ns));
        }
    }

    /// The longest one, of a window that begins at `measure_ns`.
    pub fn longest_span(&self, measure_ns: u64) -> Range<u64> {
        let start_ns = measure_ns + self.longest_at_ns;
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
        for entry in interval.books.iter().filter(|entry| is_open(entry.class)) {
            let counts = entry.in_window();
            self.growth += (counts.waiting_at_end + counts.in_flight_at_end) as i64;
            self.growth -= (counts.waiting_at_start + counts.in_flight_at_start) as i64;
            self.due += if entry.phase == Phase::Measure { entry.counts.requests.scheduled } else { 0 };
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
    /// Had it no time left?
    pub fn is_busy(&self) -> bool {
        let taken_ns = self.busy_ns + self.run_delay_ns.unwrap_or(0);
        self.wall_ns > 0 && taken_ns as f64 >= BUSY * self.wall_ns as f64
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

#[cfg(test)]
mod tests {
    use super::*;

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
            assert_eq!([count, total_ns, longest_ns, longest_at_ns], expected, "{turns:?}");
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
                longest_at_ns: u64::from(worker),
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
}
