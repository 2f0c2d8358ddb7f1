//! Which replies an operation can have in memcached's text protocol, and what they mean: data.
//!
//! The source is memcached's `doc/protocol.txt`, the part on each command. Invariant: a reply that its part does not
//! name is not here, but for the errors of the part "Error strings".

use crate::Form;
use crate::pairs::Pairs;
use brunt_plan::op::OpKind::{
    self, Add, Append, Cas, Decr, Delete, Get, Gets, Incr, Mget, Prepend, Raw, Replace, Set, Touch,
};
use brunt_plan::outcome::ReplyKind;

/// `VALUE` lines with flags and length, then `END`.
pub(super) const VALUES: Form = Form(0);
/// `VALUE` lines with uniques, then `END`.
pub(super) const VALUES_WITH_UNIQUES: Form = Form(1);
/// `END` alone.
pub(super) const END: Form = Form(2);
pub(super) const STORED: Form = Form(3);
pub(super) const NOT_STORED: Form = Form(4);
pub(super) const EXISTS: Form = Form(5);
pub(super) const NOT_FOUND: Form = Form(6);
pub(super) const DELETED: Form = Form(7);
pub(super) const TOUCHED: Form = Form(8);
/// A line of digits.
pub(super) const NUMBER: Form = Form(9);
/// `ERROR`, `CLIENT_ERROR` or `SERVER_ERROR`.
pub(super) const ERROR: Form = Form(10);
/// What answers commands that no other operation is made of: `OK`, `RESET`, `VERSION`, `STAT` lines.
pub(super) const UNASKED: Form = Form(11);

const FORMS: usize = 12;

/// A command of the user's may have any reply that is well-formed, and it means what it says.
pub(super) static PAIRS: Pairs<FORMS> = Pairs::of(&[
    // "Retrieval command": items that do not exist are not sent; only gets has uniques.
    (&[Get, Mget, Raw], VALUES, ReplyKind::Value),
    (&[Gets, Raw], VALUES_WITH_UNIQUES, ReplyKind::Value),
    (&[Get, Gets, Mget, Raw], END, ReplyKind::NotFound),
    // "Storage commands". NOT_STORED "normally means" that the condition of an add or a replace was not met: to the others, too, it
    // says that the data was not stored and that this is no error. The other two are defined for cas alone.
    (&[Set, Add, Replace, Append, Prepend, Cas, Raw], STORED, ReplyKind::Stored),
    (&[Set, Add, Replace, Append, Prepend, Cas, Raw], NOT_STORED, ReplyKind::NotStored),
    (&[Cas, Raw], EXISTS, ReplyKind::Exists),
    (&[Cas, Incr, Decr, Delete, Touch, Raw], NOT_FOUND, ReplyKind::NotFound),
    // "Increment/Decrement": the new value, which decr may pad with spaces.
    (&[Incr, Decr, Raw], NUMBER, ReplyKind::Number),
    // "Deletion" and "Touch".
    (&[Delete, Raw], DELETED, ReplyKind::Deleted),
    (&[Touch, Raw], TOUCHED, ReplyKind::Touched),
    (&[Raw], UNASKED, ReplyKind::Ok),
    // "Error strings": "each command sent by a client may be answered with an error string".
    (&OpKind::ALL, ERROR, ReplyKind::Error),
]);
