//! Authentication in memcached's binary protocol: SASL PLAIN (RFC 4616).
//!
//! No other mechanism, and no state of a connection. Invariant: nothing that is formatted shows a password.

use super::{HEADER_BYTES, Header, Opcode};
use crate::out::Out;
use brunt_plan::outcome::ReplyKind;
use brunt_plan::quoted_bytes::QuotedBytes;
use std::fmt;

const PLAIN: &[u8] = b"PLAIN";

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
        let body = PLAIN.len() + 2 + user.len() + password.len();
        let mut out = Out::with_room(HEADER_BYTES + body);
        out.put(&Header::request(Opcode::SaslAuth as u8, PLAIN, 0, body, 0).to_bytes());
        out.put(PLAIN);
        // No identity to act for.
        out.put_around(b"\0", user, b"\0");
        out.put(password);
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
        match reply {
            // The server wants to hear more, and PLAIN has nothing more to say.
            ReplyKind::Value => {
                "SASL PLAIN refused: the server requests more than user and password".to_owned()
            }
            // What a memcached says that knows no such command.
            ReplyKind::Error => {
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
    use crate::{Codec, ConnectionSetup, Event};
    use std::sync::Arc;

    #[test]
    fn logins_are_sent_first_and_never_printed() {
        let codec = BinaryCodec::with_setup(Some(Arc::new(SaslLogin::new("us\u{e9}r", "p\0w"))));
        let ConnectionSetup { bytes, replies } = codec.connection_setup();
        assert_eq!((replies, &bytes[HEADER_BYTES..]), (1, &b"PLAIN\0us\xc3\xa9r\0p\0w"[..]));
        assert!(!format!("{codec:?}").contains("p\\0w"), "{codec:?}");
        assert_eq!(BinaryCodec::default().connection_setup().replies, 0);
    }

    /// The line end that makes other servers reply is before the first zero, where Redis stops looking for it.
    #[test]
    fn setup_without_a_login_is_a_noop() {
        let codec = BinaryCodec::with_setup(None);
        let ConnectionSetup { bytes, replies } = codec.connection_setup();
        assert_eq!((replies, &bytes[..3], bytes.len()), (1, &b"\x80\n\0"[..], HEADER_BYTES));
        let mut reply = bytes.to_vec();
        reply[0] = 0x81;
        let decoded = transcript(codec.clone(), &reply);
        assert!(
            matches!(decoded[..], [ReplyKind::NotFound]) && codec.accepts_setup_reply(decoded[0]),
            "{decoded:?}"
        );
        assert!(!codec.accepts_setup_reply(ReplyKind::ClientError));
        assert_eq!(
            codec.setup_error(0, ReplyKind::ClientError, b"Auth failure."),
            "Auth failure.; a server with users requires user and --password"
        );
    }

    /// The kinds of the replies in these bytes.
    fn transcript(mut codec: BinaryCodec, mut input: &[u8]) -> Vec<ReplyKind> {
        let mut kinds = Vec::new();
        loop {
            let (used, event) = codec.decode(input);
            match event {
                None => return kinds,
                Some(Event::End { reply, .. }) => kinds.push(reply),
                Some(_) => {}
            }
            input = &input[used..];
        }
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
            let codec = BinaryCodec::with_setup(Some(Arc::new(SaslLogin::new("reader", "x"))));
            assert_eq!(codec.setup_error(0, reply, text), expected);
        }
    }
}
