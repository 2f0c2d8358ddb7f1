//! The other hosts of a run: which workers were whose, and how well their clocks are known.
//!
//! Not what they measured, which is in the totals like everybody's.

use serde::{Deserialize, Serialize};

/// An agent.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AgentRecord {
    /// As it was named.
    pub name: String,
    /// Its host, as that calls itself.
    pub host: String,
    /// The number of its first worker in the run.
    pub first_worker: u32,
    /// How many it had.
    pub workers: u32,
    /// How much each of them weighs: of requests in open loop they have this part beside the workers of other agents.
    pub weight: u32,
    /// Its clock's reading less the controller's, in nanoseconds.
    pub clock_offset_ns: i64,
    /// By how much that may be wrong, and with it the instant at which it began.
    pub clock_error_ns: u64,
    /// Why it was lost while it measured; what it recorded up to then is in the totals.
    #[serde(default)]
    pub lost: Option<String>,
    /// How long after the schedule began that was noticed, in nanoseconds.
    #[serde(default)]
    pub lost_after_ns: Option<u64>,
}
