//! What several runs of one plan come to: the middle one, the range, and whether they agree.
//!
//! Not a confidence interval of one run (that knows nothing of the next). A server that was started again, or found its
//! memory laid out in another way, may be another server: runs differ by more than their own intervals allow. Then no run
//! speaks for the others, and the range is what there is to say. Percentiles of runs are compared, never averaged: of an even
//! number of runs the median is the upper one of the two in the middle.

use crate::median::upper_median_of_sorted;

/// One run's number with the half-width of its 95 % confidence interval, where it has one.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Estimate {
    /// The number.
    pub value: f64,
    /// Half the width of its interval; `None` where there is none to rely on.
    pub half_width: Option<f64>,
}

/// How many standard errors the half of a 95 % interval is.
const NORMAL_975: f64 = 1.96;
/// Hysteresis: more than this part of what the runs differ by is not explained by their own intervals …
pub(crate) const I2_MAX: f64 = 0.5;
/// … and the range is more than this part of the median.
pub(crate) const RANGE_MAX: f64 = 0.05;

/// Runs that lie within this part of their median agree, whatever their intervals say.
pub const DISAGREEMENT_MIN: f64 = 0.10;
/// Where a run has no interval, all within this part do.
pub const DISAGREEMENT_MIN_WITHOUT: f64 = 0.50;

/// Do runs differ by more than their own intervals allow?
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Heterogeneity {
    /// Cochran's Q = Σ w (x − x̄_w)² with w = 1/s²: χ² with k − 1 degrees of freedom where all runs measure one number.
    pub q: f64,
    /// I² = max(0, (Q − (k − 1)) / Q): the part of Q that chance does not explain.
    pub i2: f64,
}

/// What one number of every run comes to.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Spread {
    /// How many runs have the number.
    pub runs: usize,
    /// The median.
    pub median: f64,
    /// The smallest.
    pub min: f64,
    /// The largest.
    pub max: f64,
    /// `None` where a run has no interval, or only one run has the number.
    pub heterogeneity: Option<Heterogeneity>,
    /// Does the interval of each run meet that of each other? `None` where a run has none.
    pub do_intervals_meet: Option<bool>,
}

impl Spread {
    /// Of the numbers of all runs; `None` where there are none.
    pub fn of(estimates: &[Estimate]) -> Option<Self> {
        let mut values: Vec<f64> = estimates.iter().map(|estimate| estimate.value).collect();
        values.sort_by(f64::total_cmp);
        Some(Self {
            runs: values.len(),
            median: upper_median_of_sorted(&values)?,
            min: *values.first()?,
            max: *values.last()?,
            heterogeneity: heterogeneity(estimates),
            do_intervals_meet: do_intervals_meet(estimates),
        })
    }

    /// How likely the median of all runs there could be lies between the smallest and the largest of these:
    /// 1 − 2 · 0.5^k, for it lies outside only where all k are on one side of it.
    pub fn coverage(&self) -> f64 {
        1.0 - 2.0 * 0.5_f64.powi(self.runs as i32)
    }

    /// The range as a part of the median.
    pub fn relative_range(&self) -> f64 {
        if self.median == 0.0 { 0.0 } else { (self.max - self.min) / self.median.abs() }
    }

    /// Do the runs disagree: do they range over more than a tenth of their median, where the intervals of two of them do not meet? Where a
    /// run has no interval, over more than a half.
    pub fn disagrees(&self) -> bool {
        match self.do_intervals_meet {
            Some(true) => false,
            Some(false) => self.relative_range() > DISAGREEMENT_MIN,
            None => self.relative_range() > DISAGREEMENT_MIN_WITHOUT,
        }
    }

    /// Do the runs disagree by more than their own intervals allow, and by enough to matter?
    pub fn disagrees(&self) -> bool {
        self.heterogeneity.is_some_and(|found| found.i2 > I2_MAX) && self.relative_range() > RANGE_MAX
    }
}

/// Intervals meet where the highest lower end is no higher than the lowest upper end.
fn do_intervals_meet(estimates: &[Estimate]) -> Option<bool> {
    let (mut highest_low, mut lowest_high) = (f64::NEG_INFINITY, f64::INFINITY);
    for Estimate { value, half_width } in estimates {
        let half_width = (*half_width)?;
        highest_low = highest_low.max(value - half_width);
        lowest_high = lowest_high.min(value + half_width);
    }
    Some(highest_low <= lowest_high)
}

fn heterogeneity(estimates: &[Estimate]) -> Option<Heterogeneity> {
    let weight = |estimate: &Estimate| {
        let half_width = estimate.half_width.filter(|width| *width > 0.0 && width.is_finite())?;
        Some((NORMAL_975 / half_width).powi(2))
    };
    let weights: Vec<f64> = estimates.iter().map(weight).collect::<Option<_>>()?;
    if weights.len() < 2 {
        return None;
    }
    let pairs = || weights.iter().zip(estimates);
    let mean =
        pairs().map(|(weight, estimate)| weight * estimate.value).sum::<f64>() / weights.iter().sum::<f64>();
    let q: f64 = pairs().map(|(weight, estimate)| weight * (estimate.value - mean).powi(2)).sum();
    let freedom = (weights.len() - 1) as f64;
    let i2 = if q > freedom { (q - freedom) / q } else { 0.0 };
    Some(Heterogeneity { q, i2 })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spread(values: &[f64], half_width: Option<f64>) -> Spread {
        let estimates: Vec<Estimate> = values.iter().map(|&value| Estimate { value, half_width }).collect();
        Spread::of(&estimates).unwrap()
    }

    #[test]
    fn median_range_and_coverage() {
        let found = spread(&[5.0, 1.0, 3.0], None);
        assert_eq!((found.runs, found.median, found.min, found.max), (3, 3.0, 1.0, 5.0));
        assert_eq!(found.heterogeneity, None);
        assert_eq!(spread(&[4.0, 1.0, 3.0, 2.0], None).median, 3.0);
        assert_eq!(Spread::of(&[]), None);
        let coverage = |runs: usize| spread(&vec![1.0; runs], None).coverage();
        let expected = [(1, 0.0), (2, 0.5), (4, 0.875), (5, 0.9375), (6, 0.96875), (8, 0.9921875)];
        for (runs, covered) in expected {
            assert_eq!(coverage(runs), covered, "{runs}");
        }
    }

    /// Values of runs, half the width of their intervals → do they disagree?
    #[test]
    fn runs_disagree_where_their_range_is_large_and_two_intervals_do_not_meet() {
        let table: [(&[f64], Option<f64>, bool); 9] = [
            (&[100.0, 110.0], Some(1.0), false),
            (&[100.0, 112.0], Some(1.0), true),
            (&[100.0, 112.0], Some(6.0), false),
            (&[100.0, 112.0, 124.0], Some(7.0), true),
            (&[100.0, 150.0], None, false),
            (&[100.0, 210.0], None, true),
            // The same system four times, and its p50 over a factor of 247.
            (&[0.031, 0.5, 2.0, 7.66], None, true),
            (&[0.031, 0.5, 2.0, 7.66], Some(0.01), true),
            (&[100.0], None, false),
        ];
        for (values, half_width, expected) in table {
            assert_eq!(spread(values, half_width).disagrees(), expected, "{values:?} {half_width:?}");
        }
    }

    #[test]
    fn agreeing_and_disagreeing_runs() {
        // Standard error 1 each: Q = Σ (x − x̄)².
        let found = spread(&[99.0, 100.0, 101.0], Some(1.96)).heterogeneity.unwrap();
        assert!((found.q - 2.0).abs() < 1e-9 && found.i2 == 0.0, "{found:?}");
        let found = spread(&[90.0, 100.0, 110.0], Some(1.96));
        let Heterogeneity { q, i2 } = found.heterogeneity.unwrap();
        assert!((q - 200.0).abs() < 1e-9 && (i2 - 0.99).abs() < 1e-9, "{q} {i2}");
        assert!(found.disagrees());
        // As certain, but the range is 4 % of the median: nobody needs to care.
        assert!(!spread(&[98.0, 100.0, 102.0], Some(0.1)).disagrees());
        // The range is wide, but so is every interval.
        assert!(!spread(&[90.0, 100.0, 110.0], Some(30.0)).disagrees());
        // Without intervals nothing is known of it.
        assert!(!spread(&[90.0, 100.0, 110.0], None).disagrees());
        assert_eq!(spread(&[90.0, 100.0], Some(0.0)).heterogeneity, None);
    }

    /// The weight of a run is its certainty: x̄_w = (1·10 + 4·20) / 5 = 18, Q = 1·64 + 4·4 = 80.
    #[test]
    fn a_narrower_interval_weighs_more() {
        let estimates =
            [(10.0, 1.96), (20.0, 0.98)].map(|(value, half)| Estimate { value, half_width: Some(half) });
        let found = Spread::of(&estimates).unwrap().heterogeneity.unwrap();
        assert!((found.q - 80.0).abs() < 1e-9 && (found.i2 - 79.0 / 80.0).abs() < 1e-9, "{found:?}");
    }

    /// Runs that measure one number with normal errors: I² above a half is rare, as χ² has it. With k = 6 it takes Q > 10,
    /// which χ²₅ exceeds with 7.5 %; the errors are drawn from a fixed sequence.
    #[test]
    fn agreement_is_called_hysteresis_no_more_often_than_chance_does() {
        let mut state = 1u64;
        let mut uniform = || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 11) as f64 / (1u64 << 53) as f64
        };
        let mut fired = 0;
        for _ in 0..2_000 {
            // The sum of twelve uniforms less six has a standard deviation of 1.
            let values: Vec<f64> =
                (0..6).map(|_| 100.0 + (0..12).map(|_| uniform()).sum::<f64>() - 6.0).collect();
            fired += u32::from(spread(&values, Some(1.96)).heterogeneity.unwrap().i2 > I2_MAX);
        }
        assert!((80..220).contains(&fired), "{fired} of 2000, expected 150");
    }
}
