//! Connections that come and go by plan: as many as it says, when it says, and none of their requests is lost.

use crate::measured::{ALL, Measured};
use crate::server::{Ended, PROGRAM, Server, by_shell, in_namespace, listening, unserved, words};
use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;
use std::process::Command;

/// Every connection counts, so nothing is asked before the run.
const BASE: &str = "--protocol memcached-text --warmup 0s --keys 1000 --set server-stats=false";

/// How many connections memcached took for a run; the question for that is another one, and not counted.
fn run(flags: &str) -> Option<(Measured, u64)> {
    // Room for those that it has not noticed to be gone beside those that replace them.
    let server = Server::memcached("-c 4096")?;
    let before = server.statistics()["total_connections"];
    let measured = Measured::run(&server, &format!("{BASE} {flags}"));
    let taken = server.statistics()["total_connections"] - before - 1;
    assert_eq!((measured.requests("lost"), measured.requests("unsent")), (0, 0));
    assert_eq!(measured.faults(None), 0);
    // Each has its time to connect.
    assert_eq!(measured.count("client.connections.connect_ns.count"), measured.connections("established"));
    assert!(measured.count("client.connections.connect_ns.p50") > 0);
    Some((measured, taken))
}

/// A connection carries a hundred requests and no more: of 10 000, those that have ended carried a hundred each, and
/// those that stand the rest.
#[test]
fn connections_end_after_their_calls() {
    for shape in ["-c 8", "-c 8 --depth 4 -T 2", "-c 3 -r 20k"] {
        let Some((measured, taken)) = run(&format!("-n 10000 --calls-per-connection 100 {shape}")) else {
            return;
        };
        let count = |key| measured.connections(key);
        assert_eq!(measured.requests("completed"), 10_000, "{shape:?}");
        // The last one may have been begun when the run was over.
        assert_eq!((count("begun"), count("established") + count("pending")), (taken, taken), "{shape:?}");
        let rest = 10_000 - count("retired") * 100;
        assert!(rest <= count("open") * 100 && count("retired") <= 100, "{shape:?}");
    }
}

/// Fifty connections of a hundred calls are five thousand calls, and with the last of them the run is over.
#[test]
fn the_last_of_all_connections_ends_the_run() {
    for shape in ["-c 8", "-c 8 --depth 4 -T 2"] {
        let flags = "-t 60s --calls-per-connection 100 --set connections-total=50";
        let Some((measured, taken)) = run(&format!("{flags} {shape}")) else { return };
        let count = |key| measured.connections(key);
        assert_eq!([taken, count("begun"), count("retired"), count("open")], [50, 50, 50, 0], "{shape:?}");
        assert_eq!(measured.requests("completed"), 5_000);
        assert!(measured.ms("window.duration_ns") < 30_000.0);
        measured.check_exit();
    }
}

/// Connections begin and end in the window when they are to: those that preloaded were of another time, and ended with it. A busy host may miss
/// the time of the last ones, and a life begins when the connection is there.
#[test]
fn connections_keep_their_schedule() {
    // How many there were before; how many begin, and how many end; how long the window is at least.
    let table = [
        // One every ten milliseconds, each with a request every millisecond: the last one is begun after 490 ms and lives for 39.
        (
            "-c 50 --connect-rate 100 --set call-rate=1000 --calls-per-connection 40 --set connections-total=50 -t 60s",
            50,
            [50..=50, 50..=50],
            529.0,
        ),
        // 200 a second for three seconds.
        ("-t 3s -c 1000 --connect-rate 200 -r 1000 --wait sleep", 1_000, [590..=601, 0..=0], 3_000.0),
        // Twenty that live half a second, the first ones n twentieths of that: all end six times, but the last ends five times.
        ("-t 3s -c 20 --reconnect-every 500ms -r 1000 --wait sleep", 20, [100..=120, 100..=120], 3_000.0),
    ];
    for (flags, before, expected, least_ms) in table {
        let Some((measured, taken)) = run(&format!("{flags} --allow={ALL}")) else { return };
        let counted = ["begun", "retired"]
            .map(|key| measured.count(&format!("client.connections.phases.measure.{key}")));
        assert!(expected.iter().zip(&counted).all(|(range, count)| range.contains(count)), "{counted:?}");
        // Where the window begins late, some have ended before it.
        assert_eq!(taken, measured.connections("begun"));
        assert!((before + counted[0]..=before + counted[0] + 20).contains(&taken), "{taken}: {counted:?}");
        assert!(!flags.contains("call-rate") || measured.requests("completed") == 2_000);
        let duration_ms = measured.ms("window.duration_ns");
        assert!((least_ms..10_000.0).contains(&duration_ms), "{duration_ms}");
    }
}

/// A run on a host whose local ports are these; `None` where there can be none.
fn with_ports(first: u16, last: u16, flags: &str) -> Option<Command> {
    let ports = format!("echo {first} {last} > /proc/sys/net/ipv4/ip_local_port_range");
    let mut command = in_namespace("-n", &format!("ip link set lo up && {ports} && exec \"$@\""))?;
    command.args(words(&format!("{PROGRAM} run {flags}")));
    Some(command)
}

/// A host with fifty local ports: what cannot be is refused with the numbers, and what need not be is counted when it is.
#[test]
fn port_exhaustion_is_predicted_or_counted() {
    let run =
        |flags: &str| with_ports(40_000, 40_049, &format!("-o json:- -t 500ms --allow={ALL} {BASE} {flags}"));
    let refused: [(&str, &[&str]); 2] = [
        ("-c 60", &["--connections 60 exceeds 50: 50 local ports (40000-40049)"]),
        (
            "-c 40 --connect-rate 200 --calls-per-connection 1",
            &["--connect-rate 200/s exceeds 20/s: ", "rest for 0.5 s each", "50 local ports (40000-40049)"],
        ),
    ];
    for (flags, words) in refused {
        let Some(refused) = run(flags) else { return };
        Ended::from(refused).is(2, words);
    }
    // How fast a closed loop uses up its connections is the server's affair; at their age it is to be expected.
    for (flags, is_noted) in
        [("-c 40 --calls-per-connection 1", false), ("-c 40 --reconnect-every 20ms", true)]
    {
        let measured = Measured::of(run(flags).unwrap());
        let counted = measured.faults(Some("no_port"));
        assert_eq!(counted, measured.faults(None));
        assert_eq!(counted, measured.connections("failed"));
        assert!(counted > 0);
        assert_eq!(measured.text.contains("expect faults of the kind no_port"), is_noted);
        assert_eq!(measured.exit, 0);
    }
}

/// Where attempts are what is counted, nothing refuses the run, and each that fails has its reason: a port and a path at which no server listens
/// at, no descriptor, no port.
#[test]
fn failed_attempts_are_results() {
    let Some(server) = Server::memcached("") else { return };
    let nowhere = unserved();
    let plan = "-c 40 --set connections-total=60 --calls-per-connection 2 --set call-rate=2";
    let counted = "--connect-rate 1000 --set reconnect=never --no-preload --mix get";
    for (limit, address, kind, errno) in [
        ("100", Some(nowhere), "refused", None),
        ("100", Some("unix:/nowhere/no.sock"), "other", Some(2)),
        ("20", Some(&*server.address), "no_descriptor", None),
        ("100", None, "no_port", None),
    ] {
        let flags = format!("-o json:- -T 1 --allow={ALL} {BASE} {plan} {counted}");
        let command = match address {
            Some(address) => {
                let script = format!("ulimit -n {limit} && exec \"$@\"");
                by_shell(&script, &format!("run {flags} --server {address}"))
            }
            None => match with_ports(40_000, 40_009, &flags) {
                Some(command) => command,
                None => return,
            },
        };
        let is_there = matches!(kind, "no_descriptor" | "no_port");
        let measured = Measured::of(command);
        let count = |key| measured.connections(key);
        assert_eq!((count("begun"), count("lost")), (60, 0), "{kind}");
        let faults = measured.at("events.faults").as_array().unwrap();
        assert_eq!(faults.len(), 1, "{kind}");
        assert_eq!((faults[0]["kind"].as_str(), faults[0]["errno"].as_i64()), (Some(kind), errno));
        assert_eq!(faults[0]["count"].as_u64(), Some(count("failed")));
        assert_eq!(measured.requests("completed"), 2 * count("established"));
        assert_eq!(measured.exit, if is_there { 0 } else { 5 });
        assert_eq!(count("established") > 0, is_there);
        assert!(count("most") <= count("established") && count("failed") > 0);
    }
}

/// Where no server listens and the port is one that the kernel may choose for the client, an attempt may reach itself, which
/// is no server, either. Of two ports one is the server's, and every second attempt is from it.
#[test]
fn self_connections_are_rejected() {
    for port in [40_010, 40_011] {
        let flags = format!("-n 100 -c 1 --timeout 1s --server 127.0.0.1:{port}");
        let Some(command) = with_ports(40_010, 40_011, &flags) else { return };
        Ended::from(command).is(5, &["cannot connect", "refused"]);
    }
}

/// A close that lingers for no time is a reset; one of any other kind is an end, with all that was sent before it.
#[test]
fn connections_are_closed_or_reset() {
    for (linger, is_reset) in [("", false), ("--set linger=5s", false), ("--set linger=0s", true)] {
        let (sender, ends) = std::sync::mpsc::channel();
        let address = listening(move |stream, _| sender.send(end_of(&stream)).unwrap());
        let flags = "-c 1 --mix get --no-preload --calls-per-connection 3";
        let more = "--set connections-total=3 --allow=BROKEN,LOAD,CLIENT,DATA";
        let measured = Measured::run(&address, &format!("{BASE} {flags} {more} {linger}"));
        assert_eq!(measured.requests("completed"), 9);
        assert_eq!(ends.iter().take(3).collect::<Vec<_>>(), [is_reset; 3], "{linger:?}");
    }
}

/// Answers gets with misses to the end. Was that a reset?
fn end_of(mut stream: &TcpStream) -> bool {
    let mut bytes = [0; 1024];
    loop {
        match stream.read(&mut bytes) {
            Ok(0) => return false,
            Ok(_) => stream.write_all(b"END\r\n").unwrap(),
            Err(error) => return error.kind() == ErrorKind::ConnectionReset,
        }
    }
}
