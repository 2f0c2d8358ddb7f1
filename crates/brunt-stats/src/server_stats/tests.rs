//! What a server says, and what follows from it, on both sides of every bound.

use super::*;
use crate::request_counts::{CountEntry, OpCounts};
use crate::server_evidence::{StatComparison, agreement, kept_of_preload};
use crate::simulated_run::plan;
use crate::window::RunTimes;
use brunt_plan::op::OpKind;
use brunt_plan::outcome::{Outcome, OutcomeClass, ReplyKind};
use brunt_plan::phase::Phase;

pub(crate) const S: u64 = 1_000_000_000;

fn snapshot(at_ns: u64, rows: &[(&str, &str)]) -> Snapshot {
    Snapshot::new(at_ns - 100, at_ns, rows.iter().copied())
}

/// A record of `name value name value …` at whole seconds from the first.
fn record(snapshots: &[&str]) -> ServerRecord {
    let mut record = ServerRecord { is_complete: true, ..ServerRecord::default() };
    for (second, text) in (1..).zip(snapshots) {
        let words: Vec<&str> = text.split(' ').collect();
        let rows: Vec<(&str, &str)> = words.chunks(2).map(|pair| (pair[0], pair[1])).collect();
        record.push(snapshot(second * S, &rows));
    }
    record
}

#[test]
fn numbers_and_times_are_parsed_and_others_skipped() {
    let rows = [
        ("cmd_get", "18446744073709551615"),
        ("cmd_set", "-1"),
        ("evictions", "many"),
        ("rusage_user", "12.000345"),
        ("rusage_system", "7"),
        ("version", "1.6.18"),
        ("libevent", "2.1"),
        ("pid", ""),
    ];
    let snapshot = snapshot(S, &rows);
    let values: Vec<_> = snapshot.values().map(|(statistic, value)| (statistic.name(), value)).collect();
    let expected = [("cmd_get", u64::MAX), ("rusage_user", 12_000_345_000), ("rusage_system", 7 * S)];
    assert_eq!(values, expected);
    assert_eq!((snapshot.version.as_deref(), snapshot.cpu_ns()), (Some("1.6.18"), Some(19_000_345_000)));
    assert_eq!(snapshot.requests(), None, "unknown without cmd_set");
    for text in ["", ".", "1.x", "x.1", "99999999999999999999"] {
        assert_eq!(ServerStat::RusageUser.read(text), None, "{text}");
    }
    assert_eq!(ServerStat::RusageUser.read("0.1234567899"), Some(123_456_789));
}

#[test]
fn a_window_has_a_span_of_its_own() {
    let record = record(&["cmd_get 0 cmd_set 0", "cmd_get 7 cmd_set 0", "cmd_get 9 cmd_set 0"]);
    let requests = |measure_ns, end_ns| {
        let window = RunTimes { start_ns: 0, measure_ns, end_ns, drained_ns: end_ns, ..RunTimes::NONE };
        record.span_of_window(&window).map(|span| span.requests.unwrap())
    };
    assert_eq!(requests(S, 3 * S), Some(9));
    assert_eq!(requests(S / 10, 9 * S), Some(9), "however far they are");
    // Near both ends lies the first one, and the next behind the window; the last one, and the one before it in front.
    assert_eq!(requests(S, S + S / 10), Some(7));
    assert_eq!(requests(3 * S - S / 5, 3 * S - S / 10), Some(2));
    // There is nothing on the other side.
    assert_eq!([requests(3 * S, 4 * S), requests(S / 3, S / 2)], [None, None]);
    assert_eq!(record.span_of_piece(S + S / 2, 3 * S - S / 2).map(|span| span.requests), Some(Some(7)));
    assert_eq!(record.span_of_piece(S, 3 * S + S / 2 + 1), None, "too far from an edge");
}

#[test]
fn one_server_under_two_names_is_recognized() {
    let at_end = |text: &str| record(&["pid 1 uptime 3 cmd_get 0 cmd_set 0", text]);
    let server = at_end(
        "pid 1 uptime 9 cmd_get 500 cmd_set 20 rusage_user 1.5 total_connections 12 curr_connections 9",
    );
    let table = [
        // Asked a little later, as it is.
        (
            "pid 1 uptime 10 cmd_get 500 cmd_set 20 rusage_user 1.6 total_connections 13 curr_connections 8",
            true,
        ),
        ("pid 2 uptime 9 cmd_get 500 cmd_set 20", false),
        ("pid 1 uptime 11 cmd_get 500 cmd_set 20", false),
        // Two containers that were started together.
        ("pid 1 uptime 9 cmd_get 498 cmd_set 20", false),
        ("pid 1 cmd_get 500 cmd_set 20", false),
        ("uptime 9 cmd_get 500 cmd_set 20", false),
    ];
    for (text, expected) in table {
        assert_eq!(server.is_same_server(&at_end(text)), expected, "{text}");
    }
    let idle = || at_end("pid 1 uptime 9 cmd_get 0 cmd_set 0");
    assert!(!idle().is_same_server(&idle()), "nothing was counted that could tell them apart");
    assert!(!server.is_same_server(&ServerRecord::default()));
}

#[test]
fn the_order_is_that_of_the_table() {
    for (index, statistic) in ServerStat::ALL.iter().enumerate() {
        assert_eq!(*statistic as usize, index);
    }
}

#[test]
fn a_span_is_the_difference_of_two_snapshots() {
    let record = record(&[
        "cmd_get 100 cmd_set 10 get_hits 90 get_misses 10 evictions 5 rusage_user 1 rusage_system 0.5 threads 2 curr_items 7 bytes 70",
        "cmd_get 300 cmd_set 60 get_hits 240 get_misses 60 evictions 5 rusage_user 1.5 rusage_system 0.75 threads 2 curr_items 9 bytes 90",
        "cmd_get 300 cmd_set 60 get_hits 240 get_misses 60 evictions 4 curr_items 9 bytes 90 limit_maxbytes 100",
    ]);
    let spans: Vec<_> = record.spans().collect();
    let first = ServerSpan {
        start_ns: S,
        end_ns: 2 * S,
        requests: Some(250),
        hits: Some(150),
        misses: Some(50),
        evictions: Some(0),
        cpu_ns: Some(750_000_000),
        thread_ns: Some(375_000_000),
        items: Some(9),
        bytes: Some(90),
        bytes_max: None,
    };
    assert_eq!(spans[0], first);
    assert_eq!((first.hit_ratio(), first.cpu_ns_per_request()), (Some(0.75), Some(3_000_000.0)));
    for (requests, expected) in
        [(Some(100), Some(7_500_000.0)), (Some(99), None), (Some(0), None), (None, None)]
    {
        assert_eq!(ServerSpan { requests, ..first }.cpu_ns_per_request(), expected, "{requests:?}");
    }
    let second = spans[1];
    assert_eq!((second.evictions, second.cpu_ns, second.bytes_max), (None, None, Some(100)), "it went back");
    assert_eq!((second.hit_ratio(), second.cpu_ns_per_request()), (None, None), "nothing was asked");
    // Nearest, and not nearer than allowed.
    assert_eq!(record.span(S + S / 3, 2 * S - 1, S), Some(first));
    assert_eq!(record.span(S + S / 3, 2 * S - 1, S / 4), None);
    assert_eq!(record.span(S, S + 1, S), None, "one snapshot is no span");
    assert_eq!(ServerSpan::sum([]), None);
    assert_eq!(ServerSpan::sum([Some(first), None]), None);
    let both = ServerSpan::sum([Some(first), Some(second)]).unwrap();
    assert_eq!((both.requests, both.evictions, both.items), (Some(250), None, Some(18)));
    assert_eq!((both.start_ns, both.end_ns, both.per_second(10)), (S, 3 * S, 5.0));
}

#[test]
fn counter_resets_are_noticed() {
    for (second, expected) in [
        ("pid 1 uptime 11 cmd_get 5", None),
        ("pid 1 uptime 10 cmd_get 5 evictions 3", None),
        ("pid 2 uptime 11 cmd_get 5", Some(CounterReset::Restarted)),
        ("pid 1 uptime 9 cmd_get 5", Some(CounterReset::Restarted)),
        ("pid 1 uptime 11 cmd_get 4", Some(CounterReset::Reset)),
        ("uptime 11", None),
        ("pid 1 uptime 11 cmd_get 5 rusage_user 0.9", None),
        ("cmd_get 4", Some(CounterReset::Reset)),
    ] {
        assert_eq!(
            record(&["pid 1 uptime 10 cmd_get 5 rusage_user 1", second]).counter_reset(),
            expected,
            "{second}"
        );
    }
    // Another process may have counted more; that is no difference of anything.
    let restarted =
        record(&["pid 1 get_hits 5 get_misses 0 curr_items 1", "pid 2 get_hits 9 get_misses 9 curr_items 2"]);
    let span = restarted.spans().next().unwrap();
    assert_eq!((span.hits, span.hit_ratio(), span.items), (None, None, Some(2)));
    // A stock may fall.
    assert_eq!(record(&["curr_items 5", "curr_items 4"]).counter_reset(), None);
}

/// Whatever the length of a run and of its preload, what is kept fits, is on the grid of rows in the window, and begins and ends with it.
#[test]
fn a_long_record_fits_its_share() {
    let (measure_ns, share) = (30_000 * S + S / 2, SizeShare::of(11));
    let (mut record, mut stride) = (ServerRecord::default(), 0);
    for second in 1..=60_000 {
        let count = (1_000 * second).to_string();
        record.push(snapshot(second * S + S / 2, &[("cmd_get", &count), ("pid", "4711")]));
        stride = record.fit(measure_ns, S, stride, share);
        assert!(record.snapshots().len() <= share.snapshots_max);
        let held = record.snapshots();
        let ends = (held[0].at_ns, held[held.len() - 1].at_ns);
        assert_eq!(ends, (S + S / 2, second * S + S / 2));
    }
    let held = record.snapshots();
    let inner = &held[1..held.len() - 1];
    let steps: Vec<u64> = inner.windows(2).map(|pair| (pair[1].at_ns - pair[0].at_ns) / S).collect();
    assert!(steps.len() > 25 && steps.iter().all(|step| *step == stride), "{stride}: {steps:?}");
    assert!(inner.iter().any(|held| held.at_ns == measure_ns));
    // What fits is left alone.
    let whole = record.clone();
    assert_eq!(record.fit(measure_ns, S, 0, share), 0);
    assert_eq!(record, whole);
    // Less than nothing is not to be had.
    record.fit(measure_ns, S, 0, SizeShare { snapshots_max: 3, ..share });
    assert_eq!(record.snapshots().len(), 3);
}

#[test]
fn thinning_keeps_snapshots_nearest_to_whole_periods() {
    let seconds = |record: &ServerRecord| {
        record.snapshots().iter().map(|snapshot| snapshot.at_ns as f64 / 1e9).collect::<Vec<f64>>()
    };
    let mut record = ServerRecord::default();
    for at_ms in [1_000, 3_000, 10_000, 11_000, 12_000, 13_000, 14_100, 14_900, 16_600, 17_000] {
        record.push(snapshot(at_ms * 1_000_000, &[]));
    }
    record.thin(10 * S, 3_200_000_000);
    assert_eq!(seconds(&record), [1.0, 3.0, 10.0, 13.0, 16.6, 17.0]);
    record.thin(10 * S, 6_400_000_000);
    assert_eq!(seconds(&record), [1.0, 3.0, 10.0, 16.6, 17.0]);
    let mut early = ServerRecord::default();
    early.thin(10 * S, S);
    early.push(snapshot(S, &[]));
    early.thin(10 * S, S);
    assert_eq!(seconds(&early), [1.0]);
}

fn entry(op: OpKind, outcomes: &[(OutcomeClass, ReplyKind, u64)], [asked, hits]: [u32; 2]) -> CountEntry {
    let mut counts = OpCounts::default();
    for (class, reply, count) in outcomes {
        for _ in 0..*count {
            counts.record_many(op.into(), Outcome { class: *class, reply: *reply }, asked, hits, 1);
        }
        counts.requests.sent += count;
    }
    CountEntry { phase: Phase::Measure, class: 0, op: op.into(), counts }
}

/// The range of every count that is not 0, as text.
fn ranges(toml: &str, request_counts: &[CountEntry]) -> String {
    let zeros = ServerStat::ALL.iter().map(|one| (one.name(), "0"));
    let rows: Vec<_> = zeros.chain([("# Commandstats", "")]).collect();
    let mut zero = ServerRecord::default();
    zero.push(snapshot(S, &rows));
    zero.push(snapshot(2 * S, &rows));
    let met = agreement(&plan(toml), request_counts, &[zero]);
    let met = met.iter().filter(|one| one.most > 0);
    met.map(|one| format!("{} {}-{}", one.statistic.name(), one.least, one.most))
        .collect::<Vec<_>>()
        .join(", ")
}

#[test]
fn answered_requests_are_counted_exactly() {
    use OutcomeClass::{Done, Hit, Miss, Rejected};
    let request_counts = [
        entry(OpKind::Get, &[(Hit, ReplyKind::Value, 7)], [1, 1]),
        entry(OpKind::Get, &[(Miss, ReplyKind::NotFound, 2)], [1, 0]),
        entry(OpKind::Mget, &[(Hit, ReplyKind::Value, 3)], [10, 4]),
        entry(OpKind::Set, &[(Done, ReplyKind::Stored, 5)], [1, 0]),
        entry(OpKind::Add, &[(Rejected, ReplyKind::NotStored, 6)], [1, 0]),
        entry(
            OpKind::Cas,
            &[
                (Done, ReplyKind::Stored, 1),
                (Rejected, ReplyKind::Exists, 2),
                (Rejected, ReplyKind::NotFound, 3),
            ],
            [1, 0],
        ),
        entry(OpKind::Incr, &[(Done, ReplyKind::Number, 4), (Rejected, ReplyKind::NotFound, 1)], [1, 0]),
        entry(OpKind::Decr, &[(Done, ReplyKind::Number, 2)], [1, 0]),
        entry(OpKind::Delete, &[(Done, ReplyKind::Deleted, 8), (Rejected, ReplyKind::NotFound, 9)], [1, 0]),
        entry(OpKind::Touch, &[(Done, ReplyKind::Touched, 3), (Rejected, ReplyKind::NotFound, 4)], [1, 0]),
    ];
    let expected = "cmd_get 39-39, get_hits 19-19, get_misses 20-20, cmd_set 17-17, cas_hits 1-1, cas_badval 2-2, \
                    cas_misses 3-3, incr_hits 4-4, incr_misses 1-1, decr_hits 2-2, delete_hits 8-8, delete_misses 9-9, \
                    cmd_touch 7-7, touch_hits 3-3, touch_misses 4-4";
    assert_eq!(ranges("", &request_counts), expected);
    // What a touch in meta commands does not find is a retrieval's miss.
    let as_meta = expected
        .replace("39-39", "43-43")
        .replace("20-20", "24-24")
        .replace("cmd_touch 7-7, touch_hits 3-3, touch_misses 4-4", "cmd_touch 3-3, touch_hits 3-3");
    assert_eq!(ranges("protocol = 'memcached-meta'\nserver = 'a'", &request_counts), as_meta);
}

#[test]
fn unanswered_requests_make_a_range() {
    use OutcomeClass::{Done, Error, Hit, Lost, Mismatch, Timeout, Unacknowledged};
    let none = ReplyKind::None;
    let mut request_counts = vec![
        entry(
            OpKind::Mget,
            &[(Hit, ReplyKind::Value, 1), (Timeout, none, 1), (Error, ReplyKind::ServerError, 1)],
            [4, 4],
        ),
        entry(OpKind::Get, &[(Mismatch, ReplyKind::Value, 2), (Lost, none, 3)], [1, 1]),
        entry(OpKind::Set, &[(Done, ReplyKind::Stored, 1), (Unacknowledged, none, 5)], [1, 0]),
        entry(OpKind::Delete, &[(Done, ReplyKind::Deleted, 2), (Lost, none, 1)], [1, 0]),
    ];
    let expected =
        "cmd_get 4-17, get_hits 4-17, get_misses 0-13, cmd_set 1-6, delete_hits 2-3, delete_misses 0-1";
    assert_eq!(ranges("mix = 'mget'\nmultiget = 4", &request_counts), expected);
    // A multi-get in flight has its four keys; one that was never sent whole may have reached one of two servers.
    (request_counts[0].counts.requests.in_flight, request_counts[0].counts.requests.unsent) = (1, 1);
    request_counts[0].counts.requests.sent += 1;
    assert!(ranges("mix = 'mget'\nmultiget = 4", &request_counts).starts_with("cmd_get 4-21,"));
    assert!(
        ranges("mix = 'mget'\nmultiget = 4\nserver = ['a', 'b']", &request_counts)
            .starts_with("cmd_get 4-25,")
    );
}

#[test]
fn differences_count_from_the_nearer_end() {
    let comparison = |counted| StatComparison { statistic: ServerStat::CmdGet, least: 10, most: 15, counted };
    let table = [(0, -10), (9, -1), (10, 0), (12, 0), (15, 0), (16, 1), (115, 100)];
    for (counted, difference) in table {
        assert_eq!(comparison(counted).difference(), difference, "{counted}");
    }
}

#[test]
fn servers_are_compared_as_one() {
    let get = [entry(OpKind::Get, &[(OutcomeClass::Hit, ReplyKind::Value, 9)], [1, 1])];
    let records =
        [record(&["cmd_get 100", "cmd_get 105"]), record(&["cmd_get 7 cmd_set 0", "cmd_get 11 cmd_set 2"])];
    let met = agreement(&plan("server = ['a', 'b']"), &get, &records);
    assert_eq!(met, [StatComparison { statistic: ServerStat::CmdGet, least: 9, most: 9, counted: 9 }]);
}

#[test]
fn growth_is_read_at_whole_seconds() {
    let items = |numbers: &[u64]| -> ServerRecord {
        record(
            &numbers
                .iter()
                .map(|number| format!("curr_items {number}"))
                .collect::<Vec<_>>()
                .iter()
                .map(String::as_str)
                .collect::<Vec<_>>(),
        )
    };
    let growth = |records: &[ServerRecord], window| Growth::of(ServerStat::CurrItems, records, window);
    let grown = growth(&[items(&[5, 10, 20, 20, 40])], 2 * S..5 * S).unwrap();
    assert_eq!(grown, Growth { of: ServerStat::CurrItems, from: 10, to: 40, rises: 2, steps: 3 });
    assert_eq!(grown.share(), 0.75);
    let two = growth(&[items(&[1, 2, 3]), items(&[10, 20, 30])], S..3 * S).unwrap();
    assert_eq!((two.from, two.to, two.rises, two.steps), (11, 33, 2, 2));
    let short = growth(&[items(&[10, 5])], S + S / 10..2 * S - S / 10).unwrap();
    assert_eq!((short.share(), short.steps), (-1.0, 1));
    assert_eq!(growth(&[items(&[1, 2])], 10 * S..12 * S), None, "no snapshot of that time");
    assert_eq!(growth(&[], S..2 * S), None);
    assert_eq!(growth(&[record(&["pid 1", "pid 1"])], S..2 * S), None);
    // The last piece of 2.2 s is longer than the others.
    let odd = growth(&[items(&[1, 2, 3])], S..3 * S + S / 5).unwrap();
    assert_eq!((odd.from, odd.to, odd.steps), (1, 3, 2));
}

/// What must still be there after a preload, and what is.
#[test]
fn preloaded_keys_must_be_present() {
    let kept = |toml: &str, is_earlier: bool| {
        let mut records = vec![record(&["curr_items 0", "curr_items 700"]); plan(toml).server_count()];
        for record in &mut records {
            record.prepared = record.snapshots().last().cloned();
        }
        kept_of_preload(&plan(toml), is_earlier, &records)
    };
    let two = "server = ['a', 'b']\nplacement =";
    for (toml, expected) in [
        ("keys = 1000", Some((1_000, 700))),
        ("keys = 1000\nmix = 'incr'", Some((2_000, 700))),
        ("keys = 1000\nttl = '1h'", None),
        ("keys = 1000\npreload = false", None),
        (&format!("keys = 1000\n{two} 'modulo'"), Some((1_000, 1_400))),
        (&format!("keys = 1000\n{two} 'random'"), Some((2_000, 1_400))),
        // Two sets that may share keys.
        ("keys = 1000\n[[class]]\n[[class]]\nkeys = 300", Some((1_000, 700))),
    ] {
        assert_eq!(kept(toml, false), expected, "{toml}");
    }
    let deletes = "keys = 1000\nmix = 'get=1,delete=1'";
    assert_eq!((kept(deletes, false), kept(deletes, true)), (Some((1_000, 700)), None));
    assert_eq!(kept("keys = 1000", true), Some((1_000, 700)));
    // Who did not answer then is not judged by what was so before or after.
    let silent = [record(&["curr_items 0", "curr_items 700"])];
    assert_eq!(kept_of_preload(&plan("keys = 1000"), false, &silent), None);
}

mod redis;
