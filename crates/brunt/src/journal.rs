//! `--journal`: a run's intervals, written as they come.
//!
//! Not the format (that is `brunt-report`'s) and not the file (that is [`crate::line_stream`]'s). Invariant: an interval is handed to the
//! writing thread before the next one is looked at.

use crate::line_stream::LineQueue;
use brunt_report::journal;
use brunt_stats::observer::{Event, Observer};

/// Makes the entries.
pub(crate) struct JournalObserver {
    queue: LineQueue,
    has_begun: bool,
}

impl JournalObserver {
    pub(crate) const fn new(queue: LineQueue) -> Self {
        Self { queue, has_begun: false }
    }
}

impl Observer for JournalObserver {
    fn is_live(&self) -> bool {
        true
    }

    fn observe(&mut self, event: &Event<'_>) {
        let entry = match event {
            // The first tells what is known beforehand.
            Event::Live { now_ns, run, recorded, .. } if !self.has_begun => {
                self.has_begun = true;
                journal::begin(&run.so_far(*now_ns, recorded))
            }
            Event::Started(times) => journal::times(*times),
            Event::Interval(interval) => journal::interval(interval),
            Event::Ended { summary: Some(summary) } => journal::end(summary),
            _ => return,
        };
        // Memory takes everything, and numbers can be written.
        self.queue.send(entry.unwrap_or_default());
    }
}
