//! Keys that are the name of a hash and a field in it: the plan's ops as commands on one field.
//!
//! Longer heads than those of plain keys are within the bound of [`super::request::encoded_len_max`], which has room
//! for a time to live that no field has.

use super::request::put_bulk;
use crate::Request;
use crate::out::Out;
use crate::step::LINE_END;
use brunt_plan::op::OpKind;

/// Where a value lies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct HashField<'a> {
    hash: &'a [u8],
    field: &'a [u8],
}

impl<'a> HashField<'a> {
    /// The place of a key whose last `field_bytes` are a field; `None` where it stands for itself, because fields have no
    /// bytes or less than two would be left.
    #[inline]
    pub(super) fn of(key: &'a [u8], field_bytes: usize) -> Option<Self> {
        if field_bytes == 0 || key.len() <= field_bytes + 1 {
            return None;
        }
        let (hash, field) = key.split_at(key.len() - field_bytes);
        Some(Self { hash, field })
    }
}

/// An op of one field.
pub(super) fn put(request: &Request<'_>, place: HashField<'_>, out: &mut Out) {
    match request.kind {
        OpKind::Get => put_head(b"*3\r\n$4\r\nHGET\r\n", place, out),
        OpKind::Delete => put_head(b"*3\r\n$4\r\nHDEL\r\n", place, out),
        OpKind::Set => {
            put_head(b"*4\r\n$4\r\nHSET\r\n", place, out);
            out.put(b"$");
            out.put_decimal(request.value.total_len() as u64);
            out.put(LINE_END);
            out.put_value(&request.value);
            out.put(LINE_END);
        }
        kind => unreachable!("a plan with {kind} is refused where keys are split"),
    }
}

fn put_head(head: &[u8], place: HashField<'_>, out: &mut Out) {
    out.put(head);
    put_bulk(place.hash, out);
    put_bulk(place.field, out);
}
