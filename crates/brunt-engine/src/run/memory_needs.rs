//! What a plan's largest tables take, by the options that size them, tried before anything is measured.
//!
//! Lower bounds: tables that are left out are small beside these, or end the process with a message of its own (`memory.rs`).

use crate::memory::first_refused;
use crate::run_error::RunError;
use crate::state::in_flight::Entry;
use crate::state::lane::Picked;
use brunt_plan::plan::{Class, Load, Plan};
use brunt_plan::shard::Shard;
use brunt_stats::sample::Sample;
use brunt_workload::version_tracker::VersionTracker;

/// Of a connection: its send queue at least, and what is kept of it.
const CONNECTION_BYTES: usize = 8 << 10;
/// Of a worker: its stack, and three sets of histograms.
const WORKER_BYTES: usize = 6 << 20;

/// Of a slot of a class: its entry, its place among those that return from a lost connection, and that of a closed loop among those
/// that wait for one.
fn slot_bytes(class: &Class) -> usize {
    let places = if matches!(class.load, Load::Open { .. }) { 1 } else { 2 };
    size_of::<Entry>() + places * size_of::<Picked>()
}

/// Tries to map what workers with these shards need.
///
/// # Errors
/// The option whose need cannot be met, and how large it is.
pub(super) fn check(plan: &Plan, shards: &[Shard]) -> Result<(), RunError> {
    let of_shards = |need: &dyn Fn(&Class, usize) -> usize| -> usize {
        let of_shard = |shard: &Shard| -> usize {
            let own = plan.classes.iter().zip(&shard.classes);
            own.map(|(class, own)| need(class, own.connections.len() * class.path_count())).sum()
        };
        shards.iter().map(of_shard).fold(0, usize::saturating_add)
    };
    let connections = of_shards(&|_, connections| connections);
    let slots = of_shards(&|class, connections| connections * class.depth as usize * slot_bytes(class));
    let depth = plan.classes.iter().map(|class| class.depth).max().unwrap_or(1);
    let value = plan.classes.iter().map(Class::value_bytes_max).max().unwrap_or(0);
    // Every worker tracks every key.
    let tracked =
        plan.classes.iter().filter(|class| plan.verify.is_some() && class.popularity.window().is_none());
    let tracked = tracked.map(|class| class.keyspace.keys).fold(0, u64::saturating_add);
    let trackers = (tracked as usize).saturating_mul(shards.len() * VersionTracker::KEY_BYTES);
    let samples = (plan.samples_max as usize).saturating_mul(size_of::<Sample>());
    let needs = [
        (format!("--value-size {value}"), value as usize),
        (format!("--threads {}", plan.threads), shards.len() * WORKER_BYTES),
        (format!("--connections {connections}"), connections * CONNECTION_BYTES),
        (format!("--depth {depth}, --connections {connections}"), slots),
        (format!("--verify, --keys {tracked}, --threads {}", plan.threads), trackers),
        (format!("--samples-max {}", plan.samples_max), samples),
    ];
    let sizes = needs.each_ref().map(|(_, bytes)| *bytes);
    match first_refused(&sizes).map(|index| &needs[index]) {
        None => Ok(()),
        Some((option, bytes)) => Err(RunError::OutOfMemory { option: option.clone(), bytes: *bytes as u64 }),
    }
}
