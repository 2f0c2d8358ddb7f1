//! ConnectionSetup: what a connection says before its first request, and what it is told.
//!
//! Not the words of it (those are the codec's). Nothing of it is an operation, so no book and no sample knows of it, but
//! its bytes are bytes on the wire. Invariant: a connection of a protocol that greets takes no operation before every
//! reply to its greeting has come and let it in.

use super::Traffic;
use crate::io::Io;
use crate::state::connection::ConnectionState;
use brunt_plan::outcome::ReplyKind;
use brunt_proto::{Codec, Event, Malformed};

/// A server has not let a connection in.
#[derive(Debug)]
pub(crate) struct SetupRejected {
    /// Why, for a user; empty where nobody is to be told, because a run that has begun does not end by it.
    pub reason: String,
}

/// Where a greeting stands.
#[derive(Debug)]
pub(crate) enum SetupStatus {
    /// There are replies to come.
    Pending,
    /// The connection is let in.
    Accepted,
    /// It is not.
    Rejected(SetupRejected),
}

impl<C: Codec> Traffic<C> {
    /// The socket of a connection is up: says what there is to say. False if that is nothing.
    pub(crate) fn begin_setup<I: Io>(&mut self, io: &mut I, index: u32, at_ns: u64) -> bool {
        let greeting = self.codec.connection_setup();
        if !C::HAS_SETUP || greeting.replies == 0 {
            return false;
        }
        let connection = &mut self.connections[index as usize];
        // An attempt at another address may have come as far.
        connection.reset(&self.codec, connection.state);
        connection.has_begun_setup = true;
        connection.out.put(greeting.bytes);
        self.send(io, index, at_ns);
        true
    }

    /// Is the greeting of a connection under way?
    #[inline]
    pub(crate) fn is_in_setup(&self, index: u32) -> bool {
        C::HAS_SETUP && matches!(self.connections[index as usize].state, ConnectionState::Connecting { .. })
    }

    /// Of an attempt that has failed: what was said and not answered. `None`: the socket never came up.
    pub(crate) fn unanswered_setup_step(&self, index: u32) -> Option<&'static str> {
        let connection = &self.connections[index as usize];
        connection.has_begun_setup.then(|| self.codec.setup_step(connection.setup_replies))
    }

    /// Why the greeting that was last sent could not be.
    #[inline]
    pub(crate) fn take_setup_send_error(&mut self) -> Option<i32> {
        if C::HAS_SETUP { self.setup_send_error.take() } else { None }
    }

    /// An event of a reply that no operation waits for: a part of what the greeting is answered with, or an error.
    #[cold]
    pub(super) fn receive_setup_reply(&mut self, index: u32, event: Event<'_>) -> Result<(), Malformed> {
        if !self.is_in_setup(index) {
            return Err(Malformed::UnknownReply);
        }
        let (reply, text) = match event {
            Event::End { reply, text, .. } => (reply, text),
            Event::Found { .. } => (ReplyKind::Value, &[][..]),
            _ => return Ok(()),
        };
        let connection = &mut self.connections[index as usize];
        let number = connection.setup_replies;
        connection.setup_replies += 1;
        if reply == ReplyKind::Ok {
            return Ok(());
        }
        self.recording.note_error(text);
        if self.setup_rejected.is_none() {
            let is_told = !connection.was_up;
            let reason = if is_told { self.codec.setup_error(number, reply, text) } else { String::new() };
            self.setup_rejected = Some(SetupRejected { reason });
        }
        Ok(())
    }

    /// Where the greeting of a connection stands, after something of it has come in.
    pub(crate) fn connection_setup(&mut self, index: u32) -> SetupStatus {
        match self.setup_rejected.take() {
            Some(setup_rejected) => SetupStatus::Rejected(setup_rejected),
            None if self.connections[index as usize].setup_replies
                < self.codec.connection_setup().replies =>
            {
                SetupStatus::Pending
            }
            None => SetupStatus::Accepted,
        }
    }
}
