//! What memcached 1.6.18 answered to every request that the load generator can send: this server answers the same, byte for
//! byte. The exchanges are kept beside the codecs; nothing of the codecs is used here.

use crate::transcripts::fresh;
use crate::{Random, connected, datagrams, drain};
use brunt_server::core::CoreOptions;
use brunt_server::{DatagramFaults, Division};

const META: &str = include_str!("../../../brunt-proto/src/memcached/meta/golden/memcached-1.6.18.txt");
const BINARY: &str = include_str!("../../../brunt-proto/src/memcached/binary/golden/memcached-1.6.18.txt");
const UDP: &str = include_str!("../../../brunt-proto/src/memcached/udp/golden/memcached-1.6.18.txt");

/// The bytes that a line stands for: `\n`, `\x07` and `(x*3)` are written out.
fn unescape(text: &str) -> Vec<u8> {
    let (mut bytes, mut rest) = (Vec::new(), text);
    while let Some(first) = rest.chars().next() {
        if let Some(repeated) = rest.strip_prefix("(x*") {
            let (count, behind) = repeated.split_once(')').unwrap();
            bytes.extend(vec![b'x'; count.parse().unwrap()]);
            rest = behind;
            continue;
        }
        let Some(escaped) = rest.strip_prefix('\\') else {
            assert!(first.is_ascii());
            bytes.push(first as u8);
            rest = &rest[1..];
            continue;
        };
        let (byte, len) = match escaped.as_bytes()[0] {
            b'r' => (b'\r', 1),
            b'n' => (b'\n', 1),
            b't' => (b'\t', 1),
            b'x' => (u8::from_str_radix(&escaped[1..3], 16).unwrap(), 3),
            other => (other, 1),
        };
        bytes.push(byte);
        rest = &escaped[len..];
    }
    bytes
}

/// Every request with all that was answered to it.
fn exchanges(golden: &str) -> Vec<(Vec<u8>, Vec<Vec<u8>>)> {
    let mut exchanges: Vec<(Vec<u8>, Vec<Vec<u8>>)> = Vec::new();
    for line in golden.lines() {
        if let Some(sent) = line.strip_prefix("> ") {
            exchanges.push((unescape(sent), Vec::new()));
        } else if let Some(received) = line.strip_prefix("< ") {
            exchanges.last_mut().unwrap().1.push(unescape(received));
        }
    }
    exchanges
}

fn check(golden: &str, count: usize) {
    let exchanges = exchanges(golden);
    assert_eq!(exchanges.len(), count);
    let (mut whole, mut random) = (fresh(), Random(7));
    let mut in_pieces = fresh();
    for (sent, received) in exchanges {
        let (sent, received) = (sent, received.concat());
        whole.receive(0, &sent, 0);
        let answered = drain(&mut whole, 0, 0);
        assert_eq!(answered.escape_ascii().to_string(), received.escape_ascii().to_string());
        // The same, cut anywhere.
        let (mut answered, mut rest) = (Vec::new(), &sent[..]);
        while !rest.is_empty() {
            let (piece, behind) = rest.split_at(1 + random.below(rest.len() as u64) as usize);
            in_pieces.receive(0, piece, 0);
            answered.extend(drain(&mut in_pieces, 0, 0));
            rest = behind;
        }
        assert_eq!(answered, received, "{}", sent.escape_ascii());
    }
    assert_eq!(whole.counters().bytes_written, in_pieces.counters().bytes_written);
}

#[test]
fn meta_commands_are_answered_as_memcached_answers() {
    check(META, 48);
}

#[test]
fn binary_frames_are_answered_as_memcached_answers() {
    check(BINARY, 48);
}

#[test]
fn datagrams_are_answered_as_memcached_answers() {
    let options = CoreOptions { division: Division::Key, ..CoreOptions::default() };
    let mut core = connected(options.clone());
    // What lay there before, under the uniques that the answers tell.
    let set =
        |key: &str, flags: u32, value: &str| format!("set {key} {flags} 0 {}\r\n{value}\r\n", value.len());
    core.receive(0, &b"set x 0 0 1\r\nx\r\n".repeat(17), 0);
    core.receive(0, set("big", 0, &"x".repeat(3000)).as_bytes(), 0);
    core.receive(0, [set("a", 0, "A"), set("b", 5, "BB")].concat().as_bytes(), 0);
    drain(&mut core, 0, 0);
    core.connect_peer(1);
    assert_eq!(options.datagram_faults, DatagramFaults::default());
    let exchanges = exchanges(UDP);
    assert_eq!(exchanges.len(), 22);
    for (sent, received) in exchanges {
        core.receive_datagram(1, &sent, 0);
        let answered = datagrams(&mut core, 1, 0);
        let text = |all: &[Vec<u8>]| all.iter().map(|one| one.escape_ascii().to_string()).collect::<Vec<_>>();
        assert_eq!(text(&answered), text(&received), "{}", sent.escape_ascii());
    }
}
