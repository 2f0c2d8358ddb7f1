//! Histograms of 64-bit values with exact moments: one to record into, one to store, one to ask.
//!
//! Not a sketch: buckets are fixed, so merging is adding and the order of merging leaves no trace. Buckets are
//! log-linear with grouping power g = 10: values below 2¹¹ have a bucket each, and every further power of two is cut
//! into 2¹⁰ buckets, so a bucket is never wider than 2⁻¹⁰ of its lowest value (0.098 %). The edges are those of a
//! three-digit HdrHistogram. Values up to 2⁴² − 1 (73 minutes in nanoseconds) are told apart; larger ones share the last
//! bucket. Invariant: count, minimum, maximum, Σ and Σ² are exact whatever the buckets do (Σ² saturates at 2¹²⁸ − 1,
//! which takes 2⁴⁴ samples of 73 minutes).
//!
//! The three forms: [`RecordingHistogram`] has 16-bit counts, so that what a worker touches stays in its cache;
//! [`SparseHistogram`] is what an interval keeps, about one byte per touched bucket; [`Histogram`] has 64-bit counts
//! and holds a whole run.

use brunt_plan::quantile::Quantile;
use std::ops::RangeInclusive;

/// Each power of two is cut into 2 to this power buckets.
pub const GROUPING_POWER: u32 = 10;
/// Values of at most this many bits are told apart.
pub const VALUE_BITS: u32 = 42;
/// How many buckets there are: one group of 2ᵍ for every shift from 0 to 31, and one more because the first covers
/// two powers of two.
pub const BUCKETS: usize = ((VALUE_BITS - GROUPING_POWER + 1) as usize) << GROUPING_POWER;
/// The largest value with a bucket of its own kind.
const VALUE_MAX: u64 = (1 << VALUE_BITS) - 1;

/// The bucket of a value. With `h = max(⌊log₂ v⌋, g)` and `shift = h − g` it is `shift · 2ᵍ + (v >> shift)`: no branch.
#[inline]
pub const fn bucket_of(value: u64) -> usize {
    bucket_of_told(if value > VALUE_MAX { VALUE_MAX } else { value })
}

/// The same for a value that is at most `VALUE_MAX`.
#[inline]
const fn bucket_of_told(value: u64) -> usize {
    let shift = (u64::BITS - 1 - GROUPING_POWER) - (value | (1 << GROUPING_POWER)).leading_zeros();
    ((shift as usize) << GROUPING_POWER) + (value >> shift) as usize
}

/// The values that share a bucket. The last bucket also holds everything above its end.
pub const fn bucket_values(bucket: usize) -> RangeInclusive<u64> {
    assert!(bucket < BUCKETS);
    let group = (bucket >> GROUPING_POWER) as u32;
    let shift = group.saturating_sub(1);
    let lowest = ((bucket - ((shift as usize) << GROUPING_POWER)) as u64) << shift;
    lowest..=lowest + ((1 << shift) - 1)
}

/// What is exact about a set of values, whatever their buckets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Moments {
    /// How many values.
    pub count: u64,
    /// The smallest; meaningless when `count` is 0.
    pub min: u64,
    /// The largest; meaningless when `count` is 0.
    pub max: u64,
    /// Σ v.
    pub sum: u128,
    /// Σ v².
    pub sum_squares: u128,
}

impl Default for Moments {
    fn default() -> Self {
        Self { count: 0, min: u64::MAX, max: 0, sum: 0, sum_squares: 0 }
    }
}

impl Moments {
    /// Adds the values of another set.
    pub fn merge(&mut self, other: &Self) {
        self.count += other.count;
        self.min = self.min.min(other.min);
        self.max = self.max.max(other.max);
        self.sum += other.sum;
        self.sum_squares = self.sum_squares.saturating_add(other.sum_squares);
    }

    /// The arithmetic mean; `None` without values.
    pub fn mean(&self) -> Option<f64> {
        (self.count > 0).then(|| self.sum as f64 / self.count as f64)
    }

    /// The standard deviation of these values as a population (divided by N, not by N − 1); `None` without values.
    pub fn stddev(&self) -> Option<f64> {
        if self.count == 0 {
            return None;
        }
        // Σv²/N − mean² in floating point loses everything when the spread is small beside the mean. With the integer
        // m = ⌊mean⌋, Σ(v−m)² = Σv² − 2mΣv + Nm² is exact: it fits 128 bits even where its terms do not, so wrapping
        // arithmetic yields it.
        let count = u128::from(self.count);
        let (whole, rest) = (self.sum / count, self.sum % count);
        let centred = self
            .sum_squares
            .wrapping_sub(whole.wrapping_mul(self.sum).wrapping_mul(2))
            .wrapping_add(count.wrapping_mul(whole).wrapping_mul(whole));
        let (count, rest) = (self.count as f64, rest as f64 / self.count as f64);
        Some((centred as f64 / count - rest * rest).max(0.0).sqrt())
    }
}

/// The values that may be the one of a rank, from 1 to the number of values; from moments and the occupied buckets in
/// ascending order.
fn at_rank(
    moments: &Moments,
    buckets: impl Iterator<Item = (usize, u64)>,
    rank: u64,
) -> Option<RangeInclusive<u64>> {
    let mut cumulative = 0;
    for (bucket, count) in buckets {
        cumulative += count;
        if cumulative >= rank {
            let values = bucket_values(bucket);
            let highest = if bucket == BUCKETS - 1 { u64::MAX } else { *values.end() };
            return Some(moments.min.max(*values.start())..=moments.max.min(highest));
        }
    }
    None
}

/// What a worker records into. All memory is taken at the start; recording is one count, two sums and one comparison.
#[derive(Clone, Debug)]
pub struct RecordingHistogram {
    counts: Box<[u16; BUCKETS]>,
    min: u64,
    max: u64,
    /// How many numbers lie between the extremes and are told apart: a value among them moves neither extreme, so that one
    /// comparison suffices for both.
    width: u64,
    sum: u128,
    sum_squares: u128,
    /// Buckets whose count went past 2¹⁶ − 1, and how often at once. A million values a second, all of them in one bucket, do
    /// that fifteen times a second; an interval is shorter than that.
    wrapped: Vec<(u32, u64)>,
}

impl Default for RecordingHistogram {
    fn default() -> Self {
        Self::new()
    }
}

impl RecordingHistogram {
    /// Empty, with room for every bucket (66 KiB).
    pub fn new() -> Self {
        let counts = vec![0u16; BUCKETS].into_boxed_slice();
        Self {
            counts: counts.try_into().expect("the slice was made with this length"),
            min: u64::MAX,
            max: 0,
            width: 0,
            sum: 0,
            sum_squares: 0,
            wrapped: Vec::with_capacity(256),
        }
    }

    /// Adds one value.
    #[inline]
    pub fn record(&mut self, value: u64) {
        if value.wrapping_sub(self.min) >= self.width {
            self.record_many(value, 1);
            return;
        }
        let bucket = bucket_of_told(value);
        let count = &mut self.counts[bucket];
        *count = count.wrapping_add(1);
        if *count == 0 {
            self.carry(bucket, 1);
        }
        self.sum += u128::from(value);
        let (squares, is_saturated) = self.sum_squares.overflowing_add(u128::from(value) * u128::from(value));
        self.sum_squares = squares;
        if is_saturated {
            self.saturate();
        }
    }

    /// Σ² has gone past what it can hold.
    #[cold]
    fn saturate(&mut self) {
        self.sum_squares = u128::MAX;
    }

    /// Adds a value as often as it was seen.
    #[inline(never)]
    pub fn record_many(&mut self, value: u64, times: u32) {
        if times == 0 {
            return;
        }
        let bucket = bucket_of(value);
        let count = u64::from(self.counts[bucket]) + u64::from(times);
        self.counts[bucket] = count as u16;
        if count > u64::from(u16::MAX) {
            self.carry(bucket, count >> u16::BITS);
        }
        self.min = self.min.min(value);
        self.max = self.max.max(value);
        self.width = (self.max.min(VALUE_MAX) + 1).saturating_sub(self.min);
        self.sum += u128::from(value) * u128::from(times);
        let squares = (u128::from(value) * u128::from(value)).saturating_mul(u128::from(times));
        self.sum_squares = self.sum_squares.saturating_add(squares);
    }

    #[cold]
    fn carry(&mut self, bucket: usize, times: u64) {
        self.wrapped.push((bucket as u32, times));
    }

    /// Nothing recorded since the last take?
    pub fn is_empty(&self) -> bool {
        self.min > self.max
    }

    /// Yields what was recorded and leaves the histogram empty. Looks only at the buckets between the minimum and the
    /// maximum. Allocates.
    pub fn take(&mut self) -> SparseHistogram {
        if self.is_empty() {
            return SparseHistogram::default();
        }
        let (first, last) = (bucket_of(self.min), bucket_of(self.max));
        let mut encoder = Encoder::default();
        for bucket in first..=last {
            let low = std::mem::take(&mut self.counts[bucket]);
            encoder.push(bucket, u64::from(low) + self.carried(bucket));
        }
        let moments = Moments {
            count: encoder.total,
            min: self.min,
            max: self.max,
            sum: self.sum,
            sum_squares: self.sum_squares,
        };
        (self.min, self.max, self.width, self.sum, self.sum_squares) = (u64::MAX, 0, 0, 0, 0);
        self.wrapped.clear();
        encoder.finish(moments)
    }

    fn carried(&self, bucket: usize) -> u64 {
        let of_bucket = self.wrapped.iter().filter(|(wrapped, _)| *wrapped as usize == bucket);
        of_bucket.map(|(_, times)| times << u16::BITS).sum()
    }
}

/// What an interval keeps: the occupied buckets in ascending order as a run of bytes, and the moments.
///
/// The bytes are variable-length numbers (seven bits a byte, lowest first): an even one is twice the count of the next
/// bucket, an odd one is twice the number of empty buckets to pass over, plus one. The bodies of latency distributions
/// are contiguous, so most buckets take one byte.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SparseHistogram {
    moments: Moments,
    encoded: Box<[u8]>,
}

impl SparseHistogram {
    /// Count, extremes and sums.
    pub fn moments(&self) -> &Moments {
        &self.moments
    }

    /// How many values.
    pub fn count(&self) -> u64 {
        self.moments.count
    }

    /// The occupied buckets in ascending order, with their counts.
    pub fn buckets(&self) -> impl Iterator<Item = (usize, u64)> + '_ {
        Decoder { encoded: &self.encoded, bucket: 0 }
    }

    /// The value at a quantile; see [`Histogram::quantile`].
    pub fn quantile(&self, quantile: Quantile) -> Option<u64> {
        at_rank(&self.moments, self.buckets(), quantile.rank(self.count())).map(|values| *values.end())
    }

    /// The largest value, exact.
    pub fn max(&self) -> Option<u64> {
        (self.count() > 0).then_some(self.moments.max)
    }

    /// How many values lie in buckets above the one that `value` falls into; see [`Histogram::count_above`].
    pub fn count_above(&self, value: u64) -> u64 {
        let own = bucket_of(value);
        self.buckets().filter(|(bucket, _)| *bucket > own).map(|(_, count)| count).sum()
    }

    /// The values of both.
    #[must_use]
    pub fn merged(&self, other: &Self) -> Self {
        if self.count() == 0 || other.count() == 0 {
            return if self.count() == 0 { other.clone() } else { self.clone() };
        }
        let mut encoder = Encoder::default();
        let (mut left, mut right) = (self.buckets().peekable(), other.buckets().peekable());
        loop {
            match (left.peek().copied(), right.peek().copied()) {
                (Some((ours, _)), Some((theirs, count))) if theirs < ours => {
                    encoder.push(theirs, count);
                    right.next();
                }
                (Some((ours, count)), Some((theirs, more))) if ours == theirs => {
                    encoder.push(ours, count + more);
                    left.next();
                    right.next();
                }
                (Some((ours, count)), _) => {
                    encoder.push(ours, count);
                    left.next();
                }
                (None, Some((theirs, count))) => {
                    encoder.push(theirs, count);
                    right.next();
                }
                (None, None) => break,
            }
        }
        let mut moments = self.moments;
        moments.merge(&other.moments);
        encoder.finish(moments)
    }

    /// Bytes of memory that this takes.
    pub fn memory_bytes(&self) -> usize {
        size_of::<Self>() + self.encoded.len()
    }
}

/// Writes the bytes of a [`SparseHistogram`]; buckets come in ascending order.
#[derive(Default)]
struct Encoder {
    bytes: Vec<u8>,
    next_bucket: usize,
    total: u64,
}

impl Encoder {
    fn push(&mut self, bucket: usize, count: u64) {
        if count == 0 {
            return;
        }
        let gap = (bucket - self.next_bucket) as u128;
        if gap > 0 {
            self.number(gap * 2 + 1);
        }
        self.number(u128::from(count) * 2);
        self.next_bucket = bucket + 1;
        self.total += count;
    }

    fn number(&mut self, mut number: u128) {
        while number >= 0x80 {
            self.bytes.push(number as u8 | 0x80);
            number >>= 7;
        }
        self.bytes.push(number as u8);
    }

    fn finish(self, moments: Moments) -> SparseHistogram {
        debug_assert_eq!(self.total, moments.count);
        SparseHistogram { moments, encoded: self.bytes.into_boxed_slice() }
    }
}

/// Reads the bytes of a [`SparseHistogram`].
struct Decoder<'a> {
    encoded: &'a [u8],
    bucket: usize,
}

impl Decoder<'_> {
    #[inline]
    fn number(&mut self) -> Option<u128> {
        // Of one byte, as nearly all are.
        let (byte, rest) = self.encoded.split_first()?;
        if byte & 0x80 == 0 {
            self.encoded = rest;
            return Some(u128::from(*byte));
        }
        self.long_number()
    }

    fn long_number(&mut self) -> Option<u128> {
        let mut number = 0;
        let mut bits = 0;
        loop {
            let (byte, rest) = self.encoded.split_first()?;
            self.encoded = rest;
            number |= u128::from(byte & 0x7f) << bits;
            if byte & 0x80 == 0 {
                return Some(number);
            }
            bits += 7;
        }
    }
}

impl Iterator for Decoder<'_> {
    type Item = (usize, u64);

    fn next(&mut self) -> Option<(usize, u64)> {
        loop {
            let number = self.number()?;
            if number % 2 == 1 {
                self.bucket += (number / 2) as usize;
            } else {
                self.bucket += 1;
                return Some((self.bucket - 1, (number / 2) as u64));
            }
        }
    }
}

/// A whole run's values, with 64-bit counts. Takes no memory for buckets until it holds a value.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Histogram {
    moments: Moments,
    /// All buckets, or none.
    counts: Vec<u64>,
}

impl Histogram {
    /// Empty.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds one value.
    pub fn record(&mut self, value: u64) {
        self.record_many(value, 1);
    }

    /// Adds a value `count` times.
    pub fn record_many(&mut self, value: u64, count: u64) {
        if count == 0 {
            return;
        }
        self.add(bucket_of(value), count);
        let (value, times) = (u128::from(value), u128::from(count));
        self.moments.merge(&Moments {
            count,
            min: value as u64,
            max: value as u64,
            sum: value * times,
            sum_squares: (value * value).saturating_mul(times),
        });
    }

    fn add(&mut self, bucket: usize, count: u64) {
        if self.counts.is_empty() {
            self.counts = vec![0; BUCKETS];
        }
        self.counts[bucket] += count;
    }

    /// Adds the values of another histogram.
    pub fn merge(&mut self, other: &Self) {
        for (bucket, count) in other.buckets() {
            self.add(bucket, count);
        }
        self.moments.merge(&other.moments);
    }

    /// Adds the values of an interval.
    pub fn merge_sparse(&mut self, other: &SparseHistogram) {
        for (bucket, count) in other.buckets() {
            self.add(bucket, count);
        }
        self.moments.merge(&other.moments);
    }

    /// The same values in the form that takes little memory.
    pub fn to_sparse(&self) -> SparseHistogram {
        let mut encoder = Encoder::default();
        self.buckets().for_each(|(bucket, count)| encoder.push(bucket, count));
        encoder.finish(self.moments)
    }

    /// Forgets every value; keeps the memory.
    pub fn clear(&mut self) {
        if self.count() > 0 {
            self.counts[bucket_of(self.moments.min)..=bucket_of(self.moments.max)].fill(0);
        }
        self.moments = Moments::default();
    }

    /// Count, extremes and sums.
    pub fn moments(&self) -> &Moments {
        &self.moments
    }

    /// How many values.
    pub fn count(&self) -> u64 {
        self.moments.count
    }

    /// The smallest value, exact.
    pub fn min(&self) -> Option<u64> {
        (self.count() > 0).then_some(self.moments.min)
    }

    /// The largest value, exact.
    pub fn max(&self) -> Option<u64> {
        (self.count() > 0).then_some(self.moments.max)
    }

    /// The occupied buckets in ascending order, with their counts; [`bucket_values`] says what they stand for.
    pub fn buckets(&self) -> impl Iterator<Item = (usize, u64)> + '_ {
        // An empty histogram has min > max: no bucket at all.
        let range = if self.count() == 0 {
            0..0
        } else {
            bucket_of(self.moments.min)..bucket_of(self.moments.max) + 1
        };
        let first = range.start;
        self.counts[range]
            .iter()
            .enumerate()
            .filter(|(_, count)| **count > 0)
            .map(move |(offset, count)| (first + offset, *count))
    }

    /// The value at a quantile: the highest value of the first bucket whose cumulative count reaches `ceil(p · N)`, and
    /// never above the maximum. So it is never below the value of that rank, and above it by less than 2⁻¹⁰ of it (for
    /// values below 2⁴²; above, it is the maximum). `None` without values. Whether N supports the quantile is asked
    /// elsewhere ([`Quantile::is_supported_by`]).
    pub fn quantile(&self, quantile: Quantile) -> Option<u64> {
        self.at_rank(quantile.rank(self.count())).map(|values| *values.end())
    }

    /// The values that may be the one of a rank, counted from 1: those of its bucket, as far as they lie within minimum
    /// and maximum. `None` where there are not so many values.
    pub fn at_rank(&self, rank: u64) -> Option<RangeInclusive<u64>> {
        at_rank(&self.moments, self.buckets(), rank)
    }

    /// How many values lie in buckets above the one that `value` falls into. Exact when `value` is the highest of its
    /// bucket, as every quantile below the maximum is; else values above it in its own bucket are left out.
    pub fn count_above(&self, value: u64) -> u64 {
        let own = bucket_of(value);
        self.buckets().filter(|(bucket, _)| *bucket > own).map(|(_, count)| count).sum()
    }
}

#[cfg(test)]
mod tests;
