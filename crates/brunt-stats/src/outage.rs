//! Outages: how long a server was down, why, and when it had recovered.
//!
//! Not faults of connections (those are counted, however short) and not latencies. A worker notes a span of time in
//! which no request to a server succeeded; [`outages`] makes the spans of all workers into outages.
//! Invariants: every failure that a span counts is in exactly one outage; silence that a stop or a lack of processor time of the client
//! explains is no outage of a server.

use crate::counts::share;
use crate::interval::SLICE_NS;
use crate::server::{OutageKind, OutageKinds, OutageSpan};
use crate::timeline::{Slice, Timeline};
use crate::usage::WorkerUsage;
use crate::window::RunTimes;
use std::collections::BTreeSet;
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

    /// From its start to its end, or to that of the run.
    pub(crate) fn span(&self, window: &RunTimes) -> Range<u64> {
        self.start_ns..self.end_ns.unwrap_or(window.drained_ns).max(self.start_ns)
    }

    /// From its start until the server answered as fast as before, as far as that lies in the measured window.
    pub(crate) fn disturbed(&self, window: &RunTimes) -> Range<u64> {
        let end_ns = self.span(window).end;
        let recovered_ns = self.recovered_ns.unwrap_or(end_ns).max(end_ns);
        let within = |ns: u64| ns.clamp(window.measure_ns, window.end_ns.max(window.measure_ns));
        within(self.start_ns)..within(recovered_ns)
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

/// A worker that stood still for this share of a silence explains the silence.
const OWN_MIN: f64 = 0.5;
/// A worker that waited for a CPU for this share of the window explains why all of several servers are silent at once.
const STARVED_MIN: f64 = 0.5;

/// Those that are one of so many servers' own: they reach into the measured window, and the client's host did not make them.
pub(crate) fn of_servers<'a>(
    outages: &'a [Outage],
    servers: usize,
    window: &RunTimes,
    workers: &[WorkerUsage],
) -> impl Iterator<Item = &'a Outage> {
    let at = |outage: &Outage| outage.span(window);
    let is_measured =
        move |outage: &&Outage| at(outage).end > window.measure_ns && outage.start_ns < window.end_ns;
    let starved =
        |worker: &WorkerUsage| share(worker.run_delay_ns.unwrap_or(0), worker.wall_ns) >= STARVED_MIN;
    let is_starved = servers > 1 && workers.iter().any(starved);
    let is_silence = |outage: &Outage| outage.kinds == OutageKinds::NONE.with(OutageKind::Stalled);
    let silent_with = move |outage: &Outage| {
        let alike = outages.iter().filter(|other| is_silence(other) && is_most(&at(other), &at(outage)));
        alike.map(|other| other.server).collect::<BTreeSet<u16>>().len()
    };
    let stood = move |outage: &Outage| {
        let stop = |worker: &WorkerUsage| worker.stalls.longest_span(window.measure_ns);
        workers.iter().any(|worker| is_most(&stop(worker), &at(outage)))
    };
    let is_hosts = move |outage: &Outage| {
        is_silence(outage) && (stood(outage) || is_starved && silent_with(outage) == servers)
    };
    outages.iter().filter(move |outage| is_measured(outage) && !is_hosts(outage))
}

/// Does this lie in most of a span of time?
fn is_most(this: &Range<u64>, span: &Range<u64>) -> bool {
    let common_ns = this.end.min(span.end).saturating_sub(this.start.max(span.start));
    common_ns > 0 && common_ns as f64 >= OWN_MIN * (span.end - span.start) as f64
}

#[cfg(test)]
mod tests;
