//! The hash that sizes and values are functions of: rapidhash V3 of (id, word) under the data seed; and a bijection of ids by it.
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

/// Rounds of the Feistel network; four make every half depend on every bit of both (Luby, Rackoff, SIAM J. Comput. 1988).
const ROUNDS: usize = 4;

/// A bijection of `0..n`, which scatters popularity ranks over ids without a table: a Feistel network over the ⌈log₂ n⌉ bits of a number,
/// walked along its cycle until it is below `n` again. Not cryptography: it has to spread neighbours and to be a bijection, so that no two
/// ranks share an id and no two ids a key. At most half of all numbers are out of range, so the walk takes two steps on average or fewer.
#[derive(Clone, Debug)]
pub(crate) struct Permutation {
    n: u64,
    low_bits: u32,
    high_mask: u64,
    low_mask: u64,
    keys: [u64; ROUNDS],
}

impl Permutation {
    /// The bijection of `0..n` that belongs to `data_seed`. `n` is at least 1.
    pub(crate) fn new(n: u64, data_seed: u64) -> Self {
        Self::by_hash(n, &IdHash::new(data_seed, HashPurpose::Scatter))
    }

    /// The bijection of `0..n` that belongs to this hash of `n`. `n` is at least 1.
    pub(crate) fn by_hash(n: u64, hash: &IdHash) -> Self {
        assert!(n > 0, "nothing to permute");
        let bits = u64::BITS - (n - 1).leading_zeros();
        let high_bits = bits / 2;
        let low_bits = bits - high_bits;
        let mut keys = [0; ROUNDS];
        for (round, key) in keys.iter_mut().enumerate() {
            *key = hash.hash(n, round as u64);
        }
        Self { n, low_bits, high_mask: (1 << high_bits) - 1, low_mask: (1 << low_bits) - 1, keys }
    }

    /// The image of `number`, which is below `n`.
    #[inline]
    pub(crate) fn apply(&self, number: u64) -> u64 {
        debug_assert!(number < self.n, "{number} is not below {}", self.n);
        let mut image = self.network(number);
        while image >= self.n {
            image = self.network(image);
        }
        image
    }

    #[inline]
    fn network(&self, number: u64) -> u64 {
        let mut high = number >> self.low_bits;
        let mut low = number & self.low_mask;
        for keys in self.keys.as_chunks::<2>().0 {
            high ^= fold(low, keys[0]) & self.high_mask;
            low ^= fold(high, keys[1]) & self.low_mask;
        }
        high << self.low_bits | low
    }
}

/// Both halves of a 128-bit product, folded: one multiplication that lets every bit reach every other.
#[inline]
fn fold(half: u64, key: u64) -> u64 {
    // The multiplier is the golden ratio's fraction, as good as any odd number without pattern.
    let product = u128::from(half ^ key) * 0x9E37_79B9_7F4A_7C15;
    (product >> 64) as u64 ^ product as u64
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

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

    #[test]
    fn is_a_bijection_of_every_small_range() {
        for n in 1..=5_000 {
            let permutation = Permutation::new(n, n ^ 7);
            let mut seen = vec![false; n as usize];
            for number in 0..n {
                let image = permutation.apply(number) as usize;
                assert!(!std::mem::replace(&mut seen[image], true), "{image} twice in 0..{n}");
            }
        }
    }

    #[test]
    fn sampled_images_of_large_ranges_are_distinct_and_in_range() {
        for n in [1 << 40, (1 << 40) + 1, (1 << 40) - 1, u64::MAX] {
            let permutation = Permutation::new(n, 1);
            let first: HashSet<u64> = (0..50_000).map(|number| permutation.apply(number)).collect();
            let last: HashSet<u64> = (0..50_000).map(|number| permutation.apply(n - 1 - number)).collect();
            let across: HashSet<u64> = (1..50_000).map(|part| permutation.apply(n / 50_000 * part)).collect();
            let all: HashSet<u64> = first.iter().chain(&last).chain(&across).copied().collect();
            assert_eq!(all.len(), 149_999, "n = {n}");
            assert!(all.iter().all(|image| *image < n));
        }
    }

    #[test]
    fn images_are_part_of_the_data_set() {
        // Golden: which keys are hot must not change from one release, or one machine, to another.
        for (n, seed, images) in GOLDEN_IMAGES {
            let permutation = Permutation::new(n, seed);
            assert_eq!(
                [0, 1, 2, n - 1].map(|number| permutation.apply(number)),
                images,
                "n = {n}, seed {seed}"
            );
        }
    }

    const GOLDEN_IMAGES: [(u64, u64, [u64; 4]); 4] = [
        (1_000_000, 1, [896_533, 816_905, 563_415, 870_818]),
        (1_000_000, 2, [535_087, 716_522, 851_123, 232_366]),
        (1 << 40, 1, [915_840_102_874, 624_560_475_310, 243_700_221_658, 1_053_017_397_890]),
        (
            u64::MAX,
            1,
            [
                1_234_245_300_663_189_208,
                13_153_823_884_371_857_867,
                5_298_882_406_473_632_290,
                5_845_198_233_088_205_713,
            ],
        ),
    ];

    #[test]
    fn neighbours_scatter() {
        // Images of the first 6400 ranks fall into 64 equal parts of the range like balls into boxes: chi-square with
        // 63 degrees of freedom, 1 to 99.9 % is 39.9 to 103.4.
        for (n, seed) in [(1_000_000, 1), (1_000_000, 2), (10_000_000, 1), (1 << 20, 1), (1 << 40, 3)] {
            let permutation = Permutation::new(n, seed);
            let mut counts = [0f64; 64];
            for rank in 0..6_400 {
                counts[(u128::from(permutation.apply(rank)) * 64 / u128::from(n)) as usize] += 1.0;
            }
            let chi_square: f64 = counts.iter().map(|count| (count - 100.0).powi(2) / 100.0).sum();
            assert!((35.0..103.4).contains(&chi_square), "n = {n}, seed {seed}: {chi_square}");
        }
    }

    #[test]
    fn the_data_seed_decides() {
        let images = |seed| {
            let permutation = Permutation::new(1_000, seed);
            (0..1_000).map(|number| permutation.apply(number)).collect::<Vec<_>>()
        };
        assert_eq!(images(1), images(1));
        let same = images(1).iter().zip(images(2)).filter(|(a, b)| **a == *b).count();
        assert!(same < 10, "{same} of 1000 fixed; one is expected");
    }
}
