//! `brunt-bench worker`: runs the production worker over canned replies and reports the counts.
//!
//! The clock is virtual. It is run under a profiler, as `cargo xtask instructions` does (docs/method.md).
//! Invariant: it fails unless every operation was a hit and all counts add up.

use crate::shape::Shape;
use brunt_engine::in_process_run::{InProcessRun, run_in_virtual_time};
use brunt_plan::outcome::OutcomeClass;
use brunt_plan::plan::Plan;
use clap::{Args, value_parser};

/// More would take too long to wait for.
const OPS_MAX: u64 = 1 << 53;
/// They run one after the other on one CPU.
const THREADS_MAX: i64 = 64;

/// Options of the command.
#[derive(Clone, Debug, PartialEq, Eq, Args)]
pub(crate) struct Worker {
    /// Connections of a worker and the requests in flight on each, as in 64x32; after a slash, how many completions a wait
    /// brings at most, as in 16x1/1 [without one: all that there are]; ',uring' behind it lets the wait tell what became of
    /// sends, as io_uring does
    #[arg(long, value_name = "CONNECTIONSxDEPTH[/COMPLETIONS][,uring]")]
    shape: Shape,
    /// How many gets to measure, by all workers
    #[arg(long, value_parser = value_parser!(u64).range(1..=OPS_MAX))]
    ops: u64,
    /// How many workers, which take their turns one after the other
    #[arg(long, default_value_t = 1, value_parser = value_parser!(u32).range(1..=THREADS_MAX))]
    threads: u32,
    /// Check every key in full, as --verify of a run does
    #[arg(long = "verify")]
    verifies: bool,
    /// Send the gets and sets of this trace, in Twitter's layout, whose keys are numbers below 10000 of 30 digits
    #[arg(long, conflicts_with_all = ["verifies", "threads"])]
    trace: Option<String>,
}

impl Worker {
    /// Closed loop over the defaults of a native run (keys of 30 bytes, values of 200), but gets only, and no warm-up,
    /// so that every operation is recorded in full. The data set is small: a cache miss costs time and no instruction.
    fn plan(&self) -> Plan {
        let Self { shape, ops, threads, verifies, trace } = self;
        let verify = if *verifies { "verify = '100%'\n" } else { "" };
        let options = format!("{verify}keys = 10000\nwarmup = '0s'\nrequests = {ops}");
        let of_trace = |path| format!("trace = '{path}'\ntrace-layout = 'twitter'");
        let load = trace.as_ref().map_or("mix = 'get'".to_owned(), of_trace);
        shape.plan(*threads as usize, &format!("{options}\n{load}"))
    }

    /// Runs and reports the counts.
    ///
    /// # Errors
    /// A get was no hit, or counts do not add up.
    pub(crate) fn run(&self) -> Result<String, String> {
        let InProcessRun { measured, is_balanced, intervals, calls } =
            run_in_virtual_time(&self.plan(), self.shape.interface);
        let hits = measured.requests.outcome(OutcomeClass::Hit);
        let of_trace = self.trace.as_ref().map(|_| measured.requests.completed());
        if !is_balanced || of_trace.unwrap_or(hits) != self.ops {
            return Err(format!("not every get was a hit, or counts do not add up: {measured:?}"));
        }
        Ok(format!(
            "requests {}, hits {hits}, intervals {intervals}\n\
             waits {}, completions {}, sends {}, clock reads {}",
            self.ops, calls.waits, calls.completions, calls.sends, calls.clock_reads
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parsed;
    use brunt_engine::in_process_run::Interface;

    fn check(words: &str, expected: Result<(Shape, u64), &str>) {
        match (parsed(words), expected) {
            (Ok(Worker { shape, ops, threads: 1, .. }), Ok(expected)) => {
                assert_eq!((shape, ops), expected, "{words}")
            }
            (Err(message), Err(part)) => assert!(message.contains(part), "{words}: {message}"),
            (parsed, expected) => panic!("{words}: {parsed:?} instead of {expected:?}"),
        }
    }

    #[test]
    fn command_lines() {
        let deep = Shape { connections: 64, depth: 32, interface: Interface::UNBOUNDED };
        check("--shape 64x32 --ops 7", Ok((deep, 7)));
        check(
            "--ops 7 --shape 64x32/2",
            Ok((Shape { interface: Interface { completions_max: 2, defers_sends: false }, ..deep }, 7)),
        );
        check("--shape 64x32", Err("--ops <OPS>"));
        check("--shape 64x32 --ops 0", Err("0 is not in 1..="));
        check("--shape 64 --ops 1", Err("invalid value '64'"));
        check("--shape 64x32 --ops 7 --threads 65", Err("65 is not in 1..=64"));
        let two: Worker = parsed("--shape 16x1 --threads 2 --ops 7").unwrap();
        assert_eq!((two.threads, two.plan().threads, two.plan().classes[0].connections), (2, 2, 32));
    }

    #[test]
    fn every_get_is_a_hit() {
        let table = [
            ("16x1", 1),
            ("16x1/1", 2),
            ("16x1,uring", 1),
            ("64x32/3,uring", 1),
            ("64x32", 1),
            ("64x32", 2),
            ("4x2", 4),
        ];
        for (shape, threads) in table {
            let verifies = threads == 2;
            let (parsed, trace) = (shape.parse().unwrap(), None);
            let said = Worker { shape: parsed, ops: 5_000, threads, verifies, trace }.run();
            assert!(
                said.as_ref().is_ok_and(|said| said.starts_with("requests 5000, hits 5000,")),
                "{shape}: {said:?}"
            );
        }
    }
}
