//! A run while it goes on: the one state that the progress line, the screen, the page and the metrics are made of. Intervals in; out come the
//! last seconds, and at the end of each second the run so far.
//!
//! Invariants: the state at an instant depends on what was handed over before it, not on who looks; its memory is bounded; a reader of
//! the run so far holds a copy, so that neither workers nor the control thread wait for a reader. Slices that are over are shared with the
//! copy, so that it costs the same however long the run is. Seconds end in order, each at most once; those that were missed are one.

use crate::histogram::SparseHistogram;
use crate::interval::Interval;
use crate::run_record::{RunData, RunRecord};
use crate::server_stats::{ServerRecord, SizeShare, Snapshot};
use crate::store::IntervalStore;
use crate::summary::Summary;
use crate::usage::ClientTime;
use crate::window::RunTimes;
use brunt_plan::outcome::OutcomeClass;
use brunt_plan::phase::Phase;
use brunt_plan::plan::Plan;
use std::cell::OnceCell;
use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, LazyLock};

/// Seconds that are kept: more columns than most terminals have.
pub const SECONDS_MAX: usize = 300;

/// A second of a run, all workers together. An interval that is handed over late counts in the second that is open then.
#[derive(Clone, Debug, Default)]
pub struct Second {
    /// When it began.
    pub start_ns: u64,
    /// When it ended.
    pub end_ns: u64,
    /// Response times of warm-up and window.
    pub response: SparseHistogram,
    /// What each worker did with its time.
    pub workers: Vec<ClientTime>,
    /// The length of each worker's intervals.
    recorded_ns: Vec<u64>,
    completed: u64,
    answered: Vec<u64>,
}

impl Second {
    fn add(&mut self, interval: &Interval) {
        let worker = interval.worker as usize;
        self.recorded_ns.resize(self.recorded_ns.len().max(worker + 1), 0);
        self.workers.resize(self.recorded_ns.len(), ClientTime::default());
        self.answered.resize(self.answered.len().max(interval.servers.len()), 0);
        self.recorded_ns[worker] += interval.end_ns - interval.start_ns;
        self.workers[worker].merge(&ClientTime::of(interval));
        self.answered.iter_mut().zip(&interval.servers).for_each(|(sum, server)| *sum += server.answered);
        let counts = interval.request_counts.iter().map(|entry| &entry.counts.requests);
        self.completed += counts
            .map(|requests| requests.completed() + requests.outcome(OutcomeClass::Unacknowledged))
            .sum::<u64>();
        for response in interval.rows.iter().map(|row| &row.latencies.response).chain([&interval.warmup]) {
            if response.count() > 0 {
                self.response = self.response.merged(response);
            }
        }
    }

    /// Requests that were completed per second; `None` where nothing was recorded.
    pub fn rate(&self) -> Option<f64> {
        Some(self.completed as f64 * 1e9 / self.recorded_ns()?)
    }

    /// What each server answered per second, in the order of the plan.
    pub fn answered_per_s(&self) -> Vec<f64> {
        let recorded_ns = self.recorded_ns().unwrap_or(1e9);
        self.answered.iter().map(|answered| *answered as f64 * 1e9 / recorded_ns).collect()
    }

    /// How long workers recorded, on average. Intervals are tenths of a second, so that it is a second only about.
    fn recorded_ns(&self) -> Option<f64> {
        let recorded = self.recorded_ns.iter().filter(|ns| **ns > 0);
        let workers = recorded.clone().count();
        (workers > 0).then(|| recorded.sum::<u64>() as f64 / workers as f64)
    }
}

/// A run at the end of a second, for several readers.
#[derive(Debug)]
pub struct RunSoFar {
    /// That instant, on the run's clock.
    pub at_ns: u64,
    /// The phase that it lies in.
    pub phase: Phase,
    /// The schedule, once it has begun. The window's end is `u64::MAX` where time is no bound.
    pub window: Option<RunTimes>,
    /// The seconds up to then, the last one at the end.
    pub seconds: Vec<Arc<Second>>,
    summary: LazyLock<Summary, Box<dyn FnOnce() -> Summary + Send>>,
}

impl RunSoFar {
    /// Of the record of a run with these times, as if it had ended at the instant.
    pub fn new(
        mut record: RunRecord,
        times: Option<RunTimes>,
        at_ns: u64,
        seconds: Vec<Arc<Second>>,
    ) -> Self {
        let phase = phase_at(times.as_ref(), &record.run.intervals, at_ns);
        record.run.times = times_until(at_ns, times);
        record.run.interrupted = true;
        let summary: Box<dyn FnOnce() -> Summary + Send> = Box::new(|| Summary::so_far(record));
        Self { at_ns, phase, window: times, seconds, summary: LazyLock::new(summary) }
    }

    /// What it comes to so far: made by the first who asks, for all.
    pub fn summary(&self) -> &Summary {
        &self.summary
    }

    /// The second that ended then.
    pub fn last_second(&self) -> Option<&Second> {
        self.seconds.last().map(Arc::as_ref)
    }
}

/// A run that goes on.
#[derive(Debug)]
pub struct LiveRun {
    /// What is known before it begins, and what servers have told since.
    record: RunRecord,
    times: Option<RunTimes>,
    /// Of each server how its snapshots have been thinned out.
    strides: Vec<u64>,
    began_ns: Option<u64>,
    complete: CompleteSeconds,
    seconds: VecDeque<Arc<Second>>,
    /// The second that goes on.
    open: Second,
    /// The run at the end of the last second, if anyone has asked.
    so_far: OnceCell<Arc<RunSoFar>>,
}

impl LiveRun {
    /// Of a run of which this is known beforehand.
    pub fn new(record: RunRecord) -> Self {
        Self {
            record,
            times: None,
            strides: Vec::new(),
            began_ns: None,
            complete: CompleteSeconds::default(),
            seconds: VecDeque::new(),
            open: Second::default(),
            so_far: OnceCell::new(),
        }
    }

    /// The schedule has its times, and this is known of the client. They may be told again, where the window begins earlier than was foreseen.
    pub fn start(&mut self, known: &RunData) {
        let RunTimes { start_ns, measure_ns, .. } = known.times;
        if self.times.replace(known.times).is_none() {
            // Those of the preload.
            self.seconds.clear();
            self.open = Second { start_ns, ..Second::default() };
        }
        // A second begins with the window.
        let before = (measure_ns - start_ns).div_ceil(SECOND_NS).min(measure_ns / SECOND_NS);
        self.complete.start(measure_ns - before * SECOND_NS);
        (self.record.run.usage, self.record.run.host) = (known.usage.clone(), known.host.clone());
    }

    /// A worker has handed over an interval.
    pub fn push(&mut self, interval: &Interval) {
        self.complete.reported(interval.worker, interval.end_ns);
        // What the preload recorded may come after the schedule has begun.
        if self.times.is_none_or(|times| interval.end_ns > times.start_ns) {
            self.open.add(interval);
        }
    }

    /// A server told its stats. As much is kept of them as a result has room for.
    pub fn push_stats(&mut self, server: usize, snapshot: &Snapshot) {
        let records = &mut self.record.run.server_records;
        let count = self.record.plan.polled_servers().len().max(server + 1);
        records.resize_with(count, ServerRecord::default);
        self.strides.resize(count, 0);
        let measure_ns = self.times.map_or(0, |times| times.measure_ns);
        records[server].push(snapshot.clone());
        let (stride, share) = (self.strides[server], SizeShare::of(count));
        self.strides[server] = records[server].fit(measure_ns, SECOND_NS, stride, share);
    }

    /// Time has passed: the end of a second, if one is complete now.
    pub fn tick(&mut self, now_ns: u64) -> Option<u64> {
        self.began_ns.get_or_insert(now_ns);
        let end_ns = self.complete.take(now_ns)?;
        let next = Second { start_ns: end_ns, ..Second::default() };
        let second = Second { end_ns, ..std::mem::replace(&mut self.open, next) };
        if self.seconds.len() == SECONDS_MAX {
            self.seconds.pop_front();
        }
        self.seconds.push_back(Arc::new(second));
        self.so_far.take();
        Some(end_ns)
    }

    /// What will run.
    pub fn plan(&self) -> &Plan {
        &self.record.plan
    }

    /// When it was first looked at.
    pub fn began_ns(&self) -> Option<u64> {
        self.began_ns
    }

    /// The schedule, once it has begun. The window's end is `u64::MAX` where time is no bound.
    pub fn window(&self) -> Option<RunTimes> {
        self.times
    }

    /// The last seconds, the latest one at the end.
    pub fn seconds(&self) -> impl DoubleEndedIterator<Item = &Second> {
        self.seconds.iter().map(Arc::as_ref)
    }

    /// The last second that began at an instant or later; before one is complete, what is known of the first.
    pub fn last_second(&self, from_ns: u64) -> &Second {
        self.seconds().next_back().filter(|second| second.start_ns >= from_ns).unwrap_or(&self.open)
    }

    /// The phase of an instant.
    pub fn phase(&self, at_ns: u64, recorded: &IntervalStore) -> Phase {
        phase_at(self.window().as_ref(), recorded, at_ns)
    }

    /// The run at the end of a second, with what was recorded up to then: one copy for all who ask before the next second ends.
    pub fn so_far(&self, at_ns: u64, recorded: &IntervalStore) -> Arc<RunSoFar> {
        let copy = || {
            let mut record = self.record.clone();
            record.run.intervals = recorded.clone();
            let seconds = self.seconds.iter().cloned().collect();
            Arc::new(RunSoFar::new(record, self.times, at_ns, seconds))
        };
        self.so_far.get_or_init(copy).clone()
    }
}

fn phase_at(window: Option<&RunTimes>, recorded: &IntervalStore, at_ns: u64) -> Phase {
    let has_preloaded = || {
        recorded
            .request_counts()
            .entries()
            .any(|entry| entry.phase == Phase::Preload && entry.counts.requests.sent > 0)
    };
    match window.map(|window| window.phase_at(at_ns).0) {
        Some(phase) if phase != Phase::Preload => phase,
        _ if has_preloaded() => Phase::Preload,
        _ => Phase::Connect,
    }
}

/// The times of a schedule that ends at an instant, if not before.
pub fn times_until(at_ns: u64, times: Option<RunTimes>) -> RunTimes {
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

/// The length of a second.
pub const SECOND_NS: u64 = 1_000_000_000;
/// How long a worker that stopped, ended or runs on an agent is waited for: two intervals.
pub const SETTLE_NS: u64 = 200_000_000;

/// When a second of a run is complete: as soon as every worker has handed over what it recorded in it.
#[derive(Debug, Default)]
pub(crate) struct CompleteSeconds {
    /// The end of the next one; 0 before anything is known.
    due_ns: u64,
    /// The end of the last one.
    taken_ns: u64,
    /// Up to when each worker has handed over what it recorded.
    reported_ns: BTreeMap<u32, u64>,
}

impl CompleteSeconds {
    /// Seconds are counted from this instant.
    pub(crate) fn start(&mut self, origin_ns: u64) {
        let before = self.taken_ns.saturating_sub(origin_ns) / SECOND_NS;
        self.due_ns = origin_ns + (before + 1) * SECOND_NS;
    }

    /// A worker has handed over what it recorded up to an instant.
    pub(crate) fn reported(&mut self, worker: u32, until_ns: u64) {
        let held = self.reported_ns.entry(worker).or_default();
        *held = until_ns.max(*held);
    }

    /// The end of a second, if one is complete now.
    pub(crate) fn take(&mut self, now_ns: u64) -> Option<u64> {
        if self.due_ns == 0 {
            self.due_ns = now_ns + SECOND_NS;
        }
        let is_complete =
            !self.reported_ns.is_empty() && self.reported_ns.values().all(|ns| *ns >= self.due_ns);
        let late_ns = now_ns.checked_sub(self.due_ns + if is_complete { 0 } else { SETTLE_NS })?;
        self.taken_ns = self.due_ns + late_ns / SECOND_NS * SECOND_NS;
        self.due_ns = self.taken_ns + SECOND_NS;
        Some(self.taken_ns)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::histogram::Histogram;
    use crate::interval::WorkerTime;
    use crate::recorder::{Layout, RecorderSet};
    use crate::server::ServerCounts;
    use crate::simulated_run::plan;

    const MS: u64 = 1_000_000;

    fn live_run() -> LiveRun {
        LiveRun::new(RunRecord::of(plan("")))
    }

    /// What a worker hands over for 100 ms in which one request of the warm-up took this long.
    fn interval(worker: u32, tenth: u64, response_ms: Option<u64>) -> Interval {
        let mut set = RecorderSet::new(&Layout::default());
        let mut held = set.take_interval(worker, tenth * 100 * MS, (tenth + 1) * 100 * MS);
        let mut warmup = Histogram::new();
        response_ms.into_iter().for_each(|ms| warmup.record(ms * MS));
        held.warmup = warmup.to_sparse();
        let worker_time = Some(WorkerTime { busy_ns: 30 * MS, run_delay_ns: Some(0) });
        let servers = [5, 0].map(|answered| ServerCounts { answered, ..ServerCounts::default() });
        Interval { worker_time, servers: servers.into(), ..held }
    }

    fn started(start_ms: u64, measure_ms: u64) -> RunData {
        let times = RunTimes {
            start_ns: start_ms * MS,
            measure_ns: measure_ms * MS,
            end_ns: u64::MAX,
            ..RunTimes::default()
        };
        RunData { times, ..RunData::default() }
    }

    /// Two workers, of which the second hands over nine tenths of a second, then eleven.
    #[test]
    fn rates_are_those_of_the_time_that_was_recorded() {
        let mut run = live_run();
        run.start(&started(0, 0));
        (0..10).for_each(|tenth| run.push(&interval(0, tenth, None)));
        (0..9).for_each(|tenth| run.push(&interval(1, tenth, None)));
        assert_eq!((run.tick(1_199 * MS), run.tick(1_200 * MS)), (None, Some(1_000 * MS)));
        assert_eq!(run.last_second(0).answered_per_s(), [100.0, 0.0]);
        let busy = |run: &LiveRun| -> Vec<_> {
            let workers = run.last_second(0).workers.iter();
            workers.map(|worker| worker.shares().and_then(|shares| shares.busy)).collect()
        };
        assert_eq!(busy(&run), [Some(0.3); 2]);
        (9..20).for_each(|tenth| run.push(&interval(1, tenth, None)));
        assert_eq!(run.tick(2_200 * MS), Some(2_000 * MS));
        // A worker that has ended hands over nothing.
        assert_eq!(busy(&run), [None, Some(0.3)]);
        assert_eq!(run.last_second(0).answered_per_s(), [50.0, 0.0]);
    }

    #[test]
    fn seconds_are_those_of_the_window() {
        let mut run = live_run();
        run.push(&interval(0, 0, None));
        assert_eq!((run.tick(100 * MS), run.tick(1_300 * MS)), (None, Some(1_100 * MS)));
        let spans = |run: &LiveRun| -> Vec<_> {
            run.seconds()
                .map(|second| [second.start_ns / MS, second.end_ns / MS, second.response.count()])
                .collect()
        };
        assert_eq!(spans(&run), [[0, 1_100, 0]]);
        // The schedule begins, and none of the preload's seconds is kept.
        run.start(&started(1_500, 2_700));
        // The last interval of the preload comes late.
        (14..17).for_each(|tenth| run.push(&interval(0, tenth, Some(1))));
        assert_eq!(run.last_second(0).response.count(), 2, "the first second goes on");
        assert_eq!(run.tick(1_900 * MS), Some(1_700 * MS));
        // One without a reply, and one in which all that waited came.
        assert_eq!(run.tick(2_900 * MS), Some(2_700 * MS));
        (30..33).for_each(|tenth| run.push(&interval(0, tenth, Some(1_000))));
        // The window begins earlier than was foreseen, and so do its seconds.
        run.start(&started(1_500, 2_500));
        assert_eq!(run.tick(3_700 * MS), Some(3_500 * MS));
        assert_eq!(spans(&run), [[1_500, 1_700, 2], [1_700, 2_700, 0], [2_700, 3_500, 3]]);
        assert_eq!(run.last_second(2_700 * MS).response.count(), 3);
        assert_eq!(run.last_second(2_800 * MS).response.count(), 0, "that which goes on");
    }

    #[test]
    fn a_second_is_copied_once_for_all_who_ask() {
        let mut run = live_run();
        let store = IntervalStore::new(&Layout::default());
        let first = run.so_far(0, &store);
        assert_eq!(run.tick(1_000 * MS), None);
        assert!(Arc::ptr_eq(&first, &run.so_far(0, &store)));
        let at_ns = run.tick(2_200 * MS).unwrap();
        let second = run.so_far(at_ns, &store);
        assert_eq!(second.at_ns, at_ns);
        assert!(Arc::ptr_eq(&second, &run.so_far(at_ns, &store)));
    }

    #[test]
    fn seconds_are_bounded() {
        let mut run = live_run();
        run.start(&started(0, 0));
        run.push(&interval(0, 0, Some(1)));
        for second in 1..2 * SECONDS_MAX as u64 {
            run.tick(second * 1_000 * MS + 200 * MS);
        }
        assert_eq!(run.seconds().count(), SECONDS_MAX);
        assert_eq!(
            run.seconds().map(|second| second.response.count()).sum::<u64>(),
            0,
            "the latest are kept"
        );
    }

    #[test]
    fn a_schedule_is_cut_at_an_instant() {
        let epoch_us = Some(1_764_000_000_000_000);
        let window =
            RunTimes { start_ns: 10, measure_ns: 20, end_ns: 30, drained_ns: 0, prepare_ns: 7, epoch_us };
        let open = RunTimes { end_ns: u64::MAX, ..window };
        for (at_ns, given, expected, phase) in [
            (5, None, [5, 5, 5], Phase::Connect),
            (5, Some(window), [5, 5, 5], Phase::Connect),
            (15, Some(window), [10, 15, 15], Phase::Warmup),
            (25, Some(window), [10, 20, 25], Phase::Measure),
            (25, Some(open), [10, 20, 25], Phase::Measure),
            (35, Some(window), [10, 20, 30], Phase::Drain),
        ] {
            let times = times_until(at_ns, given);
            assert_eq!([times.start_ns, times.measure_ns, times.end_ns], expected, "{at_ns}");
            assert_eq!(times.drained_ns, at_ns);
            // A page shows when the run began.
            assert_eq!(times.epoch_us, given.and(epoch_us));
            let so_far = RunSoFar::new(live_run().record, given, at_ns, Vec::new());
            assert_eq!((so_far.phase, so_far.summary().record.run.interrupted), (phase, true), "{at_ns}");
        }
    }

    enum See {
        Start(u64),
        Reported(u32, u64),
        /// Now, and the end of the second that is there.
        Tick(u64, Option<u64>),
    }
    use See::{Reported, Start, Tick};

    /// Milliseconds.
    fn check(seen: &[See]) {
        const MS: u64 = 1_000_000;
        let mut seconds = CompleteSeconds::default();
        for (index, see) in seen.iter().enumerate() {
            match see {
                Start(at) => seconds.start(at * MS),
                Reported(worker, until) => seconds.reported(*worker, until * MS),
                Tick(now, expected) => {
                    assert_eq!(seconds.take(now * MS), expected.map(|at| at * MS), "{index}: {now}");
                }
            }
        }
    }

    #[test]
    fn seconds_are_shown_once_all_workers_reported() {
        check(&[
            Start(500),
            Reported(0, 1_400),
            Reported(1, 1_400),
            Tick(1_410, None),
            Reported(0, 1_500),
            Tick(1_500, None),
            Reported(1, 1_500),
            Tick(1_510, Some(1_500)),
            Tick(1_520, None),
            Reported(0, 1_600),
            Tick(1_610, None),
            // One is stopped, and has told all at last.
            Reported(0, 2_500),
            Tick(2_510, None),
            Tick(2_699, None),
            Tick(2_700, Some(2_500)),
            Reported(1, 3_500),
            Reported(0, 3_500),
            Tick(3_500, Some(3_500)),
        ]);
    }

    #[test]
    fn seconds_before_the_schedule_count_from_the_first_tick() {
        check(&[
            Tick(20, None),
            Tick(1_020, None),
            Tick(1_220, Some(1_020)),
            Tick(2_219, None),
            Tick(2_220, Some(2_020)),
            // From here on they are those of the schedule.
            Start(2_700),
            Tick(3_400, None),
            Tick(3_900, Some(3_700)),
            // The control thread was stopped.
            Tick(9_950, Some(9_700)),
            Tick(9_960, None),
            // The window is known to begin earlier.
            Start(2_500),
            Tick(10_699, None),
            Tick(10_700, Some(10_500)),
        ]);
    }
}
