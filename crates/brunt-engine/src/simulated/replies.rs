//! Every reply to every operation, in every dialect, from a server that has no other: what becomes of the operation and of its connection.
//!
//! The pairs are those of `brunt-proto/src/pairs`, beside the tables of which each is one cell. Here they go through the worker: what
//! is no reply to its operation is garbage, ends it in an error and its connection with it; a datagram of that kind is passed over.

use super::scripted::Answers;
use super::tokens::{Ended, run_with};
use super::{US, plan};
use brunt_plan::op::OpKind;
use brunt_plan::outcome::{OutcomeClass, ReplyKind};
use brunt_plan::plan::{Plan, Protocol, Transport};
use brunt_proto::memcached::{BinaryCodec, MetaCodec, TextCodec};
use brunt_proto::resp::RespCodec;
use brunt_proto::template::{Template, Templates};

const TEXT: &str = include_str!("../../../brunt-proto/src/pairs/text.txt");
const META: &str = include_str!("../../../brunt-proto/src/pairs/meta.txt");
const BINARY: &str = include_str!("../../../brunt-proto/src/pairs/binary.txt");
const RESP: &str = include_str!("../../../brunt-proto/src/pairs/resp.txt");
const HASH: &str = include_str!("../../../brunt-proto/src/pairs/hash.txt");

/// What a Redis has to a multi-get of two keys beside those: other numbers of keys. The codec alone cannot know.
const RESP_NUMBERS: &str = "\
# get mget
*0|  . .
*1|$3|abc|  . .
*1|$-1|  . .
*3|$3|abc|$3|abc|$3|abc|  . .
*3|$-1|$-1|$-1|  . .";

/// The rows of a file: a reply, and the letter of each operation.
fn matrix(file: &str) -> Vec<(String, Vec<(OpKind, char)>)> {
    let is_comment = |line: &&str| line.starts_with("# ") || *line == "#";
    let kinds: Vec<OpKind> = file.lines().rfind(is_comment).unwrap()[1..]
        .split_whitespace()
        .map(|name| name.parse().unwrap())
        .collect();
    let rows = file.lines().filter(|line| !is_comment(line));
    rows.map(|row| {
        let words: Vec<&str> = row.split_whitespace().collect();
        let letters = &words[words.len() - kinds.len()..];
        let letters = kinds.iter().zip(letters).map(|(kind, letter)| (*kind, letter.parse().unwrap()));
        let mut reply = row.trim_end();
        for _ in &kinds {
            reply = reply.rsplit_once(char::is_whitespace).unwrap().0.trim_end();
        }
        (reply.to_owned(), letters.collect())
    })
    .collect()
}

/// Makes the bytes of a row in reply to a request.
type Render = fn(&str, &[u8]) -> Vec<u8>;

fn lines(row: &str, request: &[u8]) -> Vec<u8> {
    let text = String::from_utf8_lossy(request);
    let key = text.split([' ', '\r']).nth(1).unwrap_or_default();
    row.replace('|', "\r\n").replace("{k}", key).into_bytes()
}

fn meta_lines(row: &str, request: &[u8]) -> Vec<u8> {
    let text = String::from_utf8_lossy(request);
    let opaque = &text.split_once(" O").unwrap().1[..9];
    lines(&row.replace("{o}", opaque).replace("{t}", &opaque[1..]), request)
}

fn frames(row: &str, request: &[u8]) -> Vec<u8> {
    let [extras, key_len] = [usize::from(request[4]), usize::from(request[3])];
    let asked = &request[24 + extras..][..key_len];
    // A multi-get begins with a quiet get, and a noop ends it.
    let last = if request[1] == 0x0d { 0x0a } else { request[1] };
    let frame = |text: &str| {
        let parts: Vec<&str> = text.split('/').collect();
        let [opcode, status, body] = parts[..] else { panic!("{text}") };
        let opcode = if opcode == "=" { last } else { u8::from_str_radix(opcode, 16).unwrap() };
        let (key, extras, body) = match body {
            "v" => (0, 4, b"\0\0\0\0abc".to_vec()),
            "f" => (0, 4, b"\0\0\0\0".to_vec()),
            "k" => (key_len, 4, [b"\0\0\0\0", asked, b"abc"].concat()),
            "n" => (0, 0, vec![0, 0, 0, 0, 0, 0, 0, 7]),
            "t" => (0, 0, b"text".to_vec()),
            _ => (0, 0, Vec::new()),
        };
        let status = u8::from_str_radix(status, 16).unwrap();
        let head = [0x81, opcode, 0, key as u8, extras, 0, 0, status, 0, 0, 0, body.len() as u8];
        [&head[..], &request[12..16], &[0; 8], &body].concat()
    };
    row.split(',').flat_map(frame).collect()
}

/// The same behind the header of the request, as the only datagram of its train.
fn in_datagrams(mut answers: Answers) -> Answers {
    Box::new(move |connection, datagram| {
        let (header, request) = datagram.split_at(8);
        let datagram = |(after_ns, payload): (u64, Vec<u8>)| {
            (after_ns, [&header[..2], &[0, 0, 0, 1, 0, 0], &payload].concat())
        };
        answers(connection, request).into_iter().map(datagram).collect()
    })
}

/// Runs a plan against a server that has this reply to every request, in pieces of so many bytes.
fn run(plan: Plan, row: &str, render: Render, piece_bytes: usize) -> Ended {
    let row = row.to_owned();
    // One request at a time: what is sent is one.
    let stream: Answers = Box::new(move |_, request| vec![(10 * US, render(&row, request))]);
    match (plan.protocol, plan.transport) {
        (Protocol::MemcachedText, Transport::Udp) => run_with(
            plan,
            |blueprint, shard| blueprint.datagram_codec(TextCodec::new(), shard),
            usize::MAX,
            in_datagrams(stream),
        ),
        (Protocol::MemcachedMeta, Transport::Udp) => run_with(
            plan,
            |blueprint, shard| blueprint.datagram_codec(MetaCodec::new(), shard),
            usize::MAX,
            in_datagrams(stream),
        ),
        (Protocol::MemcachedText, _) => {
            let templates =
                Templates::new(vec![Template::parse(Protocol::MemcachedText, "get {key}").unwrap()]);
            run_with(plan, |_, _| TextCodec::new().with_templates(templates), piece_bytes, stream)
        }
        (Protocol::MemcachedMeta, _) => run_with(plan, |_, _| MetaCodec::new(), piece_bytes, stream),
        (Protocol::MemcachedBinary, _) => run_with(plan, |_, _| BinaryCodec::default(), piece_bytes, stream),
        (protocol, _) => {
            assert!(protocol.is_resp(), "{protocol} has no table");
            let templates = Templates::new(vec![Template::parse(Protocol::Resp2, "PING").unwrap()]);
            let field_bytes = plan.hash_field.unwrap_or(0) as usize;
            let codec = RespCodec::new(templates, None).with_hash_field(field_bytes);
            run_with(plan, |_, _| codec, piece_bytes, stream)
        }
    }
}

/// All pairs of a file, under a plan with these settings.
fn check(file: &str, settings: &str, render: Render) {
    let is_datagrams = settings.contains("udp");
    for (row, cells) in matrix(file) {
        // Raw commands do not go by UDP.
        for (kind, letter) in cells.into_iter().filter(|(kind, _)| !(is_datagrams && *kind == OpKind::Raw)) {
            let more = match kind {
                OpKind::Mget => "mix = 'mget'\nmultiget = 2",
                OpKind::Raw => "mix = 'raw'\ncommand = ['PING']",
                // No plan has it alone.
                OpKind::Cas => "mix = 'gets,cas'",
                _ => &format!("mix = '{kind}'"),
            };
            let requests = match (kind, letter) {
                (OpKind::Cas, _) => 30,
                // What follows on the connection would be in the middle of the reply.
                (_, 'w') => 1,
                _ => 3,
            };
            let toml = format!(
                "server = 'a'\nconnections = 1\npreload = false\nrequests = {requests}\ntimeout = '5ms'\n\
                 {settings}\n{more}"
            );
            for piece_bytes in [usize::MAX, 1] {
                let ended = run(plan(&toml), &row, render, piece_bytes);
                let what = format!("{settings}: {row} to {kind}");
                check_end(&ended, kind, letter, is_datagrams, &what);
            }
        }
    }
}

/// What became of the operations of this kind, and of their connections.
fn check_end(ended: &Ended, kind: OpKind, letter: char, is_datagrams: bool, what: &str) {
    let class = match letter {
        'h' => OutcomeClass::Hit,
        'm' => OutcomeClass::Miss,
        'd' => OutcomeClass::Done,
        'r' => OutcomeClass::Rejected,
        'e' => OutcomeClass::Error,
        '.' if !is_datagrams => OutcomeClass::Error,
        '.' | 'w' => OutcomeClass::Timeout,
        letter => panic!("{letter}"),
    };
    let samples: Vec<_> = ended.samples.iter().filter(|sample| sample.op.kind() == kind).collect();
    assert!(!samples.is_empty(), "{what}");
    for sample in &samples {
        assert_eq!(sample.outcome.class, class, "{what}");
        let is_right = match letter {
            'e' => sample.outcome.reply.is_error(),
            '.' | 'w' => sample.outcome.reply == ReplyKind::None,
            _ => sample.outcome.reply != ReplyKind::None && !sample.outcome.reply.is_error(),
        };
        assert!(is_right, "{what}: {:?}", sample.outcome);
    }
    if kind != OpKind::Cas {
        assert_eq!(ended.end.data.counts.first_malformed.is_some(), letter == '.', "{what}");
        let garbage = if letter == '.' && !is_datagrams { samples.len() as u64 } else { 0 };
        assert_eq!(ended.lost, garbage, "{what}");
    }
}

#[test]
fn in_text() {
    check(TEXT, "protocol = 'memcached-text'", lines);
}

#[test]
fn in_meta() {
    check(META, "protocol = 'memcached-meta'", meta_lines);
}

#[test]
fn in_binary() {
    check(BINARY, "protocol = 'memcached-binary'", frames);
}

#[test]
fn of_a_redis() {
    for protocol in ["resp2", "resp3"] {
        let protocol = format!("protocol = '{protocol}'");
        check(RESP, &protocol, lines);
        check(RESP_NUMBERS, &protocol, lines);
        check(HASH, &format!("{protocol}\nhash-field = 2"), lines);
    }
}

#[test]
fn in_datagrams_of_text() {
    check(TEXT, "protocol = 'memcached-text'\ntransport = 'udp'", lines);
}

#[test]
fn in_datagrams_of_meta() {
    check(META, "protocol = 'memcached-meta'\ntransport = 'udp'", meta_lines);
}
