//! Polls the servers: a connection to each of them, beside the workers', that asks for its statistics.
//!
//! Each thread blocks and sleeps, never on a worker. It polls before the first worker connects, after preload, each
//! second on the grid of the measured window (in long windows at each row over time), and after all workers have
//! ended. Invariants: a poll ends within [`QUERY_TIMEOUT`]; a server without statistics at the first poll is not
//! polled again.

use crate::clock::Clock;
use crate::process::{join, start_thread};
use crate::transport::Endpoint;
use crate::transport::blocking::{QUERY_TIMEOUT, QueryError, Stream};
use brunt_plan::units::DurationNs;
use brunt_proto::memcached::stats::{self, StatsReply};
use brunt_proto::resp::{RespCodec, info};
use brunt_stats::server_stats::{ServerRecord, SizeShare, Snapshot};
use brunt_stats::timeline::row_ns_after;
use std::io;
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::thread::JoinHandle;
use std::time::Duration;

/// Polling period, in a window of up to two minutes.
const PERIOD_NS: u64 = 1_000_000_000;
/// Minimum time between two polls; grid instants before it are skipped.
const SPACING_NS: u64 = 100_000_000;
/// Failed polls in a row after which polling stops.
const FAILURES_MAX: u32 = 5;
/// Attempts of the last poll, which matters most.
const LAST_ATTEMPTS: u32 = 3;

/// The command that polls a server.
#[derive(Clone, Debug)]
pub(crate) enum StatsQuery {
    /// memcached's `stats`, in the text protocol.
    Stats,
    /// Redis's `INFO`, after the connection setup of this codec.
    Info(Box<RespCodec>),
}

/// Statistics with the index of their server.
pub(crate) type ServerSnapshot = (usize, Snapshot);

/// A command of the control thread.
#[derive(Clone, Copy, Debug)]
enum PollerCommand {
    /// Preload is over: poll now.
    Prepared,
    /// The start of the measured window.
    Began { measure_ns: u64 },
    /// All workers have ended: poll for the last time.
    End,
}

/// The control thread's handle of a poller.
struct PollerHandle {
    orders: Sender<PollerCommand>,
    /// Signals the end of a poll that is awaited.
    done: Receiver<()>,
    thread: JoinHandle<ServerRecord>,
}

/// The pollers of a run, in the order of the plan's polled servers. Dropping them ends their threads.
pub(crate) struct StatsPollers {
    handles: Vec<PollerHandle>,
}

impl StatsPollers {
    /// Without pollers.
    pub(crate) const fn disabled() -> Self {
        Self { handles: Vec::new() }
    }

    /// Starts a poller per server, polls once and waits for the results. `interval` is the length of rows over
    /// time; `snapshots` receives every result but the last.
    pub(crate) fn start(
        servers: Vec<(Endpoint, StatsQuery)>,
        interval: Option<DurationNs>,
        clock: Clock,
        snapshots: &Sender<ServerSnapshot>,
    ) -> io::Result<Self> {
        let share = SizeShare::of(servers.len());
        let poller = |(place, (endpoint, question))| {
            let snapshots = Some((place, snapshots.clone()));
            spawn(StatsPoller { interval, share, snapshots, ..StatsPoller::new(endpoint, question, clock) })
        };
        let handles = servers.into_iter().enumerate().map(poller);
        let pollers = Self { handles: handles.collect::<io::Result<Vec<_>>>()? };
        pollers.await_answers();
        Ok(pollers)
    }

    /// Polls between preload and schedule, and waits for the results.
    pub(crate) fn poll_after_preload(&self) {
        self.command(PollerCommand::Prepared);
        self.await_answers();
    }

    /// Sets the start of the measured window.
    pub(crate) fn set_window_start(&self, measure_ns: u64) {
        self.command(PollerCommand::Began { measure_ns });
    }

    /// Polls for the last time and returns all records.
    pub(crate) fn finish(self) -> Vec<ServerRecord> {
        self.command(PollerCommand::End);
        self.handles.into_iter().map(|handle| join(handle.thread)).collect()
    }

    fn command(&self, order: PollerCommand) {
        // A thread that has ended is noticed when it is joined.
        for handle in &self.handles {
            let _ = handle.orders.send(order);
        }
    }

    fn await_answers(&self) {
        for handle in &self.handles {
            let _ = handle.done.recv();
        }
    }
}

fn spawn(mut poller: StatsPoller) -> io::Result<PollerHandle> {
    let (orders, incoming) = mpsc::channel();
    let (done_sender, done) = mpsc::channel();
    let thread = start_thread("brunt-stats", move || {
        poller.run(&incoming, &done_sender);
        poller.record
    })?;
    Ok(PollerHandle { orders, done, thread })
}

/// One server's poller, on its own thread.
struct StatsPoller {
    endpoint: Endpoint,
    question: StatsQuery,
    clock: Clock,
    stream: Option<Stream>,
    record: ServerRecord,
    /// Failed polls in a row.
    failures: u32,
    has_stopped: bool,
    /// Start of the last poll.
    asked_ns: u64,
    /// Origin of the polling grid.
    grid_ns: Option<u64>,
    /// Length of rows over time, if the plan sets it.
    interval: Option<DurationNs>,
    /// Fraction of a result that its record may take.
    share: SizeShare,
    /// Rows per kept snapshot; 0: all are kept.
    stride: u64,
    /// Index of the server and the channel that receives its snapshots.
    snapshots: Option<(usize, Sender<ServerSnapshot>)>,
}

impl StatsPoller {
    fn new(endpoint: Endpoint, question: StatsQuery, clock: Clock) -> Self {
        Self {
            endpoint,
            question,
            clock,
            stream: None,
            record: ServerRecord::default(),
            failures: 0,
            has_stopped: false,
            asked_ns: 0,
            grid_ns: None,
            interval: None,
            share: SizeShare::of(1),
            stride: 0,
            snapshots: None,
        }
    }

    /// Polls until the end is ordered, or the control thread has dropped the channel.
    fn run(&mut self, orders: &Receiver<PollerCommand>, done: &Sender<()>) {
        self.poll();
        self.has_stopped |= self.record.snapshots().is_empty();
        // The receiver is gone if the run was aborted.
        let _ = done.send(());
        loop {
            let wait_ns = self.next_ns().saturating_sub(self.clock.now_ns());
            match orders.recv_timeout(Duration::from_nanos(wait_ns)) {
                Err(RecvTimeoutError::Timeout) => {
                    self.poll();
                    self.fit();
                }
                Ok(PollerCommand::Prepared) => {
                    if self.poll() {
                        self.record.prepared = self.record.snapshots().last().cloned();
                    }
                    let _ = done.send(());
                }
                Ok(PollerCommand::Began { measure_ns }) => self.grid_ns = Some(measure_ns),
                Ok(PollerCommand::End) => {
                    self.record.is_complete = (0..LAST_ATTEMPTS).any(|_| self.poll());
                    return;
                }
                Err(RecvTimeoutError::Disconnected) => return,
            }
        }
    }

    /// Time of the next poll.
    fn next_ns(&self) -> u64 {
        if self.has_stopped {
            return u64::MAX;
        }
        match self.grid_ns {
            None => self.asked_ns + PERIOD_NS,
            Some(grid_ns) => {
                let least_ns = self.asked_ns + SPACING_NS;
                let period_ns = self.period_after(least_ns.saturating_sub(grid_ns));
                let phase_ns = if least_ns < grid_ns { grid_ns % period_ns } else { grid_ns };
                let periods = least_ns.saturating_sub(phase_ns).div_ceil(period_ns);
                phase_ns + periods * period_ns
            }
        }
    }

    /// Polling period at this time of the window.
    fn period_after(&self, elapsed_ns: u64) -> u64 {
        self.interval.map_or_else(|| row_ns_after(elapsed_ns, PERIOD_NS), |width| width.0.max(PERIOD_NS))
    }

    /// Drops snapshots that a result has no room for.
    fn fit(&mut self) {
        let grid_ns = self.grid_ns.unwrap_or(0);
        let period_ns = self.period_after(self.asked_ns.saturating_sub(grid_ns));
        self.stride = self.record.fit(grid_ns, period_ns, self.stride, self.share);
    }

    /// Polls and stores the result. Returns whether there was a snapshot.
    fn poll(&mut self) -> bool {
        if self.has_stopped {
            return false;
        }
        self.asked_ns = self.clock.now_ns();
        match self.query() {
            Ok(snapshot) => {
                if let Some((place, snapshots)) = &self.snapshots {
                    // The last one is in the record; the receiver may be gone.
                    let _ = snapshots.send((*place, snapshot.clone()));
                }
                self.record.push(snapshot);
                (self.record.trouble, self.failures) = (None, 0);
                true
            }
            Err(error) => {
                self.stream = None;
                self.failures += 1;
                // A server without statistics will not have any later.
                self.has_stopped = self.failures >= FAILURES_MAX || matches!(error, QueryError::Invalid(_));
                self.record.trouble = Some(error.to_string());
                false
            }
        }
    }

    fn query(&mut self) -> Result<Snapshot, QueryError> {
        let mut stream = match self.stream.take() {
            Some(mut stream) => {
                stream.restart();
                stream
            }
            None => self.connect()?,
        };
        let snapshot = match &self.question {
            StatsQuery::Stats => {
                let mut reply = StatsReply::default();
                stream.exchange(stats::REQUEST, |bytes| Ok(reply.take(bytes)?))?;
                Snapshot::new(self.asked_ns, self.clock.now_ns(), reply.rows())
            }
            StatsQuery::Info(_) => {
                let reply = stream.query(info::REQUEST)?;
                let at_ns = self.clock.now_ns();
                let Some(value) = reply.value() else { unreachable!("a whole reply has a value") };
                // A server that is loading or out of connections may answer later.
                let rows = info::rows(&value).map_err(QueryError::Declined)?;
                Snapshot::new(self.asked_ns, at_ns, rows)
            }
        };
        self.stream = Some(stream);
        Ok(snapshot)
    }

    /// Connects to the first address that accepts, with connection setup.
    fn connect(&self) -> Result<Stream, QueryError> {
        let mut stream = Stream::connect(&self.endpoint, self.clock, QUERY_TIMEOUT)?;
        if let StatsQuery::Info(codec) = &self.question {
            stream.set_up(codec)?;
        }
        Ok(stream)
    }
}

#[cfg(test)]
mod tests;
