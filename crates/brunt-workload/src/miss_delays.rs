//! How long a database takes after each miss, drawn from a law of time.
//!
//! Every worker has a stream of its own, so that how many misses another one has does not matter.

use crate::quantile_function::QuantileFunction;
use crate::rng::{Draw, Purpose, Rng};
use brunt_plan::op::ClassId;
use brunt_plan::time_law::TimeLaw;

/// The times of one class on one worker.
#[derive(Clone, Debug)]
pub struct MissDelays {
    law: QuantileFunction,
    rng: Rng,
}

impl MissDelays {
    /// The stream of this class and worker under `seed`.
    pub fn new(law: &TimeLaw, seed: u64, class: ClassId, worker: u32) -> Self {
        let rng = Rng::for_stream(seed, Purpose::MissDelays, class, worker);
        Self { law: QuantileFunction::new(&law.distribution_ns()), rng }
    }

    /// The next one, in nanoseconds.
    pub fn draw_ns(&mut self) -> u64 {
        // The conversion saturates.
        self.law.at(self.rng.next_u64()).round() as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Means of 100 000 draws, which are within 4 standard errors of those of the laws, and bounds.
    #[test]
    fn delays_follow_their_law() {
        let table = [
            ("5ms", 5e6, 0.0, (5_000_000, 5_000_000)),
            ("uniform:1ms,9ms", 5e6, 8e6 / 12f64.sqrt(), (1_000_000, 9_000_000)),
            ("exp:5ms", 5e6, 5e6, (0, u64::MAX)),
        ];
        for (law, mean, deviation, (min, max)) in table {
            let mut delays = MissDelays::new(&law.parse().unwrap(), 1, 0, 0);
            let drawn: Vec<u64> = (0..100_000).map(|_| delays.draw_ns()).collect();
            assert!(drawn.iter().all(|ns| (min..=max).contains(ns)), "{law}");
            let found = drawn.iter().sum::<u64>() as f64 / 1e5;
            assert!((found - mean).abs() <= 4.0 * deviation / 1e5f64.sqrt(), "{law}: {found}");
        }
    }
}
