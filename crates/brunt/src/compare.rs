//! `brunt compare`: two results, or two servers, side by side.
//!
//! Not the statistics and not the report (`brunt_stats::change`, `brunt_report::comparison`): here results are read, or made: two servers are
//! measured in turns, so that whatever drifts on the host or in the network drifts under both. The order is A B, B A, B A, A B, then all of that
//! the other way round, and so on (Thue and Morse): drifts that are straight, and curved ones, fall on both sides alike. The two runs of a pair
//! share their seed, so both servers have the same requests at the same times. Invariants: nothing is compared that was not measured by one plan,
//! unless the user says so; every run has its partner, or the comparison says why it ended early.

use crate::cli;
use crate::exit::{Exit, Failure};
use crate::input;
use crate::measurement::{Runner, Servers};
use crate::output::Outputs;
use crate::run::{PlanRequest, check_subjects, names_server};
use anyhow::anyhow;
use brunt_plan::objective::Requirement;
use brunt_plan::plan::{Plan, Stop};
use brunt_plan::units::Count;
use brunt_plan::url::NamedServer;
use brunt_plan::url::ServerList;
use brunt_plan::warmup::Warmup;
use brunt_report::comparison::{Comparison, EarlyEnd, plan_differences, side_differences};
use brunt_report::file_type::{FileType, SubjectKind};
use brunt_report::quantity::{self, things};
use brunt_report::result::{self, RunResult};
use brunt_report::stored::Difference;
use brunt_report::subject::Subject;
use brunt_stats::change::{Design, PAIRS};
use std::path::PathBuf;

/// Compares, and reports what that shows.
pub(crate) fn compare(flags: &cli::Compare) -> Result<Exit, Failure> {
    let results = [&flags.files, &flags.sides.a, &flags.sides.b];
    results.into_iter().flatten().for_each(|path| input::note(path));
    let (plans, outputs) = planned(flags)?;
    let (comparison, ended) = match plans.as_slice() {
        [] => (of_files(flags)?, Ok(())),
        plans => compare_live(flags, plans)?,
    };
    let delivery = outputs.write(Subject::Comparison(&comparison), flags.progress.presentation());
    ended?;
    Ok(delivery.exit(exit_of(&comparison)))
}

/// The plans of both sides of a live comparison, with everything checked that can be before a file or a connection is opened; none of a
/// comparison of results. Beside them: where it is reported.
fn planned(flags: &cli::Compare) -> Result<(Vec<Plan>, Outputs), Failure> {
    let files = &flags.output.files;
    files.check(SubjectKind::Comparison)?;
    if flags.sides.live.is_empty() {
        check_flags_of_files(flags)?;
        return Ok((Vec::new(), Outputs::of(files)?));
    }
    let (mut asked, plans) = live_request(flags)?.ask(Some(files), |asked| plans_of_sides(flags, asked))?;
    Ok((plans, asked.outputs(files, None)?))
}

/// What a comparison comes to.
pub(crate) fn exit_of(comparison: &Comparison) -> Exit {
    let is_doubtful = !comparison.has_conclusion() || comparison.is_undecided();
    Exit::of(comparison.is_interrupted(), comparison.is_missed(), is_doubtful)
}

/// Refuses what a comparison of results that were measured before cannot have.
fn check_flags_of_files(flags: &cli::Compare) -> Result<(), Failure> {
    let spec = &flags.planned.spec;
    let http = flags.progress.http.map(|_| "http".to_owned());
    let given = [spec.run.given(), spec.base.given(), Vec::from_iter(http)].concat();
    if !given.is_empty() {
        let given: Vec<String> = given.iter().map(|flag| format!("--{flag}")).collect();
        return Err(Failure::usage(format!(
            "{} requires --live: these results were measured already",
            given.join(" ")
        )));
    }
    if flags.output.judging.strict || !flags.output.judging.allow.is_empty() {
        return Err(Failure::usage(
            "--strict and --allow require --live: these results were judged when they were measured",
        ));
    }
    Ok(())
}

fn of_files(flags: &cli::Compare) -> Result<Comparison, Failure> {
    let (a, b) = match (flags.files.as_slice(), flags.sides.a.as_slice(), flags.sides.b.as_slice()) {
        ([a, b], [], []) => (read(std::slice::from_ref(a))?, read(std::slice::from_ref(b))?),
        ([], a @ [_, ..], b @ [_, ..]) => (read(a)?, read(b)?),
        (files, ..) => {
            return Err(Failure::usage(format!(
                "{} given: expected two, A.json B.json; several each, --a A.json ... --b B.json ...; or two servers, \
                 --live A B",
                things(files.len() as u64, "result")
            )));
        }
    };
    if !flags.sides.allow_different_plans {
        check_plans(&a, &b).map_err(Failure::usage)?;
    }
    Comparison::of(Design::Apart, a, b, &flags.output.assert).map_err(Failure::usage)
}

fn read(paths: &[PathBuf]) -> Result<Vec<RunResult>, Failure> {
    let mut runs = Vec::new();
    for path in paths {
        let name = path.display().to_string();
        let text = input::read_result(path).and_then(input::decoded).map_err(|error| {
            let live = if names_server(&name) { "; servers are compared by --live A B" } else { "" };
            Failure::usage(format!("cannot read '{name}' ({error}): expected a result in JSON{live}"))
        })?;
        runs.extend(result::read(&text, &name).map_err(Failure::usage)?);
    }
    Ok(runs)
}

/// Are all runs of one plan, and those of a side of one server?
fn check_plans(a: &[RunResult], b: &[RunResult]) -> Result<(), String> {
    let listed =
        |differences: &[Difference]| differences.iter().map(|held| format!("\n  {held}")).collect::<String>();
    let accepted = "expected results of one plan, or --allow-different-plans";
    for side in [a, b] {
        let Some((first, others)) = side.split_first() else { continue };
        for other in others {
            let found = side_differences(first, other);
            if !found.is_empty() {
                let (one, other) = (&first.source, &other.source);
                return Err(format!(
                    "'{one}' (A) and '{other}' (B) stand on one side, and their plans differ:{}\n{accepted}",
                    listed(&found)
                ));
            }
        }
    }
    let found = a.first().zip(b.first()).map(|(a, b)| plan_differences(a, b)).unwrap_or_default();
    if found.is_empty() { Ok(()) } else { Err(format!("the plans differ:{}\n{accepted}", listed(&found))) }
}

/// Servers of two protocols are no pair: both sides carry out one plan.
const ACROSS_PROTOCOLS: &str = "; servers that differ in more are compared by results: brunt run -o FILE.json for each, then brunt compare \
     --allow-different-plans A.json B.json";

/// One of the two.
struct LiveSide {
    name: &'static str,
    plan: Plan,
    servers: Servers,
    runs: Vec<RunResult>,
}

/// Measures both and compares what they came to. Beside it: what ended the measurements early; it is reported all the same.
fn compare_live(flags: &cli::Compare, plans: &[Plan]) -> Result<(Comparison, Result<(), Failure>), Failure> {
    let sides = ["A", "B"].into_iter().zip(plans).map(|(name, plan)| {
        Ok(LiveSide { name, plan: plan.clone(), servers: Servers::open(plan)?, runs: Vec::new() })
    });
    let mut sides = sides.collect::<Result<Vec<_>, Failure>>()?;
    let repeat = flags.sides.repeat.unwrap_or(PAIRS);
    let mut runner = Runner::open(&flags.progress, &[], flags.output.judging.judgement())?;
    runner.of = Some(2 * u64::from(repeat));
    runner.observers.note(&time_needed(&plans[0], repeat));
    let ended: Result<(), Failure> = (0..2 * repeat).try_for_each(|turn| {
        let LiveSide { name, plan, servers, runs } = &mut sides[side_of(turn)];
        let label = format!("{name} {} of {repeat}", runs.len() + 1);
        let plan = plan.changed(|spec| spec.run.seed = Some(Count(seed_of(plan, turn))));
        // One that was cut short is not of the plan and is not kept.
        let summary = runner.measure_whole(servers, &plan.map_err(Failure::usage)?, &label)?;
        let result = RunResult::of(&summary, &format!("turn {}", turn + 1));
        runs.push(result.map_err(|error| Failure::new(Exit::Failed, anyhow!(error)))?);
        Ok(())
    });
    let (early_end, failed) = match ended {
        Ok(()) => (None, Ok(())),
        // An end that the user asked for is no failure.
        Err(failure) if failure.exit == Exit::Interrupted => (Some(EarlyEnd::Interrupted), Ok(())),
        Err(failure) => (Some(EarlyEnd::Failed(format!("{:#}", failure.error))), Err(failure)),
    };
    let mut runs = sides.into_iter().map(|side| side.runs);
    let (a, b) = (runs.next().unwrap_or_default(), runs.next().unwrap_or_default());
    if a.is_empty() || b.is_empty() {
        failed?;
        return Err(Failure::new(Exit::Interrupted, anyhow!("interrupted before both sides had a run")));
    }
    let comparison = Comparison::of(Design::Pairs, a, b, &flags.output.assert).map_err(Failure::usage)?;
    let comparison = early_end.into_iter().fold(comparison, Comparison::ended_early);
    let subject = Subject::Comparison(&comparison);
    runner.observers.conclude(
        |out| subject.write(FileType::Html.into(), out),
        |out| subject.write(FileType::Json.into(), out),
    );
    Ok((comparison, failed))
}

/// What is asked for, of both servers.
fn live_request(flags: &cli::Compare) -> Result<PlanRequest, Failure> {
    if flags.files.len() > 1 {
        return Err(Failure::usage(format!("--live takes one plan file at most, not {}", flags.files.len())));
    }
    let mut spec = flags.planned.spec.clone();
    if spec.run.server.is_some() {
        return Err(Failure::usage("--server cannot be used with --live: name both servers there"));
    }
    if let [one, other] = flags.sides.live.as_slice()
        && !one.is_compatible_with(other)
    {
        let message = format!(
            "--live requires URLs that differ in their hosts alone, not '{one}' and '{other}'{ACROSS_PROTOCOLS}"
        );
        return Err(Failure::usage(message));
    }
    spec.run.server = Some(ServerList(flags.sides.live.clone()));
    PlanRequest::read(flags.files.first().map(PathBuf::as_path), spec)
}

/// The plans of A and B, which are one but for the server: how both are reached says the one of them that has a URL.
fn plans_of_sides(flags: &cli::Compare, asked: &PlanRequest) -> Result<Vec<Plan>, Failure> {
    let servers = asked.spec.run.server.clone().unwrap_or_default().0;
    let mut spec = asked.spec.clone();
    let specific = servers.iter().reduce(NamedServer::more_specific);
    spec.run.server = specific.map(|server| ServerList(vec![server.clone()]));
    let plan = asked.resolve(&spec)?;
    if plan.has_destinations() || plan.classes.iter().any(|class| class.replicas > 1) {
        return Err(Failure::usage(
            "--live cannot be used with a plan whose classes have servers, routes or replicas of their own",
        ));
    }
    if plan.samples_max > 0 {
        return Err(Failure::usage(
            "samples-max cannot be used with compare: it keeps no raw samples; use brunt run -o samples:PATH",
        ));
    }
    check_subjects(&flags.output.assert, Requirement::subject, &plan)?;
    let of_side = |server: &NamedServer| {
        // One that could not be read has been refused with the plan.
        let address = server.address()?.at_port(plan.protocol.default_port());
        Some(plan.changed(|spec| {
            spec.run.transport = Some(plan.transport.for_server(&address));
            spec.run.server = ServerList::of(&[address]);
        }))
    };
    servers.iter().filter_map(of_side).collect::<Result<_, _>>().map_err(Failure::usage)
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
        resolve(&spec, &Host::of(vec![0, 1], 7)).unwrap()
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
