//! What must be flat in a steady state, as series over a warm-up: median, p99, throughput, hit ratio.
//!
//! Not the judgement. Values come from the slices of the timeline, several slices together where one holds too few
//! samples; percentiles are logarithms, so that a difference is a ratio. Invariant: every value rests on at least half the
//! samples that its series needs, or it is absent.

use crate::histogram::{Histogram, SparseHistogram};
use crate::timeline::Slice;
use brunt_plan::quantile::Quantile;
use std::borrow::Cow;
use std::ops::Range;

/// A difference of hit ratios that matters, however large the effect is that is asked for of the other series. It is
/// more than 2 % of a latency: where 98 % hit, it doubles the load behind the cache.
pub(crate) const HIT_EFFECT: f64 = 0.02;

brunt_plan::named! {
    /// A quantity that must be flat; `ALL` is in the order of reports.
    pub enum Series {
        /// Logarithm of the median response time.
        P50 = "p50",
        /// Logarithm of the p99 of response times.
        P99 = "p99",
        /// Requests completed per second, whatever their phase.
        Throughput = "throughput",
        /// Keys found among keys asked for, of measured retrievals.
        HitRatio = "hit ratio",
    }
}

impl Series {
    /// Samples that a value should rest on. A p99 takes what a printed one takes; the others as many as make their noise
    /// a few per cent once several values are averaged.
    pub(super) const fn samples_needed(self) -> u64 {
        match self {
            Self::P50 | Self::Throughput => 20,
            Self::P99 => 1_000,
            Self::HitRatio => 100,
        }
    }

    /// How far a value must lie from a level to be different by the share of `effect`, in the unit of the series. Of the
    /// hit ratio the share counts as it is, and is at most [`HIT_EFFECT`].
    pub(super) fn difference(self, effect: f64, level: f64) -> f64 {
        match self {
            Self::P50 | Self::P99 => effect.ln_1p(),
            Self::Throughput => effect * level,
            Self::HitRatio => f64::min(effect, HIT_EFFECT),
        }
    }
}

/// The slices of a warm-up.
pub(super) struct Cells<'a> {
    /// One after the other; `None` where nothing was recorded.
    pub cells: Vec<Option<&'a Slice>>,
    /// How many workers recorded.
    pub workers: u32,
    /// Where the window ends, in nanoseconds.
    pub end_ns: u64,
}

impl Cells<'_> {
    fn slices(&self, range: Range<usize>) -> impl Iterator<Item = &Slice> + '_ {
        self.cells[range].iter().flatten().copied()
    }

    fn response(&self, range: Range<usize>) -> Cow<'_, SparseHistogram> {
        let slices = self.slices(range).map(|slice| &slice.warmup_response);
        SparseHistogram::merge_all(slices, &mut Histogram::new())
    }

    /// How many samples a value over these slices rests on.
    pub(super) fn samples(&self, series: Series, range: Range<usize>) -> u64 {
        let slices = self.slices(range);
        match series {
            Series::P50 | Series::P99 => slices.map(|slice| slice.warmup_response.count()).sum(),
            Series::Throughput => slices.map(completed).sum(),
            Series::HitRatio => slices.map(|slice| slice.warmup_keys.hit + slice.warmup_keys.miss).sum(),
        }
    }

    /// The value over these slices; `None` where there are too few samples.
    pub(super) fn value(&self, series: Series, range: Range<usize>) -> Option<f64> {
        match series {
            Series::P50 => log_percentile(series, &self.response(range), Quantile::P50),
            Series::P99 => log_percentile(series, &self.response(range), Quantile::P99),
            Series::Throughput => self.throughput(range),
            Series::HitRatio => {
                let asked = self.samples(series, range.clone());
                let hit: u64 = self.slices(range).map(|slice| slice.warmup_keys.hit).sum();
                (asked >= series.samples_needed() / 2).then(|| hit as f64 / asked as f64)
            }
        }
    }

    /// Completed per second of what workers recorded, times the workers: an interval that was ended late holds more, and
    /// took as much longer. None completed is a value, too: 0.
    fn throughput(&self, range: Range<usize>) -> Option<f64> {
        let (mut count, mut worker_ns) = (0.0, 0.0);
        for slice in self.slices(range) {
            let inside = slice.part_within(&(slice.start_ns..self.end_ns), u64::MAX);
            worker_ns += slice.recorded_ns as f64 * inside;
            count += completed(slice) as f64;
        }
        (worker_ns > 0.0).then(|| count * f64::from(self.workers) * 1e9 / worker_ns)
    }

    /// Slices to a value, so that on average it has the samples it needs.
    pub(super) fn width(&self, series: Series, range: Range<usize>) -> usize {
        let (samples, slices) = (self.samples(series, range.clone()), range.len() as u64);
        (series.samples_needed() * slices).div_ceil(samples.max(1)).max(1) as usize
    }
}

/// The logarithm of a percentile; `None` where there are too few samples.
pub(super) fn log_percentile(series: Series, response: &SparseHistogram, quantile: Quantile) -> Option<f64> {
    let is_enough = response.count() >= series.samples_needed() / 2;
    let value_ns = is_enough.then(|| response.quantile(quantile)).flatten()?;
    Some((value_ns.max(1) as f64).ln())
}

/// Completed, but for preload.
fn completed(slice: &Slice) -> u64 {
    slice.activity.completed - slice.preload.completed
}
