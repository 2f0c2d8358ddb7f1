//! An operation as a small value, before it is encoded, its name in results, and the version of the value that it writes.
//!
//! Not a request (that is the op with its key and value bytes) and not a reply. An [`Op`] is `Copy` and holds no
//! pointer, so it can wait in a queue, cross a ring and be counted without owning anything.

use crate::units::text_form;
use serde::{Deserialize, Serialize};
use std::fmt;

crate::named! {
    /// The kinds of operation. `Mget` is one request for several keys; `Raw` is a command template for protocols that have
    /// them. Results are by [`OpId`], which tells commands apart.
    #[repr(u8)]
    #[allow(missing_docs, reason = "the names are the protocol's own")]
    pub enum OpKind {
        Get = "get",
        Gets = "gets",
        Mget = "mget",
        Set = "set",
        Add = "add",
        Replace = "replace",
        Append = "append",
        Prepend = "prepend",
        Cas = "cas",
        Incr = "incr",
        Decr = "decr",
        Delete = "delete",
        Touch = "touch",
        Raw = "raw",
    }
}

impl OpKind {
    /// Does this kind ask for keys, so that it has hits and misses in the counts of keys?
    pub const fn is_retrieval(self) -> bool {
        matches!(self, Self::Get | Self::Gets | Self::Mget)
    }

    /// Has it a command for a field of a hash that means the same there?
    pub const fn has_field_command(self) -> bool {
        matches!(self, Self::Get | Self::Set | Self::Delete)
    }

    /// Does the request carry a value?
    pub const fn carries_value(self) -> bool {
        matches!(self, Self::Set | Self::Add | Self::Replace | Self::Append | Self::Prepend | Self::Cas)
    }

    fn of_text(text: &str) -> Result<Self, String> {
        Self::from_name(text).ok_or_else(|| format!("no operation is called '{text}'"))
    }

    fn write_text(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.name())
    }
}

text_form!(OpKind);

/// What results are by: a kind of operation, or one of a plan's commands. Text form: the kind, or `raw.3` for the third
/// command.
///
/// Invariant: a number below [`OpId::count`] of the plan: that of the kind, and of a command that of `Raw` plus its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct OpId(u16);

impl OpId {
    /// That of an operation of this kind, and with this number among the plan's commands, counted from 1, or 0.
    #[inline]
    pub const fn of(kind: OpKind, command: u16) -> Self {
        debug_assert!(matches!(kind, OpKind::Raw) || command == 0);
        // `Raw` is the last kind: so no branch is needed.
        Self(kind as u16 + command)
    }

    /// How many there are in a plan with this many commands.
    pub const fn count(commands: usize) -> usize {
        OpKind::COUNT + commands
    }

    /// The one of a place below that.
    pub const fn at(place: usize) -> Self {
        Self(place as u16)
    }

    /// A plan's command by its index.
    pub const fn of_command(index: usize) -> Self {
        Self((OpKind::COUNT + index) as u16)
    }

    /// Its place among all of a plan.
    #[inline]
    pub const fn index(self) -> usize {
        self.0 as usize
    }

    /// The kind that it is, or is of.
    pub const fn kind(self) -> OpKind {
        match OpKind::ALL.len() > self.index() {
            true => OpKind::ALL[self.index()],
            false => OpKind::Raw,
        }
    }

    /// The index of the command that it is; `None` where it is none, or not known which.
    pub const fn command(self) -> Option<usize> {
        self.index().checked_sub(OpKind::COUNT)
    }

    /// As [`OpKind::is_retrieval`].
    #[inline]
    pub const fn is_retrieval(self) -> bool {
        self.0 <= OpKind::Mget as u16
    }

    fn of_text(text: &str) -> Result<Self, String> {
        let Some(number) = text.strip_prefix(OpKind::Raw.name()).and_then(|rest| rest.strip_prefix('.'))
        else {
            return text.parse::<OpKind>().map(Self::from);
        };
        match number.parse::<u16>() {
            Ok(number) if (1..=COMMANDS_MAX).contains(&usize::from(number)) => {
                Ok(Self::of_command(usize::from(number) - 1))
            }
            _ => Err(format!("no command has the number '{number}'")),
        }
    }

    fn write_text(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.command() {
            None => write!(formatter, "{}", self.kind()),
            Some(index) => write!(formatter, "{}.{}", OpKind::Raw, index + 1),
        }
    }
}

impl From<OpKind> for OpId {
    #[inline]
    fn from(kind: OpKind) -> Self {
        Self(kind as u16)
    }
}

text_form!(OpId);

/// The most commands of a plan: each has histograms and counts of its own.
pub const COMMANDS_MAX: usize = 64;

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
    /// Time to live in seconds; 0 means no expiry.
    pub ttl_s: u32,
    /// The delta of incr and decr, the unique of cas, or what the random fields of a raw command are drawn from; else 0.
    pub operand: u64,
    /// What a checked reply must look like.
    pub expectation: Expectation,
    /// The number of the plan's command, counted from 1; 0 where `kind` is not `Raw`.
    pub command: u16,
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
            command: 0,
        }
    }

    /// What it is counted as.
    #[inline]
    pub const fn id(&self) -> OpId {
        OpId::of(self.kind, self.command)
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

    fn of_text(text: &str) -> Result<Self, String> {
        let is_named = |byte: u8| byte.is_ascii_alphanumeric() || b"_-.:#".contains(&byte);
        let begins = text.bytes().next().is_some_and(|byte| byte.is_ascii_alphabetic());
        if !begins || text.len() > Self::BYTES_MAX || !text.bytes().all(is_named) {
            return Err(format!("invalid operation name '{text}': expected {}", Self::ACCEPTED));
        }
        Ok(Self::of(text))
    }

    fn write_text(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.pad(self.as_str())
    }
}

impl From<OpKind> for OpName {
    fn from(kind: OpKind) -> Self {
        Self::of(kind.name())
    }
}

text_form!(OpName);

impl fmt::Debug for OpName {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self.as_str(), formatter)
    }
}

/// A version as it is in the head of a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Version(pub u32);

/// Bits of a version that count writes; those above are the writer's number.
const COUNT_BITS: u32 = 20;

impl Version {
    /// The most writes of a key that a writer can tell apart.
    pub const COUNT_MAX: u32 = (1 << COUNT_BITS) - 1;

    /// The most writers.
    pub const WRITERS_MAX: u32 = (1 << (u32::BITS - COUNT_BITS)) - 1;

    /// The `count`th write of a writer; both within their bounds.
    #[inline]
    pub const fn of(writer: u32, count: u32) -> Self {
        Self(writer << COUNT_BITS | count)
    }

    /// The writer that wrote it; 0 is the preload.
    #[inline]
    pub const fn writer(self) -> u32 {
        self.0 >> COUNT_BITS
    }

    /// Which of the writer's writes of the key it was.
    #[inline]
    pub const fn count(self) -> u32 {
        self.0 & Self::COUNT_MAX
    }
}

impl fmt::Display for Version {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            0 => formatter.write_str("0"),
            _ => write!(formatter, "{}.{}", self.writer(), self.count()),
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
        assert_eq!(OpKind::Raw as usize, OpKind::COUNT - 1, "ids of commands follow");
    }

    #[test]
    fn commands_follow_the_kinds() {
        let table = [
            ("get", OpId::from(OpKind::Get), OpKind::Get, None),
            ("raw", OpId::from(OpKind::Raw), OpKind::Raw, None),
            ("raw.1", OpId::of_command(0), OpKind::Raw, Some(0)),
            ("raw.64", OpId::of_command(63), OpKind::Raw, Some(63)),
        ];
        for (text, id, kind, command) in table {
            assert_eq!((text.parse(), id.to_string()), (Ok(id), text.to_owned()));
            assert_eq!((id.kind(), id.command()), (kind, command), "{text}");
            assert_eq!(id.is_retrieval(), kind.is_retrieval(), "{text}");
            let number = command.map_or(0, |index| index as u16 + 1);
            assert_eq!(Op { command: number, ..Op::of(kind, KeyRef::Id(0)) }.id(), id);
        }
        for text in ["raw.0", "raw.65", "raw.", "raw.x", "fetch", "get.1"] {
            assert!(text.parse::<OpId>().is_err(), "{text}");
        }
        OpKind::ALL
            .into_iter()
            .for_each(|kind| assert_eq!(OpId::from(kind).is_retrieval(), kind.is_retrieval()));
    }

    #[test]
    fn an_op_stays_small() {
        assert!(size_of::<Op>() <= 56, "{} bytes", size_of::<Op>());
    }

    #[test]
    fn names() {
        let long = "a".repeat(32);
        for kind in OpKind::ALL {
            assert_eq!(OpName::from(kind), kind.name().parse().unwrap());
        }
        assert_eq!(OpName::from(OpKind::Get).numbered(12).as_str(), "get#12");
        assert_eq!(long.parse::<OpName>().unwrap().numbered(2).as_str(), format!("{}#2", "a".repeat(30)));
    }

    #[test]
    fn versions_hold_writer_and_count() {
        for (version, text) in [
            (Version(0), "0"),
            (Version::of(1, 1), "1.1"),
            (Version::of(Version::WRITERS_MAX, Version::COUNT_MAX), "4095.1048575"),
            (Version(u32::MAX), "4095.1048575"),
        ] {
            assert_eq!(version.to_string(), text);
            assert_eq!(Version::of(version.writer(), version.count()), version);
        }
    }
}
