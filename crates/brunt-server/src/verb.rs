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
    /// All verbs, in the order of their numbers from 1.
    pub const ALL: [Self; 12] = [
        Self::Get,
        Self::Gets,
        Self::Set,
        Self::Add,
        Self::Replace,
        Self::Append,
        Self::Prepend,
        Self::Cas,
        Self::Incr,
        Self::Decr,
        Self::Delete,
        Self::Touch,
    ];

    /// Does it ask for values?
    pub const fn is_retrieval(self) -> bool {
        matches!(self, Self::Get | Self::Gets)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn verbs_match_their_numbers() {
        for (index, verb) in Verb::ALL.into_iter().enumerate() {
            assert_eq!(verb as usize, index + 1);
        }
    }
}
