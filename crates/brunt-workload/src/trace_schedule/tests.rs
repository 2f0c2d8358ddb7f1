//! What records become, line by line: expected times by the definition, and counts that add up.

use super::*;
use crate::goodness_of_fit::kolmogorov_smirnov;
use crate::trace_decoder::TraceDecoder;
use brunt_plan::choice::TraceLayout;
use std::collections::{BTreeMap, BTreeSet};

/// A request as it was handed over.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Sent {
    taker: u32,
    kind: OpKind,
    key: String,
    value_len: Option<u32>,
    ttl_s: u32,
    due_ns: u64,
}

/// What these lines become, under a plan that has `more` of a replay; read as often as there are rounds.
fn replayed(
    lines: &str,
    layout: &str,
    more: &str,
    takers: u32,
    run: ReplayRun,
    rounds: usize,
) -> (Vec<Sent>, TraceRecord) {
    let replay = if more.contains("replay = false") { "" } else { "replay = true\n" };
    let class = crate::tests::class(&format!(
        "connections = 64\nprefix = 'p:'\ntrace = 't'\ntrace-layout = '{layout}'\n{replay}{more}"
    ));
    let trace = class.trace.clone().unwrap();
    let layout = trace.layout.unwrap();
    let run = ReplayRun { unit_ns: layout.unit_ns(), tells_misses: layout != TraceLayout::Monitor, ..run };
    let mut schedule = TraceSchedule::new(&class, &trace, takers, run);
    let mut sent = Vec::new();
    let mut hand = |taker, record: &Record<'_>| {
        let Record { kind, key, value_len, ttl_s, due_ns } = *record;
        let key = String::from_utf8_lossy(key).into_owned();
        sent.push(Sent { taker, kind, key, value_len, ttl_s, due_ns });
    };
    for round in 1..=rounds {
        let mut decoder = TraceDecoder::new(layout);
        for line in lines.lines() {
            decoder.decode(line.as_bytes(), &mut |request| schedule.take(request, &mut hand)).unwrap();
        }
        assert_eq!(schedule.end_round(&mut hand), more.contains("trace-repeat"), "{round}");
    }
    (sent, schedule.record)
}

const RUN: ReplayRun = ReplayRun {
    class_id: 0,
    seed: 1,
    data_seed: 1,
    requests: None,
    warmup_ns: 0,
    unit_ns: 0,
    unix_s: None,
    tells_misses: true,
};

fn twitter(lines: &str, more: &str) -> (Vec<Sent>, TraceRecord) {
    replayed(lines, "twitter", more, 8, RUN, 1)
}

/// Seconds with this many gets.
const COUNTS: [u64; 10] = [1_000, 0, 5_000, 1, 2_500, 10_000, 300, 300, 0, 7_000];

fn seconds() -> String {
    let of_second = |(second, count): (usize, &u64)| -> String {
        (0..*count).map(|nth| format!("{},k{},4,10,1,get,0\n", second + 50, nth % 700)).collect()
    };
    COUNTS.iter().enumerate().map(of_second).collect()
}

/// To the nanosecond, by the definition: the k-th of n is due in the middle of the k-th of n parts of its second.
#[test]
fn uniform_times_are_exact() {
    let lines = seconds();
    for (more, numerator, denominator) in
        [("", 1, 1), ("trace-speed = 10", 1, 10), ("trace-speed = 0.5", 2, 1)]
    {
        let (sent, counts) = twitter(&lines, more);
        let expected = (0..).zip(COUNTS).flat_map(|(second, count)| {
            (0..count).map(move |nth| {
                let halves = u128::from(2 * (second * count + nth) + 1) * 1_000_000_000 * numerator;
                (halves / (u128::from(2 * count) * denominator)) as u64
            })
        });
        assert!(sent.iter().map(|one| one.due_ns).eq(expected), "{more}");
        assert_eq!(shown(&counts), "sent 26101");
    }
}

/// Kolmogorov and Smirnov's distance of each second, at 1 %; and the same numbers whichever requests are kept.
#[test]
fn poisson_times_are_uniform_within_a_second() {
    let (sent, _) = twitter(&seconds(), "arrival = 'poisson'");
    let (again, _) = twitter(&seconds(), "arrival = 'poisson'");
    assert!(sent == again);
    let mut start = 0;
    for (second, count) in (0..).zip(COUNTS) {
        let of_second = &sent[start..start + count as usize];
        start += count as usize;
        let within: Vec<f64> =
            of_second.iter().map(|one| (one.due_ns - second * 1_000_000_000) as f64 / 1e9).collect();
        assert!(within.is_sorted() && within.iter().all(|at| (0.0..1.0).contains(at)));
        let distance = kolmogorov_smirnov(&within) * (count as f64).sqrt();
        assert!(count < 300 || distance < 1.63, "second {second}: {distance}");
    }
}

/// Every rule that changes a record or leaves it out: lines, what becomes of them, and what is counted.
#[test]
fn rules_are_counted() {
    let long = "k".repeat(260);
    let table: [(&str, &str, &str, &str); 16] = [
        (
            "times that fall",
            "",
            "5,a,1,1,1,get,0\n6,b,1,1,1,get,0\n5,c,1,1,1,get,0",
            "get a 1@500 get b 1@1250 get c 1@1750; sent 3 clamped 1",
        ),
        (
            "times before the first",
            "",
            "5,a,1,1,1,get,0\n4,b,1,1,1,get,0\n3,c,1,1,1,get,0\n6,d,1,1,1,get,0",
            "get a 1@166 get b 1@500 get c 1@833 get d 1@1500; sent 4 clamped 2",
        ),
        (
            "a gap of an hour",
            "trace-speed = 3600",
            "0,a,1,1,1,get,0\n3600,b,1,1,1,get,0",
            "get a 1@0 get b 1@1000; sent 2",
        ),
        ("values and ttl", "", "0,a,1,2000000,1,set,9", "set a 1000000+9@500; sent 1 cut 1"),
        (
            "ttl by speed",
            "trace-speed = 10",
            "0,a,1,5,1,set,95\n0,b,1,5,1,set,9\n0,c,1,5,1,set,0",
            "set a 5+10@16 set b 5+1@50 set c 5@83; sent 3 ttl 1",
        ),
        (
            "keys",
            "",
            &format!("0,{long},260,1,1,get,0\n0,sp\u{7f}ce,5,1,1,get,0"),
            "get ~a60f0abbaf72c705 1@250 get ~74ce8f20ef9c45a2 1@750; sent 2 hashed 2",
        ),
        (
            "copies",
            "trace-copies = 2",
            "0,a,1,1,1,get,0\n1,a.1,3,1,1,get,0",
            "get a.0 1@250 get a.1 1@750 get a.1.0 1@1250 get a.1.1 1@1750; sent 4",
        ),
        (
            "all gets",
            "trace-gets = true",
            "0,a,1,1,1,set,0\n0,a,1,1,1,get,0",
            "get a 1@250 get a 1@750; sent 2 substituted 1",
        ),
        ("as recorded", "", "0,a,1,0,1,get,0\n0,a,1,7,1,set,0", "get a ?@250 set a 7@750; sent 2"),
        (
            "look-aside",
            "on-miss = 'set'",
            "0,a,1,0,1,get,0\n0,a,1,7,1,set,0\n0,b,1,7,1,set,0\n1,a,1,9,1,set,0",
            "get a 7@250 set b 7@750 set a 9@1500; sent 3 replaced 1",
        ),
        (
            "the last size",
            "on-miss = 'set'",
            "0,a,1,7,1,set,0\n1,a,1,0,1,get,0\n1,b,1,0,1,get,0",
            "set a 7@500 get a 7@1250 get b ?@1750; sent 3 unsized 1",
        ),
        (
            "a read is no miss",
            "on-miss = 'set'",
            "0,a,1,7,1,get,0\n0,a,1,7,1,set,0",
            "get a 7@250 set a 7@750; sent 2",
        ),
        (
            "a preload",
            "trace-preload = true\ntrace-copies = 2\non-miss = 'set'",
            "0,a,1,7,1,get,0\n0,b,1,0,1,get,0\n0,c,1,7,1,set,0\n1,a,1,9,1,get,0\n1,b,1,9,1,get,0\n1,c,1,9,1,get,0",
            "set a.0 7@250 set a.1 7@750; sent 2 unstored 10",
        ),
        (
            "by the order alone",
            "replay = false\nvalue-size = 33\nttl = '9s'",
            "0,a,1,0,1,get,0\n0,a,1,7,1,set,60\n0,b,1,7,1,set,0",
            "get a 33+9@0 set a 7+60@0 set b 7+9@0; sent 3",
        ),
        (
            "by the order of lines, as mutilate",
            "replay = false\nvalue-size = 33\ntrace-order = 'lines'",
            "0,a,1,0,1,get,0\n0,a,1,7,1,set,60",
            "get a 0@0 set a 7@0; sent 2",
        ),
        ("nothing of the sample", "trace-sample = '0.0000001%'", "0,a,1,7,1,get,0", "; sent 0 sampled 1"),
    ];
    for (name, more, lines, expected) in table {
        let (sent, counts) = twitter(lines, more);
        let of = |one: &Sent| {
            let len = one.value_len.map_or("?".to_owned(), |len| len.to_string());
            let ttl = if one.ttl_s > 0 { format!("+{}", one.ttl_s) } else { String::new() };
            format!("{} {} {len}{ttl}@{}", one.kind, one.key, one.due_ns / 1_000_000)
        };
        let sent = sent.iter().map(of).collect::<Vec<_>>().join(" ");
        assert_eq!(format!("{sent}; {}", shown(&counts)), expected, "{name}");
    }
}

fn shown(counts: &TraceRecord) -> String {
    let named = [
        ("sampled", counts.sampled_out),
        ("replaced", counts.replaced_by_fills),
        ("substituted", counts.substituted),
        ("cut", counts.cut),
        ("hashed", counts.hashed_keys),
        ("unsized", counts.unsized_retrievals),
        ("ttl", counts.raised_ttls),
        ("clamped", counts.clamped_times),
        ("overfull", counts.overfull_seconds),
        ("unstored", counts.not_stored),
    ];
    let others = named.into_iter().filter(|(_, count)| *count > 0);
    format!(
        "sent {}{}",
        counts.records,
        others.map(|(name, count)| format!(" {name} {count}")).collect::<String>()
    )
}

/// Requests are records times repeats times copies times rounds, each sent or left out; the keys of a sample are the same for any number of takers.
#[test]
fn requests_add_up() {
    let line = |id: u64| {
        let op = if id.is_multiple_of(5) { "SET" } else { "GET" };
        format!("{},{:x},20,{op},{},{}\n", id / 400, id * id % 997, id % 3 + 1, id % 90)
    };
    let body: String = (0..10_000).map(line).collect();
    let all: u64 = (0..10_000).map(|id| id % 3 + 1).sum();
    let lines = format!("op_time,key,key_size,op,op_count,size\n{body}");
    let mut keys = BTreeSet::new();
    for takers in [1, 7, 64] {
        let more =
            "trace-copies = 3\ntrace-sample = '25%'\non-miss = 'set'\ntime = '9s'\ntrace-repeat = 'new-keys'";
        let (sent, counts) = replayed(&lines, "meta", more, takers, RUN, 2);
        assert_eq!(sent.len() as u64, counts.records);
        assert_eq!(counts.records + counts.sampled_out + counts.replaced_by_fills, all * 3 * 2);
        assert!(sent.is_sorted_by_key(|one| one.due_ns));
        // The second round is 25 seconds after the first.
        assert_eq!(sent.last().unwrap().due_ns / 1_000_000_000, 49);
        let recorded = |key: &str| key.split(['.', '+']).next().unwrap().to_owned();
        let kept: BTreeSet<String> = sent.iter().map(|one| recorded(&one.key)).collect();
        assert!((90..190).contains(&kept.len()), "{}", kept.len());
        assert!(keys.is_empty() || keys == kept, "the same keys for any number of takers");
        keys = kept;
        let mut taker_of = BTreeMap::new();
        assert!(sent.iter().all(|one| *taker_of.entry(&one.key).or_insert(one.taker) == one.taker));
        let used: BTreeSet<u32> = sent.iter().map(|one| one.taker).collect();
        assert_eq!(used.len() as u32, takers, "a sample is spread over all");
    }
}

/// Its 2 seconds take 20 of the trace; what is stored there lives on at the speed of the rest.
#[test]
fn the_warm_up_has_a_speed_of_its_own() {
    let lines = "0,a,1,7,1,set,0\n10,b,1,7,1,set,30\n10,c,1,7,1,set,5\n20,d,1,7,1,set,30\n25,e,1,7,1,get,0\n";
    let run = ReplayRun { warmup_ns: 2_000_000_000, ..RUN };
    let more = "warmup = '2s'\ntrace-speed = 2\ntrace-warmup-speed = 10";
    let (sent, counts) = replayed(lines, "twitter", more, 8, run, 1);
    let shown: Vec<(u64, u32)> = sent.iter().map(|one| (one.due_ns / 1_000_000, one.ttl_s)).collect();
    // b: 1 s of the run until the end of the warm-up, then 20 s of the trace in 10 s.
    assert_eq!(shown, [(50, 0), (1_025, 11), (1_075, 1), (2_250, 15), (4_750, 0)]);
    assert_eq!(counts.raised_ttls, 1);
}

/// Those of the warm-up do not count.
#[test]
fn a_number_of_requests_ends_a_replay() {
    let run = ReplayRun { requests: Some(2_000), warmup_ns: 2_000_000_000, ..RUN };
    let (sent, _) = replayed(&seconds(), "twitter", "requests = 2000", 8, run, 1);
    assert_eq!(sent.len(), 1_000 + 2_000);
    assert_eq!(sent[999].due_ns / 1_000_000_000, 0);
}

/// Microseconds are as recorded, and a time to live of more than 30 days is a date for memcached.
#[test]
fn exact_times_stay() {
    let lines =
        "10.000250 [0 a:1] \"set\" \"k\" \"abc\" \"EX\" \"2592001\"\n10.000900 [0 a:1] \"get\" \"k\"\n";
    let run = ReplayRun { unix_s: Some(1_000), ..RUN };
    let (sent, _) = replayed(lines, "monitor", "trace-speed = 2", 1, run, 1);
    assert!(sent.iter().map(|one| one.due_ns).eq([0, 325_000]), "{sent:?}");
    let (sent, _) = replayed(lines, "monitor", "", 1, run, 1);
    assert_eq!(sent[0].ttl_s, 2_593_001);
}

/// A fill takes the place of the set behind a miss, with its length and its time to live; MONITOR tells no misses.
#[test]
fn fills_live_as_long_as_the_sets_that_they_replace() {
    let store = "1.1 [0 a:1] \"set\" \"f\" \"1234567\" \"EX\" \"60\"";
    let monitor = format!("{}\n1.900000 [0 a:1] \"get\" \"f\"", store.replace("1.1 ", "1.100000 "));
    let table = [
        ("twitter", "0,f,1,0,1,get,0\n0,f,1,7,1,set,60", vec![(OpKind::Get, Some(7), 60)], 1),
        (
            "twitter",
            "0,f,1,7,1,set,60\n1,f,1,0,1,get,0",
            vec![(OpKind::Set, Some(7), 60), (OpKind::Get, Some(7), 60)],
            0,
        ),
        ("monitor", &monitor, vec![(OpKind::Set, Some(7), 60), (OpKind::Get, Some(7), 60)], 0),
    ];
    for (layout, lines, expected, replaced) in table {
        let (sent, counts) = replayed(lines, layout, "on-miss = 'set'", 1, RUN, 1);
        let sent: Vec<_> = sent.iter().map(|sent| (sent.kind, sent.value_len, sent.ttl_s)).collect();
        assert_eq!((sent, counts.replaced_by_fills), (expected, replaced), "{layout} {lines}");
    }
}

/// A file that is read again and again ends with a round without a request.
#[test]
fn files_without_a_request_are_not_read_again() {
    let class = crate::tests::class(
        "trace = 't'\ntrace-layout = 'twitter'\nreplay = true\ntrace-repeat = 'same-keys'",
    );
    let mut schedule = TraceSchedule::new(&class, class.trace.as_ref().unwrap(), 8, RUN);
    assert!(!schedule.end_round(&mut |_, _| panic!("a request")));
}
