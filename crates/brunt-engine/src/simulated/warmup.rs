//! Warm-ups that end when they are level: the window begins ahead of its first operation, everywhere at once, and trouble
//! before it is not waited out. Before that, requests one at a time: the service time without load.

use crate::simulated::*;
use brunt_plan::plan::Plan;
use brunt_plan::warmup::Warmup;

/// Half a gap between requests.
const HALF_NS: u64 = 250 * US;

fn world(server: CoreOptions) -> SimOptions {
    SimOptions::of(CoreOptions { script_after: 200, ..server }).latency(20 * US)
}

/// 2 000 requests/s, every 500 us, of which the server takes 100 us each.
fn open_loop(stop: &str, server: CoreOptions) -> Outcome {
    let server = CoreOptions { service: Service::Fixed(100 * US), ..server };
    simulate(
        &format!(
            "rate = 2000\narrival = 'uniform'\nconnections = 8\ndepth = 64\n{stop}\nwarmup = 'auto'\nkeys = 200\nmix = 'get'"
        ),
        world(server),
    )
}

/// When the window began, from the start of the schedule.
fn warmup_ns(outcome: &Outcome) -> u64 {
    outcome.end.data.times.measure_ns - outcome.start_ns()
}

/// Every operation is on its side of the beginning, and none is missing.
fn check_sides(outcome: &Outcome, gap_ns: u64) {
    let window = outcome.end.data.times;
    let scheduled = |phase| outcome.op_counts(phase).requests.scheduled;
    assert_eq!(scheduled(Phase::Warmup), (window.measure_ns - window.start_ns).div_ceil(gap_ns));
    assert_eq!(outcome.samples[0].times.intended_ns, window.measure_ns);
    let mut intended = outcome.samples.iter().map(|sample| sample.times.intended_ns);
    assert!(intended.all(|at_ns| (window.measure_ns..window.end_ns).contains(&at_ns)));
}

#[test]
fn a_server_that_is_warm_is_measured_after_a_second() {
    for stop in ["time = '2s'", "requests = 4000"] {
        let outcome = open_loop(stop, CoreOptions::default());
        check_sides(&outcome, 500 * US);
        assert_eq!((outcome.warmup_end, warmup_ns(&outcome)), (Some(WarmupEnd::Level), 1_100 * MS), "{stop}");
        let window = outcome.end.data.times;
        assert_eq!(outcome.samples.len(), 4_000, "{stop}");
        if stop.starts_with("time") {
            assert_eq!(window.end_ns - window.measure_ns, 2 * SECOND);
        }
        // Both ways of counting what is in the system cover the same window.
        let presence = outcome.end.data.counts.occupancy;
        assert!(presence.integral.abs_diff(presence.sum) <= presence.sum / 1_000, "{presence:?}");
    }
}

#[test]
fn a_closed_loop_begins_its_window_likewise() {
    for stop in ["time = '1s'", "requests = 3000"] {
        let server = serving(100 * US);
        let outcome = simulate(
            &format!("connections = 4\ndepth = 2\n{stop}\nwarmup = 'auto'\nkeys = 200\nmix = 'get'"),
            world(server),
        );
        assert_eq!((outcome.warmup_end, warmup_ns(&outcome)), (Some(WarmupEnd::Level), 1_100 * MS), "{stop}");
        let window = outcome.end.data.times;
        assert!(outcome.samples.iter().all(|sample| sample.times.intended_ns >= window.measure_ns));
        if stop.starts_with("requests") {
            assert_eq!(outcome.samples.len(), 3_000);
        }
    }
}

/// A cache that is filled by what it is asked for: 20 000 keys, 2 000 of which are asked for in a second.
#[test]
fn a_cache_that_fills_is_waited_for() {
    let outcome = simulate(
        "rate = 4000\nconnections = 8\ndepth = 64\ntime = '2s'\nwarmup = 'auto'\nkeys = 8000\nmix = 'get'\n\
         preload = false\non-miss = 'set'",
        SimOptions::of(serving(20 * US)),
    );
    // The part of keys that were never asked for is exp(-t · 4 000 / 8 000).
    let seconds = warmup_ns(&outcome) as f64 / 1e9;
    assert_eq!(outcome.warmup_end, Some(WarmupEnd::Level));
    assert!((3.0..20.0).contains(&seconds), "{seconds}");
    let op_counts = outcome.measured(OpKind::Get);
    let missed = op_counts.keys.miss as f64 / op_counts.keys.requested as f64;
    assert!(missed < 2.0 * (-seconds / 2.0).exp() + 0.01, "{missed} after {seconds} s");
}

/// What goes wrong in the warm-up begins the window with the next slice but one, and what follows it is measured.
#[test]
fn trouble_in_the_warm_up_is_measured() {
    let gone = |at_ms: u64, for_ms: u64| gone(at_ms * MS + HALF_NS, for_ms * MS);
    let stopped = |at_ms: u64, for_ms: u64| stalled(at_ms * MS + HALF_NS, for_ms * MS);
    // What happens → when the window begins, and how long who comes in it waits at most.
    for (what, server, begins_ms, waits_ms) in [
        ("killed", gone(450, 2_000), 600, 1_850),
        ("killed at once", gone(20, 500), 200, 320),
        ("reset", gone(950, 1), 1_100, 0),
        ("stopped", stopped(450, 2_000), 700, 1_750),
    ] {
        let outcome = open_loop("time = '4s'", server);
        check_sides(&outcome, 500 * US);
        assert_eq!(
            (outcome.warmup_end, warmup_ns(&outcome) / MS),
            (Some(WarmupEnd::Trouble), begins_ms),
            "{what}"
        );
        let max_ms = outcome.quantile(1.0, |sample| sample.times.response_ns()) / MS;
        assert!((waits_ms..=waits_ms + 100).contains(&max_ms), "{what}: {max_ms}");
    }
}

#[test]
fn a_run_may_be_ended_in_its_warm_up() {
    let plan = plan("rate = 2000\nconnections = 2\ntime = '2s'\nwarmup = 'auto'\nmix = 'get'");
    assert_eq!(plan.warmup, Warmup::Auto);
    let outcome =
        simulate_observed(plan, SimOptions::default(), VIRTUAL_NS_MAX, &mut |observed| match observed {
            RunEvent::Tick { now_ns, .. } if now_ns > EPOCH_NS + 500 * MS => RunDecision::Finish,
            _ => RunDecision::Continue,
        });
    assert_eq!((outcome.samples.len(), outcome.requests().scheduled), (0, 0));
}

/// A run that asks for it, of a server that takes this long and is this far away.
fn run(load: &str, service_ns: u64, latency_ns: u64, stalls: Vec<Stall>) -> Outcome {
    let toml = format!("{load}\narrival = 'uniform'\ntime = '200ms'\nkeys = 10\nprotocol = 'memcached-text'");
    let plan = Plan { measures_unloaded: true, ..plan(&toml) };
    let server = CoreOptions { stalls, ..serving(service_ns) };
    simulate_plan(plan, SimOptions::of(server).latency(latency_ns))
}

/// Those of the warm-up that were answered.
fn asked(outcome: &Outcome) -> u64 {
    outcome.op_counts(Phase::Warmup).requests.completed()
}

#[test]
fn requests_are_asked_one_at_a_time_before_the_schedule() {
    // Whatever the load: 40 connections would queue for 40 ms, had they been asked together.
    for load in ["rate = 5000\nconnections = 40", "rate = 100\nconnections = 1", "rate = 2000\nmix = 'set=1'"]
    {
        let outcome = run(load, MS, 100 * US, Vec::new());
        assert_eq!(outcome.end.data.unloaded_service_ns, Some(MS + 200 * US), "{load}");
        assert_eq!(asked(&outcome), 50, "{load}");
        let total = outcome.sum(|_, _| true).requests;
        let server = &outcome.counters[0];
        assert_eq!(total.wire_requests, server.cmd_get + server.cmd_set, "{load}");
    }
}

/// Of a slow server there are as many as fit in 500 ms.
#[test]
fn it_lasts_half_a_second_at_most() {
    let outcome = run("rate = 10\nconnections = 4", 40 * MS, 0, Vec::new());
    assert_eq!(outcome.end.data.unloaded_service_ns, Some(40 * MS));
    assert_eq!(asked(&outcome), 13);
}

/// A server that stands still after the preload has none, and the run goes on.
#[test]
fn a_silent_server_has_none() {
    let stalls = vec![Stall { at_ns: 20 * MS, for_ns: 600 * SECOND }];
    let outcome = run(
        "rate = 1000\nconnections = 2\ntimeout = '100ms'\ndrain = '100ms'\npreload = false\nconnect-timeout = '1s'",
        40 * MS,
        0,
        stalls,
    );
    assert_eq!(outcome.end.data.unloaded_service_ns, None);
    assert!(outcome.requests().scheduled > 0);
}
