//! Zipf's law over `n` ranks: rank `k` (from 1) with probability proportional to `k^−s`. Constant time and memory.
//!
//! Exact for every exponent, 1 included, and every `n`: no sum over all ranks, no approximated quantile. The hottest
//! ranks come from an alias table; it has one more slot for all the others, among which rejection-inversion decides
//! (Hörmann, Derflinger, ACM TOMACS 6(3), 1996). Beyond 2⁵³ ranks a float is coarser than a rank, and only such ranks are
//! drawn as a float can hold; no run draws often enough to tell.

use crate::alias::AliasTable;
use crate::rng::Draw;

/// Ranks in the alias table: 128 KiB, which a second-level cache holds, and half of all draws or more at exponents near 1.
const HOT_RANKS_MAX: u64 = 1 << 14;

/// Above this exponent the ranks outside of the table have less than 2⁻¹²⁶ together: none of them is ever drawn, and areas
/// of their size would drown.
const TAIL_EXPONENT_MAX: f64 = 10.0;

/// From here on no rank is refused. Exactly, rank k would be with a probability of about s(s+1)/(24 k²), below 10⁻¹⁸ here;
/// but near 2⁵² the difference of areas that decides it drowns in rounding, and would refuse every other rank.
const REJECT_BELOW: f64 = 4_294_967_296.0;

/// The distribution, ready to be drawn from.
#[derive(Clone, Debug)]
pub(crate) struct Zipf {
    hot: AliasTable,
    /// How many ranks the table holds; the slot after them is for the tail, where there is one.
    hot_ranks: u64,
    tail: Tail,
}

impl Zipf {
    /// `n` is at least 1, the exponent above 0 and finite.
    pub(crate) fn new(n: u64, exponent: f64) -> Self {
        assert!(n > 0 && exponent > 0.0 && exponent.is_finite(), "zipf:{exponent} over {n} ranks");
        let hot_ranks = n.min(HOT_RANKS_MAX);
        let mut weights: Vec<f64> = (1..=hot_ranks).map(|rank| libm::pow(rank as f64, -exponent)).collect();
        let tail = Tail::new(hot_ranks + 1, n.max(hot_ranks + 1), exponent.min(TAIL_EXPONENT_MAX));
        if n > hot_ranks && exponent <= TAIL_EXPONENT_MAX {
            weights.push(tail.weight());
        }
        Self { hot: AliasTable::new(&weights), hot_ranks, tail }
    }

    /// A rank from 0 (hottest) to `n − 1`.
    #[inline]
    pub(crate) fn rank(&self, draw: &mut impl Draw) -> u64 {
        let index = self.hot.pick(draw.next_u64()) as u64;
        if index < self.hot_ranks { index } else { self.tail.rank(draw) - 1 }
    }
}

/// Zipf's law over the ranks from `first` to `last` (from 1) alone.
///
/// All areas are in units of `first^(1−s)`, that is of x/first: with large exponents the plain integral from 1 would
/// have lost every digit this far out.
#[derive(Clone, Debug)]
struct Tail {
    first: u64,
    last: u64,
    exponent: f64,
    /// The area at which the draw begins: that of `first + ½` less the mass of `first`, which is never refused.
    area_low: f64,
    /// The area at `last + ½`.
    area_high: f64,
    /// A rank that is at most this far above its x is accepted without a look at the areas: the smallest such distance,
    /// that of `first + 1`, as the distance grows with the rank.
    accept_within: f64,
}

impl Tail {
    fn new(first: u64, last: u64, exponent: f64) -> Self {
        let mut tail = Self { first, last, exponent, area_low: 0.0, area_high: 0.0, accept_within: 0.0 };
        let start = first as f64;
        tail.area_low = tail.area(start + 0.5) - tail.mass(start);
        tail.area_high = tail.area(last as f64 + 0.5);
        tail.accept_within = start + 1.0 - tail.position(tail.area(start + 1.5) - tail.mass(start + 1.0));
        tail
    }

    /// ∫ y^−s dy from 1 to x/first, that is ((x/first)^(1−s) − 1)/(1−s), without cancellation near s = 1 or x = first.
    fn area(&self, x: f64) -> f64 {
        let log = libm::log(x / self.first as f64);
        let slope = 1.0 - self.exponent;
        if slope == 0.0 { log } else { libm::expm1(slope * log) / slope }
    }

    /// The inverse of [`Tail::area`].
    fn position(&self, area: f64) -> f64 {
        let slope = 1.0 - self.exponent;
        let log = if slope == 0.0 { area } else { libm::log1p(slope * area) / slope };
        self.first as f64 * libm::exp(log)
    }

    /// `k^−s` in the units of the areas.
    fn mass(&self, rank: f64) -> f64 {
        let start = self.first as f64;
        libm::pow(rank / start, -self.exponent) / start
    }

    /// Σ k^−s over the tail in plain units, by Euler and Maclaurin: integral, half of both ends, a twelfth of the
    /// difference of the slopes. The next term is below 10⁻¹² of the first summand for s ≤ 10 and first > 10⁴.
    fn weight(&self) -> f64 {
        let (start, end) = (self.first as f64, self.last as f64);
        let ratio = libm::pow(end / start, -self.exponent);
        let slopes = self.exponent * (1.0 / start - ratio / end);
        libm::pow(start, -self.exponent) * (start * self.area(end) + (1.0 + ratio) / 2.0 + slopes / 12.0)
    }

    /// A rank from `first` to `last`.
    fn rank(&self, draw: &mut impl Draw) -> u64 {
        loop {
            let area = self.area_low + draw.unit_open() * (self.area_high - self.area_low);
            let x = self.position(area);
            // The conversion saturates; the ends are rounded inwards.
            let rank = ((x + 0.5) as u64).clamp(self.first, self.last);
            let middle = rank as f64;
            let surely = middle - x <= self.accept_within || x >= REJECT_BELOW;
            if surely || area >= self.area(middle + 0.5) - self.mass(middle) {
                return rank;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::{Purpose, Rng};

    fn rng() -> Rng {
        Rng::for_stream(1, Purpose::Ops, 0, 0)
    }

    /// Σ k^−s over a range of ranks (from 1), summed one by one, small ones first.
    fn sum(ranks: std::ops::RangeInclusive<u64>, exponent: f64) -> f64 {
        ranks.rev().map(|rank| (rank as f64).powf(-exponent)).sum()
    }

    #[test]
    fn the_tail_weight_equals_the_sum_of_its_ranks() {
        for exponent in [0.01, 0.5, 0.8, 0.99, 1.0, 1.01, 2.0, 10.0] {
            for last in [16_385, 16_386, 20_000, 1_000_000] {
                let expected = sum(16_385..=last, exponent);
                let weight = Tail::new(16_385, last, exponent).weight();
                assert!(
                    (weight / expected - 1.0).abs() < 1e-11,
                    "zipf:{exponent} to {last}: {weight} {expected}"
                );
            }
        }
    }

    #[test]
    fn the_hottest_ranks_have_their_exact_probabilities() {
        // 1/Σ k^−s, computed with 30 digits.
        for (exponent, n, expected) in [
            (0.99, 1_000_000, 0.064_969_449_189),
            (0.99, 10_000_000, 0.055_351_852_789),
            (1.0, 1_000_000, 0.069_479_537_753),
            (0.8, 10_000_000, 0.008_253_768_081),
            (10.0, 1_000_000, 0.999_006_413_069),
            (12.0, 1_000_000, 0.999_753_973_990),
            (50.0, u64::MAX, 1.0),
            (1e300, u64::MAX, 1.0),
            (0.5, 1 << 63, 1.646_361_3e-10),
            (0.99, 1 << 63, 0.018_072_402_476),
            (1.0, 1 << 63, 0.022_601_174_590),
            (0.5, u64::MAX, 1.164_153_2e-10),
            (0.99, u64::MAX, 0.017_727_540_94),
            (1.2, u64::MAX, 0.178_862_676_7),
        ] {
            let probabilities = Zipf::new(n, exponent).hot.probabilities();
            assert!(
                (probabilities[0] - expected).abs() < 5e-10,
                "zipf:{exponent} over {n}: {}",
                probabilities[0]
            );
            let second = expected * 0.5f64.powf(exponent);
            assert!(
                (probabilities[1] - second).abs() < 5e-10,
                "zipf:{exponent} over {n}: {}",
                probabilities[1]
            );
        }
    }

    /// Chi-square of `draws` ranks against cells that end at these ranks (from 1, ascending), the last one at `n`.
    fn chi_square(exponent: f64, ends: &[u64], draws: u64, mut rank: impl FnMut() -> u64, first: u64) -> f64 {
        let mut counts = vec![0f64; ends.len()];
        for _ in 0..draws {
            let rank = rank();
            counts[ends.partition_point(|end| *end < rank)] += 1.0;
        }
        let starts = std::iter::once(first).chain(ends.iter().map(|end| end + 1));
        let weights: Vec<f64> = starts.zip(ends).map(|(start, end)| sum(start..=*end, exponent)).collect();
        let total: f64 = weights.iter().sum();
        let off = |(count, weight): (&f64, &f64)| {
            let expected = draws as f64 * weight / total;
            (count - expected).powi(2) / expected
        };
        counts.iter().zip(&weights).map(off).sum()
    }

    #[test]
    fn ten_million_draws_follow_zipf() {
        // The top 100 ranks and 20 geometric cells from 101 to 10⁶: 119 degrees of freedom, p = 0.001 at 172.4.
        let geometric = |cell: i32| (100.0 * 10_000f64.powf(f64::from(cell) / 20.0)).round() as u64;
        let ends: Vec<u64> = (1..=100).chain((1..=20).map(geometric)).collect();
        for (exponent, draws) in [(0.99, 10_000_000), (1.0, 2_000_000), (0.5, 2_000_000), (1.5, 2_000_000)] {
            let (zipf, mut rng) = (Zipf::new(1_000_000, exponent), rng());
            let chi_square = chi_square(exponent, &ends, draws, || zipf.rank(&mut rng) + 1, 1);
            assert!((70.0..172.4).contains(&chi_square), "zipf:{exponent}: {chi_square}");
        }
    }

    #[test]
    fn rejection_inversion_alone_follows_zipf() {
        // 16 ranks from the very first, where refusals are most frequent: 15 degrees of freedom, p = 0.001 at 37.7.
        for first in [1, 2, 1_000] {
            let ends: Vec<u64> = (first..first + 16).collect();
            for exponent in [0.1, 0.99, 1.0, 1.5, 3.0, 10.0] {
                let (tail, mut rng) = (Tail::new(first, first + 15, exponent), rng());
                // Cells that expect less than one draw would say nothing: the sum is over those ranks together.
                let enough = |end: &u64| {
                    sum(*end..=first + 15, exponent) * 1e6 > 100.0 * sum(ends[0]..=first + 15, exponent)
                };
                let mut cells: Vec<u64> = ends.iter().copied().filter(enough).collect();
                if let Some(last) = cells.last_mut() {
                    *last = first + 15;
                }
                let chi_square = chi_square(exponent, &cells, 1_000_000, || tail.rank(&mut rng), first);
                assert!(chi_square < 37.7, "zipf:{exponent} from {first}: {chi_square}");
            }
        }
    }

    #[test]
    fn shares_of_the_hottest_ranks() {
        // Cumulative shares computed with 30 digits; a million draws, four standard deviations.
        type Shares<'a> = &'a [(u64, f64)];
        let table: [(f64, u64, Shares<'_>); 9] = [
            (0.99, 10_000_000, &[(10_000, 0.565_937), (100_000, 0.707_305), (1_000_000, 0.851_967)]),
            (0.8, 10_000_000, &[(10_000, 0.223_765), (100_000, 0.376_062), (1_000_000, 0.617_441)]),
            (1.0, 10_000_000, &[(10_000, 0.586_249), (100_000, 0.724_164), (1_000_000, 0.862_082)]),
            (
                0.5,
                1 << 63,
                &[(1_000_000_000_000_000, 0.010_412_50), (1_000_000_000_000_000_000, 0.329_272_3)],
            ),
            (
                0.99,
                1 << 63,
                &[(1_000, 0.139_681), (1_000_000_000, 0.426_569), (1_000_000_000_000_000, 0.755_973)],
            ),
            (
                0.5,
                u64::MAX,
                &[(1_000_000_000_000_000, 0.007_362_75), (1_000_000_000_000_000_000, 0.232_830_6)],
            ),
            (
                0.99,
                u64::MAX,
                &[(1_000, 0.137_015), (1_000_000_000, 0.418_430), (1_000_000_000_000_000, 0.741_547)],
            ),
            (
                1.0,
                u64::MAX,
                &[(1_000, 0.166_571), (1_000_000_000, 0.473_990), (1_000_000_000_000_000, 0.781_421)],
            ),
            (1.2, u64::MAX, &[(1_000, 0.775_506), (1_000_000, 0.943_698), (1_000_000_000, 0.985_951)]),
        ];
        for (exponent, n, shares) in table {
            let (zipf, mut rng) = (Zipf::new(n, exponent), rng());
            let ranks: Vec<u64> = (0..1_000_000).map(|_| zipf.rank(&mut rng)).collect();
            for (hottest, share) in shares {
                let measured = ranks.iter().filter(|rank| **rank < *hottest).count() as f64 / 1e6;
                let bar = 4.0 * (share * (1.0 - share) / 1e6).sqrt();
                assert!((measured - share).abs() < bar, "zipf:{exponent}, {hottest} of {n}: {measured}");
            }
        }
    }

    #[test]
    fn extremes_stay_in_range() {
        for n in [1, 2, 3, HOT_RANKS_MAX - 1, HOT_RANKS_MAX, HOT_RANKS_MAX + 1, 1 << 53, 1 << 63, u64::MAX] {
            for exponent in
                [f64::MIN_POSITIVE, 1e-9, 0.5, 1.0 - 1e-16, 1.0, 1.0 + 1e-15, 10.0, 11.0, f64::MAX]
            {
                let (zipf, mut rng) = (Zipf::new(n, exponent), rng());
                assert!((0..1_000).all(|_| zipf.rank(&mut rng) < n), "zipf:{exponent} over {n}");
                assert!(
                    (0..1_000).all(|_| zipf.tail.rank(&mut rng) > zipf.hot_ranks),
                    "zipf:{exponent} over {n}"
                );
            }
        }
    }
}
