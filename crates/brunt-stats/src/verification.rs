//! What values turned out to be: how many were wrong, in which way, and the first of each.
//!
//! Not outcomes of ops (a wrong value makes its op a mismatch, and that is in the books) and not the comparison, which is the
//! workload's. Invariant: adding up what workers noted loses no count, and of examples the earliest stays.

use brunt_plan::op::Version;
use serde::{Deserialize, Serialize};

brunt_plan::named! {
    /// In which way a value is not what should be there.
    #[repr(u8)]
    pub enum ValueFault {
        /// It is the value of another key.
        WrongKey = "wrong_key": "of another key",
        /// Its bytes belong to no value, or to several.
        Torn = "torn": "torn",
        /// It ends early.
        Truncated = "truncated": "truncated",
        /// It goes on behind its end.
        Overlong = "overlong": "too long",
        /// It was overwritten, and that was acknowledged before it was asked for.
        Stale = "stale": "stale",
        /// It names a version that was never written.
        NeverWritten = "never_written": "never written",
        /// Its time to live was over.
        Expired = "expired": "there though expired",
        /// There is none, though one was stored, nothing deletes, and its time to live was not over. An eviction looks like this:
        /// the op is a miss, and no mismatch.
        Missing = "missing": "missing though stored",
    }
}

/// The first value that was wrong in some way.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FaultExample {
    /// The id of the key that was asked for.
    pub key: u64,
    /// The key that a value of another one names.
    pub other_key: Option<u64>,
    /// The version that the value names; `None` where its bytes name none.
    pub version: Option<Version>,
    /// The version that should have been found at least, of a stale value.
    pub wanted: Option<Version>,
    /// When, nanoseconds on the run's clock.
    pub at_ns: u64,
}

/// What was found of all values.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Verification {
    /// Values read that were checked in full, where that was asked for.
    pub checked: u64,
    /// Keys that were not found, of which it was checked whether they should have been.
    pub misses: u64,
    counts: [u64; ValueFault::COUNT],
    first: [Option<FaultExample>; ValueFault::COUNT],
}

impl FaultExample {
    /// An example of which nothing is known but the key and the time.
    pub const fn of(key: u64, at_ns: u64) -> Self {
        Self { key, other_key: None, version: None, wanted: None, at_ns }
    }
}

impl Verification {
    /// One more is wrong.
    pub fn note(&mut self, fault: ValueFault, example: FaultExample) {
        self.counts[fault as usize] += 1;
        let first = &mut self.first[fault as usize];
        if first.is_none_or(|first| example.at_ns < first.at_ns) {
            *first = Some(example);
        }
    }

    /// How many were wrong in this way.
    pub fn count(&self, fault: ValueFault) -> u64 {
        self.counts[fault as usize]
    }

    /// What was found at all: each fault, how often, and the first.
    pub fn rows(&self) -> impl Iterator<Item = (ValueFault, u64, FaultExample)> + use<'_> {
        let row =
            |fault: ValueFault| self.first[fault as usize].map(|first| (fault, self.count(fault), first));
        ValueFault::ALL.into_iter().filter_map(row)
    }

    /// The examples, to be put right in place.
    pub(crate) fn examples_mut(&mut self) -> impl Iterator<Item = &mut FaultExample> {
        self.first.iter_mut().flatten()
    }

    /// Adds what another worker found.
    pub fn merge(&mut self, other: &Self) {
        self.checked += other.checked;
        self.misses += other.misses;
        for (fault, count, example) in other.rows() {
            self.note(fault, example);
            self.counts[fault as usize] += count - 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn workers_add_up_and_the_earliest_example_stays() {
        let example = |at_ns| FaultExample::of(at_ns * 10, at_ns);
        let (mut one, mut other) = (Verification::default(), Verification::default());
        [5, 3, 4].iter().for_each(|at_ns| one.note(ValueFault::Torn, example(*at_ns)));
        [9, 2].iter().for_each(|at_ns| other.note(ValueFault::Torn, example(*at_ns)));
        other.note(ValueFault::Stale, example(7));
        (one.checked, other.checked) = (10, 5);
        (one.misses, other.misses) = (1, 2);
        one.merge(&other);
        assert_eq!((one.checked, one.misses), (15, 3));
        let rows: Vec<_> = one.rows().collect();
        assert_eq!(rows, [(ValueFault::Torn, 5, example(2)), (ValueFault::Stale, 1, example(7))]);
        assert_eq!(one.count(ValueFault::Missing), 0);
    }

    #[test]
    fn faults_are_numbered_in_order() {
        assert!(ValueFault::ALL.iter().enumerate().all(|(number, fault)| *fault as usize == number));
    }
}
