//! Assertions decided by hand-made counts, and how often they are right over queues of known distribution.

use super::*;
use crate::bound::Client;
use crate::confidence::PercentileInterval;
use crate::request_counts::OpCounts;
use crate::simulated_run::Random;
use crate::stack_delay::StackDelay;
use crate::store::RowTotals;
use crate::window::RunTimes;
use std::sync::Arc;

const MS: u64 = 1_000_000;
const S: u64 = 1_000 * MS;

/// Requests that took these times, of which the client held each for `part_ns` at the most, in a window of a second.
fn row(times_ns: impl Iterator<Item = u64>, part_ns: u64) -> OpSummary {
    let mut totals = RowTotals::default();
    let mut counts = OpCounts::default();
    for ns in times_ns {
        totals.latencies.response.record(ns);
        totals.latencies.service.record(ns);
        totals.latencies.without_client.record(ns.saturating_sub(part_ns));
        totals.latencies.least.record(ns.saturating_sub(part_ns));
        counts.requests.scheduled += 1;
        counts.requests.sent += 1;
        counts.requests.outcomes[OutcomeClass::Done as usize] += 1;
        counts.in_window.outcomes[OutcomeClass::Done as usize] += 1;
    }
    let window = RunTimes { start_ns: 0, measure_ns: 0, end_ns: S, ..RunTimes::NONE };
    OpSummary::of(counts, totals, &window, &[], &Quantile::PRINTED, 0.0, StackDelay::default())
}

/// 2 000 requests of 1 to 2 000 us.
fn ramp() -> OpSummary {
    row((1..=2_000).map(|us| us * 1_000), 0)
}

fn decided(objective: &str, row: &OpSummary, client: &Client) -> Assertion {
    Assertion::of(objective.parse().unwrap(), Some(row), client, 0, true)
}

/// The requests that reached the bound with and without the client's part, and how many may.
fn counts(assertion: &Assertion) -> [u64; 3] {
    let reached = assertion.reached.unwrap();
    [reached.with_client, reached.without_client, reached.allowed]
}

#[test]
fn the_clients_part_of_a_percentile_is_compared_as_it_is() {
    let requests = |count: u64| row((1..=count).map(|us| 500_000 + us * 1_000), 200_000);
    let few = Some(Reason::Requests { more: 900, ns: None });
    let table = [
        (2_000, "client.p99 <= 250us", Decision::Holds, None),
        (2_000, "client.p99 <= 150us", Decision::Fails, None),
        (2_000, "client.p99 > 150us", Decision::Holds, None),
        (100, "client.p99 <= 250us", Decision::Undecided, few),
        (0, "client.p99 <= 250us", Decision::Undecided, Some(Reason::NoRequests)),
    ];
    // What is due and not answered is no part of it.
    let mut unsent = requests(100);
    (unsent.requests.scheduled, unsent.requests.unsent) = (1_000, 900);
    assert_eq!(decided("client.p99 <= 250us", &unsent, &Client::default()).reason, few);
    for (count, text, expected, reason) in table {
        let Assertion { decision, reached, reason: found, .. } =
            decided(text, &requests(count), &Client::default());
        assert_eq!((decision, reached, found), (expected, None, reason), "{count}: {text}");
    }
}

#[test]
fn requests_that_reach_the_bound_decide() {
    use Decision::{Fails, Holds, Undecided};
    // Buckets are a thousandth wide: the bound of 1.98 ms lies in one of the ramp's.
    let table = [
        ("p99 < 2.5ms", [0, 0, 20], Holds),
        ("p99 < 1.99ms", [11, 11, 20], Holds),
        ("p99 < 1.9ms", [101, 101, 20], Fails),
        ("p99 > 1.9ms", [100, 100, 20], Holds),
        ("p99 > 1.99ms", [10, 10, 20], Fails),
        ("p50 < 1ns", [2_000, 2_000, 1_000], Fails),
        // Three may and none does.
        ("p99.9 < 2.5ms", [0, 0, 2], Undecided),
        ("p99.8 < 2.5ms", [0, 0, 4], Holds),
        ("p99.8 < 1.999ms", [2, 2, 4], Undecided),
        ("p99.8 < 1.9ms", [101, 101, 4], Fails),
        ("max < 2.5ms", [0, 0, 0], Holds),
        ("max <= 2ms", [0, 0, 0], Holds),
        ("max < 2ms", [1, 1, 0], Fails),
        ("max > 1ms", [1_000, 1_000, 0], Holds),
    ];
    for (objective, expected, decision) in table {
        let found = decided(objective, &ramp(), &Client::default());
        assert_eq!(found.decision, decision, "{objective}: {found:?}");
        let near =
            counts(&found).into_iter().zip(expected).all(|(found, expected)| found.abs_diff(expected) <= 2);
        assert!(near, "{objective}: {:?}, expected {expected:?}", counts(&found));
    }
}

#[test]
fn rates_and_shares_are_compared_exactly() {
    let mut row = ramp();
    (row.keys.requested, row.keys.hit) = (3, 2);
    row.requests.scheduled += 1;
    row.requests.unsent = 1;
    let table = [
        ("rate >= 2k", Decision::Holds),
        ("rate > 2k", Decision::Fails),
        ("hit > 66%", Decision::Holds),
        ("hit >= 67%", Decision::Fails),
        ("errors <= 0", Decision::Holds),
        ("unsent <= 0", Decision::Fails),
        ("mean < 1.1ms", Decision::Holds),
        ("mean < 1ms", Decision::Fails),
    ];
    for (objective, expected) in table {
        assert_eq!(decided(objective, &row, &Client::default()).decision, expected, "{objective}");
    }
    // No key was asked for.
    (row.keys.requested, row.keys.hit) = (0, 0);
    let found = decided("hit > 0", &row, &Client::default());
    assert_eq!((found.decision, found.reason), (Decision::Undecided, Some(Reason::NoRequests)));
}

/// Each request counts once, and one that the client had no time to send only as measured.
#[test]
fn requests_without_an_answer_count_on_the_careful_side() {
    let failed = |count: u64, after_ns: u64| {
        let mut row = ramp();
        row.requests.scheduled += count;
        row.requests.sent += count;
        row.requests.outcomes[OutcomeClass::Timeout as usize] += count;
        let add = |distribution: &mut crate::op_summary::Distribution| {
            let mut histogram = Histogram::clone(&distribution.histogram);
            (0..count).for_each(|_| histogram.record(after_ns));
            distribution.histogram = Arc::new(histogram);
        };
        add(&mut row.latency.failed);
        add(&mut row.latency.least);
        row
    };
    let of = |row: &OpSummary, drain_ns: u64| {
        let objective = "p99 < 100ms".parse().unwrap();
        Assertion::of(objective, Some(row), &Client::default(), drain_ns, true)
    };
    let found = of(&failed(50, S), 0);
    assert_eq!((counts(&found), found.decision), ([50, 50, 20], Decision::Fails));
    // Those that were refused at once fail as well.
    let found = of(&failed(50, 1_000), 0);
    assert_eq!((counts(&found), found.decision), ([50, 50, 20], Decision::Fails));
    let mut row = ramp();
    (row.requests.scheduled, row.requests.unsent) = (2_050, 50);
    // They waited for a connection.
    assert_eq!((counts(&of(&row, 0)), of(&row, 0).decision), ([50, 50, 20], Decision::Fails));
    row.requests.unsent_client = 50;
    let found = of(&row, 0);
    assert_eq!((counts(&found), found.decision), ([50, 0, 20], Decision::Undecided));
    assert_eq!(found.reason, Some(Reason::Client { part_ns: 0, unsent: 50 }));
    (row.requests.abandoned, row.requests.unsent_client) = (50, 0);
    assert_eq!((counts(&of(&row, 0)), of(&row, 0).decision), ([50, 50, 20], Decision::Fails));
    // A request without a reply is as old as the drain was long.
    let mut row = ramp();
    (row.requests.scheduled, row.requests.sent, row.requests.in_flight) = (2_050, 2_050, 50);
    assert_eq!((counts(&of(&row, 99 * MS)), of(&row, 99 * MS).decision), ([50, 0, 20], Decision::Undecided));
    assert_eq!((counts(&of(&row, 100 * MS)), of(&row, 100 * MS).decision), ([50, 50, 20], Decision::Fails));
    // Requests that ask for no reply are none of them.
    let mut row = ramp();
    (row.requests.scheduled, row.requests.sent) = (5_000, 5_000);
    row.requests.outcomes[OutcomeClass::Unacknowledged as usize] = 3_000;
    assert_eq!(counts(&of(&row, 0)), [0, 0, 20]);
}

#[test]
fn the_clients_part_decides_nothing() {
    let held = row((1..=2_000).map(|us| us * 1_000), 500_000);
    let none = Client::default();
    let found = decided("p99 < 1.9ms", &held, &none);
    assert_eq!(found.decision, Decision::Undecided);
    let Some(Reason::Client { part_ns, unsent: 0 }) = found.reason else { panic!("{found:?}") };
    assert!(part_ns.abs_diff(500_000) < 4_000, "{part_ns}");
    assert_eq!(decided("p99 < 1.4ms", &held, &none).decision, Decision::Fails);
    assert_eq!(decided("mean < 900us", &held, &none).decision, Decision::Undecided);
    assert_eq!(decided("mean < 400us", &held, &none).decision, Decision::Fails);
    // The longest stop of a closed loop, and what agents' clients may have done to each other.
    let stopped = Client { stop_ns: MS, ..none };
    assert_eq!(decided("p99 < 1.4ms", &ramp(), &stopped).decision, Decision::Undecided);
    assert_eq!(decided("p99 < 0.9ms", &ramp(), &stopped).decision, Decision::Fails);
    let unknown = Client { stop_ns: u64::MAX, ..none };
    assert_eq!(decided("p99 < 1us", &ramp(), &unknown).decision, Decision::Undecided);
    assert_eq!(decided("p99 < 2.5ms", &ramp(), &unknown).decision, Decision::Holds);
}

#[test]
fn undecided_assertions_say_what_is_missing() {
    let short = row((1..=150).map(|us| us * 1_000), 0);
    let missing = Reason::Requests { more: 850, ns: Some((850.0 / 150.0 * 1e9) as u64) };
    assert_eq!(decided("p99 < 149us", &short, &Client::default()).reason, Some(missing));
    // None took as long: three that may are enough.
    let missing = Reason::Requests { more: 150, ns: Some(S) };
    assert_eq!(decided("p99 < 1ms", &short, &Client::default()).reason, Some(missing));
    assert_eq!(decided("p99 < 1ms", &ramp(), &Client::default()).reason, None);
    // Requests were due, and none completed.
    let mut lost = row(std::iter::empty(), 0);
    (lost.requests.scheduled, lost.requests.unsent) = (5, 5);
    let missing = Reason::Requests { more: 1, ns: None };
    assert_eq!(decided("mean < 1ms", &lost, &Client::default()).reason, Some(missing));
    let none = Assertion::of("get.p99 < 1ms".parse().unwrap(), None, &Client::default(), 0, true);
    assert_eq!((none.decision, none.reason), (Decision::Undecided, Some(Reason::NoRequests)));
}

#[test]
fn another_run_is_a_note() {
    let mut row = ramp();
    let interval = |low_ns, high_ns| PercentileInterval {
        low_ns,
        high_ns,
        ..PercentileInterval::example(Quantile::P99)
    };
    let table = [
        ("p99 < 2ms", interval(MS, Some(1_900_000)), Decision::Holds, None),
        ("p99 < 2ms", interval(MS, Some(2_100_000)), Decision::Holds, Some(2_100_000)),
        ("p99 < 2ms", interval(MS, None), Decision::Holds, None),
        ("p99 < 1.5ms", interval(1_400_000, None), Decision::Fails, Some(1_400_000)),
        ("p99 > 1.5ms", interval(1_400_000, None), Decision::Holds, Some(1_400_000)),
        ("p99 > 2.5ms", interval(MS, Some(2_600_000)), Decision::Fails, Some(2_600_000)),
    ];
    for (objective, interval, decision, expected) in table {
        row.intervals = vec![interval];
        let found = decided(objective, &row, &Client::default());
        assert_eq!((found.decision, found.another_run_ns), (decision, expected), "{objective}");
    }
}

/// Response times of an M/M/1 queue in service times of 100 us, from a queue that has forgotten how it began (Lindley).
fn queue(random: &mut Random, load: f64, requests: usize) -> OpSummary {
    let mut wait = 0.0_f64;
    let mut next = || {
        let response = wait + random.exponential(1.0);
        wait = (response - random.exponential(1.0 / load)).max(0.0);
        (response * 100_000.0) as u64
    };
    (0..2_000).for_each(|_| _ = next());
    row((0..requests).map(|_| next()), 0)
}

/// How often an assertion about the p99 of 20 000 requests comes out as the truth is, in per cent.
#[test]
fn assertions_about_queues_are_right() {
    const RUNS: u32 = 500;
    let mut random = Random(1);
    for (load, floors) in [(0.5, [97.0, 99.0, 99.0]), (0.8, [80.0, 90.0, 94.0])] {
        let truth_ns = 100f64.ln() / (1.0 - load) * 100_000.0;
        let bounds = [truth_ns / 0.9, truth_ns / 0.8, truth_ns / 1.23];
        let mut right = [0; 3];
        for _ in 0..RUNS {
            let row = queue(&mut random, load, 20_000);
            for ((bound_ns, right), expected) in
                bounds.into_iter().zip(&mut right).zip([Decision::Holds, Decision::Holds, Decision::Fails])
            {
                let objective = format!("p99 < {}ns", bound_ns as u64);
                *right += u32::from(decided(&objective, &row, &Client::default()).decision == expected);
            }
        }
        let shares = right.map(|count| f64::from(count) * 100.0 / f64::from(RUNS));
        println!("load {load}: holds 10 % and 20 % inside, fails 23 % outside: {shares:?} %");
        assert!(shares.iter().zip(floors).all(|(share, floor)| *share >= floor), "load {load}: {shares:?} %");
    }
}

/// Counts are added over runs; where more than a third of the runs say the opposite, nothing is decided.
#[test]
fn several_runs_are_counted_together() {
    use Decision::{Fails, Holds, Undecided};
    // Of 2 000 requests of each run so many reach 10 ms; 20 may.
    let run = |slow: u64, objective: &str| {
        let times_ns = (0..2_000).map(|place| if place < slow { 20 * MS } else { MS });
        decided(objective, &row(times_ns, 0), &Client::default())
    };
    let table: [(&str, &[u64], Decision, Option<Reason>); 8] = [
        ("p99 < 10ms", &[10, 15], Holds, None),
        ("p99 < 10ms", &[0, 0, 25], Holds, None),
        // One of three is a third, one of two is more.
        ("p99 < 10ms", &[10, 0, 100], Undecided, Some(Reason::Runs { opposite: 2, of: 3 })),
        ("p99 < 10ms", &[0, 25], Undecided, Some(Reason::Runs { opposite: 1, of: 2 })),
        ("p99 < 10ms", &[21, 19, 30], Fails, None),
        // Two requests of each run may reach it: together enough to decide.
        ("p99.9 < 10ms", &[1; 5], Holds, None),
        ("p99.9 < 10ms", &[1; 2], Undecided, Some(Reason::Requests { more: 6_000, ns: None })),
        ("mean < 2ms", &[0, 0, 2_000], Holds, None),
    ];
    for (objective, slow, expected, reason) in table {
        let runs: Vec<Assertion> = slow.iter().map(|slow| run(*slow, objective)).collect();
        let found = Assertion::of_runs(&runs).unwrap();
        assert_eq!((found.decision, found.reason), (expected, reason), "{objective} {slow:?}: {found:?}");
        let together = counts_sum(&runs);
        assert_eq!(found.reached.map(|reached| reached.requests), together, "{objective} {slow:?}");
    }
    assert_eq!(Assertion::of_runs(&[]), None);
}

fn counts_sum(runs: &[Assertion]) -> Option<u64> {
    runs.iter().map(|run| run.reached.map(|reached| reached.requests)).sum()
}
