//! Kernel timestamps: the spans that they part a request into, and the books of requests whose stamps were asked for.
//!
//! Not their histograms (those are meters). Invariants: the spans of a request add up to the time from before its call to
//! the end of its reply; and once the run is over, asked = matched + discarded.

use crate::counts::counts;

/// The four times of a stamped request, in nanoseconds of one clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StampedTimes {
    /// Before the call that sent it.
    pub before_ns: u64,
    /// The kernel handed its last byte to the network.
    pub transmitted_ns: u64,
    /// The last byte of the reply was in the kernel.
    pub received_ns: u64,
    /// The read that held it returned.
    pub done_ns: u64,
}

impl StampedTimes {
    /// Out through the client's stack, on the wire and in the server, in through the client's stack: three spans that add
    /// up to done − before. The two times in the middle may be wrong by `error_ns`, and are moved by as much where they
    /// lie before what came before them, or behind what came after; if they lie further off, there are no spans.
    pub fn spans(&self, error_ns: u64) -> Option<[u64; 3]> {
        let settled = |at_ns: u64| {
            let is_near =
                at_ns + error_ns >= self.before_ns && at_ns <= self.done_ns.saturating_add(error_ns);
            (is_near && self.before_ns <= self.done_ns).then(|| at_ns.clamp(self.before_ns, self.done_ns))
        };
        let (transmitted_ns, received_ns) = (settled(self.transmitted_ns)?, settled(self.received_ns)?);
        let wire_ns = received_ns.checked_sub(transmitted_ns)?;
        Some([transmitted_ns - self.before_ns, wire_ns, self.done_ns - received_ns])
    }
}

brunt_plan::named! {
    /// Why a request that was to be stamped yields no spans. A sample is thrown away rather than guessed at.
    pub enum StampLoss {
        /// The socket took the request in pieces.
        SentInPieces = "sent_in_pieces": "sent in pieces",
        /// The read that ended its reply held bytes of others, and the stamp belongs to the last of them.
        SharedRead = "shared_read": "read together with other replies",
        /// The kernel did not say when it was handed to the network.
        NoTransmitStamp = "no_transmit_stamp": "without a stamp of sending",
        /// It did, but of another byte.
        OtherByte = "other_byte": "with the stamp of another byte",
        /// The kernel did not say when the reply came in.
        NoReceiveStamp = "no_receive_stamp": "without a stamp of receiving",
        /// The wall clock, which the stamps are taken from, was set while it was out.
        ClockStep = "clock_step": "while the wall clock was set",
        /// The stamps are not in the order of events, by more than reading two clocks can explain.
        OutOfOrder = "out_of_order": "with stamps out of order",
        /// There was no reply.
        Unanswered = "unanswered": "without a reply",
    }
}

counts! {
    /// What became of the requests whose stamps were asked for.
    pub struct StampCounts {
        /// Requests of the measured window whose stamps were asked for.
        pub requested: u64,
        /// Stamps that yielded spans.
        pub matched: u64,
        /// Those that were thrown away, by reason; `loss as usize` is the index.
        pub discarded: [u64; StampLoss::COUNT],
    }
}

impl StampCounts {
    /// One more is thrown away.
    pub fn discard(&mut self, loss: StampLoss) {
        self.discarded[loss as usize] += 1;
    }

    /// How many were thrown away for this reason.
    pub const fn discarded(&self, loss: StampLoss) -> u64 {
        self.discarded[loss as usize]
    }

    /// Has everything that was asked for become something?
    pub fn adds_up(&self) -> bool {
        self.requested == self.matched + self.discarded.iter().sum::<u64>()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Times; the spans with an error of up to 10.
    #[test]
    fn spans_add_up() {
        let table = [
            ([100, 150, 900, 1_000], Some([50, 750, 100])),
            ([100, 100, 100, 100], Some([0, 0, 0])),
            ([100, 90, 1_010, 1_000], Some([0, 900, 0])),
            ([100, 89, 900, 1_000], None),
            ([100, 150, 1_011, 1_000], None),
            ([100, 600, 599, 1_000], None),
            ([100, 95, 90, 1_000], Some([0, 0, 900])),
            ([100, 100, 90, 90], None),
        ];
        for (times, expected) in table {
            let [before_ns, transmitted_ns, received_ns, done_ns] = times;
            let spans = StampedTimes { before_ns, transmitted_ns, received_ns, done_ns }.spans(10);
            assert_eq!(spans, expected, "{times:?}");
            assert!(spans.is_none_or(|spans| spans.iter().sum::<u64>() == done_ns - before_ns));
        }
    }

    #[test]
    fn every_loss_has_its_place() {
        let mut counts = StampCounts::default();
        for (index, loss) in StampLoss::ALL.into_iter().enumerate() {
            assert_eq!(loss as usize, index);
            (0..=index).for_each(|_| counts.discard(loss));
        }
        assert!(!counts.adds_up());
        counts.requested = 36 + 4;
        counts.matched = 4;
        assert!(counts.adds_up());
        let mut twice = counts;
        twice.merge(&counts);
        assert_eq!((twice.requested, twice.matched, twice.discarded(StampLoss::Unanswered)), (80, 8, 16));
        assert!(twice.adds_up());
    }
}
