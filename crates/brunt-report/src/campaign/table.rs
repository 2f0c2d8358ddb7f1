//! The tables of a campaign: its answer, with a row for each setting, rate or repetition; and every run, for details and page.
//!
//! Text, details and page have the same rows. Invariants: times of a table have one unit; rows of settings and rates ascend.

use super::conclusion::asserted_of;
use super::{Campaign, CampaignQuestion, RunPurpose, RunRow, ScanPoint};
use crate::grid::{Column, Grid, TimeTable, Value};
use crate::layout::BarScale;
use crate::layout::{Layout, Style, TimeUnit};
use crate::quantity::{self, rate};
use crate::run_document::conclusion;
use brunt_plan::objective::Metric;
use brunt_plan::quantile::Quantile;
use brunt_plan::sweep::SweepPoint;
use brunt_stats::assertion::{Assertion, Reached};
use brunt_stats::bound::Decision;
use brunt_stats::capacity_search::StepResult;
use brunt_stats::median::Spread;
use brunt_stats::rate_scan::Knee;

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

/// The columns of percentiles; behind the p99 those of the ends of its interval.
fn time_columns(quantiles: &[Quantile], ends: [&'static str; 2]) -> impl Iterator<Item = Column> {
    quantiles.iter().flat_map(move |quantile| {
        let ends = ends.into_iter().filter(move |_| *quantile == Quantile::P99);
        let percentile = Column::of_numbers(quantile.to_string(), 9).with_unit(",");
        [percentile].into_iter().chain(ends.map(|end| Column::of_numbers(end, 9).sharing_decimals()))
    })
}

/// Their values in a row.
fn times(
    quantiles: &[Quantile],
    percentile: impl Fn(Quantile) -> Value,
    ends: [Value; 2],
) -> impl Iterator<Item = Value> {
    quantiles.iter().flat_map(move |quantile| {
        let ends = ends.clone().into_iter().filter(move |_| *quantile == Quantile::P99);
        [percentile(*quantile)].into_iter().chain(ends)
    })
}

/// The percentiles of runs of one setting, as their medians, which are upper limits where that of one of them is; with the interval of a single
/// p99, or the range of several.
fn times_of(runs: &[&RunRow], quantiles: &[Quantile]) -> impl Iterator<Item = Value> {
    let spread = move |quantile: Quantile| {
        Spread::of(&runs.iter().filter_map(|run| run.estimate(quantile)).collect::<Vec<_>>())
    };
    let value = move |quantile: Quantile| match spread(quantile).map(|spread| whole(spread.median)) {
        Some(ns) if runs.iter().any(|run| run.upper_limits.contains(&quantile)) => Value::UpperLimit(ns),
        ns => Value::Time(ns),
    };
    let ends = match runs {
        // Latencies of an overload grow for as long as it lasts.
        [run] => run.percentile(Quantile::P99).filter(|_| !run.is_limited).and_then(|found| {
            let (low_ns, high_ns) = found.interval_ns?;
            Some([Value::Time(Some(low_ns)), high_ns.map_or(Value::Open, |ns| Value::Time(Some(ns)))])
        }),
        _ => spread(Quantile::P99)
            .map(|spread| [spread.min, spread.max].map(|ns| Value::Time(Some(whole(ns))))),
    };
    times(quantiles, value, ends.unwrap_or([UNKNOWN, UNKNOWN]))
}

/// A time that is not known.
const UNKNOWN: Value = Value::Time(None);

fn whole(ns: f64) -> u64 {
    ns.round() as u64
}

/// The status of a run in a word.
pub(crate) fn status_word(run: &RunRow) -> (&'static str, Style) {
    match run.is_interrupted() {
        true => ("cut-short", Style::Doubt),
        false => (run.status().status.name(), conclusion::style(run.status().status)),
    }
}

fn status(run: &RunRow) -> Value {
    let (word, style) = status_word(run);
    Value::Styled(word.to_owned(), style)
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
    let option = option_heading(campaign.question.varied().unwrap_or_default());
    let mut columns = vec![Column::of_words(option, 9), Column::of_numbers("done/s", 8)];
    columns.extend(time_columns(&quantiles, ends));
    columns.extend([Column::of_words("status", 8), Column::of_words("p99,log", 8).lost_as(u8::MAX)]);
    let medians_ns: Vec<Option<u64>> =
        points.iter().map(|point| point.p99.map(|spread| whole(spread.median))).collect();
    let scale = BarScale::of(&medians_ns);
    let bar = |ns: u64| {
        let length = 1.0 + scale.map_or(0.0, |scale| scale.part(ns)) * (BAR_MAX - 1.0);
        "#".repeat(length.round() as usize)
    };
    let mut table = TimeTable::new(columns);
    for index in &rows {
        let of_point = of_point(&points[*index]);
        let mut done: Vec<f64> = of_point.iter().map(|run| run.completed()).collect();
        done.sort_by(f64::total_cmp);
        let done = done.get(done.len() / 2).copied().map_or("-".to_owned(), rate);
        let mut row = vec![Value::Text(setting_text(points[*index].setting)), Value::Text(done)];
        row.extend(times_of(&of_point, &quantiles));
        let worst = of_point.iter().max_by_key(|run| (run.is_limited, run.status().status));
        row.push(worst.map_or(UNKNOWN, |run| status(run)));
        let is_knee = knee == Some(*index);
        let mark = if is_knee { "  <- knee" } else { "" };
        row.push(Value::Text(format!("{}{mark}", medians_ns[*index].map_or(String::new(), bar))));
        table.push(if is_knee { Style::Bold } else { Style::Plain }, row);
    }
    (table.grid(layout.unit), points.len() - rows.len())
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
        [run] if run.is_interrupted() => ("cut-short".to_owned(), Style::Doubt),
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
    let mut columns = vec![Column::of_words("rate/s", 9), Column::of_numbers("time,s", 7)];
    let subjects = objectives.iter().map(|held| held.objective.subject.to_string());
    columns.extend(subjects.map(|subject| Column::of_numbers(subject, 9).with_unit(",")));
    // The client's part is no count of requests.
    let has_counts =
        objectives.iter().any(|held| !matches!(held.objective.subject.metric, Metric::Client(_)));
    let counts = ["reached%", "allowed%"].map(|heading| Column::of_numbers(heading, 10));
    columns.extend(counts.into_iter().filter(|_| has_counts));
    columns.push(Column::of_words("step", 6));
    let mut table = TimeTable::new(columns);
    for index in &rows {
        let runs = &rates[*index];
        let time_ns: u64 = runs.iter().map(|run| run.result.window.duration_ns).sum();
        let together: Vec<Option<Assertion>> =
            (0..objectives.len()).map(|place| asserted_of(runs.iter().copied(), place)).collect();
        let measured_ns = together.iter().map(|held| Some(held.as_ref()?.measured? as u64));
        let mut row = vec![
            Value::Text(runs[0].place.setting.map_or("-".to_owned(), setting_text)),
            Value::Text(format!("{:.1}", time_ns as f64 / TimeUnit::S.ns())),
        ];
        row.extend(measured_ns.map(Value::Time));
        let counts = reached_cells(together.iter().flatten()).map(Value::Text);
        row.extend(counts.into_iter().filter(|_| has_counts));
        let (step, style) = step_text(runs);
        row.push(Value::Styled(step, style));
        table.push(Style::Plain, row);
    }
    (table.grid(layout.unit), rates.len() - rows.len())
}

/// Which part of the requests reached the bound and which may, of the objective that is closest to failing.
fn reached_cells<'a>(assertions: impl Iterator<Item = &'a Assertion>) -> [String; 2] {
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
    let quantiles = campaign.quantiles();
    let mut columns = vec![Column::of_words("run", 7), Column::of_numbers("done/s", 10)];
    columns.extend(time_columns(&quantiles, ["95%low", "95%high"]));
    columns.push(Column::of_words("status", 8));
    let mut table = TimeTable::new(columns);
    for run in rows.iter().map(|index| &campaign.runs[*index]) {
        let mut row = vec![Value::Text(run.place.repetition.to_string()), Value::Text(rate(run.completed()))];
        row.extend(times_of(&[run], &quantiles));
        row.push(status(run));
        table.push(Style::Plain, row);
    }
    type Of = fn(Spread) -> f64;
    let summaries: [(&str, Style, Of); 3] = [
        ("median", Style::Bold, |spread| spread.median),
        ("min", Style::Plain, |spread| spread.min),
        ("max", Style::Plain, |spread| spread.max),
    ];
    let has_spread = campaign.compared.first().is_some_and(|(_, spread)| spread.runs > 1);
    for (name, style, of) in summaries.into_iter().filter(|_| has_spread) {
        let done = campaign.spread("completed_per_s").map_or("-".to_owned(), |spread| rate(of(spread)));
        let time = |quantile: Quantile| {
            Value::Time(campaign.spread(&quantile.to_string()).map(|held| whole(of(held))))
        };
        let row = [Value::Text(name.to_owned()), Value::Text(done)];
        table.push(style, row.into_iter().chain(times(&quantiles, time, [UNKNOWN, UNKNOWN])).collect());
    }
    (table.grid(layout.unit), campaign.runs.len() - rows.len())
}

/// Every run in the order in which they were made, with what the answer leaves out.
pub(super) fn runs(campaign: &Campaign, layout: &Layout) -> Grid {
    let quantiles = campaign.quantiles();
    let varied = campaign.question.varied();
    let mut columns = vec![Column::of_words("run", 5)];
    columns.extend(varied.map(|option| Column::of_numbers(option_heading(option), 8)));
    columns.push(Column::of_numbers("done/s", 8));
    columns.extend(time_columns(&quantiles, ["95%low", "95%high"]));
    let client = RunRow::client_basis_of(&campaign.runs).label().replace(' ', "");
    let costs = [client.as_str(), "CPU", "server"];
    columns.extend(costs.map(|heading| Column::of_numbers(heading, 7).with_unit(",")));
    columns.extend([Column::of_numbers("failed", 7), Column::of_numbers("seed", 8)]);
    columns.push(Column::of_words("status", 8));
    let mut table = TimeTable::new(columns);
    for (index, run) in campaign.runs.iter().enumerate() {
        let mut row = vec![Value::Text((index + 1).to_string())];
        row.extend(varied.map(|_| Value::Text(run.place.setting.map_or("-".to_owned(), setting_text))));
        row.push(Value::Text(rate(run.completed())));
        row.extend(times_of(&[run], &quantiles));
        let costs_ns = [
            run.client_error_ns(),
            run.result.client_cpu_ns().map(whole),
            run.result.server_cpu_ns().map(whole),
        ];
        row.extend(costs_ns.map(Value::Time));
        let others = [run.failed().to_string(), run.seed.to_string(), finding(campaign, index)];
        row.extend(others.map(Value::Text));
        table.push(Style::Plain, row);
    }
    table.grid(layout.unit)
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
