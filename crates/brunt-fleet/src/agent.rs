//! An agent: waits for a controller, carries out its share of a plan, and waits for the next.
//!
//! The controller decides about plan, shard and start. An agent serves one controller at a time; one that
//! connects meanwhile is rejected. Invariants: however a controller ends, the agent is waiting again at most a few seconds later, whatever
//! hangs that was begun for it; no file of this host is opened because a controller names it.

use crate::agent_handshake::{Answer, HandshakeResult, Hello, Nonce, VERSION, Welcome};
use crate::message::{AgentInfo, Assignment, FromAgent, ToAgent};
use crate::message_channel::{CONTROLLER_SILENCE_MAX, MessageChannel, Wire, connection_error};
use crate::phase_limits::LOOKUP_MAX;
use crate::printable_text::printable;
use crate::trust::AgentTrust;
use brunt_engine::coordinator::{Coordinator, LocalPart, ReadyState, RemoteError, RemoteStatus, Stop};
use brunt_engine::run::{DataSets, Endpoint, ErrorOrigin, RunData, RunDecision, RunError, run_part};
use brunt_plan::login::Password;
use brunt_plan::plan::{Plan, Wait};
use brunt_plan::resolve::{Host, resolve};
use brunt_plan::spec::PlanSpec;
use brunt_plan::tls::Identity;
use brunt_stats::interval::{HostMapping, Interval};
use ring::rand::{SecureRandom, SystemRandom};
use std::io;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Condvar, Mutex, PoisonError, mpsc};
use std::time::{Duration, Instant};

/// Time limit of the handshake.
const HANDSHAKE_MAX: Duration = Duration::from_secs(5);
/// How long a message is awaited at a time.
const POLL_INTERVAL: Duration = Duration::from_millis(10);
/// Look-ups that hang, whose threads nobody can end. With more the agent takes no plan.
const LOOKUPS_MAX: usize = 8;
/// How long a controller that left may take to release its session.
const RELEASE_MAX: Duration = Duration::from_secs(2);
/// Time limit for sending what is queued when a controller leaves.
const FLUSH_MAX: Duration = Duration::from_secs(1);

/// What a plan needs of this host, found: names resolved, files read.
pub type Endpoints = Vec<Endpoint>;

/// Finds the servers of a plan, and checks the limits of this host for this number of workers. On a thread that may hang.
pub type Open = Arc<dyn Fn(&Plan, u32) -> Result<Endpoints, RemoteError> + Send + Sync>;

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
    pub trust: AgentTrust,
    /// What it says of itself.
    pub info: AgentInfo,
    /// Processors its workers are pinned to; none: wherever the kernel puts them.
    pub cpus: Vec<u32>,
    /// Its workers sleep between requests, whatever the plan says.
    pub sleeps: bool,
    /// What it has for TLS with the servers.
    pub target: TargetFiles,
    /// Finds the servers of a plan.
    pub open: Open,
    /// Keeps what a share of a plan yielded, before the controller has it.
    pub keep: &'a (dyn Fn(&Plan, &RunData, DataSets) + Sync),
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

    /// Accepts or rejects a peer, and serves it.
    fn receive(&self, socket: TcpStream, peer: SocketAddr, session: &Session) {
        let peer = SocketAddr::new(peer.ip().to_canonical(), peer.port());
        match self.let_in(socket, session) {
            Err(why) => (self.note)(&format!("{peer}: {why}")),
            Ok((mut link, turn)) => {
                (self.note)(&format!("controlled by {peer}"));
                let Err(why) = self.serve_controller(&mut link, &turn.0.lookups);
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
        let mut wire = Wire::new(socket, self.trust.connection()?).map_err(lost)?;
        let mut nonce = Nonce::default();
        SystemRandom::new().fill(&mut nonce).map_err(|_| "no random numbers available".to_owned())?;
        let token = self.trust.token.as_ref();
        let hello = Hello { version: VERSION, wants_token: token.is_some(), nonce };
        wire.write_all(&hello.bytes(), deadline).map_err(lost)?;
        let mut answer = [0; Answer::BYTES];
        wire.read_hello(&mut answer, deadline).map_err(lost)?;
        let answer = Answer::read(&answer).ok_or("is not a controller of brunt")?;
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
        lookups: &Arc<()>,
    ) -> Result<std::convert::Infallible, String> {
        link.send_message(&FromAgent::AgentInfo(self.info.clone()))?;
        loop {
            match link.next_message::<ToAgent>(POLL_INTERVAL * 10)? {
                Some(ToAgent::Ping { number }) => pong(link, number)?,
                Some(ToAgent::Prepare(assignment)) => self.run_assignment(link, &assignment, lookups)?,
                // What belongs to a run that has ended here already.
                Some(ToAgent::Alive | ToAgent::Start { .. } | ToAgent::Stop(_) | ToAgent::Leave) | None => {}
            }
            link.send_heartbeat(&FromAgent::Alive)?;
        }
    }

    /// Carries out its share of a plan. An error is why there is no controller any more.
    fn run_assignment(
        &self,
        link: &mut MessageChannel,
        assignment: &Assignment,
        lookups: &Arc<()>,
    ) -> Result<(), String> {
        let named =
            self.plan(assignment).and_then(|plan| Ok((self.with_target(plan.clone(), assignment)?, plan)));
        let (plan, told) = match named {
            Ok(plans) => plans,
            Err(trouble) => return link.send_message(&FromAgent::Failed(trouble)),
        };
        let endpoints = match self.find(link, &plan, assignment.workers, lookups)? {
            Some(Ok(endpoints)) => endpoints,
            Some(Err(trouble)) => return link.send_message(&FromAgent::Failed(trouble)),
            None => return Ok(()),
        };
        let workers = assignment.first_worker..assignment.first_worker + assignment.workers;
        (self.note)(&format!("workers {} to {} of {}", workers.start, workers.end - 1, plan.threads));
        let part = LocalPart { plan: &plan, workers, portion: assignment.portion, classes: &[] };
        let data = if assignment.is_stored { DataSets::Stored } else { DataSets::ToStore };
        let mut follower = AgentSide::new(link);
        let never = AtomicBool::new(false);
        let ended =
            run_part(&plan, &part, &endpoints, data, &never, &mut |_| RunDecision::Continue, &mut follower);
        let AgentSide { epoch_ns, lost, .. } = follower;
        if let Some(why) = lost {
            return Err(why);
        }
        match ended {
            Ok(mut own) => {
                // In the plan of all, which has no files.
                (self.keep)(&told, &own, data);
                own.map_host(&HostMapping { clock_shift_ns: epoch_ns as i64, ..HostMapping::default() });
                (self.note)("done");
                let samples = std::mem::take(&mut own.samples);
                link.send_message(&FromAgent::Ended { data: Box::new(own), samples })
            }
            // Let go by the controller, which knows.
            Err(RunError::Interrupted | RunError::Remote(_)) => Ok(()),
            Err(error) => {
                (self.note)(&printable(&error.to_string()));
                let is_server_error = error.origin() == ErrorOrigin::Server;
                let failure = RemoteError { is_server_error, reason: error.to_string() };
                link.send_message(&FromAgent::Failed(failure))
            }
        }
    }

    /// Finds what a plan needs; nothing where the controller has let us go meanwhile. To look up a name may take longer than a
    /// controller waits for a word from us, and may never end, so that it is done beside, on a thread that nobody waits for.
    fn find(
        &self,
        link: &mut MessageChannel,
        plan: &Plan,
        workers: u32,
        lookups: &Arc<()>,
    ) -> Result<Option<Result<Endpoints, RemoteError>>, String> {
        if Arc::strong_count(lookups) > LOOKUPS_MAX {
            let reason = format!("{LOOKUPS_MAX} earlier look-ups of names hang: restart the agent");
            return Ok(Some(Err(host_error(reason))));
        }
        let (finder, found) = mpsc::channel();
        let (open, plan, counted) = (self.open.clone(), plan.clone(), lookups.clone());
        let named = std::thread::Builder::new().name("brunt-lookup".to_owned());
        let started = named.spawn(move || {
            // Nobody listens where the controller has left.
            let _ = finder.send(open(&plan, workers));
            drop(counted);
        });
        if let Err(error) = started {
            return Ok(Some(Err(host_error(format!("cannot resolve names: {error}")))));
        }
        let since = Instant::now();
        loop {
            match found.try_recv() {
                Ok(found) => return Ok(Some(found)),
                Err(mpsc::TryRecvError::Disconnected) => {
                    return Ok(Some(Err(host_error("the look-up of its servers ended early".to_owned()))));
                }
                Err(mpsc::TryRecvError::Empty) => {}
            }
            if since.elapsed() >= LOOKUP_MAX {
                let reason = format!("did not find its servers within {} s", LOOKUP_MAX.as_secs());
                return Ok(Some(Err(host_error(reason))));
            }
            match link.next_message::<ToAgent>(POLL_INTERVAL)? {
                Some(ToAgent::Ping { number }) => pong(link, number)?,
                Some(ToAgent::Leave) => return Ok(None),
                Some(ToAgent::Prepare(_)) => return Err("started a second run".to_owned()),
                Some(ToAgent::Alive | ToAgent::Start { .. } | ToAgent::Stop(_)) | None => {}
            }
            link.send_heartbeat(&FromAgent::Alive)?;
        }
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
        let host = Host { allowed_cpus: brunt_engine::allowed_cpus(), random_seed: 0 };
        let mut plan = resolve(&spec, &host).map_err(|error| host_error(error.to_string()))?;
        brunt_engine::check_commands(&plan).map_err(host_error)?;
        let last = assignment.first_worker.checked_add(assignment.workers);
        let fits = last.is_some_and(|last| last <= plan.threads)
            && assignment.portion.has_room_for(assignment.workers);
        if PlanSpec::from(&plan).to_toml() != assignment.plan || !fits {
            return Err(host_error(
                "reads the plan differently: controller and agent need the same version of brunt".to_owned(),
            ));
        }
        plan.cpus.clone_from(&self.cpus);
        if self.sleeps {
            plan.wait = Wait::Sleep;
        }
        Ok(plan)
    }
}

impl Agent<'_> {
    /// The plan with the files of this host.
    fn with_target(&self, mut plan: Plan, assignment: &Assignment) -> Result<Plan, RemoteError> {
        plan.tls.ca.clone_from(&self.target.ca);
        if assignment.shows_certificate {
            let identity = self.target.identity.clone().ok_or_else(|| {
                host_error(
                    "has no certificate for the servers: start it with --target-cert and --target-key"
                        .to_owned(),
                )
            })?;
            plan.tls.identity = Some(identity);
        }
        Ok(plan)
    }
}

/// The one session of an agent: in use while a controller is connected.
#[derive(Default)]
struct Session {
    is_taken: Mutex<bool>,
    freed: Condvar,
    /// Held by every look-up that has not ended.
    lookups: Arc<()>,
}

impl Session {
    /// Takes the turn, once the controller before is through with leaving; nothing where it does not leave.
    fn take(&self) -> Option<SessionGuard<'_>> {
        // A session that panicked has given its turn back.
        let taken = self.is_taken.lock().unwrap_or_else(PoisonError::into_inner);
        let waited = self.freed.wait_timeout_while(taken, RELEASE_MAX, |is_taken| *is_taken);
        let (mut is_taken, _) = waited.unwrap_or_else(PoisonError::into_inner);
        let was_taken = std::mem::replace(&mut *is_taken, true);
        // Not made where it is not ours: it would be given back.
        (!was_taken).then(|| SessionGuard(self))
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
    is_ready: bool,
    start_ns: Option<u64>,
    stop: Option<Stop>,
    has_left: bool,
    /// Why the connection to the controller was lost.
    lost: Option<String>,
    epoch_ns: u64,
}

impl<'a> AgentSide<'a> {
    fn new(link: &'a mut MessageChannel) -> Self {
        Self { link, is_ready: false, start_ns: None, stop: None, has_left: false, lost: None, epoch_ns: 0 }
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
                    self.start_ns = Some(monotonic_ns);
                    break;
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
                Ok(Some(ToAgent::Prepare(_))) => Err("started a second run".to_owned()),
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
    fn poll_ready(&mut self, is_ready: bool) -> Result<ReadyState, RemoteError> {
        if is_ready && !self.is_ready {
            self.is_ready = true;
            let said = self.link.send_message(&FromAgent::Ready);
            self.note(said)?;
        }
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
            (None, true) => Err(host_error("the controller aborted the run".to_owned())),
            (None, false) => Ok(RemoteStatus { is_over: true, stop: self.stop }),
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

    fn agent(open: Open) -> Agent<'static> {
        Agent {
            trust: AgentTrust::OPEN,
            info: AgentInfo { host: String::new(), version: String::new(), threads: 1, weight: 1 },
            cpus: Vec::new(),
            sleeps: false,
            target: TargetFiles::default(),
            open,
            keep: &|_, _, _| (),
            note: &|_| {},
        }
    }

    fn default_plan() -> Plan {
        let host = Host { allowed_cpus: vec![0], random_seed: 1 };
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
        let found = agent.find(&mut link, &default_plan(), 1, &Arc::default()).unwrap();
        let (_, heard) = controller.join().unwrap();
        assert!(heard.iter().all(|heard| matches!(heard, Some(FromAgent::Alive))), "{heard:?}");
        let reason = found.and_then(Result::err).map(|trouble| trouble.reason);
        assert_eq!(reason.as_deref(), Some("unknown after Ok(())"));
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
        let lookups = Arc::default();
        let (mut link, far) = pair();
        drop(far);
        let lost = agent.find(&mut link, &default_plan(), 1, &lookups);
        assert_eq!(lost.map(|found| found.is_some()), Err("closed the connection".to_owned()));
        let left = |lookups: &Arc<()>| {
            let (mut link, far) = pair();
            let mut controller = MessageChannel::new(Wire::new(far, None).unwrap(), AGENT_SILENCE_MAX);
            controller.send_message(&ToAgent::Leave).unwrap();
            agent.find(&mut link, &default_plan(), 1, lookups).unwrap()
        };
        for _ in 1..LOOKUPS_MAX {
            assert!(left(&lookups).is_none());
        }
        let refused = left(&lookups).and_then(Result::err).map(|trouble| trouble.reason);
        assert_eq!(refused.as_deref(), Some("8 earlier look-ups of names hang: restart the agent"));
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
            ("[[class]]\ntrace = '/proc/kmsg'\ntrace-layout = 'words'", "trace"),
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

    #[test]
    fn missing_certificates_are_named() {
        let mut agent = agent(Arc::new(|_, _| Ok(Vec::new())));
        let assignment = Assignment {
            plan: PlanSpec::from(&default_plan()).to_toml(),
            password: None,
            shows_certificate: true,
            first_worker: 0,
            workers: 1,
            portion: LocalPart::alone(1),
            is_stored: false,
        };
        let reason = agent.with_target(default_plan(), &assignment).unwrap_err().reason;
        assert_eq!(
            reason,
            "has no certificate for the servers: start it with --target-cert and --target-key"
        );
        let identity = Identity { certificate: "c.pem".to_owned(), key: "k.pem".to_owned() };
        agent.target = TargetFiles { ca: Some("ca.pem".to_owned()), identity: Some(identity.clone()) };
        let tls = agent.with_target(default_plan(), &assignment).unwrap().tls;
        assert_eq!((tls.ca.as_deref(), tls.identity), (Some("ca.pem"), Some(identity)));
        let plain = Assignment { shows_certificate: false, ..assignment };
        assert_eq!(agent.with_target(default_plan(), &plain).unwrap().tls.identity, None);
    }
}
