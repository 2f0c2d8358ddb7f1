//! The schema `brunt.compare.v1`: what was compared, run by run, and what that shows.
//!
//! Not for a person. docs/formats.md says what every key means.

use super::record::ComparisonRecord;
use super::{AssertionRow, ComparedRow, Comparison, EarlyEnd, document};
use crate::indented;
use crate::json::bounds;
use crate::result::RunResult;
use brunt_plan::tolerance::Requirement;
use brunt_stats::change::{ChangeScale, Finding, LEVEL, Reason};
use serde_json::{Map, Value, json};
use std::io::{self, Write};

/// The name of the schema.
pub const SCHEMA: &str = "brunt.compare.v1";

/// Writes the schema `brunt.compare.v1`.
pub(crate) fn write(comparison: &Comparison, out: &mut dyn Write) -> io::Result<()> {
    indented::write(value(comparison)?, out)
}

pub(super) fn value(comparison: &Comparison) -> serde_json::Result<Value> {
    let Comparison { a, b, plan, environment, design, compared, asserted, early_end } = comparison;
    let failure = match early_end {
        Some(EarlyEnd::Failed(reason)) => Some(reason),
        Some(EarlyEnd::Interrupted) | None => None,
    };
    Ok(json!({
        "schema": SCHEMA,
        "version": env!("CARGO_PKG_VERSION"),
        "interrupted": early_end.is_some(),
        "failure": failure,
        "sentences": document::answer(comparison),
        "has_conclusion": comparison.has_conclusion(),
        "design": design.name(),
        "confidence": 1.0 - LEVEL,
        "a": side(a, compared),
        "b": side(b, compared),
        "plan_differences": plan,
        "environment_differences": environment,
        "quantities": compared.iter().map(quantity).collect::<Value>(),
        "assertions": asserted.iter().map(assertion).collect::<Value>(),
        "record": serde_json::to_value(ComparisonRecord::of(comparison))?,
    }))
}

fn side(runs: &[RunResult], compared: &[ComparedRow]) -> Value {
    let run = |run: &RunResult| {
        let numbers = compared.iter().map(|held| (held.quantity.key(), json!(held.quantity.of_run(run))));
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

fn quantity(held: &ComparedRow) -> Value {
    let ComparedRow { quantity, change } = held;
    let detectable = match change.reason {
        Some(Reason::Spread { detectable }) => Some(detectable),
        _ => None,
    };
    json!({
        "quantity": quantity.key(),
        "scale": match quantity.scale() {
            ChangeScale::Ratio => "ratio",
            ChangeScale::Difference => "difference",
        },
        "a": change.a,
        "b": change.b,
        "change": change.change,
        "interval": change.interval,
        "change_without_client": change.without_client,
        "finding": change.finding.map(Finding::name),
        "message": change.finding.map(|_| document::finding(held)),
        "detectable": detectable,
    })
}
