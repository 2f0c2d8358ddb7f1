//! The first word of an error reply.
//!
//! Not prose: the text behind that word is for people, and changes from version to version. A pure function over the text
//! of an error, without the `-` in front and the line end behind. Every text has just one prefix, so that their counts
//! add up to the errors.

use brunt_plan::outcome::ReplyKind;

/// The first word of an error, as far as reports tell them apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
#[allow(missing_docs, reason = "the names are the protocol's own")]
pub enum ErrorPrefix {
    /// Anything that has no word of its own: unknown commands, wrong numbers of arguments, no integer …
    Err,
    WrongType,
    Moved,
    Ask,
    TryAgain,
    ClusterDown,
    CrossSlot,
    Loading,
    Oom,
    Busy,
    MisConf,
    ReadOnly,
    MasterDown,
    NoReplicas,
    NoAuth,
    WrongPass,
    NoPerm,
    NoProto,
    /// Every other word, and none: a script may answer with any text.
    Other,
}

impl ErrorPrefix {
    /// How many there are; `prefix as usize` is below this.
    pub const COUNT: usize = 19;

    /// All of them, in the order of their numbers.
    pub const ALL: [Self; Self::COUNT] = [
        Self::Err,
        Self::WrongType,
        Self::Moved,
        Self::Ask,
        Self::TryAgain,
        Self::ClusterDown,
        Self::CrossSlot,
        Self::Loading,
        Self::Oom,
        Self::Busy,
        Self::MisConf,
        Self::ReadOnly,
        Self::MasterDown,
        Self::NoReplicas,
        Self::NoAuth,
        Self::WrongPass,
        Self::NoPerm,
        Self::NoProto,
        Self::Other,
    ];

    /// The word as servers write it, and in reports.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Err => "ERR",
            Self::WrongType => "WRONGTYPE",
            Self::Moved => "MOVED",
            Self::Ask => "ASK",
            Self::TryAgain => "TRYAGAIN",
            Self::ClusterDown => "CLUSTERDOWN",
            Self::CrossSlot => "CROSSSLOT",
            Self::Loading => "LOADING",
            Self::Oom => "OOM",
            Self::Busy => "BUSY",
            Self::MisConf => "MISCONF",
            Self::ReadOnly => "READONLY",
            Self::MasterDown => "MASTERDOWN",
            Self::NoReplicas => "NOREPLICAS",
            Self::NoAuth => "NOAUTH",
            Self::WrongPass => "WRONGPASS",
            Self::NoPerm => "NOPERM",
            Self::NoProto => "NOPROTO",
            Self::Other => "other",
        }
    }

    /// What the text of an error begins with.
    pub fn of(text: &[u8]) -> Self {
        let word = text.split(|byte| *byte == b' ').next().unwrap_or_default();
        let words = &Self::ALL[..Self::COUNT - 1];
        words.iter().copied().find(|prefix| prefix.name().as_bytes() == word).unwrap_or(Self::Other)
    }

    /// The kind of reply in the words of all protocols.
    pub const fn reply(self) -> ReplyKind {
        match self {
            Self::Moved | Self::Ask => ReplyKind::Redirect,
            Self::Err | Self::Other => ReplyKind::Error,
            Self::WrongType
            | Self::CrossSlot
            | Self::NoAuth
            | Self::WrongPass
            | Self::NoPerm
            | Self::NoProto => ReplyKind::ClientError,
            Self::TryAgain
            | Self::ClusterDown
            | Self::Loading
            | Self::Oom
            | Self::Busy
            | Self::MisConf
            | Self::ReadOnly
            | Self::MasterDown
            | Self::NoReplicas => ReplyKind::ServerError,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_names_and_order_agree() {
        for (index, prefix) in ErrorPrefix::ALL.into_iter().enumerate() {
            assert_eq!(prefix as usize, index);
            assert_eq!(ErrorPrefix::of(prefix.name().as_bytes()), prefix);
        }
    }

    #[test]
    fn the_first_word_decides() {
        // Texts of redis-server 7.0.15, and some that are like none of its own.
        let table = [
            ("ERR value is not an integer or out of range", ErrorPrefix::Err, ReplyKind::Error),
            (
                "WRONGTYPE Operation against a key holding the wrong kind of value",
                ErrorPrefix::WrongType,
                ReplyKind::ClientError,
            ),
            ("NOAUTH Authentication required.", ErrorPrefix::NoAuth, ReplyKind::ClientError),
            (
                "CROSSSLOT Keys in request don't hash to the same slot",
                ErrorPrefix::CrossSlot,
                ReplyKind::ClientError,
            ),
            ("MOVED 12182 127.0.0.1:22403", ErrorPrefix::Moved, ReplyKind::Redirect),
            ("ASK 12182 127.0.0.1:22403", ErrorPrefix::Ask, ReplyKind::Redirect),
            ("LOADING Redis is loading the dataset in memory", ErrorPrefix::Loading, ReplyKind::ServerError),
            (
                "OOM command not allowed when used memory > 'maxmemory'.",
                ErrorPrefix::Oom,
                ReplyKind::ServerError,
            ),
            ("CLUSTERDOWN Hash slot not served", ErrorPrefix::ClusterDown, ReplyKind::ServerError),
            ("My Error", ErrorPrefix::Other, ReplyKind::Error),
            ("ERRATIC", ErrorPrefix::Other, ReplyKind::Error),
            ("oom", ErrorPrefix::Other, ReplyKind::Error),
            ("other", ErrorPrefix::Other, ReplyKind::Error),
            ("", ErrorPrefix::Other, ReplyKind::Error),
            (" ERR", ErrorPrefix::Other, ReplyKind::Error),
        ];
        for (text, prefix, reply) in table {
            assert_eq!((ErrorPrefix::of(text.as_bytes()), prefix.reply()), (prefix, reply), "{text}");
        }
    }
}
