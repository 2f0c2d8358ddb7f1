//! A worker's end of its trace: blocks of records that were read, and spent ones.
//!
//! [`crate::run::trace_reader`] fills the blocks on its own thread. Invariant: nothing here waits; without a block
//! the session is asked again shortly, and due operations keep their intended time, so that the wait counts as the
//! client's delay.

use brunt_workload::session::Session;
use brunt_workload::trace::Block;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Pause until a session without records tries again: a block holds a millisecond of records at the highest rates,
/// and a try costs a hundred nanoseconds.
const LOOK_AGAIN_NS: u64 = 50_000;

/// A worker's end of its trace.
#[derive(Debug)]
pub(crate) struct TraceFeed {
    pub full: rtrb::Consumer<Block>,
    pub spent: rtrb::Producer<Block>,
    /// No more records are wanted: the reader must not wait for this worker.
    pub is_sated: Arc<AtomicBool>,
}

/// The feeds of a worker, one per class with a trace.
pub(crate) type Feeds = Vec<Option<TraceFeed>>;

impl TraceFeed {
    /// Gives a block to a session that needs one. Not inlined, because most sessions have no trace.
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
            // The ring has room for all blocks.
            let _ = self.spent.push(session.supply_block(block));
        }
    }
}
