//! A run over time: slices of 100 ms, merged over workers, and sums of them of any length for printing.
//!
//! Not the run's totals (those are exact and kept apart, in the store). An interval belongs to the slice that its middle
//! lies in, so a worker that was late in ending one moves a little work to a neighbouring slice and loses none.

use crate::book::{BookEntry, KeyBook};
use crate::histogram::{Histogram, SparseHistogram};
use crate::interval::{Activity, Interval, SLICE_NS};
use crate::server::{self, ServerCounts};
use brunt_plan::op::{ClassId, OpKind};
use brunt_plan::outcome::OutcomeClass;
use brunt_plan::phase::Phase;
use brunt_plan::quantile::Quantile;
use std::collections::BTreeMap;
use std::ops::Range;

/// What a slice keeps of one op kind of one class.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SliceRow {
    /// The class.
    pub class: ClassId,
    /// The kind of op.
    pub op: OpKind,
    /// Ops completed in the slice and inside the measured window, whenever they were due.
    pub completed: u64,
    /// Ops that failed in it as the errors of [`crate::book::RequestBook::faulty`] do: error, time-out, lost, given up.
    pub faulty: u64,
    /// Keys that ops completed in it asked for and that were not there.
    pub missed: u64,
    /// Ops of which all that will be known became known in it: see [`crate::window::WindowCounts::answered`].
    pub answered: u64,
    /// Follow-up ops that became due in it, and in the window. They are load that no schedule offered.
    pub followup: u64,
    /// Response times of measured ops that completed in the slice, in nanoseconds.
    pub response: SparseHistogram,
}

/// 100 ms of a run, all workers together.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Slice {
    /// When the first of its intervals began.
    pub start_ns: u64,
    /// When the last of its intervals ended.
    pub end_ns: u64,
    /// What went on, whatever its phase.
    pub activity: Activity,
    /// Of this, the preload.
    pub preload: Activity,
    /// The lengths of its intervals together: the time it covers, times the workers.
    pub recorded_ns: u64,
    /// Keys of measured retrievals that ended in the slice.
    pub keys: KeyBook,
    /// Keys of those of the warm-up.
    pub warmup_keys: KeyBook,
    /// Response times of ops of the warm-up that completed in the slice, where they are recorded.
    pub warmup_response: SparseHistogram,
    /// What each server did, in the order of the plan.
    pub servers: Vec<ServerCounts>,
    /// Ops by class and op, ascending; only those that there were.
    pub rows: Vec<SliceRow>,
}

impl Slice {
    fn merge(&mut self, interval: &Interval) {
        self.start_ns = self.start_ns.min(interval.start_ns);
        self.end_ns = self.end_ns.max(interval.end_ns);
        self.activity.merge(&interval.activity());
        self.preload.merge(&interval.activity_in(|phase| phase == Phase::Preload));
        self.recorded_ns += interval.end_ns - interval.start_ns;
        let measured = interval.books.iter().filter(|entry| entry.phase == Phase::Measure);
        measured.for_each(|entry| self.keys.merge(&entry.book.keys));
        let warming = interval.books.iter().filter(|entry| entry.phase == Phase::Warmup);
        warming.for_each(|entry| self.warmup_keys.merge(&entry.book.keys));
        if interval.warmup.count() > 0 {
            self.warmup_response = self.warmup_response.merged(&interval.warmup);
        }
        server::merge_all(&mut self.servers, &interval.servers);
        for row in &interval.rows {
            let held = self.row_mut(row.class, row.op);
            held.response = held.response.merged(&row.latencies.response);
        }
        interval.books.iter().for_each(|entry| self.merge_book(entry));
    }

    fn merge_book(&mut self, entry: &BookEntry) {
        let counts = entry.in_window();
        let followup = if entry.phase == Phase::Measure { entry.book.requests.followup } else { 0 };
        if counts.ended() + counts.given_up + followup > 0 {
            let held = self.row_mut(entry.class, entry.op);
            held.completed += counts.completed();
            held.faulty += counts.failed() - counts.outcome(OutcomeClass::Mismatch) + counts.given_up;
            held.missed += counts.missed;
            held.answered += counts.answered();
            held.followup += followup;
        }
    }

    /// The row of a (class, op), which is added if there is none.
    fn row_mut(&mut self, class: ClassId, op: OpKind) -> &mut SliceRow {
        let place = self.rows.binary_search_by_key(&(class, op), |held| (held.class, held.op));
        let index = place.unwrap_or_else(|index| {
            let empty = SliceRow {
                class,
                op,
                completed: 0,
                faulty: 0,
                missed: 0,
                answered: 0,
                followup: 0,
                response: SparseHistogram::default(),
            };
            self.rows.insert(index, empty);
            index
        });
        &mut self.rows[index]
    }

    /// How much of the slice lies in a span of time, from 0 to 1, when what lies beyond `cut_ns` is not looked at.
    pub(crate) fn part_within(&self, span: &Range<u64>, cut_ns: u64) -> f64 {
        let end_ns = self.end_ns.min(cut_ns);
        let overlap_ns = end_ns.min(span.end).saturating_sub(self.start_ns.max(span.start));
        match end_ns.saturating_sub(self.start_ns) {
            0 => 0.0,
            length_ns => overlap_ns as f64 / length_ns as f64,
        }
    }
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
    /// Of this, the preload.
    pub preload: Activity,
    /// Median response time of the measured ops that completed; `None` with fewer than 20.
    pub p50_ns: Option<u64>,
    /// 99th percentile; `None` with fewer than 1000.
    pub p99_ns: Option<u64>,
    /// Largest response time; `None` without any.
    pub max_ns: Option<u64>,
}

/// The slices of a run by time.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Timeline {
    /// By the beginning of the grid cell that each stands for.
    slices: BTreeMap<u64, Slice>,
    /// Where the grid lies, modulo its cells.
    grid_ns: u64,
}

impl Timeline {
    /// Lays the grid of slices so that one of them begins at `origin_ns`: the beginning of the measured window. To be
    /// called before intervals of the schedule arrive; slices that exist stay where they are.
    pub fn align(&mut self, origin_ns: u64) {
        self.grid_ns = origin_ns % SLICE_NS;
    }

    /// Adds an interval of a worker.
    pub fn push(&mut self, interval: &Interval) {
        let middle_ns = interval.start_ns + (interval.end_ns - interval.start_ns) / 2;
        // The first cell is short where the grid does not begin at 0.
        let cell_ns = match middle_ns.checked_sub(self.grid_ns) {
            Some(offset_ns) => self.grid_ns + offset_ns / SLICE_NS * SLICE_NS,
            None => 0,
        };
        let empty = Slice {
            start_ns: interval.start_ns,
            end_ns: interval.end_ns,
            activity: Activity::default(),
            preload: Activity::default(),
            recorded_ns: 0,
            keys: KeyBook::default(),
            warmup_keys: KeyBook::default(),
            warmup_response: SparseHistogram::default(),
            servers: vec![ServerCounts::default(); interval.servers.len()],
            rows: Vec::new(),
        };
        self.slices.entry(cell_ns).or_insert(empty).merge(interval);
    }

    /// The slices in the order of time.
    pub fn slices(&self) -> impl Iterator<Item = &Slice> + '_ {
        self.slices.values()
    }

    /// The slices in the order of time, each with the beginning of its grid cell.
    pub(crate) fn slices_by_cell(&self) -> impl Iterator<Item = (u64, &Slice)> + '_ {
        self.slices.iter().map(|(cell_ns, slice)| (*cell_ns, slice))
    }

    /// The cells of the grid that lie wholly in a span, with their slices; `None` where nothing was recorded.
    pub(crate) fn cells(&self, span: Range<u64>) -> Vec<Option<&Slice>> {
        let count = span.end.saturating_sub(span.start) / SLICE_NS;
        (0..count).map(|index| self.slices.get(&(span.start + index * SLICE_NS))).collect()
    }

    /// The slices whose grid cell reaches beyond an instant, in the order of time.
    pub(crate) fn slices_from(&self, at_ns: u64) -> impl Iterator<Item = &Slice> + '_ {
        self.slices.range(at_ns.saturating_sub(SLICE_NS)..).map(|(_, slice)| slice)
    }

    /// The span in pieces of `width_ns`, a multiple of 100 ms; the last one may be shorter. Pieces in which nothing was
    /// recorded are there, too, and hold nothing: an outage is not a gap in the table.
    pub fn points(&self, span: Range<u64>, width_ns: u64) -> Vec<TimelinePoint> {
        assert!(width_ns > 0 && width_ns.is_multiple_of(SLICE_NS), "{width_ns} ns is no multiple of 100 ms");
        let starts = (0..span.end.saturating_sub(span.start).div_ceil(width_ns))
            .map(|index| span.start + index * width_ns);
        let mut sum = Histogram::new();
        starts.map(|start_ns| self.point(start_ns, span.end.min(start_ns + width_ns), &mut sum)).collect()
    }

    fn point(&self, start_ns: u64, end_ns: u64, sum: &mut Histogram) -> TimelinePoint {
        let (mut activity, mut preload) = (Activity::default(), Activity::default());
        let slices = self.slices.range(start_ns..end_ns).map(|(_, slice)| slice);
        for slice in slices.clone() {
            activity.merge(&slice.activity);
            preload.merge(&slice.preload);
        }
        let rows = slices.flat_map(|slice| &slice.rows);
        let response = SparseHistogram::together(rows.map(|row| &row.response), sum);
        let given = |quantile: Quantile| {
            quantile.is_supported_by(response.count()).then(|| response.quantile(quantile)).flatten()
        };
        TimelinePoint {
            start_ns,
            end_ns,
            activity,
            preload,
            p50_ns: given(Quantile::P50),
            p99_ns: given(Quantile::P99),
            max_ns: (response.count() > 0).then_some(response.moments().max),
        }
    }

    /// How many ops of the classes that `of` selects were answered within the span, which lies in the measured window and
    /// ends with it at `window_end_ns`, whenever they were due. Slices that the span cuts count in proportion. Nobody
    /// offered the follow-ups that became due meanwhile, so as many answers are theirs: where they are not answered as
    /// fast as they become due, the server does not keep up with what it was offered and what follows from it.
    pub fn answered_within(&self, span: Range<u64>, window_end_ns: u64, of: impl Fn(ClassId) -> bool) -> f64 {
        let answered = |slice: &Slice| {
            let rows = slice.rows.iter().filter(|row| of(row.class));
            rows.map(|row| row.answered as f64 - row.followup as f64).sum::<f64>()
        };
        let sum: f64 =
            self.slices().map(|slice| slice.part_within(&span, window_end_ns) * answered(slice)).sum();
        sum.max(0.0)
    }

    /// Bytes of memory that the slices take, about.
    pub fn memory_bytes(&self) -> usize {
        let of_row = |row: &SliceRow| {
            size_of::<SliceRow>() - size_of::<SparseHistogram>() + row.response.memory_bytes()
        };
        let of_slice = |slice: &Slice| {
            let warmup_bytes = slice.warmup_response.memory_bytes() - size_of::<SparseHistogram>();
            size_of::<Slice>() + 8 + slice.servers.len() * size_of::<ServerCounts>() + warmup_bytes
        };
        self.slices().map(|slice| of_slice(slice) + slice.rows.iter().map(of_row).sum::<usize>()).sum()
    }
}
