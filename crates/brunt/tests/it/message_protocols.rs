//! Protocols without data and commands in lines: echo, ping and Thrift calls against the reference server, inline commands against a
//! Redis, and commands of the user's against a memcached.

use crate::measured::Measured;
use crate::server::{Server, brunt};

/// A protocol and a load in it: every reply is right, and every fault of the server is seen.
#[test]
fn message_replies_and_faults_are_counted() {
    let table = [
        ("ping", ""),
        ("echo", ""),
        ("echo", "--command {random:20000} --command 'a {key} {value}' --value-size uniform:0,9000"),
        ("thrift", "--command ping --command 'add 1:i32={random} 2:i32=15' --mix raw=1+3"),
        ("thrift", "--command 'put 1:string={value}' --value-size 20000"),
    ];
    for (protocol, load) in table {
        let server = Server::reference(&format!("--protocol {protocol} --error-every 100"));
        let flags = format!("--protocol {protocol} -n 5000 --warmup 0s -c 4 --depth 8");
        let measured = Measured::run(&server, &format!("{flags} {load}"));
        let of = |key| measured.requests(key);
        assert_eq!((of("scheduled"), of("error")), (5000, 50), "{protocol}");
        assert_eq!(measured.count("counts.requests.replies.ok"), 4950, "{protocol}");
        assert!(measured.json["events"]["first_malformed"].is_null());
        // The server for the run speaks it, too.
        let own = Measured::of(brunt(&format!("run -o json:- {flags} {load}")));
        own.check_exit();
        assert_eq!(own.requests("completed"), 5000, "{protocol}");
    }
}

/// An echo with other bytes, or cut, is noticed; the connection goes on behind the former.
#[test]
fn a_wrong_echo_is_an_error() {
    let server = Server::reference("--protocol echo --wrong-every 10");
    let measured = Measured::run(&server, "--protocol echo -n 1000 --warmup 0s -c 2 --depth 4");
    assert_eq!(measured.requests("error"), 100);
    assert!(measured.text.contains("the CRC-32 is not that of the payload"));
    assert_eq!(measured.connections("begun"), 2, "{}", measured.json["client"]["connections"]);
}

/// A server that answers something else is no such server.
#[test]
fn other_servers_are_recognized_by_their_replies() {
    let Some(memcached) = Server::memcached("") else { return };
    let flags = "--protocol ping -n 100 --warmup 0s -c 1 --depth 1";
    let measured = Measured::run(&memcached, flags);
    assert_ne!(measured.exit, 0);
    assert_eq!(measured.count_or_0("counts.requests.completed"), 0);
    let Some(redis) = Server::redis("") else { return };
    let measured = Measured::run(&redis, flags);
    assert_eq!(measured.requests("completed"), 100);
}

/// Inline commands do what arrays do: each command was called as often as it was sent, and every value comes back as it was written.
#[test]
fn inline_commands_are_counted_alike() {
    let Some(server) = Server::redis("") else { return };
    let flags = "--protocol resp-inline -n 20000 --warmup 0s -c 8 -T 2 --depth 8 \
        --mix get=20,mget=4,set=8,add=4,replace=4,append=2,incr=4,decr=4,delete=3,touch=4,raw=3+1 \
        --command 'HSET h:{key} f {value}' --command \"ECHO '{random:5} {key}\\n'\" \
        --keys 2000 --value-size uniform:0,4000 --set client-name=brunt --set database=3";
    let measured = Measured::run(&server, flags);
    measured.check_exit();
    assert_eq!(measured.requests("completed"), 20_000);
    assert_eq!(
        (measured.requests("mismatch"), &measured.json["events"]["error_replies"]),
        (0, &serde_json::json!({}))
    );
    let calls = server.redis_counts("commandstats");
    let call = |name: &str| calls.get(&format!("cmdstat_{name}")).copied().unwrap_or(0);
    let sent = |ops: &[&str]| ops.iter().map(|op| measured.over_phases(&format!("ops.{op}"))).sum::<u64>();
    for (name, ops) in [
        ("get", &["get"][..]),
        ("mget", &["mget"]),
        ("set", &["set", "add", "replace"]),
        ("append", &["append"]),
        ("incr", &["incr"]),
        ("decr", &["decr"]),
        ("del", &["delete"]),
        ("touch", &["touch"]),
        ("hset", &["HSET"]),
        ("echo", &["ECHO"]),
    ] {
        assert_eq!(call(name), sent(ops), "{name}");
    }
    // The reference server reads them alike.
    let own = "run -o json:- --protocol resp-inline -n 5000 --warmup 0s --keys 500";
    let own = Measured::of(brunt(own));
    own.check_exit();
    assert_eq!((own.requests("completed"), own.count("counts.keys.miss")), (5000, 0));
}

/// Commands of the user's to a memcached: what it counts is what was sent, and each reply is told by its first word.
#[test]
fn memcached_accepts_custom_commands() {
    let Some(server) = Server::memcached("") else { return };
    let commands = [
        "version",
        "verbosity 0",
        "touch {key} 0",
        "cas {key} 0 0 {bytes} 7 {value}",
        "set own:{key} 0 0 {bytes} <{value}>",
        "set own:{key} 0 0 {bytes} noreply {random:30}",
        "gets {key}",
        "flush_all 1000000",
        "incr {key} x",
    ];
    let commands: String = commands.iter().map(|command| format!(" --command '{command}'")).collect();
    let flags = "-n 9000 --warmup 0s -c 4 --depth 4 --keys 1000 --value-size 1000";
    let mix = "--mix get=1,raw=1+1+1+1+1+1+1+1+1 --popularity sequential";
    let measured = Measured::run(&server, &format!("{flags} {mix}{commands}"));
    assert!(
        measured.json["events"]["first_malformed"].is_null()
            && measured.json["events"]["first_error"].is_string()
    );
    // The stores of the preload are called set, too.
    let rows = ["version", "verbosity", "touch", "cas", "set#2", "set#3", "gets", "flush_all", "incr"];
    let reply = |reply: &str| {
        let of_row = |row: &str| {
            assert!(measured.count(&format!("ops.{row}.counts.requests.sent")) > 500, "{row}");
            measured.count_or_0(&format!("ops.{row}.counts.requests.replies.{reply}"))
        };
        rows.into_iter().map(of_row).sum::<u64>()
    };
    let after = server.statistics();
    let unacknowledged = measured.over_phases("requests.unacknowledged");
    let preloaded = 1000;
    assert!(unacknowledged > 500 && reply("ok") > 1500);
    assert_eq!(after["cmd_touch"], reply("touched"));
    assert_eq!(after["cas_badval"], reply("exists"));
    // A cas is counted as a store, too.
    let stores = preloaded + reply("stored") + reply("exists") + unacknowledged;
    assert_eq!(after["cmd_set"], stores);
    assert_eq!(reply("client_error"), measured.requests("error"));
}
