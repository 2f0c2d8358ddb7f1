//! The section of a run over time: its charts, one below the other with one cursor, and their numbers.

use super::client_course::ClientCourse;
use super::columns::Columns;
use super::course::{Course, HEAT_HEIGHT};
use super::frame::{self, Size};
use super::markup::Markup;
use super::server_course::ServerCourse;
use crate::grid::{self, TimeTable, Value};
use crate::layout::Style;
use crate::quantity::{self, rate};
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
    let mut headings = grid::Column::all_of_numbers(["from/s"]);
    let times = grid::Column::all_of_numbers(["p50", "p99", "p99.9", "max"]);
    headings.extend(times.into_iter().map(|column| column.with_unit(",")));
    headings.extend(grid::Column::all_of_numbers(["offered/s", "sent/s", "done/s", "failed", "in system"]));
    headings.extend(grid::Column::all_of_numbers(servers.headings().chain(client.headings())));
    let decimals = if columns.width_s() < 0.95 { 1 } else { 0 };
    let mut table = TimeTable::new(headings);
    for column in columns.all() {
        let activity = &column.activity;
        let times_ns =
            [Quantile::P50, Quantile::P99, Quantile::P999].map(|quantile| column.percentile_ns(quantile));
        let counts = [
            rate(column.per_second(activity.scheduled)),
            rate(column.per_second(activity.sent)),
            rate(column.per_second(activity.completed)),
            activity.failed.to_string(),
            column.in_system.map_or("-".to_owned(), |count| count.to_string()),
        ];
        let mut row = vec![Value::Text(format!("{:.decimals$}", column.start_s + 0.0))];
        row.extend(times_ns.into_iter().chain([column.max_ns()]).map(Value::Time));
        let middle_s = f64::midpoint(column.start_s, column.end_s);
        let others = servers.cells(middle_s).chain(client.cells(column));
        row.extend(counts.into_iter().chain(others).map(Value::Text));
        table.push(Style::Plain, row);
    }
    let caption = format!(
        "Pieces of {} from the beginning of the window; those before it are warm-up",
        quantity::time((columns.width_s() * 1e9).round() as u64)
    );
    markup.grid(&caption, &table.grid(None), None);
}
