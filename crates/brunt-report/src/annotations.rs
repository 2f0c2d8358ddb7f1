//! What a run came to as annotations of GitHub Actions: lines that its runner reads wherever a step prints them.
//!
//! Not a report: only what calls for attention. Invariant: a line is one annotation, whatever a server or a user wrote.

use crate::assertion_text::{self, AssertionText};
use crate::campaign::{self, Campaign, wanted};
use crate::comparison::{self, AssertionRow, Comparison};
use brunt_stats::bound::Decision;
use brunt_stats::capacity::Capacity;
use brunt_stats::status::{RunStatus, Status};
use brunt_stats::summary::Summary;
use std::io::{self, Write};

/// GitHub shows ten errors and ten warnings of a step.
const OF_A_KIND_MAX: usize = 8;

/// One line.
pub(crate) struct Annotation {
    title: String,
    message: String,
}

/// Writes the assertions of a run that do not hold as errors, and what its checks found as warnings.
pub(crate) fn write_run(summary: &Summary, out: &mut dyn Write) -> io::Result<()> {
    write_all("error", unmet(summary.assertions.iter().map(AssertionText::of)), out)?;
    write_all("warning", of_status(&summary.status), out)
}

/// Writes objectives that no rate met, and what the checks found.
pub(crate) fn write_campaign(campaign: &Campaign, out: &mut dyn Write) -> io::Result<()> {
    let status = &campaign.status;
    if let Some(Capacity::Below { .. }) = campaign.question.capacity() {
        let found: Vec<String> =
            campaign::findings(campaign).into_iter().flat_map(|(_, facts)| facts).collect();
        write_all("error", vec![annotation(wanted(campaign), found.join(" · "))], out)?;
    }
    write_all("error", unmet(campaign.assertions.iter().map(AssertionText::of)), out)?;
    let mut found = of_status(status);
    if found.is_empty() && status.status != Status::Ok {
        found.push(annotation(status.status.name().to_owned(), status.message.clone()));
    }
    write_all("warning", found, out)
}

/// Writes the assertions of a comparison that do not hold, and runs that are CAUTION or INVALID.
pub(crate) fn write_comparison(comparison: &Comparison, out: &mut dyn Write) -> io::Result<()> {
    write_all("error", unmet(comparison.asserted.iter().map(AssertionRow::text)), out)?;
    let runs = comparison::document::runs_by_status(comparison).into_iter();
    let of_runs = runs.map(|(status, text)| annotation(status.name().to_owned(), text));
    write_all("warning", of_runs.collect(), out)
}

/// Assertions that fail or are undecided.
fn unmet(texts: impl Iterator<Item = AssertionText>) -> Vec<Annotation> {
    let unmet = assertion_text::sorted(texts).into_iter().filter(|text| text.decision != Decision::Holds);
    let message = |text: &AssertionText| match text.decision {
        Decision::Undecided => format!("undecided: {}", text.finding),
        _ => text.finding.clone(),
    };
    unmet.map(|text| annotation(text.subject.clone(), message(&text))).collect()
}

pub(crate) fn annotation(subject: String, message: String) -> Annotation {
    Annotation { title: format!("brunt {subject}"), message }
}

/// What the checks found.
fn of_status(status: &RunStatus) -> Vec<Annotation> {
    status.findings().into_iter().map(|check| annotation(check.id.name().to_owned(), check.text())).collect()
}

/// Writes lines of one level, as many as are shown.
pub(crate) fn write_all(
    level: &str,
    mut annotations: Vec<Annotation>,
    out: &mut dyn Write,
) -> io::Result<()> {
    if annotations.len() > OF_A_KIND_MAX {
        let rest = annotations.split_off(OF_A_KIND_MAX - 1);
        let titles: Vec<String> = rest.into_iter().map(|held| held.title.replacen("brunt ", "", 1)).collect();
        annotations.push(annotation(format!("+{} more", titles.len()), titles.join(", ")));
    }
    for Annotation { title, message } in annotations {
        writeln!(out, "::{level} title={}::{}", in_property(&title), in_message(&message))?;
    }
    Ok(())
}

/// The runner ends a message with its line.
fn in_message(text: &str) -> String {
    text.replace('%', "%25").replace('\r', "%0D").replace('\n', "%0A")
}

/// It ends a property with a colon or a comma, too.
fn in_property(text: &str) -> String {
    in_message(text).replace(':', "%3A").replace(',', "%2C")
}
