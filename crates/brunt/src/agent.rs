//! `brunt agent`, and the agents of a run.
//!
//! Wiring: what controllers and agents say to each other is `brunt-fleet`'s. Invariant: an agent that listens to more than its own host
//! and lets everyone in says so, loudly.

use crate::cli;
use crate::destination;
use crate::environment;
use crate::exit::{Exit, Failure};
use crate::input;
use crate::limits;
use crate::measurement::{Servers, check_limits, recorded};
use crate::terminal::{say, show};
use brunt_engine::coordinator::RemoteError;
use brunt_engine::run::{DataSets, RunData};
use brunt_fleet::message::AgentInfo;
use brunt_fleet::{AgentTrust, ControllerTrust, Fleet, PORT, TrustFiles};
use brunt_plan::plan::Plan;
use brunt_plan::resolve::fleet::split;
use brunt_plan::spec::RunSpec;
use brunt_plan::units::Count;
use brunt_stats::summary::Summary;
use std::net::{SocketAddr, TcpListener};
use std::path::PathBuf;
use std::time::Duration;

/// Waits for controllers until a signal ends the process.
pub(crate) fn agent(flags: &cli::Agent) -> Result<Exit, Failure> {
    let trust = AgentTrust::of_agent(&flags.trust.files()).map_err(Failure::usage)?;
    let listener = TcpListener::bind(flags.listen).map_err(|error| {
        Failure::usage(format!(
            "invalid value '{}' for --listen ({error}): expected an address of this host and a free port",
            flags.listen
        ))
    })?;
    let address = listener.local_addr()?;
    warn_if_open(&trust, address);
    let allowed = brunt_engine::allowed_cpus();
    let cpus = flags.cpus.clone().map_or_else(Vec::new, |list| list.0);
    if let Some(cpu) = cpus.iter().find(|cpu| !allowed.contains(cpu)) {
        let accepted = brunt_plan::cpus::CpuList(allowed);
        return Err(Failure::usage(format!(
            "invalid value '{cpu}' for --cpus: expected processors out of {accepted}"
        )));
    }
    let spare = if cpus.is_empty() { allowed.len().saturating_sub(1) } else { cpus.len() };
    let note = |text: &str| {
        if !flags.quiet {
            say(format_args!("agent: {text}"));
        }
    };
    // The port may have been chosen by the kernel.
    show(format!("listening on {address}\n"), false);
    let threads = flags.threads.unwrap_or(spare.max(1) as u32);
    AgentConfig { threads, weight: 1, cpus, sleeps: false, json: flags.json.clone() }
        .serve(trust, &listener, &note)
}

/// Says so where everyone is let in who reaches this address.
pub(crate) fn warn_if_open(trust: &AgentTrust, address: SocketAddr) {
    if trust.is_open() && !address.ip().is_loopback() {
        say(format_args!(
            "warning: unauthenticated agent: any host that reaches {address} can direct its load; set --token-file, or --agent-cert \
             with --agent-ca"
        ));
    }
}

/// What an agent decides itself.
pub(crate) struct AgentConfig {
    /// Workers, where the controller does not say otherwise.
    pub threads: u32,
    /// How much each of them weighs.
    pub weight: u32,
    /// Where they are pinned to; empty: nowhere.
    pub cpus: Vec<u32>,
    /// They sleep, whatever the plan says.
    pub sleeps: bool,
    /// Where results go.
    pub json: Option<PathBuf>,
}

impl AgentConfig {
    /// Waits for controllers, for ever.
    pub(crate) fn serve(self, trust: AgentTrust, listener: &TcpListener, note: &(dyn Fn(&str) + Sync)) -> ! {
        limits::raise_open_files();
        let agent = brunt_fleet::Agent {
            trust,
            info: AgentInfo {
                host: environment::host(),
                version: env!("CARGO_PKG_VERSION").to_owned(),
                threads: self.threads,
                weight: self.weight,
            },
            cpus: self.cpus.clone(),
            sleeps: self.sleeps,
            open: &open,
            keep: &|plan, run, data| self.keep(plan, run, data),
            note,
        };
        agent.serve(listener)
    }
}

impl AgentConfig {
    /// Writes what a share of a run yielded, in place of the one before.
    fn keep(&self, plan: &Plan, run: &RunData, data: DataSets) {
        let Some(path) = &self.json else { return };
        let server = plan.addresses().iter().map(ToString::to_string).collect::<Vec<_>>().join(", ");
        let record = recorded(plan, run.clone(), data, server);
        let summary = Summary::build(record);
        let written = destination::write_whole(path, |out| brunt_report::json::write(&summary, out));
        if let Err(error) = written {
            say(format_args!("--json: cannot write '{}': {error}", path.display()));
        }
    }
}

/// Finds the servers of a plan, and checks the limits of this host for this number of workers.
fn open(plan: &Plan, workers: u32) -> Result<Vec<brunt_engine::run::Endpoint>, RemoteError> {
    let blame = |failure: Failure| RemoteError {
        is_server_error: failure.exit == Exit::Unreachable,
        reason: format!("{:#}", failure.error),
    };
    let endpoints = Servers::open_with_agents(plan).map_err(blame)?.into_endpoints();
    let mut share = plan.clone();
    for class in &mut share.classes {
        let part = u64::from(class.connections) * u64::from(workers);
        class.connections = part.div_ceil(u64::from(plan.threads)) as u32;
    }
    share.threads = workers;
    // Where it may become tight is said where the plan is.
    check_limits(&share, &endpoints).map_err(blame)?;
    Ok(endpoints)
}

/// Files of trust are read: no result goes there.
pub(crate) fn note_files(files: &TrustFiles) {
    let named = [&files.token, &files.ca, &files.certificate, &files.key];
    named.into_iter().flatten().for_each(|path| input::note(path));
}

/// Meets the agents that a plan names, whose workers are all it has unless it says otherwise.
pub(crate) fn connect_agents(run: &mut RunSpec, trust: &cli::TrustFlags) -> Result<Option<Fleet>, Failure> {
    let agents = run.agent.as_deref().unwrap_or_default();
    let names: Vec<_> = agents.iter().filter_map(|agent| split(agent)).collect();
    let files = trust.files();
    // An agent without a name is the plan's to complain of.
    if names.is_empty() || names.len() < agents.len() {
        return match (files == TrustFiles::default(), agents) {
            (false, []) => {
                Err(Failure::usage("--token-file, --agent-ca, --agent-cert and --agent-key require --agent"))
            }
            _ => Ok(None),
        };
    }
    note_files(&files);
    let trust = ControllerTrust::of_controller(&files).map_err(Failure::usage)?;
    let names: Vec<(String, u16)> =
        names.into_iter().map(|(host, port)| (host.to_owned(), port.unwrap_or(PORT))).collect();
    let fleet = Fleet::open(&names, &trust, Duration::ZERO).map_err(Failure::failed)?;
    if run.threads.is_some_and(|threads| threads.0 < names.len() as u64) {
        return Err(Failure::usage(format!(
            "--threads is below the number of agents: expected at least {}, one for each",
            names.len()
        )));
    }
    run.threads.get_or_insert(Count(u64::from(fleet.threads())));
    Ok(Some(fleet))
}
