//! One stream of operations through every protocol: the same outcomes at the same times, the same counters, and the same
//! items in the end, whatever the script does. The client is small and made for this; it knows nothing of the server but
//! its replies.

mod client;

use crate::{Random, drain};
use brunt_server::core::{Core, CoreOptions, End};
use brunt_server::{Division, Every, Faults, Service};
use client::{Kind, Operation, Outcome, WireProtocol, decode, encode};
use std::collections::HashMap;

const MEMCACHED: [WireProtocol; 5] = [
    WireProtocol::Text,
    WireProtocol::Meta,
    WireProtocol::Binary,
    WireProtocol::TextDatagrams,
    WireProtocol::MetaDatagrams,
];
const ALL: [WireProtocol; 7] = [
    WireProtocol::Text,
    WireProtocol::Meta,
    WireProtocol::Binary,
    WireProtocol::TextDatagrams,
    WireProtocol::MetaDatagrams,
    WireProtocol::Resp2,
    WireProtocol::Resp3,
];

/// Between two operations.
const STEP_NS: u64 = 10_000_000;

/// What became of a stream in one protocol.
#[derive(Debug, PartialEq)]
struct Run {
    /// What every operation came to, and when its reply left; quiet ones are seen by what they leave behind.
    outcomes: Vec<(Outcome, u64)>,
    /// The counters that do not count bytes and connections.
    counted: Vec<String>,
    /// What a client of the text protocol reads in the end.
    items: String,
}

/// Sends one operation and returns its result and time; a client without a whole answer connects anew.
fn perform(core: &mut Core, protocol: WireProtocol, operation: &Operation, now_ns: u64) -> (Outcome, u64) {
    let bytes = encode(protocol, operation);
    let dropped = core.counters().faults_dropped;
    if protocol.is_datagram() {
        let datagram = [&[0, 7, 0, 0, 0, 1, 0, 0][..], &bytes].concat();
        core.receive_datagram(0, &datagram, now_ns);
    } else {
        core.receive(0, &bytes, now_ns);
    }
    let (mut answered, mut departure_ns, mut ended) = (Vec::new(), 0, false);
    while let Some(departure) = core.pop_due(u64::MAX) {
        let header_bytes = if protocol.is_datagram() { 8 } else { 0 };
        answered.extend_from_slice(&departure.bytes[header_bytes..]);
        departure_ns = departure.departure_ns;
        ended |= departure.end != End::Stays;
    }
    // Who wants no answer cannot know that its connection is dead; the test does.
    let is_dead = ended || core.counters().faults_dropped > dropped;
    let outcome = match operation.is_quiet {
        true => Some(Outcome::Unseen),
        false if is_dead => None,
        false => decode(protocol, operation, &answered),
    };
    if operation.is_quiet {
        departure_ns = 0;
    }
    if (is_dead || outcome.is_none()) && !protocol.is_datagram() {
        core.disconnect(0);
        core.connect(0);
        greet(core, protocol, now_ns);
    }
    // A reset leaves at a time of its own, a request that was dropped never: neither is answered.
    outcome.map_or((Outcome::Lost, 0), |outcome| (outcome, departure_ns))
}

fn greet(core: &mut Core, protocol: WireProtocol, now_ns: u64) {
    if protocol == WireProtocol::Resp3 {
        core.receive(0, b"*2\r\n$5\r\nHELLO\r\n$1\r\n3\r\n", now_ns);
        drain(core, 0, u64::MAX);
    }
}

fn run(protocol: WireProtocol, stream: &[Operation], faults: Faults) -> Run {
    let (service, script_after) = (Service::Exponential(1_000_000), 30);
    let division = if protocol == WireProtocol::MetaDatagrams { Division::Key } else { Division::Reply };
    let mut core =
        Core::new(CoreOptions { faults, service, script_after, division, ..CoreOptions::default() });
    if protocol.is_datagram() {
        core.connect_peer(0);
    } else {
        core.connect(0);
    }
    greet(&mut core, protocol, 0);
    let mut uniques: HashMap<String, u64> = HashMap::new();
    let mut outcomes = Vec::new();
    for (operation, number) in stream.iter().zip(1..) {
        let mut operation = operation.clone();
        if operation.kind == Kind::Cas && operation.operand == 1 {
            operation.operand = uniques.get(&operation.keys[0]).copied().unwrap_or(1);
        }
        let (outcome, departure_ns) = perform(&mut core, protocol, &operation, number * STEP_NS);
        if let Outcome::Unique(_, _, unique) = outcome {
            uniques.insert(operation.keys[0].clone(), unique);
        }
        outcomes.push((outcome, departure_ns));
    }
    let counters = format!("{:?}", core.counters());
    let is_shared = |row: &&str| !row.contains("connections") && !row.contains("bytes_");
    let counted = counters.split(',').filter(is_shared).map(str::to_owned).collect();
    let end_ns = (stream.len() as u64 + 1) * STEP_NS;
    core.connect(1);
    let mut items = String::new();
    for key in keys().chain(counters_and_texts()) {
        core.receive(1, format!("get {key}\r\n").as_bytes(), end_ns);
        items += &drain(&mut core, 1, u64::MAX).escape_ascii().to_string();
        // A script goes on here, too, and may end the connection.
        core.disconnect(1);
        core.connect(1);
    }
    Run { outcomes, counted, items }
}

/// Keys that come and go.
fn keys() -> impl Iterator<Item = String> {
    (0..12).map(|number| format!("k{number}"))
}

/// Keys that stay: Redis makes them where memcached does not.
fn counters_and_texts() -> impl Iterator<Item = String> {
    (0..4).map(|number| format!("n{number}")).chain((0..4).map(|number| format!("t{number}")))
}

fn operation(kind: Kind, key: String) -> Operation {
    Operation { kind, keys: vec![key], value: Vec::new(), flags: 0, ttl_s: 0, operand: 0, is_quiet: false }
}

/// `count` operations from a seed; `is_common` are those alone that mean the same to memcached and to Redis.
fn stream(seed: u64, count: usize, is_common: bool) -> Vec<Operation> {
    let mut random = Random(seed);
    // What stays is there before the script begins.
    let mut stream: Vec<Operation> = counters_and_texts()
        .map(|key| Operation { value: b"5000000000".to_vec(), ..operation(Kind::Set, key) })
        .collect();
    while stream.len() < count {
        let mut next = |bound: u64| random.below(bound);
        let key = format!("k{}", next(12));
        let (text, number) = (format!("t{}", next(4)), format!("n{}", next(4)));
        let values: [&[u8]; 4] = [b"", b"x", b"a\r\nEND\r\nb", b"0123456789abcdef"];
        let value = values[next(4) as usize].to_vec();
        let flags = if is_common { 0 } else { next(1 << 32) as u32 };
        let (ttl_s, delta) = ([0, 0, 0, 1, 2][next(5) as usize], next(1000));
        let stored = |kind| Operation { value: value.clone(), flags, ttl_s, ..operation(kind, key.clone()) };
        let plain = |kind| operation(kind, key.clone());
        let mut made = match next(if is_common { 17 } else { 24 }) {
            0..3 => plain(Kind::Get),
            3..5 => {
                let first = next(12);
                let keys = (0..1 + next(5)).map(|offset| format!("k{}", (first + offset) % 12)).collect();
                Operation { keys, ..plain(Kind::Mget) }
            }
            5..8 => stored(Kind::Set),
            8 => stored(Kind::Add),
            9 => stored(Kind::Replace),
            10 => Operation { value: value.clone(), ..operation(Kind::Append, text) },
            11..13 => Operation { operand: delta, ..operation(Kind::Incr, number) },
            13 => Operation { operand: delta, ..operation(Kind::Decr, number) },
            14..16 => plain(Kind::Delete),
            16 => Operation { ttl_s: ttl_s.max(1), ..plain(Kind::Touch) },
            17..19 => plain(Kind::Gets),
            // Of what was seen last, or of nothing that ever was.
            19..21 => Operation { operand: 1 + next(2) * (1 << 40), ..stored(Kind::Cas) },
            21 => Operation { value: value.clone(), ..plain(Kind::Append) },
            22 => Operation { value: value.clone(), ..plain(Kind::Prepend) },
            _ => Operation { operand: delta, ..plain(if delta < 500 { Kind::Incr } else { Kind::Decr }) },
        };
        let may_be_quiet =
            !is_common && !matches!(made.kind, Kind::Get | Kind::Gets | Kind::Mget | Kind::Touch);
        made.is_quiet = may_be_quiet && next(6) == 0;
        stream.push(made);
    }
    stream
}

fn check(dialects: &[WireProtocol], stream: &[Operation], faults: Faults) {
    let expected = run(dialects[0], stream, faults);
    for protocol in &dialects[1..] {
        let found = run(*protocol, stream, faults);
        for (number, (ours, theirs)) in found.outcomes.iter().zip(&expected.outcomes).enumerate() {
            assert_eq!(ours, theirs, "{protocol:?}, operation {number}: {:?}", stream[number]);
        }
        assert_eq!(found, expected, "{protocol:?}");
    }
    // Nothing is tested by a stream in which nothing happens.
    let seen = |wanted: fn(&Outcome) -> bool| expected.outcomes.iter().any(|(outcome, _)| wanted(outcome));
    assert!(seen(|outcome| matches!(outcome, Outcome::Values(values) if values.contains(&None))));
    assert!(seen(|outcome| *outcome == Outcome::Stored) && seen(|outcome| *outcome == Outcome::NotStored));
    assert!(seen(|outcome| *outcome == Outcome::NotFound) && seen(|outcome| *outcome == Outcome::Touched));
    assert_eq!(seen(|outcome| *outcome == Outcome::Lost), faults.drop_every.is_some());
    assert_eq!(seen(|outcome| *outcome == Outcome::Failed), faults.error_every.is_some());
}

const SCRIPT: [u64; 5] = [97, 89, 61, 23, 11];

fn script() -> Faults {
    let [drop, reset, cut, error, wrong] = SCRIPT.map(Every::new);
    Faults { drop_every: drop, reset_every: reset, cut_every: cut, error_every: error, wrong_every: wrong }
}

#[test]
fn memcached_state_is_the_same_in_every_protocol() {
    for seed in 1..=3 {
        check(&MEMCACHED, &stream(seed, 4000, false), Faults::default());
        check(&MEMCACHED, &stream(seed, 4000, false), script());
    }
}

#[test]
fn redis_state_is_the_same_in_every_protocol() {
    for seed in 1..=3 {
        check(&ALL, &stream(seed, 4000, true), Faults::default());
        check(&ALL, &stream(seed, 4000, true), script());
    }
}
