//! `brunt compare`: two results, or two servers, side by side.
//!
//! Not the statistics and not the report (`brunt_stats::change`, `brunt_report::comparison`): here results are read, or made.
//! Invariant: nothing is compared that was not measured by one plan, unless the user says so.

mod turns;

use crate::cli;
use crate::exit::{Exit, Failure};
use crate::input;
use crate::output::Outputs;
use crate::run::names_server;
use brunt_plan::plan::Plan;
use brunt_report::comparison::{Comparison, plan_differences, side_differences};
use brunt_report::quantity::things;
use brunt_report::result::{self, RunResult};
use brunt_report::stored::Difference;
use brunt_report::subject::Subject;
use brunt_stats::change::Design;
use std::path::PathBuf;

/// Compares, and reports what that shows.
pub(crate) fn compare(flags: &cli::Compare) -> Result<Exit, Failure> {
    let plan = planned(flags)?;
    let results = [&flags.files, &flags.sides.a, &flags.sides.b];
    results.into_iter().flatten().for_each(|path| input::note(path));
    let outputs = Outputs::of_comparison(&flags.output, plan.as_ref())?;
    let ComparisonResult { comparison, ended } = match plan {
        None => ComparisonResult { comparison: of_files(flags)?, ended: Ok(()) },
        Some(plan) => turns::compare(flags, plan)?,
    };
    let delivery = outputs.write(Subject::Comparison(&comparison), flags.progress.presentation());
    ended?;
    Ok(delivery.exit(exit_of(&comparison)))
}

/// The plan of a live comparison, with everything checked that can be before a file or a connection is opened.
fn planned(flags: &cli::Compare) -> Result<Option<Plan>, Failure> {
    if flags.sides.live.is_empty() {
        check_flags_of_files(flags).map(|()| None)
    } else {
        turns::plan(flags).map(Some)
    }
}

/// What a comparison comes to.
pub(crate) fn exit_of(comparison: &Comparison) -> Exit {
    if comparison.is_interrupted() {
        Exit::Interrupted
    } else if comparison.is_missed() {
        Exit::AssertionFailed
    } else if !comparison.has_conclusion() || comparison.is_undecided() {
        Exit::Invalid
    } else {
        Exit::Done
    }
}

/// A comparison, and what ended its measurements early: it is reported all the same.
struct ComparisonResult {
    comparison: Comparison,
    ended: Result<(), Failure>,
}

/// Refuses what a comparison of results that were measured before cannot have.
fn check_flags_of_files(flags: &cli::Compare) -> Result<(), Failure> {
    let spec = &flags.planned.spec;
    let http = flags.progress.http.map(|_| "http".to_owned());
    let given = [spec.run.given(), spec.base.given(), Vec::from_iter(http)].concat();
    if !given.is_empty() {
        let given: Vec<String> = given.iter().map(|flag| format!("--{flag}")).collect();
        return Err(Failure::usage(format!(
            "{} requires --live: these results were measured already",
            given.join(" ")
        )));
    }
    if flags.output.judging.strict || !flags.output.judging.allow.is_empty() {
        return Err(Failure::usage(
            "--strict and --allow require --live: these results were judged when they were measured",
        ));
    }
    Ok(())
}

fn of_files(flags: &cli::Compare) -> Result<Comparison, Failure> {
    let (a, b) = match (flags.files.as_slice(), flags.sides.a.as_slice(), flags.sides.b.as_slice()) {
        ([a, b], [], []) => (read(std::slice::from_ref(a))?, read(std::slice::from_ref(b))?),
        ([], a @ [_, ..], b @ [_, ..]) => (read(a)?, read(b)?),
        (files, ..) => {
            return Err(Failure::usage(format!(
                "{} given: expected two, A.json B.json; several each, --a A.json ... --b B.json ...; or two servers, \
                 --live A B",
                things(files.len() as u64, "result")
            )));
        }
    };
    if !flags.sides.allow_different_plans {
        check_plans(&a, &b).map_err(Failure::usage)?;
    }
    Comparison::of(Design::Apart, a, b, &flags.output.assert).map_err(Failure::usage)
}

fn read(paths: &[PathBuf]) -> Result<Vec<RunResult>, Failure> {
    let mut runs = Vec::new();
    for path in paths {
        let name = path.display().to_string();
        let text = input::read_result(path).map_err(|error| {
            let live = if names_server(&name) { "; servers are compared by --live A B" } else { "" };
            Failure::usage(format!("cannot read '{name}' ({error}): expected a result in JSON{live}"))
        })?;
        runs.extend(result::read(&text, &name).map_err(Failure::usage)?);
    }
    Ok(runs)
}

/// Are all runs of one plan, and those of a side of one server?
fn check_plans(a: &[RunResult], b: &[RunResult]) -> Result<(), String> {
    let listed =
        |differences: &[Difference]| differences.iter().map(|held| format!("\n  {held}")).collect::<String>();
    let accepted = "expected results of one plan, or --allow-different-plans";
    for side in [a, b] {
        let Some((first, others)) = side.split_first() else { continue };
        for other in others {
            let found = side_differences(first, other);
            if !found.is_empty() {
                let (one, other) = (&first.source, &other.source);
                return Err(format!(
                    "'{one}' (A) and '{other}' (B) stand on one side, and their plans differ:{}\n{accepted}",
                    listed(&found)
                ));
            }
        }
    }
    let found = a.first().zip(b.first()).map(|(a, b)| plan_differences(a, b)).unwrap_or_default();
    if found.is_empty() { Ok(()) } else { Err(format!("the plans differ:{}\n{accepted}", listed(&found))) }
}
