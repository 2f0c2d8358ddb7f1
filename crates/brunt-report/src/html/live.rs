//! The page of a run while it goes on: the sections of a result's page that can be drawn already.
//!
//! Not the result's page, which takes its place in the end. Invariant: what is said of the run so far is called so; sections are those of a
//! result, made by the same code.

use super::document::{self, Standing};
use super::markup::Markup;
use super::{by_op, latency, over_time, sections, spectrum};
use crate::live::{LiveRun, State};
use crate::run_document::head;
use brunt_plan::phase::Phase;
use brunt_stats::summary::Summary;
use std::io::{self, Write};

/// Fewer than a result has: they are sent once a second.
const COLUMNS_MAX: u64 = 100;

/// The title and the sections of a page.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LivePage {
    title: String,
    sections: String,
}

impl LivePage {
    /// Of a run, or that none has begun, and of what it has come to so far.
    pub fn of(run: Option<&LiveRun>, summary: Option<&Summary>) -> Self {
        let title = title(run, summary);
        let mut markup = Markup::default();
        let facts = summary.map(head::load_lines).unwrap_or_default();
        document::header(&mut markup, Standing::Neutral, &title, &facts);
        if let Some(summary) = summary {
            if summary.total.latency.response.summary.count > 0 {
                sections::answer(&mut markup, summary);
                latency::section(&mut markup, summary);
                spectrum::section(&mut markup, summary);
            }
            if summary.window.drained_ns > summary.window.start_ns {
                over_time::section(&mut markup, summary, COLUMNS_MAX);
            }
            by_op::section(&mut markup, summary);
            sections::events(&mut markup, summary);
        }
        Self { title, sections: markup.into_text() }
    }

    /// Writes the whole page.
    ///
    /// # Errors
    /// What `out` returns.
    pub fn write(&self, out: &mut dyn Write) -> io::Result<()> {
        document::write_live(&self.title, &self.sections, out)
    }

    /// What of it changes.
    pub fn changing_part(&self) -> String {
        document::sections(&self.title, &self.sections)
    }
}

/// `running: measure, 34 of 60 s, so far OK: p50 to p99 may be quoted.`.
fn title(run: Option<&LiveRun>, summary: Option<&Summary>) -> String {
    let Some(run) = run else { return "no run has begun".to_owned() };
    let place = &run.header.place;
    let label = if place.label.is_empty() { String::new() } else { format!("{}: ", place.label) };
    let phase = match run.state {
        State::Failed => return format!("{label}no result: the run failed"),
        State::Starting | State::Ended => "ended".to_owned(),
        State::Running(phase @ (Phase::Warmup | Phase::Measure)) => format!("{}{}", phase.name(), times(run)),
        State::Running(phase) => phase.name().to_owned(),
    };
    let measured = summary.filter(|summary| summary.total.latency.response.summary.count > 0);
    let so_far =
        measured.map(|summary| format!(", so far {}", summary.status.headline())).unwrap_or_default();
    format!("{label}running: {phase}{so_far}")
}

/// How long the phase has lasted, of how long where that is known.
fn times(run: &LiveRun) -> String {
    let Some(window) = run.window else { return String::new() };
    let (from_ns, end_ns) = match run.at_ns < window.measure_ns {
        true => (window.start_ns, window.measure_ns),
        false => (window.measure_ns, window.end_ns),
    };
    let seconds = |ns: u64| format!("{:.0}", ns as f64 / 1e9);
    let elapsed = seconds(run.at_ns.saturating_sub(from_ns));
    match end_ns {
        u64::MAX => format!(", {elapsed} s"),
        end_ns => format!(", {elapsed} of {} s", seconds(end_ns - from_ns)),
    }
}
