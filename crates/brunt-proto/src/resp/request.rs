//! The plan's ops as Redis's commands, each argument a bulk string.
//!
//! Everything is written in place behind a length that is known beforehand.

use crate::Request;
use crate::out::Out;
use crate::step::LINE_END;
use brunt_plan::op::OpKind;

/// The most around one argument: `$LENGTH\r\n` and the line end behind it.
pub(super) const FRAME_BYTES_MAX: usize = "$18446744073709551615\r\n\r\n".len();

/// The most that a request takes beside its keys, a frame around each, and its value.
const FIXED_BYTES_MAX: usize = "*6\r\n$3\r\nSET\r\n".len()
    + FRAME_BYTES_MAX // the value's, or around an amount
    + "18446744073709551615".len() // an amount; the number of keys is shorter
    + "$2\r\nEX\r\n$10\r\n4294967295\r\n".len()
    + "$2\r\nNX\r\n".len();

/// An upper bound on a request with this many keys and key bytes, its value aside.
#[inline]
pub(super) fn encoded_len_max(keys: usize, key_bytes: usize) -> usize {
    FIXED_BYTES_MAX + keys * FRAME_BYTES_MAX + key_bytes
}

const GET: &[u8] = b"*2\r\n$3\r\nGET\r\n";
/// Behind the number of arguments.
const MGET: &[u8] = b"\r\n$4\r\nMGET\r\n";

/// `GET key`, of a key that `write` is to put where it belongs.
#[inline(always)]
pub(super) fn put_get_in_place(key_len: usize, out: &mut Out, write: impl FnOnce(&mut [u8])) {
    match two_digits(key_len) {
        Some([tens, ones]) => {
            let mut head = *b"*2\r\n$3\r\nGET\r\n$00\r\n";
            (head[GET.len() + 1], head[GET.len() + 2]) = (tens, ones);
            out.put_in_place(&head, key_len, write, LINE_END);
        }
        None => {
            out.put(GET);
            out.put(b"$");
            out.put_decimal(key_len as u64);
            out.put_in_place(LINE_END, key_len, write, LINE_END);
        }
    }
}

/// How the array of a command begins, up to its name, and the number behind its key.
pub(super) fn command(request: &Request<'_>) -> (&'static [u8], Option<u64>) {
    let amount = (request.operand != 1).then_some(request.operand);
    let ttl = (request.ttl_s != 0).then_some(u64::from(request.ttl_s));
    match (request.kind, amount, ttl) {
        (OpKind::Get, ..) => (GET, None),
        (OpKind::Mget, ..) => (MGET, None),
        (OpKind::Set, _, None) => (b"*3\r\n$3\r\nSET\r\n", None),
        (OpKind::Set, ..) => (b"*5\r\n$3\r\nSET\r\n", None),
        (OpKind::Add | OpKind::Replace, _, None) => (b"*4\r\n$3\r\nSET\r\n", None),
        (OpKind::Add | OpKind::Replace, ..) => (b"*6\r\n$3\r\nSET\r\n", None),
        (OpKind::Append, ..) => (b"*3\r\n$6\r\nAPPEND\r\n", None),
        (OpKind::Incr, None, _) => (b"*2\r\n$4\r\nINCR\r\n", None),
        (OpKind::Incr, ..) => (b"*3\r\n$6\r\nINCRBY\r\n", amount),
        (OpKind::Decr, None, _) => (b"*2\r\n$4\r\nDECR\r\n", None),
        (OpKind::Decr, ..) => (b"*3\r\n$6\r\nDECRBY\r\n", amount),
        (OpKind::Delete, ..) => (b"*2\r\n$3\r\nDEL\r\n", None),
        // EXPIRE with 0 deletes, and PERSIST says the same of a key that is gone and of one that never expires.
        (OpKind::Touch, _, None) => (b"*2\r\n$5\r\nTOUCH\r\n", None),
        (OpKind::Touch, ..) => (b"*3\r\n$6\r\nEXPIRE\r\n", ttl),
        (OpKind::Gets | OpKind::Cas | OpKind::Prepend | OpKind::Raw, ..) => {
            unreachable!("a plan with {} is refused for Redis", request.kind)
        }
    }
}

/// Every kind but raw commands.
pub(super) fn put(request: &Request<'_>, out: &mut Out) {
    let (head, number) = command(request);
    if request.kind == OpKind::Mget {
        out.put(b"*");
        out.put_decimal(1 + request.keys.ends.len() as u64);
        out.put(head);
        return request.keys.iter().for_each(|key| put_bulk(key, out));
    }
    out.put(head);
    put_bulk(request.only_key(), out);
    if request.kind.carries_value() {
        put_value(request, out);
        if request.ttl_s != 0 && request.kind != OpKind::Append {
            out.put(b"$2\r\nEX\r\n");
            put_number(u64::from(request.ttl_s), out);
        }
        match request.kind {
            OpKind::Add => out.put(b"$2\r\nNX\r\n"),
            OpKind::Replace => out.put(b"$2\r\nXX\r\n"),
            _ => {}
        }
    }
    if let Some(number) = number {
        put_number(number, out);
    }
}

/// A key whose last `field_bytes` are the field of a hash; `None` where it stands for itself, because fields have no
/// bytes or less than two would be left.
#[inline]
pub(super) fn split_field(key: &[u8], field_bytes: usize) -> Option<(&[u8], &[u8])> {
    let is_split = field_bytes > 0 && key.len() > field_bytes + 1;
    is_split.then(|| key.split_at(key.len() - field_bytes))
}

/// An op of one field. Longer heads than those of plain keys are within [`encoded_len_max`], which has room for a time to live that no
/// field has.
pub(super) fn put_of_field(request: &Request<'_>, (hash, field): (&[u8], &[u8]), out: &mut Out) {
    out.put(match request.kind {
        OpKind::Get => b"*3\r\n$4\r\nHGET\r\n",
        OpKind::Delete => b"*3\r\n$4\r\nHDEL\r\n",
        OpKind::Set => b"*4\r\n$4\r\nHSET\r\n",
        kind => unreachable!("a plan with {kind} is refused where keys are split"),
    });
    put_bulk(hash, out);
    put_bulk(field, out);
    if request.kind == OpKind::Set {
        put_value(request, out);
    }
}

/// The value as an argument.
#[inline]
fn put_value(request: &Request<'_>, out: &mut Out) {
    out.put(b"$");
    out.put_decimal(request.value.total_len() as u64);
    out.put(LINE_END);
    out.put_value(&request.value);
    out.put(LINE_END);
}

/// An argument.
#[inline]
pub(super) fn put_bulk(bytes: &[u8], out: &mut Out) {
    match two_digits(bytes.len()) {
        Some([tens, ones]) => out.put_around(&[b'$', tens, ones, b'\r', b'\n'], bytes, LINE_END),
        None => {
            out.put(b"$");
            out.put_decimal(bytes.len() as u64);
            out.put_around(LINE_END, bytes, LINE_END);
        }
    }
}

/// An argument that is a number.
#[inline]
fn put_number(number: u64, out: &mut Out) {
    out.put(b"$");
    out.put_decimal(u64::from(number.checked_ilog10().unwrap_or(0)) + 1);
    out.put(LINE_END);
    out.put_decimal(number);
    out.put(LINE_END);
}

/// The digits of a length that has two, as nearly all keys have.
#[inline(always)]
fn two_digits(len: usize) -> Option<[u8; 2]> {
    (10..100).contains(&len).then(|| [b'0' + (len / 10) as u8, b'0' + (len % 10) as u8])
}
