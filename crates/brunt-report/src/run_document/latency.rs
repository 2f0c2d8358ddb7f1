//! The one table: response times of every row in one unit, with rates and failures, and below the first row what qualifies it; in a long report
//! more of each row.
//!
//! Invariants: a cell holds no blank, no unit and no grouping of digits; cells are missing at the end of a row only.

use crate::document::Document;
use crate::figure::{Bound, Figures, Texts, unit_of};
use crate::grid::{Cell, Column, Grid, TimeTable, Value, cells};
use crate::layout::{Layout, Style, TimeUnit};
use crate::quantity::{self, rate};
use brunt_plan::outcome::OutcomeClass;
use brunt_plan::quantile::Quantile;
use brunt_stats::check::{CheckId, CheckStatus};
use brunt_stats::histogram::Histogram;
use brunt_stats::latency::LatencySummary;
use brunt_stats::op_summary::{Distribution, OpRow, OpSummary, PercentileMark};
use brunt_stats::stack_delay::ClientBasis;
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
    /// Do rows below it say how far its percentiles can be trusted?
    is_qualified: bool,
    /// Other times of the same requests, which rows below it have.
    parts: Vec<(&'static str, LatencySummary)>,
}

impl<'a> Line<'a> {
    fn of(row: &Row<'a>) -> Self {
        let OpSummary { latency, rate, requests, keys, .. } = row.summary;
        Self {
            is_qualified: false,
            parts: Vec::new(),
            name: row.name('.'),
            response: latency.response.summary.clone(),
            row: Some(*row),
            done: (!is_unacknowledged(row.summary)).then_some(rate.completed),
            hits: [keys.hit, keys.hit + keys.miss],
            failed: requests.failed() + requests.abandoned,
        }
    }

    /// With all that is known of its times.
    fn in_full(row: &Row<'a>) -> Self {
        let latency = &row.summary.latency;
        let mut parts = vec![
            ("  service", latency.service.summary.clone()),
            ("  send lag", latency.send_lag.summary.clone()),
        ];
        if latency.failed.summary.count > 0 {
            parts.push(("  with failed", row.summary.including_failures()));
        }
        Self { is_qualified: true, parts, ..Self::of(row) }
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
            is_qualified: false,
            parts: Vec::new(),
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

/// The table of a short report; where more percentiles are asked for than fit beside each other, several in one unit.
pub(crate) fn tables(summary: &Summary, layout: &Layout, rows: OpRows) -> Vec<Grid> {
    let mut lines = lines(summary, rows.rows_max);
    if rows.first > 0 && lines.len() > 1 {
        let place = 1 + (rows.first - 1) % (lines.len() - 1);
        lines[1..=place].rotate_right(1);
    }
    lines[0].is_qualified = rows.has_bounds;
    grids(summary, layout, lines, &summary.record.plan.shown_quantiles())
}

/// The same with all rows, and below each of them all that is known of its times.
pub(crate) fn full_tables(summary: &Summary, layout: &Layout, quantiles: &[Quantile]) -> Vec<Grid> {
    grids(summary, layout, rows(summary).iter().map(Line::in_full).collect(), quantiles)
}

fn grids(summary: &Summary, layout: &Layout, mut lines: Vec<Line<'_>>, quantiles: &[Quantile]) -> Vec<Grid> {
    let names: Vec<String> = lines.iter().map(|line| line.name.clone()).collect();
    lines.iter_mut().zip(cut(&names)).for_each(|(line, name)| line.name = name);
    let times = || {
        lines.iter().flat_map(|line| {
            [(line, &line.response)].into_iter().chain(line.parts.iter().map(move |(_, times)| (line, times)))
        })
    };
    let bounds = |(line, times): (&Line<'_>, &LatencySummary), quantile| {
        let is_qualified = line.is_qualified && std::ptr::eq(times, &line.response);
        let of = line.row.map_or(&summary.total, |row| row.summary);
        if is_qualified { qualifying(summary, of, quantile).into() } else { Vec::new() }
    };
    let column = |quantile: &Quantile| Figures {
        times_ns: times().map(|(_, times)| times.percentile_ns(*quantile)).collect(),
        bounds: times().map(|held| bounds(held, *quantile)).collect(),
    };
    let columns: Vec<Figures> = quantiles.iter().map(column).collect();
    let max = Figures::of_times(times().map(|(_, times)| times.max_ns));
    let unit = layout.unit.unwrap_or_else(|| unit_of(columns.iter().chain([&max])));
    let (max, texts) =
        (max.texts(unit).times, columns.iter().map(|column| column.texts(unit)).collect::<Vec<_>>());
    let has_hits = lines.iter().any(|line| line.hits[1] > 0);
    let parts = quantiles.chunks(QUANTILES_MAX).zip(texts.chunks(QUANTILES_MAX)).enumerate();
    let grid = |(chunk, (quantiles, texts)): (usize, (&[Quantile], &[Texts]))| {
        let max: Option<&[String]> = (chunk == 0).then_some(&max);
        let mut grid = Grid::new(headings(unit, quantiles, max.is_some(), has_hits));
        let mut place = 0;
        for (index, line) in lines.iter().enumerate() {
            let style = if index == 0 { Style::Bold } else { Style::Plain };
            let mut row = vec![Cell::new(line.name.clone(), style)];
            let times = quantiles.iter().zip(texts);
            row.extend(
                times.map(|(quantile, column)| line.time(summary, *quantile, &column.times[place], style)),
            );
            if let Some(max) = max {
                let failed = if line.failed > 0 { Style::Bad } else { style };
                row.push(Cell::new(max[place].clone(), style));
                row.push(Cell::new(line.done.map_or("-".to_owned(), rate), style));
                row.extend(
                    has_hits.then(|| Cell::new(quantity::exact_percent(line.hits[0], line.hits[1]), style)),
                );
                row.push(Cell::new(line.failed.to_string(), failed));
            }
            grid.push(row);
            for (index, name) in qualifying_names(summary).iter().enumerate().filter(|_| line.is_qualified) {
                push_if_any(&mut grid, name, texts.iter().map(|column| column.bounds[place][index].clone()));
            }
            for (name, _) in &line.parts {
                place += 1;
                let times = texts.iter().map(|column| &column.times[place]);
                push_if_any(&mut grid, name, times.chain(max.map(|max| &max[place])).cloned());
            }
            place += 1;
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
        cut(&names).into_iter().zip(rows.iter().map(|row| row.summary)).collect();
    for grid in full_tables(summary, layout, &all_quantiles(summary)) {
        document.table(grid);
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
pub(crate) fn times_table(
    corner: &str,
    headings: &[&str],
    rows: Vec<(String, Vec<Option<u64>>)>,
    layout: &Layout,
) -> Grid {
    let times = headings.iter().map(|heading| Column::spaced(*heading, TIME_WIDTH));
    let corner = Column::of_words(corner, NAME_WIDTH).with_unit(", ");
    let mut table = TimeTable::new([corner].into_iter().chain(times).collect());
    for (name, times_ns) in rows {
        let style = if name.starts_with(' ') { Style::Dim } else { Style::Plain };
        table.push(
            style,
            [Value::Text(name)].into_iter().chain(times_ns.into_iter().map(Value::Time)).collect(),
        );
    }
    table.grid(layout.unit)
}

/// The row of all requests.
pub(crate) const ALL: &str = "all";

/// One row.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Row<'a> {
    /// Its class, where there are several.
    class: Option<&'a str>,
    /// Its operation; `None` for all of a class.
    op: Option<&'a str>,
    pub(crate) summary: &'a OpSummary,
}

impl Row<'_> {
    /// Its name, with this between class and operation.
    pub(crate) fn name(&self, between: char) -> String {
        match (self.class, self.op) {
            (Some(class), Some(op)) => format!("{class}{between}{op}"),
            (Some(name), None) | (None, Some(name)) => name.to_owned(),
            (None, None) => ALL.to_owned(),
        }
    }

    /// Is it that of several operations of one class?
    pub(crate) const fn is_of_class(&self) -> bool {
        self.class.is_some() && self.op.is_none()
    }
}

/// The longest name of a row. Five percentiles with their intervals and the maximum fit beside it.
const NAME_MAX: usize = 25;

/// Names no longer than a table has room for, each of them another.
pub(crate) fn cut(names: &[String]) -> Vec<String> {
    let mut cut: Vec<String> = Vec::new();
    for name in names {
        let (mut short, mut number) = (cut_at(name, NAME_MAX, ""), 1);
        while cut.contains(&short) {
            number += 1;
            short = cut_at(name, NAME_MAX, &number.to_string());
        }
        cut.push(short);
    }
    cut
}

/// The name, or as much of it as there is room for, `…` and this behind it.
fn cut_at(name: &str, room: usize, behind: &str) -> String {
    if name.chars().count() <= room && behind.is_empty() {
        return name.to_owned();
    }
    let kept = room.saturating_sub(behind.len() + 1);
    format!("{}…{behind}", name.chars().take(kept).collect::<String>())
}

/// All requests; then, where there are several, every class and every op, of traces those that were there. What would repeat a row is left out.
pub(crate) fn rows(summary: &Summary) -> Vec<Row<'_>> {
    let has_classes = summary.classes.len() > 1;
    let mut rows = Vec::new();
    for (class, planned) in summary.classes.iter().zip(&summary.record.plan.classes) {
        let name = has_classes.then_some(class.name.as_str());
        if has_classes && class.ops.len() != 1 {
            rows.push(Row { class: name, op: None, summary: &class.total });
        }
        let is_shown = |op: &&OpRow| planned.trace.is_none() || op.summary.requests.scheduled > 0;
        rows.extend(class.ops.iter().filter(is_shown).map(|op| Row {
            class: name,
            op: Some(op.name.as_str()),
            summary: &op.summary,
        }));
    }
    if rows.len() != 1 {
        rows.insert(0, Row { class: None, op: None, summary: &summary.total });
    }
    rows
}

#[cfg(test)]
mod tests {

    #[test]
    fn long_names_are_cut_and_stay_apart() {
        let long = "HSET-into-a-hash-with-many-fields";
        let names = ["all", long, "HSET-into-a-hash-with-many-members", "exactly-as-long-as-is-fit"];
        let cut = super::cut(&names.map(str::to_owned));
        assert_eq!(
            cut,
            ["all", "HSET-into-a-hash-with-ma…", "HSET-into-a-hash-with-m…2", "exactly-as-long-as-is-fit"]
        );
    }
}
