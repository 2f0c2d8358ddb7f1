//! From values to pixels, and the values that an axis names.
//!
//! Invariant: ticks lie within the scale, in ascending order, and are numbers that people count by: 1, 2 and 5 times a
//! power of ten, or round parts of minutes and hours.

/// How values are spread over pixels.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Linear,
    Logarithmic,
}

/// A range of values on a range of pixels.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Scale {
    kind: Kind,
    low: f64,
    high: f64,
    low_pixel: f64,
    high_pixel: f64,
}

/// Seconds that a clock face has names for.
const TIME_STEPS_S: [f64; 17] = [
    1.0, 2.0, 5.0, 10.0, 15.0, 30.0, 60.0, 120.0, 300.0, 600.0, 900.0, 1800.0, 3600.0, 7200.0, 10_800.0,
    21_600.0, 43_200.0,
];
const DAY_S: f64 = 86_400.0;

impl Scale {
    /// Equal steps of values are equal steps of pixels. A range without extent is widened to one.
    pub fn linear((low, high): (f64, f64), (low_pixel, high_pixel): (f64, f64)) -> Self {
        let high = if high > low { high } else { low + 1.0 };
        Self { kind: Kind::Linear, low, high, low_pixel, high_pixel }
    }

    /// Equal ratios of values are equal steps of pixels. Values begin above 0; a range without extent is widened to a decade.
    pub fn logarithmic((low, high): (f64, f64), (low_pixel, high_pixel): (f64, f64)) -> Self {
        let low = low.max(f64::MIN_POSITIVE);
        let high = if high > low { high } else { low * 10.0 };
        Self { kind: Kind::Logarithmic, low, high, low_pixel, high_pixel }
    }

    /// Where a value lies; those outside lie at the nearer end.
    pub fn pixel(&self, value: f64) -> f64 {
        let value = value.clamp(self.low, self.high);
        let part = match self.kind {
            Kind::Linear => (value - self.low) / (self.high - self.low),
            Kind::Logarithmic => (value / self.low).ln() / (self.high / self.low).ln(),
        };
        self.low_pixel + part * (self.high_pixel - self.low_pixel)
    }

    /// Round values, as many of them as there may be: 1-2-5 steps, on a logarithmic scale 1-2-5 of every decade, or only
    /// decades, or only some of those.
    pub fn ticks(&self, at_most: usize) -> Vec<f64> {
        match self.kind {
            Kind::Linear => {
                let steps =
                    (-15..=18).flat_map(|exponent| [1.0, 2.0, 5.0].map(|digit| decimal(digit, exponent)));
                self.multiples(steps, at_most)
            }
            Kind::Logarithmic => self.logarithmic_ticks(at_most),
        }
    }

    /// Round values of a scale that counts seconds.
    pub fn time_ticks(&self, at_most: usize) -> Vec<f64> {
        let days = (0..12).flat_map(|exponent| [1.0, 2.0, 5.0].map(|digit| DAY_S * decimal(digit, exponent)));
        self.multiples(TIME_STEPS_S.into_iter().chain(days), at_most)
    }

    /// The multiples of the first step that has few enough of them.
    fn multiples(&self, steps: impl Iterator<Item = f64>, at_most: usize) -> Vec<f64> {
        for step in steps {
            // A billionth of a step lets an end take part that rounding has moved.
            let first = (self.low / step - 1e-9).ceil();
            let last = (self.high / step + 1e-9).floor();
            if last - first < at_most as f64 {
                let count = (last - first + 1.0).max(0.0) as usize;
                return (0..count).map(|index| (first + index as f64) * step).collect();
            }
        }
        Vec::new()
    }

    fn logarithmic_ticks(&self, at_most: usize) -> Vec<f64> {
        let (low, high) = (self.low * (1.0 - 1e-9), self.high * (1.0 + 1e-9));
        let exponents = low.log10().floor() as i32..=high.log10().ceil() as i32;
        let of = |digits: &[f64], every: i32| {
            let decades = exponents.clone().filter(|exponent| exponent.rem_euclid(every) == 0);
            let values =
                decades.flat_map(|exponent| digits.iter().map(move |digit| decimal(*digit, exponent)));
            values.filter(|value| (low..=high).contains(value)).collect::<Vec<f64>>()
        };
        let finest = of(&[1.0, 2.0, 5.0], 1);
        if finest.len() <= at_most {
            return finest;
        }
        // Each is shorter than the last, and ends at one decade of all.
        (1..).map(|every| of(&[1.0], every)).find(|ticks| ticks.len() <= at_most.max(1)).unwrap_or_default()
    }
}

/// A digit times a power of ten, as exact as its written form.
fn decimal(digit: f64, exponent: i32) -> f64 {
    if exponent < 0 { digit / 10f64.powi(-exponent) } else { digit * 10f64.powi(exponent) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_lie_where_they_belong() {
        let linear = Scale::linear((10.0, 20.0), (100.0, 200.0));
        let falling = Scale::linear((0.0, 1.0), (300.0, 100.0));
        let logarithmic = Scale::logarithmic((1.0, 1000.0), (0.0, 300.0));
        let cases = [
            (linear, 10.0, 100.0),
            (linear, 12.5, 125.0),
            (linear, 99.0, 200.0),
            (falling, 0.25, 250.0),
            (logarithmic, 1.0, 0.0),
            (logarithmic, 10.0, 100.0),
            (logarithmic, 31.622_776_601_683_793, 150.0),
            (logarithmic, 0.0, 0.0),
        ];
        for (scale, value, expected) in cases {
            assert!((scale.pixel(value) - expected).abs() < 1e-9, "{value}: {}", scale.pixel(value));
        }
        let flat = [Scale::linear((3.0, 3.0), (0.0, 1.0)), Scale::logarithmic((0.0, 0.0), (0.0, 1.0))];
        assert!(flat.iter().all(|scale| scale.pixel(3.0).is_finite()));
    }

    #[test]
    fn ticks_are_round() {
        let linear = |low, high, at_most| Scale::linear((low, high), (0.0, 1.0)).ticks(at_most);
        assert_eq!(linear(0.0, 1.0, 6), [0.0, 0.2, 0.4, 0.6000000000000001, 0.8, 1.0]);
        assert_eq!(linear(0.0, 47_000.0, 6), [0.0, 10_000.0, 20_000.0, 30_000.0, 40_000.0]);
        assert_eq!(linear(-3.0, 4.0, 4), [-2.0, 0.0, 2.0, 4.0]);
        assert_eq!(linear(7.0, 7.0, 3), [7.0, 7.5, 8.0]);
        let logarithmic = |low, high, at_most| Scale::logarithmic((low, high), (0.0, 1.0)).ticks(at_most);
        assert_eq!(logarithmic(15.0, 600.0, 9), [20.0, 50.0, 100.0, 200.0, 500.0]);
        assert_eq!(logarithmic(1.0, 1e4, 8), [1.0, 10.0, 100.0, 1e3, 1e4]);
        assert_eq!(logarithmic(1.0, 1e9, 5), [1.0, 100.0, 1e4, 1e6, 1e8]);
        assert_eq!(logarithmic(0.001, 0.01, 9), [0.001, 0.002, 0.005, 0.01]);
    }

    #[test]
    fn ticks_of_time_are_those_of_a_clock() {
        let cases: [(f64, usize, &[f64]); 6] = [
            (4.0, 6, &[0.0, 1.0, 2.0, 3.0, 4.0]),
            (40.0, 6, &[0.0, 10.0, 20.0, 30.0, 40.0]),
            (100.0, 5, &[0.0, 30.0, 60.0, 90.0]),
            (3600.0, 5, &[0.0, 900.0, 1800.0, 2700.0, 3600.0]),
            (86_400.0, 3, &[0.0, 43_200.0, 86_400.0]),
            (1e6, 6, &[0.0, 172_800.0, 345_600.0, 518_400.0, 691_200.0, 864_000.0]),
        ];
        for (high, at_most, expected) in cases {
            assert_eq!(Scale::linear((0.0, high), (0.0, 1.0)).time_ticks(at_most), expected, "{high}");
        }
    }
}
