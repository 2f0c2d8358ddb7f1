//! What a codec says of a stream, as text, for tests: one phrase an event, the pieces of a value joined.
//!
//! Invariant: equal streams give equal phrases, however they were cut, if the codec keeps the contract; and what can be
//! checked of the contract without knowing the protocol is checked on the way.

use crate::out::{Out, PARTS_MAX};
use crate::{Codec, Encoded, Event, Form, Keys, NO_TOKEN, Recache, Request, Value};
use brunt_plan::op::OpKind;
use brunt_plan::outcome::ReplyKind;
use proptest::prelude::{Strategy, any, prop};
use proptest::prop_oneof;
use std::io::IoSlice;

/// The token of every request in a table: no two of its bytes are equal.
pub(crate) const TOKEN: u32 = 0x0a0b_0c2a;

pub(crate) fn request<'a>(kind: OpKind, keys: Keys<'a>, value: Value<'a>) -> Request<'a> {
    Request { value, token: TOKEN, ..Request::of(kind, keys) }
}

pub(crate) const ONE: Keys<'static> = Keys { bytes: b"key", ends: &[3] };
pub(crate) const THREE: Keys<'static> = Keys { bytes: b"keynonenum", ends: &[3, 7, 10] };
/// A key that is no word.
pub(crate) const ODD: Keys<'static> = Keys { bytes: b"a \0\xff", ends: &[4] };
/// Its pieces are joined to "head".
pub(crate) const HEAD: Value<'static> = Value { head: b"he", block: b"..ad..", offset: 2, len: 2 };
pub(crate) const TEN: Value<'static> = Value { head: b"10", block: b"", offset: 0, len: 0 };

/// Requests, each with what a server is to be left with by those before it: every kind aloud, with the outcomes that it can
/// have, then every kind without a reply. The golden files have their bytes and what memcached answered.
pub(crate) fn requests() -> Vec<Request<'static>> {
    let plain = |kind| request(kind, ONE, Value::NONE);
    let store = |kind| Request { flags: 7, ttl_s: 600, ..request(kind, ONE, HEAD) };
    let number = Keys { bytes: b"num", ends: &[3] };
    let none = Keys { bytes: b"none", ends: &[4] };
    let of = |keys, request: Request<'static>| Request { keys, ..request };
    let cas = Request { operand: u64::MAX, ..store(OpKind::Cas) };
    let incr = Request { operand: 5, ..request(OpKind::Incr, number, Value::NONE) };
    let decr = Request { kind: OpKind::Decr, operand: u64::MAX, ..incr };
    let touch = Request { ttl_s: 90, ..plain(OpKind::Touch) };
    let mut all = vec![
        plain(OpKind::Get),
        plain(OpKind::Gets),
        request(OpKind::Mget, THREE, Value::NONE),
        store(OpKind::Replace),
        store(OpKind::Append),
        store(OpKind::Prepend),
        cas,
        plain(OpKind::Delete),
        touch,
        of(none, incr),
        of(none, decr),
        plain(OpKind::Set),
        plain(OpKind::Get),
        store(OpKind::Set),
        plain(OpKind::Get),
        plain(OpKind::Gets),
        store(OpKind::Add),
        store(OpKind::Replace),
        store(OpKind::Append),
        store(OpKind::Prepend),
        cas,
        touch,
        of(ONE, incr),
        request(OpKind::Set, number, TEN),
        incr,
        decr,
        request(OpKind::Mget, ONE, Value::NONE),
        request(OpKind::Mget, THREE, Value::NONE),
        request(OpKind::Gets, THREE, Value::NONE),
        request(OpKind::Set, ODD, HEAD),
        request(OpKind::Get, ODD, Value::NONE),
        request(OpKind::Mget, ODD, Value::NONE),
        request(OpKind::Delete, ODD, Value::NONE),
        plain(OpKind::Delete),
        store(OpKind::Add),
    ];
    let quiet = [
        store(OpKind::Set),
        store(OpKind::Add),
        store(OpKind::Replace),
        store(OpKind::Append),
        store(OpKind::Prepend),
        cas,
        incr,
        decr,
        of(ONE, incr),
        touch,
        plain(OpKind::Get),
        plain(OpKind::Delete),
        plain(OpKind::Delete),
    ];
    all.extend(quiet.map(|request| Request { noreply: true, ..request }));
    all
}

/// What the codec writes, in a queue that has room for its own bound and no byte more.
pub(crate) fn encode<C: Codec>(mut codec: C, request: &Request<'_>) -> (Vec<u8>, Encoded) {
    let keys = request.keys;
    let bound = codec.encoded_len_max(keys.ends.len(), keys.bytes.len(), request.value.total_len());
    let mut out = Out::with_room(bound);
    let encoded = codec.encode(request, &mut out);
    let mut parts = [IoSlice::new(&[]); PARTS_MAX];
    let count = out.gather(request.value.block, &mut parts);
    let bytes: Vec<u8> = parts[..count].iter().flat_map(|part| part.to_vec()).collect();
    assert_eq!(bytes.len(), out.len());
    assert!(bytes.len() <= bound, "{} bytes, bound {bound}", bytes.len());
    (bytes, encoded)
}

fn name_of(token: u32) -> String {
    if token == NO_TOKEN { "-".to_owned() } else { format!("{token:x}") }
}

/// What an event says.
pub(crate) fn phrases(event: &Event<'_>) -> Vec<String> {
    let phrase = match event {
        Event::Begin => "begin".to_owned(),
        Event::Key { hit: true, key, flags, bytes, unique, token, recache } => {
            let marks = [(recache.won, " won"), (recache.stale, " stale"), (recache.taken, " taken")];
            let marks: String = marks.iter().filter(|(is_set, _)| *is_set).map(|(_, mark)| *mark).collect();
            format!("key '{}' {flags} {bytes} {unique} @{}{marks}", key.escape_ascii(), name_of(*token))
        }
        Event::Key { hit: false, key, flags, bytes, unique, token, recache } => {
            assert_eq!((*flags, *bytes, *unique, *recache), (0, 0, 0, Recache::NONE));
            format!("miss '{}' @{}", key.escape_ascii(), name_of(*token))
        }
        Event::Value(piece) => {
            assert!(!piece.is_empty());
            format!("value {}", piece.escape_ascii())
        }
        Event::Found(crate::Found { key, flags, value, token }) => {
            let (flags, token, bytes) = (*flags, *token, value.len() as u32);
            let all = [
                Event::Begin,
                Event::Key { hit: true, key, flags, bytes, unique: 0, token, recache: Recache::NONE },
                Event::Value(value),
                Event::End { reply: ReplyKind::Value, form: Form(0), number: 0, token, text: &[] },
            ];
            let said = all.iter().filter(|event| **event != Event::Value(&[]));
            return said.flat_map(phrases).collect();
        }
        Event::End { reply, number, token, text, .. } => {
            assert!(*number == 0 || *reply == ReplyKind::Number);
            let token = name_of(*token);
            match reply {
                ReplyKind::Number => format!("end number {number} @{token}"),
                _ if text.is_empty() => format!("end {} @{token}", reply.name()),
                _ => format!("end {} @{token}: {}", reply.name(), text.escape_ascii()),
            }
        }
        Event::Control(line) => format!("control {}", line.escape_ascii()),
        Event::Push { is_over: false } => "push".to_owned(),
        Event::Push { is_over: true } => "push over".to_owned(),
        Event::Bad(malformed) => format!("bad {malformed:?}"),
    };
    vec![phrase]
}

/// Adds what an event says to what was said before.
pub(crate) type Note = fn(&Event<'_>, &mut Vec<String>);

/// The phrases, where what was cut is joined to what was said of its front.
pub(crate) fn note(event: &Event<'_>, seen: &mut Vec<String>) {
    phrases(event).into_iter().for_each(|said| join(seen, said));
}

pub(crate) fn join(seen: &mut Vec<String>, said: String) {
    match (said.strip_prefix("value "), seen.last_mut()) {
        (Some(piece), Some(last)) if last.starts_with("value ") => last.push_str(piece),
        (None, Some(last)) if said == "push" && *last == said => {}
        _ => seen.push(said),
    }
}

/// Decodes as a connection does: bytes arrive up to each of `cuts` in turn and what is not used up is shown again,
/// never more than `window` bytes at once.
pub(crate) fn decode_cut_by<C: Codec>(
    note: Note,
    mut codec: C,
    stream: &[u8],
    cuts: &[usize],
    window: usize,
) -> Vec<String> {
    let mut seen: Vec<String> = Vec::new();
    let mut used_total = 0usize;
    let mut calls = 0;
    for &arrived in cuts.iter().chain([&stream.len()]) {
        loop {
            let input = &stream[used_total..arrived.min(used_total.saturating_add(window)).max(used_total)];
            let (used, event) = codec.decode(input);
            calls += 1;
            assert!(calls <= 2 * (stream.len() + cuts.len() + 2), "no progress");
            used_total += used;
            let Some(event) = event else {
                assert_eq!(used, 0, "bytes used up without an event");
                let bad = seen.last().is_some_and(|said| said.starts_with("bad "));
                assert!(bad || input.len() < C::UNIT_BYTES_MAX, "a whole unit and no event");
                break;
            };
            assert!(used > 0 || matches!(event, Event::Begin | Event::Bad(_)), "{event:?} without a byte");
            note(&event, &mut seen);
        }
    }
    seen
}

pub(crate) fn decode_cut<C: Codec>(codec: C, stream: &[u8], cuts: &[usize], window: usize) -> Vec<String> {
    decode_cut_by(note, codec, stream, cuts, window)
}

pub(crate) fn decode<C: Codec>(codec: C, stream: &[u8]) -> Vec<String> {
    decode_cut(codec, stream, &[], usize::MAX)
}

/// A codec as its tests know it: how it is made, and what it says of its events.
pub(crate) struct Dialect<C> {
    pub codec: fn() -> C,
    pub note: Note,
}

impl<C: Codec> Dialect<C> {
    pub(crate) fn decode_cut(&self, stream: &[u8], cuts: &[usize], window: usize) -> Vec<String> {
        decode_cut_by(self.note, (self.codec)(), stream, cuts, window)
    }

    pub(crate) fn decode(&self, stream: &[u8]) -> Vec<String> {
        self.decode_cut(stream, &[], usize::MAX)
    }

    /// As [`Self::decode`], but every reply goes the long way through the state machine.
    pub(crate) fn decode_general_path(&self, stream: &[u8]) -> Vec<String> {
        let (mut codec, mut seen, mut used_total) = ((self.codec)(), Vec::new(), 0);
        while used_total < stream.len()
            && let (used, Some(event)) = codec.decode_any(&stream[used_total..])
        {
            assert!(!matches!(event, Event::Found(_)));
            used_total += used;
            (self.note)(&event, &mut seen);
        }
        seen
    }

    /// The same events at these cuts, byte by byte, and through a window of one unit.
    fn check_some_cuts(&self, stream: &[u8], cuts: impl Iterator<Item = usize>) {
        let expected = self.decode(stream);
        for cut in cuts {
            assert_eq!(self.decode_cut(stream, &[cut], usize::MAX), expected, "cut at {cut}");
        }
        let everywhere: Vec<usize> = (0..=stream.len()).collect();
        assert_eq!(self.decode_cut(stream, &everywhere, usize::MAX), expected, "byte by byte");
        let windowed = self.decode_cut(stream, &everywhere, C::UNIT_BYTES_MAX);
        assert_eq!(windowed, expected, "byte by byte, through a window");
        assert_eq!(self.decode_cut(stream, &[], C::UNIT_BYTES_MAX), expected, "through a window");
    }

    /// The same events at every single cut, and the long way.
    pub(crate) fn check_cuts(&self, stream: &[u8]) {
        self.check_some_cuts(stream, 0..=stream.len());
        assert_eq!(self.decode_general_path(stream), self.decode(stream), "the long way");
    }

    /// As [`Self::check_cuts`], but for long streams: cuts near both ends only.
    pub(crate) fn check_cuts_at_ends(&self, stream: &[u8]) {
        self.check_some_cuts(stream, (0..20).chain(stream.len() - 20..stream.len()));
    }

    /// The same events at these cuts, through a window, and the long way.
    pub(crate) fn check_stream(&self, stream: &[u8], cuts: &[prop::sample::Index]) {
        let expected = self.decode_general_path(stream);
        assert_eq!(self.decode(stream), expected);
        assert_eq!(self.decode_cut(stream, &positions(cuts, stream), usize::MAX), expected);
        assert_eq!(self.decode_cut(stream, &[], C::UNIT_BYTES_MAX), expected);
    }

    /// Each of these replies is its events, and begins with its first byte; one behind the other they are all of them.
    pub(crate) fn check_replies<B: AsRef<[u8]>, E: AsRef<str>>(&self, replies: &[(B, E)]) {
        let (mut stream, mut all) = (Vec::new(), Vec::new());
        for (bytes, expected) in replies {
            let (bytes, expected) = (bytes.as_ref(), expected.as_ref());
            assert_eq!(self.decode(bytes).join("; "), expected, "{}", bytes.escape_ascii());
            let begun = if expected.starts_with("push") { "" } else { "begin" };
            assert_eq!(self.decode(&bytes[..1]).join("; "), begun, "{}", bytes.escape_ascii());
            self.check_cuts(bytes);
            stream.extend_from_slice(bytes);
            all.push(expected);
        }
        assert_eq!(self.decode(&stream).join("; "), all.join("; "));
        self.check_cuts(&stream);
    }

    /// Of bytes that are no reply this is seen; what follows is never looked at.
    pub(crate) fn check_malformed<B: AsRef<[u8]>>(&self, table: &[(B, &str)], behind: &[u8]) {
        for (bytes, expected) in table {
            let stream = [bytes.as_ref(), behind].concat();
            assert_eq!(self.decode(&stream).join("; "), *expected, "{}", stream.escape_ascii());
            self.check_cuts(&stream);
        }
    }

    /// Lines of any length: what fills them, what is around that, and what follows. They may be as long as `most`. The same when
    /// they are looked at together with the line end of a value.
    pub(crate) fn check_line_lengths(&self, most: usize, forms: &[(&str, char, &str, &str)], value: &[u8]) {
        for (front, filler, back, behind) in forms {
            for (len, accepted) in [(most, true), (most + 1, false), (3 * most, false)] {
                let middle = filler.to_string().repeat(len - front.len() - back.len());
                let line = format!("{front}{middle}{back}{behind}").into_bytes();
                let seen = self.decode(&line);
                assert_ne!(seen, ["begin"], "{front} {len}");
                let is_read = seen.iter().all(|said| said != "bad LineTooLong");
                assert_eq!(is_read, accepted, "{front} {len}: {seen:?}");
                self.check_cuts_at_ends(&line);
                self.check_cuts_at_ends(&[value, &line].concat());
            }
        }
    }

    /// A reply of one value that is there whole is one event, of any length and whatever is behind it.
    pub(crate) fn check_found(
        &self,
        lens: impl Iterator<Item = usize>,
        reply: impl Fn(&[u8]) -> Vec<u8>,
        behind: &[&[u8]],
        (key, flags, token): (&[u8], u32, u32),
    ) {
        for len in lens {
            let value: Vec<u8> = (0..len).map(|at| (at % 251) as u8).collect();
            let mut stream = reply(&value);
            let used = stream.len();
            for behind in behind {
                stream.truncate(used);
                stream.extend_from_slice(behind);
                let found = Event::Found(crate::Found { key, flags, value: &value, token });
                let key = key.escape_ascii();
                assert_eq!((self.codec)().decode(&stream), (used, Some(found)), "{len} bytes, key {key}");
            }
        }
    }

    /// A reply decodes alike on both paths when one of its first bytes is replaced by each of these, and however it is cut.
    pub(crate) fn check_damaged(
        &self,
        whole: &[u8],
        places: usize,
        bytes: impl Iterator<Item = u8> + Clone,
        behind: &[&[u8]],
    ) {
        let places = 0..whole.len().min(places);
        for (at, byte) in places.flat_map(|at| bytes.clone().map(move |byte| (at, byte))) {
            let mut damaged = whole.to_vec();
            damaged[at] = byte;
            for behind in behind {
                let stream = [&damaged[..], behind].concat();
                let everywhere: Vec<usize> = (0..stream.len()).collect();
                let expected = self.decode_general_path(&stream);
                for cuts in [&[][..], &everywhere] {
                    let said = self.decode_cut(&stream, cuts, usize::MAX);
                    assert_eq!(said, expected, "{}", stream.escape_ascii());
                }
            }
        }
    }

    /// All pairs: the second reply is read by a codec that has the form of the first one in mind.
    pub(crate) fn check_pairs(&self, replies: &[Vec<u8>]) {
        for first in [&[][..]].into_iter().chain(replies.iter().map(Vec::as_slice)) {
            for second in replies {
                let stream = [first, second].concat();
                let expected = self.decode_general_path(&stream);
                assert_eq!(self.decode(&stream), expected, "{}", stream.escape_ascii());
            }
        }
    }

    /// A value of 5 MB behind these bytes and before those is handed on where it lies, as it arrives; no more than `waits` bytes
    /// are kept waiting. It is one reply with a value.
    pub(crate) fn check_large_value(&self, front: &[u8], behind: &[u8], waits: usize) {
        let value = vec![b'v'; 5_000_000];
        let stream = [front, &value, behind].concat();
        let mut codec = (self.codec)();
        let (mut position, mut passed, mut arrived, mut replies) = (0, 0, 0, 0);
        while arrived < stream.len() {
            arrived = stream.len().min(arrived + 1500);
            while let (used, Some(event)) = codec.decode(&stream[position..arrived]) {
                position += used;
                match event {
                    Event::Value(piece) => {
                        let at = piece.as_ptr() as usize - stream.as_ptr() as usize;
                        if at >= front.len() {
                            assert_eq!(at, front.len() + passed, "a piece is the input itself");
                            passed += piece.len();
                        }
                    }
                    Event::End { reply: ReplyKind::Value, .. } => replies += 1,
                    _ => {}
                }
            }
            assert!(arrived - position <= waits, "only a line may wait");
        }
        assert_eq!((passed, position, replies), (value.len(), stream.len(), 1));
    }

    /// The golden file is what the codec writes for [`requests`], and what it makes of the answers, wherever they are cut.
    pub(crate) fn check_exchanges(&self, file: &'static str) {
        let exchanges = exchanges(file);
        for (request, exchange) in requests().iter().zip(&exchanges) {
            let (bytes, encoded) = encode((self.codec)(), request);
            assert_eq!(
                bytes.escape_ascii().to_string(),
                exchange.sent.escape_ascii().to_string(),
                "{request:?}"
            );
            let said = self.decode(&exchange.received).join("; ");
            assert_eq!(said, exchange.events, "{}", exchange.sent.escape_ascii());
            assert!(!encoded.replied || !said.is_empty(), "{request:?}");
            self.check_cuts(&exchange.received);
        }
        assert_eq!(exchanges.len(), requests().len());
        let pipeline: Vec<u8> = exchanges.iter().flat_map(|exchange| exchange.received.clone()).collect();
        let events = exchanges.iter().map(|exchange| exchange.events).filter(|events| !events.is_empty());
        assert_eq!(self.decode(&pipeline).join("; "), events.collect::<Vec<_>>().join("; "));
        self.check_cuts(&pipeline);
    }
}

/// Nearly replies: pieces that replies are made of, in any order, with some noise; and noise alone.
pub(crate) fn near_replies(pieces: Vec<Vec<u8>>, most: usize) -> impl Strategy<Value = Vec<u8>> {
    let noise = |most| prop::collection::vec(any::<u8>(), 0..most);
    let piece = prop_oneof![9 => prop::sample::select(pieces), 1 => noise(10)];
    prop_oneof![prop::collection::vec(piece, 0..most).prop_map(|pieces| pieces.concat()), noise(100)]
}

/// Keys one behind the other, and where each ends.
pub(crate) fn joined_keys(names: &[impl AsRef<[u8]>]) -> (Vec<u8>, Vec<u32>) {
    let (mut bytes, mut ends) = (Vec::new(), Vec::new());
    for name in names {
        bytes.extend_from_slice(name.as_ref());
        ends.push(bytes.len() as u32);
    }
    (bytes, ends)
}

/// Where a stream is cut, in order.
pub(crate) fn positions(cuts: &[prop::sample::Index], stream: &[u8]) -> Vec<usize> {
    let mut positions: Vec<usize> = cuts.iter().map(|cut| cut.index(stream.len() + 1)).collect();
    positions.sort_unstable();
    positions
}

/// An exchange with a real server: what was sent, what came back, and what that says.
#[derive(Debug)]
pub(crate) struct Exchange {
    pub sent: Vec<u8>,
    pub received: Vec<u8>,
    pub events: &'static str,
}

/// Reads a golden file: lines that begin with `>`, `<` and `=` for what was sent and received, escaped, and the events;
/// all others are for the reader.
pub(crate) fn exchanges(file: &'static str) -> Vec<Exchange> {
    let lines: Vec<&str> = file.lines().filter(|line| line.starts_with(['>', '<', '='])).collect();
    let exchange = |lines: &[&'static str]| {
        assert_eq!(lines.iter().map(|line| &line[..1]).collect::<String>(), "><=", "{lines:?}");
        let [sent, received, events] = [0, 1, 2].map(|at: usize| lines[at][1..].trim_start());
        Exchange { sent: unescaped(sent), received: unescaped(received), events }
    };
    lines.chunks(3).map(exchange).collect()
}

/// Reads a file of so many well-formed replies and so many malformed ones: lines of bytes, which `wire` reads, and their events. What
/// begins with `//` is for the reader.
pub(crate) fn replies(
    file: &'static str,
    wire: fn(&str) -> Vec<u8>,
    counts: [usize; 2],
) -> [Vec<(Vec<u8>, &'static str)>; 2] {
    let rows =
        file.lines().filter_map(|line| line.split_once(" => ")).map(|(bytes, events)| (wire(bytes), events));
    let mut rows: Vec<_> = rows.collect();
    let malformed = rows.split_off(counts[0]);
    assert_eq!(malformed.len(), counts[1]);
    [rows, malformed]
}

/// The reverse of `escape_ascii`.
pub(crate) fn unescaped(text: &str) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut rest = text.as_bytes();
    while let Some((&first, behind)) = rest.split_first() {
        let (byte, used) = match (first, behind) {
            (b'\\', [b'x', high, low, ..]) => {
                let digit = |digit: &u8| (*digit as char).to_digit(16).expect("a hexadecimal digit") as u8;
                (digit(high) << 4 | digit(low), 4)
            }
            (b'\\', [b'r', ..]) => (b'\r', 2),
            (b'\\', [b'n', ..]) => (b'\n', 2),
            (b'\\', [b't', ..]) => (b'\t', 2),
            (b'\\', [itself, ..]) => (*itself, 2),
            _ => (first, 1),
        };
        bytes.push(byte);
        rest = &rest[used..];
    }
    bytes
}
