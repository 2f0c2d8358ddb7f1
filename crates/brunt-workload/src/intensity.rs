//! The integral of a rate over time, and its inverse: how the time of a process at one request per unit of mass becomes
//! time on the clock.
//!
//! All of it is integers: no step is rounded on its own, and the inverse is the exact floor, however long a stretch
//! lasts and however slow it is.

use brunt_plan::plan::OpenRate;
use brunt_plan::units::Rate;

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
    /// Goes back to time 0.
    pub(crate) fn rewind(&mut self) {
        (self.time_of_mass, self.mass_at_time) = (0, 0);
    }

    /// The rate of a class. Profiles count from the measured window, which begins `lead_ns` after time 0 here.
    pub(crate) fn new(rate: &OpenRate, lead_ns: u64) -> Self {
        let mut intensity = Self { segments: Vec::new(), time_of_mass: 0, mass_at_time: 0 };
        match rate {
            OpenRate::Constant(rate) | OpenRate::PerConnection(rate) => {
                intensity.push(0, u64::MAX, *rate, *rate);
            }
            // A trace has its own times.
            OpenRate::Recorded => {}
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
    fn push(&mut self, start_ns: u64, length_ns: u64, from: Rate, to: Rate) {
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

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use brunt_plan::arrival::RateProfile;
    use proptest::prelude::*;

    /// Requests per second at an instant.
    fn rate_at(RateProfile { points }: &RateProfile, at_ns: u64) -> f64 {
        // The last point at or before the instant: of a step, the side that goes on.
        let index = points.iter().rposition(|point| point.at.0 <= at_ns);
        match index.map(|index| (points[index], points.get(index + 1))) {
            None => points[0].rate.as_f64(),
            Some((last, None)) => last.rate.as_f64(),
            Some((from, Some(next))) => {
                let part = (at_ns - from.at.0) as f64 / (next.at.0 - from.at.0) as f64;
                from.rate.as_f64() + (next.rate.as_f64() - from.rate.as_f64()) * part
            }
        }
    }

    /// How many requests are due in a span, on average: the integral of the rate, in floating point.
    pub(crate) fn requests_between(profile: &RateProfile, from_ns: u64, to_ns: u64) -> f64 {
        let bends = profile.points.iter().map(|point| point.at.0);
        let bends = bends.filter(|at_ns| (from_ns..to_ns).contains(at_ns));
        let mut edges: Vec<u64> = [from_ns, to_ns].into_iter().chain(bends).collect();
        edges.sort_unstable();
        edges.dedup();
        // Between two neighbouring edges the rate is a straight line, so that its middle is its mean; half a nanosecond
        // of a step is lost to rounding.
        let area = |span: &[u64]| {
            let middle_ns = span[0] + (span[1] - span[0]) / 2;
            rate_at(profile, middle_ns) * (span[1] - span[0]) as f64 / 1e9
        };
        edges.windows(2).map(area).sum()
    }

    #[test]
    fn rates_and_their_integrals() {
        let profile: RateProfile = "1s=100,3s=300,3s=50,4s=50".parse().unwrap();
        let at = |ms: u64| rate_at(&profile, ms * 1_000_000);
        assert_eq!([at(0), at(1_000), at(2_000), at(3_000), at(9_000)], [100.0, 100.0, 200.0, 50.0, 50.0]);
        let between =
            |from: u64, to: u64| requests_between(&profile, from * 1_000_000_000, to * 1_000_000_000);
        // 100, then a ramp with the mean 200 over two seconds, then 50 a second.
        assert!((between(0, 5) - (100.0 + 400.0 + 100.0)).abs() < 1e-3, "{}", between(0, 5));
        assert!((between(2, 3) - 250.0).abs() < 1e-3);
        assert_eq!(between(3, 3), 0.0);
        // A triangle of 10 requests, a pause, and 5 a second.
        let paused: RateProfile = "0s=0,2s=10,2s=0,3s=0,3s=5".parse().unwrap();
        let found = [requests_between(&paused, 0, 3_000_000_000), rate_at(&paused, 2_500_000_000)];
        assert_eq!(found, [10.0, 0.0]);
    }

    fn intensity(profile: &str, lead_ns: u64) -> Intensity {
        Intensity::new(&OpenRate::Profile(profile.parse().unwrap()), lead_ns)
    }

    const PROFILES: [&str; 7] = [
        "0s=1k",
        "0s=1k,10s=50k,10s=10k,20s=10k,30s=200k",
        "0s=0,10s=100k",
        "5s=30k,10s=0,20s=0,25s=77.777k,26s=1",
        "0s=0,1s=0,1s=300k",
        "0s=333333.25,7s=0.5,9s=1M",
        "0s=100k,1s=0,1000000001ns=100k",
    ];

    /// What a profile has collected after `at_ns`, as a fraction: the definition with everything multiplied out, which fits
    /// 128 bits for stretches of up to a minute.
    fn collected(profile: &OpenRate, at_ns: u64) -> (i128, i128) {
        let OpenRate::Profile(profile) = profile else { panic!("no profile") };
        let points = &profile.points;
        let rate = |index: usize| i128::from(points[index].rate.micro_per_second);
        let time = |index: usize| i128::from(points[index].at.0);
        let at = i128::from(at_ns);
        let mut sum = 2 * rate(0) * at.min(time(0));
        for index in 1..points.len() {
            let (from, to) = (time(index - 1), time(index));
            if at >= to {
                sum += (rate(index - 1) + rate(index)) * (to - from);
            } else if at > from {
                let part = 2 * rate(index - 1) * (to - from) * (at - from)
                    + (rate(index) - rate(index - 1)) * (at - from) * (at - from);
                return (sum * (to - from) + part, to - from);
            }
        }
        let last = points.len() - 1;
        (sum + 2 * rate(last) * (at - time(last)).max(0), 1)
    }

    #[test]
    fn the_inverse_is_the_exact_floor() {
        for text in PROFILES {
            let rate = OpenRate::Profile(text.parse().unwrap());
            let mut intensity = Intensity::new(&rate, 0);
            for request in (0..1_000_000u64).step_by(97) {
                let mass = u128::from(request) * MASS_PER_REQUEST;
                let at_ns = intensity.time_of(mass);
                let exceeds = |at_ns| {
                    let (numerator, denominator) = collected(&rate, at_ns);
                    numerator > mass as i128 * denominator
                };
                assert!(!exceeds(at_ns) && exceeds(at_ns + 1), "{text}: request {request} at {at_ns}");
            }
        }
    }

    #[test]
    fn the_inverse_agrees_with_the_integral_of_the_plan() {
        for text in PROFILES {
            let profile: RateProfile = text.parse().unwrap();
            let mut intensity = intensity(text, 0);
            for request in (1..1_000_000u64).step_by(9_973) {
                let at_ns = intensity.time_of(u128::from(request) * MASS_PER_REQUEST);
                let due = requests_between(&profile, 0, at_ns);
                assert!((due - request as f64).abs() < 1e-3, "{text}: {due} and not {request} at {at_ns}");
            }
        }
    }

    #[test]
    fn the_first_rate_holds_through_the_warm_up() {
        let mut intensity = intensity("1s=100,3s=300", 2_000_000_000);
        // 100/s for two seconds before the window and one in it, then a ramp of 400 requests, then 300/s.
        for (request, expected_ns) in
            [(0, 0), (1, 10_000_000), (300, 3_000_000_000), (700, 5_000_000_000), (1_000, 6_000_000_000)]
        {
            assert_eq!(intensity.time_of(request * MASS_PER_REQUEST), expected_ns);
            assert_eq!(intensity.mass_at(expected_ns), request * MASS_PER_REQUEST);
        }
    }

    #[test]
    fn no_arrivals_at_rate_0() {
        let mut intensity = intensity("0s=0,10s=0,10s=100,11s=100,11s=0,20s=0,20s=100", 0);
        let slots: Vec<u64> = (0..102).map(|slot| intensity.time_of(slot * MASS_PER_REQUEST)).collect();
        assert_eq!(slots[..2], [10_000_000_000, 10_010_000_000]);
        assert_eq!(slots[99..], [10_990_000_000, 20_000_000_000, 20_010_000_000]);
    }

    #[test]
    fn slow_and_long_stretches_lose_nothing() {
        // A request every 11.6 days for a century, then down to a thousandth of that within another.
        let mut slow = intensity("0s=0.000001,876600h=0.000001,876600h=0.001,1753200h=0.000001", 0);
        let century_s = 876_600 * 3_600u128;
        assert_eq!(slow.time_of(MASS_PER_REQUEST), 1_000_000_000_000_000);
        assert_eq!(slow.time_of(century_s * MASS_PER_REQUEST / 1_000_000), century_s as u64 * 1_000_000_000);
        // The ramp has the mean of its ends.
        let ramp = century_s * MASS_PER_REQUEST * 1_001 / 2_000_000;
        let end = century_s * MASS_PER_REQUEST / 1_000_000 + ramp;
        assert_eq!(slow.mass_at(2 * century_s as u64 * 1_000_000_000), end);
        assert_eq!(slow.time_of(end), 2 * century_s as u64 * 1_000_000_000);
        assert_eq!(slow.time_of(u128::MAX), u64::MAX);
    }

    proptest! {
        #[test]
        fn time_and_mass_agree_at_all_sizes(
            rates in prop::array::uniform2(0..=1_000_000_000_000_000u64), length_bits in 0..64u32, length in any::<u64>(), place in 0.0..1.0f64,
        ) {
            let length_ns = (length >> length_bits).max(1);
            let [from, to] = rates;
            let end_mass = (u128::from(from) + u128::from(to)) * u128::from(length_ns);
            prop_assume!(end_mass > 0);
            let segment = Segment { start_ns: 0, length_ns, start_mass: 0, end_mass, from, to };
            prop_assert_eq!(segment.mass_at(length_ns).whole, end_mass);
            let mass = ((end_mass as f64 * place) as u128).min(end_mass - 1);
            let at = segment.time_of(mass);
            prop_assert!(at < length_ns && !segment.exceeds(at, mass) && segment.exceeds(at + 1, mass));
            // Against floating point, which is good to its own precision.
            let t = at as f64;
            let expected = 2.0 * from as f64 * t + (to as f64 - from as f64) * (t / length_ns as f64) * t;
            prop_assert!((segment.mass_at(at).whole as f64 - expected).abs() <= 1e-12 * end_mass as f64 + 2.0);
        }
    }
}
