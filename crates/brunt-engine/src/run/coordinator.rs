//! Who else takes part in a run: workers on other hosts, or whoever leads this host's.
//!
//! Not a transport: how hosts talk is theirs who implement [`Coordinator`]. To the control thread of a run all workers are alike,
//! here or elsewhere: it waits for all of them before the schedule begins, reads their intervals as they come, and takes from
//! each what it has to say in the end. Times that pass through here are CLOCK_MONOTONIC of this host, which others know how
//! far they are off; [`crate::monotonic_ns`] reads it. Invariant: the schedule begins nowhere before everyone is ready.

use crate::clock::monotonic_ns;
pub use crate::run_error::RemoteError;
use brunt_plan::op::ClassId;
use brunt_plan::plan::Plan;
use brunt_plan::shard::{Portion, StreamPart};
use brunt_stats::interval::Interval;
use brunt_stats::run_data::RunData;
use std::ops::Range;

/// The schedule starts this long after everyone is ready, so that all workers have built their sessions. Where word of it takes
/// time, more is added.
pub const START_AHEAD_NS: u64 = 30_000_000;

/// Whether to begin.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReadyState {
    /// Not everyone is ready.
    Wait,
    /// Everyone is.
    Ready,
    /// Whoever leads has let us go.
    Aborted,
}

/// What is to become of a run that goes on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RemoteStatus {
    /// Nobody elsewhere has anything to add any more.
    pub is_over: bool,
    /// Whoever leads wants the schedule to end.
    pub stop: Option<Stop>,
}

/// Why a schedule ends early.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stop {
    /// What was measured is enough.
    Enough,
    /// Somebody interrupted it.
    Interrupted,
}

/// Everyone else. An error is the end of the run.
pub trait Coordinator {
    /// Our workers are preparing, or are ready. No other host connects to a server before this is called for the first time: servers have
    /// been asked for their statistics by then. Asked again and again until the schedule begins: of workers that prepare at least every
    /// 10 ms, and at once; when they are ready, this is where to wait, 10 ms at most.
    fn poll_ready(&mut self, is_ready: bool) -> Result<ReadyState, RemoteError>;
    /// Everyone is ready, and nothing holds us up: when the schedule begins, on CLOCK_MONOTONIC in nanoseconds.
    fn begin(&mut self) -> Result<u64, RemoteError>;
    /// A worker of ours recorded this. `epoch_ns` is what CLOCK_MONOTONIC showed when the interval's clock showed 0.
    fn publish_interval(&mut self, interval: &Interval, epoch_ns: u64);
    /// Called whenever our own workers are looked at, and again and again once they have ended, until it is over; then this is
    /// where to wait, 10 ms at most. `hear` takes what was recorded elsewhere, as part of the whole plan and on this
    /// host's clock. `stop` is the wish of this host.
    fn poll_running(
        &mut self,
        have_ours_ended: bool,
        stop: Option<Stop>,
        hear: &mut dyn FnMut(Interval),
    ) -> Result<RemoteStatus, RemoteError>;
    /// What is left to say when it is over: everything of each but the intervals, in the same terms.
    fn collect_results(&mut self) -> Vec<RunData>;
}

/// Nobody.
#[derive(Clone, Copy, Debug, Default)]
pub struct LocalOnly;

impl Coordinator for LocalOnly {
    fn poll_ready(&mut self, is_ready: bool) -> Result<ReadyState, RemoteError> {
        Ok(if is_ready { ReadyState::Ready } else { ReadyState::Wait })
    }

    fn begin(&mut self) -> Result<u64, RemoteError> {
        Ok(monotonic_ns() + START_AHEAD_NS)
    }

    fn publish_interval(&mut self, _: &Interval, _: u64) {}

    fn poll_running(
        &mut self,
        _: bool,
        _: Option<Stop>,
        _: &mut dyn FnMut(Interval),
    ) -> Result<RemoteStatus, RemoteError> {
        Ok(RemoteStatus { is_over: true, stop: None })
    }

    fn collect_results(&mut self) -> Vec<RunData> {
        Vec::new()
    }
}

/// Which part of a run is carried out here.
#[derive(Clone, Debug)]
pub struct LocalPart<'a> {
    /// What our workers carry out: the plan, or some classes of it.
    pub plan: &'a Plan,
    /// Which of that plan's workers they are; may be none.
    pub workers: Range<u32>,
    /// What of the arrivals the first of them has; those of the others follow it, and are as wide.
    pub portion: Portion,
    /// What the classes of that plan are in the whole; empty where it is the whole.
    pub classes: &'a [ClassId],
}

impl<'a> LocalPart<'a> {
    /// All of it.
    pub fn whole(plan: &'a Plan) -> Self {
        Self { plan, workers: 0..plan.threads, portion: Self::alone(plan.threads), classes: &[] }
    }

    /// The portion of the first of so many workers that weigh the same.
    pub fn alone(workers: u32) -> Portion {
        Portion::even(StreamPart { index: 0, of: workers })
    }
}
