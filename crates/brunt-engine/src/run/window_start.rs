//! Begins the measured window of a run whose warm-up has no fixed length: looks at every slice of it, and says when.
//!
//! Not the decision (`brunt-stats/src/steady/warmup.rs`) and not the order itself (`run.rs` gives it). Invariant: the window
//! begins with a slice, which every worker hears of before that.

use crate::worker::INTERVAL_NS;
use brunt_plan::plan::Plan;
use brunt_plan::warmup::Warmup;
use brunt_stats::run_times::RunTimes;
use brunt_stats::steady::warmup::{self, WarmupEnd};
use brunt_stats::store::IntervalStore;

/// Workers are a little late in ending an interval; so long after it, as a rule, all have handed it over.
const HANDED_OVER_NS: u64 = 10_000_000;
/// Workers look at least this often whether there is an order.
pub(crate) const AHEAD_NS: u64 = 20_000_000;

/// A window that has not begun.
#[derive(Debug)]
pub(crate) struct WindowStart {
    times: RunTimes,
    /// So many slices of the warm-up were looked at.
    looked: u64,
}

/// A window whose times are known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct StartedWindow {
    pub times: RunTimes,
    pub end: WarmupEnd,
}

impl WindowStart {
    /// With the times of a window that begins as late as it may; `None` where the plan has its warm-up fixed.
    pub(crate) fn of(plan: &Plan, times: RunTimes) -> Option<Self> {
        (plan.warmup == Warmup::Auto).then_some(Self { times, looked: 0 })
    }

    /// Looks at what was recorded. Returns the window as soon as it is decided when it begins: after `now_ns`, so that there
    /// is time to say so.
    pub(crate) fn check(
        &mut self,
        now_ns: u64,
        plan: &Plan,
        intervals: &IntervalStore,
    ) -> Option<StartedWindow> {
        let RunTimes { start_ns, measure_ns, .. } = self.times;
        let slices = now_ns.saturating_sub(start_ns + HANDED_OVER_NS) / INTERVAL_NS;
        // As late as it may: it begins then without a word, and as every worker was told before.
        let is_last = now_ns + AHEAD_NS + INTERVAL_NS >= measure_ns;
        if is_last {
            return Some(StartedWindow { times: self.times, end: WarmupEnd::Longest });
        }
        if slices <= self.looked {
            return None;
        }
        self.looked = slices;
        let end = warmup::end(plan, intervals, start_ns, start_ns + slices * INTERVAL_NS)?;
        let begins = (now_ns + AHEAD_NS - start_ns).div_ceil(INTERVAL_NS);
        let measure_ns = start_ns + begins * INTERVAL_NS;
        let end_ns = plan.stop.time.map_or(u64::MAX, |time| measure_ns + time.0);
        Some(StartedWindow { times: RunTimes { measure_ns, end_ns, ..self.times }, end })
    }
}
