//! The measured window of a run, the times of its phases, and what happened inside the window, counted by when it happened: the numerators of
//! rates.
//!
//! Not request accounting, which says what became of the ops that were *due* in it, whenever. An op counts here whatever phase it was
//! due in: one of the warm-up that is answered inside the window does, one of the window that is answered in the drain does
//! not. What waits and what is in flight at either edge is found when an op ends, what was sent when it is sent, so that
//! the balances can fail. Invariants, once a run has drained, for every (phase, class, op): waiting at the start + due in the
//! window = sent + given up + waiting at the end, and in flight at the start + sent = ended + in flight at the end.

use crate::counts::counts;
use crate::sample::overlap_ns;
use brunt_plan::outcome::OutcomeClass;
use brunt_plan::phase::Phase;
use serde::{Deserialize, Serialize};
use std::ops::Range;

/// Did an op that ended so fail? Not the opposite of completed: an unacknowledged op is neither.
pub const fn is_failed(class: OutcomeClass) -> bool {
    matches!(class, OutcomeClass::Error | OutcomeClass::Timeout | OutcomeClass::Mismatch | OutcomeClass::Lost)
}

/// Ops that ended in the classes that `of` selects.
pub(crate) fn count_of_classes(
    outcomes: &[u64; OutcomeClass::COUNT],
    of: impl Fn(OutcomeClass) -> bool,
) -> u64 {
    OutcomeClass::ALL.into_iter().filter(|class| of(*class)).map(|class| outcomes[class as usize]).sum()
}

counts! {
    /// Counts of one window.
    pub struct WindowCounts {
        /// Ops sent in it.
        pub sent: u64,
        /// Ops ended in it, by [`OutcomeClass`].
        pub outcomes: [u64; OutcomeClass::COUNT],
        /// Keys that ops completed in it asked for and that were not there.
        pub missed: u64,
        /// Ops given up in it that had not been sent.
        pub abandoned: u64,
        /// Ops that were due before it began and had been neither sent nor given up.
        pub waiting_at_start: u64,
        /// Ops that were due before it ended and had been neither sent nor given up.
        pub waiting_at_end: u64,
        /// Ops that were sent before it began and had not ended.
        pub in_flight_at_start: u64,
        /// Ops that were sent before it ended and had not ended.
        pub in_flight_at_end: u64,
        /// Time in it of ops whose response time is not one of it: they were due before it, or never ended.
        pub inside_us: u64,
        /// Time behind it of ops whose response time is one of it: they were due in it, and ended later.
        pub behind_us: u64,
    }
}

impl WindowCounts {
    /// Ops that ended in this class.
    pub const fn outcome(&self, class: OutcomeClass) -> u64 {
        self.outcomes[class as usize]
    }

    /// Ops that the server answered as the protocol provides.
    pub fn completed(&self) -> u64 {
        count_of_classes(&self.outcomes, OutcomeClass::is_completed)
    }

    /// Ops that failed after they were sent: error + timeout + mismatch + lost.
    pub fn failed(&self) -> u64 {
        count_of_classes(&self.outcomes, is_failed)
    }

    /// Ops of which all that will be known is known: completed, answered with an error or a wrong value, or sent without
    /// asking for a reply. Ops that timed out or were lost are not among them.
    pub fn answered(&self) -> u64 {
        count_of_classes(&self.outcomes, |class| !matches!(class, OutcomeClass::Timeout | OutcomeClass::Lost))
    }

    /// Ops that ended, in whatever way.
    pub fn ended(&self) -> u64 {
        self.outcomes.iter().sum()
    }

    /// Do the numbers add up exactly, where `due` of these ops were due in the window? To be asked when the run has
    /// drained.
    pub fn adds_up(&self, due: u64) -> bool {
        self.waiting_at_start + due == self.sent + self.abandoned + self.waiting_at_end
            && self.in_flight_at_start + self.sent == self.ended() + self.in_flight_at_end
    }
}

/// Where a window begins and ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct WindowEdges {
    start_ns: u64,
    end_ns: u64,
    length_ns: u64,
}

impl WindowEdges {
    /// Before the window is known: nothing lies in it.
    pub(crate) const UNKNOWN: Self = Self { start_ns: u64::MAX, end_ns: u64::MAX, length_ns: 0 };

    /// A window that ends before it begins, because the run was ended in the warm-up, is empty.
    pub(crate) fn new(start_ns: u64, end_ns: u64) -> Self {
        let end_ns = end_ns.max(start_ns);
        Self { start_ns, end_ns, length_ns: end_ns - start_ns }
    }

    /// Does an instant lie in the window? The end does not.
    #[inline(always)]
    pub(crate) fn holds(&self, at_ns: u64) -> bool {
        at_ns.wrapping_sub(self.start_ns) < self.length_ns
    }

    /// Does what happens to an op at this instant not lie where one that was due in the window has it, which is inside, or
    /// one that was not, which is before?
    #[inline(always)]
    pub(crate) fn is_out_of_phase(&self, is_measured: bool, at_ns: u64) -> bool {
        at_ns >= if is_measured { self.end_ns } else { self.start_ns }
    }

    /// Notes at which edges several ops of this phase waited or were in flight, which were due, sent and then ended at these
    /// instants, and how much of their time lies beyond the edge of their phase; `u64::MAX` for what never happened. One that was
    /// never sent ended when it was given up, and was sent then as far as this goes.
    pub(crate) fn note(
        &self,
        counts: &mut WindowCounts,
        phase: Phase,
        [intended_ns, sent_ns, done_ns]: [u64; 3],
        count: u32,
    ) {
        let if_so = |is_so: bool| if is_so { u64::from(count) } else { 0 };
        let due_before_start = phase == Phase::Warmup;
        let due_before_end = matches!(phase, Phase::Warmup | Phase::Measure);
        counts.waiting_at_start += if_so(due_before_start && sent_ns >= self.start_ns);
        counts.waiting_at_end += if_so(due_before_end && sent_ns >= self.end_ns);
        counts.in_flight_at_start += if_so(sent_ns < self.start_ns && done_ns >= self.start_ns);
        counts.in_flight_at_end += if_so(sent_ns < self.end_ns && done_ns >= self.end_ns);
        // Not counted while a window has no end.
        let is_bound = self.end_ns != u64::MAX || done_ns != u64::MAX;
        if is_bound && (due_before_start || due_before_end && done_ns == u64::MAX) {
            let each_ns = overlap_ns(intended_ns, done_ns, self.start_ns, self.end_ns);
            counts.inside_us += u64::from(count) * (each_ns / 1_000);
        } else if is_bound && due_before_end {
            let each_ns = done_ns.saturating_sub(self.end_ns.max(intended_ns));
            counts.behind_us += u64::from(count) * (each_ns / 1_000);
        }
    }
}

/// The times of a run on its own clock, nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunTimes {
    /// Connections were established and preload was over: the schedule began.
    pub start_ns: u64,
    /// The measured window began.
    pub measure_ns: u64,
    /// It ended; `u64::MAX` while that is open.
    pub end_ns: u64,
    /// The last operation had ended or was given up.
    pub drained_ns: u64,
    /// From the first attempt to connect until every key was confirmed.
    pub prepare_ns: u64,
    /// The wall clock where this clock is at 0, in microseconds since 1970.
    pub epoch_us: Option<u64>,
}

impl Default for RunTimes {
    fn default() -> Self {
        Self::NONE
    }
}

impl RunTimes {
    /// Those of no worker, which every worker's replace.
    pub const NONE: Self = Self {
        start_ns: u64::MAX,
        measure_ns: u64::MAX,
        end_ns: 0,
        drained_ns: 0,
        prepare_ns: 0,
        epoch_us: None,
    };

    /// From the first worker's to the last one's.
    pub fn merge(&mut self, other: &Self) {
        self.start_ns = self.start_ns.min(other.start_ns);
        self.measure_ns = self.measure_ns.min(other.measure_ns);
        self.end_ns = self.end_ns.max(other.end_ns);
        self.drained_ns = self.drained_ns.max(other.drained_ns);
        self.prepare_ns = self.prepare_ns.max(other.prepare_ns);
        self.epoch_us = [self.epoch_us, other.epoch_us].into_iter().flatten().min();
    }

    /// The phase of an instant and the span of time of that phase; what lies before the schedule is preload.
    pub(crate) fn phase_at(&self, at_ns: u64) -> (Phase, Range<u64>) {
        let Self { start_ns, measure_ns, end_ns, .. } = *self;
        if at_ns < start_ns {
            (Phase::Preload, 0..start_ns)
        } else if at_ns < measure_ns {
            (Phase::Warmup, start_ns..measure_ns)
        } else if at_ns < end_ns {
            (Phase::Measure, measure_ns..end_ns)
        } else {
            (Phase::Drain, end_ns..u64::MAX)
        }
    }

    /// Length of the measured window in nanoseconds.
    pub const fn duration_ns(&self) -> u64 {
        self.end_ns.saturating_sub(self.measure_ns)
    }

    /// Length of the measured window in seconds.
    pub fn seconds(&self) -> f64 {
        self.duration_ns() as f64 / 1e9
    }

    /// `count` per second of the window; 0 for a window without length.
    pub(crate) fn rate(&self, count: u64) -> f64 {
        if self.duration_ns() == 0 { 0.0 } else { count as f64 / self.seconds() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Of a window from 100 to 1000 us: (phase, due, done or `None` of what never ended, in us) → inside and behind.
    #[test]
    fn time_beyond_the_edge_of_the_phase() {
        let edges = WindowEdges::new(100_000, 1_000_000);
        let table = [
            (Phase::Warmup, 40, Some(90), (0, 0)),
            (Phase::Warmup, 40, Some(150), (50, 0)),
            (Phase::Warmup, 40, Some(1_200), (900, 0)),
            (Phase::Warmup, 40, None, (900, 0)),
            (Phase::Measure, 500, Some(900), (0, 0)),
            (Phase::Measure, 500, Some(1_200), (0, 200)),
            (Phase::Measure, 500, None, (500, 0)),
            (Phase::Drain, 1_100, Some(1_200), (0, 0)),
        ];
        for (phase, due_us, done_us, expected) in table {
            let (intended_ns, done_ns) = (due_us * 1_000, done_us.map_or(u64::MAX, |us: u64| us * 1_000));
            let mut counts = WindowCounts::default();
            edges.note(&mut counts, phase, [intended_ns, intended_ns, done_ns], 3);
            let found = (counts.inside_us / 3, counts.behind_us / 3);
            assert_eq!(found, expected, "{phase:?} {due_us} {done_us:?}");
        }
        // The end is not known yet.
        let mut counts = WindowCounts::default();
        let instants = [200_000, 200_000, u64::MAX];
        WindowEdges::new(100_000, u64::MAX).note(&mut counts, Phase::Measure, instants, 1);
        assert_eq!(counts.inside_us, 0);
    }
}
