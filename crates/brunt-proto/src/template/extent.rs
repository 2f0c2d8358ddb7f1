//! Lengths in a command that depend on what an operation brings along.
//!
//! A sum of counts. Invariant: what is always the same is in `bytes` alone.

use crate::Request;

/// How long something is: so many bytes, keys and values.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Extent {
    pub bytes: usize,
    pub keys: usize,
    pub values: usize,
}

impl Extent {
    /// Its length, where that is always the same.
    pub(super) fn fixed(self) -> Option<usize> {
        (self.keys + self.values == 0).then_some(self.bytes)
    }

    pub(super) fn plus(self, other: Self) -> Self {
        Self {
            bytes: self.bytes + other.bytes,
            keys: self.keys + other.keys,
            values: self.values + other.values,
        }
    }

    /// Its length for a request.
    pub(super) fn of(self, request: &Request<'_>) -> usize {
        self.bytes + self.keys * request.keys.first().len() + self.values * request.value.total_len()
    }
}
