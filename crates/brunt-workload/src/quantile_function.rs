//! The quantile functions of the plan's distributions: what value lies at which place of a distribution.
//!
//! Not a source of randomness: 64 bits come in, from a hash or a generator, and stand for the probability
//! (bits + ½)/2⁶⁴. All logarithms, powers and the error function are libm's, in Rust alone: sizes and gaps are the same on
//! every machine. Every quantile function is non-decreasing in the bits.

use brunt_plan::distribution::{self, Distribution, Generalised};

/// The quantile function of one distribution, ready to be evaluated in constant time (a table: in the logarithm of its length).
#[derive(Clone, Debug)]
pub(crate) struct QuantileFunction {
    distribution: Distribution,
    /// That of a distribution that has one.
    table: Table,
}

/// Values in ascending order, each with the probability of it and all before it; behind them, perhaps, a tail.
#[derive(Clone, Debug)]
pub(crate) struct Table {
    rows: Box<[(f64, f64)]>,
    /// What follows with the probability that the rows leave, and that probability.
    tail: Option<(Generalised, f64)>,
}

/// A place in a distribution: the probability below it and the one above it, each exact where it is small.
#[derive(Clone, Copy)]
struct Probability {
    below: f64,
    above: f64,
}

impl Probability {
    #[inline]
    fn of(bits: u64) -> Self {
        const UNIT: f64 = 1.0 / 18_446_744_073_709_551_616.0;
        Self { below: (bits as f64 + 0.5) * UNIT, above: (!bits as f64 + 0.5) * UNIT }
    }

    #[inline]
    fn mirrored(self) -> Self {
        Self { below: self.above, above: self.below }
    }

    /// −ln(above): the quantile of the exponential distribution of mean 1.
    #[inline]
    fn exponential(self) -> f64 {
        // Near 0 the logarithm of a number near 1 would lose what `below` still knows.
        if self.below < 0.5 { -libm::log1p(-self.below) } else { -libm::log(self.above) }
    }
}

impl QuantileFunction {
    pub(crate) fn new(distribution: &Distribution) -> Self {
        let table = match distribution {
            Distribution::FbValue => {
                let head = (0..).map(f64::from).zip(distribution::FB_VALUE_HEAD).collect::<Vec<_>>();
                Table::new(&head, Some(distribution::FB_VALUE_TAIL))
            }
            Distribution::Discrete(weighted) => Table::new(weighted, None),
            _ => Table::new(&[], None),
        };
        Self { distribution: distribution.clone(), table }
    }

    /// The value at the probability that these bits stand for.
    #[inline]
    pub(crate) fn at(&self, bits: u64) -> f64 {
        let place = Probability::of(bits);
        match &self.distribution {
            Distribution::Fixed { value } => *value,
            Distribution::Uniform { min, max } => min + (max - min) * place.below,
            Distribution::Normal { mean, sd } => mean + sd * standard_normal(place),
            Distribution::Exponential { lambda } => 1.0 / lambda * place.exponential(),
            Distribution::Pareto(pareto) => along(pareto, place.exponential()),
            Distribution::Gev(gev) => along(gev, -libm::log(place.mirrored().exponential())),
            Distribution::Lognormal { mu, sigma } => libm::exp(mu + sigma * standard_normal(place)),
            Distribution::Discrete(_) | Distribution::FbValue => self.table.at(place),
        }
    }
}

/// μ + σ (e^(ky) − 1)/k, the common form of generalised distributions; μ + σy where k is 0.
#[inline]
fn along(distribution: &Generalised, y: f64) -> f64 {
    let stretched =
        if distribution.shape == 0.0 { y } else { libm::expm1(distribution.shape * y) / distribution.shape };
    distribution.location + distribution.scale * stretched
}

impl Table {
    /// Of values with their weights, and with a tail behind them that has what their sum leaves of 1.
    fn new(weighted: &[(f64, f64)], tail: Option<Generalised>) -> Self {
        let mut rows: Vec<(f64, f64)> =
            weighted.iter().copied().filter(|(_, weight)| *weight > 0.0).collect();
        rows.sort_by(|left, right| left.0.total_cmp(&right.0));
        let weights: f64 = rows.iter().map(|(_, weight)| weight).sum();
        let sum = if tail.is_some() { 1.0 } else { weights };
        // The weights become the probabilities up to and including each.
        let mut up_to = 0.0;
        for (_, weight) in &mut rows {
            up_to += *weight;
            *weight = up_to / sum;
        }
        Self { rows: rows.into_boxed_slice(), tail: tail.map(|tail| (tail, 1.0 - up_to)) }
    }

    fn at(&self, place: Probability) -> f64 {
        let index = self.rows.partition_point(|(_, up_to)| *up_to <= place.below);
        match (self.rows.get(index), &self.tail) {
            (Some((value, _)), _) => *value,
            (None, Some((pareto, left))) => {
                let above = (place.above / left).min(1.0);
                along(pareto, Probability { below: 1.0 - above, above }.exponential())
            }
            // Rounding may leave the last sum just short of 1.
            (None, None) => self.rows[self.rows.len() - 1].0,
        }
    }
}

/// The quantile of the normal distribution of mean 0 and deviation 1, with a relative error of about 10⁻¹⁶: algorithm AS 241
/// (Wichura, Applied Statistics 37, 1988), a quotient of polynomials for each of three ranges.
#[inline]
fn standard_normal(place: Probability) -> f64 {
    let central = if place.below < 0.5 { place.below - 0.5 } else { 0.5 - place.above };
    if central.abs() <= 0.425 {
        return central * quotient(0.180625 - central * central, &CENTRAL);
    }
    let r = libm::sqrt(-libm::log(place.below.min(place.above)));
    let distance = if r <= 5.0 { quotient(r - 1.6, &MIDDLE) } else { quotient(r - 5.0, &FAR) };
    if central < 0.0 { -distance } else { distance }
}

/// Coefficients of a quotient of two polynomials, from the constant term up.
type Quotient = [[f64; 8]; 2];

const CENTRAL: Quotient = [
    [
        3.387_132_872_796_366_5,
        133.141_667_891_784_38,
        1_971.590_950_306_551_3,
        13_731.693_765_509_46,
        45_921.953_931_549_87,
        67_265.770_927_008_7,
        33_430.575_583_588_13,
        2_509.080_928_730_122_7,
    ],
    [
        1.0,
        42.313_330_701_600_91,
        687.187_007_492_057_9,
        5_394.196_021_424_751,
        21_213.794_301_586_597,
        39_307.895_800_092_71,
        28_729.085_735_721_943,
        5_226.495_278_852_854,
    ],
];
const MIDDLE: Quotient = [
    [
        1.423_437_110_749_683_5,
        4.630_337_846_156_546,
        5.769_497_221_460_691,
        3.647_848_324_763_204_5,
        1.270_458_252_452_368_4,
        0.241_780_725_177_450_6,
        0.022_723_844_989_269_184,
        7.745_450_142_783_414e-4,
    ],
    [
        1.0,
        2.053_191_626_637_759,
        1.676_384_830_183_803_8,
        0.689_767_334_985_1,
        0.148_103_976_427_480_08,
        0.015_198_666_563_616_457,
        5.475_938_084_995_345e-4,
        1.050_750_071_644_416_9e-9,
    ],
];
const FAR: Quotient = [
    [
        6.657_904_643_501_103,
        5.463_784_911_164_114,
        1.784_826_539_917_291_3,
        0.296_560_571_828_504_87,
        0.026_532_189_526_576_124,
        0.001_242_660_947_388_078_4,
        2.711_555_568_743_487_6e-5,
        2.010_334_399_292_288_1e-7,
    ],
    [
        1.0,
        0.599_832_206_555_888,
        0.136_929_880_922_735_8,
        0.014_875_361_290_850_615,
        7.868_691_311_456_133e-4,
        1.846_318_317_510_054_8e-5,
        1.421_511_758_316_446e-7,
        2.044_263_103_389_939_8e-15,
    ],
];

#[inline]
fn quotient(x: f64, [above, below]: &Quotient) -> f64 {
    let value = |coefficients: &[f64; 8]| coefficients.iter().rev().fold(0.0, |sum, next| sum * x + next);
    value(above) / value(below)
}

/// Gaps of mean 1: a distribution cut at 0 and divided by its mean after the cut.
#[derive(Clone, Debug)]
pub(crate) struct UnitGaps {
    quantiles: QuantileFunction,
    scale: f64,
}

impl UnitGaps {
    /// The gaps of a distribution that gaps may be drawn from ([`brunt_plan::arrival::Arrival`] refuses others).
    pub(crate) fn new(distribution: &Distribution) -> Self {
        // The location of a logarithm is a factor, which scaling undoes; taken out first, it cannot overflow.
        let distribution = match distribution {
            Distribution::Lognormal { sigma, .. } => {
                Distribution::Lognormal { mu: -sigma * sigma / 2.0, sigma: *sigma }
            }
            distribution => distribution.clone(),
        };
        let mean = mean_above_zero(&distribution);
        assert!(mean > 0.0 && mean.is_finite(), "gaps of {distribution} have a mean of {mean}");
        Self { quantiles: QuantileFunction::new(&distribution), scale: 1.0 / mean }
    }

    /// The gap at the probability that these bits stand for.
    #[inline]
    pub(crate) fn at(&self, bits: u64) -> f64 {
        self.quantiles.at(bits).max(0.0) * self.scale
    }
}

/// E[max(X, 0)], in closed form.
fn mean_above_zero(distribution: &Distribution) -> f64 {
    match distribution {
        Distribution::Fixed { value } => value.max(0.0),
        Distribution::Uniform { min, max } if *min >= 0.0 => (min + max) / 2.0,
        Distribution::Uniform { min, max } => max.max(0.0) * (max / (max - min)) / 2.0,
        Distribution::Normal { mean, sd: 0.0 } => mean.max(0.0),
        Distribution::Normal { mean, sd } => {
            let z = mean / sd;
            let density = libm::exp(-z * z / 2.0) / libm::sqrt(2.0 * std::f64::consts::PI);
            sd * density + mean * libm::erfc(-z / std::f64::consts::SQRT_2) / 2.0
        }
        Distribution::Exponential { lambda } => 1.0 / lambda,
        Distribution::Lognormal { mu, sigma } => libm::exp(mu + sigma * sigma / 2.0),
        Distribution::Pareto(pareto) => pareto_mean_above_zero(pareto),
        Distribution::Gev(gev) => gev_mean_above_zero(gev),
        Distribution::Discrete(table) => {
            let sum: f64 = table.iter().map(|(_, weight)| weight).sum();
            table.iter().map(|(value, weight)| value.max(0.0) * weight).sum::<f64>() / sum
        }
        Distribution::FbValue => {
            let head: f64 =
                (0..).zip(distribution::FB_VALUE_HEAD).map(|(size, share)| f64::from(size) * share).sum();
            let left = 1.0 - distribution::FB_VALUE_HEAD.iter().sum::<f64>();
            head + left * pareto_mean_above_zero(&distribution::FB_VALUE_TAIL)
        }
    }
}

/// ∫₀^∞ P(X > x) dx, for shapes below 1.
fn pareto_mean_above_zero(distribution: &Generalised) -> f64 {
    let Generalised { location, scale, shape } = *distribution;
    if location >= 0.0 {
        return location + scale / (1.0 - shape);
    }
    if shape == 0.0 {
        return scale * libm::exp(location / scale);
    }
    let base = (1.0 - shape * location / scale).max(0.0);
    scale / (1.0 - shape) * libm::pow(base, 1.0 - 1.0 / shape)
}

/// ∫ x(t) e^(−t) dt over the t for which x(t) = μ + σ (t^(−k) − 1)/k is above 0, for shapes below 1.
fn gev_mean_above_zero(distribution: &Generalised) -> f64 {
    let Generalised { location, scale, shape } = *distribution;
    // Closer to 0 the two terms below cancel to few digits; the mean is as good as straight between these shapes.
    const STRAIGHT: f64 = 1e-5;
    if shape.abs() < STRAIGHT {
        let [least, most] =
            [-STRAIGHT, STRAIGHT].map(|shape| gev_mean_above_zero(&Generalised { shape, ..*distribution }));
        return f64::midpoint(least, most) + (most - least) / 2.0 * (shape / STRAIGHT);
    }
    let base = 1.0 - shape * location / scale;
    let end = match (base > 0.0, shape > 0.0) {
        (true, _) => libm::pow(base, -1.0 / shape),
        (false, true) => f64::INFINITY,
        (false, false) => 0.0,
    };
    -(location - scale / shape) * libm::expm1(-end) + scale / shape * lower_gamma(1.0 - shape, end)
}

/// ∫₀ˣ t^(a−1) e^(−t) dt = xᵃ e^(−x) Σ xⁿ/(a (a+1) … (a+n)): all terms are positive, nothing cancels.
fn lower_gamma(a: f64, x: f64) -> f64 {
    // From here on e^(−t) has nothing to add to an integral with a power of t up to 11.
    if x > 200.0 {
        return libm::tgamma(a);
    }
    let mut term = libm::exp(a * libm::log(x) - x) / a;
    let mut sum = term;
    for n in 1..1_000 {
        term *= x / (a + f64::from(n));
        sum += term;
    }
    sum
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::goodness_of_fit::{self, cumulative, exceedance, kolmogorov_smirnov, ks_critical};
    use crate::rng::{Draw, Purpose, Rng};

    /// Laws without steps, of every kind and on both sides of every branch.
    const CONTINUOUS: [&str; 17] = [
        "uniform:-3,7",
        "normal:200,50",
        "normal:0,1",
        "exponential:0.1",
        "pareto:15,214.476,0.348238",
        "pareto:-5,10,0.9",
        "pareto:1,2,0",
        "pareto:1,2,1e-12",
        "pareto:3,2,-0.5",
        "gev:30.7984,8.20449,0.078688",
        "gev:0,1,0",
        "gev:-1,2,1e-12",
        "gev:5,2,-0.4",
        "gev:1,1,0.9",
        "lognormal:5,1.5",
        "fb_key",
        "fb_ia",
    ];

    fn distribution(text: &str) -> Distribution {
        text.parse().unwrap()
    }

    #[test]
    fn quantiles_invert_the_distribution_functions() {
        for text in CONTINUOUS {
            let (distribution, quantiles) = (distribution(text), QuantileFunction::new(&distribution(text)));
            let powers = (0..64).map(|bit| 1u64 << bit);
            for bits in powers.flat_map(|power| [power, !power, power | power >> 1, !(power | power >> 1)]) {
                let (place, x) = (Probability::of(bits), quantiles.at(bits));
                let (p, q) = (cumulative(&distribution, x), exceedance(&distribution, x));
                assert!(
                    (p - place.below).abs() <= 1e-9 * place.below + 1e-14,
                    "{text}: P(X ≤ {x}) is {p}, not {}",
                    place.below
                );
                assert!(
                    (q - place.above).abs() <= 1e-9 * place.above + 1e-14,
                    "{text}: P(X > {x}) is {q}, not {}",
                    place.above
                );
            }
        }
    }

    #[test]
    fn quantiles_do_not_fall() {
        for text in CONTINUOUS.into_iter().chain(["fb_value", "discrete:7=1,2=5,9=0.5", "fixed:4"]) {
            let quantiles = QuantileFunction::new(&distribution(text));
            let at: Vec<f64> = (0..100_000u64).map(|step| quantiles.at(step << 47 | 12_345)).collect();
            assert!(at.is_sorted(), "{text}");
        }
    }

    #[test]
    fn draws_follow_their_distribution() {
        let mut rng = Rng::for_stream(1, Purpose::Ops, 0, 0);
        for text in CONTINUOUS {
            let (distribution, quantiles) = (distribution(text), QuantileFunction::new(&distribution(text)));
            let places: Vec<f64> =
                (0..100_000).map(|_| cumulative(&distribution, quantiles.at(rng.next_u64()))).collect();
            let distance = kolmogorov_smirnov(&places);
            assert!(distance < ks_critical(places.len()), "{text}: {distance}");
        }
    }

    #[test]
    fn tables_give_every_value_its_share() {
        for (text, shares) in [
            ("discrete:100=3,4096=1", vec![(100.0, 0.75), (4096.0, 0.25)]),
            ("discrete:9=1,2=0,-5=1,9=2", vec![(-5.0, 0.25), (9.0, 0.75)]),
            ("fixed:7", vec![(7.0, 1.0)]),
            (
                "fb_value",
                vec![(0.0, 0.00536), (1.0, 0.00047), (2.0, 0.17820), (3.0, 0.09239), (14.0, 0.01980)],
            ),
        ] {
            let quantiles = QuantileFunction::new(&distribution(text));
            let draws: Vec<f64> = (0..1u64 << 20).map(|step| quantiles.at(step << 44)).collect();
            for (value, share) in shares {
                let count = draws.iter().filter(|draw| **draw == value).count() as f64;
                // Evenly spaced places: off by one at each end.
                assert!((count - share * draws.len() as f64).abs() <= 2.0, "{text}: {count} times {value}");
            }
        }
    }

    #[test]
    fn etc_quantiles_match_the_published_ones() {
        let place = |probability: f64| (probability * 18_446_744_073_709_551_616.0) as u64;
        let (key, value) = (
            QuantileFunction::new(&Distribution::Gev(distribution::FB_KEY)),
            QuantileFunction::new(&Distribution::FbValue),
        );
        for (probability, expected) in [(0.5, 33.8), (0.99, 76.3), (0.9999, 141.8)] {
            let size = key.at(place(probability));
            assert!((size / expected - 1.0).abs() < 0.005, "key {probability}: {size}");
        }
        // The head ends at P(≤ 14) = 0.44155; behind it the tail begins at 15.
        assert_eq!([value.at(place(0.441549)), value.at(place(0.441551)).floor()], [14.0, 15.0]);
        for (distribution, mean) in [
            (Distribution::Gev(distribution::FB_KEY), 36.2),
            (Distribution::FbValue, 194.4),
            (Distribution::Pareto(distribution::FB_INTERARRIVAL), 18.97),
        ] {
            assert!(
                (mean_above_zero(&distribution) / mean - 1.0).abs() < 0.005,
                "{distribution}: {}",
                mean_above_zero(&distribution)
            );
        }
    }

    #[test]
    fn distributions_match_mutilate() {
        // Recorded: a hash as the uniform number U; length of a key by fb_key, uniform:100 (both rounded), exponential:0.1.
        // It takes the exponential distribution from the other end, at 1 − U.
        for (hash, key, uniform, exponential) in [
            (0xa8c7f832281a39c5, 38.0, 66.0, 4.166),
            (0x89cd31291d2aefa4, 35.0, 54.0, 6.194),
            (0xe6bd86443df8ce07, 51.0, 90.0, 1.039),
            (0xc7c2bf3b330983e6, 43.0, 78.0, 2.481),
            (0x2cdcdc0dfc5d1141, 26.0, 18.0, 17.416),
            (0x0de21504f16dc720, 22.0, 5.0, 29.145),
            (0x1360e2f6001de983, 23.0, 8.0, 25.810),
        ] {
            assert_eq!(QuantileFunction::new(&Distribution::Gev(distribution::FB_KEY)).at(hash).round(), key);
            assert_eq!(QuantileFunction::new(&distribution("uniform:100")).at(hash).round(), uniform);
            assert!(
                (QuantileFunction::new(&distribution("exponential:0.1")).at(!hash) - exponential).abs()
                    < 0.000_6
            );
        }
    }

    #[test]
    fn means_match_distributions_truncated_at_0() {
        for text in CONTINUOUS.into_iter().chain([
            "fixed:3",
            "uniform:2,3",
            "normal:-2,1",
            "pareto:-1,2,0",
            "pareto:-1,2,-0.5",
            "gev:-2,1,0",
            "gev:-2,1,0.5",
            "gev:-1,1,-0.5",
            "gev:9,1,0.3",
            "gev:9,1,0.05",
            "gev:300,1,0",
            "discrete:-4=1,8=1,2=2",
            "fb_value",
        ]) {
            let distribution = distribution(text);
            let (mean, expected) =
                (mean_above_zero(&distribution), goodness_of_fit::mean_above_zero(&distribution));
            assert!((mean / expected - 1.0).abs() < 5e-4, "{text}: {mean} is not {expected}");
        }
        // Limits in the shape: no jump where another formula takes over.
        for (text, other) in [
            ("gev:-2,1,0", "gev:-2,1,1.1e-8"),
            ("gev:-2,1,9.99e-6", "gev:-2,1,1.001e-5"),
            ("gev:50,1,-9.99e-6", "gev:50,1,-1.001e-5"),
            ("pareto:-1,2,0", "pareto:-1,2,1e-9"),
        ] {
            let ratio = mean_above_zero(&distribution(text)) / mean_above_zero(&distribution(other));
            assert!((ratio - 1.0).abs() < 1e-6, "{text}: {ratio}");
        }
    }
}
