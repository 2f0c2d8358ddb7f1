//! What is in a trace, told in place of its path where hosts have it under names of their own.
//!
//! Text form `sha256:HEX,BYTES`, which no path of a file that is there should be.

use crate::units::text_form;
use std::fmt;

/// Size and SHA-256 of a file, as it is stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TraceIdentity {
    /// The digest.
    pub sha256: [u8; 32],
    /// Its size.
    pub bytes: u64,
}

impl TraceIdentity {
    fn of_text(text: &str) -> Result<Self, String> {
        let parsed = text.strip_prefix("sha256:").and_then(|rest| {
            let (digits, bytes) = rest.split_once(',')?;
            let mut sha256 = [0; 32];
            let (pairs, []) = digits.as_bytes().as_chunks::<2>() else { return None };
            (pairs.len() == sha256.len()).then_some(())?;
            for (byte, pair) in sha256.iter_mut().zip(pairs) {
                *byte = u8::from_str_radix(str::from_utf8(pair).ok()?, 16).ok()?;
            }
            Some(Self { sha256, bytes: bytes.parse().ok()? })
        });
        parsed.ok_or_else(|| "expected sha256:HEX,BYTES".to_owned())
    }

    fn write_text(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("sha256:")?;
        self.sha256.iter().try_for_each(|byte| write!(formatter, "{byte:02x}"))?;
        write!(formatter, ",{}", self.bytes)
    }
}
text_form!(TraceIdentity, without serde);
