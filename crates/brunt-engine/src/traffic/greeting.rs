//! ConnectionSetup: what a connection says before its first request, and what it is told.
//!
//! Not the words of it (those are the codec's). Nothing of it is an operation, so no book and no sample knows of it, but
//! its bytes are bytes on the wire. Invariant: a connection of a protocol that greets takes no operation before every
//! reply to its greeting has come and let it in.

use super::Traffic;
use crate::connection::Link;
use crate::io::Io;
use brunt_plan::outcome::ReplyKind;
use brunt_proto::{Codec, Event, Malformed};

/// A server has not let a connection in.
#[derive(Debug)]
pub(crate) struct TurnedAway {
    /// Why, for a user; empty where nobody is to be told, because a run that has begun does not end by it.
    pub reason: String,
}

/// Where a greeting stands.
#[derive(Debug)]
pub(crate) enum Greeted {
    /// There are replies to come.
    Awaited,
    /// The connection is let in.
    Welcome,
    /// It is not.
    TurnedAway(TurnedAway),
}

impl<C: Codec> Traffic<C> {
    /// The socket of a connection is up: says what there is to say. False if that is nothing.
    pub(crate) fn greet<I: Io>(&mut self, io: &mut I, index: u32, at_ns: u64) -> bool {
        let greeting = self.codec.connection_setup();
        if !C::HAS_SETUP || greeting.replies == 0 {
            return false;
        }
        let connection = &mut self.connections[index as usize];
        // An attempt at another address may have come as far.
        connection.reset(&self.codec, connection.link);
        connection.has_greeted = true;
        connection.out.put(greeting.bytes);
        self.send(io, index, at_ns);
        true
    }

    /// Is the greeting of a connection under way?
    #[inline]
    pub(crate) fn is_greeting(&self, index: u32) -> bool {
        C::HAS_SETUP && matches!(self.connections[index as usize].link, Link::Connecting { .. })
    }

    /// Of an attempt that has failed: what was said and not answered. `None`: the socket never came up.
    pub(crate) fn unanswered_greeting(&self, index: u32) -> Option<&'static str> {
        let connection = &self.connections[index as usize];
        connection.has_greeted.then(|| self.codec.setup_step(connection.greeted))
    }

    /// Why the greeting that was last sent could not be.
    #[inline]
    pub(crate) fn take_broken_greeting(&mut self) -> Option<i32> {
        if C::HAS_SETUP { self.broken_greeting.take() } else { None }
    }

    /// An event of a reply that no operation waits for: a part of what the greeting is answered with, or an error.
    #[cold]
    pub(super) fn greeted(&mut self, index: u32, event: Event<'_>) -> Result<(), Malformed> {
        if !self.is_greeting(index) {
            return Err(Malformed::UnknownReply);
        }
        let (reply, text) = match event {
            Event::End { reply, text, .. } => (reply, text),
            Event::Found { .. } => (ReplyKind::Value, &[][..]),
            _ => return Ok(()),
        };
        let connection = &mut self.connections[index as usize];
        let number = connection.greeted;
        connection.greeted += 1;
        if reply == ReplyKind::Ok {
            return Ok(());
        }
        self.recording.note_error(text);
        if self.turned_away.is_none() {
            let is_told = !connection.was_up;
            let reason = if is_told { self.codec.setup_error(number, reply, text) } else { String::new() };
            self.turned_away = Some(TurnedAway { reason });
        }
        Ok(())
    }

    /// Where the greeting of a connection stands, after something of it has come in.
    pub(crate) fn connection_setup(&mut self, index: u32) -> Greeted {
        match self.turned_away.take() {
            Some(turned_away) => Greeted::TurnedAway(turned_away),
            None if self.connections[index as usize].greeted < self.codec.connection_setup().replies => {
                Greeted::Awaited
            }
            None => Greeted::Welcome,
        }
    }
}
