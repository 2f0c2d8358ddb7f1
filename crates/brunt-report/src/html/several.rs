//! Several runs on one page: their numbers beside those of the first, their percentiles in one chart, their heat maps on equal scales, and
//! in what their plans differ.
//!
//! Not a comparison, which takes several runs of each side: what two single runs differ by may be what runs differ by.

use super::course::Course;
use super::document::{self, Standing};
use super::frame::{self, Size};
use super::markup::Markup;
use super::spectrum::Spectrum;
use super::{overlay, spectrum};
use crate::grid::{Column, Grid};
use crate::json::client::RequestCost;
use crate::layout::Style;
use crate::quantity::{self, rate};
use crate::run_document::head;
use crate::run_document::latency::{is_unacknowledged, is_unbounded};
use crate::server;
use crate::stored::shortened;
use brunt_plan::quantile::Quantile;
use brunt_stats::status::Status;
use brunt_stats::summary::Summary;
use serde_json::{Map, Value};
use std::io::{self, Write};

/// As many results as a chart tells apart.
pub const RESULTS_MAX: usize = frame::RESULTS_MAX;
/// The key of the classes of a plan.
const CLASSES: &str = "class";
/// Columns of all heat maps together.
const COLUMNS: u64 = 480;
const HEAT_HEIGHT: f64 = 150.0;

/// Writes the page of several runs with their names, of which there are at most [`RESULTS_MAX`].
pub(crate) fn write(runs: &[(String, Summary)], out: &mut dyn Write) -> io::Result<()> {
    let runs = &runs[..runs.len().min(RESULTS_MAX)];
    let names: Vec<String> = runs.iter().map(|(name, _)| name.clone()).collect();
    let mut markup = Markup::default();
    let facts: Vec<_> = runs.iter().map(|(name, summary)| (name.clone(), run_facts(summary))).collect();
    let worst = runs.iter().map(|(_, summary)| summary.status.status).max();
    let standing = worst.map_or(Standing::Neutral, Standing::of);
    let title = title(runs);
    document::header(&mut markup, standing, &title, &facts);
    let specs: Vec<Map<String, Value>> = runs
        .iter()
        .map(|(_, summary)| match serde_json::to_value(&summary.record.plan.spec) {
            Ok(Value::Object(plan)) => plan,
            _ => Map::new(),
        })
        .collect();
    plans(&mut markup, &names, &specs.iter().collect::<Vec<_>>());
    numbers(&mut markup, runs);
    percentiles(&mut markup, runs);
    courses(&mut markup, runs);
    document::write(&title, &title, &markup.into_text(), "", out)
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
#[derive(Clone, Copy)]
struct Estimate {
    value: f64,
    ends: Option<[f64; 2]>,
}

/// A number of every run.
struct Row {
    name: String,
    values: Vec<Option<Estimate>>,
    text: fn(f64) -> String,
}

fn rows(runs: &[(String, Summary)]) -> Vec<Row> {
    let quantiles = [Quantile::P50, Quantile::P90, Quantile::P99, Quantile::P999, Quantile::P9999];
    let response = |summary: &Summary, quantile: Quantile| {
        let value = summary.total.latency.response.summary.percentile_ns(quantile)? as f64;
        let held = summary.total.interval(quantile).filter(|_| !is_unbounded(summary));
        let ends = held.and_then(|held| Some([held.low_ns as f64, held.high_ns? as f64]));
        Some(Estimate { value, ends })
    };
    let row = |name: String, text: fn(f64) -> String, value: &dyn Fn(&Summary) -> Option<Estimate>| Row {
        name,
        values: runs.iter().map(|(_, summary)| value(summary)).collect(),
        text,
    };
    let time: fn(f64) -> String = |ns| quantity::time(ns.round() as u64);
    let percent: fn(f64) -> String = |share| format!("{:.2} %", share * 100.0);
    let exact = |value: Option<f64>| value.map(|value| Estimate { value, ends: None });
    let mut rows = vec![row("done/s".to_owned(), rate, &|summary| {
        exact((!is_unacknowledged(&summary.total)).then_some(summary.total.rate.completed))
    })];
    for quantile in quantiles {
        rows.push(row(quantile.to_string(), time, &|summary| response(summary, quantile)));
    }
    rows.push(row("max".to_owned(), time, &|summary| {
        exact(summary.total.latency.response.summary.max_ns.map(|ns| ns as f64))
    }));
    for quantile in [Quantile::P50, Quantile::P99] {
        rows.push(row(format!("service {quantile}"), time, &|summary| {
            exact(summary.total.latency.service.summary.percentile_ns(quantile).map(|ns| ns as f64))
        }));
    }
    rows.push(row("hit ratio".to_owned(), percent, &|summary| {
        let keys = &summary.total.keys;
        exact((keys.requested > 0).then(|| keys.hit as f64 / keys.requested as f64))
    }));
    rows.push(row("client CPU/request".to_owned(), time, &|summary| {
        exact(RequestCost::of(summary).map(|cost| cost.cpu_working_ns()))
    }));
    rows.push(row("server CPU/request".to_owned(), time, &|summary| {
        exact(server::window(summary).and_then(|span| span.cpu_ns_per_request()))
    }));
    rows.push(row("failed".to_owned(), |count| format!("{count:.0}"), &|summary| {
        let requests = &summary.total.requests;
        exact(Some((requests.failed() + requests.abandoned) as f64))
    }));
    rows.retain(|row| row.values.iter().any(Option::is_some));
    rows
}

/// The numbers with their intervals, and how far those of the others are from the first.
fn numbers(markup: &mut Markup, runs: &[(String, Summary)]) {
    markup.raw("<section id=\"numbers\">\n<h2>Numbers side by side</h2>\n<p>In brackets the 95 % interval within the run, which knows nothing of \
                how runs differ; <code>brunt compare</code> with at least four runs of each decides that. Changes are from the first result; \
                <i>apart</i>: the intervals do not meet.</p>\n");
    let cell = |row: &Row, index: usize| match row.values[index] {
        None => "-".to_owned(),
        Some(Estimate { value, ends: None }) => (row.text)(value),
        Some(Estimate { value, ends: Some([low, high]) }) => {
            format!("{} ({} to {})", (row.text)(value), (row.text)(low), (row.text)(high))
        }
    };
    let table_row = |row: &Row| {
        let mut cells = vec![row.name.clone()];
        for index in 0..runs.len() {
            cells.push(cell(row, index));
            if index > 0 {
                cells.push(change(row.values[0], row.values[index]));
            }
        }
        cells
    };
    let mut columns = Column::all_of_words(["quantity"]);
    for (index, (name, _)) in runs.iter().enumerate() {
        columns.push(Column::of_numbers(name, 0));
        columns.extend((index > 0).then(|| Column::of_numbers("change", 0)));
    }
    let mut grid = Grid::new(columns);
    rows(runs).iter().for_each(|row| grid.push_texts(table_row(row), Style::Plain));
    markup.grid("Response times of all requests, rates and costs", &grid, None);
    markup.raw("</section>\n");
}

/// From one number to another: `+12.0 %, apart`.
fn change(from: Option<Estimate>, to: Option<Estimate>) -> String {
    let Some((from, to)) = from.zip(to).filter(|(from, _)| from.value != 0.0) else { return "-".to_owned() };
    let percent = format!("{:+.1} %", (to.value / from.value - 1.0) * 100.0);
    match from.ends.zip(to.ends) {
        Some(([low, high], [other_low, other_high])) if other_low > high || low > other_high => {
            format!("{percent}, apart")
        }
        _ => percent,
    }
}

fn percentiles(markup: &mut Markup, runs: &[(String, Summary)]) {
    let known: Vec<(String, Spectrum<'_>)> =
        runs.iter().filter_map(|(name, summary)| Some((name.clone(), Spectrum::of(summary)?))).collect();
    if known.is_empty() {
        return;
    }
    let (names, spectra): (Vec<String>, Vec<Spectrum<'_>>) = known.into_iter().unzip();
    markup.raw("<section id=\"spectrum\">\n<h2>Latency by percentile</h2>\n");
    let cursor = Some(("percentile", (0.0, overlay::most(&spectra))));
    let finding =
        "Response time of all requests; the band of each is its 95 % interval, its rhombus the maximum.";
    frame::open_figure(markup, cursor, finding, overlay::keys(&names));
    frame::chart(markup, &overlay::chart(&spectra, Size::page(spectrum::HEIGHT)));
    frame::close_figure(markup, |markup| overlay::table(markup, &spectra, &names));
    markup.raw("</section>\n");
}

fn courses(markup: &mut Markup, runs: &[(String, Summary)]) {
    let columns_max = COLUMNS / runs.len().max(1) as u64;
    let known = runs
        .iter()
        .filter_map(|(name, summary)| Some((name.clone(), Course::of(summary, columns_max)?)))
        .filter(|(_, course)| course.has_replies());
    let (names, mut courses): (Vec<String>, Vec<Course<'_>>) = known.unzip();
    if courses.is_empty() {
        return;
    }
    Course::align(&mut courses);
    markup.raw("<section id=\"time\">\n<h2>Over time, on equal scales</h2>\n");
    let mut keys = courses[0].keys(true);
    keys.retain(|key| ["heat", "p50", "p99", "max"].contains(&key.class));
    // Each p99 is of pieces as long as its run has requests for.
    keys.iter_mut().filter(|key| key.class == "p99").for_each(|key| key.name = "p99".to_owned());
    keys.iter_mut().for_each(|key| key.class = "");
    frame::legend(markup, keys);
    for (name, course) in names.iter().zip(&courses) {
        markup.raw("<figure>");
        markup.element("figcaption", &format!("{name}: {}", course.finding()));
        frame::chart(markup, &course.latencies(Size::page(HEAT_HEIGHT), true));
        markup.close("figure");
    }
    markup.raw("</section>\n");
}

/// A section with the plans of several results, which have the keys of a plan file.
pub(crate) fn plans(markup: &mut Markup, names: &[String], plans: &[&Map<String, Value>]) {
    let plans: Vec<Vec<(String, String)>> = plans.iter().map(|plan| plan_rows(plan)).collect();
    let mut keys: Vec<&str> = Vec::new();
    for (key, _) in plans.iter().flatten() {
        if !keys.contains(&key.as_str()) {
            keys.push(key);
        }
    }
    let value = |plan: &Vec<(String, String)>, key: &str| {
        plan.iter().find(|(held, _)| held == key).map_or("-".to_owned(), |(_, value)| value.clone())
    };
    let row = |key: &str| {
        let mut row = vec![key.to_owned()];
        row.extend(plans.iter().map(|plan| value(plan, key)));
        row
    };
    let (equal, differing): (Vec<_>, Vec<_>) =
        keys.into_iter().map(row).partition(|row| row[1..].windows(2).all(|pair| pair[0] == pair[1]));
    let grid = |headings: Vec<Column>, rows: Vec<Vec<String>>| {
        let mut grid = Grid::new(headings);
        rows.into_iter().for_each(|row| grid.push_texts(row, Style::Plain));
        grid
    };
    markup.raw("<section id=\"plans\">\n<h2>Plans side by side</h2>\n");
    if differing.is_empty() {
        markup.element("p", "The plans are equal.");
    }
    let names = names.iter().map(String::as_str);
    markup.grid(
        "What differs",
        &grid(Column::all_of_words(["key"].into_iter().chain(names)), differing),
        None,
    );
    markup.raw("<details><summary>What is equal</summary>\n");
    let equal: Vec<Vec<String>> = equal.into_iter().map(|mut row| row.drain(..2).collect()).collect();
    let equal = grid(Column::all_of_words(["key", "value"]), equal);
    markup.grid("Keys with one value in all plans", &equal, None);
    markup.raw("</details>\n</section>\n");
}

/// The keys of a plan with their values; those of a class of several begin with its name.
fn plan_rows(plan: &Map<String, Value>) -> Vec<(String, String)> {
    let classes = plan.get(CLASSES).and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
    let own = plan.iter().filter(|(key, _)| *key != CLASSES);
    let mut rows: Vec<(String, String)> = own.map(|(key, value)| (key.clone(), shortened(value))).collect();
    for class in classes.iter().filter_map(Value::as_object) {
        let name = class.get("name").and_then(Value::as_str).unwrap_or("");
        let prefix = if classes.len() > 1 { format!("{name} ") } else { String::new() };
        rows.extend(class.iter().map(|(key, value)| (format!("{prefix}{key}"), shortened(value))));
    }
    rows
}
