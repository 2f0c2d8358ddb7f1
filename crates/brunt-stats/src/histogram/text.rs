//! A histogram as text, for result files: short, exact, and of characters that JSON leaves as they are.
//!
//! Not for a person. Invariant: what is read back has buckets that exist and moments that they can have, so
//! that nothing that adds it up has to look again.
//!
//! The text is a sequence of numbers in base 46, lowest digit first; the 92 printable ASCII characters without space, quotation mark and
//! backslash are the digits, the first 46 where a number ends and the others where it goes on. Smallest value, largest less smallest, Σ, Σ²;
//! then the buckets in ascending order from the one of the smallest value on: an even number is twice how many empty buckets to pass
//! over, an odd one is one more than twice the change of the count against the bucket before (0, −1, 1, −2 … are written as 0, 1, 2, 3 …).
//! The text of no values is empty.

use super::{BUCKETS, Encoder, GROUPING_POWER, Moments, SparseHistogram, bucket_of};

const RADIX: u128 = 46;
/// More than any run counts, and so little that a sum over everything in a file cannot overflow.
const COUNT_MAX: u64 = 1 << 56;

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

/// The numbers of a text.
struct Numbers<'a> {
    text: &'a [u8],
}

impl Numbers<'_> {
    fn next(&mut self) -> Result<Option<u128>, &'static str> {
        let (mut number, mut scale) = (0_u128, Some(1_u128));
        while let Some((character, rest)) = self.text.split_first() {
            self.text = rest;
            let place = match character {
                b'!' => 0,
                b'#'..=b'[' => character - b'"',
                b']'..=b'~' => character - b']' + 58,
                _ => return Err("a histogram has a character that is none of its digits"),
            };
            let is_last = u128::from(place) < RADIX;
            let digit = u128::from(place) % RADIX;
            let sum = scale.and_then(|scale| digit.checked_mul(scale)?.checked_add(number));
            number = sum.ok_or("a histogram has a number of too many digits")?;
            if is_last {
                return Ok(Some(number));
            }
            scale = scale.and_then(|scale| scale.checked_mul(RADIX));
        }
        if scale == Some(1) { Ok(None) } else { Err("a histogram that does not end") }
    }

    fn moment(&mut self) -> Result<u128, &'static str> {
        self.next()?.ok_or("a histogram that does not end")
    }
}

/// The text of a histogram.
pub(super) fn write(histogram: &SparseHistogram) -> String {
    let moments = histogram.moments();
    let mut text = String::new();
    if moments.count == 0 {
        return text;
    }
    let numbers =
        [u128::from(moments.min), u128::from(moments.max - moments.min), moments.sum, moments.sum_squares];
    numbers.into_iter().for_each(|number| push(&mut text, number));
    let (mut next, mut before) = (bucket_of(moments.min), 0);
    for (bucket, count) in histogram.buckets() {
        if bucket > next {
            push(&mut text, 2 * (bucket - next) as u128);
        }
        let change = i128::from(count) - i128::from(before);
        let folded = if change < 0 { -2 * change - 1 } else { 2 * change };
        push(&mut text, 2 * folded as u128 + 1);
        (next, before) = (bucket + 1, count);
    }
    text
}

/// The histogram of a text.
pub(super) fn read(text: &str) -> Result<SparseHistogram, &'static str> {
    if text.is_empty() {
        return Ok(SparseHistogram::default());
    }
    let mut numbers = Numbers { text: text.as_bytes() };
    let small = |number: u128| u64::try_from(number).map_err(|_| "a histogram of values that there are not");
    let min = small(numbers.moment()?)?;
    let max = min.checked_add(small(numbers.moment()?)?).ok_or("a histogram of values that there are not")?;
    let (sum, sum_squares) = (numbers.moment()?, numbers.moment()?);
    let mut encoder = Encoder::default();
    let (mut next, mut before, mut last) = (bucket_of(min), 0_i128, None);
    let mut first = None;
    while let Some(number) = numbers.next()? {
        if number % 2 == 0 {
            next = next.saturating_add(usize::try_from(number / 2).unwrap_or(usize::MAX));
            continue;
        }
        let folded = i128::try_from(number / 2).map_err(|_| "a histogram has a number of too many digits")?;
        before += if folded % 2 == 1 { -(folded / 2) - 1 } else { folded / 2 };
        let count = u64::try_from(before).ok().filter(|count| (1..=COUNT_MAX).contains(count));
        let count = count.ok_or("a histogram has a bucket with a count that cannot be")?;
        if next >= BUCKETS {
            return Err("a histogram has a bucket that there is not");
        }
        encoder.push(next, count);
        if encoder.total > COUNT_MAX {
            return Err("a histogram has more values than can be counted");
        }
        first = first.or(Some(next));
        (last, next) = (Some(next), next + 1);
    }
    let count = encoder.total;
    // Of wider buckets the first may lie a little above its smallest value.
    let group = |bucket: usize| bucket >> GROUPING_POWER;
    let is_possible = last == Some(bucket_of(max))
        && first.map(group) == Some(group(bucket_of(min)))
        && sum >= u128::from(min) * u128::from(count)
        && sum <= u128::from(max) * u128::from(count);
    if !is_possible {
        return Err("a histogram whose buckets and moments say different things");
    }
    Ok(encoder.finish(Moments { count, min, max, sum, sum_squares }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::histogram::Histogram;
    use proptest::prelude::*;

    fn sparse(values: impl IntoIterator<Item = (u64, u64)>) -> SparseHistogram {
        let mut histogram = Histogram::new();
        values.into_iter().for_each(|(value, times)| histogram.record_many(value, times));
        histogram.to_sparse()
    }

    proptest! {
        #[test]
        fn text_is_read_back(values in proptest::collection::vec((any::<u64>(), 1..1_000_000u64), 0..60)) {
            let written = sparse(values);
            let text = write(&written);
            prop_assert!(text.bytes().all(|byte| byte.is_ascii_graphic() && byte != b'"' && byte != b'\\'));
            prop_assert_eq!(read(&text), Ok(written));
        }

        #[test]
        fn wider_buckets_are_read_back(
            values in proptest::collection::vec((1..1u64 << 41, 1..1_000u64), 1..200), bits in 0..=GROUPING_POWER,
        ) {
            let narrow = sparse(values);
            let wide = narrow.coarser(bits);
            prop_assert_eq!(wide.moments(), narrow.moments());
            prop_assert_eq!(wide.coarser(bits), wide.clone());
            // Wider buckets are made of whole ones, and no value is below what it was.
            for (bucket, count) in wide.buckets() {
                let group = bucket >> bits;
                let of_group = narrow.buckets().filter(|(held, _)| held >> bits == group);
                let (buckets, counts): (Vec<usize>, Vec<u64>) = of_group.unzip();
                prop_assert_eq!(counts.iter().sum::<u64>(), count);
                prop_assert!(buckets.iter().all(|held| *held <= bucket));
            }
            prop_assert_eq!(read(&write(&wide)), Ok(wide));
        }

        /// Whatever is there is refused, or can be added up.
        #[test]
        fn random_text_is_rejected_or_consistent(text in "[!#-\\[\\]-~]{0,40}") {
            if let Ok(histogram) = read(&text) {
                let mut sum = Histogram::new();
                sum.merge_sparse(&histogram);
                prop_assert_eq!(sum.count(), histogram.count());
                prop_assert_eq!(sum.to_sparse(), histogram);
            }
        }
    }

    #[test]
    fn text_is_as_described() {
        assert_eq!(write(&sparse([])), "");
        // 3 and 3, and 500: smallest 3, 497 more, Σ 506, Σ² 250 018; 2 more than nothing, 496 empty ones, 1 less.
        assert_eq!(write(&sparse([(3, 2), (500, 1)])), "%v,P-XWk$+k7%");
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
            ("&!&&%", "a histogram has a bucket with a count that cannot be"),
            ("&!&&]~~~~~~,'", "a histogram has a bucket that there is not"),
        ];
        for (text, expected) in table {
            match read(text) {
                Err(reason) => assert_eq!(reason, expected, "{text}"),
                Ok(found) => panic!("{text}: {found:?}"),
            }
        }
    }
}
