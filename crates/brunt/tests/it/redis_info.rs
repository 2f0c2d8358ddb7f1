//! What a Redis says of itself beside what we did: it agrees to the last call and key, over whatever carries the load, and
//! where it is not told, the report says so in the server's words.

use crate::measured::Measured;
use crate::server::{Directory, Server};
use crate::statistics::{agreeing, check_evictions, counted};
use crate::tls::{Certificates, redis_over_tls};
use serde_json::Value;

/// Every operation that Redis has, over all phases.
const MIX: &str = "--mix get=20,mget=4,set=8,add=4,replace=4,append=2,incr=4,decr=4,delete=3,touch=4 --keys 1000 --popularity zipf:0.99 --warmup 100ms -t 600ms -c 4 --depth 4";

/// Every count of the server is ours, and it is as steady as can be.
fn check_agreement(server: &str, flags: &str) -> Measured {
    let measured = agreeing(server, &format!("{MIX} {flags}"), 11, 0.15);
    assert_eq!(counted(&measured, "cmdstat_get"), measured.over_phases("ops.get"));
    let stores = ["set", "add", "replace"].map(|op| measured.over_phases(&format!("ops.{op}")));
    assert_eq!(counted(&measured, "cmdstat_set"), stores.iter().sum::<u64>());
    assert!(counted(&measured, "keyspace_hits") >= measured.over_phases("keys.hit"), "touches read, too");
    assert!(measured.text.contains(" CPU/command"));
    for of_cache in ["gone", "evicted", "filling"] {
        assert_eq!(measured.fact(of_cache), None);
    }
    measured
}

#[test]
fn redis_counts_match() {
    for flags in [
        "--protocol resp2 -T 2 --think 2ms",
        "--protocol resp3 --ttl 1h --set database=3 --io epoll --think 2ms",
    ] {
        let Some(server) = Server::redis("") else { return };
        let measured = check_agreement(&server, flags);
        let record = &measured.at("events.server_stats.servers")[0];
        let last = &record["last"]["statistics"];
        assert_eq!(last["process_id"], server.pid().as_raw_nonzero().get());
        assert_eq!(record["first"]["statistics"]["cmdstat_set"], 0);
        assert_eq!(record["prepared"]["statistics"]["keys"], 2_000, "keys and counters");
        assert!(record["version"].as_str().unwrap().starts_with(|first: char| first.is_ascii_digit()));
        // And as the server says to another client.
        let stats = server.redis_counts("stats");
        for name in ["keyspace_hits", "keyspace_misses", "evicted_keys", "expired_keys"] {
            assert_eq!(last[name], stats[name], "{name}");
        }
        // A kernel that accounts by ticks may put all of so short a run on one side.
        let main_thread_cpu_ns: u64 = ["used_cpu_user_main_thread_ns", "used_cpu_sys_main_thread_ns"]
            .iter()
            .map(|name| last[name].as_u64().unwrap())
            .sum();
        assert!(main_thread_cpu_ns > 0, "{last}");
        assert_eq!(window_of(&measured)["bytes_max"], Value::Null, "without maxmemory there is no bound");
    }
}

fn window_of(measured: &Measured) -> &Value {
    measured.at("events.server_stats.window")
}

#[test]
fn reference_server_counts_match() {
    let server = Server::reference("");
    check_agreement(&server, "--protocol resp2 -r 4000 --wait sleep");
    check_agreement(&server, "--protocol resp3 -r 4000 --ttl 1h --wait sleep");
}

/// The connection that asks is made as the load's are: by password, through TLS, by a path.
#[test]
fn info_is_polled_over_the_loads_transport() {
    let user = "--user cache on >pw ~* +@all";
    let directory = Directory::new();
    let path = directory.join("redis").display().to_string();
    let Some(server) = Server::redis(&format!("{user} --unixsocket {path}")) else { return };
    server.redis_says("PING");
    let login = "--set user=cache --password pw --think 2ms";
    check_agreement(&server, &format!("--protocol resp2 {login}"));
    server.redis_says("FLUSHALL");
    check_agreement(&format!("unix:{path}"), &format!("--protocol resp3 {login}"));
    let Some(papers) = Certificates::issue() else { return };
    let Some((_server, address)) = redis_over_tls(&papers, &format!("--tls-auth-clients no {user}")) else {
        return;
    };
    let ca = papers.path("ca.pem");
    check_agreement(&address, &format!("--protocol resp3 --set transport=tls --tls-ca {ca} {login}"));
}

#[test]
fn missing_info_permission_is_reported() {
    let Some(server) = Server::redis("--user cache on >pw ~* +@all -info") else {
        return;
    };
    let measured = Measured::run(&server, &format!("{MIX} --protocol resp2 --set user=cache --password pw"));
    // Nothing that its counters would show is held against the run.
    assert_eq!(measured.check("BROKEN").0, "ok");
    assert!(measured.text.contains("no statistics: it answers \"NOPERM"));
}

/// What another client does in the midst of it is too much by as much.
#[test]
fn other_clients_are_detected() {
    let Some(server) = Server::redis("") else { return };
    let flags = "--protocol resp2 -r 500 -t 1500ms --warmup 0s --keys 1000 --mix get --wait sleep";
    std::thread::scope(|scope| {
        let run = scope.spawn(|| Measured::run(&server, flags));
        while server.redis_counts("commandstats").get("cmdstat_get").copied().unwrap_or(0) < 100 {
            std::thread::park_timeout(std::time::Duration::from_millis(5));
        }
        server.redis_says(&"APPEND of:another:client x\r\n".repeat(100));
        let measured = run.join().unwrap();
        let expected = "others use the server, too: cmdstat_append is 100 and ours 0";
        assert_eq!(measured.fact("others use"), Some(expected));
        assert_eq!(measured.check("BROKEN").0, "ok");
    });
}

#[test]
fn evictions_are_detected() {
    let Some(server) = Server::redis("--maxmemory 8mb --maxmemory-policy allkeys-lru") else { return };
    let measured = check_evictions(&server, "resp3", "keys", "evicted_keys");
    let prepared = &measured.at("events.server_stats.servers")[0]["prepared"]["statistics"];
    assert_eq!(prepared["maxmemory"], 8 << 20);
    assert_eq!(window_of(&measured)["bytes_max"], 8 << 20);
}
