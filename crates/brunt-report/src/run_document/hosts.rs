//! Hosts of a run that has several: which is the worst, and a row for each.
//!
//! Not what is wrong with the run, which its checks say. The worst host is the first row.

use crate::document::Document;
use crate::grid::{Column, Grid, Rows, Value, shortened};
use crate::layout::{Layout, Style};
use crate::quantity;
use crate::server;
use crate::text::printable;
use brunt_stats::check::CheckId;
use brunt_stats::hosts::HostRow;
use brunt_stats::summary::Summary;

/// Hosts that have a row; JSON has all.
pub(crate) const ROWS_MAX: usize = 32;

/// The worst host beside the others.
pub(super) fn worst(summary: &Summary) -> Vec<String> {
    let hosts = summary.hosts();
    let Some(worst) = hosts.first() else { return Vec::new() };
    let checks = if worst.checks.is_empty() { String::new() } else { format!(": {}", checks(worst)) };
    let mut facts = vec![format!("{} is the worst of {}{checks}", printable(&worst.agent.name), hosts.len())];
    let mut all_ns: Vec<u64> = hosts.iter().filter_map(|row| row.requests.p99_ns).collect();
    all_ns.sort_unstable();
    if let (Some(own_ns), Some(median_ns)) =
        (worst.requests.p99_ns, all_ns.get(all_ns.len().saturating_sub(1) / 2))
    {
        let [own, median] = [own_ns, *median_ns].map(quantity::time);
        facts.push(format!("p99 {own}, of the median host {median}"));
    }
    facts
}

/// The worst hosts, a row each, and how many more there are.
pub(crate) fn table(hosts: &[HostRow<'_>], layout: &Layout) -> (Grid, Option<String>) {
    let shown = hosts.iter().take(ROWS_MAX);
    let style = |row: &&HostRow<'_>| if row.checks.is_empty() { Style::Plain } else { Style::Doubt };
    let grid = Rows::of(shown, style)
        .texts(Column::of_words("host", 14).with_unit(", "), |row| {
            shortened(&server::cell(&printable(&row.agent.name)), 20)
        })
        .texts(Column::spaced("done", 8), |row| row.requests.completed)
        .texts(Column::spaced("failed", 7), |row| row.requests.failed)
        .values(Column::spaced("p50", 6), |row| Value::Time(row.requests.p50_ns))
        .values(Column::spaced("p99", 6), |row| Value::Time(row.requests.p99_ns))
        .values(Column::spaced("clock", 6), |row| Value::Time(Some(row.agent.clock_error_ns)))
        .texts(Column::spaced("busy%", 6), |row| {
            row.busy.map_or("-".to_owned(), |busy| format!("{:.0}", 100.0 * busy))
        })
        .texts(Column::of_words("checks", 8), |row| checks(row))
        .grid(layout.unit);
    let more = hosts.len().saturating_sub(ROWS_MAX);
    (grid, (more > 0).then(|| format!("{more} more, none of them worse: all are in the JSON")))
}

/// The names of the checks that find something on a host.
fn checks(row: &HostRow<'_>) -> String {
    let names: Vec<&str> = row.checks.iter().map(|check: &CheckId| check.name()).collect();
    if names.is_empty() { "-".to_owned() } else { names.join(",") }
}

/// The part of a long report.
pub(super) fn part(document: &mut Document, summary: &Summary, layout: &Layout) {
    let hosts = summary.hosts();
    if hosts.is_empty() {
        return;
    }
    let (grid, more) = table(&hosts, layout);
    document.heading("hosts");
    document.table(grid);
    document.facts("", more.into_iter().collect());
}
