//! Choosing: which of a lane's routes an operation takes, or which several.
//!
//! Not placing it on a connection of the route. Invariant: whatever an operation is divided into is one group, and each part has the
//! route that its keys have when they are written.

use super::Traffic;
use crate::group::{GroupId, NO_GROUP};
use crate::lane::{Lane, Picked, RouteId, Routing};
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

    /// The same where the kind decides; of several servers that have its key, one after the other.
    #[inline(never)]
    fn route_by_kind(&mut self, lane_index: u32, op: &Op) -> RouteId {
        let lane = &mut self.lanes[lane_index as usize];
        write_only_key(lane, op, &mut self.key_bytes);
        let Routing::ByKind(kinds) = &mut lane.routing else { unreachable!("the caller has looked") };
        let turn = kinds.take_turn();
        if let Some(spread) = lane.spread(op.kind) {
            return spread.route(&self.key_bytes, turn);
        }
        let Routing::ByKind(kinds) = &mut lane.routing else { unreachable!("as before") };
        let branch = &mut kinds.branches[usize::from(kinds.of_kind[op.kind as usize])];
        branch.routes.start + branch.routing.any(branch.routes.len() as u32)
    }

    /// Hands an operation out in parts: a multi-get in as many as there are servers that hold its keys, a change to every server that
    /// has its key.
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
        let first_route = spread.first();
        for id in lane.session.ids(&picked.op) {
            self.key_bytes.clear();
            lane.keyspace.write_key(id, &mut self.key_bytes);
            self.route_keys[(spread.route(&self.key_bytes, turn) - first_route) as usize] += 1;
        }
        let parts = self.route_keys.iter().filter(|keys| **keys > 0).count() as u32;
        let group = self.group_of(&picked, parts);
        // A whole one has an operand of its own.
        let operand = if group == NO_GROUP { picked.op.operand } else { u64::from(turn) };
        let mut flush_first = false;
        for server in 0..self.route_keys.len() {
            let count = self.route_keys[server];
            if count > 0 {
                let op = Op { count, operand, ..picked.op };
                flush_first |=
                    self.submit(Picked { op, route: first_route + server as u32, group, ..picked });
            }
        }
        flush_first
    }

    /// Hands a change out to every server that has its key.
    fn replicate(&mut self, lane_index: u32, picked: Picked) -> bool {
        let lane = &self.lanes[lane_index as usize];
        write_only_key(lane, &picked.op, &mut self.key_bytes);
        let (Routing::ByKind(kinds), Some(spread)) = (&lane.routing, lane.spread(picked.op.kind)) else {
            unreachable!("replicas are of plans in which the key decides")
        };
        let (replicas, first, count) = (kinds.replicas, spread.first(), spread.count());
        let home = spread.route(&self.key_bytes, 0) - first;
        let group = self.group_of(&picked, replicas);
        let mut flush_first = false;
        for behind in 0..replicas {
            let route = first + (home + behind) % count;
            flush_first |= self.submit(Picked { route, group, ..picked });
        }
        flush_first
    }

    /// The group of an operation in so many parts.
    fn group_of(&mut self, picked: &Picked, parts: u32) -> GroupId {
        match parts {
            0 | 1 => NO_GROUP,
            _ => self.groups.open(picked.op, picked.phase, picked.intended_ns, picked.picked_ns, parts),
        }
    }
}

/// Writes the key by which an operation with one key finds its server, in place of what was there.
#[inline]
fn write_only_key(lane: &Lane, op: &Op, key_bytes: &mut Vec<u8>) {
    key_bytes.clear();
    if let KeyRef::Offset(place) = op.key {
        key_bytes.extend_from_slice(lane.session.records().key(place));
    } else if let Some(id) = lane.session.ids(op).next() {
        lane.keyspace.write_key(id, key_bytes);
    }
}
