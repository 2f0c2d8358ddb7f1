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
//! The driver, which has the clock and the network (a socket loop or a simulation), keeps to this:
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
//! 4. Requests of a connection wait, if the options say how many bytes may be due to it, while [`Core::is_held`]: then the
//!    driver calls [`Core::receive`], if only with no bytes, once it has taken what was due.
//!
//! A dripping reply is nothing special to a driver: it is several departures.

use crate::cache::{Cache, Counters, Process, ValueContent};
use crate::command_context::CommandContext;
use crate::connection::WireProtocol;
use crate::connection::{Batch, Connection, Reading};
pub use crate::connection::{ConnectionId, Departure, End};
use crate::faults::Fault;
use crate::fifo::{Calendar, Fifo};
use crate::grammar::{Parsed, Verb};
use crate::log::{self, Record};
pub use crate::options::CoreOptions;
use crate::outbox::{Outbox, earlier};
use crate::request::{Request, Work, parse};
use crate::stats::Calls;
use crate::store::Store;
use crate::udp::{self, Framer, Trains};

/// Replies that wait take at most this many bytes, with what is noted of each, and one reply more: a retrieval that would go
/// beyond is refused for lack of memory, and what comes when it is reached ends its connection. A million replies of 200
/// bytes stay below.
pub const QUEUED_BYTES_MAX: usize = 256 << 20;

/// The server.
#[derive(Debug)]
pub struct Core {
    options: CoreOptions,
    cache: Cache,
    calls: Calls,
    fifo: Fifo,
    outages: Calendar,
    connections: Vec<Connection>,
    /// Bytes of all connections that are not carried out yet.
    input_bytes: usize,
    /// The number of the next data command.
    number: u64,
    /// Connections and senders of datagrams so far.
    accepted: u32,
    outbox: Outbox,
    /// When the reply leaves that is being written for a datagram.
    datagram_departure_ns: Option<u64>,
    trains: Trains,
    framer: Framer,
    records: Vec<Record>,
}

impl Core {
    /// A server with nothing in it.
    pub fn new(options: CoreOptions) -> Self {
        Self {
            cache: Cache::new(&options),
            calls: Calls::default(),
            fifo: Fifo::new(&options.stalls),
            outages: Calendar::new(&options.outages),
            connections: Vec::new(),
            input_bytes: 0,
            number: 0,
            accepted: 0,
            outbox: Outbox::new(options.drip),
            datagram_departure_ns: None,
            trains: Trains::default(),
            framer: Framer::new(options.datagram_faults),
            records: Vec::new(),
            options,
        }
    }

    /// Says who knows of the process that serves; without it the statistics have zeros there.
    pub fn set_process(&mut self, process: fn() -> Process) {
        self.cache.process = process;
    }

    /// A connection begins; never while the server [is gone](Core::is_gone). Ids index a table, so they should be
    /// small.
    ///
    /// # Panics
    /// If this id is connected already.
    pub fn connect(&mut self, id: ConnectionId) {
        self.cache.counters.total_connections += 1;
        self.cache.counters.curr_connections += 1;
        self.begin(id, false);
    }

    /// A new sender of datagrams: an address, which shares the ids of connections, but is not counted as
    /// one. Outages do not end it: what is sent to a server that is gone is lost.
    ///
    /// # Panics
    /// If this id is connected already.
    pub fn connect_peer(&mut self, id: ConnectionId) {
        self.begin(id, true);
    }

    fn begin(&mut self, id: ConnectionId, is_peer: bool) {
        let index = id as usize;
        while self.connections.len() <= index {
            self.connections.push(Connection::default());
        }
        assert!(!self.connections[index].open, "connection {id} is there already");
        self.connections[index] = Connection::begin(self.accepted, is_peer);
        self.accepted += 1;
    }

    /// A connection is gone, or a sender of datagrams is not heard any more. Its requests keep their place and their time in
    /// the queue; their replies go nowhere.
    ///
    /// # Panics
    /// If this id is not connected.
    pub fn disconnect(&mut self, id: ConnectionId) {
        let connection = &mut self.connections[id as usize];
        assert!(connection.open, "connection {id} is not there");
        connection.open = false;
        self.input_bytes -= std::mem::take(&mut connection.input).len();
        if !connection.is_peer {
            self.cache.counters.curr_connections -= 1;
        }
        self.outbox.forget(id);
    }

    /// Bytes arrive: every command that they complete is carried out and its reply is queued. `now_ns` is the arrival
    /// of all of them; times never go back. What comes when an outage has begun is lost.
    pub fn receive(&mut self, id: ConnectionId, bytes: &[u8], now_ns: u64) {
        self.cache.counters.bytes_read += bytes.len() as u64;
        self.outbox.compact();
        let connection = &mut self.connections[id as usize];
        assert!(connection.open, "connection {id} is not there");
        if self.outages.next_begin_ns().is_some_and(|begin_ns| begin_ns <= now_ns) {
            return;
        }
        self.input_bytes -= connection.input.len();
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
        self.input_bytes += input.len();
    }

    /// Do requests of a connection wait until replies that are due have been taken?
    pub fn is_held(&self, id: ConnectionId) -> bool {
        let connection = &self.connections[id as usize];
        connection.open && connection.is_held
    }

    /// Bytes of all connections that are not carried out yet: requests that are not whole, and those that are held.
    pub fn input_bytes(&self) -> usize {
        self.input_bytes
    }

    /// The connection with the most of them.
    pub fn largest_input(&self) -> Option<ConnectionId> {
        let held = self.connections.iter().enumerate().filter(|(_, connection)| !connection.input.is_empty());
        held.max_by_key(|(_, connection)| connection.input.len()).map(|(id, _)| id as ConnectionId)
    }

    /// A datagram arrives: the commands in it are carried out, and their replies go out in datagrams that each are a
    /// [`Departure`]. What is cut by its end is thrown away.
    pub fn receive_datagram(&mut self, id: ConnectionId, datagram: &[u8], now_ns: u64) {
        self.cache.counters.bytes_read += datagram.len() as u64;
        self.outbox.compact();
        let connection = &mut self.connections[id as usize];
        assert!(connection.open && connection.is_peer, "{id} sends no datagrams");
        let is_lost = self.outages.next_begin_ns().is_some_and(|begin_ns| begin_ns <= now_ns);
        let Some((request_id, datagrams, payload)) = udp::request(datagram) else { return };
        if is_lost || self.outages.is_gone(now_ns) {
            return;
        }
        connection.session.protocol = Some(WireProtocol::Text);
        (connection.reading, connection.batch) = (Reading::Commands, None);
        let begin = self.outbox.end();
        self.trains.begin(begin, self.options.division);
        self.datagram_departure_ns = Some(now_ns);
        if datagrams == 1 {
            self.serve(id, payload, now_ns);
        } else {
            self.outbox.writing().extend_from_slice(udp::SEVERAL_DATAGRAMS);
        }
        let departure_ns = self.datagram_departure_ns.take().unwrap_or(now_ns);
        self.queue_datagrams(id, request_id, begin, departure_ns);
        self.trains.end();
    }

    /// The client will send nothing more. What it has sent is still answered; then the connection closes.
    pub fn receive_end(&mut self, id: ConnectionId, now_ns: u64) {
        self.outbox.compact();
        self.queue_close(id, now_ns);
    }

    /// When there may be something to take: the next reply, or the begin of an outage. None: not before something
    /// is received.
    pub fn next_departure_ns(&self) -> Option<u64> {
        earlier(self.outbox.next_ns(), self.outages.next_begin_ns())
    }

    /// Takes the next replies that are due at `now_ns`; to be called until there are none.
    pub fn pop_due(&mut self, now_ns: u64) -> Option<Departure<'_>> {
        loop {
            let at_ns = self.next_departure_ns().filter(|at_ns| *at_ns <= now_ns)?;
            // What leaves at the very begin of an outage leaves before it.
            if self.outbox.next_ns() != Some(at_ns) {
                self.begin_outage(at_ns);
                continue;
            }
            let Some(leaving) = self.outbox.pop(at_ns) else { continue };
            let connection = &self.connections[leaving.connection as usize];
            if connection.open && leaving.serial.is_none_or(|serial| serial == connection.session.number) {
                self.cache.counters.bytes_written += leaving.range.len() as u64;
                return Some(Departure {
                    connection: leaving.connection,
                    departure_ns: leaving.departure_ns,
                    bytes: self.outbox.bytes(&leaving),
                    end: leaving.end,
                });
            }
        }
    }

    /// Is the server down at `now_ns`? Then connections are refused.
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

    /// The same, for what the driver counts.
    pub fn counters_mut(&mut self) -> &mut Counters {
        &mut self.cache.counters
    }

    /// The store, for its sizes.
    pub fn store(&self) -> &Store {
        &self.cache.store
    }

    /// Takes the records since the last call, in order of arrival; none unless the options ask for them.
    pub fn take_records(&mut self) -> std::vec::Drain<'_, Record> {
        self.records.drain(..)
    }

    /// Carries out the whole commands at the front of `input` and returns how many bytes they were.
    fn serve(&mut self, id: ConnectionId, input: &[u8], now_ns: u64) -> usize {
        // Where inline commands are written as arrays.
        let mut array = Vec::new();
        let mut used = 0;
        self.connections[id as usize].is_held = false;
        loop {
            let rest = &input[used..];
            let connection = &mut self.connections[id as usize];
            match connection.reading {
                Reading::Nothing => return input.len(),
                Reading::Discarding(bytes) => {
                    let discarded = bytes.min(rest.len() as u64);
                    used += discarded as usize;
                    if discarded < bytes {
                        connection.reading = Reading::Discarding(bytes - discarded);
                        return used;
                    }
                    connection.reading = Reading::Commands;
                }
                Reading::Commands | Reading::Batch => {
                    let Some(first) = rest.first() else { return used };
                    if self.outbox.due_bytes(now_ns) >= self.options.due_bytes_max && !connection.is_peer {
                        (connection.is_held, connection.need) = (true, 0);
                        return used;
                    }
                    let by_first = || self.options.protocol.unwrap_or(WireProtocol::of(*first));
                    let protocol = *connection.session.protocol.get_or_insert_with(by_first);
                    let is_authenticated =
                        self.options.credentials.is_none() || connection.session.is_authenticated;
                    match parse(protocol, rest, &mut array, self.options.value_bytes_max, is_authenticated) {
                        Parsed::Partial { need } => {
                            connection.need = need;
                            return used;
                        }
                        // A client that keeps asking while replies wait gets no more.
                        Parsed::Complete { .. }
                            if self.outbox.end() > self.outbox.end_max(QUEUED_BYTES_MAX) =>
                        {
                            self.queue_close(id, now_ns);
                        }
                        Parsed::Complete { used: bytes, request } => {
                            used += bytes;
                            self.serve_request(id, &request, now_ns);
                        }
                        Parsed::Broken(last_reply) => {
                            let begin = self.outbox.end();
                            self.outbox.writing().extend_from_slice(last_reply);
                            connection.reading = Reading::Nothing;
                            let departure_ns = self.fifo.depart(now_ns, 0);
                            self.queue(id, begin, departure_ns, End::Closes);
                        }
                    }
                }
            }
        }
    }

    fn serve_request(&mut self, id: ConnectionId, request: &Request<'_>, now_ns: u64) {
        let work = request.work();
        let connection = &mut self.connections[id as usize];
        let batch = connection.batch.take();
        self.trains.end_train(self.outbox.end());
        match (work, batch) {
            (Work::Data { verb, continues_batch: true, .. }, Some(batch)) => {
                self.continue_batch(id, request, verb, batch, now_ns);
            }
            _ if connection.reading == Reading::Batch => connection.reading = Reading::Nothing,
            _ if self.options.credentials.is_some()
                && !connection.session.is_authenticated
                && !request.is_allowed_before_login() =>
            {
                self.serve_control(id, request, false, false, now_ns);
            }
            (Work::Data { verb, is_silent, opens_batch, .. }, _) => {
                let (fault, is_counted) = self.serve_data(id, request, verb, is_silent, now_ns);
                let connection = &mut self.connections[id as usize];
                if opens_batch {
                    connection.batch = Some(Batch { fault, is_counted });
                    if connection.reading == Reading::Nothing {
                        connection.reading = Reading::Batch;
                    }
                }
            }
            (Work::Control, batch) => {
                // What ends a batch of which nothing was told yet is what there is to cut.
                let is_cut = batch.is_some_and(|batch| batch.is_still_to_be_cut());
                self.serve_control(id, request, true, is_cut, now_ns);
            }
        }
    }

    /// Serves a command without service time; `is_known`: the client is authenticated, or need not be.
    fn serve_control(
        &mut self,
        id: ConnectionId,
        request: &Request<'_>,
        is_known: bool,
        is_cut: bool,
        now_ns: u64,
    ) {
        let departure_ns = self.fifo.depart(now_ns, 0);
        let begin = self.outbox.end();
        let (closes, _) = self.with_context(id, ValueContent::AsStored, now_ns, |context| {
            if is_known { request.control(context) } else { request.reject_unauthenticated(context) }
        });
        let connection = &mut self.connections[id as usize];
        if request.excess_bytes() > 0 {
            connection.reading = Reading::Discarding(request.excess_bytes());
        }
        if closes {
            connection.reading = Reading::Nothing;
        }
        let end = if closes { End::Closes } else { End::Stays };
        let end = if is_cut { self.cut(id, begin).1 } else { end };
        self.queue(id, begin, departure_ns, end);
    }

    /// Carries out a data command under a number of its own. Returns its fault, and whether that took effect.
    fn serve_data(
        &mut self,
        id: ConnectionId,
        request: &Request<'_>,
        verb: Verb,
        is_silent: bool,
        now_ns: u64,
    ) -> (Option<Fault>, bool) {
        let number = self.number;
        self.number += 1;
        let (service_ns, fault) = match number.checked_sub(self.options.script_after) {
            Some(scripted) => {
                self.fifo.begin_script(now_ns);
                self.outages.begin_script(now_ns);
                (
                    self.options.service.service_ns(self.options.seed, scripted),
                    self.options.faults.fault_of(scripted),
                )
            }
            None => (0, None),
        };
        let departure_ns = self.fifo.depart(now_ns, service_ns);
        let begin = self.outbox.end();
        let (fault_flag, end) = match fault {
            None => (self.reply(id, request, ValueContent::AsStored, now_ns), End::Stays),
            Some(Fault::Wrong) => (self.reply(id, request, ValueContent::Wrong, now_ns), End::Stays),
            Some(Fault::Error) => (self.refuse(id, request, verb, now_ns), End::Stays),
            Some(Fault::Drop) => {
                self.execute_silently(id, request, now_ns);
                self.cache.counters.faults_dropped += 1;
                (log::FLAG_DROPPED, End::Stays)
            }
            Some(Fault::Reset) => {
                self.execute_silently(id, request, now_ns);
                self.cache.counters.faults_reset += 1;
                (log::FLAG_RESET, End::Resets)
            }
            // Some protocols answer a failed request without reply; that takes no fault.
            Some(Fault::Cut) if is_silent => {
                (self.reply(id, request, ValueContent::AsStored, now_ns), End::Stays)
            }
            Some(Fault::Cut) => {
                self.reply(id, request, ValueContent::AsStored, now_ns);
                self.cut(id, begin)
            }
        };
        self.queue(id, begin, departure_ns, end);
        if self.options.record {
            let is_lost = self.outages.next_begin_ns().is_some_and(|begin_ns| begin_ns < departure_ns);
            self.records.push(Record {
                number,
                arrival_ns: now_ns,
                departure_ns,
                connection: self.connections[id as usize].session.number,
                verb: verb as u8,
                flags: fault_flag
                    | if is_silent { log::FLAG_NOREPLY } else { 0 }
                    | if is_lost { log::FLAG_LOST } else { 0 },
            });
        }
        (fault, fault_flag != 0)
    }

    /// Carries out a further request of a batch: without number and service time, and with the fault of the first.
    fn continue_batch(
        &mut self,
        id: ConnectionId,
        request: &Request<'_>,
        verb: Verb,
        mut batch: Batch,
        now_ns: u64,
    ) {
        let departure_ns = self.fifo.depart(now_ns, 0);
        let (begin, mut end) = (self.outbox.end(), End::Stays);
        match batch.fault {
            // One refusal stands for the whole batch.
            Some(Fault::Error) => self.cache.count_refused(verb, 1),
            Some(Fault::Wrong) => {
                let (_, value_bytes) =
                    self.with_context(id, ValueContent::Wrong, now_ns, |context| request.execute(context));
                if value_bytes > 0 && !batch.is_counted {
                    self.cache.counters.faults_wrong += 1;
                    batch.is_counted = true;
                }
            }
            _ => {
                self.reply(id, request, ValueContent::AsStored, now_ns);
                if batch.is_still_to_be_cut() {
                    (_, end) = self.cut(id, begin);
                    batch.is_counted = end == End::Closes;
                }
            }
        }
        let connection = &mut self.connections[id as usize];
        connection.batch = Some(batch);
        match connection.reading {
            Reading::Batch => self.outbox.writing().truncate(begin),
            Reading::Nothing => connection.reading = Reading::Batch,
            _ => {}
        }
        self.queue(id, begin, departure_ns, end);
    }

    /// Runs a command in its context. Returns its result, and the bytes of values in its reply.
    fn with_context<R>(
        &mut self,
        id: ConnectionId,
        value_content: ValueContent,
        now_ns: u64,
        work: impl FnOnce(&mut CommandContext<'_>) -> R,
    ) -> (R, usize) {
        self.cache.advance(now_ns);
        let reply_end_max = self.outbox.end().saturating_add(self.options.reply_bytes_max);
        let out_bytes_max = self.outbox.end_max(QUEUED_BYTES_MAX).min(reply_end_max);
        let mut context = CommandContext {
            cache: &mut self.cache,
            calls: &mut self.calls,
            session: &mut self.connections[id as usize].session,
            credentials: self.options.credentials.as_ref(),
            out: self.outbox.writing(),
            out_bytes_max,
            value_content,
            now_ns,
            value_bytes: 0,
            trains: &mut self.trains,
        };
        let done = work(&mut context);
        (done, context.value_bytes)
    }

    /// Carries out a command and returns the flag of the fault that took effect.
    fn reply(
        &mut self,
        id: ConnectionId,
        request: &Request<'_>,
        value_content: ValueContent,
        now_ns: u64,
    ) -> u8 {
        let (_, value_bytes) =
            self.with_context(id, value_content, now_ns, |context| request.execute(context));
        if value_content == ValueContent::AsStored || value_bytes == 0 {
            return 0;
        }
        self.cache.counters.faults_wrong += 1;
        log::FLAG_WRONG
    }

    fn refuse(&mut self, id: ConnectionId, request: &Request<'_>, verb: Verb, now_ns: u64) -> u8 {
        self.with_context(id, ValueContent::AsStored, now_ns, |context| request.refuse(verb, context));
        self.cache.counters.faults_error += 1;
        log::FLAG_ERROR
    }

    fn execute_silently(&mut self, id: ConnectionId, request: &Request<'_>, now_ns: u64) {
        let begin = self.outbox.end();
        self.reply(id, request, ValueContent::AsStored, now_ns);
        self.outbox.writing().truncate(begin);
        self.connections[id as usize].reading = Reading::Nothing;
    }

    /// Cuts the reply from `begin` on, if there is one.
    fn cut(&mut self, id: ConnectionId, begin: usize) -> (u8, End) {
        let len = self.outbox.end() - begin;
        if len == 0 {
            return (0, End::Stays);
        }
        // The shortest reply is a digit and a line end, so a half is neither nothing nor all.
        self.outbox.writing().truncate(begin + len / 2);
        self.cache.counters.faults_cut += 1;
        self.connections[id as usize].reading = Reading::Nothing;
        (log::FLAG_CUT, End::Closes)
    }

    /// Everything that waits is lost, every connection is reset, and the queue is idle when the outage ends.
    fn begin_outage(&mut self, begin_ns: u64) {
        let end_ns = self.outages.begin();
        self.fifo.restart(end_ns);
        if self.options.outage_forgets {
            self.cache.forget();
        }
        self.outbox.clear();
        let is_reset = |(_, one): &(usize, &mut Connection)| one.open && !one.is_peer;
        for (id, connection) in self.connections.iter_mut().enumerate().filter(is_reset) {
            let id = id as ConnectionId;
            connection.reading = Reading::Nothing;
            connection.is_held = false;
            self.input_bytes -= std::mem::take(&mut connection.input).len();
            self.outbox.forget(id);
            let end = self.outbox.end();
            self.outbox.queue((id, connection.session.number), end, begin_ns, End::Resets, false);
        }
    }

    fn queue_close(&mut self, id: ConnectionId, now_ns: u64) {
        let departure_ns = self.fifo.depart(now_ns, 0);
        self.connections[id as usize].reading = Reading::Nothing;
        self.queue(id, self.outbox.end(), departure_ns, End::Closes);
    }

    /// Queues the output from `begin` on; of a datagram's commands it stays, until the last of them is carried out.
    fn queue(&mut self, id: ConnectionId, begin: usize, departure_ns: u64, end: End) {
        if let Some(latest_ns) = &mut self.datagram_departure_ns {
            *latest_ns = departure_ns.max(*latest_ns);
            return;
        }
        let serial = self.connections[id as usize].session.number;
        self.outbox.queue((id, serial), begin, departure_ns, end, self.is_scripted());
    }

    /// Queues the reply to a datagram, which begins at `begin`.
    fn queue_datagrams(&mut self, id: ConnectionId, request_id: [u8; 2], begin: usize, departure_ns: u64) {
        let is_scripted = self.is_scripted();
        let reply = self.outbox.writing().split_off(begin);
        if reply.is_empty() {
            return;
        }
        let counters = &mut self.cache.counters;
        let place = begin..begin + reply.len();
        let datagrams = self.framer.frame(request_id, place, &self.trains, is_scripted, counters);
        let serial = self.connections[id as usize].session.number;
        for (header, payload) in datagrams {
            let payload = &reply[payload.start - begin..payload.end - begin];
            self.outbox.queue_datagram((id, serial), departure_ns, &[&header, payload]);
        }
    }

    /// Has the first scripted request come? `number` is the next one by now.
    fn is_scripted(&self) -> bool {
        self.number > self.options.script_after || self.options.script_after == 0
    }
}
