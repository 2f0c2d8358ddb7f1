//! Operations that a node has sent on: what they bring along from where they were.
//!
//! Not a chain and not a queue: a detour is named by the operation that takes it, wherever that is. Invariant: from the
//! first hop until it is booked an operation has one detour, which remembers its first send.

use crate::state::ids::{NO_REDIRECT, RedirectStateId};

/// What an operation brings along.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct RedirectState {
    /// When its last byte was handed over for the first time.
    pub first_sent_ns: u64,
    /// When it last came to wait, having been sent on.
    pub waiting_since_ns: u64,
    /// How often it was sent on.
    pub hops: u8,
    /// It goes behind an `ASKING`.
    pub needs_asking: bool,
    /// The reply to that has not come.
    pub awaits_asking: bool,
    /// The next free one, of one that is free.
    next: RedirectStateId,
}

/// All redirects of a worker.
#[derive(Debug)]
pub(crate) struct RedirectStates {
    redirects: Vec<RedirectState>,
    free: RedirectStateId,
}

impl RedirectStates {
    /// Room for this many operations.
    pub(crate) fn with_capacity(operations: usize) -> Self {
        Self { redirects: Vec::with_capacity(operations), free: NO_REDIRECT }
    }

    /// An operation that was first sent then is about to be sent on.
    pub(crate) fn open(&mut self, first_sent_ns: u64) -> RedirectStateId {
        let (waiting_since_ns, next) = (first_sent_ns, NO_REDIRECT);
        let redirect_state = RedirectState {
            first_sent_ns,
            waiting_since_ns,
            hops: 0,
            needs_asking: false,
            awaits_asking: false,
            next,
        };
        if self.free == NO_REDIRECT {
            self.redirects.push(redirect_state);
            (self.redirects.len() - 1) as RedirectStateId
        } else {
            let id = self.free;
            self.free = std::mem::replace(&mut self.redirects[id as usize], redirect_state).next;
            id
        }
    }

    /// The operation has ended; yields what it had.
    pub(crate) fn close(&mut self, id: RedirectStateId) -> RedirectState {
        let ended = self.redirects[id as usize];
        self.redirects[id as usize].next = std::mem::replace(&mut self.free, id);
        ended
    }

    /// The redirect_state with this id.
    pub(crate) fn get(&self, id: RedirectStateId) -> &RedirectState {
        &self.redirects[id as usize]
    }

    /// The redirect_state with this id.
    pub(crate) fn get_mut(&mut self, id: RedirectStateId) -> &mut RedirectState {
        &mut self.redirects[id as usize]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn freed_entries_are_reset_and_reused() {
        let mut redirects = RedirectStates::with_capacity(2);
        let (first, second) = (redirects.open(5), redirects.open(6));
        redirects.get_mut(first).hops = 3;
        assert_eq!(redirects.close(first).hops, 3);
        let third = redirects.open(7);
        assert_eq!((third, redirects.get(third).hops, redirects.get(third).first_sent_ns), (first, 0, 7));
        assert_eq!(redirects.get(second).first_sent_ns, 6);
        assert_eq!(redirects.open(8), 2);
    }
}
