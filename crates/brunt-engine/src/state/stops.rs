//! When the client was stopped, so that this time does not count as a server's silence.
//!
//! Invariant: a wait is never shorter than asked for; of more than [`KEPT_MAX`] stops within one wait only the latest lengthen it.

use std::ops::Range;

/// Kept stops: a wait that has more of them is on a host that tells nothing of a server anyway.
const KEPT_MAX: usize = 64;

/// The latest stops, ascending.
#[derive(Debug)]
pub(crate) struct Stops(Vec<Range<u64>>);

impl Stops {
    /// Without any.
    pub(crate) fn new() -> Self {
        Self(Vec::with_capacity(KEPT_MAX))
    }

    /// Notes a stop.
    pub(crate) fn note(&mut self, stop: Range<u64>) {
        if self.0.len() == KEPT_MAX {
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
        (0..KEPT_MAX as u64).for_each(|number| stops.note(2_000 + 10 * number..2_001 + 10 * number));
        assert_eq!((stops.end_of_wait_ns(0, 101), stops.0.capacity()), (101, KEPT_MAX));
    }
}
