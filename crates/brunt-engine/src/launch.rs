//! Building workers: everything a thread owns is made here, and the one `match` on protocol and kernel interface is here.
//!
//! Not the loop. After this file has done its work, a worker never allocates again.

use crate::clock::Clock;
use crate::io::Io;
use crate::io::epoll::Epoll;
use crate::lane::Lane;
use crate::pace::Pace;
use crate::recording::{Exchange, Recording};
use crate::run::{Endpoint, Hand};
use crate::traffic::{Traffic, TrafficParts, Window};
use crate::worker::{MakeLanes, Notice, Orders, Terms, Worker, WorkerEnd, WorkerParts};
use brunt_plan::op::OpKind;
use brunt_plan::plan::{Class, IoChoice, Keyspace, MeterKind, Plan, Protocol, SessionScope};
use brunt_plan::shard::{Shard, StreamPart};
use brunt_proto::Codec;
use brunt_proto::memcached::text::TextCodec;
use brunt_proto::out::Out;
use brunt_stats::recorder::{Layout, RecorderSet};
use brunt_workload::keys::KeySpace;
use brunt_workload::payload::Payload;
use brunt_workload::popularity::KeyChooser;
use brunt_workload::session::{Session, SessionSpec};
use std::io;
use std::ops::Range;
use std::sync::Arc;
use std::sync::mpsc;

/// The most operations that wait for a connection in a worker; about 100 bytes each. Behind that the schedule itself is the
/// queue; an operation that waits there has its wait booked as the client's, which errs on the side of convicting us.
const WAITING_MAX: usize = 1 << 17;
/// However many lanes share that, each has room for a burst.
const WAITING_MIN: usize = 1 << 8;
/// Room for requests that are sent together, where one alone needs less.
const ROOM_MIN: usize = 4096;
/// A preload goes at least this deep, however shallow the plan: nothing is measured in it.
const PRELOAD_DEPTH_MIN: u32 = 32;

/// What all workers of a run share, read-only.
pub(crate) struct Blueprint {
    pub plan: Plan,
    pub endpoints: Vec<Endpoint>,
    payload: Arc<Payload>,
    /// The distinct data sets, and which of them each class uses.
    keyspaces: Vec<(Keyspace, Arc<KeySpace>)>,
    keyspace_of_class: Vec<usize>,
    choosers: Vec<Arc<KeyChooser>>,
    pub layout: Layout,
}

impl Blueprint {
    pub(crate) fn new(plan: Plan, endpoints: Vec<Endpoint>) -> Self {
        let keyspaces: Vec<(Keyspace, Arc<KeySpace>)> = plan
            .data_sets()
            .into_iter()
            .map(|set| (set.keyspace.clone(), Arc::new(KeySpace::new(&set, plan.data_seed))))
            .collect();
        let place =
            |wanted: &Keyspace| keyspaces.iter().position(|(keyspace, _)| keyspace == wanted).unwrap_or(0);
        let keyspace_of_class = plan.classes.iter().map(|class| place(&class.keyspace)).collect();
        let choosers = plan
            .classes
            .iter()
            .map(|class| {
                let keys = class.keyspace.keys;
                Arc::new(KeyChooser::new(&class.popularity, class.drift, keys, plan.data_seed))
            })
            .collect();
        let value_max = plan.classes.iter().map(|class| class.keyspace.value_size.max()).max().unwrap_or(0);
        let mut layout = Layout::of(&plan);
        // Always metered: the report states what a send costs, because that bounds how evenly requests can be spaced.
        if !layout.meters.contains(&MeterKind::SendCost) {
            layout.meters.push(MeterKind::SendCost);
        }
        Self {
            payload: Arc::new(Payload::new(plan.data_seed, value_max)),
            layout,
            keyspaces,
            keyspace_of_class,
            choosers,
            plan,
            endpoints,
        }
    }

    /// How many keys preload stores.
    pub(crate) fn preload_keys(&self) -> u64 {
        self.keyspaces.iter().map(|(keyspace, _)| keyspace.keys).sum()
    }

    /// The connections of each class within a worker, numbered from 0.
    fn connections(&self, shard: &Shard) -> Vec<Range<u32>> {
        let mut next = 0;
        let range = |class: &brunt_plan::shard::ClassShard| {
            let start = next;
            next += class.connections.len() as u32;
            start..next
        };
        shard.classes.iter().map(range).collect()
    }

    /// Keys and key bytes of the longest request of a class, and the copied bytes of its longest value.
    fn longest_request(&self) -> (usize, usize, usize) {
        let (mut keys, mut key_bytes, mut value) = (1, 0, 0);
        for class in &self.plan.classes {
            let count = if class.mix.contains(OpKind::Mget) { usize::from(class.multiget) } else { 1 };
            keys = keys.max(count);
            key_bytes = key_bytes.max(count * class.keyspace.key_size.max() as usize);
            // The head of a value is copied in any case.
            let size = &class.keyspace.value_size;
            let copied = |bytes: u32| 16 + Out::copied_len(bytes as usize);
            value = value.max(copied(size.min().max(size.max().min(4095 + 16)))).max(copied(size.max()));
        }
        (keys, key_bytes, value)
    }

    fn preload_lanes(&self, shard: &Shard, connections: &[Range<u32>], depth: u32) -> Vec<Lane> {
        if !self.plan.preload {
            return Vec::new();
        }
        let lane = |(index, ids): (usize, &Range<u64>)| {
            // The connections of the first class that uses this data set.
            let class = self.keyspace_of_class.iter().position(|used| *used == index)?;
            let range = connections[class].clone();
            let session =
                Session::preload(class as u16, index as u32, ids.clone(), range.len() as u32, depth, 0);
            Some(Lane::new(session, self.keyspaces[index].1.clone(), true, range, depth, WAITING_MAX))
        };
        shard.preload.iter().enumerate().filter_map(lane).collect()
    }

    /// The lanes of the schedule: a session per worker and class, or one per connection.
    fn schedule_lanes(&self, shard: &Shard, connections: &[Range<u32>], window: Window) -> Vec<Lane> {
        let mut lanes = Vec::new();
        let sessions: usize =
            self.plan.classes.iter().zip(connections).map(|(class, range)| sessions_of(class, range)).sum();
        let waiting_max = (WAITING_MAX / sessions).max(WAITING_MIN);
        for (class_index, class) in self.plan.classes.iter().enumerate() {
            let own = &shard.classes[class_index];
            let range = connections[class_index].clone();
            let sessions: Vec<(Range<u32>, StreamPart, Option<u64>)> = match class.sessions {
                SessionScope::Worker => vec![(range, shard.part, own.requests)],
                SessionScope::Connection => range
                    .clone()
                    .map(|connection| {
                        let nth = connection - range.start;
                        let part = StreamPart { index: own.connections.start + nth, of: class.connections };
                        let budget = own.requests.map(|total| {
                            let share = brunt_plan::shard::share(total, nth, range.len() as u32);
                            share.end - share.start
                        });
                        (connection..connection + 1, part, budget)
                    })
                    .collect(),
            };
            for (range, part, budget) in sessions {
                let session = Session::new(SessionSpec {
                    class_id: class_index as u16,
                    session_id: lanes.len() as u32,
                    class,
                    part,
                    connections: range.len() as u32,
                    budget,
                    seed: self.plan.seed,
                    chooser: self.choosers[class_index].clone(),
                    window: brunt_workload::session::Window {
                        start_ns: window.start_ns,
                        measure_ns: window.measure_ns,
                        end_ns: window.end_ns,
                    },
                });
                let keyspace = self.keyspaces[self.keyspace_of_class[class_index]].1.clone();
                lanes.push(Lane::new(session, keyspace, false, range, class.depth, waiting_max));
            }
        }
        lanes
    }
}

/// How many sessions a worker has for a class.
fn sessions_of(class: &Class, connections: &Range<u32>) -> usize {
    match class.sessions {
        SessionScope::Worker => 1,
        SessionScope::Connection => connections.len(),
    }
}

/// Builds a worker with its connections, lanes and memory.
pub(crate) fn build<C: Codec, I: Io>(
    blueprint: &Arc<Blueprint>,
    shard: Shard,
    orders: Arc<Orders>,
    exchange: Exchange,
    codec: C,
    mut io: I,
    may_spin: bool,
) -> Worker<C, I> {
    let plan = &blueprint.plan;
    let connections = blueprint.connections(&shard);
    let total = connections.last().map_or(0, |range| range.end) as usize;
    let depth_max = plan.classes.iter().map(|class| class.depth).max().unwrap_or(1);
    let preload_depth = if plan.preload { depth_max.max(PRELOAD_DEPTH_MIN) } else { depth_max };
    let (keys_max, key_bytes_max, value_copied) = blueprint.longest_request();
    let samples = brunt_plan::shard::share(plan.samples_max, shard.part.index, shard.part.of);
    let samples_max = (samples.end - samples.start) as usize;
    let recording = Recording::new(
        RecorderSet::new(&blueprint.layout),
        exchange,
        &blueprint.layout.meters,
        samples_max,
        io.now_ns(),
    );
    let traffic = Traffic::new(TrafficParts {
        room: codec.encoded_len_max(keys_max, key_bytes_max, value_copied).max(ROOM_MIN),
        codec,
        connections: total,
        keys_max,
        key_bytes_max,
        in_flight_max: total * preload_depth as usize,
        recording,
        payload: blueprint.payload.clone(),
        timeout_ns: plan.timeout.0,
        checks_values: plan.preload,
    });
    let preload_lanes = blueprint.preload_lanes(&shard, &connections, preload_depth);
    let shared = blueprint.clone();
    let make_lanes: MakeLanes = Box::new(move |window| shared.schedule_lanes(&shard, &connections, window));
    Worker::new(WorkerParts {
        io,
        traffic,
        pace: Pace::new(plan.wait, may_spin),
        terms: Terms {
            timeout_ns: plan.timeout.0,
            warmup_ns: plan.warmup.0,
            time_ns: plan.stop.time.map(|time| time.0),
            drain_ns: plan.drain.0,
        },
        orders,
        addresses: blueprint.endpoints[0].addresses.clone(),
        preload_lanes,
        make_lanes,
    })
}

/// Starts a worker's thread.
pub(crate) fn spawn(
    blueprint: Arc<Blueprint>,
    shard: Shard,
    orders: Arc<Orders>,
    clock: Clock,
    notices: mpsc::Sender<Notice>,
) -> io::Result<Hand> {
    let (filled, filled_out) = rtrb::RingBuffer::new(2);
    let (mut spares, spares_in) = rtrb::RingBuffer::new(2);
    // The ring is new and has room for two.
    let _ = spares.push(RecorderSet::new(&blueprint.layout));
    let exchange = Exchange { filled, spares: spares_in };
    let name = format!("brunt-worker-{}", shard.part.index);
    let thread = std::thread::Builder::new().name(name).spawn(move || {
        // Without this a sleep ends up to 50 µs late by the kernel's own leave.
        rustix::thread::set_current_timer_slack(std::num::NonZero::new(1))?;
        let links = shard.classes.iter().map(|class| class.connections.len()).sum();
        let may_spin = shard.part.of <= parallelism();
        match (blueprint.plan.protocol, blueprint.plan.io) {
            (Protocol::MemcachedText, IoChoice::Auto | IoChoice::Epoll) => {
                let io = Epoll::new(links, clock)?;
                Ok(drive(
                    build(&blueprint, shard, orders, exchange, TextCodec::default(), io, may_spin),
                    &notices,
                ))
            }
        }
    })?;
    Ok(Hand { thread, filled: filled_out, spares })
}

/// Turns until the end.
fn drive<C: Codec, I: Io>(mut worker: Worker<C, I>, notices: &mpsc::Sender<Notice>) -> WorkerEnd {
    while worker.is_running() {
        worker.turn();
        if let Some(notice) = worker.take_notice() {
            // A control thread that no longer listens has already ordered everyone to leave.
            let _ = notices.send(notice);
        }
    }
    worker.end()
}

/// Processors that this process may use at a time: those it may run on, within its share of them.
fn parallelism() -> u32 {
    std::thread::available_parallelism().map_or(1, |count| count.get() as u32)
}

/// Processors that this process may run on, by number.
pub fn allowed_cpus() -> Vec<u32> {
    let Ok(set) = rustix::thread::sched_getaffinity(None) else { return (0..parallelism()).collect() };
    (0..rustix::thread::CpuSet::MAX_CPU as u32).filter(|cpu| set.is_set(*cpu as usize)).collect()
}
