//! Parser of memcached's reply to `stats`.
//!
//! For a connection beside the load. Names and values stay texts; memory is bounded by [`REPLY_BYTES_MAX`].

use super::text::TextCodec;
use crate::Event;
use crate::reply_buffer::{ReplyBuffer, ReplyError};
use brunt_plan::outcome::ReplyKind;

/// The question.
pub const REQUEST: &[u8] = b"stats\r\n";

/// The longest reply. memcached 1.6 sends about 3 kB.
pub const REPLY_BYTES_MAX: usize = 64 << 10;

/// A reply as far as it has come.
#[derive(Clone, Debug, Default)]
pub struct StatsReply(ReplyBuffer<TextCodec>);

impl StatsReply {
    /// Takes in bytes. True: the reply is whole, and [`StatsReply::rows`] has it.
    ///
    /// # Errors
    /// This is no reply to `stats`, whatever follows.
    pub fn take(&mut self, bytes: &[u8]) -> Result<bool, ReplyError> {
        self.0.take(bytes, REPLY_BYTES_MAX, |event, rest| match event {
            Event::Begin | Event::End { reply: ReplyKind::Ok, .. } => Ok(()),
            Event::Control(line) if row(line).is_some() => Ok(()),
            Event::End { reply: ReplyKind::NotFound, .. } => Err(ReplyError::Empty),
            _ => {
                let line = rest.split(|byte| matches!(byte, b'\r' | b'\n')).next();
                Err(ReplyError::unexpected(line.unwrap_or_default()))
            }
        })
    }

    /// Names and values in the order of the server; nothing before the reply is whole.
    pub fn rows(&self) -> impl Iterator<Item = (&str, &str)> {
        let lines = self.0.whole().unwrap_or_default();
        lines.split(|byte| *byte == b'\n').filter_map(|line| row(line.strip_suffix(b"\r")?))
    }
}

/// `STAT NAME VALUE`; a value may be empty and may have blanks in it.
fn row(line: &[u8]) -> Option<(&str, &str)> {
    let text = std::str::from_utf8(line).ok()?.strip_prefix("STAT ")?;
    let (name, value) = text.split_once(' ')?;
    (!name.is_empty()).then_some((name, value))
}

#[cfg(test)]
mod tests;
