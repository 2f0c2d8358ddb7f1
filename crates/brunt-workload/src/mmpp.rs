//! Poisson arrivals in bursts: a Markov-modulated Poisson process with two states.
//!
//! Bursts and calm belong to the class: every stream draws them from the same generator, so that all of them burst
//! together. What each stream adds in a state is a Poisson process of its own. Lengths of states are times on the clock; a
//! profile moves the rate of both states alike.

use crate::intensity::{Intensity, MASS_PER_REQUEST};
use crate::rng::{Draw, Rng};
use brunt_plan::arrival::Mmpp;
use brunt_plan::shard::Portion;

/// One stream's arrivals.
#[derive(Clone, Debug)]
pub struct MmppArrivals {
    states: States,
    /// What the mean rate has collected when the state changes.
    until: u128,
    /// Where this stream is, in the mass that the mean rate collects.
    mass: u128,
    /// Mean gap in that mass, in calm and in a burst; none where no request comes.
    mean_gap: [Option<f64>; 2],
    intensity: Intensity,
    rng: Rng,
    due_ns: u64,
}

impl MmppArrivals {
    /// `shared` is the same for all streams of the class, `rng` the stream's own.
    pub(crate) fn new(
        mmpp: &Mmpp,
        mut intensity: Intensity,
        portion: Portion,
        shared: Rng,
        rng: Rng,
    ) -> Self {
        let states = States::new(mmpp, shared);
        let streams = f64::from(portion.of) / f64::from(portion.width);
        let mean_gap =
            |times_mean: f64| (times_mean > 0.0).then(|| streams * MASS_PER_REQUEST as f64 / times_mean);
        let until = intensity.mass_at(states.until_ns());
        let mean_gap = [mean_gap(mmpp.low()), mean_gap(mmpp.peak)];
        let mut arrivals = Self { states, until, mass: 0, mean_gap, intensity, rng, due_ns: 0 };
        arrivals.advance();
        arrivals
    }

    /// Begins anew with an arrival at time 0, with other random numbers.
    pub(crate) fn restart(&mut self, rng: Rng, states: Rng) {
        self.states.restart(states);
        self.intensity.rewind();
        self.until = self.intensity.mass_at(self.states.until_ns());
        (self.rng, self.mass, self.due_ns) = (rng, 0, 0);
    }

    #[inline]
    pub(crate) fn due_ns(&self) -> u64 {
        self.due_ns
    }

    pub(crate) fn advance(&mut self) {
        loop {
            if let Some(mean_gap) = self.mean_gap[usize::from(self.states.bursting)] {
                let gap = -libm::log(self.rng.unit_open()) * mean_gap;
                let next = self.mass.saturating_add(gap as u128);
                if next < self.until {
                    self.mass = next;
                    self.due_ns = self.intensity.time_of(next);
                    return;
                }
            }
            if self.states.until_ns() == u64::MAX {
                self.due_ns = u64::MAX;
                return;
            }
            // An exponential gap has no memory: what is left of it at the change is as good as a new one.
            self.mass = self.until;
            self.states.change();
            self.until = self.intensity.mass_at(self.states.until_ns());
        }
    }
}

/// The modulating chain.
#[derive(Clone, Debug)]
struct States {
    bursting: bool,
    /// When the state changes, in 2⁻³² ns.
    until: u128,
    /// The part of time that bursts take.
    duty: f64,
    /// Mean lengths of calm and burst in 2⁻³² ns.
    mean: [f64; 2],
    rng: Rng,
}

impl States {
    fn new(mmpp: &Mmpp, rng: Rng) -> Self {
        const UNITS_PER_NS: f64 = 4_294_967_296.0;
        let mean = [mmpp.calm_ns() * UNITS_PER_NS, mmpp.burst.0 as f64 * UNITS_PER_NS];
        let mut states = Self { bursting: false, until: 0, duty: mmpp.duty, mean, rng: rng.clone() };
        states.restart(rng);
        states
    }

    /// Stationary from the start: in a burst with the probability of the part of time that bursts take.
    fn restart(&mut self, rng: Rng) {
        (self.rng, self.until) = (rng, 0);
        let bursting = self.rng.unit_open() <= self.duty;
        // The change into the first state.
        self.bursting = !bursting;
        self.change();
    }

    fn until_ns(&self) -> u64 {
        u64::try_from(self.until >> 32).unwrap_or(u64::MAX)
    }

    fn change(&mut self) {
        self.bursting = !self.bursting;
        let length = -libm::log(self.rng.unit_open()) * self.mean[usize::from(self.bursting)];
        self.until = self.until.saturating_add(length as u128);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::goodness_of_fit::{kolmogorov_smirnov, ks_critical};
    use crate::rng::Purpose;
    use brunt_plan::arrival::Arrival;
    use brunt_plan::plan::OpenRate;
    use brunt_plan::units::{DurationNs, Rate};

    fn mmpp(text: &str) -> Mmpp {
        match text.parse() {
            Ok(Arrival::Mmpp(mmpp)) => mmpp,
            other => panic!("{other:?}"),
        }
    }

    fn constant(per_second: u64) -> OpenRate {
        OpenRate::Constant(Rate::per_second(per_second))
    }

    fn shared() -> Rng {
        Rng::for_stream(1, Purpose::SharedArrivals, 0, 0)
    }

    /// What stream `index` of `of` has due before `end_ns`.
    fn times(mmpp: &Mmpp, rate: &OpenRate, part: (u32, u32), end_ns: u64) -> Vec<u64> {
        let rng = Rng::for_stream(1, Purpose::Arrivals, 0, part.0);
        let part = Portion { first: part.0, width: 1, of: part.1 };
        let mut arrivals = MmppArrivals::new(mmpp, Intensity::new(rate, 0), part, shared(), rng);
        let next = || {
            let due_ns = arrivals.due_ns();
            arrivals.advance();
            (due_ns < end_ns).then_some(due_ns)
        };
        std::iter::from_fn(next).collect()
    }

    /// The union of all streams, in order.
    fn union(mmpp: &Mmpp, rate: &OpenRate, of: u32, end_ns: u64) -> Vec<u64> {
        let mut union: Vec<u64> = (0..of).flat_map(|index| times(mmpp, rate, (index, of), end_ns)).collect();
        union.sort_unstable();
        union
    }

    /// Bursts before `end_ns`, as (start, end).
    fn bursts(mmpp: &Mmpp, end_ns: u64) -> Vec<(u64, u64)> {
        let mut states = States::new(mmpp, shared());
        let (mut bursts, mut start_ns) = (Vec::new(), 0);
        while start_ns < end_ns {
            let until_ns = states.until_ns();
            if states.bursting {
                bursts.push((start_ns, until_ns.min(end_ns)));
            }
            states.change();
            start_ns = until_ns;
        }
        bursts
    }

    #[test]
    fn counts_are_as_dispersed_as_the_formula_says() {
        // States change 111 times a second: 2 s are long, and leave the index 0.5 % below its limit. Of 10 000 counts, the
        // variance is known to 1.4 %. Streams that did not burst together would have an eighth of the excess.
        const WINDOW_NS: u64 = 2_000_000_000;
        let (mmpp, rate) = (mmpp("mmpp:8,10ms,0.1"), Rate::per_second(200));
        for of in [1, 8] {
            let mut counts = vec![0f64; 10_000];
            for due_ns in union(&mmpp, &OpenRate::Constant(rate), of, 10_000 * WINDOW_NS) {
                counts[(due_ns / WINDOW_NS) as usize] += 1.0;
            }
            let mean = counts.iter().sum::<f64>() / counts.len() as f64;
            let variance =
                counts.iter().map(|count| (count - mean).powi(2)).sum::<f64>() / (counts.len() - 1) as f64;
            let (idc, expected) = (variance / mean, mmpp.idc(rate));
            assert!((expected - 20.6).abs() < 1e-9, "1 + 2 · 200/s · 10 ms · 0.1 · 7²");
            assert!((idc / expected - 1.0).abs() < 0.05, "{of} streams: {idc} is not {expected}");
            // The mean of the counts has a standard error of √(20.6 · 400 / 10 000).
            assert!((mean - 400.0).abs() < 4.0 * 0.91, "{of} streams: {mean}");
        }
    }

    #[test]
    fn bursts_have_the_requested_length_and_duty() {
        const END_NS: u64 = 20_000_000_000_000;
        let bursts = bursts(&mmpp("mmpp:2,100ms,0.2"), END_NS);
        let total_ns: u64 = bursts.iter().map(|(start, end)| end - start).sum();
        // 40 000 bursts: their mean is known to 0.5 %, their part of time to 0.6 %.
        assert!((bursts.len() as f64 / 40_000.0 - 1.0).abs() < 0.02, "{} bursts", bursts.len());
        assert!((total_ns as f64 / END_NS as f64 / 0.2 - 1.0).abs() < 0.025, "{total_ns} ns");
        let places: Vec<f64> = bursts[1..bursts.len() - 1]
            .iter()
            .map(|(start, end)| 1.0 - (-((end - start) as f64) / 1e8).exp())
            .collect();
        assert!(kolmogorov_smirnov(&places) < ks_critical(places.len()));
    }

    #[test]
    fn given_the_bursts_arrivals_are_poisson() {
        // Time stretched by the rate of the state at hand must show exponential gaps, alone and in union.
        let (mmpp, end_ns) = (mmpp("mmpp:3,20ms,0.25"), 1_000_000_000_000);
        let low = mmpp.low();
        let bursts = bursts(&mmpp, end_ns);
        for (times, rate) in [
            (times(&mmpp, &constant(1_000), (3, 8), end_ns), 125.0),
            (union(&mmpp, &constant(1_000), 8, end_ns), 1_000.0),
        ] {
            let (mut index, mut burst_ns) = (0, 0);
            let stretched = |due_ns: &u64| {
                while bursts.get(index).is_some_and(|(_, end)| end <= due_ns) {
                    burst_ns += bursts[index].1 - bursts[index].0;
                    index += 1;
                }
                let here_ns = bursts.get(index).map_or(0, |(start, _)| due_ns.saturating_sub(*start));
                let in_bursts = (burst_ns + here_ns) as f64;
                (in_bursts * mmpp.peak + (*due_ns as f64 - in_bursts) * low) / 1e9 * rate
            };
            let stretched: Vec<f64> = times.iter().map(stretched).collect();
            let places: Vec<f64> = stretched.windows(2).map(|pair| 1.0 - (pair[0] - pair[1]).exp()).collect();
            let distance = kolmogorov_smirnov(&places);
            assert!(places.len() > 100_000 && distance < ks_critical(places.len()), "{distance}");
        }
    }

    #[test]
    fn bursts_at_full_duty_leave_no_calm_arrivals() {
        let (mmpp, end_ns) = (mmpp("mmpp:4,50ms,0.25"), 100_000_000_000);
        assert_eq!(mmpp.low(), 0.0);
        let bursts = bursts(&mmpp, end_ns);
        let times = union(&mmpp, &constant(1_000), 3, end_ns);
        assert!(times.len() > 80_000);
        let in_burst = |due_ns: &u64| {
            let index = bursts.partition_point(|(start, _)| start <= due_ns);
            index > 0 && *due_ns <= bursts[index - 1].1
        };
        assert!(times.iter().all(in_burst));
    }

    #[test]
    fn a_profile_moves_both_states_and_leaves_the_bursts() {
        // Flat, it is the constant rate; else the counts follow its integral: 100 s at a mean of 1000/s, 100 s at 3000/s.
        let (mmpp, end_ns) = (mmpp("mmpp:2,10ms,0.5"), 200_000_000_000);
        let profile = |text: &str| OpenRate::Profile(text.parse().unwrap());
        assert_eq!(
            times(&mmpp, &profile("3s=1000,5s=1000"), (0, 1), end_ns),
            times(&mmpp, &constant(1_000), (0, 1), end_ns)
        );
        let ramp = times(&mmpp, &profile("0s=0,200s=4000"), (0, 1), end_ns);
        let first = ramp.partition_point(|due_ns| *due_ns < end_ns / 2);
        // Index of dispersion 1 + 2 · 1000/s · 10 ms · 0.5 = 11 and at most 41: deviations of 1.1 k and 3.5 k.
        assert!(first.abs_diff(100_000) < 4_400, "{first}");
        assert!((ramp.len() - first).abs_diff(300_000) < 14_000, "{}", ramp.len() - first);
        let silent = bursts(&mmpp, end_ns).iter().zip(bursts(&mmpp, end_ns).iter().skip(1)).all(
            |((_, end), (start, _))| {
                ramp.partition_point(|due_ns| due_ns <= end) == ramp.partition_point(|due_ns| due_ns < start)
            },
        );
        assert!(silent, "at twice the mean rate for half the time nothing comes between bursts");
    }

    #[test]
    fn the_slowest_rate_and_the_last_instant_do_not_overflow() {
        let mmpp = Mmpp { peak: 2.0, burst: DurationNs(u64::MAX / 4), duty: 0.5 };
        let slowest = OpenRate::Constant(Rate { micro_per_second: 1 });
        let times = times(&mmpp, &slowest, (0, u32::MAX), u64::MAX);
        assert!(times.len() < 3);
    }
}
