//! Exit codes: every way a command can end, by number.

use std::fmt::{Debug, Display};

/// Exit codes. When several apply, the first in this order wins: usage, unreachable, failed (also to write a result that was asked
/// for), interrupted, assertion failed, invalid, done. What cannot be printed for a person changes none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Exit {
    /// Done; the status is OK or CAUTION, and what was asserted holds.
    Done = 0,
    /// Something failed that has no number of its own.
    Failed = 1,
    /// The command line or the plan is wrong; nothing was sent.
    Usage = 2,
    /// The run is done, its status is INVALID, or something that was asserted is undecided.
    Invalid = 3,
    /// It is done, and something that was asserted or asked for fails: no rate meets the objectives of a search.
    AssertionFailed = 4,
    /// No connection, no valid reply at all, nothing but errors in reply to a command, or a preload that could not be confirmed.
    Unreachable = 5,
    /// Ended by Ctrl-C, SIGTERM or SIGHUP, after draining and reporting.
    Interrupted = 130,
}

impl Exit {
    /// Of something that was measured, judged, and reported.
    pub(crate) const fn of(is_interrupted: bool, is_missed: bool, is_doubtful: bool) -> Self {
        match (is_interrupted, is_missed, is_doubtful) {
            (true, ..) => Self::Interrupted,
            (_, true, _) => Self::AssertionFailed,
            (_, _, true) => Self::Invalid,
            (false, false, false) => Self::Done,
        }
    }

    /// Every code with its meaning.
    pub(crate) const MEANINGS: [(Self, &str); 7] = [
        (Self::Done, "done; the status is OK or CAUTION, and what was asserted holds"),
        (Self::Failed, "another failure, also to write a result; brunt doctor: a run would fail"),
        (Self::Usage, "the command line or the plan is wrong; nothing was sent"),
        (Self::Invalid, "an assertion is undecided, or the status is INVALID (a CAUTION by --allow CHECK)"),
        (Self::AssertionFailed, "an assertion fails, or no rate meets the objectives of a search"),
        (Self::Unreachable, "no connection, no valid reply (or none to a command), an unconfirmed preload"),
        (Self::Interrupted, "ended by Ctrl-C, SIGTERM or SIGHUP, with its report"),
    ];
}

/// An error with the exit code it leads to.
#[derive(Debug)]
pub(crate) struct Failure {
    /// The exit code.
    pub exit: Exit,
    /// The message for the user.
    pub error: anyhow::Error,
}

impl Failure {
    /// An error of this kind.
    pub(crate) fn new(exit: Exit, error: impl Into<anyhow::Error>) -> Self {
        Self { exit, error: error.into() }
    }

    /// A message with this exit code.
    pub(crate) fn message(exit: Exit, message: impl Display + Debug + Send + Sync + 'static) -> Self {
        Self { exit, error: anyhow::Error::msg(message) }
    }

    /// The same with more behind its message.
    pub(crate) fn followed_by(self, more: &str) -> Self {
        Self::message(self.exit, format!("{:#}{more}", self.error))
    }

    /// A user's mistake.
    pub(crate) fn usage(message: impl Display + Debug + Send + Sync + 'static) -> Self {
        Self::message(Exit::Usage, message)
    }

    /// Something else that failed.
    pub(crate) fn failed(message: impl Display + Debug + Send + Sync + 'static) -> Self {
        Self::message(Exit::Failed, message)
    }
}
