//! Classes that use the same connections: whose operation is whose, and how they take turns.

use super::*;

const TWO: &str = "warmup = '0s'\n[[class]]\nname = 'gets'\nmix = 'get'\n";
const OTHER: &str =
    "[[class]]\nname = 'sets'\nmix = 'set'\nconnections-of = 'gets'\nprefix = 'two'\nvalue-size = 40\n";

fn served_in(us: u64) -> SimOptions {
    let server = CoreOptions { service: Service::Fixed(us * US), ..CoreOptions::default() };
    SimOptions { latency_ns: 5 * US, server, ..SimOptions::default() }
}

/// Each class has its own rate, keys and rows, and the server sees one pool.
#[test]
fn every_operation_belongs_to_its_own_class() {
    let toml = format!(
        "{TWO}connections = 2\ndepth = 4\nrate = 3000\narrival = 'uniform'\nkeys = 50\n{OTHER}rate = 1000\narrival = 'uniform'\nkeys = 70\n"
    );
    let outcome = simulate(&format!("time = '1s'\n{toml}"), served_in(20));
    check_books(&outcome);
    assert_eq!((outcome.counters[0].total_connections, outcome.connections().established), (2, 2));
    // Both data sets were stored over them.
    assert_eq!(outcome.items, [120]);
    for (class, kind, count) in [(0, OpKind::Get, 3_000), (1, OpKind::Set, 1_000)] {
        let book = outcome.measured(kind);
        assert_eq!((book.requests.scheduled, book.requests.completed()), (count, count), "{kind:?}");
        let own = outcome.samples.iter().filter(|sample| sample.op.kind() == kind);
        assert!(own.clone().all(|sample| sample.class == class), "{kind:?}");
    }
    assert_eq!(outcome.measured(OpKind::Get).keys.hit, 3_000);
}

/// A closed loop keeps the one connection busy, and what is due by a clock waits for one request at most.
#[test]
fn a_closed_loop_lets_others_have_their_turn() {
    let toml = format!(
        "time = '1s'\n{TWO}connections = 1\ndepth = 1\nkeys = 10\n{OTHER}rate = 100\narrival = 'uniform'\nkeys = 10\n"
    );
    let outcome = simulate(&toml, served_in(90));
    check_books(&outcome);
    assert_eq!(outcome.counters[0].total_connections, 1);
    let round_ns = 100 * US;
    let mut by_sent = outcome.samples.clone();
    by_sent.sort_by_key(|sample| sample.times.sent_ns);
    assert!(by_sent.windows(2).all(|two| two[1].times.sent_ns >= two[0].times.done_ns), "one at a time");
    let (gets, sets) = (outcome.measured(OpKind::Get), outcome.measured(OpKind::Set));
    assert_eq!(sets.requests.completed(), 100);
    assert_eq!(gets.requests.completed() + 100, SECOND / round_ns, "no turn is lost");
    let slowest = outcome
        .samples
        .iter()
        .filter(|sample| sample.op.kind() == OpKind::Set)
        .map(|set| set.times.response_ns());
    assert!(slowest.max() <= Some(2 * round_ns));
}

/// Two closed loops on one pool have their slots in turn.
#[test]
fn closed_loops_share_evenly() {
    let toml = format!("time = '1s'\n{TWO}connections = 3\ndepth = 2\nkeys = 10\n{OTHER}keys = 10\n");
    let outcome = simulate(&toml, served_in(40));
    check_books(&outcome);
    assert_eq!(outcome.counters[0].total_connections, 3);
    let (gets, sets) = (outcome.measured(OpKind::Get).requests, outcome.measured(OpKind::Set).requests);
    assert!(gets.completed().abs_diff(sets.completed()) <= 12, "{gets:?} {sets:?}");
    assert_eq!(gets.outcome(OutcomeClass::Hit), gets.completed());
}
