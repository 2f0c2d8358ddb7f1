//! Times as figures without units: one unit for a table, three significant digits, ends of intervals rounded outwards.
//!
//! A column of figures that spans less than a decade has the decimals of its smallest one, so that points align. Invariants:
//! an end above 0 is never printed as 0, nor, but for that, finer than the figure that it belongs to.

use crate::layout::TimeUnit;
use crate::quantity;

/// What bounds a figure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Bound {
    /// At most so far from it, in nanoseconds.
    Within(u64),
    /// At least this, in nanoseconds.
    Low(u64),
    /// At most this, in nanoseconds.
    High(u64),
    /// Without an end.
    Open,
    /// It is not known.
    Unknown,
}

/// One column: times in nanoseconds, and the bounds of each, which may be missing at its end.
#[derive(Clone, Debug, Default)]
pub(crate) struct Figures {
    pub(crate) times_ns: Vec<Option<u64>>,
    pub(crate) bounds: Vec<Vec<Bound>>,
}

/// The texts of a column.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Texts {
    pub(crate) times: Vec<String>,
    pub(crate) bounds: Vec<Vec<String>>,
}

/// The unit in which the widest figure is narrowest; of several the largest. Microseconds where there are none.
pub(crate) fn unit_of<'a>(columns: impl IntoIterator<Item = &'a Figures>) -> TimeUnit {
    let columns: Vec<&Figures> = columns.into_iter().collect();
    let width = |unit: &TimeUnit| {
        let texts = columns.iter().map(|column| column.texts(*unit));
        let cells = texts.flat_map(|texts| [texts.times, texts.bounds.concat()].concat());
        cells.map(|text| text.len()).max().unwrap_or(0)
    };
    let has_times = columns.iter().any(|column| column.times_ns.iter().any(Option::is_some));
    let narrowest = TimeUnit::ALL.into_iter().rev().min_by_key(width);
    narrowest.filter(|_| has_times).unwrap_or(TimeUnit::Us)
}

impl Figures {
    /// Times without bounds.
    pub(crate) fn of_times(times_ns: impl IntoIterator<Item = Option<u64>>) -> Self {
        Self { times_ns: times_ns.into_iter().collect(), bounds: Vec::new() }
    }

    /// The first of them with its unit, and with its interval where it has one: `139us[134,145]`, `139±5.6us`.
    pub(crate) fn first_text(&self, unit: TimeUnit) -> String {
        let texts = self.texts(unit);
        let ends = texts.bounds.first().filter(|ends| ends.iter().any(|end| end != "-"));
        match (texts.times[0].as_str(), ends) {
            ("-", _) => "-".to_owned(),
            (time, None) => format!("{time}{unit}"),
            (time, Some(ends)) if ends.len() == 1 => format!("{time}±{}{unit}", ends[0]),
            (time, Some(ends)) => format!("{time}{unit}[{}]", ends.join(",")),
        }
    }

    pub(crate) fn texts(&self, unit: TimeUnit) -> Texts {
        let given: Vec<f64> = self.times_ns.iter().flatten().map(|ns| *ns as f64 / unit.ns()).collect();
        let least = given.iter().copied().filter(|time| *time > 0.0).reduce(f64::min);
        let most = given.iter().copied().reduce(f64::max);
        // Decimals that all have, where the points of all are to align.
        let common = match (least, most) {
            (Some(least), Some(most)) if most < 10.0 * least => Some(decimals(least, unit)),
            _ => None,
        };
        let text = |ns: &Option<u64>| match ns {
            None => "-".to_owned(),
            Some(ns) => number(*ns as f64 / unit.ns(), unit, common),
        };
        let times: Vec<String> = self.times_ns.iter().map(text).collect();
        let bounds = |(bounds, time): (&Vec<Bound>, &String)| {
            let finest = time.split_once('.').map_or(0, |(_, digits)| digits.len());
            bounds.iter().map(|bound| bound.text(unit, finest)).collect()
        };
        Texts { bounds: self.bounds.iter().zip(&times).map(bounds).collect(), times }
    }
}

impl Bound {
    /// With at most `finest` decimals.
    fn text(self, unit: TimeUnit, finest: usize) -> String {
        match self {
            Self::Within(ns) => end(ns as f64 / unit.ns(), finest, 2, f64::ceil),
            Self::High(ns) => end(ns as f64 / unit.ns(), finest, 3, f64::ceil),
            Self::Low(ns) => end(ns as f64 / unit.ns(), finest, 3, f64::floor),
            Self::Open => "open".to_owned(),
            Self::Unknown => "-".to_owned(),
        }
    }
}

/// Decimals of a time above 0 with three significant digits; there is nothing below a nanosecond.
fn decimals(number: f64, unit: TimeUnit) -> usize {
    (2 - quantity::rounded(number).1).clamp(0, unit.ns().log10() as i32) as usize
}

/// Three significant digits, or as many as these decimals make.
fn number(number: f64, unit: TimeUnit, common: Option<usize>) -> String {
    if number == 0.0 {
        return "0".to_owned();
    }
    match common {
        Some(decimals) if decimals > 0 => format!("{number:.decimals$}"),
        _ => format!("{:.*}", decimals(number, unit), quantity::rounded(number).0),
    }
}

/// A number with so many significant digits and at most `finest` decimals, rounded up or down; one digit of what would be 0.
fn end(number: f64, finest: usize, digits: i32, round: fn(f64) -> f64) -> String {
    if number <= 0.0 {
        return "0".to_owned();
    }
    let first_digit = |number: f64| (number.log10() + 1e-9).floor() as i32;
    let exponent = (first_digit(number) + 1 - digits).max(-(finest as i32));
    // What is there but for the last bit is not rounded once more.
    let rounded_to = |exponent: i32| {
        let steps = number / 10f64.powi(exponent);
        let whole = steps.round();
        if (steps - whole).abs() < 1e-9 * steps { whole } else { round(steps) }
    };
    if rounded_to(exponent) == 0.0 {
        let exponent = first_digit(number);
        return format!("{:.*}", -exponent as usize, rounded_to(exponent) * 10f64.powi(exponent));
    }
    let rounded = rounded_to(exponent) * 10f64.powi(exponent);
    // Rounding up may have made another digit.
    let exponent = exponent.max((first_digit(rounded) + 1 - digits).max(-(finest as i32)));
    format!("{rounded:.*}", usize::try_from(-exponent).unwrap_or(0))
}

#[cfg(test)]
mod tests {
    use super::*;
    use Bound::{Open, Unknown, Within};

    fn column(times_ns: &[u64], bounds: &[&[Bound]]) -> Figures {
        let bounds = bounds.iter().map(|bounds| bounds.to_vec()).collect();
        Figures { times_ns: times_ns.iter().copied().map(Some).collect(), bounds }
    }

    /// With bounds of the first.
    fn check(times_ns: &[u64], bounds: &[Bound], unit: TimeUnit, expected: &str) {
        let Texts { times, bounds } = column(times_ns, &[bounds]).texts(unit);
        assert_eq!([times, bounds.concat()].concat().join(" "), expected);
    }

    #[test]
    fn bounds_have_the_decimals_of_their_own_figure() {
        let column = column(&[8_123, 210_400], &[&[Within(1_234)], &[Within(1_234), Open]]);
        let Texts { times, bounds } = column.texts(TimeUnit::Us);
        assert_eq!(times, ["8.12", "210"]);
        assert_eq!(bounds, [vec!["1.3"], vec!["2", "open"]]);
    }

    #[test]
    fn figures_have_three_digits_and_bounds_two() {
        use TimeUnit::{Ms, Ns, S, Us};
        check(&[76_712, 139_961], &[Within(380), Within(5_560)], Us, "76.7 140.0 0.4 5.6");
        check(&[264_112, 3_641_113], &[Within(59_100)], Us, "264 3640 60");
        check(&[1_902_212], &[Open, Unknown], Us, "1900 open -");
        check(&[36_310, 613_000_000], &[Within(4_020), Within(7_500)], Ms, "0.0363 613 0.0041 0.0075");
        check(&[142_000], &[Within(9_900)], Ms, "0.142 0.010");
        check(&[142_000], &[Within(449_100_000)], Ms, "0.142 450");
        check(&[0, 7, 999], &[Within(0), Within(1)], Ns, "0 7 999 0 1");
        check(&[9_996, 27_612], &[Within(1)], Us, "10.0 27.6 0.1");
        check(&[999_600], &[Within(99_100)], Us, "1000 100");
        check(&[1_942_000_000, 3_551_000_000], &[], S, "1.94 3.55");
        // Halves of the last digit, and a value that is there to the bit.
        check(&[214_000], &[Within(30_000), Within(30_001), Within(31_000)], Us, "214 30 31 31");
    }

    #[test]
    fn the_unit_is_the_one_with_the_narrowest_cells() {
        for (times_ns, expected) in [
            (&[76_712, 139_961, 264_112, 3_641_113][..], TimeUnit::Us),
            (&[36_310, 613_000_000], TimeUnit::Ms),
            (&[1_942_000_000, 3_551_000_000], TimeUnit::S),
            (&[310, 950], TimeUnit::Ns),
            (&[3_190_000, 4_690_000], TimeUnit::Ms),
            (&[950_000], TimeUnit::Us),
            (&[83_000], TimeUnit::Us),
        ] {
            let columns: Vec<Figures> = times_ns.iter().map(|ns| column(&[*ns], &[])).collect();
            assert_eq!(unit_of(&columns), expected, "{times_ns:?}");
        }
    }
}
