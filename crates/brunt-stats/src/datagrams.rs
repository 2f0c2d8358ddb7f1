//! Datagrams that were of no use to any request, counted by why.
//!
//! Not outcomes: what is lost shows as a request that times out, and what is here changes no book of requests.

use serde::{Deserialize, Serialize};

/// How many datagrams of replies were of no use, over all phases.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct DatagramCounts {
    /// They came to a request that had timed out, or so late that nobody knows any more which it was.
    pub late: u64,
    /// They had been here before.
    pub duplicate: u64,
    /// They answer nothing that was sent, or a change that asked for no reply.
    pub stray: u64,
    /// They had overtaken so many others of their reply that they could not be kept.
    pub disordered: u64,
    /// They are no reply.
    pub malformed: u64,
}

impl DatagramCounts {
    /// Those of another worker, too.
    pub fn merge(&mut self, other: &Self) {
        self.late += other.late;
        self.duplicate += other.duplicate;
        self.stray += other.stray;
        self.disordered += other.disordered;
        self.malformed += other.malformed;
    }

    /// Each count with its name.
    pub const fn rows(&self) -> [(&'static str, u64); 5] {
        [
            ("late", self.late),
            ("duplicate", self.duplicate),
            ("stray", self.stray),
            ("disordered", self.disordered),
            ("malformed", self.malformed),
        ]
    }
}
