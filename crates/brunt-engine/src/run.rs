//! A run from the outside: starts the workers, leads them through the phases, gathers what they recorded.
//!
//! Not a worker: this is the control thread, which may allocate, wait and be late by milliseconds without touching a
//! single latency. Invariant: every set that a worker hands over is read exactly once, the last one included.

use crate::clock::Clock;
use crate::cluster::{self, LastMap, Mapper};
use crate::company::{Alone, Attendance, Blame, Company, Meeting, Part, Stop};
use crate::dialect::resp_codec;
use crate::hint::hint;
use crate::host::HostWatch;
use crate::kernel_interface::{Chosen, choose, is_out_of_memory, without_io_uring};
use crate::launch::{Blueprint, Place, allowed_cpus, spawn};
use crate::opening::{AHEAD_NS, Opened, Opening};
use crate::recording::Filled;
pub use crate::run_error::{Blamed, RunError};
use crate::trace_reader::TraceReaders;
use crate::transport::address::Address;
use crate::transport::tls::client::TlsClient;
use crate::witness::{Question, Told, Witnesses};
use crate::worker::{INTERVAL_NS, Notice, Orders, WorkerEnd};
use brunt_plan::plan::{IoChoice, Plan, Transport};
use brunt_plan::quoted_bytes::QuotedBytes;
use brunt_plan::server::ServerAddress;
use brunt_plan::shard::{Shard, shard};
use brunt_stats::cluster::ClusterRecord;
use brunt_stats::fault::{Fault, FaultKind, FirstError, FirstGarbage};
use brunt_stats::interval::{Interval, Move};
use brunt_stats::recorder::{Layout, RecorderSet};
pub use brunt_stats::run_data::{RunData, RunTimes};
use brunt_stats::statistics::Snapshot;
use brunt_stats::steady::warmup::WarmupEnd;
use brunt_stats::store::IntervalStore;
use brunt_stats::usage::{ClientUsage, WorkerUsage};
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc;
use std::thread::JoinHandle;
use std::time::Duration;

/// How often the control thread looks at its workers while it waits for them, and how long after the end of an interval it
/// looks for the first time. Every look costs the processor that a worker may be on a switch to us and back, so there is
/// one for every interval and not more, as long as all workers are in time.
const LOOK: Duration = Duration::from_millis(10);

/// A server with its name resolved.
#[derive(Clone, Debug)]
pub struct Endpoint {
    /// As in the plan.
    pub server: ServerAddress,
    /// Every address of the name, in the order to try them, or the one path; at least one.
    pub addresses: Vec<Address>,
    /// By TLS, where that is the plan's transport.
    pub tls: Option<TlsClient>,
}

/// One worker as the control thread sees it.
pub(crate) struct Hand {
    pub thread: JoinHandle<io::Result<WorkerEnd>>,
    pub filled: rtrb::Consumer<Filled>,
    pub spares: rtrb::Producer<Box<RecorderSet>>,
    /// When the last interval ended that it handed over.
    pub until_ns: u64,
}

/// What the control thread sees while a run goes on.
#[derive(Debug)]
pub enum Observed<'a> {
    /// Every connection stands and every key is confirmed: the schedule begins. `end_ns` is `u64::MAX` where time is no
    /// bound. Comes a second time where the plan leaves open when the window begins: first with the latest time that it may,
    /// and again as soon as it is known, ahead of it.
    Started(RunTimes),
    /// A worker handed over what it recorded, preload included.
    Interval(&'a Interval),
    /// A server said something of itself. What it says after the workers have ended is in the result alone.
    Statistics {
        /// The place of the server among [`Plan::polled_servers`].
        server: usize,
        /// What it said.
        snapshot: &'a Snapshot,
    },
    /// Time has passed. Comes after every look at the workers: about 10 ms after the end of each of their intervals, and
    /// before the schedule begins every 10 ms.
    Tick {
        /// Nanoseconds on the run's clock.
        now_ns: u64,
        /// Everything that was handed over so far.
        intervals: &'a IntervalStore,
    },
}

/// What whoever observes a run wants to happen next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wish {
    /// Go on as the plan says.
    GoOn,
    /// The schedule may end now: what was measured is enough. No interruption, for the plan foresees it.
    Enough,
}

/// What a run finds on its servers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum DataSets {
    /// Nothing that is known of: preload stores the data sets, where the plan has one.
    #[default]
    ToStore,
    /// The data sets of the plan, stored and confirmed by an earlier run. Its preload has nothing left to do, and values are
    /// compared as if it had done it.
    Stored,
}

/// Carries out a plan. `stop` ends the schedule early; `observe` sees what happens, on the calling thread, and may find
/// that it is enough.
pub fn run(
    plan: &Plan,
    endpoints: &[Endpoint],
    data: DataSets,
    stop: &AtomicBool,
    observe: &mut dyn FnMut(Observed<'_>) -> Wish,
) -> Result<RunData, RunError> {
    run_part(plan, &Part::whole(plan), endpoints, data, stop, observe, &mut Alone)
}

/// Carries out a part of a plan here, and what the company adds is as if it had been recorded here, too.
pub fn run_part(
    plan: &Plan,
    part: &Part<'_>,
    endpoints: &[Endpoint],
    data: DataSets,
    stop: &AtomicBool,
    observe: &mut dyn FnMut(Observed<'_>) -> Wish,
    company: &mut dyn Company,
) -> Result<RunData, RunError> {
    let setting = Setting { plan, part, endpoints, data };
    match setting.carry_out(None, stop, observe, company) {
        // Memory that may be locked is a user's: since it was tried here, another process may have taken it.
        Err(RunError::System(error)) if plan.io == IoChoice::Auto && is_out_of_memory(&error) => {
            setting.carry_out(Some(without_io_uring(&error)), stop, observe, company)
        }
        ended => ended,
    }
}

/// What a run is made of, before any worker is there.
struct Setting<'a> {
    plan: &'a Plan,
    part: &'a Part<'a>,
    endpoints: &'a [Endpoint],
    data: DataSets,
}

impl Setting<'_> {
    /// Makes the workers, by this interface or else by the best that works, and leads them through the run.
    fn carry_out(
        &self,
        chosen: Option<Chosen>,
        stop: &AtomicBool,
        observe: &mut dyn FnMut(Observed<'_>) -> Wish,
        company: &mut dyn Company,
    ) -> Result<RunData, RunError> {
        let Self { plan, part, endpoints, data } = *self;
        let board = if plan.is_cluster { Some(Arc::new(cluster::board(plan, endpoints)?)) } else { None };
        let blueprint = Blueprint::new(part.plan.clone(), endpoints.to_vec(), data).with_slots(board.clone());
        let blueprint = Arc::new(blueprint.map_err(RunError::System)?);
        let own = (0..).zip(part.workers.clone());
        let own: Vec<Shard> =
            own.map(|(nth, index)| shard(part.plan, index, part.portion.nth(nth))).collect();
        let rings: Vec<_> = own.iter().map(|shard| blueprint.ring_of(shard)).collect();
        let chosen = chosen.map_or_else(|| choose(plan, &rings), Ok).map_err(RunError::NoInterface)?;
        let (readers, feeds) = TraceReaders::start(part.plan, &own).map_err(RunError::NoTrace)?;
        let clock = Clock::start();
        let orders = Arc::new(Orders::default());
        let (notices, incoming) = mpsc::channel();
        // Before a worker connects, so that nothing of ours is missing between its first answer and its last.
        let (told, statistics) = mpsc::channel();
        let polled_servers = summon(&blueprint, clock, &told).map_err(RunError::System)?;
        let start_mapper = |board| Mapper::start(plan, board, endpoints.to_vec(), clock);
        let mapper = board.map(start_mapper).transpose().map_err(RunError::System)?;
        let begun_ns = clock.now_ns();
        let mut control = Control {
            orders: orders.clone(),
            hands: Vec::new(),
            intervals: IntervalStore::new(&Layout::of(plan)).with_slices(plan.interval.map(|width| width.0)),
            place: Move { classes: part.classes.to_vec(), ..Move::default() },
            clock,
            observe,
            company,
            watch: None,
            opening: None,
            warmup_end: None,
            is_cluster: plan.is_cluster,
            statistics,
        };
        let of = own.len() as u32;
        for ((index, shard), feeds) in (0..).zip(own).zip(feeds) {
            let place = Place { index, of, feeds };
            match spawn(
                blueprint.clone(),
                shard,
                place,
                orders.clone(),
                clock,
                notices.clone(),
                chosen.interface,
            ) {
                Ok(hand) => control.hands.push(hand),
                Err(error) => {
                    control.abandon();
                    return Err(RunError::System(error));
                }
            }
        }
        drop(notices);
        let mut prepare_ns = 0;
        let begun = control.prepare(&incoming, stop).and_then(|()| {
            prepare_ns = clock.now_ns() - begun_ns;
            if plan.preload {
                polled_servers.prepared();
            }
            control.begin(plan, prepare_ns, endpoints)
        });
        match begun {
            Ok(measure_ns) => polled_servers.began(measure_ns),
            Err(error) => {
                let ends = control.abandon();
                return Err(explain(error, ends, control.intervals, &blueprint));
            }
        }
        let interrupted = match control.attend(plan, &polled_servers, &incoming, stop) {
            Ok(interrupted) => interrupted,
            Err(error) => {
                let ends = control.abandon();
                return Err(explain(error, ends, control.intervals, &blueprint));
            }
        };
        let mut data = control.conclude(interrupted, prepare_ns, &chosen)?;
        if let (Some(mapper), Some(record)) = (mapper, &mut data.cluster) {
            let LastMap { slots, is_final, refreshes } = mapper.end();
            (record.slots, record.is_final) = (slots, is_final);
            record.refreshes += refreshes;
        }
        Ok(RunData { server_records: polled_servers.end(), traces: readers.end(), ..data })
    }
}

/// The servers as polled_servers, where the plan asks them.
fn summon(blueprint: &Blueprint, clock: Clock, told: &mpsc::Sender<Told>) -> io::Result<Witnesses> {
    let Blueprint { plan, endpoints, .. } = blueprint;
    if !plan.server_stats {
        return Ok(Witnesses::none());
    }
    let servers = plan.servers();
    let asked = |place: usize| {
        let question = match servers[place].protocol {
            protocol if protocol.is_resp() => Question::Info(Box::new(resp_codec(plan, protocol)?)),
            _ => Question::Stats,
        };
        Ok((endpoints[place].clone(), question))
    };
    let asked = plan.polled_servers().into_iter().map(asked).collect::<io::Result<Vec<_>>>()?;
    Witnesses::start(asked, plan.interval, clock, told)
}

/// Completes what one worker found by what all of them met.
fn explain(
    error: RunError,
    ends: Vec<io::Result<WorkerEnd>>,
    intervals: IntervalStore,
    blueprint: &Blueprint,
) -> RunError {
    let plan = &blueprint.plan;
    match error {
        RunError::Unanswered { server, reason } => {
            RunError::Unanswered { server, reason: reason + tls_hint(plan) }
        }
        RunError::TurnedAway { server, reason } => {
            let ends: Vec<WorkerEnd> = ends.into_iter().flatten().collect();
            RunError::TurnedAway { server, reason: reason + &first_hint(plan, &ends) }
        }
        RunError::PreloadFailed { confirmed, .. } => {
            let mut ends: Vec<WorkerEnd> = ends.into_iter().flatten().collect();
            let mut faults = intervals.faults().clone();
            for end in &mut ends {
                faults.merge(&end.last.set.take_interval(0, end.last.start_ns, end.last.end_ns).faults);
            }
            let mut reason = first_reason(&ends, faults.rows());
            let is_cut_off = |fault: &Fault| matches!(fault.kind, FaultKind::ClosedByPeer | FaultKind::Reset);
            if confirmed == 0 && !faults.rows().is_empty() && faults.rows().iter().all(is_cut_off) {
                reason += tls_hint(plan);
            }
            let hint = first_hint(plan, &ends);
            let servers = server_names(&blueprint.endpoints);
            RunError::PreloadFailed { servers, confirmed, wanted: blueprint.preload_stores(), reason, hint }
        }
        // A worker that is gone says why.
        RunError::System(error) => RunError::System(ends.into_iter().find_map(Result::err).unwrap_or(error)),
        other => other,
    }
}

fn worker_gone() -> RunError {
    RunError::System(io::Error::other("a worker ended early"))
}

/// The most servers that a message names.
const NAMES_MAX: usize = 3;

/// What to ask a user whose server ends plain connections, or says nothing on them.
pub(crate) const TLS_HINT: &str = "; is it a port for TLS (--transport tls)?";

fn tls_hint(plan: &Plan) -> &'static str {
    if plan.uses_transport(Transport::Tcp) { TLS_HINT } else { "" }
}

/// What to tell a user whose server would not store.
fn first_reason(ends: &[WorkerEnd], faults: &[Fault]) -> String {
    if let Some(text) = ends.iter().find_map(|end| end.counts.first_error.as_ref()) {
        return format!("it said: {text}");
    }
    if let Some(garbage) = ends.iter().find_map(|end| end.counts.first_garbage.as_ref()) {
        return saying(garbage);
    }
    let rows: Vec<String> =
        faults.iter().map(|fault| format!("{} × connection {}", fault.count, fault.kind.name())).collect();
    if rows.is_empty() { "it declined the others".to_owned() } else { rows.join(", ") }
}

/// What the user may have meant, by the first error or the first bytes that are no reply.
fn first_hint(plan: &Plan, ends: &[WorkerEnd]) -> String {
    let error = ends.iter().find_map(|end| end.counts.first_error.as_ref());
    let garbage = ends.iter().find_map(|end| end.counts.first_garbage.as_ref());
    let said = error.map(FirstError::bytes).or(garbage.map(FirstGarbage::bytes));
    said.map(|said| hint(plan, said)).unwrap_or_default()
}

/// Servers by name, the first few of many.
fn server_names(endpoints: &[Endpoint]) -> String {
    let names: Vec<String> =
        endpoints.iter().take(NAMES_MAX).map(|endpoint| endpoint.server.to_string()).collect();
    match endpoints.len().saturating_sub(NAMES_MAX) {
        0 => names.join(", "),
        more => format!("{} and {more} more", names.join(", ")),
    }
}

/// What to tell a user of bytes that are no reply.
pub(crate) fn saying(garbage: &FirstGarbage) -> String {
    format!("it sent \"{}\": {}", QuotedBytes(garbage.bytes()), garbage.reason)
}

/// The host, over the measured window.
struct Watch {
    host: HostWatch,
    start_ns: u64,
    measure_ns: u64,
    end_ns: u64,
}

struct Control<'a> {
    orders: Arc<Orders>,
    hands: Vec<Hand>,
    intervals: IntervalStore,
    /// What the classes of our workers are in the whole.
    place: Move,
    clock: Clock,
    observe: &'a mut dyn FnMut(Observed<'_>) -> Wish,
    company: &'a mut dyn Company,
    /// From the start of the schedule on.
    watch: Option<Watch>,
    /// Until the window is known to begin, where the plan leaves that open.
    opening: Option<Opening>,
    /// What came of that.
    warmup_end: Option<WarmupEnd>,
    /// The servers are nodes of a cluster.
    is_cluster: bool,
    /// What the servers say of themselves.
    statistics: mpsc::Receiver<Told>,
}

impl Control<'_> {
    /// Waits until every worker is connected and has its keys confirmed, here and elsewhere.
    fn prepare(&mut self, incoming: &mpsc::Receiver<Notice>, stop: &AtomicBool) -> Result<(), RunError> {
        let mut prepared = 0;
        let mut confirmed_by_others = 0;
        loop {
            self.gather();
            if stop.load(Ordering::Relaxed) {
                return Err(RunError::Interrupted);
            }
            let is_ready = prepared == self.hands.len();
            match self.company.meet(is_ready).map_err(RunError::Company)? {
                Meeting::Ready if is_ready => return Ok(()),
                Meeting::Leave => return Err(RunError::Interrupted),
                Meeting::Wait | Meeting::Ready => {}
            }
            // None has leave to end before the schedule began; without it the others would wait for the start for ever.
            if self.hands.iter().any(|hand| hand.thread.is_finished()) {
                return Err(worker_gone());
            }
            if is_ready {
                // The company has waited.
                continue;
            }
            match incoming.recv_timeout(LOOK) {
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

    /// Says when the schedule begins. Returns when the measured window does.
    fn begin(&mut self, plan: &Plan, prepare_ns: u64, endpoints: &[Endpoint]) -> Result<u64, RunError> {
        let cpus = if plan.cpus.is_empty() { allowed_cpus() } else { plan.cpus.clone() };
        let host = HostWatch::new(cpus, endpoints);
        let start_ns = self.clock.of_monotonic(self.company.begin().map_err(RunError::Company)?);
        let measure_ns = start_ns + plan.warmup.longest().0;
        let end_ns = plan.stop.time.map_or(u64::MAX, |time| measure_ns + time.0);
        self.intervals.align(measure_ns);
        self.intervals.bound(start_ns..end_ns);
        let times = RunTimes { start_ns, measure_ns, end_ns, prepare_ns, ..RunTimes::default() };
        (self.observe)(Observed::Started(times));
        self.opening = Opening::of(plan, times);
        self.watch = Some(Watch { host, start_ns, measure_ns, end_ns });
        self.orders.start_ns.store(start_ns, Ordering::Release);
        Ok(measure_ns)
    }

    /// Gathers intervals until every worker has finished, here and elsewhere. Returns whether the schedule was cut short; an
    /// error is what became of somebody elsewhere, or that no server will ever speak to us by TLS, which none of them had said before.
    fn attend(
        &mut self,
        plan: &Plan,
        polled_servers: &Witnesses,
        incoming: &mpsc::Receiver<Notice>,
        stop: &AtomicBool,
    ) -> Result<bool, RunError> {
        let mut interrupted = false;
        loop {
            // Next to nothing is told any more, but a worker that ends drops its end of the channel, and the last one wakes us.
            let wait = self.until_next_look(self.clock.now_ns());
            // From then on the company waits.
            let told = incoming.recv_timeout(wait);
            let have_ours_ended = matches!(told, Err(mpsc::RecvTimeoutError::Disconnected));
            let now_ns = self.clock.now_ns();
            let wish = self.gather();
            self.open_window(plan, polled_servers)?;
            if let Ok(Notice::Failed(error)) = told
                && !self.has_answer()
            {
                return Err(error);
            }
            interrupted |= stop.load(Ordering::Relaxed);
            let ours = match (interrupted, wish) {
                (true, _) => Some(Stop::Interrupted),
                (false, Wish::Enough) => Some(Stop::Enough),
                (false, Wish::GoOn) => None,
            };
            let Attendance { is_over, stop: theirs } =
                self.hear(have_ours_ended, ours).map_err(RunError::Company)?;
            interrupted |= theirs == Some(Stop::Interrupted);
            if ours.or(theirs).is_some() {
                self.orders.stop.store(true, Ordering::Relaxed);
                self.opening = None;
                if let Some(watch) = &mut self.watch {
                    watch.end_ns = watch.end_ns.min(now_ns);
                    self.intervals.bound(watch.start_ns..watch.end_ns);
                }
            }
            if let Some(Watch { host, measure_ns, end_ns, .. }) = &mut self.watch {
                host.look(now_ns, *measure_ns, *end_ns);
            }
            if have_ours_ended && is_over {
                return Ok(interrupted);
            }
        }
    }

    /// Says when the window begins, as soon as that is decided, where the plan leaves it open.
    fn open_window(&mut self, plan: &Plan, polled_servers: &Witnesses) -> Result<(), RunError> {
        let Some(opening) = &mut self.opening else { return Ok(()) };
        let now_ns = self.clock.now_ns();
        let Some(Opened { times, end }) = opening.look(now_ns, plan, &self.intervals) else { return Ok(()) };
        // Where it begins as late as it may, every worker knows that already.
        if end != WarmupEnd::Longest {
            if self.clock.now_ns() + AHEAD_NS > times.measure_ns {
                // To find that out took too long. It is found again at the next look.
                return Ok(());
            }
            self.orders.measure_ns.store(times.measure_ns, Ordering::Release);
            if self.clock.now_ns() >= times.measure_ns {
                return Err(RunError::LateWindow);
            }
        }
        (self.opening, self.warmup_end) = (None, Some(end));
        if let Some(watch) = &mut self.watch {
            (watch.measure_ns, watch.end_ns) = (times.measure_ns, times.end_ns);
        }
        self.intervals.align(times.measure_ns);
        self.intervals.bound(times.start_ns..times.end_ns);
        polled_servers.began(times.measure_ns);
        (self.observe)(Observed::Started(times));
        Ok(())
    }

    /// Hears what was recorded elsewhere.
    fn hear(&mut self, have_ours_ended: bool, stop: Option<Stop>) -> Result<Attendance, Blame> {
        let Self { company, intervals, observe, clock, .. } = self;
        let to_ours = to_ours(clock);
        company.attend(have_ours_ended, stop, &mut |interval| {
            let interval = to_ours.interval(interval);
            observe(Observed::Interval(&interval));
            intervals.push(&interval);
        })
    }

    /// Has any server answered any worker, as far as they have told?
    fn has_answer(&self) -> bool {
        self.intervals.books().entries().any(|entry| entry.book.requests.completed() > 0)
    }

    /// How long there is nothing to look for: all workers end their intervals at the same instants, and at both ends of the
    /// window the host is asked for its counters.
    fn until_next_look(&self, now_ns: u64) -> Duration {
        let Some(Watch { start_ns, measure_ns, end_ns, .. }) = self.watch else { return LOOK };
        let ended_ns = now_ns.saturating_sub(start_ns) / INTERVAL_NS * INTERVAL_NS + start_ns;
        // Where the other set is not back in time, an interval becomes longer; so whoever is late is waited for, and before
        // the start there is a hand-over that belongs to no interval.
        let is_late = |hand: &Hand| hand.until_ns < ended_ns && !hand.thread.is_finished();
        if now_ns < start_ns || self.hands.iter().any(is_late) {
            return LOOK;
        }
        let next_ns = ended_ns + INTERVAL_NS + LOOK.as_nanos() as u64;
        let of_window = [measure_ns, end_ns].into_iter().filter(|at_ns| *at_ns > now_ns);
        Duration::from_nanos(of_window.fold(next_ns, u64::min) - now_ns)
    }

    /// Reads every set that was handed over and gives it back.
    fn gather(&mut self) -> Wish {
        for worker in 0..self.hands.len() {
            while let Ok(mut filled) = self.hands[worker].filled.pop() {
                self.keep(filled.set.take_interval(worker as u32, filled.start_ns, filled.end_ns));
                let hand = &mut self.hands[worker];
                hand.until_ns = filled.end_ns;
                // A worker that is gone takes nothing back.
                let _ = hand.spares.push(filled.set);
            }
        }
        while let Ok((server, snapshot)) = self.statistics.try_recv() {
            (self.observe)(Observed::Statistics { server, snapshot: &snapshot });
        }
        (self.observe)(Observed::Tick { now_ns: self.clock.now_ns(), intervals: &self.intervals })
    }

    /// Keeps what one of our workers recorded.
    fn keep(&mut self, interval: Interval) {
        let interval = self.place.interval(interval);
        (self.observe)(Observed::Interval(&interval));
        self.company.tell(&interval, self.clock.monotonic_of(0));
        self.intervals.push(&interval);
    }

    /// Lets every worker go at once, without a result to report.
    fn abandon(&mut self) -> Vec<io::Result<WorkerEnd>> {
        self.orders.abandon.store(true, Ordering::Relaxed);
        self.hands.drain(..).map(|hand| join(hand.thread)).collect()
    }

    fn conclude(mut self, interrupted: bool, prepare_ns: u64, chosen: &Chosen) -> Result<RunData, RunError> {
        self.gather();
        let now_ns = self.clock.now_ns();
        let host = self.watch.take().map(|watch| watch.host.conclude(now_ns)).unwrap_or_default();
        let mut data = RunData {
            times: RunTimes { prepare_ns, ..RunTimes::default() },
            host,
            cluster: self.is_cluster.then(ClusterRecord::default),
            interrupted,
            warmup_end: self.warmup_end,
            ..RunData::default()
        };
        for (worker, hand) in std::mem::take(&mut self.hands).into_iter().enumerate() {
            let mut end = join(hand.thread).map_err(RunError::System)?;
            let Filled { set, start_ns, end_ns } = &mut end.last;
            self.keep(set.take_interval(worker as u32, *start_ns, *end_ns));
            add_worker(&mut data, worker as u32, end);
        }
        data.usage.io = chosen.interface.name().to_owned();
        data.usage.io_reason.clone_from(&chosen.reason);
        data.place(&self.place);
        let to_ours = to_ours(&self.clock);
        for mut other in self.company.conclude() {
            other.place(&to_ours);
            data.merge(other);
        }
        data.times.epoch_us = Some(self.clock.epoch_us());
        data.intervals = self.intervals;
        Ok(data)
    }
}

/// What others recorded comes with times of this host's CLOCK_MONOTONIC: how these become the run's.
fn to_ours(clock: &Clock) -> Move {
    Move { by_ns: -(clock.monotonic_of(0) as i64), ..Move::default() }
}

fn join(thread: JoinHandle<io::Result<WorkerEnd>>) -> io::Result<WorkerEnd> {
    match thread.join() {
        Ok(end) => end,
        // A broken invariant of ours: the message is on stderr already, and the run must not look like a success.
        Err(panic) => std::panic::resume_unwind(panic),
    }
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
        workers: vec![WorkerUsage { colocation: end.colocation, stalls: end.stalls, ..total.worker }],
        ..ClientUsage::default()
    });
    data.host.retransmits += end.retransmits;
}
