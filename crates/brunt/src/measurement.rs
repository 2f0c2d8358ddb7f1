//! Measurements: finds or starts the servers, lets the engine carry out plans, and sums up what they yield.
//!
//! Not a command and not a report: `run` makes one measurement, a campaign makes several, against the same servers.
//! Invariant: nothing is connected before it is known that this host has room for the plan.

use crate::calibrations;
use crate::cli::ProgressFlags;
use crate::exit::{Exit, Failure};
use crate::host::{self, HostFacts, Needs};
use crate::host_share::HostShare;
use crate::interrupt;
use crate::observers::{ObservedRun, Observers};
use crate::serve::{self, Embedded};
use crate::terminal::say;
use brunt_engine::cluster::{Nodes, find_nodes};
use brunt_engine::coordinator::LocalOnly;
use brunt_engine::run::{
    DataSets, Endpoint, ErrorOrigin, RunData, RunDecision, RunError, RunEvent, run_part,
};
use brunt_engine::{Address, TlsSettings};
use brunt_fleet::Fleet;
use brunt_plan::objective::Objective;
use brunt_plan::op::OpKind;
use brunt_plan::plan::{IpVersion, Plan, Timestamps, Transport};
use brunt_plan::resolve::fleet::PlanSplit;
use brunt_plan::resolve::of_nodes;
use brunt_plan::server::ServerAddress;
use brunt_report::quantity;
use brunt_stats::calibration::Lookup;
use brunt_stats::check::Judgement;
use brunt_stats::convergence::Convergence;
use brunt_stats::observer::RunPosition;
use brunt_stats::run_record::{Environment, PreloadResult, RunRecord};
use brunt_stats::summary::Summary;
use brunt_stats::usage::AgentRecord;
use rustix::event::{Timespec, poll};
use std::cell::RefCell;
use std::io;
use std::net::{SocketAddr, ToSocketAddrs};
use std::os::unix::fs::FileTypeExt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

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
    lead: Option<AgentOptions>,
    /// The part of the plan that this host carries out, where others carry out the rest.
    share: Option<HostShare>,
    /// The plan of the last run that stored its data sets, while they are complete.
    pub stored: Option<Plan>,
    /// What is stored on them has been said.
    is_told: bool,
}

/// How agents of another tool are led: with at most `threads` workers of this host, and telling, beside counts and histograms, what is metered or
/// nothing. Others have the spare CPUs of this host, and tell whatever the plan asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct AgentOptions {
    pub threads: u32,
    pub meters: bool,
}

impl Servers {
    /// Resolves the names of a plan's servers, or starts the reference server with room for its data sets.
    pub(crate) fn open(plan: &Plan) -> Result<Self, Failure> {
        Self::found(plan, plan.is_cluster)
    }

    /// Where an agent connects to: the controller has found the nodes of a cluster, and numbers them as its plan does.
    pub(crate) fn endpoints_of_agent(plan: &Plan) -> Result<Vec<Endpoint>, Failure> {
        Ok(Self::found(plan, false)?.endpoints)
    }

    fn found(plan: &Plan, asks_for_nodes: bool) -> Result<Self, Failure> {
        // Before the server is started, which inherits it.
        host::raise_open_files();
        let embedded = match plan.needs_embedded() {
            false => None,
            true => {
                serve::check_memory(plan).map_err(Failure::usage)?;
                Some(Embedded::start(plan).map_err(|error| Failure::new(Exit::Unreachable, error))?)
            }
        };
        let started = embedded.as_ref().map(|embedded| &embedded.address);
        let tls = plan.uses_transport(Transport::Tls).then(|| TlsSettings::read(&plan.tls));
        let tls = tls.transpose().map_err(Failure::usage)?;
        let (servers, cluster_notes) = match asks_for_nodes {
            true => nodes_of(plan, &plan.addresses(), tls.as_ref())?,
            false => (
                plan.servers
                    .iter()
                    .filter_map(|server| server.address.as_ref().or(started))
                    .cloned()
                    .collect(),
                Vec::new(),
            ),
        };
        // Nodes of a cluster are all reached by its transport.
        let mut transports = plan.servers.iter().map(|server| server.transport);
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
            lead: None,
            share: None,
            stored: None,
            is_told: false,
        })
    }

    /// Did an earlier run store what this one needs? Where keys lie depends on the servers, which are the same.
    fn data_for(&self, plan: &Plan) -> DataSets {
        let is_same = |stored: &Plan| {
            plan.preload && stored.data_seed == plan.data_seed && stored.data_sets() == plan.data_sets()
        };
        if self.stored.as_ref().is_some_and(is_same) { DataSets::Stored } else { DataSets::ToStore }
    }

    /// Lets these agents carry out the load.
    pub(crate) fn with_agents(mut self, fleet: Option<Fleet>, lead: Option<AgentOptions>) -> Self {
        (self.fleet, self.lead) = (fleet.map(RefCell::new), lead);
        self
    }

    /// Carries out this part alone.
    pub(crate) fn with_share(mut self, share: Option<HostShare>) -> Self {
        self.share = share;
        self
    }

    /// Keeps the agents, if any, while they have nothing to do.
    pub(crate) fn keep_alive(&self) -> Result<(), Failure> {
        let tended = self.fleet.as_ref().map_or(Ok(()), |fleet| fleet.borrow_mut().keep_alive());
        tended.map_err(Failure::failed)
    }

    /// Keeps them for this long, or until a signal comes.
    pub(crate) fn pause(&self, pause: Duration) -> Result<(), Failure> {
        let _ = poll(&mut [], Timespec::try_from(pause).ok().as_ref());
        self.keep_alive()
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
        version => format!("the name has no address of IPv{version}, which ip-version asks for"),
    }))
}

/// Connecting to a file that is no socket fails as if no server listened there, which hides the cause.
fn socket_at(path: &str) -> io::Result<Vec<Address>> {
    match std::fs::metadata(path)?.file_type().is_socket() {
        true => Ok(vec![Address::Unix(path.into())]),
        false => Err(io::Error::other("the file is no socket")),
    }
}

/// The runs of a command, one after the other. Each takes up what the one before left on the servers.
pub(crate) struct Runner<'a> {
    /// Set by a user who wants no more.
    pub stop: Arc<AtomicBool>,
    /// Those who watch.
    pub observers: Observers<'a>,
    /// How runs are judged.
    pub judgement: Judgement,
    /// How many runs are to be made, where that is known beforehand.
    pub of: Option<u64>,
    /// Runs made.
    pub made: u64,
}

impl Runner<'static> {
    /// Runs that are shown as the flags have it. Objectives are those of the command. From here on a signal ends the present run first.
    pub(crate) fn open(
        progress: &ProgressFlags,
        objectives: &[Objective],
        judgement: Judgement,
    ) -> Result<Self, Failure> {
        let stop = interrupt::flag().map_err(Failure::failed)?;
        let observers = Observers::of(progress, objectives, &stop)?;
        Ok(Self { stop, observers, judgement, of: None, made: 0 })
    }
}

impl Runner<'_> {
    /// Carries out a plan and sums it up. `label` says where the command stands.
    pub(crate) fn measure(
        &mut self,
        servers: &mut Servers,
        plan: &Plan,
        label: &str,
    ) -> Result<Summary, Failure> {
        let data = servers.data_for(plan);
        let is_new = data == DataSets::ToStore && !servers.is_told;
        let note = is_new.then(|| storing(plan, &servers.name)).flatten();
        let summary = self.measure_with(servers, plan, data, label, note)?;
        servers.is_told |= is_new;
        servers.stored = (plan.preload && !consumes(plan)).then(|| plan.clone());
        Ok(summary)
    }

    /// The same for a caller who knows whether the servers hold the data sets. The note is said once it is known that the plan can run.
    pub(crate) fn measure_with(
        &mut self,
        servers: &Servers,
        asked: &Plan,
        data: DataSets,
        label: &str,
        note: Option<String>,
    ) -> Result<Summary, Failure> {
        if self.stop.load(Ordering::Relaxed) {
            return Err(interrupted());
        }
        let mut plan = &plan_for(asked, servers, &mut self.observers)?;
        let shares = shares(plan, servers)?;
        let notes = match (&servers.share, &shares) {
            (Some(share), Some(shares)) => {
                plan = &shares.agents.plan;
                check_limits(&of_workers(plan, share.workers(plan).len() as u32), &servers.endpoints)
            }
            // What agents carry out needs room on their hosts.
            (None, Some(PlanSplit { controller: None, .. })) => Ok(Vec::new()),
            (None, Some(PlanSplit { controller: Some(own), .. })) => {
                check_limits(&own.plan, &servers.endpoints)
            }
            (_, None) => check_limits(plan, &servers.endpoints),
        }?;
        notes.iter().chain(&note).for_each(|note| self.observers.note(note));
        if let (Some(fleet), Some(shares)) = (&servers.fleet, &shares) {
            fleet.borrow_mut().divide_workers(shares);
        }
        let place = RunPosition { before: self.made, of: self.of, label: label.to_owned() };
        let record = |run| RunRecord {
            agents: match &servers.share {
                Some(share) => vec![share.record(plan)],
                None if plan.agents.is_empty() => Vec::new(),
                None => servers.agents(),
            },
            judgement: self.judgement.clone(),
            ..recorded(plan, run, data, servers.name.clone())
        };
        let mut watching = self.observers.begin(plan, &place, || record(RunData::default()));
        let ended = carry_out(plan, shares.as_ref(), servers, &self.stop, &mut watching, data);
        let summary = ended.map(|(run, convergence)| {
            // What is known of this host says nothing of others.
            let calibration = match (&servers.fleet, &servers.share) {
                (None, None) => calibrations::lookup(plan, &run.usage),
                _ => Lookup::Unfit("a calibration of this host does not apply to agents".to_owned()),
            };
            Summary::build(RunRecord { convergence, calibration, ..record(run) })
        });
        watching.end(summary.as_ref().ok());
        let summary = summary?;
        self.made += 1;
        Ok(summary)
    }

    /// The same of a run that is of no use if it was cut short.
    pub(crate) fn measure_whole(
        &mut self,
        servers: &mut Servers,
        plan: &Plan,
        label: &str,
    ) -> Result<Summary, Failure> {
        let summary = self.measure(servers, plan, label)?;
        check_agents(&summary)?;
        if summary.record.run.interrupted { Err(interrupted()) } else { Ok(summary) }
    }
}

/// What a run stores on servers of the user, before it measures or with its own writes, how long that takes at least, and what removes it.
fn storing(plan: &Plan, servers: &str) -> Option<String> {
    let (removals, kept) = (plan.removal_commands(), plan.kept());
    let (keys, bytes) = (plan.preload_stores(), quantity::bytes(serve::stored_bytes(plan)));
    let stores = plan.preload && keys > 0;
    if plan.needs_embedded() || !stores && (removals.is_empty() || !plan.writes()) {
        return kept.filter(|_| !plan.needs_embedded());
    }
    let pace = plan.preload_rate.map_or(String::new(), |rate| {
        let least = quantity::time(plan.preload_ns().unwrap_or_default() as u64);
        format!(", {:.0}/s at most: {least} (--set preload-rate=RATE for another rate)", rate.as_f64())
    });
    let removal = match removals.is_empty() {
        true => String::new(),
        false => format!("; remove them by: {}", removals.join("; ")),
    };
    let kept = kept.map_or(String::new(), |kept| format!("; {kept}"));
    Some(match stores {
        true => format!("storing {keys} keys, about {bytes} of data, on {servers}{pace}{removal}{kept}"),
        false => format!("sets store keys on {servers}{removal}{kept}"),
    })
}

/// The end that a user asks for.
pub(crate) fn interrupted() -> Failure {
    Failure::message(Exit::Interrupted, "interrupted")
}

/// Does a run leave another data set than it found: with keys missing, values grown, or versions of them that the next
/// run knows nothing of? A command of the user's may do anything.
fn consumes(plan: &Plan) -> bool {
    let takes = [OpKind::Delete, OpKind::Append, OpKind::Prepend, OpKind::Raw];
    let leaves_versions = plan.verify.is_some() && plan.writes();
    leaves_versions
        || plan
            .classes
            .iter()
            .any(|class| class.ttl_s > 0 || takes.iter().any(|kind| class.mix.contains(*kind)))
}

/// Has the engine carry out a plan, with the agents if there are any. Beside what it yields: what it has found out of what it was to.
fn carry_out(
    plan: &Plan,
    shares: Option<&PlanSplit>,
    servers: &Servers,
    stop: &AtomicBool,
    watching: &mut ObservedRun<'_, '_>,
    data: DataSets,
) -> Result<(RunData, Option<Convergence>), Failure> {
    let mut convergence = Convergence::of(plan);
    let mut started = None;
    // Agents that are not asked want to hear from us all the same.
    let (is_led, mut tended) = (shares.is_some(), Ok(()));
    let mut observe = |observed: RunEvent<'_>| {
        let is_enough = match (&observed, started, &mut convergence) {
            (RunEvent::Started(known), ..) => {
                started = Some((known.times, known.unread_ns(plan.has_open_loop())));
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
            fleet.borrow_mut().run(plan, shares, &servers.endpoints, data, stop, &mut observe)
        }
        (None, Some(_)) if let Some(share) = &servers.share => {
            let mut start = LocalOnly { start_unix_ns: Some(share.start_unix_ns) };
            run_part(plan, &share.part(plan), &servers.endpoints, data, stop, &mut observe, &mut start)
        }
        _ => brunt_engine::run::run(plan, &servers.endpoints, data, stop, &mut observe),
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
    let spare = || brunt_engine::allowed_cpus().len().saturating_sub(1).max(1) as u32;
    let shares = PlanSplit::of(plan, servers.lead.map_or_else(spare, |lead| lead.threads));
    let shares = match servers.lead {
        None => shares,
        Some(lead) => shares.and_then(|shares| shares.without_samples_of_agents(lead.meters)),
    };
    shares.map(Some).map_err(Failure::usage)
}

/// The plan as far as so many of its workers carry it out, for what it takes of a host.
pub(crate) fn of_workers(plan: &Plan, workers: u32) -> Plan {
    let mut share = plan.clone();
    for class in &mut share.classes {
        let part = u64::from(class.connections) * u64::from(workers);
        class.connections = part.div_ceil(u64::from(plan.threads)) as u32;
    }
    share.threads = workers;
    share
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
    host::check_limits(plan, &needs, &facts).map_err(|error| Failure::new(Exit::Usage, error))
}

fn no_timestamps(reason: &str) -> Failure {
    Failure::usage(format!("timestamps kernel: not supported by this kernel: {reason}"))
}

/// Says of an agent that it was lost after an interruption, which ended the run and decides about the exit code.
pub(crate) fn note_unended(summary: &Summary) {
    let mut agents = summary.record.agents.iter();
    if let Some(AgentRecord { name, lost: Some(why), .. }) =
        agents.find(|agent| agent.lost_after_interruption)
    {
        say(format_args!("error: interrupted; agent {name} {why}"));
    }
}

/// Are there as many agents as a further run needs, or as the user of another tool expects? The summary holds what a lost one recorded.
pub(crate) fn check_agents(summary: &Summary) -> Result<(), Failure> {
    note_unended(summary);
    let RunRecord { agents, plan, run, .. } = &summary.record;
    let lost = || agents.iter().filter(|agent| agent.lost.is_some() && !agent.lost_after_interruption);
    let tolerated = plan.spec.run.tolerate_lost.map_or(0, |count| count.0);
    match lost().next() {
        Some(AgentRecord { name, lost: Some(why), .. }) if lost().count() as u64 > tolerated => {
            let end = if run.interrupted { "the run ended then" } else { "no further run can begin" };
            Err(Failure::failed(format!("agent {name} {why}; {end}")))
        }
        _ => Ok(()),
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
            host: host::host_name(),
            facts: host::environment(),
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
        assert_eq!(reason, "the name has no address of IPv6, which ip-version asks for");
    }

    #[test]
    fn a_kernel_without_timestamps_is_named() {
        let failure = no_timestamps("SO_TIMESTAMPING: Invalid argument (os error 22)");
        assert_eq!(failure.exit, Exit::Usage);
        assert_eq!(
            failure.error.to_string(),
            "timestamps kernel: not supported by this kernel: SO_TIMESTAMPING: Invalid argument (os error 22)"
        );
    }
}
