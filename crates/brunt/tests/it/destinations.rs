//! Classes with servers, dialects and transports of their own, routes by kind of operation, and replicas: against real servers, whose
//! own counts are ours to the last request.

use crate::cluster::wait_until;
use crate::measured::Measured;
use crate::server::{Directory, Server, begin, brunt, lasting_port};
use crate::transports::INTERFACES;
use serde_json::Value;
use std::collections::BTreeMap;

/// Carries out a plan.
fn run(plan: &str) -> Measured {
    let directory = Directory::new();
    let file = directory.with("plan.toml", plan);
    let measured = Measured::of(brunt(&format!("run -o json:- --progress=none {file}")));
    let requests = |key: &str| measured.over_phases(&format!("requests.{key}"));
    assert_eq!(["error", "mismatch", "lost", "unsent"].map(requests), [0; 4]);
    measured
}

/// A real memcached that takes datagrams at the port of its streams.
fn memcached() -> Option<Server> {
    let port = i32::from(lasting_port());
    Server::memcached_at("127.0.0.1", port, &format!("-U {port}"))
}

/// What the program itself compared of its request counts and the servers' counters: each of these statistics, and all are equal.
fn check_agreement(measured: &Measured, expected: &str) {
    let rows = measured.at("events.server_stats.agreement").as_array().unwrap();
    for row in rows {
        let [least, most, counted] = ["least", "most", "counted"].map(|key| row[key].as_u64().unwrap());
        assert_eq!((least, most), (counted, counted), "{row}");
    }
    let names: Vec<&str> = rows.iter().map(|row| row["statistic"].as_str().unwrap()).collect();
    assert!(expected.split(' ').all(|name| names.contains(&name)), "{names:?}");
}

/// How many requests of a kind a class has sent in the window.
fn sent(measured: &Measured, class: &str, op: &str) -> u64 {
    let row: &Value = &measured.json["client"]["classes"][class]["ops"][op]["counts"]["requests"]["sent"];
    row.as_u64().unwrap()
}

/// The names of the servers and how many answers came from each.
fn answered(measured: &Measured) -> Vec<(String, u64)> {
    let rows = measured.at("servers").as_array().unwrap();
    rows.iter()
        .map(|row| (row["server"].as_str().unwrap().to_owned(), row["answered"].as_u64().unwrap()))
        .collect()
}

fn counted(statistics: &BTreeMap<String, u64>, name: &str) -> u64 {
    statistics.get(name).copied().unwrap_or(0)
}

/// A memcached class and a Redis class run side by side on workers of their own.
#[test]
fn memcached_and_redis_share_a_run() {
    // One thread is too few for two dialects.
    for (io, threads) in INTERFACES.into_iter().zip([1, 2]) {
        let (Some(cache), Some(redis)) = (Server::memcached(""), Server::redis("")) else { return };
        let plan = format!(
            "threads = {threads}\nwarmup = '0s'\nrequests = 8000\nkeys = 500\nconnections = 4\nio = '{io}'\nserver = '{cache}'\n\
             [[class]]\nname = 'cache'\nmix = 'get=3,set=1,mget=1'\n[[class]]\nname = 'store'\nserver = 'redis://{redis}'\n\
             mix = 'get=1,set=2,incr=1'\ndepth = 3\n"
        );
        let measured = run(&plan);
        measured.check_exit();
        assert_eq!(measured.requests("completed"), 8_000);
        assert_eq!(measured.at("client.workers").as_array().unwrap().len(), 2);
        let note = "note: --threads 2: classes of different protocols run on different workers";
        assert_eq!(measured.text.contains(note), threads == 1);
        check_agreement(&measured, "cmd_get cmd_set cmdstat_get cmdstat_set cmdstat_incr");
        let (memcached, calls) = (cache.statistics(), redis.redis_counts("commandstats"));
        let sent = |class, op| sent(&measured, class, op);
        assert_eq!(counted(&memcached, "cmd_get"), sent("cache", "get") + 10 * sent("cache", "mget"));
        assert_eq!(counted(&memcached, "cmd_set"), sent("cache", "set") + 500);
        assert_eq!(counted(&calls, "cmdstat_get"), sent("store", "get"));
        // Counters are stored beside the keys.
        assert_eq!(counted(&calls, "cmdstat_set"), sent("store", "set") + 1000);
        assert_eq!(counted(&calls, "cmdstat_incr"), sent("store", "incr"));
        let names: Vec<String> = answered(&measured).into_iter().map(|(name, _)| name).collect();
        assert_eq!(names, [&cache.address[..], &redis.address]);
    }
}

/// One server, by TCP from one class and by UDP from another, which share its keys.
#[test]
fn tcp_and_udp_classes_share_a_run() {
    for io in INTERFACES {
        let Some(server) = memcached() else { return };
        let plan = format!(
            "threads = 1\nwarmup = '0s'\nrequests = 8000\nkeys = 700\nconnections = 4\nio = '{io}'\nserver = '{server}'\n[[class]]\n\
             name = 'streams'\nmix = 'get=3,set=1'\n[[class]]\nname = 'datagrams'\ntransport = 'udp'\nmix = 'mget=3,touch=1'\n"
        );
        let measured = run(&plan);
        let text = &measured.text;
        assert_eq!(measured.requests("scheduled"), 8_000);
        check_datagrams(&measured, &server, |class, op| sent(&measured, class, op), 700);
        let [by_tcp, by_udp] = &answered(&measured)[..] else { panic!("{text}") };
        assert_eq!(by_tcp.0, format!("{server} (tcp)"));
        assert_eq!(by_tcp.1, 700 + sent(&measured, "streams", "get") + sent(&measured, "streams", "set"));
        assert_eq!(by_udp.0, format!("{server} (udp)"));
    }
}

/// What was asked over UDP and what was served differ by what was lost on the way, and by nothing else.
fn check_datagrams(measured: &Measured, server: &Server, sent: impl Fn(&str, &str) -> u64, preloaded: u64) {
    let (statistics, text) = (server.statistics(), &measured.text);
    let timeouts = measured.over_phases("requests.timeout");
    let gets = sent("streams", "get") + 10 * sent("datagrams", "mget");
    let served = counted(&statistics, "cmd_get");
    assert!((gets - 10 * timeouts..=gets).contains(&served), "{gets} {served}\n{text}");
    assert_eq!(counted(&statistics, "get_misses"), 0, "{text}");
    assert_eq!(counted(&statistics, "cmd_set"), preloaded + sent("streams", "set"), "{text}");
    let (touches, served) = (sent("datagrams", "touch"), counted(&statistics, "cmd_touch"));
    assert!((touches - timeouts..=touches).contains(&served), "{touches} {served}\n{text}");
    if timeouts == 0 {
        check_agreement(measured, "cmd_get cmd_set cmd_touch");
        measured.check_exit();
    }
}

/// memaslap's facebook test: sets over TCP and multi-gets over UDP, by one session.
#[test]
fn sets_use_tcp_and_gets_use_udp() {
    // In text a value may take several datagrams.
    for (io, dialect, value) in [
        (INTERFACES[0], "memcached-text", 200),
        (INTERFACES[0], "memcached-text", 3_000),
        (INTERFACES[1], "memcached-meta", 200),
    ] {
        let Some(server) = memcached() else { return };
        let plan = format!(
            "threads = 1\nwarmup = '0s'\nrequests = 4000\nkeys = 900\nconnections = 4\nio = '{io}'\nserver = '{server}'\n\
             protocol = '{dialect}'\nmix = 'mget=9,set=1'\nmultiget = 8\nvalue-size = {value}\nverify = 1\n[[class]]\n\
             name = 'facebook'\n[[class.route]]\n\
             ops = ['mget']\ntransport = 'udp'\n"
        );
        let measured = run(&plan);
        let timeouts = measured.over_phases("requests.timeout");
        let (gets, sets) = (sent(&measured, "facebook", "mget"), sent(&measured, "facebook", "set"));
        assert_eq!(gets + sets, 4_000);
        let statistics = server.statistics();
        assert_eq!(counted(&statistics, "cmd_set"), 900 + sets);
        let served = counted(&statistics, "cmd_get");
        assert!((8 * (gets - timeouts)..=8 * gets).contains(&served), "{gets} {served}");
        assert_eq!(counted(&statistics, "get_misses"), 0);
        let name = |transport: &str| format!("{server} ({transport})");
        assert_eq!(answered(&measured), [(name("tcp"), 900 + sets), (name("udp"), gets - timeouts)]);
        if timeouts == 0 {
            check_agreement(&measured, "cmd_get cmd_set");
            measured.check_exit();
        }
    }
}

/// Sets go to two of three servers, gets to one of those: nothing is missed, each server has what it should.
#[test]
fn replicas_receive_all_sets() {
    for (rate, threads) in [("", 1), ("rate = '4k'\nwait = 'sleep'\n", 2)] {
        let servers: Vec<Server> = (0..3).map_while(|_| Server::memcached("")).collect();
        let [one, two, three] = &servers[..] else { return };
        let plan = format!(
            "threads = {threads}\nwarmup = '0s'\nrequests = 6000\nkeys = 900\nconnections = 12\nreplicas = 2\n{rate}\
             server = ['{one}', '{two}', '{three}']\nmix = 'get=4,mget=2,set=4'\n[[class]]\nname = 'replicated'\n"
        );
        let measured = run(&plan);
        measured.check_exit();
        assert_eq!(measured.requests("completed"), 6_000);
        // Some are asked before the load.
        let early = |op: &str| measured.count_or_0(&format!("counts.phases.warmup.ops.{op}"));
        let sent = |op: &str| sent(&measured, "replicated", op) + early(op);
        let all = |name: &str| servers.iter().map(|server| counted(&server.statistics(), name)).sum::<u64>();
        assert_eq!(all("cmd_set"), 2 * (900 + sent("set")));
        assert_eq!(all("cmd_get"), sent("get") + 10 * sent("mget"));
        assert_eq!(all("get_misses"), 0);
        assert_eq!(all("curr_items"), 2 * 900);
        // Every server is asked for some.
        for server in &servers {
            assert!(counted(&server.statistics(), "get_hits") > 0);
        }
        check_agreement(&measured, "cmd_get cmd_set");
        assert_eq!(measured.count("ops.set.counts.requests.wire_requests"), 2 * sent("set"));
    }
}

/// One of two replicas is killed and comes back, empty: no set fails, and gets go on.
#[test]
fn restarted_replicas_rejoin() {
    let port = i32::from(lasting_port());
    let killed = || Server::memcached_at("127.0.0.1", port, "");
    let (Some(stays), Some(goes)) = (Server::memcached(""), killed()) else { return };
    let places = format!("-s {stays} -s {goes} --replicas 2 --set reconnect=while-one-stands");
    let load = "-T 1 -c 8 --warmup 0s -n 20000 -r 5000 --mix get=3,set=1 --keys 500";
    let run = begin(brunt(&format!("run -o json:- --progress=none {places} {load}")));
    let await_sets = |sets: u64| wait_until("sets are made", || stays.statistics()["cmd_set"] >= 500 + sets);
    await_sets(700);
    goes.kill();
    await_sets(1_500);
    let back = killed().unwrap();
    let measured = Measured::of(run);
    let of_sets = |key: &str| measured.count(&format!("ops.set.counts.requests.{key}"));
    assert_eq!((measured.requests("scheduled"), measured.requests("unsent")), (20_000, 0));
    assert_eq!(of_sets("completed"), of_sets("scheduled"));
    let missed = measured.count("events.replicas_missed");
    assert!(missed >= 500);
    assert_eq!(stays.statistics()["cmd_set"], 500 + of_sets("completed"));
    assert!(back.statistics()["cmd_set"] > 0 && back.statistics()["cmd_get"] > 0);
    // At most what was on the wire.
    assert!(measured.requests("lost") <= 50);
    assert_eq!(measured.connections("open"), 8);
}

/// Workers take servers in turn; the server that none has is told, and asked for nothing.
#[test]
fn placement_by_thread_gives_each_worker_a_server() {
    let servers: Vec<Server> = (0..3).map(|_| Server::reference("")).collect();
    let places: String = servers.iter().map(|server| format!(" -s {server}")).collect();
    let flags = "--placement by-thread -T 2 -c 4 -n 4000 --warmup 0s --keys 300";
    let measured = Measured::of(brunt(&format!("run -o json:- --progress=none{places} {flags}")));
    let idle = &servers[2].address;
    let note = format!("note: --placement by-thread: 1 of 3 servers get no load from 2 threads: {idle}");
    assert!(measured.text.contains(&note));
    assert_eq!((measured.requests("completed"), measured.requests("miss")), (4_000, 0));
    let items: Vec<u64> = servers.iter().map(|server| counted(&server.statistics(), "curr_items")).collect();
    assert_eq!(items, [300, 300, 0]);
}

/// Deletes, touches and counters of replicas are as many on each of them.
#[test]
fn changes_of_replicas_agree() {
    let servers: Vec<Server> = (0..2).map_while(|_| Server::memcached("")).collect();
    let [one, two] = &servers[..] else { return };
    let plan = format!(
        "threads = 1\nwarmup = '0s'\nrequests = 8000\nkeys = 300\nconnections = 8\nreplicas = 2\nserver = ['{one}', '{two}']\n\
         mix = 'get=2,set=2,incr=1,touch=1,add=1'\nttl = '1h'\n"
    );
    let measured = run(&plan);
    measured.check_exit();
    check_agreement(&measured, "cmd_set incr_hits touch_hits");
    let counts = servers.iter().map(|server| server.statistics());
    let counts: Vec<Vec<u64>> = counts
        .map(|held| {
            ["cmd_set", "incr_hits", "touch_hits", "curr_items"].map(|name| counted(&held, name)).to_vec()
        })
        .collect();
    assert_eq!(counts[0], counts[1]);
}
