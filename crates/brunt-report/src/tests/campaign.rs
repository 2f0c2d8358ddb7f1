//! Reports of made-up campaigns as snapshots: runs with numbers that were put there, over the JSON of a made-up run, concluded as the
//! command does it.

use super::schema::reader::errors;
use super::{output, run};
use crate::campaign::{Campaign, CampaignQuestion, RunPlace, RunPurpose, RunRow};
use crate::document::Level;
use crate::file_type::FileType;
use crate::layout::Layout;
use crate::subject::Subject;
use brunt_plan::sweep::SweepPoint;
use brunt_plan::units::Rate;
use brunt_stats::assertion::{Assertion, Reached, Reason};
use brunt_stats::bottleneck::{Bottleneck, Limit, LimitFacts};
use brunt_stats::bound::Decision;
use brunt_stats::capacity::Capacity;
use brunt_stats::capacity_search::StepResult;
use brunt_stats::check::{CheckId, CheckStatus};
use brunt_stats::rate_scan::Knee;
use brunt_stats::status::Status;
use brunt_stats::summary::Summary;
use serde_json::Value;
use std::sync::LazyLock;

/// What the runs were before they had numbers of their own.
static SUMMARY: LazyLock<Summary> = LazyLock::new(|| run::open_loop().summary);
const US: f64 = 1_000.0;

fn rate(per_second: f64) -> SweepPoint {
    SweepPoint::Rate(Rate { micro_per_second: (per_second * 1e6) as u64 })
}

/// A run at a rate with a p99.
fn measured(summary: &Summary, setting: Option<SweepPoint>, repetition: u32, p99_ns: f64) -> RunRow {
    let place = RunPlace { setting, repetition, purpose: RunPurpose::Step };
    let mut run = RunRow::of(summary, place).unwrap();
    let rates = &mut run.result.row.counts.rate;
    rates.completed = setting.map_or(rates.completed, SweepPoint::as_f64);
    run.result.window.is_open_loop = setting.is_some();
    rates.offered = rates.completed;
    // Each with an interval of 2 % to both sides.
    let response = &mut run.result.row.latency.response_ns;
    (response.percentiles, response.interval) = Default::default();
    for (name, part) in [("p50", 1.0 / 3.0), ("p99", 1.0), ("p99.9", 2.0)] {
        let [low, ns, high] = [0.98, 1.0, 1.02].map(|factor| (p99_ns * part * factor) as u64);
        response.percentiles.insert(name.to_owned(), Some(ns));
        response.interval.insert(name.to_owned(), (low, Some(high)));
    }
    (run.is_limited, run.result.status.status.status) = (false, Status::Ok);
    run.seed += u64::from(repetition) - 1;
    run
}

/// The facts of an overload that this one limits: of 16 connections and a server that answers in 10 ms.
fn limit(bottleneck: Bottleneck) -> Limit {
    let facts =
        LimitFacts { slots: 16, depth: 1, slots_taken_share: 1.0, rate: Some(11e3), ..Default::default() };
    Limit::of(&match bottleneck {
        Bottleneck::Server => {
            LimitFacts { server_busiest_thread_share: Some(0.97), throughput: 1e4, ..facts }
        }
        Bottleneck::Client => LimitFacts { worker_busiest_share: 0.99, throughput: 1e4, ..facts },
        Bottleneck::Connections => {
            LimitFacts { unloaded_service_ns: Some(1_600_000), throughput: 1e4, ..facts }
        }
    })
}

/// The same with a load that was too much.
fn limited(run: RunRow, bottleneck: Bottleneck) -> RunRow {
    let mut run = RunRow { limit: limit(bottleneck), is_limited: true, ..run };
    run.result.status.status.status = Status::Invalid;
    run
}

fn campaign(summary: &Summary, runs: Vec<RunRow>, question: CampaignQuestion) -> Campaign {
    let first = summary.clone();
    Campaign::of(first, runs, question, false).unwrap()
}

fn scan_question(closed_loop: Option<f64>) -> CampaignQuestion {
    CampaignQuestion::Scan { option: "rate".to_owned(), is_load: true, closed_loop }
}

/// Of runs whose client's parts rest on what those of this one do.
pub(super) fn scan_of(summary: &Summary) -> Campaign {
    let runs = scan_runs(summary, Bottleneck::Server);
    campaign(summary, runs, scan_question(Some(10_000.0)))
}

/// An M/M/1 queue that serves 10 000 requests a second, up to where it is too much; as they were made, in no order.
fn scan_runs(summary: &Summary, bottleneck: Bottleneck) -> Vec<RunRow> {
    let at = |load: f64, p99_ns: f64| measured(summary, Some(rate(load)), 1, p99_ns);
    let mut too_much = limited(at(11e3, 5e8), bottleneck);
    too_much.result.row.counts.rate.completed = 9_980.0;
    let loads = [5e3, 1e3, 9e3, 2e3, 6e3, 4e3, 8e3];
    let free = loads.map(|load| at(load, 4.605e9 / (1e4 - load)));
    free.into_iter().chain([too_much]).collect()
}

fn scan(bottleneck: Bottleneck) -> Campaign {
    campaign(&SUMMARY, scan_runs(&SUMMARY, bottleneck), scan_question(Some(10_000.0)))
}

/// More connections do as much as is offered, or no more than before.
fn scan_of_few_connections(completed: f64) -> Campaign {
    let mut runs = scan_runs(&SUMMARY, Bottleneck::Connections);
    let more = runs.last().unwrap().clone();
    let place = RunPlace { purpose: RunPurpose::Connections(22), ..more.place };
    let mut more = RunRow { place, is_limited: completed < 11e3, ..more };
    more.result.row.counts.rate.completed = completed;
    runs.push(more);
    campaign(&SUMMARY, runs, scan_question(None))
}

/// A host that takes the processors away: of the lowest load of a scan at once, and of a repetition.
fn scan_spoiled(is_interrupted: bool) -> Campaign {
    let at = |load: f64, p99_ns: f64| measured(&SUMMARY, Some(rate(load)), 1, p99_ns);
    let mut runs = vec![
        limited(at(1e3, 1.30e6), Bottleneck::Client),
        at(1e3, 1.27e6),
        limited(at(2e3, 1.47e6), Bottleneck::Client),
        at(3e3, 1.35e6),
    ];
    if is_interrupted {
        let mut last = limited(at(4e3, 1.5e6), Bottleneck::Client);
        last.result.window.interrupted = true;
        runs.push(last);
    }
    let question = scan_question(None);
    Campaign::of(SUMMARY.clone(), runs, question, is_interrupted).unwrap()
}

/// Two passes, of which the second is 10 % slower.
fn scan_repeated() -> Campaign {
    let runs = [(1, 1.0), (2, 1.1)].into_iter().flat_map(|(pass, factor)| {
        let at = |load: f64| measured(&SUMMARY, Some(rate(load)), pass, factor * 4.605e9 / (1e4 - load));
        [8e3, 2e3, 5e3].map(at)
    });
    campaign(&SUMMARY, runs.collect(), scan_question(None))
}

/// An assertion about 10 000 requests of which so many reach 1 ms, where 100 may.
fn asserted(reached: u64, p99_ns: f64) -> Assertion {
    let decision = if reached > 100 { Decision::Fails } else { Decision::Holds };
    Assertion {
        objective: "p99 < 1ms".parse().unwrap(),
        measured: Some(p99_ns),
        decision,
        reached: Some(Reached {
            requests: 10_000,
            allowed: 100,
            with_client: reached,
            without_client: reached,
        }),
        unanswered: 0,
        reason: None,
        another_run_ns: None,
        at_rate: None,
    }
}

/// A step of a search, of which so many requests reach the bound.
fn step(load: f64, reached: u64, purpose: RunPurpose) -> RunRow {
    let p99_ns = 900.0 * US + reached as f64 * US;
    let mut run = measured(&SUMMARY, Some(rate(load)), 1, p99_ns);
    run.place.purpose = purpose;
    run.result.window.duration_ns = 1_000_000_000;
    run.assertions = vec![asserted(reached, p99_ns)];
    run.step = if reached > 100 { StepResult::Fails } else { StepResult::Holds };
    run
}

fn search(capacity: Capacity, runs: Vec<RunRow>) -> Campaign {
    let (objectives, capacity) = (vec!["p99 < 1ms".to_owned()], Some(capacity));
    let question =
        CampaignQuestion::Search { objectives, resolution: 0.05, capacity, closed_loop: Some(8_000.0) };
    campaign(&SUMMARY, runs, question)
}

/// A bracket, then runs of both rates in turns.
fn search_found(is_confirmed: bool) -> Campaign {
    let of = |(load, reached): (f64, u64)| step(load, reached, RunPurpose::Step);
    let mut runs: Vec<RunRow> = [(4e3, 0), (8e3, 700), (5_657.0, 91), (6_727.0, 180)].map(of).into();
    let pair = |reached: [u64; 2]| {
        [(5_657.0, reached[0]), (5_940.0, reached[1])]
            .map(|(load, reached)| step(load, reached, RunPurpose::Pair))
    };
    let pairs =
        if is_confirmed { [[92, 131], [88, 99], [93, 128]] } else { [[92, 97], [103, 99], [93, 128]] };
    runs.extend(pairs.into_iter().flat_map(pair));
    let capacity = Capacity::Between { passed: 5_657.0, failed: 5_940.0, is_confirmed };
    search(capacity, runs)
}

/// The load at which a search ends is too much for this one.
fn search_limited(bottleneck: Bottleneck) -> Campaign {
    let of = |load: f64| step(load, 0, RunPurpose::Step);
    let mut last = limited(of(8e3), bottleneck);
    last.step = if bottleneck == Bottleneck::Client { StepResult::Client } else { StepResult::Overload };
    let capacity = match bottleneck {
        Bottleneck::Client => Capacity::ByClient { at: 8e3, passed: Some(4e3) },
        _ => Capacity::Between { passed: 4e3, failed: 8e3, is_confirmed: true },
    };
    let more = step(8e3, 0, RunPurpose::Connections(22));
    let mut runs = vec![of(4e3), last];
    runs.extend((bottleneck == Bottleneck::Connections).then_some(more));
    search(capacity, runs)
}

/// A search whose lowest rate took more time than there was.
fn search_undecided() -> Campaign {
    let mut run = step(100.0, 5, RunPurpose::Step);
    run.step = StepResult::Undecided;
    run.assertions[0].decision = Decision::Undecided;
    run.assertions[0].reason = Some(Reason::Requests { more: 600, ns: None });
    search(Capacity::Undecided { at: 100.0 }, vec![run])
}

fn search_below() -> Campaign {
    let run = step(100.0, 500, RunPurpose::Step);
    search(Capacity::Below { failed: 100.0 }, vec![run])
}

/// Repetitions with these p99, of which so many requests each reach 1 ms.
fn repeat(p99_us: &[f64], reached: &[u64]) -> Campaign {
    let of_run = |(number, us): (u32, &f64)| {
        let mut run = measured(&SUMMARY, None, number, us * US);
        let reached = reached.get(number as usize - 1).copied();
        run.assertions.extend(reached.map(|reached| asserted(reached, us * US)));
        run
    };
    let runs: Vec<RunRow> = (1..).zip(p99_us).map(of_run).collect();
    let objectives = if reached.is_empty() { Vec::new() } else { vec!["p99 < 1ms".to_owned()] };
    campaign(&SUMMARY, runs, CampaignQuestion::Repeat { objectives })
}

/// Repetitions of a large load on a disturbed host, with seeds as they are drawn.
fn repeat_disturbed() -> Campaign {
    let mut campaign = repeat(&[98_400.0, 98_700.0], &[]);
    for run in &mut campaign.runs {
        (run.seed, run.result.row.counts.rate.completed) = (1_234_567_890_123_456, 1_234_567.0);
        run.result.row.counts.requests.error += 1_200;
        run.result.status.status.status = Status::Invalid;
    }
    let Campaign { first, runs, question, .. } = campaign;
    Campaign::of(first, runs, question, false).unwrap()
}

pub(super) fn all() -> Vec<(&'static str, Campaign)> {
    vec![
        ("scan_to_the_server", scan(Bottleneck::Server)),
        ("scan_to_the_client", scan(Bottleneck::Client)),
        ("scan_of_few_connections", scan_of_few_connections(11e3)),
        ("scan_of_enough_connections", scan_of_few_connections(10_100.0)),
        ("scan_spoiled_below", scan_spoiled(false)),
        ("scan_spoiled_interrupted", scan_spoiled(true)),
        ("scan_repeated", scan_repeated()),
        ("search_found", search_found(true)),
        ("search_unconfirmed", search_found(false)),
        ("search_client", search_limited(Bottleneck::Client)),
        ("search_connections", search_limited(Bottleneck::Connections)),
        ("search_undecided", search_undecided()),
        ("search_below", search_below()),
        ("repeat_agrees", repeat(&[400.0, 402.0, 398.0, 404.0, 396.0, 400.0], &[])),
        ("repeat_disagrees", repeat(&[400.0, 470.0, 402.0, 468.0, 399.0, 471.0], &[])),
        ("repeat_asserted", repeat(&[400.0, 402.0, 398.0], &[90, 120, 80])),
        ("repeat_contested", repeat(&[400.0, 402.0, 398.0], &[90, 80, 400])),
        ("repeat_disturbed", repeat_disturbed()),
        ("repeat_ended_after_one", Campaign { interrupted: true, ..repeat(&[400.0], &[]) }),
    ]
}

#[test]
fn conclusions_follow_from_the_runs() {
    let campaigns = all();
    let of = |name: &str| &campaigns.iter().find(|(held, _)| *held == name).unwrap().1;
    assert_eq!(of("scan_to_the_server").knee, Some(Knee::At(3)), "5 000/s of 10 000/s");
    let who = |name: &str| of(name).limit.as_ref().map(|met| met.limit.bottleneck);
    for (name, expected) in [
        ("scan_to_the_server", Some(Bottleneck::Server)),
        ("scan_to_the_client", Some(Bottleneck::Client)),
        ("scan_of_few_connections", Some(Bottleneck::Connections)),
        // That many connections would do more was not true.
        ("scan_of_enough_connections", Some(Bottleneck::Server)),
        ("search_connections", Some(Bottleneck::Connections)),
        ("search_client", Some(Bottleneck::Client)),
        // An objective that fails is no limit of anyone.
        ("search_found", None),
        // What came and went is none.
        ("scan_spoiled_below", None),
    ] {
        assert_eq!(who(name), expected, "{name}");
    }
    let below = |client: CheckStatus| {
        let mut run = limited(step(100.0, 500, RunPurpose::Step), Bottleneck::Server);
        let mut checks = run.result.status.status.checks.iter_mut();
        checks.find(|check| check.id == CheckId::Client).unwrap().status = client;
        search(Capacity::Below { failed: 100.0 }, vec![run])
    };
    assert!(below(CheckStatus::Caution).limit.is_some());
    assert!(below(CheckStatus::Invalid).limit.is_none(), "the client had no time");
    let decisions = ["repeat_asserted", "repeat_contested"].map(|name| of(name).assertions[0].decision);
    assert_eq!(decisions, [Decision::Holds, Decision::Undecided]);
    assert!(of("repeat_contested").is_undecided() && of("search_below").is_missed());
    for (name, expected) in [
        ("scan_to_the_server", Status::Ok),
        ("search_found", Status::Ok),
        ("search_unconfirmed", Status::Caution),
        ("search_client", Status::Invalid),
        ("search_undecided", Status::Invalid),
        ("repeat_disturbed", Status::Invalid),
    ] {
        assert_eq!(of(name).status.status, expected, "{name}");
    }
}

/// A long report is the short one with parts in between.
#[test]
fn long_texts_of_campaigns() {
    for (name, campaign) in all() {
        let [short, long] = [Level::Short, Level::Long].map(|level| {
            output(|out| Subject::Campaign(&campaign).write_text(&Layout::default(), level, out))
        });
        for line in long.lines() {
            assert!(line.chars().count() <= 120, "{name}: {line:?} is too long");
            assert!(line == line.trim_end(), "{name}: {line:?} ends in white space");
        }
        let mut rest = long.lines();
        let lost = short.lines().find(|line| !rest.any(|held| held == *line));
        assert_eq!(lost, None, "{name}: {long}");
        insta::assert_snapshot!(name, long);
    }
}

/// The JSON beside its runs, which are summaries of their own.
#[test]
fn json_of_campaigns() {
    for (name, campaign) in all() {
        let mut out = Vec::new();
        Subject::Campaign(&campaign).write(FileType::Json.into(), &mut out).unwrap();
        let mut json: Value = serde_json::from_slice(&out).unwrap();
        assert_eq!(errors(&json), Vec::<String>::new(), "{name}");
        let runs = json["runs"].as_array_mut().unwrap();
        assert_eq!(runs.len(), campaign.runs.len());
        for run in runs {
            let result = &run["result"];
            assert_eq!(result["schema"], "brunt.result.v1");
            assert!(result["latency"]["response_ns"]["p99"].is_u64() && result["plan"].is_object());
            *run = run["step"].take();
        }
        insta::assert_snapshot!(format!("{name}_json"), serde_json::to_string_pretty(&json).unwrap());
    }
}

#[test]
fn csv_of_a_campaign() {
    let text = output(|out| {
        Subject::Campaign(&search_limited(Bottleneck::Connections)).write(FileType::Csv.into(), out)
    });
    let columns: Vec<usize> = text.lines().map(|line| line.split(',').count()).collect();
    assert_eq!(columns, [19; 4]);
    insta::assert_snapshot!(text);
}
