//! memcached's other dialects, meta and binary, against a real memcached: what we count is what it counts, to the last byte.

use crate::measured::Measured;
use crate::operations::{store, value_of};
use crate::server::{Server, beside_others, brunt, ended};
use std::io::{BufRead, BufReader, Write};
use std::net::TcpStream;

const DIALECTS: [&str; 2] = ["memcached-meta", "memcached-binary"];

/// All kinds there are, and of each every outcome.
const EVERY_KIND: &str =
    "get=20,gets=8,mget=4,set=8,add=4,replace=4,append=2,prepend=2,cas=6,incr=4,decr=4,delete=3,touch=4";

/// Fifty thousand of them: hits, misses and refusals of every kind equal the server's own statistics, and so do all bytes.
#[test]
fn mixed_operations_are_counted_alike() {
    let _beside = beside_others();
    for dialect in DIALECTS {
        let Some(server) = Server::memcached(&["-m", "512"]) else { return };
        let (before, told_bytes) = server.statistics_and_len();
        let flags = [
            &["--protocol", dialect, "-n", "50k", "--warmup", "0s", "-c", "16", "-T", "2", "--depth", "8"][..],
            &["--popularity", "zipf:0.99", "--keys", "20000", "--value-size", "uniform:20,400"],
            // Its bytes would be among those that are compared.
            &["--mix", EVERY_KIND, "--seed", "42", "--set", "server-stats=false"],
        ];
        let measured = Measured::run(&server.address, &flags.concat());
        let after = server.statistics();
        let text = &measured.text;
        measured.check_exit();
        measured.check_request_counts();
        measured.check_connections();
        let ended = ["scheduled", "completed"].map(|key| measured.count(&format!("counts.requests.{key}")));
        assert_eq!(ended, [50_000; 2], "{text}");
        assert_eq!(
            (measured.count("events.unmatched_replies"), measured.count("events.pushes")),
            (0, 0),
            "{text}"
        );
        assert!(
            measured.json["events"]["first_malformed"].is_null()
                && measured.json["events"]["first_error"].is_null(),
            "{text}"
        );

        let reply =
            |op: &str, reply: &str| measured.count_or_0(&format!("ops.{op}.counts.requests.replies.{reply}"));
        let sent = |op: &str| measured.over_phases(&format!("ops.{op}"));
        let stores = ["set", "add", "replace", "append", "prepend", "cas"].map(sent).iter().sum();
        // A touch of the meta protocol is a retrieval as long as it finds nothing.
        let (touched, untouched) = (reply("touch", "touched"), reply("touch", "not_found"));
        let (as_touch, as_get) = if dialect == DIALECTS[0] { (0, untouched) } else { (untouched, 0) };
        // Each connection begins with a NOOP, 24 bytes like its reply, before the first phase.
        let setup_bytes =
            if dialect == DIALECTS[1] { 24 * measured.count("client.connections.established") } else { 0 };
        // What the server counts → what we say.
        let table = [
            ("cmd_get", measured.over_phases("keys.requested") + as_get),
            ("get_hits", measured.over_phases("keys.hit")),
            ("get_misses", measured.over_phases("keys.miss") + as_get),
            ("cmd_set", stores),
            ("cas_hits", reply("cas", "stored")),
            ("cas_badval", reply("cas", "exists")),
            ("cas_misses", reply("cas", "not_found")),
            ("incr_hits", reply("incr", "number")),
            ("decr_hits", reply("decr", "number")),
            ("delete_hits", reply("delete", "deleted")),
            ("delete_misses", reply("delete", "not_found")),
            ("cmd_touch", touched + as_touch),
            ("touch_hits", touched),
            ("touch_misses", as_touch),
            // Each question for the statistics is 7 bytes, and the first answer went out behind what it says.
            ("bytes_read", measured.over_phases("bytes.tx") + setup_bytes + 7),
            ("bytes_written", measured.over_phases("bytes.rx") + setup_bytes + told_bytes),
        ];
        for (name, ours) in table {
            assert!(ours > 0 || name == "touch_misses", "{dialect} {name}");
            assert_eq!(after[name] - before[name], ours, "{dialect} {name}\n{text}");
        }
        for op in ["add", "replace", "append"] {
            assert!(reply(op, "not_stored") > 0 && reply(op, "stored") > 0, "{dialect} {op}");
        }
        assert!(untouched > 0 && touched + untouched == sent("touch"), "{dialect}\n{text}");
    }
}

/// What was missed is stored, one key of a multi-get like an only one.
#[test]
fn missed_keys_are_stored() {
    let _beside = beside_others();
    for (dialect, (mix, keys_of_each)) in DIALECTS
        .into_iter()
        .flat_map(|dialect| [("get", 1), ("gets", 1), ("mget", 10)].map(|mix| (dialect, mix)))
    {
        let Some(server) = Server::memcached(&[]) else { return };
        let run = |requests: u64| {
            let flags =
                ["--protocol", dialect, "--no-preload", "--warmup", "0s", "--keys", "3000", "-c", "4"];
            let rest = ["--popularity", "sequential", "--on-miss", "set", "--mix", mix, "--depth", "4", "-n"];
            Measured::run(&server.address, &[&flags[..], &rest, &[&requests.to_string()]].concat())
        };
        let first = run(3_000_u64.div_ceil(keys_of_each));
        first.check_request_counts();
        let missed = first.count("counts.keys.miss");
        assert_eq!(first.count("counts.requests.followup"), missed, "{dialect} {mix}\n{}", first.text);
        assert_eq!(first.count("ops.set.counts.requests.replies.stored"), missed, "{dialect} {mix}");
        assert_eq!(server.statistics()["curr_items"], 3_000, "{dialect} {mix}");
        let second = run(3_000);
        assert_eq!(
            (second.count("counts.requests.scheduled"), second.count("counts.requests.followup")),
            (3_000, 0)
        );
        assert_eq!(second.count("counts.keys.hit"), 3_000 * keys_of_each, "{dialect} {mix}\n{}", second.text);
    }
}

/// Each server is asked for its own keys, and the parts of a multi-get are one operation.
#[test]
fn keys_are_split_over_servers() {
    let _beside = beside_others();
    for dialect in DIALECTS {
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

/// Changes without a reply end when they are sent, but for touch, which has no such form; what the server says of their
/// failures is no operation's.
#[test]
fn noreply_changes_arrive() {
    let _beside = beside_others();
    for dialect in DIALECTS {
        let Some(server) = Server::memcached(&[]) else { return };
        let mix = ["--noreply", "--mix", "get=2,set=3,add=1,delete=1,touch=1,incr=1,append=1", "-n", "30000"];
        let flags = ["--protocol", dialect, "--keys", "3000", "--warmup", "0s", "--depth", "4"];
        let measured = Measured::run(&server.address, &[&mix[..], &flags].concat());
        let text = &measured.text;
        measured.check_exit();
        measured.check_request_counts();
        measured.check_connections();
        let sent = |op: &str| measured.over_phases(&format!("ops.{op}"));
        let stores: u64 = ["set", "add", "append"].map(sent).iter().sum();
        // The last of them may still be on their way when the run is over.
        let statistics = loop {
            let statistics = server.statistics();
            let deleted = statistics["delete_hits"] + statistics["delete_misses"];
            if statistics["cmd_set"] == stores
                && deleted == sent("delete")
                && statistics["incr_hits"] == sent("incr")
            {
                break statistics;
            }
            assert!(statistics["cmd_set"] <= stores && deleted <= sent("delete"), "{dialect}\n{text}");
        };
        measured.check_server_counts();
        assert_eq!(
            statistics["touch_hits"],
            measured.count("ops.touch.counts.requests.replies.touched"),
            "{dialect}\n{text}"
        );
        assert_eq!(measured.count("ops.touch.counts.requests.completed"), sent("touch"), "{dialect}\n{text}");
        let changed = ["set", "add", "delete", "incr", "append"];
        assert_eq!(
            measured.count("counts.requests.unacknowledged"),
            changed
                .map(|op| { measured.count(&format!("ops.{op}.counts.requests.sent")) })
                .iter()
                .sum::<u64>()
        );
        let strays = measured.count("events.unmatched_replies");
        // Most keys that are to be added are there.
        assert!(strays > sent("add") / 2 && strays < 3 * sent("add"), "{dialect} {strays}\n{text}");
        assert!(text.contains("unmatched replies"), "{dialect}\n{text}");
        assert_eq!(
            measured.count("counts.requests.mismatch") + measured.count("counts.requests.error"),
            0,
            "{dialect}\n{text}"
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
        for (dialect, mix) in DIALECTS.into_iter().flat_map(|dialect| [(dialect, "get"), (dialect, "mget")]) {
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
    for dialect in ["memcached-text", DIALECTS[0], DIALECTS[1]] {
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
        (DIALECTS[1], &ascii.address),
        (DIALECTS[0], &binary.address),
        (DIALECTS[0], &redis.address),
        (DIALECTS[1], &redis.address),
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
