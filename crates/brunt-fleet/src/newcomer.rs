//! An agent on its way in: the controller's part of the handshake, and what the agent says of itself.
//!
//! It is not known yet: nothing is parsed before it has proved who it is, and nothing here waits. Invariant: it is in, or gone, within
//! [`HANDSHAKE_MAX`].

use crate::agent_handshake::{Answer, HandshakeResult, Hello, Nonce, VERSION, Welcome};
use crate::credentials::ControllerCredentials;
use crate::frame::FRAME_BYTES_MAX;
use crate::message::{AgentInfo, FromAgent};
use crate::message_channel::{AGENT_SILENCE_MAX, MessageChannel, Wire, connection_error, wait_for_bytes};
use ring::rand::{SecureRandom, SystemRandom};
use std::io::ErrorKind;
use std::net::TcpStream;
use std::time::{Duration, Instant};

/// Time limit of the handshake, name resolution excluded.
pub(crate) const HANDSHAKE_MAX: Duration = Duration::from_secs(4);
/// Time limit for the answer of 100 bytes, for which a new connection has room.
const ANSWER_MAX: Duration = Duration::from_millis(100);

/// The longest message in which an agent describes itself: without a token everyone gets so far.
const INFO_BYTES_MAX: usize = 4096;

/// A connection that is let in step by step.
pub(crate) struct Newcomer {
    /// How it is called in errors.
    pub(crate) name: String,
    deadline: Instant,
    /// Of the record that is read.
    received: Vec<u8>,
    step: Step,
}

/// What is awaited of it.
enum Step {
    Hello(Wire),
    Welcome(Wire, Box<(Hello, Answer)>),
    Info(Box<MessageChannel>),
    Gone,
}

impl Newcomer {
    /// Over a connected socket, whichever side dialled.
    pub(crate) fn new(
        name: String,
        socket: TcpStream,
        credentials: &ControllerCredentials,
    ) -> Result<Self, String> {
        let wire = Wire::new(socket, credentials.connection()?).map_err(|error| connection_error(&error))?;
        let deadline = Instant::now() + HANDSHAKE_MAX;
        Ok(Self { name, deadline, received: Vec::new(), step: Step::Hello(wire) })
    }

    /// Goes on as far as it has spoken. Returns its channel and what it is, once it is in. The error follows its name.
    pub(crate) fn advance(
        &mut self,
        credentials: &ControllerCredentials,
    ) -> Result<Option<(MessageChannel, AgentInfo)>, String> {
        loop {
            self.step = match std::mem::replace(&mut self.step, Step::Gone) {
                Step::Hello(mut wire) => match wire.read_record(&mut self.received) {
                    Ok(Some(hello)) => greeted(wire, &hello, credentials)?,
                    Ok(None) => return self.wait(Step::Hello(wire), silence(credentials)),
                    // It gives up waiting for TLS when we give up waiting for it.
                    Err(_) if credentials.tls.is_none() && self.received.is_empty() => {
                        return Err(silence(credentials));
                    }
                    Err(why) => return Err(why),
                },
                Step::Welcome(mut wire, said) => match wire.read_record(&mut self.received)? {
                    Some(welcome) => welcomed(wire, &welcome, &said, credentials)?,
                    None => return self.wait(Step::Welcome(wire, said), LATE.to_owned()),
                },
                Step::Info(mut link) => match link.next_message(Duration::ZERO)? {
                    Some(FromAgent::AgentInfo(info)) => {
                        link.limit_messages(FRAME_BYTES_MAX);
                        return Ok(Some((*link, info)));
                    }
                    Some(_) => return Err("did not describe itself".to_owned()),
                    None => return self.wait(Step::Info(link), LATE.to_owned()),
                },
                Step::Gone => return Err("has left".to_owned()),
            };
        }
    }

    /// Waits until it may have spoken, at most so long.
    pub(crate) fn wait_for_bytes(&self, wait: Duration) {
        match &self.step {
            Step::Hello(wire) | Step::Welcome(wire, _) => wait_for_bytes(wire.socket(), wait),
            Step::Info(link) => wait_for_bytes(link.socket(), wait),
            Step::Gone => {}
        }
    }

    /// Stays at a step, unless it has had its time.
    fn wait<T>(&mut self, step: Step, late: String) -> Result<Option<T>, String> {
        if Instant::now() >= self.deadline {
            return Err(late);
        }
        self.step = step;
        Ok(None)
    }
}

const LATE: &str = "did not answer in time";

/// Answers its first record.
fn greeted(
    mut wire: Wire,
    hello: &[u8; Hello::BYTES],
    credentials: &ControllerCredentials,
) -> Result<Step, String> {
    let hello = Hello::read(hello).ok_or("is not an agent of brunt")?;
    let token = credentials.token.as_ref();
    let refusal = match (hello.version == VERSION, hello.wants_token, token.is_some()) {
        (false, ..) => Some(format!("uses protocol version {}, not {VERSION}", hello.version)),
        (true, true, false) => Some("requires a token: set --auth".to_owned()),
        (true, false, true) => Some("has no token: start it with --auth".to_owned()),
        _ => None,
    };
    let mut nonce = Nonce::default();
    SystemRandom::new()
        .fill(&mut nonce)
        .map_err(|_| "cannot be authenticated: no random numbers available".to_owned())?;
    let answer = Answer::to(&hello, nonce, token);
    // One that is refused learns our version by it.
    let answered = wire.write_all(&answer.bytes(), Instant::now() + ANSWER_MAX);
    match refusal {
        Some(refusal) => Err(refusal),
        None => answered
            .map_err(|error| connection_error(&error))
            .map(|()| Step::Welcome(wire, Box::new((hello, answer)))),
    }
}

/// Reads what it decided about us.
fn welcomed(
    wire: Wire,
    welcome: &[u8; Welcome::BYTES],
    (hello, answer): &(Hello, Answer),
    credentials: &ControllerCredentials,
) -> Result<Step, String> {
    let welcome = Welcome::read(welcome).ok_or("is not an agent of brunt")?;
    let refusal = match welcome.result {
        HandshakeResult::Welcome if welcome.verifies(hello, answer, credentials.token.as_ref()) => {
            let mut link = MessageChannel::new(wire, AGENT_SILENCE_MAX);
            link.limit_messages(INFO_BYTES_MAX);
            return Ok(Step::Info(Box::new(link)));
        }
        HandshakeResult::Welcome => "failed authentication: wrong token",
        HandshakeResult::Unauthenticated => "rejected this controller: wrong token",
        HandshakeResult::OtherVersion => "rejected this controller: other protocol version",
        HandshakeResult::Busy => {
            "is busy: another controller uses it or has just left it, or it is named twice"
        }
    };
    Err(refusal.to_owned())
}

/// Where the agent speaks first, one that waits for us to speak TLS says nothing.
fn silence(credentials: &ControllerCredentials) -> String {
    match &credentials.tls {
        None => "sent no handshake; if it has --auth, set --auth here too".to_owned(),
        Some(_) => connection_error(&ErrorKind::TimedOut.into()),
    }
}
