//! Several runs on one page: their numbers beside those of the first, their percentiles in one chart, their heat maps on equal scales, and
//! in what their plans differ.
//!
//! Not a comparison, which takes several runs of each side: what two single runs differ by may be what runs differ by.

use super::chart::{self, Figure};
use super::over_time::Course;
use super::page::{self, Markup, Page};
use super::spectrum;
use crate::grid::{Column, Grid};
use crate::json::client::RequestCost;
use crate::layout::Style;
use crate::quantity::{self, rate};
use crate::run_document::head;
use crate::run_document::latency::{is_unacknowledged, is_unbounded};
use crate::server;
use crate::stored::{shortened, side_by_side};
use brunt_plan::quantile::Quantile;
use brunt_stats::change::{Design, runs_needed};
use brunt_stats::op_summary::OpSummary;
use brunt_stats::status::Status;
use brunt_stats::summary::Summary;
use serde_json::{Map, Value};
use std::io::{self, Write};

/// As many results as a chart tells apart.
pub const RESULTS_MAX: usize = chart::RESULTS_MAX;
/// Columns of all heat maps together.
const COLUMNS: u64 = 480;
const HEAT_HEIGHT: f64 = 150.0;

/// Writes the page of several runs with their names, of which there are at most [`RESULTS_MAX`].
pub(crate) fn write(runs: &[(String, Summary)], out: &mut dyn Write) -> io::Result<()> {
    let runs = &runs[..runs.len().min(RESULTS_MAX)];
    let mut markup = Markup::default();
    let facts: Vec<_> = runs.iter().map(|(name, summary)| (name.clone(), run_facts(summary))).collect();
    let worst = runs.iter().map(|(_, summary)| summary.status.status).max();
    let title = title(runs);
    page::header(&mut markup, worst, &title, &facts);
    let spec = |(name, summary): &(String, Summary)| {
        let spec = serde_json::to_value(&summary.record.plan.spec).unwrap_or_default();
        (name.clone(), spec.as_object().cloned().unwrap_or_default())
    };
    plans(&mut markup, &runs.iter().map(spec).collect::<Vec<_>>());
    numbers(&mut markup, runs);
    let named: Vec<(&str, &Summary)> = runs.iter().map(|(name, summary)| (name.as_str(), summary)).collect();
    spectrum::section(&mut markup, &named);
    courses(&mut markup, &named);
    Page { foot: title.clone(), title, sections: markup.into_text(), ..Page::default() }.write(out)
}

fn title(runs: &[(String, Summary)]) -> String {
    let invalid = runs.iter().filter(|(_, summary)| summary.status.is_invalid());
    let invalid: Vec<&str> = invalid.map(|(name, _)| name.as_str()).collect();
    let p99 = |(name, summary): &(String, Summary)| {
        let ns = summary.total.latency.response.summary.percentile_ns(Quantile::P99);
        format!("{name} {}", quantity::time_or_dash(ns))
    };
    let numbers = format!("p99: {}", runs.iter().map(p99).collect::<Vec<_>>().join(", "));
    match invalid.is_empty() {
        true => numbers,
        false => format!("{}: {} · {numbers}", Status::Invalid.name(), invalid.join(", ")),
    }
}

fn run_facts(summary: &Summary) -> Vec<String> {
    let mut facts = vec![summary.status.headline()];
    facts.extend(head::lines(summary).into_iter().flat_map(|(_, facts)| facts));
    facts
}

/// A number with the ends of its interval, where it has one.
type Estimate = (f64, Option<[f64; 2]>);
/// A number of a run by its name, with how it is written.
type Number = (String, fn(f64) -> String, Option<Estimate>);

/// The numbers with their intervals, and how far those of the others are from the first.
fn numbers(markup: &mut Markup, runs: &[(String, Summary)]) {
    let mut columns = Column::all_of_words(["quantity"]);
    for (index, (name, _)) in runs.iter().enumerate() {
        columns.push(Column::of_numbers(name, 0));
        columns.extend((index > 0).then(|| Column::of_numbers("change", 0)));
    }
    let mut grid = Grid::new(columns);
    let of_runs: Vec<Vec<Number>> = runs.iter().map(|(_, summary)| numbers_of(summary)).collect();
    for (index, (name, text, first)) in of_runs.iter().take(1).flatten().enumerate() {
        let text = |estimate: Option<Estimate>| match estimate {
            None => "-".to_owned(),
            Some((value, None)) => text(value),
            Some((value, Some([low, high]))) => {
                format!("{} ({} to {})", text(value), text(low), text(high))
            }
        };
        let values = || of_runs.iter().map(|numbers| numbers[index].2);
        let others = values().skip(1).flat_map(|value| [text(value), change(*first, value)]);
        if values().any(|value| value.is_some()) {
            grid.push_texts([name.clone(), text(*first)].into_iter().chain(others), Style::Plain);
        }
    }
    markup.section("numbers", "Numbers side by side", |markup| {
        const { assert!(runs_needed(Design::Apart) == 5) };
        markup.raw(
            "<p>In brackets the 95 % interval within the run, which knows nothing of \
             how runs differ; <code>brunt compare</code> with at least five runs of each decides that. Changes are from the first result; \
             <i>apart</i>: the intervals do not meet.</p>\n",
        );
        markup.grid("Response times of all requests, rates and costs", &grid, None);
    });
}

/// The numbers of a run; every run has them in this order.
fn numbers_of(summary: &Summary) -> Vec<Number> {
    let OpSummary { latency, keys, requests, .. } = &summary.total;
    let (response, service) = (&latency.response.summary, &latency.service.summary);
    let time: fn(f64) -> String = |ns| quantity::time(ns.round() as u64);
    let percentile = |quantile: Quantile| {
        let held = summary.total.interval(quantile).filter(|_| !is_unbounded(summary));
        let ends = held.and_then(|held| Some([held.low_ns as f64, held.high_ns? as f64]));
        let value = response.percentile_ns(quantile).map(|ns| (ns as f64, ends));
        (quantile.to_string(), time, value)
    };
    let exact = |name: &str, text: fn(f64) -> String, value: Option<f64>| {
        (name.to_owned(), text, value.map(|value| (value, None)))
    };
    let of_service = |quantile: Quantile| {
        exact(&format!("service {quantile}"), time, service.percentile_ns(quantile).map(|ns| ns as f64))
    };
    let done = (!is_unacknowledged(&summary.total)).then_some(summary.total.rate.completed);
    let hit = (keys.requested > 0).then(|| keys.hit as f64 / keys.requested as f64);
    let client_ns = RequestCost::of(summary).map(|cost| cost.cpu_working_ns());
    let server_ns = server::window(summary).and_then(|span| span.cpu_ns_per_request());
    let failed = (requests.failed() + requests.abandoned) as f64;
    let mut numbers = vec![exact("done/s", rate, done)];
    numbers.extend(Quantile::SHOWN.map(percentile));
    numbers.push(exact("max", time, response.max_ns.map(|ns| ns as f64)));
    numbers.extend([Quantile::P50, Quantile::P99].map(of_service));
    numbers.extend([
        exact("hit ratio", |share| format!("{:.2} %", share * 100.0), hit),
        exact("client CPU/request", time, client_ns),
        exact("server CPU/request", time, server_ns),
        exact("failed", |count| format!("{count:.0}"), Some(failed)),
    ]);
    numbers
}

/// From one number to another: `+12.0 %, apart`.
fn change(from: Option<Estimate>, to: Option<Estimate>) -> String {
    let Some((from, to)) = from.zip(to).filter(|(from, _)| from.0 != 0.0) else { return "-".to_owned() };
    let percent = format!("{:+.1} %", (to.0 / from.0 - 1.0) * 100.0);
    match from.1.zip(to.1) {
        Some(([low, high], [other_low, other_high])) if other_low > high || low > other_high => {
            format!("{percent}, apart")
        }
        _ => percent,
    }
}

fn courses(markup: &mut Markup, runs: &[(&str, &Summary)]) {
    let columns_max = COLUMNS / runs.len().max(1) as u64;
    let known = runs.iter().filter_map(|(name, summary)| Some((*name, Course::of(summary, columns_max)?)));
    let (names, mut courses): (Vec<&str>, Vec<Course<'_>>) =
        known.filter(|(_, course)| course.has_replies()).unzip();
    if courses.is_empty() {
        return;
    }
    Course::align(&mut courses);
    let mut charts: Vec<_> = courses.iter().map(|course| course.latencies(true)).collect();
    for chart in &mut charts {
        chart.height = HEAT_HEIGHT;
        // Each p99 is of pieces as long as its run has requests for.
        let tail = chart.series.iter_mut().filter(|series| series.class == "p99");
        tail.for_each(|series| series.name = "p99".to_owned());
    }
    let mut keys = chart::keys(&charts);
    keys.iter_mut().for_each(|key| key.class = "");
    markup.section("time", "Over time, on equal scales", |markup| {
        chart::legend(markup, &keys);
        for ((name, course), chart) in names.iter().zip(&courses).zip(charts) {
            Figure::of(format!("{name}: {}", course.finding()), chart).write_with(&[], markup);
        }
    });
}

/// A section with the plans of several results by name, which have the keys of a plan file.
pub(crate) fn plans(markup: &mut Markup, plans: &[(String, Map<String, Value>)]) {
    let names = plans.iter().map(|(name, _)| name.as_str());
    let mut differing = Grid::new(Column::all_of_words(["key"].into_iter().chain(names)));
    let mut equal = Grid::new(Column::all_of_words(["key", "value"]));
    let text = |value: &Option<&Value>| value.map_or("-".to_owned(), shortened);
    for (key, values) in side_by_side(&plans.iter().map(|(_, plan)| plan).collect::<Vec<_>>()) {
        match values.iter().all(|value| *value == values[0]) {
            true => equal.push_texts([key, text(&values[0])], Style::Plain),
            false => differing.push_texts([key].into_iter().chain(values.iter().map(text)), Style::Plain),
        }
    }
    markup.section("plans", "Plans side by side", |markup| {
        if differing.is_empty() {
            markup.element("p", "The plans are equal.");
        }
        markup.grid("What differs", &differing, None);
        markup.raw("<details><summary>What is equal</summary>\n");
        markup.grid("Keys with one value in all plans", &equal, None);
        markup.raw("</details>\n");
    });
}
