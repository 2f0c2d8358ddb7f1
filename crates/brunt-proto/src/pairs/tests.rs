//! Every reply to every operation, in every protocol: what the decoder and its table make of it is what the files beside this one say.

use crate::memcached::{BinaryCodec, MetaCodec, TextCodec};
use crate::out::{Out, PARTS_MAX};
use crate::resp::RespCodec;
use crate::template::{Template, Templates};
use crate::{Codec, Event, Keys, Request, Value};
use brunt_plan::op::OpKind;
use brunt_plan::outcome::{Outcome, OutcomeClass, ReplyKind};
use brunt_plan::plan::Protocol;
use std::io::IoSlice;

/// The rows of a file: a reply, and the letter of each operation.
fn matrix(file: &str) -> Vec<(String, Vec<(OpKind, char)>)> {
    let is_comment = |line: &&str| line.starts_with("# ") || *line == "#";
    let heading = file.lines().rfind(is_comment).expect("a heading");
    let kinds: Vec<OpKind> =
        heading[1..].split_whitespace().map(|name| name.parse().expect("an operation")).collect();
    let rows = file.lines().filter(|line| !is_comment(line));
    rows.map(|row| {
        let at = heading.find(kinds[0].name()).expect("it is there");
        let (reply, letters) = row.split_at(at);
        let letters: Vec<char> = letters.split_whitespace().map(|letter| letter.parse().unwrap()).collect();
        assert_eq!(letters.len(), kinds.len(), "{row}");
        (reply.trim_end().to_owned(), kinds.iter().copied().zip(letters).collect())
    })
    .collect()
}

/// The request of an operation as it is sent.
fn request_of<C: Codec>(codec: &mut C, kind: OpKind) -> Vec<u8> {
    let two = Keys { bytes: b"keynone", ends: &[3, 7] };
    let keys = if kind == OpKind::Mget { two } else { Keys { bytes: b"key", ends: &[3] } };
    let value = Value { head: b"abc", block: &[], offset: 0, len: 0 };
    let value = if kind.carries_value() { value } else { Value::NONE };
    let mut out = Out::with_room(1000);
    codec.encode(&Request { token: 0x0102_0304, value, ..Request::of(kind, keys) }, &mut out);
    let mut parts = [IoSlice::new(&[]); PARTS_MAX];
    let count = out.gather(&[], &mut parts);
    parts[..count].iter().flat_map(|part| part.to_vec()).collect()
}

/// The outcome of an operation by this reply, as its letter, decoded in steps of this many bytes.
fn letter_of<C: Codec>(codec: &mut C, kind: OpKind, reply: &[u8], piece: usize) -> char {
    let (mut used, mut end) = (0, piece.min(reply.len()));
    loop {
        let (step, event) = codec.decode(&reply[used..end]);
        used += step;
        let meaning = match event {
            None if end == reply.len() => return 'w',
            None => {
                end = (end + piece).min(reply.len());
                continue;
            }
            Some(Event::Bad(_)) => return '.',
            Some(Event::Found(_)) => codec.meaning(kind, ReplyKind::Value, C::FOUND),
            Some(Event::End { reply, form, .. }) => codec.meaning(kind, reply, form),
            Some(_) => continue,
        };
        let Some(meaning) = meaning else { return '.' };
        return match Outcome::of_reply(kind, meaning).class {
            OutcomeClass::Hit => 'h',
            OutcomeClass::Miss => 'm',
            OutcomeClass::Done => 'd',
            OutcomeClass::Rejected => 'r',
            OutcomeClass::Error => 'e',
            class => panic!("no reply ends an operation as {}", class.name()),
        };
    }
}

/// All pairs of a file; `render` makes bytes of a reply to a request. However they are cut, they come to the same.
fn check<C: Codec>(file: &str, fresh: &C, render: fn(&str, &[u8]) -> Vec<u8>) {
    for (row, cells) in matrix(file) {
        for (kind, expected) in cells {
            let mut codec = fresh.clone();
            let reply = render(&row, &request_of(&mut codec, kind));
            for piece in [usize::MAX, 3, 1] {
                let found = letter_of(&mut codec.clone(), kind, &reply, piece.min(reply.len()));
                assert_eq!(found, expected, "{row} to {kind}, {piece} bytes at a time");
            }
        }
    }
}

fn lines(row: &str, _: &[u8]) -> Vec<u8> {
    row.replace('|', "\r\n").replace("{k}", "key").into_bytes()
}

/// With the opaque that the request bears, or the first one of several.
fn meta_lines(row: &str, request: &[u8]) -> Vec<u8> {
    let request = String::from_utf8(request.to_vec()).unwrap();
    let (_, opaque) = request.split_once(" O").unwrap();
    let row = row.replace("{o}", &opaque[..9]).replace("{t}", &opaque[1..9]);
    lines(&row, &[])
}

/// Frames with the token that the request bears.
fn frames(row: &str, request: &[u8]) -> Vec<u8> {
    let last = if request.windows(2).any(|pair| pair == [0x80, 0x0a]) { 0x0a } else { request[1] };
    let frame = |text: &str| {
        let parts: Vec<&str> = text.split('/').collect();
        let [opcode, status, body] = parts[..] else { panic!("{text}") };
        let opcode = if opcode == "=" { last } else { u8::from_str_radix(opcode, 16).unwrap() };
        let (key, extras, body): (_, _, &[u8]) = match body {
            "v" => (0, 4, b"\0\0\0\0abc"),
            "f" => (0, 4, b"\0\0\0\0"),
            "k" => (3, 4, b"\0\0\0\0keyabc"),
            "n" => (0, 0, &[0, 0, 0, 0, 0, 0, 0, 7]),
            "t" => (0, 0, b"text"),
            _ => (0, 0, b""),
        };
        let status = u8::from_str_radix(status, 16).unwrap();
        let mut bytes = vec![0x81, opcode, 0, key, extras, 0, 0, status, 0, 0, 0, body.len() as u8];
        bytes.extend_from_slice(&request[12..16]);
        bytes.extend_from_slice(&[0; 8]);
        bytes.extend_from_slice(body);
        bytes
    };
    row.split(',').flat_map(frame).collect()
}

#[test]
fn every_reply_to_every_operation_in_text() {
    let templates = Templates::new(vec![Template::parse(Protocol::MemcachedText, "version").unwrap()]);
    check(include_str!("text.txt"), &TextCodec::new().with_templates(templates), lines);
}

#[test]
fn every_reply_to_every_operation_in_meta() {
    check(include_str!("meta.txt"), &MetaCodec::new(), meta_lines);
}

#[test]
fn every_reply_to_every_operation_in_binary() {
    check(include_str!("binary.txt"), &BinaryCodec::default(), frames);
}

#[test]
fn every_reply_to_every_operation_of_a_redis() {
    let templates = Templates::new(vec![Template::parse(Protocol::Resp2, "PING").unwrap()]);
    check(include_str!("resp.txt"), &RespCodec::new(templates, None), lines);
    check(include_str!("hash.txt"), &RespCodec::default().with_hash_field(1), lines);
}
