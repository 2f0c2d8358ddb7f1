//! The socket of a connection, as epoll and io_uring both keep it.
//!
//! Invariant: the generation changes with every connect and every close, so that an event of an earlier connection with
//! the same index is recognised as stale.

use super::ConnectionKind;
use crate::transport::socket::{self, Established};
use socket2::Socket;

/// Bits of a generation: as many as an entry of io_uring has room for beside index and kind.
pub(super) const GENERATION_BITS: u32 = 24;

/// State of a connection.
#[derive(Debug, Default)]
pub(super) enum State {
    #[default]
    Closed,
    Connecting(Socket),
    /// An open plain stream: the only state that the hot path checks.
    Stream(Socket),
    /// Open, and anything else.
    Other(Socket),
}

/// One connection.
#[derive(Debug, Default)]
pub(super) struct SocketEntry<P> {
    pub state: State,
    pub kind: ConnectionKind,
    /// Tells events of this connection from those of an earlier one with the same index.
    pub generation: u32,
    /// Its peer is on this host, so that the kernel reports the sender's CPU.
    is_local: bool,
    /// Since when bytes have been left unread in the socket; 0 if none are.
    pub unread_since_ns: u64,
    /// The send that is not settled, as the interface knows it.
    pub pending_send: P,
}

impl<P: Default> SocketEntry<P> {
    pub(super) fn socket(&self) -> Option<&Socket> {
        match &self.state {
            State::Closed => None,
            State::Connecting(socket) | State::Stream(socket) | State::Other(socket) => Some(socket),
        }
    }

    /// Is it established?
    pub(super) fn is_open(&self) -> bool {
        matches!(self.state, State::Stream(_) | State::Other(_))
    }

    /// The open socket, if its peer is on this host.
    pub(super) fn local_socket(&self) -> Option<&Socket> {
        self.socket().filter(|_| self.is_open() && self.is_local)
    }

    /// When the bytes that are read now were not there: at `polled_ns`, unless a read has left some.
    #[inline]
    pub(super) fn polled_ns(&self, polled_ns: u64) -> u64 {
        if self.unread_since_ns == 0 { polled_ns } else { self.unread_since_ns }
    }

    /// Begins a connection.
    pub(super) fn begin(&mut self, socket: Socket, kind: ConnectionKind) {
        self.generation = (self.generation + 1) % (1 << GENERATION_BITS);
        (self.state, self.kind) = (State::Connecting(socket), kind);
    }

    /// Marks a connection as established, if it is; otherwise returns the errno.
    pub(super) fn establish(&mut self) -> Result<(), i32> {
        let Established { is_local } = self.socket().map_or(Err(libc::EBADF), socket::established)?;
        self.is_local = is_local;
        self.state = match (std::mem::take(&mut self.state), self.kind) {
            (State::Connecting(socket), ConnectionKind::Stream) => State::Stream(socket),
            (State::Connecting(socket), _) => State::Other(socket),
            (state, _) => state,
        };
        Ok(())
    }

    /// Closes a connection. Returns its socket and whether it was established.
    pub(super) fn close(&mut self) -> Option<(Socket, bool)> {
        let was_open = self.is_open();
        self.pending_send = P::default();
        self.unread_since_ns = 0;
        self.generation = (self.generation + 1) % (1 << GENERATION_BITS);
        match std::mem::take(&mut self.state) {
            State::Closed => None,
            State::Connecting(socket) | State::Stream(socket) | State::Other(socket) => {
                Some((socket, was_open))
            }
        }
    }
}

/// Segments sent again on these connections.
pub(super) fn retransmits<P: Default>(connections: &[SocketEntry<P>]) -> u64 {
    connections.iter().filter_map(SocketEntry::socket).map(socket::retransmits).sum()
}
