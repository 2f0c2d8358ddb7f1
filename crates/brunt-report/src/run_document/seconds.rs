//! The run over time in a long report: at most sixty rows, each the sum of its slices.

use crate::document::Document;
use crate::figure::{Figures, unit_of};
use crate::grid::{Cell, Column, Grid};
use crate::instant::in_window_ns;
use crate::layout::{Layout, Style};
use crate::quantity::rate;
use brunt_stats::summary::Summary;

const ROWS_MAX: u64 = 60;
const SECOND_NS: u64 = 1_000_000_000;

pub(super) fn part(document: &mut Document, summary: &Summary, layout: &Layout) {
    document.heading("seconds");
    let (timeline, window) = (summary.record.run.intervals.timeline(), &summary.window);
    let least_ns = window.duration_ns().div_ceil(ROWS_MAX).max(SECOND_NS);
    let piece_ns = least_ns.div_ceil(timeline.slice_ns()) * timeline.slice_ns();
    let points = timeline.points(window.measure_ns..window.end_ns, piece_ns);
    let columns = [
        Figures::of_times(points.iter().map(|point| point.latency.p50_ns)),
        Figures::of_times(points.iter().map(|point| point.latency.p99_ns)),
        Figures::of_times(points.iter().map(|point| point.latency.max_ns)),
    ];
    let unit = layout.unit.unwrap_or_else(|| unit_of(&columns));
    let times = columns.map(|column| column.texts(unit).times);
    let numbers = ["due/s", "done/s", "failed", "p50", "p99", "max"];
    let first = Column::of_words(format!("second, {unit}"), 13);
    let mut grid =
        Grid::new([first].into_iter().chain(numbers.map(|name| Column::spaced(name, 8))).collect());
    for (index, point) in points.iter().enumerate() {
        let seconds = (point.end_ns - point.start_ns) as f64 / 1e9;
        let per_s = |count: u64| rate(count as f64 / seconds);
        let start_s = in_window_ns(summary, point.start_ns) as f64 / 1e9;
        let failed = point.activity.failed;
        let style = if failed > 0 { Style::Bad } else { Style::Plain };
        let mut row =
            vec![format!("{start_s:.1}"), per_s(point.activity.scheduled), per_s(point.activity.completed)];
        row.push(failed.to_string());
        row.extend(times.iter().map(|column| column[index].clone()));
        grid.push(row.into_iter().map(|text| Cell::new(text, style)).collect());
    }
    document.table(grid);
}
