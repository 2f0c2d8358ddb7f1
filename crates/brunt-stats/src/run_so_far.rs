//! A run that goes on, as the record of what it has come to at the end of a whole second: what pages, screens and metrics are made of.
//!
//! Not the run's own record, which has what workers and host tell at the end. Invariants: what is in one is of one instant, every worker's
//! taken together; a reader holds a copy, so that neither workers nor the control thread wait for a reader. Slices that are over are shared with the
//! copy, so that it costs the same however long the run is.

use crate::complete_seconds::CompleteSeconds;
use crate::interval::Interval;
use crate::run_data::RunData;
use crate::run_record::RunRecord;
use crate::run_times::RunTimes;
use crate::server_stats::{ServerRecord, SizeShare, Snapshot};
use crate::store::IntervalStore;
use crate::summary::Summary;
use std::sync::LazyLock;

const SECOND_NS: u64 = 1_000_000_000;

/// A run at an instant, for several readers.
#[derive(Debug)]
pub struct RunSoFar(LazyLock<Summary, Box<dyn FnOnce() -> Summary + Send>>);

impl RunSoFar {
    /// From the record of a run that ended at the instant.
    pub fn new(record: RunRecord) -> Self {
        Self(LazyLock::new(Box::new(|| Summary::so_far(record))))
    }

    /// What it comes to so far: made by the first who asks, for all.
    pub fn summary(&self) -> &Summary {
        &self.0
    }
}

/// Makes them of what the control thread sees.
#[derive(Debug)]
pub struct RunSeconds {
    /// What is known before the run begins.
    record: RunRecord,
    /// The times of the schedule, once it has begun. The window's end is `u64::MAX` where time is no bound.
    times: Option<RunTimes>,
    seconds: CompleteSeconds,
    /// Of each server how its snapshots have been thinned out.
    strides: Vec<u64>,
}

impl RunSeconds {
    /// Of a run of which this is known beforehand.
    pub fn new(record: RunRecord) -> Self {
        Self { record, times: None, seconds: CompleteSeconds::default(), strides: Vec::new() }
    }

    /// The schedule has its times, and this is known of the client; it may be told again.
    pub fn start(&mut self, known: &RunData) {
        self.times = Some(known.times);
        self.seconds.start(known.times.start_ns);
        (self.record.run.usage, self.record.run.host) = (known.usage.clone(), known.host.clone());
    }

    /// A worker has handed over an interval.
    pub fn told(&mut self, interval: &Interval) {
        self.seconds.told(interval.worker, interval.end_ns);
    }

    /// A server said something of itself. As much is kept of it as a result has room for.
    pub fn hear(&mut self, server: usize, snapshot: &Snapshot) {
        let records = &mut self.record.run.server_records;
        let count = self.record.plan.polled_servers().len().max(server + 1);
        records.resize_with(count, ServerRecord::default);
        self.strides.resize(count, 0);
        let measure_ns = self.times.map_or(0, |times| times.measure_ns);
        records[server].push(snapshot.clone());
        let (stride, share) = (self.strides[server], SizeShare::of(count));
        self.strides[server] = records[server].fit(measure_ns, SECOND_NS, stride, share);
    }

    /// The end of a second, if one is complete now and was not taken before.
    pub fn take(&mut self, now_ns: u64) -> Option<u64> {
        self.seconds.take(now_ns)
    }

    /// The run at the end of a second.
    pub fn so_far(&self, at_ns: u64, so_far: &IntervalStore) -> RunSoFar {
        let mut record = self.record.clone();
        record.run.times = times_until(at_ns, self.times);
        record.run.interrupted = true;
        record.run.intervals = so_far.clone();
        RunSoFar::new(record)
    }
}

/// The times of a schedule that ends at an instant, if not before.
fn times_until(at_ns: u64, times: Option<RunTimes>) -> RunTimes {
    let none = RunTimes { end_ns: at_ns, ..RunTimes::default() };
    let times = times.unwrap_or(none);
    RunTimes {
        start_ns: times.start_ns.min(at_ns),
        measure_ns: times.measure_ns.min(at_ns),
        end_ns: times.end_ns.min(at_ns),
        drained_ns: at_ns,
        ..times
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_schedule_is_cut_at_an_instant() {
        let epoch_us = Some(1_764_000_000_000_000);
        let window =
            RunTimes { start_ns: 10, measure_ns: 20, end_ns: 30, drained_ns: 0, prepare_ns: 7, epoch_us };
        let open = RunTimes { end_ns: u64::MAX, ..window };
        for (at_ns, given, expected) in [
            (5, None, [5, 5, 5]),
            (5, Some(window), [5, 5, 5]),
            (15, Some(window), [10, 15, 15]),
            (25, Some(window), [10, 20, 25]),
            (25, Some(open), [10, 20, 25]),
            (35, Some(window), [10, 20, 30]),
        ] {
            let times = times_until(at_ns, given);
            assert_eq!([times.start_ns, times.measure_ns, times.end_ns], expected, "{at_ns}");
            assert_eq!(times.drained_ns, at_ns);
            // A page shows when the run began.
            assert_eq!(times.epoch_us, given.and(epoch_us));
        }
    }
}
