//! Several servers, and servers of several addresses: keys lie where other clients look for them, and what happens to one
//! server is no matter of the others.

use crate::experiments::is_full;
use crate::measured::{ALL, Measured};
use crate::server::{Ended, Server, begin, brunt, file, in_namespace, plain, side_by_side, wait, words};
use brunt_plan::plan::Placement;
use brunt_plan::server::ServerAddress;
use brunt_workload::placement::Router;
use std::process::Command;
use std::time::Duration;

const KEYS: u64 = 9_000;

/// Three memcacheds and the flags that name them.
fn three() -> Option<(Vec<Server>, String)> {
    let servers: Vec<Server> = (0..3).map_while(|_| Server::memcached("")).collect();
    let flags = servers.iter().map(|server| format!("-s {server} ")).collect();
    (servers.len() == 3).then_some((servers, flags))
}

fn run(servers: &str, flags: &str) -> Measured {
    Measured::of(brunt(&format!("run -o json:- {servers} {flags}")))
}

/// The sum over the servers of what they counted.
fn counted(servers: &[Server], name: &str) -> u64 {
    servers.iter().map(|server| server.statistics()[name]).sum()
}

/// The rule is that of `Router`, which is held against another client's answers elsewhere: each server has exactly the
/// keys that it names, and each key is found.
fn check_by_key(placement: Placement) {
    let Some((servers, flags)) = three() else { return };
    let addresses: Vec<ServerAddress> =
        servers.iter().map(|server| server.address.parse().unwrap()).collect();
    let router = Router::new(placement, &addresses);
    let mut expected = [0; 3];
    (0..KEYS).for_each(|id| expected[router.route(format!("brunt:{id:024}").as_bytes()) as usize] += 1);

    let measured = run(
        &flags,
        &format!(
            "--placement {placement} --mix mget=3,get=1,set=1 --multiget 8 -n 9000 --warmup 0s -c 9 --depth 4 -T 2 --keys 9000"
        ),
    );
    assert_eq!(servers.iter().map(|server| server.statistics()["curr_items"]).collect::<Vec<_>>(), expected);
    // No share of a third is far from it: three servers of a hundred points each have 10 % more or less.
    assert!(expected.iter().all(|keys| (KEYS / 5..KEYS / 2).contains(keys)), "{placement}: {expected:?}");
    // One sample each, however many servers have a part of it.
    let asked =
        measured.count("ops.mget.counts.requests.sent") * 8 + measured.count("ops.get.counts.requests.sent");
    assert_eq!((measured.count("counts.keys.requested"), measured.count("counts.keys.hit")), (asked, asked));
    assert_eq!(counted(&servers, "get_hits"), asked);
    assert_eq!(counted(&servers, "cmd_set"), measured.over_phases("ops.set"));
    assert_eq!(measured.requests("completed"), 9_000);
    let parts = measured.count("ops.mget.counts.requests.wire_requests");
    // Eight keys on three servers: 3 − 3·(2/3)^8 + 3·(1/3)^8 of them have one, for even shares 2.88.
    let mean_parts = parts as f64 / measured.count("ops.mget.counts.requests.sent") as f64;
    assert!((2.7..2.95).contains(&mean_parts), "{placement}: {mean_parts}");
    for (server, told) in servers.iter().zip(measured.at("servers").as_array().unwrap()) {
        assert_eq!(told["server"], server.address);
        assert_eq!(told["failed"], 0);
    }
    measured.check_exit();
}

#[test]
fn every_key_is_found_where_it_belongs() {
    side_by_side([Placement::Modulo, Placement::Ketama, Placement::KetamaWeighted], check_by_key);
}

/// Where a key may be asked for anywhere, it is everywhere; in turn each server gets a third, at random nearly that.
#[test]
fn any_placement_stores_every_key_everywhere() {
    for (placement, tolerance) in [("round-robin", 2.0), ("random", 4.0 * (9_000.0_f64 * 2.0 / 9.0).sqrt())] {
        let Some((servers, flags)) = three() else { return };
        let measured = run(
            &flags,
            &format!(
                "--placement {placement} --mix get=8,mget=1 -n 9000 --warmup 0s -c 9 --depth 4 -T 2 --keys 1000"
            ),
        );
        assert!(servers.iter().all(|server| server.statistics()["curr_items"] == 1_000), "{placement}");
        assert_eq!(measured.over_phases("ops.set"), 3_000);
        assert_eq!((measured.count("counts.keys.miss"), measured.requests("wire_requests")), (0, 9_000));
        for told in measured.at("servers").as_array().unwrap() {
            let answered = told["answered"].as_f64().unwrap() - 1_000.0;
            assert!((answered - 3_000.0).abs() <= tolerance, "{placement}: {answered}");
        }
    }
}

/// One of three is killed for good: what belongs to it waits until the run is over, and the others do not wait for it.
#[test]
fn failed_servers_do_not_delay_others() {
    let Some((mut servers, flags)) = three() else { return };
    let load = "-r 3000 --arrival uniform -t 3s --warmup 0s -c 9 --depth 4 --keys 9000 --set drain=200ms --wait sleep";
    let run = begin(brunt(&format!("run -o json:- --allow={ALL} {load} {flags}")));
    while counted(&servers, "cmd_get") + counted(&servers, "cmd_set") < KEYS + 3_000 {
        wait(Duration::from_millis(5));
    }
    let gone = servers.remove(1);
    let gone_address = gone.address.clone();
    gone.kill();
    let measured = Measured::of(run);
    // A server whose processor a busy host takes away stalls, and that is told as well.
    let outages = measured.at("events.outages").as_array().unwrap();
    let outages: Vec<_> =
        outages.iter().filter(|outage| outage["kinds"] != serde_json::json!(["stalled"])).collect();
    assert_eq!(outages.len(), 1);
    assert_eq!((&outages[0]["server"], outages[0]["end_ns"].as_u64()), (&gone_address.as_str().into(), None));
    // A second of three has passed, or more where this host is busy: two thirds of what goes there, 37 % of all, are never sent.
    let count = |key| measured.requests(key);
    assert_eq!(count("scheduled"), 9_000);
    assert_eq!(count("completed") + count("lost") + count("unsent"), 9_000);
    let unsent_min = if is_full() { 1_700 } else { 1_000 };
    assert!((unsent_min..2_300).contains(&count("unsent")) && count("lost") <= 36);
    check_rows(&measured, &servers, &gone_address);
    // Nothing that was answered had waited for the one that is gone, which would have been two seconds.
    let limit_ms = if is_full() { 200.0 } else { 1_000.0 };
    assert!(measured.ms("latency.response_ns.p99") < limit_ms);
}

/// What was never sent was given up because of the server that is gone, which has its row, is named, and is no matter
/// of the others' rows.
fn check_rows(measured: &Measured, others: &[Server], gone: &str) {
    let rows = measured.at("servers").as_array().unwrap();
    let row = |address: &str| rows.iter().find(|row| row["server"] == address).unwrap();
    for server in others {
        let (row, statistics) = (row(&server.address), server.statistics());
        assert_eq!(row["answered"], statistics["cmd_get"] + statistics["cmd_set"]);
        assert_eq!((&row["failed"], &row["unsent"]), (&0.into(), &0.into()));
    }
    let [lost, unsent, abandoned] = ["lost", "unsent", "abandoned"].map(|key| measured.requests(key));
    assert_eq!((abandoned, &row(gone)["unsent"]), (unsent, &unsent.into()));
    let completed = measured.requests("completed");
    let ended = measured.count("latency.including_failures_ns.count");
    assert_eq!(ended, completed + lost + abandoned);
    assert_eq!(measured.check("BROKEN").0, "ok");
    // A fifth of all requests is missing from the percentiles, and the server that had none of them is named.
    let (status, message) = measured.check("DATA");
    assert_eq!(status, "caution");
    let missing = format!("{} failed or were never sent", lost + unsent);
    assert!(message.contains(&missing) && message.contains(&format!("{gone} gave no answer for ")));
    // What waits for it is its outage's, and no overload.
    assert_ne!(measured.check("LOAD").0, "invalid");
}

/// A closed loop over two servers of which one is killed: every slot that wants it has it for a time-out, and then goes on.
#[test]
fn closed_loops_continue_past_a_failed_server() {
    let mut servers: Vec<Server> = (0..2).map_while(|_| Server::memcached("")).collect();
    if servers.len() < 2 {
        return;
    }
    let flags: String = servers.iter().map(|server| format!(" -s {server}")).collect();
    let load = "-t 2s --warmup 0s --wait sleep -c 4 -T 1 --keys 1000 --mix get --timeout 100ms";
    let run = begin(brunt(&format!("run -o json:- --allow={ALL} {load}{flags}")));
    while counted(&servers, "cmd_get") < 1_000 {
        wait(Duration::from_millis(2));
    }
    let gone = servers.remove(1);
    let gone_address = gone.address.clone();
    gone.kill();
    let measured = Measured::of(run);
    check_rows(&measured, &servers, &gone_address);
    let outages = measured.at("events.outages").as_array().unwrap();
    let outage = outages.iter().find(|outage| outage["server"] == gone_address.as_str()).unwrap();
    let gone_ms = 2_000.0 - outage["start_ns"].as_f64().unwrap() / 1e6;
    // Each of four slots waits a tenth of a second at a time for that server. A host that is busy makes it longer.
    let abandoned = measured.requests("abandoned") as f64;
    let most = 4.0 * (gone_ms / 100.0 + 1.0);
    assert!((most / 3.0..=most).contains(&abandoned), "{abandoned} of {most}");
    assert!(measured.ms("latency.including_failures_ns.max") >= 100.0);
    // About as many requests are for the other one, which answers them at once.
    let intervals = measured.at("intervals").as_array().unwrap().iter();
    let late = intervals.filter(|interval| interval["start_ns"].as_u64() >= Some(1_000_000_000));
    let late: u64 = late.map(|interval| interval["completed"].as_u64().unwrap()).sum();
    assert!((5..400).contains(&late), "{late}");
}

/// A run against this name, and how many attempts to connect it took.
fn check_address(command: &mut Command, address: &str, failed: u64) {
    let line = format!("run --server {address} -o json:- -n 2000 --warmup 0s --keys 500 -c 4");
    let measured = Measured::of(command.args(words(&line)));
    let connections = ["established", "failed"].map(|key| measured.connections(key));
    assert_eq!(connections, [4, failed]);
    assert_eq!(measured.requests("completed"), 2_000);
    assert_eq!(measured.faults(None), 0);
    assert_eq!(measured.at("host.server"), address);
}

fn has_ipv6() -> bool {
    let has = std::net::TcpListener::bind("[::1]:0").is_ok();
    if !has {
        eprintln!("SKIPPED: this host has no IPv6");
    }
    has
}

#[test]
fn ipv6_literals_name_servers() {
    if !has_ipv6() {
        return;
    }
    let Some(server) = Server::memcached_at("::1", -1, "") else { return };
    assert!(server.address.starts_with("[::1]:"));
    check_address(&mut plain(""), &server.address, 0);
    assert_eq!(server.statistics()["curr_items"], 500);
}

/// A name has every address that it has: the server listens on one of two, and which one is of no importance.
#[test]
fn every_address_of_a_name_is_tried() {
    if !has_ipv6() {
        return;
    }
    let hosts = file("hosts", "127.0.0.1 cache.test\n::1 cache.test\n");
    // In a namespace of its own the file of names is ours.
    let script = format!("mount --bind {hosts} /etc/hosts && exec \"$@\"");
    let namespaced = || in_namespace("-m", &script);
    let mut attempts = Vec::new();
    for host in ["127.0.0.1", "::1"] {
        let Some(server) = Server::memcached_at(host, -1, "") else { return };
        let Some(mut getent) = namespaced() else { break };
        let port = server.address.rsplit_once(':').unwrap().1;
        let first = Ended::from(getent.args(["getent", "ahosts", "cache.test"]));
        let is_first = first.out.starts_with(&format!("{host} "));
        let failed = if is_first { 0 } else { 4 };
        attempts.push(failed);
        let mut command = namespaced().unwrap();
        check_address(command.arg(env!("CARGO_BIN_EXE_brunt")), &format!("cache.test:{port}"), failed);
    }
    // Once it was the first address, and once it was not.
    attempts.sort_unstable();
    assert!(attempts.is_empty() || attempts == [0, 4], "{attempts:?}");
}
