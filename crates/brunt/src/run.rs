//! `brunt run` and `brunt load`: the straight line as a handful of statements.
//!
//! Not a place that measures or judges: the engine does the one, `brunt-stats` the other. Invariant: nothing is
//! connected before the plan is resolved, and every result is written before the process ends.

use crate::cli;
use crate::embedded::Embedded;
use crate::environment;
use crate::exit::{Exit, Failure};
use crate::facts::Facts;
use crate::interrupt;
use crate::limits::{self, Needs};
use crate::option_file;
use crate::output::Outputs;
use crate::progress::Progress;
use anyhow::Context;
use brunt_engine::run::{Endpoint, RunData, RunError};
use brunt_plan::outcome::OutcomeClass;
use brunt_plan::plan::{Plan, Target};
use brunt_plan::resolve::{Host, resolve};
use brunt_plan::server::ServerAddress;
use brunt_plan::spec::{ClassSpec, PlanSpec, RunSpec};
use brunt_plan::units::DurationNs;
use brunt_stats::summary::{Environment, MeasuredWindow, PreloadResult, Summary, SummaryInput};
use brunt_stats::usage::ClientUsage;
use brunt_stats::verdict::Status;
use std::io::{self, Write};
use std::net::{SocketAddr, ToSocketAddrs};
use std::path::Path;
use std::sync::atomic::AtomicBool;

/// Measures, and reports what was measured.
pub(crate) fn run(flags: &cli::Run) -> Result<Exit, Failure> {
    let (run, class) = flags.spec();
    let plan = read_plan(flags.plan.as_deref(), run, class)?;
    let output = &flags.output;
    if output.samples.is_none() && plan.samples_max > 0 {
        return Err(Failure::usage(
            "--samples-max: raw samples are kept for --samples PATH, which is not given",
        ));
    }
    if output.print_plan {
        io::stdout().write_all(PlanSpec::from(&plan).to_toml().as_bytes())?;
        return Ok(Exit::Done);
    }
    let outputs = Outputs::open(output)?;
    let stop = interrupt::flag()?;
    let measured = measure(&plan, &stop, &flags.progress)?;
    let summary = summarise(plan, measured);
    outputs.write(&summary, flags.progress.quiet)?;
    Ok(exit_of(&summary, output.allow_untrusted))
}

/// Stores the data set and says so.
pub(crate) fn load(flags: &cli::Load) -> Result<Exit, Failure> {
    let (run, class) = flags.spec();
    let mut plan = read_plan(flags.plan.as_deref(), run, class)?;
    if !plan.preload || plan.target == Target::Embedded {
        return Err(Failure::usage(
            "--server: nothing was given (or preload is off); accepted: the address of a server that goes on running",
        ));
    }
    // A window of no length: the run is over when everything is stored.
    plan.warmup = DurationNs(0);
    plan.stop.time = Some(DurationNs(0));
    plan.stop.requests = None;
    let stop = interrupt::flag()?;
    let keys = plan.preload_stores();
    let measured = measure(&plan, &stop, &flags.progress)?;
    if !flags.progress.quiet {
        let seconds = measured.data.times.prepare_ns as f64 / 1e9;
        writeln!(
            io::stdout(),
            "stored {keys} keys at {} in {seconds:.3} s, every one confirmed",
            measured.server
        )?;
    }
    Ok(Exit::Done)
}

/// The plan of file and flags, resolved.
pub(crate) fn read_plan(path: Option<&Path>, run: RunSpec, class: ClassSpec) -> Result<Plan, Failure> {
    let mut spec = match path {
        None => PlanSpec::default(),
        Some(path) => {
            let text = std::fs::read_to_string(path)
                .with_context(|| format!("cannot read the plan {}", path.display()))
                .map_err(|error| Failure::new(Exit::Usage, error))?;
            let directory = path.parent().unwrap_or(Path::new(""));
            let text = option_file::fill_in(&text, directory)
                .map_err(|error| Failure::usage(format!("{}: {error}", path.display())))?;
            PlanSpec::from_toml(&text)
                .map_err(|error| Failure::usage(format!("{}: {error}", path.display())))?
        }
    };
    spec.overlay(run, class).map_err(|flags| {
        let flags: Vec<String> = flags.iter().map(|flag| format!("--{flag}")).collect();
        Failure::usage(format!(
            "{}: the plan has several classes; accepted: the same key inside the [[class]] it is meant for",
            flags.join(" ")
        ))
    })?;
    let host = Host { allowed_cpus: brunt_engine::allowed_cpus(), random_seed: random_seed() };
    resolve(&spec, &host).map_err(|error| Failure::new(Exit::Usage, error))
}

/// A seed that fits the integers of TOML and JSON readers (53 bits).
fn random_seed() -> u64 {
    use std::hash::{BuildHasher, Hasher};
    // The standard library keys its hash maps with randomness from the kernel; an empty hash is a function of the key.
    std::collections::hash_map::RandomState::new().build_hasher().finish() >> 11
}

/// A run with what the report says of its server.
struct Measured {
    data: RunData,
    server: String,
}

/// Finds or starts the server, and carries out the plan.
fn measure(plan: &Plan, stop: &AtomicBool, shown: &cli::ProgressFlags) -> Result<Measured, Failure> {
    // Before the server is started, which inherits it.
    limits::raise_open_files();
    let (embedded, servers) = match &plan.target {
        Target::Servers(servers) => (None, servers.clone()),
        Target::Embedded => {
            crate::embedded::check_memory(plan).map_err(Failure::usage)?;
            let embedded = Embedded::start(plan).map_err(|error| Failure::new(Exit::Unreachable, error))?;
            let address = embedded.address.clone();
            (Some(embedded), vec![address])
        }
    };
    let endpoints = servers.iter().map(find).collect::<Result<Vec<_>, _>>()?;
    foresee(plan, &endpoints, shown.quiet)?;
    let mut progress = Progress::new(shown, plan);
    let ended = brunt_engine::run::run(plan, &endpoints, stop, &mut |observed| progress.observe(observed));
    // Whatever comes next, an error or a report, does not share its line.
    drop(progress);
    let data = ended.map_err(|error| {
        let exit = match &error {
            RunError::Unreachable { .. } | RunError::PreloadFailed { .. } => Exit::Unreachable,
            RunError::Interrupted => Exit::Interrupted,
            RunError::System(_) => Exit::Failed,
        };
        Failure::new(exit, error)
    })?;
    let names: Vec<String> = servers.iter().map(ServerAddress::to_string).collect();
    let server = match embedded {
        Some(_) => format!("reference server, started for this run at {}", names.join(", ")),
        None => names.join(", "),
    };
    Ok(Measured { data, server })
}

/// Refuses a plan that this host has no room for, and says where it may become tight.
fn foresee(plan: &Plan, endpoints: &[Endpoint], quiet: bool) -> Result<(), Failure> {
    let facts = Facts::read();
    // The first address is the one that is tried first.
    let addresses: Vec<SocketAddr> = endpoints.iter().map(|endpoint| endpoint.addresses[0]).collect();
    let needs = Needs::of(plan, &addresses, facts.time_wait_reuse);
    let notes = limits::foresee(plan, &needs, &facts).map_err(|error| Failure::new(Exit::Usage, error))?;
    if !quiet {
        notes.iter().for_each(|note| eprintln!("note: {note}"));
    }
    Ok(())
}

/// Every address of a server's name.
pub(crate) fn find(server: &ServerAddress) -> Result<Endpoint, Failure> {
    let trouble = |reason: String| {
        Failure::new(Exit::Unreachable, anyhow::anyhow!("cannot resolve {server}: {reason}"))
    };
    let addresses =
        (server.host.as_str(), server.port).to_socket_addrs().map_err(|error| trouble(error.to_string()))?;
    let endpoint = Endpoint { server: server.clone(), addresses: addresses.collect() };
    if endpoint.addresses.is_empty() {
        Err(trouble("the name has no address".to_owned()))
    } else {
        Ok(endpoint)
    }
}

fn summarise(plan: Plan, measured: Measured) -> Summary {
    let Measured { data, server } = measured;
    let wanted = plan.preload_stores();
    let preload = plan.preload.then_some(PreloadResult {
        wanted,
        // The run would not have begun with less.
        confirmed: wanted,
        duration_ns: data.times.prepare_ns,
    });
    Summary::build(SummaryInput {
        store: data.intervals,
        window: MeasuredWindow {
            start_ns: data.times.start_ns,
            measure_ns: data.times.measure_ns,
            end_ns: data.times.end_ns,
            drained_ns: data.times.drained_ns,
        },
        values_checked: true,
        values_foreign: data.values_foreign,
        samples: data.samples,
        samples_overflow: data.samples_overflow,
        first_garbage: data.garbage,
        first_error: data.error_text.map(|text| text.escape_ascii().to_string()),
        usage: ClientUsage {
            cpu_user_ns: data.usage.cpu_user_ns,
            cpu_system_ns: data.usage.cpu_system_ns,
            syscalls: data.usage.syscalls,
            io: data.io.to_owned(),
            wait: data.wait.name().to_owned(),
            threads: plan.threads,
            workers: data.workers,
        },
        environment: Environment {
            brunt_version: env!("CARGO_PKG_VERSION").to_owned(),
            facts: environment::facts(),
        },
        interrupted: data.interrupted,
        preload,
        server,
        plan,
    })
}

/// The exit code of a run that was reported.
fn exit_of(summary: &Summary, allow_untrusted: bool) -> Exit {
    // Whoever asks for no reply cannot miss it.
    let is_answered = summary.phases.iter().any(|phase| {
        let requests = &phase.book.requests;
        requests.completed() + requests.outcome(OutcomeClass::Unacknowledged) > 0
    });
    if summary.interrupted {
        Exit::Interrupted
    } else if !is_answered {
        eprintln!("brunt: {} gave no valid reply at all", summary.server);
        Exit::Unreachable
    } else if summary.verdict.status == Status::NotTrusted && !allow_untrusted {
        Exit::NotTrusted
    } else {
        Exit::Done
    }
}
