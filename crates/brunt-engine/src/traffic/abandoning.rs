//! Giving up: operations that wait for a server which does not answer, so that whoever does not need it goes on.
//!
//! Not what was sent to it (that is [`super::failure_handling`]'s), and nothing that waits behind others for a server which does answer,
//! however long. Looked at on a timer, and only while some server is in trouble, or a connection that operations are bound to.
//! Invariant: an operation waits unsent no longer than a time-out from when it came to wait, or from the last sign of life of
//! its server where that was later; where it is bound to a connection that cannot be had, from the loss of that instead.

use super::{Traffic, free_slot, give_back};
use crate::state::connection::ConnectionState;
use crate::state::group::Group;
use crate::state::health::Health;
use crate::state::ids::{NO_GROUP, NO_REDIRECT, NO_SHARED_SLOT, RouteId};
use crate::state::in_flight::Entry;
use crate::state::lane::{Lane, Picked};
use brunt_plan::op::Op;
use brunt_plan::outcome::{Outcome, OutcomeClass};
use brunt_plan::phase::Phase;
use brunt_proto::Codec;
use brunt_stats::sample::Times;

/// An attempt to connect has failed, and not only the connection before it.
const FAILURES_MIN: u32 = 2;

/// Who has given no sign of life for so long while operations wait for it has stopped, as far as a full queue is concerned: before
/// that all its replies may be on their way.
const SILENT_NS: u64 = 100_000_000;
/// How often a queue that is in the way is looked at.
const LOOK_NS: u64 = 20_000_000;

/// The times of an operation that ends unsent.
pub(super) fn unsent_times(intended_ns: u64, picked_ns: u64, at_ns: u64) -> Times {
    Times { intended_ns, picked_ns, sent_ns: at_ns, polled_ns: at_ns, first_byte_ns: at_ns, done_ns: at_ns }
}

impl<C: Codec> Traffic<C> {
    /// Gives up what has waited long enough for a server that does not answer. Returns when to look again.
    pub(crate) fn abandon_waiting(&mut self, now_ns: u64) -> u64 {
        let mut next_ns = self.clear_full_queues(now_ns);
        let is_silent = self.servers.iter().any(|server| server.silent_since_ns().is_some());
        if !is_silent && self.routes.iter().all(|route| route.parked.is_empty()) {
            return next_ns;
        }
        for route in 0..self.routes.len() as RouteId {
            let since_ns = self.silent_since_ns(route);
            if let Some(since_ns) = since_ns {
                next_ns = next_ns.min(self.abandon_queued(route, since_ns, now_ns));
            } else if self.routes[route as usize].parked.is_empty() {
                continue;
            }
            // Whatever comes to wait from now on waits at least until then.
            next_ns = next_ns.min(now_ns + self.timeout_ns).min(self.abandon_parked(route, since_ns, now_ns));
        }
        next_ns
    }

    /// A server of which nothing has come to any request ever since one was sent to it at this time, or earlier.
    pub(crate) fn silent_server(&self, asked_before_ns: u64) -> Option<u16> {
        let is_silent_server = |health: &&Health| {
            let asked_ns = || {
                let (_, oldest_ns) = self.unanswered(usize::from(health.server()));
                health.timed_out_since_ns().into_iter().chain(oldest_ns).min()
            };
            health.last_active_ns() == 0 && asked_ns().is_some_and(|asked_ns| asked_ns <= asked_before_ns)
        };
        self.servers.iter().find(is_silent_server).map(Health::server)
    }

    /// A full queue has stopped a schedule: nothing comes any more that would make room in it. Returns when to look again.
    fn clear_full_queues(&mut self, now_ns: u64) -> u64 {
        // A closed loop has no more in its queues than slots.
        let is_stopped =
            |lane: &Lane| lane.full_routes > 0 && lane.routes.len() > 1 && lane.session.is_open();
        if !self.lanes.iter().any(is_stopped) {
            return u64::MAX;
        }
        for route in 0..self.routes.len() as RouteId {
            self.make_room(route, now_ns);
        }
        now_ns + LOOK_NS
    }

    /// Since when the server of a route has said nothing; `None` while it answers.
    fn silent_since_ns(&self, route: RouteId) -> Option<u64> {
        self.checked_server(route).and_then(Health::silent_since_ns)
    }

    /// The server of a route; `None` where its silence is no matter: a preload tries again, and has a patience of its own.
    fn checked_server(&self, route: RouteId) -> Option<&Health> {
        let route = &self.routes[route as usize];
        let own = &self.connections[route.connections.start as usize..route.connections.end as usize];
        let first = own.first().filter(|_| !self.lanes[route.lane as usize].is_preload)?;
        let health = &self.servers[usize::from(first.server)];
        // A server may close connections that then wait for their birth, which is the plan's doing.
        let awaits_birth = self.lifetimes[usize::from(first.class)].has_schedule()
            && health.up == 0
            && own.iter().all(|connection| connection.failures < FAILURES_MIN);
        (!awaits_birth).then_some(health)
    }

    /// Has the server of a route given no sign of life for so long that there is none to wait for?
    fn is_silent_server(&self, route: RouteId, now_ns: u64) -> bool {
        let Some(oldest) = self.routes[route as usize].waiting.front() else { return false };
        let Some(health) = self.checked_server(route) else { return false };
        now_ns.saturating_sub(health.last_active_ns().max(oldest.picked_ns)) >= SILENT_NS
    }

    /// When an operation has waited long enough for a server that has been silent since then.
    fn given_up_ns(&self, picked: &Picked, since_ns: u64) -> u64 {
        let waiting_since_ns = match &self.slots {
            Some(slots) if picked.redirect_state != NO_REDIRECT => {
                slots.redirects.get(picked.redirect_state).waiting_since_ns
            }
            _ => picked.picked_ns,
        };
        waiting_since_ns.max(since_ns).saturating_add(self.timeout_ns)
    }

    /// Of those in the queue from the front on: whatever stands further back came there later.
    fn abandon_queued(&mut self, route: RouteId, since_ns: u64, now_ns: u64) -> u64 {
        while let Some(oldest) = self.routes[route as usize].waiting.front() {
            let due_ns = self.given_up_ns(oldest, since_ns);
            if due_ns > now_ns {
                return due_ns;
            }
            self.abandon_oldest(route, due_ns);
        }
        u64::MAX
    }

    /// Of those that wait for a connection of their own all, of which there are no more than slots. Whether the server answers others or
    /// not, there may be no hope for that connection.
    fn abandon_parked(&mut self, route: RouteId, silent_since_ns: Option<u64>, now_ns: u64) -> u64 {
        let mut next_ns = u64::MAX;
        let mut parked = std::mem::take(&mut self.routes[route as usize].parked);
        parked.retain(|picked| {
            let Some(since_ns) = self.connection_lost_since_ns(picked).or(silent_since_ns) else {
                return true;
            };
            let due_ns = self.given_up_ns(picked, since_ns);
            if due_ns <= now_ns {
                self.abandon(picked, due_ns);
            } else {
                next_ns = next_ns.min(due_ns);
            }
            due_ns > now_ns
        });
        self.routes[route as usize].parked = parked;
        next_ns
    }

    /// Since when the connection that this is bound to is gone, if another attempt at it has failed, too. A preload has a patience of its own.
    fn connection_lost_since_ns(&self, picked: &Picked) -> Option<u64> {
        let connection = &self.connections[picked.connection? as usize];
        let is_preload = self.lanes[picked.op.session as usize].is_preload;
        let is_down =
            matches!(connection.state, ConnectionState::Down { .. } | ConnectionState::Connecting { .. });
        (is_down && connection.failures >= FAILURES_MIN && !is_preload).then_some(connection.lost_ns)
    }

    /// A queue of an open loop that is full stops the schedule, also for the other servers; where its server gives no sign of life the
    /// oldest is given up instead, before its time.
    pub(super) fn make_room(&mut self, route_index: RouteId, now_ns: u64) {
        let route = &self.routes[route_index as usize];
        let lane = &self.lanes[route.lane as usize];
        let is_in_the_way = route.is_full() && lane.routes.len() > 1 && lane.session.is_open();
        if is_in_the_way && self.is_silent_server(route_index, now_ns) {
            self.abandon_oldest(route_index, now_ns);
        }
    }

    pub(super) fn abandon_oldest(&mut self, route_index: RouteId, at_ns: u64) {
        let route = &mut self.routes[route_index as usize];
        let was_full = route.is_full();
        let Some(oldest) = route.waiting.pop_front() else { return };
        self.note_length(route_index, was_full);
        self.abandon(&oldest, at_ns);
    }

    /// Books an operation that is on no connection as given up, or a part of one, and gives its slot back.
    pub(super) fn abandon(&mut self, picked: &Picked, at_ns: u64) {
        // That of the slot, or any of the server's.
        let index = picked.connection.unwrap_or(self.routes[picked.route as usize].connections.start);
        let lost = Outcome::without_reply(OutcomeClass::Lost);
        let server = self.connections[index as usize].server;
        self.recording.unsent_to(server);
        if C::REDIRECTS && picked.redirect_state != NO_REDIRECT {
            // Not there, but elsewhere before.
            return self.book(index, &Entry::waiting(picked), lost, at_ns, at_ns);
        }
        self.recording.abandoned_at(server);
        if picked.group == NO_GROUP {
            let times = unsent_times(picked.intended_ns, picked.picked_ns, at_ns);
            self.recording.abandoned(picked.phase, &picked.op, &times);
            self.release_unsent(index, picked.shared_slot, &picked.op, lost, at_ns);
        } else if let Some(group) = self.groups.abandon(picked.group, at_ns) {
            let done_ns = self.record_group(&group, at_ns, at_ns);
            self.release_unsent(index, group.shared_slot, &group.op, group.outcome(), done_ns);
        }
    }

    /// An operation that was on no connection has ended: its slot is free at once, whatever is out there.
    pub(super) fn release_unsent(
        &mut self,
        index: u32,
        shared_slot: u32,
        op: &Op,
        outcome: Outcome,
        at_ns: u64,
    ) {
        let lane_index = op.session;
        let Some(owner) = self.leave(index, shared_slot, lane_index, op.key, outcome) else { return };
        let lane = &mut self.lanes[lane_index as usize];
        if lane.session.is_open() {
            return;
        }
        let connection = &mut self.connections[owner as usize];
        if lane.binds_slots {
            // The call that was spoken for it was not made.
            connection.reserved_calls -= u32::from(shared_slot == NO_SHARED_SLOT);
            let own = owner - self.routes[lane.routes.start as usize].connections.start;
            give_back(lane, connection, own, at_ns);
        } else {
            free_slot(lane, connection, 0, at_ns);
        }
        self.deadlines.set(lane_index, lane.due_ns());
    }

    /// The run is over, and an operation was never sent to this server: for want of it, if it is in trouble.
    pub(super) fn close_unsent(&mut self, server: u16, phase: Phase, op: &Op, times: &Times) {
        if self.servers[usize::from(server)].was_down_at_end() {
            self.recording.abandoned_at(server);
            self.recording.abandoned(phase, op, times);
        } else {
            self.recording.unsent(phase, op);
            self.recording.left_unrecorded(times.picked_ns, times.done_ns);
        }
    }

    /// The same of a part of an operation. Yields the whole when it was the last.
    pub(super) fn close_unsent_part(&mut self, server: u16, group: u32, now_ns: u64) -> Option<Group> {
        match self.servers[usize::from(server)].was_down_at_end() {
            true => {
                self.recording.abandoned_at(server);
                self.groups.abandon(group, now_ns)
            }
            false => self.groups.end_unsent(group),
        }
    }
}
