//! Every check at its thresholds, and the sentence of a status. Each case changes one thing of a run without fault.

use super::*;
use crate::connection::{FaultKind, FaultTable, FirstMalformed};
use crate::recorder::Layout;
use crate::server::{OutageKind, OutageSpan};
use crate::summary::Summary;
use crate::summary::tests::{Event, MS, WINDOW, gets, intervals, plan, record};
use crate::usage::{AgentRecord, ClockEvidence, StallCounts, WorkerUsage};
use crate::verification::{FaultExample, ValueFault};
use brunt_plan::outcome::OutcomeClass;
use brunt_plan::phase::Phase;
use brunt_plan::trace_record::TraceRecord;
use brunt_plan::units::Count;

/// 10 000 requests a second for 2 s, of 100 us.
fn of_events(toml: &str, events: &[Event], change: impl FnOnce(&mut RunRecord)) -> Summary {
    let plan = plan(toml);
    let mut record = record(&plan, &intervals(&Layout::of(&plan), events, 1));
    change(&mut record);
    Summary::build(record)
}

fn of_record(change: impl FnOnce(&mut RunRecord)) -> Summary {
    of_events("rate = 10000\nmix = 'get'", &gets(100_000, |_| 100_000), change)
}

fn told(summary: &Summary, id: CheckId) -> (CheckStatus, String) {
    let check = summary.status.check(id).unwrap();
    (check.status, check.message.clone())
}

#[test]
fn a_run_without_fault_is_ok() {
    let status = of_record(|_| {}).status;
    assert_eq!(status.headline(), "OK: p50 to p99.9 may be quoted; p99.99 needs 8.00 s more");
    let ids: Vec<_> = status.checks.iter().map(|check| (check.id, check.status)).collect();
    let expected = CheckId::ALL
        .map(|id| (id, if id == CheckId::Repeat { CheckStatus::Skipped } else { CheckStatus::Ok }));
    assert_eq!(ids, expected, "{:#?}", status.checks);
    assert!(status.facts.is_empty() && status.limit.is_none(), "{status:#?}");
}

#[test]
fn whatever_is_broken_makes_the_run_invalid() {
    type Change = fn(&mut RunRecord);
    let table: [(Change, &str); 7] = [
        (
            |record| record.run.host.clock = ClockEvidence { backwards: 2, ..ClockEvidence::default() },
            "CLOCK_MONOTONIC went backwards 2 times",
        ),
        (
            |record| {
                let mut faults = FaultTable::new();
                faults.record(Phase::Measure, FaultKind::Malformed, WINDOW.measure_ns);
                record.run.intervals.totals.faults.merge(&faults);
            },
            "bytes came that are no reply, once",
        ),
        (
            |record| {
                let greeting = b"ERROR Too many open connections\r\n";
                record.run.counts.datagrams.malformed = 2;
                record.run.counts.first_malformed =
                    Some(FirstMalformed::new(0, 0, "an unknown reply", greeting));
            },
            "the server is full: it closed new connections, 2 times, with ERROR Too many open connections",
        ),
        (
            |record| {
                let example = FaultExample::of(7, 0);
                record.run.counts.verification.note(ValueFault::Torn, example);
            },
            "1 values read are not those that were stored (1 ",
        ),
        (
            |record| record.run.counts.occupancy.sum += 1_000_000_000_000,
            "Little's law does not hold: 0.000 requests in the system on average by the clock",
        ),
        (
            |record| {
                record.agents.push(AgentRecord {
                    name: "a:5556".to_owned(),
                    lost: Some("it closed the connection".to_owned()),
                    lost_after_ns: Some(1_500 * MS),
                    ..agent()
                });
            },
            "agent a:5556 was lost (it closed the connection): 100 % of the agents' load is missing from 500 ms to ",
        ),
        (
            |record| record.plan.stop.requests = Some(20_001),
            "of 20001 requests asked for 20000 were issued: the run ended early",
        ),
    ];
    for (change, message) in table {
        let summary = of_record(change);
        let (status, found) = told(&summary, CheckId::Broken);
        assert_eq!(status, CheckStatus::Invalid, "{message}");
        assert!(found.starts_with(message), "{found}");
        assert_eq!(summary.status.headline(), "INVALID: no number of this run may be quoted");
        let allowed = Judgement { allowed: vec![CheckId::Broken], ..Judgement::default() };
        let summary = of_record(|record| {
            change(record);
            record.judgement = allowed;
        });
        assert_eq!(summary.status.status, Status::Caution);
    }
}

/// As many as the user tolerates, and nothing else.
#[test]
fn lost_agents_are_tolerated_up_to_a_number() {
    let lost = |name: &str, after_ms| AgentRecord {
        name: name.to_owned(),
        lost: Some("it closed the connection".to_owned()),
        lost_after_ns: Some(after_ms * MS),
        ..agent()
    };
    let found = |lost: &[AgentRecord], tolerated: u64, malformed: u64| {
        let summary = of_record(|record| {
            record.agents = lost.iter().cloned().chain([agent(), agent()]).collect();
            record.plan.spec.run.tolerate_lost = Some(Count(tolerated));
            record.run.counts.datagrams.malformed = malformed;
        });
        let check = summary.status.check(CheckId::Broken).unwrap();
        assert_eq!(check.status == CheckStatus::Invalid, check.fix.contains("run again"));
        (check.status, check.message.clone())
    };
    let one = [lost("rank 3 (a)", 0)];
    let (status, message) = found(&one, 1, 0);
    assert_eq!(status, CheckStatus::Caution);
    let expected = "agent rank 3 (a) was lost (it closed the connection): 33.3 % of the agents' load is missing for the whole window of 2.00 s";
    assert_eq!(message, expected);
    assert_eq!(found(&one, 0, 0).0, CheckStatus::Invalid);
    assert_eq!(found(&one, 1, 1).0, CheckStatus::Invalid);
    assert_eq!(found(&[], 1, 0).0, CheckStatus::Ok);
    let four = ["a", "b", "c", "d"].map(|name| lost(name, 60_000));
    let (status, message) = found(&four, 3, 0);
    assert_eq!(status, CheckStatus::Invalid);
    assert!(
        message.contains("is missing after the window; ") && message.ends_with("; 1 more agents were lost"),
        "{message}"
    );
    assert_eq!(found(&four, 4, 0).0, CheckStatus::Caution);
}

fn agent() -> AgentRecord {
    AgentRecord { workers: 1, weight: 1, ..AgentRecord::default() }
}

/// Of 20 000 requests 200 may lie above the p99.
#[test]
fn failures_beyond_what_may_lie_above_a_percentile() {
    let failing = |every: usize| {
        let mut events = gets(100_000, |_| 100_000);
        for event in events.iter_mut().skip(10_000).step_by(every) {
            event.class_of_outcome = OutcomeClass::Error;
        }
        of_events("rate = 10000\nmix = 'get'", &events, |_| {})
    };
    assert_eq!(told(&failing(100), CheckId::Data).0, CheckStatus::Ok);
    let summary = failing(99);
    let expected = "p99 is of the 99.0 % of the requests that were answered, 203 failed or were never sent";
    assert_eq!(told(&summary, CheckId::Data), (CheckStatus::Caution, expected.to_owned()));
    let (status, message) = told(&failing(9), CheckId::Data);
    assert_eq!(status, CheckStatus::Caution);
    assert!(message.starts_with("p90 and p99 are of the 88.9 %"), "{message}");
    let (status, message) = told(&failing(1), CheckId::Data);
    assert_eq!(status, CheckStatus::Invalid);
    assert!(message.starts_with("20000 of 20000 requests failed (100 %)"), "{message}");
    assert_eq!(failing(1).status.message, "none of the 20000 requests sent in the window was answered");
}

#[test]
fn percentiles_asked_for_need_requests() {
    let of = |toml: &str| {
        let summary =
            of_events(&format!("rate = 10000\nmix = 'get'\n{toml}"), &gets(100_000, |_| 100_000), |_| {});
        told(&summary, CheckId::Data)
    };
    assert_eq!(of("").0, CheckStatus::Ok);
    let expected = "p99.99 has too few requests: 20000 were answered, p99.99 needs 8.00 s more";
    assert_eq!(of("percentiles = 'p50,p99.99'"), (CheckStatus::Caution, expected.to_owned()));
}

/// A longer run sends no more of a trace than it has.
#[test]
fn traces_that_ended_are_named_where_requests_are_few() {
    let fix = |records: u64, is_whole: bool| {
        let trace = TraceRecord {
            class: "main".to_owned(),
            file: "t.csv".to_owned(),
            records,
            is_whole,
            ..TraceRecord::default()
        };
        let toml = "rate = 10000\nmix = 'get'\npercentiles = 'p50,p99.99'";
        let summary = of_events(toml, &gets(100_000, |_| 100_000), |record| record.run.traces = vec![trace]);
        summary.status.check(CheckId::Data).unwrap().fix.clone()
    };
    let ended = "a longer trace, or a shorter --warmup: the 20000 records of t.csv were all sent";
    assert_eq!(
        [fix(20_000, true), fix(20_000, false), fix(1 << 40, true)],
        [ended, "a longer --time", "a longer --time"]
    );
}

/// A trace that is not reached says so, and what to store first is its own.
#[test]
fn advice_on_traces_is_of_traces() {
    let change = |record: &mut RunRecord, has_trace: bool| {
        record.run.traces = if has_trace { vec![TraceRecord::default()] } else { Vec::new() };
        record.run.counts.values_foreign = 7;
    };
    for (has_trace, message, fix) in [
        (false, "no request was sent in the window", "store the data set first (preload)"),
        (
            true,
            "the run ended before the first record of its trace was due, or was read",
            "store what the trace finds first (--replay --set trace-preload=true)",
        ),
    ] {
        let summary = of_events("rate = 10000\nmix = 'get'", &[], |record| change(record, has_trace));
        assert_eq!(summary.status.message, message);
        assert!(summary.status.facts.iter().any(|fact| fact.ends_with(fix)), "{:?}", summary.status.facts);
    }
}

/// A worker of 2 s that stood still.
fn stalled(longest_ms: u64, run_delay_ms: u64) -> WorkerUsage {
    let stalls = StallCounts {
        count: 1,
        total_ns: longest_ms * MS,
        longest_ns: longest_ms * MS,
        longest_at_ns: Some(500 * MS),
        longest_run_delay_ns: Some(run_delay_ms * MS),
    };
    WorkerUsage {
        wall_ns: 2_000 * MS,
        busy_ns: 100 * MS,
        run_delay_ns: Some(0),
        stalls,
        ..WorkerUsage::default()
    }
}

#[test]
fn stops_of_the_client() {
    let of = |toml: &str, worker: WorkerUsage| {
        let usage = |record: &mut RunRecord| record.run.usage.workers = vec![worker];
        told(&of_events(toml, &gets(100_000, |_| 100_000), usage), CheckId::Client)
    };
    let (open, closed) = ("rate = 10000\nmix = 'get'", "mix = 'get'\nconnections = 1");
    // Longer than the p99 of 100 us.
    let (status, message) = of(open, stalled(11, 0));
    assert_eq!(status, CheckStatus::Caution);
    assert!(message.ends_with("it stood still for 11.0 ms at +500 ms"), "{message}");
    // It was not stopped: another had its processor, which the client's part of each percentile tells.
    assert_eq!(of(open, stalled(11, 11)).0, CheckStatus::Ok);
    // In closed loop it hides requests: 1 % of the window is 20 ms.
    assert_eq!(of(closed, stalled(19, 19)).0, CheckStatus::Ok);
    assert_eq!(of(closed, stalled(20, 20)).0, CheckStatus::Caution);
}

/// In the middle of the window requests are held back by a time that grows from nothing to a second and wait for each other.
#[test]
fn what_an_outage_leaves_is_no_overload() {
    let stop = WINDOW.end_ns - 300 * MS..WINDOW.end_ns;
    let mut events = gets(100_000, |_| 100_000);
    for event in events.iter_mut().filter(|event| stop.contains(&event.intended_ns)) {
        event.service_ns = stop.end - event.intended_ns + 50 * MS;
    }
    let server = |record: &mut RunRecord| {
        record.run.intervals.totals.outages.spans.push(OutageSpan {
            server: 0,
            start_ns: stop.start,
            end_ns: stop.end + 50 * MS,
            failed: 0,
            kinds: crate::server::OutageKinds::NONE.with(OutageKind::Stalled),
        });
    };
    let load = "rate = 10000\nmix = 'get'";
    let without = of_events(load, &events, |_| {});
    assert_eq!(told(&without, CheckId::Load).0, CheckStatus::Invalid);
    let with = of_events(load, &events, server);
    let (status, message) = told(&with, CheckId::Load);
    assert_eq!(status, CheckStatus::Caution, "{message}");
    assert!(message.starts_with("the backlog of the outage of 350 ms at"), "{message}");
    assert_eq!(with.status.status, Status::Caution, "{:#?}", with.status);
}

#[test]
fn percentiles_are_named_in_runs() {
    let among = Quantile::SHOWN;
    let names =
        |indices: &[usize]| message::names(indices.iter().map(|index| among[*index]).collect(), &among);
    let table: [(&[usize], &str); 5] = [
        (&[0], "p50"),
        (&[0, 1], "p50 and p90"),
        (&[1, 2, 3], "p90 to p99.9"),
        (&[0, 2], "p50 and p99"),
        (&[0, 1, 3, 4], "p50, p90, p99.9 and p99.99"),
    ];
    for (indices, expected) in table {
        assert_eq!(names(indices), expected);
    }
}

#[test]
fn a_campaign_is_as_good_as_its_worst_run() {
    let of =
        |runs: &[Status]| RunStatus::of_runs(runs.iter().copied(), &[], &Judgement::default()).headline();
    assert_eq!(of(&[Status::Ok; 2]), "OK: all 2 runs are OK");
    assert_eq!(of(&[Status::Ok, Status::Caution]), "CAUTION: 1 of 2 runs CAUTION");
    assert_eq!(of(&[Status::Invalid, Status::Caution]), "INVALID: 1 of 2 runs INVALID; 1 of 2 runs CAUTION");
}
