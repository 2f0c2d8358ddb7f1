//! Which replies an operation can have in memcached's binary protocol, and what they mean: data.
//!
//! The source is memcached's `doc/protocol-binary.xml`: "Response Status" and the part on each command; which status an
//! append to nothing has is left open there, and memcached 1.6.18 was asked. Invariant: a reply has the opcode of the
//! request that an operation sends, and a status that is an error or named here.

use super::Opcode::{self, Append, Decrement, Delete, GetK, GetKQ, Increment, Noop, Prepend, Replace, Touch};
use super::Status::{self, Error, Exists, NotFound, NotStored, Nothing, Success};
use crate::Form;
use crate::pairs::Pairs;
use brunt_plan::op::OpKind;
use brunt_plan::outcome::ReplyKind;

/// Opcodes are below this.
const OPCODES: usize = 0x22;

const STATUSES: usize = Status::Error as usize + 1;

/// That of a frame with this opcode, and a status like this.
#[inline]
pub(super) const fn form(opcode: Opcode, status: Status) -> Form {
    form_of(opcode as u8, status)
}

/// As [`form`], of this byte in a frame: no operation has a reply with the byte of a quiet request.
#[inline]
pub(super) const fn form_of(byte: u8, status: Status) -> Form {
    Form(status as u8 * OPCODES as u8 + byte)
}

pub(super) static PAIRS: Pairs<{ OPCODES * STATUSES }> = Pairs::of(&[
    // A multi-get is quiet, and its end is told by the noop behind it.
    (&[OpKind::Get], form(Opcode::Get, Success), ReplyKind::Value),
    (&[OpKind::Get], form(Opcode::Get, NotFound), ReplyKind::NotFound),
    (&[OpKind::Get], form(Opcode::Get, Error), ReplyKind::Error),
    (&[OpKind::Gets], form(GetK, Success), ReplyKind::Value),
    (&[OpKind::Gets], form(GetK, NotFound), ReplyKind::NotFound),
    (&[OpKind::Gets], form(GetK, Error), ReplyKind::Error),
    (&[OpKind::Mget], form(Noop, Success), ReplyKind::Value),
    (&[OpKind::Mget], form(Noop, Nothing), ReplyKind::NotFound),
    (&[OpKind::Mget], form(Noop, Error), ReplyKind::Error),
    (&[OpKind::Mget], form(GetKQ, Error), ReplyKind::Error),
    // A cas is a set with a unique; only that can be other than the current one, or of no item.
    (&[OpKind::Set, OpKind::Cas], form(Opcode::Set, Success), ReplyKind::Stored),
    (&[OpKind::Set, OpKind::Cas], form(Opcode::Set, NotStored), ReplyKind::NotStored),
    (&[OpKind::Cas], form(Opcode::Set, Exists), ReplyKind::Exists),
    (&[OpKind::Cas], form(Opcode::Set, NotFound), ReplyKind::NotFound),
    (&[OpKind::Set, OpKind::Cas], form(Opcode::Set, Error), ReplyKind::Error),
    // "Add MUST fail if the item already exist", "Replace MUST fail if the item doesn't exist".
    (&[OpKind::Add], form(Opcode::Add, Success), ReplyKind::Stored),
    (&[OpKind::Add], form(Opcode::Add, Exists), ReplyKind::NotStored),
    (&[OpKind::Add], form(Opcode::Add, NotStored), ReplyKind::NotStored),
    (&[OpKind::Add], form(Opcode::Add, Error), ReplyKind::Error),
    (&[OpKind::Replace], form(Replace, Success), ReplyKind::Stored),
    (&[OpKind::Replace], form(Replace, NotFound), ReplyKind::NotStored),
    (&[OpKind::Replace], form(Replace, NotStored), ReplyKind::NotStored),
    (&[OpKind::Replace], form(Replace, Error), ReplyKind::Error),
    (&[OpKind::Append], form(Append, Success), ReplyKind::Stored),
    (&[OpKind::Append], form(Append, NotStored), ReplyKind::NotStored),
    (&[OpKind::Append], form(Append, Error), ReplyKind::Error),
    (&[OpKind::Prepend], form(Prepend, Success), ReplyKind::Stored),
    (&[OpKind::Prepend], form(Prepend, NotStored), ReplyKind::NotStored),
    (&[OpKind::Prepend], form(Prepend, Error), ReplyKind::Error),
    // With an expiry of all ones a missing key is not made.
    (&[OpKind::Incr], form(Increment, Success), ReplyKind::Number),
    (&[OpKind::Incr], form(Increment, NotFound), ReplyKind::NotFound),
    (&[OpKind::Incr], form(Increment, Error), ReplyKind::Error),
    (&[OpKind::Decr], form(Decrement, Success), ReplyKind::Number),
    (&[OpKind::Decr], form(Decrement, NotFound), ReplyKind::NotFound),
    (&[OpKind::Decr], form(Decrement, Error), ReplyKind::Error),
    (&[OpKind::Delete], form(Delete, Success), ReplyKind::Deleted),
    (&[OpKind::Delete], form(Delete, NotFound), ReplyKind::NotFound),
    (&[OpKind::Delete], form(Delete, Error), ReplyKind::Error),
    (&[OpKind::Touch], form(Touch, Success), ReplyKind::Touched),
    (&[OpKind::Touch], form(Touch, NotFound), ReplyKind::NotFound),
    (&[OpKind::Touch], form(Touch, Error), ReplyKind::Error),
]);
