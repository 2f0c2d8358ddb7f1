//! When the loop was away: from its schedule while that waited behind a full queue, and from its sockets, so that this time
//! does not count as a server's silence.
//!
//! An operation that cannot be taken because a queue is full waits for a connection from when the loop would have
//! taken it, had there been room: at once while it sleeps, else at the end of the iteration in which it became due.
//! Invariants: the longest iterations are kept with their times, and no other is longer than `others_max_ns`, so what
//! counts as the client's is never too little; a wait for a server is never shorter than asked for, and of more than
//! [`STOPS_MAX`] stops within one wait only the latest lengthen it.

use brunt_stats::usage::STALL_MIN_NS;
use std::ops::Range;

/// Kept absences: more than a run has stops of a size that matters, and few enough to go through for each operation.
const KEPT_MAX: usize = 16;

/// The absences since a queue became full.
#[derive(Debug)]
pub(crate) struct Absences {
    longest: Vec<Range<u64>>,
    others_max_ns: u64,
    is_on: bool,
    /// Iterations up to this long are of no interest.
    pub ignored_ns: u64,
}

impl Absences {
    /// While no queue is full.
    pub(crate) fn new() -> Self {
        Self {
            longest: Vec::with_capacity(KEPT_MAX),
            others_max_ns: 0,
            is_on: false,
            ignored_ns: STALL_MIN_NS,
        }
    }

    /// Notes absences from now on, if it does not already.
    pub(crate) fn start(&mut self) {
        self.is_on = true;
        self.ignored_ns = self.others_max_ns.min(STALL_MIN_NS);
    }

    /// Forgets them: no operation waits behind a full queue any more.
    pub(crate) fn stop(&mut self) {
        self.longest.clear();
        (self.others_max_ns, self.is_on, self.ignored_ns) = (0, false, STALL_MIN_NS);
    }

    /// Notes an iteration that was longer than `ignored_ns`.
    pub(crate) fn note(&mut self, away: Range<u64>) {
        if !self.is_on {
            return;
        }
        self.longest.push(away);
        if self.longest.len() == KEPT_MAX {
            let lengths = self.longest.iter().map(|away| away.end - away.start);
            let shortest = lengths.enumerate().min_by_key(|(_, length_ns)| *length_ns);
            if let Some((at, length_ns)) = shortest {
                self.longest.swap_remove(at);
                self.others_max_ns = self.others_max_ns.max(length_ns);
            }
        }
        self.start();
    }

    /// When the loop would have taken an operation that it could have taken from `at_ns` on, at the latest.
    pub(crate) fn back_ns(&self, at_ns: u64) -> u64 {
        let within = self.longest.iter().find(|away| away.contains(&at_ns));
        within.map_or(at_ns + self.others_max_ns, |away| away.end)
    }
}

/// Kept stops: a wait that has more of them is on a host that tells nothing of a server anyway.
const STOPS_MAX: usize = 64;

/// The latest stops, ascending.
#[derive(Debug)]
pub(crate) struct Stops(Vec<Range<u64>>);

impl Stops {
    /// Without any.
    pub(crate) fn new() -> Self {
        Self(Vec::with_capacity(STOPS_MAX))
    }

    /// Notes a stop.
    pub(crate) fn note(&mut self, stop: Range<u64>) {
        if self.0.len() == STOPS_MAX {
            self.0.remove(0);
        }
        self.0.push(stop);
    }

    /// The end of a wait that began at `since_ns` and lasts for `wait_ns` without stops.
    pub(crate) fn end_of_wait_ns(&self, since_ns: u64, wait_ns: u64) -> u64 {
        self.0.iter().fold(since_ns.saturating_add(wait_ns), |end_ns, stop| match stop.start < end_ns {
            true => end_ns.saturating_add(stop.end.saturating_sub(stop.start.max(since_ns))),
            false => end_ns,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_longest_absences_are_kept_whole() {
        let mut absences = Absences::new();
        // Not asked for yet.
        absences.note(0..50);
        absences.start();
        assert_eq!((absences.back_ns(20), absences.ignored_ns), (20, 0));
        // One of 500 and one of 300 among many of 1 to 5.
        for number in 0..100 {
            let start_ns = 1_000 * (number + 1);
            let length_ns = match number {
                30 => 500,
                60 => 300,
                _ => number % 5 + 1,
            };
            absences.note(start_ns..start_ns + length_ns);
        }
        let table = [(31_000, 31_500), (31_499, 31_500), (31_500, 31_505), (61_100, 61_300), (900, 905)];
        for (at_ns, expected_ns) in table {
            assert_eq!(absences.back_ns(at_ns), expected_ns, "{at_ns}");
        }
        assert_eq!(absences.ignored_ns, 5);
        absences.stop();
        assert_eq!((absences.back_ns(31_000), absences.ignored_ns), (31_000, STALL_MIN_NS));
    }

    #[test]
    fn stops_within_a_wait_lengthen_it() {
        let mut stops = Stops::new();
        [100..150, 200..300, 400..1_000].into_iter().for_each(|stop| stops.note(stop));
        // (begin, length, end)
        let table = [
            (0, 100, 100),
            (0, 101, 151),
            (120, 20, 170),
            (120, 50, 200),
            (150, 100, 350),
            // What lengthens it reaches the next.
            (100, 200, 1_050),
            (400, 1, 1_001),
            (1_000, 10, 1_010),
            (0, u64::MAX, u64::MAX),
        ];
        for (since_ns, wait_ns, end_ns) in table {
            assert_eq!(stops.end_of_wait_ns(since_ns, wait_ns), end_ns, "{since_ns} {wait_ns}");
        }
        (0..STOPS_MAX as u64).for_each(|number| stops.note(2_000 + 10 * number..2_001 + 10 * number));
        assert_eq!((stops.end_of_wait_ns(0, 101), stops.0.capacity()), (101, STOPS_MAX));
    }
}
