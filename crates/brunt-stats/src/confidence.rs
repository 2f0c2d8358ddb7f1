//! How far a percentile of one run may lie from that of the server: a 95 % confidence interval, from histograms alone.
//!
//! Not the textbook's interval for independent samples: requests that queue behind each other are not independent, and
//! that interval misses the truth four times out of five at high load. Here the batches of the window are the samples:
//! the share of requests above the estimate is taken in each, its variance over the batches says how far the rank may
//! be off, and the values at the two ranks are the interval (R. S. Woodruff, "Confidence intervals for medians and
//! other position measures", 1952, with batches as clusters). Invariant: an interval holds its estimate.

use crate::batch::{Batch, SLICES_MIN};
use crate::histogram::{Histogram, Ranks};
use brunt_plan::quantile::Quantile;
use std::ops::RangeInclusive;

/// The share of intervals that hold the truth.
pub const CONFIDENCE: f64 = 0.95;
/// The normal distribution's quantile that belongs to it, for planning.
const NORMAL: f64 = 1.96;

/// The confidence interval of one percentile. Times in nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PercentileInterval {
    /// Which percentile.
    pub quantile: Quantile,
    /// Its value in the batches together.
    pub value_ns: u64,
    /// The lower end: the lowest value of the bucket at its rank; 0 where the rank is below the first.
    pub low_ns: u64,
    /// The upper end: the highest value of the bucket at its rank; `None` where the rank is beyond the last, so that the
    /// interval has no upper end that was seen.
    pub high_ns: Option<u64>,
    /// How far the rank may be off, as a share of all requests: the ends are the values at p less this and at p and this.
    pub rank_error: f64,
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
    let batches: Vec<&Batch> = batches.iter().filter(|batch| batch.response.count() > 0).collect();
    if (batches.len() as u64) < SLICES_MIN {
        return Vec::new();
    }
    let mut merged = Histogram::new();
    batches.iter().for_each(|batch| merged.merge_sparse(&batch.response));
    let (count, ranks) = (merged.count(), merged.ranks());
    let supported = quantiles.iter().filter(|quantile| quantile.is_supported_by(count));
    let own = supported.filter_map(|quantile| Some((*quantile, ranks.at_rank(quantile.rank(count))?)));
    let own: Vec<(Quantile, RangeInclusive<u64>)> = own.collect();
    // Every batch is read once for all percentiles.
    let ends: Vec<u64> = own.iter().map(|(_, values)| *values.end()).collect();
    let above: Vec<Vec<u64>> = batches.iter().map(|batch| batch.response.counts_above(&ends)).collect();
    let sample = Sample { count, ranks, t: student_t(batches.len() as u32 - 1), batches };
    let of_each = own.into_iter().enumerate();
    of_each
        .filter_map(|(index, (quantile, own))| {
            let above: Vec<u64> = above.iter().map(|above| above[index]).collect();
            sample.interval(quantile, &own, &above)
        })
        .collect()
}

/// The batches together.
struct Sample<'a> {
    batches: Vec<&'a Batch>,
    count: u64,
    ranks: Ranks,
    /// Student's t of so many batches.
    t: f64,
}

impl Sample<'_> {
    /// The interval of the percentile whose value is one of `own`, above which so many requests of each batch lie.
    fn interval(
        &self,
        quantile: Quantile,
        own: &RangeInclusive<u64>,
        above: &[u64],
    ) -> Option<PercentileInterval> {
        let (count, clusters) = (self.count as f64, self.batches.len() as f64);
        // The share above the estimate is 1 − p, but for what shares its bucket or equals it.
        let share_above = above.iter().sum::<u64>() as f64 / count;
        let residual =
            |(above, batch): (&u64, &&Batch)| *above as f64 - share_above * batch.response.count() as f64;
        let squares = above.iter().zip(&self.batches).map(residual).map(|residual| residual * residual);
        let variance = clusters / (clusters - 1.0) * squares.sum::<f64>() / (count * count);
        let p = fraction(quantile);
        let design_effect = variance * count / (p * (1.0 - p));
        let off = self.t * variance.sqrt();
        let rank = |p: f64| ((p * count).ceil() as u64).clamp(1, self.count);
        let at_rank = |p: f64| self.ranks.at_rank(rank(p));
        // Where the whole bucket is one value, as many batches reach it as hold it; none lies above.
        let reaches = |batch: &&&Batch| batch.response.max().is_some_and(|max| max >= *own.start());
        Some(PercentileInterval {
            quantile,
            value_ns: *own.end(),
            low_ns: if p - off <= 0.0 { 0 } else { *at_rank(p - off)?.start() },
            high_ns: if p + off >= 1.0 { None } else { Some(*at_rank(p + off)?.end()) },
            rank_error: off,
            quantisation_ns: (own.end() - own.start()).div_ceil(2),
            design_effect,
            effective_count: (p * (1.0 - p) / variance).min(count),
            batches: self.batches.len() as u32,
            batches_reached: self.batches.iter().filter(reaches).count() as u32,
        })
    }
}

/// Half of the 95 % interval of a quotient of sums, such as a mean or a rate, from its numerator and denominator in each batch; `None`
/// with fewer than ten batches that have any of the denominator.
///
/// The batches are clusters, as they are for a percentile: `t √(B/(B − 1) · Σ (a_j − r b_j)²) / Σ b_j`.
pub(crate) fn half_width_of_quotient(batches: impl IntoIterator<Item = (f64, f64)>) -> Option<f64> {
    let batches: Vec<(f64, f64)> = batches.into_iter().filter(|(_, whole)| *whole > 0.0).collect();
    if (batches.len() as u64) < SLICES_MIN {
        return None;
    }
    let (part, whole) = batches.iter().fold((0.0, 0.0), |(a, b), (part, whole)| (a + part, b + whole));
    let squares: f64 = batches.iter().map(|(a, b)| (a - part / whole * b).powi(2)).sum();
    let clusters = batches.len() as f64;
    Some(student_t(batches.len() as u32 - 1) * (clusters / (clusters - 1.0) * squares).sqrt() / whole)
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

/// Student's t: with so many degrees of freedom 95 % lie between its negative and itself. By bisection of the
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
