//! A result on one line of `key=value`: always the same keys, in the same order.
//!
//! Invariants: no value holds a blank; what is not known is `-`.

use crate::campaign::text::{brief_of_repetitions, brief_of_scan, brief_of_search};
use crate::campaign::{Campaign, CampaignResult};
use crate::comparison::Comparison;
use crate::figure::{Bound, Figures, unit_of};
use crate::layout::Layout;
use crate::text::latency::{interval, is_unacknowledged, is_unbounded, rate};
use brunt_plan::quantile::Quantile;
use brunt_stats::check::CheckStatus;
use brunt_stats::summary::Summary;
use brunt_stats::verdict::{Status, Verdict};
use std::io::{self, Write};

/// The percentiles; the first without its interval.
const QUANTILES: [Quantile; 3] = [Quantile::P50, Quantile::P99, Quantile::P999];

/// Writes the line of a run.
///
/// # Errors
/// What `out` returns.
pub fn write(summary: &Summary, layout: &Layout, out: &mut dyn Write) -> io::Result<()> {
    writeln!(out, "{}", layout.in_characters(&of_run(summary, layout)))
}

fn of_run(summary: &Summary, layout: &Layout) -> String {
    let total = &summary.total;
    let response = &total.latency.response.summary;
    let column = |(place, quantile): (usize, Quantile)| {
        let value_ns = response.percentile_ns(quantile);
        let bound = match value_ns.filter(|_| !is_unbounded(summary)) {
            Some(value_ns) => interval(total, quantile, value_ns),
            None => Bound::Unknown,
        };
        Figures { times_ns: vec![value_ns], bounds: if place == 0 { Vec::new() } else { vec![vec![bound]] } }
    };
    let max = Figures::of_times([response.max_ns]);
    let columns: Vec<Figures> = (0..).zip(QUANTILES).map(column).chain([max]).collect();
    let unit = layout.unit.unwrap_or_else(|| unit_of(&columns));
    let [p50, p99, p999, max] = [0, 1, 2, 3].map(|index| columns[index].first_text(unit));
    let (keys, requests) = (&total.keys, &total.requests);
    let hit = match keys.requested {
        0 => "-".to_owned(),
        asked => format!("{}%", exact_percent(keys.hit, asked)),
    };
    let failed = requests.failed() + requests.abandoned;
    format!(
        "verdict={} rate={}/s p50={p50} p99={p99} p99.9={p999} max={max} hit={hit} failed={failed} why={}",
        word(&summary.verdict),
        rate(if is_unacknowledged(total) { total.rate.sent } else { total.rate.completed }),
        why(&summary.verdict)
    )
}

/// A share in per cent that is 100 only where it is all.
fn exact_percent(part: u64, whole: u64) -> String {
    match part == whole {
        true => "100".to_owned(),
        false => format!("{:.2}", (10_000.0 * part as f64 / whole as f64).floor() / 100.0),
    }
}

/// `TRUSTED<=p99.9`, `CAUTION`, `NOT-TRUSTED`.
fn word(verdict: &Verdict) -> String {
    let status = verdict.status.name().replace(' ', "-");
    let accepted =
        |status: CheckStatus, check: &str| status <= CheckStatus::Ok || verdict.judgement.allows(check);
    let trusted = verdict.shown_percentiles().take_while(|trust| accepted(trust.status, trust.check)).last();
    match (verdict.status, trusted) {
        (Status::NotTrusted, _) | (_, None) => status,
        (_, Some(trust)) => format!("{}<={}", Status::Trusted.name(), trust.quantile),
    }
}

/// The cause that the report's first line names, then the checks that speak against more and that it does not explain.
fn why(verdict: &Verdict) -> String {
    let leading = verdict.leading_cause();
    let is_explained = |id: &str| leading.is_some_and(|cause| cause.ids().any(|held| held == id));
    let others = verdict.reasons().into_iter().filter(|id| !is_explained(id));
    let names: Vec<&str> = leading.map(|cause| cause.kind.name()).into_iter().chain(others).collect();
    if names.is_empty() { "-".to_owned() } else { names.join(",") }
}

/// Writes the line of a campaign.
///
/// # Errors
/// What `out` returns.
pub fn write_campaign(campaign: &Campaign, layout: &Layout, out: &mut dyn Write) -> io::Result<()> {
    let finding = match &campaign.finding {
        CampaignResult::Scan { points, knee, .. } => brief_of_scan(campaign, points, *knee),
        CampaignResult::Search { capacity, .. } => brief_of_search(campaign, *capacity),
        CampaignResult::Repeat { compared } => brief_of_repetitions(campaign, compared, layout),
    };
    let status = campaign.verdict.status.name().replace(' ', "-");
    let line = format!("verdict={status} runs={} {finding}", campaign.runs.len());
    writeln!(out, "{}", layout.in_characters(&line))
}

/// Writes the line of a comparison.
///
/// # Errors
/// What `out` returns.
pub fn write_comparison(comparison: &Comparison, layout: &Layout, out: &mut dyn Write) -> io::Result<()> {
    writeln!(out, "{}", layout.in_characters(&crate::comparison::text::brief(comparison)))
}
