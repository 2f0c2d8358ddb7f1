//! tcpdump on the loopback interface, for what goes to and from one port.
//!
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

#[cfg(test)]
mod tests {
    use super::super::pairing::pair;
    use super::super::segment::segments;
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
}
