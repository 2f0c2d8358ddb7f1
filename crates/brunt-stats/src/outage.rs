//! Outages: how long a server was down, why, and when it had recovered.
//!
//! Not faults of connections (those are counted, however short) and not latencies. A worker notes a span of time in
//! which no request to a server succeeded; [`outages`] makes the spans of all workers into outages.
//! Invariant: every failure that a span counts is in exactly one outage.

use crate::interval::SLICE_NS;
use crate::outage_span::{OutageKinds, OutageSpan};
use crate::timeline::{Slice, Timeline};
use std::ops::Range;

/// A period in which a server was down.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Outage {
    /// Index of the server in the plan.
    pub server: u16,
    /// Start: from then on no affected worker had a success.
    pub start_ns: u64,
    /// When the first of them had one; `None`: not before the run ended.
    pub end_ns: Option<u64>,
    /// Kinds of trouble in it.
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
    sorted.sort_by_key(|span| (span.server, span.start_ns, span.end_ns, span.failed, span.kinds));
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
/// Time before the outage over which the former rate is averaged; one slice where slices are longer.
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
