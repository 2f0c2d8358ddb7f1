//! What one request cost the client: processor time and system calls.
//!
//! Not a measurement of its own: quotients of the client's use during the measured window, and of the requests that were
//! sent in it. At either edge a request may be sent on one side and answered on the other, so the quotients are off by at
//! most the requests in flight at one instant.

use brunt_stats::summary::Summary;
use brunt_stats::usage::WorkerUsage;

/// Fewer requests do not show what one costs: the loop's own turns would be most of it.
const REQUESTS_MIN: u64 = 100;

/// Per request; `None` where hardly any was sent.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct RequestCost {
    /// Processor time in user space, in nanoseconds.
    pub cpu_user_ns: f64,
    /// Processor time in the kernel, in nanoseconds.
    pub cpu_system_ns: f64,
    /// Of both, what went into turns of the loop that only waited, so that it is no cost of the request; `None` where
    /// no worker was observed.
    pub cpu_waiting_ns: Option<f64>,
    /// System calls.
    pub syscalls: f64,
}

impl RequestCost {
    /// The cost of a run's requests.
    pub(crate) fn of(summary: &Summary) -> Option<Self> {
        let requests = summary.total.in_window.sent;
        let per_request = |total: u64| total as f64 / requests as f64;
        let workers = summary.record.run.usage.workers.iter().filter(|worker| worker.wall_ns > 0);
        let waiting_ns = workers.map(|worker| worker.cpu_ns.saturating_sub(worker.busy_ns));
        (requests >= REQUESTS_MIN).then(|| Self {
            cpu_waiting_ns: waiting_ns.reduce(|one, other| one + other).map(per_request),
            cpu_user_ns: per_request(summary.record.run.usage.cpu_user_ns),
            cpu_system_ns: per_request(summary.record.run.usage.cpu_system_ns),
            syscalls: per_request(summary.record.run.usage.syscalls),
        })
    }

    /// Processor time without what went into waiting, in nanoseconds: what the next request would cost, too.
    pub(crate) fn cpu_working_ns(&self) -> f64 {
        (self.cpu_ns() - self.cpu_waiting_ns.unwrap_or(0.0)).max(0.0)
    }

    /// Processor time, user and system, in nanoseconds.
    pub(crate) fn cpu_ns(&self) -> f64 {
        self.cpu_user_ns + self.cpu_system_ns
    }
}

/// The worker that worked most of the window, or was kept from it.
pub(crate) fn busiest(workers: &[WorkerUsage]) -> Option<&WorkerUsage> {
    let taken_ns = |worker: &WorkerUsage| worker.busy_ns + worker.run_delay_ns.unwrap_or(0);
    let share = |worker: &WorkerUsage| taken_ns(worker) as f64 / worker.wall_ns as f64;
    let observed = workers.iter().filter(|worker| worker.wall_ns > 0);
    observed.max_by(|one, other| share(one).total_cmp(&share(other)))
}
