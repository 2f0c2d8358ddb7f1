//! How often the rules are right, over many seeds (T12 of docs/accuracy.md).
//!
//! A debug build, which is what the test command makes, takes fewer and shorter runs; a release build
//! (`cargo xtask replications`) takes as many as the statement needs. Seeds are fixed: a result changes with the code only.

use super::*;

const IS_FULL: bool = !cfg!(debug_assertions);

/// So many replications, with their seeds.
fn seeds(short: u64, full: u64) -> impl Iterator<Item = u64> {
    (1..=if IS_FULL { full } else { short }).map(|number| number * 7_919)
}

const STEADY: &dyn Fn(f64) -> f64 = &|_| 1.0;

/// A queue at ρ = 0.5 with a mean service time of 100 us, times `factor`.
fn queue<'a>(seconds: f64, service: &'a dyn Fn(f64) -> f64) -> Queue<'a> {
    Queue { rate: 5_000.0, service, hit_ratio: STEADY, seconds }
}

fn course(found: &Steadiness, series: Series) -> (Drift, Shift) {
    let held = found.series.iter().find(|held| held.series == series).unwrap();
    held.course.clone().unwrap()
}

/// What fires, by rule and series.
fn alarms(found: &Steadiness) -> Vec<String> {
    let mut alarms = Vec::new();
    for SeriesSteadiness { series, warm_up, course } in &found.series {
        let is_late = warm_up.as_ref().is_ok_and(|warm_up| warm_up.until_ns > 0);
        let (drifts, shifts) =
            course.as_ref().map_or((false, false), |(drift, shift)| (drift.fires, shift.fires));
        for (rule, fires) in [("WARM", is_late), ("DRIFT", drifts), ("SHIFT", shifts)] {
            if fires {
                alarms.push(format!("{rule} {}", series.name()));
            }
        }
    }
    alarms
}

/// Of a thousand runs of a queue that is in a steady state, at most 2 % may be said not to be. Of a hundred, the number is
/// binomial: with 2 % each, more than 6 come about in one of two hundred such tests.
#[test]
fn stationary_runs_raise_few_alarms() {
    let service: &dyn Fn(f64) -> f64 = &|_| 1e-4;
    let slow: &dyn Fn(f64) -> f64 = &|_| 1e-3;
    let hits: &dyn Fn(f64) -> f64 = &|_| 0.9;
    let (mut runs, mut alarmed, mut kinds) = (0, 0, std::collections::BTreeMap::<String, u32>::new());
    for (number, seed) in seeds(102, 1_000).enumerate() {
        let seconds = if IS_FULL { [10.0, 20.0, 30.0, 60.0][number % 4] } else { 10.0 };
        let open = |rate, service| Queue { rate, service, hit_ratio: hits, seconds }.run(seed).0;
        let (name, found) = match (number % 6, IS_FULL) {
            (0, _) => ("rho .5, 5 000/s", open(5_000.0, service)),
            (1, true) => ("rho .8, 8 000/s", open(8_000.0, service)),
            (2, _) | (1, false) => ("rho .5, 500/s", open(500.0, slow)),
            (3, _) => ("rho .8, 800/s", open(800.0, slow)),
            (4, _) => ("closed, 16 slots", closed_loop(16, if IS_FULL { 1e-4 } else { 2e-4 }, seconds, seed)),
            (_, _) => ("closed, 2 slots", closed_loop(2, 1e-3, seconds, seed)),
        };
        let alarms = alarms(&found);
        assert_eq!(alarms.is_empty(), found.is_steady());
        runs += 1;
        alarmed += u32::from(!alarms.is_empty());
        for alarm in alarms {
            *kinds.entry(format!("{name}: {alarm}")).or_default() += 1;
        }
    }
    println!("{alarmed} of {runs} stationary runs raise an alarm: {kinds:?}");
    let most = if IS_FULL { runs / 50 } else { 6 };
    assert!(alarmed <= most, "{alarmed} of {runs}: {kinds:?}");
}

#[test]
fn a_drift_of_a_fifth_is_found() {
    let service: &dyn Fn(f64) -> f64 = &|share| 1e-4 * (1.0 + 0.2 * f64::max(share, 0.0));
    let mut missed = 0_u64;
    for seed in seeds(6, 200) {
        let (found, ..) = queue(if IS_FULL { 60.0 } else { 20.0 }, service).run(seed);
        missed += u64::from(!course(&found, Series::P50).0.fires);
    }
    println!("DRIFT missed {missed} times");
    let most = u64::from(IS_FULL);
    assert!(missed <= most, "{missed}");
}

#[test]
fn a_step_at_half_is_found_with_its_time() {
    let seconds = if IS_FULL { 60.0 } else { 18.0 };
    let service: &dyn Fn(f64) -> f64 = &|share| if share < 0.5 { 1e-4 } else { 1.15e-4 };
    for seed in seeds(6, 200) {
        let (found, ..) = queue(seconds, service).run(seed);
        let (_, shift) = course(&found, Series::P50);
        let off_batches = (shift.at_ns as f64 / 1e9 - seconds / 2.0).abs() / (seconds / 30.0);
        assert!(shift.fires && off_batches <= 1.0 + 1e-9, "{seed}: {shift:?}");
        assert!((0.2..0.5).contains(&shift.change), "{shift:?}");
    }
}

/// With a mean service time s(t) the p99 is that of M/M/1, −ln 0.01 / (μ − λ) = 921 us for s = 100 us at ρ = 0.5.
#[test]
fn a_warm_up_is_found_and_the_p99_without_it_is_true() {
    let service: &dyn Fn(f64) -> f64 =
        &|share| 1e-4 * (1.0 + 0.6 * (-f64::max(share, 0.0) * 60.0 / 3.0).exp());
    let truth_ns = 100_f64.ln() / 5_000.0 * 1e9;
    for seed in seeds(2, 50) {
        let (found, store, _) = queue(60.0, service).run(seed);
        let beginning = found.beginning.clone().unwrap();
        let until_s = beginning.until_ns as f64 / 1e9;
        assert!((3.0..=15.0).contains(&until_s), "{until_s} s: {found:?}");
        let (.., row) = store.rows().next().unwrap();
        let whole_ns = row.latencies.response.quantile(Quantile::P99).unwrap() as f64;
        assert_eq!(beginning.with.p99_ns(), Some(whole_ns as u64));
        assert!(whole_ns > 1.06 * truth_ns, "the warm-up would have been seen: {whole_ns}");
        // 270 000 requests of which 300 depend on each other like one: a standard error of 1.2 %.
        let without_ns = beginning.without.p99_ns().unwrap() as f64;
        assert!((without_ns / truth_ns - 1.0).abs() < 0.05, "{without_ns} ns for {truth_ns} ns");
    }
}
