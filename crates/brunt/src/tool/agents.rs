//! The agents that another tool leads, or is one of.
//!
//! Not what they say to each other: that is `brunt-fleet`'s, so that agents of `brunt agent` and these are the same. Invariant: standard
//! output of an agent stays empty, for mutilate's agents are silent; they listen on all addresses, as mutilate's do.

use crate::exit::Failure;
use crate::{agent, terminal};
use brunt_compat::front_end::{AgentCapacity, AgentMode, ControllerMode};
use brunt_engine::process::cannot;
use brunt_fleet::{Fleet, STARTING_MAX, TargetFiles};
use brunt_stats::usage::AgentRecord;
use std::convert::Infallible;
use std::path::Path;

/// Waits for masters until a signal ends the process.
pub(super) fn serve(mode: &AgentMode) -> Result<Infallible, Failure> {
    let say = |text: &str| {
        if !mode.quiet {
            terminal::say(text);
        }
    };
    let credentials =
        agent::agent_credentials(mode.auth.as_deref().map(Path::new)).map_err(Failure::usage)?;
    let listener = agent::listen_everywhere(mode.port).map_err(|error| {
        Failure::usage(format!(
            "invalid value '{}' for --agent_port ({error}): expected a free port of TCP",
            mode.port
        ))
    })?;
    let address =
        listener.local_addr().map_err(cannot("read the address of --agent_port")).map_err(Failure::failed)?;
    if credentials.is_open() {
        // Also with --quiet: an open agent is a risk.
        terminal::say(format_args!(
            "warning: unauthenticated agent: any host that reaches {address} can direct its load; set --auth"
        ));
    }
    say(&format!("note: agent: listening on {address}"));
    let cpus = if mode.affinity && mode.threads > 1 { brunt_engine::allowed_cpus() } else { Vec::new() };
    let own = agent::AgentConfig {
        threads: mode.threads,
        weight: mode.lambda_mul,
        cpus,
        sleeps: mode.blocking,
        target: TargetFiles::default(),
        json: None,
    };
    own.serve(credentials, &listener, &|text| say(&format!("note: agent: {text}")))
}

/// Meets the agents that are asked for. They may have been started a moment ago, for mutilate's master waits for them.
pub(super) fn enlist(leading: &ControllerMode) -> Result<Fleet, Failure> {
    let credentials =
        agent::controller_credentials(leading.auth.as_deref().map(Path::new)).map_err(Failure::usage)?;
    Fleet::open(&leading.agents, &credentials, STARTING_MAX).map_err(Failure::failed)
}

/// What they have.
pub(super) fn capacities(fleet: &Fleet) -> Vec<AgentCapacity> {
    let crew = |(record, (threads, weight)): (AgentRecord, (u32, u32))| {
        let AgentRecord { name, host, .. } = record;
        AgentCapacity { name, host, threads, weight }
    };
    fleet.records().into_iter().zip(fleet.capacities()).map(crew).collect()
}
