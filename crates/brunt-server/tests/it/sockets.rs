//! Places to listen beside a port of the loopback interface: socket files and datagrams; and the end of a server.

use crate::in_thread::options;
use brunt_server::core::CoreOptions;
use brunt_server::{DatagramFaults, Division, Every, Listen, Options, serve};
use std::io::{Read, Write};
use std::net::{Ipv4Addr, Ipv6Addr, Shutdown, SocketAddr, TcpStream, UdpSocket};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::PathBuf;
use std::sync::mpsc;
use std::thread::JoinHandle;
use std::time::Duration;

/// A server in a thread, and what ends it.
struct Beside {
    announced: String,
    stop: UnixStream,
    thread: JoinHandle<std::io::Result<()>>,
}

impl Beside {
    fn start(options: Options) -> Self {
        let (stop, stopped) = UnixStream::pair().unwrap();
        let (sender, receiver) = mpsc::channel();
        let announce = move |place: &Listen| sender.send(place.to_string()).map_err(std::io::Error::other);
        let thread = std::thread::spawn(move || serve(options, Some(stopped.into()), announce));
        let announced = receiver.recv_timeout(Duration::from_secs(10)).unwrap();
        Self { announced, stop, thread }
    }

    fn end(mut self) {
        self.stop.write_all(b"x").unwrap();
        self.thread.join().unwrap().unwrap();
    }
}

fn tcp(address: impl Into<std::net::IpAddr>) -> Listen {
    Listen::Tcp(SocketAddr::new(address.into(), 0))
}

#[test]
fn a_socket_file_is_made_taken_over_and_removed() {
    let path = std::env::temp_dir().join(format!("brunt-server-{}-socket", std::process::id()));
    // What a killed server leaves behind: a socket file without a listener.
    drop(UnixListener::bind(&path).unwrap());
    let listen = Listen::Unix(path.clone());
    let server = Beside::start(Options { listen: listen.clone(), ..options(CoreOptions::default()) });
    assert_eq!(server.announced, format!("unix:{}", path.display()));
    let mut stream = UnixStream::connect(&path).unwrap();
    stream.write_all(b"set a 0 0 1\r\nx\r\nget a\r\nquit\r\n").unwrap();
    stream.shutdown(Shutdown::Write).unwrap();
    let mut answered = String::new();
    stream.read_to_string(&mut answered).unwrap();
    assert_eq!(answered, "STORED\r\nVALUE a 0 1\r\nx\r\nEND\r\n");
    // An address in use is refused.
    let error = serve(Options { listen, ..options(CoreOptions::default()) }, None, |_| Ok(())).unwrap_err();
    assert!(error.to_string().contains(&format!("cannot listen on unix:{}", path.display())), "{error}");
    server.end();
    assert!(!path.exists());
}

#[test]
fn an_outage_refuses_at_a_socket_file_too() {
    let path = std::env::temp_dir().join(format!("brunt-server-{}-outage", std::process::id()));
    // Long enough that a busy host cannot sleep through it.
    let outages = vec!["50ms:300ms".parse().unwrap()];
    let core = CoreOptions { outages, ..CoreOptions::default() };
    let server = Beside::start(Options { listen: Listen::Unix(path.clone()), ..options(core) });
    let mut stream = UnixStream::connect(&path).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
    stream.write_all(b"get a\r\n").unwrap();
    // It is answered, and ended when the outage begins: a socket file knows no reset, but for unread bytes.
    let mut answered = Vec::new();
    let _ = stream.read_to_end(&mut answered);
    assert_eq!(answered, b"END\r\n");
    let begin = std::time::Instant::now();
    let mut refusals = 0;
    while UnixStream::connect(&path).is_err() {
        refusals += 1;
        assert!(begin.elapsed() < Duration::from_secs(10), "the server stays away");
        std::thread::yield_now();
    }
    assert!(refusals > 0);
    server.end();
    assert!(!path.exists());
}

#[test]
fn ipv6_is_accepted() {
    let Ok(_) = std::net::TcpListener::bind((Ipv6Addr::LOCALHOST, 0)) else { return };
    let server =
        Beside::start(Options { listen: tcp(Ipv6Addr::LOCALHOST), ..options(CoreOptions::default()) });
    assert!(server.announced.starts_with("[::1]:"), "{}", server.announced);
    let mut stream = TcpStream::connect(&server.announced).unwrap();
    stream.write_all(b"get a\r\nquit\r\n").unwrap();
    let mut answered = String::new();
    stream.read_to_string(&mut answered).unwrap();
    assert_eq!(answered, "END\r\n");
    server.end();
}

/// What the server counts under these names.
fn counted<const N: usize>(address: &str, names: [&str; N]) -> [u64; N] {
    let mut stream = TcpStream::connect(address).unwrap();
    stream.write_all(b"stats\r\nquit\r\n").unwrap();
    let mut text = String::new();
    stream.read_to_string(&mut text).unwrap();
    names.map(|name| {
        let line = text.lines().find_map(|line| line.strip_prefix(&format!("STAT {name} ")));
        line.unwrap().parse().unwrap()
    })
}

/// Requests that are never whole take no more memory together than the store; the client that sent most of one is disconnected.
#[test]
fn half_sent_requests_are_bounded_in_all() {
    let core = CoreOptions { memory_bytes: 4 << 20, ..CoreOptions::default() };
    let server = Beside::start(options(core));
    let connect = || TcpStream::connect(&server.announced).unwrap();
    let mut largest = connect();
    largest.write_all(&[b"set a 0 0 1048576\r\n", &vec![b'x'; 900_000][..]].concat()).unwrap();
    let names = ["client_query_buffer_limit_disconnections", "bytes_read"];
    let mut begun = Vec::new();
    for count in 1..=5 {
        let mut stream = connect();
        // A value that is announced, or a line that does not end.
        let begin = if count % 2 == 0 { &b"set a 0 0 1048576\r\n"[..] } else { b"get " };
        stream.write_all(&[begin, &[b'y'; 800_000]].concat()).unwrap();
        begun.push(stream);
        // All of it was read.
        while counted(&server.announced, names)[1] < 900_000 + 800_000 * count {
            std::thread::yield_now();
        }
        let expected = u64::from(900_000 + 800_000 * count > 4 << 20);
        assert_eq!(counted(&server.announced, names)[0], expected, "{count}");
    }
    largest.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
    assert_eq!(largest.read(&mut [0]).unwrap_err().kind(), std::io::ErrorKind::ConnectionReset);
    server.end();
}

/// A pipeline is answered whole however much longer its replies are than what may be unread, if they are read.
#[test]
fn clients_that_read_are_served_beyond_the_limit() {
    let output_buffer_limit = 2 << 20;
    let options = Options { output_buffer_limit, ..options(CoreOptions::default()) };
    let server = Beside::start(options);
    let mut stream = TcpStream::connect(&server.announced).unwrap();
    stream.write_all(&[b"set a 0 0 500000\r\n", &vec![b'x'; 500_000][..], b"\r\n"].concat()).unwrap();
    stream
        .write_all(&[b"get a\r\n".repeat(100), b"get a a a a a\r\nget b\r\nquit\r\n".to_vec()].concat())
        .unwrap();
    let mut answered = Vec::new();
    stream.read_to_end(&mut answered).unwrap();
    // A reply that is longer than the limit is refused.
    let end = b"\r\nEND\r\nSERVER_ERROR out of memory writing get response\r\nEND\r\n";
    let value_bytes = "VALUE a 0 500000\r\n".len() + 500_000 + "\r\nEND\r\n".len();
    assert_eq!(answered.len(), "STORED\r\n".len() + 100 * value_bytes + end.len() - "\r\nEND\r\n".len());
    assert!(answered.ends_with(end));
    assert_eq!(counted(&server.announced, ["client_output_buffer_limit_disconnections"]), [0]);
    server.end();
}

fn datagram(id: u16, sequence: u16, total: u16, payload: &str) -> Vec<u8> {
    let numbers = [id, sequence, total, 0].into_iter().flat_map(u16::to_be_bytes);
    numbers.chain(payload.bytes()).collect()
}

fn receive(socket: &UdpSocket) -> Vec<u8> {
    let mut bytes = vec![0; 2000];
    let len = socket.recv(&mut bytes).unwrap();
    bytes.truncate(len);
    bytes
}

fn client(address: &str) -> UdpSocket {
    let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    socket.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
    socket.connect(address).unwrap();
    socket
}

#[test]
fn datagrams_are_answered_at_the_same_port() {
    let listen = tcp(Ipv4Addr::LOCALHOST);
    let server = Beside::start(Options { listen, datagrams: true, ..options(CoreOptions::default()) });
    let mut stream = TcpStream::connect(&server.announced).unwrap();
    stream
        .write_all(format!("set a 0 0 1\r\nx\r\nset big 0 0 2000\r\n{}\r\n", "v".repeat(2000)).as_bytes())
        .unwrap();
    stream.read_exact(&mut [0; 16]).unwrap();
    let clients = [client(&server.announced), client(&server.announced)];
    for (id, socket) in clients.iter().enumerate() {
        let id = 0x0700 + id as u16;
        socket.send(&datagram(id, 0, 1, "get a none\r\n")).unwrap();
        assert_eq!(receive(socket), datagram(id, 0, 1, "VALUE a 0 1\r\nx\r\nEND\r\n"));
        socket.send(&datagram(id, 0, 1, "mg a v Oz\r\nmn\r\n")).unwrap();
        assert_eq!(receive(socket), datagram(id, 0, 1, "VA 1 Oz\r\nx\r\nMN\r\n"));
        socket.send(&datagram(id, 0, 1, "get big\r\n")).unwrap();
        let head = "VALUE big 0 2000\r\n";
        let first = format!("{head}{}", "v".repeat(1392 - head.len()));
        assert_eq!(receive(socket), datagram(id, 0, 2, &first));
        let rest = format!("{}\r\nEND\r\n", "v".repeat(2000 - (1392 - head.len())));
        assert_eq!(receive(socket), datagram(id, 1, 2, &rest));
        // Too short, cut, in several: no answer, no answer, and a refusal.
        socket.send(b"get a\r\n").unwrap();
        socket.send(&datagram(id, 0, 1, "get a")).unwrap();
        socket.send(&datagram(id, 0, 2, "get a\r\n")).unwrap();
        let refusal = "SERVER_ERROR multi-packet request not supported\r\n";
        assert_eq!(receive(socket), datagram(id, 0, 1, refusal));
    }
    assert_eq!(counted(&server.announced, ["cmd_get", "get_hits", "curr_connections"]), [8, 6, 2]);
    server.end();
}

#[test]
fn datagrams_are_lost_doubled_and_swapped_as_scripted() {
    let every = Every::new;
    let datagram_faults =
        DatagramFaults { drop_every: every(5), duplicate_every: every(3), swap_every: every(2) };
    let core = CoreOptions { division: Division::Key, datagram_faults, ..CoreOptions::default() };
    let listen = tcp(Ipv4Addr::LOCALHOST);
    let server = Beside::start(Options { listen, datagrams: true, ..options(core) });
    let socket = client(&server.announced);
    // Three values and the end behind the last: three datagrams each, of which two are followed, and the second of these is
    // swapped.
    socket.send(&datagram(0, 0, 1, "ms a 1\r\nA\r\nms b 1\r\nB\r\nms c 1\r\nC\r\n")).unwrap();
    let stored: Vec<_> = (0..4).map(|_| receive(&socket)).collect();
    assert_eq!(stored, vec![datagram(0, 0, 1, "HD\r\n"); 4], "the third comes twice");
    socket.send(&datagram(1, 0, 1, "get a b c\r\n")).unwrap();
    // Numbers 4, 5 and 6, of which the fifth is lost and the sixth comes twice; in the order a, c, b.
    let expected = ["VALUE a 0 1\r\nA\r\n", "VALUE b 0 1\r\nB\r\n", "VALUE b 0 1\r\nB\r\n"];
    assert_eq!([(); 3].map(|()| receive(&socket)), expected.map(|payload| datagram(1, 0, 1, payload)));
    let names = ["datagrams_dropped", "datagrams_duplicated", "datagrams_swapped"];
    assert_eq!(counted(&server.announced, names), [1, 2, 2]);
    server.end();
}

#[test]
fn datagrams_need_a_port() {
    let path: PathBuf = std::env::temp_dir().join(format!("brunt-server-{}-no-udp", std::process::id()));
    let options =
        Options { listen: Listen::Unix(path.clone()), datagrams: true, ..options(CoreOptions::default()) };
    let error = serve(options, None, |_| Ok(())).unwrap_err();
    assert!(error.to_string().contains("datagrams need an address and a port"), "{error}");
    assert!(!path.exists());
}
