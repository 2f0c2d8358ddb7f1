//! The end of the report, which is what a terminal shows above its prompt: what was asserted, the verdict, and at most three causes.
//!
//! Each cause has its number and, behind an arrow, what helps.

use crate::assertion_text::{self, AssertionText};
use crate::layout::Style;
use crate::page::{LINES_MAX, Page};
use brunt_stats::check::CheckStatus;
use brunt_stats::verdict::{Cause, CauseKind, Verdict};

/// Causes that are listed.
const CAUSES_MAX: usize = 3;
/// Stands before a cause that no check shows by itself; its text names the checks that follow from it.
const CAUSE: &str = "CAUSE";
/// Where the text of a cause begins.
const CAUSE_INDENT: usize = 11;

/// What was found, and what helps.
pub(crate) struct FindingText {
    pub(crate) id: &'static str,
    pub(crate) text: String,
    pub(crate) fix: String,
    /// The run is NOT TRUSTED for it, or its requests were not carried out: this is never among those that are only counted.
    is_kept: bool,
}

/// The causes of what was found: the one that explains most, then those for which the run is NOT TRUSTED. The first line names the first
/// already, and this shows what it explains.
pub(crate) fn causes(verdict: &Verdict) -> Vec<FindingText> {
    let leading = verdict.leading_cause();
    let text_of = |cause: &Cause| {
        let is_leading = leading == Some(cause);
        let explained = cause.follows.join(" ");
        let text = match (cause.kind, is_leading, explained.is_empty()) {
            (CauseKind::Finding, ..) | (_, _, true) => cause.sentence.clone(),
            (_, true, false) => format!("explains {explained}"),
            (_, false, false) => format!("{}, which explains {explained}", cause.sentence),
        };
        let id = cause.checks.first().copied().unwrap_or(CAUSE);
        let allowed = if verdict.judgement.allows(id) { "allowed: " } else { "" };
        let is_failure = matches!(cause.kind, CauseKind::Malformed | CauseKind::ErrorReplies);
        let is_convicting = verdict.checks.iter().any(|check| {
            check.status == CheckStatus::NotTrusted
                && verdict.counts(check)
                && cause.ids().any(|id| id == check.id)
        });
        (
            is_leading,
            FindingText {
                id,
                text: format!("{allowed}{text}"),
                fix: cause.fix.to_string(),
                is_kept: is_convicting || is_failure,
            },
        )
    };
    let found = verdict.checks.iter().filter(|check| check.status > CheckStatus::Ok);
    match verdict.causes() {
        // A campaign has none.
        [] => found
            .map(|check| FindingText {
                id: check.id,
                text: check.message.clone(),
                fix: check.fix.to_string(),
                is_kept: check.status == CheckStatus::NotTrusted,
            })
            .collect(),
        causes => {
            let mut texts: Vec<(bool, FindingText)> = causes.iter().map(text_of).collect();
            texts.sort_by_key(|(is_leading, text)| (!is_leading, !text.is_kept));
            texts.into_iter().map(|(_, text)| text).collect()
        }
    }
}

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

/// `TRUSTED up to p99`, then why not further.
pub(crate) fn verdict(page: &mut Page<'_>, verdict: &Verdict) {
    page.separate();
    let passed = verdict.checks.iter().filter(|check| check.status == CheckStatus::Ok).count();
    let mut facts = verdict.headline();
    let causes = causes(verdict);
    if causes.is_empty() {
        facts.push(format!("{passed} checks passed"));
    }
    // How much runs differ no single one knows, and yet it belongs beside each of its numbers.
    if verdict.checks.iter().any(|check| check.id == "REPEAT" && check.status == CheckStatus::Skipped) {
        facts.push("1 run".to_owned());
    }
    page.headline(&facts, |word| match word.trim_end_matches(':') {
        "TRUSTED" if facts.iter().any(|fact| fact.starts_with("NOT ")) => Style::Bad,
        "TRUSTED" => Style::Good,
        "CAUTION" => Style::Doubt,
        "NOT" => Style::Bad,
        _ => Style::Bold,
    });
    list(page, &causes);
}

/// The first cause, those for which the run is NOT TRUSTED, others as long as the report stays short; and how many there are besides.
pub(crate) fn list(page: &mut Page<'_>, causes: &[FindingText]) {
    let mut listed = 0;
    for FindingText { id, text, fix, is_kept } in causes.iter().take(CAUSES_MAX) {
        let full = if fix.is_empty() { text.clone() } else { format!("{text} -> {fix}") };
        // The last line may be needed for the number of the others.
        let others = usize::from(listed + 1 < causes.len());
        let end = page.line_count() + page.lines_of(CAUSE_INDENT, &full) + others;
        let has_room = listed == 0 || end <= LINES_MAX || page.room.has_all_causes;
        if !has_room && !is_kept {
            break;
        }
        // Without room its number is there, and what helps is in the details.
        let text = if has_room { &full } else { text };
        page.prose(&format!("  {id}"), CAUSE_INDENT, text, Style::Plain);
        listed += 1;
    }
    if causes.len() > listed {
        page.prose("", 2, &format!("+{} more: --details", causes.len() - listed), Style::Plain);
    }
}
