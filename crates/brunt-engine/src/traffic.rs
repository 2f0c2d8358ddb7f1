//! The traffic of one worker: takes operations from its sessions, puts them on connections, and records their ends.
//!
//! What is due and what waits is in `dispatch`, what was sent in `in_flight` (with `groups` of parts and `shared_slots`), and
//! the connections between them in `connections`; each keeps its own invariants. This file takes due operations and queues
//! their bytes. `fast_path` has the short ways of simple gets; `routing` chooses servers, `sending` passes
//! bytes to the Io, `receiving` makes samples of replies, `matching` finds their operations, `connecting` covers a
//! connection's life, `filling` stores what was missed, `datagrams` assembles replies over UDP, `verifying` checks values, `redirecting` follows a cluster,
//! `failure_handling` covers lost connections and timeouts, `abandoning` ends operations whose server is down. Invariant:
//! every operation taken from a session is in exactly one place, waiting or parked on a route or on one connection's
//! chain (each part of a split one), until it is recorded as ended or unsent.

mod abandoning;
mod connecting;
mod datagrams;
mod failure_handling;
mod fast_path;
mod filling;
mod matching;
mod receiving;
mod redirecting;
mod routing;
mod sending;
pub(crate) mod verifying;

use crate::state::busy_period::BusyPeriods;
use crate::state::connection::Connection;
use crate::state::connections::{ConnectionPlan, Connections, Lifetimes};
use crate::state::dispatch::{Dispatch, Stops};
use crate::state::group::{Groups, SharedSlots};
use crate::state::hash_slots::SlotTable;
use crate::state::health::Health;
use crate::state::in_flight::InFlight;
use crate::state::lane::{Lane, Lanes, Picked};
use crate::state::recording::Recording;
use crate::state::stamper::Stamper;
use crate::state::{EntryId, NO_ENTRY, NO_GROUP, NO_REDIRECT, NO_SHARED_SLOT, RouteId};
use crate::traffic::datagrams::Datagrams;
use crate::traffic::verifying::{Audit, WrongBytes};
use brunt_plan::op::{KeyRef, Op, ValueRef};
use brunt_plan::outcome::Outcome;
use brunt_plan::phase::Phase;
use brunt_proto::resp::slot::slot_of;
use brunt_proto::{Codec, Keys, Request, Value};
use brunt_stats::connection::FirstError;
use brunt_workload::keys::COUNTER_START;
use brunt_workload::payload::{HEAD_LEN, Payload, ValueParts};
use brunt_workload::session::{DueOp, PhaseTimes};
use std::sync::Arc;

/// Result of placing an operation on a connection.
enum Placing {
    /// Its bytes are queued.
    Placed,
    /// No connection has room.
    NoConnection,
    /// The connection must send first.
    FlushFirst,
}

/// A worker without its Io.
pub(crate) struct Traffic<C: Codec> {
    /// What is due, and what waits for a connection.
    pub dispatch: Dispatch,
    pub connections: Connections<C>,
    /// Health of the servers.
    pub servers: Vec<Health>,
    /// Client lag of the servers' busy periods.
    pub busy: BusyPeriods,
    in_flight: InFlight<C>,
    groups: Groups,
    shared_slots: SharedSlots,
    pub recording: Recording,
    pub stamper: Stamper,
    payload: Arc<Payload>,
    pub window: PhaseTimes,
    timeout_ns: u64,
    /// Stops of the client.
    pub stops: Stops,
    /// One per class with `--verify`.
    audits: Vec<Audit>,
    /// A connection was lost, or the preload refused, since the last [`Traffic::take_any_lost`].
    any_lost: bool,
    /// The error that has ended the preload.
    pub rejection: Option<FirstError>,
    datagrams: Datagrams,
    wrong_bytes: WrongBytes,
    key_bytes: Vec<u8>,
    key_ends: Vec<u32>,
    /// Keys of the current multi-get per route.
    route_keys: Vec<u16>,
    /// Keys of the multi-get whose reply is being read, and its entry.
    reply_ids: Vec<u64>,
    reply_ids_of: EntryId,
    /// The slot table, if the servers are a cluster.
    pub slots: Option<SlotTable>,
}

/// What a worker has room for at a time, from the plan.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Capacities {
    /// Of the largest request.
    pub keys: usize,
    pub key_bytes: usize,
    /// Requests on all connections.
    pub in_flight: usize,
    /// Operations in parts.
    pub groups: usize,
    pub shared_slots: usize,
    /// Waiting operations of open loops, over all routes.
    pub waiting: usize,
}

/// The parts of a [`Traffic`].
pub(crate) struct TrafficParts<C: Codec> {
    pub codec: C,
    pub connections: Vec<ConnectionPlan>,
    pub servers: usize,
    pub busy: BusyPeriods,
    pub lifetimes: Vec<Lifetimes>,
    /// Bytes of a send queue.
    pub room: usize,
    pub capacities: Capacities,
    pub recording: Recording,
    /// By connection: may the kernel take timestamps of its requests? Empty without timestamps.
    pub stamped: Vec<bool>,
    pub payload: Arc<Payload>,
    /// Classes have windows of objects, whose wrong values are reported with their bytes.
    pub has_windows: bool,
    pub timeout_ns: u64,
    /// There are more workers than CPUs.
    pub is_crowded: bool,
    /// One per class with `--verify`.
    pub audits: Vec<Audit>,
    /// The slot table, if the servers are a cluster.
    pub slots: Option<SlotTable>,
}

impl<C: Codec> Traffic<C> {
    pub(crate) fn new(parts: TrafficParts<C>) -> Self {
        let count = parts.connections.len();
        let is_by_datagram = |server: usize| {
            parts.connections.iter().any(|plan| plan.by_datagram && usize::from(plan.server) == server)
        };
        Self {
            datagrams: Datagrams::new(count, &parts.codec),
            connections: Connections::new(parts.codec, &parts.connections, parts.room, parts.lifetimes),
            dispatch: Dispatch::new(parts.is_crowded),
            servers: (0..parts.servers)
                .map(|server| Health::new(server as u16, is_by_datagram(server)))
                .collect(),
            busy: parts.busy,
            in_flight: InFlight::new(count, parts.capacities.in_flight),
            groups: Groups::with_capacity(parts.capacities.groups),
            shared_slots: SharedSlots::with_capacity(parts.capacities.shared_slots),
            recording: parts.recording,
            stamper: Stamper::new(parts.stamped),
            payload: parts.payload,
            window: PhaseTimes::UNKNOWN,
            timeout_ns: parts.timeout_ns,
            stops: Stops::new(),
            wrong_bytes: WrongBytes::new(if parts.has_windows { count } else { 0 }),
            audits: parts.audits,
            any_lost: false,
            rejection: None,
            key_bytes: Vec::with_capacity(parts.capacities.key_bytes),
            key_ends: Vec::with_capacity(parts.capacities.keys),
            route_keys: vec![0; parts.servers],
            reply_ids: Vec::with_capacity(parts.capacities.keys),
            reply_ids_of: NO_ENTRY,
            slots: parts.slots,
        }
    }

    /// Replaces the lanes. The old ones must have nothing in flight.
    pub(crate) fn install(&mut self, lanes: Lanes) {
        assert_eq!(self.in_flight.len(), 0, "lanes change between phases only");
        (0..self.dispatch.routes.len() as RouteId).for_each(|route| self.end_backlog(route));
        self.dispatch.install(lanes);
        for index in 0..self.dispatch.routes.len() {
            for connection in self.dispatch.routes[index].connections.clone() {
                let lane = &self.dispatch.lanes[self.dispatch.routes[index].lane as usize];
                let (reserved_calls, deferred_slots) = lane.slots();
                let entry = &mut self.connections[connection];
                if lane.refills_together {
                    entry.freed.reserve_exact(lane.depth as usize);
                }
                (entry.route, entry.reserved_calls, entry.deferred_slots) =
                    (index as RouteId, reserved_calls, deferred_slots);
                self.mark_ready(connection);
            }
        }
        self.dispatch.begin();
    }

    /// Operations in flight.
    pub(crate) fn in_flight(&self) -> u32 {
        self.in_flight.len()
    }

    /// Due operations that were not sent.
    pub(crate) fn backlog(&self) -> usize {
        self.dispatch.backlog() + self.paused()
    }

    /// Are all sessions exhausted, with nothing waiting or in flight?
    pub(crate) fn is_finished(&self) -> bool {
        self.in_flight.len() == 0
            && self.dispatch.lanes.iter().all(|lane| lane.session.is_exhausted())
            && self.backlog() == 0
    }

    /// The lane of a connection, the first if lanes share it.
    #[inline]
    fn lane_of(&self, connection: u32) -> u32 {
        let route = self.connections[connection].route;
        self.dispatch.routes.get(route as usize).map_or(0, |route| route.lane)
    }

    /// Takes every due operation and queues its bytes. Returns whether a connection must send first: the rest is
    /// picked after that, at a later time, because waiting for room in the client's own queue must not count as
    /// waiting for a server.
    #[inline]
    pub(crate) fn dispatch_due(&mut self, now_ns: u64) -> bool {
        self.dispatch.dispatched_ns = now_ns;
        if self.dispatch.has_due_fills(now_ns) {
            self.issue_due_fills(now_ns);
        }
        let mut flush_first = !self.dispatch.backlogged.is_empty() && self.dispatch_backlog(now_ns);
        while let Some((lane, due_ns)) = self.dispatch.deadlines.first() {
            if due_ns > now_ns || flush_first {
                break;
            }
            flush_first = self.dispatch_lane(lane, now_ns);
        }
        flush_first
    }

    /// As `dispatch_due`, of what waits on routes, and of what their full queues kept in the schedule.
    fn dispatch_backlog(&mut self, now_ns: u64) -> bool {
        let mut flush_first = false;
        for at in (0..self.dispatch.backlogged.len()).rev() {
            let route = self.dispatch.backlogged[at];
            flush_first |= self.place_waiting(route);
            while !flush_first && let Some(lane) = self.dispatch.first_kept_in_schedule(route) {
                flush_first = self.dispatch_kept(lane, now_ns);
            }
            if self.dispatch.routes[route as usize].waiting.is_empty()
                && self.dispatch.first_kept_in_schedule(route).is_none()
            {
                self.dispatch.backlogged.swap_remove(at);
                self.end_backlog(route);
                // Due operations can be sent at once.
                for lane in self.dispatch.routes[route as usize].lanes() {
                    self.dispatch.deadlines.set(lane, self.dispatch.lanes[lane as usize].due_ns());
                }
            }
        }
        if self.dispatch.backlogged.is_empty() {
            self.dispatch.absences.stop();
        }
        flush_first
    }

    /// Takes an operation that a full queue kept in the schedule, as of when the loop would have taken it.
    fn dispatch_kept(&mut self, lane_index: u32, now_ns: u64) -> bool {
        let lane = &mut self.dispatch.lanes[lane_index as usize];
        let issue = lane.session.take();
        lane.feed(now_ns);
        let picked_ns = self.dispatch.picked_ns(lane_index, issue.intended_ns, now_ns);
        self.recording.occupancy.enter_before(picked_ns);
        self.enqueue_due(lane_index, &issue, picked_ns)
    }

    /// As `dispatch_due`, of one lane with a due operation.
    #[inline(always)]
    fn dispatch_lane(&mut self, lane_index: u32, now_ns: u64) -> bool {
        let mut flush_first = false;
        let lane = &mut self.dispatch.lanes[lane_index as usize];
        lane.feed(now_ns);
        if lane.binds_slots {
            // Fast gets first, then one other operation.
            while !flush_first && let Some(issue) = self.queue_fast_gets(lane_index, now_ns) {
                flush_first = self.enqueue_due(lane_index, &issue, now_ns);
            }
        } else {
            while !flush_first && self.dispatch.lanes[lane_index as usize].due_ns() <= now_ns {
                let issue = self.dispatch.lanes[lane_index as usize].session.take();
                flush_first = self.enqueue_due(lane_index, &issue, now_ns);
            }
        }
        let lane = &mut self.dispatch.lanes[lane_index as usize];
        lane.feed(now_ns);
        self.dispatch.set_next_look(lane_index, now_ns);
        flush_first
    }

    /// Counts an operation that a lane has issued, and places it or lets it wait.
    #[inline]
    fn enqueue_due(&mut self, lane_index: u32, issue: &DueOp, now_ns: u64) -> bool {
        let lane = &mut self.dispatch.lanes[lane_index as usize];
        let phase = if lane.is_preload { Phase::Preload } else { self.window.phase_of(issue.intended_ns) };
        let (first_route, first_connection) = (lane.routes.start, lane.first_connection);
        let (binds_slots, splits) = (lane.binds_slots, lane.splits(&issue.op));
        let row = self.recording.row(phase, &issue.op);
        self.recording.set.scheduled_many(row, 1);
        self.recording.occupancy.enter(now_ns, 1);
        let mut picked = Picked::new(issue.op, phase, row, issue.intended_ns, now_ns, first_route);
        if splits {
            return self.split(lane_index, picked);
        }
        match issue.connection {
            // The slot names the connection; such a lane has one route.
            Some(place) if binds_slots => picked.connection = Some(first_connection + place),
            _ => picked.route = self.route_of(lane_index, &picked.op),
        }
        self.submit(picked)
    }

    /// Places an operation, or lets it wait. Returns whether a connection must send first.
    #[inline]
    fn submit(&mut self, picked: Picked) -> bool {
        let queue_is_empty = self.dispatch.routes[picked.route as usize].waiting.is_empty();
        let placing = match picked.connection {
            None if !queue_is_empty => Placing::NoConnection,
            _ => self.place(&picked),
        };
        match placing {
            Placing::Placed => false,
            Placing::NoConnection if self.recording.counts.connections_abandoned > 0 => {
                self.reroute_dispatched(picked)
            }
            Placing::NoConnection if picked.connection.is_some() => {
                self.dispatch.routes[picked.route as usize].parked.push(picked);
                false
            }
            other => {
                self.enqueue_dispatched(picked);
                matches!(other, Placing::FlushFirst)
            }
        }
    }

    /// Lets an operation that was just picked wait on its route.
    #[inline]
    fn enqueue_dispatched(&mut self, picked: Picked) {
        self.enqueue(picked);
        if self.dispatch.routes[picked.route as usize].is_full() {
            self.make_room(picked.route, self.dispatch.dispatched_ns);
        }
    }

    /// Lets an operation wait on its route.
    fn enqueue(&mut self, picked: Picked) {
        self.dispatch.push_waiting(picked);
        self.add_to_backlog(picked.route);
    }

    /// Places waiting operations of a route while connections have room.
    fn place_waiting(&mut self, route_index: RouteId) -> bool {
        while let Some(picked) = self.dispatch.routes[route_index as usize].waiting.front().copied() {
            let placing = self.place(&picked);
            let route = &mut self.dispatch.routes[route_index as usize];
            match placing {
                Placing::FlushFirst => return true,
                Placing::NoConnection if picked.connection.is_none() => return false,
                Placing::NoConnection => route.parked.push(picked),
                Placing::Placed => {}
            }
            self.dispatch.pop_waiting(route_index);
        }
        false
    }

    /// Queues the parked operations of a connection that is usable again.
    fn unpark(&mut self, connection: u32) {
        let route_index = self.connections[connection].route;
        let route = &mut self.dispatch.routes[route_index as usize];
        let was_full = route.is_full();
        let waiting = &mut route.waiting;
        route.parked.retain(|picked| {
            let is_its_own = picked.connection == Some(connection);
            if is_its_own {
                waiting.push_back(*picked);
            }
            !is_its_own
        });
        self.dispatch.note_length(route_index, was_full);
        self.add_to_backlog(route_index);
    }

    /// Adds a route with waiting operations to the list.
    fn add_to_backlog(&mut self, route_index: RouteId) {
        let route = &mut self.dispatch.routes[route_index as usize];
        if !route.backlogged && !route.waiting.is_empty() {
            route.backlogged = true;
            self.dispatch.backlogged.push(route_index);
            self.busy.begin_waiting(self.connections[route.connections.start].server);
        }
    }

    /// Marks a route without waiting operations; the caller removes it from the list.
    fn end_backlog(&mut self, route_index: RouteId) {
        let route = &mut self.dispatch.routes[route_index as usize];
        if std::mem::take(&mut route.backlogged) {
            self.busy.end_waiting(self.connections[route.connections.start].server);
        }
    }

    /// Places an operation on its bound connection, or on the one with the fewest operations in flight.
    #[inline]
    fn place(&mut self, picked: &Picked) -> Placing {
        let chosen = match picked.connection {
            Some(pinned) => self.connections[pinned].is_usable().then_some(pinned),
            None => self.dispatch.routes[picked.route as usize].ready.least(),
        };
        let Some(connection) = chosen else { return Placing::NoConnection };
        if self.encode(connection, picked) { Placing::Placed } else { Placing::FlushFirst }
    }

    /// Writes the keys of an operation, or those of a part that its server holds. Returns the id of the first.
    #[inline]
    fn write_keys(&mut self, lane_index: u32, picked: &Picked) -> u64 {
        let lane = &self.dispatch.lanes[lane_index as usize];
        self.key_bytes.clear();
        self.key_ends.clear();
        if let Some(id) = picked.op.only_id() {
            lane.keyspace.write_key(id, &mut self.key_bytes);
            self.key_ends.push(self.key_bytes.len() as u32);
            return id;
        }
        if let KeyRef::Offset(place) = picked.op.key {
            self.key_bytes.extend_from_slice(lane.session.records().key(place));
            self.key_ends.push(self.key_bytes.len() as u32);
            return lane.session.records().value(place).0;
        }
        let mut first_id = None;
        let is_part = picked.group != NO_GROUP;
        let op = if is_part { &self.groups.get(picked.group).whole.op } else { &picked.op };
        let spread = if is_part { lane.spread(op.kind) } else { None };
        let slot = (C::REDIRECTS && is_part && self.slots.is_some()).then_some(picked.op.operand);
        for id in lane.session.ids(op) {
            let start = self.key_bytes.len();
            lane.keyspace.write_key(id, &mut self.key_bytes);
            let key = &self.key_bytes[start..];
            let is_of_another_part = spread
                .is_some_and(|spread| spread.route(key, picked.op.operand as u32) != picked.route)
                || slot.is_some_and(|slot| u64::from(slot_of(key)) != slot);
            if is_of_another_part {
                self.key_bytes.truncate(start);
                continue;
            }
            first_id.get_or_insert(id);
            self.key_ends.push(self.key_bytes.len() as u32);
        }
        first_id.unwrap_or(0)
    }

    /// Queues an operation on a connection; false if there is no room before it has sent.
    fn encode(&mut self, connection_index: u32, picked: &Picked) -> bool {
        let lane_index = picked.op.session;
        let first_id = self.write_keys(lane_index, picked);
        let versioned = self.with_version(picked, first_id);
        let picked = versioned.as_ref().unwrap_or(picked);
        let lane = &self.dispatch.lanes[lane_index as usize];
        let op = &picked.op;
        let mut head = [0; HEAD_LEN];
        let value = value_of(lane, op, first_id, &self.payload, &mut head);
        let is_simple = lane.is_simple(picked) && !(C::REDIRECTS && picked.redirect_state != NO_REDIRECT);
        let id = self.in_flight.allocate(connection_index, picked, is_simple);
        let request = Request {
            kind: op.kind,
            keys: Keys { bytes: &self.key_bytes, ends: &self.key_ends },
            value,
            flags: 0,
            ttl_s: op.ttl_s,
            operand: op.operand,
            noreply: lane.noreply && !op.kind.is_retrieval(),
            token: self.in_flight.token(id),
            command: op.command,
        };
        let preamble = if C::REDIRECTS { self.preamble(picked.redirect_state) } else { &[] };
        let connection = &mut self.connections[connection_index];
        let is_first = connection.outstanding() == 0;
        let (in_flight, recording) = (&mut self.in_flight, &mut self.recording);
        if !connection.queue(connection_index, preamble, &request, id, in_flight, recording) {
            return false;
        }
        if !preamble.is_empty() {
            self.note_asking(picked.redirect_state);
        }
        if picked.op.kind.carries_value() {
            self.note_write(lane_index, picked, first_id, versioned.is_some());
        }
        let connection = &mut self.connections.all[connection_index as usize];
        self.busy.enter_picked(connection.server, is_first, picked.intended_ns, picked.picked_ns);
        // A fill shares the slot of the retrieval.
        let fills_slot = picked.connection.is_some() && picked.shared_slot == NO_SHARED_SLOT;
        connection.reserved_calls -= u32::from(fills_slot);
        if !connection.dirty {
            connection.dirty = true;
            self.connections.dirty.push(connection_index);
        }
        let route = &mut self.dispatch.routes[picked.route as usize];
        if connection.retiring {
            route.ready.remove(connection_index);
        } else {
            route.ready.set(connection_index, connection.outstanding());
        }
        true
    }

    /// Notes the write of a value.
    #[inline(never)]
    fn note_write(&mut self, lane_index: u32, picked: &Picked, id: u64, is_versioned: bool) {
        let lane = &self.dispatch.lanes[lane_index as usize];
        if lane.is_windowed {
            let bytes = lane.keyspace.key_len(id) as u64 + u64::from(lane.keyspace.value_len(id));
            self.recording.counts.windows.object_bytes += bytes;
        }
        if is_versioned {
            self.audits[usize::from(picked.op.class)].tracker.begin(id, picked.picked_ns);
        }
    }

    /// Frees the slot of an operation that ended on a connection, unless fills share it.
    #[inline]
    fn release(
        &mut self,
        index: u32,
        shared_slot: u32,
        lane_index: u32,
        key: KeyRef,
        outcome: Outcome,
        done_ns: u64,
    ) {
        let owner = self.leave(index, shared_slot, lane_index, key, outcome);
        if owner != Some(index) {
            self.refill_idle(index);
        }
        let Some(owner) = owner else { return };
        let lane = &mut self.dispatch.lanes[lane_index as usize];
        if lane.session.is_open() {
            // A window may have waited for this end.
            if lane.is_windowed {
                self.dispatch.deadlines.set(lane_index, lane.due_ns());
            }
            return;
        }
        give_back(lane, &mut self.connections[owner], lane.place_of(owner), done_ns);
        self.dispatch.deadlines.set(lane_index, lane.due_ns());
    }

    /// Reports the end of an operation to its session. Returns the connection of its slot if that is free now.
    #[inline(always)]
    fn leave(
        &mut self,
        index: u32,
        shared_slot: u32,
        lane: u32,
        key: KeyRef,
        outcome: Outcome,
    ) -> Option<u32> {
        self.dispatch.lanes[lane as usize].session.record_outcome(key, outcome);
        match shared_slot {
            NO_SHARED_SLOT => Some(index),
            shared_slot => self.shared_slots.leave(shared_slot),
        }
    }

    /// Frees the slots that wait for a whole pipeline if their connection has nothing in flight, although its last
    /// operation freed no slot: a part, an operation with fills, or one that was taken back. (Bound slots have no
    /// parts, and operations taken back return.)
    #[inline]
    fn refill_idle(&mut self, index: u32) {
        let connection = &self.connections[index];
        let binds_slots = || self.dispatch.lanes[self.lane_of(index) as usize].binds_slots;
        if !connection.freed.is_empty() && connection.outstanding() == 0 && !binds_slots() {
            self.free_rest(index);
        }
    }

    /// Frees the slots that wait for the rest of a pipeline, which is over or moved elsewhere.
    #[cold]
    fn free_rest(&mut self, index: u32) {
        let lane_index = self.lane_of(index);
        let connection = &mut self.connections[index];
        if !connection.freed.is_empty() {
            let lane = &mut self.dispatch.lanes[lane_index as usize];
            free_pipeline(lane, connection, lane.place_of(index));
            self.dispatch.deadlines.set(lane_index, lane.due_ns());
        }
    }

    /// The phase of an event without an intended time.
    #[inline]
    pub(crate) fn phase_now(&self, at_ns: u64) -> Phase {
        // The window is unknown before the lanes of the schedule exist.
        if self.window.is_measured(at_ns) {
            return Phase::Measure;
        }
        match self.dispatch.lanes.first() {
            None => Phase::Connect,
            Some(lane) if lane.is_preload => Phase::Preload,
            Some(_) if at_ns < self.window.start_ns => Phase::Connect,
            Some(_) => self.window.phase_of(at_ns),
        }
    }

    /// Moves the window to these times, which are in the future.
    pub(crate) fn begin_window(&mut self, window: PhaseTimes) {
        self.window = window;
        self.dispatch.begin_window(window);
    }

    /// Ends the schedule: no operation with a later intended time is sent.
    pub(crate) fn end_at(&mut self, now_ns: u64) {
        self.window.end_ns = self.window.end_ns.min(now_ns);
        self.dispatch.end_at(now_ns);
    }
}

/// Frees a slot of a closed loop; if slots are bound, it is one of the lane's connection at `place`.
#[inline(always)]
fn give_back<C: Codec>(lane: &mut Lane, connection: &mut Connection<C>, place: u32, done_ns: u64) {
    if lane.refills_together {
        // If slots are unbound, other operations may keep this connection busy: at most one pipeline of slots
        // waits.
        if connection.outstanding() > 0 && connection.freed.len() + 1 < lane.depth as usize {
            connection.freed.push(done_ns);
            return;
        }
        free_pipeline(lane, connection, place);
    }
    free_slot(lane, connection, place, done_ns);
}

/// Frees the slots that have waited for the rest of a pipeline.
fn free_pipeline<C: Codec>(lane: &mut Lane, connection: &mut Connection<C>, place: u32) {
    for at in 0..connection.freed.len() {
        let freed_ns = connection.freed[at];
        free_slot(lane, connection, place, freed_ns);
    }
    connection.freed.clear();
}

/// Makes a slot of a closed loop due again; if it is bound to a connection that takes no more requests, on the next
/// connection.
#[inline]
fn free_slot<C: Codec>(lane: &mut Lane, connection: &mut Connection<C>, place: u32, at_ns: u64) {
    if lane.binds_slots {
        if connection.defers_slots() {
            connection.deferred_slots += 1;
            return;
        }
        connection.reserved_calls += 1;
    }
    lane.session.release(place, at_ns);
}

/// The value of a write; its unshared bytes are in `head`.
#[inline]
fn value_of<'a>(
    lane: &Lane,
    op: &Op,
    first_id: u64,
    payload: &'a Payload,
    head: &'a mut [u8; HEAD_LEN],
) -> Value<'a> {
    match op.value {
        ValueRef::Version(_) if lane.keyspace.is_counter(first_id) => {
            Value { head: COUNTER_START, ..Value::NONE }
        }
        ValueRef::Version(version) => {
            let parts = if lane.has_laid_values {
                lane.keyspace.value(payload, first_id, version)
            } else {
                payload.value(first_id, version, lane.keyspace.value_len(first_id))
            };
            value_in(payload, parts, head)
        }
        ValueRef::Offset(place) => {
            let (id, len) = lane.session.records().value(place);
            value_in(payload, payload.value(id, 0, len), head)
        }
        ValueRef::None => Value::NONE,
    }
}

/// A value for the codec; its unshared bytes are in `head`.
#[inline(always)]
fn value_in<'a>(payload: &'a Payload, parts: ValueParts, head: &'a mut [u8; HEAD_LEN]) -> Value<'a> {
    *head = parts.head;
    Value { head: &head[..parts.head_len], block: payload.block(), offset: parts.offset, len: parts.len }
}
