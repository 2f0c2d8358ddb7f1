//! Made-up runs, recorded the way a worker records, with the raw samples kept beside the summary.

use brunt_plan::op::{ClassId, Expectation, KeyRef, Op, OpKind, ValueRef};
use brunt_plan::outcome::{Outcome, OutcomeClass, ReplyKind};
use brunt_plan::phase::Phase;
use brunt_plan::plan::{MeterKind, Plan};
use brunt_plan::resolve::{Host, resolve};
use brunt_plan::spec::PlanSpec;
use brunt_stats::fault::{FaultKind, FirstGarbage};
use brunt_stats::recorder::{Layout, RecorderSet};
use brunt_stats::sample::{Sample, Times};
use brunt_stats::store::IntervalStore;
use brunt_stats::summary::{Environment, MeasuredWindow, PreloadResult, Summary, SummaryInput};
use brunt_stats::usage::{ClientUsage, WorkerUsage};

pub(super) const MS: u64 = 1_000_000;
pub(super) const S: u64 = 1_000 * MS;

/// A run with every measured op that ended.
pub(super) struct Run {
    pub summary: Summary,
    pub measured: Vec<Sample>,
}

pub(super) fn host() -> Host {
    Host { allowed_cpus: vec![0, 1], random_seed: 1 }
}

fn plan(text: &str) -> Plan {
    resolve(&PlanSpec::from_toml(text).unwrap(), &host()).unwrap()
}

fn op(class: ClassId, kind: OpKind) -> Op {
    Op {
        kind,
        class,
        session: 0,
        key: KeyRef::Id(0),
        count: 1,
        value: ValueRef::None,
        ttl_s: 0,
        operand: 0,
        expectation: Expectation::Any,
        template: 0,
    }
}

/// Six times of an op that was picked, sent, looked for and done so long after it was intended.
fn times(intended_ns: u64, picked: u64, sent: u64, polled: u64, done: u64) -> Times {
    Times {
        intended_ns,
        picked_ns: intended_ns + picked,
        sent_ns: intended_ns + sent,
        polled_ns: intended_ns + polled,
        first_byte_ns: intended_ns + done,
        done_ns: intended_ns + done,
    }
}

/// One worker that records. The clock of its run stands at 100 s when the schedule begins.
struct Scene {
    plan: Plan,
    window: MeasuredWindow,
    set: Box<RecorderSet>,
    store: IntervalStore,
    measured: Vec<Sample>,
    interval_start_ns: u64,
}

impl Scene {
    fn new(text: &str, warmup_ns: u64, measure_ns: u64, drain_ns: u64) -> Self {
        let plan = plan(text);
        let layout = Layout::of(&plan);
        let start_ns = 100 * S;
        let end_ns = start_ns + warmup_ns + measure_ns;
        let window = MeasuredWindow {
            start_ns,
            measure_ns: start_ns + warmup_ns,
            end_ns,
            drained_ns: end_ns + drain_ns,
        };
        let mut set = RecorderSet::new(&layout);
        set.set_window_end(end_ns);
        let mut store = IntervalStore::new(&layout);
        store.align(window.measure_ns);
        Self { plan, window, set, store, measured: Vec::new(), interval_start_ns: start_ns }
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
            let stored = Outcome::of_reply(OpKind::Set, ReplyKind::Stored);
            self.ended(0, OpKind::Set, stored, times(99 * S, 0, 10, 20, 30), [0, 0], [250, 8]);
        }
    }

    /// An op that was sent and ended; `keys` are asked for and found, `bytes` sent and received.
    fn ended(
        &mut self,
        class: ClassId,
        kind: OpKind,
        outcome: Outcome,
        times: Times,
        keys: [u32; 2],
        bytes: [u64; 2],
    ) {
        self.take_intervals(times.done_ns);
        let phase = self.phase_at(times.intended_ns);
        let sample = Sample { op: kind, class, outcome, times };
        self.set.scheduled(phase, &op(class, kind));
        self.set.sent(phase, &op(class, kind), 1);
        self.set.record(phase, &sample, keys[0], keys[1]);
        self.set.transmitted(self.phase_at(times.sent_ns), bytes[0]);
        self.set.received(self.phase_at(times.done_ns), bytes[1]);
        self.set.meter(MeterKind::SendCost, 2_000 + times.intended_ns / MS % 100);
        self.set.meter(MeterKind::RequestSize, bytes[0]);
        if phase == Phase::Measure {
            self.measured.push(sample);
        }
    }

    /// Ends intervals of 100 ms until the one that this instant lies in.
    fn take_intervals(&mut self, now_ns: u64) {
        while now_ns >= self.interval_start_ns + 100 * MS {
            let end_ns = self.interval_start_ns + 100 * MS;
            self.store.push(&self.set.take_interval(0, self.interval_start_ns, end_ns));
            self.interval_start_ns = end_ns;
        }
    }

    fn finish(mut self, change: impl FnOnce(&mut SummaryInput)) -> Run {
        let end_ns = self.window.drained_ns.max(self.interval_start_ns);
        self.store.push(&self.set.take_interval(0, self.interval_start_ns, end_ns));
        let facts = [("kernel", "6.1.0"), ("processor", "Made-up 9000"), ("allowed_cpus", "2")];
        let mut input = SummaryInput {
            plan: self.plan,
            store: self.store,
            window: self.window,
            samples: self.measured.iter().take(3).copied().collect(),
            samples_overflow: 0,
            first_garbage: None,
            first_error: None,
            usage: ClientUsage {
                cpu_user_ns: 4_000_000,
                cpu_system_ns: 28_000_000,
                syscalls: 20_100,
                io: "epoll".to_owned(),
                wait: "hybrid".to_owned(),
                threads: 1,
                workers: vec![WorkerUsage { worker: 0, busy_ns: 30_000_000, cpu_ns: 32_000_000 }],
            },
            environment: Environment {
                brunt_version: "0.1.0".to_owned(),
                facts: facts.map(|(name, fact)| (name.to_owned(), fact.to_owned())).into(),
            },
            values_checked: false,
            interrupted: false,
            preload: None,
            server: "127.0.0.1:11211".to_owned(),
        };
        change(&mut input);
        Run { summary: Summary::build(input), measured: self.measured }
    }
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
        if index % 10 == 3 {
            let stored = Outcome::of_reply(OpKind::Set, ReplyKind::Stored);
            scene.ended(0, OpKind::Set, stored, times, [0, 0], [250, 8]);
        } else {
            let (reply, hits) =
                if index % 20 == 5 { (ReplyKind::NotFound, 0) } else { (ReplyKind::Value, 1) };
            let outcome = Outcome::of_reply(OpKind::Get, reply);
            scene.ended(0, OpKind::Get, outcome, times, [1, hits], [36, 245]);
        }
    }
    scene.finish(|input| {
        input.preload = Some(PreloadResult { wanted: 1_000, confirmed: 1_000, duration_ns: 41_200_000 });
        input.server = "reference server, started for this run at 127.0.0.1:40001".to_owned();
    })
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
        let done = 1_500_000 + index * 7_919 % 997 * 3_000;
        let times = times(100 * S + index * 50_000, 12_000, 300_000, done - 40_000, done);
        if index % 4 == 1 {
            let stored = Outcome::of_reply(OpKind::Set, ReplyKind::Stored);
            scene.ended(0, OpKind::Set, stored, times, [0, 0], [250, 8]);
        } else {
            let hit = Outcome::of_reply(OpKind::Get, ReplyKind::Value);
            scene.ended(0, OpKind::Get, hit, times, [1, 1], [36, 245]);
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
                timeout = '1s'\nmix = 'get'\npreload = false\npopularity = 'zipf'\nkey-size = 'uniform:20,40'\n\
                seed = 18446744073709551615\nprefix = 'app:'\n";
    let mut scene = Scene::new(text, 500 * MS, 4 * S, S);
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
            scene.set.sent(Phase::Measure, &get, 1);
            scene.set.in_flight(Phase::Measure, &get, last_ns);
        } else {
            scene.set.unsent(Phase::Measure, &get);
        }
    }
    scene.set.fault(Phase::Connect, FaultKind::Refused, 99 * S);
    scene.set.fault(Phase::Measure, FaultKind::Reset, 102 * S);
    scene.set.fault(Phase::Measure, FaultKind::Other(113), 103 * S);
    scene.finish(|input| {
        input.interrupted = true;
        input.server = "cache-1.example:11300".to_owned();
        input.first_error = Some("SERVER_ERROR out of memory \u{1b}[2J".to_owned());
        let bytes = b"HTTP/1.1 400 Bad Request\r\nContent-Type: text/plain\r\n\r\n\x00\xff";
        input.first_garbage = Some(FirstGarbage::new(101 * S, 0, "no reply begins like this", bytes));
        input.samples_overflow = 4_000;
    })
}

/// Nothing was ever answered, because nothing was ever sent.
pub(super) fn empty() -> Run {
    let text = "rate = '1k/s'\ntime = '1s'\nwarmup = 0\npreload = false\nmix = 'get'\nseed = 3\n";
    Scene::new(text, 0, 0, 0).finish(|input| {
        input.usage = ClientUsage {
            io: "epoll".to_owned(),
            wait: "sleep".to_owned(),
            threads: 1,
            ..ClientUsage::default()
        };
        input.environment.facts.clear();
    })
}
