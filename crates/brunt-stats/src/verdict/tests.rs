//! Every check at its thresholds, one number to either side.
//!
//! Not how the evidence is gathered from a run (that is tested with the summary). Each test starts from a clean run and
//! changes one thing, so that no other check may stir.

mod cause;
mod server;

use super::*;
use crate::calibration::{Calibration, CalibrationMatch, HostIdentity, LatencyFloor, Shape};
use crate::check::CHECKS;
use crate::fault::FaultKind;
use crate::goal::{Goal, GoalState};
use crate::headroom::{Headroom, HeadroomLimit};
use crate::host::{ClockEvidence, HostEvidence};
use crate::latency::ClientError;
use crate::number_text::percent;
use crate::number_text::time;
use crate::request_counts::{KeyCounts, OpCounts, RequestCounts};
use crate::usage::{ClientUsage, Colocation, StallCounts, WorkerUsage};
use crate::verification::{FaultExample, ValueFault};
use crate::window::WindowCounts;
use CheckStatus::{Caution, NotTrusted, Ok, Skipped};
use brunt_plan::op::OpKind;
use brunt_plan::outcome::OutcomeClass;
use brunt_plan::phase::Phase;
use brunt_plan::quantile::Quantile;

mod steady;
mod trust;

/// Length of the measured window.
const WINDOW_NS: u64 = 10_000_000_000;

/// Of two processors, one tick is 0.05 % of the window.
fn healthy() -> HostEvidence {
    HostEvidence {
        wall_ns: WINDOW_NS,
        cpus: 2,
        wake_up_ns: 50_000,
        stolen_ns: Some(10_000_000),
        busy_ns: Some(8_000_000_000),
        throttled_ns: Some(0),
        clock: ClockEvidence {
            source: Some("tsc".to_owned()),
            drift_ppm: Some(-1.25),
            realtime_step_ns: 0,
            backwards: 0,
        },
        retransmits: 0,
        listen_drops: Some(0),
    }
}

/// One that worked for, and was kept from its processor for, these shares of the window.
fn worker(busy: f64, denied: f64) -> WorkerUsage {
    let ns = |share: f64| (share * WINDOW_NS as f64).round() as u64;
    WorkerUsage {
        worker: 1,
        wall_ns: WINDOW_NS,
        busy_ns: ns(busy),
        cpu_ns: ns(busy),
        run_delay_ns: Some(ns(denied)),
        involuntary_switches: 2_120,
        voluntary_switches: 0,
        colocation: Colocation { looks: 500, shared: 240 },
        stalls: StallCounts::default(),
    }
}

/// A run without fault: 100 000 requests, open loop; judged strictly, so that every check may convict.
fn clean() -> Evidence<'static> {
    Evidence {
        judgement: Judgement { is_strict: true, allowed: Vec::new() },
        asked: Some(asked(100_000, 100_000)),
        open_loop: Some(OpenLoop { scheduled: 100_000, unsent: 0, abandoned: 0 }),
        last_half: Some(LastHalf { offered: 50_000.0, answered: 50_000.0, seconds: 5.0 }),
        shown: Quantile::SHOWN.to_vec(),
        lag_rows: vec![lag_row(false, Quantile::P99, 400_000, 3_000)],
        intervals: vec![interval(30, 1_000, Some(1_100))],
        slices: 100,
        steady: steady::steady(|_| {}),
        sent: 100_000,
        completed: 100_000,
        run: Cow::Owned(RunData {
            usage: ClientUsage { workers: vec![worker(0.3, 0.001)], ..ClientUsage::default() },
            host: healthy(),
            ..RunData::default()
        }),
        window_ns: WINDOW_NS,
        in_system: InSystem { integral: 4e10, sum: 4e10, window_ns: WINDOW_NS },
        ..Evidence::default()
    }
}

/// The interval of a p99 of 1 us.
fn interval(batches_reached: u32, low_ns: u64, high_ns: Option<u64>) -> PercentileInterval {
    let example = PercentileInterval::example(Quantile::P99);
    PercentileInterval {
        low_ns,
        high_ns,
        design_effect: 2.0,
        effective_count: 50_000.0,
        batches_reached,
        ..example
    }
}

fn asked(requests: u64, issued: u64) -> RequestTarget {
    RequestTarget { requests, issued, is_time_up: false, connections_end: false }
}

fn lag_row(is_closed_loop: bool, quantile: Quantile, response_ns: u64, error_ns: u64) -> LagRow {
    let errors = vec![ClientError { quantile, response_ns, error_ns }];
    let intervals = vec![PercentileInterval { quantile, ..interval(30, 1_000, Some(1_100)) }];
    LagRow { name: "get".to_owned(), is_closed_loop, errors, intervals, unanswered: 0.0 }
}

fn entry(counts: OpCounts) -> CountEntry {
    CountEntry { phase: Phase::Drain, class: 1, op: OpKind::Get.into(), counts }
}

/// Runs the checks and returns the one in question; every other one must be at peace.
/// No part of what a check hands over is to be taken apart again, and no number has a blank in it.
fn are_clauses(check: &Check) {
    for part in check.details.iter().map(String::as_str).chain([check.message.as_str(), &check.fix]) {
        let words: Vec<&str> = part.split(' ').collect();
        let is_number = |word: &str, digits: usize| {
            word.len() == digits && word.bytes().all(|byte| byte.is_ascii_digit())
        };
        let is_grouped = words.windows(2).any(|pair| {
            (1..=3).any(|digits| is_number(pair[0].trim_start_matches('('), digits)) && is_number(pair[1], 3)
        });
        assert!(!part.contains("; ") && !is_grouped, "{}: {part}", check.id);
    }
}

fn check(id: &str, change: impl Fn(&mut Evidence<'_>)) -> Check {
    let mut evidence = clean();
    change(&mut evidence);
    let verdict = Verdict::of(&evidence);
    let found =
        verdict.checks.iter().find(|check| check.id == id).expect("every check is in every verdict").clone();
    for other in verdict.checks.iter().filter(|check| check.id != id) {
        assert!(other.status <= Ok, "{id}: {other:?}");
    }
    let expected = match found.status {
        Skipped | Ok => Status::Trusted,
        Caution => Status::Caution,
        NotTrusted => Status::NotTrusted,
    };
    assert_eq!(verdict.status, expected, "{found:?}");
    are_clauses(&found);
    assert_eq!(found.fix.is_empty(), found.status <= Ok, "{found:?}");
    found
}

#[test]
fn a_clean_run_is_trusted() {
    let verdict = Verdict::of(&clean());
    assert_eq!(verdict.status.name(), "TRUSTED");
    let ids: Vec<_> = verdict.checks.iter().map(|check| (check.id, check.status.name())).collect();
    let expected = CHECKS.map(|id| match id {
        "UNTIL" | "HEADROOM" | "VERIFY" | "PEER" | "SERVER" | "CACHE" | "REPEAT" => (id, "skipped"),
        _ => (id, "ok"),
    });
    assert_eq!(ids, expected);
}

#[test]
fn a_run_without_completed_requests_is_not_trusted() {
    let found = check("SAMPLES", |evidence| {
        *evidence = Evidence { sent: 7, ..Evidence::default() };
    });
    assert_eq!(
        (found.status, found.text().as_str()),
        (
            NotTrusted,
            "none of the requests that were due in the window was completed, of which 7 were sent; at least 1000 are needed"
        )
    );
}

#[test]
fn noreply_runs_need_no_completed_requests() {
    let found = check("SAMPLES", |evidence| {
        *evidence = Evidence { sent: 1_000, unacknowledged: 1_000, ..Evidence::default() };
    });
    assert_eq!(
        (found.status, found.text().as_str()),
        (Ok, "1000 requests sent, none of which asked for a reply")
    );
}

#[test]
fn fewer_requests_than_asked_for() {
    let is_short = asked(10_000, 7_312);
    let table = [
        (Some(asked(10_000, 10_000)), Ok, "asked for 10000 requests, 10000 were issued"),
        (
            Some(is_short),
            NotTrusted,
            "asked for 10000 requests, 7312 were issued: the run ended early, because no connection could be had any \
             more",
        ),
        (
            Some(RequestTarget { connections_end: true, ..is_short }),
            NotTrusted,
            "asked for 10000 requests, 7312 were issued: the last connection that the plan allows had ended",
        ),
        (
            Some(RequestTarget { is_time_up: true, ..is_short }),
            Ok,
            "asked for 10000 requests, 7312 were issued: the time was up first, as the plan has it",
        ),
        (None, Skipped, "no number of requests to reach: none is asked for, or the run was interrupted"),
    ];
    for (asked, expected, message) in table {
        let found = check("SHORT", |evidence| evidence.asked = asked);
        assert_eq!((found.status, found.text().as_str()), (expected, message));
    }
    assert_eq!(check("SHORT", |evidence| evidence.asked = Some(is_short)).value, 2_688.0);
    assert_eq!(check("SHORT", |evidence| evidence.asked = Some(asked(10, 9))).status, NotTrusted);
}

#[test]
fn unsent_requests() {
    for (unsent, expected) in [(0, Ok), (100, Ok), (101, Caution), (1_000, Caution), (1_001, NotTrusted)] {
        let found = check("RATE", |evidence| {
            evidence.open_loop = Some(OpenLoop { scheduled: 100_000, unsent, abandoned: 0 });
        });
        assert_eq!(found.status, expected, "{unsent}");
    }
    let found = check("RATE", |evidence| {
        evidence.open_loop = Some(OpenLoop { scheduled: 100_000, unsent: 250, abandoned: 0 });
    });
    assert_eq!(found.text(), "250 of 100000 scheduled requests were never sent (0.25 %)");
    assert_eq!(check("RATE", |evidence| evidence.open_loop = None).status, Skipped);
}

/// A server that was gone for a while, and how long of that in the last half of the window.
fn gone(name: &str, gone_ms: u64, late_ms: u64, abandoned: u64) -> DownServer {
    DownServer {
        name: name.to_owned(),
        down_ns: gone_ms * 1_000_000,
        late_ns: late_ms * 1_000_000,
        abandoned,
    }
}

#[test]
fn an_outage_is_named_where_its_requests_are_missed() {
    let servers = vec![gone("a:1", 500, 0, 0), gone("b:2", 4_250, 1_000, 2_400)];
    let with = |id, change: fn(&mut Evidence<'_>)| {
        check(id, |evidence| {
            evidence.down_servers = servers.clone();
            change(evidence);
        })
    };
    let found = with("ERR", |evidence| (evidence.lost, evidence.abandoned) = (100, 2_400));
    assert_eq!(
        found.text(),
        "2500 of 102400 requests failed (2.44 %): 0 errors, 0 timed out, 100 lost with their connection, 2400 never sent \
         because b:2 was down for 4.25 s"
    );
    assert_eq!(found.status, NotTrusted);
    let rate = |abandoned| {
        check("RATE", |evidence| {
            evidence.down_servers = servers.clone();
            evidence.open_loop = Some(OpenLoop { scheduled: 100_000, unsent: 2_400, abandoned });
        })
    };
    assert_eq!(
        rate(2_400).text(),
        "2400 of 100000 scheduled requests were never sent (2.40 %); 2400 of them because b:2 was down for 4.25 s"
    );
    // The advice is to lower the rate as soon as more than a tenth has another reason.
    let advises = [2_400, 2_160, 2_159, 0].map(|abandoned| rate(abandoned).fix.starts_with("lower the rate"));
    assert_eq!(advises, [false, false, true, true]);
    let found = with("SAT", |evidence| {
        evidence.last_half = Some(LastHalf { offered: 50_000.0, answered: 45_000.0, seconds: 5.0 });
    });
    assert_eq!(
        found.text(),
        "9000 requests/s answered of 10000/s offered in the last half of the window; b:2 was down for 1.00 s of it, \
         which explains the shortfall or a part of it"
    );
    assert!(!found.fix.contains("lower"), "{}", found.fix);
    // One that was over before explains nothing, nor does one of less than a hundredth of the time.
    for late_ms in [0, 49] {
        let found = check("SAT", |evidence| {
            evidence.down_servers = vec![gone("b:2", 4_250, late_ms, 2_400)];
            evidence.last_half = Some(LastHalf { offered: 50_000.0, answered: 45_000.0, seconds: 5.0 });
        });
        assert!(found.text().contains("the backlog grows"), "{}", found.text());
    }
    let found = check("ERR", |evidence| {
        evidence.down_servers = ["a:1", "b:2", "c:3", "d:4", "e:5"].map(|name| gone(name, 20, 0, 1)).to_vec();
        evidence.abandoned = 5;
    });
    let told = "5 never sent because a:1 was down for 20.0 ms, b:2 was down for 20.0 ms, c:3 was down \
                for 20.0 ms, 2 other servers were down, too";
    assert!(found.text().ends_with(told), "{}", found.text());
}

/// Errors that are redirections have a fix of their own, where no cluster is known.
#[test]
fn redirections_without_a_cluster_name_the_option() {
    let fix = |moved: u64| {
        check("ERR", |evidence| {
            evidence.errors = 100;
            evidence.run.to_mut().counts.error_replies.count("MOVED".into(), moved);
        })
        .fix
    };
    assert_eq!(fix(51), "the servers are nodes of a cluster: use --cluster");
    assert!(fix(50).contains("including failures"), "{}", fix(50));
}

#[test]
fn a_server_that_falls_behind() {
    let table = [
        // 4 √50 000 is 894, so a shortfall of 1.7 % is chance.
        (50_000.0, 49_150.0, Ok),
        (50_000.0, 49_000.0, Caution),
        (50_000.0, 47_000.0, NotTrusted),
        (50_000.0, 51_000.0, Ok),
        // 4 √10⁶ is 4000, 0.4 %: here the share decides.
        (1e6, 991_000.0, Ok),
        (1e6, 989_000.0, Caution),
        // Two of ten may well be late.
        (10.0, 8.0, Ok),
        (100.0, 10.0, NotTrusted),
    ];
    for (offered, answered, expected) in table {
        let found = check("SAT", |evidence| {
            evidence.last_half = Some(LastHalf { offered, answered, seconds: 5.0 });
        });
        assert_eq!(found.status, expected, "{answered} of {offered}");
    }
    let found = check("SAT", |evidence| {
        evidence.last_half = Some(LastHalf { offered: 100_000.0, answered: 50_000.0, seconds: 5.0 });
    });
    assert_eq!(
        found.text(),
        "10000 requests/s answered of 20000/s offered in the last half of the window; the backlog grows by 10000 \
         requests/s, and percentiles with the length of the run"
    );
    assert_eq!(check("SAT", |evidence| evidence.last_half = None).status, Skipped);
}

#[test]
fn the_share_of_the_client() {
    let table = [
        // Percentile, response, client error → open loop, closed loop.
        (Quantile::P99, 400_000, 20_000, Ok, Ok),
        (Quantile::P99, 400_000, 20_001, Caution, Caution),
        (Quantile::P99, 400_000, 80_000, Caution, Caution),
        (Quantile::P99, 400_000, 80_001, NotTrusted, Caution),
        // The floor of 10 µs: 100 % of a small percentile is still nothing to worry about. Most of a median convicts either loop.
        (Quantile::P50, 10_000, 10_000, Ok, Ok),
        (Quantile::P50, 10_001, 10_001, NotTrusted, NotTrusted),
        (Quantile::P999, 1_000_000, 900_000, NotTrusted, Caution),
    ];
    for (quantile, response_ns, error_ns, open, closed) in table {
        for (is_closed, expected) in [(false, open), (true, closed)] {
            let found = check("LAG", |evidence| {
                evidence.lag_rows = vec![lag_row(is_closed, quantile, response_ns, error_ns)];
            });
            assert_eq!(found.status, expected, "{quantile} {response_ns} {error_ns} closed: {is_closed}");
        }
    }
    assert_eq!(check("LAG", |evidence| evidence.lag_rows.clear()).status, Skipped);
    // Beyond p99.9 no share convicts the run; the percentile alone has it.
    let mut evidence = clean();
    evidence.lag_rows = vec![lag_row(false, Quantile::P9999, 1_000_000, 900_000)];
    let verdict = Verdict::of(&evidence);
    assert!(verdict.checks.iter().all(|check| check.status <= Ok), "{verdict:?}");
    assert_eq!(verdict.percentiles[0].to_string(), "client?");
}

#[test]
fn the_largest_client_error_is_reported() {
    let rows = |closed: bool| {
        move |evidence: &mut Evidence<'_>| {
            evidence.lag_rows = vec![
                lag_row(closed, Quantile::P50, 100_000, 4_000),
                lag_row(closed, Quantile::P99, 400_000, 300_000),
                lag_row(closed, Quantile::P999, 900_000, 310_000),
            ];
        }
    };
    let found = check("LAG", rows(false));
    assert_eq!(found.text(), "up to 300 us of the p99 of get, 400 us, may be the client's own (75.0 %)");
    assert_eq!((found.value, found.threshold), (300_000.0, 20_000.0));
    let found = check("LAG", rows(true));
    assert_eq!(
        found.text(),
        "latency at this concurrency, client share <= 75.0 %: 300 us of 400 us of the p99 of get"
    );
    // A closed-loop class beside an open one: what convicts comes before what only looks worse.
    let found = check("LAG", |evidence| {
        evidence.lag_rows = vec![
            lag_row(true, Quantile::P99, 400_000, 390_000),
            lag_row(false, Quantile::P99, 400_000, 90_000),
        ];
    });
    assert_eq!((found.status, found.value), (NotTrusted, 90_000.0));
}

#[test]
fn failed_requests() {
    let table = [
        (0, 0, 0, Ok),
        (1, 0, 0, Caution),
        (0, 1, 0, Caution),
        (0, 0, 1, Caution),
        (400, 300, 300, Caution),
        (400, 300, 301, NotTrusted),
    ];
    for (errors, timeouts, lost, expected) in table {
        let found = check("ERR", |evidence| {
            (evidence.errors, evidence.timeouts, evidence.lost) = (errors, timeouts, lost);
        });
        assert_eq!(found.status, expected, "{errors} {timeouts} {lost}");
    }
    let found = check("ERR", |evidence| (evidence.errors, evidence.timeouts) = (10, 5));
    assert_eq!(
        found.text(),
        "15 of 100000 requests failed (0.01 %): 10 errors, 5 timed out, 0 lost with their connection"
    );
}

#[test]
fn a_client_that_stood_still() {
    let stood = |count: u64, longest_ns: u64| {
        let stalls = StallCounts {
            count,
            total_ns: 2 * longest_ns,
            longest_ns,
            longest_at_ns: 2_310_000_000,
            longest_run_delay_ns: None,
        };
        WorkerUsage { stalls, ..worker(0.2, 0.0) }
    };
    let found = check("STALL", |evidence| evidence.run.to_mut().usage.workers = vec![worker(0.2, 0.0)]);
    assert_eq!((found.status, found.text().as_str()), (Ok, "no turn of the loop took longer than 10.0 ms"));
    for is_closed in [false, true] {
        let found = check("STALL", |evidence| {
            if is_closed {
                (evidence.open_loop, evidence.last_half) = (None, None);
            }
            evidence.run.to_mut().usage.workers =
                vec![stood(1, 11_000_000), WorkerUsage { worker: 2, ..stood(2, 1_000_000_000) }];
        });
        assert_eq!((found.status, found.value, found.threshold), (Caution, 1e9, 1e7));
        assert_eq!(
            found.text(),
            "the client stood still 3 times for more than 10.0 ms, for 2.02 s in all; longest for 1.00 s at +2.31 s (worker 2); \
             what requests waited meanwhile is the client's, and a closed loop sent nothing"
        );
    }
}

/// A fault: its phase and kind, how often, and when first, counted from the beginning of the window.
type Seen = (Phase, FaultKind, u64, i64);

#[test]
fn faults_of_connections() {
    use crate::fault::FaultKind::{Malformed, Other, Refused, Reset};
    // Faults, datagrams that were no reply → status, words
    let warmup = (Phase::Warmup, Reset, 1, -2_000_000);
    let table: [(&[Seen], u64, CheckStatus, &str); 8] = [
        (&[], 0, Ok, "no connection was lost or refused, and all that came was a reply"),
        (
            &[(Phase::Connect, Refused, 9, -9), (Phase::Preload, Reset, 1, -8)],
            0,
            Ok,
            "no connection was lost",
        ),
        (&[warmup], 0, Caution, "connections from warm-up to drain: 1 reset (first at -2.00 ms)"),
        (
            &[warmup, (Phase::Measure, Reset, 2, 0), (Phase::Measure, Other(113), 1, 1_500_000_000)],
            0,
            Caution,
            "connections from warm-up to drain: 3 reset (first at -2.00 ms), 1 error number 113 (first at +1.50 s)",
        ),
        (
            &[(Phase::Drain, Malformed, 1_000, 5)],
            0,
            Caution,
            "bytes that are no reply for 1.00 % of 100000 requests sent",
        ),
        (
            &[(Phase::Measure, Malformed, 1_001, 5)],
            0,
            NotTrusted,
            "1001 malformed (first at +5 ns); bytes that are",
        ),
        (
            &[],
            1,
            Caution,
            "connections from warm-up to drain: 1 datagram that is no reply; bytes that are no reply for",
        ),
        (&[], 1_001, NotTrusted, "1001 datagrams that are no reply"),
    ];
    for (rows, malformed, status, words) in table {
        let found = check("FAULT", |evidence| {
            evidence.run.to_mut().counts.datagrams.malformed = malformed;
            evidence.faults =
                FaultEvidence { measure_ns: 10_000_000, sent: 100_000, ..FaultEvidence::default() };
            for (phase, kind, count, first_ns) in rows {
                let at_ns = 10_000_000u64.saturating_add_signed(*first_ns);
                (0..*count).for_each(|_| evidence.faults.table.record(*phase, *kind, at_ns));
            }
        });
        assert_eq!(found.status, status, "{found:?}");
        assert!(found.text().contains(words), "{found:?}");
    }
}

#[test]
fn counts_that_do_not_add_up() {
    let requests = |in_flight| RequestCounts { scheduled: 3, sent: 3, in_flight, ..RequestCounts::default() };
    let keys = |requested| KeyCounts { requested, hit: 1, ..KeyCounts::default() };
    let table = [
        (OpCounts { requests: requests(3), keys: keys(1), ..OpCounts::default() }, Ok),
        (OpCounts { requests: requests(2), keys: keys(1), ..OpCounts::default() }, NotTrusted),
        (OpCounts { requests: requests(3), keys: keys(2), ..OpCounts::default() }, NotTrusted),
    ];
    for (counts, expected) in table {
        assert_eq!(
            check("CONSERVE", |evidence| evidence.books = vec![entry(counts)]).status,
            expected,
            "{counts:?}"
        );
    }
    let broken = unbalanced_entry();
    assert_eq!(
        check("CONSERVE", |evidence| evidence.books = vec![broken]).text(),
        "1 books do not balance; the first is get of class 1 in drain: 3 scheduled, 3 sent, 0 unsent, 0 ended, \
         2 in flight, 1 keys asked, 1 hit, 0 missed, 0 failed"
    );
}

#[test]
fn window_counts_that_do_not_add_up() {
    // Five were due in the window and one waited before; one of these six is given up, one waits at the end. Of four that
    // are sent one is in flight at the end, one that was in flight at the start ends as well.
    let requests = RequestCounts {
        scheduled: 5,
        sent: 4,
        unsent: 1,
        abandoned: 1,
        outcomes: [4, 0, 0, 0, 0, 0, 0, 0, 0],
        ..RequestCounts::default()
    };
    let mut counts = OpCounts { requests, ..OpCounts::default() };
    counts.requests.replies[0] = 4;
    counts.in_window = WindowCounts {
        sent: 4,
        outcomes: [4, 0, 0, 0, 0, 0, 0, 0, 0],
        abandoned: 1,
        waiting_at_start: 1,
        waiting_at_end: 1,
        in_flight_at_start: 1,
        in_flight_at_end: 1,
        ..WindowCounts::default()
    };
    let status = |phase, counts| {
        let entry = CountEntry { phase, ..entry(counts) };
        let found = check("CONSERVE", |evidence| evidence.books = vec![entry]);
        (found.status, found.value, found.text())
    };
    assert_eq!(status(Phase::Measure, counts).0, Ok);
    let wrong: [fn(&mut WindowCounts); 7] = [
        |counts| counts.sent += 1,
        |counts| counts.outcomes[3] += 1,
        |counts| counts.abandoned -= 1,
        |counts| counts.waiting_at_start -= 1,
        |counts| counts.waiting_at_end += 1,
        |counts| counts.in_flight_at_start += 1,
        |counts| counts.in_flight_at_end -= 1,
    ];
    for change in wrong {
        let mut changed = counts;
        change(&mut changed.in_window);
        let (status, value, message) = status(Phase::Measure, changed);
        assert_eq!((status, value), (NotTrusted, 1.0), "{message}");
        assert!(
            message.starts_with("1 books do not balance by what happened inside the window"),
            "{message}"
        );
    }
    // Of the warm-up none is due in the window.
    assert_eq!(status(Phase::Warmup, counts).0, NotTrusted);
}

#[test]
fn connection_counts_that_do_not_add_up() {
    let counts = ConnectionCounts { begun: 9, established: 6, failed: 2, retired: 4, lost: 2 };
    let wrong = [
        ConnectionCounts { begun: 7, ..counts },
        ConnectionCounts { established: 5, ..counts },
        ConnectionCounts { failed: 4, ..counts },
        ConnectionCounts { retired: 5, ..counts },
        ConnectionCounts { lost: 3, ..counts },
    ];
    assert_eq!(check("CONSERVE", |evidence| evidence.connections = counts).status, Ok);
    for counts in wrong {
        let found = check("CONSERVE", |evidence| evidence.connections = counts);
        assert_eq!(found.status, NotTrusted, "{counts:?}");
    }
    assert_eq!(
        check("CONSERVE", |evidence| evidence.connections = wrong[0]).message,
        "the books of connections do not balance: 7 begun, 6 established, 2 failed, 4 retired, 2 lost"
    );
}

/// A book of so many values read.
fn read(hit: u64) -> CountEntry {
    entry(OpCounts { keys: KeyCounts { requested: hit + 3, hit, miss: 3, failed: 0 }, ..OpCounts::default() })
}

/// That nothing wrong was found among no values shows nothing.
#[test]
fn runs_without_checked_values() {
    // Read, asked to be checked in full, checked so.
    let table = [
        (0, None, Skipped, "no value was read, so that none was checked"),
        (7, None, Ok, "7 values checked, each is the one that was stored"),
        (0, Some(0), Caution, "no value was read, so that none was checked"),
        (1_700, Some(0), Caution, "none was checked of 1700 values read"),
        (1_700, Some(1), Ok, "1 values checked, each is the one that was stored"),
    ];
    for (hit, checked, status, message) in table {
        let found = check("VERIFY", |evidence| {
            (evidence.is_verified, evidence.is_verify_asked) = (true, checked.is_some());
            evidence.books = vec![read(hit)];
            let verification = &mut evidence.run.to_mut().counts.verification;
            (verification.checked, verification.misses) = (checked.unwrap_or(0), 3);
        });
        assert_eq!((found.status, found.text().as_str()), (status, message));
    }
}

#[test]
fn wrong_values() {
    let with_mismatches = |count: u64| {
        let mut requests = RequestCounts { scheduled: count, sent: count, ..RequestCounts::default() };
        requests.outcomes[OutcomeClass::Mismatch as usize] = count;
        requests.replies[0] = count;
        vec![entry(OpCounts { requests, ..OpCounts::default() })]
    };
    for (count, is_verified, expected) in
        [(0, false, Skipped), (0, true, Ok), (1, true, NotTrusted), (1, false, NotTrusted)]
    {
        let found = check("VERIFY", |evidence| {
            (evidence.books, evidence.is_verified) = (with_mismatches(count), is_verified);
            evidence.books.push(read(9));
        });
        assert_eq!(found.status, expected, "{count} {is_verified}");
    }
    // An operation that failed in another way besides is booked as that; and a key that is missing is no wrong value.
    for (fault, expected) in [(ValueFault::Stale, NotTrusted), (ValueFault::Missing, Caution)] {
        let found = check("VERIFY", |evidence| {
            (evidence.is_verified, evidence.run.to_mut().counts.values_foreign) = (true, 5);
            evidence.run.to_mut().counts.verification.note(fault, FaultExample::of(7, 0));
        });
        assert_eq!(found.status, expected, "{fault:?}: {}", found.text());
    }
    // Values that are not ours prove nothing; one of ours that is wrong still does.
    for (count, expected) in [(0, Skipped), (1, NotTrusted)] {
        let found = check("VERIFY", |evidence| {
            (evidence.books, evidence.is_verified, evidence.run.to_mut().counts.values_foreign) =
                (with_mismatches(count), true, 1_234);
        });
        assert_eq!(found.status, expected, "{count}");
        let tells = found.text().starts_with("1234 values read were not written by this tool");
        assert_eq!(tells, expected == Skipped, "{}", found.text());
    }
}

#[test]
fn numbers_in_messages() {
    let table =
        [(0, "0 ns"), (999, "999 ns"), (1_000, "1.00 us"), (41_234, "41.2 us"), (1_900_000, "1.90 ms")];
    for (ns, text) in table {
        assert_eq!(time(ns), text);
    }
    assert_eq!((time(10_000_000_000), percent(0.0)), ("10.0 s".to_owned(), "0 %".to_owned()));
    assert_eq!((percent(0.002_5), percent(1.0)), ("0.25 %".to_owned(), "100 %".to_owned()));
}

/// The check of a run in open loop whose lateness is judged so: LAG may stir, and nothing else.
fn with_lag(id: &str, lag: CheckStatus, change: impl Fn(&mut Evidence<'_>)) -> Check {
    let mut evidence = clean();
    let error_ns =
        [3_000, 20_001, 80_001][[Ok, Caution, NotTrusted].iter().position(|held| *held == lag).unwrap()];
    evidence.lag_rows = vec![lag_row(false, Quantile::P99, 400_000, error_ns)];
    change(&mut evidence);
    let checks = Verdict::of(&evidence).checks;
    for other in checks.iter().filter(|check| check.id != id && check.id != "LAG") {
        let is_its_twin = ["CPU", "STEAL"].contains(&other.id) && ["CPU", "STEAL"].contains(&id);
        assert!(other.status <= Ok || is_its_twin, "{id}: {other:?}");
    }
    checks.into_iter().find(|check| check.id == id).expect("every check is in every verdict")
}

#[test]
fn workers_waiting_for_a_cpu() {
    let table = [
        // Worked, kept from it → by how late it was.
        (0.80, 0.0, [Ok, Ok, Ok]),
        (0.30, 0.5001, [Caution, Caution, NotTrusted]),
        (0.8001, 0.0, [Caution, Caution, NotTrusted]),
        (0.95, 0.0, [Caution, Caution, NotTrusted]),
        (0.9501, 0.0, [Caution, NotTrusted, NotTrusted]),
        (0.15, 0.85, [Caution, NotTrusted, NotTrusted]),
    ];
    for (busy, denied, statuses) in table {
        for (lag, expected) in [Ok, Caution, NotTrusted].into_iter().zip(statuses) {
            let found = with_lag("CPU", lag, |evidence| {
                evidence.run.to_mut().usage.workers = vec![worker(0.1, 0.0), worker(busy, denied)]
            });
            assert_eq!(found.status, expected, "{busy} {denied}, LAG {lag:?}");
        }
    }
    // In closed loop whatever is late is no more than a caution.
    let closed = with_lag("CPU", Ok, |evidence| {
        evidence.lag_rows = vec![lag_row(true, Quantile::P99, 400_000, 300_000)];
        evidence.run.to_mut().usage.workers = vec![worker(0.99, 0.0)];
    });
    assert_eq!(closed.status, Caution);
    // A kernel without the scheduler's account: the quota is what is known.
    let starved = |evidence: &mut Evidence<'_>| {
        evidence.run.to_mut().usage.workers = vec![WorkerUsage { run_delay_ns: None, ..worker(0.2, 0.0) }];
        evidence.run.to_mut().host.throttled_ns = Some(7_900_000_000);
    };
    let found = with_lag("CPU", Caution, starved);
    assert_eq!(
        (found.status, found.text().as_str()),
        (
            NotTrusted,
            "worker 1 worked for 20.0 % of the window and was kept from its processor for 79.0 %; the quota of its \
             control group was used up for 7.90 s"
        )
    );
    let unseen =
        |evidence: &mut Evidence<'_>| evidence.run.to_mut().usage.workers = vec![WorkerUsage::default()];
    assert_eq!(with_lag("CPU", Ok, unseen).status, Skipped);
}

#[test]
fn stolen_time() {
    // In nanoseconds of 20 s of processor time.
    let table = [
        (20_000_000, Ok),
        (100_000_000, Ok),
        (110_000_000, Caution),
        (400_000_000, Caution),
        (410_000_000, NotTrusted),
    ];
    for (stolen_ns, expected) in table {
        let found = check("STEAL", |evidence| evidence.run.to_mut().host.stolen_ns = Some(stolen_ns));
        assert_eq!(found.status, expected, "{stolen_ns}");
    }
    // Two ticks of a short run are 10 %, and may be one event.
    let short = |evidence: &mut Evidence<'_>| {
        (evidence.run.to_mut().host.wall_ns, evidence.run.to_mut().host.stolen_ns) =
            (100_000_000, Some(20_000_000));
    };
    assert_eq!(check("STEAL", short).status, Ok);
    let table = [
        (0.005, Ok, Ok),
        (0.0051, Caution, Caution),
        (0.02, Caution, Caution),
        (0.0201, Caution, NotTrusted),
    ];
    for (delayed, in_time, when_late) in table {
        for (lag, expected) in [(Ok, in_time), (Caution, in_time), (NotTrusted, when_late)] {
            let found = with_lag("STEAL", lag, |evidence| {
                evidence.run.to_mut().usage.workers = vec![worker(0.3, delayed)]
            });
            assert_eq!(found.status, expected, "{delayed}, LAG {lag:?}");
        }
    }
    let silent = |evidence: &mut Evidence<'_>| {
        evidence.run.to_mut().host.stolen_ns = None;
        evidence.run.to_mut().usage.workers = vec![WorkerUsage { run_delay_ns: None, ..worker(0.3, 0.0) }];
    };
    assert_eq!(check("STEAL", silent).status, Skipped);
}

/// Only what found something is told, with a remedy of its own, and only what was judged is the number.
#[test]
fn the_source_of_stolen_time_is_named() {
    let hypervisor = "the hypervisor took 0.55 % of the time of 2 processors (stolen time, /proc/stat)";
    let a_tick = "the hypervisor took 0.05 % of the time of 2 processors (stolen time, /proc/stat)";
    let delayed =
        "worker 1 waited for a CPU for 3.10 % of the window (run delay, 212 involuntary switches/s)";
    let hardly = "worker 1 waited for a CPU for 0.10 % of the window (run delay, 212 involuntary switches/s)";
    let both = format!("{delayed}; {hypervisor}");
    let neither = format!("{hardly}; {a_tick}");
    let [of_guest, of_thread] = ["nothing in this guest helps", "take away what else runs"];
    let table = [
        // Stolen in 20 s, run delay of the window → message, number, remedy.
        (110_000_000, 0.001, hypervisor, 0.005_5, of_guest),
        (10_000_000, 0.031, delayed, 0.031, of_thread),
        (110_000_000, 0.031, &both, 0.031, "use a host of one's own"),
        (10_000_000, 0.001, &neither, 0.001, ""),
    ];
    for (stolen_ns, share, message, value, fix) in table {
        let found = check("STEAL", |evidence| {
            evidence.run.to_mut().host.stolen_ns = Some(stolen_ns);
            evidence.run.to_mut().usage.workers = vec![worker(0.3, share)];
        });
        assert_eq!(found.text(), message);
        assert!((found.value - value).abs() < 1e-9, "{found:?}");
        assert!(found.fix.starts_with(fix) && found.fix.is_empty() == fix.is_empty(), "{found:?}");
    }
    // The worse one first, whatever its number is.
    let found = with_lag("STEAL", Ok, |evidence| {
        evidence.run.to_mut().host.stolen_ns = Some(410_000_000);
        evidence.run.to_mut().usage.workers = vec![worker(0.3, 0.031)];
    });
    assert_eq!(found.status, NotTrusted);
    assert!(found.text().starts_with("the hypervisor took 2.05 %"), "{found:?}");
    assert!((found.value - 0.020_5).abs() < 1e-9, "{found:?}");
    // Ticks that are not judged are no number either, however large their share of a short run is.
    let found = check("STEAL", |evidence| {
        (evidence.run.to_mut().host.wall_ns, evidence.run.to_mut().host.stolen_ns) =
            (100_000_000, Some(20_000_000));
    });
    assert!((found.status, found.value) == (Ok, 0.001), "{found:?}");
}

#[test]
fn clocks() {
    let clock = || healthy().clock;
    let of = |source: &str| ClockEvidence { source: Some(source.to_owned()), ..clock() };
    let table = [
        (clock(), Ok, "clock source tsc, drift -1.2 ppm, no step"),
        (
            ClockEvidence { drift_ppm: None, ..of("kvm-clock") },
            Ok,
            "clock source kvm-clock, drift not known, no step",
        ),
        (of("hpet"), Caution, "clock source hpet is slow or coarse to read"),
        (
            ClockEvidence { drift_ppm: Some(-500.0), ..clock() },
            Ok,
            "clock source tsc, drift -500.0 ppm, no step",
        ),
        (
            ClockEvidence { drift_ppm: Some(-501.0), ..clock() },
            Caution,
            "CLOCK_MONOTONIC is slewed by -501 ppm, and every latency with it",
        ),
        (
            ClockEvidence { realtime_step_ns: 2_000_000, ..clock() },
            Caution,
            "the time of day was stepped by 2.00 ms",
        ),
        (
            ClockEvidence { backwards: 1, ..of("jiffies") },
            NotTrusted,
            "CLOCK_MONOTONIC went backwards 1 times; clock source jiffies is slow or coarse to read",
        ),
        (ClockEvidence::default(), Skipped, "the host says nothing of its clocks"),
    ];
    for (clock, expected, message) in table {
        let found = check("CLOCK", |evidence| evidence.run.to_mut().host.clock = clock.clone());
        assert_eq!((found.status, found.text().as_str()), (expected, message));
    }
}

#[test]
fn a_server_on_the_workers_processor() {
    let table = [
        (20, 15, Ok),
        (20, 16, Caution),
        (500, 375, Ok),
        (500, 376, Caution),
        (500, 500, Caution),
        (19, 19, Skipped),
    ];
    for (looks, shared, expected) in table {
        let found = check("COLO", |evidence| {
            evidence.run.to_mut().usage.workers[0].colocation = Colocation { looks, shared }
        });
        assert_eq!(found.status, expected, "{shared} of {looks}");
    }
    let found = check("COLO", |evidence| {
        evidence.run.to_mut().usage.workers[0].colocation = Colocation { looks: 50, shared: 49 }
    });
    assert_eq!(found.text(), "49 of 50 times a server had last sent from the processor of worker 1 (98.0 %)");
}

#[test]
fn a_unix_socket_has_no_network() {
    for id in ["COLO", "NET"] {
        let found = check(id, |evidence| {
            evidence.is_by_unix_socket = true;
            evidence.run.to_mut().usage.workers[0].colocation = Colocation::default();
        });
        assert!(found.status == Skipped && found.text().contains("Unix socket"), "{found:?}");
    }
}

#[test]
fn udp_has_no_retransmissions() {
    let found = check("NET", |evidence| evidence.is_by_udp = true);
    assert!(found.status == Skipped && found.text().contains("time-outs"), "{found:?}");
}

#[test]
fn unverified_certificates_are_reported() {
    for (is_peer_verified, expected) in [(None, Skipped), (Some(true), Ok), (Some(false), Caution)] {
        let found = check("PEER", |evidence| evidence.is_peer_verified = is_peer_verified);
        assert_eq!(found.status, expected, "{found:?}");
    }
}

#[test]
fn lost_packets() {
    let requests = RequestCounts { scheduled: 100_000, unsent: 100_000, ..RequestCounts::default() };
    let mut sent = RequestCounts { sent: 100_000, unsent: 0, in_flight: 100_000, ..requests };
    sent.wire_requests = 100_000;
    let books = vec![
        entry(OpCounts { requests: sent, ..OpCounts::default() }),
        CountEntry { phase: Phase::Preload, ..entry(OpCounts { requests: sent, ..OpCounts::default() }) },
    ];
    let table = [
        // Retransmits, turned away, connects → status
        (0, 0, true, Ok),
        (1, 0, false, Caution),
        (100, 0, false, Caution),
        (101, 0, false, NotTrusted),
        (0, 1, true, Caution),
        (0, 1, false, Ok),
        (50, 51, true, NotTrusted),
    ];
    for (retransmits, turned_away, connects, expected) in table {
        let found = check("NET", |evidence| {
            evidence.books = books.clone();
            evidence.connects_in_schedule = connects;
            evidence.run.to_mut().host.retransmits = retransmits;
            evidence.run.to_mut().host.listen_drops = Some(turned_away);
        });
        assert_eq!(found.status, expected, "{retransmits} {turned_away} {connects}: {found:?}");
    }
    let found = check("NET", |evidence| {
        (evidence.books, evidence.connects_in_schedule) = (books.clone(), true);
        (evidence.run.to_mut().host.retransmits, evidence.run.to_mut().host.listen_drops) = (12, Some(3));
    });
    assert_eq!(
        found.text(),
        "12 segments sent again, 0.01 % of 100000 requests; 3 attempts to connect turned away by servers of this host"
    );
}

#[test]
fn littles_law() {
    for (sum, expected) in
        [(4e10, Ok), (3.981e10, Ok), (3.979e10, Caution), (3.81e10, Caution), (3.79e10, NotTrusted)]
    {
        let found = check("LITTLE", |evidence| evidence.in_system.sum = sum);
        assert_eq!(found.status, expected, "{sum}");
        let turned = check("LITTLE", |evidence| evidence.in_system.integral = sum);
        assert_eq!(turned.status, expected, "{sum}");
    }
    let closed = |ended: u64, response_us: f64, late_ns: u64| {
        move |evidence: &mut Evidence<'_>| {
            evidence.closed_loops = vec![ClosedLoop {
                class: "main".to_owned(),
                slots: 16,
                ended,
                response_ns: ended as f64 * response_us * 1e3,
                late_ns,
                think_ns: 100_000,
                window_ns: WINDOW_NS,
            }];
        }
    };
    // 16 slots × 10 s = 100 000 × (1500 + 100 us).
    let table = [
        (100_000, 1_500.0, 0, Ok),
        (100_000, 1_516.0, 0, Ok),
        (100_000, 1_517.0, 0, Caution),
        (100_000, 1_580.0, 0, Caution),
        (100_000, 1_582.0, 0, NotTrusted),
        // A worker learned of the window when 1 % of it was over: so much may be missing.
        (100_000, 1_517.0, 100_000_000, Ok),
        (100_000, 1_533.0, 100_000_000, Caution),
        // Nothing is said of a window that is all edges, or of a handful of requests.
        (100_000, 1_900.0, 501_000_000, Ok),
        (999, 1_900.0, 0, Ok),
    ];
    for (ended, response_us, late_ns, expected) in table {
        let found = check("LITTLE", closed(ended, response_us, late_ns));
        assert_eq!(found.status, expected, "{ended} {response_us} {late_ns}: {found:?}");
    }
    assert_eq!(
        check("LITTLE", closed(100_000, 1_540.0, 0)).message,
        "class 'main' has 16 slots, rate × (response + think) makes 16.40 (2.50 % apart)"
    );
    assert_eq!(
        check("LITTLE", |evidence| evidence.in_system.sum = 3.9e10).message,
        "4.000 requests in the system on average by the clock, 3.900 by their own times (2.50 % apart)"
    );
    assert_eq!(check("LITTLE", |evidence| evidence.in_system = InSystem::default()).status, Skipped);
}

#[test]
fn a_headline_that_rests_on_few_batches_calls_for_care_where_it_is_wide() {
    // Batches that reach it, interval, slices.
    let table = [
        (20, 500, Some(2_000), 30, Ok),
        (19, 500, Some(2_000), 30, Caution),
        (19, 500, Some(2_000), 29, Ok),
        (19, 500, Some(2_000), 9, Skipped),
        (19, 801, Some(1_201), 30, Ok),
        (19, 799, Some(1_201), 30, Caution),
        (30, 500, None, 30, Caution),
    ];
    for (batches_reached, low_ns, high_ns, slices, expected) in table {
        let found = check("CI-THIN", |evidence| {
            evidence.intervals = vec![interval(batches_reached, low_ns, high_ns)];
            evidence.slices = slices;
        });
        assert_eq!(found.status, expected, "{batches_reached} {low_ns} {high_ns:?} {slices}: {found:?}");
    }
    let found = check("CI-THIN", |evidence| evidence.intervals = vec![interval(19, 900, Some(1_000))]);
    assert_eq!((found.status, found.text().as_str()), (Ok, "thin, and marked ~: p99"));
    let found = check("CI-THIN", |evidence| evidence.intervals = Vec::new());
    assert_eq!(found.text(), "too few requests for a p99 of all of them");
}

#[test]
fn a_precision_that_was_not_reached_calls_for_care() {
    let goal = Goal::Width("get.p99=2%".parse().unwrap());
    let looked = |finding, enough_at_ns, held_by: &[&'static str]| UntilResult {
        findings: vec![(goal, finding)],
        held_by: held_by.to_vec(),
        unjudged: Vec::new(),
        taken: 3,
        looks: 4,
        enough_at_ns,
        aborted_at_ns: None,
        is_interrupted: false,
    };
    let open = GoalState::Open(interval(30, 900, Some(1_100)));
    let reached = GoalState::Reached(interval(30, 990, Some(1_010)));
    let table = [
        (
            looked(reached, Some(4_000_000_000), &[]),
            Ok,
            "reached at look 3 of 4, after 4.00 s; get.p99=2%: 1.00 %",
        ),
        (looked(reached, None, &[]), Ok, "reached when the time was up; get.p99=2%: 1.00 %"),
        (
            looked(open, None, &[]),
            Caution,
            "the time was up first: get.p99=2%: half the interval is 10.0 % of it, with 500 independent requests above it \
             of 50 wanted, which takes about 89666 requests",
        ),
        (
            looked(GoalState::Unknown, None, &[]),
            Caution,
            "the time was up first: get.p99=2%: too few requests for an interval",
        ),
        (
            looked(reached, None, &["LAG", "DRIFT"]),
            Caution,
            "the intervals were narrow enough, but for what LAG DRIFT found",
        ),
        (
            UntilResult { aborted_at_ns: Some(2_000_000_000), ..looked(GoalState::Unknown, None, &["LAG"]) },
            Caution,
            "given up at look 3 of 4, after 2.00 s, for the client was too late; get.p99=2%: no interval; held up by LAG",
        ),
        (UntilResult { is_interrupted: true, ..looked(open, None, &[]) }, Skipped, "the run was interrupted"),
    ];
    for (looked, status, message) in table {
        let found = check("UNTIL", |evidence| evidence.until = Some(looked.clone()));
        assert_eq!((found.status, found.text().as_str()), (status, message));
    }
}

/// A calibration that fits, whose search ended like this.
fn calibrated(rate: Option<u64>, limit: HeadroomLimit, limit_rate: Option<u64>) -> Lookup {
    let calibration = Calibration {
        made_at_s: 0,
        brunt_version: String::new(),
        host: HostIdentity::default(),
        shape: Shape::default(),
        in_process: LatencyFloor::default(),
        in_process_cpu_ns: 0,
        loopback: LatencyFloor::default(),
        floor_rate: 0,
        oversleep: None,
        headroom: Headroom { rate, limit, limit_rate },
        probes: Vec::new(),
        waits: Vec::new(),
        disturbed: None,
    };
    Lookup::Fit(Box::new(CalibrationMatch { calibration, differences: Vec::new() }))
}

#[test]
fn a_client_near_the_end_of_its_headroom() {
    let found = |lookup: &Lookup, busiest_rate: f64| {
        check("HEADROOM", |evidence| {
            evidence.calibration = lookup.clone();
            evidence.busiest_rate = busiest_rate;
        })
    };
    let known = calibrated(Some(100_000), HeadroomLimit::Client, Some(104_000));
    let never = calibrated(None, HeadroomLimit::Client, Some(2_000));
    let by_server = calibrated(Some(100_000), HeadroomLimit::Server, Some(104_000));
    let by_search = calibrated(Some(100_000), HeadroomLimit::Search, None);
    let table = [
        (&known, 0.0, Ok),
        (&known, 70_000.0, Ok),
        (&known, 70_001.0, Caution),
        // However far above: it is LAG that convicts.
        (&known, 1e9, Caution),
        (&never, 1_400.0, Skipped),
        (&never, 1_401.0, Caution),
        (&by_server, 70_000.0, Ok),
        (&by_server, 70_001.0, Skipped),
        (&by_search, 70_000.0, Ok),
        (&by_search, 70_001.0, Skipped),
        (&calibrated(None, HeadroomLimit::Server, Some(2_000)), 1.0, Skipped),
        (&Lookup::Absent, 1e9, Skipped),
        (&Lookup::Unfit("calibrated for 2 threads, this run has 1".to_owned()), 1e9, Skipped),
    ];
    for (lookup, rate, expected) in table {
        assert_eq!(found(lookup, rate).status, expected, "{rate} of {lookup:?}");
    }
    let messages = [
        (&known, 61_000.0, "61000 requests/s, 61.0 % of the calibrated headroom of 100000/s"),
        (
            &known,
            83_000.0,
            "83000 requests/s, 83.0 % of the calibrated headroom of 100000/s; above it the client's own share in the p99 \
             exceeds 10 us",
        ),
        (
            &never,
            5_000.0,
            "5000 requests/s: the client's own share in the p99 exceeded 10 us already at 2000/s, the lowest rate that was \
             calibrated",
        ),
        (
            &by_server,
            10_000.0,
            "10000 requests/s, 10.0 % of 100000/s, which is the least that the headroom is",
        ),
        (&Lookup::Absent, 1.0, "not calibrated: run `brunt calibrate`"),
        (
            &Lookup::Unfit("calibrated for 2 threads, this run has 1".to_owned()),
            1.0,
            "calibrated for 2 threads, this run has 1",
        ),
    ];
    for (lookup, rate, message) in messages {
        assert_eq!(found(lookup, rate).text(), message);
    }
    let near = found(&known, 83_000.0);
    assert_eq!((near.value, near.threshold), (0.83, 0.70));
}

/// Three were sent, of which only two are accounted for.
fn unbalanced_entry() -> CountEntry {
    let requests = RequestCounts { scheduled: 3, sent: 3, in_flight: 2, ..RequestCounts::default() };
    entry(OpCounts {
        requests,
        keys: KeyCounts { requested: 1, hit: 1, ..KeyCounts::default() },
        ..OpCounts::default()
    })
}
