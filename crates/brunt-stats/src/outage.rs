//! Outages: for how long a server answered nobody, why, and when it was itself again.
//!
//! Not faults of connections (those are counted, however short) and not latencies. A worker notes a span of time in
//! which it had trouble with a server and no success; [`outages`] makes the spans of all workers into outages.
//! Invariant: every failure that a span counts is in exactly one outage.

use crate::fault::FaultKind;
use crate::interval::SLICE_NS;
use crate::timeline::{Slice, Timeline};
use serde::{Deserialize, Serialize};
use std::ops::Range;

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
            FaultKind::TimedOut | FaultKind::SocketTimedOut => Self::TimedOut,
            FaultKind::Garbage => Self::Garbage,
            FaultKind::NoPort => Self::NoPort,
            FaultKind::TurnedAway | FaultKind::TlsFailed => Self::Error,
            FaultKind::NoDescriptor | FaultKind::NoFile | FaultKind::Other(_) => Self::Other,
        }
    }
}

/// A set of reasons.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
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
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct OutageSpan {
    /// Index of the server in the plan.
    pub server: u16,
    /// The first sign of the trouble, no earlier than the last success before it.
    pub start_ns: u64,
    /// The first success after it; `u64::MAX`: not over when the run ended.
    #[serde(with = "crate::wide_number::instant")]
    pub end_ns: u64,
    /// Requests to the server that failed in it.
    pub failed: u64,
    /// What was wrong.
    pub kinds: OutageKinds,
}

/// How many spans of a run are kept, of all workers: 5 MB of them. Further ones are counted only.
const SPANS_KEPT_MAX: usize = 1 << 17;
/// How many spans a worker can note in an interval; further ones are counted only.
pub const SPANS_MAX: usize = 64;

/// The spans of an interval, or of a run.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
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

/// A server that answered nobody.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Outage {
    /// Index of the server in the plan.
    pub server: u16,
    /// From when on no worker that had trouble had a success.
    pub start_ns: u64,
    /// When the first of them had one; `None`: not before the run ended.
    pub end_ns: Option<u64>,
    /// What was wrong.
    pub kinds: OutageKinds,
    /// Requests to the server that failed.
    pub failed: u64,
    /// When the server answered at its former rate again, to a slice of time; `None`: not within the schedule, or
    /// nothing is known of the rate before.
    pub recovered_ns: Option<u64>,
}

impl Outage {
    /// From its start to the first success, in nanoseconds; `None` where there was none.
    pub fn length_ns(&self) -> Option<u64> {
        self.end_ns.map(|end_ns| end_ns.saturating_sub(self.start_ns))
    }
}

/// The outages of a run by start. `timeline` has what each server answered, and `schedule` is when the schedule ran,
/// warm-up included: what was answered outside it has another rate.
pub fn outages(spans: &[OutageSpan], timeline: &Timeline, schedule: &Range<u64>) -> Vec<Outage> {
    let mut outages = merged(spans);
    for outage in &mut outages {
        outage.recovered_ns = recovered_ns(outage, timeline, schedule);
    }
    outages
}

/// The spans as outages, by start; without the time of recovery.
///
/// A worker without a span may have had nothing to ask, so it says nothing. Of the workers that had trouble, one that
/// succeeds proves the server well for all: spans that overlap are one outage from the latest start to the earliest
/// end. A span goes on beyond that end where its own worker had no success yet; what of another worker then begins
/// within it is an outage of its own. (In the language of graphs: an outage is a maximal clique of overlapping spans.)
fn merged(spans: &[OutageSpan]) -> Vec<Outage> {
    let mut sorted = spans.to_vec();
    // By all that tells two spans apart, so that the order in which they came leaves no trace.
    sorted.sort_by_key(|span| (span.server, span.start_ns, span.end_ns, span.failed, span.kinds.0));
    let mut outages: Vec<Outage> =
        sorted.chunk_by(|one, other| one.server == other.server).flat_map(of_server).collect();
    outages.sort_by_key(|outage| (outage.start_ns, outage.server));
    outages
}

/// The outages of one server, of spans by start.
fn of_server(spans: &[OutageSpan]) -> Vec<Outage> {
    let mut outages = Vec::new();
    // At most one per worker.
    let mut overlapping: Vec<OutageSpan> = Vec::new();
    for (index, span) in spans.iter().enumerate() {
        overlapping.push(*span);
        let next_start_ns = spans.get(index + 1).map_or(u64::MAX, |next| next.start_ns);
        let is_last = index + 1 == spans.len();
        if is_last || overlapping.iter().any(|held| held.end_ns <= next_start_ns) {
            outages.push(overlap_outage(&mut overlapping, span.start_ns));
            overlapping.retain(|held| held.end_ns > next_start_ns);
        }
    }
    outages
}

/// One outage of spans that overlap, the latest of which begins at `start_ns`. Their failures are told with it and
/// with no later one.
fn overlap_outage(overlapping: &mut [OutageSpan], start_ns: u64) -> Outage {
    let end_ns = overlapping.iter().map(|span| span.end_ns).min().unwrap_or(u64::MAX);
    let mut kinds = OutageKinds::NONE;
    let mut failed = 0;
    for span in overlapping.iter_mut() {
        kinds.merge(span.kinds);
        failed += std::mem::take(&mut span.failed);
    }
    let server = overlapping.first().map_or(0, |span| span.server);
    Outage {
        server,
        start_ns,
        end_ns: (end_ns < u64::MAX).then_some(end_ns),
        kinds,
        failed,
        recovered_ns: None,
    }
}

/// A server has recovered when it answers at this share of its former rate.
const RECOVERED_SHARE: f64 = 0.95;
/// The former rate is the mean over so long before the outage, or a slice where those are longer.
const FORMER_NS: u64 = 1_000_000_000;

/// The end of the first slice after the outage in which the server's rate was as before, almost.
fn recovered_ns(outage: &Outage, timeline: &Timeline, schedule: &Range<u64>) -> Option<u64> {
    let end_ns = outage.end_ns?;
    let rate = |slices: &mut dyn Iterator<Item = &Slice>| {
        let mut sum = (0, 0);
        for slice in slices {
            sum.0 += slice.servers.get(usize::from(outage.server)).map_or(0, |counts| counts.answered);
            sum.1 += slice.recorded_ns;
        }
        // Per nanosecond and worker, of which there are as many at any time.
        (sum.1 > 0).then(|| sum.0 as f64 / sum.1 as f64)
    };
    // A whole slice at least, wherever the edges of slices lie.
    let former_ns = FORMER_NS.max(2 * timeline.slice_ns() + SLICE_NS);
    let since_ns = outage.start_ns.saturating_sub(former_ns).max(schedule.start);
    let mut before = timeline
        .slices_from(since_ns)
        .skip_while(|slice| slice.start_ns < since_ns)
        .take_while(|slice| slice.end_ns <= outage.start_ns);
    let former = rate(&mut before).filter(|former| *former > 0.0)?;
    timeline
        .slices_from(end_ns)
        .filter(|slice| slice.start_ns >= end_ns)
        .take_while(|slice| slice.start_ns < schedule.end)
        .find(|slice| rate(&mut std::iter::once(*slice)).is_some_and(|now| now >= RECOVERED_SHARE * former))
        .map(|slice| slice.end_ns)
}

#[cfg(test)]
mod tests;
