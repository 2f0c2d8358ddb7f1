//! What values turned out to be: how many were wrong, in which way, and the first of each; and objects of windows that were not as they were
//! to be, with their bytes.
//!
//! Not outcomes of ops (a wrong value makes its op a mismatch, which request accounting has) and not the comparison, which is the
//! workload's. Invariants: adding up what workers noted loses no count, and of examples the earliest stays; what a worker notes in an
//! interval has a bound, nothing is allocated for it but at the start, and what there is no room for is counted.

use crate::counts::counts;
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

/// How many objects that were not as they were to be a worker can note in an interval.
const FAULTS_MAX: usize = 64;
/// Bytes that are kept of a value. Of a longer one they begin with the first that is wrong.
pub const SHOWN_MAX: usize = 4096;
/// Room for the bytes of all these objects: of each a key of memcached, the value expected and the value received.
const BYTES_MAX: usize = FAULTS_MAX * (250 + 2 * SHOWN_MAX);

/// In which way an object of a window was not as it was to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum ObjectFaultKind {
    /// Another value than the one stored.
    Value,
    /// The key was not there, though it does not expire.
    Missing,
    /// It was there more than 5 s after its time to live.
    Expired {
        /// How long ago it was stored.
        age_ms: u64,
    },
    /// It was gone more than 5 s before the end of its time to live.
    Gone {
        /// How long ago it was stored.
        age_ms: u64,
    },
}

/// An object of a window that was not as it was to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ObjectFault {
    /// Kind of fault.
    pub kind: ObjectFaultKind,
    /// When it was seen, in ns on the run's clock.
    pub at_ns: u64,
    /// The connection, as a number within the worker.
    pub connection: u32,
    /// The time to live, in seconds, of objects that expire.
    pub ttl_s: u32,
    /// Length of the value that was expected; 0 where none is known.
    pub expected_len: u32,
    /// Length of the value that was received.
    pub received_len: u32,
    /// Where in the values the bytes begin that are here.
    pub from: u32,
    /// Where its key, the value expected and the value received end among the bytes, each behind the one before it.
    ends: [u32; 3],
}

impl ObjectFault {
    /// A fault of this kind, of which nothing else is known.
    pub const fn new(kind: ObjectFaultKind, at_ns: u64, connection: u32) -> Self {
        Self { kind, at_ns, connection, ttl_s: 0, expected_len: 0, received_len: 0, from: 0, ends: [0; 3] }
    }
}

/// A fault with its bytes: those of the key, of the value expected, where that is known, and of the value received.
pub type ObjectFaultRow<'a> = (&'a ObjectFault, [&'a [u8]; 3]);

/// The faults of an interval.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ObjectFaults {
    faults: Vec<ObjectFault>,
    bytes: Vec<u8>,
    /// How many there was no room for.
    pub overflow: u64,
}

impl ObjectFaults {
    /// Empty, with all the room there will be.
    pub(crate) fn with_room() -> Self {
        Self { faults: Vec::with_capacity(FAULTS_MAX), bytes: Vec::with_capacity(BYTES_MAX), overflow: 0 }
    }

    /// Is there none?
    pub fn is_empty(&self) -> bool {
        self.faults.is_empty() && self.overflow == 0
    }

    /// In the order noted.
    pub fn rows(&self) -> impl Iterator<Item = ObjectFaultRow<'_>> {
        let begins = std::iter::once(0).chain(self.faults.iter().map(|fault| fault.ends[2]));
        let of = |range: std::ops::Range<u32>| self.bytes.get(range.start as usize..range.end as usize);
        begins.zip(&self.faults).map(move |(begin, fault)| {
            let [key, expected, received] = fault.ends;
            (
                fault,
                [begin..key, key..expected, expected..received].map(|range| of(range).unwrap_or_default()),
            )
        })
    }

    /// Notes one with its bytes if there is room: those of the key, of the value expected and of the value received, each in pieces.
    pub(crate) fn note(&mut self, fault: &ObjectFault, pieces: [&[&[u8]]; 3]) {
        let len: usize = pieces.iter().flat_map(|pieces| pieces.iter()).map(|bytes| bytes.len()).sum();
        if self.faults.len() == FAULTS_MAX || self.bytes.len() + len > BYTES_MAX {
            self.overflow += 1;
            return;
        }
        let ends = pieces.map(|pieces| {
            pieces.iter().for_each(|bytes| self.bytes.extend_from_slice(bytes));
            self.bytes.len() as u32
        });
        self.faults.push(ObjectFault { ends, ..*fault });
    }

    /// Yields a copy and leaves the list empty, its memory kept.
    pub(crate) fn take(&mut self) -> Self {
        let taken = self.clone();
        self.faults.clear();
        self.bytes.clear();
        self.overflow = 0;
        taken
    }
}

counts! {
    /// Counts over all phases.
    pub struct ObjectCounts {
        /// Values checked that were not those stored.
        pub verify_failed: u64,
        /// Keys checked that were not there.
        pub verify_misses: u64,
        /// Objects that were there more than 5 s after they were to expire.
        pub expired_get: u64,
        /// Objects that were gone more than 5 s before they were to expire.
        pub unexpired_unget: u64,
        /// Bytes of the keys and values of all sets that were sent, to every server.
        pub object_bytes: u64,
    }
}

impl ObjectCounts {
    /// Each count with the words behind the number in a report.
    pub const fn rows(&self) -> [(&'static str, u64); 5] {
        [
            ("checked objects had another value", self.verify_failed),
            ("checked objects were not there", self.verify_misses),
            ("were there 5 s after their time to live", self.expired_get),
            ("were gone 5 s before its end", self.unexpired_unget),
            ("bytes of keys and values were set", self.object_bytes),
        ]
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

    #[test]
    fn faults_keep_their_bytes_and_have_a_bound() {
        let mut faults = ObjectFaults::with_room();
        let fault = |connection| ObjectFault::new(ObjectFaultKind::Value, 7, connection);
        let long: &[u8] = vec![1; BYTES_MAX].leak();
        let expected: &[&[u8]] = &[b"exp", b"ected"];
        faults.note(&fault(1), [&[b"one"], expected, &[b"ot", b"her"]]);
        faults.note(&fault(2), [&[], expected, &[long]]);
        faults.note(&fault(3), [&[b"three"], expected, &[]]);
        let rows: Vec<_> = faults.rows().map(|(fault, bytes)| (fault.connection, bytes)).collect();
        assert_eq!(rows, [(1, [&b"one"[..], b"expected", b"other"]), (3, [b"three", b"expected", b""])]);
        assert_eq!((faults.overflow, faults.is_empty()), (1, false));
        (0..100).for_each(|_| faults.note(&fault(4), [&[b"k"], expected, &[]]));
        let taken = faults.take();
        assert_eq!((taken.rows().count(), taken.overflow, faults.is_empty()), (FAULTS_MAX, 1 + 38, true));
    }
}
