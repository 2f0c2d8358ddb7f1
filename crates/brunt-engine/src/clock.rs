//! The worker's clock: CLOCK_MONOTONIC in nanoseconds since the run's epoch.
//!
//! Read through the vDSO (about 25 ns), so the time-stamp counter itself buys little and would need calibration. The
//! epoch is shared by all threads of a run; times of two hosts are never mixed.

use rustix::time::{ClockId, clock_gettime};

/// A clock that starts at 1 s when the run is prepared, so that 0 never is a time of the run.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Clock {
    epoch_ns: u64,
}

fn monotonic_ns() -> u64 {
    let time = clock_gettime(ClockId::Monotonic);
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

impl Clock {
    /// A clock that begins now.
    pub(crate) fn start() -> Self {
        Self { epoch_ns: monotonic_ns().saturating_sub(1_000_000_000) }
    }

    /// Nanoseconds since the epoch.
    #[inline]
    pub(crate) fn now_ns(&self) -> u64 {
        monotonic_ns() - self.epoch_ns
    }
}
