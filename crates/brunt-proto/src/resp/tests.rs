//! The codec against Redis's protocol documents and a server's own bytes: golden bytes both ways, then properties over
//! cuts and garbage.
//!
//! Events are compared as text, one phrase an event, with the pieces of values and of what is passed over joined: whatever
//! the cuts were, equal streams give equal text. In tables `|` stands for a line end, and `¦` for a bar.

use super::*;
use crate::memcached::tests::transcript::{self, Dialect, joined_keys, near_replies, positions, unescaped};
use crate::template::Template;
use crate::{Keys, Value};
use brunt_plan::login::{Login, Password};
use brunt_plan::outcome::Outcome;
use brunt_plan::plan::Protocol;
use proptest::prelude::*;

const TEMPLATES: [&str; 3] = ["HSET {key} f {value}", "HGETALL {key}", "PING"];

fn codec() -> RespCodec {
    let parse = |text| Template::parse(Protocol::Resp2, text).expect("a command");
    RespCodec::new(Templates::new(TEMPLATES.map(parse).to_vec()), None)
}

/// A text with `|` for line ends, and `¦` for the bar itself.
fn wire(text: &str) -> Vec<u8> {
    text.replace('|', "\r\n").replace('¦', "|").into_bytes()
}

// --- Requests ---

fn request<'a>(kind: OpKind, keys: Keys<'a>, value: Value<'a>) -> Request<'a> {
    Request { value, ..Request::of(kind, keys) }
}

/// What the codec writes, in a queue that has room for its own bound and no byte more.
fn encode(codec: &RespCodec, request: &Request<'_>) -> Vec<u8> {
    let (bytes, encoded) = transcript::encode(codec.clone(), request);
    assert_eq!(encoded, Encoded { wire_requests: 1, replied: true });
    bytes
}

fn value(text: &'static str) -> Value<'static> {
    let (head, block) = text.as_bytes().split_at(text.len() / 2);
    Value { head, block, offset: 0, len: block.len() }
}

/// An op: its kind, its keys with commas between them, and what else it has.
fn op(text: &'static str) -> Request<'static> {
    let mut words = text.split(' ');
    let (name, keys) = (words.next().unwrap(), words.next().unwrap());
    let kind = OpKind::ALL.into_iter().find(|kind| kind.name() == name).unwrap();
    let mut ends: Vec<u32> = Vec::new();
    keys.split(',').for_each(|key| ends.push(ends.last().unwrap_or(&0) + key.len() as u32));
    let keys = Keys { bytes: keys.replace(',', "").leak().as_bytes(), ends: ends.leak() };
    let mut op = request(kind, keys, Value::NONE);
    for word in words {
        match word.split_once('=').unwrap() {
            ("value", text) => op.value = value(text),
            ("ttl", seconds) => op.ttl_s = seconds.parse().unwrap(),
            ("by", number) => op.operand = number.parse().unwrap(),
            ("command", place) => op.command = place.parse().unwrap(),
            other => panic!("{other:?}"),
        }
    }
    op
}

/// An op, what it is on the wire, what a server answered (in version 2 / in version 3), and what that comes to.
fn exchanges(table: &str) -> impl Iterator<Item = (Request<'static>, [&'static str; 4])> {
    let table: &'static str = table.replace("\n        =>", " =>").leak();
    let rows = table.lines().map(str::trim).filter(|row| row.contains("=>"));
    rows.map(|row| {
        let fields: Vec<&str> = row.split("=>").map(str::trim).collect();
        let [text, bytes, answer, outcome] = fields[..] else { panic!("{row}") };
        let (two, three) = answer.split_once(" / ").unwrap_or((answer, answer));
        (op(text), [bytes, two, three, outcome])
    })
}

/// What an empty redis-server 7.0.15 answered to just these bytes, one behind the other.
const EXCHANGES: &str = "
    get key => *2|$3|GET|$3|key| => $-1| / _| => Miss NotFound
    set key value=head => *3|$3|SET|$3|key|$4|head| => +OK| => Done Stored
    get key => *2|$3|GET|$3|key| => $4|head| => Hit Value
    set key value=HEAD ttl=60 => *5|$3|SET|$3|key|$4|HEAD|$2|EX|$2|60| => +OK| => Done Stored
    add key value=head => *4|$3|SET|$3|key|$4|head|$2|NX| => $-1| / _| => Rejected NotStored
    add n value=41 ttl=4294967295 => *6|$3|SET|$1|n|$2|41|$2|EX|$10|4294967295|$2|NX| => +OK| => Done Stored
    replace key value= => *4|$3|SET|$3|key|$0||$2|XX| => +OK| => Done Stored
    replace nil value=x ttl=7 => *6|$3|SET|$3|nil|$1|x|$2|EX|$1|7|$2|XX| => $-1| / _| => Rejected NotStored
    get key => *2|$3|GET|$3|key| => $0|| => Hit Value
    append key value=tail ttl=9 => *3|$6|APPEND|$3|key|$4|tail| => :4| => Done Stored
    incr n by=1 => *2|$4|INCR|$1|n| => :42| => Done Number
    incr n by=5 => *3|$6|INCRBY|$1|n|$1|5| => :47| => Done Number
    incr n by=0 => *3|$6|INCRBY|$1|n|$1|0| => :47| => Done Number
    decr n by=1 => *2|$4|DECR|$1|n| => :46| => Done Number
    decr n by=100 => *3|$6|DECRBY|$1|n|$3|100| => :-54| => Done Number
    incr key by=1 => *2|$4|INCR|$3|key| => -ERR value is not an integer or out of range| => Error Error
    incr n by=18446744073709551615 => *3|$6|INCRBY|$1|n|$20|18446744073709551615|
        => -ERR value is not an integer or out of range| => Error Error
    mget key,n,kno => *4|$4|MGET|$3|key|$1|n|$3|kno| => *3|$4|tail|$3|-54|$-1| / *3|$4|tail|$3|-54|_| => Hit Value
    mget nil => *2|$4|MGET|$3|nil| => *1|$-1| / *1|_| => Miss NotFound
    touch key => *2|$5|TOUCH|$3|key| => :1| => Done Touched
    touch key ttl=90 => *3|$6|EXPIRE|$3|key|$2|90| => :1| => Done Touched
    touch nil ttl=90 => *3|$6|EXPIRE|$3|nil|$2|90| => :0| => Rejected NotFound
    touch nil => *2|$5|TOUCH|$3|nil| => :0| => Rejected NotFound
    delete n => *2|$3|DEL|$1|n| => :1| => Done Deleted
    delete n => *2|$3|DEL|$1|n| => :0| => Rejected NotFound
    raw h value=fish => *4|$4|HSET|$1|h|$1|f|$4|fish| => :1| => Done Number
    raw h command=2 => *2|$7|HGETALL|$1|h| => *2|$1|f|$4|fish| / %1|$1|f|$4|fish| => Done Value
    raw h command=3 => *1|$4|PING| => +PONG| => Done Ok
    get h => *2|$3|GET|$1|h| => -WRONGTYPE Operation against a key holding the wrong kind of value| => Error ClientError
";

/// What it answered where keys end with the field of a hash.
const HASH_FIELDS: &str = "
    get 000123456789 => *3|$4|HGET|$8|00012345|$4|6789| => $-1| => Miss NotFound
    set 000123456789 value=fish => *4|$4|HSET|$8|00012345|$4|6789|$4|fish| => :1| => Done Stored
    set 000123456789 value= => *4|$4|HSET|$8|00012345|$4|6789|$0|| => :0| => Done Stored
    delete 000123456789 => *3|$4|HDEL|$8|00012345|$4|6789| => :1| => Done Deleted
    // As long as a field and one byte more.
    get 56789 => *2|$3|GET|$5|56789| => $-1| => Miss NotFound
    set 56789 value=x => *3|$3|SET|$5|56789|$1|x| => +OK| => Done Stored
";

/// How a reply ends: the outcome of an op of this kind.
fn outcome_of(mut codec: RespCodec, kind: OpKind, answer: &[u8]) -> String {
    let mut used = 0;
    loop {
        let (step, event) = codec.decode(&answer[used..]);
        used += step;
        let reply = match event.expect("a whole reply") {
            Event::Found(_) => codec.meaning(kind, ReplyKind::Value, RespCodec::FOUND),
            Event::End { reply, form, .. } => codec.meaning(kind, reply, form),
            _ => continue,
        };
        assert_eq!(used, answer.len());
        let Outcome { class, reply } = Outcome::of_reply(kind, reply.expect("the op can have it"));
        return format!("{class:?} {reply:?}");
    }
}

#[test]
fn golden_exchanges_with_redis() {
    for (request, [bytes, answer, answer3, outcome]) in exchanges(EXCHANGES) {
        for request in [request, Request { noreply: true, flags: 7, token: 9, ..request }] {
            let written = encode(&codec(), &request).escape_ascii().to_string();
            assert_eq!(written, wire(bytes).escape_ascii().to_string());
        }
        assert_eq!(outcome_of(codec(), request.kind, &wire(answer)), outcome, "{bytes} {answer}");
        // A map is no list of values.
        let outcome3 =
            if answer3.starts_with('%') { outcome.replace("Value", "Ok") } else { outcome.to_owned() };
        assert_eq!(outcome_of(codec(), request.kind, &wire(answer3)), outcome3, "{bytes} {answer3}");
    }
    let tried = |kind: &OpKind| exchanges(EXCHANGES).any(|(request, _)| request.kind == *kind);
    for kind in OpKind::ALL {
        assert_eq!(tried(&kind), Protocol::Resp2.supports(kind), "{kind}");
    }
}

#[test]
fn keys_may_be_hash_fields() {
    for (request, [bytes, answer, _, outcome]) in exchanges(HASH_FIELDS) {
        let mut codec = codec().with_hash_field(4);
        assert_eq!(
            encode(&codec, &request).escape_ascii().to_string(),
            wire(bytes).escape_ascii().to_string()
        );
        let outcome_of = outcome_of(codec.clone(), request.kind, &wire(answer));
        assert_eq!(outcome_of, outcome, "{bytes} {answer}");
        if request.kind == OpKind::Get {
            let key = request.keys.bytes;
            let mut out = Out::with_room(codec.encoded_len_max(1, key.len(), 0));
            codec.encode_get(key.len(), 0, &mut out, |place| place.copy_from_slice(key));
            assert_eq!(out.contiguous(), Some(&wire(bytes)[..]));
        }
    }
}

#[test]
fn in_place_gets_match_copied_gets() {
    for len in [1, 9, 10, 30, 99, 100, 250] {
        let key: Vec<u8> = (0..len).map(|at| b'a' + at as u8 % 26).collect();
        let mut codec = RespCodec::default();
        let mut out = Out::with_room(codec.encoded_len_max(1, key.len(), 0));
        codec.encode_get(key.len(), 0, &mut out, |place| place.copy_from_slice(&key));
        let expected = encode(&codec, &Request::of(OpKind::Get, Keys { bytes: &key, ends: &[len] }));
        assert_eq!(out.contiguous(), Some(&expected[..]), "{len}");
    }
}

#[test]
fn the_bound_counts_every_field_at_its_longest() {
    let keys = Keys { bytes: b"key", ends: &[3] };
    // A length of 20 digits; values that long are only referenced, so it needs no memory.
    let value = Value { head: &[], block: &[], offset: 0, len: 10_000_000_000_000_000_000 };
    for kind in [OpKind::Add, OpKind::Replace, OpKind::Append] {
        let longest = Request { ttl_s: u32::MAX, ..request(kind, keys, value) };
        let mut codec = RespCodec::default();
        let mut out = Out::with_room(codec.encoded_len_max(1, keys.bytes.len(), 0));
        codec.encode(&longest, &mut out);
        assert!(out.len() - value.len <= codec.encoded_len_max(1, keys.bytes.len(), 0));
    }
    let longest = Request { operand: u64::MAX, ..request(OpKind::Decr, keys, Value::NONE) };
    encode(&RespCodec::default(), &longest);
}

/// A command as a server reads it.
fn read_command(bytes: &[u8]) -> Vec<Vec<u8>> {
    let line = |at: usize| {
        let end = at + bytes[at..].windows(2).position(|pair| pair == b"\r\n").expect("a line end");
        let number =
            std::str::from_utf8(&bytes[at + 1..end]).expect("text").parse::<usize>().expect("a number");
        (number, end + 2)
    };
    let (count, mut at) = line(0);
    let words = (0..count).map(|_| {
        let (len, start) = line(at);
        at = start + len + 2;
        assert_eq!(&bytes[start + len..at], b"\r\n");
        bytes[start..start + len].to_vec()
    });
    let words = words.collect();
    assert_eq!(at, bytes.len());
    words
}

proptest! {
    #[test]
    fn requests_parse_back(
        kind in prop::sample::select(OpKind::ALL.into_iter().filter(|kind| Protocol::Resp2.supports(*kind)).collect::<Vec<_>>()),
        names in prop::collection::vec(prop::collection::vec(any::<u8>(), 1..130), 1..20),
        (ttl_s, operand) in (prop_oneof![Just(0u32), any::<u32>()], prop_oneof![Just(1u64), any::<u64>()]),
        head in prop::collection::vec(any::<u8>(), 0..20),
        (offset, len) in (0usize..100, prop_oneof![0usize..300, 4000usize..5000]),
    ) {
        let names = if kind == OpKind::Mget { &names[..] } else { &names[..1] };
        let (bytes, ends) = joined_keys(names);
        let block: Vec<u8> = (0..5100u32).map(|i| (i % 251) as u8).collect();
        let written = Value { head: &head, block: &block, offset, len };
        let has_value = kind.carries_value() || kind == OpKind::Raw;
        let value = if has_value { written } else { Value::NONE };
        let request = Request { ttl_s, operand, ..request(kind, Keys { bytes: &bytes, ends: &ends }, value) };
        let words = read_command(&encode(&codec(), &request));

        let is_one = operand == 1;
        let verb = match kind {
            OpKind::Set | OpKind::Add | OpKind::Replace => "SET",
            OpKind::Incr => if is_one { "INCR" } else { "INCRBY" },
            OpKind::Decr => if is_one { "DECR" } else { "DECRBY" },
            OpKind::Delete => "DEL",
            OpKind::Touch => if ttl_s == 0 { "TOUCH" } else { "EXPIRE" },
            OpKind::Raw => "HSET",
            _ => kind.name(),
        };
        let mut expected = vec![verb.to_ascii_uppercase().into_bytes()];
        expected.extend(names.iter().cloned());
        expected.extend((kind == OpKind::Raw).then(|| b"f".to_vec()));
        if has_value {
            expected.push([&head[..], &block[offset..offset + len]].concat());
        }
        match kind {
            OpKind::Incr | OpKind::Decr if !is_one => expected.push(operand.to_string().into_bytes()),
            OpKind::Touch if ttl_s != 0 => expected.push(ttl_s.to_string().into_bytes()),
            OpKind::Set | OpKind::Add | OpKind::Replace if ttl_s != 0 => {
                expected.extend([b"EX".to_vec(), ttl_s.to_string().into_bytes()]);
            }
            _ => {}
        }
        expected.extend((kind == OpKind::Add).then(|| b"NX".to_vec()));
        expected.extend((kind == OpKind::Replace).then(|| b"XX".to_vec()));
        prop_assert_eq!(words, expected);
    }
}

// --- Replies ---

/// What an event says, one phrase for each thing said.
fn phrases(event: &Event<'_>) -> Vec<String> {
    let phrase = match event {
        Event::Begin => "begin".to_owned(),
        Event::Key { hit, key: b"", flags: 0, bytes, unique: 0, token: 0, recache: Recache::NONE } => {
            match hit {
                true => format!("key {bytes}"),
                false => {
                    assert_eq!(*bytes, 0);
                    "no key".to_owned()
                }
            }
        }
        Event::Value(piece) => {
            assert!(!piece.is_empty());
            format!("value {}", piece.escape_ascii())
        }
        Event::Found(crate::Found { key: b"", flags: 0, value, token: 0 }) => {
            let form = RespCodec::FOUND;
            let end = Event::End { reply: ReplyKind::Value, form, number: 0, token: 0, text: &[] };
            let all = [Event::Begin, super::key(true, value.len() as u32), Event::Value(value), end];
            return all.iter().filter(|event| **event != Event::Value(&[])).flat_map(phrases).collect();
        }
        Event::End { reply, number, token: 0, text, .. } => {
            assert!(*number == 0 || *reply == ReplyKind::Number);
            match reply {
                ReplyKind::Number => format!("end number {}", *number as i64),
                _ if text.is_empty() => format!("end {}", reply.name()),
                _ => format!("end {}: {}", reply.name(), text.escape_ascii()),
            }
        }
        Event::Control(bytes) => {
            assert!(!bytes.is_empty());
            format!("control {}", bytes.escape_ascii().to_string().replace('|', "¦").replace("\\r\\n", "|"))
        }
        Event::Push { is_over: false } => "push".to_owned(),
        Event::Push { is_over: true } => "push over".to_owned(),
        Event::Bad(malformed) => format!("bad {malformed:?}"),
        event => panic!("{event:?} is none of this protocol"),
    };
    vec![phrase]
}

/// Adds what an event says, its pieces to those of the one before.
fn note(event: &Event<'_>, seen: &mut Vec<String>) {
    for said in phrases(event) {
        let last = seen.last_mut();
        match (said.split_once(' ').unwrap_or((&said, "")), last) {
            ((word @ ("value" | "control"), piece), Some(last)) if last.starts_with(&format!("{word} ")) => {
                last.push_str(piece);
            }
            (("push", ""), Some(last)) if last == "push" => {}
            _ => seen.push(said),
        }
    }
}

const DIALECT: Dialect<RespCodec> = Dialect { codec: RespCodec::default, note };

fn decode(stream: &[u8]) -> Vec<String> {
    DIALECT.decode(stream)
}

/// 68 well-formed replies and 71 malformed ones, and the events that each is.
fn tables() -> [Vec<(Vec<u8>, &'static str)>; 2] {
    transcript::replies(
        include_str!("replies.txt"),
        |text| wire(&String::from_utf8(unescaped(text)).unwrap()),
        [68, 71],
    )
}

#[test]
fn replies_follow_the_protocol_document() {
    DIALECT.check_replies(&tables()[0]);
}

#[test]
fn malformed_bytes_are_reported_once() {
    DIALECT.check_malformed(&tables()[1], b":1\r\n+OK\r\n");
}

#[test]
fn values_within_values_are_bounded() {
    for (head, inner) in
        [("*1|", ":5|"), ("%1|:1|", "+x|"), ("~1|", "$1|a|"), ("*2|:1|", "*0|"), ("*1|", "_|")]
    {
        let seen = decode(&wire(&format!("{}{inner}", head.repeat(DEPTH_MAX))));
        assert!(seen[seen.len() - 1].starts_with("end "), "{head}: {seen:?}");
        let deeper = wire(&format!("{}{inner}", head.repeat(DEPTH_MAX + 1)));
        let seen = decode(&deeper);
        assert_eq!(seen[seen.len() - 1], "bad TooDeep", "{head}");
        DIALECT.check_cuts(&deeper);
    }
    let pushed = decode(&wire(&format!(">1|{}:1|", "*1|".repeat(DEPTH_MAX - 1))));
    assert_eq!(pushed, ["push", "push over"]);
    assert_eq!(decode(&wire(&format!(">1|{}:1|", "*1|".repeat(DEPTH_MAX)))), ["push", "bad TooDeep"]);
    let endless = decode(&b"*1\r\n".repeat(100_000));
    assert_eq!(endless[endless.len() - 1], "bad TooDeep");
    let attributes = decode(&wire(&"¦1|".repeat(DEPTH_MAX + 1)));
    assert_eq!(attributes[attributes.len() - 1], "bad TooDeep");
}

#[test]
fn sequential_attributes_add_no_level() {
    let stream = wire(&format!("{}:1|", "¦1|+a|:1|".repeat(1000)));
    let seen = decode(&stream);
    assert_eq!(seen[seen.len() - 1], "end number 1");
}

#[test]
fn sizes_are_bounded() {
    let table = [
        (format!("${STRING_BYTES_MAX}|"), "begin; key 536870912"),
        (format!("${}|", STRING_BYTES_MAX + 1), "begin; bad BadNumber"),
        (format!("*{ELEMENTS_MAX}|"), "begin; control *1073741824"),
        (format!("%{ELEMENTS_MAX}|"), "begin; control %1073741824"),
        (format!("%{}|", ELEMENTS_MAX + 1), "begin; bad BadNumber"),
        (format!("!{}|", u32::MAX), "begin; bad LineTooLong"),
    ];
    for (text, expected) in table {
        assert_eq!(decode(&wire(&text)).join("; "), expected, "{text}");
    }
}

#[test]
fn lines_end_within_the_unit() {
    // Leading zeros, too, which no server sends.
    let forms = [
        ("-ERR ", 'a', "\r\n", ""),
        ("+", 'a', "\r\n", ""),
        (",nan(", 'a', ")\r\n", ""),
        ("(", '1', "\r\n", ""),
        (":", '0', "\r\n", ""),
        ("$", '0', "3\r\n", ""),
        ("*", '0', "\r\n", ""),
        ("=", '0', "7\r\ntxt:", ""),
        (">", '0', "\r\n", ""),
    ];
    DIALECT.check_line_lengths(LINE_BYTES_MAX, &forms, b"*2\r\n$1\r\nx\r\n");
    for (len, accepted) in [(2000, true), (LINE_BYTES_MAX - "!2037||".len() - 2, true), (2038, false)] {
        let stream = wire(&format!("!{len}|{}|", "e".repeat(len)));
        let seen = decode(&stream);
        assert_eq!(seen[1] == "bad LineTooLong", !accepted, "{len}");
        DIALECT.check_cuts_at_ends(&stream);
        // Within other values the text may be of any length.
        let seen = decode(&wire(&format!("*1|!{}|{}|", 10 * len, "e".repeat(10 * len))));
        assert_eq!(seen[seen.len() - 1], "end ok");
    }
}

#[test]
fn a_large_value_passes_through_in_the_pieces_that_arrive() {
    for (front, behind) in [("", ""), ("*2|$1|a|", ""), ("*2|", "_|")] {
        let (front, behind) = (wire(&format!("{front}$5000000|")), wire(&format!("|{behind}")));
        DIALECT.check_large_value(&front, &behind, 31);
    }
}

/// A reply of one value.
fn string(value: &[u8]) -> Vec<u8> {
    [format!("${}\r\n", value.len()).as_bytes(), value, b"\r\n"].concat()
}

#[test]
fn a_whole_reply_of_one_value_is_one_event() {
    let lens = (2..70).chain([99, 100, 999, 1000, 9999, 10_000, 65_536, 99_999]);
    DIALECT.check_found(lens, string, &[b"", b"$", b"\r\n\r\n"], (b"", 0, 0));
}

#[test]
fn damaged_values_decode_alike_on_both_paths() {
    // Every byte of it replaced by each of those that mean something; and cut everywhere, with more behind it or not.
    for value in [&b"abc"[..], b"\r\n$3\r\n", b"", b"0123456789", &[b'x'; 150]] {
        let whole = string(value);
        let bytes = *b"\r\n 019$*>-+?x\0\x7f\xff";
        let behind = [&b""[..], &whole, b"\r\n+OK\r\n:1\r\n"];
        DIALECT.check_damaged(&whole, 12, bytes.into_iter(), &behind);
        DIALECT.check_cuts(&[&whole[..], &whole].concat());
    }
}

#[test]
fn header_reuse_matches_the_general_parser() {
    let replies = [
        string(&[b'x'; 200]),
        string(&[b'y'; 201]),
        string(&[b'x'; 20]),
        string(&[b'x'; 2]),
        string(b"x"),
        string(b""),
        string(&[b'x'; 10_000]),
        string(&[b'x'; 123_456]),
        b"$0200\r\n".to_vec(),
        b"$00002\r\nab\r\n".to_vec(),
        b"$200\r\r".to_vec(),
        b"$\r\n\r\n\r\n\r\n".to_vec(),
        b"$-1\r\n".to_vec(),
        b"\0\0\0\0\0\0\0\0\r\n".to_vec(),
        b"\r\n\r\n\r\n\r\n\r\n".to_vec(),
        b":1\r\n".to_vec(),
        b">1\r\n$2\r\nab\r\n".to_vec(),
    ];
    DIALECT.check_pairs(&replies);
}

/// A value before it has bytes.
#[derive(Clone, Debug)]
enum Tree {
    Line(usize),
    Text(char, Vec<u8>),
    List(char, Vec<Tree>),
}

/// Values that are a line, for [`Tree::Line`].
const LINES: [&str; 10] = ["+OK", "-ERR no", ":-5", "_", "$-1", "*-1", ",1.5", "#t", "(123", "-MOVED 1 a:1"];

fn trees() -> impl Strategy<Value = Tree> {
    let leaf = prop_oneof![
        (0..LINES.len()).prop_map(Tree::Line),
        (prop::sample::select(vec!['$', '=', '!']), prop::collection::vec(any::<u8>(), 0..40))
            .prop_map(|(sort, text)| Tree::Text(sort, text)),
    ];
    leaf.prop_recursive(6, 40, 4, |inner| {
        (prop::sample::select(vec!['*', '~', '%', '|']), prop::collection::vec(inner, 0..4))
            .prop_map(|(sort, list)| Tree::List(sort, list))
    })
}

/// Appends a value; an attribute, together with an element that it is before.
fn write(tree: &Tree, bytes: &mut Vec<u8>) {
    match tree {
        Tree::Line(index) => bytes.extend_from_slice(format!("{}\r\n", LINES[*index]).as_bytes()),
        Tree::Text(sort, text) => {
            let format = if *sort == '=' { "txt:" } else { "" };
            bytes.extend_from_slice(format!("{sort}{}\r\n{format}", format.len() + text.len()).as_bytes());
            bytes.extend_from_slice(text);
            bytes.extend_from_slice(b"\r\n");
        }
        Tree::List(sort, list) => {
            let is_paired = matches!(sort, '%' | '|');
            let count = if is_paired { list.len() / 2 } else { list.len() };
            bytes.extend_from_slice(format!("{sort}{count}\r\n").as_bytes());
            for element in &list[..if is_paired { 2 * count } else { count }] {
                write(element, bytes);
            }
            if *sort == '|' {
                bytes.extend_from_slice(b"#t\r\n");
            }
        }
    }
}

/// The pieces that replies are made of.
const PIECES: &str = "| \r \n $ * % ~ ¦ > = ! : + - _ # , ( ? ; . 0| 1| 2| -1| 3|abc| 5|txt:x| t| OK| 18446744073709551616 *2| ¦1| >1| $3|abc| $-1| _| *1|$1|a|";

fn pieces() -> Vec<Vec<u8>> {
    PIECES.split(' ').map(wire).chain([vec![b'a'; 2000]]).collect()
}

proptest! {
    #[test]
    fn every_reply_has_one_begin_and_one_end(
        trees in prop::collection::vec(trees(), 0..6),
        cuts in prop::collection::vec(any::<prop::sample::Index>(), 0..20),
    ) {
        let mut stream = Vec::new();
        for tree in &trees {
            write(tree, &mut stream);
        }
        let seen = DIALECT.decode_cut(&stream, &positions(&cuts, &stream), usize::MAX);
        let count = |word: &str| seen.iter().filter(|said| said.split(' ').next() == Some(word)).count();
        prop_assert_eq!((count("begin"), count("end"), count("bad")), (trees.len(), trees.len(), 0), "{:?}", &seen);
        // A cut may part a line end that lies in a string.
        let joined = |said: &[String]| said.iter().map(|said| said.replace("\\r\\n", "|")).collect::<Vec<_>>();
        prop_assert_eq!(joined(&seen), joined(&DIALECT.decode_general_path(&stream)));
    }

    #[test]
    fn arrays_of_strings_yield_one_event_each(
        values in prop::collection::vec(any::<Option<Vec<u8>>>(), 1..20),
        is_version_3 in any::<bool>(),
        cuts in prop::collection::vec(any::<prop::sample::Index>(), 0..20),
    ) {
        let mut stream = format!("*{}\r\n", values.len()).into_bytes();
        let mut expected = vec!["begin".to_owned(), format!("control *{}", values.len())];
        for value in &values {
            match value {
                None => {
                    stream.extend_from_slice(if is_version_3 { b"_\r\n" } else { b"$-1\r\n" });
                    expected.push("no key".to_owned());
                }
                Some(value) => {
                    stream.extend(string(value));
                    expected.push(format!("key {}", value.len()));
                    expected.extend((!value.is_empty()).then(|| format!("value {}", value.escape_ascii())));
                }
            }
        }
        let found = values.iter().any(Option::is_some);
        expected.push(if found { "end value" } else { "end not_found" }.to_owned());
        prop_assert_eq!(DIALECT.decode_cut(&stream, &positions(&cuts, &stream), usize::MAX), expected);
    }

    #[test]
    fn garbage_never_panics_and_cuts_never_matter(
        stream in near_replies(pieces(), 20),
        cuts in prop::collection::vec(any::<prop::sample::Index>(), 0..20),
    ) {
        DIALECT.check_stream(&stream, &cuts);
    }
}

#[test]
fn connection_setup_is_the_handshake() {
    let password = Some(Password::verbatim("secret".to_owned()));
    let login = Login { password, database: 1, ..Login::default() };
    let codec = RespCodec::new(Templates::default(), Some(Arc::new(Handshake::new(Protocol::Resp2, &login))));
    let greeting = codec.connection_setup();
    assert_eq!(greeting.replies, 2);
    assert_eq!(greeting.bytes, b"*2\r\n$4\r\nAUTH\r\n$6\r\nsecret\r\n*2\r\n$6\r\nSELECT\r\n$1\r\n1\r\n");
    let refusal = |number| codec.setup_error(number, ReplyKind::Error, b"ERR no\x1b");
    assert_eq!(
        [0, 1, 2].map(refusal),
        ["AUTH refused: ERR no\\x1b", "SELECT refused: ERR no\\x1b", "ERR no\\x1b"]
    );
    let silent = RespCodec::default();
    assert_eq!((silent.connection_setup().replies, silent.connection_setup().bytes.len()), (0, 0));
    assert!(!format!("{codec:?}").contains("secret"));
}

// --- Inline commands ---

#[test]
fn operations_become_lines() {
    let two = Keys { bytes: b"k1k2", ends: &[2, 4] };
    let one = Keys { bytes: b"k1", ends: &[2] };
    let value = Value { head: b"va", block: b"lue", offset: 0, len: 3 };
    let table = [
        (Request::of(OpKind::Get, one), "GET k1|"),
        (Request::of(OpKind::Mget, two), "MGET k1 k2|"),
        (request(OpKind::Set, one, value), "SET k1 value|"),
        (Request { ttl_s: 60, ..request(OpKind::Set, one, value) }, "SET k1 value EX 60|"),
        (request(OpKind::Add, one, value), "SET k1 value NX|"),
        (Request { ttl_s: 60, ..request(OpKind::Replace, one, value) }, "SET k1 value EX 60 XX|"),
        (Request { ttl_s: 60, ..request(OpKind::Append, one, value) }, "APPEND k1 value|"),
        (request(OpKind::Set, one, Value::NONE), "SET k1 \"\"|"),
        (Request { operand: 1, ..Request::of(OpKind::Incr, one) }, "INCR k1|"),
        (Request { operand: 5, ..Request::of(OpKind::Incr, one) }, "INCRBY k1 5|"),
        (Request { operand: 1, ..Request::of(OpKind::Decr, one) }, "DECR k1|"),
        (Request { operand: 5, ..Request::of(OpKind::Decr, one) }, "DECRBY k1 5|"),
        (Request::of(OpKind::Delete, one), "DEL k1|"),
        (Request::of(OpKind::Touch, one), "TOUCH k1|"),
        (Request { ttl_s: 9, ..Request::of(OpKind::Touch, one) }, "EXPIRE k1 9|"),
    ];
    let codec = RespCodec::default().with_inline_commands();
    for (request, expected) in table {
        assert_eq!(encode(&codec.clone(), &request), wire(expected), "{expected}");
    }
    let mut out = Out::with_room(100);
    let write = |place: &mut [u8]| place.copy_from_slice(b"k1");
    codec.clone().encode_get(2, 0, &mut out, write);
    assert_eq!(out.contiguous(), Some(&b"GET k1\r\n"[..]));
    // The longest, all of it escaped, is within the bound.
    let (keys, block) = ([0; 250 * 3], [b'\n'; 4000]);
    let keys = Keys { bytes: &keys, ends: &[250, 500, 750] };
    encode(&codec.clone(), &Request::of(OpKind::Mget, keys));
    let keys = Keys { bytes: keys.first(), ends: &[250] };
    let value = Value { head: b"", block: &block, offset: 0, len: block.len() };
    encode(&codec.clone(), &Request { ttl_s: u32::MAX, ..request(OpKind::Replace, keys, value) });
    let short = Keys { bytes: b" ", ends: &[1] };
    encode(&codec.clone(), &request(OpKind::Set, short, value));
}
