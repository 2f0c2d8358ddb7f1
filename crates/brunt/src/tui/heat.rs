//! Response times of the last minutes, a second a column: what the screen draws its heat map of.
//!
//! Not the run's timeline, whose slices grow with the run. Invariant: memory is bounded, however long the run; a column holds every operation
//! that ended in its second, of the warm-up or of the window.

use brunt_picture::Cells;
use brunt_picture::heat_map::{ColumnCount, heat_map};
use brunt_stats::histogram::{SparseHistogram, bucket_values};
use brunt_stats::interval::Interval;
use brunt_stats::measured_window::MeasuredWindow;
use std::collections::VecDeque;

const SECOND_NS: u64 = 1_000_000_000;
/// Wider than most terminals.
const COLUMNS_MAX: usize = 300;
/// Cells to a factor of ten, as on an HTML page.
const PER_DECADE: f64 = 12.0;
/// From a microsecond to 100 s; what lies outside is in the first or last cell.
const LOW_NS: f64 = 1e3;
const CELLS: usize = 8 * PER_DECADE as usize;

/// Numbers of a second by response time.
type Column = [u64; CELLS];

/// The last seconds.
#[derive(Clone, Debug, Default)]
pub(crate) struct HeatHistory {
    /// When the first second begins; `None` before the schedule does.
    origin_ns: Option<u64>,
    /// The number of the second with which the measured window begins.
    zero: u64,
    /// The number of the first one that is kept.
    first: u64,
    columns: VecDeque<Column>,
}

/// The last seconds as cells, the slowest at the top.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct HeatCells {
    pub cells: Cells,
    /// The least response time of each row from the top, in nanoseconds.
    pub low_ns: Vec<f64>,
    /// When the last column begins, in seconds from the beginning of the window.
    pub last_s: i64,
}

impl HeatHistory {
    /// The schedule has its times, which may be told again: seconds are those of the first ones.
    pub(crate) fn start(&mut self, window: &MeasuredWindow) {
        let before =
            (window.measure_ns - window.start_ns).div_ceil(SECOND_NS).min(window.measure_ns / SECOND_NS);
        let origin_ns = *self.origin_ns.get_or_insert(window.measure_ns - before * SECOND_NS);
        self.zero = (window.measure_ns.saturating_sub(origin_ns) + SECOND_NS / 2) / SECOND_NS;
    }

    /// A worker handed over what it recorded. An interval belongs to the second in which its middle lies.
    pub(crate) fn add(&mut self, interval: &Interval) {
        let middle_ns = interval.start_ns + (interval.end_ns - interval.start_ns) / 2;
        let since_ns = self.origin_ns.and_then(|origin_ns| middle_ns.checked_sub(origin_ns));
        let Some(index) = since_ns.and_then(|ns| self.column(ns / SECOND_NS)) else { return };
        let measured = interval.rows.iter().map(|row| &row.latencies.response);
        for (bucket, count) in measured.chain([&interval.warmup]).flat_map(SparseHistogram::buckets) {
            self.columns[index][cell_of(bucket)] += count;
        }
    }

    /// Time has passed, whether or not anything was recorded.
    pub(crate) fn tick(&mut self, now_ns: u64) {
        let since_ns = self.origin_ns.and_then(|origin_ns| now_ns.checked_sub(origin_ns));
        since_ns.and_then(|ns| self.column(ns / SECOND_NS));
    }

    /// The place of a second, unless it is too long ago.
    fn column(&mut self, second: u64) -> Option<usize> {
        let index = second.checked_sub(self.first)?;
        if index >= (self.columns.len() + COLUMNS_MAX) as u64 {
            // Nothing came for so long that nothing is left.
            (self.first, self.columns) = (second, VecDeque::from([[0; CELLS]]));
            return Some(0);
        }
        while self.columns.len() as u64 <= index {
            self.columns.push_back([0; CELLS]);
        }
        while self.columns.len() > COLUMNS_MAX {
            self.columns.pop_front();
            self.first += 1;
        }
        second.checked_sub(self.first).map(|index| index as usize)
    }

    /// The last seconds in at most so many columns, the last one at the right, and in so many rows; `None` before anything was answered.
    pub(crate) fn cells(&self, columns: usize, rows: usize) -> Option<HeatCells> {
        let shown = self.columns.range(self.columns.len().saturating_sub(columns)..);
        let is_taken = |cell: &usize| shown.clone().any(|column| column[*cell] > 0);
        let (least, most) = ((0..CELLS).find(is_taken)?, (0..CELLS).rfind(is_taken)?);
        // Rows are equally high, and one lies above the slowest where there is room.
        let per_row = (most - least + 2).div_ceil(rows).max(1);
        let edge = |row: usize| edge_ns(least + row * per_row);
        let edges: Vec<f64> = (0..=rows).map(edge).collect();
        let count = |(cell, count): (usize, &u64)| ColumnCount {
            low: edge_ns(cell),
            high: edge_ns(cell + 1),
            count: *count,
        };
        let counts: Vec<Vec<ColumnCount>> = shown
            .map(|column| column.iter().enumerate().filter(|(_, count)| **count > 0).map(count).collect())
            .collect();
        Some(HeatCells {
            cells: heat_map(&counts, &edges),
            low_ns: edges.iter().rev().skip(1).copied().collect(),
            last_s: (self.first + self.columns.len() as u64 - 1) as i64 - self.zero as i64,
        })
    }
}

fn edge_ns(cell: usize) -> f64 {
    LOW_NS * 10f64.powf(cell as f64 / PER_DECADE)
}

/// The cell of a bucket's middle.
fn cell_of(bucket: usize) -> usize {
    let values = bucket_values(bucket);
    let middle_ns = f64::midpoint(*values.start() as f64, *values.end() as f64);
    // What is below becomes 0.
    (((middle_ns / LOW_NS).log10() * PER_DECADE) as usize).min(CELLS - 1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use brunt_stats::histogram::Histogram;

    const MS: u64 = 1_000_000;

    fn interval(middle_ms: u64, times_ms: &[u64]) -> Interval {
        let plan = brunt_plan::resolve::resolve(
            &brunt_plan::spec::PlanSpec::default(),
            &brunt_plan::resolve::Host { allowed_cpus: vec![0], random_seed: 1 },
        );
        let layout = brunt_stats::recorder::Layout::of(&plan.unwrap());
        let mut set = brunt_stats::recorder::RecorderSet::new(&layout);
        let mut held = set.take_interval(0, (middle_ms - 50) * MS, (middle_ms + 50) * MS);
        let mut histogram = Histogram::new();
        times_ms.iter().for_each(|ms| histogram.record(ms * MS));
        held.warmup = histogram.to_sparse();
        held
    }

    /// After a second of warm-up.
    fn window(measure_ms: u64) -> MeasuredWindow {
        let measure_ns = measure_ms * MS;
        MeasuredWindow { start_ns: measure_ns - 1_000 * MS, measure_ns, end_ns: u64::MAX, drained_ns: 0 }
    }

    /// Rows from the top, a digit for each cell that has anything: its step of heat.
    fn drawn(history: &HeatHistory, columns: usize, rows: usize) -> Vec<String> {
        let held = history.cells(columns, rows).unwrap();
        assert!(held.cells.columns() <= columns);
        let columns = held.cells.columns();
        let cell = |column: usize, row: usize| match held.cells.ink_at(column, row) {
            Some(step) => char::from(b'0' + step as u8),
            None => '.',
        };
        (0..rows).map(|row| (0..columns).map(|column| cell(column, row)).collect()).collect()
    }

    #[test]
    fn seconds_scroll_to_the_left() {
        let mut history = HeatHistory::default();
        history.add(&interval(500, &[1]));
        assert_eq!(history.cells(4, 3), None, "nothing before the schedule");
        history.start(&window(2_000));
        history.add(&interval(1_500, &[1, 1, 1]));
        history.add(&interval(1_600, &[1]));
        // A second without a reply, and one in which all that waited came.
        history.add(&interval(3_100, &[1, 1_000]));
        assert_eq!(drawn(&history, 4, 4), ["..6", "...", "...", "6.6"]);
        assert_eq!(history.cells(4, 4).unwrap().last_s, 1);
        history.tick(4_500 * MS);
        assert_eq!(history.cells(4, 4).unwrap().last_s, 2);
        assert_eq!(drawn(&history, 4, 4), ["..6.", "....", "....", "6.6."]);
        assert_eq!(drawn(&history, 2, 4), ["6.", "..", "..", "6."]);
        // The window begins earlier than it might have.
        history.start(&window(1_000));
        assert_eq!(history.cells(4, 4).unwrap().last_s, 3);
        // Far later, and then something that is long over.
        history.tick(9_000_000 * MS);
        history.add(&interval(1_700, &[1]));
        assert_eq!(history.cells(4, 3), None);
    }

    #[test]
    fn rows_are_named_by_their_least() {
        let mut history = HeatHistory::default();
        history.start(&window(1_000));
        history.add(&interval(100, &[1, 10]));
        let held = history.cells(1, 2).unwrap();
        let expected = [1e6 * 10f64.powf(7.0 / 12.0), 1e6];
        for (low_ns, expected) in held.low_ns.iter().zip(expected) {
            assert!((low_ns / expected - 1.0).abs() < 1e-9, "{low_ns} {expected}");
        }
        assert_eq!(held.low_ns.len(), 2);
    }

    #[test]
    fn history_is_bounded() {
        let mut history = HeatHistory::default();
        history.start(&window(1_000));
        for second in 0..2 * COLUMNS_MAX as u64 {
            history.add(&interval(second * 1_000 + 100, &[1]));
        }
        assert_eq!((history.columns.len(), history.first), (COLUMNS_MAX, COLUMNS_MAX as u64));
    }
}
