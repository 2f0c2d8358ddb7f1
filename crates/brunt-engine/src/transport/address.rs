//! Address of a server: of the network, or the path of a Unix socket.
//!
//! Names are resolved before a run.

use socket2::SockAddr;
use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;

/// One address.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Address {
    /// By TCP.
    Network(SocketAddr),
    /// By UDP.
    Datagram(SocketAddr),
    /// The path of a Unix stream socket.
    Unix(PathBuf),
}

impl Address {
    /// The network address, if it has one.
    pub fn network(&self) -> Option<SocketAddr> {
        match self {
            Self::Network(address) | Self::Datagram(address) => Some(*address),
            Self::Unix(_) => None,
        }
    }

    /// Is it on this host by definition, whatever addresses this host has?
    pub fn is_loopback(&self) -> bool {
        self.network().is_none_or(|address| address.ip().is_loopback())
    }

    /// As a socket address. An error if the path is too long.
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
