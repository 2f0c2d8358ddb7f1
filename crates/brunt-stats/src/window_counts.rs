//! What was found out about the objects of windows, and how much of them was stored.
//!
//! Not what is wrong with a value (that is `verification.rs`): a value that is not the one stored counts there, too, under its fault.

use crate::counts::counts;

counts! {
    /// Counts over all phases.
    pub struct WindowCounts {
        /// Values checked that were not those stored.
        pub verify_failed: u64,
        /// Keys checked that were not there.
        pub verify_misses: u64,
        /// Objects that were there more than 5 s after they were to expire.
        pub expired_get: u64,
        /// Objects that were gone more than 5 s before they were to expire.
        pub unexpired_unget: u64,
        /// Bytes of the keys and values of all sets that were sent, to every server.
        pub object_bytes: u64,
    }
}

impl WindowCounts {
    /// Each count with the words behind the number in a report.
    pub const fn rows(&self) -> [(&'static str, u64); 5] {
        [
            ("checked objects had another value", self.verify_failed),
            ("checked objects were not there", self.verify_misses),
            ("were there 5 s after their time to live", self.expired_get),
            ("were gone 5 s before its end", self.unexpired_unget),
            ("bytes of keys and values were set", self.object_bytes),
        ]
    }
}
