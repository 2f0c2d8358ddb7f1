//! Is it enough? How precisely a run is to find out its percentiles, and whether what was measured so far does.
//!
//! Not the run: it looks at what was recorded, at instants fixed beforehand, and says whether the rest may be left out.
//! Looks lie at the first time and its doublings, up to the longest time. A run that stops the first time an interval
//! happens to be narrow stops too often at intervals that are narrow by mistake; few looks far apart keep that small,
//! and doublings are few however long a run may be. Invariant: a run that no look has stopped ends as its plan says.

use crate::change_point::Steadiness;
use crate::check::{CheckId, CheckStatus};
use crate::confidence::PercentileInterval;
use crate::op_summary::{OpRow, OpSummary, RowSums};
use crate::store::IntervalStore;
use crate::window::RunTimes;
use crate::{change_point, op_summary};
use brunt_plan::plan::Plan;
use brunt_plan::quantity::{percent, time};
use brunt_plan::until::Precision;
use serde::{Deserialize, Serialize};
use std::fmt;

/// Workers hand over what they recorded every 100 ms, a little late, and the control thread takes it in 10 ms later: so much
/// later than its instant a look sees everything up to it.
const HANDED_OVER_NS: u64 = 50_000_000;

/// The goals of a run, and the looks at them.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Convergence {
    goals: Vec<Precision>,
    /// Lengths of the window, ascending.
    looks_ns: Vec<u64>,
    taken: u32,
    /// The look that found it enough.
    enough: Option<InterimLook>,
}

/// What one look saw.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct InterimLook {
    at_ns: u64,
    /// Every goal with what was found.
    pub goals: Vec<GoalResult>,
    /// The checks that spoke against ending, whatever the intervals were.
    pub held_by: Vec<CheckId>,
    /// The checks that could not speak against it, because the window was too short or the plan leaves them no say.
    pub unjudged: Vec<CheckId>,
}

impl InterimLook {
    fn of(
        goals: &[Precision],
        at_ns: u64,
        (total, ops): (&OpSummary, &[OpRow]),
        checks: [(CheckId, CheckStatus); 2],
    ) -> Self {
        let row = |goal: &Precision| match goal.op {
            None => Some(total),
            Some(op) => ops.iter().find(|row| row.name == op).map(|row| &row.summary),
        };
        let ids = |is_so: fn(CheckStatus) -> bool| {
            checks.into_iter().filter(|(_, status)| is_so(*status)).map(|(id, _)| id).collect()
        };
        Self {
            at_ns,
            goals: goals.iter().map(|goal| GoalResult::of(goal, row(goal))).collect(),
            held_by: ids(|status| status > CheckStatus::Ok),
            unjudged: ids(|status| status == CheckStatus::Skipped),
        }
    }

    fn is_enough(&self) -> bool {
        self.held_by.is_empty() && self.goals.iter().all(|goal| goal.is_reached)
    }
}

impl Convergence {
    /// Looks at these goals when the window has this length and its doublings, below the length that ends it.
    pub fn new(goals: Vec<Precision>, first_look_ns: u64, max_ns: u64) -> Self {
        let doublings = (0..u64::BITS).map(|doubling| first_look_ns.saturating_mul(1 << doubling));
        let looks_ns = doublings.take_while(|at_ns| *at_ns < max_ns).collect();
        Self { goals, looks_ns, ..Self::default() }
    }

    /// As the plan has it; `None` where it asks for no precision.
    pub fn of(plan: &Plan) -> Option<Self> {
        let look = plan.stop.until.as_ref()?;
        let goals = look.until.precisions.clone();
        Some(Self::new(goals, look.first_look.0, plan.stop.time.map_or(u64::MAX, |time| time.0)))
    }

    /// Looks, when it is time to, at what was recorded until now. Returns whether it is enough. `unread_ns`: what a wake-up costs
    /// beside what the clock readings hold of it.
    pub fn is_enough(
        &mut self,
        now_ns: u64,
        started: &RunTimes,
        plan: &Plan,
        store: &IntervalStore,
        unread_ns: u64,
    ) -> bool {
        let length_ns = now_ns.saturating_sub(started.measure_ns.saturating_add(HANDED_OVER_NS));
        let due = self.looks_ns.iter().take_while(|at_ns| **at_ns <= length_ns).count() as u32;
        if due > self.taken && self.enough.is_none() {
            // A look that was missed is not made up for.
            let at_ns = self.looks_ns[due as usize - 1];
            self.taken = due;
            let end_ns = started.measure_ns + at_ns;
            let window = RunTimes { end_ns, drained_ns: end_ns, ..*started };
            let rows = RowSums::new(plan, store, &window, unread_ns);
            let (total, ops) = (rows.sum(|_, _| true), rows.by_op(|_| true));
            let checks = checks(plan, &Steadiness::of(plan, store, &window, &[]), &total);
            let look = InterimLook::of(&self.goals, at_ns, (&total, &ops), checks);
            self.enough = Some(look).filter(InterimLook::is_enough);
        }
        self.enough.is_some()
    }

    /// What it came to, when the run is over: as the look saw it that was content, else as it is at the end.
    pub(crate) fn end(
        &self,
        plan: &Plan,
        rows: (&OpSummary, &[OpRow]),
        steady: &Steadiness,
        window: &RunTimes,
        is_interrupted: bool,
    ) -> UntilResult {
        let checks = checks(plan, steady, rows.0);
        let last = || InterimLook::of(&self.goals, window.duration_ns(), rows, checks);
        UntilResult {
            is_early: self.enough.is_some(),
            look: self.enough.clone().unwrap_or_else(last),
            taken: self.taken,
            looks: self.looks_ns.len() as u32,
            is_interrupted,
        }
    }
}

/// The checks that speak against ending a run early: what the window holds so far changes, or is the client's.
fn checks(plan: &Plan, steady: &Steadiness, total: &OpSummary) -> [(CheckId, CheckStatus); 2] {
    let client = op_summary::status_of_part(plan, total);
    // In a closed loop a late client lowers the load, and no length of the run makes it less late.
    let client = if plan.has_open_loop() { client } else { CheckStatus::Ok };
    [(CheckId::Client, client), (CheckId::Steady, change_point::check(steady).status)]
}

/// Independent requests that must lie above a percentile before its interval counts as narrow.
pub(crate) const EFFECTIVE_ABOVE_MIN: f64 = 50.0;

/// What the intervals say of a goal.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct GoalResult {
    /// The goal.
    pub precision: Precision,
    /// The interval of its percentile; `None` with too few requests, or too short a time.
    pub interval: Option<PercentileInterval>,
    /// Is it reached?
    pub is_reached: bool,
}

impl GoalResult {
    /// By the interval that `row`, the summary of its operation, has for its percentile.
    fn of(precision: &Precision, row: Option<&OpSummary>) -> Self {
        let interval = row.and_then(|row| row.interval(precision.quantile)).copied();
        let is_reached = interval.is_some_and(|interval| {
            let half_width = interval.relative_half_width();
            interval.effective_above() >= EFFECTIVE_ABOVE_MIN
                && half_width.is_some_and(|found| found <= precision.half_width.as_f64())
        });
        Self { precision: *precision, interval, is_reached }
    }
}

/// What became of the goals of a run. A look is a time at which it was asked whether they are reached.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct UntilResult {
    /// The look that was content, or else one at the end.
    pub look: InterimLook,
    /// It was content before the end.
    is_early: bool,
    /// Looks taken.
    pub taken: u32,
    /// Looks that there could have been.
    pub looks: u32,
    /// The run was interrupted before.
    pub is_interrupted: bool,
}

impl UntilResult {
    /// Was everything found out?
    pub fn is_reached(&self) -> bool {
        self.look.is_enough()
    }

    /// Length of the window at the look that was content; `None` where none was.
    pub fn enough_at_ns(&self) -> Option<u64> {
        self.is_early.then_some(self.look.at_ns)
    }
}

/// When the run ended, then what is known of each goal, and what else decided, as parts of a sentence.
impl fmt::Display for UntilResult {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let look = |at_ns: u64| format!("at look {} of {}, after {}", self.taken, self.looks, time(at_ns));
        let InterimLook { goals, held_by, unjudged, .. } = &self.look;
        let mut clauses = vec![match self.enough_at_ns() {
            Some(at_ns) => format!("reached {}", look(at_ns)),
            None if self.is_interrupted => "interrupted before it was reached".to_owned(),
            None if self.is_reached() => "reached when the time was up".to_owned(),
            None => "not reached when the time was up".to_owned(),
        }];
        clauses.extend(goals.iter().map(|goal| {
            let found = match goal.interval.as_ref().map(PercentileInterval::relative_half_width) {
                None => "no interval".to_owned(),
                Some(Some(half_width)) => percent(half_width),
                Some(None) => "no upper end".to_owned(),
            };
            format!("{}: {found}", goal.precision)
        }));
        if !held_by.is_empty() {
            clauses.push(format!("held up by {}", names(held_by)));
        }
        if !unjudged.is_empty() {
            clauses.push(format!("without {}, not judged then", names(unjudged)));
        }
        formatter.write_str(&clauses.join("; "))
    }
}

fn names(ids: &[CheckId]) -> String {
    ids.iter().map(|id| id.name()).collect::<Vec<_>>().join(" and ")
}

#[cfg(test)]
mod tests;
