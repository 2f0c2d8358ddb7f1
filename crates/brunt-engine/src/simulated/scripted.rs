//! A world that answers what is sent as it is told, and what a run in it comes to.
//!
//! Every byte is taken at once. Invariant: what comes at the same instant comes in the order of sending.

use super::{Kept, SECOND, START_AHEAD_NS, TURNS_MAX};
use crate::allocations::allocations;
use crate::io::{Chunk, CloseMode, Completion, CompletionKind, ConnectionIndex, Io, SendResult, Until};
use crate::run::blueprint::{Blueprint, build};
use crate::simulated::sim::EPOCH_NS;
use crate::state::recording::Exchange;
use crate::transport::Address;
use crate::transport::tls_client::TlsClient;
use crate::worker::pace::Cpus;
use crate::worker::{Notice, Orders, WorkerEnd};
use brunt_plan::shard::Shard;
use brunt_proto::Codec;
use std::collections::BTreeMap;
use std::io::IoSlice;
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// Where and when bytes were sent.
#[derive(Clone, Copy, Debug)]
pub(super) struct Wire {
    /// The number of the connection among all that there ever were.
    pub number: usize,
    pub port: u16,
    pub at_ns: u64,
}

/// What comes of bytes that were sent: when, counted from then, and what.
pub(super) type Answers = Box<dyn FnMut(Wire, &[u8]) -> Vec<(u64, Vec<u8>)>>;

/// The world.
pub(super) struct Scripted {
    now_ns: u64,
    answers: Answers,
    /// Replies come in pieces of so many bytes.
    piece_bytes: usize,
    /// To establish a connection takes so long.
    connect_ns: u64,
    /// For so long replies lie unread.
    unread_ns: u64,
    /// How many connections there were, and the last of each index.
    connections: usize,
    wires: BTreeMap<ConnectionIndex, (usize, u16)>,
    /// What is on its way, by when it comes.
    coming: BTreeMap<(u64, usize), (ConnectionIndex, CompletionKind, Vec<u8>)>,
    made: usize,
    current: Vec<u8>,
    /// Memory of the world's own.
    allocations: u64,
}

impl Scripted {
    pub(super) fn new(piece_bytes: usize, connect_ns: u64, unread_ns: u64, answers: Answers) -> Self {
        Self {
            now_ns: EPOCH_NS,
            answers,
            piece_bytes,
            connect_ns,
            unread_ns,
            connections: 0,
            wires: BTreeMap::new(),
            coming: BTreeMap::new(),
            made: 0,
            current: Vec::new(),
            allocations: 0,
        }
    }

    /// Does something whose memory is the world's own.
    fn own<T>(&mut self, act: impl FnOnce(&mut Self) -> T) -> T {
        let before = allocations();
        let result = act(self);
        self.allocations += allocations() - before;
        result
    }

    fn make(&mut self, index: ConnectionIndex, after_ns: u64, kind: CompletionKind, bytes: Vec<u8>) {
        self.made += 1;
        self.coming.insert((self.now_ns + after_ns, self.made), (index, kind, bytes));
    }

    fn answer(&mut self, index: ConnectionIndex, parts: &[IoSlice<'_>]) -> usize {
        let bytes: Vec<u8> = parts.iter().flat_map(|part| part.iter().copied()).collect();
        let (number, port) = self.wires[&index];
        for (after_ns, reply) in (self.answers)(Wire { number, port, at_ns: self.now_ns }, &bytes) {
            for piece in reply.chunks(self.piece_bytes) {
                let kind = CompletionKind::Received(Chunk { start: 0, len: piece.len() });
                self.make(index, after_ns, kind, piece.to_vec());
            }
        }
        bytes.len()
    }
}

impl Io for Scripted {
    fn now_ns(&mut self) -> u64 {
        self.now_ns
    }

    fn connect(
        &mut self,
        index: ConnectionIndex,
        address: &Address,
        _: Option<&TlsClient>,
        _: bool,
    ) -> Result<(), i32> {
        let port = address.network().map_or(0, |address| address.port());
        self.own(|world| {
            world.wires.insert(index, (world.connections, port));
            world.make(index, world.connect_ns, CompletionKind::Connected, Vec::new());
        });
        self.connections += 1;
        Ok(())
    }

    #[expect(unsafe_code, reason = "a contract for the caller, which nothing here relies on")]
    unsafe fn send(&mut self, index: ConnectionIndex, parts: &[IoSlice<'_>]) -> Option<SendResult> {
        let taken = self.own(|world| world.answer(index, parts));
        Some(SendResult { taken: Ok(taken), at_ns: self.now_ns })
    }

    fn close(&mut self, index: ConnectionIndex, _: CloseMode) {
        self.coming.retain(|_, (held, ..)| *held != index);
    }

    fn wait(&mut self, _: u64, until: Until) -> u64 {
        let until_ns = match until {
            Until::Instant(at_ns) => at_ns,
            Until::Now => self.now_ns + 50,
        };
        let first_ns = self.coming.keys().next().map_or(u64::MAX, |(at_ns, _)| *at_ns);
        let late_ns = if first_ns <= until_ns { self.unread_ns } else { 0 };
        self.now_ns = self.now_ns.max(until_ns.min(first_ns) + late_ns);
        self.now_ns
    }

    fn next(&mut self) -> Option<Completion> {
        let (came_ns, index, kind) = self.own(|world| {
            let first = world.coming.first_entry().filter(|entry| entry.key().0 <= world.now_ns)?;
            let ((came_ns, _), (index, kind, bytes)) = first.remove_entry();
            world.current = bytes;
            Some((came_ns, index, kind))
        })?;
        let polled_ns = if self.unread_ns > 0 { came_ns } else { self.now_ns };
        Some(Completion { index, at_ns: self.now_ns, polled_ns, kind })
    }

    fn seen_ns(&self, _: ConnectionIndex) -> u64 {
        self.now_ns
    }

    fn bytes(&self, chunk: Chunk) -> &[u8] {
        &self.current[chunk.start..][..chunk.len]
    }

    fn syscalls(&self) -> u64 {
        0
    }

    fn retransmits(&mut self) -> u64 {
        0
    }

    fn shares_cpu(&mut self, _: ConnectionIndex) -> Option<bool> {
        None
    }
}

/// Lets a worker of a plan with one thread come to its end in such a world. Its samples are by intended time, and its counts add up.
pub(super) fn run_scripted<C: Codec>(
    blueprint: &Arc<Blueprint>,
    shard: Shard,
    codec: C,
    world: Scripted,
) -> (Kept, WorkerEnd) {
    let (exchange, mut filled_out, mut spares) = Exchange::new(&blueprint.layout);
    let orders = Arc::new(Orders::default());
    let mut worker = build(blueprint, shard, orders.clone(), exchange, codec, world, Cpus::Spare);
    let mut kept = Kept::new(&blueprint.layout);
    let mut turns = 0;
    while worker.is_running() {
        let is_counted = worker.is_measuring();
        let before = allocations() - worker.io_mut().allocations;
        worker.run_once();
        let made = allocations() - worker.io_mut().allocations - before;
        assert!(made == 0 || !is_counted, "a running worker allocates nothing: {:?}", blueprint.plan);
        while let Ok(mut filled) = filled_out.pop() {
            kept.keep(&filled.take_interval(0));
            spares.push(filled.set).unwrap();
        }
        if let Some(notice) = worker.take_notice() {
            assert!(matches!(notice, Notice::Prepared), "{notice:?}");
            orders.start_ns.store(worker.now_ns() + START_AHEAD_NS, Ordering::Relaxed);
        }
        turns += 1;
        assert!(
            turns < TURNS_MAX && worker.now_ns() < EPOCH_NS + 100 * SECOND,
            "it does not end: {:?}",
            blueprint.plan
        );
    }
    let mut end = worker.end();
    kept.keep(&end.last.take_interval(0));
    for entry in kept.store.request_counts().entries() {
        assert!(entry.counts.adds_up(), "{entry:?}: {:?}", blueprint.plan);
    }
    end.data.samples.sort_by_key(|sample| sample.times.intended_ns);
    (kept, end)
}
