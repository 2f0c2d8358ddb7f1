//! Traces in a simulated world: what is sent, in which order, and when it was due.

use super::*;
use std::path::{Path, PathBuf};

/// A file with so many lines in the layout mutilate-read-write: every third writes, of 60 keys.
fn file(name: &str, count: usize) -> PathBuf {
    let path = std::env::temp_dir().join(format!("brunt-simulated-{}-{name}", std::process::id()));
    std::fs::write(
        &path,
        (0..count)
            .map(|line| format!("{},1,{},{},{}\n", line, word(line), key(line), line % 50))
            .collect::<String>(),
    )
    .unwrap();
    path
}

fn word(line: usize) -> &'static str {
    if line.is_multiple_of(3) { "write" } else { "read" }
}

fn key(line: usize) -> String {
    format!("key{}", line * 7 % 60)
}

fn plan_of(path: &Path, more: &str) -> String {
    format!(
        "trace = '{}'\ntrace-layout = 'mutilate-read-write'\nprefix = 'p:'\npreload = false\n{more}",
        path.display()
    )
}

/// One connection: the bytes on the wire are those of the lines, one behind the other.
#[test]
fn lines_are_sent_in_their_order() {
    let path = file("order", 900);
    for load in ["", "think = '200us'", "rate = 8000"] {
        let outcome = simulate(
            &plan_of(&path, &format!("connections = 1\ndepth = 4\n{load}")),
            SimOptions::default().latency(30 * US),
        );
        let sent = String::from_utf8_lossy(&outcome.sent);
        let heads: Vec<String> = sent
            .split("\r\n")
            .filter(|line| line.starts_with("get ") || line.starts_with("set "))
            .map(|line| line.trim_end().to_owned())
            .collect();
        let expected: Vec<String> = (0..900)
            .map(|line| match word(line) {
                "read" => format!("get p:{}", key(line)),
                _ => format!("set p:{} 0 0 {}", key(line), line % 50),
            })
            .collect();
        assert!(heads == expected, "{load}: {} requests", heads.len());
    }
    std::fs::remove_file(path).unwrap();
}

/// Whatever the shape, lines are recorded once each, and stores that follow beside them.
#[test]
fn every_line_counts_once() {
    let path = file("counts", 3_000);
    for (more, servers) in [
        ("connections = 4\ndepth = 3", 1),
        ("connections = 6\ndepth = 2\nserver = ['a', 'b', 'c']", 3),
        ("connections = 3\nserver = ['a', 'b', 'c']\nplacement = 'round-robin'", 3),
        ("connections = 4\ndepth = 2\nrate = 8000", 1),
        ("connections = 3\ndepth = 2\ncalls-per-connection = 3", 1),
        ("connections = 4\ndepth = 8\nprotocol = 'memcached-meta'", 1),
        ("connections = 2\ndepth = 8\nrefill = 'batch'", 1),
    ] {
        let outcome = simulate(
            &plan_of(&path, &format!("on-miss = 'set'\n{more}")),
            SimOptions {
                others: vec![CoreOptions::default(); servers - 1],
                ..SimOptions::default().latency(30 * US)
            },
        );
        let op_counts = outcome.op_counts(Phase::Measure);
        assert_eq!(op_counts.requests.offered(), 3_000, "{more}");
        assert_eq!(op_counts.requests.followup, op_counts.keys.miss, "{more}");
        assert_eq!(
            (op_counts.requests.failed(), op_counts.requests.unsent, op_counts.requests.in_flight),
            (0, 0, 0),
            "{more}"
        );
        assert_eq!(
            (op_counts.keys.requested, outcome.measured(OpKind::Set).requests.offered()),
            (2_000, 1_000),
            "{more}"
        );
        let counted: u64 = outcome.counters.iter().map(|counters| counters.get_misses).sum();
        assert_eq!(counted, op_counts.keys.miss, "{more}");
        let is_by_turn = more.contains("round-robin");
        assert!(is_by_turn || outcome.items.iter().sum::<usize>() == 60, "{more}: {:?}", outcome.items);
    }
    std::fs::remove_file(path).unwrap();
}

/// In open loop the schedule says when, and the last line ends it.
#[test]
fn the_schedule_says_when_a_line_is_due() {
    let path = file("schedule", 500);
    let outcome = simulate(
        &plan_of(&path, "rate = 1000\narrival = 'uniform'\nconnections = 2\ndepth = 64"),
        SimOptions::default().latency(20 * MS),
    );
    let intended: Vec<u64> = outcome.samples.iter().map(|sample| sample.times.intended_ns).collect();
    let expected: Vec<u64> = (0..500).map(|line| outcome.start_ns() + line * MS).collect();
    assert_eq!(intended, expected);
    for (line, sample) in outcome.samples.iter().enumerate() {
        assert_eq!(sample.op.kind() == OpKind::Set, word(line) == "write");
        assert_eq!(sample.times.response_ns(), 40 * MS);
    }
    std::fs::remove_file(path).unwrap();
}

/// A replay is due when its records say, whichever connection has their keys, and the requests of a key are sent in their order.
#[test]
fn replays_are_due_by_their_own_times() {
    // Twitter's layout: 0 to 70 lines of a second, with values that number the lines of their key.
    let counts: Vec<u64> = (1..41).map(|number| number * 37 % 71).collect();
    let mut lines = String::new();
    let mut numbers = [0_u32; 23];
    for (second, count) in (100_u64..).zip(&counts) {
        for nth in 0..*count {
            let key = (nth * nth + second) as usize % 23;
            numbers[key] += 1;
            lines += &format!("{second},k{key},2,{},1,set,0\n", numbers[key]);
        }
    }
    let path = std::env::temp_dir().join(format!("brunt-simulated-{}-replay", std::process::id()));
    std::fs::write(&path, lines).unwrap();
    for (speed, connections, depth) in [(1_u64, 1, 1), (10, 8, 4), (1_000, 5, 1)] {
        let more = format!("connections = {connections}\ndepth = {depth}\ntrace-speed = {speed}");
        let plan = format!("trace = '{}'\ntrace-layout = 'twitter'\nreplay = true\n{more}", path.display());
        let outcome = simulate(&plan, SimOptions::default().latency(200 * US));
        let mut intended: Vec<u64> = outcome.samples.iter().map(|sample| sample.times.intended_ns).collect();
        intended.sort_unstable();
        let expected: Vec<u64> = (0..)
            .zip(&counts)
            .flat_map(|(second, count)| {
                let due = move |nth| (2 * (second * count + nth) + 1) * 1_000 * MS / (2 * count * speed);
                (0..*count).map(due)
            })
            .map(|due_ns| outcome.start_ns() + due_ns)
            .collect();
        assert!(intended == expected, "{more}");
        let sent = String::from_utf8_lossy(&outcome.sent);
        let mut last = [0; 23];
        for set in sent.split("\r\n").filter_map(|line| line.strip_prefix("set k")) {
            let words: Vec<usize> = set.split(' ').map(|word| word.parse().unwrap()).collect();
            let [key, .., number] = words[..] else { panic!("{set}") };
            assert_eq!(number, last[key] + 1, "{more}");
            last[key] = number;
        }
        assert!(last.iter().zip(&numbers).all(|(last, number)| *last as u32 == *number));
    }
    std::fs::remove_file(path).unwrap();
}

/// More is due than a slow server takes: what was due by the end of the window is counted, sent or not.
#[test]
fn late_records_are_counted_when_time_ends_a_replay() {
    let lines: String =
        (0..12_000).map(|nth| format!("{},k{},2,9,1,get,0\n", nth / 3_000, nth % 100)).collect();
    let path = std::env::temp_dir().join(format!("brunt-simulated-{}-late", std::process::id()));
    std::fs::write(&path, lines).unwrap();
    let plan = format!(
        "trace = '{}'\ntrace-layout = 'twitter'\nreplay = true\nconnections = 4\ntime = '3s'\ndrain = '100ms'",
        path.display()
    );
    let outcome = simulate(&plan, SimOptions::default().latency(5 * MS));
    let requests = outcome.op_counts(Phase::Measure).requests;
    assert_eq!(requests.offered(), 9_000);
    assert!(requests.unsent > 5_000, "{}", requests.unsent);
    std::fs::remove_file(path).unwrap();
}

/// Half of the requests, then the deletes, then the other half, each on a schedule of its own.
#[test]
fn a_purge_comes_after_half_of_the_requests() {
    let outcome = simulate(
        "connections = 1\nrequests = 300\nkeys = 50\nmix = 'get'\npopularity = 'sequential'\npurge = 10\n\
         on-miss = 'set'",
        SimOptions::default().latency(30 * US),
    );
    let asked: Vec<OpKind> =
        outcome.samples.iter().map(|sample| sample.op.kind()).filter(|op| *op != OpKind::Set).collect();
    let expected = [vec![OpKind::Get; 150], vec![OpKind::Delete; 45], vec![OpKind::Get; 150]].concat();
    assert_eq!(asked, expected);
    // What was deleted is missed once and stored again.
    assert_eq!(outcome.measured(OpKind::Get).keys.miss, 45);
    assert_eq!((outcome.counters[0].delete_hits, outcome.items[0]), (45, 50));
}
