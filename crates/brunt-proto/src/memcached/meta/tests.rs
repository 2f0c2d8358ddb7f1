//! The meta codec against a real server and the protocol document: golden bytes both ways, then properties over cuts
//! and garbage.

use super::*;
use crate::memcached::tests::transcript::{
    self, ODD, TOKEN, check_cuts, check_cuts_at_ends, check_exchanges, decode, decode_cut, encode, note,
    request,
};
use crate::{Keys, Value};
use proptest::prelude::*;

/// The longest key that is sent in base64: memcached's limit of 250 bytes is for what is sent.
const ENCODED_KEY_BYTES_MAX: usize = 250 / 4 * 3;

/// Is this the key that was requested, in the way a server repeats it?
fn is_key(requested: &[u8], replied: &[u8]) -> bool {
    if is_word(requested) {
        return requested == replied;
    }
    replied == STANDARD.encode(requested).as_bytes()
}

#[test]
fn golden_exchanges_with_memcached() {
    check_exchanges(&MetaCodec::new(), include_str!("golden/memcached-1.6.18.txt"));
}

// --- Requests ---

#[test]
fn reply_and_command_counts() {
    for request in transcript::requests() {
        let (bytes, encoded) = encode(MetaCodec::new(), &request);
        let keys = request.keys.ends.len() as u32;
        let is_batch = request.kind == OpKind::Mget || keys > 1;
        let replied = !request.noreply || request.kind.is_retrieval() || request.kind == OpKind::Touch;
        let wire_requests = if is_batch { keys + 1 } else { 1 };
        assert_eq!(encoded, Encoded { wire_requests, replied }, "{}", bytes.escape_ascii());
    }
}

#[test]
fn keys_and_numbers_at_their_longest_fit_the_bound() {
    // 20 digits of length; a value that long is only referenced, so it needs no memory.
    let value = Value { head: &[], block: &[], offset: 0, len: 10_000_000_000_000_000_000 };
    let odd = [vec![b' '; 250], vec![b'\n'; 1]].concat();
    let keys = Keys { bytes: &odd, ends: &[250, 251] };
    let one = Keys { bytes: &odd[..250], ends: &[250] };
    for kind in OpKind::ALL.into_iter().filter(|kind| *kind != OpKind::Raw) {
        let keys = if kind.is_retrieval() { keys } else { one };
        let value = if kind.carries_value() { value } else { Value::NONE };
        let longest = Request {
            flags: u32::MAX,
            ttl_s: u32::MAX,
            operand: u64::MAX,
            noreply: true,
            ..request(kind, keys, value)
        };
        let mut codec = MetaCodec::new();
        let bound = codec.encoded_len_max(keys.ends.len(), keys.bytes.len(), 0);
        codec.encode(&longest, &mut Out::with_room(bound));
    }
}

#[test]
fn tokens_are_read_back() {
    for token in (0..32).flat_map(|bit| [1 << bit, (1 << bit) - 1, !(1 << bit)]).chain([TOKEN, 0x0123_4567]) {
        let letters = token_letters(token);
        let digits: String = letters.iter().map(|letter| format!("{:x}", letter - b'@')).collect();
        assert_eq!(digits, format!("{token:08x}"));
        assert_eq!(token_of(letters), Some(token));
        for at in 0..TOKEN_BYTES {
            for wrong in (0..=u8::MAX).filter(|byte| !(b'@'..=b'O').contains(byte)) {
                let mut letters = letters;
                letters[at] = wrong;
                assert_eq!(token_of(letters), None);
            }
        }
    }
}

#[test]
fn binary_keys_are_sent_in_base64() {
    assert!(is_key(b"foo", b"foo"), "words are sent as they are");
    assert!(!is_key(b"foo", b"Zm9v"));
    let odd = ODD.first();
    assert!(is_key(odd, b"YSAA/w=="));
    for told in [&b"YSAA/w="[..], b"YSAA/w==A", b"YSAA/x==", b"", odd] {
        assert!(!is_key(odd, told), "{}", told.escape_ascii());
    }
}

// --- Replies ---

fn codec() -> MetaCodec {
    MetaCodec::new()
}

fn decode_general_path(stream: &[u8]) -> Vec<String> {
    transcript::decode_general_path(transcript::note, codec(), stream)
}

/// Well-formed replies, and the events that each is. `@@@@@@@A` is the token 1.
const REPLIES: &[(&str, &str)] = &[
    ("VA 3 f7 Og@@@@@@@A\r\nabc\r\n", "begin; key '' 7 3 0 @1; value abc; end value @1"),
    ("VA 0 f0 Og@@@@@@@A\r\n\r\n", "begin; key '' 0 0 0 @1; end value @1"),
    // What is in a value is no reply.
    ("VA 6 f0 Og@@@@@@@A\r\n\r\nMN\r\n\r\n", "begin; key '' 0 6 0 @1; value \\r\\nMN\\r\\n; end value @1"),
    // Flags in any order, known or not, and none at all.
    (
        "VA 1 Og@@@@@@@A t-1 kkey s1 c18446744073709551615 f4294967295 h1 l0\r\nx\r\n",
        "begin; key 'key' 4294967295 1 18446744073709551615 @1; value x; end value @1",
    ),
    ("VA 1\r\nx\r\n", "begin; key '' 0 1 0 @-; value x; end value @-"),
    ("VA 1 \r\nx\r\n", "begin; key '' 0 1 0 @-; value x; end value @-"),
    ("VA 1 kYSAA/w== b f0 Og@@@@@@@A\r\nx\r\n", "begin; key 'YSAA/w==' 0 1 0 @1; value x; end value @1"),
    // Renewal, as memcached 1.6.18 says it after `md I` and to `mg N` and `mg R`.
    ("VA 3 f0 Og@@@@@@@A X W\r\nabc\r\n", "begin; key '' 0 3 0 @1 won stale; value abc; end value @1"),
    ("VA 3 f0 Og@@@@@@@A Z X\r\nabc\r\n", "begin; key '' 0 3 0 @1 stale taken; value abc; end value @1"),
    ("VA 0 f0 Og@@@@@@@A W\r\n\r\n", "begin; key '' 0 0 0 @1 won; end value @1"),
    ("VA 3 t20 f0 Og@@@@@@@A Z\r\nabc\r\n", "begin; key '' 0 3 0 @1 taken; value abc; end value @1"),
    ("EN Og@@@@@@@A\r\n", "begin; end not_found @1"),
    ("EN\r\n", "begin; end not_found @-"),
    ("HD Os@@@@@@@A\r\n", "begin; end stored @1"),
    ("HD Od@@@@@@@A kkey c5\r\n", "begin; end deleted @1"),
    ("HD Ot@@@@@@@A\r\n", "begin; end touched @1"),
    ("HD\r\n", "begin; end ok @-"),
    ("NF Od@@@@@@@A\r\n", "begin; end not_found @1"),
    ("NS Os@@@@@@@A\r\n", "begin; end not_stored @1"),
    ("EX Os@@@@@@@A\r\n", "begin; end exists @1"),
    ("VA 1 On@@@@@@@A\r\n0\r\n", "begin; end number 0 @1"),
    ("VA 20 On@@@@@@@A\r\n18446744073709551615\r\n", "begin; end number 18446744073709551615 @1"),
    // Multi-gets: some, all and none of the keys.
    (
        "VA 1 ka f0 Om@@@@@@@A\r\nx\r\nVA 0 kb f1 Oq@@@@@@@A\r\n\r\nMN\r\n",
        "begin; key 'a' 0 1 0 @1; value x; key 'b' 1 0 0 @1; end value @1",
    ),
    (
        "EN ka Om@@@@@@@A\r\nVA 1 kb f1 Oq@@@@@@@A W\r\ny\r\nMN\r\n",
        "begin; miss 'a' @1; key 'b' 1 1 0 @1 won; value y; end value @1",
    ),
    ("EN ka Om@@@@@@@A\r\nMN\r\n", "begin; miss 'a' @1; end not_found @1"),
    ("EN ka Om@@@@@@@A\r\nEN kb Oq@@@@@@@A\r\nMN\r\n", "begin; miss 'a' @1; miss 'b' @1; end not_found @1"),
    // A multi-get ends with its first error; what follows up to its end answers nothing.
    (
        "EN ka Om@@@@@@@A\r\nSERVER_ERROR out\r\nVA 1 kb f1 Oq@@@@@@@A\r\ny\r\nERROR\r\nMN\r\nHD Os@@@@@@@B\r\n",
        "begin; miss 'a' @1; end server_error @1: out; push; push over; begin; end stored @2",
    ),
    (
        "CLIENT_ERROR bad\r\nVA 1 kb f1 Oq@@@@@@@A\r\ny\r\nVA 0 kc f1 Oq@@@@@@@A\r\n\r\nMN\r\n",
        "begin; end client_error @-: bad; begin; push; push over",
    ),
    ("CLIENT_ERROR bad\r\nMN\r\n", "begin; end client_error @-: bad; begin; push over"),
    ("ERROR\r\n", "begin; end error @-: ERROR"),
    ("ERROR Too many open connections\r\n", "begin; end error @-: Too many open connections"),
    ("CLIENT_ERROR bad command line format\r\n", "begin; end client_error @-: bad command line format"),
    ("SERVER_ERROR object too large for cache\r\n", "begin; end server_error @-: object too large for cache"),
    ("SERVER_ERROR\r\n", "begin; end server_error @-: SERVER_ERROR"),
];

/// Bytes that are no reply, and what is seen of them.
const MALFORMED: &[(&str, &str)] = &[
    ("x", "begin; bad UnknownReply"),
    ("\r\n", "begin; bad UnknownReply"),
    ("END\r\n", "begin; bad UnknownReply"),
    ("VALUE k 0 1\r\n", "begin; bad UnknownReply"),
    ("HDX\r\n", "begin; bad UnknownReply"),
    ("HD\n", "begin; bad UnknownReply"),
    ("HD Os@@@@@@@A\n", "begin; bad UnknownReply"),
    ("HD\rOs@@@@@@@A\r\n", "begin; bad UnknownReply"),
    ("ERRORS\r\n", "begin; bad UnknownReply"),
    ("ERROR\n", "begin; bad UnknownReply"),
    ("SERVER_ERROR text\n", "begin; bad UnknownReply"),
    ("ME\n", "begin; bad UnknownReply"),
    // Opaques that were never sent.
    ("HD O\r\n", "begin; bad UnknownReply"),
    ("HD O1\r\n", "begin; bad UnknownReply"),
    ("HD Os@@@@@@A\r\n", "begin; bad UnknownReply"),
    ("HD Os@@@@@@@@A\r\n", "begin; bad UnknownReply"),
    ("HD Ox@@@@@@@A\r\n", "begin; bad UnknownReply"),
    ("HD Os@@@@@@@a\r\n", "begin; bad UnknownReply"),
    ("VA 3 f7 Og@@@@@@@1\r\nabc\r\n", "begin; bad UnknownReply"),
    ("VA\r\n", "begin; bad BadNumber"),
    ("VA \r\n", "begin; bad BadNumber"),
    ("VA x\r\n", "begin; bad BadNumber"),
    ("VA -1\r\n", "begin; bad BadNumber"),
    ("VA 1x\r\n", "begin; bad BadNumber"),
    ("VA 4294967296\r\n", "begin; bad BadNumber"),
    ("VA 99999999999999999999\r\n", "begin; bad BadNumber"),
    ("VA 3 f\r\n", "begin; bad BadNumber"),
    ("VA 3 f-1\r\n", "begin; bad BadNumber"),
    ("VA 3 f4294967296\r\n", "begin; bad BadNumber"),
    ("VA 3 c18446744073709551616\r\n", "begin; bad BadNumber"),
    ("VA 0 On@@@@@@@A\r\n\r\n", "begin; bad BadNumber"),
    ("VA 2 On@@@@@@@A\r\n5x\r\n", "begin; bad BadNumber"),
    ("VA 20 On@@@@@@@A\r\n18446744073709551616\r\n", "begin; bad BadNumber"),
    ("VA 21 On@@@@@@@A\r\n", "begin; bad BadNumber"),
    ("VA 1 On@@@@@@@A\r\n12\r\n", "begin; bad ValueNotTerminated"),
    ("VA 1 Og@@@@@@@A\r\nxy\r\n", "begin; key '' 0 1 0 @1; value x; bad ValueNotTerminated"),
    ("VA 1 f0 Og@@@@@@@A\r\nx\nMN\r\n", "begin; key '' 0 1 0 @1; value x; bad ValueNotTerminated"),
    ("VA 0 f0 Og@@@@@@@A\r\nx\r\n", "begin; key '' 0 0 0 @1; bad ValueNotTerminated"),
    ("VA 1 ka Om@@@@@@@A\r\nxyMN\r\n", "begin; key 'a' 0 1 0 @1; value x; bad ValueNotTerminated"),
    // Replies that cannot be within a multi-get, or not in this one.
    ("EN ka Om@@@@@@@A\r\nHD Os@@@@@@@B\r\n", "begin; miss 'a' @1; bad UnknownReply"),
    ("EN ka Om@@@@@@@A\r\nNF Os@@@@@@@B\r\n", "begin; miss 'a' @1; bad UnknownReply"),
    ("ME key exp=-1\r\n", "begin; bad UnknownReply"),
    ("EN ka Om@@@@@@@A\r\nVA 1 Og@@@@@@@A\r\n", "begin; miss 'a' @1; bad UnknownReply"),
    ("EN ka Om@@@@@@@A\r\nVA 1 On@@@@@@@A\r\n", "begin; miss 'a' @1; bad UnknownReply"),
    ("EN ka Om@@@@@@@A\r\nVA 1 Oq@@@@@@@B\r\n", "begin; miss 'a' @1; bad UnknownReply"),
    ("EN ka Om@@@@@@@A\r\nEN Oq@@@@@@@B\r\n", "begin; miss 'a' @1; bad UnknownReply"),
    ("EN ka Om@@@@@@@A\r\nEN Om@@@@@@@A\r\n", "begin; miss 'a' @1; bad UnknownReply"),
    ("EN Oq@@@@@@@A\r\n", "begin; bad UnknownReply"),
    // What a multi-get has left without one that failed.
    ("MN\r\n", "begin; bad OutOfStep"),
    ("VA 1 kb f1 Oq@@@@@@@A\r\ny\r\n", "begin; bad OutOfStep"),
    ("ERROR\r\nMN\r\nMN\r\n", "begin; end error @-: ERROR; begin; push over; begin; bad OutOfStep"),
    ("ERROR\r\nVA 0 Oq@@@@@@@A\r\n\r\nHD\r\n", "begin; end error @-: ERROR; begin; push; bad UnknownReply"),
];

#[test]
fn replies_follow_the_protocol_document() {
    for (stream, expected) in REPLIES {
        assert_eq!(decode(codec(), stream.as_bytes()).join("; "), *expected, "{stream:?}");
        assert_eq!(decode_general_path(stream.as_bytes()).join("; "), *expected, "{stream:?}");
        assert_eq!(decode(codec(), &stream.as_bytes()[..1]), ["begin"], "{stream:?}");
        check_cuts(&codec(), stream.as_bytes());
    }
    let stream: String = REPLIES.iter().map(|(bytes, _)| *bytes).collect();
    let expected: Vec<&str> = REPLIES.iter().map(|(_, events)| *events).collect();
    assert_eq!(decode(codec(), stream.as_bytes()).join("; "), expected.join("; "));
    check_cuts(&codec(), stream.as_bytes());
}

#[test]
fn malformed_bytes_are_reported_once() {
    for (stream, expected) in MALFORMED {
        // What follows is never looked at.
        let stream = format!("{stream}HD\r\nMN\r\n");
        assert_eq!(decode(codec(), stream.as_bytes()).join("; "), *expected, "{stream:?}");
        check_cuts(&codec(), stream.as_bytes());
    }
}

#[test]
fn lines_end_within_the_unit() {
    // A line of any length: what fills it (leading zeros too, which memcached never sends) and what is around.
    let forms = [
        ("SERVER_ERROR ", 'a', "\r\n"),
        ("ERROR ", 'a', "\r\n"),
        ("HD ", ' ', "\r\n"),
        ("EN k", 'a', "\r\n"),
        ("VA ", '0', "3\r\n"),
        ("VA 3 k", 'a', "\r\n"),
        ("VA 20 x", 'a', " On@@@@@@@A\r\n00000000000000000001\r\n"),
    ];
    for (front, filler, back) in forms {
        let behind = back.len() - back.find('\n').map_or(0, |at| at + 1);
        for (len, accepted) in
            [(LINE_BYTES_MAX, true), (LINE_BYTES_MAX + 1, false), (3 * LINE_BYTES_MAX, false)]
        {
            let middle = filler.to_string().repeat(len + behind - front.len() - back.len());
            let line = format!("{front}{middle}{back}");
            let seen = decode(codec(), line.as_bytes());
            assert!(seen.len() > 1, "{front} {len}");
            assert_eq!(
                seen.iter().all(|said| said != "bad LineTooLong"),
                accepted,
                "{front} {len}: {seen:?}"
            );
            check_cuts_at_ends(note, &codec(), line.as_bytes());
            // The same line when it is looked at together with the line end of a value.
            check_cuts_at_ends(note, &codec(), format!("VA 1 ka f0 Om@@@@@@@A\r\nx\r\n{line}").as_bytes());
        }
    }
}

/// The reply to a get of one key.
fn one_value(flags: &str, token: u32, value: &[u8]) -> Vec<u8> {
    let letters = token_letters(token);
    let line = [format!("VA {} f{flags} Og", value.len()).as_bytes(), &letters, b"\r\n"].concat();
    [&line, value, b"\r\n"].concat()
}

#[test]
fn a_whole_reply_of_one_value_is_one_event() {
    let lens = (0..70).chain([99, 100, 999, 1000, 9999, 10_000, 65_536, 999_999, 1_000_000, 1_048_576]);
    let reply = |value: &[u8]| one_value("0", TOKEN, value);
    transcript::check_found(codec, lens, reply, &[b"", b"V", b"MN\r\n"], (b"", 0, TOKEN));
}

#[test]
fn damaged_values_decode_alike_on_both_paths() {
    // Every byte of it replaced by each of those that mean something; with more behind it or not.
    for (flags, token, value) in [("0", 1, &b"abc"[..]), ("7", TOKEN, b"\r\nMN\r\n"), ("12", 0, b"")] {
        let whole = one_value(flags, token, value);
        let bytes = *b"\r\n 019VAfgnmqO@P\0\x1f\x7f\x80\xff";
        let behind = [&b""[..], &whole, b"\r\nMN\r\nMN\r\n"];
        transcript::check_damaged(note, &codec(), &whole, usize::MAX, bytes.into_iter(), &behind);
    }
}

#[test]
fn the_fast_key_line_matches_the_general_parser() {
    let mut read = 0;
    for whole in
        ["VA 3 kkey f7 Om@@@@@@@A\r\nabc\r\n", "VA 0 k f0 Oq@@@@@@@A\r\n", "VA 12 kk f12 On@@@@@@@A\r\n"]
    {
        for at in 0..whole.len() {
            for byte in *b"\r\n 019VAfkgnmqcWXZO@P\0\x1f\x7f\x80\xff" {
                let mut line = whole.as_bytes().to_vec();
                line[at] = byte;
                let Some(item) = Item::last_header(&line) else { continue };
                let (body, used) = rest_of_line(&line, CODE_LEN).expect("a line");
                let (bytes, at) = decimal_u32(body, VALUE.len()).expect("a length");
                assert_eq!(body[at], b' ');
                let reply_flags = ReplyFlags::of(&line[..used], at + 1).expect("flags");
                assert_eq!(item, Item { line_len: used, bytes, reply_flags }, "{}", line.escape_ascii());
                read += 1;
            }
        }
        assert!(Item::last_header(whole.as_bytes()).is_some());
        for cut in 0..whole.find('\n').map_or(0, |feed| feed + 1) {
            assert_eq!(Item::last_header(&whole.as_bytes()[..cut]), None);
        }
    }
    assert!(read > 100, "{read}");
}

#[test]
fn header_reuse_matches_the_general_parser() {
    let replies = [
        one_value("0", 1, &[b'x'; 200]),
        one_value("0", 2, &[b'y'; 200]),
        one_value("1", 1, &[b'x'; 200]),
        one_value("10", 1, &[b'x'; 200]),
        one_value("0", 1, &[b'x'; 20]),
        one_value("0", 1, &[b'x'; 2000]),
        one_value("0", 1, b""),
        one_value("4294967295", 1, b"x"),
        b"VA 200 f0 Om@@@@@@@A\r\n".to_vec(),
        b"VA 200 f0 On@@@@@@@A\r\n".to_vec(),
        b"VA 200 f0 Og@@@@@@@A W\r\n".to_vec(),
        b"VA 200 f0 Og@@@@@@@A\r\n".to_vec(),
        vec![0; 300],
    ];
    transcript::check_pairs(note, &codec(), &replies);
}

#[test]
fn a_large_value_passes_through_in_the_pieces_that_arrive() {
    let front = [&b"VA 5000000 f0 Og"[..], &token_letters(1), b"\r\n"].concat();
    assert_eq!(transcript::check_large_value(codec(), &front, b"\r\n", 31), 1);
}

/// Text that is nearly a reply: the pieces that replies are made of, in any order, with some noise.
fn near_replies() -> impl Strategy<Value = Vec<u8>> {
    let mut pieces: Vec<Vec<u8>> = REPLIES.iter().map(|(reply, _)| reply.as_bytes().to_vec()).collect();
    pieces.extend(b"HDVAENNFNSEXMNME".chunks(CODE_LEN).map(<[u8]>::to_vec));
    for piece in
        ["\r\n", "\r", "\n", " ", "0", "5", " Og@@@@@@@A", " Oq@@@@@@@A", " f0", "VA 3 ", "abc\r\n", "MN\r\n"]
    {
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
    fn garbage_never_panics_and_cuts_never_matter(
        stream in prop_oneof![near_replies(), prop::collection::vec(any::<u8>(), 0..100)],
        cuts in prop::collection::vec(any::<prop::sample::Index>(), 0..20),
    ) {
        let mut positions: Vec<usize> = cuts.iter().map(|cut| cut.index(stream.len() + 1)).collect();
        positions.sort_unstable();
        let expected = decode_general_path(&stream);
        prop_assert_eq!(&decode(codec(), &stream), &expected);
        prop_assert_eq!(&decode_cut(codec(), &stream, &positions, usize::MAX), &expected);
        prop_assert_eq!(&decode_cut(codec(), &stream, &[], MetaCodec::UNIT_BYTES_MAX), &expected);
    }

    #[test]
    fn requests_parse_back(
        kind in prop::sample::select(&OpKind::ALL[..OpKind::COUNT - 1]),
        names in prop::collection::vec(prop::collection::vec(any::<u8>(), 1..=ENCODED_KEY_BYTES_MAX), 1..20),
        (flags, ttl_s, operand, noreply) in (any::<u32>(), any::<u32>(), any::<u64>(), any::<bool>()),
        (offset, len) in (0usize..100, prop_oneof![0usize..300, 4000usize..5000]),
        token in 0..NO_TOKEN,
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
        let value = if kind.carries_value() { Value { head: b"<>", block: &block, offset, len } } else { Value::NONE };
        let keys = Keys { bytes: &bytes, ends: &ends };
        let request = Request { flags, ttl_s, operand, noreply, token, ..request(kind, keys, value) };
        let (bytes, encoded) = encode(codec(), &request);

        let mut rest = &bytes[..];
        for (index, name) in names.iter().enumerate() {
            let end = rest.windows(2).position(|pair| pair == b"\r\n").expect("a line end");
            let words: Vec<&[u8]> = rest[..end].split(|byte| *byte == b' ').collect();
            rest = &rest[end + 2..];
            prop_assert!(is_key(name, words[1]) && words[1].len() <= 250);
            prop_assert_eq!(words.contains(&&b"b"[..]), name.iter().any(|byte| *byte <= b' '));
            let flag = |name: u8| words[2..].iter().find(|word| word[0] == name).map(|word| &word[1..]);
            let text = |number: u64| Some(number.to_string().into_bytes());
            let (asked, told) = opaque(flag(b'O').expect("an opaque")).expect("ours");
            prop_assert_eq!(told, token);
            let is_batch = names.len() > 1 || kind == OpKind::Mget;
            prop_assert_eq!(asked == OpaqueTag::Further, index > 0);
            prop_assert_eq!(asked == OpaqueTag::First, is_batch && index == 0);
            prop_assert_eq!(flag(b'q').is_some(), index > 0 || !encoded.replied);
            match kind {
                OpKind::Cas => prop_assert_eq!(flag(b'C').map(<[u8]>::to_vec), text(operand)),
                OpKind::Incr | OpKind::Decr => prop_assert_eq!(flag(b'D').map(<[u8]>::to_vec), text(operand)),
                OpKind::Touch => prop_assert_eq!(flag(b'T').map(<[u8]>::to_vec), text(u64::from(ttl_s))),
                _ => {}
            }
            if kind.carries_value() {
                prop_assert_eq!(words[2].to_vec(), (2 + len).to_string().into_bytes());
                prop_assert_eq!(rest, &[b"<>", &block[offset..offset + len], b"\r\n"].concat()[..]);
            }
        }
        if names.len() > 1 || kind == OpKind::Mget {
            prop_assert_eq!(rest, b"mn\r\n");
        }
    }
}
