//! An objective for a number of a run: `p99 < 1ms`, `get.hit >= 95%`; and how much one may change between two sets of runs.
//!
//! Not a check of the run (that asks whether a number may be believed) and not the number: `brunt-stats` compares the
//! two. A change is a part of what the first set has, and has a sign; of fractions it is in points. Bounds are exact integers, so an objective that is printed and read again is the same objective.

use crate::op::OpName;
use crate::quantile::Quantile;
use crate::units::{DurationNs, Rate, decimal, scaled, text_form};
use std::fmt;
use std::str::FromStr;

/// Billionths in a whole.
const BILLION: u64 = 1_000_000_000;
/// Billionths in a hundredth.
const PERCENT: u64 = BILLION / 100;

/// A number of a run, compared with a bound. Text form: `[OP.]METRIC COMPARISON BOUND`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Objective {
    /// The number that is compared.
    pub subject: Subject,
    /// Whether it must be below or above the bound.
    pub comparison: Comparison,
    /// The bound, in the unit of the metric.
    pub bound: Bound,
}

/// A number of a run by name: a metric of one op, or of all requests. Text form: `p99`, `get.p99.9`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Subject {
    /// Only requests of this operation; `None` for all of them.
    pub op: Option<OpName>,
    /// The metric of these requests.
    pub metric: Metric,
}

/// What can be asked of the requests of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Metric {
    /// A statistic of the response time.
    Response(Statistic),
    /// A statistic of the service time; in text with `service.` in front.
    Service(Statistic),
    /// The client's part of a percentile of the response time; in text with `client.` in front.
    Client(Quantile),
    /// Completed per second of the window.
    Rate,
    /// Keys found / keys requested.
    Hit,
    /// (Errors + time-outs + lost) / sent, as the check ERR has it.
    Errors,
    /// Never sent / scheduled.
    Unsent,
}

/// A statistic of a latency.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Statistic {
    /// One that the plan gives.
    Percentile(Quantile),
    /// The mean.
    Mean,
    /// The longest.
    Max,
}

crate::named! {
    /// Comparison of a number with its bound.
    pub enum Comparison {
        /// Below it.
        Less = "<",
        /// At most the bound.
        LessOrEqual = "<=",
        /// Above it.
        Greater = ">",
        /// At least the bound.
        GreaterOrEqual = ">=",
    }
}

/// A bound in the unit of its metric.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bound {
    /// Bound of a latency.
    Time(DurationNs),
    /// Bound of a rate.
    Rate(Rate),
    /// Bound of a fraction.
    Fraction(Fraction),
}

/// A part of a whole, from 0 to 1. Text form: `0.95`, `95%`; printed in per cent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Fraction {
    /// In billionths.
    pub per_billion: u64,
}

impl Objective {
    /// Is it an upper bound on a percentile of the response time, or on the client's part of one: what a search for capacity can steer by?
    pub const fn is_ceiling(&self) -> bool {
        matches!(self.comparison, Comparison::Less | Comparison::LessOrEqual)
            && matches!(self.subject.metric, Metric::Response(Statistic::Percentile(_)) | Metric::Client(_))
    }

    /// Does a measured number, in the unit of [`Bound::value`], meet the bound?
    pub fn is_met_by(&self, measured: f64) -> bool {
        self.comparison.holds(measured, self.bound.value())
    }

    fn of_text(text: &str) -> Result<Self, String> {
        let (subject, comparison, bound) = Comparison::split(text, "p99 < 1ms")?;
        let text = bound;
        let bound = subject.metric.bound(text).ok_or_else(|| {
            let accepted = subject.metric.accepted_bound();
            format!("invalid bound '{text}' for {subject}: expected {accepted}")
        })?;
        let is_upper = matches!(comparison, Comparison::Less | Comparison::LessOrEqual);
        if is_upper && bound == Bound::Time(DurationNs(0)) {
            return Err(format!(
                "invalid bound '{text}' for {subject}: expected a duration above 0, \
                 such as 1ms or 500us"
            ));
        }
        Ok(Self { subject, comparison, bound })
    }

    fn write_text(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{} {} {}", self.subject, self.comparison, self.bound)
    }
}

impl Subject {
    /// Does every run give it, whatever percentiles the plan asks for?
    ///
    /// # Errors
    /// It does not, and what is given; for a user.
    pub fn check_default_percentiles(&self) -> Result<(), String> {
        match self.percentile().filter(|quantile| !Quantile::PRINTED.contains(quantile)) {
            None => Ok(()),
            Some(quantile) => {
                let names = Quantile::PRINTED.map(|quantile| quantile.to_string()).join(", ");
                Err(format!("unknown percentile '{quantile}': expected {names}"))
            }
        }
    }

    /// The percentile that it is of, if it is of one.
    pub fn percentile(&self) -> Option<Quantile> {
        match self.metric {
            Metric::Response(Statistic::Percentile(quantile))
            | Metric::Service(Statistic::Percentile(quantile))
            | Metric::Client(quantile) => Some(quantile),
            _ => None,
        }
    }

    fn of_text(text: &str) -> Result<Self, String> {
        let text = text.trim();
        let refused = || format!("unknown metric '{text}': expected {}", Metric::ACCEPTED);
        if let Ok(metric) = text.parse() {
            return Ok(Self { op: None, metric });
        }
        // A point separates an op from its metric, and may be in either: JSON.GET.p99.9.
        let part = |(at, _): (usize, &str)| {
            let (name, metric) = (text[..at].parse().ok()?, text[at + 1..].parse().ok()?);
            // That is part of a metric.
            (!matches!(&text[..at], "service" | "client")).then_some(Self { op: Some(name), metric })
        };
        text.match_indices('.').find_map(part).ok_or_else(refused)
    }

    fn write_text(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.op {
            Some(op) => write!(formatter, "{op}.{}", self.metric),
            None => write!(formatter, "{}", self.metric),
        }
    }
}

impl Metric {
    /// Is it a statistic of a time?
    pub const fn is_latency(self) -> bool {
        matches!(self, Self::Response(_) | Self::Service(_) | Self::Client(_))
    }

    /// What is accepted where a metric is expected.
    pub const ACCEPTED: &'static str = "p50, p90, p95, p99, p99.9, p99.99, mean or max (of the response time; service.p99 \
        is of the service time, client.p99 the client's part), rate, hit, errors, unsent; of all requests, or of one operation, e.g. get.p99";

    fn accepted_bound(self) -> &'static str {
        match self {
            Self::Response(_) | Self::Service(_) | Self::Client(_) => {
                "a duration with its unit, such as 1ms or 500us"
            }
            Self::Rate => "completed requests per second, such as 50k or 1.5M/s",
            Self::Hit | Self::Errors | Self::Unsent => "a part of the whole, such as 0.95, 95% or 0",
        }
    }

    fn bound(self, text: &str) -> Option<Bound> {
        match self {
            Self::Response(_) | Self::Service(_) | Self::Client(_) => text.parse().ok().map(Bound::Time),
            Self::Rate => text.parse().ok().map(Bound::Rate),
            Self::Hit | Self::Errors | Self::Unsent => text.parse().ok().map(Bound::Fraction),
        }
    }
}

impl Bound {
    /// The bound as a number: nanoseconds, requests per second, or a share from 0 to 1. A measured quotient of integers
    /// that equals the bound exactly equals this number, too: both are the same fraction, correctly rounded.
    pub fn value(self) -> f64 {
        match self {
            Self::Time(time) => time.0 as f64,
            Self::Rate(rate) => rate.as_f64(),
            Self::Fraction(share) => share.as_f64(),
        }
    }
}
text_form!(Objective);
text_form!(Subject, without serde);

impl FromStr for Metric {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        let statistic = |name: &str| match name {
            "mean" => Ok(Statistic::Mean),
            "max" => Ok(Statistic::Max),
            _ => match name.parse() {
                Ok(quantile) => Ok(Statistic::Percentile(quantile)),
                _ => Err(()),
            },
        };
        match text {
            "rate" => Ok(Self::Rate),
            "hit" => Ok(Self::Hit),
            "errors" => Ok(Self::Errors),
            "unsent" => Ok(Self::Unsent),
            _ => match text.split_once('.') {
                Some(("service", name)) => statistic(name).map(Self::Service),
                Some(("client", name)) => name.parse().map(Self::Client).map_err(|_| ()),
                _ => statistic(text).map(Self::Response),
            },
        }
    }
}

impl fmt::Display for Metric {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Response(statistic) => statistic.fmt(formatter),
            Self::Service(statistic) => write!(formatter, "service.{statistic}"),
            Self::Client(quantile) => write!(formatter, "client.{quantile}"),
            Self::Rate => formatter.write_str("rate"),
            Self::Hit => formatter.write_str("hit"),
            Self::Errors => formatter.write_str("errors"),
            Self::Unsent => formatter.write_str("unsent"),
        }
    }
}

impl fmt::Display for Statistic {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Percentile(quantile) => quantile.fmt(formatter),
            Self::Mean => formatter.write_str("mean"),
            Self::Max => formatter.write_str("max"),
        }
    }
}

impl Comparison {
    /// Does a number compare in this way with a bound?
    pub(crate) fn holds(self, number: f64, bound: f64) -> bool {
        match self {
            Self::Less => number < bound,
            Self::LessOrEqual => number <= bound,
            Self::Greater => number > bound,
            Self::GreaterOrEqual => number >= bound,
        }
    }

    /// A text of a subject, a comparison and a bound in its parts; `example` is one that is accepted.
    pub(crate) fn split<'a>(text: &'a str, example: &str) -> Result<(Subject, Self, &'a str), String> {
        let Some(at) = text.find(['<', '>', '=']) else {
            return Err(format!(
                "missing comparison: expected <, <=, > or >= between a metric and its bound, e.g. '{example}'"
            ));
        };
        let (subject, rest) = text.split_at(at);
        let end = rest.find(|c| !matches!(c, '<' | '>' | '=')).unwrap_or(rest.len());
        let (symbol, bound) = rest.split_at(end);
        Ok((subject.parse()?, symbol.parse()?, bound.trim()))
    }

    fn of_text(text: &str) -> Result<Self, String> {
        Self::from_name(text).ok_or_else(|| format!("unknown comparison '{text}': expected <, <=, > or >="))
    }

    fn write_text(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.name())
    }
}
text_form!(Comparison, without serde);

impl fmt::Display for Bound {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Time(time) => time.fmt(formatter),
            Self::Rate(rate) => rate.fmt(formatter),
            Self::Fraction(share) => share.fmt(formatter),
        }
    }
}

impl Fraction {
    /// From 0 to 1.
    pub fn as_f64(self) -> f64 {
        self.per_billion as f64 / BILLION as f64
    }

    fn of_text(text: &str) -> Result<Self, String> {
        let text = text.trim();
        let (number, scale) = match text.strip_suffix('%') {
            Some(percent) => (percent.trim_end(), PERCENT),
            None => (text, BILLION),
        };
        scaled(number, scale)
            .filter(|per_billion| *per_billion <= BILLION)
            .map(|per_billion| Self { per_billion })
            .ok_or_else(|| {
                "expected a part of the whole, from 0 to 1 or to 100%, such as 0.95 or 95%".to_owned()
            })
    }

    fn write_text(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}%", decimal(self.per_billion, PERCENT))
    }
}
text_form!(Fraction);

/// What is asserted of two sets of runs. Text form: that of an objective, or `[OP.]METRIC COMPARISON ±CHANGE%`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Requirement {
    /// Bound of the change from A to B.
    Change(Tolerance),
    /// Bound of B alone.
    Value(Objective),
}

/// How much a number of B may differ from that of A.
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

    fn of_text(text: &str) -> Result<Self, String> {
        let (subject, comparison, bound) = Comparison::split(text, "p99 <= +5%")?;
        subject.check_default_percentiles()?;
        if !bound.starts_with(['+', '-']) {
            let or_change = |error: String| format!("{error}; or {}", Change::ACCEPTED);
            return text.parse().map(Self::Value).map_err(or_change);
        }
        let change = bound.parse().map_err(|accepted: String| {
            format!("invalid change '{bound}' for {subject}: expected {accepted}")
        })?;
        Ok(Self::Change(Tolerance { subject, comparison, change }))
    }

    fn write_text(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Change(Tolerance { subject, comparison, change }) => {
                write!(formatter, "{subject} {comparison} {change}")
            }
            Self::Value(objective) => write!(formatter, "{objective}"),
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

    fn of_text(text: &str) -> Result<Self, String> {
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

    fn write_text(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let sign = if self.per_billion < 0 { "-" } else { "+" };
        write!(formatter, "{sign}{}%", decimal(self.per_billion.unsigned_abs(), PERCENT))
    }
}
text_form!(Change, without serde);
text_form!(Requirement, without serde);

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_ceiling_bounds_a_percentile_from_above() {
        let table = [
            ("p99 < 1ms", true),
            ("get.p99.9 <= 5us", true),
            ("p99 > 1ms", false),
            ("mean < 1ms", false),
            ("max < 1ms", false),
            ("service.p99 < 1ms", false),
            ("client.p99 <= 10us", true),
            ("client.p99 > 10us", false),
            ("hit < 0.5", false),
        ];
        for (text, expected) in table {
            assert_eq!(text.parse::<Objective>().unwrap().is_ceiling(), expected, "{text}");
        }
    }

    #[test]
    fn comparisons_at_the_bound() {
        let table = [
            ("p99 < 1ms", 1e6, false),
            ("p99 <= 1ms", 1e6, true),
            ("p99 <= 1ms", 1_000_001.0, false),
            ("p99 > 1ms", 1e6, false),
            ("p99 >= 1ms", 1e6, true),
            // Quotients of integers, as they are measured.
            ("hit >= 0.95", 19.0 / 20.0, true),
            ("hit > 95%", 95_000.0 / 100_000.0, false),
            ("errors <= 0.1%", 7.0 / 7_000.0, true),
            ("errors < 0.1%", 7.0 / 7_000.0, false),
            ("unsent <= 0", 0.0, true),
        ];
        for (text, measured, expected) in table {
            assert_eq!(text.parse::<Objective>().unwrap().is_met_by(measured), expected, "{text}");
        }
    }

    proptest! {
        #[test]
        fn printed_values_read_back(per_billion in 0..=BILLION) {
            let share = Fraction { per_billion };
            prop_assert_eq!(share.to_string().parse(), Ok(share));
        }
    }

    #[test]
    fn signed_bounds_are_changes() {
        assert_eq!("-0.5%".parse::<Change>().unwrap().value(), -0.005);
        let Requirement::Change(tolerance) = "p99 <= +5%".parse().unwrap() else { panic!("no change") };
        assert_eq!([0.05, 0.050_001].map(|change| tolerance.is_met_by(change)), [true, false]);
    }
}
