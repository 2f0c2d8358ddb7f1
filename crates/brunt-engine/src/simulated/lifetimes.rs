//! Connections that come and go by plan: how many, when, and what the requests between two of them see.

use super::*;

/// A way there and back.
const TRIP_NS: u64 = 100 * US;

fn world() -> SimOptions {
    SimOptions { connect_ns: 300 * US, ..SimOptions::default().latency(TRIP_NS / 2) }
}

/// Attempts to connect from the start of the schedule on, counted from it.
fn attempts_ns(outcome: &Outcome) -> Vec<u64> {
    let since = |at_ns: u64| at_ns.checked_sub(outcome.start_ns());
    outcome.attempts.iter().filter_map(|attempt| since(attempt.at_ns)).collect()
}

/// One connection in closed loop: the first call on each is due when the connection is there, the others when the
/// former is done; so many calls need so many connections.
#[test]
fn calls_wait_for_their_connection() {
    for (calls, requests) in [(1, 100), (7, 1_000), (7, 700), (250, 1_000)] {
        let outcome = simulate(
            &format!(
                "connections = 1\nrequests = {requests}\nkeys = 10\ncalls-per-connection = {calls}\n\
                 meter = ['connection-time']"
            ),
            world(),
        );
        let mut free_ns = outcome.start_ns();
        for (nth, sample) in outcome.samples.iter().enumerate() {
            assert_eq!(sample.times.intended_ns, free_ns, "request {nth} of {calls} a connection");
            assert_eq!(sample.times.response_ns(), TRIP_NS);
            let is_last_call = (nth + 1) % calls == 0;
            free_ns = sample.times.done_ns + if is_last_call { TRIP_NS + 300 * US } else { 0 };
        }
        let counts = outcome.connections();
        assert_eq!(counts.retired, (requests / calls) as u64);
        assert_eq!((counts.failed, counts.lost), (0, 0));
        let time = outcome.meter(MeterKind::ConnectTime).histogram.moments();
        assert_eq!((time.count, time.min, time.max), (counts.established, 400_000, 400_000));
        // From the attempt to the end, of those that have ended. The first one stood before there were requests.
        let lives = outcome.meter(MeterKind::ConnectionTime).histogram.moments();
        let lived_ns = 400_000 + calls as u64 * TRIP_NS;
        assert_eq!((lives.count, lives.min), (counts.retired, lived_ns));
    }
}

/// In open loop requests keep their intended times; those that find no connection wait for it.
#[test]
fn open_loops_wait_for_connections_beside_their_schedule() {
    for (rate, connections, depth, calls) in [(1_000, 1, 1, 5), (2_000, 4, 1, 1), (5_000, 3, 4, 9)] {
        let outcome = simulate(
            &format!(
                "rate = {rate}\narrival = 'uniform'\nconnections = {connections}\ndepth = {depth}\n\
                 time = '1s'\nkeys = 10\ncalls-per-connection = {calls}"
            ),
            world(),
        );
        let requests = outcome.requests();
        assert_eq!((requests.scheduled, requests.completed()), (rate, rate));
        for (nth, sample) in outcome.samples.iter().enumerate() {
            assert_eq!(sample.times.intended_ns, outcome.start_ns() + nth as u64 * SECOND / rate);
            assert_eq!(sample.times.service_ns(), TRIP_NS);
        }
        // A gap of a millisecond is longer than it takes to connect.
        let late = outcome.samples.iter().filter(|sample| sample.times.response_ns() > TRIP_NS).count();
        assert!(rate > 1_000 || late == 0, "{late}");
        let counts = outcome.connections();
        assert!(
            counts.retired * calls <= rate && rate <= (counts.retired + connections) * calls,
            "{counts:?}"
        );
    }
}

/// However deep the pipeline, a connection carries as many requests as it was told to, and not one more.
#[test]
fn pipelines_end_with_the_last_call() {
    for (load, connections, depth, calls) in
        [("", 1, 8, 10), ("", 4, 8, 3), ("rate = 20000", 2, 8, 10), ("", 3, 2, 5)]
    {
        for mix in ["get", "get,set"] {
            let noreply = mix == "get,set";
            let outcome = simulate(
                &format!(
                    "{load}\nconnections = {connections}\ndepth = {depth}\nrequests = 3000\nkeys = 10\n\
                     mix = '{mix}'\nnoreply = {noreply}\ncalls-per-connection = {calls}",
                ),
                world(),
            );
            let requests = outcome.requests();
            assert_eq!((requests.scheduled, requests.failed(), requests.unsent), (3_000, 0, 0));
            let counts = outcome.connections();
            let bounds = counts.retired * calls..=(counts.retired + connections) * calls;
            assert!(bounds.contains(&3_000), "{load} {counts:?}");
            // What was sent on a connection that then ended has arrived.
            assert_eq!(
                outcome.counters[0].cmd_set - 10,
                requests.outcome(OutcomeClass::Unacknowledged),
                "{load}"
            );
        }
    }
}

/// The last connection is the end of the run: all calls that there were connections for, and nothing beside.
#[test]
fn the_last_connection_ends_the_run() {
    for (load, noreply) in [("", false), ("think = '1ms'", false), ("rate = 5000", false), ("", true)] {
        for (connections, total, calls, depth) in [(1, 1, 1, 1), (4, 20, 5, 1), (4, 23, 5, 3), (3, 3, 40, 8)]
        {
            let outcome = simulate(
                &format!(
                    "{load}\nconnections = {connections}\ndepth = {depth}\nkeys = 10\nmix = 'set'\n\
                     noreply = {noreply}\ncalls-per-connection = {calls}\nconnections-total = {total}"
                ),
                world(),
            );
            let requests = outcome.requests();
            assert_eq!(requests.sent, total * calls, "{load} {total} connections");
            assert_eq!((requests.failed(), requests.in_flight), (0, 0));
            assert!(load.starts_with("rate") || requests.unsent == 0, "{requests:?}");
            let counts = outcome.connections();
            assert_eq!((counts.established, counts.retired, counts.failed), (total, total, 0), "{load}");
            assert_eq!(outcome.counters[0].total_connections, total);
        }
    }
}

/// A number of requests that there are not enough connections for ends with what they can carry: also where only one of
/// several servers, or of several classes, has connections left.
#[test]
fn requests_without_connections_are_no_reason_to_wait() {
    let servers = "server = ['a', 'b']\nplacement = 'round-robin'";
    for (load, classes) in [
        ("", ""),
        ("rate = 5000", ""),
        ("", servers),
        ("rate = 5000", servers),
        ("connect-rate = 1000\nrate = 5000", servers),
        ("", "[[class]]\nname = 'ends'\n[[class]]\nname = 'goes-on'\nconnections-total = 10000"),
    ] {
        let outcome = simulate(
            &format!(
                "requests = 1000\n{}\n{load}\nconnections = 4\nkeys = 10\nmix = 'get'\n\
                 calls-per-connection = 7\nconnections-total = 21\n{}",
                if classes == servers { servers } else { "" },
                if classes == servers { "" } else { classes },
            ),
            SimOptions { others: vec![CoreOptions::default()], ..world() },
        );
        let requests = outcome.requests();
        assert_eq!((requests.failed(), requests.in_flight), (0, 0));
        let carried = if classes.contains("class") { 21 * 7 + 500 } else { 21 * 7 };
        // Of several servers the one whose connections were used up first leaves those of the other unused.
        let unused = if classes == servers { 3 * 7 } else { 0 };
        assert!((carried - unused..=carried).contains(&requests.sent), "{load} {classes}: {requests:?}");
        assert!(outcome.end.data.times.drained_ns - outcome.start_ns() < 2 * SECOND, "{load} {classes}");
    }
}

/// By age, too: the first ones live a part of it.
#[test]
fn connections_end_by_age_evenly_spread() {
    let outcome = simulate(
        "rate = 1000\narrival = 'uniform'\nconnections = 4\ntime = '10s'\nkeys = 10\nreconnect-every = '1s'",
        SimOptions::default(),
    );
    let expected: Vec<u64> = (1..40).map(|nth| nth * 250 * MS).collect();
    assert_eq!(attempts_ns(&outcome), expected);
    let requests = outcome.requests();
    assert_eq!((requests.scheduled, requests.completed()), (10_000, 10_000));
    assert!(outcome.samples.iter().all(|sample| sample.times.response_ns() == 0));
}

/// An age that passes while a reply is due ends the connection when the reply has come.
#[test]
fn an_end_by_age_waits_for_replies() {
    for (load, total) in [("", ""), ("rate = 3000", ""), ("", "connections-total = 30")] {
        let outcome = simulate(
            &format!(
                "{load}\nconnections = 3\ndepth = 4\ntime = '2s'\nkeys = 10\nreconnect-every = '50ms'\n\
                 {total}"
            ),
            SimOptions { server: serving(200 * US), ..world() },
        );
        let requests = outcome.requests();
        assert_eq!((requests.failed(), requests.unsent, requests.in_flight), (0, 0, 0), "{load} {total}");
        let counts = outcome.connections();
        if total.is_empty() {
            // Three connections with 40 lives each.
            assert!((110..=120).contains(&counts.retired), "{counts:?}");
        } else {
            assert_eq!((counts.established, counts.retired), (30, 30));
        }
    }
}

/// Births keep their slots to the nanosecond.
#[test]
fn connections_open_on_their_schedule() {
    for (rate, load) in [(100, ""), (3_000, ""), (100, "rate = 500\narrival = 'uniform'")] {
        let outcome = simulate(
            &format!(
                "{load}\nconnections = 10\ntime = '1s'\nkeys = 10\nconnect-rate = {rate}\n\
                 calls-per-connection = 1"
            ),
            world(),
        );
        let expected: Vec<u64> = (0..rate).map(|nth| nth * SECOND / rate).collect();
        let mut attempts = attempts_ns(&outcome);
        // What is left of an open loop's requests when the window is over needs connections, too.
        attempts.retain(|at_ns| *at_ns < SECOND);
        assert_eq!(attempts, expected, "{load}");
        // In closed loop every connection has its one call, due when it is there.
        if load.is_empty() {
            let due_ns: Vec<u64> = expected.iter().map(|at_ns| at_ns + 400 * US).collect();
            assert_eq!(outcome.intended_ns(), due_ns[..outcome.samples.len()]);
            assert!((outcome.samples.len() as u64).abs_diff(rate) <= 2);
        }
    }
}

/// Other laws space births as they space requests, with random numbers of their own.
#[test]
fn connections_open_by_a_distribution() {
    for law in ["poisson", "uniform:0,2", "exponential:1", "mmpp:4,100ms,0.1"] {
        let plan = plan(&format!(
            "connections = 200\ntime = '1s'\nkeys = 10\nconnect-rate = 500\nconnect-arrival = '{law}'\n\
             rate = 1000\narrival = 'poisson'\ncalls-per-connection = 1"
        ));
        let rate = brunt_plan::units::Rate::per_second(500);
        let whole = brunt_plan::shard::Portion { first: 0, width: 1, of: 1 };
        let mut births =
            brunt_workload::arrivals::Arrivals::of_connects(&law.parse().unwrap(), rate, whole, plan.seed, 0);
        let outcome = simulate_plan(plan, world());
        let mut attempts = attempts_ns(&outcome);
        attempts.retain(|at_ns| *at_ns < SECOND);
        let mut expected = Vec::new();
        while births.peek_ns() < SECOND {
            expected.push(births.peek_ns());
            births.advance();
        }
        assert_eq!(attempts, expected, "{law}");
        let first_requests =
            outcome.samples.iter().map(|sample| sample.times.intended_ns - outcome.start_ns());
        assert!(!first_requests.take(5).eq(expected.into_iter().take(5)), "{law}");
    }
}

/// Births wait while the class has as many connections as it may.
#[test]
fn connections_never_exceed_the_limit() {
    let outcome = simulate(
        "connections = 2\ntime = '1s'\nkeys = 10\nconnect-rate = 1000\ncalls-per-connection = 1",
        SimOptions::default().latency(5 * MS),
    );
    let attempts = attempts_ns(&outcome);
    // Each takes 10 ms to be there and 10 ms for its call.
    let expected: Vec<u64> = (0..50).flat_map(|nth| [nth * 20 * MS, nth * 20 * MS + MS]).collect();
    assert_eq!(attempts, expected);
}

/// An attempt that is under way when the schedule begins is one of the connections of it.
#[test]
fn attempts_under_way_at_the_start_count() {
    for load in ["", "rate = 1000", "connect-rate = 500", "connect-rate = 500\nrate = 1000"] {
        let outcome = simulate(
            &format!(
                "{load}\nconnections = 2\nmix = 'get'\ncalls-per-connection = 5\nconnections-total = 10"
            ),
            SimOptions {
                // The last store of the preload is made again on the other connection, while this one is replaced.
                server: CoreOptions {
                    faults: Faults { reset_every: brunt_server::Every::new(100), ..Faults::default() },
                    ..CoreOptions::default()
                },
                connect_ns: 3 * MS,
                ..world()
            },
        );
        let requests = outcome.requests();
        assert_eq!((requests.sent, requests.completed()), (50, 50), "{load}");
        let counts = outcome.connections();
        // Births by a schedule replace those of the preload.
        let first = if load.starts_with("connect-rate") { 1 } else { 0 };
        assert_eq!((counts.retired, counts.lost), (10 + first, 1), "{load} {counts:?}");
        assert!(outcome.samples.iter().all(|sample| sample.times.intended_ns >= outcome.start_ns()));
    }
}

/// Sessions of one connection have lifetimes as well.
#[test]
fn sessions_of_one_connection_have_lifetimes() {
    for load in ["", "rate = 2000"] {
        let mut plan =
            plan(&format!("{load}\nconnections = 5\nrequests = 2000\nkeys = 10\ncalls-per-connection = 3"));
        plan.classes[0].sessions = brunt_plan::plan::SessionScope::Connection;
        let outcome = simulate_plan(plan, world());
        let requests = outcome.requests();
        assert_eq!((requests.scheduled, requests.completed()), (2_000, 2_000));
        assert!(outcome.connections().retired.abs_diff(2_000 / 3) <= 5);
    }
}

/// A schedule of connections, each with its calls one after another: they are begun at their times whatever has become of those
/// before, and the run is over with the last.
#[test]
fn connections_are_the_unit_of_load() {
    let outcome = simulate(
        "connections = 100\nkeys = 10\nconnect-rate = 1000\ncalls-per-connection = 30\n\
         connections-total = 100",
        world(),
    );
    let expected: Vec<u64> = (0..100).map(|nth| nth * MS).collect();
    assert_eq!(attempts_ns(&outcome), expected);
    // Each lives for longer than the next one waits.
    let lived_ns = TRIP_NS + 300 * US + 30 * TRIP_NS;
    assert_eq!(outcome.samples.last().unwrap().times.done_ns, outcome.start_ns() + 99 * MS + lived_ns);
    // A call is due when the connection is there, the others when the former is done.
    let mut due_ns: Vec<u64> = (0..100)
        .flat_map(|nth| (0..30).map(move |call| nth * MS + TRIP_NS + 300 * US + call * TRIP_NS))
        .map(|since_ns| outcome.start_ns() + since_ns)
        .collect();
    let mut intended_ns: Vec<u64> = outcome.samples.iter().map(|sample| sample.times.intended_ns).collect();
    due_ns.sort_unstable();
    intended_ns.sort_unstable();
    assert_eq!(intended_ns, due_ns);
    assert!(outcome.samples.iter().all(|sample| sample.times.response_ns() == TRIP_NS));
    let counts = outcome.connections();
    assert_eq!((counts.established, counts.retired, counts.failed), (200, 200, 0));
}

/// A schedule of connections, each with a schedule of its calls: they are due at their gaps from when the connection is established,
/// whatever has become of those before, and are counted from then.
#[test]
fn connections_have_schedules_of_their_own() {
    for (service_ns, depth, calls) in [(0, "", 10), (3 * MS, "", 40), (3 * MS, "depth = 2", 25)] {
        let outcome = simulate(
            &format!(
                "connections = 20\n{depth}\nkeys = 10\nmix = 'get'\nconnect-rate = 100\ncall-rate = 1000\n\
                 calls-per-connection = {calls}\nconnections-total = 20"
            ),
            SimOptions { server: serving(service_ns), ..world() },
        );
        let births: Vec<u64> = (0..20).map(|nth| nth * 10 * MS).collect();
        assert_eq!(attempts_ns(&outcome), births);
        let mut due_ns: Vec<u64> = births
            .iter()
            .flat_map(|at_ns| (0..calls).map(move |call| at_ns + 400 * US + call * MS))
            .collect();
        due_ns.sort_unstable();
        let mut intended_ns = outcome.intended_ns();
        intended_ns.sort_unstable();
        assert_eq!(intended_ns, due_ns, "{service_ns} {depth}");
        let requests = outcome.requests();
        assert_eq!((requests.scheduled, requests.completed(), requests.unsent), (20 * calls, 20 * calls, 0));
        for sample in &outcome.samples {
            match (service_ns, depth) {
                (0, _) => assert_eq!(sample.times.response_ns(), TRIP_NS),
                // However many replies are out.
                (_, "") => assert_eq!(sample.times.sent_ns, sample.times.intended_ns),
                _ => assert!(sample.times.response_ns() >= TRIP_NS + service_ns),
            }
        }
        let counts = outcome.connections();
        assert_eq!((counts.retired, counts.failed, counts.lost), (20 + 20, 0, 0));
    }
}

/// Gaps are a function of plan and seed: a server that is slower finds the same calls on each connection, and no two connections
/// have the same gaps.
#[test]
fn gaps_of_calls_are_drawn_for_each_connection() {
    for law in ["poisson", "uniform:0,2", "mmpp:4,100ms,0.1"] {
        let intended_ns = |service_ns| {
            let outcome = simulate(
                &format!(
                    "connections = 1\nkeys = 10\nmix = 'get'\nconnect-rate = 10\ncall-rate = 1000\n\
                     call-arrival = '{law}'\ncalls-per-connection = 20\nconnections-total = 30"
                ),
                SimOptions { server: serving(service_ns), ..world() },
            );
            assert_eq!(outcome.requests().completed(), 600, "{law}");
            let mut intended_ns = outcome.intended_ns();
            intended_ns.sort_unstable();
            intended_ns
        };
        let fast = intended_ns(0);
        assert_eq!(fast, intended_ns(2 * MS), "{law}");
        let of_connections: Vec<Vec<u64>> =
            fast.chunks(20).map(|own| own.iter().map(|at_ns| at_ns - own[0]).collect()).collect();
        for (nth, own) in of_connections.iter().enumerate() {
            assert_eq!(fast[nth * 20], nth as u64 * 100 * MS + 400 * US, "{law}");
            assert!(!of_connections[..nth].contains(own), "{law} {nth}");
        }
    }
}

/// A connection that is lost takes its calls along: what was due and had not left is given up, what would have been due later
/// is no request. The next one has all its calls.
#[test]
fn calls_end_with_their_connection() {
    for (service_ns, depth) in [(0, 8), (3 * MS, 1)] {
        let outcome = simulate(
            &format!(
                "connections = 1\ndepth = {depth}\npreload = false\nkeys = 10\nmix = 'get'\n\
                 call-rate = 1000\ntime = '1s'\ncalls-per-connection = 40"
            ),
            SimOptions {
                server: CoreOptions {
                    faults: Faults { reset_every: brunt_server::Every::new(25), ..Faults::default() },
                    ..serving(service_ns)
                },
                ..world()
            },
        );
        let requests = outcome.requests();
        let counts = outcome.connections();
        assert!(counts.lost > 5, "{counts:?}");
        let lives = counts.lost + counts.retired;
        assert!(requests.scheduled < (lives + 1) * 40 && requests.scheduled > lives * 15, "{requests:?}");
        assert_eq!(requests.unsent == 0, depth == 8, "{requests:?}");
        if depth == 8 {
            // All but the last is answered before it.
            let first_life: Vec<u64> = outcome.intended_ns()[..25].to_vec();
            let expected: Vec<u64> = (0..25).map(|call| call * MS).collect();
            assert_eq!(first_life, expected);
            let second_ns = expected[24] + TRIP_NS + TRIP_NS + 300 * US;
            assert_eq!(outcome.intended_ns()[25], second_ns);
            assert_eq!(requests.outcome(OutcomeClass::Lost), counts.lost);
        }
    }
}

/// Connections that never end have as many calls as fit into the time, or as the plan has requests.
#[test]
fn schedules_of_connections_end_with_the_run() {
    for (bound, connections, expected) in [
        ("time = '1s'", 1, 1_000),
        ("time = '1s'", 7, 7_000),
        ("requests = 1000", 4, 1_000),
        ("requests = 1000\nconnect-rate = 50\ncalls-per-connection = 30", 4, 1_000),
        ("connect-rate = 2\ncalls-per-connection = 3\nconnections-total = 5", 5, 15),
        ("noreply = true\nconnect-rate = 20\ncalls-per-connection = 30\nconnections-total = 50", 5, 1_500),
    ] {
        let outcome = simulate(
            &format!("connections = {connections}\nkeys = 10\nmix = 'set'\ncall-rate = 1000\n{bound}"),
            world(),
        );
        let requests = outcome.requests();
        assert_eq!(
            (requests.scheduled, requests.sent, requests.in_flight),
            (expected, expected, 0),
            "{bound}"
        );
    }
}
