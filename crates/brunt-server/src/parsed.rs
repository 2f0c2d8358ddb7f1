//! What a grammar finds at the front of the input, the same for every protocol.
//!
//! Invariant: a request is seen whole or not at all, wherever the input is cut.

/// What the front of the input is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Parsed<T> {
    /// Not yet a whole request; nothing new can be said before the input has this many bytes.
    Partial {
        /// Length of the input from its front, larger than it is now.
        need: usize,
    },
    /// A whole request.
    Complete {
        /// Its length in bytes.
        used: usize,
        /// What it says.
        request: T,
    },
    /// No request and never one: this is the last reply, then the connection is closed.
    Broken(&'static [u8]),
}

impl<T> Parsed<T> {
    /// Converts the request.
    pub(crate) fn map<U>(self, make: impl FnOnce(T) -> U) -> Parsed<U> {
        match self {
            Self::Partial { need } => Parsed::Partial { need },
            Self::Complete { used, request } => Parsed::Complete { used, request: make(request) },
            Self::Broken(last_reply) => Parsed::Broken(last_reply),
        }
    }
}
