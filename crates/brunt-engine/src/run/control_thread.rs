//! The control thread: starts the threads of the workers, drives them through the phases, and collects their intervals.
//!
//! A worker's thread pins itself, chooses codec and Io (the one `match` on the kernel interface is here), and runs the loop. Invariants:
//! every set that a worker hands over is read exactly once, the last one included; a thread returns the results of its worker, or why it
//! could not run.

use crate::clock::Clock;
#[cfg(not(test))]
use crate::codecs;
use crate::codecs::CodecVisitor;
use crate::io::Io;
use crate::io::epoll::Epoll;
use crate::io::uring::Uring;
use crate::process::{cannot, join, start_thread};
use crate::run::blueprint::{Blueprint, build, connection_count};
use crate::run::coordinator::{Coordinator, ReadyState, RemoteStatus, Stop};
use crate::run::host::{HostWatch, wake_up_ns};
use crate::run::kernel_interface::{Chosen, KernelInterface};
use crate::run::stats_poller::{ServerSnapshot, StatsPollers};
use crate::run::{Observe, RunDecision, RunEvent, RunSetup};
use crate::run_error::RunError;
use crate::state::lane::Feeds;
use crate::state::recording::{Exchange, Filled};
use crate::worker::pace::Cpus;
use crate::worker::{INTERVAL_NS, Notice, Orders, Worker, WorkerEnd};
use brunt_plan::plan::{Load, Plan, Transport, Wait};
use brunt_plan::shard::Shard;
use brunt_plan::warmup::Warmup;
use brunt_proto::Codec;
use brunt_stats::interval::{HostMapping, Interval};
use brunt_stats::recorder::{Layout, RecorderSet};
use brunt_stats::run_record::{ClusterRecord, RunData};
use brunt_stats::store::IntervalStore;
use brunt_stats::usage::{ClientUsage, HostEvidence, WorkerBacklog};
use brunt_stats::warmup::{self, WarmupEnd};
use brunt_stats::window::RunTimes;
use std::collections::BTreeMap;
use std::io;
use std::sync::atomic::Ordering;
use std::sync::{Arc, mpsc};
use std::thread::JoinHandle;
use std::time::Duration;

/// Polling period while workers are awaited, and the delay of the first poll after the end of an interval. A poll
/// may preempt a worker, so there is one per interval while all workers are on time.
const POLL_PERIOD: Duration = Duration::from_millis(10);

fn worker_gone() -> RunError {
    RunError::System(io::Error::other("a worker ended early"))
}

/// The schedule, and the host over its measured window.
struct Schedule {
    times: RunTimes,
    host: HostWatch,
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
    observe: &'a mut Observe<'a>,
    coordinator: &'a mut dyn Coordinator,
    /// Set when it starts.
    schedule: Option<Schedule>,
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
        observe: &'a mut Observe<'a>,
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
            schedule: None,
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
        self.await_preparation(&incoming)?;
        let prepare_ns = self.clock.now_ns() - begun_ns;
        if self.setup.plan.preload {
            pollers.poll_after_preload();
        }
        pollers.set_window_start(self.start_schedule(prepare_ns)?);
        self.run_schedule(pollers, &incoming)
    }

    /// Waits until every worker has connected and has its keys confirmed, on all hosts.
    fn await_preparation(&mut self, incoming: &mpsc::Receiver<Notice>) -> Result<(), RunError> {
        let mut prepared = 0;
        loop {
            self.collect_intervals();
            if self.setup.stop.load(Ordering::Relaxed) {
                return Err(RunError::Interrupted);
            }
            let is_ready = prepared == self.workers.len();
            let state = self.with_coordinator(|coordinator, hear| coordinator.poll_ready(is_ready, hear));
            match state.map_err(RunError::Remote)? {
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
                Ok(Notice::Prepared) => prepared += 1,
                Ok(Notice::Failed(error)) => return Err(error),
                Err(mpsc::RecvTimeoutError::Timeout) => {}
                Err(mpsc::RecvTimeoutError::Disconnected) => return Err(worker_gone()),
            }
        }
    }

    /// Sets the start of the schedule. Returns the start of the measured window.
    fn start_schedule(&mut self, prepare_ns: u64) -> Result<u64, RunError> {
        let RunSetup { plan, endpoints, .. } = self.setup;
        let cpus = if plan.cpus.is_empty() { allowed_cpus() } else { plan.cpus.clone() };
        let host = HostWatch::new(cpus, endpoints);
        let start_ns = self.clock.of_monotonic(self.coordinator.begin().map_err(RunError::Remote)?);
        let measure_ns = start_ns + plan.warmup.longest().0;
        let end_ns = plan.stop.time.map_or(u64::MAX, |time| measure_ns + time.0);
        let epoch_us = Some(self.clock.epoch_us());
        let times = RunTimes { start_ns, measure_ns, end_ns, prepare_ns, epoch_us, ..RunTimes::default() };
        self.schedule = Some(Schedule { times, host });
        self.set_times(times);
        self.window_start = WindowStart::of(plan);
        self.orders.start_ns.store(start_ns, Ordering::Release);
        Ok(measure_ns)
    }

    /// Sets the times of the schedule, and tells them with what is known of the client.
    fn set_times(&mut self, times: RunTimes) {
        let Some(schedule) = &mut self.schedule else { return };
        schedule.times = times;
        self.intervals.align(times.measure_ns);
        self.intervals.set_schedule(times.start_ns..times.end_ns);
        let host = HostEvidence { wake_up_ns: schedule.host.wake_up_ns(), ..HostEvidence::default() };
        let known = RunData { times, usage: self.usage.clone(), host, ..RunData::default() };
        (self.observe)(RunEvent::Started(&known));
    }

    /// Collects intervals until every worker has finished, on all hosts. Returns whether the schedule was
    /// interrupted. An error is that of another host, or a TLS failure of all servers that no worker had seen
    /// before the start.
    fn run_schedule(
        &mut self,
        pollers: &StatsPollers,
        incoming: &mpsc::Receiver<Notice>,
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
            interrupted |= self.setup.stop.load(Ordering::Relaxed);
            let ours = match (interrupted, decision) {
                (true, _) => Some(Stop::Interrupted),
                (false, RunDecision::Finish) => Some(Stop::Enough),
                (false, RunDecision::Continue) => None,
            };
            let status = self
                .with_coordinator(|coordinator, hear| coordinator.poll_running(have_ours_ended, ours, hear));
            let RemoteStatus { is_over, stop: theirs, notes } = status.map_err(RunError::Remote)?;
            for note in &notes {
                (self.observe)(RunEvent::Note(note));
            }
            interrupted |= theirs == Some(Stop::Interrupted);
            if ours.or(theirs).is_some() {
                self.orders.stop.store(true, Ordering::Relaxed);
                self.window_start = None;
                if let Some(Schedule { times, .. }) = &mut self.schedule {
                    times.end_ns = times.end_ns.min(now_ns);
                    self.intervals.set_schedule(times.start_ns..times.end_ns);
                }
            }
            if let Some(Schedule { times, host }) = &mut self.schedule {
                host.sample(now_ns, times.measure_ns, times.end_ns);
            }
            if have_ours_ended && is_over {
                return Ok(interrupted);
            }
        }
    }

    /// Starts the window as soon as its start is decided, where the plan leaves it open.
    fn start_window(&mut self, pollers: &StatsPollers) -> Result<(), RunError> {
        let (Some(window_start), Some(Schedule { times, .. })) = (&mut self.window_start, &self.schedule)
        else {
            return Ok(());
        };
        let now_ns = self.clock.now_ns();
        let Some((times, end)) = window_start.check(now_ns, self.setup.plan, &self.intervals, *times) else {
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
        pollers.set_window_start(times.measure_ns);
        self.set_times(times);
        Ok(())
    }

    /// Polls the coordinator and stores intervals of other hosts.
    fn with_coordinator<T>(
        &mut self,
        poll: impl FnOnce(&mut dyn Coordinator, &mut dyn FnMut(Interval)) -> T,
    ) -> T {
        let Self { setup, coordinator, intervals, backlogs, observe, clock, .. } = self;
        let to_local_clock = to_local_clock(clock);
        poll(*coordinator, &mut |interval| {
            let interval = to_local_clock.interval(interval);
            observe(RunEvent::Interval(&interval));
            add_backlog(backlogs, setup.plan, &interval);
            intervals.push(&interval);
        })
    }

    /// Has any server answered, as far as intervals tell?
    fn has_answer(&self) -> bool {
        self.intervals.request_counts().entries().any(|entry| entry.counts.requests.completed() > 0)
    }

    /// Time until the next poll: all workers end their intervals at the same instants, and host counters are read
    /// at both ends of the window.
    fn until_next_poll(&self, now_ns: u64) -> Duration {
        let Some(Schedule { times, .. }) = &self.schedule else { return POLL_PERIOD };
        let &RunTimes { start_ns, measure_ns, end_ns, .. } = times;
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
            && let Some(schedule) = &mut self.schedule
        {
            interval.cpu_time = schedule.host.cpu_time();
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
        let (times, host) = match self.schedule.take() {
            Some(Schedule { times, host }) => (times, host.finish(now_ns)),
            None => Default::default(),
        };
        let mut data = RunData {
            times: RunTimes { prepare_ns: times.prepare_ns, ..RunTimes::default() },
            cluster: self.setup.plan.is_cluster.then(ClusterRecord::default),
            interrupted,
            warmup_end: self.warmup_end,
            ..RunData::default()
        };
        for (number, worker) in (0..).zip(std::mem::take(&mut self.workers)) {
            let mut end = join(worker.thread).map_err(RunError::System)?;
            self.store_interval(end.last.take_interval(number));
            end.data.usage.workers.iter_mut().for_each(|worker| worker.worker = number);
            data.merge(end.data);
        }
        data.host = HostEvidence { retransmits: data.host.retransmits, ..host };
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
            let end_ns = times.end_ns.min(now_ns);
            let [start_ns, measure_ns] = [times.start_ns, times.measure_ns].map(|at_ns| at_ns.min(end_ns));
            data.times.merge(&RunTimes { start_ns, measure_ns, end_ns, drained_ns: end_ns, ..data.times });
        }
        if self.coordinator.has_lost() {
            self.intervals.end_lost();
        }
        for worker in &mut data.usage.workers {
            worker.backlog = self.backlogs.get(&worker.worker).copied().unwrap_or_default();
        }
        data.times.epoch_us = times.epoch_us;
        data.intervals = self.intervals;
        Ok(data)
    }
}

/// Maps CLOCK_MONOTONIC of this host, which intervals of other hosts use, to the clock of the run.
fn to_local_clock(clock: &Clock) -> HostMapping {
    HostMapping { clock_shift_ns: -(clock.monotonic_of(0) as i64), ..HostMapping::default() }
}

fn add_backlog(backlogs: &mut BTreeMap<u32, WorkerBacklog>, plan: &Plan, interval: &Interval) {
    let load = |class: u16| plan.classes.get(usize::from(class)).map(|class| &class.load);
    let is_open = |class| matches!(load(class), Some(Load::Open { .. }));
    backlogs.entry(interval.worker).or_default().add(interval, is_open);
}

/// Workers hand an interval over a little late; after this time all usually have.
const HANDED_OVER_NS: u64 = 10_000_000;
/// Workers check for orders at least this often.
pub(crate) const AHEAD_NS: u64 = 20_000_000;

/// The pending start of a window.
#[derive(Debug, Default)]
pub(crate) struct WindowStart {
    /// Slices of the warm-up that were judged.
    slices_checked: u64,
}

impl WindowStart {
    /// `None` if the warm-up has a fixed length.
    pub(crate) fn of(plan: &Plan) -> Option<Self> {
        (plan.warmup == Warmup::Auto).then(Self::default)
    }

    /// Judges new slices; `times` have the latest start of the window. Returns its times once its start is decided, which is far
    /// enough after `now_ns` to tell all workers.
    pub(crate) fn check(
        &mut self,
        now_ns: u64,
        plan: &Plan,
        intervals: &IntervalStore,
        times: RunTimes,
    ) -> Option<(RunTimes, WarmupEnd)> {
        let RunTimes { start_ns, measure_ns, .. } = times;
        let slices = now_ns.saturating_sub(start_ns + HANDED_OVER_NS) / INTERVAL_NS;
        // The latest start needs no order: every worker knows it.
        let is_last = now_ns + AHEAD_NS + INTERVAL_NS >= measure_ns;
        if is_last {
            return Some((times, WarmupEnd::Longest));
        }
        if slices <= self.slices_checked {
            return None;
        }
        self.slices_checked = slices;
        let end = warmup::end(plan, intervals, start_ns, start_ns + slices * INTERVAL_NS)?;
        let begins = (now_ns + AHEAD_NS - start_ns).div_ceil(INTERVAL_NS);
        let measure_ns = start_ns + begins * INTERVAL_NS;
        let end_ns = plan.stop.time.map_or(u64::MAX, |time| measure_ns + time.0);
        Some((RunTimes { measure_ns, end_ns, ..times }, end))
    }
}

/// One worker as the control thread sees it.
pub(crate) struct WorkerHandle {
    pub thread: JoinHandle<io::Result<WorkerEnd>>,
    pub filled: rtrb::Consumer<Filled>,
    pub spares: rtrb::Producer<Box<RecorderSet>>,
    /// When the last interval ended that it handed over.
    pub until_ns: u64,
}

/// What a worker's thread is started with.
pub(crate) struct WorkerSeed {
    pub blueprint: Arc<Blueprint>,
    pub shard: Shard,
    /// Its number on this host, and how many there are.
    pub number: u32,
    pub of: u32,
    /// Its traces.
    pub feeds: Feeds,
    pub orders: Arc<Orders>,
    pub exchange: Exchange,
    pub clock: Clock,
    pub notices: mpsc::Sender<Notice>,
    pub interface: KernelInterface,
}

impl WorkerSeed {
    /// Starts the thread.
    pub(crate) fn start(self) -> io::Result<JoinHandle<io::Result<WorkerEnd>>> {
        start_thread(&format!("brunt-worker-{}", self.shard.part.index), move || {
            // Otherwise the kernel may extend a sleep by 50 µs. Where a sandbox refuses it, the lateness of sleeps that is measured has it.
            let _ = rustix::thread::set_current_timer_slack(std::num::NonZero::new(1));
            pin(&self.blueprint.plan.cpus, self.number)?;
            self.run()
        })
    }

    /// Runs the worker with the codec of its shard's protocol.
    #[cfg(not(test))]
    fn run(self) -> io::Result<WorkerEnd> {
        let blueprint = self.blueprint.clone();
        codecs::with_codec(&blueprint.plan, self.shard.protocol, self)?
    }

    /// Tests of this crate use sockets with one protocol and the simulator with all; those of the binary use every
    /// protocol over every kind of socket. Compiling all loops here as well would take most of the time of these
    /// tests.
    #[cfg(test)]
    fn run(self) -> io::Result<WorkerEnd> {
        assert_eq!(self.shard.protocol, brunt_plan::plan::Protocol::MemcachedText);
        self.visit_datagrams(brunt_proto::memcached::TextCodec::default())
    }

    /// Runs the worker over `io` until its end.
    fn run_loop<C: Codec, I: Io>(self, codec: C, io: I) -> WorkerEnd {
        let Self { blueprint, shard, feeds, orders, exchange, notices, .. } = self;
        let cpus = Cpus::beside(self.of, parallelism());
        let mut worker = build(&blueprint, shard, orders, exchange, codec, io, cpus);
        let sleeps = blueprint.plan.wait != Wait::Spin || !blueprint.plan.has_open_loop();
        if sleeps && worker.counts_wake_ups() {
            // On this thread, whose CPU may be its own. The sleeps of the run take its place.
            worker.set_wake_up(wake_up_ns());
        }
        drive(worker.with_feeds(feeds), &notices)
    }
}

impl CodecVisitor for WorkerSeed {
    type Output = io::Result<WorkerEnd>;

    /// Runs the worker with this codec. The endpoints say which sockets and which TLS its connections use.
    fn visit<C: Codec>(self, codec: C) -> Self::Output {
        let plan = &self.blueprint.plan;
        // `resolve` and the lookup of servers have excluded both.
        if self.blueprint.uses_transport(&self.shard, Transport::Udp) && !C::DATAGRAMS {
            return Err(io::Error::other("a protocol that has no datagrams"));
        }
        if !self.blueprint.has_tls_clients(&self.shard) {
            return Err(io::Error::other("a server without its client of TLS"));
        }
        Ok(match self.interface {
            KernelInterface::Epoll => {
                let connections = connection_count(plan, &self.shard);
                let io = Epoll::new(connections, plan.sockets, plan.gather, self.clock)
                    .map_err(|error| cannot("create the epoll instance of a worker")(error.into()))?;
                self.run_loop(codec, io)
            }
            KernelInterface::Uring => {
                let io = Uring::new(self.blueprint.ring_of(&self.shard), self.clock)
                    .map_err(cannot("create the io_uring of a worker"))?;
                self.run_loop(codec, io)
            }
        })
    }

    fn visit_datagrams<C: Codec>(self, codec: C) -> Self::Output {
        if !self.blueprint.uses_transport(&self.shard, Transport::Udp) {
            return self.visit(codec);
        }
        let codec = self.blueprint.datagram_codec(codec, &self.shard);
        self.visit(codec)
    }
}

/// Pins the calling thread to its CPU, if the plan names CPUs.
fn pin(cpus: &[u32], worker: u32) -> io::Result<()> {
    if cpus.is_empty() {
        return Ok(());
    }
    let cpu = cpus[worker as usize % cpus.len()];
    let mut set = rustix::thread::CpuSet::new();
    set.set(cpu as usize);
    rustix::thread::sched_setaffinity(None, &set)
        .map_err(|error| cannot(&format!("pin a worker to CPU {cpu} (--cpus)"))(error.into()))
}

/// Iterates until the end. A function of its own in every compiled loop, so that these can be counted.
#[inline(never)]
fn drive<C: Codec, I: Io>(mut worker: Worker<C, I>, notices: &mpsc::Sender<Notice>) -> WorkerEnd {
    while worker.is_running() {
        worker.run_once();
        if let Some(notice) = worker.take_notice() {
            // A control thread that no longer receives has aborted all workers.
            let _ = notices.send(notice);
        }
    }
    worker.end()
}

/// CPUs that this process may use at a time: its affinity, within its quota.
fn parallelism() -> u32 {
    std::thread::available_parallelism().map_or(1, |count| count.get() as u32)
}

/// Numbers of the CPUs that this process may run on.
pub fn allowed_cpus() -> Vec<u32> {
    let Ok(set) = rustix::thread::sched_getaffinity(None) else { return (0..parallelism()).collect() };
    (0..rustix::thread::CpuSet::MAX_CPU as u32).filter(|cpu| set.is_set(*cpu as usize)).collect()
}
