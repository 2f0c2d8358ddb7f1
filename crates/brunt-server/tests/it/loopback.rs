//! The socket loop on a free port of the loopback interface. The server runs on a thread that ends with the test
//! process; nothing here waits for a time to pass, except for replies that are due later.

use crate::in_thread::{options, serve_in_thread};
use crate::server_log;
use brunt_server::core::CoreOptions;
use brunt_server::log::{FLAG_NOREPLY, FLAG_WRONG, Log, Record};
use brunt_server::{Every, Faults, Options, Outage, Service, Stall};
use std::io::{ErrorKind, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

fn start(core: CoreOptions, log: Option<PathBuf>) -> SocketAddr {
    serve_in_thread(Options { log, ..options(core) })
}

fn connect(address: SocketAddr) -> TcpStream {
    let stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
    stream.set_nodelay(true).unwrap();
    stream
}

fn exchange(stream: &mut TcpStream, sent: &[u8], expected: &[u8]) {
    stream.write_all(sent).unwrap();
    let mut answered = vec![0; expected.len()];
    stream.read_exact(&mut answered).unwrap();
    assert_eq!(String::from_utf8_lossy(&answered), String::from_utf8_lossy(expected));
}

/// A file name of this test's own, removed at the end.
struct Scratch(PathBuf);

impl Scratch {
    fn new(name: &str) -> Self {
        Self(std::env::temp_dir().join(format!("brunt-server-{}-{name}", std::process::id())))
    }

    /// The log once it holds this many records; the server writes them when a connection closes.
    fn records(&self, count: usize) -> Vec<Record> {
        let begin = Instant::now();
        loop {
            let records = server_log::read(&std::fs::read(Path::new(&self.0)).unwrap()).unwrap();
            if records.len() >= count {
                return records;
            }
            assert!(begin.elapsed() < Duration::from_secs(10), "{} of {count} records", records.len());
            std::thread::yield_now();
        }
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

#[test]
fn many_connections_are_served() {
    let address = start(CoreOptions::default(), None);
    let mut streams: Vec<_> = (0..300).map(|_| connect(address)).collect();
    for (number, stream) in streams.iter_mut().enumerate() {
        exchange(stream, format!("set k{number} 0 0 3\r\n{number:03}\r\n").as_bytes(), b"STORED\r\n");
    }
    for (number, stream) in streams.iter_mut().rev().enumerate() {
        let expected = format!("VALUE k{number} 0 3\r\n{number:03}\r\nEND\r\n");
        exchange(stream, format!("get k{number}\r\n").repeat(10).as_bytes(), expected.repeat(10).as_bytes());
    }
    // Slots are used again.
    drop(streams);
    for _ in 0..300 {
        exchange(&mut connect(address), b"get k7\r\n", b"VALUE k7 0 3\r\n007\r\nEND\r\n");
    }
}

#[test]
fn slow_readers_get_every_byte() {
    let address = start(CoreOptions::default(), None);
    let mut stream = connect(address);
    let value = "v".repeat(1_000_000);
    exchange(&mut stream, format!("set big 0 0 1000000\r\n{value}\r\n").as_bytes(), b"STORED\r\n");
    // 100 MB of replies, far more than the sockets hold, requested before the first is read; then the end of input.
    stream.write_all(&b"get big\r\n".repeat(100)).unwrap();
    stream.shutdown(Shutdown::Write).unwrap();
    let mut answered = Vec::new();
    stream.read_to_end(&mut answered).unwrap();
    let expected = format!("VALUE big 0 1000000\r\n{value}\r\nEND\r\n");
    assert_eq!(answered.len(), 100 * expected.len());
    assert!(answered.chunks(expected.len()).all(|reply| reply == expected.as_bytes()));
}

#[test]
fn quit_and_the_end_of_input_close() {
    let address = start(CoreOptions::default(), None);
    for sent in ["get a\r\nquit\r\n", "get a\r\n"] {
        let mut stream = connect(address);
        stream.write_all(sent.as_bytes()).unwrap();
        stream.shutdown(Shutdown::Write).unwrap();
        let mut answered = String::new();
        stream.read_to_string(&mut answered).unwrap();
        assert_eq!(answered, "END\r\n");
    }
}

#[test]
fn departures_match_the_log() {
    let (scratch, service) = (Scratch::new("departures.log"), Service::Exponential(2_000_000));
    let stalls = vec![Stall { at_ns: 20_000_000, for_ns: 30_000_000 }];
    let options = CoreOptions { service, seed: 5, stalls, ..CoreOptions::default() };
    let address = start(options, Some(scratch.0.clone()));
    let mut streams = [connect(address), connect(address)];
    let mut measured_ns = Vec::new();
    for number in 0..40 {
        let begin = Instant::now();
        exchange(&mut streams[number % 2], b"get k\r\n", b"END\r\n");
        measured_ns.push(begin.elapsed().as_nanos() as u64);
    }
    drop(streams);
    let records = scratch.records(40);
    let origin_ns = records[0].arrival_ns;
    let mut stalled = 0;
    for (number, record) in records.iter().enumerate() {
        // One at a time: no request waits, so the time in the server is the service time, and once the stall as well.
        let in_server_ns = record.departure_ns - record.arrival_ns;
        let service_ns = service.service_ns(5, number as u64);
        let overlaps = record.arrival_ns < origin_ns + 50_000_000
            && record.arrival_ns + service_ns > origin_ns + 20_000_000;
        stalled += u32::from(overlaps);
        assert!(if overlaps { in_server_ns > service_ns } else { in_server_ns == service_ns }, "{record:?}");
        assert!(measured_ns[number] >= in_server_ns, "request {number} left too early");
        assert_eq!((record.number, record.connection), (number as u64, number as u32 % 2));
    }
    assert!(stalled <= 1, "one at a time, so one request at most is caught by the stall");
}

/// Reads to the end: what came, and the error that ended it, if it was one.
fn read_out(stream: &mut TcpStream) -> (String, Option<ErrorKind>) {
    let mut answered = Vec::new();
    let error = stream.read_to_end(&mut answered).err().map(|error| error.kind());
    (String::from_utf8(answered).unwrap(), error)
}

#[test]
fn a_scripted_reset_is_a_reset() {
    let faults = Faults { reset_every: Every::new(2), ..Faults::default() };
    let address = start(CoreOptions { faults, ..CoreOptions::default() }, None);
    for _ in 0..20 {
        let mut stream = connect(address);
        exchange(&mut stream, b"get a\r\n", b"END\r\n");
        stream.write_all(b"get a\r\n").unwrap();
        assert_eq!(read_out(&mut stream), (String::new(), Some(ErrorKind::ConnectionReset)));
    }
    // The reply before it is on its way already and is not lost.
    let mut stream = connect(address);
    stream.write_all(b"get a\r\nget a\r\n").unwrap();
    assert_eq!(read_out(&mut stream), ("END\r\n".to_owned(), Some(ErrorKind::ConnectionReset)));
}

#[test]
fn a_cut_reply_ends_in_good_order() {
    let faults = Faults { cut_every: Every::new(2), ..Faults::default() };
    let address = start(CoreOptions { faults, ..CoreOptions::default() }, None);
    for _ in 0..20 {
        let mut stream = connect(address);
        exchange(&mut stream, b"set a 0 0 10\r\nabcdefghij\r\n", b"STORED\r\n");
        // Unread requests behind it must not turn the end into a reset.
        stream.write_all(&b"get a\r\n".repeat(1000)).unwrap();
        assert_eq!(read_out(&mut stream), ("VALUE a 0 10\r\na".to_owned(), None));
    }
    let mut stats = connect(address);
    stats.write_all(b"stats\r\nquit\r\n").unwrap();
    let (text, _) = read_out(&mut stats);
    assert!(text.contains("STAT faults_cut 20\r\n") && text.contains("STAT cmd_get 20\r\n"), "{text}");
}

#[test]
fn an_outage_refuses_and_then_serves_at_the_same_address() {
    for (outage_forgets, answered) in [(false, "VALUE a 0 1\r\nx\r\nEND\r\n"), (true, "END\r\n")] {
        // Long enough that a busy host cannot sleep through it.
        let outages = vec!["50ms:300ms".parse::<Outage>().unwrap()];
        let address = start(CoreOptions { outages, outage_forgets, ..CoreOptions::default() }, None);
        let begin = Instant::now();
        let (mut busy, mut idle) = (connect(address), connect(address));
        exchange(&mut busy, b"set a 0 0 1\r\nx\r\n", b"STORED\r\n");
        assert_eq!(read_out(&mut idle), (String::new(), Some(ErrorKind::ConnectionReset)));
        assert_eq!(read_out(&mut busy), (String::new(), Some(ErrorKind::ConnectionReset)));
        assert!(begin.elapsed() >= Duration::from_millis(50));
        // Connections are refused until the server is back.
        let mut refusals = 0;
        let mut stream = loop {
            match TcpStream::connect(address) {
                Ok(stream) => break stream,
                Err(error) => assert_eq!(error.kind(), ErrorKind::ConnectionRefused),
            }
            refusals += 1;
            assert!(begin.elapsed() < Duration::from_secs(10), "the server stays away");
            std::thread::yield_now();
        };
        assert!(begin.elapsed() >= Duration::from_millis(350) && refusals > 0, "{refusals} refusals");
        exchange(&mut stream, b"get a\r\n", answered.as_bytes());
    }
}

#[test]
fn dripping_replies_arrive_in_order_and_in_time() {
    let drip = Some("16:1000".parse().unwrap());
    let address = start(CoreOptions { drip, ..CoreOptions::default() }, None);
    let mut stream = connect(address);
    exchange(&mut stream, format!("set a 0 0 100\r\n{}\r\n", "v".repeat(100)).as_bytes(), b"STORED\r\n");
    let begin = Instant::now();
    let expected = format!("VALUE a 0 100\r\n{}\r\nEND\r\n", "v".repeat(100));
    // Twice 122 bytes are 2 · 8 pieces with 15 pauses of 1 ms between them.
    exchange(&mut stream, b"get a\r\nget a\r\n", expected.repeat(2).as_bytes());
    assert!(begin.elapsed() >= Duration::from_millis(15));
    let drip = Some("1:0".parse().unwrap());
    let mut stream = connect(start(CoreOptions { drip, ..CoreOptions::default() }, None));
    exchange(&mut stream, &b"get a\r\n".repeat(1000), &b"END\r\n".repeat(1000));
}

/// The process that serves tells what it has used, and that is what the system says of it.
#[test]
fn process_statistics_are_reported() {
    let server = start(CoreOptions::default(), None);
    let mut stream = connect(server);
    let mut ask = || -> Vec<f64> {
        stream.write_all(b"stats\r\n").unwrap();
        let mut text = String::new();
        while !text.ends_with("END\r\n") {
            let mut bytes = [0; 4096];
            let len = stream.read(&mut bytes).unwrap();
            text.push_str(std::str::from_utf8(&bytes[..len]).unwrap());
        }
        let value = |name: &str| {
            let line = text.lines().find_map(|line| line.strip_prefix(&format!("STAT {name} ")));
            line.unwrap().parse().unwrap()
        };
        vec![value("pid"), value("rusage_user") + value("rusage_system")]
    };
    let before = ask();
    assert_eq!(before[0], f64::from(std::process::id()));
    // The server is a thread of this process, which is busy until it has used a good deal more.
    let busy = Instant::now();
    while busy.elapsed() < Duration::from_millis(30) {}
    assert!(ask()[1] > before[1], "{before:?}");
}

#[test]
fn logs_read_back() {
    let records = [0, 1, 2].map(|number| Record {
        number,
        arrival_ns: number << 40,
        departure_ns: u64::MAX - number,
        connection: 3,
        verb: 12,
        flags: FLAG_NOREPLY | FLAG_WRONG,
    });
    let mut bytes = Vec::new();
    let mut log = Log::begin(&mut bytes, 7, u64::MAX).unwrap();
    assert!(!log.is_behind());
    for record in &records {
        log.push(record).unwrap();
    }
    assert!(log.is_behind());
    log.flush().unwrap();
    drop(log);
    assert_eq!(bytes.len(), 128);
    assert_eq!(bytes[16..32], [7, 0, 0, 0, 0, 0, 0, 0, 255, 255, 255, 255, 255, 255, 255, 255]);
    assert_eq!(server_log::read(&bytes), Ok(records.to_vec()));
    assert_eq!(server_log::read(&bytes[..127]), Ok(records[..2].to_vec()));
    assert!(server_log::read(&bytes[..31]).is_err());
    bytes[8] = 9;
    assert_eq!(server_log::read(&bytes), Err("a server log of version 9, expected version 1".to_owned()));
}
