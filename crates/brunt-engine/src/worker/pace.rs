//! Decides between sleeping, polling and sending, from the next intended time and the next expected reply.
//!
//! Time is a parameter. A sleep ends late by the kernel's wake-up time (tens of microseconds), so a wait sleeps until a
//! margin before the intended time and polls for the rest. A hybrid wait polls where replies are expected, too
//! ([`super::expected_replies`]). The margin follows the observed lateness of the last [`WINDOW`] timed sleeps: a hybrid
//! wait is hardly ever late, and one that sleeps polls after one sleep in four at the most.

use super::expected_replies::{ExpectedReplies, InFlight};
use crate::io::Until;
use crate::state::recording::Ended;
use brunt_plan::plan::{Plan, Wait};
use std::cmp::Ordering;

/// Initial margin.
const MARGIN_START_NS: u64 = 100_000;
/// Maximum margin: longer spinning per request wastes a CPU.
const MARGIN_MAX_NS: u64 = 1_000_000;
const MARGIN_MIN_NS: u64 = 5_000;
/// Maximum margin of a wait that is to sleep: sleeps that end later than this lack a CPU.
const ASLEEP_MARGIN_MAX_NS: u64 = 50_000;
/// Length of a sleep that begins within the margin.
const SLEEP_MIN_NS: u64 = 1_000;
/// Sleeps per computation of the margin.
const WINDOW: usize = 128;

/// How a worker waits.
#[derive(Debug)]
pub(crate) struct Pace {
    wait: Wait,
    replies: ExpectedReplies,
    margin_ns: u64,
    /// The intended time for which the last sleep was, if it is to sleep.
    slept_for_ns: u64,
    late_ns: [u64; WINDOW],
    observed: usize,
}

/// CPUs of this host, as far as waiting minds them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Cpus {
    /// Fewer than workers.
    Shared,
    /// One for each worker.
    Enough,
    /// One for each worker, and others.
    Spare,
}

impl Cpus {
    /// This many workers on this many CPUs.
    pub(crate) fn beside(workers: u32, cpus: u32) -> Self {
        match workers.cmp(&cpus) {
            Ordering::Greater => Self::Shared,
            Ordering::Equal => Self::Enough,
            Ordering::Less => Self::Spare,
        }
    }
}

/// What a worker waits for.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Awaited {
    /// Next intended time of an open schedule, `u64::MAX` if there is none.
    pub due_ns: u64,
    /// Next time of anything else.
    pub timer_ns: u64,
    pub in_flight: InFlight,
}

impl Pace {
    /// Replies are not polled for where they are gathered, nor in a closed loop that leaves no CPU for a server on this
    /// host.
    pub(crate) fn of(plan: &Plan, cpus: Cpus) -> Self {
        let gathers = plan.gather.completions > 1;
        let has_cpu = cpus == Cpus::Spare || plan.has_open_loop();
        Self::new(plan.wait, cpus, !gathers && has_cpu)
    }

    fn new(wait: Wait, cpus: Cpus, polls_for_replies: bool) -> Self {
        let wait = if wait == Wait::Hybrid && cpus == Cpus::Shared { Wait::Sleep } else { wait };
        let sleeps = wait == Wait::Sleep;
        Self {
            wait,
            replies: ExpectedReplies::new(!sleeps && polls_for_replies),
            margin_ns: if sleeps { 0 } else { MARGIN_START_NS },
            slept_for_ns: u64::MAX,
            late_ns: [0; WINDOW],
            observed: 0,
        }
    }

    /// The wait mode on this host.
    pub(crate) fn wait(&self) -> Wait {
        self.wait
    }

    /// How to wait at `now_ns`, when nothing is due.
    #[inline]
    pub(crate) fn until(&mut self, now_ns: u64, awaited: Awaited, ended: &Ended) -> Until {
        let Awaited { due_ns, timer_ns, in_flight } = awaited;
        match self.wait {
            Wait::Sleep => self.asleep_until(now_ns, due_ns, timer_ns),
            Wait::Spin if due_ns != u64::MAX => Until::Now,
            Wait::Hybrid | Wait::Spin => {
                // Whatever is due: it learns of sends here.
                let reply_ns = self.replies.poll_from_ns(now_ns, in_flight, ended);
                let poll_ns = due_ns.saturating_sub(self.margin_ns).min(reply_ns);
                if poll_ns <= now_ns { Until::Now } else { Until::Instant(poll_ns.min(timer_ns)) }
            }
        }
    }

    /// How to wait without polling, but for the rest of a sleep that ended before the margin was over.
    fn asleep_until(&mut self, now_ns: u64, due_ns: u64, timer_ns: u64) -> Until {
        let wake_ns = due_ns.saturating_sub(self.margin_ns);
        let has_slept = std::mem::replace(&mut self.slept_for_ns, due_ns) == due_ns;
        if wake_ns <= now_ns && has_slept {
            Until::Now
        } else {
            let sleep_end_ns = wake_ns.max(now_ns + SLEEP_MIN_NS).min(due_ns);
            Until::Instant(sleep_end_ns.min(timer_ns))
        }
    }

    /// Has it anything to learn?
    #[inline]
    pub(crate) fn learns(&self, now_ns: u64) -> bool {
        self.replies.is_due(now_ns)
    }

    /// Predicts replies from the last ones. `run_delay_ns`: time in which this worker was runnable without a CPU.
    pub(crate) fn learn(&mut self, now_ns: u64, run_delay_ns: Option<u64>) {
        self.replies.learn(now_ns, self.margin_ns, run_delay_ns);
    }

    /// Notes that a sleep which ended by its timer ended this late. Returns what a wake-up takes at the most, but for a
    /// tenth of them, once in [`WINDOW`] sleeps.
    pub(crate) fn observe(&mut self, late_ns: u64) -> Option<u64> {
        self.late_ns[self.observed % WINDOW] = late_ns;
        self.observed += 1;
        if !self.observed.is_multiple_of(WINDOW) {
            return None;
        }
        let mut sorted = self.late_ns;
        sorted.sort_unstable();
        let p99 = sorted[WINDOW - 1 - WINDOW / 100];
        self.margin_ns = match self.wait {
            Wait::Sleep => sorted[WINDOW / 4].min(ASLEEP_MARGIN_MAX_NS),
            Wait::Hybrid | Wait::Spin => (p99 + p99 / 4).clamp(MARGIN_MIN_NS, MARGIN_MAX_NS),
        };
        Some(sorted[WINDOW - 1 - WINDOW / 10])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NEVER: u64 = u64::MAX;

    /// A worker that had no reply expects them within 200 us of their send, and wakes at most 100 us late.
    #[test]
    fn waits_follow_the_policy() {
        let pace = |wait, cpus, polls| move || Pace::new(wait, cpus, polls);
        let (hybrid, spin, sleep) = (
            pace(Wait::Hybrid, Cpus::Enough, true),
            pace(Wait::Spin, Cpus::Enough, true),
            pace(Wait::Sleep, Cpus::Enough, true),
        );
        let (closed, closed_full) =
            (pace(Wait::Hybrid, Cpus::Spare, true), pace(Wait::Hybrid, Cpus::Enough, false));
        let table: [(&dyn Fn() -> Pace, _, _, _, _, _); 17] = [
            (&hybrid, 1_000_000, 5_000_000, NEVER, 0, Until::Instant(4_900_000)),
            (&hybrid, 4_950_000, 5_000_000, NEVER, 0, Until::Now),
            (&hybrid, 1_000_000, 5_000_000, 2_000_000, 0, Until::Instant(2_000_000)),
            (&hybrid, 1_000_000, NEVER, 2_000_000, 0, Until::Instant(2_000_000)),
            (&spin, 1_000, 5_000_000, NEVER, 0, Until::Now),
            (&spin, 1_000, NEVER, 2_000, 0, Until::Instant(2_000)),
            (&spin, 1_000, NEVER, 2_000, 900, Until::Now),
            (&sleep, 1_000, 5_000_000, NEVER, 0, Until::Instant(5_000_000)),
            (&sleep, 1_000, 5_000_000, NEVER, 900, Until::Instant(5_000_000)),
            // The reply is expected, overdue, or not worth a CPU that the server may need.
            (&hybrid, 1_000, 5_000_000, NEVER, 900, Until::Now),
            (&hybrid, 200_899, 5_000_000, NEVER, 900, Until::Now),
            (&hybrid, 200_900, 5_000_000, NEVER, 900, Until::Instant(4_900_000)),
            (&closed, 1_000, NEVER, 9_000_000, 900, Until::Now),
            (&closed, 300_000, NEVER, 9_000_000, 900, Until::Instant(9_000_000)),
            (&hybrid, 300_000, 310_000, NEVER, 900, Until::Now),
            (&closed_full, 1_000, NEVER, 9_000_000, 900, Until::Instant(9_000_000)),
            (&closed, 1_000_000, NEVER, 9_000_000, 0, Until::Instant(9_000_000)),
        ];
        for (pace, now_ns, due_ns, timer_ns, sent_ns, expected) in table {
            let mut pace = pace();
            // It has had a CPU for a second.
            let later = |ns: u64| if ns == 0 { 0 } else { ns.saturating_add(1_000_000_000) };
            for at_ns in [0, later(1)] {
                if !pace.learns(at_ns) {
                    continue;
                }
                pace.learn(at_ns, None);
            }
            let in_flight = InFlight { requests: u32::from(sent_ns > 0), sent_ns: later(sent_ns) };
            let awaited = Awaited { due_ns: later(due_ns), timer_ns: later(timer_ns), in_flight };
            let found = match pace.until(later(now_ns), awaited, &Ended::default()) {
                Until::Instant(at_ns) => Until::Instant(at_ns - 1_000_000_000),
                Until::Now => Until::Now,
            };
            assert_eq!(found, expected, "{:?} at {now_ns}, {due_ns}, {sent_ns}", pace.wait());
        }
        assert_eq!(Pace::new(Wait::Hybrid, Cpus::Shared, true).wait(), Wait::Sleep);
    }

    #[test]
    fn the_margin_follows_observed_lateness() {
        let mut pace = Pace::new(Wait::Hybrid, Cpus::Enough, true);
        for late_ns in 1..=WINDOW as u64 {
            let wake_up_ns = pace.observe(late_ns * 1_000);
            assert_eq!(wake_up_ns, (late_ns == WINDOW as u64).then_some(116_000));
        }
        // The second highest of 128 observations, and a quarter more.
        assert_eq!(pace.margin_ns, 127_000 + 31_750);
        // A wait that is to sleep polls for no longer than three sleeps in four are late.
        let mut asleep = Pace::new(Wait::Sleep, Cpus::Enough, true);
        let awaited =
            Awaited { due_ns: 90_000, timer_ns: NEVER, in_flight: InFlight { requests: 1, sent_ns: 1 } };
        for (first_us, margin_us) in [(0, 33), (30, 50)] {
            for late_us in (first_us + 1..).take(WINDOW) {
                asleep.observe(late_us * 1_000);
            }
            let begin_ns = 90_000 - margin_us * 1_000;
            let mut until = |now_ns| asleep.until(now_ns, awaited, &Ended::default());
            let found = [until(begin_ns - 9_000), until(begin_ns)];
            let expected = [Until::Instant(begin_ns), Until::Now];
            assert_eq!(found, expected, "{first_us}");
        }
    }
}
