//! A histogram of an interval on its way from one host to another, as bytes, and through a result file, as text.
//!
//! Not for a person. Invariant: what is read back has buckets that exist and moments that they can have, so that nothing that adds it up has
//! to look again.
//!
//! The text is a sequence of numbers in base 46, lowest digit first; the 92 printable ASCII characters without space, quotation mark and
//! backslash are the digits, the first 46 where a number ends and the others where it goes on. Smallest value, largest less smallest, Σ, Σ²;
//! then the buckets in ascending order from the one of the smallest value on: an odd number is one more than twice how many empty buckets to
//! pass over, as in the bytes, an even one is twice the change of the count against the bucket before (0, −1, 1, −2 … are written as 0, 1, 2,
//! 3 …), as counts differ less than they are large. The text of no values is empty.

use super::{BUCKETS, Decoder, Encoder, GROUPING_POWER, Moments, SparseHistogram, bucket_of};

const RADIX: u128 = 46;
/// More than any run counts, and so little that a sum over everything in a file cannot overflow.
const COUNT_MAX: u64 = 1 << 56;

/// The histogram of moments and bytes from another host.
pub(super) fn read((moments, encoded): (Moments, Vec<u8>)) -> Result<SparseHistogram, &'static str> {
    let histogram = checked(moments, &encoded)?;
    // Only buckets of a file are wider.
    let is_narrow = histogram.buckets().next().is_none_or(|(first, _)| first == bucket_of(moments.min));
    if is_narrow && histogram.count() == moments.count { Ok(histogram) } else { Err(INCONSISTENT) }
}

/// The text of a histogram.
pub(super) fn write_text(histogram: &SparseHistogram) -> String {
    let moments = histogram.moments();
    let mut text = String::new();
    if moments.count > 0 {
        let extremes = [moments.min, moments.max - moments.min].map(u128::from);
        let all_moments = extremes.into_iter().chain([moments.sum, moments.sum_squares]);
        all_moments.for_each(|number| push(&mut text, number));
        let (mut next, mut before) = (bucket_of(moments.min), 0);
        for (bucket, count) in histogram.buckets() {
            if bucket > next {
                push(&mut text, 2 * (bucket - next) as u128 + 1);
            }
            let change = i128::from(count) - i128::from(before);
            let folded = if change < 0 { -2 * change - 1 } else { 2 * change };
            push(&mut text, 2 * folded as u128);
            (next, before) = (bucket + 1, count);
        }
    }
    text
}

/// The histogram of a text.
pub(super) fn read_text(text: &str) -> Result<SparseHistogram, &'static str> {
    if text.is_empty() {
        return Ok(SparseHistogram::default());
    }
    let mut numbers = numbers(text);
    let mut moment = || numbers.next().unwrap_or(Err("a histogram that does not end"));
    let [min, width] = [moment()?, moment()?].map(u64::try_from);
    let (sum, sum_squares) = (moment()?, moment()?);
    let max = min.ok().and_then(|min| min.checked_add(width.ok()?));
    let (min, max) = min.ok().zip(max).ok_or("a histogram of values that there are not")?;
    let mut encoder = Encoder::default();
    encoder.number(2 * bucket_of(min) as u64 + 1);
    let mut count = 0_i128;
    for number in numbers {
        let number = number?;
        if number % 2 == 1 {
            encoder.number(u64::try_from(number).map_err(|_| TOO_LONG)?);
            continue;
        }
        let folded = i128::try_from(number / 2).map_err(|_| TOO_LONG)?;
        count += if folded % 2 == 1 { -(folded / 2) - 1 } else { folded / 2 };
        let count = u64::try_from(count).ok().filter(|count| *count <= COUNT_MAX);
        encoder.number(2 * count.ok_or("a histogram has a bucket with a count that cannot be")?);
    }
    checked(Moments { count: 0, min, max, sum, sum_squares }, &encoder.bytes)
}

const INCONSISTENT: &str = "a histogram whose buckets and moments say different things";
const TOO_LONG: &str = "a histogram has a number of too many digits";

/// The histogram of these moments and bytes, if they fit together. The count is that of the bytes.
fn checked(moments: Moments, encoded: &[u8]) -> Result<SparseHistogram, &'static str> {
    check_numbers(encoded)?;
    let mut encoder = Encoder::default();
    let mut first = None;
    for (bucket, count) in (Decoder { encoded, bucket: 0 }) {
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
    let moments = Moments { count: encoder.total, ..moments };
    if is_possible { Ok(encoder.finish(moments)) } else { Err(INCONSISTENT) }
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

fn push(text: &mut String, mut number: u128) {
    loop {
        let (rest, digit) = (number / RADIX, (number % RADIX) as u8);
        let place = if rest > 0 { digit + RADIX as u8 } else { digit };
        text.push(char::from(match place {
            0 => b'!',
            1..=57 => b'"' + place,
            _ => b']' + (place - 58),
        }));
        if rest == 0 {
            return;
        }
        number = rest;
    }
}

/// The digit of a character, and 46 more where its number goes on.
const fn place(character: u8) -> Option<u128> {
    match character {
        b'!' => Some(0),
        b'#'..=b'[' => Some((character - b'"') as u128),
        b']'..=b'~' => Some((character - b']') as u128 + 58),
        _ => None,
    }
}

/// The numbers of a text.
fn numbers(text: &str) -> impl Iterator<Item = Result<u128, &'static str>> {
    let is_last = |character: &u8| place(*character).is_none_or(|place| place < RADIX);
    text.as_bytes().split_inclusive(is_last).map(|characters| {
        let (mut number, mut is_over) = (0_u128, false);
        for (index, character) in characters.iter().rev().enumerate() {
            let place = place(*character).ok_or("a histogram has a character that is none of its digits")?;
            is_over |= index == 0 && place < RADIX;
            number = number.checked_mul(RADIX).and_then(|n| n.checked_add(place % RADIX)).ok_or(TOO_LONG)?;
        }
        is_over.then_some(number).ok_or("a histogram that does not end")
    })
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
        assert_eq!(changed(|carried| carried.0.min = 2), differ);
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
        fn text_is_read_back(values in proptest::collection::vec((any::<u64>(), 1..1_000_000u64), 0..60)) {
            let written = sparse(values);
            let text = write_text(&written);
            prop_assert!(text.bytes().all(|byte| byte.is_ascii_graphic() && byte != b'"' && byte != b'\\'));
            prop_assert_eq!(read_text(&text), Ok(written));
        }

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
            prop_assert_eq!(read_text(&write_text(&wide)), Ok(wide));
        }

        /// Whatever is there is refused, or can be added up.
        #[test]
        fn random_text_is_rejected_or_consistent(text in "[!#-\\[\\]-~]{0,40}") {
            if let Ok(histogram) = read_text(&text) {
                let mut sum = Histogram::new();
                sum.merge_sparse(&histogram);
                prop_assert_eq!(sum.count(), histogram.count());
                prop_assert_eq!(sum.to_sparse(), histogram);
            }
        }
    }

    #[test]
    fn text_is_as_described() {
        assert_eq!(write_text(&sparse([])), "");
        // 3 and 3, and 500: smallest 3, 497 more, Σ 506, Σ² 250 018; 2 more than nothing, 496 empty ones, 1 less.
        assert_eq!(write_text(&sparse([(3, 2), (500, 1)])), "%v,P-XWk$*l7$");
    }

    #[test]
    fn inconsistent_text_is_rejected() {
        let table = [
            ("\u{e9}", "a histogram has a character that is none of its digits"),
            ("a", "a histogram that does not end"),
            ("&!", "a histogram that does not end"),
            (&"~".repeat(60), "a histogram has a number of too many digits"),
            ("&!&&", "a histogram whose buckets and moments say different things"),
            ("&!(&'", "a histogram whose buckets and moments say different things"),
            ("&!&&+!", "a histogram has a bucket that there is not, or a count that cannot be"),
            ("&!&&^~~~~~,&", "a histogram that does not end, or not in time"),
        ];
        for (text, expected) in table {
            match read_text(text) {
                Err(reason) => assert_eq!(reason, expected, "{text}"),
                Ok(found) => panic!("{text}: {found:?}"),
            }
        }
    }
}
