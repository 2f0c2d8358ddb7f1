//! REPEAT: do the runs of one plan agree?
//!
//! Not of anything inside a run.

use super::Status;
use crate::check::{Check, CheckId, CheckStatus};
use crate::number_text::percent;
use crate::repeat::{DISAGREEMENT_MIN, Spread};

pub(super) fn check(spreads: &[(String, Spread)]) -> Check {
    let compared = spreads.iter().filter(|(_, spread)| spread.runs > 1);
    let order = |spread: &Spread| (spread.disagrees(), spread.relative_range());
    let worst = compared.max_by(|(_, one), (_, other)| {
        let ((one_found, one), (other_found, other)) = (order(one), order(other));
        one_found.cmp(&other_found).then(one.total_cmp(&other))
    });
    let Some((name, spread)) = worst else { return Check::skipped(CheckId::Repeat, "one run") };
    let range = percent(spread.relative_range());
    let check = if spread.disagrees() {
        let message = format!("the runs disagree: {name} spreads over {range} of its median");
        Check::found(CheckId::Repeat, CheckStatus::Caution, message)
            .with_fix("quote the range, and find what differs from run to run: a restart, memory layout, another program")
    } else {
        Check::ok(
            CheckId::Repeat,
            format!("{} runs agree: {name} spreads over {range} of its median", spread.runs),
        )
    };
    check.with_value(spread.relative_range(), DISAGREEMENT_MIN)
}

/// The sentence of a campaign.
pub(super) fn message(runs: &[Status], repeat: &Check) -> String {
    let count = |status: Status| runs.iter().filter(|run| **run == status).count();
    let (invalid, cautious) = (count(Status::Invalid), count(Status::Caution));
    let of = |number: usize, status: Status| {
        (number > 0).then(|| format!("{number} of {} runs {}", runs.len(), status.name()))
    };
    let mut parts: Vec<String> =
        [of(invalid, Status::Invalid), of(cautious, Status::Caution)].into_iter().flatten().collect();
    if repeat.status > CheckStatus::Ok {
        parts.push(repeat.message.clone());
    }
    if parts.is_empty() { format!("all {} runs are OK", runs.len()) } else { parts.join("; ") }
}
