//! The end of the report, which is what a terminal shows above its prompt: what was asserted, the verdict, and at most three causes.
//!
//! Not the checks themselves. Each cause has its number and, behind an arrow, what helps.

use crate::details::outcome;
use crate::layout::Style;
use crate::metric;
use crate::page::Page;
use brunt_stats::assertion::Assertion;
use brunt_stats::bound::Decision;
use brunt_stats::verdict::{Cause, CauseKind, CheckStatus, Verdict};

/// Causes that are told of.
const CAUSES_MAX: usize = 3;
/// Lines of a report that every terminal shows at once.
const LINES_MAX: usize = 30;
/// Assertions that are listed, those that do not hold first.
const ASSERTIONS_MAX: usize = 5;
/// Where the text of a cause begins.
const CAUSE_INDENT: usize = 11;

/// What was found, and what helps.
pub(crate) struct Told {
    id: String,
    text: String,
    fix: String,
}

/// The causes of what was found, the one that explains most first. The first line names that one already, and here stands what it explains.
pub(crate) fn causes(verdict: &Verdict) -> Vec<Told> {
    let leading = verdict.leading_cause();
    let told = |cause: &Cause| {
        let is_leading = leading == Some(cause);
        let explained = cause.follows.join(" ");
        let text = match (cause.kind, is_leading, explained.is_empty()) {
            (CauseKind::Finding, ..) => first_clause(&cause.sentence).to_owned(),
            (_, _, true) => cause.sentence.clone(),
            (_, true, false) => format!("explains {explained}"),
            (_, false, false) => format!("{}, which explains {explained}", cause.sentence),
        };
        let id = cause.checks.first().map_or_else(|| cause.kind.name().to_uppercase(), |id| (*id).to_owned());
        let allowed = if verdict.judgement.allows(&id) { "allowed: " } else { "" };
        Told { id, text: format!("{allowed}{}", ungrouped(&text)), fix: first_clause(cause.fix).to_owned() }
    };
    let found = verdict.checks.iter().filter(|check| check.status > CheckStatus::Ok);
    match verdict.causes() {
        // A campaign has none.
        [] => found
            .map(|check| Told {
                id: check.id.to_owned(),
                text: ungrouped(first_clause(&check.message)),
                fix: first_clause(check.fix).to_owned(),
            })
            .collect(),
        causes => causes.iter().map(told).collect(),
    }
}

/// What stands before the first semicolon; `--details` has the rest.
fn first_clause(text: &str) -> &str {
    text.split_once("; ").map_or(text, |(first, _)| first)
}

/// Numbers without grouping, so that no line ends within one. A group has three digits, and what stands before it is a number by itself.
fn ungrouped(text: &str) -> String {
    let mut words: Vec<String> = Vec::new();
    for word in text.split(' ') {
        let digits = word.bytes().take_while(u8::is_ascii_digit).count();
        let is_number = |held: &&mut String| {
            let number = held.trim_start_matches(['(', '+', '-']);
            !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit())
        };
        match words.last_mut().filter(is_number) {
            Some(number) if digits == 3 => number.push_str(word),
            _ => words.push(word.to_owned()),
        }
    }
    words.join(" ")
}

pub(super) fn assertions(page: &mut Page<'_>, assertions: &[Assertion]) {
    if assertions.is_empty() {
        return;
    }
    page.part();
    let mut ordered: Vec<&Assertion> = assertions.iter().collect();
    ordered.sort_by_key(|assertion| assertion.decision == Decision::Holds);
    for assertion in ordered.iter().take(ASSERTIONS_MAX) {
        let metric = assertion.objective.subject.metric;
        let measured =
            assertion.measured.map_or("not measured".to_owned(), |value| metric::text(metric, value));
        page.facts("assertion", &[assertion.objective.to_string(), measured, outcome(assertion)]);
    }
    if ordered.len() > ASSERTIONS_MAX {
        let rest = &ordered[ASSERTIONS_MAX..];
        let holding = rest.iter().filter(|assertion| assertion.decision == Decision::Holds).count();
        page.facts("", &[format!("+{} more, {holding} of them hold: --details", rest.len())]);
    }
}

/// `TRUSTED up to p99`, then why not further.
pub(crate) fn verdict(page: &mut Page<'_>, verdict: &Verdict) {
    page.part();
    let passed = verdict.checks.iter().filter(|check| check.status == CheckStatus::Ok).count();
    let mut facts: Vec<String> = verdict.sentence().split(" · ").map(ungrouped).collect();
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
pub(crate) fn list(page: &mut Page<'_>, causes: &[Told]) {
    let mut told = 0;
    for Told { id, text, fix } in causes.iter().take(CAUSES_MAX) {
        let text = if fix.is_empty() { text.clone() } else { format!("{text} -> {fix}") };
        // The last line may be needed for those that are not told of.
        let end =
            page.line_count() + page.lines_of(CAUSE_INDENT, &text) + usize::from(told + 1 < causes.len());
        if told > 0 && end > LINES_MAX {
            break;
        }
        page.prose(&format!("  {id}"), CAUSE_INDENT, &text, Style::Plain);
        told += 1;
    }
    if causes.len() > told {
        page.prose("", 2, &format!("+{} more: --details", causes.len() - told), Style::Plain);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_not_grouped() {
        for (text, expected) in [
            ("12 001 of 4 200 000 requests (4 000/s)", "12001 of 4200000 requests (4000/s)"),
            ("p50 100 us, worker 0 was busy", "p50 100 us, worker 0 was busy"),
        ] {
            assert_eq!(ungrouped(text), expected);
        }
    }

    #[test]
    fn what_follows_a_semicolon_is_left_to_the_details() {
        assert_eq!(first_clause("one, two; three; four"), "one, two");
        assert_eq!(first_clause("one"), "one");
    }
}
