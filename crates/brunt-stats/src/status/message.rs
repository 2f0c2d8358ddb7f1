//! The sentence of a status: which percentiles may be quoted, and why the others may not.
//!
//! Invariant: each printed percentile of all requests is named once, in ascending order.

use super::{Facts, Status};
use crate::backlog::BacklogLevel;
use crate::check::{Check, CheckId, CheckStatus, rounded};
use crate::counts::share;
use crate::op_summary::PercentileMark;
use crate::outage::MeasuredOutage;
use brunt_plan::quantile::Quantile;
use brunt_plan::quantity::{listed, percent, time};

/// An outage moves a percentile when it took nearly as much of the time as of all requests lie above that: behind it others wait.
const MOVES: f64 = 0.8;

pub(super) fn message(facts: &Facts<'_>, status: Status, checks: &[Check]) -> String {
    let at_most = |id: CheckId| checks[id as usize].status;
    let throughput = throughput(facts);
    if at_most(CheckId::Broken) == CheckStatus::Invalid {
        return "no number of this run may be quoted".to_owned();
    }
    if facts.total.requests.completed() == 0 {
        return no_latencies(facts);
    }
    match at_most(CheckId::Load) {
        CheckStatus::Invalid => {
            return format!(
                "overload: latencies grow for as long as the run lasts. Quote none. The throughput stands: {throughput}"
            );
        }
        CheckStatus::Caution if facts.longest_silence().is_none() => {
            return format!("the backlog grew: quote no latency. The throughput stands: {throughput}");
        }
        _ => {}
    }
    if status == Status::Invalid && at_most(CheckId::Data) == CheckStatus::Invalid {
        return "most requests failed: quote no latency".to_owned();
    }
    if status == Status::Invalid && at_most(CheckId::Client) == CheckStatus::Invalid {
        return format!("the client made these latencies: quote none. The throughput stands: {throughput}");
    }
    percentiles(facts)
}

/// The highest of the percentiles up to which all may be quoted.
pub(super) fn quote(facts: &Facts<'_>, checks: &[Check]) -> Option<Quantile> {
    let is_quoted = |quantile: &Quantile| {
        facts.mark(*quantile) == PercentileMark::Quoted && outage_of(facts, *quantile).is_none()
    };
    let at = |id: CheckId| checks[id as usize].status;
    let has_quotes = checks.iter().all(|check| check.status < CheckStatus::Invalid)
        && (at(CheckId::Load) <= CheckStatus::Ok || facts.longest_silence().is_some());
    let shown = facts.record.plan.shown_quantiles().into_iter();
    shown.take_while(|quantile| has_quotes && is_quoted(quantile)).last()
}

/// What was answered of what was offered.
fn throughput(facts: &Facts<'_>) -> String {
    let rate = &facts.total.rate;
    let answered = rounded(rate.completed);
    if facts.is_open_loop() {
        format!("{answered}/s of {}/s offered", rounded(rate.offered))
    } else {
        format!("{answered}/s")
    }
}

fn no_latencies(facts: &Facts<'_>) -> String {
    let requests = &facts.total.requests;
    match (requests.sent, requests.failed() + requests.in_flight) {
        (0, _) => "no request was sent in the window".to_owned(),
        (sent, 0) => format!("{sent} requests were sent, none of which asked for a reply"),
        (sent, _) => format!("none of the {sent} requests sent in the window was answered"),
    }
}

/// Which may be quoted, which are upper limits, which are of an outage, which need more time.
fn percentiles(facts: &Facts<'_>) -> String {
    let shown = facts.record.plan.shown_quantiles();
    let of_outage = |quantile: Quantile| outage_of(facts, quantile).is_some();
    let marked = |mark: PercentileMark| -> Vec<Quantile> {
        let is_so = |quantile: &Quantile| facts.mark(*quantile) == mark && !of_outage(*quantile);
        shown.iter().copied().filter(is_so).collect()
    };
    let mut parts = Vec::new();
    let quoted = marked(PercentileMark::Quoted);
    if !quoted.is_empty() {
        parts.push(format!("{} may be quoted", names(quoted, &shown)));
    }
    let limits = marked(PercentileMark::UpperLimit);
    if let Some(worst) =
        limits.iter().copied().max_by(|one, other| part(facts, *one).total_cmp(&part(facts, *other)))
    {
        let (verb, what) = if limits.len() == 1 { ("is", "an upper limit") } else { ("are", "upper limits") };
        let up_to = if limits.len() == 1 { "" } else { "up to " };
        let share = percent(part(facts, worst));
        parts
            .push(format!("{} {verb} {what}: {up_to}{share} may be brunt's own time", names(limits, &shown)));
    }
    let moved: Vec<Quantile> = shown
        .iter()
        .copied()
        .filter(|quantile| of_outage(*quantile) && facts.mark(*quantile) != PercentileMark::TooFew)
        .collect();
    if let Some(outage) = moved.first().and_then(|first| outage_of(facts, *first)) {
        let verb = if moved.len() == 1 { "is" } else { "are" };
        parts.push(format!("{} {verb} an outage of {}", names(moved, &shown), outage.server));
    }
    let missing = marked(PercentileMark::TooFew);
    if let Some(last) = missing.first().copied() {
        let verb = if missing.len() == 1 { "needs" } else { "need more time," };
        let needs = needs(facts, last);
        let text = match missing.len() {
            1 => format!("{last} {verb} {needs}"),
            _ => format!("{} {verb} {last} {needs}", names(missing, &shown)),
        };
        parts.push(text);
    }
    parts.join("; ")
}

/// The client's part of a percentile, as a share of it.
fn part(facts: &Facts<'_>, quantile: Quantile) -> f64 {
    let error = facts.total.client_error.iter().find(|error| error.quantile == quantile);
    error.map_or(0.0, |error| share(error.error_ns, error.response_ns))
}

/// The outage that made a percentile what it is.
pub(super) fn outage_of<'a>(facts: &'a Facts<'_>, quantile: Quantile) -> Option<&'a MeasuredOutage> {
    let disturbed: u64 = facts.silences().map(|outage| outage.disturbed.end - outage.disturbed.start).sum();
    let share = share(disturbed, facts.window.duration_ns());
    let is_drained = facts.backlogs.iter().all(|backlog| backlog.level == BacklogLevel::Ok);
    facts.longest_silence().filter(|_| share >= MOVES * quantile.share_above() || !is_drained)
}

/// How much longer a percentile takes to have its number: a time where the rate is known.
pub(super) fn needs(facts: &Facts<'_>, quantile: Quantile) -> String {
    let held = facts.total.latency.response.summary.percentiles.iter().find(|held| held.quantile == quantile);
    let more = held.map_or(0, |held| held.needs_more);
    let rate = facts.total.rate.completed;
    match rate > 0.0 {
        true => format!("{} more", time((more as f64 / rate * 1e9).ceil() as u64)),
        false => format!("{more} more requests"),
    }
}

/// When something happened, from the start of the window.
pub(super) fn since_start(facts: &Facts<'_>, at_ns: u64) -> String {
    let measure_ns = facts.window.measure_ns;
    let sign = if at_ns < measure_ns { '-' } else { '+' };
    format!("{sign}{}", time(at_ns.abs_diff(measure_ns)))
}

/// Percentiles of a list: `p50`, `p50 and p90`, `p50 to p99.9`; `p50, p99 and p99.99` where others of the list lie between.
pub(super) fn names(of: Vec<Quantile>, among: &[Quantile]) -> String {
    let position = |quantile: &Quantile| among.iter().position(|held| held == quantile);
    let runs = of.chunk_by(|one, next| position(one).map(|at| at + 1) == position(next));
    let items: Vec<String> = runs
        .flat_map(|run| match run {
            [first, _, .., last] => vec![format!("{first} to {last}")],
            few => few.iter().map(Quantile::to_string).collect(),
        })
        .collect();
    listed(&items)
}
