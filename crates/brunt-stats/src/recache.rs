//! Counts of values that a meta server marked as to be recached.
//!
//! Not outcomes: a value so marked is a hit like any other.

use crate::counts::counts;

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
