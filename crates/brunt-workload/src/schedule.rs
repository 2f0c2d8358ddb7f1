//! When a session sends: the one place in which open loop and closed loop differ.
//!
//! Yields intended times on the engine's clock, in order. A trace, or a loop that is partly open, would be further
//! variants of [`Schedule`]; whoever asks it would not notice.

use crate::arrivals::Arrivals;
use std::collections::VecDeque;

/// The source of a session's intended times.
#[derive(Clone, Debug)]
pub enum Schedule {
    /// Open loop: due times whatever the server does.
    Open {
        /// Times from the start.
        arrivals: Arrivals,
        /// The start on the engine's clock, in ns.
        start_ns: u64,
    },
    /// Closed loop: a slot is due when the previous request of the slot is done, and thought over.
    Closed(Slots),
}

impl Schedule {
    /// The next intended time in ns; `u64::MAX` where there is none until a slot is released, or ever.
    #[inline]
    pub fn peek_ns(&self) -> u64 {
        match self {
            Self::Open { arrivals, start_ns } => arrivals.peek_ns().saturating_add(*start_ns),
            Self::Closed(slots) => slots.peek_ns(),
        }
    }

    /// Takes the next intended time: goes on to the one after it, and names the connection where the schedule binds it.
    #[inline]
    pub fn take(&mut self) -> Option<u32> {
        match self {
            Self::Open { arrivals, .. } => {
                arrivals.advance();
                None
            }
            Self::Closed(slots) => slots.take(),
        }
    }
}

/// A slot that is free from `due_ns` on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Slot {
    due_ns: u64,
    connection: u32,
}

/// The slots of a closed loop: `depth` for each connection, free or with a request in flight.
#[derive(Clone, Debug)]
pub struct Slots {
    /// Free slots by due time, those of one time in the order of their release; never longer than `count`.
    ///
    /// A queue and no heap: think time is constant and replies are seen nearly in order, so that a released slot belongs
    /// at the end or close to it. Think times that vary will want a heap here.
    free: VecDeque<Slot>,
    count: usize,
    think_ns: u64,
}

impl Slots {
    /// `depth` slots for each of `connections`, all due at `start_ns`, each connection's first slot before any second.
    pub fn new(connections: u32, depth: u32, think_ns: u64, start_ns: u64) -> Self {
        let free: VecDeque<Slot> = (0..depth)
            .flat_map(|_| (0..connections).map(|connection| Slot { due_ns: start_ns, connection }))
            .collect();
        Self { count: free.len(), free, think_ns }
    }

    /// No slot is free until it is released.
    pub fn take_all(&mut self) {
        self.free.clear();
    }

    /// How many slots have a request in flight.
    pub fn in_flight(&self) -> usize {
        self.count - self.free.len()
    }

    /// When a slot whose request is done at `done_ns` is due again.
    pub fn due_after_ns(&self, done_ns: u64) -> u64 {
        done_ns.saturating_add(self.think_ns)
    }

    #[inline]
    fn peek_ns(&self) -> u64 {
        self.free.front().map_or(u64::MAX, |slot| slot.due_ns)
    }

    #[inline]
    fn take(&mut self) -> Option<u32> {
        self.free.pop_front().map(|slot| slot.connection)
    }

    /// Frees a slot of `connection` whose request was done at `done_ns`.
    #[inline]
    pub fn release(&mut self, connection: u32, done_ns: u64) {
        assert!(self.free.len() < self.count, "more slots released than taken");
        let due_ns = self.due_after_ns(done_ns);
        self.free.push_back(Slot { due_ns, connection });
        let mut at = self.free.len() - 1;
        while at > 0 && self.free[at - 1].due_ns > due_ns {
            self.free.swap(at - 1, at);
            at -= 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Takes everything that is due before `until_ns`, as (due, connection).
    fn taken(slots: &mut Slots, until_ns: u64) -> Vec<(u64, u32)> {
        let mut taken = Vec::new();
        while slots.peek_ns() < until_ns {
            let due_ns = slots.peek_ns();
            taken.push((due_ns, slots.take().unwrap()));
        }
        taken
    }

    #[test]
    fn every_slot_is_free_at_the_start_connections_in_turn() {
        let mut slots = Slots::new(3, 2, 0, 50);
        assert_eq!(slots.peek_ns(), 50);
        assert_eq!(taken(&mut slots, 51), [(50, 0), (50, 1), (50, 2), (50, 0), (50, 1), (50, 2)]);
        assert_eq!((slots.peek_ns(), slots.in_flight()), (u64::MAX, 6));
    }

    #[test]
    fn a_slot_is_due_when_done_and_thought_over_in_order_of_time() {
        let releases: [(u32, u64); 6] = [(0, 30), (1, 10), (2, 20), (0, 20), (1, 30), (2, 5)];
        let mut slots = Slots::new(3, 2, 1_000, 0);
        taken(&mut slots, 1);
        for (connection, done_ns) in releases {
            slots.release(connection, done_ns);
        }
        let expected = [(1_005, 2), (1_010, 1), (1_020, 2), (1_020, 0), (1_030, 0), (1_030, 1)];
        assert_eq!(taken(&mut slots, 2_000), expected);
    }

    #[test]
    #[should_panic(expected = "more slots released than taken")]
    fn a_slot_cannot_be_released_twice() {
        let mut slots = Slots::new(1, 1, 0, 0);
        slots.take();
        slots.release(0, 1);
        slots.release(0, 2);
    }

    #[test]
    fn nothing_grows_after_the_start() {
        let mut slots = Slots::new(8, 4, 7, 0);
        let capacity = slots.free.capacity();
        for done_ns in 0..10_000 {
            let connection = slots.take().unwrap();
            slots.release(connection, done_ns);
        }
        assert_eq!(slots.free.capacity(), capacity);
    }
}
