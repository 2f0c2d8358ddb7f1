//! The table of latencies: response times, service times and send lag by operation, in one unit, with the intervals and the client's part.

use super::markup::Markup;
use super::whisker::{self, Whisker};
use crate::figure::{Bound, Figures, unit_of};
use crate::layout::TimeUnit;
use crate::quantity::{self, rate};
use crate::row::{Row, rows};
use crate::run_document::latency::{is_unacknowledged, is_unbounded};
use brunt_plan::quantile::Quantile;
use brunt_stats::client_basis::ClientBasis;
use brunt_stats::latency::LatencySummary;
use brunt_stats::op_summary::OpSummary;
use brunt_stats::summary::Summary;

pub(super) fn section(markup: &mut Markup, summary: &Summary) {
    markup.raw("<section id=\"latency\">\n<h2>Latency by operation</h2>\n");
    let quantiles = summary.record.plan.shown_quantiles();
    let rows = rows(summary);
    let unit = unit(&rows, &quantiles);
    let axis = axis(&rows, &quantiles);
    markup.raw(
        "<p>Response times count from the instant a request was due, service times from the instant it was sent; the send lag lies between them. ± is half of the \
         95 % interval, ",
    );
    let basis = summary.client_basis();
    markup.text(&format!("{} the {}", basis.symbol(), basis.describe()));
    markup.raw(".</p>\n<div class=\"wide\"><table class=\"latency\" aria-label=\"Latency by operation\">");
    markup.raw("<thead><tr>");
    let unit_name = format!("time/{unit}");
    let headings = [unit_name.as_str(), ""].map(str::to_owned).into_iter();
    let numbers = quantiles.iter().map(ToString::to_string);
    let last = ["max", "done/s", "hit%", "failed"].map(str::to_owned);
    for (index, heading) in headings.chain(numbers).chain(last).enumerate() {
        markup.open("th", &[("scope", "col"), ("class", if index < 2 { "words" } else { "number" })]);
        markup.text(&heading);
    }
    markup.raw("<tbody>\n");
    for row in &rows {
        response(markup, summary, row, &quantiles, unit, axis);
        let held = &row.summary.latency;
        below(markup, "service", &held.service.summary, &quantiles, unit);
        below(markup, "send lag", &held.send_lag.summary, &quantiles, unit);
    }
    markup.raw("</table></div>\n</section>\n");
}

/// The times that a table shows in a column.
fn column(rows: &[Row<'_>], time: impl Fn(&LatencySummary) -> Option<u64>) -> Figures {
    let all = rows.iter().flat_map(|row| [&row.summary.latency.response, &row.summary.latency.service]);
    Figures { times_ns: all.map(|held| time(&held.summary)).collect(), bounds: Vec::new() }
}

fn unit(rows: &[Row<'_>], quantiles: &[Quantile]) -> TimeUnit {
    let mut columns: Vec<Figures> =
        quantiles.iter().map(|quantile| column(rows, |held| held.percentile_ns(*quantile))).collect();
    columns.push(column(rows, |held| held.max_ns));
    unit_of(&columns)
}

/// From the least of all ends of intervals to the largest, in nanoseconds.
fn axis(rows: &[Row<'_>], quantiles: &[Quantile]) -> (f64, f64) {
    let ends = rows.iter().flat_map(|row| {
        let values = quantiles
            .iter()
            .filter_map(|quantile| row.summary.latency.response.summary.percentile_ns(*quantile));
        let intervals = row.summary.intervals.iter().flat_map(|held| [Some(held.low_ns), held.high_ns]);
        values.chain(intervals.flatten())
    });
    let ends: Vec<u64> = ends.collect();
    let least = ends.iter().min().copied().unwrap_or(1).max(1);
    (least as f64, ends.iter().max().copied().unwrap_or(10) as f64)
}

fn text(ns: Option<u64>, unit: TimeUnit) -> String {
    Figures { times_ns: vec![ns], bounds: Vec::new() }.texts(unit).times.concat()
}

fn response(
    markup: &mut Markup,
    summary: &Summary,
    row: &Row<'_>,
    quantiles: &[Quantile],
    unit: TimeUnit,
    axis: (f64, f64),
) {
    let OpSummary { latency, requests, keys, rate: rates, .. } = row.summary;
    markup.raw("<tr class=\"response\"><th scope=row rowspan=3>");
    markup.text(&row.name('.'));
    markup.raw("<td class=words>response");
    for quantile in quantiles {
        let value_ns = latency.response.summary.percentile_ns(*quantile);
        markup.raw("<td class=time>");
        match value_ns {
            Some(value_ns) if !is_unbounded(summary) => {
                bounded(markup, row.summary, summary.client_basis(), (*quantile, value_ns), unit, axis);
            }
            held => markup.text(&text(held, unit)),
        }
    }
    let done = if is_unacknowledged(row.summary) { "-".to_owned() } else { rate(rates.completed) };
    let hits = quantity::exact_percent(keys.hit, keys.hit + keys.miss);
    let failed = requests.failed() + requests.abandoned;
    markup.raw("<td class=time>");
    markup.text(&text(latency.response.summary.max_ns, unit));
    for cell in [done, hits] {
        markup.raw("<td>");
        markup.text(&cell);
    }
    markup.raw(if failed > 0 { "<td class=bad>" } else { "<td>" });
    markup.text(&failed.to_string());
    markup.raw("\n");
}

/// A percentile with its interval, the client's part, and a picture of them.
fn bounded(
    markup: &mut Markup,
    of: &OpSummary,
    basis: ClientBasis,
    (quantile, value_ns): (Quantile, u64),
    unit: TimeUnit,
    axis: (f64, f64),
) {
    let error = of.client_error.iter().find(|error| error.quantile == quantile);
    let client = error.map_or(Bound::Unknown, |error| Bound::Within(error.error_ns));
    let ends = of.interval(quantile).map(|held| (held.low_ns, held.high_ns));
    let bounds = vec![vec![Bound::of_interval(value_ns, ends), client]];
    let texts = Figures { times_ns: vec![Some(value_ns)], bounds }.texts(unit);
    markup.text(&texts.times.concat());
    let signs = ["±", basis.symbol()];
    for (sign, bound) in signs.into_iter().zip(texts.bounds.concat()).filter(|(_, bound)| bound != "-") {
        markup.raw("<small>");
        markup.text(&if bound == "open" { bound } else { format!("{sign}{bound}") });
        markup.raw("</small>");
    }
    if let Some(held) = of.intervals.iter().find(|held| held.quantile == quantile) {
        let client_ns = error.map_or(0, |error| error.error_ns);
        let whisker = Whisker { value_ns, low_ns: held.low_ns, high_ns: held.high_ns, client_ns };
        markup.raw("<span class=whisker aria-hidden=true>");
        markup.picture(&whisker::picture(&whisker, axis));
        markup.raw("</span>");
    }
}

/// A row below that of the response times.
fn below(markup: &mut Markup, name: &str, times: &LatencySummary, quantiles: &[Quantile], unit: TimeUnit) {
    markup.raw("<tr class=\"below\"><td class=words>");
    markup.text(name);
    for ns in quantiles.iter().map(|quantile| times.percentile_ns(*quantile)).chain([times.max_ns]) {
        markup.raw("<td class=time>");
        markup.text(&text(ns, unit));
    }
    markup.raw("<td><td><td>\n");
}
