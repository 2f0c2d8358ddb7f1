//! What the user asserted, line by line, beside what was measured.
//!
//! Not the verdict, which is below: that says which numbers may be believed, and this whether they are good enough.

use crate::metric;
use crate::quantity;
use crate::table::Table;
use brunt_stats::assertion::{Assertion, Doubt};
use brunt_stats::bound::{Bounds, Decision};
use brunt_stats::op_summary::LAG_SHARE_MAX;

pub(super) fn write(out: &mut String, assertions: &[Assertion]) {
    assertion_table(out, assertions.iter().map(row));
}

fn row(assertion: &Assertion) -> [String; 4] {
    let metric = assertion.objective.subject.metric;
    let measured = assertion.measured.map_or("-".to_owned(), |value| metric::text(metric, value));
    [assertion.objective.to_string(), measured, within(assertion), outcome(assertion)]
}

/// The table of what was asserted, of a run or of a comparison.
pub(crate) fn assertion_table(out: &mut String, rows: impl Iterator<Item = [String; 4]>) {
    let mut table = Table::new(&["assertion", "measured", "within", "outcome"]).with_prose_last();
    rows.for_each(|row| table.push(row.into()));
    if !table.is_empty() {
        table.write(out);
        out.push('\n');
    }
}

/// The bounds, where they are more than the number itself and something is known.
pub(crate) fn within(assertion: &Assertion) -> String {
    let Bounds { low, high } = assertion.bounds;
    let text = |value: f64| metric::text(assertion.objective.subject.metric, value);
    match assertion.measured {
        Some(_) if text(low) == text(high) || assertion.bounds == Bounds::UNKNOWN => String::new(),
        Some(_) if high.is_infinite() => format!("[{}..]", text(low)),
        Some(_) => format!("[{}..{}]", text(low), text(high)),
        None => String::new(),
    }
}

/// How it came out, in words.
pub(crate) fn outcome(assertion: &Assertion) -> String {
    let decided = decision_text(assertion.decision, assertion.doubt.map(reason).as_deref());
    match assertion.at_rate {
        Some(rate) => format!("{decided} (at {}/s)", rate.round() as u64),
        None => decided,
    }
}

/// A decision in words, with what it lacks.
pub(crate) fn decision_text(decision: Decision, reason: Option<&str>) -> String {
    match decision {
        Decision::Holds => "holds".to_owned(),
        Decision::Fails => "FAILS".to_owned(),
        Decision::Inconclusive => format!("inconclusive: {}", reason.unwrap_or("nothing is known of it")),
    }
}

/// What it takes until the answer is known.
pub(crate) fn reason(doubt: Doubt) -> String {
    match doubt {
        Doubt::NoRequests => "there was no such request".to_owned(),
        Doubt::Requests { more, ns: Some(ns) } => {
            format!("needs {more} more requests, {} at this rate", quantity::time(ns))
        }
        Doubt::Requests { more, ns: None } => format!("needs {more} more requests"),
        Doubt::ClosedLoopLag => format!(
            "the client held requests back for more than {} % of its slots' time, so the load is its own",
            LAG_SHARE_MAX * 100.0
        ),
        Doubt::Unanswered => "requests without an answer count as above every bound".to_owned(),
        Doubt::Client => "the client may have caused it".to_owned(),
        Doubt::Interval => "the interval holds the bound; run longer".to_owned(),
    }
}
