//! Several measurements of one command: repeated, over a range of settings, or in search of a rate.
//!
//! Above the plan, never inside the loop: every run is one [`measure`] against the same servers, and what the next one is
//! decides `brunt-stats`. Invariants: servers are found or started once, and a data set that is still complete is not stored
//! again; whatever ends a campaign early, what it has measured is reported, as one that was ended early.

mod repeat;
mod scan;
mod search;

pub(crate) use repeat::run;
pub(crate) use scan::scan;
pub(crate) use search::search;

use crate::cli;
use crate::destination::Document;
use crate::embedded;
use crate::exit::{Exit, Failure};
use crate::interrupt;
use crate::measurement::{AgentOptions, Servers, Step, check_agents, measure};
use crate::observers::Observers;
use crate::output::Outputs;
use crate::presentation::Presentation;
use crate::run::{self, PlanRequest, no_valid_reply};
use anyhow::{Context, anyhow};
use brunt_engine::run::DataSets;
use brunt_engine::system_error::cannot;
use brunt_plan::objective::Objective;
use brunt_plan::op::OpKind;
use brunt_plan::plan::Plan;
use brunt_plan::quantile::Quantile;
use brunt_plan::spec::{ClassSpec, PlanSpec};
use brunt_plan::sweep::SweepPoint;
use brunt_plan::units::{DurationNs, Rate};
use brunt_report::campaign::{
    Campaign, CampaignHeader, CampaignQuestion, CampaignResult, QUANTILES, RunRow, SpreadRow, write_html,
    write_json,
};
use brunt_report::stored::StoredCampaign;
use brunt_stats::convergence::Convergence;
use brunt_stats::observer::RunPosition;
use brunt_stats::repeat::{Estimate, Spread};
use brunt_stats::status::{Judgement, RunStatus};
use brunt_stats::summary::Summary;
use rustix::event::Timespec;
use std::io;
use std::process::{Command, ExitStatus};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Interval of looking whether a command has ended, and of hearing agents meanwhile.
const COMMAND_POLL: Timespec = Timespec { tv_sec: 0, tv_nsec: 20_000_000 };

/// The plan of `brunt run`, made without a connection.
pub(crate) fn plan_of_run(flags: &cli::Repeated) -> Result<Plan, Failure> {
    repeat::planned(flags, PlanRequest::without_agents).map(|(_, plan)| plan)
}

/// Refuses what `brunt scan` refuses before it opens a file or a connection.
pub(crate) fn check_scan(flags: &cli::Scan) -> Result<(), Failure> {
    scan::planned(flags, PlanRequest::without_agents).map(drop)
}

/// Refuses what `brunt search` refuses before it opens a file or a connection.
pub(crate) fn check_search(flags: &cli::Search) -> Result<(), Failure> {
    search::planned(flags, PlanRequest::without_agents).map(drop)
}

/// Why a campaign goes no further.
enum End {
    /// The user wants no more.
    Interrupted,
    /// It cannot.
    Failed(Failure),
}

impl From<Failure> for End {
    fn from(failure: Failure) -> Self {
        Self::Failed(failure)
    }
}

/// The runs of a campaign as they are made.
struct Series<'a> {
    servers: Servers,
    stop: Arc<AtomicBool>,
    flags: &'a cli::Run,
    observers: Observers<'static>,
    /// How many runs are to be made, where that is known beforehand.
    of: Option<u64>,
    /// The option that runs differ by.
    varied: Option<&'static str>,
    /// The plan of the last run that stored its data sets, while they are complete.
    stored: Option<Plan>,
    /// Runs made, with those that are only to find a beginning.
    made: u64,
    head: Option<CampaignHeader>,
    runs: Vec<RunRow>,
}

/// One run that was made.
struct CampaignRun {
    summary: Summary,
    measured: RunRow,
}

impl<'a> Series<'a> {
    /// Finds or starts the servers, with room for the largest data set of these plans; at least one. Objectives are for observers.
    fn open(
        flags: &'a cli::Run,
        varied: Option<&'static str>,
        plans: &[Plan],
        asked: &mut PlanRequest,
        objectives: &[Objective],
    ) -> Result<Self, Failure> {
        let largest = plans.iter().max_by_key(|plan| embedded::memory_bytes(plan));
        let largest = largest.ok_or_else(|| Failure::usage("a campaign without a run"))?;
        let servers = Servers::open(largest)?.with_agents(asked.fleet.take(), AgentOptions::default());
        let stop = interrupt::flag().map_err(Failure::failed)?;
        let mut observers = Observers::of(&flags.progress, objectives, &stop)?;
        run::note_raised_threads(&asked.spec, largest, &mut observers);
        let (stored, head, runs) = (None, None, Vec::new());
        Ok(Self { servers, stop, flags, observers, of: None, varied, stored, made: 0, head, runs })
    }

    /// Makes one run with a seed of its own. `label` says where the campaign stands.
    fn measure(
        &mut self,
        plan: &Plan,
        setting: Option<SweepPoint>,
        repetition: u32,
        label: &str,
    ) -> Result<CampaignRun, End> {
        self.measure_until(plan, setting, repetition, label, Convergence::of(plan))
    }

    /// Makes one run that ends as soon as `convergence` is reached, whatever the plan's own goal.
    fn measure_until(
        &mut self,
        plan: &Plan,
        setting: Option<SweepPoint>,
        repetition: u32,
        label: &str,
        convergence: Option<Convergence>,
    ) -> Result<CampaignRun, End> {
        if self.stop.load(Ordering::Relaxed) {
            return Err(End::Interrupted);
        }
        let mut plan = plan.clone();
        // Seeds are printed and typed again: they stay within what every reader of JSON keeps exact.
        plan.seed = plan.seed.wrapping_add(self.made);
        // Raw samples of a plan file have nowhere to go.
        plan.samples_max = 0;
        let found = self.stored.as_ref().filter(|stored| is_same_data(stored, &plan));
        let data = if found.is_some() { DataSets::Stored } else { DataSets::ToStore };
        let judgement = self.flags.output.judging.judgement();
        let place = RunPosition { before: self.made, of: self.of, label: label.to_owned() };
        let step = Step { data, convergence, place, judgement };
        let summary = match measure(&plan, &self.servers, &self.stop, &mut self.observers, &step) {
            Err(failure) if failure.exit == Exit::Interrupted => return Err(End::Interrupted),
            ended => ended?,
        };
        self.made += 1;
        self.stored = (plan.preload && !consumes(&plan)).then_some(plan);
        let measured = RunRow::of(&summary, setting, repetition)
            .map_err(cannot("take the numbers of a run"))
            .map_err(Failure::failed)?;
        Ok(CampaignRun { summary, measured })
    }

    /// Takes a run into the report.
    fn keep(&mut self, made: CampaignRun) -> Result<(), End> {
        let CampaignRun { summary, measured } = made;
        self.head.get_or_insert_with(|| CampaignHeader::of(&summary, self.varied));
        let interrupted = measured.interrupted;
        self.runs.push(measured);
        check_agents(&summary)?;
        if interrupted { Err(End::Interrupted) } else { Ok(()) }
    }

    /// Runs a command to its end, while agents hear from us. Outside is what became of them, inside of the command.
    fn await_command(&self, command: &mut Command) -> Result<io::Result<ExitStatus>, Failure> {
        let mut child = match command.spawn() {
            Ok(child) => child,
            Err(error) => return Ok(Err(error)),
        };
        let mut tended = Ok(());
        loop {
            match child.try_wait() {
                Ok(None) => {}
                Ok(Some(status)) => return tended.map(|()| Ok(status)),
                Err(error) => return Ok(Err(error)),
            }
            tended = tended.and_then(|()| self.servers.keep_alive());
            // A signal may end the wait, which does no harm.
            let _ = rustix::event::poll(&mut [], Some(&COMMAND_POLL));
        }
    }

    /// Runs the user's command between two repetitions. It may have changed the data set, which is stored again.
    fn between(&mut self, command: Option<&str>) -> Result<(), End> {
        let Some(command) = command else { return Ok(()) };
        self.stored = None;
        let status = self.await_command(Command::new("sh").args(["-c", command]))?;
        let status = status.with_context(|| format!("--between '{command}': cannot run the shell"));
        let status = status.map_err(|error| Failure::new(Exit::Failed, error))?;
        if self.stop.load(Ordering::Relaxed) {
            return Err(End::Interrupted);
        }
        if status.success() {
            return Ok(());
        }
        let error = anyhow!("--between '{command}' ended with {status}; no further repetition is measured");
        Err(Failure::new(Exit::Failed, error).into())
    }

    /// Reports what there is, however the campaign ended.
    fn report(
        self,
        outputs: Outputs,
        ended: Result<(), End>,
        question: CampaignQuestion,
    ) -> Result<Exit, Failure> {
        let Self { flags, head, runs, mut observers, .. } = self;
        let Some(head) = head else {
            return match ended {
                Err(End::Failed(failure)) => Err(failure),
                _ => {
                    Err(Failure::new(Exit::Interrupted, anyhow!("interrupted before anything was measured")))
                }
            };
        };
        let stored = StoredCampaign { head, runs, question, interrupted: ended.is_err() };
        let concluded = concluded(stored)?;
        let campaign = &concluded.campaign;
        observers.conclude(|out| write_html(campaign, out), |out| write_json(campaign, out));
        let exit = deliver(&concluded, outputs, flags.progress.presentation());
        match ended {
            Err(End::Failed(failure)) => Err(failure),
            Err(End::Interrupted) | Ok(()) => Ok(exit),
        }
    }
}

/// A campaign with its conclusion.
pub(crate) struct Concluded {
    pub(crate) campaign: Campaign,
    /// What was asked for cannot be had.
    is_missed: bool,
}

/// Concludes a campaign.
pub(crate) fn concluded(stored: StoredCampaign) -> Result<Concluded, Failure> {
    let StoredCampaign { head, runs, question, interrupted } = stored;
    let Conclusion { finding, status, is_missed } = match &question {
        CampaignQuestion::Repeat => repeat::conclude(&runs, &head.quantiles()),
        CampaignQuestion::Scan { is_load, closed_loop, .. } => {
            let option = question.varied().ok_or_else(|| Failure::usage("a scan of no option"))?;
            scan::conclude(&runs, option, *is_load, *closed_loop)
        }
        CampaignQuestion::Search { resolution, capacity, closed_loop, .. } => {
            let objectives = question.objectives().map_err(Failure::usage)?;
            search::conclude(&runs, objectives, *resolution, *capacity, *closed_loop)
        }
    };
    let campaign = Campaign { head, runs, question, finding, status, interrupted };
    Ok(Concluded { campaign, is_missed })
}

/// Writes what a campaign comes to.
pub(crate) fn deliver(concluded: &Concluded, outputs: Outputs, presentation: Presentation) -> Exit {
    let Concluded { campaign, is_missed } = concluded;
    let delivery = outputs.write_campaign(campaign, presentation);
    delivery.exit(if campaign.interrupted {
        Exit::Interrupted
    } else if *is_missed {
        Exit::AssertionFailed
    } else if campaign.status.is_invalid() {
        Exit::Invalid
    } else {
        Exit::Done
    })
}

/// What a campaign came to.
struct Conclusion {
    finding: CampaignResult,
    status: RunStatus,
    /// What was asked for cannot be had.
    is_missed: bool,
}

/// Did the other plan store what this one needs? Where keys lie depends on the servers, which are the same.
fn is_same_data(stored: &Plan, plan: &Plan) -> bool {
    plan.preload && stored.data_seed == plan.data_seed && stored.data_sets() == plan.data_sets()
}

/// Does a run leave another data set than it found: with keys missing, values grown, or versions of them that the next
/// run knows nothing of? A command of the user's may do anything.
pub(crate) fn consumes(plan: &Plan) -> bool {
    let takes = [OpKind::Delete, OpKind::Append, OpKind::Prepend, OpKind::Raw];
    let leaves_versions = plan.verify.is_some() && plan.writes();
    leaves_versions
        || plan
            .classes
            .iter()
            .any(|class| class.ttl_s > 0 || takes.iter().any(|kind| class.mix.contains(*kind)))
}

/// What the numbers of several runs come to: throughput and the percentiles of the tables.
fn compared<'a>(runs: impl Iterator<Item = &'a RunRow> + Clone, quantiles: &[Quantile]) -> Vec<SpreadRow> {
    let mut numbers = vec![("completed_per_s".to_owned(), runs.clone().map(throughput).collect::<Vec<_>>())];
    let mut quantiles = [&QUANTILES, quantiles].concat();
    quantiles.sort_unstable();
    quantiles.dedup();
    for quantile in quantiles {
        numbers.push((quantile.key(), runs.clone().filter_map(|run| estimate(run, quantile)).collect()));
    }
    let spread = |(name, estimates): (String, Vec<Estimate>)| {
        Some(SpreadRow { name, spread: Spread::of(&estimates)? })
    };
    numbers.into_iter().filter_map(spread).collect()
}

fn throughput(run: &RunRow) -> Estimate {
    // A count over the whole window: it has no interval of its own.
    Estimate { value: run.completed, half_width: None }
}

fn estimate(run: &RunRow, quantile: Quantile) -> Option<Estimate> {
    run.percentile(quantile).map(|found| found.estimate())
}

/// Options that say something about one run.
fn check_output(flags: &cli::Run, command: &str) -> Result<(), Failure> {
    let output = &flags.output;
    let given = [
        ("--samples", output.samples.is_some()),
        ("--samples-max", flags.planned.run.samples_max.is_some()),
        ("--assert", !output.assert.is_empty()),
    ];
    let given = given.into_iter().find(|(_, is_given)| *is_given).map(|(option, _)| option);
    match given.or_else(|| output.results.given(&Document::OF_ONE_RUN)) {
        Some(option) => {
            Err(Failure::usage(format!("{option} cannot be used with {command}: it is of one run")))
        }
        None => Ok(()),
    }
}

/// The plan at one setting; the error says at which.
fn plan_at(asked: &PlanRequest, setting: SweepPoint, option: &str) -> Result<Plan, Failure> {
    let mut spec: PlanSpec = asked.spec.clone();
    let overlaid = spec.overlay(Default::default(), setting.class_spec());
    let at = format!("{option} at {}={setting}", setting.option());
    overlaid.map_err(|_| Failure::usage(format!("{at} requires a plan with one class")))?;
    let resolved = asked.resolve(&spec);
    resolved.map_err(|failure| Failure::new(failure.exit, failure.error.context(at)))
}

/// How strictly the runs were judged.
fn judgement_of(runs: &[RunRow]) -> Judgement {
    runs.first().map(|run| run.status.judgement.clone()).unwrap_or_default()
}

/// A setting of the rate; rates below a request in ten minutes are none.
fn rate_setting(per_second: f64) -> SweepPoint {
    SweepPoint::Rate(Rate {
        micro_per_second: ((per_second * 1e6).round() as u64).clamp(1_667, 1_000_000_000_000_000),
    })
}

/// The most that a closed loop comes to on the same connections, in a short run: a first guess at where the limit lies.
fn closed_loop_rate(series: &mut Series<'_>, asked: &PlanRequest) -> Result<f64, End> {
    let plan = closed_loop_plan(asked)?;
    let made = series.measure(&plan, None, 1, "closed loop")?;
    if made.measured.interrupted {
        return Err(End::Interrupted);
    }
    if made.measured.completed > 0.0 {
        return Ok(made.measured.completed);
    }
    let error = anyhow!("{}", no_valid_reply(&made.summary, "at all"));
    Err(Failure::new(Exit::Unreachable, error).into())
}

/// The plan without what belongs to an open loop, for as long as it takes to see a rate.
fn closed_loop_plan(asked: &PlanRequest) -> Result<Plan, Failure> {
    let mut spec = asked.spec.clone();
    let without = |class: &mut ClassSpec| {
        (class.rate, class.rate_profile, class.arrival) = (None, None, None);
    };
    without(&mut spec.base);
    spec.classes.iter_mut().for_each(without);
    let mut plan = asked.resolve(&spec)?;
    let most = DurationNs::from_secs(1);
    plan.stop.time = Some(plan.stop.time.map_or(most, |time| time.min(most)));
    (plan.stop.requests, plan.stop.until) = (None, None);
    plan.warmup = plan.warmup.at_most(most);
    Ok(plan)
}

/// Prints a plan with a remark on what it is a part of.
fn print_plan(plan: &Plan, remark: &str) -> Result<Exit, Failure> {
    run::print_plan(&format!("# {remark}\n{}", PlanSpec::from(plan).to_toml()))
}
