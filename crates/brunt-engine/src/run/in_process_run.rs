//! Runs of the production worker over canned replies, within this process.
//!
//! The clock is virtual: a profiler counts what the worker spends per operation without kernel and server. Invariant:
//! the worker is built and driven as in a run, and every iteration goes through `run_one_iteration`, which a
//! profile shows by that name.

use crate::codecs::{self, CodecVisitor};
use crate::io::Io;
pub use crate::io::canned::{Calls, Interface};
use crate::io::canned::{Canned, Replies};
use crate::run::blueprint::{Blueprint, DataSets, build};
use crate::run::trace_reader::TraceReaders;
use crate::state::recording::{Exchange, Filled};
use crate::transport::Endpoint;
use crate::worker::pace::Cpus;
use crate::worker::{Notice, Orders, Worker};
use brunt_plan::phase::Phase;
use brunt_plan::plan::{Plan, Timestamps};
use brunt_plan::server::ServerAddress;
use brunt_plan::shard::{Shard, shards};
use brunt_proto::Codec;
use brunt_stats::request_counts::OpCounts;
use brunt_stats::store::IntervalStore;
use brunt_workload::keys::KeyGenerator;
use brunt_workload::payload::Payload;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// The schedule starts this long after everything is prepared.
const START_AHEAD_NS: u64 = 1_000_000;

/// Result of a run in virtual time, over all workers.
#[derive(Clone, Copy, Debug)]
pub struct InProcessRun {
    /// Counts of the measured operations.
    pub measured: OpCounts,
    /// Do the counts of every phase, class and operation add up?
    pub is_balanced: bool,
    /// Intervals that the workers handed over.
    pub intervals: u64,
    /// Calls to the Io during the schedule, without connecting and preload.
    pub calls: Calls,
}

/// Runs `plan` in virtual time until its operations have ended, over this interface. Several workers run one after
/// the other, each with its shard.
///
/// # Panics
/// When the plan has several classes, another protocol than memcached's text protocol, or operations other than get and
/// set (mget is several gets); or when its trace cannot be read.
pub fn run_in_virtual_time(plan: &Plan, interface: Interface) -> InProcessRun {
    run_with_replies(plan, interface, Replies::TEXT)
}

fn run_with_replies(plan: &Plan, interface: Interface, replies: Replies) -> InProcessRun {
    let blueprint = blueprint(plan);
    let run = |shard: Shard| {
        let job = InProcessJob { blueprint: &blueprint, io: canned(plan, &shard, interface, replies), shard };
        codecs::with_codec(&blueprint.plan, plan.protocol, job)
            .expect("the commands of the plan were checked")
    };
    let whole = shards(plan).into_iter().map(run).reduce(|mut whole, run| {
        whole.measured.merge(&run.measured);
        whole.is_balanced &= run.is_balanced;
        whole.intervals += run.intervals;
        whole.calls.merge(&run.calls);
        whole
    });
    whole.expect("a plan has a worker")
}

/// What all workers of a plan share.
fn blueprint(plan: &Plan) -> Arc<Blueprint> {
    assert_eq!(plan.classes.len(), 1, "a rehearsal has one class");
    // There is no kernel that could take timestamps, and every request is without load.
    let plan = Plan { timestamps: Timestamps::Off, measures_unloaded: false, ..plan.clone() };
    Arc::new(Blueprint::new(plan, vec![placeholder_endpoint()], DataSets::ToStore))
}

/// A worker to run, and its Io.
struct InProcessJob<'a> {
    blueprint: &'a Arc<Blueprint>,
    io: Canned,
    shard: Shard,
}

impl CodecVisitor for InProcessJob<'_> {
    type Output = InProcessRun;

    /// Does the control thread's work on the worker's thread.
    fn visit<C: Codec>(self, codec: C) -> InProcessRun {
        let Self { blueprint, io, shard } = self;
        let orders = Arc::new(Orders::default());
        let (exchange, mut filled_out, mut spares) = Exchange::new(&blueprint.layout);
        let watch = io.watch();
        let (readers, mut feeds) = TraceReaders::start(&blueprint.plan, std::slice::from_ref(&shard))
            .unwrap_or_else(|error| panic!("{}: {}", error.file, error.error));
        let worker = build(blueprint, shard, orders.clone(), exchange, codec, io, Cpus::Spare);
        let mut worker = worker.with_feeds(feeds.pop().unwrap_or_default());
        let mut store = IntervalStore::new(&blueprint.layout);
        let mut intervals = 0;
        while worker.is_running() {
            run_one_iteration(&mut worker);
            while let Ok(mut filled) = filled_out.pop() {
                intervals += 1;
                store_interval(&mut store, &mut filled);
                // The ring has a place for every set there is.
                let _ = spares.push(filled.set);
            }
            if let Some(notice) = worker.take_notice() {
                assert!(matches!(notice, Notice::Prepared), "canned replies are no trouble: {notice:?}");
                watch.take_calls();
                let start_ns = watch.now_ns() + START_AHEAD_NS;
                orders.start_ns.store(start_ns, Ordering::Release);
                store.align(start_ns + blueprint.plan.warmup.longest().0);
            }
        }
        store_interval(&mut store, &mut worker.end().last);
        readers.end();
        let mut measured = OpCounts::default();
        let counts = store.request_counts();
        let in_measure = counts.entries().filter(|entry| entry.phase == Phase::Measure);
        in_measure.for_each(|entry| measured.merge(&entry.counts));
        let is_balanced = counts.entries().all(|entry| entry.counts.adds_up());
        InProcessRun { measured, is_balanced, intervals, calls: watch.take_calls() }
    }
}

/// One iteration of the loop; a profile finds the worker under this name.
#[inline(never)]
fn run_one_iteration<C: Codec, I: Io>(worker: &mut Worker<C, I>) {
    worker.run_once();
}

/// Stores an interval: not part of an iteration, and allocates.
#[inline(never)]
fn store_interval(store: &mut IntervalStore, filled: &mut Filled) {
    store.push(&filled.take_interval(0));
}

/// An endpoint without a server.
fn placeholder_endpoint() -> Endpoint {
    let address = SocketAddr::from((Ipv4Addr::LOCALHOST, 1));
    let server = ServerAddress::network(address.ip().to_string(), address.port());
    Endpoint { server, addresses: vec![address.into()], tls: None }
}

/// The canned Io of one worker.
fn canned(plan: &Plan, shard: &Shard, interface: Interface, replies: Replies) -> Canned {
    let class = &plan.classes[0];
    let keyspace = KeyGenerator::new(&plan.data_sets()[0], plan.data_seed);
    let payload = Payload::new(plan.data_seed, keyspace.value_len_max());
    let connections = shard.classes[0].connections.len();
    Canned::new(replies, connections, class.depth as usize, keyspace, &payload, interface)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::allocations::allocations;
    use crate::loopback::plan as planned;
    use brunt_plan::outcome::OutcomeClass;
    use brunt_plan::plan::Protocol;

    /// Requests, connections, depth, completions per wait at most, mix; whatever it is, all of it is answered and right.
    #[test]
    fn every_request_is_a_hit() {
        let table = [
            (1_000u64, 16u64, 1u64, usize::MAX, "get"),
            (1_000, 16, 1, 1, "get"),
            (4_096, 64, 32, usize::MAX, "get"),
            (1_000, 4, 2, 3, "mget"),
            (1_000, 4, 40, 3, "get=1,set=1"),
            (1_000, 4, 3, 3, "get=2,mget=1,set=1"),
        ];
        let is_stored = |protocol: &Protocol| !protocol.is_stateless();
        let protocols = Protocol::ALL.into_iter().filter(is_stored).map(Protocol::name);
        let interfaces = [false, true];
        for ((protocol, (requests, connections, depth, completions_max, mix)), defers_sends) in protocols
            .flat_map(|protocol| table.map(|row| (protocol, row)))
            .flat_map(|row| interfaces.map(|defers_sends| (row, defers_sends)))
        {
            let toml = format!(
                "threads = 1\nseed = 1\nwarmup = '0s'\nkeys = 100\nrequests = {requests}\nserver = 'placeholder_endpoint'\n\
                 protocol = '{protocol}'\nconnections = {connections}\ndepth = {depth}\nmix = '{mix}'"
            );
            let plan = planned(&toml);
            let interface = Interface { completions_max, defers_sends };
            let rehearsal = run_with_replies(&plan, interface, Replies::of(plan.protocol));
            let counted = rehearsal.measured.requests;
            assert!(rehearsal.is_balanced, "{mix}");
            assert_eq!(
                (counted.scheduled, counted.sent, counted.completed()),
                (requests, requests, requests),
                "{mix}"
            );
            assert_eq!(counted.outcome(OutcomeClass::Miss) + counted.failed(), 0, "{mix}");
            let calls = rehearsal.calls;
            // A full queue is sent before the rest of its iteration is queued.
            assert!(calls.sends >= calls.completions, "{mix} {calls:?}");
            if depth == 1 {
                assert_eq!((calls.sends, calls.completions), (requests, requests), "{mix}");
            }
            let completions_per_wait = calls.completions as f64 / calls.waits as f64;
            assert!(completions_per_wait <= connections.min(completions_max as u64) as f64, "{calls:?}");
        }
    }

    /// What a worker allocates while its schedule runs; the world around it has its memory from the start.
    fn allocations_of<C: Codec>(codec: C, blueprint: &Arc<Blueprint>, interface: Interface) -> u64 {
        let shard = shards(&blueprint.plan).remove(0);
        let replies = Replies::of(blueprint.plan.protocol);
        let io = canned(&blueprint.plan, &shard, interface, replies);
        let watch = io.watch();
        let (exchange, mut filled_out, mut spares) = Exchange::new(&blueprint.layout);
        let orders = Arc::new(Orders::default());
        let mut worker = build(blueprint, shard, orders.clone(), exchange, codec, io, Cpus::Spare);
        let mut sum = 0;
        while worker.is_running() {
            let (is_counted, before) = (worker.is_measuring(), allocations());
            worker.run_once();
            sum += if is_counted { allocations() - before } else { 0 };
            while let Ok(mut filled) = filled_out.pop() {
                filled.take_interval(0);
                spares.push(filled.set).unwrap();
            }
            if worker.take_notice().is_some() {
                orders.start_ns.store(watch.now_ns() + START_AHEAD_NS, Ordering::Release);
            }
        }
        sum
    }

    struct Counted<'a> {
        blueprint: &'a Arc<Blueprint>,
        interface: Interface,
    }

    impl CodecVisitor for Counted<'_> {
        type Output = u64;

        fn visit<C: Codec>(self, codec: C) -> u64 {
            allocations_of(codec, self.blueprint, self.interface)
        }
    }

    /// Loopback and simulated tests use one protocol; here all of them run.
    #[test]
    fn a_running_worker_allocates_nothing_in_any_dialect() {
        let interfaces = [Interface::UNBOUNDED, Interface { defers_sends: true, ..Interface::UNBOUNDED }];
        for (protocol, interface) in
            Protocol::ALL.iter().flat_map(|protocol| interfaces.map(|interface| (protocol.name(), interface)))
        {
            let load = match protocol {
                "echo" => "command = ['{key}{random:70}', '{value}']",
                "ping" => "",
                "thrift" => "command = ['f 1:string={value} 2:i64={random}']",
                "resp-inline" => "value-size = 100\nmix = 'get=2,set=1'",
                _ => "mix = 'get=2,set=1'",
            };
            let toml = format!(
                "threads = 1\nseed = 1\nwarmup = '0s'\nkeys = 100\nrequests = 20000\nserver = 'placeholder_endpoint'\n\
                 protocol = '{protocol}'\nconnections = 4\ndepth = 8\n{load}"
            );
            let plan = planned(&toml);
            let blueprint = blueprint(&plan);
            let sum = codecs::with_codec(&plan, plan.protocol, Counted { blueprint: &blueprint, interface })
                .unwrap();
            assert_eq!(sum, 0, "{protocol} {interface:?}");
        }
    }

    /// Several workers do what one does, each its part, one after the other.
    #[test]
    fn workers_share_a_plan() {
        for threads in [1, 2, 4] {
            let toml = format!(
                "threads = {threads}\nseed = 1\nwarmup = '0s'\nkeys = 100\nconnections = 8\nmix = 'get'\nrequests = 1001"
            );
            let rehearsal = run_in_virtual_time(&planned(&toml), Interface::UNBOUNDED);
            assert!(rehearsal.is_balanced);
            assert_eq!(rehearsal.measured.requests.outcome(OutcomeClass::Hit), 1_001, "{threads} threads");
            assert_eq!(rehearsal.calls.sends, 1_001, "{threads} threads");
        }
    }
}
