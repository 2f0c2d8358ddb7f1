//! A reply that is gathered whole before it is read, for requests outside the load: it copies and allocates.
//!
//! Invariant: the same bytes, cut anywhere, have the same result, and memory is bounded.

use crate::{Codec, Event};
use brunt_plan::quoted_bytes::QuotedBytes;
use thiserror::Error;

/// The longest piece of a server's own bytes in a message.
const QUOTED_MAX: usize = 60;

/// The bytes of a reply so far, and how far they are decoded.
#[derive(Clone, Debug, Default)]
pub(crate) struct ReplyBuffer<C> {
    codec: C,
    pub(crate) bytes: Vec<u8>,
    /// Bytes before this position are decoded.
    used: usize,
    /// Where the reply begins, behind push messages.
    start: usize,
    is_whole: bool,
}

/// Why bytes are not the expected reply.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum ReplyError {
    /// They are another reply or none of the protocol: how they begin, escaped.
    #[error("it answers \"{0}\"")]
    Unexpected(String),
    /// The reply is longer than this.
    #[error("its reply does not end within {0} bytes")]
    TooLong(usize),
    /// Bytes follow the reply: the server sends more than one reply per request.
    #[error("bytes follow its reply")]
    Surplus,
    /// A whole reply without content.
    #[error("its reply is empty")]
    Empty,
}

impl ReplyError {
    /// Quotes the beginning of what the server sent.
    pub(crate) fn unexpected(bytes: &[u8]) -> Self {
        Self::Unexpected(QuotedBytes(&bytes[..bytes.len().min(QUOTED_MAX)]).to_string())
    }
}

impl<C: Codec> ReplyBuffer<C> {
    /// Takes in bytes and decodes them; `check` refuses events, of which it also sees the bytes. True: the reply is whole.
    pub(crate) fn take(
        &mut self,
        bytes: &[u8],
        bytes_max: usize,
        check: impl Fn(&Event<'_>, &[u8]) -> Result<(), ReplyError>,
    ) -> Result<bool, ReplyError> {
        let room = bytes_max - self.bytes.len();
        self.bytes.extend_from_slice(&bytes[..bytes.len().min(room)]);
        while !self.is_whole {
            let rest = &self.bytes[self.used..];
            let (used, Some(event)) = self.codec.decode(rest) else { break };
            check(&event, rest)?;
            self.used += used;
            match event {
                Event::Push { .. } => self.start = self.used,
                Event::End { .. } | Event::Found(_) => self.is_whole = true,
                _ => {}
            }
        }
        match self.bytes.len() - self.used {
            _ if bytes.len() > room => Err(ReplyError::TooLong(bytes_max)),
            1.. if self.is_whole => Err(ReplyError::Surplus),
            _ => Ok(self.is_whole),
        }
    }

    /// The bytes of the whole reply; none before it is whole.
    pub(crate) fn whole(&self) -> Option<&[u8]> {
        self.is_whole.then(|| &self.bytes[self.start..self.used])
    }
}
