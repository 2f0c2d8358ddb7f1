//! What the user asserted, line by line, beside what was measured.
//!
//! Not the verdict, which stands below: an assertion that holds for a number that is not trusted shows nothing.

use super::latency::interval_text;
use crate::metric;
use crate::quantity;
use crate::table::Table;
use brunt_stats::assertion::{Assertion, AssertionStatus};

pub(super) fn write(out: &mut String, assertions: &[Assertion]) {
    if assertions.is_empty() {
        return;
    }
    let mut table = Table::new(&["asserted", "measured", "95 % within", "outcome"]).with_prose_last();
    for assertion in assertions {
        let metric = assertion.objective.subject.metric;
        let measured = assertion.measured.map_or("-".to_owned(), |value| metric::text(metric, value));
        let interval = assertion.interval.as_ref().map_or(String::new(), interval_text);
        table.push(vec![assertion.objective.to_string(), measured, interval, outcome(assertion)]);
    }
    table.write(out);
    out.push('\n');
}

/// How it came out, in words.
pub(crate) fn outcome(assertion: &Assertion) -> String {
    let doubt = if assertion.interval.is_some() && !assertion.is_beyond_doubt() {
        " by the estimate, not beyond doubt ~"
    } else {
        ""
    };
    match assertion.status() {
        AssertionStatus::Holds => format!("holds{doubt}"),
        AssertionStatus::Fails => format!("FAILS{doubt}"),
        AssertionStatus::Unknown => format!("NOT KNOWN: {}", lack(assertion)),
    }
}

/// What it takes until the number is known.
fn lack(assertion: &Assertion) -> String {
    match (assertion.needs_more, assertion.needs_ns) {
        (0, _) => "there was no such request".to_owned(),
        (more, Some(ns)) => {
            format!("needs {} more requests: {} at this rate", quantity::count(more), quantity::time(ns))
        }
        (more, None) => format!("needs {} more requests", quantity::count(more)),
    }
}
