//! What really goes over the wire: the spacing of requests, from a packet capture.

use super::{interface, is_full};
use crate::measured::{HOST_DISTURBED, Measured};
use crate::server::{Server, TempFile, alone, ended, temporary, words};
use std::io::{BufRead, BufReader};
use std::net::{Ipv4Addr, UdpSocket};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// What packets behind the last one hold.
const MARK: &str = "end of the capture\n";

/// tcpdump on the loopback interface, for requests to one port.
struct Capture {
    child: Child,
    packets: TempFile,
    marks: UdpSocket,
}

impl Capture {
    /// `None` (and a word on stderr) where tcpdump is not installed and that was allowed.
    fn begin(port: &str) -> Option<Self> {
        let packets = temporary("packets.pcap");
        let marks = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let marks_at = marks.local_addr().unwrap();
        marks.connect(marks_at).unwrap();
        let spawned = Command::new("tcpdump")
            .args(words("-i lo -n -s 96 -B 65536 --time-stamp-precision=nano -Z root -U -w"))
            .arg(&*packets)
            // Requests only: to the server, with payload (total length beyond both headers).
            .arg(format!(
                "(tcp dst port {port} and (ip[2:2] - ((ip[0]&0xf)<<2) - ((tcp[12]&0xf0)>>2)) != 0) or udp port {}",
                marks_at.port()
            ))
            .stderr(Stdio::piped())
            .spawn();
        let mut child = match spawned {
            Ok(child) => child,
            Err(_) if std::env::var_os("BRUNT_TEST_WITHOUT_SERVERS").is_some() => {
                eprintln!("SKIPPED: tcpdump is not installed");
                return None;
            }
            Err(error) => panic!("tcpdump must be installed (cargo xtask test does that): {error}"),
        };
        let mut messages = BufReader::new(child.stderr.take().unwrap());
        let mut line = String::new();
        while !line.contains("listening on") {
            line.clear();
            if messages.read_line(&mut line).unwrap() == 0 || line.contains("permission") {
                let _ = child.wait();
                assert!(std::env::var_os("CI").is_none(), "tcpdump may not capture here: {line}");
                eprintln!("SKIPPED: tcpdump may not capture here: {}", line.trim());
                return None;
            }
        }
        Some(Self { child, packets, marks })
    }

    /// Waits until everything up to now is in the file. The kernel hands packets over in blocks of 256 KiB, or after a second:
    /// packets behind the last one fill its block.
    fn await_all(&self) {
        let (start, mark) = (Instant::now(), MARK.repeat(16));
        let is_marked = |file: Vec<u8>| {
            let tail = &file[file.len().saturating_sub(4096)..];
            tail.windows(MARK.len()).any(|window| window == MARK.as_bytes())
        };
        while !is_marked(std::fs::read(&*self.packets).unwrap()) {
            assert!(start.elapsed() < Duration::from_secs(20), "tcpdump does not write what it captures");
            for _ in 0..200 {
                // The socket's own buffer may be full: nothing reads from it.
                let _ = self.marks.send(mark.as_bytes());
            }
            std::thread::park_timeout(Duration::from_millis(5));
        }
    }

    /// Ends the capture; the times of all requests' packets in nanoseconds.
    fn end(mut self) -> Vec<u64> {
        self.await_all();
        rustix::process::kill_process(
            rustix::process::Pid::from_child(&self.child),
            rustix::process::Signal::INT,
        )
        .unwrap();
        self.child.wait().unwrap();
        let bytes = std::fs::read(&*self.packets).unwrap();
        packet_times(&bytes)
    }
}

/// The times of the TCP packets of a capture file with nanoseconds, in the byte order of this machine.
fn packet_times(capture: &[u8]) -> Vec<u64> {
    let word = |at: usize| u32::from_ne_bytes(capture[at..at + 4].try_into().unwrap());
    assert_eq!(word(0), 0xa1b2_3c4d, "a capture with nanoseconds");
    let (mut at, mut times) = (24, Vec::new());
    while at + 16 <= capture.len() {
        // Behind the headers of packet and Ethernet, IPv4 has its protocol here.
        if capture.get(at + 16 + 14 + 9) == Some(&6) {
            times.push(u64::from(word(at)) * 1_000_000_000 + u64::from(word(at + 4)));
        }
        at += 16 + word(at + 8) as usize;
    }
    times
}

/// The largest distance between the distribution of the gaps and this one, of which the argument is in seconds.
fn distance_to(times: &[u64], below: impl Fn(f64) -> f64) -> f64 {
    let mut gaps: Vec<f64> = times.windows(2).map(|pair| (pair[1] - pair[0]) as f64 / 1e9).collect();
    gaps.sort_by(f64::total_cmp);
    let count = gaps.len() as f64;
    let distance = |(index, gap): (usize, &f64)| {
        let expected = below(*gap);
        (expected - index as f64 / count).abs().max((expected - (index + 1) as f64 / count).abs())
    };
    gaps.iter().enumerate().map(distance).fold(0.0, f64::max)
}

/// Poisson arrivals are Poisson on the wire, but for what one thread cannot do: send two requests in less than the time
/// of one send. With a send cost c the gaps below c are missing, so that the distance is about 1 − e^(−rate·c). What a send costs
/// is measured on epoll, where each is a call; that of io_uring is no dearer.
#[test]
fn poisson_arrivals_are_poisson_on_the_wire() {
    alone();
    let rates: &[(&str, f64)] = if is_full() { &[("5k", 5e3), ("20k", 2e4)] } else { &[("5k", 5e3)] };
    for &(rate, per_second) in rates {
        let mut send_cost_s = 0.0;
        let mut both = vec!["epoll".to_owned(), interface(1)];
        both.dedup();
        for io in both {
            if !check_wire(rate, per_second, &io, &mut send_cost_s) {
                return;
            }
        }
        check_gaps_of_mutilate(per_second, send_cost_s);
    }
}

/// The same of mutilate's command line: gaps follow the Pareto law of `fb_ia`, whatever the number of connections. At 0 its density is
/// rate / (1 - shape), so that this much more of it is missing below the cost of a send.
fn check_gaps_of_mutilate(per_second: f64, send_cost_s: f64) {
    const SHAPE: f64 = 0.154_971;
    let server = Server::reference("");
    let port = server.address.rsplit_once(':').unwrap().1.to_owned();
    let time = if is_full() { "10" } else { "1" };
    let Some(capture) = Capture::begin(&port) else { return };
    let rate = format!("{per_second:.0}");
    let options = format!("-i fb_ia -c 16 --depth 32 --noload -t {time} -q {rate}");
    let output = ended(&format!("mutilate -s {server} {options}"));
    let times = capture.end();
    let (text, said) = (&output.out, &output.said);
    let total = text.split_once(" QPS = ").and_then(|(_, rest)| rest.split_once('(')?.1.split_once(" /"));
    let total: u64 = total.unwrap_or_else(|| panic!("no requests are told")).0.parse().unwrap();
    let scale = (1.0 - SHAPE) / per_second;
    let distance = distance_to(&times, |gap| 1.0 - (1.0 + SHAPE * gap / scale).powf(-1.0 / SHAPE));
    let bound = 1.0 - (-send_cost_s / scale).exp() + 0.01;
    eprintln!(
        "wire of mutilate -q {rate} -i fb_ia: KS distance {distance:.4}, bound {bound:.4}, {} packets of {total} requests",
        times.len()
    );
    let (missing_max, allowed) = if is_full() { (total / 50, bound) } else { (total / 5, 3.0 * bound) };
    let is_pareto = total.abs_diff(times.len() as u64) <= missing_max && distance <= allowed;
    let host = if is_full() && said.contains("CLIENT: ") { HOST_DISTURBED } else { "" };
    let is_excused = !is_full() && said.contains("CLIENT: ");
    assert!(is_pareto || is_excused, "{host} KS distance {distance}, bound {bound}");
}

/// One run, epoll's first; false where nothing can be captured.
fn check_wire(rate: &str, per_second: f64, io: &str, send_cost_s: &mut f64) -> bool {
    let server = Server::reference("");
    let port = server.address.rsplit_once(':').unwrap().1.to_owned();
    let time = if is_full() { "10s" } else { "600ms" };
    // The data set is stored before the capture begins.
    ended(&format!("load -s {server} --keys 1000")).is(0, &[]);
    let Some(capture) = Capture::begin(&port) else { return false };
    let flags = format!("-r {rate} -c 16 --depth 64 -t {time} --warmup 0s --no-preload --io {io}");
    // Every packet in the capture is a request.
    let more = "--keys 1000 --allow=BROKEN,LOAD,CLIENT,DATA --set server-stats=false";
    let measured = Measured::run(&server, &format!("{flags} {more}"));
    let times = capture.end();
    *send_cost_s = measured.at("client.send_cost_ns.p50").as_f64().map_or(*send_cost_s, |ns| ns / 1e9);
    let sent = measured.requests("sent");
    let missing = sent.abs_diff(times.len() as u64);
    let bound = 1.0 - (-per_second * *send_cost_s).exp() + 0.01;
    let distance = distance_to(&times, |gap| 1.0 - (-per_second * gap).exp());
    eprintln!(
        "wire at {rate}/s, {io}: KS distance {distance:.4}, bound {bound:.4}, send cost p50 {:.2} us, {} packets of {sent} requests",
        *send_cost_s * 1e6,
        times.len()
    );
    // Requests that are due together and find the same connection leave in one packet: after a stop of the host of more than
    // sixteen gaps. A short run on a busy machine is held to three times the bound: bursts and pacing are ten times beyond.
    let (missing_max, allowed) = if is_full() { (sent / 50, bound) } else { (sent / 5, 3.0 * bound) };
    let is_poisson = missing <= missing_max && distance <= allowed;
    assert!(is_poisson || measured.is_disturbed(), "KS distance {distance}, bound {bound}");
    true
}
