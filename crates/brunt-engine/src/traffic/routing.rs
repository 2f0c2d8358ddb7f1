//! Routing: the route of an operation, or those of its parts.
//!
//! Invariant: the parts of an operation are one group, and each part's route holds its keys when they are written.

use super::Traffic;
use crate::state::lane::{KeyedRoutes, KindRouting, Lane, Picked, Routing};
use crate::state::{GroupId, NO_GROUP, RouteId};
use brunt_plan::op::{KeyRef, Op};
use brunt_proto::Codec;

impl<C: Codec> Traffic<C> {
    /// The route of an operation that goes to one server.
    #[inline]
    pub(super) fn route_of(&mut self, lane_index: u32, op: &Op) -> RouteId {
        let lane = &mut self.lanes[lane_index as usize];
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
        let lane = &mut self.lanes[lane_index as usize];
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
        let lane = &mut self.lanes[lane_index as usize];
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
        let lane = &self.lanes[lane_index as usize];
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
        let lane = &self.lanes[lane_index as usize];
        write_only_key(lane, op, &mut self.key_bytes);
        spread_of(lane, op).route(&self.key_bytes, 0)
    }

    /// The route `behind` steps after a home.
    fn replica(&self, lane_index: u32, op: &Op, home: RouteId, behind: u32) -> RouteId {
        let spread = spread_of(&self.lanes[lane_index as usize], op);
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
        let kinds = kinds_of(&self.lanes[lane_index as usize]);
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
#[inline]
fn write_only_key(lane: &Lane, op: &Op, key_bytes: &mut Vec<u8>) {
    key_bytes.clear();
    if let KeyRef::Offset(place) = op.key {
        key_bytes.extend_from_slice(lane.session.records().key(place));
    } else if let Some(id) = lane.session.ids(op).next() {
        lane.keyspace.write_key(id, key_bytes);
    }
}
