//! The service times of a worker's last replies, from which it expects the next ones.
//!
//! Noting one costs a store: quantiles are computed when they are asked for. Invariant: what a reply took is noted
//! once, however it was found.

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
