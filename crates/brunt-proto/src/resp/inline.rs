//! The plan's operations as Redis's inline commands: a line of words with blanks between them.
//!
//! Replies are the same as to arrays. Words are written as they are where Redis reads them so, and else in double quotes with
//! escapes, so that keys and values of any bytes arrive.

use crate::Request;
use crate::out::Out;
use crate::step::LINE_END;
use crate::template::{INLINE_KEY_FACTOR, INLINE_VALUE_BYTES_MAX, Templates, put_quoted};
use brunt_plan::op::OpKind;

/// The most that a command takes beside its keys and the bytes of its value, which the caller counts once.
const FIXED_BYTES_MAX: usize =
    "REPLACE  EX 4294967295 NX\r\n18446744073709551615".len() + 3 * INLINE_VALUE_BYTES_MAX + 3;

/// The templates of a connection with inline commands: their bound is that of all its commands.
pub(super) fn with_bound(templates: Templates) -> Templates {
    templates.with_bound(FIXED_BYTES_MAX, INLINE_KEY_FACTOR)
}

/// Every kind but raw commands.
pub(super) fn put(request: &Request<'_>, out: &mut Out) {
    let amount = (request.operand != 1).then_some(request.operand);
    let ttl = (request.ttl_s != 0).then_some(u64::from(request.ttl_s));
    let (name, number): (&[u8], Option<u64>) = match (request.kind, amount, ttl) {
        (OpKind::Get, ..) => (b"GET", None),
        (OpKind::Mget, ..) => (b"MGET", None),
        (OpKind::Set | OpKind::Add | OpKind::Replace, ..) => (b"SET", None),
        (OpKind::Append, ..) => (b"APPEND", None),
        (OpKind::Incr, None, _) => (b"INCR", None),
        (OpKind::Incr, ..) => (b"INCRBY", amount),
        (OpKind::Decr, None, _) => (b"DECR", None),
        (OpKind::Decr, ..) => (b"DECRBY", amount),
        (OpKind::Delete, ..) => (b"DEL", None),
        // As in `request.rs`: EXPIRE with 0 deletes.
        (OpKind::Touch, _, None) => (b"TOUCH", None),
        (OpKind::Touch, ..) => (b"EXPIRE", ttl),
        (OpKind::Gets | OpKind::Cas | OpKind::Prepend | OpKind::Raw, ..) => {
            unreachable!("a plan with {} is refused for Redis", request.kind)
        }
    };
    out.put(name);
    for key in request.keys.iter() {
        out.put(b" ");
        put_quoted(out, |take| take(key));
    }
    if request.kind.carries_value() {
        put_value(request, ttl.filter(|_| request.kind != OpKind::Append), out);
    }
    if let Some(number) = number {
        out.put(b" ");
        out.put_decimal(number);
    }
    out.put(LINE_END);
}

/// The value and what is behind it.
fn put_value(request: &Request<'_>, ttl: Option<u64>, out: &mut Out) {
    let value = &request.value;
    out.put(b" ");
    put_quoted(out, |take| {
        take(value.head);
        take(&value.block[value.offset..value.offset + value.len]);
    });
    if let Some(ttl) = ttl {
        out.put(b" EX ");
        out.put_decimal(ttl);
    }
    match request.kind {
        OpKind::Add => out.put(b" NX"),
        OpKind::Replace => out.put(b" XX"),
        _ => {}
    }
}
