//! Runs made by hand and runs of simulated queues, through the production recorder, store, slices and batches.
//!
//! No queue here waits: departures follow from Lindley's recursion, `dep_i = max(arr_i, dep_{i−1}) + s_i`.

use super::*;
use crate::fault::FaultKind;
use crate::interval::Interval;
use crate::outage_span::{OutageKind, OutageKinds, OutageSpan};
use crate::recorder::{Layout, RecorderSet};
use crate::sample::{Sample, Times};
use brunt_plan::op::{KeyRef, Op, OpKind};
use brunt_plan::outcome::{Outcome, ReplyKind};
use brunt_plan::phase::Phase;
use brunt_plan::resolve::{Host, resolve};
use brunt_plan::spec::PlanSpec;
use std::collections::BinaryHeap;

mod replications;

const MS: u64 = 1_000_000;
const S: u64 = 1_000 * MS;
/// When the window of every run begins, after a second of warm-up.
const MEASURE_NS: u64 = 7_057 * MS;

impl Steadiness {
    /// Does nothing of it call for care?
    pub(crate) fn is_steady(&self) -> bool {
        self.series.iter().all(|found| {
            let is_warm = found.warm_up.as_ref().map_or(true, |warm_up| warm_up.until_ns == 0);
            let is_flat = found.course.as_ref().map_or(true, |(drift, shift)| !drift.fires && !shift.fires);
            is_warm && is_flat
        })
    }
}

fn plan(toml: &str) -> Plan {
    let spec = PlanSpec::from_toml(toml).unwrap();
    resolve(&spec, &Host { allowed_cpus: vec![0, 1], random_seed: 5 }).unwrap()
}

/// A generator of its own (splitmix64), so that no other part of the program decides what a test sees.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// From 0, exclusive, to 1.
    fn unit(&mut self) -> f64 {
        ((self.next() >> 11) as f64 + 0.5) / (1_u64 << 53) as f64
    }

    fn exponential(&mut self, mean: f64) -> f64 {
        -self.unit().ln() * mean
    }
}

/// Records one worker's gets, in the order in which they are done.
struct Recorded {
    set: Box<RecorderSet>,
    store: IntervalStore,
    window: MeasuredWindow,
    taken_ns: u64,
}

impl Recorded {
    fn new(plan: &Plan, length_ns: u64) -> Self {
        let layout = Layout::of(plan);
        let end_ns = MEASURE_NS + length_ns;
        let window =
            MeasuredWindow { start_ns: MEASURE_NS - S, measure_ns: MEASURE_NS, end_ns, drained_ns: end_ns };
        let mut set = RecorderSet::new(&layout);
        set.set_window(MEASURE_NS, end_ns);
        let mut store = IntervalStore::new(&layout);
        store.align(MEASURE_NS);
        Self { set, store, window, taken_ns: window.start_ns }
    }

    fn done(&mut self, intended_ns: u64, done_ns: u64, is_hit: bool) {
        while done_ns >= self.taken_ns + 100 * MS {
            let end_ns = self.taken_ns + 100 * MS;
            self.take(end_ns);
        }
        let phase = if intended_ns < MEASURE_NS { Phase::Warmup } else { Phase::Measure };
        let reply = if is_hit { ReplyKind::Value } else { ReplyKind::NotFound };
        let times = Times {
            intended_ns,
            picked_ns: intended_ns,
            sent_ns: intended_ns,
            polled_ns: done_ns,
            first_byte_ns: done_ns,
            done_ns,
        };
        let outcome = Outcome::of_reply(OpKind::Get, reply);
        let op = Op { class: 0, ..Op::of(OpKind::Get, KeyRef::Id(0)) };
        self.set.scheduled(phase, &op);
        self.set.sent(phase, &op, 1, times.sent_ns);
        self.set.record(
            phase,
            &Sample { op: OpKind::Get.into(), class: 0, outcome, busy_lag_ns: None, times },
            1,
            u32::from(is_hit),
        );
    }

    fn take(&mut self, end_ns: u64) {
        let interval: Interval = self.set.take_interval(0, self.taken_ns, end_ns);
        self.store.push(&interval);
        self.taken_ns = end_ns;
    }

    fn finish(mut self) -> (IntervalStore, MeasuredWindow) {
        let end_ns = self.taken_ns.max(self.window.end_ns) + 5 * MS;
        self.take(end_ns);
        (self.store, self.window)
    }
}

/// One server, first come first served.
struct Queue<'a> {
    /// Requests per second, of a Poisson process.
    rate: f64,
    /// Mean service time in seconds, by the share of the window that has passed; below 0 in the warm-up.
    service: &'a dyn Fn(f64) -> f64,
    /// Share of gets that find something.
    hit_ratio: &'a dyn Fn(f64) -> f64,
    seconds: f64,
}

impl Queue<'_> {
    fn run(&self, seed: u64) -> (Steadiness, IntervalStore, MeasuredWindow) {
        let plan = plan("rate = 1000\nmix = 'get'\nthreads = 1");
        let length_ns = (self.seconds * 1e9) as u64;
        let mut recorded = Recorded::new(&plan, length_ns);
        let mut random = Random(seed);
        let (mut arrival, mut departure) = (-1.0_f64, f64::MIN);
        loop {
            arrival += random.exponential(1.0 / self.rate);
            if arrival >= self.seconds {
                break;
            }
            let share = arrival / self.seconds;
            departure = departure.max(arrival) + random.exponential((self.service)(share));
            let at = |seconds: f64| (MEASURE_NS as f64 + seconds * 1e9) as u64;
            let is_hit = random.unit() < (self.hit_ratio)(share);
            recorded.done(at(arrival), at(departure).max(at(arrival)), is_hit);
        }
        let (store, window) = recorded.finish();
        (Steadiness::of(&plan, &store, &window), store, window)
    }
}

/// `slots` clients that ask again as soon as they are answered by one server.
fn closed_loop(slots: usize, service: f64, seconds: f64, seed: u64) -> Steadiness {
    let plan = plan("mix = 'get'\nthreads = 1");
    let mut recorded = Recorded::new(&plan, (seconds * 1e9) as u64);
    let mut random = Random(seed);
    // The server takes them in the order in which they asked.
    let mut waiting: BinaryHeap<std::cmp::Reverse<u64>> =
        (0..slots).map(|_| std::cmp::Reverse(MEASURE_NS - S)).collect();
    let mut now_ns = MEASURE_NS - S;
    while let Some(std::cmp::Reverse(intended_ns)) = waiting.pop() {
        if intended_ns >= recorded.window.end_ns {
            break;
        }
        now_ns += (random.exponential(service) * 1e9) as u64;
        recorded.done(intended_ns, now_ns, random.unit() < 0.9);
        waiting.push(std::cmp::Reverse(now_ns));
    }
    let (store, window) = recorded.finish();
    Steadiness::of(&plan, &store, &window)
}

/// A get every 500 us that takes `service_ns`, by its time from the beginning of the window; none leaves before one that
/// came before it.
fn even(length_ns: u64, service_ns: impl Fn(i64) -> u64) -> (Steadiness, IntervalStore) {
    let plan = plan("rate = 2000\narrival = 'uniform'\nmix = 'get'\nthreads = 1\nwarmup = '1s'");
    let mut recorded = Recorded::new(&plan, length_ns);
    let mut departure_ns = 0;
    for intended_ns in (MEASURE_NS - S..MEASURE_NS + length_ns).step_by(500_000) {
        let at_ns = intended_ns as i64 - MEASURE_NS as i64;
        departure_ns = (intended_ns + service_ns(at_ns)).max(departure_ns);
        recorded.done(intended_ns, departure_ns, true);
    }
    let (store, window) = recorded.finish();
    (Steadiness::of(&plan, &store, &window), store)
}

/// 100 us, and a little more now and then, so that the series have some noise.
fn usual_ns(at_ns: i64) -> u64 {
    100_000 + at_ns.unsigned_abs() / 500_000 * 7_919 % 97 * 100
}

/// The most that it comes to.
fn usual_max_ns() -> u64 {
    100_000 + 96 * 100
}

fn warm_up(found: &Steadiness, series: Series) -> WarmUp {
    found.series.iter().find(|held| held.series == series).unwrap().warm_up.clone().unwrap()
}

#[test]
fn a_stall_is_not_taken_for_a_warm_up() {
    // Wherever it lies behind the first second; at 5 s and of 1 s: Q_p = 1 s − (1 − p) · 20 s = 800 ms at p99.
    for begin_ms in [300, 1_000, 2_000, 5_000, 9_000, 14_000] {
        let stall = begin_ms * MS as i64..(begin_ms + 1_000) * MS as i64;
        let service =
            |at_ns| if stall.contains(&at_ns) { (stall.end - at_ns) as u64 } else { usual_ns(at_ns) };
        let (found, store) = even(20 * S, service);
        assert_eq!((found.beginning.clone(), found.is_steady()), (None, true), "{begin_ms} ms: {found:?}");
        let p99_ns = store.rows().next().unwrap().2.latencies.response.quantile(Quantile::P99).unwrap();
        assert!(p99_ns.abs_diff(800 * MS) < 2 * MS, "{begin_ms} ms: {p99_ns}");
    }
}

#[test]
fn a_stall_behind_a_beginning_that_is_a_little_slow_is_not_taken_for_a_warm_up() {
    // 1 s of 10 s from 300 ms on, as in a run without a warm-up; p99 = 1 s - (1 - p) · 10 s.
    let stall = 300 * MS as i64..1_300 * MS as i64;
    for slow in [1.2, 1.5, 2.0] {
        let service = |at_ns: i64| match at_ns {
            _ if stall.contains(&at_ns) => (stall.end - at_ns) as u64,
            _ if at_ns < stall.end + 200 * MS as i64 => (slow * usual_ns(at_ns) as f64) as u64,
            _ => usual_ns(at_ns),
        };
        let (found, store) = even(10 * S, service);
        assert_eq!(found.beginning.clone(), None, "{slow}: {found:?}");
        let p99_ns = store.rows().next().unwrap().2.latencies.response.quantile(Quantile::P99).unwrap();
        assert!(p99_ns.abs_diff(900 * MS) < 2 * MS, "{slow}: {p99_ns}");
    }
}

#[test]
fn mser_alone_takes_a_stall_for_a_warm_up() {
    let service =
        |at_ns| if (4_000_000_000..4_040_000_000).contains(&at_ns) { 40 * MS } else { usual_ns(at_ns) };
    let (found, _) = even(20 * S, service);
    let warm_up = warm_up(&found, Series::P50);
    assert_eq!((warm_up.until_ns, found.beginning.clone()), (0, None));
    let mser_ns =
        found.series.iter().filter_map(|held| held.warm_up.as_ref().ok()).map(|held| held.mser_ns).max();
    assert!(mser_ns.unwrap() >= 4 * S, "{found:?}");
}

#[test]
fn a_slow_beginning_is_reported_and_kept() {
    for slow_ms in [500, 1_200, 1_300, 3_000] {
        let service = |at_ns| if at_ns < slow_ms * MS as i64 { 2 * usual_ns(at_ns) } else { usual_ns(at_ns) };
        let (found, store) = even(20 * S, service);
        let beginning = found.beginning.clone().unwrap();
        let whole_groups_ns = (slow_ms as u64).div_ceil(500) * 500 * MS;
        assert_eq!(beginning.until_ns, whole_groups_ns, "{slow_ms} ms: {found:?}");
        assert_eq!((beginning.warmup_needed_ns, beginning.trouble_ns), (S + beginning.until_ns, None));
        let change = warm_up(&found, Series::P50).change;
        assert!((0.9..1.1).contains(&change), "{change}");
        assert!(!found.is_steady());
        // With it: every request of the window. Without: those that completed behind it, all of which are fast.
        let response = &store.rows().next().unwrap().2.latencies.response;
        assert_eq!(beginning.with, LatencySummary::of(response));
        assert_eq!(beginning.with.max_ns, Some(2 * usual_max_ns()));
        assert_eq!(beginning.without.max_ns, Some(usual_max_ns()));
        let behind = 40_000 - whole_groups_ns / 500_000;
        assert!(beginning.without.count.abs_diff(behind) <= 1, "{}", beginning.without.count);
    }
}

#[test]
fn a_slow_beginning_and_a_stall_behind_it_are_told_apart() {
    let service = |at_ns: i64| match at_ns {
        ..1_000_000_000 => 2 * usual_ns(at_ns),
        6_000_000_000..6_040_000_000 => 40 * MS,
        _ => usual_ns(at_ns),
    };
    let (found, _) = even(20 * S, service);
    assert_eq!(found.beginning.clone().unwrap().until_ns, S, "{found:?}");
}

#[test]
fn faults_in_a_slow_beginning_are_reported() {
    let service = |at_ns: i64| if at_ns < 3_000_000_000 { 2 * usual_ns(at_ns) } else { usual_ns(at_ns) };
    let (found, store) = even(20 * S, service);
    assert_eq!(found.beginning.clone().unwrap().until_ns, 3 * S);
    let plan = plan("rate = 2000\narrival = 'uniform'\nmix = 'get'\nthreads = 1\nwarmup = '1s'");
    let end_ns = MEASURE_NS + 20 * S;
    let window =
        MeasuredWindow { start_ns: MEASURE_NS - S, measure_ns: MEASURE_NS, end_ns, drained_ns: end_ns };
    let told = |change: &dyn Fn(&mut IntervalStore)| {
        let mut store = store.clone();
        change(&mut store);
        Steadiness::of(&plan, &store, &window).beginning.unwrap().trouble_ns
    };
    let outage = |start_ms: i64, end_ms: i64| {
        let at = |ms: i64| (MEASURE_NS as i64 + ms * MS as i64) as u64;
        let kinds = OutageKinds::NONE.with(OutageKind::Refused);
        OutageSpan { server: 0, start_ns: at(start_ms), end_ns: at(end_ms), failed: 3, kinds }
    };
    for (start_ms, end_ms, trouble_ms) in
        [(1_200, 1_500, Some(1_200)), (-300, 20, Some(0)), (-300, -20, None), (3_000, 3_200, None)]
    {
        let found_ns = told(&|store| store.outages.spans.push(outage(start_ms, end_ms)));
        assert_eq!(found_ns, trouble_ms.map(|ms: u64| ms * MS), "{start_ms} ms");
        let fault = |store: &mut IntervalStore| {
            let at_ns = (MEASURE_NS as i64 + start_ms * MS as i64) as u64;
            store.faults.record(Phase::Measure, FaultKind::Reset, at_ns);
        };
        let expected = trouble_ms.filter(|_| start_ms >= 0).map(|ms| ms * MS);
        assert_eq!(told(&fault), expected, "{start_ms} ms");
    }
}

#[test]
fn a_beginning_beyond_the_middle_is_no_warm_up() {
    let service = |at_ns: i64| if at_ns < 10 * S as i64 { 150_000 } else { 100_000 } + usual_ns(at_ns) / 10;
    let (found, _) = even(20 * S, service);
    assert!(warm_up(&found, Series::P50).is_endless, "{found:?}");
    assert_eq!(found.beginning.clone(), None);
    let held = found.series.iter().find(|held| held.series == Series::P50).unwrap();
    let (_, shift) = held.course.clone().unwrap();
    assert!(shift.fires && shift.at_ns.abs_diff(10 * S) <= 20 * S / 30, "{shift:?}");
}

/// A warm-up only gets better. What gets worse is told by SHIFT, such as the hit ratio of a server that was started again.
#[test]
fn a_beginning_that_is_better_is_no_warm_up() {
    for fast_ms in [500, 3_000, 10_000] {
        let service = |at_ns| if at_ns < fast_ms * MS as i64 { usual_ns(at_ns) } else { 2 * usual_ns(at_ns) };
        let (found, _) = even(20 * S, service);
        let WarmUp { until_ns, is_endless, .. } = warm_up(&found, Series::P50);
        assert_eq!((until_ns, is_endless, found.beginning.clone()), (0, false, None), "{fast_ms} ms");
    }
    let service: &dyn Fn(f64) -> f64 = &|_| 1e-4;
    let restarted: &dyn Fn(f64) -> f64 = &|share| if share < 0.45 { 1.0 } else { 0.01 };
    let (found, ..) = Queue { rate: 2_000.0, service, hit_ratio: restarted, seconds: 10.0 }.run(3);
    assert!(!warm_up(&found, Series::HitRatio).is_endless);
    let held = found.series.iter().find(|held| held.series == Series::HitRatio).unwrap();
    assert!(held.course.as_ref().is_ok_and(|(_, shift)| shift.fires), "{held:?}");
}

#[test]
fn a_cache_that_fills_is_not_steady() {
    let service: &dyn Fn(f64) -> f64 = &|_| 1e-4;
    let filling: &dyn Fn(f64) -> f64 = &|share| 0.8 + 0.1 * f64::max(share, 0.0);
    let (found, ..) = Queue { rate: 2_000.0, service, hit_ratio: filling, seconds: 10.0 }.run(3);
    let fired: Vec<_> = found
        .series
        .iter()
        .filter(|held| held.course.as_ref().is_ok_and(|(drift, _)| drift.fires))
        .map(|held| (held.series, (held.course.as_ref().unwrap().0.change * 20.0).round() / 20.0))
        .collect();
    assert_eq!(fired, [(Series::HitRatio, 0.1)]);
}

#[test]
fn series_without_a_test_have_a_reason() {
    let reasons = |found: &Steadiness| {
        let of = |held: &SeriesSteadiness| {
            let (warm_up, course) = (held.warm_up.clone().err(), held.course.clone().err());
            (held.series.name(), warm_up.unwrap_or_default(), course.unwrap_or_default())
        };
        found.series.iter().map(of).collect::<Vec<_>>()
    };
    let batches = "the window is too short: it takes 2 s";
    let thin_p99 = "too few requests: it takes 1000 in 200 ms";
    let thin_batches = "too few requests: it takes about 30000 in the window";
    let window = "the window is too short: it takes 40 values of 100 ms";
    // 200 requests in 100 ms: a p99 takes half a second of them.
    for (length_ms, p99, others) in [
        (1_900, (thin_p99, batches), (window, batches)),
        (3_900, (thin_p99, thin_batches), (window, "")),
        (4_000, (thin_p99, thin_batches), ("", "")),
    ] {
        let (found, _) = even(length_ms * MS, usual_ns);
        for (series, warm_up, course) in reasons(&found) {
            let expected = if series == "p99" { p99 } else { others };
            assert_eq!((warm_up.as_str(), course.as_str()), expected, "{length_ms} ms: {series}");
        }
    }
    let (nothing, _) = even(0, usual_ns);
    assert!(reasons(&nothing).iter().all(|(_, warm_up, _)| warm_up.starts_with("too few requests")));
    for (toml, reason) in [
        ("rate-profile = '0s=1k,2s=3k'", "the offered load changes by plan (rate-profile)"),
        ("rate = 1000\narrival = 'mmpp:4,100ms,0.1'", "the offered load changes by plan (arrival mmpp)"),
        ("connect-rate = '5/s'", "the number of connections changes by plan"),
    ] {
        let plan = plan(&format!("{toml}\nmix = 'get'"));
        let (_, store) = even(4 * S, usual_ns);
        let end_ns = MEASURE_NS + 4 * S;
        let window = MeasuredWindow { start_ns: 0, measure_ns: MEASURE_NS, end_ns, drained_ns: end_ns };
        for (series, warm_up, course) in reasons(&Steadiness::of(&plan, &store, &window)) {
            let expected = if series == "hit ratio" { "" } else { reason };
            assert_eq!((warm_up.as_str(), course.as_str()), (expected, expected), "{series}");
        }
    }
    let rate_only = plan("rate = 1000\nmix = 'get'\nconnect-rate = '5/s'");
    assert_eq!(unsuited(Series::P50, &rate_only), None);
}

#[test]
fn an_outage_is_not_taken_for_the_level() {
    // Nothing completes for 2 s of 6, right behind a few that took long; then everything at once, and slow to the end.
    let service = |at_ns: i64| match at_ns {
        2_500_000_000..2_520_000_000 => 300_000,
        2_520_000_000..4_520_000_000 => (4_520_000_000 - at_ns) as u64,
        _ => usual_ns(at_ns),
    };
    let (found, _) = even(6 * S, service);
    assert_eq!(found.beginning.clone(), None, "{found:?}");
}
