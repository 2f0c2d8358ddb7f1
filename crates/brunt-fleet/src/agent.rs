//! An agent: waits for a controller, carries out its share of a plan, and waits for the next.
//!
//! The controller decides about plan, shard and start. An agent serves one controller at a time; one that
//! connects meanwhile is rejected. Invariant: however a controller ends, the agent is waiting again at most a few seconds later, or
//! when the names are found or not that it looks up.

use crate::agent_handshake::{Answer, HandshakeResult, Hello, Nonce, VERSION, Welcome};
use crate::message::{AgentInfo, Assignment, FromAgent, ToAgent};
use crate::message_channel::{CONTROLLER_SILENCE_MAX, MessageChannel, Wire, connection_error};
use crate::trust::AgentTrust;
use brunt_engine::coordinator::{Coordinator, LocalPart, ReadyState, RemoteError, RemoteStatus, Stop};
use brunt_engine::run::{DataSets, Endpoint, ErrorOrigin, RunData, RunDecision, RunError, run_part};
use brunt_plan::login::Password;
use brunt_plan::plan::{Plan, Wait};
use brunt_plan::resolve::{Host, resolve};
use brunt_plan::spec::PlanSpec;
use brunt_stats::interval::{HostMapping, Interval};
use ring::rand::{SecureRandom, SystemRandom};
use std::io;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::AtomicBool;
use std::sync::{Condvar, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Time limit of the handshake.
const HANDSHAKE_MAX: Duration = Duration::from_secs(5);
/// How long a message is awaited at a time.
const POLL_INTERVAL: Duration = Duration::from_millis(10);
/// Time limit of name resolution: twice that of a resolver that asks two name servers in vain. After it the agent sends no heartbeat, and
/// the controller drops it.
const LOOKUP_MAX: Duration = Duration::from_secs(40);
/// How long a controller that left may take to release its session.
const RELEASE_MAX: Duration = Duration::from_secs(2);
/// Time limit for sending what is queued when a controller leaves.
const FLUSH_MAX: Duration = Duration::from_secs(1);

/// What a plan needs of this host, found: names resolved, files read.
pub type Endpoints = Vec<Endpoint>;

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
    /// Finds the servers of a plan, and checks the limits of this host for this number of workers.
    pub open: &'a (dyn Fn(&Plan, u32) -> Result<Endpoints, RemoteError> + Sync),
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
            Ok((mut link, _turn)) => {
                (self.note)(&format!("controlled by {peer}"));
                let Err(why) = self.serve_controller(&mut link);
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
    fn serve_controller(&self, link: &mut MessageChannel) -> Result<std::convert::Infallible, String> {
        link.send_message(&FromAgent::AgentInfo(self.info.clone()))?;
        loop {
            match link.next_message::<ToAgent>(POLL_INTERVAL * 10)? {
                Some(ToAgent::Ping { number }) => pong(link, number)?,
                Some(ToAgent::Prepare(assignment)) => self.run_assignment(link, &assignment)?,
                // What belongs to a run that has ended here already.
                Some(ToAgent::Alive | ToAgent::Start { .. } | ToAgent::Stop(_) | ToAgent::Leave) | None => {}
            }
            link.send_heartbeat(&FromAgent::Alive)?;
        }
    }

    /// Carries out its share of a plan. An error is why there is no controller any more.
    fn run_assignment(&self, link: &mut MessageChannel, assignment: &Assignment) -> Result<(), String> {
        let plan = match self.plan(assignment) {
            Ok(plan) => plan,
            Err(trouble) => return link.send_message(&FromAgent::Failed(trouble)),
        };
        let endpoints = match self.find(link, &plan, assignment.workers)? {
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
                (self.keep)(&plan, &own, data);
                own.map_host(&HostMapping { clock_shift_ns: epoch_ns as i64, ..HostMapping::default() });
                (self.note)("done");
                let samples = std::mem::take(&mut own.samples);
                link.send_message(&FromAgent::Ended { data: Box::new(own), samples })
            }
            // Let go by the controller, which knows.
            Err(RunError::Interrupted | RunError::Remote(_)) => Ok(()),
            Err(error) => {
                (self.note)(&error.to_string());
                let is_server_error = error.origin() == ErrorOrigin::Server;
                let failure = RemoteError { is_server_error, reason: error.to_string() };
                link.send_message(&FromAgent::Failed(failure))
            }
        }
    }

    /// Finds what a plan needs; nothing where the controller has let us go meanwhile. To look up a name may take longer than a
    /// controller waits for a word from us, so that it is done beside.
    fn find(
        &self,
        link: &mut MessageChannel,
        plan: &Plan,
        workers: u32,
    ) -> Result<Option<Result<Endpoints, RemoteError>>, String> {
        std::thread::scope(|scope| {
            let named = std::thread::Builder::new().name("brunt-lookup".to_owned());
            let finder = match named.spawn_scoped(scope, || (self.open)(plan, workers)) {
                Ok(finder) => finder,
                Err(error) => {
                    return Ok(Some(Err(host_error(format!("cannot resolve names: {error}")))));
                }
            };
            let (mut is_wanted, since) = (true, Instant::now());
            while !finder.is_finished() {
                match link.next_message::<ToAgent>(POLL_INTERVAL)? {
                    Some(ToAgent::Ping { number }) => pong(link, number)?,
                    Some(ToAgent::Leave) => is_wanted = false,
                    Some(ToAgent::Prepare(_)) => return Err("started a second run".to_owned()),
                    Some(ToAgent::Alive | ToAgent::Start { .. } | ToAgent::Stop(_)) | None => {}
                }
                if since.elapsed() < LOOKUP_MAX {
                    link.send_heartbeat(&FromAgent::Alive)?;
                }
            }
            match finder.join() {
                Ok(found) => Ok(is_wanted.then_some(found)),
                Err(panic) => std::panic::resume_unwind(panic),
            }
        })
    }

    /// The plan of all agents, as this host understands it: the very same, or nothing.
    fn plan(&self, assignment: &Assignment) -> Result<Plan, RemoteError> {
        let mut spec = PlanSpec::from_toml(&assignment.plan).map_err(host_error)?;
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

/// The one session of an agent: in use while a controller is connected.
#[derive(Default)]
struct Session {
    is_taken: Mutex<bool>,
    freed: Condvar,
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
    use crate::trust::TrustFiles;
    use std::sync::mpsc;

    /// Names are looked up until the controller has heard twice that the agent is there.
    #[test]
    fn slow_name_lookups_keep_the_heartbeat() {
        let (mut link, far) = pair();
        let (heard_twice, has_heard_twice) = mpsc::channel();
        let has_heard_twice = Mutex::new(has_heard_twice);
        let open = |_: &Plan, _| {
            let waited = has_heard_twice.lock().unwrap().recv_timeout(AGENT_SILENCE_MAX * 5);
            Err(RemoteError { is_server_error: true, reason: format!("unknown after {waited:?}") })
        };
        let agent = Agent {
            trust: AgentTrust::of_agent(&TrustFiles::default()).unwrap(),
            info: AgentInfo { host: String::new(), version: String::new(), threads: 1, weight: 1 },
            cpus: Vec::new(),
            sleeps: false,
            open: &open,
            keep: &|_, _, _| (),
            note: &|_| {},
        };
        let host = Host { allowed_cpus: vec![0], random_seed: 1 };
        let plan = resolve(&PlanSpec::default(), &host).unwrap();
        let controller = std::thread::spawn(move || {
            let mut link = MessageChannel::new(Wire::new(far, None).unwrap(), AGENT_SILENCE_MAX);
            let heard = [0; 2].map(|_| link.next_message::<FromAgent>(AGENT_SILENCE_MAX).unwrap());
            heard_twice.send(()).unwrap();
            (link, heard)
        });
        let found = agent.find(&mut link, &plan, 1).unwrap();
        let (_, heard) = controller.join().unwrap();
        assert!(heard.iter().all(|heard| matches!(heard, Some(FromAgent::Alive))), "{heard:?}");
        let reason = found.and_then(Result::err).map(|trouble| trouble.reason);
        assert_eq!(reason.as_deref(), Some("unknown after Ok(())"));
    }
}
