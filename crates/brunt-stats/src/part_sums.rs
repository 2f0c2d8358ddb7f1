//! Sums of the parts of the response times of completed ops, by how long these took.
//!
//! Not a histogram: it counts nothing. Invariant: a group holds whole buckets of the histograms, so that the requests of a group are counted
//! there.

use crate::histogram::BUCKETS;
use crate::sample::Times;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// A group is 2 to this power buckets: there are 16 groups for each power of two, 53 a decade.
pub const GROUP_BITS: u32 = 6;
const GROUPS: usize = BUCKETS >> GROUP_BITS;

/// What a group takes in a file, about.
const GROUP_CHARACTERS: usize = 70;

/// What a worker records into. All memory is taken at the start: 12 KiB.
#[derive(Debug)]
pub(crate) struct RecordingPartSums(Box<[[u64; 3]; GROUPS]>);

impl Default for RecordingPartSums {
    fn default() -> Self {
        Self(Box::new([[0; 3]; GROUPS]))
    }
}

impl RecordingPartSums {
    /// Adds the times of `count` ops that ended alike, with the bucket of their response time.
    #[inline(always)]
    pub(crate) fn add(&mut self, bucket: usize, times: &Times, count: u32) {
        let [response_ns, client_ns, connection_wait_ns] = &mut self.0[bucket >> GROUP_BITS];
        *response_ns += times.response_ns() * u64::from(count);
        *client_ns += times.client_ns() * u64::from(count);
        *connection_wait_ns += times.connection_wait_ns() * u64::from(count);
    }

    /// Yields what was recorded and leaves nothing.
    pub(crate) fn take(&mut self) -> PartSums {
        let used = (0..).zip(self.0.iter_mut()).filter(|(_, sums)| **sums != [0; 3]);
        let taken = used.map(|(group, sums)| {
            let [response_ns, client_ns, connection_wait_ns] = std::mem::take(sums).map(u128::from);
            (group, PartSum(response_ns, client_ns, connection_wait_ns))
        });
        PartSums(taken.collect())
    }
}

/// Of several requests together, in nanoseconds: response times, the client's part of them, waits for a connection.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PartSum(
    #[serde(with = "crate::wide_number")] pub u128,
    #[serde(with = "crate::wide_number")] pub u128,
    #[serde(with = "crate::wide_number")] pub u128,
);

impl PartSum {
    fn merge(&mut self, other: &Self) {
        self.0 += other.0;
        self.1 += other.1;
        self.2 += other.2;
    }
}

/// The sums of an interval or of a run: those of the groups that have some.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PartSums(BTreeMap<u16, PartSum>);

impl PartSums {
    /// Adds other sums.
    pub fn merge(&mut self, other: &Self) {
        other.0.iter().for_each(|(group, sum)| self.0.entry(*group).or_default().merge(sum));
    }

    /// The sum over this group and all with longer response times.
    pub fn from_group(&self, group: usize) -> PartSum {
        let mut total = PartSum::default();
        let slower = self.0.iter().filter(|(held, _)| usize::from(**held) >= group);
        slower.for_each(|(_, sum)| total.merge(sum));
        total
    }

    /// How many characters it takes in a file, about.
    pub(crate) fn text_len(&self) -> usize {
        GROUP_CHARACTERS * self.0.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::histogram::bucket_of;

    fn recorded(requests: &[(Times, u32)]) -> PartSums {
        let mut sums = RecordingPartSums::default();
        requests.iter().for_each(|(times, count)| sums.add(bucket_of(times.response_ns()), times, *count));
        let taken = sums.take();
        assert_eq!(sums.take(), PartSums::default(), "nothing is left");
        taken
    }

    /// Picked 10 late, sent 20 later, unread for 30 at the end.
    fn times(response_ns: u64) -> Times {
        let (polled_ns, done_ns) = (response_ns - 30, response_ns);
        Times { intended_ns: 0, picked_ns: 10, sent_ns: 30, polled_ns, first_byte_ns: done_ns, done_ns }
    }

    #[test]
    fn parts_are_summed_from_a_response_time_on() {
        let sums =
            recorded(&[(times(1_000), 2), (times(1_010), 1), (times(1 << 20), 1), (times(1 << 50), 3)]);
        let from = |response_ns| sums.from_group(bucket_of(response_ns) >> GROUP_BITS);
        let rest = (1 << 20) + 3 * (1 << 50);
        assert_eq!(from(0), PartSum(3_010 + rest, 7 * 40, 7 * 20));
        assert_eq!(from(1_024), PartSum(rest, 4 * 40, 4 * 20));
        assert_eq!(from((1 << 20) + (1 << 16)), PartSum(3 << 50, 3 * 40, 3 * 20), "the next group");
        assert_eq!(from(u64::MAX), PartSum(3 << 50, 3 * 40, 3 * 20), "the last one has no end");
    }

    #[test]
    fn merging_in_any_order_equals_recording_together() {
        let [one, other] = [[(times(100), 1), (times(5_000), 7)], [(times(5_010), 2), (times(1 << 30), 4)]];
        let together = recorded(&[one, other].concat());
        for parts in [[&one, &other], [&other, &one]] {
            let mut merged = PartSums::default();
            parts.into_iter().for_each(|part| merged.merge(&recorded(part)));
            assert_eq!(merged, together);
        }
    }
}
