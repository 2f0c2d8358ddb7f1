//! Sockets: servers with their resolved addresses, options, datagrams, blocking connections, TLS settings.
//!
//! Invariant: an endpoint has at least one address.

pub(crate) mod blocking;
pub(crate) mod socket;
pub(crate) mod tls_client;

use crate::transport::tls_client::TlsClient;
use brunt_plan::server::ServerAddress;
use socket2::SockAddr;
use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;

/// A server with its resolved addresses.
#[derive(Clone, Debug)]
pub struct Endpoint {
    /// As in the plan.
    pub server: ServerAddress,
    /// Addresses of the name in the order to try them, or the one path; at least one.
    pub addresses: Vec<Address>,
    /// The TLS client, if the transport is TLS.
    pub tls: Option<TlsClient>,
}

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
