//! How long mutilate makes the key of a record: its own formulas at its own hash, so that data sets are interchangeable.
//!
//! Not a quantile function: some of these fall where the place rises, and mutilate's normal distribution is no Gaussian (both of its
//! random numbers are the same one). Invariant: what is computed here is what mutilate computes, to the byte of the length; the
//! golden vectors below are its own.

use brunt_plan::distribution::{Distribution, FB_INTERARRIVAL, FB_KEY, Generalised};

/// FNV-1a over the eight bytes of a record's number, the lowest first.
#[inline]
pub(crate) fn hash_of(id: u64) -> u64 {
    let step = |hash: u64, byte: u8| (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01B3);
    id.to_le_bytes().into_iter().fold(0xCBF2_9CE4_8422_2325, step)
}

/// A distribution as mutilate draws from it.
#[derive(Clone, Debug)]
pub(crate) struct Formula {
    distribution: Distribution,
}

impl Formula {
    /// Of a distribution that a plan may have here: no table, no lognormal.
    pub(crate) fn new(distribution: Distribution) -> Self {
        Self { distribution }
    }

    /// What is drawn at this place, unrounded.
    pub(crate) fn at(&self, hash: u64) -> f64 {
        let place = hash as f64 / u64::MAX as f64;
        let minus_log = -libm::log(place);
        match &self.distribution {
            Distribution::Uniform { min, max } => min + (max - min) * place,
            Distribution::Normal { mean, sd } => {
                mean + sd * (2.0 * minus_log).sqrt() * libm::cos(std::f64::consts::TAU * place)
            }
            Distribution::Exponential { lambda } => minus_log / lambda,
            Distribution::Pareto(distribution) => generalised(distribution, place),
            Distribution::FbInterarrival => generalised(&FB_INTERARRIVAL, place),
            Distribution::Gev(distribution) => generalised(distribution, minus_log),
            Distribution::FbKey => generalised(&FB_KEY, minus_log),
            distribution @ (Distribution::Fixed { .. }
            | Distribution::Lognormal { .. }
            | Distribution::Discrete(_)
            | Distribution::FbValue) => {
                unreachable!("{distribution} is refused where a plan is read")
            }
        }
    }

    /// Does it go one way only?
    pub(crate) fn is_monotone(&self) -> bool {
        !matches!(self.distribution, Distribution::Normal { .. })
    }
}

/// μ + σ (x⁻ᵏ − 1) / k, and its limit where k is 0.
fn generalised(distribution: &Generalised, x: f64) -> f64 {
    let power = if distribution.shape == 0.0 {
        -libm::log(x)
    } else {
        (libm::pow(x, -distribution.shape) - 1.0) / distribution.shape
    };
    distribution.location + distribution.scale * power
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::size::{SizeOf, Sizes};

    const IDS: [u64; 10] = [0, 1, 2, 3, 4, 5, 6, 7, 9_999, 999_999];

    #[test]
    fn the_hash_is_mutilates() {
        assert_eq!(
            IDS.map(hash_of)[..4],
            [0xa8c7_f832_281a_39c5, 0x89cd_3129_1d2a_efa4, 0xe6bd_8644_3df8_ce07, 0xc7c2_bf3b_3309_83e6]
        );
        assert_eq!(hash_of(999_999), 0x2618_13b3_02bb_86f3);
    }

    #[test]
    fn draws_match_mutilate() {
        let check = |text: &str, expected: [f64; 10]| {
            let formula = Formula::new(text.parse().unwrap());
            for (id, expected) in IDS.into_iter().zip(expected) {
                let drawn = formula.at(hash_of(id));
                assert!((drawn - expected).abs() < 6e-4, "{text} of {id}: {drawn}, not {expected}");
            }
        };
        check(
            "normal:200,2",
            [199.015, 197.838, 200.742, 200.267, 201.689, 204.551, 197.705, 199.106, 204.040, 202.318],
        );
        check("exponential:0.1", [4.166, 6.194, 1.039, 2.481, 17.416, 29.145, 8.740, 12.165, 25.810, 19.051]);
    }

    #[test]
    fn lengths_are_those_of_mutilates_keys() {
        // (text, lengths of the keys above)
        let table = [
            ("mutilate:fb_key@1..250", [38, 35, 51, 43, 26, 22, 32, 29, 23, 26]),
            ("mutilate:uniform:100@1..250", [66, 54, 90, 78, 18, 5, 42, 30, 8, 15]),
            ("mutilate:normal:200,2@1..250", [199, 198, 201, 200, 202, 205, 198, 199, 204, 202]),
            ("mutilate:exponential:0.1@6..20", [6, 6, 6, 6, 17, 20, 9, 12, 20, 19]),
        ];
        for (text, expected) in table {
            let sizes = Sizes::new(text.parse().unwrap(), SizeOf::Key, 1);
            assert_eq!(IDS.map(|id| sizes.len(id)), expected, "{text}");
        }
    }

    #[test]
    fn the_table_is_the_formula() {
        for text in [
            "fb_key",
            "fb_ia",
            "uniform:100",
            "normal:100,30",
            "exponential:0.02",
            "pareto:3,20,0.3",
            "gev:30,8,-0.2",
        ] {
            let sizes = Sizes::new(format!("mutilate:{text}@4..250").parse().unwrap(), SizeOf::Key, 1);
            let formula = Formula::new(text.parse().unwrap());
            for id in 0..200_000 {
                let exact = (formula.at(hash_of(id)).round().clamp(4.0, 250.0)) as u32;
                assert_eq!(sizes.len(id), exact, "{text} of {id}");
            }
        }
    }
}
