//! State of a connection in the core: what it speaks, who has logged in, what leaves on it, and its end.
//!
//! Only state; each protocol writes its own answers to a login. Invariants: it belongs to one connection; the next one with its id begins
//! anew; the protocol is settled by the first byte, or by an option, and never changes.

use crate::faults::Fault;
use std::fmt;
use std::str::FromStr;

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

// --- Protocol and login ---

/// What is spoken on a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WireProtocol {
    /// memcached's text protocol and its meta commands, which stand side by side.
    Text,
    /// memcached's binary protocol.
    Binary,
    /// Redis's protocol.
    Resp,
    /// Redis's protocol with inline commands.
    Inline,
    /// Payloads with their CRC-32, which are sent back.
    Echo,
    /// `PING`, to which `PONG` is the reply.
    Ping,
    /// Framed calls of Thrift's binary protocol, to all of which an empty result is the reply.
    Thrift,
}

/// Protocols that the first byte does not tell.
const UNDETECTABLE: [(&str, WireProtocol); 4] = [
    ("resp-inline", WireProtocol::Inline),
    ("echo", WireProtocol::Echo),
    ("ping", WireProtocol::Ping),
    ("thrift", WireProtocol::Thrift),
];

impl FromStr for WireProtocol {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        UNDETECTABLE.iter().find(|(name, _)| *name == text).map(|(_, protocol)| *protocol).ok_or_else(|| {
            format!(
                "'{text}' is no protocol that must be named: expected resp-inline, echo, ping or thrift; the others are told by \
                 their first byte"
            )
        })
    }
}

impl WireProtocol {
    /// The names of those that are read from a text.
    pub const NAMES: [&'static str; 4] = {
        let [(inline, _), (echo, _), (ping, _), (thrift, _)] = UNDETECTABLE;
        [inline, echo, ping, thrift]
    };

    /// What a connection speaks that begins with this byte: memcached and Redis decide so, too.
    pub(crate) const fn of(first: u8) -> Self {
        match first {
            crate::binary::REQUEST_MAGIC => Self::Binary,
            b'*' => Self::Resp,
            _ => Self::Text,
        }
    }
}

/// The version of Redis's protocol that replies are written in.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum RespVersion {
    #[default]
    Two,
    Three,
}

/// The state of one connection.
#[derive(Clone, Debug, Default)]
pub(crate) struct Session {
    /// None before the first byte.
    pub(crate) protocol: Option<WireProtocol>,
    pub(crate) resp_version: RespVersion,
    /// It has logged in. Without credentials this does not matter.
    pub(crate) is_authenticated: bool,
    /// In order of acceptance, from 0; tells replies to an earlier connection with the same id apart.
    pub(crate) number: u32,
}

/// Who is let in. Shows nothing of the password.
#[derive(Clone, PartialEq, Eq)]
pub struct Credentials {
    /// The user; `default` is Redis's user of logins without a name.
    pub user: String,
    /// The password.
    pub password: String,
}

impl Credentials {
    /// Is this who may come in?
    pub(crate) fn admit(&self, user: &[u8], password: &[u8]) -> bool {
        (user, password) == (self.user.as_bytes(), self.password.as_bytes())
    }
}

impl fmt::Debug for Credentials {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Credentials").field("user", &self.user).finish_non_exhaustive()
    }
}
