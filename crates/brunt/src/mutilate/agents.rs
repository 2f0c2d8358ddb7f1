//! `brunt mutilate --agentmode`, and the agents that `brunt mutilate --agent` leads.
//!
//! Not what they say to each other: that is `brunt-fleet`'s, so that agents of `brunt agent` and these are the same. Invariant: standard
//! output stays empty, for mutilate's agents are silent.

use super::Ended;
use crate::agent;
use crate::terminal;
use brunt_compat::mutilate::EXIT_REFUSED;
use brunt_compat::mutilate::agents::{AgentMode, Crew, Led, TrustPaths};
use brunt_compat::mutilate::command_line::Refusal;
use brunt_fleet::{AgentTrust, ControllerTrust, Fleet, Patience, TrustFiles};
use std::io;
use std::net::{Ipv4Addr, Ipv6Addr, TcpListener};
use std::path::PathBuf;

/// Waits for masters until a signal ends the process.
pub(super) fn serve(mode: &AgentMode) -> Result<(), Ended> {
    let say = |text: &str| {
        if !mode.quiet {
            terminal::say(text);
        }
    };
    mode.warnings.iter().for_each(|warning| say(&format!("warning: {warning}")));
    let trust = AgentTrust::of_agent(&files(&mode.trust)).map_err(refused)?;
    let listener = listen(mode.port).map_err(|error| {
        refused(format!("--agent_port: '{}' was given ({error}); accepted: a free port of TCP", mode.port))
    })?;
    let address = listener.local_addr()?;
    // Also where it is to be quiet: whoever reads this late may have lost the host.
    agent::warn_if_open(&trust, address);
    say(&format!("note: agent: listening on {address}"));
    let cpus = if mode.affinity && mode.threads > 1 { brunt_engine::allowed_cpus() } else { Vec::new() };
    let own = agent::Own { threads: mode.threads, weight: mode.lambda_mul, cpus, sleeps: mode.blocking };
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
pub(super) fn enlist(led: &Led) -> Result<Fleet, Ended> {
    let files = files(&led.trust);
    agent::note_files(&files);
    let trust = ControllerTrust::of_controller(&files).map_err(refused)?;
    Fleet::open(&led.agents, &trust, Patience::Started).map_err(|error| refused(error.to_string()))
}

/// What they have.
pub(super) fn crews(fleet: &Fleet) -> Vec<Crew> {
    fleet.crews().map(|(threads, weight)| Crew { threads, weight }).collect()
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

fn refused(message: String) -> Ended {
    Refusal { code: EXIT_REFUSED, message }.into()
}
