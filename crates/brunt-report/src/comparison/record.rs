//! The key `record` of a comparison: what of every run it was made of, so that it can be reported again.
//!
//! Not the records of those runs, which are in their own results: a comparison has up to a hundred. Invariant: what is read back is compared
//! by the same function as what was measured, and has no number that could not be one of a run.

use super::{Comparison, EarlyEnd};
use crate::paragraph::printable;
use crate::record::check_numbers;
use crate::result::RunResult;
use crate::stored::StoredResult;
use brunt_plan::tolerance::Requirement;
use brunt_stats::change::Design;
use serde::{Deserialize, Serialize};
use serde_json::{Number, Value};
use std::borrow::Cow;

/// No count, rate or time of a run is as large.
const NUMBER_MAX: f64 = (1_u64 << 56) as f64;

/// What of a run is shown and not reckoned with.
const SHOWN: [&str; 3] = ["seed", "plan", "environment"];

/// The runs of both sides.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ComparisonRecord<'a> {
    design: Cow<'a, str>,
    a: Cow<'a, [RunResult]>,
    b: Cow<'a, [RunResult]>,
}

impl<'a> ComparisonRecord<'a> {
    pub(super) fn of(comparison: &'a Comparison) -> Self {
        let design = comparison.design.name().into();
        Self { design, a: Cow::Borrowed(&comparison.a), b: Cow::Borrowed(&comparison.b) }
    }
}

impl Comparison {
    /// What a file holds, compared again.
    ///
    /// # Errors
    /// What is wrong with it, in one sentence; for a user.
    pub fn of_stored(stored: &StoredResult) -> Result<Self, String> {
        read(stored).map_err(|error| format!("{}: {error}", stored.source()))
    }
}

fn read(stored: &StoredResult) -> Result<Comparison, String> {
    let held = stored.key("record").ok_or("record: missing")?;
    let is_possible =
        |number: &Number| number.as_f64().is_some_and(|number| (0.0..=NUMBER_MAX).contains(&number));
    check_numbers(held, &SHOWN, is_possible)
        .map_err(|number| format!("record: {number} is no number of a run"))?;
    let record = ComparisonRecord::deserialize(held).map_err(|error| format!("record: {error}"))?;
    let assertions = stored.key("assertions").and_then(Value::as_array).map(Vec::as_slice);
    let requirement = |assertion: &Value| -> Result<Requirement, String> {
        let text = assertion["requirement"].as_str().unwrap_or_default();
        text.parse().map_err(|error| format!("assertions: {error}"))
    };
    let required = assertions.unwrap_or_default().iter().map(requirement).collect::<Result<Vec<_>, _>>()?;
    let design = Design::from_name(&record.design)
        .ok_or_else(|| format!("record: design: '{}' is none", printable(&record.design)))?;
    let comparison = Comparison::of(design, record.a.into_owned(), record.b.into_owned(), &required)
        .map_err(|error| format!("record: {error}"))?;
    let is_interrupted = stored.key("interrupted").and_then(Value::as_bool).unwrap_or(false);
    let failure = stored.key("failure").and_then(Value::as_str);
    Ok(match (is_interrupted, failure) {
        (false, _) => comparison,
        (true, None) => comparison.ended_early(EarlyEnd::Interrupted),
        (true, Some(reason)) => comparison.ended_early(EarlyEnd::Failed(reason.to_owned())),
    })
}
