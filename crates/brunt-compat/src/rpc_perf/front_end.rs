//! Carries out a command line of rpc-perf: one run, its log, its files, and its exit code.
//!
//! Not where options are read or lines are laid out: those are [`super::command_line`] and [`super::log`]. Invariant: standard output
//! holds what rpc-perf's would, and everything else is a line on standard error.

use super::command_line::{self, EXIT_FAILED, VERSION, help};
use super::invocation::Invocation;
use super::log::{self, Level, Log};
use super::request::Request;
use super::statistics::{self, Statistics};
use super::waterfall;
use super::window::{EndedWindow, WindowHistory};
use crate::front_end::{
    Caller, Console, End, FrontEnd, Next, Outcome, OutputFile, Refusal, Run, RunFailure, Runs, ServedPages,
    Setup, Texts, first_error, late_remark, status_remarks, unsent_remark,
};
use brunt_picture::Theme;
use brunt_plan::phase::Phase;
use brunt_plan::quantile::Quantile;
use brunt_plan::spec::PlanSpec;
use brunt_plan::units::DurationNs;
use brunt_stats::observer::{Event, Period, RunPosition};
use brunt_stats::summary::Summary;
use std::io::{self, Write};

const TRACE: &str = "--trace";
const WATERFALL: &str = "--waterfall";
const LISTEN: &str = "--listen";
/// Windows are put together from periods of a second, of which each is a slice of the files.
const PERIOD: DurationNs = DurationNs::from_secs(1);

/// Reads a command line without the program's name: text to print at once, or a front end that makes runs.
pub fn read(arguments: &[String], caller: &Caller<'_>) -> Outcome {
    let texts = Texts {
        name: "rpc-perf",
        help: help(caller.program),
        version: format!("{VERSION}\n"),
        code: EXIT_FAILED,
        is_on_stderr: false,
    };
    Outcome::of(texts, command_line::parse(arguments).map_err(Refusal::from), |line| {
        Ok(Box::new(Loader::new(Invocation::new(&line, caller)?)))
    })
}

/// A run and what is known of it so far.
struct Loader {
    invocation: Invocation,
    /// What the workloads send; what is drawn for it is not looked at.
    sent: Vec<Request>,
    course: WindowHistory,
    statistics: Statistics,
    seed: u64,
    /// Windows that are over, the warm-up not counted.
    windows: u64,
    /// Those of them in which no request succeeded.
    failed: Vec<u64>,
    /// The files have just been written: the slices of the next period are the first of new ones.
    is_saved: bool,
}

impl FrontEnd for Loader {
    fn setup(&mut self, console: &mut Console) -> Setup {
        self.seed = self.invocation.settings.seed.unwrap_or(console.unix.0);
        self.invocation.remarks.iter().for_each(|remark| self.say(console, remark));
        self.say(console, &format!("note: --seed {} makes the same choices again", self.seed));
        let spec = self.spec();
        self.print(console, Level::Info, &log::banner(&self.invocation, &self.sent));
        if self.invocation.settings.verbose > 0 {
            let plan = spec.to_toml();
            let lines: Vec<String> = plan.lines().map(|line| format!("plan: {line}")).collect();
            self.print(console, Level::Debug, &lines);
        }
        let settings = &self.invocation.settings;
        let asked = [(TRACE, &settings.trace), (WATERFALL, &settings.waterfall)];
        let file = |(option, path): (&'static str, &Option<String>)| {
            path.clone().map(|path| OutputFile { option, path, is_log: false })
        };
        let files = asked.into_iter().filter_map(file).collect();
        let shown = |address: &String| ServedPages {
            option: LISTEN,
            address: address.clone(),
            pages: &statistics::PAGES,
        };
        let shown = settings.listen.as_ref().map(shown);
        Setup::Runs(Runs { plans: vec![spec], files, shown, period: Some(PERIOD), ..Runs::default() })
    }

    fn next(&mut self, ended: Option<Summary>, console: &mut Console) -> Next {
        let Some(summary) = ended else {
            self.print(console, Level::Info, &log::connecting(self.invocation.settings.threads));
            let place = RunPosition { of: Some(1), ..RunPosition::default() };
            let flushes = self.invocation.settings.flush;
            return Next::Run(Box::new(Run { spec: self.spec(), flushes, place, ..Run::default() }));
        };
        if let Some(ended) = self.course.end() {
            self.report(ended, console);
        }
        Next::End(self.end(&summary, console))
    }

    fn fail(&mut self, failure: &RunFailure, console: &mut Console) -> End {
        failure.say("rpc-perf", console);
        End::with(EXIT_FAILED)
    }

    fn observe(&mut self, event: &Event<'_>, console: &mut Console) {
        match event {
            Event::Note(note) => self.say(console, &format!("note: {note}")),
            Event::Started(times) => {
                self.course.start(*times);
                let lines = log::scheduled(&self.invocation, &self.sent);
                self.print(console, Level::Info, &lines);
            }
            Event::Period(period) => self.observe_period(period, console),
            _ => {}
        }
    }

    fn page(&self, page: usize) -> String {
        self.statistics.page(page)
    }

    fn write_file(&self, option: &str, out: &mut dyn Write) -> io::Result<()> {
        match (option, self.course.slices()) {
            (TRACE, Some(slices)) => slices.write_trace(out),
            (WATERFALL, Some(slices)) => {
                brunt_picture::write_png(&waterfall::picture(slices), Theme::Dark, out)
            }
            _ => Ok(()),
        }
    }
}

impl Loader {
    fn new(invocation: Invocation) -> Self {
        let settings = &invocation.settings;
        // They were built without an error when the command line was read.
        let sent = invocation.requests(0).unwrap_or_default();
        let windows = (!settings.service).then_some(u64::from(settings.windows) + 1);
        let retrieves = sent.iter().map(|sent| sent.retrieves).collect();
        let duration_s = u64::from(settings.duration_s);
        let course = WindowHistory::new(duration_s, windows, retrieves, invocation.has_slices());
        Self {
            invocation,
            sent,
            course,
            statistics: Statistics::default(),
            seed: 0,
            windows: 0,
            failed: Vec::new(),
            is_saved: false,
        }
    }

    fn spec(&self) -> PlanSpec {
        // The same was built without an error when the command line was read.
        self.invocation.spec(self.seed).map(|(spec, _)| spec).unwrap_or_default()
    }

    fn observe_period(&mut self, period: &Period, console: &mut Console) {
        if std::mem::take(&mut self.is_saved) {
            self.course.clear_slices();
        }
        if self.invocation.settings.verbose > 1 {
            let recorded: u64 = period.recorded.rows().map(|(.., row)| row.latencies.response.count()).sum();
            let line = format!("{}: {:.3} s, {recorded} responses", period.phase.name(), period.seconds());
            self.print(console, Level::Trace, &[line]);
        }
        if self.invocation.settings.verbose > 0 {
            let faults = period.recorded.faults().rows();
            let lines: Vec<String> =
                faults.iter().map(|fault| format!("fault: {}: {}", fault.kind.name(), fault.count)).collect();
            self.print(console, Level::Debug, &lines);
        }
        let ended = self.course.add(period);
        if period.phase == Phase::Preload {
            let lines = log::connected(self.invocation.settings.log_format, self.course.present());
            self.print(console, Level::Info, &lines);
        }
        for ended in ended {
            self.report(ended, console);
        }
    }

    fn report(&mut self, ended: EndedWindow, console: &mut Console) {
        console.shows = true;
        if ended.number == 0 {
            self.print(console, Level::Info, &log::warmed_up());
        } else {
            self.report_measured(&ended, console);
        }
        self.statistics.latch(ended);
    }

    fn report_measured(&mut self, ended: &EndedWindow, console: &mut Console) {
        let settings = &self.invocation.settings;
        self.windows += 1;
        if ended.window.counts.ok == 0 {
            self.failed.push(ended.number);
        }
        let lines = log::window(settings.log_format, ended.number, &ended.window);
        self.print(console, Level::Info, &lines);
        if settings.service && ended.number.is_multiple_of(u64::from(settings.windows)) {
            console.saves = true;
            self.is_saved = true;
        }
    }

    /// The exit code: 0 where every window had requests that succeeded.
    fn end(&self, summary: &Summary, console: &mut Console) -> End {
        all_remarks(summary).iter().for_each(|remark| self.say(console, remark));
        let settings = &self.invocation.settings;
        let interrupted = summary.record.run.interrupted && !settings.service;
        if interrupted {
            console.say("rpc-perf: interrupted");
        }
        for number in &self.failed {
            console.say(format_args!("rpc-perf: window {number}: no request succeeded"));
        }
        if self.windows == 0 && !interrupted {
            console.say("rpc-perf: no window was measured");
        }
        let is_well = !interrupted && self.failed.is_empty() && self.windows > 0;
        let code = if is_well || settings.legacy_exit { 0 } else { EXIT_FAILED };
        End { code, saves: true }
    }

    fn print(&self, console: &mut Console, level: Level, lines: &[String]) {
        let log = Log { format: self.invocation.settings.log_format, local_ns: console.local_ns() };
        console.out().extend(log.lines(level, lines).bytes());
    }

    fn say(&self, console: &mut Console, remark: &str) {
        if !self.invocation.settings.quiet {
            console.say(remark);
        }
    }
}

/// What the log has no place for, of a run that is over; each line with its level.
fn all_remarks(summary: &Summary) -> Vec<String> {
    let said = first_error(summary).map(|said| format!("warning: the server sent {said}"));
    let unsent = unsent_remark(summary, "requests");
    said.into_iter().chain(unsent).chain(waited(summary)).chain(status_remarks(summary)).collect()
}

/// The 99th percentile from both beginnings, where they differ by more than a tenth.
fn waited(summary: &Summary) -> Option<String> {
    let latency = &summary.total.latency;
    let p99_us = [&latency.response, &latency.service]
        .map(|latency| latency.histogram.quantile(Quantile::P99).map(|p99_ns| p99_ns as f64 / 1e3));
    late_remark("p99 of all windows", p99_us).map(|remark| format!("note: {remark}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::front_end::tests::{CALLER, printed};
    use crate::front_end::{Answer, FailureKind};
    use crate::options::tests::words;
    use std::io::ErrorKind;

    const GET: &str = "[[workload]]\nparameter = [{}]";

    fn asked(line: &str) -> Outcome {
        let read_text = |path: &str| match path {
            "get" => Ok(GET.to_owned()),
            _ => Err(io::Error::from(ErrorKind::NotFound)),
        };
        let caller = Caller { program: "rpc-perf", read_text: &read_text, ..CALLER };
        read(&words(line), &caller)
    }

    fn front_end(line: &str) -> Box<dyn FrontEnd> {
        asked(line).front_end()
    }

    /// At 2025-11-21 04:03:07.901 of a zone one hour east of Greenwich.
    fn console() -> Console {
        let mut console = Console::at(DurationNs(0), DurationNs(1_763_694_187_901_000_000));
        console.utc_offset_s = 3_600;
        console
    }

    fn set_up(line: &str) -> (Runs, Vec<String>) {
        let mut console = console();
        match front_end(line).setup(&mut console) {
            Setup::Runs(runs) => (runs, printed(&mut console)),
            Setup::Agent(_) => panic!("{line}: an agent"),
        }
    }

    #[test]
    fn a_run_begins_with_its_configuration() {
        let (runs, text) = set_up("--config get -s h --seed 5");
        assert_eq!(text[0], "[note: --seed 5 makes the same choices again]");
        assert!(
            text[1]
                .starts_with("2025-11-21 04:03:07.901 INFO  [rpc-perf] rpc-perf 2.1.0-pre initializing...\n"),
            "{text:?}"
        );
        assert!(
            text[1].ends_with(" INFO  [rpc-perf] Config: Buffer size (bytes): RX: 4096 TX: 4096\n"),
            "{text:?}"
        );
        assert_eq!((runs.files, runs.period), (Vec::new(), Some(PERIOD)));
        assert_eq!(runs.plans[0].run.seed.map(|seed| seed.0), Some(5));
        // Another one each time.
        let (runs, _) = set_up("--config get -s h --quiet");
        assert_eq!(runs.plans[0].run.seed.map(|seed| seed.0), Some(1_763_694_187_901_000_000));
        let (runs, text) = set_up("--config get -s h --quiet x -v --trace t --waterfall w");
        assert_eq!(text.len(), 1);
        assert!(
            text[0].contains("\n2025-11-21 04:03:07.901 DEBUG [rpc-perf] plan: command = [\"get 0\"]\n"),
            "{text:?}"
        );
        let files: Vec<_> = runs.files.iter().map(|file| (file.option, file.path.as_str())).collect();
        assert_eq!(files, [("--trace", "t"), ("--waterfall", "w")]);
    }

    #[test]
    fn flush_option_deletes_all_items_first() {
        for (line, flushes) in [("--config get -s h", false), ("--config get -s h --flush", true)] {
            let mut front_end = front_end(line);
            front_end.setup(&mut console());
            let mut console = console();
            let Next::Run(run) = front_end.next(None, &mut console) else { panic!("{line}: no run") };
            assert_eq!(run.flushes, flushes);
            assert_eq!(printed(&mut console)[0].lines().count(), 3);
        }
    }

    #[test]
    fn answers_and_failures_have_exit_codes() {
        let answer = |line: &str| asked(line).answer();
        let version = Answer { code: 0, out: "rpc-perf 2.1.0-pre\n".to_owned(), err: String::new() };
        assert_eq!(answer("--version"), version);
        assert_eq!(answer("-h"), Answer { code: 0, out: help("rpc-perf"), err: String::new() });
        for (line, said) in [
            ("--config get", "rpc-perf: require server parameter;"),
            ("-s h", "rpc-perf: config file not specified;"),
            ("---config get", "rpc-perf: '---config' is no option; did you mean --config?"),
        ] {
            let Answer { code, out, err } = answer(line);
            assert!(
                code == 1 && out.is_empty() && err.starts_with(said) && err.ends_with('\n'),
                "{line}: {err}"
            );
        }
        for kind in [FailureKind::Interrupted, FailureKind::Other] {
            let mut console = Console::default();
            let failure = RunFailure { kind, message: "why".to_owned() };
            assert_eq!(front_end("--config get -s h --quiet").fail(&failure, &mut console), End::with(1));
            assert_eq!(printed(&mut console).len(), 1);
        }
    }
}
