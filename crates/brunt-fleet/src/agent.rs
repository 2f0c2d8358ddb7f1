//! An agent: waits for a controller, carries out its share of a plan, and waits for the next.
//!
//! The controller decides about plan, shard and start. An agent serves one controller at a time; one that
//! connects meanwhile is rejected, unless the present one has begun no run for long ([`IdleLimits`]). Invariants: however a controller
//! ends, the agent is waiting again at most a few seconds later, whatever hangs that was begun for it; no file of this host is opened
//! because a controller names it.

use crate::agent_handshake::{Answer, HandshakeResult, Hello, Nonce, VERSION, Welcome};
use crate::agent_traces::{AgentTrace, with_paths};
use crate::credentials::AgentCredentials;
use crate::message::{AgentInfo, Assignment, FromAgent, ToAgent, printable};
use crate::message_channel::{CONTROLLER_SILENCE_MAX, MessageChannel, Wire, connect, connection_error};
use crate::newcomer::HANDSHAKE_MAX;
use crate::phase_limits::LOOKUP_MAX;
use brunt_engine::coordinator::{Coordinator, LocalPart, ReadyState, RemoteError, RemoteStatus, Stop};
use brunt_engine::run::{DataSets, Endpoint, ErrorOrigin, RunData, RunDecision, RunError, run_part};
use brunt_plan::cpus::CpuList;
use brunt_plan::login::Password;
use brunt_plan::plan::{Plan, Wait};
use brunt_plan::resolve::fleet::joined;
use brunt_plan::resolve::{Host, resolve_part};
use brunt_plan::sockets::Identity;
use brunt_plan::spec::PlanSpec;
use brunt_stats::interval::{HostMapping, Interval};
use ring::rand::{SecureRandom, SystemRandom};
use std::io;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::ops::Range;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, PoisonError, mpsc};
use std::time::{Duration, Instant};

/// Pauses between attempts to join a controller: the first, and the longest.
const REDIAL_MIN: Duration = Duration::from_millis(100);
const REDIAL_MAX: Duration = Duration::from_secs(5);
/// How long a message is awaited at a time.
const POLL_INTERVAL: Duration = Duration::from_millis(10);
/// Look-ups that hang, whose threads cannot be ended. With more of them the agent accepts no plan.
const LOOKUPS_MAX: usize = 8;
/// How long a controller that left may take to release its session.
const RELEASE_MAX: Duration = Duration::from_secs(2);
/// Time limit for sending what is queued when a controller leaves.
const FLUSH_MAX: Duration = Duration::from_secs(1);
/// Why a run ends that the controller leaves.
const ABORTED: &str = "the controller aborted the run";
/// A schedule begins at most this long before or after the order to start it arrives.
const START_DISTANCE_MAX: Duration = Duration::from_secs(60);

/// For how long a controller may begin no run while another one waits for the agent.
#[derive(Clone, Copy, Debug)]
struct IdleLimits {
    /// Before its first run.
    before_first: Duration,
    /// Between two runs, in which the user's own commands run.
    between: Duration,
}

impl Default for IdleLimits {
    fn default() -> Self {
        Self { before_first: Duration::from_secs(30), between: Duration::from_secs(600) }
    }
}

/// What a plan needs of this host, found: names resolved, files read.
pub type Endpoints = Vec<Endpoint>;

/// Finds the servers of a plan, and checks the limits of this host for this number of workers. On a thread that may hang.
pub type Open = Arc<dyn Fn(&Plan, u32) -> Result<Endpoints, RemoteError> + Send + Sync>;

/// Takes what these workers of a plan yielded.
pub type Keep<'a> = dyn Fn(&Plan, Range<u32>, &RunData, DataSets) + Sync + 'a;

/// Files of this host for TLS with the servers; a plan that comes over the network names none.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TargetFiles {
    /// Issuers of the servers' certificates; none: those that this host trusts.
    pub ca: Option<String>,
    /// The certificate for servers that ask for one, and its key.
    pub identity: Option<Identity>,
}

/// An agent, with what it needs of the program around it.
pub struct Agent<'a> {
    /// Who is let in.
    pub credentials: AgentCredentials,
    /// What it says of itself.
    pub info: AgentInfo,
    /// Processors its workers are pinned to; none: wherever the kernel puts them.
    pub cpus: Vec<u32>,
    /// Its workers sleep between requests, whatever the plan says.
    pub sleeps: bool,
    /// What it has for TLS with the servers.
    pub target: TargetFiles,
    /// What it has of traces.
    pub traces: Vec<AgentTrace>,
    /// Finds the servers of a plan.
    pub open: Open,
    /// Keeps a part of a plan, before the controller has it.
    pub keep: &'a Keep<'a>,
    /// Prints a note on what the agent does.
    pub note: &'a (dyn Fn(&str) + Sync),
}

impl Agent<'_> {
    /// Waits for controllers and never returns. Without room for a connection or its thread it tries again: another may soon end.
    pub fn serve(&self, listener: &TcpListener) -> ! {
        let session = Session::default();
        std::thread::scope(|scope| {
            loop {
                let session = &session;
                let received = listener.accept().and_then(|(socket, peer)| {
                    std::thread::Builder::new()
                        .name("brunt-agent".to_owned())
                        .spawn_scoped(scope, move || self.receive(socket, peer, session))
                });
                if let Err(error) = received {
                    (self.note)(&format!("cannot accept connections: {error}"));
                    std::thread::park_timeout(POLL_INTERVAL);
                }
            }
        })
    }

    /// Dials a controller, again and again until it lets us in or this time has passed, and serves it. Returns when the controller leaves
    /// behind a run.
    ///
    /// # Errors
    /// It refused us, was not there in time, gave up or was lost in a run, or the run failed; for a user.
    pub fn join(&self, (host, port): &(String, u16), waited_max: Duration) -> Result<(), String> {
        let (session, since) = (Session::default(), Instant::now());
        let (mut pause, mut noted) = (REDIAL_MIN, String::new());
        let name = joined(host, *port);
        loop {
            let reached = connect(host, *port).map_err(|error| format!("cannot be reached: {error}"));
            let met = reached.and_then(|socket| self.let_in(socket, &session));
            let why = match met {
                Err(why) => why,
                Ok((mut link, turn)) => {
                    pause = REDIAL_MIN;
                    (self.note)(&format!("in the fleet of {name}"));
                    let mut runs = Runs { has_joined: true, ..Runs::default() };
                    let Err(why) = self.serve_controller(&mut link, turn.0, &mut runs);
                    match runs {
                        Runs { refusal: Some(refusal), .. } => return Err(format!("was refused: {refusal}")),
                        Runs { begun, ended, .. } if begun > 0 && begun == ended => return Ok(()),
                        Runs { begun: 1.., .. } => return Err(why),
                        Runs { .. } => why,
                    }
                }
            };
            if since.elapsed() >= waited_max {
                return Err(format!("{why}; waited for {} s", waited_max.as_secs()));
            }
            if noted != why {
                (self.note)(&format!("{name} {why}; dialling again"));
                noted = why;
            }
            std::thread::park_timeout(pause);
            pause = (pause * 2).min(REDIAL_MAX);
        }
    }

    /// Accepts or rejects a peer, and serves it.
    fn receive(&self, socket: TcpStream, peer: SocketAddr, session: &Session) {
        let peer = SocketAddr::new(peer.ip().to_canonical(), peer.port());
        match self.let_in(socket, session) {
            Err(why) => (self.note)(&format!("{peer}: {why}")),
            Ok((mut link, turn)) => {
                (self.note)(&format!("controlled by {peer}"));
                let Err(why) = self.serve_controller(&mut link, turn.0, &mut Runs::default());
                // One that is lost does not read this.
                let _ = link.send_message(&FromAgent::Failed(host_error(format!(
                    "dropped this controller, which {why}"
                ))));
                (self.note)(&format!("{peer} {why}; waiting"));
            }
        }
    }

    /// The handshake. A peer that is not authenticated never takes the session.
    fn let_in<'a>(
        &self,
        socket: TcpStream,
        session: &'a Session,
    ) -> Result<(MessageChannel, SessionGuard<'a>), String> {
        let deadline = Instant::now() + HANDSHAKE_MAX;
        let lost = |error: io::Error| connection_error(&error);
        let mut wire = Wire::new(socket, self.credentials.connection()?).map_err(lost)?;
        let mut nonce = Nonce::default();
        SystemRandom::new().fill(&mut nonce).map_err(|_| "no random numbers available".to_owned())?;
        let token = self.credentials.token.as_ref();
        let hello = Hello { version: VERSION, wants_token: token.is_some(), nonce };
        wire.write_all(&hello.bytes(), deadline).map_err(lost)?;
        let mut answer = [0; Answer::BYTES];
        wire.read_exact(&mut answer, deadline).map_err(lost)?;
        let answer = Answer::read(&answer).ok_or(match answer {
            // A record of a handshake of TLS.
            [22, 3, ..] if token.is_none() => {
                "speaks TLS: start this agent with --auth, as the controller was"
            }
            _ => "is not a controller of brunt",
        })?;
        let mut welcome = Welcome::to(&hello, &answer, token, false);
        let turn = if welcome.result == HandshakeResult::Welcome { session.take() } else { None };
        if turn.is_none() {
            welcome = Welcome::to(&hello, &answer, token, true);
        }
        wire.write_all(&welcome.bytes(), deadline).map_err(lost)?;
        match (welcome.result, turn) {
            (HandshakeResult::Welcome, Some(turn)) => {
                Ok((MessageChannel::new(wire, CONTROLLER_SILENCE_MAX), turn))
            }
            (HandshakeResult::Unauthenticated, _) => Err("was rejected: wrong token".to_owned()),
            (HandshakeResult::OtherVersion, _) => Err("was rejected: other protocol version".to_owned()),
            (HandshakeResult::Busy | HandshakeResult::Welcome, _) => {
                Err("was rejected: busy with another controller".to_owned())
            }
        }
    }

    /// Does what a controller says until it is lost. Returns why it is.
    fn serve_controller(
        &self,
        link: &mut MessageChannel,
        session: &Session,
        runs: &mut Runs,
    ) -> Result<std::convert::Infallible, String> {
        link.send_message(&FromAgent::AgentInfo(self.info.clone()))?;
        let mut idle = Idle { since: Instant::now(), max: session.idle_limits.before_first };
        loop {
            session.check_idle(idle)?;
            match link.next_message::<ToAgent>(POLL_INTERVAL * 10)? {
                Some(ToAgent::Ping { number }) => pong(link, number)?,
                Some(ToAgent::Prepare(assignment)) => {
                    runs.begun += 1;
                    match self.run_assignment(link, &assignment, session, &mut idle)? {
                        Ok(()) => runs.ended += 1,
                        // Its engine sees that it failed, and may place it again.
                        Err(why) if runs.has_joined => {
                            link.drain(Instant::now() + FLUSH_MAX);
                            return Err(printable(&why));
                        }
                        Err(why) => (self.note)(&printable(&why)),
                    }
                }
                Some(ToAgent::Leave) if runs.has_joined => {
                    runs.begun += 1;
                    return Err("the controller gave up".to_owned());
                }
                Some(ToAgent::Refuse { reason }) => {
                    runs.refusal = Some(printable(&reason));
                    return Err("refused this agent".to_owned());
                }
                // What belongs to a run that has ended here already.
                Some(ToAgent::Alive | ToAgent::Start { .. } | ToAgent::Stop(_) | ToAgent::Leave) | None => {}
            }
            link.send_heartbeat(&FromAgent::Alive)?;
        }
    }

    /// Carries out its share of a plan. Returns why the run failed, if it did. An error is why there is no controller any more.
    fn run_assignment(
        &self,
        link: &mut MessageChannel,
        assignment: &Assignment,
        session: &Session,
        idle: &mut Idle,
    ) -> Result<Result<(), String>, String> {
        let failed = |link: &mut MessageChannel, failure: RemoteError| {
            link.send_message(&FromAgent::Failed(failure.clone())).map(|()| Err(failure.reason))
        };
        let named = self.plan(assignment).and_then(|plan| Ok((self.with_target(&plan, assignment)?, plan)));
        let (plan, told) = match named {
            Ok(plans) => plans,
            Err(trouble) => return failed(link, trouble),
        };
        let mut side = AgentSide::new(link, session);
        let endpoints = match self.find(&mut side, &plan, assignment.workers) {
            Ok(endpoints) => endpoints,
            Err(failure) => {
                return match (side.lost, side.has_left) {
                    (Some(why), _) => Err(why),
                    (None, true) => Ok(Err(ABORTED.to_owned())),
                    (None, false) => failed(link, own_options(failure)),
                };
            }
        };
        let workers = assignment.first_worker..assignment.first_worker + assignment.workers;
        (self.note)(&format!("workers {} to {} of {}", workers.start, workers.end - 1, plan.threads));
        let part = LocalPart { plan: &plan, workers, portion: assignment.portion, classes: &[] };
        let data = if assignment.is_stored { DataSets::Stored } else { DataSets::ToStore };
        let never = AtomicBool::new(false);
        let ended =
            run_part(&plan, &part, &endpoints, data, &never, &mut |_| RunDecision::Continue, &mut side);
        let AgentSide { epoch_ns, lost, start_ns, .. } = side;
        if start_ns.is_some() {
            *idle = Idle { since: Instant::now(), max: session.idle_limits.between };
        }
        if let Some(why) = lost {
            return Err(why);
        }
        match ended {
            Ok(mut own) => {
                // In the plan of all, which has no files.
                (self.keep)(&told, part.workers.clone(), &own, data);
                own.map_host(&HostMapping { clock_shift_ns: epoch_ns as i64, ..HostMapping::default() });
                (self.note)("done");
                let samples = std::mem::take(&mut own.samples);
                link.send_message(&FromAgent::Ended { data: Box::new(own), samples }).map(Ok)
            }
            // Let go by the controller, which knows.
            Err(RunError::Interrupted | RunError::Remote(_)) => Ok(Err(ABORTED.to_owned())),
            Err(error) => {
                let is_server_error = error.origin() == ErrorOrigin::Server;
                let failure = RemoteError { is_server_error, reason: error.to_string() };
                failed(link, own_options(failure))
            }
        }
    }

    /// Finds what a plan needs, unless the controller leaves meanwhile. To look up a name may take longer than a controller waits for a
    /// heartbeat, and the look-up may never end, so it runs on a detached thread.
    fn find(&self, side: &mut AgentSide<'_>, plan: &Plan, workers: u32) -> Result<Endpoints, RemoteError> {
        let lookups = &side.session.lookups;
        if Arc::strong_count(lookups) > LOOKUPS_MAX {
            let reason = format!("{LOOKUPS_MAX} earlier look-ups of names hang: restart the agent");
            return Err(host_error(reason));
        }
        let (finder, found) = mpsc::channel();
        let (open, plan, counted) = (self.open.clone(), plan.clone(), lookups.clone());
        let thread = std::thread::Builder::new().name("brunt-lookup".to_owned()).spawn(move || {
            // The receiver is gone if the controller has left.
            let _ = finder.send(open(&plan, workers));
            drop(counted);
        });
        thread.map_err(|error| host_error(format!("cannot resolve names: {error}")))?;
        let since = Instant::now();
        while !side.has_left {
            match found.try_recv() {
                Ok(found) => return found,
                Err(mpsc::TryRecvError::Disconnected) => {
                    return Err(host_error("the look-up of its servers ended early".to_owned()));
                }
                Err(mpsc::TryRecvError::Empty) if since.elapsed() >= LOOKUP_MAX => {
                    let reason = format!("did not find its servers within {} s", LOOKUP_MAX.as_secs());
                    return Err(host_error(reason));
                }
                Err(mpsc::TryRecvError::Empty) => side.listen(POLL_INTERVAL)?,
            }
        }
        Err(host_error(ABORTED.to_owned()))
    }

    /// The plan of all agents, as this host understands it: the very same, or nothing.
    fn plan(&self, assignment: &Assignment) -> Result<Plan, RemoteError> {
        let mut spec = PlanSpec::from_toml(&assignment.plan).map_err(host_error)?;
        if let Some(option) = spec.first_file() {
            return Err(host_error(format!(
                "rejected the plan: '{option}' names a file, and agents open none that a controller names"
            )));
        }
        spec.run.password = assignment.password.clone().map(Password::verbatim);
        let host = Host::of(brunt_engine::allowed_cpus(), 0);
        let plan = resolve_part(&spec, &host).map_err(|error| host_error(error.to_string()))?;
        brunt_engine::check_commands(&plan).map_err(host_error)?;
        if !is_part(assignment, plan.threads) {
            let Assignment { first_worker, workers, .. } = assignment;
            return Err(host_error(format!(
                "was assigned {workers} workers from number {first_worker}, and arrivals, that are no part of a plan of {}",
                plan.threads
            )));
        }
        if plan.spec.to_toml() != assignment.plan {
            return Err(host_error(
                "reads the plan differently: controller and agent need the same version of brunt".to_owned(),
            ));
        }
        let own = plan.changed(|spec| {
            spec.run.cpus = (!self.cpus.is_empty()).then(|| CpuList(self.cpus.clone()));
            if self.sleeps {
                spec.run.wait = Some(Wait::Sleep);
            }
        });
        own.map_err(|error| host_error(error.to_string()))
    }

    /// The plan with the files of this host.
    fn with_target(&self, plan: &Plan, assignment: &Assignment) -> Result<Plan, RemoteError> {
        let TargetFiles { ca, identity } = &self.target;
        let identity = identity.as_ref().filter(|_| assignment.shows_certificate);
        if identity.is_none() && assignment.shows_certificate {
            let reason = "has no certificate for the servers: start it with --target-cert and --target-key";
            return Err(host_error(reason.to_owned()));
        }
        let plan = with_paths(plan, &self.traces).map_err(host_error)?;
        let own = plan.changed(|spec| {
            spec.run.tls_ca.clone_from(ca);
            spec.run.tls_cert = identity.map(|identity| identity.certificate.clone());
            spec.run.tls_key = identity.map(|identity| identity.key.clone());
        });
        own.map_err(|error| host_error(error.to_string()))
    }
}

/// Are there these workers and arrivals in a plan of `threads` workers, with at least one arrival in turn for every other worker?
fn is_part(assignment: &Assignment, threads: u32) -> bool {
    let Assignment { first_worker, workers, portion, .. } = assignment;
    let others = first_worker.checked_add(*workers).and_then(|last| threads.checked_sub(last));
    let end = u64::from(portion.first) + u64::from(portion.width) * u64::from(*workers);
    others.is_some_and(|behind| end + u64::from(behind) <= u64::from(portion.of))
        && *workers > 0
        && portion.width > 0
        && portion.first >= *first_worker
}

/// What went wrong on this host, with the names that its own options have: a plan names none of its files.
fn own_options(trouble: RemoteError) -> RemoteError {
    const NAMES: [(&str, &str); 4] = [
        (" (brunt run without -s starts a server of its own)", ""),
        ("--tls-ca", "brunt agent --target-ca"),
        ("--tls-cert", "brunt agent --target-cert"),
        ("--tls-key", "--target-key"),
    ];
    let renamed = |reason: String, (plans, agents): (&str, &str)| reason.replace(plans, agents);
    RemoteError { reason: NAMES.into_iter().fold(trouble.reason, renamed), ..trouble }
}

/// What a controller had done when it left.
#[derive(Debug, Default)]
struct Runs {
    /// It was dialled: the agent ends with it.
    has_joined: bool,
    begun: u32,
    ended: u32,
    /// Why it did not take us.
    refusal: Option<String>,
}

/// How long a controller has begun no run, and how long it may while another one waits.
#[derive(Clone, Copy, Debug)]
struct Idle {
    since: Instant,
    max: Duration,
}

/// The one session of an agent: in use while a controller is connected.
#[derive(Default)]
struct Session {
    is_taken: Mutex<bool>,
    freed: Condvar,
    /// Controllers that have authenticated and want it.
    waiting: AtomicUsize,
    idle_limits: IdleLimits,
    /// Held by every look-up that has not ended.
    lookups: Arc<()>,
}

impl Session {
    /// Takes the turn, once the controller before is through with leaving; nothing where it does not leave.
    fn take(&self) -> Option<SessionGuard<'_>> {
        // A session that panicked has given its turn back.
        let taken = self.is_taken.lock().unwrap_or_else(PoisonError::into_inner);
        self.waiting.fetch_add(1, Ordering::Relaxed);
        let waited = self.freed.wait_timeout_while(taken, RELEASE_MAX, |is_taken| *is_taken);
        self.waiting.fetch_sub(1, Ordering::Relaxed);
        let (mut is_taken, _) = waited.unwrap_or_else(PoisonError::into_inner);
        let was_taken = std::mem::replace(&mut *is_taken, true);
        // Not made where it is not ours: it would be given back.
        (!was_taken).then(|| SessionGuard(self))
    }

    /// May the present controller keep it? An error is why not.
    fn check_idle(&self, idle: Idle) -> Result<(), String> {
        if idle.since.elapsed() < idle.max || self.waiting.load(Ordering::Relaxed) == 0 {
            return Ok(());
        }
        Err(format!("began no run for {} s while another controller waited", idle.max.as_secs()))
    }
}

/// Releases the session when dropped.
struct SessionGuard<'a>(&'a Session);

impl Drop for SessionGuard<'_> {
    fn drop(&mut self) {
        *self.0.is_taken.lock().unwrap_or_else(PoisonError::into_inner) = false;
        self.0.freed.notify_one();
    }
}

/// An error of which no server is the cause.
fn host_error(reason: String) -> RemoteError {
    RemoteError { is_server_error: false, reason }
}

fn pong(link: &mut MessageChannel, number: u64) -> Result<(), String> {
    link.send_message(&FromAgent::Pong { number, monotonic_ns: brunt_engine::monotonic_ns() })
}

/// The rest of the run, as an agent sees it: a controller.
struct AgentSide<'a> {
    link: &'a mut MessageChannel,
    session: &'a Session,
    /// When the preparation began.
    prepare: Instant,
    /// Since the preparation ended, which the others may need as long for: the wait for the start.
    ready: Option<Idle>,
    start_ns: Option<u64>,
    stop: Option<Stop>,
    has_left: bool,
    /// Why the connection to the controller was lost.
    lost: Option<String>,
    epoch_ns: u64,
}

impl<'a> AgentSide<'a> {
    fn new(link: &'a mut MessageChannel, session: &'a Session) -> Self {
        Self {
            link,
            session,
            prepare: Instant::now(),
            ready: None,
            start_ns: None,
            stop: None,
            has_left: false,
            lost: None,
            epoch_ns: 0,
        }
    }

    /// Takes in what the controller says, and says that we are here.
    fn listen(&mut self, wait: Duration) -> Result<(), RemoteError> {
        let until = Instant::now() + wait;
        loop {
            let heard = self.link.next_message::<ToAgent>(until.saturating_duration_since(Instant::now()));
            let answered = match heard {
                Ok(None) => break,
                Ok(Some(ToAgent::Ping { number })) => pong(self.link, number),
                Ok(Some(ToAgent::Start { monotonic_ns })) => {
                    let distance = monotonic_ns.abs_diff(brunt_engine::monotonic_ns());
                    if u128::from(distance) <= START_DISTANCE_MAX.as_nanos() {
                        self.start_ns = Some(monotonic_ns);
                        break;
                    }
                    Err("ordered a start more than a minute away".to_owned())
                }
                Ok(Some(ToAgent::Stop(ending))) => {
                    self.stop = Some(ending);
                    Ok(())
                }
                Ok(Some(ToAgent::Leave)) => {
                    self.has_left = true;
                    break;
                }
                Ok(Some(ToAgent::Alive)) => Ok(()),
                Ok(Some(ToAgent::Prepare(_) | ToAgent::Refuse { .. })) => {
                    Err("started a second run".to_owned())
                }
                Err(why) => Err(why),
            };
            self.note(answered)?;
        }
        let alive = self.link.send_heartbeat(&FromAgent::Alive);
        self.note(alive)
    }

    fn note(&mut self, said: Result<(), String>) -> Result<(), RemoteError> {
        said.map_err(|why| {
            let blame = host_error(why.clone());
            self.lost = Some(why);
            blame
        })
    }
}

impl Coordinator for AgentSide<'_> {
    fn poll_ready(&mut self, is_ready: bool, _: &mut dyn FnMut(Interval)) -> Result<ReadyState, RemoteError> {
        if is_ready && self.ready.is_none() {
            let max = self.session.idle_limits.between + self.prepare.elapsed();
            self.ready = Some(Idle { since: Instant::now(), max });
            let said = self.link.send_message(&FromAgent::Ready);
            self.note(said)?;
        }
        let kept = self.ready.map_or(Ok(()), |idle| self.session.check_idle(idle));
        self.note(kept)?;
        self.listen(if is_ready { POLL_INTERVAL } else { Duration::ZERO })?;
        Ok(match (self.has_left, self.start_ns) {
            (true, _) => ReadyState::Aborted,
            (false, Some(_)) => ReadyState::Ready,
            (false, None) => ReadyState::Wait,
        })
    }

    fn begin(&mut self) -> Result<u64, RemoteError> {
        self.start_ns.ok_or_else(|| host_error("no start time was received".to_owned()))
    }

    fn publish_interval(&mut self, interval: &Interval, epoch_ns: u64) {
        self.epoch_ns = epoch_ns;
        let there = HostMapping { clock_shift_ns: epoch_ns as i64, ..HostMapping::default() };
        let said = self.link.send_message(&FromAgent::Interval(Box::new(there.interval(interval.clone()))));
        // The next one who asks hears of it.
        let _ = self.note(said);
    }

    fn poll_running(
        &mut self,
        _: bool,
        _: Option<Stop>,
        _: &mut dyn FnMut(Interval),
    ) -> Result<RemoteStatus, RemoteError> {
        self.listen(Duration::ZERO)?;
        match (&self.lost, self.has_left) {
            (Some(why), _) => Err(host_error(why.clone())),
            (None, true) => Err(host_error(ABORTED.to_owned())),
            (None, false) => Ok(RemoteStatus { is_over: true, stop: self.stop, ..RemoteStatus::default() }),
        }
    }

    fn collect_results(&mut self) -> Vec<RunData> {
        self.link.drain(Instant::now() + FLUSH_MAX);
        Vec::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::message_channel::AGENT_SILENCE_MAX;
    use crate::message_channel::tests::pair;
    use brunt_plan::resolve::resolve;
    use brunt_plan::shard::Portion;

    fn agent(open: Open) -> Agent<'static> {
        Agent {
            credentials: AgentCredentials::OPEN,
            info: AgentInfo {
                host: String::new(),
                version: String::new(),
                threads: 1,
                weight: 1,
                rank: None,
            },
            cpus: Vec::new(),
            sleeps: false,
            traces: Vec::new(),
            target: TargetFiles::default(),
            open,
            keep: &|_, _, _, _| (),
            note: &|_| {},
        }
    }

    fn default_plan() -> Plan {
        let host = Host::of(vec![0], 1);
        resolve(&PlanSpec::default(), &host).unwrap()
    }

    /// Names are looked up until the controller has heard twice that the agent is there.
    #[test]
    fn slow_name_lookups_keep_the_heartbeat() {
        let (mut link, far) = pair();
        let (heard_twice, has_heard_twice) = mpsc::channel();
        let has_heard_twice = Mutex::new(has_heard_twice);
        let agent = agent(Arc::new(move |_, _| {
            let waited = has_heard_twice.lock().unwrap().recv_timeout(AGENT_SILENCE_MAX * 5);
            Err(RemoteError { is_server_error: true, reason: format!("unknown after {waited:?}") })
        }));
        let controller = std::thread::spawn(move || {
            let mut link = MessageChannel::new(Wire::new(far, None).unwrap(), AGENT_SILENCE_MAX);
            let heard = [0; 2].map(|_| link.next_message::<FromAgent>(AGENT_SILENCE_MAX).unwrap());
            heard_twice.send(()).unwrap();
            (link, heard)
        });
        let session = Session::default();
        let found = agent.find(&mut AgentSide::new(&mut link, &session), &default_plan(), 1);
        let (_, heard) = controller.join().unwrap();
        assert!(heard.iter().all(|heard| matches!(heard, Some(FromAgent::Alive))), "{heard:?}");
        assert_eq!(found.unwrap_err().reason, "unknown after Ok(())");
    }

    /// A look-up that hangs keeps a thread, but no session: the agent is free as soon as its controller leaves or is lost.
    #[test]
    fn hanging_lookups_keep_no_session() {
        let (release, hang) = mpsc::channel::<()>();
        let hang = Mutex::new(hang);
        let agent = agent(Arc::new(move |_, _| {
            let _ = hang.lock().unwrap().recv();
            Ok(Vec::new())
        }));
        let session = Session::default();
        let (mut link, far) = pair();
        drop(far);
        let mut side = AgentSide::new(&mut link, &session);
        assert!(agent.find(&mut side, &default_plan(), 1).is_err());
        assert_eq!(side.lost.as_deref(), Some("closed the connection"));
        let left = || {
            let (mut link, far) = pair();
            let mut controller = MessageChannel::new(Wire::new(far, None).unwrap(), AGENT_SILENCE_MAX);
            controller.send_message(&ToAgent::Leave).unwrap();
            agent.find(&mut AgentSide::new(&mut link, &session), &default_plan(), 1).unwrap_err().reason
        };
        for _ in 1..LOOKUPS_MAX {
            assert_eq!(left(), ABORTED);
        }
        assert_eq!(left(), "8 earlier look-ups of names hang: restart the agent");
        drop(release);
    }

    #[test]
    fn plans_with_files_are_rejected_unopened() {
        let agent = agent(Arc::new(|_, _| panic!("no plan gets so far")));
        let assignment = |plan: &str| Assignment {
            plan: plan.to_owned(),
            password: None,
            shows_certificate: false,
            first_worker: 0,
            workers: 1,
            portion: LocalPart::alone(1),
            is_stored: false,
        };
        let reason = |plan: &str| agent.plan(&assignment(plan)).unwrap_err().reason;
        let table = [
            ("tls-ca = '/proc/kmsg'", "tls-ca"),
            ("tls-cert = '/proc/kmsg'\ntls-key = 'k'", "tls-cert"),
            ("password = '@/proc/kmsg'", "password"),
            ("server = 'unix:/run/docker.sock'", "server"),
            ("[[class]]\ntrace = '/proc/kmsg'\ntrace-layout = 'mutilate-read-write'", "trace"),
        ];
        for (plan, option) in table {
            let expected = format!(
                "rejected the plan: '{option}' names a file, and agents open none that a controller names"
            );
            assert_eq!(reason(plan), expected);
        }
        // A value in a file is the controller's to read.
        for plan in ["value-size = '@/proc/kmsg'", "rate-profile = '@/proc/kmsg'", "arrival = '@/proc/kmsg'"]
        {
            assert!(reason(plan).contains("expected"), "{}", reason(plan));
        }
    }

    /// Whatever numbers a controller sends, nothing is computed from those that do not fit the plan.
    #[test]
    fn workers_that_are_no_part_of_the_plan_are_rejected() {
        let agent = agent(Arc::new(|_, _| panic!("no plan gets so far")));
        let spec = PlanSpec::from_toml("threads = 4\nconnections = 4").unwrap();
        let plan = resolve(&spec, &Host::of(vec![0], 1)).unwrap();
        let assignment = |first_worker, workers, [first, width, of]: [u32; 3]| Assignment {
            plan: plan.spec.to_toml(),
            password: None,
            shows_certificate: false,
            first_worker,
            workers,
            portion: Portion { first, width, of },
            is_stored: false,
        };
        let table = [
            (0, 0, [0, 1, 4]),
            (4, 0, [4, 1, 4]),
            (0, 5, [0, 1, 5]),
            (4, 1, [4, 1, 5]),
            (u32::MAX, 1, [0, 1, 4]),
            (0, u32::MAX, [0, 1, u32::MAX]),
            (0, 4, [0, 1, 0]),
            (0, 4, [0, 0, 4]),
            (0, 4, [1, 1, 4]),
            (0, 2, [0, u32::MAX, u32::MAX]),
            (0, 1, [u32::MAX, 1, u32::MAX]),
            // The workers of others have no arrivals left.
            (1, 1, [0, 1, 4]),
            (1, 1, [1, 3, 4]),
        ];
        for (first_worker, workers, portion) in table {
            let reason = agent.plan(&assignment(first_worker, workers, portion)).unwrap_err().reason;
            let expected = format!(
                "was assigned {workers} workers from number {first_worker}, and arrivals, that are no part of a plan of 4"
            );
            assert_eq!(reason, expected, "{portion:?}");
        }
        for (first_worker, workers, portion) in [(0, 4, [0, 1, 4]), (1, 2, [1, 1, 4]), (1, 2, [3, 2, 8])] {
            let planned = agent.plan(&assignment(first_worker, workers, portion));
            assert!(planned.is_ok(), "{portion:?}: {planned:?}");
        }
    }

    /// A controller that begins no run gives way to the next that asks for the agent, and to no time alone.
    #[test]
    fn idle_controllers_give_way_to_others() {
        let short = Duration::from_millis(300);
        let long = Duration::from_secs(600);
        // (how long it may have begun none, another one waits, it is dropped), after 300 ms
        let table = [(short, false, false), (short, true, true), (long, true, false)];
        for (max, is_awaited, is_dropped) in table {
            let session = Session::default();
            session.waiting.store(usize::from(is_awaited), Ordering::Relaxed);
            let since = Instant::now().checked_sub(short).unwrap();
            let checked = session.check_idle(Idle { since, max });
            assert_eq!(checked.is_err(), is_dropped, "{max:?} {is_awaited}");
        }
        let limits = IdleLimits::default();
        assert!(limits.before_first < limits.between && limits.between >= Duration::from_secs(300));
    }

    /// An assignment that is refused.
    fn no_part() -> Assignment {
        Assignment {
            plan: default_plan().spec.to_toml(),
            password: None,
            shows_certificate: false,
            first_worker: 0,
            workers: 0,
            portion: LocalPart::alone(1),
            is_stored: false,
        }
    }

    /// Heartbeats alone keep no session from a controller that has work, neither before an assignment nor after one that was refused.
    #[test]
    fn controllers_without_a_run_are_dropped_for_the_next() {
        let idle_limits = IdleLimits { before_first: Duration::from_millis(300), between: RELEASE_MAX * 10 };
        let session = Session { idle_limits, ..Session::default() };
        let agent = agent(Arc::new(|_, _| panic!("no plan gets so far")));
        let (mut link, far) = pair();
        let turn = session.take().unwrap();
        let stranger = std::thread::spawn(move || {
            let mut link = MessageChannel::new(Wire::new(far, None).unwrap(), AGENT_SILENCE_MAX);
            link.send_message(&ToAgent::Prepare(no_part())).unwrap();
            while link.next_message::<FromAgent>(POLL_INTERVAL).is_ok() {
                let _ = link.send_heartbeat(&ToAgent::Alive);
            }
        });
        std::thread::scope(|scope| {
            let next = scope.spawn(|| session.take().is_some());
            let Err(why) = agent.serve_controller(&mut link, turn.0, &mut Runs::default());
            assert_eq!(why, "began no run for 0 s while another controller waited");
            drop(turn);
            assert!(next.join().unwrap());
        });
        drop(link);
        stranger.join().unwrap();
    }

    /// An engine sees by its end whether its part was carried out.
    #[test]
    fn joined_agents_fail_with_their_run() {
        let agent = agent(Arc::new(|_, _| panic!("no plan gets so far")));
        let table = [
            (ToAgent::Prepare(no_part()), "was assigned 0 workers"),
            (ToAgent::Leave, "the controller gave up"),
        ];
        for (message, expected) in table {
            let (mut link, far) = pair();
            let mut controller = MessageChannel::new(Wire::new(far, None).unwrap(), AGENT_SILENCE_MAX);
            controller.send_message(&message).unwrap();
            let mut runs = Runs { has_joined: true, ..Runs::default() };
            let Err(why) = agent.serve_controller(&mut link, &Session::default(), &mut runs);
            assert!(why.starts_with(expected), "{why}");
            assert_eq!((runs.begun, runs.ended), (1, 0), "{why}");
        }
    }

    /// After "ready" a controller that starts nothing is dropped, too, and a start must be near.
    #[test]
    fn starts_are_awaited_for_a_limited_time() {
        let idle_limits = IdleLimits { before_first: Duration::ZERO, between: Duration::from_millis(200) };
        let session = Session { idle_limits, ..Session::default() };
        session.waiting.store(1, Ordering::Relaxed);
        let (mut link, _far) = pair();
        let mut side = AgentSide::new(&mut link, &session);
        let since = Instant::now();
        let lost = loop {
            match side.poll_ready(true, &mut |_| {}) {
                Ok(_) => assert!(since.elapsed() < Duration::from_secs(20)),
                Err(lost) => break lost.reason,
            }
        };
        assert_eq!(lost, "began no run for 0 s while another controller waited");
        let now = brunt_engine::monotonic_ns();
        for (monotonic_ns, is_near) in
            [(now, true), (now + 1_000_000_000, true), (u64::MAX, false), (0, false)]
        {
            // The clock may show less than a minute since boot.
            if monotonic_ns == 0 && now < 90_000_000_000 {
                continue;
            }
            let session = Session::default();
            let (mut link, far) = pair();
            let mut side = AgentSide::new(&mut link, &session);
            let mut controller = MessageChannel::new(Wire::new(far, None).unwrap(), AGENT_SILENCE_MAX);
            controller.send_message(&ToAgent::Start { monotonic_ns }).unwrap();
            let begun = (0..1000).find_map(|_| match side.poll_ready(true, &mut |_| {}) {
                Ok(ReadyState::Wait) => None,
                ended => Some(ended.map_err(|error| error.reason)),
            });
            let expected = match is_near {
                true => Ok(ReadyState::Ready),
                false => Err("ordered a start more than a minute away".to_owned()),
            };
            assert_eq!(begun, Some(expected), "{monotonic_ns}");
        }
    }

    /// The files for TLS with the servers are options of the agent, whatever a controller was given.
    #[test]
    fn hints_name_the_options_of_the_agent() {
        let table = [
            ("add --tls-ca FILE or --tls-insecure", "add brunt agent --target-ca FILE or --tls-insecure"),
            ("set --tls-cert and --tls-key", "set brunt agent --target-cert and --target-key"),
            ("--tls-server-name sets it", "--tls-server-name sets it"),
            ("start it (brunt run without -s starts a server of its own)", "start it"),
        ];
        for (plans, agents) in table {
            assert_eq!(own_options(host_error(plans.to_owned())).reason, agents);
        }
    }

    #[test]
    fn missing_certificates_are_named() {
        let mut agent = agent(Arc::new(|_, _| Ok(Vec::new())));
        let assignment = Assignment {
            plan: default_plan().spec.to_toml(),
            password: None,
            shows_certificate: true,
            first_worker: 0,
            workers: 1,
            portion: LocalPart::alone(1),
            is_stored: false,
        };
        let reason = agent.with_target(&default_plan(), &assignment).unwrap_err().reason;
        assert_eq!(
            reason,
            "has no certificate for the servers: start it with --target-cert and --target-key"
        );
        let identity = Identity { certificate: "c.pem".to_owned(), key: "k.pem".to_owned() };
        agent.target = TargetFiles { ca: Some("ca.pem".to_owned()), identity: Some(identity.clone()) };
        let tls = agent.with_target(&default_plan(), &assignment).unwrap().tls;
        assert_eq!((tls.ca.as_deref(), tls.identity), (Some("ca.pem"), Some(identity)));
        let plain = Assignment { shows_certificate: false, ..assignment };
        assert_eq!(agent.with_target(&default_plan(), &plain).unwrap().tls.identity, None);
    }
}
