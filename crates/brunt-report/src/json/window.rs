//! The measured window as JSON: when it was, whether it was steady, and what became of `--until`.

use brunt_stats::change_point::ChangePoint;
use brunt_stats::check::CheckId;
use brunt_stats::confidence::PercentileInterval;
use brunt_stats::convergence::{GoalResult, UntilResult};
use brunt_stats::summary::Summary;
use brunt_stats::warmup::WarmupEnd;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The measured window.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Window {
    /// Its beginning by the wall clock of the host, in nanoseconds since 1970, to the microsecond. All instants count from it.
    pub start_unix_ns: Option<u64>,
    /// Its length.
    pub duration_ns: u64,
    /// Length of the warm-up before it.
    pub warmup_ns: u64,
    /// Why a warm-up of `auto` ended: `"level"`, `"trouble"` (a server was down or a connection failed), `"hit_ratio_fell"`, `"unknown"`
    /// (nothing to judge) or `"longest"` (not level after 60 s); `null` for one of a fixed length.
    pub warmup_end: Option<String>,
    /// Does a class send by a schedule (an open loop)?
    pub is_open_loop: bool,
    /// Was the schedule cut short from outside?
    pub interrupted: bool,
    /// The change point that STEADY found, or `null`.
    pub change: Option<Change>,
    /// Result of `--until`: at the check that ended the run, otherwise of the whole window; `null` without it.
    pub until: Option<Until>,
}

/// The likeliest instant at which a series changed its level.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Change {
    /// `"median"` or `"hit ratio"`.
    pub series: String,
    /// When.
    pub at_ns: u64,
    /// The median of its values before.
    pub before: f64,
    /// And behind.
    pub after: f64,
    /// How likely chance makes one as clear, at most.
    pub p: f64,
}

/// The result of `--until`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Until {
    /// Was every goal reached?
    pub reached: bool,
    /// Checks made.
    pub looks: u32,
    /// Their limit.
    pub looks_max: u32,
    /// Length of the window at the check that ended the run, `null` if none did.
    pub enough_ns: Option<u64>,
    /// Checks of the status that spoke against ending then.
    pub held_by: Vec<CheckId>,
    /// Those that could not be judged then.
    pub unjudged: Vec<CheckId>,
    /// Each goal.
    pub goals: Vec<Goal>,
}

/// A goal of `--until`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Goal {
    /// Its text.
    pub goal: String,
    /// Was it reached?
    pub reached: bool,
    /// Half the width of the interval as a fraction of the percentile, `null` if there was none.
    pub half_width: Option<f64>,
}

impl Window {
    pub(crate) fn of(summary: &Summary) -> Self {
        let (window, run) = (&summary.window, &summary.record.run);
        let start_unix_ns =
            |epoch_us: u64| epoch_us.saturating_add(window.measure_ns / 1_000).saturating_mul(1_000);
        Self {
            start_unix_ns: run.times.epoch_us.map(start_unix_ns),
            duration_ns: window.duration_ns(),
            warmup_ns: window.measure_ns.saturating_sub(window.start_ns),
            warmup_end: run.warmup_end.map(|end| WarmupEnd::name(end).to_owned()),
            is_open_loop: summary.record.plan.has_open_loop(),
            interrupted: run.interrupted,
            change: summary.steady.change_point().map(Change::of),
            until: summary.until.as_ref().map(Until::of),
        }
    }
}

impl Change {
    fn of(change: &ChangePoint) -> Self {
        let ChangePoint { series, at_ns, before, after, p } = *change;
        Self { series: series.name().to_owned(), at_ns, before, after, p }
    }
}

impl Until {
    fn of(until: &UntilResult) -> Self {
        let goal = |goal: &GoalResult| Goal {
            goal: goal.precision.to_string(),
            reached: goal.is_reached,
            half_width: goal.interval.as_ref().and_then(PercentileInterval::relative_half_width),
        };
        Self {
            reached: until.is_reached() && !until.is_interrupted,
            looks: until.taken,
            looks_max: until.looks,
            enough_ns: until.enough_at_ns(),
            held_by: until.look.held_by.clone(),
            unjudged: until.look.unjudged.clone(),
            goals: until.look.goals.iter().map(goal).collect(),
        }
    }
}
