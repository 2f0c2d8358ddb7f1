//! A request of a trace, whatever the layout of its file.
//!
//! Invariant: what the layout does not tell is `None`, never a guess.

use crate::op::OpKind;

/// A request as it was recorded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RecordedRequest<'a> {
    /// When, counted from the first record. `None` where the layout has no times, or none of a known unit.
    pub time_ns: Option<i64>,
    /// What was asked.
    pub kind: OpKind,
    /// Of which key.
    pub key: &'a [u8],
    /// How long that was, where the layout says it.
    pub key_len: Option<u32>,
    /// How long its value is; `None` where that is not known: of retrievals that missed, too.
    pub value_len: Option<u64>,
    /// How long the value lives.
    pub ttl_ns: Option<u64>,
    /// How often it was asked in its unit of time.
    pub repeats: u32,
}

impl<'a> RecordedRequest<'a> {
    /// One of which nothing else is known.
    pub const fn of(kind: OpKind, key: &'a [u8]) -> Self {
        Self { time_ns: None, kind, key, key_len: None, value_len: None, ttl_ns: None, repeats: 1 }
    }

    /// Its key and the value, as far as they are known.
    pub fn object_bytes(&self) -> Option<u64> {
        Some(self.value_len?.saturating_add(u64::from(self.key_len.unwrap_or(0))))
    }
}
