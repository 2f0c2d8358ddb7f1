//! What a worker holds of its trace: the blocks that were read for it, and those that it gives back.
//!
//! Not the reading: that is another thread's ([`crate::run::trace_reader`]). Invariant: nothing here waits; where no block is at hand,
//! the session is asked again shortly, and what is due meanwhile keeps its intended time, so that the wait counts as our lateness.

use brunt_workload::session::Session;
use brunt_workload::trace::Block;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// A session that has run out of its trace looks for more after this: a block holds the records of a millisecond at the
/// highest rates, and one look costs a hundred nanoseconds.
const LOOK_AGAIN_NS: u64 = 50_000;

/// A worker's end of its trace.
#[derive(Debug)]
pub(crate) struct TraceFeed {
    pub full: rtrb::Consumer<Block>,
    pub spent: rtrb::Producer<Block>,
    /// Nothing more is wanted: whoever reads must not wait for this worker.
    pub is_sated: Arc<AtomicBool>,
}

/// The feeds of a worker: one for each class of the plan that has a trace.
pub(crate) type Feeds = Vec<Option<TraceFeed>>;

impl TraceFeed {
    /// Lets a session that needs a block have one. Out of line, for most sessions have no trace.
    #[inline(never)]
    pub(crate) fn serve(&mut self, session: &mut Session, now_ns: u64) {
        if session.has_spent_budget() {
            self.is_sated.store(true, Ordering::Relaxed);
            return;
        }
        while session.needs_block() {
            let Ok(block) = self.full.pop() else {
                session.retry_at(now_ns + LOOK_AGAIN_NS);
                return;
            };
            // There are no more blocks than the ring has places.
            let _ = self.spent.push(session.supply_block(block));
        }
    }
}
