//! A controller: leads agents through a run and adds up what they recorded.
//!
//! Not a worker, though some may run beside it: what its own workers do goes through the engine as always. Invariant: whatever
//! becomes of an agent, the run ends within seconds and names it; only that one may take most of a minute to look up its servers.

use crate::agent_handshake::{Answer, HandshakeResult, Hello, Nonce, VERSION, Welcome};
use crate::clock_offset::ClockOffset;
use crate::message::{AgentInfo, Assignment, FromAgent, ToAgent};
use crate::message_channel::{AGENT_SILENCE_MAX, MessageChannel, Wire, connection_error};
use crate::trust::ControllerTrust;
use brunt_engine::coordinator::{
    Coordinator, LocalPart, ReadyState, RemoteError, RemoteStatus, START_AHEAD_NS, Stop,
};
use brunt_engine::run::{DataSets, Endpoint, RunData, RunDecision, RunError, RunEvent, run_part};
use brunt_plan::login::Password;
use brunt_plan::plan::Plan;
use brunt_plan::plan_split::PlanSplit;
use brunt_plan::shard::Portion;
use brunt_plan::spec::PlanSpec;
use brunt_stats::agent::AgentRecord;
use brunt_stats::interval::{HostMapping, Interval};
use brunt_stats::recorder::Layout;
use ring::rand::{SecureRandom, SystemRandom};
use rustix::event::Timespec;
use std::io;
use std::net::{TcpStream, ToSocketAddrs};
use std::ops::Range;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

/// Time limit of the handshake, name resolution excluded.
const HANDSHAKE_MAX: Duration = Duration::from_secs(4);
/// Interval of attempts to connect to an agent that does not listen yet.
const RETRY_INTERVAL: Timespec = Timespec { tv_sec: 0, tv_nsec: 50_000_000 };
/// Questions to a clock, of which the one counts that was answered fastest.
const PING_COUNT: u64 = 16;
/// How long the agents are waited for at a time, all together.
const POLL_INTERVAL: Duration = Duration::from_millis(5);
/// The schedule begins this long after word of it is sent: longer than word takes to an agent that is looked at every 10 ms.
const START_NOTICE_NS: u64 = 250_000_000;

/// How far an agent's clock may be from where we think it is.
const CLOCK_SLACK_NS: u64 = 1_000_000_000;

/// For how long an agent that was started a moment ago may refuse connections.
pub const STARTING_MAX: Duration = HANDSHAKE_MAX;

/// How far an agent is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Preparing,
    Ready,
    /// The schedule has begun, or soon will.
    Measuring,
    Ended,
}
/// How a link to an agent ended while that measured.
#[derive(Clone, Debug)]
struct LostLink {
    why: String,
    /// How long after the schedule began that was noticed.
    after_ns: u64,
}

struct Peer {
    name: String,
    info: AgentInfo,
    link: MessageChannel,
    offset: ClockOffset,
    workers: Range<u32>,
    state: State,
    /// Why it was lost while it measured.
    lost: Option<LostLink>,
    /// When the schedule of the last run began, on our clock.
    began_ns: u64,
    data: Option<RunData>,
    /// Heard, and not yet handed on.
    intervals: Vec<Interval>,
    pings: u64,
}

/// Agents that wait to be led.
pub struct Fleet {
    peers: Vec<Peer>,
    /// Workers of our own in the last run, which come before the agents'.
    own_workers: u32,
}

impl Fleet {
    /// Connects to every agent, in turn. Names are as `HOST` or `HOST:PORT`, IPv6 literals in brackets. An agent may refuse
    /// connections for up to `starting_max`.
    ///
    /// # Errors
    /// The first that cannot be reached or does not let us in, and why; for a user.
    pub fn open(
        names: &[(String, u16)],
        trust: &ControllerTrust,
        starting_max: Duration,
    ) -> Result<Self, String> {
        let until = Instant::now() + starting_max;
        let meet = |(host, port): &(String, u16)| {
            let name = format!("{host}:{port}");
            // An IPv6 address may be in brackets, which are no part of it.
            let host = host.trim_matches(['[', ']']);
            let socket = connect(host, *port, until);
            let socket = socket.map_err(|error| format!("cannot be reached: {error}"));
            let met = socket.and_then(|socket| Peer::meet(&name, host, socket, trust));
            met.map_err(|why| format!("agent {name} {why}"))
        };
        names.iter().map(meet).collect::<Result<_, _>>().map(|peers| Self { peers, own_workers: 0 })
    }

    /// How many workers they take on where nothing else is asked for.
    pub fn threads(&self) -> u32 {
        self.peers.iter().map(|peer| peer.info.threads).sum()
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
        let listen = |peer: &mut Peer| peer.listen(Duration::ZERO).map_err(|blame| blame.reason);
        self.peers.iter_mut().try_for_each(listen)
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
            clock_error_ns: peer.offset.error_ns,
            lost: peer.lost.as_ref().map(|lost| lost.why.clone()),
            lost_after_ns: peer.lost.as_ref().map(|lost| lost.after_ns),
        };
        self.peers.iter().map(record).collect()
    }

    /// Carries out a plan: the agents their classes, and we ours, if there are any. As [`brunt_engine::run::run`].
    pub fn run(
        &mut self,
        plan: &Plan,
        shares: &PlanSplit,
        endpoints: &[Endpoint],
        data: DataSets,
        stop: &AtomicBool,
        observe: &mut dyn FnMut(RunEvent<'_>) -> RunDecision,
    ) -> Result<RunData, RunError> {
        let own_workers = shares.controller.as_ref().map_or(0, |own| own.plan.threads);
        self.own_workers = own_workers;
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

impl Peer {
    /// Authenticates both sides of a new connection, and learns what the agent is.
    fn meet(name: &str, host: &str, socket: TcpStream, trust: &ControllerTrust) -> Result<Self, String> {
        let mut wire =
            Wire::new(socket, trust.connection(host)?).map_err(|error| connection_error(&error))?;
        shake_hands(&mut wire, trust)?;
        let mut link = MessageChannel::new(wire, AGENT_SILENCE_MAX);
        let info = match link.next_message(HANDSHAKE_MAX)? {
            Some(FromAgent::AgentInfo(info)) => info,
            Some(_) => return Err("did not describe itself".to_owned()),
            None => return Err("did not answer in time".to_owned()),
        };
        let mut peer = Self {
            name: name.to_owned(),
            info,
            link,
            offset: ClockOffset { lead_ns: 0, error_ns: u64::MAX },
            workers: 0..0,
            state: State::Ended,
            lost: None,
            began_ns: 0,
            data: None,
            intervals: Vec::new(),
            pings: 0,
        };
        peer.measure_offset()?;
        Ok(peer)
    }

    /// Finds out what its clock shows.
    fn measure_offset(&mut self) -> Result<(), String> {
        let mut best: Option<ClockOffset> = None;
        for _ in 0..PING_COUNT {
            self.pings += 1;
            let number = self.pings;
            let asked_ns = brunt_engine::monotonic_ns();
            self.link.send_message(&ToAgent::Ping { number })?;
            let theirs_ns = self.receive_pong(number)?;
            let offset = ClockOffset::of(asked_ns, theirs_ns, brunt_engine::monotonic_ns());
            best = Some(best.map_or(offset, |best| best.or(offset)));
        }
        self.offset = best.unwrap_or(self.offset);
        Ok(())
    }

    fn receive_pong(&mut self, wanted: u64) -> Result<u64, String> {
        let deadline = Instant::now() + HANDSHAKE_MAX;
        loop {
            match self.link.next_message(deadline.saturating_duration_since(Instant::now()))? {
                Some(FromAgent::Pong { number, monotonic_ns }) if number == wanted => {
                    return Ok(monotonic_ns);
                }
                Some(message) => self.take(message).map_err(|blame| blame.reason)?,
                None => return Err("did not answer in time".to_owned()),
            }
        }
    }

    /// Takes in what it says.
    fn take(&mut self, message: FromAgent) -> Result<(), RemoteError> {
        match message {
            FromAgent::Alive | FromAgent::AgentInfo(_) | FromAgent::Pong { .. } => {}
            FromAgent::Ready => self.state = State::Ready,
            FromAgent::Interval(interval) => self.intervals.push(*interval),
            FromAgent::Ended { data, samples } => {
                self.state = State::Ended;
                self.data = Some(RunData { samples, ..*data });
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

    /// Takes in all that it has said by now.
    fn listen(&mut self, wait: Duration) -> Result<(), RemoteError> {
        if self.lost.is_some() {
            return Ok(());
        }
        loop {
            match self.link.next_message(wait) {
                Ok(Some(message)) => self.take(message)?,
                Ok(None) => break,
                Err(why) => return self.record_loss(why),
            }
        }
        match self.link.send_heartbeat(&ToAgent::Alive) {
            Ok(()) => Ok(()),
            Err(why) => self.record_loss(why),
        }
    }

    /// Takes an agent that measures for ended, with what it has sent; any other is to blame for the end of the run.
    fn record_loss(&mut self, why: String) -> Result<(), RemoteError> {
        if self.state != State::Measuring {
            return Err(self.blame(&why));
        }
        let after_ns = brunt_engine::monotonic_ns().saturating_sub(self.began_ns);
        (self.state, self.lost) = (State::Ended, Some(LostLink { why, after_ns }));
        Ok(())
    }

    fn blame(&self, why: &str) -> RemoteError {
        RemoteError { is_server_error: false, reason: format!("agent {} {why}", self.name) }
    }

    fn send_message(&mut self, message: &ToAgent) -> Result<(), RemoteError> {
        self.link.send_message(message).map_err(|why| self.blame(&why))
    }
}

/// The controller's part of the handshake. The error follows the agent's name.
fn shake_hands(wire: &mut Wire, trust: &ControllerTrust) -> Result<(), String> {
    let lost = |error: io::Error| connection_error(&error);
    let deadline = Instant::now() + HANDSHAKE_MAX;
    let mut hello = [0; Hello::BYTES];
    wire.read_hello(&mut hello, deadline).map_err(|error| match (error.kind(), &trust.tls) {
        // Where the agent speaks first, one that waits for us to speak TLS says nothing.
        (io::ErrorKind::TimedOut, None) => "sent no handshake within 4 s; for TLS add --agent-ca".to_owned(),
        _ => connection_error(&error),
    })?;
    let hello = Hello::read(&hello).ok_or("is not an agent of brunt")?;
    if hello.version != VERSION {
        return Err(format!("uses protocol version {}, not {VERSION}", hello.version));
    }
    let token = trust.token.as_ref();
    match (hello.wants_token, token.is_some()) {
        (true, false) => return Err("requires a token: set --token-file".to_owned()),
        (false, true) => return Err("has no token: start it with --token-file".to_owned()),
        _ => {}
    }
    let mut nonce = Nonce::default();
    SystemRandom::new()
        .fill(&mut nonce)
        .map_err(|_| "cannot be authenticated: no random numbers available".to_owned())?;
    let answer = Answer::to(&hello, nonce, token);
    wire.write_all(&answer.bytes(), deadline).map_err(lost)?;
    let mut welcome = [0; Welcome::BYTES];
    wire.read_exact(&mut welcome, deadline).map_err(lost)?;
    let welcome = Welcome::read(&welcome).ok_or("is not an agent of brunt")?;
    let refusal = match welcome.result {
        HandshakeResult::Welcome if welcome.verifies(&hello, &answer, token) => return Ok(()),
        HandshakeResult::Welcome => "failed authentication: wrong token",
        HandshakeResult::Unauthenticated => "rejected this controller: wrong token",
        HandshakeResult::OtherVersion => "rejected this controller: other protocol version",
        HandshakeResult::Busy => {
            "is busy: another controller uses it or has just left it, or it is named twice"
        }
    };
    Err(refusal.to_owned())
}

/// Connects, and tries again until then if the port is closed.
fn connect(host: &str, port: u16, until: Instant) -> io::Result<TcpStream> {
    loop {
        let mut last = io::Error::other("the name has no address");
        for address in (host, port).to_socket_addrs()? {
            match TcpStream::connect_timeout(&address, HANDSHAKE_MAX) {
                Ok(socket) => return Ok(socket),
                Err(error) => last = error,
            }
        }
        if last.kind() != io::ErrorKind::ConnectionRefused || Instant::now() >= until {
            return Err(last);
        }
        // There is no event for a port that opens. A signal may end the wait, which does no harm.
        let _ = rustix::event::poll(&mut [], Some(&RETRY_INTERVAL));
    }
}

/// What of the arrivals the first worker of each agent has, of agents with so many workers of such a weight; `None` where they cannot be
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
}

impl<'a> ControllerSide<'a> {
    fn new(fleet: &'a mut Fleet, shares: &'a PlanSplit, data: DataSets) -> Self {
        let layout = Layout::of(&shares.agents.plan);
        let begun_ns = brunt_engine::monotonic_ns();
        Self { fleet, shares, layout, begun_ns, unprepared: Some(data), stop_sent: None }
    }

    /// Deals out the workers, and has everyone connect and store its share.
    fn prepare(&mut self, data: DataSets) -> Result<(), RemoteError> {
        let mut plan = self.shares.agents.plan.clone();
        let password = plan.login.password.as_ref().map(|password| password.secret().to_owned());
        // Agents have no file of ours to read it from.
        plan.login.password = password.clone().map(Password::verbatim);
        let text = PlanSpec::from(&plan).to_toml();
        self.divide_workers(plan.threads);
        let capacities = self.fleet.peers.iter().map(|peer| (peer.workers.len() as u32, peer.info.weight));
        let portions = arrival_portions(capacities).ok_or_else(|| RemoteError {
            is_server_error: false,
            reason: "the weights of the agents are too large".to_owned(),
        })?;
        for (peer, portion) in self.fleet.peers.iter_mut().zip(portions) {
            let assignment = Assignment {
                plan: text.clone(),
                password: password.clone(),
                first_worker: peer.workers.start,
                workers: peer.workers.len() as u32,
                portion,
                is_stored: data == DataSets::Stored,
            };
            peer.send_message(&ToAgent::Prepare(assignment))?;
        }
        Ok(())
    }

    /// Divides this number of workers among the agents.
    fn divide_workers(&mut self, total: u32) {
        let threads: Vec<u32> = self.fleet.peers.iter().map(|peer| peer.info.threads).collect();
        let mut next = 0;
        for (peer, workers) in self.fleet.peers.iter_mut().zip(divided(total, &threads)) {
            (peer.workers, peer.state) = (next..next + workers, State::Preparing);
            (peer.data, peer.intervals, peer.lost) = (None, Vec::new(), None);
            next += workers;
        }
    }

    fn listen(&mut self, wait: Duration) -> Result<(), RemoteError> {
        let each = wait / self.fleet.peers.len() as u32;
        self.fleet.peers.iter_mut().try_for_each(|peer| peer.listen(each))
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
    fn poll_ready(&mut self, is_ready: bool) -> Result<ReadyState, RemoteError> {
        if let Some(data) = self.unprepared.take() {
            self.prepare(data)?;
        }
        self.listen(if is_ready { POLL_INTERVAL } else { Duration::ZERO })?;
        let are_ready = self.fleet.peers.iter().all(|peer| peer.state == State::Ready);
        Ok(if is_ready && are_ready { ReadyState::Ready } else { ReadyState::Wait })
    }

    fn begin(&mut self) -> Result<u64, RemoteError> {
        for peer in &mut self.fleet.peers {
            peer.measure_offset().map_err(|why| peer.blame(&why))?;
        }
        let start_ns = brunt_engine::monotonic_ns() + START_AHEAD_NS + START_NOTICE_NS;
        for peer in &mut self.fleet.peers {
            let monotonic_ns = peer.offset.theirs(start_ns);
            peer.send_message(&ToAgent::Start { monotonic_ns })?;
            (peer.state, peer.began_ns) = (State::Measuring, start_ns);
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
        self.listen(if have_ours_ended { POLL_INTERVAL } else { Duration::ZERO })?;
        let is_short = self.has_lost();
        let stop = if is_short { Some(Stop::Interrupted) } else { stop };
        if let Some(stop) = stop.filter(|stop| self.stop_sent != Some(*stop)) {
            self.stop_sent = Some(stop);
            for peer in self.fleet.peers.iter_mut().filter(|peer| peer.state == State::Measuring) {
                peer.link.send_message(&ToAgent::Stop(stop)).or_else(|why| peer.record_loss(why))?;
            }
        }
        let own_workers = self.fleet.own_workers;
        let mut is_over = true;
        for peer in &mut self.fleet.peers {
            let place = Self::place(self.shares, own_workers, peer);
            for interval in std::mem::take(&mut peer.intervals) {
                let sound = interval.check(&self.layout);
                sound.map_err(|why| peer.blame(&format!("sent {why}")))?;
                let interval = place.interval(interval);
                // The timeline has a place for every tenth of a second up to the last.
                let is_past = self.begun_ns - CLOCK_SLACK_NS < interval.start_ns
                    && interval.end_ns < brunt_engine::monotonic_ns() + CLOCK_SLACK_NS;
                if !is_past {
                    return Err(peer.blame("sent records from outside the run"));
                }
                on_interval(interval);
            }
            is_over &= peer.state == State::Ended;
        }
        Ok(RemoteStatus { is_over, stop: is_short.then_some(Stop::Interrupted) })
    }

    /// The others end then, and what all have recorded is the result.
    fn has_lost(&self) -> bool {
        self.fleet.peers.iter().any(|peer| peer.lost.is_some())
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
mod tests {
    use super::*;

    #[test]
    fn workers_are_divided_by_threads() {
        let table: [(u32, &[u32], &[u32]); 8] = [
            (4, &[1, 3], &[1, 3]),
            (2, &[1, 3], &[1, 1]),
            (8, &[1, 3], &[2, 6]),
            (3, &[2, 2], &[1, 2]),
            (4, &[1, 100, 1], &[1, 2, 1]),
            (5, &[1, 1], &[2, 3]),
            (48, &[16, 16, 64], &[8, 8, 32]),
            (1, &[4, 4], &[0, 1]),
        ];
        for (total, threads, expected) in table {
            let dealt = divided(total, threads);
            assert_eq!(dealt, expected, "{total} of {threads:?}");
            assert_eq!(dealt.iter().sum::<u32>(), total);
        }
    }

    #[test]
    fn weights_are_portions_of_the_arrivals() {
        let check = |crews: &[(u32, u32)], expected: &[(u32, u32)], of: u32| {
            let expected: Vec<_> =
                expected.iter().map(|(first, width)| Portion { first: *first, width: *width, of }).collect();
            assert_eq!(arrival_portions(crews.iter().copied()), Some(expected.clone()), "{crews:?}");
            assert!(crews.iter().zip(expected).all(|((workers, _), portion)| portion.has_room_for(*workers)));
        };
        // Workers and weight of each agent, the first arrival of each with its width, of how many.
        check(&[(2, 1), (3, 1)], &[(0, 1), (2, 1)], 5);
        check(&[(2, 24), (3, 24)], &[(0, 1), (2, 1)], 5);
        check(&[(2, 4), (1, 6), (3, 2)], &[(0, 2), (4, 3), (7, 1)], 10);
        assert_eq!(arrival_portions([(2, u32::MAX), (1, 2)].into_iter()), None);
    }
}
