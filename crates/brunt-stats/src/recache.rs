//! Counts of values that a meta server marked as to be recached.
//!
//! Not outcomes: a value so marked is a hit like any other.

use serde::{Deserialize, Serialize};

/// Values by mark, over all phases; one value may have several.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct RecacheCounts {
    /// This client is to recache it.
    pub won: u64,
    /// It was stale and sent all the same.
    pub stale: u64,
    /// Another client is to recache it.
    pub taken: u64,
}

impl RecacheCounts {
    /// Adds the counts of another worker.
    pub fn merge(&mut self, other: &Self) {
        self.won += other.won;
        self.stale += other.stale;
        self.taken += other.taken;
    }
}
