//! CLIENT: how much of each percentile is brunt's and its host's, was the client stopped, and had it time to send what was due?
//!
//! One budget of the client's time ([`crate::client_budget`]) names what took most of it. Invariant: an upper limit alone (`<=`) is a mark
//! of the percentile and no caution.

use super::Facts;
use crate::bottleneck::Bottleneck;
use crate::check::{Check, CheckId, CheckStatus};
use crate::client_budget::ClientBudget;
use crate::counts::share;
use crate::latency::ClientError;
use crate::op_summary::{CLIENT_SHARE_MAX, OpSummary, is_most, judged};
use crate::usage::StallCounts;
use brunt_plan::quantile::Quantile;
use brunt_plan::quantity::{percent, time};

/// Share of the requests due that may stay unsent for lack of the client's time.
const UNSENT_MAX: f64 = 0.01;
/// In a closed loop stops of the client may take this share of the window.
const STOPS_MAX: f64 = 0.01;

/// What was found, and whether it alone makes the run invalid.
struct Finding {
    message: String,
    is_invalid: bool,
}

pub(super) fn check(facts: &Facts<'_>) -> Check {
    // All requests, and each class where there are several.
    let classes = if facts.classes.len() > 1 { facts.classes } else { &[] };
    let rows: Vec<&OpSummary> =
        std::iter::once(facts.total).chain(classes.iter().map(|class| &class.total)).collect();
    let worst = worst_part(&rows, &facts.asked);
    let value = worst.map_or(0.0, |(_, error)| share(error.error_ns, error.response_ns));
    let found: Vec<Finding> =
        [unsent(facts), limits(facts), parts(facts, &rows), stops(facts)].into_iter().flatten().collect();
    if found.is_empty() {
        let message = match worst {
            Some((quantile, error)) => {
                format!(
                    "{} of the {quantile} are the client's at most ({})",
                    time(error.error_ns),
                    percent(value)
                )
            }
            None => "too few requests for the client's part of a percentile".to_owned(),
        };
        return Check::ok(CheckId::Client, message).with_value(value, CLIENT_SHARE_MAX);
    }
    let is_invalid = facts.is_open_loop() && found.iter().any(|finding| finding.is_invalid);
    let status = if is_invalid { CheckStatus::Invalid } else { CheckStatus::Caution };
    let budget = facts
        .is_over
        .then(|| ClientBudget::of(facts.record, facts.window))
        .filter(|budget| budget.wall_ns > 0);
    let texts: Vec<String> = budget
        .iter()
        .map(ClientBudget::sentence)
        .chain(found.into_iter().map(|finding| finding.message))
        .collect();
    Check::found(CheckId::Client, status, texts.join("; "))
        .with_fix(budget.map_or("", |budget| budget.fix()))
        .with_value(value, CLIENT_SHARE_MAX)
}

/// The percentile of which the client's part is the largest share.
fn worst_part<'a>(rows: &[&'a OpSummary], asked: &[Quantile]) -> Option<(Quantile, &'a ClientError)> {
    let errors =
        rows.iter().flat_map(|row| &row.client_error).filter(|error| asked.contains(&error.quantile));
    let of = |error: &&ClientError| share(error.error_ns, error.response_ns);
    errors.max_by(|one, other| of(one).total_cmp(&of(other))).map(|error| (error.quantile, error))
}

/// Requests that were due, had a connection with room, and were never sent.
fn unsent(facts: &Facts<'_>) -> Option<Finding> {
    let requests = &facts.total.requests;
    let value = share(requests.unsent_client, requests.scheduled);
    (value > UNSENT_MAX).then(|| Finding {
        message: format!(
            "{} of {} requests due ({}) were never sent for lack of the client's time",
            requests.unsent_client,
            requests.scheduled,
            percent(value)
        ),
        is_invalid: true,
    })
}

/// An overload of which the client is the limit.
fn limits(facts: &Facts<'_>) -> Option<Finding> {
    let limit = facts.limit.as_ref().filter(|limit| limit.bottleneck == Bottleneck::Client)?;
    if !facts.is_overload() {
        return None;
    }
    Some(Finding { message: format!("it limits the load: {}", limit.reason), is_invalid: false })
}

/// Percentiles of which most is the client's.
fn parts(facts: &Facts<'_>, rows: &[&OpSummary]) -> Option<Finding> {
    let found: Vec<&&OpSummary> = rows.iter().filter(|row| judged(row, &facts.asked).any(is_most)).collect();
    let row = found.first()?;
    let (quantile, error) = worst_part(&[**row], &facts.asked)?;
    Some(Finding {
        message: format!(
            "up to {} of the {quantile} of {} are its part",
            time(error.error_ns),
            time(error.response_ns)
        ),
        is_invalid: judged(facts.total, &facts.asked).all(is_most),
    })
}

/// Stops that a percentile or the load of a closed loop shows.
fn stops(facts: &Facts<'_>) -> Option<Finding> {
    let workers = &facts.record.run.usage.workers;
    let longest = StallCounts::longest_of(workers)?.stalls;
    let all = StallCounts::of_all(workers);
    let wall_ns: u64 = workers.iter().map(|worker| worker.wall_ns).sum();
    let p99_ns = facts.total.latency.response.summary.p99_ns();
    let is_long = p99_ns.is_some_and(|p99_ns| longest.longest_stop_ns() > p99_ns);
    let of_load = share(all.total_ns, wall_ns);
    let is_of_load = !facts.is_open_loop() && of_load >= STOPS_MAX;
    let more = match all.count {
        1 => String::new(),
        count => format!(", the longest of {count} stops ({} in all)", time(all.total_ns)),
    };
    let message =
        format!("it stood still for {} at +{}{more}", time(longest.longest_ns), time(longest.longest_at_ns?));
    (is_long || is_of_load).then_some(Finding { message, is_invalid: false })
}
