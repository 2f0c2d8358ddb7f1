//! The end of the report, which is what a terminal shows above its prompt: what was asserted, the status, and at most three findings.
//!
//! Each finding has its number and, behind an arrow, what helps.

use crate::assertion_text::{self, AssertionText};
use crate::layout::Style;
use crate::page::Page;
use brunt_stats::check::{CheckId, CheckStatus};
use brunt_stats::status::{RunStatus, Status};

/// Findings that are listed.
const FINDINGS_MAX: usize = 3;
/// Where the text of a finding begins.
const FINDING_INDENT: usize = 14;

/// What was asserted, of a run or of a comparison; none is ever left out.
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
    page.headline(&[status.headline()], |word| match word {
        "OK:" => Style::Good,
        "CAUTION:" => Style::Doubt,
        "INVALID:" => Style::Bad,
        _ => Style::Bold,
    });
    let lines = findings(status);
    for (name, text) in lines.iter().take(FINDINGS_MAX) {
        page.prose(&format!("  {name}"), FINDING_INDENT, text, Style::Plain);
    }
    if let Some(more @ 1..) = lines.len().checked_sub(FINDINGS_MAX) {
        page.prose("", 2, &format!("{more} more: --details"), Style::Plain);
    }
}

/// What the checks found and what happened, each with its name. What limits a closed loop is told, though it is no doubt.
pub(crate) fn findings(status: &RunStatus) -> Vec<(&'static str, String)> {
    let found = status.findings().into_iter().map(|check| (check.id.name(), check.text()));
    let load =
        status.check(CheckId::Load).filter(|check| check.status == CheckStatus::Ok && status.limit.is_some());
    let load = load.map(|check| (check.id.name(), check.text()));
    let facts = status.facts.iter().map(|fact| ("note", fact.clone()));
    found.chain(load).chain(facts).collect()
}

/// The colour of a status.
pub(crate) const fn style(status: Status) -> Style {
    match status {
        Status::Ok => Style::Good,
        Status::Caution => Style::Doubt,
        Status::Invalid => Style::Bad,
    }
}
