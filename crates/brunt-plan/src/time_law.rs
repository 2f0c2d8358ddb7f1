//! Laws of time, in the mini-language `name:a,b` with units: how long something takes that is drawn anew each time.
//!
//! Descriptions only: `brunt-workload` draws from them. Unlike a [`Distribution`], whose numbers have no unit, a law has times.

use crate::distribution::Distribution;
use crate::units::{DurationNs, name_and_arguments, text_form};
use std::fmt;

/// A distribution of times.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TimeLaw {
    /// Always the same. Text form `5ms`, or `fixed:5ms`.
    Fixed(DurationNs),
    /// Evenly between two bounds. Text form `uniform:1ms,9ms`.
    Uniform {
        /// Shortest.
        min: DurationNs,
        /// Longest, not below the shortest.
        max: DurationNs,
    },
    /// Exponential, with this mean above 0. Text form `exp:5ms`.
    Exponential(DurationNs),
}

impl TimeLaw {
    /// The distribution, in nanoseconds.
    pub fn distribution_ns(&self) -> Distribution {
        match self {
            Self::Fixed(time) => Distribution::Fixed { value: time.0 as f64 },
            Self::Uniform { min, max } => Distribution::Uniform { min: min.0 as f64, max: max.0 as f64 },
            Self::Exponential(mean) => Distribution::Exponential { lambda: 1.0 / mean.0 as f64 },
        }
    }

    fn of_text(text: &str) -> Result<Self, String> {
        let (name, arguments) = name_and_arguments(text);
        let times: Option<Vec<DurationNs>> = arguments.iter().map(|argument| argument.parse().ok()).collect();
        let law = match (name, times.as_deref()) {
            (time, Some([])) => time.parse().ok().map(Self::Fixed),
            ("fixed", Some(&[time])) => Some(Self::Fixed(time)),
            ("uniform", Some(&[min, max])) if min <= max => Some(Self::Uniform { min, max }),
            ("exp", Some(&[mean])) if mean.0 > 0 => Some(Self::Exponential(mean)),
            _ => None,
        };
        law.ok_or_else(|| {
            format!("'{text}' is no law of time: expected TIME, uniform:MIN,MAX or exp:MEAN, such as exp:5ms")
        })
    }

    fn write_text(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Fixed(time) => write!(formatter, "{time}"),
            Self::Uniform { min, max } => write!(formatter, "uniform:{min},{max}"),
            Self::Exponential(mean) => write!(formatter, "exp:{mean}"),
        }
    }
}
text_form!(TimeLaw);
