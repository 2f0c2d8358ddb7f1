//! `brunt search`: the highest rate at which every objective is met.
//!
//! Which rate is next, and what a step means, is `brunt-stats`'; here steps are measured. A step goes on until every
//! objective is decided, or its longest time is up.

use super::{
    Conclusion, End, Series, check_output, closed_loop_plan, closed_loop_rate, judgement_of, plan_at,
    print_plan, rate_setting,
};
use crate::cli;
use crate::exit::{Exit, Failure};
use crate::output::Outputs;
use crate::run::PlanRequest;
use brunt_plan::objective::{Ceiling, Objective};
use brunt_plan::plan::Plan;
use brunt_plan::units::DurationNs;
use brunt_report::campaign::{CampaignQuestion, CampaignResult, RunRow};
use brunt_stats::capacity::{Capacity, CapacitySearch, NextStep, RateRange, StepResult};
use brunt_stats::convergence::Convergence;
use brunt_stats::goal::Goal;
use brunt_stats::status::{RunStatus, Status};

/// The first rate without --from, as a fraction of the closed-loop maximum: rates double, so that four steps reach it.
const FROM_PART: f64 = 1.0 / 16.0;

/// And rates go down to this part of the first, where that does not pass.
const LOWEST_PART: f64 = 1.0 / 64.0;

/// The longest time of a step that decides nothing, as a multiple of its length.
const LONGER: u64 = 8;

/// Searches, and reports every step.
pub(crate) fn search(flags: &cli::Search) -> Result<Exit, Failure> {
    let Planned { mut asked, ceilings, max_time, first } = planned(flags, PlanRequest::of)?;
    let cli::Search { run, slo, from, to, resolution } = flags;
    if run.output.print_plan {
        return print_plan(&first, "a step of a search; its rates are found on the way");
    }
    let plans = if from.is_some() { vec![first] } else { vec![closed_loop_plan(&asked)?, first] };
    let outputs = Outputs::open(&run.output, &plans[0])?;
    let mut series = Series::open(run, Some("rate"), &plans, &mut asked, slo)?;
    outputs.watch(&plans[0], &run.progress, &mut series.observers)?;
    let (mut closed_loop, mut capacity) = (None, None);
    let mut range = RateRange {
        from: from.map_or(0.0, |from| from.as_f64()),
        lowest: from.map_or(0.0, |from| from.as_f64()),
        to: to.map(|to| to.as_f64()),
        resolution: resolution.per_billion as f64 / 1e9,
    };
    let ended = (|| {
        if from.is_none() {
            let rate = closed_loop_rate(&mut series, &asked)?;
            closed_loop = Some(rate);
            range.from = range.to.unwrap_or(f64::INFINITY).min(rate * FROM_PART);
            range.lowest = lowest_rate(&ceilings, range.from, &asked, max_time)?;
        }
        capacity = Some(measure_all(&mut series, &asked, &ceilings, range, max_time)?);
        Ok(())
    })();
    let question = CampaignQuestion::Search {
        objectives: slo.iter().map(ToString::to_string).collect(),
        resolution: range.resolution,
        capacity,
        closed_loop,
    };
    series.report(outputs, ended, question)
}

/// What is asked for, and the first plan of a search.
pub(super) struct Planned {
    asked: PlanRequest,
    ceilings: Vec<Ceiling>,
    /// The longest time of a step, where it is given.
    max_time: Option<DurationNs>,
    first: Plan,
}

/// What is asked for and its first plan, with everything checked that can be before a file or a connection is opened.
pub(super) fn planned(
    flags: &cli::Search,
    read: impl Fn(&cli::Run) -> Result<PlanRequest, Failure>,
) -> Result<Planned, Failure> {
    let cli::Search { run, slo, from, to, .. } = flags;
    check_output(run, "a search")?;
    let ceilings = slo.iter().map(ceiling).collect::<Result<Vec<_>, _>>()?;
    if let (Some(from), Some(to)) = (from, to)
        && from > to
    {
        let message = format!("invalid value '{to}' for --to: expected at least the rate of --from, {from}");
        return Err(Failure::usage(message));
    }
    let mut asked = read(run)?;
    asked.check_free("rate", "--from and --to of a search")?;
    let max_time = steps_end(&mut asked)?;
    let lowest = from.map_or(rate_setting(1_000.0), |from| rate_setting(from.as_f64()));
    let first = plan_at(&asked, lowest, "--slo")?;
    for objective in slo {
        // One on requests that the plan never makes would never be decided.
        let given = |reason| Failure::usage(format!("invalid value '{objective}' for --slo: {reason}"));
        first.check_subject(&objective.subject).map_err(given)?;
    }
    Ok(Planned { asked, ceilings, max_time, first })
}

pub(super) fn conclude(
    runs: &[RunRow],
    objectives: Vec<Objective>,
    resolution: f64,
    capacity: Option<Capacity>,
    closed_loop: Option<f64>,
) -> Conclusion {
    Conclusion {
        status: RunStatus::of_runs(statuses(runs, capacity), &[], &judgement_of(runs)),
        is_missed: matches!(capacity, Some(Capacity::Below { .. })),
        finding: CampaignResult::Search { objectives, resolution, capacity, closed_loop },
    }
}

/// The lowest rate of a search that is not told one: below it no step, however long, has the requests that its percentiles take.
fn lowest_rate(
    ceilings: &[Ceiling],
    from: f64,
    asked: &PlanRequest,
    max_time: Option<DurationNs>,
) -> Result<f64, Failure> {
    let longest = max_time.map_or_else(
        || asked.plan().map(|plan| plan.stop.time.unwrap_or_default().0.saturating_mul(LONGER)),
        |time| Ok(time.0),
    )?;
    let needed = ceilings.iter().filter_map(|ceiling| ceiling.quantile.samples_needed()).max().unwrap_or(0);
    Ok((from * LOWEST_PART).max(needed as f64 / (longest as f64 / 1e9).max(1e-3)))
}

/// The longest time of a step, if it is given. A search knows itself what a step is to find out.
fn steps_end(asked: &mut PlanRequest) -> Result<Option<DurationNs>, Failure> {
    let run = &mut asked.spec.run;
    if run.until.is_some() {
        return Err(Failure::usage(
            "--until cannot be used with search: its steps end when --slo is decided",
        ));
    }
    if run.requests.is_some() {
        return Err(Failure::usage("--requests cannot be used with search: its steps end by --time"));
    }
    let max_time = run.max_time.take();
    match (max_time, run.time) {
        (Some(max_time), time) if max_time < time.unwrap_or(max_time) => Err(Failure::usage(format!(
            "invalid value '{max_time}' for --max-time: expected at least --time, {}",
            time.unwrap_or(max_time)
        ))),
        _ => Ok(max_time),
    }
}

fn ceiling(objective: &Objective) -> Result<Ceiling, Failure> {
    objective.ceiling().ok_or_else(|| {
        Failure::usage(format!(
            "invalid value '{objective}' for --slo: expected an upper bound on a percentile of the response time, such as \
             'p99 < 1ms' or 'get.p99.9 <= 5ms'"
        ))
    })
}

fn measure_all(
    series: &mut Series<'_>,
    asked: &PlanRequest,
    ceilings: &[Ceiling],
    range: RateRange,
    max_time: Option<DurationNs>,
) -> Result<Capacity, End> {
    let goals: Vec<Goal> = ceilings.iter().copied().map(Goal::Excludes).collect();
    let mut search = CapacitySearch::new(range);
    // What decided nothing is measured once more: for as long as it took then, so that no short look overrules it.
    let mut undecided = None;
    for number in 1.. {
        let rate = match search.next() {
            NextStep::Found(capacity) => return Ok(capacity),
            NextStep::Measure(rate) => rate,
        };
        let setting = rate_setting(rate);
        let mut plan = plan_at(asked, setting, "--slo")?;
        let first_look = plan.stop.time.unwrap_or_default();
        let longest = max_time.unwrap_or(DurationNs(first_look.0.saturating_mul(LONGER)));
        plan.stop.time = Some(longest);
        let first_look = if undecided == Some(rate) { longest } else { first_look };
        let convergence = Convergence::new(goals.clone(), first_look.0, longest.0).giving_up_when_late();
        let label = format!("step {number}, rate={setting}");
        let mut made = series.measure_until(&plan, Some(setting), 1, &label, Some(convergence))?;
        made.measured = made.measured.with_step(&made.summary, ceilings);
        let end = made.measured.step.as_ref().map_or(StepResult::Undecided, |(end, _)| *end);
        series.keep(made)?;
        undecided = (end == StepResult::Undecided).then_some(rate);
        search.record(rate, end);
    }
    unreachable!("a search ends with a capacity")
}

/// The statuses that count: of the step whose rate is the capacity, and of the one that ended the search because it was BROKEN or
/// decided nothing. Lower rates passed on the way there, and what failed is allowed to be saturated.
fn statuses(runs: &[RunRow], capacity: Option<Capacity>) -> Vec<Status> {
    let mut statuses: Vec<Status> =
        RunRow::of_capacity(runs).into_iter().map(|run| run.status.status).collect();
    if let Some(Capacity::ClientLimited { .. } | Capacity::Broken { .. } | Capacity::Undecided { .. }) =
        capacity
    {
        statuses.push(Status::Invalid);
    }
    statuses
}
