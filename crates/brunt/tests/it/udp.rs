//! memcached's dialects over UDP: against a real memcached, and against a server that loses, copies and swaps datagrams by number.
//!
//! Over loopback nothing is lost on the way, but a socket whose owner gets no processor may be full: what is missing then is a
//! time-out, and the server says whether it was the request or the reply.

use crate::measured::Measured;
use crate::server::{Server, beside_others, ended, lasting_port};
use crate::transports::INTERFACES;

const DIALECTS: [&str; 2] = ["memcached-text", "memcached-meta"];

/// What is the same in every run.
const PLAN: [&str; 13] = [
    "--set",
    "transport=udp",
    "--warmup",
    "0s",
    "--progress=none",
    "--keys",
    "1000",
    "-T",
    "1",
    "-c",
    "4",
    "--depth",
    "4",
];

/// A real memcached that takes datagrams at the port of its streams.
fn memcached() -> Option<Server> {
    let port = i32::from(lasting_port());
    Server::memcached_at("127.0.0.1", port, &["-U", &port.to_string()])
}

fn run(server: &Server, flags: &[&str]) -> Measured {
    let measured = Measured::run(&server.address, &[&PLAN[..], flags].concat());
    measured.check_request_counts();
    measured.check_connections();
    assert_eq!(measured.at("plan.transport"), "udp", "{}", measured.text);
    assert_eq!(measured.count("client.connections.lost"), 0, "{}", measured.text);
    measured
}

/// The counts of datagrams that were of no use.
fn astray(measured: &Measured) -> [u64; 5] {
    ["late", "duplicate", "unmatched", "disordered", "malformed"]
        .map(|why| measured.count(&format!("events.datagrams.{why}")))
}

/// memaslap's counters: `packet_disorder`, `packet_drop` and `udp_timeout`.
fn packets(measured: &Measured) -> [u64; 3] {
    ["packet_disorder", "packet_drop", "udp_timeout"]
        .map(|name| measured.count(&format!("events.datagrams.{name}")))
}

#[test]
fn memcached_counts_match_over_udp() {
    let _beside = beside_others();
    for io in INTERFACES {
        for dialect in DIALECTS {
            let Some(server) = memcached() else { return };
            let flags = ["-n", "8000", "--mix", "get=8,set=1,touch=1", "--protocol", dialect, "--io", io];
            let measured = run(&server, &flags);
            let text = &measured.text;
            assert_eq!(measured.count("counts.requests.sent"), 8_000, "{text}");
            let timeouts = measured.over_phases("requests.timeout");
            assert_eq!(
                measured.count("counts.requests.error") + measured.count("counts.requests.mismatch"),
                0,
                "{text}"
            );
            assert_eq!(measured.count("counts.requests.miss"), 0, "{text}");
            let [late, duplicate, unmatched, disordered, malformed] = astray(&measured);
            assert_eq!([duplicate, unmatched, disordered, malformed], [0; 4], "{text}");
            assert!(late <= timeouts, "{text}");
            // What was sent and what was served differ by what was lost, and by nothing else.
            let statistics = server.statistics();
            let sent = |kind: &str| measured.over_phases(&format!("ops.{kind}"));
            for (kind, statistic) in [("get", "cmd_get"), ("set", "cmd_set"), ("touch", "cmd_touch")] {
                let (ours, theirs) = (sent(kind), statistics[statistic]);
                assert!((ours - timeouts..=ours).contains(&theirs), "{kind} {ours} {theirs}\n{text}");
            }
            assert!(text.contains(" over udp"), "{text}");
        }
    }
}

/// Keys come one by one, each in a train of its own.
#[test]
fn memcached_answers_multi_gets_over_udp() {
    let _beside = beside_others();
    for dialect in DIALECTS {
        for io in INTERFACES {
            let Some(server) = memcached() else { return };
            let flags = [
                "-n",
                "2000",
                "--mix",
                "mget=1",
                "--multiget",
                "8",
                "--protocol",
                dialect,
                "--io",
                io,
                "--verify",
            ];
            let measured = run(&server, &flags);
            let (timeouts, keys) = (measured.count("counts.requests.timeout"), |key: &str| {
                measured.count(&format!("counts.keys.{key}"))
            });
            assert_eq!((keys("requested"), keys("miss")), (16_000, 0), "{}", measured.text);
            assert_eq!(keys("hit"), 16_000 - 8 * timeouts, "{}", measured.text);
            assert_eq!(measured.at("events.value_faults").as_array().unwrap().len(), 0, "{}", measured.text);
            assert_eq!(astray(&measured)[1..], [0; 4], "{}", measured.text);
        }
    }
}

/// Replies of many datagrams, of values that came by TCP.
#[test]
fn long_values_are_reassembled() {
    let _beside = beside_others();
    for dialect in DIALECTS {
        let Some(server) = memcached() else { return };
        let data = ["--value-size", "uniform:100,9000"];
        let loaded = crate::server::brunt(&["load", "-s", &server.address, "--keys", "1000"])
            .args(data)
            .output()
            .unwrap();
        assert!(loaded.status.success(), "{}", String::from_utf8_lossy(&loaded.stderr));
        for io in INTERFACES {
            let flags = ["-n", "5000", "--mix", "get=1", "--no-preload", "--protocol", dialect, "--io", io];
            let measured = run(&server, &[&data[..], &flags].concat());
            let timeouts = measured.count("counts.requests.timeout");
            assert_eq!(measured.count("counts.requests.hit"), 5_000 - timeouts, "{}", measured.text);
            assert_eq!(measured.at("events.value_faults").as_array().unwrap().len(), 0, "{}", measured.text);
        }
    }
}

/// T7 over UDP: every reply that a script loses is a time-out, every one that it copies a duplicate.
#[test]
fn losses_and_copies_are_exact() {
    let _beside = beside_others();
    for dialect in DIALECTS {
        for io in INTERFACES {
            let script = ["--udp", "--udp-drop-every=200", "--udp-duplicate-every=7", "--script-after=1000"];
            let flags = [
                "-n",
                "5000",
                "--mix",
                "get=9,set=1",
                "--timeout",
                "300ms",
                "--protocol",
                dialect,
                "--io",
                io,
                "--allow=BROKEN,LOAD,CLIENT,DATA",
            ];
            // A host that is kept from its processors for longer than a time-out makes replies come late; what is wrong is so each time.
            let mut tries = (0..3).map(|_| {
                let server = Server::reference(&script);
                let measured = run(&server, &flags);
                (server, measured)
            });
            let in_time = |(_, measured): &(Server, Measured)| astray(measured)[0] == 0;
            let (server, measured) = tries.find(in_time).expect("replies come late each time");
            let text = &measured.text;
            let statistics = server.statistics();
            let (dropped, duplicated) = (statistics["datagrams_dropped"], statistics["datagrams_duplicated"]);
            assert_eq!((dropped, measured.count("counts.requests.timeout")), (25, 25), "{text}");
            assert_eq!(measured.count("counts.requests.completed"), 4_975, "{text}");
            assert_eq!(packets(&measured), [duplicated, 0, dropped], "{text}");
            assert_eq!(astray(&measured), [0, duplicated, 0, 0, 0], "{text}");
            assert!(text.contains(" duplicate"), "{text}");
            assert_eq!(statistics["cmd_get"] + statistics["cmd_set"], 6_000, "{text}");
        }
    }
}

#[test]
fn reordered_datagrams_change_nothing() {
    let _beside = beside_others();
    for dialect in DIALECTS {
        let server = Server::reference(&["--udp", "--udp-swap-every=2", "--script-after=1000"]);
        let flags = [
            "-n",
            "3000",
            "--mix",
            "mget=1",
            "--multiget",
            "10",
            "--value-size",
            "600",
            "--protocol",
            dialect,
            "--verify",
        ];
        let measured = run(&server, &flags);
        assert_eq!(measured.count("counts.requests.hit"), 3_000, "{}", measured.text);
        assert_eq!(measured.count("counts.keys.hit"), 30_000, "{}", measured.text);
        let swapped = server.statistics()["datagrams_swapped"];
        assert!(swapped > 3_000);
        assert_eq!(packets(&measured), [swapped, 0, 0], "{}", measured.text);
        assert_eq!(astray(&measured), [0; 5], "{}", measured.text);
        assert_eq!(measured.at("events.value_faults").as_array().unwrap().len(), 0, "{}", measured.text);
    }
}

/// The server that is started for a run takes datagrams where the plan sends such.
#[test]
fn a_reference_server_is_started_if_none_is_given() {
    let _beside = beside_others();
    let output = ended(&["--set", "transport=udp", "-o", "json:-"]);
    let measured = Measured::of(&output);
    assert_eq!(measured.count("counts.requests.completed"), 1_000, "{}", measured.text);
}

/// Where no socket listens, the host of the port says so, and that is a fault of a connection like any other.
#[test]
fn closed_udp_ports_are_unreachable() {
    let _beside = beside_others();
    let url = format!("memcached+udp://127.0.0.1:{}", lasting_port());
    for io in INTERFACES {
        let output = ended(&["-s", &url, "--io", io]);
        let text = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(5), "{text}");
        assert!(text.contains("0 of 100 keys stored") && text.contains("connection refused"), "{text}");
        let output = ended(&["-s", &url, "--io", io, "--no-preload", "-t", "300ms", "-o", "json:-"]);
        assert_eq!(output.status.code(), Some(5));
        let measured = Measured::of(&output);
        measured.check_request_counts();
        measured.check_connections();
        assert!(measured.faults(Some("refused")) > 0, "{}", measured.text);
    }
}

#[test]
fn oversized_requests_are_rejected_before_sending() {
    let table: [(&[&str], &str); 4] = [
        (&["--value-size", "1300"], "--value-size fixed:1300 exceeds 1258 bytes: transport udp"),
        (&["--mix", "mget=1", "--multiget", "60"], "--multiget 60 exceeds 44: transport udp"),
        (&["--protocol", "resp3"], "transport udp requires --protocol memcached-text or memcached-meta"),
        (&["--set", "timestamps=kernel"], "timestamps kernel cannot be used with transport udp"),
    ];
    for (flags, message) in table {
        let output = ended(&[&["--set", "transport=udp"], flags].concat());
        let text = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(2), "{text}");
        assert!(text.contains(message), "{text}");
    }
}
