//! memcached's other dialects, meta and binary, against a real memcached: what only they have, and what lies between dialects.
//!
//! Not the counts of every operation (`operations.rs`).

use crate::measured::Measured;
use crate::operations::{DIALECTS, store, value_of};
use crate::server::{Server, beside_others, brunt, ended};
use std::io::{BufRead, BufReader, Write};
use std::net::TcpStream;

/// All but text.
const LATER: [&str; 2] = [DIALECTS[1], DIALECTS[2]];

/// Each server is asked for its own keys, and the parts of a multi-get are one operation.
#[test]
fn keys_are_split_over_servers() {
    let _beside = beside_others();
    for dialect in LATER {
        let Some(one) = Server::memcached(&[]) else { return };
        let Some(other) = Server::memcached(&[]) else { return };
        let flags = ["-s", &other.address, "--protocol", dialect, "--keys", "2000", "--warmup", "0s"];
        let mix = [
            "-n",
            "5000",
            "--mix",
            "get=2,mget=2,set=1",
            "-c",
            "8",
            "--depth",
            "4",
            "--set",
            "server-stats=false",
        ];
        let measured = Measured::run(&one.address, &[&flags[..], &mix].concat());
        measured.check_exit();
        measured.check_request_counts();
        let servers = [one.statistics(), other.statistics()];
        let counted = |name: &str| servers.iter().map(|server| server[name]).collect::<Vec<_>>();
        assert_eq!(
            counted("cmd_get").iter().sum::<u64>(),
            measured.over_phases("keys.requested"),
            "{dialect}"
        );
        assert_eq!(counted("cmd_set").iter().sum::<u64>(), measured.over_phases("ops.set"), "{dialect}");
        assert_eq!(counted("curr_items").iter().sum::<u64>(), 2_000, "{dialect}");
        assert!(counted("curr_items").iter().all(|items| *items > 500), "{dialect} {servers:?}");
        assert_eq!(
            measured.count("counts.keys.hit"),
            measured.count("counts.keys.requested"),
            "{dialect}\n{}",
            measured.text
        );
        assert_eq!(
            (measured.count("counts.requests.completed"), measured.count("events.unmatched_replies")),
            (5_000, 0)
        );
    }
}

/// A data set is the same in every dialect; what another client has stored under its keys is told apart.
#[test]
fn values_are_verified_in_every_protocol() {
    let _beside = beside_others();
    let Some(server) = Server::memcached(&[]) else { return };
    let load = |dialect: &str, flags: &[&str]| {
        let mut command = brunt(&["load", "--server", &server.address, "--keys", "1000", "--quiet"]);
        assert!(command.args(["--protocol", dialect]).args(flags).status().unwrap().success(), "{dialect}");
    };
    let check = |mismatch: u64, foreign: u64| {
        for (dialect, mix) in LATER.into_iter().flat_map(|dialect| [(dialect, "get"), (dialect, "mget")]) {
            let flags = ["--protocol", dialect, "--mix", mix, "--no-preload", "--warmup", "0s", "-n"];
            let (count, keys_of_each) = if mix == "get" { ("1000", 1) } else { ("100", 10) };
            let rest = [count, "--keys", "1000", "--popularity", "sequential", "-c", "4", "--depth", "4"];
            let measured = Measured::run(&server.address, &[&flags[..], &rest].concat());
            let text = &measured.text;
            let requests = measured.count("counts.requests.scheduled");
            assert_eq!(
                (requests * keys_of_each, measured.count("counts.keys.miss")),
                (1_000, 0),
                "{dialect} {mix}\n{text}"
            );
            assert_eq!(measured.count("counts.requests.mismatch"), mismatch, "{dialect} {mix}\n{text}");
            assert_eq!(measured.count("events.values_foreign"), foreign, "{dialect} {mix}\n{text}");
        }
    };
    for dialect in DIALECTS {
        load(dialect, &["--set", "data-seed=7"]);
        check(0, 1_000);
        load(dialect, &[]);
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
    let _beside = beside_others();
    for mix in ["get", "gets", "mget"] {
        let Some(server) = Server::memcached(&[]) else { return };
        let keys = ["--protocol", "memcached-meta", "--keys", "10", "--warmup", "0s", "-c", "1"];
        let loaded = Measured::run(&server.address, &[&keys[..], &["-n", "10", "--mix", "get"]].concat());
        assert_eq!(loaded.at("events.recache"), &serde_json::json!({ "won": 0, "stale": 0, "taken": 0 }));
        let mut stream = TcpStream::connect(&server.address).unwrap();
        let mut lines = BufReader::new(stream.try_clone().unwrap()).lines();
        for id in 0..10 {
            stream.write_all(format!("md brunt:{id:024} I T60\r\n").as_bytes()).unwrap();
            assert_eq!(lines.next().unwrap().unwrap(), "HD");
        }
        // Three times round: the first to ask is to renew the value.
        let requests = if mix == "mget" { "3" } else { "30" };
        let flags = ["--no-preload", "--popularity", "sequential", "--mix", mix, "-n", requests];
        let measured = Measured::run(&server.address, &[&keys[..], &flags].concat());
        measured.check_request_counts();
        let expected = serde_json::json!({ "won": 10, "stale": 30, "taken": 20 });
        assert_eq!(measured.at("events.recache"), &expected, "{mix}\n{}", measured.text);
        assert_eq!(
            (measured.count("counts.keys.hit"), measured.count("counts.requests.mismatch")),
            (30, 0),
            "{mix}"
        );
        assert!(measured.text.contains("30 stale · 10 recache won"), "{mix}\n{}", measured.text);
    }
}

/// A server that does not speak the dialect is told from one that does before anything is measured.
#[test]
fn servers_without_the_protocol_are_rejected() {
    let _beside = beside_others();
    let Some(ascii) = Server::memcached(&["-B", "ascii"]) else { return };
    let Some(binary) = Server::memcached(&["-B", "binary"]) else { return };
    let Some(redis) = Server::redis(&[]) else { return };
    let table = [
        (LATER[1], &ascii.address),
        (LATER[0], &binary.address),
        (LATER[0], &redis.address),
        (LATER[1], &redis.address),
    ];
    // Beside each other, for most of it is waiting.
    std::thread::scope(|scope| {
        for (dialect, address) in table {
            scope.spawn(move || {
                let output = ended(&["--protocol", dialect, "-s", address, "--timeout", "1s"]);
                let text = String::from_utf8(output.stderr).unwrap();
                assert_eq!(output.status.code(), Some(5), "{dialect}: {text}");
                assert_eq!(text.lines().count(), 1, "{dialect}: {text}");
            });
        }
    });
}
