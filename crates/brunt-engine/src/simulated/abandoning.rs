//! Requests that wait for a server which does not answer: they are given up after a time-out, each at its own instant, and
//! whoever does not need that server goes on.

use super::*;
use crate::simulated::sim::{ConnectFault, ConnectTrouble};
use brunt_stats::server::ServerCounts;

const FOR_GOOD: u64 = 1_000_000 * SECOND;

/// A server that stands still from this time on, but takes connections and requests.
fn frozen(at_ns: u64) -> CoreOptions {
    stalled(at_ns, FOR_GOOD)
}

/// Three servers, the second of which is this one. There and back again takes a millisecond.
fn world(second: CoreOptions) -> SimOptions {
    SimOptions { others: vec![second, CoreOptions::default()], ..SimOptions::default().latency(500 * US) }
}

/// A plan over three servers.
fn three(rest: &str) -> String {
    format!("server = ['a:1', 'b:2', 'c:3']\npreload = false\nkeys = 999\npopularity = 'sequential'\n{rest}")
}

/// What each server did.
fn servers(outcome: &Outcome) -> Vec<ServerCounts> {
    outcome.store.servers().to_vec()
}

/// How many response times of failures there are, and the longest of them.
fn failures(outcome: &Outcome) -> (u64, u64) {
    let mut count = (0, 0);
    for (_, _, row) in outcome.store.rows() {
        let moments = row.latencies.failed.moments();
        count = (count.0 + moments.count, count.1.max(moments.max));
    }
    count
}

/// Requests that were answered in so long from this time of the schedule on.
fn answered(outcome: &Outcome, from_ns: u64, for_ns: u64) -> u64 {
    let from_ns = outcome.start_ns() + from_ns;
    let is_answered = |sample: &&Sample| {
        sample.outcome.class.is_completed() && (from_ns..from_ns + for_ns).contains(&sample.times.done_ns)
    };
    outcome.samples.iter().filter(is_answered).count() as u64
}

/// In closed loop a slot whose request is for a server that is gone has it for a time-out, and then goes on.
#[test]
fn a_closed_loop_goes_on_beside_a_server_that_is_gone() {
    for (refill, depth) in [("eager", 1), ("eager", 4), ("batch", 4)] {
        let outcome = simulate(
            &three(&format!(
                "mix = 'get'\nconnections = 6\ndepth = {depth}\ntime = '10s'\ntimeout = '500ms'\nrefill = '{refill}'"
            )),
            world(gone(SECOND, FOR_GOOD)),
        );
        let requests = outcome.requests();
        let slots = 6 * depth;
        // A slot soon finds a key behind the server that is gone, and has it for half a second: within nine seconds 18 times, the
        // last of them after the window.
        let expected = slots * 18;
        assert!(requests.unsent.abs_diff(expected) <= slots, "{requests:?}, expected {expected}");
        let (failed, longest_ns) = failures(&outcome);
        assert_eq!((failed, requests.abandoned), (requests.unsent + requests.failed(), requests.unsent));
        // A time-out after it was picked, or after the end of the server where it waited for its turn already.
        assert!((500 * MS..502 * MS).contains(&longest_ns), "{longest_ns}");
        // For each that waits as many are answered as there are keys elsewhere for one there.
        let homes = super::servers::homes("modulo", 999);
        let there = homes.iter().filter(|home| **home == 1).count() as f64 / 999.0;
        let expected = (7 * 2 * slots) as f64 * (1.0 - there) / there;
        let answered = answered(&outcome, 2 * SECOND, 7 * SECOND) as f64;
        assert!((0.7..1.4).contains(&(answered / expected)), "{answered} of {expected}");
        let [a, b, c] = servers(&outcome)[..] else { panic!() };
        assert_eq!((a.unsent, c.unsent, b.unsent), (0, 0, requests.unsent));
        assert_eq!((a.failed, c.failed), (0, 0));
    }
}

/// The client is stopped while it waits for a server that is gone, which is back before the client is.
#[test]
fn a_stop_of_the_client_is_no_silence_of_a_server_that_is_down() {
    // Operations wait for 0.3 s before the stop, and for no more than 0.2 s behind it.
    for (load, is_behind_poll) in
        ["", "rate = 2000"].into_iter().flat_map(|load| [false, true].map(|is| (load, is)))
    {
        let outcome = simulate(
            &format!(
                "{load}\npreload = false\nkeys = 99\nconnections = 4\ndepth = 2\ntime = '5s'\ntimeout = '1s'"
            ),
            SimOptions {
                pause: Some((EPOCH_NS + START_AHEAD_NS + 1_300 * MS, 1_500 * MS)),
                pauses_behind_poll: is_behind_poll,
                ..SimOptions::of(gone(SECOND, 1_500 * MS)).latency(500 * US)
            },
        );
        let requests = outcome.requests();
        assert_eq!(
            (requests.unsent, requests.abandoned, requests.in_flight),
            (0, 0, 0),
            "{load} {is_behind_poll}"
        );
        assert!(
            requests.failed() <= 8 && requests.completed() > 1_000,
            "{load} {is_behind_poll}: {requests:?}"
        );
    }
}

/// Where nothing ends a run but a number of requests, a server is given up when it is down for 5 s, of which a stop is no part.
#[test]
fn a_stop_of_the_client_does_not_give_up_a_server() {
    for (pause_ns, is_whole) in [(7 * SECOND, true), (100 * MS, false)] {
        let outcome = simulate(
            "preload = false\nkeys = 99\nconnections = 4\nrequests = 20000\ntimeout = '1s'",
            SimOptions {
                pause: Some((EPOCH_NS + START_AHEAD_NS + 2 * SECOND, pause_ns)),
                ..SimOptions::of(gone(SECOND, 8 * SECOND)).latency(500 * US)
            },
        );
        let requests = outcome.requests();
        assert_eq!(requests.scheduled == 20_000, is_whole, "{pause_ns}: {requests:?}");
    }
}

/// When the server is back, every slot of a closed loop is in use again: none was lost with what was given up, neither those of
/// stores that follow a miss nor those of connections that waited for their pipeline.
#[test]
fn every_slot_is_there_when_the_server_is_back() {
    for (servers, mix, rest) in [
        ("'a:1', 'b:2', 'c:3'", "get", ""),
        ("'a:1', 'b:2', 'c:3'", "mget", "multiget = 3"),
        ("'a:1', 'b:2', 'c:3'", "get=1,mget=1", "multiget = 3\non-miss = 'set'"),
        ("'a:1', 'b:2', 'c:3'", "get", "refill = 'batch'"),
        ("'a:1', 'b:2', 'c:3'", "set,get", "noreply = true"),
        // Slots of their own connections.
        ("'b:2'", "get", ""),
        ("'b:2'", "get", "refill = 'batch'"),
        ("'b:2'", "get=1,mget=1", "multiget = 3\non-miss = 'set'"),
        ("'b:2'", "get", "calls-per-connection = 90"),
        ("'b:2'", "get", "transport = 'udp'"),
        ("'a:1', 'b:2', 'c:3'", "get", "transport = 'udp'"),
        ("'a:1', 'b:2', 'c:3'", "get", "transport = 'udp'\nprotocol = 'memcached-meta'"),
    ] {
        let toml = format!(
            "server = [{servers}]\npreload = false\nkeys = 999\nmix = '{mix}'\nconnections = 6\ndepth = 4\n\
             time = '5s'\ntimeout = '500ms'\n{rest}"
        );
        let second = gone(SECOND, 2 * SECOND);
        let options = match servers.len() {
            5 => SimOptions::of(second),
            _ => world(second),
        };
        let options = SimOptions { latency_ns: 2 * MS, ..options };
        let outcome = simulate(&toml, options);
        let requests = outcome.requests();
        let before = answered(&outcome, 500 * MS, 400 * MS);
        let after = answered(&outcome, 4_500 * MS, 400 * MS);
        assert!(before > 500 && after.abs_diff(before) <= before / 20, "{toml}: {before}, then {after}");
        let in_vain = requests.abandoned + requests.failed();
        assert!(in_vain > 48 && requests.abandoned == requests.unsent, "{toml}: {requests:?}");
        assert_eq!(requests.in_flight, 0, "{toml}");
    }
}

/// An outage that is shorter than the time-out costs nothing but what was on the wire, however long requests had waited for
/// their turn before it.
#[test]
fn short_outages_abandon_nothing() {
    for load in ["", "rate = 9000\narrival = 'uniform'"] {
        let slow = CoreOptions { service: Service::Fixed(500 * US), ..gone(1_500 * MS, 450 * MS) };
        let outcome = simulate(
            &three(&format!(
                "{load}\nmix = 'get'\nconnections = 3\ndepth = 4\ntime = '2s'\ndrain = '9s'\ntimeout = '500ms'"
            )),
            world(slow),
        );
        let requests = outcome.requests();
        assert_eq!((requests.unsent, requests.in_flight), (0, 0), "{load} {requests:?}");
        if !load.is_empty() {
            // Half as much again as it can do: at the outage the queue was longer than a time-out already.
            assert!(outcome.quantile(1.0, |sample| sample.times.send_lag_ns()) > SECOND);
        }
    }
}

/// Who waits behind others for a server that does answer is not given up, however long it takes.
#[test]
fn slow_servers_are_not_down() {
    for noreply in [false, true] {
        let server = serving(MS);
        let outcome = simulate(
            &format!(
                "rate = 2000\narrival = 'uniform'\nmix = 'set'\nnoreply = {noreply}\nconnections = 1\n\
                 depth = 2\ntime = '3s'\npreload = false\nkeys = 10\ntimeout = '200ms'\ndrain = '200ms'"
            ),
            SimOptions { buffer_bytes: 600, ..SimOptions::of(server) },
        );
        let requests = outcome.requests();
        assert_eq!((requests.abandoned, requests.failed()), (0, 0), "{requests:?}");
        assert!(noreply || requests.unsent > 2_000, "{requests:?}");
    }
}

/// A part for a server that is gone ends its multi-get: lost, when the part is given up. The others do not notice.
#[test]
fn a_multi_get_fails_with_its_part() {
    for (connections, drain_ms) in [(3, 500), (9, 500), (3, 100)] {
        let outcome = simulate(
            &three(&format!(
                "mix = 'mget'\nmultiget = 2\nrate = 100\narrival = 'uniform'\nconnections = {connections}\ndepth = 64\n\
                 time = '4s'\ntimeout = '500ms'\ndrain = '{drain_ms}ms'"
            )),
            world(gone(SECOND + 7 * MS, FOR_GOOD)),
        );
        let requests = outcome.requests();
        let homes = super::servers::homes("modulo", 999);
        let keys_there =
            |nth: usize| [2 * nth, 2 * nth + 1].iter().filter(|key| homes[**key % 999] == 1).count();
        // The script of a server counts from its first request.
        let first = (0..).find(|nth| keys_there(*nth) > 0).unwrap();
        let after = |keys: usize| (first + 101..400).filter(|nth| keys_there(*nth) == keys).count() as u64;
        let lost = requests.outcome(OutcomeClass::Lost);
        assert_eq!((lost, requests.abandoned, requests.unsent), (after(1), after(2), after(2)));
        assert!(after(1) > 50 && after(2) > 20);
        assert_eq!((requests.in_flight, requests.completed() + lost + requests.unsent), (0, 400));
        for sample in &outcome.samples {
            let times = &sample.times;
            let is_lost = sample.outcome.class == OutcomeClass::Lost;
            let drained_ns = outcome.end.data.times.end_ns + drain_ms * MS;
            let expected_ns = match is_lost {
                true => (500 * MS).min(drained_ns - times.intended_ns),
                false => MS,
            };
            assert!(times.response_ns() - expected_ns < US && times.send_lag_ns() < US, "{sample:?}");
        }
        let (failed, longest_ns) = failures(&outcome);
        assert_eq!((failed, longest_ns / US), (lost + requests.unsent, 500_000));
        let unsent: Vec<u64> = servers(&outcome).iter().map(|counts| counts.unsent).collect();
        assert_eq!(unsent, [0, lost + requests.unsent, 0]);
    }
}

/// A server that takes requests and answers none: what was sent times out, and what waits behind it is given up as early.
#[test]
fn requests_behind_a_frozen_server_are_abandoned() {
    let (one, two) = ("mix = 'get'", "mix = 'mget'\nmultiget = 2");
    for (load, mix) in [("", one), ("", two), ("rate = 3000", one), ("rate = 3000", two)] {
        let outcome = simulate(
            &three(&format!(
                "{load}\n{mix}\nconnections = 6\ndepth = 2\ntime = '6s'\ntimeout = '500ms'\ndrain = '2s'"
            )),
            world(frozen(SECOND)),
        );
        let requests = outcome.requests();
        assert!(requests.outcome(OutcomeClass::Timeout) > 12 && requests.abandoned > 12, "{requests:?}");
        assert_eq!((requests.unsent, requests.in_flight), (requests.abandoned, 0), "{load} {mix}");
        // It waited for a time-out at the most before it was sent, and then for its own.
        let (_, longest_ns) = failures(&outcome);
        assert!((500 * MS..=1_000 * MS + MS).contains(&longest_ns), "{load} {mix}: {longest_ns}");
        let [a, b, c] = servers(&outcome)[..] else { panic!() };
        assert!((a.unsent, c.unsent, a.failed, c.failed) == (0, 0, 0, 0) && b.unsent > 0);
        for from_s in 2..6 {
            let answered = answered(&outcome, from_s * SECOND, SECOND);
            assert!(answered > if load.is_empty() { 4 } else { 1_000 }, "{load} {mix}: {answered}");
        }
    }
}

/// Where slots wait for the rest of their pipeline, those of abandoned requests do not: these were on no connection.
#[test]
fn slots_of_abandoned_requests_wait_for_no_pipeline() {
    let outcome = simulate(
        "server = ['a:1', 'b:2']\npreload = false\nkeys = 999\nmix = 'get'\nconnections = 2\ndepth = 16\n\
         time = '6s'\ntimeout = '500ms'\ndrain = '2s'\nrefill = 'batch'",
        SimOptions { others: vec![frozen(SECOND)], ..SimOptions::default().latency(500 * US) },
    );
    assert!(outcome.requests().abandoned > 100);
    // A pipeline is answered in a millisecond, and its slots wait for no longer.
    outcome
        .samples
        .iter()
        .for_each(|sample| assert!(sample.times.client_lag_ns() <= MS + 100 * US, "{sample:?}"));
}

/// The queue of a server that is gone, or stands still, is bounded, and what comes when it is full pushes the oldest out: the
/// schedule goes on, long before anything has timed out.
#[test]
fn full_queues_hold_up_no_other_server() {
    for (second, is_gone) in [(gone(100 * MS, FOR_GOOD), true), (frozen(100 * MS), false)] {
        let outcome = simulate(
            &three(
                "mix = 'get'\nrate = 300000\narrival = 'uniform'\nconnections = 3\ndepth = 1000\ntime = '700ms'\n\
                 timeout = '3s'",
            ),
            world(second),
        );
        let requests = outcome.requests();
        assert_eq!(requests.abandoned, requests.unsent);
        assert!(requests.unsent > 50_000, "{requests:?}");
        // Three routes share the room for 131 072.
        let (_, longest_ns) = failures(&outcome);
        assert!(!is_gone || (3 * SECOND..=3 * SECOND + MS).contains(&longest_ns), "{longest_ns}");
        for (_, _, row) in outcome.store.rows() {
            assert!(row.latencies.response.moments().max < MS + 100 * US);
            assert!(row.latencies.send_lag.moments().max < 100 * US);
        }
    }
}

/// The time of a preload is nobody's response time: it waits for as long as it has patience.
#[test]
fn a_preload_waits_for_its_servers() {
    let toml = "server = ['a:1', 'b:2', 'c:3']\nkeys = 3000\ntime = '100ms'\nconnections = 3\n\
                timeout = '100ms'";
    let outcome = simulate(toml, world(gone(5 * MS, 3 * SECOND)));
    assert_eq!((outcome.notice.is_none(), outcome.items.iter().sum::<usize>()), (true, 3_000));
}

/// Connections that are born seldom and that the server closes by itself say nothing of the server.
#[test]
fn requests_waiting_for_an_opening_are_not_abandoned() {
    let server = gone(10 * MS, MS);
    let outcome = simulate(
        "connect-rate = 0.5\nconnections = 1\nrate = 20\narrival = 'uniform'\ntime = '5s'\ndrain = '5s'\n\
         preload = false\nkeys = 10\ntimeout = '300ms'",
        SimOptions::of(server).latency(20 * US),
    );
    let requests = outcome.requests();
    assert_eq!((requests.completed(), requests.unsent), (100, 0), "{requests:?}");
}

/// One of many workers does not wake for each operation that would only wait behind others: it sees them a little later, by a small
/// share of what they wait, and each of them ends when it would have.
#[test]
fn crowded_workers_check_queues_less_often() {
    let run = |is_crowded: bool, second: bool| {
        // Ten times what the server answers, for a while.
        let servers = if second { "['a:1', 'b:2']" } else { "['a:1']" };
        let toml = format!(
            "server = {servers}\npreload = false\nkeys = 999\nmix = 'get'\nrate = 10000\n\
             arrival = 'uniform'\nconnections = 2\ntime = '1s'\ndrain = '30s'\ntimeout = '30s'"
        );
        let slow = || serving(MS);
        let others = if second { vec![slow()] } else { Vec::new() };
        let outcome = simulate(&toml, SimOptions { others, is_crowded, ..SimOptions::of(slow()) });
        assert_eq!((outcome.samples.len(), outcome.allocations), (10_000, 0), "{toml}");
        outcome.samples
    };
    let looks = |samples: &[Sample]| {
        let mut picked: Vec<u64> = samples.iter().map(|sample| sample.times.picked_ns).collect();
        picked.sort_unstable();
        picked.dedup();
        picked.len()
    };
    for second in [false, true] {
        let (alone, crowded) = (run(false, second), run(true, second));
        let ends =
            |samples: &[Sample]| -> Vec<u64> { samples.iter().map(|sample| sample.times.done_ns).collect() };
        assert!(ends(&alone) == ends(&crowded));
        assert!(looks(&alone) > 9_000 && looks(&crowded) < 4_000, "{} {}", looks(&alone), looks(&crowded));
        for sample in &crowded {
            let (late_ns, waited_ns) = (sample.times.client_lag_ns(), sample.times.send_lag_ns());
            assert!(late_ns <= waited_ns / 100 + 200_000, "{sample:?}");
        }
    }
}

/// A connection that never comes back while the others live: what is bound to it is given up after a time-out, again and again, and
/// none of its slots waits for ever.
#[test]
fn slots_of_a_connection_that_never_comes_back_go_on() {
    for (depth, refill, trouble) in [
        (1, "eager", ConnectTrouble::Later(libc::ECONNREFUSED)),
        (2, "eager", ConnectTrouble::AtOnce(libc::ECONNREFUSED)),
        (2, "eager", ConnectTrouble::Silence),
        (4, "batch", ConnectTrouble::Later(libc::ECONNREFUSED)),
    ] {
        let faults = Faults { reset_every: Some("1000000:1000".parse().unwrap()), ..Faults::default() };
        let outcome = simulate(
            &format!(
                "preload = false\nkeys = 99\nmix = 'get'\nconnections = 3\ndepth = {depth}\ntime = '10s'\n\
                 timeout = '500ms'\ndrain = '2s'\nrefill = '{refill}'"
            ),
            SimOptions {
                connect_faults: vec![ConnectFault { first: 3, every: 1, count: u64::MAX, trouble }],
                ..SimOptions::of(CoreOptions { faults, ..CoreOptions::default() }).latency(MS)
            },
        );
        let requests = outcome.requests();
        let is_lost = |sample: &&Sample| {
            sample.outcome.class == OutcomeClass::Lost && sample.times.done_ns < outcome.end.data.times.end_ns
        };
        let lost_ns =
            outcome.samples.iter().filter(is_lost).map(|sample| sample.times.done_ns).min().unwrap();
        // Each slot of it has one operation every time-out, the last of which may end behind the window.
        let expected = depth * (outcome.end.data.times.end_ns - lost_ns).div_ceil(500 * MS);
        // An attempt that hangs is known to have failed a time-out later.
        let late = if trouble == ConnectTrouble::Silence { 2 * depth } else { 0 };
        assert!(
            (expected - late..=expected).contains(&requests.abandoned),
            "{requests:?}: {expected} are given up"
        );
        assert_eq!((requests.unsent, requests.in_flight), (requests.abandoned, 0), "{requests:?}");
        assert_eq!(servers(&outcome)[0].unsent, requests.unsent);
        let (failed, longest_ns) = failures(&outcome);
        assert_eq!(failed, requests.abandoned + requests.failed());
        assert!(
            longest_ns / MS == 500 || late > 0 && longest_ns <= 1_500 * MS,
            "{depth} {refill} {trouble:?}: {longest_ns}"
        );
        // Two connections do what three did, in two milliseconds there and back.
        let rate = answered(&outcome, 5 * SECOND, SECOND);
        assert!(rate.abs_diff(2 * depth * 500) <= 4 * depth, "{rate}");
    }
}

/// Who waits for a connection that does come back waits no shorter for that.
#[test]
fn slots_of_a_connection_that_comes_back_lose_nothing() {
    let faults = Faults { reset_every: Some("1000000:1000".parse().unwrap()), ..Faults::default() };
    let trouble = ConnectTrouble::Later(libc::ECONNREFUSED);
    let outcome = simulate(
        "preload = false\nkeys = 99\nmix = 'get'\nconnections = 3\ndepth = 2\ntime = '5s'\ntimeout = '2s'",
        SimOptions {
            connect_faults: vec![ConnectFault { first: 3, every: 1, count: 8, trouble }],
            ..SimOptions::of(CoreOptions { faults, ..CoreOptions::default() }).latency(MS)
        },
    );
    let requests = outcome.requests();
    assert_eq!((requests.unsent, requests.in_flight), (0, 0), "{requests:?}");
    assert!((1..=2).contains(&requests.outcome(OutcomeClass::Lost)), "{requests:?}");
    assert_eq!(answered(&outcome, 4 * SECOND, 500 * MS), 6 * 250);
}

/// A server that takes connections and never answers is told soon, whatever the time-out allows a request; one that needs its time for
/// the first reply is waited for.
#[test]
fn a_preload_of_a_server_that_never_answers_ends_soon() {
    let silent = |seconds: u64| stalled(0, seconds * SECOND);
    for (timeout, stall_s, ends_s) in [
        ("10s", 1_000, Some(8)),
        ("1s", 1_000, Some(8)),
        ("3s", 1_000, Some(8)),
        ("30s", 1_000, Some(30)),
        ("10s", 7, None),
        ("30s", 29, None),
    ] {
        let toml = format!(
            "server = ['a:1', 'b:2', 'c:3']\nkeys = 3000\ntime = '100ms'\nconnections = 3\n\
             timeout = '{timeout}'"
        );
        let bound_ns = ends_s.map_or(VIRTUAL_NS_MAX, |ends_s| (ends_s + 1) * SECOND);
        let outcome = simulate_within(plan(&toml), world(silent(stall_s)), bound_ns);
        match ends_s {
            None => {
                assert_eq!((outcome.notice.is_none(), outcome.items.iter().sum::<usize>()), (true, 3_000));
            }
            Some(ends_s) => {
                let Some(Notice::Failed(RunError::Server {
                    failure: ServerFailure::NoReply,
                    server,
                    reason,
                })) = &outcome.notice
                else {
                    panic!("{timeout}: {:?}", outcome.notice)
                };
                assert_eq!(server.to_string(), "b:2");
                assert_eq!(*reason, format!("to any request for {ends_s}s"));
            }
        }
    }
    // Errors are answers, and a server that no key belongs to is asked nothing.
    let refuses = || CoreOptions {
        faults: Faults { error_every: Some("1".parse().unwrap()), ..Faults::default() },
        ..CoreOptions::default()
    };
    let toml = "server = ['a:1', 'b:2', 'c:3']\nkeys = 1\ntime = '100ms'\nconnections = 3";
    let options =
        SimOptions { others: vec![refuses(), refuses()], ..SimOptions::of(refuses()).latency(10 * MS) };
    let outcome = simulate(toml, options);
    let notice = outcome.notice;
    assert!(
        matches!(notice, Some(Notice::Failed(RunError::PreloadFailed { confirmed: 0, .. }))),
        "{notice:?}"
    );
}
