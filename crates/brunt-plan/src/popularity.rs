//! Which keys are asked for how often, and how that moves with time: descriptions only.
//!
//! The samplers that draw from them live in `brunt-workload`.

use crate::distribution::name_and_arguments;
use crate::units::{Count, DurationNs, serde_as_text};
use std::fmt;
use std::str::FromStr;

/// Which keys are asked for how often.
#[derive(Clone, Debug, PartialEq)]
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

/// The ranks of a popularity law move over the keys: every `every` of the schedule, by `step` keys. So `step / keys` of the
/// hot set is replaced per period. Text form `1000/10s`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Drift {
    /// Keys, at least 1.
    pub step: u64,
    /// Above 0.
    pub every: DurationNs,
}

impl FromStr for Drift {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let parsed = text.split_once('/').and_then(|(step, every)| {
            let (step, every) =
                (step.trim().parse::<Count>().ok()?, every.trim().parse::<DurationNs>().ok()?);
            (step.0 > 0 && every.0 > 0).then_some(Self { step: step.0, every })
        });
        parsed.ok_or_else(|| "expected KEYS/DURATION, both above 0, such as 1000/10s".to_owned())
    }
}

impl fmt::Display for Drift {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}/{}", self.step, self.every)
    }
}
serde_as_text!(Drift);

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
    fn popularities_and_drifts() {
        check::<Popularity>(&[
            ("uniform", Some("uniform")),
            ("zipf", Some("zipf:0.99")),
            ("zipf:1", Some("zipf:1")),
            ("zipf:0", None),
            ("zipf:-1", None),
            ("zipf:nan", None),
            ("hot", None),
        ]);
        check::<Drift>(&[
            ("1000/10s", Some("1000/10s")),
            ("1k / 500ms", Some("1000/500ms")),
            ("0/1s", None),
            ("5/0s", None),
            ("5", None),
        ]);
    }
}
