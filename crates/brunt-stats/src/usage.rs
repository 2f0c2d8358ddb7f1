//! What a run cost the client: processor time and system calls.
//!
//! Measured elsewhere; here it is data for the report.

/// How busy one worker was.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WorkerUsage {
    /// Which worker.
    pub worker: u32,
    /// Time in its loop that it did not sleep, in nanoseconds of the measured window.
    pub busy_ns: u64,
    /// Processor time, user and system, in nanoseconds.
    pub cpu_ns: u64,
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
    /// How workers waited.
    pub wait: String,
    /// Workers.
    pub threads: u32,
    /// Each of them.
    pub workers: Vec<WorkerUsage>,
}
