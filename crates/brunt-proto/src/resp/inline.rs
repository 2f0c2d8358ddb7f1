//! The plan's operations as Redis's inline commands: a line of words with blanks between them.
//!
//! Replies are the same as to arrays. Words are written as they are where Redis reads them so, and else in double quotes with
//! escapes, so that keys and values of any bytes arrive.

use super::request::command;
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
    let (head, number) = command(request);
    // The last line of the head of an array is the name.
    out.put(head.trim_ascii_end().rsplit(|byte| *byte == b'\n').next().unwrap_or_default());
    for key in request.keys.iter() {
        out.put(b" ");
        put_quoted(out, |take| take(key));
    }
    if request.kind.carries_value() {
        put_value(request, out);
    }
    if let Some(number) = number {
        out.put(b" ");
        out.put_decimal(number);
    }
    out.put(LINE_END);
}

/// The value and what is behind it.
fn put_value(request: &Request<'_>, out: &mut Out) {
    let value = &request.value;
    out.put(b" ");
    put_quoted(out, |take| {
        take(value.head);
        take(&value.block[value.offset..value.offset + value.len]);
    });
    if request.ttl_s != 0 && request.kind != OpKind::Append {
        out.put(b" EX ");
        out.put_decimal(u64::from(request.ttl_s));
    }
    match request.kind {
        OpKind::Add => out.put(b" NX"),
        OpKind::Replace => out.put(b" XX"),
        _ => {}
    }
}
