//! What a report is about: a run, several, a campaign or a comparison, with every medium in which it can be written.
//!
//! Invariant: text, page and Markdown have the blocks of one document.

use crate::campaign::{self, Campaign};
use crate::comparison::{self, Comparison};
use crate::document::{Document, Level};
use crate::layout::Layout;
use crate::run_document::{self, OpRows};
use crate::{annotations, csv, html, json, junit, markdown};
use brunt_stats::summary::Summary;
use std::io::{self, Write};

/// What is reported.
#[derive(Clone, Copy, Debug)]
pub enum Subject<'a> {
    /// One run.
    Run(&'a Summary),
    /// Single runs with their names, side by side.
    Runs(&'a [(String, Summary)]),
    /// Several measurements of one command.
    Campaign(&'a Campaign),
    /// Two sets of runs.
    Comparison(&'a Comparison),
}

impl Subject<'_> {
    /// Its document; `None` of several runs, which only a page has side by side.
    fn document(self, layout: &Layout, level: Level) -> Option<Document> {
        Some(match self {
            Self::Run(summary) => run_document::document(summary, layout, OpRows::default()),
            Self::Runs(_) => return None,
            Self::Campaign(campaign) => campaign::document::document(campaign, layout),
            Self::Comparison(comparison) => comparison::document::document(comparison, layout, level),
        })
    }

    /// Writes the report; of several runs a line for each.
    ///
    /// # Errors
    /// What `out` returns.
    pub fn write_text(self, layout: &Layout, level: Level, out: &mut dyn Write) -> io::Result<()> {
        match self.document(layout, level) {
            Some(document) => out.write_all(document.text(layout, level).as_bytes()),
            None => self.write_brief(layout, out),
        }
    }

    /// Writes a line of `key=value`, always with the same keys in the same order.
    ///
    /// # Errors
    /// What `out` returns.
    pub fn write_brief(self, layout: &Layout, out: &mut dyn Write) -> io::Result<()> {
        let line = match self {
            Self::Run(summary) => run_document::brief(summary, layout),
            Self::Runs(runs) => {
                let of_run =
                    |(name, run): &(String, Summary)| format!("{name}: {}", run_document::brief(run, layout));
                runs.iter().map(of_run).collect::<Vec<_>>().join("\n")
            }
            Self::Campaign(campaign) => campaign::document::brief(campaign, layout),
            Self::Comparison(comparison) => comparison::document::brief(comparison),
        };
        writeln!(out, "{}", layout.in_characters(&line))
    }

    /// Writes the report as Markdown.
    ///
    /// # Errors
    /// What `out` returns.
    pub fn write_markdown(self, out: &mut dyn Write) -> io::Result<()> {
        let document = match self {
            Self::Run(summary) => return markdown::write_run(summary, out),
            Self::Runs(runs) => return runs.iter().try_for_each(|(_, run)| markdown::write_run(run, out)),
            Self::Campaign(_) | Self::Comparison(_) => self.document(&Layout::default(), Level::Short),
        };
        out.write_all(markdown::blocks(&document.unwrap_or_default()).as_bytes())
    }

    /// Writes the page.
    ///
    /// # Errors
    /// What `out` returns.
    pub fn write_html(self, out: &mut dyn Write) -> io::Result<()> {
        match self {
            Self::Run(summary) => html::write(summary, out),
            Self::Runs(runs) => html::several::write(runs, out),
            Self::Campaign(campaign) => campaign::html::write(campaign, out),
            Self::Comparison(comparison) => comparison::html::write(comparison, out),
        }
    }

    /// Writes the result as JSON.
    ///
    /// # Errors
    /// What `out` returns, or that several runs are no result.
    pub fn write_json(self, out: &mut dyn Write) -> io::Result<()> {
        match self {
            Self::Run(summary) => json::write(summary, out),
            Self::Runs(_) => Err(io::ErrorKind::Unsupported.into()),
            Self::Campaign(campaign) => campaign::json::write(campaign, out),
            Self::Comparison(comparison) => comparison::json::write(comparison, out),
        }
    }

    /// Writes CSV: of a run a line for each interval, of a campaign one for each run.
    ///
    /// # Errors
    /// What `out` returns, or that the subject has no rows.
    pub fn write_csv(self, out: &mut dyn Write) -> io::Result<()> {
        match self {
            Self::Run(summary) => csv::write(summary, out),
            Self::Campaign(campaign) => csv::write_campaign(campaign, out),
            Self::Runs(_) | Self::Comparison(_) => Err(io::ErrorKind::Unsupported.into()),
        }
    }

    /// Writes a run or a comparison as JUnit XML.
    ///
    /// # Errors
    /// What `out` returns, or that the subject has no test cases.
    pub fn write_junit(self, out: &mut dyn Write) -> io::Result<()> {
        match self {
            Self::Run(summary) => junit::write_run(summary, out),
            Self::Comparison(comparison) => junit::write_comparison(comparison, out),
            Self::Runs(_) | Self::Campaign(_) => Err(io::ErrorKind::Unsupported.into()),
        }
    }

    /// Writes what calls for attention as annotations of GitHub Actions.
    ///
    /// # Errors
    /// What `out` returns.
    pub fn write_annotations(self, out: &mut dyn Write) -> io::Result<()> {
        match self {
            Self::Run(summary) => annotations::write_run(summary, out),
            Self::Runs(runs) => runs.iter().try_for_each(|(_, run)| annotations::write_run(run, out)),
            Self::Campaign(campaign) => annotations::write_campaign(campaign, out),
            Self::Comparison(comparison) => annotations::write_comparison(comparison, out),
        }
    }
}
