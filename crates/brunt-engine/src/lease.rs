//! Slots of a closed loop that several operations share: a retrieval that missed and the stores that follow it.
//!
//! Not a slot itself (that is the session's): a lease says how many operations must still end before the slot is free
//! again. A client that fills its cache asks for the next thing when the filling is done.

/// Index of a lease; [`NO_LEASE`] is none.
pub(crate) type LeaseId = u32;
/// The operation has its slot to itself.
pub(crate) const NO_LEASE: LeaseId = u32::MAX;

#[derive(Clone, Copy, Debug)]
struct Lease {
    /// Operations that have not ended, or the next free lease.
    left: u32,
    /// The connection whose slot it is.
    connection: u32,
}

/// All leases of a worker.
#[derive(Debug)]
pub(crate) struct Leases {
    leases: Vec<Lease>,
    free: LeaseId,
}

impl Leases {
    /// Room for this many slots.
    pub(crate) fn with_capacity(slots: usize) -> Self {
        Self { leases: Vec::with_capacity(slots), free: NO_LEASE }
    }

    /// A lease of a slot of this connection, held by one operation.
    pub(crate) fn open(&mut self, connection: u32) -> LeaseId {
        let lease = Lease { left: 1, connection };
        if self.free == NO_LEASE {
            debug_assert!(self.leases.len() < self.leases.capacity(), "no more leases than slots");
            self.leases.push(lease);
            (self.leases.len() - 1) as LeaseId
        } else {
            let id = self.free;
            self.free = self.leases[id as usize].left;
            self.leases[id as usize] = lease;
            id
        }
    }

    /// One more operation holds it.
    pub(crate) fn join(&mut self, id: LeaseId) {
        self.leases[id as usize].left += 1;
    }

    /// An operation that held it has ended. Yields the connection when it was the last.
    pub(crate) fn leave(&mut self, id: LeaseId) -> Option<u32> {
        let lease = &mut self.leases[id as usize];
        lease.left -= 1;
        (lease.left == 0).then(|| {
            lease.left = self.free;
            self.free = id;
            lease.connection
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_to_leave_frees_the_slot() {
        let mut leases = Leases::with_capacity(2);
        let (one, two) = (leases.open(7), leases.open(8));
        leases.join(one);
        assert_eq!([leases.leave(one), leases.leave(two), leases.leave(one)], [None, Some(8), Some(7)]);
        // Both are free again, and room for two is enough.
        let again = [leases.open(1), leases.open(2)];
        assert_eq!(again.map(|id| leases.leave(id)), [Some(1), Some(2)]);
    }
}
