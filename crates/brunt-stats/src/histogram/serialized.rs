//! A histogram of an interval on its way from one host to another: its bytes, and what must be true of them.
//!
//! Not another encoding. Invariant: what is read back has buckets that exist, in which lie as many values as its moments say, and the
//! smallest and the largest of them in the first and the last, so that nothing that adds it up has to look again.

use super::{BUCKETS, Decoder, Moments, SparseHistogram, bucket_of};

/// The moments and the bytes of a histogram, not looked at yet.
pub(super) type SerializedHistogram = (Moments, Vec<u8>);

/// The histogram, if it is one.
pub(super) fn read((moments, encoded): SerializedHistogram) -> Result<SparseHistogram, &'static str> {
    check(&moments, &encoded)?;
    Ok(SparseHistogram { moments, encoded: encoded.into_boxed_slice() })
}

fn check(moments: &Moments, encoded: &[u8]) -> Result<(), &'static str> {
    check_numbers(encoded)?;
    let (mut first, mut last, mut count) = (None, 0, 0_u64);
    for (bucket, times) in (Decoder { encoded, bucket: 0 }) {
        if bucket >= BUCKETS || times == 0 {
            return Err("a histogram has a bucket that there is not, or nothing in one");
        }
        first = first.or(Some(bucket));
        last = bucket;
        count = count.checked_add(times).ok_or("a histogram has more values than can be counted")?;
    }
    let is_whole = match first {
        None => *moments == Moments::default(),
        Some(first) => {
            count == moments.count && bucket_of(moments.min) == first && bucket_of(moments.max) == last
        }
    };
    is_whole.then_some(()).ok_or("a histogram whose buckets and moments say different things")
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

    fn carried(values: &[u64]) -> SerializedHistogram {
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
        let changed = |change: fn(&mut SerializedHistogram)| {
            let mut carried = carried(&[3, 3, 500]);
            change(&mut carried);
            read(carried).err()
        };
        assert_eq!(changed(|_| ()), None);
        let differ = Some("a histogram whose buckets and moments say different things");
        assert_eq!(changed(|carried| carried.0.count += 1), differ);
        assert_eq!(changed(|carried| carried.0.min = 2), differ);
        assert_eq!(changed(|carried| carried.0.max = 501), differ);
        assert_eq!(changed(|carried| carried.1.clear()), differ);
        let endless = Some("a histogram that does not end, or not in time");
        assert_eq!(changed(|carried| carried.1.push(0x80)), endless);
        assert_eq!(changed(|carried| carried.1.splice(0..0, [0xff, 0xff, 0x7f]).for_each(drop)), endless);
        let many = Some("a histogram has a number of too many bytes");
        assert_eq!(changed(|carried| carried.1 = vec![0x80; 12]), many);
        let nothing = Some("a histogram has a bucket that there is not, or nothing in one");
        assert_eq!(changed(|carried| carried.1.push(0)), nothing);
    }
}
