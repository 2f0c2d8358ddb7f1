//! Classes whose operations take paths of their own, and changes that go to several servers: who gets what, and what becomes of a part that
//! is in trouble. And classes that use the same connections: whose operation is whose, and how they take turns.

use crate::simulated::servers::homes;
use crate::simulated::*;
use brunt_server::{Every, Faults, Outage};

/// A world with three servers, of which these are two.
fn world(one: CoreOptions, two: CoreOptions) -> SimOptions {
    SimOptions { others: vec![two, served(30)], ..SimOptions::of(one).latency(20 * US) }
}

/// One that takes so long for each request, on average.
fn served(mean_us: u64) -> CoreOptions {
    CoreOptions { service: Service::Exponential(mean_us * US), ..CoreOptions::default() }
}

fn replicated(load: &str) -> String {
    format!(
        "server = ['a:1', 'b:2', 'c:3']\nreplicas = 2\nconnections = 6\ndepth = 2\nkeys = 300\n\
         mix = 'get=3,mget=1,set=3,delete=1'\nmultiget = 5\n{load}"
    )
}

fn sum(outcome: &Outcome, of: impl Fn(&Counters) -> u64) -> u64 {
    outcome.counters.iter().map(of).sum()
}

/// Each change is one sample and two requests on the wire; each key is read from one of its two servers.
#[test]
fn changes_go_to_every_replica_and_gets_to_one() {
    for load in ["requests = 6000", "requests = 6000\nrate = 20000"] {
        let toml = replicated(load).replace(",delete=1", "");
        let outcome = simulate(&toml, world(served(10), served(20)));
        let homes = homes("modulo", 300);
        let holds =
            |server: usize| homes.iter().filter(|home| [**home, (**home + 1) % 3].contains(&server)).count();
        assert_eq!(outcome.items, [0, 1, 2].map(holds), "{load}");
        let sets = outcome.measured(OpKind::Set).requests;
        assert_eq!((sets.completed(), sets.wire_requests), (sets.scheduled, 2 * sets.scheduled), "{load}");
        assert_eq!(sum(&outcome, |counters| counters.cmd_set), 2 * (300 + sets.scheduled), "{load}");
        let keys = outcome.op_counts(Phase::Measure).keys;
        assert_eq!((keys.hit, keys.miss), (keys.requested, 0), "{load}");
        assert_eq!(sum(&outcome, |counters| counters.cmd_get), keys.requested, "{load}");
        // In turn: no server is asked for much less than a third.
        assert!(outcome.counters.iter().all(|counters| counters.cmd_get > keys.requested / 4), "{load}");
    }
}

/// A closed loop has a slot for as many connections as a change takes, and it is free when the last replica has answered.
#[test]
fn a_change_holds_its_slot_until_the_last_replica_has_answered() {
    let toml = replicated("requests = 3000")
        .replace("get=3,mget=1,set=3,delete=1", "set")
        .replace("multiget = 5\n", "");
    let outcome = simulate(&toml, world(served(10), served(80)));
    let mut ends: Vec<u64> = outcome.samples.iter().map(|sample| sample.times.done_ns).collect();
    ends.sort_unstable();
    let slots = 6 * 2 / 2;
    for (nth, sample) in outcome.samples.iter().enumerate().skip(slots) {
        assert!(sample.times.intended_ns >= ends[nth - slots], "request {nth} is one too many");
    }
}

/// Deletes that one replica refuses are refused, and connections that break lose the whole change.
#[test]
fn trouble_with_a_replica_is_counted_once() {
    for load in ["requests = 4000", "requests = 4000\nrate = 20000"] {
        let faults = Faults { reset_every: Every::new(97), ..Faults::default() };
        let broken = CoreOptions { faults, script_after: 700, ..served(10) };
        let outcome = simulate(&replicated(load), world(broken, served(20)));
        let requests = outcome.requests();
        assert_eq!(requests.scheduled, requests.ended() + requests.unsent + requests.in_flight, "{load}");
        assert!(outcome.count(OutcomeClass::Lost) > 0 && outcome.count(OutcomeClass::Rejected) > 0, "{load}");
        let gone =
            CoreOptions { outages: vec![Outage { at_ns: 50 * MS, for_ns: 100_000 * SECOND }], ..served(10) };
        let toml = replicated("requests = 20000\ntimeout = '1s'\npreload = false\n")
            + load.split('\n').nth(1).unwrap_or("");
        let outcome = simulate(&toml, world(gone, served(20)));
        let requests = outcome.requests();
        assert_eq!(requests.scheduled, requests.ended() + requests.unsent + requests.in_flight, "{load}");
    }
}

/// The servers that gets of each key may go to take turns, and the one where it was written first has none.
#[test]
fn gets_take_turns_over_the_others() {
    for load in ["", "rate = 20000"] {
        for (replicas, mix) in [(2, "get"), (3, "get"), (2, "mget"), (3, "mget")] {
            // Two at a time, each key in turn would always have the same turn.
            let popularity = if replicas == 2 { "sequential" } else { "uniform" };
            let toml = format!(
                "server = ['a:1', 'b:2', 'c:3']\nreplicas = {replicas}\nconnections = 6\ndepth = 2\n\
                 keys = 300\npopularity = '{popularity}'\nmix = '{mix}'\nrequests = 3000\n{load}"
            );
            let toml = if mix == "mget" { format!("multiget = 10\n{toml}") } else { toml };
            let outcome = simulate(&toml, world(served(10), served(20)));
            let homes = homes("modulo", 300);
            let asked = outcome.op_counts(Phase::Measure).keys.requested;
            assert_eq!(outcome.op_counts(Phase::Measure).keys.hit, asked, "{replicas} {mix} {load}");
            for (server, counters) in outcome.counters.iter().enumerate() {
                let of_home = |behind: usize| {
                    homes.iter().filter(|home| (**home + behind) % 3 == server).count() as u64
                };
                let keys = (1..replicas).map(of_home).sum::<u64>();
                let expected = keys * (asked / 300) / (replicas as u64 - 1);
                let tolerance = if replicas == 2 { 0 } else { asked / 25 };
                assert!(
                    counters.cmd_get.abs_diff(expected) <= tolerance,
                    "{replicas} {mix} {load} {server}: {} of {expected}",
                    counters.cmd_get
                );
            }
        }
    }
}

/// One of two servers goes and comes back: no set fails, gets are answered by the other at once, and afterwards both are asked.
#[test]
fn a_replica_that_goes_and_comes_back_loses_only_what_it_had() {
    for load in ["think = '200us'", "depth = 4\nthink = '2ms'", "rate = 4000\narrival = 'uniform'"] {
        for mix in ["'get=9,set=1'", "'mget=4,set=1'\nmultiget = 7"] {
            for which in [0, 1] {
                let toml = format!(
                    "server = ['a:1', 'b:2']\nreplicas = 2\nconnections = 8\nkeys = 300\ntime = '600ms'\n\
                     timeout = '500ms'\nmix = {mix}\n{load}"
                );
                let plan = plan(&toml);
                let stores = preload_stores(&plan);
                let mut servers = [served(10), served(20)];
                for (server, stores) in servers.iter_mut().zip(&stores) {
                    server.script_after = *stores;
                }
                servers[which].outages = vec![Outage { at_ns: 200 * MS, for_ns: 200 * MS }];
                let [server, other] = servers;
                let options = SimOptions { others: vec![other], ..SimOptions::of(server).latency(20 * US) };
                let outcome = simulate_plan(plan, options);
                let case = format!("{which} {mix} {load}");
                let sets = outcome.measured(OpKind::Set).requests;
                assert_eq!((sets.completed(), sets.failed(), sets.unsent), (sets.scheduled, 0, 0), "{case}");
                let missed = outcome.end.data.counts.replicas_missed;
                assert!(missed > 0 && sets.wire_requests <= 2 * sets.scheduled, "{case}: {missed}");
                assert!(sets.wire_requests + missed >= 2 * sets.scheduled, "{case}: {missed} {sets:?}");
                // What was on the wire when the server went is lost, and nothing else.
                let requests = outcome.requests();
                let lost = requests.scheduled - requests.completed();
                assert!(lost <= 32 && requests.unsent == 0, "{case}: {requests:?}");
                let slow = outcome.samples.iter().filter(|sample| sample.times.response_ns() > 20 * MS);
                assert_eq!(slow.count(), 0, "{case}");
                let during = outcome.samples.iter().filter(|sample| {
                    let since_ns = sample.times.intended_ns - outcome.start_ns();
                    (250 * MS..350 * MS).contains(&since_ns)
                });
                assert!(during.clone().count() > 200, "{case}: reads go on");
                assert!(during.clone().all(|sample| sample.outcome.class.is_completed()), "{case}");
                assert_eq!(outcome.connections().open(), 8, "{case}");
                let outages = outcome.outages();
                assert_eq!(
                    (outages.len(), usize::from(outages[0].server)),
                    (1, which),
                    "{case}: {outages:?}"
                );
            }
        }
    }
}

/// With all servers a run is over; with one of them a number of requests is reached.
#[test]
fn a_run_needs_one_of_its_replicas() {
    let gone =
        |at_ns| CoreOptions { outages: vec![Outage { at_ns, for_ns: 100_000 * SECOND }], ..served(100) };
    let toml = |more: &str| {
        format!(
            "server = ['a:1', 'b:2']\nreplicas = 2\nconnections = 8\nkeys = 300\npreload = false\n\
             timeout = '1s'\nmix = 'get=4,mget=1,set=1'\n{more}"
        )
    };
    let options = |one, two| SimOptions { others: vec![two], ..SimOptions::of(one).latency(20 * US) };
    for load in ["", "think = '5ms'", "rate = 4000"] {
        let reached =
            simulate(&toml(&format!("requests = 30000\n{load}")), options(gone(300 * MS), served(100)));
        let requests = reached.requests();
        assert_eq!(requests.scheduled, 30_000, "{load}");
        assert!(requests.completed() > 30_000 - 32, "{load}: {requests:?}");
        for stop in ["time = '20s'", "requests = 1000000"] {
            let more = format!("{stop}\nreconnect = 'while-one-stands'\n{load}");
            let over = simulate(&toml(&more), options(gone(300 * MS), gone(900 * MS)));
            let ended_ns = over.end.data.times.end_ns - over.start_ns();
            assert!((900 * MS..920 * MS).contains(&ended_ns), "{load} {stop}: {ended_ns}");
            assert_eq!(over.end.data.counts.workers_cut_off, 1, "{load} {stop}");
        }
        let over =
            simulate(&toml(&format!("requests = 1000000\n{load}")), options(gone(300 * MS), gone(900 * MS)));
        let ended_ns = over.end.data.times.end_ns - over.start_ns();
        assert!((5_900 * MS..6_200 * MS).contains(&ended_ns), "{load}: {ended_ns}");
    }
}

/// Sets go to two servers by key, gets to a third, and what they miss is stored where the sets go.
#[test]
fn kinds_of_operations_have_servers_of_their_own() {
    for (load, batch) in [("", "eager"), ("", "batch"), ("rate = 20000\n", "eager")] {
        let toml = format!(
            "requests = 4000\nconnections = 6\ndepth = 2\nkeys = 300\non-miss = 'set'\n\
             mix = 'get=3,mget=1,set=1'\nmultiget = 3\nrefill = '{batch}'\n{load}[[class]]\n\
             server = ['a:1', 'b:2']\n[[class.route]]\nops = ['get', 'mget']\nserver = 'c:3'\n"
        );
        let outcome = simulate(&toml, world(served(10), served(20)));
        let keys = outcome.op_counts(Phase::Measure).keys;
        assert_eq!((keys.hit, keys.miss), (0, keys.requested), "{load} {batch}");
        let [one, two, three] = &outcome.counters[..] else { panic!("three servers") };
        assert_eq!((one.cmd_get, two.cmd_get, three.cmd_get), (0, 0, keys.requested), "{load} {batch}");
        let sets = outcome.sum(|_, kind| kind == OpKind::Set).requests;
        assert_eq!((one.cmd_set + two.cmd_set, three.cmd_set), (sets.completed(), 0), "{load} {batch}");
        assert_eq!(
            sets.completed(),
            300 + outcome.measured(OpKind::Set).requests.completed(),
            "{load} {batch}"
        );
        assert_eq!(outcome.items.iter().sum::<usize>(), 300, "{load} {batch}");
    }
}

const TWO: &str = "[[class]]\nname = 'gets'\nmix = 'get'\n";
const OTHER: &str =
    "[[class]]\nname = 'sets'\nmix = 'set'\nconnections-of = 'gets'\nprefix = 'two'\nvalue-size = 40\n";

fn served_in(us: u64) -> SimOptions {
    SimOptions::of(serving(us * US)).latency(5 * US)
}

/// Each class has its own rate, keys and rows, and the server sees one pool.
#[test]
fn every_operation_belongs_to_its_own_class() {
    let toml = format!(
        "{TWO}connections = 2\ndepth = 4\nrate = 3000\narrival = 'uniform'\nkeys = 50\n{OTHER}rate = 1000\narrival = 'uniform'\nkeys = 70\n"
    );
    let outcome = simulate(&format!("time = '1s'\n{toml}"), served_in(20));
    assert_eq!((outcome.counters[0].total_connections, outcome.connections().established), (2, 2));
    // Both data sets were stored over them.
    assert_eq!(outcome.items, [120]);
    for (class, kind, count) in [(0, OpKind::Get, 3_000), (1, OpKind::Set, 1_000)] {
        let op_counts = outcome.measured(kind);
        assert_eq!(
            (op_counts.requests.scheduled, op_counts.requests.completed()),
            (count, count),
            "{kind:?}"
        );
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
    assert_eq!(outcome.counters[0].total_connections, 3);
    let (gets, sets) = (outcome.measured(OpKind::Get).requests, outcome.measured(OpKind::Set).requests);
    assert!(gets.completed().abs_diff(sets.completed()) <= 12, "{gets:?} {sets:?}");
    assert_eq!(gets.outcome(OutcomeClass::Hit), gets.completed());
}
