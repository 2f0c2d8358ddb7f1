//! Waiting where a sleep takes time to wake: what is printed is near what happened, and polling stays within its bounds.

use super::*;
use brunt_plan::objective::Statistic;
use brunt_plan::quantile::Quantile;
use brunt_stats::histogram::Histogram;
use brunt_stats::stack_delay::StackDelay;

/// A sleep ends this much later than what ends it.
const WAKE_NS: u64 = 40 * US;
/// There and back, at a fast server and at a slow one.
const NEAR_NS: u64 = 26 * US;
const FAR_NS: u64 = 1_000 * US;

/// Runs a load of two seconds, and a second and a half before. Returns it with the fraction of the time that the client did not sleep.
fn run(options: &str, load: &str, wire_ns: u64, service: Service) -> (Outcome, f64) {
    let plan = resolved(&format!(
        "{load}\n{options}\ntime = '2s'\nwarmup = '1500ms'\nkeys = 100\npreload = false\nthreads = 1\nseed = 1\n\
         samples-max = 1000000"
    ));
    let options = SimOptions {
        look_cost_ns: 500,
        wake_ns: WAKE_NS,
        ..SimOptions::of(CoreOptions { service, ..CoreOptions::default() }).latency(wire_ns / 2)
    };
    let outcome = simulate_within(plan, options, VIRTUAL_NS_MAX);
    let ran_ns = outcome.end.data.times.drained_ns - EPOCH_NS;
    let awake = 1.0 - outcome.slept_ns as f64 / ran_ns as f64;
    (outcome, awake)
}

/// Loads and servers; how long the client is awake at most, of the time.
#[test]
fn hybrid_waits_show_the_time_of_the_server() {
    let table = [
        ("rate = 1000\nconnections = 16", NEAR_NS, 0.12),
        ("rate = 5000\nconnections = 16", NEAR_NS, 0.50),
        ("rate = 20000\nconnections = 16", NEAR_NS, 1.0),
        ("rate = 500\nconnections = 16", FAR_NS, 0.10),
        // Several are in flight at a time.
        ("rate = 3000\nconnections = 16", FAR_NS, 0.50),
        ("connections = 1", NEAR_NS, 1.0),
        ("connections = 1\nthink = '1ms'", NEAR_NS, 0.10),
        ("connections = 1", FAR_NS, 0.15),
    ];
    for (load, wire_ns, awake_max) in table {
        let over_ns =
            |outcome: &Outcome, p| outcome.quantile(p, |sample| sample.times.service_ns()) - wire_ns;
        let (hybrid, awake) = run("wait = 'hybrid'", load, wire_ns, Service::None);
        let (sleep, awake_asleep) = run("wait = 'sleep'", load, wire_ns, Service::None);
        let send_lag_ns = sleep.quantile(0.5, |sample| sample.times.send_lag_ns());
        let (over, asleep_over) = ([0.5, 0.99].map(|p| over_ns(&hybrid, p)), over_ns(&sleep, 0.5));
        // What the client may have held of it includes the wake-up.
        for outcome in [&hybrid, &sleep] {
            let (most, least) = (
                outcome.quantile(0.5, |sample| sample.times.response_ns()),
                outcome.quantile(0.5, |sample| sample.times.response_without_client_ns()),
            );
            assert!((least..=most).contains(&wire_ns), "{load}: {wire_ns} ns in {least}..={most}");
        }
        assert!(over[0] < US && over[1] < US, "{load}: {over:?} ns over");
        // Replies wait for a wake-up, or for that of the next send.
        assert!(asleep_over >= 15 * US, "{load}: {asleep_over} ns over");
        assert!(!load.contains("rate") || send_lag_ns < 10 * US, "{load}: sent {send_lag_ns} ns late");
        assert!(awake_asleep < 0.05, "{load}: awake for {awake_asleep:.3} of the time");
        assert!(awake < awake_max, "{load}: awake for {awake:.3} of the time");
    }
}

/// Where the kernel takes timestamps of a sample, the time on the wire lies within what the client may have held, and that is no more than a
/// wake-up.
#[test]
fn timestamps_show_wake_ups() {
    let loads =
        ["rate = 1000\nconnections = 16", "rate = 5000\nconnections = 16", "connections = 1\nthink = '1ms'"];
    for (wait, load) in ["hybrid", "sleep"].into_iter().flat_map(|wait| loads.map(|load| (wait, load))) {
        let options = format!("wait = '{wait}'\ntimestamps = 'kernel'");
        let (outcome, _) = run(&options, load, NEAR_NS, Service::None);
        let meter = |kind| {
            let mut whole = Histogram::new();
            whole.merge_sparse(&outcome.meter(kind).histogram);
            whole
        };
        let delay = StackDelay::of(meter(MeterKind::WithoutClient), meter(MeterKind::WireAndServer));
        assert!(delay.samples() > 300, "{wait}, {load}: {}", delay.samples());
        for (p, quantile) in [(0.5, Quantile::P50), (0.9, Quantile::P90), (0.99, Quantile::P99)] {
            let delay_ns = delay.ns(Statistic::Percentile(quantile));
            let most = outcome.quantile(p, |sample| sample.times.response_ns());
            let least = outcome.quantile(p, |sample| sample.times.response_without_client_ns()) - delay_ns;
            assert!((least..=most).contains(&NEAR_NS), "{wait}, {load}, {p}: {least}..={most}");
            assert!(delay_ns <= WAKE_NS + 2 * US, "{wait}, {load}, {p}: {delay_ns} ns");
        }
    }
}

/// Replies that cannot be predicted are slept for, and what is polled for in vain is an eighth of the time.
#[test]
fn polling_in_vain_is_bounded() {
    let slow = Service::Exponential(MS);
    let table = [
        ("rate = 500\nconnections = 64", slow, 0.02),
        ("rate = 2000\nconnections = 64", Service::Exponential(100 * US), 0.30),
    ];
    for (load, service, awake_max) in table {
        let (_, awake) = run("wait = 'hybrid'", load, NEAR_NS, service);
        assert!(awake < awake_max, "{load}: awake for {awake:.3} of the time");
    }
}

/// A worker that is stopped for 4 ms of every 40, as on a CPU that others need, sleeps as if it had been told to.
#[test]
fn workers_that_lack_a_cpu_sleep() {
    let plan = || {
        resolved(
            "connections = 4\ntime = '2s'\nwarmup = '1500ms'\nkeys = 100\npreload = false\nthreads = 1\nseed = 1",
        )
    };
    let awake = |pause| {
        let options = SimOptions {
            pause,
            pause_every_ns: 40 * MS,
            look_cost_ns: 500,
            wake_ns: WAKE_NS,
            ..SimOptions::default().latency(NEAR_NS / 2)
        };
        let outcome = simulate_within(plan(), options, VIRTUAL_NS_MAX);
        1.0 - outcome.slept_ns as f64 / (outcome.end.data.times.drained_ns - EPOCH_NS) as f64
    };
    let (contended, alone) = (awake(Some((EPOCH_NS + 40 * MS, 4 * MS))), awake(None));
    assert!(contended < 0.15 && alone > 0.6, "awake for {contended:.3} and {alone:.3} of the time");
}
