//! What a plan's largest tables take, by the options that size them, tried before anything is measured.
//!
//! Estimates from below: what they leave out is small beside them, or ends the process with a sentence of its own (`memory.rs`).

use crate::memory::first_refused;
use crate::run_error::RunError;
use brunt_plan::plan::{Class, Plan};
use brunt_plan::shard::Shard;
use brunt_stats::sample::Sample;

/// Of a request in flight: its entry and its place among the free ones.
const REQUEST_BYTES: usize = 128;
/// Of a connection: its send queue at least, and what is kept of it.
const CONNECTION_BYTES: usize = 8 << 10;
/// Of a worker: its stack, and three sets of histograms.
const WORKER_BYTES: usize = 6 << 20;

/// Tries to have what workers with these shards need.
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
    let in_flight = of_shards(&|class, connections| connections * class.depth as usize);
    let depth = plan.classes.iter().map(|class| class.depth).max().unwrap_or(1);
    let value = plan.classes.iter().map(Class::value_bytes_max).max().unwrap_or(0);
    let samples = (plan.samples_max as usize).saturating_mul(size_of::<Sample>());
    let needs = [
        (format!("--value-size {value}"), value as usize),
        (format!("--threads {}", plan.threads), shards.len() * WORKER_BYTES),
        (format!("--connections {connections}"), connections * CONNECTION_BYTES),
        (format!("--depth {depth}, --connections {connections}"), in_flight * REQUEST_BYTES),
        (format!("--samples-max {}", plan.samples_max), samples),
    ];
    let sizes = needs.each_ref().map(|(_, bytes)| *bytes);
    match first_refused(&sizes).map(|index| &needs[index]) {
        None => Ok(()),
        Some((option, bytes)) => Err(RunError::OutOfMemory { option: option.clone(), bytes: *bytes as u64 }),
    }
}
