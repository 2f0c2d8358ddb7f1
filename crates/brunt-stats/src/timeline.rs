//! A run over time: slices, merged over workers, and sums of them of any length for printing.
//!
//! Not the run's totals (those are exact and kept apart, in the store). An interval belongs to the slice that its middle
//! lies in, so a worker that was late in ending one moves a little work to a neighbouring slice and loses none. Slices are
//! 100 ms long at first; whenever there would be too many, neighbours are merged. Longer slices have more different latencies, so buckets
//! become wider where their histograms would take more than `ENCODED_BYTES_MAX`. Invariants: what there is does not depend on
//! the order in which intervals came, but for how wide buckets are; neither changes a sum, a count or an extreme.

mod grid;
mod slice;

use crate::counts::Counts;
use crate::histogram::{GROUPING_POWER, Histogram, SparseHistogram};
use crate::interval::{Activity, HostMapping, Interval, SLICE_NS};
use crate::server::ServerCounts;
use crate::usage::ClientTime;
use brunt_plan::op::{ClassId, OpId};
use brunt_plan::quantile::Quantile;
use grid::Grid;
pub use grid::{SLICES_MIN, row_ns_after};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
pub use slice::{Slice, SliceRow};
use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::ops::Range;
use std::sync::Arc;

/// Bytes of the histograms of all slices. Buckets are joined in pairs and so are slices, and either at most halves this: what is left of it is
/// more than a result has room for (`HISTOGRAM_BYTES_MAX` of `store.rs`), so that no result has wider buckets for it.
const ENCODED_BYTES_MAX: usize = 4_000_000;

/// Response times of the measured ops that completed in a piece of time, in nanoseconds. A percentile is `None` where too few
/// samples support it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct PointLatency {
    /// Median.
    pub p50_ns: Option<u64>,
    /// 90th percentile.
    pub p90_ns: Option<u64>,
    /// 99th percentile.
    pub p99_ns: Option<u64>,
    /// 99.9th percentile.
    #[serde(rename = "p99.9_ns")]
    pub p999_ns: Option<u64>,
    /// Largest; `None` without any.
    pub max_ns: Option<u64>,
}

impl PointLatency {
    fn of(response: &SparseHistogram) -> Self {
        Self {
            p50_ns: response.percentile(Quantile::P50),
            p90_ns: response.percentile(Quantile::P90),
            p99_ns: response.percentile(Quantile::P99),
            p999_ns: response.percentile(Quantile::P999),
            max_ns: response.max(),
        }
    }
}

/// One op in a piece of time, over all classes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OpPoint {
    /// The op.
    pub op: OpId,
    /// Measured ops that completed.
    pub completed: u64,
    /// Measured ops that failed.
    pub failed: u64,
    /// Their response times.
    pub latency: PointLatency,
}

/// One line of a table over time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TimelinePoint {
    /// When it begins.
    pub start_ns: u64,
    /// When it ends.
    pub end_ns: u64,
    /// What went on, whatever its phase.
    pub activity: Activity,
    /// The part of `activity` in the preload.
    pub preload: Activity,
    /// Response times of the measured ops that completed.
    pub latency: PointLatency,
    /// What workers and their CPUs did.
    pub client: ClientTime,
}

/// The slices of a run by time.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "SerializedTimeline", into = "SerializedTimeline")]
pub struct Timeline {
    /// By the beginning of the grid cell that each stands for. A copy shares those that do not change any more.
    slices: BTreeMap<u64, Arc<Slice>>,
    grid: Grid,
    /// Buckets of its histograms hold 2 to this power of the narrowest: those of all slices, so that they stay comparable. 0 where it was
    /// read from a file, as nothing is recorded into it any more.
    bucket_bits: u32,
}

impl Timeline {
    /// Empty. There are at most 600 slices of the measured window; with `width_ns`, a multiple of 100 ms, as many as 3 000 of this
    /// length.
    pub fn new(width_ns: Option<u64>) -> Self {
        Self { slices: BTreeMap::new(), grid: Grid::new(width_ns), bucket_bits: 0 }
    }

    /// Lays the grid of slices so that one of them begins at `measure_ns`: the beginning of the measured window. To be called
    /// before intervals of the schedule arrive, and again where the window begins earlier than it might have.
    pub fn align(&mut self, measure_ns: u64) {
        self.grid.align(measure_ns);
    }

    /// Says when the schedule begins and ends, as far as is known. What lies before it is one slice, so that the preload may last as
    /// long as it likes, and what lies behind it does not make the slices of the window longer.
    pub fn set_schedule(&mut self, schedule: Range<u64>) {
        self.grid.set_schedule(schedule);
    }

    /// Adds an interval of a worker.
    pub fn push(&mut self, interval: &Interval) {
        let middle_ns = interval.start_ns + (interval.end_ns - interval.start_ns) / 2;
        if self.grid.widen_for(middle_ns) {
            self.merge_cells();
        }
        let cell_ns = self.grid.cell_of(middle_ns);
        let count = self.slices.len();
        let slice = self.slices.entry(cell_ns).or_insert_with(|| Arc::new(Slice::empty(interval)));
        Arc::make_mut(slice).add(interval, self.bucket_bits);
        // Once in so many new ones: in between, they double at most.
        if self.slices.len() > count && self.slices.len().is_multiple_of(SLICES_MIN as usize) {
            self.join_buckets(ENCODED_BYTES_MAX);
        }
    }

    /// Merges the slices that are in one cell of the grid since it was widened.
    fn merge_cells(&mut self) {
        for (cell_ns, slice) in std::mem::take(&mut self.slices) {
            self.merge_slice(cell_ns, slice);
        }
    }

    fn merge_slice(&mut self, cell_ns: u64, slice: Arc<Slice>) {
        match self.slices.entry(self.grid.cell_of(cell_ns)) {
            Entry::Vacant(place) => {
                place.insert(slice);
            }
            Entry::Occupied(mut place) => Arc::make_mut(place.get_mut()).merge(&slice, self.bucket_bits),
        }
    }

    /// Gives its slices the times that they have in a whole of which they are a part.
    pub(crate) fn map_host(&mut self, mapping: &HostMapping) {
        self.grid.map_host(mapping);
        let moved = |(cell_ns, mut slice): (u64, Arc<Slice>)| {
            let held = Arc::make_mut(&mut slice);
            (held.start_ns, held.end_ns) = (mapping.time(held.start_ns), mapping.time(held.end_ns));
            // What lies before the schedule is one cell, which begins with all time.
            (if cell_ns == 0 { 0 } else { mapping.time(cell_ns) }, slice)
        };
        self.slices = std::mem::take(&mut self.slices).into_iter().map(moved).collect();
    }

    /// Adds the slices of another part of the same run, whose window began at the same instant. Slices are as long as those of the part that
    /// has the longer ones.
    ///
    /// # Errors
    /// What the two do not have in common.
    pub(crate) fn merge(&mut self, other: &Self) -> Result<(), &'static str> {
        self.grid.join(&other.grid)?;
        self.merge_cells();
        for (cell_ns, slice) in &other.slices {
            self.merge_slice(*cell_ns, slice.clone());
        }
        Ok(())
    }

    /// How long the slices of the measured window are: 100 ms times a power of two; or a divisor of the length that was asked for, or
    /// that times a power of two.
    pub fn slice_ns(&self) -> u64 {
        self.grid.slice_ns
    }

    /// How long the pieces of a table over time are that begin at or before an instant, on its side of the beginning of the window:
    /// the least multiple of the slices' length that is no less than `least_ns`, or what was asked for, if slices are no longer.
    pub fn row_ns(&self, at_ns: u64, least_ns: u64) -> u64 {
        self.grid.row_ns(at_ns, least_ns)
    }

    /// The beginning of the grid cell that an instant lies in.
    pub fn cell_of(&self, at_ns: u64) -> u64 {
        self.grid.cell_of(at_ns)
    }

    /// Does it fit a run with this number of servers that measured these ops of these classes?
    pub(crate) fn fits(&self, servers: usize, has_row: impl Fn(ClassId, OpId) -> bool) -> bool {
        let fits = |slice: &Slice| {
            slice.servers.len() == servers && slice.rows.iter().all(|row| has_row(row.class, row.op))
        };
        self.slices().all(fits)
    }

    /// Joins buckets in pairs until the histograms of all slices take no more than this. False: they take more at the widest, too.
    fn join_buckets(&mut self, bytes_max: usize) -> bool {
        while self.slices().map(Slice::encoded_bytes).sum::<usize>() > bytes_max {
            if self.bucket_bits == GROUPING_POWER {
                return false;
            }
            self.bucket_bits += 1;
            let bits = self.bucket_bits;
            self.slices.values_mut().for_each(|slice| Arc::make_mut(slice).join_buckets(bits));
        }
        true
    }

    /// Joins buckets until the histograms of all slices take no more than this. Counts and moments stay exact. If that is not enough, the
    /// times of the client are left out.
    pub(crate) fn fit(&mut self, bytes_max: usize) {
        if !self.join_buckets(bytes_max) {
            // What hundreds of servers did takes most of it.
            self.slices.values_mut().for_each(|slice| Arc::make_mut(slice).client = ClientTime::default());
        }
    }

    /// The slices in the order of time.
    pub fn slices(&self) -> impl Iterator<Item = &Slice> + '_ {
        self.slices.values().map(Arc::as_ref)
    }

    /// The slices in the order of time, each with the beginning of its grid cell.
    pub fn slices_by_cell(&self) -> impl Iterator<Item = (u64, &Slice)> + '_ {
        self.slices.iter().map(|(cell_ns, slice)| (*cell_ns, slice.as_ref()))
    }

    /// The cells of the grid that lie wholly in a span that begins with one and that the beginning of the window does not cut, with
    /// their slices; `None` where nothing was recorded.
    pub(crate) fn cells(&self, span: Range<u64>) -> Vec<Option<&Slice>> {
        let width_ns = self.grid.width_ns(span.start);
        let count = span.end.saturating_sub(span.start) / width_ns;
        (0..count).map(|index| self.slices.get(&(span.start + index * width_ns)).map(Arc::as_ref)).collect()
    }

    /// The slices of the cells that begin in a span, in the order of time.
    pub fn slices_in(&self, span: Range<u64>) -> impl Iterator<Item = &Slice> + Clone + '_ {
        self.slices.range(span.start..span.end.max(span.start)).map(|(_, slice)| slice.as_ref())
    }

    /// The slices whose grid cell reaches beyond an instant, in the order of time.
    pub(crate) fn slices_from(&self, at_ns: u64) -> impl Iterator<Item = &Slice> + '_ {
        self.slices_in(self.grid.cell_of(at_ns)..u64::MAX)
    }

    /// The span in pieces of `width_ns`, a multiple of the length of its slices; the last one may be shorter. Pieces in which nothing was
    /// recorded are there, too, and hold nothing: an outage is not a gap in the table.
    pub fn points(&self, span: Range<u64>, width_ns: u64) -> Vec<TimelinePoint> {
        let slice_ns = self.grid.width_ns(span.start);
        assert!(
            width_ns > 0 && width_ns.is_multiple_of(slice_ns),
            "{width_ns} ns is no multiple of {slice_ns} ns"
        );
        let starts = (0..span.end.saturating_sub(span.start).div_ceil(width_ns))
            .map(|index| span.start + index * width_ns);
        let mut sum = Histogram::new();
        starts.map(|start_ns| self.point(start_ns..span.end.min(start_ns + width_ns), &mut sum)).collect()
    }

    /// What the client did in a span that begins and ends with cells of the grid, as those of [`Self::points`] do.
    pub fn client_time(&self, span: Range<u64>) -> ClientTime {
        let mut sum = ClientTime::default();
        self.slices_in(span).for_each(|slice| sum.merge(&slice.client));
        sum
    }

    /// The span as one piece.
    pub(crate) fn point(&self, span: Range<u64>, sum: &mut Histogram) -> TimelinePoint {
        let Range { start: start_ns, end: end_ns } = span;
        let (mut activity, mut preload) = (Activity::default(), Activity::default());
        let mut client = ClientTime::default();
        let slices = self.slices_in(start_ns..end_ns);
        for slice in slices.clone() {
            activity.merge(&slice.activity);
            preload.merge(&slice.preload);
            client.merge(&slice.client);
        }
        let rows = slices.flat_map(|slice| &slice.rows);
        let response = SparseHistogram::merge_all(rows.map(|row| &row.response), sum);
        TimelinePoint { start_ns, end_ns, activity, preload, latency: PointLatency::of(&response), client }
    }

    /// The ops of a piece of time, ascending: only those that there were. The piece begins and ends with cells of the grid, as
    /// those of [`Self::points`] do.
    pub fn ops(&self, span: Range<u64>) -> Vec<OpPoint> {
        let mut by_op: BTreeMap<OpId, Vec<&SliceRow>> = BTreeMap::new();
        for row in self.slices_in(span).flat_map(|slice| &slice.rows) {
            by_op.entry(row.op).or_default().push(row);
        }
        let mut sum = Histogram::new();
        let point = |(op, rows): (OpId, Vec<&SliceRow>)| OpPoint {
            op,
            completed: rows.iter().map(|row| row.completed).sum(),
            failed: rows.iter().map(|row| row.faulty).sum(),
            latency: PointLatency::of(&SparseHistogram::merge_all(
                rows.iter().map(|row| &row.response),
                &mut sum,
            )),
        };
        by_op.into_iter().map(point).collect()
    }
}

/// No count of a slice is as large: a million requests a second for nine years. A million slices of such counts add up.
const COUNT_MAX: u64 = 1 << 48;
/// Nor are the microseconds of its workers: as many slices of three months each.
const CLIENT_MAX: u64 = 1 << 43;
/// Nor is a sum of nanoseconds: as many values of five hours each.
const SUM_MAX: u128 = 1 << 92;

/// The slices, not looked at yet.
#[derive(Serialize, Deserialize)]
struct SerializedTimeline {
    grid: Grid,
    /// Ascending: the beginning of a cell, and its slice.
    slices: Vec<(u64, Slice)>,
}

impl From<Timeline> for SerializedTimeline {
    fn from(timeline: Timeline) -> Self {
        let slices = timeline.slices.into_iter();
        let slices = slices.map(|(cell_ns, slice)| (cell_ns, Arc::unwrap_or_clone(slice)));
        Self { grid: timeline.grid, slices: slices.collect() }
    }
}

impl TryFrom<SerializedTimeline> for Timeline {
    type Error = &'static str;

    fn try_from(SerializedTimeline { grid, slices }: SerializedTimeline) -> Result<Self, Self::Error> {
        check_grid(&grid)?;
        if !slices.is_sorted_by(|(one, _), (other, _)| one < other) {
            return Err("slices that are not in the order of time");
        }
        if !slices.iter().all(|(cell_ns, _)| grid.cell_of(*cell_ns) == *cell_ns) {
            return Err("a slice that is not on the grid of slices");
        }
        let servers = slices.first().map_or(0, |(_, slice)| slice.servers.len());
        if slices.iter().any(|(_, slice)| slice.servers.len() != servers) {
            return Err("slices of different numbers of servers");
        }
        slices.iter().try_for_each(|(_, slice)| check(slice))?;
        let slices = slices.into_iter().map(|(cell_ns, slice)| (cell_ns, Arc::new(slice))).collect();
        Ok(Self { grid, slices, bucket_bits: 0 })
    }
}

fn check_grid(grid: &Grid) -> Result<(), &'static str> {
    let Grid { lead_ns, slice_ns, asked_ns, .. } = *grid;
    let is_width =
        |width_ns: u64| (SLICE_NS..1 << 62).contains(&width_ns) && width_ns.is_multiple_of(SLICE_NS);
    let is_power =
        |width_ns: u64, of_ns: u64| width_ns.is_multiple_of(of_ns) && (width_ns / of_ns).is_power_of_two();
    let fits = |width_ns: u64| match asked_ns {
        Some(asked_ns) => asked_ns.is_multiple_of(width_ns) || is_power(width_ns, asked_ns),
        None => is_power(width_ns, SLICE_NS),
    };
    let widths = [lead_ns, slice_ns];
    (widths.into_iter().chain(asked_ns).all(is_width) && widths.into_iter().all(fits))
        .then_some(())
        .ok_or("slices of a length that there is not")
}

fn check(slice: &Slice) -> Result<(), &'static str> {
    let Slice { start_ns, end_ns, activity, preload, recorded_ns, keys, warmup_keys, .. } = slice;
    if start_ns > end_ns {
        return Err("a slice that ends before it begins");
    }
    if activity.values().zip(preload.values()).any(|(all, part)| part > all) {
        return Err("a slice with more of the preload than there is");
    }
    let keys = keys.values().chain(warmup_keys.values());
    let servers = slice.servers.iter().flat_map(ServerCounts::values);
    let rows = slice.rows.iter().flat_map(|row| [row.completed, row.faulty, row.missed]);
    let mut all = activity.values().chain(keys).chain(servers).chain(rows);
    let histograms = || slice.rows.iter().map(|row| &row.response).chain([&slice.warmup_response]);
    let mut backlogs = slice.rows.iter().map(|row| row.backlog.unsigned_abs());
    if all.any(|count| count >= COUNT_MAX)
        || backlogs.any(|count| count >= COUNT_MAX)
        || *recorded_ns >= 1 << 62
        || slice.client.values().any(|count| count >= CLIENT_MAX)
        || histograms().any(|of| of.count() >= COUNT_MAX || of.moments().sum >= SUM_MAX)
    {
        return Err("a slice with more than a run can hold");
    }
    let order = slice.rows.iter().map(|row| (row.class, row.op));
    order.is_sorted_by(|one, other| one < other).then_some(()).ok_or("a slice whose rows are in no order")
}

#[cfg(test)]
mod tests;
