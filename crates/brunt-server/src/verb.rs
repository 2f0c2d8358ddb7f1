//! The kinds of data command, whatever the protocol: what is numbered, served with a service time and logged.
//!
//! Only names. Invariant: the number of a kind is the one in the log, and never changes.

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
