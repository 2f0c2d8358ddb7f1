//! Connection setup: requests of the protocol before the first operation (version, login, database).
//!
//! The codec has the bytes. Setup requests are no operations and have no samples; their bytes count as sent.
//! Invariant: a connection takes no operation before every setup reply has come and is a success.

use super::Traffic;
use crate::io::Io;
use crate::state::connection::ConnectionState;
use brunt_plan::outcome::ReplyKind;
use brunt_proto::{Codec, Event, Malformed};

/// A server rejected a connection setup.
#[derive(Debug)]
pub(crate) struct SetupRejected {
    /// The reason, for a user; empty if the run has begun and goes on.
    pub reason: String,
}

/// State of a connection setup.
#[derive(Debug)]
pub(crate) enum SetupStatus {
    /// Replies are pending.
    Pending,
    /// It succeeded.
    Accepted,
    /// It was rejected.
    Rejected(SetupRejected),
}

impl<C: Codec> Traffic<C> {
    /// Sends the setup requests of a connected socket. False if there are none.
    pub(crate) fn begin_setup<I: Io>(&mut self, io: &mut I, index: u32, at_ns: u64) -> bool {
        let greeting = self.codec.connection_setup();
        if !C::HAS_SETUP || greeting.replies == 0 {
            return false;
        }
        let connection = &mut self.connections[index as usize];
        // An attempt at another address may have got this far.
        connection.reset(&self.codec, connection.state);
        connection.has_begun_setup = true;
        connection.out.put(greeting.bytes);
        self.send(io, index, at_ns);
        true
    }

    /// Is a connection in setup?
    #[inline]
    pub(crate) fn is_in_setup(&self, index: u32) -> bool {
        C::HAS_SETUP && matches!(self.connections[index as usize].state, ConnectionState::Connecting { .. })
    }

    /// The unanswered setup request of a failed attempt; `None` if the socket never connected.
    pub(crate) fn unanswered_setup_step(&self, index: u32) -> Option<&'static str> {
        let connection = &self.connections[index as usize];
        connection.has_begun_setup.then(|| self.codec.setup_step(connection.setup_replies))
    }

    /// The errno of the last setup send, if it failed.
    #[inline]
    pub(crate) fn take_setup_send_error(&mut self) -> Option<i32> {
        if C::HAS_SETUP { self.setup_send_error.take() } else { None }
    }

    /// Handles an event that belongs to no operation: of a setup reply, or malformed.
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
        if self.codec.accepts_setup_reply(reply) {
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

    /// The state of a setup after something was received.
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
