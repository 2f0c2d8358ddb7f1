//! Results that were read from files: which kind each is, what it is made into again, and in which keys two plans differ.
//!
//! Not what of a record is read (that is `json.rs`) and not the file. Invariants: whatever the text is, it is a summary, a campaign to
//! be concluded, or refused in one sentence; none of its texts steers a terminal, in whatever output it ends, for all have passed
//! through `printable` here.

use crate::campaign::{Campaign, CampaignRecord, RunRow};
use crate::json;
use crate::json::run_record;
use crate::quantity;
use crate::text::{beginning, make_printable, printable};
use brunt_plan::objective::Objective;
use brunt_plan::plan::Plan;
use brunt_stats::run_record::RunRecord;
use brunt_stats::summary::Summary;
use brunt_stats::usage::AgentRecord;
use brunt_stats::window::RunTimes;
use indexmap::IndexMap;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::cmp::Ordering;
use std::fmt;
use std::ops::Range;

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
        let value = serde_json::from_str(text);
        value
            .map(|value| Self::of(value, source))
            .map_err(|error| format!("{}: no JSON: {error}", printable(source)))
    }

    /// From its value.
    pub(crate) fn of(mut value: Value, source: &str) -> Self {
        make_printable(&mut value);
        Self { source: printable(source), value }
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

    /// Its value.
    pub(crate) fn value(&self) -> &Value {
        &self.value
    }

    /// The runs of a campaign.
    pub fn runs(&self) -> Vec<Self> {
        let runs = self.value["runs"].as_array().map(Vec::as_slice).unwrap_or_default();
        let named = |(number, run): (usize, &Value)| Self {
            source: format!("{}, run {number}", self.source),
            value: run["result"].clone(),
        };
        (1..).zip(runs).map(named).collect()
    }

    /// The campaign, concluded again.
    ///
    /// # Errors
    /// What is wrong with it, in one sentence; for a user.
    pub fn campaign(&self) -> Result<Campaign, String> {
        let named = |error: String| format!("{}: {error}", self.source);
        let held = self.value.get("record").ok_or_else(|| named("record: missing".to_owned()))?;
        let record = CampaignRecord::deserialize(held).map_err(|error| named(format!("record: {error}")))?;
        let CampaignRecord { question, runs: places } = record;
        let objectives = question.objectives().map_err(|error| named(format!("record: {error}")))?;
        let runs = self.runs();
        if runs.len() != places.len() {
            return Err(named("record: other runs than those of the campaign".to_owned()));
        }
        let (mut first, mut measured) = (None, Vec::new());
        for (run, place) in runs.iter().zip(places) {
            let summary = run.summary()?.with_assertions(&objectives);
            measured.push(RunRow::of(&summary, place).map_err(|error| named(error.to_string()))?);
            first.get_or_insert(summary);
        }
        let first = first.ok_or_else(|| named("record: a campaign without a run".to_owned()))?;
        let interrupted = self.value["interrupted"].as_bool().unwrap_or(false);
        Campaign::of(first, measured, question, interrupted)
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
        let mut records = parts.iter().map(part_of).collect::<Result<Vec<_>, _>>()?;
        // Workers have numbers in the whole plan.
        records.sort_by_key(|(_, workers, _)| workers.start);
        let mut records = records.into_iter();
        let (first, workers, mut whole) = records.next().ok_or("no result to merge")?;
        let mut end = check_place(first, workers, 0, &whole.plan)?;
        let start = StartInstant::of(&whole);
        for (source, workers, record) in records {
            let differs = |reason: String| format!("{first} and {source} are no parts of one run: {reason}");
            if let Some(option) = difference(&whole.plan, &record.plan) {
                return Err(differs(format!(
                    "their plans differ in {option}; accepted: plans that differ in {} alone",
                    OF_A_PART.join(", ")
                )));
            }
            end = check_place(source, workers, end, &whole.plan)?;
            start.check(&StartInstant::of(&record)).map_err(differs)?;
            whole.merge(record).map_err(|reason| differs(reason.to_owned()))?;
        }
        match end == whole.plan.threads {
            true => Ok(Summary::build(whole)),
            false => Err(missing(end..whole.plan.threads, &whole.plan)),
        }
    }
}

/// Clocks of hosts are read at other instants than those at which their runs begin, and may be set between.
const START_READ_NS: u64 = 100_000_000;

/// A result of one host of several: its source, and its workers in the whole plan.
fn part_of(StoredResult { source, value }: &StoredResult) -> Result<(&str, Range<u32>, RunRecord), String> {
    let record = run_of(value).map_err(|error| format!("{source}: {error}"))?;
    match record.agents[..] {
        [AgentRecord { first_worker, workers, .. }] => {
            Ok((source, first_worker..first_worker.saturating_add(workers), record))
        }
        _ => Err(format!(
            "{source}: it is the result of a whole run; accepted: parts, of brunt run --rank or of brunt agent -o"
        )),
    }
}

/// When a part began, by the clock of its host.
struct StartInstant {
    /// Microseconds since 1970; `None` where that is not known.
    unix_us: Option<u64>,
    /// The user told the host the instant, so that it is the same for all parts.
    is_told: bool,
    clock_error_ns: u64,
}

impl StartInstant {
    fn of(record: &RunRecord) -> Self {
        let RunTimes { epoch_us, start_ns, .. } = record.run.times;
        let (told, errors) =
            record.agents.first().map_or((None, 0), |part| (part.start_unix_us, part.clock_error_ns));
        let found = epoch_us.map(|epoch_us| epoch_us.saturating_add(start_ns / 1_000));
        Self { unix_us: told.or(found), is_told: told.is_some(), clock_error_ns: errors }
    }

    /// May the other be the same instant?
    fn check(&self, other: &Self) -> Result<(), String> {
        let Some((one_us, other_us)) = self.unix_us.zip(other.unix_us) else { return Ok(()) };
        let apart_ns = one_us.abs_diff(other_us).saturating_mul(1_000);
        let known_ns = match self.is_told && other.is_told {
            true => 0,
            false => START_READ_NS.saturating_add(self.clock_error_ns).saturating_add(other.clock_error_ns),
        };
        if apart_ns <= known_ns {
            return Ok(());
        }
        let (apart, known) = (quantity::time(apart_ns), quantity::time(known_ns));
        let clocks =
            if known_ns == 0 { String::new() } else { format!(", and their clocks agree to {known}") };
        Err(format!("they began {apart} apart{clocks}; accepted: parts with one start"))
    }
}

/// Do these workers follow those up to `end`? Returns where they end.
fn check_place(source: &str, workers: Range<u32>, end: u32, plan: &Plan) -> Result<u32, String> {
    match workers.start.cmp(&end) {
        Ordering::Less => {
            Err(format!("{source}: another result has its workers, too; accepted: each part once"))
        }
        Ordering::Greater => Err(missing(end..workers.start, plan)),
        Ordering::Equal => Ok(workers.end),
    }
}

/// What is said of workers without a result.
fn missing(workers: Range<u32>, plan: &Plan) -> String {
    let Range { start, end } = workers;
    format!("no result has workers {start} to {} of {}; accepted: all parts of a run", end - 1, plan.threads)
}

/// The summary of a run's result.
///
/// # Errors
/// What is wrong with it, in one sentence; for a user.
fn summary(result: &Value) -> Result<Summary, String> {
    let record = run_of(result)?;
    let objectives = result["status"]["assertions"].as_array().map(Vec::as_slice).unwrap_or_default();
    let objective = |assertion: &Value| -> Result<Objective, String> {
        let text = assertion["text"].as_str().unwrap_or_default();
        let objective: Objective = text.parse().map_err(|error| format!("assertions: {error}"))?;
        record
            .plan
            .check_subject(&objective.subject)
            .map_err(|error| format!("assertions: '{text}': {error}"))?;
        Ok(objective)
    };
    let objectives = objectives.iter().map(objective).collect::<Result<Vec<_>, _>>()?;
    Ok(Summary::build(record).with_assertions(&objectives))
}

/// The record of a run's result.
fn run_of(result: &Value) -> Result<RunRecord, String> {
    match result["schema"].as_str() {
        Some(json::SCHEMA) => {}
        found => {
            return Err(format!(
                "schema: '{}' was found; accepted: '{}' of brunt run -o json",
                found.unwrap_or("nothing"),
                json::SCHEMA
            ));
        }
    }
    run_record(result)
}

/// What of a plan may differ between the parts of a run: hosts have workers and processors of their own, and draw from seeds of their own.
const OF_A_PART: [&str; 4] = ["seed", "cpus", "wait", "io"];

/// The first option in which two plans differ, but for those of a part.
fn difference(one: &Plan, other: &Plan) -> Option<String> {
    let [one, other] = [one, other].map(|plan| match serde_json::to_value(&plan.spec) {
        Ok(Value::Object(keys)) => keys,
        _ => Map::default(),
    });
    key_differences(&one, &other, &OF_A_PART).into_iter().next().map(|differing| differing.key)
}

/// Something that is one way in A and another in B.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Difference {
    /// The key; of a class of several, with the name of the class in front.
    pub key: String,
    /// What A has; `None` where it has no such key.
    pub a: Option<String>,
    /// What B has.
    pub b: Option<String>,
}

impl fmt::Display for Difference {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = |held: &Option<String>| held.clone().unwrap_or_else(|| "nothing".to_owned());
        write!(formatter, "{}: A has {}, B has {}", self.key, text(&self.a), text(&self.b))
    }
}

/// The key of the classes in a plan.
const CLASSES: &str = "class";

/// The classes of a plan, and what their keys begin with: the name of one of several.
pub(crate) fn classes_of(plan: &Map<String, Value>) -> Vec<(String, &Map<String, Value>)> {
    let listed = plan.get(CLASSES).and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
    let named = |class: &Value| match listed {
        [_] => String::new(),
        _ => format!("{} ", class.get("name").and_then(Value::as_str).unwrap_or("")),
    };
    listed.iter().filter_map(|class| Some((named(class), class.as_object()?))).collect()
}

/// The keys of plans, each once, with what every plan has there; those of a class of several begin with its name.
pub(crate) fn side_by_side<'a>(plans: &[&'a Map<String, Value>]) -> IndexMap<String, Vec<Option<&'a Value>>> {
    let mut rows = IndexMap::new();
    for (index, plan) in plans.iter().enumerate() {
        let own = plan.iter().filter(|(key, _)| *key != CLASSES).map(|(key, value)| (key.clone(), value));
        let of_classes = classes_of(plan).into_iter().flat_map(|(prefix, class)| {
            class.iter().map(move |(key, value)| (format!("{prefix}{key}"), value))
        });
        for (key, value) in own.chain(of_classes) {
            rows.entry(key).or_insert_with(|| vec![None; plans.len()])[index] = Some(value);
        }
    }
    rows
}

/// The keys in which two plans differ, but for these. Of other numbers of classes none is compared.
pub(crate) fn key_differences(
    a: &Map<String, Value>,
    b: &Map<String, Value>,
    exempt: &[&str],
) -> Vec<Difference> {
    let [of_a, of_b] = [a, b].map(|plan| classes_of(plan).len() as u64);
    let mut rows = side_by_side(&[a, b]);
    rows.retain(|key, held| held[0] != held[1] && !exempt.contains(&key.as_str()));
    rows.retain(|key, _| of_a == of_b || a.contains_key(key) || b.contains_key(key));
    let difference = |(key, held): (String, Vec<Option<&Value>>)| Difference {
        key,
        a: held[0].map(shortened),
        b: held[1].map(shortened),
    };
    let count = |classes| Some(quantity::things(classes, "class"));
    let counts = Difference { key: CLASSES.to_owned(), a: count(of_a), b: count(of_b) };
    rows.into_iter().map(difference).chain((of_a != of_b).then_some(counts)).collect()
}

/// A value of another file, shortened for a message.
pub(crate) fn shortened(value: &Value) -> String {
    let text = match value {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    };
    beginning(&printable(&text), 60)
}
