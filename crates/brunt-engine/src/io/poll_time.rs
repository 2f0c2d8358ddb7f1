//! Bounds on the arrival of bytes, from the times of a poll.
//!
//! Times are parameters. Invariant: in doubt a poll has seen less, so that the delay by the client is never
//! underestimated.

/// A poll that took longer than this has slept: a system call that finds events returns within 1 to 2 microseconds,
/// a sleep with its wake-up takes longer.
const SLEPT_NS: u64 = 4_000;
/// Time added for each further event: the kernel polls each socket again (or copies its bytes), uncached when there
/// are thousands. A sleep ends with the first event, so a poll with many events has hardly slept; an error here
/// counts against the client.
const EVENT_NS: u64 = 1_000;

/// A poll that is over.
#[derive(Clone, Copy, Debug)]
pub(super) struct Poll {
    pub enter_ns: u64,
    pub end_ns: u64,
    pub timeout_ns: u64,
    /// See [`has_slept`].
    pub has_slept: bool,
    /// No signal, as that which continues a stopped process, cut it short.
    pub is_whole: bool,
    /// It waited for several events, so that the first may have lain all the time.
    pub gathers: bool,
    /// It returned all that it saw.
    pub returns_all: bool,
}

/// What the polls of a backend tell of the arrival of bytes.
#[derive(Clone, Copy, Debug)]
pub(super) struct PollTimes {
    /// The last instant at which what is returned now was not there.
    pub polled_ns: u64,
    /// End of the last poll that returned all that it saw.
    pub poll_end_ns: u64,
    /// See [`super::Io::set_wake_up`].
    pub wake_up_ns: u64,
}

impl PollTimes {
    /// Before the first poll.
    pub(super) fn new(now_ns: u64) -> Self {
        Self { polled_ns: now_ns, poll_end_ns: now_ns, wake_up_ns: 0 }
    }

    /// Notes a poll. One that slept had nothing to return when it began. Otherwise what it returns may have been there since the
    /// end of the last poll; and one that left others out keeps the gap running.
    #[inline]
    pub(super) fn note(&mut self, poll: Poll) {
        let Poll { enter_ns, timeout_ns, .. } = poll;
        let seen_ns = match poll.is_whole {
            true => seen_until_ns(enter_ns, poll.end_ns, timeout_ns, poll.has_slept),
            false => enter_ns,
        };
        self.polled_ns = match timeout_ns > 0 && poll.has_slept && !poll.gathers {
            true => slept_until_ns(enter_ns, seen_ns, timeout_ns, self.wake_up_ns),
            false => self.poll_end_ns,
        };
        if poll.returns_all {
            self.poll_end_ns = seen_ns;
        }
    }
}

/// Has a poll of this duration and this many events slept?
#[inline]
pub(super) fn has_slept(took_ns: u64, events: usize) -> bool {
    took_ns > SLEPT_NS + EVENT_NS * (events as u64).saturating_sub(1)
}

/// The instant up to which a poll has seen all events that it returns. A timed poll would have returned events from
/// before its end; a long poll without timeout has polled when it began, and was stopped or preempted for the rest.
#[inline]
fn seen_until_ns(enter_ns: u64, end_ns: u64, timeout_ns: u64, is_long: bool) -> u64 {
    match timeout_ns {
        0 if is_long => enter_ns,
        0 => end_ns,
        _ => end_ns.min(enter_ns.saturating_add(timeout_ns)),
    }
}

/// The last instant at which what a poll returns was not there, if the poll slept and has seen all up to `seen_ns`:
/// unless its timer ended it, it was over a wake-up before. Nothing was there when it began.
#[inline]
fn slept_until_ns(enter_ns: u64, seen_ns: u64, timeout_ns: u64, wake_up_ns: u64) -> u64 {
    let is_timed = seen_ns - enter_ns >= timeout_ns;
    if is_timed { seen_ns } else { seen_ns.saturating_sub(wake_up_ns).max(enter_ns) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn polls_see_no_later_than_their_timeout() {
        // (took, timeout, long) → seen_until_ns, from the instant at which it began
        let table = [
            (900, 0, false, 900),
            // Stopped within a poll that was to return at once.
            (300_000_000, 0, true, 0),
            (60_000, 500_000, true, 60_000),
            (500_000, 500_000, true, 500_000),
            // Stopped within one that was to wait, or woken late.
            (300_000_000, 500_000, true, 500_000),
            (60_000, u64::MAX, true, 60_000),
        ];
        for (took_ns, timeout_ns, is_long, expected_ns) in table {
            let poll_seen_ns = seen_until_ns(7, 7 + took_ns, timeout_ns, is_long) - 7;
            assert_eq!(poll_seen_ns, expected_ns, "{took_ns} ns of {timeout_ns} ns");
        }
    }

    #[test]
    fn sleeps_are_over_a_wake_up_before_they_end() {
        // (seen, timeout, wake-up) → the end of the sleep, from the instant at which it began
        let table = [
            (60_000, 500_000, 0, 60_000),
            (60_000, 500_000, 40_000, 20_000),
            (60_000, 500_000, 70_000, 0),
            (60_000, u64::MAX, 40_000, 20_000),
            // The timer ended it, and would have seen what came before.
            (500_000, 500_000, 40_000, 500_000),
        ];
        for (seen_ns, timeout_ns, wake_up_ns, expected_ns) in table {
            let slept_ns = slept_until_ns(7, 7 + seen_ns, timeout_ns, wake_up_ns) - 7;
            assert_eq!(slept_ns, expected_ns, "{seen_ns} ns of {timeout_ns} ns, {wake_up_ns} ns to wake");
        }
    }

    #[test]
    fn polls_with_many_events_have_hardly_slept() {
        // (took, events) → slept
        let table = [
            (1_500, 1, false),
            (4_000, 1, false),
            (4_001, 1, true),
            (60_000, 0, true),
            (60_000, 3, true),
            (60_000, 100, false),
            (250_000, 1_024, false),
        ];
        for (took_ns, events, slept) in table {
            assert_eq!(has_slept(took_ns, events), slept, "{took_ns} ns, {events} events");
        }
    }
}
