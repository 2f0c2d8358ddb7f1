//! The last lines: should the numbers be believed, and if not, why not and what to do.
//!
//! Not the checks themselves. What was found is printed check by check, the worst first; what passed, by name.

use crate::paragraph::{self, printable};
use brunt_stats::verdict::{Check, CheckStatus, Verdict};

pub(super) fn write(out: &mut String, verdict: &Verdict) {
    let ids_of = |status: CheckStatus| {
        let ids = verdict.checks.iter().filter(move |check| check.status == status).map(|check| check.id);
        ids.collect::<Vec<_>>()
    };
    let passed = ids_of(CheckStatus::Ok);
    let passed_text = format!("{} checks passed ({})", passed.len(), passed.join(" "));
    let mut found: Vec<&Check> =
        verdict.checks.iter().filter(|check| check.status > CheckStatus::Ok).collect();
    found.sort_by_key(|check| std::cmp::Reverse(check.status));
    let status = verdict.status.name();
    if found.is_empty() {
        paragraph::prose(out, status, &passed_text);
        note(out, verdict);
        return;
    }
    let worst = found.iter().filter(|check| check.status == found[0].status);
    let ids: Vec<&str> = worst.map(|check| check.id).collect();
    out.push_str(&format!("{status}: {}\n", ids.join(" ")));
    for check in found {
        let word = check.status.name().replace('_', " ");
        paragraph::prose(out, &format!("  {}", check.id), &printable(&format!("{word}: {}", check.message)));
        paragraph::prose(out, "    fix", check.fix);
    }
    if !passed.is_empty() {
        paragraph::prose(out, "  passed", &passed.join(" "));
    }
    note(out, verdict);
}

/// What one run cannot be checked for, and yet belongs beside every number of one.
fn note(out: &mut String, verdict: &Verdict) {
    let alone =
        verdict.checks.iter().find(|check| check.id == "REPEAT" && check.status == CheckStatus::Skipped);
    if let Some(check) = alone {
        paragraph::prose(out, "  note", &format!("{} (--repeat 6)", check.message));
    }
}
