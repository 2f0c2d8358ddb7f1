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
use crate::run::{check_assertions, exit_of};
use brunt_plan::objective::Objective;
use brunt_report::campaign;
use brunt_report::comparison::{self, Comparison};
use brunt_report::file_type::{FigureStyle, FileRequest, FileType, Medium, SubjectKind};
use brunt_report::html::RESULTS_MAX;
use brunt_report::journal;
use brunt_report::stored::StoredResult;
use brunt_report::subject::Subject;
use brunt_stats::summary::Summary;
use std::io;
use std::path::{Path, PathBuf};

/// Reports a result again. Where figures alone are asked for, only what is wrong with it is printed, and it is no failure.
pub(crate) fn report(flags: &cli::Report) -> Result<Exit, Failure> {
    let (files, asserted) = (&flags.output.files.output, !flags.output.assert.is_empty());
    let is_figure = |request: &FileRequest| request.form.medium != Medium::Text;
    let draws = !asserted && !files.is_empty() && files.iter().all(is_figure);
    let exit = report_again(flags, Presentation::of(&flags.layout, flags.quiet || draws))?;
    Ok(if draws && exit == Exit::Invalid { Exit::Done } else { exit })
}

fn report_again(flags: &cli::Report, presentation: Presentation) -> Result<Exit, Failure> {
    let output = &flags.output;
    flags.files.iter().for_each(|path| input::note(path));
    let results = flags.files.iter().map(|path| read(path)).collect::<Result<Vec<_>, _>>()?;
    if let ([result], false) = (results.as_slice(), flags.merge) {
        match result.schema() {
            Some(campaign::SCHEMA) => {
                refuse_assertions(output, "a campaign")?;
                let campaign = result.campaign().map_err(Failure::usage)?;
                let outputs = open(output, Subject::Campaign(&campaign))?;
                return Ok(deliver(&campaign, outputs, presentation));
            }
            Some(comparison::SCHEMA) => {
                refuse_assertions(output, "a comparison")?;
                let comparison = Comparison::of_stored(result).map_err(Failure::usage)?;
                let subject = Subject::Comparison(&comparison);
                let delivery = open(output, subject)?.write(subject, presentation);
                return Ok(delivery.exit(compare::exit_of(&comparison)));
            }
            _ => {}
        }
    }
    let summary = match results.as_slice() {
        several if flags.merge => StoredResult::merged(several).map_err(Failure::usage)?,
        [result] => result.summary().map_err(Failure::usage)?,
        several => return report_several(flags, several, presentation),
    };
    let summary = asserted(summary, &output.assert)?;
    let subject = Subject::Run(&summary);
    let delivery = open(output, subject)?.write(subject, presentation);
    Ok(delivery.exit(exit_of(&summary)))
}

/// Makes sure that every file that is asked for can be written.
fn open(output: &cli::ReportOutputFlags, subject: Subject<'_>) -> Result<Outputs, Failure> {
    output.files.check(subject.kind())?;
    let is_live = |request: &&FileRequest| match request.form.of(subject.kind()) {
        FileType::Samples => true,
        FileType::Ndjson => subject.kind() != SubjectKind::Run,
        _ => false,
    };
    if let Some(request) = output.files.output.iter().find(is_live) {
        let option = request.form.option();
        return Err(Failure::usage(format!(
            "{option}: it is written by the run or campaign alone, as it goes on"
        )));
    }
    let mut outputs = Outputs::of(&output.files)?;
    outputs.set_style(FigureStyle { width: output.figure_width, is_coloured: output.figure_color });
    Ok(outputs)
}

/// Reports several runs side by side, as a page or in figures.
fn report_several(
    flags: &cli::Report,
    results: &[StoredResult],
    presentation: Presentation,
) -> Result<Exit, Failure> {
    let (output, count) = (&flags.output, results.len());
    if output.files.output.is_empty() || count > RESULTS_MAX {
        return Err(Failure::usage(format!(
            "{count} results given: expected one; with -o PATH.html or .svg up to {RESULTS_MAX}, side by side; with --merge several that \
             are parts of one run"
        )));
    }
    refuse_assertions(output, &format!("{count} results"))?;
    let summaries = results.iter().map(StoredResult::summary).collect::<Result<Vec<_>, _>>();
    let runs: Vec<_> = names(&flags.files).into_iter().zip(summaries.map_err(Failure::usage)?).collect();
    let outputs = open(output, Subject::Runs(&runs))?;
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

/// Refuses assertions about what is no single run.
fn refuse_assertions(output: &cli::ReportOutputFlags, held: &str) -> Result<(), Failure> {
    match output.assert.is_empty() {
        true => Ok(()),
        false => Err(Failure::usage(format!("--assert: it is of one run, and {held} given"))),
    }
}

fn read(path: &Path) -> Result<StoredResult, Failure> {
    let source = path.display().to_string();
    let unread = |error: io::Error| {
        Failure::usage(format!("cannot read '{source}' ({error}): expected a result in JSON, or a journal"))
    };
    // A journal may be longer than memory.
    if let Some(mut file) = input::file_with_magic(path, journal::MAGIC).map_err(unread)? {
        return journal::read(&mut file, &source).map_err(Failure::usage);
    }
    let bytes = input::read_result(path).map_err(unread)?;
    let result = match bytes.starts_with(journal::MAGIC) {
        true => journal::read(&mut bytes.as_slice(), &source),
        false => StoredResult::parse(&input::decoded(bytes).map_err(unread)?, &source),
    };
    result.map_err(Failure::usage)
}

/// Beside what is asserted now, or else what was when it was measured.
fn asserted(summary: Summary, objectives: &[Objective]) -> Result<Summary, Failure> {
    if objectives.is_empty() {
        return Ok(summary);
    }
    check_assertions(objectives, &summary.record.plan)?;
    Ok(summary.with_assertions(objectives))
}
