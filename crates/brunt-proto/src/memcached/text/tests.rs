//! The text codec against memcached's protocol document: golden bytes both ways, then properties over cuts and garbage.
//!
//! Events are compared as text, one phrase an event, with the pieces of a value joined: whatever the cuts were, equal
//! streams give equal text.

use super::*;
use crate::memcached::tests::transcript::{self, Dialect, joined_keys, near_replies, positions, unescaped};
use crate::{Keys, Value};
use proptest::prelude::*;

// --- Requests ---

fn request<'a>(kind: OpKind, keys: Keys<'a>, value: Value<'a>) -> Request<'a> {
    Request { value, token: 0, ..Request::of(kind, keys) }
}

/// What the codec writes, in a queue that has room for its own bound and no byte more.
fn encode(request: &Request<'_>) -> (Vec<u8>, Encoded) {
    transcript::encode(TextCodec::new(), request)
}

#[test]
fn in_place_gets_match_copied_gets() {
    for len in [1, 16, 30, 250] {
        let key: Vec<u8> = (0..len).map(|at| b'a' + at as u8 % 26).collect();
        let keys = Keys { bytes: &key, ends: &[len] };
        let mut codec = TextCodec::new();
        let mut out = Out::with_room(codec.encoded_len_max(1, key.len(), 0));
        let encoded = codec.encode_get(key.len(), 0, &mut out, |place| place.copy_from_slice(&key));
        let (bytes, expected) = encode(&Request::of(OpKind::Get, keys));
        assert_eq!((out.contiguous(), encoded), (Some(&bytes[..]), expected), "{len}");
    }
}

#[test]
fn requests_follow_the_protocol_document() {
    let one = Keys { bytes: b"key", ends: &[3] };
    let three = Keys { bytes: b"abbccc", ends: &[1, 3, 6] };
    let value = Value { head: b"he", block: b"..ad..", offset: 2, len: 2 };
    let plain = |kind| request(kind, one, Value::NONE);
    let store = |kind| Request { flags: 7, ttl_s: 60, ..request(kind, one, value) };
    let table = [
        (plain(OpKind::Get), "get key\r\n"),
        (plain(OpKind::Gets), "gets key\r\n"),
        (request(OpKind::Mget, three, Value::NONE), "get a bb ccc\r\n"),
        (store(OpKind::Set), "set key 7 60 4\r\nhead\r\n"),
        (store(OpKind::Add), "add key 7 60 4\r\nhead\r\n"),
        (store(OpKind::Replace), "replace key 7 60 4\r\nhead\r\n"),
        (store(OpKind::Append), "append key 7 60 4\r\nhead\r\n"),
        (store(OpKind::Prepend), "prepend key 7 60 4\r\nhead\r\n"),
        (
            Request { operand: u64::MAX, ..store(OpKind::Cas) },
            "cas key 7 60 4 18446744073709551615\r\nhead\r\n",
        ),
        (plain(OpKind::Set), "set key 0 0 0\r\n\r\n"),
        (
            Request { flags: u32::MAX, ttl_s: u32::MAX, ..plain(OpKind::Set) },
            "set key 4294967295 4294967295 0\r\n\r\n",
        ),
        (Request { operand: 5, ..plain(OpKind::Incr) }, "incr key 5\r\n"),
        (Request { operand: u64::MAX, ..plain(OpKind::Decr) }, "decr key 18446744073709551615\r\n"),
        (plain(OpKind::Delete), "delete key\r\n"),
        (Request { ttl_s: 90, ..plain(OpKind::Touch) }, "touch key 90\r\n"),
    ];
    for (request, expected) in table {
        let (bytes, encoded) = encode(&request);
        assert_eq!(bytes.escape_ascii().to_string(), expected.escape_default().to_string());
        assert_eq!(encoded, Encoded { wire_requests: 1, replied: true });

        let (bytes, encoded) = encode(&Request { noreply: true, ..request });
        let quiet = !request.kind.is_retrieval();
        let expected = if quiet { expected.replacen("\r\n", " noreply\r\n", 1) } else { expected.to_owned() };
        assert_eq!(bytes.escape_ascii().to_string(), expected.escape_default().to_string());
        assert_eq!(encoded, Encoded { wire_requests: 1, replied: !quiet });
    }
}

/// Byte for byte as mcperf 0.1.1 sent them.
#[test]
fn trailing_blanks_follow_mcperf() {
    let key = Keys { bytes: b"mcp:00000001", ends: &[12] };
    let plain = |kind| request(kind, key, Value::NONE);
    let zeros = Value { head: &[], block: b"000000000", offset: 0, len: 9 };
    let store = |kind| request(kind, key, zeros);
    let table = [
        (plain(OpKind::Get), "get mcp:00000001\r\n", "get mcp:00000001\r\n"),
        (plain(OpKind::Gets), "gets mcp:00000001\r\n", "gets mcp:00000001\r\n"),
        (plain(OpKind::Delete), "delete mcp:00000001 \r\n", "delete mcp:00000001 noreply\r\n"),
        (
            store(OpKind::Set),
            "set mcp:00000001 0 0 9 \r\n000000000\r\n",
            "set mcp:00000001 0 0 9 noreply\r\n000000000\r\n",
        ),
        (
            Request { ttl_s: 100, ..store(OpKind::Prepend) },
            "prepend mcp:00000001 0 100 9 \r\n000000000\r\n",
            "prepend mcp:00000001 0 100 9 noreply\r\n000000000\r\n",
        ),
        (
            Request { operand: 1, ..store(OpKind::Cas) },
            "cas mcp:00000001 0 0 9 1 \r\n000000000\r\n",
            "cas mcp:00000001 0 0 9 1 noreply\r\n000000000\r\n",
        ),
        (
            Request { operand: 81, ..plain(OpKind::Incr) },
            "incr mcp:00000001 81 \r\n",
            "incr mcp:00000001 81 noreply\r\n",
        ),
        (
            Request { operand: 28, ..plain(OpKind::Decr) },
            "decr mcp:00000001 28 \r\n",
            "decr mcp:00000001 28 noreply\r\n",
        ),
    ];
    for (request, expected, quiet) in table {
        for (noreply, expected) in [(false, expected), (true, quiet)] {
            let codec = TextCodec::new().with_trailing_blank(true);
            let (bytes, _) = transcript::encode(codec, &Request { noreply, ..request });
            assert_eq!(String::from_utf8_lossy(&bytes), expected);
        }
    }
}

#[test]
fn the_bound_counts_every_field_at_its_longest() {
    let keys = Keys { bytes: b"key", ends: &[3] };
    // A length of 20 digits; values that long are only referenced, so it needs no memory.
    let value = Value { head: &[], block: &[], offset: 0, len: 10_000_000_000_000_000_000 };
    let longest = Request {
        flags: u32::MAX,
        ttl_s: u32::MAX,
        operand: u64::MAX,
        noreply: true,
        ..request(OpKind::Cas, keys, value)
    };
    let mut codec = TextCodec::new();
    let mut out = Out::with_room(codec.encoded_len_max(1, keys.bytes.len(), 0));
    codec.encode(&longest, &mut out);
    let spare = "replace".len() - "cas".len();
    assert_eq!(out.len() + spare, codec.encoded_len_max(1, keys.bytes.len(), value.len));
}

/// A request as a server reads it: the words of its line, and its value.
fn read_request(bytes: &[u8]) -> (Vec<String>, &[u8]) {
    let end = bytes.windows(2).position(|pair| pair == b"\r\n").expect("a line end");
    let words = std::str::from_utf8(&bytes[..end]).expect("text").split(' ').map(str::to_owned).collect();
    (words, &bytes[end + 2..])
}

fn codec_kinds() -> impl Strategy<Value = OpKind> {
    prop::sample::select(OpKind::ALL.into_iter().filter(|&kind| kind != OpKind::Raw).collect::<Vec<_>>())
}

proptest! {
    #[test]
    fn requests_parse_back(
        kind in codec_kinds(),
        names in prop::collection::vec("[!-~]{1,250}", 1..20),
        (flags, ttl_s, operand, noreply) in (any::<u32>(), any::<u32>(), any::<u64>(), any::<bool>()),
        head in prop::collection::vec(any::<u8>(), 0..20),
        (offset, len) in (0usize..100, prop_oneof![0usize..300, 4000usize..5000]),
    ) {
        let names = if kind.is_retrieval() { &names[..] } else { &names[..1] };
        let (bytes, ends) = joined_keys(names);
        let block: Vec<u8> = (0..5100u32).map(|i| (i % 251) as u8).collect();
        let written = Value { head: &head, block: &block, offset, len };
        let value = if kind.carries_value() { written } else { Value::NONE };
        let keys = Keys { bytes: &bytes, ends: &ends };
        let request = Request { flags, ttl_s, operand, noreply, ..request(kind, keys, value) };
        let (bytes, encoded) = encode(&request);

        let (words, body) = read_request(&bytes);
        let mut expected = vec![if kind == OpKind::Mget { "get" } else { kind.name() }.to_owned()];
        expected.extend(names.iter().cloned());
        if kind.carries_value() {
            expected.extend([flags.to_string(), ttl_s.to_string(), (head.len() + len).to_string()]);
            let expected_body = [&head[..], &block[offset..offset + len], b"\r\n"].concat();
            prop_assert_eq!(body, &expected_body[..]);
        } else {
            prop_assert_eq!(body, b"");
        }
        match kind {
            OpKind::Cas | OpKind::Incr | OpKind::Decr => expected.push(operand.to_string()),
            OpKind::Touch => expected.push(ttl_s.to_string()),
            _ => {}
        }
        if !encoded.replied {
            expected.push("noreply".to_owned());
        }
        prop_assert_eq!(words, expected);
        prop_assert_eq!(encoded.replied, !noreply || kind.is_retrieval());
    }
}

// --- Replies ---

/// Adds what an event says, without the token, which this protocol has not, and without quotes.
fn note(event: &Event<'_>, seen: &mut Vec<String>) {
    for said in transcript::phrases(event) {
        assert!(!said.starts_with("miss "), "only found keys are spoken of");
        let is_of_key = said.starts_with("key '");
        let said = match is_of_key || said.starts_with("end ") {
            true => said.replacen(" @0", "", 1),
            false => said,
        };
        let said = if is_of_key { said.replacen('\'', "", 1).replacen("' ", " ", 1) } else { said };
        transcript::join(seen, said);
    }
}

const DIALECT: Dialect<TextCodec> = Dialect { codec: TextCodec::new, note };

/// 29 well-formed replies and 43 malformed ones, and the events that each is.
fn tables() -> [Vec<(Vec<u8>, &'static str)>; 2] {
    transcript::replies(include_str!("replies.txt"), unescaped, [29, 43])
}

#[test]
fn replies_follow_the_protocol_document() {
    DIALECT.check_replies(&tables()[0]);
}

#[test]
fn malformed_bytes_are_reported_once() {
    DIALECT.check_malformed(&tables()[1], b"END\r\nSTORED\r\n");
}

#[test]
fn no_reply_begins_like_a_longer_one() {
    for (index, (word, _)) in WORDS.iter().enumerate() {
        for (other, _) in &WORDS[index + 1..] {
            assert!(!word.starts_with(other) && !other.starts_with(word), "{word:?} {other:?}");
        }
    }
}

#[test]
fn lines_end_within_the_unit() {
    // Leading zeros, too, which memcached never sends.
    let forms = [
        ("SERVER_ERROR ", 'a', "\r\n", ""),
        ("ERROR ", 'a', "\r\n", ""),
        ("STAT ", 'a', "\r\n", ""),
        ("VERSION ", 'a', "\r\n", ""),
        ("VALUE ", 'a', " 0 3\r\n", ""),
        ("VALUE k ", '0', " 3\r\n", ""),
        ("VALUE k 0 3 ", '0', "\r\n", ""),
        ("", '0', "\r\n", ""),
        ("9", ' ', "\r\n", ""),
    ];
    DIALECT.check_line_lengths(LINE_BYTES_MAX, &forms, b"VALUE k 0 1\r\nx\r\n");
}

#[test]
fn a_large_value_passes_through_in_the_pieces_that_arrive() {
    DIALECT.check_large_value(b"VALUE k 0 5000000\r\n", b"\r\nEND\r\n", 31);
}

/// A reply of one value, and what it is.
fn one_value(key: &str, flags: &str, value: &[u8]) -> Vec<u8> {
    [format!("VALUE {key} {flags} {}\r\n", value.len()).as_bytes(), value, b"\r\nEND\r\n"].concat()
}

#[test]
fn a_whole_reply_of_one_value_is_one_event() {
    for key in [1, 7, 8, 9, 30, 250].map(|len| "k".repeat(len)) {
        let lens =
            (0..70).chain([99, 100, 999, 1000, 9999, 10_000, 65_536, 100_000, 999_999, 1_000_000, 1_048_576]);
        let reply = |value: &[u8]| one_value(&key, "0", value);
        DIALECT.check_found(lens, reply, &[b"", b"V", b"END\r\n"], (key.as_bytes(), 0, 0));
    }
}

#[test]
fn damaged_values_decode_alike_on_both_paths() {
    // Every byte of it replaced by each of those that mean something; and cut everywhere, with more behind it or not.
    for (key, flags, value) in [
        ("key", "0", &b"abc"[..]),
        ("longerkey", "7", b"\r\nEND\r\n"),
        ("k", "0", b""),
        ("key:0123", "12", b"0123456789"),
    ] {
        let whole = one_value(key, flags, value);
        let bytes = *b"\r\n 019VEk\0\x1f\x20\x21\x2f\x3a\x7f\x80\xff";
        let behind = [&b""[..], &whole, b"\r\nEND\r\nEND\r\n"];
        DIALECT.check_damaged(&whole, usize::MAX, bytes.into_iter(), &behind);
        DIALECT.check_cuts(&[&whole[..], &whole].concat());
    }
}

#[test]
fn header_reuse_matches_the_general_parser() {
    let replies = [
        one_value("key-0001", "0", &[b'x'; 200]),
        one_value("key-0002", "0", &[b'y'; 200]),
        one_value("key-0001", "1", &[b'x'; 200]),
        one_value("key-0001", "0", &[b'x'; 20]),
        one_value("key-0001", "0", &[b'x'; 2000]),
        one_value("key-000", "0", &[b'x'; 200]),
        one_value("key-0001-0 0 200\r\n", "0", &[b'x'; 200]),
        b"VALUE key- 0 1 0 200\r\nx\r\nEND\r\n".to_vec(),
        b"VALUE k 0 1 0 200\r\nx\r\nEND\r\n".to_vec(),
        b"VALUE k\n23 001 0 200\r\nx\r\nEND\r\n".to_vec(),
        b"VALUE ke 0 2 0 200\r\nxy\r\nEND\r\nVALUE key-0001 0 200\r\n".to_vec(),
        one_value(&"k".repeat(20), "0", &[b'x'; 200]),
        one_value(&format!("{} 0 1", "k".repeat(14)), "0", &[b'x'; 200]),
        one_value(&"k".repeat(40), "0", &[b'x'; 7]),
        one_value(&format!("k 0 7\r\n{}", "k".repeat(33)), "0", &[b'x'; 7]),
        one_value("", "0", b""),
        b"VALUE \r\nEND\r\n".to_vec(),
        b"VALUE \0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\r\nEND\r\n".to_vec(),
        [b"VALUE key-0001".to_vec(), vec![0; 2013], b"\r\nEND\r\n".to_vec()].concat(),
    ];
    DIALECT.check_pairs(&replies);
}

/// A reply before it has bytes.
#[derive(Clone, Debug)]
enum Reply {
    /// With uniques or without.
    Values(Vec<(String, u32, Vec<u8>, u64)>, bool),
    Number(u64, usize),
    Statistics(Vec<String>),
    Other(Vec<u8>, &'static str),
}

fn replies() -> impl Strategy<Value = Reply> {
    let value = ("[!-~]{1,250}", any::<u32>(), prop::collection::vec(any::<u8>(), 0..300), any::<u64>());
    prop_oneof![
        (prop::collection::vec(value, 0..5), any::<bool>())
            .prop_map(|(values, has_uniques)| Reply::Values(values, has_uniques)),
        (any::<u64>(), 0usize..4).prop_map(|(number, padding)| Reply::Number(number, padding)),
        prop::collection::vec("[a-z_]{1,20} [0-9]{1,10}", 1..5).prop_map(Reply::Statistics),
        prop::sample::select(tables()[0].clone()).prop_map(|(bytes, events)| Reply::Other(bytes, events)),
    ]
}

/// Appends the bytes of a reply as a server writes them, and the phrases of its events.
fn write_reply(reply: &Reply, bytes: &mut Vec<u8>, phrases: &mut Vec<String>) {
    if let Reply::Other(written, events) = reply {
        bytes.extend_from_slice(written);
        phrases.extend(events.split("; ").map(str::to_owned));
        return;
    }
    phrases.push("begin".to_owned());
    match reply {
        Reply::Values(values, has_uniques) => {
            for (key, flags, value, unique) in values {
                let unique = has_uniques.then_some(*unique);
                let tail = unique.map(|unique| format!(" {unique}")).unwrap_or_default();
                bytes.extend_from_slice(format!("VALUE {key} {flags} {}{tail}\r\n", value.len()).as_bytes());
                bytes.extend_from_slice(value);
                bytes.extend_from_slice(b"\r\n");
                let key = key.escape_default();
                phrases.push(format!("key {key} {flags} {} {}", value.len(), unique.unwrap_or_default()));
                if !value.is_empty() {
                    phrases.push(format!("value {}", value.escape_ascii()));
                }
            }
            bytes.extend_from_slice(b"END\r\n");
            phrases.push(if values.is_empty() { "end not_found" } else { "end value" }.to_owned());
        }
        Reply::Number(number, padding) => {
            bytes.extend_from_slice(format!("{number}{}\r\n", " ".repeat(*padding)).as_bytes());
            phrases.push(format!("end number {number}"));
        }
        Reply::Statistics(lines) => {
            for line in lines {
                bytes.extend_from_slice(format!("STAT {line}\r\n").as_bytes());
                phrases.push(format!("control STAT {line}"));
            }
            bytes.extend_from_slice(b"END\r\n");
            phrases.push("end ok".to_owned());
        }
        Reply::Other(..) => unreachable!("handled above"),
    }
}

/// The pieces that replies are made of.
fn pieces() -> Vec<Vec<u8>> {
    let words = WORDS.iter().map(|(word, _)| word.to_vec());
    let others =
        "\r\n/\r/\n/ /0/5/18446744073709551616/k /VALUE k 0 3\r\n/abc\r\n/E/VALUE k 0 3\r\nabc\r\nEND\r\n";
    words.chain(others.split('/').map(|piece| piece.as_bytes().to_vec())).chain([vec![b'a'; 2000]]).collect()
}

proptest! {
    #[test]
    fn generated_replies_decode_as_written(
        replies in prop::collection::vec(replies(), 0..6),
        cuts in prop::collection::vec(any::<prop::sample::Index>(), 0..20),
    ) {
        let (mut bytes, mut expected) = (Vec::new(), Vec::new());
        for reply in &replies {
            write_reply(reply, &mut bytes, &mut expected);
        }
        prop_assert_eq!(DIALECT.decode_cut(&bytes, &positions(&cuts, &bytes), usize::MAX), expected);
    }

    #[test]
    fn garbage_never_panics_and_cuts_never_matter(
        stream in near_replies(pieces(), 12),
        cuts in prop::collection::vec(any::<prop::sample::Index>(), 0..20),
    ) {
        DIALECT.check_stream(&stream, &cuts);
    }
}
