//! Messages and their replies: golden bytes both ways, then what holds of any bytes, however they are cut.

use super::*;
use crate::memcached::tests::transcript::{decode, decode_cut, encode, unescaped};
use crate::template::Template;
use crate::{Keys, Value};
use proptest::prelude::*;

fn codec(protocol: Protocol, command: &str) -> MessageCodec {
    let template = Template::parse(protocol, command).expect(command);
    MessageCodec::new(protocol, Templates::new(vec![template]), 8)
}

fn request(value: Value<'_>) -> Request<'_> {
    Request { value, operand: 7, ..Request::of(Raw, Keys { bytes: b"k1", ends: &[2] }) }
}

const VALUE: Value<'static> = Value { head: b"1234", block: b"..56789..", offset: 2, len: 5 };

/// The bytes of a message.
fn sent(protocol: Protocol, command: &str) -> String {
    encode(codec(protocol, command), &request(VALUE)).0.escape_ascii().to_string()
}

/// The rows of so many fields, of which there are so many.
fn rows<const FIELDS: usize>(count: usize) -> Vec<(Protocol, [&'static str; FIELDS])> {
    let row = |line: &'static str| {
        let (name, fields) = line.split_once(' ')?;
        let protocol = match name {
            "echo" => Protocol::Echo,
            "ping" => Protocol::Ping,
            "thrift" => Protocol::Thrift,
            _ => return None,
        };
        Some((protocol, fields.split(" => ").collect::<Vec<_>>().try_into().ok()?))
    };
    let rows: Vec<_> = include_str!("messages.txt").lines().filter_map(row).collect();
    assert_eq!(rows.len(), count);
    rows
}

#[test]
fn messages_become_bytes() {
    for (protocol, [command, expected]) in rows::<2>(11) {
        let expected = unescaped(expected).escape_ascii().to_string();
        assert_eq!(sent(protocol, command), expected, "{command}");
    }
}

/// Random fields are the same for the same draw, others for another one, and as wide as their type.
#[test]
fn random_fields_are_drawn_for_each_operation() {
    let command = "f 1:bool={random} 2:byte={random} 3:i16={random} 4:i32={random} 5:i64={random} 6:double={random} \
                   7:string={random:10}";
    let of = |operand: u64| {
        let codec = codec(Protocol::Thrift, command);
        encode(codec, &Request { operand, ..request(VALUE) }).0
    };
    let (one, other) = (of(7), of(8));
    assert_eq!((one.len(), &one), (other.len(), &of(7)));
    assert_ne!(one, other);
    let fields = &one[4 + 4 + 5 + 4..];
    let double = f64::from_be_bytes(std::array::from_fn(|at| fields[4 + 4 + 5 + 7 + 11 + 3 + at]));
    assert!(fields[3] < 2 && (0.0..1.0).contains(&double), "{double}");
    assert!(fields[fields.len() - 11..][..10].iter().all(u8::is_ascii_alphanumeric));
    // Two fields draw their own, and every letter is as frequent as the others.
    let mut counts = [0_u32; 128];
    for operand in 0..2_000 {
        let codec = codec(Protocol::Echo, "{random:31}{random:31}");
        let (bytes, _) = encode(codec, &Request { operand, ..request(VALUE) });
        assert_ne!(bytes[..31], bytes[31..62]);
        bytes[..62].iter().for_each(|byte| counts[usize::from(*byte)] += 1);
    }
    let drawn: Vec<u32> = counts.into_iter().filter(|count| *count > 0).collect();
    let chi_squared: f64 = drawn.iter().map(|count| (f64::from(*count) - 2000.0).powi(2) / 2000.0).sum();
    // The quantile of 0.999 with 61 degrees of freedom.
    assert!(drawn.len() == 62 && chi_squared < 100.9, "{} {chi_squared}", drawn.len());
}

#[test]
fn unsupported_commands_are_refused() {
    let table = [
        (Protocol::Ping, "GET", "'GET' was given; --protocol ping accepts PING"),
        (Protocol::Ping, "PING {key}", "'PING {key}' was given; --protocol ping accepts PING"),
        (Protocol::Echo, "{random}", "{random} has a length"),
        (Protocol::Echo, "{bytes} x", "only --protocol memcached-text has {bytes}"),
        (Protocol::Thrift, "{key} 1:i32=1", "begins with a placeholder"),
        (Protocol::Thrift, "f 1:i32", "'1:i32' is no field"),
        (Protocol::Thrift, "f x:i32=1", "'x:i32=1' is no field"),
        (Protocol::Thrift, "f 1:i32=9999999999", "is no field"),
        (Protocol::Thrift, "f 1:i8=1", "is no field"),
        (Protocol::Thrift, "f 1:i32={value}", "is no field"),
        (Protocol::Thrift, "f 1:i32={random:4}", "is no field"),
        (Protocol::Thrift, "f 1:string={random}", "is no field"),
        (Protocol::Thrift, "f 1:stop", "is no field"),
        (Protocol::Thrift, "f 1:list=2", "is no field"),
        (Protocol::Thrift, "f 1:map<i32>=2", "is no field"),
        (Protocol::Thrift, "f {key}", "is no field"),
    ];
    for (protocol, command, expected) in table {
        let message = Template::parse(protocol, command).expect_err(command);
        assert!(message.contains(expected), "{command}: {message}");
    }
}

/// A codec on which the message was sent so often.
fn waiting(protocol: Protocol, command: &str, times: usize) -> MessageCodec {
    let mut codec = codec(protocol, command);
    let mut out = Out::with_room(10_000);
    for _ in 0..times {
        assert_eq!(codec.encode(&request(VALUE), &mut out), Encoded { wire_requests: 1, replied: true });
    }
    codec
}

#[test]
fn replies_become_events() {
    for (protocol, [command, stream, expected]) in rows::<3>(17) {
        let (codec, stream) = (waiting(protocol, command, 2), unescaped(stream));
        assert_eq!(joined(&decode(codec.clone(), &stream)), expected, "{}", stream.escape_ascii());
        check_pieces(&codec, &stream);
    }
    // An echo that no request waits for.
    assert_eq!(decode(codec(Protocol::Echo, "x"), b"x").join("; "), "begin; bad UnknownReply");
}

/// The right checksum of another payload: what was sent is known.
#[test]
fn an_echo_of_another_message_is_an_error() {
    let mut codec = codec(Protocol::Echo, "{random:9}");
    let mut out = Out::with_room(100);
    for operand in [1, 2] {
        codec.encode(&Request { operand, ..request(VALUE) }, &mut out);
    }
    let both = out.contiguous().unwrap().to_vec();
    let (one, two) = both.split_at(both.len() / 2);
    let said = decode(codec.clone(), &[two, one].concat());
    assert_eq!(said.iter().filter(|said| said.ends_with("another payload than was sent")).count(), 2);
    assert_eq!(decode(codec, &both).iter().filter(|said| *said == "end ok @0").count(), 2);
}

/// Phrases with the pieces of what is passed over joined.
fn joined(phrases: &[String]) -> String {
    let mut all: Vec<String> = Vec::new();
    for said in phrases {
        match (said.strip_prefix("control "), all.last_mut()) {
            (Some(piece), Some(last)) if last.starts_with("control ") && said.len() > 8 + 40 => {
                last.push_str(piece)
            }
            _ => all.push(said.clone()),
        }
    }
    all.join("; ")
}

/// The same bytes in pieces come to the same, but for where pieces of what is passed over end.
fn check_pieces(codec: &MessageCodec, stream: &[u8]) {
    let ends = |said: &[String]| {
        let mut passed = String::new();
        let mut all = Vec::new();
        for said in said {
            match said.strip_prefix("control ") {
                Some(piece) => passed.push_str(piece),
                None => all.push((std::mem::take(&mut passed), said.clone())),
            }
        }
        (all, passed)
    };
    let whole = ends(&decode(codec.clone(), stream));
    for piece in 1..stream.len().min(20) {
        let cuts: Vec<usize> = (0..stream.len()).step_by(piece).collect();
        let said = decode_cut(codec.clone(), stream, &cuts, usize::MAX);
        assert_eq!(ends(&said), whole, "pieces of {piece}");
    }
}

/// A connection that begins anew takes no memory, and forgets what it waited for.
#[test]
fn a_reset_connection_expects_no_reply() {
    let fresh = codec(Protocol::Echo, "{value}");
    let mut used = waiting(Protocol::Echo, "{value}", 8);
    used.clone_from(&fresh);
    assert_eq!(decode(used.clone(), b"x").join("; "), "begin; bad UnknownReply");
    let mut out = Out::with_room(1000);
    for _ in 0..8 {
        used.encode(&request(VALUE), &mut out);
    }
    let said = decode(used, out.contiguous().unwrap());
    assert_eq!(said.iter().filter(|said| *said == "end ok @0").count(), 8);
}

proptest! {
    /// Any payload comes back as it was sent, however it is cut; and large values are not copied.
    #[test]
    fn every_payload_is_echoed(block in prop::collection::vec(any::<u8>(), 0..6000), piece in 1..7000_usize) {
        let mut codec = codec(Protocol::Echo, "{key}:{value}");
        let value = Value { head: b"head", block: &block, offset: 0, len: block.len() };
        let (bytes, _) = encode(codec.clone(), &request(value));
        let mut out = Out::with_room(5000);
        codec.encode(&request(value), &mut out);
        let cuts: Vec<usize> = (0..bytes.len()).step_by(piece).collect();
        let said = decode_cut(codec, &bytes, &cuts, usize::MAX);
        prop_assert_eq!(said.last().map(String::as_str), Some("end ok @0"));
    }

    /// Any bytes say the same in pieces.
    #[test]
    fn garbage_is_malformed(stream in prop::collection::vec(prop_oneof![any::<u8>(), Just(0), Just(b'P'), Just(b'\n')], 0..60)) {
        for (protocol, command) in [(Protocol::Echo, "abc"), (Protocol::Ping, "PING"), (Protocol::Thrift, "f")] {
            check_pieces(&waiting(protocol, command, 3), &stream);
        }
    }
}
