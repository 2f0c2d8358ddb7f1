//! What happened beside answering: outages, faults of connections, replies that were errors. Absent where nothing did.

use super::markup::Markup;
use crate::document::{Document, Level};
use crate::run_document::{accounting, events};
use brunt_stats::summary::Summary;

pub(super) fn section(markup: &mut Markup, summary: &Summary) {
    let mut document = Document::default();
    events::part(&mut document, summary);
    accounting::replies(&mut document, summary);
    if document.is_empty(Level::Long) {
        return;
    }
    markup.raw("<section id=\"events\">\n<h2>Outages and errors</h2>\n");
    markup.document(&document);
    markup.raw("</section>\n");
}
