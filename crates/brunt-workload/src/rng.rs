//! Random numbers: independent streams out of one printed seed, and the draws that everything else is made of.
//!
//! Not a source of entropy: every number is a function of the seed, the same on every machine. Streams differ by purpose
//! so that, say, another op mix leaves the arrivals as they were.

use brunt_plan::op::ClassId;
use brunt_plan::split_mix::{STEP, mix};
use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::{Rng as _, SeedableRng};

/// A sequence of 64 random bits a time, and what is derived from them.
pub trait Draw {
    /// The next 64 bits.
    fn next_u64(&mut self) -> u64;

    /// A whole number below `n`, each exactly equally often (Lemire, ACM TOMACS 2019). `n` is at least 1.
    #[inline]
    fn below(&mut self, n: u64) -> u64 {
        debug_assert!(n > 0, "there is no whole number below 0");
        let mut product = u128::from(self.next_u64()) * u128::from(n);
        if (product as u64) < n {
            // 2^64 mod n low halves would be one too many for some results; the division is needed this rarely.
            let surplus = n.wrapping_neg() % n;
            while (product as u64) < surplus {
                product = u128::from(self.next_u64()) * u128::from(n);
            }
        }
        (product >> 64) as u64
    }

    /// A multiple of 2⁻⁵³ in (0, 1]: its logarithm is finite.
    #[inline]
    fn unit_open(&mut self) -> f64 {
        ((self.next_u64() >> 11) + 1) as f64 * (1.0 / (1u64 << 53) as f64)
    }
}

/// What a stream of random numbers is for. The numbers are part of the seeding and never change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Purpose {
    /// When requests are due.
    Arrivals = 1,
    /// What they ask for.
    Ops = 2,
    /// When requests are due, as far as all streams of a class must agree on it.
    SharedArrivals = 3,
    /// When connections are begun.
    Births = 4,
    /// When connections are begun, as far as all streams of a class must agree on it.
    SharedBirths = 5,
    /// When a connection's calls are due.
    Calls = 6,
    /// When the rate of a connection's calls changes.
    CallStates = 7,
    /// How long the database takes after misses.
    MissDelays = 8,
}

/// The generator of a session: xoshiro256++ (Blackman, Vigna, ACM TOMS 2021).
#[derive(Clone, Debug)]
pub struct Rng(Xoshiro256PlusPlus);

impl Rng {
    /// The stream of this purpose, class and stream number under `seed`.
    ///
    /// Every word of the state hashes seed and names, each through a bijection of its own: two streams begin at
    /// unrelated places of a cycle of 2²⁵⁶ − 1, so that an overlap within 2⁶⁴ draws has a probability below 2⁻¹²⁰.
    pub fn for_stream(seed: u64, purpose: Purpose, class: ClassId, stream: u32) -> Self {
        let names = (purpose as u64) << 48 | u64::from(class) << 32 | u64::from(stream);
        let mut state = [0; 32];
        for (index, word) in state.as_chunks_mut::<8>().0.iter_mut().enumerate() {
            let step = STEP.wrapping_mul(index as u64 + 1);
            let seeded = mix(seed.wrapping_add(step));
            *word = mix(seeded ^ mix(names.wrapping_sub(step))).to_le_bytes();
        }
        Self(Xoshiro256PlusPlus::from_seed(state))
    }
}

impl Draw for Rng {
    #[inline]
    fn next_u64(&mut self) -> u64 {
        self.0.next_u64()
    }
}

/// The generator of one multi-get: SplitMix64, whose whole state is the 64-bit seed that is in the op.
#[derive(Clone, Copy, Debug)]
pub struct DrawRng(u64);

impl DrawRng {
    /// The sequence that belongs to `seed`, itself a draw of a session's generator.
    #[inline]
    pub const fn from_draw(seed: u64) -> Self {
        Self(seed)
    }
}

impl Draw for DrawRng {
    #[inline]
    fn next_u64(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(STEP);
        mix(self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn splitmix_agrees_with_the_published_sequence() {
        // The first outputs of the reference implementation for seed 1234567.
        let mut draws = DrawRng::from_draw(1_234_567);
        let expected = [6_457_827_717_110_365_317, 3_203_168_211_198_807_973, 9_817_491_932_198_370_423];
        assert_eq!(expected.map(|_| draws.next_u64()), expected);
    }

    #[test]
    fn streams_differ_in_every_name_and_in_the_seed() {
        let first = |seed, purpose, class, stream| {
            let mut rng = Rng::for_stream(seed, purpose, class, stream);
            [rng.next_u64(), rng.next_u64()]
        };
        let base = first(1, Purpose::Arrivals, 0, 0);
        assert_eq!(base, first(1, Purpose::Arrivals, 0, 0));
        for other in [
            first(2, Purpose::Arrivals, 0, 0),
            first(1, Purpose::Ops, 0, 0),
            first(1, Purpose::Arrivals, 1, 0),
            first(1, Purpose::Arrivals, 0, 1),
        ] {
            assert!(base[0] != other[0] && base[1] != other[1]);
            // Of 64 bits half differ, with a standard deviation of 4.
            let distance = (base[0] ^ other[0]).count_ones();
            assert!((12..=52).contains(&distance), "{distance}");
        }
    }

    #[test]
    fn below_is_exactly_even_where_the_range_does_not_divide() {
        // A fake generator that walks the 64-bit circle in equal steps shows every residue equally often.
        struct Walk(u64);
        impl Draw for Walk {
            fn next_u64(&mut self) -> u64 {
                self.0 = self.0.wrapping_add(u64::MAX / 3_000);
                self.0
            }
        }
        let mut counts = [0u32; 3];
        let mut walk = Walk(0);
        for _ in 0..3_000 {
            counts[walk.below(3) as usize] += 1;
        }
        assert!(counts.iter().all(|count| (999..=1_001).contains(count)), "{counts:?}");

        // 2^64 mod (2^63 + 1) is 2^63 − 1: nearly half of all draws must be refused, and the mean is (n − 1)/2.
        let n = (1 << 63) + 1;
        let mut rng = Rng::for_stream(1, Purpose::Ops, 0, 0);
        let mean = (0..10_000).map(|_| rng.below(n) as f64 / 10_000.0).sum::<f64>() / n as f64;
        assert!((mean - 0.5).abs() < 4.0 / (12.0f64 * 10_000.0).sqrt(), "{mean}");
    }

    #[test]
    fn unit_open_never_is_zero_and_may_be_one() {
        struct Constant(u64);
        impl Draw for Constant {
            fn next_u64(&mut self) -> u64 {
                self.0
            }
        }
        assert_eq!(Constant(0).unit_open(), 1.0 / 9_007_199_254_740_992.0);
        assert_eq!(Constant(u64::MAX).unit_open(), 1.0);
    }
}
