//! Where the slices of a run lie: cells of equal length, one of which begins with the measured window.
//!
//! Not the slices. Cells are counted from the beginning of the window, in both directions, so that none lies on both sides of
//! it, and each side has a length of its own: a long warm-up does not make the slices of the window longer. Invariants: a cell
//! of a wider grid is made of whole cells of the narrower one, and how wide it is follows from the instants that were seen,
//! whatever their order.

use crate::interval::{HostMapping, SLICE_NS};
use serde::{Deserialize, Serialize};
use std::ops::Range;

/// Cells are merged once so many wider ones would remain, so that pairs are merged at 600: enough for tests of stationarity
/// (the change point is looked for among 300 values), few enough to be read one by one.
pub const SLICES_MIN: u64 = 300;

/// The same for cells of the length that was asked for, so that pairs are merged at 3 000, as many as a page draws: 50 minutes of
/// seconds.
const ROWS_MIN: u64 = 1_500;

/// The cells of a run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Grid {
    /// The beginning of the measured window; before it is known there is one cell.
    pub measure_ns: Option<u64>,
    /// What lies before it is one cell.
    pub start_ns: u64,
    /// The end of the window, as far as is known.
    #[serde(with = "crate::counts::instant")]
    pub end_ns: u64,
    /// Length of the cells before the window.
    pub lead_ns: u64,
    /// Length of those from its beginning on.
    pub slice_ns: u64,
    /// The length that was asked for: the others are divisors of it, or it times a power of two where there would be too many.
    pub asked_ns: Option<u64>,
}

impl Default for Grid {
    fn default() -> Self {
        Self::new(None)
    }
}

impl Grid {
    pub(super) fn new(asked_ns: Option<u64>) -> Self {
        let is_multiple = |width_ns: &u64| *width_ns > 0 && width_ns.is_multiple_of(SLICE_NS);
        assert!(asked_ns.as_ref().is_none_or(is_multiple), "slices of {asked_ns:?} ns");
        Self {
            measure_ns: None,
            start_ns: 0,
            end_ns: u64::MAX,
            lead_ns: SLICE_NS,
            slice_ns: SLICE_NS,
            asked_ns,
        }
    }

    pub(super) fn align(&mut self, measure_ns: u64) {
        // Workers begin their intervals at whole slices from the start of the schedule, and so does a window that begins earlier.
        let is_same_grid = |held: u64| held.abs_diff(measure_ns).is_multiple_of(SLICE_NS);
        let is_narrow = (self.lead_ns, self.slice_ns) == (SLICE_NS, SLICE_NS);
        let may_move =
            self.measure_ns.is_none_or(|held| held == measure_ns || (is_narrow && is_same_grid(held)));
        assert!(may_move, "the window begins at {measure_ns} ns: {self:?}");
        self.measure_ns = Some(measure_ns);
    }

    pub(super) fn set_schedule(&mut self, schedule: Range<u64>) {
        (self.start_ns, self.end_ns) = (schedule.start, schedule.end);
    }

    /// Where it lies in a whole of which it is a part.
    pub(super) fn map_host(&mut self, mapping: &HostMapping) {
        self.measure_ns = self.measure_ns.map(|at_ns| mapping.time(at_ns));
        (self.start_ns, self.end_ns) = (mapping.time(self.start_ns), mapping.time(self.end_ns));
    }

    /// Becomes a grid for the cells of both.
    pub(super) fn join(&mut self, other: &Self) -> Result<(), &'static str> {
        let is_whole = |one: u64, other: u64| one.max(other).is_multiple_of(one.min(other));
        if self.measure_ns != other.measure_ns
            || self.asked_ns != other.asked_ns
            || !is_whole(self.lead_ns, other.lead_ns)
            || !is_whole(self.slice_ns, other.slice_ns)
        {
            return Err("their slices of time do not fit together");
        }
        (self.lead_ns, self.slice_ns) = (self.lead_ns.max(other.lead_ns), self.slice_ns.max(other.slice_ns));
        (self.start_ns, self.end_ns) = (self.start_ns.min(other.start_ns), self.end_ns.max(other.end_ns));
        Ok(())
    }

    /// Length of the cells on the side of an instant.
    pub(super) fn width_ns(&self, at_ns: u64) -> u64 {
        if self.is_before(at_ns) { self.lead_ns } else { self.slice_ns }
    }

    fn is_before(&self, at_ns: u64) -> bool {
        self.measure_ns.is_some_and(|measure_ns| at_ns < measure_ns)
    }

    /// The beginning of the cell that an instant lies in. The first cell is short where the grid does not begin at 0.
    pub(super) fn cell_of(&self, at_ns: u64) -> u64 {
        let Some(measure_ns) = self.measure_ns else { return 0 };
        match at_ns.checked_sub(measure_ns) {
            Some(offset_ns) => measure_ns + offset_ns / self.slice_ns * self.slice_ns,
            None if at_ns < back(measure_ns, self.start_ns, SLICE_NS) => 0,
            None => back(measure_ns, at_ns, self.lead_ns),
        }
    }

    /// Widens the cells on the side of an instant until its own is not one too many. True: they were.
    pub(super) fn widen_for(&mut self, at_ns: u64) -> bool {
        let narrow_ns = self.width_ns(at_ns);
        while let Some(width_ns) = self.wider_for(at_ns) {
            if self.is_before(at_ns) { self.lead_ns = width_ns } else { self.slice_ns = width_ns }
        }
        self.width_ns(at_ns) > narrow_ns
    }

    /// The next length of cells on the side of an instant, if it takes that.
    fn wider_for(&self, at_ns: u64) -> Option<u64> {
        let (measure_ns, width_ns, cell_ns) = (self.measure_ns?, self.width_ns(at_ns), self.cell_of(at_ns));
        let (factor, cells_min) = wider(width_ns, self.asked_ns);
        let count = if cell_ns == 0 {
            // That of the preload.
            0
        } else if self.is_before(at_ns) {
            (measure_ns - cell_ns).div_ceil(width_ns)
        } else {
            (cell_ns - measure_ns) / width_ns + 1
        };
        // Behind the window, too, there is an end to it.
        let most = if cell_ns >= self.end_ns { 2 * factor * cells_min } else { factor * cells_min };
        (count > most).then_some(width_ns * factor)
    }

    pub(super) fn row_ns(&self, at_ns: u64, least_ns: u64) -> u64 {
        let width_ns = self.width_ns(at_ns);
        self.asked_ns.map_or_else(|| least_ns.next_multiple_of(width_ns), |asked_ns| asked_ns.max(width_ns))
    }
}

/// The beginning of the cell of an instant before the window; 0 where it would lie before all time.
fn back(measure_ns: u64, at_ns: u64, width_ns: u64) -> u64 {
    measure_ns.saturating_sub(measure_ns.saturating_sub(at_ns).div_ceil(width_ns).saturating_mul(width_ns))
}

/// How many cells become one, and how many of those must remain. On the way to the length that was asked for, as few as divide it.
fn wider(width_ns: u64, asked_ns: Option<u64>) -> (u64, u64) {
    match asked_ns.map(|asked_ns| asked_ns / width_ns) {
        None => (2, SLICES_MIN),
        Some(rest) => (2..=rest)
            .find(|factor| rest.is_multiple_of(*factor))
            .map_or((2, ROWS_MIN), |factor| (factor, SLICES_MIN)),
    }
}

/// How long the rows of a table over time are that are no shorter than `least_ns`, once a window has lasted `elapsed_ns`, where no length was
/// requested.
pub fn row_ns_after(elapsed_ns: u64, least_ns: u64) -> u64 {
    let mut grid = Grid::new(None);
    grid.align(0);
    grid.widen_for(elapsed_ns);
    grid.row_ns(elapsed_ns, least_ns)
}
