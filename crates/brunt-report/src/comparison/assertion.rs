//! What was asserted of a comparison, and how it came out.
//!
//! Not `brunt_stats::assertion`, which judges one run by its summary. A change is decided by its interval, unless it is another without the
//! client's part, a value of B by the bounds of B's runs, whatever the client did. Invariant: what is not known neither holds nor fails.

use super::document::{change_text, interval_texts};
use super::{ComparedRow, Comparison, Quantity};
use crate::assertion_text::AssertionText;
use crate::quantity;
use crate::result::RunResult;
use brunt_plan::objective::Requirement;
use brunt_stats::bound::{Bounds, Decision, decide};
use brunt_stats::change::ChangeScale;

/// Runs of B from which on their range decides: the range of 5 holds the median of all runs there could be with 93.75 %, less than
/// the 95 % of the intervals, that of 6 with 96.9 % (`brunt_stats::median::Spread::coverage`).
const RANGE_RUNS_MIN: usize = 6;

/// It came out otherwise without the client's part.
const CLIENT: &str = "the client's part would decide";

/// One assertion and how it came out.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct AssertionRow {
    /// What was asserted.
    pub requirement: Requirement,
    /// How it came out.
    pub decision: Decision,
    /// Of a change the estimate, of a value the median of B's runs; `None` where it is not known.
    pub measured: Option<f64>,
    /// Of a change its interval, of a value from the lowest lower bound of B's runs to the highest upper one.
    pub bounds: Option<Bounds>,
    /// Why it is undecided; `None` where it is not.
    pub reason: Option<String>,
}

/// A requirement beside what is known of its number.
struct RequirementData<'a> {
    requirement: Requirement,
    held: Option<&'a ComparedRow>,
    b: &'a [RunResult],
    has_conclusion: bool,
}

impl AssertionRow {
    /// Judges a requirement by what was compared, which has its number.
    pub(super) fn of(requirement: Requirement, comparison: &Comparison) -> Self {
        let quantity = Quantity::Of(requirement.subject());
        let held = comparison.compared.iter().find(|held| held.quantity == quantity);
        let has_conclusion = comparison.has_conclusion();
        let known = RequirementData { requirement, held, b: &comparison.b, has_conclusion };
        let (measured, bounds) = (known.measured(), known.bounds());
        let reason = known.lack().or_else(|| known.doubt());
        let decision = if reason.is_some() { Decision::Undecided } else { known.decide(bounds) };
        Self { requirement, decision, measured, bounds, reason }
    }

    /// In words.
    pub(crate) fn text(&self) -> AssertionText {
        let number = self.measured_text().map(|number| format!("{number} {}", self.bounds_text()));
        let clauses = [number.unwrap_or_default(), self.reason.clone().unwrap_or_default()];
        let clauses: Vec<&str> =
            clauses.iter().map(|clause| clause.trim()).filter(|clause| !clause.is_empty()).collect();
        AssertionText {
            decision: self.decision,
            subject: self.requirement.to_string(),
            finding: clauses.join("; "),
        }
    }

    /// The number in its unit: `+5.0 %` of a change, `1.21 ms` of a value.
    pub(crate) fn measured_text(&self) -> Option<String> {
        self.measured.map(|number| match self.requirement {
            Requirement::Change(_) => format!("{} {}", change_text(number), self.change_unit()),
            Requirement::Value(objective) => quantity::of_metric(objective.subject.metric, number),
        })
    }

    fn change_unit(&self) -> &'static str {
        let scale = Quantity::Of(self.requirement.subject()).scale();
        if scale == ChangeScale::Ratio { "%" } else { "points" }
    }

    /// The bounds in the unit of the number, where they differ.
    pub(crate) fn bounds_text(&self) -> String {
        let Some(Bounds { low, high }) = self.bounds.filter(|_| self.measured.is_some()) else {
            return String::new();
        };
        let [low, high] = match self.requirement {
            Requirement::Change(_) => interval_texts([low, high]),
            Requirement::Value(objective) => {
                [low, high].map(|end| quantity::of_metric(objective.subject.metric, end))
            }
        };
        if low == high { String::new() } else { format!("[{low} .. {high}]") }
    }
}

impl RequirementData<'_> {
    fn is_met_by(&self, number: f64) -> bool {
        match self.requirement {
            Requirement::Change(tolerance) => tolerance.is_met_by(number),
            Requirement::Value(objective) => objective.is_met_by(number),
        }
    }

    fn decide(&self, bounds: Option<Bounds>) -> Decision {
        bounds.map_or(Decision::Undecided, |bounds| decide(bounds, |number| self.is_met_by(number)))
    }

    fn measured(&self) -> Option<f64> {
        let change = &self.held?.change;
        match self.requirement {
            Requirement::Change(_) => change.change,
            Requirement::Value(_) => change.b,
        }
    }

    fn bounds(&self) -> Option<Bounds> {
        let held = self.held?;
        match self.requirement {
            Requirement::Change(_) => held.change.interval.map(|[low, high]| Bounds { low, high }),
            Requirement::Value(_) => {
                let bounds = self.b.iter().filter_map(|run| held.quantity.bounds_of_run(run));
                bounds.reduce(joined)
            }
        }
    }

    /// What is missing for an answer.
    fn lack(&self) -> Option<String> {
        let change = &self.held?.change;
        let reason = match (self.requirement, self.measured()) {
            _ if !self.has_conclusion => "more than a third of the runs are INVALID",
            // There is no ratio to nothing.
            (Requirement::Change(_), None) if change.a.is_some() && change.b.is_some() => "0 in a run",
            (_, None) => "not every run gives it",
            (Requirement::Change(_), _) if change.interval.is_none() => "too few runs",
            (Requirement::Value(_), _) if self.b.len() < RANGE_RUNS_MIN => {
                return Some(format!("needs {RANGE_RUNS_MIN} runs of B"));
            }
            _ => return None,
        };
        Some(reason.to_owned())
    }

    /// Why what is known does not decide; `None` where it does.
    fn doubt(&self) -> Option<String> {
        let is_open = |bounds| self.decide(bounds) == Decision::Undecided;
        let without_client = self.held.and_then(|held| held.change.without_client).map(Bounds::exact);
        let as_measured = || {
            let values = self.b.iter().filter_map(|run| self.held?.quantity.of_run(run));
            values.map(Bounds::exact).reduce(joined)
        };
        let reason = match self.requirement {
            Requirement::Change(_) if is_open(self.bounds()) => "the interval holds the bound",
            Requirement::Change(_) if self.decide(without_client) != self.decide(self.bounds()) => CLIENT,
            Requirement::Value(_) if !is_open(self.bounds()) => return None,
            Requirement::Change(_) => return None,
            Requirement::Value(objective)
                if self.b.iter().any(|run| run.has_unanswered(objective.subject.op))
                    && self.bounds().is_some_and(|bounds| bounds.high.is_infinite()) =>
            {
                "requests without an answer count as above every bound"
            }
            Requirement::Value(_) if !is_open(as_measured()) => CLIENT,
            Requirement::Value(_) => "B's runs lie on both sides of it",
        };
        Some(reason.to_owned())
    }
}

/// From the lower of both lower bounds to the higher of both upper ones.
fn joined(one: Bounds, other: Bounds) -> Bounds {
    Bounds { low: one.low.min(other.low), high: one.high.max(other.high) }
}
