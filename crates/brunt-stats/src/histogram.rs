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

mod serialized;

use crate::sample::Times;
use brunt_plan::quantile::Quantile;
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::ops::{Range, RangeInclusive};

/// Each power of two is cut into 2 to this power buckets.
pub const GROUPING_POWER: u32 = 10;
/// Values of at most this many bits are told apart.
pub const VALUE_BITS: u32 = 42;
/// How many buckets there are: one group of 2ᵍ for every shift from 0 to 31, and one more because the first covers
/// two powers of two.
pub const BUCKETS: usize = ((VALUE_BITS - GROUPING_POWER + 1) as usize) << GROUPING_POWER;
/// Buckets that are looked at together: most are empty, and a CPU compares this number with zero in a few steps.
const BLOCK: usize = 32;
/// The largest value with a bucket of its own kind.
const VALUE_MAX: u64 = (1 << VALUE_BITS) - 1;

/// The bucket of a value. With `h = max(⌊log₂ v⌋, g)` and `shift = h − g` it is `shift · 2ᵍ + (v >> shift)`: no branch.
#[inline]
pub const fn bucket_of(value: u64) -> usize {
    bucket_of_tracked(if value > VALUE_MAX { VALUE_MAX } else { value })
}

/// The bucket of a value that is at most `VALUE_MAX`.
#[inline]
const fn bucket_of_tracked(value: u64) -> usize {
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

/// Which counts of a block are not 0, as bits: a loop over them has no branch that a processor would foretell wrong.
#[inline]
fn occupied_places<T: Copy + Default + PartialEq + std::ops::BitOr<Output = T>>(block: &[T; BLOCK]) -> u32 {
    if block.iter().fold(T::default(), |any, count| any | *count) == T::default() {
        return 0;
    }
    let bit = |(place, count): (usize, &T)| u32::from(*count != T::default()) << place;
    block.iter().enumerate().map(bit).fold(0, |bits, bit| bits | bit)
}

/// What is exact about a set of values, whatever their buckets.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Moments {
    /// How many values.
    pub count: u64,
    /// The smallest; the largest number when `count` is 0.
    #[serde(with = "crate::counts::instant")]
    pub min: u64,
    /// The largest; meaningless when `count` is 0.
    pub max: u64,
    /// Σ v.
    #[serde(with = "crate::counts::wide")]
    pub sum: u128,
    /// Σ v².
    #[serde(with = "crate::counts::wide")]
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
            return Some(values_within(moments, bucket));
        }
    }
    None
}

/// The values of a bucket, as far as they lie within minimum and maximum.
fn values_within(moments: &Moments, bucket: usize) -> RangeInclusive<u64> {
    let values = bucket_values(bucket);
    let highest = if bucket == BUCKETS - 1 { u64::MAX } else { *values.end() };
    moments.min.max(*values.start())..=moments.max.min(highest)
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
    /// Empty, with room for every bucket (66 KiB).
    fn default() -> Self {
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
}

impl RecordingHistogram {
    /// Adds one value, and says which bucket it lies in.
    #[inline]
    pub fn record(&mut self, value: u64) -> usize {
        if value.wrapping_sub(self.min) >= self.width {
            return self.record_many(value, 1);
        }
        let bucket = bucket_of_tracked(value);
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
        bucket
    }

    /// Σ² has gone past what it can hold.
    #[cold]
    fn saturate(&mut self) {
        self.sum_squares = u128::MAX;
    }

    /// Adds a value as often as it was seen, and says which bucket it lies in.
    #[inline(never)]
    pub fn record_many(&mut self, value: u64, times: u32) -> usize {
        let bucket = bucket_of(value);
        if times == 0 {
            return bucket;
        }
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
        bucket
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
    /// maximum, and passes over the empty ones of them a block at a time. Allocates.
    pub fn take(&mut self) -> SparseHistogram {
        if self.is_empty() {
            return SparseHistogram::default();
        }
        let (first, last) = (bucket_of(self.min), bucket_of(self.max));
        let mut encoder = Encoder::with_room();
        // A count that has wrapped to 0 looks empty.
        let has_wrapped = !self.wrapped.is_empty();
        for number in first / BLOCK..=last / BLOCK {
            let begin = number * BLOCK;
            let mut places =
                if has_wrapped { u32::MAX } else { occupied_places(&self.counts.as_chunks().0[number]) };
            while places != 0 {
                let bucket = begin + places.trailing_zeros() as usize;
                places &= places - 1;
                let low = std::mem::take(&mut self.counts[bucket]);
                let carried = if has_wrapped { self.carried(bucket) } else { 0 };
                encoder.push(bucket, u64::from(low) + carried);
            }
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

impl Serialize for SparseHistogram {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        (&self.moments, &self.encoded).serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for SparseHistogram {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        serialized::read(Deserialize::deserialize(deserializer)?).map_err(D::Error::custom)
    }
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

    /// The same, where enough values lie above it.
    pub fn percentile(&self, quantile: Quantile) -> Option<u64> {
        self.quantile(quantile).filter(|_| quantile.is_supported_by(self.count()))
    }

    /// The smallest value, exact.
    pub fn min(&self) -> Option<u64> {
        (self.count() > 0).then_some(self.moments.min)
    }

    /// The largest value, exact.
    pub fn max(&self) -> Option<u64> {
        (self.count() > 0).then_some(self.moments.max)
    }

    /// How many values lie in buckets above the one that each of `values` falls into; they are ascending. Exact where it is the highest of
    /// its bucket, as every quantile below the maximum is; else values above it in its own bucket are left out.
    pub fn counts_above(&self, values: &[u64]) -> Vec<u64> {
        debug_assert!(values.is_sorted(), "{values:?}");
        let mut above = Vec::with_capacity(values.len());
        let (mut buckets, mut next) = (self.buckets(), None);
        let mut left = self.count();
        for own in values.iter().map(|value| bucket_of(*value)) {
            while let Some((bucket, count)) = next.or_else(|| buckets.next()) {
                if bucket > own {
                    next = Some((bucket, count));
                    break;
                }
                (left, next) = (left - count, None);
            }
            above.push(left);
        }
        above
    }

    /// The values of several together: of one as it is, of more through `sum`, which has a place for every bucket and whose
    /// memory serves again.
    pub fn merge_all<'a>(parts: impl IntoIterator<Item = &'a Self>, sum: &mut Histogram) -> Cow<'a, Self> {
        let mut parts = parts.into_iter().filter(|part| part.count() > 0);
        let Some(first) = parts.next() else { return Cow::Owned(Self::default()) };
        let Some(second) = parts.next() else { return Cow::Borrowed(first) };
        sum.clear();
        [first, second].into_iter().chain(parts).for_each(|part| sum.merge_sparse(part));
        Cow::Owned(sum.to_sparse())
    }

    /// The values of both.
    #[must_use]
    pub fn merged(&self, other: &Self) -> Self {
        if self.count() == 0 || other.count() == 0 {
            return if self.count() == 0 { other.clone() } else { self.clone() };
        }
        let mut encoder = Encoder::default();
        let (mut left, mut right) = (self.buckets(), other.buckets());
        // What is over lies behind all buckets.
        let over = (BUCKETS, 0);
        let (mut ours, mut theirs) = (left.next().unwrap_or(over), right.next().unwrap_or(over));
        while ours.0.min(theirs.0) < BUCKETS {
            let bucket = ours.0.min(theirs.0);
            let mut count = 0;
            for (held, rest) in [(&mut ours, &mut left), (&mut theirs, &mut right)] {
                if held.0 == bucket {
                    count += held.1;
                    *held = rest.next().unwrap_or(over);
                }
            }
            encoder.push(bucket, count);
        }
        let mut moments = self.moments;
        moments.merge(&other.moments);
        encoder.finish(moments)
    }

    /// The values in buckets that each hold 2 to the power of `bits` of the present ones; `bits` is at most
    /// [`GROUPING_POWER`]. What lies in a wider one is in the last bucket of its own, or of all of them, so that no value is
    /// below what it was; counts and moments stay exact.
    #[must_use]
    pub fn coarser(self, bits: u32) -> Self {
        if self.count() == 0 || bits == 0 {
            return self;
        }
        assert!(bits <= GROUPING_POWER, "{bits}");
        let highest = bucket_of(self.moments.max);
        let mut encoder = Encoder::default();
        let (mut held, mut sum) = (0, 0);
        for (bucket, count) in self.buckets() {
            let last = ((bucket >> bits << bits) + (1 << bits) - 1).min(highest);
            if last != held {
                encoder.push(held, sum);
                (held, sum) = (last, 0);
            }
            sum += count;
        }
        encoder.push(held, sum);
        encoder.finish(self.moments)
    }

    /// Bytes of memory that its buckets take.
    pub fn encoded_bytes(&self) -> usize {
        self.encoded.len()
    }
}

/// Writes the bytes of a [`SparseHistogram`]; buckets come in ascending order. Counts are below 2⁶³, which is a request per
/// nanosecond for three centuries.
#[derive(Default)]
struct Encoder {
    bytes: Vec<u8>,
    next_bucket: usize,
    total: u64,
}

impl Encoder {
    /// With room for what a usual interval takes.
    fn with_room() -> Self {
        Self { bytes: Vec::with_capacity(1024), ..Self::default() }
    }

    #[inline]
    fn push(&mut self, bucket: usize, count: u64) {
        if count == 0 {
            return;
        }
        debug_assert!(count < 1 << 63, "{count} values in bucket {bucket}");
        let gap = (bucket - self.next_bucket) as u64;
        let (passed_over, twice) = (gap * 2 + 1, count * 2);
        if passed_over.max(twice) < 0x80 {
            // A byte each. A gap is unpredictable, so it is written in any case.
            let len = self.bytes.len();
            self.bytes.push(passed_over as u8);
            self.bytes.truncate(len + usize::from(gap > 0));
            self.bytes.push(twice as u8);
        } else {
            if gap > 0 {
                self.number(passed_over);
            }
            self.number(twice);
        }
        self.next_bucket = bucket + 1;
        self.total += count;
    }

    #[inline]
    fn number(&mut self, mut number: u64) {
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
    fn number(&mut self) -> Option<u64> {
        // Of one byte, as nearly all are.
        let (byte, rest) = self.encoded.split_first()?;
        if byte & 0x80 == 0 {
            self.encoded = rest;
            return Some(u64::from(*byte));
        }
        self.long_number()
    }

    fn long_number(&mut self) -> Option<u64> {
        let mut number = 0;
        let mut bits = 0;
        loop {
            let (byte, rest) = self.encoded.split_first()?;
            self.encoded = rest;
            number |= u64::from(byte & 0x7f) << bits;
            if byte & 0x80 == 0 {
                return Some(number);
            }
            bits += 7;
        }
    }
}

impl Iterator for Decoder<'_> {
    type Item = (usize, u64);

    #[inline]
    fn next(&mut self) -> Option<(usize, u64)> {
        loop {
            let number = self.number()?;
            if number % 2 == 1 {
                self.bucket += (number / 2) as usize;
            } else {
                self.bucket += 1;
                return Some((self.bucket - 1, number / 2));
            }
        }
    }
}

/// A whole run's values, with 64-bit counts. Takes memory only for the buckets around those that hold a value: what latencies
/// occupy is a quarter of all or less, and what is not there is neither cleared nor copied.
#[derive(Clone, Debug, Default)]
pub struct Histogram {
    moments: Moments,
    /// The bucket of the first count.
    first: usize,
    /// Whole groups of 2ᵍ buckets, or none.
    counts: Vec<u64>,
}

impl Serialize for Histogram {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.to_sparse().serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Histogram {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let mut histogram = Self::new();
        histogram.merge_sparse(&SparseHistogram::deserialize(deserializer)?);
        Ok(histogram)
    }
}

/// Histograms are equal if their values are; allocated memory makes no difference.
impl PartialEq for Histogram {
    fn eq(&self, other: &Self) -> bool {
        self.moments == other.moments && self.buckets().eq(other.buckets())
    }
}

impl Eq for Histogram {}

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
        let bucket = bucket_of(value);
        self.reach(bucket, bucket);
        self.counts[bucket - self.first] += count;
        let (value, times) = (u128::from(value), u128::from(count));
        self.moments.merge(&Moments {
            count,
            min: value as u64,
            max: value as u64,
            sum: value * times,
            sum_squares: (value * value).saturating_mul(times),
        });
    }

    /// Has room for these buckets and all between.
    fn reach(&mut self, lowest: usize, highest: usize) {
        let (first, end) = (self.first, self.first + self.counts.len());
        if lowest >= first && highest < end {
            return;
        }
        const GROUP: usize = 1 << GROUPING_POWER;
        let (lowest, highest) = (lowest / GROUP * GROUP, (highest / GROUP + 1) * GROUP);
        if self.counts.is_empty() {
            (self.first, self.counts) = (lowest, vec![0; highest - lowest]);
            return;
        }
        let (lowest, highest) = (lowest.min(first), highest.max(end));
        let mut counts = vec![0; highest - lowest];
        counts[first - lowest..end - lowest].copy_from_slice(&self.counts);
        (self.first, self.counts) = (lowest, counts);
    }

    /// The buckets between the smallest and the largest value; empty without values.
    fn occupied(&self) -> Range<usize> {
        // An empty histogram has min > max: no bucket at all.
        match self.count() {
            0 => self.first..self.first,
            _ => bucket_of(self.moments.min)..bucket_of(self.moments.max) + 1,
        }
    }

    /// The counts of [`Self::occupied`].
    fn occupied_counts(&self) -> &[u64] {
        let range = self.occupied();
        &self.counts[range.start - self.first..range.end - self.first]
    }

    /// Adds the values of another histogram.
    pub fn merge(&mut self, other: &Self) {
        let range = other.occupied();
        if range.is_empty() {
            return;
        }
        self.reach(range.start, range.end - 1);
        let ours = &mut self.counts[range.start - self.first..range.end - self.first];
        ours.iter_mut().zip(other.occupied_counts()).for_each(|(ours, theirs)| *ours += theirs);
        self.moments.merge(&other.moments);
    }

    /// Adds the values of an interval.
    pub fn merge_sparse(&mut self, other: &SparseHistogram) {
        let moments = other.moments();
        if moments.count == 0 {
            return;
        }
        self.reach(bucket_of(moments.min), bucket_of(moments.max));
        let mut decoder = Decoder { encoded: &other.encoded, bucket: 0 };
        if let Some((bucket, count)) = decoder.next() {
            self.counts[bucket - self.first] += count;
        }
        // As `Decoder::next` reads them, but without an unpredictable branch: a gap adds nothing here, and a
        // bucket of a higher number follows it.
        let mut place = decoder.bucket.wrapping_sub(self.first);
        while let Some(number) = decoder.number() {
            let of_gap = (number & 1).wrapping_neg();
            self.counts[place] += (number >> 1) & !of_gap;
            place += (((number >> 1) & of_gap) + (1 & !of_gap)) as usize;
        }
        self.moments.merge(moments);
    }

    /// The values in the form that takes little memory.
    pub fn to_sparse(&self) -> SparseHistogram {
        let mut encoder = Encoder::with_room();
        self.for_each(|bucket, count| encoder.push(bucket, count));
        encoder.finish(self.moments)
    }

    /// Forgets every value; keeps the memory.
    pub fn clear(&mut self) {
        let range = self.occupied();
        self.counts[range.start - self.first..range.end - self.first].fill(0);
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
        let first = self.occupied().start;
        let counts = self.occupied_counts().iter().enumerate();
        counts.filter(|(_, count)| **count > 0).map(move |(offset, count)| (first + offset, *count))
    }

    /// Shows the same buckets to `visit`, which is faster than asking for one after the other.
    fn for_each(&self, mut visit: impl FnMut(usize, u64)) {
        let range = self.occupied();
        // Counts come in whole groups, and a group in whole blocks.
        let blocks = self.counts.as_chunks().0.iter().enumerate();
        let (first, end) = (range.start - self.first, range.end - self.first);
        for (number, block) in blocks.take(end.div_ceil(BLOCK)).skip(first / BLOCK) {
            let mut places = occupied_places(block);
            while places != 0 {
                let place = places.trailing_zeros() as usize;
                places &= places - 1;
                visit(self.first + number * BLOCK + place, block[place]);
            }
        }
    }

    /// The value at a quantile: the highest value of the first bucket whose cumulative count reaches `ceil(p · N)`, and
    /// never above the maximum. So it is never below the value of that rank, and above it by less than 2⁻¹⁰ of it (for
    /// values below 2⁴²; above, it is the maximum). `None` without values. Whether N supports the quantile is asked
    /// elsewhere ([`Quantile::is_supported_by`]).
    pub fn quantile(&self, quantile: Quantile) -> Option<u64> {
        self.at_rank(quantile.rank(self.count())).map(|values| *values.end())
    }

    /// The values of each occupied bucket, as far as they lie within minimum and maximum, with their count; ascending.
    pub fn ranges(&self) -> impl Iterator<Item = (RangeInclusive<u64>, u64)> {
        self.buckets().map(|(bucket, count)| (values_within(&self.moments, bucket), count))
    }

    /// The values that may be the one of a rank, counted from 1: those of its bucket, as far as they lie within minimum
    /// and maximum. `None` where there are fewer values.
    pub fn at_rank(&self, rank: u64) -> Option<RangeInclusive<u64>> {
        at_rank(&self.moments, self.buckets(), rank)
    }
}

/// A group is 2 to this power buckets: there are 16 groups for each power of two, 53 a decade.
pub const GROUP_BITS: u32 = 6;
const GROUPS: usize = BUCKETS >> GROUP_BITS;

/// What a worker records into. All memory is taken at the start: 12 KiB.
#[derive(Debug)]
pub(crate) struct RecordingPartSums(Box<[[u64; 3]; GROUPS]>);

impl Default for RecordingPartSums {
    fn default() -> Self {
        Self(Box::new([[0; 3]; GROUPS]))
    }
}

impl RecordingPartSums {
    /// Adds the times of `count` ops that ended alike, with the bucket of their response time.
    #[inline(always)]
    pub(crate) fn add(&mut self, bucket: usize, times: &Times, count: u32) {
        let [response_ns, client_ns, connection_wait_ns] = &mut self.0[bucket >> GROUP_BITS];
        *response_ns += times.response_ns() * u64::from(count);
        *client_ns += times.client_ns() * u64::from(count);
        *connection_wait_ns += times.connection_wait_ns() * u64::from(count);
    }

    /// Yields what was recorded and leaves nothing.
    pub(crate) fn take(&mut self) -> PartSums {
        let used = (0..).zip(self.0.iter_mut()).filter(|(_, sums)| **sums != [0; 3]);
        let taken = used.map(|(group, sums)| {
            let [response_ns, client_ns, connection_wait_ns] = std::mem::take(sums).map(u128::from);
            (group, PartSum(response_ns, client_ns, connection_wait_ns))
        });
        PartSums(taken.collect())
    }
}

/// Of several requests together, in nanoseconds: response times, the client's part of them, waits for a connection.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PartSum(
    #[serde(with = "crate::counts::wide")] pub u128,
    #[serde(with = "crate::counts::wide")] pub u128,
    #[serde(with = "crate::counts::wide")] pub u128,
);

impl PartSum {
    fn merge(&mut self, other: &Self) {
        self.0 += other.0;
        self.1 += other.1;
        self.2 += other.2;
    }
}

/// The sums of an interval or of a run: those of the groups that have some.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PartSums(BTreeMap<u16, PartSum>);

impl PartSums {
    /// Adds other sums.
    pub fn merge(&mut self, other: &Self) {
        other.0.iter().for_each(|(group, sum)| self.0.entry(*group).or_default().merge(sum));
    }

    /// The sum over this group and all with longer response times.
    pub fn from_group(&self, group: usize) -> PartSum {
        let mut total = PartSum::default();
        let slower = self.0.iter().filter(|(held, _)| usize::from(**held) >= group);
        slower.for_each(|(_, sum)| total.merge(sum));
        total
    }
}

#[cfg(test)]
mod tests;
