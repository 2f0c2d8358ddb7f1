//! The integral of a rate over time, and its inverse: how the time of a process at one request per unit of mass becomes
//! time on the clock.
//!
//! Not an arrival process: it draws nothing. All of it is integers: no step is rounded on its own, and the inverse is the
//! exact floor, however long a stretch lasts and however slow it is.

use brunt_plan::plan::OpenRate;
use brunt_plan::profile::PointRate;

/// Units of mass per request. One unit is what a rate of half a millionth of a request per second collects in a nanosecond:
/// the area under a straight line between whole rates and times, (r₀ + r₁)·t/2 in 10⁻¹⁵ requests, is a whole number of them.
pub(crate) const MASS_PER_REQUEST: u128 = 2_000_000_000_000_000;

/// A rate over time as straight lines, with a place in it for each of the two questions, which go on in time only.
#[derive(Clone, Debug)]
pub(crate) struct Intensity {
    segments: Vec<Segment>,
    time_of_mass: usize,
    mass_at_time: usize,
}

/// A stretch in which the rate is a straight line.
#[derive(Clone, Copy, Debug)]
struct Segment {
    start_ns: u64,
    /// Above 0; `u64::MAX` for the last one, which is flat.
    length_ns: u64,
    /// Mass before the segment, and with it.
    start_mass: u128,
    end_mass: u128,
    /// Rates at both ends in millionths per second.
    from: u64,
    to: u64,
}

impl Intensity {
    /// The rate of a class. Profiles count from the measured window, which begins `lead_ns` after time 0 here.
    pub(crate) fn new(rate: &OpenRate, lead_ns: u64) -> Self {
        let mut intensity = Self { segments: Vec::new(), time_of_mass: 0, mass_at_time: 0 };
        match rate {
            OpenRate::Constant(rate) => {
                let level = PointRate { micro_per_second: rate.micro_per_second };
                intensity.push(0, u64::MAX, level, level);
            }
            OpenRate::Profile(profile) => {
                let (first, last) = (profile.points[0], profile.points[profile.points.len() - 1]);
                intensity.push(0, lead_ns.saturating_add(first.at.0), first.rate, first.rate);
                for pair in profile.points.windows(2) {
                    let start_ns = lead_ns.saturating_add(pair[0].at.0);
                    intensity.push(start_ns, pair[1].at.0 - pair[0].at.0, pair[0].rate, pair[1].rate);
                }
                intensity.push(lead_ns.saturating_add(last.at.0), u64::MAX, last.rate, last.rate);
            }
        }
        intensity
    }

    /// Adds a stretch; a step, which takes no time, is no stretch.
    fn push(&mut self, start_ns: u64, length_ns: u64, from: PointRate, to: PointRate) {
        if length_ns == 0 {
            return;
        }
        let (from, to) = (from.micro_per_second, to.micro_per_second);
        let start_mass = self.segments.last().map_or(0, |before| before.end_mass);
        // At most 2·10¹⁵ times 2⁶⁴: a hundred such stretches fit 128 bits, and then time has ended.
        let end_mass = start_mass.saturating_add((u128::from(from) + u128::from(to)) * u128::from(length_ns));
        self.segments.push(Segment { start_ns, length_ns, start_mass, end_mass, from, to });
    }

    /// The last whole nanosecond at which no more than `mass` has been collected; `u64::MAX` is never. Where nothing is
    /// collected for a while, that is the end of the while. From call to call `mass` does not shrink.
    pub(crate) fn time_of(&mut self, mass: u128) -> u64 {
        while self.segments[self.time_of_mass].end_mass <= mass {
            self.time_of_mass += 1;
            if self.time_of_mass == self.segments.len() {
                self.time_of_mass -= 1;
                return u64::MAX;
            }
        }
        let segment = &self.segments[self.time_of_mass];
        segment.start_ns.saturating_add(segment.time_of(mass - segment.start_mass))
    }

    /// The mass collected until `at_ns`, in whole units. From call to call `at_ns` does not shrink.
    pub(crate) fn mass_at(&mut self, at_ns: u64) -> u128 {
        let ended = |segment: &Segment| segment.start_ns.saturating_add(segment.length_ns) <= at_ns;
        while self.mass_at_time + 1 < self.segments.len() && ended(&self.segments[self.mass_at_time]) {
            self.mass_at_time += 1;
        }
        let segment = &self.segments[self.mass_at_time];
        segment.start_mass + segment.mass_at(at_ns - segment.start_ns).whole
    }
}

/// A mass in whole units, and whether a part of a unit is left over.
struct Mass {
    whole: u128,
    has_rest: bool,
}

impl Segment {
    /// 2·from·t + (to − from)·t²/length. `t` does not exceed the length.
    fn mass_at(&self, t: u64) -> Mass {
        let even = 2 * u128::from(self.from) * u128::from(t);
        if self.from == self.to {
            return Mass { whole: even, has_rest: false };
        }
        let (square, length) = (u128::from(t) * u128::from(t), u128::from(self.length_ns));
        // The product of slope and square would not fit. The quotient is at most t, and both products are below 2¹¹⁵.
        let (quotient, rest) = ((square / length) as i128, (square % length) as i128);
        let (rise, length) = (i128::from(self.to) - i128::from(self.from), length as i128);
        let whole = even as i128 + rise * quotient + (rise * rest).div_euclid(length);
        Mass { whole: whole as u128, has_rest: (rise * rest).rem_euclid(length) != 0 }
    }

    fn exceeds(&self, t: u64, mass: u128) -> bool {
        let collected = self.mass_at(t);
        collected.whole > mass || (collected.whole == mass && collected.has_rest)
    }

    /// The last `t` below the length at which the segment has not collected more than `mass`, which is less than it
    /// collects in all.
    fn time_of(&self, mass: u128) -> u64 {
        if self.from == self.to {
            return u64::try_from(mass / (2 * u128::from(self.from))).unwrap_or(u64::MAX);
        }
        // The root of the quadratic, in the form in which its terms do not cancel, is right up to rounding; whole numbers
        // decide. As a rule they ask two times.
        let (from, rise) = (self.from as f64, self.to as f64 - self.from as f64);
        let mean_rate = from + (from * from + rise / self.length_ns as f64 * mass as f64).max(0.0).sqrt();
        let guess = ((mass as f64 / mean_rate) as u64).min(self.length_ns - 1);
        let (mut low, mut high) = self.bracket(guess, mass);
        while high - low > 1 {
            let middle = low + (high - low) / 2;
            if self.exceeds(middle, mass) {
                high = middle;
            } else {
                low = middle;
            }
        }
        low
    }

    /// Two times between which `mass` is passed, found in growing strides from a guess.
    fn bracket(&self, guess: u64, mass: u128) -> (u64, u64) {
        let (mut stride, mut at) = (1, guess);
        if self.exceeds(guess, mass) {
            while at > stride && self.exceeds(at - stride, mass) {
                at -= stride;
                stride *= 2;
            }
            (at.saturating_sub(stride), at)
        } else {
            while self.length_ns - at > stride && !self.exceeds(at + stride, mass) {
                at += stride;
                stride *= 2;
            }
            (at, at.saturating_add(stride).min(self.length_ns))
        }
    }
}
