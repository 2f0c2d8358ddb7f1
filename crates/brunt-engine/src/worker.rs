//! The event loop: wait, receive, send what is due, run timers. There is no other loop.
//!
//! Protocol and kernel interface are types, everything else is data: open loop, closed loop and preload differ in
//! their sessions, phases in the installed sessions. Invariant: from the first iteration of the warm-up to the last
//! of the drain, nothing is allocated, locked or logged here.

pub(crate) mod pace;
pub(crate) mod unloaded;
pub(crate) mod usage;

use crate::io::{Chunk, CloseMode, Completion, CompletionKind, Io, SendResult, Until};
use crate::run_error::{RunError, ServerFailure, describe_malformed};
use crate::state::connection::{ConnectionState, fault_of_errno};
use crate::state::connections::SetupStatus;
use crate::state::hash_slots::SlotTable;
use crate::state::health::Health;
use crate::state::lane::{Feeds, Lanes};
use crate::state::recording::Filled;
use crate::traffic::Traffic;
use crate::transport::Endpoint;
use crate::worker::pace::{Awaited, InFlight, Pace};
use crate::worker::unloaded::Unloaded;
use crate::worker::usage::{LoopCounters, ThreadUsage, TimeMeter, Waiting};
use brunt_plan::outcome::OutcomeClass;
use brunt_plan::plan::{MeterKind, Plan};
use brunt_plan::units::DurationNs;
use brunt_plan::warmup::Warmup;
use brunt_proto::Codec;
use brunt_stats::connection::{ConnectionEvent, FaultKind, FirstError};
use brunt_stats::run_record::RunData;
use brunt_stats::usage::{Colocation, HostEvidence, STALL_MIN_NS, StallCounts};
use brunt_stats::window::RunTimes;
use brunt_workload::session::{PhaseTimes, Session};
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};

/// Orders are polled at least this often.
const ORDERS_POLL_NS: u64 = 20_000_000;
/// Polling period of the start order.
const AWAIT_START_NS: u64 = 500_000;
/// How often a preload with a rate sends what has become due: bursts stay short.
const PRELOAD_PACE_NS: u64 = 1_000_000;
/// Maximum attempts in progress, so that a server's backlog does not overflow.
const CONNECTING_MAX: u32 = 128;
/// Pause before a hand-over is retried because the other set was not back.
const HAND_OVER_RETRY_NS: u64 = 1_000_000;
/// Pause before an attempt at a Unix socket with a full queue is repeated.
const FULL_QUEUE_RETRY_NS: u64 = 1_000_000;
/// Minimum time after which a server without connections counts as down: it may restart within it, and several
/// attempts fit in.
const SERVER_DOWN_NS: u64 = 5_000_000_000;
/// A server that accepts connections and answers nothing for this long during the preload fails the run, before the
/// usual request timeout…
const SILENT_SERVER_NS: u64 = 8_000_000_000;
/// …unless the timeout is longer than usual.
const TIMEOUT_USUAL_NS: u64 = 10_000_000_000;
/// Failures in a row of every connection, without a reply, that fail a preload.
const PRELOAD_FAILURES_MAX: u32 = 5;
/// Length of an interval.
pub(crate) const INTERVAL_NS: u64 = 100_000_000;

/// Orders of the control thread to all workers.
#[derive(Debug, Default)]
pub(crate) struct Orders {
    /// Start of the schedule on the run's clock; 0 while unknown.
    pub start_ns: AtomicU64,
    /// Start of the measured window, where the plan leaves it open; 0 while unknown. Set ahead, so that every
    /// worker knows it when it picks the first measured operation.
    pub measure_ns: AtomicU64,
    /// End the schedule, drain and report.
    pub stop: AtomicBool,
    /// End at once without a result.
    pub abort: AtomicBool,
    /// Workers whose preload is over, by their own count.
    pub loaded: AtomicU32,
}

/// A worker's notice before the schedule starts.
#[derive(Debug)]
pub(crate) enum Notice {
    /// Every connection is established and every key confirmed.
    Prepared,
    /// The run has failed.
    Failed(RunError),
}

/// Builds the lanes of the schedule once its times are known.
pub(crate) type MakeLanes = Box<dyn FnOnce(PhaseTimes) -> Lanes + Send>;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    Connecting,
    Preloading,
    /// Asks requests one at a time.
    Unloaded,
    AwaitingStart,
    Running,
    Finished,
}

/// Results of a worker.
pub(crate) struct WorkerEnd {
    /// The last set of histograms.
    pub last: Filled,
    /// The error that has ended the preload.
    pub rejection: Option<FirstError>,
    /// Keys of the preload that servers confirmed.
    pub confirmed: u64,
    /// Everything outside the sets. The worker has no number there: the control thread knows it.
    pub data: RunData,
}

/// One thread's loop.
pub(crate) struct Worker<C: Codec, I: Io> {
    io: I,
    traffic: Traffic<C>,
    pace: Pace,
    stage: Stage,
    plan: Arc<Plan>,
    orders: Arc<Orders>,
    /// Addresses of each server.
    endpoints: Vec<Endpoint>,
    connecting: u32,
    /// Earliest deadline of the attempts in progress.
    attempt_deadline_ns: u64,
    /// Connections that were up at least once, or are not awaited.
    reached: u32,
    preload_lanes: Lanes,
    unloaded: Unloaded,
    /// Keys that the preload has stored, and when that was known for the last time to have grown.
    stored: (u64, u64),
    make_lanes: Option<MakeLanes>,
    /// By class, until the lanes of the schedule have them.
    feeds: Feeds,
    notice: Option<Notice>,
    /// The window begins on order, or after the longest warm-up.
    awaits_window: bool,
    /// A due operation found no room before its connection had sent.
    needs_flush: bool,
    /// Next time of the timers.
    timers_ns: u64,
    expire_ns: u64,
    interval_end_ns: u64,
    drain_end_ns: u64,
    drained_ns: u64,
    /// Waiting operations can never be sent.
    is_cut_off: bool,
    /// TLS rejections since the start was awaited, before any reply.
    refusals: u32,
    /// The stop order was carried out.
    is_stopped: bool,
    waiting: Waiting,
    stalls: StallCounts,
    /// Retransmits when the start was awaited.
    retransmits: u64,
    colocation: Colocation,
    /// The connection to sample next, and when.
    colocation_index: u32,
    colocation_ns: u64,
    usage: ThreadUsage,
    time_meter: TimeMeter,
}

impl<C: Codec, I: Io> Worker<C, I> {
    /// A worker with the lanes of its preload, the requests that it asks one at a time, and what makes the lanes of its schedule.
    pub(crate) fn new(
        io: I,
        traffic: Traffic<C>,
        pace: Pace,
        plan: Arc<Plan>,
        orders: Arc<Orders>,
        endpoints: Vec<Endpoint>,
        (preload_lanes, unloaded, make_lanes): (Lanes, Unloaded, MakeLanes),
    ) -> Self {
        assert!(endpoints.iter().all(|server| !server.addresses.is_empty()), "a server has an address");
        // If attempts count, none is made before the schedule.
        let not_awaited =
            traffic.connections.all.iter().filter(|connection| connection.state == ConnectionState::Idle);
        let reached = not_awaited.count() as u32;
        Self {
            io,
            traffic,
            pace,
            stage: Stage::Connecting,
            plan,
            orders,
            endpoints,
            connecting: 0,
            attempt_deadline_ns: u64::MAX,
            reached,
            preload_lanes,
            unloaded,
            stored: (0, 0),
            make_lanes: Some(make_lanes),
            feeds: Feeds::new(),
            notice: None,
            awaits_window: false,
            needs_flush: false,
            timers_ns: 0,
            expire_ns: 0,
            interval_end_ns: 0,
            drain_end_ns: u64::MAX,
            drained_ns: 0,
            is_cut_off: false,
            refusals: 0,
            is_stopped: false,
            waiting: Waiting::default(),
            stalls: StallCounts::default(),
            retransmits: 0,
            colocation: Colocation::default(),
            colocation_index: 0,
            colocation_ns: 0,
            usage: ThreadUsage::default(),
            time_meter: TimeMeter::default(),
        }
    }

    /// Adds the traces of its classes.
    pub(crate) fn with_feeds(mut self, feeds: Feeds) -> Self {
        self.feeds = feeds;
        self
    }

    /// Is there another iteration?
    pub(crate) fn is_running(&self) -> bool {
        self.stage != Stage::Finished
    }

    /// Is the schedule running (or being drained)?
    #[cfg(test)]
    pub(crate) fn is_measuring(&self) -> bool {
        self.stage == Stage::Running
    }

    /// The worker's clock.
    #[cfg(test)]
    pub(crate) fn now_ns(&mut self) -> u64 {
        self.io.now_ns()
    }

    /// What it runs on.
    #[cfg(test)]
    pub(crate) fn io_mut(&mut self) -> &mut I {
        &mut self.io
    }

    /// A notice for the control thread; at most one per iteration.
    pub(crate) fn take_notice(&mut self) -> Option<Notice> {
        self.notice.take()
    }

    /// One iteration of the loop.
    pub(crate) fn run_once(&mut self) {
        let mut now_ns = self.wait();
        if self.awaits_window {
            self.poll_window_start(now_ns);
        }
        // Reads before sends: a read takes a fifth of the time of a send.
        if self.handle_completions() {
            self.waiting.came_in();
            now_ns = self.io.now_ns();
            if self.awaits_window {
                // It may have been ordered meanwhile, before the operations that are picked now.
                self.poll_window_start(now_ns);
            }
        }
        self.needs_flush = self.traffic.dispatch_due(now_ns);
        let flushed = self.traffic.flush(&mut self.io, now_ns);
        now_ns = flushed.now_ns;
        if self.needs_flush || flushed.awaits_results {
            self.submit();
            now_ns = self.io.now_ns();
        }
        self.close_retired(now_ns);
        if now_ns >= self.timers_ns || self.traffic.take_any_lost() || self.is_stage_over(now_ns) {
            self.run_timers(now_ns);
        }
    }

    /// Hands in what is queued, and handles the results. Rare, so that the loop has the other call of `handle_completions` inline.
    #[cold]
    #[inline(never)]
    fn submit(&mut self) {
        self.io.submit();
        self.handle_completions();
    }

    /// Handles all completions. Returns whether there were any.
    #[inline(always)]
    fn handle_completions(&mut self) -> bool {
        let mut any = false;
        while let Some(completion) = self.io.next() {
            self.complete(completion);
            any = true;
        }
        any
    }

    /// Closes expired connections. Returns whether there were any.
    #[inline]
    fn close_retired(&mut self, now_ns: u64) -> bool {
        let mut any = false;
        while let Some(index) = self.traffic.connections.take_retired() {
            self.io.close(index, CloseMode::Orderly);
            self.traffic.finish_retired(index, now_ns);
            any = true;
        }
        any
    }

    /// Waits for the next deadline or completion. Returns the clock.
    #[inline]
    fn wait(&mut self) -> u64 {
        let now_ns = self.io.now_ns();
        self.end_iteration(now_ns);
        let (mut due_ns, mut timer_ns) = (u64::MAX, self.timers_ns);
        if let Some((lane, at_ns)) = self.traffic.dispatch.deadlines.first() {
            // Only deadlines of open loops are worth spinning for.
            let lane = self.traffic.dispatch.lanes.get(lane as usize);
            // Behind the lanes is the deadline of delayed fills.
            match lane.is_none_or(|lane| lane.session.is_open()) {
                true => due_ns = at_ns,
                false => timer_ns = timer_ns.min(at_ns),
            }
        }
        // After a flush the rest can be queued. The poll in between keeps replies from waiting while more is due
        // than can be sent.
        let is_idle = !self.needs_flush && due_ns.min(timer_ns) > now_ns;
        let until = if is_idle {
            let in_flight =
                InFlight { requests: self.traffic.in_flight(), sent_ns: self.traffic.connections.queued_ns };
            let awaited = Awaited { due_ns, timer_ns, in_flight };
            self.pace.until(now_ns, awaited, &self.traffic.recording.last)
        } else {
            Until::Now
        };
        self.waiting.enter(now_ns, until == Until::Now && is_idle);
        let woke_ns = self.io.wait(now_ns, until);
        self.traffic.dispatch.iteration_start_ns = now_ns;
        if let Until::Instant(at_ns) = until {
            self.traffic.dispatch.iteration_start_ns = woke_ns;
            if woke_ns >= at_ns {
                self.note_oversleep(at_ns, woke_ns);
            }
        }
        woke_ns
    }

    /// Does a reply that ended a sleep count as unread for as long as a wake-up takes? Where the kernel takes timestamps, they say how
    /// long it was.
    pub(crate) fn counts_wake_ups(&self) -> bool {
        !self.traffic.stamper.is_on()
    }

    /// Sets how long a wake-up takes, until the sleeps of the run tell.
    pub(crate) fn set_wake_up(&mut self, ns: u64) {
        self.io.set_wake_up(ns);
    }

    /// Notes how late a sleep ended by its timer.
    #[inline(never)]
    fn note_oversleep(&mut self, at_ns: u64, woke_ns: u64) {
        self.traffic.dispatch.iteration_start_ns = at_ns;
        if let Some(wake_up_ns) = self.pace.observe(woke_ns - at_ns).filter(|_| self.counts_wake_ups()) {
            self.io.set_wake_up(wake_up_ns);
        }
        if self.stage == Stage::Running {
            self.traffic.recording.meter(MeterKind::Oversleep, woke_ns - at_ns);
        }
    }

    /// Ends an iteration. A long one is a stall: replies were left unread and due operations unsent.
    #[inline]
    fn end_iteration(&mut self, now_ns: u64) {
        let took_ns = now_ns.saturating_sub(self.traffic.dispatch.iteration_start_ns);
        if took_ns > self.traffic.dispatch.absences.ignored_ns {
            self.note_long_iteration(now_ns, took_ns);
        }
    }

    #[cold]
    fn note_long_iteration(&mut self, now_ns: u64, took_ns: u64) {
        self.traffic.dispatch.absences.note(self.traffic.dispatch.iteration_start_ns..now_ns);
        if took_ns <= STALL_MIN_NS {
            return;
        }
        self.traffic.stops.note(self.traffic.dispatch.iteration_start_ns..now_ns);
        let PhaseTimes { measure_ns, end_ns, .. } = self.traffic.window;
        let run_delay_ns = self.time_meter.run_delay_ns();
        self.stalls.note(self.traffic.dispatch.iteration_start_ns..now_ns, measure_ns..end_ns, run_delay_ns);
    }

    /// Handles one completion.
    #[inline(always)]
    fn complete(&mut self, completion: Completion) {
        let Completion { index, at_ns, polled_ns, kind } = completion;
        match kind {
            CompletionKind::Received(chunk) => self.receive(index, chunk, at_ns, polled_ns),
            CompletionKind::Stamped(chunk) => self.receive_stamped(index, chunk, at_ns, polled_ns),
            CompletionKind::Sent(taken) => {
                let is_in_setup = self.traffic.connections.is_in_setup(index);
                self.traffic.handed_over(&mut self.io, index, SendResult { taken, at_ns });
                self.note_setup_send(is_in_setup, index, at_ns);
            }
            CompletionKind::Writable => {
                let is_in_setup = self.traffic.connections.is_in_setup(index);
                self.traffic.writable(&mut self.io, index, at_ns);
                self.note_setup_send(is_in_setup, index, at_ns);
                // Other connections may have sends to submit.
                self.io.submit();
            }
            CompletionKind::Connected => match self.traffic.begin_setup(&mut self.io, index, at_ns) {
                // Other connections may have sends to submit.
                true => {
                    self.io.submit();
                    self.note_setup_send(true, index, at_ns);
                }
                false => self.established(index, at_ns),
            },
            CompletionKind::ConnectFailed(errno) => {
                self.connecting -= 1;
                self.connect_failed(index, errno, at_ns);
            }
            CompletionKind::Closed(errno) if self.traffic.connections.is_in_setup(index) => {
                self.connecting -= 1;
                self.connect_failed(index, errno.unwrap_or(libc::ECONNRESET), at_ns);
            }
            CompletionKind::Closed(errno) => {
                self.note_tls_refusal(index);
                let fault = errno.map_or(FaultKind::ClosedByPeer, fault_of_errno);
                self.traffic.fail_connection(index, at_ns, fault, OutcomeClass::Lost);
            }
        }
    }

    /// Handles received bytes.
    #[inline(always)]
    fn receive(&mut self, index: u32, chunk: Chunk, at_ns: u64, polled_ns: u64) {
        let is_in_setup = self.traffic.connections.is_in_setup(index);
        let bytes = self.io.bytes(chunk);
        let received = self.traffic.receive(index, bytes, at_ns, polled_ns);
        if is_in_setup {
            self.continue_setup(index, received, at_ns);
        } else if received.is_err() {
            self.io.close(index, CloseMode::Reset);
        }
    }

    /// As `receive`, of bytes that may end a stamped reply.
    #[inline(never)]
    fn receive_stamped(&mut self, index: u32, chunk: Chunk, at_ns: u64, polled_ns: u64) {
        let stamped = self.traffic.awaits_stamps(index);
        self.receive(index, chunk, at_ns, polled_ns);
        // A lost connection has no pending stamp.
        if let Some(requests_before) = stamped
            && self.traffic.ends_stamped(index, requests_before)
        {
            let stamps = self.io.stamps(index);
            self.traffic.stamper.answer(index, stamps, polled_ns, at_ns);
        }
    }

    /// Runs everything that is not per operation, and sets the next time.
    fn run_timers(&mut self, mut now_ns: u64) {
        if self.orders.abort.load(Ordering::Relaxed) {
            self.stage = Stage::Finished;
            return;
        }
        if self.pace.learns(now_ns) {
            let run_delay_ns = self.io.run_delay_ns();
            self.pace.learn(now_ns, run_delay_ns);
        }
        let mut next_ns = now_ns + ORDERS_POLL_NS;
        next_ns = next_ns.min(self.traffic.resume(now_ns));
        next_ns = next_ns.min(self.step_connections(now_ns));
        if self.close_retired(now_ns) {
            // The next connection follows at once.
            next_ns = next_ns.min(self.step_connections(now_ns));
        }
        if now_ns >= self.expire_ns {
            // A connection that times out takes unsent requests back: none may be deferred.
            self.submit();
            // Sends were submitted after the first clock reading.
            now_ns = self.io.now_ns();
            self.expire_ns = self.traffic.expire(&mut self.io, now_ns);
        }
        next_ns = next_ns.min(self.expire_ns).min(self.traffic.abandon_waiting(now_ns));
        match self.stage {
            Stage::Connecting => self.step_connecting(),
            Stage::Preloading => {
                self.step_preloading(now_ns);
                if self.plan.preload_rate.is_some() {
                    next_ns = next_ns.min(now_ns + PRELOAD_PACE_NS);
                }
            }
            Stage::Unloaded => {
                self.step_unloaded(now_ns);
                let is_waiting = self.unloaded.is_waiting();
                next_ns =
                    next_ns.min(if is_waiting { now_ns + AWAIT_START_NS } else { self.unloaded.until_ns });
            }
            Stage::AwaitingStart => {
                self.step_awaiting_start(now_ns);
                // The first connections may be due with the schedule.
                next_ns = next_ns.min(self.step_connections(now_ns));
            }
            Stage::Running => next_ns = next_ns.min(self.step_running(now_ns)),
            Stage::Finished => {}
        }
        if self.stage == Stage::AwaitingStart {
            next_ns = next_ns.min(now_ns + AWAIT_START_NS);
        }
        // With an opening schedule, connections of the preload are closed when it begins.
        let is_unsettled = self.close_retired(now_ns);
        self.timers_ns = if is_unsettled { now_ns } else { next_ns };
    }

    /// May the stage be over, so that [`Worker::run_timers`] must run?
    #[inline]
    fn is_stage_over(&self, now_ns: u64) -> bool {
        match self.stage {
            Stage::Running => {
                self.traffic.in_flight() == 0 && (now_ns >= self.traffic.window.end_ns || self.is_quiet())
            }
            Stage::Preloading => self.is_quiet(),
            Stage::Unloaded => !self.unloaded.is_waiting() && self.traffic.in_flight() == 0,
            Stage::Connecting | Stage::AwaitingStart | Stage::Finished => false,
        }
    }

    /// Is nothing in flight or waiting, and nothing due without a further event?
    #[inline]
    fn is_quiet(&self) -> bool {
        self.traffic.in_flight() == 0 && self.traffic.dispatch.is_idle() && self.traffic.backlog() == 0
    }

    // ---- connections ------------------------------------------------------------------------------------------------

    /// Opens, times out and retires connections that are due. Returns when the next one is.
    fn step_connections(&mut self, now_ns: u64) -> u64 {
        if self.stage == Stage::Running && now_ns >= self.traffic.window.end_ns && self.traffic.backlog() == 0
        {
            // Nothing is left to send.
            return u64::MAX;
        }
        let next_open_ns = self.traffic.connections.open_due(now_ns);
        while let Some((index, due_ns)) = self.traffic.connections.timers.first() {
            if due_ns > now_ns {
                return due_ns.min(next_open_ns);
            }
            match self.traffic.connections[index].state {
                ConnectionState::Up => self.traffic.retire(index),
                ConnectionState::Idle | ConnectionState::Gone => {
                    self.traffic.connections.timers.set(index, u64::MAX)
                }
                // It may be established: a poll since then will tell.
                ConnectionState::Connecting { .. } if self.io.seen_ns(index) < due_ns => {
                    return due_ns.min(next_open_ns);
                }
                ConnectionState::Connecting { .. } => self.time_out_attempt(index, now_ns),
                ConnectionState::Down { .. }
                    if self.connecting < CONNECTING_MAX
                        || self.traffic.connections.lifetimes_of(index).opens_by_schedule() =>
                {
                    self.connect(index, now_ns);
                }
                // A completion makes room and runs the timers again; so does the timeout of an attempt, which is
                // queued behind those that wait for room.
                ConnectionState::Down { .. } if now_ns < self.attempt_deadline_ns => {
                    return next_open_ns.min(self.attempt_deadline_ns);
                }
                ConnectionState::Down { .. } => {
                    self.time_out_attempts(now_ns);
                    if self.connecting >= CONNECTING_MAX {
                        return next_open_ns.min(self.attempt_deadline_ns);
                    }
                }
            }
        }
        next_open_ns
    }

    /// Times out an attempt to connect: the kernel alone would try for minutes.
    fn time_out_attempt(&mut self, index: u32, now_ns: u64) {
        self.io.close(index, CloseMode::Reset);
        self.connecting -= 1;
        self.attempt_failed(index, libc::ETIMEDOUT, FaultKind::TimedOut, now_ns);
    }

    /// Times out all overdue attempts, and finds the next deadline.
    fn time_out_attempts(&mut self, now_ns: u64) {
        self.attempt_deadline_ns = u64::MAX;
        for index in 0..self.traffic.connections.all.len() as u32 {
            if let ConnectionState::Connecting { began_ns } = self.traffic.connections[index].state {
                let deadline_ns = began_ns + self.attempt_ns();
                if deadline_ns <= self.io.seen_ns(index).min(now_ns) {
                    self.time_out_attempt(index, now_ns);
                } else {
                    self.attempt_deadline_ns = self.attempt_deadline_ns.min(deadline_ns);
                }
            }
        }
    }

    /// Opens a connection, if the plan's total permits.
    fn connect(&mut self, index: u32, now_ns: u64) {
        if !self.traffic.connections.lifetimes_of_mut(index).reserve() {
            self.traffic.connections[index].state = ConnectionState::Gone;
            self.traffic.connections.timers.set(index, u64::MAX);
            return;
        }
        let phase = self.traffic.phase_now(now_ns);
        self.traffic.recording.set.connection(phase, ConnectionEvent::Begun);
        self.try_address(index, now_ns);
    }

    /// Tries the next address.
    fn try_address(&mut self, index: u32, now_ns: u64) {
        let connection = &mut self.traffic.connections[index];
        let Endpoint { addresses, tls, .. } = &self.endpoints[usize::from(connection.server)];
        let address = &addresses[connection.address % addresses.len()];
        connection.state = ConnectionState::Connecting { began_ns: now_ns };
        connection.has_begun_setup = false;
        let deadline_ns = now_ns + self.attempt_ns();
        self.traffic.connections.timers.set(index, deadline_ns);
        match self.io.connect(index, address, tls.as_ref(), self.traffic.stamper.is_stamped(index)) {
            Ok(()) => {
                self.connecting += 1;
                self.attempt_deadline_ns = self.attempt_deadline_ns.min(deadline_ns);
            }
            Err(errno) => self.connect_failed(index, errno, now_ns),
        }
    }

    /// Makes a connection usable.
    fn established(&mut self, index: u32, at_ns: u64) {
        self.connecting -= 1;
        if let Some(handshake_ns) = self.io.handshake_ns(index) {
            self.traffic.recording.meter(MeterKind::HandshakeTime, handshake_ns);
        }
        let connection = &mut self.traffic.connections[index];
        self.reached += u32::from(!std::mem::replace(&mut connection.was_up, true));
        self.traffic.connected(index, at_ns);
        self.timers_ns = at_ns;
    }

    /// A failed send in setup ends the attempt.
    #[inline]
    fn note_setup_send(&mut self, was_in_setup: bool, index: u32, at_ns: u64) {
        if was_in_setup && let Some(errno) = self.traffic.connections.take_setup_send_error() {
            self.connecting -= 1;
            self.connect_failed(index, errno, at_ns);
        }
    }

    /// Continues a connection setup after received bytes, or ends it after malformed ones.
    #[cold]
    fn continue_setup(&mut self, index: u32, received: Result<(), ()>, at_ns: u64) {
        let status = self.traffic.connections.take_setup_status(index);
        let reason = match (received, status) {
            (Ok(()), SetupStatus::Pending) => return,
            (Ok(()), SetupStatus::Accepted) => return self.established(index, at_ns),
            (_, SetupStatus::Rejected(reason)) => reason,
            (Err(()), _) => self
                .traffic
                .recording
                .counts
                .first_malformed
                .as_ref()
                .map(describe_malformed)
                .unwrap_or_default(),
        };
        self.connecting -= 1;
        let connection = &self.traffic.connections[index];
        if self.stage == Stage::Connecting && !connection.was_up {
            self.fail_run(connection.server, ServerFailure::SetupRejected, reason);
        }
        if received.is_ok() {
            self.traffic.fail_connection(index, at_ns, FaultKind::SetupRejected, OutcomeClass::Lost);
        }
        self.io.close(index, CloseMode::Reset);
        self.timers_ns = at_ns;
    }

    /// Handles a failed attempt: the next address next, and the end of the run after the last one of the first
    /// round.
    fn connect_failed(&mut self, index: u32, errno: i32, at_ns: u64) {
        self.attempt_failed(index, errno, fault_of_errno(errno), at_ns);
    }

    fn attempt_failed(&mut self, index: u32, errno: i32, fault: FaultKind, at_ns: u64) {
        let counts_attempts = self.traffic.connections.lifetimes_of(index).counts_attempts;
        let connection = &mut self.traffic.connections.all[index as usize];
        connection.address += 1;
        let server = connection.server;
        let is_first_round = self.stage == Stage::Connecting && !connection.was_up;
        // A Unix socket with a full queue fails at once, where TCP would send its SYN again. The clock began with
        // the run.
        let is_queue_full = errno == libc::EAGAIN && at_ns < self.plan.timeout.0;
        let has_another = connection.address < self.endpoints[usize::from(server)].addresses.len();
        if counts_attempts && has_another && !connection.was_up {
            // An attempt is one at a name, over all of its addresses.
            self.try_address(index, at_ns);
        } else if is_first_round && (is_queue_full || has_another) {
            // The next address of the name, at once and without a fault.
            let retry_ns = if is_queue_full { at_ns + FULL_QUEUE_RETRY_NS } else { at_ns };
            connection.state = ConnectionState::Down { retry_ns };
            self.traffic.connections.timers.set(index, retry_ns);
            let phase = self.traffic.phase_now(at_ns);
            self.traffic.recording.set.connection(phase, ConnectionEvent::Failed);
        } else {
            if is_first_round {
                let (failure, reason) = match self.traffic.connections.unanswered_setup_step(index) {
                    Some(step) => (ServerFailure::NoReply, self.no_reply_reason(step, errno)),
                    None => (ServerFailure::Unreachable, io::Error::from_raw_os_error(errno).to_string()),
                };
                self.fail_run(server, failure, reason);
            }
            self.note_tls_refusal(index);
            self.traffic.fail_connection(index, at_ns, fault, OutcomeClass::Lost);
        }
        self.timers_ns = at_ns;
    }

    /// How an established connection ended without an answer to this step.
    fn no_reply_reason(&self, step: &str, errno: i32) -> String {
        match errno {
            libc::ETIMEDOUT => {
                format!("to {step} within {}", DurationNs(self.attempt_ns()))
            }
            libc::ECONNRESET => format!("to {step}: connection closed"),
            errno => format!("to {step}: {}", io::Error::from_raw_os_error(errno)),
        }
    }

    /// Fails the run if a server cannot be used over TLS before the schedule begins. It may reject the client's
    /// certificate only after the client's handshake: so also later, as long as no server has answered, after as
    /// many rejections as connections. A connection that ends in its handshake is a network failure, except for the
    /// first ones.
    fn note_tls_refusal(&mut self, index: u32) {
        let Some(error) = self.io.connection_error(index) else { return };
        let connection = &self.traffic.connections[index];
        let is_the_end = match self.stage {
            Stage::Connecting if !connection.was_up => true,
            Stage::Connecting | Stage::Preloading | Stage::Unloaded => error.is_answer,
            Stage::AwaitingStart | Stage::Running => {
                let has_answered = self.traffic.servers.iter().any(Health::has_answered);
                self.refusals += u32::from(error.is_answer && !has_answered);
                self.refusals as usize >= self.traffic.connections.all.len()
            }
            Stage::Finished => false,
        };
        if is_the_end {
            let (server, reason) = (connection.server, error.words.clone());
            self.fail_run(server, ServerFailure::TlsFailed, reason);
        }
    }

    /// Fails the run for a server.
    fn fail_run(&mut self, server: u16, failure: ServerFailure, reason: String) {
        let server = self.endpoints[usize::from(server)].server.clone();
        self.notice = Some(Notice::Failed(RunError::Server { failure, server, reason }));
    }

    // ---- phases -----------------------------------------------------------------------------------------------------

    fn step_connecting(&mut self) {
        // Not all at the same time: a server may accept fewer at a time.
        if self.reached as usize == self.traffic.connections.all.len() {
            let lanes = std::mem::take(&mut self.preload_lanes);
            self.stage = Stage::Preloading;
            let (now_ns, is_prepared) = (self.io.now_ns(), lanes.is_empty());
            self.traffic.install(lanes);
            self.stored = (0, now_ns);
            self.traffic.servers.iter_mut().for_each(|server| server.last_up_ns = now_ns);
            if is_prepared {
                self.end_preload();
            }
        }
    }

    fn step_preloading(&mut self, now_ns: u64) {
        self.hand_over_early(now_ns);
        self.traffic.resume_preloads(now_ns);
        let sessions = || self.traffic.dispatch.lanes.iter().map(|lane| &lane.session);
        let confirmed = sessions().map(Session::confirmed).sum();
        if confirmed != self.stored.0 || sessions().any(Session::awaits_pace) {
            self.stored = (confirmed, now_ns);
        }
        // Behind the limit of a server that is silent, which says more.
        let success_limit_ns = self.plan.timeout.0.max(SILENT_SERVER_NS);
        let is_stuck = now_ns.saturating_sub(self.stored.1) > success_limit_ns + INTERVAL_NS;
        let is_lost = self.count_down_servers(now_ns) > 0;
        // Another program may accept every connection and close it.
        let connections = &self.traffic.connections.all;
        let cannot_finish = confirmed == 0
            && connections.iter().all(|connection| connection.failures >= PRELOAD_FAILURES_MAX);
        let has_failed = self.traffic.dispatch.lanes.iter().any(|lane| lane.session.failed());
        if let Some((server, reply_limit_ns)) = self.silent_server(now_ns) {
            let reason = format!("to any request for {}", DurationNs(reply_limit_ns));
            self.fail_run(server, ServerFailure::NoReply, reason);
        } else if is_lost || cannot_finish || has_failed {
            self.notice = Some(Notice::Failed(RunError::preload_failed(String::new())));
        } else if self.traffic.is_finished() {
            return self.end_preload();
        } else if is_stuck {
            let reason = format!("no key was stored for {}", DurationNs(success_limit_ns));
            self.notice = Some(Notice::Failed(RunError::preload_failed(reason)));
        } else {
            return;
        }
        self.stage = Stage::AwaitingStart;
    }

    /// Goes on to the requests that are asked one at a time, or waits for the start.
    fn end_preload(&mut self) {
        self.orders.loaded.fetch_add(1, Ordering::AcqRel);
        match self.unloaded.is_waiting() {
            true => self.stage = Stage::Unloaded,
            false => self.await_start(),
        }
    }

    /// Notes the request that has ended, and waits for the start when there are no more.
    fn step_unloaded(&mut self, now_ns: u64) {
        self.hand_over_early(now_ns);
        if self.unloaded.is_waiting() {
            // Until every worker of this host has stored its keys, there is load, and there may be misses.
            let loaded = self.orders.loaded.load(Ordering::Acquire);
            if let Some(lanes) = self.unloaded.begin(now_ns, loaded, self.traffic.recording.last) {
                self.traffic.install(lanes);
            }
            return;
        }
        let is_up = self.traffic.connections.all.iter().all(|connection| connection.failures == 0);
        if is_up && self.traffic.in_flight() == 0 {
            self.unloaded.note(self.traffic.recording.last);
        }
        if !is_up || self.unloaded.until_ns <= now_ns {
            self.unloaded.until_ns = u64::MAX;
            self.traffic.end_unloaded(now_ns);
        }
        if self.traffic.is_finished() {
            self.await_start();
        }
    }

    /// Time limit for a server to answer before the schedule.
    fn reply_limit_ns(&self) -> u64 {
        if self.plan.timeout.0 > TIMEOUT_USUAL_NS { self.plan.timeout.0 } else { SILENT_SERVER_NS }
    }

    /// Time limit of an attempt to connect, with its connection setup.
    fn attempt_ns(&self) -> u64 {
        match self.stage {
            Stage::Connecting => self.plan.connect_timeout.0.min(self.reply_limit_ns()),
            _ => self.plan.connect_timeout.0,
        }
    }

    /// A server that exceeded its time limit, and the limit.
    fn silent_server(&self, now_ns: u64) -> Option<(u16, u64)> {
        let reply_limit_ns = self.reply_limit_ns();
        let asked_before = |at_ns: u64| at_ns.checked_sub(reply_limit_ns);
        self.traffic.silent_server(asked_before(now_ns)?)?;
        let server = self.traffic.silent_server(asked_before(self.seen_ns())?)?;
        Some((server, reply_limit_ns))
    }

    /// All that came in by this instant was read.
    fn seen_ns(&self) -> u64 {
        (0..self.traffic.connections.all.len() as u32)
            .map(|index| self.io.seen_ns(index))
            .min()
            .unwrap_or(u64::MAX)
    }

    /// Reports the end of the preparation. Retransmits are read now, where reading every connection takes no
    /// measured time.
    fn await_start(&mut self) {
        self.notice = Some(Notice::Prepared);
        self.stage = Stage::AwaitingStart;
        self.retransmits = self.io.retransmits();
    }

    /// Number of servers without a connection for too long.
    fn count_down_servers(&mut self, now_ns: u64) -> usize {
        let reply_limit_ns = self.plan.timeout.0.max(SERVER_DOWN_NS);
        for server in self.traffic.servers.iter_mut().filter(|server| server.up > 0) {
            server.last_up_ns = now_ns;
        }
        // Without a failed attempt, connections are rare by plan.
        let is_gone = |server: &&Health| {
            server.prober.is_some() && self.traffic.has_waited(server.last_up_ns, reply_limit_ns, now_ns)
        };
        self.traffic.servers.iter().filter(is_gone).count()
    }

    /// Hands over intervals before the schedule, for progress.
    fn hand_over_early(&mut self, now_ns: u64) {
        if now_ns >= self.interval_end_ns && self.hand_over(now_ns) {
            self.interval_end_ns = now_ns + INTERVAL_NS;
        }
    }

    fn hand_over(&mut self, now_ns: u64) -> bool {
        let (meter, waited_ns) = (&mut self.time_meter, self.waiting.total_ns);
        self.traffic.recording.hand_over(now_ns, || meter.take(waited_ns))
    }

    fn step_awaiting_start(&mut self, now_ns: u64) {
        let start_ns = self.orders.start_ns.load(Ordering::Acquire);
        let Some(make_lanes) = self.make_lanes.take_if(|_| start_ns != 0) else { return };
        let measure_ns = start_ns + self.plan.warmup.longest().0;
        let end_ns = self.end_ns(measure_ns);
        let window = PhaseTimes { start_ns, measure_ns, end_ns };
        // The preload's recording ends here; the first interval of the schedule begins at its start.
        self.hand_over(now_ns);
        self.traffic.window = window;
        self.traffic.recording.set_window(measure_ns, end_ns);
        let mut lanes = make_lanes(window);
        for lane in &mut lanes.lanes {
            lane.feed = self.feeds.get_mut(usize::from(lane.session.class())).and_then(Iterator::next);
        }
        self.traffic.install(lanes);
        self.traffic.begin_audits(start_ns);
        self.traffic.begin_lifetimes(start_ns);
        self.interval_end_ns = start_ns;
        self.traffic.servers.iter_mut().for_each(|server| server.last_up_ns = start_ns);
        self.stage = Stage::Running;
        self.read_stamp_clock(now_ns);
        self.usage.start(now_ns, window.measure_ns, self.loop_counters());
        self.awaits_window = self.plan.warmup == Warmup::Auto;
    }

    /// The end of a window that begins then, if time ends it.
    fn end_ns(&self, measure_ns: u64) -> u64 {
        self.plan.stop.time.map_or(u64::MAX, |time| measure_ns + time.0)
    }

    /// Moves the start of the window to the ordered time, which is never later than its latest start.
    fn poll_window_start(&mut self, now_ns: u64) {
        let measure_ns = self.orders.measure_ns.load(Ordering::Acquire);
        let window = self.traffic.window;
        // An end before the window stands.
        let is_over = now_ns >= window.measure_ns.min(window.end_ns);
        if measure_ns != 0 && !is_over {
            let end_ns = self.end_ns(measure_ns);
            self.traffic.begin_window(PhaseTimes { measure_ns, end_ns, ..window });
            self.traffic.recording.open_window(measure_ns, end_ns, now_ns);
            self.usage.begin_ns = measure_ns;
            // Timers of the old times are reset.
            self.timers_ns = now_ns;
        }
        self.awaits_window = measure_ns == 0 && !is_over;
    }

    /// Handles intervals, the end of the window and of the drain. Returns when the next of them is due.
    fn step_running(&mut self, now_ns: u64) -> u64 {
        if now_ns >= self.interval_end_ns && self.hand_over(now_ns) {
            while self.interval_end_ns <= now_ns {
                self.interval_end_ns += INTERVAL_NS;
            }
        }
        let interval_ns = self.interval_end_ns.max(now_ns + HAND_OVER_RETRY_NS);
        if self.orders.stop.load(Ordering::Relaxed) && !std::mem::replace(&mut self.is_stopped, true) {
            self.stop(now_ns);
        }
        self.read_stamp_clock(now_ns);
        // Without a server, a number of requests would never be reached; after the last connection nothing can
        // follow. Replicas can replace each other.
        let dispensable =
            if self.traffic.dispatch.has_replicas() { self.traffic.servers.len() - 1 } else { 0 };
        let cannot_finish = self.plan.stop.time.is_none()
            && (self.count_down_servers(now_ns) > dispensable || self.traffic.is_stranded());
        let has_no_client = self.traffic.has_no_client();
        if (cannot_finish || has_no_client || self.traffic.connections.are_over())
            && now_ns < self.traffic.window.end_ns
        {
            self.traffic.recording.counts.workers_cut_off += u64::from(has_no_client);
            self.traffic.end_at(now_ns);
            self.traffic.recording.end_window(now_ns);
            self.is_cut_off = true;
        }
        let window = self.traffic.window;
        self.usage.read_if_due(now_ns, window.end_ns, self.loop_counters());
        self.sample_colocation(now_ns);
        if now_ns >= window.end_ns && self.drain_end_ns == u64::MAX {
            self.drain_end_ns = window.end_ns.saturating_add(self.plan.drain.0);
        }
        let is_over = match window.end_ns {
            u64::MAX => self.traffic.is_finished(),
            end_ns => {
                let is_over = self.is_quiet() || self.is_cut_off && self.traffic.in_flight() == 0;
                let is_drained = || now_ns >= self.drain_end_ns && self.seen_ns() >= self.drain_end_ns;
                now_ns >= end_ns && (is_over || is_drained())
            }
        };
        // A window by time keeps its length after the last reply; one with a number of requests as well ends with
        // the first of both.
        let is_complete = window.end_ns != u64::MAX && self.traffic.is_finished();
        if is_over || is_complete && self.traffic.dispatch.has_spent_budgets() {
            self.finish(now_ns);
        }
        let end_ns = if now_ns < window.end_ns { window.end_ns } else { self.drain_end_ns };
        interval_ns.min(end_ns).min(self.usage.next_ns())
    }

    /// Samples whether a local server sends from this worker's CPU, one connection at a time.
    fn sample_colocation(&mut self, now_ns: u64) {
        let window = self.traffic.window;
        if now_ns < self.colocation_ns || !(window.measure_ns..window.end_ns).contains(&now_ns) {
            return;
        }
        self.colocation_ns = now_ns + ORDERS_POLL_NS;
        if let Some(is_shared) = self.io.shares_cpu(self.colocation_index) {
            self.colocation.looks += 1;
            self.colocation.shared += u64::from(is_shared);
        }
        self.colocation_index = (self.colocation_index + 1) % self.traffic.connections.all.len() as u32;
    }

    /// Reads the wall clock, if timestamps wait for it.
    fn read_stamp_clock(&mut self, now_ns: u64) {
        if self.traffic.stamper.is_window_over(now_ns) {
            let reading = self.io.wall();
            self.traffic.end_stamp_window(reading);
        }
    }

    /// Ends the window, or the drain after it, by order.
    fn stop(&mut self, now_ns: u64) {
        if now_ns < self.traffic.window.end_ns {
            self.traffic.end_at(now_ns);
            self.traffic.recording.end_window(now_ns);
        } else {
            self.drain_end_ns = now_ns;
        }
    }

    fn loop_counters(&self) -> LoopCounters {
        LoopCounters { syscalls: self.io.syscalls(), waited_ns: self.waiting.total_ns }
    }

    fn finish(&mut self, now_ns: u64) {
        self.drained_ns = now_ns;
        // The last iteration may be the late one.
        self.end_iteration(now_ns);
        // A window by number of requests lasts until the last reply, whatever its time limit.
        self.traffic.window.end_ns = self.traffic.window.end_ns.min(now_ns);
        // Twice, if the only iteration came after the window.
        for _ in 0..2 {
            self.usage.read_if_due(now_ns, now_ns, self.loop_counters());
        }
        self.traffic.close_accounts(now_ns);
        self.retransmits = self.io.retransmits() - self.retransmits;
        if self.traffic.stamper.is_on() {
            let reading = self.io.wall();
            self.traffic.end_stamps(reading);
        }
        self.stage = Stage::Finished;
    }

    /// Returns the results after the last iteration.
    pub(crate) fn end(mut self) -> WorkerEnd {
        let (now_ns, counts_wake_ups) = (self.io.now_ns(), self.counts_wake_ups());
        let worker_time = self.time_meter.take(self.waiting.total_ns);
        let (last, mut counts, samples) = self.traffic.recording.end(now_ns, worker_time);
        counts.stamps = self.traffic.stamper.counts();
        counts.redirections = self.traffic.slots.map(SlotTable::end).unwrap_or_default();
        let PhaseTimes { start_ns, measure_ns, end_ns } = self.traffic.window;
        let mut usage = self.usage.total();
        (usage.wait, usage.counts_wake_ups) = (self.pace.wait().name().to_owned(), counts_wake_ups);
        for worker in &mut usage.workers {
            (worker.colocation, worker.stalls) = (self.colocation, self.stalls);
        }
        let data = RunData {
            samples,
            times: RunTimes {
                start_ns,
                measure_ns,
                end_ns,
                drained_ns: self.drained_ns,
                ..RunTimes::default()
            },
            counts,
            usage,
            host: HostEvidence { retransmits: self.retransmits, ..HostEvidence::default() },
            unloaded_service_ns: self.unloaded.median_ns(),
            ..RunData::default()
        };
        WorkerEnd { last, rejection: self.traffic.rejection, confirmed: self.stored.0, data }
    }
}
