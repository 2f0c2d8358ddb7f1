//! Faults: exact counts, and what each does to the connection, the store and the counters.

use crate::{connected, departures, drain};
use brunt_server::Service;
use brunt_server::core::{Core, CoreOptions, End};
use brunt_server::faults::{Every, Faults};
use brunt_server::log::{FLAG_CUT, FLAG_DROPPED, FLAG_ERROR, FLAG_RESET, FLAG_WRONG, Record};
use std::num::NonZeroU64;

fn with(faults: Faults, script_after: u64) -> Core {
    connected(CoreOptions { faults, script_after, record: true, ..CoreOptions::default() })
}

fn flagged(records: &[Record], flag: u8) -> Vec<u64> {
    records.iter().filter(|record| record.flags & flag != 0).map(|record| record.number).collect()
}

#[test]
fn every_nth_request_is_refused_and_nothing_else() {
    let mut core = with(Faults { error_every: Every::new(3), ..Faults::default() }, 0);
    core.receive(
        0,
        b"set a 0 0 1\r\nx\r\nget a\r\nset a 0 0 1\r\ny\r\nversion\r\nget a\r\nget a\r\nget a b\r\n",
        0,
    );
    let text = String::from_utf8(drain(&mut core, 0, 0)).unwrap();
    let value = "VALUE a 0 1\r\nx\r\nEND\r\n";
    let error = "SERVER_ERROR injected fault\r\n";
    let version = text.lines().find(|line| line.starts_with("VERSION")).unwrap();
    assert_eq!(text, format!("STORED\r\n{value}{error}{version}\r\n{value}{value}{error}"));
    // Asked is counted for the refused too; hits and misses are not.
    let counters = core.counters();
    assert_eq!((counters.cmd_set, counters.cmd_get, counters.get_hits, counters.get_misses), (2, 5, 3, 0));
    assert_eq!(counters.faults_error, 2);
}

#[test]
fn a_dropped_request_kills_its_connection_only() {
    let mut core = with(Faults { drop_every: Every::new(2), ..Faults::default() }, 0);
    core.connect(1);
    core.receive(0, b"get a\r\nset a 0 0 1\r\nx\r\nget a\r\nquit\r\n", 0);
    assert_eq!(drain(&mut core, 0, 0), b"END\r\n", "what came before is answered");
    core.receive(0, b"get a\r\n", 1);
    core.receive(1, b"get a\r\n", 1);
    assert_eq!(drain(&mut core, 1, 1), b"VALUE a 0 1\r\nx\r\nEND\r\n", "the lost set was carried out");
    // What was thrown away has no number: the next request is number 3.
    let records: Vec<_> = core.take_records().collect();
    assert_eq!(records.iter().map(|record| record.number).collect::<Vec<_>>(), [0, 1, 2]);
    assert_eq!(flagged(&records, FLAG_DROPPED), [1]);
    core.receive_end(0, 2);
    assert!(
        core.pop_due(2).is_some_and(|departure| departure.end == End::Closes && departure.bytes.is_empty())
    );
}

#[test]
fn a_reset_comes_at_the_departure_behind_the_replies_before_it() {
    let faults = Faults { reset_every: Every::new(2), ..Faults::default() };
    let (service, record) = (Service::Fixed(10), true);
    let mut core = connected(CoreOptions { faults, service, record, ..CoreOptions::default() });
    core.connect(1);
    core.receive(0, b"get a\r\nset a 0 0 1 noreply\r\nx\r\nget a\r\n", 0);
    core.receive(1, b"get a\r\nget a\r\n", 1);
    let value = "VALUE a 0 1\r\nx\r\nEND\r\n";
    // The third request of connection 0 has no number, so connection 1 has the numbers 2 and 3.
    let expected = [
        (0, 10, "END\r\n", End::Stays),
        (0, 20, "", End::Resets),
        (1, 30, value, End::Stays),
        (1, 40, "", End::Resets),
    ];
    assert_eq!(
        departures(&mut core),
        expected.map(|(id, at_ns, text, end)| (id, at_ns, text.to_owned(), end))
    );
    let records: Vec<_> = core.take_records().collect();
    assert_eq!((flagged(&records, FLAG_RESET), core.counters().faults_reset), (vec![1, 3], 2));
    assert_eq!(records.len(), 4);
    // Without service time they leave at one instant, and are one departure.
    let mut core = with(faults, 0);
    core.receive(0, b"get a\r\nget a\r\n", 5);
    assert_eq!(departures(&mut core), [(0, 5, "END\r\n".to_owned(), End::Resets)]);
}

/// Each row: (sent, answered) where the last command is the one that is cut.
#[test]
fn a_cut_reply_is_its_first_half() {
    let rows = [
        ("get a\r\n", "EN"),
        ("set a 0 0 6\r\nabcdef\r\nget a\r\n", "STORED\r\nVALUE a 0 6\r\n"),
        ("set a 0 0 10\r\nabcdefghij\r\nget a\r\n", "STORED\r\nVALUE a 0 10\r\na"),
        ("set a 0 0 1\r\n5\r\nincr a 1\r\n", "STORED\r\n6"),
        ("delete a\r\n", "NOT_F"),
    ];
    for (sent, answered) in rows {
        let cut_every = Every::new(1 + u64::from(sent.starts_with("set")));
        let mut core = with(Faults { cut_every, ..Faults::default() }, 0);
        core.receive(0, format!("{sent}get a\r\nversion\r\n").as_bytes(), 3);
        assert_eq!(departures(&mut core), [(0, 3, answered.to_owned(), End::Closes)], "{sent:?}");
        let records: Vec<_> = core.take_records().collect();
        assert_eq!((flagged(&records, FLAG_CUT).len(), core.counters().faults_cut), (1, 1));
        core.receive(0, b"get a\r\n", 4);
        assert_eq!(core.pop_due(u64::MAX), None, "what comes behind is thrown away");
    }
    let mut core = with(Faults { cut_every: Every::new(1), ..Faults::default() }, 0);
    core.receive(0, b"set a 0 0 1 noreply\r\nx\r\ndelete a\r\n", 0);
    assert_eq!(drain(&mut core, 0, 0), b"DELE", "silence cannot be cut, and its connection stays");
    assert_eq!(core.counters().faults_cut, 1);
}

/// A client that connects anew whenever it is cut off sees exactly the scripted faults.
#[test]
fn ends_come_exactly_as_often_as_scripted() {
    let every = |n| Every::new(n);
    let faults = Faults {
        reset_every: every(700),
        cut_every: every(300),
        error_every: every(100),
        ..Faults::default()
    };
    let mut core = with(faults, 0);
    let (mut resets, mut closes, mut errors) = (0, 0, 0);
    for number in 0..21_000 {
        core.receive(0, b"get a\r\n", number);
        for (_, _, text, end) in departures(&mut core) {
            errors += u32::from(text.starts_with("SERVER_ERROR"));
            (resets, closes) =
                (resets + u32::from(end == End::Resets), closes + u32::from(end == End::Closes));
            if end != End::Stays {
                core.disconnect(0);
                core.connect(0);
            }
        }
    }
    // 30 multiples of 700; 70 of 300 less 10 of 2100; 210 of 100 less those 90.
    assert_eq!((resets, closes, errors), (30, 60, 120));
}

#[test]
fn wrong_values_have_the_right_length() {
    let mut core = with(Faults { wrong_every: Every::new(2), ..Faults::default() }, 0);
    // Number 1 finds a value, 3 finds none, 5 is an empty value, 7 is a write: only the first can be wrong.
    core.receive(
        0,
        b"set a 0 0 4\r\nabcd\r\ngets a no a\r\nget a\r\nget no\r\nset e 0 0 0\r\n\r\nget e\r\n",
        0,
    );
    core.receive(0, b"get a\r\nset a 0 0 1\r\nz\r\n", 0);
    let right = "VALUE a 0 4\r\nabcd\r\nEND\r\n";
    let wrong = "VALUE a 0 4 1\r\n`cbe\r\nVALUE a 0 4 1\r\n`cbe\r\nEND\r\n";
    let expected =
        format!("STORED\r\n{wrong}{right}END\r\nSTORED\r\nVALUE e 0 0\r\n\r\nEND\r\n{right}STORED\r\n");
    assert_eq!(String::from_utf8(drain(&mut core, 0, 0)).unwrap(), expected);
    let records: Vec<_> = core.take_records().collect();
    assert_eq!((flagged(&records, FLAG_WRONG), core.counters().faults_wrong), (vec![1], 1));
}

/// The accounting of a million gets, one at a time, a tenth of them misses, by a client that reconnects when it is left
/// without an answer; a preload of a thousand keys comes before the script.
#[test]
fn a_million_gets_have_exactly_the_scripted_faults() {
    let every = |n| Every::new(n);
    let (drop_every, error_every, wrong_every) = (every(10_000), every(1000), every(50_001));
    let faults = Faults { drop_every, error_every, wrong_every, ..Faults::default() };
    let mut core = with(faults, 1000);
    for key in 0..1000 {
        core.receive(0, format!("set {key} 0 0 4\r\nabcd\r\n").as_bytes(), 0);
    }
    assert_eq!(drain(&mut core, 0, 0), b"STORED\r\n".repeat(1000));
    core.take_records();
    let (mut hits, mut misses, mut errors, mut timeouts, mut wrong) = (0, 0, 0, 0, 0);
    for number in 0..1_000_000u64 {
        let key = if number % 10 == 9 { "none".to_owned() } else { (number % 1000).to_string() };
        core.receive(0, format!("get {key}\r\n").as_bytes(), number);
        let reply = drain(&mut core, 0, number);
        if reply.is_empty() {
            timeouts += 1;
            core.disconnect(0);
            core.connect(0);
        } else if reply.starts_with(b"SERVER_ERROR") {
            errors += 1;
        } else if reply == b"END\r\n" {
            misses += 1;
        } else {
            assert!(reply.ends_with(b"\r\nEND\r\n"));
            hits += 1;
            wrong += u64::from(!reply.ends_with(b"abcd\r\nEND\r\n"));
        }
    }
    // Every drop hides an error, since 10 000 is a multiple of 1000. Of the 19 multiples of 50 001 none is one of 1000;
    // the requests before the 50 001st, 100 002nd, … have numbers 50 000, 100 001, …: those ending in 9 are misses,
    // 10 · 50 001 − 1 alone.
    assert_eq!((timeouts, errors, wrong), (100, 900, 18));
    // Every refused or dropped request has a number ending in 9: they are misses without a reply.
    assert_eq!((hits, misses), (900_000, 99_000));
    let counters = *core.counters();
    assert_eq!((counters.cmd_get, counters.get_hits, counters.get_misses), (1_000_000, 900_000, 99_100));
    assert_eq!((counters.faults_dropped, counters.faults_error, counters.faults_wrong), (100, 900, 18));
    let records: Vec<_> = core.take_records().collect();
    assert_eq!(flagged(&records, FLAG_DROPPED)[..2], [10_999, 20_999]);
    assert_eq!((flagged(&records, FLAG_ERROR).len(), flagged(&records, FLAG_WRONG).len()), (900, 18));
}

/// Misses that depend on the key alone: whatever is stored under an id that N divides is not found.
#[test]
fn missed_ids_are_never_found() {
    let mut core = connected(CoreOptions { miss_ids: NonZeroU64::new(10), ..CoreOptions::default() });
    let keys = ["user:0010", "user:0011", "100x", "0", "plain", "99999999999999999999"];
    let stores: Vec<String> = keys.iter().map(|key| format!("set {key} 0 0 1\r\nx\r\n")).collect();
    core.receive(0, stores.concat().as_bytes(), 0);
    assert_eq!(drain(&mut core, 0, 0), b"STORED\r\n".repeat(6));
    core.receive(0, format!("get {}\r\n", keys.join(" ")).as_bytes(), 0);
    let found = String::from_utf8(drain(&mut core, 0, 0)).unwrap();
    let found: Vec<&str> =
        found.lines().filter_map(|line| line.strip_prefix("VALUE ")?.split(' ').next()).collect();
    assert_eq!(found, ["user:0011", "100x", "plain", "99999999999999999999"]);
    assert_eq!((core.counters().get_hits, core.counters().get_misses), (4, 2));
    core.receive(0, b"delete user:0010\r\n", 0);
    assert_eq!(drain(&mut core, 0, 0), b"DELETED\r\n", "it is there all the same");
}
