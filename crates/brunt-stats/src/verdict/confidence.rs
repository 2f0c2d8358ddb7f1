//! Checks of how well the percentiles are known: thin intervals, and a precision that was asked for and not reached.
//!
//! Not of whether they are right. A thin or wide interval is marked where it is printed; a verdict calls for care only for
//! the headline, the p99 of all requests, because a report always has some percentile that is nearly out of reach.

use super::Evidence;
use crate::batch::{BATCHES, SLICES_MIN};
use crate::check::{Check, CheckStatus};
use crate::confidence::{PercentileInterval, requests_for};
use crate::goal::{EFFECTIVE_ABOVE_MIN, Goal, GoalState};
use crate::number_text::{percent, rounded};
use brunt_plan::quantile::Quantile;

/// Share of the batches that may lie below a percentile all through.
const UNREACHED: f64 = 1.0 / 3.0;
/// A thin interval costs a status when half of it is also more than this share of its percentile: else the few batches
/// agree, and the mark says enough.
const WIDE: f64 = 0.2;

fn unreached(interval: &PercentileInterval) -> f64 {
    1.0 - f64::from(interval.batches_reached) / f64::from(interval.batches.max(1))
}

/// Does the interval of the headline rest on too few batches?
pub(super) fn thin(evidence: &Evidence<'_>) -> Check {
    if evidence.slices < SLICES_MIN {
        return Check::skipped("CI-THIN", "a window of less than 1 s has no confidence intervals", UNREACHED);
    }
    let marked: Vec<String> = evidence
        .intervals
        .iter()
        .filter(|interval| interval.is_marked())
        .map(|interval| interval.quantile.to_string())
        .collect();
    let Some(headline) = evidence.intervals.iter().find(|interval| interval.quantile == Quantile::P99) else {
        return Check::skipped("CI-THIN", "too few requests for a p99 of all of them", UNREACHED);
    };
    let is_wide = headline.relative_half_width().is_none_or(|half_width| half_width > WIDE);
    let is_convicted = headline.is_marked() && is_wide && evidence.slices >= BATCHES;
    let PercentileInterval { batches, batches_reached, .. } = headline;
    let (status, message) = match (is_convicted, headline.high_ns) {
        (true, None) => {
            let message = format!(
                "the p99 of all requests may be anything above its interval's lower end: it rests on {batches_reached} \
                 of {batches} batches of the window"
            );
            (CheckStatus::Caution, message)
        }
        (true, Some(_)) => {
            let message = format!(
                "the p99 of all requests rests on {batches_reached} of {batches} batches of the window, so its interval \
                 may be too narrow"
            );
            (CheckStatus::Caution, message)
        }
        (false, _) if marked.is_empty() => {
            let message =
                "the interval of every percentile of all requests rests on enough batches of the window";
            (CheckStatus::Ok, message.to_owned())
        }
        (false, _) => (CheckStatus::Ok, format!("thin, and marked ~: {}", marked.join(" "))),
    };
    let fix = "run longer (--time), or until it is known (--until 'p99=5%')";
    Check::judged("CI-THIN", status, message, fix, unreached(headline), UNREACHED)
}

/// Was the precision reached that was asked for?
pub(super) fn until(evidence: &Evidence<'_>) -> Check {
    let skipped = |message| Check::skipped("UNTIL", message, 0.0);
    let Some(until) = &evidence.until else { return skipped("no precision was asked for") };
    if until.is_interrupted {
        return skipped("the run was interrupted");
    }
    let open: Vec<String> = until.findings.iter().filter_map(|(goal, finding)| open(goal, finding)).collect();
    let (status, mut clauses) = match (until.enough_at_ns, open.as_slice(), until.held_by.as_slice()) {
        (Some(_), ..) | (None, [], []) => (CheckStatus::Ok, until.clauses()),
        (None, [], held_by) => {
            let message =
                format!("the intervals were narrow enough, but for what {} found", held_by.join(" "));
            (CheckStatus::Caution, vec![message])
        }
        (None, ..) if until.aborted_at_ns.is_some() => (CheckStatus::Caution, until.clauses()),
        (None, [first, others @ ..], _) => {
            let first = format!("the time was up first: {first}");
            (CheckStatus::Caution, [&[first], others].concat())
        }
    };
    let message = clauses.remove(0);
    let fix = match open.as_slice() {
        _ if until.aborted_at_ns.is_some() => "see the fix of LAG",
        [] => "see the fix of each check that is named",
        _ => "allow more --max-time, or ask for less precision with --until",
    };
    Check::judged("UNTIL", status, message, fix, open.len() as f64, 0.0).with(clauses)
}

/// What a goal lacks, if anything.
fn open(goal: &Goal, finding: &GoalState) -> Option<String> {
    match (goal, finding) {
        (_, GoalState::Reached(_)) => None,
        (goal, GoalState::Unknown) => Some(format!("{goal}: too few requests for an interval")),
        (Goal::Width(precision), GoalState::Open(interval)) => {
            let found = match interval.relative_half_width() {
                Some(half_width) => format!("half the interval is {} of it", percent(half_width)),
                None => "the interval has no upper end".to_owned(),
            };
            let (effect, half_width) = (interval.design_effect.max(1.0), precision.half_width.as_f64());
            let enough_above = EFFECTIVE_ABOVE_MIN * effect / interval.quantile.share_above();
            let requests = requests_for(interval.quantile, half_width, effect).max(enough_above);
            let above = interval.effective_above();
            Some(format!(
                "{goal}: {found}, with {} independent requests above it of {EFFECTIVE_ABOVE_MIN:.0} wanted, which takes about {} \
                 requests",
                rounded(above),
                rounded(requests)
            ))
        }
        (Goal::Excludes(_), GoalState::Open(_)) => {
            Some(format!("{goal}: undecided, its bounds lie on both sides"))
        }
    }
}
