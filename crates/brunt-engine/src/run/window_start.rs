//! Decides when the measured window begins, for a warm-up without a fixed length.
//!
//! `brunt-stats/src/warmup.rs` judges each slice of the warm-up; `run.rs` passes the start on. Invariant:
//! the window begins with a slice, and every worker knows its start before.

use crate::worker::INTERVAL_NS;
use brunt_plan::plan::Plan;
use brunt_plan::warmup::Warmup;
use brunt_stats::run_times::RunTimes;
use brunt_stats::store::IntervalStore;
use brunt_stats::warmup::{self, WarmupEnd};

/// Workers hand an interval over a little late; after this time all usually have.
const HANDED_OVER_NS: u64 = 10_000_000;
/// Workers check for orders at least this often.
pub(crate) const AHEAD_NS: u64 = 20_000_000;

/// The pending start of a window.
#[derive(Debug)]
pub(crate) struct WindowStart {
    times: RunTimes,
    /// Slices of the warm-up that were judged.
    slices_checked: u64,
}

/// A window with known times.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct StartedWindow {
    pub times: RunTimes,
    pub end: WarmupEnd,
}

impl WindowStart {
    /// With the latest times of the window; `None` if the warm-up has a fixed length.
    pub(crate) fn of(plan: &Plan, times: RunTimes) -> Option<Self> {
        (plan.warmup == Warmup::Auto).then_some(Self { times, slices_checked: 0 })
    }

    /// Judges new slices. Returns the window once its start is decided, which is far enough after `now_ns` to tell
    /// all workers.
    pub(crate) fn check(
        &mut self,
        now_ns: u64,
        plan: &Plan,
        intervals: &IntervalStore,
    ) -> Option<StartedWindow> {
        let RunTimes { start_ns, measure_ns, .. } = self.times;
        let slices = now_ns.saturating_sub(start_ns + HANDED_OVER_NS) / INTERVAL_NS;
        // The latest start needs no order: every worker knows it.
        let is_last = now_ns + AHEAD_NS + INTERVAL_NS >= measure_ns;
        if is_last {
            return Some(StartedWindow { times: self.times, end: WarmupEnd::Longest });
        }
        if slices <= self.slices_checked {
            return None;
        }
        self.slices_checked = slices;
        let end = warmup::end(plan, intervals, start_ns, start_ns + slices * INTERVAL_NS)?;
        let begins = (now_ns + AHEAD_NS - start_ns).div_ceil(INTERVAL_NS);
        let measure_ns = start_ns + begins * INTERVAL_NS;
        let end_ns = plan.stop.time.map_or(u64::MAX, |time| measure_ns + time.0);
        Some(StartedWindow { times: RunTimes { measure_ns, end_ns, ..self.times }, end })
    }
}
