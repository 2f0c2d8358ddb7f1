//! A run as a document: what was run, one table of response times, what happened, what became of requests, what was asserted, and last,
//! right above the prompt of a terminal, what may be quoted.
//!
//! Each subject has a file here, with its lines in a short report and its part of a long one. Invariant: a long report is the short one with
//! parts between the assertions and the status.

pub(crate) mod accounting;
pub(crate) mod client;
pub(crate) mod conclusion;
pub(crate) mod events;
pub(crate) mod head;
pub(crate) mod hosts;
pub(crate) mod latency;
pub(crate) mod servers;
pub mod so_far;

pub use latency::OpRows;
pub use so_far::{Part, SoFarText, so_far};

use crate::assertion_text::AssertionText;
use crate::document::{Content, Document, Level};
use crate::figure::{Figures, unit_of};
use crate::layout::Layout;
use crate::quantity::{exact_percent, rate};
use brunt_plan::quantile::Quantile;
use brunt_stats::summary::Summary;
use latency::{interval, is_unacknowledged, is_unbounded};

/// The whole document; its tables have the unit of the layout, that of response times these rows.
pub(crate) fn document(summary: &Summary, layout: &Layout, rows: OpRows) -> Document {
    let mut document = Document::default();
    head::write(&mut document, summary);
    document.gap();
    latency::tables(summary, layout, rows).into_iter().for_each(|grid| document.table(grid));
    events::write(&mut document, summary);
    servers::write(&mut document, summary);
    facts(&mut document, summary);
    document.assertions(summary.assertions.iter().map(AssertionText::of));
    document.begin(Level::Long);
    latency::part(&mut document, summary, layout);
    accounting::part(&mut document, summary);
    events::seconds(&mut document, summary, layout);
    events::part(&mut document, summary);
    servers::connections_part(&mut document, summary);
    servers::part(&mut document, summary, layout);
    client::part(&mut document, summary, layout);
    hosts::part(&mut document, summary, layout);
    conclusion::steady(&mut document, summary);
    conclusion::checks(&mut document, summary);
    head::part(&mut document, summary);
    document.begin(Level::Short);
    conclusion::status(&mut document, &summary.status);
    document
}

/// What became of requests and keys, what they cost, and where the slowest spent their time, in a line each.
fn facts(document: &mut Document, summary: &Summary) {
    document.gap();
    for (label, rank, facts) in fact_lines(summary) {
        document.push(rank, Content::Facts { label: label.to_owned(), facts });
    }
    events::over_time(document, summary);
}

/// The same by label, with the rank of each.
pub(crate) fn fact_lines(summary: &Summary) -> Vec<(&'static str, u8, Vec<String>)> {
    vec![
        ("requests", 0, accounting::requests(summary)),
        ("traces", 9, accounting::traces(summary)),
        ("values", 8, accounting::values(summary)),
        ("stored", 1, accounting::stored(summary)),
        ("errors", 2, accounting::errors(summary)),
        ("connections", 7, servers::connections(summary)),
        ("cluster", 7, servers::cluster(summary)),
        ("tls", 10, servers::tls(summary)),
        ("udp", 7, servers::udp(summary)),
        ("server", 4, servers::server(summary)),
        ("client", 4, client::client(summary)),
        ("hosts", 6, hosts::worst(summary)),
        ("slowest 1 %", 3, client::slowest(summary.slowest().map(|slowest| slowest.parts()))),
        ("until", 0, summary.until.iter().map(ToString::to_string).collect()),
    ]
}

/// The percentiles of a line; the first without its interval.
const QUANTILES: [Quantile; 3] = [Quantile::P50, Quantile::P99, Quantile::P999];

/// A run on one line of `key=value`: always the same keys, in the same order. No value holds a blank; what is not known is `-`.
pub(crate) fn brief(summary: &Summary, layout: &Layout) -> String {
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
