//! What a tool's command line is to the program that carries it out: plans and text one way, events and summaries the other.
//!
//! Runs, signals, files, agents and streams belong to the driver in the binary. Invariant: a front end reads no clock and
//! writes nothing itself. What it knows of the world is in its arguments, so that a test can carry out any command line.

use crate::names::Names;
use crate::options::Action;
use brunt_plan::quoted_bytes::QuotedBytes;
use brunt_plan::resolve::{Host, resolve};
use brunt_plan::spec::PlanSpec;
use brunt_plan::units::DurationNs;
use brunt_stats::observer::{Event, RunPosition};
use brunt_stats::status::RunStatus;
use brunt_stats::summary::Summary;
use std::fmt::Display;
use std::io::{self, Write};

/// The environment that a tool is called in.
#[derive(Clone, Copy)]
#[allow(missing_debug_implementations, reason = "functions have nothing to show")]
pub struct Caller<'a> {
    /// The program's name as it was typed.
    pub program: &'a str,
    /// Standard output is a terminal.
    pub is_terminal: bool,
    /// Processors that it may use.
    pub allowed_cpus: &'a [u32],
    /// The user's home directory as the system's list of users has it, whatever the environment says.
    pub home: Option<&'a str>,
    /// The value of a variable of the environment.
    pub variable: &'a dyn Fn(&str) -> Option<String>,
    /// The text of a file that the command line names.
    pub read_text: &'a dyn Fn(&str) -> io::Result<String>,
}

impl Caller<'_> {
    /// Looks whether a plan can be made of this.
    ///
    /// # Errors
    /// What is wrong with it, by brunt's own options.
    pub(crate) fn check(&self, spec: &PlanSpec) -> Result<(), String> {
        let host = Host::of(self.allowed_cpus.to_vec(), 0);
        resolve(spec, &host).map(drop).map_err(|error| error.to_string())
    }
}

/// Lines of a remark each, before the runs.
pub(crate) fn as_warnings<'a>(warnings: impl IntoIterator<Item = &'a String>) -> Vec<String> {
    warnings.into_iter().map(|warning| format!("warning: {warning}")).collect()
}

/// Result of reading a command line.
pub enum Outcome {
    /// Text, and nothing is run: help, a version, a mistake.
    Answer(Answer),
    /// A tool that makes runs, or serves as an agent.
    FrontEnd(Box<dyn FrontEnd>),
}

/// Text to print, and the exit code.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Answer {
    /// The exit code.
    pub code: u8,
    /// For standard output.
    pub out: String,
    /// For standard error.
    pub err: String,
}

/// Why nothing is run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Refusal {
    /// The message for the user.
    pub message: String,
    /// The exit code, where it is not the tool's usual one.
    pub code: Option<u8>,
    /// The help follows.
    pub shows_help: bool,
}

impl From<String> for Refusal {
    fn from(message: String) -> Self {
        Self { message, ..Self::default() }
    }
}

/// What a tool says of itself.
pub(crate) struct Texts {
    /// Its name before messages.
    pub name: &'static str,
    /// The help.
    pub help: String,
    /// The version.
    pub version: String,
    /// The exit code of what is refused.
    pub code: u8,
    /// Help and version are printed on standard error.
    pub is_on_stderr: bool,
}

impl Outcome {
    /// Of a command line that was read; `run` makes a front end of one that asks for a run.
    pub(crate) fn of<L>(
        texts: Texts,
        read: Result<Action<L>, Refusal>,
        run: impl FnOnce(L) -> Result<Box<dyn FrontEnd>, Refusal>,
    ) -> Self {
        let mut answer = Answer::default();
        let text = match read {
            Ok(Action::Run(line)) => match run(*line) {
                Ok(front_end) => return Self::FrontEnd(front_end),
                Err(refusal) => Err(refusal),
            },
            // There the version comes before the help.
            Ok(Action::Help) if texts.is_on_stderr => Ok(texts.version + &texts.help),
            Ok(Action::Help) => Ok(texts.help.clone()),
            Ok(Action::Version) => Ok(texts.version),
            Err(refusal) => Err(refusal),
        };
        let text = text.unwrap_or_else(|refusal| {
            answer.code = refusal.code.unwrap_or(texts.code);
            answer.err = format!("{}: {}\n", texts.name, refusal.message);
            if refusal.shows_help { texts.help } else { String::new() }
        });
        (if texts.is_on_stderr { &mut answer.err } else { &mut answer.out }).push_str(&text);
        Self::Answer(answer)
    }
}

/// A command line that is being carried out.
pub trait FrontEnd {
    /// What the tool needs before its first run. Called once, before everything else.
    fn setup(&mut self, console: &mut Console) -> Setup;

    /// The agents that it controls are connected.
    fn agents_connected(&mut self, _agents: &[AgentCapacity], _console: &mut Console) {}

    /// The next step, given the summary of the run that has ended; the first time there is none.
    fn next(&mut self, ended: Option<Summary>, console: &mut Console) -> Next;

    /// The last run could not be made, or not completed.
    fn fail(&mut self, failure: &RunFailure, console: &mut Console) -> End;

    /// Takes an event of a run.
    fn observe(&mut self, _event: &Event<'_>, _console: &mut Console) {}

    /// The text of a page, by its number in [`ServedPages`].
    fn page(&self, _page: usize) -> String {
        String::new()
    }

    /// Writes what goes into the file of this option.
    ///
    /// # Errors
    /// Errors of writing to `out`.
    fn write_file(&self, _option: &str, _out: &mut dyn Write) -> io::Result<()> {
        Ok(())
    }
}

/// What a tool does.
#[derive(Clone, Debug)]
pub enum Setup {
    /// It is an agent, and waits for a controller.
    Agent(AgentMode),
    /// It makes runs.
    Runs(Runs),
}

/// What is known of runs before the first.
#[derive(Clone, Debug, Default)]
pub struct Runs {
    /// Plans that stand for those to come, so that a mistake is found before anything is connected; servers are found by the first.
    pub plans: Vec<PlanSpec>,
    /// Files to write when all is over.
    pub files: Vec<OutputFile>,
    /// Pages to show while runs go on, if any.
    pub shown: Option<ServedPages>,
    /// The agents to control, if any.
    pub leading: Option<ControllerMode>,
    /// The front end wants to be told of periods of this length.
    pub period: Option<DurationNs>,
}

/// A process that waits to be led.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AgentMode {
    /// Where it listens; 0 is any port that is free.
    pub port: u16,
    /// Its threads.
    pub threads: u32,
    /// How much each of them weighs.
    pub lambda_mul: u32,
    /// They are pinned.
    pub affinity: bool,
    /// They sleep, whatever the master says.
    pub blocking: bool,
    /// Nothing is said on standard error.
    pub quiet: bool,
    /// The folder of the hosts that may lead it; without one any host may.
    pub auth: Option<String>,
}

/// A process that leads others.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ControllerMode {
    /// The agents, each with its port.
    pub agents: Vec<(String, u16)>,
    /// The folder that its agents have, too: it trusts no others.
    pub auth: Option<String>,
    /// Its own threads.
    pub threads: u32,
    /// Agents tell what is metered beside counts and histograms.
    pub meters: bool,
}

/// What an agent says of itself.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AgentCapacity {
    /// Its address as the user gave it, with its port.
    pub name: String,
    /// Its host, as that calls itself.
    pub host: String,
    /// Its threads.
    pub threads: u32,
    /// How much each of them weighs.
    pub weight: u32,
}

/// A file that a front end writes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OutputFile {
    /// The option that names it.
    pub option: &'static str,
    /// Its path.
    pub path: String,
    /// Text is appended to the file, which is not replaced.
    pub is_log: bool,
}

/// Pages that a front end shows by HTTP.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServedPages {
    /// The option that says where.
    pub option: &'static str,
    /// The address.
    pub address: String,
    /// The pages.
    pub pages: &'static [Page],
}

/// A page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Page {
    /// Its path; without one it is shown at every path that no other page has.
    pub path: Option<&'static str>,
    /// Its media type.
    pub content_type: &'static str,
}

/// The next step of a front end.
#[derive(Clone, Debug)]
pub enum Next {
    /// A run.
    Run(Box<Run>),
    /// The end.
    End(End),
}

impl Next {
    /// The only run, of this specification.
    pub(crate) fn only_run(spec: PlanSpec) -> Self {
        let place = RunPosition { of: Some(1), ..RunPosition::default() };
        Self::Run(Box::new(Run { spec, place, ..Run::default() }))
    }
}

/// The end of a front end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct End {
    /// The exit code.
    pub code: u8,
    /// Files are written.
    pub saves: bool,
}

impl End {
    /// With this exit code, and without files.
    pub const fn with(code: u8) -> Self {
        Self { code, saves: false }
    }
}

/// A run to carry out.
#[derive(Clone, Debug, Default)]
pub struct Run {
    /// The plan as specified.
    pub spec: PlanSpec,
    /// The data set is stored, and that is all: a window of no length, which a specification cannot have.
    pub only_loads: bool,
    /// An earlier run stored its data set.
    pub is_stored: bool,
    /// Everything that its servers hold is deleted first.
    pub flushes: bool,
    /// Time from the start of the program before which it does not begin.
    pub begins_after: DurationNs,
    /// Which run it is.
    pub place: RunPosition,
}

/// Why there is no summary.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RunFailure {
    /// What kind of reason it is.
    pub kind: FailureKind,
    /// The message for the user, without the name of a program.
    pub message: String,
}

impl RunFailure {
    /// Says it, with the name of the tool.
    pub(crate) fn say(&self, tool: &str, console: &mut Console) {
        match self.kind {
            FailureKind::Interrupted => {
                console.say(format_args!("{tool}: interrupted before anything was measured"));
            }
            _ => console.say(format_args!("{tool}: {}", self.message)),
        }
    }
}

/// Kinds of reasons.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FailureKind {
    /// A signal asked for an end before anything was measured.
    Interrupted,
    /// A file of requests cannot be read; the message does not name the option.
    Trace,
    /// Anything else.
    Other,
}

/// What a front end prints, in its order, and what time it is.
#[derive(Clone, Debug, Default)]
pub struct Console {
    /// Since the program began.
    pub elapsed: DurationNs,
    /// Since 1970.
    pub unix: DurationNs,
    /// How far local time is ahead of that of UTC now, in seconds.
    pub utc_offset_s: i64,
    /// Files are to be written now, of a run that goes on.
    pub saves: bool,
    /// Pages are to be put up anew.
    pub shows: bool,
    names: Option<&'static Names>,
    printed: Vec<Printed>,
}

/// Text for one stream.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Printed {
    /// For standard output.
    Out(Vec<u8>),
    /// For standard error.
    Err(String),
    /// For standard error, as the result of the run: a failed write is an error.
    Report(String),
}

impl Console {
    /// At this time.
    pub fn at(elapsed: DurationNs, unix: DurationNs) -> Self {
        Self { elapsed, unix, ..Self::default() }
    }

    /// Writes brunt's messages in the option names of another tool.
    pub fn naming(self, names: &'static Names) -> Self {
        Self { names: Some(names), ..self }
    }

    /// Local time, in nanoseconds since 1970 began there.
    pub fn local_ns(&self) -> u64 {
        self.unix.0.saturating_add_signed(self.utc_offset_s * 1_000_000_000)
    }

    /// Standard output.
    pub fn out(&mut self) -> &mut Vec<u8> {
        if !matches!(self.printed.last(), Some(Printed::Out(_))) {
            self.printed.push(Printed::Out(Vec::new()));
        }
        match self.printed.last_mut() {
            Some(Printed::Out(bytes)) => bytes,
            _ => unreachable!("it was put there"),
        }
    }

    /// A line on standard error.
    pub fn say(&mut self, line: impl Display) {
        let line = format!("{line}\n");
        self.printed.push(Printed::Err(self.names.map_or(line.clone(), |names| names.translate(&line))));
    }

    /// The report of a tool that prints it on standard error.
    pub fn report(&mut self, text: String) {
        self.printed.push(Printed::Report(text));
    }

    /// What has been printed since the last time.
    pub fn take(&mut self) -> Vec<Printed> {
        std::mem::take(&mut self.printed)
    }
}

/// The status, and what decided it.
pub(crate) fn status_remarks(summary: &Summary) -> Vec<String> {
    findings(&summary.status).iter().map(|finding| format!("note: {finding}")).collect()
}

/// What a status says, and each check that decided it.
pub(crate) fn findings(status: &RunStatus) -> Vec<String> {
    let findings = status.findings().into_iter();
    let findings = findings.map(|check| format!("{}: {}", check.id.name(), check.text()));
    std::iter::once(status.headline()).chain(findings).collect()
}

/// From the beginning of the window to its end; of a run that ends after a number of requests, to when the last had its reply.
pub(crate) fn measured_seconds(summary: &Summary) -> f64 {
    let window = &summary.window;
    let end_ns = if summary.record.plan.stop.time.is_none() { window.drained_ns } else { window.end_ns };
    end_ns.saturating_sub(window.measure_ns) as f64 / 1e9
}

/// A percentile of this name in microseconds from both beginnings, due and sent, where they differ by more than a tenth.
pub(crate) fn late_remark(name: &str, [due_us, sent_us]: [Option<f64>; 2]) -> Option<String> {
    let (due_us, sent_us) = due_us.zip(sent_us).filter(|(due_us, sent_us)| *due_us > sent_us * 1.1)?;
    Some(format!("{name}: {due_us:.1} us from when a request was due, {sent_us:.1} us from when it was sent"))
}

/// Requests, as a tool calls them, that waited until there was no time left.
pub(crate) fn unsent_remark(summary: &Summary, requests: &str) -> Option<String> {
    let counts = &summary.total.requests;
    let (unsent, scheduled) = (counts.unsent, counts.scheduled);
    (unsent > 0).then(|| format!("warning: {unsent} of {scheduled} {requests} were due and never sent"))
}

/// The first error that a server replied; else the first bytes that are no reply, as when it closes a connection with a line for all.
pub(crate) fn first_error(summary: &Summary) -> Option<String> {
    let garbage = summary.counts().first_malformed.as_ref();
    let garbage = || garbage.map(|sent| format!("\"{}\": {}", QuotedBytes(sent.bytes()), sent.reason));
    summary.counts().first_error.as_ref().map(|text| format!("an error: {text}")).or_else(garbage)
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use brunt_stats::recorder::{Layout, RecorderSet};
    use brunt_stats::run_record::{RunData, RunRecord};
    use brunt_stats::store::IntervalStore;
    use brunt_stats::window::RunTimes;

    pub(crate) const MS: u64 = 1_000_000;
    /// When runs begin.
    pub(crate) const START_NS: u64 = 1_000 * MS;

    /// A program on four processors, without home, variables and files.
    pub(crate) const CALLER: Caller<'static> = Caller {
        program: "tool",
        is_terminal: false,
        allowed_cpus: &[0, 1, 2, 3],
        home: None,
        variable: &|_| None,
        read_text: &|_| Err(io::ErrorKind::NotFound.into()),
    };

    impl Outcome {
        pub(crate) fn front_end(self) -> Box<dyn FrontEnd> {
            match self {
                Self::FrontEnd(front_end) => front_end,
                Self::Answer(answer) => panic!("{answer:?}"),
            }
        }

        pub(crate) fn answer(self) -> Answer {
            match self {
                Self::Answer(answer) => answer,
                Self::FrontEnd(_) => panic!("a front end"),
            }
        }
    }

    /// What was printed, standard error in brackets.
    pub(crate) fn printed(console: &mut Console) -> Vec<String> {
        let text = |printed: Printed| match printed {
            Printed::Out(bytes) => String::from_utf8(bytes).unwrap(),
            Printed::Err(text) | Printed::Report(text) => format!("[{}]", text.trim_end()),
        };
        console.take().into_iter().map(text).filter(|text| !text.is_empty()).collect()
    }

    /// The lines of a resolved plan that differ from those of the usual one.
    pub(crate) fn changes(usual: &PlanSpec, spec: &PlanSpec) -> String {
        let host = Host { allowed_cpus: vec![0, 1, 2, 3], random_seed: 7, server_is_here: true };
        let [usual, changed] = [usual, spec].map(|spec| resolve(spec, &host).unwrap().spec.to_toml());
        let lines = changed.lines().filter(|line| !usual.lines().any(|held| held == *line));
        lines.collect::<Vec<_>>().join("; ")
    }

    /// The summary of a run of a second, with what is recorded of it, and a drain of a quarter.
    pub(crate) fn summary(spec: &PlanSpec, record: impl FnOnce(&mut RecorderSet), run: RunData) -> Summary {
        let host = Host { allowed_cpus: vec![0, 1], random_seed: 1, server_is_here: true };
        let plan = resolve(spec, &host).unwrap();
        let layout = Layout::of(&plan);
        let (mut intervals, mut set) = (IntervalStore::new(&layout), RecorderSet::new(&layout));
        let end_ns = START_NS + 1_000 * MS;
        intervals.align(START_NS);
        intervals.set_schedule(START_NS..end_ns);
        set.set_window(START_NS, end_ns);
        record(&mut set);
        intervals.push(&set.take_interval(0, START_NS, end_ns));
        let times = RunTimes {
            start_ns: START_NS,
            measure_ns: START_NS,
            end_ns,
            drained_ns: end_ns + 250 * MS,
            prepare_ns: 0,
            epoch_us: None,
        };
        let run = RunData { intervals, times, ..run };
        Summary::build(RunRecord { run, server: "h".to_owned(), ..RunRecord::of(plan) })
    }
}
