//! A command line of mutilate that is carried out: the data set is stored, then come the runs of its campaign, each with its report.
//!
//! Not where options are read or rows are written: those are [`super::command_line`] and [`super::report`]. Invariant: standard output
//! holds what mutilate's would, and everything else is a line on standard error.

use super::command_line::{
    self, CommandLine, EXIT_REFUSED, Generation, ScanRange, SearchBound, VERSION, help,
};
use super::invocation::{Campaign, Invocation};
use super::report::{self, Layout};
use super::search::Search;
use crate::front_end::{
    AgentCapacity, AgentMode, Caller, Console, ControllerMode, End, FailureKind, FrontEnd, Next, Outcome,
    OutputFile, Run, RunFailure, Runs, Setup, Texts,
};
use brunt_plan::server::ServerAddress;
use brunt_plan::units::DurationNs;
use brunt_stats::observer::{Event, RunPosition};
use brunt_stats::summary::Summary;
use std::io::{self, Write};

/// Ctrl-C, as the shell counts it.
const EXIT_INTERRUPTED: u8 = 130;

/// Reads a command line without the program's name: text to print at once, or a front end that makes runs.
pub fn read(arguments: &[String], generation: Generation, caller: &Caller<'_>) -> Outcome {
    let texts = Texts {
        name: "mutilate",
        help: help(),
        version: format!("{VERSION}\n"),
        code: EXIT_REFUSED,
        is_on_stderr: false,
    };
    Outcome::of(texts, command_line::parse(arguments), |(line, of_options)| {
        if line.agentmode {
            return Ok(Box::new(Agent(line)));
        }
        let invocation = Invocation::new(line, generation.max(of_options), caller.allowed_cpus)?;
        Ok(Box::new(Master::new(invocation)))
    })
}

/// Says why nothing comes of it, also where mutilate is told to be quiet: the reason for a failure is always printed.
fn refuse(message: &str, console: &mut Console) -> End {
    console.say(format_args!("mutilate: {message}"));
    End::with(EXIT_REFUSED)
}

/// `--agentmode`.
struct Agent(CommandLine);

impl FrontEnd for Agent {
    fn setup(&mut self, console: &mut Console) -> Setup {
        let Self(line) = self;
        let said = line.warnings.iter().filter(|_| !line.quiet);
        said.for_each(|warning| console.say(format_args!("warning: {warning}")));
        Setup::Agent(AgentMode {
            port: line.agent_port,
            threads: line.threads,
            lambda_mul: line.lambda_mul,
            affinity: line.affinity,
            blocking: line.blocking,
            quiet: line.quiet,
            auth: line.auth.clone(),
        })
    }

    fn next(&mut self, _ended: Option<Summary>, _console: &mut Console) -> Next {
        Next::End(End::with(0))
    }

    fn fail(&mut self, failure: &RunFailure, console: &mut Console) -> End {
        refuse(&failure.message, console)
    }
}

/// Everything else.
struct Master {
    invocation: Invocation,
    /// The agents, in their order.
    agents: Vec<AgentCapacity>,
    /// Every key is where it belongs.
    is_stored: bool,
    stage: Stage,
    /// When the measured window of the present run begins, until that was said.
    begins_ns: Option<u64>,
    /// The run that was reported, if there was one.
    reported: Option<ReportedRun>,
}

/// What the present run is for.
enum Stage {
    Loading,
    /// The one measurement.
    Measuring,
    Scanning {
        range: ScanRange,
        qps: u64,
    },
    SearchState(Box<SearchState>),
}

/// A search on its way.
struct SearchState {
    bound: SearchBound,
    search: Search,
    /// The rate of the present run.
    qps: u64,
    runs: u64,
    /// What the first run came to.
    peak_qps: Option<f64>,
    best: Option<ReportedRun>,
}

/// A run that was made.
struct ReportedRun {
    summary: Summary,
    /// When its window began, in seconds from the start of the program.
    after_s: f64,
}

impl FrontEnd for Master {
    fn setup(&mut self, console: &mut Console) -> Setup {
        let invocation = &self.invocation;
        invocation.warnings.iter().for_each(|warning| self.say(console, &format!("warning: {warning}")));
        self.verbose(console, 2, &format!("options->records = {}", invocation.records));
        let line = &invocation.line;
        let leads = line.has_agents() && invocation.campaign != Campaign::LoadOnly;
        Setup::Runs(Runs {
            plans: vec![invocation.loading(), invocation.measuring(0)],
            // For mutilate `-` is a file of that name.
            files: line
                .save
                .iter()
                .map(|path| OutputFile {
                    option: "--save",
                    path: if path == "-" { "./-".to_owned() } else { path.clone() },
                    is_log: false,
                })
                .collect(),
            leading: leads.then(|| ControllerMode {
                agents: invocation.agents(),
                auth: line.auth.clone(),
                threads: line.threads,
                meters: line.agent_sampling,
            }),
            ..Runs::default()
        })
    }

    fn agents_connected(&mut self, agents: &[AgentCapacity], console: &mut Console) {
        self.agents = agents.to_vec();
        for AgentCapacity { name, host, threads, weight } in agents {
            self.verbose(console, 1, &format!("agent {name} ({host}): {threads} threads of weight {weight}"));
        }
        let warning = self.invocation.agents_warning(&self.agents);
        warning.iter().for_each(|warning| self.say(console, &format!("warning: {warning}")));
    }

    fn next(&mut self, ended: Option<Summary>, console: &mut Console) -> Next {
        let Some(summary) = ended else { return self.begin(console) };
        self.is_stored = !self.invocation.line.noload;
        if matches!(self.stage, Stage::Loading) {
            self.verbose(console, 2, "Finished loading.");
            return self.first(console);
        }
        let requests = &summary.total.requests;
        if !summary.record.run.interrupted && requests.scheduled > 0 && requests.completed() == 0 {
            return Next::End(self.fail(&no_reply(&summary), console));
        }
        let window = &summary.window;
        let since_s = window.drained_ns.saturating_sub(window.measure_ns) as f64 / 1e9;
        let after_s = seconds(console.elapsed) - since_s;
        self.measured(ReportedRun { summary, after_s }, console)
    }

    fn fail(&mut self, failure: &RunFailure, console: &mut Console) -> End {
        let end = match failure.kind {
            FailureKind::Interrupted => {
                // What was found until then is shown.
                self.report_best(console);
                End::with(EXIT_INTERRUPTED)
            }
            FailureKind::Trace => refuse(&format!("--read_file: {}", failure.message), console),
            FailureKind::Other => refuse(&failure.message, console),
        };
        End { saves: self.reported.is_some(), ..end }
    }

    fn observe(&mut self, event: &Event<'_>, console: &mut Console) {
        match event {
            Event::Note(note) => self.say(console, &format!("note: {note}")),
            // mutilate says so of a single measurement alone.
            Event::Started(times) if matches!(self.stage, Stage::Measuring) => {
                self.begins_ns = Some(times.measure_ns);
            }
            Event::Tick { now_ns, .. } if self.begins_ns.is_some_and(|begins_ns| *now_ns >= begins_ns) => {
                let since_ns = now_ns - self.begins_ns.take().unwrap_or_default();
                let at_s = seconds(console.unix) - since_ns as f64 / 1e9;
                self.verbose(console, 1, &format!("started at {at_s:.6}"));
            }
            Event::Ended { summary: Some(summary), .. } => self.stopped(summary, console),
            _ => {}
        }
    }

    fn write_file(&self, _option: &str, out: &mut dyn Write) -> io::Result<()> {
        let Some(ReportedRun { summary, after_s }) = &self.reported else { return Ok(()) };
        report::write_samples(out, summary, self.layout(), *after_s)
    }
}

impl Master {
    fn new(invocation: Invocation) -> Self {
        let (agents, reported) = (Vec::new(), None);
        Self { invocation, agents, is_stored: false, stage: Stage::Loading, begins_ns: None, reported }
    }

    /// The servers are known, and nothing has been sent yet.
    fn begin(&mut self, console: &mut Console) -> Next {
        let campaign = &self.invocation.campaign;
        if let Campaign::Search(SearchBound { percentile, bound_us }) = campaign {
            self.inform(
                console,
                &format!("Search-mode.  Find QPS @ {bound_us}us {percentile}th percentile."),
            );
        }
        self.name_servers(console);
        // Agents store their shares before the first run that they are in.
        let is_asked = !self.invocation.line.noload || *campaign == Campaign::LoadOnly;
        if !self.agents.is_empty() || !is_asked {
            return self.first(console);
        }
        self.verbose(console, 1, "Loading database.");
        Next::Run(Box::new(Run { spec: self.invocation.loading(), only_loads: true, ..Run::default() }))
    }

    /// The first measurement.
    fn first(&mut self, console: &mut Console) -> Next {
        let qps = self.invocation.line.qps;
        match self.invocation.campaign {
            Campaign::LoadOnly => Next::End(End::with(0)),
            Campaign::Run => {
                self.stage = Stage::Measuring;
                self.run(qps, RunPosition { of: Some(1), ..RunPosition::default() }, console)
            }
            Campaign::Scan(range) => {
                let _ = report::write_scan_head(console.out());
                self.scan(range, range.min, console)
            }
            Campaign::Search(bound) => {
                let search = Search::new(bound.bound_us);
                let searching = SearchState { bound, search, qps, runs: 0, peak_qps: None, best: None };
                self.stage = Stage::SearchState(Box::new(searching));
                self.run(qps, RunPosition::default(), console)
            }
        }
    }

    /// A measurement at this rate.
    fn run(&self, qps: u64, place: RunPosition, console: &mut Console) -> Next {
        // Until `--wait` allows what is measured, warm-up before it.
        let before_s = self.invocation.line.wait_s.saturating_sub(self.invocation.line.warmup_s);
        let begins_after = DurationNs::from_secs(before_s);
        if begins_after > console.elapsed {
            let left_s = seconds(begins_after) - seconds(console.elapsed);
            self.verbose(console, 1, &format!("Sleeping {left_s:.1}s for -W."));
        }
        let spec = self.invocation.leading(qps, &self.agents);
        let is_stored = self.is_stored;
        Next::Run(Box::new(Run { spec, is_stored, begins_after, place, ..Run::default() }))
    }

    /// The present run was a measurement.
    fn measured(&mut self, measured: ReportedRun, console: &mut Console) -> Next {
        let cut = cut_short(&measured.summary);
        match std::mem::replace(&mut self.stage, Stage::Measuring) {
            Stage::Loading | Stage::Measuring => {
                self.report(measured, None, console);
                let whole = End { code: 0, saves: true };
                Next::End(cut.map_or(whole, |failure| self.fail(&failure, console)))
            }
            Stage::Scanning { range, qps } => {
                let _ = report::write_scan_row(console.out(), &measured.summary, self.layout(), qps);
                self.remark(&measured.summary, &format!("target {qps}: "), console);
                match cut {
                    None => self.scan(range, qps + range.step, console),
                    Some(failure) => Next::End(self.fail(&failure, console)),
                }
            }
            Stage::SearchState(mut searching) => {
                let next_qps =
                    if cut.is_none() { self.judge(&mut searching, measured, console) } else { None };
                let place = RunPosition { before: searching.runs, ..RunPosition::default() };
                self.stage = Stage::SearchState(searching);
                match (cut, next_qps) {
                    (Some(failure), _) => Next::End(self.fail(&failure, console)),
                    (None, Some(qps)) => self.run(qps, place, console),
                    (None, None) => {
                        self.report_best(console);
                        Next::End(End { code: 0, saves: self.reported.is_some() })
                    }
                }
            }
        }
    }

    /// The step of a scan at this rate, if it has one.
    fn scan(&mut self, range: ScanRange, qps: u64, console: &mut Console) -> Next {
        if qps > range.max {
            return Next::End(End::with(0));
        }
        self.stage = Stage::Scanning { range, qps };
        let step = |qps: u64| (qps - range.min) / range.step;
        let (before, of) = (step(qps), Some(step(range.max) + 1));
        self.run(qps, RunPosition { before, of, label: format!("target {qps}") }, console)
    }

    /// What a run of a search came to. Returns the rate of the next one, if there is any.
    fn judge(
        &self,
        searching: &mut SearchState,
        measured: ReportedRun,
        console: &mut Console,
    ) -> Option<u64> {
        let (summary, qps) = (&measured.summary, searching.qps);
        let achieved = report::rate(summary, self.layout());
        let nth_us = report::read_percentile_us(summary, self.layout(), searching.bound.percentile);
        // Where nothing was read nothing can be judged, and the bound is not met.
        let nth_us = nth_us.unwrap_or(f64::INFINITY);
        match searching.peak_qps {
            None => self.inform(console, &format!("peak qps = {achieved:.0}, nth = {nth_us:.1}")),
            Some(_) => {
                self.inform(console, &format!("cur_qps = {qps}, get_qps = {achieved:.6}, nth = {nth_us:.6}"))
            }
        }
        searching.peak_qps.get_or_insert(achieved);
        let decision = searching.search.decide(achieved, nth_us);
        if decision.is_best {
            searching.best = Some(measured);
        }
        searching.runs += 1;
        searching.qps = decision.next_qps.unwrap_or(qps);
        decision.next_qps
    }

    /// The best run of a search, if there has been any.
    fn report_best(&mut self, console: &mut Console) {
        let Stage::SearchState(searching) = &mut self.stage else { return };
        let Some(best) = searching.best.take() else { return };
        let (peak_qps, SearchBound { percentile, bound_us }) = (searching.peak_qps, searching.bound);
        if !searching.search.has_met() {
            self.say(
                console,
                &format!(
                    "warning: no run had a {percentile}th percentile of at most {bound_us} us; the last one is shown"
                ),
            );
        }
        self.report(best, peak_qps, console);
    }

    fn report(&mut self, measured: ReportedRun, peak_qps: Option<f64>, console: &mut Console) {
        let out = console.out();
        // Memory takes everything.
        let _ = report::write_report(out, &measured.summary, self.layout(), peak_qps);
        if let Some(path) = &self.invocation.line.save {
            let _ = writeln!(out, "Saving latency samples to {path}.");
        }
        self.remark(&measured.summary, "", console);
        self.reported = Some(measured);
    }

    /// Says what is to be said of a run; `of` tells it from others.
    fn remark(&self, summary: &Summary, of: &str, console: &mut Console) {
        if self.invocation.line.misswindow > 0 {
            let windows = report::miss_windows(
                summary,
                self.invocation.line.misswindow,
                self.invocation.line.follows(),
            );
            for (requests, part) in windows {
                self.say(console, &format!("note: misswindow {requests},{part:.4}"));
            }
        }
        for (kind, remark) in report::remarks(summary, self.layout()) {
            self.say(console, &format!("{kind}: {of}{remark}"));
        }
    }

    /// What is said when a run is over.
    fn stopped(&self, summary: &Summary, console: &mut Console) {
        for agent in &summary.record.agents {
            let us = agent.clock_error_ns as f64 / 1e3;
            self.verbose(console, 1, &format!("agent {}: clock known to {us:.1} us", agent.name));
        }
        if matches!(self.stage, Stage::Measuring) {
            let since_ns = summary.window.drained_ns.saturating_sub(summary.window.end_ns);
            let at_s = seconds(console.unix) - since_ns as f64 / 1e9;
            let time_s = self.invocation.line.time_s;
            self.verbose(console, 1, &format!("stopped at {at_s:.6}  options.time = {time_s}"));
        }
    }

    /// What mutilate says of its servers and its distributions when it is asked for everything.
    fn name_servers(&self, console: &mut Console) {
        for server in &self.invocation.servers {
            if let ServerAddress::Network { host, .. } = server {
                self.verbose(console, 2, &format!("Resolved {host} to {server}"));
            }
            for generator in &self.invocation.generators {
                self.verbose(console, 2, generator);
            }
            self.verbose(console, 2, &format!("Connected to {server}."));
        }
    }

    fn layout(&self) -> Layout {
        Layout {
            generation: self.invocation.generation,
            successful: self.invocation.line.successful,
            legacy_latency: self.invocation.line.legacy_latency,
            masters_rows: self.invocation.line.has_agents() && !self.invocation.line.agent_sampling,
        }
    }

    fn say(&self, console: &mut Console, text: &str) {
        if !self.invocation.line.quiet {
            console.say(text);
        }
    }

    /// A line of mutilate's log, at its usual level.
    fn inform(&self, console: &mut Console, text: &str) {
        self.say(console, &format!("mutilate(0): {text}"));
    }

    /// One for which it has to be asked: its level is where mutilate has a line of its source.
    fn verbose(&self, console: &mut Console, level: usize, text: &str) {
        if self.invocation.line.verbose >= level {
            self.say(console, &format!("mutilate({level}): {text}"));
        }
    }
}

/// What ended a run before its time, if anything did: Ctrl-C, or a file that cannot be read to its end.
fn cut_short(summary: &Summary) -> Option<RunFailure> {
    if summary.record.run.interrupted {
        return Some(RunFailure { kind: FailureKind::Interrupted, message: String::new() });
    }
    let broken = summary.record.run.traces.iter().find_map(|record| Some((record, record.error.as_ref()?)));
    broken.map(|(record, error)| RunFailure {
        kind: FailureKind::Trace,
        message: format!("'{}' ends behind line {}: {error}", record.file, record.lines.read),
    })
}

/// Of a run without any valid reply: what there was instead.
fn no_reply(summary: &Summary) -> RunFailure {
    let said = match (&summary.counts().first_error, &summary.counts().first_malformed) {
        (Some(text), _) => format!("; it said: {text}"),
        (None, Some(garbage)) => format!("; of what came: {}", garbage.reason),
        (None, None) => String::new(),
    };
    let message = format!("{} gave no valid reply to any request{said}", summary.record.server);
    RunFailure { kind: FailureKind::Other, message }
}

fn seconds(time: DurationNs) -> f64 {
    time.0 as f64 / 1e9
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::front_end::Answer;
    use crate::front_end::Printed;
    use crate::front_end::tests::CALLER;
    use crate::options::tests::words;
    use brunt_stats::window::RunTimes;

    fn asked(line: &str) -> Outcome {
        read(&words(line), Generation::First, &CALLER)
    }

    /// What is said on standard error until the window of the first run has begun, at 5.25 s after 1970.
    fn said(line: &str) -> String {
        let mut front_end = asked(line).front_end();
        let mut console = Console::at(DurationNs(0), DurationNs(5_250_000_000));
        front_end.setup(&mut console);
        front_end.next(None, &mut console);
        let times = RunTimes { measure_ns: 1_000_000_000, ..RunTimes::default() };
        front_end.observe(&Event::Started(times), &mut console);
        for now_ns in [990_000_000, 1_250_000_000, 1_350_000_000] {
            front_end.observe(&Event::Tick { now_ns }, &mut console);
        }
        let text = |printed: Printed| match printed {
            Printed::Out(_) => String::new(),
            Printed::Err(text) | Printed::Report(text) => text,
        };
        console.take().into_iter().map(text).collect()
    }

    #[test]
    fn the_log_has_mutilates_order() {
        let search = "mutilate(0): Search-mode.  Find QPS @ 900us 95th percentile.\n";
        let table = [
            ("-s h --search 95:900", search.to_owned()),
            // One run after the other has neither a beginning nor an end in mutilate's log.
            ("-v -s h --search 95:900", format!("{search}mutilate(1): Loading database.\n")),
            ("-v -s h --search 95:900 --noload", search.to_owned()),
            (
                "-vv -s h -K 9 -V 8 --search 95:900",
                format!(
                    "mutilate(2): options->records = 10000\n{search}mutilate(2): Resolved h to h:11211\nmutilate(2): \
                     Fixed(8.000000)\nmutilate(2): Fixed(9.000000)\nmutilate(2): Exponential(0.000000)\n\
                     mutilate(2): Connected to h:11211.\nmutilate(1): Loading database.\n"
                ),
            ),
            ("-v -s h --noload", "mutilate(1): started at 5.000000\n".to_owned()),
            ("-v -s h --noload --scan 1:2:1", String::new()),
            (
                "-v -s h --noload -W 3 -w 1",
                "mutilate(1): Sleeping 2.0s for -W.\nmutilate(1): started at 5.000000\n".to_owned(),
            ),
            ("-v -s h --quiet --search 95:900", String::new()),
        ];
        for (line, expected) in table {
            assert_eq!(said(line), expected, "{line}");
        }
    }

    #[test]
    fn answers_and_failures_have_mutilates_exit_codes() {
        assert_eq!(
            asked("--version").answer(),
            Answer { code: 0, out: "mutilate 0.1\n".to_owned(), err: String::new() }
        );
        let answer = asked("-Z").answer();
        assert!(answer.code == 1 && answer.err.starts_with("mutilate: "), "{answer:?}");
        let table = [
            (FailureKind::Interrupted, 130, ""),
            (FailureKind::Trace, 255, "mutilate: --read_file: why\n"),
            (FailureKind::Other, 255, "mutilate: why\n"),
        ];
        for (kind, code, said) in table {
            let mut front_end = asked("-s h --quiet").front_end();
            let mut console = Console::default();
            let end = front_end.fail(&RunFailure { kind, message: "why".to_owned() }, &mut console);
            assert_eq!(end, End::with(code));
            let expected: Vec<Printed> =
                if said.is_empty() { Vec::new() } else { vec![Printed::Err(said.to_owned())] };
            assert_eq!(console.take(), expected);
        }
    }
}
