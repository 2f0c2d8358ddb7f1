//! The hash that sizes and values are functions of: rapidhash V3 of (id, word) under the data seed.
//!
//! Part of the data set, like the key text: a change makes stored values unverifiable.

use rapidhash::v3::{RapidSecrets, rapidhash_v3_nano_inline};

/// Hashes ids for one purpose under one data seed.
#[derive(Clone, Debug)]
pub(crate) struct IdHash {
    secrets: RapidSecrets,
}

/// What an [`IdHash`] is for: different purposes hash the same id to unrelated numbers.
#[derive(Clone, Copy, Debug)]
#[repr(u64)]
pub(crate) enum HashPurpose {
    KeySize = 1,
    ValueSize = 2,
    Value = 3,
    Block = 4,
    Scatter = 5,
    KeyText = 6,
    Delta = 7,
}

impl IdHash {
    pub(crate) fn new(data_seed: u64, purpose: HashPurpose) -> Self {
        // Mixed by addition of a multiple, so that neighbouring data seeds and purposes do not meet.
        let seed = data_seed.wrapping_add((purpose as u64).wrapping_mul(0xA24B_AED4_963E_E407));
        Self { secrets: RapidSecrets::seed(seed) }
    }

    #[inline]
    pub(crate) fn hash(&self, id: u64, word: u64) -> u64 {
        let mut bytes = [0; 16];
        bytes[..8].copy_from_slice(&id.to_le_bytes());
        bytes[8..].copy_from_slice(&word.to_le_bytes());
        rapidhash_v3_nano_inline::<true, false>(&bytes, &self.secrets)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_hash_is_part_of_the_data_set() {
        // Golden: a data set that one release preloads, another one verifies.
        let value = IdHash::new(1, HashPurpose::Value);
        assert_eq!([value.hash(0, 0), value.hash(1, 0), value.hash(0, 1)], GOLDEN);
        assert_ne!(IdHash::new(1, HashPurpose::KeySize).hash(0, 0), GOLDEN[0]);
        assert_ne!(IdHash::new(2, HashPurpose::Value).hash(0, 0), GOLDEN[0]);
    }

    const GOLDEN: [u64; 3] =
        [10_388_558_825_086_079_471, 7_389_993_136_318_558_295, 17_538_805_529_343_920_410];
}
