//! The head of a page: the status as its heading, what was run, and the sentences of the status.

use super::document::{self, Standing};
use super::markup::{Heading, Markup};
use crate::assertion_text::{self, AssertionText};
use crate::document::Document;
use crate::run_document::{conclusion, head};
use crate::wall_clock;
use brunt_stats::summary::Summary;

/// The status and the run.
pub(super) fn head(markup: &mut Markup, summary: &Summary) {
    let mut lines = head::lines(summary);
    let labels = &summary.record.plan.labels;
    lines.extend(wall_clock::of_run(summary, summary.window.measure_ns).map(|instant| {
        // To the second.
        let second = instant.split_once('.').map_or(instant.clone(), |(second, _)| format!("{second}Z"));
        ("date".to_owned(), vec![second.replace('T', " ").replace('Z', " UTC")])
    }));
    lines.push((
        "labels".to_owned(),
        labels.iter().map(|label| format!("{}={}", label.key, label.value)).collect(),
    ));
    document::header(markup, Standing::of(summary.status.status), &summary.status.headline(), &lines);
}

/// The sentences of the status, what was asserted, and where the slowest spent their time.
pub(super) fn answer(markup: &mut Markup, summary: &Summary) {
    markup.raw("<section id=\"answer\">\n<h2>What may be quoted</h2>\n");
    let mut document = Document::default();
    conclusion::status(&mut document, &summary.status);
    markup.document(&document);
    markup.raw("<p><a href=\"#checks\">All checks</a></p>\n");
    assertion_table(markup, summary.assertions.iter().map(AssertionText::of));
    markup.raw("</section>\n");
}

/// What was asserted, of a run or of a comparison.
pub(crate) fn assertion_table(markup: &mut Markup, texts: impl Iterator<Item = AssertionText>) {
    let row = |text: AssertionText| vec![text.subject.clone(), text.word().to_owned(), text.finding];
    let rows: Vec<Vec<String>> = assertion_text::sorted(texts).into_iter().map(row).collect();
    markup.table("Assertions", &["assertion", "outcome", "finding"].map(Heading::Words), &rows);
}
