//! Slots of a closed loop that several operations share: a retrieval that missed and the stores that follow it.
//!
//! Not a slot itself (that is the session's): a lease says how many operations must still end before the slot is free
//! again. A client that fills its cache asks for the next thing when the filling is done.

use crate::state::ids::{NO_SHARED_SLOT, SharedSlotId};

#[derive(Clone, Copy, Debug)]
struct SharedSlot {
    /// Operations that have not ended, or the next free shared_slot.
    left: u32,
    /// The connection whose slot it is.
    connection: u32,
}

/// All shared_slots of a worker.
#[derive(Debug)]
pub(crate) struct SharedSlots {
    shared_slots: Vec<SharedSlot>,
    free: SharedSlotId,
}

impl SharedSlots {
    /// Room for this many slots.
    pub(crate) fn with_capacity(slots: usize) -> Self {
        Self { shared_slots: Vec::with_capacity(slots), free: NO_SHARED_SLOT }
    }

    /// A lease of a slot of this connection, held by one operation.
    pub(crate) fn open(&mut self, connection: u32) -> SharedSlotId {
        let shared_slot = SharedSlot { left: 1, connection };
        if self.free == NO_SHARED_SLOT {
            debug_assert!(
                self.shared_slots.len() < self.shared_slots.capacity(),
                "no more shared_slots than slots"
            );
            self.shared_slots.push(shared_slot);
            (self.shared_slots.len() - 1) as SharedSlotId
        } else {
            let id = self.free;
            self.free = self.shared_slots[id as usize].left;
            self.shared_slots[id as usize] = shared_slot;
            id
        }
    }

    /// One more operation holds it.
    pub(crate) fn join(&mut self, id: SharedSlotId) {
        self.shared_slots[id as usize].left += 1;
    }

    /// An operation that held it has ended. Yields the connection when it was the last.
    pub(crate) fn leave(&mut self, id: SharedSlotId) -> Option<u32> {
        let shared_slot = &mut self.shared_slots[id as usize];
        shared_slot.left -= 1;
        (shared_slot.left == 0).then(|| {
            shared_slot.left = self.free;
            self.free = id;
            shared_slot.connection
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_operation_frees_the_slot() {
        let mut shared_slots = SharedSlots::with_capacity(2);
        let (one, two) = (shared_slots.open(7), shared_slots.open(8));
        shared_slots.join(one);
        assert_eq!(
            [shared_slots.leave(one), shared_slots.leave(two), shared_slots.leave(one)],
            [None, Some(8), Some(7)]
        );
        // Both are free again, and room for two is enough.
        let again = [shared_slots.open(1), shared_slots.open(2)];
        assert_eq!(again.map(|id| shared_slots.leave(id)), [Some(1), Some(2)]);
    }
}
