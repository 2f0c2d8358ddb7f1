//! `brunt report`: the text, tables and exit code of a result that was measured before.
//!
//! Not a measurement, and not how a result is read (`brunt_report::stored`). Invariant: nothing is printed that is not in the files: the
//! same results come to the same bytes on any host.

use crate::campaign::deliver;
use crate::cli;
use crate::compare;
use crate::destination::Document;
use crate::exit::{Exit, Failure};
use crate::input;
use crate::output::Outputs;
use crate::presentation::Presentation;
use crate::run::{check_assertions, exit_of, say_unmet};
use brunt_plan::objective::Objective;
use brunt_report::campaign::{self, Campaign};
use brunt_report::comparison::{self, Comparison};
use brunt_report::html::RESULTS_MAX;
use brunt_report::stored::StoredResult;
use brunt_report::subject::Subject;
use brunt_stats::summary::Summary;
use std::path::{Path, PathBuf};

/// Reports a result again.
pub(crate) fn report(flags: &cli::Report) -> Result<Exit, Failure> {
    let output = &flags.output;
    let presentation = Presentation::of(&flags.layout, flags.quiet);
    flags.files.iter().for_each(|path| input::note(path));
    let mut outputs = Outputs::of_report(output)?;
    let results = flags.files.iter().map(|path| read(path)).collect::<Result<Vec<_>, _>>()?;
    if let ([result], false) = (results.as_slice(), flags.merge) {
        match result.schema() {
            Some(campaign::SCHEMA) => {
                let others = [&Document::OF_ONE_RUN[..], &[Document::Ndjson]].concat();
                refuse(output, &others, "the result holds a campaign")?;
                let stored = result.campaign().map_err(Failure::usage)?;
                let campaign = Campaign::of(stored).map_err(Failure::usage)?;
                outputs.draw(output, Subject::Campaign(&campaign))?;
                return Ok(deliver(&campaign, outputs, presentation));
            }
            Some(comparison::SCHEMA) => {
                let others = [Document::Csv, Document::Spectrum, Document::Hlog, Document::Ndjson];
                refuse(output, &others, "the result holds a comparison")?;
                let comparison = Comparison::of_stored(result).map_err(Failure::usage)?;
                outputs.draw(output, Subject::Comparison(&comparison))?;
                let delivery = outputs.write(Subject::Comparison(&comparison), presentation);
                return Ok(delivery.exit(compare::exit_of(&comparison)));
            }
            _ => {}
        }
    }
    let summary = match results.as_slice() {
        several if flags.merge => StoredResult::merged(several).map_err(Failure::usage)?,
        [result] => result.summary().map_err(Failure::usage)?,
        several => return report_several(flags, several, outputs, presentation),
    };
    let mut runs = [(names(&flags.files[..1]).concat(), asserted(summary, &output.assert)?)];
    outputs.draw(output, Subject::Runs(&runs))?;
    let [(_, summary)] = &mut runs;
    let delivery = outputs.write(Subject::Run(summary), presentation);
    say_unmet(summary, presentation);
    Ok(delivery.exit(exit_of(summary)))
}

/// Reports several runs side by side, as a page or in figures.
fn report_several(
    flags: &cli::Report,
    results: &[StoredResult],
    mut outputs: Outputs,
    presentation: Presentation,
) -> Result<Exit, Failure> {
    let (output, count) = (&flags.output, results.len());
    if (output.results.html.is_none() && output.figure.is_empty()) || count > RESULTS_MAX {
        return Err(Failure::usage(format!(
            "{count} results given: expected one; with --html or --figure up to {RESULTS_MAX}, side by side; with --merge several that \
             are parts of one run"
        )));
    }
    refuse(output, &Document::OF_ONE_RESULT, &format!("{count} results were given"))?;
    let summaries = results.iter().map(StoredResult::summary).collect::<Result<Vec<_>, _>>();
    let runs: Vec<_> = names(&flags.files).into_iter().zip(summaries.map_err(Failure::usage)?).collect();
    outputs.draw(output, Subject::Runs(&runs))?;
    let exits = runs.iter().map(|(_, summary)| exit_of(summary));
    let exit = exits.reduce(|one, other| if one == Exit::Done { other } else { one }).unwrap_or(Exit::Done);
    Ok(outputs.write(Subject::Runs(&runs), presentation).exit(exit))
}

/// What results are called in legends: their files, without folders and endings where that tells them apart.
fn names(paths: &[PathBuf]) -> Vec<String> {
    let stem = |path: &PathBuf| path.file_stem().map(|stem| stem.to_string_lossy().into_owned());
    let short: Vec<Option<String>> = paths.iter().map(stem).collect();
    let is_apart =
        (0..short.len()).all(|index| short[index].is_some() && !short[..index].contains(&short[index]));
    let long = paths.iter().map(|path| path.display().to_string());
    if is_apart { short.into_iter().flatten().collect() } else { long.collect() }
}

/// Refuses these forms, and assertions, of what is no single run.
fn refuse(output: &cli::ReportOutputFlags, documents: &[Document], held: &str) -> Result<(), Failure> {
    let given = (!output.assert.is_empty()).then_some("--assert");
    match given.or_else(|| output.results.given(documents)) {
        Some(option) => Err(Failure::usage(format!("{option}: it is of one run, and {held}"))),
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
    check_assertions(objectives, &summary.record.plan)?;
    Ok(summary.with_assertions(objectives))
}
