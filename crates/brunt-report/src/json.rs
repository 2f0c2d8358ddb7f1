//! The schema `brunt.result.v1`: a run as JSON, for scripts, as one tree of types.
//!
//! docs/result.schema.json is generated from these types, with their comments as descriptions (`tests/schema.rs`). Invariants: counts and
//! times are exact integers, times in nanoseconds; instants count from the beginning of the measured window, earlier ones are negative;
//! what there are too few samples for is `null`. Keys that exist keep their names, units and meaning, and new ones may be added.

pub(crate) mod client;
pub(crate) mod counts;
pub(crate) mod events;
pub(crate) mod latency;
pub(crate) mod over_time;
pub(crate) mod servers;
pub(crate) mod status;
pub(crate) mod window;

use crate::indented;
use crate::record;
use brunt_stats::op_summary::{OpRow, OpSummary};
use brunt_stats::summary::Summary;
use client::ClientTree;
use counts::{Counts, Phase};
use events::Events;
use indexmap::IndexMap;
use latency::Latency;
use over_time::Piece;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use servers::Server;
use status::StatusTree;
use std::io::{self, Write};
use window::Window;

/// The name of the schema.
pub const SCHEMA: &str = "brunt.result.v1";

/// The result of a run, as `brunt run --json` writes it. Keys may be added under the same name of the schema: ignore those that you do not
/// know. Instants (`first_ns`, `at_ns`, `start_ns`, `end_ns`, `recovered_ns`) count from the beginning of the measured window; earlier ones
/// are negative.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ResultTree {
    /// `"brunt.result.v1"`.
    pub schema: String,
    /// Version of brunt.
    pub version: String,
    /// Labels of `--label`, by key.
    pub labels: IndexMap<String, String>,
    /// The resolved plan, with the keys of a plan file; as TOML it repeats the run. Seeds of 2⁶³ and more are text, as there.
    pub plan: Map<String, Value>,
    /// The host that controlled the run.
    pub host: Host,
    /// May the numbers be quoted?
    pub status: StatusTree,
    /// The measured window.
    pub window: Window,
    /// All requests of the window, and those of each operation.
    #[serde(flatten)]
    pub row: Row,
    /// Resources of the client, and what it counted of itself.
    pub client: ClientTree,
    /// Servers in the order of the plan, over all phases, preload included. A request to several servers counts at each.
    pub servers: Vec<Server>,
    /// What happened during the run, over all phases.
    pub events: Events,
    /// The window in pieces of 1 s (docs/results.md). Empty in comparisons.
    pub intervals: Vec<Piece>,
    /// Everything that the result was made from, for `brunt report`; no key of it is promised. Absent in comparisons.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub record: Option<Value>,
}

/// The host that controlled the run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Host {
    /// Its name.
    pub name: String,
    /// What it sent to, in a line.
    pub server: String,
    /// Facts by name (`allowed_cpus`: by number, such as `"0-3,5"`); all of them text, none of them guaranteed.
    pub facts: IndexMap<String, String>,
}

/// Measured requests: all of them, those of an operation, or those of a class.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Row {
    /// What became of them.
    pub counts: Counts,
    /// How long they took.
    pub latency: Latency,
    /// By operation, a kind (`"get"`) or a command by its name (`"HSET"`, `"HSET#2"`).
    #[serde(default, skip_serializing_if = "IndexMap::is_empty")]
    pub ops: IndexMap<String, Row>,
}

impl Row {
    pub(crate) fn of(summary: &OpSummary, ops: &[OpRow]) -> Self {
        let of_op = |row: &OpRow| (row.name.to_string(), Self::of(&row.summary, &[]));
        Self {
            counts: Counts::of(summary),
            latency: Latency::of(summary),
            ops: ops.iter().map(of_op).collect(),
        }
    }
}

impl ResultTree {
    /// The numbers of a summary, without pieces over time and without its record.
    pub(crate) fn without_record(summary: &Summary) -> serde_json::Result<Self> {
        let record = &summary.record;
        let mut row = Row::of(&summary.total, &summary.ops);
        row.counts.phases = Phase::all(summary);
        row.latency.slowest = summary.slowest();
        row.latency.client_basis = Some(summary.client_basis());
        Ok(Self {
            schema: SCHEMA.to_owned(),
            version: record.environment.brunt_version.clone(),
            labels: record.plan.labels.iter().map(|label| (label.key.clone(), label.value.clone())).collect(),
            plan: serde_json::from_value(serde_json::to_value(&record.plan.spec)?)?,
            host: Host {
                name: record.environment.host.clone(),
                server: record.server.clone(),
                facts: record.environment.facts.iter().cloned().collect(),
            },
            status: StatusTree::of(summary),
            window: Window::of(summary),
            row,
            client: ClientTree::of(summary),
            servers: Server::all(summary),
            events: Events::of(summary),
            intervals: Vec::new(),
            record: None,
        })
    }

    /// All of a summary.
    pub(crate) fn of(summary: &Summary) -> serde_json::Result<Self> {
        Ok(Self {
            intervals: Piece::all(summary),
            record: Some(record::value(&summary.record)?),
            ..Self::without_record(summary)?
        })
    }
}

/// Writes the result as one indented JSON object, and a line end.
///
/// # Errors
/// What `out` returns.
pub fn write(summary: &Summary, out: &mut dyn Write) -> io::Result<()> {
    indented::write(serde_json::to_value(ResultTree::of(summary)?)?, out)
}

/// The result without its record, on one line.
pub(crate) fn line_without_record(summary: &Summary) -> serde_json::Result<String> {
    serde_json::to_string(&ResultTree {
        intervals: Piece::all(summary),
        ..ResultTree::without_record(summary)?
    })
}

/// Where other schemas have a whole result.
pub(crate) fn reference(_: &mut SchemaGenerator) -> Schema {
    json_schema!({ "$ref": "result.schema.json" })
}

/// A time that is a quotient or a root, to the nanosecond.
fn whole(ns: Option<f64>) -> Option<u64> {
    ns.map(|ns| ns.round() as u64)
}
