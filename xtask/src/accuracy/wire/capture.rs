//! tcpdump on the loopback interface, for what goes to and from one port: the TCP segments with data, or that open a connection.
//!
//! What it writes is pcap with nanoseconds in this machine's byte order, Ethernet, IPv4; a packet that is anything else is left out, a file
//! that is anything else is an error.
//! Not AF_PACKET of our own: rings mapped into memory take `unsafe`, and a call per packet takes more of the host than is
//! left for what is measured. Invariant: a capture that ends well holds every packet until then but for those that the
//! kernel dropped: its last packet is one that is sent to end it.

use crate::process::Process;
use anyhow::{Context, bail, ensure};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use std::io::{BufRead, BufReader, Read, Seek, SeekFrom};
use std::net::{Ipv4Addr, UdpSocket};
use std::path::PathBuf;
use std::process::{ChildStderr, Stdio};
use std::time::{Duration, Instant};

/// Of a packet: its headers, with room, and a reply, that of a get of a value of 200 bytes for each request in flight.
const HEADER_BYTES: u32 = 128;
const REPLY_BYTES: u32 = 256;
/// The most that a packet has.
const PACKET_BYTES_MAX: u32 = 65_535;
/// Kibibytes for what tcpdump has not read yet: it comes last, and two seconds at 60 000 requests/s take less.
const BUFFER_KIB: u32 = 131_072;
/// What the packets behind the last one hold, repeated to [`MARK_REPEATS`] of it.
const END_MARK: &str = "end of the capture\n";
const MARK_REPEATS: usize = 16;
/// Packets are handed over in blocks of 256 KiB, or after a second: so many of ours fill a part of one.
const MARKS: usize = 200;
/// How long tcpdump may take to begin, or to write what was captured.
const PATIENCE: Duration = Duration::from_secs(20);

/// A capture that runs.
pub(super) struct Capture {
    tcpdump: Process,
    messages: BufReader<ChildStderr>,
    path: PathBuf,
    marks: UdpSocket,
}

/// What was captured.
pub(super) struct Captured {
    pub(super) file: Vec<u8>,
    /// Packets that the kernel dropped for want of room, as tcpdump says.
    pub(super) dropped: u64,
}

impl Capture {
    /// Starts to capture on a CPU, into a file, for this number of requests in flight on a connection.
    ///
    /// # Errors
    /// Packets cannot be captured here.
    pub(super) fn start(port: u16, depth: u32, cpu: usize, path: PathBuf) -> anyhow::Result<Self> {
        let marks = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0))?;
        marks.connect(marks.local_addr()?)?;
        let has_data = "ip[2:2] - ((ip[0] & 0xf) << 2) - ((tcp[12] & 0xf0) >> 2) != 0";
        let filter = format!(
            "(tcp port {port} and (tcp[tcpflags] & tcp-syn != 0 or {has_data})) or udp port {}",
            marks.local_addr()?.port()
        );
        let snapshot_bytes =
            (depth.saturating_mul(REPLY_BYTES).saturating_add(HEADER_BYTES)).min(PACKET_BYTES_MAX);
        let options = format!(
            "-n 19 taskset -c {cpu} tcpdump -i lo -n -s {snapshot_bytes} -B {BUFFER_KIB} --time-stamp-precision=nano -Z root -w"
        );
        // By its niceness, reading packets waits for what is measured.
        let mut command = Process::command("nice");
        command.args(options.split(' ')).args([path.as_os_str(), filter.as_ref()]);
        let mut tcpdump = Process::start(command.stdout(Stdio::null()).stderr(Stdio::piped()))?;
        let mut messages = BufReader::new(tcpdump.0.stderr.take().context("tcpdump has no standard error")?);
        let (mut line, mut last) = (String::new(), String::new());
        while !line.contains("listening on") {
            last = if line.trim().is_empty() { last } else { line.trim().to_owned() };
            line.clear();
            let is_running = messages.read_line(&mut line)? > 0;
            ensure!(is_running, "packets cannot be captured here: {last}");
        }
        Ok(Self { tcpdump, messages, path, marks })
    }

    /// Ends it; the file is removed.
    ///
    /// # Errors
    /// tcpdump does not write what it captured, or cannot be ended.
    pub(super) fn end(mut self) -> anyhow::Result<Captured> {
        self.await_all()?;
        kill(Pid::from_raw(self.tcpdump.id().cast_signed()), Signal::SIGINT)?;
        let mut said = String::new();
        self.messages.read_to_string(&mut said)?;
        let status = self.tcpdump.0.wait()?;
        ensure!(status.success(), "tcpdump ended with {status}: {}", said.trim());
        let file = std::fs::read(&self.path)?;
        Ok(Captured { file, dropped: dropped(&said).with_context(|| format!("tcpdump said '{said}'"))? })
    }

    /// Waits until everything up to now is in the file: packets of ours behind it push it out of the kernel's blocks and
    /// tcpdump's buffer.
    fn await_all(&self) -> anyhow::Result<()> {
        let (start, mark) = (Instant::now(), END_MARK.repeat(MARK_REPEATS));
        while start.elapsed() < PATIENCE {
            for _ in 0..MARKS {
                // The socket's own buffer may be full: nothing reads from it.
                let _ = self.marks.send(mark.as_bytes());
            }
            std::thread::park_timeout(Duration::from_millis(5));
            let mut file = std::fs::File::open(&self.path)?;
            let length = file.metadata()?.len();
            file.seek(SeekFrom::Start(length.saturating_sub(4096)))?;
            let mut tail = Vec::new();
            file.read_to_end(&mut tail)?;
            if tail.windows(END_MARK.len()).any(|window| window == END_MARK.as_bytes()) {
                return Ok(());
            }
        }
        bail!("tcpdump has not written all packets after {} s", PATIENCE.as_secs())
    }
}

impl Drop for Capture {
    fn drop(&mut self) {
        // The file may be gone; then there is nothing to do.
        let _ = std::fs::remove_file(&self.path);
    }
}

/// `0 packets dropped by kernel`.
fn dropped(said: &str) -> Option<u64> {
    let line = said.lines().find(|line| line.contains("dropped by kernel"))?;
    line.split_whitespace().next()?.parse().ok()
}

// --- What was captured ---

/// Of the file, and of each packet in it.
const FILE_HEADER: usize = 24;
const PACKET_HEADER: usize = 16;
const NANOSECONDS: u32 = 0xa1b2_3c4d;
const ETHERNET: u32 = 1;
const ETHERNET_HEADER: usize = 14;
const TCP: u8 = 6;
const SYN: u8 = 2;

/// Which of the two ends sent it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Side {
    Client,
    Server,
}

/// One segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Segment<'a> {
    /// By the wall clock, since 1970.
    pub(super) time_ns: u64,
    pub(super) client_port: u16,
    pub(super) from: Side,
    pub(super) sequence: u32,
    /// It opens the connection: its first byte has the sequence number behind this one.
    pub(super) is_syn: bool,
    /// Bytes of data on the wire.
    pub(super) length: usize,
    /// Those of them that were captured: all, or the first ones.
    pub(super) bytes: &'a [u8],
}

/// The segments from and to a server's port, in the order of their capture.
///
/// # Errors
/// It is not a capture file of the expected kind.
pub(super) fn segments(file: &[u8], server_port: u16) -> anyhow::Result<Vec<Segment<'_>>> {
    let header = file.get(..FILE_HEADER).context("the capture has no header")?;
    ensure!(word(header, 0) == NANOSECONDS, "the capture has no nanoseconds");
    ensure!(word(header, 20) == ETHERNET, "the capture is not of an Ethernet or loopback interface");
    let (mut at, mut segments) = (FILE_HEADER, Vec::new());
    while let Some(header) = file.get(at..at + PACKET_HEADER) {
        let time_ns = u64::from(word(header, 0)) * 1_000_000_000 + u64::from(word(header, 4));
        let start = at + PACKET_HEADER;
        let end = start + word(header, 8) as usize;
        let packet = file.get(start..end).context("the capture ends within a packet")?;
        segments.extend(segment(time_ns, packet, server_port));
        at = end;
    }
    Ok(segments)
}

fn segment(time_ns: u64, packet: &[u8], server_port: u16) -> Option<Segment<'_>> {
    let ip = packet.get(ETHERNET_HEADER..)?;
    let is_tcp_over_ipv4 = packet[12..14] == [0x08, 0x00] && *ip.get(9)? == TCP;
    if !is_tcp_over_ipv4 {
        return None;
    }
    let ip_header = usize::from(ip[0] & 0xf) * 4;
    let tcp = ip.get(ip_header..)?;
    let headers = ip_header + usize::from(tcp.get(12)? >> 4) * 4;
    let length = usize::from(half(ip, 2)).checked_sub(headers)?;
    let is_syn = *tcp.get(13)? & SYN != 0;
    if length == 0 && !is_syn {
        return None;
    }
    let (source, destination) = (half(tcp, 0), half(tcp, 2));
    let (client_port, from) = match (source == server_port, destination == server_port) {
        (true, _) => (destination, Side::Server),
        (_, true) => (source, Side::Client),
        _ => return None,
    };
    let bytes = ip.get(headers..).unwrap_or_default();
    let bytes = &bytes[..bytes.len().min(length)];
    let sequence = u32::from_be_bytes(tcp[4..8].try_into().ok()?);
    Some(Segment { time_ns, client_port, from, sequence, is_syn, length, bytes })
}

/// Four bytes in this machine's order.
fn word(bytes: &[u8], at: usize) -> u32 {
    u32::from_ne_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])
}

/// Two bytes in the network's order.
fn half(bytes: &[u8], at: usize) -> u16 {
    u16::from_be_bytes([bytes[at], bytes[at + 1]])
}

#[cfg(test)]
mod tests {
    use super::super::pairing::pair;
    use super::*;
    use std::io::Write;
    use std::net::{TcpListener, TcpStream};

    #[test]
    fn drops_are_parsed() {
        let said = "12 packets captured\n24 packets received by filter\n3 packets dropped by kernel\n";
        assert_eq!(dropped(said), Some(3));
        assert_eq!(dropped("tcpdump: no such device\n"), None);
    }

    /// Answers gets with a miss, the last byte `DELAY` behind the first ones.
    fn answer(mut stream: TcpStream) {
        stream.set_nodelay(true).unwrap();
        let mut request = [0; 7];
        while stream.read_exact(&mut request).is_ok() {
            stream.write_all(b"EN").unwrap();
            let start = Instant::now();
            while start.elapsed() < DELAY {
                std::thread::yield_now();
            }
            stream.write_all(b"D\r\n").unwrap();
        }
    }

    const DELAY: Duration = Duration::from_millis(2);

    /// For a second, a client that takes its own times: the wire's lie between what the server waits and what it takes.
    #[test]
    fn captured_times_lie_between_those_of_both_ends() {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let address = listener.local_addr().unwrap();
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("packets.pcap");
        let capture = match Capture::start(address.port(), 1, 0, path.clone()) {
            Ok(capture) => capture,
            Err(reason) => {
                assert!(!crate::programs::in_continuous_integration(), "{reason}");
                return eprintln!("SKIPPED: {reason}");
            }
        };
        let server = std::thread::spawn(move || answer(listener.accept().unwrap().0));
        let mut stream = TcpStream::connect(address).unwrap();
        stream.set_nodelay(true).unwrap();
        let start = Instant::now();
        let mut times_ns = Vec::new();
        while start.elapsed() < Duration::from_secs(1) {
            let sent = Instant::now();
            stream.write_all(b"get a\r\n").unwrap();
            stream.read_exact(&mut [0; 5]).unwrap();
            times_ns.push(sent.elapsed().as_nanos() as u64);
        }
        drop(stream);
        server.join().unwrap();
        let captured = capture.end().unwrap();
        assert!(!path.exists());
        let pairing = pair(&segments(&captured.file, address.port()).unwrap());
        assert_eq!((captured.dropped, pairing.unpaired), (0, 0));
        assert_eq!(pairing.exchanges.len(), times_ns.len());
        for (exchange, taken_ns) in pairing.exchanges.iter().zip(times_ns) {
            let wire_ns = exchange.reply_ns - exchange.request_ns;
            let waited_ns = DELAY.as_nanos() as u64;
            assert!((waited_ns..=taken_ns).contains(&wire_ns), "{wire_ns} of {taken_ns} ns");
        }
    }

    const SERVER_PORT: u16 = 11211;

    /// A packet as it is in the file: of `data`, the first `captured` bytes.
    fn packet(ports: [u16; 2], protocol: u8, flags: u8, data: &[u8], captured: usize) -> Vec<u8> {
        let mut bytes = vec![0; 12];
        bytes.extend([0x08, 0x00]);
        let total = (20 + 32 + data.len()) as u16;
        bytes.extend([0x45, 0]);
        bytes.extend(total.to_be_bytes());
        bytes.extend([0, 0, 0, 0, 64, protocol, 0, 0, 127, 0, 0, 1, 127, 0, 0, 1]);
        bytes.extend(ports.map(u16::to_be_bytes).concat());
        bytes.extend(7_u32.to_be_bytes());
        bytes.extend([0, 0, 0, 0, 0x80, flags]);
        bytes.extend([0; 18]);
        bytes.extend(&data[..captured]);
        let mut record = [1_u32, 5, bytes.len() as u32, u32::from(total) + 14].map(u32::to_ne_bytes).concat();
        record.extend(bytes);
        record
    }

    fn file(packets: &[Vec<u8>]) -> Vec<u8> {
        let mut file = [NANOSECONDS, 0, 0, 0, 384, ETHERNET].map(u32::to_ne_bytes).concat();
        file.extend(packets.concat());
        file
    }

    #[test]
    fn captures_are_read() {
        const PUSH: u8 = 0x18;
        let capture = file(&[
            packet([40000, SERVER_PORT], TCP, SYN, b"", 0),
            packet([40000, SERVER_PORT], TCP, PUSH, b"get a\r\n", 7),
            packet([SERVER_PORT, 40000], TCP, 0x10, b"", 0),
            packet([SERVER_PORT, 40000], TCP, PUSH, b"END\r\n", 3),
            packet([SERVER_PORT, 40000], 17, PUSH, b"END\r\n", 5),
            packet([40000, 22], TCP, PUSH, b"other", 5),
        ]);
        let expected = Segment {
            time_ns: 1_000_000_005,
            client_port: 40000,
            from: Side::Client,
            sequence: 7,
            is_syn: true,
            length: 0,
            bytes: b"",
        };
        let request = Segment { is_syn: false, length: 7, bytes: b"get a\r\n", ..expected };
        let reply = Segment { from: Side::Server, length: 5, bytes: b"END", ..request };
        assert_eq!(segments(&capture, SERVER_PORT).unwrap(), [expected, request, reply]);
    }

    #[test]
    fn other_files_are_rejected() {
        let packet = packet([40000, SERVER_PORT], TCP, 0x18, b"get a\r\n", 7);
        let mut microseconds = file(&[]);
        microseconds[..4].copy_from_slice(&0xa1b2_c3d4_u32.to_ne_bytes());
        let cut = file(&[packet[..30].to_vec()]);
        let table: [(&[u8], &str); 3] =
            [(b"", "no header"), (&microseconds, "no nanoseconds"), (&cut, "within a packet")];
        for (bytes, part) in table {
            let error = segments(bytes, SERVER_PORT).unwrap_err().to_string();
            assert!(error.contains(part), "{error}");
        }
    }
}
