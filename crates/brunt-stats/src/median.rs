//! The median of values, of which there are two for an even number; and what several runs of one plan come to: the middle one, the range, and
//! whether they agree.
//!
//! Not a percentile of requests (those are read from histograms), and no confidence interval of one run (that knows nothing of the next). A
//! server that was started again, or found its memory laid out in another way, may be another server: runs differ by more than their own
//! intervals allow. Then no run speaks for the others, and the range is what there is to say. Percentiles of runs are compared, never
//! averaged: of an even number of runs the median is the upper one of the two in the middle.

use schemars::JsonSchema;
use serde::Serialize;

/// The value in the middle, of an even number the mean of the two there: for levels and differences that a statistic goes on to
/// compute with. `None` without values.
pub(crate) fn median(values: &[f64]) -> Option<f64> {
    let mut sorted = values.to_vec();
    sorted.sort_unstable_by(f64::total_cmp);
    median_of_sorted(&sorted)
}

/// The median of values in ascending order.
pub fn median_of_sorted(values: &[f64]) -> Option<f64> {
    let middle = values.len() / 2;
    let upper = *values.get(middle)?;
    if values.len().is_multiple_of(2) { Some(f64::midpoint(values[middle - 1], upper)) } else { Some(upper) }
}

/// The value in the middle of values that ascend, of an even number the upper one of the two there: for numbers of runs that a
/// person reads, because percentiles are never averaged. `None` without values.
pub(crate) fn upper_median_of_sorted(values: &[f64]) -> Option<f64> {
    values.get(values.len() / 2).copied()
}

/// One run's number with the half-width of its 95 % confidence interval, where it has one.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Estimate {
    /// The number.
    pub value: f64,
    /// Half the width of its interval; `None` where there is none to rely on.
    pub half_width: Option<f64>,
}

/// Runs that lie within this part of their median agree, whatever their intervals say.
pub(crate) const DISAGREEMENT_MIN: f64 = 0.10;
/// Where a run has no interval, all within this part do.
const DISAGREEMENT_MIN_WITHOUT: f64 = 0.50;

/// What one number of every run comes to.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Spread {
    /// How many runs have the number.
    pub runs: usize,
    /// Their median.
    pub median: f64,
    /// The smallest.
    pub min: f64,
    /// The largest.
    pub max: f64,
    /// Probability that `[min, max]` holds the median of all possible runs: 1 − 2 · 0.5^k, for it lies outside only where all k are on one
    /// side of it.
    pub coverage: f64,
    /// Do they disagree, as REPEAT judges it: do they range over more than a tenth of their median, where the intervals of two of them do not
    /// meet? Where a run has no interval, over more than a half.
    pub disagrees: bool,
}

impl Spread {
    /// Of the numbers of all runs; `None` where there are none.
    pub fn of(estimates: &[Estimate]) -> Option<Self> {
        let mut values: Vec<f64> = estimates.iter().map(|estimate| estimate.value).collect();
        values.sort_by(f64::total_cmp);
        let mut spread = Self {
            runs: values.len(),
            median: upper_median_of_sorted(&values)?,
            min: *values.first()?,
            max: *values.last()?,
            coverage: 1.0 - 2.0 * 0.5_f64.powi(values.len() as i32),
            disagrees: false,
        };
        spread.disagrees = match do_intervals_meet(estimates) {
            Some(true) => false,
            Some(false) => spread.relative_range() > DISAGREEMENT_MIN,
            None => spread.relative_range() > DISAGREEMENT_MIN_WITHOUT,
        };
        Some(spread)
    }

    /// The range as a part of the median.
    pub fn relative_range(&self) -> f64 {
        if self.median == 0.0 { 0.0 } else { (self.max - self.min) / self.median.abs() }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn medians() {
        let table: [(&[f64], Option<f64>, Option<f64>); 4] = [
            (&[], None, None),
            (&[3.0], Some(3.0), Some(3.0)),
            (&[4.0, 1.0, 3.0, 2.0], Some(2.5), Some(3.0)),
            (&[5.0, 1.0, 3.0], Some(3.0), Some(3.0)),
        ];
        for (values, expected, expected_upper) in table {
            let mut sorted = values.to_vec();
            sorted.sort_by(f64::total_cmp);
            assert_eq!(median(values), expected, "{values:?}");
            assert_eq!(
                (median_of_sorted(&sorted), upper_median_of_sorted(&sorted)),
                (expected, expected_upper)
            );
        }
    }

    fn spread(values: &[f64], half_width: Option<f64>) -> Spread {
        let estimates: Vec<Estimate> = values.iter().map(|&value| Estimate { value, half_width }).collect();
        Spread::of(&estimates).unwrap()
    }

    #[test]
    fn median_range_and_coverage() {
        let found = spread(&[5.0, 1.0, 3.0], None);
        assert_eq!((found.runs, found.median, found.min, found.max), (3, 3.0, 1.0, 5.0));
        assert_eq!(spread(&[4.0, 1.0, 3.0, 2.0], None).median, 3.0);
        assert_eq!(Spread::of(&[]), None);
        let coverage = |runs: usize| spread(&vec![1.0; runs], None).coverage;
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
            assert_eq!(spread(values, half_width).disagrees, expected, "{values:?} {half_width:?}");
        }
    }
}
