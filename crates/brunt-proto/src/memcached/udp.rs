//! UDP framing of memcached's text protocols, as bytes and decisions: the header of a datagram, and where in a reply one
//! belongs.
//!
//! The caller has the sockets, the time-outs and the memory for datagrams, and asks here what to do. The source is the part on
//! UDP of memcached's `doc/protocol.txt`; where it leaves a question, memcached 1.6.18 was asked. Invariant: what is
//! handed to a codec as [`ReassemblyStep::Next`] is every datagram of a train, once, in order.
//!
//! One request is one datagram with an id of the sender's choice, and all datagrams of its reply bear that id: it is the
//! token, whatever the protocol's own. As replies overtake one another, each request that waits needs a codec of its own. A
//! reply is one train of numbered datagrams; that to a multi-get is one train for each key that was found, and in the meta
//! protocol for each line. Trains are not numbered: only the codec can tell that a reply is over, and a second copy of a
//! train from one of a further key is told by the key in it. Of trains of several datagrams each one key's may be taken for another's, so that these
//! are read in order or not at all ([`DatagramCodec::with_key_trains`](super::DatagramCodec::with_key_trains)). For the same reason a lost train of a multi-get's key looks like
//! a missing key, unless it was the one that ends the reply.

/// Bytes in front of every datagram.
pub const HEADER_BYTES: usize = 8;

/// The longest datagram that memcached sends. All of a train but the last are as long.
pub const DATAGRAM_BYTES_MAX: usize = 1400;

/// The most that a datagram carries of a reply.
pub const PAYLOAD_BYTES_MAX: usize = DATAGRAM_BYTES_MAX - HEADER_BYTES;

/// Room for a datagram that is received. One that fills it may have been cut, and no server is known to send any as long.
pub const DATAGRAM_ROOM: usize = 2048;

/// How many datagrams a later one may overtake and still be held for them.
pub const AHEAD_MAX: u16 = u64::BITS as u16;

/// What is in front of a datagram, numbers in network order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header {
    /// Which request this is, or answers.
    pub request_id: u16,
    /// Which datagram of its train, from 0.
    pub sequence: u16,
    /// How many make the train.
    pub total: u16,
    /// 0, and not looked at.
    pub reserved: u16,
}

impl Header {
    /// The header of a request.
    #[inline]
    pub const fn request(request_id: u16) -> Self {
        Self { request_id, sequence: 0, total: 1, reserved: 0 }
    }

    /// As on the wire.
    #[inline]
    pub const fn to_bytes(self) -> [u8; HEADER_BYTES] {
        let [i0, i1] = self.request_id.to_be_bytes();
        let [s0, s1] = self.sequence.to_be_bytes();
        let [t0, t1] = self.total.to_be_bytes();
        let [r0, r1] = self.reserved.to_be_bytes();
        [i0, i1, s0, s1, t0, t1, r0, r1]
    }

    /// A datagram's header, and what is behind it; `None` if it is too short to have one.
    #[inline]
    pub fn split(datagram: &[u8]) -> Option<(Self, &[u8])> {
        let (&[i0, i1, s0, s1, t0, t1, r0, r1], payload) = datagram.split_first_chunk()?;
        let header = Self {
            request_id: u16::from_be_bytes([i0, i1]),
            sequence: u16::from_be_bytes([s0, s1]),
            total: u16::from_be_bytes([t0, t1]),
            reserved: u16::from_be_bytes([r0, r1]),
        };
        Some((header, payload))
    }
}

/// How far the train has come that a waiting request is receiving.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Reassembly {
    /// Datagrams of the train, 0 between two of them.
    total: u16,
    /// Those in front of this one were handed on.
    next: u16,
    /// Those behind it that are held, the one after it in the lowest bit.
    held: u64,
}

/// What to do with a datagram whose id a request waits under.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReassemblyStep {
    /// It continues the reply: it goes to the codec, and behind it the held ones that follow, in order.
    Next {
        /// How many.
        held: u16,
    },
    /// One before it is still to come: to be held, under its number.
    Ahead,
    /// A copy of one that has been here.
    Duplicate,
    /// There is nothing in it. memcached 1.6.18 sends one, of a train of 0, before the reply to a multi-get in the text
    /// protocol whose first key is missing.
    Hollow,
    /// It is too far ahead to be held, or of another train than the one that is not over yet: it cannot be placed, and is
    /// missing from now on.
    Disordered,
    /// No server sends such a header.
    Malformed,
}

impl Reassembly {
    /// Is no train in flight?
    #[inline]
    pub const fn is_between(&self) -> bool {
        self.total == 0
    }

    /// How many datagrams the train in flight has; 0 between two of them.
    #[inline]
    pub const fn total(&self) -> u16 {
        self.total
    }

    /// How many datagrams of the train in flight have not come; 0 between two of them.
    #[inline]
    pub const fn missing(&self) -> u16 {
        // Those that are held lie behind the next one, below the total of a train that is believed.
        self.total.saturating_sub(self.next).saturating_sub(self.held.count_ones() as u16)
    }

    /// How many datagrams this one has overtaken, if it is of the train in flight or of a new one.
    #[inline]
    pub const fn ahead(&self, header: Header) -> u16 {
        header.sequence.saturating_sub(self.next)
    }

    /// Records a datagram with `payload_len` bytes behind its header.
    #[inline]
    pub fn receive(&mut self, header: Header, payload_len: usize) -> ReassemblyStep {
        let Header { sequence, total, .. } = header;
        if total == 0 && payload_len == 0 {
            return ReassemblyStep::Hollow;
        }
        if sequence >= total || payload_len == 0 {
            return ReassemblyStep::Malformed;
        }
        // A train's first datagram is believed before those that came ahead of any first: they were copies of an old train.
        if self.total == 0 || (self.next == 0 && sequence == 0 && total != self.total) {
            *self = Self { total, ..Self::default() };
        }
        if total != self.total {
            return ReassemblyStep::Disordered;
        }
        match sequence.checked_sub(self.next) {
            None => ReassemblyStep::Duplicate,
            Some(0) => self.advance(),
            Some(ahead @ 1..=AHEAD_MAX) => self.hold(ahead),
            Some(_) => ReassemblyStep::Disordered,
        }
    }

    /// The next datagram is here, and with it those held behind it.
    #[inline]
    fn advance(&mut self) -> ReassemblyStep {
        let held = self.held.trailing_ones();
        self.next += 1 + held as u16;
        self.held = self.held.checked_shr(held + 1).unwrap_or(0);
        if self.next == self.total {
            *self = Self::default();
        }
        ReassemblyStep::Next { held: held as u16 }
    }

    /// One is here that is so far ahead.
    fn hold(&mut self, ahead: u16) -> ReassemblyStep {
        let bit = 1 << (ahead - 1);
        if self.held & bit != 0 {
            return ReassemblyStep::Duplicate;
        }
        self.held |= bit;
        ReassemblyStep::Ahead
    }
}

#[cfg(test)]
mod tests;
