//! The tables of a campaign: its answer, with a row for each setting, rate or repetition; and every run, for details and page.
//!
//! Text, details and page have the same rows. Invariants: times of a table have one unit; rows of settings and rates ascend.

use super::{Campaign, CampaignQuestion, PercentileEstimate, RunPurpose, RunRow, ScanPoint};
use crate::bar_scale::BarScale;
use crate::figure::{Figures, unit_of};
use crate::grid::{Cell, Column, Grid, cells};
use crate::layout::{Layout, Style, TimeUnit};
use crate::quantity;
use crate::text::conclusion;
use crate::text::latency::rate;
use brunt_plan::quantile::Quantile;
use brunt_plan::sweep::SweepPoint;
use brunt_stats::assertion::{Assertion, Reached};
use brunt_stats::bound::Decision;
use brunt_stats::capacity::StepResult;
use brunt_stats::knee::Knee;
use brunt_stats::repeat::Spread;

/// Rows of a table; the others are in the details.
const ROWS_MAX: usize = 16;
/// Characters of the longest bar of a curve.
const BAR_MAX: f64 = 10.0;

/// A table, and how many rows of it are left out.
pub(super) type Shown = (Grid, usize);

/// The answer of a campaign.
pub(super) fn answer(campaign: &Campaign, layout: &Layout) -> Shown {
    match campaign.question {
        CampaignQuestion::Scan { .. } => scan(campaign, layout),
        CampaignQuestion::Search { .. } => search(campaign, layout),
        CampaignQuestion::Repeat { .. } => repetitions(campaign, layout),
    }
}

/// Times of a row: the percentiles of the table, then the ends of the interval of the p99.
struct Times {
    percentiles: Vec<Option<u64>>,
    /// Which of them are upper limits.
    limits: Vec<bool>,
    ends: [End; 2],
}

/// The end of an interval: known, without a bound, or not known.
#[derive(Clone, Copy)]
enum End {
    At(u64),
    Open,
    Unknown,
}

impl Times {
    fn of_run(run: &RunRow, quantiles: &[Quantile]) -> Self {
        let value = |quantile: &Quantile| run.percentile(*quantile).map(|found| found.value_ns);
        // Latencies of an overload grow for as long as it lasts.
        let interval = run.percentile(Quantile::P99).filter(|_| !run.is_limited);
        let ends = match interval.and_then(|found| found.interval_ns) {
            Some((low_ns, high_ns)) => [End::At(low_ns), high_ns.map_or(End::Open, End::At)],
            None => [End::Unknown; 2],
        };
        let limits = quantiles.iter().map(|quantile| is_upper_limit(&[run], *quantile)).collect();
        Self { percentiles: quantiles.iter().map(value).collect(), limits, ends }
    }

    /// Of several runs of one setting: medians, and the range of the p99.
    fn of_runs(runs: &[&RunRow], quantiles: &[Quantile]) -> Self {
        let spread = |quantile: Quantile| {
            Spread::of(&runs.iter().filter_map(|run| run.estimate(quantile)).collect::<Vec<_>>())
        };
        let median = |quantile: &Quantile| spread(*quantile).map(|spread| whole(spread.median));
        let ends = spread(Quantile::P99).map(|spread| [spread.min, spread.max].map(|ns| End::At(whole(ns))));
        Self {
            percentiles: quantiles.iter().map(median).collect(),
            limits: quantiles.iter().map(|quantile| is_upper_limit(runs, *quantile)).collect(),
            ends: ends.unwrap_or([End::Unknown; 2]),
        }
    }
}

/// Is the percentile of one of these runs an upper limit?
fn is_upper_limit(runs: &[&RunRow], quantile: Quantile) -> bool {
    runs.iter().filter_map(|run| run.percentile(quantile)).any(|found| found.is_upper_limit)
}

fn whole(ns: f64) -> u64 {
    ns.round() as u64
}

/// The columns of times with the cells of each row, in one unit.
fn time_cells(
    rows: &[Times],
    quantiles: &[Quantile],
    ends: [&str; 2],
    layout: &Layout,
) -> (Vec<Column>, Vec<Vec<String>>) {
    let column = |place: usize| rows.iter().map(move |row| row.percentiles[place]);
    let end = |place: usize| {
        rows.iter().map(move |row| match row.ends[place] {
            End::At(ns) => Some(ns),
            End::Open | End::Unknown => None,
        })
    };
    // The ends of the interval have the decimals of the p99.
    let figures: Vec<Figures> = (0..)
        .zip(quantiles)
        .map(|(place, quantile)| match *quantile {
            Quantile::P99 => Figures::of_times(column(place).chain(end(0)).chain(end(1))),
            _ => Figures::of_times(column(place)),
        })
        .collect();
    let unit = layout.unit.unwrap_or_else(|| unit_of(&figures));
    let (mut columns, mut texts) = (Vec::new(), vec![Vec::new(); rows.len()]);
    for (column, (quantile, figures)) in quantiles.iter().zip(&figures).enumerate() {
        columns.push(Column::of_numbers(format!("{quantile},{unit}"), 9));
        let times = figures.texts(unit).times;
        let is_p99 = *quantile == Quantile::P99;
        columns.extend(ends.into_iter().filter(|_| is_p99).map(|end| Column::of_numbers(end, 9)));
        for (index, (row, cells)) in rows.iter().zip(&mut texts).enumerate() {
            let mark = if row.limits.get(column) == Some(&true) { "<=" } else { "" };
            cells.push(format!("{mark}{}", times[index]));
            for (place, end) in (1..).zip(row.ends).filter(|_| is_p99) {
                cells.push(match end {
                    End::Open => "open".to_owned(),
                    End::At(_) | End::Unknown => times[place * rows.len() + index].clone(),
                });
            }
        }
    }
    (columns, texts)
}

/// The status of a run in a word.
pub(super) fn status_word(run: &RunRow) -> (&'static str, Style) {
    match run.interrupted {
        true => ("cut-short", Style::Doubt),
        false => (run.status.status.name(), conclusion::style(run.status.status)),
    }
}

fn status(run: &RunRow) -> Cell {
    let (word, style) = status_word(run);
    Cell::new(word, style)
}

/// A setting as the number of its option.
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

fn option_heading(option: &str) -> &str {
    if option == "rate" { "rate/s" } else { option }
}

fn scan(campaign: &Campaign, layout: &Layout) -> Shown {
    let Campaign { runs, points, knee, .. } = campaign;
    let of_point = |point: &ScanPoint| point.runs.iter().map(|index| &runs[*index]).collect::<Vec<_>>();
    let quantiles = campaign.quantiles();
    let times = |index: &usize| match of_point(&points[*index]).as_slice() {
        [only] => Times::of_run(only, &quantiles),
        several => Times::of_runs(several, &quantiles),
    };
    let knee = match knee {
        Some(Knee::At(index)) => Some(*index),
        _ => None,
    };
    let limit = campaign.limit.as_ref().and_then(|limit| {
        points.iter().position(|point| Some(point.setting) == runs[limit.run].place.setting)
    });
    let rows = shown(points.len(), &knee.into_iter().chain(limit).collect::<Vec<_>>());
    let is_repeated = points.iter().any(|point| point.runs.len() > 1);
    let ends = if is_repeated { ["p99-min", "p99-max"] } else { ["95%low", "95%high"] };
    let (of_times, texts) = time_cells(&rows.iter().map(times).collect::<Vec<_>>(), &quantiles, ends, layout);
    let option = option_heading(campaign.question.varied().unwrap_or_default());
    let mut columns = vec![Column::of_words(option, 9), Column::of_numbers("done/s", 8)];
    columns.extend(of_times);
    columns.extend([Column::of_words("status", 8), Column::of_words("p99,log", 8).lost_as(u8::MAX)]);
    let medians_ns: Vec<Option<u64>> =
        points.iter().map(|point| point.p99.map(|spread| whole(spread.median))).collect();
    let scale = BarScale::of(&medians_ns);
    let bar = |ns: u64| {
        let length = 1.0 + scale.map_or(0.0, |scale| scale.part(ns)) * (BAR_MAX - 1.0);
        "#".repeat(length.round() as usize)
    };
    let mut grid = Grid::new(columns);
    for (index, texts) in rows.iter().zip(texts) {
        let of_point = of_point(&points[*index]);
        let mut done: Vec<f64> = of_point.iter().map(|run| run.completed).collect();
        done.sort_by(f64::total_cmp);
        let style = if knee == Some(*index) { Style::Bold } else { Style::Plain };
        let done = done.get(done.len() / 2).copied().map_or("-".to_owned(), rate);
        let mut row = cells([setting_text(points[*index].setting), done].into_iter().chain(texts), style);
        let worst = of_point.iter().max_by_key(|run| (run.is_limited, run.status.status));
        row.push(worst.map_or(Cell::new("-", Style::Plain), |run| status(run)));
        let mark = if knee == Some(*index) { "  <- knee" } else { "" };
        row.push(Cell::new(format!("{}{mark}", medians_ns[*index].map_or(String::new(), bar)), style));
        grid.push(row);
    }
    (grid, points.len() - rows.len())
}

/// The runs of a search by rate, ascending: of a rate of a pair these, else the last one.
fn rates(campaign: &Campaign) -> Vec<Vec<&RunRow>> {
    let at = |run: &RunRow| run.place.setting.map_or(0.0, |setting| setting.as_f64());
    let mut rates: Vec<Vec<&RunRow>> = Vec::new();
    for run in campaign.runs.iter().filter(|run| !matches!(run.place.purpose, RunPurpose::Connections(_))) {
        match rates.iter_mut().find(|runs| at(runs[0]) == at(run)) {
            Some(runs)
                if run.place.purpose == RunPurpose::Pair && runs[0].place.purpose == RunPurpose::Pair =>
            {
                runs.push(run);
            }
            Some(runs) => *runs = vec![run],
            None => rates.push(vec![run]),
        }
    }
    rates.sort_by(|one, other| at(one[0]).total_cmp(&at(other[0])));
    rates
}

/// What the runs of one rate came to: `holds`, or of a pair `holds, 3 of 3`.
fn step_text(runs: &[&RunRow]) -> (String, Style) {
    let (held, others): (Vec<&RunRow>, Vec<&RunRow>) =
        runs.iter().partition(|run| run.step == StepResult::Holds);
    let is_held = held.len() > others.len();
    let style = if is_held { Style::Good } else { Style::Plain };
    let count = if is_held { held.len() } else { others.len() };
    // Of several that are too much the first says how.
    let word =
        if is_held { StepResult::Holds } else { others.first().map_or(StepResult::Holds, |run| run.step) };
    match runs {
        [run] if run.interrupted => ("cut-short".to_owned(), Style::Doubt),
        [run] if run.place.purpose == RunPurpose::Step => (word.name().to_owned(), style),
        runs => (format!("{}, {count} of {}", word.name(), runs.len()), style),
    }
}

fn search(campaign: &Campaign, layout: &Layout) -> Shown {
    let rates = rates(campaign);
    let answer = campaign.question.capacity();
    let musts = rates.iter().enumerate().filter(|(_, runs)| {
        let at = runs[0].place.setting.map(|setting| setting.as_f64());
        answer.is_some_and(|found| at.is_some() && (at == found.passed() || at == found.not_passed()))
    });
    let rows = shown(rates.len(), &musts.map(|(index, _)| index).collect::<Vec<_>>());
    let objectives: &[Assertion] = campaign.runs.first().map_or(&[], |run| run.assertions.as_slice());
    let together = |runs: &[&RunRow], place: usize| {
        let of_runs: Vec<Assertion> =
            runs.iter().filter_map(|run| run.assertions.get(place).cloned()).collect();
        Assertion::of_runs(&of_runs)
    };
    let measured = |place: usize| {
        let of = |index: &usize| Some(together(&rates[*index], place)?.measured? as u64);
        Figures::of_times(rows.iter().map(of))
    };
    let figures: Vec<Figures> = (0..objectives.len()).map(measured).collect();
    let unit = layout.unit.unwrap_or_else(|| unit_of(&figures));
    let mut columns = vec![Column::of_words("rate/s", 9), Column::of_numbers("time,s", 7)];
    columns.extend(
        objectives.iter().map(|held| Column::of_numbers(format!("{},{unit}", held.objective.subject), 9)),
    );
    columns.extend(["reached%", "allowed%"].map(|heading| Column::of_numbers(heading, 10)));
    columns.push(Column::of_words("step", 6));
    let texts: Vec<Vec<String>> = figures.iter().map(|figures| figures.texts(unit).times).collect();
    let mut grid = Grid::new(columns);
    for (row, index) in rows.iter().enumerate() {
        let runs = &rates[*index];
        let time_ns: u64 = runs.iter().map(|run| run.duration_ns).sum();
        let mut cells_of = vec![
            runs[0].place.setting.map_or("-".to_owned(), setting_text),
            format!("{:.1}", time_ns as f64 / TimeUnit::S.ns()),
        ];
        cells_of.extend(texts.iter().map(|column| column[row].clone()));
        cells_of.extend(reached_cells((0..objectives.len()).filter_map(|place| together(runs, place))));
        let (step, style) = step_text(runs);
        let mut row = cells(cells_of, Style::Plain);
        row.push(Cell::new(step, style));
        grid.push(row);
    }
    (grid, rates.len() - rows.len())
}

/// Which part of the requests reached the bound and which may, of the objective that is closest to failing.
fn reached_cells(assertions: impl Iterator<Item = Assertion>) -> [String; 2] {
    let shares = assertions.filter_map(|assertion| {
        let Reached { requests, allowed, with_client, without_client } = assertion.reached?;
        let reached = if assertion.decision == Decision::Fails { without_client } else { with_client };
        let percent = |count: u64| 100.0 * count as f64 / requests.max(1) as f64;
        let may =
            assertion.objective.subject.percentile().map_or(0.0, |quantile| 100.0 * quantile.share_above());
        Some((reached as f64 / allowed.max(1) as f64, percent(reached), may))
    });
    let closest = shares.max_by(|(one, ..), (other, ..)| one.total_cmp(other));
    closest.map_or(["-", "-"].map(str::to_owned), |(_, reached, may)| {
        [reached, may].map(|percent| match percent {
            0.0 => "0".to_owned(),
            whole if whole.fract().abs() < 1e-9 => format!("{whole:.0}"),
            part => quantity::significant(part),
        })
    })
}

fn repetitions(campaign: &Campaign, layout: &Layout) -> Shown {
    let rows = shown(campaign.runs.len(), &[]);
    let runs: Vec<&RunRow> = rows.iter().map(|index| &campaign.runs[*index]).collect();
    let quantiles = campaign.quantiles();
    let spread_of =
        |name: &str| campaign.compared.iter().find(|held| held.name == name).map(|held| held.spread);
    type Of = fn(&Spread) -> f64;
    let summaries: [(&str, Of); 3] =
        [("median", |spread| spread.median), ("min", |spread| spread.min), ("max", |spread| spread.max)];
    let has_spread = campaign.compared.first().is_some_and(|first| first.spread.runs > 1);
    let summaries = &summaries[..if has_spread { 3 } else { 0 }];
    let of_spread = |of: &Of| Times {
        percentiles: quantiles.iter().map(|quantile| Some(whole(of(&spread_of(&quantile.key())?)))).collect(),
        limits: Vec::new(),
        ends: [End::Unknown; 2],
    };
    let times = runs.iter().map(|run| Times::of_run(run, &quantiles));
    let times: Vec<Times> = times.chain(summaries.iter().map(|(_, of)| of_spread(of))).collect();
    let (of_times, texts) = time_cells(&times, &quantiles, ["95%low", "95%high"], layout);
    let mut columns = vec![Column::of_words("run", 7), Column::of_numbers("done/s", 10)];
    columns.extend(of_times);
    columns.push(Column::of_words("status", 8));
    let mut grid = Grid::new(columns);
    let (of_runs, of_summaries) = texts.split_at(runs.len());
    for (run, texts) in runs.iter().zip(of_runs) {
        let head = [run.place.repetition.to_string(), rate(run.completed)];
        let mut row = cells(head.into_iter().chain(texts.clone()), Style::Plain);
        row.push(status(run));
        grid.push(row);
    }
    for ((name, of), texts) in summaries.iter().zip(of_summaries) {
        let done = spread_of("completed_per_s").map_or("-".to_owned(), |spread| rate(of(&spread)));
        let style = if *name == "median" { Style::Bold } else { Style::Plain };
        grid.push_texts([(*name).to_owned(), done].into_iter().chain(texts.clone()), style);
    }
    (grid, campaign.runs.len() - rows.len())
}

/// Every run in the order in which they were made, with what the answer leaves out.
pub(super) fn runs(campaign: &Campaign, layout: &Layout) -> Grid {
    let quantiles = campaign.quantiles();
    let times: Vec<Times> = campaign.runs.iter().map(|run| Times::of_run(run, &quantiles)).collect();
    let (of_times, texts) = time_cells(&times, &quantiles, ["95%low", "95%high"], layout);
    let client_ns = campaign.runs.iter().map(|run| run.client_error_ns);
    let unit = layout.unit.unwrap_or(TimeUnit::Us);
    let client = Figures::of_times(client_ns).texts(unit).times;
    let mut columns = vec![Column::of_words("run", 5)];
    let varied = campaign.question.varied();
    columns.extend(varied.map(|option| Column::of_numbers(option_heading(option), 8)));
    columns.push(Column::of_numbers("done/s", 8));
    columns.extend(of_times);
    let label = RunRow::client_basis_of(&campaign.runs).label();
    columns.push(Column::of_numbers(format!("{label},{unit}").replace(' ', ""), 9));
    columns.extend(["CPU,us", "server,us", "failed"].map(|heading| Column::of_numbers(heading, 7)));
    columns.push(Column::of_numbers("seed", 8));
    columns.push(Column::of_words("status", 8));
    let mut grid = Grid::new(columns);
    for (index, (run, texts)) in campaign.runs.iter().zip(texts).enumerate() {
        let cpu = |ns: Option<f64>| ns.map_or("-".to_owned(), |ns| quantity::significant(ns / 1e3));
        let mut head = vec![(index + 1).to_string()];
        head.extend(varied.map(|_| run.place.setting.map_or("-".to_owned(), setting_text)));
        head.push(rate(run.completed));
        let mut row = cells(head.into_iter().chain(texts), Style::Plain);
        let costs = [client[index].clone(), cpu(run.cpu_ns), cpu(run.server_cpu_ns)];
        row.extend(cells(
            costs.into_iter().chain([run.failed.to_string(), run.seed.to_string()]),
            Style::Plain,
        ));
        row.push(Cell::new(finding(campaign, index), Style::Plain));
        grid.push(row);
    }
    grid
}

/// What is said of a run in a few words: `OK,holds`.
pub(super) fn finding(campaign: &Campaign, index: usize) -> String {
    let run = &campaign.runs[index];
    let step =
        matches!(campaign.question, CampaignQuestion::Search { .. }).then(|| run.step.name().to_owned());
    let purpose = match run.place.purpose {
        RunPurpose::Step => campaign.is_discarded(index).then(|| "discarded".to_owned()),
        RunPurpose::Pair => Some("pair".to_owned()),
        RunPurpose::Connections(count) => Some(format!("-c={count}")),
    };
    let words = [Some(status_word(run).0.to_owned()), step, purpose];
    words.into_iter().flatten().collect::<Vec<_>>().join(",")
}

/// A percentile with its interval in words: `p99 412 us (401 us to 425 us)`.
pub(super) fn percentile_text((quantile, found): &(Quantile, PercentileEstimate)) -> String {
    let interval = found.interval_ns.map(|(low, high)| {
        let high = high.map_or("open".to_owned(), quantity::time);
        format!(" ({} to {high})", quantity::time(low))
    });
    format!("{quantile} {}{}", quantity::time(found.value_ns), interval.unwrap_or_default())
}
