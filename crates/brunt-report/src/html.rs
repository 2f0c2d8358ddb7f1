//! A result as one HTML page: everything that the report has, as tables and as charts that a browser draws.
//!
//! Complete without script, in print, and without a network: the page asks for nothing. Its script adds a cursor, zooming, and switches;
//! whatever it shows is in the tables of the page. Invariants: the same summary always gives the same bytes; a page has a bounded size,
//! however long the run; nothing that a user or a server wrote reaches the page but as escaped text.

mod by_op;
mod client_course;
mod columns;
pub(crate) mod course;
pub(crate) mod document;
pub(crate) mod frame;
mod heat;
mod latency;
mod live;
pub(crate) mod markup;
mod over_time;
pub(crate) mod overlay;
mod sections;
mod server_course;
pub(crate) mod several;
pub(crate) mod spectrum;

pub use live::LivePage;
pub use several::RESULTS_MAX;

use brunt_stats::summary::Summary;
use markup::Markup;
use std::io::{self, Write};

/// A result of more bytes, which one of a thousand servers has, is not kept in its page.
const RESULT_BYTES_MAX: usize = 80_000;
/// Sections and result together, where rows are not as many as the user wants: with style and script they are the page.
const CONTENT_BYTES_MAX: usize = 224_000;

/// Writes the page of a run.
///
/// # Errors
/// What `out` returns.
pub fn write(summary: &Summary, out: &mut dyn Write) -> io::Result<()> {
    let mut markup = Markup::default();
    sections::head(&mut markup, summary);
    sections::answer(&mut markup, summary, sections::LINK_TO_CHECKS);
    latency::section(&mut markup, summary);
    spectrum::section(&mut markup, summary);
    over_time::section(&mut markup, summary, columns::Columns::max_of(summary));
    by_op::section(&mut markup, summary);
    sections::events(&mut markup, summary);
    sections::accounting(&mut markup, summary);
    sections::environment(&mut markup, summary);
    let mut result = document::packed(&crate::json::line_without_record(summary)?);
    let sections = markup.into_text();
    let is_long = summary.record.plan.interval.is_none() && sections.len() + result.len() > CONTENT_BYTES_MAX;
    if is_long || result.len() > RESULT_BYTES_MAX {
        result.clear();
    }
    let title = summary.status.headline();
    let foot = format!("{title} · seed {}", summary.record.plan.seed);
    document::write(&title, &foot, &sections, &result, out)
}
