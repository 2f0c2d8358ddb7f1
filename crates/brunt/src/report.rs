//! `brunt report`: the text, tables and exit code of a result that was measured before.
//!
//! Not a measurement, and not how a result is read (`brunt_report::stored`). Invariant: nothing is printed that is not in the files: the
//! same results come to the same bytes on any host.

use crate::campaign::deliver;
use crate::cli;
use crate::compare;
use crate::exit::{Exit, Failure};
use crate::input;
use crate::output::Outputs;
use crate::presentation::Presentation;
use crate::run::exit_of;
use brunt_plan::objective::Objective;
use brunt_plan::op::OpKind;
use brunt_report::campaign;
use brunt_report::comparison::{self, Comparison};
use brunt_report::stored::StoredResult;
use brunt_stats::summary::Summary;
use std::path::Path;

/// Reports a result again.
pub(crate) fn report(flags: &cli::Report) -> Result<Exit, Failure> {
    let output = &flags.output;
    let presentation = Presentation::of(&flags.layout, flags.quiet);
    flags.files.iter().for_each(|path| input::note(path));
    let outputs = Outputs::of_report(output)?;
    let results = flags.files.iter().map(|path| read(path)).collect::<Result<Vec<_>, _>>()?;
    if let ([result], false) = (results.as_slice(), flags.merge) {
        match result.schema() {
            Some(campaign::SCHEMA) => {
                refuse(
                    output,
                    &["--assert", "--junit", "--spectrum"],
                    "it is of one run, and the result holds a campaign",
                )?;
                let stored = result.campaign().map_err(Failure::usage)?;
                return deliver(stored, outputs, presentation, output.allow_untrusted);
            }
            Some(comparison::SCHEMA) => {
                refuse(
                    output,
                    &["--assert", "--csv", "--spectrum"],
                    "it is of one run, and the result holds a comparison",
                )?;
                let comparison = Comparison::of_stored(result).map_err(Failure::usage)?;
                let delivery = outputs.write_comparison(&comparison, presentation);
                return Ok(delivery.exit(compare::exit_of(&comparison, output.allow_untrusted)));
            }
            _ => {}
        }
    }
    let summary = match results.as_slice() {
        several if flags.merge => StoredResult::merged(several).map_err(Failure::usage)?,
        [result] => result.summary().map_err(Failure::usage)?,
        several => {
            return Err(Failure::usage(format!(
                "{} results given: expected one, or with --merge several that are parts of one run",
                several.len()
            )));
        }
    };
    let summary = asserted(summary, &output.assert)?;
    let delivery = outputs.write(&summary, presentation);
    Ok(delivery.exit(exit_of(&summary, output.allow_untrusted)))
}

/// Refuses these options with the reason.
fn refuse(output: &cli::ReportOutputFlags, options: &[&str], reason: &str) -> Result<(), Failure> {
    let given = [
        ("--assert", !output.assert.is_empty()),
        ("--csv", output.csv.is_some()),
        ("--spectrum", output.spectrum.is_some()),
        ("--junit", output.junit.is_some()),
    ];
    match given.iter().find(|(option, is_given)| *is_given && options.contains(option)) {
        Some((option, _)) => Err(Failure::usage(format!("{option}: {reason}"))),
        None => Ok(()),
    }
}

fn read(path: &Path) -> Result<StoredResult, Failure> {
    let source = path.display().to_string();
    let text = input::read_result(path).map_err(|error| {
        Failure::usage(format!("cannot read '{source}' ({error}): expected a result in JSON"))
    })?;
    StoredResult::parse(&text, &source).map_err(Failure::usage)
}

/// Beside what is asserted now, or else what was when it was measured.
fn asserted(summary: Summary, objectives: &[Objective]) -> Result<Summary, Failure> {
    if objectives.is_empty() {
        return Ok(summary);
    }
    for objective in objectives {
        let given = |reason| Failure::usage(format!("invalid value '{objective}' for --assert: {reason}"));
        // Older results have one row for all commands, which no plan has any more.
        let is_older =
            objective.subject.op == Some(OpKind::Raw.into()) && summary.row(objective.subject.op).is_some();
        if !is_older {
            summary.record.plan.check_subject(&objective.subject).map_err(given)?;
        }
    }
    Ok(summary.with_assertions(objectives))
}
