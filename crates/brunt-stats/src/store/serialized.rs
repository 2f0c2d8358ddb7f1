//! Everything that the intervals of a run held, on its way through a file, and what must be true of it.
//!
//! Not another form of the numbers. Invariant: what is read back fits the layout of its plan, so that whatever looks at it need not look
//! again.

use super::{IntervalStore, RowTotals};
use crate::connection::ConnectionCounts;
use crate::counts::Counts;
use crate::fault::FaultTable;
use crate::histogram::Histogram;
use crate::interval::Bytes;
use crate::meter::Meter;
use crate::outage_span::OutageSpans;
use crate::part_sums::PartSums;
use crate::recorder::Layout;
use crate::request_counts::{CountEntry, OpCounts, RequestCounts};
use crate::server::ServerCounts;
use crate::timeline::Timeline;
use brunt_plan::op::{ClassId, OpId};
use brunt_plan::phase::Phase;
use serde::{Deserialize, Serialize};

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
