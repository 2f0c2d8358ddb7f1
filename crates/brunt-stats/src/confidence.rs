//! How far a percentile of one run may lie from that of the server: a 95 % confidence interval, from histograms alone.
//!
//! Not the textbook's interval for independent samples: requests that queue behind each other are not independent, and
//! that interval misses the truth four times out of five at high load. Here the batches of the window are the samples: the
//! share of requests above a value is taken in each, and its variance over the batches says how many independent requests
//! would tell as much of it. A value is an upper end where Wilson's test rules out that more than 1 − p lie above it (C. A.
//! Francisco and W. A. Fuller, "Quantile estimation with a complex survey design", 1991, with batches as clusters); the
//! lower end is the value at Wilson's lower limit of p. Invariant: an interval holds its estimate.

use crate::batch::{Batch, SLICES_MIN};
use crate::histogram::Histogram;
use brunt_plan::quantile::Quantile;
use serde::{Deserialize, Serialize};
use std::ops::RangeInclusive;

/// The share of intervals that hold the truth.
pub const CONFIDENCE: f64 = 0.95;
/// The normal distribution's quantile that belongs to it, for planning.
const NORMAL: f64 = 1.96;

/// The confidence interval of one percentile. Times in nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct PercentileInterval {
    /// Which percentile.
    pub quantile: Quantile,
    /// Its value in the batches together.
    pub value_ns: u64,
    /// The lower end: the lowest value of its bucket.
    pub low_ns: u64,
    /// The upper end: the highest value of its bucket. `None` where so few bursts reach the percentile that more than what
    /// was seen may lie above it.
    pub high_ns: Option<u64>,
    /// The rank of the lower end, as a share of all requests.
    pub fraction_below_low: f64,
    /// The share of all requests, failed ones included, above the upper end as the test has it where these lie above all values; also where
    /// the upper end is not told.
    pub fraction_above_high: f64,
    /// Half the width of the value's bucket; the ends contain theirs.
    pub quantisation_ns: u64,
    /// The variance of the rank over what it were if requests were independent.
    pub design_effect: f64,
    /// As many independent requests would have told as much; at most as many as there were.
    pub effective_count: f64,
    /// How many batches there were.
    pub batches: u32,
    /// How many of them held a request as slow as the percentile, or slower.
    pub batches_reached: u32,
}

impl PercentileInterval {
    /// Rests the interval on too few batches: less than two thirds of them reached the percentile? Then its variance is
    /// that of a few bursts, and it holds the truth less often than it says.
    pub const fn is_thin(&self) -> bool {
        self.batches_reached * 3 < self.batches * 2
    }

    /// Is it marked in reports: thin, or without an upper end?
    pub const fn is_marked(&self) -> bool {
        self.is_thin() || self.high_ns.is_none()
    }

    /// Half the width of the interval over its estimate; `None` without an upper end.
    pub fn relative_half_width(&self) -> Option<f64> {
        let width_ns = self.high_ns? - self.low_ns;
        Some(width_ns as f64 / 2.0 / self.value_ns.max(1) as f64)
    }

    /// How many independent requests lie above the percentile: `n_eff (1 − p)`.
    pub fn effective_above(&self) -> f64 {
        self.effective_count * self.quantile.share_above()
    }
}

/// The intervals of those of these percentiles that the batches together support, ascending as they are given. None
/// without batches.
pub fn intervals(batches: &[Batch], quantiles: &[Quantile]) -> Vec<PercentileInterval> {
    // A batch in which nothing completed says nothing of latencies, so it is no degree of freedom either.
    let ended: Vec<&Batch> =
        batches.iter().filter(|batch| batch.response.count() + batch.faulty > 0).collect();
    let batches: Vec<&Batch> = batches.iter().filter(|batch| batch.response.count() > 0).collect();
    if (batches.len() as u64) < SLICES_MIN {
        return Vec::new();
    }
    let mut merged = Histogram::new();
    batches.iter().for_each(|batch| merged.merge_sparse(&batch.response));
    let supported = quantiles.iter().filter(|quantile| quantile.is_supported_by(merged.count()));
    let t = student_t(batches.len() as u32 - 1);
    let has_failures = ended.iter().any(|batch| batch.faulty > 0);
    let of_all = has_failures.then(|| levels(&ended, &merged, |batch| batch.faulty));
    let sample =
        Sample { count: merged.count(), levels: levels(&batches, &merged, |_| 0), of_all, t, batches };
    supported.filter_map(|quantile| sample.interval(*quantile)).collect()
}

/// A bucket that holds requests, and the share of all requests that lies above it.
struct Level {
    values: RangeInclusive<u64>,
    /// How many requests lie in it and below.
    up_to: u64,
    share_above: f64,
    /// The variance of that share.
    variance: f64,
}

/// The buckets of all batches together, ascending; `beyond` says how many requests of a batch lie above all of them.
fn levels(batches: &[&Batch], merged: &Histogram, beyond: impl Fn(&Batch) -> u64) -> Vec<Level> {
    let all = merged.count() + batches.iter().map(|batch| beyond(batch)).sum::<u64>();
    let (count, clusters) = (all as f64, batches.len() as f64);
    let level = |(values, up_to)| {
        let share_above = (all - up_to) as f64 / count;
        Level { values, up_to, share_above, variance: 0.0 }
    };
    let mut levels: Vec<Level> = merged.ranks().iter().map(level).collect();
    let ends: Vec<u64> = levels.iter().map(|level| *level.values.end()).collect();
    let weight = clusters / (clusters - 1.0) / (count * count);
    for batch in batches {
        let beyond = beyond(batch);
        let requests = (batch.response.count() + beyond) as f64;
        for (level, above) in levels.iter_mut().zip(batch.response.counts_above(&ends)) {
            let residual = (above + beyond) as f64 - level.share_above * requests;
            level.variance += weight * residual * residual;
        }
    }
    levels
}

impl Level {
    /// Is no larger share than this above, for all that the batches tell? Wilson's score test: were it this share, as many independent
    /// requests as have the same variance would show as little as was found once in forty times.
    fn has_no_more_above(&self, share: f64, t: f64) -> bool {
        if self.variance == 0.0 {
            return self.share_above <= share;
        }
        let effective_count = self.share_above * (1.0 - self.share_above) / self.variance;
        share - self.share_above >= t * (share * (1.0 - share) / effective_count).sqrt()
    }
}

/// The lower limit of a share found in `count` independent requests (E. B. Wilson, "Probable inference, the law of succession,
/// and statistical inference", 1927).
fn lower_limit(share: f64, count: f64, t: f64) -> f64 {
    let square = t * t / count;
    let half_width = t * (share * (1.0 - share) / count + square / count / 4.0).sqrt();
    (share + square / 2.0 - half_width) / (1.0 + square)
}

/// The batches together.
struct Sample<'a> {
    batches: Vec<&'a Batch>,
    count: u64,
    levels: Vec<Level>,
    /// The levels with failed requests counted above all others, where there are any.
    of_all: Option<Vec<Level>>,
    /// Student's t for the number of batches.
    t: f64,
}

impl Sample<'_> {
    fn interval(&self, quantile: Quantile) -> Option<PercentileInterval> {
        let (p, count) = (fraction(quantile), self.count as f64);
        let own = self.level_of(quantile.rank(self.count));
        let Level { values, variance, .. } = self.levels.get(own)?;
        let effective_count = p * (1.0 - p) / variance;
        let fraction_below_low = lower_limit(p, effective_count, self.t);
        let low = self.level_of((fraction_below_low * count).ceil() as u64);
        let high = self.high(&self.levels, own, quantile.share_above())?;
        // Where failed requests alone may be more than that, the upper end lies beyond everything that was answered.
        let fraction_above_high = self.of_all.as_ref().map_or(high.share_above, |levels| {
            self.high(levels, own, quantile.share_above()).map_or(0.0, |high| high.share_above)
        });
        let has_upper_end = p + self.t * variance.sqrt() < 1.0;
        let reaches = |batch: &&&Batch| batch.response.max().is_some_and(|max| max >= *values.start());
        Some(PercentileInterval {
            quantile,
            value_ns: *values.end(),
            low_ns: *self.levels[low].values.start(),
            high_ns: has_upper_end.then_some(*high.values.end()),
            fraction_below_low,
            fraction_above_high,
            quantisation_ns: (values.end() - values.start()).div_ceil(2),
            design_effect: variance * count / (p * (1.0 - p)),
            effective_count: effective_count.min(count),
            batches: self.batches.len() as u32,
            batches_reached: self.batches.iter().filter(reaches).count() as u32,
        })
    }

    fn level_of(&self, rank: u64) -> usize {
        self.levels.partition_point(|level| level.up_to < rank)
    }

    /// The lowest level from `own` on from which on no more than this share may lie above; `None` where more than that may lie beyond all.
    fn high<'a>(&self, levels: &'a [Level], own: usize, share_above: f64) -> Option<&'a Level> {
        levels[own..].iter().rev().take_while(|level| level.has_no_more_above(share_above, self.t)).last()
    }
}

/// How many requests it takes until half the interval of a percentile is this share of it, where latencies beyond the
/// percentile fall off exponentially: `deff · (1.96 / (h · ln(1/(1 − p))))² · p/(1 − p)`. For planning, not for judging.
pub fn requests_for(quantile: Quantile, half_width: f64, design_effect: f64) -> f64 {
    let p = fraction(quantile);
    let tail = -(1.0 - p).ln();
    design_effect * (NORMAL / (half_width * tail)).powi(2) * p / (1.0 - p)
}

fn fraction(quantile: Quantile) -> f64 {
    f64::from(quantile.millionths()) / 1e6
}

/// Student's t: with this number of degrees of freedom 95 % lie between its negative and itself. By bisection of the
/// distribution, which is a finite sum where the degrees are whole.
pub fn student_t(degrees: u32) -> f64 {
    // One degree, the heaviest tail there is, has 12.7.
    let (mut low, mut high) = (0.0, 16.0);
    // Every step is a bit; there are no more in a floating-point number.
    for _ in 0..53 {
        let middle = (low + high) / 2.0;
        if student_within(middle, degrees) < CONFIDENCE { low = middle } else { high = middle }
    }
    high
}

/// The share of Student's distribution between −t and t (Abramowitz and Stegun, 26.7.3 and 26.7.4).
fn student_within(t: f64, degrees: u32) -> f64 {
    let angle = (t / f64::from(degrees).sqrt()).atan();
    let (sine, cosine) = angle.sin_cos();
    // The sum of c₁ cosⁱ θ + c₂ cosⁱ⁺² θ + …, up to the power ν − 2, where each factor is (k − 1)/k of the one before.
    let sum = |first_power: u32| {
        let (mut term, mut sum) = (cosine.powi(first_power as i32), 0.0);
        for power in (first_power..=degrees.saturating_sub(2)).step_by(2) {
            sum += term;
            term *= cosine * cosine * f64::from(power + 1) / f64::from(power + 2);
        }
        sum
    };
    if degrees.is_multiple_of(2) {
        sine * sum(0)
    } else {
        (angle + sine * sum(1)) * std::f64::consts::FRAC_2_PI
    }
}

#[cfg(test)]
mod independent;
#[cfg(test)]
mod replications;
#[cfg(test)]
mod tests;
