//! Goals at their bounds, and whole runs that are looked at as they grow.
//!
//! Not how often an interval holds the truth when a run was stopped by it: `confidence/replications.rs` measures that.

use super::*;
use crate::confidence::{IntervalBasis, PercentileInterval};
use crate::recorder::{Layout, RecorderSet};
use crate::request_counts::OpCounts;
use crate::sample::Sample;
use crate::simulated_run::{answered, plan, times};
use crate::stack_delay::StackDelay;
use crate::store::RowTotals;
use brunt_plan::op::OpKind;
use brunt_plan::outcome::ReplyKind;
use brunt_plan::phase::Phase;
use brunt_plan::quantile::Quantile;

const MS: u64 = 1_000_000;
const S: u64 = 1_000 * MS;

fn interval(low_ns: u64, high_ns: Option<u64>, effective_count: f64) -> PercentileInterval {
    let example = PercentileInterval::example(Quantile::P99);
    let basis = IntervalBasis { effective_count, ..example.basis };
    PercentileInterval { low_ns, high_ns, basis, ..example }
}

/// Requests of which nothing is known but the interval.
fn row(interval: Option<PercentileInterval>) -> OpSummary {
    let window = RunTimes { start_ns: 0, measure_ns: 0, end_ns: S, ..RunTimes::NONE };
    let (counts, totals, delay) = (OpCounts::default(), RowTotals::default(), StackDelay::default());
    let nothing = OpSummary::of(counts, totals, &window, &[], &Quantile::PRINTED, 0.0, delay);
    OpSummary { intervals: interval.into_iter().collect(), ..nothing }
}

fn is_reached(goal: &Precision, interval: PercentileInterval) -> bool {
    let found = GoalResult::of(goal, Some(&row(Some(interval))));
    assert_eq!(found.interval, Some(interval));
    found.is_reached
}

#[test]
fn a_width_is_reached_with_enough_requests() {
    let goal = "p99=2%".parse().unwrap();
    let table = [
        (980, Some(1_020), 5_000.1, true),
        (979, Some(1_020), 5_000.1, false),
        (980, Some(1_020), 4_999.0, false),
        (980, None, 5_000.1, false),
    ];
    for (low_ns, high_ns, effective_count, expected) in table {
        let interval = interval(low_ns, high_ns, effective_count);
        assert_eq!(is_reached(&goal, interval), expected, "{interval:?}");
    }
    let is_unknown = |goal: &Precision, row: Option<&OpSummary>| GoalResult::of(goal, row).interval.is_none();
    assert!(is_unknown(&goal, Some(&row(None))) && is_unknown(&goal, None));
    let of_median = "p50=2%".parse().unwrap();
    assert!(is_unknown(&of_median, Some(&row(Some(interval(1, None, 1.0))))));
}

#[test]
fn looks_are_taken_at_doublings() {
    let looks = |first_s: u64, max_s: u64| {
        let looks_ns = Convergence::new(Vec::new(), first_s * S, max_s * S).looks_ns;
        looks_ns.into_iter().map(|at_ns| at_ns / S).collect::<Vec<_>>()
    };
    assert_eq!(looks(10, 600), [10, 20, 40, 80, 160, 320]);
    assert_eq!(looks(10, 20), [10], "the end is no look");
    assert_eq!(looks(10, 10), [0; 0]);
    assert_eq!(
        looks(1, 1_025),
        [1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1_024],
        "the longest time alone ends them"
    );
    let endless = Convergence::new(Vec::new(), 1, u64::MAX).looks_ns;
    assert_eq!((endless.len(), endless.last()), (64, Some(&(1 << 63))));
}

/// A get every 100 us from the beginning of the window on, of 100 us and up to `spread_ns` more, picked `late_ns` late;
/// recorded second by second, as far as the test goes.
struct Run {
    plan: Plan,
    store: IntervalStore,
    set: Box<RecorderSet>,
    started: RunTimes,
    until_ns: u64,
    spread_ns: u64,
    late_ns: u64,
}

impl Run {
    fn new(options: &str, spread_ns: u64, late_ns: u64) -> Self {
        let plan = plan(&format!("rate = '10k'\nmix = 'get'\n{options}"));
        let layout = Layout::of(&plan);
        let mut store = IntervalStore::new(&layout);
        let started =
            RunTimes { start_ns: S, measure_ns: 2 * S, end_ns: 1_000 * S, drained_ns: 0, ..RunTimes::NONE };
        store.align(started.measure_ns);
        let set = RecorderSet::new(&layout);
        Self { plan, store, set, started, until_ns: started.measure_ns, spread_ns, late_ns }
    }

    /// Goes on until this time after the beginning of the window.
    fn go_on(&mut self, until_ns: u64) {
        while self.until_ns < self.started.measure_ns + until_ns {
            let start_ns = self.until_ns;
            self.until_ns += 100 * MS;
            for turn in 0..1_000 {
                let intended_ns = start_ns + turn * 100_000;
                let picked_ns = intended_ns + self.late_ns;
                // A sequence without a pattern that a batch could share: the fractions of multiples of the golden ratio.
                let fraction = (intended_ns / 100_000).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32;
                let done_ns = picked_ns + 100_000 + ((self.spread_ns * fraction) >> 32);
                let sample = answered(OpKind::Get, ReplyKind::Value, times(intended_ns, picked_ns, done_ns));
                self.set.record(Phase::Measure, &Sample { busy_lag_ns: Some(self.late_ns), ..sample }, 1, 1);
            }
            self.store.push(&self.set.take_interval(0, start_ns, self.until_ns));
        }
    }

    /// Another worker, which did nothing, hands over an interval that begins so long after the window.
    fn idle(&mut self, from_ns: u64) {
        let start_ns = self.started.measure_ns + from_ns;
        let mut set = RecorderSet::new(&Layout::of(&self.plan));
        self.store.push(&set.take_interval(1, start_ns, start_ns + 100 * MS));
    }

    fn look(&self, at_ns: u64) -> (OpSummary, Vec<OpRow>, [(CheckId, CheckStatus); 2]) {
        let end_ns = self.started.measure_ns + at_ns;
        let window = RunTimes { end_ns, drained_ns: end_ns, ..self.started };
        let rows = RowSums::new(&self.plan, &self.store, &window, 0);
        let steady = Steadiness::of(&self.plan, &self.store, &window, &[]);
        let (total, ops) = (rows.sum(|_, _| true), rows.by_op(|_| true));
        let checks = checks(&self.plan, &steady, &total);
        (total, ops, checks)
    }

    fn is_enough(&self, convergence: &mut Convergence) -> bool {
        convergence.is_enough(self.until_ns, &self.started, &self.plan, &self.store, 0)
    }

    fn end(&self, convergence: Convergence) -> UntilResult {
        let window = RunTimes { end_ns: self.until_ns, ..self.started };
        let rows = RowSums::new(&self.plan, &self.store, &window, 0);
        let steady = Steadiness::of(&self.plan, &self.store, &window, &[]);
        let (total, ops) = (rows.sum(|_, _| true), rows.by_op(|_| true));
        convergence.end(&self.plan, (&total, &ops), &steady, &window, false)
    }
}

#[test]
fn a_run_ends_at_the_first_look_that_reaches_its_goals() {
    let mut run = Run::new("until = 'get.p99=1%,p50=1%,max=9s'\ntime = '1s'", 10_000, 0);
    let mut convergence = Convergence::of(&run.plan).unwrap();
    run.go_on(S);
    assert!(!run.is_enough(&mut convergence), "what was handed over late may be missing");
    run.go_on(S + 100 * MS);
    assert!(run.is_enough(&mut convergence));
    // What comes after it, while the run ends, changes nothing.
    run.go_on(3 * S);
    assert!(run.is_enough(&mut convergence));
    let looked = run.end(convergence);
    assert_eq!((looked.taken, looked.looks, looked.enough_at_ns()), (1, 4, Some(S)));
    assert!(looked.is_reached());
    let text = looked.to_string();
    assert!(text.starts_with("reached at look 1 of 4, after 1.00 s; get.p99=1%: 0."), "{text}");
    assert!(text.ends_with("; without STEADY, not judged then"), "a second is too short for it: {text}");
}

/// Slices are merged when the first interval comes that is one too many. A look just before that sees twice as many as one just after it.
#[test]
fn a_look_sees_the_same_before_and_after_slices_are_merged() {
    let mut run = Run::new("", 100_000, 0);
    for (at_ms, is_exact) in [(59_500, false), (59_900, false), (60_000, true), (120_000, true)] {
        run.go_on(at_ms * MS);
        let (width_ns, before) = (run.store.timeline().slice_ns(), run.look(at_ms * MS));
        run.idle(if at_ms < 100_000 { 60 * S } else { 120 * S });
        let (merged_ns, after) = (run.store.timeline().slice_ns(), run.look(at_ms * MS));
        assert_eq!(merged_ns, if at_ms == 59_900 || at_ms == 60_000 { 200 * MS } else { 2 * width_ns });
        assert_eq!(before.2, after.2, "{at_ms}");
        if is_exact {
            assert_eq!((&before.0, &before.1), (&after.0, &after.1), "{at_ms}");
        }
        for (one, other) in before.0.intervals.iter().zip(&after.0.intervals) {
            let (one, other) = (one.relative_half_width().unwrap(), other.relative_half_width().unwrap());
            assert!((one / other - 1.0).abs() < 0.1, "{at_ms}: {one} {other}");
        }
        let steadiness = |run: &Run| {
            let window = RunTimes { end_ns: run.started.measure_ns + at_ms * MS, ..run.started };
            change_point::check(&Steadiness::of(&run.plan, &run.store, &window, &[])).status
                == CheckStatus::Ok
        };
        assert!(steadiness(&run), "{at_ms}");
    }
}

#[test]
fn a_run_with_too_little_data_goes_on() {
    // A thousandth of 10 000 requests a second: 40 lie above p99.9 at the last look, 60 when the time is up.
    let mut run = Run::new("until = 'p99.9=50%,max=6s'\ntime = '1s'", 10_000, 0);
    let mut convergence = Convergence::of(&run.plan).unwrap();
    for tenth in 1..=60 {
        run.go_on(tenth * 100 * MS);
        assert!(!run.is_enough(&mut convergence), "after {tenth} tenths");
    }
    let looked = run.end(convergence);
    assert_eq!((looked.taken, looked.looks, looked.enough_at_ns()), (3, 3, None));
    let text = looked.to_string();
    assert!(text.starts_with("reached when the time was up; p99.9=50%: "), "{text}");
    assert_eq!(looked.look.unjudged, [], "of 6 s everything is judged: {text}");
}

#[test]
fn a_late_client_prevents_the_end() {
    let mut run = Run::new("until = 'p99=50%,max=3s'\ntime = '1s'", 10_000, 200_000);
    let mut convergence = Convergence::of(&run.plan).unwrap();
    run.go_on(3 * S);
    assert!(!run.is_enough(&mut convergence));
    let looked = run.end(convergence);
    assert_eq!((looked.look.held_by.as_slice(), looked.is_reached()), (&[CheckId::Client][..], false));
    let text = looked.to_string();
    assert!(text.starts_with("not reached when the time was up; p99=50%: "), "{text}");
    assert!(text.contains("; held up by CLIENT"), "{text}");
}

#[test]
fn a_plan_without_a_precision_has_no_looks() {
    assert_eq!(Convergence::of(&Run::new("", 0, 0).plan), None);
}
