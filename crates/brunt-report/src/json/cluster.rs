//! A cluster as JSON: redirections, and slots that are of no server of the plan.

use brunt_stats::cluster::{ClusterRecord, RedirectionCounts};
use brunt_stats::summary::Summary;
use serde_json::{Value, json};

/// Null where the servers are none.
pub(super) fn cluster(summary: &Summary) -> Value {
    let redirections = &summary.counts().redirections;
    let Some(ClusterRecord { slots, is_final, refreshes }) = &summary.record.run.cluster else {
        return Value::Null;
    };
    json!({
        "redirections": self::redirections(redirections),
        "slots_elsewhere": slots.elsewhere,
        "slots_unserved": slots.unserved,
        "slots_final": is_final,
        "map_refreshes": refreshes,
    })
}

fn redirections(counts: &RedirectionCounts) -> Value {
    json!({
        "moved": counts.moved,
        "ask": counts.ask,
        "tryagain": counts.try_again,
        "hops": counts.hops(),
        "hops_max": counts.hops_max,
        "operations": counts.operations,
        "too_many": counts.too_many,
        "unknown": counts.unknown,
        "unknown_node": counts.unknown_node,
    })
}

/// How many slots a server has at the end; null where it is no node of a cluster.
pub(super) fn slots(summary: &Summary, index: usize) -> Option<u16> {
    summary.record.run.cluster.as_ref()?.slots.of_servers.get(index).copied()
}
