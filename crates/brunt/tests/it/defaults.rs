//! What happens where nothing was said: servers are asked what they speak, and what a run has stored can be removed, it alone.

use crate::cluster::Cluster;
use crate::measured::Measured;
use crate::server::{Ended, Server, ended, lasting_port, listening, plain, silent};
use crate::tls::{Certificates, redis_over_tls};
use std::io::{Read, Write};

const USUAL: &str = "--warmup 0s --progress=none --allow=BROKEN,LOAD,CLIENT,DATA,STEADY";

fn run(address: &str, flags: &str) -> Ended {
    let few = if flags.contains("--keys") { "" } else { "--keys 100" };
    ended(&format!("run -s {address} {USUAL} -n 100 -c 6 {few} {flags}"))
}

/// A server that reads a line of every connection, says this and closes, or does nothing.
fn answering(says: Option<&'static [u8]>) -> String {
    let Some(says) = says else { return silent() };
    listening(|mut stream, _| {
        let _ = stream.read(&mut [0; 64]);
        let _ = stream.write_all(says);
    })
}

#[test]
fn servers_are_asked_what_they_speak() {
    let (Some(memcached), Some(redis)) = (Server::memcached(""), Server::redis("")) else { return };
    let Some(at_path) = Server::memcached_at_path("") else { return };
    let Some(locked) = Server::redis("--requirepass pw") else { return };
    let reference = Server::reference("");
    let table: [(&Server, &str, &str); 5] = [
        (&memcached, "", "memcached-text"),
        (&at_path, "", "memcached-text"),
        (&reference, "", "memcached-text"),
        (&redis, "", "resp2"),
        (&locked, "--password pw", "resp2"),
    ];
    for (server, flags, protocol) in table {
        let measured = Measured::run(server, &format!("{USUAL} -n 100 -c 6 {flags}"));
        assert_eq!(measured.exit, 0);
        assert_eq!(measured.at("plan.protocol"), protocol);
    }
    let Some(cluster) = Cluster::start() else { return };
    run(&cluster.nodes[0].address, "--cluster").is(0, &[]);
    let expected =
        "--cluster requires --protocol resp2 or resp3; asked, the server answered in memcached-text";
    run(&memcached.address, "--cluster").is(2, &[expected]);
    let expected = format!("{redis} speaks resp2 and {memcached} memcached-text: ");
    run(&redis.address, &format!("-s {memcached}")).is(2, &[&expected]);
}

#[test]
fn what_does_not_tell_its_protocol_is_named() {
    let nowhere = format!("127.0.0.1:{}", lasting_port());
    let table = [
        (
            answering(Some(b"HTTP/1.1 400 Bad Request\r\n\r\n")),
            "it answers as an HTTP server: give the port of memcached or Redis",
        ),
        // A bad request is answered as to HTTP 0.9, without a head.
        (answering(Some(b"<!DOCTYPE HTML>\n")), "it answers as an HTTP server: give the port of "),
        (
            answering(Some(b"")),
            "it closes the connection on \"version\": give --protocol, or for TLS -s memcacheds://",
        ),
        (answering(Some(b"\x15\x03\x03\x00\x02\x02\x46")), "it answers in TLS: use -s memcacheds://"),
        (answering(Some(b"hello\r\n")), "it answers \"hello\\r\\n\" to \"version\": give --protocol"),
        (answering(None), "it does not answer \"version\" within 2 s: give --protocol"),
        (nowhere, "Connection refused (os error 111); start it, or give its port (brunt run without -s "),
    ];
    let other = Server::reference("");
    for (address, words) in table {
        let output = run(&address, "");
        output.is(5, &[&address, words]);
        // Another server that answers does not speak for it.
        run(&address, &format!("-s {other}")).is(5, &[&address, words]);
        assert!(output.said.starts_with("error: cannot "));
        // Neither of these connects to anything.
        let printed = Ended::from(plain(&format!("run --print-plan -s {address}")));
        let plan = &printed.out;
        assert!(
            plan.starts_with("# protocol: asked of the server before the run\n")
                && !plan.contains("\nprotocol")
        );
    }
    let Some(papers) = Certificates::issue() else { return };
    let Some((_server, by_tls)) = redis_over_tls(&papers, "--tls-auth-clients no") else { return };
    run(&by_tls, "").is(5, &[&format!("rediss://{by_tls}")]);
    run(&by_tls, &format!("--set transport=tls --tls-ca {}", papers.path("ca.pem"))).is(0, &[]);
}

/// The plan is refused before the server is asked.
#[test]
fn mistakes_are_named_before_a_server_is_asked() {
    run(&answering(None), "--value-size 200MiB").is(2, &[]);
}

/// The command that removes what a run has stored, as its report has it.
fn removal(output: &Ended) -> String {
    let words = output.out.split_whitespace().collect::<Vec<_>>().join(" ");
    let (_, command) = words.split_once("removed by: brunt ").expect(&words);
    // Up to the next line of the report.
    let end = ["errors ", "connections ", "server ", "client ", "slowest "]
        .iter()
        .filter_map(|label| command.find(label))
        .min();
    command[..end.unwrap_or(command.len())].to_owned()
}

/// What a run stores comes and goes; keys of others stay, whose names differ by a digit.
#[test]
fn what_a_run_stored_is_removed_alone() {
    let (Some(memcached), Some(redis)) = (Server::memcached(""), Server::redis("")) else { return };
    let others = ["brunt:000000000000000000000900", "000000000000000000000000000007", "counter"];
    for other in others {
        memcached.says(&format!("set {other} 0 0 2\r\n42\r\n"), "STORED\r\n");
        redis.redis_says(&format!("SET {other} 42"));
    }
    let items = |server: &Server, is_redis: bool| match is_redis {
        true => server.redis_says("DBSIZE").split("\r\n").next().unwrap()[1..].parse::<u64>().unwrap(),
        false => server.statistics()["curr_items"],
    };
    // Protocol, more of the run, and how many keys it stores.
    let table = [
        ("memcached-text", "", 400),
        ("memcached-text", "--mix get,incr,decr", 800),
        ("memcached-meta", "--set key-form=random --key-size uniform:20,40", 400),
        ("memcached-binary", "--set first-key=7", 400),
        ("resp2", "", 400),
        ("resp3", "--mix get,incr", 800),
        ("resp-inline", "--set data-seed=9 --set key-form=random", 400),
        ("resp2", "--set hash-field=4", 1),
        ("memcached-text", "--no-preload --mix set", 400),
    ];
    for (protocol, flags, stored) in table {
        let is_redis = protocol.starts_with("resp");
        let server = if is_redis { &redis } else { &memcached };
        let count = format!("{USUAL} -n 8000 --keys 400 -c 4 -T 2 --protocol {protocol}");
        let output = ended(&format!("run -s {server} {count} {flags}"));
        output.is(0, &[]);
        assert_eq!(items(server, is_redis), 3 + stored, "{protocol} {flags:?}");
        let says =
            if flags.contains("--no-preload") { "note: sets store keys on " } else { "note: storing " };
        output.is(0, &["remove them by: brunt load --delete "]);
        assert!(output.said.starts_with(says));
        let removal = removal(&output);
        for (deleted, absent) in [(true, false), (false, true)] {
            let gone = Ended::from(plain(&format!("{removal} --report=brief")));
            assert_eq!(gone.exit, 0);
            let ids = if stored == 800 { 800 } else { 400 };
            let expected =
                format!("deleted={} absent={} ", u64::from(deleted) * ids, u64::from(absent) * ids);
            assert!(gone.out.starts_with(&expected), "{removal}");
        }
        assert_eq!(items(server, is_redis), 3, "{protocol} {flags:?}");
    }
    assert_eq!(redis.redis_says("GET counter").lines().nth(1), Some("42"));
}

/// Where keys lie by placement, and where each has copies.
#[test]
fn keys_are_removed_from_several_servers() {
    let servers: Vec<Server> = (0..3).map_while(|_| Server::memcached("")).collect();
    if servers.len() < 3 {
        return;
    }
    let items = || servers.iter().map(|server| server.statistics()["curr_items"]).sum::<u64>();
    for (flags, stored) in [
        ("--placement ketama", 300),
        ("--placement modulo --replicas 2", 600),
        ("--placement random", 900),
        ("--placement by-thread -T 3 -c 3", 900),
    ] {
        for (more, expected) in [("", stored), ("--delete", 0)] {
            let places: String = servers.iter().map(|server| format!(" -s {server}")).collect();
            Ended::from(plain(&format!("load -q --keys 300{places} {flags} {more}"))).is(0, &[]);
            assert_eq!(items(), expected, "{flags:?} {more:?}");
        }
    }
}

#[test]
fn keys_of_a_cluster_are_removed() {
    let Some(cluster) = Cluster::start() else { return };
    for (more, keys) in [("", 500), ("--delete", 0)] {
        let address = &cluster.nodes[1].address;
        Ended::from(plain(&format!("load --cluster -s {address} --keys 500 --report=brief {more}")))
            .is(0, &[]);
        let held = |node: &Server| -> u64 {
            node.redis_says("DBSIZE").split("\r\n").next().unwrap()[1..].parse().unwrap()
        };
        assert_eq!(cluster.nodes.iter().map(held).sum::<u64>(), keys);
    }
}

#[test]
fn keys_without_a_prefix_are_kept_unless_one_is_sure() {
    let server = Server::reference("");
    let load = |flags: &str| Ended::from(plain(&format!("load -s {server} --keys 10 {flags}")));
    assert_eq!(load("--prefix=").exit, 0);
    load("--prefix= --delete").is(2, &["error: --delete requires --prefix"]);
    assert_eq!(server.statistics()["curr_items"], 10);
    assert_eq!(load("--prefix= --delete --yes").exit, 0);
    assert_eq!(server.statistics()["curr_items"], 0);
}

/// The preload takes as long as its rate says; how long is said before.
#[test]
fn a_preload_keeps_its_rate() {
    let server = Server::reference("");
    let begun = std::time::Instant::now();
    let output = run(&server, "--keys 600 --set preload-rate=1000 -T 2");
    assert!(begun.elapsed() >= std::time::Duration::from_millis(590), "{:?}", begun.elapsed());
    output.is(0, &[", 1000/s at most: 600 ms (--set preload-rate=RATE for another rate)"]);
}

#[test]
fn keys_without_room_have_no_prefix() {
    let server = Server::reference("");
    let output = run(&server, "--key-size 8 --keys 1000");
    let note = "note: keys get no prefix: key-size leaves no room for brunt: and their numbers\n";
    assert!(output.said.starts_with(note));
    assert_eq!(server.says("get 00000007\r\n", "END\r\n").lines().next(), Some("VALUE 00000007 0 200"));
}
