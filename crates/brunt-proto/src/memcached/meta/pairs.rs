//! Which replies an operation can have in memcached's meta protocol, and what they mean: data.
//!
//! The source is the part on meta commands of memcached's `doc/protocol.txt`. Invariant: a reply that it does not name
//! for a command with the flags that an operation sends is not here, but for errors.

use crate::Form;
use crate::pairs::Pairs;
use brunt_plan::op::OpKind::{
    self, Add, Append, Cas, Decr, Delete, Get, Gets, Incr, Mget, Prepend, Replace, Set, Touch,
};
use brunt_plan::outcome::ReplyKind;

/// `VA` and a value, to a get of one key.
pub(super) const VALUE: Form = Form(0);
/// `EN`, but within a multi-get.
pub(super) const MISSING: Form = Form(1);
/// The `MN` of a multi-get that has found a key.
pub(super) const SEVERAL: Form = Form(2);
/// The `MN` of a multi-get that has found no key.
pub(super) const NONE_OF_SEVERAL: Form = Form(3);
/// `HD` with the opaque of an `ms`, of an `md`, or of an `mg` without `v`.
pub(super) const STORED: Form = Form(4);
pub(super) const DELETED: Form = Form(5);
pub(super) const TOUCHED: Form = Form(6);
/// `NS`, `EX` and `NF`.
pub(super) const NOT_STORED: Form = Form(7);
pub(super) const EXISTS: Form = Form(8);
pub(super) const NOT_FOUND: Form = Form(9);
/// `VA` and a number.
pub(super) const NUMBER: Form = Form(10);
/// `ERROR`, `CLIENT_ERROR` or `SERVER_ERROR`.
pub(super) const ERROR: Form = Form(11);
/// What answers nothing that is sent: `HD` to what asks for a value or without its opaque.
pub(super) const UNASKED: Form = Form(12);

const FORMS: usize = 13;

pub(super) static PAIRS: Pairs<FORMS> = Pairs::of(&[
    // "Meta get", with v; a touch is one without. Of a multi-get an `mn` ends the reply.
    (&[Get, Gets], VALUE, ReplyKind::Value),
    (&[Get, Gets, Touch], MISSING, ReplyKind::NotFound),
    (&[Mget], SEVERAL, ReplyKind::Value),
    (&[Mget], NONE_OF_SEVERAL, ReplyKind::NotFound),
    (&[Touch], TOUCHED, ReplyKind::Touched),
    // "Meta set". EX and NF speak of the unique that only a cas sends.
    (&[Set, Add, Replace, Append, Prepend, Cas], STORED, ReplyKind::Stored),
    (&[Set, Add, Replace, Append, Prepend, Cas], NOT_STORED, ReplyKind::NotStored),
    (&[Cas], EXISTS, ReplyKind::Exists),
    (&[Cas, Delete, Incr, Decr], NOT_FOUND, ReplyKind::NotFound),
    // "Meta delete": EX speaks of a unique.
    (&[Delete], DELETED, ReplyKind::Deleted),
    // "Meta arithmetic", with v: HD is without. NS speaks of a key that was to be made, EX of a unique.
    (&[Incr, Decr], NUMBER, ReplyKind::Number),
    // "Error strings".
    (&OpKind::ALL, ERROR, ReplyKind::Error),
]);
