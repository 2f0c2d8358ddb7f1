//! One budget of the client's time in the window: its own work, and what kept its workers from it.
//!
//! Sums over the workers of one host; of several hosts, that of the one of which the largest share was lost. Invariant: the parts
//! together are at most the time of these workers.

use crate::counts::share;
use crate::run_record::{RunData, RunRecord};
use crate::server_stats::ServerSpan;
use crate::usage::{AgentRecord, StallCounts, WorkerUsage};
use crate::window::MeasuredWindow;
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

brunt_plan::named! {
    /// A part of the client's time.
    pub enum ClientPart {
        /// It worked.
        OwnWork = "own_work",
        /// It was ready to run, and had no processor.
        Waiting = "waiting",
        /// It stood still though nobody had its processor.
        Stopped = "stopped",
        /// It slept, and woke later than it was to.
        WokenLate = "woken_late",
    }
}

brunt_plan::named! {
    /// Who had the processor that a worker waited for.
    pub enum WaitedFor {
        /// Another process of this host.
        Neighbour = "neighbour",
        /// A server of the run.
        Server = "server",
        /// Other workers: there are more of them than processors.
        Workers = "workers",
        /// Nobody: the quota of the client's control group was used up.
        Quota = "quota",
        /// Other guests of the hypervisor.
        Hypervisor = "hypervisor",
    }
}

/// What a run does not tell of itself.
#[derive(Clone, Copy, Debug, Default)]
pub struct BesideClient {
    /// The plan has an open loop.
    pub is_open_loop: bool,
    /// Processor time of the servers in the window; `None` where they do not tell it.
    pub server_cpu_ns: Option<u64>,
    /// The servers are reached by Unix sockets, and so are on this host.
    pub is_by_unix_socket: bool,
}

/// What became of the time of the workers of one host.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ClientBudget {
    /// The agent whose host it is; `None` for this host.
    pub agent: Option<String>,
    /// The workers.
    pub workers: usize,
    /// Their time in the window, together; so are all times below.
    pub wall_ns: u64,
    /// Processor time, but for turns of the loop that only waited for something to do.
    pub own_work_ns: u64,
    /// Time without the processor that they were ready to run on.
    pub waiting_ns: u64,
    /// Who had most of it; `None` where none was lost.
    pub waited_for: Option<WaitedFor>,
    /// Time in which they stood still, and nobody had their processors.
    pub stopped_ns: u64,
    /// The longest of these times, and when it began in the window.
    pub longest_stop: Option<(u64, u64)>,
    /// What their sleeps ended later than they were to: sleeps by the time that a wake-up takes here, an upper bound.
    pub woken_late_ns: u64,
    /// That time of one wake-up.
    pub wake_up_ns: u64,
    /// A processor is left for another thread.
    pub has_free_processor: bool,
    is_open_loop: bool,
    sleeps_always: bool,
}

impl ClientBudget {
    /// That of a run.
    pub(crate) fn of_record(record: &RunRecord, window: &MeasuredWindow) -> Self {
        let RunRecord { plan, run, agents, .. } = record;
        let servers = run.server_records.iter().map(|server| server.span_of_window(window));
        let beside = BesideClient {
            is_open_loop: plan.has_open_loop(),
            server_cpu_ns: ServerSpan::sum(servers).and_then(|span| span.cpu_ns),
            is_by_unix_socket: plan.servers().iter().all(|server| server.transport == Transport::Unix),
        };
        Self::of(run, agents, &beside)
    }

    /// The budget of the host that lost the largest share of its workers' time.
    pub fn of(run: &RunData, agents: &[AgentRecord], beside: &BesideClient) -> Self {
        let of_agent = |agent: &AgentRecord| {
            let numbers = agent.first_worker..agent.first_worker.saturating_add(agent.workers);
            (Some(agent.name.clone()), numbers)
        };
        let is_agents =
            |worker: &WorkerUsage| agents.iter().any(|agent| of_agent(agent).1.contains(&worker.worker));
        let own = run.usage.workers.iter().filter(|worker| !is_agents(worker));
        let of_agents = agents.iter().map(of_agent).map(|(name, numbers)| {
            let workers = run.usage.workers.iter().filter(|worker| numbers.contains(&worker.worker));
            (name, workers.collect::<Vec<_>>())
        });
        let hosts = std::iter::once((None, own.collect())).chain(of_agents);
        let budgets = hosts.filter(|(_, workers)| !workers.is_empty()).map(|(agent, workers)| {
            let host = HostWorkers { run, workers, beside, is_alone: agents.is_empty() };
            Self { agent, ..host.budget() }
        });
        let lost = |budget: &Self| share(budget.weight(budget.largest()), budget.wall_ns);
        budgets.max_by(|one, other| lost(one).total_cmp(&lost(other))).unwrap_or_default()
    }

    /// How long a part lasted.
    pub fn part_ns(&self, part: ClientPart) -> u64 {
        match part {
            ClientPart::OwnWork => self.own_work_ns,
            ClientPart::Waiting => self.waiting_ns,
            ClientPart::Stopped => self.stopped_ns,
            ClientPart::WokenLate => self.woken_late_ns,
        }
    }

    /// The part that made requests late more than the others; of own work counts what goes beyond `IDLE_ENOUGH`, twice, so that
    /// a worker without idle time counts as working all the time.
    pub fn largest(&self) -> ClientPart {
        // Of equal ones the last: without any loss it is its own work.
        let parts = [ClientPart::WokenLate, ClientPart::Stopped, ClientPart::Waiting, ClientPart::OwnWork];
        parts.into_iter().max_by_key(|part| self.weight(*part)).expect("there are parts")
    }

    fn weight(&self, part: ClientPart) -> u64 {
        let idle_enough_ns = (self.wall_ns as f64 * IDLE_ENOUGH) as u64;
        match part {
            ClientPart::OwnWork => 2 * self.own_work_ns.saturating_sub(idle_enough_ns),
            part => self.part_ns(part),
        }
    }

    /// What the largest part is, with its number.
    pub fn sentence(&self) -> String {
        let subject = match (self.workers, &self.agent) {
            (1, None) => "the client's worker".to_owned(),
            (workers, None) => format!("the client's {workers} workers"),
            (1, Some(agent)) => format!("the worker of agent {agent}"),
            (workers, Some(agent)) => format!("the {workers} workers of agent {agent}"),
        };
        let part = self.largest();
        let taken = percent(share(self.part_ns(part), self.wall_ns));
        let were = if self.workers == 1 { "was" } else { "were" };
        match (part, self.waited_for) {
            (ClientPart::OwnWork, _) => format!("{subject} worked for {taken} of the window"),
            (ClientPart::Waiting, waited_for) => {
                let reason = match waited_for {
                    Some(WaitedFor::Server) => "which the server had",
                    Some(WaitedFor::Workers) => "which other workers had",
                    Some(WaitedFor::Quota) => "as the CPU quota was used up",
                    Some(WaitedFor::Hypervisor) => "which the hypervisor gave to others",
                    Some(WaitedFor::Neighbour) | None => "which another process had",
                };
                format!("{subject} waited for a processor for {taken} of the window, {reason}")
            }
            (ClientPart::Stopped, _) => {
                let mut sentence = format!("{subject} {were} stopped for {taken} of the window");
                if let Some((longest_ns, at_ns)) = self.longest_stop {
                    sentence += &format!(", longest for {} at +{}", time(longest_ns), time(at_ns));
                }
                sentence
            }
            (ClientPart::WokenLate, _) => {
                let each = time(self.wake_up_ns);
                format!("{subject} woke late from sleep, for {taken} of the window ({each} each time)")
            }
        }
    }

    /// What helps against the largest part.
    pub fn fix(&self) -> &'static str {
        let is_free = self.has_free_processor;
        match (self.largest(), self.waited_for) {
            (ClientPart::OwnWork, _) if is_free => "use more --threads (processors are free), or offer less",
            (ClientPart::OwnWork, _) => {
                "offer less (--rate, --connections, --depth), or use a larger or a second client host"
            }
            (ClientPart::Waiting, Some(WaitedFor::Workers)) => {
                "use no more --threads than there are processors"
            }
            (ClientPart::Waiting, Some(WaitedFor::Quota)) => {
                "give the client's control group a larger CPU quota, or offer less"
            }
            (ClientPart::Waiting, Some(WaitedFor::Hypervisor)) => {
                "use a host of its own: nothing in this guest helps"
            }
            (ClientPart::Waiting, Some(WaitedFor::Server)) if is_free => {
                "put them on different processors: --cpus for the client, taskset (brunt serve: --cpus) for the server"
            }
            (ClientPart::Waiting, Some(WaitedFor::Server)) => {
                "use a client host of its own: no processor is free here for both"
            }
            (ClientPart::Waiting, _) if is_free => {
                "stop what else runs on these processors, or pin the workers to free ones (--cpus)"
            }
            (ClientPart::Waiting, _) => "stop what else runs on this host: no processor is free",
            (ClientPart::Stopped, _) => {
                "find what stopped it (a signal, a debugger, swapping), and measure again"
            }
            (ClientPart::WokenLate, _) if is_free && self.is_open_loop => {
                "a worker that does not sleep need not be woken: --wait spin"
            }
            (ClientPart::WokenLate, _) if is_free && self.sleeps_always => {
                "let workers poll where replies are expected: --wait hybrid"
            }
            (ClientPart::WokenLate, _) => {
                "use a client host with a processor free beside those of the workers (--wait spin or hybrid)"
            }
        }
    }

    /// Its parts in a line.
    pub fn detail(&self) -> String {
        let of = |part| percent(share(self.part_ns(part), self.wall_ns));
        let by = self.waited_for.map_or(String::new(), |by| format!(" ({})", by.name()));
        format!(
            "of the workers' time: own work {}, waiting for a processor {}{by}, stopped {}, woken late {} at most",
            of(ClientPart::OwnWork),
            of(ClientPart::Waiting),
            of(ClientPart::Stopped),
            of(ClientPart::WokenLate),
        )
    }
}

/// The workers of one host of a run.
struct HostWorkers<'a> {
    run: &'a RunData,
    workers: Vec<&'a WorkerUsage>,
    beside: &'a BesideClient,
    /// The run has no other host, so that what its host says is of these workers.
    is_alone: bool,
}

impl HostWorkers<'_> {
    fn budget(&self) -> ClientBudget {
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
        let wake_up_ns = self.run.wake_up_ns(self.beside.is_open_loop);
        let woken_late_ns = take(wake_up_ns.saturating_mul(self.sum(|worker| worker.voluntary_switches)));
        ClientBudget {
            agent: None,
            workers: self.workers.len(),
            wall_ns,
            own_work_ns,
            waiting_ns,
            waited_for: (waiting_ns > 0).then(|| self.waited_for(denied_ns, stolen_ns)),
            stopped_ns,
            longest_stop: longest
                .filter(|_| longest_ns > 0)
                .map(|stalls| (stalls.longest_stop_ns(), stalls.longest_at_ns)),
            woken_late_ns,
            wake_up_ns,
            has_free_processor: self.has_free_processor(),
            is_open_loop: self.beside.is_open_loop,
            sleeps_always: self.run.usage.wait == Wait::Sleep.name(),
        }
    }

    fn sum(&self, of: impl Fn(&WorkerUsage) -> u64) -> u64 {
        self.workers.iter().map(|worker| of(worker)).sum()
    }

    /// How long a worker was ready to run and did not. Where the kernel keeps no account of it, what the control group's quota took
    /// from all of us is the most that is known.
    fn denied_ns(&self, worker: &WorkerUsage) -> u64 {
        let throttled_ns = self.run.host.throttled_ns.unwrap_or(0).min(worker.wall_ns);
        worker.run_delay_ns.unwrap_or(throttled_ns)
    }

    /// What the hypervisor took from these workers: of what it took from whoever ran, their part of all that ran.
    fn stolen_ns(&self) -> u64 {
        let host = &self.run.host;
        let stolen_ns = host.stolen_ns.filter(|ns| *ns > STOLEN_MIN_NS).unwrap_or(0);
        let (ours_ns, busy_ns) = (self.sum(|worker| worker.cpu_ns), host.busy_ns.unwrap_or(0));
        (stolen_ns as f64 * share(ours_ns, busy_ns.max(ours_ns))) as u64
    }

    fn waited_for(&self, denied_ns: u64, stolen_ns: u64) -> WaitedFor {
        let quota_ns = self.run.host.throttled_ns.unwrap_or(0).min(denied_ns);
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
        let (count, cpus) = (self.workers.len() as u64, self.run.host.cpus);
        let usage = &self.run.usage;
        let is_here = self.is_server_here();
        let by_looks = if self.is_server_beside() { WaitedFor::Server } else { WaitedFor::Neighbour };
        if !self.is_alone {
            return by_looks;
        }
        let ours_ns = usage.cpu_user_ns + usage.cpu_system_ns;
        let beside_ns = self.run.host.busy_ns.map(|busy_ns| busy_ns.saturating_sub(ours_ns));
        let server_ns = if is_here { self.beside.server_cpu_ns } else { Some(0) };
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

    fn looks(&self) -> (u64, u64) {
        (self.sum(|worker| worker.colocation.looks), self.sum(|worker| worker.colocation.shared))
    }

    /// May a server of this host run on the workers' processors? One that was often looked for there and never found does not.
    fn is_server_here(&self) -> bool {
        let is_elsewhere = matches!(self.looks(), (LOOKS_MIN.., 0));
        self.beside.is_by_unix_socket || self.run.host.listen_drops.is_some() && !is_elsewhere
    }

    /// Was a server on a worker's processor more often than by chance?
    fn is_server_beside(&self) -> bool {
        let looked = self.workers.iter().map(|worker| worker.colocation);
        looked.filter(|of| of.looks >= LOOKS_MIN).any(|of| share(of.shared, of.looks) >= SHARED_MIN)
    }

    /// Is a processor left for another thread?
    fn has_free_processor(&self) -> bool {
        let (host, count) = (&self.run.host, self.workers.len() as u64);
        let idle = host.busy_ns.filter(|_| host.wall_ns > 0).map(|busy_ns| {
            host.cpus as f64 - (busy_ns + host.stolen_ns.unwrap_or(0)) as f64 / host.wall_ns as f64
        });
        let taken = count + u64::from(self.is_server_here());
        host.cpus > count && idle.map_or(host.cpus > taken, |idle| idle >= FREE_MIN)
    }
}

#[cfg(test)]
mod tests;
