//! Kernel timestamps in a world whose network and wall clock are known: every span to the nanosecond.

use super::*;
use brunt_stats::worker_counts::StampLoss;

const STAMPED: &str = "timestamps = 'kernel'\n";
/// There and back, and the server's part.
const WIRE_NS: u64 = 2 * 50 * US + 200 * US;
const SEND_NS: u64 = 3 * US;

fn options() -> SimOptions {
    SimOptions { send_cost_ns: SEND_NS, ..SimOptions::of(serving(200 * US)).latency(50 * US) }
}

/// Sum, smallest and largest of the three spans.
fn spans(outcome: &Outcome) -> [(u128, u64, u64); 3] {
    MeterKind::SPANS.map(|kind| {
        let moments = outcome.meter(kind).histogram.moments();
        (moments.sum, moments.min, moments.max)
    })
}

/// A hundred requests a second, so that every one is stamped. In the second world the client stands still for 300 ms:
/// what came in meanwhile lay in the kernel, and what was to go out was late before it was sent.
#[test]
fn spans_are_exact_and_a_client_that_stands_still_shows_in_its_own() {
    // A reply that takes longer than the next request: one is under way whenever the client stops.
    for (pause_ns, latency_ns) in [(None, 50 * US), (Some(3 * SECOND + 12 * MS), 4_950 * US)] {
        let pause = pause_ns.map(|at_ns| (at_ns, 300 * MS));
        let outcome = simulate(
            &format!("rate = 100\narrival = 'uniform'\ntime = '5s'\nconnections = 40\n{STAMPED}"),
            SimOptions { pause, latency_ns, ..options() },
        );
        let (wire_ns, mut in_ns, mut next_ns) = (2 * latency_ns + 200 * US, Vec::new(), 0);
        for sample in &outcome.samples {
            let before_ns = sample.times.sent_ns - SEND_NS;
            // Of those that were late and left together only the first is stamped.
            if before_ns >= next_ns {
                next_ns = before_ns + 5 * MS;
                // What is left of the time since it was sent when the network and the server have had theirs.
                in_ns.push(sample.times.service_ns() - wire_ns);
            }
        }
        let (counts, stamped) = (outcome.end.data.counts.stamps, in_ns.len() as u64);
        assert_eq!((counts.requested, counts.matched), (stamped, stamped), "{counts:?}");
        assert_eq!(stamped == 500, pause.is_none(), "{counts:?}");
        let (sum, longest) = (in_ns.iter().map(|ns| u128::from(*ns)).sum(), *in_ns.iter().max().unwrap());
        let whole = |ns: u64| (u128::from(stamped * ns), ns, ns);
        assert_eq!(spans(&outcome), [whole(SEND_NS), whole(wire_ns), (sum, 0, longest)]);
        assert_eq!(longest > 280 * MS, pause.is_some(), "{longest}");
    }
}

/// At any rate it is one every 5 ms, and what is asked of the kernel changes no other number.
#[test]
fn timestamps_change_no_request() {
    let toml = "connections = 8\nrequests = 100000\n";
    let fast = || SimOptions::default().latency(10 * US);
    let with = simulate(&format!("{toml}timestamps = 'kernel'"), fast());
    let without = simulate(toml, fast());
    // 100 000 requests of 20 us, eight at a time.
    assert_eq!(with.end.data.counts.stamps.requested, 250_000u64.div_ceil(5_000));
    assert_eq!(with.end.data.counts.stamps.matched, with.end.data.counts.stamps.requested);
    assert_eq!(without.end.data.counts.stamps.requested, 0);
    assert_eq!(with.samples, without.samples);
    assert_eq!(with.sent, without.sent);
    assert!(MeterKind::OF_TIMESTAMPS.iter().all(|kind| without.meters.iter().all(|m| m.kind != *kind)));
}

/// At 1 000 a second it is one every 5 ms.
#[test]
fn at_low_rates_there_is_one_every_5_ms() {
    let outcome = simulate(
        &format!("rate = 1000\narrival = 'uniform'\ntime = '10s'\nconnections = 4\n{STAMPED}"),
        options(),
    );
    assert_eq!(
        (outcome.end.data.counts.stamps.requested, outcome.end.data.counts.stamps.matched),
        (2_000, 2_000)
    );
}

/// With several requests on a connection only those are stamped that find it empty; their spans are right all the same.
#[test]
fn pipelines_are_stamped_where_they_are_empty() {
    let outcome = simulate(
        &format!("rate = 20000\ntime = '2s'\nconnections = 2\ndepth = 16\n{STAMPED}"),
        SimOptions { server: CoreOptions::default(), ..options() },
    );
    let counts = outcome.end.data.counts.stamps;
    assert!(counts.matched > 50 && counts.requested < 401, "{counts:?}");
    let [(_, out_min, out_max), (_, wire_min, wire_max), (_, in_min, _)] = spans(&outcome);
    assert_eq!((out_min, out_max, wire_min, wire_max, in_min), (SEND_NS, SEND_NS, 100 * US, 100 * US, 0));
}

/// The wall clock is set forward by a second: the requests around that instant are thrown away, and no other is harmed.
#[test]
fn a_wall_clock_that_is_set_costs_a_window() {
    let outcome = simulate(
        &format!("rate = 100\narrival = 'uniform'\ntime = '5s'\nconnections = 40\n{STAMPED}"),
        SimOptions { wall_step: Some((EPOCH_NS + 2 * SECOND, SECOND)), ..options() },
    );
    let counts = outcome.end.data.counts.stamps;
    let lost = counts.discarded(StampLoss::ClockStep);
    // A window is read every 100 ms, or up to 20 ms later.
    assert!((9..=13).contains(&lost), "{counts:?}");
    assert_eq!((counts.requested, counts.matched), (500, 500 - lost));
    let [(_, _, out_max), (_, wire_min, wire_max), (_, _, in_max)] = spans(&outcome);
    assert_eq!((out_max, wire_min, wire_max, in_max), (SEND_NS, WIRE_NS, WIRE_NS, 0));
}

/// Connections that are reset take their stamps with them.
#[test]
fn requests_without_a_reply_yield_no_spans() {
    let faults = Faults { reset_every: brunt_server::Every::new(10), ..Faults::default() };
    let outcome = simulate(
        &format!("rate = 100\narrival = 'uniform'\ntime = '5s'\nconnections = 4\npreload = false\n{STAMPED}"),
        SimOptions { server: CoreOptions { faults, ..options().server }, ..options() },
    );
    let (counts, lost) = (outcome.end.data.counts.stamps, outcome.count(OutcomeClass::Lost));
    assert_eq!((counts.requested, counts.discarded(StampLoss::Unanswered)), (500, lost));
    assert_eq!(lost, 50);
}
