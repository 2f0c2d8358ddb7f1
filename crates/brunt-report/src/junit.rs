//! A run or a comparison as JUnit XML, for continuous integration: a test case for every assertion, for every check or every run
//! compared, and of a run for every percentile of its table.
//!
//! Not a result to compute with (JSON is). The dialect is what Jenkins and GitLab read: `testsuites`, `testsuite`, `testcase`
//! with `failure` (an assertion does not hold), `error` (it cannot be told, or the run is INVALID) or `skipped`.
//! Invariant: there is a failure or an error exactly where the command does not end with 0 for the same reason.

use crate::assertion_text::AssertionText;
use crate::comparison::{AssertionRow, Comparison};
use crate::quantity;
use crate::result::RunResult;
use crate::run_document::latency;
use brunt_stats::bound::Decision;
use brunt_stats::check::{Check, CheckStatus};
use brunt_stats::op_summary::PercentileMark;
use brunt_stats::status::Status;
use brunt_stats::summary::Summary;
use std::io::{self, Write};

/// Writes the run.
pub(crate) fn write_run(summary: &Summary, out: &mut dyn Write) -> io::Result<()> {
    let asserted = summary.assertions.iter().map(AssertionText::of).map(of_assertion);
    let status = &summary.status;
    let checked = status.checks.iter().map(of_check);
    let rows = latency::rows(summary);
    let quantiles = summary.record.plan.shown_quantiles();
    let percentiles = rows.iter().flat_map(|row| {
        quantiles.iter().map(|quantile| {
            let measured =
                quantity::time_or_dash(row.summary.latency.response.summary.percentile_ns(*quantile));
            let mark = row.summary.mark(*quantile, status.judgement.is_strict);
            let message = format!("{measured}: {}", mark.describe());
            let outcome = match (mark, status.is_invalid()) {
                (PercentileMark::TooFew, _) => Outcome::Skipped { message },
                (_, true) => Outcome::Unmet { tag: "error", kind: "invalid", message },
                (_, false) => Outcome::Passed { said: message },
            };
            Case { name: format!("{}.{quantile}", row.name('.')), outcome }
        })
    });
    let suites = [
        ("brunt.assertions", asserted.collect()),
        ("brunt.status", checked.collect()),
        ("brunt.percentiles", percentiles.collect()),
    ];
    out.write_all(document(&suites, summary.window.seconds()).as_bytes())
}

/// Writes the comparison. A run that is INVALID is an error where nothing is concluded for such runs.
pub(crate) fn write_comparison(comparison: &Comparison, out: &mut dyn Write) -> io::Result<()> {
    let asserted = comparison.asserted.iter().map(AssertionRow::text).map(of_assertion);
    let runs = comparison.runs().map(|(side, run)| of_run(side, run, comparison.has_conclusion()));
    let suites = [("brunt.assertions", asserted.collect()), ("brunt.status", runs.collect())];
    let measured_ns: f64 = comparison.runs().map(|(_, run)| run.result.window.duration_ns as f64).sum();
    out.write_all(document(&suites, measured_ns / 1e9).as_bytes())
}

/// One test case.
struct Case {
    name: String,
    outcome: Outcome,
}

/// How a case came out.
enum Outcome {
    Passed { said: String },
    Unmet { tag: &'static str, kind: &'static str, message: String },
    Skipped { message: String },
}

fn of_assertion(text: AssertionText) -> Case {
    let AssertionText { decision, subject, finding: message } = text;
    let outcome = match decision {
        Decision::Holds => Outcome::Passed { said: message },
        Decision::Fails => Outcome::Unmet { tag: "failure", kind: "assertion", message },
        Decision::Undecided => Outcome::Unmet { tag: "error", kind: "undecided", message },
    };
    Case { name: subject, outcome }
}

fn of_check(check: &Check) -> Case {
    let message = check.text();
    let outcome = match check.status {
        CheckStatus::Skipped => Outcome::Skipped { message },
        CheckStatus::Ok => Outcome::Passed { said: message },
        CheckStatus::Caution => Outcome::Passed { said: format!("CAUTION: {message}") },
        CheckStatus::Invalid => Outcome::Unmet { tag: "error", kind: "invalid", message },
    };
    Case { name: check.id.name().to_owned(), outcome }
}

fn of_run(side: &str, run: &RunResult, has_conclusion: bool) -> Case {
    let message = [vec![run.status().name()], run.findings()].concat().join(" ");
    let outcome = match run.status() {
        Status::Invalid if !has_conclusion => Outcome::Unmet { tag: "error", kind: "invalid", message },
        _ => Outcome::Passed { said: message },
    };
    Case { name: format!("{side}, {}", run.source), outcome }
}

/// The suites that have cases, with the length of all that was measured.
fn document(suites: &[(&str, Vec<Case>)], seconds: f64) -> String {
    let cases: Vec<&Case> = suites.iter().flat_map(|(_, cases)| cases).collect();
    let mut xml = "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n".to_owned();
    xml += &format!("<testsuites name=\"brunt\" {}>\n", counts(&cases, seconds));
    for (name, cases) in suites.iter().filter(|(_, cases)| !cases.is_empty()) {
        let counts = counts(&cases.iter().collect::<Vec<_>>(), seconds);
        xml += &format!("  <testsuite name=\"{}\" {counts}>\n", escaped(name));
        cases.iter().for_each(|case| xml += &test_case(name, case));
        xml += "  </testsuite>\n";
    }
    xml + "</testsuites>\n"
}

fn counts(cases: &[&Case], seconds: f64) -> String {
    let number = |is: fn(&Outcome) -> bool| cases.iter().filter(|case| is(&case.outcome)).count();
    format!(
        "tests=\"{}\" failures=\"{}\" errors=\"{}\" skipped=\"{}\" time=\"{seconds:.3}\"",
        cases.len(),
        number(|outcome| matches!(outcome, Outcome::Unmet { tag: "failure", .. })),
        number(|outcome| matches!(outcome, Outcome::Unmet { tag: "error", .. })),
        number(|outcome| matches!(outcome, Outcome::Skipped { .. })),
    )
}

/// No case took time of its own: all of them judge one run.
fn test_case(suite: &str, Case { name, outcome }: &Case) -> String {
    let head =
        format!("    <testcase classname=\"{}\" name=\"{}\" time=\"0\">", escaped(suite), escaped(name));
    let body = match outcome {
        Outcome::Passed { said } => format!("<system-out>{}</system-out>", escaped(said)),
        Outcome::Unmet { tag, kind, message } => {
            let (first, all) = (escaped(message.lines().next().unwrap_or("")), escaped(message));
            format!("<{tag} type=\"{kind}\" message=\"{first}\">{all}</{tag}>")
        }
        Outcome::Skipped { message } => format!("<skipped message=\"{}\"/>", escaped(message)),
    };
    format!("{head}{body}</testcase>\n")
}

/// A text inside an element or an attribute. XML 1.0 has no way to write most control characters: they are written out.
fn escaped(text: &str) -> String {
    let mut xml = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '&' => xml.push_str("&amp;"),
            '<' => xml.push_str("&lt;"),
            '>' => xml.push_str("&gt;"),
            '"' => xml.push_str("&quot;"),
            '\n' => xml.push('\n'),
            control if control.is_control() || ('\u{fffe}'..='\u{ffff}').contains(&control) => {
                xml.extend(control.escape_default());
            }
            plain => xml.push(plain),
        }
    }
    xml
}
