//! A connection that waits: for whoever speaks to a server beside the load.
//!
//! Not a worker's: those never wait on one connection.

use super::address::Address;
use super::socket::{self, Peer};
use super::tls::client::TlsClient;
use rustls::{ClientConnection, StreamOwned};
use socket2::{Domain, Socket, Type};
use std::io::{self, ErrorKind, Read, Write};
use std::time::Duration;

/// A connection, plain or by TLS.
#[derive(Debug)]
pub(crate) enum Stream {
    Plain(Socket),
    Tls(Box<StreamOwned<ClientConnection, Socket>>),
}

impl Stream {
    /// A connection to one address, within this time. A handshake of TLS comes with the first byte that is written.
    pub(crate) fn connect(address: &Address, tls: Option<&TlsClient>, timeout: Duration) -> io::Result<Self> {
        let to = address.to_socket_address()?;
        let socket = Socket::new(to.domain(), Type::STREAM, None)?;
        socket.connect_timeout(&to, timeout)?;
        if to.domain() != Domain::UNIX {
            // An attempt at a port that nobody listens on may meet itself, on this host.
            if socket::peer(&socket) == Peer::Itself {
                return Err(ErrorKind::ConnectionRefused.into());
            }
            socket.set_tcp_nodelay(true)?;
        }
        match tls {
            None => Ok(Self::Plain(socket)),
            Some(client) => {
                let connection = client.connection().map_err(io::Error::other)?;
                Ok(Self::Tls(Box::new(StreamOwned::new(connection, socket))))
            }
        }
    }

    /// How long a read and a write may take at most.
    pub(crate) fn set_timeout(&self, timeout: Duration) -> io::Result<()> {
        let socket = match self {
            Self::Plain(socket) => socket,
            Self::Tls(stream) => &stream.sock,
        };
        socket.set_write_timeout(Some(timeout))?;
        socket.set_read_timeout(Some(timeout))
    }
}

impl Read for Stream {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        match self {
            Self::Plain(socket) => socket.read(bytes),
            Self::Tls(stream) => stream.read(bytes),
        }
    }
}

impl Write for Stream {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Self::Plain(socket) => socket.write(bytes),
            Self::Tls(stream) => stream.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match self {
            Self::Plain(socket) => socket.flush(),
            Self::Tls(stream) => stream.flush(),
        }
    }
}
