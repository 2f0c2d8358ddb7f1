//! `brunt search`: the highest rate at which every objective is met.
//!
//! Which rate is next, and what a step means, is `brunt-stats`'; here steps are measured. A step is short: many of them, and runs in pairs
//! at the end, say more than one long run at each rate.

use super::{
    Series, check_output, closed_loop_plan, closed_loop_rate, plan_at, print_plan, rate_setting, texts,
};
use crate::calibrations;
use crate::cli;
use crate::exit::{Exit, Failure};
use crate::run::{PlanRequest, check_assertions};
use crate::terminal::say;
use brunt_plan::objective::Objective;
use brunt_plan::plan::{Plan, Timestamps};
use brunt_plan::quantile::Quantile;
use brunt_plan::units::{Count, DurationNs};
use brunt_plan::warmup::Warmup;
use brunt_report::campaign::{Campaign, CampaignQuestion, RunPlace, RunPurpose};
use brunt_report::file_type::SubjectKind;
use brunt_stats::assertion::Reason;
use brunt_stats::capacity::Capacity;
use brunt_stats::capacity_search::{CapacitySearch, NextStep, RateRange};

/// The first rate without --from, as a fraction of the closed-loop maximum.
const FROM_PART: f64 = 0.5;
/// And rates go down to this part of the first, where that does not hold.
const LOWEST_PART: f64 = 1.0 / 256.0;
/// Length of a step ...
const STEP: DurationNs = DurationNs(1_000_000_000);
/// ... which is longer where fewer requests may reach the bound, up to this without --until max.
const ALLOWED_MIN: u64 = 20;
const STEP_MAX: DurationNs = DurationNs(30_000_000_000);
/// Warm-up of a step.
const WARMUP: DurationNs = DurationNs(300_000_000);

/// Keys of a calibration. Few, so that a step begins soon; the reference server's time does not depend on them.
const CALIBRATION_KEYS: Count = Count(1_000);

/// `brunt search`.
pub(crate) fn search(flags: &cli::Search) -> Result<Exit, Failure> {
    let (asked, steps) = request(flags, "search")?;
    let (asked, plans) = asked.connect(&flags.run, |asked| plans(flags, asked))?;
    report(flags, asked, steps, &plans).map(|(exit, _)| exit)
}

/// `brunt calibrate`: a search for what the client can do beside the reference server, of which later runs know.
pub(crate) fn calibrate(flags: &cli::Search) -> Result<Exit, Failure> {
    if texts(&flags.run.output.assert) != [cli::CALIBRATION_OBJECTIVE] {
        let objective = cli::CALIBRATION_OBJECTIVE;
        return Err(Failure::usage(format!(
            "--assert cannot be used with calibrate: its objective is {objective}"
        )));
    }
    let (mut asked, steps) = request(flags, "calibrate")?;
    asked.spec.base.keys.get_or_insert(CALIBRATION_KEYS);
    // The client's kernel is no part of the rate that it keeps up with.
    asked.spec.run.timestamps.get_or_insert(Timestamps::Off);
    let asked = asked.without_agents();
    let plans = plans(flags, &asked)?;
    if !plans[0].needs_embedded() || !plans[0].agents.is_empty() {
        let message = "--server and --agent cannot be used with calibrate: it measures brunt on this host, against its own server";
        return Err(Failure::usage(message));
    }
    let (exit, campaign) = report(flags, asked, steps, &plans)?;
    if let Some(campaign) = campaign {
        let kept = calibrations::keep_found(&campaign)?;
        if !flags.run.progress.quiet {
            say(kept);
        }
    }
    Ok(exit)
}

/// Searches, and reports every step. Beside the exit code: what was found.
fn report(
    flags: &cli::Search,
    mut asked: PlanRequest,
    steps: Steps,
    plans: &[Plan],
) -> Result<(Exit, Option<Campaign>), Failure> {
    let cli::Search { run, from, to, resolution } = flags;
    let objectives = &run.output.assert;
    if run.output.print_plan {
        let remark = "a step of a search; its rates are found on the way";
        return Ok((print_plan(&asked, &plans[0], remark)?, None));
    }
    let (mut series, outputs) = Series::open(run, plans, &mut asked, objectives)?;
    let (mut closed_loop, mut capacity) = (None, None);
    let to = to.map(|to| to.as_f64());
    let ended = (|| {
        let (from, lowest) = match from {
            Some(from) => (from.as_f64(), from.as_f64()),
            None => {
                let rate = closed_loop_rate(&mut series, &asked)?;
                closed_loop = Some(rate);
                let from = to.unwrap_or(f64::INFINITY).min(rate * FROM_PART);
                (from, steps.lowest_rate(objectives).max(from * LOWEST_PART).min(from))
            }
        };
        let range = RateRange { from, lowest, to, gap: resolution.as_f64() };
        capacity = Some(measure_all(&mut series, &asked, steps, range)?);
        Ok(())
    })();
    let resolution = resolution.as_f64();
    let question =
        CampaignQuestion::Search { objectives: texts(objectives), resolution, capacity, closed_loop };
    let ended = ended.and_then(|()| series.confirm_connections(&asked, &question));
    let (exit, campaign) = series.report(outputs, ended, question)?;
    Ok((exit, Some(campaign)))
}

/// How long steps are.
#[derive(Clone, Copy)]
struct Steps {
    least: DurationNs,
    most: DurationNs,
    /// By how much longer they have to be, as the objectives are of a part of the requests.
    stretch: f64,
}

impl Steps {
    /// The length of a step at a rate: the requests that all objectives take.
    fn length(&self, rate: f64, objectives: &[Objective]) -> DurationNs {
        let needed_ns = needed(objectives) as f64 * self.stretch / rate * 1e9;
        DurationNs((needed_ns as u64).clamp(self.least.0, self.most.0))
    }

    /// Below it no step, however long, has the requests.
    fn lowest_rate(&self, objectives: &[Objective]) -> f64 {
        needed(objectives) as f64 / (self.most.0 as f64 / 1e9).max(1e-3)
    }
}

/// The requests of which enough may reach the bounds.
fn needed(objectives: &[Objective]) -> u64 {
    let samples = |quantile: Quantile| quantile.samples_with_above(ALLOWED_MIN);
    objectives.iter().filter_map(|objective| samples(objective.subject.percentile()?)).max().unwrap_or(0)
}

/// What is asked for, by flags that this command takes, and how long its steps are.
fn request(flags: &cli::Search, command: &str) -> Result<(PlanRequest, Steps), Failure> {
    let cli::Search { run, from, to, .. } = flags;
    check_output(run, SubjectKind::Scan, command)?;
    run.output.assert.iter().try_for_each(check_objective)?;
    if let (Some(from), Some(to)) = (from, to)
        && from > to
    {
        let message = format!("invalid value '{to}' for --to: expected at least the rate of --from, {from}");
        return Err(Failure::usage(message));
    }
    let mut asked = PlanRequest::of(run)?;
    asked.check_free("rate", &format!("{command}, which finds the rate: --from and --to limit it"))?;
    let steps = steps(&mut asked, command)?;
    Ok((asked, steps))
}

/// The plan of a step, and without --from that of a closed loop.
fn plans(flags: &cli::Search, asked: &PlanRequest) -> Result<Vec<Plan>, Failure> {
    let lowest = rate_setting(flags.from.map_or(1_000.0, |from| from.as_f64()));
    let step = plan_at(asked, &[lowest], "--assert")?;
    // An objective on requests that the plan never makes would never be decided.
    check_assertions(&flags.run.output.assert, &step)?;
    Ok(match flags.from {
        Some(_) => vec![step],
        None => vec![step, closed_loop_plan(asked)?],
    })
}

/// How long steps are. A search knows itself what a step is to find out.
fn steps(asked: &mut PlanRequest, command: &str) -> Result<Steps, Failure> {
    let run = &mut asked.spec.run;
    let until = run.until.take().unwrap_or_default();
    if !until.precisions.is_empty() {
        return Err(Failure::usage(format!(
            "invalid value '{until}' for --until: expected max alone, as in max=30s: the steps of {command} are as long as its objectives take"
        )));
    }
    if run.requests.is_some() {
        return Err(Failure::usage(format!(
            "--requests cannot be used with {command}: its steps end by --time"
        )));
    }
    run.warmup.get_or_insert(Warmup::For(WARMUP));
    let least = *run.time.get_or_insert(STEP);
    match until.max {
        Some(most) if most < least => Err(Failure::usage(format!(
            "invalid value 'max={most}' for --until: expected at least --time, {least}"
        ))),
        most => Ok(Steps { least, most: most.unwrap_or(STEP_MAX.max(least)), stretch: 1.0 }),
    }
}

fn check_objective(objective: &Objective) -> Result<(), Failure> {
    match objective.is_ceiling() {
        true => Ok(()),
        false => Err(Failure::usage(format!(
            "invalid value '{objective}' for --assert: expected an upper bound on a percentile of the response time, such as \
             'p99 < 1ms' or 'get.p99.9 <= 5ms', or on the client's part of one, such as 'client.p99 <= 10us'"
        ))),
    }
}

fn measure_all(
    series: &mut Series<'_>,
    asked: &PlanRequest,
    mut steps: Steps,
    range: RateRange,
) -> Result<Capacity, Failure> {
    let mut search = CapacitySearch::new(range);
    for number in 1.. {
        let (rate, is_of_pair) = match search.next() {
            NextStep::Found(capacity) => return Ok(capacity),
            NextStep::Measure { rate, is_of_pair } => (rate, is_of_pair),
        };
        let setting = rate_setting(rate);
        let time = steps.length(rate, series.objectives);
        let plan = plan_at(asked, &[setting], "--assert")?.changed(|spec| spec.run.time = Some(time));
        let plan = plan.map_err(Failure::usage)?;
        let (purpose, of) = match is_of_pair {
            true => (RunPurpose::Pair, "pair"),
            false => (RunPurpose::Step, "step"),
        };
        let place = RunPlace { setting: Some(setting), repetition: 1, purpose };
        let run = series.keep(&plan, place, &format!("{of} {number}, rate={setting}"))?;
        for assertion in &run.assertions {
            if let (Some(Reason::Requests { more, .. }), Some(reached)) =
                (assertion.reason, assertion.reached)
            {
                let had = reached.requests.max(1);
                steps.stretch = steps.stretch.max(1.1 * (had + more) as f64 / had as f64);
            }
        }
        search.record(rate, run.step);
    }
    unreachable!("a search ends with a capacity")
}
