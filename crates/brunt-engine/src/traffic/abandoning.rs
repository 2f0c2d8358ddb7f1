//! Abandons operations that wait for a server that is down, so that the others go on.
//!
//! Sent requests are covered by [`super::failure_handling`]; operations behind others for a server that answers
//! wait on, however long. Runs on a timer, only while a server or a bound connection is down. Invariant: an
//! operation waits unsent for at most a timeout from when it began to wait, or from the last activity of its server
//! if that was later; if it is bound to a connection that is down, from the loss of that. Stops of the client do not count.

use super::Traffic;
use crate::state::connection::ConnectionState;
use crate::state::group::Group;
use crate::state::health::Health;
use crate::state::in_flight::Entry;
use crate::state::lane::{Lane, Picked};
use crate::state::{NO_GROUP, NO_REDIRECT, NO_SHARED_SLOT, RouteId};
use brunt_plan::op::{Op, OpKind};
use brunt_plan::outcome::{Outcome, OutcomeClass};
use brunt_plan::phase::Phase;
use brunt_proto::Codec;
use brunt_stats::sample::Times;

/// Failures that show a failed attempt to connect, beyond the lost connection.
const FAILURES_MIN: u32 = 2;

/// Inactivity after which a server counts as stopped with regard to a full queue: earlier, its replies may be on
/// the network.
const SILENT_NS: u64 = 100_000_000;
/// Period of checking full queues.
const LOOK_NS: u64 = 20_000_000;

/// Times of an operation that ends unsent.
pub(super) fn unsent_times(intended_ns: u64, picked_ns: u64, at_ns: u64) -> Times {
    Times { intended_ns, picked_ns, sent_ns: at_ns, polled_ns: at_ns, first_byte_ns: at_ns, done_ns: at_ns }
}

impl<C: Codec> Traffic<C> {
    /// Abandons operations that have waited long enough for a server that is down. Returns when to check again.
    pub(crate) fn abandon_waiting(&mut self, now_ns: u64) -> u64 {
        let mut next_ns = self.clear_full_queues(now_ns);
        let is_silent = self.servers.iter().any(|server| server.silent_since_ns().is_some());
        if !is_silent && self.dispatch.routes.iter().all(|route| route.parked.is_empty()) {
            return next_ns;
        }
        for route in 0..self.dispatch.routes.len() as RouteId {
            let since_ns = self.silent_since_ns(route);
            if let Some(since_ns) = since_ns {
                next_ns = next_ns.min(self.abandon_queued(route, since_ns, now_ns));
            } else if self.dispatch.routes[route as usize].parked.is_empty() {
                continue;
            }
            // Operations that begin to wait now wait at least until then.
            next_ns = next_ns.min(now_ns + self.timeout_ns).min(self.abandon_parked(route, since_ns, now_ns));
        }
        next_ns
    }

    /// A server that has answered nothing although a request was sent to it at this time or earlier.
    pub(crate) fn silent_server(&self, asked_before_ns: u64) -> Option<u16> {
        let is_silent_server = |health: &&Health| {
            let asked_ns = || {
                let (_, oldest_ns) = self.unanswered(usize::from(health.server));
                health.timed_out_since_ns().into_iter().chain(oldest_ns).min()
            };
            health.last_active_ns() == 0 && asked_ns().is_some_and(|asked_ns| asked_ns <= asked_before_ns)
        };
        self.servers.iter().find(is_silent_server).map(|health| health.server)
    }

    /// Makes room in full queues that stop a schedule. Returns when to check again.
    fn clear_full_queues(&mut self, now_ns: u64) -> u64 {
        // A closed loop queues at most its slots.
        let is_stopped =
            |lane: &Lane| lane.full_routes > 0 && lane.routes.len() > 1 && lane.session.is_open();
        if !self.dispatch.lanes.iter().any(is_stopped) {
            return u64::MAX;
        }
        for route in 0..self.dispatch.routes.len() as RouteId {
            self.make_room(route, now_ns);
        }
        now_ns + LOOK_NS
    }

    /// Since when the server of a route has been inactive; `None` while it is up.
    fn silent_since_ns(&self, route: RouteId) -> Option<u64> {
        self.checked_server(route).and_then(Health::silent_since_ns)
    }

    /// The server of a route; `None` for a preload, which retries and has a time limit of its own.
    fn checked_server(&self, route: RouteId) -> Option<&Health> {
        let route = &self.dispatch.routes[route as usize];
        let connections =
            &self.connections.all[route.connections.start as usize..route.connections.end as usize];
        let first = connections.first().filter(|_| !self.dispatch.lanes[route.lane as usize].is_preload)?;
        let health = &self.servers[usize::from(first.server)];
        // Connections may be waiting for their scheduled opening.
        let awaits_birth = self.connections.lifetimes[usize::from(first.class)].has_schedule()
            && health.up == 0
            && connections.iter().all(|connection| connection.failures < FAILURES_MIN);
        (!awaits_birth).then_some(health)
    }

    /// Has the server of a route been inactive for too long?
    fn is_silent_server(&self, route: RouteId, now_ns: u64) -> bool {
        let Some(oldest) = self.dispatch.routes[route as usize].waiting.front() else { return false };
        let Some(health) = self.checked_server(route) else { return false };
        self.has_waited(health.last_active_ns().max(oldest.picked_ns), SILENT_NS, now_ns)
    }

    /// Has it been so long, without the stops of the client?
    pub(crate) fn has_waited(&self, since_ns: u64, wait_ns: u64, now_ns: u64) -> bool {
        self.stops.end_of_wait_ns(since_ns, wait_ns) <= self.watched_ns(now_ns)
    }

    /// Until when stops of the client are known. One in this iteration shows at its end, and the next one reads what came meanwhile.
    fn watched_ns(&self, now_ns: u64) -> u64 {
        now_ns.min(self.dispatch.iteration_start_ns)
    }

    /// When an operation has waited long enough for a server that has been inactive since `since_ns`.
    fn given_up_ns(&self, picked: &Picked, since_ns: u64) -> u64 {
        let waiting_since_ns = match &self.slots {
            Some(slots) if picked.redirect_state != NO_REDIRECT => {
                slots.redirects.get(picked.redirect_state).waiting_since_ns
            }
            _ => picked.picked_ns,
        };
        self.stops.end_of_wait_ns(waiting_since_ns.max(since_ns), self.timeout_ns)
    }

    /// Abandons from the front of the queue: later operations came later.
    fn abandon_queued(&mut self, route: RouteId, since_ns: u64, now_ns: u64) -> u64 {
        while let Some(oldest) = self.dispatch.routes[route as usize].waiting.front() {
            let due_ns = self.given_up_ns(oldest, since_ns);
            if due_ns > self.watched_ns(now_ns) {
                return due_ns;
            }
            self.abandon_oldest(route, now_ns);
        }
        u64::MAX
    }

    /// Abandons operations bound to a connection, of which there are at most as many as slots. Their connection may
    /// be down although the server answers.
    fn abandon_parked(&mut self, route: RouteId, silent_since_ns: Option<u64>, now_ns: u64) -> u64 {
        let mut next_ns = u64::MAX;
        let watched_ns = self.watched_ns(now_ns);
        let mut parked = std::mem::take(&mut self.dispatch.routes[route as usize].parked);
        parked.retain(|picked| {
            let Some(since_ns) = self.connection_lost_since_ns(picked).or(silent_since_ns) else {
                return true;
            };
            let due_ns = self.given_up_ns(picked, since_ns);
            if due_ns <= watched_ns {
                self.abandon(picked, now_ns);
            } else {
                next_ns = next_ns.min(due_ns);
            }
            due_ns > watched_ns
        });
        self.dispatch.routes[route as usize].parked = parked;
        next_ns
    }

    /// Since when the bound connection is down, once another attempt has failed. A preload has a time limit of its
    /// own.
    fn connection_lost_since_ns(&self, picked: &Picked) -> Option<u64> {
        let connection = &self.connections[picked.connection?];
        let is_preload = self.dispatch.lanes[picked.op.session as usize].is_preload;
        let is_down =
            matches!(connection.state, ConnectionState::Down { .. } | ConnectionState::Connecting { .. });
        (is_down && connection.failures >= FAILURES_MIN && !is_preload).then_some(connection.lost_ns)
    }

    /// Abandons the oldest operation of a full open-loop queue whose server is inactive: the queue stops the
    /// schedule for the other servers, too.
    pub(super) fn make_room(&mut self, route_index: RouteId, now_ns: u64) {
        let route = &self.dispatch.routes[route_index as usize];
        let lane = &self.dispatch.lanes[route.lane as usize];
        let is_in_the_way = route.is_full() && lane.routes.len() > 1 && lane.session.is_open();
        if is_in_the_way && self.is_silent_server(route_index, now_ns) {
            self.abandon_oldest(route_index, now_ns);
        }
    }

    pub(super) fn abandon_oldest(&mut self, route_index: RouteId, at_ns: u64) {
        let Some(oldest) = self.dispatch.pop_waiting(route_index) else { return };
        self.abandon(&oldest, at_ns);
    }

    /// Abandons an operation, or a part, that is on no connection, and frees its slot.
    pub(super) fn abandon(&mut self, picked: &Picked, at_ns: u64) {
        // The connection of the slot, or any of the server.
        let index =
            picked.connection.unwrap_or(self.dispatch.routes[picked.route as usize].connections.start);
        let lost = Outcome::without_reply(OutcomeClass::Lost);
        let server = self.connections[index].server;
        self.recording.set.server(server).unsent += 1;
        if C::REDIRECTS && picked.redirect_state != NO_REDIRECT {
            // It was sent to another node before.
            return self.record_end(index, &Entry::waiting(picked), lost, at_ns, at_ns);
        }
        self.recording.set.server(server).abandoned += 1;
        self.servers[usize::from(server)].request_abandoned();
        if picked.group == NO_GROUP {
            let times = unsent_times(picked.intended_ns, picked.picked_ns, at_ns);
            self.recording.abandoned(picked.phase, &picked.op, &times);
            self.release_unsent(index, picked.shared_slot, &picked.op, lost, at_ns);
        } else if let Some(group) = self.groups.abandon(picked.group) {
            self.record_group(&group, at_ns, at_ns);
            self.release_unsent(index, group.shared_slot, &group.whole.op, group.outcome(), at_ns);
        }
    }

    /// Frees the slot of an operation that was on no connection. Unless it is bound, it waits for no pipeline either.
    pub(super) fn release_unsent(
        &mut self,
        index: u32,
        shared_slot: u32,
        op: &Op,
        outcome: Outcome,
        at_ns: u64,
    ) {
        if op.kind == OpKind::Set && self.dispatch.fills.is_some() {
            self.note_set(op.class, op.session, op.key);
        }
        let lane = &self.dispatch.lanes[op.session as usize];
        if lane.binds_slots || lane.session.is_open() {
            // The reserved call of a bound slot was not made.
            let is_bound = lane.binds_slots && shared_slot == NO_SHARED_SLOT;
            self.connections[index].reserved_calls -= u32::from(is_bound);
            self.release(index, shared_slot, op.session, op.key, outcome, at_ns);
        } else if self.leave(index, shared_slot, op.session, op.key, outcome).is_some() {
            let lane = &mut self.dispatch.lanes[op.session as usize];
            lane.session.release(0, at_ns);
            self.dispatch.deadlines.set(op.session, lane.due_ns());
        }
    }

    /// Ends the sessions before the schedule and abandons what waits for a connection.
    pub(crate) fn end_unloaded(&mut self, now_ns: u64) {
        for route in 0..self.dispatch.routes.len() as RouteId {
            while !self.dispatch.routes[route as usize].waiting.is_empty() {
                self.abandon_oldest(route, now_ns);
            }
        }
        self.dispatch.end_at(now_ns);
    }

    /// Counts an operation that was never sent to this server when the run is over: as abandoned if the server was
    /// down.
    pub(super) fn close_unsent(&mut self, server: u16, phase: Phase, op: &Op, times: &Times) {
        if self.servers[usize::from(server)].was_down_at_end {
            self.recording.set.server(server).abandoned += 1;
            self.recording.abandoned(phase, op, times);
        } else {
            self.recording.set.unsent(phase, op, times, self.busy.lag_ns(server));
            self.recording.occupancy.leave(times.picked_ns, times.done_ns, 1);
        }
    }

    /// As `close_unsent`, of a part. Returns the whole when it was the last.
    pub(super) fn close_unsent_part(&mut self, server: u16, group: u32) -> Option<Group> {
        match self.servers[usize::from(server)].was_down_at_end {
            true => {
                self.recording.set.server(server).abandoned += 1;
                self.groups.abandon(group)
            }
            false => {
                self.groups.note_lag(group, self.busy.lag_ns(server));
                self.groups.end_unsent(group)
            }
        }
    }
}
