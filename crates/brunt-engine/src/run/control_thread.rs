//! The control thread: starts the workers, drives them through the phases, and collects their intervals.
//!
//! Invariant: every set that a worker hands over is read exactly once, the last one included.

use crate::clock::Clock;
use crate::run::blueprint::Blueprint;
use crate::run::coordinator::{Coordinator, ReadyState, RemoteError, RemoteStatus, Stop};
use crate::run::host::HostWatch;
use crate::run::kernel_interface::Chosen;
use crate::run::launch::{WorkerHandle, WorkerSeed, allowed_cpus};
use crate::run::stats_poller::{ServerSnapshot, StatsPollers};
use crate::run::{RunDecision, RunEvent, RunSetup};
use crate::run_error::RunError;
use crate::state::lane::Feeds;
use crate::state::recording::Exchange;
use crate::worker::{INTERVAL_NS, Notice, Orders, WorkerEnd};
use brunt_plan::plan::{Load, Plan};
use brunt_plan::shard::Shard;
use brunt_plan::warmup::Warmup;
use brunt_stats::interval::{HostMapping, Interval};
use brunt_stats::recorder::Layout;
use brunt_stats::run_record::{ClusterRecord, RunData};
use brunt_stats::store::IntervalStore;
use brunt_stats::usage::{ClientUsage, HostEvidence, WorkerBacklog, WorkerUsage};
use brunt_stats::warmup::{self, WarmupEnd};
use brunt_stats::window::RunTimes;
use std::collections::BTreeMap;
use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, mpsc};
use std::thread::JoinHandle;
use std::time::Duration;

/// Polling period while workers are awaited, and the delay of the first poll after the end of an interval. A poll
/// may preempt a worker, so there is one per interval while all workers are on time.
const POLL_PERIOD: Duration = Duration::from_millis(10);

fn worker_gone() -> RunError {
    RunError::System(io::Error::other("a worker ended early"))
}

/// The host, over the measured window.
struct WindowWatch {
    host: HostWatch,
    start_ns: u64,
    measure_ns: u64,
    end_ns: u64,
}

impl WindowWatch {
    /// The times of a schedule that ended now, if not before.
    fn times(&self, now_ns: u64) -> RunTimes {
        let end_ns = self.end_ns.min(now_ns);
        RunTimes {
            start_ns: self.start_ns.min(end_ns),
            measure_ns: self.measure_ns.min(end_ns),
            end_ns,
            drained_ns: end_ns,
            ..RunTimes::default()
        }
    }
}

/// The state of the control thread.
pub(super) struct ControlThread<'a> {
    setup: RunSetup<'a>,
    orders: Arc<Orders>,
    workers: Vec<WorkerHandle>,
    pub(super) intervals: IntervalStore,
    /// Of all workers of all hosts, by their numbers.
    backlogs: BTreeMap<u32, WorkerBacklog>,
    /// Maps the local classes to those of the whole run.
    host_mapping: HostMapping,
    clock: Clock,
    observe: &'a mut dyn FnMut(RunEvent<'_>) -> RunDecision,
    coordinator: &'a mut dyn Coordinator,
    /// Duration of the preparation.
    prepare_ns: u64,
    /// The wall clock at 0 of the run's clock, read when the schedule starts.
    epoch_us: Option<u64>,
    /// Set when the schedule starts.
    watch: Option<WindowWatch>,
    /// What is known of the client before it begins.
    usage: ClientUsage,
    /// Set until the start of the window is known, where the plan leaves it open.
    window_start: Option<WindowStart>,
    /// How the warm-up ended.
    warmup_end: Option<WarmupEnd>,
    /// Statistics of the servers.
    statistics: mpsc::Receiver<ServerSnapshot>,
}

impl<'a> ControlThread<'a> {
    pub(super) fn new(
        setup: RunSetup<'a>,
        clock: Clock,
        usage: ClientUsage,
        observe: &'a mut dyn FnMut(RunEvent<'_>) -> RunDecision,
        coordinator: &'a mut dyn Coordinator,
        statistics: mpsc::Receiver<ServerSnapshot>,
    ) -> Self {
        let RunSetup { plan, part, .. } = setup;
        Self {
            setup,
            orders: Arc::new(Orders::default()),
            workers: Vec::new(),
            intervals: IntervalStore::new(&Layout::of(plan)).with_slices(plan.interval.map(|width| width.0)),
            backlogs: BTreeMap::new(),
            host_mapping: HostMapping { classes: part.classes.to_vec(), ..HostMapping::default() },
            clock,
            usage,
            observe,
            coordinator,
            prepare_ns: 0,
            epoch_us: None,
            watch: None,
            window_start: None,
            warmup_end: None,
            statistics,
        }
    }

    /// Starts the workers and drives them through the run. Returns whether the schedule was interrupted.
    pub(super) fn drive(
        &mut self,
        blueprint: &Arc<Blueprint>,
        workers: impl ExactSizeIterator<Item = (Shard, Feeds)>,
        chosen: &Chosen,
        pollers: &StatsPollers,
        stop: &AtomicBool,
    ) -> Result<bool, RunError> {
        let begun_ns = self.clock.now_ns();
        let (notices, incoming) = mpsc::channel();
        let of = workers.len() as u32;
        for (number, (shard, feeds)) in (0..).zip(workers) {
            let (exchange, filled, spares) = Exchange::new(&blueprint.layout);
            let seed = WorkerSeed {
                blueprint: blueprint.clone(),
                shard,
                number,
                of,
                feeds,
                orders: self.orders.clone(),
                exchange,
                clock: self.clock,
                notices: notices.clone(),
                interface: chosen.interface,
            };
            let thread = seed.start().map_err(RunError::System)?;
            self.workers.push(WorkerHandle { thread, filled, spares, until_ns: 0 });
        }
        drop(notices);
        self.await_preparation(&incoming, stop)?;
        self.prepare_ns = self.clock.now_ns() - begun_ns;
        if self.setup.plan.preload {
            pollers.poll_after_preload();
        }
        pollers.set_window_start(self.start_schedule()?);
        self.run_schedule(pollers, &incoming, stop)
    }

    /// Waits until every worker has connected and has its keys confirmed, on all hosts.
    fn await_preparation(
        &mut self,
        incoming: &mpsc::Receiver<Notice>,
        stop: &AtomicBool,
    ) -> Result<(), RunError> {
        let mut prepared = 0;
        let mut confirmed_by_others = 0;
        loop {
            self.collect_intervals();
            if stop.load(Ordering::Relaxed) {
                return Err(RunError::Interrupted);
            }
            let is_ready = prepared == self.workers.len();
            match self.coordinator.poll_ready(is_ready).map_err(RunError::Remote)? {
                ReadyState::Ready if is_ready => return Ok(()),
                ReadyState::Aborted => return Err(RunError::Interrupted),
                ReadyState::Wait | ReadyState::Ready => {}
            }
            // A worker that ended early can never become ready.
            if self.workers.iter().any(|worker| worker.thread.is_finished()) {
                return Err(worker_gone());
            }
            if is_ready {
                // `poll_ready` has waited.
                continue;
            }
            match incoming.recv_timeout(POLL_PERIOD) {
                Ok(Notice::Prepared { confirmed }) => {
                    prepared += 1;
                    confirmed_by_others += confirmed;
                }
                Ok(Notice::Failed(mut error)) => {
                    if let RunError::PreloadFailed { confirmed, .. } = &mut error {
                        *confirmed += confirmed_by_others;
                    }
                    return Err(error);
                }
                Err(mpsc::RecvTimeoutError::Timeout) => {}
                Err(mpsc::RecvTimeoutError::Disconnected) => return Err(worker_gone()),
            }
        }
    }

    /// Sets the start of the schedule. Returns the start of the measured window.
    fn start_schedule(&mut self) -> Result<u64, RunError> {
        let RunSetup { plan, endpoints, .. } = self.setup;
        let prepare_ns = self.prepare_ns;
        let cpus = if plan.cpus.is_empty() { allowed_cpus() } else { plan.cpus.clone() };
        let host = HostWatch::new(cpus, endpoints);
        let start_ns = self.clock.of_monotonic(self.coordinator.begin().map_err(RunError::Remote)?);
        let measure_ns = start_ns + plan.warmup.longest().0;
        let end_ns = plan.stop.time.map_or(u64::MAX, |time| measure_ns + time.0);
        self.intervals.align(measure_ns);
        self.intervals.set_schedule(start_ns..end_ns);
        let epoch_us = Some(self.clock.epoch_us());
        self.epoch_us = epoch_us;
        let times = RunTimes { start_ns, measure_ns, end_ns, prepare_ns, epoch_us, ..RunTimes::default() };
        self.watch = Some(WindowWatch { host, start_ns, measure_ns, end_ns });
        self.tell_start(times);
        self.window_start = WindowStart::of(plan, times);
        self.orders.start_ns.store(start_ns, Ordering::Release);
        Ok(measure_ns)
    }

    /// Collects intervals until every worker has finished, on all hosts. Returns whether the schedule was
    /// interrupted. An error is that of another host, or a TLS failure of all servers that no worker had seen
    /// before the start.
    fn run_schedule(
        &mut self,
        pollers: &StatsPollers,
        incoming: &mpsc::Receiver<Notice>,
        stop: &AtomicBool,
    ) -> Result<bool, RunError> {
        let mut interrupted = false;
        loop {
            // Few notices are left, but a worker that ends drops its end of the channel, and the last one wakes
            // this thread.
            let wait = self.until_next_poll(self.clock.now_ns());
            // Once all workers have ended, the coordinator waits instead.
            let notice = incoming.recv_timeout(wait);
            let have_ours_ended = matches!(notice, Err(mpsc::RecvTimeoutError::Disconnected));
            let now_ns = self.clock.now_ns();
            let decision = self.collect_intervals();
            self.start_window(pollers)?;
            if let Ok(Notice::Failed(error)) = notice
                && !self.has_answer()
            {
                return Err(error);
            }
            interrupted |= stop.load(Ordering::Relaxed);
            let ours = match (interrupted, decision) {
                (true, _) => Some(Stop::Interrupted),
                (false, RunDecision::Finish) => Some(Stop::Enough),
                (false, RunDecision::Continue) => None,
            };
            let RemoteStatus { is_over, stop: theirs } =
                self.poll_coordinator(have_ours_ended, ours).map_err(RunError::Remote)?;
            interrupted |= theirs == Some(Stop::Interrupted);
            if ours.or(theirs).is_some() {
                self.orders.stop.store(true, Ordering::Relaxed);
                self.window_start = None;
                if let Some(watch) = &mut self.watch {
                    watch.end_ns = watch.end_ns.min(now_ns);
                    self.intervals.set_schedule(watch.start_ns..watch.end_ns);
                }
            }
            if let Some(WindowWatch { host, measure_ns, end_ns, .. }) = &mut self.watch {
                host.sample(now_ns, *measure_ns, *end_ns);
            }
            if have_ours_ended && is_over {
                return Ok(interrupted);
            }
        }
    }

    /// Starts the window as soon as its start is decided, where the plan leaves it open.
    fn start_window(&mut self, pollers: &StatsPollers) -> Result<(), RunError> {
        let Some(window_start) = &mut self.window_start else { return Ok(()) };
        let now_ns = self.clock.now_ns();
        let Some(StartedWindow { times, end }) = window_start.check(now_ns, self.setup.plan, &self.intervals)
        else {
            return Ok(());
        };
        // The latest start is known to every worker already.
        if end != WarmupEnd::Longest {
            if self.clock.now_ns() + AHEAD_NS > times.measure_ns {
                // The decision took too long; it is repeated with the next poll.
                return Ok(());
            }
            self.orders.measure_ns.store(times.measure_ns, Ordering::Release);
            if self.clock.now_ns() >= times.measure_ns {
                return Err(RunError::WindowTooLate);
            }
        }
        (self.window_start, self.warmup_end) = (None, Some(end));
        if let Some(watch) = &mut self.watch {
            (watch.measure_ns, watch.end_ns) = (times.measure_ns, times.end_ns);
        }
        self.intervals.align(times.measure_ns);
        self.intervals.set_schedule(times.start_ns..times.end_ns);
        pollers.set_window_start(times.measure_ns);
        self.tell_start(times);
        Ok(())
    }

    /// Tells the times of the schedule, and what is known of the client.
    fn tell_start(&mut self, times: RunTimes) {
        let wake_up_ns = self.watch.as_ref().map_or(0, |watch| watch.host.wake_up_ns());
        let host = HostEvidence { wake_up_ns, ..HostEvidence::default() };
        let known = RunData { times, usage: self.usage.clone(), host, ..RunData::default() };
        (self.observe)(RunEvent::Started(&known));
    }

    /// Polls the coordinator and stores intervals of other hosts.
    fn poll_coordinator(
        &mut self,
        have_ours_ended: bool,
        stop: Option<Stop>,
    ) -> Result<RemoteStatus, RemoteError> {
        let Self { setup, coordinator, intervals, backlogs, observe, clock, .. } = self;
        let to_local_clock = to_local_clock(clock);
        coordinator.poll_running(have_ours_ended, stop, &mut |interval| {
            let interval = to_local_clock.interval(interval);
            observe(RunEvent::Interval(&interval));
            add_backlog(backlogs, setup.plan, &interval);
            intervals.push(&interval);
        })
    }

    /// Has any server answered, as far as intervals tell?
    fn has_answer(&self) -> bool {
        self.intervals.books().entries().any(|entry| entry.counts.requests.completed() > 0)
    }

    /// Time until the next poll: all workers end their intervals at the same instants, and host counters are read
    /// at both ends of the window.
    fn until_next_poll(&self, now_ns: u64) -> Duration {
        let Some(WindowWatch { start_ns, measure_ns, end_ns, .. }) = self.watch else { return POLL_PERIOD };
        let ended_ns = now_ns.saturating_sub(start_ns) / INTERVAL_NS * INTERVAL_NS + start_ns;
        // An interval is longer where the other set was not back in time; before the start there is a hand-over
        // outside all intervals.
        let is_late = |worker: &WorkerHandle| worker.until_ns < ended_ns && !worker.thread.is_finished();
        if now_ns < start_ns || self.workers.iter().any(is_late) {
            return POLL_PERIOD;
        }
        let next_ns = ended_ns + INTERVAL_NS + POLL_PERIOD.as_nanos() as u64;
        let of_window = [measure_ns, end_ns].into_iter().filter(|at_ns| *at_ns > now_ns);
        Duration::from_nanos(of_window.fold(next_ns, u64::min) - now_ns)
    }

    /// Reads every set that was handed over, and gives it back.
    fn collect_intervals(&mut self) -> RunDecision {
        for worker in 0..self.workers.len() {
            while let Ok(mut filled) = self.workers[worker].filled.pop() {
                self.store_interval(filled.take_interval(worker as u32));
                let worker = &mut self.workers[worker];
                worker.until_ns = filled.end_ns;
                // A worker that has ended takes no set back.
                let _ = worker.spares.push(filled.set);
            }
        }
        while let Ok((server, snapshot)) = self.statistics.try_recv() {
            (self.observe)(RunEvent::Statistics { server, snapshot: &snapshot });
        }
        (self.observe)(RunEvent::Tick { now_ns: self.clock.now_ns(), intervals: &self.intervals })
    }

    /// Stores an interval of a local worker; those of the first one tell of the CPUs, too.
    fn store_interval(&mut self, mut interval: Interval) {
        if interval.worker == 0
            && let Some(watch) = &mut self.watch
        {
            interval.cpu_time = watch.host.cpu_time();
        }
        let interval = self.host_mapping.interval(interval);
        (self.observe)(RunEvent::Interval(&interval));
        self.coordinator.publish_interval(&interval, self.clock.monotonic_of(0));
        add_backlog(&mut self.backlogs, self.setup.plan, &interval);
        self.intervals.push(&interval);
    }

    /// Aborts every worker, without a result.
    pub(super) fn abort(&mut self) -> Vec<io::Result<WorkerEnd>> {
        self.orders.abort.store(true, Ordering::Relaxed);
        self.workers.drain(..).map(|worker| join(worker.thread)).collect()
    }

    pub(super) fn finish(mut self, interrupted: bool) -> Result<RunData, RunError> {
        self.collect_intervals();
        let now_ns = self.clock.now_ns();
        let watch = self.watch.take();
        let schedule = watch.as_ref().map(|watch| watch.times(now_ns));
        let host = watch.map(|watch| watch.host.finish(now_ns)).unwrap_or_default();
        let mut data = RunData {
            times: RunTimes { prepare_ns: self.prepare_ns, ..RunTimes::default() },
            host,
            cluster: self.setup.plan.is_cluster.then(ClusterRecord::default),
            interrupted,
            warmup_end: self.warmup_end,
            ..RunData::default()
        };
        for (index, worker) in std::mem::take(&mut self.workers).into_iter().enumerate() {
            let mut end = join(worker.thread).map_err(RunError::System)?;
            self.store_interval(end.last.take_interval(index as u32));
            add_worker(&mut data, index as u32, end);
        }
        let ClientUsage { io, io_reason, timestamps_reason, .. } = std::mem::take(&mut self.usage);
        data.usage = ClientUsage { io, io_reason, timestamps_reason, ..data.usage };
        data.map_host(&self.host_mapping);
        let to_local_clock = to_local_clock(&self.clock);
        for mut other in self.coordinator.collect_results() {
            other.map_host(&to_local_clock);
            data.merge(other);
        }
        // Where every worker was lost with its host, the intervals that it had sent lie in the schedule.
        if data.usage.workers.is_empty() {
            schedule.iter().for_each(|schedule| data.times.merge(schedule));
        }
        if self.coordinator.has_lost() {
            self.intervals.end_lost();
        }
        for worker in &mut data.usage.workers {
            worker.backlog = self.backlogs.get(&worker.worker).copied().unwrap_or_default();
        }
        data.times.epoch_us = self.epoch_us;
        data.intervals = self.intervals;
        Ok(data)
    }
}

/// Maps CLOCK_MONOTONIC of this host, which intervals of other hosts use, to the clock of the run.
fn to_local_clock(clock: &Clock) -> HostMapping {
    HostMapping { clock_shift_ns: -(clock.monotonic_of(0) as i64), ..HostMapping::default() }
}

fn join(thread: JoinHandle<io::Result<WorkerEnd>>) -> io::Result<WorkerEnd> {
    // A panic has printed its message already; the run must not look like a success.
    thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
}

fn add_backlog(backlogs: &mut BTreeMap<u32, WorkerBacklog>, plan: &Plan, interval: &Interval) {
    let load = |class: u16| plan.classes.get(usize::from(class)).map(|class| &class.load);
    let is_open = |class| matches!(load(class), Some(Load::Open { .. }));
    backlogs.entry(interval.worker).or_default().add(interval, is_open);
}

fn add_worker(data: &mut RunData, worker: u32, end: WorkerEnd) {
    let times = &mut data.times;
    times.start_ns = times.start_ns.min(end.window.start_ns);
    times.measure_ns = times.measure_ns.min(end.window.measure_ns);
    times.end_ns = times.end_ns.max(end.window.end_ns);
    times.drained_ns = times.drained_ns.max(end.drained_ns);
    data.counts.merge(&end.counts);
    data.samples.extend(end.samples);
    let total = end.usage.total(worker);
    data.usage.merge(ClientUsage {
        cpu_user_ns: total.user_ns,
        cpu_system_ns: total.system_ns,
        syscalls: total.syscalls,
        wait: end.wait.name().to_owned(),
        counts_wake_ups: end.counts_wake_ups,
        workers: vec![WorkerUsage { colocation: end.colocation, stalls: end.stalls, ..total.worker }],
        ..ClientUsage::default()
    });
    data.host.retransmits += end.retransmits;
    data.unloaded_service_ns = data.unloaded_service_ns.or(end.unloaded_service_ns);
}

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
