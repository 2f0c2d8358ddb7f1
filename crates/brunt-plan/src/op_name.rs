//! What an operation is called in results, in assertions and in the JSON keys: `get`, `HSET`, `HSET#2`.
//!
//! Not what it is booked as (that is [`OpId`](crate::op::OpId), an index): names compare runs of different plans. `Copy`, so
//! that a subject of an assertion stays a plain value.

use crate::op::OpKind;
use crate::units::serde_as_text;
use std::fmt;
use std::str::FromStr;

/// A name of 1 to [`OpName::BYTES_MAX`] letters, digits and `_`, `-`, `.`, `:`, `#`, the first of them a letter.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct OpName {
    /// Bytes after `len` are 0.
    bytes: [u8; Self::BYTES_MAX],
    len: u8,
}

impl OpName {
    /// The longest name.
    pub const BYTES_MAX: usize = 32;

    /// The syntax that error messages name.
    pub const ACCEPTED: &str = "up to 32 letters, digits and '_', '-', '.', ':', '#', a letter first";

    /// The name of this text, which is one.
    fn of(text: &str) -> Self {
        let mut bytes = [0; Self::BYTES_MAX];
        bytes[..text.len()].copy_from_slice(text.as_bytes());
        Self { bytes, len: text.len() as u8 }
    }

    /// The name as text.
    pub fn as_str(&self) -> &str {
        // Only ASCII is ever put in.
        std::str::from_utf8(&self.bytes[..usize::from(self.len)]).unwrap_or_default()
    }

    /// The `number`th operation of this name: `HSET#2`. A name that would be too long loses its end.
    #[must_use]
    pub fn numbered(&self, number: usize) -> Self {
        let suffix = format!("#{number}");
        let kept = self.as_str();
        let kept = &kept[..kept.len().min(Self::BYTES_MAX - suffix.len())];
        // A name and a number of at most 20 digits make a name.
        format!("{kept}{suffix}").parse().unwrap_or(*self)
    }
}

impl From<OpKind> for OpName {
    fn from(kind: OpKind) -> Self {
        Self::of(kind.name())
    }
}

impl FromStr for OpName {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let is_named = |byte: u8| byte.is_ascii_alphanumeric() || b"_-.:#".contains(&byte);
        let begins = text.bytes().next().is_some_and(|byte| byte.is_ascii_alphabetic());
        if !begins || text.len() > Self::BYTES_MAX || !text.bytes().all(is_named) {
            return Err(format!("invalid operation name '{text}': expected {}", Self::ACCEPTED));
        }
        Ok(Self::of(text))
    }
}

impl fmt::Display for OpName {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.pad(self.as_str())
    }
}

impl fmt::Debug for OpName {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self.as_str(), formatter)
    }
}
serde_as_text!(OpName);

#[cfg(test)]
mod tests {
    use super::*;
    use crate::units::check_texts;

    #[test]
    fn names() {
        let long = "a".repeat(32);
        check_texts::<OpName>(&[
            ("get", Some("get")),
            ("HSET#2", Some("HSET#2")),
            ("JSON.GET", Some("JSON.GET")),
            (&long, Some(&long)),
            (&"a".repeat(33), None),
            ("", None),
            ("2GET", None),
            ("#2", None),
            ("a b", None),
            ("a=b", None),
            ("käse", None),
        ]);
        for kind in OpKind::ALL {
            assert_eq!(OpName::from(kind), kind.name().parse().unwrap());
        }
        assert_eq!(OpName::from(OpKind::Get).numbered(12).as_str(), "get#12");
        assert_eq!(long.parse::<OpName>().unwrap().numbered(2).as_str(), format!("{}#2", "a".repeat(30)));
    }
}
