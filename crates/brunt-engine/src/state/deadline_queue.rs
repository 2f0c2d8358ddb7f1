//! The next deadline among sessions or connections: a binary heap with an index per entry.
//!
//! There are as many entries as sessions, and most workers have one or two. Invariant: every entry is in the heap
//! once, with the time last set.

/// Sessions by when they are due; `u64::MAX` is never.
#[derive(Debug)]
pub(crate) struct DeadlineQueue {
    due_ns: Vec<u64>,
    /// A binary heap of session numbers by their time.
    heap: Vec<u32>,
    /// Position of each session in the heap.
    place: Vec<u32>,
}

impl DeadlineQueue {
    /// For sessions `0..sessions`, none of them due ever.
    pub(crate) fn new(sessions: u32) -> Self {
        Self {
            due_ns: vec![u64::MAX; sessions as usize],
            heap: (0..sessions).collect(),
            place: (0..sessions).collect(),
        }
    }

    /// The session that is due first, and when.
    #[inline]
    pub(crate) fn first(&self) -> Option<(u32, u64)> {
        self.heap.first().map(|session| (*session, self.due_ns[*session as usize]))
    }

    /// Sets when a session is due.
    #[inline(always)]
    pub(crate) fn set(&mut self, session: u32, due_ns: u64) {
        let before = std::mem::replace(&mut self.due_ns[session as usize], due_ns);
        // Most workers have one session, which is first whatever it is set to.
        if self.heap.len() > 1 {
            self.sift(session, due_ns, before);
        }
    }

    /// Restores the heap after the time of a session changed from `before`.
    #[inline(never)]
    fn sift(&mut self, session: u32, due_ns: u64, before: u64) {
        let mut at = self.place[session as usize] as usize;
        if due_ns < before {
            while at > 0 && due_ns < self.time_at((at - 1) / 2) {
                self.swap(at, (at - 1) / 2);
                at = (at - 1) / 2;
            }
        } else {
            loop {
                let child = 2 * at + 1;
                if child >= self.heap.len() {
                    break;
                }
                let earlier_right =
                    child + 1 < self.heap.len() && self.time_at(child + 1) < self.time_at(child);
                let child = child + usize::from(earlier_right);
                if self.time_at(child) >= due_ns {
                    break;
                }
                self.swap(at, child);
                at = child;
            }
        }
    }

    fn time_at(&self, at: usize) -> u64 {
        self.due_ns[self.heap[at] as usize]
    }

    fn swap(&mut self, a: usize, b: usize) {
        self.heap.swap(a, b);
        self.place[self.heap[a] as usize] = a as u32;
        self.place[self.heap[b] as usize] = b as u32;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn heap_matches_linear_search() {
        for sessions in [1u32, 2, 3, 17] {
            let mut deadlines = DeadlineQueue::new(sessions);
            let mut due = vec![u64::MAX; sessions as usize];
            let mut state = u64::from(sessions);
            for _ in 0..20_000 {
                state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                let session = (state >> 33) as u32 % sessions;
                let time = if state.is_multiple_of(7) { u64::MAX } else { state >> 40 };
                deadlines.set(session, time);
                due[session as usize] = time;
                let (first, time) = deadlines.first().unwrap();
                assert_eq!(time, *due.iter().min().unwrap());
                assert_eq!(due[first as usize], time);
            }
        }
    }
}
