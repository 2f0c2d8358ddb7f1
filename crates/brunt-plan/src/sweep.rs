//! The points of a scan: `rate=10k,20k`, `rate=10k..100k:10k`, `rate=auto`, `connections=1,2,4`, `depth=…`,
//! `value-size=…`.
//!
//! Invariant: a sweep has at least one point, at most [`POINTS_MAX`], and none of them is 0.

use crate::size::SizeDistribution;
use crate::spec::ClassSpec;
use crate::units::{ByteSize, Count, Rate};
use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;

/// More runs than this are a mistake in a range: at the shortest sensible length they take an hour.
pub const POINTS_MAX: usize = 200;

/// The syntax that error messages name.
const ACCEPTED: &str = "rate, connections, depth or value-size, with a list (rate=10k,20k), a range with its step \
                        (connections=10..100:10), or rate=auto";

/// One setting of the option that is swept.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum SweepPoint {
    /// Open loop at this rate.
    Rate(Rate),
    /// Connections in total.
    Connections(Count),
    /// Requests in flight per connection.
    Depth(Count),
    /// Values of this size.
    ValueSize(ByteSize),
}

impl SweepPoint {
    /// The options that can be swept.
    pub const OPTIONS: [&'static str; 4] = ["rate", "connections", "depth", "value-size"];

    /// The option, as flags and plan files name it.
    pub const fn option(self) -> &'static str {
        match self {
            Self::Rate(_) => "rate",
            Self::Connections(_) => "connections",
            Self::Depth(_) => "depth",
            Self::ValueSize(_) => "value-size",
        }
    }

    /// The setting as the one option that it is. A size no plan can have stays as it is, for the plan to refuse.
    pub fn class_spec(self) -> ClassSpec {
        let none = ClassSpec::default();
        match self {
            Self::Rate(rate) => ClassSpec { rate: Some(rate), ..none },
            Self::Connections(count) => ClassSpec { connections: Some(count), ..none },
            Self::Depth(count) => ClassSpec { depth: Some(count), ..none },
            Self::ValueSize(size) => {
                let bytes = u32::try_from(size.0).unwrap_or(u32::MAX);
                ClassSpec { value_size: Some(SizeDistribution::Fixed(bytes)), ..none }
            }
        }
    }

    /// The setting as a number in the unit of its option: per second, things or bytes.
    pub fn as_f64(self) -> f64 {
        match self {
            Self::Rate(rate) => rate.as_f64(),
            Self::Connections(count) | Self::Depth(count) => count.0 as f64,
            Self::ValueSize(size) => size.0 as f64,
        }
    }
}

/// The setting as its option takes it.
impl fmt::Display for SweepPoint {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Rate(rate) => rate.fmt(formatter),
            Self::Connections(count) | Self::Depth(count) => count.fmt(formatter),
            Self::ValueSize(size) => size.fmt(formatter),
        }
    }
}

/// All points of a scan, in the order in which they are measured.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Sweep {
    /// Rates from a low load up to where something is the limit, found on the way.
    Auto,
    /// These.
    Points(Vec<SweepPoint>),
}

impl Sweep {
    /// The option that is swept.
    pub fn option(&self) -> &'static str {
        match self {
            Self::Auto => "rate",
            Self::Points(points) => points.first().map_or("rate", |point| point.option()),
        }
    }
}

/// The point of this option with this number of its smallest unit, as [`value`] reads it: in integers a range comes out exactly.
fn point(option: &str, number: u64) -> SweepPoint {
    match option {
        "rate" => SweepPoint::Rate(Rate { micro_per_second: number }),
        "connections" => SweepPoint::Connections(Count(number)),
        "depth" => SweepPoint::Depth(Count(number)),
        _ => SweepPoint::ValueSize(ByteSize(number)),
    }
}

fn value(option: &str, text: &str) -> Result<u64, String> {
    let wrong = |reason: &str| format!("'{}' in {option}: {reason}", text.trim());
    let read = match option {
        "rate" => text.trim().parse().map(|rate: Rate| rate.micro_per_second),
        "value-size" => text.trim().parse().map(|size: ByteSize| size.0),
        _ => text.trim().parse().map(|count: Count| count.0),
    };
    match read {
        Ok(0) => Err(wrong("0 is no point of a sweep; expected a number above 0")),
        Ok(value) => Ok(value),
        Err(reason) if text.contains('-') => Err(wrong(&format!("{reason}; a range is FIRST..LAST:STEP"))),
        Err(reason) => Err(wrong(&reason)),
    }
}

/// `A..B:STEP`: A, A + STEP, …, up to B.
fn range(option: &str, text: &str, first: &str, rest: &str) -> Result<Vec<u64>, String> {
    let Some((last, step)) = rest.split_once(':') else {
        return Err(format!("'{text}' in {option}: a range needs its step, such as 10..100:10"));
    };
    let (first, last, step) = (value(option, first)?, value(option, last)?, value(option, step)?);
    if first > last {
        return Err(format!("'{text}' in {option}: a range goes upwards, such as 10..100:10"));
    }
    if (last - first) / step >= POINTS_MAX as u64 {
        return Err(too_many(option));
    }
    Ok((0..=(last - first) / step).map(|index| first + index * step).collect())
}

fn too_many(option: &str) -> String {
    format!("{option} has more than {POINTS_MAX} points; expected a wider step or a shorter list")
}

impl FromStr for Sweep {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (option, list) = text.split_once('=').ok_or(format!("expected {ACCEPTED}"))?;
        let option = option.trim();
        if !SweepPoint::OPTIONS.contains(&option) {
            return Err(format!("'{option}' cannot be swept; expected {ACCEPTED}"));
        }
        match (list.trim(), option) {
            ("auto", "rate") => return Ok(Self::Auto),
            ("auto", _) => {
                return Err(format!("'auto' is for rates; expected a list or a range of {option}"));
            }
            _ => {}
        }
        let mut values = Vec::new();
        for item in list.split(',') {
            match item.split_once("..") {
                Some((first, rest)) => values.extend(range(option, item, first, rest)?),
                None => values.push(value(option, item)?),
            }
        }
        if values.len() > POINTS_MAX {
            return Err(too_many(option));
        }
        Ok(Self::Points(values.into_iter().map(|number| point(option, number)).collect()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn points(text: &str) -> Vec<String> {
        match text.parse().unwrap() {
            Sweep::Auto => vec!["auto".to_owned()],
            Sweep::Points(points) => {
                points.iter().map(|point| format!("{}={point}", point.option())).collect()
            }
        }
    }

    #[test]
    fn lists_and_ranges() {
        let table: [(&str, &[&str]); 7] = [
            ("rate=auto", &["auto"]),
            ("rate=10k,20k/s,0.5", &["rate=10000/s", "rate=20000/s", "rate=0.5/s"]),
            ("rate=10k..40k:15k", &["rate=10000/s", "rate=25000/s", "rate=40000/s"]),
            ("connections=1,2,4..9:3", &["connections=1", "connections=2", "connections=4", "connections=7"]),
            ("depth = 3", &["depth=3"]),
            ("value-size=100,1KiB", &["value-size=100", "value-size=1KiB"]),
            ("depth=4,1,4", &["depth=4", "depth=1", "depth=4"]),
        ];
        for (text, expected) in table {
            assert_eq!(points(text), expected, "{text}");
        }
        assert_eq!(points("depth=1..200:1").len(), POINTS_MAX);
    }

    #[test]
    fn messages_name_the_token_and_the_expected_format() {
        let table = [
            ("10k,20k", "expected rate, connections, depth or value-size"),
            ("keys=1,2", "'keys' cannot be swept; expected rate, connections"),
            ("rate=10k,fast", "'fast' in rate: expected a number per second above 0"),
            ("rate=", "'' in rate: expected a number per second"),
            ("rate=10k..20k", "'10k..20k' in rate: a range needs its step, such as 10..100:10"),
            ("depth=9..1:1", "'9..1:1' in depth: a range goes upwards"),
            ("depth=1..9:0", "'0' in depth: 0 is no point"),
            ("connections=0", "'0' in connections: 0 is no point"),
            ("connections=auto", "'auto' is for rates"),
            ("depth=1..201:1", "more than 200 points"),
            ("value-size=uniform:1", "'uniform:1' in value-size: expected a size in bytes"),
        ];
        for (text, expected) in table {
            let error = text.parse::<Sweep>().unwrap_err();
            assert!(error.contains(expected), "{text}: {error}");
        }
    }

    #[test]
    fn each_point_sets_one_option() {
        for text in ["rate=5k", "connections=7", "depth=7", "value-size=70"] {
            let Sweep::Points(points) = text.parse().unwrap() else { panic!("{text}") };
            assert_eq!(points[0].class_spec().given(), [text.split('=').next().unwrap()]);
        }
        let Sweep::Points(points) = "value-size=5GiB".parse().unwrap() else { panic!("a list") };
        assert_eq!(points[0].class_spec().value_size, Some(SizeDistribution::Fixed(u32::MAX)));
    }
}
