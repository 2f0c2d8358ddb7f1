//! Request ids: the operation in flight that a reply's id names.
//!
//! Empty where replies come in order. An id is the number of the operation's entry and, in the higher bits, how
//! often that entry was used, so that a late reply to a timed-out operation does not match the next one. Invariant:
//! an id finds an operation only while that waits for a reply, and only on its connection.

use crate::state::ids::EntryId;

/// The entry waits for no reply.
const NOT_WAITING: u32 = u32::MAX;

/// The request id of an entry.
#[derive(Clone, Copy, Debug)]
struct TokenSlot {
    /// The id of its current or last operation; the lower bits are the number of the entry.
    token: u32,
    /// The connection that it waits on, or [`NOT_WAITING`].
    connection: u32,
    /// The previous entry of its chain; undefined for the oldest.
    previous: EntryId,
}

/// The request ids of a slab.
#[derive(Debug)]
pub(crate) struct Tokens {
    places: Vec<TokenSlot>,
    /// Bits of an id for the number of an entry.
    place_bits: u32,
}

impl Tokens {
    /// For a slab of this capacity; nothing is allocated afterwards.
    pub(crate) fn with_capacity(capacity: usize) -> Self {
        // Enough bits for the capacity itself: entry numbers are smaller, so the bits are never all ones, and no id
        // is `NO_TOKEN`.
        let place_bits = usize::BITS - capacity.leading_zeros();
        assert!(place_bits <= u32::BITS, "the plan bounds connections × depth");
        Self { places: Vec::with_capacity(capacity), place_bits }
    }

    /// Extends the ids to this many entries.
    pub(crate) fn extend_to(&mut self, places: usize) {
        let first = self.places.len() as u32;
        let unused = |token| TokenSlot { token, connection: NOT_WAITING, previous: 0 };
        self.places.extend((first..places as u32).map(unused));
    }

    /// The next id of an entry.
    #[inline]
    pub(crate) fn next_token(&mut self, id: EntryId) -> u32 {
        let place = &mut self.places[id as usize];
        place.token = place.token.wrapping_add((1u64 << self.place_bits) as u32);
        place.token
    }

    /// Notes that this entry waits for a reply, after `previous` in its chain.
    #[inline]
    pub(crate) fn wait(&mut self, id: EntryId, connection: u32, previous: EntryId) {
        let place = &mut self.places[id as usize];
        (place.connection, place.previous) = (connection, previous);
    }

    /// Notes that this entry no longer waits.
    #[inline]
    pub(crate) fn end(&mut self, id: EntryId) {
        self.places[id as usize].connection = NOT_WAITING;
    }

    /// The request id of an entry.
    #[inline]
    pub(crate) fn request_id(&self, id: EntryId) -> u32 {
        self.places[id as usize].token
    }

    /// The entry that waits on this connection for this id.
    #[inline]
    pub(crate) fn find(&self, connection: u32, token: u32) -> Option<EntryId> {
        let id = (u64::from(token) & ((1 << self.place_bits) - 1)) as EntryId;
        let place = self.places.get(id as usize)?;
        (place.token == token && place.connection == connection).then_some(id)
    }

    /// The previous entry of a chain; there must be one.
    pub(crate) fn previous(&self, id: EntryId) -> EntryId {
        self.places[id as usize].previous
    }

    /// Sets the previous entry of a chain.
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
        assert_eq!((tokens.find(7, first), tokens.request_id(3)), (Some(3), first));
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
