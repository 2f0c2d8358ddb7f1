//! Inline commands: a line of words becomes the array of strings that says the same.
//!
//! Only the grammar of a line; everything else is that of arrays. Words are separated and quoted as redis-server 7.0 reads them
//! (`sdssplitargs`).

use crate::grammar::Parsed;
use crate::text::push_decimal;
use memchr::memchr;

/// The longest line (`PROTO_INLINE_MAX_SIZE`).
const LINE_BYTES_MAX: usize = 64 << 10;
const TOO_LONG: &[u8] = b"-ERR Protocol error: too big inline request\r\n";
const UNBALANCED: &[u8] = b"-ERR Protocol error: unbalanced quotes in request\r\n";

/// Writes the line at the front of `input` as an array.
pub(crate) fn to_array(input: &[u8], array: &mut Vec<u8>) -> Parsed<()> {
    let Some(feed) = memchr(b'\n', input) else {
        return if input.len() > LINE_BYTES_MAX {
            Parsed::Broken(TOO_LONG)
        } else {
            Parsed::Partial { need: input.len() + 1 }
        };
    };
    let line = input[..feed].strip_suffix(b"\r").unwrap_or(&input[..feed]);
    let Some(words) = words(line) else { return Parsed::Broken(UNBALANCED) };
    array.clear();
    array.push(b'*');
    push_decimal(array, words.len() as u64);
    array.extend_from_slice(b"\r\n");
    for word in words {
        array.push(b'$');
        push_decimal(array, word.len() as u64);
        array.extend_from_slice(b"\r\n");
        array.extend_from_slice(&word);
        array.extend_from_slice(b"\r\n");
    }
    Parsed::Complete { used: feed + 1, request: () }
}

/// The words of a line; `None` where a quote is not closed, or something follows it at once.
fn words(line: &[u8]) -> Option<Vec<Vec<u8>>> {
    let mut words = Vec::new();
    let mut rest = line.iter().copied().peekable();
    loop {
        while rest.next_if(u8::is_ascii_whitespace).is_some() {}
        if rest.peek().is_none() {
            return Some(words);
        }
        let mut word = Vec::new();
        while let Some(byte) = rest.next_if(|byte| !byte.is_ascii_whitespace()) {
            match byte {
                b'"' | b'\'' => {
                    quoted(byte, &mut rest, &mut word)?;
                    if rest.peek().is_some_and(|behind| !behind.is_ascii_whitespace()) {
                        return None;
                    }
                    break;
                }
                byte => word.push(byte),
            }
        }
        words.push(word);
    }
}

/// Reads up to the closing quote.
fn quoted(quote: u8, rest: &mut impl Iterator<Item = u8>, word: &mut Vec<u8>) -> Option<()> {
    loop {
        let byte = rest.next()?;
        if byte == quote {
            return Some(());
        }
        if byte != b'\\' {
            word.push(byte);
            continue;
        }
        let escaped = rest.next()?;
        match (quote, escaped) {
            (b'\'', b'\'') => word.push(b'\''),
            (b'\'', _) => word.extend_from_slice(&[b'\\', escaped]),
            (_, b'x') => {
                let mut digit = || char::from(rest.next()?).to_digit(16);
                word.push((digit()? * 16 + digit()?) as u8);
            }
            (_, b'n') => word.push(b'\n'),
            (_, b'r') => word.push(b'\r'),
            (_, b't') => word.push(b'\t'),
            (_, b'b') => word.push(8),
            (_, b'a') => word.push(7),
            (_, other) => word.push(other),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn inline_commands_become_arrays() {
        let table = [
            ("GET a\r\n", "*2|$3|GET|$1|a|"),
            ("  get\ta  \n", "*2|$3|get|$1|a|"),
            ("SET a \"b c\\x00\\n\\\"\\\\\"\r\n", "*3|$3|SET|$1|a|$7|b c\0\n\"\\|"),
            ("SET a 'it\\'s'\r\n", "*3|$3|SET|$1|a|$4|it's|"),
            ("SET a \"\"\r\n", "*3|$3|SET|$1|a|$0||"),
            ("\r\n", "*0|"),
        ];
        for (line, expected) in table {
            let mut array = Vec::new();
            assert_eq!(
                to_array(line.as_bytes(), &mut array),
                Parsed::Complete { used: line.len(), request: () },
                "{line:?}"
            );
            assert_eq!(String::from_utf8_lossy(&array).replace("\r\n", "|"), expected, "{line:?}");
        }
        for line in ["SET a \"b\n", "SET a 'b\n", "SET a \"b\"c\n", "SET a \"\\xg0\"\n"] {
            assert_eq!(to_array(line.as_bytes(), &mut Vec::new()), Parsed::Broken(UNBALANCED), "{line:?}");
        }
        assert_eq!(to_array(b"GET", &mut Vec::new()), Parsed::Partial { need: 4 });
        assert_eq!(to_array(&vec![b'x'; LINE_BYTES_MAX + 1], &mut Vec::new()), Parsed::Broken(TOO_LONG));
    }
}
