//! The service time without load: requests one at a time, before the schedule.

use super::*;
use brunt_plan::plan::Plan;

/// A run that asks for it, of a server that takes this long and is this far away.
fn run(load: &str, service_ns: u64, latency_ns: u64, stalls: Vec<Stall>) -> Outcome {
    let toml = format!(
        "{load}\narrival = 'uniform'\ntime = '200ms'\nwarmup = '0s'\nkeys = 10\nprotocol = 'memcached-text'"
    );
    let plan = Plan { measures_unloaded: true, ..plan(&toml) };
    let server = CoreOptions { service: Service::Fixed(service_ns), stalls, ..CoreOptions::default() };
    let outcome = simulate_plan(plan, SimOptions { server, latency_ns, ..SimOptions::default() });
    check_books(&outcome);
    outcome
}

/// Those of the warm-up that were answered.
fn asked(outcome: &Outcome) -> u64 {
    outcome.book(Phase::Warmup).requests.completed()
}

#[test]
fn requests_are_asked_one_at_a_time_before_the_schedule() {
    // Whatever the load: 40 connections would queue for 40 ms, had they been asked together.
    for load in ["rate = 5000\nconnections = 40", "rate = 100\nconnections = 1", "rate = 2000\nmix = 'set=1'"]
    {
        let outcome = run(load, MS, 100 * US, Vec::new());
        assert_eq!(outcome.end.unloaded_service_ns, Some(MS + 200 * US), "{load}");
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
    assert_eq!(outcome.end.unloaded_service_ns, Some(40 * MS));
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
    assert_eq!(outcome.end.unloaded_service_ns, None);
    assert!(outcome.book(Phase::Measure).requests.scheduled > 0);
}
