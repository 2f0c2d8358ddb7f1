//! Operations in flight: a slab of entries, sized at start, chained per connection in the order of sending.
//!
//! Not a map: with FIFO matching the next reply on a connection belongs to the head of its chain. Invariant: every entry
//! is either on the free chain or on exactly one connection's chain, and the slab never grows.

use crate::group::{GroupId, NO_GROUP};
use crate::lane::Picked;
use crate::lease::{LeaseId, NO_LEASE};
use brunt_plan::op::{KeyRef, Op, OpKind};
use brunt_plan::phase::Phase;
use brunt_stats::recorder::Account;

/// Index of an entry; [`NO_ENTRY`] is none.
pub(crate) type EntryId = u32;
/// The end of a chain.
pub(crate) const NO_ENTRY: EntryId = u32::MAX;

/// One operation between its encoding and its end.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Entry {
    /// What was asked.
    pub op: Op,
    /// The phase its intended time lies in.
    pub phase: Phase,
    /// Where it is booked.
    pub account: Account,
    /// It is a retrieval that stands for itself; see [`crate::lane::Lane::is_alone`].
    pub alone: bool,
    /// When it was to be sent.
    pub intended_ns: u64,
    /// When the loop first looked at it.
    pub picked_ns: u64,
    /// When its last byte was handed over; 0 while that has not happened.
    pub sent_ns: u64,
    /// When the read that brought the first byte of its reply returned; 0 before.
    pub first_byte_ns: u64,
    /// Position in the connection's stream just behind its last byte.
    pub stream_end: u64,
    /// Commands on the wire.
    pub wire_requests: u32,
    /// Keys that the reply held so far.
    pub hits: u32,
    /// How many of a multi-get's keys the reply has gone past.
    pub key_cursor: u32,
    /// The multi-get that it is a part of.
    pub group: GroupId,
    /// The slot that it shares with operations that follow it.
    pub lease: LeaseId,
    /// A value was not the one that was stored.
    pub mismatched: bool,
    next: EntryId,
}

impl Entry {
    /// The one behind it in its chain.
    #[inline]
    pub(crate) fn next(&self) -> EntryId {
        self.next
    }

    /// A place that was never used, and what an operation has that was only picked.
    const BLANK: Self = Self {
        op: Op::of(OpKind::Get, KeyRef::Id(0)),
        phase: Phase::Connect,
        account: Account::UNUSED,
        alone: false,
        intended_ns: 0,
        picked_ns: 0,
        sent_ns: 0,
        first_byte_ns: 0,
        stream_end: 0,
        wire_requests: 0,
        hits: 0,
        key_cursor: 0,
        group: NO_GROUP,
        lease: NO_LEASE,
        mismatched: false,
        next: NO_ENTRY,
    };
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

/// All entries of a worker.
#[derive(Debug)]
pub(crate) struct InFlight {
    entries: Vec<Entry>,
    free: EntryId,
    capacity: usize,
    occupied: u32,
}

impl InFlight {
    /// Room for this many operations; nothing is allocated afterwards.
    pub(crate) fn with_capacity(capacity: usize) -> Self {
        assert!(capacity < NO_ENTRY as usize, "the plan bounds connections × depth");
        Self { entries: Vec::with_capacity(capacity), free: NO_ENTRY, capacity, occupied: 0 }
    }

    /// How many operations are in flight.
    pub(crate) fn len(&self) -> u32 {
        self.occupied
    }

    /// Writes an operation that is about to be queued down in a free place; to be linked into a chain then, or put back.
    #[inline(always)]
    pub(crate) fn fill(&mut self, picked: &Picked, alone: bool) -> EntryId {
        if self.free == NO_ENTRY {
            self.add_place();
        }
        let id = self.free;
        let entry = &mut self.entries[id as usize];
        self.free = entry.next;
        *entry = Entry {
            op: picked.op,
            phase: picked.phase,
            account: picked.account,
            alone,
            intended_ns: picked.intended_ns,
            picked_ns: picked.picked_ns,
            group: picked.group,
            lease: picked.lease,
            ..Entry::BLANK
        };
        id
    }

    /// A place that was never used before becomes free. Not all of them at the start: few plans fill them, and memory that
    /// nobody has touched is none.
    #[cold]
    fn add_place(&mut self) {
        assert!(self.entries.len() < self.capacity, "no more operations than connections × depth");
        self.free = self.entries.len() as EntryId;
        self.entries.push(Entry::BLANK);
    }

    /// An operation that was written down has no bytes after all.
    pub(crate) fn put_back(&mut self, id: EntryId) {
        self.entries[id as usize].next = self.free;
        self.free = id;
    }

    /// Appends an operation whose bytes have been queued, up to `stream_end` in the connection's stream, to a chain.
    #[inline]
    pub(crate) fn link(&mut self, chain: &mut Chain, id: EntryId, stream_end: u64, wire_requests: u32) {
        let entry = &mut self.entries[id as usize];
        (entry.stream_end, entry.wire_requests) = (stream_end, wire_requests);
        match chain.head {
            NO_ENTRY => chain.head = id,
            _ => self.entries[chain.tail as usize].next = id,
        }
        chain.tail = id;
        chain.len += 1;
        self.occupied += 1;
    }

    /// Takes the oldest operation off a chain.
    #[inline]
    pub(crate) fn pop(&mut self, chain: &mut Chain) -> Option<Entry> {
        self.pop_if(chain, |_| true).copied()
    }

    /// The same if it is as it should be, to be looked at where it lies, which is free from now on.
    #[inline(always)]
    pub(crate) fn pop_if(
        &mut self,
        chain: &mut Chain,
        is_right: impl FnOnce(&Entry) -> bool,
    ) -> Option<&Entry> {
        let id = chain.head;
        let entry = self.entries.get_mut(id as usize)?;
        if !is_right(entry) {
            return None;
        }
        chain.head = entry.next;
        chain.len -= 1;
        entry.next = self.free;
        self.free = id;
        self.occupied -= 1;
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

    #[test]
    fn two_chains_share_a_slab_and_keep_their_order() {
        let mut slab = InFlight::with_capacity(5);
        let (mut left, mut right) = (Chain::EMPTY, Chain::EMPTY);
        let picked = |id| Picked {
            op: Op::of(OpKind::Get, KeyRef::Id(id)),
            phase: Phase::Warmup,
            account: Account::UNUSED,
            intended_ns: 0,
            picked_ns: 0,
            connection: None,
            route: 0,
            group: NO_GROUP,
            lease: NO_LEASE,
        };
        for round in 0..1000u64 {
            for (chain, key) in [(&mut left, round), (&mut right, round + 10_000)] {
                let unused = slab.fill(&picked(77), true);
                let id = slab.fill(&picked(key), true);
                slab.put_back(unused);
                slab.link(chain, id, 0, 1);
            }
            if round % 2 == 1 {
                for expected in [round - 1, round] {
                    assert!(slab.pop_if(&mut left, |entry| entry.op.key != KeyRef::Id(expected)).is_none());
                    assert_eq!(slab.pop(&mut left).unwrap().op.key, KeyRef::Id(expected));
                    assert_eq!(slab.pop(&mut right).unwrap().op.key, KeyRef::Id(expected + 10_000));
                }
                assert!(slab.pop(&mut left).is_none() && slab.pop_if(&mut left, |_| true).is_none());
                assert_eq!(slab.len(), 0);
            }
        }
    }
}
