//! The last lines: should the numbers be believed, and if not, why not and what to do.
//!
//! Not the checks themselves. The first line says up to which percentile the run is trusted. What was found is printed check by check, the
//! worst first, causes last; what passed, by name.

use crate::paragraph::{self, printable};
use brunt_stats::verdict::{Check, CheckStatus, Verdict};

pub(super) fn write(out: &mut String, verdict: &Verdict) {
    let ids_of = |status: CheckStatus| {
        let ids = verdict.checks.iter().filter(move |check| check.status == status).map(|check| check.id);
        ids.collect::<Vec<_>>()
    };
    let passed = ids_of(CheckStatus::Ok);
    let mut found: Vec<&Check> =
        verdict.checks.iter().filter(|check| check.status > CheckStatus::Ok).collect();
    found.sort_by_key(|check| (std::cmp::Reverse(check.status), verdict.is_cause(check)));
    out.push_str(&verdict.sentence());
    out.push('\n');
    for check in found {
        let text = printable(&format!("{}: {}", word(verdict, check), check.message));
        paragraph::prose(out, &format!("  {}", check.id), &text);
        paragraph::prose(out, "    fix", check.fix);
    }
    if !passed.is_empty() {
        paragraph::prose(out, "  passed", &passed.join(" "));
    }
    note(out, verdict);
}

/// What a check that found something comes to.
fn word(verdict: &Verdict, check: &Check) -> &'static str {
    match check.status {
        _ if verdict.judgement.allows(check.id) => "allowed",
        CheckStatus::NotTrusted => "not trusted",
        _ if verdict.is_cause(check) => "cause",
        _ => "caution",
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
