//! Where a connection goes to: an address of the network, or the path of a Unix socket.
//!
//! Not a name (those are resolved before a run) and not a socket.

use socket2::SockAddr;
use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;

/// One place that connections go to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Address {
    /// By TCP.
    Network(SocketAddr),
    /// By UDP.
    Datagram(SocketAddr),
    /// A stream socket of this host, by its path.
    Unix(PathBuf),
}

impl Address {
    /// The address of the network, if it is one.
    pub fn network(&self) -> Option<SocketAddr> {
        match self {
            Self::Network(address) | Self::Datagram(address) => Some(*address),
            Self::Unix(_) => None,
        }
    }

    /// Does nothing that is sent there leave this host, whatever addresses this host has?
    pub fn is_loopback(&self) -> bool {
        self.network().is_none_or(|address| address.ip().is_loopback())
    }

    /// As the kernel takes it. An error: the path is too long.
    pub(crate) fn to_socket_address(&self) -> io::Result<SockAddr> {
        match self {
            Self::Network(address) | Self::Datagram(address) => Ok(SockAddr::from(*address)),
            Self::Unix(path) => SockAddr::unix(path),
        }
    }
}

impl From<SocketAddr> for Address {
    fn from(address: SocketAddr) -> Self {
        Self::Network(address)
    }
}
