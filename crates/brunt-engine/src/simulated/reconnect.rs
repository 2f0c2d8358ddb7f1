//! Connections that are lost and not begun again: what goes on without them, and when a run has no client left.

use super::*;
use brunt_server::Outage;

const FOR_EVER: u64 = 100_000 * SECOND;

/// A server that is gone after half a second, for so long.
fn gone(for_ns: u64) -> CoreOptions {
    let outages = vec![Outage { at_ns: 500 * MS, for_ns }];
    CoreOptions { outages, ..serving(20 * US) }
}

/// One that stays.
fn calm() -> CoreOptions {
    serving(20 * US)
}

fn world(servers: [CoreOptions; 2]) -> SimOptions {
    let [server, other] = servers;
    SimOptions { others: vec![other], ..SimOptions::of(server).latency(50 * US) }
}

const LOADS: [&str; 5] =
    ["", "depth = 3", "think = '1ms'", "rate = 5000", "rate = 5000\narrival = 'uniform'"];

fn two(placement: &str, reconnect: &str, load: &str) -> String {
    format!(
        "server = ['a:1', 'b:2']\nplacement = '{placement}'\nreconnect = '{reconnect}'\nconnections = 6\n\
         keys = 300\npreload = false\n{load}\n"
    )
}

/// When the schedule was over, from its start.
fn ended_ns(outcome: &Outcome) -> u64 {
    outcome.end.data.times.end_ns - outcome.start_ns()
}

/// How many connections were given up for good, and workers with them.
fn abandoned(outcome: &Outcome) -> (u64, u64) {
    (outcome.end.data.counts.connections_abandoned, outcome.end.data.counts.workers_cut_off)
}

/// With its only server a run is over, and does not wait for that to come back.
#[test]
fn a_run_ends_with_its_last_connection() {
    for load in LOADS {
        for (reconnect, stop) in [
            ("never", "time = '3s'"),
            ("while-one-stands", "time = '3s'"),
            ("never", "requests = 1000000"),
            ("while-one-stands", "requests = 1000000"),
        ] {
            let case = format!("{reconnect} {stop} {load}");
            let toml = format!("reconnect = '{reconnect}'\nconnections = 4\npreload = false\n{stop}\n{load}");
            let server = gone(FOR_EVER);
            let outcome = simulate(&toml, SimOptions::of(server).latency(50 * US));
            assert!((500 * MS..503 * MS).contains(&ended_ns(&outcome)), "{case}: {}", ended_ns(&outcome));
            assert_eq!(abandoned(&outcome), (4, 1), "{case}");
            // While one connection is open the others are tried again at once.
            let tries = if reconnect == "never" { 4..=4 } else { 4..=8 };
            assert!(tries.contains(&outcome.attempts.len()), "{case}: {}", outcome.attempts.len());
            let requests = outcome.requests();
            assert!(requests.completed() > 1_000, "{case}: {requests:?}");
            assert_eq!(requests.scheduled, requests.ended() + requests.unsent, "{case}");
            let slots = if load == "depth = 3" { 12 } else { 4 };
            // A slot that thinks when its connection goes has one operation to come.
            let failed = requests.scheduled - requests.completed();
            assert!(load.starts_with("rate") || failed <= slots, "{case}: {failed}");
        }
    }
}

/// What goes to a server of which no connection is left goes to another where any will do, and is given up at once where the key decides.
#[test]
fn remaining_connections_go_on() {
    for load in LOADS {
        for placement in ["round-robin", "random", "modulo"] {
            let case = format!("{placement} {load}");
            let toml = two(placement, "never", load) + "time = '1s'";
            let outcome = simulate(&toml, world([calm(), gone(FOR_EVER)]));
            assert_eq!(ended_ns(&outcome), SECOND, "{case}");
            assert_eq!(abandoned(&outcome), (3, 0), "{case}");
            assert_eq!(outcome.attempts.len(), 6, "{case}");
            let requests = outcome.requests();
            let failed = requests.scheduled - requests.completed();
            match placement {
                "modulo" => assert!(failed > requests.scheduled / 10, "{case}: {failed}"),
                _ => assert!(failed <= 9, "{case}: {failed}"),
            }
            let late = outcome.samples.iter().filter(|sample| {
                sample.times.intended_ns > outcome.start_ns() + 700 * MS
                    && sample.outcome.class.is_completed()
            });
            assert!(late.count() > 500, "{case}");
        }
    }
}

/// A number of requests is reached by those that are left.
#[test]
fn a_number_is_reached_by_those_that_are_left() {
    for (load, count) in [("", 60_000), ("think = '1ms'", 10_000), ("rate = 5000", 10_000)] {
        for placement in ["round-robin", "random"] {
            let toml = two(placement, "never", load) + &format!("requests = {count}");
            let outcome = simulate(&toml, world([calm(), gone(FOR_EVER)]));
            let requests = outcome.requests();
            assert_eq!((requests.scheduled, abandoned(&outcome)), (count, (3, 0)), "{placement} {load}");
            assert!(requests.completed() >= count - 9, "{placement} {load}");
        }
    }
}

/// While one connection is open the others come back; when none does, it is over.
#[test]
fn the_last_connection_ends_its_class() {
    for load in LOADS {
        let back = simulate(
            &(two("round-robin", "while-one-stands", load) + "time = '2s'"),
            world([calm(), gone(300 * MS)]),
        );
        assert_eq!((ended_ns(&back), abandoned(&back)), (2 * SECOND, (0, 0)), "{load}");
        assert_eq!(back.connections().open(), 6, "{load}");
        // The second goes half a second after the first, which is not back yet.
        let later = CoreOptions { outages: vec![Outage { at_ns: SECOND, for_ns: FOR_EVER }], ..calm() };
        let toml = two("round-robin", "while-one-stands", load) + "time = '5s'";
        let over = simulate(&toml, world([later, gone(FOR_EVER)]));
        assert!((SECOND..1_003 * MS).contains(&ended_ns(&over)), "{load}: {}", ended_ns(&over));
        assert_eq!(abandoned(&over), (6, 1), "{load}");
    }
}

/// With the last connection every client is over, not only the one that had it.
#[test]
fn the_last_one_ends_every_client() {
    let later = CoreOptions { outages: vec![Outage { at_ns: SECOND, for_ns: FOR_EVER }], ..calm() };
    let toml = two("modulo", "while-one-stands", "client-connections = 2\nreplicas = 2") + "time = '5s'";
    let over = simulate(&toml, world([later, gone(FOR_EVER)]));
    assert!((SECOND..1_003 * MS).contains(&ended_ns(&over)), "{}", ended_ns(&over));
    assert_eq!(abandoned(&over), (6, 1));
}

/// Before the schedule begins connections are tried again whatever the plan says.
#[test]
fn a_preload_is_not_left_alone() {
    let server = CoreOptions { outages: vec![Outage { at_ns: MS, for_ns: 200 * MS }], ..calm() };
    let outcome = simulate(
        "reconnect = 'never'\nconnections = 4\nkeys = 3000\ntime = '100ms'",
        SimOptions::of(server).latency(50 * US),
    );
    assert_eq!((outcome.items[0], abandoned(&outcome)), (3_000, (0, 0)));
    assert_eq!(ended_ns(&outcome), 100 * MS);
}
