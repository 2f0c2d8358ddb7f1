//! What one request cost the client: processor time and system calls.
//!
//! Not a measurement of its own: quotients of the client's use, which is counted from the beginning of the measured
//! window to the end of the drain, and of the requests that were sent with it. Those are the requests of the phases
//! measure and drain; the answers to the last requests of the warm-up are read in the same time and are not counted, so
//! the quotients err on the high side, by at most the requests in flight at one instant.

use brunt_plan::phase::Phase;
use brunt_stats::summary::Summary;

/// Per request; `None` where none was sent.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct RequestCost {
    /// Processor time in user space, in nanoseconds.
    pub cpu_user_ns: f64,
    /// Processor time in the kernel, in nanoseconds.
    pub cpu_system_ns: f64,
    /// System calls.
    pub syscalls: f64,
}

impl RequestCost {
    /// The cost of a run's requests.
    pub(crate) fn of(summary: &Summary) -> Option<Self> {
        let sent_in = |phase| summary.phase(phase).map_or(0, |phase| phase.book.requests.sent);
        let requests = sent_in(Phase::Measure) + sent_in(Phase::Drain);
        let per_request = |total: u64| total as f64 / requests as f64;
        (requests > 0).then(|| Self {
            cpu_user_ns: per_request(summary.usage.cpu_user_ns),
            cpu_system_ns: per_request(summary.usage.cpu_system_ns),
            syscalls: per_request(summary.usage.syscalls),
        })
    }

    /// Processor time, user and system, in nanoseconds.
    pub(crate) fn cpu_ns(&self) -> f64 {
        self.cpu_user_ns + self.cpu_system_ns
    }
}
