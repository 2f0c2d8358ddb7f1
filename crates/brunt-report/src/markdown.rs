//! A result as Markdown with GitHub's tables, for the summary of a step in continuous integration.
//!
//! Not all of it: a step may have 1 MiB and loses everything beyond. Invariants: no result takes more than 60 kB; what comes from a server or
//! a user is text, and neither Markdown nor HTML.

use crate::assertion_text::{self, AssertionText};
use crate::campaign::{self, Campaign};
use crate::comparison::Comparison;
use crate::grid::Grid;
use crate::layout::Layout;
use crate::paragraph::steers;
use crate::run_document::{OpRows, conclusion, head, latency};
use brunt_stats::assertion::Assertion;
use brunt_stats::summary::Summary;
use std::io::{self, Write};

pub(crate) const BYTES_MAX: usize = 60_000;
/// Below the first row of the table, which three more belong to.
const ROWS: usize = 3;
/// A step of GitHub Actions loses everything beyond 1 MiB.
const ASSERTIONS_MAX: usize = 50;

/// Writes a run.
///
/// # Errors
/// What `out` returns.
pub fn write(summary: &Summary, out: &mut dyn Write) -> io::Result<()> {
    let status = &summary.status;
    let mut text = heading(&status.headline());
    for (label, facts) in head::lines(summary) {
        let label = if label.is_empty() { label } else { format!("{label}: ") };
        text += &format!("{}  \n", escaped(&format!("{label}{}", facts.join(" · "))));
    }
    text += "\n";
    let grids = latency::tables(summary, &Layout::default(), OpRows { rows_max: ROWS, ..OpRows::default() });
    grids.iter().for_each(|grid| text += &(grid_table(grid) + "\n"));
    text += &assertions(&summary.assertions);
    for (name, sentence) in conclusion::findings(status) {
        text += &format!("- **{}** {}\n", escaped(name), escaped(&sentence.replace(" -> ", " → ")));
    }
    let plan = summary.record.plan.spec.to_toml();
    let folded = format!(
        "\n<details><summary>Plan: <code>brunt run plan.toml</code> repeats the run</summary>\n\n{}\n</details>\n\n",
        fenced("toml", &plan)
    );
    text += match text.len() + folded.len() {
        few if few <= BYTES_MAX => &folded,
        _ => "\nThe plan is too long for a summary; the result in JSON has it.\n\n",
    };
    out.write_all(text.as_bytes())
}

/// Writes a campaign: its report, below what it comes to.
///
/// # Errors
/// What `out` returns.
pub fn write_campaign(campaign: &Campaign, out: &mut dyn Write) -> io::Result<()> {
    let mut report = Vec::new();
    campaign::write_text(campaign, &Layout::default(), &mut report)?;
    write_report(&campaign::headline(campaign), &report, out)
}

/// Writes a comparison: its report, below its answer.
///
/// # Errors
/// What `out` returns.
pub fn write_comparison(comparison: &Comparison, out: &mut dyn Write) -> io::Result<()> {
    let mut report = Vec::new();
    comparison.write_text(&Layout::default(), &mut report)?;
    write_report(&comparison.answer(), &report, out)
}

fn write_report(headline: &[String], report: &[u8], out: &mut dyn Write) -> io::Result<()> {
    let report = fenced("text", &String::from_utf8_lossy(report));
    write!(out, "{}{report}\n\n", heading(&headline.join(" · ")))
}

fn heading(text: &str) -> String {
    format!("### {}\n\n", escaped(text))
}

fn grid_table(grid: &Grid) -> String {
    table(&grid.headings(), &grid.texts())
}

/// A table by its headings and whether their columns are of words; rows may lack cells at their end.
fn table(headings: &[(String, bool)], rows: &[Vec<String>]) -> String {
    let line = |cells: Vec<String>| format!("| {} |\n", cells.join(" | "));
    let mut text = line(headings.iter().map(|(heading, _)| escaped(heading)).collect());
    text +=
        &line(headings.iter().map(|(_, is_left)| if *is_left { "---" } else { "--:" }.to_owned()).collect());
    for row in rows {
        let cell = |index: usize| row.get(index).map_or(String::new(), |cell| escaped(cell.trim()));
        text += &line((0..headings.len()).map(cell).collect());
    }
    text
}

fn assertions(assertions: &[Assertion]) -> String {
    if assertions.is_empty() {
        return String::new();
    }
    let row = |text: AssertionText| vec![text.subject.clone(), text.finding.clone(), text.word().to_owned()];
    let texts = assertion_text::sorted(assertions.iter().map(AssertionText::of));
    let rows: Vec<Vec<String>> = texts.into_iter().take(ASSERTIONS_MAX).map(row).collect();
    let headings = ["assertion", "finding", "outcome"].map(|heading| (heading.to_owned(), true));
    let more = match assertions.len().saturating_sub(ASSERTIONS_MAX) {
        0 => String::new(),
        more => format!("\n+{more} more\n"),
    };
    format!("{}{more}\n", table(&headings, &rows))
}

/// A text inside a line, with everything that Markdown or HTML would read as more than text.
pub(crate) fn escaped(text: &str) -> String {
    let mut markdown = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '&' => markdown.push_str("&amp;"),
            '<' => markdown.push_str("&lt;"),
            '\\' | '`' | '*' | '_' | '[' | ']' | '>' | '|' | '~' | '#' | '!' => {
                markdown.extend(['\\', character])
            }
            steering if steers(steering) => markdown.push(' '),
            plain => markdown.push(plain),
        }
    }
    markdown
}

/// A block of text as it is, between fences that it does not hold.
pub(crate) fn fenced(language: &str, text: &str) -> String {
    let longest = text.split(|character| character != '`').map(str::len).max().unwrap_or(0);
    let fence = "`".repeat((longest + 1).max(3));
    format!("{fence}{language}\n{}\n{fence}", text.trim_end())
}
