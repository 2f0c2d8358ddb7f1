//! How many connections were begun, what became of each, and what went wrong with them: how often, and when first.
//!
//! Not outcomes of ops (request accounting has those; a fault makes some of them lost) and not how long connecting took (that is a meter).
//! Network trouble is data: a fault is counted here, whatever the run does next. Invariant, at any time: `begun = established + failed +
//! pending` and `established = retired + lost + open`, where pending and open are what the differences say; a difference below zero is a
//! defect of the tool.

use crate::counts::counts;
use brunt_plan::op::ClassId;
use brunt_plan::phase::Phase;
use brunt_plan::quoted_bytes::QuotedBytes;
use serde::{Deserialize, Serialize};
use std::borrow::Cow;
use std::fmt;

/// What happened to a connection. Every one is begun, then established or failed, then retired or lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ConnectionEvent {
    /// An attempt to connect began.
    Begun,
    /// It is there, and can carry requests.
    Established,
    /// The attempt came to nothing.
    Failed,
    /// It was established and we closed it, as the plan wants it.
    Retired,
    /// It was established and went away against the plan.
    Lost,
}

counts! {
    /// How often each of the events happened.
    pub struct ConnectionCounts {
        /// Attempts to connect.
        pub begun: u64,
        /// Attempts that succeeded.
        pub established: u64,
        /// Attempts that did not.
        pub failed: u64,
        /// Connections closed as planned.
        pub retired: u64,
        /// Connections lost.
        pub lost: u64,
    }
}

impl ConnectionCounts {
    /// Counts one event.
    pub fn record(&mut self, event: ConnectionEvent) {
        let count = match event {
            ConnectionEvent::Begun => &mut self.begun,
            ConnectionEvent::Established => &mut self.established,
            ConnectionEvent::Failed => &mut self.failed,
            ConnectionEvent::Retired => &mut self.retired,
            ConnectionEvent::Lost => &mut self.lost,
        };
        *count += 1;
    }

    /// Attempts that have not ended. Only of a whole run: an attempt may end in another interval than it began in.
    pub const fn pending(&self) -> u64 {
        self.begun.saturating_sub(self.established + self.failed)
    }

    /// Established connections. Only of a whole run.
    pub const fn open(&self) -> u64 {
        self.established.saturating_sub(self.retired + self.lost)
    }

    /// Did nothing end that had not begun? To be asked of a whole run.
    pub const fn adds_up(&self) -> bool {
        self.established + self.failed <= self.begun && self.retired + self.lost <= self.established
    }
}

/// What went wrong with a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum FaultKind {
    /// No process listens there.
    Refused,
    /// The peer reset the connection.
    Reset,
    /// The peer closed the connection in good order, while we still had use for it.
    ClosedByPeer,
    /// It was not established in time, or we closed it because a reply did not come in time.
    TimedOut,
    /// The kernel gave it up: the peer acknowledged nothing any more (ETIMEDOUT).
    SocketTimedOut,
    /// The peer sent bytes that are no reply.
    Malformed,
    /// The peer did not let the connection in: it refused credentials, a database, or the version of the protocol.
    SetupRejected,
    /// TLS could not be agreed on or went wrong: a certificate was refused by either side, an alert came, or bytes that are no TLS.
    TlsFailed,
    /// No local port was left to connect from.
    NoPort,
    /// This process had no file descriptor left for a connection (EMFILE).
    NoDescriptor,
    /// The system had no open file left for a connection (ENFILE).
    NoFile,
    /// Another error number of the system.
    Other(i32),
}

impl FaultKind {
    /// For reports and as a JSON value; the number of an [`FaultKind::Other`] stands apart.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Refused => "refused",
            Self::Reset => "reset",
            Self::ClosedByPeer => "closed_by_peer",
            Self::TimedOut => "timed_out",
            Self::SocketTimedOut => "socket_timed_out",
            Self::Malformed => "malformed",
            Self::SetupRejected => "setup_rejected",
            Self::TlsFailed => "tls_failed",
            Self::NoPort => "no_port",
            Self::NoDescriptor => "no_descriptor",
            Self::NoFile => "no_file",
            Self::Other(_) => "other",
        }
    }

    /// What was missing on our own side, and what helps; `None` where that is not known.
    pub const fn remedy(self) -> Option<&'static str> {
        match self {
            Self::NoPort => Some(NO_PORT),
            Self::NoDescriptor => Some(
                "this process had as many files open as it may (EMFILE): raise the hard limit (ulimit -Hn) or let fewer connections be \
                 open at a time",
            ),
            Self::NoFile => Some(
                "the whole system had as many files open as it may (ENFILE): sudo sysctl -w fs.file-max=1000000",
            ),
            _ => None,
        }
    }
}

/// How to have more local ports.
pub const MORE_PORTS: &str =
    "sudo sysctl -w net.ipv4.ip_local_port_range='1024 65535' net.ipv4.tcp_tw_reuse=1";

/// The ports that [`MORE_PORTS`] gives.
pub const PORTS_MAX: u64 = 65_535 - 1_024 + 1;

/// How to open more connections than one address of ours has ports for.
pub const MORE_ADDRESSES: &str = "one address has at most 64512 ports to each server: name more of its addresses (--server again), divide \
                                  the connections among hosts (--agent), or use --server unix:PATH";

/// [`MORE_PORTS`] is the end of it.
const NO_PORT: &str = "all local ports to the server's address were taken (EADDRNOTAVAIL), by open connections or by closed ones, whose \
                       ports stay taken for up to a minute (TIME_WAIT). linger 0s closes by a reset, which frees the port at once; \
                       for more ports: sudo sysctl -w net.ipv4.ip_local_port_range='1024 65535' net.ipv4.tcp_tw_reuse=1";

/// One row of the table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Fault {
    /// The phase it happened in.
    pub phase: Phase,
    /// What happened.
    pub kind: FaultKind,
    /// Number of faults.
    pub count: u64,
    /// Time of the first, in nanoseconds.
    pub first_ns: u64,
}

/// Faults by phase and kind, in that order.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct FaultTable {
    faults: Vec<Fault>,
}

impl FaultTable {
    /// Empty, with room for more distinct faults than a run meets, so that recording one does not allocate.
    pub fn new() -> Self {
        Self { faults: Vec::with_capacity(64) }
    }

    /// Counts one fault.
    pub fn record(&mut self, phase: Phase, kind: FaultKind, at_ns: u64) {
        self.add(Fault { phase, kind, count: 1, first_ns: at_ns });
    }

    fn add(&mut self, fault: Fault) {
        match self.faults.binary_search_by_key(&(fault.phase, fault.kind), |held| (held.phase, held.kind)) {
            Ok(index) => {
                let held = &mut self.faults[index];
                held.count += fault.count;
                held.first_ns = held.first_ns.min(fault.first_ns);
            }
            Err(index) => self.faults.insert(index, fault),
        }
    }

    /// Adds another table.
    pub fn merge(&mut self, other: &Self) {
        other.faults.iter().for_each(|fault| self.add(*fault));
    }

    /// The rows, by phase and kind.
    pub fn rows(&self) -> &[Fault] {
        &self.faults
    }

    /// The rows for correction in place; phases and kinds must stay.
    pub(crate) fn rows_mut(&mut self) -> &mut [Fault] {
        &mut self.faults
    }

    /// Number of faults of one kind, over all phases.
    pub fn count_of(&self, kind: FaultKind) -> u64 {
        self.faults.iter().filter(|fault| fault.kind == kind).map(|fault| fault.count).sum()
    }

    /// How many faults in all.
    pub fn total(&self) -> u64 {
        self.faults.iter().map(|fault| fault.count).sum()
    }

    /// Yields a copy and leaves the table empty, its memory kept.
    pub fn take(&mut self) -> Self {
        let taken = Self { faults: self.faults.clone() };
        self.faults.clear();
        taken
    }
}

/// The text of the first error reply.
pub type FirstError = Excerpt<256>;

/// The front of what a server sent, in memory of its own, so that keeping it does not allocate.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "Vec<u8>", into = "Vec<u8>")]
pub struct Excerpt<const BYTES_MAX: usize> {
    bytes: [u8; BYTES_MAX],
    len: u16,
}

impl<const BYTES_MAX: usize> Excerpt<BYTES_MAX> {
    /// Keeps the front of `bytes`.
    pub fn new(bytes: &[u8]) -> Self {
        let len = bytes.len().min(BYTES_MAX);
        let mut kept = [0; BYTES_MAX];
        kept[..len].copy_from_slice(&bytes[..len]);
        Self { bytes: kept, len: len as u16 }
    }

    /// What was kept of it.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes[..usize::from(self.len)]
    }
}

/// For people: on one line.
impl<const BYTES_MAX: usize> fmt::Display for Excerpt<BYTES_MAX> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        QuotedBytes(self.bytes()).fmt(formatter)
    }
}

impl<const BYTES_MAX: usize> From<Vec<u8>> for Excerpt<BYTES_MAX> {
    fn from(bytes: Vec<u8>) -> Self {
        Self::new(&bytes)
    }
}

impl<const BYTES_MAX: usize> From<Excerpt<BYTES_MAX>> for Vec<u8> {
    fn from(excerpt: Excerpt<BYTES_MAX>) -> Self {
        excerpt.bytes().to_vec()
    }
}

/// The first bytes that were no reply, so that a wrong port or protocol is recognised at a glance.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FirstMalformed {
    /// When.
    pub at_ns: u64,
    /// On a connection of which class.
    pub class: ClassId,
    /// Why they are no reply.
    pub reason: Cow<'static, str>,
    bytes: Excerpt<64>,
}

impl FirstMalformed {
    /// Keeps the front of `bytes`, which begins with the first offending one.
    pub fn new(at_ns: u64, class: ClassId, reason: &'static str, bytes: &[u8]) -> Self {
        Self { at_ns, class, reason: Cow::Borrowed(reason), bytes: Excerpt::new(bytes) }
    }

    /// The bytes that were kept.
    pub fn bytes(&self) -> &[u8] {
        self.bytes.bytes()
    }

    /// The earlier of two.
    pub fn earliest(one: Option<Self>, other: Option<Self>) -> Option<Self> {
        match (one, other) {
            (Some(one), Some(other)) => Some(if other.at_ns < one.at_ns { other } else { one }),
            (one, other) => one.or(other),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::ConnectionEvent::{Begun, Established, Failed, Lost, Retired};
    use super::*;

    #[test]
    fn only_begun_connections_can_end() {
        // Events → pending, open, balances.
        let table: [(&[ConnectionEvent], u64, u64, bool); 8] = [
            (&[], 0, 0, true),
            (&[Begun], 1, 0, true),
            (&[Begun, Begun, Begun, Established, Failed], 1, 1, true),
            (&[Begun, Begun, Established, Established, Retired, Lost], 0, 0, true),
            (&[Begun, Begun, Established, Established, Retired], 0, 1, true),
            (&[Established], 0, 1, false),
            (&[Begun, Failed, Established], 0, 1, false),
            (&[Begun, Established, Retired, Lost], 0, 0, false),
        ];
        for (events, pending, open, balances) in table {
            let mut counts = ConnectionCounts::default();
            events.iter().for_each(|event| counts.record(*event));
            assert_eq!(
                (counts.pending(), counts.open(), counts.adds_up()),
                (pending, open, balances),
                "{events:?}"
            );
            let mut doubled = counts;
            doubled.merge(&counts);
            assert_eq!((doubled.begun, doubled.lost), (counts.begun * 2, counts.lost * 2));
        }
    }

    #[test]
    fn counts_and_first_times() {
        let mut table = FaultTable::new();
        table.record(Phase::Measure, FaultKind::Reset, 70);
        table.record(Phase::Connect, FaultKind::Refused, 10);
        let mut other = FaultTable::new();
        other.record(Phase::Measure, FaultKind::Reset, 50);
        other.record(Phase::Measure, FaultKind::Other(113), 60);
        table.merge(&other);
        let rows: Vec<_> =
            table.rows().iter().map(|row| (row.phase, row.kind, row.count, row.first_ns)).collect();
        assert_eq!(
            rows,
            [
                (Phase::Connect, FaultKind::Refused, 1, 10),
                (Phase::Measure, FaultKind::Reset, 2, 50),
                (Phase::Measure, FaultKind::Other(113), 1, 60),
            ]
        );
        assert_eq!((table.take().total(), table.total()), (4, 0));
    }

    #[test]
    fn garbage_is_cut_and_the_earliest_wins() {
        let late = FirstMalformed::new(9, 0, "why", &[7; 100]);
        let early = FirstMalformed::new(3, 1, "why", b"HTTP/1.1 400");
        assert_eq!(late.bytes().len(), 64);
        assert_eq!(
            FirstMalformed::earliest(Some(late.clone()), Some(early)).unwrap().bytes(),
            b"HTTP/1.1 400"
        );
        assert_eq!(FirstMalformed::earliest(None, Some(late.clone())), Some(late));
        assert_eq!(FirstMalformed::earliest(None, None), None);
    }
}
