//! Assertions of a comparison: how much a number may change from A to B (`p99 <= +5%`), or the bound on that of B.
//!
//! A change is a part of what A has; of shares (hit, errors, unsent) it is in points. Invariant: a change has a sign
//! and a bound has none, so neither is ever taken for the other.

use crate::objective::{Comparison, Objective, Subject};
use crate::units::scaled;
use std::fmt;
use std::str::FromStr;

/// Billionths in a hundredth.
const PERCENT: u64 = 10_000_000;

/// What is asserted of two sets of runs. Text form: that of one of the two.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Requirement {
    /// Bound of the change from A to B.
    Change(Tolerance),
    /// Bound of B alone.
    Value(Objective),
}

/// How much a number of B may differ from that of A. Text form: `[OP.]METRIC COMPARISON ±CHANGE%`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tolerance {
    /// The number that is compared.
    pub subject: Subject,
    /// Whether its change must be below or above the bound.
    pub comparison: Comparison,
    /// The change that is tolerated.
    pub change: Change,
}

/// A change, as a part of a whole. Text form `+5%`, `-0.5%`; no change is `+0%`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Change {
    /// In billionths.
    pub per_billion: i64,
}

impl Requirement {
    /// The number that it is about.
    pub fn subject(&self) -> Subject {
        match self {
            Self::Change(tolerance) => tolerance.subject,
            Self::Value(objective) => objective.subject,
        }
    }
}

impl Tolerance {
    /// Is this change, as a part, tolerated?
    pub fn is_met_by(&self, change: f64) -> bool {
        self.comparison.holds(change, self.change.value())
    }
}

impl Change {
    /// The text form, for a user.
    const ACCEPTED: &str = "a change from A to B in per cent with its sign, such as +5%, -0.5% or +0%";

    /// As a part: 0.05 for `+5%`.
    pub fn value(self) -> f64 {
        self.per_billion as f64 / 1e9
    }
}

impl FromStr for Requirement {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (subject, _, bound) = Comparison::split(text, "p99 <= +5%")?;
        subject.check_default_percentiles()?;
        if bound.starts_with(['+', '-']) {
            return text.parse().map(Self::Change);
        }
        text.parse().map(Self::Value).map_err(|error: String| format!("{error}; or {}", Change::ACCEPTED))
    }
}

impl fmt::Display for Requirement {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Change(tolerance) => tolerance.fmt(formatter),
            Self::Value(objective) => objective.fmt(formatter),
        }
    }
}

impl FromStr for Tolerance {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (subject, comparison, change) = Comparison::split(text, "p99 <= +5%")?;
        subject.check_default_percentiles()?;
        let change = change.parse().map_err(|accepted: String| {
            format!("invalid change '{change}' for {subject}: expected {accepted}")
        })?;
        Ok(Self { subject, comparison, change })
    }
}

impl fmt::Display for Tolerance {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{} {} {}", self.subject, self.comparison, self.change)
    }
}

impl FromStr for Change {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (sign, rest) = match text.split_at_checked(1) {
            Some(("+", rest)) => (1, rest),
            Some(("-", rest)) => (-1, rest),
            _ => return Err(Self::ACCEPTED.to_owned()),
        };
        let part = rest.strip_suffix('%').and_then(|percent| scaled(percent, PERCENT));
        part.and_then(|part| i64::try_from(part).ok())
            .map(|part| Self { per_billion: sign * part })
            .ok_or_else(|| Self::ACCEPTED.to_owned())
    }
}

impl fmt::Display for Change {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (whole, rest) =
            (self.per_billion.unsigned_abs() / PERCENT, self.per_billion.unsigned_abs() % PERCENT);
        let sign = if self.per_billion < 0 { "-" } else { "+" };
        match format!("{rest:07}").trim_end_matches('0') {
            "" => write!(formatter, "{sign}{whole}%"),
            rest => write!(formatter, "{sign}{whole}.{rest}%"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::units::check_texts;

    #[test]
    fn tolerances() {
        check_texts::<Tolerance>(&[
            ("p99 <= +5%", Some("p99 <= +5%")),
            ("get.p99.9<+0.5%", Some("get.p99.9 < +0.5%")),
            ("rate >= -3%", Some("rate >= -3%")),
            ("hit >= -0%", Some("hit >= +0%")),
            ("hit >= 0%", None),
            ("mean <= +150%", Some("mean <= +150%")),
            ("p99 <= 5%", None),
            ("p99 <= 1ms", None),
            ("p99 <= +5", None),
            ("p99 <= +-5%", None),
            ("p99 <= ±5%", None),
            ("p98 <= +5%", None),
            ("p99 <= +99999999999999%", None),
        ]);
        assert_eq!("-0.5%".parse::<Change>().unwrap().value(), -0.005);
        let tolerance: Tolerance = "p99 <= +5%".parse().unwrap();
        assert_eq!([0.05, 0.050_001].map(|change| tolerance.is_met_by(change)), [true, false]);
    }

    #[test]
    fn signed_bounds_are_changes() {
        check_texts::<Requirement>(&[
            ("p99 <= +5%", Some("p99 <= +5%")),
            ("p99<1ms", Some("p99 < 1ms")),
            ("errors <= 0%", Some("errors <= 0%")),
            ("errors <= +0%", Some("errors <= +0%")),
            ("hit >= 95%", Some("hit >= 95%")),
            ("hit >= -0.1%", Some("hit >= -0.1%")),
            ("p99 <= 5%", None),
            ("p99 <= +1ms", None),
        ]);
        let error = |text: &str| text.parse::<Requirement>().unwrap_err();
        assert_eq!(
            error("p99 <= 5%"),
            "invalid bound '5%' for p99: expected a duration with its unit, such as 1ms or 500us; or a change from A to B in per \
             cent with its sign, such as +5%, -0.5% or +0%"
        );
        assert_eq!(
            error("p99 <= +1ms"),
            "invalid change '+1ms' for p99: expected a change from A to B in per cent with its sign, such as +5%, -0.5% or +0%"
        );
        assert!(error("p99 +5%").contains("e.g. 'p99 <= +5%'"), "{}", error("p99 +5%"));
    }
}
