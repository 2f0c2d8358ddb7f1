//! The meta codec against a real server and the protocol document: golden bytes both ways, then properties over cuts
//! and garbage.

use super::*;
use crate::memcached::tests::transcript::{
    self, Dialect, ODD, TOKEN, encode, joined_keys, near_replies, note, request, unescaped,
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
    DIALECT.check_exchanges(include_str!("golden/memcached-1.6.18.txt"));
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

const DIALECT: Dialect<MetaCodec> = Dialect { codec: MetaCodec::new, note };

/// 34 well-formed replies and 52 malformed ones, and the events that each is.
fn tables() -> [Vec<(Vec<u8>, &'static str)>; 2] {
    transcript::replies(include_str!("replies.txt"), unescaped, [34, 52])
}

#[test]
fn replies_follow_the_protocol_document() {
    DIALECT.check_replies(&tables()[0]);
}

#[test]
fn malformed_bytes_are_reported_once() {
    DIALECT.check_malformed(&tables()[1], b"HD\r\nMN\r\n");
}

#[test]
fn lines_end_within_the_unit() {
    // Leading zeros, too, which memcached never sends.
    let forms = [
        ("SERVER_ERROR ", 'a', "\r\n", ""),
        ("ERROR ", 'a', "\r\n", ""),
        ("HD ", ' ', "\r\n", ""),
        ("EN k", 'a', "\r\n", ""),
        ("VA ", '0', "3\r\n", ""),
        ("VA 3 k", 'a', "\r\n", ""),
        ("VA 20 x", 'a', " On@@@@@@@A\r\n", "00000000000000000001\r\n"),
    ];
    DIALECT.check_line_lengths(LINE_BYTES_MAX, &forms, b"VA 1 ka f0 Om@@@@@@@A\r\nx\r\n");
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
    DIALECT.check_found(lens, reply, &[b"", b"V", b"MN\r\n"], (b"", 0, TOKEN));
}

#[test]
fn damaged_values_decode_alike_on_both_paths() {
    // Every byte of it replaced by each of those that mean something; with more behind it or not.
    for (flags, token, value) in [("0", 1, &b"abc"[..]), ("7", TOKEN, b"\r\nMN\r\n"), ("12", 0, b"")] {
        let whole = one_value(flags, token, value);
        let bytes = *b"\r\n 019VAfgnmqO@P\0\x1f\x7f\x80\xff";
        let behind = [&b""[..], &whole, b"\r\nMN\r\nMN\r\n"];
        DIALECT.check_damaged(&whole, usize::MAX, bytes.into_iter(), &behind);
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
    DIALECT.check_pairs(&replies);
}

#[test]
fn a_large_value_passes_through_in_the_pieces_that_arrive() {
    let front = [&b"VA 5000000 f0 Og"[..], &token_letters(1), b"\r\n"].concat();
    DIALECT.check_large_value(&front, b"\r\n", 31);
}

/// The pieces that replies are made of.
fn pieces() -> Vec<Vec<u8>> {
    let tables = tables();
    let replies = tables[0].iter().map(|(reply, _)| reply.as_slice());
    let others =
        "\r\n/\r/\n/ /0/5/ Og@@@@@@@A/ Oq@@@@@@@A/ f0/VA 3 /abc\r\n/MN\r\n".split('/').map(str::as_bytes);
    let codes = b"HDVAENNFNSEXMNME".chunks(CODE_LEN);
    replies.chain(others).chain(codes).map(<[u8]>::to_vec).chain([vec![b'a'; 2000]]).collect()
}

proptest! {
    #[test]
    fn garbage_never_panics_and_cuts_never_matter(
        stream in near_replies(pieces(), 12),
        cuts in prop::collection::vec(any::<prop::sample::Index>(), 0..20),
    ) {
        DIALECT.check_stream(&stream, &cuts);
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
        let (bytes, ends) = joined_keys(names);
        let block: Vec<u8> = (0..5100u32).map(|i| (i % 251) as u8).collect();
        let value = if kind.carries_value() { Value { head: b"<>", block: &block, offset, len } } else { Value::NONE };
        let keys = Keys { bytes: &bytes, ends: &ends };
        let request = Request { flags, ttl_s, operand, noreply, token, ..request(kind, keys, value) };
        let (bytes, encoded) = encode(MetaCodec::new(), &request);

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
