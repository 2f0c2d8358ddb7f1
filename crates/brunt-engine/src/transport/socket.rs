//! Sockets of streams and of datagrams: non-blocking, and where they are of TCP without delay unless that is asked for.
//!
//! Not a connection: no state beyond the descriptor.

use super::address::Address;
use brunt_plan::sockets::SocketOptions;
use socket2::{Domain, Protocol, SockAddr, Socket, Type};
use std::io;
use std::os::fd::AsRawFd;
use std::time::Duration;

/// Replies that a socket of UDP may hold, in the kernel's own measure, of which a datagram takes two or three times its length. No
/// memory before there are as many; net.core.rmem_max bounds it.
const RECEIVE_BYTES: usize = 4 << 20;

/// Opens a socket and begins to connect it. The buffers are set before, because their sizes are agreed on then. With TCP_NODELAY, unless the plan wants it off, because a request held back by Nagle's
/// algorithm is sent later than its `sent` stamp says. A Unix socket has no such thing; it is connected at once or not at all, and EAGAIN says that
/// the queue of those who wait to be accepted is full. One of UDP has a port of its own and takes only what its peer sends; whether there
/// is one, nothing says before something is sent.
pub(crate) fn connect(address: &Address, options: &SocketOptions) -> io::Result<Socket> {
    let socket = match address {
        Address::Network(address) => {
            let socket = Socket::new(Domain::for_address(*address), Type::STREAM, Some(Protocol::TCP))?;
            socket.set_tcp_nodelay(options.nodelay)?;
            if let Some(linger) = options.linger {
                socket.set_linger(Some(Duration::from_nanos(linger.0)))?;
            }
            socket
        }
        Address::Datagram(address) => {
            let socket = Socket::new(Domain::for_address(*address), Type::DGRAM, Some(Protocol::UDP))?;
            // As much as the host grants: what a socket has no room for is lost.
            let _ = socket.set_recv_buffer_size(RECEIVE_BYTES);
            socket
        }
        Address::Unix(_) => Socket::new(Domain::UNIX, Type::STREAM, None)?,
    };
    if let Some(bytes) = options.send_buffer {
        socket.set_send_buffer_size(bytes as usize)?;
    }
    if let Some(bytes) = options.receive_buffer {
        socket.set_recv_buffer_size(bytes as usize)?;
    }
    socket.set_nonblocking(true)?;
    match socket.connect(&address.to_socket_address()?) {
        Ok(()) => Ok(socket),
        Err(error) if error.raw_os_error() == Some(libc::EINPROGRESS) => Ok(socket),
        Err(error) => Err(error),
    }
}

/// Where a connection leads to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Peer {
    /// To itself. Two ends that begin to connect to each other at once get one connection, and an attempt whose local port
    /// happens to be the one it goes to is both of them: where a server on this host is down, it would seem to be back,
    /// echo every request, and keep the port from the real one.
    Itself,
    /// To another socket of this host, as far as addresses tell.
    SameHost,
    /// To another host, or nowhere; or by a Unix socket, of whose peer the kernel says nothing that we ask for.
    Elsewhere,
}

/// Where does this connection lead to?
pub(crate) fn peer(socket: &Socket) -> Peer {
    let address = |end: io::Result<SockAddr>| end.ok()?.as_socket();
    match (address(socket.local_addr()), address(socket.peer_addr())) {
        (Some(local), Some(peer)) if local == peer => Peer::Itself,
        (Some(local), Some(peer)) if local.ip() == peer.ip() || peer.ip().is_loopback() => Peer::SameHost,
        _ => Peer::Elsewhere,
    }
}

/// A connection that stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Established {
    /// Its peer is on this host, and the kernel says from which processor it sends.
    pub is_local: bool,
}

impl Established {
    /// System calls of [`established`] when all is well.
    pub(crate) const SYSCALLS: u64 = 3;
}

/// A connecting socket has become writable: does it stand? Otherwise an errno.
pub(crate) fn established(socket: &Socket) -> Result<Established, i32> {
    if let Some(error) = socket.take_error().unwrap_or_else(Some) {
        return Err(error.raw_os_error().unwrap_or(libc::EIO));
    }
    match peer(socket) {
        // Nobody listens there.
        Peer::Itself => Err(libc::ECONNREFUSED),
        peer => Ok(Established { is_local: peer == Peer::SameHost }),
    }
}

/// Was what a connection to this host received last sent from the processor that this thread runs on? Over loopback a segment is
/// taken in on the processor that sends it.
pub(crate) fn shares_cpu(socket: &Socket) -> Option<bool> {
    let cpu = rustix::net::sockopt::socket_incoming_cpu(socket).ok()?;
    Some(cpu as usize == rustix::thread::sched_getcpu())
}

/// Where the kernel's `struct tcp_info` (linux/tcp.h) has them, in words of four bytes: `tcpi_total_retrans`, and
/// `tcpi_dsack_dups`, which it has since Linux 4.19 and the C library's struct lacks.
const RETRANSMITS_WORD: usize = 25;
const DUPLICATES_WORD: usize = 54;

/// Segments that a connection has sent again because they were lost, SYNs among them. One that the peer reports to have had
/// already was sent again in vain: a peer that is stopped acknowledges late, and the kernel probes for a loss sooner. Of a
/// Unix socket the call fails, and there are none.
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

/// Makes the coming close a reset: no TIME_WAIT, nothing delivered any more.
pub(crate) fn reset_on_close(socket: &Socket) {
    // A socket that is already dead cannot be tuned, and need not be.
    let _ = socket.set_linger(Some(Duration::ZERO));
}

#[cfg(test)]
mod tests {
    use super::*;
    use brunt_plan::units::DurationNs;
    use std::net::{SocketAddr, TcpListener};
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
        // Small enough for every host to grant it; the kernel says twice as much as was asked for.
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
        assert_eq!(established(&socket), Ok(Established { is_local: false }));
        assert_eq!(retransmits(&socket), 0);
        drop(listener);
        assert_eq!(errno(connect(&address, &SocketOptions::default())), Some(libc::ECONNREFUSED));
        std::fs::remove_file(&path).unwrap();
        let long = Address::Unix(format!("/{}", "x".repeat(200)).into());
        assert!(connect(&long, &SocketOptions::default()).is_err());
    }
}
