//! Kernel timestamps as a user gets them: of the client's stack, and of wire and server.

use crate::measured::Measured;
use crate::server::{Server, ended};

/// A server whose service time is known: it lies in `wire and server`, of every request.
#[test]
fn kernel_timestamps_split_response_times() {
    let server = Server::reference("--service fixed:200us");
    let flags = "--rate 300 --time 2s --warmup 100ms --keys 100 --set timestamps=kernel";
    let run = Measured::run(&server, flags);
    let counts = run.at("client.timestamps.discarded").as_object().unwrap();
    let discarded: u64 = counts.values().map(|count| count.as_u64().unwrap()).sum();
    let (asked, matched) = (run.count("client.timestamps.requested"), run.count("client.timestamps.matched"));
    assert!(asked > 50 && asked == matched + discarded);
    assert!(matched * 10 >= asked * 9);
    assert!(run.ms("client.timestamps.wire_and_server_ns.min") >= 0.2);
    for span in ["stack_out", "wire_and_server", "stack_in"] {
        assert_eq!(run.count(&format!("client.timestamps.{span}_ns.count")), matched);
        assert_eq!(run.count(&format!("client.meters.{}.count", span.replace('_', "-"))), matched);
    }
    let rows: Vec<&str> = run.text.lines().filter(|line| line.starts_with("client-stack-")).collect();
    assert_eq!(rows.len(), 2);
    assert!(run.text.contains("\nwire-and-server "));
    assert!(run.text.contains(&format!("\ntimestamps    of {asked} requests")));
}

#[test]
fn doctor_tests_kernel_timestamps() {
    let output = ended("doctor");
    assert!(output.out.contains("\nok    kernel stamps  of both directions, on loopback\n"));
}
