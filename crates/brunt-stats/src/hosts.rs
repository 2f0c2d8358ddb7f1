//! The hosts of a run side by side: which check finds something on which, and which is the worst.
//!
//! Not a judgement of the run: its checks ([`crate::status`]) take all hosts together. Invariant: hosts are compared by what each of them
//! has alone.

use crate::agent_requests::AgentRequests;
use crate::backlog::{Backlog, BacklogLevel};
use crate::check::CheckId;
use crate::counts::share;
use crate::run_record::RunRecord;
use crate::summary::Summary;
use crate::usage::{AgentRecord, BUSY, WorkerUsage};
use std::cmp::Reverse;

/// Failed requests of a host, as a share, that may lie above its p99.
const FAILED_MAX: f64 = 0.01;

/// A host among the others.
#[derive(Clone, Debug, PartialEq)]
pub struct HostRow<'a> {
    /// What is known of it.
    pub agent: &'a AgentRecord,
    /// What its requests came to.
    pub requests: AgentRequests,
    /// The share of the window in which its busiest worker worked or waited for a processor; `None` where no worker told.
    pub busy: Option<f64>,
    /// The checks that find something on this host, the gravest first.
    pub checks: Vec<CheckId>,
}

impl Summary {
    /// The hosts of a run that has several, the worst first: by their checks, and then by their p99.
    pub fn hosts(&self) -> Vec<HostRow<'_>> {
        let RunRecord { agents, run, .. } = &self.record;
        if agents.len() < 2 {
            return Vec::new();
        }
        let backlogs = Backlog::of_agents(agents, &run.usage.workers, &self.window);
        let mut rows: Vec<HostRow<'_>> =
            agents.iter().zip(&backlogs).map(|(agent, backlog)| self.host(agent, backlog)).collect();
        let gravest = |row: &HostRow<'_>| row.checks.first().map_or(usize::MAX, |check| *check as usize);
        rows.sort_by_key(|row| (gravest(row), Reverse(row.checks.len()), Reverse(row.requests.p99_ns)));
        rows
    }

    fn host<'a>(&self, agent: &'a AgentRecord, backlog: &Backlog) -> HostRow<'a> {
        let requests = agent.requests.unwrap_or_default();
        let usage = self.record.run.usage.workers.iter();
        let workers: Vec<&WorkerUsage> = usage.filter(|usage| agent.has_worker(usage.worker)).collect();
        let p99_ns = self.total.latency.response.summary.p99_ns();
        let has_stopped =
            |worker: &&WorkerUsage| p99_ns.is_some_and(|ns| worker.stalls.longest_stop_ns() > ns);
        let is_slow = workers.iter().any(|worker| worker.busy_share() >= BUSY || has_stopped(worker));
        let is_failing = share(requests.failed, requests.completed + requests.failed) > FAILED_MAX;
        let found = [
            (CheckId::Broken, agent.lost.is_some()),
            (CheckId::Load, backlog.level > BacklogLevel::Ok),
            (CheckId::Client, is_slow),
            (CheckId::Data, is_failing),
        ];
        let checks = found.into_iter().filter_map(|(check, is_found)| is_found.then_some(check)).collect();
        let busy = workers.iter().map(|worker| worker.busy_share()).reduce(f64::max);
        HostRow { agent, requests, busy, checks }
    }
}
