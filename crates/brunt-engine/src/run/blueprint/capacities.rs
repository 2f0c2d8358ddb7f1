//! The capacities of a worker's tables, from the plan.
//!
//! Invariant: a worker never holds more than these, so that nothing is allocated once it runs.

use super::{Blueprint, ClassConnections, WAITING_MAX, WAITING_MIN, count_of, count_routes, keys_max};
use brunt_plan::op::OpKind;
use brunt_plan::plan::{Load, OnMiss};

/// Capacities of a worker, from the plan.
pub(super) struct Capacities {
    pub in_flight: usize,
    pub groups: usize,
    pub shared_slots: usize,
    /// Waiting operations of open loops, over all routes.
    pub waiting: usize,
}

impl Capacities {
    pub(super) fn of(
        blueprint: &Blueprint,
        class_connections: &[ClassConnections],
        preload_depth: u32,
    ) -> Self {
        let mut bounds = Self { in_flight: 0, groups: 0, shared_slots: 0, waiting: 0 };
        let routes = count_routes(&blueprint.plan, class_connections);
        for (class, class_connections) in blueprint.plan.classes.iter().zip(class_connections) {
            let connections = count_of(class_connections);
            let slots = connections * class.depth as usize;
            // In a cluster the servers may change.
            let servers = if blueprint.board.is_some() {
                blueprint.endpoints.len()
            } else {
                class_connections.iter().map(Vec::len).sum()
            };
            let fills_misses = class.on_miss == OnMiss::Set;
            let extra = if fills_misses { slots * keys_max(class) } else { 0 };
            bounds.in_flight += (connections * preload_depth as usize).max(slots + extra);
            bounds.shared_slots += if fills_misses { slots } else { 0 };
            let waiting = if matches!(class.load, Load::Open { .. }) {
                servers * (WAITING_MAX / routes).max(WAITING_MIN)
            } else {
                0
            };
            bounds.waiting += waiting;
            let splits = servers > 1 || blueprint.board.is_some();
            if class.replicas > 1 {
                bounds.groups += (connections * preload_depth as usize).max(slots) + waiting;
            } else if splits && class.mix.contains(OpKind::Mget) {
                bounds.groups += slots + waiting;
            }
        }
        bounds
    }
}
