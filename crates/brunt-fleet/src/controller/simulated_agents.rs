//! Many agents in one process, each with its real share of a plan: what they recorded comes out exactly, those that are lost included.
//!
//! Not workers: what is due is counted at once. One thread is all agents; its sockets are those of real ones.

use super::*;
use brunt_plan::op::{KeyRef, Op, OpKind};
use brunt_plan::outcome::{Outcome, ReplyKind};
use brunt_plan::resolve::{Host, resolve};
use brunt_plan::spec::PlanSpec;
use brunt_stats::sample::{Sample, Times};
use brunt_stats::store::IntervalStore;
use std::net::Ipv4Addr;

const RATE: u64 = 100_003;
const INTERVALS: u64 = 3;
const INTERVAL_NS: u64 = 100_000_000;
/// Agents whose clocks are read.
const CLOCKS_READ: usize = 10;
/// Whatever hangs here is a failure.
const PATIENCE: Duration = Duration::from_secs(60);

/// What one does behind the start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Conduct {
    Whole,
    /// It is gone after two intervals.
    Dies,
    /// It reads nothing.
    Deaf,
}

struct SimulatedAgent {
    link: MessageChannel,
    conduct: Conduct,
    assignment: Option<Assignment>,
    start_ns: Option<u64>,
    intervals: u64,
    is_over: bool,
}

impl SimulatedAgent {
    /// Says what is to be said by now, and adds what it recorded to `sum`.
    fn step(&mut self, is_heard: bool, set: &mut RecorderSet, sum: &mut IntervalStore) -> Result<(), String> {
        let is_deaf = self.conduct == Conduct::Deaf && self.start_ns.is_some();
        if is_heard && !is_deaf {
            self.hear()?;
        }
        self.link.send_heartbeat(&FromAgent::Alive)?;
        let Some(start_ns) = self.start_ns else { return Ok(()) };
        while !self.is_over && brunt_engine::monotonic_ns() >= start_ns + (self.intervals + 1) * INTERVAL_NS {
            let interval = self.interval(set, start_ns);
            sum.push(&interval);
            self.link.send_message(&FromAgent::Interval(Box::new(interval)))?;
            self.intervals += 1;
            if self.conduct == Conduct::Dies && self.intervals == 2 {
                return Err("dies".to_owned());
            }
            if self.intervals == INTERVALS {
                self.is_over = true;
                self.link.send_message(&FromAgent::Ended { data: Box::default(), samples: Vec::new() })?;
            }
        }
        Ok(())
    }

    fn hear(&mut self) -> Result<(), String> {
        loop {
            match self.link.next_message(Duration::ZERO)? {
                Some(ToAgent::Prepare(assignment)) => {
                    self.assignment = Some(assignment);
                    self.link.send_message(&FromAgent::Ready)?;
                }
                Some(ToAgent::Ping { number }) => {
                    let monotonic_ns = brunt_engine::monotonic_ns();
                    self.link.send_message(&FromAgent::Pong { number, monotonic_ns })?;
                }
                Some(ToAgent::Start { monotonic_ns }) => self.start_ns = Some(monotonic_ns),
                Some(_) => {}
                None => return Ok(()),
            }
        }
    }

    /// What of the whole's arrivals, which are even, falls to it in the next interval.
    fn interval(&self, set: &mut RecorderSet, start_ns: u64) -> Interval {
        let Portion { first, width, of } = self.assignment.as_ref().unwrap().portion;
        let begin = |interval: u64| (interval * INTERVAL_NS * RATE).div_ceil(1_000_000_000);
        let mine = |nth: &u64| (first..first + width).contains(&((nth % u64::from(of)) as u32));
        for nth in (begin(self.intervals)..begin(self.intervals + 1)).filter(mine) {
            let op = Op::of(OpKind::Get, KeyRef::Id(nth));
            set.scheduled(Phase::Measure, &op);
            set.sent(Phase::Measure, &op, 1, 0);
            let done_ns = 50_000 + nth * 7_919 % 3_000_000;
            let times = Times { done_ns, first_byte_ns: done_ns, ..Times::default() };
            let outcome = Outcome::of_reply(OpKind::Get, ReplyKind::Value);
            let sample = Sample { op: OpKind::Get.into(), class: 0, outcome, busy_lag_ns: None, times };
            set.record(Phase::Measure, &sample, 1, 1);
        }
        let from_ns = start_ns + self.intervals * INTERVAL_NS;
        set.take_interval(0, from_ns, from_ns + INTERVAL_NS)
    }
}

/// All agents until the last one is over; what those that are lost had sent is in the sum.
fn be_agents(mut agents: Vec<SimulatedAgent>, layout: &Layout) -> IntervalStore {
    let (mut sum, mut set) = (IntervalStore::new(layout), RecorderSet::new(layout));
    let since = Instant::now();
    while !agents.iter().all(|agent| agent.is_over) {
        assert!(since.elapsed() < PATIENCE, "agents that never end");
        let mut polled: Vec<PollFd<'_>> =
            agents.iter().map(|agent| PollFd::new(agent.link.socket(), PollFlags::IN)).collect();
        wait_for_any(&mut polled, Duration::from_millis(1)).unwrap();
        let heard: Vec<bool> = polled.iter().map(|polled| !polled.revents().is_empty()).collect();
        let mut heard = heard.iter();
        agents.retain_mut(|agent| agent.step(heard.next() == Some(&true), &mut set, &mut sum).is_ok());
    }
    sum
}

/// A fleet, and its agents.
fn fleet(conducts: &[Conduct]) -> (Fleet, Vec<SimulatedAgent>) {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let address = listener.local_addr().unwrap();
    let (of, mut peers, mut agents) = (conducts.len() as u32, Vec::new(), Vec::new());
    let channel = |socket| {
        let wire = crate::message_channel::Wire::new(socket, None).unwrap();
        // A busy host is no matter here.
        MessageChannel::new(wire, PATIENCE)
    };
    for (index, conduct) in (0..).zip(conducts) {
        let far = TcpStream::connect(address).unwrap();
        let rank = Rank { index, of, attempt: 0 };
        let (host, version) = (format!("host-{index}"), String::new());
        let info = AgentInfo { host, version, threads: 1, weight: 1 + index % 3, rank: Some(rank) };
        peers.push(Peer::joined(rank, Arrival { link: channel(listener.accept().unwrap().0), info }));
        agents.push(SimulatedAgent {
            link: channel(far),
            conduct: *conduct,
            assignment: None,
            start_ns: None,
            intervals: 0,
            is_over: false,
        });
    }
    (Fleet { peers, own_workers: 0, door: None, ends_with_loss: false }, agents)
}

/// What a fleet whose agents behave so recorded, what they say they did, and how many were lost. Prints what the controller took for it.
fn simulate(conducts: &[Conduct]) -> (IntervalStore, IntervalStore, usize) {
    let size = conducts.len() as u64;
    let text = format!(
        "server = 'a'\nfleet = {size}\nthreads = {size}\nconnections = {size}\nrate = {RATE}\narrival = 'uniform'\nmix = 'get'\n\
         keys = {size}\ntime = '300ms'\nwarmup = '0s'\n"
    );
    let plan = resolve(&PlanSpec::from_toml(&text).unwrap(), &Host::of(vec![0], 1)).unwrap();
    let shares = PlanSplit::of(&plan, size as u32).unwrap();
    let layout = Layout::of(&shares.agents.plan);
    let ((mut fleet, agents), its) = (fleet(conducts), layout.clone());
    let memory = resident_bytes();
    let far = std::thread::spawn(move || be_agents(agents, &its));
    fleet.divide_workers(&shares);
    let mut side = ControllerSide::new(&mut fleet, &shares, DataSets::ToStore);
    let (mut heard, since) = (IntervalStore::new(&layout), Instant::now());
    side.limits =
        PhaseLimits { preparation: PATIENCE, progress: PATIENCE, run: Some(PATIENCE), stop: PATIENCE };
    while side.poll_ready(true, &mut |_| {}).unwrap() != ReadyState::Ready {
        // To read a thousand clocks of one host takes seconds.
        for peer in side.fleet.peers.iter_mut().skip(CLOCKS_READ) {
            (peer.questions, peer.offset) = (None, ClockOffset { lead_ns: 0, error_ns: 0 });
        }
        assert!(since.elapsed() < PATIENCE, "agents that are never ready");
    }
    let prepared = since.elapsed();
    // More than the kernel takes.
    let reason = if conducts.contains(&Conduct::Deaf) { "x".repeat(32 << 20) } else { String::new() };
    side.begin().unwrap();
    for peer in side.fleet.peers.iter_mut().zip(conducts).filter(|(_, conduct)| **conduct == Conduct::Deaf) {
        peer.0.link.send_message(&ToAgent::Refuse { reason: reason.clone() }).unwrap();
    }
    let (cpu_ns, since, mut longest) = (thread_cpu_ns(), Instant::now(), Duration::ZERO);
    loop {
        let called = Instant::now();
        let status = side.poll_running(true, None, &mut |interval| heard.push(&interval)).unwrap();
        longest = longest.max(called.elapsed());
        if status.is_over {
            break;
        }
        assert!(since.elapsed() < PATIENCE, "a run that never ends");
    }
    let per_agent_us = (thread_cpu_ns() - cpu_ns) as f64 / 1e3 / size as f64 / (INTERVALS as f64 / 10.0);
    let memory_kib = resident_bytes().saturating_sub(memory) / size / 1024;
    eprintln!(
        "{size} agents: prepared in {prepared:.2?}; the controller's CPU {per_agent_us:.0} us per agent and second, longest turn \
         {longest:.2?}; {memory_kib} KiB per agent, both ends"
    );
    let lost = side.fleet.records().iter().filter(|record| record.lost.is_some()).count();
    (heard, far.join().unwrap(), lost)
}

fn thread_cpu_ns() -> u64 {
    let told = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    told.split_whitespace().next().and_then(|ns| ns.parse().ok()).unwrap_or(0)
}

fn resident_bytes() -> u64 {
    let told = std::fs::read_to_string("/proc/self/statm").unwrap_or_default();
    told.split_whitespace().nth(1).and_then(|pages| pages.parse().ok()).unwrap_or(0) * 4096
}

fn scheduled(store: &IntervalStore) -> u64 {
    store.request_counts().entries().map(|entry| entry.counts.requests.scheduled).sum()
}

fn check_same(heard: &IntervalStore, said: &IntervalStore) {
    assert!(heard.request_counts().entries().eq(said.request_counts().entries()));
    assert!(heard.rows().eq(said.rows()));
}

/// `BRUNT_SIMULATED_AGENTS=10,100,1000 cargo test -p brunt-fleet simulated -- --nocapture` prints a table.
#[test]
fn a_thousand_agents_add_up_exactly() {
    let sizes = std::env::var("BRUNT_SIMULATED_AGENTS").unwrap_or_else(|_| "1000".to_owned());
    for size in sizes.split(',') {
        let (heard, said, lost) = simulate(&vec![Conduct::Whole; size.parse().unwrap()]);
        assert_eq!((scheduled(&heard), lost), ((RATE * INTERVALS).div_ceil(10), 0));
        check_same(&heard, &said);
    }
}

/// Up to their last interval, to the request; one that takes in nothing delays no other.
#[test]
fn lost_and_deaf_agents_count_exactly() {
    let mut conducts = vec![Conduct::Whole; 40];
    (conducts[3], conducts[17], conducts[39], conducts[5]) =
        (Conduct::Dies, Conduct::Dies, Conduct::Dies, Conduct::Deaf);
    let (heard, said, lost) = simulate(&conducts);
    assert_eq!(lost, 3);
    assert!(scheduled(&heard) < RATE * INTERVALS / 10, "{}", scheduled(&heard));
    check_same(&heard, &said);
}
