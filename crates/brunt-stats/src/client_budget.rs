//! One budget of the client's time in the window: its own work, and what kept its workers from it.
//!
//! Sums over the workers of one host; of several hosts, that of the one of which the largest share was lost. Invariant: the parts
//! together are at most the time of these workers.

use crate::counts::share;
use crate::run_record::RunRecord;
use crate::usage::{StallCounts, WorkerUsage};
use crate::window::RunTimes;
use brunt_plan::plan::{Transport, Wait};
use brunt_plan::quantity::{percent, time};

/// Stolen time is counted in ticks of 10 ms: up to two of them may be one event, told coarsely.
const STOLEN_MIN_NS: u64 = 20_000_000;
/// So many looks for a server on a worker's processor say whether it is there.
const LOOKS_MIN: u64 = 20;
/// A server that may go anywhere meets a worker's processor by chance, on two processors every second time; in this share of
/// [`LOOKS_MIN`] looks it does so in 1 of 50 runs.
const SHARED_MIN: f64 = 0.75;
/// A worker that idles for half of its time delays requests by its own work for no longer than that work takes.
const IDLE_ENOUGH: f64 = 0.5;
/// A thread wants this much of a processor to be free.
const FREE_MIN: f64 = 0.5;

/// A part of the client's time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ClientPart {
    /// It worked.
    OwnWork,
    /// It was ready to run, and had no processor.
    Waiting(WaitedFor),
    /// It stood still though its processor was free.
    Stopped,
    /// It slept, and woke later than it was to.
    WokenLate,
}

/// Who had most of the processor time that workers waited for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum WaitedFor {
    /// Another process of this host.
    #[default]
    Neighbour,
    /// A server of the run.
    Server,
    /// Other workers: there are more of them than processors.
    Workers,
    /// No one: the quota of the client's control group was used up.
    Quota,
    /// Other guests of the hypervisor.
    Hypervisor,
}

/// What became of the time of the workers of one host.
#[derive(Clone, Debug, Default)]
pub struct ClientBudget {
    /// The agent whose host it is; `None` for this host.
    agent: Option<String>,
    /// The workers.
    workers: usize,
    /// Their time in the window, together; so are all times below.
    pub wall_ns: u64,
    /// Processor time, but for turns of the loop that only waited for something to do.
    own_work_ns: u64,
    /// Time without the processor that they were ready to run on.
    pub waiting_ns: u64,
    waited_for: WaitedFor,
    /// Time in which they stood still though their processors were free.
    pub stopped_ns: u64,
    /// What their sleeps ended later than they were to: sleeps by the time that a wake-up takes here, an upper bound.
    woken_late_ns: u64,
    /// The longest stop, and when it began in the window.
    longest_stop: Option<(u64, u64)>,
    /// What one wake-up takes.
    wake_up_ns: u64,
    /// A processor is left for another thread.
    has_free_processor: bool,
    is_open_loop: bool,
    sleeps_always: bool,
}

impl ClientBudget {
    /// The budget of the host that lost the largest share of its workers' time.
    pub(crate) fn of(record: &RunRecord, window: &RunTimes) -> Self {
        let agents = &record.agents;
        let is_agents = |worker: &WorkerUsage| agents.iter().any(|agent| agent.has_worker(worker.worker));
        let workers = || record.run.usage.workers.iter();
        let own = workers().filter(|worker| !is_agents(worker)).collect();
        let of_agents = agents.iter().map(|agent| {
            (Some(agent.name.clone()), workers().filter(|worker| agent.has_worker(worker.worker)).collect())
        });
        let server_cpu_ns = record.run.servers_in(window).and_then(|span| span.cpu_ns);
        let hosts = std::iter::once((None, own)).chain(of_agents);
        let budgets =
            hosts.filter(|(_, workers): &(_, Vec<_>)| !workers.is_empty()).map(|(agent, workers)| Self {
                agent,
                ..HostWorkers { record, workers, server_cpu_ns }.budget()
            });
        let lost = |budget: &Self| share(budget.weight(&budget.largest()), budget.wall_ns);
        budgets.max_by(|one, other| lost(one).total_cmp(&lost(other))).unwrap_or_default()
    }

    /// The part that made requests late more than the others, with its time.
    fn largest(&self) -> (ClientPart, u64) {
        // Of equal ones the last: without any loss it is its own work.
        let parts = [
            (ClientPart::WokenLate, self.woken_late_ns),
            (ClientPart::Stopped, self.stopped_ns),
            (ClientPart::Waiting(self.waited_for), self.waiting_ns),
            (ClientPart::OwnWork, self.own_work_ns),
        ];
        parts.into_iter().max_by_key(|part| self.weight(part)).expect("there are parts")
    }

    /// Of own work counts what goes beyond `IDLE_ENOUGH`, twice, so that a worker without idle time counts as working all the time.
    fn weight(&self, (part, ns): &(ClientPart, u64)) -> u64 {
        let idle_enough_ns = (self.wall_ns as f64 * IDLE_ENOUGH) as u64;
        if *part == ClientPart::OwnWork { 2 * ns.saturating_sub(idle_enough_ns) } else { *ns }
    }

    /// What the largest part is, with its number.
    pub fn sentence(&self) -> String {
        let subject = match (self.workers, &self.agent) {
            (1, None) => "the client's worker".to_owned(),
            (workers, None) => format!("the client's {workers} workers"),
            (1, Some(agent)) => format!("the worker of agent {agent}"),
            (workers, Some(agent)) => format!("the {workers} workers of agent {agent}"),
        };
        let (part, ns) = self.largest();
        let taken = percent(share(ns, self.wall_ns));
        let waited = |reason: &str| format!("waited for a processor for {taken} of the window, {reason}");
        let what = match part {
            ClientPart::OwnWork => format!("worked for {taken} of the window"),
            ClientPart::Waiting(WaitedFor::Server) => waited("which the server had"),
            ClientPart::Waiting(WaitedFor::Workers) => waited("which other workers had"),
            ClientPart::Waiting(WaitedFor::Quota) => waited("as the CPU quota was used up"),
            ClientPart::Waiting(WaitedFor::Hypervisor) => waited("which the hypervisor gave to others"),
            ClientPart::Waiting(WaitedFor::Neighbour) => waited("which another process had"),
            ClientPart::Stopped => {
                let were = if self.workers == 1 { "was" } else { "were" };
                let longest = self.longest_stop.map_or(String::new(), |(longest_ns, at_ns)| {
                    format!(", longest for {} at +{}", time(longest_ns), time(at_ns))
                });
                format!("{were} stopped for {taken} of the window{longest}")
            }
            ClientPart::WokenLate => {
                let each = time(self.wake_up_ns);
                format!("woke late from sleep, for {taken} of the window ({each} each time)")
            }
        };
        format!("{subject} {what}")
    }

    /// What helps against the largest part.
    pub fn fix(&self) -> &'static str {
        let is_free = self.has_free_processor;
        match self.largest().0 {
            ClientPart::OwnWork if is_free => "use more --threads (processors are free), or offer less",
            ClientPart::OwnWork => {
                "offer less (--rate, --connections, --depth), or use a larger or a second client host"
            }
            ClientPart::Waiting(WaitedFor::Workers) => "use no more --threads than there are processors",
            ClientPart::Waiting(WaitedFor::Quota) => {
                "give the client's control group a larger CPU quota, or offer less"
            }
            ClientPart::Waiting(WaitedFor::Hypervisor) => {
                "use a host of its own: nothing in this guest helps"
            }
            ClientPart::Waiting(WaitedFor::Server) if is_free => {
                "put them on different processors: --cpus for the client, taskset (brunt serve: --cpus) for the server"
            }
            ClientPart::Waiting(WaitedFor::Server) => {
                "use a client host of its own: no processor is free here for both"
            }
            ClientPart::Waiting(WaitedFor::Neighbour) if is_free => {
                "stop what else runs on these processors, or pin the workers to free ones (--cpus)"
            }
            ClientPart::Waiting(WaitedFor::Neighbour) => {
                "stop what else runs on this host: no processor is free"
            }
            ClientPart::Stopped => "find what stopped it (a signal, a debugger, swapping), and measure again",
            ClientPart::WokenLate if is_free && self.is_open_loop => {
                "a worker that does not sleep need not be woken: --wait spin"
            }
            ClientPart::WokenLate if is_free && self.sleeps_always => {
                "let workers poll where replies are expected: --wait hybrid"
            }
            ClientPart::WokenLate => {
                "use a client host with a processor free beside those of the workers, so that they need not sleep"
            }
        }
    }
}

/// The workers of one host of a run.
struct HostWorkers<'a> {
    record: &'a RunRecord,
    workers: Vec<&'a WorkerUsage>,
    /// Processor time of the servers in the window; `None` where they do not tell it.
    server_cpu_ns: Option<u64>,
}

impl HostWorkers<'_> {
    fn budget(&self) -> ClientBudget {
        let RunRecord { plan, run, .. } = self.record;
        let wall_ns = self.sum(|worker| worker.wall_ns);
        let own_work_ns = self.sum(|worker| worker.busy_ns).min(wall_ns);
        let mut left_ns = wall_ns - own_work_ns;
        let mut take = |part_ns: u64| {
            let part_ns = part_ns.min(left_ns);
            left_ns -= part_ns;
            part_ns
        };
        let denied_ns = take(self.sum(|worker| self.denied_ns(worker)));
        let stolen_ns = take(self.stolen_ns());
        let waiting_ns = denied_ns + stolen_ns;
        let longest =
            self.workers.iter().map(|worker| &worker.stalls).max_by_key(|stalls| stalls.longest_stop_ns());
        let longest_ns = longest.map_or(0, StallCounts::longest_stop_ns).saturating_sub(stolen_ns);
        let stalled_ns = self.sum(|worker| worker.stalls.total_ns);
        let stopped_ns = take(stalled_ns.saturating_sub(waiting_ns).max(longest_ns));
        let wake_up_ns = run.wake_up_ns(plan.has_open_loop());
        let woken_late_ns = take(wake_up_ns.saturating_mul(self.sum(|worker| worker.voluntary_switches)));
        ClientBudget {
            agent: None,
            workers: self.workers.len(),
            wall_ns,
            own_work_ns,
            waiting_ns,
            waited_for: self.waited_for(denied_ns, stolen_ns),
            stopped_ns,
            woken_late_ns,
            longest_stop: longest
                .filter(|_| longest_ns > 0)
                .and_then(|stalls| Some((stalls.longest_stop_ns(), stalls.longest_at_ns?))),
            wake_up_ns,
            has_free_processor: self.has_free_processor(),
            is_open_loop: plan.has_open_loop(),
            sleeps_always: run.usage.wait == Wait::Sleep.name(),
        }
    }

    fn sum(&self, of: impl Fn(&WorkerUsage) -> u64) -> u64 {
        self.workers.iter().map(|worker| of(worker)).sum()
    }

    /// How long a worker was ready to run and did not. Where the kernel keeps no account of it, what the control group's quota took
    /// from all of us is the most that is known.
    fn denied_ns(&self, worker: &WorkerUsage) -> u64 {
        let throttled_ns = self.record.run.host.throttled_ns.unwrap_or(0).min(worker.wall_ns);
        worker.run_delay_ns.unwrap_or(throttled_ns)
    }

    /// What the hypervisor took from these workers: of all that it took, their part of the time of all that ran.
    fn stolen_ns(&self) -> u64 {
        let host = &self.record.run.host;
        let stolen_ns = host.stolen_ns.filter(|ns| *ns > STOLEN_MIN_NS).unwrap_or(0);
        let (ours_ns, busy_ns) = (self.sum(|worker| worker.cpu_ns), host.busy_ns.unwrap_or(0));
        (stolen_ns as f64 * share(ours_ns, busy_ns.max(ours_ns))) as u64
    }

    fn waited_for(&self, denied_ns: u64, stolen_ns: u64) -> WaitedFor {
        let quota_ns = self.record.run.host.throttled_ns.unwrap_or(0).min(denied_ns);
        let taken_ns = denied_ns - quota_ns;
        if stolen_ns > taken_ns.max(quota_ns) {
            WaitedFor::Hypervisor
        } else if quota_ns > taken_ns {
            WaitedFor::Quota
        } else {
            self.who_ran()
        }
    }

    /// Who used most of these processors beside a worker. What they used is counted, but for a server that does not tell what it
    /// used, and for one host of several: there looks at the processor that the server sends from decide.
    fn who_ran(&self) -> WaitedFor {
        let (count, cpus) = (self.workers.len() as u64, self.record.run.host.cpus);
        let usage = &self.record.run.usage;
        let is_here = self.is_server_here();
        let by_looks = if self.is_server_beside() { WaitedFor::Server } else { WaitedFor::Neighbour };
        // What a host says is of its workers where the run has no other.
        if !self.record.agents.is_empty() {
            return by_looks;
        }
        let ours_ns = usage.cpu_user_ns + usage.cpu_system_ns;
        let beside_ns = self.record.run.host.busy_ns.map(|busy_ns| busy_ns.saturating_sub(ours_ns));
        let server_ns = if is_here { self.server_cpu_ns } else { Some(0) };
        let workers_ns =
            if count > cpus { self.sum(|worker| worker.cpu_ns) * (count - 1) / count } else { 0 };
        let (server_ns, others_ns) = match (beside_ns, server_ns) {
            (Some(beside_ns), Some(server_ns)) => (server_ns, beside_ns.saturating_sub(server_ns)),
            (Some(beside_ns), None) if by_looks == WaitedFor::Server => (beside_ns, 0),
            (beside_ns, None) => (0, beside_ns.unwrap_or(0)),
            (None, Some(server_ns)) => (server_ns, 0),
        };
        if workers_ns > server_ns.max(others_ns) {
            WaitedFor::Workers
        } else if server_ns > others_ns {
            WaitedFor::Server
        } else {
            WaitedFor::Neighbour
        }
    }

    /// May a server of this host run on the workers' processors? One that was often looked for there and never found does not.
    fn is_server_here(&self) -> bool {
        let looks = self.sum(|worker| worker.colocation.looks);
        let is_elsewhere = looks >= LOOKS_MIN && self.sum(|worker| worker.colocation.shared) == 0;
        self.record.plan.servers.iter().all(|server| server.transport == Transport::Unix)
            || self.record.run.host.listen_drops.is_some() && !is_elsewhere
    }

    /// Was a server on a worker's processor more often than by chance?
    fn is_server_beside(&self) -> bool {
        let looked = self.workers.iter().map(|worker| worker.colocation);
        looked.filter(|of| of.looks >= LOOKS_MIN).any(|of| share(of.shared, of.looks) >= SHARED_MIN)
    }

    /// Is a processor left for another thread?
    fn has_free_processor(&self) -> bool {
        let (host, count) = (&self.record.run.host, self.workers.len() as u64);
        let idle = host.busy_ns.filter(|_| host.wall_ns > 0).map(|busy_ns| {
            host.cpus as f64 - (busy_ns + host.stolen_ns.unwrap_or(0)) as f64 / host.wall_ns as f64
        });
        let taken = count + u64::from(self.is_server_here());
        host.cpus > count && idle.map_or(host.cpus > taken, |idle| idle >= FREE_MIN)
    }
}

#[cfg(test)]
mod tests;
