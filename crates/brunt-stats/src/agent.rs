//! The agents of a run: their workers and their clocks.
//!
//! What they measured is in the totals of the run.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// One agent of a run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct AgentRecord {
    /// Name, as given to the controller.
    pub name: String,
    /// Name of its host, as the host reports it.
    pub host: String,
    /// The number of its first worker in the run.
    pub first_worker: u32,
    /// Number of its workers.
    pub workers: u32,
    /// Weight of each worker: open-loop requests are divided among all workers in proportion to it.
    pub weight: u32,
    /// Its clock less the controller's clock, in nanoseconds.
    pub clock_offset_ns: i64,
    /// Limit of the error of `clock_offset_ns`, and of the agent's start.
    pub clock_error_ns: u64,
    /// Why it was lost while it measured; what it recorded up to then is in the totals.
    pub lost: Option<String>,
    /// How long after the schedule began that was noticed, in nanoseconds.
    pub lost_after_ns: Option<u64>,
    /// It was lost while it ended its part after an interruption, which ended the run.
    pub lost_after_interruption: bool,
}
