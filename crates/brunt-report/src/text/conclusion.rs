//! What was asserted of a comparison and what a campaign comes to, on the pages that they still have.

pub(crate) use crate::run_document::conclusion::{findings, style};

use crate::assertion_text::{self, AssertionText};
use crate::layout::Style;
use crate::page::Page;
use brunt_stats::status::RunStatus;

/// Findings that are listed.
const FINDINGS_MAX: usize = 3;
/// Where the text of a finding begins.
const FINDING_INDENT: usize = 14;

/// None is ever left out.
pub(crate) fn assertions(page: &mut Page<'_>, texts: impl Iterator<Item = AssertionText>) {
    let texts = assertion_text::sorted(texts);
    if !texts.is_empty() {
        page.separate();
    }
    for text in texts {
        page.finding(text.word(), &format!("{}: {}", text.subject, text.finding), text.style());
    }
}

/// The status with its sentence, then what the checks found.
pub(crate) fn status(page: &mut Page<'_>, status: &RunStatus) {
    page.separate();
    let word = format!("{}:", status.status.name());
    let paint = |held: &str| if held == word { style(status.status) } else { Style::Bold };
    page.headline(&[status.headline()], paint);
    let lines = findings(status);
    for (name, text) in lines.iter().take(FINDINGS_MAX) {
        page.prose(&format!("  {name}"), FINDING_INDENT, text, Style::Plain);
    }
    if let Some(more @ 1..) = lines.len().checked_sub(FINDINGS_MAX) {
        page.prose("", 2, &format!("{more} more: --details"), Style::Plain);
    }
}
