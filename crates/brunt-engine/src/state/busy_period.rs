//! How much the client delayed a server's busy period: the largest client lag of any request to the server since it last had none
//! outstanding, nor any waiting for a connection, and the longest time that handing requests over took since then.
//!
//! Not a latency of its own and not a judgement: `brunt-stats` turns it into the lower bound of a response time
//! (docs/measurement.md, "Bounds"). Requests that were sent late come in a bunch and then queue in the server; no request of
//! that busy period leaves later by more than the largest lag in it. Requests that wait for a connection are sent when a reply is read,
//! and late where that lay unread: server and queue are one busy period, in which such delays follow each other and add up. The
//! workers of a run share one word for each server, because a server queues requests of all of them. Invariant: a busy period ends when
//! no connection of any worker has a request out to the server and no queue of any worker holds one for it, and not before.

use brunt_stats::sample::Times;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// The lower bits of a word hold the lag in nanoseconds, which is 78 hours at most; those above count workers.
const LAG_BITS: u32 = 48;
const LAG_MAX_NS: u64 = (1 << LAG_BITS) - 1;
const ONE_WORKER: u64 = 1 << LAG_BITS;

/// The busy period of one server.
///
/// In cache lines of its own: it is written whenever a worker has its first request out or its last one in.
#[derive(Debug, Default)]
#[repr(align(128))]
struct Period {
    /// How many workers have requests out or waiting, and the largest lag since the first of them had.
    word: AtomicU64,
    /// The longest time from when a worker queued requests until it had handed them over, since then.
    handing_over_ns: AtomicU64,
}

/// The busy periods of all servers of a run, shared by its workers.
#[derive(Debug)]
pub(crate) struct SharedBusyPeriods(Box<[Period]>);

impl SharedBusyPeriods {
    /// For this many servers, all of them idle. When a server has done with a noreply request is not known: with such requests a busy
    /// period ends with the run.
    pub(crate) fn new(servers: usize, is_endless: bool) -> Self {
        let word = || AtomicU64::new(if is_endless { ONE_WORKER } else { 0 });
        Self((0..servers).map(|_| Period { word: word(), ..Period::default() }).collect())
    }
}

/// What one worker asks of a server.
#[derive(Clone, Copy, Debug, Default)]
struct ServerLoad {
    /// How many of its connections have requests out.
    connections: u32,
    /// How many of its queues hold requests.
    queues: u32,
    unread: Unread,
}

/// A time in which replies lay unread while requests waited.
#[derive(Clone, Copy, Debug, Default)]
struct Unread {
    start_ns: u64,
    end_ns: u64,
    /// The lag of the busy period before it.
    lag_ns: u64,
}

/// One worker's view of the busy periods.
#[derive(Debug)]
pub(crate) struct BusyPeriods {
    /// `None` where no class is open loop: only there is the lag of other requests asked for.
    board: Option<Arc<SharedBusyPeriods>>,
    /// By server.
    load: Vec<ServerLoad>,
}

impl BusyPeriods {
    /// Of a worker with no request out.
    pub(crate) fn new(board: Option<Arc<SharedBusyPeriods>>) -> Self {
        let servers = board.as_ref().map_or(0, |board| board.0.len());
        Self { board, load: vec![ServerLoad::default(); servers] }
    }

    /// Is the lag of busy periods kept at all?
    #[inline]
    pub(crate) fn is_kept(&self) -> bool {
        self.board.is_some()
    }

    /// A request goes to a server, so late by its [`Times::client_lag_ns`]. `is_first`: none was out on its connection. Beside the
    /// path of a closed loop, which must not pay for it.
    #[inline(never)]
    fn enter(&mut self, server: u16, is_first: bool, late_ns: u64) {
        let Some(board) = &self.board else { return };
        let period = &board.0[usize::from(server)];
        if is_first {
            let load = &mut self.load[usize::from(server)];
            begin(period, load);
            load.connections += 1;
        }
        raise(&period.word, late_ns);
    }

    /// Requests to a server were queued at one instant, and their last byte was handed over at another: they are late by so much more than
    /// when they were picked.
    #[inline]
    pub(crate) fn note_handed_over(&mut self, server: u16, queued_ns: u64, sent_ns: u64) {
        let Some(board) = &self.board else { return };
        let handing_over_ns = &board.0[usize::from(server)].handing_over_ns;
        let took_ns = sent_ns.saturating_sub(queued_ns);
        if took_ns > handing_over_ns.load(Ordering::Relaxed) {
            handing_over_ns.fetch_max(took_ns, Ordering::Relaxed);
        }
    }

    /// The same of a request that was picked at this time.
    #[inline]
    pub(crate) fn enter_picked(&mut self, server: u16, is_first: bool, intended_ns: u64, picked_ns: u64) {
        if self.is_kept() {
            let times = Times { intended_ns, picked_ns, ..Times::default() };
            self.enter(server, is_first, times.client_lag_ns());
        }
    }

    /// The last request that was out on a connection to a server has ended.
    #[inline]
    pub(crate) fn leave(&mut self, server: u16) {
        let Some(board) = &self.board else { return };
        let load = &mut self.load[usize::from(server)];
        load.connections -= 1;
        end(&board.0[usize::from(server)].word, load);
    }

    /// Requests to a server wait in a queue that was empty.
    pub(crate) fn begin_waiting(&mut self, server: u16) {
        let Some(board) = &self.board else { return };
        let load = &mut self.load[usize::from(server)];
        begin(&board.0[usize::from(server)], load);
        load.queues += 1;
    }

    /// Such a queue is empty again.
    pub(crate) fn end_waiting(&mut self, server: u16) {
        let Some(board) = &self.board else { return };
        let load = &mut self.load[usize::from(server)];
        load.queues -= 1;
        end(&board.0[usize::from(server)].word, load);
    }

    /// A reply that was read at `read_ns` may have lain there since `since_ns`, while other requests waited for a connection: they are sent
    /// later by at most so much than without that. Where nothing is out any more, the server had nothing to do meanwhile, and that
    /// comes on top of what it was late before; else it had, and is not later than by the longest such time.
    #[inline]
    pub(crate) fn note_unread(&mut self, server: u16, since_ns: u64, read_ns: u64) {
        let Some(board) = &self.board else { return };
        if since_ns >= read_ns {
            return;
        }
        let (word, load) = (&board.0[usize::from(server)].word, &mut self.load[usize::from(server)]);
        let unread = &mut load.unread;
        if since_ns >= unread.end_ns {
            let lag_ns = word.load(Ordering::Acquire) & LAG_MAX_NS;
            *unread = Unread { start_ns: since_ns, end_ns: read_ns, lag_ns };
        }
        unread.start_ns = unread.start_ns.min(since_ns);
        unread.end_ns = unread.end_ns.max(read_ns);
        let late_ns = match load.connections {
            0 => unread.lag_ns.saturating_add(read_ns - unread.start_ns),
            _ => read_ns - since_ns,
        };
        raise(word, late_ns);
    }

    /// By how much the client delayed the busy period, or the one that just ended, in nanoseconds; `None` where it is not kept.
    #[inline]
    pub(crate) fn lag_ns(&self, server: u16) -> Option<u64> {
        let board = self.board.as_ref()?;
        let period = &board.0[usize::from(server)];
        let lag_ns = period.word.load(Ordering::Acquire) & LAG_MAX_NS;
        Some(lag_ns + period.handing_over_ns.load(Ordering::Relaxed))
    }

    /// Has this worker no request out, and none waiting?
    pub(crate) fn is_idle(&self) -> bool {
        self.load.iter().all(|load| load.connections + load.queues == 0)
    }
}

/// A worker is about to ask a server more: if that is the first, it takes part in the busy period.
#[inline]
fn begin(period: &Period, load: &ServerLoad) {
    if load.connections + load.queues == 0 {
        // The server was idle: what was late in an earlier busy period does not count in this one.
        if period.word.load(Ordering::Acquire) < ONE_WORKER {
            period.handing_over_ns.store(0, Ordering::Relaxed);
        }
        let begin = |word: u64| Some(if word < ONE_WORKER { ONE_WORKER } else { word + ONE_WORKER });
        let _ = period.word.fetch_update(Ordering::AcqRel, Ordering::Acquire, begin);
    }
}

/// A worker asks a server less: if that was the last, it has no part in the busy period any more.
#[inline]
fn end(word: &AtomicU64, load: &ServerLoad) {
    if load.connections + load.queues == 0 {
        word.fetch_sub(ONE_WORKER, Ordering::AcqRel);
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
        /// Worker, server.
        Wait(usize, u16),
        /// Worker, server.
        WaitNoMore(usize, u16),
        /// Worker, server, since when a reply lay there, when it was read.
        Unread(usize, u16, u64, u64),
        /// Worker, server, when requests were queued, when they were handed over.
        HandOver(usize, u16, u64, u64),
    }
    use Event::{Enter, HandOver, Leave, Unread, Wait, WaitNoMore};

    #[test]
    fn the_largest_lag_since_the_server_was_idle() {
        let board = Arc::new(SharedBusyPeriods::new(2, false));
        let mut workers = [BusyPeriods::new(Some(board.clone())), BusyPeriods::new(Some(board))];
        let table = [
            (Enter(0, 0, true, 5), 5),
            (Enter(0, 0, false, 3), 5),
            (Enter(1, 0, true, 9), 9),
            // Another server is another queue.
            (Enter(1, 1, true, 70), 70),
            (Leave(1, 0), 9),
            (Enter(0, 0, true, 0), 9),
            // Something is out on another connection.
            (Unread(0, 0, 100, 111), 11),
            (Leave(0, 0), 11),
            // The last connection of the last worker: the next request begins anew.
            (Leave(0, 0), 11),
            (Enter(1, 0, true, 1), 1),
            (Unread(1, 1, 200, 204), 70),
            (Enter(0, 1, true, LAG_MAX_NS + 5), LAG_MAX_NS),
            // Requests wait: it goes on when the last one that is out has ended, and what lay unread then adds up.
            (Wait(1, 0), 1),
            (Leave(1, 0), 1),
            (Unread(1, 0, 300, 305), 6),
            (Enter(1, 0, true, 2), 6),
            (Leave(1, 0), 6),
            (Unread(1, 0, 310, 317), 13),
            // Replies to several connections lay there at the same time.
            (Unread(1, 0, 308, 318), 16),
            (Enter(1, 0, true, 0), 16),
            (WaitNoMore(1, 0), 16),
            (Leave(1, 0), 16),
            (Wait(0, 0), 0),
            (WaitNoMore(0, 0), 0),
            (Enter(0, 0, true, 3), 3),
            // What handing over takes comes on top: the longest of all workers, once.
            (HandOver(0, 0, 400, 407), 10),
            (Enter(1, 0, true, 2), 10),
            (HandOver(1, 0, 410, 414), 10),
            (HandOver(1, 0, 420, 429), 12),
            (HandOver(1, 0, 440, 430), 12),
            (Leave(0, 0), 12),
            (Leave(1, 0), 12),
            (Enter(0, 0, true, 1), 1),
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
                Wait(worker, server) => {
                    workers[worker].begin_waiting(server);
                    (worker, server)
                }
                WaitNoMore(worker, server) => {
                    workers[worker].end_waiting(server);
                    (worker, server)
                }
                HandOver(worker, server, queued_ns, sent_ns) => {
                    workers[worker].note_handed_over(server, queued_ns, sent_ns);
                    (worker, server)
                }
                Unread(worker, server, since_ns, read_ns) => {
                    workers[worker].note_unread(server, since_ns, read_ns);
                    (worker, server)
                }
            };
            assert_eq!(workers[worker].lag_ns(server), Some(expected_ns), "step {step}");
        }
    }

    #[test]
    fn an_endless_period_keeps_its_lag() {
        let mut periods = BusyPeriods::new(Some(Arc::new(SharedBusyPeriods::new(1, true))));
        for (late_ns, expected_ns) in [(5, 5), (3, 5), (9, 9), (0, 9)] {
            periods.enter(0, true, late_ns);
            periods.leave(0);
            assert_eq!(periods.lag_ns(0), Some(expected_ns));
        }
    }

    #[test]
    fn lags_are_not_kept_without_an_open_loop() {
        let mut periods = BusyPeriods::new(None);
        periods.enter(3, true, 5);
        periods.begin_waiting(3);
        periods.note_unread(3, 0, 7);
        periods.end_waiting(3);
        periods.leave(3);
        assert_eq!(periods.lag_ns(3), None);
    }
}
