//! How long the key or the value of an id is: a function of data seed and id, never drawn anew.
//!
//! The length of an id is the quantile of its law at hash(id)/2⁶⁴, rounded to the nearest byte (a half rounds up; truncation
//! would make every mean half a byte too small) and moved into the bounds. It is asked for with every request, so that the
//! laws that cost logarithms are looked up in a table of that same function.

use crate::hash::{HashPurpose, IdHash};
use crate::law::Quantiles;
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
    lengths: Lengths,
    max: u32,
    hash: IdHash,
}

#[derive(Clone, Debug)]
enum Lengths {
    Fixed(u32),
    Uniform { min: u32, count: u64 },
    Law(LawLengths),
}

impl Sizes {
    /// The lengths that belong to `data_seed`. A law takes some milliseconds, for its table.
    pub fn new(distribution: SizeDistribution, of: SizeOf, data_seed: u64) -> Self {
        let purpose = match of {
            SizeOf::Key => HashPurpose::KeySize,
            SizeOf::Value => HashPurpose::ValueSize,
        };
        let max = distribution.max();
        let lengths = match distribution {
            SizeDistribution::Fixed(size) => Lengths::Fixed(size),
            SizeDistribution::Uniform { min, max } => {
                Lengths::Uniform { min, count: u64::from(max - min) + 1 }
            }
            SizeDistribution::Law { law, min, max } => {
                Lengths::Law(LawLengths::new(Quantiles::new(&law), min, max))
            }
        };
        Self { lengths, max, hash: IdHash::new(data_seed, purpose) }
    }

    /// The length that belongs to `id`.
    #[inline]
    pub fn len(&self, id: u64) -> u32 {
        match &self.lengths {
            Lengths::Fixed(size) => *size,
            // The high half of the product: the quantile at hash/2^64, uneven by less than 2^-32.
            Lengths::Uniform { min, count } => {
                *min + ((u128::from(self.hash.of(id, 0)) * u128::from(*count)) >> 64) as u32
            }
            Lengths::Law(lengths) => lengths.at(self.hash.of(id, 0)),
        }
    }

    /// The longest length that can occur.
    pub fn max(&self) -> u32 {
        self.max
    }

    /// The mean length, to about a part in a thousand: what a data set will take, which the longest length says nothing of
    /// where a law has a long tail.
    pub fn mean(&self) -> f64 {
        match &self.lengths {
            Lengths::Fixed(size) => f64::from(*size),
            Lengths::Uniform { min, count } => f64::from(*min) + (*count - 1) as f64 / 2.0,
            Lengths::Law(lengths) => lengths.mean(),
        }
    }
}

/// The hash is cut into cells by its upper bits.
const CELL_BITS: u32 = 12;
/// Where in a cell the length changes is known to 32 more bits: probabilities are off by less than 2⁻⁴⁴.
const CHANGE_BITS: u32 = 32;
/// Stands for a length in cells with more than two of them.
const STEEP: u32 = u32::MAX;

/// Lengths of a law, with a table of 48 KiB for the cells of the hash in which there are at most two. In the others, where
/// the tail is thin (2 % of all ids for `fb_key`, 17 % for `fb_value`), the closed form is evaluated.
#[derive(Clone, Debug)]
struct LawLengths {
    quantiles: Quantiles,
    min: f64,
    max: f64,
    cells: Box<[Cell]>,
}

#[derive(Clone, Copy, Debug)]
struct Cell {
    /// The length up to the change; [`STEEP`] where the table does not know.
    before: u32,
    /// The length from the change on.
    after: u32,
    /// The change as the bits of the hash that follow the cell's.
    change: u32,
}

impl LawLengths {
    fn new(quantiles: Quantiles, min: u32, max: u32) -> Self {
        let empty = Self { quantiles, min: f64::from(min), max: f64::from(max), cells: Box::default() };
        let cells = (0..1 << CELL_BITS).map(|index| empty.cell(index)).collect();
        Self { cells, ..empty }
    }

    #[inline]
    fn at(&self, hash: u64) -> u32 {
        let cell = self.cells[(hash >> (64 - CELL_BITS)) as usize];
        if cell.before == STEEP {
            return self.by_closed_form(hash);
        }
        let place = (hash >> (64 - CELL_BITS - CHANGE_BITS)) as u32;
        if place < cell.change { cell.before } else { cell.after }
    }

    fn by_closed_form(&self, hash: u64) -> u32 {
        // The conversion truncates, and everything below 0 has been moved up to the lower bound.
        (self.quantiles.at(hash) + 0.5).clamp(self.min, self.max) as u32
    }

    /// The cell of all hashes that begin with these bits.
    fn cell(&self, index: u64) -> Cell {
        let start = index << (64 - CELL_BITS);
        let at = |place: u32| self.by_closed_form(start | u64::from(place) << (64 - CELL_BITS - CHANGE_BITS));
        let (before, after) = (at(0), at(u32::MAX));
        let (mut low, mut high) = (0, u32::MAX);
        while before != after && high - low > 1 {
            let middle = low + (high - low) / 2;
            match at(middle) {
                length if length == before => low = middle,
                length if length == after => high = middle,
                _ => return Cell { before: STEEP, after: STEEP, change: 0 },
            }
        }
        Cell { before, after, change: high }
    }

    /// The average over places in the law, in layers of which each has half the probability that those before it left: the
    /// longer the tail, the more it matters.
    fn mean(&self) -> f64 {
        const LAYERS: u32 = 48;
        const PLACES: u64 = 1 << 12;
        let layer = |layer: u32| {
            let (width, step) = (1u64 << (63 - layer), (1u64 << (63 - layer)) / PLACES);
            let start = 0u64.wrapping_sub(width).wrapping_sub(width);
            let sum: f64 = (0..PLACES)
                .map(|place| f64::from(self.at(start.wrapping_add(step * place + step / 2))))
                .sum();
            sum / PLACES as f64 * 0.5f64.powi(layer as i32 + 1)
        };
        (0..LAYERS).map(layer).sum()
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
