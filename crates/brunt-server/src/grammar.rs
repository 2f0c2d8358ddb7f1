//! What every grammar yields, whatever the protocol: what the front of the input is, and the kinds of data command, which are
//! numbered, served with a service time and logged.
//!
//! Invariants: a request is seen whole or not at all, wherever the input is cut; the number of a kind is the one in the log, and
//! never changes.

use memchr::memchr;

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

/// The line at the front of the input without its end, and its length with it. One that is longer than this, the line feed left out, is
/// broken, with this last reply.
pub(crate) fn line<'a, T>(
    input: &'a [u8],
    bytes_max: usize,
    too_long: &'static [u8],
) -> Result<(&'a [u8], usize), Parsed<T>> {
    match memchr(b'\n', &input[..input.len().min(bytes_max + 1)]) {
        Some(end) => Ok((input[..end].strip_suffix(b"\r").unwrap_or(&input[..end]), end + 1)),
        None if input.len() > bytes_max => Err(Parsed::Broken(too_long)),
        None => Err(Parsed::Partial { need: input.len() + 1 }),
    }
}

/// What is done to an item. A command of a protocol that has no name here is the kind it is most like: whatever only reads
/// is a get, whatever only changes a time to live is a touch, and Redis's writes of hashes are sets.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
#[allow(missing_docs, reason = "the names are the text protocol's own")]
pub enum Verb {
    Get = 1,
    Gets,
    Set,
    Add,
    Replace,
    Append,
    Prepend,
    Cas,
    Incr,
    Decr,
    Delete,
    Touch,
}

impl Verb {
    /// Does it ask for values?
    pub const fn is_retrieval(self) -> bool {
        matches!(self, Self::Get | Self::Gets)
    }
}

#[cfg(test)]
mod tests {
    use super::Verb;

    #[test]
    fn verbs_match_their_numbers() {
        use Verb::{Add, Append, Cas, Decr, Delete, Get, Gets, Incr, Prepend, Replace, Set, Touch};
        let verbs = [Get, Gets, Set, Add, Replace, Append, Prepend, Cas, Incr, Decr, Delete, Touch]
            .map(|verb| verb as u8);
        assert_eq!(verbs, [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12]);
    }
}
