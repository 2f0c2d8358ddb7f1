//! Checks of the steady state: was it reached before the window began, and did it last?
//!
//! Not the statistics (`crate::steady` has the rules with both their arms): here their findings get words. Of several
//! series that fire, the one furthest from its threshold is told, the others by name.

use super::Evidence;
use crate::check::{Check, CheckStatus};
use crate::number_text::{significant, time};
use crate::steady::warmup::WarmupEnd;
use crate::steady::{
    Beginning, DRIFT_Z, Drift, HIT_EFFECT, SHIFT_P, Series, SeriesSteadiness, Shift, Steadiness, WARM_EFFECT,
    WarmUp,
};

/// Had every series reached its level when the window began?
pub(super) fn warm(evidence: &Evidence<'_>) -> Check {
    let steady = &evidence.steady;
    let found = looked_at(steady, |held| held.warm_up.as_ref().ok());
    let Some((series, worst)) =
        found.iter().max_by_key(|(_, warm_up)| (warm_up.is_endless, warm_up.until_ns))
    else {
        return Check::skipped("WARM", &reason(steady, |held| held.warm_up.as_ref().err()), WARM_EFFECT);
    };
    let WarmUp { until_ns, change, is_endless, .. } = **worst;
    let changed = changed(*series, change);
    let (status, message, mut details, fix) = if is_endless {
        let message = format!(
            "{series} is {changed} from the beginning of the window to its middle, against the rest: no end of a warm-up \
             is in sight, and every number is of the whole window",
            series = series.name(),
        );
        (CheckStatus::Caution, message, Vec::new(), "raise --warmup until it stays level, and --time with it")
    } else if until_ns > 0 {
        let (message, details, fix) = beginning(steady, *series, &changed);
        (CheckStatus::Caution, message, details, fix)
    } else {
        let names = names(found.iter().map(|(series, _)| *series));
        let message = format!("nothing begins otherwise than it goes on: {names}");
        (CheckStatus::Ok, message, Vec::new(), "")
    };
    let threshold = if *series == Series::HitRatio { HIT_EFFECT } else { WARM_EFFECT };
    let end = evidence.run.warmup_end.filter(|end| *end != WarmupEnd::Level);
    details.extend(end.map(|end| format!("the warm-up {}", end.describe())));
    let fix = end.and_then(WarmupEnd::fix).unwrap_or(fix);
    Check::judged("WARM", status, message, fix, change.abs(), threshold).with(details)
}

/// How the window began, what that does to the numbers, and what to do about it.
fn beginning(steady: &Steadiness, series: Series, changed: &str) -> (String, Vec<String>, &'static str) {
    let name = series.name();
    let Some(Beginning { until_ns, warmup_needed_ns, with, without, trouble_ns }) = &steady.beginning else {
        return (format!("{name} is {changed} at first, against the rest"), Vec::new(), "raise --warmup");
    };
    let first = time(*until_ns);
    let message = format!("{name} is {changed} in the first {first} of the window, against the rest");
    let mut details = Vec::new();
    if let (Some(with_ns), Some(without_ns)) = (with.p99_ns(), without.p99_ns()) {
        let (with, without) = (time(with_ns), time(without_ns));
        details.push(format!("the p99 of all requests is {with}, and {without} without that part"));
    }
    if let Some(trouble_ns) = trouble_ns {
        details.push(format!("in it, after {}, a server or a connection failed", time(*trouble_ns)));
        let fix = "find out what failed: this is no cold start that a longer --warmup would cover";
        return (message, details, fix);
    }
    details.push(format!("--warmup {} would have covered it", time(*warmup_needed_ns)));
    (message, details, "raise --warmup, so that the window begins warm")
}

/// Did a series go up or down all along?
pub(super) fn drift(evidence: &Evidence<'_>) -> Check {
    let found = looked_at(&evidence.steady, |held| held.course.as_ref().ok().map(|(drift, _)| drift));
    let worst = found.iter().max_by(|(_, one), (_, other)| {
        one.fires.cmp(&other.fires).then(one.z.abs().total_cmp(&other.z.abs()))
    });
    let Some((series, Drift { z, change, fires })) = worst else {
        return Check::skipped(
            "DRIFT",
            &reason(&evidence.steady, |held| held.course.as_ref().err()),
            DRIFT_Z,
        );
    };
    // A slope over all batches: where a series falls fast, more than the whole of its median.
    let of = if *series == Series::HitRatio { "" } else { " of its median" };
    let (name, changed) = (series.name(), changed(*series, *change) + of);
    let z_text = significant(*z);
    let others =
        too(found.iter().filter(|(held, drift)| drift.fires && held != series).map(|(held, _)| *held));
    let (status, message) = if *fires {
        let message = format!("{name} went {changed} over the window (Mann-Kendall Z {z_text})");
        (CheckStatus::Caution, message)
    } else {
        let names = names(found.iter().map(|(series, _)| *series));
        let message = format!(
            "no trend that is both certain and large in {names}: at most Z {z_text}, {name} {changed}"
        );
        (CheckStatus::Ok, message)
    };
    let fix = "find what was changing, the server (it may fill up or slow down) or the client (LAG, STEAL)";
    Check::judged("DRIFT", status, message, fix, z.abs(), DRIFT_Z).with(others)
}

/// Did a series change its level at some instant?
pub(super) fn shift(evidence: &Evidence<'_>) -> Check {
    let found = looked_at(&evidence.steady, |held| held.course.as_ref().ok().map(|(_, shift)| shift));
    let worst = found
        .iter()
        .max_by(|(_, one), (_, other)| one.fires.cmp(&other.fires).then(other.p.total_cmp(&one.p)));
    let Some((series, Shift { p, at_ns, change, fires })) = worst else {
        return Check::skipped(
            "SHIFT",
            &reason(&evidence.steady, |held| held.course.as_ref().err()),
            SHIFT_P,
        );
    };
    let (name, changed) = (series.name(), changed(*series, *change));
    let others =
        too(found.iter().filter(|(held, shift)| shift.fires && held != series).map(|(held, _)| *held));
    let (status, message) = if *fires {
        let message =
            format!("{name} went {changed} {} into the window (Pettitt p {})", time(*at_ns), probability(*p));
        (CheckStatus::Caution, message)
    } else {
        let names = names(found.iter().map(|(series, _)| *series));
        let message = format!(
            "no change of level that is both certain and large in {names}: at least p {}, {name} {changed}",
            probability(*p)
        );
        (CheckStatus::Ok, message)
    };
    let fix = "the percentiles mix two states: find out what happened at that time, to the server or (LAG, STEAL) to the \
               client, and measure each by itself";
    Check::judged("SHIFT", status, message, fix, *p, SHIFT_P).with(others)
}

/// Every series that could be looked at, with one of its findings.
fn looked_at<'a, T>(
    steady: &'a Steadiness,
    of: impl Fn(&'a SeriesSteadiness) -> Option<&'a T>,
) -> Vec<(Series, &'a T)> {
    steady.series.iter().filter_map(|held| Some((held.series, of(held)?))).collect()
}

/// Why the first of them could not.
fn reason(steady: &Steadiness, of: impl Fn(&SeriesSteadiness) -> Option<&String>) -> String {
    steady.series.iter().find_map(of).cloned().unwrap_or_else(|| "nothing was measured".to_owned())
}

/// A change as a person reads it: of a hit ratio the difference, else a share.
fn changed(series: Series, change: f64) -> String {
    let sign = if change < 0.0 { '-' } else { '+' };
    match series {
        Series::HitRatio => format!("{sign}{:.3}", change.abs()),
        Series::P50 | Series::P99 | Series::Throughput => {
            format!("{sign}{} %", significant(change.abs() * 100.0))
        }
    }
}

/// Two digits of a small probability.
fn probability(p: f64) -> String {
    if p < 0.000_1 { "< 0.0001".to_owned() } else { format!("{p:.4}") }
}

fn names(series: impl Iterator<Item = Series>) -> String {
    series.map(Series::name).collect::<Vec<_>>().join(", ")
}

/// Which others fired as well.
fn too(others: impl Iterator<Item = Series>) -> Option<String> {
    let names = names(others);
    (!names.is_empty()).then(|| format!("{names} as well"))
}
