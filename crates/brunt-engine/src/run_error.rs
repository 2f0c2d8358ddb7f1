//! Why there is nothing to report: one type from the worker or control thread that finds out to the user who is told.
//!
//! Not trouble during a run, which is data. Invariant: each kind says here what it tells and who is to blame, and nowhere else.

use crate::company::Blame;
use crate::trace_reader::NoTrace;
use brunt_plan::server::ServerAddress;
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
    Unanswered {
        /// The server as named in the plan.
        server: ServerAddress,
        /// What was not answered, how it ended, and what the user may have meant.
        reason: String,
    },
    /// A server does not let us in, or does not speak the protocol of the plan.
    TurnedAway {
        /// The server as named in the plan.
        server: ServerAddress,
        /// What it said.
        reason: String,
    },
    /// A server that is to be a node of a cluster has no map of one.
    NoCluster {
        /// The server as named in the plan.
        server: ServerAddress,
        /// What it said.
        reason: String,
    },
    /// TLS cannot be agreed on with a server, or one of its certificates and ours is refused.
    NoTls {
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
    LateWindow,
    /// Stopped before the schedule began.
    Interrupted,
    /// The host lacks something that every run needs.
    System(io::Error),
    /// A trace cannot be opened.
    NoTrace(NoTrace),
    /// The interface to the kernel that the plan names cannot be had: why.
    NoInterface(String),
    /// Another host of the run failed: which, and why.
    Company(Blame),
}

impl fmt::Display for RunError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unreachable { server, reason } => write!(formatter, "cannot connect to {server}: {reason}"),
            Self::Unanswered { server, reason } => write!(formatter, "connected to {server}, but {reason}"),
            Self::TurnedAway { server, reason } => {
                write!(formatter, "{server} does not let us in: {reason}")
            }
            Self::NoCluster { server, reason } => {
                write!(formatter, "--cluster: {server} has no map of a cluster: {reason}")
            }
            Self::NoTls { server, reason } => write!(formatter, "no TLS with {server}: {reason}"),
            Self::PreloadFailed { servers, confirmed, wanted, reason, hint } => {
                write!(formatter, "preload: {servers} confirmed {confirmed} of {wanted} keys ({reason}){hint}")
            }
            Self::Interrupted => formatter.write_str("interrupted before anything was measured"),
            Self::System(error) => write!(formatter, "cannot start a worker: {error}"),
            Self::LateWindow => formatter.write_str(
                "--warmup auto: the host stopped the program while it began the measured window; try again, or give --warmup a duration",
            ),
            Self::NoTrace(NoTrace { file, error }) => {
                write!(formatter, "trace: cannot read '{file}': {error}")
            }
            Self::NoInterface(why) => {
                write!(formatter, "--io uring: io_uring: {why}; --io auto would take epoll")
            }
            Self::Company(blame) => formatter.write_str(&blame.reason),
        }
    }
}

impl std::error::Error for RunError {}

/// What a run that came to nothing has to be blamed on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Blamed {
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
    pub const fn blamed(&self) -> Blamed {
        match self {
            Self::Unreachable { .. }
            | Self::Unanswered { .. }
            | Self::TurnedAway { .. }
            | Self::NoTls { .. }
            | Self::NoCluster { .. }
            | Self::PreloadFailed { .. }
            | Self::Company(Blame { is_servers: true, .. }) => Blamed::Server,
            Self::NoInterface(_) | Self::NoTrace(_) => Blamed::Request,
            Self::System(_) | Self::LateWindow | Self::Company(_) => Blamed::Host,
            Self::Interrupted => Blamed::Interruption,
        }
    }
}
