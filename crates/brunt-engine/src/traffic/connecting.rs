//! Planned changes of connections: setup (version, login, database), established, expired, prepared for reuse.
//!
//! [`super::failure_handling`] covers lost ones. Setup requests are no operations and have no samples; their bytes count
//! as sent. Invariants: exactly the connections that take operations are in their route's ready rings; a connection
//! takes no operation before every setup reply has come and is a success.

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
        let connection = &mut self.connections[index as usize];
        if let ConnectionState::Connecting { began_ns } = connection.state {
            self.recording.meter(MeterKind::ConnectTime, at_ns - began_ns);
            connection.attempt_ns = began_ns;
        }
        connection.state = ConnectionState::Up;
        self.lifetimes[usize::from(connection.class)].up += 1;
        let up: u64 = self.lifetimes.iter().map(|lifetimes| u64::from(lifetimes.up)).sum();
        let most = &mut self.recording.counts.connections_most;
        *most = up.max(*most);
        let server = &mut self.servers[usize::from(connection.server)];
        server.up += 1;
        server.connected(at_ns);
        server.last_up_ns = at_ns;
        server.prober = None;
        if self.lifetimes[usize::from(connection.class)].has_schedule() {
            // Until now it could not be sent anything.
            server.note_activity(at_ns);
        }
        self.begin_lifetime(index, at_ns, false);
        self.became_usable(index);
    }

    /// Begins the lifetime of a connection: just established, or existing when the schedule begins.
    pub(super) fn begin_lifetime(&mut self, index: u32, at_ns: u64, is_first: bool) {
        let lane_index = self.lane_of(index);
        let connection = &mut self.connections[index as usize];
        let lifetimes = &mut self.lifetimes[usize::from(connection.class)];
        connection.calls_left = lifetimes.calls();
        connection.retire_ns = lifetimes.retire_ns(index, at_ns, is_first);
        self.connection_timers.set(index, connection.retire_ns);
        let Some(lane) = self.lanes.get_mut(lane_index as usize) else { return };
        // An attempt in progress at the start may be established before the first instant of the schedule.
        let due_ns = at_ns.max(self.window.start_ns);
        if lane.binds_slots {
            let own = index - self.routes[lane.routes.start as usize].connections.start;
            while connection.deferred_slots > 0 && !connection.defers_slots() {
                connection.deferred_slots -= 1;
                connection.reserved_calls += 1;
                lane.session.release(own, due_ns);
            }
        } else if lane.session.follows_connection() {
            lane.session.begin_calls(lifetimes.take_ordinal(), due_ns, connection.calls_left);
        } else {
            return;
        }
        self.deadlines.set(lane_index, lane.due_ns());
    }

    /// Begins the lifetimes with the schedule. Connections that open on a schedule are closed first.
    pub(crate) fn begin_lifetimes(&mut self, start_ns: u64) {
        for class in 0..self.lifetimes.len() {
            self.lifetimes[class].begin(start_ns);
            for index in self.lifetimes[class].connections.clone() {
                match (self.connections[index as usize].state, self.lifetimes[class].has_schedule()) {
                    (ConnectionState::Up, true) => self.retire(index),
                    (ConnectionState::Down { .. }, true) | (ConnectionState::Idle, _) => {
                        self.reset_for_reuse(index, start_ns)
                    }
                    (ConnectionState::Up, false) => {
                        self.lifetimes[class].reserve_first();
                        self.begin_lifetime(index, start_ns, true);
                    }
                    // With an opening schedule it was opened early.
                    (ConnectionState::Connecting { .. }, _) => self.lifetimes[class].reserve_first(),
                    (ConnectionState::Down { .. }, false) | (ConnectionState::Gone, _) => {}
                }
            }
        }
        let stay = self.lifetimes.iter().filter(|lifetimes| !lifetimes.has_schedule());
        self.recording.counts.connections_most = stay.map(|lifetimes| u64::from(lifetimes.up)).sum();
    }

    /// Has the last connection of every class expired, so that no operation can be sent?
    pub(crate) fn all_expired(&self) -> bool {
        self.lifetimes.iter().all(|lifetimes| {
            lifetimes.is_spent() && lifetimes.connections.clone().all(|index| self.is_over(index))
        })
    }

    /// Can nothing happen any more, because all waiting operations are for connections that never open again?
    pub(crate) fn is_stranded(&self) -> bool {
        let waits_in_vain = |picked: &Picked| match picked.connection {
            Some(pinned) => self.is_over(pinned),
            None => self.routes[picked.route as usize].connections.clone().all(|index| self.is_over(index)),
        };
        let is_idle =
            self.in_flight.len() == 0 && self.deadlines.first().is_none_or(|(_, due_ns)| due_ns == u64::MAX);
        is_idle
            && self.paused() == 0
            && (0..self.connections.len() as u32)
                .all(|index| !self.awaits_connection(index) || self.is_over(index))
            && self
                .routes
                .iter()
                .flat_map(|route| route.waiting.iter().chain(&route.parked))
                .all(waits_in_vain)
    }

    /// Will a connection have something to send as soon as it is established?
    fn awaits_connection(&self, index: u32) -> bool {
        let lane = self.lanes.get(self.lane_of(index) as usize);
        self.connections[index as usize].deferred_slots > 0
            || lane.is_some_and(|lane| lane.session.follows_connection() && !lane.session.is_exhausted())
    }

    /// Will a connection never open again?
    pub(super) fn is_over(&self, index: u32) -> bool {
        let connection = &self.connections[index as usize];
        match connection.state {
            ConnectionState::Gone => true,
            ConnectionState::Idle => self.lifetimes[usize::from(connection.class)].is_spent(),
            ConnectionState::Down { .. } | ConnectionState::Connecting { .. } | ConnectionState::Up => false,
        }
    }

    /// Retires a connection: no more operations, closed after the last one.
    pub(crate) fn retire(&mut self, index: u32) {
        self.connections[index as usize].retiring = true;
        self.take_off(index);
        self.connection_timers.set(index, u64::MAX);
        self.check_retired(index);
    }

    /// Adds a retiring connection to the expired ones once nothing is in flight.
    #[inline]
    pub(super) fn check_retired(&mut self, index: u32) {
        let connection = &self.connections[index as usize];
        if connection.retiring && connection.state == ConnectionState::Up && connection.outstanding() == 0 {
            self.retired.push(index);
        }
    }

    /// The next expired connection, to be closed and passed to [`Traffic::finish_retired`].
    #[inline]
    pub(crate) fn take_retired(&mut self) -> Option<u32> {
        while let Some(index) = self.retired.pop() {
            // The peer may have ended it first.
            let connection = &self.connections[index as usize];
            if connection.retiring && connection.state == ConnectionState::Up {
                return Some(index);
            }
        }
        None
    }

    /// Notes that an expired connection was closed.
    pub(crate) fn finish_retired(&mut self, index: u32, now_ns: u64) {
        let phase = self.phase_now(now_ns);
        self.recording.set.connection(phase, ConnectionEvent::Retired);
        self.meter_lifetime(index, now_ns);
        let connection = &self.connections[index as usize];
        self.servers[usize::from(connection.server)].up -= 1;
        self.lifetimes[usize::from(connection.class)].up -= 1;
        self.reset_for_reuse(index, now_ns);
    }

    /// Meters the lifetime of an established connection that ends.
    pub(super) fn meter_lifetime(&mut self, index: u32, now_ns: u64) {
        let lived_ns = now_ns - self.connections[index as usize].attempt_ns;
        self.recording.meter(MeterKind::ConnectionTime, lived_ns);
    }

    /// Prepares a connection to be opened again, at the earliest at `retry_ns`.
    pub(super) fn reset_for_reuse(&mut self, index: u32, retry_ns: u64) {
        let class = usize::from(self.connections[index as usize].class);
        let state = if self.lifetimes[class].opens_by_schedule() {
            let server = self.connections[index as usize].server;
            self.lifetimes[class].add_idle(index, server);
            ConnectionState::Idle
        } else {
            ConnectionState::Down { retry_ns }
        };
        self.reset_to(index, state);
    }

    /// Resets a closed connection to this state.
    pub(super) fn reset_to(&mut self, index: u32, state: ConnectionState) {
        let is_by_datagram = self.is_by_datagram(index);
        let fresh = if C::DATAGRAMS && !is_by_datagram { &self.stream_codec } else { &self.codec };
        self.connections[index as usize].reset(fresh, state);
        if is_by_datagram {
            self.datagrams.forget(index);
        }
        self.connection_timers
            .set(index, if let ConnectionState::Down { retry_ns } = state { retry_ns } else { u64::MAX });
        self.any_lost = true;
    }

    pub(super) fn became_usable(&mut self, index: u32) {
        self.mark_ready(index);
        if !self.lanes.is_empty() {
            self.unpark(index);
        }
    }

    pub(super) fn mark_ready(&mut self, index: u32) {
        let connection = &self.connections[index as usize];
        if connection.is_usable()
            && let Some(route) = self.routes.get_mut(connection.route as usize)
            && route.connections.contains(&index)
        {
            route.ready.set(index, connection.outstanding());
        }
    }

    /// Takes a connection off its route's rings. It may have no route: in a preload, if its class shares another's
    /// data set.
    pub(super) fn take_off(&mut self, index: u32) {
        let connection = &self.connections[index as usize];
        if let Some(route) = self.routes.get_mut(connection.route as usize)
            && route.connections.contains(&index)
        {
            route.ready.remove(index);
        }
    }
}

/// A server rejected a connection setup.
#[derive(Debug)]
pub(crate) struct SetupRejected {
    /// The reason, for a user; empty if the run has begun and goes on.
    pub reason: String,
}

/// State of a connection setup.
#[derive(Debug)]
pub(crate) enum SetupStatus {
    /// Replies are pending.
    Pending,
    /// It succeeded.
    Accepted,
    /// It was rejected.
    Rejected(SetupRejected),
}

impl<C: Codec> Traffic<C> {
    /// Sends the setup requests of a connected socket. False if there are none.
    pub(crate) fn begin_setup<I: Io>(&mut self, io: &mut I, index: u32, at_ns: u64) -> bool {
        let greeting = self.codec.connection_setup();
        if !C::HAS_SETUP || greeting.replies == 0 {
            return false;
        }
        let connection = &mut self.connections[index as usize];
        // An attempt at another address may have got this far.
        connection.reset(&self.codec, connection.state);
        connection.has_begun_setup = true;
        connection.out.put(greeting.bytes);
        self.send(io, index, at_ns);
        true
    }

    /// Is a connection in setup?
    #[inline]
    pub(crate) fn is_in_setup(&self, index: u32) -> bool {
        C::HAS_SETUP && matches!(self.connections[index as usize].state, ConnectionState::Connecting { .. })
    }

    /// The unanswered setup request of a failed attempt; `None` if the socket never connected.
    pub(crate) fn unanswered_setup_step(&self, index: u32) -> Option<&'static str> {
        let connection = &self.connections[index as usize];
        connection.has_begun_setup.then(|| self.codec.setup_step(connection.setup_replies))
    }

    /// The errno of the last setup send, if it failed.
    #[inline]
    pub(crate) fn take_setup_send_error(&mut self) -> Option<i32> {
        if C::HAS_SETUP { self.setup_send_error.take() } else { None }
    }

    /// Handles an event that belongs to no operation: of a setup reply, or malformed.
    #[cold]
    pub(super) fn receive_setup_reply(&mut self, index: u32, event: Event<'_>) -> Result<(), Malformed> {
        if !self.is_in_setup(index) {
            return Err(Malformed::UnknownReply);
        }
        let (reply, text) = match event {
            Event::End { reply, text, .. } => (reply, text),
            Event::Found { .. } => (ReplyKind::Value, &[][..]),
            _ => return Ok(()),
        };
        let connection = &mut self.connections[index as usize];
        let number = connection.setup_replies;
        connection.setup_replies += 1;
        if self.codec.accepts_setup_reply(reply) {
            return Ok(());
        }
        self.recording.note_error(text);
        if self.setup_rejected.is_none() {
            let is_told = !connection.was_up;
            let reason = if is_told { self.codec.setup_error(number, reply, text) } else { String::new() };
            self.setup_rejected = Some(SetupRejected { reason });
        }
        Ok(())
    }

    /// The state of a setup after something was received.
    pub(crate) fn connection_setup(&mut self, index: u32) -> SetupStatus {
        match self.setup_rejected.take() {
            Some(setup_rejected) => SetupStatus::Rejected(setup_rejected),
            None if self.connections[index as usize].setup_replies
                < self.codec.connection_setup().replies =>
            {
                SetupStatus::Pending
            }
            None => SetupStatus::Accepted,
        }
    }
}
