//! A command line of mcperf that is carried out: one run, and its report on standard error.
//!
//! Not where options are read or lines are written: those are [`super::command_line`] and [`super::report`]. Invariant: standard output
//! stays empty, as there.

use super::command_line;
use super::invocation::Invocation;
use super::numbers::Numbers;
use super::report::{self, Precision};
use super::{EXIT_FAILED, EXIT_INTERRUPTED, NAMES, VERSION, help, remarks};
use crate::front_end::{
    Answer, Caller, Console, End, FailureKind, FrontEnd, Next, Outcome, OutputFile, RunFailure, Runs, Setup,
};
use crate::options::Action;
use brunt_stats::observer::Event;
use brunt_stats::summary::Summary;
use std::io::{self, Write};

/// Reads a command line without the program's name: text to print at once, or a front end that makes runs.
pub fn read(arguments: &[String], caller: &Caller<'_>) -> Outcome {
    let text = |err: String| Outcome::Answer(Answer { err, ..Answer::default() });
    let refused = |err: String| Outcome::Answer(Answer { code: EXIT_FAILED, err, ..Answer::default() });
    match command_line::parse(arguments) {
        Ok(Action::Help) => text(format!("{VERSION}\r\n\n{}", help())),
        Ok(Action::Version) => text(format!("{VERSION}\r\n\n")),
        Ok(Action::Run(line)) => match Invocation::new(*line, caller) {
            Ok(invocation) => Outcome::FrontEnd(Box::new(Loader { invocation, said: Vec::new() })),
            Err(message) => refused(format!("mcperf: {message}\n")),
        },
        Err(message) => refused(format!("mcperf: {message}\n{}", help())),
    }
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
        let line = &self.invocation.line;
        let precision = if line.fine { Precision::FINE } else { Precision::USUAL };
        let numbers = Numbers::of(&summary, line.legacy_latency, precision.step_ns);
        let text = report::text(&numbers, precision, line.print_histogram);
        console.report(text);
        self.say(remarks::of(&summary, &numbers, self.invocation.line.verbosity), console);
        Next::End(End { code: self.code(&summary, &numbers), saves: true })
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
        for line in lines.into_iter().filter(|line| remarks::is_shown(line, verbosity)) {
            console.say(&line);
            self.said.push(line);
        }
    }

    /// 0 where at least one call was sent.
    fn code(&self, summary: &Summary, numbers: &Numbers) -> u8 {
        match () {
            () if summary.record.run.interrupted => EXIT_INTERRUPTED,
            () if numbers.requests == 0 && !self.invocation.line.legacy_exit => EXIT_FAILED,
            () => 0,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::options::tests::words;

    fn asked(line: &str) -> Outcome {
        let caller = Caller {
            program: "mcperf",
            is_terminal: false,
            allowed_cpus: &[0, 1],
            home: None,
            variable: &|_| None,
            read_text: &|_| Err(io::ErrorKind::NotFound.into()),
        };
        read(&words(line), &caller)
    }

    fn front_end(line: &str) -> Box<dyn FrontEnd> {
        match asked(line) {
            Outcome::FrontEnd(front_end) => front_end,
            Outcome::Answer(answer) => panic!("{line}: {answer:?}"),
        }
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
            let Outcome::Answer(answer) = asked(line) else { panic!("{line}: a front end") };
            assert_eq!(answer, Answer { code, out: String::new(), err }, "{line}");
        }
        // What can be read and not be done has no usage behind it.
        let Outcome::Answer(Answer { code, out, err }) = asked("-s h:7") else { panic!() };
        assert!((code, out.as_str()) == (1, "") && err.lines().count() == 1, "{err}");
    }

    #[test]
    fn remarks_are_printed_before_the_run_and_in_the_log() {
        let mut loader = front_end("-z 100 -o log stray");
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
            assert_eq!(front_end("--legacy-exit").fail(&failure, &mut console), End::with(code));
            assert_eq!(console.take(), [crate::front_end::Printed::Err(message.to_owned())]);
        }
    }
}
