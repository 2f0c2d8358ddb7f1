//! Response times of an M/D/1 queue: the reference server with Poisson arrivals and a fixed service time.
//!
//! Invariant: a function of the utilisation alone; times are in service times.

/// The p99 of the response time at this utilisation, above 0 and below 1: Erlang's series for the wait,
/// P(W ≤ t) = (1 − ρ) Σ_{k=0}^{⌊t⌋} (ρ(k − t))^k / k! · e^{−ρ(k − t)}, and one service time. The terms alternate and cancel, so a
/// float holds it up to a wait of twenty service times; a p99 beyond that is told as that.
pub(crate) fn p99(utilisation: f64) -> f64 {
    let within = |wait: f64| {
        let term = |k: i32| {
            let x = utilisation * (f64::from(k) - wait);
            (1..=k).map(|factor| x / f64::from(factor)).product::<f64>() * (-x).exp()
        };
        (1.0 - utilisation) * (0..=wait as i32).map(term).sum::<f64>()
    };
    1.0 + bisect(0.0, WAIT_MAX, |wait| within(wait) < 0.99)
}

/// The utilisation at which the p99 is this long; at most 0.9.
pub(crate) fn utilisation_at_p99(bound: f64) -> f64 {
    bisect(0.0, 0.9, |utilisation| p99(utilisation) < bound)
}

/// Beyond it the terms of the series are so large that their difference is noise.
const WAIT_MAX: f64 = 20.0;

/// Where a condition that holds from `low` on ceases to.
fn bisect(mut low: f64, mut high: f64, holds: impl Fn(f64) -> bool) -> f64 {
    for _ in 0..50 {
        let middle = (low + high) / 2.0;
        if holds(middle) { low = middle } else { high = middle }
    }
    low
}
