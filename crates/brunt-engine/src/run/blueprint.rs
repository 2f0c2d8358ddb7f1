//! What all workers of a run share, and how one is built: its connections, its buffers, its tables.
//!
//! Invariant: everything that a worker needs is allocated here; a running worker allocates nothing.

mod lanes;

use crate::codecs::commands;
use crate::io::{Io, uring};
use crate::run::kernel_interface::timestamps_work;
use crate::state::busy_period::{BusyPeriods, SharedBusyPeriods};
use crate::state::connections::{ConnectionPlan, Lifetimes};
use crate::state::hash_slots::{SharedSlotMap, SlotTable, SlotTableCapacity};
use crate::state::recording::{Exchange, Recording};
use crate::traffic::verifying::Audit;
use crate::traffic::{Capacities, Traffic, TrafficParts};
use crate::transport::{Address, Endpoint};
use crate::worker::pace::{Cpus, Pace};
use crate::worker::unloaded::{MakeUnloadedLanes, Unloaded};
use crate::worker::{MakeLanes, Orders, Worker};
use brunt_plan::mix::Command;
use brunt_plan::op::{ClassId, OpKind};
use brunt_plan::plan::{Class, Load, OnMiss, Path, Plan, SessionScope, Timestamps, Transport};
use brunt_plan::server::ServerAddress;
use brunt_plan::shard::{ClassShard, Shard, share_of};
use brunt_proto::memcached::DatagramCodec;
use brunt_proto::memcached::udp::{AHEAD_MAX, DATAGRAM_ROOM, PAYLOAD_BYTES_MAX};
use brunt_proto::out::Out;
use brunt_proto::resp::slot::ASKING;
use brunt_proto::template::Template;
use brunt_proto::{Codec, KEY_BYTES_MAX};
use brunt_stats::recorder::{Layout, RecorderSet};
use brunt_workload::keys::KeyGenerator;
use brunt_workload::payload::{HEAD_LEN, Payload};
use brunt_workload::placement::Router;
use brunt_workload::popularity::KeyChooser;
use brunt_workload::size::{SizeOf, Sizes};
use std::collections::HashMap;
use std::io;
use std::ops::Range;
use std::sync::Arc;

/// Limit of operations that wait for a connection in a worker; about 100 bytes each. Beyond it the schedule itself
/// is the queue.
const WAITING_MAX: usize = 1 << 17;
/// Minimum per lane, so that each has room for a burst.
const WAITING_MIN: usize = 1 << 8;
/// Send queue of a connection, in bytes, at least…
const ROOM_MIN: usize = 4096;
/// …and at most, unless one request needs more. A full queue ends an iteration: a pipeline that is far behind costs
/// one iteration and two system calls per queue, and replies wait while a queue is filled.
const ROOM_MAX: usize = 1 << 16;
/// Upper bound of a reply's bytes around key and value, for buffer sizes.
const REPLY_FRAME_BYTES: usize = 48;
/// Minimum depth of a preload, in which nothing is measured…
const PRELOAD_DEPTH_MIN: u32 = 32;
/// …unless a worker has enough connections that less suffices: each request in flight takes memory.
const PRELOAD_IN_FLIGHT: u32 = 8192;

/// Stores in flight of a preload over UDP, over all connections: as many as a server's socket usually has memory
/// for (212 992 bytes, of which a datagram of 1 400 bytes takes 2 304).
const PRELOAD_DATAGRAMS: u32 = 64;
/// Memory of a worker for datagrams that wait for others, or one datagram per request in flight; untouched memory
/// costs nothing.
const HELD_BYTES: usize = 256 << 20;
/// Of the connections of a worker for a class to a server, one in this many has kernel timestamps where the plan leaves it open.
const STAMPED_EVERY: u32 = 8;

/// Data sets that are on the servers before a run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum DataSets {
    /// None known: preload stores the data sets, where the plan has one.
    #[default]
    ToStore,
    /// The data sets of the plan, stored and confirmed by an earlier run. Its preload has nothing left to do, and values are
    /// compared as if it had done it.
    Stored,
    /// The keys of the data sets are deleted where preload would store them.
    ToDelete,
}

/// A data set with its keys.
struct DataSet {
    keys: Arc<KeyGenerator>,
    extends: bool,
    ttl_s: u32,
    /// The class whose connections preload it, and their path.
    class: usize,
    path: usize,
}

/// What all workers of a run share, read-only.
pub(crate) struct Blueprint {
    pub plan: Arc<Plan>,
    pub endpoints: Vec<Endpoint>,
    payload: Arc<Payload>,
    data_sets: Vec<DataSet>,
    data_set_of_class: Vec<usize>,
    choosers: Vec<Arc<KeyChooser>>,
    /// Deltas of counters, by class.
    deltas: Vec<Arc<Sizes>>,
    /// Preload has to store data sets.
    is_to_store: bool,
    /// Instead, it deletes what it would store.
    pub(super) is_to_delete: bool,
    /// Of the connections of a worker for a class to a server over plain TCP, one in this many has kernel timestamps; else none has, and why,
    /// where the plan leaves it open.
    pub(super) stamped_every: Result<u32, Option<String>>,
    /// By class and path, if the key decides among its servers.
    routers: Vec<Vec<Option<Arc<Router>>>>,
    /// The slot map, if the servers are nodes of a cluster, and the commands whose keys decide the slot.
    slot_map: Option<Arc<SharedSlotMap>>,
    commands: Arc<[Template]>,
    pub layout: Layout,
    /// Client lag of each server's busy period, if a class is open loop.
    busy: Option<Arc<SharedBusyPeriods>>,
}

/// A worker's connections of one class by path and server, numbered within the worker; empty for classes of other
/// workers.
type ClassConnections = Vec<Vec<Range<u32>>>;

/// A worker's part of the plan.
struct WorkerPart {
    shard: Shard,
    /// By class.
    connections: Vec<ClassConnections>,
    /// Routes of all classes.
    routes: usize,
}

impl WorkerPart {
    /// Its classes with their connections.
    fn classes(&self) -> impl Iterator<Item = (usize, &ClassConnections)> {
        self.connections.iter().enumerate().filter(|(_, connections)| !connections.is_empty())
    }
}

/// Do requests go to this server over plain TCP, so that the kernel can take timestamps of them?
fn is_plain_tcp(endpoint: &Endpoint) -> bool {
    endpoint.tls.is_none() && endpoint.addresses.iter().all(|address| matches!(address, Address::Network(_)))
}

/// Does no request of a class ever have its connection to itself? Slots of a closed loop that do not think are always in use, all on the
/// connections of one server. Only requests that are alone are stamped.
fn is_always_shared(plan: &Plan, class: &Class) -> bool {
    let is_thinking = !matches!(class.load, Load::Closed { think } if think.0 == 0);
    class.depth > 1 && !is_thinking && class.trace.is_none() && plan.server_count() == 1
}

/// Of how many connections one has kernel timestamps; else why none has, where the plan leaves it open.
fn stamped_every(plan: &Plan) -> Result<u32, Option<String>> {
    match plan.timestamps {
        Timestamps::Off => Err(None),
        Timestamps::Kernel => Ok(1),
        Timestamps::Auto if !plan.uses_transport(Transport::Tcp) => {
            Err(Some("only plain TCP has them".to_owned()))
        }
        Timestamps::Auto if plan.classes.iter().all(|class| is_always_shared(plan, class)) => {
            Err(Some("no request is alone on its connection (--depth)".to_owned()))
        }
        Timestamps::Auto => match timestamps_work() {
            Ok(()) => Ok(STAMPED_EVERY),
            Err(reason) => Err(Some(format!("not supported by this kernel: {reason}"))),
        },
    }
}

impl Blueprint {
    pub(crate) fn new(plan: Plan, endpoints: Vec<Endpoint>, data: DataSets) -> Self {
        let router = |path: &Path| {
            let address = |server: &u16| endpoints[usize::from(*server)].server.clone();
            let servers: Vec<ServerAddress> = path.servers.iter().map(address).collect();
            let by_key = servers.len() > 1 && plan.placement.is_by_key() && !plan.is_cluster;
            by_key.then(|| Arc::new(Router::new(plan.placement, &servers)))
        };
        let routers = |class: &Class| class.paths.iter().map(router).collect();
        let routers = plan.classes.iter().map(routers).collect();
        let sets = plan.data_sets();
        let data_sets: Vec<DataSet> = sets
            .iter()
            .map(|set| DataSet {
                keys: Arc::new(KeyGenerator::new(set, plan.data_seed)),
                extends: set.extends,
                ttl_s: set.ttl_s,
                class: set.classes[0],
                path: plan.classes[set.classes[0]].path_index(OpKind::Set),
            })
            .collect();
        let place = |class| sets.iter().position(|set| set.classes.contains(&class)).unwrap_or(0);
        let data_set_of_class = (0..plan.classes.len()).map(place).collect();
        let chooser = |class: &Class| {
            Arc::new(KeyChooser::new(&class.popularity, class.drift, class.keyspace.keys, plan.data_seed))
        };
        let choosers = plan.classes.iter().map(chooser).collect();
        let deltas = |class: &Class| Arc::new(Sizes::new(class.delta.clone(), SizeOf::Delta, plan.data_seed));
        let deltas = plan.classes.iter().map(deltas).collect();
        let value_max = plan.classes.iter().map(Class::value_bytes_max).max().unwrap_or(0);
        let payload = Payload::new(plan.data_seed, value_max);
        // One block for all: it depends on the data seed only.
        let payload = match data_sets.iter().find_map(|set| set.keys.table()) {
            Some(table) => payload.with_table(table),
            None => payload,
        };
        let has_zeros = data_sets.iter().any(|set| set.keys.has_zeros());
        let payload = if has_zeros { payload.with_zeros(value_max) } else { payload };
        Self {
            payload: Arc::new(payload),
            busy: plan.has_open_loop().then(|| {
                let is_unanswered = plan.classes.iter().any(|class| class.noreply);
                Arc::new(SharedBusyPeriods::new(endpoints.len(), is_unanswered))
            }),
            layout: Layout::of(&plan),
            routers,
            slot_map: None,
            commands: Arc::new([]),
            data_sets,
            data_set_of_class,
            choosers,
            deltas,
            is_to_store: plan.preload && data != DataSets::Stored,
            is_to_delete: data == DataSets::ToDelete,
            stamped_every: stamped_every(&plan),
            plan: Arc::new(plan),
            endpoints,
        }
    }

    /// Adds the slot map of a cluster.
    pub(crate) fn with_slots(mut self, slot_map: Option<Arc<SharedSlotMap>>) -> io::Result<Self> {
        self.commands = commands(&self.plan, self.plan.protocol)?.into();
        self.slot_map = slot_map;
        Ok(self)
    }

    fn part_of(&self, shard: Shard) -> WorkerPart {
        let connections = self.connections_of(&shard);
        let classes = self.plan.classes.iter().zip(&connections);
        let routes = classes.map(|(class, connections)| routes_of(class, connections)).sum();
        WorkerPart { shard, connections, routes }
    }

    /// A worker's connections of each class. Connection `c` of a path goes to server `c` modulo their number, so
    /// that servers share connections evenly over all workers; with placement by thread all go to the worker's
    /// server.
    fn connections_of(&self, shard: &Shard) -> Vec<ClassConnections> {
        let mut next = 0;
        let mut to_server = |shard: &ClassShard, server: u32, of: u32| {
            let only = self.plan.placement.of_worker(shard.part.index, of);
            let start = next;
            next += shard
                .connections
                .clone()
                .filter(|connection| only.unwrap_or(connection % of) == server)
                .count() as u32;
            start..next
        };
        let mut of_path = |shard: &ClassShard, path: &Path| {
            let of = path.servers.len() as u32;
            (0..of).map(|server| to_server(shard, server, of)).collect()
        };
        let mut of_class = |(class, shard): (&Class, &ClassShard)| match shard.connections.is_empty()
            || class.connections_of.is_some()
        {
            true => ClassConnections::new(),
            false => class.paths.iter().map(|path| of_path(shard, path)).collect(),
        };
        let classes = self.plan.classes.iter().zip(&shard.classes);
        let owned: Vec<ClassConnections> = classes.map(&mut of_class).collect();
        (0..owned.len()).map(|class| owned[self.plan.connection_owner(class)].clone()).collect()
    }

    /// The paths of a worker's classes.
    fn paths_of<'a>(&'a self, shard: &'a Shard) -> impl Iterator<Item = (&'a Class, &'a Path)> {
        let is_carried = |(_, shard): &(_, &ClassShard)| !shard.connections.is_empty();
        let classes = self.plan.classes.iter().zip(&shard.classes).filter(is_carried);
        classes.flat_map(|(class, _)| class.paths.iter().map(move |path| (class, path)))
    }

    /// Class and server of every connection, by index.
    fn connection_plans(&self, class_connections: &[ClassConnections]) -> Vec<ConnectionPlan> {
        let mut plans = Vec::new();
        for class in (0..class_connections.len()).filter(|class| self.plan.connection_owner(*class) == *class)
        {
            for (of_path, path) in class_connections[class].iter().zip(&self.plan.classes[class].paths) {
                for (range, server) in of_path.iter().zip(&path.servers) {
                    let by_datagram = path.transport == Transport::Udp;
                    let plan = ConnectionPlan { class: class as u16, server: *server, by_datagram };
                    plans.extend(std::iter::repeat_n(plan, range.len()));
                }
            }
        }
        plans
    }

    /// By connection of a worker, in the order of `connection_plans`: may the kernel take timestamps of its requests? Of the connections
    /// of a class to a server the first may, and one in so many of the others.
    fn stamped(&self, worker: &WorkerPart) -> Vec<bool> {
        let Ok(every) = self.stamped_every else { return Vec::new() };
        let mut next: HashMap<(u16, u16), u32> = HashMap::new();
        let plans = self.connection_plans(&worker.connections);
        let is_stamped = |connection: &ConnectionPlan| {
            let place = next.entry((connection.class, connection.server)).or_default();
            *place += 1;
            !connection.by_datagram
                && is_plain_tcp(&self.endpoints[usize::from(connection.server)])
                && (*place - 1).is_multiple_of(every)
        };
        let stamped: Vec<bool> = plans.iter().map(is_stamped).collect();
        if stamped.contains(&true) { stamped } else { Vec::new() }
    }

    /// Does a worker have connections of this transport?
    pub(crate) fn uses_transport(&self, shard: &Shard, transport: Transport) -> bool {
        self.paths_of(shard).any(|(_, path)| path.transport == transport)
    }

    /// Does every server have a TLS client exactly if its path uses TLS?
    pub(super) fn has_tls_clients(&self, shard: &Shard) -> bool {
        let has_client = |server: &u16| self.endpoints[usize::from(*server)].tls.is_some();
        let is_right = |path: &Path| {
            path.servers.iter().all(|server| has_client(server) == (path.transport == Transport::Tls))
        };
        self.paths_of(shard).all(|(_, path)| is_right(path))
    }

    /// Maximum keys and key bytes of a request, and copied bytes of a value.
    fn longest_request(&self) -> (usize, usize, usize) {
        let (mut keys, mut key_bytes, mut value) = (1, 0, 0);
        for class in &self.plan.classes {
            let count = keys_max(class);
            keys = keys.max(count);
            key_bytes = key_bytes.max(count * class.key_bytes_max() as usize);
            // The head of a value is always copied, the rest if it is short; so a value shorter than the longest
            // may need most room.
            let size = &class.keyspace.value_size;
            let head = HEAD_LEN as u32;
            let copied = |bytes: u32| HEAD_LEN + Out::copied_len(bytes.saturating_sub(head) as usize);
            let least = if class.trace.is_some() { 0 } else { size.min() };
            let most = class.value_bytes_max();
            let longest_copied = (Out::REFERENCE_FROM as u32 - 1 + head).clamp(least, most);
            value = value.max(copied(longest_copied)).max(copied(most));
        }
        (keys, key_bytes, value)
    }

    /// The deepest pipeline of any class.
    fn depth_max(&self) -> u32 {
        self.plan.classes.iter().map(|class| class.depth).max().unwrap_or(1)
    }

    /// Bytes of a connection's send queue, for requests of this size. Over TLS it does not grow with the pipeline:
    /// a memcached without room for a whole record reads no further until the next record.
    fn send_room(&self, request_bytes_max: usize) -> usize {
        let depth = if self.plan.uses_transport(Transport::Tls) { 1 } else { self.depth_max() };
        room_of(request_bytes_max, depth)
    }

    /// Parameters of this worker's ring.
    pub(crate) fn ring_of(&self, shard: &Shard) -> uring::Shape {
        let reply = |class: &Class| reply_bytes_max(class).saturating_mul(class.depth as usize);
        let reply_bytes = self.plan.classes.iter().map(reply).max().unwrap_or(0);
        let connections = self.connection_plans(&self.connections_of(shard));
        uring::Shape {
            connections: connections.len(),
            reply_bytes,
            datagrams: connections.iter().filter(|connection| connection.by_datagram).count(),
            sockets: self.plan.sockets,
            gather: self.plan.gather,
        }
    }

    /// Wraps a codec for datagrams, for the worker with this shard.
    pub(crate) fn datagram_codec<C: Codec>(&self, codec: C, shard: &Shard) -> DatagramCodec<C> {
        let preload_depth =
            if self.stores_by_datagram(shard) { self.preload_depth(shard) as usize } else { 1 };
        let waiting = |class: &Class| {
            let follow_ups = if class.on_miss == OnMiss::Set { keys_max(class) } else { 1 };
            (class.depth as usize * follow_ups).max(preload_depth)
        };
        let by_datagram = || self.paths_of(shard).filter(|(_, path)| path.transport == Transport::Udp);
        let waiting = by_datagram().map(|(class, _)| waiting(class)).max().unwrap_or(1);
        // A train may be a whole reply.
        let longest = by_datagram().map(|(class, _)| reply_bytes_max(class)).max().unwrap_or(0);
        let others = longest.div_ceil(PAYLOAD_BYTES_MAX).saturating_sub(1).min(usize::from(AHEAD_MAX));
        let codec = DatagramCodec::new(codec, waiting, 0);
        let place_bytes = connection_count(&self.plan, shard) * codec.places() * DATAGRAM_ROOM;
        let room = (HELD_BYTES / place_bytes.max(1)).max(1);
        let of_key = |class: &Class| {
            let (keys, values) = (class.keyspace.key_size.max(), class.keyspace.value_size.max());
            (REPLY_FRAME_BYTES + keys as usize + values as usize).div_ceil(PAYLOAD_BYTES_MAX)
        };
        let key_train_max = by_datagram().map(|(class, _)| of_key(class)).max().unwrap_or(1);
        DatagramCodec::new(codec.into_dialect(), waiting, others.min(room) as u16)
            .with_key_trains(key_train_max.min(usize::from(u16::MAX)) as u16)
    }

    /// Does a preload of this worker use datagrams?
    fn stores_by_datagram(&self, shard: &Shard) -> bool {
        let by_datagram = |set: &DataSet| {
            !shard.classes[set.class].connections.is_empty()
                && self.plan.classes[set.class].paths[set.path].transport == Transport::Udp
        };
        self.data_sets.iter().any(by_datagram)
    }

    /// Depth of the preload on each connection.
    fn preload_depth(&self, shard: &Shard) -> u32 {
        let depth_max = self.depth_max();
        if !self.is_to_store {
            return depth_max;
        }
        let connections = (connection_count(&self.plan, shard) as u32).max(1);
        if self.stores_by_datagram(shard) {
            // What exceeds a server's socket buffer is lost, and costs a timeout.
            return (PRELOAD_DATAGRAMS / connections / self.plan.threads.max(1)).max(1);
        }
        depth_max.max((PRELOAD_IN_FLIGHT / connections).clamp(1, PRELOAD_DEPTH_MIN))
    }

    /// The slot table of a worker.
    fn slots(&self, worker: u32, capacities: &Capacities) -> Option<SlotTable> {
        let slot_map = self.slot_map.clone()?;
        let command_bytes = |command: &Command| {
            let text = &command.template;
            text.len() + text.matches("{key}").count() * KEY_BYTES_MAX
        };
        let room = SlotTableCapacity {
            operations: capacities.in_flight * capacities.keys + capacities.waiting,
            keys: capacities.keys,
            routed_bytes: self.plan.commands.iter().map(command_bytes).max().unwrap_or(0),
        };
        Some(SlotTable::new(slot_map, self.commands.clone(), room, worker))
    }
}

/// Routes of a worker for a class.
fn routes_of(class: &Class, class_connections: &ClassConnections) -> usize {
    match class.sessions {
        SessionScope::Worker => class_connections.iter().map(Vec::len).sum(),
        SessionScope::Connection => count_of(class_connections),
        SessionScope::Client { connections } => {
            let clients = class_connections
                .iter()
                .map(|of_path| of_path.iter().map(|range| range.len()).sum::<usize>());
            let clients = clients.max().unwrap_or(0) / connections as usize;
            clients * class_connections.iter().map(Vec::len).sum::<usize>()
        }
    }
}

/// Maximum length of a reply of a class, as far as the plan knows the values.
fn reply_bytes_max(class: &Class) -> usize {
    let (keys, values) = (class.keyspace.key_size.max() as usize, class.keyspace.value_size.max() as usize);
    (REPLY_FRAME_BYTES + keys + values).saturating_mul(keys_max(class))
}

/// Maximum keys of one operation of a class, and so fills after it.
fn keys_max(class: &Class) -> usize {
    if class.mix.contains(OpKind::Mget) { usize::from(class.multiget) } else { 1 }
}

/// Bytes of a connection's send queue: a whole pipeline within the bounds, and at least one request.
fn room_of(request_bytes_max: usize, depth: u32) -> usize {
    request_bytes_max.saturating_mul(depth as usize).clamp(ROOM_MIN, ROOM_MAX).max(request_bytes_max)
}

/// Builds a worker with its connections, lanes and memory.
pub(crate) fn build<C: Codec, I: Io>(
    blueprint: &Arc<Blueprint>,
    shard: Shard,
    orders: Arc<Orders>,
    exchange: Exchange,
    codec: C,
    mut io: I,
    cpus: Cpus,
) -> Worker<C, I> {
    let plan = &blueprint.plan;
    let preload_depth = blueprint.preload_depth(&shard);
    let worker = Arc::new(blueprint.part_of(shard));
    let (keys_max, key_bytes_max, value_copied) = blueprint.longest_request();
    let capacities = capacities(blueprint, &worker, preload_depth, (keys_max, key_bytes_max));
    let samples_max = share_of(plan.samples_max, worker.shard.part.index, worker.shard.part.of) as usize;
    let recording = Recording::new(
        RecorderSet::new(&blueprint.layout),
        exchange,
        &blueprint.layout.meters,
        samples_max,
        io.now_ns(),
    );
    let traffic = Traffic::new(TrafficParts {
        is_crowded: cpus == Cpus::Shared,
        room: blueprint
            .send_room(codec.encoded_len_max(keys_max, key_bytes_max, value_copied))
            .max(codec.connection_setup().bytes.len())
            + if blueprint.slot_map.is_some() { ASKING.len() } else { 0 },
        codec,
        connections: blueprint.connection_plans(&worker.connections),
        servers: blueprint.endpoints.len(),
        busy: BusyPeriods::new(blueprint.busy.clone()),
        lifetimes: lifetimes(blueprint, &worker),
        capacities,
        slots: blueprint.slots(worker.shard.part.index, &capacities),
        recording,
        stamped: blueprint.stamped(&worker),
        payload: blueprint.payload.clone(),
        timeout_ns: plan.timeout.0,
        has_windows: plan.classes.iter().any(|class| class.popularity.window().is_some()),
        audits: Audit::all(plan, worker.shard.part),
    });
    let preload_lanes = blueprint.preload_lanes(&worker, preload_depth);
    let unloaded = blueprint.unloaded_class(&worker).map(|_| {
        let (shared, worker) = (blueprint.clone(), worker.clone());
        let make: MakeUnloadedLanes = Box::new(move |start_ns| shared.unloaded_lanes(&worker, start_ns));
        make
    });
    let unloaded = Unloaded::new(unloaded, worker.shard.part.of);
    let shared = blueprint.clone();
    let make_lanes: MakeLanes = Box::new(move |window| shared.schedule_lanes(&worker, window));
    let (pace, endpoints) = (Pace::of(plan, cpus), blueprint.endpoints.clone());
    let lanes = (preload_lanes, unloaded, make_lanes);
    Worker::new(io, traffic, pace, plan.clone(), orders, endpoints, lanes)
}

/// A worker's connections of a class.
fn count_of(class_connections: &ClassConnections) -> usize {
    class_connections.iter().flatten().map(|range| range.len()).sum()
}

fn lifetimes(blueprint: &Blueprint, worker: &WorkerPart) -> Vec<Lifetimes> {
    let of_class = |(class, shard): (usize, &ClassShard)| {
        let mut by_server = vec![0..0; blueprint.endpoints.len()];
        // Lifetimes exist with a single path only.
        for (range, server) in worker.connections[class]
            .iter()
            .flatten()
            .zip(blueprint.plan.classes[class].paths.iter().flat_map(|path| &path.servers))
        {
            by_server[usize::from(*server)] = range.clone();
        }
        let plan = &blueprint.plan;
        if plan.connection_owner(class) != class {
            by_server.fill(0..0);
        }
        Lifetimes::new((class as ClassId, &plan.classes[class]), shard, plan.seed, &by_server)
    };
    worker.shard.classes.iter().enumerate().map(of_class).collect()
}

/// A worker's connections.
pub(crate) fn connection_count(plan: &Plan, shard: &Shard) -> usize {
    let of_class = |(class, shard): (&Class, &ClassShard)| class.paths.len() * shard.connections.len();
    let has_own = |(class, _): &(&Class, _)| class.connections_of.is_none();
    plan.classes.iter().zip(&shard.classes).filter(has_own).map(of_class).sum()
}

/// Capacities of a worker whose largest request has so many keys, in so many bytes.
fn capacities(
    blueprint: &Blueprint,
    worker: &WorkerPart,
    preload_depth: u32,
    (keys, key_bytes): (usize, usize),
) -> Capacities {
    let mut bounds = Capacities { keys, key_bytes, in_flight: 0, groups: 0, shared_slots: 0, waiting: 0 };
    for (class, class_connections) in blueprint.plan.classes.iter().zip(&worker.connections) {
        let connections = count_of(class_connections);
        let slots = connections * class.depth as usize;
        // In a cluster the servers may change.
        let servers = if blueprint.slot_map.is_some() {
            blueprint.endpoints.len()
        } else {
            class_connections.iter().map(Vec::len).sum()
        };
        let fills_misses = class.on_miss == OnMiss::Set;
        let extra = if fills_misses { slots * keys_max(class) } else { 0 };
        bounds.in_flight += (connections * preload_depth as usize).max(slots + extra);
        bounds.shared_slots += if fills_misses { slots } else { 0 };
        let waiting = if matches!(class.load, Load::Open { .. }) {
            servers * (WAITING_MAX / worker.routes).max(WAITING_MIN)
        } else {
            0
        };
        bounds.waiting += waiting;
        let splits = servers > 1 || blueprint.slot_map.is_some();
        if class.replicas > 1 {
            bounds.groups += (connections * preload_depth as usize).max(slots) + waiting;
        } else if splits && class.mix.contains(OpKind::Mget) {
            bounds.groups += slots + waiting;
        }
    }
    bounds
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::loopback::plan;
    use brunt_workload::session::PhaseTimes;

    /// What is far behind is sent in few pieces, and connections by the thousand take little memory.
    #[test]
    fn send_queues_have_room_for_a_pipeline() {
        // (bytes of the longest request, depth, room)
        let table =
            [(30, 1, 4096), (1090, 1, 4096), (1090, 10, 10_900), (1090, 1000, 65_536), (100_000, 2, 100_000)];
        for (bytes, depth, room) in table {
            assert_eq!(room_of(bytes, depth), room, "{bytes} bytes, depth {depth}");
        }
    }

    /// There is room for every value of a size law: what is copied of it is its head and, where that is short, the rest.
    #[test]
    fn the_longest_request_is_as_long_as_any() {
        let table = [
            "0",
            "10",
            "200",
            "4095",
            "4096",
            "4100",
            "4111",
            "4112",
            "uniform:10,9000",
            "uniform:4112,9000",
        ];
        for text in table {
            let plan = plan(&format!("value-size = '{text}'"));
            let sizes = plan.classes[0].keyspace.value_size.clone();
            let endpoint = Endpoint { server: "sim:1".parse().unwrap(), addresses: Vec::new(), tls: None };
            let (_, _, room) = Blueprint::new(plan, vec![endpoint], DataSets::ToStore).longest_request();
            for len in sizes.min()..=sizes.max() {
                let head = (len as usize).min(HEAD_LEN);
                assert!(
                    head + Out::copied_len(len as usize - head) <= room,
                    "{len} of {text}: room for {room}"
                );
            }
        }
    }

    #[test]
    fn runs_without_timestamps_say_why() {
        let only_tcp = Err(Some("only plain TCP has them"));
        let table = [
            ("timestamps = 'off'", Err(None)),
            ("timestamps = 'kernel'", Ok(1)),
            ("", Ok(STAMPED_EVERY)),
            ("transport = 'udp'", only_tcp),
            ("server = 'unix:/a'", only_tcp),
            ("server = 'a'\ntransport = 'tls'", only_tcp),
            ("depth = 2", Err(Some("no request is alone on its connection (--depth)"))),
            ("depth = 2\nthink = '1ms'", Ok(STAMPED_EVERY)),
            ("depth = 2\nrate = 1000", Ok(STAMPED_EVERY)),
            ("depth = 2\nserver = ['a', 'b']", Ok(STAMPED_EVERY)),
            ("[[class]]\ndepth = 2\n[[class]]", Ok(STAMPED_EVERY)),
            ("[[class]]\n[[class.route]]\nops = ['get']\ntransport = 'udp'", Ok(STAMPED_EVERY)),
        ];
        for (toml, expected) in table {
            let found = stamped_every(&plan(toml));
            assert_eq!(found.as_ref().copied().map_err(Option::as_deref), expected, "{toml}");
        }
    }

    /// Which servers the connections of each worker go to, by path.
    fn servers_of_workers(toml: &str) -> Vec<Vec<u16>> {
        let plan = plan(toml);
        let endpoint = |server: &brunt_plan::plan::Server| Endpoint {
            server: server.address.clone().unwrap(),
            addresses: Vec::new(),
            tls: None,
        };
        let endpoints = plan.servers.iter().map(endpoint).collect();
        let shards = brunt_plan::shard::shards(&plan);
        let blueprint = Blueprint::new(plan, endpoints, DataSets::ToStore);
        let of_worker = |shard: &Shard| {
            let plans = blueprint.connection_plans(&blueprint.connections_of(shard));
            plans.iter().map(|index| index.server).collect()
        };
        shards.iter().map(of_worker).collect()
    }

    /// A lane that looks for records again has none that a full queue could have kept.
    #[test]
    fn lanes_without_a_block_keep_nothing() {
        let plan = plan("trace = 't'\ntrace-layout = 'twitter'\nreplay = true");
        let endpoint = Endpoint { server: "sim:1".parse().unwrap(), addresses: Vec::new(), tls: None };
        let shard = brunt_plan::shard::shards(&plan).remove(0);
        let blueprint = Blueprint::new(plan, vec![endpoint], DataSets::ToStore);
        let window = PhaseTimes { start_ns: 0, measure_ns: 0, end_ns: 1_000 };
        let mut lane = blueprint.schedule_lanes(&blueprint.part_of(shard), window).lanes.remove(0);
        lane.kept_ns = (0, 100);
        lane.session.retry_at(50, 0);
        assert_eq!((lane.session.due_ns(), lane.is_kept_in_schedule()), (50, false));
    }

    /// As memaslap's manual prints it: threads 0 and 3 have the first server, 1 and 4 the second, 2 and 5 the third.
    #[test]
    fn workers_take_servers_in_turn() {
        let toml = "threads = 6\nconnections = 36\nserver = ['a', 'b', 'c']\nplacement = 'by-thread'";
        let expected: Vec<Vec<u16>> = [0, 1, 2, 0, 1, 2].map(|server| vec![server; 6]).to_vec();
        assert_eq!(servers_of_workers(toml), expected);
        // Of every path; those over UDP are servers of their own.
        let toml = "threads = 3\nconnections = 6\nserver = ['a', 'b']\nplacement = 'by-thread'\n[[class]]\n\
                    [[class.route]]\nops = ['get']\ntransport = 'udp'";
        assert_eq!(servers_of_workers(toml), [[0, 0, 2, 2], [1, 1, 3, 3], [0, 0, 2, 2]]);
    }
}
