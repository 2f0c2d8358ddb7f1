//! Servers that go and come back: nothing is missing from the counts, and the table says for how long they were gone.

use super::*;
use crate::simulated::sim::{ConnectFault, ConnectTrouble};
use brunt_server::Outage as Script;
use brunt_stats::connection::FaultKind;
use brunt_stats::server::OutageKind;

fn gone(spans: &[(u64, u64)]) -> CoreOptions {
    let outages = spans.iter().map(|(at_ns, for_ns)| Script { at_ns: *at_ns, for_ns: *for_ns });
    CoreOptions { outages: outages.collect(), ..CoreOptions::default() }
}

/// Two seconds out of ten at 1 000 requests/s: what was due meanwhile waits, and every one of them knows how long.
#[test]
fn an_outage_shows_in_response_times_from_the_intended_times() {
    for (connections, depth) in [(1, 64), (4, 16), (16, 1), (64, 1)] {
        let outcome = simulate(
            &format!(
                "rate = 1000\narrival = 'uniform'\nconnections = {connections}\ndepth = {depth}\n\
                 time = '10s'\npreload = false"
            ),
            // Half a gap after an arrival, so that nothing is on the wire.
            SimOptions::of(gone(&[(4 * SECOND + MS / 2, 2 * SECOND)])),
        );
        let requests = outcome.requests();
        assert_eq!(
            (requests.scheduled, requests.completed(), requests.unsent, requests.failed()),
            (10_000, 10_000, 0, 0),
            "{connections} × {depth}"
        );
        let outages = outcome.outages();
        assert_eq!(outages.len(), 1, "{connections} × {depth}: {outages:?}");
        let begin_ns = outcome.start_ns() + 4 * SECOND + MS / 2;
        let (start_ns, end_ns) = (outages[0].start_ns, outages[0].end_ns.unwrap());
        assert_eq!(start_ns, begin_ns);
        let late_ns = end_ns - begin_ns - 2 * SECOND;
        assert!(late_ns <= 25 * MS, "{connections} × {depth}: noticed {late_ns} ns late");
        let kinds: Vec<OutageKind> = outages[0].kinds.iter().collect();
        assert_eq!(kinds, [OutageKind::Refused, OutageKind::Reset]);
        for sample in &outcome.samples {
            let intended_ns = sample.times.intended_ns;
            let is_hit = (begin_ns..end_ns).contains(&intended_ns);
            let expected_ns = if is_hit { end_ns - intended_ns } else { 0 };
            // Those that waited go out a connection's depth at a time.
            assert!(sample.times.response_ns().abs_diff(expected_ns) <= MS, "{sample:?}");
        }
        for p in [0.5, 0.8, 0.9, 0.95, 0.99, 0.999, 1.0] {
            let expected_ns = ((end_ns - begin_ns) as f64 - (1.0 - p) * 10e9).max(0.0) as u64;
            let measured_ns = outcome.quantile(p, |sample| sample.times.response_ns());
            assert!(
                measured_ns.abs_diff(expected_ns) <= 2 * MS,
                "p{}: {measured_ns}, {expected_ns}",
                p * 100.0
            );
        }
        check_reconnects(&outcome, connections, begin_ns, end_ns);
    }
}

/// One connection looks every 20 ms at the most; the others back off to a second, and are woken by the first reply.
fn check_reconnects(outcome: &Outcome, connections: u64, begin_ns: u64, end_ns: u64) {
    let counts = outcome.connections();
    assert_eq!((counts.established, counts.lost, counts.open()), (2 * connections, connections, connections));
    let between = |from_ns: u64, to_ns: u64| {
        let within = outcome.attempts.iter().filter(|attempt| (from_ns..to_ns).contains(&attempt.at_ns));
        within.count() as u64
    };
    let probes = 2 * SECOND / (20 * MS);
    let tries = between(begin_ns, end_ns);
    assert!((probes..probes + 8 + connections * 13).contains(&tries), "{tries} attempts for {connections}");
    // The last second of it: nobody but the one that looks, and one attempt of each of the others at the most.
    let late = between(begin_ns + SECOND, begin_ns + 2 * SECOND);
    assert!((45..=55 + connections).contains(&late), "{late} attempts for {connections}");
    assert_eq!(between(end_ns + 21 * MS, u64::MAX), 0, "everybody was woken");
}

/// What is on the wire when the server goes is lost, and counted so; the rest waits.
#[test]
fn requests_on_the_wire_are_lost() {
    for (connections, depth) in [(1, 8), (4, 1), (4, 8)] {
        let server =
            CoreOptions { service: Service::Fixed(2 * MS), ..gone(&[(4 * SECOND + MS / 2, 2 * SECOND)]) };
        let outcome = simulate(
            &format!(
                "rate = 450\narrival = 'uniform'\nconnections = {connections}\ndepth = {depth}\n\
                 time = '10s'\npreload = false"
            ),
            SimOptions::of(server).latency(3 * MS),
        );
        let requests = outcome.requests();
        let lost = requests.outcome(OutcomeClass::Lost);
        assert_eq!((requests.scheduled, requests.completed() + lost), (4_500, 4_500));
        assert_eq!(requests.unsent, 0);
        // A reply takes 8 ms at least, requests come every 2.2 ms.
        assert!((3..=4).contains(&lost) || lost == 8, "{connections} × {depth}: {lost} lost");
        let outages = outcome.outages();
        assert_eq!((outages.len(), outages[0].failed), (1, lost), "{outages:?}");
    }
}

#[test]
fn each_outage_is_one_row() {
    let spans = [(SECOND, 300 * MS), (2 * SECOND, 50 * MS), (4 * SECOND, 700 * MS)];
    let outcome = simulate(
        "rate = 2000\narrival = 'uniform'\nconnections = 8\ndepth = 4\ntime = '6s'\npreload = false",
        SimOptions::of(gone(&spans)).latency(20 * US),
    );
    let outages = outcome.outages();
    assert_eq!(outages.len(), 3, "{outages:?}");
    for (outage, (at_ns, for_ns)) in outages.iter().zip(spans) {
        assert!((outage.start_ns - outcome.start_ns()).abs_diff(at_ns) <= 100 * US, "{outage:?}");
        let late_ns = outage.length_ns().unwrap() - for_ns;
        assert!(late_ns <= 25 * MS, "{outage:?}");
        assert!(outage.recovered_ns.is_some());
    }
}

/// A server that is still gone when the run ends: the table says so, and what could not be sent is unsent.
#[test]
fn an_outage_may_be_open_at_the_end() {
    let outcome = simulate(
        "rate = 1000\narrival = 'uniform'\nconnections = 4\ntime = '6s'\ndrain = '1s'\npreload = false",
        SimOptions::of(gone(&[(4 * SECOND + MS / 2, 100 * SECOND)])),
    );
    let requests = outcome.requests();
    assert_eq!((requests.scheduled, requests.completed(), requests.unsent), (6_000, 4_001, 1_999));
    let outages = outcome.outages();
    assert_eq!(outages.len(), 1);
    assert_eq!((outages[0].start_ns, outages[0].end_ns), (outcome.start_ns() + 4 * SECOND + MS / 2, None));
    assert_eq!(outcome.end.data.times.drained_ns, outcome.end.data.times.end_ns + SECOND);
}

/// Silence while replies are due is an outage, too.
#[test]
fn a_stall_is_an_outage() {
    let stall = Stall { at_ns: 3 * SECOND + MS / 2, for_ns: SECOND };
    let outcome = simulate(
        "rate = 1000\narrival = 'uniform'\nconnections = 4\ntime = '6s'\npreload = false",
        SimOptions::of(CoreOptions { stalls: vec![stall], ..CoreOptions::default() }),
    );
    let outages = outcome.outages();
    assert_eq!(outages.len(), 1);
    // From the first request that had no reply.
    let start_ns = outcome.start_ns() + 3 * SECOND + MS;
    assert_eq!((outages[0].start_ns, outages[0].length_ns()), (start_ns, Some(SECOND - MS / 2)));
    assert_eq!(
        (outages[0].kinds.iter().collect::<Vec<_>>(), outages[0].failed),
        (vec![OutageKind::Stalled], 0)
    );
}

/// A closed loop waits for the server, and does as much as it was told to.
#[test]
fn closed_loops_survive_outages() {
    for (connections, depth, think) in [(1, 1, "0s"), (8, 4, "0s"), (8, 1, "1ms")] {
        let outcome = simulate(
            &format!("connections = {connections}\ndepth = {depth}\nthink = '{think}'\nrequests = 20000"),
            SimOptions::of(CoreOptions {
                script_after: 100,
                service: Service::Fixed(10 * US),
                ..gone(&[(50 * MS, 100 * MS), (200 * MS, 3 * MS)])
            })
            .latency(20 * US),
        );
        let requests = outcome.requests();
        let lost = requests.outcome(OutcomeClass::Lost);
        assert_eq!((requests.scheduled, requests.completed() + lost + requests.unsent), (20_000, 20_000));
        assert!(lost + requests.unsent <= 2 * connections * depth, "{requests:?}");
        // One that was short enough for everybody to be back at once is no row.
        let outages = outcome.outages();
        assert_eq!(outages.len(), 1, "{outages:?}");
        assert!((100 * MS..125 * MS).contains(&outages[0].length_ns().unwrap()), "{outages:?}");
    }
}

/// A number of requests that nobody will ever answer is no reason to wait for ever.
#[test]
fn a_server_that_dies_ends_a_run_by_number() {
    for load in ["", "rate = 3000", "calls-per-connection = 5", "connect-rate = 50"] {
        for connections in [1, 4] {
            let outcome = simulate(
                &format!(
                    "{load}\nconnections = {connections}\nrequests = 1000000\ntimeout = '1s'\n\
                     preload = false"
                ),
                SimOptions::of(gone(&[(500 * MS, 1_000_000 * SECOND)])).latency(20 * US),
            );
            let requests = outcome.requests();
            assert!(requests.completed() > 0 && requests.scheduled < 1_000_000);
            assert_eq!(requests.scheduled, requests.ended() + requests.unsent, "{requests:?}");
            let lasted_ns = outcome.end.data.times.drained_ns - outcome.start_ns();
            assert!((5_400 * MS..5_800 * MS).contains(&lasted_ns), "{load}: {lasted_ns}");
            assert_eq!(outcome.outages()[0].end_ns, None);
        }
    }
}

/// Connections that come seldom are not a server that is gone.
#[test]
fn a_pause_between_connections_is_no_outage() {
    let outcome = simulate(
        "connect-rate = 0.1\ncalls-per-connection = 2\nconnections = 1\nrequests = 7\nkeys = 10\n\
         timeout = '1s'",
        SimOptions::default().latency(20 * US),
    );
    assert_eq!(outcome.requests().completed(), 7);
    assert_eq!(outcome.outages(), []);
}

/// An outage while keys are stored: they are stored all the same, whichever class's connections it hits.
#[test]
fn preload_survives_an_outage() {
    let outcome = simulate(
        "time = '100ms'\nkeys = 5000\n[[class]]\nname = 'first'\nconnections = 2\nmix = 'get'\n[[class]]\n\
         name = 'second'\nconnections = 3\nmix = 'get'\nrate = 100",
        SimOptions::of(CoreOptions { service: Service::Fixed(10 * US), ..gone(&[(20 * MS, 30 * MS)]) })
            .latency(20 * US),
    );
    assert_eq!((outcome.notice.is_none(), outcome.items), (true, vec![5_000]));
}

/// Attempts to which nobody ever says anything are given up, however many wait behind them.
#[test]
fn attempts_that_hang_are_given_up() {
    let silence = ConnectFault { first: 200, every: 1, count: 300, trouble: ConnectTrouble::Silence };
    let outcome = simulate(
        "rate = 1000\narrival = 'uniform'\nconnections = 200\ntime = '10s'\npreload = false\n\
         timeout = '500ms'\ndrain = '10s'",
        SimOptions { connect_faults: vec![silence], ..SimOptions::of(gone(&[(SECOND + MS / 2, MS / 4)])) },
    );
    let requests = outcome.requests();
    // A second without a connection, half of it longer than the time-out.
    assert_eq!((requests.unsent, requests.completed() + requests.abandoned), (requests.abandoned, 10_000));
    assert!((450..=550).contains(&requests.abandoned), "{requests:?}");
    assert_eq!(outcome.outages().iter().map(|outage| outage.failed).sum::<u64>(), requests.abandoned);
    let timed_out = outcome.store.faults().rows().iter().filter(|row| row.kind == FaultKind::TimedOut);
    assert_eq!(timed_out.map(|row| row.count).sum::<u64>(), 300);
}

/// Attempts that fail on our own side are counted by their reason, and tried again.
#[test]
fn attempts_that_fail_here_are_counted() {
    for (errno, kind) in [
        (libc::EADDRNOTAVAIL, FaultKind::NoPort),
        (libc::EMFILE, FaultKind::NoDescriptor),
        (libc::ENFILE, FaultKind::NoFile),
        (libc::ETIMEDOUT, FaultKind::SocketTimedOut),
        (libc::ENETUNREACH, FaultKind::Other(libc::ENETUNREACH)),
    ] {
        for trouble in [ConnectTrouble::AtOnce(errno), ConnectTrouble::Later(errno)] {
            let outcome = simulate(
                "rate = 1000\narrival = 'uniform'\nconnections = 1\ndepth = 4\ntime = '2s'\n\
                 calls-per-connection = 100\npreload = false",
                SimOptions {
                    connect_faults: vec![ConnectFault { first: 5, every: 1, count: 6, trouble }],
                    ..SimOptions::default().latency(10 * US)
                },
            );
            let requests = outcome.requests();
            assert_eq!((requests.scheduled, requests.completed()), (2_000, 2_000));
            let rows = outcome.store.faults().rows();
            assert_eq!((rows.len(), rows[0].kind, rows[0].count), (1, kind, 6), "{rows:?}");
            assert_eq!(outcome.connections().failed, 6);
        }
    }
}
