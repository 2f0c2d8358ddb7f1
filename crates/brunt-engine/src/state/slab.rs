//! Values named by ids, with memory sized at the start.
//!
//! Invariant: an id names one value from `insert` to `remove`; nothing is allocated up to the capacity.

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
