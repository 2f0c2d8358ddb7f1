//! The report of a campaign that a person reads: a table of its runs, the curve, what was found, and a status.
//!
//! Not the reports of its runs (JSON has every one). At most 110 columns for all but extreme numbers.

use super::{Campaign, CampaignResult, LimitedPoint, PercentileEstimate, RunRow, ScanPoint, SpreadRow};
use crate::paragraph::{self, printable};
use crate::quantity;
use crate::table::Table;
use brunt_plan::objective::Objective;
use brunt_plan::quantile::Quantile;
use brunt_plan::sweep::SweepPoint;
use brunt_stats::capacity::{Capacity, StepResult};
use brunt_stats::knee::Knee;
use brunt_stats::repeat::Spread;
use std::io::{self, Write};

/// Characters of the longest bar of the curve.
const BAR_MAX: usize = 60;
/// Bars begin at 0 as long as the longest is at most this multiple of the shortest; beyond that the short ones would all be alike.
const LINEAR_MAX: f64 = 10.0;

/// Writes the report.
///
/// # Errors
/// What `out` returns.
pub fn write(campaign: &Campaign, out: &mut dyn Write) -> io::Result<()> {
    out.write_all(report(campaign).as_bytes())
}

fn report(campaign: &Campaign) -> String {
    let mut out = String::new();
    paragraph::facts(&mut out, "", &[vec![title(campaign)], campaign.head.load.clone()].concat());
    out.push_str(&campaign.head.lines);
    out.push('\n');
    match &campaign.finding {
        CampaignResult::Scan { option, points, knee, .. } => {
            scan_table(&mut out, campaign, option, points);
            curve(&mut out, points, *knee);
            scan_finding(&mut out, campaign, points, *knee);
        }
        CampaignResult::Search { objectives, capacity, .. } => {
            search_table(&mut out, campaign, objectives);
            search_finding(&mut out, campaign, objectives, capacity.as_ref());
        }
        CampaignResult::Repeat { compared } => {
            repeat_table(&mut out, campaign);
            repeat_finding(&mut out, &campaign.head.quantiles(), compared);
        }
    }
    if campaign.interrupted {
        paragraph::prose(&mut out, "interrupted", "the campaign was ended early: partial results");
    }
    out.push('\n');
    status(&mut out, campaign);
    out
}

fn title(campaign: &Campaign) -> String {
    let runs = campaign.counts();
    match &campaign.finding {
        CampaignResult::Scan { option, closed_loop: None, .. } => format!("scan over {option}, {runs}"),
        CampaignResult::Scan { option, closed_loop: Some(rate), .. } => {
            format!("scan over {option}, {runs}; closed-loop maximum {}/s", rate_text(*rate))
        }
        CampaignResult::Search { objectives, .. } => {
            format!("search for the highest rate with {}, {runs}", super::wanted(objectives))
        }
        CampaignResult::Repeat { .. } if campaign.interrupted => runs,
        CampaignResult::Repeat { .. } => format!("{} repetitions", campaign.runs.len()),
    }
}

fn rate_text(rate: f64) -> String {
    if rate < 100.0 { quantity::significant(rate) } else { (rate.round() as u64).to_string() }
}

fn setting_text(setting: SweepPoint) -> String {
    match setting {
        SweepPoint::Rate(rate) => rate_text(rate.as_f64()),
        SweepPoint::Connections(count) | SweepPoint::Depth(count) => count.0.to_string(),
        SweepPoint::ValueSize(size) => size.to_string(),
    }
}

/// A setting as a phrase within a sentence.
pub(super) fn at_text(setting: SweepPoint) -> String {
    let number = setting_text(setting);
    match setting {
        SweepPoint::Rate(_) => format!("{number}/s"),
        SweepPoint::Connections(count) => quantity::things(count.0, "connection"),
        SweepPoint::Depth(_) => format!("depth {number}"),
        SweepPoint::ValueSize(_) => number,
    }
}

/// A percentile with its interval in its own unit: `412 us [401..425]`; `~` where that rests on too little.
fn found_text(found: Option<PercentileEstimate>) -> String {
    let Some(PercentileEstimate { value_ns, interval_ns, is_thin }) = found else { return "-".to_owned() };
    let value = quantity::time(value_ns);
    let Some((low_ns, high_ns)) = interval_ns else { return value };
    format!("{value} {}", quantity::interval(value_ns, low_ns, high_ns, is_thin))
}

/// What every table says of a run between its percentiles and its status.
fn client_cells(run: &RunRow) -> [String; 2] {
    [run.client_error_ns, run.cpu_ns.map(|ns| ns.round() as u64)].map(quantity::time_or_dash)
}

fn client_heading(campaign: &Campaign) -> String {
    format!("client error {}", RunRow::client_basis_of(&campaign.runs).sign())
}

/// The headings of what every table of runs says of one.
fn headings(campaign: &Campaign) -> Vec<String> {
    let quantiles = campaign.head.quantiles().into_iter().map(|quantile| quantile.to_string());
    let others = [client_heading(campaign), "CPU/req".to_owned(), "status".to_owned()];
    std::iter::once("completed/s".to_owned()).chain(quantiles).chain(others).collect()
}

/// These cells, but for the verdict; the p99 with its interval.
fn run_cells(run: &RunRow, quantiles: &[Quantile]) -> Vec<String> {
    let time = |quantile: &Quantile| match *quantile {
        Quantile::P99 => found_text(run.percentile(Quantile::P99)),
        other => quantity::time_or_dash(run.percentile(other).map(|found| found.value_ns)),
    };
    let mut cells = vec![rate_text(run.completed)];
    cells.extend(quantiles.iter().map(time));
    cells.extend(client_cells(run));
    cells
}

/// The verdict with the checks behind it, and the requests that no percentile of the table holds: `CAUTION ERR, 12 failed`.
fn verdict_text(run: &RunRow) -> String {
    checks_text(run) + &failed_text(run)
}

fn failed_text(run: &RunRow) -> String {
    if run.failed == 0 { String::new() } else { format!(", {} failed", run.failed) }
}

fn checks_text(run: &RunRow) -> String {
    if run.interrupted {
        return "interrupted".to_owned();
    }
    let words = [&[run.status.status.name()], super::checks_of(run).as_slice()].concat();
    words.join(" ")
}

/// Status of a run in a scan or search; where it met a limit, the side whose limit it was.
fn limit_text(run: &RunRow) -> String {
    let Some(limit) = run.limit.filter(|_| !run.interrupted) else { return verdict_text(run) };
    let limit = format!("limit: {}", limit.name());
    limit + &failed_text(run)
}

fn scan_table(out: &mut String, campaign: &Campaign, option: &str, points: &[ScanPoint]) {
    let first = if option == "rate" { "rate/s" } else { option };
    let (quantiles, headings) = (campaign.head.quantiles(), headings(campaign));
    let width =
        points.iter().map(|point| setting_text(point.setting).len()).max().unwrap_or(0).max(first.len());
    let heading = format!("{first:>width$}");
    let headings: Vec<&str> = headings.iter().map(String::as_str).collect();
    let mut table = Table::new(&[&[heading.as_str()], headings.as_slice()].concat()).with_words_last();
    for point in points {
        for (place, index) in point.discarded.iter().chain(&point.runs).enumerate() {
            let run = &campaign.runs[*index];
            let setting =
                if place == 0 { format!("{:>width$}", setting_text(point.setting)) } else { String::new() };
            let again = if place < point.discarded.len() { ", rerun" } else { "" };
            let verdict = limit_text(run) + again;
            table.push([vec![setting], run_cells(run, &quantiles), vec![verdict]].concat());
        }
        if let Some(spread) = point.p99.filter(|spread| spread.runs > 1) {
            let blanks = quantiles.iter().take_while(|quantile| **quantile < Quantile::P99).count();
            let mut row = vec![String::new(), "median".to_owned()];
            row.extend(vec![String::new(); blanks]);
            row.push(spread_text(&spread));
            table.push(row);
        }
    }
    table.write(out);
}

/// A median between the smallest and the largest: `412 us [401..425]`.
fn spread_text(spread: &Spread) -> String {
    let whole = |ns: f64| ns.round() as u64;
    let range = Some((whole(spread.min), Some(whole(spread.max))));
    found_text(Some(PercentileEstimate {
        value_ns: whole(spread.median),
        interval_ns: range,
        is_thin: false,
    }))
}

/// The p99 of a setting: of its only run with the interval, of several the median within their range.
fn point_text(campaign: &Campaign, point: &ScanPoint) -> String {
    match (point.runs.as_slice(), &point.p99) {
        ([only], _) => found_text(campaign.runs[*only].percentile(Quantile::P99)),
        (_, Some(spread)) => spread_text(spread),
        (_, None) => "-".to_owned(),
    }
}

/// The p99 of every setting as a bar.
fn curve(out: &mut String, points: &[ScanPoint], knee: Option<Knee>) {
    let known: Vec<f64> = points.iter().filter_map(|point| point.p99).map(|spread| spread.median).collect();
    let Some(scale) = BarScale::of(&known) else { return };
    out.push_str(&format!("\np99, {scale}\n"));
    let width = points.iter().map(|point| setting_text(point.setting).len()).max().unwrap_or(0);
    for (index, point) in points.iter().enumerate() {
        let Some(spread) = point.p99 else { continue };
        let bar = "#".repeat(scale.length(spread.median));
        let mark = if knee == Some(Knee::At(index)) { "  <- knee" } else { "" };
        let (setting, time) = (setting_text(point.setting), whole_time(spread.median));
        out.push_str(&format!("{setting:>width$}  {bar} {time}{mark}\n"));
    }
}

fn whole_time(ns: f64) -> String {
    quantity::time(ns.round() as u64)
}

/// How long a bar is for a time. Its ends do not depend on how far the times lie apart: times that are nearly equal have bars
/// that are.
#[derive(Clone, Copy, Debug, PartialEq)]
enum BarScale {
    /// From 0 up to the longest time.
    Linear { most_ns: f64 },
    /// From the power of ten below the shortest time up to the one above the longest.
    Logarithmic { from_ns: f64, to_ns: f64 },
}

impl BarScale {
    /// For at least two times above 0.
    fn of(times_ns: &[f64]) -> Option<Self> {
        let least_ns = times_ns.iter().copied().reduce(f64::min).filter(|ns| *ns > 0.0)?;
        let most_ns = times_ns.iter().copied().reduce(f64::max).filter(|_| times_ns.len() > 1)?;
        let power = |exponent: f64| 10.0_f64.powi(exponent as i32);
        Some(match most_ns <= LINEAR_MAX * least_ns {
            true => Self::Linear { most_ns },
            false => Self::Logarithmic {
                from_ns: power(least_ns.log10().floor()),
                to_ns: power(most_ns.log10().ceil()),
            },
        })
    }

    fn length(self, ns: f64) -> usize {
        let part = match self {
            Self::Linear { most_ns } => ns / most_ns,
            Self::Logarithmic { from_ns, to_ns } => (ns / from_ns).ln() / (to_ns / from_ns).ln(),
        };
        ((part * BAR_MAX as f64).round() as usize).max(1)
    }
}

impl std::fmt::Display for BarScale {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match *self {
            Self::Linear { .. } => formatter.write_str("from 0"),
            Self::Logarithmic { from_ns, to_ns } => {
                let (from, to) = (whole_time(from_ns), whole_time(to_ns));
                write!(formatter, "log scale from {from} to {to}")
            }
        }
    }
}

fn scan_finding(out: &mut String, campaign: &Campaign, points: &[ScanPoint], knee: Option<Knee>) {
    out.push('\n');
    match knee {
        Some(Knee::At(index)) => {
            let p99 = point_text(campaign, &points[index]);
            let at = at_text(points[index].setting);
            let text = format!("at {at}: p99 {p99}; beyond it latency grows faster than throughput");
            paragraph::prose(out, "knee", &text);
        }
        Some(Knee::Beyond) => {
            let text = "beyond the highest load: throughput still grew faster than latency";
            paragraph::prose(out, "knee", text);
        }
        Some(Knee::Unknown) => paragraph::prose(out, "knee", &campaign.no_curve_text(points)),
        None => {}
    }
    scan_limit(out, campaign, points);
}

/// The limit of the curve, and what came and went below it.
fn scan_limit(out: &mut String, campaign: &Campaign, points: &[ScanPoint]) {
    let discarded = spoiled_text(&super::limits_passed(&campaign.runs, points), at_text);
    let so_far = if campaign.interrupted { " so far" } else { "" };
    match super::limit_met(&campaign.runs, points) {
        Some((point, run)) => {
            let is_lowest = !points.iter().any(|point| point.is_free(&campaign.runs));
            let lowest = if is_lowest { ", the lowest of all" } else { "" };
            let twice = if point.discarded.is_empty() { "" } else { ", measured twice" };
            limit(out, &format!("{}{lowest}{twice}", at_text(point.setting)), run);
            if !discarded.is_empty() {
                paragraph::prose(out, "  below", &discarded);
            }
        }
        None if discarded.is_empty() => {
            let text = format!("none was met{so_far}: neither the server nor the client was at its end");
            paragraph::prose(out, "limit", &text);
        }
        None => paragraph::prose(out, "limit", &format!("none at the top{so_far}; {discarded}")),
    }
}

/// Limits that came and went: `at 1 000/s and 2 000/s the run was spoiled by STEAL`.
pub(super) fn spoiled_text(limited: &[LimitedPoint<'_>], at_text: fn(SweepPoint) -> String) -> String {
    let mut by_names: Vec<(String, Vec<String>)> = Vec::new();
    for (point, run) in limited {
        let (names, at) = (run.limit.map(|limit| limit.name().to_owned()), at_text(point.setting));
        let names = names.unwrap_or_default();
        match by_names.iter_mut().find(|(held, _)| *held == names) {
            Some((_, all)) => all.push(at),
            None => by_names.push((names, vec![at])),
        }
    }
    let listed = |all: &[String]| match all {
        [first @ .., last] if !first.is_empty() => format!("{} and {last}", first.join(", ")),
        all => all.concat(),
    };
    let texts: Vec<String> = by_names
        .iter()
        .map(|(names, all)| format!("at {} the run was spoiled by {names}", listed(all)))
        .collect();
    texts.join("; ")
}

/// Whose limit a run met, and what to do.
fn limit(out: &mut String, at: &str, run: &RunRow) {
    let Some(sentence) = super::limit_sentence(run) else { return };
    paragraph::prose(out, "limit", &printable(&format!("at {at}: {sentence}")));
}

fn search_table(out: &mut String, campaign: &Campaign, objectives: &[Objective]) {
    let subjects: Vec<String> = objectives.iter().map(|objective| objective.subject.to_string()).collect();
    let settings =
        campaign.runs.iter().filter_map(|run| run.setting).map(|setting| setting_text(setting).len());
    let width = settings.max().unwrap_or(0).max("rate/s".len());
    let heading = format!("{:>width$}", "rate/s");
    let mut headings = vec![heading.as_str(), "completed/s", "time"];
    headings.extend(subjects.iter().map(String::as_str));
    let client = client_heading(campaign);
    headings.extend([client.as_str(), "CPU/req", "step"]);
    let mut table = Table::new(&headings).with_words_last();
    for (index, run) in campaign.runs.iter().enumerate() {
        let Some((end, found)) = &run.step else { continue };
        let setting = run.setting.map_or(String::new(), setting_text);
        let mut row =
            vec![format!("{setting:>width$}"), rate_text(run.completed), quantity::time(run.duration_ns)];
        row.extend(found.iter().map(|found| found_text(*found)));
        row.extend(client_cells(run));
        let checks = run.limit.map(|limit| format!(": {}", limit.name())).unwrap_or_default();
        let step = if run.interrupted { "interrupted".to_owned() } else { format!("{}{checks}", end.name()) };
        let again = if campaign.is_discarded(index) { ", rerun" } else { "" };
        row.push(step + &failed_text(run) + again);
        table.push(row);
    }
    table.write(out);
}

fn search_finding(
    out: &mut String,
    campaign: &Campaign,
    objectives: &[Objective],
    capacity: Option<&Capacity>,
) {
    out.push('\n');
    let Some(capacity) = capacity else { return };
    paragraph::prose(out, "capacity", &capacity_text(campaign, capacity));
    let passed = capacity.passed().and_then(|rate| campaign.step_at(rate));
    if let Some((_, found)) = passed.and_then(|run| run.step.as_ref()) {
        let pairs = objectives.iter().zip(found);
        let facts: Vec<String> =
            pairs.map(|(objective, found)| format!("{} {}", objective.subject, found_text(*found))).collect();
        paragraph::facts(out, "there", &facts);
    }
    search_limit(out, campaign, capacity);
}

/// Did the rate neither pass nor fail?
pub(super) fn is_undecided(campaign: &Campaign, rate: f64) -> bool {
    let step = campaign.step_at(rate).and_then(|run| run.step.as_ref());
    step.is_some_and(|(end, _)| *end == StepResult::Undecided)
}

fn capacity_text(campaign: &Campaign, capacity: &Capacity) -> String {
    let rate = rate_text;
    match *capacity {
        Capacity::Between { passed, failed } => {
            let how = match is_undecided(campaign, failed) {
                true => "was undecided within --max-time",
                false => "did not",
            };
            format!("{}/s: the highest rate that passed; {}/s {how}", rate(passed), rate(failed))
        }
        Capacity::AtLeast { passed } => {
            format!(
                "at least {}/s: the highest rate to try passed (raise --to to look further)",
                rate(passed)
            )
        }
        Capacity::Below { failed } => {
            format!(
                "below {}/s: not even the lowest rate passed (lower --from to look further)",
                rate(failed)
            )
        }
        Capacity::Undecided { at } => {
            format!(
                "unknown: {}/s, the lowest rate, was undecided within --max-time and needs more time (raise --max-time)",
                rate(at)
            )
        }
        Capacity::ClientLimited { at, passed: Some(passed) } => {
            let (passed, at) = (rate(passed), rate(at));
            format!("at least {passed}/s: the generator, not the server, is the limit at {at}/s")
        }
        Capacity::ClientLimited { at, passed: None } => {
            format!("unknown: the generator, not the server, is the limit at {}/s", rate(at))
        }
        Capacity::Broken { at, .. } => format!("unknown: the step at {}/s is BROKEN", rate(at)),
    }
}

/// What kept the rate above the capacity from passing.
fn search_limit(out: &mut String, campaign: &Campaign, capacity: &Capacity) {
    let Some(above) = capacity.not_passed() else { return };
    let at = format!("{}/s", rate_text(above));
    let text = match campaign.step_at(above) {
        Some(run) if run.limit.is_some() => return limit(out, &at, run),
        Some(_) if is_undecided(campaign, above) => {
            format!("none was shown: at {at} it is not known on which side of its bound a percentile lies")
        }
        Some(_) => format!("the objective, at {at}: server and client could do more"),
        None => return,
    };
    paragraph::prose(out, "limit", &text);
}

fn repeat_table(out: &mut String, campaign: &Campaign) {
    let (quantiles, headings) = (campaign.head.quantiles(), headings(campaign));
    let headings: Vec<&str> = std::iter::once("run").chain(headings.iter().map(String::as_str)).collect();
    let mut table = Table::new(&headings).with_words_last();
    for run in &campaign.runs {
        let number = vec![run.repetition.to_string()];
        table.push([number, run_cells(run, &quantiles), vec![verdict_text(run)]].concat());
    }
    table.write(out);
}

fn repeat_finding(out: &mut String, quantiles: &[Quantile], compared: &[SpreadRow]) {
    // One run has no spread.
    let Some(first) = compared.first().filter(|first| first.spread.runs > 1) else { return };
    out.push('\n');
    let runs = quantity::things(first.spread.runs as u64, "run");
    let heading = format!("of {runs}");
    let mut table = Table::new(&[&heading, "median", "smallest", "largest", "range"]);
    for SpreadRow { name, spread } in compared {
        let text = |value: f64| match name.as_str() {
            "completed_per_s" => format!("{}/s", rate_text(value)),
            _ => quantity::time(value.round() as u64),
        };
        let percent = |part: f64| format!("{} %", quantity::significant(100.0 * part));
        let label = match name.as_str() {
            "completed_per_s" => "completed".to_owned(),
            key => quantiles
                .iter()
                .find(|quantile| quantile.key() == key)
                .map_or(key.to_owned(), ToString::to_string),
        };
        let range = percent(spread.relative_range());
        table.push(vec![label, text(spread.median), text(spread.min), text(spread.max), range]);
    }
    table.write(out);
    let covered = quantity::significant(100.0 * first.spread.coverage());
    let text =
        format!("[smallest, largest] holds the median of all runs that there could be with {covered} %");
    paragraph::prose(out, "confidence", &text);
}

/// What the campaign as a whole comes to, and its own check.
fn status(out: &mut String, campaign: &Campaign) {
    paragraph::prose(out, "", &printable(&campaign.status.headline()));
    for check in &campaign.status.checks {
        let text = format!("{}: {}", check.status.name(), check.text());
        paragraph::prose(out, &format!("  {}", check.id.name()), &printable(&text));
    }
}
