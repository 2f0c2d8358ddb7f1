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
        self.latencies.merge_sparse(&row.latencies);
        self.client_lag_ns += row.client_lag_ns;
    }

    /// Adds another row.
    pub fn merge(&mut self, other: &Self) {
        self.latencies.merge(&other.latencies);
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
    pub(crate) rows: Vec<RowTotals>,
    pub(crate) part_sums: PartSums,
    pub(crate) books: CountTable,
    pub(crate) bytes: [Bytes; Phase::COUNT],
    pub(crate) connections: [ConnectionCounts; Phase::COUNT],
    pub(crate) faults: FaultTable,
    pub(crate) servers: Vec<ServerCounts>,
    pub(crate) server_responses: Vec<Histogram>,
    pub(crate) outages: OutageSpans,
    meters: Vec<Meter<Histogram>>,
    pub(crate) timeline: Timeline,
}

impl IntervalStore {
    /// Empty, for the intervals of recorders of this layout.
    pub fn new(layout: &Layout) -> Self {
        Self {
            layout: layout.clone(),
            row_index: RowIndex::new(layout),
            rows: layout.rows().map(|_| RowTotals::default()).collect(),
            part_sums: PartSums::default(),
            books: CountTable::new(layout.ops.len(), layout.commands),
            bytes: [Bytes::default(); Phase::COUNT],
            connections: [ConnectionCounts::default(); Phase::COUNT],
            faults: FaultTable::default(),
            servers: vec![ServerCounts::default(); layout.servers],
            server_responses: (0..layout.servers_timed()).map(|_| Histogram::default()).collect(),
            outages: OutageSpans::default(),
            meters: layout.meters.iter().map(|kind| Meter::of_run(*kind)).collect(),
            timeline: Timeline::default(),
        }
    }

    /// Keeps up to 3 000 slices of `width_ns` before they become longer.
    pub fn with_slices(mut self, width_ns: Option<u64>) -> Self {
        self.timeline = Timeline::new(width_ns);
        self
    }

    /// Says when the measured window begins, as soon as that is known, so that a time slice begins with it.
    pub fn align(&mut self, measure_ns: u64) {
        self.timeline.align(measure_ns);
    }

    /// Says when the schedule begins and ends, as far as is known, so that no other time makes the slices of the window longer.
    pub fn set_schedule(&mut self, schedule: Range<u64>) {
        self.timeline.set_schedule(schedule);
    }

    /// Adds an interval of any worker.
    pub fn push(&mut self, interval: &Interval) {
        assert!(interval.start_ns <= interval.end_ns, "an interval that ends before it begins");
        interval.books.iter().for_each(|entry| self.books.add(entry));
        for row in &interval.rows {
            self.rows[self.row_index.row(row.class, row.op)].add(row);
        }
        self.part_sums.merge(&interval.part_sums);
        self.bytes.add(&interval.bytes);
        self.connections.add(&interval.connections);
        self.faults.merge(&interval.faults);
        server::merge_all(&mut self.servers, &interval.servers);
        let responses = self.server_responses.iter_mut().zip(&interval.server_responses);
        responses.for_each(|(ours, theirs)| ours.merge_sparse(theirs));
        self.outages.merge(&interval.outages);
        // Those of another host may have been asked for fewer.
        for theirs in &interval.meters {
            let same = self.meters.iter_mut().find(|ours| ours.kind == theirs.kind);
            same.into_iter().for_each(|ours| ours.add(theirs, Histogram::merge_sparse));
        }
        self.timeline.push(interval);
    }

    /// Gives what it holds the times that it has in a whole of which it is a part.
    pub(crate) fn map_host(&mut self, mapping: &HostMapping) {
        mapping.faults(&mut self.faults);
        mapping.outages(&mut self.outages);
        self.timeline.map_host(mapping);
    }

    /// Adds what another part of the same run held, whose window began at the same instant.
    ///
    /// # Errors
    /// What the two do not have in common.
    pub(crate) fn merge(&mut self, other: &Self) -> Result<(), &'static str> {
        if self.layout != other.layout {
            return Err("they measured other operations, servers or quantities");
        }
        self.timeline.merge(&other.timeline)?;
        self.rows.iter_mut().zip(&other.rows).for_each(|(ours, theirs)| ours.merge(theirs));
        other.books.entries().for_each(|entry| self.books.add(&entry));
        self.part_sums.merge(&other.part_sums);
        self.bytes.add(&other.bytes);
        self.connections.add(&other.connections);
        self.faults.merge(&other.faults);
        server::merge_all(&mut self.servers, &other.servers);
        let responses = self.server_responses.iter_mut().zip(&other.server_responses);
        responses.for_each(|(ours, theirs)| ours.merge(theirs));
        self.outages.merge(&other.outages);
        let meters = self.meters.iter_mut().zip(&other.meters);
        meters.for_each(|(ours, theirs)| ours.add(theirs, Histogram::merge));
        Ok(())
    }

    /// How many characters its totals take in a file.
    pub(crate) fn totals_len(&self) -> usize {
        let of = |histogram: &Histogram| histogram.to_sparse().text_len();
        let of_row = |row: &RowTotals| {
            let Latencies { response, service, send_lag, without_client, least, failed } = &row.latencies;
            [response, service, send_lag, without_client, least, failed].into_iter().map(of).sum::<usize>()
        };
        let of_rows: usize = self.rows.iter().map(of_row).sum();
        of_rows + self.part_sums.text_len() + self.server_responses.iter().map(of).sum::<usize>()
    }

    /// Makes what it holds of the run over time no longer than this many characters in a file; see [`Timeline::fit`].
    pub(crate) fn fit(&mut self, characters_max: usize) {
        self.timeline.fit(characters_max);
    }

    /// The run over time, for progress.
    pub fn timeline(&self) -> &Timeline {
        &self.timeline
    }

    /// One metered quantity so far; empty where the layout has none.
    pub fn meter(&self, kind: MeterKind) -> Histogram {
        let held = self.meters.iter().find(|meter| meter.kind == kind);
        held.map(|meter| meter.histogram.clone()).unwrap_or_default()
    }

    /// The metered quantities so far, in the order of the layout.
    pub fn meters(&self) -> Vec<Meter> {
        self.meters.iter().map(Meter::to_sparse).collect()
    }

    /// Ends the request accounting of workers that were lost before they could.
    pub fn end_lost(&mut self) {
        self.books.end_lost();
    }

    /// The books so far.
    pub fn books(&self) -> &CountTable {
        &self.books
    }

    /// The connection faults so far.
    pub fn faults(&self) -> &FaultTable {
        &self.faults
    }

    /// The connections of all phases.
    pub fn all_connections(&self) -> ConnectionCounts {
        let mut sum = ConnectionCounts::default();
        self.connections.iter().for_each(|counts| sum.merge(counts));
        sum
    }

    /// The connections so far, by phase; `phase as usize` is the index.
    pub fn connections(&self) -> &[ConnectionCounts; Phase::COUNT] {
        &self.connections
    }

    /// Bytes that crossed the wire in a phase so far.
    pub fn bytes_in(&self, phase: Phase) -> Bytes {
        self.bytes[phase as usize]
    }

    /// What each server did so far, in the order of the plan.
    pub fn servers(&self) -> &[ServerCounts] {
        &self.servers
    }

    /// Response times by server so far; empty where they are not told apart.
    pub fn server_responses(&self) -> &[Histogram] {
        &self.server_responses
    }

    /// Every (class, op) with its totals so far, in the order of the layout.
    pub fn rows(&self) -> impl Iterator<Item = (ClassId, OpId, &RowTotals)> + '_ {
        self.layout.rows().zip(&self.rows).map(|((class, op), row)| (class, op, row))
    }
}

/// No count of a book is as large: a million requests a second for nine years.
const COUNT_MAX: u64 = 1 << 48;

/// A run's totals and slices, not looked at yet. The layout is that of the plan.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct SerializedStore {
    rows: Vec<SerializedRow>,
    part_sums: PartSums,
    request_counts: Vec<CountEntry>,
    bytes: [Bytes; Phase::COUNT],
    connections: [ConnectionCounts; Phase::COUNT],
    faults: FaultTable,
    servers: Vec<ServerCounts>,
    server_responses: Vec<Histogram>,
    outages: OutageSpans,
    meters: Vec<Meter<Histogram>>,
    timeline: Timeline,
}

/// A row with its place.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct SerializedRow {
    class: ClassId,
    op: OpId,
    #[serde(flatten)]
    totals: RowTotals,
}

impl From<&IntervalStore> for SerializedStore {
    fn from(store: &IntervalStore) -> Self {
        let row = |(class, op, totals): (ClassId, OpId, &RowTotals)| SerializedRow {
            class,
            op,
            totals: totals.clone(),
        };
        Self {
            rows: store.rows().map(row).collect(),
            part_sums: store.part_sums.clone(),
            request_counts: store.books.entries().collect(),
            bytes: store.bytes,
            connections: store.connections,
            faults: store.faults.clone(),
            servers: store.servers.clone(),
            server_responses: store.server_responses.clone(),
            outages: store.outages.clone(),
            meters: store.meters.clone(),
            timeline: store.timeline.clone(),
        }
    }
}

/// Can these numbers be added up, and their parts be taken from their wholes?
fn check_book(counts: &OpCounts) -> Result<(), &'static str> {
    if counts.values().any(|count| count >= COUNT_MAX) {
        return Err("a book with more than a run can hold");
    }
    let RequestCounts { scheduled, sent, unsent, abandoned, followup, .. } = counts.requests;
    let is_whole = counts.requests.ended() <= sent && abandoned <= unsent && followup <= scheduled;
    is_whole.then_some(()).ok_or("a book whose parts are more than it")
}

impl SerializedStore {
    /// The store, of a run whose recorders had this layout.
    ///
    /// # Errors
    /// What it has that the layout does not, or lacks.
    pub fn restore(self, layout: &Layout) -> Result<IntervalStore, &'static str> {
        let mut store = IntervalStore::new(layout);
        if !self.rows.iter().map(|row| (row.class, row.op)).eq(layout.rows()) {
            return Err("latencies of other operations than those of the plan");
        }
        let meters = self.meters.iter().map(|meter| meter.kind);
        layout.check(
            &self.request_counts,
            &self.servers,
            &self.outages,
            self.server_responses.len(),
            meters,
        )?;
        let place = |entry: &CountEntry| (entry.class, entry.phase as usize, entry.op);
        if !self.request_counts.is_sorted_by(|one, other| place(one) < place(other)) {
            return Err("books that are in no order");
        }
        self.request_counts.iter().try_for_each(|entry| check_book(&entry.counts))?;
        if self.outages.spans.iter().any(|span| span.start_ns > span.end_ns) {
            return Err("trouble that ends before it begins");
        }
        let has_row = |class, op| layout.rows().any(|known| known == (class, op));
        if !self.timeline.fits(layout.servers, has_row) {
            return Err("slices of another plan");
        }
        store.rows = self.rows.into_iter().map(|row| row.totals).collect();
        self.request_counts.iter().for_each(|entry| store.books.add(entry));
        (store.bytes, store.connections, store.faults) = (self.bytes, self.connections, self.faults);
        (store.servers, store.outages, store.meters) = (self.servers, self.outages, self.meters);
        (store.server_responses, store.timeline) = (self.server_responses, self.timeline);
        store.part_sums = self.part_sums;
        Ok(store)
    }
}
