//! The context of a command: the state that it works on, and the buffer of its reply.
//!
//! No decisions: `core` makes one for every command and hands it to the protocol. Invariant: a protocol changes nothing of the
//! server but through what it finds here.

use crate::cache::{Cache, ValueContent};
use crate::connection::{Credentials, Session};
use crate::stats::Calls;
use crate::udp::Trains;

/// What every protocol says, in its own form, of a request that a script refuses.
pub(crate) const INJECTED: &[u8] = b"injected fault";

/// What a command is carried out with.
pub(crate) struct CommandContext<'a> {
    pub(crate) cache: &'a mut Cache,
    /// What Redis counts beside that.
    pub(crate) calls: &'a mut Calls,
    /// State of the connection that the command came on.
    pub(crate) session: &'a mut Session,
    /// The only login that is accepted; without one, none is needed.
    pub(crate) credentials: Option<&'a Credentials>,
    /// Replies are appended here.
    pub(crate) out: &'a mut Vec<u8>,
    /// How long `out` may become before retrievals are refused.
    pub(crate) out_bytes_max: usize,
    /// Are the values of the reply as stored?
    pub(crate) value_content: ValueContent,
    pub(crate) now_ns: u64,
    /// How many bytes of values the reply holds.
    pub(crate) value_bytes: usize,
    /// Where datagrams of the reply end.
    pub(crate) trains: &'a mut Trains,
}

impl CommandContext<'_> {
    /// Appends to the reply.
    pub(crate) fn put(&mut self, bytes: &[u8]) {
        self.out.extend_from_slice(bytes);
    }

    /// Replaces the reply from `begin` on by a refusal if there is no room for it. True: there was none.
    pub(crate) fn take_back_excess(&mut self, begin: usize, refusal: &[u8]) -> bool {
        let is_beyond = self.out.len() > self.out_bytes_max;
        if is_beyond {
            self.out.truncate(begin);
            self.out.extend_from_slice(refusal);
            self.value_bytes = 0;
        }
        is_beyond
    }
}

/// Appends a value, right or wrong, and returns its length.
pub(crate) fn push_value(out: &mut Vec<u8>, value: &[u8], value_content: ValueContent) -> usize {
    let begin = out.len();
    out.extend_from_slice(value);
    if value_content == ValueContent::Wrong {
        out[begin..].iter_mut().for_each(|byte| *byte ^= 1);
    }
    value.len()
}
