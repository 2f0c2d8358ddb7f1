//! Stores what retrievals missed, at once or when the database that is asked meanwhile has answered.
//!
//! Invariants: a fill is counted when it is due, not before; in closed loop the slot of the retrieval is freed only at its end.

use super::Traffic;
use crate::state::lane::{Lane, Picked, Routing};
use crate::state::{EntryId, NO_GROUP, NO_SHARED_SLOT};
use brunt_plan::op::{ClassId, KeyRef, SessionId};
use brunt_proto::Codec;

impl<C: Codec> Traffic<C> {
    /// Handles a missed key of a retrieval.
    pub(super) fn missed(&mut self, index: u32, head: EntryId, id: u64, at_ns: u64) {
        self.check_miss(index, head, id, at_ns);
        if self.lane_at(head).fills_misses {
            self.follow(index, head, id, at_ns);
        }
    }

    /// Issues the fill of a missed key, due now or after the delay of its class, unless it is a record's and nothing says how long its value is.
    fn follow(&mut self, index: u32, head: EntryId, id: u64, at_ns: u64) {
        let lane_index = self.in_flight.get(head).lane();
        let lane = &mut self.dispatch.lanes[lane_index as usize];
        let op = match self.in_flight.get(head).key() {
            KeyRef::Offset(place) => lane.session.fill_from_record(place),
            KeyRef::Id(_) | KeyRef::Drawn(_) => Some(lane.session.fill(id)),
        };
        let Some(op) = op else { return };
        let (binds_slots, is_open) = (lane.binds_slots, lane.session.is_open());
        let shared_slot = if is_open { NO_SHARED_SLOT } else { self.share_slot(index, head) };
        // If any server could take it, the fill goes to the one that missed, and the order of the others is kept.
        let route = match self.dispatch.lanes[lane_index as usize].routing {
            Routing::InTurn(_) | Routing::AtRandom(_) => self.connections[index].route,
            Routing::Only | Routing::ByKey(_) | Routing::BySlot | Routing::ByKind(_) => {
                self.route_of(lane_index, &op)
            }
        };
        let connection = binds_slots.then_some(index);
        let phase = self.window.phase_of(at_ns);
        let row = self.recording.row(phase, &op);
        let fill = Picked { connection, shared_slot, ..Picked::new(op, phase, row, at_ns, at_ns, route) };
        if !self.defer(&fill) {
            self.issue_fill(fill, at_ns);
        }
    }

    /// Lets a fill wait for the database of its class, if that has one, and watches its key. False if it is due now.
    fn defer(&mut self, fill: &Picked) -> bool {
        let Some(fills) = self.dispatch.fills.as_mut().filter(|fills| fills.has_delays(fill.op.class)) else {
            return false;
        };
        let lane = &self.dispatch.lanes[fill.op.session as usize];
        let key = watched_key(lane, fill.op.class, fill.op.key);
        let counts = &mut self.recording.counts.fills;
        fills.note_miss(key, counts);
        let is_deferred = self.dispatch.defer_fill(fill);
        counts.undelayed += u64::from(!is_deferred);
        is_deferred
    }

    /// Issues the fills whose time has come.
    #[inline(never)]
    pub(super) fn issue_due_fills(&mut self, now_ns: u64) {
        while let Some(fill) = self.dispatch.take_due_fill(now_ns) {
            self.issue_fill(fill, now_ns);
        }
    }

    /// Counts a fill that is due, and queues it.
    fn issue_fill(&mut self, fill: Picked, now_ns: u64) {
        let phase = self.window.phase_of(fill.intended_ns);
        let row = self.recording.row(phase, &fill.op);
        self.recording.set.followup(phase, &fill.op);
        self.recording.occupancy.enter(now_ns, 1);
        self.enqueue(Picked { phase, row, picked_ns: now_ns, ..fill });
    }

    /// Notes that a set has ended, in a run with delays: its key is no longer outstanding.
    #[inline(never)]
    pub(super) fn note_set(&mut self, class: ClassId, lane: SessionId, key: KeyRef) {
        let Some(fills) = self.dispatch.fills.as_mut().filter(|fills| fills.has_delays(class)) else {
            return;
        };
        fills.outstanding.remove(watched_key(&self.dispatch.lanes[lane as usize], class, key));
    }

    /// Shares the slot of an operation in flight with one more.
    fn share_slot(&mut self, index: u32, head: EntryId) -> u32 {
        let entry = self.in_flight.get_mut(head);
        let shared_slot = match entry.details.group {
            NO_GROUP => &mut entry.details.shared_slot,
            group => &mut self.groups.get_mut(group).shared_slot,
        };
        if *shared_slot == NO_SHARED_SLOT {
            *shared_slot = self.shared_slots.open(index);
        }
        self.shared_slots.join(*shared_slot);
        *shared_slot
    }
}

/// The key of a set as a number: of a trace the hash of its text, else its id and its class.
fn watched_key(lane: &Lane, class: ClassId, key: KeyRef) -> u64 {
    match key {
        KeyRef::Offset(place) => lane.session.records().value(place).0,
        KeyRef::Id(id) | KeyRef::Drawn(id) => id ^ u64::from(class) << 48,
    }
}
