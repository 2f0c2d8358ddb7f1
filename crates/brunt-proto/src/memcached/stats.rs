//! Parser of memcached's reply to `stats`.
//!
//! Not for load: one question at a time, on a connection of its own; the lines are the text codec's business, names and
//! values stay texts, and what they mean is not known here. The same bytes, cut anywhere, come to the same, and memory
//! is bounded by [`REPLY_BYTES_MAX`].

use super::text::TextCodec;
use crate::{Codec, Event};
use brunt_plan::outcome::ReplyKind;
use brunt_plan::quoted_bytes::QuotedBytes;

/// The question.
pub const REQUEST: &[u8] = b"stats\r\n";

/// The longest reply. memcached 1.6 sends about 3 kB.
pub const REPLY_BYTES_MAX: usize = 64 << 10;

/// The longest piece of a server's own words in a message.
const QUOTED_MAX: usize = 60;

/// A reply as far as it has come.
#[derive(Clone, Debug, Default)]
pub struct StatsReply {
    codec: TextCodec,
    bytes: Vec<u8>,
    /// In front of this everything is understood.
    used: usize,
    is_whole: bool,
}

/// Why bytes are no statistics.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StatsError {
    /// The server answers with an error, or in another language: the beginning of its line, escaped.
    Declined(String),
    /// The reply does not end.
    TooLong,
    /// Bytes follow the reply: the server sends more than one reply per request.
    Surplus,
    /// A whole reply without a single line.
    Empty,
}

impl std::fmt::Display for StatsError {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Declined(text) => write!(formatter, "it answers \"{text}\""),
            Self::TooLong => write!(formatter, "its reply does not end within {REPLY_BYTES_MAX} bytes"),
            Self::Surplus => formatter.write_str("its reply goes on behind its end"),
            Self::Empty => formatter.write_str("its reply is empty"),
        }
    }
}

impl StatsReply {
    /// Takes in what has come. True: the reply is whole, and [`StatsReply::rows`] has it.
    ///
    /// # Errors
    /// This is no reply to `stats`, and nothing that may still come makes it one.
    pub fn take(&mut self, bytes: &[u8]) -> Result<bool, StatsError> {
        let room = REPLY_BYTES_MAX - self.bytes.len();
        self.bytes.extend_from_slice(&bytes[..bytes.len().min(room)]);
        while !self.is_whole {
            let rest = &self.bytes[self.used..];
            let (used, event) = self.codec.decode(rest);
            match event {
                None => break,
                Some(Event::Begin) => {}
                Some(Event::Control(line)) if row(line).is_some() => {}
                Some(Event::End { reply: ReplyKind::Ok, .. }) => self.is_whole = true,
                Some(Event::End { reply: ReplyKind::NotFound, .. }) => return Err(StatsError::Empty),
                Some(_) => return Err(StatsError::Declined(quoted(rest))),
            }
            self.used += used;
        }
        match self.bytes.len() - self.used {
            _ if bytes.len() > room => Err(StatsError::TooLong),
            1.. if self.is_whole => Err(StatsError::Surplus),
            _ => Ok(self.is_whole),
        }
    }

    /// Names and values in the order of the server; nothing before the reply is whole.
    pub fn rows(&self) -> impl Iterator<Item = (&str, &str)> {
        let lines = if self.is_whole { self.bytes.as_slice() } else { &[] };
        lines.split(|byte| *byte == b'\n').filter_map(|line| row(line.strip_suffix(b"\r")?))
    }
}

/// The beginning of a server's line, for a message.
fn quoted(bytes: &[u8]) -> String {
    let line = bytes.split(|byte| matches!(byte, b'\r' | b'\n')).next().unwrap_or_default();
    QuotedBytes(&line[..line.len().min(QUOTED_MAX)]).to_string()
}

/// `STAT NAME VALUE`; a value may be empty and may have blanks in it.
fn row(line: &[u8]) -> Option<(&str, &str)> {
    let text = std::str::from_utf8(line).ok()?.strip_prefix("STAT ")?;
    let (name, value) = text.split_once(' ')?;
    (!name.is_empty()).then_some((name, value))
}

#[cfg(test)]
mod tests;
