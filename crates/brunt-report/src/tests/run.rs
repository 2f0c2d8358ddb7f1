//! Made-up runs, recorded the way a worker records, with the raw samples kept beside the summary.

pub(super) mod ordinary;

use brunt_plan::op::{ClassId, KeyRef, Op, OpId, OpKind, Version};
use brunt_plan::outcome::{Outcome, OutcomeClass, ReplyKind};
use brunt_plan::phase::Phase;
use brunt_plan::plan::{MeterKind, Plan};
use brunt_plan::resolve::{Host, resolve};
use brunt_plan::spec::PlanSpec;
use brunt_plan::trace_record::{FirstUnreadable, LineCounts, TraceRecord};
use brunt_stats::calibration::{Calibration, CalibrationMatch, HostIdentity, LatencyFloor, Lookup, Shape};
use brunt_stats::capacity::Capacity;
use brunt_stats::check::Judgement;
use brunt_stats::connection::{ConnectionEvent, FaultKind, FirstError, FirstMalformed};
use brunt_stats::interval::{CpuTime, Interval, WorkerTime};
use brunt_stats::occupancy::OccupancyTotal;
use brunt_stats::recorder::{Layout, RecorderSet};
use brunt_stats::run_record::{ClusterRecord, Environment, PreloadResult, RunData, RunRecord, SlotCounts};
use brunt_stats::sample::{Sample, Times};
use brunt_stats::server::{OutageKind, OutageKinds, OutageSpan};
use brunt_stats::server_stats::{ServerRecord, Snapshot};
use brunt_stats::store::IntervalStore;
use brunt_stats::summary::Summary;
use brunt_stats::usage::{
    AgentRecord, ClientUsage, ClockEvidence, Colocation, HostEvidence, StallCounts, WorkerUsage,
};
use brunt_stats::verification::{FaultExample, ValueFault};
use brunt_stats::window::RunTimes;
use brunt_stats::worker_counts::{
    DatagramCounts, RecacheCounts, RedirectionCounts, StampCounts, StampLoss, WorkerCounts,
};

pub(super) const MS: u64 = 1_000_000;
pub(super) const S: u64 = 1_000 * MS;

/// A run with every measured op that ended, and those of the warm-up.
pub(super) struct Run {
    pub summary: Summary,
    pub measured: Vec<Sample>,
    pub warm_up: Vec<Sample>,
    /// As the worker handed them over.
    pub intervals: Vec<Interval>,
}

pub(super) fn host() -> Host {
    Host::of(vec![0, 1], 1)
}

fn plan(text: &str) -> Plan {
    resolve(&PlanSpec::from_toml(text).unwrap(), &host()).unwrap()
}

fn op(class: ClassId, id: impl Into<OpId>) -> Op {
    let id = id.into();
    let command = id.command().map_or(0, |index| index as u16 + 1);
    Op { class, command, ..Op::of(id.kind(), KeyRef::Id(0)) }
}

/// Six times of an op that was picked, sent, looked for and done so long after it was intended.
pub(super) fn times(intended_ns: u64, picked: u64, sent: u64, polled: u64, done: u64) -> Times {
    Times {
        intended_ns,
        picked_ns: intended_ns + picked,
        sent_ns: intended_ns + sent,
        polled_ns: intended_ns + polled,
        first_byte_ns: intended_ns + done,
        done_ns: intended_ns + done,
    }
}

/// One worker that records. The clock of its run is at 100 s when the schedule begins.
struct Scene {
    plan: Plan,
    window: RunTimes,
    set: Box<RecorderSet>,
    store: IntervalStore,
    intervals: Vec<Interval>,
    measured: Vec<Sample>,
    warm_up: Vec<Sample>,
    interval_start_ns: u64,
    /// The server that the next ops go to.
    server: u16,
    stalls: StallCounts,
}

impl Scene {
    fn new(text: &str, warmup_ns: u64, measure_ns: u64, drain_ns: u64) -> Self {
        let plan = plan(text);
        let layout = Layout::of(&plan);
        let start_ns = 100 * S;
        let end_ns = start_ns + warmup_ns + measure_ns;
        let window = RunTimes {
            start_ns,
            measure_ns: start_ns + warmup_ns,
            end_ns,
            drained_ns: end_ns + drain_ns,
            prepare_ns: 0,
            epoch_us: Some(1_795_132_799_000_000),
        };
        let mut set = RecorderSet::new(&layout);
        set.set_window(window.measure_ns, end_ns);
        let mut store = IntervalStore::new(&layout).with_slices(plan.interval.map(|width| width.0));
        store.align(window.measure_ns);
        Self {
            plan,
            window,
            set,
            store,
            intervals: Vec::new(),
            measured: Vec::new(),
            warm_up: Vec::new(),
            interval_start_ns: start_ns,
            server: 0,
            stalls: StallCounts::default(),
        }
    }

    fn phase_at(&self, intended_ns: u64) -> Phase {
        match intended_ns {
            early if early < self.window.start_ns => Phase::Preload,
            early if early < self.window.measure_ns => Phase::Warmup,
            inside if inside < self.window.end_ns => Phase::Measure,
            _ => Phase::Drain,
        }
    }

    fn preload(&mut self, keys: u64) {
        for _ in 0..keys {
            self.replied(OpKind::Set, ReplyKind::Stored, times(99 * S, 0, 10, 20, 30));
        }
    }

    /// An op of the first class with its reply.
    fn replied(&mut self, id: impl Into<OpId>, reply: ReplyKind, times: Times) {
        let id = id.into();
        let (keys, bytes) = match id.kind() {
            OpKind::Set => ([0, 0], [250, 8]),
            OpKind::Raw => ([0, 0], [80, 20]),
            OpKind::Mget => ([10, 9], [36, 245]),
            _ => ([1, u32::from(reply == ReplyKind::Value)], [36, 245]),
        };
        self.ended(0, id, Outcome::of_reply(id.kind(), reply), times, keys, bytes);
    }

    /// A get that was lost with its connection.
    fn lost(&mut self, times: Times) {
        self.ended(0, OpKind::Get, Outcome::without_reply(OutcomeClass::Lost), times, [1, 0], [36, 0]);
    }

    /// An op that was scheduled, sent and ended; `keys` are asked for and found, `bytes` sent and received.
    fn ended(
        &mut self,
        class: ClassId,
        id: impl Into<OpId>,
        outcome: Outcome,
        times: Times,
        keys: [u32; 2],
        bytes: [u64; 2],
    ) {
        let id = id.into();
        self.take_intervals(times.done_ns);
        self.set.scheduled(self.phase_at(times.intended_ns), &op(class, id));
        // No request was later than another of its busy period.
        let busy_lag_ns = self.plan.has_open_loop().then_some(0);
        self.sent_and_ended(Sample { op: id, class, outcome, busy_lag_ns, times }, keys, bytes);
    }

    fn sent_and_ended(&mut self, sample: Sample, keys: [u32; 2], bytes: [u64; 2]) {
        let Sample { op: id, class, outcome, times, .. } = sample;
        let phase = self.phase_at(times.intended_ns);
        self.set.sent(phase, &op(class, id), 1, times.sent_ns);
        if outcome.class.is_completed() {
            self.set.server(self.server).answered += 1;
            let account = self.set.row_handle(phase, class, id);
            self.set.responded(self.server, account, times.response_ns(), 1);
        } else if outcome.class != OutcomeClass::Unacknowledged {
            self.set.server(self.server).failed += 1;
        }
        self.set.record(phase, &sample, keys[0], keys[1]);
        self.set.transmitted(self.phase_at(times.sent_ns), bytes[0]);
        self.set.received(self.phase_at(times.done_ns), bytes[1]);
        self.set.meter(MeterKind::SendCost, 2_000 + times.intended_ns / MS % 100);
        self.set.meter(MeterKind::RequestSize, bytes[0]);
        match phase {
            Phase::Warmup => self.warm_up.push(sample),
            Phase::Measure => self.measured.push(sample),
            _ => {}
        }
    }

    /// Ends intervals of 100 ms until the one that this instant lies in.
    fn take_intervals(&mut self, now_ns: u64) {
        while now_ns >= self.interval_start_ns + 100 * MS {
            let end_ns = self.interval_start_ns + 100 * MS;
            self.take_interval(end_ns);
        }
    }

    fn take_interval(&mut self, end_ns: u64) {
        let mut interval = self.set.take_interval(0, self.interval_start_ns, end_ns);
        let (length_ns, number) = (end_ns - self.interval_start_ns, self.intervals.len() as u64);
        interval.worker_time = Some(WorkerTime {
            busy_ns: length_ns * (40 + number * 7 % 13) / 100,
            run_delay_ns: Some(length_ns / 2_000 * (number % 5)),
        });
        let stolen_ns = if number % 11 == 0 { length_ns / 100 } else { 0 };
        interval.cpu_time = Some(CpuTime { total_ns: 2 * length_ns, stolen_ns });
        self.store.push(&interval);
        self.intervals.push(interval);
        self.interval_start_ns = end_ns;
    }

    /// A set that follows a miss.
    fn followed_up(&mut self, intended_ns: u64) {
        let set = Sample {
            op: OpKind::Set.into(),
            class: 0,
            outcome: Outcome::of_reply(OpKind::Set, ReplyKind::Stored),
            busy_lag_ns: self.plan.has_open_loop().then_some(0),
            times: times(intended_ns, 100, 2_000, 60_000, 61_000),
        };
        self.take_intervals(set.times.done_ns);
        self.set.followup(self.phase_at(intended_ns), &op(0, OpKind::Set));
        self.sent_and_ended(set, [0, 0], [250, 8]);
    }

    /// A connection that is established, or is not.
    fn connection(&mut self, phase: Phase, is_established: bool, connect_ns: u64) {
        self.set.connection(phase, ConnectionEvent::Begun);
        if is_established {
            self.set.connection(phase, ConnectionEvent::Established);
            self.set.meter(MeterKind::ConnectTime, connect_ns);
        } else {
            self.set.connection(phase, ConnectionEvent::Failed);
        }
    }

    /// Short troubles with the first server, each longer than the one before.
    fn stutter(&mut self, times: u64) {
        for index in 0..times {
            let start_ns = 101 * S + 600 * MS + index * 20 * MS;
            let kinds = OutageKinds::NONE.with(OutageKind::Error);
            let end_ns = start_ns + (index + 1) * MS / 2;
            self.set.outage(OutageSpan { server: 0, start_ns, end_ns, failed: 1, kinds });
        }
    }

    fn finish(mut self, change: impl FnOnce(&mut RunRecord)) -> Run {
        let end_ns = self.window.drained_ns.max(self.interval_start_ns);
        self.take_interval(end_ns);
        let facts = [("kernel", "6.1.0"), ("processor", "Made-up 9000"), ("allowed_cpus", "0-1")];
        let samples: Vec<Sample> = self.measured.iter().take(3).copied().collect();
        let run = RunData {
            intervals: self.store,
            times: self.window,
            counts: WorkerCounts {
                samples_kept: samples.len() as u64,
                occupancy: OccupancyTotal { integral: 903_400_000, sum: 903_400_000 },
                ..WorkerCounts::default()
            },
            samples,
            usage: ClientUsage {
                cpu_user_ns: 4_000_000,
                cpu_system_ns: 28_000_000,
                syscalls: 20_100,
                io: "epoll".to_owned(),
                io_reason: None,
                wait: "hybrid".to_owned(),
                counts_wake_ups: true,
                timestamps_reason: None,
                workers: vec![WorkerUsage {
                    worker: 0,
                    wall_ns: self.window.duration_ns(),
                    busy_ns: 30_000_000,
                    cpu_ns: 32_000_000,
                    run_delay_ns: Some(1_500_000),
                    involuntary_switches: 12,
                    voluntary_switches: 345,
                    colocation: Colocation { looks: 90, shared: 41 },
                    stalls: self.stalls,
                    backlog: Default::default(),
                }],
            },
            host: HostEvidence {
                wall_ns: self.window.duration_ns(),
                cpus: 2,
                wake_up_ns: 52_000,
                stolen_ns: Some(10_000_000),
                busy_ns: Some(1_200_000_000),
                throttled_ns: Some(0),
                clock: ClockEvidence { source: Some("tsc".to_owned()), ..ClockEvidence::default() },
                retransmits: 0,
                listen_drops: Some(0),
            },
            ..RunData::default()
        };
        let mut record = RunRecord {
            run,
            environment: Environment {
                brunt_version: "0.1.0".to_owned(),
                host: "load1".to_owned(),
                facts: facts.map(|(name, fact)| (name.to_owned(), fact.to_owned())).into(),
            },
            server: "127.0.0.1:11211".to_owned(),
            values_checked: false,
            ..RunRecord::of(self.plan)
        };
        change(&mut record);
        Run {
            summary: Summary::build(record),
            measured: self.measured,
            warm_up: self.warm_up,
            intervals: self.intervals,
        }
    }
}

/// What a server says at these instants: (instant, counts by name).
pub(super) fn server_record(snapshots: &[(u64, String)]) -> ServerRecord {
    let mut record = ServerRecord::default();
    for (at_ns, text) in snapshots {
        let words: Vec<&str> = text.split(' ').collect();
        let rows = words.chunks(2).map(|pair| (pair[0], pair[1]));
        record.push(Snapshot::new(at_ns - 200_000, *at_ns, rows));
    }
    record.is_complete = true;
    record
}

/// A server that keeps up and a client in good health: 1000 requests a second for 10 s.
pub(super) fn open_loop() -> Run {
    let text = "rate = '1k/s'\narrival = 'uniform'\ntime = '10s'\nwarmup = '1s'\nkeys = 1000\nseed = 42\n";
    let mut scene = Scene::new(text, S, 10 * S, 150_000);
    scene.preload(1_000);
    for index in 0..11_000u64 {
        let intended_ns = 100 * S + index * MS;
        let done = 83_000 + index * 7_919 % 1_000 * 100 + if index % 500 == 77 { 900_000 } else { 0 };
        let times = times(intended_ns, 200, 3_000, done - 1_500, done);
        match index % 20 {
            3 | 13 => scene.replied(OpKind::Set, ReplyKind::Stored, times),
            5 => scene.replied(OpKind::Get, ReplyKind::NotFound, times),
            _ => scene.replied(OpKind::Get, ReplyKind::Value, times),
        }
    }
    for index in 0..500 {
        let wire_ns = 70_000 + index * 200;
        let spans = [2_000, wire_ns, 8_000, wire_ns + 8_000];
        MeterKind::OF_TIMESTAMPS.iter().zip(spans).for_each(|(kind, ns)| scene.set.meter(*kind, ns));
    }
    scene.finish(|record| {
        record.run.counts.stamps = StampCounts { requested: 500, matched: 500, ..StampCounts::default() };
        record.preload = Some(PreloadResult {
            wanted: 1_000,
            confirmed: 1_000,
            is_earlier: false,
            duration_ns: 41_200_000,
        });
        record.server = "reference server, started for this run at 127.0.0.1:40001".to_owned();
        // Nothing at first; then 900 gets, 50 of them misses, and 100 sets a second.
        let said = |second: u64| {
            format!(
                "cmd_get {} get_hits {} get_misses {} cmd_set {} rusage_user 0.{:03} rusage_system 0.{:03} evictions 0 \
                 curr_items {} bytes {} limit_maxbytes 67108864 pid 4711 uptime {second} version 1.6.18 threads 4",
                900 * second.saturating_sub(1),
                850 * second.saturating_sub(1),
                50 * second.saturating_sub(1),
                if second == 0 { 0 } else { 900 + 100 * second },
                2 * second,
                4 * second,
                if second == 0 { 0 } else { 1_000 },
                if second == 0 { 0 } else { 310_000 },
            )
        };
        let mut server = server_record(&(0..=12).map(|second| (99 * S + second * S + MS, said(second))).collect::<Vec<_>>());
        server.prepared = server.snapshots().get(1).cloned();
        record.run.server_records = vec![server];
        record.calibration = calibrated(between(3_120.0, 3_240.0), false, &[]);
    })
}

/// A calibration that fits, whose search ended like this.
fn calibrated(headroom: Capacity, is_limited: bool, differences: &[&str]) -> Lookup {
    let calibration = Calibration {
        made_at_s: 1_795_132_800,
        brunt_version: "0.1.0".to_owned(),
        host: HostIdentity::default(),
        shape: Shape::default(),
        loopback: LatencyFloor { p50_ns: 21_000, p99_ns: 38_000 },
        headroom,
        is_limited,
    };
    let differences = differences.iter().map(|difference| (*difference).to_owned()).collect();
    Lookup::Fit(Box::new(CalibrationMatch { calibration, differences }))
}

fn between(passed: f64, failed: f64) -> Capacity {
    Capacity::Between { passed, failed, is_confirmed: true }
}

/// Two classes in closed loop: one with a deep pipeline, one of multi-gets that think.
pub(super) fn closed_loop() -> Run {
    let text = "time = '2s'\nwarmup = 0\nseed = 7\nkeys = 5000\npreload = false\nmeter = ['request-size', \
                'connect-time']\n[[class]]\nname = 'bulk'\nconnections = 2\ndepth = 32\nmix = 'get=3,set=1'\n\
                [[class]]\nname = 'probe'\nmix = 'mget'\nmultiget = 4\nthink = '9ms'\nconnections = 1\n";
    let mut scene = Scene::new(text, 0, 2 * S, 900_000);
    scene.set.meter(MeterKind::ConnectTime, 61_000);
    scene.set.meter(MeterKind::ConnectTime, 83_000);
    for index in 0..40_000u64 {
        // 3.2 ms on average: 40 000 of them fill 64 slots for 2 s.
        let done = 1_706_000 + index * 7_919 % 997 * 3_000;
        let times = times(100 * S + index * 50_000, 12_000, 300_000, done - 40_000, done);
        match index % 4 {
            1 => scene.replied(OpKind::Set, ReplyKind::Stored, times),
            _ => scene.replied(OpKind::Get, ReplyKind::Value, times),
        }
    }
    for index in 0..190u64 {
        let times = times(100 * S + index * 10 * MS + 9 * MS, 100, 4_000, 900_000, 950_000);
        let hit = Outcome::of_reply(OpKind::Mget, ReplyKind::Value);
        scene.ended(1, OpKind::Mget, hit, times, [4, 3], [130, 730]);
    }
    scene.finish(|_| {})
}

/// A server that answers 700 of 1000 requests a second, when it does not reset the connection instead.
pub(super) fn overload() -> Run {
    let text = "server = ['cache-1.example:11300']\nrate = '1000.5/s'\ntime = '4s'\nwarmup = '500ms'\n\
                timestamps = 'kernel'\ntimeout = '1s'\nmix = 'get'\npreload = false\npopularity = 'zipf'\nkey-size = 'uniform:20,40'\n\
                seed = 18446744073709551615\nprefix = 'app:'\n";
    let mut scene = Scene::new(text, 500 * MS, 4 * S, S);
    scene.stalls = StallCounts {
        count: 3,
        total_ns: 1_040 * MS,
        longest_ns: S,
        longest_at_ns: Some(2_310 * MS),
        longest_run_delay_ns: Some(0),
    };
    for index in 0..4_300u64 {
        let done = 200_000 + index * 400_000;
        let times = times(100 * S + index * MS, 1_000, done / 2, done - 5_000, done);
        let (outcome, hits) = match index % 100 {
            11 => (Outcome::of_reply(OpKind::Get, ReplyKind::ServerError), 0),
            22 => (Outcome::without_reply(OutcomeClass::Timeout), 0),
            33 | 34 => (Outcome::without_reply(OutcomeClass::Lost), 0),
            55 if index > 3_000 => (Outcome { class: OutcomeClass::Mismatch, reply: ReplyKind::Value }, 1),
            _ => (Outcome::of_reply(OpKind::Get, ReplyKind::Value), 1),
        };
        scene.ended(0, OpKind::Get, outcome, times, [1, hits], [36, 245]);
    }
    let (get, last_ns) = (op(0, OpKind::Get), scene.window.end_ns - 1);
    for index in 0..200 {
        scene.set.scheduled(Phase::Measure, &get);
        if index < 3 {
            scene.set.sent(Phase::Measure, &get, 1, last_ns);
            scene.set.in_flight(Phase::Measure, &get, last_ns, last_ns);
        } else {
            let end_ns = scene.window.end_ns + 10_000_000;
            let mut times = Times { intended_ns: last_ns, picked_ns: last_ns, ..Times::default() };
            (times.sent_ns, times.polled_ns, times.first_byte_ns, times.done_ns) =
                (end_ns, end_ns, end_ns, end_ns);
            scene.set.unsent(Phase::Measure, &get, &times, None);
        }
    }
    let mut stamps = StampCounts { requested: 1_100, matched: 1_064, ..StampCounts::default() };
    for (index, loss) in StampLoss::ALL.into_iter().enumerate() {
        (0..=index).for_each(|_| stamps.discard(loss));
    }
    for index in 0..1_064 {
        let (wire_ns, in_ns) = (200_000 + index * 900, 8_000 + index * index % 977 * 20);
        let spans = [5_000 + index, wire_ns, in_ns, wire_ns + in_ns];
        MeterKind::OF_TIMESTAMPS.iter().zip(spans).for_each(|(kind, ns)| scene.set.meter(*kind, ns));
    }
    scene.set.fault(Phase::Connect, FaultKind::Refused, 99 * S);
    scene.set.fault(Phase::Measure, FaultKind::Reset, 102 * S);
    scene.set.fault(Phase::Measure, FaultKind::Other(113), 103 * S);
    scene.finish(|record| {
        record.run.interrupted = true;
        record.server = "cache-1.example:11300".to_owned();
        let differences = ["with 64 connections × depth 1", "by brunt 0.0.9"];
        record.calibration = calibrated(Capacity::Below { failed: 1_200.0 }, false, &differences);
        let errors = &mut record.run.counts.error_replies;
        [("WRONGTYPE", 7), ("OOM", 1_040)]
            .into_iter()
            .for_each(|(word, times)| errors.count(word.into(), times));
        record.run.counts.pushes = 3;
        record.run.counts.unmatched_replies = 12;
        record.run.counts.recache = RecacheCounts { won: 2, stale: 5, taken: 3 };
        record.run.counts.first_error = Some(FirstError::new(b"SERVER_ERROR out of memory \x1b[2J"));
        let bytes = b"HTTP/1.1 400 Bad Request\r\nContent-Type: text/plain\r\n\r\n\x00\xff";
        record.run.counts.first_malformed =
            Some(FirstMalformed::new(101 * S, 0, "no reply begins like this", bytes));
        record.run.counts.samples_overflow = 4_000;
        record.run.counts.stamps = stamps;
        let mut silent = server_record(&[]);
        (silent.is_complete, silent.trouble) = (false, Some("it answers \"ERROR \u{1b}[2J\"".to_owned()));
        record.run.server_records = vec![silent];
    })
}

/// A get every 20 ms for so many seconds, behind 2.5 s of warm-up.
pub(super) fn long(seconds: u64, options: &str) -> Run {
    let rate = if options.contains("rate-profile") { "" } else { "rate = '50/s'\n" };
    let text = format!(
        "{rate}arrival = 'uniform'\ntime = '{seconds}s'\nwarmup = '2500ms'\npreload = false\nmix = 'get'\nseed = 4\n{options}"
    );
    let mut scene = Scene::new(&text, 2_500 * MS, seconds * S, 0);
    for index in 0..(seconds * 1_000 + 2_500) / 20 {
        let times = times(100 * S + index * 20 * MS, 200, 3_000, 80_000, 83_000);
        scene.replied(OpKind::Get, ReplyKind::Value, times);
    }
    scene.finish(|_| ())
}

/// Two servers, connections of 100 calls each, a set after every miss; the second server is gone for 2 s, the first
/// stutters, and at the end the second is gone again.
pub(super) fn churn() -> Run {
    let text = "server = ['cache-1.example', '10.0.0.2:11212']\nrate = '1k/s'\narrival = 'uniform'\ntime = '4s'\n\
                warmup = '1500ms'\nmix = 'get'\non-miss = 'set'\npreload = false\nconnections = 4\nseed = 11\n\
                connect-rate = '50/s'\ncalls-per-connection = 100\ntimeout = '1s'\n";
    let mut scene = Scene::new(text, 1_500 * MS, 4 * S, 20 * MS);
    let gone = 102 * S + 513 * MS..104 * S + 520 * MS;
    let gone_again_ns = 105 * S + 490 * MS;
    for _ in 0..4 {
        scene.connection(Phase::Connect, true, 60_000);
    }
    for index in 0..5_500u64 {
        let times = times(100 * S + index * MS, 200, 3_000, 80_000, 83_000);
        scene.server = (index % 2) as u16;
        let is_lost =
            scene.server == 1 && (gone.contains(&times.intended_ns) || times.intended_ns > gone_again_ns);
        if is_lost {
            scene.lost(times);
            scene.connection(scene.phase_at(times.done_ns), false, 0);
        } else if index % 20 == 6 {
            let missed = Outcome::of_reply(OpKind::Get, ReplyKind::NotFound);
            scene.ended(0, OpKind::Get, missed, times, [1, 0], [36, 5]);
            scene.followed_up(times.done_ns);
        } else {
            scene.replied(OpKind::Get, ReplyKind::Value, times);
        }
        if index % 100 == 99 {
            let phase = scene.phase_at(times.done_ns);
            scene.set.connection(phase, ConnectionEvent::Retired);
            scene.connection(phase, true, 60_000 + index * 10);
        }
    }
    scene.stutter(22);
    let kinds = OutageKinds::NONE.with(OutageKind::Refused).with(OutageKind::Reset);
    let span = |start_ns, end_ns, failed, kinds| OutageSpan { server: 1, start_ns, end_ns, failed, kinds };
    scene.set.outage(span(gone.start, gone.end, 1_004, kinds));
    scene.set.outage(span(gone_again_ns, u64::MAX, 5, OutageKinds::NONE.with(OutageKind::Stalled)));
    (0..45).for_each(|_| scene.set.outage(span(0, 1, 0, OutageKinds::NONE)));
    scene.set.connection(Phase::Drain, ConnectionEvent::Lost);
    scene.set.connection(Phase::Drain, ConnectionEvent::Begun);
    scene.set.fault(Phase::Measure, FaultKind::NoPort, 103 * S);
    scene.finish(|record| {
        record.server = "cache-1.example:11211, 10.0.0.2:11212".to_owned();
        record.calibration = calibrated(between(1_200.0, 1_300.0), true, &[]);
        record.run.counts.values_foreign = 4_321;
        record.run.counts.connections_most = 17;
        let at_ns = record.run.times.measure_ns + 70_000_000;
        let version = |version: Version| FaultExample { version: Some(version), ..FaultExample::of(9, at_ns) };
        for (fault, example) in [
            (ValueFault::WrongKey, FaultExample { other_key: Some(9), ..FaultExample::of(7, at_ns) }),
            (ValueFault::Torn, FaultExample::of(8, at_ns)),
            (ValueFault::Torn, version(Version(3))),
            (ValueFault::Stale, FaultExample { wanted: Some(Version::of(2, 17)), ..version(Version::of(2, 9)) }),
            (ValueFault::Missing, FaultExample::of(11, at_ns)),
        ] {
            record.run.counts.verification.note(fault, example);
        }
        let said = |gets: u64, misses: u64, items: u64, pid: u64| {
            format!(
                "cmd_get {gets} get_hits {} get_misses {misses} cmd_set {items} rusage_user {} rusage_system 0 \
                 evictions {} curr_items {items} bytes {} pid {pid}",
                gets - misses,
                gets as f64 / 1e5,
                gets / 100,
                items * 300,
            )
        };
        let first = server_record(&[
            (99 * S, said(0, 0, 0, 1)),
            (101 * S + 500 * MS, said(750, 75, 75, 1)),
            (105 * S + 500 * MS, said(2_750, 275, 275, 1)),
        ]);
        let second = server_record(&[(99 * S, said(0, 0, 0, 2)), (105 * S + 500 * MS, said(500, 0, 0, 3))]);
        record.run.server_records = vec![first, second];
        record.run.cluster = Some(clustered());
        record.run.counts.redirections = redirected();
        record.run.traces = vec![replayed()];
    })
}

/// What a run over two nodes may have seen while slots went to a third one.
fn clustered() -> ClusterRecord {
    ClusterRecord {
        slots: SlotCounts { of_servers: vec![8_192, 8_000], elsewhere: 91, unserved: 101 },
        is_final: false,
        refreshes: 3,
    }
}

/// And what these nodes sent elsewhere.
fn redirected() -> RedirectionCounts {
    RedirectionCounts {
        operations: 1_530,
        moved: 1_200,
        ask: 331,
        try_again: 12,
        hops_max: 5,
        too_many: 1,
        unknown: 4,
        unknown_node: Some("10.0.0.3:11212".to_owned()),
    }
}

/// Requests over UDP, of which some are lost, and the server knows which.
pub(super) fn datagrams() -> Run {
    let text = "transport = 'udp'\nrate = '1k/s'\narrival = 'uniform'\ntime = '2s'\nwarmup = 0\npreload = false\nseed = 5\n\
                keys = 100\nvalue-size = 40\nmix = 'get=9,set=1'\nverify = '100%'\ntimeout = '50ms'\n";
    let mut scene = Scene::new(text, 0, 2 * S, 50 * MS);
    for index in 0..2_000u64 {
        let times = times(100 * S + index * MS, 200, 3_000, 60_000, 63_000);
        let late =
            Times { first_byte_ns: times.sent_ns + 50 * MS, done_ns: times.sent_ns + 50 * MS, ..times };
        let lost = Outcome::without_reply(OutcomeClass::Timeout);
        match index % 100 {
            3 if index < 1_000 => scene.ended(0, OpKind::Get, lost, late, [1, 0], [44, 0]),
            13 if index < 300 => scene.ended(0, OpKind::Set, lost, late, [0, 0], [120, 0]),
            _ if index % 10 == 3 => {
                let stored = Outcome::of_reply(OpKind::Set, ReplyKind::Stored);
                scene.ended(0, OpKind::Set, stored, times, [0, 0], [120, 16]);
            }
            left => {
                let (reply, hits) = if left == 7 { (ReplyKind::NotFound, 0) } else { (ReplyKind::Value, 1) };
                let outcome = Outcome::of_reply(OpKind::Get, reply);
                scene.ended(0, OpKind::Get, outcome, times, [1, hits], [44, 98]);
            }
        }
    }
    scene.finish(|record| {
        let (late, duplicate, unmatched, disordered, malformed) = (4, 1_203, 2, 7, 1);
        let counts =
            DatagramCounts { late, duplicate, unmatched, disordered, malformed, ..Default::default() };
        record.run.counts.datagrams = counts;
        record.values_checked = true;
        let verification = &mut record.run.counts.verification;
        (verification.checked, verification.misses) = (1_780, 20);
        let said = |gets: u64, sets: u64| {
            let misses = gets.min(20);
            format!("cmd_get {gets} get_hits {} get_misses {misses} cmd_set {sets} pid 1", gets - misses)
        };
        record.run.server_records = vec![server_record(&[(99 * S, said(0, 0)), (104 * S, said(1_806, 188))])];
    })
}

/// What may become of a file of which not everything is a request.
fn replayed() -> TraceRecord {
    TraceRecord {
        class: "main".to_owned(),
        file: "cluster\u{7}52.zst".to_owned(),
        lines: LineCounts {
            read: 2_500_000,
            passed_over: 5,
            unsupported: 2,
            unreadable: 12,
            first_unreadable: Some(FirstUnreadable {
                line: 1,
                text: "timestamp,key".to_owned(),
                reason: "fewer columns than the layout has".to_owned(),
            }),
        },
        records: 2_499_981,
        cut: 3,
        substituted: 41,
        sampled_out: 500,
        replaced_by_fills: 6,
        hashed_keys: 1,
        unsized_retrievals: 7,
        raised_ttls: 8,
        clamped_times: 9,
        overfull_seconds: 1,
        not_stored: 0,
        is_whole: false,
        error: Some("the frame ends early".to_owned()),
    }
}

/// Sets that ask for no reply.
pub(super) fn noreply() -> Run {
    let text = "rate = '1k/s'\narrival = 'uniform'\ntime = '2s'\nwarmup = 0\npreload = false\nmix = 'set'\nnoreply = true\n\
                seed = 9\n";
    let mut scene = Scene::new(text, 0, 2 * S, 0);
    for index in 0..2_000u64 {
        let times = times(100 * S + index * MS, 200, 3_000, 3_000, 3_000);
        let sent = Outcome::without_reply(OutcomeClass::Unacknowledged);
        scene.ended(0, OpKind::Set, sent, times, [0, 0], [258, 0]);
    }
    scene.finish(|record| {
        record.calibration = Lookup::Unfit("calibrated for 2 threads, this run has 1".to_owned());
    })
}

/// A server that is slow for the first 1.2 s of the window, and loses a request now and then.
pub(super) fn cold_start() -> Run {
    let text = "rate = '1k/s'\narrival = 'uniform'\ntime = '10s'\nwarmup = '1s'\npreload = false\nkeys = 1000\nmix = 'get'\n\
                seed = 21\n";
    let mut scene = Scene::new(text, S, 10 * S, 150_000);
    for index in 0..11_000u64 {
        let slow = if (1_000..2_200).contains(&index) { 3 } else { 1 };
        let done = (83_000 + index * 7_919 % 1_000 * 50) * slow;
        let times = times(100 * S + index * MS, 200, 3_000, done - 1_500, done);
        match index % 400 {
            100 => scene.lost(times),
            _ => scene.replied(OpKind::Get, ReplyKind::Value, times),
        }
    }
    scene.finish(|_| {})
}

/// T9: 1000 requests a second for 8 s, and the client stood still for 300 ms in the middle. The hypervisor had a twentieth of its
/// processors.
pub(super) fn stopped(judgement: Judgement) -> Run {
    let text = "rate = '1k/s'\narrival = 'uniform'\ntime = '8s'\nwarmup = '1s'\npreload = false\nkeys = 1000\nmix = 'get'\nseed = 9\n";
    let mut scene = Scene::new(text, S, 8 * S, 150_000);
    for index in 0..9_000u64 {
        // Those due in the stop are picked when it ends.
        let late_ns = if (5_000..5_300).contains(&index) { (5_300 - index) * MS } else { 200 };
        let done = late_ns + 83_000 + index * 7_919 % 1_000 * 50;
        let times = times(100 * S + index * MS, late_ns, late_ns + 2_800, done - 1_500, done);
        scene.replied(OpKind::Get, ReplyKind::Value, times);
    }
    scene.finish(|record| {
        record.run.host.stolen_ns = Some(800_000_000);
        record.judgement = judgement;
    })
}

/// What one of two hosts had of a run of two seconds, all of whose responses take so much longer than 100 us; the user told it this start.
pub(super) fn part(rank: u32, slower_ns: u64, start_unix_us: Option<u64>) -> Run {
    let text = "rate = '1k/s'\narrival = 'uniform'\ntime = '2s'\nwarmup = 0\npreload = false\nkeys = 1000\nmix = 'get'\nseed = 9\nthreads = 2\n";
    let mut scene = Scene::new(text, 0, 2 * S, 150_000);
    for index in (0..2_000u64).filter(|index| index % 2 == u64::from(rank)) {
        let done = 100_000 + slower_ns + index * 25;
        let times = times(100 * S + index * MS, 200, 3_000, done - 1_500, done);
        scene.replied(OpKind::Get, ReplyKind::Value, times);
    }
    scene.finish(|record| {
        record.agents = vec![AgentRecord {
            name: format!("rank {rank}"),
            host: format!("load{rank}"),
            first_worker: rank,
            workers: 1,
            weight: 1,
            clock_error_ns: 20 * MS,
            start_unix_us,
            ..AgentRecord::default()
        }];
    })
}

/// Nothing was ever answered, because nothing was ever sent.
pub(super) fn empty() -> Run {
    let text = "rate = '1k/s'\ntime = '1s'\nwarmup = 0\npreload = false\nmix = 'get'\nseed = 3\n";
    Scene::new(text, 0, 0, 0).finish(|record| {
        record.run.host = HostEvidence::default();
        record.run.usage = ClientUsage {
            io: "epoll".to_owned(),
            wait: "sleep".to_owned(),
            workers: vec![WorkerUsage::default()],
            ..ClientUsage::default()
        };
        record.environment.facts.clear();
    })
}
