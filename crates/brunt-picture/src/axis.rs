//! Axes: from values to pixels, the values that an axis names, its line with these names, and a grid behind the plot.
//!
//! Invariants: ticks lie within the scale, in ascending order, and are numbers that people count by: 1, 2 and 5 times a power of ten, or round
//! parts of minutes and hours; names never overlap: one that has no room is left away, its line of the grid stays.

use crate::ink::Ink;
use crate::picture::{Anchor, Area, Room, Shape, Stroke, Text};

/// Height of names in pixels.
const LABEL_SIZE: f64 = 12.0;
/// Pixels between an axis and its names.
const GAP: f64 = 6.0;

/// On which side of a plot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// Names to the left, values upwards.
    Left,
    /// Names below, values to the right.
    Bottom,
}

/// An axis and its grid around a plot. Ticks are values with their names, those that take room before others first; the title says what the values are, and in which unit:
/// above an axis on the left, to the right below one at the bottom.
pub fn axis(plot: Area, side: Side, scale: &Scale, ticks: &[(f64, String)], title: &str) -> Vec<Shape> {
    let (left, right, bottom) = (plot.x, plot.right(), plot.bottom());
    let label = |place: (f64, f64), anchor, ink, content: &str| {
        let (at, content) = (place.into(), content.to_owned());
        Text { at, anchor, size: LABEL_SIZE, ink, halo: None, content }
    };
    // Lines of one pixel run through the middles of pixels.
    let middle = |pixel: f64| pixel.floor() + 0.5;
    let (mut room, mut shapes) = (Room::default(), Vec::new());
    for (value, name) in ticks {
        let at = middle(scale.pixel(*value));
        let (from, to, place, anchor) = match side {
            Side::Left => ((left, at), (right, at), (left - GAP, at + LABEL_SIZE * 0.36), Anchor::End),
            Side::Bottom => ((at, plot.y), (at, bottom), (at, bottom + GAP + LABEL_SIZE), Anchor::Middle),
        };
        shapes.push(Shape::line(from.into(), to.into(), Stroke::solid(Ink::Grid, 1.0)));
        let name = label(place, anchor, Ink::Soft, name);
        shapes.extend(room.take(&name).then_some(Shape::Text(name)));
    }
    let corner = (middle(left), middle(bottom));
    let (end, place, anchor) = match side {
        Side::Left => ((middle(left), plot.y), (left, plot.y - GAP - 4.0), Anchor::Start),
        Side::Bottom => ((right, middle(bottom)), (right, bottom + GAP + LABEL_SIZE * 2.4), Anchor::End),
    };
    shapes.push(Shape::line(corner.into(), end.into(), Stroke::solid(Ink::Axis, 1.0)));
    shapes.push(Shape::Text(label(place, anchor, Ink::Text, title)));
    shapes
}

/// The name of a number: `500`, `20k`, `1.5M`, `0.2`.
pub fn number_label(value: f64) -> String {
    let (unit, suffix) = match value.abs() {
        value if value >= 1e9 => (1e9, "G"),
        value if value >= 1e6 => (1e6, "M"),
        value if value >= 1e3 => (1e3, "k"),
        _ => (1.0, ""),
    };
    format!("{}{suffix}", short(value / unit))
}

/// The name of a time, before the start a negative one: `0:05`, `12:30`, `1:00:00`, `-15:00`.
pub fn time_label(seconds: f64) -> String {
    let sign = if seconds <= -0.5 { "-" } else { "" };
    let seconds = seconds.abs().round() as u64;
    let (hours, minutes, seconds) = (seconds / 3600, seconds / 60 % 60, seconds % 60);
    match hours {
        0 => format!("{sign}{minutes}:{seconds:02}"),
        _ => format!("{sign}{hours}:{minutes:02}:{seconds:02}"),
    }
}

/// At most six digits after the point, and no noughts at their end.
fn short(value: f64) -> String {
    // Not −0: adding 0 makes it positive.
    format!("{}", (value * 1e6).round() / 1e6 + 0.0)
}

/// A range of values on a range of pixels.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Scale {
    is_logarithmic: bool,
    low: f64,
    high: f64,
    /// Where both lie.
    pixels: (f64, f64),
}

/// Seconds that a clock face has names for.
const TIME_STEPS_S: [f64; 17] = [
    1.0, 2.0, 5.0, 10.0, 15.0, 30.0, 60.0, 120.0, 300.0, 600.0, 900.0, 1800.0, 3600.0, 7200.0, 10_800.0,
    21_600.0, 43_200.0,
];
const DAY_S: f64 = 86_400.0;

impl Scale {
    /// Equal steps of values are equal steps of pixels. A range without extent is widened to one.
    pub fn linear((low, high): (f64, f64), pixels: (f64, f64)) -> Self {
        Self { is_logarithmic: false, low, high: if high > low { high } else { low + 1.0 }, pixels }
    }

    /// Equal ratios of values are equal steps of pixels. Values begin above 0; a range without extent is widened to a decade.
    pub fn logarithmic((low, high): (f64, f64), pixels: (f64, f64)) -> Self {
        let low = low.max(f64::MIN_POSITIVE);
        Self { is_logarithmic: true, low, high: if high > low { high } else { low * 10.0 }, pixels }
    }

    /// Where a value lies; those outside lie at the nearer end.
    pub fn pixel(&self, value: f64) -> f64 {
        let value = value.clamp(self.low, self.high);
        let part = match self.is_logarithmic {
            false => (value - self.low) / (self.high - self.low),
            true => (value / self.low).ln() / (self.high / self.low).ln(),
        };
        self.pixels.0 + part * (self.pixels.1 - self.pixels.0)
    }

    /// Round values, as many of them as there may be: 1-2-5 steps, on a logarithmic scale 1-2-5 of every decade, or only
    /// decades, or only some of those.
    pub fn ticks(&self, at_most: usize) -> Vec<f64> {
        if self.is_logarithmic {
            return self.logarithmic_ticks(at_most);
        }
        let steps = (-15..=18).flat_map(|exponent| [1.0, 2.0, 5.0].map(|digit| decimal(digit, exponent)));
        self.multiples(steps, at_most)
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
    fn labels() {
        let numbers = [
            (0.0, "0"),
            (0.6000000000000001, "0.6"),
            (999.0, "999"),
            (20_000.0, "20k"),
            (1.5e6, "1.5M"),
            (-2e9, "-2G"),
        ];
        for (value, expected) in numbers {
            assert_eq!(number_label(value), expected);
        }
        for (seconds, expected) in [
            (-900.0, "-15:00"),
            (-0.1, "0:00"),
            (0.0, "0:00"),
            (65.0, "1:05"),
            (3600.0, "1:00:00"),
            (90_061.0, "25:01:01"),
        ] {
            assert_eq!(time_label(seconds), expected);
        }
    }

    #[test]
    fn labels_without_room_are_omitted() {
        let plot = Area { x: 0.0, y: 0.0, width: 100.0, height: 50.0 };
        let ticks = [0.0, 10.0, 50.0, 100.0].map(|value| (value, "abcd".to_owned()));
        let scale = Scale::linear((0.0, 100.0), (0.0, 100.0));
        let shapes = axis(plot, Side::Bottom, &scale, &ticks, "title");
        let names = shapes.iter().filter_map(|shape| match shape {
            crate::picture::Shape::Text(text) => Some((text.content.as_str(), text.at.x)),
            _ => None,
        });
        assert_eq!(
            names.collect::<Vec<_>>(),
            [("abcd", 0.5), ("abcd", 50.5), ("abcd", 100.5), ("title", 100.0)]
        );
    }

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
