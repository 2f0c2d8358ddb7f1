//! The JSON of a result inside its page: deflated and written in base64, which holds nothing that HTML would read.

/// The most that zlib compresses: a page is read more often than written.
const LEVEL: u8 = 9;
const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

/// The text as a zlib stream in base64.
pub(crate) fn packed(text: &str) -> String {
    base64(&miniz_oxide::deflate::compress_to_vec_zlib(text.as_bytes(), LEVEL))
}

/// RFC 4648, with padding.
pub(crate) fn base64(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for group in bytes.chunks(3) {
        let byte = |index: usize| u32::from(group.get(index).copied().unwrap_or(0));
        let bits = byte(0) << 16 | byte(1) << 8 | byte(2);
        for digit in 0..4 {
            let value = bits >> (18 - 6 * digit) & 63;
            text.push(if digit <= group.len() { char::from(DIGITS[value as usize]) } else { '=' });
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The vectors of RFC 4648, section 10.
    #[test]
    fn base64_as_its_standard_has_it() {
        for (bytes, expected) in [
            ("", ""),
            ("f", "Zg=="),
            ("fo", "Zm8="),
            ("foo", "Zm9v"),
            ("foob", "Zm9vYg=="),
            ("fooba", "Zm9vYmE="),
            ("foobar", "Zm9vYmFy"),
        ] {
            assert_eq!(base64(bytes.as_bytes()), expected);
        }
        assert_eq!(base64(&[0xfb, 0xff, 0xfe]), "+//+");
    }

    #[test]
    fn what_is_packed_comes_back() {
        let text = "</script> ".repeat(1_000);
        let stream = miniz_oxide::deflate::compress_to_vec_zlib(text.as_bytes(), LEVEL);
        assert!(stream.len() < 100, "{}", stream.len());
        let back = miniz_oxide::inflate::decompress_to_vec_zlib(&stream).unwrap();
        assert_eq!(String::from_utf8(back).unwrap(), text);
        assert_eq!(packed(&text), base64(&stream));
    }
}
