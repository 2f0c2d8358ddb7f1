//! Every kind of operation, against a model of one key: what comes back, what is recorded, what was on the wire.

use super::*;
use brunt_plan::outcome::ReplyKind;
use brunt_server::Every;
use brunt_server::text::Verb;
use brunt_stats::connection::FaultKind;
use brunt_stats::window::WindowCounts;
use brunt_workload::payload::Payload;
use std::sync::OnceLock;

const ALL_KINDS: &str = "get,gets,mget,set,add,replace,append,prepend,cas,incr,decr,delete,touch";

/// One key as the protocol has it: whether it is there, and the unique of its value.
struct OneKey {
    unique: Option<u64>,
    stores: u64,
    /// Uniques that gets has read and no cas has used, the latest last.
    read: Vec<u64>,
}

impl OneKey {
    fn store(&mut self) -> (OutcomeClass, ReplyKind) {
        self.stores += 1;
        self.unique = Some(self.stores);
        (OutcomeClass::Done, ReplyKind::Stored)
    }

    fn ask(&mut self, kind: OpKind) -> (OutcomeClass, ReplyKind) {
        use OutcomeClass::{Done, Hit, Miss, Rejected};
        let is_there = self.unique.is_some();
        match kind {
            OpKind::Get | OpKind::Gets | OpKind::Mget if !is_there => (Miss, ReplyKind::NotFound),
            OpKind::Get | OpKind::Mget => (Hit, ReplyKind::Value),
            OpKind::Gets => {
                self.read.extend(self.unique);
                // As many as a session keeps.
                self.read = self.read.split_off(self.read.len().saturating_sub(64));
                (Hit, ReplyKind::Value)
            }
            OpKind::Set => self.store(),
            OpKind::Add if is_there => (Rejected, ReplyKind::NotStored),
            OpKind::Replace | OpKind::Append | OpKind::Prepend if !is_there => {
                (Rejected, ReplyKind::NotStored)
            }
            OpKind::Add | OpKind::Replace | OpKind::Append | OpKind::Prepend => self.store(),
            OpKind::Cas => match (self.unique, self.read.pop()) {
                (None, _) => (Rejected, ReplyKind::NotFound),
                (held, read) if held == read => self.store(),
                _ => (Rejected, ReplyKind::Exists),
            },
            OpKind::Incr | OpKind::Decr => (Done, ReplyKind::Number),
            OpKind::Delete | OpKind::Touch if !is_there => (Rejected, ReplyKind::NotFound),
            OpKind::Delete => {
                self.unique = None;
                (Done, ReplyKind::Deleted)
            }
            OpKind::Touch => (Done, ReplyKind::Touched),
            OpKind::Raw => unreachable!("no mix has it"),
        }
    }
}

/// One client, one key, all kinds: the outcome of every single operation is known.
#[test]
fn one_key_answers_as_the_protocol_says() {
    for mix in
        [ALL_KINDS, "gets=2,cas=2,set", "get,delete,add,replace,touch", "incr,decr", "mget,delete,set=2"]
    {
        let multiget = if mix.contains("mget") { "multiget = 3" } else { "" };
        let outcome = simulate(
            &format!(
                "connections = 1\nrequests = 3000\nkeys = 1\nvalue-size = 40\nmix = '{mix}'\n{multiget}"
            ),
            SimOptions::default().latency(10 * US),
        );
        let mut key = OneKey { unique: Some(0), stores: 0, read: Vec::new() };
        let mut expected = [OpCounts::default(); OpKind::COUNT];
        for (nth, sample) in outcome.samples.iter().enumerate() {
            let (class, reply) = key.ask(sample.op.kind());
            assert_eq!(
                (sample.outcome.class, sample.outcome.reply),
                (class, reply),
                "operation {nth}: {} of {mix}",
                sample.op
            );
            let asked = if sample.op.kind() == OpKind::Mget { 3 } else { 1 };
            let hits = if class == OutcomeClass::Hit { asked } else { 0 };
            let op_counts = &mut expected[sample.op.kind() as usize];
            op_counts.record_many(sample.op, sample.outcome, asked, hits, 1);
            op_counts.requests.scheduled += 1;
            op_counts.requests.sent += 1;
            op_counts.requests.wire_requests += 1;
        }
        assert_eq!(outcome.samples.len(), 3_000);
        for kind in OpKind::ALL {
            // What happened when is the business of every test of a window; here it is what became of the operations.
            let found = OpCounts { in_window: WindowCounts::default(), ..outcome.measured(kind) };
            assert_eq!(found, expected[kind as usize], "{kind} of {mix}");
        }
        check_counters(&outcome, mix);
    }
}

/// What was recorded is what the server counted, kind by kind, and what went over the wire.
fn check_counters(outcome: &Outcome, mix: &str) {
    let of = |kind| outcome.sum(|_, held| held == kind).requests;
    let counters = &outcome.counters[0];
    let keys = outcome.sum(|_, _| true).keys;
    let stores = [OpKind::Set, OpKind::Add, OpKind::Replace, OpKind::Append, OpKind::Prepend, OpKind::Cas];
    let recorded = [
        keys.requested,
        keys.hit,
        keys.miss,
        stores.iter().map(|kind| of(*kind).sent).sum(),
        of(OpKind::Touch).sent,
        of(OpKind::Cas).reply(ReplyKind::Stored),
        of(OpKind::Cas).reply(ReplyKind::Exists),
        of(OpKind::Cas).reply(ReplyKind::NotFound),
        of(OpKind::Incr).outcome(OutcomeClass::Done),
        of(OpKind::Decr).outcome(OutcomeClass::Done),
        of(OpKind::Delete).outcome(OutcomeClass::Done),
        of(OpKind::Delete).outcome(OutcomeClass::Rejected),
    ];
    let counted = [
        counters.cmd_get,
        counters.get_hits,
        counters.get_misses,
        counters.cmd_set,
        counters.cmd_touch,
        counters.cas_hits,
        counters.cas_badval,
        counters.cas_misses,
        counters.incr_hits,
        counters.decr_hits,
        counters.delete_hits,
        counters.delete_misses,
    ];
    assert_eq!(recorded, counted, "{mix}");
    let commands = commands(&outcome.sent);
    for (kinds, verb) in [
        (&[OpKind::Get, OpKind::Mget][..], Verb::Get),
        (&[OpKind::Gets], Verb::Gets),
        (&[OpKind::Set], Verb::Set),
        (&[OpKind::Add], Verb::Add),
        (&[OpKind::Replace], Verb::Replace),
        (&[OpKind::Append], Verb::Append),
        (&[OpKind::Prepend], Verb::Prepend),
        (&[OpKind::Cas], Verb::Cas),
        (&[OpKind::Incr], Verb::Incr),
        (&[OpKind::Decr], Verb::Decr),
        (&[OpKind::Delete], Verb::Delete),
        (&[OpKind::Touch], Verb::Touch),
    ] {
        let sent: u64 = kinds.iter().map(|kind| of(*kind).wire_requests).sum();
        let on_wire = commands.iter().filter(|(held, _)| *held == verb).count() as u64;
        assert_eq!(on_wire, sent, "{verb:?} of {mix}");
    }
}

/// Many keys on many connections: no value is taken for another key's, and the counts agree with the server's.
#[test]
fn pipelines_of_all_kinds_agree_with_the_server() {
    for (load, mix) in [
        ("", ALL_KINDS),
        ("rate = 20000", ALL_KINDS),
        ("think = '1ms'", "get=3,gets,cas,set,delete"),
        ("rate = 20000\narrival = 'uniform'", "mget=2,set,delete"),
    ] {
        let outcome = simulate(
            &format!(
                "{load}\nconnections = 5\ndepth = 6\nrequests = 4000\nwarmup = '10ms'\nkeys = 40\nmix = '{mix}'\n\
                 value-size = 'uniform:0,5000'\npopularity = 'zipf:0.8'"
            ),
            SimOptions::of(CoreOptions { service: Service::Exponential(30 * US), ..CoreOptions::default() })
                .latency(40 * US),
        );
        let requests = outcome.requests();
        assert_eq!((requests.offered(), requests.completed(), requests.failed()), (4_000, 4_000, 0), "{mix}");
        check_counters(&outcome, mix);
    }
}

/// A key lives exactly its time to live; a touch gives it a new one.
#[test]
fn keys_live_as_long_as_they_were_told() {
    for (touches, misses_from_ns) in [(false, SECOND), (true, u64::MAX)] {
        let toucher = "[[class]]\nname = 'toucher'\nmix = 'touch'\nrate = 10\narrival = 'uniform'\n";
        let outcome = simulate(
            &format!(
                "time = '3s'\nkeys = 1\nttl = '1s'\nconnections = 1\n{}[[class]]\nname = 'reader'\n\
                 mix = 'get'\nrate = 1000\narrival = 'uniform'\n",
                if touches { toucher } else { "" }
            ),
            SimOptions::default(),
        );
        let reader = u16::from(touches);
        // Preload took no time: the schedule began with its end, but for the time ahead.
        let stored_ns = outcome.start_ns() - START_AHEAD_NS;
        for sample in outcome.samples.iter().filter(|sample| sample.class == reader) {
            let age_ns = sample.times.sent_ns - stored_ns;
            let is_hit = sample.outcome.class == OutcomeClass::Hit;
            assert_eq!(is_hit, age_ns < misses_from_ns, "{age_ns} ns after it was stored");
        }
        assert_eq!(outcome.counters[0].touch_hits, if touches { 30 } else { 0 });
        assert!(touches || outcome.count(OutcomeClass::Miss) > 1_900);
    }
}

/// The value of a key as stored, and of any other version.
pub(super) fn value(id: u64, version: u32) -> Vec<u8> {
    static PAYLOAD: OnceLock<Payload> = OnceLock::new();
    let payload = PAYLOAD.get_or_init(|| Payload::new(1, 40));
    let parts = payload.value(id, version, 40);
    [parts.head(), &payload.block()[parts.offset..parts.offset + parts.len]].concat()
}

/// Rewrites a reply with one value: `change` gets the id and makes what the server says of it. A unique stays.
pub(super) fn rewrite(reply: &mut Vec<u8>, change: impl Fn(u64) -> (u64, Vec<u8>)) {
    if reply.starts_with(b"VALUE ") {
        let line_len = reply.windows(2).position(|pair| pair == b"\r\n").unwrap();
        let words: Vec<&str> = std::str::from_utf8(&reply[..line_len]).unwrap().split(' ').collect();
        let (id, value) = change(words[1].parse().unwrap());
        let unique = words.get(4).map(|unique| format!(" {unique}")).unwrap_or_default();
        let line = format!("VALUE {id:030} 0 {}{unique}\r\n", value.len());
        *reply = [line.as_bytes(), &value, b"\r\nEND\r\n"].concat();
    }
}

/// Of two values each in the other's place.
fn reverse(reply: &mut [u8]) {
    let len = "VALUE  0 40\r\n\r\n".len() + 30 + 40;
    if reply.len() == 2 * len + 5 {
        reply[..2 * len].rotate_left(len);
    }
}

/// What becomes of a reply on its way.
pub(super) type Tamper = fn(&mut Vec<u8>);

/// A value that is not the one that was stored under the key is a mismatch, whatever is wrong with it.
#[test]
fn values_that_were_not_stored_are_mismatches() {
    use OutcomeClass::{Error, Hit, Mismatch};
    let table: [(&str, &str, Tamper, OutcomeClass); 11] = [
        ("as stored", "get", |_| {}, Hit),
        ("as stored, spelt anew", "get", |reply| rewrite(reply, |id| (id, value(id, 0))), Hit),
        ("of another key", "get", |reply| rewrite(reply, |id| (id, value(id ^ 1, 0))), Mismatch),
        ("under another key", "get", |reply| rewrite(reply, |id| (id ^ 1, value(id ^ 1, 0))), Mismatch),
        ("of another version", "get", |reply| rewrite(reply, |id| (id, value(id, 1))), Mismatch),
        (
            "spliced",
            "gets",
            |reply| rewrite(reply, |id| (id, [&value(id, 0)[..20], &value(id ^ 1, 0)[20..]].concat())),
            Mismatch,
        ),
        ("cut", "get", |reply| rewrite(reply, |id| (id, value(id, 0)[..39].to_vec())), Mismatch),
        ("cut to nothing", "get", |reply| rewrite(reply, |id| (id, Vec::new())), Mismatch),
        ("overlong", "get", |reply| rewrite(reply, |id| (id, [value(id, 0), vec![0]].concat())), Mismatch),
        ("in the wrong order", "mget", |reply| reverse(reply), Mismatch),
        (
            "twice",
            "get",
            |reply| {
                if reply.starts_with(b"VALUE ") {
                    reply.truncate(reply.len() - 5);
                    *reply = [&reply[..], &reply[..], b"END\r\n"].concat();
                }
            },
            Error,
        ),
    ];
    for (what, mix, tamper, class) in table {
        let multiget = if mix == "mget" { "multiget = 2\npopularity = 'sequential'" } else { "" };
        let outcome = simulate(
            &format!("connections = 1\nrequests = 100\nkeys = 2\nvalue-size = 40\nmix = '{mix}'\n{multiget}"),
            SimOptions { tamper: Some(tamper), ..SimOptions::default().latency(10 * US) },
        );
        assert_eq!(outcome.count(class), 100, "{what}: {:?}", outcome.op_counts(Phase::Measure));
        let keys = outcome.op_counts(Phase::Measure).keys;
        assert_eq!(keys.failed, if class == Hit { 0 } else { keys.requested }, "{what}");
        let garbage = outcome.store.faults().rows().iter().filter(|row| row.kind == FaultKind::Malformed);
        assert_eq!(garbage.map(|row| row.count).sum::<u64>(), if class == Error { 100 } else { 0 }, "{what}");
    }
}

/// Where others may have stored values, those that do not name themselves as ours are counted and no mismatch.
#[test]
fn values_of_others_are_foreign() {
    let outcome = simulate(
        "connections = 1\nrequests = 500\nkeys = 2\nvalue-size = 40\nmix = 'get,set'\npreload = false",
        SimOptions {
            tamper: Some(|reply| rewrite(reply, |id| (id, vec![b'x'; 40]))),
            ..SimOptions::default().latency(10 * US)
        },
    );
    let hits = outcome.count(OutcomeClass::Hit);
    assert!(hits > 200);
    assert_eq!((outcome.end.data.counts.values_foreign, outcome.count(OutcomeClass::Mismatch)), (hits, 0));
}

/// Values that grow are compared as far as they are known: any of the right key is right.
#[test]
fn values_that_grow_are_known_by_their_heads() {
    let outcome = simulate(
        "connections = 3\ndepth = 4\nrequests = 2000\nkeys = 10\nvalue-size = 'uniform:0,60'\n\
         mix = 'get=3,gets,append,prepend,set'",
        SimOptions::default().latency(10 * US),
    );
    let op_counts = outcome.op_counts(Phase::Measure);
    assert_eq!((op_counts.requests.completed(), op_counts.keys.hit), (2_000, op_counts.keys.requested));
}

/// What the server does wrong to every so many requests: every value of them is wrong, and every key of them failed.
#[test]
fn wrong_values_fail_all_keys_of_their_request() {
    let outcome = simulate(
        "connections = 1\nrequests = 1000\nkeys = 50\nmix = 'mget'\nmultiget = 7",
        SimOptions::of(CoreOptions {
            script_after: 50,
            faults: Faults { wrong_every: Every::new(10), ..Faults::default() },
            ..CoreOptions::default()
        })
        .latency(10 * US),
    );
    let op_counts = outcome.measured(OpKind::Mget);
    assert_eq!((outcome.count(OutcomeClass::Mismatch), outcome.count(OutcomeClass::Hit)), (100, 900));
    assert_eq!((op_counts.keys.requested, op_counts.keys.hit, op_counts.keys.failed), (7_000, 6_300, 700));
}

/// A connection that is closed in the middle of a value takes along what is behind it, and the next one is as good as new.
#[test]
fn values_that_are_cut_off_are_lost() {
    for (mix, depth) in [("get", 1), ("mget", 1), ("mget,get,set", 8)] {
        let outcome = simulate(
            &format!("connections = 1\ndepth = {depth}\nrequests = 2000\nkeys = 50\nmix = '{mix}'"),
            SimOptions::of(CoreOptions {
                script_after: 50,
                faults: Faults { cut_every: Every::new(40), ..Faults::default() },
                ..CoreOptions::default()
            })
            .latency(10 * US),
        );
        let requests = outcome.requests();
        let cuts = outcome.counters[0].faults_cut;
        assert_eq!(requests.failed(), requests.outcome(OutcomeClass::Lost), "{mix}: nothing worse than lost");
        assert_eq!(requests.completed() + requests.failed() + requests.unsent, 2_000);
        assert_eq!(outcome.connections().lost, cuts);
        // Of the requests that the server counted, each fortieth.
        assert!(cuts >= 2_000 / (40 + depth) && requests.failed() >= cuts, "{cuts} cuts");
        assert!(
            depth > 1 || (cuts, requests.failed()) == (50, 50),
            "{cuts} cuts, {} lost",
            requests.failed()
        );
    }
}

/// A quantity that every request has is metered as often, whether others are metered beside it or not.
#[test]
fn a_quantity_is_metered_without_the_others() {
    const REQUESTS: u64 = 200;
    let kinds = [
        MeterKind::Outstanding,
        MeterKind::RequestSize,
        MeterKind::ResponseSize,
        MeterKind::ValueReceived,
        MeterKind::FirstByte,
    ];
    for kind in kinds {
        for (mix, multiget) in [("get", ""), ("get,mget", "multiget = 1")] {
            let outcome = simulate(
                &format!(
                    "connections = 2\ndepth = 3\nrequests = {REQUESTS}\nkeys = 10\nmix = '{mix}'\n\
                     {multiget}\nmeter = ['{}']",
                    kind.name()
                ),
                SimOptions::default().latency(10 * US),
            );
            assert_eq!(outcome.meter(kind).histogram.count(), REQUESTS, "{} of {mix}", kind.name());
        }
    }
}

/// The first byte of every reply has its time, and what was never answered has none.
#[test]
fn first_bytes_are_metered_as_samples_have_them() {
    for depth in [1, 8] {
        let faults = Faults { drop_every: brunt_server::Every::new(50), ..Faults::default() };
        let outcome = simulate(
            &format!(
                "connections = 2\ndepth = {depth}\nrequests = 2000\nkeys = 10\nmix = 'get,mget'\n\
                 multiget = 5\ntimeout = '5ms'\npreload = false\nmeter = ['first-byte']"
            ),
            SimOptions::of(CoreOptions { faults, ..serving(30 * US) }).latency(10 * US),
        );
        let answered: Vec<u64> = outcome
            .samples
            .iter()
            .filter(|sample| sample.outcome.reply != ReplyKind::None)
            .map(|sample| sample.times.first_byte_ns())
            .collect();
        let moments = outcome.meter(MeterKind::FirstByte).histogram.moments();
        assert!(answered.len() < 2_000, "some time out");
        assert_eq!(outcome.meter(MeterKind::FirstByte).histogram.count(), answered.len() as u64);
        assert_eq!(moments.sum, answered.iter().map(|ns| u128::from(*ns)).sum::<u128>());
        assert_eq!(
            (moments.min, moments.max),
            (*answered.iter().min().unwrap(), *answered.iter().max().unwrap())
        );
    }
}

/// Hits and misses have response times of their own, and errors none.
#[test]
fn hits_and_misses_are_metered_apart() {
    let faults = Faults { error_every: brunt_server::Every::new(40), ..Faults::default() };
    let outcome = simulate(
        "connections = 2\ndepth = 3\nrequests = 2000\nkeys = 10\nmix = 'get=5,delete=1,set=1'\n\
         preload = false\nmeter = ['hit-time', 'miss-time']",
        SimOptions::of(CoreOptions { faults, ..serving(30 * US) }).latency(10 * US),
    );
    for (kind, reply) in [(MeterKind::HitTime, ReplyKind::Value), (MeterKind::MissTime, ReplyKind::NotFound)]
    {
        let of_kind = outcome.samples.iter().filter(|sample| sample.outcome.reply == reply);
        let expected: Vec<u64> = of_kind.map(|sample| sample.times.response_ns()).collect();
        let moments = outcome.meter(kind).histogram.moments();
        assert!(expected.len() > 300, "{reply:?}: {}", expected.len());
        assert_eq!(
            (moments.count, moments.sum),
            (expected.len() as u64, expected.iter().map(|ns| u128::from(*ns)).sum())
        );
    }
}

/// A whole reply is one value, in however many pieces it comes, and all values together are the bytes that came.
#[test]
fn replies_are_metered_by_their_bytes() {
    for (mix, depth, piece_bytes, expected) in [
        ("set", 1, usize::MAX, Some((8, 8))),
        ("set", 4, 3, Some((8, 8))),
        // VALUE, 20 bytes of key, flags, length; the value; END.
        ("get", 1, usize::MAX, Some((34 + 100 + 7, 34 + 100 + 7))),
        ("get,set", 8, 7, Some((8, 34 + 100 + 7))),
        ("mget,get,delete,set,incr", 4, 11, None),
    ] {
        let outcome = simulate(
            &format!(
                "connections = 2\ndepth = {depth}\nrequests = 500\nkeys = 50\nkey-size = 20\n\
                 value-size = 100\nmix = '{mix}'\nmeter = ['response-size']"
            ),
            SimOptions { piece_bytes, ..SimOptions::default().latency(10 * US) },
        );
        let moments = outcome.meter(MeterKind::ResponseSize).histogram.moments();
        assert_eq!(moments.count, 500, "{mix}");
        let received = outcome.store.bytes_in(Phase::Measure).rx;
        assert_eq!(moments.sum, u128::from(received), "{mix}");
        if let Some(expected) = expected {
            assert_eq!((moments.min, moments.max), expected, "{mix}");
        }
    }
    let outcome = simulate(
        "transport = 'udp'\ndepth = 16\nconnections = 1\nrequests = 100\nkeys = 50\nkey-size = 20\n\
         value-size = 1000\nmix = 'mget'\nmultiget = 5\nmeter = ['response-size']",
        SimOptions::default().latency(10 * US),
    );
    let moments = outcome.meter(MeterKind::ResponseSize).histogram.moments();
    // In four datagrams, whose headers are no part of it.
    let expected = 5 * (35 + 1_000 + 2) + 5;
    assert_eq!((moments.count, moments.min, moments.max), (100, expected, expected));
}
