//! Operations in flight: a slab of entries, sized at start, chained per connection in the order of sending.
//!
//! Not a map: with FIFO matching the next reply on a connection belongs to the head of its chain, and with tokens it nearly
//! always does. Invariant: every entry is either free for one connection or on exactly one chain of one, and the slab never
//! grows.

use crate::state::ids::{
    EntryId, GroupId, NO_ENTRY, NO_GROUP, NO_REDIRECT, NO_SHARED_SLOT, RedirectStateId, SharedSlotId,
};
use crate::state::lane::{Picked, Route};
use crate::state::tokens::Tokens;
use brunt_plan::op::{ClassId, Expectation, KeyRef, Op, OpId, OpKind, SessionId, ValueRef};
use brunt_plan::phase::Phase;
use brunt_proto::{Codec, Matching, NO_TOKEN};
use brunt_stats::recorder::RowHandle;
use std::marker::PhantomData;

/// One operation between its encoding and its end.
///
/// Two cache lines, and all that is looked at of an operation that stands for itself and ends well lies in the first: of such
/// a one the second is blank, and is not even written.
#[derive(Clone, Copy, Debug)]
#[repr(C, align(64))]
pub(crate) struct Entry {
    /// What [`Entry::key`] holds.
    key_word: u64,
    /// When it was to be sent.
    pub intended_ns: u64,
    /// When the loop first looked at it.
    pub picked_ns: u64,
    /// When its last byte was handed over; 0 while that has not happened.
    pub sent_ns: u64,
    /// Position in the connection's stream just behind its last byte.
    pub stream_end: u64,
    /// Where it is booked.
    pub account: RowHandle,
    next: EntryId,
    session: SessionId,
    pub class: ClassId,
    pub kind: OpKind,
    /// The phase its intended time lies in.
    pub phase: Phase,
    key_kind: KeyKind,
    /// It is a retrieval that stands for itself, and one command; see [`crate::state::lane::Lane::is_simple`].
    pub is_simple: bool,
    pub details: EntryDetails,
}

/// Which variant of [`KeyRef`] it is, apart from its number: together they would take twice the room.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
enum KeyKind {
    Id,
    Drawn,
    Offset,
}

/// What an operation has beside that.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct EntryDetails {
    /// When the read that brought the first byte of its reply returned; 0 before.
    pub first_byte_ns: u64,
    value: ValueRef,
    operand: u64,
    ttl_s: u32,
    /// Commands on the wire.
    pub wire_requests: u32,
    /// Keys that the reply held so far.
    pub hits: u32,
    /// How many of a multi-get's keys the reply has gone past.
    pub key_cursor: u16,
    /// The multi-get that it is a part of.
    pub group: GroupId,
    /// The slot that it shares with operations that follow it.
    pub shared_slot: SharedSlotId,
    /// What it brings along where another node has sent it on.
    pub redirect_state: RedirectStateId,
    /// How many keys.
    pub count: u16,
    command: u16,
    expectation: Expectation,
    /// A value was not the one that was stored.
    pub mismatched: bool,
}

impl EntryDetails {
    /// That of an operation that stands for itself, and of a place that is free.
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
    /// The one behind it in its chain.
    #[inline]
    pub(crate) fn next(&self) -> EntryId {
        self.next
    }

    /// The lane that has issued it.
    #[inline]
    pub(crate) fn lane(&self) -> u32 {
        self.session
    }

    /// The key that was asked for.
    #[inline]
    pub(crate) fn key(&self) -> KeyRef {
        match self.key_kind {
            KeyKind::Id => KeyRef::Id(self.key_word),
            KeyKind::Drawn => KeyRef::Drawn(self.key_word),
            KeyKind::Offset => KeyRef::Offset(self.key_word as u32),
        }
    }

    /// Is there anything to be checked of its reply?
    #[inline]
    pub(crate) fn is_checked(&self) -> bool {
        self.details.expectation != Expectation::Any
    }

    /// What it is booked as.
    #[inline]
    pub(crate) fn op_id(&self) -> OpId {
        OpId::of(self.kind, self.details.command)
    }

    /// What was asked.
    pub(crate) fn op(&self) -> Op {
        let Self { kind, class, session, .. } = *self;
        let EntryDetails { count, value, ttl_s, operand, expectation, command, .. } = self.details;
        Op { kind, class, session, key: self.key(), count, value, ttl_s, operand, expectation, command }
    }

    /// The same, whose write has been booked as none.
    pub(crate) fn without_version(mut self) -> Self {
        if let ValueRef::Version(_) = self.details.value {
            self.details.value = ValueRef::Version(0);
        }
        self
    }

    /// An operation that waits, and has no place of its own.
    pub(crate) fn waiting(picked: &Picked) -> Self {
        let mut entry = Self::BLANK;
        entry.become_picked(picked, false);
        entry
    }

    /// A place that was never used.
    const BLANK: Self = Self {
        key_word: 0,
        intended_ns: 0,
        picked_ns: 0,
        sent_ns: 0,
        stream_end: 0,
        account: RowHandle::UNUSED,
        next: NO_ENTRY,
        session: 0,
        class: 0,
        kind: OpKind::Get,
        phase: Phase::Connect,
        key_kind: KeyKind::Id,
        is_simple: true,
        details: EntryDetails::BLANK,
    };

    /// Becomes an operation that was only picked; it is blank. What [`InFlight::link`] sets is left as it is.
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
        self.account = picked.account;
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

/// All entries of a worker. What only a codec with tokens needs is left out for the others by the compiler.
#[derive(Debug)]
pub(crate) struct InFlight<C> {
    entries: Vec<Entry>,
    /// The free places of each connection, by its number: a connection's operations go on where its last ones ended, side by
    /// side and still in the processor's cache.
    free: Box<[EntryId]>,
    capacity: usize,
    occupied: u32,
    /// Empty where replies come in the order of the requests.
    tokens: Tokens,
    codec: PhantomData<C>,
}

impl<C: Codec> InFlight<C> {
    /// A connection that has no free place gets so many that were never used, if the plan lets it need them.
    const PLACES: usize = 8;

    /// Room for this many operations of so many connections; nothing is allocated afterwards.
    pub(crate) fn new(connections: usize, capacity: usize) -> Self {
        assert!(capacity < NO_ENTRY as usize, "the plan bounds connections × depth");
        let free = vec![NO_ENTRY; connections].into_boxed_slice();
        let tokens = Tokens::with_capacity(if C::MATCHING == Matching::Token { capacity } else { 0 });
        let entries = Vec::with_capacity(capacity);
        Self { entries, free, capacity, occupied: 0, tokens, codec: PhantomData }
    }

    /// How many operations are in flight.
    pub(crate) fn len(&self) -> u32 {
        self.occupied
    }

    /// Writes an operation that is about to be queued on a connection down in a free place; to be linked into a chain then,
    /// or put back.
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

    /// Finds free places for a connection that has none: such as were never used before, or one of another connection. Not all
    /// of them are used from the start: few plans fill them, and memory that nobody has touched is none.
    #[cold]
    fn add_free_entries(&mut self, connection: u32) {
        let each = (self.capacity / self.free.len()).clamp(1, Self::PLACES);
        let first = self.entries.len();
        self.entries.resize((first + each).min(self.capacity), Entry::BLANK);
        if C::MATCHING == Matching::Token {
            self.tokens.extend_to(self.entries.len());
        }
        // The one with the lowest number is the first to be used.
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

    /// An operation that was written down for a connection has no bytes after all.
    pub(crate) fn release_unused(&mut self, connection: u32, id: EntryId) {
        let entry = &mut self.entries[id as usize];
        entry.next = std::mem::replace(&mut self.free[connection as usize], id);
        entry.details = EntryDetails::BLANK;
    }

    /// What the request of an operation that was written down carries, for its reply to name it.
    #[inline(always)]
    pub(crate) fn token(&mut self, id: EntryId) -> u32 {
        match C::MATCHING {
            Matching::Fifo => 0,
            Matching::Token => self.tokens.next_token(id),
        }
    }

    /// The token of an operation that waits for its reply.
    pub(crate) fn waiting_token(&self, id: EntryId) -> u32 {
        self.tokens.of(id)
    }

    /// An operation is about to be linked into a chain of this connection, where it will wait for its reply.
    #[inline(always)]
    pub(crate) fn expect_reply(&mut self, connection: u32, chain: &Chain, id: EntryId) {
        if C::MATCHING == Matching::Token {
            self.tokens.wait(id, connection, chain.tail);
        }
    }

    /// Which operation on a chain of this connection a reply with this token answers; [`NO_ENTRY`] if none waits for it.
    #[inline(always)]
    pub(crate) fn answered(&self, connection: u32, chain: &Chain, token: u32) -> EntryId {
        if C::MATCHING == Matching::Fifo || token == NO_TOKEN {
            return chain.head;
        }
        self.tokens.find(connection, token).unwrap_or(NO_ENTRY)
    }

    /// The lane of what the next reply on a connection of this route ends, by the connection's chain: where lanes share it, that of the
    /// oldest operation, and no lane's number where there is none.
    #[inline]
    pub(crate) fn lane_of(&self, route: &Route, chain: &Chain) -> u32 {
        match route.others.is_empty() {
            true => route.lane,
            false => self.entries.get(chain.head as usize).map_or(u32::MAX, Entry::lane),
        }
    }

    /// Is the operation that a reply with this token answers the oldest of the chain, as it usually is?
    #[inline(always)]
    pub(crate) fn answers_oldest(&self, chain: &Chain, token: u32) -> bool {
        match C::MATCHING {
            Matching::Fifo => true,
            Matching::Token => chain.head != NO_ENTRY && self.tokens.of(chain.head) == token,
        }
    }

    /// Appends an operation whose bytes have been queued, up to `stream_end` in the connection's stream, to a chain.
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

    /// Takes the oldest operation off a chain of a connection.
    #[inline]
    pub(crate) fn pop(&mut self, connection: u32, chain: &mut Chain) -> Option<Entry> {
        let entry = self.unlink_head(connection, chain, |_| true)?;
        let popped = *entry;
        entry.details = EntryDetails::BLANK;
        Some(popped)
    }

    /// Takes an operation off the chain of a connection that it stands on. With FIFO matching it is the oldest.
    #[inline]
    pub(crate) fn remove(&mut self, connection: u32, chain: &mut Chain, id: EntryId) -> Option<Entry> {
        debug_assert!(C::MATCHING == Matching::Token || id == chain.head);
        if C::MATCHING == Matching::Token && id != chain.head {
            self.bring_to_front(chain, id);
        }
        self.pop(connection, chain)
    }

    /// Makes an operation, which has others before it, the first of its chain.
    fn bring_to_front(&mut self, chain: &mut Chain, id: EntryId) {
        let previous = self.tokens.previous(id);
        let next = std::mem::replace(&mut self.entries[id as usize].next, chain.head);
        self.entries[previous as usize].next = next;
        match next {
            NO_ENTRY => chain.tail = previous,
            next => self.tokens.set_previous(next, previous),
        }
        self.tokens.set_previous(chain.head, id);
        chain.head = id;
    }

    /// Takes the oldest off if it stands for itself and is as it should be, to be looked at where it lies, which is free from now on.
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

#[cfg(test)]
mod tests {
    use super::*;
    use brunt_proto::memcached::meta::MetaCodec;
    use brunt_proto::memcached::text::TextCodec;

    fn picked(id: u64) -> Picked {
        Picked {
            op: Op::of(OpKind::Get, KeyRef::Id(id)),
            phase: Phase::Warmup,
            account: RowHandle::UNUSED,
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
        // The two that nobody had, and then those of the others.
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
}
