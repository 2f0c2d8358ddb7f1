//! What the workers of a run count and note beside their intervals, over all phases.
//!
//! Not outcomes of requests (those are in request accounting) and not times. A worker owns one from start to end, the control thread merges
//! them, agents send theirs, and a summary keeps the sum: a new counter is declared and merged here, and nowhere else on its way.
//! Invariant: the order of merging leaves no trace but in the texts that are kept, of which the first stays.

use crate::connection::{FirstError, FirstMalformed};
use crate::counts::counts;
use crate::occupancy::OccupancyTotal;
use crate::verification::{ObjectCounts, Verification};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::borrow::Cow;

/// What the workers counted.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct WorkerCounts {
    /// Messages of servers that answer nothing.
    pub pushes: u64,
    /// The most connections that stood at one time from the start of the schedule on: of each worker, added up.
    pub connections_most: u64,
    /// Connections that were lost and not begun again, where the plan has it so.
    pub connections_abandoned: u64,
    /// Replicas that a change was not made on, or not as far as is known, for no connection to them was left.
    pub replicas_missed: u64,
    /// Stores after misses for which a database was asked.
    pub fills: FillCounts,
    /// Workers that ended before their time because they had none left.
    pub workers_cut_off: u64,
    /// Replies that no operation waited for, where replies carry tokens.
    pub unmatched_replies: u64,
    /// Values read that do not begin as ours do, and so could not be compared.
    pub values_foreign: u64,
    /// What was wrong with the others.
    pub verification: Verification,
    /// What was found out about the objects of windows.
    pub windows: ObjectCounts,
    /// What became of datagrams.
    pub datagrams: DatagramCounts,
    /// Values that a server marked as to be renewed.
    pub recache: RecacheCounts,
    /// What became of the requests whose kernel timestamps were asked for.
    pub stamps: StampCounts,
    /// What the nodes of a cluster sent elsewhere.
    pub redirections: RedirectionCounts,
    /// Raw samples that were kept, where the plan asked for them.
    pub samples_kept: u64,
    /// Raw samples there was no room for.
    pub samples_overflow: u64,
    /// For how long the window lasted at the most when a worker learned of its beginning.
    pub window_late_ns: u64,
    /// Operations in the system over the measured window.
    pub occupancy: OccupancyTotal,
    /// Error replies by their first word, where the protocol has such words.
    pub error_replies: ErrorReplies,
    /// The text of the first error reply.
    pub first_error: Option<FirstError>,
    /// The first bytes that were no reply.
    pub first_malformed: Option<FirstMalformed>,
}

impl WorkerCounts {
    /// Adds those of another worker.
    pub fn merge(&mut self, other: &Self) {
        self.pushes += other.pushes;
        self.connections_most += other.connections_most;
        self.connections_abandoned += other.connections_abandoned;
        self.replicas_missed += other.replicas_missed;
        self.fills.merge(&other.fills);
        self.workers_cut_off += other.workers_cut_off;
        self.unmatched_replies += other.unmatched_replies;
        self.values_foreign += other.values_foreign;
        self.verification.merge(&other.verification);
        self.windows.merge(&other.windows);
        self.datagrams.merge(&other.datagrams);
        self.recache.merge(&other.recache);
        self.stamps.merge(&other.stamps);
        self.redirections.merge(&other.redirections);
        self.samples_kept += other.samples_kept;
        self.samples_overflow += other.samples_overflow;
        self.window_late_ns = self.window_late_ns.max(other.window_late_ns);
        self.occupancy.merge(&other.occupancy);
        self.error_replies.merge(&other.error_replies);
        self.first_error = self.first_error.or(other.first_error);
        self.first_malformed =
            FirstMalformed::earliest(self.first_malformed.take(), other.first_malformed.clone());
    }

    /// What is no more than a number: the words behind it in the text (where it is not 0), and the number.
    pub const fn rows(&self) -> [(&'static str, u64); 5] {
        [
            ("messages pushed by the server", self.pushes),
            ("unmatched replies", self.unmatched_replies),
            ("connections lost and not begun again", self.connections_abandoned),
            ("parts of changes without their replica, which was gone", self.replicas_missed),
            ("workers that ended early, with no connection left", self.workers_cut_off),
        ]
    }
}

/// The most hops of one operation from node to node: behind that, what the node answers is its end.
pub const HOPS_MAX: u8 = 5;

/// Replies that sent a request elsewhere, and those that could not be followed.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RedirectionCounts {
    /// Operations, or parts of a multi-get, that were sent on at least once.
    pub operations: u64,
    /// Followed to the node that has the slot from now on.
    pub moved: u64,
    /// Followed for once, while the slot is on its way.
    pub ask: u64,
    /// Asked again a little later, because the keys of the request were not all in one place.
    pub try_again: u64,
    /// The most hops from node to node that one of them took.
    pub hops_max: u8,
    /// Ended as an error, because they had taken five hops.
    pub too_many: u64,
    /// Ended as an error, because they were sent to a node that was not known when the run began.
    pub unknown: u64,
    /// The first such node.
    pub unknown_node: Option<String>,
}

impl RedirectionCounts {
    /// All hops: replies that were followed.
    pub const fn hops(&self) -> u64 {
        self.moved + self.ask + self.try_again
    }

    /// Adds the counts of another worker.
    pub fn merge(&mut self, other: &Self) {
        self.operations += other.operations;
        self.moved += other.moved;
        self.ask += other.ask;
        self.try_again += other.try_again;
        self.hops_max = self.hops_max.max(other.hops_max);
        self.too_many += other.too_many;
        self.unknown += other.unknown;
        if self.unknown_node.is_none() {
            self.unknown_node.clone_from(&other.unknown_node);
        }
    }
}

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

counts! {
    /// Stores after misses, with `miss-delay`, of which a worker sees its own.
    pub struct FillCounts {
        /// Keys that were missed again before the set of their first miss had ended.
        pub stampedes: u64,
        /// Misses beyond the first in these.
        pub stampede_misses: u64,
        /// Sets sent without delay, as too many waited.
        pub undelayed: u64,
        /// Sets that were not due when the run ended.
        pub unfinished: u64,
    }
}

impl FillCounts {
    /// Each count with the words behind it.
    pub const fn rows(&self) -> [(&'static str, u64); 4] {
        [
            ("stampedes", self.stampedes),
            ("misses of keys whose fill was outstanding", self.stampede_misses),
            ("fills not delayed, for want of room", self.undelayed),
            ("fills not due before the end", self.unfinished),
        ]
    }
}

counts! {
    /// Values by mark, over all phases; one value may have several.
    pub struct RecacheCounts {
        /// This client is to recache it.
        pub won: u64,
        /// It was stale and sent all the same.
        pub stale: u64,
        /// Another client is to recache it.
        pub taken: u64,
    }
}

counts! {
    /// What became of datagrams of replies, over all phases.
    pub struct DatagramCounts {
        /// They came to a request that had timed out, or so late that the request is no longer known.
        pub late: u64,
        /// They had arrived before.
        pub duplicate: u64,
        /// They answer nothing that was sent, or a change that asked for no reply.
        pub unmatched: u64,
        /// They arrived too far ahead of the rest of their reply to be kept.
        pub disordered: u64,
        /// They are not a valid reply.
        pub malformed: u64,
        /// After which no more of a reply could be read than before: they came ahead of others of their reply, or are late, duplicate, stray
        /// or disordered.
        pub packet_disorder: u64,
        /// Missing of replies of which some had come when their requests timed out.
        pub packet_drop: u64,
        /// Requests over UDP that timed out.
        pub udp_timeout: u64,
    }
}

impl DatagramCounts {
    /// Each count of datagrams that were of no use, with its name.
    pub const fn rows(&self) -> [(&'static str, u64); 5] {
        [
            ("late", self.late),
            ("duplicate", self.duplicate),
            ("unmatched", self.unmatched),
            ("disordered", self.disordered),
            ("malformed", self.malformed),
        ]
    }

    /// memaslap's counters, each with its name.
    pub const fn packet_rows(&self) -> [(&'static str, u64); 3] {
        [
            ("packet_disorder", self.packet_disorder),
            ("packet_drop", self.packet_drop),
            ("udp_timeout", self.udp_timeout),
        ]
    }
}

/// Room for more words than any protocol tells apart, so that counting one does not allocate.
const WORDS: usize = 32;

/// How many error replies begin with each word.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ErrorReplies(Vec<(Cow<'static, str>, u64)>);

impl Default for ErrorReplies {
    fn default() -> Self {
        Self(Vec::with_capacity(WORDS))
    }
}

impl ErrorReplies {
    /// Adds error replies that begin with this word.
    pub fn count(&mut self, word: Cow<'static, str>, times: u64) {
        match self.0.iter_mut().find(|(held, _)| *held == word) {
            Some((_, sum)) => *sum += times,
            None => self.0.push((word, times)),
        }
    }

    /// Adds others.
    pub fn merge(&mut self, other: &Self) {
        other.0.iter().for_each(|(word, times)| self.count(word.clone(), *times));
    }

    /// Each word with its number, the most frequent first.
    pub fn rows(&self) -> Vec<(&str, u64)> {
        let mut rows: Vec<_> = self.0.iter().map(|(word, times)| (word.as_ref(), *times)).collect();
        rows.sort_by(|(one, ones), (other, others)| others.cmp(ones).then_with(|| one.cmp(other)));
        rows
    }

    /// Number of error replies that begin with this word.
    pub fn count_of(&self, word: &str) -> u64 {
        self.0.iter().find(|(held, _)| held == word).map_or(0, |(_, times)| *times)
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

    #[test]
    fn words_add_up_and_the_most_frequent_comes_first() {
        let (mut one, mut other) = (ErrorReplies::default(), ErrorReplies::default());
        [("OOM", 2), ("ERR", 3), ("OOM", 1)]
            .into_iter()
            .for_each(|(word, times)| one.count(word.into(), times));
        [("BUSY", 9), ("ERR", 1)].into_iter().for_each(|(word, times)| other.count(word.into(), times));
        one.merge(&other);
        assert_eq!(one.rows(), [("BUSY", 9), ("ERR", 4), ("OOM", 3)]);
        assert_eq!((one.count_of("OOM"), one.count_of("ASK")), (3, 0));
    }
}
