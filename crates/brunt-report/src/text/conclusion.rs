//! The end of the report, which is what a terminal shows above its prompt: what was asserted, the verdict, and at most three causes.
//!
//! Not the checks themselves. Each cause has its number and, behind an arrow, what helps.

use crate::details::outcome;
use crate::layout::Style;
use crate::metric;
use crate::page::{LINES_MAX, Page};
use brunt_stats::assertion::Assertion;
use brunt_stats::bound::Decision;
use brunt_stats::check::CheckStatus;
use brunt_stats::verdict::{Cause, CauseKind, Verdict};

/// Causes that are told of.
const CAUSES_MAX: usize = 3;
/// Assertions that are listed, those that do not hold first.
const ASSERTIONS_MAX: usize = 5;
/// Stands before a cause that no check shows by itself; its text names the checks that follow from it.
const CAUSE: &str = "CAUSE";
/// Where the text of a cause begins.
const CAUSE_INDENT: usize = 11;

/// What was found, and what helps.
pub(crate) struct FindingText {
    pub(crate) id: &'static str,
    pub(crate) text: String,
    pub(crate) fix: String,
}

/// The causes of what was found, the one that explains most first. The first line names that one already, and here stands what it explains.
pub(crate) fn causes(verdict: &Verdict) -> Vec<FindingText> {
    let leading = verdict.leading_cause();
    let told = |cause: &Cause| {
        let is_leading = leading == Some(cause);
        let explained = cause.follows.join(" ");
        let text = match (cause.kind, is_leading, explained.is_empty()) {
            (CauseKind::Finding, ..) | (_, _, true) => cause.sentence.clone(),
            (_, true, false) => format!("explains {explained}"),
            (_, false, false) => format!("{}, which explains {explained}", cause.sentence),
        };
        let id = cause.checks.first().copied().unwrap_or(CAUSE);
        let allowed = if verdict.judgement.allows(id) { "allowed: " } else { "" };
        FindingText { id, text: format!("{allowed}{text}"), fix: cause.fix.to_string() }
    };
    let found = verdict.checks.iter().filter(|check| check.status > CheckStatus::Ok);
    match verdict.causes() {
        // A campaign has none.
        [] => found
            .map(|check| FindingText {
                id: check.id,
                text: check.message.clone(),
                fix: check.fix.to_string(),
            })
            .collect(),
        causes => causes.iter().map(told).collect(),
    }
}

pub(super) fn assertions(page: &mut Page<'_>, assertions: &[Assertion]) {
    if assertions.is_empty() {
        return;
    }
    page.part();
    let mut ordered: Vec<&Assertion> = assertions.iter().collect();
    ordered.sort_by_key(|assertion| assertion.decision == Decision::Holds);
    let most = ASSERTIONS_MAX.min(page.room.rows);
    for assertion in ordered.iter().take(most) {
        let metric = assertion.objective.subject.metric;
        let measured =
            assertion.measured.map_or("not measured".to_owned(), |value| metric::text(metric, value));
        page.facts("assertion", &[assertion.objective.to_string(), measured, outcome(assertion)]);
    }
    if ordered.len() > most {
        let rest = &ordered[most..];
        let holding = rest.iter().filter(|assertion| assertion.decision == Decision::Holds).count();
        page.facts("", &[format!("+{} more, {holding} of them hold: --details", rest.len())]);
    }
}

/// `TRUSTED up to p99`, then why not further.
pub(crate) fn verdict(page: &mut Page<'_>, verdict: &Verdict) {
    page.part();
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

/// The causes that are told of: the first, others as long as the report stays short; and how many there are besides.
pub(crate) fn list(page: &mut Page<'_>, causes: &[FindingText]) {
    let mut told = 0;
    for FindingText { id, text, fix } in causes.iter().take(CAUSES_MAX) {
        let text = if fix.is_empty() { text.clone() } else { format!("{text} -> {fix}") };
        // The last line may be needed for those that are not told of.
        let end =
            page.line_count() + page.lines_of(CAUSE_INDENT, &text) + usize::from(told + 1 < causes.len());
        if told > 0 && end > LINES_MAX && !page.room.has_all_causes {
            break;
        }
        page.prose(&format!("  {id}"), CAUSE_INDENT, &text, Style::Plain);
        told += 1;
    }
    if causes.len() > told {
        page.prose("", 2, &format!("+{} more: --details", causes.len() - told), Style::Plain);
    }
}
