//! How far a percentile of one run may lie from that of the server: a 95 % confidence interval, from batches of the window alone.
//!
//! Not the textbook's interval for independent samples: requests that queue behind each other are not independent, and
//! that interval misses the truth four times out of five at high load. Batches much longer than a queue lives are nearly independent; they
//! say how many independent requests would tell as much (R. S. Woodruff, "Confidence intervals for medians and other position measures",
//! 1952, with batches as clusters), and Wilson's limits of p for so many are the ranks of both ends. Invariants: from the beginning of the
//! window every completed request of the chosen rows is in exactly one batch; an interval holds its estimate, and neither end falls as
//! percentiles rise.

use crate::histogram::{Histogram, SparseHistogram};
use crate::timeline::Timeline;
use crate::window::RunTimes;
use brunt_plan::op::{ClassId, OpId};
use brunt_plan::quantile::Quantile;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::ops::RangeInclusive;

/// Standard deviations to either end of a 95 % interval whose variance is that of 30 batches: Student's t with 29 degrees of freedom. With
/// the normal distribution's 1.96 the p99 of M/M/1 at a load of 0.8 was held in 91 % of runs only.
const DEVIATIONS: f64 = 2.045;
/// Fewer independent requests above a percentile leave its interval open: no upper end is known.
const EFFECTIVE_ABOVE_MIN: f64 = 10.0;

/// The confidence interval of one percentile. Times in nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct PercentileInterval {
    /// Which percentile.
    pub quantile: Quantile,
    /// Its value in the batches together.
    pub value_ns: u64,
    /// The lower end: the lowest value of its bucket.
    pub low_ns: u64,
    /// The upper end: the highest value of its bucket. `None` where fewer than ten independent requests lie above the percentile, or
    /// above a lower one.
    pub high_ns: Option<u64>,
    /// The rank of the lower end, as a share of all requests.
    pub fraction_below_low: f64,
    /// The share of all requests above the upper end, where failed ones lie above all values; also where the upper end is not told.
    pub fraction_above_high: f64,
    /// What it rests on.
    pub basis: IntervalBasis,
}

/// What an interval rests on (docs/method.md, Confidence intervals).
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct IntervalBasis {
    /// Batches of the window.
    pub batches: u32,
    /// Variance of the rank over that of independent requests.
    pub design_effect: f64,
    /// So many independent requests would have told as much.
    pub effective_count: f64,
    /// Half a bucket; the ends contain theirs.
    pub quantisation_ns: u64,
}

impl PercentileInterval {
    /// Half the width of the interval over its estimate; `None` without an upper end.
    pub fn relative_half_width(&self) -> Option<f64> {
        let width_ns = self.high_ns? - self.low_ns;
        Some(width_ns as f64 / 2.0 / self.value_ns.max(1) as f64)
    }

    /// How many independent requests lie above the percentile: `n_eff (1 − p)`.
    pub fn effective_above(&self) -> f64 {
        self.basis.effective_count * self.quantile.share_above()
    }
}

/// The intervals of those of these percentiles that the batches together support, ascending as they are given. None
/// without batches.
pub fn intervals(batches: &[Batch], quantiles: &[Quantile]) -> Vec<PercentileInterval> {
    // A batch in which nothing completed says nothing of latencies.
    let ended: Vec<&Batch> =
        batches.iter().filter(|batch| batch.response.count() + batch.faulty > 0).collect();
    let batches: Vec<&Batch> = batches.iter().filter(|batch| batch.response.count() > 0).collect();
    if (batches.len() as u64) < SLICES_MIN {
        return Vec::new();
    }
    let mut merged = Histogram::new();
    batches.iter().for_each(|batch| merged.merge_sparse(&batch.response));
    let count = merged.count();
    let supported = quantiles.iter().copied().filter(|quantile| quantile.is_supported_by(count));
    let own = supported.filter_map(|quantile| Some((quantile, merged.at_rank(quantile.rank(count))?)));
    let own: Vec<(Quantile, RangeInclusive<u64>)> = own.collect();
    let starts: Vec<u64> = own.iter().map(|(_, values)| *values.start()).collect();
    let answered = design_effects(&batches, &starts, |_| 0);
    let has_failures = ended.iter().any(|batch| batch.faulty > 0);
    let all =
        if has_failures { design_effects(&ended, &starts, |batch| batch.faulty) } else { answered.clone() };
    let all_count = count + ended.iter().map(|batch| batch.faulty).sum::<u64>();
    let interval =
        |((quantile, values), (design_effect, of_all)): (&(Quantile, RangeInclusive<u64>), (f64, f64))| {
            let effective_count = count as f64 / design_effect;
            let [below_low, below_high] = wilson(fraction(*quantile), effective_count);
            PercentileInterval {
                quantile: *quantile,
                value_ns: *values.end(),
                low_ns: low_end(&merged, below_low, count),
                high_ns: (effective_count * quantile.share_above() >= EFFECTIVE_ABOVE_MIN)
                    .then(|| high_end(&merged, below_high, count)),
                fraction_below_low: below_low,
                fraction_above_high: 1.0 - wilson(fraction(*quantile), all_count as f64 / of_all)[1],
                basis: IntervalBasis {
                    batches: batches.len() as u32,
                    design_effect,
                    effective_count,
                    quantisation_ns: (values.end() - values.start()).div_ceil(2),
                },
            }
        };
    let mut found: Vec<PercentileInterval> =
        own.iter().zip(answered.into_iter().zip(all)).map(interval).collect();
    make_monotone(&mut found);
    found
}

/// Of each of these values, ascending, the variance of the share of requests that reach it, over what it were if they were independent; at
/// least 1, for fewer than there are is all that batches can show. `beyond` says how many requests of a batch lie above all values.
fn design_effects(batches: &[&Batch], values: &[u64], beyond: impl Fn(&Batch) -> u64) -> Vec<f64> {
    let before: Vec<u64> = values.iter().map(|value| value.saturating_sub(1)).collect();
    let of_batch = |batch: &&Batch| {
        let beyond = beyond(batch);
        let reaching = batch.response.counts_above(&before).into_iter().map(|above| (above + beyond) as f64);
        ((batch.response.count() + beyond) as f64, reaching.collect::<Vec<f64>>())
    };
    let counted: Vec<(f64, Vec<f64>)> = batches.iter().map(of_batch).collect();
    let (clusters, count) = (batches.len() as f64, counted.iter().map(|(requests, _)| requests).sum::<f64>());
    let effect = |index: usize| {
        let share = counted.iter().map(|(_, reaching)| reaching[index]).sum::<f64>() / count;
        let residual = |(requests, reaching): &(f64, Vec<f64>)| (reaching[index] - share * requests).powi(2);
        let variance = clusters / (clusters - 1.0) * counted.iter().map(residual).sum::<f64>();
        // 0/0 where all requests reach it.
        (variance / (share * (1.0 - share) * count)).max(1.0)
    };
    (0..values.len()).map(effect).collect()
}

/// Wilson's limits of a share found in `count` independent requests (E. B. Wilson, "Probable inference, the law of succession,
/// and statistical inference", 1927).
fn wilson(share: f64, count: f64) -> [f64; 2] {
    let square = DEVIATIONS * DEVIATIONS / count;
    let half_width = DEVIATIONS * (share * (1.0 - share) / count + square / count / 4.0).sqrt();
    let middle = share + square / 2.0;
    [(middle - half_width) / (1.0 + square), (middle + half_width) / (1.0 + square)]
}

/// The lowest value of the bucket in which this share of the requests ends.
fn low_end(merged: &Histogram, below: f64, count: u64) -> u64 {
    let rank = (below * count as f64).ceil() as u64;
    merged.at_rank(rank).map_or(0, |values| *values.start())
}

/// The highest value of that bucket.
fn high_end(merged: &Histogram, below: f64, count: u64) -> u64 {
    let rank = ((below * count as f64).ceil() as u64).min(count);
    merged.at_rank(rank).map_or(u64::MAX, |values| *values.end())
}

/// Widens intervals until neither end falls as percentiles rise: bursts may leave a percentile with fewer independent requests than one
/// above it.
fn make_monotone(intervals: &mut [PercentileInterval]) {
    for index in (1..intervals.len()).rev() {
        let above = intervals[index];
        let held = &mut intervals[index - 1];
        held.low_ns = held.low_ns.min(above.low_ns);
        held.fraction_below_low = held.fraction_below_low.min(above.fraction_below_low);
    }
    for index in 1..intervals.len() {
        let below = intervals[index - 1];
        let held = &mut intervals[index];
        held.high_ns = held.high_ns.zip(below.high_ns).map(|(own, lower)| own.max(lower));
        held.fraction_above_high = held.fraction_above_high.min(below.fraction_above_high);
    }
}

fn fraction(quantile: Quantile) -> f64 {
    f64::from(quantile.millionths()) / 1e6
}

/// How many batches there are: enough to estimate a variance (Student's t is within 4 % of the normal's quantile), few
/// enough that each is long.
pub const BATCHES: u64 = 30;
/// With fewer slices than this there are no batches: a variance of nine numbers is no estimate.
pub const SLICES_MIN: u64 = 10;

/// A part of the measured window.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Batch {
    /// When it begins.
    pub start_ns: u64,
    /// When it ends. Requests that were answered after the window are in the last batch all the same.
    pub end_ns: u64,
    /// Requests completed in it before the window closed, whenever they were due.
    pub completed: u64,
    /// Requests that failed in it, or were given up unsent.
    pub faulty: u64,
    /// Response times of measured requests that completed in it, in nanoseconds.
    pub response: SparseHistogram,
}

/// The window from `start_ns` on in batches, of the rows that `of` selects: [`BATCHES`] of them, with as nearly as can be
/// the same number of slices, or as many as there are slices where those are fewer; none at all below
/// [`SLICES_MIN`]. `start_ns` is the beginning of the window, or that of a later slice where only its rest is looked at.
pub fn batches(
    timeline: &Timeline,
    window: &RunTimes,
    start_ns: u64,
    of: impl Fn(ClassId, OpId) -> bool,
) -> Vec<Batch> {
    let start_ns = start_ns.max(window.measure_ns);
    let slice_ns = timeline.slice_ns();
    let slices = window.end_ns.saturating_sub(start_ns) / slice_ns;
    if slices < SLICES_MIN {
        return Vec::new();
    }
    let count = slices.min(BATCHES);
    let begins = |index: u64| start_ns + index * slices / count * slice_ns;
    let mut sums: Vec<Batch> = Vec::with_capacity(count as usize);
    let mut held = timeline.slices_by_cell().peekable();
    // Workers are a little late in ending an interval, so the slice before the window may hold the first of its requests.
    // Requests of the window that lie before a later start are in no batch.
    while start_ns > window.measure_ns && held.next_if(|(cell_ns, _)| *cell_ns < start_ns).is_some() {}
    let mut sum = Histogram::new();
    for index in 0..count {
        let is_last = index + 1 == count;
        let mut batch = Batch { start_ns: begins(index), ..Batch::default() };
        batch.end_ns = if is_last { window.end_ns } else { begins(index + 1) };
        let mut parts = Vec::new();
        while let Some((_, slice)) = held.next_if(|(cell_ns, _)| is_last || *cell_ns < batch.end_ns) {
            for row in slice.rows.iter().filter(|row| of(row.class, row.op)) {
                batch.completed += row.completed;
                batch.faulty += row.faulty;
                parts.push(&row.response);
            }
        }
        batch.response = SparseHistogram::merge_all(parts, &mut sum).into_owned();
        sums.push(batch);
    }
    sums
}

#[cfg(test)]
mod independent;
#[cfg(test)]
mod replications;
#[cfg(test)]
mod tests;
