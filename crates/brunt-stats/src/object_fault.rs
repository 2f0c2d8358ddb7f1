//! Objects of windows that were not as they were to be, one by one and with their bytes.
//!
//! Not counts (those are in `window_counts.rs`) and no part of a result: for observers. Invariant: what a worker
//! notes in an interval has a bound, and nothing is allocated for it but at the start; what there is no room for is counted.

use serde::{Deserialize, Serialize};

/// How many a worker can note in an interval.
const FAULTS_MAX: usize = 64;
/// Bytes that are kept of a value. Of a longer one they begin with the first that is wrong.
pub const SHOWN_MAX: usize = 4096;
/// Room for the bytes of all of them: a key of memcached, the value expected and the value received.
const BYTES_MAX: usize = FAULTS_MAX * (250 + 2 * SHOWN_MAX);

/// Kind of fault.
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
        /// As of one that expired.
        age_ms: u64,
    },
}

/// One of them.
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
    /// Length of the value that was expected, 0 where none is known, and of the one that was received.
    pub expected_len: u32,
    /// Length of the received value.
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

#[cfg(test)]
mod tests {
    use super::*;

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
