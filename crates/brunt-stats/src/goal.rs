//! How precisely a run is to find out a percentile, and what its intervals say of that.
//!
//! [`crate::convergence`] decides by it whether a run may end.

use crate::check::CheckId;
use crate::confidence::PercentileInterval;
use crate::number_text::{percent, time};
use crate::op_summary::OpSummary;
use brunt_plan::until::Precision;
use serde::{Deserialize, Serialize};
use std::fmt;

/// Independent requests that must lie above a percentile before its interval counts as narrow.
pub(crate) const EFFECTIVE_ABOVE_MIN: f64 = 50.0;

/// Is this precision reached, going by the interval that `row`, the summary of its operation, has for its percentile?
pub fn state(precision: &Precision, row: &OpSummary) -> GoalState {
    let Some(interval) = row.intervals.iter().find(|interval| interval.quantile == precision.quantile) else {
        return GoalState::Unknown;
    };
    let half_width = interval.relative_half_width();
    let is_reached = interval.effective_above() >= EFFECTIVE_ABOVE_MIN
        && half_width.is_some_and(|found| found <= precision.half_width.as_f64());
    if is_reached { GoalState::Reached(*interval) } else { GoalState::Open(*interval) }
}

/// What the intervals say of a goal.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub enum GoalState {
    /// Nothing: too few requests for the percentile, or too short a time for an interval.
    Unknown,
    /// It is not reached.
    Open(PercentileInterval),
    /// It is reached.
    Reached(PercentileInterval),
}

impl GoalState {
    /// Is the goal reached?
    pub const fn is_reached(&self) -> bool {
        matches!(self, Self::Reached(_))
    }

    /// The interval that it rests on.
    pub const fn interval(&self) -> Option<&PercentileInterval> {
        match self {
            Self::Unknown => None,
            Self::Open(interval) | Self::Reached(interval) => Some(interval),
        }
    }
}

/// What became of the goals of a run. A look is a time at which it was asked whether they are reached.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct UntilResult {
    /// Every goal with what was found, at the look that was content or else at the end.
    pub findings: Vec<(Precision, GoalState)>,
    /// The checks that spoke against ending then, whatever the intervals were.
    pub held_by: Vec<CheckId>,
    /// The checks that could not speak against it, because the window was too short then or the plan leaves them no
    /// say.
    pub unjudged: Vec<CheckId>,
    /// Looks taken.
    pub taken: u32,
    /// Looks that there could have been.
    pub looks: u32,
    /// Length of the window at the look that was content; `None` where none was.
    pub enough_at_ns: Option<u64>,
    /// The run was interrupted before.
    pub is_interrupted: bool,
}

impl UntilResult {
    /// Was everything found out?
    pub fn is_reached(&self) -> bool {
        self.held_by.is_empty() && self.findings.iter().all(|(_, finding)| finding.is_reached())
    }
}

impl fmt::Display for UntilResult {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.clauses().join("; "))
    }
}

impl UntilResult {
    /// When the run ended, then what is known of each goal, and what else decided, as parts of a sentence.
    pub(crate) fn clauses(&self) -> Vec<String> {
        let look = |at_ns: u64| format!("at look {} of {}, after {}", self.taken, self.looks, time(at_ns));
        let mut clauses = vec![match self.enough_at_ns {
            Some(at_ns) => format!("reached {}", look(at_ns)),
            None if self.is_interrupted => "interrupted before it was reached".to_owned(),
            None if self.is_reached() => "reached when the time was up".to_owned(),
            None => "not reached when the time was up".to_owned(),
        }];
        clauses.extend(self.findings.iter().map(|(goal, finding)| {
            let found = match finding.interval().map(PercentileInterval::relative_half_width) {
                None => "no interval".to_owned(),
                Some(Some(half_width)) => percent(half_width),
                Some(None) => "no upper end".to_owned(),
            };
            format!("{goal}: {found}")
        }));
        if !self.held_by.is_empty() {
            clauses.push(format!("held up by {}", names(&self.held_by)));
        }
        if !self.unjudged.is_empty() {
            clauses.push(format!("without {}, not judged then", names(&self.unjudged)));
        }
        clauses
    }
}

fn names(ids: &[CheckId]) -> String {
    ids.iter().map(|id| id.name()).collect::<Vec<_>>().join(" and ")
}
