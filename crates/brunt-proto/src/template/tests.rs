//! Templates: commands of users, with the bytes or the message that result.

use super::*;
use crate::out::PARTS_MAX;
use crate::{Keys, Value};
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

/// The bytes of a command of Redis, or the message.
fn check(text: &str, expected: &str) {
    check_framed(Framing::Resp, text, expected);
}

/// The bytes, with `|` for line ends, for the key `k1` and the value `value`; or the message.
fn check_framed(framing: Framing, text: &str, expected: &str) {
    let value = Value { head: b"va", block: b"..lue..", offset: 2, len: 3 };
    let bytes = match Template::parse(framing, text) {
        Ok(template) => String::from_utf8_lossy(&encode(&template, b"k1", &value)).replace("\r\n", "|"),
        Err(message) => message,
    };
    assert_eq!(bytes, expected, "{text}");
}

#[test]
fn commands_become_bytes() {
    let table = [
        ("PING", "*1|$4|PING|"),
        ("HSET {key} f {value}", "*4|$4|HSET|$2|k1|$1|f|$5|value|"),
        ("  SETEX\t{key}  60 {value} ", "*4|$5|SETEX|$2|k1|$2|60|$5|value|"),
        ("GET user:{key}:name", "*2|$3|GET|$12|user:k1:name|"),
        ("COPY {key} {key}:copy", "*3|$4|COPY|$2|k1|$7|k1:copy|"),
        ("GET {key}{key}", "*2|$3|GET|$4|k1k1|"),
        ("SET {key} '{\"v\":\"{value}\"}'", "*3|$3|SET|$2|k1|$13|{\"v\":\"value\"}|"),
        ("JSON.SET {key} $ '{\"a\": {\"b\": []}}'", "*4|$8|JSON.SET|$2|k1|$1|$|$16|{\"a\": {\"b\": []}}|"),
        ("ECHO {}", "*2|$4|ECHO|$2|{}|"),
        ("ECHO {Key}", "*2|$4|ECHO|$5|{Key}|"),
        ("ECHO {key", "*2|$4|ECHO|$4|{key|"),
        ("ECHO {a:1}", "*2|$4|ECHO|$5|{a:1}|"),
        ("ECHO {{key}}", "*2|$4|ECHO|$4|{k1}|"),
        ("GET \"\\{tag}{key}\"", "*2|$3|GET|$7|{tag}k1|"),
        ("GET \"\\{key}\"", "*2|$3|GET|$5|{key}|"),
        ("GET \"\\x7bkey}\"", "*2|$3|GET|$5|{key}|"),
    ];
    for (text, expected) in table {
        check(text, expected);
    }
}

/// Numbers are drawn for each operation, apart from each other, and their lengths are those of what is sent.
#[test]
fn numbers_are_drawn_for_each_operation() {
    let framed = |framing, text: &str, operand| {
        let template = Template::parse(framing, text).expect(text);
        String::from_utf8(encode_drawn(&template, b"k1", &Value::NONE, operand)).expect("text")
    };
    let command = "ZADD {key} {rand:-20,200} m:{rand:7,1000}";
    let mut seen = std::collections::BTreeSet::new();
    for operand in (0..1_000_u64).map(|at| at << 32 | at) {
        let inline = framed(Framing::Inline, command, operand);
        let words: Vec<&str> = inline.trim_end().split(' ').collect();
        let expected: String = words.iter().map(|word| format!("${}\r\n{word}\r\n", word.len())).collect();
        assert_eq!(framed(Framing::Resp, command, operand), format!("*4\r\n{expected}"));
        assert_eq!(framed(Framing::MemcachedText, command, operand), inline);
        assert_eq!(framed(Framing::Echo, command, operand), words.join(" "));
        let (score, member) = (words[2].parse::<i64>().unwrap(), words[3].strip_prefix("m:").unwrap());
        let member: i64 = member.parse().unwrap();
        assert!((-20..=200).contains(&score) && (7..=1_000).contains(&member), "{inline}");
        seen.insert((score, member));
    }
    assert!(seen.len() > 980, "{} of 1000 are different", seen.len());
    let data = framed(Framing::MemcachedText, "set {key} 0 0 {bytes} v{rand:10,99}", 5);
    let (line, value) = data.trim_end().split_once("\r\n").unwrap();
    assert_eq!((line, value.len()), ("set k1 0 0 3", 3));
    // A frame, a call, the name, the sequence number, field 1, the length of its text.
    let call = encode_drawn(
        &Template::parse(Framing::Thrift, "f 1:string=u{rand:8,11}").unwrap(),
        b"",
        &Value::NONE,
        1,
    );
    assert_eq!(u32::from_be_bytes(call[..4].try_into().unwrap()) as usize, call.len() - 4);
}

#[test]
fn placeholders_of_other_tools_are_rejected() {
    let table = [
        ("SET __key__ x", "'SET __key__ x': __key__ is a placeholder of other tools; ours is {key}"),
        (
            "SET {key} __data__",
            "'SET {key} __data__': __data__ is a placeholder of other tools; ours is {value}",
        ),
        (
            "GET key:__rand_int__",
            "'GET key:__rand_int__': __rand_int__ is a placeholder of other tools; ours is {rand:MIN,MAX}, such as {rand:0,99999}",
        ),
        (r#"GET "\__key__""#, "*2|$3|GET|$7|__key__|"),
        ("GET {a,b}{a-b}", "*2|$3|GET|$10|{a,b}{a-b}|"),
        (
            "GET {rand:9,1}",
            "'{rand:9,1}' is no placeholder: expected {key}, {value}, {random:N} for N letters and digits, {rand:MIN,MAX} for a \
             whole number, and in memcached-text {bytes}; a plain brace is written \\{ in double quotes",
        ),
    ];
    for (text, expected) in table {
        check(text, expected);
    }
}

#[test]
fn commands_of_memcached_are_lines_with_data() {
    let accepted = "expected one line; with {bytes} in it, its last word is the data block, such as cas {key} 0 0 {bytes} 7 {value}";
    let several = "has no reply of the classic text protocol, or several, so it cannot be measured: expected commands with one \
                   reply";
    let table = [
        ("version", "version|".to_owned()),
        ("verbosity 1", "verbosity 1|".to_owned()),
        ("touch {key} 0", "touch k1 0|".to_owned()),
        ("get {key} {key}2", "get k1 k12|".to_owned()),
        ("cas {key} 0 0 {bytes} 7 {value}", "cas k1 0 0 5 7|value|".to_owned()),
        ("set {key} 0 0 {bytes} noreply <{value}>", "set k1 0 0 7 noreply|<value>|".to_owned()),
        ("set {key} 0 0 {bytes} hello", "set k1 0 0 5|hello|".to_owned()),
        ("set {key} 0 0 {bytes} ''", "set k1 0 0 0||".to_owned()),
        ("set {key} 0 0 3 {value}", format!("'set {{key}} 0 0 3 {{value}}': {accepted}")),
        ("set {key} 0 0 {bytes}", format!("'set {{key}} 0 0 {{bytes}}': {accepted}")),
        (r#"get "a\r\nquit""#, format!(r#"'get "a\r\nquit"': {accepted}"#)),
        ("watch", format!("'watch': watch {several}")),
        ("MG {key} v", format!("'MG {{key}} v': MG {several}")),
    ];
    for (text, expected) in table {
        check_framed(Framing::MemcachedText, text, &expected);
    }
    let is_answered = |text| Template::parse(Framing::MemcachedText, text).expect(text).is_answered;
    assert!(is_answered("set {key} 0 0 {bytes} noreply") && is_answered("version"));
    assert!(!is_answered("set {key} 0 0 {bytes} noreply x") && !is_answered("verbosity 1 noreply"));
    assert!(!is_answered("quit"));
}

#[test]
fn inline_words_are_quoted_where_redis_needs_it() {
    let table = [
        ("HSET {key} f {value}", "HSET k1 f value|"),
        ("SET {key} <{value}>", "SET k1 <value>|"),
        ("ECHO 'a b'", "ECHO \"a b\"|"),
        ("ECHO ''", "ECHO \"\"|"),
        (r#"ECHO "\x00\r\n\"\\""#, r#"ECHO "\x00\x0d\x0a\x22\x5c"|"#),
        ("SET {key} 'a {value}'", "SET k1 \"a value\"|"),
        (
            "QUIT",
            "'QUIT': after QUIT a connection does not answer each request once, so it cannot be measured: expected commands \
                  with one reply",
        ),
    ];
    for (text, expected) in table {
        check_framed(Framing::Inline, text, expected);
    }
    let template = Template::parse(Framing::Inline, "SET {key} {value}").expect("a command");
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
    // Each line was given to redis-cli 7.0.15 behind ECHO too, with the same outcome.
    let table = [
        (r#"ECHO "a b""#, "*2|$4|ECHO|$3|a b|"),
        (r#"ECHO 'a b'"#, "*2|$4|ECHO|$3|a b|"),
        (r#"ECHO ''"#, "*2|$4|ECHO|$0||"),
        (r#"ECHO """#, "*2|$4|ECHO|$0||"),
        (r#"ECHO x'y z'"#, "*2|$4|ECHO|$4|xy z|"),
        (r#"ECHO foo"bar" x"#, "*3|$4|ECHO|$6|foobar|$1|x|"),
        (r#"ECHO "a\x41\n\{b}""#, "*2|$4|ECHO|$6|aA\n{b}|"),
        (r#"ECHO "\r\t\b\a\\\"\q\x4g""#, "*2|$4|ECHO|$10|\r\t\u{8}\u{7}\\\"qx4g|"),
        (r#"ECHO 'it\'s'"#, "*2|$4|ECHO|$4|it's|"),
        (r#"ECHO 'a\n'"#, r"*2|$4|ECHO|$3|a\n|"),
        (r"ECHO \n", r"*2|$4|ECHO|$2|\n|"),
        (
            r#"ECHO a"b"c"#,
            "'ECHO a\"b\"c', at 'a\"b\"c': a closing quote is not followed by a blank: expected quotes around whole words",
        ),
        (
            r#"ECHO "ab"c"#,
            "'ECHO \"ab\"c', at '\"ab\"c': a closing quote is not followed by a blank: expected quotes around whole words",
        ),
        (r#"ECHO "a"#, "'ECHO \"a', at '\"a': a quote is not closed: expected 'TEXT' or \"TEXT\""),
        (r#"ECHO "a\"#, "'ECHO \"a\\', at '\"a\\': a quote is not closed: expected 'TEXT' or \"TEXT\""),
        (r"ECHO 'a\'", "'ECHO 'a\\'', at ''a\\'': a quote is not closed: expected 'TEXT' or \"TEXT\""),
    ];
    for (text, expected) in table {
        check(text, expected);
    }
    let bytes =
        encode(&Template::parse(Framing::Resp, r#"ECHO "\xff\x00""#).expect("a command"), b"", &Value::NONE);
    assert_eq!(bytes, b"*2\r\n$4\r\nECHO\r\n$2\r\n\xff\x00\r\n");
}

#[test]
fn unmeasurable_commands_are_refused() {
    let one_reply = "a connection does not answer each request once, so it cannot be measured: expected commands with one reply";
    let table = [
        ("", "empty command: expected a command, e.g. HSET {key} f {value}".to_owned()),
        (" \t ", "empty command: expected a command, e.g. HSET {key} f {value}".to_owned()),
        ("{key} x", "'{key} x' begins with a placeholder or with nothing; it must begin with a command".to_owned()),
        ("x{key} x", "'x{key} x' begins with a placeholder or with nothing; it must begin with a command".to_owned()),
        (
            "GET {keys}",
            "'{keys}' is no placeholder: expected {key}, {value}, {random:N} for N letters and digits, {rand:MIN,MAX} for a whole number, and in memcached-text \
             {bytes}; a plain brace is written \\{ in double quotes"
                .to_owned(),
        ),
        (
            "MSET {key} {value} {key}2 {value}",
            "'MSET {key} {value} {key}2 {value}' has {value} 2 times: expected once, or not at all".to_owned(),
        ),
        ("ECHO {random}", "'ECHO {random}': {random} has a length, such as {random:8} for 8 letters and digits".to_owned()),
        ("ECHO {bytes}", "'ECHO {bytes}': only --protocol memcached-text has {bytes}".to_owned()),
        ("subscribe {key}", format!("'subscribe {{key}}': after subscribe {one_reply}")),
        ("MONITOR", format!("'MONITOR': after MONITOR {one_reply}")),
        ("CLIENT reply off", format!("'CLIENT reply off': after CLIENT {one_reply}")),
    ];
    for (text, expected) in table {
        check(text, &expected);
    }
    check("CLIENT ID", "*2|$6|CLIENT|$2|ID|");
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
        let template = Template::parse(Framing::Resp, text).expect(text);
        let mut written = Vec::new();
        let is_routed = template.write_routing_key(b"k1", &mut written);
        assert_eq!(template.key_uses > 0, has_key, "{text}");
        assert_eq!(is_routed.then_some(&written[..]), routed, "{text}");
    }
}

#[test]
fn large_values_and_long_keys_fit_the_bound() {
    let block: Vec<u8> = (0..10_000u32).map(|at| (at % 251) as u8).collect();
    let template = Template::parse(Framing::Resp, "SET {key}{key} <{value}>").expect("a command");
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
