//! The columns of a heat map from histograms over time.

use super::columns::Column;
use brunt_picture::heat_map::{ColumnCount, heat_map, logarithmic_edges};
use brunt_picture::{Area, Shape};
use brunt_stats::histogram::{Histogram, SparseHistogram};

/// Cells to a factor of ten.
const PER_DECADE: u32 = 12;

/// The edges of cells that hold all of these response times, and begin at whole twelfths of a decade.
pub(super) fn edges<'a>(responses: impl Iterator<Item = &'a SparseHistogram>) -> Vec<f64> {
    let (mut least, mut most) = (f64::INFINITY, 0.0_f64);
    for response in responses.filter(|response| response.count() > 0) {
        let moments = response.moments();
        least = least.min(moments.min.max(1) as f64);
        most = most.max(moments.max as f64);
    }
    if most == 0.0 {
        return logarithmic_edges(1e3, 1e6, PER_DECADE);
    }
    let step = f64::from(PER_DECADE);
    let low = 10f64.powf((least.log10() * step).floor() / step);
    // A row of their own lies above the largest, so that it stands apart from the edge of the chart.
    let high = (most * 1.2).max(low * 4.0);
    logarithmic_edges(low, high, PER_DECADE)
}

/// The values of a histogram with their numbers.
fn counts(response: &SparseHistogram, sum: &mut Histogram) -> Vec<ColumnCount> {
    sum.clear();
    sum.merge_sparse(response);
    of_histogram(sum)
}

/// The counts of a histogram that is not packed.
pub(super) fn of_histogram(histogram: &Histogram) -> Vec<ColumnCount> {
    let ranks = histogram.ranks();
    let mut below = 0;
    let counts = ranks.iter().map(|(values, up_to)| {
        let count = up_to - std::mem::replace(&mut below, up_to);
        let (low, high) = ((*values.start()).max(1) as f64, (*values.end()).max(1) as f64);
        ColumnCount { low, high, count }
    });
    counts.collect()
}

/// The heat map of columns that lie side by side.
pub(super) fn shape(columns: &[Column], edges: &[f64], area: Area) -> Shape {
    let mut sum = Histogram::new();
    let counts: Vec<Vec<ColumnCount>> =
        columns.iter().map(|column| counts(&column.response, &mut sum)).collect();
    Shape::Cells { area, cells: heat_map(&counts, edges) }
}
