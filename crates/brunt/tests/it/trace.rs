//! `brunt trace`: what is told of files whose content is known.

use crate::server::{Server, ended, file};
use serde_json::{Value, json};

const MONITOR: &str = "OK\n\
    1700000000.000000 [0 127.0.0.1:51706] \"set\" \"k:1\" \"abc\" \"EX\" \"60\"\n\
    1700000000.500000 [0 [::1]:51707] \"mget\" \"k:1\" \"k:2\"\n\
    1700000001.000000 [0 lua] \"del\" \"k:2\"\n\
    1700000001.250000 [0 [::1]:51707] \"hset\" \"h\" \"f\" \"v\"\n\
    1700000002.000000 [0 [::1]:51707] \"get\" \"k:1\"\n\
    one line of something else\n";

#[test]
fn a_log_of_monitor_is_told() {
    let path = file("monitor.log", MONITOR);
    let told = ended(&format!("trace {path} --cache 1k,4 --top 1"));
    // How the first line is broken depends on the path.
    let (head, behind) = told.out.split_once("passed over").unwrap();
    let head: Vec<&str> = head.split_whitespace().filter(|word| *word != "·").collect();
    assert_eq!(head.join(" "), format!("trace {path}, monitor 7 lines 4 requests"));
    let expected = "   2 without a request · 1 unsupported · 1 unreadable\n\
         \x20             first: line 7, \"one line of something else\": no line of MONITOR\n\
         span          2.00 s · 2.00/s · 3 in the busiest second\n\
         rate          ▄______█_______________________▆ 63.0 ms each, 0 to 31.7/s\n\
         operations    get 75.0 % · set 25.0 %\n\
         keys          2 keys · 50.0 % asked for once · 6 B in their objects\n\
         hottest keys  1: 75.0 %\n\
         top           k:1 3\n\
         hits of LRU   1000 B 66.7 % · 4 B 0 %\n\
         not known     values of 3 retrievals · objects of 1 key, charged as 0 B\n\n\
         \x20               p50      p90      p99    p99.9      max     mean    count\n\
         key, B            3        3        3        3        3     3.00        4\n\
         value, B          3        3        3        3        3     3.00        1\n\
         ttl, s           60       60       60       60       60     60.0        1\n";
    assert_eq!(behind, expected);
    told.is(0, &[]);
}

/// A trace whose every number is known: a thousand requests in each of a hundred seconds, of a thousand keys that come as 1/rank, a tenth sets.
#[test]
fn a_made_up_trace_is_told_exactly() {
    let weights: Vec<f64> = (1..=1_000).map(|rank| 1.0 / f64::from(rank)).collect();
    let sum: f64 = weights.iter().sum();
    // Keys by their share, each request that of the key that is furthest behind it, which is by its next due place.
    let mut due: Vec<(f64, usize)> = weights
        .iter()
        .enumerate()
        .flat_map(|(key, weight)| {
            let count = (weight / sum * 100_000.0).round() as usize;
            (0..count).map(move |number| ((number as f64 + 0.5) / count as f64, key))
        })
        .collect();
    due.sort_by(|one, other| one.partial_cmp(other).unwrap());
    let lines: String = due
        .iter()
        .enumerate()
        .map(|(place, (_, key))| {
            let operation = if place % 10 == 0 { "set" } else { "get" };
            format!("{},key-{key:05},9,{},0,{operation},60\n", place / 1_000, 100 + place % 100)
        })
        .collect();
    let path = file("made-up.csv", &lines);
    let told = ended(&format!("trace {path} --trace-layout twitter -o json:- -q"));
    let told: Value = serde_json::from_str(&told.out).unwrap();
    let is_near = |pointer: &str, expected: f64| {
        let held = told.pointer(pointer).and_then(Value::as_f64).unwrap_or(f64::NAN);
        assert!((held / expected - 1.0).abs() < 0.01, "{pointer}: {held}, not {expected}");
    };
    assert_eq!([&told["schema"], &told["requests"]], [&json!("brunt.trace.v1"), &json!(due.len())]);
    assert_eq!([&told["keys"], &told["lines"]["unreadable"]], [&json!(1_000), &json!(0)]);
    is_near("/zipf/exponent", 1.0);
    is_near("/rate/mean_per_s", 1_000.0);
    is_near("/operations/set", due.len() as f64 / 10.0);
    is_near("/value_bytes/mean", 149.5);
    is_near("/value_bytes/p50", 149.0);
    is_near("/value_bytes/p99", 198.0);
    is_near("/key_bytes/max", 9.0);
    is_near("/ttl_ns/p50", 60e9);
    is_near("/hottest/0/requests", due.len() as f64 / sum);
    // What is stored first is found by the first get.
    let mut seen = vec![false; 1_000];
    let is_first_get = |(place, (_, key)): (usize, &(f64, usize))| {
        !std::mem::replace(&mut seen[*key], true) && place % 10 > 0
    };
    let misses = due.iter().enumerate().map(is_first_get).filter(|is_miss| *is_miss).count();
    assert_eq!(told["lru"][0]["misses"], json!(misses));
}

#[test]
fn files_that_are_no_traces_are_refused() {
    let table = [
        ("empty", "", "", 2, "it is empty"),
        (
            "plain.csv",
            "0,q,1,5,4,get,0\n",
            "",
            2,
            "it does not tell its layout, as those of meta and monitor do; name one",
        ),
        (
            "other.csv",
            "0,q,1,5,4,get,0\n",
            "--trace-layout mutilate-read-write",
            2,
            "no line up to line 1 has the layout mutilate-read-write",
        ),
        (
            "headless.csv",
            "0,q,1,5,4,get,0\n",
            "--trace-layout meta",
            2,
            "has no head that names key, op and size",
        ),
    ];
    for (name, text, flags, exit, reason) in table {
        let path = file(name, text);
        ended(&format!("trace {path} {flags}")).is(exit, &["error: cannot read trace '", reason]);
    }
    // Cut within a record: told up to there.
    let records = "\x01\0\0\0\x07\0\0\0\0\0\0\0\x64\0\0\0\x02\0\0\0\0\0\0\0";
    let path = file("cut", &(records.to_owned() + &records[..20]));
    let cut = ended(&format!("trace {path} --trace-layout oracle"));
    cut.is(1, &["it ends within record 2; what is told is before that"]);
    assert!(cut.out.contains(" · 1 record · 1 request\n") || cut.out.contains("1 record"), "{}", cut.out);
    let server = Server::reference("");
    let run = format!("run -s {server} -c 1 -T 1 --warmup 0s --no-preload --set trace={path}");
    let sent = ended(&format!("{run} --set trace-layout=oracle"));
    assert!(sent.out.contains(" 1 record read and not to its end"), "{}", sent.out);
}

/// A file that tells its layout needs no option to be sent.
#[test]
fn a_log_of_monitor_is_sent() {
    let Some(server) = Server::redis("") else { return };
    let path = file("monitor.log", MONITOR);
    let run = ended(&format!("run -s {server} -c 1 -T 1 --warmup 0s --no-preload --set trace={path}"));
    let words = run.out.split_whitespace().collect::<Vec<_>>().join(" ");
    for counted in ["2 without a request", "1 unsupported", "1 skipped (first: line 7"] {
        assert!(words.contains(counted), "{counted}");
    }
    assert_eq!(server.says("STRLEN k:1\r\n", "\r\n"), ":3\r\n");
}
