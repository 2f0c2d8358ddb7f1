//! Bytes that others sent, as a report quotes them.
//!
//! Not a string literal of any language: nothing reads it back. Invariant: what comes out is printable ASCII, and nothing in it moves
//! a cursor or ends a line, whatever the bytes are.

use std::fmt::{self, Write};

/// Bytes for a person to read: as they are where they are printable, with quotation marks, and else escaped as in Rust.
#[derive(Clone, Copy, Debug)]
pub struct QuotedBytes<'a>(pub &'a [u8]);

impl fmt::Display for QuotedBytes<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        for byte in self.0 {
            match byte {
                b'\'' | b'"' => formatter.write_char(char::from(*byte))?,
                byte => write!(formatter, "{}", byte.escape_ascii())?,
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn printable_text_is_unchanged() {
        let table: [(&[u8], &str); 4] = [
            (b"ERR unknown command 'FOO', with args \"a\"", "ERR unknown command 'FOO', with args \"a\""),
            (b"a\r\n\tb\x1b[2J\x7f", "a\\r\\n\\tb\\x1b[2J\\x7f"),
            (b"C:\\x", "C:\\\\x"),
            ("\u{e9}".as_bytes(), "\\xc3\\xa9"),
        ];
        for (bytes, expected) in table {
            assert_eq!(QuotedBytes(bytes).to_string(), expected);
        }
        let all: Vec<u8> = (0..=255).collect();
        assert!(QuotedBytes(&all).to_string().bytes().all(|byte| (b' '..=b'~').contains(&byte)));
    }
}
