//! The page of a run while it goes on: the sections of a result's page that can be drawn already.
//!
//! Not the result's page, which takes its place in the end. Invariant: what is said of the run so far is called so; sections are those of a
//! result, made by the same code.

use super::document::{self, Standing};
use super::markup::Markup;
use super::{by_op, latency, over_time, sections, spectrum};
use crate::live::State;
use crate::run_document::head;
use brunt_plan::phase::Phase;
use brunt_stats::live_run::RunSoFar;
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
    /// Of a run, or that none has begun. The label says which run of its command it is; it may be empty.
    pub fn of(state: State<'_>, label: &str) -> Self {
        let (title, summary) = (title(state, label), state.so_far().map(RunSoFar::summary));
        let mut markup = Markup::default();
        let facts = summary.map(head::load_lines).unwrap_or_default();
        document::header(&mut markup, Standing::Neutral, &title, &facts);
        if let Some(summary) = summary {
            if summary.total.latency.response.summary.count > 0 {
                sections::answer(&mut markup, summary, "");
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
fn title(state: State<'_>, label: &str) -> String {
    let label = if label.is_empty() { String::new() } else { format!("{label}: ") };
    match state {
        State::Starting => "no run has begun".to_owned(),
        State::Failed(_) => format!("{label}no result: the run failed"),
        State::Running(so_far) => {
            let is_measured = |summary: &&Summary| summary.total.latency.response.summary.count > 0;
            let measured = Some(so_far.summary()).filter(is_measured);
            let status = measured.map(|summary| format!(", so far {}", summary.status.headline()));
            let (phase, times, status) = (so_far.phase.name(), times(so_far), status.unwrap_or_default());
            format!("{label}running: {phase}{times}{status}")
        }
    }
}

/// How long warm-up or window have lasted, of how long where that is known.
fn times(so_far: &RunSoFar) -> String {
    let Some(window) = so_far.window else { return String::new() };
    let (from_ns, end_ns) = match so_far.phase {
        Phase::Warmup => (window.start_ns, window.measure_ns),
        Phase::Measure => (window.measure_ns, window.end_ns),
        _ => return String::new(),
    };
    let seconds = |ns: u64| format!("{:.0}", ns as f64 / 1e9);
    let elapsed = seconds(so_far.at_ns.saturating_sub(from_ns));
    match end_ns {
        u64::MAX => format!(", {elapsed} s"),
        end_ns => format!(", {elapsed} of {} s", seconds(end_ns - from_ns)),
    }
}
