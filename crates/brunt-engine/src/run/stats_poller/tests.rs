//! Polls over real sockets: what is recorded of servers, and of their failures.

use super::*;
use crate::loopback::{endpoint, plan, run_against, start_server};
use crate::run::blueprint::{Blueprint, DataSets};
use brunt_server::CoreOptions;
use brunt_stats::request_counts::CountEntry;
use brunt_stats::server_evidence::agreement;
use brunt_stats::server_stats::ServerStat;
use std::io::{Read, Write};
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, TcpListener};

const MS: u64 = 1_000_000;

/// A server with one reply to everything; yields its address and a message per accepted connection.
fn speaker(host: std::net::IpAddr, says: &'static [u8]) -> (SocketAddr, mpsc::Receiver<()>) {
    let listener = TcpListener::bind((host, 0)).unwrap();
    let address = listener.local_addr().unwrap();
    let (accepted, count) = mpsc::channel();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            let _ = accepted.send(());
            std::thread::spawn(move || {
                let mut bytes = [0; 64];
                while stream.read(&mut bytes).is_ok_and(|len| len > 0) && !says.is_empty() {
                    let _ = stream.write_all(says);
                }
            });
        }
    });
    (address, count)
}

fn ask_all(address: SocketAddr) -> ServerRecord {
    let (snapshots, heard) = mpsc::channel();
    let asked = vec![(endpoint(address).remove(0), StatsQuery::Stats)];
    let pollers = StatsPollers::start(asked, None, Clock::start(), &snapshots).unwrap();
    pollers.poll_after_preload();
    let record = pollers.finish().remove(0);
    let heard: Vec<Snapshot> = heard.try_iter().map(|(_, snapshot)| snapshot).collect();
    assert_eq!(heard, record.snapshots(), "each listener hears every answer");
    record
}

#[test]
fn server_counts_match_requests() {
    for (toml, askings) in [
        ("keys = 200\nwarmup = '0s'\nrequests = 3000\nmix = 'get=4,mget=1,set=2,incr=1,delete=1,touch=1'", 3),
        ("keys = 200\nwarmup = '200ms'\ntime = '2100ms'\nrate = 2000", 6),
        ("keys = 200\nwarmup = '0s'\nrequests = 3000\npreload = false", 2),
    ] {
        let data = run_against(start_server(CoreOptions::default()), toml).unwrap();
        let [record] = data.server_records.as_slice() else { panic!("one server, one record") };
        assert!(record.is_complete && record.trouble.is_none(), "{:?}", record.trouble);
        let snapshots = record.snapshots();
        assert!(snapshots.len() >= askings, "{toml}: {} snapshots", snapshots.len());
        assert!(snapshots.is_sorted_by_key(|snapshot| snapshot.at_ns));
        assert_eq!(snapshots[0].requests(), Some(0), "the first comes before everything");
        let plan = plan(toml);
        let prepared = record.prepared.as_ref().map(|snapshot| snapshot.get(ServerStat::CmdSet).unwrap());
        assert_eq!(prepared, plan.preload.then(|| plan.preload_stores()), "{toml}");
        let counts: Vec<CountEntry> = data.intervals.request_counts().entries().collect();
        let comparisons = agreement(&plan, &counts, &data.server_records);
        assert_eq!(comparisons.len(), 16, "every count is compared");
        for comparison in comparisons {
            assert!(comparison.least == comparison.most && comparison.difference() == 0, "{comparison:?}");
        }
        // Between the start of the schedule and the end, on the grid of the window; a busy host is late.
        let on_grid = |snapshot: &&Snapshot| {
            let behind_ns = (snapshot.asked_ns + PERIOD_NS).checked_sub(data.times.measure_ns % PERIOD_NS);
            behind_ns.unwrap() % PERIOD_NS < 500 * MS
        };
        let scheduled = snapshots.iter().filter(|snapshot| snapshot.asked_ns > data.times.start_ns);
        assert!(scheduled.clone().count() >= 1);
        let last_ns = snapshots.last().unwrap().at_ns;
        assert!(
            scheduled.filter(|snapshot| snapshot.at_ns < last_ns).all(|snapshot| on_grid(&snapshot)),
            "{toml}"
        );
        assert!(last_ns >= data.times.drained_ns);
    }
}

#[test]
fn stats_polling_can_be_disabled() {
    let address = start_server(CoreOptions::default());
    let toml = "keys = 20\nwarmup = '0s'\nrequests = 100\nconnections = 3\nthreads = 1\nserver-stats = false";
    assert!(run_against(address, toml).unwrap().server_records.is_empty());
    let asked = ask_all(address);
    // The three connections of the workers, and the one that asks now.
    assert_eq!(asked.snapshots()[0].get(ServerStat::TotalConnections), Some(4));
}

#[test]
fn a_server_on_another_family_answers() {
    if TcpListener::bind((Ipv6Addr::LOCALHOST, 0)).is_err() {
        eprintln!("SKIPPED: no IPv6 here");
        return;
    }
    let (address, _) =
        speaker(Ipv6Addr::LOCALHOST.into(), b"STAT cmd_get 7\r\nSTAT rusage_user 1.5\r\nEND\r\n");
    let record = ask_all(address);
    assert_eq!(record.snapshots().len(), 3, "{:?}", record.trouble);
    assert_eq!(record.snapshots()[2].get(ServerStat::RusageUser), Some(1_500_000_000));
}

#[test]
fn servers_without_statistics_are_polled_once() {
    for (says, reason) in [
        (&b"ERROR\r\n"[..], "it answers \"ERROR\""),
        (b"HTTP/1.1 400 Bad Request\r\n\r\n", "it answers \"HTTP/1.1 400 Bad Request\""),
        (b"END\r\n", "its reply is empty"),
        (b"", "connection closed"),
    ] {
        let (address, accepted) = speaker(Ipv4Addr::LOCALHOST.into(), says);
        let record = ask_all(address);
        assert_eq!(record.trouble.as_deref(), Some(reason));
        assert!(record.snapshots().is_empty() && !record.is_complete && record.prepared.is_none());
        assert_eq!(accepted.try_iter().count(), 1);
    }
    let free = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap().local_addr().unwrap();
    assert!(ask_all(free).trouble.unwrap().contains("refused"));
}

#[test]
fn silent_servers_time_out_after_a_second() {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let clock = Clock::start();
    let mut poller =
        StatsPoller::new(endpoint(listener.local_addr().unwrap()).remove(0), StatsQuery::Stats, clock);
    let begun_ns = clock.now_ns();
    assert!(!poller.poll());
    let took_ns = clock.now_ns() - begun_ns;
    assert!(took_ns >= 1_000 * MS, "{took_ns}");
    assert_eq!(poller.record.trouble.as_deref(), Some("no reply within 1 s"));
}

/// Single bytes extend no time limit: neither of the reply nor of a TLS handshake.
#[test]
fn slow_replies_time_out_after_a_second() {
    use crate::transport::tls_client::TlsSettings;
    use brunt_plan::sockets::TlsOptions;
    let options = TlsOptions { is_insecure: true, ..TlsOptions::default() };
    let client = TlsSettings::read(&options).unwrap().toward("cache.test").unwrap();
    // A record of a handshake that does not end, and a line that does not.
    for (tls, head) in [(None, &b"STAT "[..]), (Some(client), b"\x16\x03\x03\x3f\xff\x02\x00\x3f\xfb")] {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let address = listener.local_addr().unwrap();
        std::thread::spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            let _ = stream.write_all(head);
            while stream.write_all(b"x").is_ok() {
                std::thread::park_timeout(Duration::from_millis(50));
            }
        });
        let clock = Clock::start();
        let mut endpoint = endpoint(address).remove(0);
        endpoint.tls = tls;
        let mut poller = StatsPoller::new(endpoint, StatsQuery::Stats, clock);
        let begun_ns = clock.now_ns();
        assert!(!poller.poll());
        // Half a second for a busy host.
        assert!((1_000 * MS..1_500 * MS).contains(&(clock.now_ns() - begun_ns)), "{begun_ns}");
        assert_eq!(poller.record.trouble.as_deref(), Some("no reply within 1 s"));
    }
}

/// Errors of Redis to INFO and to the connection setup.
#[test]
fn failed_info_has_a_reason() {
    let greets = "protocol = 'resp3'\nserver = 'a'";
    let codec = |toml: &str| {
        let blueprint = Blueprint::new(plan(toml), endpoint(([127, 0, 0, 1], 1).into()), DataSets::ToStore);
        Box::new(crate::codecs::resp_codec(&blueprint.plan, blueprint.plan.protocol).unwrap())
    };
    for (toml, says, reason) in [
        ("protocol = 'resp2'\nserver = 'a'", &b"-NOPERM no\r\n"[..], "it answers \"NOPERM no\""),
        ("protocol = 'resp2'\nserver = 'a'", b":5\r\n", "its answer to INFO is no text"),
        ("protocol = 'resp2'\nserver = 'a'", b"ERROR\r\n", "it answers \"ERROR\\r\\n\""),
        (greets, b"-NOAUTH who\r\n", "HELLO refused: NOAUTH who"),
        (greets, b"$2\r\nno\r\n", "invalid reply to connection setup"),
        (greets, b"", "connection closed"),
    ] {
        let (address, accepted) = speaker(Ipv4Addr::LOCALHOST.into(), says);
        let pollers = StatsPollers::start(
            vec![(endpoint(address).remove(0), StatsQuery::Info(codec(toml)))],
            None,
            Clock::start(),
            &mpsc::channel().0,
        );
        let pollers = pollers.unwrap();
        pollers.poll_after_preload();
        let record = pollers.finish().remove(0);
        assert_eq!(record.trouble.as_deref(), Some(reason));
        assert!(record.snapshots().is_empty() && !record.is_complete);
        assert_eq!(accepted.try_iter().count(), 1);
    }
}

#[test]
fn lost_servers_are_dropped_and_returning_ones_are_not() {
    let clock = Clock::start();
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let address = listener.local_addr().unwrap();
    let answer = |listener: &TcpListener| {
        let (mut stream, _) = listener.accept().unwrap();
        let mut question = [0; stats::REQUEST.len()];
        stream.read_exact(&mut question).unwrap();
        assert_eq!(question, stats::REQUEST);
        stream.write_all(b"STAT pid 1\r\nEND\r\n").unwrap();
    };
    let answering = |listener: TcpListener| {
        std::thread::spawn(move || {
            answer(&listener);
            listener
        })
    };
    let mut poller = StatsPoller::new(endpoint(address).remove(0), StatsQuery::Stats, clock);
    let server = answering(listener);
    assert!(poller.poll());
    let listener = server.join().unwrap();
    // That connection is closed; whether it is noticed by the write or by the read is the kernel's business.
    assert!(!poller.poll() && !poller.has_stopped);
    let server = answering(listener);
    assert!(poller.poll() && poller.failures == 0 && poller.record.trouble.is_none());
    drop(server.join().unwrap());
    for failure in 1..=FAILURES_MAX {
        assert!(!poller.poll());
        assert_eq!((poller.failures, poller.has_stopped), (failure, failure == FAILURES_MAX));
    }
    assert_eq!((poller.next_ns(), poller.record.snapshots().len()), (u64::MAX, 2));
    assert!(poller.record.trouble.is_some());
}

#[test]
fn polls_lie_on_the_grid_of_the_window() {
    let mut poller =
        StatsPoller::new(endpoint(([127, 0, 0, 1], 1).into()).remove(0), StatsQuery::Stats, Clock::start());
    let table = [
        // (asked, grid) → next
        (1_000 * MS, None, 2_000 * MS),
        (1_970 * MS, Some(2_000 * MS), 3_000 * MS),
        (1_850 * MS, Some(2_000 * MS), 2_000 * MS),
        (1_300 * MS, Some(5_500 * MS), 1_500 * MS),
        (7_510 * MS, Some(5_500 * MS), 8_500 * MS),
        (7_510 * MS, Some(9_700 * MS), 7_700 * MS),
        // Rows of 1.2 s after two minutes, and so on.
        (120_000 * MS, Some(500 * MS), 120_500 * MS),
        (120_500 * MS, Some(500 * MS), 121_700 * MS),
        (300_500 * MS, Some(500 * MS), 301_300 * MS),
        (3_600_500 * MS, Some(500 * MS), 3_603_700 * MS),
    ];
    for (asked_ns, grid_ns, next_ns) in table {
        (poller.asked_ns, poller.grid_ns) = (asked_ns, grid_ns);
        assert_eq!(poller.next_ns(), next_ns, "{asked_ns} {grid_ns:?}");
    }
    (poller.asked_ns, poller.grid_ns) = (300_500 * MS, Some(500 * MS));
    for (interval_ms, next_ns) in
        [(100, 301_500 * MS), (1_000, 301_500 * MS), (7_000, 301_500 * MS), (9_000, 306_500 * MS)]
    {
        poller.interval = Some(DurationNs::from_millis(interval_ms));
        assert_eq!(poller.next_ns(), next_ns, "{interval_ms} ms");
    }
}
