//! The options of several hosts: those of an agent by itself, and those of a master.
//!
//! How they agree with the rest of a command line is for `master.rs`.

use super::invalid_option::stray_warning;
use super::numbers::Numbers;
use crate::hosts::AgentMode;
use crate::options::ParsedOptions;
use brunt_plan::resolve::fleet::split;
use std::net::Ipv6Addr;

/// Where agents listen.
const PORT: u16 = 5556;
/// Options that an agent takes from its own command line. The master sends all others.
const OF_AGENTS: [&str; 8] =
    ["agentmode", "agent_port", "lambda_mul", "threads", "affinity", "blocking", "quiet", "auth"];

impl AgentMode {
    pub(super) fn of(parsed: &ParsedOptions, numbers: &Numbers) -> Result<Self, String> {
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
            auth: parsed.value("auth").map(str::to_owned),
            warnings,
        })
    }
}

/// `--agent_port`, from `least` on.
fn port(parsed: &ParsedOptions, least: u16) -> Result<u16, String> {
    let Some(text) = parsed.value("agent_port") else { return Ok(PORT) };
    text.parse().ok().filter(|port| *port >= least).ok_or_else(|| {
        format!("invalid value '{text}' for --agent_port: expected a port of TCP, from {least} to 65535")
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
    /// Latencies of agents are in the rows, too.
    pub sampling: bool,
    /// The folder of those whom it trusts.
    pub auth: Option<String>,
}

impl MasterOptions {
    /// The agents of a command line, if it has any.
    pub(super) fn of(parsed: &ParsedOptions, numbers: &Numbers) -> Result<Option<Self>, String> {
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
            auth: parsed.value("auth").map(str::to_owned),
        }))
    }
}

/// A host, or as ours alone take it a host with its port.
fn agent(name: &str, port: u16) -> Result<(String, u16), String> {
    if name.parse::<Ipv6Addr>().is_ok() {
        return Ok((format!("[{name}]"), port));
    }
    let (_, own) = split(name).ok_or_else(|| {
        format!("invalid value '{name}' for --agent: expected HOST or HOST:PORT, or several behind commas")
    })?;
    let host = if own.is_some() { name.rsplit_once(':').map_or(name, |(host, _)| host) } else { name };
    Ok((host.to_owned(), own.unwrap_or(port)))
}
