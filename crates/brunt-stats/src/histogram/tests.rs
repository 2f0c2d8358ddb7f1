//! Histograms against sorted lists, textbook formulas and themselves.
//!
//! Not speed (that is measured elsewhere). Everything is seeded: a failure repeats.

use super::*;
use crate::histogram::bucket_of;
use crate::simulated_run::Random;
use proptest::prelude::*;

/// Draws one value.
type Draw = fn(&mut Random) -> u64;

fn recorded(values: &[u64]) -> RecordingHistogram {
    let mut histogram = RecordingHistogram::default();
    values.iter().for_each(|value| {
        histogram.record(*value);
    });
    histogram
}

fn merged(parts: &[SparseHistogram]) -> Histogram {
    let mut histogram = Histogram::new();
    parts.iter().for_each(|part| histogram.merge_sparse(part));
    histogram
}

/// How many values lie in buckets above that of `value`.
fn count_above(histogram: &Histogram, value: u64) -> u64 {
    let above = histogram.buckets().filter(|(bucket, _)| *bucket > bucket_of(value));
    above.map(|(_, count)| count).sum()
}

#[test]
fn every_bucket_begins_where_the_one_before_ends() {
    let mut next = 0;
    for bucket in 0..BUCKETS {
        let values = bucket_values(bucket);
        assert_eq!(*values.start(), next, "bucket {bucket}");
        assert_eq!((bucket_of(*values.start()), bucket_of(*values.end())), (bucket, bucket));
        let width = values.end() - values.start() + 1;
        assert!(width == 1 || width << GROUPING_POWER <= *values.start(), "bucket {bucket} is too wide");
        next = values.end() + 1;
    }
    assert_eq!(next, 1 << VALUE_BITS);
    assert_eq!((bucket_of(1 << VALUE_BITS), bucket_of(u64::MAX)), (BUCKETS - 1, BUCKETS - 1));
}

#[test]
fn quantiles_of_a_million_samples_against_a_sorted_list() {
    let mut random = Random(1);
    let lognormal: Draw = |random| (11.5 + random.normal()).exp() as u64;
    let pareto: Draw = |random| (50_000.0 * random.unit().powf(-1.0 / 1.5)) as u64;
    let table: [(&str, Draw); 4] = [
        ("lognormal", lognormal),
        ("pareto", pareto),
        ("constant", |_| 123_457),
        ("one or two", |random| 1 + random.next() % 2),
    ];
    for (name, draw) in table {
        let mut values: Vec<u64> = (0..1_000_000).map(|_| draw(&mut random)).collect();
        let histogram = merged(&[recorded(&values).take()]);
        values.sort_unstable();
        for millionths in (0..=1_000_000).step_by(997).chain([500_000, 999_999, 1_000_000]) {
            let quantile = Quantile::from_millionths(millionths).unwrap();
            let exact = values[(millionths as usize).max(1) - 1];
            let given = histogram.quantile(quantile).unwrap();
            assert!(given >= exact, "{name}: {given} is below {exact} at {quantile}");
            assert!(
                (given - exact) << GROUPING_POWER <= exact,
                "{name}: {given} is above {exact} at {quantile}"
            );
            let above = values.len() - values.partition_point(|value| *value <= given);
            assert_eq!(count_above(&histogram, given), above as u64, "{name} at {quantile}");
        }
        check_moments(histogram.moments(), &values, name);
    }
}

/// The moments computed the way of a textbook: two passes, differences from the mean.
fn check_moments(moments: &Moments, sorted: &[u64], name: &str) {
    assert_eq!((moments.min, moments.max), (sorted[0], sorted[sorted.len() - 1]), "{name}");
    let count = sorted.len() as f64;
    let mean = sorted.iter().map(|value| *value as f64).sum::<f64>() / count;
    let variance = sorted.iter().map(|value| (*value as f64 - mean).powi(2)).sum::<f64>() / count;
    let is_close = |given: f64, exact: f64| (given - exact).abs() <= 1e-9 * exact.max(1e-3);
    assert!(is_close(moments.mean().unwrap(), mean), "{name}: mean {:?}, not {mean}", moments.mean());
    let stddev = moments.stddev().unwrap();
    assert!(
        is_close(stddev, variance.sqrt()),
        "{name}: standard deviation {stddev}, not {}",
        variance.sqrt()
    );
}

#[test]
fn a_small_spread_on_a_large_value_is_not_lost() {
    // A floating-point Σv²/N − mean² yields 0 or 90 here.
    let mut histogram = Histogram::new();
    for value in [4_000_000_000_000, 4_000_000_000_002] {
        histogram.record_many(value, 1 << 40);
    }
    assert_eq!(histogram.moments().stddev(), Some(1.0));
    assert_eq!(histogram.moments().mean(), Some(4_000_000_000_001.0));
}

#[test]
fn empty_and_single_value_histograms() {
    let empty = Histogram::new();
    assert_eq!((empty.quantile(Quantile::P50), empty.min(), empty.max()), (None, None, None));
    assert_eq!((empty.moments().mean(), empty.moments().stddev()), (None, None));
    assert_eq!(empty.buckets().count(), 0);
    assert_eq!(RecordingHistogram::default().take(), SparseHistogram::default());
    for value in [0, 1, 2_047, 2_048, 123_456_789, (1 << VALUE_BITS) - 1, 1 << VALUE_BITS, u64::MAX] {
        let histogram = merged(&[recorded(&[value]).take()]);
        for quantile in Quantile::PRINTED {
            assert_eq!(histogram.quantile(quantile), Some(value));
        }
        assert_eq!((histogram.min(), histogram.max()), (Some(value), Some(value)));
        assert_eq!(histogram.moments().stddev(), Some(0.0));
    }
}

#[test]
fn values_beyond_the_last_bucket_keep_the_exact_maximum_and_sum() {
    let values = [5, 1 << 50, (1 << 60) + 7];
    let histogram = merged(&[recorded(&values).take()]);
    assert_eq!(histogram.quantile(Quantile::P99), Some((1 << 60) + 7));
    assert_eq!(histogram.moments().sum, (1 << 50) + (1 << 60) + 12);
}

#[test]
fn counts_go_past_16_and_32_bits() {
    const FOUR_BILLION: u64 = 1 << 32;
    let mut recording = recorded(&[1_000, 5_000_000, 5_000_000]);
    (0..200_000).for_each(|_| {
        recording.record(5_000_000);
    });
    recording.record_many(1_000, u32::MAX);
    recording.record(1_000);
    let sparse = recording.take();
    assert_eq!(sparse.count(), FOUR_BILLION + 1 + 200_002);
    let buckets: Vec<(usize, u64)> = sparse.buckets().collect();
    assert_eq!(buckets, [(bucket_of(1_000), FOUR_BILLION + 1), (bucket_of(5_000_000), 200_002)]);
    assert!(recording.is_empty() && recording.wrapped.is_empty());

    let mut whole = Histogram::new();
    (0..1_000).for_each(|_| whole.merge_sparse(&sparse));
    let mut expected = Histogram::new();
    expected.record_many(1_000, 1_000 * (FOUR_BILLION + 1));
    expected.record_many(5_000_000, 200_002_000);
    assert_eq!(whole, expected);
    assert_eq!(whole.quantile(Quantile::P9999), Some(1_000));
    assert_eq!(count_above(&whole, 1_000), 200_002_000);
}

#[test]
fn take_and_clear_leave_an_empty_histogram() {
    let mut recording = recorded(&[7, 7, 90_000, u64::MAX]);
    let first = recording.take();
    assert!(recording.is_empty());
    assert!(recording.counts.iter().all(|count| *count == 0));
    [7, 7, 90_000, u64::MAX].into_iter().for_each(|value| {
        recording.record(value);
    });
    assert_eq!(recording.take(), first);
    let mut histogram = merged(&[first]);
    histogram.clear();
    assert_eq!((histogram.count(), histogram.buckets().count(), histogram.max()), (0, 0, None));
}

#[test]
fn a_busy_interval_is_compact() {
    let mut random = Random(7);
    let values: Vec<u64> = (0..20_000).map(|_| (11.5 + 0.3 * random.normal()).exp() as u64).collect();
    let sparse = recorded(&values).take();
    let buckets = sparse.buckets().count();
    assert!(sparse.encoded_bytes() < 2 * buckets, "{} bytes for {buckets} buckets", sparse.encoded_bytes());
}

/// Values of every magnitude, many of them equal.
fn values() -> impl Strategy<Value = Vec<u64>> {
    let value = prop_oneof![
        0..50u64,
        90_000..110_000u64,
        (any::<u64>(), 0..64u32).prop_map(|(value, bits)| value >> bits)
    ];
    proptest::collection::vec(value, 0..200)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn any_partition_in_any_order_merges_to_the_same_bits(values in values(), parts in 1..6usize, seed in any::<u64>()) {
        let mut whole = Histogram::new();
        values.iter().for_each(|value| whole.record(*value));
        let mut random = Random(seed);
        let mut pieces = vec![Vec::new(); parts];
        values.iter().for_each(|value| pieces[(random.next() % parts as u64) as usize].push(*value));
        let mut pieces: Vec<SparseHistogram> = pieces.iter().map(|piece| recorded(piece).take()).collect();
        for turn in 0..parts {
            pieces.rotate_left(1);
            prop_assert_eq!(&merged(&pieces), &whole, "turn {}", turn);
            let sparse = pieces.iter().fold(SparseHistogram::default(), |sum, piece| sum.merged(piece));
            prop_assert_eq!(&merged(std::slice::from_ref(&sparse)), &whole);
            let mut twice = merged(std::slice::from_ref(&sparse));
            twice.merge(&Histogram::new());
            prop_assert_eq!(&twice, &whole);
            // A histogram that is used again holds nothing of what was in it before.
            let mut sum = merged(&pieces[1..]);
            prop_assert_eq!(SparseHistogram::merge_all(&pieces, &mut sum).into_owned(), sparse.clone());
            for quantile in Quantile::PRINTED {
                prop_assert_eq!(sparse.quantile(quantile), whole.quantile(quantile));
            }
            for rank in [0, 1, whole.count() / 2, whole.count(), whole.count() + 1] {
                let mut up_to = 0;
                let mut ranges = whole.ranges();
                let found = ranges.find(|(_, count)| {
                    up_to += count;
                    up_to >= rank
                });
                let found = found.map(|(values, _)| values);
                prop_assert_eq!(found, whole.at_rank(rank));
            }
            let mut bounds = values.clone();
            bounds.extend([0, 1_000_000, u64::MAX]);
            bounds.sort_unstable();
            let above: Vec<u64> = bounds.iter().map(|bound| count_above(&whole, *bound)).collect();
            prop_assert_eq!(sparse.counts_above(&bounds), above);
        }
    }

    #[test]
    fn record_many_equals_repeated_record(values in values(), times in 0..5u32) {
        let (mut together, mut each) = (RecordingHistogram::default(), RecordingHistogram::default());
        for value in values {
            together.record_many(value, times);
            (0..times).for_each(|_| {
each.record(value);
});
        }
        prop_assert_eq!(together.take(), each.take());
    }

    #[test]
    fn encoded_buckets_are_decoded(counts in proptest::collection::btree_map(0..BUCKETS, 1..=u64::MAX >> 8, 0..60)) {
        let mut encoder = Encoder::default();
        counts.iter().for_each(|(bucket, count)| encoder.push(*bucket, *count));
        let moments = Moments { count: encoder.total, ..Moments::default() };
        let decoded: Vec<(usize, u64)> = encoder.finish(moments).buckets().collect();
        prop_assert_eq!(decoded, counts.into_iter().collect::<Vec<_>>());
    }
}

fn recorded_of_part_sums(requests: &[(Times, u32)]) -> PartSums {
    let mut sums = RecordingPartSums::default();
    requests.iter().for_each(|(times, count)| sums.add(bucket_of(times.response_ns()), times, *count));
    let taken = sums.take();
    assert_eq!(sums.take(), PartSums::default(), "nothing is left");
    taken
}

/// Picked 10 late, sent 20 later, unread for 30 at the end.
fn times(response_ns: u64) -> Times {
    let (polled_ns, done_ns) = (response_ns - 30, response_ns);
    Times { intended_ns: 0, picked_ns: 10, sent_ns: 30, polled_ns, first_byte_ns: done_ns, done_ns }
}

#[test]
fn parts_are_summed_from_a_response_time_on() {
    let sums = recorded_of_part_sums(&[
        (times(1_000), 2),
        (times(1_010), 1),
        (times(1 << 20), 1),
        (times(1 << 50), 3),
    ]);
    let from = |response_ns| sums.from_group(bucket_of(response_ns) >> GROUP_BITS);
    let rest = (1 << 20) + 3 * (1 << 50);
    assert_eq!(from(0), PartSum(3_010 + rest, 7 * 40, 7 * 20));
    assert_eq!(from(1_024), PartSum(rest, 4 * 40, 4 * 20));
    assert_eq!(from((1 << 20) + (1 << 16)), PartSum(3 << 50, 3 * 40, 3 * 20), "the next group");
    assert_eq!(from(u64::MAX), PartSum(3 << 50, 3 * 40, 3 * 20), "the last one has no end");
}

#[test]
fn merging_in_any_order_equals_recording_together() {
    let [one, other] = [[(times(100), 1), (times(5_000), 7)], [(times(5_010), 2), (times(1 << 30), 4)]];
    let together = recorded_of_part_sums(&[one, other].concat());
    for parts in [[&one, &other], [&other, &one]] {
        let mut merged = PartSums::default();
        parts.into_iter().for_each(|part| merged.merge(&recorded_of_part_sums(part)));
        assert_eq!(merged, together);
    }
}
