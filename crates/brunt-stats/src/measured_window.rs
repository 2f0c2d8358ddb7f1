//! The measured window of a run: when it begins and ends, and the schedule around it.
//!
//! Invariant: its four times ascend.

use crate::run_times::RunTimes;

/// The times that part the phases of a schedule, in nanoseconds on the run's clock; ascending.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MeasuredWindow {
    /// The schedule began: connections are established, preload is over.
    pub start_ns: u64,
    /// The measured window began.
    pub measure_ns: u64,
    /// It ended.
    pub end_ns: u64,
    /// The last op had ended or was given up.
    pub drained_ns: u64,
}

impl MeasuredWindow {
    /// The window of a run with these times.
    pub const fn of(times: &RunTimes) -> Self {
        let RunTimes { start_ns, measure_ns, end_ns, drained_ns, .. } = *times;
        Self { start_ns, measure_ns, end_ns, drained_ns }
    }

    /// Length of the measured window in nanoseconds.
    pub const fn duration_ns(&self) -> u64 {
        self.end_ns.saturating_sub(self.measure_ns)
    }

    /// Length of the measured window in seconds.
    pub fn seconds(&self) -> f64 {
        self.duration_ns() as f64 / 1e9
    }

    /// `count` per second of the window; 0 for a window without length.
    pub(crate) fn rate(&self, count: u64) -> f64 {
        if self.duration_ns() == 0 { 0.0 } else { count as f64 / self.seconds() }
    }
}
