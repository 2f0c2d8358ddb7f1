//! MSER: how much of the beginning of a series to leave out, so that the mean of the rest is known best.
//!
//! Not a test of significance: the rule finds the best place to cut, whether or not a cut is called for, and a single
//! burst in the first half is enough to make it cut everything before. Who uses it must ask whether the beginning is
//! different at all ([`super`] does). White, *Simulation* 69 (1997): with values averaged in fives it is MSER-5.

/// The number of values to drop: `d* = argmin (m − d)⁻² Σ_{j>d} (z_j − mean_{>d})²` over `0 ≤ d ≤ m/2`; of several the
/// smallest. 0 for a series that is too short to drop anything.
pub(super) fn truncation(values: &[f64]) -> usize {
    // Centred at some value, so that sums of squares keep their digits.
    let centre = values.last().copied().unwrap_or(0.0);
    let (mut sum, mut squares) = (0.0, 0.0);
    let mut best = (f64::INFINITY, 0);
    for (kept, value) in (1_usize..).zip(values.iter().rev()) {
        let value = value - centre;
        sum += value;
        squares += value * value;
        let dropped = values.len() - kept;
        if dropped <= values.len() / 2 {
            let count = kept as f64;
            let statistic = f64::max(squares - sum * sum / count, 0.0) / (count * count);
            // Rounding must not prefer a longer cut of equal values.
            if statistic <= best.0 + 1e-12 * squares.max(1e-300) {
                best = (statistic, dropped);
            }
        }
    }
    best.1
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// The formula as it stands.
    fn statistic(values: &[f64], dropped: usize) -> f64 {
        let rest = &values[dropped..];
        let count = rest.len() as f64;
        let mean = rest.iter().sum::<f64>() / count;
        rest.iter().map(|value| (value - mean).powi(2)).sum::<f64>() / (count * count)
    }

    #[test]
    fn truncation_matches_hand_calculation() {
        let table: [(&[f64], usize); 7] = [
            (&[], 0),
            (&[3.0], 0),
            (&[5.0, 5.0, 5.0, 5.0], 0),
            // d = 0: (81 · 3/4) / 16 = 3.8; d = 1: 0.
            (&[10.0, 1.0, 1.0, 1.0], 1),
            // d = 1: 2/3 / 9 = 0.074; d = 2 leaves 1 and 2: 0.5 / 4 = 0.125; d = 0: 0.75 / 16 = 0.047.
            (&[1.0, 1.0, 1.0, 2.0], 0),
            // Not beyond the middle, whatever comes.
            (&[9.0, 9.0, 9.0, 9.0, 1.0, 1.0], 0),
            (&[9.0, 9.0, 9.0, 1.0, 1.0, 1.0], 3),
        ];
        for (values, expected) in table {
            assert_eq!(truncation(values), expected, "{values:?}");
        }
    }

    #[test]
    fn a_burst_in_the_first_half_makes_it_cut_everything_before() {
        // Why the rule must not be used alone.
        let mut values = vec![1.0, 1.1, 0.9, 1.0, 8.0];
        values.extend([1.1, 0.9, 1.0, 1.1, 0.9, 1.0, 1.1, 0.9]);
        assert_eq!(truncation(&values), 5);
    }

    proptest! {
        #[test]
        fn no_cut_has_a_smaller_statistic(values in prop::collection::vec(-5.0..5.0_f64, 1..60)) {
            let found = truncation(&values);
            prop_assert!(found <= values.len() / 2);
            let best = statistic(&values, found);
            for dropped in 0..=values.len() / 2 {
                prop_assert!(best <= statistic(&values, dropped) + 1e-9);
            }
        }
    }
}
