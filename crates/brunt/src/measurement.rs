//! One measurement: finds or starts the servers, lets the engine carry out a plan, and sums up what it yields.
//!
//! Not a command and not a report: `run` makes one measurement, a campaign makes several, against the same servers.
//! Invariant: nothing is connected before it is known that this host has room for the plan.

use crate::calibrations;
use crate::embedded::{self, Embedded};
use crate::exit::{Exit, Failure};
use crate::host_facts::{self, HostFacts};
use crate::limits::{self, Needs};
use crate::observers::{ObservedRun, Observers};
use crate::terminal::say;
use brunt_engine::cluster::{Nodes, find_nodes};
use brunt_engine::run::{DataSets, Endpoint, ErrorOrigin, RunData, RunDecision, RunError, RunEvent};
use brunt_engine::{Address, TlsSettings};
use brunt_fleet::Fleet;
use brunt_plan::plan::{IpVersion, Plan, Timestamps, Transport};
use brunt_plan::resolve::fleet::PlanSplit;
use brunt_plan::resolve::of_nodes;
use brunt_plan::server::ServerAddress;
use brunt_stats::calibration::Lookup;
use brunt_stats::check::Judgement;
use brunt_stats::convergence::Convergence;
use brunt_stats::observer::RunPosition;
use brunt_stats::run_record::{Environment, PreloadResult, RunRecord};
use brunt_stats::summary::Summary;
use brunt_stats::usage::AgentRecord;
use brunt_stats::window::MeasuredWindow;
use std::cell::RefCell;
use std::io;
use std::net::{SocketAddr, ToSocketAddrs};
use std::os::unix::fs::FileTypeExt;
use std::sync::atomic::AtomicBool;

/// The servers of a plan, found or started.
pub(crate) struct Servers {
    /// Lives as long as it is measured.
    _embedded: Option<Embedded>,
    endpoints: Vec<Endpoint>,
    /// As the report names them.
    name: String,
    /// Those of a cluster, which the plan does not name.
    nodes: Option<Vec<ServerAddress>>,
    /// What is to be said of them.
    cluster_notes: Vec<String>,
    /// The agents that load them.
    fleet: Option<RefCell<Fleet>>,
    lead: AgentOptions,
}

/// How agents are led.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct AgentOptions {
    /// The largest number of workers of this host; `None`: the number of spare CPUs.
    pub threads: Option<u32>,
    /// What agents tell beside counts and histograms.
    pub told: AgentDetail,
}

/// What agents tell beside counts and histograms.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum AgentDetail {
    /// Whatever the plan asks for.
    #[default]
    All,
    /// What is metered, but no single requests.
    Meters,
    /// Nothing.
    Nothing,
}

impl Servers {
    /// Resolves the names of a plan's servers, or starts the reference server with room for its data sets.
    pub(crate) fn open(plan: &Plan) -> Result<Self, Failure> {
        Self::found(plan, plan.is_cluster)
    }

    /// Finds the servers for an agent: the controller has found the nodes of a cluster, and numbers them as its plan does.
    pub(crate) fn open_with_agents(plan: &Plan) -> Result<Self, Failure> {
        Self::found(plan, false)
    }

    fn found(plan: &Plan, asks_for_nodes: bool) -> Result<Self, Failure> {
        // Before the server is started, which inherits it.
        limits::raise_open_files();
        let embedded = match plan.needs_embedded() {
            false => None,
            true => {
                embedded::check_memory(plan).map_err(Failure::usage)?;
                Some(Embedded::start(plan).map_err(|error| Failure::new(Exit::Unreachable, error))?)
            }
        };
        let started = embedded.as_ref().map(|embedded| &embedded.address);
        let tls = plan.uses_transport(Transport::Tls).then(|| TlsSettings::read(&plan.tls));
        let tls = tls.transpose().map_err(Failure::usage)?;
        let (servers, cluster_notes) = match asks_for_nodes {
            true => nodes_of(plan, &plan.addresses(), tls.as_ref())?,
            false => (
                plan.servers()
                    .iter()
                    .filter_map(|server| server.address.as_ref().or(started))
                    .cloned()
                    .collect(),
                Vec::new(),
            ),
        };
        // Nodes of a cluster are all reached by its transport.
        let mut transports = plan.servers().into_iter().map(|server| server.transport);
        let mut found = |server: &ServerAddress| {
            let transport = transports.next().unwrap_or(plan.transport);
            // A socket that is not there is a result.
            if let ServerAddress::Unix { path } = server
                && plan.counts_attempts()
            {
                let addresses = vec![Address::Unix(path.into())];
                return Ok(Endpoint { server: server.clone(), addresses, tls: None });
            }
            let tls = tls.as_ref().filter(|_| transport == Transport::Tls);
            find(server, transport, plan.ip_version, tls)
        };
        let mut names: Vec<String> = Vec::new();
        for name in servers.iter().map(ServerAddress::to_string) {
            if !names.contains(&name) {
                names.push(name);
            }
        }
        let names = names.join(", ");
        Ok(Self {
            endpoints: servers.iter().map(&mut found).collect::<Result<Vec<_>, _>>()?,
            name: match embedded {
                Some(_) => format!("reference server, started for this run at {names}"),
                None if plan.is_cluster => format!("cluster of {names}"),
                None => names,
            },
            nodes: plan.is_cluster.then_some(servers),
            cluster_notes,
            _embedded: embedded,
            fleet: None,
            lead: AgentOptions::default(),
        })
    }

    /// Lets these agents carry out the load.
    pub(crate) fn with_agents(mut self, fleet: Option<Fleet>, lead: AgentOptions) -> Self {
        (self.fleet, self.lead) = (fleet.map(RefCell::new), lead);
        self
    }

    /// Keeps the agents, if any, while they have nothing to do.
    pub(crate) fn keep_alive(&self) -> Result<(), Failure> {
        let tended = self.fleet.as_ref().map_or(Ok(()), |fleet| fleet.borrow_mut().keep_alive());
        tended.map_err(Failure::failed)
    }

    /// What is known of the agents.
    pub(crate) fn agents(&self) -> Vec<AgentRecord> {
        self.fleet.as_ref().map(|fleet| fleet.borrow().records()).unwrap_or_default()
    }

    /// Has all of them delete what they hold.
    pub(crate) fn flush(&self, plan: &Plan) -> Result<(), Failure> {
        brunt_engine::flush(plan, &self.endpoints)
            .map_err(|message| Failure::message(Exit::Unreachable, message))
    }

    /// Where connections go to.
    pub(crate) fn into_endpoints(self) -> Vec<Endpoint> {
        self.endpoints
    }
}

/// Every address of a server's name, or the path of its socket.
pub(crate) fn find(
    server: &ServerAddress,
    transport: Transport,
    ip_version: IpVersion,
    tls: Option<&TlsSettings>,
) -> Result<Endpoint, Failure> {
    let tls = match (tls, server) {
        (Some(settings), ServerAddress::Network { host, .. }) => {
            Some(settings.toward(host).map_err(Failure::usage)?)
        }
        _ => None,
    };
    let found = match server {
        ServerAddress::Network { host, port } => resolve(host, *port, transport, ip_version)
            .map_err(|reason| format!("cannot resolve {server}: {reason}")),
        ServerAddress::Unix { path } => {
            socket_at(path).map_err(|reason| format!("cannot connect to {server}: {reason}"))
        }
    };
    match found {
        Ok(addresses) => Ok(Endpoint { server: server.clone(), addresses, tls }),
        Err(message) => Err(Failure::message(Exit::Unreachable, message)),
    }
}

fn resolve(host: &str, port: u16, transport: Transport, version: IpVersion) -> io::Result<Vec<Address>> {
    let address = if transport == Transport::Udp { Address::Datagram } else { Address::Network };
    let is_wanted = |address: &SocketAddr| match version {
        IpVersion::Any => true,
        IpVersion::V4 => address.is_ipv4(),
        IpVersion::V6 => address.is_ipv6(),
    };
    let addresses: Vec<Address> = (host, port).to_socket_addrs()?.filter(is_wanted).map(address).collect();
    if !addresses.is_empty() {
        return Ok(addresses);
    }
    Err(io::Error::other(match version {
        IpVersion::Any => "the name has no address".to_owned(),
        version => format!("the name has no address of IPv{version}, which --ip-version asks for"),
    }))
}

/// Connecting to a file that is no socket fails as if no server listened there, which hides the cause.
fn socket_at(path: &str) -> io::Result<Vec<Address>> {
    match std::fs::metadata(path)?.file_type().is_socket() {
        true => Ok(vec![Address::Unix(path.into())]),
        false => Err(io::Error::other("the file is no socket")),
    }
}

/// What a measurement is to the command that makes it: all of it by default, or a step of a campaign.
#[derive(Clone, Debug, Default)]
pub(crate) struct Step {
    /// What the steps before it left on the servers.
    pub data: DataSets,
    /// What it is to find out; it ends as soon as that is known, else as the plan says. [`Convergence::of`] has what the
    /// plan itself asks for.
    pub convergence: Option<Convergence>,
    /// Where the campaign stands, for those who watch it.
    pub place: RunPosition,
    /// How it is judged.
    pub judgement: Judgement,
}

/// Carries out a plan and sums it up.
pub(crate) fn measure(
    plan: &Plan,
    servers: &Servers,
    stop: &AtomicBool,
    observers: &mut Observers<'_>,
    step: &Step,
) -> Result<Summary, Failure> {
    let plan = &plan_for(plan, servers, observers)?;
    let shares = shares(plan, servers)?;
    // What agents carry out needs room on their hosts.
    let here = shares.as_ref().map_or(Some(plan), |shares| shares.controller.as_ref().map(|own| &own.plan));
    let notes = here.map_or(Ok(Vec::new()), |plan| check_limits(plan, &servers.endpoints))?;
    notes.iter().for_each(|note| observers.note(note));
    let beforehand = || recorded_by_step(plan, servers, step, RunData::default());
    let mut watching = observers.begin(plan, &step.place, beforehand);
    let ended = carry_out(plan, shares.as_ref(), servers, stop, &mut watching, step);
    let summary = ended.map(|(data, convergence)| summarise(plan, servers, step, data, convergence));
    watching.end(summary.as_ref().ok());
    summary
}

/// Has the engine carry out a plan, with the agents if there are any. Beside what it yields: what it has found out of what it was to.
fn carry_out(
    plan: &Plan,
    shares: Option<&PlanSplit>,
    servers: &Servers,
    stop: &AtomicBool,
    watching: &mut ObservedRun<'_, '_>,
    step: &Step,
) -> Result<(RunData, Option<Convergence>), Failure> {
    let mut convergence = step.convergence.clone();
    let mut started = None;
    // Agents that are not asked want to hear from us all the same.
    let (is_led, mut tended) = (shares.is_some(), Ok(()));
    let mut observe = |observed: RunEvent<'_>| {
        let is_enough = match (&observed, started, &mut convergence) {
            (RunEvent::Started(known), ..) => {
                started = Some((MeasuredWindow::of(&known.times), known.unread_ns(plan.has_open_loop())));
                false
            }
            (RunEvent::Tick { now_ns, intervals }, Some((started, unread_ns)), Some(convergence)) => {
                convergence.is_enough(*now_ns, &started, plan, intervals, unread_ns)
            }
            _ => false,
        };
        watching.observe(&observed);
        if !is_led && tended.is_ok() {
            tended = servers.keep_alive();
        }
        if is_enough || tended.is_err() { RunDecision::Finish } else { RunDecision::Continue }
    };
    let ended = match (&servers.fleet, shares) {
        (Some(fleet), Some(shares)) => {
            fleet.borrow_mut().run(plan, shares, &servers.endpoints, step.data, stop, &mut observe)
        }
        _ => brunt_engine::run::run(plan, &servers.endpoints, step.data, stop, &mut observe),
    };
    tended?;
    let data = ended.map_err(|error| Failure::new(exit_of(&error), error))?;
    Ok((data, convergence))
}

fn exit_of(error: &RunError) -> Exit {
    match error.origin() {
        ErrorOrigin::Server => Exit::Unreachable,
        ErrorOrigin::Request => Exit::Usage,
        ErrorOrigin::Host => Exit::Failed,
        ErrorOrigin::Interruption => Exit::Interrupted,
    }
}

/// The nodes of a cluster, of which the plan names some, and notes on them.
fn nodes_of(
    plan: &Plan,
    seeds: &[ServerAddress],
    tls: Option<&TlsSettings>,
) -> Result<(Vec<ServerAddress>, Vec<String>), Failure> {
    let mut endpoints = Vec::new();
    let mut unknown = None;
    for seed in seeds {
        match find(seed, plan.transport, plan.ip_version, tls) {
            Ok(endpoint) => endpoints.push(endpoint),
            // One that has gone from the name service is no worse than one that is down.
            Err(failure) => unknown = Some(failure),
        }
    }
    match unknown {
        Some(failure) if endpoints.is_empty() => Err(failure),
        _ => {
            let nodes = find_nodes(plan, &endpoints);
            let nodes = nodes.map_err(|error| Failure::new(Exit::Unreachable, error))?;
            let notes = notes_on(&nodes);
            Ok((nodes.servers, notes))
        }
    }
}

/// What of a cluster is otherwise than one expects.
fn notes_on(nodes: &Nodes) -> Vec<String> {
    let mut notes = Vec::new();
    if nodes.unserved > 0 {
        notes.push(format!(
            "{} of the 16384 hash slots are unassigned; operations on their keys fail",
            nodes.unserved
        ));
    }
    if !nodes.idle.is_empty() {
        let names: Vec<String> = nodes.idle.iter().map(ToString::to_string).collect();
        notes.push(format!(
            "{} own no hash slots; their connections stay idle until they do",
            names.join(", ")
        ));
    }
    notes
}

/// The plan that runs: that for the nodes, where the servers are a cluster.
fn plan_for(plan: &Plan, servers: &Servers, observers: &mut Observers<'_>) -> Result<Plan, Failure> {
    let idle: Vec<String> =
        plan.idle_servers().into_iter().filter_map(|server| plan.server_name(server)).collect();
    if !idle.is_empty() {
        observers.note(&format!(
            "--placement by-thread: {} of {} servers get no load from {} {}: {}",
            idle.len(),
            plan.server_count(),
            plan.threads,
            if plan.threads == 1 { "thread" } else { "threads" },
            idle.join(", ")
        ));
    }
    let Some(nodes) = &servers.nodes else { return Ok(plan.clone()) };
    let own = of_nodes(plan, nodes).map_err(|error| Failure::new(Exit::Usage, error))?;
    servers.cluster_notes.iter().for_each(|note| observers.note(note));
    if own.threads < plan.threads {
        let (threads, nodes) = (own.threads, nodes.len());
        observers.note(&format!(
            "--threads {threads}, not {}: every worker needs a connection of every class to each of the {nodes} nodes",
            plan.threads
        ));
    }
    Ok(own)
}

/// Who does what, where there are agents.
fn shares(plan: &Plan, servers: &Servers) -> Result<Option<PlanSplit>, Failure> {
    if plan.agents.is_empty() {
        return Ok(None);
    }
    if servers.fleet.is_none() {
        return Err(Failure::usage(
            "--agent cannot be used with this command: run, scan and search control agents",
        ));
    }
    let AgentOptions { threads, told } = servers.lead;
    let threads =
        threads.unwrap_or_else(|| brunt_engine::allowed_cpus().len().saturating_sub(1).max(1) as u32);
    let shares = PlanSplit::of(plan, threads).map_err(Failure::usage)?;
    let shares = match told {
        AgentDetail::All => shares,
        AgentDetail::Meters => shares.without_samples_of_agents(true).map_err(Failure::usage)?,
        AgentDetail::Nothing => shares.without_samples_of_agents(false).map_err(Failure::usage)?,
    };
    Ok(Some(shares))
}

/// Refuses a plan that this host has no room for. Returns where it may become tight.
pub(crate) fn check_limits(plan: &Plan, endpoints: &[Endpoint]) -> Result<Vec<String>, Failure> {
    if plan.timestamps == Timestamps::Kernel {
        brunt_engine::timestamps_work().map_err(no_timestamps)?;
    }
    let facts = HostFacts::read();
    // The first address is the one that is tried first.
    let addresses: Vec<Address> = endpoints.iter().map(|endpoint| endpoint.addresses[0].clone()).collect();
    let needs = Needs::of(plan, &addresses, facts.time_wait_reuse);
    limits::check_limits(plan, &needs, &facts).map_err(|error| Failure::new(Exit::Usage, error))
}

fn no_timestamps(reason: &str) -> Failure {
    Failure::usage(format!("--timestamps kernel: not supported by this kernel: {reason}"))
}

fn summarise(
    plan: &Plan,
    servers: &Servers,
    step: &Step,
    run: RunData,
    convergence: Option<Convergence>,
) -> Summary {
    // What is known of this host says nothing of others.
    let calibration = match servers.fleet {
        None => calibrations::lookup(plan, &run.usage),
        Some(_) => Lookup::Unfit("a calibration of this host does not apply to agents".to_owned()),
    };
    Summary::build(RunRecord { convergence, calibration, ..recorded_by_step(plan, servers, step, run) })
}

/// What a run of a step yielded, which is nothing before it has begun, with what is known of its agents.
fn recorded_by_step(plan: &Plan, servers: &Servers, step: &Step, run: RunData) -> RunRecord {
    RunRecord {
        agents: if plan.agents.is_empty() { Vec::new() } else { servers.agents() },
        judgement: step.judgement.clone(),
        ..recorded(plan, run, step.data, servers.name.clone())
    }
}

/// Were all agents there until the run ended? Says so of one that was lost after an interruption. The summary holds what a lost one recorded up to then.
pub(crate) fn check_agents(summary: &Summary) -> Result<(), Failure> {
    let lost = summary.record.agents.iter().find_map(|agent| Some((agent, agent.lost.as_ref()?)));
    match lost {
        None => Ok(()),
        // The interruption ended the run, and decides about the exit code.
        Some((agent, why)) if agent.lost_after_interruption => {
            say(format_args!("error: interrupted; agent {} {why}", agent.name));
            Ok(())
        }
        Some((agent, why)) => Err(Failure::failed(format!("agent {} {why}; the run ended then", agent.name))),
    }
}

/// What a run yielded, with what this host knows of it.
pub(crate) fn recorded(plan: &Plan, run: RunData, data: DataSets, server: String) -> RunRecord {
    let wanted = plan.preload_stores();
    RunRecord {
        preload: plan.preload.then_some(PreloadResult {
            wanted,
            // The run would not have begun with less.
            confirmed: wanted,
            is_earlier: data == DataSets::Stored,
            duration_ns: run.times.prepare_ns,
        }),
        run,
        environment: Environment {
            brunt_version: env!("CARGO_PKG_VERSION").to_owned(),
            host: host_facts::host_name(),
            facts: host_facts::environment(),
        },
        server,
        ..RunRecord::of(plan.clone())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_of_the_other_version_are_left_out() {
        let found = |host: &str, version: IpVersion| resolve(host, 11211, Transport::Tcp, version);
        for (host, version) in [("127.0.0.1", IpVersion::V4), ("::1", IpVersion::V6)] {
            assert_eq!(found(host, version).unwrap().len(), 1, "{host}");
            assert_eq!(found(host, IpVersion::Any).unwrap().len(), 1, "{host}");
        }
        let reason = found("127.0.0.1", IpVersion::V6).unwrap_err().to_string();
        assert_eq!(reason, "the name has no address of IPv6, which --ip-version asks for");
    }

    #[test]
    fn a_kernel_without_timestamps_is_named() {
        let failure = no_timestamps("SO_TIMESTAMPING: Invalid argument (os error 22)");
        assert_eq!(failure.exit, Exit::Usage);
        assert_eq!(
            failure.error.to_string(),
            "--timestamps kernel: not supported by this kernel: SO_TIMESTAMPING: Invalid argument (os error 22)"
        );
    }
}
