//! Servers that go away and come back while a run goes on: nothing is missing from the request counts, the gap is told as long as
//! it was, and what had to wait is told from the intended times.

use crate::experiments::is_full;
use crate::measured::Measured;
use crate::server::{Server, begin, lasting_port, undisturbed, wait};
use serde_json::json;
use std::net::TcpStream;
use std::ops::RangeInclusive;
use std::time::{Duration, Instant};

/// How far what is told may be from what was: one look in 20 ms whether the server is back, and the host, which in the usual test run is
/// busy with other tests. An outage that was not told from its first request on would be off by three times as much.
fn tolerance_ms() -> f64 {
    if is_full() { 50.0 } else { 300.0 }
}
/// Requests that an outage may take with it on a host that has time for them.
const LOST_MAX: u64 = 50;
/// A host that takes processors away for longer than that makes a run say nothing of the times, and such a host is busy
/// for a while. What is wrong with the tool is wrong every time.
const ATTEMPTS: usize = 3;

/// 1 000 requests/s, evenly spaced.
const SCHEDULE: &str = "-r 1000 --arrival uniform --warmup 0s --keys 1000 --depth 4 --wait sleep";

/// How the times of an outage were told.
enum Outcome {
    AsItWas,
    Otherwise(String),
    /// This host had no time for it, and the run says so.
    NotJudged,
}

/// Until it is told as it was. A run that is disturbed may say anything of the times; one that vouches for what is wrong
/// fails, if it does so every time.
fn tried(attempt: impl Fn() -> Outcome) {
    let mut last = None;
    for _ in 0..ATTEMPTS {
        match attempt() {
            Outcome::AsItWas => return,
            Outcome::NotJudged => last = None,
            Outcome::Otherwise(text) => last = Some(text),
        }
    }
    assert!(last.is_none(), "{}", last.unwrap_or_default());
}

/// One outage, so long; every request in the counts. What was due within it waited for the rest of it: in D seconds, a
/// part L/D of all requests waits evenly between 0 and L, so that Q_p = L − (1 − p)·D.
///
/// It ends between two instants that are known: the server was started again, and it was seen to take a connection.
fn check_outage(measured: &Measured, server: &str, seconds: u64, length_ms: RangeInclusive<f64>) -> Outcome {
    let text = &measured.text;
    let [scheduled, unsent] = ["scheduled", "unsent"].map(|key| measured.requests(key));
    assert_eq!((scheduled, unsent), (seconds * 1_000, 0));
    let lost = measured.requests("lost");
    assert_eq!(measured.requests("completed") + lost, scheduled);
    // A host that takes the server's processor away for a tenth of a second makes it stall, and that is told as well.
    let outages = measured.at("events.outages").as_array().unwrap();
    let broken: Vec<_> = outages.iter().filter(|outage| outage["kinds"] != json!(["stalled"])).collect();
    assert_eq!(broken.len(), 1);
    let outage = broken[0];
    assert_eq!(outage["server"], server);
    assert_eq!(outage["failed"], lost);
    // What was in flight: one request a millisecond, to a server that answers sooner where the host lets it.
    let is_little = lost <= LOST_MAX;
    if !is_little && measured.is_disturbed() {
        return Outcome::NotJudged;
    }
    // An outage of the server is nothing that speaks against the tool; whether this host had time for it is another matter.
    measured.check_exit();
    let told_ms = outage["length_ns"].as_f64().unwrap() / 1e6;
    eprintln!("an outage of {length_ms:.1?} ms is told as {told_ms:.1} ms");
    let is_near = |ms: f64, expected_ms: f64| (ms - expected_ms).abs() <= tolerance_ms();
    let is_so_long = is_near(told_ms, told_ms.clamp(*length_ms.start(), *length_ms.end()));
    let is_told = |(percentile, p): (&str, f64)| {
        let ms = measured.ms(&format!("latency.response_ns.{percentile}"));
        let expected_ms = told_ms - (1.0 - p) * seconds as f64 * 1e3;
        eprintln!("{percentile} {ms:.1} ms, expected {expected_ms:.1} ms");
        is_near(ms, expected_ms)
    };
    let are_told = [("p95", 0.95), ("p99", 0.99)].map(is_told);
    let has_recovered = outage["recovered_ns"].as_u64() >= outage["end_ns"].as_u64();
    if is_so_long && are_told == [true; 2] && has_recovered && is_little {
        Outcome::AsItWas
    } else if measured.is_disturbed() {
        Outcome::NotJudged
    } else {
        Outcome::Otherwise(text.clone())
    }
}

/// A memcached is killed at a quarter of the run and is back on its port after a while.
fn killed_memcached(connections: &str, seconds: u64, gone: Duration) -> Outcome {
    let port = i32::from(lasting_port());
    let Some(server) = Server::memcached_undisturbed_at("127.0.0.1", port, "") else {
        return Outcome::NotJudged;
    };
    let address = server.address.clone();
    let flags = format!("{SCHEDULE} -t {seconds}s -c {connections}");
    let run = begin(undisturbed(&format!("run --server {address} -o json:- {flags}")));
    // Those of the preload, and the first quarter.
    server.await_requests(1_000 + seconds * 250);
    let killed = Instant::now();
    server.kill();
    wait(gone);
    let elapsed_ms = || killed.elapsed().as_secs_f64() * 1e3;
    let started_ms = elapsed_ms();
    let _server = Server::memcached_undisturbed_at("127.0.0.1", port, "").unwrap();
    TcpStream::connect(&address).unwrap();
    let length_ms = started_ms..=elapsed_ms();
    let measured = Measured::of(run);
    // What was asked of the empty server was missed, and that is no failure.
    assert!(measured.count("counts.keys.miss") > 0);
    check_outage(&measured, &address, seconds, length_ms)
}

#[test]
fn memcached_kills_are_measured_as_outages() {
    tried(|| killed_memcached("200", 4, Duration::from_millis(1_500)));
}

/// The reference server does the same by script, from its first scripted request on.
#[test]
fn scripted_outages_are_measured() {
    tried(|| {
        let script = "--outage 1500ms:1500ms --script-after 1000";
        // One that never sleeps is nearer than what a short run asks for.
        let server =
            if is_full() { Server::reference_undisturbed(script) } else { Server::reference(script) };
        let measured = Measured::run_undisturbed(&server, &format!("{SCHEDULE} -t 4s"));
        assert_eq!(measured.count("counts.keys.miss"), 0);
        check_outage(&measured, &server.address, 4, 1_500.0..=1_500.0)
    });
}
