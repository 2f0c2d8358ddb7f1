//! What a worker keeps of its run: sessions with their routes, connections, operations in flight, deadlines, health of
//! servers, and what it records.
//!
//! Nothing here sends, receives or waits: that is `traffic` and `io`. Times are parameters. Invariant of [`Slab`]: an id names one value from
//! `insert` to `remove`, and nothing is allocated up to the capacity.

pub(crate) mod busy_period;
pub(crate) mod connection;
pub(crate) mod connections;
pub(crate) mod delayed_fills;
pub(crate) mod dispatch;
pub(crate) mod group;
pub(crate) mod hash_slots;
pub(crate) mod health;
pub(crate) mod in_flight;
pub(crate) mod lane;
pub(crate) mod recording;
pub(crate) mod stamper;

// Numbers by which the parts of this state name each other: each is an index into one table of one worker.

/// Index of a route within its worker.
pub(crate) type RouteId = u32;

/// Index of an entry in flight; [`NO_ENTRY`] is none.
pub(crate) type EntryId = u32;
/// The end of a chain.
pub(crate) const NO_ENTRY: EntryId = u32::MAX;

/// Index of a group; [`NO_GROUP`] is none.
pub(crate) type GroupId = u32;
/// The operation is whole.
pub(crate) const NO_GROUP: GroupId = u32::MAX;

/// Index of a shared slot; [`NO_SHARED_SLOT`] is none.
pub(crate) type SharedSlotId = u32;
/// The operation has its slot to itself.
pub(crate) const NO_SHARED_SLOT: SharedSlotId = u32::MAX;

/// Index of a redirect state; [`NO_REDIRECT`] is none.
pub(crate) type RedirectStateId = u32;
/// The operation is where it was sent at first.
pub(crate) const NO_REDIRECT: RedirectStateId = u32::MAX;

/// Values of one kind.
#[derive(Debug)]
pub(crate) struct Slab<T> {
    values: Vec<T>,
    /// Ids without a value.
    free: Vec<u32>,
}

impl<T: Copy> Slab<T> {
    /// Room for this many values at a time.
    pub(crate) fn with_capacity(capacity: usize) -> Self {
        Self { values: Vec::with_capacity(capacity), free: Vec::with_capacity(capacity) }
    }

    /// Adds a value and returns its id.
    pub(crate) fn insert(&mut self, value: T) -> u32 {
        if let Some(id) = self.free.pop() {
            self.values[id as usize] = value;
            return id;
        }
        debug_assert!(self.values.len() < self.values.capacity(), "the plan bounds the values in use");
        self.values.push(value);
        (self.values.len() - 1) as u32
    }

    /// Frees an id and returns its value.
    pub(crate) fn remove(&mut self, id: u32) -> T {
        self.free.push(id);
        self.values[id as usize]
    }

    pub(crate) fn get(&self, id: u32) -> &T {
        &self.values[id as usize]
    }

    pub(crate) fn get_mut(&mut self, id: u32) -> &mut T {
        &mut self.values[id as usize]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn freed_ids_are_reused() {
        let mut slab = Slab::with_capacity(2);
        let (first, second) = (slab.insert("a"), slab.insert("b"));
        *slab.get_mut(first) = "c";
        assert_eq!((slab.remove(first), *slab.get(second)), ("c", "b"));
        assert_eq!((slab.insert("d"), *slab.get(first)), (first, "d"));
    }
}
