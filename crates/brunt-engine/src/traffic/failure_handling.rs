//! Failures: lost connections, timed-out requests, and what is left when the run ends.
//!
//! Network failures are data: they are counted, and the run goes on. Invariant: a sent operation ends as lost or
//! timed out. An unsent one waits for another connection; it ends unsent when the run ends, when the server has not
//! taken it in within a timeout ([`super::abandoning`] covers those on no connection), or at once if its schedule
//! was that of the connection.

use super::Traffic;
use super::abandoning::unsent_times;
use crate::io::{CloseMode, Io};
use crate::state::connection::ConnectionState;
use crate::state::group::Group;
use crate::state::in_flight::{Chain, Entry};
use crate::state::lane::Picked;
use crate::state::{NO_ENTRY, NO_GROUP, NO_REDIRECT, NO_SHARED_SLOT, RouteId};
use brunt_plan::outcome::{Outcome, OutcomeClass};
use brunt_proto::{Codec, Matching};
use brunt_stats::connection::{ConnectionEvent, FaultKind};
use brunt_stats::server::OutageKind;
use brunt_stats::worker_counts::StampLoss;
use brunt_workload::session::DueOp;

impl<C: Codec> Traffic<C> {
    /// Fails a connection: ends everything on it and prepares it for another attempt.
    pub(crate) fn fail_connection(&mut self, index: u32, at_ns: u64, fault: FaultKind, class: OutcomeClass) {
        let phase = self.phase_now(at_ns);
        self.recording.set.fault(phase, fault, at_ns);
        self.stamper.discard(index, StampLoss::Unanswered);
        let was_up = self.connections[index].state == ConnectionState::Up;
        let reconnects = self.connections.reconnects(index);
        let counts_attempts = self.connections.lifetimes_of(index).counts_attempts;
        self.recording
            .set
            .connection(phase, if was_up { ConnectionEvent::Lost } else { ConnectionEvent::Failed });
        self.take_off(index);
        // The current multi-get may be on it.
        self.reply_ids_of = NO_ENTRY;
        self.note_loss(index, at_ns, fault);
        // Slots freed by a loss are due now: their wait for a connection is a cost of the loss. Without a successor
        // they end; a connection that takes its calls along leaves them to the next one.
        self.connections[index].calls_left = if reconnects && !counts_attempts { u64::MAX } else { 0 };
        let (mut taken_back, had_requests) = (0, self.connections[index].outstanding() > 0);
        while let Some(entry) = self.pop_oldest(index) {
            if entry.sent_ns == 0 {
                let picked = self.take_back(index, &entry);
                self.enqueue(picked);
                taken_back += 1;
            } else {
                self.fail_request(index, &entry, at_ns, fault, class);
            }
        }
        if had_requests {
            self.leave_idle(index);
        }
        self.refill_idle(index);
        if taken_back > 0 {
            // They have waited longer than all others.
            let route = self.connections[index].route;
            self.dispatch.routes[route as usize].waiting.rotate_right(taken_back);
            self.free_rest(index);
        }
        if was_up {
            self.meter_lifetime(index, at_ns);
            self.end_calls(index, at_ns);
        }
        let connection = &mut self.connections[index];
        let probes = self.servers[usize::from(connection.server)].prober == Some(index);
        let retry_ns = if counts_attempts { at_ns } else { at_ns + connection.backoff_ns(probes) };
        connection.failures += 1;
        if was_up {
            connection.lost_ns = at_ns;
        } else {
            self.connections.lifetimes_of_mut(index).give_back();
        }
        let server = self.connections[index].server;
        match reconnects {
            true => self.reset_for_reuse(index, retry_ns),
            false => self.close_after_loss(index, at_ns),
        }
        if was_up && self.servers[usize::from(server)].up == 0 {
            self.reroute_replicas(server, at_ns);
        }
    }

    /// Ends the schedule of a connection with it: unsent due calls are abandoned, later ones are dropped.
    fn end_calls(&mut self, index: u32, at_ns: u64) {
        let lane_index = self.lane_of(index);
        if !self.dispatch.lanes.get(lane_index as usize).is_some_and(|lane| lane.session.follows_connection())
        {
            return;
        }
        let route = self.connections[index].route;
        loop {
            while !self.dispatch.routes[route as usize].waiting.is_empty() {
                self.abandon_oldest(route, at_ns);
            }
            let session = &mut self.dispatch.lanes[lane_index as usize].session;
            if session.due_ns() >= at_ns {
                session.end_calls();
                break;
            }
            let issue = session.take();
            self.enqueue_due(lane_index, &issue, at_ns);
        }
        self.dispatch.deadlines.set(lane_index, u64::MAX);
    }

    /// Notes the loss at its server's health; while no other connection is up, one of them probes.
    fn note_loss(&mut self, index: u32, at_ns: u64, fault: FaultKind) {
        let connection = &self.connections.all[index as usize];
        let lifetimes = &mut self.connections.lifetimes[usize::from(connection.class)];
        let health = &mut self.servers[usize::from(connection.server)];
        let oldest = connection.chain.head;
        let oldest_sent_ns = if oldest == NO_ENTRY { 0 } else { self.in_flight.get(oldest).sent_ns };
        let evidence_ns = match fault {
            // A timeout is evidence from the send on, or from when the socket was full.
            FaultKind::TimedOut | FaultKind::SocketTimedOut if oldest_sent_ns != 0 => oldest_sent_ns,
            FaultKind::TimedOut | FaultKind::SocketTimedOut if connection.stuck => connection.stuck_ns,
            _ => at_ns,
        };
        health.note_trouble(OutageKind::from(fault), evidence_ns);
        if connection.state == ConnectionState::Up {
            health.up -= 1;
            health.last_up_ns = at_ns;
            lifetimes.up -= 1;
        }
        // Attempts that count are made as planned instead.
        if health.up == 0 && health.prober.is_none() && !lifetimes.counts_attempts {
            health.prober = Some(index);
            health.last_up_ns = at_ns;
        }
    }

    /// Ends a sent operation as failed, alone or with its connection.
    pub(super) fn fail_request(
        &mut self,
        index: u32,
        entry: &Entry,
        at_ns: u64,
        fault: FaultKind,
        class: OutcomeClass,
    ) {
        let server = self.connections[index].server;
        let health = &mut self.servers[usize::from(server)];
        match fault {
            // The connection's failure was noted before.
            FaultKind::TimedOut | FaultKind::SocketTimedOut => health.request_timed_out(entry.sent_ns),
            _ => health.request_failed(OutageKind::from(fault), entry.sent_ns),
        }
        self.recording.set.server(server).failed += 1;
        let deadline_ns = entry.sent_ns + self.timeout_ns;
        let (class, polled_ns) = match class {
            // How late the loop notices is the client's.
            OutcomeClass::Timeout if deadline_ns <= at_ns => (OutcomeClass::Timeout, deadline_ns),
            _ => (OutcomeClass::Lost, at_ns),
        };
        self.record_end(index, entry, Outcome::without_reply(class), at_ns, polled_ns);
    }

    /// Removes the operation that was queued first on a connection, with or without a reply.
    fn pop_oldest(&mut self, index: u32) -> Option<Entry> {
        let connection = &mut self.connections[index];
        let place = |chain: &Chain| match chain.head {
            NO_ENTRY => u64::MAX,
            head => self.in_flight.get(head).stream_end,
        };
        let is_silent = place(&connection.unacknowledged) < place(&connection.chain);
        self.in_flight
            .pop(index, if is_silent { &mut connection.unacknowledged } else { &mut connection.chain })
    }

    /// An operation that was not sent whole, as it was before it was queued on its connection.
    fn take_back(&mut self, index: u32, entry: &Entry) -> Picked {
        let op = self.prepare_resend(entry);
        let route = self.connections[index].route;
        let binds_slots = self.dispatch.lanes[entry.lane() as usize].binds_slots;
        self.connections[index].reserved_calls +=
            u32::from(binds_slots && entry.details.shared_slot == NO_SHARED_SLOT);
        entry.picked(op, binds_slots.then_some(index), route)
    }

    /// Abandons the oldest operation of a connection, which the server has not taken in. Later ones may be sent
    /// elsewhere.
    fn abandon_unsent(&mut self, index: u32, now_ns: u64) {
        let Some(entry) = self.pop_oldest(index) else { return };
        self.leave_idle(index);
        let picked = self.take_back(index, &entry);
        self.abandon(&picked, now_ns);
    }

    /// Ends the pauses before attempts to connect to a server that answers again.
    #[cold]
    pub(super) fn retry_now(&mut self, server: u16, now_ns: u64) {
        for (index, connection) in (0..).zip(&mut self.connections.all) {
            if connection.server == server
                && let ConnectionState::Down { retry_ns } = &mut connection.state
                && *retry_ns > now_ns
            {
                *retry_ns = now_ns;
                self.connections.timers.set(index, now_ns);
                self.any_lost = true;
            }
        }
    }

    /// Times out connections by their oldest operation; with request ids, if that suffices, the operation alone.
    /// Returns when to check again: at once where a poll since the timeout is missing. Deferred sends must have their results: those without
    /// count as unsent.
    ///
    /// Checking the oldest suffices until the earliest deadline: later requests time out later.
    pub(crate) fn expire<I: Io>(&mut self, io: &mut I, now_ns: u64) -> u64 {
        let mut earliest_ns = now_ns + self.timeout_ns;
        for index in 0..self.connections.all.len() as u32 {
            // A reply that lies in the socket is late, and no timeout: after a stop of the client it is read first.
            let seen_ns = io.seen_ns(index).min(now_ns);
            if C::MATCHING == Matching::Token && !self.connections[index].codec.is_in_order() {
                self.time_out_overdue(index, seen_ns, now_ns);
            }
            let connection = &self.connections[index];
            let head = match connection.chain.head {
                NO_ENTRY => connection.unacknowledged.head,
                head => head,
            };
            if head == NO_ENTRY {
                continue;
            }
            let entry = self.in_flight.get(head);
            let since_ns = match entry.sent_ns {
                // A request that the peer does not take in is timed from when its socket was full…
                0 if connection.stuck => connection.stuck_ns,
                // …and one without a send result is being sent.
                0 => continue,
                sent_ns => sent_ns,
            };
            let deadline_ns = since_ns + self.timeout_ns;
            if deadline_ns <= seen_ns {
                if entry.sent_ns == 0 {
                    self.abandon_unsent(index, now_ns);
                }
                self.fail_connection(index, now_ns, FaultKind::TimedOut, OutcomeClass::Timeout);
                io.close(index, CloseMode::Reset);
            } else {
                earliest_ns = earliest_ns.min(deadline_ns);
            }
        }
        earliest_ns
    }

    /// Was a connection lost since the last call, so that another attempt must be scheduled?
    pub(crate) fn take_any_lost(&mut self) -> bool {
        std::mem::take(&mut self.any_lost)
    }

    /// Counts unsent and unanswered operations when the run is over.
    pub(crate) fn close_accounts(&mut self, now_ns: u64) {
        self.close_health(now_ns);
        for index in 0..self.dispatch.routes.len() {
            let route = &mut self.dispatch.routes[index];
            let (mut waiting, mut parked) =
                (std::mem::take(&mut route.waiting), std::mem::take(&mut route.parked));
            for picked in waiting.drain(..).chain(parked.drain(..)) {
                self.close_waiting(&picked, now_ns);
            }
            self.end_backlog(index as RouteId);
        }
        self.dispatch.backlogged.clear();
        self.recording.counts.fills.unfinished +=
            self.dispatch.fills.take().map_or(0, |fills| fills.len() as u64);
        while let Some((_, picked)) = self.slots.as_mut().and_then(|slots| slots.paused.pop_front()) {
            self.close_redirected(&picked, now_ns);
        }
        // In turns: the reader of a trace waits for the lane that is behind.
        while (0..self.dispatch.lanes.len())
            .fold(false, |more, lane| self.close_scheduled(lane, now_ns) | more)
        {
            std::thread::yield_now();
        }
        for index in 0..self.connections.all.len() as u32 {
            let connection = &self.connections[index];
            let mut chains = [connection.chain, connection.unacknowledged];
            let (server, route) = (connection.server, connection.route);
            let had_requests = connection.outstanding() > 0;
            for chain in &mut chains {
                while let Some(entry) = self.in_flight.pop(index, chain) {
                    self.close_entry(route, &entry, now_ns);
                }
            }
            if had_requests {
                self.busy.leave(server);
            }
        }
        debug_assert!(self.busy.is_idle(), "every connection and queue that had requests has been emptied");
    }

    /// Counts what is still in the schedule of a lane, behind a full queue. Returns whether more may come.
    fn close_scheduled(&mut self, lane: usize, now_ns: u64) -> bool {
        let end_ns = self.window.end_ns;
        loop {
            let held = &mut self.dispatch.lanes[lane];
            if held.lacks_records(end_ns) {
                return true;
            }
            let session = &mut held.session;
            if !session.is_open() || session.due_ns() >= end_ns || session.needs_block() {
                return false;
            }
            let issue = session.take();
            // The place of its record is free again.
            session.record_outcome(issue.op.key, Outcome::without_reply(OutcomeClass::Lost));
            self.close_due(lane, &issue, now_ns);
        }
    }

    /// Counts an operation, or a part, that waits when the run is over.
    fn close_waiting(&mut self, picked: &Picked, now_ns: u64) {
        let server = self.server_of(picked.route);
        self.recording.set.server(server).unsent += 1;
        if picked.redirect_state != NO_REDIRECT {
            self.close_redirected(picked, now_ns);
        } else if picked.group == NO_GROUP {
            let times = unsent_times(picked.intended_ns, picked.picked_ns, now_ns);
            self.close_unsent(server, picked.phase, &picked.op, &times);
        } else if let Some(group) = self.close_unsent_part(server, picked.group) {
            self.close_group(&group, now_ns);
        }
    }

    /// Counts a due operation that was never picked.
    fn close_due(&mut self, lane: usize, issue: &DueOp, now_ns: u64) {
        let phase = self.window.phase_of(issue.intended_ns);
        self.recording.set.scheduled(phase, &issue.op);
        let routes = self.dispatch.lanes[lane].routes.clone();
        let picked_ns = self.dispatch.picked_ns(lane as u32, issue.intended_ns, now_ns);
        let times = unsent_times(issue.intended_ns, picked_ns, now_ns);
        if routes.len() > 1 {
            // Its server is unknown.
            let busy_lag_ns = routes.map(|route| self.busy.lag_ns(self.server_of(route))).max().flatten();
            return self.recording.set.unsent(phase, &issue.op, &times, busy_lag_ns);
        }
        let server = self.server_of(routes.start);
        self.recording.set.server(server).unsent += 1;
        self.recording.occupancy.enter_before(picked_ns);
        self.recording.occupancy.enter(picked_ns, 1);
        self.close_unsent(server, phase, &issue.op, &times);
    }

    /// Counts an operation, or a part, that is queued or in flight when the run is over.
    fn close_entry(&mut self, route: RouteId, entry: &Entry, now_ns: u64) {
        if entry.sent_ns == 0 {
            return self.close_waiting(&entry.picked(entry.op(), None, route), now_ns);
        }
        let entry = &self.without_redirect(entry);
        if entry.details.group == NO_GROUP {
            self.recording.set.in_flight(entry.phase, &entry.op(), entry.intended_ns, entry.sent_ns);
            self.recording.occupancy.leave(entry.picked_ns, now_ns, 1);
            return;
        }
        self.groups.note_lag(entry.details.group, self.busy.lag_ns(self.server_of(route)));
        let lost = Outcome::without_reply(OutcomeClass::Lost);
        if let Some(group) = self.groups.end_sent(entry.details.group, entry, lost) {
            self.close_group(&group, now_ns);
        }
    }

    /// Counts an operation in parts that is in flight when the run is over.
    pub(super) fn close_group(&mut self, group: &Group, now_ns: u64) {
        if group.abandoned {
            // It has failed with the abandoned part.
            self.record_group(group, now_ns, now_ns);
            return;
        }
        if group.sent_ns == 0 {
            let times = unsent_times(group.whole.intended_ns, group.whole.picked_ns, now_ns);
            self.recording.set.unsent(group.whole.phase, &group.whole.op, &times, group.busy_lag_ns);
        } else {
            self.recording.sent_in_parts(group, group.sent_ns);
            self.recording.set.in_flight(
                group.whole.phase,
                &group.whole.op,
                group.whole.intended_ns,
                group.sent_ns,
            );
        }
        self.recording.occupancy.leave(group.whole.picked_ns, now_ns, 1);
    }

    /// The server of a route.
    pub(super) fn server_of(&self, route: u32) -> u16 {
        self.connections[self.dispatch.routes[route as usize].connections.start].server
    }

    /// Are requests to a server in flight or waiting?
    fn has_requests(&self, server: usize) -> bool {
        let is_its = |connection: u32| usize::from(self.connections[connection].server) == server;
        let is_out = |index: u32| is_its(index) && self.connections[index].outstanding() > 0;
        (0..self.connections.all.len() as u32).any(is_out)
            || self.dispatch.routes.iter().any(|route| route.backlog() > 0 && is_its(route.connections.start))
    }

    /// Unanswered requests of a server, and when the oldest was sent; of datagrams, only those since its last
    /// answer.
    pub(super) fn unanswered(&self, server: usize) -> (usize, Option<u64>) {
        let since_ns = if self.servers[server].is_lossy { self.servers[server].last_success_ns } else { 0 };
        let (mut count, mut oldest) = (0, None);
        for connection in
            self.connections.all.iter().filter(|connection| usize::from(connection.server) == server)
        {
            let mut id = connection.chain.head;
            while id != NO_ENTRY {
                let entry = self.in_flight.get(id);
                if entry.sent_ns != 0 && entry.sent_ns > since_ns {
                    count += 1;
                    oldest = Some(oldest.unwrap_or(u64::MAX).min(entry.sent_ns));
                }
                id = entry.next();
            }
        }
        (count, oldest)
    }

    /// Records outages that are not over.
    fn close_health(&mut self, now_ns: u64) {
        for server in 0..self.servers.len() {
            let (unanswered, oldest) = self.unanswered(server);
            if !self.servers[server].is_silent(unanswered) {
                continue;
            }
            // Without requests, or after the last possible failure, its silence means nothing.
            let health = &self.servers[server];
            // A datagram socket stays up when the server is down.
            let is_down = health.up == 0 || health.is_lossy && health.trouble_since_ns != 0;
            let could_show = is_down && health.trouble_since_ns < self.window.end_ns;
            if !could_show && !self.has_requests(server) {
                continue;
            }
            if let Some(span) = self.servers[server].close(now_ns, oldest) {
                self.recording.set.outage(span);
            }
        }
    }
}
