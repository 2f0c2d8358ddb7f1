//! Connections that never open again, and the operations that waited for them or for a replica that is down.
//!
//! [`super::failure_handling`] covers the loss. An operation whose server may come back, and whose keys no other
//! has, waits on. Invariant: no operation waits for a connection that never opens again, nor for a replica while
//! another is up; it moves to another server if one can serve it, a part of a write ends without the replica, and
//! the rest is abandoned.

use super::Traffic;
use crate::state::connection::ConnectionState;
use crate::state::lane::{Picked, Route, Routing};
use crate::state::{NO_GROUP, RouteId};
use brunt_plan::op::Op;
use brunt_proto::Codec;

impl<C: Codec> Traffic<C> {
    /// Will this connection be replaced when it is lost now?
    pub(super) fn reconnects(&self, index: u32) -> bool {
        let connection = &self.connections[index as usize];
        let lifetimes = &self.lifetimes[usize::from(connection.class)];
        let others = lifetimes.up - u32::from(connection.state == ConnectionState::Up);
        lifetimes.reconnects(others > 0)
    }

    /// Has this worker lost all of its connections for good?
    pub(crate) fn has_no_client(&self) -> bool {
        self.recording.counts.connections_abandoned as usize == self.connections.len()
    }

    /// Closes a lost connection for good. With the last one of its class go those that would have been retried.
    pub(super) fn close_after_loss(&mut self, index: u32, at_ns: u64) {
        let class = self.connections[index as usize].class;
        self.close_for_good(index);
        if self.lifetimes[usize::from(class)].up == 0 {
            for other in 0..self.connections.len() as u32 {
                let connection = &self.connections[other as usize];
                if connection.class == class && matches!(connection.state, ConnectionState::Down { .. }) {
                    self.close_for_good(other);
                    self.reroute_waiting(self.connections[other as usize].route, at_ns);
                    self.end_closed_loops(other, at_ns);
                }
            }
        }
        self.reroute_waiting(self.connections[index as usize].route, at_ns);
        self.end_closed_loops(index, at_ns);
    }

    fn close_for_good(&mut self, index: u32) {
        self.reset_to(index, ConnectionState::Gone);
        let connection = &mut self.connections[index as usize];
        // Its slots end with it.
        connection.calls_left = 0;
        let server = &mut self.servers[usize::from(connection.server)];
        server.prober = server.prober.filter(|prober| *prober != index);
        self.recording.counts.connections_abandoned += 1;
    }

    /// Ends the closed loops of a connection's lanes without connections.
    fn end_closed_loops(&mut self, index: u32, at_ns: u64) {
        let route = self.connections[index as usize].route as usize;
        for at in 0.. {
            let Some(lane) = self.routes.get(route).and_then(|route| route.lanes().nth(at)) else { return };
            self.end_closed_loop(lane, at_ns);
        }
    }

    /// Ends a closed loop without connections. An open loop's schedule goes on unsent.
    fn end_closed_loop(&mut self, lane_index: u32, at_ns: u64) {
        let lane = &mut self.lanes[lane_index as usize];
        let routes = lane.routes.clone();
        if !lane.session.is_open() && routes.clone().all(|route| self.is_route_over(route)) {
            let lane = &mut self.lanes[lane_index as usize];
            lane.session.end_at(at_ns);
            self.deadlines.set(lane_index, lane.due_ns());
        }
    }

    /// Will no connection of a route ever open again?
    pub(super) fn is_route_over(&self, route: RouteId) -> bool {
        let connections = self.routes[route as usize].connections.clone();
        connections
            .map(|index| &self.connections[index as usize])
            .all(|connection| connection.state == ConnectionState::Gone)
    }

    /// Does an operation wait for a connection that never opens again?
    fn waits_for_nothing(&self, picked: &Picked) -> bool {
        match picked.connection {
            Some(pinned) => self.connections[pinned as usize].state == ConnectionState::Gone,
            None => self.is_route_over(picked.route),
        }
    }

    /// Moves waiting operations away from a replica that is down, while another is up.
    pub(super) fn reroute_replicas(&mut self, server: u16, at_ns: u64) {
        for route in 0..self.routes.len() as RouteId {
            let lane = &self.lanes[self.routes[route as usize].lane as usize];
            if lane.replicas() > 1 && !lane.is_preload && self.server_of(route) == server {
                self.reroute_from_replica(route, at_ns);
            }
        }
    }

    fn reroute_from_replica(&mut self, route_index: RouteId, at_ns: u64) {
        for _ in 0..self.routes[route_index as usize].waiting.len() {
            let route = &mut self.routes[route_index as usize];
            let was_full = route.is_full();
            let Some(picked) = route.waiting.pop_front() else { break };
            self.note_length(route_index, was_full);
            let lane_index = picked.op.session;
            // The operand of a part of a multi-get is the distance of its route from the home of its keys.
            let is_part = picked.group != NO_GROUP && picked.op.kind.is_retrieval();
            let (home, turn) = match is_part {
                true => self.home_behind(route_index, &picked),
                false => (self.home_of(lane_index, &picked.op), 1),
            };
            let other = self.any_live_replica(lane_index, &picked.op, home, turn);
            let has_room = |to: &Route| to.waiting.len() < to.waiting.capacity();
            match other {
                Some(_) if picked.group != NO_GROUP && !is_part => {
                    if let Some(group) = self.groups.end_missed(picked.group) {
                        self.record_group(&group, at_ns, at_ns);
                        let first = self.routes[route_index as usize].connections.start;
                        self.release_unsent(first, group.shared_slot, &group.op, group.outcome(), at_ns);
                    }
                }
                Some((route, behind)) if has_room(&self.routes[route as usize]) => {
                    let operand = if is_part { u64::from(behind) } else { picked.op.operand };
                    self.enqueue(Picked { op: Op { operand, ..picked.op }, route, ..picked });
                }
                _ => self.enqueue(picked),
            }
        }
    }

    /// The home of the keys of a part, and the distance of its route.
    fn home_behind(&self, route: RouteId, part: &Picked) -> (RouteId, u32) {
        let lane = &self.lanes[part.op.session as usize];
        let behind = part.op.operand as u32;
        match lane.spread(part.op.kind) {
            Some(spread) => {
                let (first, count) = (spread.first, spread.count);
                (first + (route - first + count - behind % count) % count, behind.max(1))
            }
            None => (route, 1),
        }
    }

    /// Moves the operations of a route that wait in vain.
    fn reroute_waiting(&mut self, route_index: RouteId, at_ns: u64) {
        let mut parked = std::mem::take(&mut self.routes[route_index as usize].parked);
        parked.retain(|picked| {
            let stays = !self.waits_for_nothing(picked);
            if !stays {
                self.reroute(*picked, at_ns);
            }
            stays
        });
        self.routes[route_index as usize].parked = parked;
        for _ in 0..self.routes[route_index as usize].waiting.len() {
            let Some(picked) = self.routes[route_index as usize].waiting.front().copied() else { break };
            let stays = !self.waits_for_nothing(&picked);
            let route = &mut self.routes[route_index as usize];
            let was_full = route.is_full();
            route.waiting.pop_front();
            if stays {
                route.waiting.push_back(picked);
            } else {
                self.note_length(route_index, was_full);
                self.reroute(picked, at_ns);
            }
        }
    }

    /// Moves an operation that waits in vain, or abandons it.
    fn reroute(&mut self, picked: Picked, at_ns: u64) {
        match self.elsewhere(&picked) {
            Some(route) => self.enqueue(Picked { route, ..picked }),
            None => self.abandon(&picked, at_ns),
        }
    }

    /// Lets an operation that was just picked wait, or moves it if it would wait in vain. Returns whether a
    /// connection must send first.
    #[cold]
    pub(super) fn reroute_dispatched(&mut self, picked: Picked) -> bool {
        if !self.waits_for_nothing(&picked) {
            match picked.connection {
                Some(_) => self.routes[picked.route as usize].parked.push(picked),
                None => self.enqueue_dispatched(picked),
            }
            return false;
        }
        match self.elsewhere(&picked) {
            Some(route) => self.submit(Picked { route, ..picked }),
            None => {
                self.abandon(&picked, self.dispatched_ns);
                false
            }
        }
    }

    /// Another route for an operation that any server can serve.
    fn elsewhere(&self, picked: &Picked) -> Option<RouteId> {
        let lane = &self.lanes[picked.op.session as usize];
        let (routes, routing) = match &lane.routing {
            Routing::ByKind(kinds) => {
                let branch = kinds.branches.iter().find(|branch| branch.routes.contains(&picked.route))?;
                (branch.routes.clone(), &branch.routing)
            }
            routing => (lane.routes.clone(), routing),
        };
        let is_any = matches!(routing, Routing::InTurn(_) | Routing::AtRandom(_));
        let (behind, before) = (picked.route + 1..routes.end, routes.start..picked.route);
        behind.chain(before).find(|route| is_any && !self.is_route_over(*route))
    }
}
