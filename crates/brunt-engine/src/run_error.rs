//! Why a run failed: one type from the worker or control thread that notices it to the user.
//!
//! Faults during a run are data. Invariant: each kind defines its message and its origin here.

use brunt_plan::server::ServerAddress;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::io;

/// Why a run failed.
#[derive(Debug)]
pub enum RunError {
    /// No address of a server accepts connections.
    Unreachable {
        /// The server as named in the plan.
        server: ServerAddress,
        /// The last error.
        reason: io::Error,
    },
    /// A connection was established, and ended before the server had answered.
    NoReply {
        /// The server as named in the plan.
        server: ServerAddress,
        /// What was not answered, how the connection ended, and a hint.
        reason: String,
    },
    /// A server rejects the connection setup, or does not use the protocol of the plan.
    SetupRejected {
        /// The server as named in the plan.
        server: ServerAddress,
        /// The server's reply.
        reason: String,
    },
    /// A server has no slot map of a cluster.
    NoSlotMap {
        /// The server as named in the plan.
        server: ServerAddress,
        /// The server's reply.
        reason: String,
    },
    /// The TLS handshake failed, or a certificate was rejected.
    TlsFailed {
        /// The server as named in the plan.
        server: ServerAddress,
        /// Why.
        reason: String,
    },
    /// Some keys could not be stored. A worker knows its own keys; the control thread adds the rest.
    PreloadFailed {
        /// Names of the servers.
        servers: String,
        /// Keys confirmed.
        confirmed: u64,
        /// Keys to store.
        wanted: u64,
        /// What has ended it, the server's first error, or the failures of connections.
        reason: String,
        /// A hint, or nothing.
        hint: String,
    },
    /// The start of the window was set too late for the workers.
    WindowTooLate,
    /// Interrupted before the schedule began.
    Interrupted,
    /// An option asks for more memory than this process may use.
    OutOfMemory {
        /// The options with their values.
        option: String,
        /// What they need at least.
        bytes: u64,
    },
    /// A system call failed that every run needs; it names what failed.
    System(io::Error),
    /// A trace cannot be opened.
    TraceUnreadable(TraceError),
    /// The kernel interface that the plan names is unavailable.
    IoUnavailable {
        /// Which.
        name: &'static str,
        /// Why.
        reason: String,
    },
    /// No kernel interface works here: why each does not.
    NoIo {
        /// Of io_uring.
        io_uring: String,
        /// Of epoll.
        epoll: String,
    },
    /// Another host failed: which, and why.
    Remote(RemoteError),
}

/// The failure of another host.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RemoteError {
    /// The failure is a server's, as that host sees it.
    pub is_server_error: bool,
    /// Which host, and what failed; for a user.
    pub reason: String,
}

/// A trace file that cannot be read.
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
            Self::NoReply { server, reason } => write!(formatter, "no reply from {server} {reason}"),
            Self::SetupRejected { server, reason } => {
                write!(formatter, "connection setup with {server} failed: {reason}")
            }
            Self::NoSlotMap { server, reason } => {
                write!(formatter, "{server} returned no cluster slot map: {reason}")
            }
            Self::TlsFailed { server, reason } => write!(formatter, "TLS with {server} failed: {reason}"),
            Self::PreloadFailed { servers, confirmed, wanted, reason, hint } => {
                write!(formatter, "preload failed: {confirmed} of {wanted} keys stored on {servers}; {reason}{hint}")
            }
            Self::Interrupted => formatter.write_str("interrupted before anything was measured"),
            Self::OutOfMemory { option, bytes } => write!(
                formatter,
                "{option}: at least {} MiB of address space needed, more than this process may use beside the rest (ulimit -v, or a full host): expected less",
                bytes.div_ceil(1 << 20)
            ),
            Self::System(error) => write!(formatter, "{error}"),
            Self::WindowTooLate => formatter.write_str(
                "--warmup auto: the host stopped this process at the start of the measured window; try again, or give --warmup a duration",
            ),
            Self::TraceUnreadable(TraceError { file, error }) => {
                write!(formatter, "cannot read trace '{file}': {error}")
            }
            Self::IoUnavailable { name, reason } => {
                write!(formatter, "{name} unavailable: {reason}; use --io auto")
            }
            Self::NoIo { io_uring, epoll } => {
                write!(formatter, "no kernel interface works here: io_uring: {io_uring}; epoll: {epoll}")
            }
            Self::Remote(blame) => formatter.write_str(&blame.reason),
        }
    }
}

impl std::error::Error for RunError {}

/// The origin of a failure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ErrorOrigin {
    /// A server, or the network.
    Server,
    /// The user's request.
    Request,
    /// A host of the run.
    Host,
    /// An interruption.
    Interruption,
}

impl RunError {
    /// Of a worker, which knows its own keys only.
    pub(crate) fn preload_failed(confirmed: u64, reason: String) -> Self {
        let (servers, hint) = (String::new(), String::new());
        Self::PreloadFailed { servers, confirmed, wanted: 0, reason, hint }
    }

    /// The origin of the failure.
    pub const fn origin(&self) -> ErrorOrigin {
        match self {
            Self::Unreachable { .. }
            | Self::NoReply { .. }
            | Self::SetupRejected { .. }
            | Self::TlsFailed { .. }
            | Self::NoSlotMap { .. }
            | Self::PreloadFailed { .. }
            | Self::Remote(RemoteError { is_server_error: true, .. }) => ErrorOrigin::Server,
            Self::IoUnavailable { .. } | Self::TraceUnreadable(_) | Self::OutOfMemory { .. } => {
                ErrorOrigin::Request
            }
            Self::System(_) | Self::NoIo { .. } | Self::WindowTooLate | Self::Remote(_) => ErrorOrigin::Host,
            Self::Interrupted => ErrorOrigin::Interruption,
        }
    }
}
