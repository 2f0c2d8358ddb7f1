//! DATA: are there enough answered requests for each percentile that is asked for, and for its interval?
//!
//! Invariant: a percentile without a number, and one without the end of its interval, are told with what they need.

use super::{Facts, message};
use crate::check::{Check, CheckId, CheckStatus};
use crate::counts::share;
use crate::op_summary::PercentileMark;
use crate::request_counts::CountEntry;
use crate::run_record::RunRecord;
use brunt_plan::outcome::OutcomeClass;
use brunt_plan::phase::Phase;
use brunt_plan::quantile::Quantile;
use brunt_plan::quantity::{percent, time};

/// A run is INVALID when more than this share of its requests failed.
const FAILED_MAX: f64 = 0.5;
/// An outage of more than this share of the window says of which seconds percentiles are.
const OUTAGE_MAX: f64 = 0.1;
const LONGER: &str = "a longer --time";

pub(super) fn check(facts: &Facts<'_>) -> Check {
    let requests = &facts.total.requests;
    let due = requests.scheduled - requests.outcome(OutcomeClass::Unacknowledged).min(requests.scheduled);
    if due == 0 && requests.scheduled > 0 {
        return Check::skipped(CheckId::Data, "requests without replies have no response time");
    }
    let failed = requests.failed() + requests.in_flight;
    let value = share(failed, due);
    let found = |status, message: String, fix: String| {
        Check::found(CheckId::Data, status, message).with_fix(fix).with_value(value, FAILED_MAX)
    };
    if value > FAILED_MAX {
        let message = format!(
            "{failed} of {due} requests failed ({}), latencies are those of the others{}",
            percent(value),
            first_error(facts)
        );
        return found(CheckStatus::Invalid, message, why_failed(facts).to_owned());
    }
    // No latency of an overload is quoted, which LOAD says.
    let of_latencies = |find: fn(&Facts<'_>, u64) -> Option<(String, String)>| {
        if facts.is_overload() && facts.longest_silence().is_none() { None } else { find(facts, due) }
    };
    let parts = [
        of_latencies(of_failures),
        of_latencies(|facts, _| too_few(facts)),
        outage(facts),
        of_latencies(|facts, _| without_end(facts)),
        goal(facts),
    ];
    let parts: Vec<(String, String)> = parts.into_iter().flatten().collect();
    let Some((_, fix)) = parts.first().cloned() else {
        let message = format!(
            "{} requests, each percentile asked for has its interval",
            facts.total.requests.completed()
        );
        return Check::ok(CheckId::Data, message).with_value(value, FAILED_MAX);
    };
    let texts: Vec<String> = parts.into_iter().map(|(text, _)| text).collect();
    found(CheckStatus::Caution, texts.join("; "), fix)
}

/// Failed and unsent requests lie above every percentile; with more than may, it is that of the answered ones.
fn of_failures(facts: &Facts<'_>, due: u64) -> Option<(String, String)> {
    let missing = facts.total.unanswered();
    let is_moved = |quantile: &Quantile| missing as f64 > due as f64 * quantile.share_above();
    let lowest = facts.asked.iter().copied().find(is_moved).filter(|_| missing > 0)?;
    let names = message::names(facts.asked.iter().copied().filter(is_moved).collect(), &facts.asked);
    let answered = percent(1.0 - share(missing, due));
    let verb = if facts.asked.last() == Some(&lowest) { "is" } else { "are" };
    let text = format!(
        "{names} {verb} of the {answered} of the requests that were answered, {missing} failed or were never sent{}",
        first_error(facts)
    );
    Some((text, why_failed(facts).to_owned()))
}

/// The first error reply, where errors are most of what failed: it usually says what is wrong with the request.
fn first_error(facts: &Facts<'_>) -> String {
    let requests = &facts.total.requests;
    let is_answered = requests.outcome(OutcomeClass::Error) * 2 > requests.failed();
    let first = facts.record.run.counts.first_error.as_ref().filter(|_| is_answered);
    first.map_or(String::new(), |first| format!(" ({})", super::facts::quoted(first.bytes())))
}

fn why_failed(facts: &Facts<'_>) -> &'static str {
    let requests = &facts.total.requests;
    let errors = requests.outcome(OutcomeClass::Error);
    let counts = &facts.record.run.counts;
    // Nothing follows a redirection where no cluster is known.
    let is_misplaced =
        facts.record.run.cluster.is_none() && counts.error_replies.count_of("MOVED") > errors / 2;
    if counts.first_error.as_ref().is_some_and(|first| super::facts::is_at_its_limit(first.bytes())) {
        super::facts::FULL
    } else if is_misplaced && errors > 0 {
        "the servers are nodes of a cluster: use --cluster"
    } else if facts.longest_silence().is_some() {
        "see what the server did in the outage (its log, its host)"
    } else if errors * 2 > requests.failed() {
        "see what the error says of the command, its keys or the server's memory"
    } else if requests.failed() == 0 {
        "see what LOAD and CLIENT say of requests that were never sent"
    } else {
        "see the table of connections, and raise --timeout if the server is only slow"
    }
}

/// Percentiles without a number.
fn too_few(facts: &Facts<'_>) -> Option<(String, String)> {
    let missing: Vec<Quantile> = facts
        .asked
        .iter()
        .copied()
        .filter(|quantile| facts.mark(*quantile) == PercentileMark::TooFew)
        .collect();
    let last = *missing.last()?;
    let completed = facts.total.requests.completed();
    let needs = message::needs(facts, last);
    let names = message::names(missing.clone(), &facts.asked);
    let verb = if missing.len() == 1 { "has" } else { "have" };
    let text = format!("{names} {verb} too few requests: {completed} were answered, {last} needs {needs}");
    Some((text, trace_that_ended(facts).unwrap_or_else(|| LONGER.to_owned())))
}

/// What helps where a trace was sent to its last line.
fn trace_that_ended(facts: &Facts<'_>) -> Option<String> {
    let RunRecord { run, plan, .. } = facts.record;
    let ended = run.traces.iter().find(|trace| {
        let is_own = |entry: &CountEntry| plan.classes[usize::from(entry.class)].name == trace.class;
        let own = run
            .intervals
            .request_counts
            .entries()
            .filter(|entry| is_own(entry) && entry.phase != Phase::Preload);
        trace.is_whole && own.map(|entry| entry.counts.requests.sent).sum::<u64>() >= trace.records
    })?;
    Some(format!(
        "a longer trace, or a shorter --warmup: the {} records of {} were all sent",
        ended.records, ended.file
    ))
}

/// An outage that took much of the window.
fn outage(facts: &Facts<'_>) -> Option<(String, String)> {
    let longest = facts.longest_silence()?;
    let window_ns = facts.window.duration_ns();
    let end_ns = longest.span(facts.window).end.min(facts.window.end_ns);
    let length_ns = end_ns.saturating_sub(longest.start_ns.max(facts.window.measure_ns));
    let start = message::since_start(facts, longest.start_ns);
    (length_ns as f64 > OUTAGE_MAX * window_ns as f64).then(|| {
        let text = format!(
            "{} gave no answer for {} of the window of {}: percentiles mix this time with the rest",
            facts.server_name(longest),
            time(length_ns),
            time(window_ns)
        );
        (text, format!("see what the server did at {start} (its log, its host)"))
    })
}

/// Percentiles whose interval has no upper end.
fn without_end(facts: &Facts<'_>) -> Option<(String, String)> {
    let is_open = |quantile: &Quantile| match facts.total.interval(*quantile) {
        Some(interval) => interval.high_ns.is_none(),
        None => false,
    };
    let open: Vec<Quantile> = facts.asked.iter().copied().filter(is_open).collect();
    let first = *open.first()?;
    let names = message::names(open.clone(), &facts.asked);
    let verb = if open.len() == 1 { "has" } else { "have" };
    if let Some(outage) = message::outage_of(facts, first) {
        let start = message::since_start(facts, outage.start_ns);
        let text = format!("{names} {verb} no interval: the requests above waited for one outage");
        return Some((text, format!("see what the server did at {start} (its log, its host)")));
    }
    Some((format!("{names} {verb} no interval: the requests above came in few bursts"), LONGER.to_owned()))
}

/// The precision that was asked for and not reached.
fn goal(facts: &Facts<'_>) -> Option<(String, String)> {
    let until = facts.until.filter(|until| !until.is_interrupted && facts.is_over)?;
    (!until.is_reached()).then(|| {
        let fix = match until.look.held_by.is_empty() {
            true => {
                "allow more time with --until max=DURATION, or ask for less precision with --until".to_owned()
            }
            false => "see the other checks".to_owned(),
        };
        (format!("--until was {until}"), fix)
    })
}
