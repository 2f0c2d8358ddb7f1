//! Protocols whose only operation is a message: echo, ping and Thrift calls.
//!
//! What a message is, its template says; here it is sent, and its reply framed and checked:
//!
//! - Echo: a payload, its CRC-32 with the highest byte first, and a line end; the reply is the same bytes.
//! - Ping: `PING`; the reply is `PONG` or `+PONG`. A line that begins with `-` is an error, as Redis writes them.
//! - Thrift: a length in four bytes, the highest first, and the bytes of a call; the reply is framed alike. One whose type is that of
//!   an exception is an error; nothing else of it is looked at.
//!
//! One type speaks all three, chosen at
//! run time: none of them has more than a comparison to do for a reply. Replies come in the order of the requests. Every
//! decision is taken at the same byte wherever the input is cut.

use crate::out::Out;
use crate::pairs::Pairs;
use crate::step::{BAD_NUMBER, LINE_END, Step, Stop, UNKNOWN, as_event};
use crate::template::{ECHO_TAIL_BYTES, Templates};
use crate::{Codec, Encoded, Event, Form, Malformed, Matching, Request};
use brunt_plan::op::OpKind::{self, Raw};
use brunt_plan::outcome::ReplyKind;
use brunt_plan::plan::Protocol;
use memchr::memchr;
use std::collections::VecDeque;

/// The codec of these protocols: the parse state of one connection.
///
/// What the [`Codec`] contract leaves open: `Begin` uses up no bytes, and bytes between it and `End` are `Control`. The `End` of an
/// echo that is not what was sent is an error reply: its length is known, so the connection goes on. After `Bad` the codec uses
/// up nothing and says nothing more.
#[derive(Debug)]
pub struct MessageCodec {
    protocol: Protocol,
    expects: Expects,
    templates: Templates,
    /// Echoes that are to come, in order; the memory for them is taken at the start.
    expected_echoes: VecDeque<ExpectedEcho>,
    /// Of the bytes of the echo that is being read.
    hasher: crc32fast::Hasher,
}

/// What an echo must be.
#[derive(Clone, Copy, Debug)]
struct ExpectedEcho {
    /// Bytes of its payload.
    len: u32,
    checksum: u32,
}

/// What the next byte belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Expects {
    /// A reply of which no byte is here.
    Reply,
    /// Its front.
    Front,
    /// The payload of an echo, of which this many bytes are still to come, then its tail.
    Echo { remaining: u32 },
    /// The rest of a frame, of which this many bytes, at least one, are still to come.
    Frame { remaining: u32, is_exception: bool },
    /// Nothing: the bytes were malformed.
    Nothing,
}

const OK: Form = Form(0);
const ERROR: Form = Form(1);

static PAIRS: Pairs<2> = Pairs::of(&[(&[Raw], OK, ReplyKind::Ok), (&OpKind::ALL, ERROR, ReplyKind::Error)]);

/// The longest line of a reply to a ping, its end included.
const LINE_BYTES_MAX: usize = 1024;
/// The longest frame that is waited for: what Thrift's own transports refuse by default is a quarter of it.
const FRAME_BYTES_MAX: u32 = 1 << 30;
/// The length of a frame.
const LENGTH_BYTES: usize = 4;
/// What a frame with an exception begins with: version 1, a byte that is not used, and the type.
const EXCEPTION: (u8, u8, u8) = (0x80, 0x01, 3);

impl Clone for MessageCodec {
    fn clone(&self) -> Self {
        let mut expected_echoes = VecDeque::with_capacity(self.expected_echoes.capacity());
        expected_echoes.extend(&self.expected_echoes);
        Self { templates: self.templates.clone(), expected_echoes, hasher: self.hasher.clone(), ..*self }
    }

    /// Without memory being taken: connections begin anew while a run is going on.
    fn clone_from(&mut self, source: &Self) {
        (self.protocol, self.expects) = (source.protocol, source.expects);
        self.templates.clone_from(&source.templates);
        self.expected_echoes.clone_from(&source.expected_echoes);
        self.hasher.clone_from(&source.hasher);
    }
}

impl MessageCodec {
    /// The codec of a connection on which nothing has been sent and on which this many requests wait for replies at most, for a
    /// plan with these templates, in one of these protocols.
    pub fn new(protocol: Protocol, templates: Templates, waiting_max: usize) -> Self {
        let room = if protocol == Protocol::Echo { waiting_max } else { 0 };
        Self {
            protocol,
            expects: Expects::Reply,
            templates,
            expected_echoes: VecDeque::with_capacity(room),
            hasher: crc32fast::Hasher::new(),
        }
    }
}

impl Codec for MessageCodec {
    const MATCHING: Matching = Matching::Fifo;

    const UNIT_BYTES_MAX: usize = LINE_BYTES_MAX;

    /// No reply is a value.
    const FOUND: Form = ERROR;

    fn encoded_len_max(&self, _keys: usize, key_bytes: usize, value_bytes: usize) -> usize {
        self.templates.encoded_len_max(key_bytes) + value_bytes + ECHO_TAIL_BYTES
    }

    /// # Panics
    ///
    /// If the kind is another one, or if there is no such template: a plan that asks for them is refused.
    fn encode(&mut self, request: &Request<'_>, out: &mut Out) -> Encoded {
        assert!(request.kind == Raw, "a plan with {} is refused here", request.kind);
        self.templates.encode(request, out);
        if self.protocol == Protocol::Echo {
            let (checksum, len) = self.templates.checksum(request);
            out.put(&checksum.to_be_bytes());
            out.put(LINE_END);
            self.expected_echoes.push_back(ExpectedEcho { len: len as u32, checksum });
        }
        Encoded { wire_requests: 1, replied: true }
    }

    fn decode_any<'a>(&mut self, input: &'a [u8]) -> (usize, Option<Event<'a>>) {
        let step = match self.expects {
            Expects::Reply => {
                self.expects = Expects::Front;
                return (0, Some(Event::Begin));
            }
            Expects::Front => match self.protocol {
                Protocol::Echo => self.echo_front(input),
                Protocol::Ping => self.line(input),
                _ => self.frame_front(input),
            },
            Expects::Echo { remaining } => self.echo(input, remaining),
            Expects::Frame { remaining, is_exception } => Ok(self.frame(input, remaining, is_exception)),
            Expects::Nothing => return (0, None),
        };
        as_event(step, || self.expects = Expects::Nothing)
    }

    fn meaning(&self, kind: OpKind, reply: ReplyKind, form: Form) -> Option<ReplyKind> {
        PAIRS.meaning(kind, reply, form)
    }
}

impl MessageCodec {
    /// Closes the reply: a success, or an error with this text.
    fn end<'a>(&mut self, fault: Option<&'static [u8]>) -> Event<'a> {
        self.expects = Expects::Reply;
        let (reply, form) = if fault.is_some() { (ReplyKind::Error, ERROR) } else { (ReplyKind::Ok, OK) };
        Event::End { reply, form, number: 0, token: 0, text: fault.unwrap_or_default() }
    }

    /// Reads the line that answers a ping.
    fn line<'a>(&mut self, input: &'a [u8]) -> Step<(usize, Event<'a>)> {
        for pong in [&b"PONG\r\n"[..], b"+PONG\r\n"] {
            if input.starts_with(pong) {
                return Ok((pong.len(), self.end(None)));
            }
            if pong.starts_with(input) {
                return Err(Stop::Short);
            }
        }
        if input[0] != b'-' {
            return Err(UNKNOWN);
        }
        let line = &input[..input.len().min(LINE_BYTES_MAX)];
        match memchr(b'\n', line) {
            Some(feed) => {
                let text = line[..feed].strip_suffix(b"\r").ok_or(UNKNOWN)?;
                self.expects = Expects::Reply;
                let reply = ReplyKind::Error;
                Ok((feed + 1, Event::End { reply, form: ERROR, number: 0, token: 0, text }))
            }
            None if line.len() == LINE_BYTES_MAX => Err(Stop::Bad(Malformed::LineTooLong)),
            None => Err(Stop::Short),
        }
    }

    /// The echo that comes next: how long it is, is known.
    fn echo_front<'a>(&mut self, input: &'a [u8]) -> Step<(usize, Event<'a>)> {
        let len = self.expected_echoes.front().ok_or(UNKNOWN)?.len;
        self.hasher.reset();
        self.expects = Expects::Echo { remaining: len };
        self.echo(input, len)
    }

    /// Reads some of a payload, or what is behind it.
    fn echo<'a>(&mut self, input: &'a [u8], remaining: u32) -> Step<(usize, Event<'a>)> {
        if remaining > 0 {
            let piece = &input[..input.len().min(remaining as usize)];
            self.hasher.update(piece);
            self.expects = Expects::Echo { remaining: remaining - piece.len() as u32 };
            return Ok((piece.len(), Event::Control(piece)));
        }
        let tail = input.first_chunk::<ECHO_TAIL_BYTES>().ok_or(Stop::Short)?;
        let [b0, b1, b2, b3, line_end @ ..] = *tail;
        if line_end != *LINE_END {
            return Err(Stop::Bad(Malformed::ValueNotTerminated));
        }
        let sent = self.expected_echoes.pop_front().ok_or(UNKNOWN)?;
        let checksum = self.hasher.clone().finalize();
        let fault: Option<&[u8]> = if checksum != u32::from_be_bytes([b0, b1, b2, b3]) {
            Some(b"the CRC-32 is not that of the payload")
        } else if checksum != sent.checksum {
            Some(b"another payload than was sent")
        } else {
            None
        };
        Ok((tail.len(), self.end(fault)))
    }

    /// Reads the length of a frame and what its message begins with.
    fn frame_front<'a>(&mut self, input: &'a [u8]) -> Step<(usize, Event<'a>)> {
        let (length, rest) = input.split_first_chunk::<LENGTH_BYTES>().ok_or(Stop::Short)?;
        let length = u32::from_be_bytes(*length);
        if length > FRAME_BYTES_MAX {
            return Err(BAD_NUMBER);
        }
        let kind = rest.get(..4.min(length as usize)).ok_or(Stop::Short)?;
        let used = LENGTH_BYTES + kind.len();
        let is_exception = matches!(*kind, [b0, b1, _, kind] if (b0, b1, kind) == EXCEPTION);
        let remaining = length - kind.len() as u32;
        if remaining == 0 {
            return Ok((used, self.end(fault_of(is_exception))));
        }
        self.expects = Expects::Frame { remaining, is_exception };
        Ok((used, Event::Control(&input[..used])))
    }

    /// Passes over the rest of a frame; its last byte is its end.
    fn frame<'a>(&mut self, input: &'a [u8], remaining: u32, is_exception: bool) -> (usize, Event<'a>) {
        if remaining == 1 {
            return (1, self.end(fault_of(is_exception)));
        }
        let piece = &input[..input.len().min(remaining as usize - 1)];
        self.expects = Expects::Frame { remaining: remaining - piece.len() as u32, is_exception };
        (piece.len(), Event::Control(piece))
    }
}

fn fault_of(is_exception: bool) -> Option<&'static [u8]> {
    is_exception.then_some(b"the server replied with a Thrift exception")
}

#[cfg(test)]
mod tests;
