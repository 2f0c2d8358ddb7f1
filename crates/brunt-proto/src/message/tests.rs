//! Messages and their replies: golden bytes both ways, then what holds of any bytes, however they are cut.

use super::*;
use crate::memcached::tests::transcript::{decode, decode_cut, encode, unescaped};
use crate::template::{Framing, Template};
use crate::{Keys, Value};
use proptest::prelude::*;

fn codec(messages: Messages, command: &str) -> MessageCodec {
    let framing = match messages {
        Messages::Echo => Framing::Echo,
        Messages::Ping => Framing::Ping,
        Messages::Thrift => Framing::Thrift,
    };
    let template = Template::parse(framing, command).expect(command);
    MessageCodec::new(messages, Templates::new(vec![template]), 8)
}

fn request(value: Value<'_>) -> Request<'_> {
    Request { value, operand: 7, ..Request::of(Raw, Keys { bytes: b"k1", ends: &[2] }) }
}

const VALUE: Value<'static> = Value { head: b"1234", block: b"..56789..", offset: 2, len: 5 };

/// The bytes of a message.
fn sent(messages: Messages, command: &str) -> String {
    encode(codec(messages, command), &request(VALUE)).0.escape_ascii().to_string()
}

#[test]
fn messages_become_bytes() {
    let table = [
        // The check value of CRC-32, by which every implementation is known.
        (Messages::Echo, "{value}", r"123456789\xcb\xf4\x39\x26\r\n"),
        (Messages::Echo, "123456789", r"123456789\xcb\xf4\x39\x26\r\n"),
        (Messages::Echo, "''", r"\x00\x00\x00\x00\r\n"),
        (Messages::Echo, r#""\x00""#, r"\x00\xd2\x02\xef\x8d\r\n"),
        (Messages::Echo, "a {key}", r"a k1MD\xbb\xcc\r\n"),
        (Messages::Ping, "PING", r"PING\r\n"),
        (
            Messages::Thrift,
            "ping",
            r"\x00\x00\x00\x11\x80\x01\x00\x01\x00\x00\x00\x04ping\x00\x00\x00\x00\x00",
        ),
        (
            Messages::Thrift,
            "add 1:i32=15 2:i32=-10",
            r"\x00\x00\x00\x1e\x80\x01\x00\x01\x00\x00\x00\x03add\x00\x00\x00\x00\x08\x00\x01\x00\x00\x00\x0f\x08\x00\x02\xff\xff\xff\xf6\x00",
        ),
        (
            Messages::Thrift,
            "calculate 1:i32=1 2:struct 1:i32=15 2:i32=10 3:i32=2 stop",
            r"\x00\x00\x00\x36\x80\x01\x00\x01\x00\x00\x00\x09calculate\x00\x00\x00\x00\x08\x00\x01\x00\x00\x00\x01\x0c\x00\x02\x08\x00\x01\x00\x00\x00\x0f\x08\x00\x02\x00\x00\x00\x0a\x08\x00\x03\x00\x00\x00\x02\x00\x00",
        ),
        (
            Messages::Thrift,
            "put 1:string=<{value}> 2:bool=true 3:double=1.5 4:list<byte>=2 byte=1 byte=-1",
            r"\x00\x00\x00\x3b\x80\x01\x00\x01\x00\x00\x00\x03put\x00\x00\x00\x00\x0b\x00\x01\x00\x00\x00\x0b<123456789>\x02\x00\x02\x01\x04\x00\x03?\xf8\x00\x00\x00\x00\x00\x00\x0f\x00\x04\x03\x00\x00\x00\x02\x01\xff\x00",
        ),
        (
            Messages::Thrift,
            "m 1:map<string,i64>=1 string={key} i64=9 2:set<i16>=0 3:void",
            r"\x00\x00\x00\x30\x80\x01\x00\x01\x00\x00\x00\x01m\x00\x00\x00\x00\r\x00\x01\x0b\n\x00\x00\x00\x01\x00\x00\x00\x02k1\x00\x00\x00\x00\x00\x00\x00\t\x0e\x00\x02\x06\x00\x00\x00\x00\x01\x00\x03\x00",
        ),
    ];
    for (messages, command, expected) in table {
        let expected = unescaped(expected).escape_ascii().to_string();
        assert_eq!(sent(messages, command), expected, "{command}");
    }
}

/// Random fields are the same for the same draw, others for another one, and as wide as their type.
#[test]
fn random_fields_are_drawn_for_each_operation() {
    let command = "f 1:bool={random} 2:byte={random} 3:i16={random} 4:i32={random} 5:i64={random} 6:double={random} \
                   7:string={random:10}";
    let of = |operand: u64| {
        let codec = codec(Messages::Thrift, command);
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
        let codec = codec(Messages::Echo, "{random:31}{random:31}");
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
        (Framing::Ping, "GET", "'GET' was given; --protocol ping accepts PING"),
        (Framing::Ping, "PING {key}", "'PING {key}' was given; --protocol ping accepts PING"),
        (Framing::Echo, "{random}", "{random} has a length"),
        (Framing::Echo, "{bytes} x", "only --protocol memcached-text has {bytes}"),
        (Framing::Thrift, "{key} 1:i32=1", "begins with a placeholder"),
        (Framing::Thrift, "f 1:i32", "'1:i32' is no field"),
        (Framing::Thrift, "f x:i32=1", "'x:i32=1' is no field"),
        (Framing::Thrift, "f 1:i32=9999999999", "is no field"),
        (Framing::Thrift, "f 1:i8=1", "is no field"),
        (Framing::Thrift, "f 1:i32={value}", "is no field"),
        (Framing::Thrift, "f 1:i32={random:4}", "is no field"),
        (Framing::Thrift, "f 1:string={random}", "is no field"),
        (Framing::Thrift, "f 1:stop", "is no field"),
        (Framing::Thrift, "f 1:list=2", "is no field"),
        (Framing::Thrift, "f 1:map<i32>=2", "is no field"),
        (Framing::Thrift, "f {key}", "is no field"),
    ];
    for (framing, command, expected) in table {
        let message = Template::parse(framing, command).expect_err(command);
        assert!(message.contains(expected), "{command}: {message}");
    }
}

/// A codec on which the message was sent so often.
fn waiting(messages: Messages, command: &str, times: usize) -> MessageCodec {
    let mut codec = codec(messages, command);
    let mut out = Out::with_room(10_000);
    for _ in 0..times {
        assert_eq!(codec.encode(&request(VALUE), &mut out), Encoded { wire_requests: 1, replied: true });
    }
    codec
}

#[test]
fn replies_become_events() {
    let echo = r"123456789\xcb\xf4\x39\x26\r\n";
    let table = [
        (Messages::Ping, "PING", r"PONG\r\n", "begin; end ok @0"),
        (Messages::Ping, "PING", r"+PONG\r\nPONG\r\n", "begin; end ok @0; begin; end ok @0"),
        (Messages::Ping, "PING", r"-NOAUTH no\r\n", "begin; end error @0: -NOAUTH no"),
        (Messages::Ping, "PING", r"PONK", "begin; bad UnknownReply"),
        (Messages::Ping, "PING", r"+P\r\n", "begin; bad UnknownReply"),
        (Messages::Ping, "PING", r"-no\n", "begin; bad UnknownReply"),
        (Messages::Echo, "{value}", echo, "begin; control 123456789; end ok @0"),
        (
            Messages::Echo,
            "{value}",
            r"123456780\xcb\xf4\x39\x26\r\n",
            "begin; control 123456780; end error @0: the CRC-32 is not that of the payload",
        ),
        (
            Messages::Echo,
            "{value}",
            r"12345678\x00\xc0\x88\xd0\x3e\r\n",
            r"begin; control 12345678\x00; end error @0: the CRC-32 is not that of the payload",
        ),
        (
            Messages::Echo,
            "{value}",
            r"123456789\xcb\xf4\x39\x26\r\r",
            "begin; control 123456789; bad ValueNotTerminated",
        ),
        (Messages::Echo, "''", r"\x00\x00\x00\x00\r\n", "begin; end ok @0"),
        (Messages::Thrift, "f", r"\x00\x00\x00\x00", "begin; end ok @0"),
        (Messages::Thrift, "f", r"\x00\x00\x00\x04\x80\x01\x00\x02", "begin; end ok @0"),
        (
            Messages::Thrift,
            "f",
            r"\x00\x00\x00\x06\x80\x01\x00\x02ab\x00\x00\x00\x01x",
            r"begin; control \x00\x00\x00\x06\x80\x01\x00\x02; control a; end ok @0; begin; end ok @0",
        ),
        (
            Messages::Thrift,
            "f",
            r"\x00\x00\x00\x05\x80\x01\x00\x03a",
            r"begin; control \x00\x00\x00\x05\x80\x01\x00\x03; end error @0: the server replied with a Thrift exception",
        ),
        (Messages::Thrift, "f", r"\xff\xff\xff\xff", "begin; bad BadNumber"),
        (Messages::Thrift, "f", "HTTP/1.1 400", "begin; bad BadNumber"),
    ];
    for (messages, command, stream, expected) in table {
        let (codec, stream) = (waiting(messages, command, 2), unescaped(stream));
        assert_eq!(joined(&decode(codec.clone(), &stream)), expected, "{}", stream.escape_ascii());
        check_pieces(&codec, &stream);
    }
    // An echo that no request waits for.
    assert_eq!(decode(codec(Messages::Echo, "x"), b"x").join("; "), "begin; bad UnknownReply");
}

/// The right checksum of another payload: what was sent is known.
#[test]
fn an_echo_of_another_message_is_an_error() {
    let mut codec = codec(Messages::Echo, "{random:9}");
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
    let fresh = codec(Messages::Echo, "{value}");
    let mut used = waiting(Messages::Echo, "{value}", 8);
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
        let mut codec = codec(Messages::Echo, "{key}:{value}");
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
        for (messages, command) in [(Messages::Echo, "abc"), (Messages::Ping, "PING"), (Messages::Thrift, "f")] {
            check_pieces(&waiting(messages, command, 3), &stream);
        }
    }
}
