//! The textbook's interval for independent samples, by order statistics: a reference for tests, in no report.
//!
//! Not for requests of a server, which are not independent: [`super::replications`] shows how often this one misses there,
//! so that it is not taken for a simplification.

use super::fraction;
use brunt_plan::quantile::Quantile;

/// Half of what a 95 % interval leaves out.
const TAIL: f64 = 0.025;

/// The ranks, from 1, whose values hold the quantile of the distribution in 95 of 100 cases:
/// `l = max{k : P(Bin(n, p) ≤ k − 1) ≤ 0.025}` and `u = min{k : P(Bin(n, p) ≤ k − 1) ≥ 0.975}`. `None` where `count`
/// samples are too few for one of them.
pub(super) fn ranks(quantile: Quantile, count: u64) -> Option<(u64, u64)> {
    let (mut low, mut high) = (0, None);
    // P(X ≤ k − 1) from the terms of P, each from the one before; a logarithm, because the first are below any float.
    let (p, n) = (fraction(quantile), count as f64);
    let odds = (p / (1.0 - p)).ln();
    let (mut log_term, mut below) = (n * (1.0 - p).ln(), 0.0);
    for rank in 1..=count {
        below += log_term.exp();
        log_term += odds + ((n - rank as f64 + 1.0) / rank as f64).ln();
        if below <= TAIL {
            low = rank;
        }
        if below >= 1.0 - TAIL {
            high = Some(rank);
            break;
        }
    }
    high.filter(|_| low > 0).map(|high| (low, high))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranks_of_order_statistics() {
        assert_eq!(ranks(Quantile::P99, 10_000), Some((9_880, 9_920)));
        assert_eq!(ranks(Quantile::P999, 100_000), Some((99_880, 99_920)));
    }

    #[test]
    fn an_upper_end_takes_a_minimum_of_samples() {
        let p99999 = Quantile::from_millionths(999_990).unwrap();
        let table = [
            (Quantile::P90, 36),
            (Quantile::P95, 72),
            (Quantile::P99, 368),
            (Quantile::P999, 3_688),
            (Quantile::P9999, 36_887),
            (p99999, 368_887),
        ];
        for (quantile, fewest) in table {
            assert!(ranks(quantile, fewest).is_some(), "{quantile}");
            assert_eq!(ranks(quantile, fewest - 1), None, "{quantile}");
        }
    }
}
