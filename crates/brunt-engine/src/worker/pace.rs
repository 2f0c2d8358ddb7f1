//! Decides between sleeping, polling and sending, from the next intended time and the next expected reply.
//!
//! Time is a parameter. A sleep ends late by the kernel's wake-up time (tens of microseconds), and every latency that it hides in is as
//! much longer; so a wait sleeps until a margin before the intended time and polls for the rest. A hybrid wait polls where replies are
//! expected, too: after a send, for as long as replies usually take. The margin follows the observed lateness of the last [`WINDOW`]
//! timed sleeps: a hybrid wait is hardly ever late, and one that sleeps polls after one sleep in four at the most. Invariants: polling
//! for a reply begins at most [`POLLS_MAX_NS`] before it ends, and what is polled for in vain is at most one part in [`VAIN_PARTS`] of
//! the time.

use crate::io::Until;
use crate::state::recording::Ended;
use brunt_plan::plan::{Plan, Wait};
use brunt_stats::sample::Times;
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

/// Maximum time of polling per send. A reply that takes longer is late, or cannot be predicted.
const POLLS_MAX_NS: u64 = 200_000;
/// Three quarters of the replies come within this time of the first poll, or none is polled for: of replies that vary by
/// more, a wake-up is a small part.
const SPREAD_MAX_NS: u64 = 100_000;
/// Polling that ends without a reply takes at most one part in this many of the time,
const VAIN_PARTS: u64 = 8;
/// averaged over this time.
const VAIN_OVER_NS: u64 = 100_000_000;
/// Part of the time for which a worker may be runnable without a CPU; of more, others need the CPU,
const RUN_DELAY_PARTS: u64 = 20;
/// and the worker polls for no reply for so long; as much before it polls at all, and twice as much each time it happens
/// again.
const YIELD_NS: u64 = 200_000_000;
const YIELD_MAX_NS: u64 = 10_000_000_000;
/// Period of predictions. A program that takes the CPU once for some milliseconds is no reason to sleep.
const LEARN_NS: u64 = 100_000_000;
/// While no reply is polled for, waits look here this often, and note what the last reply took: more often than is
/// needed for a prediction.
const NOTE_NS: u64 = 50_000;
/// Sends whose replies are expected later. With more, some reply is always expected soon.
const SENDS: usize = 64;

/// Part of the time after a send.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Stretch {
    from_ns: u64,
    until_ns: u64,
}

impl Stretch {
    const NOTHING: Self = Self { from_ns: 0, until_ns: 0 };

    /// Where to poll for replies that take this long, if a sleep ends at most `margin_ns` late.
    fn of(service: ServiceQuantiles, margin_ns: u64) -> Self {
        let ServiceQuantiles { low_ns, p75_ns, high_ns } = service;
        // A sleep shorter than the margin is none.
        let from_ns = if low_ns > 2 * margin_ns { low_ns - margin_ns } else { 0 };
        if p75_ns > low_ns.max(from_ns + margin_ns) + SPREAD_MAX_NS {
            return Self::NOTHING;
        }
        // Polling ends with the reply, so a late end costs only what the latest replies take.
        Self { from_ns, until_ns: (2 * high_ns).min(from_ns + POLLS_MAX_NS) }
    }
}

/// Requests whose replies are awaited.
#[derive(Clone, Copy, Debug)]
pub(crate) struct InFlight {
    pub requests: u32,
    /// When the last request was sent.
    pub sent_ns: u64,
}

/// The replies that a worker expects.
#[derive(Debug)]
pub(crate) struct ExpectedReplies {
    service: ServiceTimes,
    stretch: Stretch,
    /// Until when no reply is polled for, whatever is sent.
    rests_until_ns: u64,
    /// The end of the stretch where it begins with the send, otherwise 0.
    at_once_ns: u64,
    /// The last send whose reply was expected later, and before it others: a ring.
    sends_ns: [u64; SENDS],
    first: usize,
    count: usize,
    /// End of the last operation that was noted.
    noted_ns: u64,
    /// The send up to which polling in vain was charged, and until when it is paid for.
    charged_ns: u64,
    paid_ns: u64,
    learn_ns: u64,
    /// The last reading of the run delay, with its time.
    run_delay: Option<(u64, u64)>,
    /// Until when it leaves the CPU to others, and for how long it did last.
    yields_until_ns: u64,
    yield_ns: u64,
}

impl ExpectedReplies {
    /// Until replies have come, each is expected at once, but none before the worker has had its CPU for a while.
    pub(crate) fn new(is_on: bool) -> Self {
        let stretch = Stretch { from_ns: 0, until_ns: POLLS_MAX_NS };
        Self {
            service: ServiceTimes::NONE,
            stretch,
            rests_until_ns: if is_on { 0 } else { u64::MAX },
            at_once_ns: 0,
            sends_ns: [0; SENDS],
            first: 0,
            count: 0,
            noted_ns: 0,
            charged_ns: 0,
            paid_ns: 0,
            learn_ns: if is_on { 0 } else { u64::MAX },
            run_delay: None,
            yields_until_ns: 0,
            yield_ns: YIELD_NS / 2,
        }
    }

    /// Is there anything to learn?
    #[inline]
    pub(crate) fn is_due(&self, now_ns: u64) -> bool {
        now_ns >= self.learn_ns
    }

    /// Predicts from what the last replies took. `run_delay_ns`: time in which this worker was runnable without a CPU.
    pub(crate) fn learn(&mut self, now_ns: u64, margin_ns: u64, run_delay_ns: Option<u64>) {
        let before = self.run_delay.replace((now_ns, run_delay_ns.unwrap_or(0)));
        match before {
            None => self.yields_until_ns = now_ns + YIELD_NS,
            Some((from_ns, from_delay_ns)) => {
                let delay_ns = run_delay_ns.unwrap_or(0).saturating_sub(from_delay_ns);
                if delay_ns > (now_ns - from_ns) / RUN_DELAY_PARTS {
                    self.yield_cpu(now_ns);
                }
            }
        }
        self.learn_ns = now_ns + LEARN_NS;
        self.rests_until_ns = 0;
        if let Some(quantiles) = self.service.quantiles() {
            self.stretch = Stretch::of(quantiles, margin_ns);
        }
        self.at_once_ns = match self.stretch {
            _ if self.is_barred(now_ns) => 0,
            Stretch { from_ns: 0, until_ns } => until_ns,
            Stretch { .. } => 0,
        };
    }

    /// From when on to poll, `u64::MAX` for never.
    #[inline]
    pub(crate) fn poll_from_ns(&mut self, now_ns: u64, in_flight: InFlight, ended: &Ended) -> u64 {
        if now_ns < self.rests_until_ns {
            return u64::MAX;
        }
        // The stretch of the last send is the last to end.
        if now_ns - in_flight.sent_ns < self.at_once_ns && in_flight.requests > 0 {
            return now_ns;
        }
        self.poll_later_from_ns(now_ns, in_flight, ended)
    }

    /// As `poll_from_ns`, of replies that are not expected at once. What the last reply took is noted here: before a
    /// sleep, and not while all replies are polled for.
    #[inline(never)]
    fn poll_later_from_ns(&mut self, now_ns: u64, in_flight: InFlight, ended: &Ended) -> u64 {
        let Stretch { from_ns, until_ns } = self.stretch;
        let InFlight { requests, sent_ns } = in_flight;
        if self.noted_ns != ended.done_ns {
            self.noted_ns = ended.done_ns;
            let Ended { sent_ns, done_ns } = *ended;
            self.service.note(Times { sent_ns, done_ns, ..Times::default() }.service_ns());
        }
        if requests == 0 {
            self.count = 0;
            return u64::MAX;
        }
        if self.is_barred(now_ns) || self.stretch == Stretch::NOTHING {
            self.count = 0;
            self.rests_until_ns = now_ns + NOTE_NS;
            return u64::MAX;
        }
        if from_ns == 0 {
            self.charge(now_ns, sent_ns);
            return u64::MAX;
        }
        let last_ns = self.sends_ns[(self.first + self.count + SENDS - 1) % SENDS];
        let is_new = self.count == 0 || sent_ns > last_ns;
        if is_new && self.count < SENDS {
            self.sends_ns[(self.first + self.count) % SENDS] = sent_ns;
            self.count += 1;
        }
        while self.count > 0 {
            let sent_ns = self.sends_ns[self.first];
            // Replies come in the order of their requests, more or less.
            let has_come = sent_ns <= ended.sent_ns;
            if !has_come && now_ns < sent_ns + until_ns {
                return (sent_ns + from_ns).max(now_ns);
            }
            self.charge(now_ns, sent_ns);
            self.first = (self.first + 1) % SENDS;
            self.count -= 1;
        }
        u64::MAX
    }

    /// Charges the stretch of a send if it is over and nothing ended in it.
    fn charge(&mut self, now_ns: u64, sent_ns: u64) {
        let Stretch { from_ns, until_ns } = self.stretch;
        let is_over = now_ns >= sent_ns + until_ns;
        if is_over && self.noted_ns <= sent_ns + from_ns && self.charged_ns < sent_ns {
            self.charged_ns = sent_ns;
            self.pay(now_ns, until_ns - from_ns);
        }
    }

    /// Ends polling for a while: others need the CPU, and a worker that polls is the last to get it.
    fn yield_cpu(&mut self, now_ns: u64) {
        if now_ns >= self.yields_until_ns {
            // It polled, and not for long since it last gave way.
            let is_again = now_ns - self.yields_until_ns < YIELD_MAX_NS;
            self.yield_ns = if is_again { (2 * self.yield_ns).min(YIELD_MAX_NS) } else { YIELD_NS };
        }
        self.yields_until_ns = now_ns + self.yield_ns;
        self.at_once_ns = 0;
    }

    /// Adds to what is paid for.
    fn pay(&mut self, now_ns: u64, polled_ns: u64) {
        self.paid_ns = self.paid_ns.max(now_ns) + VAIN_PARTS * polled_ns;
        if self.is_in_debt(now_ns) {
            self.at_once_ns = 0;
        }
    }

    /// Must it not poll now?
    fn is_barred(&self, now_ns: u64) -> bool {
        now_ns < self.yields_until_ns || self.is_in_debt(now_ns)
    }

    fn is_in_debt(&self, now_ns: u64) -> bool {
        self.paid_ns > now_ns + VAIN_OVER_NS
    }
}

/// Replies that are kept.
const RECENT: usize = 128;
/// Fewer predict nothing.
const PREDICTS_MIN: usize = 16;

/// The last service times.
#[derive(Debug)]
pub(crate) struct ServiceTimes {
    recent_ns: [u64; RECENT],
    /// Replies so far.
    noted: usize,
}

/// How long recent replies took.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ServiceQuantiles {
    /// Nearly all took at least this long.
    pub low_ns: u64,
    /// Three quarters took at most this long.
    pub p75_ns: u64,
    /// Nearly all took at most this long.
    pub high_ns: u64,
}

impl ServiceTimes {
    pub(crate) const NONE: Self = Self { recent_ns: [0; RECENT], noted: 0 };

    /// Notes what a reply took.
    #[inline]
    pub(crate) fn note(&mut self, service_ns: u64) {
        self.recent_ns[self.noted % RECENT] = service_ns;
        self.noted = self.noted.wrapping_add(1);
    }

    /// Quantiles of the replies that are kept, without the first and the last of a hundred.
    pub(crate) fn quantiles(&self) -> Option<ServiceQuantiles> {
        let count = self.noted.min(RECENT);
        if count < PREDICTS_MIN {
            return None;
        }
        let mut sorted = self.recent_ns;
        let sorted = &mut sorted[..count];
        sorted.sort_unstable();
        let apart = count.div_ceil(100);
        Some(ServiceQuantiles {
            low_ns: sorted[apart - 1],
            p75_ns: sorted[count * 3 / 4],
            high_ns: sorted[count - apart],
        })
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

    const US: u64 = 1_000;
    const MS: u64 = 1_000_000;
    const NOTHING: Ended = Ended { sent_ns: 0, done_ns: 0 };
    const NONE: InFlight = InFlight { requests: 0, sent_ns: 0 };

    /// One request, sent at this time.
    fn one(sent_ns: u64) -> InFlight {
        InFlight { requests: 1, sent_ns }
    }

    #[test]
    fn stretches_follow_the_service_times() {
        // low, p75, high, margin → from, until
        let table = [
            // A local server.
            ([20, 30, 64], 40, (0, 128)),
            ([20, 30, 4_000], 40, (0, 200)),
            // A wake-up fits in before the first replies.
            ([1_000, 1_020, 1_060], 40, (960, 1_160)),
            ([79, 90, 95], 40, (0, 190)),
            ([81, 90, 95], 40, (41, 190)),
            // Replies that vary too much to be predicted.
            ([20, 1_400, 4_600], 40, (0, 0)),
            ([1_000, 1_101, 4_600], 40, (0, 0)),
            ([20, 120, 150], 40, (0, 200)),
        ];
        for ([low, p75, high], margin, (from, until)) in table {
            let service = ServiceQuantiles { low_ns: low * US, p75_ns: p75 * US, high_ns: high * US };
            let expected = Stretch { from_ns: from * US, until_ns: until * US };
            assert_eq!(Stretch::of(service, margin * US), expected, "{service:?}");
        }
    }

    /// Replies that take this long.
    fn expecting(service_ns: u64) -> ExpectedReplies {
        let mut replies = ExpectedReplies::new(true);
        (0..128).for_each(|_| replies.service.note(service_ns));
        // The second one finds that no CPU was lacking.
        replies.learn(0, 40 * US, None);
        replies.learn(YIELD_NS, 40 * US, None);
        replies
    }

    #[test]
    fn every_send_has_its_stretch() {
        // Polls from 960 to 1 160 us after each send.
        let mut replies = expecting(1_000 * US);
        let first_ns = YIELD_NS;
        let (second_ns, third_ns) = (first_ns + 5 * US, first_ns + 500 * US);
        let table = [
            (first_ns, first_ns, first_ns + 960 * US),
            (second_ns, second_ns, first_ns + 960 * US),
            (third_ns, third_ns, first_ns + 960 * US),
            (first_ns + 970 * US, third_ns, first_ns + 970 * US),
            (second_ns + 1_160 * US, third_ns, third_ns + 960 * US),
            (third_ns + 1_160 * US, third_ns, u64::MAX),
        ];
        for (now_ns, sent_ns, expected_ns) in table {
            assert_eq!(replies.poll_from_ns(now_ns, one(sent_ns), &NOTHING), expected_ns, "at {now_ns}");
        }
        // What has ended, and all before it, is not waited for.
        let [fourth_ns, fifth_ns, last_ns] = [6, 7, 8].map(|ms| first_ns + ms * MS);
        let ended = Ended { sent_ns: fourth_ns, done_ns: fifth_ns };
        assert_eq!(replies.poll_from_ns(fourth_ns, one(fourth_ns), &NOTHING), fourth_ns + 960 * US);
        assert_eq!(replies.poll_from_ns(fifth_ns, one(fifth_ns), &ended), fifth_ns + 960 * US);
        assert_eq!((replies.poll_from_ns(last_ns, NONE, &ended), replies.count), (u64::MAX, 0));
    }

    /// Replies take longer than they used to: the next stretch follows them.
    #[test]
    fn stretches_follow_what_is_noted() {
        let mut replies = expecting(30 * US);
        let mut now_ns = YIELD_NS;
        for reply in 1..=128 {
            now_ns += MS;
            let sent_ns = now_ns - 500 * US;
            let ended = Ended { sent_ns, done_ns: now_ns };
            // The second time nothing has ended since.
            replies.poll_from_ns(now_ns + 1, NONE, &ended);
            replies.poll_from_ns(now_ns + 2, NONE, &ended);
            assert_eq!(replies.service.quantiles().unwrap().low_ns == 500 * US, reply >= 127);
        }
        replies.learn(now_ns, 40 * US, None);
        assert_eq!(replies.stretch, Stretch { from_ns: 460 * US, until_ns: 660 * US });
    }

    /// A worker that lacked its CPU for more than a twentieth of the time leaves it to others, the longer the more often.
    #[test]
    fn workers_without_a_cpu_do_not_poll() {
        // ms, run delay so far in us → does it poll?
        let table = [
            (1_000, 0, true),
            (1_100, 4_999, true),
            (1_200, 10_100, false),
            (1_390, 10_100, false),
            (1_400, 10_100, true),
            // Again, for 400 ms.
            (1_500, 15_200, false),
            (1_890, 15_200, false),
            // While it sleeps, too: 400 ms from then on.
            (1_895, 80_000, false),
            (2_290, 80_000, false),
            (2_300, 80_000, true),
            // After a while it is as if it had never been.
            (12_700, 80_000, true),
            (12_800, 90_000, false),
            (13_000, 90_000, true),
        ];
        let mut replies = expecting(30 * US);
        for (now_ms, delay_us, polls) in table {
            let now_ns = now_ms * MS;
            replies.learn(now_ns, 40 * US, Some(delay_us * US));
            let from_ns = replies.poll_from_ns(now_ns, one(now_ns - US), &NOTHING);
            assert_eq!(from_ns == now_ns, polls, "at {now_ms} ms");
        }
    }

    #[test]
    fn polling_in_vain_is_an_eighth_of_the_time() {
        for service_ns in [30 * US, 150 * US, 1_000 * US] {
            let mut replies = expecting(service_ns);
            let Stretch { from_ns, until_ns } = replies.stretch;
            let (mut polled_ns, seconds) = (0, 20);
            for sent_ns in (1..seconds * 1_000).map(|send| YIELD_NS + send * MS) {
                if replies.is_due(sent_ns) {
                    replies.learn(sent_ns, 40 * US, None);
                }
                let begin_ns = replies.poll_from_ns(sent_ns + from_ns, one(sent_ns), &NOTHING);
                polled_ns += if begin_ns == u64::MAX { 0 } else { until_ns - from_ns };
                replies.poll_from_ns(sent_ns + until_ns, one(sent_ns), &NOTHING);
                replies.poll_from_ns(sent_ns + until_ns, NONE, &NOTHING);
            }
            let share = polled_ns as f64 / (seconds * 1_000 * MS) as f64;
            let wanted = (until_ns - from_ns) as f64 / MS as f64;
            // Of replies that are expected at once it begins again with the next prediction.
            let most = wanted.min(0.125);
            assert!((0.75 * most..1.05 * most).contains(&share), "{share} of {wanted}");
        }
    }

    #[test]
    fn quantiles_are_of_the_last_replies() {
        let mut times = ServiceTimes::NONE;
        (1..PREDICTS_MIN as u64).for_each(|ns| times.note(ns));
        assert_eq!(times.quantiles(), None);
        times.note(PREDICTS_MIN as u64);
        assert_eq!(times.quantiles(), Some(ServiceQuantiles { low_ns: 1, p75_ns: 13, high_ns: 16 }));
        (1..=RECENT as u64).rev().for_each(|ns| times.note(1_000 + ns));
        let expected = ServiceQuantiles { low_ns: 1_002, p75_ns: 1_097, high_ns: 1_127 };
        assert_eq!(times.quantiles(), Some(expected));
    }
}
