//! The interval against its formula by hand, and its constants against tables.
//!
//! Not its coverage: `replications.rs` beside this file measures that.

use super::*;
use crate::interval::SLICE_NS;
use crate::recorder::{Layout, RecorderSet};
use crate::simulated_run::{answered, times};
use brunt_plan::op::OpKind;
use brunt_plan::outcome::ReplyKind;
use brunt_plan::phase::Phase;

impl PercentileInterval {
    /// One that nothing speaks against, for tests to change: half a per cent of the requests to either side of 1 us, by all batches.
    pub(crate) fn example(quantile: Quantile) -> Self {
        Self {
            quantile,
            value_ns: 1_000,
            low_ns: 1_000,
            high_ns: Some(1_000),
            fraction_below_low: 0.995 - quantile.share_above(),
            fraction_above_high: (quantile.share_above() - 0.005).max(0.0),
            basis: IntervalBasis {
                batches: 30,
                design_effect: 1.0,
                effective_count: 10_000.0,
                quantisation_ns: 0,
            },
        }
    }
}

fn batch(values: impl IntoIterator<Item = u64>) -> Batch {
    let mut response = Histogram::new();
    values.into_iter().for_each(|value| response.record(value));
    Batch { response: response.to_sparse(), ..Batch::default() }
}

fn check_near(found: f64, expected: f64, tolerance: f64) {
    assert!((found - expected).abs() <= tolerance, "{found} is not {expected} to {tolerance}");
}

/// How many requests it takes until half the interval of a percentile is this share of it, where latencies beyond the percentile fall off
/// exponentially: `deff · (1.96 / (h · ln(1/(1 − p))))² · p/(1 − p)`, which docs/method.md has a table of.
fn requests_for(quantile: Quantile, half_width: f64, design_effect: f64) -> f64 {
    let p = fraction(quantile);
    let tail = -(1.0 - p).ln();
    design_effect * (1.96 / (half_width * tail)).powi(2) * p / (1.0 - p)
}

#[test]
fn requests_needed_for_a_width() {
    let table = [
        (Quantile::P50, [800.0, 3_199.0, 19_990.0, 79_958.0]),
        (Quantile::P90, [653.0, 2_609.0, 16_303.0, 65_212.0]),
        (Quantile::P99, [1_794.0, 7_174.0, 44_833.0, 179_332.0]),
        (Quantile::P999, [8_043.0, 32_171.0, 201_069.0, 804_274.0]),
        (Quantile::P9999, [45_282.0, 181_125.0, 1_132_029.0, 4_528_114.0]),
    ];
    for (quantile, expected) in table {
        for (half_width, requests) in [0.1, 0.05, 0.02, 0.01].into_iter().zip(expected) {
            assert_eq!(
                requests_for(quantile, half_width, 1.0).ceil(),
                requests,
                "{quantile} to {half_width}"
            );
        }
    }
    // An M/M/1 server at four fifths of its capacity.
    check_near(requests_for(Quantile::P999, 0.05, 82.0) / 1e6, 2.64, 0.01);
}

/// Ten batches of 100 values below 2000, so that every value has a bucket of its own: 1 to 1000, dealt out in turn, but
/// for the slowest `slow`, which are all in the first batch in exchange for its fastest.
fn ten_batches(slow: u64) -> Vec<Batch> {
    let own = |batch: u64| (0..100).map(move |turn| turn * 10 + batch + 1);
    let mut dealt: Vec<Vec<u64>> = (0..10).map(|batch| own(batch).collect()).collect();
    for value in (1_001 - slow)..=1_000 {
        let holder = ((value - 1) % 10) as usize;
        if holder != 0 {
            let last = dealt[holder].iter().position(|held| *held == value).unwrap();
            let first = dealt[0].iter().position(|held| *held <= 1_000 - slow).unwrap();
            let fast = std::mem::replace(&mut dealt[0][first], value);
            dealt[holder][last] = fast;
        }
    }
    dealt.into_iter().map(batch).collect()
}

/// Batches in which nothing completed are no degrees of freedom.
#[test]
fn empty_batches_do_not_count() {
    let full = ten_batches(50);
    let with_empty: Vec<Batch> =
        full.iter().cloned().chain(std::iter::repeat_n(Batch::default(), 20)).collect();
    assert_eq!(intervals(&with_empty, &[Quantile::P95]), intervals(&full, &[Quantile::P95]));
    assert_eq!(intervals(&with_empty[1..], &[Quantile::P50]), [], "nine batches are too few");
}

#[test]
fn the_interval_follows_from_the_formula() {
    // Evenly dealt: 51 of a hundred reach the median in one batch and 50 in nine, less than independent requests would scatter. Wilson's
    // limits of a half in 1 000: 0.5 ± 2.045 √(0.25/1000 + 2.045²/4/1000²) / (1 + 2.045²/1000) = 0.5 ± 0.03227.
    let [even] = intervals(&ten_batches(0), &[Quantile::P50])[..] else { panic!() };
    assert_eq!((even.value_ns, even.low_ns, even.high_ns), (500, 468, Some(533)));
    assert_eq!((even.basis.design_effect, even.basis.effective_count), (1.0, 1_000.0));
    check_near(even.fraction_below_low, 0.5 - 0.032_27, 1e-5);
    check_near(even.fraction_above_high, 0.5 - 0.032_27, 1e-5);

    // The 50 slowest in one batch, and the 951st from the bottom, 950, in another. e = 50, 1, 0 … 0 of n = 100 with 51 in all reach the
    // p95: V = 10/9 · (44.9² + 4.1² + 8 · 5.1²) / 1000², times 1000 / (0.051 · 0.949) of independent requests.
    let [p95] = intervals(&ten_batches(50), &[Quantile::P95])[..] else { panic!() };
    assert_eq!((p95.value_ns, p95.high_ns), (950, None));
    let squares = 44.9_f64.powi(2) + 4.1_f64.powi(2) + 8.0 * 5.1_f64.powi(2);
    let effect = 10.0 / 9.0 * squares / 1_000.0 / (0.051 * 0.949);
    check_near(p95.basis.design_effect, effect, 1e-9);
    check_near(p95.basis.effective_count, 1_000.0 / effect, 1e-9);
    check_near(p95.effective_above(), 50.0 / effect, 1e-9);
    assert_eq!((p95.basis.batches, p95.relative_half_width()), (10, None));
    // 0.95 in 19.4 independent requests.
    check_near(p95.fraction_below_low, 0.749, 0.001);
    assert_eq!(p95.low_ns, (p95.fraction_below_low * 1_000.0).ceil() as u64);
}

/// An outage in one of 30 batches makes few independent requests of the p99, more of the p99.9 beyond it, and as many as there are of the
/// median.
#[test]
fn ends_never_fall_as_percentiles_rise() {
    let of = |index: u64| {
        batch((0..10_000u64).map(move |turn| match (index, turn) {
            (7, 0..3_000) => 1_000_000 + turn,
            (_, 0..20) => 2_000_000 + turn,
            _ => turn % 1_000 + index,
        }))
    };
    let batches: Vec<Batch> = (0..30).map(of).collect();
    let found = intervals(&batches, &Quantile::PRINTED);
    let effects: Vec<f64> = found.iter().map(|interval| interval.basis.design_effect.floor()).collect();
    assert!(effects[0] < effects[3] && effects[3] > effects[4], "{effects:?}");
    let high = |interval: &PercentileInterval| interval.high_ns.unwrap_or(u64::MAX);
    for pair in found.windows(2) {
        assert!(pair[0].low_ns <= pair[1].low_ns && high(&pair[0]) <= high(&pair[1]), "{pair:?}");
        assert!(pair[0].fraction_below_low <= pair[1].fraction_below_low, "{pair:?}");
        assert!(pair[0].fraction_above_high >= pair[1].fraction_above_high, "{pair:?}");
    }
    for interval in found {
        assert!(interval.low_ns <= interval.value_ns && interval.value_ns <= high(&interval));
    }
}

/// N(1 − p)/deff at ten: with a design effect of 1 it is the gate of the percentile itself.
#[test]
fn an_interval_is_open_below_ten_independent_requests() {
    let even: Vec<Batch> = (0..10).map(|index| batch((0..100).map(move |turn| turn * 10 + index))).collect();
    let [p99] = intervals(&even, &[Quantile::P99])[..] else { panic!() };
    assert_eq!((p99.effective_above(), p99.basis.design_effect), (10.0, 1.0));
    assert!(p99.high_ns.is_some());
    // All above it in one of the batches: a design effect of more than ten.
    let [p95] = intervals(&ten_batches(50), &[Quantile::P95])[..] else { panic!() };
    assert!(p95.high_ns.is_none() && p95.effective_above() < 10.0);
}

#[test]
fn ends_contain_their_buckets() {
    // Above 2048 a bucket holds several values; at a million 512 ns to 1024 ns.
    let batches: Vec<Batch> = (0..30)
        .map(|index| batch((0..1_000u64).map(|value| 1_000_000 + value * 1_000 + index * 10)))
        .collect();
    let [p90] = intervals(&batches, &[Quantile::P90])[..] else { panic!() };
    assert_eq!((p90.low_ns % 1_024, (p90.high_ns.unwrap() + 1) % 1_024), (0, 0));
    assert_eq!(p90.basis.quantisation_ns, 512);
    assert!(p90.low_ns <= 1_899_000 && p90.high_ns.unwrap() >= 1_899_290, "{p90:?}");
}

#[test]
fn equal_values_are_certain() {
    let batches: Vec<Batch> = (0..30).map(|_| batch([100_000; 1_000])).collect();
    let found = intervals(&batches, &Quantile::PRINTED);
    let names: Vec<String> = found.iter().map(|interval| interval.quantile.to_string()).collect();
    assert_eq!(names, ["p50", "p90", "p95", "p99", "p99.9"]);
    for interval in found {
        assert_eq!((interval.low_ns, interval.high_ns), (100_000, Some(100_000)));
        assert!(interval.basis.effective_count == 30_000.0, "{interval:?}");
    }
}

#[test]
fn without_batches_or_samples_there_is_none() {
    assert_eq!(intervals(&[], &Quantile::PRINTED), []);
    let few: Vec<Batch> = (0..30).map(|index| batch([index])).collect();
    let names = intervals(&few, &Quantile::PRINTED).len();
    assert_eq!(names, 1, "thirty samples support the median and nothing else");
}

const MS: u64 = 1_000_000;
const MEASURE_NS: u64 = 5_057 * MS;

/// A window of `length_ns` in which a get and a set complete every millisecond, 7 ms after they were intended, up to
/// the last one in the drain. The get whose turn it is takes 7 ms and that many nanoseconds.
fn timeline(length_ns: u64) -> (Timeline, RunTimes) {
    let ops = vec![vec![OpKind::Get.into(), OpKind::Set.into()]];
    let layout = Layout { ops, servers: 1, ..Layout::default() };
    let end_ns = MEASURE_NS + length_ns;
    let window =
        RunTimes { start_ns: 0, measure_ns: MEASURE_NS, end_ns, drained_ns: end_ns, ..RunTimes::NONE };
    let mut timeline = Timeline::default();
    timeline.align(MEASURE_NS);
    let mut set = RecorderSet::new(&layout);
    set.set_window(MEASURE_NS, end_ns);
    // Intervals end 3 ms late, so that one that belongs to the slice before the window holds the first requests.
    let mut taken_ns = MEASURE_NS - 97 * MS;
    for turn in 0..length_ns / MS {
        let intended_ns = MEASURE_NS + turn * MS;
        let done_ns = intended_ns + if turn < 2 { 0 } else { 7 * MS } + turn;
        if done_ns >= taken_ns + 100 * MS {
            timeline.push(&set.take_interval(0, taken_ns, taken_ns + 100 * MS));
            taken_ns += 100 * MS;
        }
        let times = times(intended_ns, intended_ns, done_ns);
        for (op, reply) in [(OpKind::Get, ReplyKind::Value), (OpKind::Set, ReplyKind::Stored)] {
            set.record(Phase::Measure, &answered(op, reply, times), 1, 1);
        }
    }
    timeline.push(&set.take_interval(0, taken_ns, end_ns + 20 * MS));
    (timeline, window)
}

#[test]
fn batches_have_equally_many_slices_as_nearly_as_can_be() {
    // Length in slices → batches, and the shortest and the longest of them but the last, in slices.
    let table = [
        (9, 0, 0, 0),
        (10, 10, 1, 1),
        (29, 29, 1, 1),
        (30, 30, 1, 1),
        (31, 30, 1, 1),
        (47, 30, 1, 2),
        (100, 30, 3, 4),
        (300, 30, 10, 10),
    ];
    for (slices, count, shortest, longest) in table {
        let (timeline, window) = timeline(slices * SLICE_NS + 40 * MS);
        let batches = batches(&timeline, &window, window.measure_ns, |_, _| true);
        assert_eq!(batches.len(), count, "{slices} slices");
        let Some((last, others)) = batches.split_last() else { continue };
        let lengths = others.iter().map(|batch| (batch.end_ns - batch.start_ns) / SLICE_NS);
        assert_eq!((lengths.clone().min(), lengths.max()), (Some(shortest), Some(longest)));
        assert_eq!((batches[0].start_ns, last.end_ns), (window.measure_ns, window.end_ns));
        assert!(batches.windows(2).all(|pair| pair[0].end_ns == pair[1].start_ns));
        // Every request is in one of them, those of the drain included.
        let requests = 2 * (window.duration_ns() / MS);
        assert_eq!(batches.iter().map(|batch| batch.response.count()).sum::<u64>(), requests);
        assert_eq!(batches.iter().map(|batch| batch.completed).sum::<u64>(), requests - 2 * 7);
    }
}

#[test]
fn batches_hold_the_selected_rows_from_the_start_on() {
    let (timeline, window) = timeline(60 * SLICE_NS);
    let gets = |_: ClassId, op: OpId| op == OpKind::Get.into();
    let all = batches(&timeline, &window, window.measure_ns, gets);
    assert_eq!(all.iter().map(|batch| batch.response.count()).sum::<u64>(), 6_000);
    // The first holds what completed before the first slice of the window began for the workers, and two slices.
    let first = all[0].response.moments();
    assert_eq!((first.count, first.min, first.max), (196, 0, 7 * MS + 195));
    let cut = batches(&timeline, &window, window.measure_ns + 20 * SLICE_NS, gets);
    assert_eq!(cut.len(), 30);
    assert_eq!(cut[0].start_ns, window.measure_ns + 2_000 * MS);
    let first = cut[0].response.moments();
    // Of 100 ms that begin with what completes 3 ms late.
    assert_eq!((first.count, first.min), (100, 7 * MS + 1_996));
    assert_eq!(cut.iter().map(|batch| batch.response.count()).sum::<u64>(), 4_004);
}
