//! Routing: the route of an operation, or those of its parts; and another route for operations that wait for a connection
//! that never opens again, or for a replica that is down.
//!
//! [`super::failure_handling`] covers the loss. Invariants: the parts of an operation are one group, and each part's route
//! holds its keys when they are written. No operation waits for a connection that never opens again, nor for a replica while
//! another is up: it moves to another server if one can serve it, a part of a write ends without the replica, and
//! the rest is abandoned. An operation whose server may come back, and whose keys no other has, waits on.

use super::Traffic;
use crate::state::connection::ConnectionState;
use crate::state::lane::{KeyedRoutes, KindRouting, Lane, Picked, Route, Routing};
use crate::state::{GroupId, NO_GROUP, RouteId};
use brunt_plan::op::{KeyRef, Op};
use brunt_proto::Codec;

impl<C: Codec> Traffic<C> {
    /// The route of an operation that goes to one server.
    pub(super) fn route_of(&mut self, lane_index: u32, op: &Op) -> RouteId {
        let lane = &mut self.dispatch.lanes[lane_index as usize];
        let first = lane.routes.start;
        match &lane.routing {
            Routing::Only => first,
            Routing::ByKey(router) => {
                write_only_key(lane, op, &mut self.key_bytes);
                first + router.route(&self.key_bytes)
            }
            Routing::BySlot => first + self.node_of(lane_index, op),
            Routing::InTurn(_) | Routing::AtRandom(_) => first + lane.routing.any(lane.routes.len() as u32),
            Routing::ByKind(_) => self.route_by_kind(lane_index, op),
        }
    }

    /// As `route_of`, if the kind decides; replicas take turns.
    #[inline(never)]
    fn route_by_kind(&mut self, lane_index: u32, op: &Op) -> RouteId {
        let lane = &mut self.dispatch.lanes[lane_index as usize];
        write_only_key(lane, op, &mut self.key_bytes);
        let Routing::ByKind(kinds) = &mut lane.routing else { unreachable!("the caller has looked") };
        let turn = kinds.take_turn();
        if let Some(spread) = lane.spread(op.kind) {
            let home = spread.route(&self.key_bytes, 0);
            return if kinds_of(lane).replicas > 1 {
                self.replica_of(lane_index, op, home, turn).0
            } else {
                home
            };
        }
        let Routing::ByKind(kinds) = &mut lane.routing else { unreachable!("as before") };
        let branch = &mut kinds.branches[usize::from(kinds.of_kind[op.kind as usize])];
        branch.routes.start + branch.routing.any(branch.routes.len() as u32)
    }

    /// Splits an operation: a multi-get by server, a write by replica.
    pub(super) fn split(&mut self, lane_index: u32, picked: Picked) -> bool {
        let lane = &mut self.dispatch.lanes[lane_index as usize];
        if matches!(lane.routing, Routing::BySlot) {
            return self.split_by_slot(lane_index, picked);
        }
        if !picked.op.kind.is_retrieval() {
            return self.replicate(lane_index, picked);
        }
        let turn = if let Routing::ByKind(kinds) = &mut lane.routing { kinds.take_turn() } else { 0 };
        let Some(spread) = lane.spread(picked.op.kind) else { unreachable!("else it is not split") };
        self.route_keys.fill(0);
        let (first_route, replicas) = (spread.first, lane.replicas());
        for id in lane.session.ids(&picked.op) {
            self.key_bytes.clear();
            lane.keyspace.write_key(id, &mut self.key_bytes);
            self.route_keys[(spread.route(&self.key_bytes, 0) - first_route) as usize] += 1;
        }
        let parts = self.route_keys.iter().filter(|keys| **keys > 0).count() as u32;
        let group = self.group_of(&picked, parts);
        let mut flush_first = false;
        for server in 0..self.route_keys.len() {
            let (count, home) = (self.route_keys[server], first_route + server as u32);
            if count > 0 {
                let (route, behind) = match replicas {
                    1 => (home, 0),
                    _ => self.replica_of(lane_index, &picked.op, home, turn),
                };
                // An unsplit one keeps its operand.
                let operand = if group == NO_GROUP { picked.op.operand } else { u64::from(behind) };
                let op = Op { count, operand, ..picked.op };
                flush_first |= self.submit(Picked { op, route, group, ..picked });
            }
        }
        flush_first
    }

    /// Sends a write to every replica with a connection; to all of them if there is none, and in a preload.
    fn replicate(&mut self, lane_index: u32, picked: Picked) -> bool {
        let lane = &self.dispatch.lanes[lane_index as usize];
        let (replicas, is_preload) = (lane.replicas(), lane.is_preload);
        let home = self.home_of(lane_index, &picked.op);
        let live =
            (0..replicas).filter(|behind| self.live_replica(lane_index, &picked.op, home, *behind).is_some());
        let live = live.count() as u32;
        let goes_to_all = is_preload || live == 0;
        let parts = if goes_to_all { replicas } else { live };
        self.recording.counts.replicas_missed += u64::from(replicas - parts);
        let group = self.group_of(&picked, parts);
        let mut flush_first = false;
        for behind in 0..replicas {
            let route = match goes_to_all {
                true => Some(self.replica(lane_index, &picked.op, home, behind)),
                false => self.live_replica(lane_index, &picked.op, home, behind),
            };
            if let Some(route) = route {
                flush_first |= self.submit(Picked { route, group, ..picked });
            }
        }
        flush_first
    }

    /// The home route of the only key of an operation.
    pub(super) fn home_of(&mut self, lane_index: u32, op: &Op) -> RouteId {
        let lane = &self.dispatch.lanes[lane_index as usize];
        write_only_key(lane, op, &mut self.key_bytes);
        spread_of(lane, op).route(&self.key_bytes, 0)
    }

    /// The route `behind` steps after a home.
    fn replica(&self, lane_index: u32, op: &Op, home: RouteId, behind: u32) -> RouteId {
        let spread = spread_of(&self.dispatch.lanes[lane_index as usize], op);
        spread.first + (home - spread.first + behind) % spread.count
    }

    /// As `replica`, if its server is up.
    fn live_replica(&self, lane_index: u32, op: &Op, home: RouteId, behind: u32) -> Option<RouteId> {
        let route = self.replica(lane_index, op, home, behind);
        (self.servers[usize::from(self.server_of(route))].up > 0).then_some(route)
    }

    /// The replica for an operation: the one in turn or the next that is up, the home only as the last. Also
    /// returns its distance from the home.
    fn replica_of(&self, lane_index: u32, op: &Op, home: RouteId, turn: u32) -> (RouteId, u32) {
        self.any_live_replica(lane_index, op, home, turn)
            .unwrap_or_else(|| (self.replica(lane_index, op, home, turn), turn))
    }

    /// As `replica_of`; `None` if none is up.
    pub(super) fn any_live_replica(
        &self,
        lane_index: u32,
        op: &Op,
        home: RouteId,
        turn: u32,
    ) -> Option<(RouteId, u32)> {
        let kinds = kinds_of(&self.dispatch.lanes[lane_index as usize]);
        let others = (0..kinds.replicas - 1).map(|by| kinds.behind(turn, by));
        others
            .chain([0])
            .find_map(|behind| self.live_replica(lane_index, op, home, behind).map(|route| (route, behind)))
    }

    /// The group of an operation in this many parts.
    pub(super) fn group_of(&mut self, picked: &Picked, parts: u32) -> GroupId {
        match parts {
            0 | 1 => NO_GROUP,
            _ => self.groups.open(picked, parts),
        }
    }

    // ---- away from connections that never open again ----------------------------------------------------------------

    /// Has this worker lost all of its connections for good?
    pub(crate) fn has_no_client(&self) -> bool {
        self.recording.counts.connections_abandoned as usize == self.connections.all.len()
    }

    /// Closes a lost connection for good. With the last one of its class go those that would have been retried.
    pub(super) fn close_after_loss(&mut self, index: u32, at_ns: u64) {
        let class = self.connections[index].class;
        self.close_for_good(index);
        if self.connections.lifetimes_of(index).up == 0 {
            for other in 0..self.connections.all.len() as u32 {
                let connection = &self.connections[other];
                if connection.class == class && matches!(connection.state, ConnectionState::Down { .. }) {
                    self.close_for_good(other);
                    self.reroute_waiting(self.connections[other].route, at_ns);
                    self.end_closed_loops(other, at_ns);
                }
            }
        }
        self.reroute_waiting(self.connections[index].route, at_ns);
        self.end_closed_loops(index, at_ns);
    }

    fn close_for_good(&mut self, index: u32) {
        self.reset_to(index, ConnectionState::Gone);
        let connection = &mut self.connections[index];
        // Its slots end with it.
        connection.calls_left = 0;
        let server = &mut self.servers[usize::from(connection.server)];
        server.prober = server.prober.filter(|prober| *prober != index);
        self.recording.counts.connections_abandoned += 1;
    }

    /// Ends the closed loops of a connection's lanes without connections.
    fn end_closed_loops(&mut self, index: u32, at_ns: u64) {
        let route = self.connections[index].route as usize;
        for at in 0.. {
            let Some(lane) = self.dispatch.routes.get(route).and_then(|route| route.lanes().nth(at)) else {
                return;
            };
            self.end_closed_loop(lane, at_ns);
        }
    }

    /// Ends a closed loop without connections. An open loop's schedule goes on unsent.
    fn end_closed_loop(&mut self, lane_index: u32, at_ns: u64) {
        let lane = &mut self.dispatch.lanes[lane_index as usize];
        let routes = lane.routes.clone();
        if !lane.session.is_open() && routes.clone().all(|route| self.is_route_over(route)) {
            let lane = &mut self.dispatch.lanes[lane_index as usize];
            lane.session.end_at(at_ns);
            self.dispatch.deadlines.set(lane_index, lane.due_ns());
        }
    }

    /// Will no connection of a route ever open again?
    pub(super) fn is_route_over(&self, route: RouteId) -> bool {
        let connections = self.dispatch.routes[route as usize].connections.clone();
        connections
            .map(|index| &self.connections[index])
            .all(|connection| connection.state == ConnectionState::Gone)
    }

    /// Does an operation wait for a connection that never opens again?
    fn waits_for_nothing(&self, picked: &Picked) -> bool {
        match picked.connection {
            Some(pinned) => self.connections[pinned].state == ConnectionState::Gone,
            None => self.is_route_over(picked.route),
        }
    }

    /// Moves waiting operations away from a replica that is down, while another is up.
    pub(super) fn reroute_replicas(&mut self, server: u16, at_ns: u64) {
        for route in 0..self.dispatch.routes.len() as RouteId {
            let lane = &self.dispatch.lanes[self.dispatch.routes[route as usize].lane as usize];
            if lane.replicas() > 1 && !lane.is_preload && self.server_of(route) == server {
                self.reroute_from_replica(route, at_ns);
            }
        }
    }

    fn reroute_from_replica(&mut self, route_index: RouteId, at_ns: u64) {
        for _ in 0..self.dispatch.routes[route_index as usize].waiting.len() {
            let Some(picked) = self.dispatch.pop_waiting(route_index) else { break };
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
                        let first = self.dispatch.routes[route_index as usize].connections.start;
                        self.release_unsent(
                            first,
                            group.shared_slot,
                            &group.whole.op,
                            group.outcome(),
                            at_ns,
                        );
                    }
                }
                Some((route, behind)) if has_room(&self.dispatch.routes[route as usize]) => {
                    let operand = if is_part { u64::from(behind) } else { picked.op.operand };
                    self.enqueue(Picked { op: Op { operand, ..picked.op }, route, ..picked });
                }
                _ => self.enqueue(picked),
            }
        }
    }

    /// The home of the keys of a part, and the distance of its route.
    fn home_behind(&self, route: RouteId, part: &Picked) -> (RouteId, u32) {
        let lane = &self.dispatch.lanes[part.op.session as usize];
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
        let mut parked = std::mem::take(&mut self.dispatch.routes[route_index as usize].parked);
        parked.retain(|picked| {
            let stays = !self.waits_for_nothing(picked);
            if !stays {
                self.reroute(*picked, at_ns);
            }
            stays
        });
        self.dispatch.routes[route_index as usize].parked = parked;
        for _ in 0..self.dispatch.routes[route_index as usize].waiting.len() {
            let Some(picked) = self.dispatch.routes[route_index as usize].waiting.front().copied() else {
                break;
            };
            let stays = !self.waits_for_nothing(&picked);
            let route = &mut self.dispatch.routes[route_index as usize];
            let was_full = route.is_full();
            route.waiting.pop_front();
            if stays {
                route.waiting.push_back(picked);
            } else {
                self.dispatch.note_length(route_index, was_full);
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
                Some(_) => self.dispatch.routes[picked.route as usize].parked.push(picked),
                None => self.enqueue_dispatched(picked),
            }
            return false;
        }
        match self.elsewhere(&picked) {
            Some(route) => self.submit(Picked { route, ..picked }),
            None => {
                self.abandon(&picked, self.dispatch.dispatched_ns);
                false
            }
        }
    }

    /// Another route for an operation that any server can serve.
    fn elsewhere(&self, picked: &Picked) -> Option<RouteId> {
        let lane = &self.dispatch.lanes[picked.op.session as usize];
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

/// Routes by kind, in a lane with replicas.
fn kinds_of(lane: &Lane) -> &KindRouting {
    let Routing::ByKind(kinds) = &lane.routing else { unreachable!("lanes with replicas route by kind") };
    kinds
}

/// Routes by key, in a lane with replicas.
fn spread_of<'a>(lane: &'a Lane, op: &Op) -> KeyedRoutes<'a> {
    lane.spread(op.kind).expect("replicas are of plans in which the key decides")
}

/// Writes the key that routes an operation with one key, replacing the buffer.
fn write_only_key(lane: &Lane, op: &Op, key_bytes: &mut Vec<u8>) {
    key_bytes.clear();
    if let KeyRef::Offset(place) = op.key {
        key_bytes.extend_from_slice(lane.session.records().key(place));
    } else if let Some(id) = lane.session.ids(op).next() {
        lane.keyspace.write_key(id, key_bytes);
    }
}
