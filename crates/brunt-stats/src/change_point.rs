//! STEADY: is the measured window one state? The likeliest change point of the median response time and of the hit ratio, over batches of it.
//!
//! Not a judge of what was there before the window, and it changes no number. The test knows only the order of the values of batches, so
//! that it holds for any distribution; with enough requests any change is significant, so one has to be large as well. Invariant: a
//! change point lies between two batches, and each side has a value.

use crate::change;
use crate::check::{Check, CheckId, CheckStatus};
use crate::confidence::{Batch, batches};
use crate::median::median;
use crate::request_counts::KeyCounts;
use crate::store::IntervalStore;
use crate::window::RunTimes;
use brunt_plan::arrival::Arrival;
use brunt_plan::plan::{Class, Load, OpenRate, Plan};
use brunt_plan::quantile::Quantile;
use brunt_plan::quantity::{percent, time};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::ops::Range;

/// With fewer batches that hold requests nothing is judged: a window below 2 s, or one with as many gaps.
const BATCHES_MIN: usize = 20;
/// A change of more than this share of the smaller level is large.
const CHANGE_MAX: f64 = 0.10;
/// Without a change point one as likely as found is found in so many windows, at most.
const SIGNIFICANCE: f64 = 0.01;

brunt_plan::named! { serialized
    /// What must be level in a steady state.
    pub enum LevelSeries {
        /// The median response time, in nanoseconds.
        Median = "median",
        /// Keys found among keys requested.
        HitRatio = "hit ratio",
    }
}

/// The likeliest instant at which a series changed its level.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ChangePoint {
    /// Which series.
    pub series: LevelSeries,
    /// When, from the beginning of the window.
    pub at_ns: u64,
    /// The median of its values before.
    pub before: f64,
    /// And behind.
    pub after: f64,
    /// How likely chance makes one as clear, at most.
    pub p: f64,
}

impl ChangePoint {
    /// Is it both large and significant?
    pub fn is_found(&self) -> bool {
        let (low, high) = (self.before.min(self.after), self.before.max(self.after));
        self.p < SIGNIFICANCE && high > (1.0 + CHANGE_MAX) * low
    }
}

/// What was found of a window.
#[derive(Clone, Debug, PartialEq)]
pub enum Steadiness {
    /// Why it was not judged.
    Unjudged(&'static str),
    /// The likeliest change point of each series that could be judged; at least one.
    Judged(Vec<ChangePoint>),
}

impl Steadiness {
    /// Looks at the batches of the window that none of the spans `left_out`, those of outages, touches.
    pub fn of(plan: &Plan, store: &IntervalStore, window: &RunTimes, left_out: &[Range<u64>]) -> Self {
        if let Some(reason) = plan.classes.iter().find_map(changes_by_plan) {
            return Self::Unjudged(reason);
        }
        let is_in = |batch: &Batch, span: &Range<u64>| span.start < batch.end_ns && batch.start_ns < span.end;
        let mut batches = batches(store.timeline(), window, window.measure_ns, |_, _| true);
        batches.retain(|batch| !left_out.iter().any(|span| is_in(batch, span)));
        let median_of = |batch: &Batch| batch.response.quantile(Quantile::P50).map(|ns| ns as f64);
        let hit_ratio_of = |batch: &Batch| hit_ratio(store, batch);
        let found = |series| {
            let value = |batch: &Batch| match series {
                LevelSeries::Median => median_of(batch),
                LevelSeries::HitRatio => hit_ratio_of(batch),
            };
            let values = batches.iter().filter_map(|batch| Some((batch.start_ns, value(batch)?)));
            let (starts, values): (Vec<u64>, Vec<f64>) = values.unzip();
            let (before, p) = (values.len() >= BATCHES_MIN).then(|| likeliest(&values))?;
            Some(ChangePoint {
                series,
                at_ns: starts[before] - window.measure_ns,
                before: median(&values[..before])?,
                after: median(&values[before..])?,
                p,
            })
        };
        let judged: Vec<ChangePoint> = LevelSeries::ALL.iter().filter_map(|series| found(*series)).collect();
        match judged.is_empty() {
            true => {
                Self::Unjudged("too few parts of the window hold requests: it takes 20 of 100 ms or more")
            }
            false => Self::Judged(judged),
        }
    }

    /// The change point that was found; of two the more significant.
    pub fn change_point(&self) -> Option<&ChangePoint> {
        let Self::Judged(judged) = self else { return None };
        let found = judged.iter().filter(|change| change.is_found());
        found.min_by(|one, other| one.p.total_cmp(&other.p))
    }
}

/// Keys found among those requested by retrievals that ended in a batch; `None` without any.
fn hit_ratio(store: &IntervalStore, batch: &Batch) -> Option<f64> {
    let mut keys = KeyCounts::default();
    let slices = store.timeline().slices_in(batch.start_ns..batch.end_ns);
    slices.for_each(|slice| keys.merge(&slice.keys));
    let (hit, all) = (keys.hit, keys.hit + keys.miss);
    (all > 0).then(|| hit as f64 / all as f64)
}

/// Why the plan itself changes the load of a class, if it does.
fn changes_by_plan(class: &Class) -> Option<&'static str> {
    let is_ramp = class.lifetime.connect_rate.is_some() || class.lifetime.total.is_some();
    match &class.load {
        Load::Open { rate: OpenRate::Profile(_), .. } => {
            Some("the offered load changes by plan (rate-profile)")
        }
        Load::Open { rate: OpenRate::Recorded, .. } => Some("the offered load is that of a trace (replay)"),
        Load::Open { arrival: Arrival::Mmpp(_), .. } => {
            Some("the offered load changes by plan (arrival mmpp)")
        }
        Load::Open { rate: OpenRate::PerConnection(_), .. } | Load::Closed { .. } if is_ramp => {
            Some("the number of connections changes by plan")
        }
        Load::Open { .. } | Load::Closed { .. } => None,
    }
}

/// How many values lie before the position at which the ranks of both sides differ most, in standard deviations; and the exact probability
/// of Mann and Whitney's test there, times the positions that there are (Bonferroni).
fn likeliest(values: &[f64]) -> (usize, f64) {
    let count = values.len();
    // Twice what the sum of ranks of the values before the position is off its mean: each value adds how many are below less how many above.
    let balance = |value: &f64| {
        let of = |other: &f64| i64::from(value > other) - i64::from(value < other);
        values.iter().map(of).sum::<i64>()
    };
    let mut sum = 0_i64;
    let distance = |(index, value): (usize, &f64)| {
        let before = index + 1;
        sum += balance(value);
        (before, sum.unsigned_abs() as f64 / ((before * (count - before)) as f64).sqrt())
    };
    let distances = values.iter().take(count - 1).enumerate().map(distance);
    let (before, _) = distances.max_by(|one, other| one.1.total_cmp(&other.1)).unwrap_or((1, 0.0));
    let p = change::rank_probability(&values[..before], &values[before..]);
    (before, (p * (count - 1) as f64).min(1.0))
}

pub(crate) fn check(steady: &Steadiness) -> Check {
    let judged = match steady {
        Steadiness::Unjudged(reason) => return Check::skipped(CheckId::Steady, *reason),
        Steadiness::Judged(judged) => judged,
    };
    if let Some(change) = steady.change_point() {
        let message = format!(
            "the {} went from {} to {} at +{}",
            change.series.name(),
            value(change, change.before),
            value(change, change.after),
            time(change.at_ns)
        );
        return Check::found(CheckId::Steady, CheckStatus::Caution, message)
            .with_fix("a longer --warmup (and a preload where the cache fills), or what happened to the server then")
            .with_value(size(change), CHANGE_MAX);
    }
    let largest = judged.iter().filter(|change| change.p < SIGNIFICANCE).map(size).fold(0.0, f64::max);
    let names: Vec<&str> = judged.iter().map(|change| change.series.name()).collect();
    Check::ok(CheckId::Steady, format!("no change of the {}", names.join(" or the ")))
        .with_value(largest, CHANGE_MAX)
}

fn value(change: &ChangePoint, value: f64) -> String {
    match change.series {
        LevelSeries::Median => time(value.round() as u64),
        LevelSeries::HitRatio => percent(value),
    }
}

/// By which share of the smaller level.
fn size(change: &ChangePoint) -> f64 {
    let (low, high) = (change.before.min(change.after), change.before.max(change.after));
    if low > 0.0 { high / low - 1.0 } else { 1.0 }
}

#[cfg(test)]
mod tests;
