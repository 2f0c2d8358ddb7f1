//! What the workers of a run count and note beside their intervals, over all phases.
//!
//! Not outcomes of requests (those are in the books) and not times. A worker owns one from start to end, the control thread merges them,
//! agents send theirs, and a summary keeps the sum: a new counter is declared and merged here, and nowhere else on its way.
//! Invariant: the order of merging leaves no trace but in the texts that are kept, of which the first stays.

use crate::cluster::RedirectionCounts;
use crate::datagrams::DatagramCounts;
use crate::error_replies::ErrorReplies;
use crate::fault::{FirstError, FirstMalformed};
use crate::occupancy::OccupancyTotal;
use crate::recache::RecacheCounts;
use crate::stamps::StampCounts;
use crate::verification::Verification;
use crate::window_counts::WindowCounts;
use serde::{Deserialize, Serialize};

/// What the workers counted. Results of before a counter was added have none of it.
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
    /// Workers that ended before their time because they had none left.
    pub workers_cut_off: u64,
    /// Replies that no operation waited for, where replies carry tokens.
    pub unmatched_replies: u64,
    /// Values read that do not begin as ours do, and so could not be compared.
    pub values_foreign: u64,
    /// What was wrong with the others.
    pub verification: Verification,
    /// What was found out about the objects of windows.
    pub windows: WindowCounts,
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
        if self.first_error.is_none() {
            self.first_error.clone_from(&other.first_error);
        }
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
