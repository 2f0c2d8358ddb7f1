//! The agents that another tool leads, or is one of.
//!
//! Not what they say to each other: that is `brunt-fleet`'s, so that agents of `brunt agent` and these are the same. Invariant: standard
//! output of an agent stays empty, for mutilate's agents are silent.

use crate::agent;
use crate::exit::Failure;
use crate::terminal;
use brunt_compat::hosts::{AgentCapacity, AgentMode, ControllerMode, TrustPaths};
use brunt_fleet::{AgentTrust, ControllerTrust, Fleet, STARTING_MAX, TrustFiles};
use brunt_stats::agent::AgentRecord;
use std::convert::Infallible;
use std::io;
use std::net::{Ipv4Addr, Ipv6Addr, TcpListener};
use std::path::PathBuf;

/// Waits for masters until a signal ends the process.
pub(super) fn serve(mode: &AgentMode) -> Result<Infallible, Failure> {
    let say = |text: &str| {
        if !mode.quiet {
            terminal::say(text);
        }
    };
    let trust = AgentTrust::of_agent(&files(&mode.trust)).map_err(Failure::usage)?;
    let listener = listen(mode.port).map_err(|error| {
        Failure::usage(format!(
            "invalid value '{}' for --agent_port ({error}): expected a free port of TCP",
            mode.port
        ))
    })?;
    let address = listener.local_addr()?;
    // Also with --quiet: an open agent is a risk.
    agent::warn_if_open(&trust, address);
    say(&format!("note: agent: listening on {address}"));
    let cpus = if mode.affinity && mode.threads > 1 { brunt_engine::allowed_cpus() } else { Vec::new() };
    let own = agent::AgentConfig {
        threads: mode.threads,
        weight: mode.lambda_mul,
        cpus,
        sleeps: mode.blocking,
        json: None,
    };
    own.serve(trust, &listener, &|text| say(&format!("note: agent: {text}")))
}

/// All addresses of this host, as mutilate's agents do, whatever families it has.
fn listen(port: u16) -> io::Result<TcpListener> {
    TcpListener::bind((Ipv6Addr::UNSPECIFIED, port)).or_else(|error| match error.kind() {
        io::ErrorKind::AddrInUse | io::ErrorKind::PermissionDenied => Err(error),
        _ => TcpListener::bind((Ipv4Addr::UNSPECIFIED, port)),
    })
}

/// Meets the agents that are asked for. They may have been started a moment ago, for mutilate's master waits for them.
pub(super) fn enlist(leading: &ControllerMode) -> Result<Fleet, Failure> {
    let files = files(&leading.trust);
    agent::note_files(&files);
    let trust = ControllerTrust::of_controller(&files).map_err(Failure::usage)?;
    Fleet::open(&leading.agents, &trust, STARTING_MAX).map_err(Failure::failed)
}

/// What they have.
pub(super) fn capacities(fleet: &Fleet) -> Vec<AgentCapacity> {
    let crew = |(record, (threads, weight)): (AgentRecord, (u32, u32))| {
        let AgentRecord { name, host, .. } = record;
        AgentCapacity { name, host, threads, weight }
    };
    fleet.records().into_iter().zip(fleet.capacities()).map(crew).collect()
}

fn files(paths: &TrustPaths) -> TrustFiles {
    let path = |given: &Option<String>| given.as_ref().map(PathBuf::from);
    TrustFiles {
        token: path(&paths.token_file),
        ca: path(&paths.agent_ca),
        certificate: path(&paths.agent_cert),
        key: path(&paths.agent_key),
    }
}
