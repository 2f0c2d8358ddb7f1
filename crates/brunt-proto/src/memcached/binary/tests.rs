//! The binary codec against a real server and the protocol document: golden bytes both ways, then properties over cuts
//! and garbage.

use super::sasl::SaslLogin;
use super::*;
use crate::memcached::tests::transcript::{self, Dialect, TOKEN, encode, joined_keys, note, request};
use crate::{Keys, Value};
use proptest::prelude::*;

#[test]
fn golden_exchanges_with_memcached() {
    DIALECT.check_exchanges(include_str!("golden/memcached-1.6.18.txt"));
}

const DIALECT: Dialect<BinaryCodec> = Dialect { codec: BinaryCodec::default, note };

// --- Requests ---

#[test]
fn reply_and_frame_counts() {
    for request in transcript::requests() {
        let (bytes, encoded) = encode(BinaryCodec::default(), &request);
        let keys = request.keys.ends.len() as u32;
        let is_batch = request.kind == OpKind::Mget || keys > 1;
        let replied = !request.noreply || request.kind.is_retrieval() || request.kind == OpKind::Touch;
        let wire_requests = if is_batch { keys + 1 } else { 1 };
        assert_eq!(encoded, Encoded { wire_requests, replied }, "{}", bytes.escape_ascii());
    }
}

#[test]
fn no_cas_becomes_a_set() {
    let keys = Keys { bytes: b"key", ends: &[3] };
    let unique = |kind, operand| {
        let (bytes, _) =
            encode(BinaryCodec::default(), &Request { operand, ..request(kind, keys, Value::NONE) });
        Header::of(bytes.first_chunk().expect("a header")).unique
    };
    assert_eq!(unique(OpKind::Cas, 0), NEVER_CURRENT);
    assert_eq!(unique(OpKind::Cas, 7), 7);
    assert_eq!(unique(OpKind::Set, 7), 0);
}

proptest! {
    #[test]
    fn requests_parse_back(
        kind in prop::sample::select(&OpKind::ALL[..OpKind::COUNT - 1]),
        names in prop::collection::vec(prop::collection::vec(any::<u8>(), 1..250), 1..20),
        (flags, ttl_s, operand, noreply) in (any::<u32>(), any::<u32>(), 1..=u64::MAX, any::<bool>()),
        (offset, len) in (0usize..100, prop_oneof![0usize..300, 4000usize..5000]),
        token in any::<u32>(),
    ) {
        let names = if kind.is_retrieval() { &names[..] } else { &names[..1] };
        let (bytes, ends) = joined_keys(names);
        let block: Vec<u8> = (0..5100u32).map(|i| (i % 251) as u8).collect();
        let written = Value { head: b"<>", block: &block, offset, len };
        let value = if kind.carries_value() { written } else { Value::NONE };
        let keys = Keys { bytes: &bytes, ends: &ends };
        let asked = Request { flags, ttl_s, operand, noreply, token, ..request(kind, keys, value) };
        let (bytes, encoded) = encode(BinaryCodec::default(), &asked);

        let mut rest = &bytes[..];
        let is_batch = names.len() > 1 || kind == OpKind::Mget;
        let closing = is_batch.then_some(Vec::new());
        let mut frames = 0;
        for name in names.iter().chain(&closing) {
            let (header, body) = rest.split_first_chunk().expect("a header");
            let header = Header::of(header);
            let (body, behind) = body.split_at(header.body_len as usize);
            (rest, frames) = (behind, frames + 1);
            let (extras, body) = body.split_at(usize::from(header.extras_len));
            let (key, body) = body.split_at(usize::from(header.key_len));
            prop_assert_eq!((header.magic, header.status, header.token), (REQUEST_MAGIC, 0, token));
            prop_assert_eq!(key, &name[..]);
            prop_assert_eq!(header.unique, if kind == OpKind::Cas { operand } else { 0 });
            let expected_extras = match kind {
                OpKind::Set | OpKind::Add | OpKind::Replace | OpKind::Cas => {
                    [flags.to_be_bytes(), ttl_s.to_be_bytes()].concat()
                }
                OpKind::Incr | OpKind::Decr => {
                    [&operand.to_be_bytes()[..], &[0; 8], &[0xff; 4]].concat()
                }
                OpKind::Touch => ttl_s.to_be_bytes().to_vec(),
                _ => Vec::new(),
            };
            prop_assert_eq!(extras, expected_extras);
            let expected_value =
                if kind.carries_value() { [b"<>", &block[offset..offset + len]].concat() } else { Vec::new() };
            prop_assert_eq!(body, expected_value);
        }
        prop_assert_eq!((rest, frames), (&b""[..], encoded.wire_requests));
    }
}

// --- Authentication ---

#[test]
fn credentials_follow_sasl_plain() {
    let expected = b"\x80\x21\0\x05\0\0\0\0\0\0\0\x14\0\0\0\0\0\0\0\0\0\0\0\0PLAIN\0user\0pass word";
    assert_eq!(SaslLogin::new("user", "pass word").bytes(), expected);
}

#[test]
fn authentication_replies() {
    // As memcached 1.6.18 answered with -S: right ones, wrong ones, none, and anything else before the right ones; and
    // without -S.
    let table = [
        (reply(0x21, 0, b"", b"", b"Authenticated"), ReplyKind::Ok, ""),
        (reply(0x21, 0x20, b"", b"", b"Auth failure."), ReplyKind::ClientError, "Auth failure."),
        (reply(0x21, 0x21, b"", b"", b""), ReplyKind::Value, ""),
        (reply(0x00, 0x20, b"", b"", b"Auth failure."), ReplyKind::ClientError, "Auth failure."),
        (reply(0x21, 0x81, b"", b"", b"Unknown command"), ReplyKind::Error, "Unknown command"),
    ];
    for (stream, expected, expected_text) in table {
        let (mut codec, mut used_total, mut ended) = (BinaryCodec::default(), 0, None);
        while let (used, Some(event)) = codec.decode(&stream[used_total..]) {
            used_total += used;
            match event {
                Event::End { reply, text, .. } => ended = Some((reply, text)),
                Event::Control(frame) => assert_eq!(frame, stream),
                event => assert_eq!(event, Event::Begin),
            }
        }
        assert_eq!(ended, Some((expected, expected_text.as_bytes())));
        assert_eq!(used_total, stream.len());
        DIALECT.check_cuts(&stream);
    }
}

// --- Replies ---

/// The frame of a reply with the token 1 and the unique 5.
fn reply(opcode: u8, status: u16, extras: &[u8], key: &[u8], value: &[u8]) -> Vec<u8> {
    let header = Header {
        magic: REPLY_MAGIC,
        opcode,
        key_len: key.len() as u16,
        extras_len: extras.len() as u8,
        status,
        body_len: (extras.len() + key.len() + value.len()) as u32,
        token: 1,
        unique: 5,
    };
    [&header.to_bytes(), extras, key, value].concat()
}

/// The same with another token.
fn with_token(token: u8, mut frame: Vec<u8>) -> Vec<u8> {
    frame[15] = token;
    frame
}

const FLAGS: &[u8] = &[0, 0, 0, 7];

/// Well-formed replies, and the events that each is.
fn replies() -> Vec<(Vec<u8>, String)> {
    let noop = reply(0x0a, 0, b"", b"", b"");
    let hit = |key: &[u8], value: &[u8]| reply(0x0d, 0, FLAGS, key, value);
    let refused = reply(0x0d, 0x82, b"", b"", b"Out of memory");
    let mut replies = vec![
        (reply(0x00, 0, FLAGS, b"", b"v"), "begin; key '' 7 1 0 @1; value v; end value @1".to_owned()),
        (
            reply(0x00, 0, FLAGS, b"", b"value"),
            "begin; key '' 7 5 0 @1; value value; end value @1".to_owned(),
        ),
        (reply(0x00, 0, FLAGS, b"", b""), "begin; key '' 7 0 0 @1; end value @1".to_owned()),
        (reply(0x00, 0, FLAGS, b"k", b"v"), "begin; key 'k' 7 1 0 @1; value v; end value @1".to_owned()),
        (reply(0x0c, 0, FLAGS, b"k", b"va"), "begin; key 'k' 7 2 5 @1; value va; end value @1".to_owned()),
        (
            [hit(b"a", b"x"), hit(b"b", b""), noop.clone()].concat(),
            "begin; key 'a' 7 1 0 @1; value x; key 'b' 7 0 0 @1; end value @1".to_owned(),
        ),
        (noop.clone(), "begin; end not_found @1".to_owned()),
        (
            [reply(0x0d, 1, b"", b"a", b""), hit(b"b", b"y"), noop.clone()].concat(),
            "begin; miss 'a' @1; key 'b' 7 1 0 @1; value y; end value @1".to_owned(),
        ),
        // A multi-get ends with its first error; what follows up to its end answers nothing.
        (
            [hit(b"a", b"x"), refused.clone(), hit(b"b", b"y"), refused.clone(), noop.clone()].concat(),
            "begin; key 'a' 7 1 0 @1; value x; end server_error @1: Out of memory; push; push over"
                .to_owned(),
        ),
        (
            [refused.clone(), hit(b"b", b""), noop.clone()].concat(),
            "begin; end server_error @1: Out of memory; push; push over".to_owned(),
        ),
        (
            [refused, reply(0x0a, 0x82, b"", b"", b"Out of memory")].concat(),
            "begin; end server_error @1: Out of memory; push over".to_owned(),
        ),
        (
            [hit(b"a", b""), reply(0x0a, 0x20, b"", b"", b"Auth failure.")].concat(),
            "begin; key 'a' 7 0 0 @1; end client_error @1: Auth failure.".to_owned(),
        ),
        (reply(0x1c, 0, &[0; 4], b"", b""), "begin; end touched @1".to_owned()),
        (reply(0x05, 0, b"", b"", &[0xff; 8]), "begin; end number 18446744073709551615 @1".to_owned()),
        (reply(0x15, 0, b"", b"", &[0; 8]), "begin; end number 0 @1".to_owned()),
    ];
    replies.extend(STATUSES.iter().map(|(opcode, status, expected)| {
        let text = if expected.contains("error") || expected.contains("redirect") { ": Why." } else { "" };
        let body: &[u8] = if *status == 0 { b"" } else { b"Why." };
        (reply(*opcode, *status, b"", b"", body), format!("begin; end {expected} @1{text}"))
    }));
    replies
}

/// Opcode, status, and what that is.
const STATUSES: &[(u8, u16, &str)] = &[
    (0x00, 0x01, "not_found"),
    (0x0c, 0x01, "not_found"),
    (0x04, 0x01, "not_found"),
    (0x1c, 0x01, "not_found"),
    (0x01, 0x00, "stored"),
    (0x01, 0x01, "not_found"),
    (0x01, 0x02, "exists"),
    (0x11, 0x02, "exists"),
    (0x02, 0x02, "not_stored"),
    (0x12, 0x02, "not_stored"),
    (0x03, 0x01, "not_stored"),
    (0x13, 0x01, "not_stored"),
    (0x0e, 0x05, "not_stored"),
    (0x1a, 0x05, "not_stored"),
    (0x01, 0x03, "server_error"),
    (0x00, 0x04, "client_error"),
    (0x05, 0x06, "client_error"),
    (0x00, 0x07, "redirect"),
    (0x00, 0x20, "client_error"),
    (0x00, 0x21, "client_error"),
    (0x00, 0x24, "client_error"),
    (0x00, 0x81, "error"),
    (0x01, 0x82, "server_error"),
    (0x00, 0x83, "error"),
    (0x00, 0x84, "server_error"),
    (0x00, 0x85, "server_error"),
    (0x00, 0x86, "server_error"),
    (0x00, 0xffff, "server_error"),
];

/// A reply's frame with one of its lengths changed.
fn with_lengths(mut frame: Vec<u8>, key_len: u16, extras_len: u8, body_len: u32) -> Vec<u8> {
    frame[2..4].copy_from_slice(&key_len.to_be_bytes());
    frame[4] = extras_len;
    frame[8..12].copy_from_slice(&body_len.to_be_bytes());
    frame
}

/// Bytes that are no reply, and what is seen of them.
fn malformed() -> Vec<(Vec<u8>, &'static str)> {
    let get = reply(0x00, 0, FLAGS, b"", b"v");
    let hit = reply(0x0d, 0, FLAGS, b"a", b"");
    let noop = reply(0x0a, 0, b"", b"", b"");
    let refused = reply(0x0d, 0x82, b"", b"", b"");
    let after_hit = |frame: Vec<u8>| [hit.clone(), frame].concat();
    vec![
        (b"ERROR Too many open connections\r\n".to_vec(), "begin; bad UnknownReply"),
        (b"\x80".to_vec(), "begin; bad UnknownReply"),
        (reply(0x07, 0, b"", b"", b""), "begin; bad UnknownReply"),
        (reply(0xff, 0, b"", b"", b""), "begin; bad UnknownReply"),
        // Lengths that do not fit one another, or the reply.
        (with_lengths(get.clone(), 0, 4, 3), "begin; bad BadNumber"),
        (with_lengths(get.clone(), 2, 4, 5), "begin; bad BadNumber"),
        (with_lengths(get.clone(), u16::MAX, u8::MAX, 0), "begin; bad BadNumber"),
        (with_lengths(get.clone(), 0, 0, 5), "begin; bad BadNumber"),
        (with_lengths(get.clone(), 0, 5, 5), "begin; bad BadNumber"),
        (with_lengths(get.clone(), 251, 4, 300), "begin; bad LineTooLong"),
        (reply(0x05, 0, b"", b"", b"1234567"), "begin; bad BadNumber"),
        (reply(0x05, 0, b"", b"", b"123456789"), "begin; bad BadNumber"),
        (with_lengths(noop.clone(), 0, 0, u32::MAX), "begin; bad LineTooLong"),
        (reply(0x00, 1, b"", b"", &[b'x'; FRAME_BYTES_MAX]), "begin; bad LineTooLong"),
        // A success that brings what it cannot bring.
        (reply(0x01, 0, b"", b"", b"Why."), "begin; bad UnknownReply"),
        (reply(0x0a, 0, b"", b"", b"Why."), "begin; bad UnknownReply"),
        (reply(0x1c, 0, b"", b"", b"Why."), "begin; bad UnknownReply"),
        // Frames that cannot be within a multi-get, or not in this one.
        (after_hit(get.clone()), "begin; key 'a' 7 0 0 @1; bad UnknownReply"),
        (after_hit(reply(0x00, 1, b"", b"", b"")), "begin; key 'a' 7 0 0 @1; bad UnknownReply"),
        (after_hit(with_token(2, hit.clone())), "begin; key 'a' 7 0 0 @1; bad UnknownReply"),
        (after_hit(with_token(2, noop.clone())), "begin; key 'a' 7 0 0 @1; bad UnknownReply"),
        (
            [refused.clone(), get].concat(),
            "begin; end server_error @1: out of memory (status 0x0082); bad UnknownReply",
        ),
        (
            [refused, with_token(2, noop.clone())].concat(),
            "begin; end server_error @1: out of memory (status 0x0082); bad UnknownReply",
        ),
    ]
}

#[test]
fn replies_follow_the_protocol_document() {
    DIALECT.check_replies(&replies());
}

#[test]
fn malformed_bytes_are_reported_once() {
    DIALECT.check_malformed(&malformed(), &reply(0x0a, 0, b"", b"", b""));
}

#[test]
fn frames_without_a_value_end_within_the_unit() {
    for (opcode, status) in [(0x00, 1), (0x21, 0x21), (0x0d, 0x82)] {
        for (len, accepted) in [(FRAME_BYTES_MAX, true), (FRAME_BYTES_MAX + 1, false)] {
            let stream = reply(opcode, status, b"", b"", &vec![b'x'; len - HEADER_BYTES]);
            let seen = DIALECT.decode_cut(&stream, &[], BinaryCodec::UNIT_BYTES_MAX);
            assert_eq!(seen.iter().all(|said| said != "bad LineTooLong"), accepted, "{opcode}: {seen:?}");
            DIALECT.check_cuts(&stream);
        }
    }
}

#[test]
fn a_whole_reply_of_one_value_is_one_event() {
    let lens = (0..70).chain([99, 100, 1000, 65_536, 1_000_000, 1_048_576]);
    let reply = |value: &[u8]| reply(0x00, 0, FLAGS, b"", value);
    DIALECT.check_found(lens, reply, &[b"", b"\x81", &[0; 30]], (b"", 7, 1));
}

#[test]
fn damaged_replies_decode_alike_on_both_paths() {
    // Every byte of it replaced by each of those that mean something; with more behind it or not.
    let noop = reply(0x0a, 0, b"", b"", b"");
    let wholes = [
        reply(0x00, 0, FLAGS, b"", b"abc"),
        reply(0x0c, 0, FLAGS, b"key", b""),
        [reply(0x0d, 0, FLAGS, b"k", b"v"), noop.clone()].concat(),
    ];
    for whole in wholes {
        let bytes = (0..=0x25).chain([0x7f, 0x80, 0x81, 0x82, 0xff]);
        DIALECT.check_damaged(&whole, usize::MAX, bytes, &[b"", &noop]);
    }
}

#[test]
fn a_large_value_passes_through_in_the_pieces_that_arrive() {
    let mut front = reply(0x00, 0, FLAGS, b"", &[b'v'; 5_000_000]);
    front.truncate(front.len() - 5_000_000);
    // Only the byte that ends the reply waits.
    DIALECT.check_large_value(&front, b"", 1);
}

/// Bytes that are nearly a reply: the frames that replies are made of, in any order, damaged or with some noise.
fn near_replies() -> impl Strategy<Value = Vec<u8>> {
    let frames: Vec<Vec<u8>> = replies().into_iter().map(|(frame, _)| frame).collect();
    let damaged = (prop::sample::select(frames.clone()), any::<prop::sample::Index>(), any::<u8>()).prop_map(
        |(mut frame, at, byte)| {
            let at = at.index(frame.len());
            frame[at] = byte;
            frame
        },
    );
    let cut = (prop::sample::select(frames.clone()), any::<prop::sample::Index>())
        .prop_map(|(frame, at)| frame[..at.index(frame.len())].to_vec());
    let piece = prop_oneof![
        6 => prop::sample::select(frames),
        2 => damaged,
        1 => cut,
        1 => prop::collection::vec(any::<u8>(), 0..10),
    ];
    prop::collection::vec(piece, 0..8).prop_map(|pieces| pieces.concat())
}

proptest! {
    #[test]
    fn garbage_never_panics_and_cuts_never_matter(
        stream in prop_oneof![near_replies(), prop::collection::vec(any::<u8>(), 0..100)],
        cuts in prop::collection::vec(any::<prop::sample::Index>(), 0..20),
    ) {
        DIALECT.check_stream(&stream, &cuts);
    }

    #[test]
    fn values_of_any_length_are_complete(
        values in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..300), 1..6),
        cuts in prop::collection::vec(any::<prop::sample::Index>(), 0..20),
    ) {
        let stream: Vec<u8> = values.iter().flat_map(|value| reply(0x00, 0, FLAGS, b"", value)).collect();
        let expected: Vec<String> = values
            .iter()
            .flat_map(|value| transcript::phrases(&Event::Found(crate::Found { key: b"", flags: 7, value, token: 1 })))
            .collect();
        prop_assert_eq!(DIALECT.decode(&stream), expected);
        DIALECT.check_stream(&stream, &cuts);
    }
}

#[test]
fn tokens_round_trip() {
    let (bytes, _) = encode(
        BinaryCodec::default(),
        &request(OpKind::Get, Keys { bytes: b"key", ends: &[3] }, Value::NONE),
    );
    assert_eq!(Header::of(bytes.first_chunk().expect("a header")).token, TOKEN);
}

#[test]
fn statuses_have_a_number() {
    for (status, text) in
        [(0x81, "unknown command (status 0x0081)"), (0x40, "unknown status"), (0x100, "unknown status")]
    {
        assert_eq!(text_or_status(b"", status), text.as_bytes());
    }
}
