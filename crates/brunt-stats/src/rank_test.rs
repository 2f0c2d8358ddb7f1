//! Do two sets of runs differ, and by how much? A rank test over the values of whole runs, exact for any number of them.
//!
//! Not a comparison of two runs by their own confidence intervals: these do not contain what differs from run to run (where
//! connections landed, how memory lies, what else the host did), which is often more than anything within a run. Without
//! assumptions on how the values are distributed: under the hypothesis that A and B are the same, each division of the
//! runs into two groups of these sizes is as likely as the other. What the client may have added to each value is not the
//! server's: a difference is one only if it remains with as much of that in A and as little in B as there may be, and the
//! other way round. Invariant, where no two values are equal: the interval excludes no change exactly where p is at most
//! [`LEVEL`].

use crate::bound::{Bounds, Decision, decide};
use crate::median::median_of_sorted;

/// Runs of a side below which nothing is claimed: with 3 against 3 the smallest p is 0.1, with 4 against 4 it is 0.029.
pub const RUNS_MIN: usize = 4;
/// Runs of a side at most. The counts of divisions stay far inside a float's range, and a test below a tenth of a second.
pub const RUNS_MAX: usize = 50;
/// So often two sides that are the same are said to differ, at most; 1 − this is the confidence of intervals.
pub const LEVEL: f64 = 0.05;
/// A change within this is no matter: where the whole interval lies inside, no difference is shown. A part of A's value for
/// ratios; a hundredth of it for shares, which differ in points.
pub const MARGIN: f64 = 0.05;

/// How values of a quantity are compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ChangeScale {
    /// As a ratio, because a server is slower by a percentage. Values must be above 0.
    Ratio,
    /// As a difference, because shares lie between 0 and 1.
    Difference,
}

brunt_plan::named! {
    /// What the runs show.
    pub enum TestResult {
        /// B is above A.
        Above = "above",
        /// B is below A.
        Below = "below",
        /// Whatever difference there is, is below [`MARGIN`], or none is seen and none above it is possible.
        NoneShown = "none_shown",
        /// The runs differ too much among themselves to show either.
        Undecided = "undecided",
        /// What was measured differs, but what the client may have added would decide.
        Client = "client",
        /// A side has fewer than [`RUNS_MIN`] runs.
        TooFewRuns = "too_few_runs",
        /// Some run does not give the value, or it is 0 where ratios are compared.
        NotGiven = "not_given",
    }
}

/// A quantity of one run.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RunValue {
    /// What was measured.
    pub value: f64,
    /// Between these it lies, whatever the client did and whatever became of requests without an answer; they hold the value.
    pub bounds: Bounds,
}

/// One quantity of two sets of runs.
#[derive(Clone, Debug, PartialEq)]
pub struct RankTest {
    /// The median of A's runs, of an even number the mean of the two in the middle. `None` where not every run gives it.
    pub a: Option<f64>,
    /// The median of B's runs.
    pub b: Option<f64>,
    /// By how much B is above A: as a part of A for ratios, so 0.12 is 12 % more, and else B − A. The Hodges-Lehmann estimate:
    /// the median over all pairs of a run of A and a run of B.
    pub change: Option<f64>,
    /// Confidence interval of the change; `None` with fewer than [`RUNS_MIN`] runs.
    pub interval: Option<[f64; 2]>,
    /// Where the change is whatever the client did: from the lower end of the interval of A at its highest and B at its lowest
    /// to the upper end of that of A at its lowest and B at its highest. Infinite where A may be 0; `None` without an interval.
    pub bounds: Option<Bounds>,
    /// How likely so uneven ranks are where A and B are the same; `None` where there is no interval.
    pub p: Option<f64>,
    /// What that shows.
    pub finding: TestResult,
}

impl RankTest {
    /// Compares the runs by what was measured and by the bounds of each. Each side has 1 to [`RUNS_MAX`] runs.
    pub fn of(scale: ChangeScale, a: &[Option<RunValue>], b: &[Option<RunValue>]) -> Self {
        let given = |side: &[Option<RunValue>]| {
            let is_usable = |held: &RunValue| {
                held.value.is_finite() && (scale == ChangeScale::Difference || held.value > 0.0)
            };
            side.iter().map(|held| held.filter(is_usable)).collect::<Option<Vec<RunValue>>>()
        };
        let median_of = |side: &[Option<RunValue>]| {
            let mut values = side.iter().map(|held| Some((*held)?.value)).collect::<Option<Vec<f64>>>()?;
            values.sort_by(f64::total_cmp);
            median_of_sorted(&values)
        };
        let (a_median, b_median) = (median_of(a), median_of(b));
        let nothing = Self {
            a: a_median,
            b: b_median,
            change: None,
            interval: None,
            bounds: None,
            p: None,
            finding: TestResult::NotGiven,
        };
        let (Some(a), Some(b)) = (given(a), given(b)) else { return nothing };
        if a.is_empty() || b.is_empty() {
            return nothing;
        }
        let (a, b) = (ScaledValues::of(scale, &a), ScaledValues::of(scale, &b));
        let from_scale = |shift: f64| match scale {
            ChangeScale::Ratio => shift.exp_m1(),
            ChangeScale::Difference => shift,
        };
        let change = median_of_sorted(&sorted_differences(&a.measured, &b.measured)).map(from_scale);
        if a.measured.len().min(b.measured.len()) < RUNS_MIN {
            return Self { change, finding: TestResult::TooFewRuns, ..nothing };
        }
        let measured = ExactTest::of(&a.measured, &b.measured);
        let extremes = [ExactTest::of(&a.highest, &b.lowest), ExactTest::of(&a.lowest, &b.highest)];
        let margin = if scale == ChangeScale::Ratio { MARGIN } else { MARGIN / 100.0 };
        let finding = finding(&measured, &extremes, margin);
        let [least, most] = extremes.map(|test| test.interval);
        let bounds = Bounds { low: from_scale(least[0]), high: from_scale(most[1]) };
        let interval = measured.interval.map(from_scale);
        Self {
            change,
            interval: Some(interval),
            bounds: Some(bounds),
            p: Some(measured.p),
            finding,
            ..nothing
        }
    }
}

/// The runs of a side on a scale on which changes are differences.
struct ScaledValues {
    measured: Vec<f64>,
    lowest: Vec<f64>,
    highest: Vec<f64>,
}

impl ScaledValues {
    fn of(scale: ChangeScale, runs: &[RunValue]) -> Self {
        // Ratios are differences of logarithms; ranks are the same. That of 0 is −∞, which is below all others.
        let to_scale = |value: f64| match scale {
            ChangeScale::Ratio => value.ln(),
            ChangeScale::Difference => value,
        };
        Self {
            measured: runs.iter().map(|held| to_scale(held.value)).collect(),
            lowest: runs.iter().map(|held| to_scale(held.bounds.low)).collect(),
            highest: runs.iter().map(|held| to_scale(held.bounds.high)).collect(),
        }
    }
}

/// The rank test of two sets of values, and the interval that belongs to it.
struct ExactTest {
    interval: [f64; 2],
    p: f64,
}

impl ExactTest {
    /// Each side has at least [`RUNS_MIN`] values.
    fn of(a: &[f64], b: &[f64]) -> Self {
        Self { interval: interval(&sorted_differences(a, b), a.len(), b.len()), p: probability(a, b) }
    }

    /// Does B lie above or below A? Where values are equal to each other, ranks and the interval may disagree; both must see it.
    fn direction(&self) -> Option<TestResult> {
        let [low, high] = self.interval;
        let is_decided = |is_met: fn(f64) -> bool| decide(Bounds { low, high }, is_met) == Decision::Holds;
        if self.p > LEVEL {
            None
        } else if is_decided(|change| change > 0.0) {
            Some(TestResult::Above)
        } else if is_decided(|change| change < 0.0) {
            Some(TestResult::Below)
        } else {
            None
        }
    }
}

/// `extremes`: A at its highest with B at its lowest, and A at its lowest with B at its highest.
fn finding(measured: &ExactTest, extremes: &[ExactTest; 2], margin: f64) -> TestResult {
    let [low, high] = measured.interval;
    match measured.direction() {
        Some(direction) if extremes.iter().all(|test| test.direction() == Some(direction)) => direction,
        Some(_) => TestResult::Client,
        None if low >= -margin && high <= margin => TestResult::NoneShown,
        None => TestResult::Undecided,
    }
}

/// b − a over all pairs, ascending.
fn sorted_differences(a: &[f64], b: &[f64]) -> Vec<f64> {
    let mut differences: Vec<f64> = b.iter().flat_map(|b| a.iter().map(move |a| b - a)).collect();
    differences.sort_by(f64::total_cmp);
    differences
}

/// The interval between the c-th smallest and the c-th largest difference, for the largest c with which it misses the shift
/// with probability [`LEVEL`] at most: P(U ≤ c − 1) ≤ LEVEL / 2, U the Mann-Whitney statistic.
fn interval(differences: &[f64], a: usize, b: usize) -> [f64; 2] {
    let distinct: Vec<usize> = (1..=a + b).map(|rank| 2 * rank).collect();
    let sums = sums_of_ranks(&distinct, a);
    let total: f64 = sums.iter().sum();
    // U is the sum of ranks less its least value; ranks are doubled, so that sums are even.
    let (mut below, mut c) = (0.0, 0);
    for count in sums.iter().skip(a * (a + 1)).step_by(2) {
        below += count;
        if below / total > LEVEL / 2.0 {
            break;
        }
        c += 1;
    }
    // With RUNS_MIN runs on each side c is at least 1.
    [differences[c - 1], differences[differences.len() - c]]
}

/// The exact probability, over all divisions of the pooled runs into groups of these sizes, that the sum of A's ranks is at
/// least as far from its mean as it is. Equal values share the mean of their ranks.
pub(crate) fn probability(a: &[f64], b: &[f64]) -> f64 {
    let pooled: Vec<f64> = a.iter().chain(b).copied().collect();
    let doubled_rank = |value: &f64| {
        let below = pooled.iter().filter(|other| *other < value).count();
        let equal = pooled.iter().filter(|other| *other == value).count();
        2 * below + equal + 1
    };
    let ranks: Vec<usize> = pooled.iter().map(doubled_rank).collect();
    let sums = sums_of_ranks(&ranks, a.len());
    let mean = a.len() * (pooled.len() + 1);
    let observed: usize = ranks[..a.len()].iter().sum();
    let as_far = |(sum, _): &(usize, &f64)| sum.abs_diff(mean) >= observed.abs_diff(mean);
    let far: f64 = sums.iter().enumerate().filter(as_far).map(|(_, count)| count).sum();
    far / sums.iter().sum::<f64>()
}

/// In how many ways `chosen` of the ranks have each sum, by dynamic programming over the ranks: no division is listed, so
/// 50 runs against 50 take no longer than a blink. Exact up to 2⁵³ ways, beyond that to the precision of a float.
fn sums_of_ranks(ranks: &[usize], chosen: usize) -> Vec<f64> {
    let highest: usize = {
        let mut sorted = ranks.to_vec();
        sorted.sort_unstable();
        sorted.iter().rev().take(chosen).sum()
    };
    let mut ways = vec![vec![0.0; highest + 1]; chosen + 1];
    ways[0][0] = 1.0;
    for rank in ranks {
        // From the most chosen down, so that no rank is chosen twice.
        for taken in (1..=chosen).rev() {
            let (fewer, more) = ways.split_at_mut(taken);
            for (to, from) in more[0][*rank..].iter_mut().zip(&fewer[taken - 1]) {
                *to += from;
            }
        }
    }
    ways.swap_remove(chosen)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn exact(value: f64) -> Option<RunValue> {
        Some(RunValue { value, bounds: Bounds::exact(value) })
    }

    fn some(values: &[f64]) -> Vec<Option<RunValue>> {
        values.iter().map(|value| exact(*value)).collect()
    }

    /// Runs with this part of their values as client error.
    fn shared(values: &[f64], part: f64) -> Vec<Option<RunValue>> {
        let of = |value: &f64| RunValue {
            value: *value,
            bounds: Bounds { low: value * (1.0 - part), high: *value },
        };
        values.iter().map(|value| Some(of(value))).collect()
    }

    /// A generator good enough to draw with: splitmix64, as numbers in [0, 1).
    fn draws(seed: u64) -> impl FnMut() -> f64 {
        let mut state = seed;
        move || {
            state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
            let mut bits = (state ^ (state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
            bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
            ((bits ^ (bits >> 31)) >> 11) as f64 / (1u64 << 53) as f64
        }
    }

    #[test]
    fn the_smallest_p_is_two_of_all_divisions() {
        // 2 / C(8, 4), 2 / C(10, 5), 2 / C(12, 6); and 5 % is out of reach below RUNS_MIN.
        for (runs, expected) in [(3, 0.1), (4, 2.0 / 70.0), (5, 2.0 / 252.0), (6, 2.0 / 924.0)] {
            let a: Vec<f64> = (0..runs).map(f64::from).collect();
            let b: Vec<f64> = (0..runs).map(|run| 100.0 + f64::from(run)).collect();
            assert_eq!((probability(&a, &b), probability(&b, &a)), (expected, expected), "{runs} runs");
        }
        assert_eq!(probability(&[1.0; 5], &[1.0; 6]), 1.0);
    }

    /// p by listing every division.
    fn listed(a: &[f64], b: &[f64]) -> f64 {
        let pooled: Vec<f64> = a.iter().chain(b).copied().collect();
        // Pairs won by the first group, ties half: what ranks add up to, counted in another way.
        let wins = |is_first: &dyn Fn(usize) -> bool| {
            let pairs = (0..pooled.len()).flat_map(|one| (0..pooled.len()).map(move |other| (one, other)));
            let between = pairs.filter(|(one, other)| is_first(*one) && !is_first(*other));
            let won = between.map(|(one, other)| match pooled[one].total_cmp(&pooled[other]) {
                std::cmp::Ordering::Greater => 2i64,
                std::cmp::Ordering::Equal => 1,
                std::cmp::Ordering::Less => 0,
            });
            (won.sum::<i64>() - (a.len() * b.len()) as i64).abs()
        };
        let observed = wins(&|index| index < a.len());
        let divisions = (0u32..1 << pooled.len()).filter(|set| set.count_ones() as usize == a.len());
        let (mut far, mut all) = (0, 0);
        for set in divisions {
            all += 1;
            far += u32::from(wins(&|index| set & (1 << index) != 0) >= observed);
        }
        f64::from(far) / f64::from(all)
    }

    #[test]
    fn p_matches_the_enumeration_of_all_divisions() {
        let mut draw = draws(3);
        for (runs_a, runs_b, values) in [(4, 4, 1e9), (4, 4, 3.0), (5, 4, 5.0), (4, 6, 1e9), (6, 5, 4.0)] {
            for _ in 0..5 {
                let mut side = |runs: usize| (0..runs).map(|_| (draw() * values).floor()).collect::<Vec<_>>();
                let (a, b) = (side(runs_a), side(runs_b));
                let (found, expected) = (probability(&a, &b), listed(&a, &b));
                assert!((found - expected).abs() < 1e-12, "{a:?} {b:?}: {found} is not {expected}");
            }
        }
    }

    /// The differences between which the interval lies, for so many runs: published tables of Mann-Whitney have the critical
    /// value c − 1 at 5 %, two-sided.
    #[test]
    fn intervals_match_published_tables() {
        let table = [
            (4, 4, 0),
            (4, 5, 1),
            (5, 5, 2),
            (6, 6, 5),
            (8, 8, 13),
            (10, 10, 23),
            (6, 10, 11),
            (20, 20, 127),
        ];
        for (runs_a, runs_b, critical) in table {
            let differences: Vec<f64> = (0..runs_a * runs_b).map(f64::from).collect();
            let [low, high] = interval(&differences, runs_a as usize, runs_b as usize);
            assert_eq!(
                (low, high),
                (f64::from(critical), f64::from(runs_a * runs_b - 1 - critical)),
                "{runs_a} {runs_b}"
            );
        }
    }

    #[test]
    fn a_change_is_estimated_by_the_median_of_all_pairs() {
        let a = some(&[100.0, 102.0, 104.0, 98.0]);
        let slower = RankTest::of(ChangeScale::Ratio, &a, &some(&[112.0, 114.24, 116.48, 109.76]));
        assert_eq!((slower.a, slower.b), (Some(101.0), Some(113.12)));
        assert!((slower.change.unwrap() - 0.12).abs() < 1e-9, "{slower:?}");
        let [low, high] = slower.interval.unwrap();
        assert!((low - (109.76 / 104.0 - 1.0)).abs() < 1e-12 && (high - (116.48 / 98.0 - 1.0)).abs() < 1e-12);
        assert_eq!((slower.p, slower.finding), (Some(2.0 / 70.0), TestResult::Above));
        let faster = RankTest::of(ChangeScale::Ratio, &some(&[112.0, 114.24, 116.48, 109.76]), &a);
        assert_eq!(faster.finding, TestResult::Below);
        let shares = RankTest::of(ChangeScale::Difference, &some(&[0.5; 4]), &some(&[0.25; 4]));
        assert_eq!((shares.change, shares.finding), (Some(-0.25), TestResult::Below));
    }

    #[test]
    fn findings() {
        let near = [100.0, 101.0, 99.0, 100.5];
        let spread = [60.0, 140.0, 90.0, 115.0];
        let table: &[(ChangeScale, &[f64], &[f64], TestResult)] = &[
            (ChangeScale::Ratio, &near, &[100.2, 99.5, 100.7, 101.5], TestResult::NoneShown),
            (ChangeScale::Ratio, &near, &spread, TestResult::Undecided),
            (ChangeScale::Ratio, &near, &[200.0, 201.0, 202.0, 203.0], TestResult::Above),
            (ChangeScale::Ratio, &near, &near, TestResult::NoneShown),
            (ChangeScale::Ratio, &[7.0; 4], &[7.0; 4], TestResult::NoneShown),
            (ChangeScale::Ratio, &near, &[200.0, 201.0, 202.0], TestResult::TooFewRuns),
            (ChangeScale::Ratio, &[1.0], &[2.0], TestResult::TooFewRuns),
            (ChangeScale::Ratio, &near, &[200.0, 201.0, 0.0, 203.0], TestResult::NotGiven),
            (ChangeScale::Difference, &[0.0; 4], &[0.0; 4], TestResult::NoneShown),
            (ChangeScale::Difference, &[0.9; 4], &[0.9004, 0.9003, 0.8998, 0.9], TestResult::NoneShown),
            (ChangeScale::Difference, &[0.9; 4], &[0.91, 0.90, 0.89, 0.9], TestResult::Undecided),
        ];
        for (scale, a, b, expected) in table {
            let test = RankTest::of(*scale, &some(a), &some(b));
            assert_eq!(test.finding, *expected, "{test:?}");
            let has_claim = !matches!(expected, TestResult::TooFewRuns | TestResult::NotGiven);
            assert_eq!((test.interval.is_some(), test.p.is_some()), (has_claim, has_claim));
        }
        let missing = RankTest::of(ChangeScale::Ratio, &[some(&[1.0])[0], None], &some(&[1.0]));
        assert_eq!((missing.a, missing.b, missing.finding), (None, Some(1.0), TestResult::NotGiven));
        assert_eq!(
            RankTest::of(ChangeScale::Ratio, &some(&[2.0]), &some(&[3.0])).change.map(|x| (x * 1e9).round()),
            Some(5e8)
        );
    }

    /// What the client may have added counts against A in one comparison and against B in the other; the tests of both must
    /// say what that of the measured values says. A differs by up to 3 % from run to run.
    #[test]
    fn differences_within_client_error_are_not_shown() {
        let a = [100.0, 101.0, 102.0, 103.0];
        let times = |factor: f64| a.map(|value| value * factor);
        // 1.20 · (1 − part) is above 1.03 up to a part of 0.1416, and 0.8 is below (1 − part) · 100/103 up to 0.176.
        let table = [
            (1.20, 0.0, 0.0, TestResult::Above),
            (1.20, 0.0, 0.14, TestResult::Above),
            (1.20, 0.0, 0.143, TestResult::Client),
            // A's share is no excuse for a slower B.
            (1.20, 0.9, 0.0, TestResult::Above),
            (1.20, 0.9, 0.143, TestResult::Client),
            (1.20, 0.0, 1.0, TestResult::Client),
            (0.80, 0.0, 0.0, TestResult::Below),
            (0.80, 0.17, 0.0, TestResult::Below),
            (0.80, 0.18, 0.0, TestResult::Client),
            (0.80, 0.0, 0.9, TestResult::Below),
            (0.80, 1.0, 0.0, TestResult::Client),
            // Nothing is seen: what is hidden behind the client is no difference that was shown.
            (1.005, 0.5, 0.5, TestResult::NoneShown),
            (1.019, 0.5, 0.5, TestResult::NoneShown),
            (1.021, 0.0, 0.0, TestResult::Undecided),
        ];
        for (factor, part_a, part_b, expected) in table {
            let (measured_a, measured_b) = (some(&a), some(&times(factor)));
            let test = RankTest::of(ChangeScale::Ratio, &shared(&a, part_a), &shared(&times(factor), part_b));
            let case = format!("{factor} {part_a} {part_b}: {test:?}");
            assert_eq!(test.finding, expected, "{case}");
            // The numbers are those of what was measured.
            let measured = RankTest::of(ChangeScale::Ratio, &measured_a, &measured_b);
            assert_eq!(
                (test.change, test.interval, test.p),
                (measured.change, measured.interval, measured.p)
            );
            assert_eq!((test.a, test.b), (measured.a, measured.b));
            // The ends, by taking the shares from all runs of one side.
            let ([low, high], bounds) = (measured.interval.unwrap(), test.bounds.unwrap());
            let is_near = |found: f64, expected: f64| found == expected || (found - expected).abs() < 1e-9;
            assert!(is_near(bounds.low, (1.0 + low) * (1.0 - part_b) - 1.0), "{case}");
            assert!(is_near(bounds.high, (1.0 + high) / (1.0 - part_a) - 1.0), "{case}");
        }
    }

    /// How often equal sides are said to differ, and how often the interval covers the true change, over many trials: for
    /// values that are all different both are known exactly, since every order of the runs is as likely as the other.
    #[test]
    fn equal_sides_seldom_differ_and_intervals_cover() {
        const TRIALS: u32 = 4_000;
        let mut draw = draws(11);
        // Run values with a heavy tail, as p99s of runs have it; B is 1.3 times as slow in one pass.
        let mut run = |factor: f64| exact(factor * (1.0 - draw()).powf(-0.2));
        // Of the divisions of 4 + 4, 6 + 6, 4 + 7 and 9 + 9 runs, so many are as uneven as the table's critical value.
        let table = [
            (4, 4, 1.0, 2.0 / 70.0),
            (6, 6, 1.0, 38.0 / 924.0),
            (6, 6, 1.3, 38.0 / 924.0),
            (4, 7, 1.0, 14.0 / 330.0),
            (9, 9, 1.0, 1_944.0 / 48_620.0),
        ];
        for (runs_a, runs_b, ratio, level) in table {
            let (mut differ, mut missed) = (0u32, 0u32);
            for _ in 0..TRIALS {
                let a: Vec<_> = (0..runs_a).map(|_| run(1.0)).collect();
                let b: Vec<_> = (0..runs_b).map(|_| run(ratio)).collect();
                let test = RankTest::of(ChangeScale::Ratio, &a, &b);
                let [low, high] = test.interval.unwrap();
                let is_change = matches!(test.finding, TestResult::Above | TestResult::Below);
                assert_eq!(is_change, test.p.unwrap() <= LEVEL, "{test:?}");
                assert_eq!(is_change, low > 0.0 || high < 0.0, "{test:?}");
                differ += u32::from(is_change);
                missed += u32::from(!(low..=high).contains(&(ratio - 1.0)));
            }
            let slack = 4.0 * (level * (1.0 - level) / f64::from(TRIALS)).sqrt();
            let part = |number: u32| f64::from(number) / f64::from(TRIALS);
            let case = format!("{runs_a} {runs_b} {ratio}: {} differ, {} missed", part(differ), part(missed));
            assert!(level <= LEVEL && (part(missed) - level).abs() < slack, "{case}");
            if ratio == 1.0 {
                assert_eq!(differ, missed, "{case}");
            } else {
                assert!(part(differ) > 0.3, "{case}");
            }
        }
    }

    #[test]
    fn fifty_runs_a_side_are_compared() {
        let side = |offset: usize| {
            (0..RUNS_MAX).map(|run| exact((1_000 + run * 2 + offset) as f64)).collect::<Vec<_>>()
        };
        let test = RankTest::of(ChangeScale::Ratio, &side(0), &side(1));
        assert_eq!(test.finding, TestResult::NoneShown);
        assert!(test.p.unwrap() > 0.8 && test.interval.unwrap()[0] < 0.0, "{test:?}");
    }
}
