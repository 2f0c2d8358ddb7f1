//! What servers say of themselves beside what we did: they agree to the last request, and where they do not, the report
//! says by how much and why.

use crate::measured::Measured;
use crate::server::{Server, brunt, lasting_port};
use serde_json::Value;
use std::io::{BufRead, BufReader, Write};
use std::net::TcpStream;
use std::process::Child;

/// Every operation, over all phases.
const MIX: &str = "--mix get=20,gets=8,mget=4,set=8,add=4,replace=4,append=2,prepend=2,cas=6,incr=4,decr=4,delete=3,touch=4 --keys 2000 --popularity zipf:0.99 --warmup 100ms -t 1100ms -c 8 --depth 4";

/// Every count of the servers is ours, in JSON and in the text; they compare so many. The servers' window is ours to within the instants
/// at which they were asked, and so nearly is the share of hits.
pub(crate) fn agreeing(server: &str, flags: &str, counts: usize, hits_within: f64) -> Measured {
    let measured = Measured::run(server, flags);
    measured.check_server_counts();
    let agreement = measured.at("events.server_stats.agreement").as_array().unwrap();
    assert_eq!(agreement.len(), counts, "{agreement:?}");
    for row in agreement {
        assert_eq!([&row["least"], &row["most"]], [&row["counted"]; 2], "{row}");
    }
    assert!(measured.text.contains("by its own count"));
    let window = measured.at("events.server_stats.window");
    let ours = measured.count("counts.keys.hit") as f64 / measured.count("counts.keys.requested") as f64;
    assert!((window["hit_ratio"].as_f64().unwrap() - ours).abs() < hits_within, "{window}, ours {ours}");
    assert!(window["cpu_ns_per_request"].as_u64().unwrap() > 0 && window["items"].as_u64().unwrap() > 0);
    measured
}

/// What the servers counted of this.
pub(crate) fn counted(measured: &Measured, statistic: &str) -> u64 {
    let agreement = measured.at("events.server_stats.agreement").as_array().unwrap();
    agreement.iter().find(|row| row["statistic"] == statistic).unwrap()["counted"].as_u64().unwrap()
}

/// The same of every operation of memcached, and the server is told of in the same seconds.
fn check_agreement(server: &str, flags: &str) -> Measured {
    let measured = agreeing(server, &format!("{MIX} {flags}"), 16, 0.1);
    measured.check_exit();
    assert_eq!(counted(&measured, "cmd_get"), measured.over_phases("keys.requested"));
    assert_eq!(counted(&measured, "get_hits"), measured.over_phases("keys.hit"));
    assert_eq!(counted(&measured, "delete_hits"), measured.over_phases("requests.replies.deleted"));
    let second = &measured.at("intervals").as_array().unwrap()[0];
    let (counted, done) =
        (second["server"]["requests"].as_f64().unwrap(), second["completed"].as_f64().unwrap());
    // Of every 73 operations 4 are of ten keys: 1.49 are counted for each.
    assert!((counted / done / 1.493 - 1.0).abs() < 0.3, "{counted} of {done}");
    measured
}

#[test]
fn memcached_counts_match() {
    let Some(server) = Server::memcached("") else { return };
    let measured = check_agreement(&server, "-T 2 --think 5ms");
    let record = &measured.at("events.server_stats.servers")[0];
    assert_eq!(record["last"]["statistics"]["pid"], server.pid().as_raw_nonzero().get());
    assert_eq!(record["first"]["statistics"]["cmd_set"], 0);
    assert_eq!(record["prepared"]["statistics"]["curr_items"], 4_000, "keys and counters");
    assert!(record["version"].as_str().unwrap().starts_with("1."), "{record}");
    assert_eq!(measured.at("status.facts").as_array().map(Vec::len), Some(0));
}

#[test]
fn reference_server_counts_match() {
    check_agreement(&Server::reference("").address, "-r 4000 --wait sleep");
}

#[test]
fn counts_of_two_servers_add_up() {
    let (Some(one), Some(other)) = (Server::memcached(""), Server::memcached_at("::1", -1, "")) else {
        return;
    };
    let measured = check_agreement(&one, &format!("--server {other} --think 5ms"));
    let servers = measured.at("events.server_stats.servers").as_array().unwrap();
    assert_eq!(servers.len(), 2);
    assert!(servers.iter().all(|server| server["window"]["requests"].as_u64().unwrap() > 0));
}

/// A run in the background, and the same run when it is over.
fn begin(server: &str, flags: &str) -> Child {
    crate::server::begin(brunt(&format!("run --server {server} -o json:- {flags}")))
}

/// A hundred gets of another client are a hundred too many.
#[test]
fn other_clients_are_detected() {
    let Some(server) = Server::memcached("") else { return };
    let run = begin(&server, "-r 500 -t 1500ms --warmup 0s --keys 1000 --wait sleep");
    server.await_requests(1_100);
    let mut stream = TcpStream::connect(&server.address).unwrap();
    stream.write_all(&b"get no:such:key\r\n".repeat(100)).unwrap();
    let ends =
        BufReader::new(&stream).lines().take(100).filter(|line| line.as_ref().unwrap() == "END").count();
    assert_eq!(ends, 100);
    let measured = Measured::of(run);
    let asked = measured.over_phases("keys.requested");
    let expected = format!(
        "others use the server, too: cmd_get is {} and ours {asked}, get_misses is 100 and ours 0",
        asked + 100
    );
    assert_eq!(measured.fact("others use the server"), Some(expected.as_str()));
    assert_eq!(measured.check("BROKEN").0, "ok");
}

/// What is counted is counted by both names.
#[test]
fn servers_named_twice_are_detected() {
    let Some(server) = Server::memcached("") else { return };
    let again = server.address.replace("127.0.0.1", "localhost");
    assert_ne!(again, server.address);
    let measured = Measured::run(&server, &format!("-s {again} -n 2000 --warmup 0s --keys 100"));
    assert!(measured.fact(&format!("{server} and {again} are the same server: ")).is_some());
    assert_eq!(measured.check("BROKEN").0, "ok");
}

/// Another process with other counters: that they differ says nothing of us.
#[test]
fn restarts_are_reported() {
    let port = i32::from(lasting_port());
    let Some(server) = Server::memcached_at("127.0.0.1", port, "") else { return };
    let address = server.address.clone();
    let run = begin(&address, "-r 500 -t 2500ms --warmup 0s --keys 1000 --wait sleep");
    server.await_requests(1_200);
    server.kill();
    let _server = Server::memcached_at("127.0.0.1", port, "").unwrap();
    let measured = Measured::of(run);
    let expected = format!("{address} was restarted during the run: its counts cannot be compared with ours");
    assert_eq!(measured.fact("restarted"), Some(expected.as_str()));
    assert_eq!(measured.check("BROKEN").0, "ok");
    assert_eq!(measured.at("events.server_stats.agreement").as_array().unwrap().len(), 0);
}

/// Flags of a data set of twenty megabytes.
const TOO_MUCH: &str = "--keys 2000 --value-size 10000 -t 500ms --warmup 0s";

/// It does not fit into eight: each item that is gone was evicted, and no other. The server counts both by these names.
pub(crate) fn check_evictions(server: &str, protocol: &str, items: &str, evictions: &str) -> Measured {
    let measured = Measured::run(server, &format!("--protocol {protocol} {TOO_MUCH}"));
    let prepared = &measured.at("events.server_stats.servers")[0]["prepared"]["statistics"];
    let number = |name: &str| prepared[name].as_u64().unwrap();
    let gone = 2_000 - number(items);
    assert_eq!(number(evictions), gone, "{prepared}");
    let expected = format!("{gone} of 2000 keys that were stored were gone when the preload was over");
    assert!(gone > 0 && measured.fact(&expected).is_some());
    measured
}

#[test]
fn evictions_are_detected() {
    let Some(server) = Server::memcached("-m 8") else { return };
    check_evictions(&server, "memcached-text", "curr_items", "evictions");
    // Without a preload there is none to be incomplete: what is left is that it evicts.
    let measured = Measured::run(&server, &format!("{TOO_MUCH} --no-preload --mix get=1,set=1"));
    assert!(measured.fact("items were evicted in the window").is_some());
    assert_eq!(measured.fact("preload"), None);
    assert!(measured.text.contains(" evictions"));
}

/// The latencies of a cache that is filling are as steady as can be.
#[test]
fn filling_caches_are_detected() {
    let Some(server) = Server::memcached("") else { return };
    let flags = "--no-preload --on-miss set --mix get --keys 1M -r 2k -t 2s --wait sleep";
    let measured = Measured::run(&server, flags);
    assert!(measured.fact("the cache was filling: curr_items rose from ").is_some());
}

/// Not one connection more than the workers'.
#[test]
fn stats_polling_can_be_disabled() {
    let Some(server) = Server::memcached("") else { return };
    // Every connection counts, so nothing is asked before the run.
    let flags = "--protocol memcached-text -c 3 -r 1k -t 1100ms --warmup 0s";
    let mut taken = Vec::new();
    for more in ["", "--set server-stats=false"] {
        let before = server.statistics()["total_connections"];
        let measured = Measured::run(&server, &format!("{flags} --keys 1000 --wait sleep {more}"));
        taken.push(server.statistics()["total_connections"] - before - 1);
        let is_asked = more.is_empty();
        assert_eq!(measured.text.contains("by its own count"), is_asked);
        assert_eq!(*measured.at("events.server_stats") == Value::Null, !is_asked);
        assert_eq!(measured.at("plan")["server-stats"] == Value::Bool(false), !is_asked);
    }
    assert_eq!(taken, [4, 3]);
}
