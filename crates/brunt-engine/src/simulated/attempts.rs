//! Attempts to connect that count, whatever becomes of them: so many are begun and no more, and none before the
//! schedule. One that fails in its connection setup counts as one, however far it got.

use crate::run::blueprint::{Blueprint, DataSets, build};
use crate::run_error::{RunError, ServerFailure};
use crate::simulated::sim::{ConnectFault, ConnectTrouble, Sim, SimOptions};
use crate::simulated::*;
use crate::state::recording::Exchange;
use crate::worker::pace::Cpus;
use crate::worker::{Notice, Orders, Worker};
use brunt_plan::outcome::ReplyKind;
use brunt_plan::shard::shards;
use brunt_proto::resp::RespCodec;
use brunt_server::{CoreOptions, Every};
use brunt_stats::connection::FaultKind;
use std::num::NonZeroU64;
use std::sync::Arc;

/// A way there and back, and how much longer it takes to connect.
const TRIP_NS: u64 = 100 * US;
const CONNECT_NS: u64 = 300 * US;

fn world() -> SimOptions {
    SimOptions { connect_ns: CONNECT_NS, ..SimOptions::default().latency(TRIP_NS / 2) }
}

/// Attempts that all go wrong so.
fn all(trouble: ConnectTrouble) -> SimOptions {
    let fault = ConnectFault { first: 0, every: 1, count: u64::MAX, trouble };
    SimOptions { connect_faults: vec![fault], ..world() }
}

/// So many attempts of `connections` at a time, each for so many calls.
fn counted(connections: u64, total: u64, calls: u64, more: &str) -> String {
    format!(
        "connections = {connections}\nconnections-total = {total}\ncalls-per-connection = {calls}\n\
         reconnect = 'never'\npreload = false\nmix = 'set'\n{more}"
    )
}

/// When attempts were begun, from the start of the schedule on.
fn attempts_ns(outcome: &Outcome) -> Vec<u64> {
    outcome.attempts.iter().map(|attempt| attempt.at_ns - outcome.start_ns()).collect()
}

fn rows(outcome: &Outcome) -> Vec<(FaultKind, u64)> {
    outcome.store.faults().rows().iter().map(|row| (row.kind, row.count)).collect()
}

/// How long the run took.
fn taken_ns(outcome: &Outcome) -> u64 {
    outcome.end.data.times.drained_ns - outcome.start_ns()
}

/// A server that nobody can connect to is a result: one attempt after another, each at once when the former has failed.
#[test]
fn failed_attempts_are_not_repeated() {
    use ConnectTrouble::{AtOnce, Later, Silence};
    let table = [
        (Later(libc::ECONNREFUSED), FaultKind::Refused, TRIP_NS),
        (AtOnce(libc::ECONNREFUSED), FaultKind::Refused, 0),
        (AtOnce(libc::ENOENT), FaultKind::Other(libc::ENOENT), 0),
        (AtOnce(libc::EMFILE), FaultKind::NoDescriptor, 0),
        (AtOnce(libc::ENFILE), FaultKind::NoFile, 0),
        (AtOnce(libc::EADDRNOTAVAIL), FaultKind::NoPort, 0),
        (Later(libc::ETIMEDOUT), FaultKind::SocketTimedOut, TRIP_NS),
        (Silence, FaultKind::TimedOut, 50 * MS),
    ];
    for (trouble, kind, each_ns) in table {
        let outcome = simulate(&counted(1, 3, 5, "connect-timeout = '50ms'"), all(trouble));
        assert!(outcome.notice.is_none(), "{trouble:?}");
        assert_eq!(attempts_ns(&outcome), [0, each_ns, 2 * each_ns], "{trouble:?}");
        assert_eq!(taken_ns(&outcome), 3 * each_ns, "{trouble:?}");
        assert_eq!(rows(&outcome), [(kind, 3)]);
        let requests = outcome.sum(|_, _| true).requests;
        assert_eq!((requests.scheduled, requests.sent, requests.unsent), (0, 0, 0), "{trouble:?}");
        assert_eq!(outcome.end.data.counts.connections_most, 0);
    }
    // By schedule they keep their times, however many are under way.
    for (trouble, each_ns) in [(Later(libc::ECONNREFUSED), TRIP_NS), (Silence, 500 * MS)] {
        for calls in ["", "call-rate = 1000"] {
            let more = format!("timeout = '500ms'\nconnect-rate = 1000\n{calls}");
            let outcome = simulate(&counted(300, 300, 5, &more), all(trouble));
            let expected: Vec<u64> = (0..300).map(|nth| nth * MS).collect();
            assert_eq!(attempts_ns(&outcome), expected, "{trouble:?} {calls}");
            assert_eq!(taken_ns(&outcome), 299 * MS + each_ns, "{trouble:?} {calls}");
            assert_eq!(outcome.connections().failed, 300);
        }
    }
}

/// Every third attempt fails: the others carry their calls, which are due when their connection is established.
#[test]
fn established_connections_carry_their_calls() {
    let refused = || {
        let trouble = ConnectTrouble::Later(libc::ECONNREFUSED);
        vec![ConnectFault { first: 0, every: 3, count: u64::MAX, trouble }]
    };
    let life_ns = TRIP_NS + CONNECT_NS + 5 * TRIP_NS;
    for more in ["", "connect-rate = 10", "connect-rate = 10\ncall-rate = 10000", "noreply = true"] {
        let outcome = simulate(
            &counted(1, 9, 5, &format!("{more}\nmeter = ['connection-time', 'response-size']")),
            SimOptions { connect_faults: refused(), ..world() },
        );
        let counts = outcome.connections();
        assert_eq!((counts.begun, counts.failed, counts.established, counts.retired), (9, 3, 6, 6), "{more}");
        let requests = outcome.requests();
        assert_eq!((requests.scheduled, requests.sent, requests.unsent), (30, 30, 0), "{more}");
        assert_eq!(outcome.end.data.counts.connections_most, 1);
        if more.contains("noreply") {
            continue;
        }
        let lives = outcome.meter(MeterKind::ConnectionTime).histogram.moments();
        let expected_ns =
            if more.contains("call-rate") { TRIP_NS + CONNECT_NS + 4 * TRIP_NS + TRIP_NS } else { life_ns };
        assert_eq!((lives.count, lives.min, lives.max), (6, expected_ns, expected_ns), "{more}");
        let replies = outcome.meter(MeterKind::ResponseSize).histogram.moments();
        assert_eq!((replies.count, replies.sum), (30, 30 * 8), "{more}");
        assert!(outcome.samples.iter().all(|sample| sample.times.response_ns() == TRIP_NS), "{more}");
        if more.is_empty() {
            // One after another: the run is as long as all of them.
            assert_eq!(taken_ns(&outcome), 6 * life_ns + 3 * TRIP_NS);
        }
    }
}

/// Connections that live longer than the gap between two are open side by side: as many as fit, to one.
#[test]
fn the_peak_of_connections_is_counted() {
    for (total, expected) in [(1, 1), (5, 5), (100, 9)] {
        // One is born each millisecond and stands for 8.1 ms: until the last of five calls, 2 ms apart, has its reply.
        let outcome =
            simulate(&counted(total.min(20), total, 5, "connect-rate = 1000\ncall-rate = 500"), world());
        assert_eq!(
            (outcome.end.data.counts.connections_most, outcome.connections().retired),
            (expected, total)
        );
    }
    // Without lifetimes all are open from the start of the schedule on, whatever was open before.
    let outcome = simulate("time = '10ms'\nkeys = 10\nconnections = 7", world());
    assert_eq!(outcome.end.data.counts.connections_most, 7);
}

/// A connection that is lost takes its calls along; the next one of the total has all of its own.
#[test]
fn lost_connections_count_towards_the_total() {
    for (faults, kind) in [
        (Faults { reset_every: Every::new(3), ..Faults::default() }, FaultKind::Reset),
        (Faults { cut_every: Every::new(3), ..Faults::default() }, FaultKind::ClosedByPeer),
        (Faults { drop_every: Every::new(3), ..Faults::default() }, FaultKind::TimedOut),
    ] {
        for (more, connections) in [("", 1), ("connect-rate = 100", 4), ("connect-rate = 2", 1)] {
            let server = CoreOptions { faults, ..CoreOptions::default() };
            let outcome = simulate(
                &counted(connections, 4, 10, &format!("timeout = '20ms'\n{more}")),
                SimOptions { server, ..world() },
            );
            assert_eq!(rows(&outcome), [(kind, 4)], "{more}");
            let requests = outcome.requests();
            assert_eq!((requests.sent, requests.completed(), requests.unsent), (12, 8, 0), "{kind:?} {more}");
            assert_eq!(outcome.attempts.len(), 4);
            assert_eq!(requests.reply(ReplyKind::Stored), 8);
        }
    }
}

/// Of pipelined calls those that are out go with their connection: one time-out for all of them.
#[test]
fn the_oldest_call_ends_its_connection() {
    let server = CoreOptions {
        faults: Faults { drop_every: Every::new(1), ..Faults::default() },
        ..CoreOptions::default()
    };
    let outcome = simulate(
        &counted(1, 2, 100, "timeout = '20ms'\nconnect-rate = 1\ncall-rate = 1000"),
        SimOptions { server, ..world() },
    );
    assert_eq!(rows(&outcome), [(FaultKind::TimedOut, 2)]);
    let requests = outcome.requests();
    // One call each millisecond until the first has waited for the time-out; that one times out, the others are lost.
    assert_eq!((requests.outcome(OutcomeClass::Timeout), requests.completed()), (2, 0), "{requests:?}");
    assert_eq!(taken_ns(&outcome), SECOND + TRIP_NS + CONNECT_NS + 20 * MS);
}

/// A worker whose one server has two addresses, the world's first two servers.
fn worker(toml: &str, options: SimOptions) -> Worker<RespCodec, Sim> {
    let plan = plan(toml);
    let mut endpoints = endpoints(&plan);
    endpoints[0].addresses.push(std::net::SocketAddr::from(([127, 0, 0, 1], 2)).into());
    let shard = shards(&plan).remove(0);
    let blueprint = Arc::new(Blueprint::new(plan, endpoints, DataSets::ToStore));
    let (exchange, _filled, _spares) = Exchange::new(&blueprint.layout);
    let connections = shard.classes.iter().map(|class| class.connections.len()).sum();
    let codec = crate::codecs::resp_codec(&blueprint.plan, blueprint.plan.protocol).unwrap();
    build(
        &blueprint,
        shard,
        Arc::new(Orders::default()),
        exchange,
        codec,
        Sim::new(connections, options),
        Cpus::Spare,
    )
}

/// Runs the worker until its first notice.
fn first_notice(worker: &mut Worker<RespCodec, Sim>) -> Notice {
    (0..TURNS_MAX)
        .find_map(|_| {
            worker.run_once();
            worker.take_notice()
        })
        .expect("no notice will come")
}

const PLAN: &str = "protocol = 'resp3'\nserver = 'a'\nconnections = 1\nrequests = 10\npreload = false";

/// The setup cannot be sent at either of the two addresses.
#[test]
fn failed_setup_sends_move_to_the_next_address() {
    for defers_sends in [false, true] {
        let options = SimOptions {
            others: vec![CoreOptions::default()],
            send_fault: NonZeroU64::new(1).map(|every| (every, libc::EPIPE)),
            defers_sends,
            ..SimOptions::default()
        };
        let mut worker = worker(PLAN, options);
        let notice = first_notice(&mut worker);
        assert!(
            matches!(&notice, Notice::Failed(RunError::Server { failure: ServerFailure::NoReply, reason, .. }) if reason == "to HELLO: Broken pipe (os error 32)"),
            "{notice:?}"
        );
        let tried: Vec<_> = worker.io_mut().attempts().iter().map(|attempt| attempt.server).collect();
        // Another attempt may be in progress by then.
        assert_eq!(tried[..2], [0, 1], "{defers_sends}");
        assert!(worker.now_ns() < START_AHEAD_NS + crate::simulated::sim::EPOCH_NS, "at once");
    }
}
