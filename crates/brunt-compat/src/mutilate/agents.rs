//! Several hosts: what a master has its agents do beside it, and what an agent is by itself.
//!
//! Not how they talk, nor who they are: how many threads an agent has it says when it is met. Invariant: what a master and its agents
//! send adds up to `--qps`, to the millionth, in proportion to their connections and `--lambda_mul`; with `--measure_qps` the master
//! sends that, and the agents the rest.

use super::command_line::{CommandLine, InvalidOption, Numbers, stray_warning};
use super::invocation::Invocation;
use crate::hosts::{AgentCapacity, AgentMode, TrustPaths};
use crate::options::ParsedOptions;
use brunt_plan::host_role::HostRole;
use brunt_plan::resolve::fleet::split;
use brunt_plan::spec::{ClassSpec, PlanSpec};
use brunt_plan::units::{Count, Rate};
use std::net::{IpAddr, Ipv6Addr};

/// Where agents listen.
const PORT: u16 = 5556;
/// What an agent takes from its own command line. Everything else is the master's.
const OF_AGENTS: [&str; 11] = [
    "agentmode",
    "agent_port",
    "lambda_mul",
    "threads",
    "affinity",
    "blocking",
    "quiet",
    "token-file",
    "agent-ca",
    "agent-cert",
    "agent-key",
];

impl TrustPaths {
    fn of(parsed: &ParsedOptions) -> Self {
        let path = |long: &str| parsed.value(long).map(str::to_owned);
        Self {
            token_file: path("token-file"),
            agent_ca: path("agent-ca"),
            agent_cert: path("agent-cert"),
            agent_key: path("agent-key"),
        }
    }
}

impl AgentMode {
    pub(super) fn of(parsed: &ParsedOptions, numbers: &Numbers) -> Result<Self, InvalidOption> {
        let mut warnings = Vec::new();
        for given in &parsed.given {
            let why =
                if given.long == "verbose" { "it says all it has to say" } else { "the master decides" };
            let warning = format!("--{}: without effect on an agent; {why}", given.long);
            if !OF_AGENTS.contains(&given.long) && !warnings.contains(&warning) {
                warnings.push(warning);
            }
        }
        warnings.extend(parsed.strays.iter().map(|stray| stray_warning(stray)));
        Ok(Self {
            port: port(parsed, 0)?,
            threads: numbers.count("threads", 1) as u32,
            lambda_mul: numbers.count("lambda_mul", 1) as u32,
            affinity: parsed.has("affinity"),
            blocking: parsed.has("blocking"),
            quiet: parsed.has("quiet"),
            trust: TrustPaths::of(parsed),
            warnings,
        })
    }
}

/// `--agent_port`, from `least` on.
fn port(parsed: &ParsedOptions, least: u16) -> Result<u16, InvalidOption> {
    let Some(text) = parsed.value("agent_port") else { return Ok(PORT) };
    text.parse().ok().filter(|port| *port >= least).ok_or_else(|| {
        InvalidOption::of(format!(
            "--agent_port: '{text}' was given; accepted: a port of TCP, from {least} to 65535"
        ))
    })
}

/// What a master leads, and how it takes part itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MasterOptions {
    /// The agents, each with its port.
    pub agents: Vec<(String, u16)>,
    /// How much a thread of the master weighs.
    pub lambda_mul: u32,
    /// `--measure_connections`.
    pub measure_connections: Option<u32>,
    /// `--measure_qps`; 0 is as fast as it goes.
    pub measure_qps: Option<u64>,
    /// `--measure_depth`.
    pub measure_depth: Option<u32>,
    /// Latencies of agents stand in the rows, too.
    pub sampling: bool,
    /// Whom it trusts.
    pub trust: TrustPaths,
}

impl MasterOptions {
    /// The agents of a command line, if it has any.
    pub(super) fn of(parsed: &ParsedOptions, numbers: &Numbers) -> Result<Option<Self>, InvalidOption> {
        let names = parsed.list("agent");
        if names.is_empty() {
            return Ok(None);
        }
        let port = port(parsed, 1)?;
        let agents = names.iter().map(|name| agent(name, port)).collect::<Result<_, _>>()?;
        Ok(Some(Self {
            agents,
            lambda_mul: numbers.count("lambda_mul", 1) as u32,
            measure_connections: numbers.get("measure_connections").map(|count| count as u32),
            measure_qps: numbers.get("measure_qps").map(|_| numbers.count("measure_qps", 0)),
            measure_depth: numbers.get("measure_depth").map(|count| count as u32),
            sampling: parsed.has("agent-sampling"),
            trust: TrustPaths::of(parsed),
        }))
    }

    /// Refuses what agents cannot do.
    pub(super) fn check(&self, line: &CommandLine) -> Result<(), InvalidOption> {
        let is_single = line.scan.is_none() && line.search.is_none();
        if let Some(own) =
            self.measure_qps.filter(|own| *own > 0 && line.qps > 0 && *own >= line.qps && is_single)
        {
            return Err(InvalidOption::of(format!(
                "--measure_qps: {own} was given; accepted: less than --qps {}, for the rest is the agents'",
                line.qps
            )));
        }
        if line.queries > 0 {
            return Err(InvalidOption::of(
                "--queries: given with --agent; accepted: --time, which ends all of them at once",
            ));
        }
        if line.search.is_some() && line.threads == 0 && !self.sampling {
            return Err(InvalidOption::of(
                "--search: judges reads of the master, and with --threads 0 it has none; accepted: --agent-sampling, or threads",
            ));
        }
        Ok(())
    }

    /// What of this has no effect, or another than it seems.
    pub(super) fn warnings(&self, line: &CommandLine) -> Vec<String> {
        let own = self.measure_qps.unwrap_or(0);
        let steps = line.scan.filter(|_| line.search.is_none());
        let has_low_step = steps.is_some_and(|range| {
            // A step of 0 is as fast as it goes.
            let slowest = if range.min == 0 { range.step } else { range.min };
            slowest <= range.max.min(own)
        });
        let is_measuring =
            [self.measure_qps.is_some(), self.measure_connections.is_some(), self.measure_depth.is_some()];
        let far = self.agents.iter().find(|(host, _)| !is_this_host(host));
        // An IPv6 address without brackets is a host by itself.
        let host_of = |server: &String| split(server).map_or(server.clone(), |(host, _)| host.to_owned());
        let near = line.servers.iter().find(|server| is_this_host(&host_of(server)));
        let mut warnings = Vec::new();
        if let (Some((agent, _)), Some(server)) = (far, near.filter(|_| !line.unix_socket && !line.loadonly))
        {
            let stored = match line.noload {
                true => "",
                false => {
                    ", whose server then holds only its share of the keys; load each host with --loadonly, and give --noload here"
                }
            };
            warnings.push(format!(
                "--server: agent {agent} looks '{server}' up itself, and finds its own host{stored}"
            ));
        }
        if has_low_step && line.threads > 0 {
            warnings.push(format!(
                "--scan: rates up to --measure_qps {own} are the master's alone; agents pause there"
            ));
        }
        if line.threads == 0 && is_measuring.contains(&true) {
            warnings.push("--measure_connections, --measure_qps, --measure_depth: without effect; with --threads 0 the master measures \
                 nothing".to_owned());
        }
        if line.threads == 0 && !self.sampling && !line.loadonly {
            warnings.push(
                "--threads: with 0 no row has a latency; --agent-sampling shows those of agents".to_owned(),
            );
        }
        let raw = [(line.save.is_some(), "--save"), (line.misswindow > 0, "--misswindow")];
        for (_, long) in raw.iter().filter(|(is_given, _)| *is_given && line.threads == 0) {
            warnings.push(format!(
                "{long}: without effect; single requests are the master's, and with --threads 0 it sends none"
            ));
        }
        if self.sampling && line.successful {
            warnings.push("--agent-sampling: without effect; --successful shows single requests, and those of agents stay with \
                 them".to_owned());
        }
        if line.loadonly {
            warnings.push("--agent: without effect; with --loadonly the master stores everything".to_owned());
        }
        warnings
    }
}

/// A host, or as ours alone take it a host with its port.
fn agent(name: &str, port: u16) -> Result<(String, u16), InvalidOption> {
    if name.parse::<Ipv6Addr>().is_ok() {
        return Ok((format!("[{name}]"), port));
    }
    let (_, own) = split(name).ok_or_else(|| {
        InvalidOption::of(format!(
            "--agent: '{name}' was given; accepted: HOST or HOST:PORT, or several behind commas"
        ))
    })?;
    let host = if own.is_some() { name.rsplit_once(':').map_or(name, |(host, _)| host) } else { name };
    Ok((host.to_owned(), own.unwrap_or(port)))
}

fn is_this_host(name: &str) -> bool {
    let address = name.trim_matches(['[', ']']).parse::<IpAddr>();
    name == "localhost" || address.is_ok_and(|address| address.is_loopback())
}

/// Pairs of a thread and a server that have connections, in one process.
pub(super) fn pairs(roundrobin: bool, servers: u32, threads: u32) -> u32 {
    match roundrobin && threads > 1 {
        true => servers.max(threads),
        false => servers.saturating_mul(threads),
    }
}

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
fn threads(crews: &[AgentCapacity]) -> u64 {
    crews.iter().map(|crew| u64::from(crew.threads)).sum()
}

impl Invocation {
    /// Does the master send all of this rate, because `--measure_qps` is no lower? Then agents are not asked.
    pub fn is_masters_alone(&self, qps: u64) -> bool {
        let own = self.led.as_ref().filter(|_| self.threads > 0).and_then(|led| led.measure_qps);
        own.is_some_and(|own| qps > 0 && own >= qps)
    }

    /// Connections of an agent.
    fn connections_of(&self, crew: &AgentCapacity) -> u64 {
        let servers = self.servers.len() as u32;
        u64::from(self.connections) * u64::from(pairs(self.roundrobin, servers, crew.threads))
    }

    /// Connections of all agents.
    fn connections_of_all(&self, crews: &[AgentCapacity]) -> u64 {
        crews.iter().map(|crew| self.connections_of(crew)).sum()
    }

    /// Threads of all agents that are of use: each has a connection to every server.
    fn threads_of_use(&self, crews: &[AgentCapacity]) -> u64 {
        threads(crews).min(self.connections_of_all(crews) / self.servers.len() as u64)
    }

    /// What of these agents is otherwise than they were started.
    pub fn crew_warning(&self, crews: &[AgentCapacity]) -> Option<String> {
        let (threads, of_use) = (threads(crews), self.threads_of_use(crews));
        (of_use < threads).then(|| {
            format!(
                "--roundrobin: agents have {threads} threads, of which {of_use} are used: each has connections to every server"
            )
        })
    }

    /// The plan of a measurement at this rate with these agents, if any.
    pub fn leading(&self, qps: u64, crews: &[AgentCapacity]) -> PlanSpec {
        let Some(led) = &self.led else { return self.measuring(qps) };
        let depth = Some(Count(u64::from(led.measure_depth.unwrap_or(self.depth))));
        if self.is_masters_alone(qps) {
            let mut spec = self.measuring(qps);
            spec.base.depth = depth;
            return spec;
        }
        let mut spec = self.measuring(0);
        let own_connections = spec.base.connections.take().map_or(0, |count| count.0);
        let own_weight = if self.threads > 0 { own_connections * u64::from(led.lambda_mul) } else { 0 };
        let weight = crews.iter().map(|crew| self.connections_of(crew) * u64::from(crew.weight)).sum();
        let rates = Rates::of(qps, led.measure_qps, weight, own_weight);
        let agents_connections = self.connections_of_all(crews);
        spec.run.agent = Some(led.agents.iter().map(|(host, port)| format!("{host}:{port}")).collect());
        spec.run.threads = Some(Count(self.threads_of_use(crews)));
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
        if self.threads > 0 {
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
