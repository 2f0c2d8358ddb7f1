//! UDP framing against captured datagrams, then properties over loss, disorder and copies.

use super::*;
use crate::memcached::tests::transcript::{join, phrases, unescaped};
use crate::memcached::{DatagramCodec, MetaCodec, TextCodec};
use crate::out::Out;
use crate::{Codec, Keys, NO_TOKEN, Request, Value};
use brunt_plan::op::OpKind;
use brunt_plan::plan::Protocol;
use brunt_plan::resolve::{Host, resolve};
use brunt_plan::spec::PlanSpec;
use proptest::prelude::*;

/// The longest request with its header. The protocol has no requests of several datagrams, and longer ones are not certain
/// to travel in one piece (1500 bytes of Ethernet, less what headers and tunnels take); plans refuse longer ones.
const REQUEST_BYTES_MAX: usize = 1400;

// --- Captured datagrams ---

/// Text in which `(x*3)` stands for `xxx`.
fn expanded(text: &str) -> String {
    let mut parts = text.split("(x*");
    let first = parts.next().unwrap_or_default().to_owned();
    parts.fold(first, |all, part| {
        let (count, rest) = part.split_once(')').expect("a closing bracket");
        all + &"x".repeat(count.parse().expect("a count")) + rest
    })
}

/// What becomes of datagrams that answer one request: what each is, and what its bytes say.
fn receive<C: Codec>(mut codec: C, datagrams: &[Vec<u8>]) -> Vec<String> {
    let (mut reassembly, mut seen, mut stream, mut used_total) =
        (Reassembly::default(), Vec::new(), Vec::new(), 0);
    for datagram in datagrams {
        let (header, payload) = Header::split(datagram).expect("a header");
        match reassembly.receive(header, payload.len()) {
            ReassemblyStep::Next { held: 0 } => stream.extend_from_slice(payload),
            arrival => seen.push(format!("{arrival:?}")),
        }
        while let (used, Some(event)) = codec.decode(&stream[used_total..]) {
            used_total += used;
            phrases(&event).into_iter().for_each(|said| join(&mut seen, said));
        }
    }
    assert_eq!((used_total, reassembly), (stream.len(), Reassembly::default()), "all is told");
    seen
}

#[test]
fn memcached_answers_in_trains() {
    let file = include_str!("golden/memcached-1.6.18.txt");
    let mut next_id = 0x1230;
    for exchange in file.split("\n\n").filter(|exchange| exchange.starts_with('>')) {
        let lines = |first| {
            exchange.lines().filter_map(move |line| Some(expanded(line.strip_prefix(first)?.trim_start())))
        };
        let sent = unescaped(&lines('>').next().expect("a request"));
        let received: Vec<Vec<u8>> = lines('<').map(|line| unescaped(&line)).collect();
        let expected = lines('=').next().expect("events");
        let (header, request) = Header::split(&sent).expect("a header");
        assert_eq!(header, Header::request(next_id));
        next_id += 1;
        assert_eq!(header.to_bytes(), sent[..HEADER_BYTES]);
        for datagram in &received {
            let (answer, _) = Header::split(datagram).expect("a header");
            assert_eq!((answer.request_id, answer.reserved), (header.request_id, 0));
            assert_eq!(answer.to_bytes(), datagram[..HEADER_BYTES]);
            assert!(datagram.len() <= DATAGRAM_BYTES_MAX);
            assert!(datagram.len() == DATAGRAM_BYTES_MAX || answer.sequence + 1 >= answer.total);
        }
        let is_meta = request[0] == b'm';
        let said =
            if is_meta { receive(MetaCodec::new(), &received) } else { receive(TextCodec::new(), &received) };
        assert_eq!(said.join("; "), expected, "{}", request.escape_ascii());
    }
    assert_eq!(next_id, 0x1230 + 22);
}

// --- Plans ---

/// How long a request is as a datagram, with the largest numbers that a plan can lead to.
fn request_bytes(
    protocol: Protocol,
    kind: OpKind,
    keys: Keys<'_>,
    value_bytes: usize,
    noreply: bool,
) -> usize {
    let value = vec![b'v'; value_bytes];
    let request = Request {
        value: if kind.carries_value() { Value { head: &value, ..Value::NONE } } else { Value::NONE },
        ttl_s: 720 * 3600,
        operand: u64::MAX,
        noreply: noreply && !kind.is_retrieval(),
        token: NO_TOKEN - 1,
        ..Request::of(kind, keys)
    };
    let mut out = Out::with_room(1 << 16);
    match protocol {
        Protocol::MemcachedMeta => DatagramCodec::new(MetaCodec::new(), 1, 0).encode(&request, &mut out),
        _ => DatagramCodec::new(TextCodec::new(), 1, 0).encode(&request, &mut out),
    };
    out.contiguous().expect("nothing of it is a reference").len()
}

/// Does the plan's arithmetic let such requests pass?
fn is_planned(protocol: Protocol, toml: &str) -> bool {
    let toml = format!(
        "protocol = '{protocol}'\ntransport = 'udp'\nkeys = 100\nprefix = ''\npreload = false\nconnections = 1\n{toml}"
    );
    let host = Host::of(vec![0], 1);
    resolve(&PlanSpec::from_toml(&toml).expect("a plan"), &host).is_ok()
}

/// The last number from 1 that `fits`, where no greater one does and all up to it do.
fn most_that(fits: impl Fn(usize) -> bool, max: usize) -> usize {
    let (mut most, mut over) = (1, max + 1);
    assert!(fits(most));
    while most + 1 < over {
        let middle = usize::midpoint(most, over);
        if fits(middle) { most = middle } else { over = middle }
    }
    most
}

/// What a plan takes for the longest request fits into a datagram as it is written, and little room is given away.
#[test]
fn planned_requests_fit_a_datagram() {
    for protocol in [Protocol::MemcachedText, Protocol::MemcachedMeta] {
        for key_bytes in [3, 30, 100, 250] {
            let key = vec![b'k'; key_bytes];
            let one = Keys { bytes: &key, ends: &[key_bytes as u32] };
            for kind in OpKind::ALL.into_iter().filter(|kind| !matches!(kind, OpKind::Mget | OpKind::Raw)) {
                for noreply in [false, true] {
                    if noreply && kind.is_retrieval() {
                        continue;
                    }
                    let mix =
                        if kind == OpKind::Cas { "gets=1,cas=1".to_owned() } else { format!("{kind}=1") };
                    let fits = |value: usize| {
                        let toml = format!(
                            "key-size = {key_bytes}\nvalue-size = {value}\nmix = '{mix}'\nnoreply = {noreply}"
                        );
                        is_planned(protocol, &toml)
                    };
                    let what = format!("{protocol} {kind} key {key_bytes} noreply {noreply}");
                    let most = most_that(fits, REQUEST_BYTES_MAX);
                    let bytes = request_bytes(protocol, kind, one, most, noreply);
                    assert!(bytes <= REQUEST_BYTES_MAX, "{what}: {bytes} with a value of {most}");
                    let given_away = REQUEST_BYTES_MAX - bytes;
                    assert!(!kind.carries_value() || given_away < 100, "{what}: {given_away}");
                }
            }
            let fits = |keys: usize| {
                let toml =
                    format!("key-size = {key_bytes}\nvalue-size = 1\nmix = 'mget=1'\nmultiget = {keys}");
                is_planned(protocol, &toml)
            };
            let most = most_that(fits, 200);
            assert!(most >= 2, "two keys fit");
            let ends: Vec<u32> = (1..=most).map(|nth| (nth * key_bytes) as u32).collect();
            let all = Keys { bytes: &key.repeat(most), ends: &ends };
            let bytes = request_bytes(protocol, OpKind::Mget, all, 0, false);
            assert!(bytes <= REQUEST_BYTES_MAX, "{protocol} {most} keys of {key_bytes}: {bytes}");
            let given_away = REQUEST_BYTES_MAX - bytes;
            assert!(
                most == 128 || given_away < key_bytes + 600,
                "{protocol} {most} of {key_bytes}: {given_away}"
            );
        }
    }
}

// --- Headers ---

#[test]
fn a_header_is_four_numbers() {
    let header = Header { request_id: 0x0102, sequence: 0x0304, total: 0x0506, reserved: 0x0708 };
    assert_eq!(header.to_bytes(), [1, 2, 3, 4, 5, 6, 7, 8]);
    assert_eq!(Header::split(&[1, 2, 3, 4, 5, 6, 7, 8, 9]), Some((header, &[9][..])));
    assert_eq!(Header::split(&[1, 2, 3, 4, 5, 6, 7, 8]), Some((header, &[][..])));
    assert_eq!(Header::split(&[1, 2, 3, 4, 5, 6, 7]), None);
}

// --- Trains ---

/// Datagrams as (sequence, total), each with what becomes of it.
#[test]
fn datagrams_are_placed() {
    let next = |held| ReassemblyStep::Next { held };
    use ReassemblyStep::{Ahead, Disordered, Duplicate, Hollow, Malformed};
    let table: &[&[(u16, u16, ReassemblyStep)]] = &[
        &[(0, 1, next(0)), (0, 1, next(0))],
        &[(0, 3, next(0)), (1, 3, next(0)), (2, 3, next(0)), (0, 1, next(0))],
        // Disorder.
        &[(1, 2, Ahead), (0, 2, next(1)), (0, 1, next(0))],
        &[(2, 4, Ahead), (0, 4, next(0)), (3, 4, Ahead), (1, 4, next(2)), (0, 4, next(0))],
        &[(64, 66, Ahead), (65, 66, Disordered), (0, 66, next(0)), (65, 66, Ahead)],
        // Copies.
        &[(0, 2, next(0)), (0, 2, Duplicate), (1, 2, next(0))],
        &[(1, 3, Ahead), (1, 3, Duplicate), (0, 3, next(1)), (1, 3, Duplicate), (2, 3, next(0))],
        &[(0, 2, next(0)), (1, 2, next(0)), (1, 2, Ahead), (0, 1, next(0)), (0, 1, next(0))],
        // A train that another overtakes, and one that lost its end.
        &[(0, 2, next(0)), (0, 1, Disordered), (1, 2, next(0))],
        &[(0, 3, next(0)), (2, 3, Ahead), (0, 1, Disordered)],
        // Nothing in it.
        &[(0, 0, Hollow), (0, 1, next(0)), (0, 0, Hollow)],
        &[(7, 0, Hollow)],
        &[(1, 1, Malformed), (0, 1, next(0))],
        &[(u16::MAX, 3, Malformed), (0, 3, next(0)), (3, 3, Malformed), (1, 3, next(0))],
    ];
    for datagrams in table {
        let mut reassembly = Reassembly::default();
        for &(sequence, total, expected) in *datagrams {
            let header = Header { request_id: 1, sequence, total, reserved: 0 };
            let payload_len = if total == 0 { 0 } else { 1 };
            assert_eq!(
                reassembly.receive(header, payload_len),
                expected,
                "{sequence}/{total} in {datagrams:?}"
            );
        }
    }
    for (total, payload_len) in [(0, 1), (1, 0)] {
        let header = Header { request_id: 1, sequence: 0, total, reserved: 0 };
        assert_eq!(Reassembly::default().receive(header, payload_len), Malformed);
    }
}

#[test]
fn the_longest_train_arrives() {
    let mut reassembly = Reassembly::default();
    for sequence in 0..u16::MAX {
        let header = Header { request_id: 1, sequence, total: u16::MAX, reserved: 0 };
        assert_eq!(reassembly.receive(header, 1), ReassemblyStep::Next { held: 0 });
    }
    assert_eq!(reassembly, Reassembly::default());
}

proptest! {
    #[test]
    fn reassembly_yields_the_train_in_order(
        total in 1u16..200,
        swaps in prop::collection::vec((any::<prop::sample::Index>(), 0usize..40), 0..200),
        copies in prop::collection::vec(any::<prop::sample::Index>(), 0..20),
    ) {
        // Within a distance that is held, any order; copies are behind their originals and before the train's end.
        let mut order: Vec<u16> = (0..total).collect();
        for (at, distance) in swaps {
            let at = at.index(order.len());
            let other = (at + distance).min(order.len() - 1);
            let far = order[at].abs_diff(other as u16).max(order[other].abs_diff(at as u16));
            if far < AHEAD_MAX / 2 {
                order.swap(at, other);
            }
        }
        for copy in copies {
            let at = copy.index(order.len());
            if at + 1 < order.len() {
                order.insert(at + 1, order[at]);
            }
        }
        let (mut reassembly, mut handed, mut seen) = (Reassembly::default(), Vec::new(), Vec::new());
        for sequence in order {
            let is_copy = seen.contains(&sequence);
            seen.push(sequence);
            match reassembly.receive(Header { request_id: 1, sequence, total, reserved: 0 }, 1) {
                ReassemblyStep::Next { held } => handed.extend(sequence..=sequence + held),
                ReassemblyStep::Ahead => prop_assert!(sequence as usize > handed.len()),
                arrival => prop_assert_eq!((arrival, is_copy), (ReassemblyStep::Duplicate, true)),
            }
        }
        prop_assert_eq!(handed, (0..total).collect::<Vec<_>>());
        prop_assert_eq!(reassembly, Reassembly::default());
    }

    #[test]
    fn any_datagram_is_placed_or_discarded(
        datagrams in prop::collection::vec((any::<u16>(), 0u16..5, 0u16..5, 0usize..3), 0..50),
    ) {
        // Never a datagram twice or out of order within a train, whatever comes.
        let (mut reassembly, mut next, mut train) = (Reassembly::default(), 0, 0);
        for (request_id, sequence, total, payload_len) in datagrams {
            let header = Header { request_id, sequence, total, reserved: 0 };
            if let ReassemblyStep::Next { held } = reassembly.receive(header, payload_len) {
                prop_assert!(payload_len > 0 && (next == 0 || total == train));
                prop_assert_eq!(sequence, next);
                (next, train) = (sequence + held + 1, total);
                prop_assert!(next <= total);
                next %= total;
            }
        }
    }
}
