//! Lengths in a command that depend on the key, value and numbers of an operation.
//!
//! A sum of counts. Invariant: what is always the same is in `bytes` alone.

use super::number::Number;
use crate::Request;

/// A length: bytes, keys, values and decimals.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Extent {
    pub bytes: usize,
    pub keys: usize,
    pub values: usize,
    /// Numbers in decimal.
    pub numbers: Vec<Number>,
}

impl Extent {
    /// Its length, where that is always the same.
    pub(super) fn fixed(&self) -> Option<usize> {
        (self.keys + self.values + self.numbers.len() == 0).then_some(self.bytes)
    }

    pub(super) fn plus(mut self, other: Self) -> Self {
        self.numbers.extend(other.numbers);
        Self {
            bytes: self.bytes + other.bytes,
            keys: self.keys + other.keys,
            values: self.values + other.values,
            numbers: self.numbers,
        }
    }

    /// Length in bytes for a request.
    pub(super) fn encoded_len(&self, request: &Request<'_>) -> usize {
        let of_numbers: usize = self.numbers.iter().map(|number| number.len(request.operand)).sum();
        of_numbers
            + self.bytes
            + self.keys * request.keys.first().len()
            + self.values * request.value.total_len()
    }
}
