//! Operations in flight: a slab of entries, sized at start, chained per connection in sending order.
//!
//! With FIFO matching the next reply belongs to the head of its connection's chain, with request ids nearly always.
//! A request id is the number of its entry and, in the higher bits, how often that was used, so that a late reply to a
//! timed-out operation does not match the next one. Invariants: every entry is free for one connection or on one chain, and
//! the slab never grows; an id finds an operation only while that waits for a reply, and only on its connection.

use crate::state::lane::{Picked, Route};
use crate::state::{
    EntryId, GroupId, NO_ENTRY, NO_GROUP, NO_REDIRECT, NO_SHARED_SLOT, RedirectStateId, RouteId, SharedSlotId,
};
use brunt_plan::op::{ClassId, Expectation, KeyRef, Op, OpId, OpKind, SessionId, ValueRef};
use brunt_plan::phase::Phase;
use brunt_proto::{Codec, Matching, NO_TOKEN};
use brunt_stats::recorder::RowHandle;
use std::marker::PhantomData;

/// One operation between its encoding and its end.
///
/// Two cache lines. The first holds all fields that a simple operation needs when it succeeds; its second line is
/// blank and not even written.
#[derive(Clone, Copy, Debug)]
#[repr(C, align(64))]
pub(crate) struct Entry {
    /// The number in [`Entry::key`].
    key_word: u64,
    /// When it was to be sent.
    pub intended_ns: u64,
    /// When the event loop picked it.
    pub picked_ns: u64,
    /// When its last byte was sent; 0 before.
    pub sent_ns: u64,
    /// Stream position after its last byte.
    pub stream_end: u64,
    /// Its row in the counts.
    pub row: RowHandle,
    next: EntryId,
    session: SessionId,
    pub class: ClassId,
    pub kind: OpKind,
    /// The phase of its intended time.
    pub phase: Phase,
    key_kind: KeyKind,
    /// It is a simple get, in one command; see [`crate::state::lane::Lane::is_simple`].
    pub is_simple: bool,
    pub details: EntryDetails,
}

/// The variant of [`KeyRef`], kept apart from its number to halve the size.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
enum KeyKind {
    Id,
    Drawn,
    Offset,
}

/// Fields of an operation that is not simple.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct EntryDetails {
    /// When the read with the first byte of its reply returned; 0 before.
    pub first_byte_ns: u64,
    value: ValueRef,
    operand: u64,
    ttl_s: u32,
    /// Commands on the wire.
    pub wire_requests: u32,
    /// Keys found so far.
    pub hits: u32,
    /// Keys of a multi-get that the reply has passed.
    pub key_cursor: u16,
    /// The operation that it is a part of, if any.
    pub group: GroupId,
    /// The slot that it shares with its fills.
    pub shared_slot: SharedSlotId,
    /// Its redirect state, if a node redirected it.
    pub redirect_state: RedirectStateId,
    /// Number of keys.
    pub count: u16,
    command: u16,
    expectation: Expectation,
    /// A value was wrong.
    pub mismatched: bool,
}

impl EntryDetails {
    /// Details of a simple operation, and of a free entry.
    const BLANK: Self = {
        let Op { count, value, ttl_s, operand, expectation, command, .. } =
            Op::of(OpKind::Get, KeyRef::Id(0));
        Self {
            first_byte_ns: 0,
            value,
            operand,
            ttl_s,
            wire_requests: 1,
            hits: 0,
            key_cursor: 0,
            group: NO_GROUP,
            shared_slot: NO_SHARED_SLOT,
            redirect_state: NO_REDIRECT,
            count,
            command,
            expectation,
            mismatched: false,
        }
    };

    fn of(picked: &Picked) -> Self {
        let Op { count, value, ttl_s, operand, expectation, command, .. } = picked.op;
        let Picked { group, shared_slot, redirect_state, .. } = *picked;
        Self {
            value,
            operand,
            ttl_s,
            group,
            shared_slot,
            redirect_state,
            count,
            command,
            expectation,
            ..Self::BLANK
        }
    }
}

impl Entry {
    /// The next entry of its chain.
    #[inline]
    pub(crate) fn next(&self) -> EntryId {
        self.next
    }

    /// The lane that issued it.
    #[inline]
    pub(crate) fn lane(&self) -> u32 {
        self.session
    }

    /// The requested key.
    #[inline]
    pub(crate) fn key(&self) -> KeyRef {
        match self.key_kind {
            KeyKind::Id => KeyRef::Id(self.key_word),
            KeyKind::Drawn => KeyRef::Drawn(self.key_word),
            KeyKind::Offset => KeyRef::Offset(self.key_word as u32),
        }
    }

    /// Does a window check its reply?
    #[inline]
    pub(crate) fn is_checked(&self) -> bool {
        self.details.expectation != Expectation::Any
    }

    /// The operation that it counts as.
    #[inline]
    pub(crate) fn op_id(&self) -> OpId {
        OpId::of(self.kind, self.details.command)
    }

    /// The operation.
    pub(crate) fn op(&self) -> Op {
        let Self { kind, class, session, .. } = *self;
        let EntryDetails { count, value, ttl_s, operand, expectation, command, .. } = self.details;
        Op { kind, class, session, key: self.key(), count, value, ttl_s, operand, expectation, command }
    }

    /// Its operation, picked again for a route.
    pub(crate) fn picked(&self, op: Op, connection: Option<u32>, route: RouteId) -> Picked {
        let EntryDetails { group, shared_slot, redirect_state, .. } = self.details;
        Picked {
            connection,
            group,
            shared_slot,
            redirect_state,
            ..Picked::new(op, self.phase, self.row, self.intended_ns, self.picked_ns, route)
        }
    }

    /// As before it had a version.
    pub(crate) fn without_version(mut self) -> Self {
        if let ValueRef::Version(_) = self.details.value {
            self.details.value = ValueRef::Version(0);
        }
        self
    }

    /// A waiting operation, which has no entry.
    pub(crate) fn waiting(picked: &Picked) -> Self {
        let mut entry = Self::BLANK;
        entry.become_picked(picked, false);
        entry
    }

    /// An unused entry.
    const BLANK: Self = Self {
        key_word: 0,
        intended_ns: 0,
        picked_ns: 0,
        sent_ns: 0,
        stream_end: 0,
        row: RowHandle::UNUSED,
        next: NO_ENTRY,
        session: 0,
        class: 0,
        kind: OpKind::Get,
        phase: Phase::Connect,
        key_kind: KeyKind::Id,
        is_simple: true,
        details: EntryDetails::BLANK,
    };

    /// Stores a picked operation in a blank entry. The fields that [`InFlight::link`] sets are unchanged.
    #[inline(always)]
    fn become_picked(&mut self, picked: &Picked, is_simple: bool) {
        (self.key_kind, self.key_word) = match picked.op.key {
            KeyRef::Id(id) => (KeyKind::Id, id),
            KeyRef::Drawn(seed) => (KeyKind::Drawn, seed),
            KeyRef::Offset(offset) => (KeyKind::Offset, u64::from(offset)),
        };
        self.intended_ns = picked.intended_ns;
        self.picked_ns = picked.picked_ns;
        self.sent_ns = 0;
        self.row = picked.row;
        self.session = picked.op.session;
        self.class = picked.op.class;
        self.kind = picked.op.kind;
        self.phase = picked.phase;
        self.is_simple = is_simple;
        if !is_simple {
            self.details = EntryDetails::of(picked);
        }
        debug_assert_eq!(self.op(), picked.op);
    }
}

/// A chain of entries, oldest first.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Chain {
    /// The oldest, or [`NO_ENTRY`].
    pub head: EntryId,
    /// The youngest; of an empty chain, anything.
    tail: EntryId,
    /// How many.
    pub len: u32,
}

impl Chain {
    pub(crate) const EMPTY: Self = Self { head: NO_ENTRY, tail: NO_ENTRY, len: 0 };
}

/// All entries of a worker. Fields for request ids are unused with FIFO codecs.
#[derive(Debug)]
pub(crate) struct InFlight<C> {
    entries: Vec<Entry>,
    /// Free entries by connection: a connection reuses its last entries, which are adjacent and cached.
    free: Box<[EntryId]>,
    capacity: usize,
    occupied: u32,
    /// Empty where replies come in the order of the requests.
    tokens: Tokens,
    codec: PhantomData<C>,
}

impl<C: Codec> InFlight<C> {
    /// Unused entries that a connection without free ones gets, within the capacity.
    const PLACES: usize = 8;

    /// Capacity for this many operations on these connections; nothing is allocated afterwards.
    pub(crate) fn new(connections: usize, capacity: usize) -> Self {
        assert!(capacity < NO_ENTRY as usize, "the plan bounds connections × depth");
        let free = vec![NO_ENTRY; connections].into_boxed_slice();
        let tokens = Tokens::with_capacity(if C::MATCHING == Matching::Token { capacity } else { 0 });
        let entries = Vec::with_capacity(capacity);
        Self { entries, free, capacity, occupied: 0, tokens, codec: PhantomData }
    }

    /// Operations in flight.
    pub(crate) fn len(&self) -> u32 {
        self.occupied
    }

    /// Stores an operation in a free entry, to be linked into a chain, or released.
    #[inline(always)]
    pub(crate) fn allocate(&mut self, connection: u32, picked: &Picked, is_simple: bool) -> EntryId {
        if self.free[connection as usize] == NO_ENTRY {
            self.add_free_entries(connection);
        }
        let free = &mut self.free[connection as usize];
        let id = *free;
        let entry = &mut self.entries[id as usize];
        *free = entry.next;
        entry.become_picked(picked, is_simple);
        id
    }

    /// Adds free entries for a connection without any: unused ones, or one of another connection. Few plans use the
    /// whole capacity, and untouched memory costs nothing.
    #[cold]
    fn add_free_entries(&mut self, connection: u32) {
        let each = (self.capacity / self.free.len()).clamp(1, Self::PLACES);
        let first = self.entries.len();
        self.entries.resize((first + each).min(self.capacity), Entry::BLANK);
        if C::MATCHING == Matching::Token {
            self.tokens.extend_to(self.entries.len());
        }
        // The lowest number is used first.
        for id in (first..self.entries.len()).rev() {
            self.release_unused(connection, id as EntryId);
        }
        if self.entries.len() == first {
            let other = self.free.iter_mut().find(|free| **free != NO_ENTRY);
            let other = other.expect("no more operations than connections × depth");
            let id = std::mem::replace(other, self.entries[*other as usize].next);
            self.release_unused(connection, id);
        }
    }

    /// Releases the entry of an operation that was not queued.
    pub(crate) fn release_unused(&mut self, connection: u32, id: EntryId) {
        let entry = &mut self.entries[id as usize];
        entry.next = std::mem::replace(&mut self.free[connection as usize], id);
        entry.details = EntryDetails::BLANK;
    }

    /// The request id of a stored operation.
    #[inline(always)]
    pub(crate) fn token(&mut self, id: EntryId) -> u32 {
        match C::MATCHING {
            Matching::Fifo => 0,
            Matching::Token => self.tokens.next_token(id),
        }
    }

    /// The request id of a waiting operation.
    pub(crate) fn waiting_token(&self, id: EntryId) -> u32 {
        self.tokens.request_id(id)
    }

    /// Prepares an operation to be linked into a chain, where it waits for its reply.
    #[inline(always)]
    pub(crate) fn expect_reply(&mut self, connection: u32, chain: &Chain, id: EntryId) {
        if C::MATCHING == Matching::Token {
            self.tokens.wait(id, connection, chain.tail);
        }
    }

    /// The operation on this chain that a reply with this request id answers; [`NO_ENTRY`] if none waits for it.
    #[inline(always)]
    pub(crate) fn answered(&self, connection: u32, chain: &Chain, token: u32) -> EntryId {
        if C::MATCHING == Matching::Fifo || token == NO_TOKEN {
            return chain.head;
        }
        self.tokens.find(connection, token).unwrap_or(NO_ENTRY)
    }

    /// The lane of the operation that the next reply ends: of the oldest operation if lanes share the connection,
    /// and no valid number if there is none.
    #[inline]
    pub(crate) fn lane_of(&self, route: &Route, chain: &Chain) -> u32 {
        match route.others.is_empty() {
            true => route.lane,
            false => self.entries.get(chain.head as usize).map_or(u32::MAX, Entry::lane),
        }
    }

    /// Does a reply with this request id answer the oldest operation, as it usually does?
    #[inline(always)]
    pub(crate) fn answers_oldest(&self, chain: &Chain, token: u32) -> bool {
        match C::MATCHING {
            Matching::Fifo => true,
            Matching::Token => chain.head != NO_ENTRY && self.tokens.request_id(chain.head) == token,
        }
    }

    /// Appends an operation to a chain; its bytes are queued up to `stream_end`.
    #[inline]
    pub(crate) fn link(&mut self, chain: &mut Chain, id: EntryId, stream_end: u64, wire_requests: u32) {
        let entry = &mut self.entries[id as usize];
        (entry.stream_end, entry.next) = (stream_end, NO_ENTRY);
        if wire_requests != 1 {
            entry.details.wire_requests = wire_requests;
        }
        match chain.head {
            NO_ENTRY => chain.head = id,
            _ => self.entries[chain.tail as usize].next = id,
        }
        chain.tail = id;
        chain.len += 1;
        self.occupied += 1;
    }

    /// Removes the oldest operation of a chain.
    #[inline]
    pub(crate) fn pop(&mut self, connection: u32, chain: &mut Chain) -> Option<Entry> {
        let entry = self.unlink_head(connection, chain, |_| true)?;
        let popped = *entry;
        entry.details = EntryDetails::BLANK;
        Some(popped)
    }

    /// Removes an operation from the chain that it is on. With FIFO matching it is the oldest.
    #[inline]
    pub(crate) fn remove(&mut self, connection: u32, chain: &mut Chain, id: EntryId) -> Option<Entry> {
        debug_assert!(C::MATCHING == Matching::Token || id == chain.head);
        if C::MATCHING == Matching::Token && id != chain.head {
            self.bring_to_front(chain, id);
        }
        self.pop(connection, chain)
    }

    /// Moves an operation that is not the first to the front of its chain.
    fn bring_to_front(&mut self, chain: &mut Chain, id: EntryId) {
        let previous = self.tokens.places[id as usize].previous;
        let next = std::mem::replace(&mut self.entries[id as usize].next, chain.head);
        self.entries[previous as usize].next = next;
        match next {
            NO_ENTRY => chain.tail = previous,
            next => self.tokens.places[next as usize].previous = previous,
        }
        self.tokens.places[chain.head as usize].previous = id;
        chain.head = id;
    }

    /// Removes the oldest operation if it is simple and `is_right`. The entry is free already, and may be read
    /// until it is reused.
    #[inline(always)]
    pub(crate) fn pop_simple(
        &mut self,
        connection: u32,
        chain: &mut Chain,
        is_right: impl FnOnce(&Entry) -> bool,
    ) -> Option<&Entry> {
        let entry = self.unlink_head(connection, chain, |entry| entry.is_simple && is_right(entry))?;
        debug_assert_eq!(entry.details, EntryDetails::BLANK);
        Some(entry)
    }

    #[inline(always)]
    fn unlink_head(
        &mut self,
        connection: u32,
        chain: &mut Chain,
        is_right: impl FnOnce(&Entry) -> bool,
    ) -> Option<&mut Entry> {
        let id = chain.head;
        let entry = self.entries.get_mut(id as usize)?;
        if !is_right(entry) {
            return None;
        }
        chain.head = entry.next;
        chain.len -= 1;
        entry.next = std::mem::replace(&mut self.free[connection as usize], id);
        self.occupied -= 1;
        if C::MATCHING == Matching::Token {
            self.tokens.end(id);
        }
        Some(entry)
    }

    /// The entry with this id.
    #[inline]
    pub(crate) fn get_mut(&mut self, id: EntryId) -> &mut Entry {
        &mut self.entries[id as usize]
    }

    /// The entry with this id; `None` for [`NO_ENTRY`].
    #[inline]
    pub(crate) fn entry_mut(&mut self, id: EntryId) -> Option<&mut Entry> {
        self.entries.get_mut(id as usize)
    }

    /// The entry with this id.
    #[inline]
    pub(crate) fn get(&self, id: EntryId) -> &Entry {
        &self.entries[id as usize]
    }
}

/// The entry waits for no reply.
const NOT_WAITING: u32 = u32::MAX;

/// The request id of an entry.
#[derive(Clone, Copy, Debug)]
struct TokenSlot {
    /// The id of its current or last operation; the lower bits are the number of the entry.
    token: u32,
    /// The connection that it waits on, or [`NOT_WAITING`].
    connection: u32,
    /// The previous entry of its chain, if there is one; undefined for the oldest.
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
}

#[cfg(test)]
mod tests {
    use super::*;
    use brunt_proto::NO_TOKEN;
    use brunt_proto::memcached::meta::MetaCodec;
    use brunt_proto::memcached::text::TextCodec;

    fn picked(id: u64) -> Picked {
        Picked {
            op: Op::of(OpKind::Get, KeyRef::Id(id)),
            phase: Phase::Warmup,
            row: RowHandle::UNUSED,
            intended_ns: 0,
            picked_ns: 0,
            connection: None,
            route: 0,
            group: NO_GROUP,
            shared_slot: NO_SHARED_SLOT,
            redirect_state: NO_REDIRECT,
        }
    }

    #[test]
    fn entries_are_two_cache_lines_with_common_fields_first() {
        assert_eq!((size_of::<Entry>(), std::mem::offset_of!(Entry, details)), (128, 64));
        let changed = Op { count: 3, ttl_s: 7, operand: 9, command: 4, ..picked(1).op };
        for key in [KeyRef::Id(5), KeyRef::Drawn(u64::MAX), KeyRef::Offset(6)] {
            for (op, is_simple) in [(Op { key, ..changed }, false), (Op { key, ..picked(1).op }, true)] {
                let mut entry = Entry::BLANK;
                entry.become_picked(&Picked { op, ..picked(1) }, is_simple);
                assert_eq!(entry.op(), op);
            }
        }
    }

    #[test]
    fn two_chains_share_a_slab_and_keep_their_order() {
        let mut slab = InFlight::<TextCodec>::new(2, 5);
        let mut chains = [Chain::EMPTY; 2];
        for round in 0..1000u64 {
            for connection in [0, 1] {
                let unused = slab.allocate(connection, &picked(77), false);
                let id = slab.allocate(connection, &picked(round + u64::from(connection) * 10_000), true);
                slab.release_unused(connection, unused);
                slab.link(&mut chains[connection as usize], id, 0, 1);
            }
            if round % 2 == 1 {
                let [left, right] = &mut chains;
                for expected in [round - 1, round] {
                    assert!(slab.pop_simple(0, left, |entry| entry.key() != KeyRef::Id(expected)).is_none());
                    assert_eq!(slab.pop(0, left).unwrap().key(), KeyRef::Id(expected));
                    assert_eq!(slab.pop(1, right).unwrap().key(), KeyRef::Id(expected + 10_000));
                }
                assert!(slab.pop(0, left).is_none() && slab.pop_simple(1, right, |_| true).is_none());
                assert_eq!(slab.len(), 0);
            }
        }
    }

    #[test]
    fn free_entries_are_adjacent_and_move_between_connections() {
        let mut slab = InFlight::<TextCodec>::new(3, 20);
        let mut fill = |connection| slab.allocate(connection, &picked(0), true);
        // Six for each connection are its share.
        assert_eq!([0, 1, 0, 1, 0].map(&mut fill), [0, 6, 1, 7, 2]);
        assert_eq!([2; 6].map(&mut fill), [12, 13, 14, 15, 16, 17]);
        // The two unused ones, then those of the others.
        assert_eq!([2; 9].map(&mut fill), [18, 19, 3, 4, 5, 8, 9, 10, 11]);
        slab.release_unused(2, 4);
        slab.release_unused(2, 5);
        assert_eq!([2, 0].map(|connection| slab.allocate(connection, &picked(0), true)), [5, 4]);
    }

    /// Whatever order replies come in, those that still wait keep theirs, and what has ended is found no more.
    #[test]
    fn a_reply_may_answer_any_operation() {
        // Which of those that wait, counted from the oldest, is answered next.
        let orders = [[0, 0, 0, 0, 0], [4, 3, 2, 1, 0], [1, 1, 1, 1, 0], [2, 3, 0, 1, 0], [3, 0, 2, 0, 0]];
        let mut slab = InFlight::<MetaCodec>::new(2, 12);
        let (mut chain, mut other) = (Chain::EMPTY, Chain::EMPTY);
        for round in 0..100u64 {
            let mut queue = |connection, chain: &mut Chain, id| {
                let entry = slab.allocate(connection, &picked(id), true);
                let token = slab.token(entry);
                slab.expect_reply(connection, chain, entry);
                slab.link(chain, entry, 0, 1);
                (token, id)
            };
            let elsewhere = queue(1, &mut other, 99);
            let mut waiting: Vec<_> = (0..5).map(|id| queue(0, &mut chain, round * 5 + id)).collect();
            for place in orders[round as usize % orders.len()] {
                assert_eq!(slab.answered(0, &chain, NO_TOKEN), chain.head);
                assert_eq!(slab.answered(0, &chain, elsewhere.0), NO_ENTRY);
                let (token, id) = waiting.remove(place);
                assert_eq!(slab.answers_oldest(&chain, token), place == 0);
                let entry = slab.answered(0, &chain, token);
                assert_eq!(slab.remove(0, &mut chain, entry).unwrap().key(), KeyRef::Id(id));
                assert_eq!(slab.answered(0, &chain, token), NO_ENTRY, "twice");
                let mut at = chain.head;
                for (_, id) in &waiting {
                    assert_eq!(slab.get(at).key(), KeyRef::Id(*id), "{round} {place}");
                    at = slab.get(at).next();
                }
                assert_eq!((at, chain.len as usize), (NO_ENTRY, waiting.len()));
            }
            assert_eq!(slab.pop(1, &mut other).unwrap().key(), KeyRef::Id(99));
        }
    }

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
