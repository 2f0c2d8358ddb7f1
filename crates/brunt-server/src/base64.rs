//! Base64 as memcached takes keys in: the standard alphabet, padded (RFC 4648, section 4).
//!
//! Decoding only, for a key is given back as it was sent. Invariant: a text that decodes is the one that encodes to the same
//! bytes, or differs from it in bits that are not used.

/// Decodes the text into `bytes` and returns how many they are; `None` if it is none, or does not fit.
pub(crate) fn decode(text: &[u8], bytes: &mut [u8]) -> Option<usize> {
    if text.is_empty() || !text.len().is_multiple_of(4) {
        return None;
    }
    let padding = text.iter().rev().take(2).take_while(|letter| **letter == b'=').count();
    let len = text.len() / 4 * 3 - padding;
    let bytes = bytes.get_mut(..len)?;
    let mut at = 0;
    for quad in text[..text.len() - padding].chunks(4) {
        let mut word = 0u32;
        for index in 0..4 {
            word = word << 6 | quad.get(index).map_or(Some(0), |letter| value_of(*letter))?;
        }
        for byte in word.to_be_bytes()[1..].iter().take(len - at) {
            bytes[at] = *byte;
            at += 1;
        }
    }
    Some(len)
}

fn value_of(letter: u8) -> Option<u32> {
    Some(u32::from(match letter {
        b'A'..=b'Z' => letter - b'A',
        b'a'..=b'z' => letter - b'a' + 26,
        b'0'..=b'9' => letter - b'0' + 52,
        b'+' => 62,
        b'/' => 63,
        _ => return None,
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_and_bytes() {
        // RFC 4648, section 10, and what is none.
        let table: [(&str, Option<&[u8]>); 13] = [
            ("Zg==", Some(b"f")),
            ("Zm8=", Some(b"fo")),
            ("Zm9v", Some(b"foo")),
            ("Zm9vYg==", Some(b"foob")),
            ("Zm9vYmE=", Some(b"fooba")),
            ("Zm9vYmFy", Some(b"foobar")),
            ("YSAA/w==", Some(b"a \0\xff")),
            ("", None),
            ("Zg", None),
            ("Zg=", None),
            ("Zg=a", None),
            ("Z===", None),
            ("Zm8-", None),
        ];
        for (text, expected) in table {
            let mut bytes = [0; 6];
            let decoded = decode(text.as_bytes(), &mut bytes).map(|len| &bytes[..len]);
            assert_eq!(decoded, expected, "{text:?}");
        }
        assert_eq!(decode(b"Zm9vYmFy", &mut [0; 5]), None, "it does not fit");
    }
}
