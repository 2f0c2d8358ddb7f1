//! What is asked of a server: the operation as a small value, before it has bytes.
//!
//! Not a request (that is the op with its key and value bytes) and not a reply. An [`Op`] is `Copy` and holds no
//! pointer, so it can wait in a queue, cross a ring and be counted without owning anything.

use crate::units::serde_as_text;
use std::fmt;
use std::str::FromStr;

/// The kinds of operation, one row each in every report. `Mget` is one request for several keys; `Raw` is a command
/// template for protocols that have them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
#[allow(missing_docs, reason = "the names are the protocol's own")]
pub enum OpKind {
    Get,
    Gets,
    Mget,
    Set,
    Add,
    Replace,
    Append,
    Prepend,
    Cas,
    Incr,
    Decr,
    Delete,
    Touch,
    Raw,
}

impl OpKind {
    /// How many kinds there are; `kind as usize` is below this.
    pub const COUNT: usize = 14;

    /// All kinds, in the order of their numbers.
    pub const ALL: [Self; Self::COUNT] = [
        Self::Get,
        Self::Gets,
        Self::Mget,
        Self::Set,
        Self::Add,
        Self::Replace,
        Self::Append,
        Self::Prepend,
        Self::Cas,
        Self::Incr,
        Self::Decr,
        Self::Delete,
        Self::Touch,
        Self::Raw,
    ];

    /// The name used in `--mix`, in reports and as a JSON key.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Get => "get",
            Self::Gets => "gets",
            Self::Mget => "mget",
            Self::Set => "set",
            Self::Add => "add",
            Self::Replace => "replace",
            Self::Append => "append",
            Self::Prepend => "prepend",
            Self::Cas => "cas",
            Self::Incr => "incr",
            Self::Decr => "decr",
            Self::Delete => "delete",
            Self::Touch => "touch",
            Self::Raw => "raw",
        }
    }

    /// Does this kind ask for keys, so that it has hits and misses in the books of keys?
    pub const fn is_retrieval(self) -> bool {
        matches!(self, Self::Get | Self::Gets | Self::Mget)
    }

    /// Does the request carry a value?
    pub const fn carries_value(self) -> bool {
        matches!(self, Self::Set | Self::Add | Self::Replace | Self::Append | Self::Prepend | Self::Cas)
    }
}

impl fmt::Display for OpKind {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.name())
    }
}

impl FromStr for OpKind {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        Self::ALL
            .into_iter()
            .find(|kind| kind.name() == text)
            .ok_or_else(|| format!("no operation is called '{text}'"))
    }
}
serde_as_text!(OpKind);

/// Index of a class within its plan.
pub type ClassId = u16;

/// Index of a session within its worker.
pub type SessionId = u32;

/// Which keys an op asks for. Native keys are ids in a pure space; key text is a function of the id.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeyRef {
    /// The id of the key; with a count above one, this id and the next ones, wrapping at the size of the keyspace.
    Id(u64),
    /// The seed of `count` draws from the class's popularity, so that the keys of a multi-get need no storage and can
    /// be drawn again when the reply is checked.
    Drawn(u64),
    /// Offset into a table or block of literal keys (windows, traces).
    Offset(u32),
}

/// Which value an op writes. Native values are functions of (data seed, key id, version).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ValueRef {
    /// The op writes no value.
    None,
    /// The value of this version of the op's key; version 0 is what preload stores.
    Version(u32),
    /// Offset into a block of literal values.
    Offset(u32),
}

/// What a checked reply must look like.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Expectation {
    /// Anything the protocol allows.
    Any,
    /// The key must be there.
    Present,
    /// The key must not be there.
    Absent,
}

/// One operation: what a schedule yields and a worker turns into a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Op {
    /// What is asked.
    pub kind: OpKind,
    /// The class it belongs to.
    pub class: ClassId,
    /// The session that asks.
    pub session: SessionId,
    /// Which keys.
    pub key: KeyRef,
    /// How many keys, at least 1.
    pub count: u16,
    /// Which value it writes.
    pub value: ValueRef,
    /// Time to live in seconds; 0 is for ever.
    pub ttl_s: u32,
    /// The delta of incr and decr, the unique of cas, or what the random fields of a raw command are drawn from; else 0.
    pub operand: u64,
    /// What a checked reply must look like.
    pub expectation: Expectation,
    /// Index of the raw command template; 0 where `kind` is not `Raw`.
    pub template: u16,
}

impl Op {
    /// An op of one key that writes nothing and expects nothing, of the first session of the first class.
    #[inline]
    pub const fn of(kind: OpKind, key: KeyRef) -> Self {
        Self {
            kind,
            class: 0,
            session: 0,
            key,
            count: 1,
            value: ValueRef::None,
            ttl_s: 0,
            operand: 0,
            expectation: Expectation::Any,
            template: 0,
        }
    }

    /// The id of its key, where it has one key and names it by id: every native op but a multi-get.
    #[inline]
    pub const fn only_id(&self) -> Option<u64> {
        match self.key {
            KeyRef::Id(id) if self.count == 1 => Some(id),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_names_and_order_agree() {
        for (index, kind) in OpKind::ALL.into_iter().enumerate() {
            assert_eq!(kind as usize, index);
            assert_eq!(kind.name().parse(), Ok(kind));
        }
    }

    #[test]
    fn an_op_stays_small() {
        assert!(size_of::<Op>() <= 56, "{} bytes", size_of::<Op>());
    }
}
