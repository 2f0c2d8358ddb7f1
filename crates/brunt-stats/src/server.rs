//! Replies and failures of each server.
//!
//! Not the books: these count replies on the wire and failures by the server they concern, in whatever phase, while the
//! books count requests, of which one may ask several servers.

use crate::counts::counts;

counts! {
    /// What one server did.
    pub struct ServerCounts {
        /// Replies as the protocol provides.
        pub answered: u64,
        /// Requests to it that failed: error, timeout, mismatch, lost.
        pub failed: u64,
        /// Requests to it that were never sent.
        pub unsent: u64,
        /// Of these, abandoned because it was down.
        pub abandoned: u64,
        /// Requests that it sent to another node of its cluster, and that went there.
        pub redirected: u64,
    }
}

/// Adds the counts of each server to those of the same server.
pub(crate) fn merge_all(ours: &mut [ServerCounts], theirs: &[ServerCounts]) {
    assert_eq!(ours.len(), theirs.len(), "counts of different numbers of servers do not add");
    ours.iter_mut().zip(theirs).for_each(|(ours, theirs)| ours.merge(theirs));
}
