//! Tokens: which operation in flight the token of a reply names.
//!
//! Not the operations (those are [`crate::state::in_flight`]'s), and nothing at all where replies come in the order of the requests.
//! A token is the number of the operation's place in the slab and, in the bits above it, how often that place has been used,
//! so that what comes late to an operation that was given up is not taken for the next one's. Invariant: a token finds an
//! operation only while that waits for a reply, and only on the connection on which it waits.

use crate::state::ids::EntryId;

/// The place waits for no reply.
const NOT_WAITING: u32 = u32::MAX;

/// What tokens need to know of a place in the slab.
#[derive(Clone, Copy, Debug)]
struct TokenSlot {
    /// The token of the operation in it, or of the last one; its lower bits are the number of the place.
    token: u32,
    /// The connection that its operation waits on, or [`NOT_WAITING`].
    connection: u32,
    /// The one before it in its chain; of the oldest, anything.
    previous: EntryId,
}

/// The tokens of a slab.
#[derive(Debug)]
pub(crate) struct Tokens {
    places: Vec<TokenSlot>,
    /// Bits of a token that are the number of a place.
    place_bits: u32,
}

impl Tokens {
    /// For a slab with this many places; nothing is allocated afterwards.
    pub(crate) fn with_capacity(capacity: usize) -> Self {
        // As many bits as the capacity itself takes: the highest number of a place is less, so its bits are never all ones,
        // and no token is `NO_TOKEN`.
        let place_bits = usize::BITS - capacity.leading_zeros();
        assert!(place_bits <= u32::BITS, "the plan bounds connections × depth");
        Self { places: Vec::with_capacity(capacity), place_bits }
    }

    /// The slab begins to use this many places.
    pub(crate) fn extend_to(&mut self, places: usize) {
        let first = self.places.len() as u32;
        let unused = |token| TokenSlot { token, connection: NOT_WAITING, previous: 0 };
        self.places.extend((first..places as u32).map(unused));
    }

    /// A new token for what has come to this place.
    #[inline]
    pub(crate) fn next_token(&mut self, id: EntryId) -> u32 {
        let place = &mut self.places[id as usize];
        place.token = place.token.wrapping_add((1u64 << self.place_bits) as u32);
        place.token
    }

    /// The operation in this place waits for a reply, behind `previous` in the chain of its connection.
    #[inline]
    pub(crate) fn wait(&mut self, id: EntryId, connection: u32, previous: EntryId) {
        let place = &mut self.places[id as usize];
        (place.connection, place.previous) = (connection, previous);
    }

    /// It waits no more.
    #[inline]
    pub(crate) fn end(&mut self, id: EntryId) {
        self.places[id as usize].connection = NOT_WAITING;
    }

    /// The token of the operation in this place.
    #[inline]
    pub(crate) fn of(&self, id: EntryId) -> u32 {
        self.places[id as usize].token
    }

    /// Who waits on this connection for a reply with this token.
    #[inline]
    pub(crate) fn find(&self, connection: u32, token: u32) -> Option<EntryId> {
        let id = (u64::from(token) & ((1 << self.place_bits) - 1)) as EntryId;
        let place = self.places.get(id as usize)?;
        (place.token == token && place.connection == connection).then_some(id)
    }

    /// The one before this one in its chain, which must have one.
    pub(crate) fn previous(&self, id: EntryId) -> EntryId {
        self.places[id as usize].previous
    }

    /// Another one is before this one in its chain from now on.
    pub(crate) fn set_previous(&mut self, id: EntryId, previous: EntryId) {
        self.places[id as usize].previous = previous;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use brunt_proto::NO_TOKEN;

    /// Whatever the capacity: the last place has the highest bits.
    #[test]
    fn tokens_are_never_no_token_and_do_not_repeat_soon() {
        for capacity in [1usize, 2, 3, 4, 7, 8, 255, 256, 65_535, 1 << 20] {
            let mut tokens = Tokens::with_capacity(capacity);
            tokens.extend_to(capacity);
            let last = capacity as EntryId - 1;
            let mut seen = std::collections::HashSet::new();
            for round in 0..2_000 {
                let token = tokens.next_token(last);
                assert_ne!(token, NO_TOKEN);
                assert!(seen.insert(token), "{capacity}: the same token after {round} others");
            }
            assert_eq!(tokens.find(0, NO_TOKEN), None);
        }
    }

    #[test]
    fn tokens_find_only_their_waiting_operation() {
        let mut tokens = Tokens::with_capacity(5);
        tokens.extend_to(5);
        let first = tokens.next_token(3);
        assert_eq!(tokens.find(7, first), None, "not queued yet");
        tokens.wait(3, 7, 0);
        assert_eq!((tokens.find(7, first), tokens.of(3)), (Some(3), first));
        assert_eq!(tokens.find(8, first), None, "another connection");
        tokens.end(3);
        assert_eq!(tokens.find(7, first), None, "twice");
        let second = tokens.next_token(3);
        tokens.wait(3, 7, 0);
        assert_eq!((tokens.find(7, first), tokens.find(7, second)), (None, Some(3)), "late");
        // No place has this number.
        assert_eq!(tokens.find(7, second | 7), None);
    }
}
