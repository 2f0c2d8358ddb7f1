//! Several servers: where keys live, requests that go to several of them, and one server's trouble that is not another's.

use super::*;
use brunt_server::{Every, Faults, Outage};
use brunt_stats::server::OutageKind;

const NAMES: [&str; 3] = ["a:1", "b:2", "c:3"];

/// The options of a plan with three servers.
fn three(placement: &str) -> String {
    format!("server = ['a:1', 'b:2', 'c:3']\nplacement = '{placement}'\n")
}

/// Where the keys of `0..keys` live.
pub(super) fn homes(placement: &str, keys: u64) -> Vec<usize> {
    let servers = NAMES.map(|name| name.parse().unwrap());
    let router = Router::new(placement.parse().unwrap(), &servers);
    (0..keys).map(|id| router.route(format!("{id:030}").as_bytes()) as usize).collect()
}

/// A world with these servers.
fn world(servers: [CoreOptions; 3]) -> SimOptions {
    let [server, others @ ..] = servers;
    SimOptions { others: others.to_vec(), ..SimOptions::of(server) }
}

fn calm() -> CoreOptions {
    CoreOptions::default()
}

#[test]
fn keys_live_where_the_placement_says() {
    for placement in ["modulo", "ketama", "ketama-weighted"] {
        for load in ["", "rate = 20000"] {
            let outcome = simulate(
                &format!(
                    "{}{load}\nconnections = 6\ndepth = 3\nrequests = 5000\nkeys = 1000\nmix = 'get=5,mget=1'",
                    three(placement)
                ),
                world([calm(), calm(), calm()]).latency(20 * US),
            );
            let homes = homes(placement, 1_000);
            let expected = [0, 1, 2].map(|server| homes.iter().filter(|home| **home == server).count());
            assert_eq!(outcome.items, expected, "{placement}");
            assert!(expected.iter().all(|keys| *keys > 100), "{placement}: {expected:?}");
            let keys = outcome.op_counts(Phase::Measure).keys;
            assert_eq!((keys.hit, keys.miss, keys.failed), (keys.requested, 0, 0), "{placement}");
            let asked: u64 = outcome.counters.iter().map(|counters| counters.cmd_get).sum();
            assert_eq!(asked, keys.requested);
        }
    }
}

#[test]
fn servers_in_turn_and_at_random_hold_every_key() {
    for placement in ["round-robin", "random"] {
        for load in ["", "rate = 20000"] {
            let outcome = simulate(
                &format!(
                    "{}{load}\nconnections = 6\ndepth = 3\nrequests = 9000\nkeys = 500\nmix = 'get'",
                    three(placement)
                ),
                world([calm(), calm(), calm()]).latency(20 * US),
            );
            assert_eq!(outcome.items, [500; 3], "{placement}");
            assert_eq!(outcome.op_counts(Phase::Preload).requests.completed(), 1_500);
            assert_eq!(outcome.op_counts(Phase::Measure).keys.hit, 9_000);
            for counters in &outcome.counters {
                // Three in a thousand at random: the deviation of 3 000 of 9 000 is 45.
                let most = if placement == "random" { 200 } else { 0 };
                assert!(counters.cmd_get.abs_diff(3_000) <= most, "{placement}: {}", counters.cmd_get);
            }
        }
    }
}

/// A worker has one server, where workers take them in turn, and stores there whatever it is to preload.
#[test]
fn by_thread_a_worker_has_one_server() {
    for load in ["", "rate = 20000"] {
        let outcome = simulate(
            &format!(
                "{}{load}\nconnections = 6\ndepth = 3\nrequests = 3000\nmix = 'get=3,mget=1,set=1'",
                three("by-thread")
            ),
            world([calm(), calm(), calm()]).latency(20 * US),
        );
        let keys = outcome.op_counts(Phase::Measure).keys;
        assert_eq!(
            (outcome.items[..].to_vec(), keys.miss, keys.hit),
            (vec![100, 0, 0], 0, keys.requested),
            "{load}"
        );
        let calls = outcome.counters.iter().map(|counters| counters.cmd_get + counters.cmd_set);
        assert!(calls.skip(1).all(|calls| calls == 0), "{load}");
        assert_eq!(outcome.connections().established, 6, "{load}");
    }
}

/// Each server has response times of its own, of requests and of parts of multi-gets.
#[test]
fn servers_are_timed_each_by_itself() {
    let taking = |service_ns: u64| serving(service_ns);
    for mix in ["'get'", "'mget'\nmultiget = 3", "'get=2,set=1,mget=1'"] {
        for load in ["rate = 100\narrival = 'uniform'", "think = '10ms'\nconnections = 3"] {
            let outcome = simulate(
                &format!("{}{load}\ntime = '2s'\npreload = false\nkeys = 1000\nmix = {mix}", three("modulo")),
                world([taking(100 * US), taking(200 * US), taking(800 * US)]).latency(20 * US),
            );
            let counts = outcome.store.servers();
            let requests = outcome.requests();
            assert_eq!(counts.iter().map(|counts| counts.answered).sum::<u64>(), requests.wire_requests);
            for (server, expected_us) in [(0, 140), (1, 240), (2, 840)] {
                let times = &outcome.store.server_responses()[server];
                assert_eq!(times.count(), counts[server].answered, "{mix} {load}");
                assert_eq!(times.min().map(|ns| ns / US), Some(expected_us), "{mix} {load}");
                // In open loop no request waits for another.
                let most_us = if load.starts_with("rate") { expected_us } else { 10 * expected_us };
                assert!(times.max().unwrap() / US <= most_us, "{mix} {load}: {:?}", times.max());
            }
        }
    }
    let alone = simulate("requests = 50\nkeys = 10", SimOptions::default());
    assert!(alone.store.server_responses().is_empty());
}

/// A multi-get over several servers is one sample: sent with its last part, first byte of the first reply, done with the
/// last one. Every part is a request on the wire.
#[test]
fn a_multi_get_over_servers_is_one_sample() {
    let service_us = [100, 400, 200];
    let servers = service_us.map(|service_us| serving(service_us * US));
    let plan = plan(&format!(
        "{}rate = 500\narrival = 'uniform'\nconnections = 3\nrequests = 400\nkeys = 97\nmix = 'mget'\nmultiget = 4\n\
         popularity = 'sequential'",
        three("modulo")
    ));
    let stores = preload_stores(&plan);
    let mut options = SimOptions { latency_ns: 50 * US, send_cost_ns: 7 * US, ..world(servers) };
    options.server.script_after = stores[0];
    options.others.iter_mut().zip(&stores[1..]).for_each(|(other, stores)| other.script_after = *stores);
    let outcome = simulate_plan(plan, options);
    let homes = homes("modulo", 97);
    let mut parts_in_all = 0;
    for (nth, sample) in outcome.samples.iter().enumerate() {
        let mut asked: Vec<usize> = (0..4).map(|key| homes[(nth * 4 + key) % 97]).collect();
        asked.sort_unstable();
        asked.dedup();
        parts_in_all += asked.len() as u64;
        // The parts go out one after the other, in the order of the servers.
        let done_us = |(part, server): (u64, &usize)| part * 7 + 100 + service_us[*server];
        let sent_us = asked.len() as u64 * 7;
        let done = || (1..).zip(&asked).map(done_us);
        let expected = [sent_us, done().min().unwrap().max(sent_us), done().max().unwrap()];
        let times = &sample.times;
        let since_us = |at_ns: u64| (at_ns - times.intended_ns) / US;
        assert_eq!(
            [since_us(times.sent_ns), since_us(times.first_byte_ns), since_us(times.done_ns)],
            expected,
            "multi-get {nth} over {asked:?}"
        );
    }
    let op_counts = outcome.op_counts(Phase::Measure);
    assert_eq!(
        (op_counts.requests.scheduled, op_counts.requests.sent, op_counts.requests.completed()),
        (400, 400, 400)
    );
    assert_eq!(op_counts.requests.wire_requests, parts_in_all);
    assert_eq!((op_counts.keys.requested, op_counts.keys.hit), (1_600, 1_600));
    assert!(parts_in_all > 600, "most have several parts: {parts_in_all} of 400");
}

/// Slots that are used again by whole pipelines are all used again, whatever else is out on their connection, and whatever it was
/// that was out last: a part of a multi-get gives no slot back, and nor does what a lost connection had not sent.
#[test]
fn pipelines_of_several_servers_are_refilled() {
    let reset = Faults { reset_every: Every::new(501), ..Faults::default() };
    for faults in [Faults::default(), reset] {
        for (depth, mix) in [(1, "mget"), (2, "get=1,mget=1"), (8, "get=1,mget=1"), (8, "mget")] {
            let server = || CoreOptions {
                faults,
                script_after: 300,
                service: Service::Exponential(5_000),
                ..CoreOptions::default()
            };
            let completed = |refill: &str| {
                let outcome = simulate(
                    &format!(
                        "{}refill = '{refill}'\nconnections = 3\ndepth = {depth}\ntime = '100ms'\nkeys = 300\nmix = '{mix}'\n\
                         multiget = 3",
                        three("modulo")
                    ),
                    world([server(), server(), server()]).latency(50 * US),
                );
                let half_ns = outcome.start_ns() + 50 * MS;
                let early =
                    outcome.samples.iter().filter(|sample| sample.times.intended_ns < half_ns).count();
                (early as f64, (outcome.samples.len() - early) as f64)
            };
            let (eager, batch) = (completed("eager"), completed("batch"));
            // A pipeline takes as long as its slowest request, and that is all it costs.
            assert!(batch.1 > eager.1 * 0.4, "{depth} {mix}: {batch:?} of {eager:?}");
            assert!(batch.1 > batch.0 * 0.9, "{depth} {mix}: {batch:?}");
        }
    }
}

/// The slot of a multi-get in parts is free when the last of them has ended.
#[test]
fn closed_loops_wait_for_all_parts() {
    for (connections, depth) in [(3, 1), (3, 5), (7, 2)] {
        let outcome = simulate(
            &format!(
                "{}connections = {connections}\ndepth = {depth}\nrequests = 3000\nkeys = 300\nmix = 'mget=3,set=1'\n\
                 multiget = 20",
                three("ketama")
            ),
            SimOptions {
                latency_ns: 50 * US,
                ..world([1, 2, 3].map(|times| CoreOptions {
                    service: Service::Exponential(times * 10 * US),
                    ..CoreOptions::default()
                }))
            },
        );
        let op_counts = outcome.op_counts(Phase::Measure);
        assert_eq!((op_counts.requests.scheduled, op_counts.requests.completed()), (3_000, 3_000));
        assert_eq!(op_counts.keys.hit, op_counts.keys.requested);
        // Never more at a time than there are slots.
        let mut ends: Vec<u64> = outcome.samples.iter().map(|sample| sample.times.done_ns).collect();
        ends.sort_unstable();
        let slots = connections * depth;
        for (nth, sample) in outcome.samples.iter().enumerate().skip(slots) {
            assert!(sample.times.intended_ns >= ends[nth - slots], "request {nth} is one too many");
        }
    }
}

/// In open loop a server that stands still delays its own requests and nobody else's.
#[test]
fn one_server_stalls_alone() {
    let stall = Stall { at_ns: SECOND + MS / 2, for_ns: SECOND };
    let stalled = CoreOptions { stalls: vec![stall], ..CoreOptions::default() };
    let outcome = simulate(
        &format!(
            "{}rate = 3000\narrival = 'uniform'\nconnections = 3\ntime = '4s'\nkeys = 1000\nmix = 'get'\n\
             popularity = 'sequential'\npreload = false",
            three("modulo")
        ),
        world([calm(), stalled, calm()]),
    );
    let homes = homes("modulo", 1_000);
    let is_stalled = |nth: usize| homes[nth % 1_000] == 1;
    // The script counts from the first request that the server got.
    let first = (0..).find(|nth| is_stalled(*nth)).unwrap();
    let begin_ns = outcome.samples[first].times.intended_ns + stall.at_ns;
    let end_ns = begin_ns + stall.for_ns;
    let mut late = 0;
    for (nth, sample) in outcome.samples.iter().enumerate() {
        let intended_ns = sample.times.intended_ns;
        let is_late = is_stalled(nth) && (begin_ns..end_ns).contains(&intended_ns);
        let expected_ns = if is_late { end_ns - intended_ns } else { 0 };
        // Those that waited go out one by one, at no time but that of looking.
        assert!(sample.times.response_ns().abs_diff(expected_ns) <= 100 * US, "{nth}: {sample:?}");
        assert!(is_late || sample.times.response_ns() == 0, "{nth}: {sample:?}");
        late += u32::from(is_late);
    }
    assert!(late > 900, "{late}");
    let outages = outcome.outages();
    assert_eq!(outages.len(), 1, "{outages:?}");
    assert_eq!((outages[0].server, outages[0].end_ns), (1, Some(end_ns)));
}

/// A server that is gone and comes back: nothing is missing, and the others do not notice.
#[test]
fn one_server_goes_and_comes_back() {
    for (placement, connections) in [("modulo", 3), ("ketama", 9), ("round-robin", 3), ("random", 6)] {
        let outage = Outage { at_ns: SECOND + MS / 2, for_ns: 500 * MS };
        let gone = CoreOptions { outages: vec![outage], ..CoreOptions::default() };
        let outcome = simulate(
            &format!(
                "{}rate = 3000\narrival = 'uniform'\nconnections = {connections}\ntime = '3s'\nkeys = 1000\nmix = 'get'\n\
                 popularity = 'sequential'\npreload = false",
                three(placement)
            ),
            world([calm(), gone, calm()]),
        );
        let requests = outcome.requests();
        assert_eq!((requests.scheduled, requests.completed(), requests.unsent), (9_000, 9_000, 0));
        let outages = outcome.outages();
        assert_eq!(outages.len(), 1, "{placement}: {outages:?}");
        let length_ns = outages[0].length_ns().unwrap();
        assert_eq!(outages[0].server, 1);
        assert!((500 * MS..525 * MS).contains(&length_ns), "{placement}: {length_ns}");
        assert!(outages[0].kinds.contains(OutageKind::Refused));
        // A third of the requests of half a second, each late by what was left of it.
        let late = outcome.samples.iter().filter(|sample| sample.times.response_ns() > 0).count();
        assert!((400..620).contains(&late), "{placement}: {late}");
        let connections = u64::from(connections as u32);
        assert_eq!(outcome.connections().lost, connections / 3);
        assert_eq!(outcome.connections().open(), connections);
    }
}

/// A number of requests that can never be reached, because one of the servers is gone for good, ends the run.
#[test]
fn one_server_that_dies_ends_a_run_by_number() {
    for load in ["", "rate = 3000"] {
        for placement in ["modulo", "round-robin"] {
            for mix in ["get", "mget"] {
                let outage = Outage { at_ns: 50 * MS, for_ns: 100_000 * SECOND };
                let gone = CoreOptions { outages: vec![outage], ..CoreOptions::default() };
                let outcome = simulate(
                    &format!(
                        "{}{load}\nconnections = 6\ndepth = 2\nrequests = 1000000\nmix = '{mix}'\n\
                         timeout = '1s'\npreload = false",
                        three(placement)
                    ),
                    world([calm(), calm(), gone]).latency(20 * US),
                );
                let requests = outcome.requests();
                assert!(requests.scheduled < 1_000_000);
                assert_eq!(
                    requests.scheduled,
                    requests.ended() + requests.unsent + requests.in_flight,
                    "{requests:?}"
                );
                let gone_ns = outcome.end.data.times.drained_ns - outcome.start_ns();
                assert!((5 * SECOND..5_200 * MS).contains(&gone_ns), "{load} {placement} {mix}: {gone_ns}");
                let outages = outcome.outages();
                assert_eq!((outages.len(), outages[0].server, outages[0].end_ns), (1, 2, None));
            }
        }
    }
}
