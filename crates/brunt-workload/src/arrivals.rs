//! When the requests of an open loop are due: absolute nanoseconds from the start of the schedule, in order.
//!
//! Not a pacer: it neither waits nor knows what time it is, and it is never re-based. Times come from exact integers
//! (evenly spaced) or from sums in fixed point (drawn gaps): no step is rounded on its own, so nothing drifts.
//!
//! The streams of a class add up to it exactly. Poisson arrivals split into independent streams; every other sequence of
//! gaps is one for the whole class, drawn from a generator that all streams share, and dealt out: each stream walks
//! through all of it and keeps its portion of every `of` arrivals.

use crate::intensity::{Intensity, MASS_PER_REQUEST};
use crate::mmpp::MmppArrivals;
use crate::quantile_function::UnitGaps;
use crate::rand48::Draws;
use crate::rng::{Draw, Purpose, Rng};
use brunt_plan::arrival::Arrival;
use brunt_plan::op::ClassId;
use brunt_plan::plan::OpenRate;
use brunt_plan::shard::Portion;
use brunt_plan::units::Rate;

/// Nanoseconds in a second times millionths in one: slot `k` of a rate in millionths per second is due at `k · this / rate`.
const MICRO_NANOS: u128 = 1_000_000_000_000_000;

/// One stream's arrivals; the streams of a class together make up its rate.
#[derive(Clone, Debug)]
pub enum Arrivals {
    /// Every `of`-th slot of evenly spaced arrivals; of a wider portion they are gaps like others.
    Uniform(UniformArrivals),
    /// A Poisson process of the portion's part of the rate; independent such processes add up to a Poisson process of the rate.
    Poisson(PoissonArrivals),
    /// Independent gaps of a distribution, or of any kind under a rate that changes.
    Renewal(RenewalArrivals),
    /// Bursts that all streams share.
    Mmpp(MmppArrivals),
}

impl Arrivals {
    /// This portion of the arrivals of a class that gets `rate` in all. A profile's time 0 lies `lead_ns` after ours: the
    /// schedule begins with the warm-up.
    pub fn new(
        arrival: &Arrival,
        rate: &OpenRate,
        portion: Portion,
        seed: u64,
        class: ClassId,
        lead_ns: u64,
    ) -> Self {
        // No two portions begin with the same arrival.
        let own = Rng::for_stream(seed, Purpose::Arrivals, class, portion.first);
        let shared = Rng::for_stream(seed, Purpose::SharedArrivals, class, 0);
        Self::drawn(arrival, rate, portion, lead_ns, own, shared)
    }

    /// The arrivals of a class's connections, of which `rate` per second are opened.
    pub fn of_connects(arrival: &Arrival, rate: Rate, portion: Portion, seed: u64, class: ClassId) -> Self {
        let own = Rng::for_stream(seed, Purpose::Births, class, portion.first);
        let shared = Rng::for_stream(seed, Purpose::SharedBirths, class, 0);
        Self::drawn(arrival, &OpenRate::Constant(rate), portion, 0, own, shared)
    }

    /// The arrivals of the calls of one connection, at this rate; begun with [`Arrivals::restart`].
    pub(crate) fn of_calls(arrival: &Arrival, rate: Rate, seed: u64, class: ClassId) -> Self {
        let whole = Portion { first: 0, width: 1, of: 1 };
        let [own, states] = rngs_of_calls(seed, class, 0);
        Self::drawn(arrival, &OpenRate::PerConnection(rate), whole, 0, own, states)
    }

    /// Begins anew with `calls` calls of this connection of the class; the first is due at once.
    pub(crate) fn restart(&mut self, seed: u64, class: ClassId, connection: u64, calls: u64) {
        let [own, states] = rngs_of_calls(seed, class, connection);
        match self {
            Self::Uniform(arrivals) => (arrivals.due_ns, arrivals.remainder) = (0, 0),
            Self::Poisson(arrivals) => (arrivals.due, arrivals.rng) = (0, own),
            Self::Renewal(arrivals) => {
                (arrivals.mass, arrivals.due_ns) = (0, 0);
                match &mut arrivals.gaps {
                    Gaps::Parametric { rng, .. } | Gaps::Exponential { rng, .. } => *rng = own,
                    Gaps::Mcperf(gaps) => gaps.draws.go_to(connection.wrapping_mul(gaps_of_calls(calls))),
                    Gaps::Even(_) => {}
                }
            }
            Self::Mmpp(arrivals) => arrivals.restart(own, states),
        }
    }

    /// With gaps from the stream's own generator, or from one that is the same for all streams.
    fn drawn(
        arrival: &Arrival,
        rate: &OpenRate,
        portion: Portion,
        lead_ns: u64,
        own: Rng,
        shared: Rng,
    ) -> Self {
        let renewal =
            |gaps| Self::Renewal(RenewalArrivals::new(gaps, Intensity::new(rate, lead_ns), portion.first));
        let portion_cursor = PortionCursor::new(portion);
        match (arrival, rate) {
            (Arrival::Uniform, OpenRate::Constant(rate) | OpenRate::PerConnection(rate))
                if portion.width == 1 =>
            {
                Self::Uniform(UniformArrivals::new(*rate, portion))
            }
            (Arrival::Poisson, OpenRate::Constant(rate) | OpenRate::PerConnection(rate)) => {
                Self::Poisson(PoissonArrivals::new(*rate, portion, own))
            }
            (Arrival::Uniform, _) => renewal(Gaps::Even(portion_cursor)),
            (Arrival::Poisson, OpenRate::Profile(_) | OpenRate::Recorded) => {
                let mean = f64::from(portion.of) / f64::from(portion.width) * MASS_PER_REQUEST as f64;
                renewal(Gaps::Exponential { mean, rng: own })
            }
            (Arrival::Parametric(distribution), _) => renewal(Gaps::Parametric {
                unit_gaps: UnitGaps::new(distribution),
                portion_cursor,
                rng: shared,
            }),
            (Arrival::Mcperf(draw), _) => {
                let draws = Draws::new(*draw);
                let unit = MASS_PER_REQUEST as f64 / draws.mean().unwrap_or(1.0);
                renewal(Gaps::Mcperf(McperfGaps { draws, unit, portion_cursor }))
            }
            (Arrival::Mmpp(mmpp), _) => {
                let intensity = Intensity::new(rate, lead_ns);
                Self::Mmpp(MmppArrivals::new(mmpp, intensity, portion, shared, own))
            }
        }
    }

    /// When the next request is due, in ns from the start; `u64::MAX` (after 584 years) is never.
    #[inline]
    pub fn peek_ns(&self) -> u64 {
        match self {
            Self::Uniform(arrivals) => arrivals.due_ns,
            Self::Poisson(arrivals) => arrivals.due_ns(),
            Self::Renewal(arrivals) => arrivals.due_ns,
            Self::Mmpp(arrivals) => arrivals.due_ns(),
        }
    }

    /// Goes on to the request after it.
    #[inline]
    pub fn advance(&mut self) {
        match self {
            Self::Uniform(arrivals) => arrivals.advance(),
            Self::Poisson(arrivals) => arrivals.advance(),
            Self::Renewal(arrivals) => arrivals.advance(),
            Self::Mmpp(arrivals) => arrivals.advance(),
        }
    }
}

/// The generators of a connection's calls: of their gaps, and of the states of their rate.
fn rngs_of_calls(seed: u64, class: ClassId, connection: u64) -> [Rng; 2] {
    // Connections so far apart that their numbers share the low bits may share their gaps as well.
    let stream = (connection & u64::from(u32::MAX)) as u32;
    [Purpose::Calls, Purpose::CallStates].map(|purpose| Rng::for_stream(seed, purpose, class, stream))
}

/// How many gaps mcperf draws for a connection with `calls` calls: those between them, but one for a single call, too. A connection
/// without end leaves as many to it as no run takes.
const fn gaps_of_calls(calls: u64) -> u64 {
    const NO_END: u64 = 1 << 32;
    match calls {
        0..=2 => 1,
        u64::MAX => NO_END,
        calls => calls - 1,
    }
}

/// Slots `first, first + of, first + 2·of, …` of [`Rate::slot_ns`], with the division carried on instead of repeated.
#[derive(Clone, Debug)]
pub struct UniformArrivals {
    /// floor(k · 10¹⁵ / rate) for the slot k at hand.
    due_ns: u64,
    /// (k · 10¹⁵) mod rate: with it, `due_ns · rate + remainder = k · 10¹⁵` holds exactly at every step.
    remainder: u64,
    /// The quotient and the remainder of `of · 10¹⁵ / rate`.
    step_ns: u64,
    step_remainder: u64,
    rate: u64,
}

impl UniformArrivals {
    /// Of a portion that is one wide.
    fn new(rate: Rate, portion: Portion) -> Self {
        let divisor = u128::from(rate.micro_per_second);
        let step = u128::from(portion.of) * MICRO_NANOS;
        Self {
            due_ns: rate.slot_ns(u64::from(portion.first)),
            remainder: (u128::from(portion.first) * MICRO_NANOS % divisor) as u64,
            step_ns: u64::try_from(step / divisor).unwrap_or(u64::MAX),
            step_remainder: (step % divisor) as u64,
            rate: rate.micro_per_second,
        }
    }

    #[inline]
    fn advance(&mut self) {
        // Both are below the rate, which is at most 10¹⁵: the sum fits.
        let remainder = self.remainder + self.step_remainder;
        let carry = remainder >= self.rate;
        self.remainder = if carry { remainder - self.rate } else { remainder };
        self.due_ns = self.due_ns.saturating_add(self.step_ns).saturating_add(u64::from(carry));
    }
}

/// Exponential gaps by inversion, −ln(U) · mean, summed in units of 2⁻³² ns.
#[derive(Clone, Debug)]
pub struct PoissonArrivals {
    /// Due time in 2⁻³² ns: 96 bits are whole nanoseconds, and truncating a gap loses less than 10⁻⁹ ns.
    due: u128,
    /// Mean gap in 2⁻³² ns.
    mean_gap: f64,
    rng: Rng,
}

impl PoissonArrivals {
    fn new(rate: Rate, portion: Portion, rng: Rng) -> Self {
        let streams = f64::from(portion.of) / f64::from(portion.width);
        let mean_ns = streams * MICRO_NANOS as f64 / rate.micro_per_second as f64;
        let mut arrivals = Self { due: 0, mean_gap: mean_ns * 4_294_967_296.0, rng };
        arrivals.advance();
        arrivals
    }

    #[inline]
    fn due_ns(&self) -> u64 {
        u64::try_from(self.due >> 32).unwrap_or(u64::MAX)
    }

    #[inline]
    fn advance(&mut self) {
        // libm's logarithm and not the standard library's: that one is the platform's and differs in the last bit.
        let gap = -libm::log(self.rng.unit_open()) * self.mean_gap;
        self.due = self.due.saturating_add(gap as u128);
    }
}

/// Gaps in mass, the process at one request per unit; what the rate collects turns them into time.
#[derive(Clone, Debug)]
pub struct RenewalArrivals {
    gaps: Gaps,
    mass: u128,
    intensity: Intensity,
    due_ns: u64,
}

/// Where gaps come from.
#[derive(Clone, Debug)]
enum Gaps {
    /// Of exactly one request; the first of all at time 0.
    Even(PortionCursor),
    /// Exponential with this mean in units of mass, from the stream's own generator.
    Exponential { mean: f64, rng: Rng },
    /// Of a distribution, from the generator that all streams share; the first gap begins at time 0.
    Parametric { unit_gaps: UnitGaps, portion_cursor: PortionCursor, rng: Rng },
    /// Those of mcperf's generator, which all streams share, too; the first of all arrivals is at time 0.
    Mcperf(McperfGaps),
}

/// Gaps in proportion to mcperf's numbers.
#[derive(Clone, Debug)]
struct McperfGaps {
    draws: Draws,
    /// What the number 1 is in units of mass.
    unit: f64,
    portion_cursor: PortionCursor,
}

impl McperfGaps {
    /// The sum of `count` of them; each is truncated on its own, so that all streams add up the same numbers.
    fn sum(&mut self, count: u32) -> u128 {
        (0..count).fold(0, |sum: u128, _| sum.saturating_add((self.draws.next_number() * self.unit) as u128))
    }
}

/// A portion's place in the sequence that all streams share.
#[derive(Clone, Debug)]
struct PortionCursor {
    portion: Portion,
    /// Taken in this round, the one at hand included.
    taken: u32,
}

impl PortionCursor {
    const fn new(portion: Portion) -> Self {
        Self { portion, taken: 1 }
    }

    /// How many arrivals of the sequence the next one of ours is away.
    fn advance(&mut self) -> u32 {
        let Portion { width, of, .. } = self.portion;
        if self.taken < width {
            self.taken += 1;
            1
        } else {
            self.taken = 1;
            of - width + 1
        }
    }
}

impl RenewalArrivals {
    fn new(gaps: Gaps, intensity: Intensity, first: u32) -> Self {
        let mut arrivals = Self { gaps, mass: 0, intensity, due_ns: 0 };
        arrivals.mass = match &mut arrivals.gaps {
            Gaps::Even(_) => u128::from(first) * MASS_PER_REQUEST,
            Gaps::Exponential { mean, rng } => exponential(*mean, rng),
            Gaps::Parametric { unit_gaps, rng, .. } => sum_of_gaps(unit_gaps, rng, u64::from(first) + 1),
            Gaps::Mcperf(gaps) => gaps.sum(first),
        };
        arrivals.due_ns = arrivals.intensity.time_of(arrivals.mass);
        arrivals
    }

    fn advance(&mut self) {
        let step = match &mut self.gaps {
            Gaps::Even(portion_cursor) => u128::from(portion_cursor.advance()) * MASS_PER_REQUEST,
            Gaps::Exponential { mean, rng } => exponential(*mean, rng),
            Gaps::Parametric { unit_gaps, portion_cursor, rng } => {
                sum_of_gaps(unit_gaps, rng, u64::from(portion_cursor.advance()))
            }
            Gaps::Mcperf(gaps) => {
                let count = gaps.portion_cursor.advance();
                gaps.sum(count)
            }
        };
        self.mass = self.mass.saturating_add(step);
        self.due_ns = self.intensity.time_of(self.mass);
    }
}

fn exponential(mean: f64, rng: &mut Rng) -> u128 {
    (-libm::log(rng.unit_open()) * mean) as u128
}

/// `count` gaps of the distribution in units of mass; each is truncated on its own, so that all streams add up the same numbers.
fn sum_of_gaps(unit_gaps: &UnitGaps, rng: &mut Rng, count: u64) -> u128 {
    let gap = |_| (unit_gaps.at(rng.next_u64()) * MASS_PER_REQUEST as f64) as u128;
    (0..count).map(gap).fold(0, u128::saturating_add)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::goodness_of_fit::{
        anderson_darling, exceedance, kolmogorov_smirnov, ks_critical, lag_1_correlation, mean_above_zero,
    };
    use crate::intensity::tests::requests_between;
    use brunt_plan::distribution::Distribution;
    use proptest::prelude::*;

    const WHOLE: Portion = Portion { first: 0, width: 1, of: 1 };

    /// Of streams that weigh the same.
    fn stream_of(index: u32, of: u32) -> Portion {
        Portion { first: index, width: 1, of }
    }

    fn arrivals(arrival: Arrival, rate: Rate, part: Portion) -> Arrivals {
        Arrivals::new(&arrival, &OpenRate::Constant(rate), part, 1, 0, 0)
    }

    /// The first `count` times.
    fn times(mut arrivals: Arrivals, count: usize) -> Vec<u64> {
        let next = |_| {
            let due_ns = arrivals.peek_ns();
            arrivals.advance();
            due_ns
        };
        (0..count).map(next).collect()
    }

    /// All times before `end_ns`.
    fn times_before(mut arrivals: Arrivals, end_ns: u64) -> Vec<u64> {
        let next = || {
            let due_ns = arrivals.peek_ns();
            arrivals.advance();
            (due_ns < end_ns).then_some(due_ns)
        };
        std::iter::from_fn(next).collect()
    }

    /// The union of all `of` streams before `end_ns`, in order.
    fn union(arrival: Arrival, rate: Rate, of: u32, end_ns: u64) -> Vec<u64> {
        let stream = |index| times_before(arrivals(arrival.clone(), rate, stream_of(index, of)), end_ns);
        let mut union: Vec<u64> = (0..of).flat_map(stream).collect();
        union.sort_unstable();
        union
    }

    #[test]
    fn uniform_slots_are_exact() {
        let at_100k =
            times_before(arrivals(Arrival::Uniform, Rate::per_second(100_000), WHOLE), 10_000_000_000);
        assert_eq!(at_100k.len(), 1_000_000);
        assert!(at_100k.iter().enumerate().all(|(k, due_ns)| *due_ns == k as u64 * 10_000));

        let at_300k =
            times_before(arrivals(Arrival::Uniform, Rate::per_second(300_000), WHOLE), 1_000_000_000);
        assert_eq!(at_300k.len(), 300_000);
        assert!(at_300k.windows(2).all(|pair| matches!(pair[1] - pair[0], 3_333 | 3_334)));
        // 0 ≤ k/R − t < 1 ns, in whole numbers: 10⁹·k − 300 000·t lies in 0..300 000.
        assert!((0..).zip(&at_300k).all(|(k, due_ns)| 1_000_000_000 * k - 300_000 * due_ns < 300_000));
    }

    #[test]
    fn uniform_slots_do_not_drift_in_a_hundred_million_steps() {
        // At 300 000/s slot 10⁸ is due at 333 1/3 s. A step that were a 10⁻⁸th of a nanosecond off would show.
        let mut arrivals = arrivals(Arrival::Uniform, Rate::per_second(300_000), WHOLE);
        for _ in 0..100_000_000 {
            arrivals.advance();
        }
        assert_eq!(arrivals.peek_ns(), 333_333_333_333);
    }

    proptest! {
        #[test]
        fn uniform_streams_divide_the_arrival_indices(
            micro in 1..=1_000_000_000_000_000u64, of in 1..40u32, seed in any::<u32>(),
        ) {
            let rate = Rate { micro_per_second: micro };
            let part = stream_of(seed % of, of);
            let dealt = times(arrivals(Arrival::Uniform, rate, part), 50);
            let slots = (0..50).map(|turn| rate.slot_ns(u64::from(part.first) + turn * u64::from(of)));
            prop_assert_eq!(dealt, slots.collect::<Vec<_>>());
        }
    }

    #[test]
    fn the_union_of_eight_uniform_streams_is_the_whole() {
        for rate in [Rate::per_second(300_000), Rate { micro_per_second: 333_333_250_001 }] {
            let whole = times_before(arrivals(Arrival::Uniform, rate, WHOLE), 1_000_000_000);
            assert_eq!(union(Arrival::Uniform, rate, 8, 1_000_000_000), whole);
        }
    }

    #[test]
    fn the_poisson_schedule_of_seed_1_is_golden() {
        // Computed by a second implementation (another language and logarithm): 10 s at 100 000/s.
        let times =
            times_before(arrivals(Arrival::Poisson, Rate::per_second(100_000), WHOLE), 10_000_000_000);
        let hash = times.iter().fold(0xCBF2_9CE4_8422_2325, |hash: u64, due_ns| {
            (hash ^ due_ns).wrapping_mul(0x0000_0100_0000_01B3)
        });
        assert_eq!((times.len(), &times[..4]), (998_812, &[5_392, 11_971, 15_929, 21_020][..]));
        assert_eq!((times.last(), hash), (Some(&9_999_995_604), 0x280E_32BE_8C35_4D78));
    }

    #[test]
    fn poisson_gaps_are_exponential_alone_and_in_union() {
        // Slow enough (mean gap 1 ms) that whole nanoseconds do not show.
        let rate = Rate::per_second(1_000);
        check_exponential(&times(arrivals(Arrival::Poisson, rate, WHOLE), 1_000_001), 1e6);
        let union = union(Arrival::Poisson, rate, 8, 1_010_000_000_000);
        check_exponential(&union[..1_000_001], 1e6);
    }

    /// A million gaps against the exponential distribution of this mean, at the 1 % level each.
    fn check_exponential(times: &[u64], mean_ns: f64) {
        let gaps: Vec<f64> = times.windows(2).map(|pair| (pair[1] - pair[0]) as f64).collect();
        assert_eq!(gaps.len(), 1_000_000);
        let quantiles: Vec<f64> = gaps.iter().map(|gap| -(-gap / mean_ns).exp_m1()).collect();
        let distance = kolmogorov_smirnov(&quantiles);
        assert!(distance <= 0.00163, "Kolmogorov-Smirnov {distance}");
        for (index, subsample) in quantiles.chunks(100_000).map(|chunk| &chunk[..10_000]).enumerate() {
            let distance = anderson_darling(subsample);
            assert!(distance <= 3.857, "Anderson-Darling {distance} in subsample {index}");
        }
        let correlation = lag_1_correlation(&gaps);
        assert!(correlation.abs() < 0.003, "lag-1 correlation {correlation}");
    }

    #[test]
    fn poisson_counts_have_equal_mean_and_variance() {
        // Variance over mean of the counts of 1000 intervals of 10 ms: 1 ± 0.13 is three standard deviations.
        for of in [1, 8] {
            let mut counts = vec![0f64; 1_000];
            for due_ns in union(Arrival::Poisson, Rate::per_second(100_000), of, 10_000_000_000) {
                counts[(due_ns / 10_000_000) as usize] += 1.0;
            }
            let mean = counts.iter().sum::<f64>() / 1_000.0;
            let variance = counts.iter().map(|count| (count - mean).powi(2)).sum::<f64>() / 999.0;
            assert!((variance / mean - 1.0).abs() < 0.13, "{of} streams: {}", variance / mean);
        }
    }

    #[test]
    fn the_slowest_rate_does_not_overflow() {
        let slowest = Rate { micro_per_second: 1 };
        let part = stream_of(1, u32::MAX);
        for arrival in [Arrival::Uniform, Arrival::Poisson] {
            let times = times(arrivals(arrival.clone(), slowest, part), 100);
            assert!(times.is_sorted() && times.last() == Some(&u64::MAX), "{arrival}");
        }
    }

    /// Laws of gaps of every kind: with and without a part below 0, smooth and in steps.
    const LAWS: [&str; 12] = [
        "fb_ia",
        "fb_key",
        "fb_value",
        "exponential:7",
        "uniform:0,2",
        "uniform:-1,3",
        "normal:1,0.25",
        "normal:1,1",
        "pareto:-1,2,0.3",
        "gev:0,1,0.2",
        "lognormal:500,1",
        "discrete:0=1,1=5,10=1",
    ];

    fn of_law(text: &str) -> Arrival {
        Arrival::Parametric(text.parse().unwrap())
    }

    /// The places of gaps in a distribution cut at 0, of which this is the mean gap.
    fn places(gaps_ns: impl Iterator<Item = f64>, distribution: &Distribution, mean_gap_ns: f64) -> Vec<f64> {
        let mean = mean_above_zero(distribution);
        // A little on, by more than times and the mean are rounded: a gap in a step of the distribution shall be at its upper end.
        let gap = |gap_ns: f64| (gap_ns + 1.5) * 1.001 / mean_gap_ns * mean;
        gaps_ns.map(|gap_ns| 1.0 - exceedance(distribution, gap(gap_ns))).collect()
    }

    #[test]
    fn gaps_are_truncated_at_0_and_scaled_to_the_rate() {
        // Slow enough (mean gap 1 s) that whole nanoseconds do not show.
        let rate = Rate::per_second(1);
        for text in LAWS {
            // Of a logarithm's distribution only the shape is left, wherever it lies.
            let distribution: Distribution = text.replace("lognormal:500", "lognormal:0").parse().unwrap();
            let times = times(arrivals(of_law(text), rate, WHOLE), 200_000);
            let gaps_ns = std::iter::once(times[0]).chain(times.windows(2).map(|pair| pair[1] - pair[0]));
            let places = places(gaps_ns.map(|gap_ns| gap_ns as f64), &distribution, 1e9);
            let distance = kolmogorov_smirnov(&places);
            assert!(distance < ks_critical(places.len()), "{text}: {distance}");
        }
    }

    #[test]
    fn gaps_have_the_requested_rate() {
        for text in LAWS {
            let times = times(arrivals(of_law(text), Rate::per_second(100_000), WHOLE), 1_000_000);
            // The coefficient of variation of these distributions is at most 2: four standard errors of a million gaps.
            let rate = 1e15 / *times.last().unwrap() as f64;
            assert!((rate / 100_000.0 - 1.0).abs() < 4.0 * 2.0 / 1e3, "{text}: {rate}");
        }
    }

    #[test]
    fn streams_divide_one_sequence_of_gaps() {
        let end_ns = 1_000_000_000;
        for text in LAWS {
            let whole = times_before(arrivals(of_law(text), Rate::per_second(20_000), WHOLE), end_ns);
            assert!(whole.len() > 18_000, "{text}: {}", whole.len());
            for of in [2, 8] {
                assert_eq!(
                    union(of_law(text), Rate::per_second(20_000), of, end_ns),
                    whole,
                    "{text} by {of}"
                );
            }
            let third = stream_of(2, 8);
            let dealt = times(arrivals(of_law(text), Rate::per_second(20_000), third), 100);
            assert!(
                dealt.iter().zip(whole.iter().skip(2).step_by(8)).all(|(one, other)| one == other),
                "{text}"
            );
        }
    }

    /// A larger weight takes more of the one sequence, and every element is taken once.
    #[test]
    fn weighted_portions_divide_the_same_sequence() {
        let (rate, end_ns) = (Rate::per_second(20_000), 1_000_000_000);
        let portion = |first, width| Portion { first, width, of: 6 };
        for arrival in LAWS.iter().map(|text| of_law(text)).chain([Arrival::Uniform]) {
            let whole = times_before(arrivals(arrival.clone(), rate, WHOLE), end_ns);
            let part = |portion| times_before(arrivals(arrival.clone(), rate, portion), end_ns);
            let parts = [part(portion(0, 3)), part(portion(3, 1)), part(portion(4, 2))];
            for (part, width) in parts.iter().zip([3, 1, 2]) {
                assert!(
                    (part.len() as f64 - whole.len() as f64 * f64::from(width) / 6.0).abs() <= 3.0,
                    "{arrival}"
                );
            }
            let mut union = parts.concat();
            union.sort_unstable();
            assert_eq!(union, whole, "{arrival}");
        }
    }

    /// In proportion to their weights, where each draws its own: a rate of 10 000 in all, six standard errors of the count.
    #[test]
    fn weighted_portions_have_weighted_rates() {
        let rates = [
            OpenRate::Constant(Rate::per_second(10_000)),
            OpenRate::Profile("0s=10k,60s=10k".parse().unwrap()),
        ];
        for (arrival, errors) in [("poisson", 6.0), ("mmpp:2,1ms,0.1", 60.0)] {
            for rate in &rates {
                for (first, width) in [(0, 3), (3, 1)] {
                    let portion = Portion { first, width, of: 4 };
                    let arrivals = Arrivals::new(&arrival.parse().unwrap(), rate, portion, 1, 0, 0);
                    let count = times_before(arrivals, 10_000_000_000).len() as f64;
                    let expected = 25_000.0 * f64::from(width);
                    assert!(
                        (count - expected).abs() < errors * expected.sqrt(),
                        "{arrival}: {count}, not {expected}"
                    );
                }
            }
        }
    }

    #[test]
    fn the_schedule_of_fb_ia_is_golden() {
        // Computed by a second implementation (another language, logarithm and exponential): 10 s at 100 000/s, seed 1.
        let times = times_before(arrivals(of_law("fb_ia"), Rate::per_second(100_000), WHOLE), 10_000_000_000);
        let hash = times.iter().fold(0xCBF2_9CE4_8422_2325, |hash: u64, due_ns| {
            (hash ^ due_ns).wrapping_mul(0x0000_0100_0000_01B3)
        });
        assert_eq!((times.len(), &times[..4]), (1_000_130, &[20_376, 59_597, 97_851, 98_569][..]));
        assert_eq!((times.last(), hash), (Some(&9_999_971_280), 0x3F73_5D33_7E12_A106));
    }

    #[test]
    fn a_fixed_gap_is_evenly_spaced() {
        // From the first gap on, where `uniform` begins at 0.
        let rate = Rate { micro_per_second: 333_333_250_001 };
        let fixed = times(arrivals(of_law("fixed:5"), rate, WHOLE), 1_000);
        assert_eq!(fixed, times(arrivals(Arrival::Uniform, rate, WHOLE), 1_001)[1..]);
    }

    const RAMP: &str = "0s=100,10s=20k,10s=0,15s=0,15s=1k,40s=60k";

    fn profiled(arrival: &Arrival, profile: &str, part: Portion, lead_ns: u64) -> Arrivals {
        Arrivals::new(arrival, &OpenRate::Profile(profile.parse().unwrap()), part, 1, 0, lead_ns)
    }

    #[test]
    fn a_flat_profile_is_the_constant_rate() {
        for (arrival, rate) in [
            (Arrival::Uniform, "333333.25"),
            (of_law("fb_ia"), "20k"),
            ("mmpp:2,1ms,0.3".parse().unwrap(), "5k"),
        ] {
            for lead_ns in [0, 1_500_000_000] {
                let part = stream_of(1, 3);
                let flat = profiled(&arrival, &format!("1s={rate},7s={rate}"), part, lead_ns);
                let constant = arrivals(arrival.clone(), rate.parse().unwrap(), part);
                assert_eq!(times(flat, 10_000), times(constant, 10_000), "{arrival}");
            }
        }
    }

    #[test]
    fn streams_of_a_profile_add_up() {
        for arrival in [Arrival::Uniform, of_law("fb_ia"), of_law("normal:1,1")] {
            let end_ns = 20_000_000_000;
            let whole = times_before(profiled(&arrival, RAMP, WHOLE, 0), end_ns);
            for of in [2, 8] {
                let stream = |index| times_before(profiled(&arrival, RAMP, stream_of(index, of), 0), end_ns);
                let mut union: Vec<u64> = (0..of).flat_map(stream).collect();
                union.sort_unstable();
                assert_eq!(union, whole, "{arrival} by {of}");
            }
        }
    }

    #[test]
    fn evenly_spaced_requests_of_a_profile_are_where_its_integral_is_whole() {
        // 100 and 20 000 with a second's mean of 10 050: 100 500 requests in the first ramp, then a pause.
        let lead_ns = 2_000_000_000;
        let times = times(profiled(&Arrival::Uniform, RAMP, WHOLE, lead_ns), 200_000);
        let profile: brunt_plan::arrival::RateProfile = RAMP.parse().unwrap();
        // The warm-up takes the first 200, at 100/s.
        assert_eq!(times[..3], [0, 10_000_000, 20_000_000]);
        assert_eq!(times[200], lead_ns);
        assert_eq!(times[100_700], lead_ns + 15_000_000_000);
        for (request, due_ns) in (0..).zip(&times).skip(201).step_by(101) {
            let (before, after) = (due_ns - lead_ns, due_ns - lead_ns + 1);
            // As exact as the plan's integral in floating point is; the exact floor is shown where it is computed.
            let due = |at_ns| 200.0 + requests_between(&profile, 0, at_ns) - f64::from(request);
            assert!(due(before) < 1e-4 && due(after) > -1e-4, "request {request} at {due_ns}");
        }
    }

    /// mcperf's connections: the first at once, each gap as drawn.
    #[test]
    fn connection_times_match_mcperf() {
        let rate = Rate::per_second(500);
        for text in ["mcperf:u0.001,0.003", "mcperf:e0.002@5", "mcperf:d0.002", "mcperf:s3"] {
            let Ok(Arrival::Mcperf(draw)) = text.parse() else { panic!("{text}") };
            let mut numbers = Draws::new(draw);
            // Of a sequence the number is that of gaps of the rate.
            let second = if draw.mean().is_some() { 1e9 } else { 2e6 };
            let mut at_ns = 0.0;
            let births = || Arrivals::of_connects(&Arrival::Mcperf(draw), rate, WHOLE, 1, 0);
            for due_ns in times(births(), 200) {
                assert!((due_ns as f64 - at_ns).abs() < 2.0, "{text}: {due_ns}, not {at_ns}");
                at_ns += numbers.next_number() * second;
            }
            let whole = times(births(), 90);
            let part = |index| Arrivals::of_connects(&Arrival::Mcperf(draw), rate, stream_of(index, 3), 1, 0);
            let mut dealt: Vec<u64> = (0..3).flat_map(|index| times(part(index), 30)).collect();
            dealt.sort_unstable();
            assert_eq!(dealt, whole, "{text}");
        }
    }

    #[test]
    fn profiles_keep_the_gap_distribution() {
        // In the time of the integral of the rate, gaps must be as they are at one request per second.
        let profile: brunt_plan::arrival::RateProfile = RAMP.parse().unwrap();
        for (arrival, distribution) in [
            (Arrival::Poisson, "exponential:1"),
            (of_law("fb_ia"), "fb_ia"),
            (of_law("lognormal:0,1"), "lognormal:0,1"),
        ] {
            let (of, end_ns) = (4, 35_000_000_000);
            let stream = |index| times_before(profiled(&arrival, RAMP, stream_of(index, of), 0), end_ns);
            let mut union: Vec<u64> = (0..of).flat_map(stream).collect();
            union.sort_unstable();
            let gaps_ns = union.windows(2).map(|pair| requests_between(&profile, pair[0], pair[1]) * 1e9);
            let places = places(gaps_ns, &distribution.parse().unwrap(), 1e9);
            let distance = kolmogorov_smirnov(&places);
            assert!(places.len() > 500_000 && distance < ks_critical(places.len()), "{arrival}: {distance}");
        }
    }

    #[test]
    fn the_slowest_rate_does_not_overflow_gaps_or_profiles() {
        let slowest = Rate { micro_per_second: 1 };
        let part = stream_of(1, 1_000);
        for text in LAWS {
            let times = times(arrivals(of_law(text), slowest, part), 100);
            assert!(times.is_sorted() && times.last() == Some(&u64::MAX), "{text}");
        }
        for arrival in [Arrival::Uniform, Arrival::Poisson, of_law("fb_ia")] {
            let times = times(profiled(&arrival, "0s=0,876600h=0.000001", part, 1), 100);
            assert!(times.is_sorted() && times.last() == Some(&u64::MAX), "{arrival}");
        }
    }
}
