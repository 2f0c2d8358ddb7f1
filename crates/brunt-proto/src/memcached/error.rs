//! Errors of memcached's protocols: for how long each holds, and what a status of the binary protocol without a text is called.
//!
//! The texts are those of memcached 1.6. Pure functions over the reply.

use brunt_plan::outcome::{ErrorPersistence, ReplyKind};

/// For how long an error holds. Proxies say of a server that is down what they like, with `SERVER_ERROR`.
pub(super) fn persistence(reply: ReplyKind, text: &[u8]) -> ErrorPersistence {
    let says = |words: &[u8]| text.windows(words.len()).any(|part| part.eq_ignore_ascii_case(words));
    match reply {
        ReplyKind::Error if says(b"too many open connections") => ErrorPersistence::Transient,
        ReplyKind::Error | ReplyKind::ClientError | ReplyKind::Redirect => ErrorPersistence::Permanent,
        _ if says(b"too large") => ErrorPersistence::Permanent,
        _ if says(b"out of memory") => ErrorPersistence::OutOfMemory,
        _ => ErrorPersistence::Transient,
    }
}

/// The name and the number of a status of the binary protocol.
pub(super) fn status_text(status: u16) -> &'static [u8] {
    match status {
        0x03 => b"value too large (status 0x0003)",
        0x04 => b"invalid arguments (status 0x0004)",
        0x06 => b"non-numeric value (status 0x0006)",
        0x07 => b"wrong server (status 0x0007)",
        0x08 => b"authentication error (status 0x0008)",
        0x09 => b"authentication continues (status 0x0009)",
        0x20 => b"authentication error (status 0x0020)",
        0x21 => b"authentication continues (status 0x0021)",
        0x24 => b"no access (status 0x0024)",
        0x81 => b"unknown command (status 0x0081)",
        0x82 => b"out of memory (status 0x0082)",
        0x83 => b"not supported (status 0x0083)",
        0x84 => b"internal error (status 0x0084)",
        0x85 => b"busy (status 0x0085)",
        0x86 => b"temporary failure (status 0x0086)",
        other => NUMBERS.get(usize::from(other)).map_or(b"status above 0x00ff", |text| &text[..]),
    }
}

/// Texts of statuses without a name.
static NUMBERS: [[u8; 13]; 256] = {
    let mut texts = [*b"status 0x00NN"; 256];
    let digits = b"0123456789abcdef";
    let mut status = 0;
    while status < 256 {
        texts[status][11] = digits[status >> 4];
        texts[status][12] = digits[status & 15];
        status += 1;
    }
    texts
};

#[cfg(test)]
mod tests {
    use super::*;
    use ErrorPersistence::{OutOfMemory, Permanent, Transient};
    use ReplyKind::{ClientError, Error, ServerError};

    #[test]
    fn persistence_of_errors() {
        let table: [(ReplyKind, &[u8], ErrorPersistence); 13] = [
            (Error, b"ERROR", Permanent),
            (Error, b"Unknown command", Permanent),
            (Error, b"Too many open connections", Transient),
            (ClientError, b"line too long", Permanent),
            (ClientError, b"Auth failure.", Permanent),
            (ServerError, b"object too large for cache", Permanent),
            (ServerError, b"Too large.", Permanent),
            (ServerError, status_text(0x03), Permanent),
            (ServerError, b"out of memory storing object", OutOfMemory),
            (ServerError, b"Out of memory", OutOfMemory),
            (ServerError, status_text(0x82), OutOfMemory),
            (ServerError, status_text(0x86), Transient),
            (ServerError, b"Connection refused", Transient),
        ];
        for (reply, text, expected) in table {
            assert_eq!(persistence(reply, text), expected, "{}", String::from_utf8_lossy(text));
        }
    }

    #[test]
    fn statuses_have_a_number() {
        for (status, text) in [
            (0x81, "unknown command (status 0x0081)"),
            (0x40, "status 0x0040"),
            (0xff, "status 0x00ff"),
            (0x100, "status above 0x00ff"),
        ] {
            assert_eq!(status_text(status), text.as_bytes());
        }
    }
}
