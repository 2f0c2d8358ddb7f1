//! How an operation ended: the class it is counted under and the reply that the server gave.
//!
//! Each op ends in exactly one [`OutcomeClass`]; tables of counts add these up.

use crate::op::OpKind;
use serde::{Deserialize, Serialize};

crate::named! {
    /// The column of the counts that an op ends in. The classes exclude one another.
    #[derive(Serialize, Deserialize)]
    #[repr(u8)]
    pub enum OutcomeClass {
        /// A retrieval that found at least one of its keys.
        Hit = "hit",
        /// A retrieval that found none of its keys.
        Miss = "miss",
        /// A change that the server made.
        Done = "done",
        /// A change that the server declined as the protocol provides: not stored, exists, not found.
        Rejected = "rejected",
        /// The server answered with an error, or with bytes that are no reply.
        Error = "error",
        /// No reply within the time-out.
        Timeout = "timeout",
        /// A reply with a value that is not the one that was stored.
        Mismatch = "mismatch",
        /// The connection went away before the reply came.
        Lost = "lost",
        /// Sent without asking for a reply (noreply).
        Unacknowledged = "unacknowledged",
    }
}

impl OutcomeClass {
    /// Did the server answer as the protocol provides? Only these ops have a place in the latency histograms; the
    /// others are failures and appear in the line "including failures".
    pub const fn is_completed(self) -> bool {
        matches!(self, Self::Hit | Self::Miss | Self::Done | Self::Rejected)
    }
}

crate::named! {
    /// What the server said, in words common to all protocols.
    #[derive(Serialize, Deserialize)]
    #[repr(u8)]
    pub enum ReplyKind {
        /// The change was stored.
        Stored = "stored",
        /// The condition of an add, replace, append or prepend did not hold.
        NotStored = "not_stored",
        /// A cas whose unique is no longer current.
        Exists = "exists",
        /// There is no such key.
        NotFound = "not_found",
        /// One value or several.
        Value = "value",
        /// A number.
        Number = "number",
        /// The key was deleted.
        Deleted = "deleted",
        /// The time to live was changed.
        Touched = "touched",
        /// Done, nothing more to say.
        Ok = "ok",
        /// The server did not understand the command.
        Error = "error",
        /// The server blames the client.
        ClientError = "client_error",
        /// The server blames itself.
        ServerError = "server_error",
        /// The key lives on another server.
        Redirect = "redirect",
        /// There was no reply: time-out, lost connection, noreply, or bytes that are no reply.
        None = "none",
    }
}

impl ReplyKind {
    /// Did the server say that something is wrong, or that it is not the one to ask?
    pub const fn is_error(self) -> bool {
        matches!(self, Self::Error | Self::ClientError | Self::ServerError | Self::Redirect)
    }
}

/// For how long an error reply to a store holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ErrorPersistence {
    /// Until the request, the server or its settings are changed.
    Permanent,
    /// Until the server has made room: at once where it evicts, never where it does not, and it does not say which.
    OutOfMemory,
    /// For a while.
    Transient,
}

/// How an op ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Outcome {
    /// The column of the counts.
    pub class: OutcomeClass,
    /// What the server said.
    pub reply: ReplyKind,
}

impl Outcome {
    /// The outcome of an op of `kind` to which the server's reply means `reply`. Which replies an op can have, and what they
    /// mean to it, is for the protocol to say (`brunt_proto::Codec::meaning`); what means nothing to the op is an error here.
    pub const fn of_reply(kind: OpKind, reply: ReplyKind) -> Self {
        use OutcomeClass as Class;
        use ReplyKind as Reply;
        let class = match (kind, reply) {
            (OpKind::Get | OpKind::Gets | OpKind::Mget, Reply::Value) => Class::Hit,
            (OpKind::Get | OpKind::Gets | OpKind::Mget, Reply::NotFound) => Class::Miss,
            (
                OpKind::Set | OpKind::Add | OpKind::Replace | OpKind::Append | OpKind::Prepend | OpKind::Cas,
                reply,
            ) => match reply {
                Reply::Stored => Class::Done,
                Reply::NotStored | Reply::Exists | Reply::NotFound => Class::Rejected,
                _ => Class::Error,
            },
            (OpKind::Incr | OpKind::Decr, Reply::Number) => Class::Done,
            (OpKind::Delete, Reply::Deleted) | (OpKind::Touch, Reply::Touched) => Class::Done,
            (OpKind::Incr | OpKind::Decr | OpKind::Delete | OpKind::Touch, Reply::NotFound) => {
                Class::Rejected
            }
            (
                OpKind::Raw,
                Reply::Error | Reply::ClientError | Reply::ServerError | Reply::Redirect | Reply::None,
            ) => Class::Error,
            (OpKind::Raw, _) => Class::Done,
            _ => Class::Error,
        };
        Self { class, reply }
    }

    /// The outcome of an op that got no reply.
    pub const fn without_reply(class: OutcomeClass) -> Self {
        Self { class, reply: ReplyKind::None }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_and_order_agree() {
        for (index, class) in OutcomeClass::ALL.into_iter().enumerate() {
            assert_eq!(class as usize, index);
        }
        for (index, reply) in ReplyKind::ALL.into_iter().enumerate() {
            assert_eq!(reply as usize, index);
        }
    }

    #[test]
    fn replies_become_outcomes() {
        let table = [
            (OpKind::Get, ReplyKind::Value, OutcomeClass::Hit),
            (OpKind::Mget, ReplyKind::NotFound, OutcomeClass::Miss),
            (OpKind::Get, ReplyKind::Stored, OutcomeClass::Error),
            (OpKind::Set, ReplyKind::Stored, OutcomeClass::Done),
            (OpKind::Set, ReplyKind::ServerError, OutcomeClass::Error),
            (OpKind::Add, ReplyKind::NotStored, OutcomeClass::Rejected),
            (OpKind::Cas, ReplyKind::Exists, OutcomeClass::Rejected),
            (OpKind::Incr, ReplyKind::Number, OutcomeClass::Done),
            (OpKind::Delete, ReplyKind::NotFound, OutcomeClass::Rejected),
            (OpKind::Touch, ReplyKind::Touched, OutcomeClass::Done),
            (OpKind::Set, ReplyKind::Ok, OutcomeClass::Error),
            (OpKind::Delete, ReplyKind::Number, OutcomeClass::Error),
            (OpKind::Touch, ReplyKind::Ok, OutcomeClass::Error),
            (OpKind::Raw, ReplyKind::Ok, OutcomeClass::Done),
            (OpKind::Raw, ReplyKind::Redirect, OutcomeClass::Error),
        ];
        for (kind, reply, class) in table {
            assert_eq!(Outcome::of_reply(kind, reply).class, class, "{kind} {reply:?}");
        }
    }
}
