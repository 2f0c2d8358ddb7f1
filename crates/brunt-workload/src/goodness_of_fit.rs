//! Goodness of fit, for tests: do numbers follow a distribution? And the distributions once more, by their distribution functions.
//!
//! Written without the samplers: constants and formulas are repeated here, so that each checks the other.

use brunt_plan::distribution::{Distribution, Generalised};
use std::sync::LazyLock;

/// The published distributions, in the words of a plan. Parsed once: some tests ask for a million probabilities.
static FB_VALUE_HEAD: LazyLock<Distribution> = LazyLock::new(|| {
    parsed(
        "discrete:0=536,1=47,2=17820,3=9239,4=18,5=2740,6=65,7=606,8=23,9=837,10=837,11=8989,12=92,13=326,14=1980",
    )
});
static FB_VALUE_TAIL: LazyLock<Distribution> = LazyLock::new(|| parsed("pareto:15,214.476,0.348238"));

fn parsed(text: &str) -> Distribution {
    text.parse().unwrap()
}

/// Kolmogorov and Smirnov's distance at which one true distribution in a thousand is rejected, for n draws.
pub(crate) fn ks_critical(n: usize) -> f64 {
    1.95 / (n as f64).sqrt()
}

/// The largest distance between the distribution of `quantiles` and the even one. Where several are the same, the distribution has
/// a step, and they are compared at its upper end only.
pub(crate) fn kolmogorov_smirnov(quantiles: &[f64]) -> f64 {
    let (sorted, n) = (sorted(quantiles), quantiles.len() as f64);
    let (mut rank, mut distance) = (0, 0f64);
    for same in sorted.chunk_by(|left, right| left == right) {
        if same.len() == 1 {
            distance = distance.max(same[0] - rank as f64 / n);
        }
        rank += same.len();
        distance = distance.max((rank as f64 / n - same[0]).abs());
    }
    distance
}

/// Anderson and Darling's distance between the distribution of `quantiles` and the even one: A² = −n − 1/n Σ (2i−1)(ln uᵢ + ln(1 − uₙ₊₁₋ᵢ)).
pub(crate) fn anderson_darling(quantiles: &[f64]) -> f64 {
    let (u, n) = (sorted(quantiles), quantiles.len());
    let term = |i: usize| (2 * i + 1) as f64 * (u[i].ln() + (-u[n - 1 - i]).ln_1p());
    -(n as f64) - (0..n).map(term).sum::<f64>() / n as f64
}

fn sorted(values: &[f64]) -> Vec<f64> {
    let mut sorted = values.to_vec();
    sorted.sort_unstable_by(f64::total_cmp);
    sorted
}

/// How far each value tells the next one: near 0 where they are independent.
pub(crate) fn lag_1_correlation(values: &[f64]) -> f64 {
    let mean = values.iter().sum::<f64>() / values.len() as f64;
    let variance: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
    values.windows(2).map(|pair| (pair[0] - mean) * (pair[1] - mean)).sum::<f64>() / variance
}

/// Pearson's χ² over bins of (observed, expected), and the value that one true distribution in a thousand exceeds
/// (Wilson and Hilferty's approximation).
pub(crate) fn chi_squared(bins: &[(f64, f64)]) -> (f64, f64) {
    let value = bins.iter().map(|(observed, expected)| (observed - expected).powi(2) / expected).sum();
    let freedom = bins.len() as f64 - 1.0;
    let spread = 2.0 / (9.0 * freedom);
    (value, freedom * (1.0 - spread + 3.09 * spread.sqrt()).powi(3))
}

/// P(X > x).
pub(crate) fn exceedance(distribution: &Distribution, x: f64) -> f64 {
    match distribution {
        Distribution::Fixed { value } => f64::from(x < *value),
        Distribution::Uniform { min, max } => ((max - x) / (max - min)).clamp(0.0, 1.0),
        Distribution::Normal { mean, sd } => libm::erfc((x - mean) / sd / 2f64.sqrt()) / 2.0,
        Distribution::Exponential { lambda } => (-lambda * x.max(0.0)).exp(),
        Distribution::Pareto(distribution) => {
            generalised_exponential(distribution, (x - distribution.location).max(0.0))
        }
        Distribution::Gev(distribution) => {
            -(-generalised_exponential(distribution, x - distribution.location)).exp_m1()
        }
        Distribution::Lognormal { mu, sigma } => libm::erfc((x.ln() - mu) / sigma / 2f64.sqrt()) / 2.0,
        Distribution::Discrete(table) => {
            let sum: f64 = table.iter().map(|(_, weight)| weight).sum();
            table.iter().filter(|(value, _)| *value > x).map(|(_, weight)| weight).sum::<f64>() / sum
        }
        Distribution::FbValue => {
            0.44155 * exceedance(&FB_VALUE_HEAD, x) + 0.55845 * exceedance(&FB_VALUE_TAIL, x)
        }
    }
}

/// P(X ≤ x), exact where it is small.
pub(crate) fn cumulative(distribution: &Distribution, x: f64) -> f64 {
    match distribution {
        Distribution::Normal { mean, sd } => libm::erfc((mean - x) / sd / 2f64.sqrt()) / 2.0,
        Distribution::Lognormal { mu, sigma } => libm::erfc((mu - x.ln()) / sigma / 2f64.sqrt()) / 2.0,
        Distribution::Exponential { lambda } => -(-lambda * x).exp_m1(),
        Distribution::Gev(distribution) => {
            (-generalised_exponential(distribution, x - distribution.location)).exp()
        }
        distribution => 1.0 - exceedance(distribution, x),
    }
}

/// (1 + kz)^(−1/k) with z = distance/σ, also where k is next to 0.
fn generalised_exponential(distribution: &Generalised, distance: f64) -> f64 {
    let z = distance / distribution.scale;
    if distribution.shape == 0.0 {
        (-z).exp()
    } else {
        (-(distribution.shape * z).max(-1.0).ln_1p() / distribution.shape).exp()
    }
}

/// E[max(X, 0)] as ∫₀^∞ P(X > x) dx, by the trapezoidal rule in ln x; good to 5·10⁻⁴ where the distribution has steps or bends.
pub(crate) fn mean_above_zero(distribution: &Distribution) -> f64 {
    const STEP: f64 = 0.001;
    let term = |index: i32| {
        let x = (f64::from(index) * STEP).exp();
        exceedance(distribution, x) * x * STEP
    };
    // From e⁻²⁵ to e²⁵⁰: with a shape of 0.9, e⁻²⁷ of the mean lies behind it.
    (-25_000..250_000).map(term).sum()
}
