//! Another tool's command line, carried out: its runs are made, its text is printed, its files are written.
//!
//! Not what it comes to, nor a word of what it says: that is the tool's front end, of `brunt-compat`; what agents that it leads, or is one of, say
//! to each other is `brunt-fleet`'s, so that agents of `brunt agent` and these are the same. Invariants: what a front end prints
//! comes out in its order and in pieces that do not mix with others'; where standard output, or a report on standard error, cannot be
//! written, the run ends, no further one is begun, and that is a failure unless its reader went away; every end has an exit code of the
//! front end's; standard output of an agent stays empty, for mutilate's agents are silent, and they listen on all addresses, as mutilate's do.

use crate::agent;
use crate::destination::{Destination, Document};
use crate::exit::{Exit, Failure};
use crate::host;
use crate::http::{self, Endpoint, HttpAddress, Text};
use crate::input;
use crate::interrupt;
use crate::measurement::{AgentOptions, Runner, Servers, check_agents, interrupted};
use crate::observers::Observers;
use crate::output::note_files;
use crate::terminal::{name_of, print, say, show};
use brunt_compat::front_end::{
    AgentCapacity, AgentMode, Caller, Console, ControllerMode, End, FailureKind, FrontEnd, Next, Outcome,
    Printed, Run, RunFailure, Runs, ServedPages, Setup,
};
use brunt_compat::names::Names;
use brunt_compat::tools::Tool;
use brunt_engine::process::cannot;
use brunt_engine::run::DataSets;
use brunt_engine::{TraceError, check_traces, input_file};
use brunt_fleet::{Fleet, STARTING_MAX, TargetFiles};
use brunt_plan::plan::Plan;
use brunt_plan::resolve::{Host, PlanError, resolve};
use brunt_plan::spec::PlanSpec;
use brunt_plan::units::DurationNs;
use brunt_stats::check::Judgement;
use brunt_stats::observer::{Event, Observer, RunPosition};
use brunt_stats::summary::Summary;
use brunt_stats::usage::AgentRecord;
use std::convert::Infallible;
use std::io::{self, IsTerminal};
use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant, SystemTime};

/// Agents that have nothing to do hear from us this often.
const KEEP_ALIVE: Duration = Duration::from_millis(250);

/// Carries out a command line, without the program's name, which was typed so.
pub(crate) fn carry_out(tool: &Tool, program: &str, arguments: &[String]) -> ExitCode {
    let began = Instant::now();
    let host = Host {
        allowed_cpus: brunt_engine::allowed_cpus(),
        random_seed: crate::run::random_seed(),
        server_is_here: true,
    };
    let home = home();
    let caller = Caller {
        program,
        is_terminal: io::stdout().is_terminal(),
        allowed_cpus: &host.allowed_cpus,
        home: home.as_deref(),
        variable: &|name| std::env::var(name).ok(),
        read_text: &|path| input::read_text(Path::new(path), input::BYTES_MAX),
    };
    match tool.read(arguments, &caller) {
        Outcome::Answer(answer) => {
            let written = OutputState::of(false, answer.out.as_bytes());
            show(answer.err, true);
            match written {
                OutputState::Lost(message) => {
                    say(format_args!("{}: {message}", tool.name));
                    ExitCode::FAILURE
                }
                OutputState::Read | OutputState::Unread => ExitCode::from(answer.code),
            }
        }
        Outcome::FrontEnd(mut front_end) => {
            let mut screen = FrontEndHost::new(&mut *front_end, began, tool.names);
            let code = match Driver::new(&mut screen, host) {
                Ok(mut driver) => driver.drive(),
                Err(failure) => screen.fail(failure).code,
            };
            ExitCode::from(code)
        }
    }
}

/// Of the user who runs this, from the list of users of this host; users of others, whom it does not have, have the variable.
fn home() -> Option<String> {
    let user = rustix::process::getuid().as_raw().to_string();
    let users = input_file::read_text(Path::new("/etc/passwd"), input::BYTES_MAX).unwrap_or_default();
    let mut users = users.lines().map(|line| line.split(':').collect::<Vec<_>>());
    let listed =
        users.find(|fields| fields.len() >= 6 && fields[2] == user).map(|fields| fields[5].to_owned());
    listed.or_else(|| std::env::var("HOME").ok())
}

/// Whether the report and the text for standard output were written.
#[derive(Clone, Debug, PartialEq, Eq)]
enum OutputState {
    /// It has a reader, as far as is known.
    Read,
    /// The reader of a pipe went away.
    Unread,
    /// It, or a file, could not be written: what to tell the user.
    Lost(String),
}

impl OutputState {
    /// Writes this to standard output, or, of a report, to standard error.
    fn of(is_report: bool, text: &[u8]) -> Self {
        if text.is_empty() {
            return Self::Read;
        }
        match print(text, is_report) {
            Ok(()) => Self::Read,
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Self::Unread,
            Err(error) => Self::Lost(format!("cannot write {}: {error}", name_of(is_report))),
        }
    }
}

/// A front end and what becomes of its text.
struct FrontEndHost<'a> {
    front_end: &'a mut dyn FrontEnd,
    /// When the program began.
    began: Instant,
    names: &'static Names,
    output: OutputState,
    files: Vec<Destination>,
    /// Where pages of the front end are shown, and how many they are.
    shown: Option<(Endpoint, usize)>,
    /// Of the periods that the front end asks for.
    period: Option<DurationNs>,
    /// Ends the present run.
    stop: Arc<AtomicBool>,
}

impl<'a> FrontEndHost<'a> {
    fn new(front_end: &'a mut dyn FrontEnd, began: Instant, names: &'static Names) -> Self {
        let (files, stop) = (Vec::new(), Arc::default());
        Self { front_end, began, names, output: OutputState::Read, files, shown: None, period: None, stop }
    }

    /// Asks the front end, and prints what it says to that.
    fn with_console<T>(&mut self, action: impl FnOnce(&mut dyn FrontEnd, &mut Console) -> T) -> T {
        let unix = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        let ns = |duration: Duration| DurationNs(duration.as_nanos() as u64);
        let mut console = Console::at(ns(self.began.elapsed()), ns(unix)).naming(self.names);
        console.utc_offset_s = brunt_engine::process::utc_offset_s(unix.as_secs() as i64);
        let answer = action(self.front_end, &mut console);
        for printed in console.take() {
            let (is_report, text) = match printed {
                Printed::Out(text) => (false, text),
                Printed::Report(text) => (true, text.into_bytes()),
                Printed::Err(text) => {
                    show(text, true);
                    continue;
                }
            };
            if self.output == OutputState::Read {
                self.output = OutputState::of(is_report, &text);
            }
        }
        if std::mem::take(&mut console.shows)
            && let Some((endpoint, pages)) = &self.shown
        {
            endpoint.put(self.texts(*pages));
        }
        if std::mem::take(&mut console.saves)
            && let Err(message) = self.save()
        {
            self.output = OutputState::Lost(message);
        }
        answer
    }

    /// Writes every file.
    fn save(&self) -> Result<(), String> {
        self.files.iter().try_for_each(|file| {
            file.write(|out| self.front_end.write_file(&file.document.option(), out))?.check()
        })
    }

    /// Begins to show the pages of the front end.
    fn show(&mut self, shown: &ServedPages) -> Result<(), Failure> {
        let ServedPages { option, address, pages } = shown;
        let unfit = |_| {
            Failure::usage(format!(
                "invalid value '{address}' for {option}: expected {}",
                HttpAddress::ACCEPTED
            ))
        };
        let address: HttpAddress = address.parse().map_err(unfit)?;
        let texts = self.texts(pages.len());
        let endpoint = Endpoint::open(option, address, pages.to_vec(), texts)?;
        match endpoint.note() {
            (note, true) => say(format_args!("note: {note}")),
            (note, false) => {
                self.with_console(|front_end, console| front_end.observe(&Event::Note(&note), console))
            }
        }
        self.shown = Some((endpoint, pages.len()));
        Ok(())
    }

    /// The texts of the first pages, by their number.
    fn texts(&self, pages: usize) -> Vec<Text> {
        let text = |page| {
            let text = self.front_end.page(page);
            http::text(move || text.into_bytes().into())
        };
        (0..pages).map(text).collect()
    }

    fn fail(&mut self, failure: RunFailure) -> End {
        self.with_console(|front_end, console| front_end.fail(&failure, console))
    }

    /// The end of a run whose output has no reader any more; that is no failure.
    fn end_unread(&mut self) -> End {
        match &self.output {
            OutputState::Lost(message) => {
                self.fail(RunFailure { kind: FailureKind::Other, message: message.clone() })
            }
            OutputState::Read | OutputState::Unread => End::with(0),
        }
    }
}

impl Observer for &mut FrontEndHost<'_> {
    fn period(&self) -> Option<DurationNs> {
        self.period
    }

    fn observe(&mut self, event: &Event<'_>) {
        self.with_console(|front_end, console| front_end.observe(event, console));
        if self.output != OutputState::Read {
            self.stop.store(true, Ordering::Relaxed);
        }
    }
}

/// A front end that is being carried out.
struct Driver<'a, 'b> {
    screen: &'a mut FrontEndHost<'b>,
    host: Host,
    servers: Servers,
}

impl<'a, 'b> Driver<'a, 'b> {
    /// Finds everything that the front end takes. One that waits to be led does so here, until a signal ends the process.
    fn new(screen: &'a mut FrontEndHost<'b>, host: Host) -> Result<Self, RunFailure> {
        let runs = match screen.with_console(|front_end, console| front_end.setup(console)) {
            Setup::Agent(mode) => match serve_controllers(&mode).map_err(failure_of)? {},
            Setup::Runs(runs) => runs,
        };
        let Runs { plans, files, shown, leading, period } = runs;
        screen.period = period;
        let fleet = leading.as_ref().map(enlist).transpose().map_err(failure_of)?;
        if let Some(fleet) = &fleet {
            let crews = capacities(fleet);
            screen.with_console(|front_end, console| front_end.agents_connected(&crews, console));
        }
        let lead = leading.map(|ControllerMode { threads, meters, .. }| AgentOptions { threads, meters });
        let plans = plans.iter().map(|spec| plan(spec, &host)).collect::<Result<Vec<_>, _>>()?;
        for plan in &plans {
            check_traces(plan).map_err(|TraceError { file, error }| RunFailure {
                kind: FailureKind::Trace,
                message: format!("cannot read '{file}' ({error}): expected the path of a file"),
            })?;
            note_files(&plan.spec);
        }
        let asked: Vec<_> = files
            .iter()
            .map(|file| (Document::OfTool(file.option, file.is_log), Path::new(&file.path)))
            .collect();
        screen.files = Destination::open_all(&asked).map_err(failure_of)?;
        shown.map_or(Ok(()), |shown| screen.show(&shown)).map_err(failure_of)?;
        let first = plans.first().expect("a front end that makes runs has a plan");
        let servers = Servers::open(first).map_err(failure_of)?.with_agents(fleet, lead);
        // Before this a signal ends the process at once: nothing has been measured, and agents, files and name servers may be slow.
        screen.stop = interrupt::flag().map_err(|error| failure_of(Failure::failed(error)))?;
        Ok(Self { screen, host, servers })
    }

    /// Makes runs until the front end has no more. Returns the exit code.
    fn drive(&mut self) -> u8 {
        let mut ended = None;
        loop {
            let next = self.screen.with_console(|front_end, console| front_end.next(ended.take(), console));
            let end = match (next, &self.screen.output) {
                (Next::Run(run), OutputState::Read) => match (self.run(&run), &self.screen.output) {
                    (Ok(summary), OutputState::Read) => {
                        ended = Some(summary);
                        continue;
                    }
                    (Err(failure), OutputState::Read) => self.screen.fail(failure),
                    _ => self.screen.end_unread(),
                },
                (Next::End(end), OutputState::Read | OutputState::Unread) => end,
                // Nothing else comes of it.
                _ => self.screen.end_unread(),
            };
            return self.end(end);
        }
    }

    fn run(&mut self, run: &Run) -> Result<Summary, RunFailure> {
        let mut plan = plan(&run.spec, &self.host)?;
        if run.only_loads {
            plan = plan.changed(|spec| spec.run.time = Some(DurationNs(0))).map_err(refused)?;
        }
        self.wait(run.begins_after).map_err(failure_of)?;
        if run.flushes {
            self.servers.flush(&plan).map_err(failure_of)?;
        }
        let data = match run.is_stored && plan.preload {
            true => DataSets::Stored,
            false => DataSets::ToStore,
        };
        let (RunPosition { before: made, of, label }, stop) = (&run.place, self.screen.stop.clone());
        let observers = Observers::only(&mut *self.screen);
        let mut runner = Runner { stop, observers, judgement: Judgement::default(), of: *of, made: *made };
        let summary = runner.measure_with(&self.servers, &plan, data, label, None);
        summary.and_then(|summary| check_agents(&summary).map(|()| summary)).map_err(failure_of)
    }

    /// Waits until the program has run for this time.
    fn wait(&self, begins_after: DurationNs) -> Result<(), Failure> {
        let until = self.screen.began + Duration::from_nanos(begins_after.0);
        loop {
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Ok(());
            }
            if self.screen.stop.load(Ordering::Relaxed) {
                return Err(interrupted());
            }
            self.servers.pause(left.min(KEEP_ALIVE))?;
        }
    }

    /// Writes what is to be written. Returns the exit code.
    fn end(&mut self, End { code, saves }: End) -> u8 {
        match if saves { self.screen.save() } else { Ok(()) } {
            Ok(()) => code,
            Err(message) => self.screen.fail(RunFailure { kind: FailureKind::Other, message }).code,
        }
    }
}

fn plan(spec: &PlanSpec, host: &Host) -> Result<Plan, RunFailure> {
    resolve(spec, host).map_err(refused)
}

fn refused(error: PlanError) -> RunFailure {
    RunFailure { kind: FailureKind::Other, message: error.to_string() }
}

fn failure_of(failure: Failure) -> RunFailure {
    let kind = match failure.exit {
        Exit::Interrupted => FailureKind::Interrupted,
        _ => FailureKind::Other,
    };
    RunFailure { kind, message: format!("{:#}", failure.error) }
}

/// Waits for masters until a signal ends the process.
fn serve_controllers(mode: &AgentMode) -> Result<Infallible, Failure> {
    let note = |text: &str| {
        if !mode.quiet {
            say(format_args!("note: agent: {text}"));
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
        say(format_args!(
            "warning: unauthenticated agent: any host that reaches {address} can direct its load; set --auth"
        ));
    }
    note(&format!("listening on {address}"));
    let cpus = if mode.affinity && mode.threads > 1 { brunt_engine::allowed_cpus() } else { Vec::new() };
    let agent = brunt_fleet::Agent {
        credentials,
        info: agent::info(mode.threads, mode.lambda_mul),
        cpus,
        sleeps: mode.blocking,
        traces: Vec::new(),
        target: TargetFiles::default(),
        open: Arc::new(agent::open),
        keep: &|_, _, _, _| {},
        note: &note,
    };
    host::raise_open_files();
    agent.serve(&listener)
}

/// Meets the agents that are asked for. They may have been started a moment ago, for mutilate's master waits for them.
fn enlist(leading: &ControllerMode) -> Result<Fleet, Failure> {
    let credentials =
        agent::controller_credentials(leading.auth.as_deref().map(Path::new)).map_err(Failure::usage)?;
    let mut fleet = Fleet::open(&leading.agents, &credentials, STARTING_MAX).map_err(Failure::failed)?;
    // As mutilate.
    fleet.ends_with_loss = true;
    Ok(fleet)
}

/// What they have.
fn capacities(fleet: &Fleet) -> Vec<AgentCapacity> {
    let crew = |(record, (threads, weight)): (AgentRecord, (u32, u32))| {
        let AgentRecord { name, host, .. } = record;
        AgentCapacity { name, host, threads, weight }
    };
    fleet.records().into_iter().zip(fleet.capacities()).map(crew).collect()
}

#[cfg(test)]
#[path = "../../brunt-server/tests/it/in_thread.rs"]
mod in_thread;

#[cfg(test)]
mod tests {
    use super::in_thread::{options, serve_in_thread};
    use super::*;
    use brunt_plan::phase::Phase;
    use brunt_stats::histogram::Histogram;
    use brunt_stats::observer::RunPosition;
    use brunt_stats::request_counts::OpCounts;

    /// A tool whose report is what it was told.
    #[derive(Default)]
    struct Listener {
        server: String,
        told: Vec<String>,
        op_counts: OpCounts,
        response: Histogram,
        periods: Vec<(Phase, f64)>,
        ended: Option<Summary>,
    }

    impl FrontEnd for Listener {
        fn setup(&mut self, _console: &mut Console) -> Setup {
            let period = Some(DurationNs::from_millis(200));
            Setup::Runs(Runs { plans: vec![self.spec()], period, ..Runs::default() })
        }

        fn next(&mut self, ended: Option<Summary>, _console: &mut Console) -> Next {
            self.told.push(format!("next {}", ended.is_some()));
            if ended.is_some() {
                self.ended = ended;
                return Next::End(End::with(3));
            }
            let place = RunPosition { before: 0, of: Some(1), label: "only".to_owned() };
            Next::Run(Box::new(Run { spec: self.spec(), place, ..Run::default() }))
        }

        fn fail(&mut self, failure: &RunFailure, _console: &mut Console) -> End {
            self.told.push(failure.message.clone());
            End::with(1)
        }

        fn observe(&mut self, event: &Event<'_>, _console: &mut Console) {
            let told = match event {
                Event::Run { place, .. } => format!("run {} of {:?}", place.before, place.of),
                Event::Started(times) => {
                    format!("started for {} ms", times.duration_ns() / 1_000_000)
                }
                Event::Ended { summary, .. } => format!("ended {}", summary.is_some()),
                Event::Period(period) => {
                    self.periods.push((period.phase, period.seconds()));
                    let entries = period.recorded.request_counts().entries();
                    entries
                        .filter(|entry| entry.phase == Phase::Measure)
                        .for_each(|entry| self.op_counts.merge(&entry.counts));
                    let rows = period.recorded.rows();
                    rows.for_each(|(.., row)| self.response.merge(&row.latencies.response));
                    return;
                }
                _ => return,
            };
            self.told.push(told);
        }
    }

    impl Listener {
        fn spec(&self) -> PlanSpec {
            let server = &self.server;
            let text = format!(
                "server = \"{server}\"\nthreads = 1\ntime = \"700ms\"\nwarmup = \"100ms\"\nrate = \"2k\"\nkeys = 100"
            );
            PlanSpec::from_toml(&text).unwrap()
        }
    }

    static NAMES: Names = Names { options: &[], table: &[] };

    /// Carries it out, against a reference server of its own, as far as `drive` does.
    fn driven<T>(listener: &mut Listener, drive: impl FnOnce(&mut Driver<'_, '_>) -> T) -> T {
        listener.server = serve_in_thread(options(brunt_server::CoreOptions::default())).to_string();
        let host = Host::of(brunt_engine::allowed_cpus(), 7);
        let mut screen = FrontEndHost::new(listener, Instant::now(), &NAMES);
        let mut driver = Driver::new(&mut screen, host).unwrap_or_else(|failure| panic!("{failure:?}"));
        drive(&mut driver)
    }

    /// Of a run that really was: whatever was counted or timed is in one of the periods.
    #[test]
    fn periods_add_up_to_the_summary() {
        let mut listener = Listener::default();
        assert_eq!(driven(&mut listener, |driver| driver.drive()), 3);
        let expected = ["next false", "run 0 of Some(1)", "started for 700 ms", "ended true", "next true"];
        assert_eq!(listener.told, expected);
        let summary = listener.ended.as_ref().unwrap();
        assert!(listener.response.count() > 700, "{} requests", listener.response.count());
        assert_eq!(listener.op_counts.requests, summary.total.requests);
        assert_eq!(listener.op_counts.keys, summary.total.keys);
        assert_eq!(listener.response, *summary.total.latency.response.histogram);
        let of = |phase| listener.periods.iter().filter(move |(held, _)| *held == phase);
        // 200 ms three times, and the rest of the window.
        assert_eq!((of(Phase::Warmup).count(), of(Phase::Measure).count()), (1, 4), "{:?}", listener.periods);
        let measured_s = of(Phase::Measure).map(|(_, seconds)| seconds).sum::<f64>();
        assert!((measured_s - 0.7).abs() < 1e-6, "{measured_s} s");
    }

    #[test]
    fn runs_stop_when_the_reader_is_gone() {
        let mut listener = Listener::default();
        let mut code_of = |output: OutputState| {
            listener.told.clear();
            let code = driven(&mut listener, |driver| {
                driver.screen.output = output;
                driver.drive()
            });
            (code, listener.told.join(", "))
        };
        assert_eq!(code_of(OutputState::Unread), (0, "next false".to_owned()));
        assert_eq!(code_of(OutputState::Lost("why".to_owned())), (1, "next false, why".to_owned()));
        // Whose reader goes away while it runs.
        let ended = driven(&mut listener, |driver| {
            driver.screen.output = OutputState::Unread;
            let Next::Run(run) = driver.screen.front_end.next(None, &mut Console::default()) else {
                return None;
            };
            driver.run(&run).err()
        });
        assert_eq!(ended.map(|failure| failure.kind), Some(FailureKind::Interrupted));
    }
}
