//! The key `record` of a result: all that its summary was built from, so that it can be reported again.
//!
//! Not numbers for scripts (those are the other keys, [`crate::json`]). docs/formats.md says what is in it. The plan stands in the result
//! already. Invariants: a summary that is built from what is read back prints the same text to the byte; and whatever the bytes of a file
//! are, what is read back has no number that adding it up could carry beyond what numbers hold.

use crate::campaign::{CampaignRecord, Measured, Question, head};
use crate::json;
use brunt_plan::login::Password;
use brunt_plan::objective::{Ceiling, Objective};
use brunt_plan::plan::Plan;
use brunt_plan::resolve::{Host, resolve};
use brunt_plan::spec::PlanSpec;
use brunt_stats::agent::AgentRecord;
use brunt_stats::calibration::Lookup;
use brunt_stats::convergence::Convergence;
use brunt_stats::recorder::Layout;
use brunt_stats::run_data::RunData;
use brunt_stats::store::CarriedStore;
use brunt_stats::summary::{Environment, PreloadResult, RunRecord, Summary};
use brunt_stats::verdict::Judgement;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::borrow::Cow;

/// No count is as large, and no time in nanoseconds: it is more than two years.
const NUMBER_MAX: u64 = 1 << 56;

/// A record without its plan, in the order of the file.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Carried<'a> {
    environment: Cow<'a, Environment>,
    server: Cow<'a, str>,
    agents: Cow<'a, [AgentRecord]>,
    preload: Option<PreloadResult>,
    values_checked: bool,
    convergence: Cow<'a, Option<Convergence>>,
    calibration: Cow<'a, Lookup>,
    judgement: Cow<'a, Judgement>,
    run: Cow<'a, RunData>,
    intervals: CarriedStore,
}

/// A record as JSON.
pub(crate) fn value(record: &RunRecord) -> serde_json::Result<Value> {
    let RunRecord { plan: _, run, environment, server, agents, preload, values_checked, .. } = record;
    serde_json::to_value(Carried {
        environment: Cow::Borrowed(environment),
        server: Cow::Borrowed(server),
        agents: Cow::Borrowed(agents),
        preload: *preload,
        values_checked: *values_checked,
        convergence: Cow::Borrowed(&record.convergence),
        calibration: Cow::Borrowed(&record.calibration),
        judgement: Cow::Borrowed(&record.judgement),
        run: Cow::Borrowed(run),
        intervals: CarriedStore::from(&run.intervals),
    })
}

/// A result that was read, not looked at yet.
#[derive(Debug)]
pub struct StoredResult {
    source: String,
    value: Value,
}

impl StoredResult {
    /// From its text; `source` names it.
    ///
    /// # Errors
    /// It is no JSON; for a user.
    pub fn parse(text: &str, source: &str) -> Result<Self, String> {
        let value = serde_json::from_str(text).map_err(|error| format!("{source}: no JSON: {error}"))?;
        Ok(Self { source: source.to_owned(), value })
    }

    /// What names it.
    pub fn source(&self) -> &str {
        &self.source
    }

    /// The name of its schema.
    pub fn schema(&self) -> Option<&str> {
        self.value["schema"].as_str()
    }

    /// The kind of a campaign.
    pub fn kind(&self) -> Option<&str> {
        self.value["kind"].as_str()
    }

    /// The runs of a campaign.
    pub fn runs(&self) -> Vec<Self> {
        let runs = self.value["runs"].as_array().map(Vec::as_slice).unwrap_or_default();
        let named = |(number, run): (usize, &Value)| Self {
            source: format!("{}, run {number}", self.source),
            value: run.clone(),
        };
        (1..).zip(runs).map(named).collect()
    }

    /// The runs of a campaign with what was asked, and whether it was ended early.
    ///
    /// # Errors
    /// What is wrong with it, in one sentence; for a user.
    pub fn campaign(&self) -> Result<StoredCampaign, String> {
        let named = |error: String| format!("{}: {error}", self.source);
        let held = self.value.get("record").ok_or_else(|| named("record: missing".to_owned()))?;
        let record = CampaignRecord::deserialize(held).map_err(|error| named(format!("record: {error}")))?;
        let CampaignRecord { question, runs: places } = record;
        let objectives = question.objectives().map_err(|error| named(format!("record: {error}")))?;
        let ceilings: Option<Vec<Ceiling>> = objectives.iter().map(Objective::ceiling).collect();
        let ceilings = ceilings.ok_or_else(|| named("record: an objective that no search has".to_owned()))?;
        let runs = self.runs();
        if runs.len() != places.len() || runs.is_empty() {
            return Err(named("record: other runs than those of the campaign".to_owned()));
        }
        let (mut first_head, mut measured) = (None, Vec::new());
        for (run, (setting, repetition)) in runs.iter().zip(places) {
            let summary = run.summary()?;
            first_head.get_or_insert_with(|| head(&summary, question.varied()));
            let of_run =
                Measured::of(&summary, setting, repetition).map_err(|error| named(error.to_string()))?;
            measured.push(match &question {
                Question::Search { .. } => of_run.with_step(&summary, &ceilings),
                Question::Repeat | Question::Scan { .. } => of_run,
            });
        }
        let (load, head) = first_head.unwrap_or_default();
        let interrupted = self.value["interrupted"].as_bool().unwrap_or(false);
        Ok(StoredCampaign { load, head, runs: measured, question, interrupted })
    }

    /// The summary of a run.
    ///
    /// # Errors
    /// What is wrong with it, in one sentence; for a user.
    pub fn summary(&self) -> Result<Summary, String> {
        summary(&self.value).map_err(|error| format!("{}: {error}", self.source))
    }

    /// The results of parts of one run as one.
    ///
    /// # Errors
    /// Which of them is no result, or does not belong to the first, and why; for a user.
    pub fn merged(parts: &[Self]) -> Result<Summary, String> {
        let mut whole: Option<(&str, RunRecord)> = None;
        for Self { source, value } in parts {
            let record = run_record(value).map_err(|error| format!("{source}: {error}"))?;
            let Some((first, held)) = &mut whole else {
                whole = Some((source, record));
                continue;
            };
            let differs = |reason: String| format!("{first} and {source} are no parts of one run: {reason}");
            if let Some(option) = difference(&held.plan, &record.plan) {
                return Err(differs(format!(
                    "their plans differ in {option}; accepted: plans that differ in {} alone",
                    OF_A_PART.join(", ")
                )));
            }
            held.merge(record).map_err(|reason| differs(reason.to_owned()))?;
        }
        let (_, record) = whole.ok_or("no result to merge")?;
        Ok(Summary::build(record))
    }
}

/// A campaign that was read, to be concluded again.
#[derive(Debug)]
pub struct StoredCampaign {
    /// What all runs have in common of the load.
    pub load: Vec<String>,
    /// The summary's head of the first run, without its load.
    pub head: String,
    /// Every run.
    pub runs: Vec<Measured>,
    /// What was asked.
    pub question: Question,
    /// It was ended early.
    pub interrupted: bool,
}

/// The summary of a run's result.
///
/// # Errors
/// What is wrong with it, in one sentence; for a user.
pub fn summary(result: &Value) -> Result<Summary, String> {
    let record = run_record(result)?;
    let objectives = result["assertions"].as_array().map(Vec::as_slice).unwrap_or_default();
    let objective = |assertion: &Value| -> Result<Objective, String> {
        let text = assertion["objective"].as_str().unwrap_or_default();
        let objective: Objective = text.parse().map_err(|error| format!("assertions: {error}"))?;
        objective.subject.check(&record.plan).map_err(|error| format!("assertions: '{text}': {error}"))?;
        Ok(objective)
    };
    let objectives = objectives.iter().map(objective).collect::<Result<Vec<_>, _>>()?;
    Ok(Summary::build(record).with_assertions(&objectives))
}

/// The record of a run's result.
///
/// # Errors
/// What is wrong with it, in one sentence; for a user.
pub fn run_record(result: &Value) -> Result<RunRecord, String> {
    match result["schema"].as_str() {
        Some(json::SCHEMA) => {}
        found => {
            return Err(format!(
                "schema: '{}' was found; accepted: '{}' of brunt run --json",
                found.map_or("nothing".to_owned(), crate::paragraph::printable),
                json::SCHEMA
            ));
        }
    }
    let plan = plan(&result["plan"])?;
    let held = result.get("record").ok_or_else(|| {
        format!(
            "record: missing, as in results of brunt {}; accepted: results of brunt {} and later",
            result["version"].as_str().map_or("other versions".to_owned(), crate::paragraph::printable),
            env!("CARGO_PKG_VERSION")
        )
    })?;
    check_numbers(held)?;
    let carried = Carried::deserialize(held).map_err(|error| format!("record: {error}"))?;
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
    })
}

/// What of a plan may differ between the parts of a run: hosts have workers and processors of their own, and draw from seeds of their own.
const OF_A_PART: [&str; 5] = ["seed", "threads", "cpus", "wait", "io"];

/// The first option in which two plans differ, but for those of a part.
fn difference(one: &Plan, other: &Plan) -> Option<String> {
    let value = |plan: &Plan| serde_json::to_value(PlanSpec::from(plan)).unwrap_or_default();
    let (Value::Object(one), Value::Object(other)) = (value(one), value(other)) else { return None };
    let keys = one.keys().chain(other.keys()).filter(|key| !OF_A_PART.contains(&key.as_str()));
    keys.into_iter().find(|key| one.get(*key) != other.get(*key)).cloned()
}

/// The plan as it was resolved, whatever this host is like.
fn plan(value: &Value) -> Result<Plan, String> {
    let mut spec = PlanSpec::deserialize(value).map_err(|error| format!("plan: {error}"))?;
    // No file says it, and nothing is sent.
    spec.run.password = spec.run.password.map(|_| Password::verbatim("unknown".to_owned()));
    let threads = spec.run.threads.map_or(1, |threads| threads.0).clamp(1, 4_096) as u32;
    let pinned = spec.run.cpus.as_ref().map(|cpus| cpus.0.clone()).filter(|cpus| !cpus.is_empty());
    let host = Host { allowed_cpus: pinned.unwrap_or_else(|| (0..=threads).collect()), random_seed: 0 };
    resolve(&spec, &host).map_err(|error| format!("plan: {error}"))
}

/// What the parts of a run must have in common.
fn check_run(run: &RunData, plan: &Plan) -> Result<(), &'static str> {
    let times = &run.times;
    if times.start_ns > times.measure_ns || times.measure_ns.max(times.end_ns) > times.drained_ns {
        return Err("times of a run that are in no order");
    }
    let servers = plan.server_count();
    if !run.server_records.is_empty() && run.server_records.len() != servers {
        return Err("statistics of servers that there are not");
    }
    if run.cluster.as_ref().is_some_and(|cluster| cluster.slots.of_servers.len() != servers) {
        return Err("slots of nodes that there are not");
    }
    Ok(())
}

/// Is every number one that a run may have?
fn check_numbers(value: &Value) -> Result<(), String> {
    match value {
        Value::Number(number) => {
            let is_possible = match (number.as_u64(), number.as_i64(), number.as_f64()) {
                (Some(count), ..) => count <= NUMBER_MAX,
                (None, Some(less), _) => less.unsigned_abs() <= NUMBER_MAX,
                (None, None, number) => number.is_some_and(f64::is_finite),
            };
            is_possible.then_some(()).ok_or_else(|| format!("record: {number} is more than a run can hold"))
        }
        Value::Array(values) => values.iter().try_for_each(check_numbers),
        Value::Object(values) => values.values().try_for_each(check_numbers),
        Value::Null | Value::Bool(_) | Value::String(_) => Ok(()),
    }
}
