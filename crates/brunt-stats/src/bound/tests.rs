//! Bounds of each quantity, by hand.
//!
//! Not how often they hold the truth (`replications.rs` measures that over simulated runs).

use super::*;
use crate::confidence::PercentileInterval;
use crate::measured_window::MeasuredWindow;
use crate::request_counts::OpCounts;
use crate::stack_delay::StackDelay;
use crate::store::RowTotals;
use brunt_plan::objective::Objective;
use brunt_plan::outcome::OutcomeClass;
use std::sync::Arc;

const S: u64 = 1_000_000_000;

/// 10 000 completed requests of 1 to 10 000 us in a second, each of which the client may have held for a quarter; the rank of every
/// percentile is known to half a per cent.
fn row() -> OpSummary {
    row_with(StackDelay::default())
}

/// Such requests, of whose client the clock readings leave so much out.
fn row_with(stack_delay: StackDelay) -> OpSummary {
    let mut totals = RowTotals::default();
    for us in 1..=10_000 {
        totals.latencies.response.record(us * 1_000);
        totals.latencies.service.record(us * 900);
        totals.latencies.without_client.record(us * 800);
        totals.latencies.least.record(us * 750);
    }
    let mut counts = OpCounts::default();
    (counts.requests.scheduled, counts.requests.sent) = (10_000, 10_000);
    counts.requests.outcomes[OutcomeClass::Hit as usize] = 10_000;
    counts.in_window.outcomes[OutcomeClass::Hit as usize] = 10_000;
    let window = MeasuredWindow { end_ns: S, ..MeasuredWindow::default() };
    let mut row = OpSummary::of(counts, totals, &window, &[], &Quantile::PRINTED, 0.0, stack_delay);
    row.intervals = Quantile::PRINTED.map(PercentileInterval::example).into();
    row
}

/// Ends of buckets are within a thousandth.
fn check(bounds: Bounds, [low, high]: [f64; 2]) {
    let is_near = |found: f64, expected: f64| match expected.is_finite() {
        true => (found - expected).abs() <= expected / 900.0,
        false => found == expected,
    };
    assert!(is_near(bounds.low, low) && is_near(bounds.high, high), "{bounds:?}, expected [{low}..{high}]");
}

fn failed(mut row: OpSummary, count: u64, after_ns: u64) -> OpSummary {
    row.requests.outcomes[OutcomeClass::Timeout as usize] = count;
    row.requests.scheduled += count;
    row.requests.sent += count;
    let mut least = Histogram::clone(&row.latency.least.histogram);
    (0..count).for_each(|_| least.record(after_ns));
    row.latency.least.summary = LatencySummary::of(&least);
    row.latency.least.histogram = Arc::new(least);
    row
}

const INFINITE: f64 = f64::INFINITY;

#[test]
fn questions_are_decided_where_both_bounds_agree() {
    let table = [
        ("p99 < 1ms", [0.8e6, 0.9e6], Decision::Holds),
        ("p99 < 1ms", [0.8e6, 1e6], Decision::Undecided),
        ("p99 <= 1ms", [0.8e6, 1e6], Decision::Holds),
        ("p99 < 1ms", [1e6, 1.1e6], Decision::Fails),
        ("p99 <= 1ms", [1e6, 1.1e6], Decision::Undecided),
        ("p99 < 1ms", [0.0, INFINITE], Decision::Undecided),
        ("p99 > 1ms", [1.1e6, INFINITE], Decision::Holds),
        ("p99 > 1ms", [0.1e6, 0.9e6], Decision::Fails),
        ("rate >= 1k", [1_000.0, 1_200.0], Decision::Holds),
        ("rate >= 1k", [999.0, 1_200.0], Decision::Undecided),
    ];
    for (objective, [low, high], expected) in table {
        let objective: Objective = objective.parse().unwrap();
        assert_eq!(decide(Bounds { low, high }, |value| objective.is_met_by(value)), expected, "{objective}");
    }
}

#[test]
fn bounds_of_response_time_percentiles() {
    let client = Client::default();
    let of = |client: &Client, row: &OpSummary, name: &str| client.percentile(row, name.parse().unwrap());
    // The rank half a per cent higher, of the response times; half a per cent lower, of the least ones.
    check(of(&client, &row(), "p50"), [0.495 * 7.5e6, 0.505 * 10e6]);
    check(of(&client, &row(), "p99"), [0.985 * 7.5e6, 0.995 * 10e6]);
    // The largest value serves as an upper end that no value exceeds.
    check(of(&client, &row(), "p99.9"), [0.994 * 7.5e6, 10e6]);
    // Too few requests for it.
    check(of(&client, &row(), "p99.99"), [0.0, INFINITE]);
    // What timestamps say of the client beside its clock readings makes the least of it smaller, and the client error larger.
    let times = |ns: u64| {
        let mut histogram = Histogram::new();
        (0..100).for_each(|_| histogram.record(ns));
        histogram
    };
    let delayed = row_with(StackDelay::of(times(240_000), times(200_000)));
    check(of(&client, &delayed, "p50"), [0.495 * 7.5e6 - 4.1e4, 0.505 * 10e6]);
    let added =
        delayed.client_error_ns(Quantile::P50).unwrap() - row().client_error_ns(Quantile::P50).unwrap();
    assert!((40_000..=42_000).contains(&added), "{added}");
    // What other hosts did makes the least of it smaller.
    let mut late = row();
    late.latency.send_lag.summary.max_ns = Some(700_000);
    check(of(&Client { has_others: true, ..client }, &late, "p50"), [0.495 * 7.5e6 - 7e5, 0.505 * 10e6]);
    // Where there is no interval, so it does, and nothing is known of the lower end.
    let mut short = row();
    short.intervals.clear();
    check(of(&client, &short, "p50"), [0.0, 10e6]);
}

#[test]
fn unanswered_requests_lie_above_every_bound() {
    let client = Client::default();
    let of = |row: &OpSummary, name: &str| client.percentile(row, name.parse().unwrap());
    // A hundred that were given up after a second: 10 100 in all, of which those below p99 + 0.5 % were all answered but 49.
    let late = failed(row(), 100, S);
    check(of(&late, "p90"), [0.895 * 10_100.0 * 750.0, 0.905 * 10_100.0 * 1_000.0]);
    check(of(&late, "p99"), [0.985 * 10_100.0 * 750.0, INFINITE]);
    // Nothing but that is above the upper end of this one.
    check(of(&failed(row(), 1, S), "p99.9"), [0.994 * 7.5e6, INFINITE]);
    check(of(&late, "p99.9"), [S as f64, INFINITE]);
    // Requests that were refused at once may have been fast: the lower bound takes them so.
    let refused = failed(row(), 100, 1_000);
    check(of(&refused, "p99"), [(0.985 * 10_100.0 - 100.0) * 750.0, INFINITE]);
    // What was never sent, or is still out, has no time at all.
    for change in
        [|row: &mut OpSummary| row.requests.unsent = 100, |row: &mut OpSummary| row.requests.in_flight = 100]
    {
        let mut row = row();
        change(&mut row);
        check(of(&row, "p99"), [0.985 * 7.5e6, INFINITE]);
        check(of(&row, "p90"), [0.895 * 7.5e6, 0.905 * 10_100.0 * 1_000.0]);
    }
}

/// How long a reply lay unread while the client stood still is not always seen: its longest stop is taken off, and nothing is left of a client
/// that was kept from its processor.
#[test]
fn client_stops_widen_bounds_in_a_closed_loop() {
    for (stop_ns, taken_ns) in [(0, 0.0), (1_000_000, 1e6), (u64::MAX, f64::INFINITY)] {
        let client = Client { stop_ns, ..Client::default() };
        let less = |ns: f64| (ns - taken_ns).max(0.0);
        check(client.percentile(&row(), Quantile::P50), [less(0.495 * 7.5e6), 0.505 * 10e6]);
    }
}

/// The load is the client's own where it held the slots for more than a twentieth of their time.
#[test]
fn latencies_are_unknown_in_a_closed_loop_slowed_by_the_client() {
    let client = Client::default();
    for (lag_fraction, expected) in [(0.05, [0.495 * 7.5e6, 0.505 * 10e6]), (0.051, [0.0, INFINITE])] {
        let row = OpSummary { lag_fraction, ..row() };
        check(client.percentile(&row, Quantile::P50), expected);
    }
}
