//! The schema `brunt.compare.v1`: what was compared, run by run, and what that shows.
//!
//! Not for a person. docs/formats.md says what every key means.

use super::record::ComparisonRecord;
use super::{AssertionRow, ComparedRow, Comparison, EarlyEnd};
use crate::json::bounds;
use crate::result::RunResult;
use brunt_plan::tolerance::Requirement;
use brunt_stats::rank_test::{ChangeScale, LEVEL};
use serde_json::{Map, Value, json};

/// The name of the schema.
pub const SCHEMA: &str = "brunt.compare.v1";

pub(super) fn value(comparison: &Comparison) -> serde_json::Result<Value> {
    let Comparison { a, b, plan, environment, compared, asserted, early_end } = comparison;
    let failure = match early_end {
        Some(EarlyEnd::Failed(reason)) => Some(reason),
        Some(EarlyEnd::Interrupted) | None => None,
    };
    Ok(json!({
        "schema": SCHEMA,
        "version": env!("CARGO_PKG_VERSION"),
        "interrupted": early_end.is_some(),
        "failure": failure,
        "confidence": 1.0 - LEVEL,
        "a": side(a, compared),
        "b": side(b, compared),
        "plan_differences": plan,
        "environment_differences": environment,
        "quantities": compared.iter().map(quantity).collect::<Value>(),
        "assertions": asserted.iter().map(assertion).collect::<Value>(),
        "record": serde_json::to_value(ComparisonRecord::of(a, b))?,
    }))
}

fn side(runs: &[RunResult], compared: &[ComparedRow]) -> Value {
    let run = |run: &RunResult| {
        let numbers = compared.iter().map(|held| (held.quantity.key(), json!(held.quantity.of_run(run))));
        let intervals = compared.iter().filter_map(|held| {
            let own = held.quantity.interval_of_run(run)?;
            Some((held.quantity.key(), json!([own.low_ns, own.high_ns])))
        });
        let least = compared.iter().filter(|held| held.quantity.is_latency()).map(|held| {
            let bounds = held.quantity.bounds_of_run(run);
            (held.quantity.key(), json!(bounds.map(|bounds| bounds.low)))
        });
        json!({
            "source": run.source,
            "version": run.version,
            "seed": run.seed,
            "server": run.server,
            "interrupted": run.interrupted,
            "status": run.status.name(),
            "checks": run.found,
            "numbers": numbers.collect::<Map<_, _>>(),
            "least": least.collect::<Map<_, _>>(),
            "intervals": intervals.collect::<Map<_, _>>(),
        })
    };
    json!({ "plan": runs.first().map(|run| &run.plan), "runs": runs.iter().map(run).collect::<Value>() })
}

fn assertion(asserted: &AssertionRow) -> Value {
    let (kind, bound) = match asserted.requirement {
        Requirement::Change(tolerance) => ("change", tolerance.change.value()),
        Requirement::Value(objective) => ("value", objective.bound.value()),
    };
    json!({
        "requirement": asserted.requirement.to_string(),
        "kind": kind,
        "status": asserted.decision.name(),
        "measured": asserted.measured,
        "bounds": asserted.bounds.map(bounds),
        "reason": asserted.reason,
        "bound": bound,
    })
}

fn quantity(ComparedRow { quantity, test }: &ComparedRow) -> Value {
    json!({
        "quantity": quantity.key(),
        "scale": match quantity.scale() {
            ChangeScale::Ratio => "ratio",
            ChangeScale::Difference => "difference",
        },
        "a": test.a,
        "b": test.b,
        "change": test.change,
        "interval": test.interval,
        "bounds": test.bounds.map(bounds),
        "p": test.p,
        "finding": test.finding.name(),
    })
}
