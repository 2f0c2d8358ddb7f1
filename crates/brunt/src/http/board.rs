//! What there is to show: put up by the control thread, read by the thread that serves.
//!
//! Invariants: neither waits for the other longer than a pointer takes to copy; a page is written once for whatever stands there, however
//! many ask for it.

use brunt_report::live::{self, LiveRun};
use brunt_report::metrics;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The run at its last whole second, and its result when it has ended.
#[derive(Clone, Debug, Default)]
struct Shown {
    run: Option<Arc<LiveRun>>,
    result: Option<Arc<[u8]>>,
    /// How often something was put up.
    number: u64,
}

/// Where it stands.
#[derive(Debug, Default)]
pub(super) struct Board(Mutex<Shown>);

impl Board {
    /// Puts up something else.
    pub(super) fn put(&self, run: Option<Arc<LiveRun>>, result: Option<Arc<[u8]>>) {
        let mut shown = self.shown();
        *shown = Shown { run, result, number: shown.number + 1 };
    }

    /// Nothing that can panic happens while it is held.
    fn shown(&self) -> MutexGuard<'_, Shown> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A page by its path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Page {
    Metrics,
    Summary,
}

impl Page {
    /// All of them.
    pub(super) const ALL: [Self; 2] = [Self::Metrics, Self::Summary];

    /// Where it is.
    pub(super) const fn path(self) -> &'static str {
        match self {
            Self::Metrics => "/metrics",
            Self::Summary => "/summary.json",
        }
    }

    /// What it is.
    pub(super) const fn content_type(self) -> &'static str {
        match self {
            Self::Metrics => metrics::CONTENT_TYPE,
            Self::Summary => "application/json",
        }
    }

    fn write(self, shown: &Shown) -> Arc<[u8]> {
        match (self, &shown.result) {
            (Self::Metrics, _) => metrics::text(shown.run.as_deref()).into_bytes().into(),
            (Self::Summary, Some(result)) => result.clone(),
            (Self::Summary, None) => {
                let mut text = Vec::new();
                // Memory takes everything, and every key of a plan is text.
                let _ = live::json::write(shown.run.as_deref(), &mut text);
                text.into()
            }
        }
    }
}

/// The pages as they were written last.
#[derive(Debug)]
pub(super) struct Pages {
    board: Arc<Board>,
    /// With the number of what they show.
    written: [Option<(u64, Arc<[u8]>)>; Page::ALL.len()],
}

impl Pages {
    /// Of what stands there.
    pub(super) fn of(board: Arc<Board>) -> Self {
        Self { board, written: Default::default() }
    }

    /// A page of what stands there now.
    pub(super) fn get(&mut self, page: Page) -> Arc<[u8]> {
        let shown = self.board.shown().clone();
        match &self.written[page as usize] {
            Some((number, text)) if *number == shown.number => text.clone(),
            _ => {
                let text = page.write(&shown);
                self.written[page as usize] = Some((shown.number, text.clone()));
                text
            }
        }
    }
}
