//! Detects the kind of server from bytes that are no reply of the configured protocol.
//!
//! For messages after a failure. Invariant: what is recognized begins with bytes that no server of another kind sends.

/// What a server speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DetectedProtocol {
    /// Redis's protocol.
    Redis,
    /// memcached's text protocol.
    Memcached,
    /// TLS.
    Tls,
}

/// What memcached's replies in text begin with.
const MEMCACHED: [&[u8]; 9] = [
    b"ERROR\r\n",
    b"CLIENT_ERROR ",
    b"SERVER_ERROR ",
    b"VALUE ",
    b"END\r\n",
    b"STORED\r\n",
    b"NOT_STORED\r\n",
    b"NOT_FOUND\r\n",
    b"VERSION ",
];

impl DetectedProtocol {
    /// By the first bytes of what came; `None` if they tell nothing.
    pub fn of(bytes: &[u8]) -> Option<Self> {
        match bytes {
            // A record of TLS: handshake or alert, of version 3.x (RFC 8446, section 5.1).
            [0x15 | 0x16, 0x03, ..] => Some(Self::Tls),
            [b'-', rest @ ..] if is_error(rest) => Some(Self::Redis),
            [b'$' | b'*', rest @ ..] if is_length(rest) => Some(Self::Redis),
            _ if bytes.starts_with(b"+OK\r\n") || bytes.starts_with(b"+PONG\r\n") => Some(Self::Redis),
            _ if MEMCACHED.iter().any(|reply| bytes.starts_with(reply)) => Some(Self::Memcached),
            _ => None,
        }
    }
}

/// An error of Redis's begins with a word in capitals.
fn is_error(line: &[u8]) -> bool {
    let letters = line.iter().take_while(|byte| byte.is_ascii_uppercase()).count();
    letters > 1 && matches!(line.get(letters), Some(b' ' | b'\r'))
}

/// The length of a string or an array of Redis's; -1 is none.
fn is_length(line: &[u8]) -> bool {
    let digits = line.strip_prefix(b"-").unwrap_or(line);
    let count = digits.iter().take_while(|byte| byte.is_ascii_digit()).count();
    count > 0 && digits[count..].starts_with(b"\r\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn servers_are_recognized_by_their_first_bytes() {
        let table: [(&[u8], Option<DetectedProtocol>); 14] = [
            (b"$-1\r\n", Some(DetectedProtocol::Redis)),
            (b"*2\r\n$1\r\n", Some(DetectedProtocol::Redis)),
            (b"$5.00\r\n", None),
            (b"-ERR unknown command 'set'\r\n", Some(DetectedProtocol::Redis)),
            (b"-NOAUTH Authentication required.\r\n", Some(DetectedProtocol::Redis)),
            (b"+PONG\r\n", Some(DetectedProtocol::Redis)),
            (b"ERROR\r\n", Some(DetectedProtocol::Memcached)),
            (b"CLIENT_ERROR bad command line format\r\n", Some(DetectedProtocol::Memcached)),
            (b"\x15\x03\x03\x00\x02\x02\x0a", Some(DetectedProtocol::Tls)),
            (b"\x15", None),
            (b"-1\r\n", None),
            (b"HTTP/1.1 400 Bad Request\r\n", None),
            (b"ERRORS", None),
            (b"", None),
        ];
        for (bytes, expected) in table {
            assert_eq!(DetectedProtocol::of(bytes), expected, "{}", String::from_utf8_lossy(bytes));
        }
    }
}
