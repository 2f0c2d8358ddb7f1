//! Why there is nothing to report: one type from the worker or control thread that finds out to the user who is told.
//!
//! Not trouble during a run, which is data. Invariant: each kind says here what it tells and who is to blame, and nowhere else.

use brunt_plan::server::ServerAddress;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::io;

/// Why there is nothing to report.
#[derive(Debug)]
pub enum RunError {
    /// No address of a server accepts connections.
    Unreachable {
        /// The server as named in the plan.
        server: ServerAddress,
        /// The last refusal.
        reason: io::Error,
    },
    /// A connection to a server stood, and came to its end before the server had answered.
    NoReply {
        /// The server as named in the plan.
        server: ServerAddress,
        /// What was not answered, how it ended, and what the user may have meant.
        reason: String,
    },
    /// A server does not let us in, or does not speak the protocol of the plan.
    SetupRejected {
        /// The server as named in the plan.
        server: ServerAddress,
        /// What it said.
        reason: String,
    },
    /// A server that is to be a node of a cluster has no map of one.
    NoSlotMap {
        /// The server as named in the plan.
        server: ServerAddress,
        /// What it said.
        reason: String,
    },
    /// TLS cannot be agreed on with a server, or one of its certificates and ours is refused.
    TlsFailed {
        /// The server as named in the plan.
        server: ServerAddress,
        /// Why.
        reason: String,
    },
    /// Not every key could be stored. A worker knows its own keys; the control thread says the rest.
    PreloadFailed {
        /// Where they were to be stored.
        servers: String,
        /// How many were.
        confirmed: u64,
        /// Of how many.
        wanted: u64,
        /// What the server said first, or what became of the connections.
        reason: String,
        /// What the user may have meant, or nothing.
        hint: String,
    },
    /// The measured window was to begin before every worker could know that it does.
    WindowTooLate,
    /// Stopped before the schedule began.
    Interrupted,
    /// The host lacks something that every run needs.
    System(io::Error),
    /// A trace cannot be opened.
    TraceUnreadable(TraceError),
    /// The interface to the kernel that the plan names cannot be had: why.
    IoUnavailable(String),
    /// Another host of the run failed: which, and why.
    Remote(RemoteError),
}

/// Why a run came to nothing, of somebody elsewhere.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RemoteError {
    /// A server is to blame, as that host sees it, and not the host.
    pub is_server_error: bool,
    /// Who, and what is wrong; for a user.
    pub reason: String,
}

/// A file of a plan's that cannot be read.
#[derive(Debug)]
pub struct TraceError {
    /// The file as the plan names it.
    pub file: String,
    /// Why.
    pub error: io::Error,
}

impl fmt::Display for RunError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unreachable { server, reason } => write!(formatter, "cannot connect to {server}: {reason}"),
            Self::NoReply { server, reason } => write!(formatter, "connected to {server}, but {reason}"),
            Self::SetupRejected { server, reason } => {
                write!(formatter, "{server} does not let us in: {reason}")
            }
            Self::NoSlotMap { server, reason } => {
                write!(formatter, "--cluster: {server} has no map of a cluster: {reason}")
            }
            Self::TlsFailed { server, reason } => write!(formatter, "no TLS with {server}: {reason}"),
            Self::PreloadFailed { servers, confirmed, wanted, reason, hint } => {
                write!(formatter, "preload: {servers} confirmed {confirmed} of {wanted} keys ({reason}){hint}")
            }
            Self::Interrupted => formatter.write_str("interrupted before anything was measured"),
            Self::System(error) => write!(formatter, "cannot start a worker: {error}"),
            Self::WindowTooLate => formatter.write_str(
                "--warmup auto: the host stopped the program while it began the measured window; try again, or give --warmup a duration",
            ),
            Self::TraceUnreadable(TraceError { file, error }) => {
                write!(formatter, "trace: cannot read '{file}': {error}")
            }
            Self::IoUnavailable(why) => {
                write!(formatter, "--io uring: io_uring: {why}; --io auto would take epoll")
            }
            Self::Remote(blame) => formatter.write_str(&blame.reason),
        }
    }
}

impl std::error::Error for RunError {}

/// What a run that came to nothing has to be blamed on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ErrorOrigin {
    /// A server, or the way to it.
    Server,
    /// What the user asked for.
    Request,
    /// A host that took part.
    Host,
    /// Nothing: it was stopped.
    Interruption,
}

impl RunError {
    /// As a worker says it, which knows its own keys alone.
    pub(crate) fn preload_failed(confirmed: u64) -> Self {
        let (servers, reason, hint) = (String::new(), String::new(), String::new());
        Self::PreloadFailed { servers, confirmed, wanted: 0, reason, hint }
    }

    /// What is to be blamed.
    pub const fn origin(&self) -> ErrorOrigin {
        match self {
            Self::Unreachable { .. }
            | Self::NoReply { .. }
            | Self::SetupRejected { .. }
            | Self::TlsFailed { .. }
            | Self::NoSlotMap { .. }
            | Self::PreloadFailed { .. }
            | Self::Remote(RemoteError { is_server_error: true, .. }) => ErrorOrigin::Server,
            Self::IoUnavailable(_) | Self::TraceUnreadable(_) => ErrorOrigin::Request,
            Self::System(_) | Self::WindowTooLate | Self::Remote(_) => ErrorOrigin::Host,
            Self::Interrupted => ErrorOrigin::Interruption,
        }
    }
}
