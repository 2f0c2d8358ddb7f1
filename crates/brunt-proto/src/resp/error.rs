//! The first word of an error reply; and redirections: the node that an error reply of a cluster names.
//!
//! The text behind that word is prose, and changes from version to version. A pure function over the text of an error,
//! without the `-` in front and the line end behind. Every text has just one prefix, so that their counts add up to the
//! errors.

use super::slot::SLOTS;
use crate::resp::slot::NodeHost;
use brunt_plan::outcome::ErrorPersistence::{self, Permanent, Transient};
use brunt_plan::outcome::ReplyKind::{self, ClientError, ServerError};

/// The first word of an error, as far as reports tell them apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ErrorPrefix {
    /// The word as servers write it, and in reports.
    pub name: &'static str,
    /// The kind of reply in the words of all protocols.
    pub reply: ReplyKind,
    /// For how long it holds; of `ERR` and words that are not known, that depends on the text.
    persistence: ErrorPersistence,
}

/// The words that reports tell apart. `ERR` is anything that has no word of its own: unknown commands, wrong numbers of
/// arguments, no integer …
const WORDS: [(&str, ReplyKind, ErrorPersistence); 18] = [
    ("ERR", ReplyKind::Error, Transient),
    ("WRONGTYPE", ClientError, Permanent),
    ("MOVED", ReplyKind::Redirect, Permanent),
    ("ASK", ReplyKind::Redirect, Transient),
    (ErrorPrefix::TRY_AGAIN, ServerError, Transient),
    ("CLUSTERDOWN", ServerError, Transient),
    ("CROSSSLOT", ClientError, Permanent),
    ("LOADING", ServerError, Transient),
    ("OOM", ServerError, Permanent),
    ("BUSY", ServerError, Transient),
    ("MISCONF", ServerError, Permanent),
    ("READONLY", ServerError, Permanent),
    ("MASTERDOWN", ServerError, Transient),
    ("NOREPLICAS", ServerError, Transient),
    ("NOAUTH", ClientError, Permanent),
    ("WRONGPASS", ClientError, Permanent),
    ("NOPERM", ClientError, Permanent),
    ("NOPROTO", ClientError, Permanent),
];

/// What errors without a word of their own say of a request that they will never take. Texts of redis-server 7.0.15.
const BLAMED: [&str; 4] =
    ["unknown command", "wrong number of arguments", "syntax error", "exceeds maximum allowed size"];

impl ErrorPrefix {
    /// A cluster node has not all of the keys now.
    pub const TRY_AGAIN: &'static str = "TRYAGAIN";

    /// Every other word, and none: a script may answer with any text.
    const OTHER: Self = Self { name: "other", reply: ReplyKind::Error, persistence: Transient };

    /// What the text of an error begins with.
    pub fn of(text: &[u8]) -> Self {
        let word = text.split(|byte| *byte == b' ').next().unwrap_or_default();
        let known = WORDS.iter().find(|(name, ..)| name.as_bytes() == word);
        known.map_or(Self::OTHER, |&(name, reply, persistence)| Self { name, reply, persistence })
    }

    /// For how long the error with this text holds. A proxy says `ERR` of a server that is down; what the text blames the request
    /// for holds.
    pub(crate) fn persistence(self, text: &[u8]) -> ErrorPersistence {
        let blames = |words: &&str| text.windows(words.len()).any(|part| part == words.as_bytes());
        if self.reply == ReplyKind::Error && BLAMED.iter().any(blames) {
            return Permanent;
        }
        self.persistence
    }
}

// --- Redirections ---

/// Whether a redirection is for good.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RedirectKind {
    /// The slot lives there from now on.
    Moved,
    /// The slot is on its way there: requests for this key go there, after an `ASKING`, and the map stays as it is.
    Ask,
}

/// Where an error sends its client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Redirect<'a> {
    /// For good or not.
    pub kind: RedirectKind,
    /// Which slot it is about; below [`SLOTS`].
    pub slot: u16,
    /// On which host the node is.
    pub host: NodeHost<'a>,
    /// The port there, not 0.
    pub port: u16,
}

impl<'a> Redirect<'a> {
    /// Reads `MOVED SLOT HOST:PORT` or the same of `ASK`; `None` of every other text.
    pub fn of(text: &'a [u8]) -> Option<Self> {
        let text = std::str::from_utf8(text).ok()?;
        let mut words = text.split(' ');
        let kind = match words.next()? {
            "MOVED" => RedirectKind::Moved,
            "ASK" => RedirectKind::Ask,
            _ => return None,
        };
        let slot = words.next()?.parse().ok().filter(|slot| *slot < SLOTS)?;
        // An IPv6 address is there without brackets: its last colon is the one before the port.
        let (host, port) = words.next()?.rsplit_once(':')?;
        let port = port.parse().ok().filter(|port| *port != 0)?;
        words.next().is_none().then_some(Self { kind, slot, host: NodeHost::of(host), port })
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
            let found = ErrorPrefix::of(text.as_bytes());
            assert_eq!((found.name, found.reply), (name, reply), "{text}");
        }
    }

    #[test]
    fn persistence_of_errors() {
        let table = [
            ("OOM command not allowed when used memory > 'maxmemory'.", Permanent),
            ("NOAUTH Authentication required.", Permanent),
            ("READONLY You can't write against a read only replica.", Permanent),
            ("MISCONF Redis is configured to save RDB snapshots", Permanent),
            ("MOVED 12182 127.0.0.1:22403", Permanent),
            ("ERR unknown command 'SET', with args beginning with: ", Permanent),
            ("ERR string exceeds maximum allowed size (proto-max-bulk-len)", Permanent),
            ("ERR Connection refused", Transient),
            ("LOADING Redis is loading the dataset in memory", Transient),
            ("BUSY Redis is busy running a script.", Transient),
            ("TRYAGAIN Multiple keys request during rehashing of slot", Transient),
            ("CLUSTERDOWN The cluster is down", Transient),
            ("upstream failure", Transient),
            ("-", Transient),
        ];
        for (text, expected) in table {
            assert_eq!(ErrorPrefix::of(text.as_bytes()).persistence(text.as_bytes()), expected, "{text}");
        }
    }

    #[test]
    fn redirections_parse() {
        let to = |kind, slot, host, port| Some(Redirect { kind, slot, host, port });
        let table = [
            ("MOVED 3999 127.0.0.1:6381", to(RedirectKind::Moved, 3999, NodeHost::Named("127.0.0.1"), 6381)),
            ("ASK 3999 127.0.0.1:6381", to(RedirectKind::Ask, 3999, NodeHost::Named("127.0.0.1"), 6381)),
            ("MOVED 0 cache-1.example:1", to(RedirectKind::Moved, 0, NodeHost::Named("cache-1.example"), 1)),
            ("MOVED 16383 ::1:7000", to(RedirectKind::Moved, 16383, NodeHost::Named("::1"), 7000)),
            ("MOVED 16383 [::1]:7000", to(RedirectKind::Moved, 16383, NodeHost::Named("::1"), 7000)),
            // `cluster-preferred-endpoint-type unknown-endpoint`, and `hostname` where none is announced.
            ("MOVED 12182 :22403", to(RedirectKind::Moved, 12182, NodeHost::Asked, 22403)),
            ("MOVED 12182 ?:22403", to(RedirectKind::Moved, 12182, NodeHost::Unknown, 22403)),
            ("MOVED 16384 127.0.0.1:6381", None),
            ("MOVED -1 127.0.0.1:6381", None),
            ("MOVED 1 127.0.0.1", None),
            ("MOVED 1 127.0.0.1:0", None),
            ("MOVED 1 127.0.0.1:65536", None),
            ("MOVED 1 127.0.0.1:6381 more", None),
            ("MOVED 1", None),
            ("MOVED", None),
            ("moved 1 127.0.0.1:6381", None),
            ("ERR MOVED 1 127.0.0.1:6381", None),
            ("", None),
        ];
        for (text, expected) in table {
            assert_eq!(Redirect::of(text.as_bytes()), expected, "{text}");
        }
        assert_eq!(Redirect::of(b"MOVED 1 \xff:1"), None);
    }
}
