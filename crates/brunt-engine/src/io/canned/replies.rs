//! Canned replies of the protocols that only tests let the worker speak here.
//!
//! Invariant: whatever the protocol, a get of the data set is answered with the value that was stored.

use super::{Replies, Stock, decimal, first_line};
use brunt_plan::plan::Protocol;

/// Replies of Redis to SET and HELLO.
const OK: &[u8] = b"+OK\r\n";
const HELLO: &[u8] = b"%1\r\n$5\r\nproto\r\n:3\r\n";
/// A frame of Thrift's with an empty result and nothing else.
const THRIFT_REPLY: [u8; 5] = [0, 0, 0, 1, 0];

/// memcached's binary protocol: what every frame begins with, and the opcodes that are answered here.
const HEADER_BYTES: usize = 24;
const GET: u8 = 0x00;
const SET: u8 = 0x01;
const NOOP: u8 = 0x0a;
const GETKQ: u8 = 0x0d;

/// What precedes the value in the reply to a get of this key with a value of this length.
type Head = fn(&[u8], usize) -> Vec<u8>;

impl Replies {
    /// Those of this protocol.
    pub(crate) fn of(protocol: Protocol) -> Self {
        let (answer, head): (super::Answer, Head) = match protocol {
            Protocol::MemcachedText => return Self::TEXT,
            // The flags are before the line end.
            Protocol::MemcachedMeta => (answer_meta, |_, len| format!("VA {len}\r\n").into_bytes()),
            Protocol::MemcachedBinary => (answer_binary, |_, _| Vec::new()),
            Protocol::Resp2 | Protocol::Resp3 => (answer_resp, resp_head),
            Protocol::RespInline => (answer_inline, resp_head),
            // Nothing is held there.
            Protocol::Echo => (answer_echo, |_, _| Vec::new()),
            Protocol::Ping => (answer_ping, |_, _| Vec::new()),
            Protocol::Thrift => (answer_thrift, |_, _| Vec::new()),
        };
        Self { answer, head }
    }
}

fn resp_head(_: &[u8], len: usize) -> Vec<u8> {
    format!("${len}\r\n").into_bytes()
}

fn answer_echo<'a>(_: &Stock, bytes: &'a [u8], replies: &mut Vec<u8>) -> &'a [u8] {
    replies.extend_from_slice(bytes);
    &[]
}

fn answer_ping<'a>(_: &Stock, bytes: &'a [u8], replies: &mut Vec<u8>) -> &'a [u8] {
    replies.extend_from_slice(b"PONG\r\n");
    first_line(bytes).1
}

fn answer_thrift<'a>(_: &Stock, bytes: &'a [u8], replies: &mut Vec<u8>) -> &'a [u8] {
    replies.extend_from_slice(&THRIFT_REPLY);
    let (length, rest) = bytes.split_first_chunk().expect("requests are whole");
    &rest[u32::from_be_bytes(*length) as usize..]
}

/// Answers as a Redis that is sent inline commands.
fn answer_inline<'a>(stock: &Stock, bytes: &'a [u8], replies: &mut Vec<u8>) -> &'a [u8] {
    let (line, rest) = first_line(bytes);
    let words = line.split(|byte| *byte == b' ');
    answer_command(stock, words.clone().count(), words, replies);
    rest
}

/// Answers as a Redis.
fn answer_resp<'a>(stock: &Stock, bytes: &'a [u8], replies: &mut Vec<u8>) -> &'a [u8] {
    let mut words = Words::of(bytes);
    answer_command(stock, words.left, words.by_ref(), replies);
    words.by_ref().for_each(drop);
    words.rest
}

/// Answers a command of Redis in this many words.
fn answer_command<'a>(
    stock: &Stock,
    count: usize,
    mut words: impl Iterator<Item = &'a [u8]>,
    replies: &mut Vec<u8>,
) {
    match words.next().expect("a command has a name") {
        name @ (b"GET" | b"MGET") => {
            if name == b"MGET" {
                replies.extend_from_slice(format!("*{}\r\n", count - 1).as_bytes());
            }
            words.for_each(|key| replies.extend_from_slice(stock.reply(key)));
        }
        b"SET" => replies.extend_from_slice(OK),
        b"HELLO" => replies.extend_from_slice(HELLO),
        name => panic!("only GET, MGET, SET and HELLO are answered here, not {}", name.escape_ascii()),
    }
}

/// Answers as a memcached that is asked by meta commands. Flags that ask come in the order in which they are answered, and the last
/// one is an opaque.
fn answer_meta<'a>(stock: &Stock, bytes: &'a [u8], replies: &mut Vec<u8>) -> &'a [u8] {
    let (line, rest) = first_line(bytes);
    let mut words = line.split(|byte| *byte == b' ');
    let command = words.next();
    let (key, opaque) = (words.next().unwrap_or_default(), words.next_back().unwrap_or_default());
    match command {
        Some(b"mg") => {
            let reply = stock.reply(key);
            let (head, value) = reply.split_at(first_line(reply).0.len());
            replies.extend_from_slice(head);
            if words.next() == Some(b"k") {
                replies.extend_from_slice(b" k");
                replies.extend_from_slice(key);
            }
            replies.extend_from_slice(b" f0 ");
            replies.extend_from_slice(opaque);
            replies.extend_from_slice(value);
        }
        Some(b"ms") => {
            replies.extend_from_slice(b"HD ");
            replies.extend_from_slice(opaque);
            replies.extend_from_slice(b"\r\n");
            return &rest[words.next().map_or(0, decimal) + 2..];
        }
        Some(b"mn") => replies.extend_from_slice(b"MN\r\n"),
        _ => panic!("only mg, ms and mn are answered here, not {}", line.escape_ascii()),
    }
    rest
}

/// Answers as a memcached that is asked in its binary protocol.
fn answer_binary<'a>(stock: &Stock, bytes: &'a [u8], replies: &mut Vec<u8>) -> &'a [u8] {
    let (header, rest) = bytes.split_first_chunk::<HEADER_BYTES>().expect("requests are whole");
    let [_, opcode, k0, k1, extras_len, _, _, _, b0, b1, b2, b3, token @ ..] = *header;
    let (body, rest) = rest.split_at(u32::from_be_bytes([b0, b1, b2, b3]) as usize);
    let key = &body[usize::from(extras_len)..][..usize::from(u16::from_be_bytes([k0, k1]))];
    // What is held ends with a line end.
    let value = || stock.reply(key).strip_suffix(b"\r\n").expect("every value has a line end");
    let (flags, named, value): (&[u8], &[u8], &[u8]) = match opcode {
        GET => (&[0; 4], &[], value()),
        GETKQ => (&[0; 4], key, value()),
        SET | NOOP => (&[], &[], &[]),
        opcode => panic!("only GET, GETKQ, SET and NOOP are answered here, not {opcode:#04x}"),
    };
    let body_len = (flags.len() + named.len() + value.len()) as u32;
    replies.extend_from_slice(&[0x81, opcode]);
    replies.extend_from_slice(&(named.len() as u16).to_be_bytes());
    replies.extend_from_slice(&[flags.len() as u8, 0, 0, 0]);
    replies.extend_from_slice(&body_len.to_be_bytes());
    // The cas unique repeats the request's opaque; it is not checked.
    replies.extend_from_slice(&token);
    [flags, named, value].iter().for_each(|part| replies.extend_from_slice(part));
    rest
}

/// The words of a command of Redis's protocol, one after the other.
struct Words<'a> {
    /// Bytes after the last word.
    rest: &'a [u8],
    /// How many are still to come.
    left: usize,
}

impl<'a> Words<'a> {
    /// Those of the command at the front.
    fn of(bytes: &'a [u8]) -> Self {
        let (left, rest) = Self::number(bytes, b'*');
        Self { rest, left }
    }

    /// The number of the first line, which begins with `sort`, and the bytes after the line.
    fn number(bytes: &'a [u8], sort: u8) -> (usize, &'a [u8]) {
        let end = bytes.iter().position(|byte| *byte == b'\r').expect("requests are whole");
        assert_eq!(bytes[0], sort, "a command is an array of bulk strings");
        (decimal(&bytes[1..end]), &bytes[end + 2..])
    }
}

impl<'a> Iterator for Words<'a> {
    type Item = &'a [u8];

    fn next(&mut self) -> Option<&'a [u8]> {
        self.left = self.left.checked_sub(1)?;
        let (len, rest) = Self::number(self.rest, b'$');
        self.rest = &rest[len + 2..];
        Some(&rest[..len])
    }
}
