//! What a connection has said of itself: the dialect it speaks, and who it is.
//!
//! Only state; what is answered to it is the dialect's. Invariant: the dialect is settled by the first byte, or
//! by an option, and never changes.

use std::fmt;
use std::str::FromStr;

/// What is spoken on a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dialect {
    /// memcached's text protocol and its meta commands, which stand side by side.
    Text,
    /// memcached's binary protocol.
    Binary,
    /// Redis's protocol.
    Resp,
    /// The same with inline commands.
    Inline,
    /// Payloads with their CRC-32, which are sent back.
    Echo,
    /// `PING`, to which `PONG` is the reply.
    Ping,
    /// Framed calls of Thrift's binary protocol, to all of which an empty result is the reply.
    Thrift,
}

/// Those that the first byte does not tell.
const UNTOLD: [(&str, Dialect); 4] = [
    ("resp-inline", Dialect::Inline),
    ("echo", Dialect::Echo),
    ("ping", Dialect::Ping),
    ("thrift", Dialect::Thrift),
];

impl FromStr for Dialect {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        UNTOLD.iter().find(|(name, _)| *name == text).map(|(_, dialect)| *dialect).ok_or_else(|| {
            format!(
                "'{text}' is no protocol that must be named: expected resp-inline, echo, ping or thrift; the others are told by \
                 their first byte"
            )
        })
    }
}

impl Dialect {
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
    pub(crate) dialect: Option<Dialect>,
    pub(crate) resp_version: RespVersion,
    /// It has said who it is. Does not matter where nobody has to.
    pub(crate) is_let_in: bool,
    /// In order of acceptance, from 0; tells replies to an earlier connection with the same id apart.
    pub(crate) number: u32,
}

/// Who is let in. Shows nothing of the password.
#[derive(Clone, PartialEq, Eq)]
pub struct Credentials {
    /// The user; `default` is Redis's name for whoever names none.
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
