//! The precision of percentiles at which a run may end, and when it ends without: `p99=2%,max=30m`.
//!
//! Not the rule that decides it (that is `brunt-stats`'s, with confidence intervals) and not a wish about the value of a
//! percentile (that is an [`crate::objective`]).

use crate::objective::{Fraction, Metric, Statistic, Subject};
use crate::op::OpName;
use crate::quantile::Quantile;
use crate::units::{DurationNs, joined, text_form};
use std::fmt;

/// Half an interval is asked to be at most this part of its percentile. One that is wider reaches from half the value,
/// or less, to half as much again: that says nothing that is worth ending a run for, and no formula for planning holds
/// so far.
const HALF_WIDTH_MAX: Fraction = Fraction { per_billion: 500_000_000 };

/// Half of a percentile's confidence interval is to be at most this share of it. Text form: `p99=2%`, `get.p99.9=5%`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Precision {
    /// Only requests of this operation; `None` for all of them.
    pub op: Option<OpName>,
    /// Which percentile of the response time; one of [`Quantile::PRINTED`].
    pub quantile: Quantile,
    /// Half the interval over the percentile; above 0 and at most 50 %.
    pub half_width: Fraction,
}

/// Everything that is to be known before a run may end, each percentile once. Text form: a list such as
/// `p50=1%,p99=5%,max=30m`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Until {
    /// In the order given.
    pub precisions: Vec<Precision>,
    /// The longest that this takes. Without precisions it is that of the steps of a search.
    pub max: Option<DurationNs>,
}

impl Precision {
    fn of_text(text: &str) -> Result<Self, String> {
        let Some((subject, half_width)) = text.split_once('=') else {
            return Err(format!(
                "invalid precision '{text}': expected a percentile and a fraction, e.g. p99=2%"
            ));
        };
        let (subject, half_width) = (subject.trim(), half_width.trim());
        let subject_of = |text: &str| {
            text.parse().ok().filter(|subject: &Subject| subject.check_default_percentiles().is_ok())
        };
        let Some(Subject { op, metric: Metric::Response(Statistic::Percentile(quantile)) }) =
            subject_of(subject)
        else {
            return Err(format!(
                "unknown percentile '{subject}': expected p50, p90, p95, p99, p99.9 or p99.99, or such as get.p99"
            ));
        };
        let accepted = 1..=HALF_WIDTH_MAX.per_billion;
        match half_width.parse() {
            Ok(Fraction { per_billion }) if accepted.contains(&per_billion) => {
                Ok(Self { op, quantile, half_width: Fraction { per_billion } })
            }
            _ => Err(format!(
                "invalid precision '{half_width}' of {subject}: expected half the width of its confidence interval as a \
                 part of it, above 0 and at most {HALF_WIDTH_MAX}, such as 2% or 0.02"
            )),
        }
    }

    fn write_text(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(op) = self.op {
            write!(formatter, "{op}.")?;
        }
        write!(formatter, "{}={}", self.quantile, self.half_width)
    }
}
text_form!(Precision);

impl Until {
    fn of_text(text: &str) -> Result<Self, String> {
        let mut precisions: Vec<Precision> = Vec::new();
        let mut max = None;
        for item in text.split(',').map(str::trim) {
            if let Some(("max", duration)) =
                item.split_once('=').map(|(name, duration)| (name.trim(), duration))
            {
                let duration = duration.trim().parse().map_err(|error| format!("{item}: {error}"))?;
                if max.replace(duration).is_some() {
                    return Err(format!("repeated '{item}': expected one max"));
                }
                continue;
            }
            let precision: Precision = item.parse()?;
            let same = |held: &Precision| (held.op, held.quantile) == (precision.op, precision.quantile);
            if precisions.iter().any(same) {
                return Err(format!("repeated percentile '{item}': expected each once"));
            }
            precisions.push(precision);
        }
        Ok(Self { precisions, max })
    }

    fn write_text(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let max = self.max.map(|max| format!("max={max}"));
        formatter.write_str(&joined(self.precisions.iter().map(Precision::to_string).chain(max)))
    }
}
text_form!(Until);
