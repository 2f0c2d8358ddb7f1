//! Service times: how long the server works on a request.
//!
//! No state and no stream of random numbers: the service time of request n is a pure function of (seed, n), so a test
//! can compute the whole path of the queue without running the server, and a lost request shifts nothing.

use brunt_plan::units::DurationNs;
use std::str::FromStr;

/// The distribution of the service times.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Service {
    /// Replies leave as soon as the work is really done; the queue has no virtual time in it.
    #[default]
    None,
    /// Every request takes this many nanoseconds.
    Fixed(u64),
    /// Exponential with this mean in nanoseconds: the second M of M/M/1.
    Exponential(u64),
}

impl Service {
    /// The service time of request `number` in nanoseconds.
    pub fn service_ns(self, seed: u64, number: u64) -> u64 {
        match self {
            Self::None => 0,
            Self::Fixed(service_ns) => service_ns,
            // Inversion: −ln(u) · mean with u in (0, 1]; the largest value is 53·ln 2 ≈ 36.7 means.
            Self::Exponential(mean_ns) => (-unit_interval(seed, number).ln() * mean_ns as f64).round() as u64,
        }
    }
}

/// A uniform number in (0, 1], a multiple of 2⁻⁵³, from the SplitMix64 output function (Steele, Lea, Flood, OOPSLA
/// 2014) at position `number` of the sequence that begins at a scrambled `seed`. The seed is scrambled first because
/// neighbouring seeds of one Weyl sequence would otherwise give shifted copies of each other.
fn unit_interval(seed: u64, number: u64) -> f64 {
    let position = mix(seed).wrapping_add(number.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15));
    ((mix(position) >> 11) + 1) as f64 / (1u64 << 53) as f64
}

/// The output function of SplitMix64: a bijection of 64 bits in which every input bit reaches every output bit.
const fn mix(word: u64) -> u64 {
    let word = (word ^ (word >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let word = (word ^ (word >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    word ^ (word >> 31)
}

impl FromStr for Service {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let accepted = || {
            format!("'{text}' is no service time: expected none, fixed:TIME or exp:TIME, such as exp:100us")
        };
        if text.trim() == "none" {
            return Ok(Self::None);
        }
        let (law, time) = text.trim().split_once(':').ok_or_else(accepted)?;
        // A bare number counts microseconds, the natural unit of a cache server.
        let time_ns = time
            .parse::<DurationNs>()
            .or_else(|_| format!("{time}us").parse())
            .ok()
            .filter(|time| time.0 > 0)
            .ok_or_else(accepted)?
            .0;
        match law {
            "fixed" => Ok(Self::Fixed(time_ns)),
            "exp" => Ok(Self::Exponential(time_ns)),
            _ => Err(accepted()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts() {
        let table = [
            ("none", Some(Service::None)),
            ("fixed:100", Some(Service::Fixed(100_000))),
            ("fixed:0.5", Some(Service::Fixed(500))),
            ("fixed:100us", Some(Service::Fixed(100_000))),
            ("exp:1ms", Some(Service::Exponential(1_000_000))),
            ("exp:1.5ms", Some(Service::Exponential(1_500_000))),
            ("exp:0", None),
            ("fixed:", None),
            ("fixed:-1", None),
            ("gamma:1ms", None),
            ("100us", None),
            ("", None),
        ];
        for (text, expected) in table {
            let parsed = text.parse::<Service>();
            assert_eq!(parsed.clone().ok(), expected, "{text:?}");
            if let Err(message) = parsed {
                assert!(
                    message.contains(&format!("'{text}'")) && message.contains("fixed:TIME"),
                    "{message}"
                );
            }
        }
    }

    #[test]
    fn exponential_times_have_the_moments_of_the_law() {
        let (service, count) = (Service::Exponential(100_000), 1_000_000u64);
        for seed in [0, 1, u64::MAX] {
            let times = || (0..count).map(|number| service.service_ns(seed, number) as f64 / 100_000.0);
            let mean = times().sum::<f64>() / count as f64;
            let variance = times().map(|time| (time - mean).powi(2)).sum::<f64>() / count as f64;
            let neighbours = times().zip(times().skip(1)).map(|(a, b)| (a - mean) * (b - mean)).sum::<f64>();
            // Standard errors: mean 0.001, variance 0.0028, correlation 0.001; four of each.
            assert!((mean - 1.0).abs() < 0.004, "mean {mean}");
            assert!((variance - 1.0).abs() < 0.012, "variance {variance}");
            assert!((neighbours / count as f64).abs() < 0.004, "lag-1 correlation");
        }
    }

    #[test]
    fn a_service_time_depends_on_seed_and_number_alone() {
        // Computed once more outside of this program. A change of the distribution would make every stored log incomparable.
        let times = [0, 1, 2, 1_000_000].map(|number| Service::Exponential(1_000_000).service_ns(1, number));
        assert_eq!(times, [288_018, 987_804, 824_888, 589_630]);
        assert_eq!(Service::Fixed(7).service_ns(1, 5), 7);
        assert_eq!(Service::None.service_ns(1, 5), 0);
        let shifted = (0..100).filter(|number| {
            Service::Exponential(1 << 40).service_ns(1, number + 1)
                == Service::Exponential(1 << 40).service_ns(2, *number)
        });
        assert_eq!(shifted.count(), 0, "neighbouring seeds are no shifted copies");
    }
}
