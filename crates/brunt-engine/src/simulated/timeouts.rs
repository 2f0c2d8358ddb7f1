//! Time-outs, also of requests that the server does not even take in.

use super::*;
use crate::simulated::sim::Deaf;
use brunt_stats::connection::FaultKind;

/// The faults of a kind.
fn faults(outcome: &Outcome, kind: FaultKind) -> u64 {
    let rows = outcome.store.faults().rows().iter().filter(|row| row.kind == kind);
    rows.map(|row| row.count).sum()
}

/// A server that never reads: every request is given up a time-out after the buffer was full, and counted as unsent.
#[test]
fn unread_requests_are_abandoned() {
    for noreply in [false, true] {
        let outcome = simulate(
            &format!(
                "connections = 1\ntime = '10s'\ndrain = '0s'\nkeys = 10\nvalue-size = 1000\nmix = 'set'\n\
                 noreply = {noreply}\ntimeout = '1s'\npreload = false"
            ),
            SimOptions {
                buffer_bytes: 500,
                deaf: vec![Deaf { server: 0, at_ns: 0, for_ns: u64::MAX }],
                ..SimOptions::default()
            },
        );
        let requests = outcome.requests();
        // One after the other, with pauses of 0, 1, 2, 4 … ms between them, which grow to 256 ms.
        assert_eq!((requests.sent, requests.unsent), (0, requests.scheduled), "{requests:?}");
        assert_eq!(faults(&outcome, FaultKind::TimedOut), 9);
        assert_eq!(
            requests.scheduled,
            10,
            "{noreply} {:?} {:?}",
            outcome.connections(),
            outcome.store.faults()
        );
        let outages = outcome.outages();
        assert_eq!((outages.len(), outages[0].end_ns), (1, None), "{outages:?}");
    }
}

/// A connection that was idle for longer than a time-out waits for nothing, also where its next request is handed over with
/// others, and the loop looks for time-outs before that.
#[test]
fn idle_connections_do_not_time_out() {
    for pause in [None, Some((EPOCH_NS + 500 * MS, 100 * MS))] {
        let outcome = simulate(
            "rate = 2000\nconnections = 200\ntime = '2s'\nkeys = 10\nmix = 'incr'\ntimeout = '50ms'",
            SimOptions { pause, ..SimOptions::default().latency(10 * US) },
        );
        let requests = outcome.requests();
        assert_eq!((requests.sent, requests.unsent), (requests.scheduled, 0), "{pause:?}");
        assert_eq!(outcome.store.faults().total(), 0, "{pause:?}");
    }
}

/// A server that does not read for less than the time-out loses nothing.
#[test]
fn requests_read_late_are_only_late() {
    for (noreply, buffer_bytes) in [(false, 100), (true, 100), (false, 5_000), (true, 5_000)] {
        let outcome = simulate(
            &format!(
                "rate = 1000\narrival = 'uniform'\nconnections = 2\ndepth = 4\ntime = '2s'\nkeys = 10\n\
                 mix = 'set,get'\nnoreply = {noreply}\ntimeout = '1s'"
            ),
            SimOptions {
                buffer_bytes,
                deaf: vec![Deaf { server: 0, at_ns: EPOCH_NS + 500 * MS, for_ns: 900 * MS }],
                ..SimOptions::default().latency(10 * US)
            },
        );
        let requests = outcome.requests();
        assert_eq!((requests.scheduled, requests.failed(), requests.unsent), (2_000, 0, 0));
        assert_eq!(outcome.store.faults().total(), 0);
    }
}

/// Of a connection that is given up, what was sent has timed out or is lost; what has not left waits for the next one.
#[test]
fn a_stuck_connection_is_given_up_with_all_that_is_on_it() {
    for (load, noreply) in [("", false), ("rate = 2000", false), ("", true), ("rate = 2000", true)] {
        let outcome = simulate(
            &format!(
                "{load}\nconnections = 2\ndepth = 8\nrequests = 4000\nkeys = 10\nmix = 'set,get'\n\
                 noreply = {noreply}\ntimeout = '100ms'"
            ),
            SimOptions {
                buffer_bytes: 600,
                deaf: vec![
                    Deaf { server: 0, at_ns: EPOCH_NS + 50 * MS, for_ns: 250 * MS },
                    Deaf { server: 0, at_ns: EPOCH_NS + 400 * MS, for_ns: 110 * MS },
                ],
                ..SimOptions::of(serving(100 * US)).latency(10 * US)
            },
        );
        let requests = outcome.requests();
        assert_eq!((requests.offered(), requests.in_flight), (4_000, 0), "{load} {noreply}");
        assert_eq!(requests.sent + requests.unsent, 4_000, "{load} {noreply} {requests:?}");
        assert!(faults(&outcome, FaultKind::TimedOut) >= 4);
        let timed_out = outcome.samples.iter().filter(|sample| sample.outcome.class == OutcomeClass::Timeout);
        timed_out.for_each(|sample| assert_eq!(sample.times.service_ns(), 100 * MS));
        assert!(
            requests.outcome(OutcomeClass::Timeout) + requests.unsent > 0,
            "{load} {noreply} {requests:?}"
        );
    }
}

/// A request whose reply was not whole when the client went on has timed out, and ended there and then.
#[test]
fn half_replies_seen_after_the_timeout_do_not_count() {
    for (servers, mix) in [("['a']", "get"), ("['a', 'b']", "mget")] {
        let dripping = CoreOptions {
            drip: Some(brunt_server::Drip {
                piece_bytes: std::num::NonZeroUsize::new(3).unwrap(),
                pause_ns: 80 * MS,
            }),
            ..CoreOptions::default()
        };
        let outcome = simulate(
            &format!(
                "server = {servers}\nconnections = 2\nrequests = 1\nmix = '{mix}'\ntimeout = '50ms'\n\
                 preload = false"
            ),
            SimOptions {
                others: vec![CoreOptions::default()],
                pause: Some((EPOCH_NS + START_AHEAD_NS + 2 * MS + MS / 2, 60 * MS)),
                ..SimOptions::of(dripping).latency(MS)
            },
        );
        assert_eq!(outcome.count(OutcomeClass::Timeout), 1, "{mix}");
        let times = &outcome.samples[0].times;
        let resumed_ns = EPOCH_NS + START_AHEAD_NS + 62 * MS + MS / 2;
        // How late that was is the client's.
        let expected_ns = (resumed_ns, times.sent_ns + 50 * MS);
        assert_eq!((times.done_ns, times.polled_ns), expected_ns, "{mix} {times:?}");
    }
}

/// A connection that is not established in time is given up and tried again.
#[test]
fn establishing_may_take_too_long() {
    let outcome = simulate(
        "rate = 1000\narrival = 'uniform'\nconnections = 2\ndepth = 64\ntime = '2s'\nkeys = 10\n\
         timeout = '50ms'\ncalls-per-connection = 300",
        SimOptions {
            connect_faults: vec![crate::simulated::sim::ConnectFault {
                first: 2,
                every: 2,
                count: 3,
                trouble: crate::simulated::sim::ConnectTrouble::Silence,
            }],
            ..SimOptions::default()
        },
    );
    let requests = outcome.requests();
    assert_eq!((requests.scheduled, requests.completed()), (2_000, 2_000));
    assert_eq!((faults(&outcome, FaultKind::TimedOut), outcome.connections().failed), (3, 3));
}

/// A client that was stopped for longer than a time-out, after a poll: what came meanwhile is read, and late, before anything is given up.
#[test]
fn stopped_clients_read_before_they_give_up() {
    let kinds = ["", "protocol = 'memcached-meta'", "transport = 'udp'"];
    for (kind, load) in kinds.into_iter().flat_map(|kind| ["", "rate = 5000"].map(|load| (kind, load))) {
        let outcome = simulate(
            &format!("{kind}\n{load}\nconnections = 4\ndepth = 2\ntime = '4s'\nkeys = 10\ntimeout = '300ms'"),
            SimOptions {
                pause: Some((EPOCH_NS + SECOND, SECOND)),
                pauses_behind_poll: true,
                ..SimOptions::of(serving(100 * US)).latency(300 * US)
            },
        );
        let requests = outcome.requests();
        assert_eq!((requests.failed(), requests.unsent, requests.in_flight), (0, 0, 0), "{kind} {load}");
        assert_eq!((outcome.store.faults().total(), outcome.outages().len()), (0, 0), "{kind} {load}");
        let services = outcome.samples.iter().map(|sample| sample.times.service_ns());
        assert!(services.max().unwrap() >= SECOND, "{kind} {load}: something was on its way");
    }
}

/// The same of attempts to connect, which were established meanwhile.
#[test]
fn stopped_clients_take_up_connections_before_they_give_them_up() {
    let outcome = simulate(
        "rate = 1000\nconnections = 4\ndepth = 64\ntime = '4s'\nkeys = 10\ntimeout = '50ms'\n\
         calls-per-connection = 20",
        SimOptions {
            pause: Some((EPOCH_NS + 300 * MS, 100 * MS)),
            pause_every_ns: 303 * MS,
            pauses_behind_poll: true,
            ..SimOptions::default().latency(5 * MS)
        },
    );
    let requests = outcome.requests();
    assert_eq!((requests.failed(), outcome.connections().failed), (0, 0));
    assert_eq!(outcome.store.faults().total(), 0);
}

/// The same at the end of the drain.
#[test]
fn stopped_clients_read_before_the_drain_ends() {
    let run = |pause| {
        simulate(
            "rate = 1000\narrival = 'uniform'\nconnections = 4\ndepth = 4\ntime = '1s'\ndrain = '50ms'\n\
             keys = 10",
            SimOptions { pause, pauses_behind_poll: true, ..SimOptions::default().latency(2 * MS) },
        )
    };
    let end_ns = run(None).end.data.times.end_ns;
    let outcome = run(Some((end_ns + MS, 200 * MS)));
    let requests = outcome.requests();
    assert_eq!((requests.scheduled, requests.completed(), requests.in_flight), (1_000, 1_000, 0));
    assert_eq!(
        (outcome.end.data.times.end_ns, outcome.end.data.times.drained_ns),
        (end_ns, end_ns + 201 * MS)
    );
}
