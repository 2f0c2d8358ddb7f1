//! The same plan over every transport, against real servers: what is counted does not depend on what carries it.

use crate::measured::Measured;
use crate::server::{Directory, Server, beside_others, brunt};
use std::os::unix::net::UnixListener;

/// The interfaces to the kernel; `auto` is io_uring where that works.
pub(crate) const INTERFACES: [&str; 2] = ["epoll", "auto"];

/// A plan whose counts are a function of its seeds: whatever is read was stored, and nothing that is stored differs.
const PLAN: [&str; 18] = [
    "-n",
    "20000",
    "--warmup",
    "0s",
    "--keys",
    "2000",
    "-c",
    "8",
    "--depth",
    "4",
    "--mix",
    "get=6,mget=1,set=2,touch=1",
    "--value-size",
    "uniform:1,6000",
    "--popularity",
    "zipf:0.9",
    "--seed=7",
    "--progress=none",
];

/// Everything that was counted.
pub(crate) fn ledger(measured: &Measured) -> Vec<(&'static str, u64)> {
    measured.check_exit();
    measured.check_request_counts();
    measured.check_connections();
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

pub(crate) fn run(address: &str, flags: &[&str]) -> Measured {
    Measured::run(address, &[&PLAN[..], flags].concat())
}

/// The `server` line and the `transport` say what carried it.
fn check_names(measured: &Measured, address: &str, transport: &str) {
    assert_eq!(measured.at("host.server"), address, "{}", measured.text);
    assert_eq!(measured.at("plan.transport"), transport, "{}", measured.text);
    assert!(measured.text.contains(&format!(" over {transport}")), "{}", measured.text);
}

#[test]
fn memcached_counts_match_over_unix_sockets() {
    let _beside = beside_others();
    let Some(over_tcp) = Server::memcached(&[]) else { return };
    let expected = ledger(&run(&over_tcp.address, &[]));
    for io in INTERFACES {
        let Some(server) = Server::memcached_at_path(&[]) else { return };
        let measured = run(&server.address, &["--io", io]);
        assert_eq!(ledger(&measured), expected, "{io}\n{}", measured.text);
        check_names(&measured, &server.address, "unix");
        assert_eq!(measured.over_phases("ops.set"), server.statistics()["cmd_set"], "{}", measured.text);
        // The server was asked for its statistics by the same way.
        measured.check_server_counts();
    }
}

#[test]
fn redis_counts_match_over_unix_sockets() {
    let _beside = beside_others();
    for io in INTERFACES {
        let directory = Directory::new();
        let path = directory.join("socket").display().to_string();
        let Some(server) = Server::redis(&["--unixsocket", &path]) else { return };
        let flags = ["--protocol", "resp3", "--io", io];
        let over_tcp = run(&server.address, &flags);
        server.redis_says("FLUSHALL");
        let address = format!("unix:{path}");
        let measured = run(&address, &flags);
        assert_eq!(ledger(&measured), ledger(&over_tcp), "{io}\n{}", measured.text);
        check_names(&measured, &address, "unix");
        drop(server);
    }
}

/// Connections that end by plan and are made anew, each at once.
#[test]
fn unix_socket_connections_open_and_close() {
    let _beside = beside_others();
    for io in INTERFACES {
        let Some(server) = Server::memcached_at_path(&[]) else { return };
        let flags = [
            "-n",
            "2000",
            "-c",
            "3",
            "--keys",
            "50",
            "--warmup",
            "0s",
            "--calls-per-connection",
            "20",
            "--io",
            io,
        ];
        let measured = Measured::run(&server.address, &flags);
        measured.check_request_counts();
        measured.check_connections();
        assert_eq!(measured.count("counts.requests.completed"), 2000, "{}", measured.text);
        assert_eq!(measured.count("client.connections.failed"), 0, "{}", measured.text);
        assert!(measured.count("client.connections.retired") >= 97, "{}", measured.text);
    }
}

/// Every way a path can lead nowhere: a listener that accepts no connection, too, whose queue is full.
#[test]
fn missing_socket_paths_are_named() {
    let _beside = beside_others();
    let directory = Directory::new();
    let at = |name: &str| directory.join(name);
    std::fs::write(at("file"), "").unwrap();
    drop(UnixListener::bind(at("deserted")).unwrap());
    let crowded = UnixListener::bind(at("crowded")).unwrap();
    rustix::net::listen(&crowded, 1).unwrap();
    let table = [
        ("missing", 5, "cannot connect to unix:", "No such file or directory"),
        ("file", 5, "cannot connect to unix:", "the file is no socket"),
        ("deserted", 5, "cannot connect to unix:", "Connection refused"),
        ("crowded", 5, "cannot connect to unix:", "Resource temporarily unavailable"),
    ];
    for io in INTERFACES {
        for (name, exit, begin, end) in table {
            let address = format!("unix:{}", at(name).display());
            let flags = [
                "run",
                "-s",
                &address,
                "--protocol",
                "memcached-text",
                "--timeout",
                "300ms",
                "--set",
                "server-stats=false",
                "--progress=none",
                "--io",
                io,
            ];
            let output = brunt(&flags).output().unwrap();
            let text = String::from_utf8(output.stderr).unwrap();
            assert_eq!(output.status.code(), Some(exit), "{text}");
            let line = text.lines().last().unwrap();
            assert!(line.contains(begin) && line.contains(&address) && line.contains(end), "{name}: {text}");
        }
    }
    let long = format!("unix:/{}", "x".repeat(107));
    let output = brunt(&["run", "-s", &long]).output().unwrap();
    let text = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(2), "{text}");
    assert!(text.contains("--server") && text.contains("1 to 107 bytes"), "{text}");
    drop(crowded);
}
