//! Fills that wait for the database which is asked after a miss, and the keys whose fill is outstanding.
//!
//! A key is outstanding from its miss until a set of it has ended; misses meanwhile are a stampede. Invariants: nothing is allocated after
//! the start; a lane has at most its number of waiting fills, and one beyond that is due at once; a key for which the table has no place is
//! not watched.

use crate::state::lane::Picked;
use brunt_plan::op::ClassId;
use brunt_stats::worker_counts::FillCounts;
use brunt_workload::miss_delays::MissDelays;
use std::cmp::{Ordering, Reverse};
use std::collections::BinaryHeap;

/// The waiting fills of a worker.
#[derive(Debug)]
pub(crate) struct DelayedFills {
    /// By class.
    delays: Vec<Option<MissDelays>>,
    waiting: BinaryHeap<WaitingFill>,
    /// Fills that have ever waited.
    total: u64,
    pub outstanding: OutstandingKeys,
}

#[derive(Debug)]
struct WaitingFill {
    /// When it is due; of several at one time, in the order of their misses.
    due: Reverse<(u64, u64)>,
    fill: Picked,
}

impl Ord for WaitingFill {
    fn cmp(&self, other: &Self) -> Ordering {
        self.due.cmp(&other.due)
    }
}

impl PartialOrd for WaitingFill {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for WaitingFill {
    fn eq(&self, other: &Self) -> bool {
        self.due == other.due
    }
}

impl Eq for WaitingFill {}

impl DelayedFills {
    /// With the delays of each class that has them, and room for this many fills.
    pub(crate) fn new(delays: Vec<Option<MissDelays>>, fills_max: usize) -> Self {
        Self {
            delays,
            waiting: BinaryHeap::with_capacity(fills_max),
            total: 0,
            outstanding: OutstandingKeys::new(fills_max),
        }
    }

    /// Does this class wait for a database?
    pub(crate) fn has_delays(&self, class: ClassId) -> bool {
        self.delays[usize::from(class)].is_some()
    }

    /// Lets the fill of a miss wait from when it was intended.
    pub(crate) fn push(&mut self, fill: &Picked) {
        let delays = self.delays[usize::from(fill.op.class)].as_mut();
        let due_ns = fill.intended_ns.saturating_add(delays.map_or(0, MissDelays::draw_ns));
        self.total += 1;
        let fill = Picked { intended_ns: due_ns, ..*fill };
        self.waiting.push(WaitingFill { due: Reverse((due_ns, self.total)), fill });
    }

    /// When the next one is due.
    #[inline]
    pub(crate) fn due_ns(&self) -> u64 {
        self.waiting.peek().map_or(u64::MAX, |next| next.fill.intended_ns)
    }

    /// Takes the next one if it is due.
    pub(crate) fn pop_due(&mut self, now_ns: u64) -> Option<Picked> {
        if self.due_ns() > now_ns { None } else { self.waiting.pop().map(|next| next.fill) }
    }

    pub(crate) fn len(&self) -> usize {
        self.waiting.len()
    }

    /// Notes the miss of a key that a fill follows.
    pub(crate) fn note_miss(&mut self, key: u64, counts: &mut FillCounts) {
        let misses = self.outstanding.add(key);
        counts.stampedes += u64::from(misses == 2);
        counts.stampede_misses += u64::from(misses > 1);
    }
}

/// Keys with their number of misses: open addressing with linear probing, at most half full.
#[derive(Debug)]
pub(crate) struct OutstandingKeys {
    /// A power of two; those without misses are free.
    places: Vec<(u64, u32)>,
    count: usize,
}

impl OutstandingKeys {
    /// For this many keys that wait, and as many whose set is on its way.
    fn new(keys: usize) -> Self {
        Self { places: vec![(0, 0); (4 * keys).next_power_of_two().max(2)], count: 0 }
    }

    /// The place of a key: where it is, or would be.
    fn place(&self, key: u64) -> usize {
        let mut at = self.home(key);
        while self.places[at].1 > 0 && self.places[at].0 != key {
            at = (at + 1) & (self.places.len() - 1);
        }
        at
    }

    fn home(&self, key: u64) -> usize {
        // Fibonacci hashing: the highest bits of the product.
        (key.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> (64 - self.places.len().trailing_zeros())) as usize
    }

    /// Adds a miss. Returns how many the key has; 0 if there is no room for it.
    fn add(&mut self, key: u64) -> u32 {
        let at = self.place(key);
        if self.places[at].1 == 0 {
            if 2 * self.count >= self.places.len() {
                return 0;
            }
            self.count += 1;
        }
        self.places[at] = (key, self.places[at].1.saturating_add(1));
        self.places[at].1
    }

    /// Removes a key, and moves those behind it that are not where they would be found without it.
    pub(crate) fn remove(&mut self, key: u64) {
        let mut hole = self.place(key);
        if self.places[hole].1 == 0 {
            return;
        }
        self.count -= 1;
        let mask = self.places.len() - 1;
        let mut at = (hole + 1) & mask;
        while self.places[at].1 > 0 {
            let from_home = at.wrapping_sub(self.home(self.places[at].0)) & mask;
            if from_home >= at.wrapping_sub(hole) & mask {
                self.places[hole] = self.places[at];
                hole = at;
            }
            at = (at + 1) & mask;
        }
        self.places[hole] = (0, 0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashMap;

    /// Beside a map, with few enough keys that most places have neighbours.
    #[test]
    fn outstanding_keys_are_found_until_they_are_removed() {
        let (mut keys, mut expected) = (OutstandingKeys::new(16), HashMap::<u64, u32>::new());
        let mut state = 1_u64;
        for _ in 0..100_000 {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            let key = (state >> 33) % 50;
            if state >> 63 == 0 {
                keys.remove(key);
                expected.remove(&key);
            } else if expected.contains_key(&key) || expected.len() < 32 {
                let misses = expected.entry(key).or_default();
                *misses += 1;
                assert_eq!(keys.add(key), *misses);
            } else {
                assert_eq!(keys.add(key), 0, "no room");
            }
            assert_eq!(keys.count, expected.len());
        }
    }
}
