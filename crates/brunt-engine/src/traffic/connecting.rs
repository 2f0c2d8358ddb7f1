//! Planned changes of connections: setup (version, login, database), established, expired, prepared for reuse.
//!
//! [`super::failure_handling`] covers lost ones; [`crate::state::connections`] keeps what each is. Invariant: exactly the
//! connections that take operations are in their route's ready rings.

use crate::io::Io;
use crate::state::connection::ConnectionState;
use crate::state::lane::Picked;
use crate::traffic::Traffic;
use brunt_plan::outcome::ReplyKind;
use brunt_plan::plan::MeterKind;
use brunt_proto::{Codec, Event, Malformed};
use brunt_stats::connection::ConnectionEvent;

impl<C: Codec> Traffic<C> {
    /// Notes an established connection.
    pub(crate) fn connected(&mut self, index: u32, at_ns: u64) {
        let phase = self.phase_now(at_ns);
        self.recording.set.connection(phase, ConnectionEvent::Established);
        let connection = &mut self.connections.all[index as usize];
        if let ConnectionState::Connecting { began_ns } = connection.state {
            self.recording.meter(MeterKind::ConnectTime, at_ns - began_ns);
            connection.attempt_ns = began_ns;
        }
        connection.state = ConnectionState::Up;
        self.connections.lifetimes[usize::from(connection.class)].up += 1;
        let up: u64 = self.connections.lifetimes.iter().map(|lifetimes| u64::from(lifetimes.up)).sum();
        let most = &mut self.recording.counts.connections_most;
        *most = up.max(*most);
        let server = &mut self.servers[usize::from(connection.server)];
        server.up += 1;
        server.connected(at_ns);
        server.last_up_ns = at_ns;
        server.prober = None;
        if self.connections.lifetimes[usize::from(connection.class)].has_schedule() {
            // Until now it could not be sent anything.
            server.note_activity(at_ns);
        }
        self.begin_lifetime(index, at_ns, false);
        self.became_usable(index);
    }

    /// Begins the lifetime of a connection: just established, or existing when the schedule begins.
    pub(super) fn begin_lifetime(&mut self, index: u32, at_ns: u64, is_first: bool) {
        let lane_index = self.lane_of(index);
        let connection = &mut self.connections.all[index as usize];
        let lifetimes = &mut self.connections.lifetimes[usize::from(connection.class)];
        connection.calls_left = lifetimes.calls();
        connection.retire_ns = lifetimes.retire_ns(index, at_ns, is_first);
        self.connections.timers.set(index, connection.retire_ns);
        let Some(lane) = self.dispatch.lanes.get_mut(lane_index as usize) else { return };
        // An attempt in progress at the start may be established before the first instant of the schedule.
        let due_ns = at_ns.max(self.window.start_ns);
        if lane.binds_slots {
            while connection.deferred_slots > 0 && !connection.defers_slots() {
                connection.deferred_slots -= 1;
                connection.reserved_calls += 1;
                lane.session.release(lane.place_of(index), due_ns);
            }
        } else if lane.session.follows_connection() {
            lane.session.begin_calls(lifetimes.take_ordinal(), due_ns, connection.calls_left);
        } else {
            return;
        }
        self.dispatch.deadlines.set(lane_index, lane.due_ns());
    }

    /// Begins the lifetimes with the schedule. Connections that open on a schedule are closed first.
    pub(crate) fn begin_lifetimes(&mut self, start_ns: u64) {
        for class in 0..self.connections.lifetimes.len() {
            self.connections.lifetimes[class].begin(start_ns);
            for index in self.connections.lifetimes[class].connections.clone() {
                match (self.connections[index].state, self.connections.lifetimes[class].has_schedule()) {
                    (ConnectionState::Up, true) => self.retire(index),
                    (ConnectionState::Down { .. }, true) | (ConnectionState::Idle, _) => {
                        self.reset_for_reuse(index, start_ns)
                    }
                    (ConnectionState::Up, false) => {
                        self.connections.lifetimes[class].reserve_first();
                        self.begin_lifetime(index, start_ns, true);
                    }
                    // With an opening schedule it was opened early.
                    (ConnectionState::Connecting { .. }, _) => {
                        self.connections.lifetimes[class].reserve_first()
                    }
                    (ConnectionState::Down { .. }, false) | (ConnectionState::Gone, _) => {}
                }
            }
        }
        let stay = self.connections.lifetimes.iter().filter(|lifetimes| !lifetimes.has_schedule());
        self.recording.counts.connections_most = stay.map(|lifetimes| u64::from(lifetimes.up)).sum();
    }

    /// Can nothing happen any more, because all waiting operations are for connections that never open again?
    pub(crate) fn is_stranded(&self) -> bool {
        let waits_in_vain = |picked: &Picked| match picked.connection {
            Some(pinned) => self.connections.is_over(pinned),
            None => self.dispatch.routes[picked.route as usize]
                .connections
                .clone()
                .all(|index| self.connections.is_over(index)),
        };
        let is_idle = self.in_flight.len() == 0 && self.dispatch.is_idle();
        is_idle
            && self.paused() == 0
            && (0..self.connections.all.len() as u32)
                .all(|index| !self.awaits_connection(index) || self.connections.is_over(index))
            && self
                .dispatch
                .routes
                .iter()
                .flat_map(|route| route.waiting.iter().chain(&route.parked))
                .all(waits_in_vain)
    }

    /// Will a connection have something to send as soon as it is established?
    fn awaits_connection(&self, index: u32) -> bool {
        let lane = self.dispatch.lanes.get(self.lane_of(index) as usize);
        self.connections[index].deferred_slots > 0
            || lane.is_some_and(|lane| lane.session.follows_connection() && !lane.session.is_exhausted())
    }

    /// Retires a connection: no more operations, closed after the last one.
    pub(crate) fn retire(&mut self, index: u32) {
        self.connections[index].retiring = true;
        self.take_off(index);
        self.connections.timers.set(index, u64::MAX);
        self.connections.check_retired(index);
    }

    /// Notes that an expired connection was closed.
    pub(crate) fn finish_retired(&mut self, index: u32, now_ns: u64) {
        let phase = self.phase_now(now_ns);
        self.recording.set.connection(phase, ConnectionEvent::Retired);
        self.meter_lifetime(index, now_ns);
        self.servers[usize::from(self.connections[index].server)].up -= 1;
        self.connections.lifetimes_of_mut(index).up -= 1;
        self.reset_for_reuse(index, now_ns);
    }

    /// Meters the lifetime of an established connection that ends.
    pub(super) fn meter_lifetime(&mut self, index: u32, now_ns: u64) {
        let lived_ns = now_ns - self.connections[index].attempt_ns;
        self.recording.meter(MeterKind::ConnectionTime, lived_ns);
    }

    /// Prepares a connection to be opened again, at the earliest at `retry_ns`.
    pub(super) fn reset_for_reuse(&mut self, index: u32, retry_ns: u64) {
        let server = self.connections[index].server;
        let lifetimes = self.connections.lifetimes_of_mut(index);
        let state = if lifetimes.opens_by_schedule() {
            lifetimes.add_idle(index, server);
            ConnectionState::Idle
        } else {
            ConnectionState::Down { retry_ns }
        };
        self.reset_to(index, state);
    }

    /// Resets a closed connection to this state.
    pub(super) fn reset_to(&mut self, index: u32, state: ConnectionState) {
        self.connections.reset(index, state);
        if self.connections.is_by_datagram(index) {
            self.datagrams.forget(index);
        }
        self.any_lost = true;
    }

    pub(super) fn became_usable(&mut self, index: u32) {
        self.mark_ready(index);
        if !self.dispatch.lanes.is_empty() {
            self.unpark(index);
        }
    }

    pub(super) fn mark_ready(&mut self, index: u32) {
        let connection = &self.connections[index];
        if connection.is_usable()
            && let Some(route) = self.dispatch.routes.get_mut(connection.route as usize)
            && route.connections.contains(&index)
        {
            route.ready.set(index, connection.outstanding());
        }
    }

    /// Takes a connection off its route's rings. It may have no route: in a preload, if its class shares another's
    /// data set.
    pub(super) fn take_off(&mut self, index: u32) {
        let connection = &self.connections[index];
        if let Some(route) = self.dispatch.routes.get_mut(connection.route as usize)
            && route.connections.contains(&index)
        {
            route.ready.remove(index);
        }
    }

    /// Sends the setup requests of a connected socket. False if there are none.
    pub(crate) fn begin_setup<I: Io>(&mut self, io: &mut I, index: u32, at_ns: u64) -> bool {
        if !self.connections.queue_setup(index) {
            return false;
        }
        self.send(io, index, at_ns);
        true
    }

    /// Handles an event that belongs to no operation: of a setup reply, or malformed.
    #[cold]
    pub(super) fn receive_setup_reply(&mut self, index: u32, event: Event<'_>) -> Result<(), Malformed> {
        if !self.connections.is_in_setup(index) {
            return Err(Malformed::UnknownReply);
        }
        let (reply, text) = match event {
            Event::End { reply, text, .. } => (reply, text),
            Event::Found(_) => (ReplyKind::Value, &[][..]),
            _ => return Ok(()),
        };
        if !self.connections.accept_setup_reply(index, reply, text) {
            self.recording.note_error(text);
        }
        Ok(())
    }
}
