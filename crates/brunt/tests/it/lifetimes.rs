//! Connections that come and go by plan: as many as it says, when it says, and none of their requests is lost.

use crate::measured::Measured;
use crate::server::{Server, beside_others, in_namespace, no_state};
use std::io::{ErrorKind, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::process::Command;

/// Connections are counted, so no further one is made to ask for statistics.
/// Every connection counts, so nothing is asked before the run.
const BASE: &[&str] =
    &["--protocol", "memcached-text", "--warmup", "0s", "--keys", "1000", "--set", "server-stats=false"];

/// How many connections memcached took for a run; the question for that is another one, and not counted.
fn run(flags: &[&str]) -> Option<(Measured, u64)> {
    // Room for those that it has not noticed to be gone beside those that replace them.
    let server = Server::memcached(&["-c", "4096"])?;
    let before = server.statistics()["total_connections"];
    let measured = Measured::run(&server.address, &[BASE, flags].concat());
    let taken = server.statistics()["total_connections"] - before - 1;
    measured.check_request_counts();
    measured.check_connections();
    assert_eq!(
        (measured.count("counts.requests.lost"), measured.count("counts.requests.unsent")),
        (0, 0),
        "{}",
        measured.text
    );
    assert_eq!(measured.faults(None), 0, "{}", measured.text);
    // Each has its time to connect.
    assert_eq!(
        measured.count("client.connections.connect_ns.count"),
        measured.count("client.connections.established")
    );
    assert!(measured.count("client.connections.connect_ns.p50") > 0);
    Some((measured, taken))
}

/// A connection carries a hundred requests and no more: of 10 000, those that have ended carried a hundred each, and
/// those that stand the rest.
#[test]
fn connections_end_after_their_calls() {
    let _beside = beside_others();
    for shape in [&["-c", "8"][..], &["-c", "8", "--depth", "4", "-T", "2"], &["-c", "3", "-r", "20k"]] {
        let Some((measured, taken)) =
            run(&[&["-n", "10000", "--calls-per-connection", "100"], shape].concat())
        else {
            return;
        };
        let count = |key: &str| measured.count(&format!("client.connections.{key}"));
        assert_eq!(measured.count("counts.requests.completed"), 10_000, "{shape:?}\n{}", measured.text);
        // The last one may have been begun when the run was over.
        assert_eq!((count("begun"), count("established") + count("pending")), (taken, taken), "{shape:?}");
        let rest = 10_000 - count("retired") * 100;
        assert!(rest <= count("open") * 100 && count("retired") <= 100, "{shape:?}\n{}", measured.text);
    }
}

/// Fifty connections of a hundred calls are five thousand calls, and with the last of them the run is over.
#[test]
fn the_last_of_all_connections_ends_the_run() {
    let _beside = beside_others();
    for shape in [&["-c", "8"][..], &["-c", "8", "--depth", "4", "-T", "2"]] {
        let flags = ["-t", "60s", "--calls-per-connection", "100", "--set", "connections-total=50"];
        let Some((measured, taken)) = run(&[&flags, shape].concat()) else { return };
        let count = |key: &str| measured.count(&format!("client.connections.{key}"));
        assert_eq!([taken, count("begun"), count("retired"), count("open")], [50, 50, 50, 0], "{shape:?}");
        assert_eq!(measured.count("counts.requests.completed"), 5_000, "{}", measured.text);
        assert!(measured.ms("window.duration_ns") < 30_000.0, "{}", measured.text);
        measured.check_exit();
    }
}

/// Fifty connections, one every ten milliseconds, each with a request every millisecond from when it is established.
#[test]
fn connections_have_schedules_of_their_own() {
    let _beside = beside_others();
    let flags =
        ["-c", "50", "--connect-rate", "100", "--set", "call-rate=1000", "--calls-per-connection", "40"];
    let total = ["--set", "connections-total=50", "-t", "60s", "--allow=BROKEN,LOAD,CLIENT,DATA"];
    let Some((measured, taken)) = run(&[&flags[..], &total].concat()) else { return };
    let count = |key: &str| measured.count(&format!("client.connections.phases.measure.{key}"));
    // Those that preloaded end before.
    assert_eq!([taken, count("begun"), count("retired")], [100, 50, 50], "{}", measured.text);
    assert_eq!(measured.count("counts.requests.completed"), 2_000, "{}", measured.text);
    // The last one is begun after 490 ms and lives for 39.
    let duration_ms = measured.ms("window.duration_ns");
    assert!((529.0..10_000.0).contains(&duration_ms), "{duration_ms}\n{}", measured.text);
}

/// 200 a second for three seconds are 600. The thousand that preloaded were of another time, and ended with it.
#[test]
fn connections_open_at_their_rate() {
    let _beside = beside_others();
    let flags = ["-t", "3s", "-c", "1000", "--connect-rate", "200", "-r", "1000", "--wait", "sleep"];
    let flags = [&flags[..], &["--allow=BROKEN,LOAD,CLIENT,DATA"]].concat();
    let Some((measured, taken)) = run(&flags) else { return };
    let born = measured.count("client.connections.phases.measure.begun");
    // Exact but for the last ones, whose time a busy host may miss.
    assert!((590..=601).contains(&born), "{born}\n{}", measured.text);
    assert_eq!(
        measured.count("client.connections.open") + measured.count("client.connections.pending"),
        born
    );
    assert_eq!(taken, 1_000 + born);
}

/// Twenty that live half a second, the first ones n twentieths of that: all end six times in three seconds, but the last
/// ends five times.
#[test]
fn connections_end_at_their_age() {
    let _beside = beside_others();
    let flags = ["-t", "3s", "-c", "20", "--reconnect-every", "500ms", "-r", "1000", "--wait", "sleep"];
    let flags = [&flags[..], &["--allow=BROKEN,LOAD,CLIENT,DATA"]].concat();
    let Some((measured, taken)) = run(&flags) else { return };
    let ended = measured.count("client.connections.retired");
    // A life begins when the connection is there, so that a busy host makes them fewer. In the drain one ends every 25 ms as before.
    let in_drain = (measured.ms("counts.phases.drain.duration_ns") / 25.0).ceil() as u64;
    assert!((100..=119 + in_drain).contains(&ended), "{ended}\n{}", measured.text);
    let stand = measured.count("client.connections.open") + measured.count("client.connections.pending");
    // One that ends in the drain is followed by none.
    let begun = measured.count("client.connections.begun");
    assert_eq!((taken, stand), (begun, begun - ended), "{}", measured.text);
    assert!((20 + ended - in_drain..=20 + ended).contains(&begun), "{begun} {ended}\n{}", measured.text);
}

/// A host with fifty local ports: what cannot be is refused with the numbers, and what need not be is counted when it is.
#[test]
fn port_exhaustion_is_predicted_or_counted() {
    let _beside = beside_others();
    let script =
        "ip link set lo up && echo 40000 40049 > /proc/sys/net/ipv4/ip_local_port_range && exec \"$@\"";
    let run = |flags: &[&str]| {
        let mut command = in_namespace(&["-n"], script)?;
        command.args([
            env!("CARGO_BIN_EXE_brunt"),
            "run",
            "-o",
            "json:-",
            "-t",
            "500ms",
            "--allow=BROKEN,LOAD,CLIENT,DATA",
        ]);
        Some(command.args(BASE).args(flags).output().unwrap())
    };
    let refused: [(&[&str], &[&str]); 2] = [
        (&["-c", "60"], &["--connections 60 exceeds 50: 50 local ports (40000-40049)"]),
        (
            &["-c", "40", "--connect-rate", "200", "--calls-per-connection", "1"],
            &["--connect-rate 200/s exceeds 20/s: ", "rest for 0.5 s each", "50 local ports (40000-40049)"],
        ),
    ];
    for (flags, words) in refused {
        let Some(output) = run(flags) else { return };
        let message = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(2), "{flags:?}: {message}");
        words.iter().for_each(|word| assert!(message.contains(word), "{flags:?}: {message}"));
    }
    // How fast a closed loop uses up its connections is the server's affair; at their age it is to be expected.
    for (flags, is_noted) in [
        (["-c", "40", "--calls-per-connection", "1"], false),
        (["-c", "40", "--reconnect-every", "20ms"], true),
    ] {
        let measured = Measured::of(&run(&flags).unwrap());
        measured.check_request_counts();
        measured.check_connections();
        let counted = measured.faults(Some("no_port"));
        assert_eq!(counted, measured.faults(None), "{}", measured.text);
        assert_eq!(counted, measured.count("client.connections.failed"), "{}", measured.text);
        assert!(counted > 0, "{}", measured.text);
        assert_eq!(
            measured.text.contains("expect faults of the kind no_port"),
            is_noted,
            "{}",
            measured.text
        );
        assert_eq!(measured.exit, 0, "{}", measured.text);
    }
}

/// Where attempts are what is counted, nothing refuses the run, and each that fails has its reason: a port and a path at which no server listens
/// at, no descriptor, no port.
#[test]
fn failed_attempts_are_results() {
    let _beside = beside_others();
    let Some(server) = Server::memcached(&[]) else { return };
    let unserved = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().to_string();
    let few_ports =
        "ip link set lo up && echo 40000 40009 > /proc/sys/net/ipv4/ip_local_port_range && exec \"$@\"";
    let plan =
        ["-c", "40", "--set", "connections-total=60", "--calls-per-connection", "2", "--set", "call-rate=2"];
    let counted = ["--connect-rate", "1000", "--set", "reconnect=never", "--no-preload", "--mix", "get"];
    for (limit, address, kind, errno) in [
        ("100", Some(&*unserved), "refused", None),
        ("100", Some("unix:/nowhere/no.sock"), "other", Some(2)),
        ("20", Some(&*server.address), "no_descriptor", None),
        ("100", None, "no_port", None),
    ] {
        let mut command = match address {
            Some(_) => {
                let mut command = Command::new("sh");
                command.args(["-c", &format!("ulimit -n {limit} && exec \"$@\""), "sh"]);
                command.env("XDG_STATE_HOME", no_state());
                command
            }
            None => match in_namespace(&["-n"], few_ports) {
                Some(command) => command,
                None => return,
            },
        };
        command.args([
            env!("CARGO_BIN_EXE_brunt"),
            "run",
            "-o",
            "json:-",
            "-T",
            "1",
            "--allow=BROKEN,LOAD,CLIENT,DATA",
        ]);
        command.args(BASE).args(plan).args(counted);
        command.args(address.iter().flat_map(|address| ["--server", address]));
        let is_there = matches!(kind, "no_descriptor" | "no_port");
        let measured = Measured::of(&command.output().unwrap());
        measured.check_request_counts();
        measured.check_connections();
        let count = |key: &str| measured.count(&format!("client.connections.{key}"));
        assert_eq!((count("begun"), count("lost")), (60, 0), "{kind} {}", measured.text);
        let faults = measured.at("events.faults").as_array().unwrap();
        assert_eq!(faults.len(), 1, "{kind} {}", measured.text);
        assert_eq!((faults[0]["kind"].as_str(), faults[0]["errno"].as_i64()), (Some(kind), errno));
        assert_eq!(faults[0]["count"].as_u64(), Some(count("failed")));
        assert_eq!(measured.count("counts.requests.completed"), 2 * count("established"));
        assert_eq!(measured.exit, if is_there { 0 } else { 5 }, "{}", measured.text);
        assert_eq!(count("established") > 0, is_there, "{}", measured.text);
        assert!(count("most") <= count("established") && count("failed") > 0, "{}", measured.text);
    }
}

/// Where no server listens and the port is one that the kernel may choose for the client, an attempt may reach itself, which
/// is no server, either. Of two ports one is the server's, and every second attempt is from it.
#[test]
fn self_connections_are_rejected() {
    let _beside = beside_others();
    let script =
        "ip link set lo up && echo 40010 40011 > /proc/sys/net/ipv4/ip_local_port_range && exec \"$@\"";
    for port in [40_010, 40_011] {
        let Some(mut command) = in_namespace(&["-n"], script) else { return };
        command.args([env!("CARGO_BIN_EXE_brunt"), "run", "-n", "100", "-c", "1", "--timeout", "1s"]);
        let output = command.args(["--server", &format!("127.0.0.1:{port}")]).output().unwrap();
        let message = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(5), "{message}");
        assert!(message.contains("cannot connect") && message.contains("refused"), "{message}");
    }
}

/// A close that lingers for no time is a reset; one of any other kind is an end, with all that was sent before it.
#[test]
fn connections_are_closed_or_reset() {
    let _beside = beside_others();
    for (linger, is_reset) in [(None, false), (Some("linger=5s"), false), (Some("linger=0s"), true)] {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let server = std::thread::spawn(move || {
            let ends = (0..3).map(|_| end_of(&listener.accept().unwrap().0));
            ends.collect::<Vec<_>>()
        });
        let flags = ["-c", "1", "--mix", "get", "--no-preload", "--calls-per-connection", "3"];
        let linger: Vec<&str> = linger.into_iter().flat_map(|linger| ["--set", linger]).collect();
        let more = ["--set", "connections-total=3", "--allow=BROKEN,LOAD,CLIENT,DATA"];
        let measured = Measured::run(&address, &[BASE, &flags, &more, &linger].concat());
        measured.check_request_counts();
        assert_eq!(measured.count("counts.requests.completed"), 9, "{}", measured.text);
        let ends = server.join().unwrap();
        assert_eq!(ends, [is_reset; 3], "{linger:?}");
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
