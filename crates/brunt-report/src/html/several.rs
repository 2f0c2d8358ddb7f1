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
use crate::stored::{CLASSES, classes_of, shortened};
use brunt_plan::quantile::Quantile;
use brunt_stats::change::{Design, runs_needed};
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

/// The numbers with their intervals, and how far those of the others are from the first.
fn numbers(markup: &mut Markup, runs: &[(String, Summary)]) {
    let mut columns = Column::all_of_words(["quantity"]);
    for (index, (name, _)) in runs.iter().enumerate() {
        columns.push(Column::of_numbers(name, 0));
        columns.extend((index > 0).then(|| Column::of_numbers("change", 0)));
    }
    let mut grid = Grid::new(columns);
    each_number(runs, |name, text, values| {
        let text = |estimate: &Option<Estimate>| match estimate {
            None => "-".to_owned(),
            Some((value, None)) => text(*value),
            Some((value, Some([low, high]))) => {
                format!("{} ({} to {})", text(*value), text(*low), text(*high))
            }
        };
        let others = values[1..].iter().flat_map(|value| [text(value), change(values[0], *value)]);
        if values.iter().any(Option::is_some) {
            grid.push_texts([name, text(&values[0])].into_iter().chain(others), Style::Plain);
        }
    });
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

/// Passes on each number of every run, with its name, and how it is written.
fn each_number(
    runs: &[(String, Summary)],
    mut push: impl FnMut(String, fn(f64) -> String, Vec<Option<Estimate>>),
) {
    let mut row = |name: String, text: fn(f64) -> String, value: &dyn Fn(&Summary) -> Option<Estimate>| {
        push(name, text, runs.iter().map(|(_, summary)| value(summary)).collect());
    };
    let time: fn(f64) -> String = |ns| quantity::time(ns.round() as u64);
    let exact = |value: Option<f64>| value.map(|value| (value, None));
    row("done/s".to_owned(), rate, &|summary| {
        exact((!is_unacknowledged(&summary.total)).then_some(summary.total.rate.completed))
    });
    for quantile in [Quantile::P50, Quantile::P90, Quantile::P99, Quantile::P999, Quantile::P9999] {
        row(quantile.to_string(), time, &|summary| {
            let value = summary.total.latency.response.summary.percentile_ns(quantile)? as f64;
            let held = summary.total.interval(quantile).filter(|_| !is_unbounded(summary));
            Some((value, held.and_then(|held| Some([held.low_ns as f64, held.high_ns? as f64]))))
        });
    }
    row("max".to_owned(), time, &|summary| {
        exact(summary.total.latency.response.summary.max_ns.map(|ns| ns as f64))
    });
    for quantile in [Quantile::P50, Quantile::P99] {
        row(format!("service {quantile}"), time, &|summary| {
            exact(summary.total.latency.service.summary.percentile_ns(quantile).map(|ns| ns as f64))
        });
    }
    row("hit ratio".to_owned(), |share| format!("{:.2} %", share * 100.0), &|summary| {
        let keys = &summary.total.keys;
        exact((keys.requested > 0).then(|| keys.hit as f64 / keys.requested as f64))
    });
    row("client CPU/request".to_owned(), time, &|summary| {
        exact(RequestCost::of(summary).map(|cost| cost.cpu_working_ns()))
    });
    row("server CPU/request".to_owned(), time, &|summary| {
        exact(server::window(summary).and_then(|span| span.cpu_ns_per_request()))
    });
    row("failed".to_owned(), |count| format!("{count:.0}"), &|summary| {
        let requests = &summary.total.requests;
        exact(Some((requests.failed() + requests.abandoned) as f64))
    });
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
    let values: Vec<Vec<(String, String)>> = plans.iter().map(|(_, plan)| plan_rows(plan)).collect();
    let names = plans.iter().map(|(name, _)| name.as_str());
    let mut differing = Grid::new(Column::all_of_words(["key"].into_iter().chain(names)));
    let mut equal = Grid::new(Column::all_of_words(["key", "value"]));
    let mut keys: Vec<&str> = Vec::new();
    for (key, _) in values.iter().flatten() {
        if keys.contains(&key.as_str()) {
            continue;
        }
        keys.push(key);
        let value = |plan: &Vec<(String, String)>| {
            plan.iter().find(|(held, _)| held == key).map_or("-".to_owned(), |(_, value)| value.clone())
        };
        let row: Vec<String> = [key.clone()].into_iter().chain(values.iter().map(value)).collect();
        match row[1..].iter().all(|value| *value == row[1]) {
            true => equal.push_texts(row.into_iter().take(2), Style::Plain),
            false => differing.push_texts(row, Style::Plain),
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

/// The keys of a plan with their values; those of a class of several begin with its name.
fn plan_rows(plan: &Map<String, Value>) -> Vec<(String, String)> {
    let own = plan.iter().filter(|(key, _)| *key != CLASSES);
    let mut rows: Vec<(String, String)> = own.map(|(key, value)| (key.clone(), shortened(value))).collect();
    for (prefix, class) in classes_of(plan) {
        rows.extend(class.iter().map(|(key, value)| (format!("{prefix}{key}"), shortened(value))));
    }
    rows
}
