//! When a second of a run is complete: as soon as every worker has handed over what it recorded in it.
//!
//! Times are those of the run's clock. Invariant: seconds end in order, each at most once; those that were missed are one.

use std::collections::BTreeMap;

/// Its length.
pub const SECOND_NS: u64 = 1_000_000_000;
/// How long a worker that stopped, ended or runs on an agent is waited for: two intervals.
pub const SETTLE_NS: u64 = 200_000_000;

/// The seconds of one run.
#[derive(Debug, Default)]
pub(crate) struct CompleteSeconds {
    /// The end of the next one; 0 before anything is known.
    due_ns: u64,
    /// The end of the last one.
    taken_ns: u64,
    /// Up to when each worker has handed over what it recorded.
    reported_ns: BTreeMap<u32, u64>,
}

impl CompleteSeconds {
    /// Seconds are counted from this instant.
    pub(crate) fn start(&mut self, origin_ns: u64) {
        let before = self.taken_ns.saturating_sub(origin_ns) / SECOND_NS;
        self.due_ns = origin_ns + (before + 1) * SECOND_NS;
    }

    /// A worker has handed over what it recorded up to an instant.
    pub(crate) fn reported(&mut self, worker: u32, until_ns: u64) {
        let held = self.reported_ns.entry(worker).or_default();
        *held = until_ns.max(*held);
    }

    /// The end of a second, if one is complete now.
    pub(crate) fn take(&mut self, now_ns: u64) -> Option<u64> {
        if self.due_ns == 0 {
            self.due_ns = now_ns + SECOND_NS;
        }
        let is_complete =
            !self.reported_ns.is_empty() && self.reported_ns.values().all(|ns| *ns >= self.due_ns);
        let late_ns = now_ns.checked_sub(self.due_ns + if is_complete { 0 } else { SETTLE_NS })?;
        self.taken_ns = self.due_ns + late_ns / SECOND_NS * SECOND_NS;
        self.due_ns = self.taken_ns + SECOND_NS;
        Some(self.taken_ns)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    enum See {
        Start(u64),
        Reported(u32, u64),
        /// Now, and the end of the second that is there.
        Tick(u64, Option<u64>),
    }
    use See::{Reported, Start, Tick};

    /// Milliseconds.
    fn check(seen: &[See]) {
        const MS: u64 = 1_000_000;
        let mut seconds = CompleteSeconds::default();
        for (index, see) in seen.iter().enumerate() {
            match see {
                Start(at) => seconds.start(at * MS),
                Reported(worker, until) => seconds.reported(*worker, until * MS),
                Tick(now, expected) => {
                    assert_eq!(seconds.take(now * MS), expected.map(|at| at * MS), "{index}: {now}");
                }
            }
        }
    }

    #[test]
    fn seconds_are_shown_once_all_workers_reported() {
        check(&[
            Start(500),
            Reported(0, 1_400),
            Reported(1, 1_400),
            Tick(1_410, None),
            Reported(0, 1_500),
            Tick(1_500, None),
            Reported(1, 1_500),
            Tick(1_510, Some(1_500)),
            Tick(1_520, None),
            Reported(0, 1_600),
            Tick(1_610, None),
            // One is stopped, and has told all at last.
            Reported(0, 2_500),
            Tick(2_510, None),
            Tick(2_699, None),
            Tick(2_700, Some(2_500)),
            Reported(1, 3_500),
            Reported(0, 3_500),
            Tick(3_500, Some(3_500)),
        ]);
    }

    #[test]
    fn seconds_before_the_schedule_count_from_the_first_tick() {
        check(&[
            Tick(20, None),
            Tick(1_020, None),
            Tick(1_220, Some(1_020)),
            Tick(2_219, None),
            Tick(2_220, Some(2_020)),
            // From here on they are those of the schedule.
            Start(2_700),
            Tick(3_400, None),
            Tick(3_900, Some(3_700)),
            // The control thread was stopped.
            Tick(9_950, Some(9_700)),
            Tick(9_960, None),
            // The window is known to begin earlier.
            Start(2_500),
            Tick(10_699, None),
            Tick(10_700, Some(10_500)),
        ]);
    }
}
