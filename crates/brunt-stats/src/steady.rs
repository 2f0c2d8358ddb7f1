//! Is what was measured a steady state? Warm-up, drift and change of level of four series over the window.
//!
//! Not the verdict (`verdict/steady.rs` words it), and it changes no number: whatever is found, every printed latency, rate
//! and count is of the whole window. Every rule has two arms, a statistical one and one of size: with enough requests
//! everything is significant, and with few everything is large. Invariant: only what is different from the very first
//! value on is taken for warm-up.

mod mann_kendall;
mod mser;
mod pettitt;
mod series;
pub mod warmup;

pub(crate) use series::HIT_EFFECT;
pub use series::Series;

use crate::batch::{Batch, batches};
use crate::histogram::Histogram;
use crate::latency::LatencySummary;
use crate::measured_window::MeasuredWindow;
use crate::median::median;
use crate::store::IntervalStore;
use brunt_plan::arrival::Arrival;
use brunt_plan::plan::{Class, Load, OpenRate, Plan};
use brunt_plan::quantile::Quantile;
use serde::Serialize;
use series::{Cells, SeriesPhase};
use std::ops::Range;

/// MSER-5: values are averaged in fives, which takes most of their dependence and noise away.
const GROUP: usize = 5;
/// Time to a value at most, and where the window is longer than [`WIDTHS`] times this, a share of it: whatever begins
/// within the first value passes for the beginning. One slice is allowed always.
const WIDTH_MAX_NS: u64 = 200_000_000;
/// The end of a warm-up need not be known better than to a 30th of a long window; this is a tenth of that.
const WIDTHS: u64 = 300;
/// With fewer groups, of which at least half are the rest, the scatter of the rest is unknown: a window below 4 s.
const GROUPS_MIN: usize = 8;
/// With fewer batches rank tests find nothing less than a landslide: a window below 2 s.
const BATCHES_MIN: usize = 20;
/// The beginning must differ from the rest by more than this share; of the hit ratio, by more than [`HIT_EFFECT`].
pub(crate) const WARM_EFFECT: f64 = 0.10;
/// And by more than this number of robust standard deviations of the rest.
const WARM_DEVIATIONS: f64 = 3.0;
/// Where one group alone differs: one is the extreme of twenty more often than two are.
const WARM_DEVIATIONS_OF_ONE: f64 = 4.0;
/// The deviation of few groups is badly known, and MSER chooses those that lie close together. With a rest of n groups
/// the limits are 1 + 20/n times, of one group alone 1 + 40/n times as high: chosen so that few of the stationary
/// queues of `stationary_runs_raise_few_alarms` (`steady/tests/replications.rs`; T12 of docs/accuracy.md, under Steady
/// states) raise an alarm.
const WARM_FEW: f64 = 20.0;
/// A warm-up is at its worst where it begins, give or take this factor: what becomes so many times as large as its first value
/// is an event of its own, such as a stall in the first second of a run whose first requests were a little slow.
const WARM_GROWTH_MAX: f64 = 4.0;
/// A trend must change a series by more than this share over the window.
const DRIFT_EFFECT: f64 = 0.05;
/// And its Z must be beyond this: 1 % divided by the four series, two-sided.
pub(crate) const DRIFT_Z: f64 = 3.023;
/// A change of level must change a series by more than this share.
const SHIFT_EFFECT: f64 = 0.10;
/// And must be less likely than this without one: 1 % divided by the four series.
pub(crate) const SHIFT_P: f64 = 0.002_5;

/// How the beginning of a series compares with the rest. Times are nanoseconds from the beginning of the window.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct WarmUp {
    /// Where MSER would cut, whether or not that is called for.
    pub mser_ns: u64,
    /// Up to here the series differs from the rest, from its first value on; 0 where it does not.
    pub until_ns: u64,
    /// By how much the median before `until_ns` differs from the rest: a share of it, or a difference of hit ratios.
    pub change: f64,
    /// It differs until the middle of the window, so nothing says that it would not go on.
    #[serde(rename = "endless")]
    pub is_endless: bool,
}

/// A trend over all batches.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Drift {
    /// Mann and Kendall's Z.
    pub z: f64,
    /// Sen's slope over all batches: a share of the median, or a difference of hit ratios.
    pub change: f64,
    /// Is it both unlikely to be chance, and large?
    pub fires: bool,
}

/// The likeliest change of level.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Shift {
    /// Pettitt's p.
    pub p: f64,
    /// When, in nanoseconds from the beginning of the window.
    pub at_ns: u64,
    /// From the median before it to the median after it: a share, or a difference of hit ratios.
    pub change: f64,
    /// Is it both unlikely to be chance, and large?
    pub fires: bool,
}

/// What was found of one series. An error says why it could not be looked at.
#[derive(Clone, Debug, PartialEq)]
pub struct SeriesSteadiness {
    /// Which.
    pub series: Series,
    /// Its beginning.
    pub warm_up: Result<WarmUp, String>,
    /// The rest of it, as a trend and as two levels.
    pub course: Result<(Drift, Shift), String>,
}

/// A first part of the window that differs from the rest. Nothing leaves it out: it is told beside the numbers.
#[derive(Clone, Debug, PartialEq)]
pub struct Beginning {
    /// Up to here, in nanoseconds from the beginning of the window, a series differs from the rest.
    pub until_ns: u64,
    /// The warm-up that would have covered it: the one that there was, and this.
    pub warmup_needed_ns: u64,
    /// Response times of all requests of the window.
    pub with: LatencySummary,
    /// Response times of those that completed after `until_ns`.
    pub without: LatencySummary,
    /// When in it a server was gone or a connection failed, in nanoseconds from the beginning of the window: then
    /// it is no cold start that a longer warm-up would cover.
    pub trouble_ns: Option<u64>,
}

/// What was found of the window.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Steadiness {
    /// How it began; `None` where it began as it went on, and where a series differs up to the middle, so that it has no
    /// beginning that ends.
    pub beginning: Option<Beginning>,
    /// Every series.
    pub series: Vec<SeriesSteadiness>,
}

impl Steadiness {
    /// Looks at what was measured so far. `window` ends where the run ended or has arrived.
    pub fn of(plan: &Plan, store: &IntervalStore, window: &MeasuredWindow) -> Self {
        Self::without(plan, store, window, &[])
    }

    /// Looks for drift and shift only in the batches of the window that none of these spans of time touches: what is
    /// found only with them was in them.
    pub(crate) fn without(
        plan: &Plan,
        store: &IntervalStore,
        window: &MeasuredWindow,
        left_out: &[Range<u64>],
    ) -> Self {
        let mut response = Histogram::new();
        store.rows().for_each(|(_, _, row)| response.merge(&row.latencies.response));
        let cells = Cells {
            phase: SeriesPhase::Window,
            cells: store.timeline().cells(window.measure_ns..window.end_ns),
            slice_ns: store.timeline().slice_ns(),
            workers: plan.threads,
            end_ns: window.end_ns,
        };
        let unseen = slices_unseen(&response, &cells);
        let reason = |series| unsuited(series, plan);
        let warm_up = |series| match reason(series) {
            Some(reason) => Err(reason.to_owned()),
            None => warm_up(&cells, series, unseen),
        };
        let warm_ups = Series::ALL.map(|series| (series, warm_up(series)));
        let found = || warm_ups.iter().filter_map(|(_, warm_up)| warm_up.as_ref().ok());
        // Where nothing is steady, nothing is better than all of it.
        let until_ns = match found().any(|warm_up| warm_up.is_endless) {
            true => 0,
            false => found().map(|warm_up| warm_up.until_ns).max().unwrap_or(0),
        };
        let from_ns = window.measure_ns + until_ns.max(unseen as u64 * cells.slice_ns);
        let mut batches = batches(store.timeline(), window, from_ns, |_, _| true);
        let is_in = |batch: &Batch, span: &Range<u64>| span.start < batch.end_ns && batch.start_ns < span.end;
        batches.retain(|batch| !left_out.iter().any(|span| is_in(batch, span)));
        let course = BatchSeries { batches, measure_ns: window.measure_ns, cells: &cells };
        let series = warm_ups.map(|(series, warm_up)| SeriesSteadiness {
            series,
            course: match reason(series) {
                Some(reason) => Err(reason.to_owned()),
                None => course.drift_and_shift(series),
            },
            warm_up,
        });
        let beginning = (until_ns > 0).then(|| Beginning {
            until_ns,
            warmup_needed_ns: window.measure_ns.saturating_sub(window.start_ns) + until_ns,
            with: LatencySummary::of(&response),
            without: LatencySummary::of(&response_from(store, window.measure_ns + until_ns)),
            trouble_ns: trouble_ns(store, window, until_ns),
        });
        Self { beginning, series: series.into() }
    }

    /// What was found of a series.
    fn of_series(&self, series: Series) -> Option<&SeriesSteadiness> {
        self.series.iter().find(|held| held.series == series)
    }

    /// Does this check, one of WARM, DRIFT and SHIFT, find something of the series?
    pub(crate) fn fires(&self, check: &str, series: Series) -> bool {
        self.of_series(series).is_some_and(|held| match check {
            "WARM" => held.warm_up.as_ref().is_ok_and(|warm_up| warm_up.until_ns > 0 || warm_up.is_endless),
            "DRIFT" => held.course.as_ref().is_ok_and(|(drift, _)| drift.fires),
            _ => held.course.as_ref().is_ok_and(|(_, shift)| shift.fires),
        })
    }

    /// Its likeliest change of level.
    pub(crate) fn shift_of(&self, series: Series) -> Option<Shift> {
        self.of_series(series)?.course.as_ref().ok().map(|(_, shift)| *shift)
    }

    /// The largest change of a series that was found of it; 0 where none was.
    pub(crate) fn change(&self, series: Series) -> f64 {
        let Some(held) = self.of_series(series) else { return 0.0 };
        let warm_up =
            held.warm_up.as_ref().ok().filter(|_| self.fires("WARM", series)).map(|held| held.change);
        let course = held.course.as_ref().ok();
        let drift = course.filter(|(drift, _)| drift.fires).map(|(drift, _)| drift.change);
        let shift = course.filter(|(_, shift)| shift.fires).map(|(_, shift)| shift.change);
        let largest = [warm_up, drift, shift]
            .into_iter()
            .flatten()
            .max_by(|one, other| one.abs().total_cmp(&other.abs()));
        largest.unwrap_or(0.0)
    }
}

/// Response times of the measured requests that completed at this time or later, to a slice.
fn response_from(store: &IntervalStore, from_ns: u64) -> Histogram {
    let mut response = Histogram::new();
    let slices = store.timeline().slices_by_cell().filter(|(cell_ns, _)| *cell_ns >= from_ns);
    slices.flat_map(|(_, slice)| &slice.rows).for_each(|row| response.merge_sparse(&row.response));
    response
}

/// When an outage or a connection fault first occurred within `until_ns` of the window's start. An outage from
/// before the window counts where it lasted into it.
fn trouble_ns(store: &IntervalStore, window: &MeasuredWindow, until_ns: u64) -> Option<u64> {
    let beginning = window.measure_ns..window.measure_ns + until_ns;
    let spans = store.outages.spans.iter();
    let lasting = spans.filter(|span| span.start_ns < beginning.end && span.end_ns > beginning.start);
    let outages = lasting.map(|span| span.start_ns.max(beginning.start));
    let faults = store.faults().rows().iter().map(|fault| fault.first_ns);
    let first_ns = outages.chain(faults.filter(|first_ns| beginning.contains(first_ns))).min()?;
    Some(first_ns - beginning.start)
}

/// Why a series of a plan has no steady state, if so.
fn unsuited(series: Series, plan: &Plan) -> Option<&'static str> {
    // What is found does not depend on how often it is asked for.
    if series == Series::HitRatio {
        return None;
    }
    plan.classes.iter().find_map(|class| match &class.load {
        Load::Open { rate: OpenRate::Profile(_), .. } => {
            Some("the offered load changes by plan (rate-profile)")
        }
        Load::Open { arrival: Arrival::Mmpp(_), .. } => {
            Some("the offered load changes by plan (arrival mmpp)")
        }
        Load::Open { rate: OpenRate::PerConnection(_), .. } | Load::Closed { .. } if is_ramp(class) => {
            Some("the number of connections changes by plan")
        }
        Load::Open { .. } | Load::Closed { .. } => None,
    })
}

/// Do connections come one after another, or end for good?
fn is_ramp(class: &Class) -> bool {
    class.lifetime.connect_rate.is_some() || class.lifetime.total.is_some()
}

/// Only requests of the window count, so in its first instants only the fast ones of them can have ended: slices to pass
/// over until those that take as long as the p99 can have, too. At most a quarter of the window.
fn slices_unseen(response: &Histogram, cells: &Cells<'_>) -> usize {
    let p99_ns = response.quantile(Quantile::P99).unwrap_or(0);
    let unseen = p99_ns.saturating_add(cells.slice_ns / 2) / cells.slice_ns;
    usize::try_from(unseen).unwrap_or(usize::MAX).min(cells.cells.len() / 4)
}

/// The beginning of a series against the rest.
fn warm_up(cells: &Cells<'_>, series: Series, unseen: usize) -> Result<WarmUp, String> {
    let slices = cells.cells.len();
    let width = cells.width(series, unseen..slices);
    let width_max = width_max(cells);
    let ms = |width: usize| width as u64 * cells.slice_ns / 1_000_000;
    if width > width_max.min(slices) {
        let needed = series.samples_needed();
        return Err(format!("too few requests: it takes {} in {} ms", needed, ms(width_max)));
    }
    let starts = (unseen..=slices - width).step_by(width);
    let values: Vec<Option<f64>> = starts.map(|start| cells.value(series, start..start + width)).collect();
    let needed = GROUPS_MIN * GROUP;
    if values.len() < needed {
        return Err(format!("the window is too short: it takes {needed} values of {} ms", ms(width)));
    }
    // Where nothing completed there is nothing to compare; whatever was left out keeps its time.
    let groups: Vec<Group> = values.chunks_exact(GROUP).enumerate().filter_map(Group::of).collect();
    if groups.len() < GROUPS_MIN {
        return Err(format!("too few requests: most of the {needed} values that it takes are missing"));
    }
    let means: Vec<f64> = groups.iter().map(|group| group.mean).collect();
    let best = mser::truncation(&means);
    let level = median(&means[best..]).unwrap_or(0.0);
    let mut leading = leading(series, &means, level, best);
    // The values themselves, from the first instant: a mean of five is different when one of them is.
    let effect = series.difference(WARM_EFFECT, level);
    let differs = |value: f64| (value - level).abs() > effect && (value > level) == (means[0] > level);
    let passed_over: Vec<f64> =
        (0..unseen).filter_map(|start| cells.value(series, start..start + 1)).collect();
    let begins_so = passed_over.iter().chain(groups[0].values.first()).copied().all(differs);
    let of_groups = groups[..leading].iter().flat_map(|group| &group.values);
    // A warm-up only gets better: what begins better than it goes on is another matter.
    let is_worse = match series {
        Series::P50 | Series::P99 => means[0] > level,
        Series::Throughput | Series::HitRatio => means[0] < level,
    };
    if !begins_so || !is_worse || grows(passed_over.iter().chain(of_groups).copied(), level) {
        leading = 0;
    }
    let is_other = |values: &[f64]| median(values).is_some_and(differs);
    let whole = groups[..leading].iter().take_while(|group| is_other(&group.values)).count();
    // It may end within a group.
    let is_part = |group: &Group| differs(group.values[0]);
    leading = whole + usize::from(whole > 0 && groups[whole..leading].first().is_some_and(is_part));
    // MSER looks no further than the middle; a twentieth short of it is the middle for all that noise lets it see. One
    // value near the rest does not end what goes on behind it.
    let is_middle = |count: usize| count + means.len() / 20 >= means.len() / 2;
    let goes_on = is_middle(best) && is_other(&means[leading..best]);
    let is_endless = leading > 0 && (is_middle(leading) || goes_on);
    let leading = if is_endless { best } else { leading };
    let change = median(&means[..leading]).map_or(0.0, |before| series.change(before - level, level));
    let end_ns = |count: usize| match count {
        0 => 0,
        _ => (unseen + (groups[count - 1].number + 1) * GROUP * width) as u64 * cells.slice_ns,
    };
    Ok(WarmUp { mser_ns: end_ns(best), until_ns: end_ns(leading), change, is_endless })
}

/// Slices to a value at most.
fn width_max(cells: &Cells<'_>) -> usize {
    let window_ns = cells.cells.len() as u64 * cells.slice_ns;
    (WIDTH_MAX_NS.max(window_ns / WIDTHS) / cells.slice_ns).max(1) as usize
}

/// Does what differs from the level at first differ much more later on?
fn grows(mut values: impl Iterator<Item = f64>, level: f64) -> bool {
    let Some(first) = values.next() else { return false };
    let most = WARM_GROWTH_MAX * (first - level).abs();
    values.any(|value| (value - level).abs() > most)
}

/// Values that are averaged.
struct Group {
    /// How many groups of time come before it.
    number: usize,
    values: Vec<f64>,
    mean: f64,
}

impl Group {
    /// The slice of this number with the values that there are in it; `None` without any.
    fn of((number, values): (usize, &[Option<f64>])) -> Option<Self> {
        let values: Vec<f64> = values.iter().flatten().copied().collect();
        let mean = values.iter().sum::<f64>() / values.len() as f64;
        (!values.is_empty()).then_some(Self { number, values, mean })
    }
}

/// How many of the first groups, at most as many as MSER would cut, differ from the rest all in one direction.
fn leading(series: Series, groups: &[f64], level: f64, best: usize) -> usize {
    let distances: Vec<f64> = groups[best..].iter().map(|value| (value - level).abs()).collect();
    // 1.4826 times the median distance is the standard deviation of a normal distribution.
    let deviation = 1.482_6 * median(&distances).unwrap_or(0.0);
    let few = WARM_FEW / distances.len() as f64;
    let effect = series.difference(WARM_EFFECT, level);
    let is_above = groups[0] > level;
    let longest = |deviations: f64| {
        let least = effect.max(deviations * deviation);
        let differs = |value: &&f64| (**value - level).abs() > least && (**value > level) == is_above;
        groups[..best].iter().take_while(differs).count()
    };
    let is_beginning = match longest(WARM_DEVIATIONS * (1.0 + few)) {
        0 => false,
        1 => longest(WARM_DEVIATIONS_OF_ONE * (1.0 + 2.0 * few)) > 0,
        _ => true,
    };
    // Once it is certain that the series begins otherwise, it has to come near the rest before it is like it.
    if is_beginning { longest(0.0) } else { 0 }
}

/// The window behind its beginning, in batches.
struct BatchSeries<'a> {
    batches: Vec<Batch>,
    measure_ns: u64,
    cells: &'a Cells<'a>,
}

impl BatchSeries<'_> {
    fn drift_and_shift(&self, series: Series) -> Result<(Drift, Shift), String> {
        let count = self.batches.len();
        if count < BATCHES_MIN {
            return Err("the window is too short: it takes 2 s".to_owned());
        }
        let values: Vec<(u64, f64)> =
            self.batches.iter().filter_map(|batch| self.value(series, batch)).collect();
        let needed = series.samples_needed() * count as u64;
        // Where no reply is asked for nothing completes, as evenly as can be.
        let is_thin = self.cells.samples(series, 0..self.cells.cells.len()) < needed / 2;
        if is_thin || values.len() < BATCHES_MIN {
            return Err(format!("too few requests: it takes about {} in the window", needed));
        }
        let (starts, values): (Vec<u64>, Vec<f64>) = values.into_iter().unzip();
        let untold = || "too few batches".to_owned();
        let drift = drift(series, &values).ok_or_else(untold)?;
        let shift = shift(series, &values, &starts).ok_or_else(untold)?;
        Ok((drift, shift))
    }

    /// When the batch begins, in nanoseconds from the beginning of the window, and its value.
    fn value(&self, series: Series, batch: &Batch) -> Option<(u64, f64)> {
        let start_ns = batch.start_ns - self.measure_ns;
        let cell = |ns: u64| ((ns / self.cells.slice_ns) as usize).min(self.cells.cells.len());
        let range = cell(start_ns)..cell(batch.end_ns - self.measure_ns);
        let value = match series {
            Series::P50 => series::log_percentile(series, &batch.response, Quantile::P50),
            Series::P99 => series::log_percentile(series, &batch.response, Quantile::P99),
            Series::Throughput | Series::HitRatio => self.cells.value(series, range),
        };
        value.map(|value| (start_ns, value))
    }
}

fn drift(series: Series, values: &[f64]) -> Option<Drift> {
    let level = median(values)?;
    let trend = mann_kendall::trend(values)?;
    let rise = trend.slope * values.len() as f64;
    let fires = trend.z.abs() > DRIFT_Z && rise.abs() > series.difference(DRIFT_EFFECT, level);
    Some(Drift { z: trend.z, change: series.change(rise, level), fires })
}

fn shift(series: Series, values: &[f64], starts: &[u64]) -> Option<Shift> {
    let found = pettitt::change(values)?;
    let (before, after) = (median(&values[..found.before])?, median(&values[found.before..])?);
    let fires = found.p < SHIFT_P && (after - before).abs() > series.difference(SHIFT_EFFECT, before);
    Some(Shift {
        p: found.p,
        at_ns: starts[found.before],
        change: series.change(after - before, before),
        fires,
    })
}

#[cfg(test)]
mod tests;
