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

/// Makes the coming close a reset: no TIME_WAIT, nothing delivered any more.
pub(crate) fn reset_on_close(socket: &Socket) {
    // A socket that is already dead cannot be tuned, and need not be.
    let _ = socket.set_linger(Some(Duration::ZERO));
}
