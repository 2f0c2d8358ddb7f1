//! Operations that a node has sent on: what they bring along from where they were.
//!
//! Not a chain and not a queue: a detour is named by the operation that takes it, wherever that is. Invariant: from the
//! first hop until it is booked an operation has one detour, which remembers its first send.

/// Index of a detour; [`NO_DETOUR`] is none.
pub(crate) type DetourId = u32;
/// The operation is where it was sent at first.
pub(crate) const NO_DETOUR: DetourId = u32::MAX;

/// What an operation brings along.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Detour {
    /// When its last byte was handed over for the first time.
    pub first_sent_ns: u64,
    /// When it last came to wait, having been sent on.
    pub came_ns: u64,
    /// How often it was sent on.
    pub hops: u8,
    /// It goes behind an `ASKING`.
    pub asks: bool,
    /// The reply to that has not come.
    pub is_asking: bool,
    /// The next free one, of one that is free.
    next: DetourId,
}

/// All detours of a worker.
#[derive(Debug)]
pub(crate) struct Detours {
    detours: Vec<Detour>,
    free: DetourId,
}

impl Detours {
    /// Room for this many operations.
    pub(crate) fn with_capacity(operations: usize) -> Self {
        Self { detours: Vec::with_capacity(operations), free: NO_DETOUR }
    }

    /// An operation that was first sent then is about to be sent on.
    pub(crate) fn open(&mut self, first_sent_ns: u64) -> DetourId {
        let (came_ns, next) = (first_sent_ns, NO_DETOUR);
        let detour = Detour { first_sent_ns, came_ns, hops: 0, asks: false, is_asking: false, next };
        if self.free == NO_DETOUR {
            self.detours.push(detour);
            (self.detours.len() - 1) as DetourId
        } else {
            let id = self.free;
            self.free = std::mem::replace(&mut self.detours[id as usize], detour).next;
            id
        }
    }

    /// The operation has ended; yields what it had.
    pub(crate) fn close(&mut self, id: DetourId) -> Detour {
        let ended = self.detours[id as usize];
        self.detours[id as usize].next = std::mem::replace(&mut self.free, id);
        ended
    }

    /// The detour with this id.
    pub(crate) fn get(&self, id: DetourId) -> &Detour {
        &self.detours[id as usize]
    }

    /// The detour with this id.
    pub(crate) fn get_mut(&mut self, id: DetourId) -> &mut Detour {
        &mut self.detours[id as usize]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_used_again_and_begin_anew() {
        let mut detours = Detours::with_capacity(2);
        let (first, second) = (detours.open(5), detours.open(6));
        detours.get_mut(first).hops = 3;
        assert_eq!(detours.close(first).hops, 3);
        let third = detours.open(7);
        assert_eq!((third, detours.get(third).hops, detours.get(third).first_sent_ns), (first, 0, 7));
        assert_eq!(detours.get(second).first_sent_ns, 6);
        assert_eq!(detours.open(8), 2);
    }
}
