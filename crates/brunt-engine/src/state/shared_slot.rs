//! Slots of a closed loop that several operations share: a retrieval that missed and the fills after it.
//!
//! Invariant: a slot is free again when the last operation that shares it has ended, and not before.

use crate::state::ids::SharedSlotId;
use crate::state::slab::Slab;

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
