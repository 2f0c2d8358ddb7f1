//! The division of a plan among agents, and agents that are there and do not get on.

use super::*;
use crate::agent_handshake::{Answer, Hello, VERSION, Welcome};
use crate::message_channel::{CONTROLLER_SILENCE_MAX, Wire};
use brunt_plan::resolve::{Host, resolve};
use brunt_plan::spec::PlanSpec;
use std::net::{Ipv4Addr, TcpListener};

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
        assert!(
            crews
                .iter()
                .zip(expected)
                .all(|((workers, _), portion)| portion.first + portion.width * workers <= portion.of)
        );
    };
    // Workers and weight of each agent, the first arrival of each with its width, of how many.
    check(&[(2, 1), (3, 1)], &[(0, 1), (2, 1)], 5);
    check(&[(2, 24), (3, 24)], &[(0, 1), (2, 1)], 5);
    check(&[(2, 4), (1, 6), (3, 2)], &[(0, 2), (4, 3), (7, 1)], 10);
    assert_eq!(arrival_portions([(2, u32::MAX), (1, 2)].into_iter()), None);
}

/// Whatever hangs here is a failure.
const PATIENCE: Duration = Duration::from_secs(20);

/// An agent that lets a controller in, sends heartbeats, and for the rest says what `script` has to each message, and now and then to
/// none.
fn fake_agent(
    script: impl FnMut(Option<&ToAgent>) -> Vec<FromAgent> + Send + 'static,
) -> Result<Fleet, String> {
    fake_agent_of(env!("CARGO_PKG_VERSION"), script)
}

fn fake_agent_of(
    version: &str,
    script: impl FnMut(Option<&ToAgent>) -> Vec<FromAgent> + Send + 'static,
) -> Result<Fleet, String> {
    Fleet::open(&[fake_address(version, script)], &ControllerCredentials::OPEN, Duration::ZERO)
}

/// Where it listens.
fn fake_address(
    version: &str,
    mut script: impl FnMut(Option<&ToAgent>) -> Vec<FromAgent> + Send + 'static,
) -> (String, u16) {
    let info =
        AgentInfo { host: "fake".to_owned(), version: version.to_owned(), threads: 1, weight: 1, rank: None };
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let port = listener.local_addr().unwrap().port();
    std::thread::spawn(move || -> Result<(), String> {
        let deadline = Instant::now() + PATIENCE;
        let mut wire = Wire::new(listener.accept().unwrap().0, None).unwrap();
        let hello = Hello { version: VERSION, wants_token: false, nonce: [1; 32] };
        wire.write_all(&hello.bytes(), deadline).unwrap();
        let mut answer = [0; Answer::BYTES];
        wire.read_exact(&mut answer, deadline).unwrap();
        let welcome = Welcome::to(&hello, &Answer::read(&answer).unwrap(), None, false);
        wire.write_all(&welcome.bytes(), deadline).unwrap();
        let mut link = MessageChannel::new(wire, CONTROLLER_SILENCE_MAX);
        link.send_message(&FromAgent::AgentInfo(info))?;
        loop {
            let message = link.next_message(Duration::from_millis(20))?;
            script(message.as_ref()).iter().try_for_each(|said| link.send_message(said))?;
            link.send_heartbeat(&FromAgent::Alive)?;
        }
    });
    ("127.0.0.1".to_owned(), port)
}

fn pong(message: Option<&ToAgent>) -> Vec<FromAgent> {
    match message {
        Some(ToAgent::Ping { number }) => vec![FromAgent::Pong { number: *number, monotonic_ns: 7 }],
        _ => Vec::new(),
    }
}

/// Answers its clock and is ready at once.
fn ready(message: Option<&ToAgent>) -> Vec<FromAgent> {
    if let Some(ToAgent::Prepare(_)) = message { vec![FromAgent::Ready] } else { pong(message) }
}

fn split_plan(toml: &str) -> PlanSplit {
    let spec = PlanSpec::from_toml(&format!("server = 'a'\nagent = ['b']\nthreads = 1\n{toml}")).unwrap();
    PlanSplit::of(&resolve(&spec, &Host::of(vec![0], 1)).unwrap(), 1).unwrap()
}

const SHORT: Duration = Duration::from_millis(300);
const LONG: Duration = Duration::from_secs(1_000);

/// Until all are ready, or one is not in time.
fn prepare(side: &mut ControllerSide<'_>) -> Result<(), String> {
    let since = Instant::now();
    while since.elapsed() < PATIENCE {
        let called = Instant::now();
        match side.poll_ready(true, &mut |_| {}) {
            Ok(ReadyState::Ready) => return Ok(()),
            Ok(_) => {}
            Err(failure) => return Err(failure.reason),
        }
        // So that a signal is seen.
        assert!(called.elapsed() < Duration::from_secs(2), "{:?}", called.elapsed());
    }
    Err("nothing happened".to_owned())
}

/// Until the run is over. Returns why the agent was lost.
fn measure(side: &mut ControllerSide<'_>, stop: Option<Stop>) -> Option<String> {
    prepare(side).unwrap();
    side.begin().unwrap();
    let since = Instant::now();
    while since.elapsed() < PATIENCE {
        if side.poll_running(true, stop, &mut |_| {}).unwrap().is_over {
            return side.fleet.peers[0].lost.as_ref().map(|lost| lost.why.clone());
        }
    }
    Some("nothing happened".to_owned())
}

/// Of one after the other it would take the time of all.
#[test]
fn clocks_of_distant_agents_are_read_at_a_time() {
    let distant = || {
        fake_address(env!("CARGO_PKG_VERSION"), |message| {
            std::thread::park_timeout(Duration::from_millis(if message.is_some() { 100 } else { 0 }));
            pong(message)
        })
    };
    let agents: Vec<(String, u16)> = (0..8).map(|_| distant()).collect();
    let since = Instant::now();
    Fleet::open(&agents, &ControllerCredentials::OPEN, Duration::ZERO).map(drop).unwrap();
    assert!(since.elapsed() < Duration::from_millis(100) * PING_COUNT as u32 * 4, "{:?}", since.elapsed());
}

#[test]
fn agents_of_another_version_are_refused() {
    let refused = fake_agent_of("0.0.1", pong).map(drop).unwrap_err();
    let expected = concat!(" is brunt 0.0.1: expected ", env!("CARGO_PKG_VERSION"), ", as the controller is");
    assert!(refused.ends_with(expected), "{refused}");
}

#[test]
fn agents_that_are_never_ready_are_named() {
    let mut fleet = fake_agent(pong).unwrap();
    let name = fleet.peers[0].name.clone();
    let shares = split_plan("");
    fleet.divide_workers(&shares);
    let mut side = ControllerSide::new(&mut fleet, &shares, DataSets::ToStore);
    side.limits.preparation = SHORT;
    assert_eq!(prepare(&mut side), Err(format!("agent {name} was not ready within 0.3 s")));
}

/// Of a rank, connected: nothing can be sent to it.
fn dead_agent(rank: Rank) -> Peer {
    let (link, _) = crate::message_channel::tests::pair();
    link.socket().shutdown(std::net::Shutdown::Write).unwrap();
    let info = AgentInfo {
        host: "dead".to_owned(),
        version: String::new(),
        threads: 1,
        weight: 1,
        rank: Some(rank),
    };
    Peer::joined(rank, Arrival { link, info })
}

/// The engine has its five minutes for another one.
#[test]
fn replacements_that_die_at_once_leave_the_rank_vacant() {
    let rank = Rank { index: 0, of: 1, attempt: 1 };
    let mut fleet = fake_agent(pong).unwrap();
    let shares = split_plan("");
    fleet.divide_workers(&shares);
    let mut side = ControllerSide::new(&mut fleet, &shares, DataSets::ToStore);
    side.poll_ready(true, &mut |_| {}).unwrap();
    let told = side.fleet.peers[0].assignment.clone();
    side.fleet.peers[0].connections.established = 3;
    side.seat(rank, dead_agent(rank)).unwrap();
    // Those of the agent before count as closed.
    let mut retired = 0;
    side.hand_on(&mut |interval| retired += interval.connections[Phase::Preload as usize].retired).unwrap();
    assert_eq!(retired, 3);
    let peer = &side.fleet.peers[0];
    assert!(matches!(peer.state, State::Vacant { .. }), "{:?}", peer.state);
    assert!(told.is_some() && peer.assignment == told);
}

/// An agent that fails or is lost before the start leaves its rank to another one, unless a server is to blame or it has no rank.
#[test]
fn ranks_of_agents_that_fail_before_the_start_are_vacant() {
    let rank = Some(Rank { index: 1, of: 2, attempt: 0 });
    let table = [
        (State::Ended, rank, false, true),
        (State::Preparing, rank, false, true),
        (State::Ready, rank, false, true),
        (State::Preparing, rank, true, false),
        (State::Preparing, None, false, false),
    ];
    for (state, rank, is_server_error, is_vacant) in table {
        let (link, _far) = crate::message_channel::tests::pair();
        let info = AgentInfo { host: "h".to_owned(), version: String::new(), threads: 1, weight: 1, rank };
        let mut peer = Peer::new("rank 1 (h)".to_owned(), link, info);
        peer.state = state;
        let told =
            peer.take(FromAgent::Failed(RemoteError { is_server_error, reason: "no trace".to_owned() }));
        assert_eq!((told.is_ok(), peer.is_gone()), (is_vacant, is_vacant), "{state:?} {rank:?}");
        let note = "agent rank 1 (h) failed: no trace: waiting for another".to_owned();
        assert_eq!(peer.notes, Vec::from_iter(is_vacant.then_some(note)));
    }
}

/// Those that dialled would dial again.
#[test]
fn agents_are_told_that_their_controller_gives_up() {
    let (link, far) = crate::message_channel::tests::pair();
    let rank = Some(Rank { index: 0, of: 1, attempt: 0 });
    let info = AgentInfo { host: "h".to_owned(), version: String::new(), threads: 1, weight: 1, rank };
    drop(Peer::new("rank 0 (h)".to_owned(), link, info));
    let mut agent = MessageChannel::new(Wire::new(far, None).unwrap(), CONTROLLER_SILENCE_MAX);
    assert!(matches!(agent.next_message(PATIENCE), Ok(Some(ToAgent::Leave))));
}

/// One that is lost between two runs is replaced in the next.
#[test]
fn vacant_ranks_are_assigned_nothing_before_another_comes() {
    let rank = Rank { index: 0, of: 1, attempt: 0 };
    let mut fleet =
        Fleet { peers: vec![dead_agent(rank)], own_workers: 0, door: None, ends_with_loss: false };
    fleet.peers[0].record_loss("sent no heartbeat for 4 s".to_owned()).unwrap();
    fleet.keep_alive().unwrap();
    let shares = split_plan("");
    fleet.divide_workers(&shares);
    let mut side = ControllerSide::new(&mut fleet, &shares, DataSets::ToStore);
    assert_eq!(side.poll_ready(true, &mut |_| {}), Ok(ReadyState::Wait));
    let peer = &side.fleet.peers[0];
    assert!(matches!(peer.state, State::Vacant { .. }) && peer.assignment.is_some(), "{:?}", peer.state);
}

/// A preload may take as long as it gets on.
#[test]
fn agents_that_get_on_are_awaited() {
    let mut turns = 0;
    let mut fleet = fake_agent(move |message| {
        let mut interval = RecorderSet::new(&Layout::of(&split_plan("").agents.plan)).take_interval(0, 0, 1);
        interval.connections[Phase::Preload as usize].established = 1;
        turns += u32::from(message.is_none());
        match turns {
            0 => pong(message),
            1..60 => vec![FromAgent::Interval(Box::new(interval))],
            _ => pong(message).into_iter().chain([FromAgent::Ready]).collect(),
        }
    })
    .unwrap();
    let shares = split_plan("");
    fleet.divide_workers(&shares);
    let mut side = ControllerSide::new(&mut fleet, &shares, DataSets::ToStore);
    (side.limits.preparation, side.limits.progress) = (SHORT, SHORT);
    let since = Instant::now();
    assert_eq!(prepare(&mut side), Ok(()));
    assert!(since.elapsed() > SHORT * 2, "{:?}", since.elapsed());
}

#[test]
fn agents_that_never_end_are_lost() {
    let timed = PhaseLimits { preparation: LONG, progress: LONG, run: Some(SHORT), stop: LONG };
    let counted = PhaseLimits { progress: SHORT, run: None, ..timed };
    let stopped = PhaseLimits { stop: SHORT, run: Some(LONG), ..timed };
    for (limits, stop) in
        [(timed, None), (counted, None), (stopped, Some(Stop::Enough)), (stopped, Some(Stop::Interrupted))]
    {
        let mut fleet = fake_agent(ready).unwrap();
        let shares = split_plan("");
        fleet.divide_workers(&shares);
        let mut side = ControllerSide::new(&mut fleet, &shares, DataSets::ToStore);
        side.limits = limits;
        assert_eq!(measure(&mut side, stop).as_deref(), Some("did not end within 0.3 s"), "{limits:?}");
        assert!(side.has_lost());
        let is_interrupted = stop == Some(Stop::Interrupted);
        assert_eq!(fleet.records()[0].lost_after_interruption, is_interrupted, "{limits:?}");
    }
}

/// Three waits of four seconds each, at a time.
#[test]
fn agents_that_do_not_answer_are_awaited_for_four_seconds() {
    std::thread::scope(|scope| {
        scope.spawn(signals_end_the_wait_for_results);
        scope.spawn(|| agents_without_a_clock_are_named(0));
        scope.spawn(|| agents_without_a_clock_are_named(PING_COUNT));
    });
}

/// However long its plan may take, an agent has four seconds after a signal.
fn signals_end_the_wait_for_results() {
    let mut fleet = fake_agent(ready).unwrap();
    let shares = split_plan("");
    fleet.divide_workers(&shares);
    let mut side = ControllerSide::new(&mut fleet, &shares, DataSets::ToStore);
    side.limits = PhaseLimits { preparation: LONG, progress: LONG, run: None, stop: LONG };
    assert_eq!(measure(&mut side, Some(Stop::Interrupted)).as_deref(), Some("did not end within 4 s"));
}

/// Those that never answer, and those that stop before the start.
fn agents_without_a_clock_are_named(answered: u64) {
    let mut asked = 0;
    let refused = fake_agent(move |message| match message {
        Some(ToAgent::Ping { .. }) if asked == answered => Vec::new(),
        Some(ToAgent::Ping { .. }) => {
            asked += 1;
            pong(message)
        }
        None if asked == answered => vec![FromAgent::Ready],
        _ => Vec::new(),
    })
    .and_then(|mut fleet| {
        let shares = split_plan("");
        fleet.divide_workers(&shares);
        prepare(&mut ControllerSide::new(&mut fleet, &shares, DataSets::ToStore))
    });
    let reason = refused.unwrap_err();
    assert!(
        reason.starts_with("agent 127.0.0.1:") && reason.ends_with(" did not answer in time"),
        "{reason}"
    );
}

/// What is recorded while keys are stored is there at once, as soon as the clock is known.
#[test]
fn intervals_of_the_preparation_are_handed_on() {
    let mut fleet = fake_agent(|message| {
        let interval = RecorderSet::new(&Layout::of(&split_plan("").agents.plan)).take_interval(0, 0, 1);
        pong(message).into_iter().chain([FromAgent::Interval(Box::new(interval))]).collect()
    })
    .unwrap();
    let shares = split_plan("");
    fleet.divide_workers(&shares);
    let mut side = ControllerSide::new(&mut fleet, &shares, DataSets::ToStore);
    let (mut heard, since) = (0, Instant::now());
    while heard == 0 {
        assert!(since.elapsed() < PATIENCE, "nothing was handed on");
        side.poll_ready(true, &mut |_| heard += 1).unwrap();
    }
    assert!(side.fleet.peers[0].intervals.is_empty());
}

/// Results of a run that was left are not those of the next.
#[test]
fn messages_of_an_earlier_run_are_ignored() {
    let mut fleet = fake_agent(|message| match message {
        Some(ToAgent::Prepare(_)) => {
            let data = Box::<RunData>::default();
            vec![FromAgent::Ended { data, samples: Vec::new() }, FromAgent::Ready]
        }
        Some(ToAgent::Start { .. }) => {
            vec![FromAgent::Ready, FromAgent::Ended { data: Box::default(), samples: Vec::new() }]
        }
        _ => pong(message),
    })
    .unwrap();
    let shares = split_plan("");
    fleet.divide_workers(&shares);
    let mut side = ControllerSide::new(&mut fleet, &shares, DataSets::ToStore);
    assert_eq!(measure(&mut side, None), None);
    assert_eq!(side.collect_results().len(), 1);
}

#[test]
fn plans_for_agents_name_no_files() {
    let (sender, receiver) = std::sync::mpsc::channel();
    let mut fleet = fake_agent(move |message| {
        if let Some(ToAgent::Prepare(assignment)) = message {
            sender.send(assignment.clone()).unwrap();
        }
        ready(message)
    })
    .unwrap();
    let shares = split_plan("transport = 'tls'\ntls-ca = 'ca.pem'\ntls-cert = 'c.pem'\ntls-key = 'k.pem'");
    fleet.divide_workers(&shares);
    let mut side = ControllerSide::new(&mut fleet, &shares, DataSets::ToStore);
    prepare(&mut side).unwrap();
    let Assignment { plan, shows_certificate, .. } = receiver.recv().unwrap();
    assert!(shows_certificate && !plan.contains(".pem"), "{plan}");
    assert_eq!(PlanSpec::from_toml(&plan).unwrap().first_file(), None);
}
