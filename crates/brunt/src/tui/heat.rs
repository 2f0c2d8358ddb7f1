//! The heat map of the last seconds of a run: a column for each, a row for each range of response times.
//!
//! Invariant: a column has every operation that ended in its second, of the warm-up or of the window.

use brunt_picture::Cells;
use brunt_picture::heat_map::{ColumnCount, heat_map};
use brunt_stats::histogram::{SparseHistogram, bucket_values};
use brunt_stats::live_run::Second;
use std::sync::Arc;

/// Edges of rows to a factor of ten, as on an HTML page, so that rows stay where they are while the extremes change a little.
const PER_DECADE: f64 = 12.0;

/// The cells of the last seconds, the slowest at the top.
#[derive(Clone, Debug)]
pub(crate) struct HeatMap<'a> {
    pub cells: Cells,
    /// The second of each column.
    pub seconds: &'a [Arc<Second>],
    /// The least response time of each row from the top, in nanoseconds.
    pub low_ns: Vec<f64>,
}

impl<'a> HeatMap<'a> {
    /// The last seconds in at most so many columns, the last one at the right, and in so many rows; `None` before anything was answered.
    pub(crate) fn of(seconds: &'a [Arc<Second>], columns: usize, rows: usize) -> Option<Self> {
        let seconds = &seconds[seconds.len().saturating_sub(columns)..];
        let moments = seconds.iter().map(|second| second.response.moments()).filter(|held| held.count > 0);
        let (min_ns, max_ns) =
            (moments.clone().map(|held| held.min).min()?, moments.map(|held| held.max).max()?);
        let step = |ns: u64| ((ns.max(1) as f64).log10() * PER_DECADE) as usize;
        let (least, most) = (step(min_ns), step(max_ns));
        // Rows are equally high, and one lies above the slowest where there is room.
        let per_row = (most - least + 2).div_ceil(rows).max(1);
        let edge = |row: usize| 10f64.powf((least + row * per_row) as f64 / PER_DECADE);
        let edges: Vec<f64> = (0..=rows).map(edge).collect();
        let counts: Vec<_> = seconds.iter().map(|second| counts(&second.response)).collect();
        let low_ns = edges[..rows].iter().rev().copied().collect();
        Some(Self { cells: heat_map(&counts, &edges), seconds, low_ns })
    }
}

fn counts(response: &SparseHistogram) -> Vec<ColumnCount> {
    let count = |(bucket, count)| {
        let values = bucket_values(bucket);
        let [low, high] = [values.start(), values.end()].map(|ns| (*ns).max(1) as f64);
        ColumnCount { low, high, count }
    };
    response.buckets().map(count).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use brunt_stats::histogram::Histogram;

    fn second(times_ms: &[u64]) -> Arc<Second> {
        let mut histogram = Histogram::new();
        times_ms.iter().for_each(|ms| histogram.record(ms * 1_000_000));
        let mut second = Second::default();
        second.response = histogram.to_sparse();
        Arc::new(second)
    }

    /// Rows from the top, a digit for each cell that has anything: its step of heat.
    fn drawn(seconds: &[Arc<Second>], columns: usize, rows: usize) -> Vec<String> {
        let held = HeatMap::of(seconds, columns, rows).unwrap();
        assert_eq!(held.cells.columns(), held.seconds.len());
        let cell = |column: usize, row: usize| match held.cells.ink_at(column, row) {
            Some(step) => char::from(b'0' + step as u8),
            None => '.',
        };
        (0..rows).map(|row| (0..held.seconds.len()).map(|column| cell(column, row)).collect()).collect()
    }

    #[test]
    fn the_last_seconds_stand_at_the_right() {
        // A second without a reply, and one in which all that waited came.
        let seconds = [second(&[1, 1, 1, 1]), second(&[]), second(&[1, 1_000]), second(&[])];
        assert_eq!(drawn(&seconds, 4, 4), ["..6.", "....", "....", "6.6."]);
        assert_eq!(drawn(&seconds, 2, 4), ["6.", "..", "..", "6."]);
        assert!(HeatMap::of(&seconds, 1, 4).is_none(), "nothing was answered");
        assert!(HeatMap::of(&[], 4, 4).is_none());
    }

    #[test]
    fn rows_are_named_by_their_least() {
        let seconds = [second(&[1, 10])];
        let held = HeatMap::of(&seconds, 1, 2).unwrap();
        let expected = [1e6 * 10f64.powf(7.0 / 12.0), 1e6];
        for (low_ns, expected) in held.low_ns.iter().zip(expected) {
            assert!((low_ns / expected - 1.0).abs() < 1e-9, "{low_ns} {expected}");
        }
        assert_eq!(held.low_ns.len(), 2);
    }
}
