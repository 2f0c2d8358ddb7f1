//! What the control thread keeps of a run while it goes on: exact totals, and the timeline.
//!
//! Not a summary: nothing is judged or turned into percentiles yet. Of every interval the response times are kept by
//! slice; everything else is added to the totals at once, so that memory grows neither with the number of workers nor, once
//! slices are merged, with the length of the run. Invariant: the order in which intervals arrive leaves no trace.

use crate::connection::{ConnectionCounts, FaultTable};
use crate::counts::Counts;
use crate::histogram::{Histogram, PartSums};
use crate::interval::{Bytes, HostMapping, Interval, IntervalRow, Latencies};
use crate::meter::Meter;
use crate::recorder::{Layout, RowIndex};
use crate::request_counts::{CountEntry, CountTable, OpCounts, RequestCounts};
use crate::server::{self, OutageSpans, ServerCounts};
use crate::timeline::Timeline;
use brunt_plan::op::{ClassId, OpId};
use brunt_plan::phase::Phase;
use brunt_plan::plan::MeterKind;
use serde::{Deserialize, Serialize};
use std::ops::Range;

/// A whole run's measured ops of one kind of one class.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RowTotals {
    /// Latencies in nanoseconds.
    pub latencies: Latencies<Histogram>,
    /// The client lags of completed ops together, in nanoseconds.
    pub client_lag_ns: u64,
}

impl RowTotals {
    fn add(&mut self, row: &IntervalRow) {
        self.latencies.merge(&row.latencies, Histogram::merge_sparse);
        self.client_lag_ns += row.client_lag_ns;
    }

    /// Adds another row.
    pub fn merge(&mut self, other: &Self) {
        self.latencies.merge(&other.latencies, Histogram::merge);
        self.client_lag_ns += other.client_lag_ns;
    }
}

impl Default for IntervalStore {
    /// Nothing was recorded.
    fn default() -> Self {
        Self::new(&Layout::default())
    }
}

/// Everything that the intervals of a run have held so far.
#[derive(Clone, Debug)]
pub struct IntervalStore {
    layout: Layout,
    row_index: RowIndex,
    pub(crate) request_counts: CountTable,
    pub(crate) totals: Totals,
}

/// What files have as it is.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Totals {
    /// In the order of the layout.
    pub rows: Vec<RowTotals>,
    pub part_sums: PartSums,
    pub bytes: [Bytes; Phase::COUNT],
    pub connections: [ConnectionCounts; Phase::COUNT],
    pub faults: FaultTable,
    pub servers: Vec<ServerCounts>,
    pub server_responses: Vec<Histogram>,
    pub outages: OutageSpans,
    pub meters: Vec<Meter<Histogram>>,
    pub timeline: Timeline,
}

impl IntervalStore {
    /// Empty, for the intervals of recorders of this layout.
    pub fn new(layout: &Layout) -> Self {
        let totals = Totals {
            rows: layout.rows().map(|_| RowTotals::default()).collect(),
            servers: vec![ServerCounts::default(); layout.servers],
            server_responses: vec![Histogram::default(); layout.servers_timed()],
            meters: layout.meters.iter().map(|kind| Meter::of_run(*kind)).collect(),
            ..Totals::default()
        };
        let request_counts = CountTable::new(layout.ops.len(), layout.commands);
        Self { layout: layout.clone(), row_index: RowIndex::new(layout), request_counts, totals }
    }

    /// Keeps up to 3 000 slices of `width_ns` before they become longer.
    pub fn with_slices(mut self, width_ns: Option<u64>) -> Self {
        self.totals.timeline = Timeline::new(width_ns);
        self
    }

    /// Says when the measured window begins, as soon as that is known, so that a time slice begins with it.
    pub fn align(&mut self, measure_ns: u64) {
        self.totals.timeline.align(measure_ns);
    }

    /// Says when the schedule begins and ends, as far as is known, so that no other time makes the slices of the window longer.
    pub fn set_schedule(&mut self, schedule: Range<u64>) {
        self.totals.timeline.set_schedule(schedule);
    }

    /// Adds an interval of any worker.
    pub fn push(&mut self, interval: &Interval) {
        assert!(interval.start_ns <= interval.end_ns, "an interval that ends before it begins");
        interval.request_counts.iter().for_each(|entry| self.request_counts.add(entry));
        for row in &interval.rows {
            self.totals.rows[self.row_index.row(row.class, row.op)].add(row);
        }
        self.totals.part_sums.merge(&interval.part_sums);
        self.totals.bytes.add(&interval.bytes);
        self.totals.connections.add(&interval.connections);
        self.totals.faults.merge(&interval.faults);
        server::merge_all(&mut self.totals.servers, &interval.servers);
        let responses = self.totals.server_responses.iter_mut().zip(&interval.server_responses);
        responses.for_each(|(ours, theirs)| ours.merge_sparse(theirs));
        self.totals.outages.merge(&interval.outages);
        // Those of another host may have been asked for fewer.
        for theirs in &interval.meters {
            let same = self.totals.meters.iter_mut().find(|ours| ours.kind == theirs.kind);
            same.into_iter().for_each(|ours| ours.add(theirs, Histogram::merge_sparse));
        }
        self.totals.timeline.push(interval);
    }

    /// Gives what it holds the times that it has in a whole of which it is a part.
    pub(crate) fn map_host(&mut self, mapping: &HostMapping) {
        mapping.faults(&mut self.totals.faults);
        mapping.outages(&mut self.totals.outages);
        self.totals.timeline.map_host(mapping);
    }

    /// Adds what another part of the same run held, whose window began at the same instant.
    ///
    /// # Errors
    /// What the two do not have in common.
    pub(crate) fn merge(&mut self, other: &Self) -> Result<(), &'static str> {
        if self.layout != other.layout {
            return Err("they measured other operations, servers or quantities");
        }
        self.totals.timeline.merge(&other.totals.timeline)?;
        self.totals.rows.iter_mut().zip(&other.totals.rows).for_each(|(ours, theirs)| ours.merge(theirs));
        other.request_counts.entries().for_each(|entry| self.request_counts.add(&entry));
        self.totals.part_sums.merge(&other.totals.part_sums);
        self.totals.bytes.add(&other.totals.bytes);
        self.totals.connections.add(&other.totals.connections);
        self.totals.faults.merge(&other.totals.faults);
        server::merge_all(&mut self.totals.servers, &other.totals.servers);
        let responses = self.totals.server_responses.iter_mut().zip(&other.totals.server_responses);
        responses.for_each(|(ours, theirs)| ours.merge(theirs));
        self.totals.outages.merge(&other.totals.outages);
        let meters = self.totals.meters.iter_mut().zip(&other.totals.meters);
        meters.for_each(|(ours, theirs)| ours.add(theirs, Histogram::merge));
        Ok(())
    }

    /// Makes the histograms that it holds and the counts of servers take no more than this many bytes of a result, as far as those over time
    /// can; see [`Timeline::fit`].
    pub(crate) fn fit(&mut self, bytes_max: usize) {
        let of_rows = self.totals.rows.iter().flat_map(|row| row.latencies.each());
        let histograms = of_rows.chain(&self.totals.server_responses);
        let taken: usize = histograms.map(|histogram| histogram.to_sparse().encoded_bytes()).sum();
        let counts = self.timeline().slices().count() * self.totals.servers.len();
        let room = bytes_max.saturating_sub(SERVER_SLICE_BYTES * counts);
        let of_all = room.clamp(HISTOGRAM_BYTES_MIN, HISTOGRAM_BYTES_MAX);
        self.totals.timeline.fit(of_all.saturating_sub(taken));
    }

    /// The run over time, for progress.
    pub fn timeline(&self) -> &Timeline {
        &self.totals.timeline
    }

    /// One metered quantity so far; empty where the layout has none.
    pub fn meter(&self, kind: MeterKind) -> Histogram {
        let held = self.totals.meters.iter().find(|meter| meter.kind == kind);
        held.map(|meter| meter.histogram.clone()).unwrap_or_default()
    }

    /// The metered quantities so far, in the order of the layout.
    pub fn meters(&self) -> Vec<Meter> {
        self.totals.meters.iter().map(Meter::to_sparse).collect()
    }

    /// Ends the request accounting of workers that were lost before they could.
    pub fn end_lost(&mut self) {
        self.request_counts.end_lost();
    }

    /// The counts of requests so far.
    pub fn request_counts(&self) -> &CountTable {
        &self.request_counts
    }

    /// The connection faults so far.
    pub fn faults(&self) -> &FaultTable {
        &self.totals.faults
    }

    /// The connections of all phases.
    pub fn all_connections(&self) -> ConnectionCounts {
        let mut sum = ConnectionCounts::default();
        self.totals.connections.iter().for_each(|counts| sum.merge(counts));
        sum
    }

    /// The connections so far, by phase; `phase as usize` is the index.
    pub fn connections(&self) -> &[ConnectionCounts; Phase::COUNT] {
        &self.totals.connections
    }

    /// Bytes that crossed the wire in a phase so far.
    pub fn bytes_in(&self, phase: Phase) -> Bytes {
        self.totals.bytes[phase as usize]
    }

    /// What each server did so far, in the order of the plan.
    pub fn servers(&self) -> &[ServerCounts] {
        &self.totals.servers
    }

    /// Response times by server so far; empty where they are not told apart.
    pub fn server_responses(&self) -> &[Histogram] {
        &self.totals.server_responses
    }

    /// Every (class, op) with its totals so far, in the order of the layout.
    pub fn rows(&self) -> impl Iterator<Item = (ClassId, OpId, &RowTotals)> + '_ {
        self.layout.rows().zip(&self.totals.rows).map(|((class, op), row)| (class, op, row))
    }
}

/// Bytes of all histograms, at most: with more, percentiles over time would be so different that a page had no room for the result.
pub(crate) const HISTOGRAM_BYTES_MAX: usize = 400_000;
/// They have so many even where the counts of many servers leave no room: with less, percentiles over time would be powers of two.
const HISTOGRAM_BYTES_MIN: usize = 150_000;
/// What the counts of a server in a slice take in a result, about.
const SERVER_SLICE_BYTES: usize = 4;
/// No count of requests is as large: a million requests a second for nine years.
const COUNT_MAX: u64 = 1 << 48;

/// A run's totals and slices, not looked at yet. The layout is that of the plan.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct SerializedStore {
    request_counts: Vec<CountEntry>,
    totals: Totals,
}

impl From<&IntervalStore> for SerializedStore {
    fn from(store: &IntervalStore) -> Self {
        Self { request_counts: store.request_counts.entries().collect(), totals: store.totals.clone() }
    }
}

/// Can these numbers be added up, and their parts be taken from their wholes?
fn check_counts(counts: &OpCounts) -> Result<(), &'static str> {
    if counts.values().any(|count| count >= COUNT_MAX) {
        return Err("counts of requests that are more than a run can hold");
    }
    let RequestCounts { scheduled, sent, unsent, abandoned, followup, .. } = counts.requests;
    let is_whole = counts.requests.ended() <= sent && abandoned <= unsent && followup <= scheduled;
    is_whole.then_some(()).ok_or("counts of requests whose parts are more than the whole")
}

impl SerializedStore {
    /// The store, of a run whose recorders had this layout.
    ///
    /// # Errors
    /// What it has that the layout does not, or lacks.
    pub fn restore(self, layout: &Layout) -> Result<IntervalStore, &'static str> {
        let Self { request_counts, totals } = self;
        let Totals { servers, server_responses, outages, .. } = &totals;
        if totals.rows.len() != layout.rows().count() {
            return Err("latencies of other operations than those of the plan");
        }
        let meters = totals.meters.iter().map(|meter| meter.kind);
        layout.check(&request_counts, servers, outages, server_responses.len(), meters)?;
        let place = |entry: &CountEntry| (entry.class, entry.phase as usize, entry.op);
        if !request_counts.is_sorted_by(|one, other| place(one) < place(other)) {
            return Err("counts of requests that are in no order");
        }
        request_counts.iter().try_for_each(|entry| check_counts(&entry.counts))?;
        if outages.spans.iter().any(|span| span.start_ns > span.end_ns) {
            return Err("trouble that ends before it begins");
        }
        let has_row = |class, op| layout.rows().any(|known| known == (class, op));
        if !totals.timeline.fits(layout.servers, has_row) {
            return Err("slices of another plan");
        }
        let mut store = IntervalStore { totals, ..IntervalStore::new(layout) };
        request_counts.iter().for_each(|entry| store.request_counts.add(entry));
        Ok(store)
    }
}
