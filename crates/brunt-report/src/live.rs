//! A run while it goes on, as reports have it: how far it is, and what it has come to. [`crate::metrics`] writes that for scrapers, [`json`]
//! for programs, [`crate::html::Page::live`] for browsers. Beside it the [`Lines`] that are written as its periods end.
//!
//! Invariant: page, metrics and JSON are functions of one [`State`]. A run that has ended has none: its page and its JSON are those of its
//! result.

pub mod json;

use brunt_plan::phase::Phase;
use brunt_stats::live_run::RunSoFar;
use brunt_stats::observer::Period;
use brunt_stats::server_stats::Snapshot;
use brunt_stats::summary::Summary;
use brunt_stats::window::RunTimes;
use std::io::{self, Write};

/// How far a run is.
#[derive(Clone, Copy, Debug)]
pub enum State<'a> {
    /// No run has begun.
    Starting,
    /// It goes on.
    Running(&'a RunSoFar),
    /// It failed.
    Failed(&'a RunSoFar),
}

impl<'a> State<'a> {
    /// Every name.
    pub(crate) const NAMES: [&'static str; Phase::COUNT + 2] = [
        "starting",
        Phase::Connect.name(),
        Phase::Preload.name(),
        Phase::Warmup.name(),
        Phase::Measure.name(),
        Phase::Drain.name(),
        "failed",
    ];

    /// As a value in JSON and in labels.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Starting => "starting",
            Self::Running(so_far) => so_far.phase.name(),
            Self::Failed(_) => "failed",
        }
    }

    /// The run at the end of its last second.
    pub(crate) const fn so_far(self) -> Option<&'a RunSoFar> {
        match self {
            Self::Running(so_far) | Self::Failed(so_far) => Some(so_far),
            Self::Starting => None,
        }
    }
}

/// Lines that are written while a run goes on.
pub trait Lines {
    /// The schedule has its times; they may be told again.
    fn start(&mut self, times: &RunTimes);

    /// A server told its stats.
    fn push_stats(&mut self, _server: usize, _snapshot: &Snapshot) {}

    /// Writes what there is to write when a period is over.
    ///
    /// # Errors
    /// What `out` returns.
    fn write_period(&mut self, period: &Period, out: &mut dyn Write) -> io::Result<()>;

    /// Writes the rest of a run that has ended.
    ///
    /// # Errors
    /// What `out` returns.
    fn write_rest(&mut self, summary: &Summary, out: &mut dyn Write) -> io::Result<()>;
}
