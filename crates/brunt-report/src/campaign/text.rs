//! The report of a campaign in about twenty lines: a table with a row for each setting, step or repetition, what was found, a status.
//!
//! Not the reports of its runs (JSON has every one). Invariants: times of a table have one unit; a cell holds no blank.

use super::details::{at_text, is_undecided, spoiled_text};
use super::{
    Campaign, CampaignResult, PercentileEstimate, QUANTILES, RunRow, ScanPoint, SpreadRow, limit_met,
    limits_passed, wanted,
};
use crate::bar_scale::BarScale;
use crate::figure::{Bound, Figures, Texts, unit_of};
use crate::grid::{Cell, Column, Grid, cells};
use crate::layout::{Layout, Style, TimeUnit};
use crate::page::Page;
use crate::quantity;
use crate::reasons::each_once;
use crate::text::head::Labelled;
use crate::text::latency::rate;
use brunt_plan::objective::Objective;
use brunt_plan::quantile::Quantile;
use brunt_plan::sweep::SweepPoint;
use brunt_stats::capacity::{Capacity, StepResult};
use brunt_stats::knee::Knee;
use brunt_stats::repeat::Spread;
use std::io::{self, Write};

/// Rows of a table; the others are in the details.
const ROWS_MAX: usize = 16;
/// Characters of the longest bar of a curve.
const BAR_MAX: f64 = 10.0;

/// Writes the report.
///
/// # Errors
/// What `out` returns.
pub fn write(campaign: &Campaign, layout: &Layout, out: &mut dyn Write) -> io::Result<()> {
    out.write_all(report(campaign, layout).as_bytes())
}

fn report(campaign: &Campaign, layout: &Layout) -> String {
    let mut page = Page::new(layout);
    page.facts(campaign.finding.kind(), &title(campaign));
    campaign.head.short.iter().for_each(|(label, facts)| page.facts(label, facts));
    page.separate();
    match &campaign.finding {
        CampaignResult::Scan { option, points, knee, .. } => {
            scan_table(&mut page, campaign, option, points, *knee);
            page.separate();
            findings(campaign).iter().for_each(|(label, facts)| page.facts(label, facts));
        }
        CampaignResult::Search { objectives, capacity, .. } => {
            search_table(&mut page, campaign, objectives);
            search_finding(&mut page, campaign, objectives, capacity.as_ref());
        }
        CampaignResult::Repeat { compared } => repetitions(&mut page, campaign, compared),
    }
    if campaign.interrupted {
        page.facts("interrupted", &["partial results: not all runs were made".to_owned()]);
    }
    crate::text::conclusion::status(&mut page, &campaign.status);
    page.into_text()
}

pub(super) fn title(campaign: &Campaign) -> Vec<String> {
    let counts = campaign.counts();
    let found_by =
        |rate_found: &Option<f64>| rate_found.map(|found| format!("closed-loop maximum {}/s", rate(found)));
    match &campaign.finding {
        CampaignResult::Scan { option, closed_loop, .. } => {
            [format!("over {option}, {counts}")].into_iter().chain(found_by(closed_loop)).collect()
        }
        CampaignResult::Search { objectives, closed_loop, .. } => {
            let title = format!("for the highest rate with {}, {counts}", wanted(objectives));
            [title].into_iter().chain(found_by(closed_loop)).collect()
        }
        CampaignResult::Repeat { .. } => vec![format!("{counts} of one plan")],
    }
}

/// Times of a run, in nanoseconds: the percentiles of the table, how far the interval of the p99 goes, and the client's part of the p99.
struct RowTimes {
    percentiles: Vec<Option<u64>>,
    bounds: [Bound; 2],
}

impl RowTimes {
    fn of_run(run: &RunRow, quantiles: &[Quantile]) -> Self {
        let value = |quantile: &Quantile| run.percentile(*quantile).map(|found| found.value_ns);
        let client = run.client_error_ns.map_or(Bound::Unknown, Bound::Within);
        let interval = run
            .percentile(Quantile::P99)
            .map_or(Bound::Unknown, |found| Bound::of_interval(found.value_ns, found.interval_ns));
        let is_bounded = run.limit.is_none();
        let bounds = if is_bounded { [interval, client] } else { [Bound::Unknown; 2] };
        Self { percentiles: quantiles.iter().map(value).collect(), bounds }
    }

    /// Of several runs of one setting: medians, the range of the p99, and the largest part of the client.
    fn of_runs(runs: &[&RunRow], p99: Option<&Spread>, quantiles: &[Quantile]) -> Self {
        let median = |quantile: &Quantile| {
            if let (Quantile::P99, Some(spread)) = (*quantile, p99) {
                return Some(spread.median.round() as u64);
            }
            let found = runs.iter().map(|run| run.percentile(*quantile).map(|found| found.value_ns));
            let mut found = found.collect::<Option<Vec<u64>>>()?;
            found.sort_unstable();
            found.get(found.len() / 2).copied()
        };
        let range =
            p99.map(|spread| (spread.max - spread.median).max(spread.median - spread.min).round() as u64);
        let client = runs.iter().filter_map(|run| run.client_error_ns).max();
        let bound = |ns: Option<u64>| ns.map_or(Bound::Unknown, Bound::Within);
        Self { percentiles: quantiles.iter().map(median).collect(), bounds: [bound(range), bound(client)] }
    }
}

/// The cells of rows of times, in one unit for all of them.
fn time_cells(rows: &[RowTimes], quantiles: &[Quantile], layout: &Layout) -> (TimeUnit, Vec<Vec<String>>) {
    let bounds = |quantile: &Quantile| match *quantile {
        Quantile::P99 => rows.iter().map(|row| row.bounds.into()).collect(),
        _ => Vec::new(),
    };
    let columns: Vec<Figures> = (0..)
        .zip(quantiles)
        .map(|(place, quantile): (usize, _)| Figures {
            times_ns: rows.iter().map(|row| row.percentiles[place]).collect(),
            bounds: bounds(quantile),
        })
        .collect();
    let unit = layout.unit.unwrap_or_else(|| unit_of(&columns));
    let texts: Vec<Texts> = columns.iter().map(|column| column.texts(unit)).collect();
    let row = |place: usize| {
        let (mut cells, mut client) = (Vec::new(), String::new());
        for column in &texts {
            cells.push(column.times[place].clone());
            if let Some([interval, of_client]) = column.bounds.get(place).map(Vec::as_slice) {
                cells.push(interval.clone());
                client.clone_from(of_client);
            }
        }
        cells.push(client);
        cells
    };
    (unit, (0..rows.len()).map(row).collect())
}

/// The columns of such cells. A narrow terminal loses the highest percentiles first, never the first one and the p99.
fn time_columns(unit: TimeUnit, quantiles: &[Quantile], spread: &str, client: &str) -> Vec<Column> {
    let mut columns = Vec::new();
    for (place, quantile) in quantiles.iter().enumerate() {
        let heading = format!("{quantile}/{unit}");
        let usual = (heading.len() + 2).max(8);
        let column = Column::of_numbers(heading, usual);
        columns.push(match *quantile {
            Quantile::P99 => column,
            _ if place == 0 => column,
            _ => column.lost_as((quantiles.len() - place) as u8),
        });
        columns.extend((*quantile == Quantile::P99).then(|| Column::of_numbers(spread, 8)));
    }
    columns.push(Column::of_numbers(client, 10).lost_as(u8::MAX));
    columns
}

/// A run in a word: whose limit it met, else its status.
pub(super) fn word(run: &RunRow) -> (String, Style) {
    if run.interrupted {
        return ("cut-short".to_owned(), Style::Doubt);
    }
    let word = run.limit.map_or(run.status.status.name(), |limit| limit.name()).to_owned();
    (word, crate::text::conclusion::style(run.status.status))
}

pub(super) fn setting_text(setting: SweepPoint) -> String {
    match setting {
        SweepPoint::Rate(value) => rate(value.as_f64()),
        SweepPoint::Connections(count) | SweepPoint::Depth(count) => count.0.to_string(),
        SweepPoint::ValueSize(size) => size.to_string(),
    }
}

/// Which rows of a long table are shown: all, or some at equal distances, and those that must be.
fn shown(count: usize, musts: &[usize]) -> Vec<usize> {
    let step = count.div_ceil(ROWS_MAX.saturating_sub(musts.len()).max(1)).max(1);
    let is_shown = |index: &usize| count <= ROWS_MAX || index.is_multiple_of(step) || musts.contains(index);
    (0..count).filter(is_shown).collect()
}

fn scan_table(
    page: &mut Page<'_>,
    campaign: &Campaign,
    option: &str,
    points: &[ScanPoint],
    knee: Option<Knee>,
) {
    let runs_of =
        |point: &ScanPoint| point.runs.iter().map(|index| &campaign.runs[*index]).collect::<Vec<_>>();
    let is_repeated = points.iter().any(|point| point.runs.len() > 1);
    let quantiles = campaign.head.quantiles();
    let times = |point: &ScanPoint| match runs_of(point).as_slice() {
        [only] => RowTimes::of_run(only, &quantiles),
        runs => RowTimes::of_runs(runs, point.p99.as_ref(), &quantiles),
    };
    let limit = limit_met(&campaign.runs, points).map(|(point, _)| point.setting);
    let mut musts: Vec<usize> = match knee {
        Some(Knee::At(index)) => vec![index],
        _ => Vec::new(),
    };
    musts.extend(points.iter().position(|point| Some(point.setting) == limit));
    let rows = shown(points.len(), &musts);
    let (unit, texts) = time_cells(
        &rows.iter().map(|index| times(&points[*index])).collect::<Vec<_>>(),
        &quantiles,
        page.layout,
    );
    let range = format!("{}range", page.layout.plus_minus());
    let interval = format!("{}95%CI", page.layout.plus_minus());
    let mut columns = vec![
        Column::of_words(if option == "rate" { "rate/s" } else { option }, 9),
        Column::of_numbers("done/s", 8),
    ];
    let client = RunRow::client_basis_of(&campaign.runs).label();
    columns.extend(time_columns(unit, &quantiles, if is_repeated { &range } else { &interval }, &client));
    columns.push(Column::of_words("trust", 7));
    columns.push(Column::of_words("p99,log", 8).lost_as(u8::MAX));
    let medians_ns = points.iter().map(|point| point.p99.map(|spread| spread.median.round() as u64));
    let medians_ns: Vec<Option<u64>> = medians_ns.collect();
    let scale = BarScale::of(&medians_ns);
    let bar = |ns: u64| {
        let length = 1.0 + scale.map_or(0.0, |scale| scale.part(ns)) * (BAR_MAX - 1.0);
        "#".repeat(length.round() as usize)
    };
    let mut grid = Grid::new(columns);
    for (index, texts) in rows.iter().zip(texts) {
        let point = &points[*index];
        let runs = runs_of(point);
        let mut done: Vec<f64> = runs.iter().map(|run| run.completed).collect();
        done.sort_by(f64::total_cmp);
        let is_knee = knee == Some(Knee::At(*index));
        let style = if is_knee { Style::Bold } else { Style::Plain };
        let done = done.get(done.len() / 2).copied().map_or("-".to_owned(), rate);
        let mut row = cells([setting_text(point.setting), done].into_iter().chain(texts), style);
        let worst = runs.iter().max_by_key(|run| (run.limit.is_some(), run.status.status));
        let (word, word_style) = worst.map_or(("-".to_owned(), Style::Plain), |run| word(run));
        row.push(Cell::new(word, word_style));
        let knee = if is_knee { "<-knee" } else { "" };
        row.push(Cell::new(format!("{}{knee}", medians_ns[*index].map_or(String::new(), bar)), style));
        grid.push(row);
    }
    page.grid(&grid);
    others(page, points.len() - rows.len(), "loads");
}

fn others(page: &mut Page<'_>, count: usize, things: &str) {
    if count > 0 {
        page.prose("", 0, &format!("+{count} {things} between these: --details"), Style::Plain);
    }
}

/// Knee and limit of a scan, or what a search found: labels and facts.
pub(crate) fn findings(campaign: &Campaign) -> Vec<Labelled> {
    match &campaign.finding {
        CampaignResult::Scan { points, knee, .. } => scan_findings(campaign, points, *knee),
        CampaignResult::Search { objectives, capacity: Some(capacity), .. } => {
            let found = capacity_text(campaign, capacity, &wanted(objectives));
            vec![("capacity".to_owned(), vec![found])]
        }
        CampaignResult::Search { .. } | CampaignResult::Repeat { .. } => Vec::new(),
    }
}

fn scan_findings(campaign: &Campaign, points: &[ScanPoint], knee: Option<Knee>) -> Vec<Labelled> {
    let knee = match knee {
        Some(Knee::At(index)) => {
            let at = at(points[index].setting);
            Some(format!("{at}: beyond it latency grows faster than throughput"))
        }
        Some(Knee::Beyond) => {
            Some("beyond the highest load: throughput still grew faster than latency".to_owned())
        }
        Some(Knee::Unknown) => Some(campaign.no_curve_text(points)),
        None => None,
    };
    let mut facts = vec![match limit_met(&campaign.runs, points) {
        Some((point, run)) => limit(run, &at(point.setting)),
        None if campaign.interrupted => "none met so far".to_owned(),
        None => "none met: neither the server nor the client was at its end".to_owned(),
    }];
    let passed = limits_passed(&campaign.runs, points);
    if !passed.is_empty() {
        facts.push(spoiled_text(&passed, at));
    }
    let knee = knee.map(|knee| ("knee".to_owned(), vec![knee]));
    knee.into_iter().chain([("limit".to_owned(), facts)]).collect()
}

/// A setting in a sentence, without grouping of digits.
fn at(setting: SweepPoint) -> String {
    match setting {
        SweepPoint::Rate(value) => format!("{}/s", rate(value.as_f64())),
        _ => at_text(setting),
    }
}

/// Whose limit a run met: `the server, at 180000/s: SAT`.
fn limit(run: &RunRow, at: &str) -> String {
    super::limit_sentence(run).map_or(format!("at {at}"), |sentence| format!("at {at}: {sentence}"))
}

fn search_table(page: &mut Page<'_>, campaign: &Campaign, objectives: &[Objective]) {
    // Of a rate that was measured again the step that counts.
    let last = campaign.runs.iter().enumerate().filter(|(index, _)| !campaign.is_discarded(*index));
    let steps: Vec<&RunRow> = last.map(|(_, run)| run).filter(|run| run.step.is_some()).collect();
    let skipped = steps.len().saturating_sub(ROWS_MAX);
    let steps = &steps[skipped..];
    let found = |run: &RunRow, place: usize| {
        run.step.as_ref().and_then(|(_, found)| found.get(place).copied().flatten())
    };
    // By objective its value; of the first one also both ends of the interval.
    let of = |place: usize, of: fn(PercentileEstimate) -> Option<u64>| {
        Figures::of_times(steps.iter().map(|run| found(run, place).and_then(of)))
    };
    let low = of(0, |found| found.interval_ns.map(|(low_ns, _)| low_ns));
    let high = of(0, |found| found.interval_ns.and_then(|(_, high_ns)| high_ns));
    let mut times: Vec<Figures> =
        (0..objectives.len()).map(|place| of(place, |found| Some(found.value_ns))).collect();
    times.splice(1..1, [low, high]);
    let p99_ns = |run: &&RunRow| run.percentile(Quantile::P99).map(|found| found.value_ns);
    let client = |run: &&RunRow| vec![run.client_error_ns.map_or(Bound::Unknown, Bound::Within)];
    let client =
        Figures { times_ns: steps.iter().map(p99_ns).collect(), bounds: steps.iter().map(client).collect() };
    let all = [times.clone(), vec![client.clone()]].concat();
    let unit = page.layout.unit.unwrap_or_else(|| unit_of(&all));
    let client = client.texts(unit).bounds;
    let mut columns = vec![Column::of_words("rate/s", 9), Column::of_numbers("time/s", 8)];
    for (place, objective) in objectives.iter().enumerate() {
        columns.push(Column::of_numbers(format!("{}/{unit}", objective.subject), 9));
        if place == 0 {
            columns.extend([Column::of_numbers("95%low", 8), Column::of_numbers("95%high", 9)]);
        }
    }
    let client_label = RunRow::client_basis_of(steps.iter().copied()).label();
    columns.extend([Column::of_numbers(client_label, 10), Column::of_words("step", 6)]);
    let texts: Vec<_> = times.iter().map(|column| column.texts(unit).times).collect();
    let mut grid = Grid::new(columns);
    for (place, run) in steps.iter().enumerate() {
        let Some((end, _)) = &run.step else { continue };
        let is_open =
            found(run, 0).and_then(|found| found.interval_ns).is_some_and(|(_, high_ns)| high_ns.is_none());
        let mut row = vec![run.setting.map_or("-".to_owned(), setting_text)];
        row.push(quantity::significant(run.duration_ns as f64 / TimeUnit::S.ns()));
        row.extend(texts.iter().enumerate().map(|(column, texts)| match column {
            2 if is_open => "open".to_owned(),
            _ => texts[place].clone(),
        }));
        row.push(client[place].concat());
        let (step, style) = match (run.interrupted, end) {
            (true, _) => ("cut-short", Style::Doubt),
            (false, StepResult::Passed) => (end.name(), Style::Good),
            (false, _) => (end.name(), Style::Plain),
        };
        let limit = run.limit.as_ref().map(|limit| format!(":{}", limit.name())).unwrap_or_default();
        let mut row = cells(row, Style::Plain);
        row.push(Cell::new(format!("{}{limit}", step.replace(' ', "-")), style));
        grid.push(row);
    }
    page.grid(&grid);
    if skipped > 0 {
        page.prose("", 0, &format!("+{skipped} steps before these: --details"), Style::Plain);
    }
}

fn search_finding(
    page: &mut Page<'_>,
    campaign: &Campaign,
    objectives: &[Objective],
    capacity: Option<&Capacity>,
) {
    page.separate();
    let Some(capacity) = capacity else { return };
    page.facts("capacity", &[capacity_text(campaign, capacity, &wanted(objectives))]);
    let Some(above) = capacity.not_passed() else { return };
    let Some(run) = campaign.step_at(above) else { return };
    let at = format!("{}/s", rate(above));
    page.facts(
        "limit",
        &[match (&run.limit, &run.step) {
            (Some(_), _) => limit(run, &at),
            (None, Some((StepResult::Undecided, _))) => {
                format!("none shown: undecided at {at} -> --max-time")
            }
            (None, _) => format!("the objective, at {at}: server and client could do more"),
        }],
    );
}

fn capacity_text(campaign: &Campaign, capacity: &Capacity, wanted: &str) -> String {
    match *capacity {
        Capacity::Between { passed, failed } => {
            let how = if is_undecided(campaign, failed) { "is undecided" } else { "does not" };
            let apart = quantity::significant(100.0 * (failed - passed) / failed);
            format!("{}/s meets {wanted}, {}/s {how} ({apart} % apart)", rate(passed), rate(failed))
        }
        Capacity::AtLeast { passed } => {
            format!("at least {}/s: the highest rate tried meets {wanted} -> raise --to", rate(passed))
        }
        Capacity::Below { failed } => {
            format!("below {}/s: the lowest rate tried does not meet {wanted} -> lower --from", rate(failed))
        }
        Capacity::Undecided { at } => {
            format!("undecided: {}/s, the lowest rate, needs more time -> --max-time", rate(at))
        }
        Capacity::ClientLimited { at, passed: Some(passed) } => {
            format!("at least {}/s meets {wanted}: the client is the limit at {}/s", rate(passed), rate(at))
        }
        Capacity::ClientLimited { at, passed: None } => {
            format!("undecided: the client is the limit at {}/s", rate(at))
        }
        Capacity::Broken { at, .. } => format!("undecided: the step at {}/s is BROKEN", rate(at)),
    }
}

fn repetitions(page: &mut Page<'_>, campaign: &Campaign, compared: &[SpreadRow]) {
    let rows = shown(campaign.runs.len(), &[]);
    let runs: Vec<&RunRow> = rows.iter().map(|index| &campaign.runs[*index]).collect();
    let quantiles = campaign.head.quantiles();
    let mut times: Vec<RowTimes> = runs.iter().map(|run| RowTimes::of_run(run, &quantiles)).collect();
    type Of = fn(&Spread) -> f64;
    let summaries: [(&str, Of); 3] =
        [("median", |spread| spread.median), ("min", |spread| spread.min), ("max", |spread| spread.max)];
    let spread_of = |name: &str| compared.iter().find(|held| held.name == name).map(|held| held.spread);
    let has_spread = compared.first().is_some_and(|first| first.spread.runs > 1);
    for (_, of) in summaries.iter().filter(|_| has_spread) {
        let value = |quantile: &Quantile| Some(of(&spread_of(&quantile.key())?).round() as u64);
        let percentiles = quantiles.iter().map(value).collect();
        times.push(RowTimes { percentiles, bounds: [Bound::Unknown; 2] });
    }
    let (unit, texts) = time_cells(&times, &quantiles, page.layout);
    let mut columns = vec![Column::of_words("run", 7), Column::of_numbers("done/s", 10)];
    let client = RunRow::client_basis_of(&campaign.runs).label();
    let interval = format!("{}95%CI", page.layout.plus_minus());
    columns.extend(time_columns(unit, &quantiles, &interval, &client));
    columns.push(Column::of_words("trust", 7));
    let mut grid = Grid::new(columns);
    let (of_runs, of_spread) = texts.split_at(runs.len());
    for (run, texts) in runs.iter().zip(of_runs) {
        let head = [run.repetition.to_string(), rate(run.completed)];
        let mut row = cells(head.into_iter().chain(texts.clone()), Style::Plain);
        let (word, style) = word(run);
        row.push(Cell::new(word, style));
        grid.push(row);
    }
    for ((name, of), texts) in summaries.iter().zip(of_spread) {
        let done = spread_of("completed_per_s").map_or("-".to_owned(), |spread| rate(of(&spread)));
        let style = if *name == "median" { Style::Bold } else { Style::Plain };
        // The client's part is of runs.
        let times = texts.iter().take(texts.len() - 1).cloned();
        grid.push_texts([(*name).to_owned(), done].into_iter().chain(times), style);
    }
    page.grid(&grid);
    others(page, campaign.runs.len() - rows.len(), "runs");
    page.separate();
    if let Some(first) = compared.first().filter(|_| has_spread) {
        let ranges = compared.iter().map(|SpreadRow { name, spread }| {
            let quantile = quantiles.iter().find(|quantile| quantile.key() == *name);
            let name = quantile.map_or("done/s".to_owned(), ToString::to_string);
            format!("{name} {} %", quantity::significant(100.0 * spread.relative_range()))
        });
        page.facts("range", &[ranges.collect::<Vec<_>>().join(", ")]);
        let covered = quantity::significant(100.0 * first.spread.coverage());
        page.facts("confidence", &[format!("min and max bracket the median with {covered} %")]);
    }
}

/// What the campaign as a whole comes to.
pub(crate) fn headline(campaign: &Campaign) -> Vec<String> {
    vec![campaign.status.headline()]
}

/// The keys of `--brief` for a scan.
pub(crate) fn brief_of_scan(campaign: &Campaign, points: &[ScanPoint], knee: Option<Knee>) -> String {
    let knee = match knee {
        Some(Knee::At(index)) => setting_text(points[index].setting),
        _ => "-".to_owned(),
    };
    let limit = limit_met(&campaign.runs, points).and_then(|(point, run)| {
        let limit = run.limit.as_ref()?;
        Some((setting_text(point.setting), limit.name(), super::checks_of(run).join(",")))
    });
    let (at, whose, why) = limit.unwrap_or_else(|| ("-".to_owned(), "-", "-".to_owned()));
    format!("knee={knee} limit={at} limited_by={whose} why={why}")
}

/// The keys of `--brief` for a search.
pub(crate) fn brief_of_search(campaign: &Campaign, capacity: Option<Capacity>) -> String {
    let (meets, fails) = match capacity.unwrap_or(Capacity::Undecided { at: 0.0 }) {
        Capacity::Between { passed, failed } => (Some(passed), Some(failed)),
        Capacity::AtLeast { passed } => (Some(passed), None),
        Capacity::Below { failed } => (None, Some(failed)),
        Capacity::ClientLimited { passed, .. } => (passed, None),
        Capacity::Undecided { .. } | Capacity::Broken { .. } => (None, None),
    };
    let text = |value: Option<f64>| value.map_or("-".to_owned(), |value| format!("{}/s", rate(value)));
    let limit = campaign.runs.iter().rev().find_map(|run| Some(run.limit?.name().to_owned()));
    let of_step = |run: &RunRow| match run.step.as_ref()?.0 {
        StepResult::Passed => None,
        end => Some(end.name().replace(' ', "-")),
    };
    let why = limit.or_else(|| campaign.runs.last().and_then(of_step));
    format!("capacity={} fails={} why={}", text(meets), text(fails), why.unwrap_or_else(|| "-".to_owned()))
}

/// The keys of `--brief` for repetitions: medians with half ranges.
pub(crate) fn brief_of_repetitions(campaign: &Campaign, compared: &[SpreadRow], layout: &Layout) -> String {
    let columns: Vec<Figures> = QUANTILES
        .iter()
        .map(|quantile| {
            let spread = compared.iter().find(|held| held.name == quantile.key()).map(|held| held.spread);
            let whole = |value: f64| value.round() as u64;
            Figures {
                times_ns: vec![spread.map(|spread| whole(spread.median))],
                bounds: vec![vec![spread.map_or(Bound::Unknown, |spread| {
                    Bound::Within(whole((spread.max - spread.median).max(spread.median - spread.min)))
                })]],
            }
        })
        .collect();
    let unit = layout.unit.unwrap_or_else(|| unit_of(&columns));
    let done = compared.iter().find(|held| held.name == "completed_per_s");
    let done = done.map_or("-".to_owned(), |held| format!("{}/s", rate(held.spread.median)));
    let failed: u64 = campaign.runs.iter().map(|run| run.failed).sum();
    let reasons = each_once(campaign.runs.iter().flat_map(super::checks_of));
    let why = if reasons.is_empty() { "-".to_owned() } else { reasons.join(",") };
    let [p50, p99, p999] = [0, 1, 2].map(|index| columns[index].first_text(unit));
    format!("rate={done} p50={p50} p99={p99} p99.9={p999} failed={failed} why={why}")
}
