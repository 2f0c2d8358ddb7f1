//! How long the key or the value of an id is: a function of data seed and id, never drawn anew.
//!
//! The length of an id is the quantile of its distribution at hash(id)/2⁶⁴, rounded to the nearest byte (a half rounds up; truncation
//! would make every mean half a byte too small) and moved into the bounds. It is computed for every request, so that the
//! distributions that cost logarithms are looked up in a table of that same function. What is to be as in a data set of mutilate has its
//! formulas and its hash instead; mcperf's sizes are the numbers of its generator in their order: `rand48.rs`.

use crate::hash::{HashPurpose, IdHash};
use crate::keys::memaslap::Layout;
use crate::quantile_function::QuantileFunction;
use crate::rand48::Draws;
use brunt_plan::distribution::{Distribution, Generalised};
use brunt_plan::size::{SizeDistribution, SizeRange};
use std::sync::Arc;

/// What the sizes are of: those of one id are unrelated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SizeOf {
    /// Keys.
    Key,
    /// Values.
    Value,
    /// Not of bytes: by how much counters change.
    Delta,
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
    Uniform(RangeLengths),
    Parametric(ParametricLengths),
    Mutilate(ParametricLengths),
    Ranges(Vec<RangeLengths>),
    Mcperf(Draws),
    /// Those of objects of windows.
    Laid(Arc<Layout>, SizeOf),
}

/// Hashes up to this one have a length of this range, unless they have one of a range before it.
#[derive(Clone, Debug)]
struct RangeLengths {
    last: u64,
    min: u32,
    count: u64,
}

impl RangeLengths {
    fn all(ranges: &[SizeRange]) -> Vec<Self> {
        let total: f64 = ranges.iter().map(|range| range.share).sum();
        let mut sum = 0.0;
        let of = |(index, range): (usize, &SizeRange)| {
            sum += range.share;
            // The conversion saturates; whatever the sum is rounded to, the last range has all that is left.
            let last =
                if index + 1 == ranges.len() { u64::MAX } else { (sum / total * 2f64.powi(64)) as u64 };
            Self::new(last, range.min, range.max)
        };
        ranges.iter().enumerate().map(of).collect()
    }

    fn new(last: u64, min: u32, max: u32) -> Self {
        Self { last, min, count: u64::from(max - min) + 1 }
    }

    /// The high half of the product: the quantile at hash/2^64, uneven by less than 2^-32.
    fn at(&self, hash: u64) -> u32 {
        self.min + ((u128::from(hash) * u128::from(self.count)) >> 64) as u32
    }
}

impl Sizes {
    /// The lengths that belong to `data_seed`. A distribution takes a millisecond or two, for its table.
    pub fn new(distribution: SizeDistribution, of: SizeOf, data_seed: u64) -> Self {
        let purpose = match of {
            SizeOf::Key => HashPurpose::KeySize,
            SizeOf::Value => HashPurpose::ValueSize,
            SizeOf::Delta => HashPurpose::Delta,
        };
        // Bytes need room, and steps do not.
        let max = if of == SizeOf::Delta { u32::MAX } else { distribution.max() };
        let lengths = match distribution {
            SizeDistribution::Fixed(size) => Lengths::Fixed(size),
            SizeDistribution::Uniform { min, max } => Lengths::Uniform(RangeLengths::new(u64::MAX, min, max)),
            SizeDistribution::Parametric { distribution, min, max } => Lengths::Parametric(
                ParametricLengths::new(Form::Quantile(QuantileFunction::new(&distribution)), min, max),
            ),
            SizeDistribution::Mutilate { distribution, min, max } => {
                Lengths::Mutilate(ParametricLengths::new(Form::Mutilate(distribution), min, max))
            }
            SizeDistribution::Ranges(ranges) => Lengths::Ranges(RangeLengths::all(&ranges)),
            SizeDistribution::Mcperf(draw) => Lengths::Mcperf(Draws::new(draw)),
        };
        Self { lengths, max, hash: IdHash::new(data_seed, purpose) }
    }

    /// The lengths of a layout.
    pub(crate) fn laid(distribution: &SizeDistribution, of: SizeOf, layout: Arc<Layout>) -> Self {
        // Nothing is hashed.
        let hash = IdHash::new(0, HashPurpose::KeySize);
        Self { lengths: Lengths::Laid(layout, of), max: distribution.max(), hash }
    }

    /// The length that belongs to `id`.
    #[inline]
    pub fn len(&self, id: u64) -> u32 {
        match self.lengths {
            Lengths::Fixed(size) => size,
            _ => self.len_of_any(id),
        }
    }

    /// [`Sizes::len`], whatever the distribution.
    #[inline(never)]
    fn len_of_any(&self, id: u64) -> u32 {
        match &self.lengths {
            Lengths::Fixed(size) => *size,
            Lengths::Uniform(range) => range.at(self.hash.hash(id, 0)),
            Lengths::Parametric(lengths) => lengths.at(self.hash.hash(id, 0)),
            Lengths::Mutilate(lengths) => lengths.at(mutilate_hash(id)),
            Lengths::Mcperf(draws) => draws.at(id).round_ties_even().min(f64::from(self.max)) as u32,
            Lengths::Laid(layout, SizeOf::Key) => layout.key_len(id),
            Lengths::Laid(layout, SizeOf::Value | SizeOf::Delta) => layout.value_len(id),
            Lengths::Ranges(ranges) => {
                let hash = self.hash.hash(id, 0);
                let of_hash = ranges.iter().find(|range| hash <= range.last);
                // Where in the range is another hash's to say.
                of_hash.map_or(0, |range| range.at(self.hash.hash(id, 1)))
            }
        }
    }

    /// The longest length that can occur.
    pub fn max(&self) -> u32 {
        self.max
    }
}

/// The hash is cut into cells by its upper bits.
const CELL_BITS: u32 = 12;
/// Where in a cell the length changes is known to 32 more bits: probabilities are off by less than 2⁻⁴⁴.
const CHANGE_BITS: u32 = 32;
/// Stands for a length in cells with more than two of them.
const STEEP: u32 = u32::MAX;

/// Lengths of a distribution, with a table of 48 KiB for the cells of the hash in which there are at most two. In the others, where
/// the tail is thin (0.3 % of all ids for `fb_key`, 7 % for `fb_value`), the closed form is evaluated.
#[derive(Clone, Debug)]
struct ParametricLengths {
    form: Form,
    min: f64,
    max: f64,
    cells: Box<[Cell]>,
}

/// What a hash becomes.
#[derive(Clone, Debug)]
enum Form {
    Quantile(QuantileFunction),
    Mutilate(Distribution),
}

impl Form {
    fn at(&self, hash: u64) -> f64 {
        match self {
            Self::Quantile(quantiles) => quantiles.at(hash),
            Self::Mutilate(distribution) => mutilate_formula(distribution, hash),
        }
    }

    /// Does it go one way only, so that between two equal lengths there is no other?
    fn is_monotone(&self) -> bool {
        !matches!(self, Self::Mutilate(Distribution::Normal { .. }))
    }
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

impl ParametricLengths {
    fn new(form: Form, min: u32, max: u32) -> Self {
        let empty = Self { form, min: f64::from(min), max: f64::from(max), cells: Box::default() };
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
        (self.form.at(hash) + 0.5).clamp(self.min, self.max) as u32
    }

    /// The cell of all hashes that begin with these bits.
    fn cell(&self, index: u64) -> Cell {
        if !self.form.is_monotone() {
            return Cell { before: STEEP, after: STEEP, change: 0 };
        }
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
}

/// FNV-1a over the eight bytes of a record's number, the lowest first.
#[inline]
fn mutilate_hash(id: u64) -> u64 {
    let step = |hash: u64, byte: u8| (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01B3);
    id.to_le_bytes().into_iter().fold(0xCBF2_9CE4_8422_2325, step)
}

/// What mutilate draws at this place from a distribution that a plan may have here (no table, no lognormal), unrounded: what is computed here
/// is what mutilate computes, to the byte of the length. No quantile function: some of its formulas fall where the place rises, and its normal
/// distribution is no Gaussian (both of its random numbers are the same one).
fn mutilate_formula(distribution: &Distribution, hash: u64) -> f64 {
    let place = hash as f64 / u64::MAX as f64;
    let minus_log = -libm::log(place);
    match distribution {
        Distribution::Uniform { min, max } => min + (max - min) * place,
        Distribution::Normal { mean, sd } => {
            mean + sd * (2.0 * minus_log).sqrt() * libm::cos(std::f64::consts::TAU * place)
        }
        Distribution::Exponential { lambda } => minus_log / lambda,
        Distribution::Pareto(distribution) => generalised(distribution, place),
        Distribution::Gev(distribution) => generalised(distribution, minus_log),
        distribution @ (Distribution::Fixed { .. }
        | Distribution::Lognormal { .. }
        | Distribution::Discrete(_)
        | Distribution::FbValue) => {
            unreachable!("{distribution} is refused where a plan is read")
        }
    }
}

/// μ + σ (x⁻ᵏ − 1) / k, and its limit where k is 0.
fn generalised(distribution: &Generalised, x: f64) -> f64 {
    let power = if distribution.shape == 0.0 {
        -libm::log(x)
    } else {
        (libm::pow(x, -distribution.shape) - 1.0) / distribution.shape
    };
    distribution.location + distribution.scale * power
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::goodness_of_fit::{chi_squared, exceedance};
    use crate::rng::{Draw, Purpose, Rng};
    use brunt_plan::distribution::Distribution;

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

    /// By the ids in any order; as mcperf 0.1.1 sent them.
    #[test]
    fn sizes_of_mcperf_are_its_numbers_in_their_order() {
        let table: [(&str, u64, &[u32]); 6] = [
            ("mcperf:u1,100", 0, &[81, 28, 10, 44, 64]),
            ("mcperf:u1,100@3", 0, &[19, 97, 24]),
            ("mcperf:e50", 0, &[83, 16, 5]),
            ("mcperf:s5", 1_000_000, &[1_000_005]),
            ("mcperf:s5", 1 << 20, &[1 << 20, 1 << 20]),
            ("mcperf:d0.01", 7, &[0]),
        ];
        for (text, first, expected) in table {
            let sizes = sizes(text, SizeOf::Value);
            for (id, len) in (first..).zip(expected).collect::<Vec<_>>().into_iter().rev() {
                assert_eq!(sizes.len(id), *len, "{text} {id}");
            }
        }
        let sizes = sizes("mcperf:e50", SizeOf::Value);
        let total: f64 = (0..100_000).map(|id| f64::from(sizes.len(id))).sum();
        assert!(
            (total / 100_000.0 - 50.0).abs() < 1.0 && (0..100_000).all(|id| sizes.len(id) <= sizes.max())
        );
    }

    fn sizes(text: &str, of: SizeOf) -> Sizes {
        Sizes::new(text.parse::<SizeDistribution>().unwrap(), of, 1)
    }

    const LAWS: [&str; 9] = [
        "fb_key@5..250",
        "fb_value",
        "normal:200,50",
        "normal:3,2@0..1000",
        "exponential:0.01",
        "pareto:0,1000,0.9@10..100000",
        "lognormal:5,1.5",
        "gev:100,30,-0.2",
        "discrete:0=3,100=20,4KiB=1,100000=0.01",
    ];

    #[test]
    fn the_table_is_the_closed_form() {
        let mut rng = Rng::for_stream(1, Purpose::Ops, 0, 0);
        for text in LAWS {
            let sizes = sizes(text, SizeOf::Value);
            let Lengths::Parametric(lengths) = &sizes.lengths else { panic!("{text} is no law") };
            // The first and the last hash of every cell, and some in between.
            let edges = (0..1u64 << CELL_BITS).flat_map(|cell| [cell << 52, (cell << 52) | ((1 << 52) - 1)]);
            for hash in edges.chain((0..200_000).map(|_| rng.next_u64())) {
                assert_eq!(lengths.at(hash), lengths.by_closed_form(hash), "{text} at {hash:#x}");
            }
        }
    }

    #[test]
    fn how_often_the_closed_form_is_needed() {
        for (text, cells) in [("fb_key@5..250", 11), ("fb_value", 301), ("discrete:1=1,5=1,9=1", 0)] {
            let sizes = sizes(text, SizeOf::Value);
            let Lengths::Parametric(lengths) = &sizes.lengths else { panic!("{text} is no law") };
            let steep = lengths.cells.iter().filter(|cell| cell.before == STEEP).count();
            assert_eq!(steep, cells, "{text}");
        }
    }

    /// Observed and expected counts of lengths from `min` to `max`, in bins of at least 50 expected.
    fn bins(lengths: &[u32], distribution: &Distribution, min: u32, max: u32) -> Vec<(f64, f64)> {
        let mut sorted = lengths.to_vec();
        sorted.sort_unstable();
        let up_to = |length: u32| sorted.partition_point(|other| *other <= length) as f64;
        // What lies outside has been moved to the ends, and a length covers half a byte on both sides.
        let expected_up_to = |length: u32| {
            let below =
                if length == max { 1.0 } else { 1.0 - exceedance(distribution, f64::from(length) + 0.5) };
            below * lengths.len() as f64
        };
        let (mut bins, mut before, mut expected_before) = (Vec::new(), 0.0, 0.0);
        for length in min..=max {
            let (until, expected_until) = (up_to(length), expected_up_to(length));
            // What would be too little for a bin of its own at the end belongs to this one.
            let leaves_enough = lengths.len() as f64 - expected_until >= 50.0 || length == max;
            if expected_until - expected_before >= 50.0 && leaves_enough {
                bins.push((until - before, expected_until - expected_before));
                (before, expected_before) = (until, expected_until);
            }
        }
        let lost: f64 = lengths.len() as f64 - bins.iter().map(|(observed, _)| observed).sum::<f64>();
        assert_eq!(lost, 0.0, "no length lies outside {min} to {max}");
        bins
    }

    #[test]
    fn ranges_have_their_fractions() {
        let sizes = sizes("ranges:16-100@0.2,101-250@0.7,300-300@0.1", SizeOf::Key);
        let mut counts = [0; 301];
        (0..100_000).for_each(|id| counts[sizes.len(id) as usize] += 1);
        let within = |lens: std::ops::RangeInclusive<usize>| counts[lens].iter().sum::<u32>();
        // Four standard deviations of binomial counts, of ranges and of single lengths.
        for (lens, expected, most_off) in [
            (16..=100, 20_000, 506),
            (101..=250, 70_000, 580),
            (300..=300, 10_000, 380),
            (16..=16, 235, 62),
            (250..=250, 467, 87),
        ] {
            let count = within(lens.clone());
            assert!(count.abs_diff(expected) < most_off, "{lens:?}: {count}");
        }
        assert_eq!(within(0..=300), 100_000);
    }

    #[test]
    fn lengths_follow_their_distribution() {
        for text in LAWS {
            let distribution: SizeDistribution = text.parse().unwrap();
            let SizeDistribution::Parametric { distribution: parametric, min, max } = &distribution else {
                panic!("{text} is no law")
            };
            let sizes = Sizes::new(distribution.clone(), SizeOf::Value, 1);
            let lengths: Vec<u32> = (0..200_000).map(|id| sizes.len(id)).collect();
            let (value, critical) = chi_squared(&bins(&lengths, parametric, *min, *max));
            assert!(value < critical, "{text}: {value} is above {critical}");
        }
    }

    #[test]
    fn etc_sizes_match_the_published_ones() {
        const IDS: usize = 1_000_000;
        let lengths = |text: &str, of| {
            let sizes = sizes(text, of);
            let mut lengths: Vec<u32> = (0..IDS as u64).map(|id| sizes.len(id)).collect();
            lengths.sort_unstable();
            lengths
        };
        let values = lengths("fb_value", SizeOf::Value);
        let share = |up_to: u32| values.partition_point(|length| *length <= up_to) as f64 / IDS as f64;
        for (observed, expected) in
            [(share(2) - share(1), 0.17820), (share(14), 0.44155), (share(0), 0.00536)]
        {
            let deviation = (expected * (1.0 - expected) / IDS as f64).sqrt();
            assert!((observed - expected).abs() < 4.0 * deviation, "{observed} is not {expected}");
        }
        // In whole bytes; the distribution's own are 33.8, 76.3 and 141.8.
        let keys = lengths("fb_key@5..250", SizeOf::Key);
        assert_eq!((keys[IDS / 2], keys[IDS / 100 * 99]), (34, 76));
        let mean = keys.iter().map(|length| f64::from(*length)).sum::<f64>() / IDS as f64;
        assert!((mean - 36.2).abs() < 0.05, "{mean}");
    }

    #[test]
    fn lengths_stay_within_their_bounds_and_reach_them() {
        for (text, expected) in [
            ("normal:100,50@90..110", (90, 110)),
            ("fb_key@30..40", (30, 40)),
            ("lognormal:900,1", (1_000_000, 1_000_000)),
            ("gev:-1e9,1,0.1", (0, 0)),
            ("normal:7,0", (7, 7)),
        ] {
            let sizes = sizes(text, SizeOf::Key);
            let lengths = || (0..10_000).map(|id| sizes.len(id));
            assert_eq!((lengths().min().unwrap(), lengths().max().unwrap()), expected, "{text}");
        }
    }

    #[test]
    fn means() {
        // Closed forms: lengths are rounded without bias, and the bounds of these distributions are far away.
        let tail = 15.0 + 214.476 / (1.0 - 0.348238);
        let head = 2.0 * 0.17820 + 3.0 * 0.09239 + 0.00047 + 4.0 * 0.00018 + 5.0 * 0.02740 + 6.0 * 0.00065;
        let head = head + 7.0 * 0.00606 + 8.0 * 0.00023 + 19.0 * 0.00837 + 11.0 * 0.08989 + 12.0 * 0.00092;
        let head = head + 13.0 * 0.00326 + 14.0 * 0.01980;
        for (text, expected) in [
            ("fixed:30", 30.0),
            ("uniform:10,21", 15.5),
            ("fb_value", head + 0.55845 * tail),
            ("normal:200,20", 200.0),
            ("exponential:0.001", 1000.0),
            ("pareto:0,100,0.5", 200.0),
            ("discrete:100=1,1000=3", 775.0),
            ("ranges:0-10@0.25,100-300@0.75", 151.25),
        ] {
            let sizes = sizes(text, SizeOf::Value);
            let mean = (0..1 << 18).map(|id| f64::from(sizes.len(id))).sum::<f64>() / f64::from(1 << 18);
            assert!((mean / expected - 1.0).abs() < 1e-2, "{text}: {mean} is not {expected}");
        }
    }

    #[test]
    fn lengths_depend_on_the_data_seed_alone() {
        // Golden: a data set that one release preloads, another one verifies.
        for (text, of, expected) in [
            ("fb_key@5..250", SizeOf::Key, [46, 39, 22, 45, 30, 27, 29, 31]),
            ("fb_value", SizeOf::Value, [567, 11, 2, 52, 355, 59, 3, 10]),
            ("normal:200,50", SizeOf::Value, [267, 183, 142, 203, 250, 205, 165, 177]),
        ] {
            let sizes = sizes(text, of);
            let lengths: Vec<u32> = (0..8).map(|id| sizes.len(id)).collect();
            assert_eq!(lengths, expected, "{text}");
        }
    }

    const IDS: [u64; 10] = [0, 1, 2, 3, 4, 5, 6, 7, 9_999, 999_999];

    #[test]
    fn the_hash_is_mutilates() {
        assert_eq!(
            IDS.map(mutilate_hash)[..4],
            [0xa8c7_f832_281a_39c5, 0x89cd_3129_1d2a_efa4, 0xe6bd_8644_3df8_ce07, 0xc7c2_bf3b_3309_83e6]
        );
        assert_eq!(mutilate_hash(999_999), 0x2618_13b3_02bb_86f3);
    }

    #[test]
    fn draws_match_mutilate() {
        let check = |text: &str, expected: [f64; 10]| {
            let distribution = text.parse::<Distribution>().unwrap();
            for (id, expected) in IDS.into_iter().zip(expected) {
                let drawn = mutilate_formula(&distribution, mutilate_hash(id));
                assert!((drawn - expected).abs() < 6e-4, "{text} of {id}: {drawn}, not {expected}");
            }
        };
        check(
            "normal:200,2",
            [199.015, 197.838, 200.742, 200.267, 201.689, 204.551, 197.705, 199.106, 204.040, 202.318],
        );
        check("exponential:0.1", [4.166, 6.194, 1.039, 2.481, 17.416, 29.145, 8.740, 12.165, 25.810, 19.051]);
    }

    #[test]
    fn lengths_are_those_of_mutilates_keys() {
        // (text, lengths of the keys above)
        let table = [
            ("mutilate:fb_key@1..250", [38, 35, 51, 43, 26, 22, 32, 29, 23, 26]),
            ("mutilate:uniform:100@1..250", [66, 54, 90, 78, 18, 5, 42, 30, 8, 15]),
            ("mutilate:normal:200,2@1..250", [199, 198, 201, 200, 202, 205, 198, 199, 204, 202]),
            ("mutilate:exponential:0.1@6..20", [6, 6, 6, 6, 17, 20, 9, 12, 20, 19]),
        ];
        for (text, expected) in table {
            let sizes = Sizes::new(text.parse().unwrap(), SizeOf::Key, 1);
            assert_eq!(IDS.map(|id| sizes.len(id)), expected, "{text}");
        }
    }

    #[test]
    fn the_table_is_the_formula() {
        for text in [
            "fb_key",
            "fb_ia",
            "uniform:100",
            "normal:100,30",
            "exponential:0.02",
            "pareto:3,20,0.3",
            "gev:30,8,-0.2",
        ] {
            let sizes = Sizes::new(format!("mutilate:{text}@4..250").parse().unwrap(), SizeOf::Key, 1);
            let distribution = text.parse::<Distribution>().unwrap();
            for id in 0..200_000 {
                let exact =
                    (mutilate_formula(&distribution, mutilate_hash(id)).round().clamp(4.0, 250.0)) as u32;
                assert_eq!(sizes.len(id), exact, "{text} of {id}");
            }
        }
    }
}
