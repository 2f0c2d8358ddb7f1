//! Whole runs made by hand: events on a clock of numbers, recorded, cut into intervals, merged and judged.
//!
//! Not the engine: nothing here waits or sends. What is expected follows from the events by arithmetic.

use super::*;
use crate::assertion::Reason;
use crate::bottleneck::Bottleneck;
use crate::bound::Decision;
use crate::check::{Check, CheckId, CheckStatus, Judgement};
use crate::connection::ConnectionEvent;
use crate::interval::Interval;
use crate::recorder::{Layout, RecorderSet};
use crate::request_counts::RequestCounts;
use crate::run_record::RunData;
use crate::sample::Sample;
use crate::server::{OutageKind, OutageKinds, OutageSpan};
use crate::server_stats::{ServerRecord, Snapshot};
use crate::simulated_run::times;
use crate::status::Status;
use crate::window::RunTimes;
use brunt_plan::op::{ClassId, KeyRef, Op, OpKind};
use brunt_plan::outcome::{Outcome, OutcomeClass, ReplyKind};
use brunt_plan::plan::Plan;
use brunt_plan::quantile::Quantile;
use brunt_plan::resolve::{Host, resolve};
use brunt_plan::spec::PlanSpec;

pub(crate) const MS: u64 = 1_000_000;
/// The measured window of every run here, at the end of one second of warm-up that begins at no round time.
pub(crate) const WINDOW: RunTimes = RunTimes {
    start_ns: 57 * MS,
    measure_ns: 1_057 * MS,
    end_ns: 3_057 * MS,
    drained_ns: 3_500 * MS,
    ..RunTimes::NONE
};

pub(crate) fn plan(toml: &str) -> Plan {
    let spec = PlanSpec::from_toml(toml).unwrap();
    resolve(&spec, &Host::of(vec![0, 1, 2], 5)).unwrap()
}

/// One op of a hand-made run.
#[derive(Clone, Copy)]
pub(crate) struct Event {
    pub(crate) kind: OpKind,
    pub(crate) class: ClassId,
    pub(crate) intended_ns: u64,
    /// Picked so much later.
    pub(crate) late_ns: u64,
    pub(crate) service_ns: u64,
    pub(crate) class_of_outcome: OutcomeClass,
}

impl Event {
    fn get(intended_ns: u64, service_ns: u64) -> Event {
        let class_of_outcome = OutcomeClass::Hit;
        Event { kind: OpKind::Get, class: 0, intended_ns, late_ns: 0, service_ns, class_of_outcome }
    }

    fn sample(self) -> Sample {
        let picked_ns = self.intended_ns + self.late_ns;
        let done_ns = picked_ns + self.service_ns;
        let reply = match self.class_of_outcome {
            OutcomeClass::Hit => ReplyKind::Value,
            OutcomeClass::Done => ReplyKind::Stored,
            OutcomeClass::Error => ReplyKind::ServerError,
            _ => ReplyKind::None,
        };
        Sample {
            op: self.kind.into(),
            class: self.class,
            outcome: Outcome { class: self.class_of_outcome, reply },
            busy_lag_ns: None,
            times: times(self.intended_ns, picked_ns, done_ns),
        }
    }

    fn op(self) -> Op {
        Op { class: self.class, ..Op::of(self.kind, KeyRef::Id(0)) }
    }

    fn phase(self) -> Phase {
        if self.intended_ns < WINDOW.measure_ns { Phase::Warmup } else { Phase::Measure }
    }
}

/// Gets, evenly spaced from the beginning of the warm-up to the end of the window.
pub(crate) fn gets(gap_ns: u64, service_ns: impl Fn(u64) -> u64) -> Vec<Event> {
    let times = (WINDOW.start_ns..WINDOW.end_ns).step_by(gap_ns as usize);
    let event = |(index, intended_ns)| Event::get(intended_ns, service_ns(index as u64));
    times.enumerate().map(event).collect()
}

/// Records the events on `workers` workers, each of which hands over an interval about every 100 ms.
pub(crate) fn intervals(layout: &Layout, events: &[Event], workers: u32) -> Vec<Interval> {
    intervals_within(&WINDOW, layout, events, workers)
}

fn intervals_within(window: &RunTimes, layout: &Layout, events: &[Event], workers: u32) -> Vec<Interval> {
    let mut taken = Vec::new();
    for worker in 0..workers {
        let mut set = RecorderSet::new(layout);
        set.set_window(window.measure_ns, window.end_ns);
        let mut own: Vec<&Event> = events.iter().skip(worker as usize).step_by(workers as usize).collect();
        own.sort_by_key(|event| event.sample().times.done_ns);
        let (mut start_ns, mut turn) = (window.start_ns, 0);
        // Up to 3 ms late, as a worker is that looks at the time once per turn of its loop.
        let mut take_until = |set: &mut RecorderSet, now_ns: u64| {
            while now_ns >= start_ns + 100 * MS {
                turn += 1;
                let end_ns = window.start_ns + turn * 100 * MS + (turn * 7 + u64::from(worker)) % 4 * MS;
                taken.push(set.take_interval(worker, start_ns, end_ns));
                start_ns = end_ns;
            }
        };
        for event in own {
            let sample = event.sample();
            take_until(&mut set, sample.times.done_ns);
            set.scheduled(event.phase(), &event.op());
            set.sent(event.phase(), &event.op(), 1, sample.times.sent_ns);
            set.record(event.phase(), &sample, 1, u32::from(event.class_of_outcome == OutcomeClass::Hit));
        }
        take_until(&mut set, window.drained_ns);
        taken.push(set.take_interval(worker, start_ns, window.drained_ns.max(start_ns)));
    }
    taken
}

pub(crate) fn summary(plan: &Plan, intervals: &[Interval]) -> Summary {
    Summary::build(record(plan, intervals))
}

pub(crate) fn record(plan: &Plan, intervals: &[Interval]) -> RunRecord {
    let RunTimes { start_ns, measure_ns, end_ns, drained_ns, .. } = WINDOW;
    let mut store = IntervalStore::new(&Layout::of(plan));
    store.align(measure_ns);
    intervals.iter().for_each(|interval| store.push(interval));
    RunRecord {
        run: RunData {
            intervals: store,
            times: RunTimes { start_ns, measure_ns, end_ns, drained_ns, prepare_ns: 0, epoch_us: None },
            ..RunData::default()
        },
        ..RunRecord::of(plan.clone())
    }
}

pub(crate) fn run(toml: &str, events: &[Event]) -> Summary {
    let plan = plan(toml);
    summary(&plan, &intervals(&Layout::of(&plan), events, 1))
}

impl Summary {
    /// Every row of the report.
    fn rows_mut(&mut self) -> Vec<&mut OpSummary> {
        let mut rows = vec![&mut self.total];
        rows.extend(self.ops.iter_mut().map(|row| &mut row.summary));
        for class in &mut self.classes {
            rows.push(&mut class.total);
            rows.extend(class.ops.iter_mut().map(|row| &mut row.summary));
        }
        rows
    }
}

fn check(summary: &Summary, id: CheckId) -> &Check {
    summary.status.check(id).unwrap()
}

fn status(summary: &Summary, id: CheckId) -> CheckStatus {
    check(summary, id).status
}

#[track_caller]
fn assert_check(summary: &Summary, id: CheckId, expected: CheckStatus, row: &str) {
    assert_eq!(status(summary, id), expected, "{row}: {:?}", check(summary, id));
}

#[test]
fn a_steady_run() {
    // 10 000/s for 1 + 2 s; 100 µs, every hundredth 1 ms.
    let events = gets(100_000, |index| if index % 100 == 99 { MS } else { 100_000 });
    let summary = run("rate = 10000\nmix = 'get'", &events);
    let quoted = "OK: p50 to p99.9 may be quoted; p99.99 needs 8.00 s more";
    assert_eq!(summary.status.headline(), quoted, "{:#?}", summary.status);
    let total = &summary.total;
    assert_eq!(
        (total.requests.scheduled, total.requests.completed(), total.requests.failed()),
        (20_000, 20_000, 0)
    );
    assert_eq!((total.keys.requested, total.keys.hit), (20_000, 20_000));
    // The last of the slow ones is done after the window, and the last one of the warm-up in it.
    assert_eq!((total.rate.offered, total.rate.sent, total.rate.completed), (10_000.0, 10_000.0, 10_000.0));
    assert_eq!((total.in_window.in_flight_at_start, total.in_window.in_flight_at_end), (1, 1));
    assert_eq!(summary.phase(Phase::Warmup).unwrap().counts.requests.completed(), 10_000);
    let response = &total.latency.response.summary;
    assert_eq!((response.count, response.min_ns, response.max_ns), (20_000, Some(100_000), Some(MS)));
    assert_eq!(response.mean_ns, Some(109_000.0));
    let given = response.percentile_ns(Quantile::P99).unwrap();
    assert!((100_000..=100_097).contains(&given), "{given}");
    assert_eq!(response.percentile_ns(Quantile::P999), Some(MS));
    assert_eq!(response.percentile_ns(Quantile::P9999), None);
    assert_eq!(total.client_error.len(), 5);
    assert!(total.client_error.iter().all(|error| error.error_ns == 0));
    assert_eq!(summary.ops.len(), 1);
    assert_eq!(summary.ops[0].summary, summary.total);
    assert_eq!(summary.classes[0].total, summary.total);
}

#[test]
fn a_server_of_half_the_speed_saturates() {
    // 20 000/s into a server of 10 000/s: request k of the run waits for all before it and is done at (k + 1) · 100 µs.
    let times = (0..60_000u64).map(|index| (WINDOW.start_ns + index * 50_000, 50_000 * index + 100_000));
    let events: Vec<Event> =
        times.map(|(intended_ns, service_ns)| Event::get(intended_ns, service_ns)).collect();
    let summary = run("rate = 20000\nmix = 'get'", &events);
    assert_eq!(status(&summary, CheckId::Load), CheckStatus::Invalid);
    // The first 20 000 requests belong to the warm-up; number 9 999 is done as the window begins, number 29 999 as it closes.
    assert_eq!(summary.total.rate.offered, 20_000.0);
    assert_eq!(summary.total.rate.completed, 10_000.0);
    let counts = summary.total.in_window;
    assert_eq!((counts.in_flight_at_start, counts.sent, counts.completed()), (10_001, 40_000, 20_000));
    assert_eq!(counts.in_flight_at_end, 30_001);
    let expected = "overload: latencies grow for as long as the run lasts. Quote none. The throughput stands: 10000/s of 20000/s offered";
    assert_eq!(summary.status.message, expected);
    // The server gives no counters, and the client had time.
    assert_eq!(summary.status.bottleneck(), Some(Bottleneck::Server));
    let load = check(&summary, CheckId::Load).text();
    assert!(
        load.contains("the backlog grew by") && load.ends_with("-> --rate 8000 (80 % of what it answered)"),
        "{load}"
    );
}

#[test]
fn what_a_stopped_client_holds_is_an_upper_limit() {
    // Stopped for 300 ms of 2 s; then everything goes out at once and the server answers each in 20 µs.
    let stop = WINDOW.measure_ns + 500 * MS..WINDOW.measure_ns + 800 * MS;
    let mut events = gets(100_000, |_| 20_000);
    for event in events.iter_mut().filter(|event| stop.contains(&event.intended_ns)) {
        event.late_ns = stop.end - event.intended_ns;
    }
    let summary = run("rate = 10000\nmix = 'get'", &events);
    // The median was in time: it may be quoted, and the others are upper limits.
    assert_eq!(status(&summary, CheckId::Client), CheckStatus::Caution);
    let expected = "CAUTION: p50 may be quoted; p90 to p99.9 are upper limits: up to 100 % may be brunt's own time; p99.99 needs 8.00 s more";
    assert_eq!(summary.status.headline(), expected);
    let judged = |judgement: Judgement| {
        let plan = plan("rate = 10000\nmix = 'get'");
        let parts = intervals(&Layout::of(&plan), &events, 1);
        Summary::build(RunRecord { judgement, ..record(&plan, &parts) }).status.status
    };
    let strict = Judgement { is_strict: true, ..Judgement::default() };
    assert_eq!(judged(strict.clone()), Status::Invalid);
    assert_eq!(judged(Judgement { allowed: vec![CheckId::Client], ..strict }), Status::Caution);
    // Q_p = 300 ms − (1 − p) · 2 s: 280 ms at p99, of which the client holds all but the 20 µs.
    let p99 = summary.total.client_error.iter().find(|error| error.quantile == Quantile::P99).unwrap();
    assert!(p99.response_ns.abs_diff(280 * MS + 20_000) <= 280 * MS / 1_000, "{p99:?}");
    assert!((p99.response_ns - p99.error_ns).abs_diff(20_000) <= 40, "{p99:?}");
    let closed = run("mix = 'get'", &events);
    assert_eq!(status(&closed, CheckId::Client), CheckStatus::Caution);
    assert_eq!(status(&closed, CheckId::Load), CheckStatus::Ok);
}

/// The client error that is printed is what the bounds of decisions allow for: the cost of a wake-up, where neither clock readings nor
/// timestamps tell of it.
#[test]
fn client_errors_hold_wake_ups() {
    // load, wait, whether the clock readings hold wake-ups → client error
    let (closed, open) = ("mix = 'get'", "rate = 10000\nmix = 'get'");
    let table = [
        (closed, "sleep", false, 40_000),
        (closed, "hybrid", false, 40_000),
        (closed, "sleep", true, 0),
        (open, "sleep", false, 40_000),
        (open, "spin", false, 0),
    ];
    for (load, wait, counts_wake_ups, expected_ns) in table {
        let plan = plan(load);
        let parts = intervals(&Layout::of(&plan), &gets(100_000, |_| 100_000), 1);
        let mut record = record(&plan, &parts);
        record.run.host.wake_up_ns = 40_000;
        (record.run.usage.wait, record.run.usage.counts_wake_ups) = (wait.to_owned(), counts_wake_ups);
        let summary = Summary::build(record);
        let found_ns = summary.total.client_error_ns(Quantile::P50).unwrap();
        assert_eq!(found_ns, expected_ns, "{load}, {wait}");
    }
}

#[test]
fn failures_are_kept_apart_from_latencies() {
    let mut events = gets(1_000_000, |_| 100_000);
    for event in events.iter_mut().skip(1_000).step_by(100) {
        (event.service_ns, event.class_of_outcome) = (400 * MS, OutcomeClass::Timeout);
    }
    let summary = run("rate = 1000\nmix = 'get'", &events);
    let total = &summary.total;
    assert_eq!((total.requests.completed(), total.requests.outcome(OutcomeClass::Timeout)), (1_980, 20));
    assert_eq!((total.keys.hit, total.keys.failed), (1_980, 20));
    assert_eq!(total.latency.response.summary.max_ns, Some(100_000));
    let including = total.including_failures();
    assert_eq!((including.count, including.max_ns), (2_000, Some(400 * MS)));
    // 20 of 2000 may lie above the p99, and no more do.
    assert_check(&summary, CheckId::Data, CheckStatus::Ok, "");
    assert_eq!(status(&summary, CheckId::Broken), CheckStatus::Ok);
}

#[test]
fn workers_and_classes_add_up_to_the_whole() {
    let toml = "threads = 2\n[[class]]\nname = 'a'\nrate = 5000\nmix = 'get=1,set=1'\n\
                [[class]]\nname = 'b'\nrate = 5000\nmix = 'get'";
    let mut events = gets(100_000, |index| 50_000 + index * 7_919 % 1_000_000);
    for (index, event) in events.iter_mut().enumerate() {
        match index % 4 {
            0 => (event.kind, event.class_of_outcome) = (OpKind::Set, OutcomeClass::Done),
            1 => {}
            _ => event.class = 1,
        }
    }
    let plan = plan(toml);
    let layout = Layout::of(&plan);
    let mut one = summary(&plan, &intervals(&layout, &events, 1));
    let mut parts = intervals(&layout, &events, 3);
    let three = summary(&plan, &parts);
    parts.reverse();
    let turned = summary(&plan, &parts);
    // Where one worker ends an interval is not where three do, so batches differ by the requests of milliseconds.
    for (ours, theirs) in one.rows_mut().into_iter().zip(three.clone().rows_mut()) {
        assert_eq!(ours.intervals.len(), theirs.intervals.len());
        ours.intervals.clone_from(&theirs.intervals);
    }
    assert_eq!((&one.total, &one.ops, &one.classes), (&three.total, &three.ops, &three.classes));
    assert_eq!((&one.phases, &one.status.status), (&three.phases, &three.status.status));
    assert_eq!((three.timeline(), &three.classes), (turned.timeline(), &turned.classes));
    let counts: Vec<u64> =
        one.classes.iter().map(|class| class.total.latency.response.summary.count).collect();
    assert_eq!(counts, [10_000, 10_000]);
    let names: Vec<_> = one.ops.iter().map(|row| (row.op, row.summary.requests.completed())).collect();
    assert_eq!(names, [(OpKind::Get.into(), 15_000), (OpKind::Set.into(), 5_000)]);
}

#[test]
fn slices_of_any_length_add_up_to_the_run() {
    let events = gets(100_000, |index| 50_000 + index * 7_919 % 1_000_000);
    let plan = plan("rate = 10000\nmix = 'get'");
    let summary = summary(&plan, &intervals(&Layout::of(&plan), &events, 3));
    let span = WINDOW.start_ns..WINDOW.drained_ns;
    for width_ns in [100 * MS, 300 * MS, 1_000 * MS, 10_000 * MS] {
        let points = summary.timeline().points(WINDOW.measure_ns..span.end, width_ns);
        assert_eq!(points.len() as u64, (span.end - WINDOW.measure_ns).div_ceil(width_ns));
        let max_ns = points.iter().filter_map(|point| point.latency.max_ns).max();
        assert_eq!(max_ns, summary.total.latency.response.summary.max_ns);
        let everything: u64 = summary
            .timeline()
            .points(0..span.end, width_ns)
            .iter()
            .map(|point| point.activity.completed)
            .sum();
        assert_eq!(everything, events.len() as u64);
    }
    let points = summary.intervals(100 * MS);
    assert_eq!(points.len(), 20);
    for point in &points {
        // A slice takes what its intervals held, and these end up to 3 ms late.
        assert!(point.activity.completed.abs_diff(1_000) <= 40, "{point:?}");
        assert!(point.latency.p50_ns.unwrap().abs_diff(550_000) < 20_000, "{point:?}");
    }
    // The first row of the warm-up is one, wherever its slice begins.
    let mut late = summary.record.clone();
    late.run.times.start_ns += 700 * MS;
    late.run.intervals.set_schedule(950 * MS..u64::MAX);
    let warmup = |(phase, ..): &(Phase, Range<u64>, TimelinePoint)| *phase == Phase::Warmup;
    assert_eq!(Summary::build(late).rows(100 * MS).filter(warmup).count(), 3);
    // The whole in one piece is the whole histogram.
    let whole = &summary.timeline().points(0..WINDOW.drained_ns, 10_000 * MS)[0];
    let response = &summary.total.latency.response.summary;
    assert_eq!((whole.latency.p50_ns, whole.latency.p99_ns), (response.p50_ns(), response.p99_ns()));
}

#[test]
fn an_outage_is_in_the_table() {
    let outage = WINDOW.measure_ns + 600 * MS..WINDOW.measure_ns + 900 * MS;
    let mut events = gets(100_000, |_| 50_000);
    events.retain(|event| !outage.contains(&event.intended_ns));
    let plan = plan("rate = 10000\nmix = 'get'");
    let summary = summary(&plan, &intervals(&Layout::of(&plan), &events, 1));
    let silent: Vec<usize> = (summary.intervals(100 * MS).iter().enumerate())
        .filter_map(|(index, point)| (point.latency.max_ns.is_none()).then_some(index))
        .collect();
    assert!(silent == [6, 7] || silent == [6, 7, 8] || silent == [7, 8], "{silent:?}");
}

#[test]
fn requests_in_flight_are_counted() {
    let plan = plan("mix = 'get'");
    let mut parts = intervals(&Layout::of(&plan), &gets(1_000_000, |_| 1_000), 1);
    let entry = parts[0].request_counts.first_mut().unwrap();
    entry.counts.requests.scheduled += 1;
    entry.counts.requests.sent += 1;
    let requests = RequestCounts { in_flight: 1, ..RequestCounts::default() };
    let missing = CountEntry { counts: OpCounts { requests, ..OpCounts::default() }, ..*entry };
    assert_eq!(status(&summary(&plan, &parts), CheckId::Broken), CheckStatus::Invalid);
    parts[0].request_counts.push(missing);
    let summary = summary(&plan, &parts);
    assert_eq!(status(&summary, CheckId::Broken), CheckStatus::Ok);
    assert_eq!(summary.phase(missing.phase).unwrap().counts.requests.in_flight, 1);
}

/// A worker that records what it is told on one server of two, in one interval of 2 s.
fn one_interval(plan: &Plan, record: impl FnOnce(&mut RecorderSet)) -> Vec<Interval> {
    let mut set = RecorderSet::new(&Layout::of(plan));
    set.set_window(WINDOW.measure_ns, WINDOW.end_ns);
    record(&mut set);
    vec![set.take_interval(0, WINDOW.measure_ns, WINDOW.end_ns)]
}

#[test]
fn connections_servers_and_outages_reach_the_summary() {
    let plan = plan("server = ['one.example', 'two.example']\nmix = 'get'\nmeter = ['outstanding']");
    let worker = |number: u64| {
        one_interval(&plan, |set| {
            for event in [ConnectionEvent::Begun, ConnectionEvent::Begun, ConnectionEvent::Established] {
                set.connection(Phase::Connect, event);
            }
            set.connection(Phase::Measure, ConnectionEvent::Failed);
            set.connection(Phase::Measure, ConnectionEvent::Lost);
            set.meter(MeterKind::ConnectTime, 50_000 * number);
            set.server(1).answered += number;
            set.server(0).failed += 1;
            set.server(1).unsent += 1;
            for server in 0..2 {
                set.outage(OutageSpan {
                    server,
                    start_ns: 100 + number,
                    end_ns: 200 - number,
                    failed: number,
                    kinds: OutageKinds::NONE.with(OutageKind::Reset),
                });
            }
        })
    };
    let parts: Vec<Interval> = (1..=3).flat_map(worker).collect();
    let summary = summary(&plan, &parts);
    let expected = ConnectionCounts { begun: 6, established: 3, failed: 3, retired: 0, lost: 3 };
    assert_eq!(summary.connections, expected);
    assert_eq!(
        summary.connections_by_phase()[Phase::Measure as usize],
        ConnectionCounts { failed: 3, lost: 3, ..ConnectionCounts::default() }
    );
    assert_eq!((summary.connections.pending(), summary.connections.open()), (0, 0));
    let connect = &summary.connect_time;
    assert_eq!((connect.count, connect.mean_ns, connect.max_ns), (3, Some(100_000.0), Some(150_000)));
    assert_eq!(
        summary.servers(),
        [
            ServerCounts { failed: 3, ..ServerCounts::default() },
            ServerCounts { answered: 6, unsent: 3, ..ServerCounts::default() }
        ]
    );
    let told: Vec<_> = summary
        .outages
        .iter()
        .map(|outage| (outage.server, outage.start_ns, outage.end_ns, outage.failed))
        .collect();
    assert_eq!(told, [(0, 103, Some(197), 6), (1, 103, Some(197), 6)]);
    assert_eq!(summary.outages_overflow(), 0);
    let metered: Vec<_> = summary.meters.iter().map(|meter| meter.kind).collect();
    assert_eq!(
        metered,
        [
            &[MeterKind::Outstanding, MeterKind::ConnectTime, MeterKind::SendCost][..],
            &MeterKind::OF_TIMESTAMPS
        ]
        .concat()
    );
    // One lost that was never established.
    let wrong = one_interval(&plan, |set| set.connection(Phase::Measure, ConnectionEvent::Lost));
    let wrong = self::summary(&plan, &wrong);
    assert_eq!(status(&wrong, CheckId::Broken), CheckStatus::Invalid);
    assert_eq!(wrong.status.headline(), "INVALID: no number of this run may be quoted");
}

#[test]
fn follow_ups_are_no_load_that_was_offered() {
    // 1000/s, every second get misses; its set becomes due 100 µs later and is answered `set_ns` after that.
    let plan = plan("rate = 1000\nmix = 'get'\non-miss = 'set'");
    let layout = Layout::of(&plan);
    assert_eq!(layout.ops, [[OpKind::Get.into(), OpKind::Set.into()]]);
    // Of the gets one in `answered_of` is answered inside the window.
    let run_of = |answered_of: u64| {
        one_interval(&plan, |set| {
            for (index, event) in gets(MS, |_| 100_000).into_iter().enumerate() {
                let phase = event.phase();
                set.scheduled(phase, &event.op());
                set.sent(phase, &event.op(), 1, event.sample().times.sent_ns);
                let late_ns = if (index as u64).is_multiple_of(answered_of) { 0 } else { 2_000 * MS };
                let get = Event { service_ns: event.service_ns + late_ns, ..event };
                set.record(phase, &get.sample(), 1, 1);
                if index % 2 == 1 {
                    let set_event =
                        Event { kind: OpKind::Set, class_of_outcome: OutcomeClass::Done, ..event };
                    set.followup(phase, &set_event.op());
                    set.sent(phase, &set_event.op(), 1, set_event.sample().times.sent_ns);
                    set.record(phase, &set_event.sample(), 0, 0);
                }
            }
        })
    };
    let kept_up = summary(&plan, &run_of(1));
    let requests = &kept_up.total.requests;
    assert_eq!((requests.scheduled, requests.followup, requests.offered()), (3_000, 1_000, 2_000));
    assert_eq!((kept_up.total.rate.offered, kept_up.total.rate.completed), (1_000.0, 1_500.0));
    assert_eq!(status(&kept_up, CheckId::Load), CheckStatus::Ok);
    // Half of the gets are late: the sets in between must not hide that.
    assert_eq!(status(&summary(&plan, &run_of(2)), CheckId::Load), CheckStatus::Invalid);
}

#[test]
fn noreply_requests_are_not_failures() {
    let plan = plan("rate = 10000\nmix = 'set'\nnoreply = true");
    let mut events = gets(100_000, |_| 0);
    for event in &mut events {
        (event.kind, event.class_of_outcome) = (OpKind::Set, OutcomeClass::Unacknowledged);
    }
    let summary = summary(&plan, &intervals(&Layout::of(&plan), &events, 2));
    let expected = "OK: 20000 requests were sent, none of which asked for a reply";
    assert_eq!(summary.status.headline(), expected, "{:#?}", summary.status);
    assert_eq!(summary.total.requests.outcome(OutcomeClass::Unacknowledged), 20_000);
    assert_eq!(summary.total.latency.response.summary.count, 0);
    assert_eq!(summary.total.rate.sent, 10_000.0);
    assert_eq!(status(&summary, CheckId::Data), CheckStatus::Skipped);
}

#[test]
fn a_run_by_number_has_its_number() {
    // 2000 are scheduled in a window of 2 s.
    let table = [
        ("requests = 2000", false, CheckStatus::Ok),
        ("requests = 2001", false, CheckStatus::Invalid),
        ("requests = 2001", true, CheckStatus::Ok),
        ("requests = 2001\ntime = '2s'", false, CheckStatus::Ok),
        ("requests = 2001\ntime = '2.1s'", false, CheckStatus::Invalid),
        ("time = '2s'", false, CheckStatus::Ok),
    ];
    for (stop, interrupted, expected) in table {
        let plan = plan(&format!("rate = 1000\nmix = 'get'\n{stop}"));
        let parts = intervals(&Layout::of(&plan), &gets(MS, |_| 1_000), 1);
        let mut record = record(&plan, &parts);
        record.run.interrupted = interrupted;
        let summary = Summary::build(record);
        assert_check(&summary, CheckId::Broken, expected, stop);
    }
}

/// What begins cold is told, and everything is of the whole window, the evidence of slots included: four slots that answer
/// in 8 ms for the first second of six, and in 2 ms from then on.
#[test]
fn a_cold_beginning_is_in_every_number() {
    let window = RunTimes { end_ns: 7_057 * MS, drained_ns: 7_500 * MS, ..WINDOW };
    let cold_end_ns = window.measure_ns + 1_000 * MS;
    let of_slot = |slot: u64| {
        let service_ns = move |at_ns: u64| if at_ns < cold_end_ns { 8 * MS } else { 2 * MS };
        let next = move |at_ns: &u64| Some(at_ns + service_ns(*at_ns)).filter(|at_ns| *at_ns < window.end_ns);
        std::iter::successors(Some(window.start_ns + slot * MS / 4), next)
            .map(move |intended_ns| Event::get(intended_ns, service_ns(intended_ns)))
    };
    let plan = plan("connections = 4\nmix = 'get'\ntime = '6s'");
    let parts =
        intervals_within(&window, &Layout::of(&plan), &(0..4).flat_map(of_slot).collect::<Vec<_>>(), 1);
    let mut record = record(&plan, &parts);
    (record.run.times.end_ns, record.run.times.drained_ns) = (window.end_ns, window.drained_ns);
    let summary = Summary::build(record);
    assert_check(&summary, CheckId::Steady, CheckStatus::Caution, "");
    // 125 of 10 500 or so take 8 ms per slot: more than a hundredth.
    let response = &summary.total.latency.response.summary;
    assert_eq!(response.count, summary.total.requests.completed());
    let slow = response.p99_ns().zip(response.max_ns);
    assert!(slow.is_some_and(|(p99, max)| p99 >= 8 * MS && max == 8 * MS), "{slow:?}");
    let objectives = ["p99 < 7900us", "max < 8ms", "p50 < 3ms"].map(|text| text.parse().unwrap());
    let decisions = summary.clone().with_assertions(&objectives).assertions;
    let decisions: Vec<_> = decisions.iter().map(|assertion| assertion.decision).collect();
    assert_eq!(decisions, [Decision::Fails, Decision::Fails, Decision::Holds]);
    assert_check(&summary, CheckId::Broken, CheckStatus::Ok, "");
}

/// Four slots that answer in 2 ms each, over the 2 s window: 1000 requests a slot.
#[test]
fn slots_of_a_closed_loop() {
    let slots = |service_ns: u64| {
        let of_slot = |slot: u64| {
            let begin_ns = WINDOW.start_ns + slot * MS / 4;
            (begin_ns..WINDOW.end_ns)
                .step_by(2 * MS as usize)
                .map(move |intended_ns| Event::get(intended_ns, service_ns))
        };
        (0..4).flat_map(of_slot).collect::<Vec<_>>()
    };
    let table = [
        ("time = '2s'", 2 * MS, CheckStatus::Ok),
        // Slots that are empty for a tenth of the time.
        ("time = '2s'", 2 * MS - MS / 5, CheckStatus::Invalid),
        // The rest of the time they think.
        ("time = '2s'\nthink = '200us'", 2 * MS - MS / 5, CheckStatus::Ok),
        // Where slots may be empty, nothing is said of them.
        ("time = '2s'\ncalls-per-connection = 10", 2 * MS - MS / 5, CheckStatus::Ok),
        ("time = '2s'\non-miss = 'set'", 2 * MS - MS / 5, CheckStatus::Ok),
        ("time = '2s'\nrequests = 4000", 2 * MS - MS / 5, CheckStatus::Ok),
        ("time = '3s'", 2 * MS - MS / 5, CheckStatus::Ok),
    ];
    for (toml, service_ns, expected) in table {
        let summary = run(&format!("connections = 4\nmix = 'get'\n{toml}"), &slots(service_ns));
        assert_check(&summary, CheckId::Broken, expected, toml);
    }
}

/// 2000 gets of 1 to 2000 us and 20 sets of 5 ms, half of which failed, in a window of 2 s.
#[test]
fn assertions_compare_with_what_was_measured() {
    let plan = plan("mix = 'get=100,set=1'\ntime = '2s'");
    let mut events = gets(MS, |index| (index - 1_000 * (index / 1_000)) * 2_000 + 1_000);
    let measured = events.clone().into_iter().filter(|event| event.phase() == Phase::Measure);
    let sets = measured.step_by(100).enumerate().map(|(turn, event)| Event {
        kind: OpKind::Set,
        service_ns: 5 * MS,
        class_of_outcome: if turn % 2 == 0 { OutcomeClass::Done } else { OutcomeClass::Error },
        ..event
    });
    events.extend(sets.collect::<Vec<_>>());
    let summary = summary(&plan, &intervals(&Layout::of(&plan), &events, 2));
    let rate = (2_000.0 + 10.0) / 2.0;
    let table = [
        ("get.p50 < 2ms", Decision::Holds, Some(999_000.0)),
        ("get.p50 < 1003us", Decision::Holds, Some(999_000.0)),
        ("get.p50 < 997us", Decision::Fails, Some(999_000.0)),
        ("get.p50 < 520us", Decision::Fails, Some(999_000.0)),
        ("get.p99 <= 2ms", Decision::Holds, Some(1_979_000.0)),
        ("get.max < 1999us", Decision::Fails, Some(1_999_000.0)),
        ("get.mean <= 1ms", Decision::Holds, Some(1_000_000.0)),
        ("get.mean < 1ms", Decision::Fails, Some(1_000_000.0)),
        ("service.max < 5ms", Decision::Fails, Some(5_000_000.0)),
        ("rate >= 1005", Decision::Holds, Some(rate)),
        ("rate > 1005", Decision::Fails, Some(rate)),
        ("rate >= 1020", Decision::Fails, Some(rate)),
        ("get.hit >= 100%", Decision::Holds, Some(1.0)),
        ("set.errors <= 80%", Decision::Holds, Some(0.5)),
        ("set.errors < 0.2", Decision::Fails, Some(0.5)),
        ("unsent <= 0", Decision::Holds, Some(0.0)),
        ("get.p99.9 < 1h", Decision::Undecided, None),
        // Half of them failed.
        ("set.p50 < 1h", Decision::Holds, None),
        ("set.p90 < 1h", Decision::Fails, None),
        ("mget.rate > 1", Decision::Undecided, None),
    ];
    let objectives = table.map(|(text, ..)| text.parse().unwrap());
    let summary = summary.with_assertions(&objectives);
    for ((text, status, measured), assertion) in table.iter().zip(&summary.assertions) {
        assert_eq!(assertion.decision, *status, "{assertion:?}");
        assert_eq!(assertion.measured.is_some(), measured.is_some(), "{text}");
        let off = assertion.measured.unwrap_or(0.0) - measured.unwrap_or(0.0);
        assert!(off.abs() <= measured.unwrap_or(0.0) / 512.0, "{assertion:?}");
    }
    // 1000 gets more, at 1000 a second.
    let reason = |index: usize| summary.assertions[index].reason;
    let rate = summary.ops[0].summary.rate.completed;
    let ns = Some((1_000.0 / rate * 1e9) as u64);
    assert_eq!(reason(16), Some(Reason::Requests { more: 1_000, ns }));
    assert_eq!(reason(19), Some(Reason::NoRequests));
    assert!(rate > 990.0, "{rate}");
}

/// What a server said to one part is its account of the load of all, in a window of that part's own: it says nothing of the whole,
/// however many parts were told something, and in which order they come.
#[test]
fn server_stats_are_dropped_when_records_are_merged() {
    let plan = plan("rate = 1000\nmix = 'get'\nserver = 'a'");
    let events = gets(MS, |_| 100_000);
    let parts = intervals(&Layout::of(&plan), &events, 1);
    let part = |is_told: bool| {
        let mut part = record(&plan, &parts);
        if is_told {
            let mut server = ServerRecord::default();
            for (at_ns, gets) in [(50 * MS, "0"), (3_400 * MS, "2900")] {
                server.push(Snapshot::new(at_ns, at_ns + MS, [("cmd_get", gets), ("pid", "1")]));
            }
            part.run.server_records = vec![server];
        }
        part
    };
    let table: [&[bool]; 5] = [
        &[true, true],
        &[true, true, true],
        &[true, false],
        &[false, true],
        &[false, true, false, true, true],
    ];
    for told in table {
        let mut whole = part(told[0]);
        for is_told in &told[1..] {
            whole.merge(part(*is_told)).unwrap();
        }
        let whole = Summary::build(whole);
        assert_eq!(whole.total.requests.sent, 2_000 * told.len() as u64, "{told:?}");
        assert!(whole.record.run.server_records.is_empty(), "{told:?}");
    }
}
