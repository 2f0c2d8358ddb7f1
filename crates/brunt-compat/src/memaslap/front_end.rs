//! A command line of memaslap that is carried out: the banner, one run with its tables, and what came of it.
//!
//! Not where options are read or rows are written: those are [`super::command_line`] and [`super::report`]. Invariant: standard output
//! holds what memaslap's would, and everything else is a line on standard error.

use super::command_line::{self, EXIT_FAILED, VERSION, help};
use super::invocation::Invocation;
use super::report::{self, Stretch};
use super::tally::Tallies;
use crate::front_end::{Caller, Console, End, FrontEnd, Next, Outcome, RunFailure, Runs, Setup, Texts};
use brunt_plan::phase::Phase;
use brunt_plan::units::{Count, DurationNs};
use brunt_stats::observer::{Event, Period};
use brunt_stats::summary::Summary;

/// The last period of a window may be cut by a clock that is read late; shorter ones have no table.
const WHOLE: f64 = 0.99;

/// Reads a command line without the program's name: text to print at once, or a front end that makes runs.
pub fn read(arguments: &[String], caller: &Caller<'_>) -> Outcome {
    let texts = Texts {
        name: "memaslap",
        help: help(),
        version: format!("{VERSION}\n"),
        code: EXIT_FAILED,
        is_on_stderr: false,
    };
    Outcome::of(texts, command_line::parse(arguments, caller.variable), |line| {
        Ok(Box::new(Loader::new(Invocation::new(line, caller)?, caller.is_terminal)))
    })
}

/// A run and what was said of it so far.
struct Loader {
    invocation: Invocation,
    is_terminal: bool,
    /// What the periods came to until now.
    so_far: Tallies,
    periods: u64,
    seconds: f64,
}

impl FrontEnd for Loader {
    fn setup(&mut self, console: &mut Console) -> Setup {
        // memaslap seeds its table of characters with the second of its start.
        let second = Count(console.unix.0 / 1_000_000_000);
        self.invocation.spec.run.data_seed.get_or_insert(second);
        self.invocation.remarks.iter().for_each(|remark| self.say(console, remark));
        console.out().extend(report::banner(&self.invocation.line, self.invocation.shares).bytes());
        let period = self.invocation.period_s().map(DurationNs::from_secs);
        Setup::Runs(Runs { plans: vec![self.invocation.spec.clone()], period, ..Runs::default() })
    }

    fn next(&mut self, ended: Option<Summary>, console: &mut Console) -> Next {
        let Some(summary) = ended else { return Next::only_run(self.invocation.spec.clone()) };
        self.report(&summary, console);
        Next::End(self.end(&summary, console))
    }

    fn fail(&mut self, failure: &RunFailure, console: &mut Console) -> End {
        failure.say("memaslap", console);
        End::with(EXIT_FAILED)
    }

    fn observe(&mut self, event: &Event<'_>, console: &mut Console) {
        match event {
            Event::Note(note) => self.say(console, &format!("note: {note}")),
            Event::Period(period) => self.tabulate(period, console),
            Event::Interval(interval)
                if self.invocation.line.verbose && !interval.object_faults.is_empty() =>
            {
                console.say(report::object_faults(&interval.object_faults).trim_end_matches('\n'));
            }
            _ => {}
        }
    }
}

impl Loader {
    fn new(invocation: Invocation, is_terminal: bool) -> Self {
        Self { invocation, is_terminal, so_far: Tallies::default(), periods: 0, seconds: 0.0 }
    }

    /// The tables of a period of the window; those of one that was cut short are not shown.
    fn tabulate(&mut self, period: &Period, console: &mut Console) {
        let Some(length_s) = self.invocation.period_s().filter(|_| period.phase == Phase::Measure) else {
            return;
        };
        let latest = Tallies::of(&period.recorded);
        self.so_far.merge(&latest);
        self.periods += 1;
        self.seconds += period.seconds();
        if period.seconds() < length_s as f64 * WHOLE {
            return;
        }
        let latest = Stretch { whole_seconds: length_s, seconds: period.seconds(), tallies: &latest };
        let whole_seconds = length_s * self.periods;
        let all = Stretch { whole_seconds, seconds: self.seconds, tallies: &self.so_far };
        let text = report::periodic(&latest, &all, self.invocation.object_bytes, self.is_terminal);
        console.out().extend(text.bytes());
    }

    fn report(&self, summary: &Summary, console: &mut Console) {
        let line = &self.invocation.line;
        let tallies = Tallies::of(&summary.record.run.intervals);
        let mut text = String::new();
        if line.stat_freq_s.is_some() {
            text.push_str(&report::statistics(&tallies));
        }
        if line.percentiles {
            text.push_str(&report::percentiles(&tallies));
        }
        text.push_str(&report::counters(summary, line));
        console.out().extend(text.bytes());
        report::remarks(summary).iter().for_each(|remark| self.say(console, remark));
    }

    /// The exit code: 0 where the server did some of what it was asked for.
    fn end(&self, summary: &Summary, console: &mut Console) -> End {
        if summary.record.run.interrupted {
            console.say("memaslap: interrupted");
            return End::with(EXIT_FAILED);
        }
        if summary.total.requests.completed() == 0 {
            console.say(format_args!("memaslap: {}", report::nothing_done(summary)));
            return End::with(if self.invocation.line.legacy_exit { 0 } else { EXIT_FAILED });
        }
        End::with(0)
    }

    fn say(&self, console: &mut Console, remark: &str) {
        if !self.invocation.line.quiet {
            console.say(remark);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::front_end::tests::{CALLER, printed};
    use crate::front_end::{Answer, FailureKind};
    use crate::options::tests::words;
    use std::io::{self, ErrorKind};

    fn asked(line: &str, file: Option<&str>) -> Outcome {
        let read_text = |path: &str| match file {
            Some(text) if path == "/house/.memslap.cnf" || path == "f.cnf" => Ok(text.to_owned()),
            _ => Err(io::Error::from(ErrorKind::NotFound)),
        };
        let home = Some("/house");
        let variable = &|name: &str| (name == "HOME").then(|| "/tent".to_owned());
        let caller = Caller { home, variable, read_text: &read_text, ..CALLER };
        read(&words(line), &caller)
    }

    /// What is printed before anything is connected, standard error in brackets; and the data seed.
    fn begun(line: &str, file: Option<&str>) -> (String, u64) {
        let mut front_end = asked(line, file).front_end();
        let mut console = Console::at(DurationNs(0), DurationNs(1_700_000_000_900_000_000));
        let Setup::Runs(runs) = front_end.setup(&mut console) else { panic!("{line}: no runs") };
        let seed = runs.plans[0].run.data_seed.unwrap().0;
        (printed(&mut console).concat(), seed)
    }

    #[test]
    fn a_run_begins_with_its_banner() {
        let banner = |set: &str, get: &str| {
            format!(
                "servers: h\nthreads count: 1\nconcurrency: 16\nrun time: 2s\nwindows size: 10k\n\
                 set proportion: set_prop={set}\nget proportion: get_prop={get}\n"
            )
        };
        let file = "key\n20 20 1\nvalue\n9 9 1\ncmd\n1.0 0.75\n0 0.25";
        let (usual, other) = (banner("0.10", "0.90"), banner("0.25", "0.75"));
        assert_eq!(begun("-s h -t 2s", None), (usual.clone(), 1_700_000_000));
        assert_eq!(begun("-s h -t 2s --seed 7", None), (usual, 7));
        assert_eq!(begun("-s h -t 2s -F f.cnf", Some(file)).0, other);
        let note = "[note: sizes and shares are those of '/house/.memslap.cnf']";
        assert_eq!(begun("-s h -t 2s", Some(file)).0, format!("{note}{other}"));
        assert_eq!(begun("-s h -t 2s --quiet", Some(file)).0, other);
    }

    #[test]
    fn answers_and_failures_have_memaslaps_exit_codes() {
        let answer = |line: &str| asked(line, None).answer();
        let version = Answer { code: 0, out: "memaslap v1.0\n".to_owned(), err: String::new() };
        assert_eq!(answer("-V"), version);
        assert_eq!(answer("-h"), Answer { code: 0, out: help(), err: String::new() });
        let table = [
            ("-s h -T 0", "memaslap: invalid value '0' for --threads", ""),
            ("-t 1s", "memaslap: No servers provided", "memaslap v1.0\n"),
            ("-s h -F nofile.cnf", "memaslap: --cfg_cmd: cannot read 'nofile.cnf' (", ""),
        ];
        for (line, said, shown) in table {
            let Answer { code, out, err } = answer(line);
            assert!(code == 1 && err.starts_with(said) && out.starts_with(shown), "{line}: {err}");
            assert!(err.ends_with('\n') && out.is_empty() == shown.is_empty(), "{line}: {out}");
        }
        for kind in [FailureKind::Interrupted, FailureKind::Other] {
            let mut front_end = asked("-s h --legacy-exit --quiet", None).front_end();
            let mut console = Console::default();
            let failure = RunFailure { kind, message: "why".to_owned() };
            assert_eq!(front_end.fail(&failure, &mut console), End::with(1));
            assert_eq!(console.take().len(), 1);
        }
    }
}
