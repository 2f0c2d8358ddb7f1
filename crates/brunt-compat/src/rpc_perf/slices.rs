//! Latencies second by second, in the layout of rpc-perf's histograms, and the file of `--trace`, which has them as text.
//!
//! Not where they come from. Invariant: the buckets of a slice are ascending, and none of them is empty.

use brunt_stats::live_run::SECOND_NS;
use std::collections::BTreeMap;
use std::io::{self, Write};
use std::ops::RangeInclusive;

/// The latencies of one second.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Slice {
    counts: Vec<(usize, u64)>,
}

impl Slice {
    /// From ranges of nanoseconds, ascending, with their counts. A range that reaches over a boundary of buckets is divided in
    /// proportion to its width: if each were put into one bucket whole, the picture would have stripes.
    pub fn of(ranges: impl IntoIterator<Item = (RangeInclusive<u64>, u64)>) -> Self {
        let mut slice = Self::default();
        for (values, count) in ranges {
            let [mut start, end] = [*values.start(), *values.end()].map(|ns| ns.clamp(1, VALUE_MAX_NS));
            let mut left = count;
            while left > 0 {
                let bucket = bucket_of(start);
                let highest = highest_ns(bucket).min(end);
                let (part, whole) = (u128::from(highest - start + 1), u128::from(end - start + 1));
                let share = ((u128::from(left) * part * 2 + whole) / (whole * 2)) as u64;
                slice.add(bucket, share);
                left -= share;
                start = highest + 1;
            }
        }
        slice
    }

    /// Adds to a bucket, which must not be below the last one.
    fn add(&mut self, bucket: usize, count: u64) {
        match self.counts.last_mut() {
            Some((last, sum)) if *last == bucket => *sum += count,
            _ if count > 0 => self.counts.push((bucket, count)),
            _ => {}
        }
    }

    /// Adds the counts of another slice.
    pub fn merge(&mut self, other: &Self) {
        let mut counts: BTreeMap<usize, u64> = self.counts().collect();
        other.counts().for_each(|(bucket, count)| *counts.entry(bucket).or_default() += count);
        self.counts = counts.into_iter().collect();
    }

    /// Buckets and how many latencies lie in each.
    pub fn counts(&self) -> impl Iterator<Item = (usize, u64)> + '_ {
        self.counts.iter().copied()
    }
}

/// A run, second by second.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Slices {
    /// When the first one begins, on a clock that only runs forwards.
    pub start_ns: u64,
    /// How many of them, from the first, are the warm-up.
    pub warm_up: usize,
    /// One a second, without gaps.
    pub slices: Vec<Slice>,
}

impl Slices {
    /// Writes them as rpc-perf does. First a line of six numbers: digits of precision, memory limit (0: none), highest value,
    /// nanoseconds of a slice, number of slices, start. Then a line for each bucket that is not empty: when its slice begins, its
    /// highest value, how many latencies lie in it. Slices are in the order of time, buckets ascending; rpc-perf's end at 1 s.
    ///
    /// # Errors
    /// Errors of the writer.
    pub fn write_trace(&self, out: &mut dyn Write) -> io::Result<()> {
        let (start_ns, slices) = (self.start_ns, self.slices.len());
        writeln!(out, "{PRECISION} 0 {VALUE_MAX_NS} {SECOND_NS} {slices} {start_ns}")?;
        for (start_ns, slice) in (start_ns..).step_by(SECOND_NS as usize).zip(&self.slices) {
            for (bucket, count) in slice.counts() {
                writeln!(out, "{start_ns} {} {count}", highest_ns(bucket))?;
            }
        }
        Ok(())
    }
}

// The buckets of the layout. Up to 129 every value has a bucket of its own; from 128 every power of two is divided into a hundred buckets of
// equal width, but for rounding. A bucket is identified by its highest value.

/// The digits that the layout keeps.
pub const PRECISION: u32 = 2;
/// The highest value that is told from others, an hour; higher ones share its bucket. Not just below a power of two: there
/// programs that read rpc-perf's files have a bucket too few.
pub const VALUE_MAX_NS: u64 = 3_600_000_000_000;
/// The bucket of 1 s.
pub const OF_ONE_SECOND: usize = 2415;

/// Values with a bucket each.
const EXACT: u64 = 129;
/// The power of two from which on values share buckets.
const FIRST_POWER: u32 = 7;
/// Into how many buckets a power of two is cut.
const PER_POWER: u64 = 100;
/// The bucket of the first power of two: 2⁷ + 1 represents 2⁷, which has its own one below.
const FIRST_SHARED: u64 = 128;

/// The bucket of a value; 0 counts as 1.
pub fn bucket_of(value_ns: u64) -> usize {
    let value = value_ns.clamp(1, VALUE_MAX_NS);
    if value <= EXACT {
        return value as usize - 1;
    }
    // The least i for which 2ᵖ · (100 + i) / 100, rounded up, is not below the value.
    let power = value.ilog2();
    let within = ((PER_POWER * (value - 1)) >> power) + 1 - PER_POWER;
    (FIRST_SHARED + u64::from(power - FIRST_POWER) * PER_POWER + within) as usize
}

/// The highest value of a bucket.
pub fn highest_ns(bucket: usize) -> u64 {
    let bucket = bucket as u64;
    if bucket < EXACT {
        return bucket + 1;
    }
    let (power, within) = ((bucket - FIRST_SHARED) / PER_POWER, (bucket - FIRST_SHARED) % PER_POWER);
    let start = 1 << (u64::from(FIRST_POWER) + power);
    u64::div_ceil(start * (PER_POWER + within), PER_POWER).min(VALUE_MAX_NS)
}

/// How many values share a bucket.
pub fn width_ns(bucket: usize) -> u64 {
    highest_ns(bucket) - bucket.checked_sub(1).map_or(0, highest_ns)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Ranges with their counts, and the buckets that come of them.
    type Case<'a> = (&'a [(RangeInclusive<u64>, u64)], &'a [(usize, u64)]);

    #[test]
    fn ranges_are_divided_at_bucket_boundaries() {
        // Buckets 840 to 842 end at 18351, 18514 and 18678.
        let cases: [Case<'_>; 7] = [
            (&[(0..=0, 1), (1..=1, 2), (2..=2, 0), (3..=3, 4)], &[(0, 3), (2, 4)]),
            (&[(18_188..=18_351, 3), (18_352..=18_367, 4)], &[(840, 3), (841, 4)]),
            // 4 of 16 values lie in the lower bucket.
            (&[(18_348..=18_363, 100), (18_364..=18_379, 7)], &[(840, 25), (841, 82)]),
            (&[(18_348..=18_363, 1)], &[(841, 1)]),
            (&[(18_350..=18_353, 1)], &[(840, 1)]),
            // Two values, 163 and three.
            (&[(18_350..=18_517, 168)], &[(840, 2), (841, 163), (842, 3)]),
            (&[(VALUE_MAX_NS..=u64::MAX, 5), (u64::MAX..=u64::MAX, 6)], &[(3592, 11)]),
        ];
        for (ranges, expected) in cases {
            let slice = Slice::of(ranges.iter().cloned());
            assert_eq!(slice.counts().collect::<Vec<_>>(), expected, "{ranges:?}");
        }
    }

    #[test]
    fn slices_are_added_bucket_by_bucket() {
        let mut sum = Slice::of([(3..=3, 4), (18_351..=18_351, 1)]);
        sum.merge(&Slice::of([(1..=1, 2), (18_351..=18_351, 5)]));
        assert_eq!(sum.counts().collect::<Vec<_>>(), [(0, 2), (2, 4), (840, 6)]);
    }

    #[test]
    fn an_even_spread_stays_even() {
        // A power of two in 1024 ranges, as this program's histograms have it, a thousand latencies in each.
        let ranges = (0..1024).map(|index| (16_385 + index * 16..=16_400 + index * 16, 1000));
        let slice = Slice::of(ranges);
        assert_eq!(slice.counts().map(|(_, count)| count).sum::<u64>(), 1_024_000);
        for (bucket, count) in slice.counts() {
            let expected = width_ns(bucket) as f64 * 62.5;
            assert!((count as f64 - expected).abs() <= 1.0, "{bucket}: {count}");
        }
    }

    #[test]
    fn each_bucket_has_a_line() {
        let slices = vec![
            Slice::of([(18_351..=18_351, 9), (18_514..=18_514, 26), (948_000..=948_962, 1)]),
            Slice::default(),
            Slice::of([(127..=127, 1), (1_000_000_001..=1_000_000_001, 2), (u64::MAX..=u64::MAX, 3)]),
        ];
        let run = Slices { start_ns: 4_504_149_525_525, warm_up: 1, slices };
        let mut text = Vec::new();
        run.write_trace(&mut text).expect("a vector takes everything");
        let expected = "\
2 0 3600000000000 1000000000 3 4504149525525
4504149525525 18351 9
4504149525525 18514 26
4504149525525 948962 1
4506149525525 127 1
4506149525525 1003948606 2
4506149525525 3600000000000 3
";
        assert_eq!(String::from_utf8(text).expect("text"), expected);
    }

    /// Buckets as rpc-perf prints them: number, highest value, width.
    #[test]
    fn buckets_are_those_of_rpc_perf() {
        let cases = [
            (0, 1, 1),
            (126, 127, 1),
            (127, 128, 1),
            (128, 129, 1),
            (129, 130, 1),
            (131, 132, 1),
            (132, 134, 2),
            (133, 135, 1),
            (136, 139, 2),
            (184, 200, 1),
            (228, 256, 1),
            (229, 259, 3),
            (840, 18_351, 164),
            (841, 18_514, 163),
            (2413, 993_211_188, 5_368_709),
            (2414, 998_579_897, 5_368_709),
        ];
        for (bucket, highest, width) in cases {
            assert_eq!((highest_ns(bucket), width_ns(bucket)), (highest, width), "{bucket}");
        }
        assert_eq!(bucket_of(1_000_000_000), OF_ONE_SECOND);
    }

    /// In floating point, which is exact enough for an hour, and by looking for the bucket from the lowest.
    #[test]
    fn every_boundary_is_a_hundredth_of_its_power() {
        let mut bucket = 129;
        for power in 7..42 {
            for within in u32::from(power == 7)..100 {
                let exact = 2f64.powi(power) * f64::from(100 + within);
                let highest = (exact / 100.0).ceil() as u64;
                if highest > VALUE_MAX_NS {
                    break;
                }
                assert_eq!(highest_ns(bucket), highest, "{bucket}");
                let neighbours = [highest - 1, highest, highest + 1].map(bucket_of);
                assert_eq!(neighbours[1..], [bucket, bucket + 1], "{highest}");
                assert!(neighbours[0] == bucket || width_ns(bucket) == 1, "{highest}");
                bucket += 1;
            }
        }
        assert_eq!(
            (highest_ns(bucket), bucket_of(u64::MAX), bucket_of(VALUE_MAX_NS)),
            (VALUE_MAX_NS, bucket, bucket)
        );
    }

    #[test]
    fn small_values_have_buckets_of_their_own() {
        assert_eq!((0..=129).map(bucket_of).collect::<Vec<_>>()[..2], [0, 0]);
        for value in 1..=129 {
            assert_eq!(highest_ns(bucket_of(value)), value);
        }
    }
}
