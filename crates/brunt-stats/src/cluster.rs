//! A cluster over a run: how often its nodes sent a request elsewhere, and who had which slots at the end.
//!
//! Not outcomes and not times: an operation that was sent on is one sample, from its first send to its last reply, and ends
//! as that reply says. Counts are over all phases.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The most hops of one operation from node to node: behind that, what the node answers is its end.
pub const HOPS_MAX: u8 = 5;

/// Replies that sent a request elsewhere, and those that could not be followed.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RedirectionCounts {
    /// Operations, or parts of a multi-get, that were sent on at least once.
    pub operations: u64,
    /// Followed to the node that has the slot from now on.
    pub moved: u64,
    /// Followed for once, while the slot is on its way.
    pub ask: u64,
    /// Asked again a little later, because the keys of the request were not all in one place.
    pub try_again: u64,
    /// The most hops from node to node that one of them took.
    pub hops_max: u8,
    /// Ended as an error, because they had taken five hops.
    pub too_many: u64,
    /// Ended as an error, because they were sent to a node that was not known when the run began.
    pub unknown: u64,
    /// The first such node.
    pub unknown_node: Option<String>,
}

impl RedirectionCounts {
    /// All hops: replies that were followed.
    pub const fn hops(&self) -> u64 {
        self.moved + self.ask + self.try_again
    }

    /// Adds the counts of another worker.
    pub fn merge(&mut self, other: &Self) {
        self.operations += other.operations;
        self.moved += other.moved;
        self.ask += other.ask;
        self.try_again += other.try_again;
        self.hops_max = self.hops_max.max(other.hops_max);
        self.too_many += other.too_many;
        self.unknown += other.unknown;
        if self.unknown_node.is_none() {
            self.unknown_node.clone_from(&other.unknown_node);
        }
    }
}

/// Who has how many slots.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SlotCounts {
    /// Of each server, in the order of the plan.
    pub of_servers: Vec<u16>,
    /// Of nodes that are none of them.
    pub elsewhere: u16,
    /// Slots without a node.
    pub unserved: u16,
}

/// What a run saw of its cluster.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ClusterRecord {
    /// By the last map that a node gave.
    pub slots: SlotCounts,
    /// Was that after the last reply? If not, no node gave a map at the end.
    pub is_final: bool,
    /// How often the map was asked for again while the run went on, by all hosts together.
    pub refreshes: u64,
}
