//! Trouble of every kind over unix sockets and through TLS, in every dialect: what TCP's tests know of it (`faults.rs`,
//! `outages.rs`) holds whatever carries the load. Times are not judged here, but that a run ends and its counts add up.

use crate::measured::{ALL, Measured};
use crate::server::{Directory, Server, ended_run, stop_for, wait};
use crate::tls::{Certificates, ProxyBehaviour, tls_proxy};
use std::io::Write;
use std::os::unix::net::UnixListener;
use std::thread::park_timeout;
use std::time::Duration;

const DIALECTS: [&str; 5] = ["memcached-text", "memcached-meta", "memcached-binary", "resp2", "resp3"];

/// How a server is reached, and what it takes on the command line.
struct Front {
    _server: Server,
    address: String,
    flags: String,
    /// Where its path is, gone with it.
    _directory: Option<Directory>,
}

/// The reference server with this script behind a path.
fn by_path(script: &str) -> Front {
    let directory = Directory::new();
    let server = Server::reference_at(&format!("unix:{}", directory.join("socket").display()), script);
    Front {
        address: server.address.clone(),
        _server: server,
        flags: String::new(),
        _directory: Some(directory),
    }
}

/// The same behind a proxy that speaks TLS.
fn by_tls(papers: &Certificates, manners: ProxyBehaviour, script: &str) -> Front {
    let server = Server::reference(script);
    let address = tls_proxy(&server.address, papers.server_config(), manners);
    let flags = format!("--set transport=tls --tls-ca {}", papers.path("ca.pem"));
    Front { _server: server, address, flags, _directory: None }
}

/// One run; its counts and its connections add up, and every fault is a connection that was lost or could not be had.
fn run(front: &Front, protocol: &str, flags: &str) -> Measured {
    let usual = format!("--protocol {protocol} --warmup 0s --allow={ALL} --set server-stats=false");
    let measured = Measured::run(&front.address, &format!("{usual} {} {flags}", front.flags));
    assert_eq!(measured.exit, 0, "{protocol} {flags:?}");
    measured.check_faults();
    measured
}

/// With one request at a time on each connection nothing is lost but what is hit, and that is known by its number: every
/// 250th is reset and every 400th cut, every 70th of the others refused and every 30th of the rest wrong.
#[test]
fn injected_faults_are_the_only_failures() {
    let papers = Certificates::issue();
    let script = "--script-after=300 --reset-every=250 --cut-every=400 --error-every=70 --wrong-every=30";
    let hit = |every: u64, number: &u64| number.is_multiple_of(every);
    let lost = (1..=2_000).filter(|number| hit(250, number) || hit(400, number)).count() as u64;
    let rest = || (1..=2_000).filter(|number| !hit(250, number) && !hit(400, number));
    let refused = rest().filter(|number| hit(70, number)).count() as u64;
    let wrong = rest().filter(|number| !hit(70, number) && hit(30, number)).count() as u64;
    for (index, protocol) in DIALECTS.into_iter().enumerate() {
        let io = ["epoll", "auto"][index % 2];
        let by_tls = papers.as_ref().map(|papers| by_tls(papers, ProxyBehaviour::Upright, script));
        for front in std::iter::once(by_path(script)).chain(by_tls) {
            let measured = run(&front, protocol, &format!("-n 2000 -c 4 --keys 300 --mix get --io {io}"));
            let failed = ["lost", "error", "mismatch"].map(|key| measured.requests(key));
            assert_eq!(failed, [lost, refused, wrong], "{protocol} {}", front.address);
            assert_eq!(measured.requests("completed"), 2_000 - failed.iter().sum::<u64>());
        }
    }
}

/// A server that resets every connection, takes none for a while and is back.
#[test]
fn outages_are_reported() {
    let papers = Certificates::issue();
    let script = "--script-after=300 --outage 150ms:200ms";
    for (protocol, io) in [("memcached-text", "epoll"), ("resp3", "auto")] {
        let by_tls = papers.as_ref().map(|papers| by_tls(papers, ProxyBehaviour::Upright, script));
        for front in std::iter::once(by_path(script)).chain(by_tls) {
            let flags = format!("-r 3k -t 700ms -c 4 --depth 2 --keys 300 --wait sleep --io {io}");
            let measured = run(&front, protocol, &flags);
            assert!(!measured.at("events.outages").as_array().unwrap().is_empty(), "{protocol}");
            assert!(measured.requests("completed") > 500, "{protocol}");
        }
    }
}

/// Connections on which nothing more is said, though they are open: each is given up when its time is over.
#[test]
fn half_open_connections_time_out() {
    let Some(papers) = Certificates::issue() else { return };
    for (protocol, io) in [("memcached-binary", "epoll"), ("resp2", "auto")] {
        let front = by_tls(&papers, ProxyBehaviour::Hushes, "");
        let flags = format!("-n 200 -c 2 --keys 100 --no-preload --timeout 150ms --io {io}");
        let measured = run(&front, protocol, &flags);
        let ended = ["completed", "timeout", "lost"].map(|key| measured.requests(key));
        assert_eq!(ended.iter().sum::<u64>(), 200, "{protocol}");
        assert!(ended[1] > 0 && ended[0] > 0, "{protocol}: {ended:?}");
    }
}

/// A handshake that breaks while keys are stored is tried again, as an attempt to connect is.
#[test]
fn broken_handshakes_in_preload_are_retried() {
    let Some(papers) = Certificates::issue() else { return };
    for io in ["epoll", "auto"] {
        let front = by_tls(&papers, ProxyBehaviour::Jilts, "");
        let measured = run(&front, "memcached-text", &format!("-n 500 -c 4 --keys 2000 --io {io}"));
        assert!(measured.count("counts.phases.preload.requests.completed") >= 2_000);
        assert!(measured.count("client.connections.phases.preload.failed") > 0);
        assert_eq!(measured.count("counts.keys.miss"), 0);
    }
}

/// A Redis behind a path is stopped, goes on, is killed, and another one takes its place.
#[test]
fn unix_socket_servers_can_be_stopped_and_killed() {
    let directory = Directory::new();
    let path = directory.join("redis").display().to_string();
    let Some(server) = Server::redis(&format!("--unixsocket {path}")) else { return };
    let more = "--arrival uniform --wait sleep --warmup 0s --timeout 150ms --allow=BROKEN,LOAD,CLIENT,DATA";
    let all = format!("--protocol resp2 -r 1k -t 2s -c 4 --depth 4 --keys 500 {more}");
    let measured = std::thread::scope(|scope| {
        let run = scope.spawn(|| Measured::run(&format!("unix:{path}"), &all));
        while server.redis_counts("commandstats").get("cmdstat_get").copied().unwrap_or(0) < 300 {
            park_timeout(Duration::from_millis(5));
        }
        stop_for(server.pid(), Duration::from_millis(300));
        wait(Duration::from_millis(200));
        server.kill();
        let _server = Server::redis(&format!("--unixsocket {path}"));
        run.join().unwrap()
    });
    let count = |key| measured.requests(key);
    assert_eq!((measured.exit, count("scheduled")), (0, 2_000));
    assert!(count("timeout") > 0 && count("completed") > 500 && measured.count("counts.keys.miss") > 0);
    assert!(measured.faults(Some("timed_out")) > 0);
    assert!(measured.fact("was restarted during the run").is_some());
}

/// A listener behind a path that is no server, or none.
#[test]
fn socket_paths_without_a_server_are_named() {
    let directory = Directory::new();
    let at = |name: &str| directory.join(name).display().to_string();
    let babbler = UnixListener::bind(at("babbles")).unwrap();
    std::thread::spawn(move || {
        let mut held = Vec::new();
        for stream in babbler.incoming() {
            let mut stream = stream.unwrap();
            let _ = stream.write_all(b"220 mail.test ESMTP\r\n");
            held.push(stream);
        }
    });
    let silent = UnixListener::bind(at("silent")).unwrap();
    // (`collect` would want room for as many as there may ever be.)
    std::thread::spawn(move || {
        let mut held = Vec::new();
        silent.incoming().for_each(|stream| held.push(stream));
    });
    // Its listener is gone, and the file is not.
    drop(UnixListener::bind(at("left")).unwrap());
    for (name, message, of_resp) in [
        ("babbles", "220 mail.test", "220 mail.test"),
        ("silent", "timed", "to HELLO within 200ms"),
        ("left", "refused", "refused"),
        ("none", "No such file", "No such file"),
    ] {
        for (protocol, message) in [("memcached-text", message), ("resp3", of_resp)] {
            let flags = "--timeout 200ms --set server-stats=false";
            let output = ended_run(&format!("--protocol {protocol} -s unix:{} {flags}", at(name)));
            output.is_line(5, &[message]);
        }
    }
}
