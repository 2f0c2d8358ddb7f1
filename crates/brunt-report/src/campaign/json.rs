//! The schema `brunt.campaign.v1`: every run as a whole `brunt.summary.v1`, with its place in the campaign beside it.
//!
//! docs/formats.md says what every key means; what was not found is `null`.

use super::{Campaign, CampaignLimit, CampaignQuestion, CampaignRecord, RunPlace, RunRow, ScanPoint};
use crate::indented;
use brunt_stats::knee::Knee;
use brunt_stats::repeat::Spread;
use serde_json::{Value, json};
use std::io::{self, Write};

/// The name of the schema.
pub const SCHEMA: &str = "brunt.campaign.v1";

/// Writes the campaign as one indented JSON object, and a line end.
pub(crate) fn write(campaign: &Campaign, out: &mut dyn Write) -> io::Result<()> {
    indented::write(value(campaign)?, out)
}

fn value(campaign: &Campaign) -> serde_json::Result<Value> {
    let first = campaign.runs.first().map(|run| &run.json);
    let record = CampaignRecord {
        question: campaign.question.clone(),
        runs: campaign.runs.iter().map(|run| run.place).collect(),
    };
    let is_search = matches!(campaign.question, CampaignQuestion::Search { .. });
    let runs = campaign.runs.iter().enumerate();
    Ok(json!({
        "schema": SCHEMA,
        "version": first.map(|json| &json["version"]),
        "host": first.map(|json| &json["host"]),
        "labels": first.map(|json| &json["labels"]),
        "started_at": first.map(|json| &json["started_at"]),
        "kind": campaign.question.kind(),
        "interrupted": campaign.interrupted,
        "status": crate::json::status(&campaign.status),
        "assertions": campaign.assertions.iter().map(crate::json::assertion).collect::<Vec<_>>(),
        "finding": finding(campaign),
        "limit": campaign.limit.as_ref().map(|met| limit(campaign, met)),
        "runs": runs.map(|(index, run)| measured(index, run, is_search)).collect::<Value>(),
        "record": serde_json::to_value(record)?,
    }))
}

/// A summary with its place in the campaign.
fn measured(index: usize, run: &RunRow, is_search: bool) -> Value {
    let mut value = run.json.clone();
    let RunPlace { setting, repetition, purpose } = run.place;
    value["step"] = json!({
        "run": index,
        "repetition": repetition,
        "purpose": purpose,
        "option": setting.map(|setting| setting.option()),
        "setting": setting.map(|setting| setting.as_f64()),
        "limited": run.is_limited,
        "limit": run.limit.bottleneck.name(),
        "end": is_search.then(|| run.step.name()),
    });
    value
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
    match &campaign.question {
        CampaignQuestion::Scan { option, closed_loop, .. } => json!({
            "option": option,
            "closed_loop_per_s": closed_loop,
            "points": campaign.points.iter().map(point).collect::<Vec<_>>(),
            "knee": match campaign.knee {
                Some(Knee::At(index)) => {
                    json!({ "point": index, "setting": campaign.points[index].setting.as_f64() })
                }
                _ => Value::Null,
            },
        }),
        CampaignQuestion::Search { objectives, resolution, capacity, closed_loop } => json!({
            "objectives": objectives,
            "resolution": resolution,
            "closed_loop_per_s": closed_loop,
            "capacity": capacity.map(|found| json!({
                "result": found.name(),
                "passed_per_s": found.passed(),
                "not_passed_per_s": found.not_passed(),
            })),
        }),
        CampaignQuestion::Repeat { .. } => {
            campaign.compared.iter().map(|held| (held.name.clone(), spread(&held.spread))).collect()
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

/// Who limits it, by which run, and the run that confirms it.
fn limit(campaign: &Campaign, met: &CampaignLimit) -> Value {
    json!({
        "bottleneck": met.limit.bottleneck.name(),
        "sentence": met.limit.sentence(),
        "fix": met.limit.fix,
        "connections_needed": met.limit.connections_needed,
        "setting": campaign.runs[met.run].place.setting.map(|setting| setting.as_f64()),
        "run": met.run,
        "run_with_more_connections": met.with_more,
    })
}
