//! What a redirected operation keeps from node to node of a cluster.
//!
//! The operation names it, on a connection or in a queue. Invariant: from the first hop until it is recorded, an operation has
//! one, which remembers its first send.

/// The redirects of one operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct RedirectState {
    /// When its last byte was handed over for the first time.
    pub first_sent_ns: u64,
    /// When it last began to wait for another node.
    pub waiting_since_ns: u64,
    /// Redirects so far.
    pub hops: u8,
    /// Its next request goes behind an `ASKING`.
    pub needs_asking: bool,
    /// The reply to that `ASKING` has not come.
    pub awaits_asking: bool,
}

impl RedirectState {
    /// Of an operation that was first sent at this time.
    pub(crate) fn new(first_sent_ns: u64) -> Self {
        let waiting_since_ns = first_sent_ns;
        Self { first_sent_ns, waiting_since_ns, hops: 0, needs_asking: false, awaits_asking: false }
    }
}
