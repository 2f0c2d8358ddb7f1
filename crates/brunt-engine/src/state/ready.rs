//! The connection with the fewest operations in flight, in O(1).
//!
//! Connections are in one ring per number of operations in flight; a request moves its connection up a ring, a
//! reply down. Equals take turns. Invariant: exactly the usable connections with room are in a ring, or none if the
//! ring is unused.

/// No connection.
const NONE: u32 = u32::MAX;

#[derive(Clone, Copy, Debug)]
struct Place {
    previous: u32,
    next: u32,
    /// Its ring, or [`NONE`].
    ring: u32,
}

#[derive(Clone, Copy, Debug)]
struct Ring {
    first: u32,
    last: u32,
}

/// The connections of one route by operations in flight.
#[derive(Debug)]
pub(crate) struct Ready {
    /// Number of the first connection; places are relative to it.
    base: u32,
    places: Vec<Place>,
    /// One per number of operations in flight below the depth.
    rings: Vec<Ring>,
    /// No ring below this one has a connection.
    lowest: usize,
}

impl Ready {
    /// For connections `base..base + connections`, none of them usable yet.
    pub(crate) fn new(base: u32, connections: u32, depth: u32) -> Self {
        Self {
            base,
            places: vec![Place { previous: NONE, next: NONE, ring: NONE }; connections as usize],
            rings: vec![Ring { first: NONE, last: NONE }; depth as usize],
            lowest: depth as usize,
        }
    }

    /// For routes whose connections are not chosen here; keeps nothing.
    pub(crate) fn unused() -> Self {
        Self::new(0, 0, 0)
    }

    /// Notes the operations in flight of a usable connection.
    #[inline]
    pub(crate) fn set(&mut self, connection: u32, outstanding: u32) {
        self.remove(connection);
        let ring_index = outstanding as usize;
        if ring_index >= self.rings.len() {
            return;
        }
        let place_index = connection - self.base;
        let ring = &mut self.rings[ring_index];
        let last = std::mem::replace(&mut ring.last, place_index);
        if last == NONE {
            ring.first = place_index;
        } else {
            self.places[last as usize].next = place_index;
        }
        self.places[place_index as usize] = Place { previous: last, next: NONE, ring: outstanding };
        self.lowest = self.lowest.min(ring_index);
    }

    /// Notes that a connection cannot take operations.
    #[inline]
    pub(crate) fn remove(&mut self, connection: u32) {
        let Some(place) = self.places.get_mut((connection - self.base) as usize) else { return };
        let place = std::mem::replace(place, Place { previous: NONE, next: NONE, ring: NONE });
        if place.ring == NONE {
            return;
        }
        let ring = &mut self.rings[place.ring as usize];
        if place.previous == NONE {
            ring.first = place.next;
        } else {
            self.places[place.previous as usize].next = place.next;
        }
        if place.next == NONE {
            ring.last = place.previous;
        } else {
            self.places[place.next as usize].previous = place.previous;
        }
    }

    /// The connection with the fewest operations in flight, if one has room.
    #[inline]
    pub(crate) fn least(&mut self) -> Option<u32> {
        while let Some(ring) = self.rings.get(self.lowest) {
            if ring.first != NONE {
                return Some(self.base + ring.first);
            }
            self.lowest += 1;
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The reference: a linear search.
    #[test]
    fn rings_match_linear_search() {
        let (base, connections, depth) = (7, 13u32, 4u32);
        let mut ready = Ready::new(base, connections, depth);
        let mut outstanding = vec![None::<u32>; connections as usize];
        let mut state = 1u64;
        for _ in 0..100_000 {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            let connection = (state >> 33) as u32 % connections;
            let count = (state >> 50) as u32 % (depth + 2);
            if count > depth {
                ready.remove(base + connection);
                outstanding[connection as usize] = None;
            } else {
                ready.set(base + connection, count);
                outstanding[connection as usize] = Some(count);
            }
            let least = outstanding.iter().flatten().filter(|count| **count < depth).min();
            let found = ready.least().map(|connection| outstanding[(connection - base) as usize].unwrap());
            assert_eq!(found.as_ref(), least);
        }
    }

    #[test]
    fn unused_rings_yield_no_connection() {
        let mut ready = Ready::unused();
        ready.set(3, 0);
        ready.remove(3);
        assert_eq!(ready.least(), None);
    }

    #[test]
    fn equals_take_turns() {
        let mut ready = Ready::new(0, 3, 8);
        for connection in 0..3 {
            ready.set(connection, 0);
        }
        let mut order = Vec::new();
        let mut outstanding = [0; 3];
        for _ in 0..6 {
            let connection = ready.least().unwrap();
            order.push(connection);
            outstanding[connection as usize] += 1;
            ready.set(connection, outstanding[connection as usize]);
        }
        assert_eq!(order, [0, 1, 2, 0, 1, 2]);
    }
}
