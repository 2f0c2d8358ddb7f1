//! A queue of known law whose client is stopped at random instants, through the production recorder, store and summary.
//!
//! Not the engine: one worker with as many connections as it needs, and nothing but stops delays it. While it is stopped it neither
//! sends nor reads; when it goes on it reads what has come and then sends what has become due. Times are as in
//! docs/measurement.md, "Six times", and the busy lag is kept by the rule of `brunt-engine/src/busy.rs`. Invariant: each request takes
//! the server as long as it would have without stops, so that its undisturbed response time is known, too.

use crate::batch::{BATCHES, batches};
use crate::histogram::RecordingHistogram;
use crate::measured_window::MeasuredWindow;
use crate::op_summary::OpSummary;
use crate::recorder::{Layout, RecorderSet, RowHandle};
use crate::request_counts::OpCounts;
use crate::sample::{Sample, Times};
use crate::stack_delay::StackDelay;
use crate::store::IntervalStore;
use brunt_plan::op::OpKind;
use brunt_plan::outcome::{Outcome, ReplyKind};
use brunt_plan::phase::Phase;
use brunt_plan::quantile::Quantile;
use std::collections::VecDeque;

/// The mean service time.
pub(super) const SERVICE_NS: f64 = 100_000.0;
/// How long a run is measured: a batch of it is a second, and holds one stop on average.
const WINDOW_NS: u64 = 30_000_000_000;
/// A window begins at no round time.
const MEASURE_NS: u64 = 1_234_567_890;
/// The queue begins empty, and long enough before the window to have forgotten that.
const WARM_UP_NS: f64 = 1_000.0 * SERVICE_NS;
/// The client is stopped for so much of the window, less at most one stop.
const STOPPED_SHARE: f64 = 0.003;
/// The shortest stop and by how much the longest is longer.
const STOP_NS: (f64, f64) = (1e6, 4e6);

/// How long the server takes for a request.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Service {
    Exponential,
    Fixed,
}

/// A span in which the client is stopped.
#[derive(Clone, Copy)]
struct Stop {
    begin_ns: u64,
    end_ns: u64,
}

/// The stops of a run, asked about instants that ascend.
struct Stops<'a>(&'a [Stop]);

impl Stops<'_> {
    /// The stop that an instant lies in.
    fn at(&mut self, at_ns: u64) -> Option<Stop> {
        while let Some((first, rest)) = self.0.split_first() {
            if at_ns < first.end_ns {
                return (first.begin_ns <= at_ns).then_some(*first);
            }
            self.0 = rest;
        }
        None
    }
}

/// A request that was sent.
struct Request {
    times: Times,
    /// What its response time would have been without stops.
    undisturbed_ns: u64,
}

/// Makes runs, and keeps what they found together.
pub(super) struct Queue {
    service: Service,
    utilisation: f64,
    layout: Layout,
    set: Box<RecorderSet>,
    account: RowHandle,
    /// The response times without stops, of all runs.
    pub undisturbed: RecordingHistogram,
    /// Requests whose response time without the client's own part (`R − client lag − min(g, S)`) was above the undisturbed one.
    pub above_undisturbed: u64,
    /// Requests of all runs.
    pub requests: u64,
}

impl Queue {
    pub(super) fn new(service: Service, utilisation: f64) -> Self {
        let ops = vec![vec![OpKind::Get.into()]];
        let layout = Layout { ops, servers: 1, ..Layout::default() };
        let set = RecorderSet::new(&layout);
        let account = set.row_handle(Phase::Measure, 0, OpKind::Get.into());
        let undisturbed = RecordingHistogram::new();
        Self { service, utilisation, layout, set, account, undisturbed, above_undisturbed: 0, requests: 0 }
    }

    /// A run, as a report has it.
    pub(super) fn run(&mut self, seed: u64) -> OpSummary {
        let mut random = Random(seed.wrapping_mul(0xd134_2543_de82_ef95) + 1);
        let stops = stops(&mut random);
        let (mut sending, mut reading) = (Stops(&stops), Stops(&stops));
        let (service, gap_ns) = (self.service, SERVICE_NS / self.utilisation);
        let mut client = Client::new(self);
        let mut at_ns = MEASURE_NS as f64 - WARM_UP_NS;
        // When the server is free again, as it is and as it were without stops (Lindley).
        let (mut free_ns, mut undisturbed_free_ns) = (0, 0);
        loop {
            at_ns += random.exponential(gap_ns);
            let service_ns = match service {
                Service::Exponential => random.exponential(SERVICE_NS),
                Service::Fixed => SERVICE_NS,
            } as u64;
            let intended_ns = at_ns as u64;
            if intended_ns >= MEASURE_NS + WINDOW_NS {
                return client.end();
            }
            let sent_ns = sending.at(intended_ns).map_or(intended_ns, |stop| stop.end_ns);
            free_ns = free_ns.max(sent_ns) + service_ns;
            undisturbed_free_ns = undisturbed_free_ns.max(intended_ns) + service_ns;
            // A client that goes on looks all the time: the last instant without the reply is that before it, or before the stop.
            let (polled_ns, done_ns) =
                reading.at(free_ns).map_or((free_ns, free_ns), |stop| (stop.begin_ns, stop.end_ns));
            let times = Times {
                intended_ns,
                picked_ns: sent_ns,
                sent_ns,
                polled_ns,
                first_byte_ns: done_ns,
                done_ns,
            };
            client.send(Request { times, undisturbed_ns: undisturbed_free_ns - intended_ns });
        }
    }
}

/// The client in the course of a run.
struct Client<'a> {
    queue: &'a mut Queue,
    store: IntervalStore,
    /// Until when intervals were taken.
    taken_ns: u64,
    outstanding: VecDeque<Request>,
    /// The largest client lag of any request since none was outstanding.
    busy_lag_ns: u64,
}

impl<'a> Client<'a> {
    fn new(queue: &'a mut Queue) -> Self {
        let mut store = IntervalStore::new(&queue.layout);
        store.align(MEASURE_NS);
        queue.set.set_window(MEASURE_NS, MEASURE_NS + WINDOW_NS);
        Self { queue, store, taken_ns: MEASURE_NS, outstanding: VecDeque::new(), busy_lag_ns: 0 }
    }

    /// Sends a request, when all that has come by then is read.
    fn send(&mut self, request: Request) {
        self.read(request.times.sent_ns);
        if self.outstanding.is_empty() {
            self.busy_lag_ns = 0;
        }
        self.busy_lag_ns = self.busy_lag_ns.max(request.times.client_lag_ns());
        self.outstanding.push_back(request);
    }

    /// Reads the replies that have come up to this instant; one server answers in the order of asking.
    fn read(&mut self, until_ns: u64) {
        while let Some(request) = self.outstanding.pop_front_if(|first| first.times.done_ns <= until_ns) {
            // A whole batch at once: of which slice within it a request is makes no difference.
            let next_ns = self.taken_ns + WINDOW_NS / BATCHES;
            if request.times.done_ns >= next_ns && next_ns < MEASURE_NS + WINDOW_NS {
                self.take(next_ns);
            }
            if request.times.intended_ns >= MEASURE_NS {
                self.record(&request);
            }
        }
    }

    fn record(&mut self, Request { times, undisturbed_ns }: &Request) {
        let least_ns = times.least_response_ns(self.busy_lag_ns);
        let is_within = (least_ns..=times.response_ns()).contains(undisturbed_ns);
        assert!(is_within, "{undisturbed_ns} ns without stops: {times:?}, busy lag {} ns", self.busy_lag_ns);
        let Queue { set, account, undisturbed, above_undisturbed, requests, .. } = &mut *self.queue;
        undisturbed.record(*undisturbed_ns);
        *above_undisturbed += u64::from(times.response_without_client_ns() > *undisturbed_ns);
        *requests += 1;
        let outcome = Outcome::of_reply(OpKind::Get, ReplyKind::Value);
        let busy_lag_ns = Some(self.busy_lag_ns);
        let sample = Sample { op: OpKind::Get.into(), class: 0, outcome, busy_lag_ns, times: *times };
        set.scheduled_many(*account, 1);
        set.sent_many(*account, 1, 1, times.sent_ns);
        set.record_many(*account, &sample, 1, 1, 1);
    }

    fn take(&mut self, until_ns: u64) {
        self.store.push(&self.queue.set.take_interval(0, self.taken_ns, until_ns));
        self.taken_ns = until_ns;
    }

    /// Reads what is still to come. Yields everything measured.
    fn end(mut self) -> OpSummary {
        self.read(u64::MAX);
        let end_ns = MEASURE_NS + WINDOW_NS;
        self.take(end_ns);
        let window = MeasuredWindow { start_ns: 0, measure_ns: MEASURE_NS, end_ns, drained_ns: end_ns };
        let batches = batches(self.store.timeline(), &window, MEASURE_NS, |_, _| true);
        let mut counts = OpCounts::default();
        self.store.books().entries().for_each(|entry| counts.merge(&entry.counts));
        let (_, _, totals) = self.store.rows().next().expect("the layout has a row");
        let delay = StackDelay::default();
        OpSummary::of(counts, totals.clone(), &window, &batches, &Quantile::PRINTED, 0.0, delay)
    }
}

/// Stops of random lengths at random instants of the window, as many as fit into the share of it.
fn stops(random: &mut Random) -> Vec<Stop> {
    let mut left_ns = STOPPED_SHARE * WINDOW_NS as f64;
    let lengths = std::iter::from_fn(|| {
        let length_ns = STOP_NS.0 + STOP_NS.1 * random.unit();
        left_ns -= length_ns;
        (left_ns >= 0.0).then_some(length_ns as u64)
    });
    let lengths: Vec<u64> = lengths.collect();
    let going_ns = (WINDOW_NS - lengths.iter().sum::<u64>()) as f64;
    // When each begins on a clock that stands still meanwhile, so that none begins within another.
    let mut begins: Vec<u64> = lengths.iter().map(|_| (random.unit() * going_ns) as u64).collect();
    begins.sort_unstable();
    let mut stopped_ns = 0;
    let stops = begins.into_iter().zip(lengths).map(|(begin_ns, length_ns)| {
        let begin_ns = MEASURE_NS + begin_ns + stopped_ns;
        stopped_ns += length_ns;
        Stop { begin_ns, end_ns: begin_ns + length_ns }
    });
    stops.collect()
}

/// SplitMix64.
struct Random(u64);

impl Random {
    /// In (0, 1].
    fn unit(&mut self) -> f64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (((mixed ^ (mixed >> 31)) >> 11) + 1) as f64 / (1u64 << 53) as f64
    }

    fn exponential(&mut self, mean: f64) -> f64 {
        -self.unit().ln() * mean
    }
}
