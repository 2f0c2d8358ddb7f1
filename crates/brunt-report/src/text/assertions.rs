//! What the user asserted, line by line, beside what was measured.
//!
//! Not the verdict, which stands below: an assertion that holds for a number that is not trusted shows nothing.

use crate::metric;
use crate::quantity;
use crate::table::Table;
use brunt_stats::assertion::{Assertion, AssertionStatus};

pub(super) fn write(out: &mut String, assertions: &[Assertion]) {
    if assertions.is_empty() {
        return;
    }
    let mut table = Table::new(&["asserted", "measured", "outcome"]).with_prose_last();
    for assertion in assertions {
        let metric = assertion.objective.subject.metric;
        let measured = assertion.measured.map_or("-".to_owned(), |value| metric::text(metric, value));
        table.push(vec![assertion.objective.to_string(), measured, outcome(assertion)]);
    }
    table.write(out);
    out.push('\n');
}

/// How it came out, in words.
pub(crate) fn outcome(assertion: &Assertion) -> String {
    match assertion.status() {
        AssertionStatus::Holds => "holds".to_owned(),
        AssertionStatus::Fails => "FAILS".to_owned(),
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
