//! The section of a run over time: its charts, one below the other with one cursor, and their numbers.

use super::client_course::ClientCourse;
use super::columns::{Column, Columns};
use super::course::{Course, HEAT_HEIGHT};
use super::frame::{self, Size};
use super::markup::{Heading, Markup};
use super::server_course::ServerCourse;
use crate::layout::TimeUnit;
use crate::quantity;
use crate::quantity::rate;
use brunt_plan::quantile::Quantile;
use brunt_stats::summary::Summary;

const RATE_HEIGHT: f64 = 120.0;

pub(super) fn section(markup: &mut Markup, summary: &Summary, columns_max: u64) {
    let Some(course) = Course::of(summary, columns_max) else { return };
    markup.raw("<section id=\"time\">\n<h2>Over time</h2>\n");
    let finding = format!("Time counts from the beginning of the window; {}", course.finding());
    let (servers, client) = (ServerCourse::of(summary), ClientCourse::of(&course));
    let mut keys = course.all_keys();
    keys.extend(servers.keys());
    keys.extend(client.keys());
    frame::open_figure(markup, Some(("time", course.span_s)), &finding, keys);
    if course.has_replies() {
        frame::chart(markup, &course.latencies(Size::page(HEAT_HEIGHT), true));
    }
    frame::chart(markup, &course.rates(Size::page(RATE_HEIGHT)));
    if let Some(frame) = course.in_system() {
        frame::chart(markup, &frame);
    }
    for strip in servers.strips(&course).iter().chain(&client.strips(&course)) {
        frame::chart(markup, strip);
    }
    for reason in servers.reason().iter().map(String::as_str).chain(client.reason()) {
        markup.element("p", reason);
    }
    frame::close_figure(markup, |markup| table(markup, &course.columns, &servers, &client));
    markup.raw("</section>\n");
}

fn table(markup: &mut Markup, columns: &Columns, servers: &ServerCourse, client: &ClientCourse) {
    let unit = TimeUnit::of_least(columns.all().filter_map(Column::max_ns).min().unwrap_or(1_000));
    let time = |ns: Option<u64>| ns.map_or("-".to_owned(), |ns| quantity::significant(ns as f64 / unit.ns()));
    let names = ["p50", "p99", "p99.9", "max"].map(|name| format!("{name}/{unit}"));
    let mut headings = vec![Heading::Number("from/s")];
    headings.extend(names.iter().map(|name| Heading::Number(name)));
    headings.extend(["offered/s", "sent/s", "done/s", "failed", "in system"].map(Heading::Number));
    for name in servers.headings().chain(client.headings()) {
        headings.push(Heading::Number(name));
    }
    let decimals = if columns.width_s() < 0.95 { 1 } else { 0 };
    let row = |column: &Column| {
        let Column { activity, .. } = column;
        let mut row = vec![
            format!("{:.decimals$}", column.start_s + 0.0),
            time(column.percentile_ns(Quantile::P50)),
            time(column.percentile_ns(Quantile::P99)),
            time(column.percentile_ns(Quantile::P999)),
            time(column.max_ns()),
            rate(column.per_second(activity.scheduled)),
            rate(column.per_second(activity.sent)),
            rate(column.per_second(activity.completed)),
            activity.failed.to_string(),
            column.in_system.map_or("-".to_owned(), |count| count.to_string()),
        ];
        row.extend(servers.cells(f64::midpoint(column.start_s, column.end_s)));
        row.extend(client.cells(column));
        row
    };
    let rows: Vec<Vec<String>> = columns.all().map(row).collect();
    let caption = format!(
        "Pieces of {} from the beginning of the window; those before it are warm-up",
        quantity::time((columns.width_s() * 1e9).round() as u64)
    );
    markup.table(&caption, &headings, &rows);
}
