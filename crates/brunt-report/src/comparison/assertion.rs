//! What was asserted of a comparison, and how it came out.
//!
//! Not `brunt_stats::assertion`, which judges one run by its summary. Invariant: what is not known neither holds nor fails, and
//! what does one of them does so whatever the clients did.

use super::change_text::{change_interval, change_text};
use super::{ComparedRow, Quantity};
use crate::assertion_text::AssertionText;
use crate::metric;
use crate::result::RunResult;
use brunt_plan::tolerance::Requirement;
use brunt_stats::bound::{Bounds, Decision, decide};
use brunt_stats::rank_test::{RUNS_MIN, TestResult};

/// Runs of B from which on their range decides: the range of 5 holds the median of all runs there could be with 93.75 %, less than
/// the 95 % of the intervals, that of 6 with 96.9 % (`brunt_stats::repeat::Spread::coverage`).
const RANGE_RUNS_MIN: usize = 6;

/// One assertion and how it came out.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct AssertionRow {
    /// What was asserted.
    pub requirement: Requirement,
    /// How it came out.
    pub decision: Decision,
    /// Of a change the estimate, of a value the median of B's runs; `None` where it is not known.
    pub measured: Option<f64>,
    /// Where it is whatever the clients did: of a change the intervals of both extremes joined, of a value from the lowest lower
    /// bound of B's runs to the highest upper one.
    pub bounds: Option<Bounds>,
    /// Why it is undecided; `None` where it is not.
    pub reason: Option<String>,
}

/// A requirement beside what is known of its number.
struct RequirementData<'a> {
    requirement: Requirement,
    held: Option<&'a ComparedRow>,
    b: &'a [RunResult],
}

impl AssertionRow {
    /// Judges a requirement by what was compared, which has its number.
    pub(super) fn of(requirement: Requirement, compared: &[ComparedRow], b: &[RunResult]) -> Self {
        let quantity = Quantity::Of(requirement.subject());
        let known =
            RequirementData { requirement, held: compared.iter().find(|held| held.quantity == quantity), b };
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
        let quantity = Quantity::Of(self.requirement.subject());
        self.measured.map(|number| match self.requirement {
            Requirement::Change(_) => change_text(quantity, number),
            Requirement::Value(objective) => metric::text(objective.subject.metric, number),
        })
    }

    /// The bounds: of a change as the table above has intervals, of a value each in its unit, where these differ.
    pub(crate) fn bounds_text(&self) -> String {
        let scale = Quantity::Of(self.requirement.subject()).scale();
        let Some(Bounds { low, high }) = self.bounds.filter(|_| self.measured.is_some()) else {
            return String::new();
        };
        match self.requirement {
            Requirement::Change(_) => change_interval(scale, [low, high]),
            Requirement::Value(objective) => {
                let [low, high] = [low, high].map(|end| metric::text(objective.subject.metric, end));
                if low == high { String::new() } else { format!("[{low}..{high}]") }
            }
        }
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
        let test = &self.held?.test;
        match self.requirement {
            Requirement::Change(_) => test.change,
            Requirement::Value(_) => test.b,
        }
    }

    fn bounds(&self) -> Option<Bounds> {
        let held = self.held?;
        match self.requirement {
            Requirement::Change(_) => held.test.bounds,
            Requirement::Value(_) => {
                let bounds = self.b.iter().filter_map(|run| held.quantity.bounds_of_run(run));
                bounds.reduce(|one, other| Bounds {
                    low: one.low.min(other.low),
                    high: one.high.max(other.high),
                })
            }
        }
    }

    /// Bounds of the measured change, as if client error were 0.
    fn bounds_as_measured(&self) -> Option<Bounds> {
        let held = self.held?;
        let ends = match self.requirement {
            Requirement::Change(_) => held.test.interval,
            Requirement::Value(_) => range(held.quantity, self.b),
        };
        ends.map(|[low, high]| Bounds { low, high })
    }

    /// What is missing for an answer.
    fn lack(&self) -> Option<String> {
        let test = self.held.map(|held| &held.test);
        let finding = test.map(|test| test.finding);
        match (self.requirement, test, self.measured()) {
            (Requirement::Change(_), ..) if finding == Some(TestResult::TooFewRuns) => {
                Some(format!("needs {RUNS_MIN} runs on each side"))
            }
            // There is no ratio to nothing.
            (Requirement::Change(_), Some(test), None) if test.a.is_some() && test.b.is_some() => {
                Some("0 in a run".to_owned())
            }
            (_, _, None) => Some("not every run gives it".to_owned()),
            (Requirement::Value(_), ..) if self.b.len() < RANGE_RUNS_MIN => {
                Some(format!("needs {RANGE_RUNS_MIN} runs of B"))
            }
            _ => None,
        }
    }

    /// Why what is known does not decide; `None` where it does.
    fn doubt(&self) -> Option<String> {
        let is_open = |bounds| self.decide(bounds) == Decision::Undecided;
        if !is_open(self.bounds()) {
            return None;
        }
        let reason = match self.requirement {
            Requirement::Value(objective)
                if self.b.iter().any(|run| run.has_unanswered(objective.subject.op))
                    && self.bounds().is_some_and(|bounds| bounds.high.is_infinite()) =>
            {
                "requests without an answer count as above every bound"
            }
            _ if !is_open(self.bounds_as_measured()) => "the client's share would decide",
            Requirement::Change(_) => "the interval holds the bound",
            Requirement::Value(_) => "B's runs lie on both sides of it",
        };
        Some(reason.to_owned())
    }
}

/// The lowest and the highest of all runs that give the number.
pub(super) fn range(quantity: Quantity, runs: &[RunResult]) -> Option<[f64; 2]> {
    let values = runs.iter().filter_map(|run| quantity.of_run(run));
    values.fold(None, |range, value| match range {
        None => Some([value; 2]),
        Some([low, high]) => Some([low.min(value), high.max(value)]),
    })
}
