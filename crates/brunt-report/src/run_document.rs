//! A run as a document: what was run, one table of response times, what happened, what became of requests, what was asserted, and last,
//! right above the prompt of a terminal, what may be quoted.
//!
//! Each subject has a file here, with its lines in a short report and its part of a long one. Invariant: a long report is the short one with
//! parts between the assertions and the status.

pub(crate) mod accounting;
pub(crate) mod client;
pub(crate) mod conclusion;
mod connections;
pub(crate) mod events;
pub(crate) mod head;
pub(crate) mod latency;
pub mod panels;
pub(crate) mod servers;
mod so_far;

pub use latency::OpRows;
pub use so_far::{Part, SoFarText, so_far};

use crate::assertion_text::AssertionText;
use crate::document::{Content, Document, Level};
use crate::layout::Layout;
use brunt_stats::summary::Summary;

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
    connections::part(&mut document, summary);
    servers::part(&mut document, summary, layout);
    client::part(&mut document, summary, layout);
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
        ("values", 6, accounting::values(summary)),
        ("errors", 1, accounting::errors(summary)),
        ("connections", 5, connections::connections(summary)),
        ("cluster", 5, servers::cluster(summary)),
        ("tls", 8, connections::tls(summary)),
        ("udp", 5, connections::udp(summary)),
        ("server", 2, servers::server(summary)),
        ("client", 2, client::client(summary)),
        ("slowest 1 %", 1, client::slowest(summary.slowest().map(|slowest| slowest.parts()))),
        ("until", 0, summary.until.iter().map(ToString::to_string).collect()),
    ]
}
