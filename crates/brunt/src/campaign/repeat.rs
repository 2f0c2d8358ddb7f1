//! `brunt run`, once or several times.
//!
//! Once is no campaign. Several times: the same plan with other seeds and new connections, and what the runs say of each
//! other.

use super::{End, Series, check_output, print_plan, texts};
use crate::cli;
use crate::exit::{Exit, Failure};
use crate::output::Outputs;
use crate::run::{self, PlanRequest};
use brunt_plan::plan::Plan;
use brunt_report::campaign::{CampaignQuestion, RunPlace};

/// Measures as often as asked, and reports.
pub(crate) fn run(flags: &cli::Repeated) -> Result<Exit, Failure> {
    let (mut asked, plan) = planned(flags, PlanRequest::of)?;
    let cli::Repeated { run: flags, repeat } = flags;
    if repeat.repeat == 1 {
        return run::run(flags, asked, plan);
    }
    if flags.output.print_plan {
        let remark = format!("the first of {} runs; the seed of each is one more", repeat.repeat);
        return print_plan(&plan, &remark);
    }
    let outputs = Outputs::open(&flags.output, &plan)?;
    let objectives = &flags.output.assert;
    let mut series = Series::open(flags, std::slice::from_ref(&plan), &mut asked, objectives)?;
    outputs.watch(&plan, &flags.progress, &mut series.observers)?;
    let ended = measure_all(&mut series, &plan, repeat);
    series.report(outputs, ended, CampaignQuestion::Repeat { objectives: texts(objectives) })
}

/// What is asked for and its plan, with everything checked that can be before a file or a connection is opened.
pub(super) fn planned(
    flags: &cli::Repeated,
    read: impl Fn(&cli::Run) -> Result<PlanRequest, Failure>,
) -> Result<(PlanRequest, Plan), Failure> {
    let is_once = flags.repeat.repeat == 1;
    if is_once { check_between(&flags.repeat) } else { check_output(&flags.run, "--repeat") }?;
    let asked = read(&flags.run)?;
    let plan = asked.plan()?;
    match is_once {
        true => run::check_output(&flags.run.output, &plan),
        false => run::check_assertions(&flags.run.output.assert, &plan),
    }?;
    Ok((asked, plan))
}

/// `--between` without a second repetition would never be run.
pub(super) fn check_between(repeat: &cli::RepeatFlags) -> Result<(), Failure> {
    match &repeat.between {
        Some(command) if repeat.repeat == 1 => {
            Err(Failure::usage(format!("--between '{command}' requires --repeat of 2 or more")))
        }
        _ => Ok(()),
    }
}

fn measure_all(series: &mut Series<'_>, plan: &Plan, repeat: &cli::RepeatFlags) -> Result<(), End> {
    series.of = Some(u64::from(repeat.repeat));
    for repetition in 1..=repeat.repeat {
        if repetition > 1 {
            series.between(repeat.between.as_deref())?;
        }
        let label = format!("run {repetition} of {}", repeat.repeat);
        series.keep(plan, RunPlace { repetition, ..RunPlace::default() }, &label)?;
    }
    Ok(())
}
