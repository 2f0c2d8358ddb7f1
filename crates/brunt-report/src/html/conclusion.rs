//! The head of a page: the verdict as its heading, what was run, and how far each percentile may be trusted and why.

use super::document::{self, Standing};
use super::markup::{Heading, Markup};
use crate::assertion_text::{self, AssertionText};
use crate::text::conclusion::causes;
use crate::text::head;
use crate::wall_clock;
use brunt_stats::check::CheckStatus;
use brunt_stats::summary::Summary;
use brunt_stats::verdict::Trust;

/// Causes that are at the top; the list of checks has all.
const CAUSES_MAX: usize = 3;

/// The verdict and the run.
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
    document::header(markup, Standing::of(summary.verdict.status), &summary.verdict.sentence(), &lines);
}

/// A box for each percentile, causes with their fixes, and what was asserted.
pub(super) fn trust(markup: &mut Markup, summary: &Summary) {
    markup
        .raw("<section id=\"trust\">\n<h2>How far these numbers may be quoted</h2>\n<ul class=\"trust\">\n");
    let mut count = 0;
    for trust in summary.verdict.shown_percentiles() {
        markup.open("li", &[("class", class(trust))]);
        markup.element("b", &trust.quantile.to_string());
        markup.element("span", trust.word.name());
        markup.close("li");
        count += 1;
    }
    markup.raw("</ul>\n");
    if count == 0 {
        markup.element("p", "No percentile is given: too few requests were answered.");
    }
    let causes = causes(&summary.verdict);
    if !causes.is_empty() {
        markup.raw("<ul class=\"causes\">\n");
        for cause in causes.iter().take(CAUSES_MAX) {
            markup.raw("<li><b>");
            markup.text(cause.id);
            markup.raw("</b> ");
            markup.text(&cause.text);
            if !cause.fix.is_empty() {
                markup.raw(" <span class=\"fix\">→ ");
                markup.text(&cause.fix);
                markup.raw("</span>");
            }
            markup.close("li");
        }
        markup.raw("</ul>\n");
    }
    if causes.len() > CAUSES_MAX {
        markup.raw("<p><a href=\"#checks\">All checks</a></p>\n");
    }
    assertion_table(markup, summary.assertions.iter().map(AssertionText::of));
    markup.raw("</section>\n");
}

const fn class(trust: &Trust) -> &'static str {
    match trust.status {
        CheckStatus::Skipped | CheckStatus::Ok => "trusted",
        CheckStatus::Caution => "caution",
        CheckStatus::NotTrusted => "distrusted",
    }
}

/// What was asserted, of a run or of a comparison.
pub(crate) fn assertion_table(markup: &mut Markup, texts: impl Iterator<Item = AssertionText>) {
    let row = |text: AssertionText| vec![text.subject.clone(), text.word().to_owned(), text.finding];
    let rows: Vec<Vec<String>> = assertion_text::sorted(texts).into_iter().map(row).collect();
    markup.table("Assertions", &["assertion", "outcome", "finding"].map(Heading::Words), &rows);
}
