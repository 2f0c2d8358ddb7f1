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

/// Every kind but raw commands.
pub(super) fn put(request: &Request<'_>, out: &mut Out) {
    let key = request.keys.first();
    let amount = (request.operand != 1).then_some(request.operand);
    match (request.kind, amount, request.ttl_s) {
        (OpKind::Get, ..) => put_change(GET, key, None, out),
        (OpKind::Mget, ..) => put_mget(request, out),
        (OpKind::Set, _, 0) => put_store(b"*3\r\n$3\r\nSET\r\n", &[], request, out),
        (OpKind::Set, ..) => put_store(b"*5\r\n$3\r\nSET\r\n", &[], request, out),
        (OpKind::Add, _, 0) => put_store(b"*4\r\n$3\r\nSET\r\n", b"$2\r\nNX\r\n", request, out),
        (OpKind::Add, ..) => put_store(b"*6\r\n$3\r\nSET\r\n", b"$2\r\nNX\r\n", request, out),
        (OpKind::Replace, _, 0) => put_store(b"*4\r\n$3\r\nSET\r\n", b"$2\r\nXX\r\n", request, out),
        (OpKind::Replace, ..) => put_store(b"*6\r\n$3\r\nSET\r\n", b"$2\r\nXX\r\n", request, out),
        (OpKind::Append, ..) => {
            put_store(b"*3\r\n$6\r\nAPPEND\r\n", &[], &Request { ttl_s: 0, ..*request }, out);
        }
        (OpKind::Incr, None, _) => put_change(b"*2\r\n$4\r\nINCR\r\n", key, None, out),
        (OpKind::Incr, ..) => put_change(b"*3\r\n$6\r\nINCRBY\r\n", key, amount, out),
        (OpKind::Decr, None, _) => put_change(b"*2\r\n$4\r\nDECR\r\n", key, None, out),
        (OpKind::Decr, ..) => put_change(b"*3\r\n$6\r\nDECRBY\r\n", key, amount, out),
        (OpKind::Delete, ..) => put_change(b"*2\r\n$3\r\nDEL\r\n", key, None, out),
        // EXPIRE with 0 deletes, and PERSIST says the same of a key that is gone and of one that never expires.
        (OpKind::Touch, _, 0) => put_change(b"*2\r\n$5\r\nTOUCH\r\n", key, None, out),
        (OpKind::Touch, ..) => {
            put_change(b"*3\r\n$6\r\nEXPIRE\r\n", key, Some(u64::from(request.ttl_s)), out)
        }
        (OpKind::Gets | OpKind::Cas | OpKind::Prepend | OpKind::Raw, ..) => {
            unreachable!("a plan with {} is refused for Redis", request.kind)
        }
    }
}

/// `MGET key…`
fn put_mget(request: &Request<'_>, out: &mut Out) {
    out.put(b"*");
    out.put_decimal(1 + request.keys.ends.len() as u64);
    out.put(b"\r\n$4\r\nMGET\r\n");
    for key in request.keys.iter() {
        put_bulk(key, out);
    }
}

/// A command with a key and a value; the time to live, if there is one, and what else is behind them.
#[inline]
fn put_store(head: &[u8], tail: &[u8], request: &Request<'_>, out: &mut Out) {
    out.put(head);
    put_bulk(request.only_key(), out);
    out.put(b"$");
    out.put_decimal(request.value.total_len() as u64);
    out.put(LINE_END);
    out.put_value(&request.value);
    out.put(LINE_END);
    if request.ttl_s != 0 {
        out.put(b"$2\r\nEX\r\n");
        put_number(u64::from(request.ttl_s), out);
    }
    out.put(tail);
}

/// A command with a key and perhaps a number.
#[inline]
fn put_change(head: &[u8], key: &[u8], number: Option<u64>, out: &mut Out) {
    out.put(head);
    put_bulk(key, out);
    if let Some(number) = number {
        put_number(number, out);
    }
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
