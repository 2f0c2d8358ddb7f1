//! A histogram on its way from one host to another, or through a result file.
//!
//! Invariant: what is read back has buckets that exist and moments that they can have, so that nothing that adds it up has to look again.

use super::{BUCKETS, Decoder, Encoder, GROUPING_POWER, Moments, SparseHistogram, bucket_of};

/// More than any run counts, and so little that a sum over everything in a file cannot overflow.
const COUNT_MAX: u64 = 1 << 56;

const INCONSISTENT: &str = "a histogram whose buckets and moments say different things";

/// The histogram of these moments and bytes, if they fit together.
pub(super) fn read((moments, encoded): (Moments, Vec<u8>)) -> Result<SparseHistogram, &'static str> {
    check_numbers(&encoded)?;
    let mut encoder = Encoder::default();
    let mut first = None;
    for (bucket, count) in (Decoder { encoded: &encoded, bucket: 0 }) {
        if bucket >= BUCKETS || !(1..=COUNT_MAX).contains(&count) {
            return Err("a histogram has a bucket that there is not, or a count that cannot be");
        }
        first = first.or(Some(bucket));
        encoder.push(bucket, count);
        if encoder.total > COUNT_MAX {
            return Err("a histogram has more values than can be counted");
        }
    }
    let Moments { min, max, sum, .. } = moments;
    let count = u128::from(encoder.total);
    // Of wider buckets the first may lie a little above its smallest value.
    let group = |bucket: usize| bucket >> GROUPING_POWER;
    let is_possible = match first {
        None => moments == Moments::default(),
        Some(first) => {
            encoder.next_bucket == bucket_of(max) + 1
                && group(first) == group(bucket_of(min))
                && (u128::from(min) * count..=u128::from(max) * count).contains(&sum)
        }
    };
    if is_possible && encoder.total == moments.count {
        Ok(encoder.finish(moments))
    } else {
        Err(INCONSISTENT)
    }
}

/// Every number ends, before it has more bits than a gap or a count takes.
fn check_numbers(encoded: &[u8]) -> Result<(), &'static str> {
    let mut run = 0;
    let mut gaps = 0_u64;
    let mut number = 0_u64;
    for byte in encoded {
        if run == 9 {
            return Err("a histogram has a number of too many bytes");
        }
        number |= u64::from(byte & 0x7f) << (7 * run);
        run = if byte & 0x80 == 0 { 0 } else { run + 1 };
        if run == 0 {
            // Twice the gap and one, or twice the count, which ends a bucket.
            gaps = gaps.saturating_add(if number % 2 == 1 { number / 2 } else { 1 });
            number = 0;
        }
    }
    (run == 0 && gaps <= BUCKETS as u64).then_some(()).ok_or("a histogram that does not end, or not in time")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::histogram::Histogram;
    use proptest::prelude::*;

    fn carried(values: &[u64]) -> (Moments, Vec<u8>) {
        let mut histogram = Histogram::new();
        values.iter().for_each(|value| histogram.record(*value));
        let sparse = histogram.to_sparse();
        (sparse.moments, sparse.encoded.into_vec())
    }

    proptest! {
        #[test]
        fn histograms_survive_serialization(values in proptest::collection::vec(any::<u64>(), 0..50)) {
            let mut histogram = Histogram::new();
            values.iter().for_each(|value| histogram.record(*value));
            let sparse = histogram.to_sparse();
            prop_assert_eq!(read((sparse.moments, sparse.encoded.to_vec())), Ok(sparse));
        }

        /// Whatever arrives is refused, or can be added up.
        #[test]
        fn random_bytes_are_rejected_or_consistent(
            encoded in proptest::collection::vec(any::<u8>(), 0..20), count in 0..300u64, min in 0..300u64, max in 0..300u64,
        ) {
            let moments = Moments { count, min, max, ..Moments::default() };
            if let Ok(sparse) = read((moments, encoded)) {
                let mut sum = Histogram::new();
                sum.merge_sparse(&sparse);
                prop_assert_eq!(sum.count(), sparse.count());
            }
        }
    }

    #[test]
    fn inconsistent_bytes_are_rejected() {
        let changed = |change: fn(&mut (Moments, Vec<u8>))| {
            let mut carried = carried(&[3, 3, 500]);
            change(&mut carried);
            read(carried).err()
        };
        assert_eq!(changed(|_| ()), None);
        let differ = Some("a histogram whose buckets and moments say different things");
        assert_eq!(changed(|carried| carried.0.count += 1), differ);
        assert_eq!(changed(|carried| carried.0.min = 5_000), differ);
        assert_eq!(changed(|carried| carried.0.max = 501), differ);
        assert_eq!(changed(|carried| carried.1.clear()), differ);
        let endless = Some("a histogram that does not end, or not in time");
        assert_eq!(changed(|carried| carried.1.push(0x80)), endless);
        assert_eq!(changed(|carried| carried.1.splice(0..0, [0xff, 0xff, 0x7f]).for_each(drop)), endless);
        let many = Some("a histogram has a number of too many bytes");
        assert_eq!(changed(|carried| carried.1 = vec![0x80; 12]), many);
        let nothing = Some("a histogram has a bucket that there is not, or a count that cannot be");
        assert_eq!(changed(|carried| carried.1.push(0)), nothing);
    }

    fn sparse(values: impl IntoIterator<Item = (u64, u64)>) -> SparseHistogram {
        let mut histogram = Histogram::new();
        values.into_iter().for_each(|(value, times)| histogram.record_many(value, times));
        histogram.to_sparse()
    }

    proptest! {
        #[test]
        fn wider_buckets_are_read_back(
            values in proptest::collection::vec((1..1u64 << 41, 1..1_000u64), 1..200), bits in 0..=GROUPING_POWER,
        ) {
            let narrow = sparse(values);
            let wide = narrow.clone().coarser(bits);
            prop_assert_eq!(wide.moments(), narrow.moments());
            prop_assert_eq!(wide.clone().coarser(bits), wide.clone());
            // Wider buckets are made of whole ones, and no value is below what it was.
            for (bucket, count) in wide.buckets() {
                let group = bucket >> bits;
                let of_group = narrow.buckets().filter(|(held, _)| held >> bits == group);
                let (buckets, counts): (Vec<usize>, Vec<u64>) = of_group.unzip();
                prop_assert_eq!(counts.iter().sum::<u64>(), count);
                prop_assert!(buckets.iter().all(|held| *held <= bucket));
            }
            prop_assert_eq!(read((wide.moments, wide.encoded.to_vec())), Ok(wide));
        }
    }
}
