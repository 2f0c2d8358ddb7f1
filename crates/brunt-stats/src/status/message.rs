//! The sentence of a status: which percentiles may be quoted, and why the others may not.
//!
//! Invariant: each printed percentile of all requests is named once, in ascending order.

use super::{Facts, Status};
use crate::check::{Check, CheckId, CheckStatus, rounded};
use crate::counts::share;
use crate::op_summary::PercentileMark;
use crate::outage::Outage;
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
        (0, _) if !facts.record.run.traces.is_empty() && facts.sent_after_preload() == 0 => {
            "the run ended before the first record of its trace was due, or was read".to_owned()
        }
        (0, _) => "no request was sent in the window".to_owned(),
        (sent, 0) => format!("{sent} requests were sent, none of which asked for a reply"),
        (sent, _) => format!("none of the {sent} requests sent in the window was answered"),
    }
}

/// Which may be quoted, which are upper limits, which are of an outage, which need more time.
fn percentiles(facts: &Facts<'_>) -> String {
    let shown = facts.record.plan.shown_quantiles();
    let all = |is_so: &dyn Fn(PercentileMark, bool) -> bool| -> Vec<Quantile> {
        let is_so = |quantile: &Quantile| is_so(facts.mark(*quantile), outage_of(facts, *quantile).is_some());
        shown.iter().copied().filter(is_so).collect()
    };
    let quoted = all(&|mark, is_moved| mark == PercentileMark::Quoted && !is_moved);
    let limits = all(&|mark, is_moved| mark == PercentileMark::UpperLimit && !is_moved);
    let moved = all(&|mark, is_moved| mark != PercentileMark::TooFew && is_moved);
    let missing = all(&|mark, is_moved| mark == PercentileMark::TooFew && !is_moved);
    let part = percent(limits.iter().map(|quantile| part(facts, *quantile)).fold(0.0, f64::max));
    let outage = moved.first().and_then(|quantile| outage_of(facts, *quantile));
    let server = outage.map(|outage| {
        let (server, start) = (facts.server_name(outage), since_start(facts, outage.start_ns));
        match outage.length_ns() {
            Some(length_ns) => format!("{server} ({} at {start})", time(length_ns)),
            None => format!("{server} (since {start})"),
        }
    });
    let server = server.unwrap_or_default();
    let needs = missing.first().map(|first| (*first, needs(facts, *first)));
    let needs = |of_one: bool| match &needs {
        Some((first, needs)) if !of_one => format!("need more time, {first} {needs}"),
        needs => format!("needs {}", needs.as_ref().map_or("", |(_, needs)| needs)),
    };
    let clause = |of: Vec<Quantile>, one: String, more: String| {
        let rest = if of.len() == 1 { one } else { more };
        (!of.is_empty()).then(|| format!("{} {rest}", names(of, &shown)))
    };
    // Where no number is, limits are.
    let is_any_quoted = !quoted.is_empty();
    let verb = |verb| if is_any_quoted { verb } else { "may be quoted as" };
    let clauses = [
        clause(quoted, "may be quoted".to_owned(), "may be quoted".to_owned()),
        clause(
            limits,
            format!("{} an upper limit: {part} may be brunt's own time", verb("is")),
            format!("{} upper limits: up to {part} may be brunt's own time", verb("are")),
        ),
        clause(moved, format!("is an outage of {server}"), format!("are an outage of {server}")),
        clause(missing, needs(true), needs(false)),
    ];
    clauses.into_iter().flatten().collect::<Vec<_>>().join("; ")
}

/// The client's part of a percentile, as a share of it.
fn part(facts: &Facts<'_>, quantile: Quantile) -> f64 {
    let error = facts.total.client_error.iter().find(|error| error.quantile == quantile);
    error.map_or(0.0, |error| share(error.error_ns, error.response_ns))
}

/// The outage that made a percentile what it is.
pub(super) fn outage_of<'a>(facts: &'a Facts<'_>, quantile: Quantile) -> Option<&'a Outage> {
    let disturbed_ns = |outage: &Outage| {
        let span = outage.disturbed(facts.window);
        span.end - span.start
    };
    let disturbed: u64 = facts.silences().map(disturbed_ns).sum();
    let share = share(disturbed, facts.window.duration_ns());
    facts.longest_silence().filter(|_| share >= MOVES * quantile.share_above() || facts.is_overload())
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
