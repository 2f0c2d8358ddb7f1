//! The report that a person reads: about twenty lines.
//!
//! All that is known is in [`crate::details`], and in JSON for scripts; yet the table can be cut by columns. The order is that of the
//! questions: what was run, how long did requests take, what happened, what did it cost, and last, right above the prompt of a terminal, how
//! far the numbers may be trusted and what to do.

mod accounting;
pub(crate) mod conclusion;
mod events;
pub(crate) mod head;
pub(crate) mod latency;

use crate::layout::Layout;
use crate::page::Page;
use brunt_stats::summary::Summary;
use std::io::{self, Write};

/// Writes the report.
///
/// # Errors
/// What `out` returns.
pub fn write(summary: &Summary, layout: &Layout, out: &mut dyn Write) -> io::Result<()> {
    out.write_all(report(summary, layout).as_bytes())
}

fn report(summary: &Summary, layout: &Layout) -> String {
    let mut page = Page::new(layout);
    head::write(&mut page, summary);
    for grid in latency::grids(summary, layout) {
        page.part();
        page.grid(&grid);
    }
    events::write(&mut page, summary);
    page.part();
    accounting::write(&mut page, summary);
    if let Some(looked) = &summary.looked {
        page.facts("until", &[looked.to_string()]);
    }
    conclusion::assertions(&mut page, &summary.assertions);
    conclusion::verdict(&mut page, &summary.verdict);
    page.into_text()
}
