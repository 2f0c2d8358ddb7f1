//! When the phases of a run began and ended, on its own clock.
//!
//! Merging takes the earliest begin and the latest end, so that the times of several workers or hosts become those of the run.

use serde::{Deserialize, Serialize};

/// The times of a run on its own clock, nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunTimes {
    /// Preload was over and the schedule began.
    pub start_ns: u64,
    /// The measured window began.
    pub measure_ns: u64,
    /// It ended.
    pub end_ns: u64,
    /// The last operation had ended or was given up.
    pub drained_ns: u64,
    /// From the first attempt to connect until every key was confirmed.
    pub prepare_ns: u64,
    /// The wall clock where this clock is at 0, in microseconds since 1970.
    pub epoch_us: Option<u64>,
}

impl Default for RunTimes {
    /// Those of no worker, which every worker's replace.
    fn default() -> Self {
        Self {
            start_ns: u64::MAX,
            measure_ns: u64::MAX,
            end_ns: 0,
            drained_ns: 0,
            prepare_ns: 0,
            epoch_us: None,
        }
    }
}

impl RunTimes {
    /// From the first worker's to the last one's.
    pub fn merge(&mut self, other: &Self) {
        self.start_ns = self.start_ns.min(other.start_ns);
        self.measure_ns = self.measure_ns.min(other.measure_ns);
        self.end_ns = self.end_ns.max(other.end_ns);
        self.drained_ns = self.drained_ns.max(other.drained_ns);
        self.prepare_ns = self.prepare_ns.max(other.prepare_ns);
        self.epoch_us = [self.epoch_us, other.epoch_us].into_iter().flatten().min();
    }
}
