//! The plan of a master with its agents: connections and rates of each.
//!
//! How many threads an agent has is known once it is connected. Invariant: what a master and its agents send adds up to `--qps`, to the millionth, in proportion to their connections and `--lambda_mul`; with `--measure_qps` the master
//! sends that, and the agents the rest.

use super::invocation::{Invocation, pairs};
use crate::front_end::AgentCapacity;
use brunt_plan::choice::HostRole;
use brunt_plan::spec::{ClassSpec, PlanSpec};
use brunt_plan::units::{Count, Rate};

/// The rates of the agents and of the master; without one it is as fast as it goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Rates {
    agents: Option<Rate>,
    master: Option<Rate>,
}

impl Rates {
    /// Of `qps` in all; 0 is as fast as it goes. Weights are connections times `--lambda_mul`.
    fn of(qps: u64, measure_qps: Option<u64>, agents_weight: u64, master_weight: u64) -> Self {
        let rate = |micro_per_second: u64| (micro_per_second > 0).then_some(Rate { micro_per_second });
        let whole = Rate::per_second(qps).micro_per_second;
        let masters = match measure_qps {
            _ if master_weight == 0 => 0,
            Some(own) => Rate::per_second(own).micro_per_second,
            None => {
                let weights = u128::from(agents_weight) + u128::from(master_weight);
                (u128::from(whole) * u128::from(master_weight) / weights) as u64
            }
        };
        let agents = if qps > 0 { rate(whole.saturating_sub(masters)) } else { None };
        Self { agents, master: rate(masters) }
    }
}

/// Threads of all agents.
fn threads(agents: &[AgentCapacity]) -> u64 {
    agents.iter().map(|agent| u64::from(agent.threads)).sum()
}

impl Invocation {
    /// The agents, each with its port.
    pub fn agents(&self) -> Vec<(String, u16)> {
        let agents = self.line.agents.iter();
        agents.map(|(host, port)| (host.clone(), port.unwrap_or(self.line.agent_port))).collect()
    }

    /// Does the master send all of this rate, because `--measure_qps` is no lower? Then agents are not asked.
    pub fn is_masters_alone(&self, qps: u64) -> bool {
        let own = self.line.measure_qps.filter(|_| self.line.has_agents() && self.line.threads > 0);
        own.is_some_and(|own| qps > 0 && own >= qps)
    }

    /// Connections of an agent.
    fn connections_of(&self, agent: &AgentCapacity) -> u64 {
        let servers = self.servers.len() as u32;
        u64::from(self.line.connections) * u64::from(pairs(self.line.roundrobin, servers, agent.threads))
    }

    /// Connections of all agents.
    fn connections_of_all(&self, agents: &[AgentCapacity]) -> u64 {
        agents.iter().map(|agent| self.connections_of(agent)).sum()
    }

    /// Threads of all agents that are of use: each has a connection to every server.
    fn threads_of_use(&self, agents: &[AgentCapacity]) -> u64 {
        threads(agents).min(self.connections_of_all(agents) / self.servers.len() as u64)
    }

    /// What of these agents is otherwise than they were started.
    pub fn agents_warning(&self, agents: &[AgentCapacity]) -> Option<String> {
        let (threads, of_use) = (threads(agents), self.threads_of_use(agents));
        (of_use < threads).then(|| {
            format!(
                "--roundrobin: agents have {threads} threads, of which {of_use} are used: each has connections to every server"
            )
        })
    }

    /// The plan of a measurement at this rate with these agents, if any.
    pub fn leading(&self, qps: u64, agents: &[AgentCapacity]) -> PlanSpec {
        let line = &self.line;
        if !line.has_agents() {
            return self.measuring(qps);
        }
        let depth = Some(Count(u64::from(line.measure_depth.unwrap_or(line.depth))));
        if self.is_masters_alone(qps) {
            let mut spec = self.measuring(qps);
            spec.base.depth = depth;
            return spec;
        }
        let mut spec = self.measuring(0);
        let own_connections = spec.base.connections.take().map_or(0, |count| count.0);
        let own_weight = if line.threads > 0 { own_connections * u64::from(line.lambda_mul) } else { 0 };
        let weight = agents.iter().map(|agent| self.connections_of(agent) * u64::from(agent.weight)).sum();
        let rates = Rates::of(qps, line.measure_qps, weight, own_weight);
        let agents_connections = self.connections_of_all(agents);
        spec.run.agent = Some(self.agents().iter().map(|(host, port)| format!("{host}:{port}")).collect());
        spec.run.threads = Some(Count(self.threads_of_use(agents)));
        spec.run.samples_max =
            self.samples_max(rates.master.map_or(0, |rate| rate.micro_per_second.div_ceil(1_000_000)));
        spec.base.think = None;
        let mut agents = ClassSpec {
            name: Some("main".to_owned()),
            connections: Some(Count(agents_connections)),
            ..ClassSpec::default()
        };
        self.pace(&mut agents, rates.agents);
        spec.classes = vec![agents];
        if line.threads > 0 {
            let mut own = ClassSpec {
                name: Some("measure".to_owned()),
                connections: Some(Count(own_connections)),
                depth,
                runs_on: Some(HostRole::Controller),
                ..ClassSpec::default()
            };
            self.pace(&mut own, rates.master);
            spec.classes.push(own);
        }
        spec
    }
}

#[cfg(test)]
mod tests;
