//! `brunt agent`, and the agents of a run.
//!
//! Wiring: what controllers and agents say to each other is `brunt-fleet`'s. Invariant: an agent that lets everyone in listens to its own
//! host only.

use crate::cli;
use crate::destination::{Destination, Document};
use crate::exit::{Exit, Failure};
use crate::host;
use crate::host_share;
use crate::input;
use crate::measurement::{Servers, check_limits, of_workers, recorded};
use crate::terminal::{say, show};
use brunt_engine::TlsSettings;
use brunt_engine::coordinator::RemoteError;
use brunt_engine::process::cannot;
use brunt_engine::run::RunData;
use brunt_fleet::agent_traces::{AgentTrace, tell_contents};
use brunt_fleet::message::AgentInfo;
use brunt_fleet::rank::Rank;
use brunt_fleet::{AgentCredentials, ControllerCredentials, Fleet, PORT, TargetFiles, credentials};
use brunt_plan::plan::Plan;
use brunt_plan::resolve::fleet::{self, is_this_host, split};
use brunt_plan::sockets::{Identity, TlsOptions};
use brunt_plan::spec::{PlanSpec, RunSpec};
use brunt_plan::units::Count;
use brunt_report::file_type::{FileRequest, FileType};
use brunt_stats::run_record::RunRecord;
use brunt_stats::summary::Summary;
use std::io;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, TcpListener};
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

/// Waits for controllers until a signal ends the process.
pub(crate) fn agent(flags: &cli::Agent) -> Result<Exit, Failure> {
    if let Some(folder) = &flags.new_auth {
        return new_auth(folder);
    }
    let credentials = agent_credentials(flags.trust.auth.as_deref()).map_err(Failure::usage)?;
    let target = target_files(flags)?;
    let json = flags.output.as_ref().map_or(Ok(None), json_file)?;
    let rank = rank(flags)?;
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
    let info = AgentInfo { rank, ..info(flags.threads.unwrap_or(spare.max(1) as u32), 1) };
    let keep = |plan: &Plan, workers: Range<u32>, run: &RunData, data| {
        let Some(json) = &json else { return };
        let server = plan.addresses().iter().map(ToString::to_string).collect::<Vec<_>>().join(", ");
        let agents = vec![host_share::record(host::host_name(), workers)];
        let summary = Summary::build(RunRecord { agents, ..recorded(plan, run.clone(), data, server) });
        let written = json.write(|out| brunt_report::json::write(&summary, out));
        if let Err(error) = written.and_then(|written| written.check()) {
            say(format_args!("error: {error}"));
        }
    };
    host::raise_open_files();
    let traces = flags.trace.iter().map(|path| trace_of(path)).collect::<Result<_, _>>()?;
    let is_open = credentials.is_open();
    let agent = brunt_fleet::Agent {
        credentials,
        info,
        cpus,
        sleeps: false,
        traces,
        target,
        open: Arc::new(open),
        keep: &keep,
        note: &note,
    };
    if let Some(controller) = &flags.join {
        let controller = controller_of(controller, is_open)?;
        let joined = agent.join(&controller, Duration::from_nanos(flags.join_timeout.0));
        let name = fleet::joined(&controller.0, controller.1);
        return joined
            .map(|()| Exit::Done)
            .map_err(|why| Failure::failed(format!("controller {name}: {why}")));
    }
    let listener = listen(flags.listen, is_open)?;
    let address =
        listener.local_addr().map_err(cannot("read the address of --listen")).map_err(Failure::failed)?;
    // The port may have been chosen by the kernel.
    show(format!("listening on {address}\n"), false);
    agent.serve(&listener)
}

/// A trace that this host has. All of it is read.
fn trace_of(path: &str) -> Result<AgentTrace, Failure> {
    let trace = std::path::absolute(path).and_then(|path| AgentTrace::read(path.display().to_string()));
    trace.map_err(|error| {
        Failure::usage(format!("trace: cannot read '{path}' ({error}): expected the path of a file"))
    })
}

/// Lets a plan for agents tell what is in its traces instead of where they are. Returns where that is.
pub(crate) fn tell_traces(spec: &mut PlanSpec) -> Result<Vec<String>, Failure> {
    let mut paths = Vec::new();
    tell_contents(spec, |path| {
        let AgentTrace { path, identity, .. } = trace_of(path)?;
        paths.push(path);
        Ok::<_, Failure>(identity)
    })?;
    Ok(paths)
}

/// The rank of an agent that joins a fleet: that of its options, else that of its engine.
fn rank(flags: &cli::Agent) -> Result<Option<Rank>, Failure> {
    let engines = || Rank::of_environment(|name| std::env::var(name).ok()).map_err(Failure::usage);
    match (&flags.join, flags.rank.zip(flags.of)) {
        (None, _) => Ok(None),
        (Some(_), Some((index, of))) => {
            let attempt = engines().ok().flatten().map_or(0, |rank| rank.attempt);
            Rank::new(index, of, attempt)
                .map(Some)
                .map_err(|why| Failure::usage(format!("--rank, --of: {why}")))
        }
        (Some(_), None) => match engines()? {
            Some(rank) => Ok(Some(rank)),
            None => Err(Failure::usage(
                "--join requires --rank R --of N where no engine gives a rank (Slurm, Kubernetes, Open MPI, PMI)",
            )),
        },
    }
}

/// The controller that an agent dials: one of this host, unless they authenticate each other.
fn controller_of(named: &str, is_open: bool) -> Result<(String, u16), Failure> {
    let (host, port) = split(named).ok_or_else(|| {
        Failure::usage(format!(
            "invalid value '{named}' for --join: expected HOST or HOST:PORT, an IPv6 address in brackets"
        ))
    })?;
    if is_open && !is_this_host(host) {
        return Err(Failure::usage(format!(
            "--join {named} requires --auth DIR, or any program that answers there directs the load; brunt agent --new-auth DIR makes one"
        )));
    }
    Ok((host.to_owned(), port.unwrap_or(PORT)))
}

/// Makes sure that the file can be written that an agent has: JSON.
fn json_file(FileRequest { form, path }: &FileRequest) -> Result<Option<Destination>, Failure> {
    if *form != FileType::Json.into() {
        return Err(Failure::usage(format!(
            "invalid value '{}' for {}: expected a JSON file, such as out.json or json:-",
            path.display(),
            form.option()
        )));
    }
    Ok(Destination::open_all(&[(Document::Result(*form), path)])?.pop())
}

/// Makes the folder of a fleet, and says what to do with it.
fn new_auth(folder: &Path) -> Result<Exit, Failure> {
    credentials::create(folder).map_err(Failure::usage)?;
    let folder = folder.display();
    show(
        format!(
            "wrote {folder}; copy it to every host, readable by its owner only (scp -rp {folder} HOST:)\n\
             then brunt agent --auth {folder} on the hosts that load, and brunt run --auth {folder} --agent HOST here\n"
        ),
        false,
    );
    Ok(Exit::Done)
}

/// Whom an agent lets in: everyone without a folder.
pub(crate) fn agent_credentials(folder: Option<&Path>) -> Result<AgentCredentials, String> {
    note_files(folder);
    folder.map_or(Ok(AgentCredentials::OPEN), AgentCredentials::of_agent)
}

/// Takes the files of an authentication folder for ones that are read, so that no result replaces them. Warns of secrets that others can
/// read.
fn note_files(folder: Option<&Path>) {
    for path in folder.map(credentials::files).iter().flatten() {
        input::note(path);
    }
    // No error: secrets that a container is given may have modes that cannot be changed there.
    for path in folder.map(credentials::exposed_secrets).into_iter().flatten() {
        let path = path.display();
        say(format_args!("warning: '{path}' is accessible to other users: chmod 600 '{path}'"));
    }
}

/// Whom a controller talks to: everyone without a folder.
pub(crate) fn controller_credentials(folder: Option<&Path>) -> Result<ControllerCredentials, String> {
    note_files(folder);
    folder.map_or(Ok(ControllerCredentials::OPEN), ControllerCredentials::of_controller)
}

/// The port that is asked for, else the usual one: of all addresses, but for an open agent those of this host.
fn listen(asked: Option<SocketAddr>, is_open: bool) -> Result<TcpListener, Failure> {
    let listened = match asked {
        Some(address) if is_open && !address.ip().is_loopback() => {
            return Err(Failure::usage(format!(
                "--listen {address} requires --auth DIR, or any host that reaches it directs the load; brunt agent --new-auth DIR makes \
                 one"
            )));
        }
        Some(address) if address.ip() == Ipv6Addr::UNSPECIFIED => listen_everywhere(address.port()),
        Some(address) => TcpListener::bind(address),
        None if is_open => TcpListener::bind((Ipv4Addr::LOCALHOST, PORT)),
        None => listen_everywhere(PORT),
    };
    listened.map_err(|error| {
        let given = asked.map_or_else(|| PORT.to_string(), |address| address.to_string());
        Failure::usage(format!(
            "invalid value '{given}' for --listen ({error}): expected an address of this host and a free port"
        ))
    })
}

/// All addresses of this host, whatever families it has.
pub(crate) fn listen_everywhere(port: u16) -> io::Result<TcpListener> {
    TcpListener::bind((Ipv6Addr::UNSPECIFIED, port)).or_else(|error| match error.kind() {
        io::ErrorKind::AddrInUse | io::ErrorKind::PermissionDenied => Err(error),
        _ => TcpListener::bind((Ipv4Addr::UNSPECIFIED, port)),
    })
}

/// What it has for TLS with servers, which is read once to see whether it can be.
fn target_files(flags: &cli::Agent) -> Result<TargetFiles, Failure> {
    let pair = flags.target_cert.clone().zip(flags.target_key.clone());
    let identity = pair.map(|(certificate, key)| Identity { certificate, key });
    let ca = flags.target_ca.clone();
    [&flags.target_ca, &flags.target_cert, &flags.target_key]
        .into_iter()
        .flatten()
        .for_each(|path| input::note(Path::new(path)));
    if ca.is_some() || identity.is_some() {
        let options = TlsOptions { ca: ca.clone(), identity: identity.clone(), ..TlsOptions::default() };
        // The same files as of a plan, by other names.
        let renamed = |message: String| message.replace("--tls-", "--target-");
        TlsSettings::read(&options).map_err(|message| Failure::usage(renamed(message)))?;
    }
    Ok(TargetFiles { ca, identity })
}

/// What an agent says of itself: how many workers it has, where the controller does not say otherwise, and how much each of them weighs.
pub(crate) fn info(threads: u32, weight: u32) -> AgentInfo {
    AgentInfo {
        host: host::host_name(),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        threads,
        weight,
        rank: None,
    }
}

/// Finds the servers of a plan, and checks the limits of this host for this number of workers.
pub(crate) fn open(plan: &Plan, workers: u32) -> Result<Vec<brunt_engine::run::Endpoint>, RemoteError> {
    let blame = |failure: Failure| RemoteError {
        is_server_error: failure.exit == Exit::Unreachable,
        reason: format!("{:#}", failure.error),
    };
    let endpoints = Servers::endpoints_of_agent(plan).map_err(blame)?;
    // Where it may become tight is said where the plan is.
    check_limits(&of_workers(plan, workers), &endpoints).map_err(blame)?;
    Ok(endpoints)
}

/// Refuses options that do not fit the agents that a plan names.
pub(crate) fn check_flags(run: &RunSpec, hosts: &cli::ControllerFlags) -> Result<(), Failure> {
    let agents = run.agents().len();
    if hosts.trust.auth.is_some() && agents == 0 {
        return Err(Failure::usage("--auth requires --agent or --fleet"));
    }
    if hosts.listen.is_some() && run.fleet.is_none() {
        return Err(Failure::usage("--listen requires --fleet"));
    }
    check_threads(run)
}

/// Each agent has a worker.
pub(crate) fn check_threads(run: &RunSpec) -> Result<(), Failure> {
    let agents = run.agents().len();
    match run.threads {
        Some(threads) if threads.0 < agents as u64 => Err(Failure::usage(format!(
            "--threads is below the number of agents: expected at least {agents}, one for each"
        ))),
        _ => Ok(()),
    }
}

/// Meets the agents that a plan names.
pub(crate) fn connect_agents(
    run: &RunSpec,
    hosts: &cli::ControllerFlags,
    is_quiet: bool,
) -> Result<Option<Fleet>, Failure> {
    if !run.has_agents() {
        return Ok(None);
    }
    let credentials = controller_credentials(hosts.trust.auth.as_deref()).map_err(Failure::usage)?;
    if let Some(Count(size)) = run.fleet {
        let listener = listen(hosts.listen, credentials.is_open())?;
        host::raise_open_files();
        let note: fn(&str) = if is_quiet { |_| {} } else { |text| say(format_args!("fleet: {text}")) };
        return Fleet::gather(listener, size as u32, credentials, note).map(Some).map_err(Failure::failed);
    }
    let agents = run.agent.iter().flatten().filter_map(|agent| split(agent));
    let names: Vec<(String, u16)> =
        agents.map(|(host, port)| (host.to_owned(), port.unwrap_or(PORT))).collect();
    Fleet::open(&names, &credentials, Duration::ZERO).map(Some).map_err(Failure::failed)
}
