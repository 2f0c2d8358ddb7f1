//! The report that a person reads: about twenty lines.
//!
//! All that is known is in [`crate::details`], and in JSON for scripts; yet the table can be cut by columns. The order is that of the
//! questions: what was run, how long did requests take, what happened, what did it cost, and last, right above the prompt of a terminal, how
//! far the numbers may be trusted and what to do.

pub(crate) mod accounting;
pub(crate) mod conclusion;
pub(crate) mod events;
pub(crate) mod head;
pub(crate) mod latency;
pub mod panels;
pub(crate) mod so_far;

pub use so_far::{SoFarText, so_far};

use crate::assertion_text::AssertionText;
use crate::layout::Layout;
use crate::page::{LINES_MAX, Page, Room};
use brunt_stats::summary::Summary;
use std::io::{self, Write};

/// Writes the report.
///
/// # Errors
/// What `out` returns.
pub fn write(summary: &Summary, layout: &Layout, out: &mut dyn Write) -> io::Result<()> {
    out.write_all(report(summary, layout).as_bytes())
}

/// With as much as fits in the lines that a report has.
fn report(summary: &Summary, layout: &Layout) -> String {
    let mut text = String::new();
    for room in Room::STEPS {
        text = report_in(summary, layout, room);
        if text.lines().count() <= LINES_MAX {
            break;
        }
    }
    text
}

fn report_in(summary: &Summary, layout: &Layout, room: Room) -> String {
    let mut page = Page::new(layout);
    page.room = room;
    head::write(&mut page, summary);
    for grid in latency::grids(summary, layout, room) {
        page.separate();
        page.grid(&grid);
    }
    events::write(&mut page, summary);
    page.separate();
    page.facts("window", &head::window(summary));
    accounting::write(&mut page, summary);
    if let Some(until) = &summary.until {
        page.facts("until", &[until.to_string()]);
    }
    conclusion::assertions(&mut page, summary.assertions.iter().map(AssertionText::of));
    conclusion::status(&mut page, &summary.status);
    page.into_text()
}
