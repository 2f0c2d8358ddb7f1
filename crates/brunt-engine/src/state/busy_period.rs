//! The client's delay of a server's busy period: the largest client lag of any request since the server was idle,
//! and the longest time from queueing to sending since then.
//!
//! `brunt-stats` turns it into the lower bound of a response time (docs/method.md, "Bounds"). Late requests
//! are sent in a bunch and queue in the server; none of a busy period leaves later by more than its largest lag.
//! Requests that wait for a connection are sent when a reply is read, and late if that was left unread: server and
//! queue are one busy period, whose delays add up. The workers of a run share one word per server, because a server
//! queues requests of all of them. Invariant: a busy period ends exactly when no worker has a request to the server
//! in flight or waiting.

use brunt_stats::sample::Times;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Bits of a word for the lag in nanoseconds (at most 78 hours); the bits above count workers.
const LAG_BITS: u32 = 48;
const LAG_MAX_NS: u64 = (1 << LAG_BITS) - 1;
const ONE_WORKER: u64 = 1 << LAG_BITS;

/// The busy period of one server.
///
/// In cache lines of its own: it is written when a worker's first request is sent or its last reply comes.
#[derive(Debug, Default)]
#[repr(align(128))]
struct Period {
    /// Number of workers with requests in flight or waiting, and the largest lag since the first of them had.
    word: AtomicU64,
    /// Longest time from queueing to sending since then.
    handing_over_ns: AtomicU64,
}

/// The busy periods of all servers of a run, shared by its workers.
#[derive(Debug)]
pub(crate) struct SharedBusyPeriods(Box<[Period]>);

impl SharedBusyPeriods {
    /// For this many idle servers. The end of a noreply request is unknown: with such requests a busy period lasts
    /// until the end of the run.
    pub(crate) fn new(servers: usize, is_endless: bool) -> Self {
        let word = || AtomicU64::new(if is_endless { ONE_WORKER } else { 0 });
        Self((0..servers).map(|_| Period { word: word(), ..Period::default() }).collect())
    }
}

/// A worker's load on a server.
#[derive(Clone, Copy, Debug, Default)]
struct ServerLoad {
    /// Connections with requests in flight.
    connections: u32,
    /// Queues with waiting requests.
    queues: u32,
    unread: Unread,
}

/// A time in which replies were left unread while requests waited.
#[derive(Clone, Copy, Debug, Default)]
struct Unread {
    start_ns: u64,
    end_ns: u64,
    /// Lag of the busy period before it.
    lag_ns: u64,
}

/// One worker's view of the busy periods.
#[derive(Debug)]
pub(crate) struct BusyPeriods {
    /// `None` without an open-loop class, which alone needs the lag.
    shared: Option<Arc<SharedBusyPeriods>>,
    /// By server.
    load: Vec<ServerLoad>,
}

impl BusyPeriods {
    /// The busy periods of a worker without requests.
    pub(crate) fn new(shared: Option<Arc<SharedBusyPeriods>>) -> Self {
        let servers = shared.as_ref().map_or(0, |shared| shared.0.len());
        Self { shared, load: vec![ServerLoad::default(); servers] }
    }

    /// Is the lag kept at all?
    #[inline]
    pub(crate) fn is_kept(&self) -> bool {
        self.shared.is_some()
    }

    /// Notes a request with its [`Times::client_lag_ns`]. `is_first`: the first in flight on its connection. Not
    /// inlined: closed loops must not pay for it.
    #[inline(never)]
    fn enter(&mut self, server: u16, is_first: bool, late_ns: u64) {
        let Some(shared) = &self.shared else { return };
        let period = &shared.0[usize::from(server)];
        if is_first {
            let load = &mut self.load[usize::from(server)];
            begin(period, load);
            load.connections += 1;
        }
        raise(&period.word, late_ns);
    }

    /// Notes the time from queueing to sending of requests, which adds to their lag when picked.
    #[inline]
    pub(crate) fn note_handed_over(&mut self, server: u16, queued_ns: u64, sent_ns: u64) {
        let Some(shared) = &self.shared else { return };
        let handing_over_ns = &shared.0[usize::from(server)].handing_over_ns;
        let took_ns = sent_ns.saturating_sub(queued_ns);
        if took_ns > handing_over_ns.load(Ordering::Relaxed) {
            handing_over_ns.fetch_max(took_ns, Ordering::Relaxed);
        }
    }

    /// As `enter`, of a request with these times.
    #[inline]
    pub(crate) fn enter_picked(&mut self, server: u16, is_first: bool, intended_ns: u64, picked_ns: u64) {
        if self.is_kept() {
            let times = Times { intended_ns, picked_ns, ..Times::default() };
            self.enter(server, is_first, times.client_lag_ns());
        }
    }

    /// Notes that a connection has no request in flight any more.
    #[inline]
    pub(crate) fn leave(&mut self, server: u16) {
        let Some(shared) = &self.shared else { return };
        let load = &mut self.load[usize::from(server)];
        load.connections -= 1;
        end(&shared.0[usize::from(server)].word, load);
    }

    /// Notes that a queue has waiting requests.
    pub(crate) fn begin_waiting(&mut self, server: u16) {
        let Some(shared) = &self.shared else { return };
        let load = &mut self.load[usize::from(server)];
        begin(&shared.0[usize::from(server)], load);
        load.queues += 1;
    }

    /// Notes that a queue is empty again.
    pub(crate) fn end_waiting(&mut self, server: u16) {
        let Some(shared) = &self.shared else { return };
        let load = &mut self.load[usize::from(server)];
        load.queues -= 1;
        end(&shared.0[usize::from(server)].word, load);
    }

    /// Notes a reply that may have been unread from `since_ns` to `read_ns` while requests waited for a connection,
    /// which delays them by at most that time. If nothing is in flight any more, the server was idle meanwhile, and
    /// the delay adds to the earlier lag; otherwise the longest such time counts.
    #[inline]
    pub(crate) fn note_unread(&mut self, server: u16, since_ns: u64, read_ns: u64) {
        let Some(shared) = &self.shared else { return };
        if since_ns >= read_ns {
            return;
        }
        let (word, load) = (&shared.0[usize::from(server)].word, &mut self.load[usize::from(server)]);
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

    /// The client's delay of the current or last busy period, in nanoseconds; `None` if it is not kept.
    #[inline]
    pub(crate) fn lag_ns(&self, server: u16) -> Option<u64> {
        let shared = self.shared.as_ref()?;
        let period = &shared.0[usize::from(server)];
        let lag_ns = period.word.load(Ordering::Acquire) & LAG_MAX_NS;
        Some(lag_ns + period.handing_over_ns.load(Ordering::Relaxed))
    }

    /// Has this worker no requests in flight or waiting?
    pub(crate) fn is_idle(&self) -> bool {
        self.load.iter().all(|load| load.connections + load.queues == 0)
    }
}

/// Begins a worker's part in a busy period with its first request.
#[inline]
fn begin(period: &Period, load: &ServerLoad) {
    if load.connections + load.queues == 0 {
        // The server was idle: earlier lags do not count.
        if period.word.load(Ordering::Acquire) < ONE_WORKER {
            period.handing_over_ns.store(0, Ordering::Relaxed);
        }
        let begin = |word: u64| Some(if word < ONE_WORKER { ONE_WORKER } else { word + ONE_WORKER });
        let _ = period.word.fetch_update(Ordering::AcqRel, Ordering::Acquire, begin);
    }
}

/// Ends a worker's part in a busy period with its last request.
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
        let shared = Arc::new(SharedBusyPeriods::new(2, false));
        let mut workers = [BusyPeriods::new(Some(shared.clone())), BusyPeriods::new(Some(shared))];
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
            // Replies to several connections were unread at the same time.
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
