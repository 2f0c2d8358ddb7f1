//! The median, of which there are two for an even number of values.
//!
//! Not a percentile of requests: those are read from histograms. Invariant: both are a value that was given, or lie between two
//! that were.

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
}
