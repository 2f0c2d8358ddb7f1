//! Protocol and login of a connection.
//!
//! Only state; each protocol writes its own answers to a login. Invariant: the protocol is settled by the first byte, or
//! by an option, and never changes.

use std::fmt;
use std::str::FromStr;

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
