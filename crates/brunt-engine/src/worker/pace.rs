//! Decides between sleeping, polling and sending, from the next intended time.
//!
//! Time is a parameter. A sleep ends late by the kernel's wake-up time (tens of microseconds), so a hybrid wait
//! sleeps until a margin before the deadline and polls for the rest. The margin follows the observed lateness: the
//! 99th percentile of the last [`WINDOW`] timed sleeps.

use crate::io::Until;
use brunt_plan::plan::Wait;

/// Initial margin.
const MARGIN_START_NS: u64 = 100_000;
/// Maximum margin: longer spinning per request wastes a CPU.
const MARGIN_MAX_NS: u64 = 1_000_000;
const MARGIN_MIN_NS: u64 = 5_000;
/// Sleeps per computation of the margin.
const WINDOW: usize = 128;

/// How a worker waits.
#[derive(Debug)]
pub(crate) struct Pace {
    wait: Wait,
    margin_ns: u64,
    late_ns: [u64; WINDOW],
    observed: usize,
}

impl Pace {
    /// `may_spin`: this worker has a CPU to itself.
    pub(crate) fn new(wait: Wait, may_spin: bool) -> Self {
        let wait = if wait == Wait::Hybrid && !may_spin { Wait::Sleep } else { wait };
        Self { wait, margin_ns: MARGIN_START_NS, late_ns: [0; WINDOW], observed: 0 }
    }

    /// The wait mode on this host.
    pub(crate) fn wait(&self) -> Wait {
        self.wait
    }

    /// How to wait at `now_ns` when an open schedule is due at `due_ns` and other timers at `timer_ns`.
    #[inline]
    pub(crate) fn until(&self, now_ns: u64, due_ns: u64, timer_ns: u64) -> Until {
        let first_ns = due_ns.min(timer_ns);
        if first_ns <= now_ns {
            return Until::Now;
        }
        match self.wait {
            Wait::Sleep => Until::Instant(first_ns),
            Wait::Spin if due_ns != u64::MAX => Until::Now,
            Wait::Spin => Until::Instant(first_ns),
            Wait::Hybrid => {
                let look_ns = due_ns.saturating_sub(self.margin_ns);
                if look_ns <= now_ns { Until::Now } else { Until::Instant(look_ns.min(timer_ns)) }
            }
        }
    }

    /// Notes that a sleep which ended by its timer ended this late.
    pub(crate) fn observe(&mut self, late_ns: u64) {
        self.late_ns[self.observed % WINDOW] = late_ns;
        self.observed += 1;
        if self.observed.is_multiple_of(WINDOW) {
            let mut sorted = self.late_ns;
            sorted.sort_unstable();
            let p99 = sorted[WINDOW - 1 - WINDOW / 100];
            self.margin_ns = (p99 + p99 / 4).clamp(MARGIN_MIN_NS, MARGIN_MAX_NS);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NEVER: u64 = u64::MAX;

    #[test]
    fn waits_follow_the_policy() {
        let hybrid = Pace::new(Wait::Hybrid, true);
        let spin = Pace::new(Wait::Spin, true);
        let sleep = Pace::new(Wait::Sleep, true);
        let table = [
            (&hybrid, 1_000, 5_000_000, NEVER, Until::Instant(4_900_000)),
            (&hybrid, 4_950_000, 5_000_000, NEVER, Until::Now),
            (&hybrid, 1_000, 5_000_000, 2_000, Until::Instant(2_000)),
            (&hybrid, 1_000, NEVER, 2_000, Until::Instant(2_000)),
            (&spin, 1_000, 5_000_000, NEVER, Until::Now),
            (&spin, 1_000, NEVER, 2_000, Until::Instant(2_000)),
            (&sleep, 1_000, 5_000_000, NEVER, Until::Instant(5_000_000)),
            (&sleep, 5_000_000, 5_000_000, NEVER, Until::Now),
        ];
        for (pace, now_ns, due_ns, timer_ns, expected) in table {
            assert_eq!(pace.until(now_ns, due_ns, timer_ns), expected, "{:?} at {now_ns}", pace.wait());
        }
        assert_eq!(Pace::new(Wait::Hybrid, false).wait(), Wait::Sleep);
    }

    #[test]
    fn the_margin_follows_observed_lateness() {
        let mut pace = Pace::new(Wait::Hybrid, true);
        for late_ns in 1..=WINDOW as u64 {
            pace.observe(late_ns * 1_000);
        }
        // The second highest of 128 observations, and a quarter more.
        assert_eq!(pace.margin_ns, 127_000 + 31_750);
    }
}
