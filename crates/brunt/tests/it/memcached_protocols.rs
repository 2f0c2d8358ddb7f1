//! memcached's other dialects, meta and binary, against a real memcached: what only they have, and what lies between dialects.
//!
//! Not the counts of every operation (`operations.rs`).

use crate::measured::Measured;
use crate::operations::{DIALECTS, store, value_of};
use crate::server::{Server, ended, ended_run, side_by_side};
use std::io::{BufRead, BufReader, Write};
use std::net::TcpStream;

/// All but text.
const LATER: [&str; 2] = [DIALECTS[1], DIALECTS[2]];

/// Each server is asked for its own keys, and the parts of a multi-get are one operation.
#[test]
fn keys_are_split_over_servers() {
    for dialect in LATER {
        let Some(one) = Server::memcached("") else { return };
        let Some(other) = Server::memcached("") else { return };
        let flags = format!("-s {other} --protocol {dialect} --keys 2000 --warmup 0s");
        let mix = "-n 5000 --mix get=2,mget=2,set=1 -c 8 --depth 4 --set server-stats=false";
        let measured = Measured::run(&one, &format!("{flags} {mix}"));
        measured.check_exit();
        let servers = [one.statistics(), other.statistics()];
        let counted = |name: &str| servers.iter().map(|server| server[name]).collect::<Vec<_>>();
        assert_eq!(counted("cmd_get").iter().sum::<u64>(), measured.over_phases("keys.requested"));
        assert_eq!(counted("cmd_set").iter().sum::<u64>(), measured.over_phases("ops.set"), "{dialect}");
        assert_eq!(counted("curr_items").iter().sum::<u64>(), 2_000, "{dialect}");
        assert!(counted("curr_items").iter().all(|items| *items > 500), "{dialect} {servers:?}");
        assert_eq!(measured.count("counts.keys.hit"), measured.count("counts.keys.requested"), "{dialect}");
        assert_eq!((measured.requests("completed"), measured.count("events.unmatched_replies")), (5_000, 0));
    }
}

/// A data set is the same in every dialect; what another client has stored under its keys is told apart.
#[test]
fn values_are_verified_in_every_protocol() {
    let Some(server) = Server::memcached("") else { return };
    let load = |dialect: &str, flags: &str| {
        ended(&format!("load --server {server} --keys 1000 --quiet --protocol {dialect} {flags}")).is(0, &[]);
    };
    let check = |mismatch: u64, foreign: u64| {
        for (dialect, mix) in LATER.into_iter().flat_map(|dialect| [(dialect, "get"), (dialect, "mget")]) {
            let flags = format!("--protocol {dialect} --mix {mix} --no-preload --warmup 0s -n");
            let (count, keys_of_each) = if mix == "get" { ("1000", 1) } else { ("100", 10) };
            let rest = format!("{count} --keys 1000 --popularity sequential -c 4 --depth 4");
            let measured = Measured::run(&server, &format!("{flags} {rest}"));
            let requests = measured.requests("scheduled");
            assert_eq!((requests * keys_of_each, measured.count("counts.keys.miss")), (1_000, 0));
            assert_eq!(measured.requests("mismatch"), mismatch, "{dialect} {mix}");
            assert_eq!(measured.count("events.values_foreign"), foreign, "{dialect} {mix}");
        }
    };
    for dialect in DIALECTS {
        load(dialect, "--set data-seed=7");
        check(0, 1_000);
        load(dialect, "");
        check(0, 0);
    }
    // The value of one key under another, and one of no data set.
    assert_eq!(store(&server, 8, &value_of(&server, 7)), "STORED\r\n");
    check(1, 0);
    assert_eq!(store(&server, 900, b"what another client has stored"), "STORED\r\n");
    check(1, 1);
}

/// Values that the server wants to be renewed are counted by what it says of them.
#[test]
fn recached_values_are_counted() {
    for mix in ["get", "gets", "mget"] {
        let Some(server) = Server::memcached("") else { return };
        let keys = "--protocol memcached-meta --keys 10 --warmup 0s -c 1";
        let loaded = Measured::run(&server, &format!("{keys} -n 10 --mix get"));
        assert_eq!(loaded.at("events.recache"), &serde_json::json!({ "won": 0, "stale": 0, "taken": 0 }));
        let mut stream = TcpStream::connect(&server.address).unwrap();
        let mut lines = BufReader::new(stream.try_clone().unwrap()).lines();
        for id in 0..10 {
            stream.write_all(format!("md brunt:{id:024} I T60\r\n").as_bytes()).unwrap();
            assert_eq!(lines.next().unwrap().unwrap(), "HD");
        }
        // Three times round: the first to ask is to renew the value.
        let requests = if mix == "mget" { "3" } else { "30" };
        let flags = format!("--no-preload --popularity sequential --mix {mix} -n {requests}");
        let measured = Measured::run(&server, &format!("{keys} {flags}"));
        let expected = serde_json::json!({ "won": 10, "stale": 30, "taken": 20 });
        assert_eq!(measured.at("events.recache"), &expected, "{mix}");
        assert_eq!((measured.count("counts.keys.hit"), measured.requests("mismatch")), (30, 0), "{mix}");
        assert!(measured.text.contains("30 stale · 10 recache won"), "{mix}");
    }
}

/// A server that does not speak the dialect is told from one that does before anything is measured.
#[test]
fn servers_without_the_protocol_are_rejected() {
    let Some(ascii) = Server::memcached("-B ascii") else { return };
    let Some(binary) = Server::memcached("-B binary") else { return };
    let Some(redis) = Server::redis("") else { return };
    let table = [
        (LATER[1], &ascii.address),
        (LATER[0], &binary.address),
        (LATER[0], &redis.address),
        (LATER[1], &redis.address),
    ];
    // Beside each other, for most of it is waiting.
    side_by_side(table, |(dialect, address)| {
        ended_run(&format!("--protocol {dialect} -s {address} --timeout 1s")).is_line(5, &[]);
    });
}
