//! The coordination of a run with other hosts: agents of a controller, or the controller of an agent.
//!
//! Implementors of [`Coordinator`] exchange the messages. The control thread treats all workers alike, local or
//! remote: it waits for all of them, reads their intervals as they come, and collects their results. Times here are
//! CLOCK_MONOTONIC of this host ([`crate::monotonic_ns`]). Invariant: no schedule begins before all hosts are
//! ready.

use crate::clock::{monotonic_ns, unix_ns};
pub use crate::run_error::RemoteError;
use brunt_plan::op::ClassId;
use brunt_plan::plan::Plan;
use brunt_plan::shard::{Portion, StreamPart};
use brunt_stats::interval::Interval;
use brunt_stats::run_record::RunData;
use serde::{Deserialize, Serialize};
use std::ops::Range;
use std::time::Duration;

/// The schedule starts this long after all workers are ready, so that they have built their sessions. Coordinators
/// that send messages add to it.
pub const START_AHEAD_NS: u64 = 30_000_000;

/// State of the preparation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReadyState {
    /// Some workers are not ready.
    Wait,
    /// All workers are ready.
    Ready,
    /// The controller aborted the run.
    Aborted,
}

/// State of the other hosts during a run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RemoteStatus {
    /// All other hosts have finished.
    pub is_over: bool,
    /// The controller ends the schedule.
    pub stop: Option<Stop>,
    /// What a user should know at once, a line each.
    pub notes: Vec<String>,
}

/// Why a schedule ends early.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Stop {
    /// The measurement suffices.
    Enough,
    /// It was interrupted.
    Interrupted,
}

/// The other hosts of a run. An error ends the run.
pub trait Coordinator {
    /// Reports whether the local workers are ready. Called until the schedule begins: at least every 10 ms while
    /// they prepare, and at once when they are ready; then it may wait up to 10 ms. No other host connects to a
    /// server before the first call, because server stats are polled before it. `hear` takes intervals as in
    /// [`Coordinator::poll_running`].
    fn poll_ready(
        &mut self,
        is_ready: bool,
        hear: &mut dyn FnMut(Interval),
    ) -> Result<ReadyState, RemoteError>;
    /// The start of the schedule on CLOCK_MONOTONIC in nanoseconds; all workers are ready.
    fn begin(&mut self) -> Result<u64, RemoteError>;
    /// Publishes an interval of a local worker. `epoch_ns` is CLOCK_MONOTONIC at time 0 of the interval's clock.
    fn publish_interval(&mut self, interval: &Interval, epoch_ns: u64);
    /// Called with every poll of the local workers, and after their end until the run is over; then it may wait up
    /// to 10 ms. `hear` takes intervals of other hosts, numbered as in the whole plan and on this host's clock.
    /// `stop` is this host's request to end the schedule.
    fn poll_running(
        &mut self,
        have_ours_ended: bool,
        stop: Option<Stop>,
        hear: &mut dyn FnMut(Interval),
    ) -> Result<RemoteStatus, RemoteError>;
    /// Results of the other hosts without their intervals, numbered alike.
    fn collect_results(&mut self) -> Vec<RunData>;
    /// Were workers lost with their host, so that they have not ended their request accounting?
    fn has_lost(&self) -> bool {
        false
    }
}

/// No other host that this one talks to.
#[derive(Clone, Copy, Debug, Default)]
pub struct LocalOnly {
    /// When the schedule begins by the wall clock, in nanoseconds since 1970, as other hosts were told too; none: once the workers are
    /// ready.
    pub start_unix_ns: Option<u64>,
}

/// From this long before a common start on the workers are up.
const START_HELD_NS: u64 = 200_000_000;

impl Coordinator for LocalOnly {
    fn poll_ready(&mut self, is_ready: bool, _: &mut dyn FnMut(Interval)) -> Result<ReadyState, RemoteError> {
        let left_ns = self.start_unix_ns.map(|start_ns| start_ns.saturating_sub(unix_ns()));
        match left_ns {
            Some(..START_AHEAD_NS) => {
                let reason =
                    "this host was not ready at the common start: begin all hosts earlier, or start later";
                Err(RemoteError { is_server_error: false, reason: reason.to_owned() })
            }
            Some(START_HELD_NS..) if is_ready => {
                std::thread::park_timeout(Duration::from_millis(10));
                Ok(ReadyState::Wait)
            }
            _ => Ok(if is_ready { ReadyState::Ready } else { ReadyState::Wait }),
        }
    }

    fn begin(&mut self) -> Result<u64, RemoteError> {
        let now_ns = monotonic_ns();
        let ahead_ns = self.start_unix_ns.map(|start_ns| start_ns.saturating_sub(unix_ns()));
        Ok(now_ns + ahead_ns.unwrap_or(START_AHEAD_NS))
    }

    fn publish_interval(&mut self, _: &Interval, _: u64) {}

    fn poll_running(
        &mut self,
        _: bool,
        _: Option<Stop>,
        _: &mut dyn FnMut(Interval),
    ) -> Result<RemoteStatus, RemoteError> {
        Ok(RemoteStatus { is_over: true, ..RemoteStatus::default() })
    }

    fn collect_results(&mut self) -> Vec<RunData> {
        Vec::new()
    }
}

/// The part of a run that this host carries out.
#[derive(Clone, Debug)]
pub struct LocalPart<'a> {
    /// The plan of the local workers: the whole, or some of its classes.
    pub plan: &'a Plan,
    /// Their numbers among the workers of that plan; may be empty.
    pub workers: Range<u32>,
    /// The fraction of arrivals of the first local worker; the others follow it with equal fractions.
    pub portion: Portion,
    /// Class numbers in the whole plan; empty for the whole.
    pub classes: &'a [ClassId],
}

impl<'a> LocalPart<'a> {
    /// The whole plan.
    pub fn whole(plan: &'a Plan) -> Self {
        Self { plan, workers: 0..plan.threads, portion: Self::alone(plan.threads), classes: &[] }
    }

    /// The fraction of the first of this many equal workers.
    pub fn alone(workers: u32) -> Portion {
        Portion::even(StreamPart { index: 0, of: workers })
    }
}
