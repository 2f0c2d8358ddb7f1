//! What really goes over the wire, from packet captures: the spacing of requests, and the times to their replies beside those that brunt
//! prints.

use super::{interface, is_full};
use crate::joined_fleets::Controller;
use crate::measured::{HOST_DISTURBED, Measured};
use crate::server::{Server, TempFile, alone, ended, temporary, words};
use std::collections::HashMap;
use std::io::{BufRead, BufReader};
use std::net::{Ipv4Addr, UdpSocket};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// What packets behind the last one hold.
const MARK: &str = "end of the capture\n";

/// tcpdump on the loopback interface, for what goes to and from one port.
struct Capture {
    child: Child,
    packets: TempFile,
    marks: UdpSocket,
    port: u16,
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
            // With payload: the total length is more than both headers.
            .arg(format!(
                "(tcp port {port} and (ip[2:2] - ((ip[0]&0xf)<<2) - ((tcp[12]&0xf0)>>2)) != 0) or udp port {}",
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
        Some(Self { child, packets, marks, port: port.parse().unwrap() })
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

    /// Ends the capture.
    fn end(mut self) -> Vec<Packet> {
        self.await_all();
        rustix::process::kill_process(
            rustix::process::Pid::from_child(&self.child),
            rustix::process::Signal::INT,
        )
        .unwrap();
        self.child.wait().unwrap();
        packets(&std::fs::read(&*self.packets).unwrap(), self.port)
    }
}

/// A TCP packet with payload.
struct Packet {
    at_ns: u64,
    is_reply: bool,
    /// The port of the client.
    client: u16,
    payload_bytes: u64,
}

/// Those of a capture file with nanoseconds, in the byte order of this machine.
fn packets(capture: &[u8], server_port: u16) -> Vec<Packet> {
    let word = |at: usize| u32::from_ne_bytes(capture[at..at + 4].try_into().unwrap());
    let short = |at: usize| u16::from_be_bytes([capture[at], capture[at + 1]]);
    assert_eq!(word(0), 0xa1b2_3c4d, "a capture with nanoseconds");
    let (mut at, mut packets) = (24, Vec::new());
    while at + 16 <= capture.len() {
        // Behind the headers of packet and Ethernet.
        let ip = at + 16 + 14;
        if capture.get(ip + 9) == Some(&6) {
            let tcp = ip + usize::from(capture[ip] & 0xf) * 4;
            let headers = tcp - ip + usize::from(capture[tcp + 12] >> 4) * 4;
            let [from, to] = [short(tcp), short(tcp + 2)];
            packets.push(Packet {
                at_ns: u64::from(word(at)) * 1_000_000_000 + u64::from(word(at + 4)),
                is_reply: from == server_port,
                client: if from == server_port { to } else { from },
                payload_bytes: u64::from(short(ip + 2)) - headers as u64,
            });
        }
        at += 16 + word(at + 8) as usize;
    }
    packets
}

/// When requests were seen.
fn request_times(packets: &[Packet]) -> Vec<u64> {
    packets.iter().filter(|packet| !packet.is_reply).map(|packet| packet.at_ns).collect()
}

/// How long after the packet with the last byte of a request that with the last byte of its reply was seen, in the order of requests: all
/// have one length, and all replies.
fn reply_times(packets: &[Packet], message_bytes: [u64; 2]) -> Vec<u64> {
    // Of each connection: bytes seen, and when messages ended, in both directions.
    let mut connections: HashMap<u16, [(u64, Vec<u64>); 2]> = HashMap::new();
    for packet in packets {
        let side = usize::from(packet.is_reply);
        let (bytes, ends) = &mut connections.entry(packet.client).or_default()[side];
        *bytes += packet.payload_bytes;
        ends.resize((*bytes / message_bytes[side]) as usize, packet.at_ns);
    }
    let pairs =
        connections.into_values().flat_map(|[(_, requests), (_, replies)]| requests.into_iter().zip(replies));
    let mut pairs: Vec<(u64, u64)> = pairs.collect();
    pairs.sort_unstable();
    pairs.into_iter().map(|(request_ns, reply_ns)| reply_ns - request_ns).collect()
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
        for io in both_interfaces() {
            if !check_wire(rate, per_second, &io, &mut send_cost_s) {
                return;
            }
        }
        check_gaps_of_mutilate(per_second, send_cost_s);
    }
}

/// As captured, no agent of a fleet sends before the common start, and what their first requests are apart is what the schedule says, but
/// for what clocks are known to.
#[test]
fn agents_of_a_fleet_begin_together_on_the_wire() {
    const AGENTS: u32 = 4;
    /// Between the time that a send is counted at and its packet.
    const SEND_NS: i64 = 500_000;
    const RATE: i64 = 2_000;
    alone();
    let server = Server::reference("");
    let port = server.address.rsplit_once(':').unwrap().1.to_owned();
    ended(&format!("load -s {server} --keys 100")).is(0, &[]);
    let Some(capture) = Capture::begin(&port) else { return };
    let load = format!(
        "-r {RATE} --arrival uniform -t 500ms --warmup 0s -c {AGENTS} --keys 100 --mix get --no-preload --set server-stats=false"
    );
    let controller = Controller::wait(AGENTS, &server, &load);
    let agents: Vec<_> = (0..AGENTS).map(|rank| controller.agent(rank, AGENTS)).collect();
    let run = controller.measured();
    let start_ns = run.at("window.start_unix_ns").as_i64().unwrap();
    let errors = run.at("client.agents").as_array().unwrap().iter();
    let bound_ns = errors.map(|agent| agent["clock_error_ns"].as_i64().unwrap()).max().unwrap();
    // Each agent has one connection with 250 requests; that of the controller, which asks before the start, has few.
    let mut connections: HashMap<u16, Vec<i64>> = HashMap::new();
    for packet in capture.end().iter().filter(|packet| !packet.is_reply) {
        connections.entry(packet.client).or_default().push(packet.at_ns as i64 - start_ns);
    }
    drop(agents);
    let of_agents = connections.into_values().filter(|times| times.len() > 100);
    let mut late_ns: Vec<i64> = of_agents.map(|times| times[0]).collect();
    late_ns.sort_unstable();
    eprintln!("first packets {late_ns:?} ns behind the start; clocks known to {bound_ns} ns");
    assert!(late_ns.len() == AGENTS as usize && late_ns[0] >= -bound_ns, "{late_ns:?}, bound {bound_ns}");
    let scheduled_ns = i64::from(AGENTS - 1) * 1_000_000_000 / RATE;
    let skew_ns = late_ns[late_ns.len() - 1] - late_ns[0];
    // Each of two clocks may be wrong, in opposite directions; agents tell themselves how late they sent.
    let lag_ns = run.at("latency.send_lag_ns.max").as_i64().unwrap();
    let skew_max_ns = scheduled_ns + 2 * bound_ns + lag_ns + SEND_NS;
    eprintln!("skew {skew_ns} ns, at most {skew_max_ns}, of which {lag_ns} late sends");
    assert!(skew_ns <= skew_max_ns, "{late_ns:?}, bound {bound_ns}, late sends {lag_ns}");
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
    let times = request_times(&capture.end());
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

/// epoll first.
fn both_interfaces() -> Vec<String> {
    let mut both = vec![interface(0), interface(1)];
    both.dedup();
    both
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
    // Every packet in the capture is a request or its reply.
    let more = "--keys 1000 --allow=BROKEN,LOAD,CLIENT,DATA --set server-stats=false";
    let measured = Measured::run(&server, &format!("{flags} {more}"));
    let times = request_times(&capture.end());
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

/// The true percentile lies between what is printed and that less the client's part: on the wire, too, where only what the server and both
/// network stacks took is seen. With this many requests in flight on each connection none waits for one.
#[test]
fn replies_on_the_wire_take_what_is_printed_less_the_clients_part() {
    alone();
    let runs: Vec<(&str, String, &str)> = match is_full() {
        false => vec![("5k", interface(0), "hybrid")],
        true => ["1k", "5k", "20k", "50k"]
            .into_iter()
            .flat_map(|rate| both_interfaces().into_iter().map(move |io| (rate, io)))
            .flat_map(|(rate, io)| ["spin", "hybrid", "sleep"].map(|wait| (rate, io.clone(), wait)))
            .collect(),
    };
    eprintln!(
        "| requests/s | interface | wait | prints p50, p90, p99, us | wire | client's part | outside |"
    );
    eprintln!("|---|---|---|---|---|---|---|");
    for (rate, io, wait) in runs {
        if !check_reply_times(rate, &io, wait) {
            return;
        }
    }
}

/// One run; false where nothing can be captured.
fn check_reply_times(rate: &str, io: &str, wait: &str) -> bool {
    let Some(server) = Server::memcached("-t 1") else { return false };
    let port = server.address.rsplit_once(':').unwrap().1.to_owned();
    ended(&format!("load -s {server} --keys 1000")).is(0, &[]);
    let Some(capture) = Capture::begin(&port) else { return false };
    let time = if is_full() { "3s" } else { "1s" };
    let flags =
        format!("-r {rate} -c 16 --depth 64 -t {time} --warmup 0s --no-preload --io {io} --wait {wait}");
    // `get KEY`, and `VALUE KEY 0 200`, the value and `END`, with their line ends.
    let message_bytes = [30 + 6, 30 + 200 + 21];
    let more = "--mix get --keys 1000 --allow=BROKEN,LOAD,CLIENT,DATA --set server-stats=false --protocol memcached-text";
    let measured = Measured::run(&server, &format!("{flags} {more}"));
    let mut wire_ns = reply_times(&capture.end(), message_bytes);
    let sent = measured.requests("sent");
    // Before the schedule the service time without load is measured.
    wire_ns.drain(..wire_ns.len().saturating_sub(sent as usize));
    let found = wire_ns.len() as u64;
    wire_ns.sort_unstable();
    assert!(
        sent - found <= sent / 1000 || measured.is_disturbed(),
        "{found} of {sent} requests in the capture"
    );
    let [mut printed, mut wire, mut part, mut outside] = [[0.0; 3]; 4];
    for (index, (name, quantile)) in [("p50", 0.5), ("p90", 0.9), ("p99", 0.99)].into_iter().enumerate() {
        let us = |path: &str| measured.at(path).as_f64().unwrap() / 1e3;
        printed[index] = us(&format!("latency.response_ns.{name}"));
        part[index] = us(&format!("latency.response_ns.client.{name}"));
        wire[index] = wire_ns[(quantile * found as f64).ceil() as usize - 1] as f64 / 1e3;
        outside[index] =
            (printed[index] - part[index] - wire[index]).max(wire[index] - printed[index]).max(0.0);
    }
    let shown = |us: [f64; 3]| us.map(|us| format!("{us:.1}")).join(", ");
    eprintln!(
        "| {rate} | {io} | {wait} | {} | {} | {} | {} |",
        shown(printed),
        shown(wire),
        shown(part),
        shown(outside)
    );
    // A histogram's bucket, and what a capture on the server's processor adds.
    let tolerance = |us: f64| if is_full() { 1.0 + 0.02 * us } else { 5.0 + 0.1 * us };
    let is_within = outside[0] <= tolerance(printed[0]) && outside[1] <= tolerance(printed[1]);
    assert!(is_within || measured.is_disturbed(), "outside by {outside:?} us");
    true
}
