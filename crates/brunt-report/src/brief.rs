//! A result on one line of `key=value`: always the same keys, in the same order.
//!
//! Invariants: no value holds a blank; what is not known is `-`.

use crate::figure::{Figures, unit_of};
use crate::layout::Layout;
use crate::quantity::{exact_percent, rate};
use crate::run_document::latency::{interval, is_unacknowledged, is_unbounded};
use brunt_plan::quantile::Quantile;
use brunt_stats::summary::Summary;

/// The percentiles; the first without its interval.
const QUANTILES: [Quantile; 3] = [Quantile::P50, Quantile::P99, Quantile::P999];

/// The line of a run.
pub(crate) fn of_run(summary: &Summary, layout: &Layout) -> String {
    let total = &summary.total;
    let response = &total.latency.response.summary;
    let column = |(place, quantile): (usize, Quantile)| {
        let ends = (place > 0 && !is_unbounded(summary)).then(|| interval(total, quantile).into());
        Figures { times_ns: vec![response.percentile_ns(quantile)], bounds: ends.into_iter().collect() }
    };
    let max = Figures::of_times([response.max_ns]);
    let columns: Vec<Figures> = (0..).zip(QUANTILES).map(column).chain([max]).collect();
    let unit = layout.unit.unwrap_or_else(|| unit_of(&columns));
    let [p50, p99, p999, max] = [0, 1, 2, 3].map(|index| columns[index].first_text(unit));
    let (keys, requests) = (&total.keys, &total.requests);
    let hit = match keys.requested {
        0 => "-".to_owned(),
        asked => format!("{}%", exact_percent(keys.hit, asked)),
    };
    let status = &summary.status;
    format!(
        "status={} quote={} rate={}/s p50={p50} p99={p99} p99.9={p999} max={max} hit={hit} failed={} limit={}",
        status.status.name(),
        summary.status.quote.map_or("-".to_owned(), |quantile| quantile.to_string()),
        rate(if is_unacknowledged(total) { total.rate.sent } else { total.rate.completed }),
        requests.failed() + requests.abandoned,
        status.limit.as_ref().map_or("none", |limit| limit.bottleneck.name())
    )
}
