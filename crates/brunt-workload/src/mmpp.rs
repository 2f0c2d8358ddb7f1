//! Poisson arrivals in bursts: a Markov-modulated Poisson process with two states.
//!
//! Bursts and calm belong to the class: every stream draws them from the same generator, so that all of them burst
//! together. What each stream adds in a state is a Poisson process of its own. Lengths of states are times on the clock; a
//! profile moves the rate of both states alike.

use crate::profile::{Intensity, MASS_PER_REQUEST};
use crate::rng::{Draw, Rng};
use brunt_plan::distribution::Mmpp;
use brunt_plan::shard::StreamPart;

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
        part: StreamPart,
        shared: Rng,
        rng: Rng,
    ) -> Self {
        let states = States::new(mmpp, shared);
        let mean_gap = |times_mean: f64| {
            (times_mean > 0.0).then(|| f64::from(part.of) * MASS_PER_REQUEST as f64 / times_mean)
        };
        let until = intensity.mass_at(states.until_ns());
        let mean_gap = [mean_gap(mmpp.low()), mean_gap(mmpp.peak)];
        let mut arrivals = Self { states, until, mass: 0, mean_gap, intensity, rng, due_ns: 0 };
        arrivals.advance();
        arrivals
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
    /// Mean lengths of calm and burst in 2⁻³² ns.
    mean: [f64; 2],
    rng: Rng,
}

impl States {
    fn new(mmpp: &Mmpp, mut rng: Rng) -> Self {
        const UNITS_PER_NS: f64 = 4_294_967_296.0;
        // Stationary from the start: in a burst with the probability of the part of time that bursts take.
        let bursting = rng.unit_open() <= mmpp.duty;
        let mean = [mmpp.calm_ns() * UNITS_PER_NS, mmpp.burst.0 as f64 * UNITS_PER_NS];
        // The change into the first state.
        let mut states = Self { bursting: !bursting, until: 0, mean, rng };
        states.change();
        states
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
