//! Why a run failed: one type from the worker or control thread that notices it to the user; and which option the user may have missed,
//! from what a server sends instead of a valid reply.
//!
//! Faults during a run are data. Invariant: each kind defines its message and its origin here.

use brunt_plan::plan::{Plan, Protocol, Server, Transport};
use brunt_plan::quoted_bytes::QuotedBytes;
use brunt_plan::server::ServerAddress;
use brunt_proto::detection::DetectedProtocol;
use brunt_stats::connection::FirstMalformed;
use serde::{Deserialize, Serialize};
use std::io;
use thiserror::Error;

/// Why a run failed.
#[derive(Debug, Error)]
pub enum RunError {
    /// A server does not do what the run needs of it.
    #[error("{}", .failure.sentence(.server, .reason))]
    Server {
        /// What it does not do.
        failure: ServerFailure,
        /// The server as named in the plan.
        server: ServerAddress,
        /// The last error, the server's reply, or what was not answered and how the connection ended; and a hint.
        reason: String,
    },
    /// Some keys could not be stored, or deleted. A worker says why; what all have done is added when they have ended.
    #[error(
        "{} failed: {confirmed} of {wanted} keys confirmed on {servers}; {reason}{hint}",
        if *.is_to_delete { "delete" } else { "preload" }
    )]
    PreloadFailed {
        /// They were to be deleted.
        is_to_delete: bool,
        /// Names of the servers.
        servers: String,
        /// Keys that servers confirmed; others may have arrived, too.
        confirmed: u64,
        /// Keys to store.
        wanted: u64,
        /// What has ended it, the server's first error, or the failures of connections.
        reason: String,
        /// A hint, or nothing.
        hint: String,
    },
    /// The start of the window was set too late for the workers.
    #[error(
        "--warmup auto: the host stopped this process at the start of the measured window; try again, or give --warmup a duration"
    )]
    WindowTooLate,
    /// Interrupted before the schedule began.
    #[error("interrupted before anything was measured")]
    Interrupted,
    /// A system call failed that every run needs; it names what failed.
    #[error("{0}")]
    System(io::Error),
    /// A trace cannot be opened.
    #[error("cannot read trace '{}': {}", .0.file, .0.error)]
    TraceUnreadable(TraceError),
    /// The kernel interface that the plan names is unavailable.
    #[error("{name} unavailable: {reason}; use --io auto")]
    IoUnavailable {
        /// Which.
        name: &'static str,
        /// Why.
        reason: String,
    },
    /// No kernel interface works here: why each does not.
    #[error("no kernel interface works here: io_uring: {io_uring}; epoll: {epoll}")]
    NoIo {
        /// Of io_uring.
        io_uring: String,
        /// Of epoll.
        epoll: String,
    },
    /// Another host failed: which, and why.
    #[error("{}", .0.reason)]
    Remote(RemoteError),
}

/// What a server did not do for a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ServerFailure {
    /// None of its addresses accepts connections.
    Unreachable,
    /// A connection was established, and ended before the server had answered.
    NoReply,
    /// It rejects the connection setup, or does not use the protocol of the plan.
    SetupRejected,
    /// It has no slot map of a cluster.
    NoSlotMap,
    /// What it speaks was asked, and is not known.
    UnknownProtocol,
    /// The TLS handshake failed, or a certificate was rejected.
    TlsFailed,
}

impl ServerFailure {
    fn sentence(self, server: &ServerAddress, reason: &str) -> String {
        match self {
            Self::Unreachable => format!("cannot connect to {server}: {reason}{}", remedies(reason)),
            Self::NoReply => format!("no reply from {server} {reason}"),
            Self::SetupRejected => format!("connection setup with {server} failed: {reason}"),
            Self::NoSlotMap => format!("{server} returned no cluster slot map: {reason}"),
            Self::UnknownProtocol => format!("cannot tell what {server} speaks: {reason}"),
            Self::TlsFailed => format!("TLS with {server} failed: {reason}"),
        }
    }
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
    /// Of a worker, which does not know what the others have done.
    pub(crate) fn preload_failed(reason: String) -> Self {
        let (servers, hint) = (String::new(), String::new());
        Self::PreloadFailed { is_to_delete: false, servers, confirmed: 0, wanted: 0, reason, hint }
    }

    /// The origin of the failure.
    pub const fn origin(&self) -> ErrorOrigin {
        match self {
            Self::Server { .. }
            | Self::PreloadFailed { .. }
            | Self::Remote(RemoteError { is_server_error: true, .. }) => ErrorOrigin::Server,
            Self::IoUnavailable { .. } | Self::TraceUnreadable(_) => ErrorOrigin::Request,
            Self::System(_) | Self::NoIo { .. } | Self::WindowTooLate | Self::Remote(_) => ErrorOrigin::Host,
            Self::Interrupted => ErrorOrigin::Interruption,
        }
    }
}

/// A hint from the first invalid reply or the first error; empty if there is none.
pub fn hint(plan: &Plan, reply: &[u8]) -> String {
    let servers = &plan.servers;
    let of = |differs: fn(&Server) -> bool| servers.iter().find(|server| differs(server));
    let text = String::from_utf8_lossy(reply);
    let error = text.strip_prefix('-').unwrap_or(&text);
    let word = error.split([' ', '\r']).next().unwrap_or_default();
    match (DetectedProtocol::of(reply), word) {
        (Some(DetectedProtocol::Redis), _) if let Some(server) = of(|server| !server.protocol.is_resp()) => {
            looks_like("Redis", &url(server, "redis", "rediss"), "--protocol resp3")
        }
        (Some(DetectedProtocol::Memcached), _)
            if let Some(server) = of(|server| !server.protocol.is_memcached()) =>
        {
            looks_like("memcached", &url(server, "memcached", "memcacheds"), "--protocol memcached-text")
        }
        (Some(DetectedProtocol::Memcached), _)
            if let Some(server) = of(|server| server.protocol == Protocol::MemcachedBinary) =>
        {
            let url = url(server, "memcached", "memcacheds");
            looks_like("memcached's text protocol", &url, "--protocol memcached-text")
        }
        (Some(DetectedProtocol::Tls), _)
            if let Some(server) = of(|server| server.transport == Transport::Tcp) =>
        {
            let secure = if server.protocol.is_resp() { "rediss" } else { "memcacheds" };
            looks_like("TLS", &url(server, secure, secure), "--set transport=tls")
        }
        (_, "MOVED" | "ASK" | "CLUSTERDOWN") if !plan.is_cluster => {
            "; this is a cluster node: use --cluster".to_owned()
        }
        (_, "NOAUTH") if plan.login.password.is_none() => {
            "; the server requires a password: use --password @FILE".to_owned()
        }
        _ => remedies(&text).to_owned(),
    }
}

/// What helps against an error that holds until the request, the server or its settings are others.
fn remedies(error: &str) -> &'static str {
    let table = [
        (
            "connection refused (os error",
            "; start it, or give its port (brunt run without -s starts a server of its own)",
        ),
        ("too large", "; use a smaller --value-size, or raise the item limit of the server (memcached -I)"),
        (
            "exceeds maximum allowed size",
            "; use a smaller --value-size, or raise proto-max-bulk-len of the server",
        ),
        (
            "out of memory",
            "; give the server more memory (memcached -m), let it evict (without -M), or use fewer --keys",
        ),
        ("OOM ", "; raise maxmemory of the server, set a maxmemory-policy that evicts, or use fewer --keys"),
        (
            "too many open connections",
            "; raise the server's limit of connections (memcached -c), or use fewer --connections",
        ),
        ("max number of clients", "; raise maxclients of the server, or use fewer --connections"),
        (
            "NOPERM ",
            "; let this user send this command with these keys (ACL SETUSER), or use another user name",
        ),
        ("NOAUTH ", "; check user name and --password"),
        ("WRONGPASS ", "; check user name and --password"),
        ("READONLY ", "; this server is a replica: use the address of its primary"),
        (
            "MISCONF ",
            "; the server cannot save its data: repair that, or set stop-writes-on-bgsave-error no there",
        ),
        (
            "unknown command",
            "; the server does not have this command: check --protocol and what the server is",
        ),
    ];
    let error = error.to_ascii_lowercase();
    let known = table.iter().find(|(words, _)| error.contains(&words.to_ascii_lowercase()));
    known.map_or("", |(_, remedy)| remedy)
}

fn looks_like(kind: &str, url: &Option<String>, option: &str) -> String {
    let url = url.as_ref().map(|url| format!("{url} or ")).unwrap_or_default();
    format!("; this looks like {kind}: use {url}{option}")
}

/// The server's address behind a scheme; none of a path, nor of a server that is started for the run.
fn url(server: &Server, plain: &str, secure: &str) -> Option<String> {
    let address = server.address.as_ref().filter(|address| !address.is_unix())?;
    let scheme = if server.transport == Transport::Tls { secure } else { plain };
    Some(format!("{scheme}://{address}"))
}

/// Hint for a server that closes plain connections, or does not answer on them.
pub(crate) const TLS_HINT: &str = "; for a TLS port use -s rediss://HOST or memcacheds://HOST";

pub(crate) fn tls_hint(plan: &Plan) -> &'static str {
    if plan.uses_transport(Transport::Tcp) { TLS_HINT } else { "" }
}

/// Describes malformed bytes for a user.
pub(crate) fn describe_malformed(malformed: &FirstMalformed) -> String {
    format!("malformed reply \"{}\": {}", QuotedBytes(malformed.bytes()), malformed.reason)
}
