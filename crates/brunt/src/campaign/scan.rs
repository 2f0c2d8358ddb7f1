//! `brunt scan`: one run for each setting of an option, or for each load on the way up to where something is the limit.
//!
//! The settings are `brunt-plan`'s, the way up and the knee are `brunt-stats`'; here they are measured.

use super::{
    Conclusion, End, Series, check_output, closed_loop_plan, closed_loop_rate, estimate, plan_at, print_plan,
    rate_setting, throughput,
};
use super::{judgement_of, repeat::check_between};
use crate::cli;
use crate::exit::{Exit, Failure};
use crate::output::Outputs;
use crate::run::PlanRequest;
use brunt_plan::plan::Plan;
use brunt_plan::quantile::Quantile;
use brunt_plan::sweep::{Sweep, SweepPoint};
use brunt_report::campaign::{CampaignQuestion, CampaignResult, RunRow, ScanPoint, limit_met};
use brunt_stats::bottleneck::Bottleneck;
use brunt_stats::knee::{Knee, LoadPoint, knee};
use brunt_stats::rate_scan::{LoadResult, RateScan};
use brunt_stats::repeat::{Estimate, Spread};
use brunt_stats::status::RunStatus;

/// Measures every setting, as often as asked, and reports the curve.
pub(crate) fn scan(flags: &cli::Scan) -> Result<Exit, Failure> {
    let (mut asked, plans) = planned(flags, PlanRequest::of)?;
    let cli::Scan { run, repeat, over } = flags;
    if run.output.print_plan {
        let remark = match over {
            Sweep::Auto => "the closed loop that a scan begins with; the rates come after it".to_owned(),
            Sweep::Points(points) => {
                format!("the first of {} settings: {}={}", points.len(), over.option(), points[0])
            }
        };
        return print_plan(&plans[0], &remark);
    }
    let is_load = match over.option() {
        "rate" => true,
        "connections" | "depth" => plans.iter().all(|plan| !plan.has_open_loop()),
        _ => false,
    };
    let outputs = Outputs::open(&run.output, &plans[0])?;
    let mut series = Series::open(run, Some(over.option()), &plans, &mut asked, &[])?;
    outputs.watch(&plans[0], &run.progress, &mut series.observers)?;
    let mut closed_loop = None;
    let ended = measure_all(&mut series, &asked, over, repeat, &mut closed_loop);
    let option = over.option().to_owned();
    series.report(outputs, ended, CampaignQuestion::Scan { option, is_load, closed_loop })
}

/// What is asked for and its plans, with everything checked that can be before a file or a connection is opened.
pub(super) fn planned(
    flags: &cli::Scan,
    read: impl Fn(&cli::Run) -> Result<PlanRequest, Failure>,
) -> Result<(PlanRequest, Vec<Plan>), Failure> {
    let cli::Scan { run, repeat, over } = flags;
    check_output(run, "a scan")?;
    check_between(repeat)?;
    let asked = read(run)?;
    asked.check_free(over.option(), &format!("--over {}", over.option()))?;
    let plans = plans(&asked, over)?;
    Ok((asked, plans))
}

/// Every plan that is known beforehand, so that a mistake is found before anything runs.
fn plans(asked: &PlanRequest, over: &Sweep) -> Result<Vec<Plan>, Failure> {
    match over {
        Sweep::Auto => {
            plan_at(asked, rate_setting(1_000.0), "--over")?;
            Ok(vec![closed_loop_plan(asked)?])
        }
        Sweep::Points(points) => points.iter().map(|point| plan_at(asked, *point, "--over")).collect(),
    }
}

fn measure_all(
    series: &mut Series<'_>,
    asked: &PlanRequest,
    over: &Sweep,
    repeat: &cli::RepeatFlags,
    closed_loop: &mut Option<f64>,
) -> Result<(), End> {
    let settings = match over {
        Sweep::Auto => climb(series, asked, closed_loop)?,
        Sweep::Points(points) => {
            series.of = Some(points.len() as u64 * u64::from(repeat.repeat));
            for (index, point) in points.iter().enumerate() {
                step(series, asked, *point, 1, &format!("step {} of {}", index + 1, points.len()))?;
            }
            points.clone()
        }
    };
    for repetition in 2..=repeat.repeat {
        series.of.get_or_insert(series.made + settings.len() as u64 * u64::from(repeat.repeat - 1));
        series.between(repeat.between.as_deref())?;
        for (index, setting) in settings.iter().enumerate() {
            let label =
                format!("pass {repetition} of {}, step {} of {}", repeat.repeat, index + 1, settings.len());
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
) -> Result<Vec<SweepPoint>, End> {
    let guess = closed_loop_rate(series, asked)?;
    *closed_loop = Some(guess);
    let (mut climb, mut settings) = (RateScan::new(guess), Vec::new());
    while let Some(load) = climb.next() {
        // Three digits are enough for a curve, and easier to read and to type again.
        let setting = rate_setting(format!("{load:.2e}").parse().unwrap_or(load));
        if settings.last() != Some(&setting) {
            settings.push(setting);
        }
        let end = step(series, asked, setting, 1, &format!("step {}", settings.len()))?;
        climb.record(setting.as_f64(), end);
    }
    Ok(settings)
}

fn step(
    series: &mut Series<'_>,
    asked: &PlanRequest,
    setting: SweepPoint,
    repetition: u32,
    label: &str,
) -> Result<LoadResult, End> {
    let plan = plan_at(asked, setting, "--over")?;
    let label = format!("{label}, {}={setting}", setting.option());
    let made = series.measure(&plan, Some(setting), repetition, &label)?;
    let run = &made.measured;
    let end = LoadResult {
        completed: run.completed,
        latency_ns: estimate(run, Quantile::P99).map(|held| held.value),
        limit: run.limit,
    };
    series.keep(made)?;
    Ok(end)
}

pub(super) fn conclude(
    runs: &[RunRow],
    option: &'static str,
    is_load: bool,
    closed_loop: Option<f64>,
) -> Conclusion {
    let points = points(runs);
    let is_limited = |point: &ScanPoint| point.limited_run(runs).is_some();
    let knee = is_load.then(|| knee_of(runs, &points));
    // Where the server is at its end the numbers say so: that is what a scan goes up for, and no fault of the scan.
    let by_server = |run: &RunRow| matches!(run.limit, Some(Bottleneck::Server | Bottleneck::Connections));
    let count = points.iter().flat_map(|point| &point.runs).map(|index| &runs[*index]);
    let statuses = count.filter(|run| !by_server(run)).map(|run| run.status.status);
    let named = |point: &ScanPoint| Some((format!("p99 at {option}={}", point.setting), point.p99?));
    let spreads: Vec<_> = points.iter().filter(|point| !is_limited(point)).filter_map(named).collect();
    let status = RunStatus::of_runs(statuses, &spreads, &judgement_of(runs));
    let finding = CampaignResult::Scan { option, points, knee, closed_loop };
    Conclusion { finding, status, is_missed: false }
}

/// The knee of the curve of the points that met no limit, as an index of a point.
fn knee_of(runs: &[RunRow], points: &[ScanPoint]) -> Knee {
    let load = |point: &ScanPoint| {
        let completed: Vec<Estimate> = point.runs.iter().map(|index| throughput(&runs[*index])).collect();
        Some(LoadPoint { throughput: Spread::of(&completed)?.median, latency_ns: point.p99?.median })
    };
    let free = points.iter().enumerate().filter(|(_, point)| point.is_free(runs));
    let curve: Vec<(usize, LoadPoint)> =
        free.filter_map(|(index, point)| Some((index, load(point)?))).collect();
    let loads: Vec<LoadPoint> = curve.iter().map(|(_, load)| *load).collect();
    match knee(&loads, limit_met(runs, points).is_some()) {
        Knee::At(index) => Knee::At(curve[index].0),
        other => other,
    }
}

/// Runs of one setting together, ascending. Of two runs of one setting in one pass the first was spoiled.
fn points(runs: &[RunRow]) -> Vec<ScanPoint> {
    let mut points: Vec<ScanPoint> = Vec::new();
    for (index, run) in runs.iter().enumerate() {
        let Some(setting) = run.setting else { continue };
        match points.iter_mut().find(|point| point.setting == setting) {
            Some(point) => {
                let is_again = |earlier: &usize| runs[*earlier].repetition == run.repetition;
                point.discarded.extend(point.runs.pop_if(|earlier| is_again(earlier)));
                point.runs.push(index);
            }
            None => points.push(ScanPoint { setting, runs: vec![index], discarded: Vec::new(), p99: None }),
        }
    }
    points.sort_by(|one, other| one.setting.as_f64().total_cmp(&other.setting.as_f64()));
    for point in &mut points {
        let whole = point.runs.iter().map(|index| &runs[*index]).filter(|run| !run.interrupted);
        let estimates: Vec<Estimate> = whole.filter_map(|run| estimate(run, Quantile::P99)).collect();
        point.p99 = Spread::of(&estimates);
    }
    points
}
