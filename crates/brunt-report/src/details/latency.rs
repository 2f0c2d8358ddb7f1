//! The table of latencies: response time with the client's possible share, beside service time and send lag.
//!
//! Not a judgement (that is the status's). A percentile that the samples do not support is `-`, with what it needs
//! below it.

use super::Row;
use crate::paragraph;
use crate::quantity;
use crate::table::Table;
use crate::text::latency::is_unacknowledged;
use brunt_plan::quantile::Quantile;
use brunt_stats::client_basis::ClientBasis;
use brunt_stats::confidence::PercentileInterval;
use brunt_stats::latency::{LatencySummary, Percentile};
use brunt_stats::op_summary::OpSummary;

/// Percentiles that a line has room for.
const COLUMNS_MAX: usize = 5;

/// The table; where there are more percentiles than a line has room for, several.
pub(super) fn write(out: &mut String, rows: &[Row<'_>], basis: ClientBasis, quantiles: &[Quantile]) {
    for (part, quantiles) in quantiles.chunks(COLUMNS_MAX).enumerate() {
        if part > 0 {
            out.push('\n');
        }
        let names: Vec<String> = quantiles.iter().map(Quantile::to_string).collect();
        let mut heading = vec!["response time"];
        heading.extend(names.iter().map(String::as_str));
        heading.push("max");
        let mut table = Table::new(&heading);
        rows.iter().for_each(|row| push(&mut table, row, basis, quantiles));
        table.write(out);
    }
    let silent = rows.iter().filter(|row| is_unacknowledged(row.summary)).map(|row| row.name.as_str());
    let silent: Vec<&str> = silent.collect();
    if !silent.is_empty() {
        let text = format!("{}: no reply was requested, so there is no response time", silent.join(", "));
        paragraph::prose(out, "noreply", &text);
    }
}

fn push(table: &mut Table, row: &Row<'_>, basis: ClientBasis, quantiles: &[Quantile]) {
    let (summary, latency) = (row.summary, &row.summary.latency);
    table.push(times(&row.name, &latency.response.summary, quantiles));
    if latency.response.summary.count > 0 {
        table.push_some(confidence_intervals(summary, quantiles));
        table.push(client_errors(summary, basis, quantiles));
        table.push(times("  service time", &latency.service.summary, quantiles));
        table.push(times("  send lag", &latency.send_lag.summary, quantiles));
    }
    if latency.failed.summary.count > 0 {
        table.push(times("  including failures", &summary.including_failures(), quantiles));
    }
    if !is_unacknowledged(summary) {
        table.push_some(needs(summary, quantiles));
    }
}

fn shown<'a>(summary: &'a LatencySummary, quantiles: &'a [Quantile]) -> impl Iterator<Item = &'a Percentile> {
    summary.percentiles.iter().filter(|percentile| quantiles.contains(&percentile.quantile))
}

fn times(name: &str, summary: &LatencySummary, quantiles: &[Quantile]) -> Vec<String> {
    let mut cells =
        row(name, shown(summary, quantiles).map(|percentile| quantity::time_or_dash(percentile.value_ns)));
    cells.push(quantity::time_or_dash(summary.max_ns));
    cells
}

fn row(name: &str, cells: impl Iterator<Item = String>) -> Vec<String> {
    std::iter::once(name.to_owned()).chain(cells).collect()
}

/// Where the percentile above may lie, in its unit; `~` where that rests on too few batches. `None` where the window is too
/// short for any.
fn confidence_intervals(summary: &OpSummary, quantiles: &[Quantile]) -> Option<Vec<String>> {
    let text = |interval: &PercentileInterval| {
        quantity::interval(interval.value_ns, interval.low_ns, interval.high_ns, interval.is_marked())
    };
    let interval_of = |quantile: &Quantile| summary.interval(*quantile).map_or(String::new(), text);
    (!summary.intervals.is_empty()).then(|| row("  95 % CI", quantiles.iter().map(interval_of)))
}

/// Client error of the percentile above.
fn client_errors(summary: &OpSummary, basis: ClientBasis, quantiles: &[Quantile]) -> Vec<String> {
    let error_of =
        |quantile: &Quantile| summary.client_error_ns(*quantile).map_or(String::new(), quantity::time);
    row(&format!("  client error {}", basis.sign()), quantiles.iter().map(error_of))
}

/// For every percentile that is not given, how much longer the run must be at the rate it had, or where it had none,
/// how many more requests it takes. `None` where all are given.
fn needs(summary: &OpSummary, quantiles: &[Quantile]) -> Option<Vec<String>> {
    let rate = summary.rate.completed;
    let (name, cell): (_, &dyn Fn(u64) -> String) = if rate > 0.0 {
        ("  run longer by", &|requests| quantity::time((requests as f64 / rate * 1e9) as u64))
    } else {
        ("  more requests needed", &|requests| requests.to_string())
    };
    let response = &summary.latency.response.summary;
    let missing = |percentile: &Percentile| match percentile.value_ns {
        Some(_) => String::new(),
        None => cell(percentile.needs_more),
    };
    let is_any_missing = shown(response, quantiles).any(|percentile| percentile.value_ns.is_none());
    is_any_missing.then(|| row(name, shown(response, quantiles).map(missing)))
}
