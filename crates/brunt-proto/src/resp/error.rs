//! The first word of an error reply.
//!
//! The text behind that word is prose, and changes from version to version. A pure function over the text of an error,
//! without the `-` in front and the line end behind. Every text has just one prefix, so that their counts add up to the
//! errors.

use brunt_plan::outcome::ReplyKind::{self, ClientError, Redirect, ServerError};

/// The first word of an error, as far as reports tell them apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ErrorPrefix {
    /// The word as servers write it, and in reports.
    pub name: &'static str,
    /// The kind of reply in the words of all protocols.
    pub reply: ReplyKind,
}

/// The words that reports tell apart. `ERR` is anything that has no word of its own: unknown commands, wrong numbers of
/// arguments, no integer …
const WORDS: [(&str, ReplyKind); 18] = [
    ("ERR", ReplyKind::Error),
    ("WRONGTYPE", ClientError),
    ("MOVED", Redirect),
    ("ASK", Redirect),
    (ErrorPrefix::TRY_AGAIN, ServerError),
    ("CLUSTERDOWN", ServerError),
    ("CROSSSLOT", ClientError),
    ("LOADING", ServerError),
    ("OOM", ServerError),
    ("BUSY", ServerError),
    ("MISCONF", ServerError),
    ("READONLY", ServerError),
    ("MASTERDOWN", ServerError),
    ("NOREPLICAS", ServerError),
    ("NOAUTH", ClientError),
    ("WRONGPASS", ClientError),
    ("NOPERM", ClientError),
    ("NOPROTO", ClientError),
];

impl ErrorPrefix {
    /// A cluster node has not all of the keys now.
    pub const TRY_AGAIN: &'static str = "TRYAGAIN";

    /// Every other word, and none: a script may answer with any text.
    const OTHER: Self = Self { name: "other", reply: ReplyKind::Error };

    /// What the text of an error begins with.
    pub fn of(text: &[u8]) -> Self {
        let word = text.split(|byte| *byte == b' ').next().unwrap_or_default();
        let known = WORDS.iter().find(|(name, _)| name.as_bytes() == word);
        known.map_or(Self::OTHER, |&(name, reply)| Self { name, reply })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_word_decides() {
        // Texts of redis-server 7.0.15, and some that are like none of its own.
        let table = [
            ("ERR value is not an integer or out of range", "ERR", ReplyKind::Error),
            (
                "WRONGTYPE Operation against a key holding the wrong kind of value",
                "WRONGTYPE",
                ReplyKind::ClientError,
            ),
            ("NOAUTH Authentication required.", "NOAUTH", ReplyKind::ClientError),
            ("CROSSSLOT Keys in request don't hash to the same slot", "CROSSSLOT", ReplyKind::ClientError),
            ("MOVED 12182 127.0.0.1:22403", "MOVED", ReplyKind::Redirect),
            ("ASK 12182 127.0.0.1:22403", "ASK", ReplyKind::Redirect),
            ("LOADING Redis is loading the dataset in memory", "LOADING", ReplyKind::ServerError),
            ("OOM command not allowed when used memory > 'maxmemory'.", "OOM", ReplyKind::ServerError),
            ("CLUSTERDOWN Hash slot not served", "CLUSTERDOWN", ReplyKind::ServerError),
            ("My Error", "other", ReplyKind::Error),
            ("ERRATIC", "other", ReplyKind::Error),
            ("oom", "other", ReplyKind::Error),
            ("other", "other", ReplyKind::Error),
            ("", "other", ReplyKind::Error),
            (" ERR", "other", ReplyKind::Error),
        ];
        for (text, name, reply) in table {
            assert_eq!(ErrorPrefix::of(text.as_bytes()), ErrorPrefix { name, reply }, "{text}");
        }
    }
}
