//! Mann and Kendall's test for a trend, with Sen's slope: do later values tend to be larger than earlier ones?
//!
//! Knows only the order of values, so that a few outliers decide nothing. Not about the size of the trend: with enough
//! values everything is significant, so a rule needs the slope beside it.

use crate::median::median;

/// A trend of a series.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Trend {
    /// S in standard deviations, after the continuity correction; standard normal without a trend.
    pub z: f64,
    /// Sen's slope, the median of `(y_j − y_i)/(j − i)`: per step of the series.
    pub slope: f64,
}

/// The trend of a series: `S = Σ_{i<j} sgn(y_j − y_i)`, `Var S = n(n−1)(2n+5)/18`, `Z = (S ∓ 1)/√Var S`. Equal values
/// are not corrected for; they only make it more reluctant. `None` for fewer than two values.
pub(super) fn trend(values: &[f64]) -> Option<Trend> {
    let mut score = 0_i64;
    let mut slopes = Vec::with_capacity(values.len() * values.len().saturating_sub(1) / 2);
    for (later, value) in values.iter().enumerate() {
        for (earlier, before) in values[..later].iter().enumerate() {
            score += i64::from(value > before) - i64::from(value < before);
            slopes.push((value - before) / (later - earlier) as f64);
        }
    }
    let count = values.len() as f64;
    let variance = count * (count - 1.0) * (2.0 * count + 5.0) / 18.0;
    let corrected = (score - score.signum()) as f64;
    Some(Trend { z: corrected / variance.sqrt(), slope: median(&slopes)? })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

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
}
