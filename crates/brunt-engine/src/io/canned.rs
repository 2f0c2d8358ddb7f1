//! A world behind [`Io`] that answers every request at once, for seeing what the worker itself spends.
//!
//! No network, no queue and no fault: the replies of a memcached that holds the data set and is sent its text protocol,
//! made before the first request; tests have those of the other protocols. It does as little as it can, makes no system
//! call, and none of its methods is inlined, so a profile separates its instructions from the worker's. Its clock is
//! virtual and moves by a fixed step, so that a run is a function of the worker's calls.

#[cfg(test)]
mod replies;

use super::{Chunk, CloseMode, Completion, CompletionKind, ConnectionIndex, Io, SendResult, Until};
use crate::transport::Address;
use crate::transport::tls_client::TlsClient;
use brunt_workload::keys::KeyGenerator;
use brunt_workload::payload::Payload;
use std::cell::Cell;
use std::collections::VecDeque;
use std::io::IoSlice;
use std::rc::Rc;

/// Time that each wait and each request takes: a server of a million requests per second, so that histograms are
/// handed over and timers checked about as often as on a fast machine.
const STEP_NS: u64 = 1_000;
/// The clock begins here: 0 never is a time of a run.
const EPOCH_NS: u64 = 1_000_000_000;
/// The line that ends what a retrieval found, and what a store is answered with.
const END: &[u8] = b"END\r\n";
const STORED: &[u8] = b"STORED\r\n";
/// What a reply has around its key and value, at most.
const REPLY_FRAME_BYTES: usize = 64;

/// Appends the reply to the first of these requests, which are whole. Returns the bytes after it.
type Answer = for<'a> fn(&Stock, &'a [u8], &mut Vec<u8>) -> &'a [u8];

/// How a server of one protocol replies.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Replies {
    answer: Answer,
    /// What is constant before a value, by its key and its length.
    head: fn(&[u8], usize) -> Vec<u8>,
}

impl Replies {
    /// Those of memcached's text protocol.
    pub(crate) const TEXT: Self = Self { answer: answer_text, head: text_head };
}

/// Properties of the kernel interface that are imitated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Interface {
    /// Replies that a wait brings at most; at least 1.
    pub completions_max: usize,
    /// A send has its result from the wait that hands it in, as with io_uring; else at once, as with epoll.
    pub defers_sends: bool,
}

impl Interface {
    /// Everything comes as soon as it can.
    pub const UNBOUNDED: Self = Self { completions_max: usize::MAX, defers_sends: false };
}

/// How often the worker called.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Calls {
    /// Waits for something to happen.
    pub waits: u64,
    /// Reads that returned bytes; completions of connects and sends are not among them.
    pub completions: u64,
    /// Sends.
    pub sends: u64,
    /// Clock reads, apart from the times that waits, completions and sends return.
    pub clock_reads: u64,
}

impl Calls {
    /// Adds those of another worker.
    pub(crate) fn merge(&mut self, other: &Self) {
        self.waits += other.waits;
        self.completions += other.completions;
        self.sends += other.sends;
        self.clock_reads += other.clock_reads;
    }
}

/// The clock and the counters of a canned server, readable while a worker owns it.
#[derive(Debug)]
pub(crate) struct WorldView {
    /// Moves on when the worker waits and for every request, by a step.
    now_ns: Cell<u64>,
    calls: Cell<Calls>,
}

impl WorldView {
    /// The clock of the world.
    pub(crate) fn now_ns(&self) -> u64 {
        self.now_ns.get()
    }

    /// How often the worker called since this was last asked for.
    pub(crate) fn take_calls(&self) -> Calls {
        self.calls.take()
    }

    fn step(&self) {
        self.now_ns.set(self.now_ns.get() + STEP_NS);
    }

    /// Moves the clock to an instant.
    fn skip_to(&self, at_ns: u64) {
        self.now_ns.set(self.now_ns.get().max(at_ns));
    }

    fn count(&self, called: impl FnOnce(&mut Calls)) {
        let mut calls = self.calls.get();
        called(&mut calls);
        self.calls.set(calls);
    }
}

/// One connection.
#[derive(Debug)]
struct Connection {
    /// Replies that the worker has not read.
    replies: Vec<u8>,
    /// A connect whose completion is pending.
    connecting: bool,
}

/// The canned world as one worker sees it.
#[derive(Debug)]
pub(crate) struct Canned {
    watch: Rc<WorldView>,
    answer: Answer,
    stock: Stock,
    connections: Vec<Connection>,
    /// Connections with a completion, in order.
    ready: VecDeque<ConnectionIndex>,
    interface: Interface,
    /// How many replies the last wait has left.
    left: usize,
    /// Sends that the next wait hands in, and how much of each is taken.
    queued: VecDeque<(ConnectionIndex, usize)>,
    /// Sends that were submitted and not reported, and when.
    handed_in: VecDeque<(ConnectionIndex, usize)>,
    handed_in_ns: u64,
    current: Vec<u8>,
}

/// What the server holds.
#[derive(Debug)]
struct Stock {
    keyspace: KeyGenerator,
    /// The constant bytes of the reply to a get of each key, concatenated, and their ends.
    replies: Vec<u8>,
    ends: Vec<usize>,
    /// Upper bound of the length of a reply.
    longest: usize,
}

impl Stock {
    fn new(head: fn(&[u8], usize) -> Vec<u8>, keyspace: KeyGenerator, payload: &Payload) -> Self {
        let (mut replies, mut ends, mut key) = (Vec::new(), Vec::new(), Vec::new());
        let mut longest = 0;
        for id in 0..keyspace.keys() {
            let value = payload.value(id, 0, keyspace.value_len(id));
            let begin = replies.len();
            key.clear();
            keyspace.write_key(id, &mut key);
            let len = value.total_len();
            replies.extend_from_slice(&head(&key, len));
            replies.extend_from_slice(value.head());
            replies.extend_from_slice(&payload.block()[value.offset..value.offset + value.len]);
            replies.extend_from_slice(b"\r\n");
            ends.push(replies.len());
            longest = longest.max(replies.len() - begin + key.len() + REPLY_FRAME_BYTES);
        }
        Self { keyspace, replies, ends, longest }
    }

    /// The reply to a get of this key.
    #[inline]
    fn reply(&self, key: &[u8]) -> &[u8] {
        let id = self.keyspace.id_of_key(key).expect("only keys of the data set are asked for") as usize;
        let begin = if id == 0 { 0 } else { self.ends[id - 1] };
        &self.replies[begin..self.ends[id]]
    }
}

impl Canned {
    /// A server with these replies that holds all of `keyspace`, with the values that `payload` yields. `depth`:
    /// requests in flight on a connection.
    ///
    /// Takes the memory of the whole data set.
    pub(crate) fn new(
        replies: Replies,
        connections: usize,
        depth: usize,
        keyspace: KeyGenerator,
        payload: &Payload,
        interface: Interface,
    ) -> Self {
        let stock = Stock::new(replies.head, keyspace, payload);
        let room = depth * stock.longest;
        let index = |_| Connection { replies: Vec::with_capacity(room), connecting: false };
        Self {
            watch: Rc::new(WorldView { now_ns: Cell::new(EPOCH_NS), calls: Cell::default() }),
            answer: replies.answer,
            stock,
            connections: (0..connections).map(index).collect(),
            ready: VecDeque::with_capacity(connections),
            interface,
            left: 0,
            queued: VecDeque::with_capacity(connections),
            handed_in: VecDeque::with_capacity(connections),
            handed_in_ns: 0,
            current: Vec::with_capacity(room),
        }
    }

    /// What remains visible of it.
    pub(crate) fn watch(&self) -> Rc<WorldView> {
        self.watch.clone()
    }

    /// What the server answers to whole requests.
    #[cfg(test)]
    pub(crate) fn reply_to(&mut self, bytes: &[u8]) -> Vec<u8> {
        self.answer(0, bytes);
        self.ready.clear();
        std::mem::take(&mut self.connections[0].replies)
    }

    /// Answers the requests in `bytes`, which hold whole ones only: a send takes all that it is offered, and the worker
    /// queues whole requests.
    fn answer(&mut self, index: ConnectionIndex, bytes: &[u8]) {
        if self.connections[index as usize].replies.is_empty() {
            self.ready.push_back(index);
        }
        let replies = &mut self.connections[index as usize].replies;
        let mut rest = bytes;
        while !rest.is_empty() {
            rest = (self.answer)(&self.stock, rest, replies);
            self.watch.step();
        }
    }
}

fn text_head(key: &[u8], len: usize) -> Vec<u8> {
    [b"VALUE ", key, format!(" 0 {len}\r\n").as_bytes()].concat()
}

/// Answers as a memcached that is sent its text protocol.
fn answer_text<'a>(stock: &Stock, bytes: &'a [u8], replies: &mut Vec<u8>) -> &'a [u8] {
    let (line, rest) = first_line(bytes);
    if let Some(keys) = line.strip_prefix(b"get ") {
        keys.split(|byte| *byte == b' ').for_each(|key| replies.extend_from_slice(stock.reply(key)));
        replies.extend_from_slice(END);
        return rest;
    }
    let mut words = line.split(|byte| *byte == b' ');
    assert_eq!(words.next(), Some(&b"set"[..]), "only get and set are answered here");
    replies.extend_from_slice(STORED);
    &rest[words.next_back().map_or(0, decimal) + 2..]
}

/// The first line without its end, and the bytes after it.
fn first_line(bytes: &[u8]) -> (&[u8], &[u8]) {
    let len = bytes.iter().position(|byte| *byte == b'\r').expect("requests are whole");
    (&bytes[..len], &bytes[len + 2..])
}

fn decimal(digits: &[u8]) -> usize {
    digits.iter().fold(0, |number, digit| number * 10 + usize::from(digit - b'0'))
}

impl Io for Canned {
    #[inline(never)]
    fn now_ns(&mut self) -> u64 {
        self.watch.count(|calls| calls.clock_reads += 1);
        self.watch.now_ns()
    }

    #[inline(never)]
    fn connect(
        &mut self,
        index: ConnectionIndex,
        _: &Address,
        _: Option<&TlsClient>,
        _: bool,
    ) -> Result<(), i32> {
        self.connections[index as usize].connecting = true;
        self.ready.push_back(index);
        Ok(())
    }

    #[inline(never)]
    #[expect(unsafe_code, reason = "a contract for the caller, which nothing here relies on")]
    unsafe fn send(&mut self, index: ConnectionIndex, parts: &[IoSlice<'_>]) -> Option<SendResult> {
        self.watch.count(|calls| calls.sends += 1);
        let taken = match parts {
            [only] => {
                self.answer(index, only);
                only.len()
            }
            parts => {
                let bytes: Vec<u8> = parts.iter().flat_map(|part| part.iter().copied()).collect();
                self.answer(index, &bytes);
                bytes.len()
            }
        };
        if self.interface.defers_sends {
            self.queued.push_back((index, taken));
            return None;
        }
        Some(SendResult { taken: Ok(taken), at_ns: self.watch.now_ns() })
    }

    #[inline(never)]
    fn submit(&mut self) {
        if !self.queued.is_empty() {
            self.handed_in.append(&mut self.queued);
            self.handed_in_ns = self.watch.now_ns();
        }
    }

    #[inline(never)]
    fn close(&mut self, index: ConnectionIndex, _mode: CloseMode) {
        self.connections[index as usize].connecting = false;
        self.connections[index as usize].replies.clear();
        self.ready.retain(|ready| *ready != index);
        self.queued.retain(|(queued, _)| *queued != index);
        self.handed_in.retain(|(handed_in, _)| *handed_in != index);
    }

    #[inline(never)]
    fn wait(&mut self, _now_ns: u64, until: Until) -> u64 {
        self.watch.count(|calls| calls.waits += 1);
        self.submit();
        self.left = self.interface.completions_max.min(self.ready.len());
        self.watch.step();
        if let Until::Instant(at_ns) = until
            && self.left == 0
            && self.handed_in.is_empty()
        {
            self.watch.skip_to(at_ns);
        }
        self.watch.now_ns()
    }

    #[inline(never)]
    fn next(&mut self) -> Option<Completion> {
        if let Some((index, taken)) = self.handed_in.pop_front() {
            let at_ns = self.handed_in_ns;
            return Some(Completion {
                index,
                at_ns,
                polled_ns: at_ns,
                kind: CompletionKind::Sent(Ok(taken)),
            });
        }
        self.left = self.left.checked_sub(1)?;
        let index = self.ready.pop_front()?;
        let entry = &mut self.connections[index as usize];
        let kind = if std::mem::take(&mut entry.connecting) {
            CompletionKind::Connected
        } else {
            self.watch.count(|calls| calls.completions += 1);
            self.current.clear();
            std::mem::swap(&mut self.current, &mut entry.replies);
            CompletionKind::Received(Chunk { start: 0, len: self.current.len() })
        };
        // Read and poll share one instant: bytes of this wait were never left unread.
        let at_ns = self.watch.now_ns();
        Some(Completion { index, at_ns, polled_ns: at_ns, kind })
    }

    fn seen_ns(&self, _: ConnectionIndex) -> u64 {
        self.watch.now_ns()
    }

    #[inline(never)]
    fn bytes(&self, chunk: Chunk) -> &[u8] {
        &self.current[chunk.start..chunk.start + chunk.len]
    }

    #[inline(never)]
    fn syscalls(&self) -> u64 {
        let calls = self.watch.calls.get();
        // Deferred sends make no call of their own.
        let sends = if self.interface.defers_sends { 0 } else { calls.sends };
        calls.waits + calls.completions + sends
    }

    fn retransmits(&mut self) -> u64 {
        0
    }

    fn shares_cpu(&mut self, _: ConnectionIndex) -> Option<bool> {
        None
    }
}
