//! The text codec against memcached's protocol document: golden bytes both ways, then properties over cuts and garbage.
//!
//! Events are compared as text, one phrase an event, with the pieces of a value joined: whatever the cuts were, equal
//! streams give equal text.

use super::*;
use crate::memcached::tests::transcript::{self, positions};
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
        let bytes = names.concat();
        let ends: Vec<u32> = names
            .iter()
            .scan(0, |end, name| {
                *end += name.len() as u32;
                Some(*end)
            })
            .collect();
        let block: Vec<u8> = (0..5100u32).map(|i| (i % 251) as u8).collect();
        let written = Value { head: &head, block: &block, offset, len };
        let value = if kind.carries_value() { written } else { Value::NONE };
        let keys = Keys { bytes: bytes.as_bytes(), ends: &ends };
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

fn decode_cut(stream: &[u8], cuts: &[usize], window: usize) -> Vec<String> {
    transcript::decode_cut_by(note, TextCodec::new(), stream, cuts, window)
}

fn decode(stream: &[u8]) -> Vec<String> {
    decode_cut(stream, &[], usize::MAX)
}

fn decode_general_path(stream: &[u8]) -> Vec<String> {
    transcript::decode_general_path(note, TextCodec::new(), stream)
}

fn check_cuts(stream: &[u8]) {
    transcript::check_cuts_by(note, &TextCodec::new(), stream);
}

/// Well-formed replies, and the events that each is.
const REPLIES: &[(&str, &str)] = &[
    ("VALUE key 7 3\r\nabc\r\nEND\r\n", "begin; key key 7 3 0; value abc; end value"),
    ("VALUE k 0 0\r\n\r\nEND\r\n", "begin; key k 0 0 0; end value"),
    ("VALUE k 0 5 99\r\n\r\nEND\r\nEND\r\n", "begin; key k 0 5 99; value \\r\\nEND; end value"),
    (
        "VALUE a 4294967295 1 18446744073709551615\r\nx\r\nVALUE b 0 2 1\r\nyz\r\nEND\r\n",
        "begin; key a 4294967295 1 18446744073709551615; value x; key b 0 2 1; value yz; end value",
    ),
    ("VALUE a 0 0\r\n\r\nVALUE b 0 0\r\n\r\nEND\r\n", "begin; key a 0 0 0; key b 0 0 0; end value"),
    ("END\r\n", "begin; end not_found"),
    ("STORED\r\n", "begin; end stored"),
    ("NOT_STORED\r\n", "begin; end not_stored"),
    ("EXISTS\r\n", "begin; end exists"),
    ("NOT_FOUND\r\n", "begin; end not_found"),
    ("DELETED\r\n", "begin; end deleted"),
    ("TOUCHED\r\n", "begin; end touched"),
    ("OK\r\n", "begin; end ok"),
    ("RESET\r\n", "begin; end ok"),
    ("0\r\n", "begin; end number 0"),
    ("18446744073709551615\r\n", "begin; end number 18446744073709551615"),
    ("9 \r\n", "begin; end number 9"),
    ("9   \r\n", "begin; end number 9"),
    ("ERROR\r\n", "begin; end error: ERROR"),
    ("CLIENT_ERROR\r\n", "begin; end client_error: CLIENT_ERROR"),
    ("ERROR Too many open connections\r\n", "begin; end error: Too many open connections"),
    ("CLIENT_ERROR bad data chunk\r\n", "begin; end client_error: bad data chunk"),
    (
        "SERVER_ERROR out of memory storing object\r\n",
        "begin; end server_error: out of memory storing object",
    ),
    ("SERVER_ERROR\r\n", "begin; end server_error: SERVER_ERROR"),
    ("SERVER_ERROR \r\n", "begin; end server_error: SERVER_ERROR"),
    ("VALUE k 0 1\r\nx\r\nSERVER_ERROR out\r\n", "begin; key k 0 1 0; value x; end server_error: out"),
    ("STAT pid 1\r\nSTAT uptime 20\r\nEND\r\n", "begin; control STAT pid 1; control STAT uptime 20; end ok"),
    ("STAT \r\nEND\r\n", "begin; control STAT ; end ok"),
    ("VERSION 1.6.18\r\n", "begin; control VERSION 1.6.18; end ok"),
];

/// Bytes that are no reply, and what is seen of them.
const MALFORMED: &[(&str, &str)] = &[
    ("x", "begin; bad UnknownReply"),
    ("\r\n", "begin; bad UnknownReply"),
    ("stored\r\n", "begin; bad UnknownReply"),
    ("STORED\n", "begin; bad UnknownReply"),
    ("STORED \r\n", "begin; bad UnknownReply"),
    ("STORES", "begin; bad UnknownReply"),
    ("END\n", "begin; bad UnknownReply"),
    ("ERRORS\r\n", "begin; bad UnknownReply"),
    ("ERROR\n", "begin; bad UnknownReply"),
    ("ERROR \n", "begin; bad UnknownReply"),
    ("SERVER_ERROR text\n", "begin; bad UnknownReply"),
    ("STAT \n", "begin; bad UnknownReply"),
    ("STAT pid 1\n", "begin; bad UnknownReply"),
    ("VERSION 1\n", "begin; bad UnknownReply"),
    ("STAT pid 1\r\nVALUE k 0 1\r\n", "begin; control STAT pid 1; bad UnknownReply"),
    ("VALUE k 0 1\r\nx\r\nSTORED\r\n", "begin; key k 0 1 0; value x; bad UnknownReply"),
    // With a unique and without.
    ("VALUE k 0 1 5\r\nx\r\nVALUE l 0 1\r\n", "begin; key k 0 1 5; value x; bad UnknownReply"),
    ("VALUE k 0 1\r\nx\r\nVALUE l 0 1 5\r\n", "begin; key k 0 1 0; value x; bad UnknownReply"),
    ("VALUE k 0 1\r\nx\r\n5\r\n", "begin; key k 0 1 0; value x; bad UnknownReply"),
    ("VALUE k 0 1\r\nx\r\nSTAT pid 1\r\n", "begin; key k 0 1 0; value x; bad UnknownReply"),
    ("VALUE  0 1\r\n", "begin; bad UnknownReply"),
    ("VALUE k\r\n", "begin; bad UnknownReply"),
    ("VALUE k \r\n", "begin; bad BadNumber"),
    ("VALUE k 0\r\n", "begin; bad BadNumber"),
    ("VALUE k 0 \r\n", "begin; bad BadNumber"),
    ("VALUE k 0 1\n", "begin; bad BadNumber"),
    ("VALUE k 0 1 \r\n", "begin; bad BadNumber"),
    ("VALUE k 0 1 2 3\r\n", "begin; bad BadNumber"),
    ("VALUE k  0 1\r\n", "begin; bad BadNumber"),
    ("VALUE k -1 1\r\n", "begin; bad BadNumber"),
    ("VALUE k 4294967296 1\r\n", "begin; bad BadNumber"),
    ("VALUE k 0 4294967296\r\n", "begin; bad BadNumber"),
    ("VALUE k 0 1 18446744073709551616\r\n", "begin; bad BadNumber"),
    ("18446744073709551616\r\n", "begin; bad BadNumber"),
    ("99999999999999999999\r\n", "begin; bad BadNumber"),
    ("VALUE k 0 99999999999999999999\r\n", "begin; bad BadNumber"),
    ("5x\r\n", "begin; bad BadNumber"),
    ("5\n", "begin; bad BadNumber"),
    ("5 5\r\n", "begin; bad BadNumber"),
    ("VALUE k 0 1\r\nxy\r\nEND\r\n", "begin; key k 0 1 0; value x; bad ValueNotTerminated"),
    ("VALUE k 0 1\r\nx\nEND\r\n", "begin; key k 0 1 0; value x; bad ValueNotTerminated"),
    ("VALUE k 0 0\r\nx\r\nEND\r\n", "begin; key k 0 0 0; bad ValueNotTerminated"),
    ("END\r\nSTORED\nEND\r\n", "begin; end not_found; begin; bad UnknownReply"),
];

#[test]
fn replies_follow_the_protocol_document() {
    for (stream, expected) in REPLIES {
        assert_eq!(decode(stream.as_bytes()).join("; "), *expected, "{stream:?}");
        check_cuts(stream.as_bytes());
    }
}

#[test]
fn malformed_bytes_are_reported_once() {
    for (stream, expected) in MALFORMED {
        // What follows is never looked at.
        let stream = format!("{stream}END\r\nSTORED\r\n");
        assert_eq!(decode(stream.as_bytes()).join("; "), *expected, "{stream:?}");
        check_cuts(stream.as_bytes());
    }
}

#[test]
fn a_pipeline_is_its_replies_in_order() {
    let stream: String = REPLIES.iter().map(|(bytes, _)| *bytes).collect();
    let expected: Vec<&str> = REPLIES.iter().map(|(_, events)| *events).collect();
    assert_eq!(decode(stream.as_bytes()).join("; "), expected.join("; "));
    check_cuts(stream.as_bytes());
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
fn a_reply_begins_with_its_first_byte() {
    for (stream, _) in REPLIES {
        assert_eq!(decode(&stream.as_bytes()[..1]), ["begin"], "{stream:?}");
    }
}

#[test]
fn lines_end_within_the_unit() {
    // A line of any length: what fills it (leading zeros too, which memcached never sends) and what is around.
    let forms = [
        ("SERVER_ERROR ", 'a', "\r\n"),
        ("ERROR ", 'a', "\r\n"),
        ("STAT ", 'a', "\r\n"),
        ("VERSION ", 'a', "\r\n"),
        ("VALUE ", 'a', " 0 3\r\n"),
        ("VALUE k ", '0', " 3\r\n"),
        ("VALUE k 0 3 ", '0', "\r\n"),
        ("", '0', "\r\n"),
        ("9", ' ', "\r\n"),
    ];
    for (front, filler, back) in forms {
        for (len, accepted) in
            [(LINE_BYTES_MAX, true), (LINE_BYTES_MAX + 1, false), (3 * LINE_BYTES_MAX, false)]
        {
            let middle = filler.to_string().repeat(len - front.len() - back.len());
            let line = format!("{front}{middle}{back}");
            let seen = decode(line.as_bytes());
            assert!(seen.len() > 1, "{front} {len}");
            assert_eq!(
                seen.iter().all(|said| said != "bad LineTooLong"),
                accepted,
                "{front} {len}: {seen:?}"
            );
            transcript::check_cuts_at_ends(note, &TextCodec::new(), line.as_bytes());
            // The same line when it is looked at together with the line end of a value.
            let behind = format!("VALUE k 0 1\r\nx\r\n{line}");
            transcript::check_cuts_at_ends(note, &TextCodec::new(), behind.as_bytes());
        }
    }
}

#[test]
fn a_large_value_passes_through_in_the_pieces_that_arrive() {
    assert_eq!(
        transcript::check_large_value(TextCodec::new(), b"VALUE k 0 5000000\r\n", b"\r\nEND\r\n", 31),
        1
    );
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
        transcript::check_found(
            TextCodec::new,
            lens,
            reply,
            &[b"", b"V", b"END\r\n"],
            (key.as_bytes(), 0, 0),
        );
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
        transcript::check_damaged(note, &TextCodec::new(), &whole, usize::MAX, bytes.into_iter(), &behind);
        check_cuts(&[&whole[..], &whole].concat());
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
    transcript::check_pairs(note, &TextCodec::new(), &replies);
}

/// A reply before it has bytes.
#[derive(Clone, Debug)]
enum Reply {
    /// With uniques or without.
    Values(Vec<(String, u32, Vec<u8>, u64)>, bool),
    Number(u64, usize),
    Statistics(Vec<String>),
    Other(usize),
}

fn replies() -> impl Strategy<Value = Reply> {
    let value = ("[!-~]{1,250}", any::<u32>(), prop::collection::vec(any::<u8>(), 0..300), any::<u64>());
    prop_oneof![
        (prop::collection::vec(value, 0..5), any::<bool>())
            .prop_map(|(values, has_uniques)| Reply::Values(values, has_uniques)),
        (any::<u64>(), 0usize..4).prop_map(|(number, padding)| Reply::Number(number, padding)),
        prop::collection::vec("[a-z_]{1,20} [0-9]{1,10}", 1..5).prop_map(Reply::Statistics),
        (0..REPLIES.len()).prop_map(Reply::Other),
    ]
}

/// Appends the bytes of a reply as a server writes them, and the phrases of its events.
fn write_reply(reply: &Reply, bytes: &mut Vec<u8>, phrases: &mut Vec<String>) {
    if let Reply::Other(index) = reply {
        bytes.extend_from_slice(REPLIES[*index].0.as_bytes());
        phrases.extend(REPLIES[*index].1.split("; ").map(str::to_owned));
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
        Reply::Other(_) => unreachable!("handled above"),
    }
}

/// Text that is nearly a reply: the pieces that replies are made of, in any order, with some noise.
fn near_replies() -> impl Strategy<Value = Vec<u8>> {
    let mut pieces: Vec<Vec<u8>> = WORDS.iter().map(|(word, _)| word.to_vec()).collect();
    for piece in [
        "\r\n",
        "\r",
        "\n",
        " ",
        "0",
        "5",
        "18446744073709551616",
        "k ",
        "VALUE k 0 3\r\n",
        "abc\r\n",
        "E",
        "VALUE k 0 3\r\nabc\r\nEND\r\n",
    ] {
        pieces.push(piece.as_bytes().to_vec());
    }
    pieces.push(vec![b'a'; 2000]);
    let piece = prop_oneof![
        9 => prop::sample::select(pieces),
        1 => prop::collection::vec(any::<u8>(), 0..10),
    ];
    prop::collection::vec(piece, 0..12).prop_map(|pieces| pieces.concat())
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
        prop_assert_eq!(decode_cut(&bytes, &positions(&cuts, &bytes), usize::MAX), expected);
    }

    #[test]
    fn garbage_never_panics_and_cuts_never_matter(
        stream in prop_oneof![near_replies(), prop::collection::vec(any::<u8>(), 0..100)],
        cuts in prop::collection::vec(any::<prop::sample::Index>(), 0..20),
    ) {
        let expected = decode(&stream);
        prop_assert_eq!(&decode_cut(&stream, &positions(&cuts, &stream), usize::MAX), &expected);
        prop_assert_eq!(&decode_cut(&stream, &[], TextCodec::UNIT_BYTES_MAX), &expected);
        prop_assert_eq!(&decode_general_path(&stream), &expected);
    }
}
