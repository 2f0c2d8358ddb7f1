//! A command line of mcperf that is carried out: one run, and its report on standard error.
//!
//! Not where options are read or lines are written: those are [`super::command_line`] and [`super::report`]. Invariant: standard output
//! stays empty, as there.

use super::command_line::{self, EXIT_FAILED, EXIT_INTERRUPTED, NAMES, VERSION, help};
use super::invocation::Invocation;
use super::report;
use crate::front_end::{
    Caller, Console, End, FailureKind, FrontEnd, Next, Outcome, OutputFile, RunFailure, Runs, Setup, Texts,
    first_error, status_remarks, unsent_remark,
};
use brunt_plan::outcome::ReplyKind;
use brunt_stats::connection::FaultKind;
use brunt_stats::observer::Event;
use brunt_stats::summary::Summary;
use std::collections::BTreeMap;
use std::io::{self, Write};

/// Reads a command line without the program's name: text to print at once, or a front end that makes runs.
pub fn read(arguments: &[String], caller: &Caller<'_>) -> Outcome {
    let version = format!("{VERSION}\r\n\n");
    let texts = Texts { name: "mcperf", help: help(), version, code: EXIT_FAILED, is_on_stderr: true };
    Outcome::of(texts, command_line::parse(arguments), |line| {
        let invocation = Invocation::new(line, caller)?;
        Ok(Box::new(Loader { invocation, said: Vec::new() }))
    })
}

/// A run, and what was said of it beside its report.
struct Loader {
    invocation: Invocation,
    said: Vec<String>,
}

impl FrontEnd for Loader {
    fn setup(&mut self, console: &mut Console) -> Setup {
        self.say(self.invocation.remarks.clone(), console);
        let log = |path: &String| OutputFile { option: "--output", path: path.clone(), is_log: true };
        let files = self.invocation.line.output.iter().map(log).collect();
        Setup::Runs(Runs { plans: vec![self.invocation.spec.clone()], files, ..Runs::default() })
    }

    fn next(&mut self, ended: Option<Summary>, console: &mut Console) -> Next {
        let Some(summary) = ended else { return Next::only_run(self.invocation.spec.clone()) };
        console.report(report::text(&summary, &self.invocation.line));
        self.say(all_remarks(&summary, self.invocation.line.verbosity), console);
        Next::End(End { code: self.code(&summary), saves: true })
    }

    fn fail(&mut self, failure: &RunFailure, console: &mut Console) -> End {
        failure.say("mcperf", console);
        let is_interrupted = failure.kind == FailureKind::Interrupted;
        End::with(if is_interrupted { EXIT_INTERRUPTED } else { EXIT_FAILED })
    }

    fn observe(&mut self, event: &Event<'_>, console: &mut Console) {
        if let Event::Note(note) = event {
            self.say(vec![format!("note: {note}")], console);
        }
    }

    fn write_file(&self, _option: &str, out: &mut dyn Write) -> io::Result<()> {
        self.said.iter().try_for_each(|line| writeln!(out, "{}", NAMES.translate(line)))
    }
}

impl Loader {
    /// On standard error, and for the file of `--output`.
    fn say(&mut self, lines: Vec<String>, console: &mut Console) {
        let verbosity = self.invocation.line.verbosity;
        for line in lines.into_iter().filter(|line| is_shown(line, verbosity)) {
            console.say(&line);
            self.said.push(line);
        }
    }

    /// 0 where at least one call was sent.
    fn code(&self, summary: &Summary) -> u8 {
        match () {
            () if summary.record.run.interrupted => EXIT_INTERRUPTED,
            () if report::requests(summary) == 0 && !self.invocation.line.legacy_exit => EXIT_FAILED,
            () => 0,
        }
    }
}

/// The levels of mcperf's log that ours have a place among.
const WARNING: u64 = 4;
const NOTE: u64 = 5;
const DETAIL: u64 = 6;

/// Is this line shown at this level?
fn is_shown(line: &str, verbosity: u64) -> bool {
    verbosity >= if line.starts_with("warning: ") { WARNING } else { NOTE }
}

/// The remarks of a run. At the highest levels there are more.
fn all_remarks(summary: &Summary, verbosity: u64) -> Vec<String> {
    let mut remarks = Vec::new();
    let connections = &summary.connections;
    if verbosity >= DETAIL {
        let all = summary.record.plan.classes.iter().filter_map(|class| class.lifetime.total).sum::<u64>();
        let ended = connections.retired + connections.lost;
        let (failed, established) = (connections.failed, connections.established);
        remarks.push(format!("note: of {all} connections {established} were created, and {failed} failed"));
        remarks.push(format!("note: of {all} connections {ended} were destroyed"));
    }
    let errors = [ReplyKind::Error, ReplyKind::ClientError, ReplyKind::ServerError];
    let refused: u64 = errors.into_iter().map(|kind| report::replies(summary, kind)).sum();
    if refused > 0 {
        let of = report::responses(summary);
        remarks.push(format!(
            "warning: {refused} of {of} responses are errors, which are in none of the response times"
        ));
    }
    remarks.extend(first_error(summary).map(|said| format!("warning: the server sent {said}")));
    remarks.extend(unsent_remark(summary, "calls"));
    remarks.extend(faults(summary));
    remarks.extend(status_remarks(summary));
    remarks
}

/// What is in the lines of errors, where that wants an explanation.
fn faults(summary: &Summary) -> Vec<String> {
    let mut counts = BTreeMap::new();
    for fault in summary.faults().rows() {
        *counts.entry(fault.kind).or_insert(0) += fault.count;
    }
    let remark = |(kind, count): (FaultKind, u64)| {
        let why = match kind {
            FaultKind::ClosedByPeer => "closed by the server in good order".to_owned(),
            FaultKind::Malformed => "ended for bytes that are no reply".to_owned(),
            FaultKind::Other(number) => io::Error::from_raw_os_error(number).to_string(),
            _ => kind.remedy()?.to_owned(),
        };
        Some(format!("note: {} {count}: {why}", report::error_word(kind)))
    };
    counts.into_iter().filter_map(remark).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::front_end::Answer;
    use crate::front_end::tests::CALLER;
    use crate::options::tests::words;

    fn asked(line: &str) -> Outcome {
        read(&words(line), &CALLER)
    }

    #[test]
    fn answers_have_mcperfs_exit_codes_and_stream() {
        let table = [
            ("-V", 0, "This is mcperf-0.1.1\r\n\n".to_owned()),
            ("-h", 0, format!("This is mcperf-0.1.1\r\n\n{}", help())),
            ("-V -h x", 0, format!("This is mcperf-0.1.1\r\n\n{}", help())),
            ("-j", 1, format!("mcperf: '-j' is no option; --help lists them\n{}", help())),
        ];
        for (line, code, err) in table {
            assert_eq!(asked(line).answer(), Answer { code, out: String::new(), err }, "{line}");
        }
        // What can be read and not be done has no usage behind it.
        let Answer { code, out, err } = asked("-s h:7").answer();
        assert!((code, out.as_str()) == (1, "") && err.lines().count() == 1, "{err}");
    }

    #[test]
    fn remarks_are_printed_before_the_run_and_in_the_log() {
        let mut loader = asked("-z 100 -o log stray").front_end();
        let mut console = Console::default();
        let Setup::Runs(runs) = loader.setup(&mut console) else { panic!("no runs") };
        let log = OutputFile { option: "--output", path: "log".to_owned(), is_log: true };
        assert_eq!((runs.plans.len(), runs.files), (1, vec![log]));
        assert_eq!(console.take().len(), 2);
        let mut file = Vec::new();
        loader.write_file("--output", &mut file).unwrap();
        let text = String::from_utf8(file).unwrap();
        assert!(
            text.starts_with("warning: 'stray' belongs") && text.contains("\nwarning: --sizes: '100'"),
            "{text}"
        );
    }

    #[test]
    fn failures_have_a_message() {
        for (kind, code, message) in [
            (FailureKind::Interrupted, 130, "mcperf: interrupted before anything was measured\n"),
            (FailureKind::Other, 1, "mcperf: why\n"),
        ] {
            let mut console = Console::default();
            let failure = RunFailure { kind, message: "why".to_owned() };
            assert_eq!(asked("--legacy-exit").front_end().fail(&failure, &mut console), End::with(code));
            assert_eq!(console.take(), [crate::front_end::Printed::Err(message.to_owned())]);
        }
    }
}
