//! Which replies an operation can have from a Redis, and what they mean: data.
//!
//! The source is the Redis command reference: of each command that an operation is sent as, the part "Return
//! information". Both versions of the protocol are in one table, because they differ in how a null is written and in
//! nothing else here. Invariant: a reply that the reference does not name for a command is not here, but for errors.

use crate::Form;
use crate::pairs::Pairs;
use brunt_plan::op::OpKind::{self, Add, Append, Decr, Delete, Get, Incr, Mget, Raw, Replace, Set, Touch};
use brunt_plan::outcome::ReplyKind;

/// A bulk string.
pub(super) const BULK: Form = Form(0);
/// A null, as version 2 writes that of a bulk string or as version 3 does.
pub(super) const NULL: Form = Form(1);
/// An array of strings and nulls, not all of them nulls.
pub(super) const ROW: Form = Form(2);
/// An array of nothing but nulls.
pub(super) const ROW_OF_NULLS: Form = Form(3);
/// `+OK`.
pub(super) const OK: Form = Form(4);
/// Integers.
pub(super) const ZERO: Form = Form(5);
pub(super) const ONE: Form = Form(6);
/// Above 1.
pub(super) const MANY: Form = Form(7);
pub(super) const NEGATIVE: Form = Form(8);
pub(super) const ERROR: Form = Form(9);
/// Every other reply: no operation but a command of the user's has one. Such are told apart by their [`ReplyKind`] alone.
pub(super) const OTHER_OK: Form = Form(10);
pub(super) const OTHER_VALUE: Form = Form(11);
pub(super) const OTHER_NULL: Form = Form(12);

const FORMS: usize = 13;

/// The form of an integer.
#[inline]
pub(super) const fn of_integer(number: i64) -> Form {
    match number {
        0 => ZERO,
        1 => ONE,
        2.. => MANY,
        _ => NEGATIVE,
    }
}

/// A command of the user's may have any reply that is well-formed, and it means what it says.
pub(super) static PAIRS: Pairs<FORMS> = Pairs::of(&[
    // GET: "bulk string reply: the value of the key", "nil reply: key does not exist".
    (&[Get, Raw], BULK, ReplyKind::Value),
    (&[Get, Raw], NULL, ReplyKind::NotFound),
    // MGET: "array reply: a list of values at the specified keys", nil for each that does not exist.
    (&[Mget, Raw], ROW, ReplyKind::Value),
    (&[Mget, Raw], ROW_OF_NULLS, ReplyKind::NotFound),
    // SET: "simple string reply: OK"; "nil reply" where NX or XX does not hold.
    (&[Set, Add, Replace], OK, ReplyKind::Stored),
    (&[Add, Replace], NULL, ReplyKind::NotStored),
    // APPEND: "integer reply: the length of the string after the append operation"; it makes what is not there.
    (&[Append], ZERO, ReplyKind::Stored),
    (&[Append], ONE, ReplyKind::Stored),
    (&[Append], MANY, ReplyKind::Stored),
    // INCR, DECR, INCRBY, DECRBY: "integer reply: the value of the key"; they make what is not there.
    (&[Incr, Decr, Raw], ZERO, ReplyKind::Number),
    (&[Incr, Decr, Raw], ONE, ReplyKind::Number),
    (&[Incr, Decr, Raw], MANY, ReplyKind::Number),
    (&[Incr, Decr, Raw], NEGATIVE, ReplyKind::Number),
    // DEL: "integer reply: the number of keys that were removed", of one.
    (&[Delete], ONE, ReplyKind::Deleted),
    (&[Delete], ZERO, ReplyKind::NotFound),
    // TOUCH: "integer reply: the number of touched keys", of one. EXPIRE: "1 if the timeout was set", "0 if [it] was not", here
    // because there is no such key.
    (&[Touch], ONE, ReplyKind::Touched),
    (&[Touch], ZERO, ReplyKind::NotFound),
    (&OpKind::ALL, ERROR, ReplyKind::Error),
    // What only commands of the user's have, and `+OK` to them.
    (&[Raw], OK, ReplyKind::Ok),
    (&[Raw], OTHER_OK, ReplyKind::Ok),
    (&[Raw], OTHER_VALUE, ReplyKind::Value),
    (&[Raw], OTHER_NULL, ReplyKind::NotFound),
]);

/// Where keys end with the field of a hash.
pub(super) static HASH_PAIRS: Pairs<FORMS> = Pairs::of(&[
    // HGET: "bulk string reply", "nil reply".
    (&[Get], BULK, ReplyKind::Value),
    (&[Get], NULL, ReplyKind::NotFound),
    // HSET: "integer reply: the number of fields that were added", of one. A key too short for a field is SET.
    (&[Set], ZERO, ReplyKind::Stored),
    (&[Set], ONE, ReplyKind::Stored),
    (&[Set], OK, ReplyKind::Stored),
    // HDEL: "integer reply: the number of fields that were removed from the hash", of one.
    (&[Delete], ONE, ReplyKind::Deleted),
    (&[Delete], ZERO, ReplyKind::NotFound),
    (&OpKind::ALL, ERROR, ReplyKind::Error),
]);
