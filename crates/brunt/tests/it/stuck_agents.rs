//! Agents that are there and do not get on: whatever they do not do, the run names them, ends without them, and obeys the first signal.

use crate::server::{Ended, Server, begin, brunt, ended, listening};
use brunt_fleet::agent_handshake::{Answer, Hello, VERSION, Welcome};
use brunt_fleet::frame::{self, FRAME_BYTES_MAX, FrameReader};
use brunt_fleet::message::{AgentInfo, FromAgent, ToAgent, decode, encode};
use rustix::process::{Pid, Signal, kill_process};
use std::io::{self, ErrorKind, Read, Write};
use std::net::TcpStream;
use std::sync::mpsc;
use std::time::{Duration, Instant};

/// A signal ends a run within this time: what is promised, and as much again for a host that others use.
const ENDED: Duration = Duration::from_secs(10);

/// What an agent never does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stuck {
    /// It says no more than that it is there.
    NeverReady,
    /// It sends no result.
    NeverEnds,
    /// Its clock is not read.
    NeverAnswersPing,
    /// Its result comes byte by byte.
    Trickles,
}

/// One that is stuck, at this address. It says so when it is where it will not get on.
fn stuck_agent(how: Stuck) -> (String, mpsc::Receiver<()>) {
    let (arrived, has_arrived) = mpsc::channel();
    // Until the controller is gone.
    (listening(move |stream, _| _ = obstruct(&stream, how, &arrived)), has_arrived)
}

fn obstruct(mut socket: &TcpStream, how: Stuck, arrived: &mpsc::Sender<()>) -> io::Result<()> {
    let hello = Hello { version: VERSION, wants_token: false, nonce: [1; 32] };
    socket.write_all(&hello.bytes())?;
    let mut answer = [0; Answer::BYTES];
    socket.read_exact(&mut answer)?;
    socket.write_all(&Welcome::to(&hello, &Answer::read(&answer).unwrap(), None, false).bytes())?;
    send(socket, &FromAgent::AgentInfo(info("stuck")))?;
    socket.set_read_timeout(Some(Duration::from_millis(100)))?;
    let (mut reader, mut bytes, mut trickles) = (FrameReader::new(FRAME_BYTES_MAX), [0; 4096], false);
    loop {
        match socket.read(&mut bytes) {
            Ok(0) => return Ok(()),
            Ok(len) => reader.push(&bytes[..len]),
            Err(error) if error.kind() == ErrorKind::WouldBlock && trickles => socket.write_all(b"x")?,
            Err(error) if error.kind() == ErrorKind::WouldBlock => send(socket, &FromAgent::Alive)?,
            Err(error) => return Err(error),
        }
        while let Some(frame) = reader.take().unwrap() {
            let message = decode::<ToAgent>(frame).unwrap();
            let is_last = match (&message, how) {
                (ToAgent::Ping { .. }, Stuck::NeverAnswersPing) => true,
                (ToAgent::Ping { number }, _) => {
                    send(socket, &FromAgent::Pong { number: *number, monotonic_ns: 1 << 50 })?;
                    false
                }
                (ToAgent::Prepare(_), Stuck::NeverReady) => true,
                (ToAgent::Prepare(_), _) => {
                    send(socket, &FromAgent::Ready)?;
                    false
                }
                (ToAgent::Start { .. }, Stuck::Trickles) => {
                    socket.write_all(&(FRAME_BYTES_MAX as u32).to_le_bytes())?;
                    trickles = true;
                    true
                }
                (ToAgent::Start { .. }, _) => true,
                _ => false,
            };
            if is_last {
                // The test may have ended.
                let _ = arrived.send(());
            }
        }
    }
}

fn info(host: &str) -> AgentInfo {
    let version = env!("CARGO_PKG_VERSION").to_owned();
    AgentInfo { host: host.to_owned(), version, threads: 1, weight: 1, rank: None }
}

fn send(mut socket: &TcpStream, message: &FromAgent) -> io::Result<()> {
    let mut frames = Vec::new();
    frame::push(&mut frames, &encode(message).unwrap()).unwrap();
    socket.write_all(&frames)
}

/// How a run ends with such an agent, and how long after the agent got stuck, or after the signal that it then got.
fn run(server: &Server, how: Stuck, plan: &str, signal: Option<Signal>) -> (Ended, Duration, String) {
    let (address, has_arrived) = stuck_agent(how);
    let load = format!("-c 1 --keys 10 --warmup 0s --set drain=0s {plan}");
    let child = begin(brunt(&format!("run --progress=none -s {server} --agent {address} {load}")));
    has_arrived.recv_timeout(ENDED).unwrap();
    let since = Instant::now();
    if let Some(signal) = signal {
        kill_process(Pid::from_child(&child), signal).unwrap();
    }
    let output = Ended::from(child);
    (output, since.elapsed(), address)
}

/// One that does nothing but send heartbeats is named when its time is over.
#[test]
fn agents_that_do_not_get_on_are_named() {
    let server = Server::reference("");
    let table = [
        (Stuck::NeverEnds, "was lost (did not end within 4.2 s): 100 % of the agents' load is missing", 3),
        (Stuck::Trickles, "was lost (sent no heartbeat for 4 s): 100 % of the agents' load is missing", 3),
        (Stuck::NeverAnswersPing, "did not answer in time", 1),
    ];
    std::thread::scope(|scope| {
        for (how, reason, exit) in table {
            let server = &server;
            scope.spawn(move || {
                let (output, took, address) = run(server, how, "-t 200ms", None);
                let shown: Vec<&str> =
                    output.out.split_whitespace().chain(output.said.split_whitespace()).collect();
                assert!(shown.join(" ").contains(&format!("agent {address} {reason}")), "{how:?}");
                assert_eq!(output.exit, exit, "{how:?}");
                assert!(took < ENDED, "{how:?}: {took:?}");
            });
        }
    });
}

/// The first signal ends the run, with the report of what there is, though no agent obeys it and the plan has hours to go.
#[test]
fn signals_end_runs_whatever_agents_do() {
    let server = Server::reference("");
    let interrupted = "error: interrupted before anything was measured";
    let table = [
        (Stuck::NeverReady, interrupted),
        (Stuck::NeverEnds, "did not end within 4 s"),
        (Stuck::Trickles, "4 s"),
        // While agents are being met there is nothing to report.
        (Stuck::NeverAnswersPing, ""),
    ];
    std::thread::scope(|scope| {
        for (how, reason) in table {
            for (signal, plan) in [(Signal::TERM, "-t 5h"), (Signal::INT, "-n 1000000")] {
                let server = &server;
                scope.spawn(move || {
                    let (output, took, address) = run(server, how, plan, Some(signal));
                    let said = &output.said;
                    let shown = &output.out.split_whitespace().collect::<Vec<_>>().join(" ");
                    let last = said.lines().last().unwrap_or_default();
                    assert!(last.ends_with(reason), "{how:?} {plan:?}");
                    let is_reported = matches!(how, Stuck::NeverEnds | Stuck::Trickles);
                    // The user ended the run; the agent only did not obey.
                    for (text, said) in [
                        (format!("error: interrupted; agent {address} "), said),
                        (format!("the run was interrupted, and agent {address} did not send "), shown),
                        (" · interrupted".to_owned(), shown),
                        ("LOST after the interruption: it ".to_owned(), shown),
                    ] {
                        assert_eq!(said.contains(&text), is_reported, "{how:?} {plan:?} {text}");
                    }
                    // By the signal itself, which has no code, or by the program.
                    let code = if how == Stuck::NeverAnswersPing { -1 } else { 130 };
                    assert_eq!(output.exit, code, "{how:?} {plan:?}");
                    assert!(took < ENDED, "{how:?} {plan:?}: {took:?}");
                });
            }
        }
    });
}

/// What an agent says reaches a terminal without its control characters.
#[test]
fn agents_control_no_terminal() {
    let server = Server::reference("");
    let address = listening(|mut socket, _| {
        let hello = Hello { version: VERSION, wants_token: false, nonce: [1; 32] };
        socket.write_all(&hello.bytes()).unwrap();
        let mut answer = [0; Answer::BYTES];
        socket.read_exact(&mut answer).unwrap();
        let welcome = Welcome::to(&hello, &Answer::read(&answer).unwrap(), None, false);
        socket.write_all(&welcome.bytes()).unwrap();
        let reason = "\x1b[2Jnothing\nerror: a line of its own".to_owned();
        let failed = brunt_engine::coordinator::RemoteError { is_server_error: false, reason };
        send(&socket, &FromAgent::AgentInfo(info("h"))).unwrap();
        send(&socket, &FromAgent::Failed(failed)).unwrap();
        // Until the controller is gone.
        let _ = socket.read_to_end(&mut Vec::<u8>::new());
    });
    let output = ended(&format!("run -s {server} --agent {address}"));
    let said = &output.said;
    assert_eq!(*said, format!("error: agent {address}: ?[2Jnothing error: a line of its own\n"));
}
