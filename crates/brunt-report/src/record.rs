//! The key `record` of a result: all that its summary was built from, so that it can be reported again.
//!
//! Not numbers for scripts (those are the other keys, [`crate::json`]). docs/results.md says what is in it. The plan is in the result
//! already. Invariants: a summary that is built from what is read back prints the same text to the byte; and whatever the bytes of a file
//! are, what is read back has no number that adding it up could carry beyond what numbers hold.

use brunt_plan::plan::Plan;
use brunt_plan::spec::PlanSpec;
use brunt_stats::agent::AgentRecord;
use brunt_stats::calibration::Lookup;
use brunt_stats::convergence::Convergence;
use brunt_stats::judgement::Judgement;
use brunt_stats::recorder::Layout;
use brunt_stats::run_data::RunData;
use brunt_stats::run_record::{Environment, PreloadResult, RunRecord};
use brunt_stats::server_stats::ServerRecord;
use brunt_stats::store::SerializedStore;
use serde::{Deserialize, Serialize};
use serde_json::{Number, Value};
use std::borrow::Cow;

/// No count is as large, and no time in nanoseconds: it is more than two years.
const NUMBER_MAX: u64 = 1 << 56;
/// Most intervals that a file may hold: of 100 ms almost five days, which a file that is read has no room for.
const PIECES_MAX: u64 = 1 << 22;

/// A record without its plan, in the order of the file.
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
    run: Cow<'a, RunData>,
    intervals: SerializedStore,
}

/// A record as JSON.
pub(crate) fn value(record: &RunRecord) -> serde_json::Result<Value> {
    let RunRecord { plan: _, run, environment, server, agents, preload, values_checked, .. } = record;
    serde_json::to_value(SerializedRun {
        environment: Cow::Borrowed(environment),
        server: Cow::Borrowed(server),
        agents: Cow::Borrowed(agents),
        preload: *preload,
        values_checked: *values_checked,
        convergence: Cow::Borrowed(&record.convergence),
        calibration: Cow::Borrowed(&record.calibration),
        judgement: Cow::Borrowed(&record.judgement),
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
    let held = result.get("record").ok_or("record: missing; accepted: a result as brunt run writes it")?;
    check_numbers(held, is_possible)
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
    if times.end_ns.saturating_sub(times.start_ns) / least_ns > PIECES_MAX {
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
