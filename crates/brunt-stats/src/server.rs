//! What happened at each server: replies, failures, and spans of time in which one worker had no success with it, with their reasons.
//!
//! Not request accounting, of which one request may ask several servers. A worker notes spans while it runs; [`crate::outage`] makes the
//! spans of all workers into outages. Invariant: spans of one worker and one server do not overlap.

use crate::connection::FaultKind;
use crate::counts::counts;
use serde::{Deserialize, Serialize, Serializer};

counts! {
    /// What one server did.
    pub struct ServerCounts {
        /// Replies as the protocol provides.
        pub answered: u64,
        /// Requests to it that failed: error, timeout, mismatch, lost.
        pub failed: u64,
        /// Requests to it that were never sent.
        pub unsent: u64,
        /// Of these, abandoned because it was down.
        pub abandoned: u64,
        /// Requests that it sent to another node of its cluster, and that went there.
        pub redirected: u64,
    }
}

/// Writes counts of servers as lists of numbers, from which serde reads them, too: a file has a hundred thousand of them.
pub(crate) fn write_lists<S: Serializer>(of: &[ServerCounts], serializer: S) -> Result<S::Ok, S::Error> {
    let list = |of: &ServerCounts| [of.answered, of.failed, of.unsent, of.abandoned, of.redirected];
    serializer.collect_seq(of.iter().map(list))
}

/// Adds the counts of each server to those of the same server.
pub(crate) fn merge_all(ours: &mut [ServerCounts], theirs: &[ServerCounts]) {
    assert_eq!(ours.len(), theirs.len(), "counts of different numbers of servers do not add");
    ours.iter_mut().zip(theirs).for_each(|(ours, theirs)| ours.merge(theirs));
}

brunt_plan::named! {
    /// A reason for an outage.
    #[repr(u8)]
    pub enum OutageKind {
        /// Requests were out, and no reply came.
        Stalled = "stalled",
        /// The connection was refused.
        Refused = "refused",
        /// The server reset a connection.
        Reset = "reset",
        /// The server closed a connection in good order.
        ClosedByPeer = "closed_by_peer",
        /// A connection was not established in time, or a reply did not come in time.
        TimedOut = "timed_out",
        /// The server sent bytes that are no reply.
        Malformed = "malformed",
        /// The client had no local port left.
        NoPort = "no_port",
        /// Another error of the system.
        Other = "other",
        /// The server answered with errors.
        Error = "error",
    }
}

impl From<FaultKind> for OutageKind {
    fn from(fault: FaultKind) -> Self {
        match fault {
            FaultKind::Refused => Self::Refused,
            FaultKind::Reset => Self::Reset,
            FaultKind::ClosedByPeer => Self::ClosedByPeer,
            FaultKind::TimedOut | FaultKind::SocketTimedOut => Self::TimedOut,
            FaultKind::Malformed => Self::Malformed,
            FaultKind::NoPort => Self::NoPort,
            FaultKind::SetupRejected | FaultKind::TlsFailed => Self::Error,
            FaultKind::NoDescriptor | FaultKind::NoFile | FaultKind::Other(_) => Self::Other,
        }
    }
}

/// A set of reasons.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
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

    /// Did the server answer all the time, with errors alone?
    pub fn are_errors_alone(self) -> bool {
        self == Self::NONE.with(OutageKind::Error)
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

/// A span of time in which no request of one worker to a server succeeded. Spans of one worker and one server do
/// not overlap.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct OutageSpan {
    /// Index of the server in the plan.
    pub server: u16,
    /// The first failure, no earlier than the last success before it.
    pub start_ns: u64,
    /// The first success after it; `u64::MAX`: not over when the run ended.
    #[serde(with = "crate::counts::instant")]
    pub end_ns: u64,
    /// Requests to the server that failed in it.
    pub failed: u64,
    /// Kinds of trouble in it.
    pub kinds: OutageKinds,
}

/// How many spans of a run are kept, of all workers: 5 MB of them. Further ones are counted only.
const SPANS_KEPT_MAX: usize = 1 << 17;
/// How many spans a worker can note in an interval; further ones are counted only.
pub const SPANS_MAX: usize = 64;

/// The spans of an interval, or of a run.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
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
        let (kept, left) = other.spans.split_at(other.spans.len().min(SPANS_KEPT_MAX - self.spans.len()));
        self.spans.extend_from_slice(kept);
        self.overflow += other.overflow + left.len() as u64;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn span(start_ns: u64, end_ns: u64) -> OutageSpan {
        OutageSpan {
            server: 0,
            start_ns,
            end_ns,
            failed: 1,
            kinds: OutageKinds::NONE.with(OutageKind::Reset),
        }
    }

    #[test]
    fn kinds_form_a_set() {
        let mut kinds = OutageKinds::NONE;
        for (index, kind) in OutageKind::ALL.into_iter().enumerate() {
            assert_eq!(kind as usize, index);
            assert!(!kinds.contains(kind));
            kinds.insert(kind);
            kinds.insert(kind);
            assert!(kinds.contains(kind));
            assert_eq!(kinds.iter().count(), index + 1);
        }
        let text = kinds.names().collect::<Vec<_>>().join(" ");
        assert_eq!(text, "stalled refused reset closed_by_peer timed_out malformed no_port other error");
        assert_eq!(OutageKind::from(FaultKind::Other(113)), OutageKind::Other);
        assert_eq!(OutageKind::from(FaultKind::TimedOut), OutageKind::TimedOut);
    }

    #[test]
    fn spans_of_a_run_have_a_bound() {
        let mut kept = OutageSpans::default();
        let many = OutageSpans { spans: vec![span(1, 2); SPANS_MAX], overflow: 1 };
        let times = SPANS_KEPT_MAX / SPANS_MAX + 3;
        (0..times).for_each(|_| kept.merge(&many));
        assert_eq!(kept.spans.len(), SPANS_KEPT_MAX);
        assert_eq!(kept.overflow, (times * (SPANS_MAX + 1) - SPANS_KEPT_MAX) as u64);
    }

    #[test]
    fn spans_of_an_interval_have_a_bound() {
        let mut spans = OutageSpans::with_room();
        let capacity = spans.spans.capacity();
        for index in 0..SPANS_MAX as u64 + 3 {
            spans.note(span(index, index + 1));
        }
        assert_eq!(spans.spans.capacity(), capacity, "noting one allocates nothing");
        let mut taken = spans.take();
        assert_eq!((taken.spans.len(), taken.overflow, &spans), (SPANS_MAX, 3, &OutageSpans::default()));
        taken.merge(&taken.clone());
        assert_eq!((taken.spans.len(), taken.overflow), (2 * SPANS_MAX, 6));
    }
}
