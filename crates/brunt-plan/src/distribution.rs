//! Descriptions of what is drawn: sizes, popularity, arrivals, mixes, in one mini-language `name:a,b`.
//!
//! Descriptions only; the samplers that draw from them live in `brunt-workload`.

use crate::op::OpKind;
use crate::units::{ByteSize, serde_as_text};
use std::fmt;
use std::str::FromStr;

/// Splits `name:a,b` into name and arguments; a bare number is its own name.
fn name_and_arguments(text: &str) -> (&str, Vec<&str>) {
    match text.trim().split_once(':') {
        Some((name, arguments)) => (name, arguments.split(',').map(str::trim).collect()),
        None => (text.trim(), Vec::new()),
    }
}

/// How long keys or values are, in bytes. The length is a function of the key, never drawn anew for each request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SizeDistribution {
    /// Always this long. Text form `200`, `4KiB` or `fixed:200`.
    Fixed(u32),
    /// Every length from the first to the last, both included, equally often. Text form `uniform:10,100`.
    Uniform {
        /// Shortest.
        min: u32,
        /// Longest.
        max: u32,
    },
}

impl SizeDistribution {
    /// The shortest length that can occur.
    pub const fn min(self) -> u32 {
        match self {
            Self::Fixed(size) => size,
            Self::Uniform { min, .. } => min,
        }
    }
    /// The longest length that can occur.
    pub const fn max(self) -> u32 {
        match self {
            Self::Fixed(size) => size,
            Self::Uniform { max, .. } => max,
        }
    }
}

impl FromStr for SizeDistribution {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let size = |text: &str| text.parse::<ByteSize>().ok().and_then(|size| u32::try_from(size.0).ok());
        let (name, arguments) = name_and_arguments(text);
        let parsed = match (name, arguments.as_slice()) {
            ("fixed", [size_text]) => size(size_text).map(Self::Fixed),
            ("uniform", [min, max]) => size(min)
                .zip(size(max))
                .filter(|(min, max)| min <= max)
                .map(|(min, max)| Self::Uniform { min, max }),
            (bare, []) => size(bare).map(Self::Fixed),
            _ => None,
        };
        parsed.ok_or_else(|| "expected a size such as 200 or 4KiB, fixed:N, or uniform:MIN,MAX".to_owned())
    }
}

impl fmt::Display for SizeDistribution {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Fixed(size) => write!(formatter, "fixed:{size}"),
            Self::Uniform { min, max } => write!(formatter, "uniform:{min},{max}"),
        }
    }
}
serde_as_text!(SizeDistribution);

/// Which keys are asked for how often.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Popularity {
    /// Every key equally often.
    Uniform,
    /// Key of rank `r` with probability proportional to `r^−exponent`; ranks are scattered over the ids.
    /// Text form `zipf:0.99`; `zipf` alone means 0.99.
    Zipf {
        /// Above 0, at most 10.
        exponent: f64,
    },
}

impl FromStr for Popularity {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (name, arguments) = name_and_arguments(text);
        let parsed = match (name, arguments.as_slice()) {
            ("uniform", []) => Some(Self::Uniform),
            ("zipf", []) => Some(Self::Zipf { exponent: 0.99 }),
            ("zipf", [exponent]) => exponent
                .parse::<f64>()
                .ok()
                .filter(|exponent| *exponent > 0.0 && *exponent <= 10.0)
                .map(|exponent| Self::Zipf { exponent }),
            _ => None,
        };
        parsed.ok_or_else(|| {
            "expected uniform, or zipf:EXPONENT with an exponent above 0 and at most 10".to_owned()
        })
    }
}

impl fmt::Display for Popularity {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Uniform => formatter.write_str("uniform"),
            Self::Zipf { exponent } => write!(formatter, "zipf:{exponent}"),
        }
    }
}
serde_as_text!(Popularity);

/// How open-loop arrivals are spaced; the mean always follows from the rate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Arrival {
    /// Independent arrivals: exponential gaps.
    Poisson,
    /// Evenly spaced.
    Uniform,
}

impl FromStr for Arrival {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text.trim() {
            "poisson" => Ok(Self::Poisson),
            "uniform" => Ok(Self::Uniform),
            _ => Err("expected poisson or uniform".to_owned()),
        }
    }
}

impl fmt::Display for Arrival {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::Poisson => "poisson",
            Self::Uniform => "uniform",
        })
    }
}
serde_as_text!(Arrival);

/// The operations of a class with their weights. Text form `get=9,set=1`; a kind without a weight weighs 1.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mix {
    /// Kinds in the order given, each once, with a weight of at least 1 (and their sum below 2³²).
    pub weights: Vec<(OpKind, u32)>,
}

impl Mix {
    /// The kinds a plan may name so far, for messages.
    pub const ACCEPTED: &'static [OpKind] = &[OpKind::Get, OpKind::Mget, OpKind::Set];

    /// Does the mix hold this kind?
    pub fn contains(&self, kind: OpKind) -> bool {
        self.weights.iter().any(|(held, _)| *held == kind)
    }
}

impl FromStr for Mix {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let mut weights: Vec<(OpKind, u32)> = Vec::new();
        for item in text.split(',').map(str::trim) {
            let (name, weight) = item.split_once('=').unwrap_or((item, "1"));
            let kind = name.trim().parse::<OpKind>().ok().filter(|kind| Self::ACCEPTED.contains(kind));
            let weight = weight.trim().parse::<u32>().ok();
            match kind.zip(weight) {
                Some((kind, _)) if weights.iter().any(|(held, _)| *held == kind) => {
                    return Err(format!("'{kind}' is named twice"));
                }
                Some((_, 0)) => {}
                Some(pair) => weights.push(pair),
                None => {
                    let names = Self::ACCEPTED.iter().map(|kind| kind.name()).collect::<Vec<_>>().join(", ");
                    return Err(format!(
                        "'{item}' is not an operation with its weight; expected a list such as get=9,set=1 of {names}"
                    ));
                }
            }
        }
        let sum: u64 = weights.iter().map(|(_, weight)| u64::from(*weight)).sum();
        if sum == 0 || sum > u64::from(u32::MAX) {
            return Err("expected at least one weight above 0, and a sum below 4294967296".to_owned());
        }
        Ok(Self { weights })
    }
}

impl fmt::Display for Mix {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, (kind, weight)) in self.weights.iter().enumerate() {
            let comma = if index == 0 { "" } else { "," };
            write!(formatter, "{comma}{kind}={weight}")?;
        }
        Ok(())
    }
}
serde_as_text!(Mix);

#[cfg(test)]
mod tests {
    use super::*;

    fn check<T: FromStr<Err = String> + fmt::Display>(table: &[(&str, Option<&str>)]) {
        for (text, expected) in table {
            let printed = text.parse::<T>().ok().map(|value| value.to_string());
            assert_eq!(printed.as_deref(), *expected, "{text:?}");
        }
    }

    #[test]
    fn sizes() {
        check::<SizeDistribution>(&[
            ("200", Some("fixed:200")),
            ("4KiB", Some("fixed:4096")),
            ("fixed:30", Some("fixed:30")),
            ("uniform:10,1KiB", Some("uniform:10,1024")),
            ("uniform:20,10", None),
            ("uniform:20", None),
            ("fixed", None),
            ("cauchy:1", None),
            ("-4", None),
        ]);
    }

    #[test]
    fn popularities_arrivals_and_mixes() {
        check::<Popularity>(&[
            ("uniform", Some("uniform")),
            ("zipf", Some("zipf:0.99")),
            ("zipf:1", Some("zipf:1")),
            ("zipf:0", None),
            ("zipf:-1", None),
            ("zipf:nan", None),
            ("hot", None),
        ]);
        check::<Arrival>(&[("poisson", Some("poisson")), ("uniform", Some("uniform")), ("bursty", None)]);
        check::<Mix>(&[
            ("get=9,set=1", Some("get=9,set=1")),
            ("get", Some("get=1")),
            ("mget=2, set=0", Some("mget=2")),
            ("get=1,get=2", None),
            ("get=0", None),
            ("get=-1", None),
            ("fetch=1", None),
            ("", None),
        ]);
    }
}
