//! Latencies second by second, in the layout of rpc-perf's histograms, and the file of `--trace`, which has them as text.
//!
//! Not where they come from. Invariant: the buckets of a slice are ascending, and none of them is empty.

use super::buckets::{PRECISION, VALUE_MAX_NS, bucket_of, highest_ns};
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
        const SLICE_NS: u64 = 1_000_000_000;
        let (start_ns, slices) = (self.start_ns, self.slices.len());
        writeln!(out, "{PRECISION} 0 {VALUE_MAX_NS} {SLICE_NS} {slices} {start_ns}")?;
        for (start_ns, slice) in (start_ns..).step_by(SLICE_NS as usize).zip(&self.slices) {
            for (bucket, count) in slice.counts() {
                writeln!(out, "{start_ns} {} {count}", highest_ns(bucket))?;
            }
        }
        Ok(())
    }
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
            let expected = crate::rpc_perf::buckets::width_ns(bucket) as f64 * 62.5;
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
}
