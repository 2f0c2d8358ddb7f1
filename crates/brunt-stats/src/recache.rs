//! Values that a server marked as to be renewed (memcached's leases), counted.
//!
//! Not outcomes: a value so marked is a hit like any other.

use serde::{Deserialize, Serialize};

/// How many values bore which mark, over all phases; one value may bear several.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct RecacheCounts {
    /// This client was told to renew it.
    pub won: u64,
    /// It was out of date and handed out all the same.
    pub stale: u64,
    /// Another client had been told to renew it.
    pub taken: u64,
}

impl RecacheCounts {
    /// Those of another worker, too.
    pub fn merge(&mut self, other: &Self) {
        self.won += other.won;
        self.stale += other.stale;
        self.taken += other.taken;
    }
}
