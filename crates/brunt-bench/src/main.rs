//! `brunt-bench worker`: takes the production worker through a rehearsal and says what was done.
//!
//! Not a timer: times of a rehearsal are made up, and nothing here looks at a clock. It exists to be run under a
//! profiler, as `cargo xtask instructions` does (docs/performance.md). Invariant: it fails unless every operation was
//! answered with what was stored and every book balances, so that what is counted is honest work.

#![forbid(unsafe_code)]
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "saying what was done is the job")]

mod shape;

use brunt_engine::rehearsal::{Rehearsal, rehearse};
use brunt_plan::outcome::OutcomeClass;
use brunt_plan::plan::Plan;
use brunt_plan::resolve::{Host, resolve};
use brunt_plan::spec::PlanSpec;
use shape::Shape;
use std::process::ExitCode;

const USAGE: &str = "\
usage: brunt-bench worker --shape CONNECTIONSxDEPTH[/COMPLETIONS] --ops N

  --shape  connections and the requests in flight on each, as in 64x32; after a slash, how many completions
           a wait brings at most, as in 16x1/1 [without one: all that there are]
  --ops    how many gets to measure";

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    match parse(&words) {
        Ok((shape, ops)) => report(shape, ops),
        Err(message) => {
            eprintln!("brunt-bench: {message}\n\n{USAGE}");
            ExitCode::from(2)
        }
    }
}

fn parse(words: &[String]) -> Result<(Shape, u64), String> {
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let ["worker", options @ ..] = words.as_slice() else {
        return Err("the only verb is 'worker'".to_owned());
    };
    let (mut shape, mut ops) = (None, None);
    for pair in options.chunks(2) {
        match pair {
            ["--shape", given] => shape = Some(given.parse()?),
            ["--ops", given] => {
                let accepted = || format!("--ops: '{given}' was given; accepted: a whole number from 1");
                ops = Some(given.parse().ok().filter(|ops| *ops > 0).ok_or_else(accepted)?);
            }
            [option, ..] => return Err(format!("'{option}' is no option, or has no value")),
            [] => {}
        }
    }
    Ok((shape.ok_or("--shape is missing")?, ops.ok_or("--ops is missing")?))
}

/// Closed loop over the defaults of a native run (keys of 30 bytes, values of 200), but gets only, and no warm-up, so
/// that every operation is recorded in full. The data set is small: a cache miss costs time and no instruction.
fn plan(shape: Shape, ops: u64) -> Plan {
    let toml = format!(
        "threads = 1\nseed = 1\nwarmup = '0s'\nmix = 'get'\nkeys = 10000\nkey-size = 30\nvalue-size = 200\n\
         connections = {}\ndepth = {}\nrequests = {ops}",
        shape.connections, shape.depth
    );
    let spec = PlanSpec::from_toml(&toml).expect("every option exists and every value has its form");
    resolve(&spec, &Host { allowed_cpus: vec![0], random_seed: 1 })
        .expect("a shape is within the plan's bounds")
}

fn report(shape: Shape, ops: u64) -> ExitCode {
    let Rehearsal { measured, is_balanced, intervals, calls } =
        rehearse(&plan(shape, ops), shape.completions_max);
    let hits = measured.requests.outcome(OutcomeClass::Hit);
    println!("requests {ops}, hits {hits}, intervals {intervals}");
    println!(
        "waits {}, completions {}, sends {}, clock reads {}",
        calls.waits, calls.completions, calls.sends, calls.clock_reads
    );
    if is_balanced && hits == ops {
        ExitCode::SUCCESS
    } else {
        eprintln!("brunt-bench: not every get was a hit, or a book does not balance: {measured:?}");
        ExitCode::FAILURE
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(words: &str, expected: Result<(Shape, u64), &str>) {
        let words: Vec<String> = words.split(' ').map(str::to_owned).collect();
        match (parse(&words), expected) {
            (Ok(parsed), Ok(expected)) => assert_eq!(parsed, expected, "{words:?}"),
            (Err(message), Err(part)) => assert!(message.contains(part), "{words:?}: {message}"),
            (parsed, expected) => panic!("{words:?}: {parsed:?} instead of {expected:?}"),
        }
    }

    #[test]
    fn command_lines() {
        let deep = Shape { connections: 64, depth: 32, completions_max: usize::MAX };
        check("worker --shape 64x32 --ops 7", Ok((deep, 7)));
        check("worker --ops 7 --shape 64x32/2", Ok((Shape { completions_max: 2, ..deep }, 7)));
        check("worker --shape 64x32", Err("--ops is missing"));
        check("worker --shape 64x32 --ops", Err("'--ops' is no option, or has no value"));
        check("worker --shape 64x32 --ops 0", Err("from 1"));
        check("worker --shape 64 --ops 1", Err("'64' was given"));
        check("turn", Err("'worker'"));
    }

    #[test]
    fn every_get_of_a_rehearsal_is_a_hit() {
        for shape in ["16x1", "16x1/1", "64x32"] {
            assert_eq!(report(shape.parse().unwrap(), 5_000), ExitCode::SUCCESS, "{shape}");
        }
    }
}
