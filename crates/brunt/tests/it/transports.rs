//! The same plan over every transport, against real servers: what is counted does not depend on what carries it.

use crate::measured::Measured;
use crate::server::{Directory, Server, ended};
use std::os::unix::net::UnixListener;

/// The interfaces to the kernel; `auto` is io_uring where that works.
pub(crate) const INTERFACES: [&str; 2] = ["epoll", "auto"];

/// A plan whose counts are a function of its seeds: whatever is read was stored, and nothing that is stored differs.
const PLAN: &str = "-n 20000 --warmup 0s --keys 2000 -c 8 --depth 4 --mix get=6,mget=1,set=2,touch=1 --value-size uniform:1,6000 --popularity zipf:0.9 --seed=7 --progress=none";

/// Everything that was counted.
fn ledger(measured: &Measured) -> Vec<(&'static str, u64)> {
    measured.check_exit();
    let phases = ["ops.get", "ops.mget", "ops.set", "ops.touch", "keys.requested", "keys.hit", "keys.miss"];
    let counts = [
        "counts.requests.completed",
        "counts.requests.wire_requests",
        "client.connections.established",
        "counts.phases.measure.bytes.tx",
        "counts.phases.measure.bytes.rx",
    ];
    let ledger = phases.map(|path| (path, measured.over_phases(path))).into_iter();
    ledger.chain(counts.map(|path| (path, measured.count(path)))).collect()
}

fn run(address: &str, flags: &str) -> Measured {
    Measured::run(address, &format!("{PLAN} {flags}"))
}

/// The `server` line and the `transport` say what carried it.
fn check_names(measured: &Measured) {
    assert!(measured.at("host.server").as_str().unwrap().starts_with("unix:/"));
    assert_eq!(measured.at("plan.transport"), "unix");
    // How the line is broken depends on the path.
    let words: Vec<&str> = measured.text.split_whitespace().collect();
    assert!(words.windows(2).any(|pair| pair[0] == "over" && pair[1].starts_with("unix")));
}

/// A memcached that is reached in another way than by TCP counts the same of the same plan: it and the address come of this.
pub(crate) fn check_memcached(
    flags: &str,
    begin: impl Fn() -> Option<(Server, String)>,
    check: impl Fn(&Measured),
) {
    let Some(over_tcp) = Server::memcached("") else { return };
    let expected = ledger(&run(&over_tcp.address, ""));
    for io in INTERFACES {
        let Some((server, address)) = begin() else { return };
        let measured = run(&address, &format!("{flags} --io {io}"));
        assert_eq!(ledger(&measured), expected, "{io}");
        assert_eq!(measured.over_phases("ops.set"), server.statistics()["cmd_set"]);
        // The server was asked for its statistics by the same way.
        measured.check_server_counts();
        check(&measured);
    }
}

/// The same of a Redis that listens at this address, too.
pub(crate) fn check_redis(server: &Server, address: &str, flags: &str, check: impl Fn(&Measured)) {
    let over_tcp = run(server, "--protocol resp3");
    for io in INTERFACES {
        server.redis_says("FLUSHALL\r\nCONFIG RESETSTAT");
        let measured = run(address, &format!("--protocol resp3 {flags} --io {io}"));
        assert_eq!(ledger(&measured), ledger(&over_tcp), "{io}");
        assert_eq!(server.redis_counts("commandstats")["cmdstat_get"], measured.over_phases("ops.get"));
        check(&measured);
    }
}

#[test]
fn counts_match_over_unix_sockets() {
    let begin = || {
        let server = Server::memcached_at_path("")?;
        let address = server.address.clone();
        Some((server, address))
    };
    check_memcached("", begin, check_names);
    let directory = Directory::new();
    let path = directory.path("socket");
    let Some(server) = Server::redis(&format!("--unixsocket {path}")) else { return };
    check_redis(&server, &format!("unix:{path}"), "", check_names);
}

/// Connections that end by plan and are made anew, each at once.
#[test]
fn unix_socket_connections_open_and_close() {
    for io in INTERFACES {
        let Some(server) = Server::memcached_at_path("") else { return };
        let flags = format!("-n 2000 -c 3 --keys 50 --warmup 0s --calls-per-connection 20 --io {io}");
        let measured = Measured::run(&server, &flags);
        assert_eq!(measured.requests("completed"), 2000);
        assert_eq!(measured.connections("failed"), 0);
        assert!(measured.connections("retired") >= 97);
    }
}

/// Every way a path can lead nowhere: a listener that accepts no connection, too, whose queue is full.
#[test]
fn missing_socket_paths_are_named() {
    let directory = Directory::new();
    let at = |name: &str| directory.join(name);
    std::fs::write(at("file"), "").unwrap();
    drop(UnixListener::bind(at("deserted")).unwrap());
    let crowded = UnixListener::bind(at("crowded")).unwrap();
    rustix::net::listen(&crowded, 1).unwrap();
    let table = [
        ("missing", "No such file or directory"),
        ("file", "the file is no socket"),
        ("deserted", "Connection refused"),
        ("crowded", "Resource temporarily unavailable"),
    ];
    for io in INTERFACES {
        for (name, reason) in table {
            let address = format!("unix:{}", at(name).display());
            let flags = format!("--timeout 300ms --set server-stats=false --progress=none --io {io}");
            let mut output = ended(&format!("run -s {address} --protocol memcached-text {flags}"));
            output.said = output.said.lines().last().unwrap().to_owned();
            output.is(5, &["cannot connect to unix:", &address, reason]);
        }
    }
    ended(&format!("run -s unix:/{}", "x".repeat(107))).is(2, &["--server", "1 to 107 bytes"]);
    drop(crowded);
}
