//! tcpdump on the loopback interface: when the last byte of each request and of its reply passed.
//!
//! Not a reader of the protocol: every request is a get of a key of the data set and every reply its hit, so that their places in the two
//! streams of a connection follow from their lengths. Not AF_PACKET of our own: rings mapped into memory take `unsafe`, and a call per
//! packet takes more of the host than is left for what is measured. Invariant: the n-th request goes with the n-th reply of its connection,
//! each at the time of its last byte; one of which either packet is missing is counted and never guessed.

use crate::process::{KEY_BYTES, Process, VALUE_BYTES};
use anyhow::{Context, ensure};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use std::collections::HashMap;
use std::io::{BufRead, BufReader, Read};
use std::path::PathBuf;
use std::process::{ChildStderr, Command, Stdio};
use std::time::{Duration, Instant};

/// Lengths of `get KEY`, and of `VALUE KEY 0 200`, the value and `END`, with their line ends.
const MESSAGE_BYTES: [u64; 2] = [KEY_BYTES as u64 + 6, (KEY_BYTES + VALUE_BYTES) as u64 + 21];
/// Of each packet its headers are read.
const SNAPSHOT_BYTES: u32 = 96;
/// Kibibytes for what tcpdump has not read yet: it comes last, and two seconds at 60 000 requests/s take less.
const BUFFER_KIB: u32 = 131_072;
/// The kernel hands packets over after a second at the latest.
const HANDED_OVER: Duration = Duration::from_millis(1500);

/// A capture that runs.
pub(super) struct Capture {
    tcpdump: Process,
    messages: BufReader<ChildStderr>,
    path: PathBuf,
    port: u16,
}

/// A request and its reply: when the last byte of each was seen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Exchange {
    pub(super) request_ns: u64,
    pub(super) reply_ns: u64,
}

/// All of a capture.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Pairing {
    /// By the time of the request.
    pub(super) exchanges: Vec<Exchange>,
    /// Requests whose packet or reply was not found.
    pub(super) unpaired: u64,
    /// Packets that the kernel dropped for want of room, as tcpdump says.
    pub(super) dropped: u64,
}

impl Capture {
    /// Starts to capture what goes to and from a port, on a CPU, into a file.
    ///
    /// # Errors
    /// Packets cannot be captured here.
    pub(super) fn start(port: u16, cpu: usize, path: PathBuf) -> anyhow::Result<Self> {
        let has_data = "ip[2:2] - ((ip[0] & 0xf) << 2) - ((tcp[12] & 0xf0) >> 2) != 0";
        let filter = format!("tcp port {port} and (tcp[tcpflags] & tcp-syn != 0 or {has_data})");
        let options = format!(
            "-n 19 taskset -c {cpu} tcpdump -i lo -n -s {SNAPSHOT_BYTES} -B {BUFFER_KIB} --time-stamp-precision=nano -Z root -w"
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
        Ok(Self { tcpdump, messages, path, port })
    }

    /// Ends it, once it holds every packet until now.
    ///
    /// # Errors
    /// tcpdump does not write or read what it captured, or cannot be ended.
    pub(super) fn end(mut self) -> anyhow::Result<Pairing> {
        let is_over = self.tcpdump.await_end(Instant::now() + HANDED_OVER)?.is_some();
        ensure!(!is_over, "tcpdump ended by itself");
        kill(Pid::from_raw(self.tcpdump.id().cast_signed()), Signal::SIGINT)?;
        let mut said = String::new();
        self.messages.read_to_string(&mut said)?;
        let status = self.tcpdump.0.wait()?;
        let dropped = dropped(&said).filter(|_| status.success());
        let dropped = dropped.with_context(|| format!("tcpdump ended with {status}: {}", said.trim()))?;
        let mut read = Command::new("tcpdump");
        read.args(["-n", "-tt", "--time-stamp-precision=nano", "-r"]).arg(&self.path);
        let output = read.output().context("cannot run tcpdump")?;
        ensure!(output.status.success(), "{read:?} ended with {}", output.status);
        Ok(Pairing { dropped, ..pair(&String::from_utf8_lossy(&output.stdout), self.port, MESSAGE_BYTES) })
    }
}

/// `0 packets dropped by kernel`.
fn dropped(said: &str) -> Option<u64> {
    let line = said.lines().find(|line| line.contains("dropped by kernel"))?;
    line.split_whitespace().next()?.parse().ok()
}

/// When the last bytes of the messages of one direction were seen; none: that packet was not captured.
type Times = Vec<Option<u64>>;

/// Pairs the requests and replies of these lengths in what tcpdump prints of the packets from and to the server's port.
fn pair(printed: &str, server_port: u16, message_bytes: [u64; 2]) -> Pairing {
    let server = format!("127.0.0.1.{server_port}");
    let mut connections: HashMap<&str, [Times; 2]> = HashMap::new();
    let mut pairing = Pairing::default();
    for line in printed.lines() {
        let words: Vec<&str> = line.split_whitespace().collect();
        let [time, "IP", from, ">", to, "Flags", flags, "seq", sequence, ..] = words[..] else { continue };
        let (side, client) = if from == server { (1, to.trim_end_matches(':')) } else { (0, from) };
        if flags == "[S]," {
            // Maybe another connection from the same port.
            connections.insert(client, Default::default()).iter().for_each(|ended| pairing.add(ended));
        }
        // The first byte of a connection has the number 1; of an opening packet the number is absolute, and it has no bytes.
        let Some((first, end)) = sequence.trim_end_matches(',').split_once(':') else { continue };
        let (Ok(first), Ok(end)) = (first.parse::<u64>(), end.parse::<u64>()) else { continue };
        let Some(times) = connections.get_mut(client).map(|connection| &mut connection[side]) else {
            continue;
        };
        let time_ns = time.replace('.', "").parse().ok();
        // A packet that is sent again ends no message.
        for message in times.len() as u64 + 1..=(end - 1) / message_bytes[side] {
            times.push(time_ns.filter(|_| message * message_bytes[side] >= first));
        }
    }
    connections.values().for_each(|connection| pairing.add(connection));
    pairing.exchanges.sort_unstable_by_key(|exchange| exchange.request_ns);
    pairing
}

impl Pairing {
    fn add(&mut self, [requests, replies]: &[Times; 2]) {
        for (index, request_ns) in requests.iter().enumerate() {
            let times = request_ns.zip(replies.get(index).copied().flatten());
            match times.filter(|(request_ns, reply_ns)| request_ns <= reply_ns) {
                Some((request_ns, reply_ns)) => self.exchanges.push(Exchange { request_ns, reply_ns }),
                None => self.unpaired += 1,
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;
    use std::net::{Ipv4Addr, TcpListener, TcpStream};

    #[test]
    fn drops_are_parsed() {
        let said = "12 packets captured\n24 packets received by filter\n3 packets dropped by kernel\n";
        assert_eq!(dropped(said), Some(3));
        assert_eq!(dropped("tcpdump: no such device\n"), None);
    }

    /// Answers each request, the last bytes `DELAY` behind the first ones.
    fn answer(mut stream: TcpStream) {
        stream.set_nodelay(true).unwrap();
        let mut request = [0; MESSAGE_BYTES[0] as usize];
        while stream.read_exact(&mut request).is_ok() {
            stream.write_all(&[b'v'; 51]).unwrap();
            let start = Instant::now();
            while start.elapsed() < DELAY {
                std::thread::yield_now();
            }
            stream.write_all(&[b'v'; MESSAGE_BYTES[1] as usize - 51]).unwrap();
        }
    }

    const DELAY: Duration = Duration::from_millis(2);

    /// A client that takes its own times: the wire's lie between what the server waits and what it takes.
    #[test]
    fn captured_times_lie_between_those_of_both_ends() {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let address = listener.local_addr().unwrap();
        let folder = tempfile::tempdir().unwrap();
        let capture = match Capture::start(address.port(), 0, folder.path().join("packets.pcap")) {
            Ok(capture) => capture,
            Err(reason) => {
                assert!(!crate::programs::in_continuous_integration(), "{reason}");
                return eprintln!("SKIPPED: {reason}");
            }
        };
        let server = std::thread::spawn(move || answer(listener.accept().unwrap().0));
        let mut stream = TcpStream::connect(address).unwrap();
        stream.set_nodelay(true).unwrap();
        let mut times_ns = Vec::new();
        for _ in 0..200 {
            let sent = Instant::now();
            stream.write_all(&[b'g'; MESSAGE_BYTES[0] as usize]).unwrap();
            stream.read_exact(&mut [0; MESSAGE_BYTES[1] as usize]).unwrap();
            times_ns.push(sent.elapsed().as_nanos() as u64);
        }
        drop(stream);
        server.join().unwrap();
        let pairing = capture.end().unwrap();
        assert_eq!((pairing.dropped, pairing.unpaired), (0, 0));
        assert_eq!(pairing.exchanges.len(), times_ns.len());
        for (exchange, taken_ns) in pairing.exchanges.iter().zip(times_ns) {
            let wire_ns = exchange.reply_ns - exchange.request_ns;
            let waited_ns = DELAY.as_nanos() as u64;
            assert!((waited_ns..=taken_ns).contains(&wire_ns), "{wire_ns} of {taken_ns} ns");
        }
    }

    /// Requests of 7 bytes, replies of 22. A row: packets as `PORT > FIRST:END`, `<` for the server's, `S` for one that opens the
    /// connection, each at the time of its place from 1 on; exchanges; requests without one.
    #[test]
    fn exchanges_are_paired_by_their_places() {
        let table = "
            1 S, 1 > 1:8, 1 < 1:23, 1 > 8:15, 1 < 23:45 | 2-3 4-5 | 0
            1 S, 2 S, 1 > 1:8, 2 > 1:8, 2 < 1:23, 1 < 1:23 | 3-6 4-5 | 0 : connections side by side
            1 S, 1 > 1:15, 1 > 15:22, 1 < 1:23, 1 < 23:67 | 2-4 2-5 3-5 | 0 : pipelined
            1 S, 1 > 1:4, 1 > 4:8, 1 < 1:14, 1 < 14:20, 1 < 20:23 | 3-6 | 0 : the last packet counts
            1 S, 1 > 1:8, 1 > 1:8, 1 < 1:23, 1 < 1:23, 1 > 8:15, 1 > 1:15, 1 < 23:45 | 2-4 6-8 | 0 : sent again
            1 S, 1 > 1:8, 1 < 1:23, 1 > 8:15, 1 > 15:22, 1 < 45:67 | 2-3 5-6 | 1 : a reply is missing
            1 S, 1 > 1:8, 1 < 1:23, 1 > 15:22, 1 < 23:45, 1 < 45:67 | 2-3 4-6 | 1 : a request is missing
            1 S, 1 > 1:8, 1 > 8:15, 1 < 1:23 | 2-4 | 1 : no reply yet
            1 > 1:8, 1 < 1:23 | | 0 : opened before the capture
            1 S, 1 S, 1 > 1:8, 1 < 1:23, 1 S, 1 > 1:8, 1 < 1:23 | 3-4 6-7 | 0 : a port that is used again";
        for row in table.trim().lines() {
            let cells: Vec<&str> = row.split(" : ").next().unwrap().split('|').map(str::trim).collect();
            let printed = cells[0].split(", ").enumerate().map(|(index, packet)| {
                let words: Vec<&str> = packet.split_whitespace().collect();
                let (client, server) = (format!("127.0.0.1.4000{}", words[0]), "127.0.0.1.11211");
                let (from, to) = if words[1] == "<" { (server, &*client) } else { (&*client, server) };
                let (flags, sequence) = words.get(2).map_or(("[S]", "3735928559"), |range| ("[P.]", range));
                format!("0.{:09} IP {from} > {to}: Flags {flags}, seq {sequence}, win 512\n", index + 1)
            });
            let pairing = pair(&printed.collect::<String>(), 11211, [7, 22]);
            let exchanges = pairing.exchanges.iter();
            let exchanges: Vec<String> =
                exchanges.map(|exchange| format!("{}-{}", exchange.request_ns, exchange.reply_ns)).collect();
            assert_eq!(
                (exchanges.join(" "), pairing.unpaired),
                (cells[1].to_owned(), cells[2].parse().unwrap()),
                "{row}"
            );
        }
    }
}
