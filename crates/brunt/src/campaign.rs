//! Several measurements of one command: repeated, over a range of settings, or in search of a rate.
//!
//! Above the plan, never inside the loop: every run is one measurement of a [`Runner`] against the same servers, and what the next one is
//! decides `brunt-stats`. Invariants: servers are found or started once, and a data set that is still complete is not stored
//! again; whatever ends a campaign early, what it has measured is reported, as one that was ended early.

mod scan;
mod search;

use crate::cli;
use crate::exit::{Exit, Failure};
use crate::host_share::HostShare;
use crate::measurement::{Runner, Servers, check_agents, interrupted};
use crate::output::Outputs;
use crate::presentation::Presentation;
use crate::run::{self, PlanRequest, no_valid_reply};
use crate::serve::{check_storage, memory_bytes};
use anyhow::{Context, anyhow};
use brunt_engine::process::cannot;
use brunt_plan::objective::Objective;
use brunt_plan::plan::Plan;
use brunt_plan::spec::{ClassSpec, PlanSpec};
use brunt_plan::split_mix;
use brunt_plan::sweep::SweepPoint;
use brunt_plan::units::{Count, DurationNs, Rate};
use brunt_report::campaign::{Campaign, CampaignLimit, CampaignQuestion, RunPlace, RunPurpose, RunRow};
use brunt_report::file_type::{FileType, SubjectKind};
use brunt_report::subject::Subject;
use brunt_stats::summary::Summary;
pub(crate) use scan::scan;
pub(crate) use search::{calibrate, search};
use std::io;
use std::process::{Command, ExitStatus};
use std::sync::atomic::Ordering;
use std::time::Duration;

/// Interval of looking whether a command has ended, and of hearing agents meanwhile.
const COMMAND_POLL: Duration = Duration::from_millis(20);

/// `brunt run`. Once is no campaign. Several times: the same plan with other seeds and new connections, and what the runs say of each other.
pub(crate) fn run(flags: &cli::Repeated) -> Result<Exit, Failure> {
    let (mut asked, plan) = request(flags)?.connect(&flags.run, |asked| planned(flags, asked))?;
    let cli::Repeated { run: flags, repeat, .. } = flags;
    if repeat.repeat == 1 {
        return run::run(flags, asked, plan);
    }
    if flags.output.print_plan {
        let remark = format!("the first of {} runs; the seed of each is one more", repeat.repeat);
        return print_plan(&asked, &plan, &remark);
    }
    let objectives = &flags.output.assert;
    let (mut series, outputs) = Series::open(flags, std::slice::from_ref(&plan), &mut asked, objectives)?;
    series.runner.of = Some(u64::from(repeat.repeat));
    let ended = (1..=repeat.repeat).try_for_each(|repetition| {
        series.between(repetition, repeat)?;
        let label = format!("run {repetition} of {}", repeat.repeat);
        series.keep(&plan, RunPlace { repetition, ..RunPlace::default() }, &label).map(drop)
    });
    let question = CampaignQuestion::Repeat { objectives: texts(objectives) };
    series.report(outputs, ended, question).map(|(exit, _)| exit)
}

/// The plan of `brunt run`, made without a connection.
pub(crate) fn plan_of_run(flags: &cli::Repeated) -> Result<(PlanRequest, Plan), Failure> {
    let asked = request(flags)?.without_agents();
    let plan = planned(flags, &asked)?;
    Ok((asked, plan))
}

/// What is asked for, by flags that can stand together.
fn request(flags: &cli::Repeated) -> Result<PlanRequest, Failure> {
    match flags.repeat.repeat {
        1 => {
            check_between(&flags.repeat)?;
            flags.run.output.files.check(SubjectKind::Run)?;
        }
        _ => check_output(&flags.run, SubjectKind::Repeat, "--repeat")?,
    }
    let mut asked = PlanRequest::of(&flags.run)?;
    asked.share = HostShare::of(&flags.share, &mut asked.spec.run)?;
    Ok(asked)
}

/// Its plan, which has every result that is asked for.
fn planned(flags: &cli::Repeated, asked: &PlanRequest) -> Result<Plan, Failure> {
    let plan = asked.plan();
    let plan = if asked.share.is_some() { HostShare::checked(plan) } else { plan }?;
    match flags.repeat.repeat {
        1 => run::check_output(&flags.run.output, &plan),
        _ => run::check_assertions(&flags.run.output.assert, &plan),
    }?;
    Ok(plan)
}

/// `--between` without a second repetition would never be run.
fn check_between(repeat: &cli::RepeatFlags) -> Result<(), Failure> {
    match &repeat.between {
        Some(command) if repeat.repeat == 1 => {
            Err(Failure::usage(format!("--between '{command}' requires --repeat of 2 or more")))
        }
        _ => Ok(()),
    }
}

/// The runs of a campaign as they are made.
struct Series<'a> {
    servers: Servers,
    /// Its runs include those that are only to find a beginning.
    runner: Runner<'static>,
    flags: &'a cli::Run,
    /// What runs are held against.
    objectives: &'a [Objective],
    first: Option<Summary>,
    runs: Vec<RunRow>,
}

impl<'a> Series<'a> {
    /// Makes sure that results can be written, and finds or starts the servers, with room for the largest data set of these plans; at least one.
    fn open(
        flags: &'a cli::Run,
        plans: &[Plan],
        asked: &mut PlanRequest,
        objectives: &'a [Objective],
    ) -> Result<(Self, Outputs), Failure> {
        let outputs = asked.outputs(&flags.output.files, None)?;
        let largest = plans.iter().max_by_key(|plan| memory_bytes(plan));
        let largest = largest.ok_or_else(|| Failure::usage("a campaign without a run"))?;
        check_storage(largest, &asked.host).map_err(Failure::usage)?;
        let servers = Servers::open(largest)?.with_agents(asked.fleet.take(), None);
        let mut runner = Runner::open(&flags.progress, objectives, flags.output.judging.judgement())?;
        run::note_choices(&asked.spec, largest, &mut runner.observers);
        outputs.watch(&plans[0], &flags.progress, &mut runner.observers)?;
        Ok((Self { servers, runner, flags, objectives, first: None, runs: Vec::new() }, outputs))
    }

    /// Makes one run with a seed of its own. `label` says where the campaign stands.
    fn measure(&mut self, plan: &Plan, label: &str) -> Result<Summary, Failure> {
        let plan = plan.changed(|spec| {
            // Seeds are printed and typed again: they stay within what every reader of JSON keeps exact.
            spec.run.seed = Some(Count(plan.seed.wrapping_add(self.runner.made)));
            // Raw samples of a plan file have nowhere to go.
            spec.run.samples_max = None;
        });
        self.runner.measure(&mut self.servers, &plan.map_err(Failure::usage)?, label)
    }

    /// Makes one run, and takes it into the report.
    fn keep(&mut self, plan: &Plan, place: RunPlace, label: &str) -> Result<&RunRow, Failure> {
        let summary = self.measure(plan, label)?.with_assertions(self.objectives);
        let row = RunRow::of(&summary, place).map_err(cannot("take the numbers of a run"));
        self.runs.push(row.map_err(Failure::failed)?);
        check_agents(&summary)?;
        let is_interrupted = summary.record.run.interrupted;
        self.first.get_or_insert(summary);
        self.runs.last().filter(|_| !is_interrupted).ok_or_else(interrupted)
    }

    /// Where the connections are said to be the limit, one run with as many as are needed shows whether they are.
    fn confirm_connections(
        &mut self,
        asked: &PlanRequest,
        question: &CampaignQuestion,
    ) -> Result<(), Failure> {
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
            if let Some(ended) = child.try_wait().transpose() {
                return tended.map(|()| ended);
            }
            tended = tended.and(self.servers.pause(COMMAND_POLL));
        }
    }

    /// Runs the user's command before a repetition, but for the first. It may have changed the data set, which is stored again.
    fn between(&mut self, repetition: u32, repeat: &cli::RepeatFlags) -> Result<(), Failure> {
        let Some(command) = repeat.between.as_deref().filter(|_| repetition > 1) else { return Ok(()) };
        self.servers.stored = None;
        let status = self.await_command(Command::new("sh").args(["-c", command]))?;
        let status = status.with_context(|| format!("--between '{command}': cannot run the shell"));
        let status = status.map_err(|error| Failure::new(Exit::Failed, error))?;
        if self.runner.stop.load(Ordering::Relaxed) {
            return Err(interrupted());
        }
        if status.success() {
            return Ok(());
        }
        let error = anyhow!("--between '{command}' ended with {status}; no further repetition is measured");
        Err(Failure::new(Exit::Failed, error))
    }

    /// Reports what there is, however the campaign ended.
    fn report(
        mut self,
        outputs: Outputs,
        ended: Result<(), Failure>,
        question: CampaignQuestion,
    ) -> Result<(Exit, Campaign), Failure> {
        let is_early = ended.is_err();
        let failed = ended.or_else(|failure| match failure.exit {
            Exit::Interrupted => Ok(()),
            _ => Err(failure),
        });
        let Some(first) = self.first else {
            failed?;
            return Err(Failure::message(Exit::Interrupted, "interrupted before anything was measured"));
        };
        let campaign = Campaign::of(first, self.runs, question, is_early).map_err(Failure::usage)?;
        let subject = Subject::Campaign(&campaign);
        self.runner.observers.conclude(
            |out| subject.write(FileType::Html.into(), out),
            |out| subject.write(FileType::Json.into(), out),
        );
        let exit = deliver(&campaign, outputs, self.flags.progress.presentation());
        failed.map(|()| (exit, campaign))
    }
}

/// Writes what a campaign comes to.
pub(crate) fn deliver(campaign: &Campaign, outputs: Outputs, presentation: Presentation) -> Exit {
    let delivery = outputs.write(Subject::Campaign(campaign), presentation);
    let is_doubtful = campaign.status.is_invalid() || campaign.is_undecided();
    delivery.exit(Exit::of(campaign.interrupted, campaign.is_missed(), is_doubtful))
}

/// Refuses what only a single run has.
fn check_output(flags: &cli::Run, subject: SubjectKind, command: &str) -> Result<(), Failure> {
    if flags.planned.spec.run.samples_max.is_some() {
        return Err(Failure::usage(format!("samples-max cannot be used with {command}: it is of one run")));
    }
    if flags.journal.is_some() {
        return Err(Failure::usage(format!("--journal cannot be used with {command}: it is of one run")));
    }
    flags.output.files.check(subject)
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
fn closed_loop_rate(series: &mut Series<'_>, asked: &PlanRequest) -> Result<f64, Failure> {
    let summary = series.measure(&closed_loop_plan(asked)?, "closed loop")?;
    match summary.total.rate.completed {
        _ if summary.record.run.interrupted => Err(interrupted()),
        none if none <= 0.0 => Err(Failure::message(Exit::Unreachable, no_valid_reply(&summary, "at all"))),
        rate => Ok(rate),
    }
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
        (run.requests, run.until) = (None, None);
        run.warmup = Some(plan.warmup.at_most(most));
    });
    short.map_err(Failure::usage)
}

/// Prints a plan with a remark on what it is a part of.
fn print_plan(asked: &PlanRequest, plan: &Plan, remark: &str) -> Result<Exit, Failure> {
    run::print_plan(&format!("# {remark}\n{}", asked.printed(plan)))
}
