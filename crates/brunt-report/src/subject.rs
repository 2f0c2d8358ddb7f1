//! What a report is about: a run, several, a campaign or a comparison, with every medium in which it can be written.
//!
//! Invariant: text, page and Markdown have the blocks of one document.

use crate::assertion_text::{AssertionText, unmet};
use crate::campaign::{self, Campaign, CampaignQuestion};
use crate::comparison::{self, AssertionRow, Comparison};
use crate::document::{Document, Level};
use crate::file_type::{FileForm, FileType, Medium, SubjectKind};
use crate::layout::Layout;
use crate::run_document::{self, OpRows};
use crate::{annotations, csv, hdr_histogram, html, json, junit, markdown, ndjson};
use brunt_stats::assertion::Assertion;
use brunt_stats::capacity::Capacity;
use brunt_stats::status::RunStatus;
use brunt_stats::summary::Summary;
use std::io::{self, Write};
use std::iter;

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

    /// Why a command ends with 3 or 4, in the words of its report, for where none is printed: assertions that fail or are undecided, and
    /// what is INVALID.
    pub fn unmet(self) -> Vec<String> {
        let of = |assertions: &[Assertion], status: &RunStatus, is_said: bool| {
            let found = status.findings().into_iter();
            let found = found.map(|check| format!("{}: {}", check.id.name(), check.text()));
            let said = iter::once(status.headline()).chain(found).filter(|_| is_said);
            unmet(assertions.iter().map(AssertionText::of)).into_iter().chain(said).collect()
        };
        match self {
            Self::Run(run) => of(&run.assertions, &run.status, run.status.is_invalid()),
            Self::Runs(runs) => {
                let lines = runs
                    .iter()
                    .flat_map(|(name, run)| Subject::Run(run).unmet().into_iter().zip(iter::repeat(name)));
                lines.map(|(line, name)| format!("{name}: {line}")).collect()
            }
            Self::Campaign(Campaign { question, assertions, status, .. }) => {
                let is_below = matches!(question.capacity(), Some(Capacity::Below { .. }));
                of(assertions, status, is_below || status.is_invalid())
            }
            Self::Comparison(comparison) => {
                let answer = comparison::document::answer(comparison).into_iter();
                let answer = answer.filter(|_| !comparison.has_conclusion());
                unmet(comparison.asserted.iter().map(AssertionRow::text)).into_iter().chain(answer).collect()
            }
        }
    }

    /// What it is.
    pub const fn kind(self) -> SubjectKind {
        match self {
            Self::Run(_) => SubjectKind::Run,
            Self::Runs(_) => SubjectKind::Runs,
            Self::Campaign(Campaign { question: CampaignQuestion::Repeat { .. }, .. }) => SubjectKind::Repeat,
            Self::Campaign(_) => SubjectKind::Scan,
            Self::Comparison(_) => SubjectKind::Comparison,
        }
    }

    /// Writes it as a file of this form.
    ///
    /// # Errors
    /// What `out` returns, or why the subject is not written so.
    pub fn write(self, form: FileForm, out: &mut dyn Write) -> io::Result<()> {
        use FileType::{Csv, Hlog, Html, Json, Junit, Markdown, Ndjson, Samples, Spectrum};
        let file_type = form.of(self.kind());
        if form.medium != Medium::Text {
            return self.figure(file_type, form.style).map_err(io::Error::other)?.write(form.medium, out);
        }
        match (file_type, self) {
            (Json, Self::Run(summary)) => json::write(summary, out),
            (Json, Self::Campaign(campaign)) => campaign::json::write(campaign, out),
            (Json, Self::Comparison(comparison)) => comparison::json::write(comparison, out),
            (Html, Self::Run(summary)) => html::write(summary, out),
            (Html, Self::Runs(runs)) => html::several::write(runs, out),
            (Html, Self::Campaign(campaign)) => campaign::html::write(campaign, out),
            (Html, Self::Comparison(comparison)) => comparison::html::write(comparison, out),
            (Csv, Self::Run(summary)) => csv::write(summary, out),
            (Csv, Self::Campaign(campaign)) => csv::write_campaign(campaign, out),
            (Ndjson, Self::Run(summary)) => ndjson::write(summary, out),
            (Samples, Self::Run(summary)) => csv::write_samples(summary, out),
            (Hlog, Self::Run(summary)) => hdr_histogram::write(summary, out),
            (Spectrum, Self::Run(summary)) => hdr_histogram::write_percentiles(summary, out),
            (Junit, Self::Run(summary)) => junit::write_run(summary, out),
            (Junit, Self::Comparison(comparison)) => junit::write_comparison(comparison, out),
            (Markdown, Self::Runs(runs)) => {
                runs.iter().try_for_each(|(_, run)| markdown::write_run(run, out))
            }
            (Markdown, Self::Run(summary)) => markdown::write_run(summary, out),
            (Markdown, _) => {
                let document = self.document(&Layout::default(), Level::Short).unwrap_or_default();
                out.write_all(markdown::blocks(&document).as_bytes())
            }
            _ => Err(io::ErrorKind::Unsupported.into()),
        }
    }

    /// Writes what calls for attention, as annotations of GitHub Actions.
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
