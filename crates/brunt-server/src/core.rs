//! The server without its sockets: bytes and times in, bytes and departure times out.
//!
//! It holds the connections' unread bytes, the cache, the queue and the replies that wait for their departure. It never
//! reads a clock: a simulation drives it exactly as the socket loop does, and is served exactly alike.
//!
//! Commands take effect in the order of their arrival, which is the order of the queue; replies leave in the same
//! order. Only data commands are numbered, take service time and meet faults. Everything else (version, stats,
//! flush_all, lines that are no command) waits its turn in the queue and takes no service time.
//!
//! # The driver's part
//!
//! Whoever has the clock and the network, a socket loop or a simulation, keeps to this:
//!
//! 1. At any time t, first [`Core::pop_due`]`(t)` until it gives none, then whatever else happens at t. The next time at
//!    which there may be something to take is [`Core::next_departure_ns`]; asking too early or too often changes nothing.
//! 2. A [`Departure`] is sent whole, then its [`End`] is done: closing lets the client read what was sent, a reset does
//!    not wait for it. The driver answers either with [`Core::disconnect`], at once or when the client has closed too.
//!    Until then bytes may still be given to [`Core::receive`], which throws them away.
//! 3. When an outage begins, `pop_due` resets every connection by itself, as departures without bytes at its begin. The
//!    driver only keeps the door: it refuses connections while [`Core::is_gone`] and never calls [`Core::connect`]
//!    then. [`Core::next_outage_ns`] says when that changes next.
//!
//! A dripping reply is nothing special to a driver: it is several departures.

use crate::cache::{Cache, Counters, Epoch, Process, Truth};
use crate::drip::{Drip, Trickle};
use crate::faults::{Fault, Faults};
use crate::fifo::{Fifo, Stall};
use crate::log::{self, Record};
use crate::outage::{Outage, Outages};
use crate::service::Service;
use crate::store::Store;
use crate::text::{Command, DataCommand, Parsed, parse};
use std::collections::VecDeque;
use std::num::NonZeroU64;

/// Replies that wait take at most this many bytes and one reply more; beyond, retrievals are refused for lack of
/// memory. A million replies of 200 bytes stay below.
pub const QUEUED_BYTES_MAX: usize = 256 << 20;

/// The reply to a request that a script refuses.
const INJECTED_ERROR: &[u8] = b"SERVER_ERROR injected fault\r\n";

/// What a core is made from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CoreOptions {
    /// Bound on the store, in bytes.
    pub memory_bytes: u64,
    /// The longest value, in bytes.
    pub value_bytes_max: u64,
    /// Seed of the service times.
    pub seed: u64,
    /// Law of the service times.
    pub service: Service,
    /// When the server is frozen, counted from the arrival of the first scripted request.
    pub stalls: Vec<Stall>,
    /// When the server is gone, counted like the stalls. Requests that wait when an outage begins were carried out at
    /// their arrival, like all, and are never answered.
    pub outages: Vec<Outage>,
    /// Every outage empties the store, as a restart of memcached does; else the items are there again after it.
    pub outage_forgets: bool,
    /// What goes wrong and how often.
    pub faults: Faults,
    /// Replies leave in pieces. The queue is not held up by it: the next request is served while a reply drips.
    pub drip: Option<Drip>,
    /// Retrievals of keys whose digits at the end are a multiple of this number find nothing, from the start and whatever
    /// was stored: misses that depend on the key alone.
    pub miss_ids: Option<NonZeroU64>,
    /// How many data commands (a preload, say) are served before the script begins: without service time, stalls,
    /// outages, faults or dripping. Service times and faults count requests from there.
    pub script_after: u64,
    /// Keep a [`Record`] of every data command, to be taken with [`Core::take_records`].
    pub record: bool,
    /// How the given time relates to the world.
    pub epoch: Epoch,
}

impl Default for CoreOptions {
    /// 1 GiB, values up to 1 MiB (memcached's own bound), nothing scripted.
    fn default() -> Self {
        Self {
            memory_bytes: 1 << 30,
            value_bytes_max: 1 << 20,
            seed: 1,
            service: Service::None,
            stalls: Vec::new(),
            outages: Vec::new(),
            outage_forgets: false,
            faults: Faults::default(),
            drip: None,
            miss_ids: None,
            script_after: 0,
            record: false,
            epoch: Epoch::default(),
        }
    }
}

/// A connection: a small number of the caller's choice, free for reuse after [`Core::disconnect`].
pub type ConnectionId = u32;

/// What becomes of a connection behind the bytes of a departure.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum End {
    /// Nothing: it stays open.
    #[default]
    Stays,
    /// It is closed in good order: the client reads every byte, then the end.
    Closes,
    /// It is reset: the client sees an error, and bytes that it has not got yet may be lost.
    Resets,
}

/// Replies that leave now: of one connection, at one instant. There may be several of them, and there may be none if
/// the connection only ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Departure<'a> {
    /// To whom.
    pub connection: ConnectionId,
    /// When they were due; at most the `now_ns` that was asked for.
    pub departure_ns: u64,
    /// The replies.
    pub bytes: &'a [u8],
    /// What becomes of the connection behind them.
    pub end: End,
}

impl Departure<'_> {
    /// Does the connection end behind the bytes, in whatever manner?
    pub fn is_last(&self) -> bool {
        self.end != End::Stays
    }
}

/// What a connection does with the bytes it gets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Reading {
    Commands,
    /// So many bytes of a value that was refused are still to come.
    Discarding(u64),
    /// Everything to come is thrown away: a reply was dropped, or the end is on its way.
    Nothing,
}

#[derive(Debug)]
struct Connection {
    open: bool,
    reading: Reading,
    /// The front of a command that is not yet whole.
    input: Vec<u8>,
    /// Parsing `input` makes no sense before it has this many bytes.
    need: usize,
    /// In order of acceptance; tells replies of an earlier connection with the same id apart.
    serial: u32,
}

/// Replies in the queue; their bytes are the next `len` bytes of the output.
#[derive(Debug)]
struct Pending {
    connection: ConnectionId,
    serial: u32,
    departure_ns: u64,
    len: usize,
    end: End,
}

/// The server.
#[derive(Debug)]
pub struct Core {
    options: CoreOptions,
    cache: Cache,
    fifo: Fifo,
    outages: Outages,
    connections: Vec<Connection>,
    /// The number of the next data command.
    number: u64,
    pending: VecDeque<Pending>,
    /// The bytes of the pending replies from `out_begin` on.
    out: Vec<u8>,
    out_begin: usize,
    /// The replies that drip, if they are to.
    trickle: Option<Trickle>,
    records: Vec<Record>,
}

impl Core {
    /// A server with nothing in it.
    pub fn new(options: CoreOptions) -> Self {
        let mut cache = Cache::new(options.memory_bytes, options.value_bytes_max, options.epoch);
        cache.set_miss_ids(options.miss_ids);
        Self {
            cache,
            fifo: Fifo::new(&options.stalls),
            outages: Outages::new(&options.outages),
            connections: Vec::new(),
            number: 0,
            pending: VecDeque::new(),
            out: Vec::new(),
            out_begin: 0,
            trickle: options.drip.map(Trickle::new),
            records: Vec::new(),
            options,
        }
    }

    /// Says who knows of the process that serves; without it the statistics have zeros there.
    pub fn set_process(&mut self, process: fn() -> Process) {
        self.cache.set_process(process);
    }

    /// A connection begins; never while the server [is gone](Core::is_gone). Ids index a table, so they should be
    /// small.
    ///
    /// # Panics
    /// If this id is connected already.
    pub fn connect(&mut self, id: ConnectionId) {
        let index = id as usize;
        while self.connections.len() <= index {
            let (reading, input) = (Reading::Nothing, Vec::new());
            self.connections.push(Connection { open: false, reading, input, need: 0, serial: 0 });
        }
        assert!(!self.connections[index].open, "connection {id} is there already");
        let counters = &mut self.cache.counters;
        let serial = counters.total_connections as u32;
        counters.total_connections += 1;
        counters.curr_connections += 1;
        self.connections[index] =
            Connection { open: true, reading: Reading::Commands, input: Vec::new(), need: 0, serial };
    }

    /// A connection is gone. Its requests keep their place and their time in the queue; their replies go nowhere.
    ///
    /// # Panics
    /// If this id is not connected.
    pub fn disconnect(&mut self, id: ConnectionId) {
        let connection = &mut self.connections[id as usize];
        assert!(connection.open, "connection {id} is not there");
        connection.open = false;
        connection.input = Vec::new();
        if let Some(trickle) = &mut self.trickle {
            trickle.forget(id);
        }
        self.cache.counters.curr_connections -= 1;
    }

    /// Bytes arrive: every command that they complete is carried out and its reply is queued. `now_ns` is the arrival
    /// of all of them; times never go back. What comes when an outage has begun is lost.
    pub fn receive(&mut self, id: ConnectionId, bytes: &[u8], now_ns: u64) {
        self.cache.counters.bytes_read += bytes.len() as u64;
        self.compact();
        let connection = &mut self.connections[id as usize];
        assert!(connection.open, "connection {id} is not there");
        if self.outages.next_begin_ns().is_some_and(|begin_ns| begin_ns <= now_ns) {
            return;
        }
        // Nothing is copied unless a command is cut by the end of the bytes.
        if connection.input.is_empty() {
            let used = self.serve(id, bytes, now_ns);
            self.connections[id as usize].input.extend_from_slice(&bytes[used..]);
        } else {
            connection.input.extend_from_slice(bytes);
            if connection.input.len() >= connection.need {
                let mut input = std::mem::take(&mut connection.input);
                let used = self.serve(id, &input, now_ns);
                input.drain(..used);
                self.connections[id as usize].input = input;
            }
        }
        let input = &mut self.connections[id as usize].input;
        if input.is_empty() && input.capacity() > 0 {
            *input = Vec::new();
        }
    }

    /// The client will send nothing more. What it asked for is still answered; then the connection closes.
    pub fn receive_end(&mut self, id: ConnectionId, now_ns: u64) {
        self.compact();
        self.queue_close(id, now_ns);
    }

    /// When there may be something to take: the next reply, or the begin of an outage. None: not before something
    /// is received.
    pub fn next_departure_ns(&self) -> Option<u64> {
        earlier(self.next_reply_ns(), self.outages.next_begin_ns())
    }

    /// Takes the next replies that are due at `now_ns`; to be called until there are none.
    pub fn pop_due(&mut self, now_ns: u64) -> Option<Departure<'_>> {
        loop {
            let at_ns = self.next_departure_ns().filter(|at_ns| *at_ns <= now_ns)?;
            // What leaves at the very begin of an outage leaves before it.
            if self.next_reply_ns() != Some(at_ns) {
                self.begin_outage(at_ns);
            } else if self.pending.front().is_some_and(|pending| pending.departure_ns == at_ns) {
                let pending = self.pending.pop_front().expect("it is there");
                let begin = self.out_begin;
                self.out_begin += pending.len;
                let connection = &self.connections[pending.connection as usize];
                if connection.open && connection.serial == pending.serial {
                    self.cache.counters.bytes_written += pending.len as u64;
                    return Some(Departure {
                        connection: pending.connection,
                        departure_ns: pending.departure_ns,
                        bytes: &self.out[begin..self.out_begin],
                        end: pending.end,
                    });
                }
            } else if let Some(piece) = self.trickle.as_mut().and_then(Trickle::pop) {
                self.cache.counters.bytes_written += piece.range.len() as u64;
                let trickle = self.trickle.as_ref().expect("a piece came from it");
                return Some(Departure {
                    connection: piece.connection,
                    departure_ns: piece.departure_ns,
                    bytes: &trickle.bytes(piece.connection)[piece.range],
                    end: piece.end,
                });
            }
        }
    }

    /// Is the server gone at `now_ns`? Then nobody listens: connections are refused.
    pub fn is_gone(&self, now_ns: u64) -> bool {
        self.outages.is_gone(now_ns)
    }

    /// When the next outage begins or, if the server is gone, when it ends: the first change after `now_ns`. None
    /// before the first scripted request, from which outages count, and after the last outage.
    pub fn next_outage_ns(&self, now_ns: u64) -> Option<u64> {
        self.outages.next_change_ns(now_ns)
    }

    /// What has been counted so far.
    pub fn counters(&self) -> &Counters {
        &self.cache.counters
    }

    /// The store, for its sizes.
    pub fn store(&self) -> &Store {
        self.cache.store()
    }

    /// Takes the records since the last call, in order of arrival; none unless the options ask for them.
    pub fn take_records(&mut self) -> std::vec::Drain<'_, Record> {
        self.records.drain(..)
    }

    /// Carries out the whole commands at the front of `input` and returns how many bytes they were.
    fn serve(&mut self, id: ConnectionId, input: &[u8], now_ns: u64) -> usize {
        let mut used = 0;
        loop {
            let rest = &input[used..];
            match self.connections[id as usize].reading {
                Reading::Nothing => return input.len(),
                Reading::Discarding(bytes) => {
                    let discarded = bytes.min(rest.len() as u64);
                    used += discarded as usize;
                    if discarded < bytes {
                        self.connections[id as usize].reading = Reading::Discarding(bytes - discarded);
                        return used;
                    }
                    self.connections[id as usize].reading = Reading::Commands;
                }
                Reading::Commands if rest.is_empty() => return used,
                Reading::Commands => match parse(rest, self.options.value_bytes_max) {
                    Parsed::Partial { need } => {
                        self.connections[id as usize].need = need;
                        return used;
                    }
                    Parsed::Complete { used: bytes, command } => {
                        used += bytes;
                        match command {
                            Command::Data(command) => self.serve_data(id, &command, now_ns),
                            command => self.serve_control(id, &command, now_ns),
                        }
                    }
                    // memcached closes without a word, too.
                    Parsed::LineTooLong => self.queue_close(id, now_ns),
                },
            }
        }
    }

    fn serve_control(&mut self, id: ConnectionId, command: &Command<'_>, now_ns: u64) {
        let departure_ns = self.fifo.depart(now_ns, 0);
        let begin = self.out.len();
        let closes = self.cache.control(command, now_ns, &mut self.out);
        let connection = &mut self.connections[id as usize];
        if let Command::TooLarge { body_bytes, .. } = command {
            connection.reading = Reading::Discarding(*body_bytes);
        }
        if closes {
            connection.reading = Reading::Nothing;
        }
        self.queue(id, begin, departure_ns, if closes { End::Closes } else { End::Stays });
    }

    fn serve_data(&mut self, id: ConnectionId, command: &DataCommand<'_>, now_ns: u64) {
        let number = self.number;
        self.number += 1;
        let (service_ns, fault) = match number.checked_sub(self.options.script_after) {
            Some(scripted) => {
                self.fifo.begin_script(now_ns);
                self.outages.begin_script(now_ns);
                (
                    self.options.service.service_ns(self.options.seed, scripted),
                    self.options.faults.of(scripted),
                )
            }
            None => (0, None),
        };
        let departure_ns = self.fifo.depart(now_ns, service_ns);
        let begin = self.out.len();
        let (fault_flag, end) = match fault {
            None => (self.reply(command, Truth::Right, now_ns), End::Stays),
            Some(Fault::Wrong) => (self.reply(command, Truth::Wrong, now_ns), End::Stays),
            Some(Fault::Error) => (self.refuse(command), End::Stays),
            Some(Fault::Drop) => (self.swallow(id, command, now_ns), End::Stays),
            Some(Fault::Reset) => (self.reset(id, command, now_ns), End::Resets),
            Some(Fault::Cut) => self.cut(id, command, now_ns),
        };
        self.queue(id, begin, departure_ns, end);
        if self.options.record {
            let is_lost = self.outages.next_begin_ns().is_some_and(|begin_ns| begin_ns < departure_ns);
            self.records.push(Record {
                number,
                arrival_ns: now_ns,
                departure_ns,
                connection: self.connections[id as usize].serial,
                verb: command.verb as u8,
                flags: fault_flag
                    | if command.noreply { log::FLAG_NOREPLY } else { 0 }
                    | if is_lost { log::FLAG_LOST } else { 0 },
            });
        }
    }

    /// Carries out a command and returns the flag of the fault that took effect.
    fn reply(&mut self, command: &DataCommand<'_>, truth: Truth, now_ns: u64) -> u8 {
        let out_bytes_max = self.out_bytes_max();
        let value_bytes = self.cache.execute(command, truth, now_ns, &mut self.out, out_bytes_max);
        if truth == Truth::Right || value_bytes == 0 {
            return 0;
        }
        self.cache.counters.faults_wrong += 1;
        log::FLAG_WRONG
    }

    fn refuse(&mut self, command: &DataCommand<'_>) -> u8 {
        self.cache.count_refused(command);
        self.cache.counters.faults_error += 1;
        if !command.noreply {
            self.out.extend_from_slice(INJECTED_ERROR);
        }
        log::FLAG_ERROR
    }

    fn swallow(&mut self, id: ConnectionId, command: &DataCommand<'_>, now_ns: u64) -> u8 {
        self.carry_out_silently(id, command, now_ns);
        self.cache.counters.faults_dropped += 1;
        log::FLAG_DROPPED
    }

    fn reset(&mut self, id: ConnectionId, command: &DataCommand<'_>, now_ns: u64) -> u8 {
        self.carry_out_silently(id, command, now_ns);
        self.cache.counters.faults_reset += 1;
        log::FLAG_RESET
    }

    fn carry_out_silently(&mut self, id: ConnectionId, command: &DataCommand<'_>, now_ns: u64) {
        let begin = self.out.len();
        self.reply(command, Truth::Right, now_ns);
        self.out.truncate(begin);
        self.connections[id as usize].reading = Reading::Nothing;
    }

    fn cut(&mut self, id: ConnectionId, command: &DataCommand<'_>, now_ns: u64) -> (u8, End) {
        let begin = self.out.len();
        self.reply(command, Truth::Right, now_ns);
        let len = self.out.len() - begin;
        if len == 0 {
            return (0, End::Stays);
        }
        // The shortest reply is a digit and a line end, so a half is neither nothing nor all.
        self.out.truncate(begin + len / 2);
        self.cache.counters.faults_cut += 1;
        self.connections[id as usize].reading = Reading::Nothing;
        (log::FLAG_CUT, End::Closes)
    }

    /// How long the output may become before retrievals are refused.
    fn out_bytes_max(&self) -> usize {
        let dripping_bytes = self.trickle.as_ref().map_or(0, Trickle::queued_bytes);
        self.out_begin + QUEUED_BYTES_MAX.saturating_sub(dripping_bytes)
    }

    fn next_reply_ns(&self) -> Option<u64> {
        let pending_ns = self.pending.front().map(|pending| pending.departure_ns);
        earlier(pending_ns, self.trickle.as_ref().and_then(Trickle::next_ns))
    }

    /// Everything that waits is lost, every connection is reset, and the queue is idle when the outage ends.
    fn begin_outage(&mut self, begin_ns: u64) {
        let end_ns = self.outages.begin();
        self.fifo.restart(end_ns);
        if self.options.outage_forgets {
            self.cache.forget();
        }
        self.pending.clear();
        self.out.clear();
        self.out_begin = 0;
        for (id, connection) in self.connections.iter_mut().enumerate().filter(|(_, one)| one.open) {
            let id = id as ConnectionId;
            connection.reading = Reading::Nothing;
            connection.input = Vec::new();
            if let Some(trickle) = &mut self.trickle {
                trickle.forget(id);
            }
            let serial = connection.serial;
            let reset = Pending { connection: id, serial, departure_ns: begin_ns, len: 0, end: End::Resets };
            self.pending.push_back(reset);
        }
    }

    fn queue_close(&mut self, id: ConnectionId, now_ns: u64) {
        let departure_ns = self.fifo.depart(now_ns, 0);
        self.connections[id as usize].reading = Reading::Nothing;
        self.queue(id, self.out.len(), departure_ns, End::Closes);
    }

    /// Queues the output from `begin` on. Replies of one connection that leave at one instant become one departure, so
    /// that a pipelined batch is one write.
    fn queue(&mut self, connection: ConnectionId, begin: usize, departure_ns: u64, end: End) {
        let len = self.out.len() - begin;
        if len == 0 && end == End::Stays {
            return;
        }
        // Dripping begins with the first scripted reply: `number` is the next one by now.
        if let Some(trickle) = &mut self.trickle
            && (self.number > self.options.script_after || self.options.script_after == 0)
        {
            trickle.push(connection, departure_ns, &self.out[begin..], end);
            return self.out.truncate(begin);
        }
        let serial = self.connections[connection as usize].serial;
        match self.pending.back_mut() {
            Some(last)
                if last.serial == serial && last.departure_ns == departure_ns && last.end == End::Stays =>
            {
                last.len += len;
                last.end = end;
            }
            _ => self.pending.push_back(Pending { connection, serial, departure_ns, len, end }),
        }
    }

    /// Gives back the room of replies that have left: for nothing if all have, else once they are half of the buffer,
    /// so that every byte is moved at most once on average.
    fn compact(&mut self) {
        if self.out_begin == self.out.len() {
            self.out.clear();
        } else if self.out_begin > self.out.len() / 2 {
            self.out.drain(..self.out_begin);
        } else {
            return;
        }
        self.out_begin = 0;
    }
}

fn earlier(one: Option<u64>, other: Option<u64>) -> Option<u64> {
    match (one, other) {
        (Some(one), Some(other)) => Some(one.min(other)),
        _ => one.or(other),
    }
}
