//! Templates: commands of users, with the bytes or the message that result.

use super::*;
use crate::memcached::tests::transcript::unescaped;
use crate::out::PARTS_MAX;
use crate::{KEY_BYTES_MAX, Keys, Value};
use brunt_plan::op::OpKind;
use std::io::IoSlice;

/// The bytes of a command for a key and a value, in a queue that has room for its bound and no byte more.
fn encode(template: &Template, key: &[u8], value: &Value<'_>) -> Vec<u8> {
    encode_drawn(template, key, value, 0)
}

/// The same of an operation with this number.
fn encode_drawn(template: &Template, key: &[u8], value: &Value<'_>, operand: u64) -> Vec<u8> {
    let templates = Templates::new(vec![template.clone()]);
    let bound = templates.encoded_len_max(key.len()) + value.total_len();
    let mut out = Out::with_room(bound);
    let keys = Keys { bytes: key, ends: &[key.len() as u32] };
    let request = Request { value: *value, operand, ..Request::of(OpKind::Raw, keys) };
    templates.encode(&request, &mut out);
    let mut parts = [IoSlice::new(&[]); PARTS_MAX];
    let count = out.gather(value.block, &mut parts);
    parts[..count].iter().flat_map(|part| part.to_vec()).collect()
}

#[test]
fn commands_become_bytes() {
    let rows = include_str!("commands.txt").lines().filter(|line| !line.starts_with("//"));
    let rows: Vec<_> = rows.filter_map(|line| line.split_once(" => ")).collect();
    assert_eq!(rows.len(), 70);
    for (command, expected) in rows {
        let (protocol, text) = command.split_once(' ').unwrap();
        let protocol = match protocol {
            "resp" => Protocol::Resp2,
            "inline" => Protocol::RespInline,
            _ => Protocol::MemcachedText,
        };
        let value = Value { head: b"va", block: b"..lue..", offset: 2, len: 3 };
        let bytes = match Template::parse(protocol, text) {
            Ok(template) => String::from_utf8_lossy(&encode(&template, b"k1", &value)).replace("\r\n", "|"),
            Err(message) => message,
        };
        assert_eq!(bytes, String::from_utf8_lossy(&unescaped(expected)), "{text}");
    }
}

/// Numbers are drawn for each operation, apart from each other, and their lengths are those of what is sent.
#[test]
fn numbers_are_drawn_for_each_operation() {
    let framed = |protocol, text: &str, operand| {
        let template = Template::parse(protocol, text).expect(text);
        String::from_utf8(encode_drawn(&template, b"k1", &Value::NONE, operand)).expect("text")
    };
    let command = "ZADD {key} {rand:-20,200} m:{rand:7,1000}";
    let mut seen = std::collections::BTreeSet::new();
    for operand in (0..1_000_u64).map(|at| at << 32 | at) {
        let inline = framed(Protocol::RespInline, command, operand);
        let words: Vec<&str> = inline.trim_end().split(' ').collect();
        let expected: String = words.iter().map(|word| format!("${}\r\n{word}\r\n", word.len())).collect();
        assert_eq!(framed(Protocol::Resp2, command, operand), format!("*4\r\n{expected}"));
        assert_eq!(framed(Protocol::MemcachedText, command, operand), inline);
        assert_eq!(framed(Protocol::Echo, command, operand), words.join(" "));
        let (score, member) = (words[2].parse::<i64>().unwrap(), words[3].strip_prefix("m:").unwrap());
        let member: i64 = member.parse().unwrap();
        assert!((-20..=200).contains(&score) && (7..=1_000).contains(&member), "{inline}");
        seen.insert((score, member));
    }
    assert!(seen.len() > 980, "{} of 1000 are different", seen.len());
    let data = framed(Protocol::MemcachedText, "set {key} 0 0 {bytes} v{rand:10,99}", 5);
    let (line, value) = data.trim_end().split_once("\r\n").unwrap();
    assert_eq!((line, value.len()), ("set k1 0 0 3", 3));
    // A frame, a call, the name, the sequence number, field 1, the length of its text.
    let call = encode_drawn(
        &Template::parse(Protocol::Thrift, "f 1:string=u{rand:8,11}").unwrap(),
        b"",
        &Value::NONE,
        1,
    );
    assert_eq!(u32::from_be_bytes(call[..4].try_into().unwrap()) as usize, call.len() - 4);
}

#[test]
fn commands_of_memcached_are_lines_with_data() {
    let is_answered = |text| Template::parse(Protocol::MemcachedText, text).expect(text).is_answered;
    assert!(is_answered("set {key} 0 0 {bytes} noreply") && is_answered("version"));
    assert!(!is_answered("set {key} 0 0 {bytes} noreply x") && !is_answered("verbosity 1 noreply"));
    assert!(!is_answered("quit"));
}

#[test]
fn inline_words_are_quoted_where_redis_needs_it() {
    let template = Template::parse(Protocol::RespInline, "SET {key} {value}").expect("a command");
    let value = Value { head: b"\x00\n", block: b"\xff\"", offset: 0, len: 2 };
    assert_eq!(encode(&template, b"k\"", &value), b"SET \"k\\x22\" \"\\x00\\x0a\xff\\x22\"\r\n");
    // All escaped, of the longest value, is within the bound.
    let block = vec![0; INLINE_VALUE_BYTES_MAX];
    let value = Value { head: b"", block: &block, offset: 0, len: block.len() };
    assert_eq!(
        encode(&template, &[0; KEY_BYTES_MAX], &value).len(),
        "SET \"\" \"\"\r\n".len() + 4 * (250 + 4000)
    );
}

#[test]
fn quoting_follows_redis_cli() {
    let bytes = encode(
        &Template::parse(Protocol::Resp2, r#"ECHO "\xff\x00""#).expect("a command"),
        b"",
        &Value::NONE,
    );
    assert_eq!(bytes, b"*2\r\n$4\r\nECHO\r\n$2\r\n\xff\x00\r\n");
}

#[test]
fn templates_report_their_needs() {
    let table: [(&str, bool, Option<&[u8]>); 5] = [
        ("PING", false, None),
        ("HSET {key} f {value}", true, Some(b"k1")),
        ("HSET \"\\{user}:{key}\" f {value}", true, Some(b"{user}:k1")),
        ("EVAL script 1 a:{key}:b {key}", true, Some(b"a:k1:b")),
        ("PUBLISH channel {key}{value}", true, None),
    ];
    for (text, has_key, routed) in table {
        let template = Template::parse(Protocol::Resp2, text).expect(text);
        let mut written = Vec::new();
        let is_routed = template.write_routing_key(b"k1", &mut written);
        assert_eq!(template.key_uses > 0, has_key, "{text}");
        assert_eq!(is_routed.then_some(&written[..]), routed, "{text}");
    }
}

#[test]
fn large_values_and_long_keys_fit_the_bound() {
    let block: Vec<u8> = (0..10_000u32).map(|at| (at % 251) as u8).collect();
    let template = Template::parse(Protocol::Resp2, "SET {key}{key} <{value}>").expect("a command");
    for (key_len, len) in [(0, 0), (9, 100), (10, 4095), (99, 4096), (100, 9_999), (1000, 10_000)] {
        let key = vec![b'k'; key_len];
        let value = Value { head: b"head", block: &block, offset: 10_000 - len, len };
        let head = format!("*3\r\n$3\r\nSET\r\n${}\r\n", 2 * key_len);
        let middle = format!("\r\n${}\r\n<head", len + 6);
        let expected =
            [head.as_bytes(), &key, &key, middle.as_bytes(), &block[10_000 - len..], b">\r\n"].concat();
        assert!(encode(&template, &key, &value) == expected, "{key_len} {len}");
    }
}
