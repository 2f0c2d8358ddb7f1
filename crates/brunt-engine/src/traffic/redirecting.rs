//! Clusters: the node of an operation, and its redirects.
//!
//! [`crate::state::hash_slots`] knows the owners. A redirected operation waits for a connection to the other node
//! like any other, and keeps its intended time; its picked time moves by the time for which the redirect waited to be read. It is one
//! sample, sent when it was first sent. Invariants: it counts as sent once, and each send is a command on the wire; it takes at most [`HOPS_MAX`] hops,
//! and TRYAGAIN is retried for at most a timeout after its first send.

use super::Traffic;
use crate::state::hash_slots::{RedirectState, SlotTable, TRY_AGAIN_NS};
use crate::state::in_flight::Entry;
use crate::state::lane::Picked;
use crate::state::{EntryId, NO_GROUP, NO_REDIRECT, RedirectStateId};
use brunt_plan::op::{Op, OpKind};
use brunt_plan::outcome::ReplyKind;
use brunt_proto::Codec;
use brunt_proto::resp::error::{ErrorPrefix, Redirect, RedirectKind};
use brunt_proto::resp::slot::{ASKING, slot_of};
use brunt_stats::worker_counts::HOPS_MAX;

/// The end of a reply.
#[derive(Clone, Copy, Debug)]
pub(super) struct ReplyEnd<'a> {
    pub reply: ReplyKind,
    pub text: &'a [u8],
    pub at_ns: u64,
    pub polled_ns: u64,
}

/// A redirect by a node.
#[derive(Clone, Copy, Debug)]
enum Hop {
    /// Another node has the slot.
    Moved(u16),
    /// Another node has the key, for now.
    Ask(u16),
    /// No node has all of the keys, for now.
    Again,
}

impl<C: Codec> Traffic<C> {
    /// The node of an operation, as an index among the lane's routes.
    pub(super) fn node_of(&mut self, lane_index: u32, op: &Op) -> u32 {
        let Self { dispatch, slots: Some(slots), key_bytes, .. } = self else { return 0 };
        let lane = &dispatch.lanes[lane_index as usize];
        key_bytes.clear();
        if let Some(id) = lane.session.ids(op).next() {
            lane.keyspace.write_key(id, key_bytes);
        }
        let slot = match op.kind {
            OpKind::Raw => slots.slot_of_command(op.command, key_bytes),
            _ => Some(slot_of(key_bytes)),
        };
        slots.node_of(slot)
    }

    /// Splits a multi-get by slot: a request may have keys of one slot only.
    pub(super) fn split_by_slot(&mut self, lane_index: u32, picked: Picked) -> bool {
        let Self { dispatch, slots: Some(slots), key_bytes, .. } = self else { return false };
        let lane = &dispatch.lanes[lane_index as usize];
        let first_route = lane.routes.start;
        slots.of_keys.clear();
        for id in lane.session.ids(&picked.op) {
            key_bytes.clear();
            lane.keyspace.write_key(id, key_bytes);
            slots.of_keys.push(slot_of(key_bytes));
        }
        slots.of_keys.sort_unstable();
        let parts = slots.of_keys.chunk_by(|one, next| one == next).count() as u32;
        let group = self.group_of(&picked, parts);
        let (mut flush_first, mut at) = (false, 0);
        while let Some(slots) = &mut self.slots
            && let Some(slot) = slots.of_keys.get(at).copied()
        {
            let count = slots.of_keys[at..].iter().take_while(|other| **other == slot).count();
            at += count;
            // A part finds its keys by its slot.
            let op = Op { count: count as u16, operand: u64::from(slot), ..picked.op };
            let route = first_route + slots.node_of(Some(slot));
            flush_first |= self.submit(Picked { op, route, group, ..picked });
        }
        flush_first
    }

    /// Bytes before the request of an operation.
    pub(super) fn preamble(&self, redirect_state: RedirectStateId) -> &'static [u8] {
        match &self.slots {
            Some(slots)
                if redirect_state != NO_REDIRECT && slots.redirects.get(redirect_state).needs_asking =>
            {
                ASKING
            }
            _ => &[],
        }
    }

    /// Notes that a request was queued behind its preamble.
    pub(super) fn note_asking(&mut self, redirect_state: RedirectStateId) {
        if let Some(slots) = &mut self.slots {
            slots.redirects.get_mut(redirect_state).awaits_asking = true;
        }
    }

    /// Is a reply not the end of its operation? Then the operation was redirected, or the reply was to the
    /// preamble.
    pub(super) fn is_redirected(&mut self, index: u32, id: EntryId, reply_end: ReplyEnd<'_>) -> bool {
        self.slots.is_some() && self.follow_redirect(index, id, reply_end)
    }

    fn follow_redirect(&mut self, index: u32, id: EntryId, reply_end: ReplyEnd<'_>) -> bool {
        let Self { in_flight, slots: Some(slots), connections, .. } = self else { return false };
        let entry = in_flight.get_mut(id);
        let redirect_state = entry.details.redirect_state;
        if redirect_state != NO_REDIRECT
            && std::mem::take(&mut slots.redirects.get_mut(redirect_state).awaits_asking)
        {
            entry.details.first_byte_ns = 0;
            if reply_end.reply.is_error() {
                // The request behind it will only be redirected.
                self.recording.note_error(reply_end.text);
                self.recording.count_error(C::error_prefix(reply_end.text));
            }
            return true;
        }
        let (hops, first_sent_ns) = match redirect_state {
            NO_REDIRECT => (0, entry.sent_ns),
            id => (slots.redirects.get(id).hops, slots.redirects.get(id).first_sent_ns),
        };
        match hop_of(slots, &reply_end, connections[index].server) {
            None => false,
            // Migrating a large key takes seconds.
            Some(Hop::Again) if reply_end.at_ns.saturating_sub(first_sent_ns) >= self.timeout_ns => false,
            Some(Hop::Moved(_) | Hop::Ask(_)) if hops == HOPS_MAX => {
                slots.counts.too_many += 1;
                false
            }
            Some(hop) => {
                self.redirect_op(index, id, hop, reply_end);
                true
            }
        }
    }

    /// Moves an operation that was redirected to the queue of another node.
    fn redirect_op(&mut self, index: u32, id: EntryId, hop: Hop, reply_end: ReplyEnd<'_>) {
        let Some(entry) = self.take_answered(index, id, reply_end.at_ns) else { return };
        // The node has answered.
        let server = self.connections[index].server;
        self.recording.set.server(server).redirected += 1;
        self.note_success(server, entry.sent_ns, reply_end.polled_ns, reply_end.at_ns);
        let op = self.prepare_resend(&entry);
        // An unread redirect delays the operation by the client.
        let unread_ns = reply_end.at_ns.saturating_sub(reply_end.polled_ns.max(entry.sent_ns));
        let picked_ns = entry.picked_ns + unread_ns;
        if entry.details.group == NO_GROUP {
            self.recording.occupancy.repick(entry.picked_ns, picked_ns);
        } else {
            self.groups.get_mut(entry.details.group).wire_requests += entry.details.wire_requests;
        }
        let own_route = self.connections[index].route;
        let first_route = self.dispatch.lanes[entry.lane() as usize].routes.start;
        let Some(slots) = &mut self.slots else { return };
        let route = match hop {
            Hop::Moved(node) | Hop::Ask(node) => first_route + u32::from(node),
            Hop::Again => own_route,
        };
        let picked = Picked {
            picked_ns,
            redirect_state: count_hop(slots, &entry, hop, reply_end.at_ns),
            // Lanes of a cluster bind no slots.
            ..entry.picked(op, None, route)
        };
        match hop {
            Hop::Again => {
                slots.paused.push_back((reply_end.at_ns + TRY_AGAIN_NS, picked));
                // Makes the loop set a timer.
                self.any_lost = true;
            }
            Hop::Moved(_) | Hop::Ask(_) => self.enqueue(picked),
        }
        self.leave_idle(index);
        self.connections.check_retired(index);
    }

    /// The operation as it is recorded: sent when it was first sent.
    pub(super) fn without_redirect(&mut self, entry: &Entry) -> Entry {
        let mut entry = *entry;
        if let Some(slots) = self.slots.as_mut().filter(|_| entry.details.redirect_state != NO_REDIRECT) {
            let redirect_state =
                slots.redirects.remove(std::mem::replace(&mut entry.details.redirect_state, NO_REDIRECT));
            if entry.sent_ns == 0 {
                // Its earlier sends were counted.
                entry.details.wire_requests = 0;
            }
            entry.sent_ns = redirect_state.first_sent_ns;
        }
        entry
    }

    /// Queues operations whose pause is over, and copies a new slot map. Returns when to check again.
    pub(crate) fn resume(&mut self, now_ns: u64) -> u64 {
        let Some(slots) = &mut self.slots else { return u64::MAX };
        slots.refresh();
        let mut next_ns = u64::MAX;
        while let Some(slots) = &mut self.slots
            && let Some((due_ns, picked)) = slots.paused.front().copied()
        {
            if due_ns > now_ns {
                return next_ns.min(due_ns);
            }
            slots.paused.pop_front();
            self.enqueue(picked);
            next_ns = now_ns;
        }
        next_ns
    }

    /// Number of pausing operations.
    pub(super) fn paused(&self) -> usize {
        self.slots.as_ref().map_or(0, |slots| slots.paused.len())
    }

    /// Counts a redirected operation that waits when the run is over: sent, without a reply.
    pub(super) fn close_redirected(&mut self, picked: &Picked, now_ns: u64) {
        let Some(slots) = &mut self.slots else { return };
        let first_sent_ns = slots.redirects.remove(picked.redirect_state).first_sent_ns;
        if picked.group == NO_GROUP {
            self.recording.set.in_flight(picked.phase, &picked.op, picked.intended_ns, first_sent_ns);
            self.recording.occupancy.leave(picked.picked_ns, now_ns, 1);
        } else if let Some(group) = self.groups.end_redirected(picked.group, first_sent_ns) {
            self.close_group(&group, now_ns);
        }
    }
}

/// The redirect in a reply, if its target is known. A moved slot is learned.
fn hop_of(slots: &mut SlotTable, reply_end: &ReplyEnd<'_>, server: u16) -> Option<Hop> {
    if !reply_end.reply.is_error() {
        return None;
    }
    let Some(redirect) = Redirect::of(reply_end.text) else {
        return (ErrorPrefix::of(reply_end.text).name == ErrorPrefix::TRY_AGAIN).then_some(Hop::Again);
    };
    let Some(node) = slots.target_of(&redirect, server) else {
        slots.note_unknown_node(&redirect);
        return None;
    };
    Some(match redirect.kind {
        RedirectKind::Moved => {
            slots.learn(redirect.slot, node);
            Hop::Moved(node)
        }
        RedirectKind::Ask => Hop::Ask(node),
    })
}

/// Counts a hop of an operation. Returns its redirect state.
fn count_hop(slots: &mut SlotTable, entry: &Entry, hop: Hop, at_ns: u64) -> RedirectStateId {
    let id = match entry.details.redirect_state {
        NO_REDIRECT => {
            slots.counts.operations += 1;
            slots.redirects.insert(RedirectState::new(entry.sent_ns))
        }
        id => id,
    };
    let redirect_state = slots.redirects.get_mut(id);
    redirect_state.waiting_since_ns = at_ns;
    redirect_state.hops += u8::from(!matches!(hop, Hop::Again));
    slots.counts.hops_max = slots.counts.hops_max.max(redirect_state.hops);
    match hop {
        Hop::Moved(_) => (redirect_state.needs_asking, slots.counts.moved) = (false, slots.counts.moved + 1),
        Hop::Ask(_) => (redirect_state.needs_asking, slots.counts.ask) = (true, slots.counts.ask + 1),
        // Retried at the same node, with the same preamble.
        Hop::Again => slots.counts.try_again += 1,
    }
    id
}
