//! What became of an assertion, in the words of every report.
//!
//! Invariant: text, page, Markdown, JUnit, JSON and annotations have the same finding.

use crate::layout::Style;
use crate::quantity;
use brunt_plan::objective::{Bound, Comparison, Metric, Objective, Statistic};
use brunt_stats::assertion::{Assertion, Reached, Reason};
use brunt_stats::bound::Decision;

/// One assertion in words.
#[derive(Clone, Debug)]
pub(crate) struct AssertionText {
    /// How it came out.
    pub(crate) decision: Decision,
    /// What was asserted: `get.p99 < 1ms`.
    pub(crate) subject: String,
    /// The number, and what decided: `1.31 ms; 2.10 % took 1 ms or more, 1.00 % may`.
    pub(crate) finding: String,
}

impl AssertionText {
    pub(crate) fn of(assertion: &Assertion) -> Self {
        let Assertion { objective, measured, decision, reached, reason, another_run_ns, at_rate, unanswered } =
            *assertion;
        let number =
            measured.map(|value| quantity::of_metric(objective.subject.metric, value)).or_else(|| {
                reached
                    .filter(|_| reason.is_none())
                    .map(|reached| count_text(&objective, &reached, unanswered))
            });
        let mut clauses: Vec<String> = match reason {
            Some(reason) => vec![reason_text(reason)],
            None => reached
                .filter(|_| decision == Decision::Fails)
                .and_then(|reached| reached_text(&objective, &reached, unanswered))
                .into_iter()
                .collect(),
        };
        if let Some(end_ns) = another_run_ns {
            clauses.push(another_run_text(decision, measured, end_ns));
        }
        if let Some(rate) = at_rate {
            clauses.push(format!("in closed loop at {}/s", quantity::significant(rate)));
        }
        let number = number
            .or_else(|| clauses.is_empty().then(|| "too few completed requests for a value".to_owned()));
        let finding: Vec<String> = number.into_iter().chain(clauses).collect();
        Self { decision, subject: objective.to_string(), finding: finding.join("; ") }
    }

    /// The decision in a word.
    pub(crate) const fn word(&self) -> &'static str {
        match self.decision {
            Decision::Holds => "holds",
            Decision::Fails => "FAILS",
            Decision::Undecided => "undecided",
        }
    }

    pub(crate) const fn style(&self) -> Style {
        match self.decision {
            Decision::Holds => Style::Good,
            Decision::Fails => Style::Bad,
            Decision::Undecided => Style::Doubt,
        }
    }
}

/// Assertions in words: those that fail, then those that are undecided, then those that hold.
pub(crate) fn sorted(texts: impl Iterator<Item = AssertionText>) -> Vec<AssertionText> {
    let mut texts: Vec<AssertionText> = texts.collect();
    texts.sort_by_key(|text| match text.decision {
        Decision::Fails => 0,
        Decision::Undecided => 1,
        Decision::Holds => 2,
    });
    texts
}

/// The assertions that fail or are undecided, a sentence each.
pub(crate) fn unmet(texts: impl Iterator<Item = AssertionText>) -> Vec<String> {
    sorted(texts)
        .into_iter()
        .filter(|text| text.decision != Decision::Holds)
        .map(|text| format!("{} {}: {}", text.word(), text.subject, text.finding))
        .collect()
}

/// `12.9 % took 10 ms or more, 1.00 % may`; of a maximum the number says it.
fn reached_text(objective: &Objective, reached: &Reached, unanswered: u64) -> Option<String> {
    let (Metric::Response(statistic) | Metric::Service(statistic)) = objective.subject.metric else {
        return None;
    };
    let Statistic::Percentile(quantile) = statistic else { return None };
    let Bound::Time(bound) = objective.bound else { return None };
    let share = |part: f64| quantity::of_metric(Metric::Errors, part);
    let verb = match objective.comparison {
        Comparison::Less | Comparison::LessOrEqual => "may",
        Comparison::Greater | Comparison::GreaterOrEqual => "must be exceeded",
    };
    let found = share(reached.with_client as f64 / reached.requests as f64);
    let took = took_text(objective, bound.0, unanswered);
    Some(format!("{found} {took}, {} {verb}", share(quantile.share_above())))
}

/// `none of 500 took 1.00 s or more`, where there are too few requests for the percentile itself.
fn count_text(objective: &Objective, reached: &Reached, unanswered: u64) -> String {
    let Bound::Time(bound) = objective.bound else { return String::new() };
    let count = if reached.with_client == 0 { "none".to_owned() } else { reached.with_client.to_string() };
    format!("{count} of {} {}", reached.requests, took_text(objective, bound.0, unanswered))
}

/// `took 10.0 ms or more`.
fn took_text(objective: &Objective, bound_ns: u64, unanswered: u64) -> String {
    let bound = quantity::time(bound_ns);
    let took = match objective.comparison {
        Comparison::Less | Comparison::GreaterOrEqual => format!("took {bound} or more"),
        Comparison::LessOrEqual | Comparison::Greater => format!("took more than {bound}"),
    };
    if unanswered > 0 { format!("{took} or had no answer") } else { took }
}

fn reason_text(reason: Reason) -> String {
    match reason {
        Reason::NoRequests => "no such request".to_owned(),
        Reason::Requests { more, ns: Some(ns) } => {
            format!("needs {more} more requests, {} at this rate", quantity::time(ns))
        }
        Reason::Requests { more, ns: None } => format!("needs {more} more requests"),
        Reason::Resolution => "within 0.1 % of the bound".to_owned(),
        Reason::Runs { opposite, of } => format!("{opposite} of {of} runs say the opposite of all together"),
        Reason::Client { part_ns: 0, unsent } => format!("{unsent} requests that were never sent decide"),
        Reason::Client { part_ns, unsent } => {
            let unsent = match unsent {
                0 => String::new(),
                unsent => format!(", and it did not send {unsent} requests"),
            };
            format!("brunt itself may have taken up to {} of it{unsent}", quantity::time(part_ns))
        }
    }
}

/// The end of the interval on the other side of the bound.
fn another_run_text(decision: Decision, measured: Option<f64>, end_ns: u64) -> String {
    let may = if decision == Decision::Holds { "may not" } else { "may hold" };
    let side = if measured.is_some_and(|value| end_ns as f64 >= value) { "up to" } else { "from" };
    format!("another run {may} (95 % {side} {})", quantity::time(end_ns))
}

#[cfg(test)]
mod tests {
    use super::*;

    const REACHED: Reached = Reached { requests: 1_000, allowed: 10, with_client: 129, without_client: 120 };

    fn assertion(objective: &str, measured: Option<f64>, decision: Decision) -> Assertion {
        Assertion {
            objective: objective.parse().unwrap(),
            measured,
            decision,
            reached: Some(REACHED),
            unanswered: 0,
            reason: None,
            another_run_ns: None,
            at_rate: None,
        }
    }

    #[test]
    fn findings() {
        let fails = assertion("p99 < 10ms", Some(948e6), Decision::Fails);
        let holds = assertion("get.p99 < 1ms", Some(930e3), Decision::Holds);
        let open = |reason| Assertion {
            reason: Some(reason),
            ..assertion("p99 < 1ms", Some(1.2e6), Decision::Undecided)
        };
        let table = [
            (fails.clone(), "FAILS", "948 ms; 12.9 % took 10.0 ms or more, 1.00 % may"),
            (
                Assertion { unanswered: 3, ..fails.clone() },
                "FAILS",
                "948 ms; 12.9 % took 10.0 ms or more or had no answer, 1.00 % may",
            ),
            (
                Assertion { another_run_ns: Some(9_000_000), ..fails },
                "FAILS",
                "948 ms; 12.9 % took 10.0 ms or more, 1.00 % may; another run may hold (95 % from 9.00 ms)",
            ),
            (holds.clone(), "holds", "930 us"),
            (
                Assertion { another_run_ns: Some(1_210_000), ..holds.clone() },
                "holds",
                "930 us; another run may not (95 % up to 1.21 ms)",
            ),
            (Assertion { at_rate: Some(5_000.0), ..holds }, "holds", "930 us; in closed loop at 5000/s"),
            (
                assertion("p99 > 10ms", Some(948e3), Decision::Fails),
                "FAILS",
                "948 us; 12.9 % took more than 10.0 ms, 1.00 % must be exceeded",
            ),
            (assertion("max < 10ms", Some(948e6), Decision::Fails), "FAILS", "948 ms"),
            (assertion("rate > 50k", Some(40e3), Decision::Fails), "FAILS", "40000/s"),
            (
                open(Reason::Requests { more: 850, ns: Some(3_200_000_000) }),
                "undecided",
                "1.20 ms; needs 850 more requests, 3.20 s at this rate",
            ),
            (
                open(Reason::Client { part_ns: 500_000, unsent: 0 }),
                "undecided",
                "1.20 ms; brunt itself may have taken up to 500 us of it",
            ),
            (
                Assertion {
                    measured: None,
                    reached: Some(Reached { with_client: 0, ..REACHED }),
                    ..assertion("p99 < 1s", None, Decision::Holds)
                },
                "holds",
                "none of 1000 took 1.00 s or more",
            ),
            (
                open(Reason::Client { part_ns: 0, unsent: 50 }),
                "undecided",
                "1.20 ms; 50 requests that were never sent decide",
            ),
        ];
        for (assertion, word, finding) in table {
            let text = AssertionText::of(&assertion);
            assert_eq!((text.word(), text.finding.as_str()), (word, finding), "{assertion:?}");
        }
    }
}
