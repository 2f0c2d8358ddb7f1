//! The event loop: wait, take what came in, send what is due, tend to the rest. The only loop there is.
//!
//! Protocol and kernel interface are types, everything else is data: open loop, closed loop and preload differ only in
//! what the sessions answer, phases only in which sessions are installed. Invariant: between the first turn of the
//! warm-up and the last of the drain, nothing is allocated, locked or logged here.

use crate::connection::{Link, fault_of_errno};
use crate::health::Health;
use crate::io::{Chunk, CloseHow, Completion, Io, SendResult, Until, What};
use crate::lane::Lanes;
use crate::pace::Pace;
use crate::recording::Filled;
use crate::run::{Endpoint, saying};
use crate::run_error::RunError;
use crate::slots::Slots;
use crate::trace_reader::Feeds;
use crate::traffic::greeting::{Greeted, TurnedAway};
use crate::traffic::{Traffic, Window};
use crate::usage::{LoopCounters, ThreadUsage, Waiting};
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
const LOOK_UP_NS: u64 = 20_000_000;
/// While the start is awaited, the loop looks for it this often.
const AWAIT_START_NS: u64 = 500_000;
/// Connections being established at a time, so that a server's backlog is not overrun.
const CONNECTING_MAX: u32 = 128;
/// When the other set was not back in time, a hand-over is tried again after this.
const HAND_OVER_AGAIN_NS: u64 = 1_000_000;
/// While nothing but the queue of a Unix socket keeps a run from beginning, it is asked this often.
const CROWDED_NS: u64 = 1_000_000;
/// However short the time-out, a server may restart in this time: several attempts fit in, the last a second apart.
const NOBODY_THERE_NS: u64 = 5_000_000_000;
/// A server that takes connections and has answered nothing for this long while it is preloaded will not: its user is told before the
/// usual time-out of a request…
const MUTE_NS: u64 = 8_000_000_000;
/// …unless that is longer than usual.
const TIMEOUT_USUAL_NS: u64 = 10_000_000_000;
/// Connections that failed so often in a row, without a single reply, will not preload anything.
const HOPELESS_FAILURES: u32 = 5;
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
    pub abandon: AtomicBool,
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
pub(crate) struct Terms {
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
    terms: Terms,
    orders: Arc<Orders>,
    /// Where connections to each server may go to.
    endpoints: Vec<Endpoint>,
    connecting: u32,
    /// No attempt under way takes too long before this.
    give_up_ns: u64,
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
    is_pressed: bool,
    /// The next time anything but a schedule or a socket wants attention.
    tend_ns: u64,
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
    turn_began_ns: u64,
    stalls: StallCounts,
    /// Until the end: how many there were when the start was awaited.
    retransmits: u64,
    colocation: Colocation,
    /// The connection to look at next, and when.
    look_at: u32,
    look_ns: u64,
    usage: ThreadUsage,
}

/// What a [`Worker`] is made of.
pub(crate) struct WorkerParts<C: Codec, I: Io> {
    pub io: I,
    pub traffic: Traffic<C>,
    pub pace: Pace,
    pub terms: Terms,
    pub orders: Arc<Orders>,
    pub endpoints: Vec<Endpoint>,
    pub preload_lanes: Lanes,
    pub make_lanes: MakeLanes,
}

impl<C: Codec, I: Io> Worker<C, I> {
    pub(crate) fn new(parts: WorkerParts<C, I>) -> Self {
        assert!(parts.endpoints.iter().all(|server| !server.addresses.is_empty()), "a server has an address");
        // Where attempts are counted, none is made before the schedule begins.
        let not_awaited = parts.traffic.connections.iter().filter(|connection| connection.link == Link::Idle);
        let reached = not_awaited.count() as u32;
        Self {
            io: parts.io,
            traffic: parts.traffic,
            pace: parts.pace,
            stage: Stage::Connecting,
            terms: parts.terms,
            orders: parts.orders,
            endpoints: parts.endpoints,
            connecting: 0,
            give_up_ns: u64::MAX,
            reached,
            preload_lanes: parts.preload_lanes,
            make_lanes: Some(parts.make_lanes),
            feeds: Feeds::new(),
            notice: None,
            awaits_window: false,
            is_pressed: false,
            tend_ns: 0,
            expire_ns: 0,
            interval_end_ns: 0,
            drain_end_ns: u64::MAX,
            drained_ns: 0,
            is_cut_off: false,
            refusals: 0,
            is_stopped: false,
            waiting: Waiting::default(),
            turn_began_ns: u64::MAX,
            stalls: StallCounts::default(),
            retransmits: 0,
            colocation: Colocation::default(),
            look_at: 0,
            look_ns: 0,
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
    pub(crate) fn turn(&mut self) {
        let mut now_ns = self.wait();
        if self.awaits_window {
            self.hear_window(now_ns);
        }
        // Reads before sends: a read takes a fifth of a send, so that whoever waits, waits less in this order.
        if self.take_in() {
            self.waiting.came_in();
            now_ns = self.io.now_ns();
            if self.awaits_window {
                // It may have been ordered meanwhile; what is picked now is due no later than now.
                self.hear_window(now_ns);
            }
        }
        self.is_pressed = self.traffic.pick(now_ns);
        let flushed = self.traffic.flush(&mut self.io, now_ns);
        now_ns = flushed.now_ns;
        if self.is_pressed || flushed.awaits_results {
            self.io.submit();
            self.take_in();
            now_ns = self.io.now_ns();
        }
        self.bury_retired(now_ns);
        if now_ns >= self.tend_ns || self.traffic.take_lost_any() || self.is_stage_over(now_ns) {
            self.tend(now_ns);
        }
    }

    /// Takes in everything that happened. Returns whether anything did.
    #[inline]
    fn take_in(&mut self) -> bool {
        let mut any = false;
        while let Some(completion) = self.io.next() {
            self.complete(completion);
            any = true;
        }
        any
    }

    /// Closes every connection that has lived. Returns whether there was one.
    #[inline]
    fn bury_retired(&mut self, now_ns: u64) -> bool {
        let mut any = false;
        while let Some(link) = self.traffic.take_retired() {
            self.io.close(link, CloseHow::Orderly);
            self.traffic.bury(link, now_ns);
            any = true;
        }
        any
    }

    /// Waits for the next thing to do. Returns the clock.
    #[inline]
    fn wait(&mut self) -> u64 {
        let now_ns = self.io.now_ns();
        self.end_turn(now_ns);
        let (mut due_ns, mut timer_ns) = (u64::MAX, self.tend_ns);
        if let Some((lane, at_ns)) = self.traffic.agenda.first() {
            // Only an open loop's deadlines are worth spinning for.
            match self.traffic.lanes[lane as usize].session.is_open() {
                true => due_ns = at_ns,
                false => timer_ns = timer_ns.min(at_ns),
            }
        }
        // What could not be queued can be now. The look in between is what keeps replies from lying there while more is due
        // than can be sent.
        let until = if self.is_pressed { Until::Now } else { self.pace.until(now_ns, due_ns, timer_ns) };
        let is_idle = !self.is_pressed && due_ns.min(timer_ns) > now_ns;
        self.waiting.enter(now_ns, until == Until::Now && is_idle);
        let woke_ns = self.io.wait(now_ns, until);
        self.turn_began_ns = now_ns;
        if let Until::Instant(at_ns) = until {
            self.turn_began_ns = woke_ns;
            if woke_ns >= at_ns {
                self.overslept(at_ns, woke_ns);
            }
        }
        woke_ns
    }

    /// A sleep has ended by its timer.
    #[inline(never)]
    fn overslept(&mut self, at_ns: u64, woke_ns: u64) {
        self.turn_began_ns = at_ns;
        self.pace.observe(woke_ns - at_ns);
        if self.stage == Stage::Running {
            self.traffic.recording.meter(MeterKind::Oversleep, woke_ns - at_ns);
        }
    }

    /// A turn is over. One that took too long has stood still: what came meanwhile lay there, and what was due was not sent.
    #[inline]
    fn end_turn(&mut self, now_ns: u64) {
        if now_ns.saturating_sub(self.turn_began_ns) > STALL_MIN_NS {
            self.note_stall(now_ns);
        }
    }

    #[cold]
    fn note_stall(&mut self, now_ns: u64) {
        let Window { measure_ns, end_ns, .. } = self.traffic.window;
        self.stalls.note(self.turn_began_ns..now_ns, measure_ns..end_ns);
    }

    /// Takes in one thing that happened.
    #[inline]
    fn complete(&mut self, completion: Completion) {
        let Completion { link, at_ns, polled_ns, what } = completion;
        match what {
            What::Received(chunk) => self.receive(link, chunk, at_ns, polled_ns),
            What::Stamped(chunk) => self.receive_stamped(link, chunk, at_ns, polled_ns),
            What::Sent(taken) => {
                let is_greeting = self.traffic.is_greeting(link);
                self.traffic.handed_over(&mut self.io, link, SendResult { taken, at_ns });
                self.note_greeting(is_greeting, link, at_ns);
            }
            What::Writable => {
                let is_greeting = self.traffic.is_greeting(link);
                self.traffic.writable(&mut self.io, link, at_ns);
                self.note_greeting(is_greeting, link, at_ns);
                // Others may be waiting for this connection.
                self.io.submit();
            }
            What::Connected => match self.traffic.greet(&mut self.io, link, at_ns) {
                // Others may be waiting for this connection.
                true => {
                    self.io.submit();
                    self.note_greeting(true, link, at_ns);
                }
                false => self.established(link, at_ns),
            },
            What::ConnectFailed(errno) => {
                self.connecting -= 1;
                self.connect_failed(link, errno, at_ns);
            }
            What::Closed(errno) if self.traffic.is_greeting(link) => {
                self.connecting -= 1;
                self.connect_failed(link, errno.unwrap_or(libc::ECONNRESET), at_ns);
            }
            What::Closed(errno) => {
                self.note_tls_refusal(link);
                let fault = errno.map_or(FaultKind::ClosedByPeer, fault_of_errno);
                self.traffic.lose(link, at_ns, fault, OutcomeClass::Lost);
            }
        }
    }

    /// Takes in bytes.
    #[inline(always)]
    fn receive(&mut self, link: u32, chunk: Chunk, at_ns: u64, polled_ns: u64) {
        let is_greeting = self.traffic.is_greeting(link);
        let bytes = self.io.bytes(chunk);
        let received = self.traffic.receive(link, bytes, at_ns, polled_ns);
        if is_greeting {
            self.go_on_greeting(link, received, at_ns);
        } else if received.is_err() {
            self.io.close(link, CloseHow::Reset);
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
    fn tend(&mut self, mut now_ns: u64) {
        if self.orders.abandon.load(Ordering::Relaxed) {
            self.stage = Stage::Finished;
            return;
        }
        let mut next_ns = now_ns + LOOK_UP_NS;
        next_ns = next_ns.min(self.traffic.resume(now_ns));
        next_ns = next_ns.min(self.dial(now_ns));
        if self.bury_retired(now_ns) {
            // The next one follows at once.
            next_ns = next_ns.min(self.dial(now_ns));
        }
        if now_ns >= self.expire_ns {
            // A connection that is given up takes what was not sent back to send it elsewhere: nothing may be on its way.
            self.io.submit();
            self.take_in();
            // What was handed over now is booked later than the instant with which this began.
            now_ns = self.io.now_ns();
            self.expire_ns = self.traffic.expire(&mut self.io, now_ns);
        }
        next_ns = next_ns.min(self.expire_ns).min(self.traffic.give_up_waiting(now_ns));
        match self.stage {
            Stage::Connecting => self.tend_connecting(),
            Stage::Preloading => self.tend_preloading(now_ns),
            Stage::AwaitingStart => {
                self.tend_awaiting_start(now_ns);
                // The first connections may be due when the schedule begins.
                next_ns = next_ns.min(self.dial(now_ns));
            }
            Stage::Running => next_ns = next_ns.min(self.tend_running(now_ns)),
            Stage::Finished => {}
        }
        if self.stage == Stage::AwaitingStart {
            next_ns = next_ns.min(now_ns + AWAIT_START_NS);
        }
        // Where connections are born by a schedule, those of the preload end when it begins.
        let is_unsettled = self.bury_retired(now_ns);
        self.tend_ns = if is_unsettled { now_ns } else { next_ns };
    }

    /// May the stage be over, so that [`Worker::tend`] must look?
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
            && self.traffic.agenda.first().is_none_or(|(_, due_ns)| due_ns == u64::MAX)
            && self.traffic.backlog() == 0
    }

    // ---- connections ------------------------------------------------------------------------------------------------

    /// Begins, gives up and ends as many connections as are due. Returns when the next one is.
    fn dial(&mut self, now_ns: u64) -> u64 {
        if self.stage == Stage::Running && now_ns >= self.traffic.window.end_ns && self.traffic.backlog() == 0
        {
            // Nothing is left to send.
            return u64::MAX;
        }
        let next_birth_ns = self.bear(now_ns);
        while let Some((link, due_ns)) = self.traffic.dials.first() {
            if due_ns > now_ns {
                return due_ns.min(next_birth_ns);
            }
            match self.traffic.connections[link as usize].link {
                Link::Up => self.traffic.retire(link),
                Link::Idle | Link::Gone => self.traffic.dials.set(link, u64::MAX),
                Link::Connecting { .. } => self.give_up_attempt(link, now_ns),
                Link::Down { .. } if self.connecting < CONNECTING_MAX || self.is_born(link) => {
                    self.connect(link, now_ns);
                }
                // A completion makes room, and brings us back here; so does an attempt that takes too long, which stands
                // behind those that wait for room.
                Link::Down { .. } if now_ns < self.give_up_ns => return next_birth_ns.min(self.give_up_ns),
                Link::Down { .. } => self.give_up_attempts(now_ns),
            }
        }
        next_birth_ns
    }

    /// Is this connection to be begun because its birth is due, however many are under way?
    fn is_born(&self, link: u32) -> bool {
        self.traffic.lifetimes[usize::from(self.traffic.connections[link as usize].class)].bears()
    }

    /// Gives up an attempt to connect: the kernel alone would go on for minutes.
    fn give_up_attempt(&mut self, link: u32, now_ns: u64) {
        self.io.close(link, CloseHow::Reset);
        self.connecting -= 1;
        self.attempt_failed(link, libc::ETIMEDOUT, FaultKind::TimedOut, now_ns);
    }

    /// Gives up every attempt that takes too long, and finds out when the next one will.
    fn give_up_attempts(&mut self, now_ns: u64) {
        self.give_up_ns = u64::MAX;
        for link in 0..self.traffic.connections.len() as u32 {
            if let Link::Connecting { began_ns } = self.traffic.connections[link as usize].link {
                let deadline_ns = began_ns + self.attempt_ns();
                if deadline_ns <= now_ns {
                    self.give_up_attempt(link, now_ns);
                } else {
                    self.give_up_ns = self.give_up_ns.min(deadline_ns);
                }
            }
        }
    }

    /// Lets the connections whose birth is due be begun. Returns when the next birth is.
    fn bear(&mut self, now_ns: u64) -> u64 {
        let mut next_ns = u64::MAX;
        for class in 0..self.traffic.lifetimes.len() {
            while self.traffic.lifetimes[class].birth_ns() <= now_ns {
                let Some(link) = self.traffic.lifetimes[class].bear() else { break };
                self.traffic.connections[link as usize].link = Link::Down { retry_ns: now_ns };
                self.traffic.dials.set(link, now_ns);
            }
            next_ns = next_ns.min(self.traffic.lifetimes[class].birth_ns());
        }
        next_ns
    }

    /// Begins a connection, if the plan has one left.
    fn connect(&mut self, link: u32, now_ns: u64) {
        let connection = &mut self.traffic.connections[link as usize];
        if !self.traffic.lifetimes[usize::from(connection.class)].reserve() {
            connection.link = Link::Gone;
            self.traffic.dials.set(link, u64::MAX);
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
        connection.link = Link::Connecting { began_ns: now_ns };
        connection.has_greeted = false;
        let deadline_ns = now_ns + self.attempt_ns();
        self.traffic.dials.set(link, deadline_ns);
        match self.io.connect(link, address, tls.as_ref()) {
            Ok(()) => {
                self.connecting += 1;
                self.give_up_ns = self.give_up_ns.min(deadline_ns);
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
        self.tend_ns = at_ns;
    }

    /// Something was sent: of a greeting, it may have been the end of the attempt.
    #[inline]
    fn note_greeting(&mut self, was_greeting: bool, link: u32, at_ns: u64) {
        if was_greeting && let Some(errno) = self.traffic.take_broken_greeting() {
            self.connecting -= 1;
            self.connect_failed(link, errno, at_ns);
        }
    }

    /// Something of the answer to a greeting has come in, or, where that is an error, something that is no answer.
    #[cold]
    fn go_on_greeting(&mut self, link: u32, received: Result<(), ()>, at_ns: u64) {
        let greeted = self.traffic.connection_setup(link);
        let reason = match (received, greeted) {
            (Ok(()), Greeted::Awaited) => return,
            (Ok(()), Greeted::Welcome) => return self.established(link, at_ns),
            (_, Greeted::TurnedAway(TurnedAway { reason })) => reason,
            (Err(()), _) => {
                self.traffic.recording.counts.first_garbage.as_ref().map(saying).unwrap_or_default()
            }
        };
        self.connecting -= 1;
        let connection = &self.traffic.connections[link as usize];
        if self.stage == Stage::Connecting && !connection.was_up {
            let server = self.endpoints[usize::from(connection.server)].server.clone();
            self.notice = Some(Notice::Failed(RunError::TurnedAway { server, reason }));
        }
        if received.is_ok() {
            self.traffic.lose(link, at_ns, FaultKind::TurnedAway, OutcomeClass::Lost);
        }
        self.io.close(link, CloseHow::Reset);
        self.tend_ns = at_ns;
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
        let is_crowded = errno == libc::EAGAIN && at_ns < self.terms.timeout_ns;
        let has_another = connection.address < self.endpoints[usize::from(server)].addresses.len();
        let counts_attempts = self.traffic.lifetimes[usize::from(connection.class)].counts_attempts();
        if counts_attempts && has_another && !connection.was_up {
            // An attempt is one at a name, whichever address of it answers.
            self.try_address(link, at_ns);
        } else if is_first_round && (is_crowded || has_another) {
            // Another address of the same name, at once, and no fault: a name has addresses to be tried in turn.
            let retry_ns = if is_crowded { at_ns + CROWDED_NS } else { at_ns };
            connection.link = Link::Down { retry_ns };
            self.traffic.dials.set(link, retry_ns);
            let phase = self.traffic.phase_now(at_ns);
            self.traffic.recording.connection(phase, ConnectionEvent::Failed);
        } else {
            if is_first_round {
                let server = self.endpoints[usize::from(server)].server.clone();
                self.notice = Some(Notice::Failed(match self.traffic.unanswered_greeting(link) {
                    Some(step) => RunError::Unanswered { server, reason: self.silence(step, errno) },
                    None => RunError::Unreachable { server, reason: io::Error::from_raw_os_error(errno) },
                }));
            }
            self.note_tls_refusal(link);
            self.traffic.lose(link, at_ns, fault, OutcomeClass::Lost);
        }
        self.tend_ns = at_ns;
    }

    /// How a connection ended that stood, and on which this was not answered.
    fn silence(&self, step: &str, errno: i32) -> String {
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
        let Some(trouble) = self.io.trouble(link) else { return };
        let connection = &self.traffic.connections[link as usize];
        let is_the_end = match self.stage {
            Stage::Connecting if !connection.was_up => true,
            Stage::Connecting | Stage::Preloading => trouble.is_answer,
            Stage::AwaitingStart | Stage::Running => {
                let has_answered = self.traffic.servers.iter().any(Health::has_answered);
                self.refusals += u32::from(trouble.is_answer && !has_answered);
                self.refusals as usize >= self.traffic.connections.len()
            }
            Stage::Finished => false,
        };
        if is_the_end {
            let server = self.endpoints[usize::from(connection.server)].server.clone();
            let reason = trouble.words.to_owned();
            self.notice = Some(Notice::Failed(RunError::NoTls { server, reason }));
        }
    }

    // ---- phases -----------------------------------------------------------------------------------------------------

    fn tend_connecting(&mut self) {
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

    fn tend_preloading(&mut self, now_ns: u64) {
        self.hand_over_early(now_ns);
        let confirmed = self.traffic.lanes.iter().map(|lane| lane.session.confirmed()).sum();
        let is_lost = self.gone_servers(now_ns) > 0;
        // A port on which something else listens takes every connection and keeps none.
        let is_hopeless = confirmed == 0
            && self.traffic.connections.iter().all(|connection| connection.failures >= HOPELESS_FAILURES);
        if let Some((server, patience_ns)) = self.mute_server(now_ns) {
            let server = self.endpoints[usize::from(server)].server.clone();
            let reason = format!("it has answered no request for {}", DurationNs(patience_ns));
            self.notice = Some(Notice::Failed(RunError::Unanswered { server, reason }));
            self.stage = Stage::AwaitingStart;
        } else if is_lost || is_hopeless || self.traffic.lanes.iter().any(|lane| lane.session.failed()) {
            self.notice = Some(Notice::Failed(RunError::preload_failed(confirmed)));
            self.stage = Stage::AwaitingStart;
        } else if self.traffic.is_finished() {
            self.await_start(confirmed);
        }
    }

    /// How long a server may be silent before the schedule begins.
    fn patience_ns(&self) -> u64 {
        if self.terms.timeout_ns > TIMEOUT_USUAL_NS { self.terms.timeout_ns } else { MUTE_NS }
    }

    /// How long an attempt to connect may take, its greeting included.
    fn attempt_ns(&self) -> u64 {
        match self.stage {
            Stage::Connecting => self.terms.connect_timeout_ns.min(self.patience_ns()),
            _ => self.terms.connect_timeout_ns,
        }
    }

    /// A server that there is no more patience with, and how much there was.
    fn mute_server(&self, now_ns: u64) -> Option<(u16, u64)> {
        let patience_ns = self.patience_ns();
        let asked_before_ns = now_ns.checked_sub(patience_ns)?;
        self.traffic.mute_server(asked_before_ns).map(|server| (server, patience_ns))
    }

    /// All is prepared. What asks for every connection is done now, when there is time for it.
    fn await_start(&mut self, confirmed: u64) {
        self.notice = Some(Notice::Prepared { confirmed });
        self.stage = Stage::AwaitingStart;
        self.retransmits = self.io.retransmits();
    }

    /// How many servers are there that nobody has been connected to for too long?
    fn gone_servers(&mut self, now_ns: u64) -> usize {
        let patience_ns = self.terms.timeout_ns.max(NOBODY_THERE_NS);
        let mut gone = 0;
        for server in &mut self.traffic.servers {
            if server.up > 0 {
                server.last_up_ns = now_ns;
            }
            // Where nobody has tried in vain, connections come seldom by plan.
            let is_gone = server.prober.is_some() && now_ns.saturating_sub(server.last_up_ns) > patience_ns;
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

    fn tend_awaiting_start(&mut self, now_ns: u64) {
        let start_ns = self.orders.start_ns.load(Ordering::Acquire);
        let Some(make_lanes) = self.make_lanes.take_if(|_| start_ns != 0) else { return };
        let measure_ns = start_ns + self.terms.warmup.longest().0;
        let end_ns = self.terms.time_ns.map_or(u64::MAX, |time_ns| measure_ns + time_ns);
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
        self.tend_stamps(now_ns);
        self.usage.start(now_ns, window.measure_ns, self.loop_counters());
        self.awaits_window = self.terms.warmup == Warmup::Auto;
    }

    /// Begins the window when it was ordered to, which is never later than it would begin without an order.
    fn hear_window(&mut self, now_ns: u64) {
        let measure_ns = self.orders.measure_ns.load(Ordering::Acquire);
        let window = self.traffic.window;
        // An end that came before the window stays one.
        let is_over = now_ns >= window.measure_ns.min(window.end_ns);
        if measure_ns != 0 && !is_over {
            let end_ns = self.terms.time_ns.map_or(u64::MAX, |time_ns| measure_ns + time_ns);
            self.traffic.begin_window(Window { measure_ns, end_ns, ..window });
            self.traffic.recording.open_window(measure_ns, end_ns, now_ns);
            self.usage.begin_at(measure_ns);
            // Timers set by the old times are set anew.
            self.tend_ns = now_ns;
        }
        self.awaits_window = measure_ns == 0 && !is_over;
    }

    /// Intervals, the end of the window, the end of the drain. Returns when the next of them comes.
    fn tend_running(&mut self, now_ns: u64) -> u64 {
        if now_ns >= self.interval_end_ns && self.traffic.recording.hand_over(now_ns) {
            while self.interval_end_ns <= now_ns {
                self.interval_end_ns += INTERVAL_NS;
            }
        }
        let interval_ns = self.interval_end_ns.max(now_ns + HAND_OVER_AGAIN_NS);
        if self.orders.stop.load(Ordering::Relaxed) && !std::mem::replace(&mut self.is_stopped, true) {
            self.stop(now_ns);
        }
        self.tend_stamps(now_ns);
        // A number of requests that nobody is there to answer would never be reached; and when the last connection has
        // lived, nothing can follow.
        // Replicas do without one another.
        let dispensable = if self.traffic.has_replicas() { self.traffic.servers.len() - 1 } else { 0 };
        let is_hopeless = self.terms.time_ns.is_none()
            && (self.gone_servers(now_ns) > dispensable || self.traffic.is_stranded());
        let has_no_client = self.traffic.has_no_client();
        if (is_hopeless || has_no_client || self.traffic.has_lived()) && now_ns < self.traffic.window.end_ns {
            self.traffic.recording.counts.workers_cut_off += u64::from(has_no_client);
            self.traffic.end_at(now_ns);
            self.traffic.recording.end_window(now_ns);
            self.is_cut_off = true;
        }
        let window = self.traffic.window;
        self.usage.look(now_ns, window.end_ns, self.loop_counters());
        self.look_around(now_ns);
        if now_ns >= window.end_ns && self.drain_end_ns == u64::MAX {
            self.drain_end_ns = window.end_ns.saturating_add(self.terms.drain_ns);
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
    fn look_around(&mut self, now_ns: u64) {
        let window = self.traffic.window;
        if now_ns < self.look_ns || !(window.measure_ns..window.end_ns).contains(&now_ns) {
            return;
        }
        self.look_ns = now_ns + LOOK_UP_NS;
        if let Some(is_shared) = self.io.shares_cpu(self.look_at) {
            self.colocation.looks += 1;
            self.colocation.shared += u64::from(is_shared);
        }
        self.look_at = (self.look_at + 1) % self.traffic.connections.len() as u32;
    }

    /// Reads the wall clock, if stamps are waiting for it.
    fn tend_stamps(&mut self, now_ns: u64) {
        if self.traffic.stamper.is_window_over(now_ns) {
            let reading = self.io.wall();
            self.traffic.turn_stamp_window(reading);
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
        self.end_turn(now_ns);
        // The window of a run that ends by its number of requests lasts until the last reply, whatever time it was given.
        self.traffic.window.end_ns = self.traffic.window.end_ns.min(now_ns);
        // Twice where the one turn that there was comes after the window.
        for _ in 0..2 {
            self.usage.look(now_ns, now_ns, self.loop_counters());
        }
        self.traffic.close_books(now_ns);
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
        counts.redirections = self.traffic.slots.map(Slots::end).unwrap_or_default();
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
