//! Expected echoes: length and checksum of each, in the order in which they were sent.
//!
//! A ring whose memory is taken at the start and kept when a connection begins anew.

/// What an echo must be.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct ExpectedEcho {
    /// Bytes of its payload.
    pub len: u32,
    pub checksum: u32,
}

#[derive(Debug)]
pub(super) struct ExpectedEchoes {
    ring: Box<[ExpectedEcho]>,
    first: usize,
    count: usize,
}

impl Clone for ExpectedEchoes {
    fn clone(&self) -> Self {
        Self { ring: self.ring.clone(), ..*self }
    }

    fn clone_from(&mut self, source: &Self) {
        self.ring.clone_from(&source.ring);
        (self.first, self.count) = (source.first, source.count);
    }
}

impl ExpectedEchoes {
    pub(super) fn with_room(room: usize) -> Self {
        Self { ring: vec![ExpectedEcho::default(); room].into_boxed_slice(), first: 0, count: 0 }
    }

    /// # Panics
    /// If more wait than there is room for: a connection has a bound of requests in flight.
    pub(super) fn push(&mut self, echoed: ExpectedEcho) {
        assert!(self.count < self.ring.len(), "more requests wait than the plan allows");
        let at = (self.first + self.count) % self.ring.len();
        self.ring[at] = echoed;
        self.count += 1;
    }

    pub(super) fn front(&self) -> Option<ExpectedEcho> {
        (self.count > 0).then(|| self.ring[self.first])
    }

    pub(super) fn pop(&mut self) -> Option<ExpectedEcho> {
        let echoed = self.front()?;
        self.first = (self.first + 1) % self.ring.len();
        self.count -= 1;
        Some(echoed)
    }
}
