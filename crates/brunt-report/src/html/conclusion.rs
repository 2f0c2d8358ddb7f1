//! The head of a page: the status as its heading, what was run, and what the checks found.

use super::document::{self, Standing};
use super::markup::{Heading, Markup};
use crate::assertion_text::{self, AssertionText};
use crate::text::head;
use crate::wall_clock;
use brunt_stats::summary::Summary;

/// The status and the run.
pub(super) fn head(markup: &mut Markup, summary: &Summary) {
    let mut lines = head::lines(summary);
    lines.push(("window".to_owned(), head::window(summary)));
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

/// What the checks found, what happened, and what was asserted.
pub(super) fn answer(markup: &mut Markup, summary: &Summary) {
    markup.raw("<section id=\"answer\">\n<h2>Answer</h2>\n");
    let status = &summary.status;
    let checks = status
        .findings()
        .into_iter()
        .map(|check| (check.id.name(), check.message.clone(), check.fix.to_string()));
    let facts = status.facts.iter().map(|fact| ("note", fact.clone(), String::new()));
    let lines: Vec<_> = checks.chain(facts).collect();
    if !lines.is_empty() {
        markup.raw("<ul class=\"findings\">\n");
    }
    for (word, text, fix) in &lines {
        markup.raw("<li><b>");
        markup.text(word);
        markup.raw("</b> ");
        markup.text(text);
        if !fix.is_empty() {
            markup.raw(" <span class=\"fix\">→ ");
            markup.text(fix);
            markup.raw("</span>");
        }
        markup.close("li");
    }
    if !lines.is_empty() {
        markup.raw("</ul>\n");
    }
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
