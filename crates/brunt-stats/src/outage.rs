//! Outages: for how long a server answered nobody, why, and when it was itself again.
//!
//! Not faults of connections (those are counted, however short) and not latencies. A worker notes a span of time in
//! which it had trouble with a server and no success; [`outages`] makes the spans of all workers into outages.
//! Invariant: every failure that a span counts is in exactly one outage.

use crate::fault::FaultKind;

/// A reason for an outage.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub enum OutageKind {
    /// Requests were out, and no reply came.
    Stalled,
    /// Nobody listened.
    Refused,
    /// The server reset a connection.
    Reset,
    /// The server closed a connection in good order.
    ClosedByPeer,
    /// A connection was not established in time, or a reply did not come in time.
    TimedOut,
    /// The server sent bytes that are no reply.
    Garbage,
    /// The client had no local port left.
    NoPort,
    /// Another error of the system.
    Other,
    /// The server answered with errors.
    Error,
}

impl OutageKind {
    /// All kinds, in the order of their numbers.
    pub const ALL: [Self; 9] = [
        Self::Stalled,
        Self::Refused,
        Self::Reset,
        Self::ClosedByPeer,
        Self::TimedOut,
        Self::Garbage,
        Self::NoPort,
        Self::Other,
        Self::Error,
    ];

    /// For reports and as a JSON value.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Stalled => "stalled",
            Self::Refused => "refused",
            Self::Reset => "reset",
            Self::ClosedByPeer => "closed_by_peer",
            Self::TimedOut => "timed_out",
            Self::Garbage => "garbage",
            Self::NoPort => "no_port",
            Self::Other => "other",
            Self::Error => "error",
        }
    }
}

impl From<FaultKind> for OutageKind {
    fn from(fault: FaultKind) -> Self {
        match fault {
            FaultKind::Refused => Self::Refused,
            FaultKind::Reset => Self::Reset,
            FaultKind::ClosedByPeer => Self::ClosedByPeer,
            FaultKind::TimedOut => Self::TimedOut,
            FaultKind::Garbage => Self::Garbage,
            FaultKind::NoPort => Self::NoPort,
            FaultKind::NoDescriptor | FaultKind::Other(_) => Self::Other,
        }
    }
}

/// A set of reasons.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct OutageKinds(u16);

impl OutageKinds {
    /// None.
    pub const NONE: Self = Self(0);

    /// Adds a reason.
    pub const fn insert(&mut self, kind: OutageKind) {
        self.0 |= 1 << kind as u16;
    }

    /// The set with a reason more.
    #[must_use]
    pub const fn with(mut self, kind: OutageKind) -> Self {
        self.insert(kind);
        self
    }

    /// Is this one of the reasons?
    pub const fn contains(self, kind: OutageKind) -> bool {
        self.0 & 1 << kind as u16 != 0
    }

    /// Is there no reason?
    pub const fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// Adds the reasons of another set.
    pub const fn merge(&mut self, other: Self) {
        self.0 |= other.0;
    }

    /// The reasons, in the order of [`OutageKind::ALL`].
    pub fn iter(self) -> impl Iterator<Item = OutageKind> {
        OutageKind::ALL.into_iter().filter(move |kind| self.contains(*kind))
    }

    /// Their names.
    pub fn names(self) -> impl Iterator<Item = &'static str> {
        self.iter().map(OutageKind::name)
    }
}

/// A span of time in which one worker had trouble with a server and no success. Spans of one worker and one server do
/// not overlap.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OutageSpan {
    /// Index of the server in the plan.
    pub server: u16,
    /// The last success before the trouble, or the first sign of it where there was none.
    pub start_ns: u64,
    /// The first success after it; `u64::MAX`: not over when the run ended.
    pub end_ns: u64,
    /// Requests to the server that failed in it.
    pub failed: u64,
    /// What was wrong.
    pub kinds: OutageKinds,
}

/// How many spans a worker can note in an interval; further ones are counted only.
pub const SPANS_MAX: usize = 64;

/// The spans of an interval, or of a run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OutageSpans {
    /// In the order noted.
    pub spans: Vec<OutageSpan>,
    /// How many there was no room for.
    pub overflow: u64,
}

impl OutageSpans {
    /// Empty, with room for [`SPANS_MAX`].
    pub(crate) fn with_room() -> Self {
        Self { spans: Vec::with_capacity(SPANS_MAX), overflow: 0 }
    }

    /// Notes a span if there is room.
    pub(crate) fn note(&mut self, span: OutageSpan) {
        if self.spans.len() < SPANS_MAX {
            self.spans.push(span);
        } else {
            self.overflow += 1;
        }
    }

    /// Yields a copy and leaves the list empty, its memory kept.
    pub(crate) fn take(&mut self) -> Self {
        let taken = self.clone();
        self.spans.clear();
        self.overflow = 0;
        taken
    }

    /// Adds others.
    pub(crate) fn merge(&mut self, other: &Self) {
        self.spans.extend_from_slice(&other.spans);
        self.overflow += other.overflow;
    }
}
