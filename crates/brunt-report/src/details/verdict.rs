//! The last lines: should the numbers be believed, and if not, why not and what to do.
//!
//! Not the checks themselves. The first line names what explains most, and says up to which percentile the run is trusted. Then comes every
//! cause with what follows from it in one line, the one that explains most first; behind them the checks that follow, which need no fix of
//! their own, and what passed, by name.

use crate::paragraph::{self, printable};
use brunt_stats::check::{Check, CheckStatus};
use brunt_stats::verdict::{Cause, CauseKind, Verdict};

pub(super) fn write(out: &mut String, verdict: &Verdict) {
    let checks_of = |status: CheckStatus| verdict.checks.iter().filter(move |check| check.status == status);
    let passed: Vec<&str> = checks_of(CheckStatus::Ok).map(|check| check.id).collect();
    let headline: Vec<String> = verdict.headline().iter().map(|part| printable(part)).collect();
    paragraph::facts(out, "", &headline);
    for cause in verdict.causes() {
        write_cause(out, verdict, cause);
    }
    let following = |check: &&Check| verdict.causes().iter().any(|cause| cause.follows.contains(&check.id));
    for check in verdict.checks.iter().filter(following) {
        finding(out, verdict, check);
    }
    // A campaign has no causes.
    if verdict.causes().is_empty() {
        for check in verdict.checks.iter().filter(|check| check.status > CheckStatus::Ok) {
            finding(out, verdict, check);
            paragraph::prose(out, "    fix", &check.fix);
        }
    }
    if !passed.is_empty() {
        paragraph::prose(out, "  passed", &passed.join(" "));
    }
    note(out, verdict);
}

fn write_cause(out: &mut String, verdict: &Verdict, cause: &Cause) {
    if cause.kind != CauseKind::Finding {
        paragraph::prose(out, "  CAUSE", &printable(&cause.sentence));
    }
    for check in verdict.checks.iter().filter(|check| cause.checks.contains(&check.id)) {
        finding(out, verdict, check);
    }
    if !cause.fix.is_empty() {
        paragraph::prose(out, "    fix", &cause.fix);
    }
    if !cause.follows.is_empty() {
        paragraph::prose(out, "    follows", &format!("from it: {}", cause.follows.join(" ")));
    }
}

fn finding(out: &mut String, verdict: &Verdict, check: &Check) {
    let text = printable(&format!("{}: {}", word(verdict, check), check.text()));
    paragraph::prose(out, &format!("  {}", check.id), &text);
}

/// What a check that found something comes to.
fn word(verdict: &Verdict, check: &Check) -> &'static str {
    match check.status {
        _ if verdict.judgement.allows(check.id) => "allowed",
        CheckStatus::NotTrusted => "not trusted",
        _ if verdict.counts(check) => "caution",
        _ => "note",
    }
}

/// What one run cannot be checked for, and yet belongs beside every number of one.
fn note(out: &mut String, verdict: &Verdict) {
    let alone =
        verdict.checks.iter().find(|check| check.id == "REPEAT" && check.status == CheckStatus::Skipped);
    if let Some(check) = alone {
        paragraph::prose(out, "  note", &format!("{} (--repeat 6)", check.message));
    }
}
