//! STEADY: did the median or the hit ratio change while they were measured?

use crate::change_point::{ChangePoint, LevelSeries, SIGNIFICANCE, Steadiness};
use crate::check::{Check, CheckId, CheckStatus};
use crate::number_text::{percent, time};

/// A change of more than this share is large.
const CHANGE_MAX: f64 = 0.10;

pub(crate) fn check(steady: &Steadiness) -> Check {
    let judged = match steady {
        Steadiness::Unjudged(reason) => return Check::skipped(CheckId::Steady, *reason),
        Steadiness::Judged(judged) => judged,
    };
    if let Some(change) = steady.change_point() {
        let message = format!(
            "the {} went from {} to {} at +{}",
            name(change),
            value(change, change.before),
            value(change, change.after),
            time(change.at_ns)
        );
        return Check::found(CheckId::Steady, CheckStatus::Caution, message)
            .with_fix("a longer --warmup (and a preload where the cache fills), or what happened to the server then")
            .with_value(size(change), CHANGE_MAX);
    }
    let largest = judged.iter().filter(|change| change.p < SIGNIFICANCE).map(size).fold(0.0, f64::max);
    let names: Vec<&str> = judged.iter().map(name).collect();
    Check::ok(CheckId::Steady, format!("no change of the {}", names.join(" or the ")))
        .with_value(largest, CHANGE_MAX)
}

fn name(change: &ChangePoint) -> &'static str {
    change.series.name()
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
