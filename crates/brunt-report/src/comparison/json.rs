//! The schema `brunt.compare.v1`: what was compared, run by run, and what that shows; written, and read again.
//!
//! docs/compare.schema.json is generated from these types. Invariant: what is read back is compared by the same function as what was
//! measured, and has no number that is compared or added up and could not be one of a run.

use super::{AssertionRow, ComparedRow, Comparison, Difference, EarlyEnd, document};
use crate::json::check_numbers;
use crate::json::window::bounds;
use crate::json::write_indented;
use crate::result::RunResult;
use crate::stored::StoredResult;
use brunt_plan::objective::Requirement;
use brunt_stats::change::{Change, ChangeScale, Design, LEVEL, Reason};
use indexmap::IndexMap;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Number, Value};
use std::io::{self, Write};

/// The name of the schema.
pub const SCHEMA: &str = "brunt.compare.v1";
/// No count, rate or time of a run is as large.
const NUMBER_MAX: f64 = (1_u64 << 56) as f64;
/// Where a result has numbers that are compared, or added up.
const COMPARED: [&str; 4] = ["/counts", "/latency", "/ops", "/window/duration_ns"];

/// A comparison, as `brunt compare -o json` writes it. `brunt report` reads `design`, `interrupted`, `failure`, the results of `a` and `b` and
/// the text of `assertions`.
#[derive(Serialize, Deserialize, JsonSchema)]
pub(crate) struct ComparisonTree {
    /// `"brunt.compare.v1"`.
    schema: String,
    /// Version of brunt.
    version: String,
    /// With `--live`: were not all of the runs made?
    interrupted: bool,
    /// Why, if not ended by the user, otherwise `null`: a server that was down, for example.
    failure: Option<String>,
    /// What it comes to, as the text ends.
    sentences: Vec<String>,
    /// `false`: more than a third of the runs are INVALID.
    has_conclusion: bool,
    /// `"pairs"` (`--live`) or `"apart"`.
    design: Design,
    /// Of the intervals, 0.95.
    confidence: f64,
    /// The runs of A.
    a: Vec<ComparedRun>,
    /// The runs of B.
    b: Vec<ComparedRun>,
    /// Keys of the plans that differ, without servers and seeds.
    plan_differences: Vec<Difference>,
    /// Facts about the hosts, and the version of brunt, where they differ.
    environment_differences: Vec<Difference>,
    /// What was compared.
    quantities: Vec<QuantityTree>,
    /// Results of `--assert`.
    assertions: Vec<RequirementTree>,
}

/// A run of one side.
#[derive(Serialize, Deserialize, JsonSchema)]
struct ComparedRun {
    /// It and its source: the file, or `"turn N"`.
    #[serde(flatten)]
    run: RunResult,
    /// Its numbers, by quantity.
    numbers: IndexMap<String, Option<f64>>,
    /// Those that are latencies, without the client's part.
    least: IndexMap<String, Option<f64>>,
}

/// A number of both sides.
#[derive(Serialize, Deserialize, JsonSchema)]
struct QuantityTree {
    /// `p50` … as in `--assert`, `answered` (fraction of the requests due), `client_cpu_ns_per_request` or `server_cpu_ns_per_request`.
    quantity: String,
    /// `"ratio"` or `"difference"`.
    scale: String,
    /// What changed.
    #[serde(flatten)]
    change: Change,
    /// The finding as the table has it, with the reason in brackets.
    message: Option<String>,
    /// The smallest change that so many runs would find, of what is undecided for the spread of the runs.
    detectable: Option<f64>,
}

/// What was asserted.
#[derive(Serialize, Deserialize, JsonSchema)]
struct RequirementTree {
    /// Its text.
    requirement: String,
    /// `"change"` from A to B, or `"value"` of B.
    kind: String,
    /// `"holds"`, `"fails"` or `"undecided"`.
    status: String,
    /// The change, or the median of B's runs.
    measured: Option<f64>,
    /// `[low, high]` of the change, or from the lowest lower bound of B's runs to the highest upper one.
    bounds: Option<(f64, Option<f64>)>,
    /// Why it is undecided, otherwise `null`.
    reason: Option<String>,
    /// The bound, in the unit of what was measured.
    bound: f64,
}

/// Writes the schema `brunt.compare.v1`.
pub(crate) fn write(comparison: &Comparison, out: &mut dyn Write) -> io::Result<()> {
    write_indented(serde_json::to_value(ComparisonTree::of(comparison))?, out)
}

impl ComparisonTree {
    pub(super) fn of(comparison: &Comparison) -> Self {
        let Comparison { a, b, plan, environment, design, compared, asserted, early_end } = comparison;
        let failure = match early_end {
            Some(EarlyEnd::Failed(reason)) => Some(reason.clone()),
            Some(EarlyEnd::Interrupted) | None => None,
        };
        let [a, b] = [a, b].map(|runs| runs.iter().map(|run| ComparedRun::of(run, compared)).collect());
        Self {
            schema: SCHEMA.to_owned(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            interrupted: early_end.is_some(),
            failure,
            sentences: document::answer(comparison),
            has_conclusion: comparison.has_conclusion(),
            design: *design,
            confidence: 1.0 - LEVEL,
            a,
            b,
            plan_differences: plan.clone(),
            environment_differences: environment.clone(),
            quantities: compared.iter().map(QuantityTree::of).collect(),
            assertions: asserted.iter().map(RequirementTree::of).collect(),
        }
    }
}

impl ComparedRun {
    fn of(run: &RunResult, compared: &[ComparedRow]) -> Self {
        let least = |held: &ComparedRow| {
            let bounds = held.quantity.bounds_of_run(run);
            (held.quantity.key(), bounds.map(|bounds| bounds.low))
        };
        Self {
            run: run.clone(),
            numbers: compared.iter().map(|held| (held.quantity.key(), held.quantity.of_run(run))).collect(),
            least: compared.iter().filter(|held| held.quantity.is_latency()).map(least).collect(),
        }
    }
}

impl QuantityTree {
    fn of(held: &ComparedRow) -> Self {
        let ComparedRow { quantity, change } = held;
        let scale = match quantity.scale() {
            ChangeScale::Ratio => "ratio",
            ChangeScale::Difference => "difference",
        };
        let detectable = match change.reason {
            Some(Reason::Spread { detectable }) => Some(detectable),
            _ => None,
        };
        Self {
            quantity: quantity.key(),
            scale: scale.to_owned(),
            change: change.clone(),
            message: change.finding.map(|_| document::finding(held)),
            detectable,
        }
    }
}

impl RequirementTree {
    fn of(asserted: &AssertionRow) -> Self {
        let (kind, bound) = match asserted.requirement {
            Requirement::Change(tolerance) => ("change", tolerance.change.value()),
            Requirement::Value(objective) => ("value", objective.bound.value()),
        };
        Self {
            requirement: asserted.requirement.to_string(),
            kind: kind.to_owned(),
            status: asserted.decision.name().to_owned(),
            measured: asserted.measured,
            bounds: asserted.bounds.map(bounds),
            reason: asserted.reason.clone(),
            bound,
        }
    }
}

impl Comparison {
    /// What a file holds, compared again.
    ///
    /// # Errors
    /// What is wrong with it, in one sentence; for a user.
    pub fn of_stored(stored: &StoredResult) -> Result<Self, String> {
        read(stored.value()).map_err(|error| format!("{}: {error}", stored.source()))
    }
}

fn read(value: &Value) -> Result<Comparison, String> {
    let is_possible =
        |number: &Number| number.as_f64().is_some_and(|number| (0.0..=NUMBER_MAX).contains(&number));
    let runs = ["a", "b"].into_iter().filter_map(|side| value[side].as_array()).flatten();
    for numbers in runs.flat_map(|run| COMPARED.map(|part| run["result"].pointer(part))).flatten() {
        check_numbers(numbers, is_possible)
            .map_err(|number| format!("result: {number} is no number of a run"))?;
    }
    let tree = ComparisonTree::deserialize(value).map_err(|error| error.to_string())?;
    let requirement =
        |held: &RequirementTree| held.requirement.parse().map_err(|error| format!("assertions: {error}"));
    let required = tree.assertions.iter().map(requirement).collect::<Result<Vec<Requirement>, String>>()?;
    let [a, b] = [tree.a, tree.b].map(|runs| runs.into_iter().map(|held| held.run).collect());
    let comparison = Comparison::of(tree.design, a, b, &required)?;
    Ok(match (tree.interrupted, tree.failure) {
        (false, _) => comparison,
        (true, None) => comparison.ended_early(EarlyEnd::Interrupted),
        (true, Some(reason)) => comparison.ended_early(EarlyEnd::Failed(reason)),
    })
}
