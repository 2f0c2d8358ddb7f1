//! TCP sockets: non-blocking, without delay.
//!
//! Not a connection: no state beyond the descriptor.

use socket2::{Domain, Protocol, SockAddr, Socket, Type};
use std::io;
use std::net::SocketAddr;
use std::time::Duration;

/// Opens a socket and begins to connect it. TCP_NODELAY, because a request held back by Nagle's algorithm would be sent
/// later than its `sent` stamp says.
pub(crate) fn connect_tcp(address: SocketAddr) -> io::Result<Socket> {
    let socket = Socket::new(Domain::for_address(address), Type::STREAM, Some(Protocol::TCP))?;
    socket.set_nonblocking(true)?;
    socket.set_tcp_nodelay(true)?;
    match socket.connect(&SockAddr::from(address)) {
        Ok(()) => Ok(socket),
        Err(error) if error.raw_os_error() == Some(libc::EINPROGRESS) => Ok(socket),
        Err(error) => Err(error),
    }
}

/// Is this socket connected to itself? Two ends that begin to connect to each other at once get one connection, and an
/// attempt whose local port happens to be the one it goes to is both of them: where a server on this host is down, it
/// would seem to be back, echo every request, and keep the port from the real one.
pub(crate) fn is_own_peer(socket: &Socket) -> bool {
    match (socket.local_addr(), socket.peer_addr()) {
        (Ok(local), Ok(peer)) => local == peer,
        _ => false,
    }
}

/// Makes the coming close a reset: no TIME_WAIT, nothing delivered any more.
pub(crate) fn reset_on_close(socket: &Socket) {
    // A socket that is already dead cannot be tuned, and need not be.
    let _ = socket.set_linger(Some(Duration::ZERO));
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::TcpListener;

    #[test]
    fn a_socket_connected_to_itself_is_recognised() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = SockAddr::from(listener.local_addr().unwrap());
        let socket = || Socket::new(Domain::IPV4, Type::STREAM, Some(Protocol::TCP)).unwrap();
        let ordinary = socket();
        ordinary.connect(&address).unwrap();
        assert!(!is_own_peer(&ordinary));
        let own = socket();
        assert!(!is_own_peer(&own), "not connected at all");
        own.bind(&SockAddr::from(SocketAddr::from(([127, 0, 0, 1], 0)))).unwrap();
        own.connect(&own.local_addr().unwrap()).unwrap();
        assert!(is_own_peer(&own));
    }
}
