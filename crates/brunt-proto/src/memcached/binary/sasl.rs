//! Authentication in memcached's binary protocol: SASL PLAIN (RFC 4616).
//!
//! No other mechanism, and no state of a connection. Invariant: nothing that is formatted shows a password.

use super::{HEADER_BYTES, Header, Opcode};
use crate::out::Out;
use brunt_plan::outcome::ReplyKind;
use brunt_plan::quoted_bytes::QuotedBytes;
use std::fmt;

const PLAIN: &[u8] = b"PLAIN";

/// The result of a request for authentication.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Authentication {
    /// The connection may be used.
    Accepted,
    /// It may not: wrong credentials, or a server without this mechanism or any. The text of the `End` says which.
    Refused,
    /// The server wants to hear more. PLAIN has nothing more to say.
    Continues,
}

impl Authentication {
    /// What the end of the reply says.
    pub const fn of(reply: ReplyKind) -> Self {
        match reply {
            ReplyKind::Ok => Self::Accepted,
            ReplyKind::Value => Self::Continues,
            _ => Self::Refused,
        }
    }
}

/// An upper bound on what [`put_sasl_plain`] appends.
pub const fn sasl_plain_len(user: &[u8], password: &[u8]) -> usize {
    HEADER_BYTES + PLAIN.len() + 2 + user.len() + password.len()
}

/// Asks to be let in, by SASL PLAIN without an identity to act for. There must be room for [`sasl_plain_len`].
pub fn put_sasl_plain(user: &[u8], password: &[u8], token: u32, out: &mut Out) {
    let body = sasl_plain_len(user, password) - HEADER_BYTES;
    out.put(&Header::request(Opcode::SaslAuth, PLAIN, 0, body, token).to_bytes());
    out.put(PLAIN);
    out.put_around(b"\0", user, b"\0");
    out.put(password);
}

/// Credentials as a connection says them first.
#[derive(Clone)]
pub struct SaslLogin {
    bytes: Box<[u8]>,
}

impl fmt::Debug for SaslLogin {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("SaslLogin").finish_non_exhaustive()
    }
}

impl SaslLogin {
    /// This user, with this password.
    pub fn new(user: &str, password: &str) -> Self {
        let (user, password) = (user.as_bytes(), password.as_bytes());
        let mut out = Out::with_room(sasl_plain_len(user, password));
        put_sasl_plain(user, password, 0, &mut out);
        // Nothing of it is a reference.
        Self { bytes: out.contiguous().unwrap_or_default().into() }
    }

    /// What is to be sent before anything else; it has one reply.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Why the connection is not let in, for a user.
    pub fn refusal(reply: ReplyKind, text: &[u8]) -> String {
        let text = QuotedBytes(text);
        match (Authentication::of(reply), reply) {
            (Authentication::Continues, _) => {
                "SASL PLAIN refused: the server requests more than user and password".to_owned()
            }
            // What a memcached says that knows no such command.
            (_, ReplyKind::Error) => {
                format!("SASL PLAIN refused: {text} (memcached has users only with its option -S)")
            }
            _ => format!("SASL PLAIN refused: {text}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::memcached::BinaryCodec;
    use crate::{Codec, ConnectionSetup};
    use std::sync::Arc;

    #[test]
    fn logins_are_sent_first_and_never_printed() {
        let codec = BinaryCodec::with_login(Some(Arc::new(SaslLogin::new("us\u{e9}r", "p\0w"))));
        let ConnectionSetup { bytes, replies } = codec.connection_setup();
        assert_eq!((replies, &bytes[HEADER_BYTES..]), (1, &b"PLAIN\0us\xc3\xa9r\0p\0w"[..]));
        assert!(!format!("{codec:?}").contains("p\\0w"), "{codec:?}");
        assert_eq!(BinaryCodec::new().connection_setup().replies, 0);
    }

    #[test]
    fn refusals_quote_the_server() {
        for (reply, text, expected) in [
            (ReplyKind::ClientError, &b"Auth failure."[..], "SASL PLAIN refused: Auth failure."),
            (
                ReplyKind::Error,
                b"Unknown command",
                "SASL PLAIN refused: Unknown command (memcached has users only with its option -S)",
            ),
            (ReplyKind::Value, b"", "SASL PLAIN refused: the server requests more than user and password"),
        ] {
            assert_eq!(BinaryCodec::new().setup_error(0, reply, text), expected);
        }
    }
}
