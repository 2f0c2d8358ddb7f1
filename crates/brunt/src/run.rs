//! `brunt run` and `brunt load`: the straight line as a handful of statements.
//!
//! Not a place that measures or judges: the engine does the one, `brunt-stats` the other. Invariant: nothing is
//! connected before the plan is resolved, and every result is written before the process ends.

use crate::agent;
use crate::asking;
use crate::cli::{self, FileFlags};
use crate::destination::check_standard_output;
use crate::exit::{Exit, Failure};
use crate::host_share::HostShare;
use crate::input;
use crate::measurement::{Runner, Servers, note_unended};
use crate::observers::Observers;
use crate::output::Outputs;
use crate::presentation::Form;
use crate::serve;
use crate::terminal::{print, print_brief, say, show};
use anyhow::Context;
use brunt_engine::run::DataSets;
use brunt_fleet::Fleet;
use brunt_plan::destination::WorkerGroup;
use brunt_plan::login::Password;
use brunt_plan::objective::{self, Objective};
use brunt_plan::op::OpId;
use brunt_plan::outcome::OutcomeClass;
use brunt_plan::phase::Phase;
use brunt_plan::plan::{Class, Plan, Protocol};
use brunt_plan::quoted_bytes::QuotedBytes;
use brunt_plan::resolve::{Host, resolve, threads_max};
use brunt_plan::spec::{PlanSpec, RunSpec};
use brunt_plan::units::{Count, DurationNs};
use brunt_plan::warmup::Warmup;
use brunt_report::file_type::FileType;
use brunt_report::quantity;
use brunt_report::subject::Subject;
use brunt_stats::bound::Decision;
use brunt_stats::check::Judgement;
use brunt_stats::request_counts::RequestCounts;
use brunt_stats::server_stats::{ServerRecord, ServerSpan};
use brunt_stats::summary::Summary;
use std::fmt::Display;
use std::path::Path;

/// Measures the plan of `asked`, which [`check_output`] has passed, and reports what was measured.
pub(crate) fn run(flags: &cli::Run, mut asked: PlanRequest, plan: Plan) -> Result<Exit, Failure> {
    let output = &flags.output;
    if output.print_plan {
        return print_plan(&asked.printed(&plan));
    }
    serve::check_storage(&plan, &asked.host).map_err(Failure::usage)?;
    let outputs = asked.outputs(&output.files, flags.journal.as_deref())?;
    let mut servers = Servers::open(&plan)?.with_agents(asked.fleet, None).with_share(asked.share);
    // What a signal ends by itself lies before this: files are read, servers are found.
    let mut runner = Runner::open(&flags.progress, &output.assert, output.judging.judgement())?;
    runner.of = Some(1);
    outputs.watch(&plan, &flags.progress, &mut runner.observers)?;
    note_choices(&asked.spec, &plan, &mut runner.observers);
    let summary = runner.measure(&mut servers, &plan, "")?.with_assertions(&output.assert);
    let delivery = outputs.write(Subject::Run(&summary), flags.progress.presentation());
    note_unended(&summary);
    Ok(delivery.exit(exit_of(&summary)))
}

/// Refuses results and assertions that a run of the plan cannot have.
pub(crate) fn check_output(output: &cli::OutputFlags, plan: &Plan) -> Result<(), Failure> {
    if !output.files.has(FileType::Samples) && plan.samples_max > 0 {
        let message = format!("samples-max = {} requires -o samples:PATH", plan.samples_max);
        return Err(Failure::usage(message));
    }
    check_assertions(&output.assert, plan)
}

/// Refuses assertions on requests that the plan never makes.
pub(crate) fn check_assertions(objectives: &[Objective], plan: &Plan) -> Result<(), Failure> {
    check_subjects(objectives, |objective| objective.subject, plan)
}

/// The same of what is asserted in another form.
pub(crate) fn check_subjects<T: Display>(
    asserted: &[T],
    subject: impl Fn(&T) -> objective::Subject,
    plan: &Plan,
) -> Result<(), Failure> {
    asserted.iter().try_for_each(|text| {
        let given = |reason| Failure::usage(format!("invalid value '{text}' for --assert: {reason}"));
        plan.check_subject(&subject(text)).map_err(given)
    })
}

/// Prints a plan. Nothing else comes of `--print-plan`, so it fails where that cannot be had.
pub(crate) fn print_plan(plan: &str) -> Result<Exit, Failure> {
    check_standard_output().map_err(Failure::usage)?;
    let printed = print(plan.as_bytes(), false).context("--print-plan: cannot write standard output");
    printed.map_err(|error| Failure::new(Exit::Failed, error))?;
    Ok(Exit::Done)
}

/// Stores the data set and says so.
pub(crate) fn load(flags: &cli::Load) -> Result<Exit, Failure> {
    let mut asked = PlanRequest::read(flags.plan.as_deref(), flags.planned.spec.clone())?;
    if flags.delete {
        // Sets may have stored what no preload did.
        asked.spec.run.preload = None;
    }
    let (asked, plan) = asked.ask(None, |asked| planned_load(flags, asked))?;
    let spec = &asked.spec;
    // A window of no length: the run is over when everything is stored.
    let plan = plan.changed(|PlanSpec { run, .. }| {
        // The default limit of a run, which no option set.
        run.preload_rate = spec.run.preload_rate;
        (run.warmup, run.time) = (Some(Warmup::NONE), Some(DurationNs(0)));
        (run.requests, run.until) = (None, None);
    });
    let plan = plan.map_err(Failure::usage)?;
    let keys = plan.preload_stores();
    let servers = Servers::open(&plan)?;
    let mut runner = Runner::open(&flags.progress, &[], Judgement::default())?;
    note_choices(spec, &plan, &mut runner.observers);
    let data = if flags.delete { DataSets::ToDelete } else { DataSets::ToStore };
    let summary = runner.measure_with(&servers, &plan, data, "", None)?;
    let form = flags.progress.presentation().form;
    let text = if flags.delete { deleted_text(&summary, form) } else { stored_text(&summary, keys, form) };
    match form {
        Form::Brief => print_brief(text.as_bytes(), false).map_err(Failure::failed)?,
        _ => show(text, false),
    }
    Ok(Exit::Done)
}

/// The plan of the data set, which there is, and whose keys may be deleted where they are to be.
fn planned_load(flags: &cli::Load, asked: &PlanRequest) -> Result<Plan, Failure> {
    let plan = asked.plan()?;
    if plan.needs_embedded() {
        return Err(Failure::usage("brunt load requires --server"));
    }
    if !plan.preload {
        return Err(Failure::usage(
            "brunt load requires a plan with keys to store: expected neither preload = false nor own commands (--command) alone",
        ));
    }
    if flags.delete {
        check_removable(&plan, flags.yes)?;
    }
    Ok(plan)
}

/// Refuses to delete what may be keys of others.
fn check_removable(plan: &Plan, is_sure: bool) -> Result<(), Failure> {
    if plan.data_sets().iter().any(|set| set.windows.is_some()) {
        return Err(Failure::usage(
            "--delete cannot be used with --popularity window, whose keys change while it runs",
        ));
    }
    if !is_sure && plan.classes.iter().any(|class| class.keyspace.prefix.is_empty()) {
        return Err(Failure::usage(
            "--delete requires --prefix, by which keys are told from those of others; or --yes, to delete keys without one",
        ));
    }
    Ok(())
}

/// What was deleted, in a line; every key is confirmed, or there would be a failure.
fn deleted_text(summary: &Summary, form: Form) -> String {
    let seconds = summary.record.preload.map_or(0.0, |preload| preload.duration_ns as f64 / 1e9);
    let phase = summary.phase(Phase::Preload);
    let of = |class| phase.map_or(0, |phase| phase.counts.requests.outcome(class));
    let (deleted, absent) = (of(OutcomeClass::Done), of(OutcomeClass::Rejected));
    match form {
        Form::Nothing => String::new(),
        Form::Brief => format!("deleted={deleted} absent={absent} seconds={seconds:.3}\n"),
        Form::Report(_) => {
            let took = quantity::time((seconds * 1e9) as u64);
            format!("deleted      {deleted} keys in {took}, {absent} were not there, all confirmed\n")
        }
    }
}

/// What was stored, in a line; every key is confirmed, or there would be a failure. What the servers evicted since has a line of its own.
fn stored_text(summary: &Summary, keys: u64, form: Form) -> String {
    let seconds = summary.record.preload.map_or(0.0, |preload| preload.duration_ns as f64 / 1e9);
    let rate = if seconds > 0.0 { keys as f64 / seconds } else { 0.0 };
    let sent = summary.phase(Phase::Preload).map_or(0, |phase| phase.bytes.tx);
    let servers = ServerSpan::sum(summary.record.run.server_records.iter().map(ServerRecord::span_of_run));
    let evictions = servers.and_then(|span| span.evictions);
    match form {
        Form::Nothing => String::new(),
        Form::Brief => {
            let evicted = evictions.map_or("-".to_owned(), |count| count.to_string());
            format!("stored={keys} seconds={seconds:.3} rate={rate:.0}/s bytes={sent} evicted={evicted}\n")
        }
        Form::Report(_) => {
            let (took, sent) = (quantity::time((seconds * 1e9) as u64), quantity::bytes(sent));
            let rate = match rate {
                few if few < 1e4 => format!("{few:.0}"),
                some if some < 1e6 => format!("{:.0}k", some / 1e3),
                many => format!("{:.2}M", many / 1e6),
            };
            let evicted = evictions.filter(|count| *count > 0).map_or(String::new(), |count| {
                let held = servers.and_then(|span| span.items);
                let held = held.map_or(String::new(), |items| format!(", {items} are held"));
                format!("evicted      {count} items meanwhile{held} -> more memory for the server, or fewer --keys\n")
            });
            let removals = summary.record.plan.removal_commands().into_iter();
            let removals: String = removals.map(|command| format!("removed by   {command}\n")).collect();
            format!(
                "stored       {keys} of {keys} keys in {took} ({rate}/s), {sent} sent, all confirmed\n{evicted}{removals}"
            )
        }
    }
}

/// What was asked for by file and flags, for a campaign that resolves it several times.
pub(crate) struct PlanRequest {
    /// File and flags.
    pub spec: PlanSpec,
    /// The class options that the command line gives.
    flags: Vec<String>,
    pub host: Host,
    /// The agents that the plan names.
    pub fleet: Option<Fleet>,
    /// The part of them that this host has itself.
    pub share: Option<HostShare>,
    /// Where its results go, once that is known to be possible.
    outputs: Option<Outputs>,
}

impl PlanRequest {
    /// What file and flags of a run ask for.
    pub(crate) fn of(flags: &cli::Run) -> Result<Self, Failure> {
        let mut spec = flags.planned.spec.clone();
        if flags.output.files.has(FileType::Samples) {
            spec.run.samples_max.get_or_insert(Count(1_000_000));
        }
        Self::read(flags.plan.as_deref(), spec)
    }

    /// Reads the file and lays the flags over it. Nothing is connected.
    pub(crate) fn read(path: Option<&Path>, flags: PlanSpec) -> Result<Self, Failure> {
        let given = flags.base.given();
        let spec = read_spec(path, flags)?;
        let allowed_cpus = brunt_engine::allowed_cpus();
        let server_is_here = asking::server_is_here(&spec);
        let host = Host { allowed_cpus, random_seed: random_seed(), server_is_here };
        Ok(Self { spec, flags: given, host, fleet: None, share: None, outputs: None })
    }

    /// Asks servers what they speak where nothing says it and the plan is to run, connects to the agents, and has plans made of what is known
    /// then. Whatever `planned` refuses in any case is refused before, and so are results that cannot be written.
    pub(crate) fn connect<T>(
        mut self,
        flags: &cli::Run,
        planned: impl Fn(&Self) -> Result<T, Failure>,
    ) -> Result<(Self, T), Failure> {
        agent::check_flags(&self.spec.run, &flags.hosts)?;
        self.check(&planned)?;
        let mut answer = String::new();
        if !flags.output.print_plan {
            self.outputs = Some(self.outputs(&flags.output.files, flags.journal.as_deref())?);
            answer = asking::ask(&mut self.spec)?;
        }
        if self.share.is_none() {
            self.meet_agents(flags)?;
        }
        let planned = planned(&self).map_err(|failure| failure.followed_by(&answer))?;
        Ok((self, planned))
    }

    /// Connects to the agents. Their workers are those of the plan unless it says otherwise, as many as it has connections for.
    fn meet_agents(&mut self, flags: &cli::Run) -> Result<(), Failure> {
        if self.spec.run.has_agents() {
            agent::tell_traces(&mut self.spec)?;
            Outputs::check(&flags.output.files, flags.journal.as_deref())?;
        }
        self.fleet = agent::connect_agents(&self.spec.run, &flags.hosts, flags.progress.quiet)?;
        if let (Some(fleet), None) = (&self.fleet, self.spec.run.threads) {
            let most = threads_max(&self.without_agents().plan()?);
            self.spec.run.threads = Some(Count(fleet.threads().min(most.into())));
        }
        Ok(())
    }

    /// The same of a command without agents.
    pub(crate) fn ask<T>(
        mut self,
        files: Option<&FileFlags>,
        planned: impl Fn(&Self) -> Result<T, Failure>,
    ) -> Result<(Self, T), Failure> {
        if self.spec.run.has_agents() {
            let option = if self.spec.run.fleet.is_some() { "--fleet" } else { "--agent" };
            return Err(Failure::usage(format!(
                "{option} cannot be used with this command: run, scan and search control agents"
            )));
        }
        self.check(&planned)?;
        self.outputs = files.map(|files| self.outputs(files, None)).transpose()?;
        let answer = asking::ask(&mut self.spec)?;
        let planned = planned(&self).map_err(|failure| failure.followed_by(&answer))?;
        Ok((self, planned))
    }

    /// Makes sure that results can be written; what was opened before the servers were asked is not opened again.
    pub(crate) fn outputs(&mut self, files: &FileFlags, journal: Option<&Path>) -> Result<Outputs, Failure> {
        self.outputs.take().map_or_else(|| Outputs::open(files, journal, &self.spec), Ok)
    }

    /// Refuses what `planned` refuses whether the servers that will be asked are memcached or Redis. Of several questions the answers may differ.
    fn check<T>(&self, planned: impl Fn(&Self) -> Result<T, Failure>) -> Result<(), Failure> {
        let trial = |protocol| {
            let mut trial = self.without_agents();
            let questions = asking::assume(&mut trial.spec, protocol);
            planned(&trial).map(drop).or_else(|failure| if questions > 1 { Ok(()) } else { Err(failure) })
        };
        trial(Protocol::MemcachedText).or_else(|failure| trial(Protocol::Resp2).map_err(|_| failure))
    }

    /// The same with agents that are not connected, each of which counts as one worker.
    pub(crate) fn without_agents(&self) -> Self {
        let mut spec = self.spec.clone();
        let agents = spec.run.agents().len() as u64;
        if agents > 0 {
            spec.run.threads.get_or_insert(Count(agents));
        }
        let (flags, host) = (self.flags.clone(), self.host.clone());
        Self { spec, flags, host, fleet: None, share: self.share, outputs: None }
    }

    /// A plan of ours as a file that runs as this does: without a protocol where servers are asked for it, and without the default limit of
    /// the preload, which only a run has.
    pub(crate) fn printed(&self, plan: &Plan) -> String {
        let mut spec = plan.spec.clone();
        spec.run.preload_rate = self.spec.run.preload_rate;
        if !asking::is_needed(&self.spec) {
            return spec.to_toml();
        }
        spec.run.protocol = None;
        format!("# protocol: asked of the server before the run\n{}", spec.to_toml())
    }

    /// The plan as asked for.
    pub(crate) fn plan(&self) -> Result<Plan, Failure> {
        self.resolve(&self.spec)
    }

    /// The plan of a specification that was made from ours.
    pub(crate) fn resolve(&self, spec: &PlanSpec) -> Result<Plan, Failure> {
        resolved(spec, &self.host)
    }

    /// Refuses a flag that the campaign sets itself. What a plan file says gives way.
    pub(crate) fn check_free(&self, option: &str, instead: &str) -> Result<(), Failure> {
        match self.flags.iter().any(|given| given == option) {
            false => Ok(()),
            true => Err(Failure::usage(format!("--{option} cannot be used with {instead}"))),
        }
    }
}

/// The plan of a specification of the user, whose results say what limits an open loop; not with agents, which would still preload. Its commands
/// are parsed, as their syntax depends on the protocol, which brunt-plan does not know.
fn resolved(spec: &PlanSpec, host: &Host) -> Result<Plan, Failure> {
    let plan = resolve(spec, host).map_err(|error| Failure::new(Exit::Usage, error))?;
    brunt_engine::check_commands(&plan).map_err(|error| Failure::usage(format!("--command: {error}")))?;
    Ok(Plan { measures_unloaded: plan.has_open_loop() && plan.agents.is_empty(), ..plan })
}

/// Says where a plan is otherwise than one expects: keys without the usual prefix, more workers than were asked for.
pub(crate) fn note_choices(asked: &PlanSpec, plan: &Plan, observers: &mut Observers<'_>) {
    let is_given = |index: usize| {
        let own = asked.classes.get(index).and_then(|class| class.prefix.as_ref());
        own.or(asked.base.prefix.as_ref()).is_some()
    };
    let is_bare = |(index, class): (usize, &Class)| {
        class.keyspace.prefix.is_empty() && class.trace.is_none() && !is_given(index)
    };
    if (plan.preload || plan.writes()) && plan.classes.iter().enumerate().any(is_bare) {
        observers.note("keys get no prefix: key-size leaves no room for brunt: and their numbers");
    }
    note_raised_threads(asked, plan, observers);
}

fn note_raised_threads(asked: &PlanSpec, plan: &Plan, observers: &mut Observers<'_>) {
    if asked.run.threads.is_none_or(|asked| asked.0 >= u64::from(plan.threads)) {
        return;
    }
    let share =
        |group: &WorkerGroup| format!("{} for {}", group.workers.end - group.workers.start, group.protocol);
    let shares: Vec<String> = plan.worker_groups().iter().map(share).collect();
    observers.note(&format!(
        "--threads {}: classes of different protocols run on different workers, at least one each: {}",
        plan.threads,
        shares.join(", ")
    ));
}

/// Reads a password that is in a file; its path is relative to `directory`.
fn read_password(run: &mut RunSpec, directory: &Path) -> Result<(), Failure> {
    let Some(file) = run.password.as_ref().and_then(Password::unread) else { return Ok(()) };
    let path = directory.join(file);
    let text = input::read_text(&path, input::BYTES_MAX).map_err(|error| {
        Failure::usage(format!(
            "--password: cannot read '{}' ({error}): expected @ and the path of a text file",
            path.display()
        ))
    })?;
    let password = Password::read(&path.display().to_string(), &text);
    run.password = Some(password.map_err(|error| Failure::usage(format!("--password: {error}")))?);
    Ok(())
}

/// Files that a plan names are found from where it lies.
fn find_tls_files(run: &mut RunSpec, directory: &Path) {
    for file in [&mut run.tls_ca, &mut run.tls_cert, &mut run.tls_key].into_iter().flatten() {
        *file = directory.join(&*file).display().to_string();
    }
}

/// A path as a message names it, with what was meant where it looks like a server.
fn plan_or_server(path: &Path) -> String {
    let text = path.display().to_string();
    if let (Some((scheme, _)), Some((_, place))) = (text.split_once("://"), text.rsplit_once('@')) {
        return format!("{scheme}://(secret)@{place} (a server is given by --server URL)");
    }
    if names_server(&text) {
        format!("{text} (a server is given by --server {text})")
    } else if text.ends_with('%') {
        format!("{text} (a fraction follows its option behind =: --verify={text})")
    } else if text.contains('{') {
        format!("{text} (a command is one word, in quotes: --command 'GET {{key}}')")
    } else {
        text
    }
}

/// Does it look like the address of a server, where a file is expected?
pub(crate) fn names_server(text: &str) -> bool {
    let has_port = text.rsplit_once(':').is_some_and(|(_, port)| port.parse::<u16>().is_ok());
    has_port || text.contains("://") || text.starts_with("unix:")
}

/// File and flags.
fn read_spec(path: Option<&Path>, mut flags: PlanSpec) -> Result<PlanSpec, Failure> {
    read_password(&mut flags.run, Path::new(""))?;
    let mut spec = match path {
        None => PlanSpec::default(),
        Some(path) => {
            let text = input::read_text(path, input::BYTES_MAX)
                .with_context(|| format!("cannot read the plan {}", plan_or_server(path)))
                .map_err(|error| Failure::new(Exit::Usage, error))?;
            let directory = path.parent().unwrap_or(Path::new(""));
            let text = input::fill_in(&text, directory)
                .map_err(|error| Failure::usage(format!("{}: {error}", path.display())))?;
            let mut spec = PlanSpec::from_toml(&text)
                .map_err(|error| Failure::usage(format!("{}: {error}", path.display())))?;
            read_password(&mut spec.run, directory)?;
            find_tls_files(&mut spec.run, directory);
            spec
        }
    };
    spec.overlay(flags).map_err(Failure::usage)?;
    Ok(spec)
}

/// A seed that fits the integers of TOML and JSON readers (53 bits).
pub(crate) fn random_seed() -> u64 {
    use std::hash::{BuildHasher, Hasher};
    // The standard library keys its hash maps with randomness from the kernel; an empty hash is a function of the key.
    std::collections::hash_map::RandomState::new().build_hasher().finish() >> 11
}

/// What is said of a run without a valid reply, at all or to something: what came first in place of one, and what the user may have
/// meant.
pub(crate) fn no_valid_reply(summary: &Summary, what: &str) -> String {
    let counts = summary.counts();
    let error = counts.first_error.as_ref().map(|error| (format!("it said: {error}"), error.bytes()));
    let garbage = counts.first_malformed.as_ref().map(|garbage| {
        (format!("it sent \"{}\": {}", QuotedBytes(garbage.bytes()), garbage.reason), garbage.bytes())
    });
    let server = &summary.record.server;
    match error.or(garbage) {
        Some((said, bytes)) => {
            format!(
                "{server} gave no valid reply {what} ({said}){}",
                brunt_engine::hint(&summary.record.plan, bytes)
            )
        }
        None => format!("{server} gave no valid reply {what}"),
    }
}

/// What the servers never gave a valid reply to: a command, to which they had nothing but errors, or everything, whatever the phase.
fn refused(summary: &Summary) -> Option<String> {
    let is_refused = |op: &OpId| {
        let mut requests = RequestCounts::default();
        let entries = summary.phases.iter().flat_map(|phase| &phase.ops).filter(|entry| entry.op == *op);
        entries.for_each(|entry| requests.merge(&entry.counts.requests));
        requests.ended() > 0 && requests.ended() == requests.outcome(OutcomeClass::Error)
    };
    let plan = &summary.record.plan;
    let mut commands = (0..plan.commands.len()).map(OpId::of_command);
    if let Some(op) = commands.find(is_refused) {
        return Some(format!("to {}", plan.op_name(op)));
    }
    // Noreply requests have no response, so they count as answered.
    let is_answered =
        |requests: &RequestCounts| requests.completed() + requests.outcome(OutcomeClass::Unacknowledged) > 0;
    let is_silent = !summary.phases.iter().any(|phase| is_answered(&phase.counts.requests));
    // Nor is there a reply to what was never sent.
    let connections = summary.record.run.intervals.all_connections();
    let is_asked = summary.phases.iter().any(|phase| phase.counts.requests.sent > 0)
        || connections.failed + connections.lost > 0;
    (is_silent && is_asked).then(|| "at all".to_owned())
}

/// The exit code of a run that was reported.
pub(crate) fn exit_of(summary: &Summary) -> Exit {
    let any = |decision| summary.assertions.iter().any(|assertion| assertion.decision == decision);
    match refused(summary) {
        Some(what) if !summary.record.run.interrupted => {
            say(format_args!("error: {}", no_valid_reply(summary, &what)));
            Exit::Unreachable
        }
        _ => {
            let is_doubtful = summary.status.is_invalid() || any(Decision::Undecided);
            Exit::of(summary.record.run.interrupted, any(Decision::Fails), is_doubtful)
        }
    }
}
