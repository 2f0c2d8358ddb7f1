//! Change points of runs of known queues, in virtual time.
//!
//! A debug build, which is what the test command makes, takes fewer and shorter runs; a release build (`cargo xtask replications`) takes
//! as many as the statement needs. Seeds are fixed: a result changes with the code only.

use super::*;
use crate::simulated_run::{MEASURE_NS, Queue, Request, S, markovian, plan, record};

const IS_FULL: bool = !cfg!(debug_assertions);
const OPEN: &str = "rate = 1000\nmix = 'get'\nthreads = 1";

fn found_without(toml: &str, requests: &[Request], seconds: f64, left_out: &[Range<u64>]) -> Steadiness {
    let plan = plan(toml);
    let (store, window) = record(&plan, requests, seconds, usize::MAX);
    Steadiness::of(&plan, &store, &window, left_out)
}

fn found(requests: &[Request], seconds: f64) -> Steadiness {
    found_without(OPEN, requests, seconds, &[])
}

/// At a load of a half with 500 requests a second.
fn queue(
    seconds: f64,
    service: &dyn Fn(f64) -> f64,
    hit_ratio: &dyn Fn(f64) -> f64,
    seed: u64,
) -> Steadiness {
    found(&Queue { rate: 500.0, service, hit_ratio }.requests(seconds, seed), seconds)
}

const LEVEL: &dyn Fn(f64) -> f64 = &|_| 0.9;
const STEADY: &dyn Fn(f64) -> f64 = &|_| 1e-3;

/// Replications of a queue in a steady state at a load of 0.8: of a thousand, at most 3 % may have a change point. Of a hundred, the number
/// is binomial: with 3 % each, more than 8 come about in one of two hundred such tests.
#[test]
fn replications_in_a_steady_state_have_few_change_points() {
    let runs = if IS_FULL { 1_000 } else { 100 };
    let mut by_kind = std::collections::BTreeMap::<String, u32>::new();
    let mut fired = 0;
    for seed in 1..=runs {
        let (rate, seconds) = match (seed % 4, IS_FULL) {
            (0, _) => (1_000.0, 10.0),
            (1, _) => (1_000.0, 4.0),
            (2, true) => (10_000.0, 10.0),
            (2, false) => (2_000.0, 4.0),
            (_, true) => (1_000.0, 60.0),
            (_, false) => (500.0, 10.0),
        };
        if let Some(change) = found(&markovian(rate, 0.8, seconds, seed * 7_919), seconds).change_point() {
            fired += 1;
            *by_kind.entry(format!("{rate}/s for {seconds} s: {}", change.series.name())).or_default() += 1;
        }
    }
    println!("{fired} of {runs} steady runs have a change point: {by_kind:?}");
    let most = if IS_FULL { runs * 3 / 100 } else { 8 };
    assert!(fired <= most, "{fired} of {runs}: {by_kind:?}");
}

/// A cache that fills: its hit ratio climbs from 0 to 90 % in the first 10 s.
#[test]
fn replications_of_a_cache_that_fills_have_a_change_point() {
    let climbing: &dyn Fn(f64) -> f64 = &|at| 0.9 * (at / 10.0).clamp(0.0, 1.0);
    for seed in 1..=if IS_FULL { 200 } else { 5 } {
        for seconds in [10.0, 20.0, 30.0] {
            let steadiness = queue(seconds, STEADY, climbing, seed * 7_919);
            let change = *steadiness.change_point().unwrap();
            assert_eq!(change.series, LevelSeries::HitRatio, "{change:?}");
            assert!(change.at_ns <= 12 * S && change.before < change.after, "{change:?}");
        }
    }
}

#[test]
fn replications_of_a_step_have_it_at_its_time() {
    let seconds = 18.0;
    for seed in 1..=if IS_FULL { 200 } else { 5 } {
        let service: &dyn Fn(f64) -> f64 = &|at| if at < 6.0 { 0.5e-3 } else { 0.8e-3 };
        let steadiness = queue(seconds, service, LEVEL, seed * 7_919);
        let change = *steadiness.change_point().unwrap();
        assert_eq!(change.series, LevelSeries::Median, "{change:?}");
        assert!((change.at_ns as f64 / 1e9 - 6.0).abs() < 1.3, "{change:?}");
        assert!(change.after / change.before > 1.5, "{change:?}");
    }
}

/// Slow from 6 to 14 s of 30 s, because a server was down; without that span the window is level.
#[test]
fn what_outages_do_is_no_change_of_state() {
    let service: &dyn Fn(f64) -> f64 = &|at| if (0.0..14.0).contains(&at) { 1.7e-3 } else { 1e-3 };
    let requests = Queue { rate: 500.0, service, hit_ratio: LEVEL }.requests(42.0, 7);
    let without = |seconds: u64| {
        let outage = MEASURE_NS..MEASURE_NS + seconds * S;
        found_without(OPEN, &requests, 42.0, std::slice::from_ref(&outage))
    };
    let with = found(&requests, 42.0);
    assert!(with.change_point().is_some_and(|change| change.at_ns.abs_diff(14 * S) < 2 * S), "{with:?}");
    let level = without(14);
    assert_eq!(level.change_point(), None, "{level:?}");
    assert!(matches!(&level, Steadiness::Judged(judged) if judged.len() == 2));
    // Fewer than 20 batches are left.
    assert!(matches!(without(15), Steadiness::Unjudged(_)));
}

#[test]
fn loads_that_the_plan_changes_are_not_judged() {
    let requests = markovian(1_000.0, 0.5, 3.0, 1);
    for (toml, seconds, expected) in [
        (OPEN, 3.0, None),
        (OPEN, 1.9, Some("too few parts of the window hold requests: it takes 20 of 100 ms or more")),
        (
            "rate-profile = '0s=1k,8s=1k'\nmix = 'get'\nthreads = 1",
            3.0,
            Some("the offered load changes by plan (rate-profile)"),
        ),
        (
            "arrival = 'mmpp:4,100ms,0.1'\nrate = 1000\nmix = 'get'\nthreads = 1",
            3.0,
            Some("the offered load changes by plan (arrival mmpp)"),
        ),
        (
            "connect-rate = 10\nmix = 'get'\nthreads = 1",
            3.0,
            Some("the number of connections changes by plan"),
        ),
    ] {
        let reason = match found_without(toml, &requests, seconds, &[]) {
            Steadiness::Unjudged(reason) => Some(reason),
            Steadiness::Judged(_) => None,
        };
        assert_eq!(reason, expected, "{toml} {seconds}");
    }
}

#[test]
fn the_likeliest_position_is_that_of_the_ranks() {
    // Values → values before it, and p: 2 of the C(n, k) divisions are as far apart, times n − 1 positions.
    let rising: Vec<f64> = (0..20).map(f64::from).collect();
    let step = |before: usize, count: usize| {
        (0..count).map(|index| if index < before { 1.0 } else { 2.0 }).collect::<Vec<f64>>()
    };
    let table = [
        (rising, 10, 2.0 / 184_756.0 * 19.0),
        (step(5, 10), 5, 2.0 / 252.0 * 9.0),
        (step(10, 30), 10, 2.0 / 30_045_015.0 * 29.0),
        (vec![1.0; 20], 1, 1.0),
    ];
    for (values, before, p) in table {
        let (found, probability) = likeliest(&values);
        // Of equal values several positions are the likeliest.
        assert!(found == before || p == 1.0, "{found} of {values:?}");
        assert!((probability / p - 1.0).abs() < 1e-6, "{probability} is not {p}: {values:?}");
    }
}

/// Levels and p → is it found?
#[test]
fn a_change_is_large_and_significant() {
    let table = [
        (100.0, 111.0, 0.009, true),
        (111.0, 100.0, 0.009, true),
        (100.0, 110.0, 0.000_1, false),
        (100.0, 200.0, 0.01, false),
        (0.0, 0.1, 0.001, true),
        (0.0, 0.0, 0.001, false),
    ];
    for (before, after, p, expected) in table {
        let change = ChangePoint { series: LevelSeries::Median, at_ns: 0, before, after, p };
        assert_eq!(change.is_found(), expected, "{change:?}");
    }
}
