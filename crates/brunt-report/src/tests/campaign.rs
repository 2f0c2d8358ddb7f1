//! Reports of made-up campaigns as snapshots: runs with numbers that were put there, over the JSON of a made-up run.

use super::run;
use super::schema::reader::errors;
use crate::campaign::{
    Campaign, CampaignHeader, CampaignQuestion, CampaignResult, PercentileEstimate, RunRow, ScanPoint,
    SpreadRow, write_csv, write_details, write_json,
};
use brunt_plan::quantile::Quantile;
use brunt_plan::sweep::SweepPoint;
use brunt_plan::units::Rate;
use brunt_stats::bottleneck::Bottleneck;
use brunt_stats::capacity::{Capacity, StepResult};
use brunt_stats::check::{Check, CheckId, CheckStatus};
use brunt_stats::knee::Knee;
use brunt_stats::repeat::Spread;
use brunt_stats::status::{Judgement, RunStatus, Status};
use brunt_stats::summary::Summary;
use serde_json::Value;

const US: f64 = 1_000.0;

fn rate(per_second: f64) -> SweepPoint {
    SweepPoint::Rate(Rate { micro_per_second: (per_second * 1e6) as u64 })
}

/// A percentile with an interval of 2 % to both sides.
fn found(ns: f64) -> PercentileEstimate {
    let interval_ns = Some(((ns * 0.98) as u64, Some((ns * 1.02) as u64)));
    PercentileEstimate { value_ns: ns as u64, interval_ns, is_thin: false }
}

/// A run at a rate with a p99.
fn measured(summary: &Summary, setting: Option<SweepPoint>, repetition: u32, p99_ns: f64) -> RunRow {
    let mut run = RunRow::of(summary, setting, repetition).unwrap();
    run.completed = setting.map_or(run.completed, SweepPoint::as_f64);
    run.percentiles = [(Quantile::P50, 1.0 / 3.0), (Quantile::P99, 1.0), (Quantile::P999, 2.0)]
        .map(|(quantile, part)| (quantile, found(p99_ns * part)))
        .into();
    run.seed += u64::from(repetition) - 1;
    run
}

/// The same with a check that says who was the limit.
fn limited(mut run: RunRow, bottleneck: Bottleneck, message: &str) -> RunRow {
    let id = if bottleneck == Bottleneck::Client { CheckId::Client } else { CheckId::Load };
    run.status.status = Status::Invalid;
    run.status.message = message.to_owned();
    run.status.checks.retain(|check| check.id != id);
    let (status, message, fix) = (CheckStatus::Invalid, message.to_owned(), "lower the rate".into());
    run.status.checks.insert(0, Check { id, status, message, fix, value: 0.5, threshold: 0.01 });
    run.limit = Some(bottleneck);
    run
}

fn campaign(summary: &Summary, runs: Vec<RunRow>, finding: CampaignResult) -> Campaign {
    let head = CampaignHeader::of(summary, matches!(finding, CampaignResult::Scan { .. }).then_some("rate"));
    let status =
        RunStatus::of_runs(runs.iter().take(1).map(|run| run.status.status), &[], &Judgement::default());
    let question = match &finding {
        CampaignResult::Scan { option, knee, closed_loop, .. } => CampaignQuestion::Scan {
            option: (*option).to_owned(),
            is_load: knee.is_some(),
            closed_loop: *closed_loop,
        },
        CampaignResult::Search { objectives, resolution, capacity, closed_loop } => {
            CampaignQuestion::Search {
                objectives: objectives.iter().map(ToString::to_string).collect(),
                resolution: *resolution,
                capacity: *capacity,
                closed_loop: *closed_loop,
            }
        }
        CampaignResult::Repeat { .. } => CampaignQuestion::Repeat,
    };
    Campaign { head, runs, question, finding, status, interrupted: false }
}

/// An M/M/1 queue that serves 10 000 requests a second, up to where it is too much.
fn scan(bottleneck: Bottleneck) -> Campaign {
    scan_with(&run::open_loop().summary, bottleneck)
}

/// Of runs whose client errors rest on what those of this one do.
pub(super) fn scan_of(summary: &Summary) -> Campaign {
    scan_with(summary, Bottleneck::Server)
}

fn scan_with(summary: &Summary, bottleneck: Bottleneck) -> Campaign {
    let loads = [1e3, 2e3, 4e3, 5e3, 6e3, 8e3, 9e3];
    let mut runs: Vec<RunRow> =
        loads.map(|load| measured(summary, Some(rate(load)), 1, 4.605e9 / (1e4 - load))).into();
    let message = match bottleneck {
        Bottleneck::Client => "worker 0 was busy for 99.0 % of the window",
        _ => "9980 requests/s answered of 11000/s offered in the last half of the window",
    };
    runs.push(limited(measured(summary, Some(rate(11e3)), 1, 5e8), bottleneck, message));
    let point = |(index, run): (usize, &RunRow)| ScanPoint {
        setting: run.setting.unwrap(),
        runs: vec![index],
        discarded: Vec::new(),
        p99: Spread::of(&[run.percentiles[1].1.estimate()]),
    };
    let points = runs.iter().enumerate().map(point).collect();
    let knee = Some(Knee::At(3));
    campaign(
        summary,
        runs,
        CampaignResult::Scan { option: "rate", points, knee, closed_loop: Some(10_000.0) },
    )
}

/// A host that takes the processors away: of the lower loads of a scan, at once at the first one, and of a repetition.
fn spoiled_scan(is_interrupted: bool) -> Campaign {
    let summary = run::open_loop().summary;
    let steal =
        |run| limited(run, Bottleneck::Client, "other threads had the processor for 31.2 % of the window");
    let at = |load: f64, p99_ns: f64| measured(&summary, Some(rate(load)), 1, p99_ns);
    let mut runs = vec![
        steal(at(1e3, 1.30e6)),
        steal(at(1e3, 1.27e6)),
        steal(at(2e3, 1.47e6)),
        limited(at(2.5e3, 1.41e6), Bottleneck::Server, "the backlog grows"),
        at(3e3, 1.35e6),
    ];
    if is_interrupted {
        runs.push(RunRow { interrupted: true, ..steal(at(4e3, 1.5e6)) });
    }
    let point = |load: f64, discarded: Vec<usize>, index: usize| ScanPoint {
        setting: rate(load),
        runs: vec![index],
        discarded,
        p99: Spread::of(&[runs[index].percentiles[1].1.estimate()]),
    };
    let mut points =
        vec![point(1e3, vec![0], 1), point(2e3, vec![], 2), point(2.5e3, vec![], 3), point(3e3, vec![], 4)];
    if is_interrupted {
        points.push(ScanPoint { p99: None, ..point(4e3, vec![], 5) });
    }
    let finding =
        CampaignResult::Scan { option: "rate", points, knee: Some(Knee::Unknown), closed_loop: None };
    let status = RunStatus::of_runs([Status::Invalid], &[], &Judgement::default());
    Campaign { status, interrupted: is_interrupted, ..campaign(&summary, runs, finding) }
}

/// Not even the lowest load is one that the client can offer.
fn scan_of_a_client_that_can_nothing() -> Campaign {
    let summary = run::open_loop().summary;
    let at = |load: f64| {
        let run = measured(&summary, Some(rate(load)), 1, 1.3e6);
        limited(
            run,
            Bottleneck::Client,
            "up to 812 us of the p99 of get, 1.30 ms, may be the client's own (62.5 %)",
        )
    };
    let runs = vec![at(494.0), at(494.0)];
    let points = vec![ScanPoint {
        setting: rate(494.0),
        runs: vec![1],
        discarded: vec![0],
        p99: Spread::of(&[runs[1].percentiles[1].1.estimate()]),
    }];
    let finding = CampaignResult::Scan {
        option: "rate",
        points,
        knee: Some(Knee::Unknown),
        closed_loop: Some(4_940.0),
    };
    let status = RunStatus::of_runs([Status::Invalid], &[], &Judgement::default());
    Campaign { status, ..campaign(&summary, runs, finding) }
}

/// A search whose lowest rate took more time than there was.
fn search_undecided() -> Campaign {
    let summary = run::open_loop().summary;
    let mut run = measured(&summary, Some(rate(100.0)), 1, 900.0 * US);
    run.step =
        Some((StepResult::Undecided, vec![Some(PercentileEstimate { is_thin: true, ..found(900.0 * US) })]));
    let finding = CampaignResult::Search {
        objectives: vec!["p99 < 1ms".parse().unwrap()],
        resolution: 0.02,
        capacity: Some(Capacity::Undecided { at: 100.0 }),
        closed_loop: None,
    };
    let status = RunStatus::of_runs([Status::Invalid], &[], &Judgement::default());
    Campaign { status, ..campaign(&summary, vec![run], finding) }
}

/// Repetitions of a large load on a disturbed host, with seeds as they are drawn.
fn repeat_disturbed() -> Campaign {
    let mut campaign = repeat(&[98_400.0, 98_700.0]);
    campaign.status.status = Status::Invalid;
    for run in &mut campaign.runs {
        (run.seed, run.completed) = (1_234_567_890_123_456, 1_234_567.0);
        *run = limited(run.clone(), Bottleneck::Client, "");
    }
    campaign
}

fn search(capacity: Capacity) -> Campaign {
    let summary = run::open_loop().summary;
    let step = |load: f64, p99_ns: f64, end| {
        let mut run = measured(&summary, Some(rate(load)), 1, p99_ns);
        run.step = Some((end, vec![Some(found(p99_ns))]));
        run
    };
    let mut runs = vec![
        step(2_000.0, 160.0 * US, StepResult::Passed),
        step(4_000.0, 350.0 * US, StepResult::Passed),
        step(7_700.0, 980.0 * US, StepResult::Passed),
        step(7_800.0, 1_090.0 * US, StepResult::Failed),
        step(7_750.0, 1_003.0 * US, StepResult::Undecided),
    ];
    if let Capacity::ClientLimited { .. } = capacity {
        let message = "worker 0 was busy for 99.0 % of the window";
        let mut last =
            limited(step(8_000.0, 990.0 * US, StepResult::ClientLimited), Bottleneck::Client, message);
        last.interrupted = false;
        runs.push(last);
    }
    let objectives = vec!["p99 < 1ms".parse().unwrap()];
    let finding =
        CampaignResult::Search { objectives, resolution: 0.02, capacity: Some(capacity), closed_loop: None };
    campaign(&summary, runs, finding)
}

fn repeat(p99_us: &[f64]) -> Campaign {
    let summary = run::open_loop().summary;
    let runs: Vec<RunRow> =
        (1..).zip(p99_us).map(|(number, us)| measured(&summary, None, number, us * US)).collect();
    let estimates: Vec<_> = runs.iter().map(|run| run.percentiles[1].1.estimate()).collect();
    let compared = vec![SpreadRow { name: "p99".to_owned(), spread: Spread::of(&estimates).unwrap() }];
    let status = RunStatus::of_runs(
        runs.iter().map(|run| run.status.status),
        &[("p99".to_owned(), compared[0].spread)],
        &Judgement::default(),
    );
    Campaign { status, ..campaign(&summary, runs, CampaignResult::Repeat { compared }) }
}

pub(super) fn all() -> Vec<(&'static str, Campaign)> {
    let interrupted = Campaign { interrupted: true, ..repeat(&[400.0, 410.0]) };
    vec![
        ("scan_to_the_server", scan(Bottleneck::Server)),
        ("scan_to_the_client", scan(Bottleneck::Client)),
        ("scan_spoiled_below", spoiled_scan(false)),
        ("scan_spoiled_interrupted", spoiled_scan(true)),
        ("scan_spoiled_throughout", scan_of_a_client_that_can_nothing()),
        ("search_undecided", search_undecided()),
        ("repeat_disturbed", repeat_disturbed()),
        ("repeat_ended_after_one", Campaign { interrupted: true, ..repeat(&[400.0]) }),
        ("search_found", search(Capacity::Between { passed: 7_700.0, failed: 7_750.0 })),
        ("search_client", search(Capacity::ClientLimited { at: 8_000.0, passed: Some(7_700.0) })),
        ("repeat_agrees", repeat(&[400.0, 402.0, 398.0, 404.0, 396.0, 400.0])),
        ("repeat_hysteresis", repeat(&[400.0, 470.0, 402.0, 468.0, 399.0, 471.0])),
        ("repeat_interrupted", interrupted),
    ]
}

/// The runs of `repeat_hysteresis`, one of them with an interval that rests on too little.
#[test]
fn failed_requests_stand_beside_the_percentiles() {
    let summary = run::open_loop().summary;
    let at = |failed: u64| RunRow { failed, ..measured(&summary, Some(rate(1e3)), 1, 1e6) };
    let limited = limited(at(1_200), Bottleneck::Server, "the backlog grows");
    let run = |failed: u64| RunRow { step: Some((StepResult::Passed, vec![])), ..at(failed) };
    let point = |index| ScanPoint { setting: rate(1e3), runs: vec![index], discarded: vec![], p99: None };
    let scan = CampaignResult::Scan {
        option: "rate",
        points: vec![point(0), point(1)],
        knee: Some(Knee::Unknown),
        closed_loop: None,
    };
    let search =
        CampaignResult::Search { objectives: vec![], capacity: None, closed_loop: None, resolution: 0.05 };
    for (runs, finding, said) in [
        (vec![at(12), limited], scan, &[", 12 failed", "limit: server, 1200 failed"][..]),
        (vec![run(3)], search, &["passed, 3 failed"]),
        (vec![at(4)], CampaignResult::Repeat { compared: vec![] }, &[", 4 failed"]),
    ] {
        let mut text = Vec::new();
        write_details(&campaign(&summary, runs, finding), &mut text).unwrap();
        let text = String::from_utf8(text).unwrap();
        // Lines are broken between words.
        let words = text.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(said.iter().all(|said| words.contains(said)), "{text}");
    }
}

#[test]
fn a_thin_interval_explains_nothing() {
    let estimates = |thin: Option<usize>| -> Vec<_> {
        let runs = [400.0, 470.0, 402.0, 468.0, 399.0, 471.0].into_iter().enumerate();
        runs.map(|(index, us)| {
            PercentileEstimate { is_thin: Some(index) == thin, ..found(us * US) }.estimate()
        })
        .collect()
    };
    let sure = Spread::of(&estimates(None)).unwrap();
    assert_eq!(sure.do_intervals_meet, Some(false), "{sure:?}");
    assert_eq!(estimates(Some(2))[2].half_width, None);
    let thin = Spread::of(&estimates(Some(2))).unwrap();
    assert_eq!(thin.do_intervals_meet, None);
    assert_eq!((thin.median, thin.min, thin.max), (sure.median, sure.min, sure.max));
}

#[test]
fn texts_of_campaigns() {
    for (name, campaign) in all() {
        let mut out = Vec::new();
        write_details(&campaign, &mut out).unwrap();
        let text = String::from_utf8(out).unwrap();
        for line in text.lines() {
            assert!(line.chars().count() <= 110, "{name}: {line:?} is too long");
            assert!(line == line.trim_end(), "{name}: {line:?} ends in white space");
        }
        insta::assert_snapshot!(name, text);
    }
}

/// The JSON beside its runs, which are summaries of their own.
#[test]
fn json_of_campaigns() {
    for (name, campaign) in all() {
        let mut out = Vec::new();
        write_json(&campaign, &mut out).unwrap();
        let mut json: Value = serde_json::from_slice(&out).unwrap();
        assert_eq!(errors(&json), Vec::<String>::new(), "{name}");
        let runs = json["runs"].as_array_mut().unwrap();
        assert_eq!(runs.len(), campaign.runs.len());
        for run in runs {
            assert_eq!(run["schema"], "brunt.summary.v1");
            assert!(run["latency"]["response_ns"]["p99"].is_u64() && run["plan"].is_object());
            *run = run["step"].take();
        }
        insta::assert_snapshot!(format!("{name}_json"), serde_json::to_string_pretty(&json).unwrap());
    }
}

#[test]
fn csv_of_a_campaign() {
    let mut out = Vec::new();
    write_csv(&search(Capacity::ClientLimited { at: 8_000.0, passed: Some(7_700.0) }), &mut out).unwrap();
    let text = String::from_utf8(out).unwrap();
    let columns: Vec<usize> = text.lines().map(|line| line.split(',').count()).collect();
    assert_eq!(columns, [18; 7]);
    insta::assert_snapshot!(text);
}
