//! Discarded reply datagrams, counted by reason; and memaslap's three counters of UDP.
//!
//! Not outcomes: what is lost shows as a request that times out, and what is here changes no book of requests.

use crate::counts::counts;

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
