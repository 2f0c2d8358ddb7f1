//! `brunt run`, once or several times.
//!
//! Once is no campaign. Several times: the same plan with other seeds and new connections, and what the runs say of each
//! other.

use super::{Conclusion, End, Series, check_output, compared, judgement_of, print_plan};
use crate::cli;
use crate::exit::{Exit, Failure};
use crate::output::Outputs;
use crate::run::{self, PlanRequest};
use brunt_plan::plan::Plan;
use brunt_plan::quantile::Quantile;
use brunt_report::campaign::{CampaignQuestion, CampaignResult, RunRow};
use brunt_stats::status::RunStatus;

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
    let mut series = Series::open(flags, None, std::slice::from_ref(&plan), &mut asked, &[])?;
    outputs.watch(&plan, &flags.progress, &mut series.observers)?;
    let ended = measure_all(&mut series, &plan, repeat);
    series.report(outputs, ended, CampaignQuestion::Repeat)
}

/// What is asked for and its plan, with everything checked that can be before a file or a connection is opened.
pub(super) fn planned(
    flags: &cli::Repeated,
    read: impl Fn(&cli::Run) -> Result<PlanRequest, Failure>,
) -> Result<(PlanRequest, Plan), Failure> {
    check_repeated(flags)?;
    let asked = read(&flags.run)?;
    let plan = asked.plan()?;
    if flags.repeat.repeat == 1 {
        run::check_output(&flags.run.output, &plan)?;
    }
    Ok((asked, plan))
}

/// Refuses what one run, or several, cannot have.
fn check_repeated(flags: &cli::Repeated) -> Result<(), Failure> {
    match flags.repeat.repeat {
        1 => check_between(&flags.repeat),
        _ => check_output(&flags.run, "--repeat"),
    }
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
        let made = series.measure(plan, None, repetition, &label)?;
        series.keep(made)?;
    }
    Ok(())
}

pub(super) fn conclude(runs: &[RunRow], quantiles: &[Quantile]) -> Conclusion {
    let compared = compared(runs.iter().filter(|run| !run.interrupted), quantiles);
    let spreads: Vec<_> = compared.iter().map(|held| (held.name.clone(), held.spread)).collect();
    let status = RunStatus::of_runs(runs.iter().map(|run| run.status.status), &spreads, &judgement_of(runs));
    Conclusion { finding: CampaignResult::Repeat { compared }, status, is_missed: false }
}
