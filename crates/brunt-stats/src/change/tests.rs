//! The tests of a change: exact probabilities, what is found of simulated runs, and how often equal servers are said to differ.
//!
//! Spreads are those of `recorded_runs.txt`, whose head says how they were made. Invariant: every draw is seeded.

use super::*;
use crate::simulated_run::Random;

/// Both sides are the same for a client that adds nothing.
fn exact(values: &[f64]) -> Vec<Option<RunValue>> {
    values.iter().map(|value| Some(RunValue { value: *value, least: *value })).collect()
}

/// Runs with this part of their values as the client's part.
fn shared(values: &[f64], part: f64) -> Vec<Option<RunValue>> {
    let of = |value: &f64| Some(RunValue { value: *value, least: value * (1.0 - part) });
    values.iter().map(of).collect()
}

fn latency(a: &[f64], b: &[f64]) -> Samples {
    Samples { scale: ChangeScale::Ratio, is_slower_above: true, a: exact(a), b: exact(b) }
}

fn decided(design: Design, samples: &Samples) -> Change {
    let [change] = Change::decided(design, [samples]);
    change
}

fn draws(seed: u64) -> impl FnMut() -> f64 {
    let mut random = Random(seed);
    move || random.unit()
}

/// A choice of so many of the indices below `all`, in random order.
fn chosen(draw: &mut impl FnMut() -> f64, all: usize, count: usize) -> Vec<usize> {
    let mut indices: Vec<usize> = (0..all).collect();
    (0..count).for_each(|taken| {
        let other = taken + (draw() * (all - taken) as f64) as usize;
        indices.swap(taken, other);
    });
    indices.truncate(count);
    indices
}

/// 2 / C(8, 4), 2 / C(10, 5), 2 / C(12, 6); and 2 / 2ⁿ.
#[test]
fn the_smallest_p_is_two_of_all_divisions() {
    let table = [
        (Design::Apart, 3, 0.1),
        (Design::Apart, 4, 2.0 / 70.0),
        (Design::Apart, 5, 2.0 / 252.0),
        (Design::Apart, 6, 2.0 / 924.0),
        (Design::Pairs, 5, 2.0 / 32.0),
        (Design::Pairs, 8, 2.0 / 256.0),
        (Design::Pairs, 16, 2.0 / 65_536.0),
    ];
    for (design, runs, expected) in table {
        let a: Vec<f64> = (0..runs).map(f64::from).collect();
        let b: Vec<f64> = (0..runs).map(|run| 100.0 + 1.1 * f64::from(run)).collect();
        let p = [(&a, &b), (&b, &a)].map(|(a, b)| Test::of(design, a, b).probability());
        assert_eq!(p, [expected; 2], "{design:?} {runs}");
        assert_eq!(Test::of(design, &a, &a).probability(), 1.0);
    }
}

/// With fewer runs no p reaches a third of the level, with these it does.
#[test]
fn a_difference_can_be_found_from_so_many_runs_on() {
    for design in Design::ALL {
        let needed = runs_needed(design);
        for (runs, is_found) in [(needed - 1, false), (needed, true)] {
            let side = |factor: f64| (0..runs).map(|run| factor * (100.0 + run as f64)).collect::<Vec<_>>();
            let (p50, same) = (latency(&side(1.0), &side(2.0)), latency(&side(1.0), &side(1.0)));
            let [p50, ..] = Change::decided(design, [&p50, &same, &same]);
            let expected = if is_found { Finding::Slower } else { Finding::Undecided };
            assert_eq!(p50.finding, Some(expected), "{design:?} {runs}");
            assert_eq!(p50.reason, (!is_found).then_some(Reason::TooFewRuns));
        }
    }
}

/// p by listing every division of the pooled runs, and every choice of pairs to turn round.
fn listed(design: Design, a: &[f64], b: &[f64]) -> f64 {
    let runs = if design == Design::Pairs { a.len() } else { a.len() + b.len() };
    let pooled: Vec<f64> = a.iter().chain(b).copied().collect();
    let statistic = |set: u32| -> f64 {
        if design == Design::Pairs {
            let turned = |index: usize| if set >> index & 1 == 1 { -1.0 } else { 1.0 };
            return (0..runs).map(|index| turned(index) * (b[index] - a[index])).sum();
        }
        let is_a = |index: &usize| set >> index & 1 == 1;
        let wins = (0..runs)
            .filter(is_a)
            .flat_map(|one| (0..runs).filter(|other| !is_a(other)).map(move |other| (one, other)));
        wins.filter(|(one, other)| pooled[*other] > pooled[*one]).count() as f64
    };
    let observed = statistic(if design == Design::Pairs { 0 } else { (1 << a.len()) - 1 });
    let (mut above, mut below, mut all) = (0.0, 0.0, 0.0);
    for set in 0..1u32 << runs {
        if design == Design::Apart && set.count_ones() as usize != a.len() {
            continue;
        }
        all += 1.0;
        above += f64::from(u8::from(statistic(set) >= observed - 1e-9));
        below += f64::from(u8::from(statistic(set) <= observed + 1e-9));
    }
    (2.0 * f64::min(above, below) / all).min(1.0)
}

#[test]
fn p_matches_the_enumeration_of_all_divisions() {
    let mut draw = draws(3);
    for (design, runs_a, runs_b) in [
        (Design::Apart, 4, 4),
        (Design::Apart, 5, 4),
        (Design::Apart, 4, 6),
        (Design::Pairs, 6, 6),
        (Design::Pairs, 9, 9),
    ] {
        for _ in 0..5 {
            let mut side = |runs: usize| (0..runs).map(|_| draw()).collect::<Vec<_>>();
            let (a, b) = (side(runs_a), side(runs_b));
            let (found, expected) = (Test::of(design, &a, &b).probability(), listed(design, &a, &b));
            assert!((found - expected).abs() < 1e-12, "{a:?} {b:?}: {found} is not {expected}");
        }
    }
}

/// The differences between which the interval lies, for so many runs: published tables of Mann-Whitney have the critical value at 5 %,
/// two-sided.
#[test]
fn intervals_match_published_tables() {
    let table =
        [(4, 4, 0), (4, 5, 1), (5, 5, 2), (6, 6, 5), (8, 8, 13), (10, 10, 23), (6, 10, 11), (20, 20, 127)];
    for (runs_a, runs_b, critical) in table {
        // Sides whose differences are all numbers from 0 on.
        let a: Vec<f64> = (0..runs_a).map(|run| -f64::from(run)).collect();
        let b: Vec<f64> = (0..runs_b).map(|run| f64::from(run * runs_a)).collect();
        let interval = Test::of(Design::Apart, &a, &b).interval(LEVEL).unwrap();
        let expected = [critical, runs_a * runs_b - 1 - critical].map(f64::from);
        assert_eq!(interval, expected, "{runs_a} {runs_b}");
    }
}

/// Each is held against the level by so many tests that are left, up to the first that fails.
#[test]
fn levels_are_holms() {
    let [half, third] = [LEVEL / 2.0, LEVEL / 3.0];
    let table = [
        ([0.001, 0.02, 0.04], [third, half, LEVEL]),
        ([0.04, 0.001, 0.03], [half, third, half]),
        ([0.001, 0.04, 0.02], [third, LEVEL, half]),
        ([0.02, 0.02, 0.02], [third; 3]),
        ([0.01, 0.01, 0.01], [third; 3]),
        ([1.0; 3], [third; 3]),
    ];
    for (probabilities, expected) in table {
        assert_eq!(levels(probabilities), expected, "{probabilities:?}");
    }
}

#[test]
fn a_change_is_estimated_by_the_median() {
    let (a, b) = ([100.0, 102.0, 104.0, 98.0], [112.0, 114.24, 116.48, 109.76]);
    let slower = Change::shown(Design::Apart, &latency(&a, &b));
    assert_eq!((slower.a, slower.b, slower.finding), (Some(101.0), Some(113.12), None));
    assert!((slower.change.unwrap() - 0.12).abs() < 1e-9, "{slower:?}");
    let [low, high] = slower.interval.unwrap();
    assert!((low - (109.76 / 104.0 - 1.0)).abs() < 1e-12 && (high - (116.48 / 98.0 - 1.0)).abs() < 1e-12);
    // The ratio of each pair is the same.
    let pairs = Change::shown(Design::Pairs, &latency(&a.repeat(2), &b.repeat(2)));
    let ends = [pairs.interval.unwrap(), [pairs.change.unwrap(); 2]].concat();
    assert!(ends.iter().all(|end| (end - 0.12).abs() < 1e-9), "{pairs:?}");
    let shares = Samples { scale: ChangeScale::Difference, ..latency(&[0.5; 4], &[0.25; 4]) };
    assert_eq!(Change::shown(Design::Apart, &shares).change, Some(-0.25));
    assert_eq!(Change::shown(Design::Apart, &latency(&[2.0], &[3.0])).interval, None);
}

#[test]
fn findings() {
    let near = [100.0, 101.0, 99.0, 100.5, 100.2, 99.5, 100.7, 100.1];
    let spread = [60.0, 140.0, 90.0, 115.0, 85.0, 122.0, 70.0, 130.0];
    let times = |factor: f64| near.map(|value| value * factor);
    let with_zero = [&[0.0], &near[1..]].concat();
    type Case<'a> = (&'a [f64], bool, Finding, Option<Reason>);
    let table: [Case<'_>; 9] = [
        (&near, true, Finding::Same, None),
        (&times(1.03), true, Finding::Same, None),
        (&times(1.12), true, Finding::Slower, None),
        (&times(0.88), true, Finding::Faster, None),
        (&times(1.12), false, Finding::Faster, None),
        (&times(0.88), false, Finding::Slower, None),
        (&near[..7], true, Finding::Undecided, Some(Reason::TooFewRuns)),
        (&with_zero, true, Finding::Undecided, Some(Reason::NotGiven)),
        (&spread, true, Finding::Undecided, Some(Reason::Spread { detectable: 0.0 })),
    ];
    for (b, is_slower_above, expected, reason) in table {
        for design in Design::ALL {
            let a = if b.len() < near.len() { &near[..3] } else { &near[..] };
            let b = if b.len() < near.len() { &b[..3] } else { b };
            let change = decided(design, &Samples { is_slower_above, ..latency(a, b) });
            assert_eq!(change.finding, Some(expected), "{design:?} {change:?}");
            let found = change.reason.map(|reason| std::mem::discriminant(&reason));
            assert_eq!(found, reason.map(|reason| std::mem::discriminant(&reason)), "{change:?}");
        }
    }
    let mut missing = latency(&near, &near);
    missing.a[3] = None;
    let change = decided(Design::Pairs, &missing);
    assert_eq!((change.a, change.reason), (None, Some(Reason::NotGiven)));
}

/// B is measured 20 % slower, or faster, and what the client added to either side is taken from both.
#[test]
fn a_difference_that_is_the_clients_is_undecided() {
    let a = [100.0, 101.0, 102.0, 103.0, 100.5, 101.5, 102.5, 100.2];
    let table = [
        (1.20, 0.0, 0.0, Finding::Slower),
        // As much on both sides.
        (1.20, 0.4, 0.4, Finding::Slower),
        (1.20, 0.0, 0.16, Finding::Slower),
        (1.20, 0.0, 0.17, Finding::Undecided),
        // A's part is no excuse for a slower B.
        (1.20, 0.9, 0.0, Finding::Slower),
        (1.20, 1.0, 1.0, Finding::Undecided),
        (0.80, 0.19, 0.0, Finding::Faster),
        (0.80, 0.21, 0.0, Finding::Undecided),
        (0.80, 0.0, 0.9, Finding::Faster),
        (1.005, 0.0, 0.5, Finding::Same),
    ];
    for (factor, part_a, part_b, expected) in table {
        let b = a.map(|value| value * factor);
        let samples = Samples { a: shared(&a, part_a), b: shared(&b, part_b), ..latency(&[], &[]) };
        let change = decided(Design::Pairs, &samples);
        assert_eq!(change.finding, Some(expected), "{factor} {part_a} {part_b}: {change:?}");
        let is_clients = expected == Finding::Undecided;
        assert_eq!(change.reason, is_clients.then_some(Reason::Client));
        // The numbers are those of what was measured.
        let measured = decided(Design::Pairs, &latency(&a, &b));
        assert_eq!((change.change, change.interval), (measured.change, measured.interval));
    }
}

/// How often equal sides are said to differ, and how often the interval covers the true change, over many trials: for values that are all
/// different both are known exactly.
#[test]
fn equal_sides_seldom_differ_and_intervals_cover() {
    const TRIALS: u32 = 4_000;
    let mut draw = draws(11);
    // Run values with a heavy tail, as p99s of runs have it; B is 1.3 times as slow in one pass.
    let mut run = |factor: f64| factor * (1.0 - draw()).powf(-0.2);
    // So many of all divisions, or choices of pairs, are as uneven as the critical value.
    let table = [
        (Design::Apart, 4, 4, 1.0, 2.0 / 70.0),
        (Design::Apart, 6, 6, 1.0, 38.0 / 924.0),
        (Design::Apart, 6, 6, 1.3, 38.0 / 924.0),
        (Design::Apart, 4, 7, 1.0, 14.0 / 330.0),
        (Design::Pairs, 6, 6, 1.0, 2.0 / 64.0),
        (Design::Pairs, 8, 8, 1.0, 12.0 / 256.0),
        (Design::Pairs, 8, 8, 1.3, 12.0 / 256.0),
    ];
    for (design, runs_a, runs_b, ratio, level) in table {
        let (mut differ, mut missed) = (0u32, 0u32);
        for _ in 0..TRIALS {
            let mut side = |runs: usize, factor: f64| (0..runs).map(|_| run(factor).ln()).collect::<Vec<_>>();
            let (a, b) = (side(runs_a, 1.0), side(runs_b, ratio));
            let test = Test::of(design, &a, &b);
            let [low, high] = test.interval(LEVEL).unwrap();
            assert_eq!(test.probability() <= LEVEL, low > 0.0 || high < 0.0);
            differ += u32::from(test.probability() <= LEVEL);
            missed += u32::from(!(low..=high).contains(&ratio.ln()));
        }
        let slack = 4.0 * (level * (1.0 - level) / f64::from(TRIALS)).sqrt();
        let part = |number: u32| f64::from(number) / f64::from(TRIALS);
        let case = format!("{design:?} {runs_a} {ratio}: {} differ, {} missed", part(differ), part(missed));
        assert!(level <= LEVEL && (part(missed) - level).abs() < slack, "{case}");
        if ratio == 1.0 {
            assert_eq!(differ, missed, "{case}");
        } else {
            assert!(part(differ) > 0.3, "{case}");
        }
    }
}

/// Choices are drawn from 17 pairs on, the same ones each time.
#[test]
fn fifty_runs_a_side_are_compared() {
    let mut draw = draws(5);
    let mut side = |factor: f64| (0..RUNS_MAX).map(|_| factor * (0.95 + 0.1 * draw())).collect::<Vec<_>>();
    let (a, same, slower) = (side(1.0), side(1.0), side(1.1));
    for design in Design::ALL {
        assert_eq!(decided(design, &latency(&a, &same)).finding, Some(Finding::Same), "{design:?}");
        let change = decided(design, &latency(&a, &slower));
        assert_eq!(change.finding, Some(Finding::Slower), "{change:?}");
        let [low, high] = change.interval.unwrap();
        assert!(low > 0.07 && high < 0.13, "{change:?}");
        assert_eq!(change, decided(design, &latency(&a, &slower)));
    }
}

/// The change that is named as the smallest that so many runs could find is found by as many other runs of the same spread in most cases.
#[test]
fn the_change_that_is_named_is_found() {
    const TRIALS: u32 = 400;
    let mut random = Random(17);
    let mut run = || 1.0 + 0.06 * random.normal();
    for (design, runs) in [(Design::Pairs, 8), (Design::Pairs, 10), (Design::Apart, 8)] {
        let (mut named, mut found) = (0, 0);
        for _ in 0..TRIALS {
            let mut side = |factor: f64| (0..runs).map(|_| factor * run()).collect::<Vec<_>>();
            let (a, b) = (side(1.0), side(1.0));
            let Some(Reason::Spread { detectable }) = decided(design, &latency(&a, &b)).reason else {
                continue;
            };
            named += 1;
            let (a, b) = (side(1.0), side(1.0 + detectable));
            found += u32::from(decided(design, &latency(&a, &b)).finding == Some(Finding::Slower));
        }
        let part = f64::from(found) / f64::from(named);
        assert!(named > TRIALS / 2 && part > 0.8, "{design:?} {runs}: {part} of {named}");
    }
}

/// A run of `recorded_runs.txt`.
#[derive(Clone, Copy, Debug)]
struct RecordedRun {
    p50: RunValue,
    p99: RunValue,
    done: RunValue,
}

/// The runs of a host in the order in which they were made, two of each pair.
fn recorded(host: &str, pairs: std::ops::RangeInclusive<usize>) -> Vec<RecordedRun> {
    let run = |line: &str| {
        let mut words = line.split_whitespace();
        let is_wanted = words.next() == Some(host) && pairs.contains(&words.next().unwrap().parse().unwrap());
        let numbers: Vec<f64> = words.map(|word| word.parse().unwrap()).collect();
        let value = |number: f64| RunValue { value: number, least: number };
        is_wanted.then(|| RecordedRun {
            p50: RunValue { value: numbers[0], least: numbers[3] },
            p99: value(numbers[1]),
            done: value(numbers[2]),
        })
    };
    let lines = include_str!("recorded_runs.txt").lines().filter(|line| !line.starts_with('#'));
    let runs: Vec<RecordedRun> = lines.filter_map(run).collect();
    assert_eq!(runs.len(), 2 * pairs.count(), "{host}");
    runs
}

/// How the runs of a simulated comparison are drawn.
#[derive(Clone, Copy, Debug)]
enum Draw {
    /// Whole pairs, each turned round or not.
    Pairs,
    /// Any runs: what the runs of a pair share is in none of them.
    Runs,
}

/// Findings of p50, p99 and done/s of 8 runs against 8 of the same server, whose p50 is so many times as high on side B.
fn simulated(
    runs: &[RecordedRun],
    (design, kind): (Design, Draw),
    slower: f64,
    draw: &mut impl FnMut() -> f64,
) -> [Finding; 3] {
    let count = PAIRS as usize;
    let indices: Vec<usize> = match kind {
        Draw::Runs => chosen(draw, runs.len(), 2 * count),
        Draw::Pairs => chosen(draw, runs.len() / 2, count)
            .into_iter()
            .flat_map(|pair| if draw() < 0.5 { [2 * pair, 2 * pair + 1] } else { [2 * pair + 1, 2 * pair] })
            .collect(),
    };
    let samples = |is_slower_above: bool, of: fn(&RecordedRun) -> RunValue, factor: f64| {
        let side = |first: usize, factor: f64| -> Vec<_> {
            let values = indices.iter().skip(first).step_by(2).map(|index| of(&runs[*index]));
            values
                .map(|run| Some(RunValue { value: run.value * factor, least: run.least * factor }))
                .collect()
        };
        Samples { scale: ChangeScale::Ratio, is_slower_above, a: side(0, 1.0), b: side(1, factor) }
    };
    let (p50, p99) = (samples(true, |run| run.p50, slower), samples(true, |run| run.p99, 1.0));
    let done = samples(false, |run| run.done, 1.0);
    Change::decided(design, [&p50, &p99, &done]).map(|change| change.finding.unwrap())
}

const DRAWS: [(Design, Draw); 3] =
    [(Design::Pairs, Draw::Pairs), (Design::Pairs, Draw::Runs), (Design::Apart, Draw::Runs)];

/// Of 1 000 comparisons of a server with itself at most 5 % find a difference in any of the three quantities, on a quiet host and on a busy one.
#[test]
fn a_server_does_not_differ_from_itself() {
    let mut draw = draws(23);
    for host in ["quiet", "busy"] {
        let mut runs = recorded(host, 11..=20);
        // No difference is left out for being the client's.
        runs.iter_mut().for_each(|run| run.p50.least = run.p50.value);
        for how in DRAWS {
            let differs = |findings: [Finding; 3]| {
                findings.iter().any(|finding| matches!(finding, Finding::Slower | Finding::Faster))
            };
            let found = (0..1_000).filter(|_| differs(simulated(&runs, how, 1.0, &mut draw))).count();
            assert!(found <= 50, "{host} {how:?}: {found} of 1000 differ");
        }
    }
}

/// On the quiet host, whose runs spread by 4 % or less (standard deviation of the p50), a p50 that is 10 % higher is found in 90 % of
/// comparisons or more.
#[test]
fn a_tenth_is_found_on_a_quiet_host() {
    let runs = recorded("quiet", 11..=20);
    let logarithms: Vec<f64> = runs.iter().map(|run| run.p50.value.ln()).collect();
    let mean = logarithms.iter().sum::<f64>() / logarithms.len() as f64;
    let squares: f64 = logarithms.iter().map(|value| (value - mean).powi(2)).sum();
    let spread = (squares / (logarithms.len() - 1) as f64).sqrt();
    assert!(spread > 0.02 && spread <= 0.04, "{spread}");
    let mut draw = draws(29);
    for how in DRAWS {
        let is_found = |findings: [Finding; 3]| findings[0] == Finding::Slower;
        let found = (0..1_000).filter(|_| is_found(simulated(&runs, how, 1.1, &mut draw))).count();
        assert!(found >= 900, "{how:?}: {found} of 1000 find it");
    }
}
