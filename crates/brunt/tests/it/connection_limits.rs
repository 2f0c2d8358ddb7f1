//! Ten thousand connections, and more than there may be.

use crate::measured::Measured;
use crate::server::{Ended, Server, begin, brunt, by_shell, temporary};
use std::thread::park_timeout;
use std::time::Duration;

const CONNECTIONS: u64 = 10_000;
const PEAK_BYTES_MAX: u64 = 200_000_000;

/// The most memory that a process has had resident so far; 0 once it has ended.
fn peak_bytes(pid: u32) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    peak.map_or(0, |peak| peak.trim().trim_end_matches(" kB").parse::<u64>().unwrap() << 10)
}

/// Ten thousand of them, begun once, never lost, and every one carries requests: the server's log says so.
#[test]
fn ten_thousand_connections_fit_into_200_mb() {
    let log = temporary("log");
    let server = Server::reference(&format!("--log {log} --script-after 20000"));
    // The log has every connection that the server takes: none but those.
    let load = format!("-n 50000 --warmup 0s --keys 20000 -c {CONNECTIONS} --set server-stats=false");
    let run = begin(brunt(&format!("run --server memcached://{server} -o json:- {load}")));
    let pid = run.id();
    let (measured, peak) = std::thread::scope(|scope| {
        // Beside: what it writes has to be read, or it never ends.
        let waiting = scope.spawn(|| Measured::of(run));
        let mut peak = 0;
        while !waiting.is_finished() {
            peak = peak.max(peak_bytes(pid));
            park_timeout(Duration::from_millis(2));
        }
        (waiting.join().unwrap(), peak)
    });
    eprintln!("{CONNECTIONS} connections: at most {} MB resident\n{}", peak / 1_000_000, measured.text);
    measured.check_exit();
    for key in ["begun", "established", "open"] {
        assert_eq!(measured.connections(key), CONNECTIONS, "{key}");
    }
    assert_eq!(measured.count("client.connections.connect_ns.count"), CONNECTIONS);
    assert!((1..PEAK_BYTES_MAX).contains(&peak), "{peak} bytes");

    let mut calls = vec![0; CONNECTIONS as usize];
    for record in served(&log, 70_000).iter().filter(|record| record.number >= 20_000) {
        calls[record.connection as usize] += 1;
    }
    assert_eq!(calls.iter().sum::<u64>(), 50_000);
    assert!(calls.iter().all(|calls| *calls > 0));
}

/// What the server served, once it has written that down.
pub(crate) fn served(log: &str, requests: usize) -> Vec<brunt_server::log::Record> {
    loop {
        let read = crate::server_log::read(&std::fs::read(log).unwrap());
        let records = read.unwrap_or_default();
        if records.len() == requests {
            return records;
        }
        std::thread::yield_now();
    }
}

/// As many open files as a shell allows its children, and no more connections than fit.
#[test]
fn connections_beyond_the_open_file_limit_are_rejected() {
    let server = Server::reference("");
    // Limit → connections → what is said; a soft limit is raised.
    let table = [
        ("ulimit -n 300", 264, None),
        ("ulimit -n 300", 265, Some("--connections 265 exceeds 264: open-file limit 300")),
        ("ulimit -S -n 100", 264, None),
        ("ulimit -n 20", 1, Some("--connections 1 exceeds 0: open-file limit 20")),
    ];
    for (limit, connections, refusal) in table {
        let load = format!("-T 1 -n 2000 --warmup 0s --keys 500 -o json:- -c {connections}");
        let run = format!("run --server {server} {load}");
        let output = Ended::from(by_shell(&format!("{limit} && exec \"$@\""), &run));
        match refusal {
            Some(refusal) => _ = output.is(2, &[refusal]),
            None => assert_eq!(Measured::of(output).connections("open"), connections),
        }
    }
}
