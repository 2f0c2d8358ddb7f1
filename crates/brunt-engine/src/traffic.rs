//! The traffic of one worker: sessions, connections, operations in flight, and the recording of what became of them.
//!
//! Not the loop (that is [`crate::worker`]) and not the kernel: everything here works on bytes and times that are handed
//! in, except [`Traffic::flush`], which hands bytes out. Invariant: every operation taken from a session is, at every
//! moment, in exactly one place — waiting, parked, or on one connection's chain — until it is booked as ended or unsent.

use crate::agenda::Agenda;
use crate::connection::{Connection, Link, fault_of_errno};
use crate::in_flight::{Entry, EntryId, InFlight, NO_ENTRY};
use crate::io::{CloseHow, Io};
use crate::lane::{Lane, Picked};
use crate::recording::Recording;
use brunt_plan::op::{KeyRef, Op, ValueRef};
use brunt_plan::outcome::{Outcome, OutcomeClass, ReplyKind};
use brunt_plan::phase::Phase;
use brunt_plan::plan::MeterKind;
use brunt_proto::out::{Out, PARTS_MAX};
use brunt_proto::{Codec, Event, Keys, Malformed, Request, Value};
use brunt_stats::fault::FaultKind;
use brunt_stats::sample::{Sample, Times};
use brunt_workload::payload::Payload;
use brunt_workload::verify::{Integrity, Verifier};
use std::io::IoSlice;
use std::sync::Arc;

/// The times that part the phases, on the worker's clock.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Window {
    /// Warm-up begins.
    pub start_ns: u64,
    /// The measured window begins.
    pub measure_ns: u64,
    /// It ends; `u64::MAX` while that is not known.
    pub end_ns: u64,
}

impl Window {
    /// Before the run is given its times.
    pub(crate) const UNKNOWN: Self = Self { start_ns: u64::MAX, measure_ns: u64::MAX, end_ns: u64::MAX };

    #[inline]
    fn phase_of(&self, intended_ns: u64) -> Phase {
        if intended_ns < self.measure_ns {
            Phase::Warmup
        } else if intended_ns < self.end_ns {
            Phase::Measure
        } else {
            Phase::Drain
        }
    }
}

/// What became of an attempt to give an operation to a connection.
enum Placing {
    /// Its bytes are queued.
    Placed,
    /// No connection has room.
    NoConnection,
    /// The connection must send what it has first.
    FlushFirst,
}

/// Everything a worker owns but its Io.
pub(crate) struct Traffic<C: Codec> {
    codec: C,
    pub connections: Vec<Connection<C>>,
    pub lanes: Vec<Lane>,
    pub agenda: Agenda,
    in_flight: InFlight,
    pub recording: Recording,
    payload: Arc<Payload>,
    pub window: Window,
    timeout_ns: u64,
    /// Compare every value read with what was stored: the data set is ours.
    checks_values: bool,
    /// A connection went down since [`Traffic::take_lost_any`] was asked.
    lost_any: bool,
    /// Connections with something to send.
    dirty: Vec<u32>,
    /// Lanes with waiting operations.
    listed: Vec<u32>,
    key_bytes: Vec<u8>,
    key_ends: Vec<u32>,
    /// The keys of the multi-get whose reply is being read, and which one that is.
    reply_ids: Vec<u64>,
    reply_ids_of: EntryId,
}

/// What a [`Traffic`] is made of.
pub(crate) struct TrafficParts<C: Codec> {
    pub codec: C,
    pub connections: usize,
    /// Bytes that a connection can queue, and the longest request in keys and key bytes.
    pub room: usize,
    pub keys_max: usize,
    pub key_bytes_max: usize,
    /// Operations in flight at most, over all connections.
    pub in_flight_max: usize,
    pub recording: Recording,
    pub payload: Arc<Payload>,
    pub timeout_ns: u64,
    pub checks_values: bool,
}

impl<C: Codec> Traffic<C> {
    pub(crate) fn new(parts: TrafficParts<C>) -> Self {
        let connection = |_| Connection::new(parts.codec.clone(), parts.room);
        Self {
            connections: (0..parts.connections).map(connection).collect(),
            codec: parts.codec,
            lanes: Vec::new(),
            agenda: Agenda::new(0),
            in_flight: InFlight::with_capacity(parts.in_flight_max),
            recording: parts.recording,
            payload: parts.payload,
            window: Window::UNKNOWN,
            timeout_ns: parts.timeout_ns,
            checks_values: parts.checks_values,
            lost_any: false,
            dirty: Vec::with_capacity(parts.connections),
            listed: Vec::new(),
            key_bytes: Vec::with_capacity(parts.key_bytes_max),
            key_ends: Vec::with_capacity(parts.keys_max),
            reply_ids: Vec::with_capacity(parts.keys_max),
            reply_ids_of: NO_ENTRY,
        }
    }

    /// Lets these lanes have the connections. The old ones must have nothing in flight.
    pub(crate) fn install(&mut self, lanes: Vec<Lane>) {
        assert_eq!(self.in_flight.len(), 0, "lanes change between phases only");
        self.listed = Vec::with_capacity(lanes.len());
        self.agenda = Agenda::new(lanes.len() as u32);
        self.lanes = lanes;
        for index in 0..self.lanes.len() {
            for connection in self.lanes[index].connections.clone() {
                self.connections[connection as usize].lane = index as u32;
                self.mark_ready(connection);
            }
            self.agenda.set(index as u32, self.lanes[index].due_ns());
        }
    }

    /// Is any connection established?
    pub(crate) fn is_any_up(&self) -> bool {
        self.connections.iter().any(|connection| connection.link == Link::Up)
    }

    /// Operations in flight.
    pub(crate) fn in_flight(&self) -> u32 {
        self.in_flight.len()
    }

    /// Operations that are due and have not been sent.
    pub(crate) fn backlog(&self) -> usize {
        self.lanes.iter().map(Lane::backlog).sum()
    }

    /// No lane will ever send again of itself, and nothing is waiting or in flight.
    pub(crate) fn is_finished(&self) -> bool {
        self.in_flight.len() == 0
            && self.lanes.iter().all(|lane| lane.session.is_exhausted() && lane.backlog() == 0)
    }

    // ---- from schedules to bytes ------------------------------------------------------------------------------------

    /// Takes every operation that is due and queues its bytes. Returns whether some connection must send before more
    /// can be queued.
    #[inline]
    pub(crate) fn pick(&mut self, now_ns: u64) -> bool {
        let mut flush_first = false;
        for at in (0..self.listed.len()).rev() {
            let lane = self.listed[at];
            flush_first |= self.place_waiting(lane);
            if self.lanes[lane as usize].waiting.is_empty() {
                self.lanes[lane as usize].listed = false;
                self.listed.swap_remove(at);
            }
        }
        while let Some((lane, due_ns)) = self.agenda.first() {
            if due_ns > now_ns {
                break;
            }
            while self.lanes[lane as usize].due_ns() <= now_ns {
                flush_first |= self.pick_one(lane, now_ns);
            }
            self.agenda.set(lane, self.lanes[lane as usize].due_ns());
        }
        flush_first
    }

    /// Takes the next operation of a lane and finds it a connection, or lets it wait.
    #[inline]
    fn pick_one(&mut self, lane_index: u32, now_ns: u64) -> bool {
        let lane = &mut self.lanes[lane_index as usize];
        let issue = lane.session.take();
        let phase = if lane.is_preload { Phase::Preload } else { self.window.phase_of(issue.intended_ns) };
        let picked = Picked {
            op: issue.op,
            phase,
            intended_ns: issue.intended_ns,
            picked_ns: now_ns,
            // Whichever connection works will do for a preload.
            connection: issue.connection.filter(|_| !lane.is_preload).map(|own| lane.connections.start + own),
        };
        let queue_is_empty = lane.waiting.is_empty();
        self.recording.scheduled(phase, &picked.op);
        let placing = match picked.connection {
            None if !queue_is_empty => Placing::NoConnection,
            _ => self.place(lane_index, &picked),
        };
        match placing {
            Placing::Placed => false,
            Placing::NoConnection if picked.connection.is_some() => {
                self.lanes[lane_index as usize].parked.push(picked);
                false
            }
            other => {
                self.lanes[lane_index as usize].waiting.push_back(picked);
                self.list(lane_index);
                matches!(other, Placing::FlushFirst)
            }
        }
    }

    /// Places as many waiting operations of a lane as find room.
    fn place_waiting(&mut self, lane_index: u32) -> bool {
        while let Some(picked) = self.lanes[lane_index as usize].waiting.front().copied() {
            let placing = self.place(lane_index, &picked);
            let lane = &mut self.lanes[lane_index as usize];
            match placing {
                Placing::FlushFirst => return true,
                Placing::NoConnection if picked.connection.is_none() => return false,
                Placing::NoConnection => lane.parked.push(picked),
                Placing::Placed => {}
            }
            let was_full = lane.is_full();
            lane.waiting.pop_front();
            if was_full {
                // That had taken the lane off the agenda.
                self.agenda.set(lane_index, lane.due_ns());
            }
        }
        false
    }

    /// Lets the parked operations of a connection that has become usable again wait for their turn on it.
    fn unpark(&mut self, connection: u32) {
        let lane_index = self.connections[connection as usize].lane;
        let lane = &mut self.lanes[lane_index as usize];
        let waiting = &mut lane.waiting;
        lane.parked.retain(|picked| {
            let is_its_own = picked.connection == Some(connection);
            if is_its_own {
                waiting.push_back(*picked);
            }
            !is_its_own
        });
        self.list(lane_index);
    }

    /// Puts a lane with waiting operations on the list.
    fn list(&mut self, lane_index: u32) {
        let lane = &mut self.lanes[lane_index as usize];
        if !lane.listed && !lane.waiting.is_empty() {
            lane.listed = true;
            self.listed.push(lane_index);
        }
    }

    /// Gives an operation to the connection it is pinned to, or to the one with the fewest outstanding.
    #[inline]
    fn place(&mut self, lane_index: u32, picked: &Picked) -> Placing {
        let lane = &mut self.lanes[lane_index as usize];
        let chosen = match picked.connection {
            Some(pinned) => self.connections[pinned as usize].is_usable().then_some(pinned),
            None => lane.ready.least(),
        };
        let Some(connection_index) = chosen else { return Placing::NoConnection };
        if self.encode(lane_index, connection_index, picked) { Placing::Placed } else { Placing::FlushFirst }
    }

    /// Queues the bytes of an operation on a connection; false if there is no room before it has sent.
    fn encode(&mut self, lane_index: u32, connection_index: u32, picked: &Picked) -> bool {
        let lane = &self.lanes[lane_index as usize];
        let op = &picked.op;
        self.key_bytes.clear();
        self.key_ends.clear();
        let mut first_id = 0;
        for (index, id) in lane.session.ids(op).enumerate() {
            if index == 0 {
                first_id = id;
            }
            lane.keyspace.write_key(id, &mut self.key_bytes);
            self.key_ends.push(self.key_bytes.len() as u32);
        }
        let head;
        let value = match op.value {
            ValueRef::Version(version) => {
                let parts = self.payload.value(first_id, version, lane.keyspace.value_len(first_id));
                head = parts.head;
                Value {
                    head: &head[..parts.head_len],
                    block: self.payload.block(),
                    offset: parts.offset,
                    len: parts.len,
                }
            }
            ValueRef::None | ValueRef::Offset(_) => Value::NONE,
        };
        let connection = &mut self.connections[connection_index as usize];
        let copied = value.head.len() + Out::copied_len(value.len);
        let needed = connection.codec.encoded_len_max(self.key_ends.len(), self.key_bytes.len(), copied);
        if !connection.out.has_room(needed) {
            return false;
        }
        let request = Request {
            kind: op.kind,
            keys: Keys { bytes: &self.key_bytes, ends: &self.key_ends },
            value,
            flags: 0,
            ttl_s: op.ttl_s,
            operand: op.operand,
            noreply: false,
            token: 0,
        };
        let queued_before = connection.out.queued_total();
        let encoded = connection.codec.encode(&request, &mut connection.out);
        debug_assert!(encoded.replied, "nothing asks for no reply yet");
        let outstanding = connection.chain.len;
        let id = self.in_flight.push(
            &mut connection.chain,
            *op,
            picked.phase,
            picked.intended_ns,
            picked.picked_ns,
        );
        let entry = self.in_flight.get_mut(id);
        entry.stream_end = connection.out.queued_total();
        entry.wire_requests = encoded.wire_requests;
        if connection.unsent == NO_ENTRY {
            connection.unsent = id;
        }
        if !connection.dirty {
            connection.dirty = true;
            self.dirty.push(connection_index);
        }
        let request_bytes = connection.out.queued_total() - queued_before;
        self.lanes[lane_index as usize].ready.set(connection_index, outstanding + 1);
        if picked.phase == Phase::Measure {
            self.recording.meter(MeterKind::Outstanding, u64::from(outstanding));
            self.recording.meter(MeterKind::RequestSize, request_bytes);
        }
        true
    }

    /// Sends what is queued, one call per connection. Returns the clock after the last call.
    pub(crate) fn flush<I: Io>(&mut self, io: &mut I, mut now_ns: u64) -> u64 {
        for at in 0..self.dirty.len() {
            let index = self.dirty[at];
            self.connections[index as usize].dirty = false;
            now_ns = self.send(io, index, now_ns);
        }
        self.dirty.clear();
        now_ns
    }

    /// Sends what one connection has queued and stamps what went out.
    #[inline]
    fn send<I: Io>(&mut self, io: &mut I, index: u32, before_ns: u64) -> u64 {
        let connection = &mut self.connections[index as usize];
        if connection.out.is_empty() {
            return before_ns;
        }
        let result = match connection.out.contiguous() {
            Some(bytes) => io.send(index, &[IoSlice::new(bytes)]),
            None => {
                let mut parts = [IoSlice::new(&[]); PARTS_MAX];
                let count = connection.out.gather(self.payload.block(), &mut parts);
                io.send(index, &parts[..count])
            }
        };
        match result.taken {
            Ok(taken) => {
                connection.out.advance(taken);
                let was_stuck = connection.stuck;
                connection.stuck = !connection.out.is_empty();
                if !was_stuck {
                    connection.stuck_ns = result.at_ns;
                }
                let (is_stuck, lane) = (connection.stuck, connection.lane);
                self.stamp_sent(index, result.at_ns, taken as u64, result.at_ns - before_ns);
                if is_stuck {
                    self.lanes[lane as usize].ready.remove(index);
                } else if was_stuck {
                    self.became_usable(index);
                }
            }
            Err(errno) => {
                self.lose(index, result.at_ns, fault_of_errno(errno), OutcomeClass::Lost);
                io.close(index, CloseHow::Orderly);
            }
        }
        result.at_ns
    }

    /// Stamps the operations of a connection whose last byte has been handed over.
    fn stamp_sent(&mut self, index: u32, at_ns: u64, bytes: u64, cost_ns: u64) {
        let connection = &mut self.connections[index as usize];
        let sent_total = connection.out.sent_total();
        while connection.unsent != NO_ENTRY {
            let entry = self.in_flight.get_mut(connection.unsent);
            if entry.stream_end > sent_total {
                break;
            }
            entry.sent_ns = at_ns;
            self.recording.sent(entry);
            connection.unsent = self.in_flight.next(connection.unsent);
        }
        let phase = self.phase_now(at_ns);
        self.recording.bytes_sent(phase, bytes);
        if phase == Phase::Measure {
            self.recording.meter(MeterKind::SendCost, cost_ns);
        }
    }

    /// A socket takes bytes again.
    pub(crate) fn writable<I: Io>(&mut self, io: &mut I, index: u32, at_ns: u64) {
        if self.connections[index as usize].stuck {
            self.send(io, index, at_ns);
        }
    }

    // ---- from bytes to samples --------------------------------------------------------------------------------------

    /// Takes in bytes that were received. An error means that the connection was given up and is to be closed.
    pub(crate) fn receive(&mut self, index: u32, input: &[u8], at_ns: u64, polled_ns: u64) -> Result<(), ()> {
        let phase = self.phase_now(at_ns);
        self.recording.bytes_received(phase, input.len() as u64);
        let mut input = input;
        while !self.connections[index as usize].leftover.is_empty() {
            // The cut event is completed in the leftover, which has room for the longest.
            let mut joined = std::mem::take(&mut self.connections[index as usize].leftover);
            let carried = joined.len();
            let added = input.len().min(C::UNIT_BYTES_MAX - carried);
            joined.extend_from_slice(&input[..added]);
            let used = self.decode(index, &joined, at_ns, polled_ns);
            let outcome = used.map(|used| {
                if used >= carried {
                    input = &input[used - carried..];
                    joined.clear();
                } else {
                    input = &input[added..];
                    joined.drain(..used);
                }
                input.is_empty()
            });
            self.connections[index as usize].leftover = joined;
            if outcome? {
                return Ok(());
            }
        }
        let used = self.decode(index, input, at_ns, polled_ns)?;
        self.connections[index as usize].leftover.extend_from_slice(&input[used..]);
        Ok(())
    }

    /// Decodes as much as there is; how many bytes were used up.
    #[inline]
    fn decode(&mut self, index: u32, input: &[u8], at_ns: u64, polled_ns: u64) -> Result<usize, ()> {
        let mut used = 0;
        loop {
            let connection = &mut self.connections[index as usize];
            let (step, event) = connection.codec.decode(&input[used..]);
            used += step;
            let Some(event) = event else { return Ok(used) };
            let head = connection.chain.head;
            match event {
                Event::Bad(reason) => return self.garbage(index, &input[used..], at_ns, reason),
                _ if head == NO_ENTRY => {
                    return self.garbage(index, &input[used..], at_ns, Malformed::UnknownReply);
                }
                Event::Begin => self.in_flight.get_mut(head).first_byte_ns = at_ns,
                Event::Key { hit, key, bytes, .. } => {
                    let entry = self.in_flight.get_mut(head);
                    entry.hits += u32::from(hit);
                    if entry.hits > u32::from(entry.op.count) {
                        // More keys than were asked for: requests and replies are out of step.
                        return self.garbage(index, &input[used - step..], at_ns, Malformed::UnknownReply);
                    }
                    if entry.phase == Phase::Measure && hit {
                        self.recording.meter(MeterKind::ValueReceived, u64::from(bytes));
                    }
                    self.begin_value(index, key);
                }
                Event::Value(piece) => {
                    if let Some(verifier) = &mut connection.verifier {
                        verifier.feed(&self.payload, piece);
                    }
                }
                Event::End { reply, text, .. } => {
                    self.end_value(index);
                    let kind = self.in_flight.get(head).op.kind;
                    let outcome = Outcome::of_reply(kind, reply);
                    if outcome.class == OutcomeClass::Error {
                        self.recording.note_error(text);
                    }
                    self.finish(index, outcome, at_ns, polled_ns);
                }
                // Nothing that is asked today has such lines in its reply.
                Event::Control(_) => {}
            }
        }
    }

    /// A value begins, under the key that the server names: from here on its bytes are compared with those that were
    /// stored under the key that was asked for.
    #[inline]
    fn begin_value(&mut self, index: u32, key: &[u8]) {
        self.end_value(index);
        if !self.checks_values {
            return;
        }
        let connection = &mut self.connections[index as usize];
        let entry = self.in_flight.get_mut(connection.chain.head);
        let keyspace = &self.lanes[connection.lane as usize].keyspace;
        let named = keyspace.id_of_key(key);
        let lane = &self.lanes[connection.lane as usize];
        let asked = match entry.op.key {
            KeyRef::Id(id) if entry.op.count == 1 => Some(id),
            _ => {
                if self.reply_ids_of != connection.chain.head {
                    self.reply_ids_of = connection.chain.head;
                    self.reply_ids.clear();
                    self.reply_ids.extend(lane.session.ids(&entry.op));
                }
                // Keys come in the order of the request, those that are missing passed over.
                let rest = &self.reply_ids[entry.key_cursor as usize..];
                let place = rest.iter().position(|id| named == Some(*id));
                entry.key_cursor += place.map_or(0, |place| place as u32 + 1);
                named.filter(|_| place.is_some())
            }
        };
        match asked.filter(|id| named == Some(*id)) {
            Some(id) => connection.verifier = Some(Verifier::new(id, 0, keyspace.value_len(id))),
            None => entry.mismatched = true,
        }
    }

    /// The value that was being compared, if any, is complete.
    #[inline]
    fn end_value(&mut self, index: u32) {
        let connection = &mut self.connections[index as usize];
        if let Some(verifier) = connection.verifier.take() {
            let entry = self.in_flight.get_mut(connection.chain.head);
            entry.mismatched |= verifier.finish(&self.payload) != Integrity::Intact;
        }
    }

    /// Ends the oldest operation of a connection and books it.
    #[inline]
    fn finish(&mut self, index: u32, outcome: Outcome, at_ns: u64, polled_ns: u64) {
        let connection = &mut self.connections[index as usize];
        let Some(mut entry) = self.in_flight.pop(&mut connection.chain) else { return };
        self.reply_ids_of = NO_ENTRY;
        if entry.sent_ns == 0 {
            // A reply to a request that has not gone out whole: the server refused it early.
            connection.unsent = connection.chain.head;
            entry.sent_ns = at_ns;
            self.recording.sent(&entry);
        }
        if outcome.reply != ReplyKind::None {
            // Only a reply shows that this connection is of use.
            connection.failures = 0;
        }
        let (lane, outstanding) = (connection.lane, connection.chain.len);
        if connection.is_usable() {
            self.lanes[lane as usize].ready.set(index, outstanding);
        }
        let class = if entry.mismatched && outcome.class == OutcomeClass::Hit {
            OutcomeClass::Mismatch
        } else {
            outcome.class
        };
        self.book(index, &entry, Outcome { class, ..outcome }, at_ns, polled_ns);
    }

    /// Books the end of an operation that was sent, and gives its slot back.
    #[inline]
    fn book(&mut self, index: u32, entry: &Entry, outcome: Outcome, done_ns: u64, polled_ns: u64) {
        let sample = Sample {
            op: entry.op.kind,
            class: entry.op.class,
            outcome,
            times: Times {
                intended_ns: entry.intended_ns,
                picked_ns: entry.picked_ns,
                sent_ns: entry.sent_ns,
                polled_ns: polled_ns.min(done_ns),
                first_byte_ns: if entry.first_byte_ns == 0 { done_ns } else { entry.first_byte_ns },
                done_ns,
            },
        };
        let asked = if entry.op.kind.is_retrieval() { u32::from(entry.op.count) } else { 0 };
        self.recording.record(entry.phase, &sample, asked, entry.hits);
        self.release(index, &entry.op, outcome, done_ns);
    }

    #[inline]
    fn release(&mut self, index: u32, op: &Op, outcome: Outcome, done_ns: u64) {
        let lane_index = self.connections[index as usize].lane;
        let lane = &mut self.lanes[lane_index as usize];
        if !lane.session.is_open() {
            lane.session.release(index - lane.connections.start, op, outcome, done_ns);
            self.agenda.set(lane_index, lane.due_ns());
        }
    }

    // ---- trouble ----------------------------------------------------------------------------------------------------

    /// Bytes that are no reply: the operation that waits for one ends in an error, the connection is given up.
    fn garbage(&mut self, index: u32, bytes: &[u8], at_ns: u64, reason: Malformed) -> Result<usize, ()> {
        self.recording.note_garbage(bytes, at_ns, reason.describe());
        if self.connections[index as usize].chain.head != NO_ENTRY {
            self.finish(index, Outcome::without_reply(OutcomeClass::Error), at_ns, at_ns);
        }
        self.lose(index, at_ns, FaultKind::Garbage, OutcomeClass::Lost);
        Err(())
    }

    /// A connection is gone: books everything on it and prepares it for another attempt.
    pub(crate) fn lose(&mut self, index: u32, at_ns: u64, fault: FaultKind, class: OutcomeClass) {
        let phase = self.phase_now(at_ns);
        self.recording.fault(phase, fault, at_ns);
        let lane_index = self.connections[index as usize].lane;
        if let Some(lane) = self.lanes.get_mut(lane_index as usize) {
            lane.ready.remove(index);
        }
        while let Some(entry) = self.in_flight.pop(&mut self.connections[index as usize].chain) {
            if entry.sent_ns == 0 {
                self.recording.unsent(entry.phase, &entry.op);
                self.release(index, &entry.op, Outcome::without_reply(OutcomeClass::Lost), at_ns);
                continue;
            }
            let deadline_ns = entry.sent_ns + self.timeout_ns;
            let (class, done_ns) = match class {
                // Booked at the time-out value, however late the loop noticed.
                OutcomeClass::Timeout if deadline_ns <= at_ns => (OutcomeClass::Timeout, deadline_ns),
                _ => (OutcomeClass::Lost, at_ns),
            };
            self.book(index, &entry, Outcome::without_reply(class), done_ns, done_ns);
        }
        let codec = self.codec.clone();
        self.lost_any = true;
        let connection = &mut self.connections[index as usize];
        let retry_ns = at_ns + connection.backoff_ns();
        connection.failures += 1;
        connection.reset(codec, retry_ns);
    }

    /// Gives up every connection whose oldest operation has timed out. Returns when to look again.
    ///
    /// One look over the heads suffices until the earliest deadline found: whatever is sent later times out later.
    pub(crate) fn expire<I: Io>(&mut self, io: &mut I, now_ns: u64) -> u64 {
        let mut earliest_ns = now_ns + self.timeout_ns;
        for index in 0..self.connections.len() as u32 {
            let head = self.connections[index as usize].chain.head;
            if head == NO_ENTRY {
                continue;
            }
            let entry = self.in_flight.get(head);
            // A request that the peer does not even take in is timed from when its socket was full.
            let since_ns =
                if entry.sent_ns == 0 { self.connections[index as usize].stuck_ns } else { entry.sent_ns };
            let deadline_ns = since_ns + self.timeout_ns;
            if deadline_ns <= now_ns {
                self.lose(index, now_ns, FaultKind::TimedOut, OutcomeClass::Timeout);
                io.close(index, CloseHow::Reset);
            } else {
                earliest_ns = earliest_ns.min(deadline_ns);
            }
        }
        earliest_ns
    }

    /// Did a connection go down since the last call, so that another attempt must be scheduled?
    #[inline]
    pub(crate) fn take_lost_any(&mut self) -> bool {
        std::mem::take(&mut self.lost_any)
    }

    /// A connection is established.
    pub(crate) fn connected(&mut self, index: u32, at_ns: u64) {
        let connection = &mut self.connections[index as usize];
        if let Link::Connecting { began_ns } = connection.link {
            self.recording.meter(MeterKind::ConnectTime, at_ns - began_ns);
        }
        connection.link = Link::Up;
        self.became_usable(index);
    }

    fn became_usable(&mut self, index: u32) {
        self.mark_ready(index);
        if !self.lanes.is_empty() {
            self.unpark(index);
        }
    }

    fn mark_ready(&mut self, index: u32) {
        let connection = &self.connections[index as usize];
        if connection.is_usable()
            && let Some(lane) = self.lanes.get_mut(connection.lane as usize)
            && lane.connections.contains(&index)
        {
            lane.ready.set(index, connection.chain.len);
        }
    }

    /// The phase that something without an intended time belongs to.
    pub(crate) fn phase_now(&self, at_ns: u64) -> Phase {
        match self.lanes.first() {
            None => Phase::Connect,
            Some(lane) if lane.is_preload => Phase::Preload,
            Some(_) if at_ns < self.window.start_ns => Phase::Connect,
            Some(_) => self.window.phase_of(at_ns),
        }
    }

    /// Nothing with an intended time from now on is sent any more.
    pub(crate) fn end_at(&mut self, now_ns: u64) {
        self.window.end_ns = self.window.end_ns.min(now_ns);
        for (index, lane) in self.lanes.iter_mut().enumerate() {
            lane.session.end_at(now_ns);
            self.agenda.set(index as u32, lane.due_ns());
        }
    }

    /// The run is over: books what was never sent and what is still in flight.
    pub(crate) fn close_books(&mut self) {
        let window = self.window;
        for lane in &mut self.lanes {
            for picked in lane.waiting.drain(..).chain(lane.parked.drain(..)) {
                self.recording.unsent(picked.phase, &picked.op);
            }
            // Still in the schedule, because the queue before it was full.
            while lane.session.is_open() && lane.session.due_ns() < window.end_ns {
                let issue = lane.session.take();
                let phase = window.phase_of(issue.intended_ns);
                self.recording.scheduled(phase, &issue.op);
                self.recording.unsent(phase, &issue.op);
            }
        }
        for connection in &mut self.connections {
            while let Some(entry) = self.in_flight.pop(&mut connection.chain) {
                if entry.sent_ns == 0 {
                    self.recording.unsent(entry.phase, &entry.op);
                } else {
                    self.recording.in_flight(&entry);
                }
            }
        }
    }
}
