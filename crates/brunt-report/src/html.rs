//! A result as one HTML page: everything that the report has, as tables and as charts that a browser draws.
//!
//! Complete without script, in print, and without a network: the page asks for nothing. Its script adds a cursor, zooming, and switches;
//! whatever it shows is in the tables of the page. Invariants: the same summary always gives the same bytes; a page has a bounded size,
//! however long the run; nothing that a user or a server wrote reaches the page but as escaped text.

pub(crate) mod chart;
mod columns;
pub(crate) mod markup;
pub(crate) mod over_time;
pub(crate) mod page;
mod sections;
pub(crate) mod several;
pub(crate) mod spectrum;

pub use several::RESULTS_MAX;

use crate::live::State;
use crate::run_document::head;
use brunt_plan::phase::Phase;
use brunt_stats::live_run::RunSoFar;
use brunt_stats::summary::Summary;
use columns::Columns;
use markup::Markup;
use page::Page;
use std::io::{self, Write};

/// A result of more bytes, which one of a thousand servers has, is not kept in its page.
const RESULT_BYTES_MAX: usize = 80_000;
/// Sections and result together, where rows are not as many as the user wants: with style and script they are the page.
const CONTENT_BYTES_MAX: usize = 224_000;
/// Columns over time of a run that goes on: fewer than a result has, as they are sent once a second.
const LIVE_COLUMNS_MAX: u64 = 100;
/// Leads from the status to all checks.
const LINK_TO_CHECKS: &str = "<p><a href=\"#checks\">All checks</a></p>\n";

/// Writes the page of a run.
///
/// # Errors
/// What `out` returns.
pub fn write(summary: &Summary, out: &mut dyn Write) -> io::Result<()> {
    let mut markup = Markup::default();
    sections::head(&mut markup, summary);
    sections::answer(&mut markup, summary, LINK_TO_CHECKS);
    sections::latency(&mut markup, summary);
    spectrum::section(&mut markup, &[("", summary)]);
    over_time::section(&mut markup, summary, Columns::max_of(summary));
    spectrum::by_op(&mut markup, summary);
    sections::events(&mut markup, summary);
    sections::accounting(&mut markup, summary);
    sections::environment(&mut markup, summary);
    let mut result = page::packed(&crate::json::line_without_record(summary)?);
    let sections = markup.into_text();
    let is_long = summary.record.plan.interval.is_none() && sections.len() + result.len() > CONTENT_BYTES_MAX;
    if is_long || result.len() > RESULT_BYTES_MAX {
        result.clear();
    }
    let title = summary.status.headline();
    let foot = format!("{title} · seed {}", summary.record.plan.seed);
    Page { title, foot, sections, result, is_live: false }.write(out)
}

/// The page of a run while it goes on: the sections of its result's page that can be drawn already, made by the same code. The result's page
/// takes its place in the end; what is said of the run so far is called so.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LivePage(Page);

impl LivePage {
    /// Of a run, or that none has begun. The label says which run of its command it is; it may be empty.
    pub fn of(state: State<'_>, label: &str) -> Self {
        let (title, summary) = (live_title(state, label), state.so_far().map(RunSoFar::summary));
        let mut markup = Markup::default();
        let facts = summary.map(head::load_lines).unwrap_or_default();
        page::header(&mut markup, None, &title, &facts);
        if let Some(summary) = summary {
            if summary.total.latency.response.summary.count > 0 {
                sections::answer(&mut markup, summary, "");
                sections::latency(&mut markup, summary);
                spectrum::section(&mut markup, &[("", summary)]);
            }
            if summary.window.drained_ns > summary.window.start_ns {
                over_time::section(&mut markup, summary, LIVE_COLUMNS_MAX);
            }
            spectrum::by_op(&mut markup, summary);
            sections::events(&mut markup, summary);
        }
        let (foot, sections) = (title.clone(), markup.into_text());
        Self(Page { title, foot, sections, result: String::new(), is_live: true })
    }

    /// Writes the whole page.
    ///
    /// # Errors
    /// What `out` returns.
    pub fn write(&self, out: &mut dyn Write) -> io::Result<()> {
        self.0.write(out)
    }

    /// What of it changes.
    pub fn changing_part(&self) -> String {
        self.0.changing_part()
    }
}

/// `running: measure, 34 of 60 s, so far OK: p50 to p99 may be quoted.`.
fn live_title(state: State<'_>, label: &str) -> String {
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
