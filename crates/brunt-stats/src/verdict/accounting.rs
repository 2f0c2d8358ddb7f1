//! Checks of the books: what failed, whether they balance, whether values were right.
//!
//! Exact integers: nothing here is an estimate.

use super::cause::{Cause, CauseKind, OpenChecks};
use super::{Evidence, outage};
use crate::check::{Check, CheckStatus, Limits};
use crate::connection::ConnectionCounts;
use crate::number_text::{percent, share};
use crate::request_counts::{CountEntry, KeyCounts, RequestCounts};
use crate::verification::ValueFault;
use brunt_plan::outcome::OutcomeClass;
use brunt_plan::quoted_bytes::QuotedBytes;

/// Share of sent requests that may fail.
const ERRORS: Limits = Limits { caution: 0.0, not_trusted: 0.01 };

/// Did requests fail?
pub(super) fn errors(evidence: &Evidence<'_>) -> Check {
    let Evidence { errors, timeouts, lost, abandoned, sent, .. } = *evidence;
    let (failed, sent) = (errors + timeouts + lost + abandoned, sent + abandoned);
    let value = share(failed, sent);
    let mut message = format!(
        "{failed} of {sent} requests failed ({}): {errors} errors, {timeouts} timed out, {lost} lost with their connection",
        percent(value),
    );
    if abandoned > 0 {
        message += &format!(", {} never sent", abandoned);
        let why = outage::unsent_for(&evidence.down_servers);
        if !why.is_empty() {
            message += &format!(" because {why}");
        }
    }
    let run = &evidence.run;
    // Nothing follows a redirection where no cluster is known.
    let is_misplaced = run.cluster.is_none() && run.counts.error_replies.count_of("MOVED") > errors / 2;
    let fix = if is_misplaced {
        "the servers are nodes of a cluster: use --cluster"
    } else if is_answered(evidence) {
        "see what the error says of the command, its keys or the server's memory (latencies leave failed requests out)"
    } else {
        "the latencies leave failed requests out: read \"including failures\", and what is told of errors, outages and connections"
    };
    Check::judged("ERR", ERRORS.judge(value), message, fix, value, ERRORS.caution)
}

/// Bytes of the first error that a cause quotes.
const QUOTED_MAX: usize = 40;

/// Most failures were replies with an error, and these are too many to overlook.
fn is_answered(evidence: &Evidence<'_>) -> bool {
    let Evidence { errors, timeouts, lost, abandoned, sent, .. } = *evidence;
    errors > timeouts + lost + abandoned && share(errors, sent + abandoned) > ERRORS.not_trusted
}

/// The cause of failures that the server answered. The first error is quoted, for it usually says what is wrong with the request.
pub(super) fn error_replies(evidence: &Evidence<'_>, open: &OpenChecks<'_>) -> Option<Cause> {
    let Evidence { errors, abandoned, sent, .. } = *evidence;
    let requests = sent + abandoned;
    let check = open.get("ERR").filter(|_| is_answered(evidence))?;
    let first = evidence.run.counts.first_error.as_ref().map(|first| {
        let bytes = first.bytes();
        let rest = if bytes.len() > QUOTED_MAX { "..." } else { "" };
        format!(": {}{rest}", QuotedBytes(&bytes[..bytes.len().min(QUOTED_MAX)]))
    });
    Some(Cause {
        kind: CauseKind::ErrorReplies,
        sentence: format!(
            "error replies to {} of {requests} requests{}",
            percent(share(errors, requests)),
            first.unwrap_or_default()
        ),
        fix: check.fix.clone(),
        checks: vec![check.id],
        follows: open.those(&[("SAMPLES", true), ("SHORT", true)]),
        sets_load: false,
    })
}

/// Do the books balance?
pub(super) fn conservation(evidence: &Evidence<'_>) -> Check {
    if evidence.lost_agent.is_some() {
        let message = "an agent was lost, and with it what became of the requests that it had in flight";
        return Check::skipped("CONSERVE", message, 0.0);
    }
    let fix = "this is a defect of the tool: please report it with the plan and the seed";
    let connections = &evidence.connections;
    if !connections.adds_up() {
        let ConnectionCounts { begun, established, failed, retired, lost } = *connections;
        let message = format!(
            "the books of connections do not balance: {begun} begun, {established} established, {failed} failed, \
             {retired} retired, {lost} lost"
        );
        return Check::judged("CONSERVE", CheckStatus::NotTrusted, message, fix, 1.0, 0.0);
    }
    let by_due = |entry: &&CountEntry| !entry.counts.adds_up();
    let by_instant = |entry: &&CountEntry| !entry.adds_up_in_window();
    let broken = evidence.books.iter().filter(|entry| by_due(entry) || by_instant(entry)).count();
    let (message, first) = match (evidence.books.iter().find(by_due), evidence.books.iter().find(by_instant))
    {
        (Some(entry), _) => (format!("{broken} books do not balance"), Some(unbalanced(entry))),
        (None, Some(entry)) => {
            let message = format!("{broken} books do not balance by what happened inside the window");
            (message, Some(unbalanced_in_window(entry)))
        }
        (None, None) => ("every request and every key is accounted for, exactly".to_owned(), None),
    };
    let status = if broken == 0 { CheckStatus::Ok } else { CheckStatus::NotTrusted };
    Check::judged("CONSERVE", status, message, fix, broken as f64, 0.0).with(first)
}

/// A book that does not balance.
fn unbalanced(entry: &CountEntry) -> String {
    let CountEntry { phase, class, op, counts } = entry;
    let RequestCounts { scheduled, sent, unsent, in_flight, .. } = counts.requests;
    let KeyCounts { requested, hit, miss, failed } = counts.keys;
    format!(
        "the first is {op} of class {class} in {}: {scheduled} scheduled, {sent} sent, {unsent} unsent, {} ended, {in_flight} in \
         flight, {requested} keys asked, {hit} hit, {miss} missed, {failed} failed",
        phase.name(),
        counts.requests.ended(),
    )
}

/// A book that balances by when its requests were due, and not by what happened inside the window.
fn unbalanced_in_window(entry: &CountEntry) -> String {
    let (CountEntry { phase, class, op, .. }, counts) = (entry, entry.in_window());
    format!(
        "the first is {op} of class {class} in {}: {} waiting at its start, {} sent, {} given up, {} waiting at its end, \
         {} in flight at its start, {} ended, {} in flight at its end",
        phase.name(),
        counts.waiting_at_start,
        counts.sent,
        counts.abandoned,
        counts.waiting_at_end,
        counts.in_flight_at_start,
        counts.ended(),
        counts.in_flight_at_end,
    )
}

/// Were the values the ones that were stored?
pub(super) fn verification(evidence: &Evidence<'_>) -> Check {
    let booked: u64 =
        evidence.books.iter().map(|entry| entry.counts.requests.outcome(OutcomeClass::Mismatch)).sum();
    // An operation that failed in another way as well is booked as that.
    let is_wrong = |(fault, _, _): &(ValueFault, u64, _)| *fault != ValueFault::Missing;
    let seen = evidence.run.counts.verification.rows().filter(is_wrong).map(|(_, count, _)| count).sum();
    let mismatches = booked.max(seen);
    let missing = evidence.run.counts.verification.count(ValueFault::Missing);
    if mismatches == 0 && missing > 0 {
        let message = format!("{} keys that were stored are missing", missing);
        let fix = "give the server memory for the data set, or find what evicts, expires or loses its keys";
        return Check::judged("VERIFY", CheckStatus::Caution, message, fix, missing as f64, 0.0);
    }
    if mismatches == 0 && evidence.run.counts.values_foreign > 0 {
        let message = format!(
            "{} values read were not written by this tool and could not be checked: store the data set first (preload)",
            evidence.run.counts.values_foreign
        );
        return Check::skipped("VERIFY", &message, 0.0);
    }
    if mismatches == 0 && !evidence.is_verified {
        return Check::skipped("VERIFY", "values were not checked", 0.0);
    }
    if mismatches == 0 {
        return checked(evidence);
    }
    let mut message = format!("values read that are not the ones that were stored: {}", mismatches);
    let faults: Vec<String> = evidence
        .run
        .counts
        .verification
        .rows()
        .filter(is_wrong)
        .map(|(fault, number, _)| format!("{} {}", number, fault.describe()))
        .collect();
    if !faults.is_empty() {
        message.push_str(&format!(" ({})", faults.join(", ")));
    }
    let fix = "something else writes these keys, or the server is wrong: use a --prefix of your own";
    Check::judged("VERIFY", CheckStatus::NotTrusted, message, fix, mismatches as f64, 0.0)
}

/// Nothing wrong was found: among how many values? Where there were none, that shows nothing.
fn checked(evidence: &Evidence<'_>) -> Check {
    let read: u64 = evidence.books.iter().map(|entry| entry.counts.keys.hit).sum();
    let checked = if evidence.is_verify_asked { evidence.run.counts.verification.checked } else { read };
    let message = match (checked, read) {
        (0, 0) => "no value was read, so that none was checked".to_owned(),
        (0, _) => format!("none was checked of {} values read", read),
        _ => format!("{checked} values checked, each is the one that was stored"),
    };
    let status = match (checked, evidence.is_verify_asked) {
        (0, true) => CheckStatus::Caution,
        (0, false) => return Check::skipped("VERIFY", &message, 0.0),
        _ => CheckStatus::Ok,
    };
    let fix = "--verify checks values that are read: have a get in the --mix, keys that are there (preload), a larger share, or a longer \
               run";
    Check::judged("VERIFY", status, message, fix, 0.0, 0.0)
}
