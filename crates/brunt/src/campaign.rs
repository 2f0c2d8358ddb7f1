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
use brunt_plan::spec::{ClassSpec, PlanSpec};
use brunt_plan::split_mix;
use brunt_plan::sweep::SweepPoint;
use brunt_plan::units::{Count, DurationNs, Rate};
use brunt_report::campaign::{Campaign, CampaignLimit, CampaignQuestion, RunPlace, RunPurpose, RunRow};
use brunt_report::stored::StoredCampaign;
use brunt_report::subject::{Format, Subject};
use brunt_stats::convergence::Convergence;
use brunt_stats::observer::RunPosition;
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
    /// What runs are held against.
    objectives: &'a [Objective],
    observers: Observers<'static>,
    /// How many runs are to be made, where that is known beforehand.
    of: Option<u64>,
    /// The plan of the last run that stored its data sets, while they are complete.
    stored: Option<Plan>,
    /// Runs made, with those that are only to find a beginning.
    made: u64,
    first: Option<Summary>,
    runs: Vec<RunRow>,
}

impl<'a> Series<'a> {
    /// Finds or starts the servers, with room for the largest data set of these plans; at least one.
    fn open(
        flags: &'a cli::Run,
        plans: &[Plan],
        asked: &mut PlanRequest,
        objectives: &'a [Objective],
    ) -> Result<Self, Failure> {
        let largest = plans.iter().max_by_key(|plan| embedded::memory_bytes(plan));
        let largest = largest.ok_or_else(|| Failure::usage("a campaign without a run"))?;
        let servers = Servers::open(largest)?.with_agents(asked.fleet.take(), AgentOptions::default());
        let stop = interrupt::flag().map_err(Failure::failed)?;
        let mut observers = Observers::of(&flags.progress, objectives, &stop)?;
        run::note_raised_threads(&asked.spec, largest, &mut observers);
        let (stored, first, runs) = (None, None, Vec::new());
        Ok(Self { servers, stop, flags, objectives, observers, of: None, stored, made: 0, first, runs })
    }

    /// Makes one run with a seed of its own. `label` says where the campaign stands.
    fn measure(&mut self, plan: &Plan, label: &str) -> Result<Summary, End> {
        if self.stop.load(Ordering::Relaxed) {
            return Err(End::Interrupted);
        }
        let plan = plan.changed(|spec| {
            // Seeds are printed and typed again: they stay within what every reader of JSON keeps exact.
            spec.run.seed = Some(Count(plan.seed.wrapping_add(self.made)));
            // Raw samples of a plan file have nowhere to go.
            spec.run.samples_max = None;
        });
        let plan = plan.map_err(Failure::usage)?;
        let found = self.stored.as_ref().filter(|stored| is_same_data(stored, &plan));
        let data = if found.is_some() { DataSets::Stored } else { DataSets::ToStore };
        let judgement = self.flags.output.judging.judgement();
        let place = RunPosition { before: self.made, of: self.of, label: label.to_owned() };
        let step = Step { data, convergence: Convergence::of(&plan), place, judgement };
        let summary = match measure(&plan, &self.servers, &self.stop, &mut self.observers, &step) {
            Err(failure) if failure.exit == Exit::Interrupted => return Err(End::Interrupted),
            ended => ended?,
        };
        self.made += 1;
        self.stored = (plan.preload && !consumes(&plan)).then_some(plan);
        Ok(summary)
    }

    /// Makes one run, and takes it into the report.
    fn keep(&mut self, plan: &Plan, place: RunPlace, label: &str) -> Result<&RunRow, End> {
        let summary = self.measure(plan, label)?.with_assertions(self.objectives);
        let row = RunRow::of(&summary, place).map_err(cannot("take the numbers of a run"));
        self.runs.push(row.map_err(Failure::failed)?);
        check_agents(&summary)?;
        let is_interrupted = summary.record.run.interrupted;
        self.first.get_or_insert(summary);
        match self.runs.last() {
            Some(run) if !is_interrupted => Ok(run),
            _ => Err(End::Interrupted),
        }
    }

    /// Where the connections are said to be the limit, one run with as many as are needed shows whether they are.
    fn confirm_connections(&mut self, asked: &PlanRequest, question: &CampaignQuestion) -> Result<(), End> {
        let met = CampaignLimit::of(&self.runs, question);
        let Some((place, needed)) =
            met.and_then(|met| Some((self.runs[met.run].place, met.limit.connections_needed?)))
        else {
            return Ok(());
        };
        let connections = SweepPoint::Connections(Count(needed));
        let settings: Vec<SweepPoint> = place.setting.into_iter().chain([connections]).collect();
        let plan = plan_at(asked, &settings, "--connections")?;
        let place = RunPlace { purpose: RunPurpose::Connections(needed), ..place };
        self.keep(&plan, place, &format!("connections={needed}")).map(drop)
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
        let Self { flags, first, runs, mut observers, .. } = self;
        let Some(first) = first else {
            return match ended {
                Err(End::Failed(failure)) => Err(failure),
                _ => {
                    Err(Failure::new(Exit::Interrupted, anyhow!("interrupted before anything was measured")))
                }
            };
        };
        let stored = StoredCampaign { first, runs, question, interrupted: ended.is_err() };
        let campaign = Campaign::of(stored).map_err(Failure::usage)?;
        let subject = Subject::Campaign(&campaign);
        observers.conclude(|out| subject.write(Format::Html, out), |out| subject.write(Format::Json, out));
        let exit = deliver(&campaign, outputs, flags.progress.presentation());
        match ended {
            Err(End::Failed(failure)) => Err(failure),
            Err(End::Interrupted) | Ok(()) => Ok(exit),
        }
    }
}

/// Writes what a campaign comes to.
pub(crate) fn deliver(campaign: &Campaign, outputs: Outputs, presentation: Presentation) -> Exit {
    let delivery = outputs.write(Subject::Campaign(campaign), presentation);
    delivery.exit(if campaign.interrupted {
        Exit::Interrupted
    } else if campaign.is_missed() {
        Exit::AssertionFailed
    } else if campaign.status.is_invalid() || campaign.is_undecided() {
        Exit::Invalid
    } else {
        Exit::Done
    })
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

/// Options that say something about one run.
fn check_output(flags: &cli::Run, command: &str) -> Result<(), Failure> {
    let output = &flags.output;
    let samples_max = &flags.planned.spec.run.samples_max;
    let given = [("--samples", output.samples.is_some()), ("--samples-max", samples_max.is_some())];
    let given = given.into_iter().find(|(_, is_given)| *is_given).map(|(option, _)| option);
    match given.or_else(|| output.results.given(&Document::OF_ONE_RUN)) {
        Some(option) => {
            Err(Failure::usage(format!("{option} cannot be used with {command}: it is of one run")))
        }
        None => Ok(()),
    }
}

/// Of runs of different loads no assertion can be made.
fn check_no_assertions(flags: &cli::Run, command: &str) -> Result<(), Failure> {
    match flags.output.assert.is_empty() {
        true => Ok(()),
        false => Err(Failure::usage(format!("--assert cannot be used with {command}: it is of one plan"))),
    }
}

/// Objectives as a user writes them.
fn texts(objectives: &[Objective]) -> Vec<String> {
    objectives.iter().map(ToString::to_string).collect()
}

/// Settings in an order drawn from this seed.
fn shuffled(settings: &[SweepPoint], seed: u64) -> Vec<SweepPoint> {
    let draws = (0..).map(|index| split_mix::output(seed, index));
    let mut keyed: Vec<(u64, SweepPoint)> = draws.zip(settings.iter().copied()).collect();
    keyed.sort_by_key(|(key, _)| *key);
    keyed.into_iter().map(|(_, setting)| setting).collect()
}

/// The plan at these settings; the error says at which.
fn plan_at(asked: &PlanRequest, settings: &[SweepPoint], option: &str) -> Result<Plan, Failure> {
    let mut spec: PlanSpec = asked.spec.clone();
    let mut at = option.to_owned();
    for setting in settings {
        let overlaid = spec.overlay(PlanSpec { base: setting.class_spec(), ..PlanSpec::default() });
        at += &format!(" at {}={setting}", setting.option());
        overlaid.map_err(|_| Failure::usage(format!("{at} requires a plan with one class")))?;
    }
    let resolved = asked.resolve(&spec);
    resolved.map_err(|failure| Failure::new(failure.exit, failure.error.context(at)))
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
    let summary = series.measure(&plan, "closed loop")?;
    if summary.record.run.interrupted {
        return Err(End::Interrupted);
    }
    if summary.total.rate.completed > 0.0 {
        return Ok(summary.total.rate.completed);
    }
    let error = anyhow!("{}", no_valid_reply(&summary, "at all"));
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
    let plan = asked.resolve(&spec)?;
    let most = DurationNs::from_secs(1);
    let short = plan.changed(|spec| {
        let run = &mut spec.run;
        run.time = Some(plan.stop.time.map_or(most, |time| time.min(most)));
        (run.requests, run.until, run.max_time) = (None, None, None);
        run.warmup = Some(plan.warmup.at_most(most));
    });
    short.map_err(Failure::usage)
}

/// Prints a plan with a remark on what it is a part of.
fn print_plan(plan: &Plan, remark: &str) -> Result<Exit, Failure> {
    run::print_plan(&format!("# {remark}\n{}", plan.spec.to_toml()))
}
