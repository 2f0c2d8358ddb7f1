//! Operations in parts, and slots that operations share.
//!
//! A group is a multi-get over several servers, or a write to several replicas: one sample, several requests, which are on
//! chains and queues. A slot of a closed loop is shared by a retrieval that missed and the fills after it. Invariants: an
//! operation in parts ends with its last part, with the first failure of a part; a replica whose connection is lost does
//! not fail a write that another one has answered; a slot is free again when the last operation that shares it has ended.

use crate::state::in_flight::Entry;
use crate::state::lane::Picked;
use crate::state::{GroupId, NO_SHARED_SLOT, SharedSlotId, Slab};
use brunt_plan::outcome::{Outcome, OutcomeClass, ReplyKind};

/// An operation in parts.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Group {
    /// The whole operation, as it was picked.
    pub whole: Picked,
    /// When the last byte of the last part was sent; 0 until a sent part has ended.
    pub sent_ns: u64,
    /// When the first byte of the first reply came; 0 before.
    pub first_byte_ns: u64,
    /// Commands on the wire.
    pub wire_requests: u32,
    /// Keys found so far.
    pub hits: u32,
    /// A value was not the one that was stored.
    pub mismatched: bool,
    /// The slot that it shares with its fills.
    pub shared_slot: SharedSlotId,
    /// Largest lag of the busy periods in which parts ended; `None` if it is not kept.
    pub busy_lag_ns: Option<u64>,
    /// A part was abandoned before it was sent.
    pub abandoned: bool,
    /// Parts of a write whose replicas were or went down.
    pub missed: u32,
    /// The first outcome that was a failure.
    failure: Option<Outcome>,
    /// First reply to a write; a rejection takes precedence.
    answer: Option<Outcome>,
    /// Parts that have not ended.
    left: u32,
}

impl Group {
    /// The outcome of the whole operation, once all parts have ended.
    pub(crate) fn outcome(&self) -> Outcome {
        if let Some(outcome) = self.failure.or(self.answer) {
            return outcome;
        }
        if self.missed > 0 {
            return Outcome::without_reply(OutcomeClass::Lost);
        }
        match (self.mismatched, self.hits) {
            (true, _) => Outcome { class: OutcomeClass::Mismatch, reply: ReplyKind::Value },
            (false, 0) => Outcome { class: OutcomeClass::Miss, reply: ReplyKind::NotFound },
            (false, _) => Outcome { class: OutcomeClass::Hit, reply: ReplyKind::Value },
        }
    }
}

/// The groups of a worker.
#[derive(Debug)]
pub(crate) struct Groups(Slab<Group>);

impl Groups {
    /// Room for this many operations.
    pub(crate) fn with_capacity(operations: usize) -> Self {
        Self(Slab::with_capacity(operations))
    }

    /// Adds an operation that is about to be queued in parts, of which there are at least two.
    pub(crate) fn open(&mut self, picked: &Picked, parts: u32) -> GroupId {
        self.0.insert(Group {
            whole: *picked,
            sent_ns: 0,
            first_byte_ns: 0,
            wire_requests: 0,
            hits: 0,
            busy_lag_ns: None,
            mismatched: false,
            shared_slot: NO_SHARED_SLOT,
            abandoned: false,
            missed: 0,
            failure: None,
            answer: None,
            left: parts,
        })
    }

    pub(crate) fn get(&self, id: GroupId) -> &Group {
        self.0.get(id)
    }

    pub(crate) fn get_mut(&mut self, id: GroupId) -> &mut Group {
        self.0.get_mut(id)
    }

    /// Ends a part that was sent. Returns the group when it was the last.
    pub(crate) fn end_sent(&mut self, id: GroupId, part: &Entry, outcome: Outcome) -> Option<Group> {
        let group = self.0.get_mut(id);
        group.sent_ns = group.sent_ns.max(part.sent_ns);
        if part.details.first_byte_ns != 0
            && (group.first_byte_ns == 0 || part.details.first_byte_ns < group.first_byte_ns)
        {
            group.first_byte_ns = part.details.first_byte_ns;
        }
        group.wire_requests += part.details.wire_requests;
        group.hits += part.details.hits;
        group.mismatched |= part.details.mismatched;
        if outcome.class == OutcomeClass::Lost && !part.kind.is_retrieval() {
            group.missed += 1;
        } else if !outcome.class.is_completed() && outcome.class != OutcomeClass::Mismatch {
            group.failure.get_or_insert(outcome);
        } else if !part.kind.is_retrieval() {
            let is_worse = |answer: Outcome| {
                answer.class != OutcomeClass::Rejected && outcome.class == OutcomeClass::Rejected
            };
            group.answer = group.answer.filter(|answer| !is_worse(*answer)).or(Some(outcome));
        }
        self.count_down(id)
    }

    /// Ends a part that will never be sent. Returns the group when it was the last.
    pub(crate) fn end_unsent(&mut self, id: GroupId) -> Option<Group> {
        let lost = Outcome::without_reply(OutcomeClass::Lost);
        self.0.get_mut(id).failure.get_or_insert(lost);
        self.count_down(id)
    }

    /// Ends a part of a write whose replica is down. Returns the group when it was the last.
    pub(crate) fn end_missed(&mut self, id: GroupId) -> Option<Group> {
        self.0.get_mut(id).missed += 1;
        self.count_down(id)
    }

    /// Notes the lag of the busy period in which a part ends.
    pub(crate) fn note_lag(&mut self, id: GroupId, busy_lag_ns: Option<u64>) {
        let group = self.0.get_mut(id);
        group.busy_lag_ns = group.busy_lag_ns.max(busy_lag_ns);
    }

    /// Abandons a part. Returns the group when it was the last.
    pub(crate) fn abandon(&mut self, id: GroupId) -> Option<Group> {
        self.0.get_mut(id).abandoned = true;
        self.end_unsent(id)
    }

    /// Ends a part that was sent and redirected, and will not be sent again. Returns the group when it was the
    /// last.
    pub(crate) fn end_redirected(&mut self, id: GroupId, first_sent_ns: u64) -> Option<Group> {
        let group = self.0.get_mut(id);
        group.sent_ns = group.sent_ns.max(first_sent_ns);
        self.end_unsent(id)
    }

    fn count_down(&mut self, id: GroupId) -> Option<Group> {
        let group = self.0.get_mut(id);
        group.left -= 1;
        (group.left == 0).then(|| self.0.remove(id))
    }
}

#[derive(Clone, Copy, Debug)]
struct SharedSlot {
    /// Operations that have not ended.
    left: u32,
    /// The connection whose slot it is.
    connection: u32,
}

/// The shared slots of a worker.
#[derive(Debug)]
pub(crate) struct SharedSlots(Slab<SharedSlot>);

impl SharedSlots {
    /// Room for this many slots.
    pub(crate) fn with_capacity(slots: usize) -> Self {
        Self(Slab::with_capacity(slots))
    }

    /// Adds a slot of this connection, held by one operation.
    pub(crate) fn open(&mut self, connection: u32) -> SharedSlotId {
        self.0.insert(SharedSlot { left: 1, connection })
    }

    /// Adds an operation to a slot.
    pub(crate) fn join(&mut self, id: SharedSlotId) {
        self.0.get_mut(id).left += 1;
    }

    /// Takes an ended operation off a slot. Returns the connection when it was the last.
    pub(crate) fn leave(&mut self, id: SharedSlotId) -> Option<u32> {
        let slot = self.0.get_mut(id);
        slot.left -= 1;
        (slot.left == 0).then(|| self.0.remove(id).connection)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_operation_frees_the_slot() {
        let mut slots = SharedSlots::with_capacity(2);
        let (one, two) = (slots.open(7), slots.open(8));
        slots.join(one);
        assert_eq!([slots.leave(one), slots.leave(two), slots.leave(one)], [None, Some(8), Some(7)]);
        // Both are free again, and room for two is enough.
        let again = [slots.open(1), slots.open(2)];
        assert_eq!(again.map(|id| slots.leave(id)), [Some(1), Some(2)]);
    }
}
