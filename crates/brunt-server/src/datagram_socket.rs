//! The datagram socket, and the addresses of its senders.
//!
//! What they say is not known here. Invariant: every sender that is known has one connection id of the core's; when there
//! are too many they are all forgotten, and come back as new ones with their next datagram.

use crate::connection::ConnectionId;
use std::collections::HashMap;
use std::io;
use std::net::{SocketAddr, UdpSocket};

/// Senders that are known at most: more than there are ports of one address that a client may use at once.
pub(crate) const SENDERS_MAX: usize = 1 << 17;
/// The longest datagram there is.
const DATAGRAM_BYTES: usize = 1 << 16;

/// The socket and the addresses.
#[derive(Debug)]
pub(crate) struct DatagramSocket {
    socket: UdpSocket,
    senders: HashMap<SocketAddr, ConnectionId>,
    addresses: HashMap<ConnectionId, SocketAddr>,
    buffer: Vec<u8>,
}

impl DatagramSocket {
    pub(crate) fn new(socket: UdpSocket) -> Self {
        Self { socket, senders: HashMap::new(), addresses: HashMap::new(), buffer: vec![0; DATAGRAM_BYTES] }
    }

    /// The address of the next datagram's sender and its length; `None` if there is none.
    pub(crate) fn receive(&mut self) -> Option<(SocketAddr, usize)> {
        loop {
            match self.socket.recv_from(&mut self.buffer) {
                Ok((bytes, sender)) => return Some((sender, bytes)),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return None,
                // An undeliverable reply shows here, or a signal came.
                Err(_) => {}
            }
        }
    }

    /// The last datagram, of this length.
    pub(crate) fn datagram(&self, bytes: usize) -> &[u8] {
        &self.buffer[..bytes]
    }

    /// Who sends from there, if that is known.
    pub(crate) fn sender(&self, address: SocketAddr) -> Option<ConnectionId> {
        self.senders.get(&address).copied()
    }

    /// Gets to know a sender.
    pub(crate) fn know(&mut self, address: SocketAddr, id: ConnectionId) {
        self.senders.insert(address, id);
        self.addresses.insert(id, address);
    }

    /// Forgets all senders if there are too many. Returns their ids.
    pub(crate) fn clear_if_full(&mut self) -> Vec<ConnectionId> {
        if self.senders.len() < SENDERS_MAX {
            return Vec::new();
        }
        self.senders.clear();
        self.addresses.drain().map(|(id, _)| id).collect()
    }

    /// Sends a datagram. One that the kernel does not take is lost, as it may be anywhere on its way.
    pub(crate) fn send(&self, id: ConnectionId, datagram: &[u8]) {
        if let Some(address) = self.addresses.get(&id) {
            let _ = self.socket.send_to(datagram, address);
        }
    }
}
