//! The one table: response times of every row in one unit, with rates and failures, and below the first row what qualifies it; in a long report
//! more of each row.
//!
//! Invariants: a cell holds no blank, no unit and no grouping of digits; cells are missing at the end of a row only.

use crate::document::Document;
use crate::figure::{Bound, Figures, Texts, unit_of};
use crate::grid::{Cell, Column, Grid, cells};
use crate::layout::{Layout, Style, TimeUnit};
use crate::quantity::{self, rate};
use crate::row::{self, Row, rows};
use brunt_plan::outcome::OutcomeClass;
use brunt_plan::quantile::Quantile;
use brunt_stats::check::{CheckId, CheckStatus};
use brunt_stats::client_basis::ClientBasis;
use brunt_stats::histogram::Histogram;
use brunt_stats::latency::LatencySummary;
use brunt_stats::op_summary::{Distribution, OpSummary};
use brunt_stats::percentile_mark::PercentileMark;
use brunt_stats::summary::Summary;

/// Percentiles beside each other.
const QUANTILES_MAX: usize = 6;
/// The narrowest column of times.
const TIME_WIDTH: usize = 7;
const NAME_WIDTH: usize = 13;

/// Which rows of operations the table has.
#[derive(Clone, Copy, Debug)]
pub struct OpRows {
    /// How many below the first row; of more the least busy are one.
    pub rows_max: usize,
    /// The operation that stands below the first row, counted from 1 and around; 0: none is moved.
    pub first: usize,
    /// The first row has its bounds below it.
    pub has_bounds: bool,
}

impl Default for OpRows {
    /// Those of a report.
    fn default() -> Self {
        Self { rows_max: 6, first: 0, has_bounds: true }
    }
}

/// One row of the table.
struct Line<'a> {
    name: String,
    response: LatencySummary,
    /// `None` of several operations as one.
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

    /// A percentile: `<=` stands before an upper limit.
    fn time(&self, summary: &Summary, quantile: Quantile, text: &str, style: Style) -> Cell {
        let mark = self.row.map(|row| row.summary.mark(quantile, summary.status.judgement.is_strict));
        match mark {
            Some(PercentileMark::UpperLimit) => Cell::new(format!("<={text}"), Style::Doubt),
            _ => Cell::new(text, style),
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

/// The ends of a percentile's interval.
pub(crate) fn interval(summary: &OpSummary, quantile: Quantile) -> [Bound; 2] {
    match summary.interval(quantile) {
        None => [Bound::Unknown; 2],
        Some(held) => [Bound::Low(held.low_ns), held.high_ns.map_or(Bound::Open, Bound::High)],
    }
}

/// What stands below the first row: the name of each row, and the bound of each percentile.
fn qualifying(summary: &Summary, of: &OpSummary, quantile: Quantile) -> [Bound; 3] {
    if is_unbounded(summary) || of.latency.response.summary.percentile_ns(quantile).is_none() {
        return [Bound::Unknown; 3];
    }
    let [low, high] = interval(of, quantile);
    [low, high, of.client_error_ns(quantile).map_or(Bound::Unknown, Bound::High)]
}

fn qualifying_names(summary: &Summary) -> [&'static str; 3] {
    let client = match summary.client_basis() {
        ClientBasis::Clock => "  client <=",
        ClientBasis::Timestamps | ClientBasis::Incomplete => "  client ~",
    };
    ["  95% low", "  95% high", client]
}

/// The table; where more percentiles are asked for than fit beside each other, several in one unit.
pub(crate) fn tables(summary: &Summary, layout: &Layout, rows: OpRows) -> Vec<Grid> {
    let mut lines = lines(summary, rows.rows_max);
    if rows.first > 0 && lines.len() > 1 {
        let place = 1 + (rows.first - 1) % (lines.len() - 1);
        lines[1..=place].rotate_right(1);
    }
    let names: Vec<String> = lines.iter().map(|line| line.name.clone()).collect();
    lines.iter_mut().zip(row::cut(&names)).for_each(|(line, name)| line.name = name);
    let quantiles = summary.record.plan.shown_quantiles();
    let column = |quantile: &Quantile| Figures {
        times_ns: lines.iter().map(|line| line.response.percentile_ns(*quantile)).collect(),
        bounds: vec![
            qualifying(summary, lines[0].row.map_or(&summary.total, |row| row.summary), *quantile).into(),
        ],
    };
    let columns: Vec<Figures> = quantiles.iter().map(column).collect();
    let max = Figures::of_times(lines.iter().map(|line| line.response.max_ns));
    let unit = layout.unit.unwrap_or_else(|| unit_of(columns.iter().chain([&max])));
    let (max, texts) =
        (max.texts(unit).times, columns.iter().map(|column| column.texts(unit)).collect::<Vec<_>>());
    let has_hits = lines.iter().any(|line| line.hits[1] > 0);
    let parts = quantiles.chunks(QUANTILES_MAX).zip(texts.chunks(QUANTILES_MAX)).enumerate();
    let grid = |(place, (quantiles, texts)): (usize, (&[Quantile], &[Texts]))| {
        let mut grid = Grid::new(headings(unit, quantiles, place == 0, has_hits));
        for (index, line) in lines.iter().enumerate() {
            let style = if index == 0 { Style::Bold } else { Style::Plain };
            let mut row = vec![Cell::new(line.name.clone(), style)];
            let times = quantiles
                .iter()
                .zip(texts)
                .map(|(quantile, column)| line.time(summary, *quantile, &column.times[index], style));
            row.extend(times);
            if place == 0 {
                let failed = if line.failed > 0 { Style::Bad } else { style };
                row.push(Cell::new(max[index].clone(), style));
                row.push(Cell::new(line.done.map_or("-".to_owned(), rate), style));
                row.extend(
                    has_hits.then(|| Cell::new(quantity::exact_percent(line.hits[0], line.hits[1]), style)),
                );
                row.push(Cell::new(line.failed.to_string(), failed));
            }
            grid.push(row);
            if index == 0 && rows.has_bounds {
                qualify(&mut grid, &qualifying_names(summary), texts, 0);
            }
        }
        grid
    };
    parts.map(grid).collect()
}

/// The columns of a table; a narrow terminal loses p90, then p99.99, then what failed.
fn headings(unit: TimeUnit, quantiles: &[Quantile], is_first: bool, has_hits: bool) -> Vec<Column> {
    let mut columns = vec![Column::of_words(format!("response, {unit}"), NAME_WIDTH)];
    columns.extend(quantiles.iter().map(|quantile| {
        let column = Column::spaced(quantile.to_string(), TIME_WIDTH);
        match *quantile {
            Quantile::P90 => column.lost_as(0),
            Quantile::P9999 => column.lost_as(1),
            _ => column,
        }
    }));
    if is_first {
        columns.extend([Column::spaced("max", TIME_WIDTH), Column::spaced("done/s", 0)]);
        columns.extend(has_hits.then(|| Column::spaced("hit%", 0)));
        columns.push(Column::spaced("failed", 0).lost_as(2));
    }
    columns
}

/// The rows that qualify the one above them, the figure of this place in each column; none where all cells say nothing.
fn qualify(grid: &mut Grid, names: &[&str], texts: &[Texts], place: usize) {
    for (index, name) in names.iter().enumerate() {
        push_if_any(grid, name, texts.iter().map(|column| column.bounds[place][index].clone()));
    }
}

/// A row without the cells at its end that say nothing; none where all are such.
fn push_if_any(grid: &mut Grid, name: &str, texts: impl Iterator<Item = String>) {
    let mut row: Vec<String> = [name.to_owned()].into_iter().chain(texts).collect();
    while row.last().is_some_and(|cell| cell == "-") {
        row.pop();
    }
    if row.len() > 1 {
        grid.push(cells(row, Style::Dim));
    }
}

// ---- the part of a long report ----------------------------------------------------------------------------------------

/// Of every row all its percentiles and moments, and how much longer a run must be for those that are not given.
pub(super) fn part(document: &mut Document, summary: &Summary, layout: &Layout) {
    document.heading("latency");
    let rows = rows(summary);
    let names: Vec<String> = rows.iter().map(|row| row.name('.')).collect();
    let rows: Vec<(String, &OpSummary)> =
        row::cut(&names).into_iter().zip(rows.iter().map(|row| row.summary)).collect();
    let quantiles = all_quantiles(summary);
    for quantiles in quantiles.chunks(QUANTILES_MAX) {
        document.table(percentiles(summary, layout, &rows, quantiles));
        document.gap();
    }
    let mut moments = Vec::new();
    for (name, of) in rows.iter().filter(|(_, of)| of.latency.response.summary.count > 0) {
        let kinds = [
            (name.as_str(), &of.latency.response),
            ("  service", &of.latency.service),
            ("  send lag", &of.latency.send_lag),
        ];
        for (name, Distribution { summary: times, .. }) in kinds {
            let [mean, sd] = [times.mean_ns, times.stddev_ns].map(|ns| ns.map(|ns| ns.round() as u64));
            moments.push((name.to_owned(), vec![times.min_ns, mean, sd, times.max_ns]));
        }
    }
    document.table(times_table("moments", &["min", "mean", "sd", "max"], moments, layout));
    let wanting: Vec<String> = rows.iter().flat_map(|(name, of)| wanting(summary, name, of)).collect();
    document.facts("run longer", wanting);
    let silent = rows.iter().filter(|(_, of)| is_unacknowledged(of)).map(|(name, _)| name.as_str());
    let silent: Vec<&str> = silent.collect();
    if !silent.is_empty() {
        let text = format!("{}: no reply was requested, so there is no response time", silent.join(", "));
        document.facts("noreply", vec![text]);
    }
}

/// Those of the table, and the usual ones.
fn all_quantiles(summary: &Summary) -> Vec<Quantile> {
    let mut quantiles = [&Quantile::PRINTED[..], &summary.record.plan.percentiles].concat();
    quantiles.sort_unstable();
    quantiles.dedup();
    quantiles
}

fn percentiles(
    summary: &Summary,
    layout: &Layout,
    rows: &[(String, &OpSummary)],
    quantiles: &[Quantile],
) -> Grid {
    let cells_of = |times: &LatencySummary| {
        let given = quantiles.iter().map(|quantile| times.percentile_ns(*quantile));
        given.chain([times.max_ns]).collect::<Vec<_>>()
    };
    let mut names = Vec::new();
    let mut columns = vec![Figures::default(); quantiles.len() + 1];
    let mut push = |name: &str, times: &LatencySummary, bounds: Vec<Vec<Bound>>| {
        if name.starts_with(' ') && times.count == 0 {
            return;
        }
        names.push(name.to_owned());
        for (index, (column, ns)) in columns.iter_mut().zip(cells_of(times)).enumerate() {
            column.times_ns.push(ns);
            column.bounds.push(bounds.get(index).cloned().unwrap_or_default());
        }
    };
    for (name, row) in rows {
        let bounds = quantiles.iter().map(|quantile| qualifying(summary, row, *quantile).into()).collect();
        push(name, &row.latency.response.summary, bounds);
        push("  service", &row.latency.service.summary, Vec::new());
        push("  send lag", &row.latency.send_lag.summary, Vec::new());
        if row.latency.failed.summary.count > 0 {
            push("  with failed", &row.including_failures(), Vec::new());
        }
    }
    let unit = layout.unit.unwrap_or_else(|| unit_of(&columns));
    let texts: Vec<Texts> = columns.iter().map(|column| column.texts(unit)).collect();
    let mut headings = headings(unit, quantiles, false, false);
    headings.push(Column::spaced("max", TIME_WIDTH));
    let mut grid = Grid::new(headings);
    for (place, name) in names.iter().enumerate() {
        let style = if name.starts_with(' ') { Style::Dim } else { Style::Plain };
        let times = texts.iter().map(|column| column.times[place].clone());
        grid.push(cells([name.clone()].into_iter().chain(times), style));
        if !name.starts_with(' ') {
            qualify(&mut grid, &qualifying_names(summary), &texts[..quantiles.len()], place);
        }
    }
    grid
}

/// For every percentile that is not given, how much longer the run must be at the rate it had, or where it had none, how many more requests
/// it takes.
fn wanting(summary: &Summary, name: &str, of: &OpSummary) -> Vec<String> {
    let shown = summary.record.plan.shown_quantiles();
    let held = of.latency.response.summary.percentiles.iter();
    let missing = held.filter(|held| held.value_ns.is_none() && shown.contains(&held.quantile));
    let missing = missing.filter(|_| !is_unacknowledged(of));
    missing
        .map(|held| match of.rate.completed {
            0.0 => format!("{name} {}: {} more requests", held.quantile, held.needs_more),
            rate => {
                let ns = (held.needs_more as f64 / rate * 1e9) as u64;
                format!("{name} {}: {}", held.quantile, quantity::time(ns))
            }
        })
        .collect()
}

/// Times in one unit, which stands behind the name of the table; a row for each name.
pub(super) fn times_table(
    corner: &str,
    headings: &[&str],
    rows: Vec<(String, Vec<Option<u64>>)>,
    layout: &Layout,
) -> Grid {
    let column = |index: usize| Figures::of_times(rows.iter().map(|(_, times_ns)| times_ns[index]));
    let columns: Vec<Figures> = (0..headings.len()).map(column).collect();
    let unit = layout.unit.unwrap_or_else(|| unit_of(&columns));
    let texts: Vec<Texts> = columns.iter().map(|column| column.texts(unit)).collect();
    let mut grid = Grid::new(
        [Column::of_words(format!("{corner}, {unit}"), NAME_WIDTH)]
            .into_iter()
            .chain(headings.iter().map(|heading| Column::spaced(*heading, TIME_WIDTH)))
            .collect(),
    );
    for (place, (name, _)) in rows.into_iter().enumerate() {
        let style = if name.starts_with(' ') { Style::Dim } else { Style::Plain };
        grid.push(cells(
            [name].into_iter().chain(texts.iter().map(|column| column.times[place].clone())),
            style,
        ));
    }
    grid
}
