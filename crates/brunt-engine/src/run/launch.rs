//! Starts the threads of workers: pins them, chooses codec and Io, and runs the loop.
//!
//! The one `match` on the kernel interface is here. Invariant: a thread returns the results of its worker, or why it could not
//! run.

use crate::clock::Clock;
#[cfg(not(test))]
use crate::codecs;
use crate::codecs::CodecVisitor;
use crate::io::Io;
use crate::io::epoll::Epoll;
use crate::io::uring::Uring;
use crate::run::blueprint::{Blueprint, build, connection_count};
use crate::run::host::wake_up_ns;
use crate::run::kernel_interface::KernelInterface;
use crate::state::lane::Feeds;
use crate::state::recording::{Exchange, Filled};
use crate::system_error::{cannot, start_thread};
use crate::worker::pace::Cpus;
use crate::worker::{Notice, Orders, Worker, WorkerEnd};
use brunt_plan::plan::{Transport, Wait};
use brunt_plan::shard::Shard;
use brunt_proto::Codec;
use brunt_stats::recorder::RecorderSet;
use std::io;
use std::sync::Arc;
use std::sync::mpsc;
use std::thread::JoinHandle;

/// One worker as the control thread sees it.
pub(crate) struct WorkerHandle {
    pub thread: JoinHandle<io::Result<WorkerEnd>>,
    pub filled: rtrb::Consumer<Filled>,
    pub spares: rtrb::Producer<Box<RecorderSet>>,
    /// When the last interval ended that it handed over.
    pub until_ns: u64,
}

/// What a worker's thread is started with.
pub(crate) struct WorkerSeed {
    pub blueprint: Arc<Blueprint>,
    pub shard: Shard,
    /// Its number on this host, and how many there are.
    pub number: u32,
    pub of: u32,
    /// Its traces.
    pub feeds: Feeds,
    pub orders: Arc<Orders>,
    pub exchange: Exchange,
    pub clock: Clock,
    pub notices: mpsc::Sender<Notice>,
    pub interface: KernelInterface,
}

impl WorkerSeed {
    /// Starts the thread.
    pub(crate) fn start(self) -> io::Result<JoinHandle<io::Result<WorkerEnd>>> {
        start_thread(&format!("brunt-worker-{}", self.shard.part.index), move || {
            // Otherwise the kernel may extend a sleep by 50 µs. Where a sandbox refuses it, the lateness of sleeps that is measured has it.
            let _ = rustix::thread::set_current_timer_slack(std::num::NonZero::new(1));
            pin(&self.blueprint.plan.cpus, self.number)?;
            self.run()
        })
    }

    /// Runs the worker with the codec of its shard's protocol.
    #[cfg(not(test))]
    fn run(self) -> io::Result<WorkerEnd> {
        let blueprint = self.blueprint.clone();
        codecs::with_codec(&blueprint.plan, self.shard.protocol, self)?
    }

    /// Tests of this crate use sockets with one protocol and the simulator with all; those of the binary use every
    /// protocol over every kind of socket. Compiling all loops here as well would take most of the time of these
    /// tests.
    #[cfg(test)]
    fn run(self) -> io::Result<WorkerEnd> {
        assert_eq!(self.shard.protocol, brunt_plan::plan::Protocol::MemcachedText);
        self.visit_datagrams(brunt_proto::memcached::TextCodec::default())
    }

    /// Runs the worker over `io` until its end.
    fn run_loop<C: Codec, I: Io>(self, codec: C, io: I) -> WorkerEnd {
        let Self { blueprint, shard, feeds, orders, exchange, notices, .. } = self;
        let cpus = Cpus::beside(self.of, parallelism());
        let mut worker = build(&blueprint, shard, orders, exchange, codec, io, cpus);
        let sleeps = blueprint.plan.wait != Wait::Spin || !blueprint.plan.has_open_loop();
        if sleeps && worker.counts_wake_ups() {
            // On this thread, whose CPU may be its own. The sleeps of the run take its place.
            worker.set_wake_up(wake_up_ns());
        }
        drive(worker.with_feeds(feeds), &notices)
    }
}

impl CodecVisitor for WorkerSeed {
    type Output = io::Result<WorkerEnd>;

    /// Runs the worker with this codec. The endpoints say which sockets and which TLS its connections use.
    fn visit<C: Codec>(self, codec: C) -> Self::Output {
        let plan = &self.blueprint.plan;
        // `resolve` and the lookup of servers have excluded both.
        if self.blueprint.uses_transport(&self.shard, Transport::Udp) && !C::DATAGRAMS {
            return Err(io::Error::other("a protocol that has no datagrams"));
        }
        if !self.blueprint.has_tls_clients(&self.shard) {
            return Err(io::Error::other("a server without its client of TLS"));
        }
        Ok(match self.interface {
            KernelInterface::Epoll => {
                let connections = connection_count(plan, &self.shard);
                let io = Epoll::new(connections, plan.sockets, plan.gather, self.clock)
                    .map_err(|error| cannot("create the epoll instance of a worker")(error.into()))?;
                self.run_loop(codec, io)
            }
            KernelInterface::Uring => {
                let io = Uring::new(self.blueprint.ring_of(&self.shard), self.clock)
                    .map_err(cannot("create the io_uring of a worker"))?;
                self.run_loop(codec, io)
            }
        })
    }

    fn visit_datagrams<C: Codec>(self, codec: C) -> Self::Output {
        if !self.blueprint.uses_transport(&self.shard, Transport::Udp) {
            return self.visit(codec);
        }
        let codec = self.blueprint.datagram_codec(codec, &self.shard);
        self.visit(codec)
    }
}

/// Pins the calling thread to its CPU, if the plan names CPUs.
pub(crate) fn pin(cpus: &[u32], worker: u32) -> io::Result<()> {
    if cpus.is_empty() {
        return Ok(());
    }
    let cpu = cpus[worker as usize % cpus.len()];
    let mut set = rustix::thread::CpuSet::new();
    set.set(cpu as usize);
    rustix::thread::sched_setaffinity(None, &set)
        .map_err(|error| cannot(&format!("pin a worker to CPU {cpu} (--cpus)"))(error.into()))
}

/// Iterates until the end. A function of its own in every compiled loop, so that these can be counted.
#[inline(never)]
fn drive<C: Codec, I: Io>(mut worker: Worker<C, I>, notices: &mpsc::Sender<Notice>) -> WorkerEnd {
    while worker.is_running() {
        worker.run_once();
        if let Some(notice) = worker.take_notice() {
            // A control thread that no longer receives has aborted all workers.
            let _ = notices.send(notice);
        }
    }
    worker.end()
}

/// CPUs that this process may use at a time: its affinity, within its quota.
fn parallelism() -> u32 {
    std::thread::available_parallelism().map_or(1, |count| count.get() as u32)
}

/// Numbers of the CPUs that this process may run on.
pub fn allowed_cpus() -> Vec<u32> {
    let Ok(set) = rustix::thread::sched_getaffinity(None) else { return (0..parallelism()).collect() };
    (0..rustix::thread::CpuSet::MAX_CPU as u32).filter(|cpu| set.is_set(*cpu as usize)).collect()
}
