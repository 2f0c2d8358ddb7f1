//! When is a server warm? Whether a warm-up of no fixed length may end, by its own slices of 100 ms.
//!
//! Not STEADY (that looks at the measured window, afterwards), and nothing here moves a window: the control thread does,
//! ahead of time. A warm-up only gets better: latencies fall, throughput and hit ratio rise. So only what gets better
//! lengthens it. Invariants: a failure never does: an outage, a fault of a connection or a falling hit ratio ends it at once, so
//! that neither these nor what follows them can be waited out; every value of a series rests on at least half the samples that it needs, or
//! it is absent.

use crate::histogram::{Histogram, SparseHistogram};
use crate::interval::SLICE_NS;
use crate::median::median;
use crate::store::IntervalStore;
use crate::timeline::Slice;
use brunt_plan::arrival::Arrival;
use brunt_plan::phase::Phase;
use brunt_plan::plan::{Class, Load, Plan};
use brunt_plan::quantile::Quantile;
use brunt_plan::warmup::Warmup;
use serde::{Deserialize, Serialize};
use std::borrow::Cow;
use std::ops::Range;

/// Values that a trend is looked for in, at least: those of 1 s, where 100 ms hold enough requests.
const VALUES_MIN: usize = 10;
/// And at most: with more, values are of longer times.
const VALUES_MAX: usize = 30;
/// Level is what has got better by less than this share over the last half of the warm-up, with one standard error to spare:
/// half of what STEADY calls a change. Of 40 queues at half of their capacity whose service time decays with τ = 3 s from
/// 1.6 times its value, 2 were taken for level within 2 s; without the error to spare it was 15.
const EFFECT: f64 = 0.05;
/// A p99 scatters by more than that, so it counts only where it got better beyond chance: one of twenty by mistake.
const P99_Z: f64 = 1.645;
/// A hit ratio falls over the last half when that is certain, too: one look of ten thousand is mistaken, and there are hundreds.
const FALL_Z: f64 = 3.7;
/// And from one slice to the next when it falls by this number of standard deviations: there are hundreds of slices.
const FALL_DEVIATIONS: f64 = 5.0;
/// Where this number of replies comes in 100 ms on average, none at all is silence: by chance that is rarer than 1 in 10⁸.
const REPLIES_MIN: f64 = 20.0;

brunt_plan::named! {
    /// Why a warm-up of no fixed length ended. Of the warm-ups of several parts of a run the greatest counts: that which is most against a
    /// window that begins where everything is level.
    #[derive(Serialize, Deserialize)]
    pub enum WarmupEnd {
        /// Nothing gets better any more.
        Level = "level": "ended when it was level",
        /// There is nothing to look at: no request was completed, or all that could be looked at changes by plan.
        Unknown = "unknown": "ended without anything to judge it by",
        /// It was not level after [`Warmup::LONGEST`].
        Longest = "longest": "was not level after 60 s",
        /// The hit ratio fell.
        HitRatioFell = "hit_ratio_fell": "ended where the hit ratio fell",
        /// A server sent no reply, or a connection failed.
        Trouble = "trouble": "ended where a server or a connection failed",
    }
}

/// May the warm-up end that began at `start_ns`, by what was recorded until `until_ns`, whole slices later? `None`: it goes on.
pub fn end(plan: &Plan, store: &IntervalStore, start_ns: u64, until_ns: u64) -> Option<WarmupEnd> {
    let cells = Cells {
        // A warm-up of no fixed length is too short for wider ones.
        cells: store.timeline().cells(start_ns..until_ns),
        workers: plan.threads,
        end_ns: until_ns,
    };
    if has_trouble(store, &cells, start_ns) {
        return Some(WarmupEnd::Trouble);
    }
    if hit_ratio_falls(&cells) {
        return Some(WarmupEnd::HitRatioFell);
    }
    let length_ns = cells.cells.len() as u64 * SLICE_NS;
    if length_ns < Warmup::SHORTEST.0 {
        return None;
    }
    if length_ns >= Warmup::LONGEST.0 {
        return Some(WarmupEnd::Longest);
    }
    let is_steady_load = plan.classes.iter().all(has_steady_load);
    // Those that are quickly looked at first: one that gets better decides.
    let judged: &[Series] = match is_steady_load {
        true => &[Series::Throughput, Series::HitRatio, Series::P50, Series::P99],
        false => &[Series::HitRatio],
    };
    // That of the series that takes the fewest requests.
    let mut first = SeriesTrend::Thin;
    for series in judged {
        let course = SeriesTrend::of(&cells, *series);
        if course == SeriesTrend::Better {
            return None;
        }
        first = if matches!(series, Series::P50 | Series::HitRatio) { course } else { first };
    }
    let has_any = cells.samples(Series::P50, 0..cells.cells.len()) > 0;
    match first {
        SeriesTrend::Level => Some(WarmupEnd::Level),
        // Replies are rare: it takes longer to see anything of them.
        SeriesTrend::Thin if is_steady_load && has_any => None,
        SeriesTrend::Thin | SeriesTrend::Better => Some(WarmupEnd::Unknown),
    }
}

/// Does the plan ask for the same load all along? Bursts are none, nor are connections that come one after another in a closed
/// loop.
fn has_steady_load(class: &Class) -> bool {
    match &class.load {
        Load::Open { arrival: Arrival::Mmpp(_), .. } => false,
        Load::Open { rate, .. } if rate.is_known() => true,
        Load::Open { .. } | Load::Closed { .. } => class.lifetime.connect_rate.is_none(),
    }
}

/// Was a connection lost, or could none be made, or did a server send no reply, since the schedule began?
fn has_trouble(store: &IntervalStore, cells: &Cells<'_>, start_ns: u64) -> bool {
    let has_fault = store.faults().rows().iter().any(|fault| fault.phase == Phase::Warmup);
    let has_outage = store.totals.outages.spans.iter().any(|span| span.end_ns > start_ns);
    has_fault || has_outage || (0..store.servers().len()).any(|server| is_silent(cells, server))
}

/// Is there a slice in which a server said nothing, though it used to say a lot?
fn is_silent(cells: &Cells<'_>, server: usize) -> bool {
    let (mut slices, mut replies) = (0.0, 0);
    for slice in cells.cells.iter().flatten().filter(|slice| slice.recorded_ns > 0) {
        let answered = slice.servers.get(server).map_or(0, |counts| counts.answered);
        if answered == 0 && slices > 0.0 && replies as f64 / slices >= REPLIES_MIN {
            return true;
        }
        (slices, replies) = (slices + 1.0, replies + answered);
    }
    false
}

/// Does the hit ratio fall, at once or little by little?
fn hit_ratio_falls(cells: &Cells<'_>) -> bool {
    let asked = |slice: &Slice| slice.warmup_keys.hit + slice.warmup_keys.miss;
    let (mut hit_before, mut asked_before) = (0, 0);
    for slice in cells.cells.iter().flatten().filter(|slice| asked(slice) > 0) {
        if asked_before > 0 {
            let (before, now) = (asked_before as f64, asked(slice) as f64);
            let (ratio, ratio_now) = (hit_before as f64 / before, slice.warmup_keys.hit as f64 / now);
            // As of a binomial; half a key keeps a ratio of 1 from having no deviation at all.
            let share = (hit_before as f64 + 0.5) / (before + 1.0);
            let deviation = (share * (1.0 - share) * (1.0 / before + 1.0 / now)).sqrt();
            if ratio - ratio_now > HIT_EFFECT.max(FALL_DEVIATIONS * deviation) {
                return true;
            }
        }
        // Of the last 500 ms, about: the ratio rises while a cache fills.
        (hit_before, asked_before) = (
            hit_before - hit_before / 5 + slice.warmup_keys.hit,
            asked_before - asked_before / 5 + asked(slice),
        );
    }
    let Some(values) = values(cells, Series::HitRatio) else { return false };
    trend(&values).is_some_and(|found| found.z < -FALL_Z && found.slope * (values.len() as f64) < -HIT_EFFECT)
}

/// Where a series is going.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum SeriesTrend {
    /// Nowhere, or worse.
    Level,
    Better,
    /// There are too few requests to say.
    Thin,
}

impl SeriesTrend {
    fn of(cells: &Cells<'_>, series: Series) -> Self {
        let Some(values) = values(cells, series) else { return Self::Thin };
        let Some((level, found)) = median(&values).zip(trend(&values)) else { return Self::Thin };
        let gain = match series {
            Series::P50 | Series::P99 => -1.0,
            Series::Throughput | Series::HitRatio => 1.0,
        };
        let rise = gain * found.slope * values.len() as f64;
        let least = series.difference(EFFECT, level);
        // A p99 may never be known that well: it only counts where it got better beyond chance.
        let is_better = match series {
            Series::P99 => rise > least && gain * found.z > P99_Z,
            _ => rise + error_of_rise(&values, level, found.slope) > least,
        };
        if is_better { Self::Better } else { Self::Level }
    }
}

/// The standard error of a rise over all values, √(12/n) standard deviations of what is left without the slope.
fn error_of_rise(values: &[f64], level: f64, slope: f64) -> f64 {
    let (count, middle) = (values.len() as f64, (values.len() as f64 - 1.0) / 2.0);
    let places = (0..values.len()).map(|place| place as f64 - middle);
    let off: Vec<f64> =
        places.zip(values).map(|(place, value)| (value - level - slope * place).abs()).collect();
    // 1.4826 times the median distance is the standard deviation of a normal distribution.
    1.482_6 * median(&off).unwrap_or(0.0) * (12.0 / count).sqrt()
}

/// The series over the last half of the warm-up, or over as much more of it as it takes for [`VALUES_MIN`] values.
fn values(cells: &Cells<'_>, series: Series) -> Option<Vec<f64>> {
    let count = cells.cells.len();
    if cells.samples(series, 0..count) == 0 {
        return None;
    }
    let least = cells.width(series, 0..count);
    let span = (least * VALUES_MIN).max(count / 2);
    if span > count {
        return None;
    }
    let width = least.max(span.div_ceil(VALUES_MAX));
    let groups = span / width;
    let starts = (0..groups).map(|group| count - (groups - group) * width);
    let values: Vec<f64> = starts.filter_map(|start| cells.value(series, start..start + width)).collect();
    (values.len() >= VALUES_MIN).then_some(values)
}

/// A trend of a series.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Trend {
    /// S in standard deviations, after the continuity correction; standard normal without a trend.
    z: f64,
    /// Sen's slope, the median of `(y_j − y_i)/(j − i)`: per step of the series.
    slope: f64,
}

/// The trend of a series by Mann and Kendall's test, which knows only the order of values, so that a few outliers decide nothing. It says
/// nothing about the size: with enough values everything is significant, so a rule needs the slope beside it. `S = Σ_{i<j} sgn(y_j − y_i)`, `Var S = n(n−1)(2n+5)/18`, `Z = (S ∓ 1)/√Var S`. Equal values
/// are not corrected for; they only make it more reluctant. `None` for fewer than two values.
fn trend(values: &[f64]) -> Option<Trend> {
    let mut score = 0_i64;
    let mut slopes = Vec::with_capacity(values.len() * values.len().saturating_sub(1) / 2);
    for (later, value) in values.iter().enumerate() {
        for (earlier, before) in values[..later].iter().enumerate() {
            score += i64::from(value > before) - i64::from(value < before);
            slopes.push((value - before) / (later - earlier) as f64);
        }
    }
    let count = values.len() as f64;
    let variance = count * (count - 1.0) * (2.0 * count + 5.0) / 18.0;
    let corrected = (score - score.signum()) as f64;
    Some(Trend { z: corrected / variance.sqrt(), slope: median(&slopes)? })
}

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
    const fn samples_needed(self) -> u64 {
        match self {
            Self::P50 | Self::Throughput => 20,
            Self::P99 => 1_000,
            Self::HitRatio => 100,
        }
    }

    /// How far a value must lie from a level to be different by the share of `effect`, in the unit of the series. Of the
    /// hit ratio the share counts as it is, and is at most [`HIT_EFFECT`].
    fn difference(self, effect: f64, level: f64) -> f64 {
        match self {
            Self::P50 | Self::P99 => effect.ln_1p(),
            Self::Throughput => effect * level,
            Self::HitRatio => f64::min(effect, HIT_EFFECT),
        }
    }
}

/// The slices of a warm-up.
struct Cells<'a> {
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
    fn samples(&self, series: Series, range: Range<usize>) -> u64 {
        let slices = self.slices(range);
        match series {
            Series::P50 | Series::P99 => slices.map(|slice| slice.warmup_response.count()).sum(),
            Series::Throughput => slices.map(completed).sum(),
            Series::HitRatio => slices.map(|slice| slice.warmup_keys.hit + slice.warmup_keys.miss).sum(),
        }
    }

    /// The value over these slices; `None` where there are too few samples.
    fn value(&self, series: Series, range: Range<usize>) -> Option<f64> {
        match series {
            Series::P50 | Series::P99 => {
                let quantile = if series == Series::P50 { Quantile::P50 } else { Quantile::P99 };
                let response = self.response(range);
                let is_enough = response.count() >= series.samples_needed() / 2;
                let value_ns = is_enough.then(|| response.quantile(quantile)).flatten()?;
                Some((value_ns.max(1) as f64).ln())
            }
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
    fn width(&self, series: Series, range: Range<usize>) -> usize {
        let (samples, slices) = (self.samples(series, range.clone()), range.len() as u64);
        (series.samples_needed() * slices).div_ceil(samples.max(1)).max(1) as usize
    }
}

/// Completed, but for preload.
fn completed(slice: &Slice) -> u64 {
    slice.activity.completed - slice.preload.completed
}

#[cfg(test)]
mod tests;
