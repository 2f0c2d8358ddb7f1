//! The schema `brunt.result.v1`: a run as JSON, for scripts, as one tree of types.
//!
//! docs/result.schema.json is generated from these types, with their comments as descriptions (`tests/schema.rs`). Invariants: counts and
//! times are exact integers, times in nanoseconds; instants count from the beginning of the measured window, earlier ones are negative;
//! what there are too few samples for is `null`. Keys that exist keep their names, units and meaning, and new ones may be added.
//! The key `record` is all that its summary was built from: a summary that is built from what is read back prints the same text to the byte, and
//! whatever the bytes of a file are, it has no number that adding it up could carry beyond what numbers hold.

pub(crate) mod client;
pub(crate) mod events;
pub(crate) mod row;
pub(crate) mod servers;
pub(crate) mod window;

use crate::text::{make_printable, steers};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use brunt_plan::plan::Plan;
use brunt_plan::spec::PlanSpec;
use brunt_stats::calibration::Lookup;
use brunt_stats::check::Judgement;
use brunt_stats::convergence::Convergence;
use brunt_stats::op_summary::{OpRow, OpSummary};
use brunt_stats::recorder::Layout;
use brunt_stats::run_record::RunData;
use brunt_stats::run_record::{Environment, PreloadResult, RunRecord};
use brunt_stats::server_stats::ServerRecord;
use brunt_stats::store::SerializedStore;
use brunt_stats::summary::Summary;
use brunt_stats::usage::AgentRecord;
use client::ClientTree;
use events::Events;
use indexmap::IndexMap;
use miniz_oxide::deflate::compress_to_vec_zlib;
use miniz_oxide::inflate::decompress_to_vec_zlib_with_limit;
use row::{Counts, Latency, Phase};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Number, Value};
use servers::Server;
use std::borrow::Cow;
use std::io::{self, Write};
use window::{Piece, StatusTree, Window};

/// The name of the schema.
pub const SCHEMA: &str = "brunt.result.v1";

/// The result of a run, as `brunt run -o json` writes it. Keys may be added under the same name of the schema: ignore those that you do not
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
    /// Everything that the result was made from, packed for `brunt report` of the same version. Absent in comparisons.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub record: Option<String>,
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

    /// CPU time of the client per request.
    pub(crate) fn client_cpu_ns(&self) -> Option<f64> {
        self.client.cpu_ns_per_request.map(|ns| ns as f64)
    }

    /// CPU time of the servers per request, by their own account.
    pub(crate) fn server_cpu_ns(&self) -> Option<f64> {
        let window = self.events.server_stats.as_ref()?.window.as_ref()?;
        window.cpu_ns_per_request.map(|ns| ns as f64)
    }

    /// The same with pieces over time.
    pub(crate) fn with_intervals(summary: &Summary) -> serde_json::Result<Self> {
        Ok(Self { intervals: Piece::all(summary), ..Self::without_record(summary)? })
    }

    /// All of a summary.
    pub(crate) fn of(summary: &Summary) -> serde_json::Result<Self> {
        Ok(Self { record: Some(packed_record(&summary.record)?), ..Self::with_intervals(summary)? })
    }
}

/// Writes the result as one indented JSON object, and a line end.
///
/// # Errors
/// What `out` returns.
pub fn write(summary: &Summary, out: &mut dyn Write) -> io::Result<()> {
    write_indented(serde_json::to_value(ResultTree::of(summary)?)?, out)
}

/// Where other schemas have a whole result.
pub(crate) fn reference(_: &mut SchemaGenerator) -> Schema {
    json_schema!({ "$ref": "result.schema.json" })
}

/// A time that is a quotient or a root, to the nanosecond.
fn whole(ns: Option<f64>) -> Option<u64> {
    ns.map(|ns| ns.round() as u64)
}

/// The key whose value is written on one line.
const COMPACT: &str = "record";
/// The key whose elements are written on one line each.
const ROWS: &str = "intervals";

/// How the value of a key is written.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Spacing {
    /// Each of its values on lines of its own.
    Indented,
    /// Each element of a list on one line.
    Rows,
    /// All of it on one line.
    Line,
}

/// Writes a value, and a line end.
///
/// # Errors
/// What `out` returns.
pub(crate) fn write_indented(mut value: Value, out: &mut dyn Write) -> io::Result<()> {
    make_printable(&mut value);
    write_value(&value, Spacing::Indented, 0, out)?;
    writeln!(out)
}

fn write_value(value: &Value, layout: Spacing, depth: usize, out: &mut dyn Write) -> io::Result<()> {
    match value {
        Value::Object(entries) if layout != Spacing::Line && !entries.is_empty() => {
            for (index, (key, value)) in entries.iter().enumerate() {
                begin_line(if index == 0 { "{" } else { "," }, depth + 1, out)?;
                serde_json::to_writer(&mut *out, key)?;
                write!(out, ": ")?;
                let layout = match key.as_str() {
                    COMPACT => Spacing::Line,
                    ROWS => Spacing::Rows,
                    _ => Spacing::Indented,
                };
                write_value(value, layout, depth + 1, out)?;
            }
            begin_line("", depth, out)?;
            write!(out, "}}")
        }
        Value::Array(elements) if layout != Spacing::Line && !elements.is_empty() => {
            let of_element = if layout == Spacing::Rows { Spacing::Line } else { Spacing::Indented };
            for (index, element) in elements.iter().enumerate() {
                begin_line(if index == 0 { "[" } else { "," }, depth + 1, out)?;
                write_value(element, of_element, depth + 1, out)?;
            }
            begin_line("", depth, out)?;
            write!(out, "]")
        }
        _ => Ok(serde_json::to_writer(out, value)?),
    }
}

/// Ends a line with this, and indents the next one.
fn begin_line(end: &str, depth: usize, out: &mut dyn Write) -> io::Result<()> {
    write!(out, "{end}\n{:1$}", "", 2 * depth)
}

/// No count is as large, and no time in nanoseconds: it is more than two years.
const NUMBER_MAX: u64 = 1 << 56;
/// Most intervals that a file may hold: of 100 ms almost five days, which a file that is read has no room for.
const PIECES_MAX: u64 = 1 << 22;

/// A record is unpacked up to this length: one of a thousand servers in slices of a second has half of it. The values of a text, of which the
/// shortest has two characters, take up to fifty times as much memory.
const UNPACKED_BYTES_MAX: usize = 32 << 20;
/// How much zlib compresses, of 10: more takes much longer and gains a hundredth.
const COMPRESSION: u8 = 6;

/// A record without its plan.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct SerializedRun<'a> {
    environment: Cow<'a, Environment>,
    server: Cow<'a, str>,
    agents: Cow<'a, [AgentRecord]>,
    preload: Option<PreloadResult>,
    values_checked: bool,
    convergence: Cow<'a, Option<Convergence>>,
    calibration: Cow<'a, Lookup>,
    judgement: Cow<'a, Judgement>,
    #[serde(default)]
    is_cut: bool,
    run: Cow<'a, RunData>,
    intervals: SerializedStore,
}

/// The JSON of a value as a zlib stream in base64, which holds nothing that a terminal or HTML would read.
///
/// # Errors
/// That the value is none of JSON's.
pub fn packed(value: &impl Serialize) -> serde_json::Result<String> {
    let mut json = serde_json::to_string(value)?;
    // Texts that are not printable are few; a second writing of all would take as long as the first.
    if json.contains(|character| character == '\\' || steers(character)) {
        let mut value = serde_json::from_str(&json)?;
        make_printable(&mut value);
        json = value.to_string();
    }
    Ok(STANDARD.encode(compress_to_vec_zlib(json.as_bytes(), COMPRESSION)))
}

/// The value of a packed JSON.
///
/// # Errors
/// What is wrong with it, in one sentence; for a user.
pub fn unpacked(text: &str) -> Result<Value, String> {
    let bytes = STANDARD.decode(text).ok();
    let json = bytes.and_then(|bytes| decompress_to_vec_zlib_with_limit(&bytes, UNPACKED_BYTES_MAX).ok());
    let json = json
        .ok_or_else(|| format!("damaged, or longer than {} MiB when unpacked", UNPACKED_BYTES_MAX >> 20))?;
    let mut value = serde_json::from_slice(&json).map_err(|error| error.to_string())?;
    make_printable(&mut value);
    Ok(value)
}

fn packed_record(record: &RunRecord) -> serde_json::Result<String> {
    let RunRecord { plan: _, run, environment, server, agents, preload, values_checked, .. } = record;
    packed(&SerializedRun {
        environment: Cow::Borrowed(environment),
        server: Cow::Borrowed(server),
        agents: Cow::Borrowed(agents),
        preload: *preload,
        values_checked: *values_checked,
        convergence: Cow::Borrowed(&record.convergence),
        calibration: Cow::Borrowed(&record.calibration),
        judgement: Cow::Borrowed(&record.judgement),
        is_cut: record.is_cut,
        run: Cow::Borrowed(run),
        intervals: SerializedStore::from(&run.intervals),
    })
}

/// The record of a run's result.
///
/// # Errors
/// What is wrong with it, in one sentence; for a user.
pub(crate) fn run_record(result: &Value) -> Result<RunRecord, String> {
    // Rules may have changed since it ran.
    let spec = PlanSpec::deserialize(&result["plan"]).map_err(|error| format!("plan: {error}"))?;
    let plan = Plan::restored(spec).map_err(|error| format!("plan: {error}"))?;
    let held =
        result["record"].as_str().ok_or("record: missing; accepted: a result as brunt run writes it")?;
    let held = unpacked(held).map_err(|error| format!("record: {error}"))?;
    check_numbers(&held, is_possible)
        .map_err(|number| format!("record: {number} is more than a run can hold"))?;
    let carried = SerializedRun::deserialize(held).map_err(|error| format!("record: {error}"))?;
    let mut run = carried.run.into_owned();
    run.intervals =
        carried.intervals.restore(&Layout::of(&plan)).map_err(|error| format!("record: {error}"))?;
    check_run(&run, &plan).map_err(|error| format!("record: {error}"))?;
    Ok(RunRecord {
        plan,
        run,
        environment: carried.environment.into_owned(),
        server: carried.server.into_owned(),
        agents: carried.agents.into_owned(),
        preload: carried.preload,
        values_checked: carried.values_checked,
        convergence: carried.convergence.into_owned(),
        calibration: carried.calibration.into_owned(),
        judgement: carried.judgement.into_owned(),
        is_cut: carried.is_cut,
    })
}

/// What the parts of a run must have in common.
fn check_run(run: &RunData, plan: &Plan) -> Result<(), &'static str> {
    let times = &run.times;
    if times.start_ns > times.measure_ns || times.measure_ns.max(times.end_ns) > times.drained_ns {
        return Err("times of a run that are in no order");
    }
    let timeline = run.intervals.timeline();
    let least_ns = timeline.row_ns(times.start_ns, 1).min(timeline.slice_ns());
    let last_ns = timeline.slices_by_cell().last().map_or(0, |(cell_ns, _)| cell_ns);
    let end_ns = times.measure_ns.max(times.end_ns).max(last_ns);
    if end_ns.saturating_sub(times.start_ns) / least_ns > PIECES_MAX {
        return Err("a run that is longer than its slices of time");
    }
    if !run.server_records.is_empty() && run.server_records.len() != plan.polled_servers().len() {
        return Err("statistics of servers that there are not");
    }
    let in_order = |record: &ServerRecord| record.snapshots().is_sorted_by_key(|snapshot| snapshot.at_ns);
    if !run.server_records.iter().all(in_order) {
        return Err("statistics of a server that are in no order");
    }
    if run.cluster.as_ref().is_some_and(|cluster| cluster.slots.of_servers.len() != plan.server_count()) {
        return Err("slots of nodes that there are not");
    }
    Ok(())
}

/// Is it a number that a run may have?
fn is_possible(number: &Number) -> bool {
    match (number.as_u64(), number.as_i64(), number.as_f64()) {
        (Some(count), ..) => count <= NUMBER_MAX,
        (None, Some(less), _) => less.unsigned_abs() <= NUMBER_MAX,
        (None, None, number) => number.is_some_and(f64::is_finite),
    }
}

/// Is every number possible? Else the first that is not.
pub(crate) fn check_numbers(value: &Value, is_possible: fn(&Number) -> bool) -> Result<(), &Number> {
    match value {
        Value::Number(number) => is_possible(number).then_some(()).ok_or(number),
        Value::Array(values) => values.iter().try_for_each(|value| check_numbers(value, is_possible)),
        Value::Object(values) => values.values().try_for_each(|value| check_numbers(value, is_possible)),
        Value::Null | Value::Bool(_) | Value::String(_) => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn records_and_rows_stand_on_a_line_each() {
        let value = json!({
            "a": [1, {}],
            "record": { "b": [1, [2, "x"]], "record": { "c": null } },
            "runs": [{ "record": [], "d": { "e": 1.5 } }],
            "intervals": [{ "ops": { "get": [1, 2] } }, {}, [{ "intervals": [3] }]],
            "rows": { "intervals": null, "record": [{}], "f": [4] },
        });
        let mut text = Vec::new();
        write_indented(value.clone(), &mut text).unwrap();
        let text = String::from_utf8(text).unwrap();
        let expected = r#"{
  "a": [
    1,
    {}
  ],
  "record": {"b":[1,[2,"x"]],"record":{"c":null}},
  "runs": [
    {
      "record": [],
      "d": {
        "e": 1.5
      }
    }
  ],
  "intervals": [
    {"ops":{"get":[1,2]}},
    {},
    [{"intervals":[3]}]
  ],
  "rows": {
    "intervals": null,
    "record": [{}],
    "f": [
      4
    ]
  }
}
"#;
        assert_eq!(text, expected);
        assert_eq!(serde_json::from_str::<Value>(&text).unwrap(), value);
    }
}
