//! Non-blocking sockets: TCP, UDP and Unix.
//!
//! Keeps no state beyond the descriptor. Of a connected socket of UDP one system call takes many datagrams, in both directions: `sendmmsg`
//! and `recvmmsg`. Invariant: every datagram is sent whole or not at all, and received into memory of its own.

use crate::process::cannot;
use crate::transport::Address;
use brunt_plan::sockets::SocketOptions;
use brunt_proto::memcached::udp::DATAGRAM_ROOM;
use rustix::io::Errno;
use socket2::{Domain, Protocol, SockAddr, Socket, Type};
use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, AsRawFd};
use std::time::Duration;

/// Receive buffer of a UDP socket, in the kernel's accounting, where a datagram takes two or three times its
/// length. Memory is used on demand; net.core.rmem_max limits it.
const RECEIVE_BYTES: usize = 4 << 20;

/// Opens a socket and begins to connect it. Buffer sizes are set before, because TCP negotiates them. TCP_NODELAY
/// is set unless the plan clears it, because Nagle's algorithm sends a request later than its sent time. A Unix
/// socket connects at once or not at all; EAGAIN means that the accept queue is full. A UDP socket has its own port
/// and receives only from its peer; a missing peer shows only after a send.
pub(crate) fn connect(address: &Address, options: &SocketOptions) -> io::Result<Socket> {
    let socket = new_socket(address)?;
    set_options(&socket, address, options)?;
    socket.set_nonblocking(true)?;
    match socket.connect(&address.to_socket_address()?) {
        Ok(()) => Ok(socket),
        Err(error) if error.raw_os_error() == Some(libc::EINPROGRESS) => Ok(socket),
        Err(error) => Err(error),
    }
}

fn new_socket(address: &Address) -> io::Result<Socket> {
    match address {
        Address::Network(address) => {
            Socket::new(Domain::for_address(*address), Type::STREAM, Some(Protocol::TCP))
        }
        Address::Datagram(address) => {
            Socket::new(Domain::for_address(*address), Type::DGRAM, Some(Protocol::UDP))
        }
        Address::Unix(_) => Socket::new(Domain::UNIX, Type::STREAM, None),
    }
}

fn set_options(socket: &Socket, address: &Address, options: &SocketOptions) -> io::Result<()> {
    match address {
        Address::Network(_) => {
            socket.set_tcp_nodelay(options.nodelay)?;
            if let Some(linger) = options.linger {
                socket.set_linger(Some(Duration::from_nanos(linger.0)))?;
            }
        }
        Address::Datagram(_) => {
            // As much as the host permits; excess datagrams are lost.
            let _ = socket.set_recv_buffer_size(RECEIVE_BYTES);
        }
        Address::Unix(_) => {}
    }
    if let Some(bytes) = options.send_buffer {
        socket.set_send_buffer_size(bytes as usize)?;
    }
    if let Some(bytes) = options.receive_buffer {
        socket.set_recv_buffer_size(bytes as usize)?;
    }
    Ok(())
}

/// Tries what a socket for this address needs of the kernel before it connects; an error names the call that is refused. Another address of
/// the server may be tried where there is no socket for this one.
pub(crate) fn probe(address: &Address, options: &SocketOptions) -> io::Result<()> {
    let Ok(socket) = new_socket(address) else { return Ok(()) };
    set_options(&socket, address, options).map_err(cannot("set options of a socket: setsockopt"))?;
    socket.take_error().map(drop).map_err(cannot("read the state of a socket: getsockopt"))
}

/// The peer of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Peer {
    /// The socket itself. With simultaneous open, an attempt whose local port is its target connects to itself: a
    /// local server that is down would seem to be up, echo every request, and lose its port.
    Itself,
    /// Another socket on this host, as far as addresses show.
    SameHost,
    /// Another host, none, or a Unix socket, whose peer is not checked.
    Elsewhere,
}

/// The peer of a connection.
pub(crate) fn peer(socket: &Socket) -> Peer {
    let address = |end: io::Result<SockAddr>| end.ok()?.as_socket();
    match (address(socket.local_addr()), address(socket.peer_addr())) {
        (Some(local), Some(peer)) if local == peer => Peer::Itself,
        (Some(local), Some(peer)) if local.ip() == peer.ip() || peer.ip().is_loopback() => Peer::SameHost,
        _ => Peer::Elsewhere,
    }
}

/// System calls of a successful [`established`].
pub(crate) const ESTABLISHED_SYSCALLS: u64 = 3;

/// Checks a connecting socket that is writable. Returns its peer; an errno if the attempt failed.
pub(crate) fn established(socket: &Socket) -> Result<Peer, i32> {
    if let Some(error) = socket.take_error().unwrap_or_else(Some) {
        return Err(error.raw_os_error().unwrap_or(libc::EIO));
    }
    match peer(socket) {
        // There is no listener.
        Peer::Itself => Err(libc::ECONNREFUSED),
        peer => Ok(peer),
    }
}

/// Was the last segment received on this local connection sent from the CPU that this thread runs on? Over
/// loopback, the sender's CPU processes the receipt.
pub(crate) fn shares_cpu(socket: &Socket) -> Option<bool> {
    let cpu = rustix::net::sockopt::socket_incoming_cpu(socket).ok()?;
    Some(cpu as usize == rustix::thread::sched_getcpu())
}

/// Offsets in the kernel's `struct tcp_info` (linux/tcp.h), in words of four bytes: `tcpi_total_retrans`, and
/// `tcpi_dsack_dups` (since Linux 4.19), which the C library's struct lacks.
const RETRANSMITS_WORD: usize = 25;
const DUPLICATES_WORD: usize = 54;

/// Retransmitted segments of a connection, SYNs included. Spurious ones, which the peer reports as duplicates, do
/// not count: a stopped peer acknowledges late. 0 for a Unix socket, where the call fails.
#[expect(unsafe_code, reason = "no safe wrapper of TCP_INFO exists in what we depend on")]
pub(crate) fn retransmits(socket: &Socket) -> u64 {
    let mut words = [0_u32; DUPLICATES_WORD + 1];
    let mut len = size_of_val(&words) as libc::socklen_t;
    // SAFETY: getsockopt writes at most `len` bytes to the pointer, which is valid for that many; whatever it writes, and the
    // zeros where it wrote none (an older kernel knows a shorter struct, or the call failed), are integers.
    unsafe {
        libc::getsockopt(
            socket.as_raw_fd(),
            libc::IPPROTO_TCP,
            libc::TCP_INFO,
            words.as_mut_ptr().cast(),
            &raw mut len,
        );
    }
    u64::from(words[RETRANSMITS_WORD].saturating_sub(words[DUPLICATES_WORD]))
}

/// Makes the next close a reset: no TIME_WAIT, nothing delivered.
pub(crate) fn reset_on_close(socket: &Socket) {
    // A failed socket cannot be tuned, and need not be.
    let _ = socket.set_linger(Some(Duration::ZERO));
}

/// Datagrams per sendmmsg or recvmmsg call.
pub(crate) const BATCH: usize = 32;

/// Received datagrams, each at a multiple of the maximum length.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Datagrams {
    lens: [u32; BATCH],
    count: usize,
    next: usize,
}

impl Datagrams {
    pub(crate) const NOTHING: Self = Self { lens: [0; BATCH], count: 0, next: 0 };

    /// More may be in the socket.
    pub(crate) fn is_full(&self) -> bool {
        self.count == BATCH
    }

    /// Start and length of the next one.
    pub(crate) fn next(&mut self) -> Option<(usize, usize)> {
        if self.next == self.count {
            return None;
        }
        let at = self.next;
        self.next += 1;
        Some((at * DATAGRAM_ROOM, self.lens[at] as usize))
    }
}

/// Message headers, with one piece each.
type Headers = [MaybeUninit<libc::mmsghdr>; BATCH];
type Pieces = [MaybeUninit<libc::iovec>; BATCH];

const NO_HEADERS: Headers = [const { MaybeUninit::uninit() }; BATCH];
const NO_PIECES: Pieces = [const { MaybeUninit::uninit() }; BATCH];

/// Initialises a message header of this piece.
fn put_header(header: &mut MaybeUninit<libc::mmsghdr>, piece: &mut MaybeUninit<libc::iovec>) {
    header.write(libc::mmsghdr {
        msg_hdr: libc::msghdr {
            msg_name: std::ptr::null_mut(),
            msg_namelen: 0,
            msg_iov: piece.as_mut_ptr(),
            msg_iovlen: 1,
            msg_control: std::ptr::null_mut(),
            msg_controllen: 0,
            msg_flags: 0,
        },
        msg_len: 0,
    });
}

/// Receives available datagrams into `memory`, which has room for [`BATCH`].
#[expect(unsafe_code, reason = "no safe wrapper of this call exists in what we depend on")]
pub(crate) fn receive_datagrams(socket: impl AsFd, memory: &mut [u8]) -> Result<Datagrams, Errno> {
    let (mut headers, mut pieces) = (NO_HEADERS, NO_PIECES);
    let count = memory.len().min(BATCH * DATAGRAM_ROOM) / DATAGRAM_ROOM;
    for ((header, piece), room) in
        headers.iter_mut().zip(&mut pieces).zip(memory.chunks_exact_mut(DATAGRAM_ROOM))
    {
        piece.write(libc::iovec { iov_base: room.as_mut_ptr().cast(), iov_len: room.len() });
        put_header(header, piece);
    }
    // SAFETY: the first `count` headers were written, each with a piece that was and whose memory is borrowed exclusively for as long
    // as the call takes. The timeout is none, and nothing is kept.
    let received = unsafe {
        libc::recvmmsg(
            socket.as_fd().as_raw_fd(),
            headers.as_mut_ptr().cast(),
            count as libc::c_uint,
            libc::MSG_DONTWAIT,
            std::ptr::null_mut(),
        )
    };
    let received = usize::try_from(received).map_err(|_| last_errno())?;
    let mut result = Datagrams { count: received, ..Datagrams::NOTHING };
    for (len, header) in result.lens.iter_mut().zip(&headers[..received]) {
        // SAFETY: those that were received are among those that were written.
        *len = unsafe { header.assume_init_ref() }.msg_len;
    }
    Ok(result)
}

/// Sends datagrams, which end at `ends`. Returns the bytes of those taken before the first failure; an error only
/// if the first one failed.
pub(crate) fn send_datagrams(
    socket: impl AsFd,
    bytes: &[u8],
    ends: &[u32],
    syscalls: &mut u64,
) -> Result<usize, Errno> {
    let mut taken = 0;
    for batch in ends.chunks(BATCH) {
        *syscalls += 1;
        match send_batch(&socket, bytes, taken, batch) {
            Ok(0) => return Ok(taken),
            Ok(sent) => {
                taken = batch[sent - 1] as usize;
                if sent < batch.len() {
                    return Ok(taken);
                }
            }
            Err(error) if taken == 0 => return Err(error),
            // A pending socket error is cleared by reporting it; a later send reports its own.
            Err(_) => return Ok(taken),
        }
    }
    Ok(taken)
}

/// Sends one batch. Returns how many were taken.
#[expect(unsafe_code, reason = "no safe wrapper of this call exists in what we depend on")]
fn send_batch(socket: &impl AsFd, bytes: &[u8], from: usize, ends: &[u32]) -> Result<usize, Errno> {
    let (mut headers, mut pieces) = (NO_HEADERS, NO_PIECES);
    let mut from = from;
    for ((header, piece), end) in headers.iter_mut().zip(&mut pieces).zip(ends) {
        let datagram = &bytes[from..*end as usize];
        from = *end as usize;
        piece.write(libc::iovec { iov_base: datagram.as_ptr().cast_mut().cast(), iov_len: datagram.len() });
        put_header(header, piece);
    }
    // SAFETY: as many headers were written as `ends` has, which is no more than there are; each has a piece that was written, of memory
    // that is borrowed for as long as the call takes and that a send only reads.
    let sent = unsafe {
        libc::sendmmsg(
            socket.as_fd().as_raw_fd(),
            headers.as_mut_ptr().cast(),
            ends.len() as libc::c_uint,
            libc::MSG_NOSIGNAL | libc::MSG_DONTWAIT,
        )
    };
    usize::try_from(sent).map_err(|_| last_errno())
}

pub(crate) fn last_errno() -> Errno {
    Errno::from_raw_os_error(std::io::Error::last_os_error().raw_os_error().unwrap_or(libc::EIO))
}

#[cfg(test)]
mod tests {
    use super::*;
    use brunt_plan::units::DurationNs;
    use std::net::{SocketAddr, TcpListener, UdpSocket};
    use std::os::unix::net::UnixListener;

    #[test]
    fn a_socket_connected_to_itself_is_recognised() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = SockAddr::from(listener.local_addr().unwrap());
        let socket = || Socket::new(Domain::IPV4, Type::STREAM, Some(Protocol::TCP)).unwrap();
        let ordinary = socket();
        ordinary.connect(&address).unwrap();
        assert_eq!((peer(&ordinary), retransmits(&ordinary)), (Peer::SameHost, 0));
        let own = socket();
        assert_eq!(peer(&own), Peer::Elsewhere, "not connected at all");
        own.bind(&SockAddr::from(SocketAddr::from(([127, 0, 0, 1], 0)))).unwrap();
        own.connect(&own.local_addr().unwrap()).unwrap();
        assert_eq!(peer(&own), Peer::Itself);
    }

    #[test]
    fn nagle_is_on_where_requested() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = Address::Network(listener.local_addr().unwrap());
        let options = |nodelay| SocketOptions { nodelay, ..SocketOptions::default() };
        let has_nodelay = |asked| connect(&address, &options(asked)).unwrap().tcp_nodelay().unwrap();
        assert_eq!([true, false].map(has_nodelay), [true, false]);
    }

    #[test]
    fn socket_options_are_set() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let tcp = Address::Network(listener.local_addr().unwrap());
        let udp = Address::Datagram(listener.local_addr().unwrap());
        let seconds = |seconds: u64| DurationNs(seconds * 1_000_000_000);
        // Small enough for every host; the kernel reports twice the value.
        let options = SocketOptions {
            linger: Some(seconds(7)),
            send_buffer: Some(20_000),
            receive_buffer: Some(30_000),
            ..SocketOptions::default()
        };
        let sizes =
            |socket: &Socket| (socket.send_buffer_size().unwrap(), socket.recv_buffer_size().unwrap());
        let socket = connect(&tcp, &options).unwrap();
        assert_eq!(
            (sizes(&socket), socket.linger().unwrap()),
            ((40_000, 60_000), Some(Duration::from_secs(7)))
        );
        let reset = SocketOptions { linger: Some(seconds(0)), ..options };
        assert_eq!(connect(&tcp, &reset).unwrap().linger().unwrap(), Some(Duration::ZERO));
        assert_eq!(sizes(&connect(&udp, &options).unwrap()), (40_000, 60_000));
        let plain = connect(&tcp, &SocketOptions::default()).unwrap();
        assert_eq!(plain.linger().unwrap(), None);
    }

    #[test]
    fn a_unix_socket_is_connected_at_once_or_not_at_all() {
        let path = std::env::temp_dir().join(format!("brunt-socket-{}", std::process::id()));
        let address = Address::Unix(path.clone());
        let errno = |result: io::Result<Socket>| result.unwrap_err().raw_os_error();
        assert_eq!(errno(connect(&address, &SocketOptions::default())), Some(libc::ENOENT));
        let listener = UnixListener::bind(&path).unwrap();
        let socket = connect(&address, &SocketOptions::default()).unwrap();
        assert_eq!(established(&socket), Ok(Peer::Elsewhere));
        assert_eq!(retransmits(&socket), 0);
        drop(listener);
        assert_eq!(errno(connect(&address, &SocketOptions::default())), Some(libc::ECONNREFUSED));
        std::fs::remove_file(&path).unwrap();
        let long = Address::Unix(format!("/{}", "x".repeat(200)).into());
        assert!(connect(&long, &SocketOptions::default()).is_err());
    }

    fn pair() -> [UdpSocket; 2] {
        let sockets = [(); 2].map(|()| UdpSocket::bind("127.0.0.1:0").unwrap());
        sockets[0].connect(sockets[1].local_addr().unwrap()).unwrap();
        sockets[1].connect(sockets[0].local_addr().unwrap()).unwrap();
        sockets
    }

    #[test]
    fn datagrams_keep_their_bounds() {
        let [here, there] = pair();
        // More than a call takes, none of them as long as the one before.
        let count = BATCH + 8;
        let bytes: Vec<u8> = (0..count).flat_map(|at| vec![at as u8; at + 1]).collect();
        let ends: Vec<u32> = (1..=count as u32).map(|count| count * (count + 1) / 2).collect();
        let mut syscalls = 0;
        assert_eq!(send_datagrams(&here, &bytes, &ends, &mut syscalls), Ok(bytes.len()));
        assert_eq!(syscalls, 2);
        let mut memory = vec![0; BATCH * DATAGRAM_ROOM];
        let mut seen = 0;
        for expected in [BATCH, 8] {
            let mut received = receive_datagrams(&there, &mut memory).unwrap();
            assert_eq!((received.count, received.is_full()), (expected, expected == BATCH));
            while let Some((start, len)) = received.next() {
                assert_eq!(memory[start..start + len], vec![seen as u8; seen + 1]);
                seen += 1;
            }
        }
        assert_eq!(seen, count);
        assert!(matches!(receive_datagrams(&there, &mut memory), Err(Errno::AGAIN)));
    }

    #[test]
    fn missing_listeners_show_with_the_next_call() {
        let [here, there] = pair();
        drop(there);
        let send = |ends: &[u32]| send_datagrams(&here, b"ab", ends, &mut 0);
        assert_eq!(send(&[2]), Ok(2));
        assert_eq!(send(&[1, 2]), Err(Errno::CONNREFUSED), "of the one before");
        assert_eq!(send(&[1, 2]), Ok(1), "the second meets the refusal of the first");
    }
}
