//! How long the key or the value of an id is: a function of data seed and id, never drawn anew.

use crate::hash::{HashPurpose, IdHash};
use brunt_plan::distribution::SizeDistribution;

/// What the sizes are of: keys and values of one id have unrelated lengths.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SizeOf {
    /// Keys.
    Key,
    /// Values.
    Value,
}

/// The lengths of one keyspace's keys or values, in bytes.
#[derive(Clone, Debug)]
pub struct Sizes {
    distribution: SizeDistribution,
    hash: IdHash,
}

impl Sizes {
    /// The lengths that belong to `data_seed`.
    pub fn new(distribution: SizeDistribution, of: SizeOf, data_seed: u64) -> Self {
        let purpose = match of {
            SizeOf::Key => HashPurpose::KeySize,
            SizeOf::Value => HashPurpose::ValueSize,
        };
        Self { distribution, hash: IdHash::new(data_seed, purpose) }
    }

    /// The length that belongs to `id`.
    #[inline]
    pub fn len(&self, id: u64) -> u32 {
        match &self.distribution {
            SizeDistribution::Fixed(size) => *size,
            SizeDistribution::Uniform { min, max } => {
                // The high half of the product: the quantile at hash/2^64, uneven by less than 2^-32.
                let lengths = u64::from(*max - *min) + 1;
                *min + ((u128::from(self.hash.of(id, 0)) * u128::from(lengths)) >> 64) as u32
            }
        }
    }

    /// The longest length that can occur.
    pub fn max(&self) -> u32 {
        self.distribution.max()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths_follow_the_distribution_and_the_seed() {
        let fixed = Sizes::new(SizeDistribution::Fixed(200), SizeOf::Value, 1);
        assert!((0..100).all(|id| fixed.len(id) == 200));

        let distribution = SizeDistribution::Uniform { min: 10, max: 13 };
        let lengths = |of, seed| {
            let sizes = Sizes::new(distribution.clone(), of, seed);
            (0..40_000).map(|id| sizes.len(id)).collect::<Vec<_>>()
        };
        let values = lengths(SizeOf::Value, 1);
        for length in 10..=13 {
            // 10 000 ± 4 standard deviations of a binomial count.
            let count = values.iter().filter(|len| **len == length).count();
            assert!(count.abs_diff(10_000) < 350, "{count} of length {length}");
        }
        assert_eq!(values, lengths(SizeOf::Value, 1));
        assert_ne!(values, lengths(SizeOf::Value, 2));
        assert_ne!(values, lengths(SizeOf::Key, 1));
        let widest = Sizes::new(SizeDistribution::Uniform { min: 0, max: u32::MAX }, SizeOf::Key, 1);
        assert!((0..1_000).any(|id| widest.len(id) > u32::MAX / 2));
    }
}
