//! Two servers measured in turns, so that whatever drifts on the host or in the network drifts under both.
//!
//! The order is A B, B A, B A, A B, then all of that the other way round, and so on (Thue and Morse): drifts that are straight, and
//! curved ones, fall on both sides alike. The two runs of a pair share their seed, so both servers have the same requests at the same times;
//! a data set that is still complete is not stored again. Not a campaign, which has one server. Invariant: every run has its partner, or
//! the comparison says why it ended early.

use super::ComparisonResult;
use crate::campaign::consumes;
use crate::cli;
use crate::exit::{Exit, Failure};
use crate::interrupt;
use crate::measurement::{Servers, Step, check_agents, measure};
use crate::observers::Observers;
use crate::run::read_plan;
use anyhow::anyhow;
use brunt_engine::run::DataSets;
use brunt_plan::plan::{Plan, Stop};
use brunt_plan::server_list::ServerList;
use brunt_plan::units::Count;
use brunt_plan::url::NamedServer;
use brunt_plan::warmup::Warmup;
use brunt_report::comparison::{Comparison, EarlyEnd};
use brunt_report::quantity::{self, things};
use brunt_report::result::RunResult;
use brunt_report::subject::{Format, Subject};
use brunt_stats::change::{Design, PAIRS};
use brunt_stats::convergence::Convergence;
use brunt_stats::observer::RunPosition;
use std::sync::atomic::{AtomicBool, Ordering};

/// Servers of two protocols are no pair: both sides carry out one plan.
const ACROSS_PROTOCOLS: &str = "; servers that differ in more are compared by results: brunt run --json FILE for each, then brunt compare \
     --allow-different-plans A.json B.json";

/// One of the two.
struct LiveSide {
    name: &'static str,
    plan: Plan,
    servers: Servers,
    /// What the last run left there.
    data: DataSets,
    runs: Vec<RunResult>,
}

/// Measures both and compares what they came to.
pub(super) fn compare(flags: &cli::Compare, plan: Plan) -> Result<ComparisonResult, Failure> {
    let mut sides = Vec::new();
    for (name, server) in ["A", "B"].into_iter().zip(&flags.sides.live) {
        // One that could not be read has been refused with the plan.
        let Some(server) = server.address().map(|server| server.at_port(plan.protocol.default_port())) else {
            continue;
        };
        let transport = plan.transport.for_server(&server);
        let plan = plan.changed(|spec| {
            spec.run.transport = Some(transport);
            spec.run.server = ServerList::of(&[server]);
        });
        let plan = plan.map_err(Failure::usage)?;
        let servers = Servers::open(&plan)?;
        sides.push(LiveSide { name, plan, servers, data: DataSets::ToStore, runs: Vec::new() });
    }
    let repeat = flags.sides.repeat.unwrap_or(PAIRS);
    let stop = interrupt::flag().map_err(Failure::failed)?;
    let mut observers = Observers::of(&flags.progress, &[], &stop)?;
    observers.note(&time_needed(&plan, repeat));
    let mut ended = Ok(());
    for turn in 0..2 * repeat {
        ended = take_turn(&mut sides[side_of(turn)], (turn, repeat), &stop, &mut observers, flags);
        if ended.is_err() {
            break;
        }
    }
    let (early_end, failed) = match ended {
        Ok(()) => (None, Ok(())),
        // An end that the user asked for is no failure.
        Err(failure) if failure.exit == Exit::Interrupted => (Some(EarlyEnd::Interrupted), Ok(())),
        Err(failure) => {
            let failure = told_of_one_protocol(failure, &flags.sides.live);
            (Some(EarlyEnd::Failed(format!("{:#}", failure.error))), Err(failure))
        }
    };
    let mut runs = sides.into_iter().map(|side| side.runs);
    let (a, b) = (runs.next().unwrap_or_default(), runs.next().unwrap_or_default());
    if a.is_empty() || b.is_empty() {
        failed?;
        return Err(Failure::new(Exit::Interrupted, anyhow!("interrupted before both sides had a run")));
    }
    let comparison = Comparison::of(Design::Pairs, a, b, &flags.output.assert).map_err(Failure::usage)?;
    let comparison = match early_end {
        None => comparison,
        Some(early_end) => comparison.ended_early(early_end),
    };
    let subject = Subject::Comparison(&comparison);
    observers.conclude(|out| subject.write(Format::Html, out), |out| subject.write(Format::Json, out));
    Ok(ComparisonResult { comparison, ended: failed })
}

/// A side without a protocol of its own is spoken to in that of the other one, which may be why it fails.
fn told_of_one_protocol(failure: Failure, live: &[NamedServer]) -> Failure {
    match live {
        [NamedServer::Plain(_), NamedServer::Url(url)] | [NamedServer::Url(url), NamedServer::Plain(_)]
            if failure.exit == Exit::Unreachable =>
        {
            let error = anyhow!("{:#}; both sides are spoken to as '{url}'{ACROSS_PROTOCOLS}", failure.error);
            Failure::new(failure.exit, error)
        }
        _ => failure,
    }
}

/// Makes one run of a side and keeps it. One that was cut short is not of the plan and is not kept.
fn take_turn(
    side: &mut LiveSide,
    (turn, repeat): (u32, u32),
    stop: &AtomicBool,
    observers: &mut Observers<'_>,
    flags: &cli::Compare,
) -> Result<(), Failure> {
    let interrupted = || Failure::new(Exit::Interrupted, anyhow!("interrupted"));
    if stop.load(Ordering::Relaxed) {
        return Err(interrupted());
    }
    let label = format!("{} {} of {repeat}", side.name, side.runs.len() + 1);
    let plan = side.plan.changed(|spec| spec.run.seed = Some(Count(seed_of(&side.plan, turn))));
    let plan = plan.map_err(Failure::usage)?;
    let judgement = flags.output.judging.judgement();
    let place = RunPosition { before: u64::from(turn), of: Some(2 * u64::from(repeat)), label };
    let step = Step { data: side.data, convergence: Convergence::of(&plan), place, judgement };
    let summary = measure(&plan, &side.servers, stop, observers, &step)?;
    if plan.preload && !consumes(&plan) {
        side.data = DataSets::Stored;
    }
    check_agents(&summary)?;
    if summary.record.run.interrupted {
        return Err(interrupted());
    }
    let result = RunResult::of(&summary, &format!("turn {}", turn + 1));
    side.runs.push(result.map_err(|error| Failure::new(Exit::Failed, anyhow!(error)))?);
    Ok(())
}

/// The plan of both, against the one that says how they are reached.
pub(super) fn plan(flags: &cli::Compare) -> Result<Plan, Failure> {
    let file = match flags.files.as_slice() {
        [] => None,
        [file] => Some(file.as_path()),
        files => {
            return Err(Failure::usage(format!("--live takes one plan file at most, not {}", files.len())));
        }
    };
    let mut spec = flags.planned.spec.clone();
    if spec.run.server.is_some() {
        return Err(Failure::usage("--server cannot be used with --live: name both servers there"));
    }
    let told = match flags.sides.live.as_slice() {
        [one, other] if !one.is_compatible_with(other) => {
            let message = format!(
                "--live requires URLs that differ in their hosts alone, not '{one}' and '{other}'{ACROSS_PROTOCOLS}"
            );
            return Err(Failure::usage(message));
        }
        [one, other] => vec![one.more_specific(other).clone()],
        live => live.to_vec(),
    };
    spec.run.server = Some(ServerList(told));
    let plan = read_plan(file, spec)?;
    if plan.has_destinations() || plan.classes.iter().any(|class| class.replicas > 1) {
        return Err(Failure::usage(
            "--live cannot be used with a plan whose classes have servers, routes or replicas of their own",
        ));
    }
    if plan.samples_max > 0 {
        return Err(Failure::usage(
            "--samples-max cannot be used with compare: it keeps no raw samples; use brunt run --samples PATH",
        ));
    }
    for requirement in &flags.output.assert {
        let given = |reason| Failure::usage(format!("invalid value '{requirement}' for --assert: {reason}"));
        plan.check_subject(&requirement.subject()).map_err(given)?;
    }
    Ok(plan)
}

/// How long the runs take, by the plan.
fn time_needed(plan: &Plan, repeat: u32) -> String {
    let runs = things(2 * u64::from(repeat), "run");
    let Stop { time, requests, until } = &plan.stop;
    let Some(time) = time else { return format!("{runs}, each as long as its requests take") };
    let is_longest = requests.is_some() || until.is_some() || plan.warmup == Warmup::Auto;
    let at_most = if is_longest { "at most " } else { "" };
    let run_ns = plan.warmup.longest().0.saturating_add(time.0);
    let [run, all] = [1, 2 * u64::from(repeat)].map(|runs| quantity::time(run_ns.saturating_mul(runs)));
    format!(
        "{runs} of {at_most}{run}: {at_most}{all}, and what storing keys and waiting for the last replies take"
    )
}

/// Which side has a turn, 0 or 1: that of the pair of turns, and the other one for its second turn.
fn side_of(turn: u32) -> usize {
    (turn.count_ones() % 2) as usize
}

/// The seed of a pair of turns. Seeds are printed and typed again: they stay within what every reader of JSON keeps exact.
fn seed_of(plan: &Plan, turn: u32) -> u64 {
    plan.seed.wrapping_add(u64::from(turn / 2))
}

#[cfg(test)]
mod tests {
    use super::*;
    use brunt_plan::resolve::{Host, resolve};
    use brunt_plan::spec::PlanSpec;

    fn plan(text: &str) -> Plan {
        let spec = PlanSpec::from_toml(&format!("server = [\"h\"]\n{text}")).unwrap();
        resolve(&spec, &Host { allowed_cpus: vec![0, 1], random_seed: 7 }).unwrap()
    }

    #[test]
    fn a_comparison_says_how_long_it_takes() {
        let table = [
            (
                "time = \"10s\"",
                "16 runs of 11.0 s: 176 s, and what storing keys and waiting for the last replies take",
            ),
            (
                "time = \"10s\"\nrequests = 500\nwarmup = \"0s\"",
                "16 runs of at most 10.0 s: at most 160 s, and what storing keys and waiting for the last replies take",
            ),
            ("requests = 500", "16 runs, each as long as its requests take"),
        ];
        for (text, expected) in table {
            assert_eq!(time_needed(&plan(text), PAIRS), expected);
        }
    }

    /// Both runs of a pair have the same requests at the same times.
    #[test]
    fn the_runs_of_a_pair_share_their_seed() {
        let plan = plan("");
        let seeds: Vec<u64> = (0..6).map(|turn| seed_of(&plan, turn)).collect();
        assert_eq!(seeds, [7, 7, 8, 8, 9, 9]);
        let sides: Vec<usize> = (0..100).map(side_of).collect();
        assert!(sides.chunks(2).all(|pair| pair[0] != pair[1]));
    }

    #[test]
    fn turns_are_balanced_against_linear_drift() {
        let order: String = (0..16).map(|turn| ["A", "B"][side_of(turn)]).collect();
        assert_eq!(order, "ABBABAABBAABABBA");
        for repeat in 1..=20 {
            let b = (0..2 * repeat).filter(|turn| side_of(*turn) == 1).count();
            assert_eq!(b, repeat as usize);
        }
        // Over two pairs a straight drift is the same for both, over four a square one.
        for (turns, power) in [(4, 1), (8, 2)] {
            let sum = |side| {
                (0..turns).filter(|turn| side_of(*turn) == side).map(|turn| turn.pow(power)).sum::<u32>()
            };
            assert_eq!(sum(0), sum(1));
        }
    }
}
