//! What a codec said of a stream, in a form in which two can be compared fast.
//!
//! Invariant: pieces of a value, of what is said beside a reply, and of a push message are joined, and a reply that is
//! told by one event is here as by several.

use brunt_plan::outcome::ReplyKind;
use brunt_proto::{Codec, Event, Form, Recache};

/// What was said, event by event.
#[derive(PartialEq, Eq)]
pub(crate) struct Transcript {
    said: Vec<u8>,
    /// The last event goes on: a value, a control, or a push.
    open: u8,
    /// What a reply is that is told by one event.
    found: Form,
}

impl std::fmt::Debug for Transcript {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "{}", self.said.escape_ascii())
    }
}

impl Transcript {
    /// Decodes as a connection does: `piece` bytes arrive at a time, and what is not used up is shown again, never more than
    /// `window` bytes at once (at least a unit). What the contract says of every decoder is asserted on the way.
    pub(crate) fn of<C: Codec>(mut codec: C, stream: &[u8], piece: usize, window: usize) -> Self {
        let mut transcript = Self { said: Vec::new(), open: 0, found: C::FOUND };
        let (mut used_total, mut arrived, mut calls, mut is_bad) = (0_usize, 0, 0, false);
        while arrived < stream.len() {
            arrived = (arrived + piece).min(stream.len());
            loop {
                let input = &stream[used_total..arrived.min(used_total.saturating_add(window))];
                let (used, event) = codec.decode(input);
                calls += 1;
                assert!(calls <= 4 * (stream.len() + 2), "no progress");
                used_total += used;
                let Some(event) = event else {
                    assert_eq!(used, 0, "bytes used up without an event");
                    assert!(is_bad || input.len() < C::UNIT_BYTES_MAX, "a whole unit and no event");
                    break;
                };
                assert!(!is_bad, "{event:?} behind what is no reply");
                assert!(
                    used > 0 || matches!(event, Event::Begin | Event::Bad(_)),
                    "{event:?} without a byte"
                );
                is_bad = matches!(event, Event::Bad(_));
                transcript.add(&event);
            }
        }
        transcript
    }

    fn add(&mut self, event: &Event<'_>) {
        match *event {
            Event::Begin => self.put(b'B', &[], &[]),
            Event::Key { hit, key, flags, bytes, unique, token, recache } => {
                let Recache { won, stale, taken } = recache;
                assert!(hit || (flags, bytes, unique, recache) == (0, 0, 0, Recache::NONE));
                let marks = [hit, won, stale, taken].map(u64::from);
                self.put(
                    b'K',
                    &[&marks[..], &[flags.into(), bytes.into(), unique, token.into()]].concat(),
                    key,
                );
            }
            Event::Value(piece) => {
                assert!(!piece.is_empty());
                if self.open != b'V' {
                    self.put(b'V', &[], &[]);
                    self.open = b'V';
                }
                self.said.extend_from_slice(piece);
            }
            Event::Found(brunt_proto::Found { key, flags, value, token }) => {
                let bytes = u32::try_from(value.len()).expect("a value has at most 4 GiB");
                self.add(&Event::Begin);
                self.add(&Event::Key {
                    hit: true,
                    key,
                    flags,
                    bytes,
                    unique: 0,
                    token,
                    recache: Recache::NONE,
                });
                if !value.is_empty() {
                    self.add(&Event::Value(value));
                }
                let form = self.found;
                self.add(&Event::End { reply: ReplyKind::Value, form, number: 0, token, text: &[] });
            }
            Event::End { reply, form, number, token, text } => {
                assert!(number == 0 || reply == ReplyKind::Number);
                self.put(b'E', &[reply as u64, form.0.into(), number, token.into()], text);
            }
            // What a server says beside a reply is cut as it comes.
            Event::Control(piece) => {
                if self.open != b'C' {
                    self.put(b'C', &[], &[]);
                    self.open = b'C';
                }
                self.said.extend_from_slice(piece);
            }
            Event::Push { is_over } => {
                if self.open != b'P' {
                    self.put(b'P', &[], &[]);
                }
                self.open = if is_over { 0 } else { b'P' };
            }
            Event::Bad(_) => self.put(b'X', &[], &[]),
        }
    }

    fn put(&mut self, tag: u8, numbers: &[u64], text: &[u8]) {
        self.open = 0;
        self.said.push(tag);
        numbers.iter().for_each(|number| self.said.extend_from_slice(&number.to_le_bytes()));
        self.said.extend_from_slice(text);
    }
}
