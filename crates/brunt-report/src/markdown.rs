//! A result as Markdown with GitHub's tables, for the summary of a step in continuous integration: its report, the status first.
//!
//! A step may have 1 MiB and loses everything beyond. Invariants: no result takes more than 60 kB; what comes from a server or a user is
//! text, and neither Markdown nor HTML.

use crate::document::{Content, Document, Level, assertion_grid};
use crate::grid::Grid;
use crate::layout::Layout;
use crate::run_document::{self, OpRows};
use crate::text::steers;
use brunt_stats::summary::Summary;
use std::io::{self, Write};

pub(crate) const BYTES_MAX: usize = 60_000;
/// Below the first row of the table, which three more belong to.
const ROWS: usize = 3;
/// Assertions of a summary; JSON has all.
const ASSERTIONS_MAX: usize = 50;

/// Writes a run, with its plan below.
pub(crate) fn write_run(summary: &Summary, out: &mut dyn Write) -> io::Result<()> {
    let mut text = blocks(&run_document::document(
        summary,
        &Layout::default(),
        OpRows { rows_max: ROWS, ..OpRows::default() },
    ));
    let plan = summary.record.plan.spec.to_toml();
    let folded = format!(
        "<details><summary>Plan: <code>brunt run plan.toml</code> repeats the run</summary>\n\n{}\n</details>\n\n",
        fenced("toml", &plan)
    );
    text += match text.len() + folded.len() {
        few if few <= BYTES_MAX => &folded,
        _ => "The plan is too long for a summary; the result in JSON has it.\n\n",
    };
    out.write_all(text.as_bytes())
}

/// A short report, below a heading that says what it comes to.
pub(crate) fn blocks(document: &Document) -> String {
    let (mut heading, mut text) = (Vec::new(), String::new());
    for group in document.groups(Level::Short) {
        text += &match group[0] {
            Content::Gap => continue,
            Content::Status { text, .. } => {
                heading.push(escaped(text));
                continue;
            }
            Content::Heading(name) => format!("#### {}\n", escaped(name)),
            Content::Facts { .. } | Content::Sentence { .. } | Content::Advice { .. } => {
                group.iter().map(|content| line(content)).collect()
            }
            Content::Assertion(_) => {
                let shown = table(&assertion_grid(&group[..group.len().min(ASSERTIONS_MAX)]));
                match group.len().saturating_sub(ASSERTIONS_MAX) {
                    0 => shown,
                    more => format!("{shown}\n+{more} more\n"),
                }
            }
            Content::Table(grid) => table(grid),
            Content::Chart { label, times_ns, scale } => {
                let bars: String = times_ns.iter().map(|ns| scale.bar(*ns)).collect();
                format!("{}: {bars} {scale}\n", escaped(label))
            }
            Content::Verbatim(verbatim) => format!("{}\n", fenced("text", verbatim)),
        };
        text.push('\n');
    }
    format!("### {}\n\n{text}", heading.join(" · "))
}

/// Facts, a sentence or a piece of advice.
fn line(content: &Content) -> String {
    if let Content::Advice { name, text } = content {
        return format!("- **{}** {}\n", escaped(name), escaped(&text.replace(" -> ", " → ")));
    }
    let (label, facts) = content.labelled().unwrap_or_default();
    let label = if label.is_empty() { label } else { format!("{label}: ") };
    format!("{}  \n", escaped(&format!("{label}{}", facts.join(" · "))))
}

/// A table, of which rows may lack cells at their end.
fn table(grid: &Grid) -> String {
    let line = |cells: Vec<String>| format!("| {} |\n", cells.join(" | "));
    let mut text = line(grid.headings().map(|(heading, _)| escaped(heading)).collect());
    let rule = |(_, is_words): (&str, bool)| if is_words { "---" } else { "--:" }.to_owned();
    text += &line(grid.headings().map(rule).collect());
    for row in grid.rows() {
        let mut cells: Vec<String> = row.map(|cell| escaped(cell.trim())).collect();
        cells.resize(grid.headings().count(), String::new());
        text += &line(cells);
    }
    text
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
