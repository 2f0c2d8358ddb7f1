//! Echo, ping and Thrift calls, from the server's side: bytes to messages, and their replies.
//!
//! Nothing is stored: every message is numbered and served as a get. Which of these a connection speaks is an option, because its
//! first bytes do not tell. Invariant: a message is seen whole or not at all, wherever the input is cut.

use crate::cache::ValueContent;
use crate::command_context::{CommandContext, INJECTED, push_value};
use crate::grammar::{self, Parsed};
use crc32fast::Hasher;
use memchr::memchr_iter;

/// What is behind the payload of an echo: its CRC-32, highest byte first, and a line end.
const TAIL_BYTES: usize = 6;
/// Bytes by which a message may be longer than the longest value.
const BYTES_BESIDE_VALUE: u64 = 64 << 10;
/// The longest line that is no ping, without its line feed.
const LINE_BYTES_MAX: usize = 1023;
const LINE_TOO_LONG: &[u8] = b"-ERR line too long\r\n";

/// What the front of a message of Thrift's is, in the version and with the types of a call, a reply and an exception.
const THRIFT_CALL: [u8; 4] = [0x80, 0x01, 0x00, 0x01];
const THRIFT_REPLY: [u8; 4] = [0x80, 0x01, 0x00, 0x02];
const THRIFT_EXCEPTION: [u8; 4] = [0x80, 0x01, 0x00, 0x03];
/// The field of an exception with its message: a string with the id 1.
const THRIFT_MESSAGE_FIELD: [u8; 3] = [11, 0, 1];

/// A message as it was read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Message<'a> {
    /// The payload of one whose checksum is right.
    Echo(&'a [u8]),
    /// The line `PING`.
    Ping,
    /// Any other line.
    Unknown,
    /// A call: the length and name of its method, and its sequence number, as they are sent back.
    Call(&'a [u8]),
}

/// Reads an echo: it ends with the first line end before which there is the checksum of all that is before that.
pub(crate) fn echo(input: &[u8], value_bytes_max: u64) -> Parsed<Message<'_>> {
    let (mut sum, mut summed) = (Hasher::new(), 0);
    let len_max = value_bytes_max.saturating_add(BYTES_BESIDE_VALUE);
    let is_too_long = input.len() as u64 > len_max;
    let searched = if is_too_long { &input[..=len_max as usize] } else { input };
    for feed in memchr_iter(b'\n', searched) {
        let Some(len) = (feed + 1).checked_sub(TAIL_BYTES) else { continue };
        let (payload, tail) = input[..=feed].split_at(len);
        if tail[4] != b'\r' {
            continue;
        }
        sum.update(&payload[summed..]);
        summed = len;
        if tail[..4] == sum.clone().finalize().to_be_bytes() {
            return Parsed::Complete { used: feed + 1, request: Message::Echo(payload) };
        }
    }
    if is_too_long { Parsed::Broken(b"") } else { Parsed::Partial { need: input.len() + 1 } }
}

/// Reads a line.
pub(crate) fn ping(input: &[u8]) -> Parsed<Message<'_>> {
    match grammar::line(input, LINE_BYTES_MAX, LINE_TOO_LONG) {
        Ok((_, used)) => {
            let is_ping = &input[..used] == b"PING\r\n";
            Parsed::Complete { used, request: if is_ping { Message::Ping } else { Message::Unknown } }
        }
        Err(parsed) => parsed,
    }
}

/// Reads a frame with a call.
pub(crate) fn thrift(input: &[u8], value_bytes_max: u64) -> Parsed<Message<'_>> {
    let Some((length, rest)) = input.split_first_chunk() else { return Parsed::Partial { need: 4 } };
    let length = u32::from_be_bytes(*length);
    if u64::from(length) > value_bytes_max.saturating_add(BYTES_BESIDE_VALUE) {
        return Parsed::Broken(b"");
    }
    let used = 4 + length as usize;
    let Some(frame) = rest.get(..length as usize) else { return Parsed::Partial { need: used } };
    let Some(rest) = frame.strip_prefix(&THRIFT_CALL) else { return Parsed::Broken(b"") };
    let name_bytes = rest.first_chunk().map(|len| u32::from_be_bytes(*len) as usize);
    // Behind the name there are the sequence number and at least the end of the arguments.
    match name_bytes.and_then(|len| rest.get(..len.checked_add(8)?)) {
        Some(head) if head.len() < rest.len() && rest.ends_with(&[0]) => {
            Parsed::Complete { used, request: Message::Call(head) }
        }
        _ => Parsed::Broken(b""),
    }
}

impl Message<'_> {
    /// Does it take service time?
    pub(crate) const fn is_data(&self) -> bool {
        !matches!(self, Self::Unknown)
    }

    /// The reply.
    pub(crate) fn answer(&self, context: &mut CommandContext<'_>) {
        match self {
            Self::Echo(payload) => {
                let checksum = crc32fast::hash(payload);
                context.value_bytes += push_value(context.out, payload, context.value_content);
                put_tail(context.out, checksum);
            }
            Self::Ping => context.put(b"PONG\r\n"),
            Self::Unknown => context.put(b"-ERR unknown command\r\n"),
            Self::Call(head) => put_frame(context.out, THRIFT_REPLY, head, &[]),
        }
    }

    /// The reply to one that a script refuses. An echo has no words for that: its checksum is wrong.
    pub(crate) fn refuse(&self, context: &mut CommandContext<'_>) {
        match self {
            Self::Echo(payload) => {
                push_value(context.out, payload, ValueContent::AsStored);
                put_tail(context.out, !crc32fast::hash(payload));
            }
            Self::Ping | Self::Unknown => {
                context.put(b"-ERR ");
                context.put(INJECTED);
                context.put(b"\r\n");
            }
            Self::Call(head) => {
                let len = (INJECTED.len() as u32).to_be_bytes();
                put_frame(context.out, THRIFT_EXCEPTION, head, &[&THRIFT_MESSAGE_FIELD, &len, INJECTED]);
            }
        }
    }
}

fn put_tail(out: &mut Vec<u8>, checksum: u32) {
    out.extend_from_slice(&checksum.to_be_bytes());
    out.extend_from_slice(b"\r\n");
}

/// A frame with a struct of these fields.
fn put_frame(out: &mut Vec<u8>, kind: [u8; 4], head: &[u8], fields: &[&[u8]]) {
    let fields_bytes: usize = fields.iter().map(|field| field.len()).sum();
    let length = kind.len() + head.len() + fields_bytes + 1;
    out.extend_from_slice(&(length as u32).to_be_bytes());
    out.extend_from_slice(&kind);
    out.extend_from_slice(head);
    fields.iter().for_each(|field| out.extend_from_slice(field));
    out.push(0);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn echoes_end_at_a_matching_checksum() {
        let golden = b"123456789\xcb\xf4\x39\x26\r\n";
        let whole = Parsed::Complete { used: golden.len(), request: Message::Echo(b"123456789") };
        assert_eq!(echo(golden, 100), whole);
        assert_eq!(echo(&[&golden[..], b"more\r\n"].concat(), 100), whole);
        for cut in 0..golden.len() {
            assert_eq!(echo(&golden[..cut], 100), Parsed::Partial { need: cut + 1 });
        }
        // Line ends within the payload are of it.
        let mut payload = b"a\r\nb\r\n1234\r\n".to_vec();
        let checksum = crc32fast::hash(&payload);
        let len = payload.len();
        put_tail(&mut payload, checksum);
        let message = Message::Echo(&payload[..len]);
        assert_eq!(echo(&payload, 100), Parsed::Complete { used: len + 6, request: message });
        assert_eq!(echo(b"\0\0\0\0\r\n", 100), Parsed::Complete { used: 6, request: Message::Echo(b"") });
        // Too long, whether its end has come or not.
        let mut long = vec![b'x'; (64 << 10) + 101];
        assert_eq!(echo(&long, 100), Parsed::Broken(b""));
        let checksum = crc32fast::hash(&long);
        put_tail(&mut long, checksum);
        assert_eq!(echo(&long, 100), Parsed::Broken(b""));
    }

    #[test]
    fn ping_lines() {
        let table = [
            (&b"PING\r\nPING"[..], Parsed::Complete { used: 6, request: Message::Ping }),
            (b"ping\r\n", Parsed::Complete { used: 6, request: Message::Unknown }),
            (b"PING\n", Parsed::Complete { used: 5, request: Message::Unknown }),
            (b"PING\r", Parsed::Partial { need: 6 }),
        ];
        for (input, expected) in table {
            assert_eq!(ping(input), expected, "{}", input.escape_ascii());
        }
        // Whether its end has come or not.
        let mut long = vec![b'x'; LINE_BYTES_MAX + 1];
        assert_eq!(ping(&long), Parsed::Broken(LINE_TOO_LONG));
        long.push(b'\n');
        assert_eq!(ping(&long), Parsed::Broken(LINE_TOO_LONG));
        assert_eq!(
            ping(&long[1..]),
            Parsed::Complete { used: LINE_BYTES_MAX + 1, request: Message::Unknown }
        );
    }

    #[test]
    fn thrift_calls_are_whole_frames() {
        let call = b"\0\0\0\x11\x80\x01\0\x01\0\0\0\x04ping\0\0\0\x07\0";
        let message = Message::Call(b"\0\0\0\x04ping\0\0\0\x07");
        assert_eq!(thrift(call, 0), Parsed::Complete { used: call.len(), request: message });
        for cut in 0..call.len() {
            let need = if cut < 4 { 4 } else { call.len() };
            assert_eq!(thrift(&call[..cut], 0), Parsed::Partial { need }, "{cut}");
        }
        for broken in [
            &b"\0\0\0\x11\x80\x01\0\x02\0\0\0\x04ping\0\0\0\0\0"[..],
            b"\0\0\0\x11\x80\x01\0\x01\0\0\0\x05ping\0\0\0\0\0",
            b"\0\0\0\x11\x80\x01\0\x01\xff\xff\xff\xffping\0\0\0\0\0",
            b"\0\0\0\x11\x80\x01\0\x01\0\0\0\x04ping\0\0\0\0\x01",
            b"\0\0\0\0",
            b"\xff\xff\xff\xff",
        ] {
            assert_eq!(thrift(broken, 0), Parsed::Broken(b""), "{}", broken.escape_ascii());
        }
    }
}
