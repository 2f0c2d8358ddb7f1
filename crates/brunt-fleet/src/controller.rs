//! A controller: leads agents through a run and adds up what they recorded.
//!
//! Not a worker, though some may run beside it: what its own workers do goes through the engine as always. Invariants: no call here
//! waits for an agent longer than [`POLL_INTERVAL`], but for the handshake, so that a signal always gets through; an agent that is silent
//! or misses a limit of its phase ([`PhaseLimits`]) is lost: before the start that ends the run unless another one takes its rank, after it
//! the others go on, and what it had sent counts.

use crate::clock_offset::ClockOffset;
use crate::credentials::ControllerCredentials;
use crate::door::{Arrival, Door, Holder, REFUSAL_MAX, rank_of};
use crate::message::{AgentInfo, Assignment, FromAgent, ToAgent};
use crate::message_channel::{MessageChannel, connect, wait_for_any};
use crate::newcomer::{HANDSHAKE_MAX, Newcomer};
use crate::phase_limits::PhaseLimits;
use crate::rank::Rank;
use brunt_engine::coordinator::{
    Coordinator, LocalPart, ReadyState, RemoteError, RemoteStatus, START_AHEAD_NS, Stop,
};
use brunt_engine::run::{DataSets, Endpoint, RunData, RunDecision, RunError, RunEvent, run_part};
use brunt_plan::login::Password;
use brunt_plan::phase::Phase;
use brunt_plan::plan::Plan;
use brunt_plan::quantity::{percent, time};
use brunt_plan::resolve::fleet::{PlanSplit, SubPlan, joined};
use brunt_plan::shard::Portion;
use brunt_stats::agent_requests::AgentTotals;
use brunt_stats::connection::ConnectionCounts;
use brunt_stats::interval::{HostMapping, Interval};
use brunt_stats::recorder::{Layout, RecorderSet};
use brunt_stats::usage::AgentRecord;
use rustix::event::{PollFd, PollFlags};
use std::io;
use std::net::{TcpListener, TcpStream};
use std::ops::Range;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

/// What all hosts of a fleet run.
const OWN_VERSION: &str = env!("CARGO_PKG_VERSION");
/// Interval of attempts to connect to an agent that does not listen yet.
const RETRY_INTERVAL: Duration = Duration::from_millis(50);
/// Questions to a clock, of which the one counts that was answered fastest.
const PING_COUNT: u64 = 16;
/// Agents whose clocks are asked at a time: an answer that waits behind others makes its clock less well known.
const CLOCKS_AT_ONCE: usize = 32;
/// How long the agents are waited for at a time, all together.
const POLL_INTERVAL: Duration = Duration::from_millis(5);
/// The schedule begins this long after word of it is sent: longer than word takes to an agent that is looked at every 10 ms.
const START_NOTICE_NS: u64 = 250_000_000;

/// Messages of one agent that are taken in at a time, so that none keeps the others and the run waiting.
const MESSAGES_MAX: usize = 256;
/// Results of agents are awaited for so long after a signal. With what else ends then it stays under five seconds.
const INTERRUPTED_MAX: Duration = Duration::from_secs(4);

/// How far an agent's clock may be from where we think it is.
const CLOCK_SLACK_NS: u64 = 1_000_000_000;

/// Interval of notes on who is missing.
const MISSING_INTERVAL: Duration = Duration::from_secs(10);
/// How long the engine may take to place another agent for one that was lost before the start.
const REPLACEMENT_MAX: Duration = Duration::from_secs(300);
/// Ranks that are named as missing.
const MISSING_NAMED: usize = 8;

/// For how long an agent that was started a moment ago may refuse connections.
pub const STARTING_MAX: Duration = HANDSHAKE_MAX;

/// How far an agent is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// It was lost before the start; its engine may place another one.
    Vacant {
        /// By when it must be there.
        until: Instant,
    },
    Preparing,
    Ready,
    /// The schedule has begun, or soon will.
    Measuring,
    Ended,
    /// It has ended, and its link too: nothing of its part is missing.
    Left,
}

/// How a link to an agent ended while that measured.
#[derive(Clone, Debug)]
struct LostLink {
    why: String,
    /// It had been ordered to stop, because the run was interrupted.
    after_interruption: bool,
    /// The user has been told.
    is_told: bool,
}

/// Questions to an agent's clock.
struct ClockQuestions {
    /// How many are still to be answered.
    left: u64,
    /// When the open one was asked, on our clock.
    asked_ns: Option<u64>,
    /// The best answer.
    best: Option<ClockOffset>,
    /// When the answers there are must do; set with the first question.
    deadline: Option<Instant>,
}

impl ClockQuestions {
    const NEW: Self = Self { left: PING_COUNT, asked_ns: None, best: None, deadline: None };
}

struct Peer {
    name: String,
    info: AgentInfo,
    link: MessageChannel,
    offset: ClockOffset,
    /// Until its clock is known.
    questions: Option<ClockQuestions>,
    workers: Range<u32>,
    state: State,
    /// By when it must have got on, and what the limit is that this comes from.
    limit: Option<(Instant, Duration)>,
    /// It has got on since the limit was set.
    has_progressed: bool,
    /// Why it was lost while it measured.
    lost: Option<LostLink>,
    /// When the schedule of the last run began, on our clock.
    began_ns: u64,
    /// Up to when each of its workers has sent what it recorded, on our clock.
    recorded_until_ns: Vec<u64>,
    /// What its requests came to in the last run.
    totals: AgentTotals,
    /// What its connections came to.
    connections: ConnectionCounts,
    /// The user has ended the run.
    is_interrupted: bool,
    /// What it was told to do; what a replacement is told, too.
    assignment: Option<Assignment>,
    data: Option<RunData>,
    /// Heard, and not yet handed on.
    intervals: Vec<Interval>,
    pings: u64,
    /// What a user should know of it.
    notes: Vec<String>,
    /// There is something to take in of its link.
    has_word: bool,
}

/// Agents that wait to be led.
pub struct Fleet {
    peers: Vec<Peer>,
    /// Workers of our own in the last run, which come before the agents'.
    own_workers: u32,
    /// Where agents dial in, if they do.
    door: Option<Door>,
    /// The loss of an agent ends the run, as with mutilate.
    pub ends_with_loss: bool,
}

impl Fleet {
    /// Connects to every agent. Names are as `HOST` or `HOST:PORT`, IPv6 literals in brackets. An agent may refuse
    /// connections for up to `starting_max`.
    ///
    /// # Errors
    /// The first that cannot be reached or does not let us in, and why; for a user.
    pub fn open(
        names: &[(String, u16)],
        credentials: &ControllerCredentials,
        starting_max: Duration,
    ) -> Result<Self, String> {
        let until = Instant::now() + starting_max;
        let meet = |(host, port): &(String, u16)| {
            let name = joined(host, *port);
            let socket =
                connect_until(host, *port, until).map_err(|error| format!("cannot be reached: {error}"));
            let met = socket.and_then(|socket| {
                let mut newcomer = Newcomer::new(name.clone(), socket, credentials)?;
                loop {
                    match newcomer.advance(credentials)? {
                        Some((_, info)) if info.version != OWN_VERSION => {
                            let theirs = info.version;
                            return Err(format!(
                                "is brunt {theirs}: expected {OWN_VERSION}, as the controller is"
                            ));
                        }
                        Some((link, info)) => return Ok(Peer::new(name.clone(), link, info)),
                        None => newcomer.wait_for_bytes(POLL_INTERVAL),
                    }
                }
            });
            met.map_err(|why| format!("agent {name} {why}"))
        };
        let peers = names.iter().map(meet).collect::<Result<Vec<_>, _>>()?;
        Self { peers, own_workers: 0, door: None, ends_with_loss: false }.with_clocks()
    }

    /// Waits until an agent of every rank of a fleet of this size has dialled in. `note` tells the user who comes and who is missing.
    ///
    /// # Errors
    /// The socket is of no use, or a clock cannot be read; for a user.
    pub fn gather(
        listener: TcpListener,
        size: u32,
        credentials: ControllerCredentials,
        note: fn(&str),
    ) -> Result<Self, String> {
        let unfit = |error| format!("cannot wait for agents: {error}");
        let address = listener.local_addr().map_err(unfit)?;
        let mut door = Door::new(listener, size, credentials, note).map_err(unfit)?;
        let mut seats: Vec<Option<Peer>> = (0..size).map(|_| None).collect();
        let mut noted = Instant::now();
        let agents = if size == 1 { "agent" } else { "agents" };
        note(&format!("waiting for {size} {agents} at {address}"));
        while seats.iter().any(Option::is_none) {
            for arrival in door.arrivals() {
                let holder = |index: u32| seats[index as usize].as_ref().map(Peer::holder);
                match rank_of(&arrival.info, size, OWN_VERSION, holder) {
                    Ok(rank) => {
                        let peer = Peer::joined(rank, arrival);
                        note(&format!("{} is here", peer.name));
                        seats[rank.index as usize] = Some(peer);
                    }
                    Err(why) => door.refuse(arrival, &why),
                }
            }
            for seat in &mut seats {
                let Some(peer) = seat else { continue };
                peer.listen().map_err(|failure| failure.reason)?;
                peer.notes.drain(..).for_each(|text| note(&text));
                if peer.is_gone() {
                    *seat = None;
                }
            }
            if noted.elapsed() >= MISSING_INTERVAL {
                note(&missing(&seats));
                noted = Instant::now();
            }
            let seated = seats.iter_mut().flatten();
            poll_links(seated, Some(door.listener()), POLL_INTERVAL).map_err(|error| error.reason)?;
        }
        let peers = seats.into_iter().flatten().collect();
        Self { peers, own_workers: 0, door: Some(door), ends_with_loss: false }.with_clocks()
    }

    /// What the clock of each agent shows is known, unless it was lost meanwhile.
    fn with_clocks(mut self) -> Result<Self, String> {
        while !self.read_clocks(true).map_err(|failure| failure.reason)? {
            self.tend(POLL_INTERVAL)?;
        }
        Ok(self)
    }

    /// Goes on reading the clocks that are not known, and with `again` those that are to be read again. Returns whether it has all.
    fn read_clocks(&mut self, again: bool) -> Result<bool, RemoteError> {
        let now = Instant::now();
        let is_asked = |peer: &&mut Peer| {
            peer.questions.is_some() && !peer.is_gone() && (again || !peer.offset.is_known())
        };
        for peer in self.peers.iter_mut().filter(is_asked).take(CLOCKS_AT_ONCE) {
            // What it answers is heard with all else.
            peer.read_clock(now)?;
        }
        Ok(self.peers.iter().all(|peer| peer.questions.is_none() || peer.is_gone()))
    }

    /// How many workers they take on where nothing else is asked for.
    pub fn threads(&self) -> u64 {
        self.peers.iter().map(|peer| u64::from(peer.info.threads)).sum()
    }

    /// Of each agent, in order, how many workers it takes on where nothing else is asked for, and how much each of them weighs.
    pub fn capacities(&self) -> impl Iterator<Item = (u32, u32)> {
        self.peers.iter().map(|peer| (peer.info.threads, peer.info.weight))
    }

    /// Says that we are there while nothing is to be done, and hears whether they are. To be called every second or more often.
    ///
    /// # Errors
    /// One is not; for a user.
    pub fn keep_alive(&mut self) -> Result<(), String> {
        self.tend(Duration::ZERO)
    }

    /// The same, and waits for them, at most so long.
    fn tend(&mut self, wait: Duration) -> Result<(), String> {
        let polled = poll_links(self.peers.iter_mut(), None, wait);
        polled.and_then(|()| self.peers.iter_mut().try_for_each(Peer::listen)).map_err(|blame| blame.reason)
    }

    /// Divides the workers of the next run among the agents.
    pub fn divide_workers(&mut self, shares: &PlanSplit) {
        self.own_workers = shares.controller.as_ref().map_or(0, |own| own.plan.threads);
        let threads: Vec<u32> = self.peers.iter().map(|peer| peer.info.threads).collect();
        let mut next = 0;
        for (peer, workers) in self.peers.iter_mut().zip(divided(shares.agents.plan.threads, &threads)) {
            (peer.workers, peer.lost) = (next..next + workers, None);
            (peer.recorded_until_ns, peer.totals) = (vec![0; workers as usize], AgentTotals::default());
            next += workers;
        }
    }

    /// What is known of them; workers and clocks are those of the last run.
    pub fn records(&self) -> Vec<AgentRecord> {
        let record = |peer: &Peer| AgentRecord {
            name: peer.name.clone(),
            host: peer.info.host.clone(),
            first_worker: self.own_workers + peer.workers.start,
            workers: peer.workers.len() as u32,
            weight: peer.info.weight,
            clock_offset_ns: peer.offset.lead_ns,
            clock_error_ns: if peer.offset.is_known() { peer.offset.error_ns } else { 0 },
            lost: peer.lost.as_ref().map(|lost| lost.why.clone()),
            lost_after_ns: peer.lost.as_ref().map(|_| peer.recorded_ns()),
            lost_after_interruption: peer.lost.as_ref().is_some_and(|lost| lost.after_interruption),
            requests: Some(peer.totals.requests()),
            start_unix_us: None,
        };
        self.peers.iter().map(record).collect()
    }

    /// Was an agent lost while it measured?
    fn is_short(&self) -> bool {
        self.peers.iter().any(|peer| peer.lost.is_some())
    }

    /// What the user has not been told yet of agents that were lost while they measured.
    fn losses(&mut self) -> Vec<String> {
        self.peers.iter_mut().filter_map(Peer::loss).collect()
    }

    /// Carries out a plan, whose workers are divided: the agents their classes, and we ours, if there are any. As
    /// [`brunt_engine::run::run`].
    pub fn run(
        &mut self,
        plan: &Plan,
        shares: &PlanSplit,
        endpoints: &[Endpoint],
        data: DataSets,
        stop: &AtomicBool,
        observe: &mut dyn FnMut(RunEvent<'_>) -> RunDecision,
    ) -> Result<RunData, RunError> {
        let own_workers = self.own_workers;
        let mut leader = ControllerSide::new(self, shares, data);
        let part = match &shares.controller {
            Some(own) => LocalPart {
                plan: &own.plan,
                workers: 0..own_workers,
                portion: LocalPart::alone(own_workers),
                classes: &own.classes,
            },
            None => LocalPart { plan, workers: 0..0, portion: LocalPart::alone(0), classes: &[] },
        };
        // What agents store before the start is there when our own workers ask for it.
        let own_data = DataSets::Stored;
        let ended = run_part(plan, &part, endpoints, own_data, stop, observe, &mut leader);
        if ended.is_err() {
            leader.release();
        }
        ended
    }
}

impl Drop for Peer {
    /// One that was told to do nothing has no run to end with.
    fn drop(&mut self) {
        if self.assignment.is_none() && !self.is_gone() {
            // A lost agent needs no message.
            let _ = self.link.send_message(&ToAgent::Leave);
            self.link.drain(Instant::now() + REFUSAL_MAX);
        }
    }
}

impl Peer {
    fn new(name: String, link: MessageChannel, info: AgentInfo) -> Self {
        Self {
            name,
            info,
            link,
            offset: ClockOffset::UNKNOWN,
            questions: Some(ClockQuestions::NEW),
            workers: 0..0,
            state: State::Ended,
            limit: None,
            has_progressed: false,
            lost: None,
            began_ns: 0,
            recorded_until_ns: Vec::new(),
            totals: AgentTotals::default(),
            connections: ConnectionCounts::default(),
            is_interrupted: false,
            assignment: None,
            data: None,
            intervals: Vec::new(),
            pings: 0,
            notes: Vec::new(),
            has_word: true,
        }
    }

    /// Of an agent that dialled in.
    fn joined(rank: Rank, Arrival { link, info }: Arrival) -> Self {
        Self::new(format!("rank {} ({})", rank.index, info.host), link, info)
    }

    /// Who has its rank, for others that want it.
    fn holder(&self) -> Holder {
        let attempt = self.info.rank.map_or(0, |rank| rank.attempt);
        Holder { attempt, is_lost: self.is_gone() }
    }

    /// Is there no more to hear from it?
    fn is_gone(&self) -> bool {
        matches!(self.state, State::Vacant { .. } | State::Left) || self.lost.is_some()
    }

    /// How long after the schedule began all of its workers had sent what they recorded.
    fn recorded_ns(&self) -> u64 {
        let until_ns = self.recorded_until_ns.iter().min().copied().unwrap_or(0);
        until_ns.saturating_sub(self.began_ns)
    }

    /// What its loss means for the load, the first time that it is asked for.
    fn loss(&mut self) -> Option<String> {
        let from_ns = self.recorded_ns();
        let Portion { width, of, .. } = self.assignment.as_ref()?.portion;
        let lost = self.lost.as_mut().filter(|lost| !lost.is_told)?;
        lost.is_told = true;
        let share = f64::from(width) * self.workers.len() as f64 / f64::from(of.max(1));
        let host = if self.info.rank.is_some() { String::new() } else { format!(" on {}", self.info.host) };
        Some(format!(
            "agent {}{host} was lost ({}): {} of the agents' load is missing from {} of the schedule on",
            self.name,
            lost.why,
            percent(share),
            time(from_ns)
        ))
    }

    /// Goes on finding out what its clock shows, until then. Returns whether that is known.
    fn read_clock(&mut self, until: Instant) -> Result<bool, RemoteError> {
        loop {
            let Some(questions) = &mut self.questions else { return Ok(true) };
            let now = Instant::now();
            let deadline = *questions.deadline.get_or_insert(now + HANDSHAKE_MAX);
            if questions.left == 0 || now >= deadline {
                let Some(best) = questions.best else {
                    return self.record_loss("did not answer in time".to_owned()).map(|()| false);
                };
                (self.offset, self.questions) = (best, None);
                return Ok(true);
            }
            if questions.asked_ns.is_none() {
                self.pings += 1;
                questions.asked_ns = Some(brunt_engine::monotonic_ns());
                self.send_message(&ToAgent::Ping { number: self.pings })?;
            }
            if now >= until {
                return Ok(false);
            }
            match self.link.next_message(until.min(deadline) - now) {
                Ok(Some(message)) => self.take(message)?,
                Ok(None) => {}
                Err(why) => return self.record_loss(why).map(|()| false),
            }
            if self.is_gone() {
                return Ok(false);
            }
        }
    }

    /// Takes in an answer of its clock.
    fn take_pong(&mut self, number: u64, theirs_ns: u64) {
        let answered_ns = brunt_engine::monotonic_ns();
        if let Some(questions) = &mut self.questions
            && number == self.pings
            && let Some(asked_ns) = questions.asked_ns.take()
        {
            let offset = ClockOffset::of(asked_ns, theirs_ns, answered_ns);
            questions.best = Some(questions.best.map_or(offset, |best| best.or(offset)));
            questions.left -= 1;
        }
    }

    /// Takes in what it says.
    fn take(&mut self, message: FromAgent) -> Result<(), RemoteError> {
        match message {
            FromAgent::Alive | FromAgent::AgentInfo(_) => {}
            FromAgent::Pong { number, monotonic_ns } => self.take_pong(number, monotonic_ns),
            // What its clock shows at the start counts: the preparation may have been long.
            FromAgent::Ready if self.state == State::Preparing => {
                (self.state, self.limit) = (State::Ready, None);
                self.questions.get_or_insert(ClockQuestions::NEW);
            }
            FromAgent::Interval(interval) if self.state != State::Ended => {
                self.has_progressed |= has_progress(&interval);
                self.intervals.push(*interval);
            }
            FromAgent::Ended { data, samples } if self.state == State::Measuring => {
                (self.state, self.limit) = (State::Ended, None);
                self.data = Some(RunData { samples, ..*data });
            }
            // Of a run that has ended.
            FromAgent::Ready | FromAgent::Interval(_) | FromAgent::Ended { .. } => {}
            FromAgent::Failed(failure)
                if !failure.is_server_error && (self.state == State::Measuring || self.may_be_replaced()) =>
            {
                return self.record_loss(format!("failed: {}", failure.reason));
            }
            FromAgent::Failed(failure) => {
                return Err(RemoteError {
                    reason: format!("agent {}: {}", self.name, failure.reason),
                    ..failure
                });
            }
        }
        Ok(())
    }

    /// Takes in what it had said when its link was last polled.
    fn listen(&mut self) -> Result<(), RemoteError> {
        match self.state {
            State::Vacant { until } if Instant::now() >= until => {
                return Err(self.blame("was lost before the start, and no other one came"));
            }
            _ if self.is_gone() => return Ok(()),
            _ => {}
        }
        let messages_max = if self.has_word { MESSAGES_MAX } else { 0 };
        for _ in 0..messages_max {
            match self.link.next_message(Duration::ZERO) {
                Ok(Some(message)) => self.take(message)?,
                Ok(None) => break,
                Err(why) => return self.record_loss(why),
            }
            if self.is_gone() {
                return Ok(());
            }
        }
        let heartbeat = self.link.send_heartbeat(&ToAgent::Alive);
        match heartbeat.and_then(|()| self.link.check_silence()) {
            Err(why) => self.record_loss(why),
            // What it has said and we have not taken in yet may show that it got on.
            Ok(()) if self.link.awaited().is_none() => Ok(()),
            Ok(()) => self.check_limit(),
        }
    }

    /// By then it must have got on, unless an earlier limit holds.
    fn limit_to(&mut self, limit: Duration) {
        let deadline = Instant::now().checked_add(limit).map(|deadline| (deadline, limit));
        self.limit = match (self.limit, deadline) {
            (Some(held), Some(new)) => Some(held.min(new)),
            (held, new) => held.or(new),
        };
    }

    /// One that does nothing but send heartbeats is lost, too.
    fn check_limit(&mut self) -> Result<(), RemoteError> {
        match self.limit {
            Some((deadline, limit)) if Instant::now() >= deadline => {
                let phase = if self.state == State::Preparing { "was not ready" } else { "did not end" };
                self.limit = None;
                self.record_loss(format!("{phase} within {} s", limit.as_secs_f64()))
            }
            _ => Ok(()),
        }
    }

    /// May another attempt have its rank? From the start on none may, until the next run.
    fn may_be_replaced(&self) -> bool {
        let is_before_start = match self.state {
            State::Preparing | State::Ready => true,
            State::Ended => self.data.is_none() && self.lost.is_none(),
            State::Vacant { .. } | State::Measuring | State::Left => false,
        };
        is_before_start && self.info.rank.is_some()
    }

    /// Takes an agent that measures for ended, with what it has sent, and leaves the rank of one that may be replaced vacant; any other is
    /// to blame for the end of the run.
    fn record_loss(&mut self, why: String) -> Result<(), RemoteError> {
        match self.state {
            _ if self.may_be_replaced() => {
                self.notes.push(format!("{}: waiting for another", self.blame(&why).reason));
                self.state = State::Vacant { until: Instant::now() + REPLACEMENT_MAX };
            }
            State::Measuring => {
                let lost = LostLink { why, after_interruption: self.is_interrupted, is_told: false };
                (self.state, self.lost) = (State::Ended, Some(lost));
            }
            State::Ended if self.data.is_some() => self.state = State::Left,
            _ => return Err(self.blame(&why)),
        }
        // One that is there ends its load, which would not be counted.
        let _ = self.link.send_message(&ToAgent::Leave);
        Ok(())
    }

    fn blame(&self, why: &str) -> RemoteError {
        RemoteError { is_server_error: false, reason: format!("agent {} {why}", self.name) }
    }

    fn send_message(&mut self, message: &ToAgent) -> Result<(), RemoteError> {
        self.link.send_message(message).or_else(|why| self.record_loss(why))
    }
}

/// One poll of all links, and of where agents dial in: waits until one of them has something to say or takes what waits for it, at most so
/// long, and notes which.
fn poll_links<'a>(
    peers: impl Iterator<Item = &'a mut Peer>,
    listener: Option<&TcpListener>,
    wait: Duration,
) -> Result<(), RemoteError> {
    let mut peers: Vec<&mut Peer> = peers.filter(|peer| !peer.is_gone()).collect();
    let awaited: Vec<Option<PollFd<'_>>> = peers.iter().map(|peer| peer.link.awaited()).collect();
    let wait = if awaited.iter().any(Option::is_none) { Duration::ZERO } else { wait };
    let mut polled: Vec<PollFd<'_>> = awaited.iter().flatten().cloned().collect();
    polled.extend(listener.map(|listener| PollFd::new(listener, PollFlags::IN)));
    wait_for_any(&mut polled, wait).map_err(|error| RemoteError {
        is_server_error: false,
        reason: format!("cannot wait for agents: {error}"),
    })?;
    let mut polled = polled.iter();
    let mut is_ready = || polled.next().is_none_or(|polled| !polled.revents().is_empty());
    let ready: Vec<bool> = awaited.iter().map(|awaited| awaited.is_none() || is_ready()).collect();
    drop(awaited);
    for (peer, has_word) in peers.iter_mut().zip(ready) {
        peer.has_word = has_word;
    }
    Ok(())
}

/// Did its worker get on: has it opened a connection, ended an operation, or seen one fail?
fn has_progress(interval: &Interval) -> bool {
    let activity = interval.activity_in(|_| true);
    let connected: u64 = interval.connections.iter().map(|counts| counts.established + counts.failed).sum();
    activity.completed + activity.failed + connected > 0
}

/// Connects, and tries again until then if the port is closed.
fn connect_until(host: &str, port: u16, until: Instant) -> io::Result<TcpStream> {
    loop {
        match connect(host, port) {
            Err(error) if error.kind() == io::ErrorKind::ConnectionRefused && Instant::now() < until => {}
            ended => return ended,
        }
        // There is no event for a port that opens.
        wait_for_any(&mut [], RETRY_INTERVAL)?;
    }
}

/// Who is still missing, for a user.
fn missing(seats: &[Option<Peer>]) -> String {
    let ranks: Vec<usize> = (0..seats.len()).filter(|rank| seats[*rank].is_none()).collect();
    let named: Vec<String> = ranks.iter().take(MISSING_NAMED).map(usize::to_string).collect();
    let more = if ranks.len() > MISSING_NAMED { ", ..." } else { "" };
    format!("waiting for {} of {} agents: ranks {}{more}", ranks.len(), seats.len(), named.join(", "))
}

/// What of the arrivals the first worker of each agent has, where `crews` has the workers of each agent and the weight of one; `None` where they cannot be
/// added up.
fn arrival_portions(crews: impl Iterator<Item = (u32, u32)> + Clone) -> Option<Vec<Portion>> {
    let unit = crews.clone().map(|(_, weight)| weight).reduce(greatest_common_divisor)?.max(1);
    let widths = crews.map(|(workers, weight)| (workers, (weight / unit).max(1)));
    let of = widths
        .clone()
        .try_fold(0_u32, |sum, (workers, width)| sum.checked_add(workers.checked_mul(width)?))?;
    let mut first = 0;
    let portion = |(workers, width)| {
        let portion = Portion { first, width, of };
        first += workers * width;
        portion
    };
    Some(widths.map(portion).collect())
}

/// The workers of each agent, of `total`: in proportion to its threads, and at least one each if there are enough.
fn divided(total: u32, threads: &[u32]) -> Vec<u32> {
    let all: u64 = threads.iter().map(|own| u64::from(*own)).sum();
    let mut before = 0;
    let part = |own: &u32| {
        let first = u64::from(total) * before / all.max(1);
        before += u64::from(*own);
        (u64::from(total) * before / all.max(1) - first) as u32
    };
    let mut dealt: Vec<u32> = threads.iter().map(part).collect();
    for without in 0..dealt.len() {
        if dealt[without] == 0
            && let Some(most) = (0..dealt.len()).max_by_key(|agent| dealt[*agent])
            && dealt[most] > 1
        {
            (dealt[without], dealt[most]) = (1, dealt[most] - 1);
        }
    }
    dealt
}

fn greatest_common_divisor(one: u32, other: u32) -> u32 {
    if other == 0 { one } else { greatest_common_divisor(other, one % other) }
}

/// The rest of the run, as the controller sees it: agents.
struct ControllerSide<'a> {
    fleet: &'a mut Fleet,
    shares: &'a PlanSplit,
    layout: Layout,
    /// When the run began, on our clock.
    begun_ns: u64,
    /// What agents find on the servers, until they are sent their assignments.
    unprepared: Option<DataSets>,
    /// The last stop that agents were sent.
    stop_sent: Option<Stop>,
    limits: PhaseLimits,
    /// An agent was lost before the start, and another one has its rank.
    has_replaced: bool,
    /// The ends of connections of those that were replaced, not yet handed on.
    closings: Vec<Interval>,
}

impl<'a> ControllerSide<'a> {
    fn new(fleet: &'a mut Fleet, shares: &'a PlanSplit, data: DataSets) -> Self {
        let layout = Layout::of(&shares.agents.plan);
        let begun_ns = brunt_engine::monotonic_ns();
        let limits = PhaseLimits::of(&shares.agents.plan, fleet.peers.len());
        let unprepared = Some(data);
        let (stop_sent, has_replaced, closings) = (None, false, Vec::new());
        Self { fleet, shares, layout, begun_ns, unprepared, stop_sent, limits, has_replaced, closings }
    }

    /// Has everyone connect and store its share.
    fn prepare(&mut self, data: DataSets) -> Result<(), RemoteError> {
        let PlanSplit { agents: SubPlan { plan, .. }, .. } = self.shares;
        let password = plan.login.password.as_ref().map(|password| password.secret().to_owned());
        let shows_certificate = plan.tls.identity.is_some();
        // Agents have no file of ours to read, and take no plan that names one of theirs.
        let mut spec = plan.spec.clone();
        spec.run.password = password.clone().map(Password::verbatim);
        spec.run.take("tls-ca, tls-cert, tls-key");
        let text = spec.to_toml();
        for peer in &mut self.fleet.peers {
            if !matches!(peer.state, State::Vacant { .. }) {
                (peer.state, peer.limit) = (State::Preparing, None);
                peer.limit_to(self.limits.preparation);
            }
            (peer.data, peer.intervals, peer.is_interrupted) = (None, Vec::new(), false);
            peer.connections = ConnectionCounts::default();
        }
        let capacities = self.fleet.peers.iter().map(|peer| (peer.workers.len() as u32, peer.info.weight));
        let portions = arrival_portions(capacities).ok_or_else(|| RemoteError {
            is_server_error: false,
            reason: "the weights of the agents are too large".to_owned(),
        })?;
        for (peer, portion) in self.fleet.peers.iter_mut().zip(portions) {
            let assignment = Assignment {
                plan: text.clone(),
                password: password.clone(),
                shows_certificate,
                first_worker: peer.workers.start,
                workers: peer.workers.len() as u32,
                portion,
                is_stored: data == DataSets::Stored,
            };
            peer.assignment = Some(assignment.clone());
            if !peer.is_gone() {
                peer.send_message(&ToAgent::Prepare(assignment))?;
            }
        }
        Ok(())
    }

    /// Lets agents that dial in take the ranks that were lost before the start, and refuses all others.
    fn replace(&mut self) -> Result<(), RemoteError> {
        let Some(door) = &mut self.fleet.door else { return Ok(()) };
        for arrival in door.arrivals() {
            let Some(door) = &self.fleet.door else { break };
            let holder = |index: u32| self.fleet.peers.get(index as usize).map(Peer::holder);
            let rank = rank_of(&arrival.info, door.size, OWN_VERSION, holder);
            let has_begun = |index: u32| {
                let state = self.fleet.peers[index as usize].state;
                matches!(state, State::Measuring | State::Ended | State::Left)
            };
            match rank {
                Ok(rank) if has_begun(rank.index) => {
                    door.refuse(arrival, "the run has begun: no rank comes back");
                }
                Ok(rank) => {
                    let peer = Peer::joined(rank, arrival);
                    (door.note)(&format!("{} takes the place of the one before", peer.name));
                    self.seat(rank, peer)?;
                }
                Err(why) => door.refuse(arrival, &why),
            }
        }
        Ok(())
    }

    /// Gives an agent the part of the one that had its rank. If it is lost at once, the rank is vacant again.
    fn seat(&mut self, rank: Rank, mut peer: Peer) -> Result<(), RemoteError> {
        self.has_replaced = true;
        let own_workers = self.fleet.own_workers;
        let seat = &mut self.fleet.peers[rank.index as usize];
        let now_ns = brunt_engine::monotonic_ns();
        let mut closing =
            RecorderSet::new(&self.layout).take_interval(own_workers + seat.workers.start, now_ns, now_ns);
        closing.connections[Phase::Preload as usize].retired = seat.connections.open();
        self.closings.push(closing);
        peer.workers = seat.workers.clone();
        peer.recorded_until_ns = vec![0; peer.workers.len()];
        peer.assignment = seat.assignment.take();
        peer.state = State::Preparing;
        peer.limit_to(self.limits.preparation);
        *seat = peer;
        match seat.assignment.clone() {
            Some(assignment) => seat.send_message(&ToAgent::Prepare(assignment)),
            None => Ok(()),
        }
    }

    fn listen(&mut self, wait: Duration) -> Result<(), RemoteError> {
        self.replace()?;
        let Fleet { peers, door, .. } = &mut *self.fleet;
        poll_links(peers.iter_mut(), door.as_ref().map(Door::listener), wait)?;
        for peer in peers {
            peer.listen()?;
            if let Some(door) = door {
                peer.notes.drain(..).for_each(|text| (door.note)(&text));
            }
            let is_limited = match peer.state {
                State::Preparing => true,
                State::Measuring => self.limits.run.is_none() && self.stop_sent.is_none(),
                State::Vacant { .. } | State::Ready | State::Ended | State::Left => false,
            };
            if std::mem::take(&mut peer.has_progressed) && is_limited {
                peer.limit = None;
                peer.limit_to(self.limits.progress);
            }
        }
        Ok(())
    }

    /// Hands on what was heard of agents whose clocks are known.
    fn hand_on(&mut self, hear: &mut dyn FnMut(Interval)) -> Result<(), RemoteError> {
        self.closings.drain(..).for_each(&mut *hear);
        let own_workers = self.fleet.own_workers;
        for peer in self.fleet.peers.iter_mut().filter(|peer| peer.offset.is_known()) {
            let place = Self::place(self.shares, own_workers, peer);
            for interval in std::mem::take(&mut peer.intervals) {
                let sound = interval.check(&self.layout);
                sound.map_err(|why| peer.blame(&format!("sent {why}")))?;
                let worker = interval.worker as usize;
                let interval = place.interval(interval);
                // The timeline has a place for every tenth of a second up to the last.
                let is_past = self.begun_ns - CLOCK_SLACK_NS < interval.start_ns
                    && interval.end_ns < brunt_engine::monotonic_ns() + CLOCK_SLACK_NS;
                if !is_past {
                    return Err(peer.blame("sent records from outside the run"));
                }
                if let Some(until_ns) = peer.recorded_until_ns.get_mut(worker) {
                    *until_ns = interval.end_ns.max(*until_ns);
                }
                peer.totals.add(&interval);
                interval.connections.iter().for_each(|counts| peer.connections.merge(counts));
                hear(interval);
            }
        }
        Ok(())
    }

    /// Ends what has not ended, without a result.
    fn release(&mut self) {
        for peer in &mut self.fleet.peers {
            // A lost agent needs no message.
            let _ = peer.send_message(&ToAgent::Leave);
        }
    }

    /// Where the agents' numbers and times lie in the whole run, on our clock.
    fn place(shares: &PlanSplit, own_workers: u32, peer: &Peer) -> HostMapping {
        // Workers of an agent count from 0 there.
        HostMapping {
            clock_shift_ns: -peer.offset.lead_ns,
            first_worker: own_workers + peer.workers.start,
            classes: shares.agents.classes.clone(),
        }
    }
}

impl Coordinator for ControllerSide<'_> {
    fn poll_ready(
        &mut self,
        is_ready: bool,
        hear: &mut dyn FnMut(Interval),
    ) -> Result<ReadyState, RemoteError> {
        if let Some(data) = self.unprepared.take() {
            self.prepare(data)?;
        }
        let are_ready = is_ready && self.fleet.peers.iter().all(|peer| peer.state == State::Ready);
        self.listen(if is_ready { POLL_INTERVAL } else { Duration::ZERO })?;
        let are_known = self.fleet.read_clocks(are_ready)?;
        self.hand_on(hear)?;
        Ok(if are_ready && are_known { ReadyState::Ready } else { ReadyState::Wait })
    }

    fn begin(&mut self) -> Result<u64, RemoteError> {
        let start_ns = brunt_engine::monotonic_ns() + START_AHEAD_NS + START_NOTICE_NS;
        for peer in &mut self.fleet.peers {
            let monotonic_ns = peer.offset.theirs(start_ns);
            (peer.state, peer.began_ns) = (State::Measuring, start_ns);
            peer.limit_to(self.limits.run.unwrap_or(self.limits.progress));
            peer.send_message(&ToAgent::Start { monotonic_ns })?;
        }
        Ok(start_ns)
    }

    fn publish_interval(&mut self, _: &Interval, _: u64) {}

    fn poll_running(
        &mut self,
        have_ours_ended: bool,
        stop: Option<Stop>,
        on_interval: &mut dyn FnMut(Interval),
    ) -> Result<RemoteStatus, RemoteError> {
        let is_short = |side: &Self| side.fleet.ends_with_loss && side.fleet.is_short();
        if stop == Some(Stop::Interrupted) && !is_short(self) {
            self.fleet.peers.iter_mut().for_each(|peer| peer.is_interrupted = true);
        }
        self.listen(if have_ours_ended { POLL_INTERVAL } else { Duration::ZERO })?;
        let is_short = is_short(self);
        let stop = if is_short { Some(Stop::Interrupted) } else { stop };
        if let Some(stop) = stop.filter(|stop| self.stop_sent != Some(*stop)) {
            self.stop_sent = Some(stop);
            for peer in self.fleet.peers.iter_mut().filter(|peer| peer.state == State::Measuring) {
                let is_urgent = stop == Stop::Interrupted;
                peer.limit_to(if is_urgent {
                    INTERRUPTED_MAX.min(self.limits.stop)
                } else {
                    self.limits.stop
                });
                peer.send_message(&ToAgent::Stop(stop))?;
            }
        }
        self.hand_on(on_interval)?;
        let is_over = self.fleet.peers.iter().all(|peer| matches!(peer.state, State::Ended | State::Left));
        let notes = if self.fleet.ends_with_loss { Vec::new() } else { self.fleet.losses() };
        Ok(RemoteStatus { is_over, stop: is_short.then_some(Stop::Interrupted), notes })
    }

    fn has_lost(&self) -> bool {
        self.has_replaced || self.fleet.is_short()
    }

    fn collect_results(&mut self) -> Vec<RunData> {
        let (shares, own_workers) = (self.shares, self.fleet.own_workers);
        let placed = |peer: &mut Peer| {
            let place = Self::place(shares, own_workers, peer);
            let mut data = peer.data.take()?;
            data.map_host(&place);
            Some(data)
        };
        self.fleet.peers.iter_mut().filter_map(placed).collect()
    }
}

#[cfg(test)]
mod simulated_agents;
#[cfg(test)]
mod tests;
