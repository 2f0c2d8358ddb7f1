//! Traces at their own times, against real servers: what these count is what the records say.

use crate::measured::Measured;
use crate::server::{Server, begin, brunt, file, lasting_port, wait};
use std::collections::{HashSet, VecDeque};
use std::time::{Duration, Instant};

/// Steele, Lea and Flood's SplitMix64, from state 1.
fn draws() -> impl Iterator<Item = u64> {
    let mut state = 1_u64;
    std::iter::repeat_with(move || {
        state = state.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut mixed = (state ^ (state >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ (mixed >> 31)
    })
}

/// Keys whose density falls like a logarithm.
fn keys(count: usize) -> Vec<u64> {
    draws().map(|x| (x >> 32) % 10_000 * (x % (1 << 32) % 10_000) / 10_000).take(count).collect()
}

/// How many of these a cache of so many keys misses that evicts the oldest.
fn fifo_misses(keys: &[u64], capacity: usize) -> u64 {
    let (mut held, mut queue, mut misses) = (HashSet::new(), VecDeque::new(), 0);
    for key in keys {
        if held.insert(*key) {
            misses += 1;
            queue.push_back(*key);
            let evicted = if queue.len() > capacity { queue.pop_front() } else { None };
            evicted.map(|key| held.remove(&key));
        }
    }
    misses
}

/// Gets of these keys in Twitter's layout, so many of a second.
fn lines(keys: &[u64], of_second: usize) -> String {
    let line = |(index, key): (usize, &u64)| format!("{},key-{key:08},12,900,1,get,0\n", index / of_second);
    keys.iter().enumerate().map(line).collect()
}

/// A memcached with one slab class that moves no item for a minute evicts the oldest of as many as it holds.
#[test]
fn memcached_misses_what_a_queue_of_its_size_does() {
    let keys = keys(60_000);
    assert_eq!(
        (&keys[..4], keys.iter().collect::<HashSet<_>>().len()),
        (&[1_171, 4_497, 5_004, 3_530][..], 8_540)
    );
    assert_eq!([500, 3_540].map(|capacity| fifo_misses(&keys, capacity)), [54_232, 28_594]);
    let options = "-m 4 -t 1 -o no_lru_maintainer,no_lru_crawler";
    let Some(server) = Server::memcached(options) else { return };
    let path = file("t1.csv", &lines(&keys, 3_000));
    let flags = "-c 1 --on-miss set --warmup 0 --no-preload --set trace-layout=twitter --allow=CLIENT,DATA";
    let measured = Measured::run(&server, &format!("--set trace={path} {flags}"));
    let counts = server.statistics();
    // 1.6.18 holds 3540, and misses 28594.
    let misses = fifo_misses(&keys, counts["curr_items"] as usize);
    assert_eq!((measured.count("counts.keys.miss"), counts["get_misses"]), (misses, misses));
    assert_eq!(measured.exit, 0);
}

/// Ten times as fast, on several connections of two threads: every record once, and the hits are the server's.
#[test]
fn a_replay_hits_what_the_server_hits() {
    let Some(server) = Server::memcached("-m 16") else { return };
    let keys = keys(30_000);
    let path = file("fast.csv", &lines(&keys, 1_500));
    let flags = "-T 2 -c 8 --depth 8 --on-miss set --replay --arrival poisson --set trace-speed=10";
    let allow = "--set trace-layout=twitter --allow=BROKEN,LOAD,CLIENT,DATA";
    let measured = Measured::run(&server, &format!("--set trace={path} {flags} {allow}"));
    let counts = server.statistics();
    let (hits, misses) = (measured.count("counts.keys.hit"), measured.count("counts.keys.miss"));
    assert_eq!((hits, misses), (counts["get_hits"], counts["get_misses"]));
    assert_eq!(
        (measured.exit, hits + misses, measured.count("client.traces.0.records")),
        (0, 30_000, 30_000)
    );
    // A key is asked for again before its fill is done where it is asked for twice within that time.
    let distinct = keys.iter().collect::<HashSet<_>>().len() as u64;
    assert!(misses >= distinct && counts["curr_items"] == distinct, "{misses}");
    let window_ms = measured.ms("window.duration_ns");
    assert!(window_ms > 1_900.0, "{window_ms}");
}

/// What is due while the server is away is late, or fails, and is not left out.
#[test]
fn a_replay_goes_on_after_its_server_was_killed() {
    let port = i32::from(lasting_port());
    let Some(server) = Server::memcached_at("127.0.0.1", port, "") else { return };
    let address = server.address.clone();
    let path = file("killed.csv", &lines(&keys(6_000), 1_500));
    let flags = "-c 4 --depth 4 --on-miss set --replay --set trace-layout=twitter --timeout 3s --set server-stats=false";
    let allow = "--allow=BROKEN,LOAD,CLIENT,DATA";
    let run = begin(brunt(&format!("run --server {address} -o json:- --set trace={path} {flags} {allow}")));
    server.await_gets(1_000);
    server.kill();
    wait(Duration::from_millis(1_000));
    let _server = Server::memcached_at("127.0.0.1", port, "");
    let measured = Measured::of(run);
    let gets = |what: &str| measured.count(&format!("ops.get.counts.requests.{what}"));
    assert_eq!((measured.exit, gets("scheduled")), (0, 6_000));
    assert!(gets("completed") > 5_900 && measured.at("events.outages.0").is_object());
    // Those of a second and more were late, and count so.
    assert!(measured.ms("ops.get.latency.response_ns.p90") > 100.0);
}

/// Far more is due than the blocks of all connections hold: the run ends at its time, and counts all that was due by then.
#[test]
fn a_replay_that_its_server_cannot_follow_ends_in_time() {
    let server = Server::reference("--service fixed:5ms");
    let path = file("over.csv", &lines(&keys(100_000), 50_000));
    let flags =
        "-T 1 -c 16 --replay --set trace-copies=16 --set trace-layout=twitter -t 1s --set drain=100ms";
    let start = Instant::now();
    let measured =
        Measured::run(&server, &format!("--set trace={path} {flags} --allow=BROKEN,LOAD,CLIENT,DATA"));
    let requests = |what: &str| measured.count(&format!("counts.requests.{what}"));
    assert_eq!((measured.exit, requests("scheduled")), (0, 800_000));
    assert!(requests("unsent") > 700_000 && start.elapsed() < Duration::from_secs(40));
}
