//! Replies that carry tokens: in another order, twice, too late, without a token, in pieces, and none at all.
//!
//! The world is a server of which every reply is right, and a script that says when each comes, if it does. Invariant: the
//! `n`th sample is the `n`th request, because an open loop over one connection sends them in their order.

use super::scripted::{Answers, Scripted, run_scripted};
use super::{MS, US, endpoints, plan};
use crate::io::canned::{Canned, Interface, Replies};
use crate::run::blueprint::{Blueprint, DataSets};
use crate::worker::WorkerEnd;
use brunt_plan::outcome::OutcomeClass;
use brunt_plan::phase::Phase;
use brunt_plan::plan::{Plan, Protocol};
use brunt_plan::shard::{Shard, shards};
use brunt_proto::Codec;
use brunt_proto::memcached::{BinaryCodec, MetaCodec};
use brunt_stats::connection::FirstError;
use brunt_stats::request_counts::{OpCounts, RequestCounts};
use brunt_stats::sample::Sample;
use brunt_workload::keys::KeyGenerator;
use brunt_workload::payload::Payload;
use std::sync::Arc;

const DIALECTS: [Protocol; 2] = [Protocol::MemcachedMeta, Protocol::MemcachedBinary];

/// A request as it reaches the server.
#[derive(Clone, Copy)]
struct Asked {
    /// Its number among all.
    number: usize,
    /// The number of its connection among all that there ever were.
    connection: usize,
}

/// What comes of a request whose right reply this is: when, counted from the request, and what.
type Script = fn(Asked, Vec<u8>) -> Vec<(u64, Vec<u8>)>;

/// The length of the request at the front.
fn request_len(protocol: Protocol, bytes: &[u8]) -> usize {
    if protocol == Protocol::MemcachedBinary {
        return 24 + u32::from_be_bytes(bytes[8..12].try_into().unwrap()) as usize;
    }
    let line_len = bytes.windows(2).position(|pair| pair == b"\r\n").unwrap() + 2;
    let mut words = bytes[..line_len].split(|byte| *byte == b' ');
    match words.next() {
        Some(b"ms") => {
            line_len + std::str::from_utf8(words.nth(1).unwrap()).unwrap().parse::<usize>().unwrap() + 2
        }
        _ => line_len,
    }
}

/// What a run came to.
pub(super) struct Ended {
    /// By intended time.
    pub samples: Vec<Sample>,
    pub requests: RequestCounts,
    strays: u64,
    /// Connections that were lost.
    pub lost: u64,
    pub end: WorkerEnd,
}

impl Ended {
    fn outcomes(&self, class: OutcomeClass) -> u64 {
        self.requests.outcome(class)
    }
}

/// Runs a plan of one thread and one connection against a script.
fn run(protocol: Protocol, toml: &str, piece_bytes: usize, script: Script) -> Ended {
    let toml = format!("protocol = '{protocol}'\nserver = 'a'\nconnections = 1\npreload = false\n{toml}");
    let plan = plan(&toml);
    let keyspace = KeyGenerator::new(&plan.data_sets()[0], plan.data_seed);
    let payload = Payload::new(plan.data_seed, keyspace.value_len_max());
    let replies = Replies::of(protocol);
    let mut server = Canned::new(replies, 1, 1, keyspace, &payload, Interface::UNBOUNDED);
    let mut asked = 0;
    let answers: Answers = Box::new(move |wire, mut bytes| {
        let mut answers = Vec::new();
        while !bytes.is_empty() {
            let (request, behind) = bytes.split_at(request_len(protocol, bytes));
            bytes = behind;
            answers
                .extend(script(Asked { number: asked, connection: wire.number }, server.reply_to(request)));
            asked += 1;
        }
        answers
    });
    match protocol {
        Protocol::MemcachedMeta => run_with(plan, |_, _| MetaCodec::new(), piece_bytes, answers),
        _ => run_with(plan, |_, _| BinaryCodec::default(), piece_bytes, answers),
    }
}

/// Runs a plan of one thread and one connection in such a world.
pub(super) fn run_with<C: Codec>(
    plan: Plan,
    codec: impl FnOnce(&Blueprint, &Shard) -> C,
    piece_bytes: usize,
    answers: Answers,
) -> Ended {
    let shard = shards(&plan).remove(0);
    let blueprint = Arc::new(Blueprint::new(plan.clone(), endpoints(&plan), DataSets::ToStore));
    let codec = codec(&blueprint, &shard);
    let (kept, end) = run_scripted(&blueprint, shard, codec, Scripted::new(piece_bytes, 0, 0, answers));
    let measured = kept.store.request_counts().entries().filter(|entry| entry.phase == Phase::Measure);
    let mut op_counts = OpCounts::default();
    measured.for_each(|entry| op_counts.merge(&entry.counts));
    let samples = end.data.samples.clone();
    let lost = kept.store.connections().iter().map(|counts| counts.lost).sum();
    assert_eq!(kept.store.faults().total(), lost, "nothing but a lost connection is a fault");
    Ended { samples, requests: op_counts.requests, strays: end.data.counts.unmatched_replies, lost, end }
}

/// A thousand requests, one each millisecond, as many out as want to be.
const OPEN: &str = "rate = 1000\narrival = 'uniform'\ntime = '1s'\ndepth = 256\nmix = 'get'";

/// Each reply is recorded to the request whose token it bears, however many overtake it, and however it is cut.
#[test]
fn replies_may_overtake_each_other() {
    const AFTER_NS: [u64; 5] = [4_600 * US, 300 * US, 2_700 * US, 900 * US, 8_100 * US];
    for protocol in DIALECTS {
        for piece_bytes in [usize::MAX, 100, 7, 1] {
            let ended = run(protocol, OPEN, piece_bytes, |asked, reply| {
                vec![(AFTER_NS[asked.number % AFTER_NS.len()], reply)]
            });
            assert_eq!(ended.samples.len(), 1_000);
            assert_eq!((ended.outcomes(OutcomeClass::Hit), ended.strays, ended.lost), (1_000, 0, 0));
            for (number, sample) in ended.samples.iter().enumerate() {
                let expected_ns = AFTER_NS[number % AFTER_NS.len()];
                assert_eq!(sample.times.service_ns(), expected_ns, "{protocol} {piece_bytes} {number}");
                assert_eq!(sample.times.first_byte_ns, sample.times.done_ns);
            }
        }
    }
}

/// What comes a second time is passed over.
#[test]
fn duplicate_replies_count_once() {
    for protocol in DIALECTS {
        for piece_bytes in [usize::MAX, 7, 1] {
            for (script, gap_ns) in [
                ((|_, reply| vec![(MS / 2, [reply.clone(), reply].concat())]) as Script, 0),
                (|_, reply| vec![(MS / 2, reply.clone()), (3 * MS, reply)], 3),
            ] {
                let ended = run(protocol, OPEN, piece_bytes, script);
                let ends = (ended.outcomes(OutcomeClass::Hit), ended.requests.scheduled, ended.lost);
                assert_eq!(ends, (1_000, 1_000, 0), "{protocol}");
                // The last ones come when nobody listens any more.
                assert!(ended.strays <= 1_000 && ended.strays + gap_ns >= 1_000, "{}", ended.strays);
                assert!(ended.samples.iter().all(|sample| sample.times.service_ns() == MS / 2));
            }
        }
    }
}

/// A request that times out goes alone: the connection goes on, and its reply is passed over when it comes, also by the
/// request that has its place by then.
#[test]
fn late_replies_are_discarded() {
    for protocol in DIALECTS {
        for piece_bytes in [usize::MAX, 7, 1] {
            for depth in [1, 4, 256] {
                let toml = format!("{OPEN}\ntimeout = '20ms'").replace("256", &depth.to_string());
                let ended = run(protocol, &toml, piece_bytes, |asked, reply| {
                    let is_late = asked.number % 100 == 50;
                    vec![(if is_late { 30_400 * US } else { 200 * US }, reply)]
                });
                let timeouts = ended.outcomes(OutcomeClass::Timeout);
                let hits = ended.outcomes(OutcomeClass::Hit);
                assert_eq!((timeouts, hits), (10, 990), "{protocol} {depth}");
                assert_eq!((ended.strays, ended.lost), (10, 0), "{protocol} {depth}");
                let timed_out =
                    ended.samples.iter().filter(|sample| sample.outcome.class == OutcomeClass::Timeout);
                assert!(timed_out.clone().all(|sample| sample.times.service_ns() == 20 * MS));
                assert_eq!(timed_out.count(), 10);
            }
        }
    }
}

/// The first half of a reply comes in time, the second too late.
#[test]
fn a_reply_may_be_given_up_in_the_middle() {
    for protocol in DIALECTS {
        let toml = format!("{OPEN}\ntimeout = '20ms'");
        // Whatever comes on the connection meanwhile would be within the value.
        let ended = run(protocol, &toml, usize::MAX, |asked, reply| match asked.number {
            500 => {
                let (front, back) = reply.split_at(reply.len() / 2);
                vec![(200 * US, front.to_vec()), (30 * MS, back.to_vec())]
            }
            501..=530 => vec![(31 * MS - (asked.number as u64 - 500) * MS, reply)],
            _ => vec![(200 * US, reply)],
        });
        assert_eq!((ended.strays, ended.lost), (1 + 10, 0), "{protocol}");
        assert_eq!(ended.outcomes(OutcomeClass::Timeout), 1 + 10, "{protocol}");
        assert_eq!(ended.outcomes(OutcomeClass::Hit), 1_000 - 11, "{protocol}");
    }
}

/// An error that does not say what it answers belongs to the oldest request that waits; where none does, it is nobody's.
#[test]
fn an_error_without_a_token_is_the_oldest_ones() {
    const ERROR: &[u8] = b"SERVER_ERROR out of memory\r\n";
    for piece_bytes in [usize::MAX, 7, 1] {
        let ended = run(Protocol::MemcachedMeta, OPEN, piece_bytes, |asked, reply| match asked.number {
            // Three are out when it comes.
            500 => vec![(2_500 * US, ERROR.to_vec())],
            600 => vec![(2_500 * US, reply), (2_600 * US, b"ERROR\r\n".to_vec())],
            601..=700 => vec![(100 * US, reply)],
            701 => vec![(100 * US, reply), (300 * US, ERROR.to_vec())],
            702..=800 => vec![(100 * US, reply)],
            _ => vec![(2_500 * US, reply)],
        });
        let errors: Vec<usize> =
            (0..1_000).filter(|number| ended.samples[*number].outcome.class == OutcomeClass::Error).collect();
        assert_eq!(errors, [500], "{piece_bytes}");
        assert_eq!((ended.strays, ended.lost), (2, 0));
        assert_eq!(ended.end.data.counts.first_error, Some(FirstError::new(b"out of memory")));
    }
}

/// A connection that brings nothing at all any more is given up, and another one takes its place.
#[test]
fn a_connection_whose_peer_is_gone_is_lost() {
    for protocol in DIALECTS {
        let toml = format!("{OPEN}\ntimeout = '50ms'");
        let ended = run(protocol, &toml, usize::MAX, |asked, reply| match asked {
            Asked { connection: 0, number: 200.. } => Vec::new(),
            _ => vec![(100 * US, reply)],
        });
        assert_eq!((ended.lost, ended.strays), (1, 0), "{protocol}");
        // Those of a time-out go one by one, and those of another with the connection.
        let timeouts = ended.outcomes(OutcomeClass::Timeout);
        assert!((50..=52).contains(&timeouts), "{protocol} {timeouts}");
        let lost = ended.outcomes(OutcomeClass::Lost);
        assert!((48..=50).contains(&lost), "{protocol} {lost}");
        assert_eq!(ended.outcomes(OutcomeClass::Hit) + timeouts + lost, 1_000, "{protocol}");
    }
}

/// Slots of a closed loop are free again when their request has timed out, and several keys are matched like one.
#[test]
fn closed_loops_go_on_after_a_time_out() {
    for protocol in DIALECTS {
        for (mix, piece_bytes) in [("get", usize::MAX), ("get=2,set=1", 1), ("get=2,mget=2,set=1", 5)] {
            let toml = format!("requests = 2000\ndepth = 4\nmix = '{mix}'\ntimeout = '10ms'");
            let ended = run(protocol, &toml, piece_bytes, |asked, reply| match asked.number {
                // A get of its own or a part of a multi-get, which then lacks an end.
                0 => Vec::new(),
                _ => vec![(100 * US, reply)],
            });
            let requests = &ended.requests;
            // In the meta protocol what is behind the first reply to a multi-get is nothing without it: the connection is given up, and
            // what else was out on it with it.
            let is_torn = protocol == Protocol::MemcachedMeta && mix.contains("mget");
            assert_eq!(
                (requests.scheduled, requests.sent, ended.lost),
                (2_000, 2_000, u64::from(is_torn)),
                "{protocol} {mix}"
            );
            assert_eq!(requests.outcome(OutcomeClass::Mismatch), 0, "{protocol} {mix}");
            assert!(requests.outcome(OutcomeClass::Timeout) <= 1, "{protocol} {mix} {requests:?}");
            let failed = if is_torn { 4 } else { 2 };
            assert!(requests.completed() >= 2_000 - failed, "{protocol} {mix} {requests:?}");
        }
    }
}
