//! The one table: response times of every row in one unit, with what bounds and marks them, rates and failures.
//!
//! The verdict has its words. Invariants: a cell holds no blank, no unit and no grouping of digits; cells are missing at
//! the end of a row only.

use crate::figure::{Bound, Figures, Texts, unit_of};
use crate::grid::{Cell, Column, Grid};
use crate::layout::{Layout, Style, TimeUnit};
use crate::page::Room;
use crate::quantity;
use crate::row::{self, Row, rows};
use brunt_plan::outcome::OutcomeClass;
use brunt_plan::quantile::Quantile;
use brunt_stats::check::{CheckId, CheckStatus};
use brunt_stats::histogram::Histogram;
use brunt_stats::latency::LatencySummary;
use brunt_stats::op_summary::OpSummary;
use brunt_stats::summary::Summary;

/// Percentiles beside each other.
const QUANTILES_MAX: usize = 6;

/// One row of the table.
struct Line<'a> {
    name: String,
    response: LatencySummary,
    /// What bounds and marks it; several operations as one have neither.
    row: Option<Row<'a>>,
    /// Completed per second; `None` where no reply was asked for.
    done: Option<f64>,
    /// Keys that were hit, and those that were hit or missed.
    hits: [u64; 2],
    failed: u64,
}

impl<'a> Line<'a> {
    fn of(row: &Row<'a>) -> Self {
        let OpSummary { latency, rate, requests, keys, .. } = row.summary;
        Self {
            name: row.name('.'),
            response: latency.response.summary.clone(),
            row: Some(*row),
            done: (!is_unacknowledged(row.summary)).then_some(rate.completed),
            hits: [keys.hit, keys.hit + keys.miss],
            failed: requests.failed() + requests.abandoned,
        }
    }

    /// All that these rows count, as one.
    fn merged(rows: &[Row<'_>], quantiles: &[Quantile]) -> Self {
        let mut histogram = Histogram::new();
        rows.iter().for_each(|row| histogram.merge(&row.summary.latency.response.histogram));
        let lines: Vec<Line<'_>> = rows.iter().map(Line::of).collect();
        Self {
            name: format!("rest-{}", rows.len()),
            response: LatencySummary::with(&histogram, quantiles),
            row: None,
            done: Some(lines.iter().filter_map(|line| line.done).sum()),
            hits: [0, 1].map(|index| lines.iter().map(|line| line.hits[index]).sum()),
            failed: lines.iter().map(|line| line.failed).sum(),
        }
    }

    /// The hit ratio in per cent, which is 100 only where nothing was missed.
    fn hit_percent(&self) -> String {
        match self.hits {
            [_, 0] => "-".to_owned(),
            [hit, all] if hit == all => "100".to_owned(),
            [hit, all] => format!("{:.1}", (hit as f64 / all as f64 * 1_000.0).floor() / 10.0),
        }
    }
}

/// Were all its requests sent without asking for a reply?
pub(crate) fn is_unacknowledged(summary: &OpSummary) -> bool {
    summary.requests.outcome(OutcomeClass::Unacknowledged) > 0 && summary.latency.response.summary.count == 0
}

/// The rows that are shown, at most `rows_max` below the first: classes of several operations give way first, then all but the busiest.
fn lines(summary: &Summary, rows_max: usize) -> Vec<Line<'_>> {
    let mut rows = rows(summary);
    if rows.len() > rows_max + 1 {
        rows.retain(|row| !row.is_of_class());
    }
    if rows.len() <= rows_max + 1 {
        return rows.iter().map(Line::of).collect();
    }
    let (first, others) = rows.split_at(1);
    if rows_max < 2 {
        // All others as one would repeat the first.
        return first.iter().map(Line::of).collect();
    }
    let mut by_rate: Vec<usize> = (0..others.len()).collect();
    // Stable: of those that are as busy, the first.
    by_rate.sort_by(|one, other| {
        others[*other].summary.rate.completed.total_cmp(&others[*one].summary.rate.completed)
    });
    let (busiest, rest) = by_rate.split_at(rows_max - 1);
    let mut busiest = busiest.to_vec();
    busiest.sort_unstable();
    let rest: Vec<Row<'_>> = rest.iter().map(|index| others[*index]).collect();
    let shown = first.iter().chain(busiest.iter().map(|index| &others[*index])).map(Line::of);
    shown.chain([Line::merged(&rest, &summary.record.plan.quantiles())]).collect()
}

/// Is there no state whose percentiles could be bounded, since the backlog grows?
pub(crate) fn is_unbounded(summary: &Summary) -> bool {
    summary.status.status_of(CheckId::Load) > CheckStatus::Ok
}

/// A column of times for each percentile, with their bounds: the interval, and of the first row the client's part.
fn figures(lines: &[Line<'_>], quantiles: &[Quantile], has_bounds: impl Fn(usize) -> bool) -> Vec<Figures> {
    let column = |quantile: &Quantile| {
        let times_ns: Vec<Option<u64>> =
            lines.iter().map(|line| line.response.percentile_ns(*quantile)).collect();
        let bounds = |(index, line): (usize, &Line<'_>)| {
            let row = line.row.filter(|_| has_bounds(index)).map(|row| row.summary);
            let Some((value_ns, summary)) = times_ns[index].zip(row) else { return Vec::new() };
            let mut bounds = vec![interval(summary, *quantile, value_ns)];
            if index == 0 {
                bounds.push(summary.client_error_ns(*quantile).map_or(Bound::Unknown, Bound::Within));
            }
            bounds
        };
        Figures { bounds: lines.iter().enumerate().map(bounds).collect(), times_ns }
    };
    quantiles.iter().map(column).collect()
}

/// How far the farther end of a percentile's interval lies from it.
pub(crate) fn interval(summary: &OpSummary, quantile: Quantile, value_ns: u64) -> Bound {
    let ends = summary.interval(quantile).map(|interval| (interval.low_ns, interval.high_ns));
    Bound::of_interval(value_ns, ends)
}

/// The table; where more percentiles are asked for than fit beside each other, several in one unit.
pub(crate) fn grids(summary: &Summary, layout: &Layout, room: Room) -> Vec<Grid> {
    let mut lines = lines(summary, room.rows);
    let names: Vec<String> = lines.iter().map(|line| line.name.clone()).collect();
    lines.iter_mut().zip(row::cut(&names)).for_each(|(line, name)| line.name = layout.in_characters(&name));
    let quantiles = summary.record.plan.shown_quantiles();
    let is_unbounded = is_unbounded(summary);
    let has_bounds = |index: usize| !is_unbounded && (index == 0 || room.has_bounds_by_row);
    let figures = figures(&lines, &quantiles, has_bounds);
    let max = Figures::of_times(lines.iter().map(|line| line.response.max_ns));
    let all: Vec<Figures> = figures.iter().cloned().chain([max.clone()]).collect();
    let unit = layout.unit.unwrap_or_else(|| unit_of(&all));
    let max = max.texts(unit).times;
    let texts: Vec<Texts> = figures.iter().map(|column| column.texts(unit)).collect();
    let has_hits = lines.iter().any(|line| line.hits[1] > 0);
    let parts = quantiles.chunks(QUANTILES_MAX).zip(texts.chunks(QUANTILES_MAX)).enumerate();
    let grid = |(place, (quantiles, texts)): (usize, (&[Quantile], &[Texts]))| {
        let mut grid = Grid::new(columns(unit, quantiles, place == 0, has_hits));
        for (index, line) in lines.iter().enumerate() {
            let style = if index == 0 { Style::Bold } else { Style::Plain };
            let mut row = vec![Cell::new(line.name.clone(), style)];
            row.extend(texts.iter().map(|column| Cell::new(column.times[index].clone(), style)));
            if place == 0 {
                let failed = if line.failed > 0 { Style::Bad } else { style };
                row.push(Cell::new(max[index].clone(), style));
                row.push(Cell::new(line.done.map_or("-".to_owned(), rate), style));
                if has_hits {
                    row.push(Cell::new(line.hit_percent(), style));
                }
                row.push(Cell::new(line.failed.to_string(), failed));
            }
            grid.push(row);
            let bounds: Vec<&[String]> = texts.iter().map(|column| column.bounds[index].as_slice()).collect();
            qualify(&mut grid, layout, &summary.client_basis().label(), &bounds);
        }
        grid
    };
    parts.map(grid).collect()
}

/// The columns of a table; a narrow terminal loses the hits, then p90, then p99.99, then what failed.
fn columns(unit: TimeUnit, quantiles: &[Quantile], is_first: bool, has_hits: bool) -> Vec<Column> {
    let mut columns = vec![Column::of_words(format!("response/{unit}"), 11)];
    for (index, quantile) in quantiles.iter().enumerate() {
        let column = Column::of_numbers(quantile.to_string(), if index == 0 { 9 } else { 8 });
        columns.push(match *quantile {
            Quantile::P90 => column.lost_as(1),
            Quantile::P9999 => column.lost_as(2),
            _ => column,
        });
    }
    if is_first {
        columns.push(Column::of_numbers("max", 8));
        columns.push(Column::of_numbers("done/s", 10));
        columns.extend(has_hits.then(|| Column::of_numbers("hit%", 6).lost_as(0)));
        columns.push(Column::of_numbers("failed", 8).lost_as(3));
    }
    columns
}

/// The rows that bound the one above them.
fn qualify(grid: &mut Grid, layout: &Layout, client: &str, bounds: &[&[String]]) {
    let names = [format!("  {}95%CI", layout.plus_minus()), format!("  {client}")];
    for (index, name) in names.into_iter().enumerate() {
        let cells = bounds.iter().map_while(|bounds| bounds.get(index));
        push_if_any(grid, name, cells.map(|cell| Cell::new(cell.clone(), Style::Dim)).collect());
    }
}

/// A row with its name, without the cells at its end that say nothing; none where all are such.
fn push_if_any(grid: &mut Grid, name: String, mut cells: Vec<Cell>) {
    while cells.last().is_some_and(|cell| cell.is("-")) {
        cells.pop();
    }
    if !cells.is_empty() {
        grid.push([vec![Cell::new(name, Style::Dim)], cells].concat());
    }
}

/// The percentiles that are known, and the longest: `p50 88.1 us, p99 1.21 ms, max 2.00 ms`.
pub(crate) fn times_text(times: &LatencySummary) -> Option<String> {
    let known = [("p50", times.p50_ns()), ("p99", times.p99_ns()), ("max", times.max_ns)];
    let known = known.into_iter().filter_map(|(name, ns)| Some(format!("{name} {}", quantity::time(ns?))));
    times.max_ns.map(|_| known.collect::<Vec<_>>().join(", "))
}

/// A rate as a number of a table: whole, but where that is less than three digits.
pub(crate) fn rate(per_second: f64) -> String {
    match per_second {
        none if none <= 0.0 => "0".to_owned(),
        few if few < 99.95 => {
            let decimals = if few < 9.995 { 2 } else { 1 };
            format!("{few:.decimals$}")
        }
        many => format!("{many:.0}"),
    }
}
