//! `brunt scan`: one run for each setting of an option, or for each load on the way up to where something is the limit.
//!
//! The settings are `brunt-plan`'s, the way up and the knee are `brunt-stats`'; here they are measured. Settings that are known beforehand
//! have a random order, another one in each pass: what changes with time is not read as load.

use super::{
    Series, check_between, check_output, closed_loop_plan, closed_loop_rate, plan_at, print_plan,
    rate_setting, shuffled,
};
use crate::cli;
use crate::exit::{Exit, Failure};
use crate::run::PlanRequest;
use brunt_plan::plan::Plan;
use brunt_plan::quantile::Quantile;
use brunt_plan::sweep::{Sweep, SweepPoint};
use brunt_report::campaign::{CampaignQuestion, RunPlace, RunRow};
use brunt_report::file_type::SubjectKind;
use brunt_stats::rate_scan::{LoadResult, RateScan};

/// Measures every setting, as often as asked, and reports the curve.
pub(crate) fn scan(flags: &cli::Scan) -> Result<Exit, Failure> {
    let cli::Scan { run, repeat, over, .. } = flags;
    check_output(run, SubjectKind::Scan, "a scan")?;
    if !run.output.assert.is_empty() {
        return Err(Failure::usage("--assert cannot be used with a scan: it is of one plan"));
    }
    check_between(repeat)?;
    let asked = PlanRequest::of(run)?;
    asked.check_free(over.option(), &format!("--over {}", over.option()))?;
    let (mut asked, plans) = asked.connect(run, |asked| plans(asked, over))?;
    if run.output.print_plan {
        let remark = match over {
            Sweep::Auto => "the closed loop that a scan begins with; the rates come after it".to_owned(),
            Sweep::Points(points) => {
                format!("the first of {} settings: {}={}", points.len(), over.option(), points[0])
            }
        };
        return print_plan(&asked, &plans[0], &remark);
    }
    let is_load = match over.option() {
        "rate" => true,
        "connections" | "depth" => plans.iter().all(|plan| !plan.has_open_loop()),
        _ => false,
    };
    let (mut series, outputs) = Series::open(run, &plans, &mut asked, &[])?;
    let mut closed_loop = None;
    let option = over.option().to_owned();
    let ended = measure_all(&mut series, &asked, flags, plans[0].seed, &mut closed_loop);
    let question = CampaignQuestion::Scan { option, is_load, closed_loop };
    let ended = ended.and_then(|()| series.confirm_connections(&asked, &question));
    series.report(outputs, ended, question).map(|(exit, _)| exit)
}

/// Every plan that is known beforehand, so that a mistake is found before anything runs.
fn plans(asked: &PlanRequest, over: &Sweep) -> Result<Vec<Plan>, Failure> {
    match over {
        Sweep::Auto => {
            plan_at(asked, &[rate_setting(1_000.0)], "--over")?;
            Ok(vec![closed_loop_plan(asked)?])
        }
        Sweep::Points(points) => points.iter().map(|point| plan_at(asked, &[*point], "--over")).collect(),
    }
}

fn measure_all(
    series: &mut Series<'_>,
    asked: &PlanRequest,
    flags: &cli::Scan,
    seed: u64,
    closed_loop: &mut Option<f64>,
) -> Result<(), Failure> {
    let cli::Scan { over, repeat, ordered, .. } = flags;
    let (settings, first) = match over {
        Sweep::Auto => (climb(series, asked, closed_loop)?, 2),
        Sweep::Points(points) => (points.clone(), 1),
    };
    let passes = u64::from(repeat.repeat + 1 - first);
    series.runner.of = Some(series.runner.made + settings.len() as u64 * passes);
    for repetition in first..=repeat.repeat {
        series.between(repetition, repeat)?;
        let in_turn = match ordered {
            true => settings.clone(),
            false => shuffled(&settings, seed.wrapping_add(u64::from(repetition))),
        };
        for (index, setting) in in_turn.iter().enumerate() {
            let pass = if repeat.repeat > 1 {
                format!("pass {repetition} of {}, ", repeat.repeat)
            } else {
                String::new()
            };
            let label = format!("{pass}step {} of {}", index + 1, settings.len());
            step(series, asked, *setting, repetition, &label)?;
        }
    }
    Ok(())
}

/// The first pass of --over rate=auto. Returns the loads that it measured.
fn climb(
    series: &mut Series<'_>,
    asked: &PlanRequest,
    closed_loop: &mut Option<f64>,
) -> Result<Vec<SweepPoint>, Failure> {
    let guess = closed_loop_rate(series, asked)?;
    *closed_loop = Some(guess);
    let (mut climb, mut settings) = (RateScan::new(guess), Vec::new());
    while let Some(load) = climb.next() {
        // Three digits are enough for a curve, and easier to read and to type again.
        let setting = rate_setting(format!("{load:.2e}").parse().unwrap_or(load));
        if settings.last() != Some(&setting) {
            settings.push(setting);
        }
        let run = step(series, asked, setting, 1, &format!("step {}", settings.len()))?;
        let end = LoadResult {
            completed: run.completed(),
            latency_ns: run.estimate(Quantile::P99).map(|held| held.value),
            limit: run.is_limited.then_some(run.limit.bottleneck),
        };
        climb.record(setting.as_f64(), end);
    }
    Ok(settings)
}

fn step<'a>(
    series: &'a mut Series<'_>,
    asked: &PlanRequest,
    setting: SweepPoint,
    repetition: u32,
    label: &str,
) -> Result<&'a RunRow, Failure> {
    let plan = plan_at(asked, &[setting], "--over")?;
    let label = format!("{label}, {}={setting}", setting.option());
    series.keep(&plan, RunPlace { setting: Some(setting), repetition, ..RunPlace::default() }, &label)
}
