//! How late the latest request of a busy period was, where the client is stopped again and again.
//!
//! Twice over. Each sample's busy lag equals the one that follows from the times of all samples, kept here event by event. And each
//! request would have taken, without stops, no less than its response time less busy lag and read gap: the same plan is run in the
//! same world without them. Not how the two make bounds of percentiles: `brunt-stats/src/bound.rs` has that.

use super::servers::homes;
use super::*;
use brunt_server::{Every, Faults};

/// The client is stopped for so long, first at so long after the world began, and again after that.
const STOP_NS: u64 = 3 * MS;
const FIRST_STOP_NS: u64 = EPOCH_NS + START_AHEAD_NS + 20 * MS + 7 * US;
const STOP_EVERY_NS: u64 = 23 * MS;
const LATENCY_NS: u64 = 20 * US;
const SERVICE_NS: u64 = 100 * US;

const PLAN: &str = "time = '300ms'\nkeys = 100000\npopularity = 'sequential'\npreload = false\n";
const THREE: &str = "server = ['a:1', 'b:2', 'c:3']\nplacement = 'modulo'\n";

fn world(is_stopped: bool) -> SimOptions {
    let server = || serving(SERVICE_NS);
    SimOptions {
        others: vec![server(), server()],
        pause: is_stopped.then_some((FIRST_STOP_NS, STOP_NS)),
        pause_every_ns: STOP_EVERY_NS,
        ..SimOptions::of(server()).latency(LATENCY_NS)
    }
}

fn run(toml: &str, is_stopped: bool) -> Outcome {
    simulate(&format!("{PLAN}{toml}"), world(is_stopped))
}

/// A request, or a part of one, at a server.
#[derive(Clone, Copy, Debug)]
struct Visit {
    server: usize,
    /// The sample that it belongs to.
    sample: usize,
    /// The sample whose miss it follows.
    follows: Option<usize>,
    late_ns: u64,
    picked_ns: u64,
    sent_ns: u64,
    /// Since when its reply may have lain unread.
    since_ns: u64,
    done_ns: u64,
}

impl Visit {
    fn of(server: usize, number: usize, sample: &Sample) -> Self {
        let times = &sample.times;
        Self {
            server,
            sample: number,
            follows: None,
            late_ns: times.client_lag_ns(),
            picked_ns: times.picked_ns,
            sent_ns: times.sent_ns,
            since_ns: times.polled_ns.max(times.sent_ns),
            done_ns: times.done_ns,
        }
    }
}

/// The largest lag of the busy period in which each visit ended, of visits to one server in the order in which it took them.
///
/// At each instant replies are read, in the order of asking; then what is due or waits is sent. A busy period lasts as long as
/// something is out or waits. Where something waits when a reply is read, the time that it lay unread adds to the lag if nothing else is
/// out, once for overlapping times; else it is a lag of its own.
fn busy_lags(visits: &[Visit]) -> Vec<u64> {
    let mut instants: Vec<u64> =
        visits.iter().flat_map(|visit| [visit.picked_ns, visit.sent_ns, visit.done_ns]).collect();
    instants.sort_unstable();
    instants.dedup();
    let mut lags = vec![0; visits.len()];
    let (mut lag_ns, mut is_busy) = (0, false);
    // Begin, end, and the lag before it.
    let mut unread = (0, 0, 0);
    for now_ns in instants {
        let at = |visit: &&Visit, ns: u64| ns == now_ns && visit.sent_ns <= now_ns;
        let mut out = visits.iter().filter(|visit| visit.sent_ns < now_ns && visit.done_ns >= now_ns).count();
        let mut waiting =
            visits.iter().filter(|visit| visit.picked_ns < now_ns && visit.sent_ns >= now_ns).count();
        for (index, visit) in visits.iter().enumerate().filter(|(_, visit)| at(visit, visit.done_ns)) {
            lags[index] = lag_ns;
            out -= 1;
            waiting += visits.iter().filter(|other| other.follows == Some(visit.sample)).count();
            if waiting > 0 && visit.since_ns < now_ns {
                if visit.since_ns >= unread.1 {
                    unread = (visit.since_ns, now_ns, lag_ns);
                }
                unread = (unread.0.min(visit.since_ns), unread.1.max(now_ns), unread.2);
                let late_ns = if out == 0 { unread.2 + now_ns - unread.0 } else { now_ns - visit.since_ns };
                lag_ns = lag_ns.max(late_ns);
            }
        }
        is_busy &= out + waiting > 0;
        for visit in visits.iter().filter(|visit| visit.picked_ns == now_ns || visit.sent_ns == now_ns) {
            if !std::mem::replace(&mut is_busy, true) {
                lag_ns = 0;
            }
            if visit.sent_ns == now_ns {
                lag_ns = lag_ns.max(visit.late_ns);
            }
        }
    }
    lags
}

/// Compares every sample's busy lag with that of its visits, but where requests that were due after the window, which leave no sample, are
/// beside it. Yields how many were later in their busy period than by themselves.
fn check(name: &str, outcome: &Outcome, visits: &[Visit]) -> usize {
    let mut expected_ns = vec![0; outcome.samples.len()];
    for server in 0..3 {
        let mut own: Vec<Visit> = visits.iter().filter(|visit| visit.server == server).copied().collect();
        own.sort_by_key(|visit| (visit.sent_ns, visit.sample));
        for (visit, lag_ns) in own.iter().zip(busy_lags(&own)) {
            expected_ns[visit.sample] = lag_ns.max(expected_ns[visit.sample]);
        }
    }
    let is_within = |(sample, _): &(&Sample, &u64)| sample.times.done_ns < outcome.end.data.times.end_ns;
    for (sample, expected_ns) in outcome.samples.iter().zip(&expected_ns).filter(is_within) {
        assert_eq!(sample.busy_lag_ns, Some(*expected_ns), "{name}: {sample:?}");
    }
    let is_later = |(sample, expected_ns): &(&Sample, &u64)| **expected_ns > sample.times.client_lag_ns();
    outcome.samples.iter().zip(&expected_ns).filter(is_later).count()
}

fn visits(outcome: &Outcome, server: impl Fn(usize) -> usize) -> Vec<Visit> {
    let samples = outcome.samples.iter().enumerate();
    samples.map(|(number, sample)| Visit::of(server(number), number, sample)).collect()
}

/// Of requests to one server, or of each to the one that has its key: connections with room for all, and with less.
#[test]
fn the_busy_lag_is_the_largest_since_the_server_was_idle() {
    let homes = homes("modulo", 100_000);
    let (here, at_home) = (|_: usize| 0, |number: usize| homes[number]);
    let of: [(&str, &dyn Fn(usize) -> usize); 9] = [
        ("rate = 4000\nconnections = 1\ndepth = 1000", &here),
        ("rate = 4000\nconnections = 7\ndepth = 1000", &here),
        ("rate = 4000\nconnections = 16\ndepth = 1", &here),
        ("rate = 5000\nconnections = 3\ndepth = 1", &here),
        ("rate = 3000\nconnections = 1\ndepth = 1", &here),
        ("rate = 12000\nconnections = 1\ndepth = 1", &here),
        ("rate = 12000\nconnections = 4\ndepth = 2", &here),
        (
            "rate = 9000\nconnections = 6\ndepth = 500\nserver = ['a:1', 'b:2', 'c:3']\nplacement = 'modulo'",
            &at_home,
        ),
        (
            "rate = 9000\nconnections = 3\ndepth = 1\nserver = ['a:1', 'b:2', 'c:3']\nplacement = 'modulo'",
            &at_home,
        ),
    ];
    for (toml, server) in of {
        let outcome = run(&format!("{toml}\nmix = 'get'"), true);
        let later = check(toml, &outcome, &visits(&outcome, server));
        assert!(later > outcome.samples.len() / 20, "{toml}: {later} of {}", outcome.samples.len());
    }
}

/// A multi-get ends in the busy periods of all servers that it asks; each is a queue of its own.
#[test]
fn a_multi_get_has_the_largest_of_its_servers() {
    let homes = homes("modulo", 100_000);
    let outcome =
        run(&format!("{THREE}rate = 2500\nconnections = 3\ndepth = 1000\nmix = 'mget'\nmultiget = 3"), true);
    let mut free_ns = [0; 3];
    let mut visits = Vec::new();
    for (number, sample) in outcome.samples.iter().enumerate() {
        let mut asked: Vec<usize> = (0..3).map(|key| homes[(number * 3 + key) % 100_000]).collect();
        asked.sort_unstable();
        asked.dedup();
        let mut last_ns = 0;
        for server in asked {
            free_ns[server] = free_ns[server].max(sample.times.sent_ns + LATENCY_NS) + SERVICE_NS;
            let came_ns = free_ns[server] + LATENCY_NS;
            let stopped_ns = came_ns.saturating_sub(FIRST_STOP_NS) % STOP_EVERY_NS;
            let is_stopped = came_ns > FIRST_STOP_NS && (1..STOP_NS).contains(&stopped_ns);
            let done_ns = if is_stopped { came_ns - stopped_ns + STOP_NS } else { came_ns };
            last_ns = last_ns.max(done_ns);
            visits.push(Visit { done_ns, ..Visit::of(server, number, sample) });
        }
        assert_eq!(sample.times.done_ns, last_ns, "{sample:?}");
    }
    let later = check("parts", &outcome, &visits);
    assert!(visits.len() > 3 * outcome.samples.len() / 2 && later > outcome.samples.len() / 20, "{later}");
}

/// A store that follows a miss is as late as the reply that told of the miss lay unread.
#[test]
fn follow_ups_are_as_late_as_the_misses_were_read() {
    for depth in [1, 1_000] {
        let outcome = run(
            &format!("rate = 2500\nconnections = 1\ndepth = {depth}\nmix = 'get'\non-miss = 'set'"),
            true,
        );
        let mut visits = visits(&outcome, |_| 0);
        let of = |kind| {
            let samples = outcome.samples.iter().enumerate();
            samples
                .filter(move |(_, sample)| sample.op.kind() == kind)
                .map(|(number, _)| number)
                .collect::<Vec<_>>()
        };
        let (gets, sets) = (of(OpKind::Get), of(OpKind::Set));
        // Every get misses; those that were read after the window are followed by no sample.
        assert!(gets.len() - sets.len() < 30, "{} {}", gets.len(), sets.len());
        gets.iter().zip(sets).for_each(|(get, set)| visits[set].follows = Some(*get));
        let later = check(&format!("depth {depth}"), &outcome, &visits);
        assert!(later > outcome.samples.len() / 20, "{later}");
    }
}

/// What is lost with its connection ends its part in the busy period; what waits for another goes on with it.
#[test]
fn a_lost_connection_ends_its_part_only() {
    for (connections, depth) in [(1, 1_000), (1, 1), (4, 1_000)] {
        let toml = format!("{PLAN}rate = 4000\nconnections = {connections}\ndepth = {depth}\nmix = 'get'");
        let mut world = world(true);
        world.server.faults = Faults { reset_every: Every::new(97), ..Faults::default() };
        let outcome = simulate(&toml, world);
        assert!(outcome.count(OutcomeClass::Lost) >= 10, "{}", outcome.count(OutcomeClass::Lost));
        check(&toml, &outcome, &visits(&outcome, |_| 0));
    }
}

/// With an open loop beside it, the requests of a closed one are part of the busy period; alone they have none.
#[test]
fn closed_loops_have_one_beside_an_open_loop() {
    let closed = "[[class]]\nname = 'load'\nconnections = 4\ndepth = 2\nthink = '3ms'\nmix = 'get'\n";
    let open = "[[class]]\nname = 'probe'\nrate = 2000\nconnections = 2\ndepth = 500\nmix = 'get'\n";
    let outcome = run(&format!("{closed}{open}"), true);
    let later = check("closed and open", &outcome, &visits(&outcome, |_| 0));
    let of = |class| outcome.samples.iter().filter(|sample| sample.class == class).count();
    assert!(of(0) > 300 && of(1) > 300 && later > 50, "{} {} {later}", of(0), of(1));
    let alone = run(closed, true);
    assert!(alone.samples.len() > 300);
    assert!(alone.samples.iter().all(|sample| sample.busy_lag_ns.is_none()));
}

/// R − M − min(g, S) ≤ R\* ≤ R of each request, R\* that of the same request without stops; with the request's own lag in the place of
/// M it is above R\* for many. Each server takes the requests in the same order with stops and without; where it does not (overdue requests
/// over several deep connections, follow-ups between others) this holds of the k-th departure, not of each request.
#[test]
fn no_request_would_have_taken_less_without_stops() {
    let table = [
        ("rate = 4000\nconnections = 1\ndepth = 1000\nmix = 'get'", "deep"),
        ("rate = 4000\nconnections = 16\ndepth = 1\nmix = 'get'", "as many connections as requests"),
        ("rate = 5000\nconnections = 3\ndepth = 1\nmix = 'get'", "some wait"),
        ("rate = 3000\nconnections = 1\ndepth = 1\nmix = 'get'", "one at a time"),
        ("rate = 12000\nconnections = 1\ndepth = 1\nmix = 'get'", "more than one connection takes"),
        ("rate = 12000\nconnections = 4\ndepth = 1\nmix = 'get'", "more than the server takes"),
    ];
    let several = format!("{THREE}rate = 9000\nconnections = 3\ndepth = 1000\nmix = 'get'");
    let parts = format!("{THREE}rate = 2500\nconnections = 3\ndepth = 1000\nmix = 'mget'\nmultiget = 3");
    for (toml, name) in table.into_iter().chain([(several.as_str(), "servers"), (parts.as_str(), "parts")]) {
        let (stopped, calm) = (run(toml, true), run(toml, false));
        assert_eq!(stopped.samples.len(), calm.samples.len(), "{name}");
        let mut above = 0;
        for (sample, calm) in stopped.samples.iter().zip(&calm.samples) {
            let calm_ns = check_bounds(name, sample, calm);
            above += usize::from(sample.times.response_without_client_ns() > calm_ns);
        }
        assert!(above > stopped.samples.len() / 100, "{name}: {above} of {}", stopped.samples.len());
    }
}

/// The response time without stops lies between the bounds of the request. Yields it.
fn check_bounds(name: &str, sample: &Sample, calm: &Sample) -> u64 {
    let (times, calm_ns) = (&sample.times, calm.times.response_ns());
    let range_ns = times.least_response_ns(sample.busy_lag_ns.unwrap())..=times.response_ns();
    assert!(range_ns.contains(&calm_ns), "{name}: {calm_ns} is not in {range_ns:?}: {sample:?}");
    calm_ns
}

/// Picked in time and handed over late: the stop lies between the two, or in the sends to other connections before it. What was due meanwhile
/// is late by itself, and the queue that all of them build is the client's.
#[test]
fn a_stop_between_pick_and_send_is_the_clients() {
    let table = [
        ("rate = 4000\nconnections = 1\ndepth = 1000\nmix = 'get'", "deep"),
        ("rate = 4000\nconnections = 16\ndepth = 1\nmix = 'get'", "as many connections as requests"),
        ("rate = 5000\nconnections = 3\ndepth = 1\nmix = 'get'", "some wait"),
    ];
    for (toml, name) in table {
        let toml = format!("{PLAN}{toml}");
        let stopped = simulate(&toml, SimOptions { pauses_in_send: true, ..world(true) });
        let calm = simulate(&toml, world(false));
        assert_eq!(stopped.samples.len(), calm.samples.len(), "{name}");
        let handed_over_late = |sample: &&Sample| sample.times.connection_wait_ns() > STOP_NS / 2;
        assert!(stopped.samples.iter().filter(handed_over_late).count() > 5, "{name}");
        for (sample, calm) in stopped.samples.iter().zip(&calm.samples) {
            check_bounds(name, sample, calm);
        }
    }
}
