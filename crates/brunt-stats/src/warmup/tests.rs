//! Warm-ups through the production recorder, store and slices: when each ends, and why.

use super::*;
use crate::connection::FaultKind;
use crate::recorder::{Layout, RecorderSet};
use crate::server::{OutageKind, OutageKinds, OutageSpan};
use crate::simulated_run::Random;
use crate::simulated_run::{self, answered, times};
use brunt_plan::op::{KeyRef, Op, OpKind};
use brunt_plan::outcome::ReplyKind;
use proptest::prelude::*;

const MS: u64 = 1_000_000;
const START_NS: u64 = 5_057 * MS;

fn plan(toml: &str) -> Plan {
    simulated_run::plan(&format!("warmup = 'auto'\nthreads = 1\nmix = 'get'\n{toml}"))
}

/// One server, first come first served, of which a get is asked at random instants. Times in seconds from the start.
struct Server<'a> {
    rate: f64,
    /// Mean service time.
    service: &'a dyn Fn(f64) -> f64,
    hit_ratio: &'a dyn Fn(f64) -> f64,
    /// Nothing leaves within it.
    silence: std::ops::Range<f64>,
    /// A connection is lost then.
    fault: Option<f64>,
    /// A worker had trouble until then, and noted it when it was over.
    outage: Option<f64>,
}

impl Default for Server<'_> {
    fn default() -> Self {
        Self {
            rate: 5_000.0,
            service: &|_| 1e-4,
            hit_ratio: &|_| 0.9,
            silence: 0.0..0.0,
            fault: None,
            outage: None,
        }
    }
}

impl Server<'_> {
    /// After how many slices the warm-up ends, and why.
    fn warm_up(&self, plan: &Plan, seed: u64) -> (u64, WarmupEnd) {
        let layout = Layout::of(plan);
        let (mut set, mut store) = (RecorderSet::new(&layout), IntervalStore::new(&layout));
        store.align(START_NS);
        // As in a run: the window begins as late as it may, behind a preload of a minute; and rows of another length were asked for.
        let mut wide = IntervalStore::new(&layout).with_slices(Some(70 * SLICE_NS));
        (0..600).for_each(|slice| wide.push(&set.take_interval(0, slice * SLICE_NS, (slice + 1) * SLICE_NS)));
        wide.align(START_NS + Warmup::LONGEST.0);
        wide.set_schedule(START_NS..u64::MAX);
        let mut random = Random(seed);
        let (mut arrival, mut departure) = (0.0_f64, 0.0_f64);
        for slices in 1..=Warmup::LONGEST.0 / SLICE_NS {
            let until_s = slices as f64 / 10.0;
            while departure < until_s {
                let at = |seconds: f64| START_NS + (seconds * 1e9) as u64;
                if departure > 0.0 {
                    let is_hit = random.unit() < (self.hit_ratio)(arrival);
                    record(&mut set, at(arrival), at(departure), is_hit);
                }
                arrival += random.exponential(1.0 / self.rate);
                departure = departure.max(arrival) + random.exponential((self.service)(arrival));
                if self.silence.contains(&departure) {
                    departure = self.silence.end;
                }
            }
            let is_now =
                |at_s: Option<f64>| at_s.is_some_and(|at_s| (until_s - 0.1..until_s).contains(&at_s));
            let end_ns = START_NS + slices * SLICE_NS;
            if is_now(self.fault) {
                set.fault(Phase::Warmup, FaultKind::Reset, end_ns - MS);
            }
            if is_now(self.outage) {
                let kinds = OutageKinds::NONE.with(OutageKind::Stalled);
                let (start_ns, end_ns) = (end_ns - 50 * MS, end_ns - MS);
                set.outage(OutageSpan { server: 0, start_ns, end_ns, failed: 0, kinds });
            }
            let interval = set.take_interval(0, end_ns - SLICE_NS, end_ns);
            [&mut store, &mut wide].into_iter().for_each(|store| store.push(&interval));
            let found = end(plan, &store, START_NS, end_ns);
            // Of a long one, which is looked at whole each time, now and then.
            if slices <= 100 || slices % 10 == 0 || found.is_some() {
                assert_eq!(end(plan, &wide, START_NS, end_ns), found);
            }
            if let Some(end) = found {
                return (slices, end);
            }
        }
        panic!("it never ends");
    }
}

fn record(set: &mut RecorderSet, intended_ns: u64, done_ns: u64, is_hit: bool) {
    let reply = if is_hit { ReplyKind::Value } else { ReplyKind::NotFound };
    let sample = answered(OpKind::Get, reply, times(intended_ns, intended_ns, done_ns));
    let op = Op::of(OpKind::Get, KeyRef::Id(0));
    set.scheduled(Phase::Warmup, &op);
    set.sent(Phase::Warmup, &op, 1, intended_ns);
    set.record(Phase::Warmup, &sample, 1, u32::from(is_hit));
    set.server(0).answered += 1;
}

/// Of queues with as many seeds, how many slices their warm-ups took, ascending; all for the same reason.
fn ends(plan: &Plan, server: &Server<'_>, reason: WarmupEnd) -> Vec<u64> {
    let one = |seed: u64| {
        let (slices, end) = server.warm_up(plan, seed * 7_919);
        assert_eq!(end, reason, "seed {seed}, after {slices} slices");
        slices
    };
    let mut ends: Vec<u64> = (1..=8).map(one).collect();
    ends.sort_unstable();
    ends
}

#[test]
fn a_warm_up_ends_when_it_is_level() {
    let plan = plan("rate = 5000");
    let fading = |size: f64, tau: f64| move |at: f64| size * (-at / tau).exp();
    let (slow, slower) = (fading(0.6, 3.0), fading(0.6, 1.0));
    let filling = fading(0.5, 2.0);
    type Law<'a> = &'a dyn Fn(f64) -> f64;
    // Service time relative to 100 us, hit ratio → the shortest but one, the middle one, and the longest, at least and at most.
    type Row<'a> = (&'a str, f64, Law<'a>, Law<'a>, [std::ops::RangeInclusive<u64>; 3]);
    let table: [Row<'_>; 6] = [
        ("level", 5_000.0, &|_| 1.0, &|_| 0.9, [10..=15, 10..=30, 15..=60]),
        ("level, four fifths of the capacity", 8_000.0, &|_| 1.0, &|_| 0.9, [10..=15, 10..=30, 15..=70]),
        ("getting slower", 5_000.0, &|at| 1.0 + at / 20.0, &|_| 0.9, [10..=15, 10..=30, 10..=60]),
        ("decaying in 3 s", 5_000.0, &|at| 1.0 + slow(at), &|_| 0.9, [15..=150, 120..=200, 160..=300]),
        ("decaying in 1 s", 5_000.0, &|at| 1.0 + slower(at), &|_| 0.9, [25..=60, 40..=80, 60..=150]),
        ("filling in 2 s", 5_000.0, &|_| 1.0, &|at| 0.9 - filling(at), [90..=150, 110..=160, 130..=200]),
    ];
    for (name, rate, service, hit_ratio, expected) in table {
        let service = |at: f64| 1e-4 * service(at);
        let server = Server { rate, service: &service, hit_ratio, ..Server::default() };
        let ends = ends(&plan, &server, WarmupEnd::Level);
        let found = [ends[1], ends[4], ends[7]];
        println!("{name}: {found:?}");
        assert!(
            expected.iter().zip(found).all(|(range, slices)| range.contains(&slices)),
            "{name}: {ends:?}"
        );
    }
}

/// It ends with the slice that shows the trouble, however far from level it is.
#[test]
fn faults_end_a_warm_up() {
    let plan = plan("rate = 5000");
    let service: &dyn Fn(f64) -> f64 = &|at| 1e-4 * (1.0 + 0.8 * (-at / 20.0).exp());
    let cold = || Server { service, ..Server::default() };
    let flushed =
        |at_s: f64| move |at: f64| if at < at_s { 0.9 } else { 0.9 * (1.0 - (-(at - at_s) / 2.0).exp()) };
    let (early, late) = (flushed(0.5), flushed(1.2));
    let evicting: &dyn Fn(f64) -> f64 = &|at| if at < 1.0 { 0.9 } else { 0.9 - 0.15 * (at - 1.0) };
    let table = [
        ("a fault", Server { fault: Some(0.45), ..cold() }, 5..=5, WarmupEnd::Trouble),
        ("a late fault", Server { fault: Some(1.05), ..cold() }, 11..=11, WarmupEnd::Trouble),
        ("an outage", Server { outage: Some(0.75), ..cold() }, 8..=8, WarmupEnd::Trouble),
        ("silence", Server { silence: 0.5..0.9, ..cold() }, 6..=6, WarmupEnd::Trouble),
        ("a flush", Server { hit_ratio: &early, ..cold() }, 6..=6, WarmupEnd::HitRatioFell),
        ("a late flush", Server { hit_ratio: &late, ..cold() }, 13..=13, WarmupEnd::HitRatioFell),
        ("evictions", Server { hit_ratio: evicting, ..cold() }, 12..=20, WarmupEnd::HitRatioFell),
    ];
    // Of this one no other is level before.
    let seed = 3 * 7_919;
    for (name, server, expected, reason) in table {
        let (slices, end) = server.warm_up(&plan, seed);
        assert!(expected.contains(&slices) && end == reason, "{name}: {end:?} after {slices} slices");
    }
}

#[test]
fn a_warm_up_that_never_levels_ends_at_the_limit() {
    let plan = plan("rate = 2000");
    let service: &dyn Fn(f64) -> f64 = &|at| 1e-4 * (0.5 + 3.0 * (-at / 60.0).exp());
    let server = Server { rate: 2_000.0, service, ..Server::default() };
    assert_eq!(server.warm_up(&plan, 7), (600, WarmupEnd::Longest));
}

#[test]
fn series_without_a_test_do_not_extend_a_warm_up() {
    let slow: &dyn Fn(f64) -> f64 = &|at| 1e-4 * (1.0 + 0.8 * (-at / 5.0).exp());
    // A load that changes by plan says nothing, but for its hit ratio.
    let bursts = plan("rate = 5000\narrival = 'mmpp:4,100ms,0.1'");
    let (slices, end) = Server { service: slow, ..Server::default() }.warm_up(&bursts, 7);
    assert!(slices <= 30 && end == WarmupEnd::Level, "{end:?} after {slices} slices");
    // Nothing is ever answered.
    let silent = Server { silence: 0.0..100.0, ..Server::default() };
    assert_eq!(silent.warm_up(&plan("rate = 5000"), 7), (10, WarmupEnd::Unknown));
    // 20 requests for a value, 10 of them.
    let rare = Server { rate: 20.0, ..Server::default() };
    let (slices, end) = rare.warm_up(&plan("rate = 20"), 7);
    assert!(
        (95..=600).contains(&slices) && matches!(end, WarmupEnd::Level | WarmupEnd::Longest),
        "{end:?} after {slices} slices"
    );
}

fn check(values: &[f64], z: f64, slope: f64) {
    let found = trend(values).unwrap();
    assert!((found.z - z).abs() < 1e-3 && (found.slope - slope).abs() < 1e-9, "{values:?}: {found:?}");
}

#[test]
fn z_and_slope_match_hand_calculation() {
    // All 45 pairs rise: S = 45, Var S = 10 · 9 · 25 / 18 = 125, Z = 44 / 11.1803.
    check(&[1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0, 10.0], 3.935_5, 1.0);
    check(&[10.0, 9.0, 8.0, 7.0, 6.0, 5.0, 4.0, 3.0, 2.0, 1.0], -3.935_5, -1.0);
    // Pairs: + + + − + + : S = 4, Var S = 4 · 3 · 13 / 18 = 8.667, Z = 3 / 2.944. Slopes 2, 1/2, 1, −1, 1/2, 2.
    check(&[1.0, 3.0, 2.0, 4.0], 1.019_0, 0.75);
    // Nothing but ties.
    check(&[7.0, 7.0, 7.0], 0.0, 0.0);
    // One value off the scale changes S, not the slope.
    check(&[1.0, 2.0, 3.0, 1e9, 5.0, 6.0], 1.878_7, 1.0);
    assert_eq!((trend(&[]), trend(&[1.0])), (None, None));
}

/// Every order of `count` values, with its S.
fn scores_of_all_orders(count: usize) -> Vec<i64> {
    fn walk(rest: &mut Vec<f64>, taken: &mut Vec<f64>, scores: &mut Vec<i64>) {
        if rest.is_empty() {
            let pairs = (0..taken.len()).flat_map(|j| (0..j).map(move |i| (i, j)));
            scores.push(pairs.map(|(i, j)| if taken[j] > taken[i] { 1 } else { -1 }).sum());
        }
        for index in 0..rest.len() {
            taken.push(rest.remove(index));
            walk(rest, taken, scores);
            rest.insert(index, taken.pop().unwrap());
        }
    }
    let mut scores = Vec::new();
    walk(&mut (0..count).map(|value| value as f64).collect(), &mut Vec::new(), &mut scores);
    scores
}

#[test]
fn the_variance_is_that_of_all_orders() {
    for count in 2..=7 {
        let scores = scores_of_all_orders(count);
        let squares: i64 = scores.iter().map(|score| score * score).sum();
        let exact = squares as f64 / scores.len() as f64;
        let rising: Vec<f64> = (0..count).map(|value| value as f64).collect();
        let pairs = (count * (count - 1) / 2) as f64;
        let formula = ((pairs - 1.0) / trend(&rising).unwrap().z).powi(2);
        assert!(count == 2 || (formula - exact).abs() < 1e-9, "{count}: {formula} {exact}");
    }
}

proptest! {
    #[test]
    fn a_shift_and_a_scale_change_no_z(values in prop::collection::vec(-5.0..5.0_f64, 3..40)) {
        let found = trend(&values).unwrap();
        let moved: Vec<f64> = values.iter().map(|value| value * 4.0 + 16.0).collect();
        prop_assert_eq!(trend(&moved).unwrap().z, found.z);
        let turned: Vec<f64> = values.iter().rev().copied().collect();
        prop_assert!((trend(&turned).unwrap().z + found.z).abs() < 1e-9);
    }
}
