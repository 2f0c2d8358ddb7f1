//! What was asserted of a comparison, and how it came out.
//!
//! Not `brunt_stats::assertion`, which judges one run by its summary. Invariant: what is not known never passes; a change
//! fails only where all of its interval does, for it is asserted that B is no worse, and what is not shown is not held
//! against it.

use super::{Compared, Quantity};
use crate::metric;
use crate::result::RunResult;
use brunt_plan::tolerance::Requirement;
use brunt_stats::bound::Decision;
use brunt_stats::contrast::{Finding, RUNS_MIN};

/// Runs of B from which on their range is enough for "beyond doubt": the range of 5 holds the median of all runs there could be
/// with 93.75 %, less than the 95 % of the intervals, that of 6 with 96.9 % (`brunt_stats::repeat::Spread::coverage`).
const RANGE_RUNS_MIN: usize = 6;

/// One assertion and how it came out.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Asserted {
    /// What was asserted.
    pub requirement: Requirement,
    /// How it came out.
    pub status: Decision,
    /// Of a change the estimate, of a value the median of B's runs; `None` where it is not known.
    pub measured: Option<f64>,
    /// Of a change its confidence interval, of a value the lowest and the highest of B's runs.
    pub interval: Option<[f64; 2]>,
    /// Do both ends of the interval say what the status says?
    pub is_beyond_doubt: bool,
    /// What is missing where it is not known.
    lack: String,
}

impl Asserted {
    /// Judges a requirement by what was compared, which has its number.
    pub(super) fn of(requirement: Requirement, compared: &[Compared], b: &[RunResult]) -> Self {
        let quantity = Quantity::Of(requirement.subject());
        let held = compared.iter().find(|held| held.quantity == quantity);
        let (measured, interval) = match requirement {
            Requirement::Change(_) => {
                held.map_or((None, None), |held| (held.contrast.change, held.contrast.interval))
            }
            Requirement::Value(_) => (held.and_then(|held| held.contrast.b), range(quantity, b)),
        };
        let is_met = |number: f64| match requirement {
            Requirement::Change(tolerance) => tolerance.is_met_by(number),
            Requirement::Value(objective) => objective.is_met_by(number),
        };
        let ends = interval.map(|ends| ends.map(is_met));
        let status = match (requirement, measured, ends) {
            (_, None, _) | (Requirement::Change(_), _, None) => Decision::Inconclusive,
            (Requirement::Change(_), _, Some([false, false])) => Decision::Fails,
            (Requirement::Value(_), Some(value), _) if !is_met(value) => Decision::Fails,
            _ => Decision::Holds,
        };
        // The interval of a change has its 95 % with RUNS_MIN runs; a range is asked for as much.
        let is_enough = matches!(requirement, Requirement::Change(_)) || b.len() >= RANGE_RUNS_MIN;
        let is_beyond_doubt = match status {
            Decision::Holds => ends == Some([true, true]) && is_enough,
            Decision::Fails => ends == Some([false, false]) && is_enough,
            Decision::Inconclusive => false,
        };
        let lack = match held.map(|held| held.contrast.finding) {
            Some(Finding::TooFewRuns) => format!("needs {RUNS_MIN} runs on each side"),
            _ => "not every run gives it".to_owned(),
        };
        Self { requirement, status, measured, interval, is_beyond_doubt, lack }
    }

    /// How it came out, in words.
    pub(crate) fn outcome(&self) -> String {
        match (self.status, self.is_beyond_doubt) {
            (Decision::Holds, true) => "holds".to_owned(),
            (Decision::Holds, false) => "holds, not beyond doubt ~".to_owned(),
            (Decision::Fails, true) => "FAILS beyond doubt".to_owned(),
            (Decision::Fails, false) => "FAILS, not beyond doubt ~".to_owned(),
            (Decision::Inconclusive, _) => format!("inconclusive: {}", self.lack),
        }
    }

    /// The number in its unit: `+5.0 %` of a change, `1.21 ms` of a value.
    pub(crate) fn measured_text(&self) -> Option<String> {
        let quantity = Quantity::Of(self.requirement.subject());
        self.measured.map(|number| match self.requirement {
            Requirement::Change(_) => super::text::change_text(quantity, number),
            Requirement::Value(objective) => metric::text(objective.subject.metric, number),
        })
    }

    /// The ends of the interval: of a change as the table above has them, of a value each in its unit, where they differ.
    pub(crate) fn interval_text(&self) -> Option<String> {
        let scale = Quantity::Of(self.requirement.subject()).scale();
        self.interval.and_then(|[low, high]| match self.requirement {
            Requirement::Change(_) => Some(super::text::change_interval(scale, [low, high])),
            Requirement::Value(objective) => {
                let [low, high] = [low, high].map(|end| metric::text(objective.subject.metric, end));
                (low != high).then(|| format!("{low} to {high}"))
            }
        })
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
