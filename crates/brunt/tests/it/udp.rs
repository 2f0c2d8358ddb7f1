//! memcached's dialects over UDP: against a real memcached, and against a server that loses, copies and swaps datagrams by number.
//!
//! Over loopback nothing is lost on the way, but a socket whose owner gets no processor may be full: what is missing then is a
//! time-out, and the server says whether it was the request or the reply.

use crate::measured::Measured;
use crate::server::{Server, ended, ended_run, lasting_port};
use crate::transports::INTERFACES;

const DIALECTS: [&str; 2] = ["memcached-text", "memcached-meta"];

/// What is the same in every run.
const PLAN: &str = "--set transport=udp --warmup 0s --progress=none --keys 1000 -T 1 -c 4 --depth 4";

/// A real memcached that takes datagrams at the port of its streams.
fn memcached() -> Option<Server> {
    let port = i32::from(lasting_port());
    Server::memcached_at("127.0.0.1", port, &format!("-U {port}"))
}

fn run(server: &Server, flags: &str) -> Measured {
    let measured = Measured::run(server, &format!("{PLAN} {flags}"));
    assert_eq!(measured.at("plan.transport"), "udp");
    assert_eq!(measured.connections("lost"), 0);
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
    for io in INTERFACES {
        for dialect in DIALECTS {
            let Some(server) = memcached() else { return };
            let flags = format!("-n 8000 --mix get=8,set=1,touch=1 --protocol {dialect} --io {io}");
            let measured = run(&server, &flags);
            assert_eq!(measured.requests("sent"), 8_000);
            let timeouts = measured.over_phases("requests.timeout");
            assert_eq!(measured.requests("error") + measured.requests("mismatch"), 0);
            assert_eq!(measured.requests("miss"), 0);
            let [late, duplicate, unmatched, disordered, malformed] = astray(&measured);
            assert_eq!([duplicate, unmatched, disordered, malformed], [0; 4]);
            assert!(late <= timeouts);
            // What was sent and what was served differ by what was lost, and by nothing else.
            let statistics = server.statistics();
            let sent = |kind: &str| measured.over_phases(&format!("ops.{kind}"));
            for (kind, statistic) in [("get", "cmd_get"), ("set", "cmd_set"), ("touch", "cmd_touch")] {
                let (ours, theirs) = (sent(kind), statistics[statistic]);
                assert!((ours - timeouts..=ours).contains(&theirs), "{kind} {ours} {theirs}");
            }
            assert!(measured.text.contains(" over udp"));
        }
    }
}

/// Keys come one by one, each in a train of its own.
#[test]
fn memcached_answers_multi_gets_over_udp() {
    for dialect in DIALECTS {
        for io in INTERFACES {
            let Some(server) = memcached() else { return };
            let flags = format!("-n 2000 --mix mget=1 --multiget 8 --protocol {dialect} --io {io} --verify");
            let measured = run(&server, &flags);
            let (timeouts, keys) =
                (measured.requests("timeout"), |key: &str| measured.count(&format!("counts.keys.{key}")));
            assert_eq!((keys("requested"), keys("miss")), (16_000, 0));
            assert_eq!(keys("hit"), 16_000 - 8 * timeouts);
            assert_eq!(measured.at("events.value_faults").as_array().unwrap().len(), 0);
            assert_eq!(astray(&measured)[1..], [0; 4]);
        }
    }
}

/// Replies of many datagrams, of values that came by TCP.
#[test]
fn long_values_are_reassembled() {
    for dialect in DIALECTS {
        let Some(server) = memcached() else { return };
        let data = "--value-size uniform:100,9000";
        ended(&format!("load -s {server} --keys 1000 {data}")).is(0, &[]);
        for io in INTERFACES {
            let flags = format!("-n 5000 --mix get=1 --no-preload --protocol {dialect} --io {io}");
            let measured = run(&server, &format!("{data} {flags}"));
            let timeouts = measured.requests("timeout");
            assert_eq!(measured.requests("hit"), 5_000 - timeouts);
            assert_eq!(measured.at("events.value_faults").as_array().unwrap().len(), 0);
        }
    }
}

/// T7 over UDP: every reply that a script loses is a time-out, every one that it copies a duplicate.
#[test]
fn losses_and_copies_are_exact() {
    for dialect in DIALECTS {
        for io in INTERFACES {
            let script = "--udp --udp-drop-every=200 --udp-duplicate-every=7 --script-after=1000";
            let flags = format!(
                "-n 5000 --mix get=9,set=1 --timeout 300ms --protocol {dialect} --io {io} --allow=BROKEN,LOAD,CLIENT,DATA"
            );
            // A host that is kept from its processors for longer than a time-out makes replies come late; what is wrong is so each time.
            let mut tries = (0..3).map(|_| {
                let server = Server::reference(script);
                let measured = run(&server, &flags);
                (server, measured)
            });
            let in_time = |(_, measured): &(Server, Measured)| astray(measured)[0] == 0;
            let (server, measured) = tries.find(in_time).expect("replies come late each time");
            let statistics = server.statistics();
            let (dropped, duplicated) = (statistics["datagrams_dropped"], statistics["datagrams_duplicated"]);
            assert_eq!((dropped, measured.requests("timeout")), (25, 25));
            assert_eq!(measured.requests("completed"), 4_975);
            assert_eq!(packets(&measured), [duplicated, 0, dropped]);
            assert_eq!(astray(&measured), [0, duplicated, 0, 0, 0]);
            assert!(measured.text.contains(" duplicate"));
            assert_eq!(statistics["cmd_get"] + statistics["cmd_set"], 6_000);
        }
    }
}

#[test]
fn reordered_datagrams_change_nothing() {
    for dialect in DIALECTS {
        let server = Server::reference("--udp --udp-swap-every=2 --script-after=1000");
        let flags =
            format!("-n 3000 --mix mget=1 --multiget 10 --value-size 600 --protocol {dialect} --verify");
        let measured = run(&server, &flags);
        assert_eq!(measured.requests("hit"), 3_000);
        assert_eq!(measured.count("counts.keys.hit"), 30_000);
        let swapped = server.statistics()["datagrams_swapped"];
        assert!(swapped > 3_000);
        assert_eq!(packets(&measured), [swapped, 0, 0]);
        assert_eq!(astray(&measured), [0; 5]);
        assert_eq!(measured.at("events.value_faults").as_array().unwrap().len(), 0);
    }
}

/// The server that is started for a run takes datagrams where the plan sends such.
#[test]
fn a_reference_server_is_started_if_none_is_given() {
    let output = ended_run("--set transport=udp -o json:-");
    let measured = Measured::of(output);
    assert_eq!(measured.requests("completed"), 1_000);
}

/// Where no socket listens, the host of the port says so, and that is a fault of a connection like any other.
#[test]
fn closed_udp_ports_are_unreachable() {
    let url = format!("memcached+udp://127.0.0.1:{}", lasting_port());
    for io in INTERFACES {
        let output = ended_run(&format!("-s {url} --io {io}"));
        output.is(5, &["0 of 100 keys confirmed", "connection refused"]);
        let output = ended_run(&format!("-s {url} --io {io} --no-preload -t 300ms -o json:-"));
        assert_eq!(output.exit, 5);
        let measured = Measured::of(output);
        assert!(measured.faults(Some("refused")) > 0);
    }
}

#[test]
fn oversized_requests_are_rejected_before_sending() {
    let table: [(&str, &str); 4] = [
        ("--value-size 1300", "--value-size fixed:1300 exceeds 1258 bytes: transport udp"),
        ("--mix mget=1 --multiget 60", "--multiget 60 exceeds 44: transport udp"),
        ("--protocol resp3", "transport udp requires --protocol memcached-text or memcached-meta"),
        ("--set timestamps=kernel", "timestamps kernel cannot be used with transport udp"),
    ];
    for (flags, message) in table {
        ended_run(&format!("--set transport=udp {flags}")).is(2, &[message]);
    }
}
