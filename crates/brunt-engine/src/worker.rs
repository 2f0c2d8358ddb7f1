//! The event loop: wait, take what came in, send what is due, tend to the rest. The only loop there is.
//!
//! Protocol and kernel interface are types, everything else is data: open loop, closed loop and preload differ only in
//! what the sessions answer, phases only in which sessions are installed. Invariant: between the first turn of the
//! warm-up and the last of the drain, nothing is allocated, locked or logged here.

pub(crate) mod pace;
pub(crate) mod usage;

use crate::hint::describe_malformed;
use crate::io::{Chunk, CloseMode, Completion, CompletionKind, Io, SendResult, Until};
use crate::run_error::RunError;
use crate::state::connection::{ConnectionState, fault_of_errno};
use crate::state::hash_slots::SlotTable;
use crate::state::health::Health;
use crate::state::lane::Lanes;
use crate::state::recording::Filled;
use crate::state::trace_feed::Feeds;
use crate::traffic::connection_setup::{SetupRejected, SetupStatus};
use crate::traffic::{Traffic, Window};
use crate::transport::endpoint::Endpoint;
use crate::worker::pace::Pace;
use crate::worker::usage::{LoopCounters, ThreadUsage, Waiting};
use brunt_plan::outcome::OutcomeClass;
use brunt_plan::plan::MeterKind;
use brunt_plan::units::DurationNs;
use brunt_plan::warmup::Warmup;
use brunt_proto::Codec;
use brunt_stats::connection::ConnectionEvent;
use brunt_stats::fault::FaultKind;
use brunt_stats::sample::Sample;
use brunt_stats::usage::{Colocation, STALL_MIN_NS, StallCounts};
use brunt_stats::worker_counts::WorkerCounts;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// The stop flag is looked at no less often than this.
const ORDERS_POLL_NS: u64 = 20_000_000;
/// While the start is awaited, the loop looks for it this often.
const AWAIT_START_NS: u64 = 500_000;
/// Connections being established at a time, so that a server's backlog is not overrun.
const CONNECTING_MAX: u32 = 128;
/// When the other set was not back in time, a hand-over is tried again after this.
const HAND_OVER_RETRY_NS: u64 = 1_000_000;
/// While nothing but the queue of a Unix socket keeps a run from beginning, it is asked this often.
const FULL_QUEUE_RETRY_NS: u64 = 1_000_000;
/// However short the time-out, a server may restart in this time: several attempts fit in, the last a second apart.
const SERVER_DOWN_NS: u64 = 5_000_000_000;
/// A server that takes connections and has answered nothing for this long while it is preloaded will not: its user is told before the
/// usual time-out of a request…
const SILENT_SERVER_NS: u64 = 8_000_000_000;
/// …unless that is longer than usual.
const TIMEOUT_USUAL_NS: u64 = 10_000_000_000;
/// Connections that failed so often in a row, without a single reply, will not preload anything.
const PRELOAD_FAILURES_MAX: u32 = 5;
/// A set of histograms is handed over this often.
pub(crate) const INTERVAL_NS: u64 = 100_000_000;

/// What the control thread tells all workers.
#[derive(Debug, Default)]
pub(crate) struct Orders {
    /// When the schedule starts on the shared clock; 0 while it is not known.
    pub start_ns: AtomicU64,
    /// When the measured window begins, where the plan leaves that open; 0 while it is not known. Given before that time, so
    /// that every worker knows it when it takes the first operation that is measured.
    pub measure_ns: AtomicU64,
    /// End the schedule now, drain and report.
    pub stop: AtomicBool,
    /// Leave at once; nothing will be reported.
    pub abort: AtomicBool,
}

/// What a worker tells the control thread before the schedule starts.
#[derive(Debug)]
pub(crate) enum Notice {
    /// Every connection stands and every key is confirmed.
    Prepared {
        /// Keys confirmed by this worker.
        confirmed: u64,
    },
    /// There will be nothing to report.
    Failed(RunError),
}

/// The times of the plan that a worker needs.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PhaseTimes {
    /// From sent to given up.
    pub timeout_ns: u64,
    /// From beginning to connect to giving that up.
    pub connect_timeout_ns: u64,
    pub warmup: Warmup,
    /// Length of the measured window; `None`: until the sessions are exhausted.
    pub time_ns: Option<u64>,
    pub drain_ns: u64,
}

/// Builds the lanes of the schedule once its times are known.
pub(crate) type MakeLanes = Box<dyn FnOnce(Window) -> Lanes + Send>;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    Connecting,
    Preloading,
    AwaitingStart,
    Running,
    Finished,
}

/// What remains of a worker.
pub(crate) struct WorkerEnd {
    /// The last set of histograms.
    pub last: Filled,
    /// What was counted beside.
    pub counts: WorkerCounts,
    /// Raw samples, where the plan asks for them.
    pub samples: Vec<Sample>,
    pub window: Window,
    /// When the last operation ended or was given up.
    pub drained_ns: u64,
    /// Use of the processor over the measured window.
    pub usage: ThreadUsage,
    pub colocation: Colocation,
    /// Turns of the loop that took too long.
    pub stalls: StallCounts,
    /// Segments sent again since the start was awaited.
    pub retransmits: u64,
    pub wait: brunt_plan::plan::Wait,
}

/// One thread's loop.
pub(crate) struct Worker<C: Codec, I: Io> {
    io: I,
    traffic: Traffic<C>,
    pace: Pace,
    stage: Stage,
    phase_times: PhaseTimes,
    orders: Arc<Orders>,
    /// Where connections to each server may go to.
    endpoints: Vec<Endpoint>,
    connecting: u32,
    /// No attempt under way takes too long before this.
    attempt_deadline_ns: u64,
    /// Connections that have been up at least once, or are not awaited.
    reached: u32,
    preload_lanes: Lanes,
    make_lanes: Option<MakeLanes>,
    /// By class, until the lanes of the schedule have them.
    feeds: Feeds,
    notice: Option<Notice>,
    /// The window begins when that is ordered, or when the warm-up has taken as long as it may.
    awaits_window: bool,
    /// Something that was due found no room before its connection had sent: it has now.
    needs_flush: bool,
    /// The next time anything but a schedule or a socket wants attention.
    timers_ns: u64,
    expire_ns: u64,
    interval_end_ns: u64,
    drain_end_ns: u64,
    drained_ns: u64,
    /// What waits can never be sent.
    is_cut_off: bool,
    /// Connections of TLS that were refused since the start was awaited, before any reply had come.
    refusals: u32,
    /// The user's wish for an end has been followed.
    is_stopped: bool,
    waiting: Waiting,
    /// When the loop last woke, or was to wake by its timer if that was earlier.
    iteration_start_ns: u64,
    stalls: StallCounts,
    /// Until the end: how many there were when the start was awaited.
    retransmits: u64,
    colocation: Colocation,
    /// The connection to look at next, and when.
    colocation_index: u32,
    colocation_ns: u64,
    usage: ThreadUsage,
}

/// What a [`Worker`] is made of.
pub(crate) struct WorkerParts<C: Codec, I: Io> {
    pub io: I,
    pub traffic: Traffic<C>,
    pub pace: Pace,
    pub phase_times: PhaseTimes,
    pub orders: Arc<Orders>,
    pub endpoints: Vec<Endpoint>,
    pub preload_lanes: Lanes,
    pub make_lanes: MakeLanes,
}

impl<C: Codec, I: Io> Worker<C, I> {
    pub(crate) fn new(parts: WorkerParts<C, I>) -> Self {
        assert!(parts.endpoints.iter().all(|server| !server.addresses.is_empty()), "a server has an address");
        // Where attempts are counted, none is made before the schedule begins.
        let not_awaited =
            parts.traffic.connections.iter().filter(|connection| connection.state == ConnectionState::Idle);
        let reached = not_awaited.count() as u32;
        Self {
            io: parts.io,
            traffic: parts.traffic,
            pace: parts.pace,
            stage: Stage::Connecting,
            phase_times: parts.phase_times,
            orders: parts.orders,
            endpoints: parts.endpoints,
            connecting: 0,
            attempt_deadline_ns: u64::MAX,
            reached,
            preload_lanes: parts.preload_lanes,
            make_lanes: Some(parts.make_lanes),
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
            iteration_start_ns: u64::MAX,
            stalls: StallCounts::default(),
            retransmits: 0,
            colocation: Colocation::default(),
            colocation_index: 0,
            colocation_ns: 0,
            usage: ThreadUsage::default(),
        }
    }

    /// The same, whose classes with a trace have it from here.
    pub(crate) fn with_feeds(mut self, feeds: Feeds) -> Self {
        self.feeds = feeds;
        self
    }

    /// Is there another turn to take?
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

    /// Something the control thread must know; at most one a turn.
    pub(crate) fn take_notice(&mut self) -> Option<Notice> {
        self.notice.take()
    }

    /// One turn of the loop.
    pub(crate) fn run_once(&mut self) {
        let mut now_ns = self.wait();
        if self.awaits_window {
            self.poll_window_start(now_ns);
        }
        // Reads before sends: a read takes a fifth of a send, so that whoever waits, waits less in this order.
        if self.handle_completions() {
            self.waiting.came_in();
            now_ns = self.io.now_ns();
            if self.awaits_window {
                // It may have been ordered meanwhile; what is picked now is due no later than now.
                self.poll_window_start(now_ns);
            }
        }
        self.needs_flush = self.traffic.dispatch_due(now_ns);
        let flushed = self.traffic.flush(&mut self.io, now_ns);
        now_ns = flushed.now_ns;
        if self.needs_flush || flushed.awaits_results {
            self.io.submit();
            self.handle_completions();
            now_ns = self.io.now_ns();
        }
        self.close_retired(now_ns);
        if now_ns >= self.timers_ns || self.traffic.take_any_lost() || self.is_stage_over(now_ns) {
            self.run_timers(now_ns);
        }
    }

    /// Takes in everything that happened. Returns whether anything did.
    #[inline]
    fn handle_completions(&mut self) -> bool {
        let mut any = false;
        while let Some(completion) = self.io.next() {
            self.complete(completion);
            any = true;
        }
        any
    }

    /// Closes every connection that has lived. Returns whether there was one.
    #[inline]
    fn close_retired(&mut self, now_ns: u64) -> bool {
        let mut any = false;
        while let Some(link) = self.traffic.take_retired() {
            self.io.close(link, CloseMode::Orderly);
            self.traffic.finish_retired(link, now_ns);
            any = true;
        }
        any
    }

    /// Waits for the next thing to do. Returns the clock.
    #[inline]
    fn wait(&mut self) -> u64 {
        let now_ns = self.io.now_ns();
        self.end_iteration(now_ns);
        let (mut due_ns, mut timer_ns) = (u64::MAX, self.timers_ns);
        if let Some((lane, at_ns)) = self.traffic.deadlines.first() {
            // Only an open loop's deadlines are worth spinning for.
            match self.traffic.lanes[lane as usize].session.is_open() {
                true => due_ns = at_ns,
                false => timer_ns = timer_ns.min(at_ns),
            }
        }
        // What could not be queued can be now. The look in between is what keeps replies from lying there while more is due
        // than can be sent.
        let until = if self.needs_flush { Until::Now } else { self.pace.until(now_ns, due_ns, timer_ns) };
        let is_idle = !self.needs_flush && due_ns.min(timer_ns) > now_ns;
        self.waiting.enter(now_ns, until == Until::Now && is_idle);
        let woke_ns = self.io.wait(now_ns, until);
        self.iteration_start_ns = now_ns;
        if let Until::Instant(at_ns) = until {
            self.iteration_start_ns = woke_ns;
            if woke_ns >= at_ns {
                self.note_oversleep(at_ns, woke_ns);
            }
        }
        woke_ns
    }

    /// A sleep has ended by its timer.
    #[inline(never)]
    fn note_oversleep(&mut self, at_ns: u64, woke_ns: u64) {
        self.iteration_start_ns = at_ns;
        self.pace.observe(woke_ns - at_ns);
        if self.stage == Stage::Running {
            self.traffic.recording.meter(MeterKind::Oversleep, woke_ns - at_ns);
        }
    }

    /// A turn is over. One that took too long has stood still: what came meanwhile lay there, and what was due was not sent.
    #[inline]
    fn end_iteration(&mut self, now_ns: u64) {
        if now_ns.saturating_sub(self.iteration_start_ns) > STALL_MIN_NS {
            self.note_stall(now_ns);
        }
    }

    #[cold]
    fn note_stall(&mut self, now_ns: u64) {
        let Window { measure_ns, end_ns, .. } = self.traffic.window;
        self.stalls.note(self.iteration_start_ns..now_ns, measure_ns..end_ns);
    }

    /// Takes in one thing that happened.
    #[inline]
    fn complete(&mut self, completion: Completion) {
        let Completion { link, at_ns, polled_ns, kind } = completion;
        match kind {
            CompletionKind::Received(chunk) => self.receive(link, chunk, at_ns, polled_ns),
            CompletionKind::Stamped(chunk) => self.receive_stamped(link, chunk, at_ns, polled_ns),
            CompletionKind::Sent(taken) => {
                let is_in_setup = self.traffic.is_in_setup(link);
                self.traffic.handed_over(&mut self.io, link, SendResult { taken, at_ns });
                self.note_setup_send(is_in_setup, link, at_ns);
            }
            CompletionKind::Writable => {
                let is_in_setup = self.traffic.is_in_setup(link);
                self.traffic.writable(&mut self.io, link, at_ns);
                self.note_setup_send(is_in_setup, link, at_ns);
                // Others may be waiting for this connection.
                self.io.submit();
            }
            CompletionKind::Connected => match self.traffic.begin_setup(&mut self.io, link, at_ns) {
                // Others may be waiting for this connection.
                true => {
                    self.io.submit();
                    self.note_setup_send(true, link, at_ns);
                }
                false => self.established(link, at_ns),
            },
            CompletionKind::ConnectFailed(errno) => {
                self.connecting -= 1;
                self.connect_failed(link, errno, at_ns);
            }
            CompletionKind::Closed(errno) if self.traffic.is_in_setup(link) => {
                self.connecting -= 1;
                self.connect_failed(link, errno.unwrap_or(libc::ECONNRESET), at_ns);
            }
            CompletionKind::Closed(errno) => {
                self.note_tls_refusal(link);
                let fault = errno.map_or(FaultKind::ClosedByPeer, fault_of_errno);
                self.traffic.fail_connection(link, at_ns, fault, OutcomeClass::Lost);
            }
        }
    }

    /// Takes in bytes.
    #[inline(always)]
    fn receive(&mut self, link: u32, chunk: Chunk, at_ns: u64, polled_ns: u64) {
        let is_in_setup = self.traffic.is_in_setup(link);
        let bytes = self.io.bytes(chunk);
        let received = self.traffic.receive(link, bytes, at_ns, polled_ns);
        if is_in_setup {
            self.continue_setup(link, received, at_ns);
        } else if received.is_err() {
            self.io.close(link, CloseMode::Reset);
        }
    }

    /// The same of bytes that may end a reply to a request whose timestamps are awaited.
    #[inline(never)]
    fn receive_stamped(&mut self, link: u32, chunk: Chunk, at_ns: u64, polled_ns: u64) {
        let stamped = self.traffic.awaits_stamps(link);
        self.receive(link, chunk, at_ns, polled_ns);
        // Nothing is awaited any more on a connection that was lost.
        if let Some(requests_before) = stamped
            && self.traffic.ends_stamped(link, requests_before)
        {
            let stamps = self.io.stamps(link);
            self.traffic.stamper.answer(link, stamps, at_ns);
        }
    }

    /// Everything that is not per operation. Sets when it is to be called again.
    fn run_timers(&mut self, mut now_ns: u64) {
        if self.orders.abort.load(Ordering::Relaxed) {
            self.stage = Stage::Finished;
            return;
        }
        let mut next_ns = now_ns + ORDERS_POLL_NS;
        next_ns = next_ns.min(self.traffic.resume(now_ns));
        next_ns = next_ns.min(self.step_connections(now_ns));
        if self.close_retired(now_ns) {
            // The next one follows at once.
            next_ns = next_ns.min(self.step_connections(now_ns));
        }
        if now_ns >= self.expire_ns {
            // A connection that is given up takes what was not sent back to send it elsewhere: nothing may be on its way.
            self.io.submit();
            self.handle_completions();
            // What was handed over now is booked later than the instant with which this began.
            now_ns = self.io.now_ns();
            self.expire_ns = self.traffic.expire(&mut self.io, now_ns);
        }
        next_ns = next_ns.min(self.expire_ns).min(self.traffic.abandon_waiting(now_ns));
        match self.stage {
            Stage::Connecting => self.step_connecting(),
            Stage::Preloading => self.step_preloading(now_ns),
            Stage::AwaitingStart => {
                self.step_awaiting_start(now_ns);
                // The first connections may be due when the schedule begins.
                next_ns = next_ns.min(self.step_connections(now_ns));
            }
            Stage::Running => next_ns = next_ns.min(self.step_running(now_ns)),
            Stage::Finished => {}
        }
        if self.stage == Stage::AwaitingStart {
            next_ns = next_ns.min(now_ns + AWAIT_START_NS);
        }
        // Where connections are born by a schedule, those of the preload end when it begins.
        let is_unsettled = self.close_retired(now_ns);
        self.timers_ns = if is_unsettled { now_ns } else { next_ns };
    }

    /// May the stage be over, so that [`Worker::run_timers`] must look?
    #[inline]
    fn is_stage_over(&self, now_ns: u64) -> bool {
        match self.stage {
            Stage::Running => {
                self.traffic.in_flight() == 0 && (now_ns >= self.traffic.window.end_ns || self.is_quiet())
            }
            Stage::Preloading => self.is_quiet(),
            Stage::Connecting | Stage::AwaitingStart | Stage::Finished => false,
        }
    }

    /// Nothing in flight and nothing that will ever be due of itself.
    #[inline]
    fn is_quiet(&self) -> bool {
        self.traffic.in_flight() == 0
            && self.traffic.deadlines.first().is_none_or(|(_, due_ns)| due_ns == u64::MAX)
            && self.traffic.backlog() == 0
    }

    // ---- connections ------------------------------------------------------------------------------------------------

    /// Begins, gives up and ends as many connections as are due. Returns when the next one is.
    fn step_connections(&mut self, now_ns: u64) -> u64 {
        if self.stage == Stage::Running && now_ns >= self.traffic.window.end_ns && self.traffic.backlog() == 0
        {
            // Nothing is left to send.
            return u64::MAX;
        }
        let next_open_ns = self.open_due(now_ns);
        while let Some((link, due_ns)) = self.traffic.connection_timers.first() {
            if due_ns > now_ns {
                return due_ns.min(next_open_ns);
            }
            match self.traffic.connections[link as usize].state {
                ConnectionState::Up => self.traffic.retire(link),
                ConnectionState::Idle | ConnectionState::Gone => {
                    self.traffic.connection_timers.set(link, u64::MAX)
                }
                ConnectionState::Connecting { .. } => self.time_out_attempt(link, now_ns),
                ConnectionState::Down { .. }
                    if self.connecting < CONNECTING_MAX || self.is_scheduled_open(link) =>
                {
                    self.connect(link, now_ns);
                }
                // A completion makes room, and brings us back here; so does an attempt that takes too long, which stands
                // behind those that wait for room.
                ConnectionState::Down { .. } if now_ns < self.attempt_deadline_ns => {
                    return next_open_ns.min(self.attempt_deadline_ns);
                }
                ConnectionState::Down { .. } => self.time_out_attempts(now_ns),
            }
        }
        next_open_ns
    }

    /// Is this connection to be begun because its birth is due, however many are under way?
    fn is_scheduled_open(&self, link: u32) -> bool {
        self.traffic.lifetimes[usize::from(self.traffic.connections[link as usize].class)].opens_by_schedule()
    }

    /// Gives up an attempt to connect: the kernel alone would go on for minutes.
    fn time_out_attempt(&mut self, link: u32, now_ns: u64) {
        self.io.close(link, CloseMode::Reset);
        self.connecting -= 1;
        self.attempt_failed(link, libc::ETIMEDOUT, FaultKind::TimedOut, now_ns);
    }

    /// Gives up every attempt that takes too long, and finds out when the next one will.
    fn time_out_attempts(&mut self, now_ns: u64) {
        self.attempt_deadline_ns = u64::MAX;
        for link in 0..self.traffic.connections.len() as u32 {
            if let ConnectionState::Connecting { began_ns } = self.traffic.connections[link as usize].state {
                let deadline_ns = began_ns + self.attempt_ns();
                if deadline_ns <= now_ns {
                    self.time_out_attempt(link, now_ns);
                } else {
                    self.attempt_deadline_ns = self.attempt_deadline_ns.min(deadline_ns);
                }
            }
        }
    }

    /// Lets the connections whose birth is due be begun. Returns when the next birth is.
    fn open_due(&mut self, now_ns: u64) -> u64 {
        let mut next_ns = u64::MAX;
        for class in 0..self.traffic.lifetimes.len() {
            while self.traffic.lifetimes[class].next_open_ns() <= now_ns {
                let Some(link) = self.traffic.lifetimes[class].open_next() else { break };
                self.traffic.connections[link as usize].state = ConnectionState::Down { retry_ns: now_ns };
                self.traffic.connection_timers.set(link, now_ns);
            }
            next_ns = next_ns.min(self.traffic.lifetimes[class].next_open_ns());
        }
        next_ns
    }

    /// Begins a connection, if the plan has one left.
    fn connect(&mut self, link: u32, now_ns: u64) {
        let connection = &mut self.traffic.connections[link as usize];
        if !self.traffic.lifetimes[usize::from(connection.class)].reserve() {
            connection.state = ConnectionState::Gone;
            self.traffic.connection_timers.set(link, u64::MAX);
            return;
        }
        let phase = self.traffic.phase_now(now_ns);
        self.traffic.recording.connection(phase, ConnectionEvent::Begun);
        self.try_address(link, now_ns);
    }

    /// Tries the address that is next.
    fn try_address(&mut self, link: u32, now_ns: u64) {
        let connection = &mut self.traffic.connections[link as usize];
        let Endpoint { addresses, tls, .. } = &self.endpoints[usize::from(connection.server)];
        let address = &addresses[connection.address % addresses.len()];
        connection.state = ConnectionState::Connecting { began_ns: now_ns };
        connection.has_begun_setup = false;
        let deadline_ns = now_ns + self.attempt_ns();
        self.traffic.connection_timers.set(link, deadline_ns);
        match self.io.connect(link, address, tls.as_ref()) {
            Ok(()) => {
                self.connecting += 1;
                self.attempt_deadline_ns = self.attempt_deadline_ns.min(deadline_ns);
            }
            Err(errno) => self.connect_failed(link, errno, now_ns),
        }
    }

    /// A connection may be used from now on.
    fn established(&mut self, link: u32, at_ns: u64) {
        self.connecting -= 1;
        if let Some(handshake_ns) = self.io.handshake_ns(link) {
            self.traffic.recording.meter(MeterKind::HandshakeTime, handshake_ns);
        }
        let connection = &mut self.traffic.connections[link as usize];
        self.reached += u32::from(!std::mem::replace(&mut connection.was_up, true));
        self.traffic.connected(link, at_ns);
        self.timers_ns = at_ns;
    }

    /// Something was sent: of a greeting, it may have been the end of the attempt.
    #[inline]
    fn note_setup_send(&mut self, was_in_setup: bool, link: u32, at_ns: u64) {
        if was_in_setup && let Some(errno) = self.traffic.take_setup_send_error() {
            self.connecting -= 1;
            self.connect_failed(link, errno, at_ns);
        }
    }

    /// Something of the answer to a greeting has come in, or, where that is an error, something that is no answer.
    #[cold]
    fn continue_setup(&mut self, link: u32, received: Result<(), ()>, at_ns: u64) {
        let status = self.traffic.connection_setup(link);
        let reason = match (received, status) {
            (Ok(()), SetupStatus::Pending) => return,
            (Ok(()), SetupStatus::Accepted) => return self.established(link, at_ns),
            (_, SetupStatus::Rejected(SetupRejected { reason })) => reason,
            (Err(()), _) => self
                .traffic
                .recording
                .counts
                .first_garbage
                .as_ref()
                .map(describe_malformed)
                .unwrap_or_default(),
        };
        self.connecting -= 1;
        let connection = &self.traffic.connections[link as usize];
        if self.stage == Stage::Connecting && !connection.was_up {
            let server = self.endpoints[usize::from(connection.server)].server.clone();
            self.notice = Some(Notice::Failed(RunError::SetupRejected { server, reason }));
        }
        if received.is_ok() {
            self.traffic.fail_connection(link, at_ns, FaultKind::TurnedAway, OutcomeClass::Lost);
        }
        self.io.close(link, CloseMode::Reset);
        self.timers_ns = at_ns;
    }

    /// An attempt failed: the next address next time, and the end of the run if this was the last one of the first round.
    fn connect_failed(&mut self, link: u32, errno: i32, at_ns: u64) {
        self.attempt_failed(link, errno, fault_of_errno(errno), at_ns);
    }

    fn attempt_failed(&mut self, link: u32, errno: i32, fault: FaultKind, at_ns: u64) {
        let connection = &mut self.traffic.connections[link as usize];
        connection.address += 1;
        let server = connection.server;
        let is_first_round = self.stage == Stage::Connecting && !connection.was_up;
        // A Unix socket with no room in its queue says so at once, where TCP would send its SYN again; our clock began with
        // the run.
        let is_queue_full = errno == libc::EAGAIN && at_ns < self.phase_times.timeout_ns;
        let has_another = connection.address < self.endpoints[usize::from(server)].addresses.len();
        let counts_attempts = self.traffic.lifetimes[usize::from(connection.class)].counts_attempts();
        if counts_attempts && has_another && !connection.was_up {
            // An attempt is one at a name, whichever address of it answers.
            self.try_address(link, at_ns);
        } else if is_first_round && (is_queue_full || has_another) {
            // Another address of the same name, at once, and no fault: a name has addresses to be tried in turn.
            let retry_ns = if is_queue_full { at_ns + FULL_QUEUE_RETRY_NS } else { at_ns };
            connection.state = ConnectionState::Down { retry_ns };
            self.traffic.connection_timers.set(link, retry_ns);
            let phase = self.traffic.phase_now(at_ns);
            self.traffic.recording.connection(phase, ConnectionEvent::Failed);
        } else {
            if is_first_round {
                let server = self.endpoints[usize::from(server)].server.clone();
                self.notice = Some(Notice::Failed(match self.traffic.unanswered_setup_step(link) {
                    Some(step) => RunError::NoReply { server, reason: self.no_reply_reason(step, errno) },
                    None => RunError::Unreachable { server, reason: io::Error::from_raw_os_error(errno) },
                }));
            }
            self.note_tls_refusal(link);
            self.traffic.fail_connection(link, at_ns, fault, OutcomeClass::Lost);
        }
        self.timers_ns = at_ns;
    }

    /// How a connection ended that stood, and on which this was not answered.
    fn no_reply_reason(&self, step: &str, errno: i32) -> String {
        match errno {
            libc::ETIMEDOUT => {
                format!("it did not answer {step} within {}", DurationNs(self.attempt_ns()))
            }
            libc::ECONNRESET => format!("it ended the connection and did not answer {step}"),
            errno => format!("{step} was not answered: {}", io::Error::from_raw_os_error(errno)),
        }
    }

    /// Before the schedule begins, a server that cannot be spoken to by TLS is the end of the run. It may have refused our
    /// certificate only after the handshake was over for us: so later, too, as long as no server has ever answered, and as
    /// often as there are connections. That a connection ends in its handshake is trouble of the network's as on any other,
    /// but for the first ones of all.
    fn note_tls_refusal(&mut self, link: u32) {
        let Some(error) = self.io.connection_error(link) else { return };
        let connection = &self.traffic.connections[link as usize];
        let is_the_end = match self.stage {
            Stage::Connecting if !connection.was_up => true,
            Stage::Connecting | Stage::Preloading => error.is_answer,
            Stage::AwaitingStart | Stage::Running => {
                let has_answered = self.traffic.servers.iter().any(Health::has_answered);
                self.refusals += u32::from(error.is_answer && !has_answered);
                self.refusals as usize >= self.traffic.connections.len()
            }
            Stage::Finished => false,
        };
        if is_the_end {
            let server = self.endpoints[usize::from(connection.server)].server.clone();
            let reason = error.words.to_owned();
            self.notice = Some(Notice::Failed(RunError::TlsFailed { server, reason }));
        }
    }

    // ---- phases -----------------------------------------------------------------------------------------------------

    fn step_connecting(&mut self) {
        // Not all at the same time: a server that takes fewer would never let the run begin.
        if self.reached as usize == self.traffic.connections.len() {
            let lanes = std::mem::take(&mut self.preload_lanes);
            self.stage = Stage::Preloading;
            if lanes.is_empty() {
                self.await_start(0);
            }
            self.traffic.install(lanes);
            let now_ns = self.io.now_ns();
            self.traffic.servers.iter_mut().for_each(|server| server.last_up_ns = now_ns);
        }
    }

    fn step_preloading(&mut self, now_ns: u64) {
        self.hand_over_early(now_ns);
        let confirmed = self.traffic.lanes.iter().map(|lane| lane.session.confirmed()).sum();
        let is_lost = self.count_down_servers(now_ns) > 0;
        // A port on which something else listens takes every connection and keeps none.
        let cannot_finish = confirmed == 0
            && self.traffic.connections.iter().all(|connection| connection.failures >= PRELOAD_FAILURES_MAX);
        if let Some((server, reply_limit_ns)) = self.silent_server(now_ns) {
            let server = self.endpoints[usize::from(server)].server.clone();
            let reason = format!("it has answered no request for {}", DurationNs(reply_limit_ns));
            self.notice = Some(Notice::Failed(RunError::NoReply { server, reason }));
            self.stage = Stage::AwaitingStart;
        } else if is_lost || cannot_finish || self.traffic.lanes.iter().any(|lane| lane.session.failed()) {
            self.notice = Some(Notice::Failed(RunError::preload_failed(confirmed)));
            self.stage = Stage::AwaitingStart;
        } else if self.traffic.is_finished() {
            self.await_start(confirmed);
        }
    }

    /// How long a server may be silent before the schedule begins.
    fn reply_limit_ns(&self) -> u64 {
        if self.phase_times.timeout_ns > TIMEOUT_USUAL_NS {
            self.phase_times.timeout_ns
        } else {
            SILENT_SERVER_NS
        }
    }

    /// How long an attempt to connect may take, its greeting included.
    fn attempt_ns(&self) -> u64 {
        match self.stage {
            Stage::Connecting => self.phase_times.connect_timeout_ns.min(self.reply_limit_ns()),
            _ => self.phase_times.connect_timeout_ns,
        }
    }

    /// A server that there is no more patience with, and how much there was.
    fn silent_server(&self, now_ns: u64) -> Option<(u16, u64)> {
        let reply_limit_ns = self.reply_limit_ns();
        let asked_before_ns = now_ns.checked_sub(reply_limit_ns)?;
        self.traffic.silent_server(asked_before_ns).map(|server| (server, reply_limit_ns))
    }

    /// All is prepared. What asks for every connection is done now, when there is time for it.
    fn await_start(&mut self, confirmed: u64) {
        self.notice = Some(Notice::Prepared { confirmed });
        self.stage = Stage::AwaitingStart;
        self.retransmits = self.io.retransmits();
    }

    /// How many servers are there that nobody has been connected to for too long?
    fn count_down_servers(&mut self, now_ns: u64) -> usize {
        let reply_limit_ns = self.phase_times.timeout_ns.max(SERVER_DOWN_NS);
        let mut gone = 0;
        for server in &mut self.traffic.servers {
            if server.up > 0 {
                server.last_up_ns = now_ns;
            }
            // Where nobody has tried in vain, connections come seldom by plan.
            let is_gone =
                server.prober.is_some() && now_ns.saturating_sub(server.last_up_ns) > reply_limit_ns;
            gone += usize::from(is_gone);
        }
        gone
    }

    /// Hands over what was recorded before the schedule begins, so that progress can be seen.
    fn hand_over_early(&mut self, now_ns: u64) {
        if now_ns >= self.interval_end_ns && self.traffic.recording.hand_over(now_ns) {
            self.interval_end_ns = now_ns + INTERVAL_NS;
        }
    }

    fn step_awaiting_start(&mut self, now_ns: u64) {
        let start_ns = self.orders.start_ns.load(Ordering::Acquire);
        let Some(make_lanes) = self.make_lanes.take_if(|_| start_ns != 0) else { return };
        let measure_ns = start_ns + self.phase_times.warmup.longest().0;
        let end_ns = self.phase_times.time_ns.map_or(u64::MAX, |time_ns| measure_ns + time_ns);
        let window = Window { start_ns, measure_ns, end_ns };
        // What preload recorded ends here; the first interval of the schedule begins at its start.
        self.traffic.recording.hand_over(now_ns);
        self.traffic.window = window;
        self.traffic.recording.set_window(measure_ns, end_ns);
        let mut lanes = make_lanes(window);
        lanes.connect_feeds(&mut self.feeds);
        self.traffic.install(lanes);
        self.traffic.begin_audits(start_ns);
        self.traffic.begin_lifetimes(start_ns);
        self.interval_end_ns = start_ns;
        self.traffic.servers.iter_mut().for_each(|server| server.last_up_ns = start_ns);
        self.stage = Stage::Running;
        self.read_stamp_clock(now_ns);
        self.usage.start(now_ns, window.measure_ns, self.loop_counters());
        self.awaits_window = self.phase_times.warmup == Warmup::Auto;
    }

    /// Begins the window when it was ordered to, which is never later than it would begin without an order.
    fn poll_window_start(&mut self, now_ns: u64) {
        let measure_ns = self.orders.measure_ns.load(Ordering::Acquire);
        let window = self.traffic.window;
        // An end that came before the window stays one.
        let is_over = now_ns >= window.measure_ns.min(window.end_ns);
        if measure_ns != 0 && !is_over {
            let end_ns = self.phase_times.time_ns.map_or(u64::MAX, |time_ns| measure_ns + time_ns);
            self.traffic.begin_window(Window { measure_ns, end_ns, ..window });
            self.traffic.recording.open_window(measure_ns, end_ns, now_ns);
            self.usage.begin_at(measure_ns);
            // Timers set by the old times are set anew.
            self.timers_ns = now_ns;
        }
        self.awaits_window = measure_ns == 0 && !is_over;
    }

    /// Intervals, the end of the window, the end of the drain. Returns when the next of them comes.
    fn step_running(&mut self, now_ns: u64) -> u64 {
        if now_ns >= self.interval_end_ns && self.traffic.recording.hand_over(now_ns) {
            while self.interval_end_ns <= now_ns {
                self.interval_end_ns += INTERVAL_NS;
            }
        }
        let interval_ns = self.interval_end_ns.max(now_ns + HAND_OVER_RETRY_NS);
        if self.orders.stop.load(Ordering::Relaxed) && !std::mem::replace(&mut self.is_stopped, true) {
            self.stop(now_ns);
        }
        self.read_stamp_clock(now_ns);
        // A number of requests that nobody is there to answer would never be reached; and when the last connection has
        // lived, nothing can follow.
        // Replicas do without one another.
        let dispensable = if self.traffic.has_replicas() { self.traffic.servers.len() - 1 } else { 0 };
        let cannot_finish = self.phase_times.time_ns.is_none()
            && (self.count_down_servers(now_ns) > dispensable || self.traffic.is_stranded());
        let has_no_client = self.traffic.has_no_client();
        if (cannot_finish || has_no_client || self.traffic.all_expired())
            && now_ns < self.traffic.window.end_ns
        {
            self.traffic.recording.counts.workers_cut_off += u64::from(has_no_client);
            self.traffic.end_at(now_ns);
            self.traffic.recording.end_window(now_ns);
            self.is_cut_off = true;
        }
        let window = self.traffic.window;
        self.usage.look(now_ns, window.end_ns, self.loop_counters());
        self.sample_colocation(now_ns);
        if now_ns >= window.end_ns && self.drain_end_ns == u64::MAX {
            self.drain_end_ns = window.end_ns.saturating_add(self.phase_times.drain_ns);
        }
        let is_over = match window.end_ns {
            u64::MAX => self.traffic.is_finished(),
            end_ns => {
                let is_over = self.is_quiet() || self.is_cut_off && self.traffic.in_flight() == 0;
                now_ns >= end_ns && (is_over || now_ns >= self.drain_end_ns)
            }
        };
        // A schedule by time may have its last reply before its window is over: the window is as long as it was to be. One
        // by number as well as by time ends with whichever comes first.
        let is_complete = window.end_ns != u64::MAX && self.traffic.is_finished();
        if is_over || is_complete && self.traffic.has_spent_budgets() {
            self.finish(now_ns);
        }
        let end_ns = if now_ns < window.end_ns { window.end_ns } else { self.drain_end_ns };
        interval_ns.min(end_ns).min(self.usage.next_ns())
    }

    /// Does a server on this host send from the processor that this worker runs on? One connection in turn.
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
        self.colocation_index = (self.colocation_index + 1) % self.traffic.connections.len() as u32;
    }

    /// Reads the wall clock, if stamps are waiting for it.
    fn read_stamp_clock(&mut self, now_ns: u64) {
        if self.traffic.stamper.is_window_over(now_ns) {
            let reading = self.io.wall();
            self.traffic.end_stamp_window(reading);
        }
    }

    /// The user wants an end: of the window, or of the drain where only that is left.
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
        // The turn that finds the end may be the one that came late to it.
        self.end_iteration(now_ns);
        // The window of a run that ends by its number of requests lasts until the last reply, whatever time it was given.
        self.traffic.window.end_ns = self.traffic.window.end_ns.min(now_ns);
        // Twice where the one turn that there was comes after the window.
        for _ in 0..2 {
            self.usage.look(now_ns, now_ns, self.loop_counters());
        }
        self.traffic.close_accounts(now_ns);
        self.retransmits = self.io.retransmits() - self.retransmits;
        if self.traffic.stamper.is_on() {
            let reading = self.io.wall();
            self.traffic.end_stamps(reading);
        }
        self.stage = Stage::Finished;
    }

    /// Takes the worker apart after its last turn.
    pub(crate) fn end(mut self) -> WorkerEnd {
        let now_ns = self.io.now_ns();
        let (last, mut counts, samples) = self.traffic.recording.end(now_ns);
        counts.stamps = self.traffic.stamper.counts();
        counts.redirections = self.traffic.slots.map(SlotTable::end).unwrap_or_default();
        WorkerEnd {
            last,
            counts,
            samples,
            window: self.traffic.window,
            drained_ns: self.drained_ns,
            usage: self.usage,
            colocation: self.colocation,
            stalls: self.stalls,
            retransmits: self.retransmits,
            wait: self.pace.wait(),
        }
    }
}
