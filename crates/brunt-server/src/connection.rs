//! State of a connection in the core, the replies that leave on it, and its end.
//!
//! Only state. Invariant: it belongs to one connection; the next one with its id begins anew.

use crate::faults::Fault;
use crate::session::Session;

/// What a connection does with the bytes it gets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Reading {
    Commands,
    /// Bytes of a refused value that are still to come.
    Discarding(u64),
    /// The rest of a batch whose first reply was dropped or cut; then nothing.
    Batch,
    /// Everything to come is thrown away: a reply was dropped, or the end is on its way.
    #[default]
    Nothing,
}

/// A retrieval of several keys, one request for each: all of them share the number and the fault of the first, and only the
/// first takes service time. So a batch is to the queue what it is in protocols that have one request for it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Batch {
    pub(crate) fault: Option<Fault>,
    /// Its fault has taken effect already.
    pub(crate) is_counted: bool,
}

impl Batch {
    /// Is it to be cut, and had no reply so far?
    pub(crate) fn is_still_to_be_cut(self) -> bool {
        self.fault == Some(Fault::Cut) && !self.is_counted
    }
}

/// A connection, or a sender of datagrams from one address.
#[derive(Debug, Default)]
pub(crate) struct Connection {
    pub(crate) open: bool,
    /// A sender of datagrams from one address, which has neither begin nor end.
    pub(crate) is_peer: bool,
    pub(crate) session: Session,
    /// The batch that a quiet retrieval would continue.
    pub(crate) batch: Option<Batch>,
    pub(crate) reading: Reading,
    /// The front of a command that is not yet whole.
    pub(crate) input: Vec<u8>,
    /// Parsing `input` makes no sense before it has this many bytes.
    pub(crate) need: usize,
    /// `input` may have whole commands, which wait until replies that are due have been taken.
    pub(crate) is_held: bool,
}

impl Connection {
    /// One that has just begun, with this number in the order of acceptance.
    pub(crate) fn begin(number: u32, is_peer: bool) -> Self {
        let session = Session { number, ..Session::default() };
        Self { open: true, is_peer, session, reading: Reading::Commands, ..Self::default() }
    }
}

/// A connection: a small number of the caller's choice, free for reuse after [`Core::disconnect`](crate::Core::disconnect).
pub type ConnectionId = u32;

/// What happens to a connection after the bytes of a departure.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum End {
    /// Nothing: it stays open.
    #[default]
    Stays,
    /// It is closed in good order: the client reads every byte, then the end.
    Closes,
    /// It is reset: the client sees an error, and bytes that it has not got yet may be lost.
    Resets,
}

/// Replies that leave now: of one connection, at one instant. There may be several of them, and there may be none if
/// the connection only ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Departure<'a> {
    /// To whom.
    pub connection: ConnectionId,
    /// When they were due; at most the `now_ns` of the call.
    pub departure_ns: u64,
    /// The replies.
    pub bytes: &'a [u8],
    /// What happens to the connection after them.
    pub end: End,
}
