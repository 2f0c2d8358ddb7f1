//! Does an open loop get its answers as fast as its requests become due? By how much its backlog, the requests that are due and have
//! not ended, grows over the measured window, from exact counts.
//!
//! Not a rate: the number of answers scatters as the number of requests does, their difference does not. Not one instant against
//! another either, where a single pause of anything counts in full: medians of a tenth of the window. Invariant: what fills a system
//! that keeps up, while its first requests are not answered yet, is no growth.

use crate::histogram::{Histogram, SparseHistogram};
use crate::request_counts::CountEntry;
use crate::store::IntervalStore;
use crate::timeline::Timeline;
use crate::usage::{AgentRecord, WorkerUsage};
use crate::window::{RunTimes, WindowCounts};
use brunt_plan::arrival::Arrival;
use brunt_plan::op::ClassId;
use brunt_plan::phase::Phase;
use brunt_plan::plan::{Class, Load, OpenRate, Plan};
use brunt_plan::quantile::Quantile;

/// A backlog that grows by no more than this share of the requests due is none,
const CAUTION_SHARE: f64 = 0.01;
/// and above this share all latencies are those of a queue that grows as long as the run lasts.
const INVALID_SHARE: f64 = 0.05;
/// A queue at 90 % of capacity holds 9 requests and once in ten times 20 more.
const GROWTH_MIN: i64 = 20;
/// A smaller share counts as well, where it is this many requests whose wait exceeds
const LONG_WAIT_MIN: i64 = 100;
/// this share of the p99.
const LONG_WAIT_SHARE: f64 = 0.5;
/// Where the median of the last quarter is more than this many times that of the first, latencies grow with the backlog.
const MEDIAN_GROWTH: u64 = 2;

/// What a backlog means for the percentiles of its class.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum BacklogLevel {
    /// It does not grow.
    #[default]
    Ok,
    /// It grows, or once grew and was not gone at the end.
    Caution,
    /// It grows, and latencies with it: they are those of the length of the run.
    Invalid,
}

/// The backlog of one class of an open loop, or of all of them on one of several hosts.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Backlog {
    /// The name of the class; empty where it is a host's.
    pub class: String,
    /// The name of the agent whose it is.
    pub agent: Option<String>,
    /// Requests by which it grew over the window.
    pub growth: i64,
    /// Requests that were due in the window.
    pub due: u64,
    /// Growth over `due`; not below 0.
    pub share: f64,
    /// How long a server as fast as in the window takes to answer the growth.
    pub wait_ns: u64,
    /// The largest it was at the end of a slice of the window.
    pub peak: u64,
    /// When that was, in nanoseconds from the beginning of the window.
    pub peak_at_ns: u64,
    /// What that means.
    pub level: BacklogLevel,
}

impl Backlog {
    /// The backlog of each class of an open loop, in the order of the plan; a closed loop has none. No level is above `Caution` for a
    /// class whose rate the plan changes.
    pub fn of(plan: &Plan, store: &IntervalStore, window: &RunTimes) -> Vec<Self> {
        let classes = plan.classes.iter().enumerate();
        let open = classes.filter(|(_, class)| matches!(class.load, Load::Open { .. }));
        let of_class = |(index, class): (usize, &Class)| {
            let history = History::of(index as ClassId, store, window);
            let found = history.backlog(&class.name, window);
            let most = if is_uneven(class) { BacklogLevel::Caution } else { BacklogLevel::Invalid };
            Self { level: history.level(&found).min(most), ..found }
        };
        open.map(of_class).collect()
    }

    /// The backlog of each of several agents. Its level is that of the counts alone: the course of the window is known of classes only.
    pub fn of_agents(agents: &[AgentRecord], workers: &[WorkerUsage], window: &RunTimes) -> Vec<Self> {
        let of_agent = |agent: &AgentRecord| {
            let its =
                workers.iter().filter(|usage| agent.has_worker(usage.worker)).map(|usage| usage.backlog);
            let (growth, due) = its.fold((0, 0), |sum, its| (sum.0 + its.growth, sum.1 + its.due));
            let ended = (due as i64 - growth).max(1) as f64;
            let found = Self::grown(growth, due, window.duration_ns() as f64 / ended);
            let level = match found.growth >= GROWTH_MIN {
                true if found.share > INVALID_SHARE => BacklogLevel::Invalid,
                true if found.share > CAUTION_SHARE => BacklogLevel::Caution,
                _ => BacklogLevel::Ok,
            };
            Self { agent: Some(agent.name.clone()), level, ..found }
        };
        if agents.len() > 1 { agents.iter().map(of_agent).collect() } else { Vec::new() }
    }

    fn grown(growth: i64, due: u64, per_request_ns: f64) -> Self {
        let positive = growth.max(0) as f64;
        let share = positive / due.max(1) as f64;
        Self { growth, due, share, wait_ns: (positive * per_request_ns) as u64, ..Self::default() }
    }

    /// Does one of several grow?
    pub(crate) fn is_overload(all: &[Self]) -> bool {
        all.iter().any(|backlog| backlog.level > BacklogLevel::Ok)
    }

    /// The worst of several; `None` of none.
    pub fn worst(all: &[Self]) -> Option<&Self> {
        all.iter().max_by(|one, other| one.level.cmp(&other.level).then(one.share.total_cmp(&other.share)))
    }
}

/// Does the plan change the rate of a class, so that a backlog may come and go with it?
pub(crate) fn is_uneven(class: &Class) -> bool {
    match &class.load {
        Load::Open { rate, arrival, .. } => {
            matches!(rate, OpenRate::Profile(_) | OpenRate::Recorded) || matches!(arrival, Arrival::Mmpp(_))
        }
        Load::Closed { .. } => false,
    }
}

/// One class in the course of the window.
struct History {
    /// Requests due and not ended, at the beginning of the window and at the end of each of its slices.
    held: Vec<i64>,
    slice_ns: u64,
    /// Requests that were due in the window and counted as due behind it: a full queue keeps them in the schedule.
    late: i64,
    due: u64,
    ended: u64,
    p99_ns: u64,
    /// The p99 of the first quarter of the window.
    first_p99_ns: u64,
    /// Medians of its first and its last quarter.
    medians_ns: [Option<u64>; 2],
}

impl History {
    fn of(class: ClassId, store: &IntervalStore, window: &RunTimes) -> Self {
        let timeline = store.timeline();
        let entries: Vec<CountEntry> =
            store.request_counts().entries().filter(|entry| entry.class == class).collect();
        let measured = entries.iter().filter(|entry| entry.phase == Phase::Measure);
        let mut counts = WindowCounts::default();
        entries.iter().for_each(|entry| counts.merge(&entry.in_window()));
        let slice_ns = timeline.slice_ns();
        let mut backlog = (counts.waiting_at_start + counts.in_flight_at_start) as i64;
        let mut held = vec![backlog];
        let mut slices = timeline.slices_by_cell().peekable();
        for index in 0..window.duration_ns().div_ceil(slice_ns) {
            let end_ns = window.measure_ns + (index + 1) * slice_ns;
            // Workers are a little late in ending an interval, so the slice before the window may hold the first of its requests.
            while let Some((_, slice)) = slices.next_if(|(cell_ns, _)| *cell_ns < end_ns) {
                let rows = slice.rows.iter().filter(|row| row.class == class);
                backlog += rows.map(|row| row.backlog).sum::<i64>();
            }
            held.push(backlog);
        }
        let mut response = Histogram::new();
        let rows = store.rows().filter(|(of, ..)| *of == class);
        rows.for_each(|(.., row)| response.merge(&row.latencies.response));
        let quarter_ns = window.duration_ns() / 4;
        let first = response_within(timeline, class, window.measure_ns..window.measure_ns + quarter_ns);
        let last = response_within(timeline, class, window.end_ns - quarter_ns..window.end_ns);
        Self {
            held,
            slice_ns,
            late: (counts.waiting_at_end + counts.in_flight_at_end) as i64 - backlog,
            due: measured.map(|entry| entry.counts.requests.scheduled).sum(),
            ended: counts.ended() + counts.abandoned,
            p99_ns: response.quantile(Quantile::P99).unwrap_or(0),
            first_p99_ns: first.quantile(Quantile::P99).unwrap_or(u64::MAX),
            medians_ns: [&first, &last].map(|quarter| quarter.quantile(Quantile::P50)),
        }
    }

    fn backlog(&self, class: &str, window: &RunTimes) -> Backlog {
        let growth = self.growth();
        let per_request_ns = window.duration_ns() as f64 / self.ended.max(1) as f64;
        let (at, peak) = self.held.iter().enumerate().rev().max_by_key(|(_, held)| **held).unwrap_or((0, &0));
        Backlog {
            class: class.to_owned(),
            peak: (*peak).max(0) as u64,
            peak_at_ns: (at as u64 * self.slice_ns).min(window.duration_ns()),
            ..Backlog::grown(growth, self.due, per_request_ns)
        }
    }

    /// From the median of the tenth of the window that begins when the first requests are answered, at most a quarter into it, to that of
    /// the last tenth.
    fn growth(&self) -> i64 {
        let slices = self.held.len() - 1;
        let tenth = (slices / 10).max(1);
        let filled = ((self.first_p99_ns / self.slice_ns) as usize).min(slices / 4);
        let last = self.held.len().saturating_sub(tenth);
        let first = &self.held[filled..(filled + tenth).min(self.held.len())];
        median(&self.held[last..]) + self.late - median(first)
    }

    fn level(&self, found: &Backlog) -> BacklogLevel {
        let is_enough = found.growth >= GROWTH_MIN;
        let is_long = found.wait_ns as f64 > LONG_WAIT_SHARE * self.p99_ns as f64;
        let is_caution = is_enough && found.share > CAUTION_SHARE || found.growth >= LONG_WAIT_MIN && is_long;
        let [first_ns, last_ns] = self.medians_ns;
        let has_slowed = first_ns.zip(last_ns).is_some_and(|(first, last)| last > MEDIAN_GROWTH * first);
        if is_enough && found.share > INVALID_SHARE || is_caution && has_slowed {
            BacklogLevel::Invalid
        } else if is_caution {
            BacklogLevel::Caution
        } else {
            BacklogLevel::Ok
        }
    }
}

/// The value in the middle; of an even number the upper one of the two there.
fn median(counts: &[i64]) -> i64 {
    let mut sorted = counts.to_vec();
    sorted.sort_unstable();
    sorted.get(sorted.len() / 2).copied().unwrap_or(0)
}

/// Response times of a class that ended in the slices which begin in a span.
fn response_within(timeline: &Timeline, class: ClassId, span: std::ops::Range<u64>) -> SparseHistogram {
    let rows = timeline.slices_in(span).flat_map(|slice| &slice.rows).filter(|row| row.class == class);
    SparseHistogram::merge_all(rows.map(|row| &row.response), &mut Histogram::new()).into_owned()
}

#[cfg(test)]
mod tests;
