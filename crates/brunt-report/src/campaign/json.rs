//! The schema `brunt.campaign.v1`: every run as a whole `brunt.summary.v1`, with its place in the campaign beside it.
//!
//! docs/formats.md says what every key means; what was not found is `null`.

use super::{Campaign, CampaignRecord, CampaignResult, PercentileEstimate, RunRow, ScanPoint};
use crate::indented;
use brunt_stats::capacity::Capacity;
use brunt_stats::knee::Knee;
use brunt_stats::repeat::Spread;
use serde_json::{Value, json};
use std::io::{self, Write};

/// The name of the schema.
pub const SCHEMA: &str = "brunt.campaign.v1";

/// Writes the campaign as one indented JSON object, and a line end.
///
/// # Errors
/// What `out` returns.
pub fn write(campaign: &Campaign, out: &mut dyn Write) -> io::Result<()> {
    indented::write(value(campaign)?, out)
}

fn value(campaign: &Campaign) -> serde_json::Result<Value> {
    let first = campaign.runs.first().map(|run| &run.json);
    let record = CampaignRecord {
        question: campaign.question.clone(),
        runs: campaign.runs.iter().map(|run| (run.setting, run.repetition)).collect(),
    };
    Ok(json!({
        "schema": SCHEMA,
        "version": first.map(|json| &json["version"]),
        "host": first.map(|json| &json["host"]),
        "labels": first.map(|json| &json["labels"]),
        "started_at": first.map(|json| &json["started_at"]),
        "kind": campaign.finding.kind(),
        "interrupted": campaign.interrupted,
        "status": crate::json::status(&campaign.status),
        "finding": finding(campaign),
        "runs": campaign.runs.iter().enumerate().map(|(index, run)| measured(index, run)).collect::<Value>(),
        "record": serde_json::to_value(record)?,
    }))
}

/// A summary with its place in the campaign.
fn measured(index: usize, run: &RunRow) -> Value {
    let mut value = run.json.clone();
    value["step"] = json!({
        "run": index,
        "repetition": run.repetition,
        "option": run.setting.map(|setting| setting.option()),
        "setting": run.setting.map(|setting| setting.as_f64()),
        "limit": run.limit,
        "end": run.step.as_ref().map(|(end, _)| end.name()),
        "bounded": run.step.as_ref().map(|(_, found)| {
            found.iter().map(|found| found.map(percentile)).collect::<Vec<_>>()
        }),
    });
    value
}

fn percentile(found: PercentileEstimate) -> Value {
    let interval = found.interval_ns.map(|(low_ns, high_ns)| json!([low_ns, high_ns]));
    json!({ "value_ns": found.value_ns, "interval_ns": interval, "thin": found.is_thin })
}

fn spread(spread: &Spread) -> Value {
    json!({
        "runs": spread.runs,
        "median": spread.median,
        "min": spread.min,
        "max": spread.max,
        "coverage": spread.coverage(),
        "disagrees": spread.disagrees(),
    })
}

fn finding(campaign: &Campaign) -> Value {
    match &campaign.finding {
        CampaignResult::Scan { option, points, knee, closed_loop } => json!({
            "option": option,
            "closed_loop_per_s": closed_loop,
            "points": points.iter().map(point).collect::<Vec<_>>(),
            "knee": match knee {
                Some(Knee::At(index)) => json!({ "point": index, "setting": points[*index].setting.as_f64() }),
                _ => Value::Null,
            },
            "limit": limit(campaign, points),
        }),
        CampaignResult::Search { objectives, resolution, capacity: found, closed_loop } => json!({
            "objectives": objectives.iter().map(ToString::to_string).collect::<Vec<_>>(),
            "resolution": resolution,
            "closed_loop_per_s": closed_loop,
            "capacity": found.as_ref().map(|found| capacity(campaign, found)),
        }),
        CampaignResult::Repeat { compared } => {
            compared.iter().map(|held| (held.name.clone(), spread(&held.spread))).collect()
        }
    }
}

fn point(point: &ScanPoint) -> Value {
    json!({
        "setting": point.setting.as_f64(),
        "runs": point.runs,
        "discarded": point.discarded,
        "p99_ns": point.p99.as_ref().map(spread),
    })
}

/// Where the curve ends, and who ended it.
fn limit(campaign: &Campaign, points: &[ScanPoint]) -> Option<Value> {
    let (point, run) = super::limit_met(&campaign.runs, points)?;
    let limit = run.limit.as_ref()?;
    Some(json!({
        "bottleneck": limit,
        "setting": point.setting.as_f64(),
    }))
}

fn capacity(campaign: &Campaign, capacity: &Capacity) -> Value {
    let result = match capacity {
        Capacity::Between { .. } => "found",
        Capacity::AtLeast { .. } => "at_least",
        Capacity::Below { .. } => "below",
        Capacity::Undecided { .. } => "unknown",
        Capacity::ClientLimited { .. } => "client_limited",
        Capacity::Broken { .. } => "broken",
    };
    let at = capacity.not_passed();
    let end = at.and_then(|rate| campaign.step_at(rate)?.step.as_ref()).map(|(end, _)| end.name());
    json!({ "result": result, "passed_per_s": capacity.passed(), "not_passed_per_s": at, "reason": end })
}
