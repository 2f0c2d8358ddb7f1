//! The floor against the reference server: it does what it says, by the server's own counters.

#[path = "../../../brunt-server/tests/it/in_thread.rs"]
mod in_thread;

use super::SyscallClient;
use super::requests::TRIES;
use crate::parsed;
use brunt_server::CoreOptions;
use in_thread::{options, serve_in_thread};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;

const KEYS: u64 = 500;

/// Starts a server in a thread that lives as long as the test process, and stores keys `0..keys`.
fn start_server(keys: u64, core: CoreOptions) -> String {
    let address = serve_in_thread(options(core)).to_string();
    let mut stream = TcpStream::connect(&address).unwrap();
    for id in 0..keys {
        let stored = format!("set {id:030} 0 0 200\r\n{}\r\n", "v".repeat(200));
        stream.write_all(stored.as_bytes()).unwrap();
        let mut reply = [0; 8];
        stream.read_exact(&mut reply).unwrap();
        assert_eq!(&reply, b"STORED\r\n");
    }
    address
}

/// A counter of the server.
fn counter(address: &str, name: &str) -> u64 {
    let mut stream = TcpStream::connect(address).unwrap();
    stream.write_all(b"stats\r\n").unwrap();
    let prefix = format!("STAT {name} ");
    let lines = BufReader::new(stream).lines().map(Result::unwrap).take_while(|line| line != "END");
    let lines: Vec<String> = lines.collect();
    let found = lines.iter().find_map(|line| line.strip_prefix(&prefix));
    found.unwrap_or_else(|| panic!("{name} is not among {lines:?}")).parse().unwrap()
}

fn floor(address: &str, options: &str) -> SyscallClient {
    let options = format!("--server {address} --keys {KEYS} {options}");
    parsed(&options).unwrap()
}

/// Containers may be kept from io_uring altogether; a kernel that lets us have a ring must let us have all of it.
fn is_possible(policy: &str) -> bool {
    let is_possible = !policy.contains("uring") || io_uring::IoUring::new(2).is_ok();
    if !is_possible {
        println!("NOT TESTED: {policy}: this kernel refuses io_uring");
    }
    is_possible
}

#[test]
fn counted_requests_are_hits() {
    let address = start_server(KEYS, CoreOptions::default());
    for shape in ["--connections 1 --depth 1", "--connections 7 --depth 5", "--connections 64 --depth 32"] {
        for policy in [
            "--io epoll --refill eager",
            "--io epoll --refill batch",
            "--io uring --refill eager",
            "--io uring --refill batch",
            "--io uring --refill batch --gather 7",
        ] {
            let gathers_too_much = shape.starts_with("--connections 1 ") && policy.ends_with("--gather 7");
            if gathers_too_much || !is_possible(policy) {
                continue;
            }
            for end in ["--requests 3", "--requests 10001", "--time-ms 30"] {
                let options = format!("{shape} {policy} {end}");
                let hits = counter(&address, "get_hits");
                let taken =
                    floor(&address, &options).run().unwrap_or_else(|error| panic!("{options}: {error}"));
                let hits = counter(&address, "get_hits") - hits;
                assert_eq!(taken.requests + TRIES, hits, "{options}");
                if let Some(asked) = end.strip_prefix("--requests ") {
                    assert_eq!(taken.requests.to_string(), asked, "{options}");
                } else {
                    assert!(taken.requests > 0, "{options}");
                }
                assert!(taken.syscalls > 0, "{options}");
            }
        }
    }
    assert_eq!(counter(&address, "get_misses"), 0);
}

/// At one request in flight the number of system calls follows from what the floor is: a send, a wait and a receive of
/// epoll, and of io_uring nothing but the wait.
#[test]
fn system_calls_per_request_are_minimal() {
    let address = start_server(KEYS, CoreOptions::default());
    for (io, per_request) in [("epoll", 3), ("uring", 1)] {
        if !is_possible(io) {
            continue;
        }
        let options = format!("--connections 1 --depth 1 --io {io} --requests 1000");
        let syscalls = floor(&address, &options).run().unwrap().syscalls;
        // A wait may be woken for nothing.
        let expected = 1000 * per_request;
        assert!((expected..=expected + 20).contains(&syscalls), "{io}: {syscalls} instead of {expected}");
    }
}

#[test]
fn missing_keys_are_an_error() {
    let address = start_server(KEYS - 1, CoreOptions::default());
    let error = floor(&address, "--requests 1").run().unwrap_err();
    assert!(error.contains("not every key is there"), "{error}");
}

#[test]
fn command_lines() {
    let table = [
        ("--depth 1", Err("--server <HOST:PORT>")),
        ("--server a:1 --depth 129", Err("129 is not in 1..=128")),
        ("--server a:1 --io poll", Err("[possible values: epoll, uring]")),
        ("--server a:1 --refill lazy", Err("[possible values: eager, batch]")),
        ("--server a:1 --gather 2", Err("--gather requires --io uring")),
        ("--server a:1 --io uring --gather 17", Err("--gather exceeds --connections: expected at most 16")),
        ("--server a:1 --io uring --gather 16", Ok(())),
    ];
    for (words, expected) in table {
        let parsed = parsed::<SyscallClient>(words).and_then(|floor| floor.check());
        match (parsed, expected) {
            (Ok(()), Ok(())) => {}
            (Err(message), Err(part)) => assert!(message.contains(part), "{words}: {message}"),
            (parsed, _) => panic!("{words}: {parsed:?}"),
        }
    }
}
