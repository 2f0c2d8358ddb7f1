//! What a run cost the client: processor time, system calls, and what of its time each worker could use.
//!
//! Measured elsewhere; here it is data for the checks and the report. Everything covers the measured window.

use serde::{Deserialize, Serialize};

/// A worker that was busy or kept from its processor for this share of the window has no time left, whether or not its lateness shows in a
/// percentile.
pub const BUSY: f64 = 0.95;

/// How often a worker found that a server on its host had sent from the processor that the worker runs on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Colocation {
    /// How often it looked.
    pub looks: u64,
    /// How often it was so.
    pub shared: u64,
}

/// What one worker did with its time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct WorkerUsage {
    /// Which worker.
    pub worker: u32,
    /// How long it was observed: the measured window, up to the turns of its loop.
    pub wall_ns: u64,
    /// Processor time, user and system, but for turns that only waited for something to do.
    pub busy_ns: u64,
    /// Processor time, user and system.
    pub cpu_ns: u64,
    /// Time in which it was ready to run and did not: its processor was another's, or its control group's quota was used
    /// up. `None` where the kernel does not say.
    pub run_delay_ns: Option<u64>,
    /// How often its processor was taken from it.
    pub involuntary_switches: u64,
    /// Whom it shared its processor with.
    pub colocation: Colocation,
}

impl WorkerUsage {
    /// Had it no time left?
    pub fn is_busy(&self) -> bool {
        let taken_ns = self.busy_ns + self.run_delay_ns.unwrap_or(0);
        self.wall_ns > 0 && taken_ns as f64 >= BUSY * self.wall_ns as f64
    }
}

/// What the client used during the measured window.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ClientUsage {
    /// Processor time in user space, in nanoseconds.
    pub cpu_user_ns: u64,
    /// Processor time in the kernel on our behalf, in nanoseconds.
    pub cpu_system_ns: u64,
    /// System calls that workers made.
    pub syscalls: u64,
    /// The kernel interface that ran.
    pub io: String,
    /// Why that one, where the plan left it open and the best there is was not to be had.
    pub io_reason: Option<String>,
    /// How workers waited.
    pub wait: String,
    /// Workers.
    pub threads: u32,
    /// Each of them.
    pub workers: Vec<WorkerUsage>,
}
