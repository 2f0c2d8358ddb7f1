//! The production worker in a simulated world: exact tests of what latency means.
//!
//! Every expected number is computed here from the definition of the experiment, never by the code under test.

mod abandoning;
mod attempts;
mod busy_period;
mod capacity;
mod clients;
mod cluster;
mod datagrams;
mod faults;
mod full_queues;
mod lifetimes;
mod noreply;
mod on_miss;
mod operations;
mod outages;
mod paths;
mod queues;
mod reconnect;
mod replies;
mod scripted;
mod servers;
pub(crate) mod sim;
mod slowest;
mod stamps;
mod timeouts;
mod tokens;
mod traces;
mod verifying;
mod waiting;
mod warmup;
mod whole_window;

use crate::allocations::allocations;
use crate::loopback::plan as planned;
use crate::run::blueprint::{Blueprint, build, connection_count};
use crate::run::control_thread::WindowStart;
use crate::run::trace_reader::TraceReaders;
use crate::run::{DataSets, Endpoint, RunData, RunDecision, RunError, RunEvent, RunTimes, ServerFailure};
use crate::simulated::sim::{Attempt, EPOCH_NS, Sim, SimOptions};
use crate::state::recording::{Exchange, Filled};
use crate::worker::pace::Cpus;
use crate::worker::{Notice, Orders, Worker, WorkerEnd};
use brunt_plan::op::OpKind;
use brunt_plan::outcome::OutcomeClass;
use brunt_plan::phase::Phase;
use brunt_plan::plan::{MeterKind, Plan, Protocol, Server, Timestamps, Transport, Wait};
use brunt_plan::server::ServerAddress;
use brunt_plan::shard::{Shard, shards};
use brunt_proto::Codec;
use brunt_proto::memcached::MetaCodec;
use brunt_proto::memcached::text::TextCodec;
use brunt_server::cache::Counters;
use brunt_server::text::{Command, Parsed, Verb, parse};
use brunt_server::{CoreOptions, Faults, Service, Stall};
use brunt_stats::check::{CheckId, CheckStatus};
use brunt_stats::connection::ConnectionCounts;
use brunt_stats::interval::Interval;
use brunt_stats::little::slots_taken;
use brunt_stats::meter::Meter;
use brunt_stats::occupancy::OccupancyTotal;
use brunt_stats::outage::{Outage, outages};
use brunt_stats::recorder::{Layout, RecorderSet};
use brunt_stats::request_counts::{OpCounts, RequestCounts};
use brunt_stats::run_record::RunRecord;
use brunt_stats::sample::Sample;
use brunt_stats::server::OutageSpan;
use brunt_stats::store::IntervalStore;
use brunt_stats::summary::Summary;
use brunt_stats::usage::StallCounts;
use brunt_stats::verification::ObjectFaults;
use brunt_stats::warmup::WarmupEnd;
use brunt_stats::worker_counts::FillCounts;
use brunt_workload::keys::KeyGenerator;
use brunt_workload::placement::Router;
use std::sync::Arc;
use std::sync::atomic::Ordering;

const US: u64 = 1_000;
const MS: u64 = 1_000_000;
const SECOND: u64 = 1_000 * MS;

/// The schedule starts this long after the worker is prepared.
const START_AHEAD_NS: u64 = 10 * MS;
/// A run that takes more of its own time than this does not end by itself.
const VIRTUAL_NS_MAX: u64 = 1_000 * SECOND;
/// Nor does one that takes more turns.
const TURNS_MAX: u64 = 60_000_000;
/// Whoever observes a run is asked this often, as by the control thread.
const LOOK_NS: u64 = 10 * MS;

/// What a simulated run yields.
struct Outcome {
    /// Measured operations by intended time; of equal ones the one that ended first comes first.
    samples: Vec<Sample>,
    store: IntervalStore,
    spans: Vec<OutageSpan>,
    /// Of each interval.
    object_faults: Vec<ObjectFaults>,
    meters: Vec<Meter>,
    end: WorkerEnd,
    notice: Option<Notice>,
    /// Why the warm-up ended, where the plan leaves that open.
    warmup_end: Option<WarmupEnd>,
    /// What each server counted.
    counters: Vec<Counters>,
    /// Items that each server held at the end.
    items: Vec<usize>,
    attempts: Vec<Attempt>,
    /// Every byte that was sent.
    sent: Vec<u8>,
    /// What the worker allocated while the schedule ran.
    allocations: u64,
    /// How often it looked for something without sleeping, and there was nothing.
    looks_in_vain: u64,
    /// How long it slept, if it takes time to wake.
    slept_ns: u64,
}

impl Outcome {
    /// The counts of everything that is selected.
    fn sum(&self, of: impl Fn(Phase, OpKind) -> bool) -> OpCounts {
        let mut sum = OpCounts::default();
        let entries = self.store.request_counts().entries().filter(|entry| of(entry.phase, entry.op.kind()));
        entries.for_each(|entry| sum.merge(&entry.counts));
        sum
    }

    /// The counts of a phase, over all operations.
    fn op_counts(&self, phase: Phase) -> OpCounts {
        self.sum(|held, _| held == phase)
    }

    /// Those of the measured requests.
    fn requests(&self) -> RequestCounts {
        self.op_counts(Phase::Measure).requests
    }

    /// The measured counts of a kind.
    fn measured(&self, kind: OpKind) -> OpCounts {
        self.sum(|phase, held| phase == Phase::Measure && held == kind)
    }

    /// How many measured operations ended so.
    fn count(&self, class: OutcomeClass) -> u64 {
        self.requests().outcome(class)
    }

    /// What a summary of it is built from.
    fn record(&self, plan: Plan) -> RunRecord {
        RunRecord {
            // The processor and the host are not of this world.
            run: RunData {
                intervals: self.store.clone(),
                samples: self.samples.clone(),
                times: self.end.data.times,
                counts: self.end.data.counts.clone(),
                warmup_end: self.warmup_end,
                ..RunData::default()
            },
            ..RunRecord::of(plan)
        }
    }

    /// Connections of the whole run.
    fn connections(&self) -> ConnectionCounts {
        let mut sum = ConnectionCounts::default();
        self.store.connections().iter().for_each(|counts| sum.merge(counts));
        sum
    }

    fn outages(&self) -> Vec<Outage> {
        outages(
            &self.spans,
            self.store.timeline(),
            &(self.end.data.times.start_ns..self.end.data.times.end_ns),
        )
    }

    fn meter(&self, kind: MeterKind) -> &Meter {
        self.meters.iter().find(|meter| meter.kind == kind).unwrap()
    }

    /// When the schedule began.
    fn start_ns(&self) -> u64 {
        self.end.data.times.start_ns
    }

    /// Intended times, counted from the start of the schedule.
    fn intended_ns(&self) -> Vec<u64> {
        self.samples.iter().map(|sample| sample.times.intended_ns - self.start_ns()).collect()
    }

    /// A quantile of the samples by sorting them: the smallest value with at least `p·n` samples at or below it.
    fn quantile(&self, p: f64, of: impl Fn(&Sample) -> u64) -> u64 {
        let mut values: Vec<u64> = self.samples.iter().map(of).collect();
        values.sort_unstable();
        values[((p * values.len() as f64).ceil() as usize).max(1) - 1]
    }
}

fn resolved(toml: &str) -> Plan {
    let mut plan = planned(toml);
    // A world has the timestamps that a test asks for.
    if plan.timestamps == Timestamps::Auto {
        plan.timestamps = Timestamps::Off;
    }
    plan
}

/// A plan of one thread that keeps its samples, without a warm-up and of 100 keys if it does not say otherwise.
fn plan(toml: &str) -> Plan {
    let warmup = if toml.contains("warmup = ") { "" } else { "warmup = '0s'\n" };
    let keys = if toml.contains("keys = ") || toml.contains("window:") { "" } else { "keys = 100\n" };
    resolved(&format!("threads = 1\nwait = 'sleep'\nseed = 1\nsamples-max = 1000000\n{warmup}{keys}{toml}"))
}

/// A server that takes so long for each request.
fn serving(service_ns: u64) -> CoreOptions {
    CoreOptions { service: Service::Fixed(service_ns), ..CoreOptions::default() }
}

/// One that stands still.
fn stalled(at_ns: u64, for_ns: u64) -> CoreOptions {
    CoreOptions { stalls: vec![Stall { at_ns, for_ns }], ..CoreOptions::default() }
}

/// One that is away.
fn gone(at_ns: u64, for_ns: u64) -> CoreOptions {
    CoreOptions { outages: vec![brunt_server::Outage { at_ns, for_ns }], ..CoreOptions::default() }
}

/// Runs a plan (of one thread) in a simulated world.
fn simulate(toml: &str, options: SimOptions) -> Outcome {
    simulate_plan(plan(toml), options)
}

/// The world's server `n` has port `n + 1` and whatever name the plan gives it.
fn endpoints(plan: &Plan) -> Vec<Endpoint> {
    let endpoint = |(port, server): (u16, &Server)| Endpoint {
        server: server.address.clone().unwrap_or_else(|| ServerAddress::network("sim", 1)),
        addresses: vec![std::net::SocketAddr::from(([127, 0, 0, 1], port)).into()],
        tls: None,
    };
    (1..).zip(&plan.servers).map(endpoint).collect()
}

/// How many stores of the preload each server gets.
fn preload_stores(plan: &Plan) -> Vec<u64> {
    let servers: Vec<ServerAddress> = endpoints(plan).into_iter().map(|endpoint| endpoint.server).collect();
    let mut stores = vec![0; servers.len()];
    let router = plan.placement.is_by_key().then(|| Router::new(plan.placement, &servers));
    for set in plan.data_sets().iter().filter(|_| plan.preload) {
        let keys = KeyGenerator::new(set, plan.data_seed);
        for id in 0..set.ids_preloaded() {
            let mut key = Vec::new();
            keys.write_key(id, &mut key);
            match &router {
                Some(router) => {
                    let home = router.route(&key) as usize;
                    (0..set.replicas as usize)
                        .for_each(|behind| stores[(home + behind) % servers.len()] += 1);
                }
                None => stores.iter_mut().for_each(|count| *count += 1),
            }
        }
    }
    stores
}

/// A worker with the control thread's part of the work.
struct Run<C: Codec> {
    worker: Worker<C, Sim>,
    blueprint: Arc<Blueprint>,
    orders: Arc<Orders>,
    filled: rtrb::Consumer<Filled>,
    spares: rtrb::Producer<Box<RecorderSet>>,
    kept: Kept,
    notice: Option<Notice>,
    allocations: u64,
    window_start: Option<WindowStart>,
    /// The times with the latest start of the window.
    latest: RunTimes,
    warmup_end: Option<WarmupEnd>,
}

/// What the control thread keeps.
struct Kept {
    store: IntervalStore,
    spans: Vec<OutageSpan>,
    object_faults: Vec<ObjectFaults>,
    meters: Vec<Meter>,
}

impl Kept {
    fn new(layout: &Layout) -> Self {
        Self {
            store: IntervalStore::new(layout),
            spans: Vec::new(),
            object_faults: Vec::new(),
            meters: layout.meters.iter().map(|kind| Meter::new(*kind)).collect(),
        }
    }

    fn keep(&mut self, interval: &Interval) {
        self.store.push(interval);
        self.spans.extend_from_slice(&interval.outages.spans);
        self.object_faults.push(interval.object_faults.clone());
        self.meters.iter_mut().zip(&interval.meters).for_each(|(ours, theirs)| ours.merge(theirs));
    }
}

impl<C: Codec> Run<C> {
    fn new(plan: Plan, options: SimOptions, codec: impl FnOnce(&Blueprint, &Shard) -> C) -> Self {
        let endpoints = endpoints(&plan);
        let shard = shards(&plan).remove(0);
        let blueprint = Arc::new(Blueprint::new(plan, endpoints, options.data));
        let (exchange, filled_out, spares) = Exchange::new(&blueprint.layout);
        let orders = Arc::new(Orders::default());
        let connections = connection_count(&blueprint.plan, &shard);
        let codec = codec(&blueprint, &shard);
        let cpus = if options.is_crowded { Cpus::Shared } else { Cpus::Spare };
        let (wake_ns, sim) = (options.wake_ns, Sim::new(connections, options));
        let (readers, mut feeds) =
            TraceReaders::start(&blueprint.plan, std::slice::from_ref(&shard)).unwrap();
        // Traces of these tests have room in the blocks, and in this world no thread but ours takes time.
        readers.await_end();
        let mut worker = build(&blueprint, shard, orders.clone(), exchange, codec, sim, cpus);
        if worker.counts_wake_ups() {
            worker.set_wake_up(wake_ns);
        }
        Self {
            worker: worker.with_feeds(feeds.remove(0)),
            kept: Kept::new(&blueprint.layout),
            blueprint,
            orders,
            filled: filled_out,
            spares,
            notice: None,
            allocations: 0,
            window_start: None,
            latest: RunTimes::default(),
            warmup_end: None,
        }
    }

    /// One turn of the worker; counts what it allocates once its schedule is set up.
    fn turn(&mut self) {
        let is_counted = self.worker.is_measuring();
        let before = allocations() - self.worker.io_mut().allocations();
        self.worker.run_once();
        if is_counted {
            self.allocations += allocations() - self.worker.io_mut().allocations() - before;
        }
        while let Ok(mut filled) = self.filled.pop() {
            let interval = filled.take_interval(0);
            self.kept.keep(&interval);
            self.spares.push(filled.set).unwrap();
        }
    }

    /// Starts the schedule when the worker is ready for it. Returns its times then.
    fn attend(&mut self) -> Option<RunTimes> {
        match self.worker.take_notice()? {
            Notice::Prepared => {
                let start_ns = self.worker.now_ns() + START_AHEAD_NS;
                let measure_ns = start_ns + self.blueprint.plan.warmup.longest().0;
                self.orders.start_ns.store(start_ns, Ordering::Relaxed);
                let end_ns = self.blueprint.plan.stop.time.map_or(u64::MAX, |time| measure_ns + time.0);
                self.kept.store.align(measure_ns);
                self.kept.store.set_schedule(start_ns..end_ns);
                let times = RunTimes { start_ns, measure_ns, end_ns, ..RunTimes::default() };
                self.window_start = WindowStart::of(&self.blueprint.plan);
                self.latest = times;
                Some(times)
            }
            trouble => {
                self.notice = Some(trouble);
                self.orders.abort.store(true, Ordering::Relaxed);
                None
            }
        }
    }

    /// Says when the window begins, as soon as that is decided. Returns its times then.
    fn open_window(&mut self, now_ns: u64) -> Option<RunTimes> {
        let (plan, store) = (&self.blueprint.plan, &self.kept.store);
        let (times, end) = self.window_start.as_mut()?.check(now_ns, plan, store, self.latest)?;
        (self.window_start, self.warmup_end) = (None, Some(end));
        self.kept.store.align(times.measure_ns);
        self.kept.store.set_schedule(times.start_ns..times.end_ns);
        self.orders.measure_ns.store(times.measure_ns, Ordering::Relaxed);
        Some(times)
    }

    fn end(mut self) -> Outcome {
        let sim = self.worker.io_mut();
        sim.settle();
        let servers = self.blueprint.endpoints.len();
        let counters = (0..servers).map(|server| *sim.core(server).counters()).collect();
        let items = (0..servers).map(|server| sim.core(server).store().items()).collect();
        let (attempts, sent) = (sim.attempts().to_vec(), sim.sent().to_vec());
        let (looks_in_vain, slept_ns) = (sim.looks_in_vain(), sim.slept_ns());
        let mut end = self.worker.end();
        self.kept.keep(&end.last.take_interval(0));
        let mut samples = end.data.samples.clone();
        samples.sort_by_key(|sample| sample.times.intended_ns);
        Outcome {
            samples,
            store: self.kept.store,
            spans: self.kept.spans,
            object_faults: self.kept.object_faults,
            meters: self.kept.meters,
            end,
            notice: self.notice,
            warmup_end: self.warmup_end,
            counters,
            items,
            attempts,
            sent,
            allocations: self.allocations,
            looks_in_vain,
            slept_ns,
        }
    }
}

/// Runs with more samples than this are not run twice: the short ones show the same of every mechanism.
const COMPARED_SAMPLES_MAX: usize = 20_000;

/// Runs a plan in a world that takes each send at once, and if it is short again in one that takes the sends of a turn
/// together. Where a send takes no time, that makes no difference to any sample.
fn simulate_plan(plan: Plan, options: SimOptions) -> Outcome {
    let takes_no_time =
        options.send_cost_ns == 0 && !options.pauses_in_send && plan.timestamps == Timestamps::Off;
    let outcome = simulate_within(plan.clone(), options.clone(), VIRTUAL_NS_MAX);
    if outcome.samples.len() <= COMPARED_SAMPLES_MAX {
        let together = SimOptions { defers_sends: true, ..options };
        let together = simulate_within(plan, together, VIRTUAL_NS_MAX);
        let times = |outcome: &Outcome| outcome.samples.iter().map(|sample| sample.times).collect::<Vec<_>>();
        assert!(!takes_no_time || times(&together) == times(&outcome), "sends that are handed in together");
    }
    outcome
}

/// Runs a plan, which must be over `bound_ns` after the world began.
fn simulate_within(plan: Plan, options: SimOptions, bound_ns: u64) -> Outcome {
    simulate_observed(plan, options, bound_ns, &mut |_| RunDecision::Continue)
}

/// The same before the eyes of somebody who may find that it is enough. Intervals are seen in the store only.
fn simulate_observed(
    plan: Plan,
    options: SimOptions,
    bound_ns: u64,
    observe: &mut dyn FnMut(RunEvent<'_>) -> RunDecision,
) -> Outcome {
    let datagrams = plan.transport == Transport::Udp;
    let options = SimOptions { datagrams, ..options };
    match plan.protocol {
        Protocol::MemcachedMeta if datagrams => {
            let codec =
                |blueprint: &Blueprint, shard: &Shard| blueprint.datagram_codec(MetaCodec::new(), shard);
            observed(Run::new(plan, options, codec), bound_ns, observe)
        }
        _ if datagrams => {
            let codec =
                |blueprint: &Blueprint, shard: &Shard| blueprint.datagram_codec(TextCodec::default(), shard);
            observed(Run::new(plan, options, codec), bound_ns, observe)
        }
        _ => observed(Run::new(plan, options, |_, _| TextCodec::default()), bound_ns, observe),
    }
}

/// Lets a run come to its end.
fn observed<C: Codec>(
    mut run: Run<C>,
    bound_ns: u64,
    observe: &mut dyn FnMut(RunEvent<'_>) -> RunDecision,
) -> Outcome {
    let (mut turns, mut look_ns) = (0, 0);
    while run.worker.is_running() {
        run.turn();
        if let Some(times) = run.attend() {
            observe(RunEvent::Started(&RunData { times, ..RunData::default() }));
        }
        turns += 1;
        let now_ns = run.worker.now_ns();
        if now_ns >= look_ns {
            look_ns = now_ns + LOOK_NS;
            if let Some(times) = run.open_window(now_ns) {
                observe(RunEvent::Started(&RunData { times, ..RunData::default() }));
            }
            if observe(RunEvent::Tick { now_ns, intervals: &run.kept.store }) == RunDecision::Finish {
                run.orders.stop.store(true, Ordering::Relaxed);
            }
        }
        assert!(now_ns - EPOCH_NS <= bound_ns, "still running after {bound_ns} ns of its own time");
        assert!(turns < TURNS_MAX, "still running at {now_ns} ns after {turns} turns");
    }
    let outcome = run.end();
    // A run that a failure ended is over in the middle of things.
    if outcome.notice.is_none() {
        check_counts(&outcome);
    }
    outcome
}

/// The data commands among these bytes, as verbs and whether they want no reply.
fn commands(mut bytes: &[u8]) -> Vec<(Verb, bool)> {
    let mut commands = Vec::new();
    while let Parsed::Complete { used, request: command } = parse(bytes, 1 << 20) {
        if let Command::Data(command) = command {
            commands.push((command.verb, command.noreply));
        }
        bytes = &bytes[used..];
    }
    assert!(bytes.is_empty(), "{} stands behind the last command", bytes.escape_ascii());
    commands
}

/// What holds of every run, whatever went wrong in it.
fn check_counts(outcome: &Outcome) {
    for entry in outcome.store.request_counts().entries() {
        assert!(entry.counts.adds_up() && entry.adds_up_in_window(), "{entry:?}");
    }
    check_window(outcome);
    let OccupancyTotal { integral, sum } = outcome.end.data.counts.occupancy;
    assert_eq!(integral, sum, "an operation leaves the system at the end of its sample");
    let connections = outcome.connections();
    assert!(connections.adds_up(), "{connections:?}");
    // Every attempt that failed and every connection that was lost has its row in the table of faults.
    assert_eq!(outcome.store.faults().total(), connections.failed + connections.lost, "{connections:?}");
    assert_eq!(outcome.attempts.len() as u64, connections.begun);
    assert_eq!(outcome.allocations, 0, "a running worker allocates nothing");
    let stamps = &outcome.end.data.counts.stamps;
    assert!(stamps.adds_up(), "{stamps:?}");
    for meter in outcome.meters.iter().filter(|meter| MeterKind::OF_TIMESTAMPS.contains(&meter.kind)) {
        assert_eq!(meter.histogram.count(), stamps.matched, "{:?}", meter.kind);
    }
    // A look without sleep is for something that is due, or for the rest of a sleep where sleeps end late.
    let due = outcome.sum(|_, _| true).requests.scheduled + connections.begun + connections.established;
    let polls = outcome.end.data.usage.wait != Wait::Sleep.name() || outcome.slept_ns > 0;
    assert!(polls || outcome.looks_in_vain <= due + 10, "{} looks for {due} things", outcome.looks_in_vain);
    for sample in &outcome.samples {
        let times = &sample.times;
        let in_order =
            [times.intended_ns, times.picked_ns, times.sent_ns, times.first_byte_ns, times.done_ns];
        assert!(in_order.is_sorted() && times.polled_ns <= times.done_ns, "{sample:?}");
    }
}

/// The counts of the window against the raw samples, which are those of measured operations. A window that was ended
/// early, or by its number of requests, holds what happened at the very instant of its end.
fn check_window(outcome: &Outcome) {
    let op_counts = outcome.op_counts(Phase::Measure);
    if outcome.samples.len() as u64 != op_counts.requests.ended() {
        return;
    }
    let end_ns = outcome.end.data.times.end_ns;
    let times = || outcome.samples.iter().map(|sample| &sample.times);
    let done = |until_ns: u64| times().filter(|times| times.done_ns < until_ns).count() as u64;
    let ended = op_counts.in_window.ended();
    assert!((done(end_ns)..=done(end_ns + 1)).contains(&ended), "{ended}, of samples {}", done(end_ns));
    let sent = |until_ns: u64| times().filter(|times| times.sent_ns < until_ns).count() as u64;
    let counted = op_counts.in_window.sent;
    let sent_max = sent(end_ns + 1) + op_counts.requests.in_flight;
    assert!((sent(end_ns)..=sent_max).contains(&counted), "{counted}, of samples {}", sent(end_ns));
}

/// The signature test: evenly spaced requests at 1 000/s over four connections of depth 1; the server freezes for 1 s.
///
/// A thousand operations fall into the freeze and see what is left of it; only the four that were on the wire show it in
/// their service time; the send lag is the difference, to the nanosecond.
#[test]
fn a_stall_shows_in_response_time_and_not_in_service_time() {
    let outcome = simulate(
        "rate = 1000\narrival = 'uniform'\nconnections = 4\ndepth = 1\ntime = '10s'\npreload = false",
        SimOptions {
            server: CoreOptions {
                // Half a gap after an arrival, so that no request arrives at the very instant.
                stalls: vec![Stall { at_ns: 4 * SECOND + MS / 2, for_ns: SECOND }],
                ..CoreOptions::default()
            },
            ..SimOptions::default()
        },
    );
    assert_eq!(outcome.samples.len(), 10_000);
    let start_ns = outcome.start_ns();
    let stalled_until_ns = start_ns + 5 * SECOND + MS / 2;
    let (mut slow_responses, mut slow_services) = (0, 0);
    for (index, sample) in outcome.samples.iter().enumerate() {
        let times = &sample.times;
        assert_eq!(times.intended_ns, start_ns + index as u64 * MS);
        let is_hit_by_stall = (4_001..=5_000).contains(&index);
        let expected_ns = if is_hit_by_stall { stalled_until_ns - times.intended_ns } else { 0 };
        assert_eq!(
            times.response_ns(),
            expected_ns,
            "operation {index} {times:?} {:?}",
            outcome.end.data.times
        );
        // The first four were sent at once; the others waited for a connection until the stall was over.
        let expected_service_ns = if (4_001..=4_004).contains(&index) { expected_ns } else { 0 };
        assert_eq!(times.service_ns(), expected_service_ns, "operation {index}");
        assert_eq!(times.send_lag_ns(), expected_ns - expected_service_ns, "operation {index}");
        assert_eq!(times.client_lag_ns(), 0, "all of the lag is the wait for a connection");
        slow_responses += u32::from(times.response_ns() > 0);
        slow_services += u32::from(times.service_ns() > 0);
    }
    assert_eq!((slow_responses, slow_services), (1_000, 4));
}

/// A window by time is as long as it was to be, however early its last reply came: rates count over all of it. With a number
/// that is reached it ends there.
#[test]
fn windows_by_time_have_their_planned_length() {
    let loads = ["rate = 3", "rate = 5", "rate = 7", "rate = 31\narrival = 'uniform'", "think = '700ms'"];
    for load in loads {
        let toml = format!("{load}\nconnections = 2\ntime = '2s'");
        let outcome = simulate(&toml, SimOptions::default());
        let window = outcome.end.data.times;
        assert_eq!(window.end_ns - window.measure_ns, 2 * SECOND, "{load}");
    }
    let toml = "rate = 100\narrival = 'uniform'\nrequests = 50\ntime = '2s'";
    let window = simulate(toml, SimOptions::default()).end.data.times;
    assert_eq!((window.end_ns - window.measure_ns).div_ceil(10 * MS), 49);
}

/// T1: every request leaves at its slot, to the nanosecond, a million of them.
#[test]
fn uniform_arrivals_leave_on_their_slots() {
    for (rate, gap_ns) in [(100_000u64, 10_000.0), (300_000, 1e9 / 300_000.0)] {
        let outcome = simulate(
            &format!(
                "rate = {rate}\narrival = 'uniform'\nconnections = 8\ndepth = 4\ntime = '500ms'\n\
                 preload = false\nkeys = 1000"
            ),
            SimOptions::default(),
        );
        assert_eq!(outcome.samples.len() as u64, rate / 2);
        for (index, sample) in outcome.samples.iter().enumerate() {
            let slot_ns = outcome.start_ns() + (index as f64 * gap_ns).floor() as u64;
            assert!(sample.times.sent_ns.abs_diff(slot_ns) <= 1, "request {index} of {rate}/s");
            assert_eq!(sample.times.sent_ns, sample.times.intended_ns);
        }
    }
}

/// T2: with a stall of length S in a run of length D at utilisation ρ and service time s,
/// the p-quantile of the response time is S + s − (1 − p)·D·(1 − ρ) where that exceeds s, else s.
#[test]
fn stalls_show_in_the_quantiles_they_must() {
    // Stall and run in ms, service time in µs at 1 000 requests/s, connections × depth.
    let table = [
        (1_000, 20_000, 0, 4, 1),
        (1_000, 20_000, 0, 16, 64),
        (1_000, 60_000, 0, 4, 1),
        (1_000, 100_000, 0, 16, 64),
        (1_000, 100_000, 500, 16, 64),
        (1_000, 10_000, 0, 4, 1),
        (100, 30_000, 0, 4, 1),
    ];
    for (stall_ms, run_ms, service_us, connections, depth) in table {
        let service = if service_us == 0 { Service::None } else { Service::Fixed(service_us * 1_000) };
        let outcome = simulate(
            &format!(
                "rate = 1000\narrival = 'uniform'\nconnections = {connections}\ndepth = {depth}\n\
                 time = '{run_ms}ms'\npreload = false\nkeys = 1000"
            ),
            SimOptions::of(CoreOptions { service, ..stalled(3 * SECOND + MS / 2, stall_ms * MS) }),
        );
        for p in [0.5, 0.9, 0.95, 0.99, 0.995, 0.999, 0.9999, 1.0] {
            let utilisation = service_us as f64 / 1_000.0;
            let (stall_s, run_s, service_s) =
                (stall_ms as f64 / 1e3, run_ms as f64 / 1e3, service_us as f64 / 1e6);
            let expected_s = (stall_s + service_s - (1.0 - p) * run_s * (1.0 - utilisation)).max(service_s);
            let measured_s = outcome.quantile(p, |sample| sample.times.response_ns()) as f64 / 1e9;
            // Requests come in steps of 1 ms: the ramp has that grain.
            assert!(
                (measured_s - expected_s).abs() <= 0.0015,
                "p{} of a stall of {stall_ms} ms in {run_ms} ms at {connections} × {depth}, service {service_us} us: \
                 {measured_s} s, expected {expected_s} s",
                p * 100.0
            );
        }
    }
}

/// T6: N customers, deterministic service s, think time Z. Below saturation R = s, above it R = N·s − Z.
#[test]
fn closed_loops_obey_littles_law() {
    // Customers, think time in µs, expected response time in µs, expected completions per second.
    let table =
        [(10u64, 0u64, 1_000u64, 10_000.0), (10, 1_000, 100, 10.0 / 0.0011), (20, 1_000, 1_000, 10_000.0)];
    for (customers, think_us, response_us, per_second) in table {
        let outcome = simulate(
            &format!(
                "connections = {customers}\nthink = '{think_us}us'\ntime = '10s'\nwarmup = '100ms'\npreload = false\n\
                 keys = 1000"
            ),
            SimOptions::of(serving(100_000)),
        );
        for sample in &outcome.samples {
            assert_eq!(
                sample.times.response_ns(),
                response_us * 1_000,
                "{customers} customers, think {think_us} us"
            );
        }
        let measured = outcome.samples.len() as f64 / 10.0;
        assert!((measured - per_second).abs() <= 2.0, "{measured}/s, expected {per_second}/s");
        // Little's law: customers = throughput × (response + think).
        let littles = measured * (response_us + think_us) as f64 / 1e6;
        assert!((littles - customers as f64).abs() / customers as f64 <= 0.001, "{littles} of {customers}");
    }
}

/// The slots of a closed loop are taken throughout, whatever stands still over the edges of the window. Thinking
/// alone is not followed over an edge.
#[test]
fn closed_loops_are_full_over_the_edges_of_the_window() {
    let (none, client) = (Vec::new, |at_ns| Some((EPOCH_NS + START_AHEAD_NS + at_ns, 350 * MS)));
    let server = |at_ns| vec![Stall { at_ns, for_ns: 350 * MS }];
    let table = [
        ("500ms", 0, none(), None),
        ("500ms", 0, server(400 * MS), None),
        ("500ms", 0, server(1_400 * MS), None),
        ("500ms", 0, none(), client(400 * MS)),
        ("500ms", 0, none(), client(1_400 * MS)),
        ("500ms", 10, server(400 * MS), None),
        ("500ms", 10, none(), client(1_400 * MS)),
        ("auto", 0, server(1_050 * MS), None),
        ("auto", 0, none(), client(1_050 * MS)),
    ];
    for (warmup, think_ms, stalls, pause) in table {
        let what = format!("{warmup} {think_ms} {stalls:?} {pause:?}");
        let plan = plan(&format!(
            "connections = 4\ndepth = 4\nthink = '{think_ms}ms'\ntime = '1s'\nwarmup = '{warmup}'\n\
             preload = false\ntimeout = '20s'"
        ));
        let server = CoreOptions { stalls, ..serving(50 * US) };
        let options = SimOptions { pause, ..SimOptions::of(server).latency(20 * US) };
        let outcome = simulate_plan(plan.clone(), options);
        let summary = Summary::build(outcome.record(plan));
        let broken = summary.status.check(CheckId::Broken).unwrap();
        assert_eq!(broken.status, CheckStatus::Ok, "{what}: {broken:?}");
        if think_ms == 0 {
            let [(slots, taken)] = slots_taken(&summary.record, &summary.window)[..] else {
                panic!("{what}")
            };
            assert!(slots == 16 && (taken / 16.0 - 1.0).abs() <= 1e-4, "{what}: {taken}");
        }
    }
}

/// T10: twice the capacity for ten seconds with unlimited depth: request k waits k·50 µs and is served in 100 µs.
#[test]
fn overload_shows_the_queue_it_builds() {
    let outcome = simulate(
        "rate = 20000\narrival = 'uniform'\nconnections = 1\ndepth = 200000\ntime = '10s'\npreload = false\n\
         keys = 1000\ntimeout = '60s'",
        SimOptions::of(serving(100_000)),
    );
    assert_eq!(outcome.samples.len(), 200_000);
    for (index, sample) in outcome.samples.iter().enumerate() {
        assert_eq!(sample.times.response_ns(), index as u64 * 50_000 + 100_000);
    }
    let inside =
        outcome.samples.iter().filter(|sample| sample.times.done_ns < outcome.end.data.times.end_ns).count();
    assert!(inside.abs_diff(100_000) <= 1, "half of the offered completes in the window, not {inside}");
    assert_eq!(outcome.quantile(0.5, |sample| sample.times.response_ns()) / MS, 5_000);
    assert_eq!(outcome.quantile(0.99, |sample| sample.times.response_ns()) / MS, 9_900);
}

/// T9: a client that stands still for 300 ms sees 3 000 late operations, and knows that the lateness is its own.
#[test]
fn client_pauses_count_as_client_lag() {
    let outcome = simulate(
        "rate = 10000\narrival = 'uniform'\nconnections = 16\ndepth = 512\ntime = '30s'\npreload = false\n\
         keys = 1000",
        SimOptions { pause: Some((10 * SECOND, 300 * MS)), ..SimOptions::default() },
    );
    let late = outcome.samples.iter().filter(|sample| sample.times.response_ns() > 0).count();
    assert!(late.abs_diff(3_000) <= 1, "{late}");
    check_stall(&outcome, 10 * SECOND, 300 * MS);
    for (p, expected_ms) in [(0.99, 0), (0.995, 150), (0.999, 270)] {
        let measured_ms = outcome.quantile(p, |sample| sample.times.response_ns()) / MS;
        assert!(measured_ms.abs_diff(expected_ms) <= 1, "p{}: {measured_ms} ms", p * 100.0);
        assert_eq!(outcome.quantile(p, |sample| sample.times.response_without_client_ns()), 0);
    }
}

/// The client stood still once, since then on the world's clock and for so long; where nothing was due it may have slept for
/// the first 20 ms of it.
fn check_stall(outcome: &Outcome, at_ns: u64, for_ns: u64) {
    let StallCounts { count, total_ns, longest_ns, longest_at_ns, .. } =
        outcome.end.data.usage.workers[0].stalls;
    assert_eq!((count, total_ns), (1, longest_ns), "{:?}", outcome.end.data.usage.workers[0].stalls);
    // It may have stood still in a poll that had just begun.
    let slept_ns = (for_ns + 2 * US).checked_sub(longest_ns).unwrap();
    assert!(slept_ns <= 20 * MS, "{longest_ns}");
    let began_ns = outcome.end.data.times.measure_ns + longest_at_ns.unwrap();
    assert!(began_ns.abs_diff(at_ns + slept_ns) <= MS, "{began_ns}");
}

/// In a closed loop nothing is late: but for one response time of each slot, no latency shows that the client stood still.
#[test]
fn client_pauses_show_in_closed_loops() {
    for (wait, think) in [("sleep", "0s"), ("hybrid", "0s"), ("hybrid", "5ms"), ("spin", "0s")] {
        let toml = format!(
            "connections = 2\ndepth = 2\nthink = '{think}'\ntime = '4s'\nwarmup = '100ms'\npreload = false"
        );
        let pause = Some((EPOCH_NS + 2 * SECOND, SECOND));
        let mut plan = plan(&toml);
        plan.wait = wait.parse().unwrap();
        let outcome = simulate_plan(
            plan,
            SimOptions { pause, look_cost_ns: US, ..SimOptions::default().latency(100 * US) },
        );
        check_stall(&outcome, EPOCH_NS + 2 * SECOND, SECOND);
    }
    // Before the window it is none of the window's, and over its edge as far as it lies inside.
    for (at_ns, for_ns, expected_ns) in [(200 * MS, 300 * MS, 0), (900 * MS, 300 * MS, 200 * MS)] {
        let toml = "connections = 2\ntime = '1s'\nwarmup = '990ms'\npreload = false";
        let options = SimOptions { pause: Some((EPOCH_NS + at_ns, for_ns)), ..SimOptions::default() };
        let outcome = simulate(toml, SimOptions { latency_ns: 100 * US, ..options });
        let stalls = outcome.end.data.usage.workers[0].stalls;
        assert_eq!(
            (stalls.count, stalls.longest_at_ns),
            (u64::from(expected_ns > 0), (expected_ns > 0).then_some(0))
        );
        assert!(stalls.longest_ns.abs_diff(expected_ns) <= MS, "{stalls:?}");
    }
}

/// Sends are dear, and one takes no more than fits into a connection's queue: the client can do 300 000 requests/s or so, and is
/// asked for a million. Who waits, waits for the client and for no server.
#[test]
fn slow_clients_are_late_without_waiting() {
    for connections in [1, 2] {
        let outcome = simulate(
            &format!(
                "rate = 1000000\narrival = 'uniform'\nrequests = 20000\nmix = 'set'\nvalue-size = 1000\n\
                 connections = {connections}\ndepth = 20000"
            ),
            SimOptions { send_cost_ns: 200_000, ..SimOptions::default() },
        );
        let send_lag_ns = outcome.quantile(0.99, |sample| sample.times.send_lag_ns());
        let connection_wait_ns = outcome.quantile(0.99, |sample| sample.times.connection_wait_ns());
        assert!(send_lag_ns > 5_000_000, "{send_lag_ns}");
        assert!(connection_wait_ns <= 600_000, "{connection_wait_ns} of {send_lag_ns}");
    }
}

/// However replies are cut on their way, at every byte at the shortest, the same samples come out: of all operations.
#[test]
fn cut_replies_yield_the_same_samples() {
    for (toml, is_full) in [
        ("mix = 'get=2,set=1,mget=1'\nmultiget = 4", true),
        (
            "mix = 'get,gets,mget,set,add,replace,append,prepend,cas,incr,decr,delete,touch'\non-miss = 'set'\n\
             multiget = 3",
            false,
        ),
        ("mix = 'get,gets,mget,set,cas,delete,incr'\nnoreply = true\nserver = ['a', 'b']", false),
    ] {
        let toml = format!(
            "rate = 5000\nconnections = 4\ndepth = 8\nrequests = 500\nkeys = 50\n\
             value-size = 'uniform:0,40'\n{toml}"
        );
        let run = |piece_bytes| {
            let others = vec![CoreOptions::default()];
            simulate(&toml, SimOptions { piece_bytes, others, ..SimOptions::default().latency(20 * US) })
        };
        let whole = run(usize::MAX);
        let op_counts = whole.op_counts(Phase::Measure);
        assert_eq!(op_counts.requests.offered(), 500);
        assert_eq!(
            (op_counts.requests.failed(), op_counts.requests.unsent, op_counts.keys.failed),
            (0, 0, 0)
        );
        assert_eq!(
            op_counts.keys.hit == op_counts.keys.requested,
            is_full,
            "everything was preloaded, and deleted with the second"
        );
        for piece_bytes in 1..20 {
            let cut = run(piece_bytes);
            assert_eq!(cut.samples, whole.samples, "pieces of {piece_bytes} bytes");
            assert_eq!(cut.op_counts(Phase::Measure), whole.op_counts(Phase::Measure));
        }
    }
}

/// The number of measured requests is exact, in both loops and whatever the depth.
/// A server that takes 100 us for each of a pipeline of four, and no network: a slot that is used again at once waits for the
/// three before it in the server, and one that waits for the whole pipeline waits as long in the client. Both waits count.
#[test]
fn whole_pipelines_are_refilled_together() {
    for (refill, sends) in [("eager", 400), ("batch", 100)] {
        let toml = format!(
            "refill = '{refill}'\nconnections = 1\ndepth = 4\nrequests = 400\nkeys = 20\nmix = 'get'\n\
             preload = false"
        );
        let server = serving(100 * US);
        let outcome = simulate(&toml, SimOptions::of(server));
        let mut sent: Vec<u64> = outcome.samples.iter().map(|sample| sample.times.sent_ns).collect();
        sent.dedup();
        // The first pipeline goes out together in any case.
        assert!(sent.len().abs_diff(sends) <= 3, "{refill}: {}", sent.len());
        for sample in &outcome.samples[4..] {
            assert_eq!(sample.times.response_ns(), 400 * US, "{refill}: {sample:?}");
        }
    }
}

#[test]
fn request_counts_are_exact() {
    for load in ["", "think = '1ms'", "rate = 3000", "rate = 3000\narrival = 'uniform'"] {
        for (connections, depth) in [(1, 1), (7, 3)] {
            let outcome = simulate(
                &format!(
                    "{load}\nconnections = {connections}\ndepth = {depth}\nrequests = 1234\nwarmup = '50ms'"
                ),
                SimOptions::default().latency(30_000),
            );
            let op_counts = outcome.op_counts(Phase::Measure);
            assert_eq!(
                (op_counts.requests.scheduled, op_counts.requests.completed()),
                (1234, 1234),
                "{load}"
            );
            assert!(outcome.op_counts(Phase::Warmup).requests.completed() > 0);
            assert_eq!(outcome.op_counts(Phase::Preload).requests.completed(), 100);
        }
    }
}

/// T7 in small: what the server does wrong every so often is found exactly that often.
#[test]
fn faults_are_counted_exactly() {
    let every = brunt_server::Every::new;
    let outcome = simulate(
        "connections = 1\ntime = '60s'\nrequests = 20000\nkeys = 500\nmix = 'get'\ntimeout = '50ms'",
        SimOptions::of(CoreOptions {
            script_after: 500,
            faults: Faults {
                drop_every: every(5_000),
                error_every: every(1_000),
                wrong_every: every(900),
                ..Faults::default()
            },
            ..serving(10_000)
        })
        .latency(5_000),
    );
    let requests = outcome.requests();
    let count = |class: brunt_plan::outcome::OutcomeClass| requests.outcome(class);
    use brunt_plan::outcome::OutcomeClass as Class;
    assert_eq!(requests.scheduled, 20_000);
    assert_eq!(count(Class::Timeout), 4, "every 5 000th of 20 000");
    assert_eq!(count(Class::Error), 16, "every 1 000th, but for those that were dropped");
    // Every 900th of 20 000 is 22 times, and request 18 000 was an error already.
    let expected_wrong =
        (1..=20_000).filter(|n| n % 900 == 0 && n % 1_000 != 0 && n % 5_000 != 0).count() as u64;
    assert_eq!(count(Class::Mismatch), expected_wrong);
    assert_eq!(count(Class::Hit), 20_000 - 4 - 16 - expected_wrong);
    // A time-out closes the connection; the run goes on over a new one.
    let faults: u64 = outcome.store.faults().rows().iter().map(|row| row.count).sum();
    assert_eq!(faults, 4);
    let timed_out = outcome.samples.iter().filter(|sample| sample.outcome.class == Class::Timeout);
    assert!(timed_out.clone().count() == 4);
    timed_out
        .for_each(|sample| assert_eq!(sample.times.service_ns(), 50 * MS, "recorded at the time-out value"));
}

/// A time-out takes what is behind it on its connection along: these operations are lost, and nothing is counted twice.
#[test]
fn a_timeout_in_a_pipeline_loses_what_is_behind_it() {
    for load in ["", "rate = 20000"] {
        let outcome = simulate(
            &format!("{load}\nconnections = 2\ndepth = 16\nrequests = 5000\ntimeout = '20ms'"),
            SimOptions::of(CoreOptions {
                script_after: 100,
                faults: Faults { drop_every: brunt_server::Every::new(700), ..Faults::default() },
                ..serving(5_000)
            })
            .latency(50_000),
        );
        let requests = outcome.requests();
        use brunt_plan::outcome::OutcomeClass as Class;
        assert_eq!(requests.scheduled, 5_000);
        assert!(requests.outcome(Class::Timeout) >= 5, "{requests:?}");
        assert!(requests.outcome(Class::Lost) > 0, "{requests:?}");
        assert_eq!(requests.unsent + requests.ended() + requests.in_flight, 5_000);
    }
}

/// After a loss, every slot of a closed loop comes back, however many bytes their requests are together.
#[test]
fn a_deep_pipeline_survives_a_loss() {
    let outcome = simulate(
        "connections = 1\ndepth = 1000\nrequests = 20000\ntimeout = '20ms'",
        SimOptions::of(CoreOptions {
            script_after: 100,
            faults: Faults { drop_every: brunt_server::Every::new(7_000), ..Faults::default() },
            ..serving(1_000)
        })
        .latency(50_000),
    );
    let requests = outcome.requests();
    assert_eq!((requests.scheduled, requests.unsent, requests.in_flight), (20_000, 0, 0));
    // The depth is what it was: the last requests wait behind 999 others.
    let last = outcome.samples.iter().rev().find(|sample| sample.outcome.class.is_completed()).unwrap();
    assert!(last.times.response_ns() >= 900_000, "{last:?}");
}

/// What cannot be sent before the drain is over is counted as unsent.
#[test]
fn requests_left_at_a_frozen_server_are_counted() {
    let outcome = simulate(
        "rate = 1000\narrival = 'uniform'\nconnections = 2\ntime = '1s'\nkeys = 10\npreload = false\n\
         drain = '100ms'",
        SimOptions::of(stalled(500 * MS + MS / 2, 100 * SECOND)),
    );
    let requests = outcome.requests();
    assert_eq!(
        (requests.scheduled, requests.completed(), requests.in_flight, requests.unsent),
        (1_000, 501, 2, 497)
    );
}

/// A server that never takes some keys ends the preload with their number, not the process.
#[test]
fn a_preload_that_is_refused_fails() {
    let outcome = simulate(
        "connections = 2\ntime = '1s'\nkeys = 5000\nvalue-size = 2000",
        SimOptions::of(CoreOptions { value_bytes_max: 1_000, ..CoreOptions::default() }),
    );
    let notice = outcome.notice;
    assert!(
        matches!(notice, Some(Notice::Failed(RunError::PreloadFailed { confirmed: 0, .. }))),
        "{notice:?}"
    );
    let text = outcome.end.data.counts.first_error.unwrap();
    assert!(text.bytes().starts_with(b"object too large"), "{text}");
}

/// A worker stores, or deletes, its share of the keys in the time that all of them take at their rate, each replica and each server for a key of its
/// own. What a stall of the server holds up is not caught up with.
#[test]
fn preloads_keep_their_rate() {
    let of_two = "server = ['a', 'b']\nplacement = 'ketama'\nconnections = 4";
    // (plan, stall of the server, the last store; in ms)
    for (toml, stalled_ms, expected_ms) in [
        ("keys = 400", 0, 1_995),
        ("keys = 400\nthreads = 2", 0, 1_990),
        ("keys = 400\nmix = 'get,incr'", 0, 3_995),
        ("keys = 400\nthreads = 2\nserver = ['a', 'b']\nplacement = 'by-thread'\nconnections = 4", 0, 3_990),
        (&format!("keys = 400\n{of_two}"), 0, 1_995),
        (&format!("keys = 400\n{of_two}\nreplicas = 2"), 0, 3_990),
        ("[[class]]\nkeys = 400\n[[class]]\nkeys = 4\nprefix = 'x'", 0, 2_015),
        // A key in 20 s: nothing is stuck.
        ("keys = 3\npreload-rate = 0.05", 0, 40_000),
        // Behind 42 keys, of which 32 are out, 358 are to come.
        ("keys = 400\nconnections = 1", 1_000, 2_830),
    ] {
        for data in [DataSets::ToStore, DataSets::ToDelete] {
            let threads = if toml.contains("threads") { "" } else { "threads = 1\n" };
            let rate = if toml.contains("preload-rate") { "" } else { "preload-rate = 200\n" };
            let plan =
                resolved(&format!("{threads}{rate}wait = 'sleep'\nrequests = 1\nwarmup = '0s'\n{toml}"));
            let server = stalled(EPOCH_NS + 50 * MS, stalled_ms * MS);
            let others = vec![CoreOptions::default()];
            let outcome = simulate_plan(plan, SimOptions { data, others, ..SimOptions::of(server) });
            let took_ms = (outcome.start_ns() - START_AHEAD_NS - EPOCH_NS) / MS;
            assert!((expected_ms - 1..expected_ms + 30).contains(&took_ms), "{data:?} {toml}: {took_ms}");
        }
    }
}

/// With a session per connection every connection has its own evenly spaced arrivals, and together they make the rate.
#[test]
fn sessions_of_one_connection_keep_their_own_schedules() {
    let mut plan = plan("rate = 1000\narrival = 'uniform'\nconnections = 40\ntime = '5s'\npreload = false");
    plan.classes[0].sessions = brunt_plan::plan::SessionScope::Connection;
    // A reply takes longer than the gap of the whole class, and less than that of one connection.
    let outcome = simulate_plan(plan, SimOptions::default().latency(5 * MS));
    assert_eq!(outcome.samples.len(), 5_000);
    for (index, sample) in outcome.samples.iter().enumerate() {
        assert_eq!(sample.times.intended_ns, outcome.start_ns() + index as u64 * MS);
        assert_eq!((sample.times.send_lag_ns(), sample.times.response_ns()), (0, 10 * MS));
    }
}

/// Two classes side by side keep their own schedules, connections and counts.
#[test]
fn classes_keep_apart() {
    let outcome = simulate(
        "time = '2s'\n[[class]]\nname = 'load'\nconnections = 4\ndepth = 2\nmix = 'set'\n[[class]]\n\
         name = 'probe'\nrate = 100\narrival = 'uniform'\nconnections = 1\nmix = 'get'",
        SimOptions::of(CoreOptions { script_after: 100, ..serving(50_000) }),
    );
    let of = |class| outcome.samples.iter().filter(move |sample| sample.class == class);
    assert_eq!(of(1).count(), 200);
    // A probe finds the eight requests of the other class before it, or part of the one in service less.
    of(1).for_each(|sample| {
        assert!((7 * 50_000..=9 * 50_000).contains(&sample.times.response_ns()), "{sample:?}")
    });
    assert!(of(0).count().abs_diff(40_000 - 200) <= 10, "{}", of(0).count());
}
