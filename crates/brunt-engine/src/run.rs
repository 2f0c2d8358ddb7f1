//! A run: what is flushed, probed and started before it, the control thread that drives the workers, and what an error says.
//!
//! The control thread may allocate, wait and be late by milliseconds without affecting a latency. Invariants: an error of a worker
//! keeps its kind, and is completed with what all workers have seen; an unconfirmed deletion before a run is an error.

pub(crate) mod asking;
pub(crate) mod blueprint;
pub mod cluster;
pub(crate) mod control_thread;
pub mod coordinator;
pub mod host;
pub mod in_process_run;
pub mod kernel_interface;
pub(crate) mod stats_poller;
pub(crate) mod trace_reader;

use crate::clock::Clock;
use crate::codecs::resp_codec;
use crate::run::blueprint::Blueprint;
pub use crate::run::blueprint::DataSets;
use crate::run::cluster::SlotMapPoller;
use crate::run::control_thread::ControlThread;
use crate::run::coordinator::{Coordinator, LocalOnly, LocalPart};
use crate::run::kernel_interface::{Chosen, choose, is_out_of_memory, without_io_uring};
use crate::run::stats_poller::{ServerSnapshot, StatsPollers, StatsQuery};
use crate::run::trace_reader::TraceReaders;
pub use crate::run_error::{ErrorOrigin, RunError, ServerFailure};
use crate::run_error::{describe_malformed, hint, tls_hint};
pub use crate::transport::Endpoint;
use crate::transport::blocking::{QueryError, Stream};
use crate::transport::socket;
use crate::worker::WorkerEnd;
use brunt_plan::plan::{IoChoice, Plan, Transport};
use brunt_plan::shard::{Shard, shard};
use brunt_stats::connection::{Fault, FaultKind, FirstError, FirstMalformed};
use brunt_stats::interval::Interval;
pub use brunt_stats::run_record::RunData;
use brunt_stats::server_stats::Snapshot;
use brunt_stats::store::IntervalStore;
use brunt_stats::usage::ClientUsage;
pub use brunt_stats::window::RunTimes;
use std::io;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, mpsc};
use std::time::Duration;

/// An event of a run.
#[derive(Debug)]
pub enum RunEvent<'a> {
    /// Every connection is established and every key confirmed: the schedule begins. The times, and what is known of the client: how it
    /// waits, what a wake-up costs, whether there are kernel timestamps. `end_ns` is `u64::MAX` without a time limit. Sent twice where the
    /// plan leaves the start of the window open: first with its latest start, then ahead of its actual start.
    Started(&'a RunData),
    /// An interval of a worker, preload included.
    Interval(&'a Interval),
    /// Something happened on another host that a user should know at once, in one line.
    Note(&'a str),
    /// Statistics of a server. Those of after the workers' end are in the result alone.
    Statistics {
        /// Index of the server among the polled servers of the plan.
        server: usize,
        /// Its statistics.
        snapshot: &'a Snapshot,
    },
    /// Time has passed. Sent after every poll of the workers: about 10 ms after the end of each interval, and every
    /// 10 ms before the schedule begins.
    Tick {
        /// Nanoseconds on the run's clock.
        now_ns: u64,
        /// All intervals so far.
        intervals: &'a IntervalStore,
    },
}

/// What an observer wants to happen next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RunDecision {
    /// Continue as planned.
    Continue,
    /// End the schedule: the measurement suffices. The plan allows for this, so the run does not count as
    /// interrupted.
    Finish,
}

/// Receives the events of a run.
pub type Observe<'a> = dyn FnMut(RunEvent<'_>) -> RunDecision + 'a;

/// Runs a plan. `stop` ends the schedule early; `observe` receives events on the calling thread and may end the
/// schedule.
pub fn run(
    plan: &Plan,
    endpoints: &[Endpoint],
    data: DataSets,
    stop: &AtomicBool,
    observe: &mut Observe<'_>,
) -> Result<RunData, RunError> {
    run_part(plan, &LocalPart::whole(plan), endpoints, data, stop, observe, &mut LocalOnly::default())
}

/// Runs the local part of a plan; what the coordinator adds counts as if it were recorded here.
pub fn run_part(
    plan: &Plan,
    part: &LocalPart<'_>,
    endpoints: &[Endpoint],
    data: DataSets,
    stop: &AtomicBool,
    observe: &mut Observe<'_>,
    coordinator: &mut dyn Coordinator,
) -> Result<RunData, RunError> {
    let setup = RunSetup { plan, part, endpoints, data, stop };
    match setup.execute(None, observe, coordinator) {
        // The limit of locked memory is per user: since the probe another process may have taken it.
        Err(RunError::System(error)) if plan.io == IoChoice::Auto && is_out_of_memory(&error) => {
            setup.execute(Some(without_io_uring(&error)), observe, coordinator)
        }
        ended => ended,
    }
}

/// The parameters of a run.
#[derive(Clone, Copy)]
struct RunSetup<'a> {
    plan: &'a Plan,
    part: &'a LocalPart<'a>,
    endpoints: &'a [Endpoint],
    data: DataSets,
    /// Ends the schedule early.
    stop: &'a AtomicBool,
}

impl RunSetup<'_> {
    /// Runs with this kernel interface, or else with the best one that works.
    fn execute(
        self,
        chosen: Option<Chosen>,
        observe: &mut Observe<'_>,
        coordinator: &mut dyn Coordinator,
    ) -> Result<RunData, RunError> {
        let Self { plan, part, endpoints, data, .. } = self;
        let local = (0..).zip(part.workers.clone());
        let shards: Vec<Shard> =
            local.map(|(nth, index)| shard(part.plan, index, part.portion.nth(nth))).collect();
        let slot_map = match plan.is_cluster {
            true => Some(Arc::new(cluster::slot_map(plan, endpoints)?)),
            false => None,
        };
        let blueprint =
            Blueprint::new(part.plan.clone(), endpoints.to_vec(), data).with_slots(slot_map.clone());
        let blueprint = Arc::new(blueprint.map_err(RunError::System)?);
        let rings: Vec<_> = shards.iter().map(|shard| blueprint.ring_of(shard)).collect();
        let chosen = chosen.map_or_else(|| choose(plan, &rings), Ok)?;
        if let Some(address) = endpoints.first().and_then(|endpoint| endpoint.addresses.first()) {
            socket::probe(address, &plan.sockets).map_err(RunError::System)?;
        }
        let (readers, feeds) = TraceReaders::start(part.plan, &shards).map_err(RunError::TraceUnreadable)?;
        let clock = Clock::start();
        // Polled before a worker connects, so that every request of the run is between the first and the last poll.
        let (snapshots, statistics) = mpsc::channel();
        let pollers = start_stats_pollers(&blueprint, clock, &snapshots).map_err(RunError::System)?;
        let start_map_poller = |slot_map| SlotMapPoller::start(plan, slot_map, endpoints.to_vec(), clock);
        let map_poller = slot_map.map(start_map_poller).transpose().map_err(RunError::System)?;
        let usage = ClientUsage {
            io: chosen.interface.name().to_owned(),
            io_reason: chosen.reason.clone(),
            wait: plan.wait.name().to_owned(),
            counts_wake_ups: blueprint.stamped_every.is_err(),
            timestamps_reason: blueprint.stamped_every.clone().err().flatten(),
            ..ClientUsage::default()
        };
        let mut control = ControlThread::new(self, clock, usage, observe, coordinator, statistics);
        let ended = control.drive(&blueprint, shards.into_iter().zip(feeds), &chosen, &pollers);
        let interrupted = match ended {
            Ok(interrupted) => interrupted,
            Err(error) => {
                let ends = control.abort();
                return Err(with_context(error, ends, control.intervals, &blueprint));
            }
        };
        let mut data = control.finish(interrupted)?;
        if let (Some(map_poller), Some(record)) = (map_poller, &mut data.cluster) {
            let refreshes = record.refreshes;
            *record = map_poller.end();
            record.refreshes += refreshes;
        }
        // Of this host or of agents: no class is carried out by both.
        let traces = readers.end().into_iter().chain(data.traces).collect();
        Ok(RunData { server_records: pollers.finish(), traces, ..data })
    }
}

/// Starts the poller of each server, where the plan polls servers.
fn start_stats_pollers(
    blueprint: &Blueprint,
    clock: Clock,
    snapshots: &mpsc::Sender<ServerSnapshot>,
) -> io::Result<StatsPollers> {
    let Blueprint { plan, endpoints, .. } = blueprint;
    if !plan.server_stats {
        return Ok(StatsPollers::disabled());
    }
    let servers = &plan.servers;
    let query_of = |place: usize| {
        let question = match servers[place].protocol {
            protocol if protocol.is_resp() => StatsQuery::Info(Box::new(resp_codec(plan, protocol)?)),
            _ => StatsQuery::Stats,
        };
        Ok((endpoints[place].clone(), question))
    };
    let queries = plan.polled_servers().into_iter().map(query_of).collect::<io::Result<Vec<_>>>()?;
    StatsPollers::start(queries, plan.interval, clock, snapshots)
}

/// The most servers that a message names.
const NAMES_MAX: usize = 3;

/// Adds the first reason and a hint to an error.
pub(super) fn with_context(
    error: RunError,
    ends: Vec<io::Result<WorkerEnd>>,
    intervals: IntervalStore,
    blueprint: &Blueprint,
) -> RunError {
    let plan = &blueprint.plan;
    match error {
        RunError::Server { failure, server, reason } => {
            let ends: Vec<WorkerEnd> = ends.into_iter().flatten().collect();
            let hint = match failure {
                ServerFailure::NoReply => tls_hint(plan).to_owned(),
                ServerFailure::SetupRejected => first_hint(plan, &ends),
                _ => String::new(),
            };
            RunError::Server { failure, server, reason: reason + &hint }
        }
        RunError::PreloadFailed { reason: cause, .. } => {
            let mut ends: Vec<WorkerEnd> = ends.into_iter().flatten().collect();
            let confirmed = ends.iter().map(|end| end.confirmed).sum();
            let mut faults = intervals.faults().clone();
            for end in &mut ends {
                faults.merge(&end.last.take_interval(0).faults);
            }
            let mut reason = match first_reason(&ends, faults.rows()) {
                Some(first) if cause.is_empty() => first,
                Some(first) => format!("{cause}; {first}"),
                None if cause.is_empty() => "the server declined the others".to_owned(),
                None => cause,
            };
            let is_cut_off = |fault: &Fault| matches!(fault.kind, FaultKind::ClosedByPeer | FaultKind::Reset);
            if confirmed == 0 && !faults.rows().is_empty() && faults.rows().iter().all(is_cut_off) {
                reason += tls_hint(plan);
            }
            let hint = first_hint(plan, &ends);
            let servers = server_names(&blueprint.endpoints);
            let (is_to_delete, wanted) = (blueprint.is_to_delete, plan.preload_stores());
            RunError::PreloadFailed { is_to_delete, servers, confirmed, wanted, reason, hint }
        }
        // The worker's own error is the reason.
        RunError::System(error) => RunError::System(ends.into_iter().find_map(Result::err).unwrap_or(error)),
        other => other,
    }
}

/// The first reason for a failed preload, if it is known.
fn first_reason(ends: &[WorkerEnd], faults: &[Fault]) -> Option<String> {
    if let Some(text) = ends.iter().find_map(|end| end.rejection.as_ref()) {
        return Some(format!("the server rejects a key: \"{text}\""));
    }
    if let Some(text) = ends.iter().find_map(|end| end.data.counts.first_error.as_ref()) {
        return Some(format!("first error \"{text}\""));
    }
    if let Some(malformed) = ends.iter().find_map(|end| end.data.counts.first_malformed.as_ref()) {
        return Some(describe_malformed(malformed));
    }
    let row = |fault: &Fault| match fault.kind {
        FaultKind::Other(errno) => {
            format!("{} × connection error: {}", fault.count, io::Error::from_raw_os_error(errno))
        }
        kind => format!("{} × connection {}", fault.count, kind.name()),
    };
    let rows: Vec<String> = faults.iter().map(row).collect();
    (!rows.is_empty()).then(|| rows.join(", "))
}

/// A hint from the first error or the first malformed bytes.
fn first_hint(plan: &Plan, ends: &[WorkerEnd]) -> String {
    let rejection = ends.iter().find_map(|end| end.rejection.as_ref());
    let error = rejection.or_else(|| ends.iter().find_map(|end| end.data.counts.first_error.as_ref()));
    let malformed = ends.iter().find_map(|end| end.data.counts.first_malformed.as_ref());
    let bytes = error.map(FirstError::bytes).or(malformed.map(FirstMalformed::bytes));
    bytes.map(|bytes| hint(plan, bytes)).unwrap_or_default()
}

/// Names of servers, the first few of many.
fn server_names(endpoints: &[Endpoint]) -> String {
    let names: Vec<String> =
        endpoints.iter().take(NAMES_MAX).map(|endpoint| endpoint.server.to_string()).collect();
    match endpoints.len().saturating_sub(NAMES_MAX) {
        0 => names.join(", "),
        more => format!("{} and {more} more", names.join(", ")),
    }
}

/// Time limit: deleting much data takes long.
const FLUSH_LIMIT: Duration = Duration::from_secs(60);
/// Maximum length of a reply.
const ANSWER_BYTES_MAX: usize = 4096;

/// Deletes all data of every server of a plan, and waits for each confirmation.
///
/// # Errors
/// A server is unreachable, does not confirm, or has no such command; for a user.
pub fn flush(plan: &Plan, endpoints: &[Endpoint]) -> Result<(), String> {
    for (server, endpoint) in plan.servers.iter().zip(endpoints) {
        let refuse = |reason: String| format!("cannot flush {}: {reason}", endpoint.server);
        if server.protocol.is_stateless() || server.transport == Transport::Udp {
            return Err(refuse(format!(
                "{} over {} has no command for it",
                server.protocol, server.transport
            )));
        }
        let reply = ask_to_flush(plan, server.protocol.is_resp(), endpoint)
            .map_err(|error| refuse(error.to_string()))?;
        if !matches!(reply.as_str(), "OK" | "+OK") {
            return Err(refuse(format!("reply '{}'", reply.escape_debug())));
        }
    }
    Ok(())
}

/// The server's reply line.
fn ask_to_flush(plan: &Plan, is_redis: bool, endpoint: &Endpoint) -> Result<String, QueryError> {
    let mut stream = Stream::connect(endpoint, Clock::start(), FLUSH_LIMIT)?;
    let request: &[u8] = if is_redis {
        stream.set_up(&resp_codec(plan, plan.protocol)?)?;
        b"*1\r\n$8\r\nflushall\r\n"
    } else {
        b"flush_all\r\n"
    };
    let mut answer = Vec::new();
    stream.exchange(request, |bytes| {
        answer.extend_from_slice(bytes);
        Ok(answer.contains(&b'\n') || answer.len() >= ANSWER_BYTES_MAX)
    })?;
    let line = String::from_utf8_lossy(&answer);
    Ok(line.lines().next().unwrap_or_default().to_owned())
}
