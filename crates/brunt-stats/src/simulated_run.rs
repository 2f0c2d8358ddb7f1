//! Runs of known queues in virtual time, through the production recorder, slices and accounting: for tests of statistics.
//!
//! No queue waits: departures follow from Lindley's recursion, `done_i = max(due_i, done_{i−1}) + service_i`. Invariant: a generator of
//! its own makes the numbers, so that no other part of the program decides what a test sees.

use crate::recorder::{Layout, RecorderSet};
use crate::sample::{Sample, Times};
use crate::store::IntervalStore;
use crate::window::RunTimes;
use brunt_plan::op::OpKind;
use brunt_plan::outcome::{Outcome, ReplyKind};
use brunt_plan::phase::Phase;
use brunt_plan::plan::Plan;
use brunt_plan::resolve::{Host, resolve};
use brunt_plan::spec::PlanSpec;

pub(crate) const MS: u64 = 1_000_000;
pub(crate) const S: u64 = 1_000 * MS;
/// When the window of every run begins, after a second of warm-up: at no round time.
pub(crate) const MEASURE_NS: u64 = 7_057 * MS;
const SLICE_NS: u64 = 100 * MS;

/// SplitMix64.
pub(crate) struct Random(pub u64);

impl Random {
    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// From 0, exclusive, to 1.
    pub(crate) fn unit(&mut self) -> f64 {
        ((self.next() >> 11) as f64 + 0.5) / (1u64 << 53) as f64
    }

    /// A normal deviate by Box and Muller.
    pub(crate) fn normal(&mut self) -> f64 {
        (-2.0 * self.unit().ln()).sqrt() * (std::f64::consts::TAU * self.unit()).cos()
    }

    pub(crate) fn exponential(&mut self, mean: f64) -> f64 {
        -self.unit().ln() * mean
    }
}

/// A get: when it is due and when it is answered, in nanoseconds from the beginning of the window, and whether its key is found.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Request {
    pub due_ns: i64,
    pub done_ns: i64,
    pub is_hit: bool,
}

/// One server, first come first served, and Poisson arrivals.
pub(crate) struct Queue<'a> {
    /// Requests per second.
    pub rate: f64,
    /// Mean of the exponential service time in seconds, at this time of the window in seconds; below 0 in the warm-up.
    pub service: &'a dyn Fn(f64) -> f64,
    /// The share of gets whose key is found, likewise.
    pub hit_ratio: &'a dyn Fn(f64) -> f64,
}

impl Queue<'_> {
    /// Its requests from a second before a window of `seconds` to its end.
    pub(crate) fn requests(&self, seconds: f64, seed: u64) -> Vec<Request> {
        let mut random = Random(seed);
        let (mut due, mut done) = (-1.0_f64, f64::MIN);
        let next = || {
            due += random.exponential(1.0 / self.rate);
            done = done.max(due) + random.exponential((self.service)(due));
            let is_hit = random.unit() < (self.hit_ratio)(due);
            let [due_ns, done_ns] = [due, done].map(|seconds| (seconds * 1e9) as i64);
            (due < seconds).then_some(Request { due_ns, done_ns, is_hit })
        };
        std::iter::from_fn(next).collect()
    }
}

/// An M/M/1 queue at this load.
pub(crate) fn markovian(rate: f64, load: f64, seconds: f64, seed: u64) -> Vec<Request> {
    Queue { rate, service: &|_| load / rate, hit_ratio: &|_| 0.9 }.requests(seconds, seed)
}

pub(crate) fn plan(toml: &str) -> Plan {
    let spec = PlanSpec::from_toml(toml).unwrap();
    resolve(&spec, &Host::of(vec![0, 1], 5)).unwrap()
}

/// Times of an op that was picked when it was sent, and whose reply came at once.
pub(crate) fn times(intended_ns: u64, sent_ns: u64, done_ns: u64) -> Times {
    let (picked_ns, polled_ns, first_byte_ns) = (sent_ns, done_ns, done_ns);
    Times { intended_ns, picked_ns, sent_ns, polled_ns, first_byte_ns, done_ns }
}

/// An op of the first class with its answer.
pub(crate) fn answered(kind: OpKind, reply: ReplyKind, times: Times) -> Sample {
    Sample { op: kind.into(), class: 0, outcome: Outcome::of_reply(kind, reply), busy_lag_ns: None, times }
}

/// What one worker records of a run in which the first class has these requests, answered in the order in which they are due. No more than
/// `room` of them are counted as due and not answered: the next one is counted when there is room.
pub(crate) fn record(
    plan: &Plan,
    requests: &[Request],
    seconds: f64,
    room: usize,
) -> (IntervalStore, RunTimes) {
    let layout = Layout::of(plan);
    let (start_ns, end_ns) = (MEASURE_NS - S, MEASURE_NS + (seconds * 1e9) as u64);
    let window = RunTimes { start_ns, measure_ns: MEASURE_NS, end_ns, drained_ns: end_ns, ..RunTimes::NONE };
    let (mut set, mut store) = (RecorderSet::new(&layout), IntervalStore::new(&layout));
    set.set_window(MEASURE_NS, end_ns);
    store.align(MEASURE_NS);
    store.set_schedule(start_ns..end_ns);
    let counted = |index: usize| {
        let free_ns = index.checked_sub(room).map_or(i64::MIN, |index| requests[index].done_ns);
        (requests[index].due_ns.max(free_ns), false, index)
    };
    let mut events: Vec<(i64, bool, usize)> = (0..requests.len()).map(counted).collect();
    events.extend(requests.iter().enumerate().map(|(index, request)| (request.done_ns, true, index)));
    events.sort_unstable();
    let mut taken_ns = start_ns;
    for (at_ns, is_answer, index) in events {
        while at_ns >= (taken_ns + SLICE_NS) as i64 - MEASURE_NS as i64 {
            store.push(&set.take_interval(0, taken_ns, taken_ns + SLICE_NS));
            taken_ns += SLICE_NS;
        }
        let Request { due_ns, is_hit, .. } = requests[index];
        let phase = if due_ns < 0 { Phase::Warmup } else { Phase::Measure };
        let row = set.row_handle(phase, 0, OpKind::Get.into());
        if !is_answer {
            set.scheduled_many(row, 1);
            continue;
        }
        let [due_ns, done_ns] = [due_ns, at_ns].map(|at_ns| MEASURE_NS.saturating_add_signed(at_ns));
        let reply = if is_hit { ReplyKind::Value } else { ReplyKind::NotFound };
        let sample = answered(OpKind::Get, reply, times(due_ns, due_ns, done_ns));
        set.sent_many(row, 1, 1, due_ns);
        set.record_many(row, &sample, 1, u32::from(is_hit), 1);
    }
    store.push(&set.take_interval(0, taken_ns, taken_ns + SLICE_NS));
    (store, window)
}
