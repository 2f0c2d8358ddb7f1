//! Pettitt's test for a change of level: is there an instant before which values are lower, or higher, than after it?
//!
//! Knows only the order of values. Not about the size of the change: a rule needs the levels beside it. Pettitt, *Applied
//! Statistics* 28 (1979).

/// The likeliest change of level in a series.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Change {
    /// `K = max_t |Σ_{i≤t} Σ_{j>t} sgn(y_i − y_j)|`.
    pub k: u64,
    /// How likely a K as large is without a change, about: `2 exp(−6K²/(n³ + n²))`, at most 1.
    pub p: f64,
    /// How many values lie before it; of several instants the first.
    pub before: usize,
}

/// The likeliest change of level. `None` for fewer than two values.
pub(super) fn change(values: &[f64]) -> Option<Change> {
    let (count, mut sum) = (values.len(), 0_i64);
    let mut best = (0, 0);
    // The sum over pairs that t parts grows by what y_t is against all others: those before it cancel what they brought.
    for (index, value) in values.iter().enumerate().take(count.saturating_sub(1)) {
        sum += values.iter().map(|other| i64::from(value > other) - i64::from(value < other)).sum::<i64>();
        if best.1 == 0 || sum.unsigned_abs() > best.0 {
            best = (sum.unsigned_abs(), index + 1);
        }
    }
    let (k, before) = best;
    let size = count as f64;
    let p = 2.0 * (-6.0 * (k as f64).powi(2) / (size.powi(3) + size.powi(2))).exp();
    (count > 1).then_some(Change { k, p: p.min(1.0), before })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn change_matches_hand_calculation() {
        // 5 values of each level: every pair across the middle counts, K = 25. p = 2 exp(−6 · 625 / 1100).
        let step = [1.0, 1.1, 0.9, 1.05, 0.95, 5.0, 5.1, 4.9, 5.05, 4.95];
        let found = change(&step).unwrap();
        assert_eq!((found.k, found.before), (25, 5));
        assert!((found.p - 0.066_15).abs() < 1e-4, "{found:?}");
        // 10 before and 20 after: K = 200, p = 2 exp(−6 · 40 000 / 27 900).
        let mut late = vec![3.0; 10];
        late.extend([2.0; 20]);
        let found = change(&late).unwrap();
        assert_eq!((found.k, found.before), (200, 10));
        assert!((found.p - 3.67e-4).abs() < 1e-5, "{found:?}");
        assert_eq!(change(&[4.0; 6]), Some(Change { k: 0, p: 1.0, before: 1 }));
        assert_eq!((change(&[]), change(&[1.0])), (None, None));
    }

    proptest! {
        #[test]
        fn the_double_sum_has_the_same_maximum(values in prop::collection::vec(0..9_i32, 2..40)) {
            let values: Vec<f64> = values.into_iter().map(f64::from).collect();
            let parted = |t: usize| {
                let pairs = values[..t].iter().flat_map(|y| values[t..].iter().map(move |z| (y, z)));
                pairs.map(|(y, z)| i64::from(y > z) - i64::from(y < z)).sum::<i64>().unsigned_abs()
            };
            let largest = (1..values.len()).map(parted).max().unwrap();
            let found = change(&values).unwrap();
            prop_assert_eq!(found.k, largest);
            prop_assert_eq!(parted(found.before), largest);
        }
    }
}
