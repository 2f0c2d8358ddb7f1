//! The slot map of a cluster, polled from its nodes: before a run, during it and after it.
//!
//! Uses connections and a thread of its own; workers find the result in the `SharedSlotMap`. Invariants: a query
//! of a node ends within a second; during a run nodes are queried only after a redirect, and at most once a second.

use crate::clock::Clock;
use crate::codecs::resp_codec;
use crate::io::tls::{PLAIN_HINT, explain};
use crate::process::{join, start_thread};
use crate::run_error::{RunError, ServerFailure, TLS_HINT};
use crate::state::hash_slots::SharedSlotMap;
use crate::transport::Endpoint;
use crate::transport::blocking::{QUERY_TIMEOUT, QueryError, Stream};
use brunt_plan::plan::Plan;
use brunt_plan::server::ServerAddress;
use brunt_proto::resp::RespCodec;
use brunt_proto::resp::reply::WholeReply;
use brunt_proto::resp::slot::{ASK_SHARDS, ASK_SLOTS, NodeAddress, SlotMap, SlotMapError};
use brunt_stats::cluster::ClusterRecord;
use std::io;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::thread::JoinHandle;
use std::time::Duration;

/// Minimum time between two queries during a run.
const PERIOD_NS: u64 = 1_000_000_000;
/// How often redirects are checked for. An outdated entry costs a request one more hop, so this may be slow; a
/// thread that wakes rarely takes nothing from the workers.
const CHECK_PERIOD: Duration = Duration::from_millis(50);
/// Nodes that are asked in turn, each of which may take its second. Who is sent a plan with thousands that are silent is busy no longer.
const NODES_ASKED_MAX: usize = 30;
/// Part of the error of a server that is not a cluster node.
const NO_CLUSTER: &str = "cluster support disabled";

/// The nodes of a cluster.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Nodes {
    /// Their addresses, as they announce them.
    pub servers: Vec<ServerAddress>,
    /// Nodes without slots.
    pub idle: Vec<ServerAddress>,
    /// Slots without a node.
    pub unserved: u16,
}

/// Queries these servers in order for the nodes of their cluster, until one answers.
///
/// # Errors
/// No server returned a slot map.
pub fn find_nodes(plan: &Plan, seeds: &[Endpoint]) -> Result<Nodes, RunError> {
    let codec = resp_codec(plan, plan.protocol).map_err(RunError::System)?;
    let map = first_map(seeds, &codec, 0).map(|(_, map)| map)?;
    let mut nodes = map.nodes().to_vec();
    // Every node lists them in its own order; a report must not depend on which one answered.
    nodes.sort_by(|one, other| (&one.host, one.port).cmp(&(&other.host, other.port)));
    let address = |node: NodeAddress| ServerAddress::network(node.host, node.port);
    Ok(Nodes {
        servers: nodes.into_iter().map(address).collect(),
        idle: map.idle().cloned().map(address).collect(),
        unserved: map.uncovered(),
    })
}

/// The shared slot map for a run over these nodes, with the current assignment.
pub(crate) fn slot_map(plan: &Plan, nodes: &[Endpoint]) -> Result<SharedSlotMap, RunError> {
    let codec = resp_codec(plan, plan.protocol).map_err(RunError::System)?;
    let (_, map) = first_map(nodes, &codec, 0)?;
    let addresses = nodes.iter().map(|node| address_of(&node.server)).collect();
    Ok(SharedSlotMap::new(addresses, &map))
}

fn address_of(server: &ServerAddress) -> NodeAddress {
    match server {
        ServerAddress::Network { host, port } => NodeAddress { host: host.clone(), port: *port },
        // A cluster plan has network addresses only.
        ServerAddress::Unix { path } => NodeAddress { host: path.clone(), port: 0 },
    }
}

/// The first slot map that one of [`NODES_ASKED_MAX`] nodes returns, and the index of the node; queries begin with index `from`. If none
/// returns one, the error is that of the first node that answered at all.
fn first_map(endpoints: &[Endpoint], codec: &RespCodec, from: usize) -> Result<(usize, SlotMap), RunError> {
    let mut reason: Option<RunError> = None;
    let is_silence = |error: &RunError| {
        use ServerFailure::{NoReply, Unreachable};
        matches!(error, RunError::Server { failure: Unreachable | NoReply, .. })
    };
    for place in (0..endpoints.len().min(NODES_ASKED_MAX)).map(|nth| (from + nth) % endpoints.len()) {
        match query_slot_map(&endpoints[place], codec) {
            Ok(map) => return Ok((place, map)),
            Err(error) if reason.as_ref().is_none_or(|reason| is_silence(reason) && !is_silence(&error)) => {
                reason = Some(error);
            }
            Err(_) => {}
        }
    }
    Err(reason.unwrap_or_else(|| RunError::System(io::Error::other("a cluster without a server to ask"))))
}

impl From<SlotMapError> for QueryError {
    fn from(error: SlotMapError) -> Self {
        Self::Invalid(error.to_string())
    }
}

/// Queries a node's slot map.
fn query_slot_map(endpoint: &Endpoint, codec: &RespCodec) -> Result<SlotMap, RunError> {
    let server = || endpoint.server.clone();
    // What a reply shows that is none to use, and what a lost connection shows.
    let failed = |refusal| {
        move |error: QueryError| {
            let (failure, reason) = match error {
                QueryError::Declined(reason) | QueryError::Invalid(reason) => (refusal, reason),
                QueryError::Lost(error) => match error.get_ref().and_then(|inner| inner.downcast_ref()) {
                    Some(reason) => (ServerFailure::TlsFailed, explain(reason)),
                    None if endpoint.tls.is_some() => {
                        (ServerFailure::TlsFailed, format!("{error}{PLAIN_HINT}"))
                    }
                    None => (ServerFailure::NoReply, format!("to the slot map query: {error}{TLS_HINT}")),
                },
            };
            RunError::Server { failure, server: server(), reason }
        }
    };
    let mut stream = Stream::connect(endpoint, Clock::start(), QUERY_TIMEOUT).map_err(|error| {
        RunError::Server { failure: ServerFailure::Unreachable, server: server(), reason: error.to_string() }
    })?;
    stream.set_up(codec).map_err(failed(ServerFailure::SetupRejected))?;
    ask_slot_map(&mut stream, endpoint).map_err(failed(ServerFailure::NoSlotMap))
}

/// By CLUSTER SHARDS (since Redis 7), or else by CLUSTER SLOTS.
fn ask_slot_map(stream: &mut Stream, endpoint: &Endpoint) -> Result<SlotMap, QueryError> {
    let host = address_of(&endpoint.server).host;
    let by_tls = endpoint.tls.is_some();
    let whole = stream.query(ASK_SHARDS)?;
    let declined = match map_of(&whole, |value| SlotMap::of_shards(value, &host, by_tls)) {
        Err(declined @ SlotMapError::Declined(_)) => declined,
        other => return Ok(other?),
    };
    if declined.to_string().contains(NO_CLUSTER) {
        return Err(declined.into());
    }
    let whole = stream.query(ASK_SLOTS)?;
    Ok(map_of(&whole, |value| SlotMap::of_slots(value, &host))?)
}

fn map_of(
    whole: &WholeReply,
    read: impl FnOnce(&brunt_proto::resp::reply::Value<'_>) -> Result<SlotMap, SlotMapError>,
) -> Result<SlotMap, SlotMapError> {
    read(&whole.value().ok_or(SlotMapError::OtherForm)?)
}

/// A thread that polls slot maps during a run. Dropping it ends the thread.
pub(crate) struct SlotMapPoller {
    end: Sender<()>,
    thread: JoinHandle<ClusterRecord>,
}

impl SlotMapPoller {
    /// Starts polling whenever a worker marks the shared map as outdated.
    pub(crate) fn start(
        plan: &Plan,
        shared: Arc<SharedSlotMap>,
        nodes: Vec<Endpoint>,
        clock: Clock,
    ) -> io::Result<Self> {
        let codec = resp_codec(plan, plan.protocol)?;
        let (end, ended) = mpsc::channel();
        let thread = start_thread("brunt-slot-map", move || {
            let (mut from, mut asked_ns, mut refreshes) = (0, 0, 0);
            let mut refresh = || match first_map(&nodes, &codec, from) {
                Ok((place, map)) => {
                    shared.publish(&map);
                    from = place;
                    true
                }
                Err(_) => false,
            };
            // Ends on order, or when the sender is dropped.
            while let Err(RecvTimeoutError::Timeout) = ended.recv_timeout(CHECK_PERIOD) {
                let is_due = clock.now_ns() >= asked_ns + PERIOD_NS;
                if is_due && shared.is_outdated.swap(false, Ordering::Relaxed) {
                    asked_ns = clock.now_ns();
                    refreshes += u64::from(refresh());
                }
            }
            let is_final = refresh();
            ClusterRecord { slots: shared.counts(), is_final, refreshes }
        })?;
        Ok(Self { end, thread })
    }

    /// Queries for the last time: the slot map at the end of the run, and whether a node gave it.
    pub(crate) fn end(self) -> ClusterRecord {
        // A thread that has ended is noticed when it is joined.
        let _ = self.end.send(());
        join(self.thread)
    }
}
