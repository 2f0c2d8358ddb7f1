//! The schema `brunt.campaign.v1`: every run as a whole `brunt.result.v1` with its place in the campaign, and what they come to.
//!
//! docs/campaign.schema.json is generated from these types; what was not found is `null`.

use super::{Campaign, CampaignLimit, CampaignQuestion, CampaignRecord, RunPlace, RunPurpose, RunRow};
use crate::json::client::CapacityTree;
use crate::json::window::AssertionResult;
use crate::json::write_indented;
use crate::json::{ResultTree, reference};
use brunt_plan::sweep::SweepPoint;
use brunt_stats::bottleneck::Bottleneck;
use brunt_stats::capacity::StepResult;
use brunt_stats::median::Spread;
use brunt_stats::rate_scan::Knee;
use brunt_stats::status::RunStatus;
use indexmap::IndexMap;
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;
use std::io::{self, Write};

/// The name of the schema.
pub const SCHEMA: &str = "brunt.campaign.v1";

/// A campaign, as `-o json` of `brunt scan`, `brunt search` and `brunt run --repeat` writes it.
#[derive(Serialize, JsonSchema)]
pub(crate) struct CampaignTree<'a> {
    /// `"brunt.campaign.v1"`.
    schema: &'static str,
    /// Version of brunt.
    version: &'a str,
    /// Labels of the first run.
    labels: Option<&'a IndexMap<String, String>>,
    /// `"scan"`, `"search"` or `"repeat"`.
    kind: &'static str,
    /// Did the campaign end early, by the user or because it could not go on (`--between` failed, the server was down)?
    interrupted: bool,
    /// Its status; `checks` has REPEAT alone.
    status: &'a RunStatus,
    /// Of `run --repeat`: about all runs together.
    assertions: Vec<AssertionResult>,
    /// What it found, by its kind.
    finding: FindingTree<'a>,
    /// Who limits a scan or a search, or `null`.
    limit: Option<LimitTree<'a>>,
    /// Every run in order.
    runs: Vec<StepTree<'a>>,
    /// For `brunt report`; no key of it is promised.
    record: Value,
}

/// A run and its place.
#[derive(Serialize, JsonSchema)]
struct StepTree<'a> {
    /// Its place.
    step: Step,
    /// Its result.
    #[schemars(schema_with = "reference")]
    result: &'a ResultTree,
}

/// The place of a run.
#[derive(Serialize, JsonSchema)]
struct Step {
    /// Its number from 0.
    run: usize,
    /// The repetition from 1.
    repetition: u32,
    /// `"step"`; `"pair"`: a run that confirms the answer of a search; `{"connections": N}`: one with so many connections, which tells whether
    /// fewer are the limit.
    purpose: RunPurpose,
    /// What was set; `null` for repetitions.
    option: Option<&'static str>,
    /// Its number (per second, count, bytes).
    setting: Option<f64>,
    /// Was the load too much?
    limited: bool,
    /// Who limits it.
    limit: Bottleneck,
    /// What a step of a search came to.
    end: Option<StepResult>,
}

/// What a campaign found.
#[derive(Serialize, JsonSchema)]
#[serde(untagged)]
enum FindingTree<'a> {
    /// Of a scan.
    Scan {
        /// What was varied.
        option: &'a str,
        /// Closed-loop maximum, with `rate=auto`.
        closed_loop_per_s: Option<f64>,
        /// The settings, ascending.
        points: Vec<Point<'a>>,
        /// The knee.
        knee: Option<KneeTree>,
    },
    /// Of a search.
    Search {
        /// What had to hold.
        objectives: &'a [String],
        /// How far the rate that fails may lie above the one that holds, as a part.
        resolution: f64,
        /// Closed-loop maximum, where the search found its own beginning.
        closed_loop_per_s: Option<f64>,
        /// The capacity, unless the search was ended before.
        capacity: Option<CapacityTree>,
    },
    /// Of repetitions: `completed_per_s`, and percentiles in nanoseconds by name.
    Repeat(IndexMap<&'a str, Spread>),
}

/// A setting of a scan.
#[derive(Serialize, JsonSchema)]
struct Point<'a> {
    /// Its number.
    setting: f64,
    /// Its runs, as indices.
    runs: &'a [usize],
    /// Those that the client spoiled and that were rerun.
    discarded: &'a [usize],
    /// The p99 of its runs.
    p99_ns: Option<Spread>,
}

/// The knee of a scan.
#[derive(Serialize, JsonSchema)]
struct KneeTree {
    /// As an index of a point.
    point: usize,
    /// The number of its setting.
    setting: f64,
}

/// Who limits a campaign.
#[derive(Serialize, JsonSchema)]
struct LimitTree<'a> {
    /// Who.
    bottleneck: Bottleneck,
    /// Who and why, in words.
    sentence: String,
    /// What to do about it.
    fix: &'a str,
    /// The connections that carry the rate.
    connections_needed: Option<u64>,
    /// The setting that met it.
    setting: Option<f64>,
    /// The run that met it, as an index.
    run: usize,
    /// The run that confirmed it, or did not.
    run_with_more_connections: Option<usize>,
}

/// Writes the campaign as one indented JSON object, and a line end.
pub(crate) fn write(campaign: &Campaign, out: &mut dyn Write) -> io::Result<()> {
    write_indented(serde_json::to_value(CampaignTree::of(campaign)?)?, out)
}

impl<'a> CampaignTree<'a> {
    fn of(campaign: &'a Campaign) -> serde_json::Result<Self> {
        let first = campaign.runs.first().map(|run| &run.result);
        let record = CampaignRecord {
            question: campaign.question.clone(),
            runs: campaign.runs.iter().map(|run| run.place).collect(),
        };
        let is_search = matches!(campaign.question, CampaignQuestion::Search { .. });
        let runs = campaign.runs.iter().enumerate();
        Ok(Self {
            schema: SCHEMA,
            version: first.map_or(env!("CARGO_PKG_VERSION"), |result| result.version.as_str()),
            labels: first.map(|result| &result.labels),
            kind: campaign.question.kind(),
            interrupted: campaign.interrupted,
            status: &campaign.status,
            assertions: campaign.assertions.iter().map(AssertionResult::of).collect(),
            finding: FindingTree::of(campaign),
            limit: campaign.limit.as_ref().map(|met| LimitTree::of(campaign, met)),
            runs: runs.map(|(index, run)| StepTree::of(index, run, is_search)).collect(),
            record: serde_json::to_value(record)?,
        })
    }
}

impl<'a> StepTree<'a> {
    fn of(index: usize, run: &'a RunRow, is_search: bool) -> Self {
        let RunPlace { setting, repetition, purpose } = run.place;
        let step = Step {
            run: index,
            repetition,
            purpose,
            option: setting.map(SweepPoint::option),
            setting: setting.map(SweepPoint::as_f64),
            limited: run.is_limited,
            limit: run.limit.bottleneck,
            end: is_search.then_some(run.step),
        };
        Self { step, result: &run.result }
    }
}

impl<'a> FindingTree<'a> {
    fn of(campaign: &'a Campaign) -> Self {
        match &campaign.question {
            CampaignQuestion::Scan { option, closed_loop, .. } => Self::Scan {
                option,
                closed_loop_per_s: *closed_loop,
                points: campaign
                    .points
                    .iter()
                    .map(|point| Point {
                        setting: point.setting.as_f64(),
                        runs: &point.runs,
                        discarded: &point.discarded,
                        p99_ns: point.p99,
                    })
                    .collect(),
                knee: match campaign.knee {
                    Some(Knee::At(point)) => {
                        Some(KneeTree { point, setting: campaign.points[point].setting.as_f64() })
                    }
                    _ => None,
                },
            },
            CampaignQuestion::Search { objectives, resolution, capacity, closed_loop } => Self::Search {
                objectives,
                resolution: *resolution,
                closed_loop_per_s: *closed_loop,
                capacity: capacity.map(CapacityTree::of),
            },
            CampaignQuestion::Repeat { .. } => {
                let named = campaign.compared.iter();
                Self::Repeat(named.map(|(name, spread)| (name.as_str(), *spread)).collect())
            }
        }
    }
}

impl<'a> LimitTree<'a> {
    fn of(campaign: &Campaign, met: &'a CampaignLimit) -> Self {
        Self {
            bottleneck: met.limit.bottleneck,
            sentence: met.limit.sentence(),
            fix: &met.limit.fix,
            connections_needed: met.limit.connections_needed,
            setting: campaign.runs[met.run].place.setting.map(SweepPoint::as_f64),
            run: met.run,
            run_with_more_connections: met.with_more,
        }
    }
}
