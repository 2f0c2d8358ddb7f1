//! How late the latest request of a server's busy period was: the largest client lag of any request to the server since it last had
//! none outstanding.
//!
//! Not a latency of its own and not a judgement: `brunt-stats` turns it into the lower bound of a response time
//! (docs/measurement.md, "Bounds"). Requests that were sent late come in a bunch and then queue in the server; no request of
//! that busy period leaves later by more than the largest lag in it. The workers of a run share one word for each server, because a
//! server queues requests of all of them. Invariant: a busy period ends when no connection of any worker has a request out to the
//! server, and not before.

use brunt_stats::sample::Times;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// The lower bits of a word hold the lag in nanoseconds, which is 78 hours at most; those above count workers.
const LAG_BITS: u32 = 48;
const LAG_MAX_NS: u64 = (1 << LAG_BITS) - 1;
const ONE_WORKER: u64 = 1 << LAG_BITS;

/// The busy period of one server: how many workers have requests out, and the largest lag since the first of them did.
///
/// In cache lines of its own: it is written whenever a worker has its first request out or its last one in.
#[derive(Debug, Default)]
#[repr(align(128))]
struct Word(AtomicU64);

/// The busy periods of all servers of a run, shared by its workers.
#[derive(Debug)]
pub(crate) struct BusyBoard(Box<[Word]>);

impl BusyBoard {
    /// For this many servers, all of them idle.
    pub(crate) fn new(servers: usize) -> Self {
        Self((0..servers).map(|_| Word::default()).collect())
    }
}

/// One worker's view of the busy periods.
#[derive(Debug)]
pub(crate) struct BusyPeriods {
    /// `None` where no class is open loop: only there is the lag of other requests asked for.
    board: Option<Arc<BusyBoard>>,
    /// How many connections of this worker have requests out, by server.
    connections: Vec<u32>,
}

impl BusyPeriods {
    /// Of a worker with no request out.
    pub(crate) fn new(board: Option<Arc<BusyBoard>>) -> Self {
        let servers = board.as_ref().map_or(0, |board| board.0.len());
        Self { board, connections: vec![0; servers] }
    }

    /// A request goes to a server, so late by its [`Times::client_lag_ns`]. `is_first`: none was out on its connection.
    #[inline]
    pub(crate) fn enter(&mut self, server: u16, is_first: bool, late_ns: u64) {
        let Some(board) = &self.board else { return };
        let word = &board.0[usize::from(server)].0;
        if is_first {
            let connections = &mut self.connections[usize::from(server)];
            *connections += 1;
            if *connections == 1 {
                // Nobody out: what an earlier busy period left behind is over with it.
                let begin = |word: u64| Some(if word < ONE_WORKER { ONE_WORKER } else { word + ONE_WORKER });
                let _ = word.fetch_update(Ordering::AcqRel, Ordering::Acquire, begin);
            }
        }
        raise(word, late_ns);
    }

    /// The same of a request that was picked at this time.
    #[inline]
    pub(crate) fn enter_picked(&mut self, server: u16, is_first: bool, intended_ns: u64, picked_ns: u64) {
        let times = Times { intended_ns, picked_ns, ..Times::default() };
        self.enter(server, is_first, times.client_lag_ns());
    }

    /// The client delayed a request to a server that is busy by so much in another way.
    #[inline]
    pub(crate) fn note(&self, server: u16, late_ns: u64) {
        if let Some(board) = &self.board {
            raise(&board.0[usize::from(server)].0, late_ns);
        }
    }

    /// The last request that was out on a connection to a server has ended.
    #[inline]
    pub(crate) fn leave(&mut self, server: u16) {
        let Some(board) = &self.board else { return };
        let connections = &mut self.connections[usize::from(server)];
        *connections -= 1;
        if *connections == 0 {
            board.0[usize::from(server)].0.fetch_sub(ONE_WORKER, Ordering::AcqRel);
        }
    }

    /// The largest lag of the busy period, or of the one that just ended, in nanoseconds; `None` where it is not kept.
    #[inline]
    pub(crate) fn lag_ns(&self, server: u16) -> Option<u64> {
        let board = self.board.as_ref()?;
        Some(board.0[usize::from(server)].0.load(Ordering::Acquire) & LAG_MAX_NS)
    }

    /// Has this worker no request out?
    pub(crate) fn is_idle(&self) -> bool {
        self.connections.iter().all(|connections| *connections == 0)
    }
}

/// Raises the lag of a busy period to at least `late_ns`.
#[inline]
fn raise(word: &AtomicU64, late_ns: u64) {
    let late_ns = late_ns.min(LAG_MAX_NS);
    if late_ns > word.load(Ordering::Acquire) & LAG_MAX_NS {
        let higher = |word: u64| (late_ns > word & LAG_MAX_NS).then_some((word & !LAG_MAX_NS) | late_ns);
        let _ = word.fetch_update(Ordering::AcqRel, Ordering::Acquire, higher);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What happens to two workers and two servers, one event after the other, and the lag of the server then.
    enum Event {
        /// Worker, server, first on its connection, late.
        Enter(usize, u16, bool, u64),
        /// Worker, server.
        Leave(usize, u16),
        /// Worker, server, late.
        Note(usize, u16, u64),
    }
    use Event::{Enter, Leave, Note};

    #[test]
    fn the_largest_lag_since_the_server_was_idle() {
        let board = Arc::new(BusyBoard::new(2));
        let mut workers = [BusyPeriods::new(Some(board.clone())), BusyPeriods::new(Some(board))];
        let table = [
            (Enter(0, 0, true, 5), 5),
            (Enter(0, 0, false, 3), 5),
            (Enter(1, 0, true, 9), 9),
            // Another server is another queue.
            (Enter(1, 1, true, 70), 70),
            (Leave(1, 0), 9),
            (Enter(0, 0, true, 0), 9),
            (Note(0, 0, 11), 11),
            (Leave(0, 0), 11),
            // The last connection of the last worker: the next request begins anew.
            (Leave(0, 0), 11),
            (Enter(1, 0, true, 1), 1),
            (Note(1, 1, 4), 70),
            (Enter(0, 1, true, LAG_MAX_NS + 5), LAG_MAX_NS),
        ];
        for (step, (event, expected_ns)) in table.into_iter().enumerate() {
            let (worker, server) = match event {
                Enter(worker, server, is_first, late_ns) => {
                    workers[worker].enter(server, is_first, late_ns);
                    (worker, server)
                }
                Leave(worker, server) => {
                    workers[worker].leave(server);
                    (worker, server)
                }
                Note(worker, server, late_ns) => {
                    workers[worker].note(server, late_ns);
                    (worker, server)
                }
            };
            assert_eq!(workers[worker].lag_ns(server), Some(expected_ns), "step {step}");
        }
    }

    #[test]
    fn nothing_is_kept_without_an_open_loop() {
        let mut periods = BusyPeriods::new(None);
        periods.enter(3, true, 5);
        periods.note(3, 7);
        periods.leave(3);
        assert_eq!(periods.lag_ns(3), None);
    }
}
