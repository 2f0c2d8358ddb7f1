//! Stores that follow misses: operations of their own, which share the slot of the retrieval in closed loop.

use super::*;

/// One client, one slot: what it asks next is due when the store that followed the last miss is done.
#[test]
fn the_slot_is_free_when_the_key_is_stored() {
    for noreply in [false, true] {
        let outcome = simulate(
            &format!(
                "connections = 1\nrequests = 400\nkeys = 150\nmix = 'get,set'\npopularity = 'sequential'\n\
                 preload = false\non-miss = 'set'\nnoreply = {noreply}"
            ),
            SimOptions { send_cost_ns: US, ..SimOptions::default().latency(30 * US) },
        );
        let mut free_ns = outcome.start_ns();
        let mut is_fill = false;
        for sample in &outcome.samples {
            assert_eq!(sample.times.intended_ns, free_ns, "{sample:?}");
            assert!(!is_fill || sample.op.kind() == OpKind::Set, "a miss is followed by its store");
            is_fill = sample.outcome.class == OutcomeClass::Miss;
            free_ns = sample.times.done_ns;
        }
        let (gets, all) = (outcome.measured(OpKind::Get), outcome.op_counts(Phase::Measure));
        assert_eq!((all.requests.offered(), all.requests.followup), (400, gets.keys.miss));
        assert!(gets.keys.miss > 50 && gets.keys.hit > 50);
        // Each key was missed or set once at first, and is there since.
        assert_eq!((outcome.items[0], outcome.counters[0].get_misses), (150, gets.keys.miss));
    }
}

/// A walk over 10 keys, 4 at a time, asks for 0 to 3, 4 to 7, and then for 8, 9, 0 and 1.
#[test]
fn the_missing_keys_of_a_multi_get_are_stored() {
    let outcome = simulate(
        "connections = 1\nrequests = 6\nkeys = 10\nmix = 'mget'\nmultiget = 4\npopularity = 'sequential'\n\
         preload = false\non-miss = 'set'",
        SimOptions::default().latency(30 * US),
    );
    let kinds: Vec<(OpKind, OutcomeClass)> =
        outcome.samples.iter().map(|sample| (sample.op.kind(), sample.outcome.class)).collect();
    let fill = (OpKind::Set, OutcomeClass::Done);
    let (miss, hit) = ((OpKind::Mget, OutcomeClass::Miss), (OpKind::Mget, OutcomeClass::Hit));
    assert_eq!(
        kinds,
        [miss, fill, fill, fill, fill, miss, fill, fill, fill, fill, hit, fill, fill, hit, hit, hit]
    );
    let op_counts = outcome.measured(OpKind::Mget);
    assert_eq!((op_counts.keys.requested, op_counts.keys.hit, op_counts.keys.miss), (24, 14, 10));
    let fills = outcome.measured(OpKind::Set).requests;
    assert_eq!((fills.scheduled, fills.followup, fills.offered()), (10, 10, 0));
    // All stores of a multi-get go out at once, and the next one is due when the last of them is done.
    let intended_us: Vec<u64> = outcome.intended_ns().iter().map(|ns| ns / US).collect();
    assert_eq!(intended_us, [0, 60, 60, 60, 60, 120, 180, 180, 180, 180, 240, 300, 300, 360, 420, 480]);
    assert_eq!(outcome.items, [10]);
}

/// Whatever the shape: as many stores follow as keys were missed, and the number of requests does not count them.
#[test]
fn as_many_stores_follow_as_keys_were_missed() {
    for (load, servers, connections, depth) in [
        ("", 1, 4, 3),
        ("think = '200us'", 1, 4, 3),
        ("", 3, 6, 2),
        ("rate = 8000", 1, 4, 2),
        ("rate = 8000", 3, 3, 4),
        ("calls-per-connection = 3", 1, 3, 2),
        ("calls-per-connection = 1", 3, 3, 1),
        ("miss-delay = '100us'", 3, 6, 2),
        ("rate = 8000\nmiss-delay = 'exp:1ms'", 3, 3, 4),
        ("calls-per-connection = 3\nmiss-delay = 'uniform:10us,1ms'", 1, 3, 2),
    ] {
        for mix in ["get=3,delete=1", "gets,mget,delete", "mget=2,set,delete"] {
            let multiget = if mix.contains("mget") { "multiget = 5" } else { "" };
            let names = ["['a']", "", "['a', 'b', 'c']"][servers - 1];
            let outcome = simulate(
                &format!(
                    "{load}\nserver = {names}\nconnections = {connections}\ndepth = {depth}\n\
                     requests = 1500\nkeys = 60\nmix = '{mix}'\n{multiget}\npreload = false\non-miss = 'set'"
                ),
                SimOptions {
                    others: vec![CoreOptions::default(); servers - 1],
                    ..SimOptions::default().latency(30 * US)
                },
            );
            let op_counts = outcome.op_counts(Phase::Measure);
            assert_eq!(op_counts.requests.offered(), 1_500, "{load} {mix}");
            let late = outcome.op_counts(Phase::Drain).requests.followup;
            assert_eq!(op_counts.requests.followup + late, op_counts.keys.miss, "{load} {mix}");
            assert!(late == 0 || load.contains("miss-delay"), "{load} {mix}");
            assert_eq!(
                (op_counts.requests.failed(), op_counts.requests.unsent, op_counts.requests.in_flight),
                (0, 0, 0)
            );
            assert!(op_counts.keys.miss > 60, "{load} {mix}");
            let counted: u64 = outcome.counters.iter().map(|counters| counters.get_misses).sum();
            assert_eq!(counted, op_counts.keys.miss);
        }
    }
}

/// In open loop a store is due the moment the miss is known, and delays nobody's intended time.
#[test]
fn in_open_loop_stores_follow_beside_the_schedule() {
    let outcome = simulate(
        "rate = 1000\narrival = 'uniform'\nconnections = 4\ndepth = 64\ntime = '500ms'\nmix = 'get'\n\
         popularity = 'sequential'\npreload = false\non-miss = 'set'",
        SimOptions::default().latency(20 * MS),
    );
    let of = |kind| outcome.samples.iter().filter(move |sample| sample.op.kind() == kind);
    for (nth, get) in of(OpKind::Get).enumerate() {
        assert_eq!(get.times.intended_ns, outcome.start_ns() + nth as u64 * MS);
        assert_eq!(get.outcome.class == OutcomeClass::Miss, nth < 100, "get {nth}");
    }
    for (nth, fill) in of(OpKind::Set).enumerate() {
        assert_eq!(fill.times.intended_ns, outcome.start_ns() + nth as u64 * MS + 40 * MS);
        assert_eq!(fill.times.response_ns(), 40 * MS);
    }
    assert_eq!((of(OpKind::Get).count(), of(OpKind::Set).count()), (500, 100));
}

/// What follows when the window is over belongs to the drain.
#[test]
fn stores_after_the_end_belong_to_the_drain() {
    for load in ["rate = 1000\narrival = 'uniform'\ndepth = 64", "depth = 10\nthink = '10ms'"] {
        let outcome = simulate(
            &format!(
                "{load}\nconnections = 4\ntime = '500ms'\nkeys = 100000\nmix = 'get'\n\
                 popularity = 'sequential'\npreload = false\non-miss = 'set'"
            ),
            SimOptions::default().latency(15 * MS),
        );
        let (measured, drained) = (outcome.op_counts(Phase::Measure), outcome.op_counts(Phase::Drain));
        let late = outcome.samples.iter().filter(|sample| {
            sample.op.kind() == OpKind::Get && sample.times.done_ns >= outcome.end.data.times.end_ns
        });
        assert_eq!(drained.requests.followup, late.count() as u64, "{load}");
        assert!(drained.requests.followup > 20, "{load}: {}", drained.requests.followup);
        assert_eq!(drained.requests.outcome(OutcomeClass::Done), drained.requests.followup);
        assert_eq!(measured.requests.followup + drained.requests.followup, measured.keys.miss);
        assert_eq!(outcome.items, [measured.keys.miss as usize]);
    }
}

/// A key that lives a second is missed once a second, and stored again each time.
#[test]
fn expired_keys_are_stored_again() {
    let outcome = simulate(
        "rate = 130\narrival = 'uniform'\nconnections = 1\ntime = '20s'\nkeys = 1\nmix = 'get'\nttl = '1s'\n\
         on-miss = 'set'",
        SimOptions::default(),
    );
    let mut expires_ns = outcome.start_ns() - START_AHEAD_NS + SECOND;
    let mut misses = 0;
    for get in outcome.samples.iter().filter(|sample| sample.op.kind() == OpKind::Get) {
        let is_miss = get.times.sent_ns >= expires_ns;
        assert_eq!(get.outcome.class == OutcomeClass::Miss, is_miss, "{get:?}");
        if is_miss {
            misses += 1;
            expires_ns = get.times.done_ns + SECOND;
        }
    }
    assert!(misses >= 19, "{misses} in 20 s");
    assert_eq!(outcome.measured(OpKind::Set).requests.followup, misses);
}

/// A set is due when its database has answered, and its response time counts from then; misses of the key before the set has ended are a
/// stampede, each of which is filled.
#[test]
fn stores_wait_for_the_database() {
    let outcome = simulate(
        "rate = 1000\narrival = 'uniform'\nconnections = 4\ndepth = 64\ntime = '500ms'\nkeys = 10\nmix = 'get'\n\
         popularity = 'sequential'\npreload = false\non-miss = 'set'\nmiss-delay = '25ms'",
        SimOptions::default().latency(5 * MS),
    );
    let of = |kind| outcome.samples.iter().filter(move |sample| sample.op.kind() == kind);
    // Of one key every 10 ms: the first is answered after 10 ms, its set due 25 ms later and there another 5 ms later.
    let missed = of(OpKind::Get).filter(|get| get.outcome.class == OutcomeClass::Miss);
    let gets: Vec<u64> = missed.map(|get| get.times.done_ns).collect();
    let fills: Vec<&Sample> = of(OpKind::Set).collect();
    assert_eq!((gets.len(), fills.len()), (40, 40));
    for (got_ns, fill) in gets.iter().zip(&fills) {
        assert_eq!(fill.times.intended_ns, got_ns + 25 * MS);
        assert_eq!(fill.times.response_ns(), 10 * MS);
    }
    let counts = outcome.end.data.counts.fills;
    assert_eq!(counts, FillCounts { stampedes: 10, stampede_misses: 30, ..FillCounts::default() });
}

/// In closed loop the slot waits, too; fills that come due after the end are made in the drain, and those that never do are counted.
#[test]
fn the_slot_is_taken_while_the_database_is_asked() {
    for (drain, unfinished) in [("2s", 0), ("20ms", 3)] {
        let outcome = simulate(
            &format!(
                "connections = 3\ntime = '450ms'\nkeys = 1000\nmix = 'get'\npopularity = 'sequential'\n\
                 preload = false\non-miss = 'set'\nmiss-delay = '100ms'\ndrain = '{drain}'"
            ),
            SimOptions::default().latency(US),
        );
        let all = outcome.op_counts(Phase::Measure);
        assert_eq!((all.requests.offered(), all.keys.miss), (15, 15), "{drain}");
        let drained = outcome.op_counts(Phase::Drain).requests.followup;
        assert_eq!((all.requests.followup, drained), (12, 3 - unfinished), "{drain}");
        assert_eq!(outcome.end.data.counts.fills.unfinished, unfinished, "{drain}");
    }
}

/// More than may wait: the others are made at once, and counted.
#[test]
fn fills_beyond_the_room_are_not_delayed() {
    let outcome = simulate(
        "rate = 400000\narrival = 'uniform'\nconnections = 4\ndepth = 256\ntime = '500ms'\nkeys = 1000000\nmix = 'get'\n\
         popularity = 'sequential'\npreload = false\non-miss = 'set'\nmiss-delay = 'exp:30s'\ndrain = '1ms'",
        SimOptions::default().latency(20 * US),
    );
    let (counts, all) = (outcome.end.data.counts.fills, outcome.op_counts(Phase::Measure));
    let late = outcome.op_counts(Phase::Drain).requests.followup;
    assert_eq!(all.requests.followup + late + counts.unfinished, all.keys.miss);
    assert!(counts.undelayed > 60_000 && counts.unfinished > 120_000, "{counts:?}");
}
