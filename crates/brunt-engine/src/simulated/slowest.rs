//! Where the slowest requests spent their time, against the samples themselves.

use super::*;
use brunt_stats::slowest::Slowest;
use brunt_stats::usage::WorkerUsage;
use std::ops::Range;

/// What is said of the slowest requests of a run.
fn slowest(toml: &str, options: SimOptions) -> (Outcome, Option<Slowest>) {
    let plan = plan(&format!("{toml}\nkeys = 10\nprotocol = 'memcached-text'"));
    let outcome = simulate_plan(plan.clone(), options);
    let mut record = outcome.record(plan);
    record.run.usage.workers =
        vec![WorkerUsage { stalls: outcome.end.data.usage.workers[0].stalls, ..WorkerUsage::default() }];
    let slowest = Summary::build(record).slowest();
    (outcome, slowest)
}

/// The completed samples as slow as the 16th of a power of two that the 99th percentile lies in.
fn slow_samples(outcome: &Outcome) -> (Vec<Sample>, usize) {
    let mut completed = outcome.samples.clone();
    completed.retain(|sample| sample.outcome.class.is_completed());
    completed.sort_by_key(|sample| sample.times.response_ns());
    let p99_ns = completed[(completed.len() * 99).div_ceil(100) - 1].times.response_ns();
    // Below 2 048 ns a group is 64 ns wide, as a histogram tells each value apart there.
    let step_ns = (1_u64 << p99_ns.max(1_024).ilog2()) / 16;
    let least_ns = p99_ns / step_ns * step_ns;
    let count = completed.len();
    completed.retain(|sample| sample.times.response_ns() >= least_ns);
    (completed, count)
}

/// Holds what is said against the samples, and returns it.
fn check(what: &str, toml: &str, options: SimOptions, trouble: Option<Range<u64>>) -> Slowest {
    let (outcome, slowest) = slowest(toml, options);
    let slowest = slowest.unwrap_or_else(|| panic!("{what}: nothing is said"));
    let (samples, completed) = slow_samples(&outcome);
    let sum = |part_ns: &dyn Fn(&Sample) -> u64| samples.iter().map(part_ns).sum::<u64>() as f64;
    let response_ns = sum(&|sample| sample.times.response_ns());
    let client_ns =
        sum(&|Sample { times, .. }| times.client_lag_ns() + times.read_gap_ns().min(times.service_ns()));
    let wait_ns = sum(&|sample| sample.times.connection_wait_ns());
    let rest_ns = response_ns - client_ns - wait_ns;
    let due = |sample: &&Sample| trouble.as_ref().is_some_and(|at| at.contains(&sample.times.intended_ns));
    let due = samples.iter().filter(due).count() as f64 / samples.len() as f64;
    for (name, said, expected, within) in [
        ("covered", slowest.covered, samples.len() as f64 / completed as f64, 1e-12),
        ("client", slowest.client, client_ns / response_ns, 1e-12),
        ("connection", slowest.connection_wait, wait_ns / response_ns, 1e-12),
        ("wire and server", slowest.wire_and_server, rest_ns / response_ns, 1e-12),
        ("in outage", slowest.in_outage, due, 0.1),
    ] {
        assert!((said - expected).abs() <= within, "{what}: {name} {said}, not {expected}");
    }
    assert_eq!(slowest.parts().iter().map(|(_, share)| share).sum::<f64>(), 1.0, "{what}");
    slowest
}

fn of_server(server: CoreOptions) -> SimOptions {
    SimOptions { wake_ns: 5 * US, ..SimOptions::of(server).latency(20 * US) }
}

/// Half of what is due is served, by one request at a time: the others wait for one of the connections.
#[test]
fn an_overload_waits_for_connections() {
    let options = of_server(serving(MS));
    let slowest =
        check("overload", "rate = 2000\nconnections = 4\ntime = '2s'\ndrain = '20s'", options, None);
    assert!(slowest.connection_wait > 0.99, "{slowest:?}");
    assert_eq!(slowest.in_outage, 0.0, "{slowest:?}");
}

#[test]
fn a_stop_of_the_client_is_the_clients() {
    let stop = EPOCH_NS + 700 * MS..EPOCH_NS + 1_000 * MS;
    let server = serving(50 * US);
    let options = SimOptions { pause: Some((stop.start, stop.end - stop.start)), ..of_server(server) };
    let toml = "rate = 2000\nconnections = 16\ntime = '5s'\ndrain = '5s'";
    let slowest = check("stop", toml, options, Some(stop));
    assert!(slowest.client > 0.9 && slowest.in_outage > 0.9, "{slowest:?}");
}

/// The server stands still while requests wait on all connections, and behind them.
#[test]
fn an_outage_is_the_servers() {
    // From the first request that the server gets.
    let stall = Stall { at_ns: 700 * MS, for_ns: 400 * MS };
    let server = CoreOptions { stalls: vec![stall], ..serving(50 * US) };
    let toml = "rate = 2000\nconnections = 400\ntime = '5s'\ndrain = '5s'\ntimeout = '5s'\npreload = false";
    let start_ns = EPOCH_NS + START_AHEAD_NS + stall.at_ns;
    let at = start_ns..start_ns + stall.for_ns;
    let slowest = check("outage", toml, of_server(server), Some(at));
    assert!(slowest.in_outage > 0.9 && slowest.client < 0.1, "{slowest:?}");
}

#[test]
fn a_slow_server_is_wire_and_server() {
    let service = Service::Exponential(2 * MS);
    let options = of_server(CoreOptions { service, ..CoreOptions::default() });
    for toml in ["rate = 300\nconnections = 64\ntime = '20s'\ndrain = '5s'", "connections = 4\ntime = '10s'"]
    {
        let slowest = check(toml, toml, options.clone(), None);
        assert!(slowest.wire_and_server > 0.9 && slowest.covered < 0.05, "{slowest:?}");
    }
}

#[test]
fn fewer_than_a_thousand_requests_are_too_few() {
    for (requests, is_said) in [(999, false), (1_000, true)] {
        let toml = format!("connections = 1\nrequests = {requests}");
        let (_, slowest) = slowest(&toml, of_server(CoreOptions::default()));
        assert_eq!(slowest.is_some(), is_said, "{requests}");
    }
}
