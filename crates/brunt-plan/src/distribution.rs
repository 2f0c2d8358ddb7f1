//! Descriptions of what is drawn: sizes and arrivals, in one mini-language `name:a,b`.
//!
//! Descriptions only; the samplers that draw from them live in `brunt-workload`.

use crate::units::{ByteSize, serde_as_text};
use std::fmt;
use std::str::FromStr;

/// Splits `name:a,b` into name and arguments; a bare number is its own name.
pub(crate) fn name_and_arguments(text: &str) -> (&str, Vec<&str>) {
    match text.trim().split_once(':') {
        Some((name, arguments)) => (name, arguments.split(',').map(str::trim).collect()),
        None => (text.trim(), Vec::new()),
    }
}

/// How long keys or values are, in bytes. The length is a function of the key, never drawn anew for each request.
#[derive(Clone, Debug, PartialEq)]
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
    pub fn min(&self) -> u32 {
        match self {
            Self::Fixed(size) => *size,
            Self::Uniform { min, .. } => *min,
        }
    }
    /// The longest length that can occur.
    pub fn max(&self) -> u32 {
        match self {
            Self::Fixed(size) => *size,
            Self::Uniform { max, .. } => *max,
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

/// How open-loop arrivals are spaced; the mean always follows from the rate.
#[derive(Clone, Debug, PartialEq)]
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
    fn arrivals() {
        check::<Arrival>(&[("poisson", Some("poisson")), ("uniform", Some("uniform")), ("bursty", None)]);
    }
}
