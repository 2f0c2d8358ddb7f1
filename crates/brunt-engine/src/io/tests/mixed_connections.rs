//! Connections of every kind in one Io: each keeps its kind, and none disturbs another.

use crate::clock::Clock;
use crate::io::epoll::Epoll;
use crate::io::tls::tests::pair;
use crate::io::uring::{Shape, Uring};
use crate::io::{CloseMode, CompletionKind, ConnectionIndex, Io, Until};
use crate::transport::Address;
use crate::transport::tls_client::TlsClient;
use brunt_plan::choice::Gather;
use brunt_plan::sockets::SocketOptions;
use std::io::{IoSlice, Read, Write};
use std::net::{TcpListener, UdpSocket};
use std::time::Duration;

/// Time limit; every peer is on this host.
const PATIENCE_NS: u64 = 20_000_000_000;
/// Longer than a read, so that some is left for the next iteration.
const STREAM_BYTES: usize = 200_000;
/// More than one call receives.
const DATAGRAMS: usize = 36;

/// Target of a connection.
struct Place {
    address: Address,
    tls: Option<TlsClient>,
    /// With kernel timestamps.
    is_stamped: bool,
}

/// An echo server with a thread per connection.
fn echo<S: Read + Write + Send + 'static>(
    accept: impl Fn(std::net::TcpStream) -> S + Send + 'static,
) -> Address {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = Address::Network(listener.local_addr().unwrap());
    std::thread::spawn(move || {
        for socket in listener.incoming() {
            let mut stream = accept(socket.unwrap());
            std::thread::spawn(move || {
                let mut bytes = [0; 4096];
                while let Ok(len @ 1..) = stream.read(&mut bytes) {
                    if stream.write_all(&bytes[..len]).and_then(|()| stream.flush()).is_err() {
                        return;
                    }
                }
            });
        }
    });
    address
}

fn echo_datagrams() -> Address {
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    socket.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
    let address = Address::Datagram(socket.local_addr().unwrap());
    std::thread::spawn(move || {
        let mut bytes = [0; 2048];
        while let Ok((len, from)) = socket.recv_from(&mut bytes) {
            socket.send_to(&bytes[..len], from).unwrap();
        }
    });
    address
}

/// The bytes sent on a connection, in one piece per datagram.
fn pieces(index: ConnectionIndex, is_by_datagram: bool) -> Vec<Vec<u8>> {
    let (count, len) = if is_by_datagram { (DATAGRAMS, 600) } else { (1, STREAM_BYTES) };
    (0..count)
        .map(|piece| (0..len).map(|at| (at + 7 * piece + 31 * index as usize) as u8).collect())
        .collect()
}

/// Opens one connection per index and checks that all bytes come back in order, in as many datagrams as were sent.
fn exchange(io: &mut impl Io, places: &[&Place]) {
    let is_by_datagram =
        |index: ConnectionIndex| matches!(places[index as usize].address, Address::Datagram(_));
    let sent: Vec<_> = (0..).zip(places).map(|(index, _)| pieces(index, is_by_datagram(index))).collect();
    let mut taken = vec![0; places.len()];
    let mut back = vec![Vec::new(); places.len()];
    let mut datagrams = vec![0; places.len()];
    for (index, place) in (0..).zip(places) {
        io.connect(index, &place.address, place.tls.as_ref(), place.is_stamped).unwrap();
    }
    let deadline_ns = io.now_ns() + PATIENCE_NS;
    let is_done = |back: &[Vec<u8>]| {
        (0..).zip(back).all(|(index, back)| back.len() == sent[index as usize].concat().len())
    };
    while !is_done(&back) {
        let now_ns = io.now_ns();
        assert!(
            now_ns < deadline_ns,
            "{:?} taken, {:?} back",
            taken,
            back.iter().map(Vec::len).collect::<Vec<_>>()
        );
        io.wait(now_ns, Until::Instant(now_ns + 10_000_000));
        while let Some(completion) = io.next() {
            let at = completion.index as usize;
            let all = sent[at].concat();
            match completion.kind {
                CompletionKind::Received(chunk) => {
                    back[at].extend_from_slice(io.bytes(chunk));
                    datagrams[at] += 1;
                    continue;
                }
                CompletionKind::Sent(sent) => taken[at] += sent.unwrap(),
                CompletionKind::Connected | CompletionKind::Writable => {}
                other => panic!("{other:?} on {at}"),
            }
            // Bytes that were not taken are offered again when there is room.
            if taken[at] == all.len() || matches!(completion.kind, CompletionKind::Sent(_)) {
                continue;
            }
            taken[at] += offer(io, completion.index, &sent[at], taken[at], is_by_datagram(completion.index));
        }
    }
    for (index, pieces) in (0..).zip(&sent) {
        assert!(back[index as usize] == pieces.concat(), "index {index}");
        if is_by_datagram(index) {
            assert_eq!(datagrams[index as usize], pieces.len(), "index {index}");
        }
        assert_eq!(io.handshake_ns(index).is_some(), places[index as usize].tls.is_some(), "index {index}");
        io.close(index, CloseMode::Orderly);
    }
}

/// Offers the rest of these pieces. Returns how much was taken at once.
#[expect(unsafe_code, reason = "the seam has it; the bytes outlive the exchange")]
fn offer(
    io: &mut impl Io,
    index: ConnectionIndex,
    pieces: &[Vec<u8>],
    taken: usize,
    is_by_datagram: bool,
) -> usize {
    // Leaked, so that the kernel may read them late.
    let rest: &'static [u8] = Vec::leak(pieces.concat()[taken..].to_vec());
    if is_by_datagram {
        let len = pieces[0].len();
        let ends: Vec<u32> = (1..=rest.len() / len).map(|count| (count * len) as u32).collect();
        return io.send_datagrams(index, rest, &ends).taken.unwrap();
    }
    // SAFETY: the bytes are never freed.
    unsafe { io.send(index, &[IoSlice::new(rest)]) }.map_or(0, |result| result.taken.unwrap())
}

fn check(mut io: impl Io) {
    let stream = Place { address: echo(|socket| socket), tls: None, is_stamped: false };
    let stamped = Place { address: echo(|socket| socket), tls: None, is_stamped: true };
    let by_datagram = Place { address: echo_datagrams(), tls: None, is_stamped: false };
    let tunnelled = Place {
        address: echo(|socket| rustls::StreamOwned::new(pair::server(), socket)),
        tls: Some(pair::any_client()),
        is_stamped: false,
    };
    let places = [&stream, &by_datagram, &tunnelled, &stamped, &by_datagram, &tunnelled];
    // Each index has every kind in turn, and the last twice.
    for turn in [0, 1, 2, 3, 3] {
        exchange(&mut io, &[&places[turn..], &places[..turn]].concat());
    }
}

#[test]
fn connections_of_every_kind_share_an_epoll() {
    check(Epoll::new(6, SocketOptions::default(), Gather::NOTHING, Clock::start()).unwrap());
}

#[test]
fn connections_of_every_kind_share_a_ring() {
    let shape = Shape { connections: 6, reply_bytes: 2_000, ..Shape::of_one(2) };
    // Without io_uring, the tests of the probe report it.
    let Ok(uring) = Uring::new(shape, Clock::start()) else { return };
    check(uring);
}
