//! Backlogs of queues of known law, in virtual time, through the production recorder, slices and accounting.
//!
//! A debug build, which is what the test command makes, takes 50 runs of each queue, 10 of the long one; a
//! release build (`cargo xtask replications`) takes 1 000 and 200. Seeds are fixed: a result changes with the code only.

use super::*;
use crate::simulated_run::{MS, Request, S, markovian, plan, record};
use crate::usage::{AgentRecord, WorkerBacklog};
use crate::window::RunTimes;

const RUNS: u64 = if cfg!(debug_assertions) { 50 } else { 1_000 };

/// `rate` requests a second from the beginning of the window on, each of which takes `taken_ns`, a function of when it is due.
fn uniform(rate: i64, seconds: i64, taken_ns: impl Fn(i64) -> i64) -> Vec<Request> {
    let due = (0..rate * seconds).map(|index| index * S as i64 / rate);
    due.map(|due_ns| Request { due_ns, done_ns: due_ns + taken_ns(due_ns), is_hit: true }).collect()
}

fn backlogs(toml: &str, requests: &[Request], seconds: f64, room: usize) -> Vec<Backlog> {
    let plan = plan(toml);
    let (store, window) = record(&plan, requests, seconds, room);
    Backlog::of(&plan, &store, &window)
}

const OPEN: &str = "rate = 1000\nmix = 'get'\nthreads = 1";
const ROOM: usize = usize::MAX;

/// How many of the runs of a queue are at least of a level.
fn at_least(level: BacklogLevel, found: &[Backlog]) -> f64 {
    let those = found.iter().filter(|backlog| backlog.level >= level).count();
    those as f64 / found.len() as f64
}

fn runs(load: f64, seconds: f64) -> Vec<Backlog> {
    let run =
        |seed| backlogs(OPEN, &markovian(1_000.0, load, seconds, seed * 7_919), seconds, ROOM).remove(0);
    let count = if seconds > 10.0 { RUNS / 5 } else { RUNS };
    (1..=count).map(run).collect()
}

/// Replications of M/M/1 at 1 000 requests a second: load, seconds → the least and the largest share of runs that are at least
/// CAUTION, and INVALID.
#[test]
fn replications_of_queues_beyond_capacity_have_a_backlog_and_others_none() {
    let table = [
        (0.9, 8.0, (0.0, 0.0), (0.0, 0.0)),
        (1.05, 8.0, (0.95, 1.0), (0.85, 1.0)),
        (1.2, 8.0, (1.0, 1.0), (1.0, 1.0)),
        (1.05, 60.0, (0.95, 1.0), (0.95, 1.0)),
    ];
    for (load, seconds, caution, invalid) in table {
        let found = runs(load, seconds);
        let shares = [BacklogLevel::Caution, BacklogLevel::Invalid].map(|level| at_least(level, &found));
        println!("M/M/1 at {load} for {seconds} s: {shares:?} CAUTION and INVALID");
        for (share, (least, most)) in shares.into_iter().zip([caution, invalid]) {
            assert!((least..=most).contains(&share), "load {load}, {seconds} s: {shares:?}");
        }
    }
}

fn one(requests: &[Request], seconds: f64) -> Backlog {
    backlogs(OPEN, requests, seconds, ROOM).remove(0)
}

/// 1 000 requests a second to a server that answers 800: 200 a second are left over, and half of the schedule of 8 s is in the way
/// of the last tenth of it.
#[test]
fn a_backlog_grows_by_what_is_left_over() {
    let left_over = |due: i64| due / 4 + MS as i64;
    let found = one(&uniform(1_000, 8, left_over), 8.0);
    // From the end of the slice 0.5 s into it, the p99 of the first quarter, and half a tenth more, to 7.65 s: 0.2 of 6.75 s.
    assert!((1_300..=1_400).contains(&found.growth), "{found:?}");
    assert_eq!((found.due, found.level), (8_000, BacklogLevel::Invalid));
    assert!((found.share - found.growth as f64 / 8_000.0).abs() < 1e-9);
    assert!((found.wait_ns as f64 / 1e9 - found.growth as f64 / 800.0).abs() < 0.01, "{found:?}");
    assert_eq!((found.peak, found.peak_at_ns), (1_600, 8 * S));
}

/// What a full queue keeps in the schedule is counted behind the window, and was due in it.
#[test]
fn requests_that_a_full_queue_keeps_in_the_schedule_are_of_the_backlog() {
    let requests = uniform(1_000, 8, |due: i64| due / 4 + MS as i64);
    let found = backlogs(OPEN, &requests, 8.0, 100).remove(0);
    assert_eq!((found.due, found.level), (8_000, BacklogLevel::Invalid));
    assert!((1_450..=1_550).contains(&found.growth), "{found:?}");
}

/// A server that answers everything after a second holds 1 000 requests, which is no backlog; a pause that ends with the window is none
/// either.
#[test]
fn a_system_that_keeps_up_has_none() {
    let ms = MS as i64;
    let slow = one(&uniform(1_000, 8, |_| 1_000 * ms), 8.0);
    assert_eq!((slow.growth, slow.peak, slow.level), (0, 1_000, BacklogLevel::Ok));
    let paused = |due: i64| (8_000 * ms - due).max(ms) * i64::from(due >= 7_900 * ms) + ms;
    let pause = one(&uniform(1_000, 8, paused), 8.0);
    assert_eq!((pause.growth, pause.peak, pause.level), (0, 100, BacklogLevel::Ok));
}

/// A closed loop beside an open one has no backlog.
#[test]
fn rates_that_the_plan_changes_make_a_backlog_a_caution() {
    let overload = uniform(1_000, 8, |due| due / 4 + MS as i64);
    let level = |toml: &str| {
        let found = backlogs(toml, &overload, 8.0, ROOM);
        found.into_iter().map(|held| (held.class, held.level)).collect::<Vec<_>>()
    };
    let two =
        "threads = 1\n[[class]]\nname = 'a'\nrate = 1000\nmix = 'get'\n[[class]]\nname = 'b'\nmix = 'get'";
    let mmpp = "arrival = 'mmpp:4,100ms,0.1'\nrate = 1000\nmix = 'get'\nthreads = 1";
    let profile = "rate-profile = '0s=1k,8s=1k'\nmix = 'get'\nthreads = 1";
    for (toml, class, expected) in [
        (OPEN, "main", BacklogLevel::Invalid),
        (mmpp, "main", BacklogLevel::Caution),
        (profile, "main", BacklogLevel::Caution),
        (two, "a", BacklogLevel::Invalid),
    ] {
        assert_eq!(level(toml), [(class.to_owned(), expected)], "{toml}");
    }
}

/// Growth and requests due of the workers of two agents of two workers each → the worst agent and its level. Of one agent it is that of
/// the classes.
#[test]
fn the_worst_agent_is_named() {
    let agent = |name: &str, first_worker| AgentRecord {
        name: name.to_owned(),
        first_worker,
        workers: 2,
        weight: 1,
        ..AgentRecord::default()
    };
    let agents = [agent("a", 0), agent("b", 2)];
    let window = RunTimes { start_ns: 0, measure_ns: 0, end_ns: S, drained_ns: S, ..RunTimes::NONE };
    for (backlogs, name, level) in [
        ([(0, 1_000), (10, 1_000), (30, 1_000), (80, 1_000)], "b", BacklogLevel::Invalid),
        ([(40, 1_000), (10, 1_000), (0, 1_000), (0, 1_000)], "a", BacklogLevel::Caution),
        ([(0, 100), (0, 100), (19, 100), (0, 100)], "b", BacklogLevel::Ok),
    ] {
        let usage = |(worker, (growth, due))| WorkerUsage {
            worker,
            backlog: WorkerBacklog { growth, due },
            ..WorkerUsage::default()
        };
        let workers: Vec<_> = (0..).zip(backlogs).map(usage).collect();
        let found = Backlog::of_agents(&agents, &workers, &window);
        let worst = Backlog::worst(&found).unwrap();
        assert_eq!((worst.agent.as_deref(), worst.level), (Some(name), level), "{backlogs:?}");
        assert!(Backlog::of_agents(&agents[..1], &workers, &window).is_empty());
    }
}

/// Growth, requests due, p99 in ms, medians of the first and the last quarter → level, at 1 000 answers a second.
#[test]
fn levels() {
    use BacklogLevel::{Caution, Invalid, Ok};
    let table = [
        (20, 2_000, 1, (1, 1), Ok),
        (20, 1_999, 1, (1, 1), Caution),
        (19, 100, 1, (1, 1), Ok),
        (100, 1_000_000, 200, (1, 1), Ok),
        (100, 1_000_000, 199, (1, 1), Caution),
        (99, 1_000_000, 1, (1, 9), Ok),
        (100, 2_000, 1, (1, 1), Caution),
        (101, 2_000, 1, (1, 1), Invalid),
        (100, 2_000, 1, (1, 2), Caution),
        (100, 2_000, 1, (1, 3), Invalid),
        (-500, 2_000, 1, (1, 3), Ok),
    ];
    for (growth, due, p99_ms, (first_ms, last_ms), expected) in table {
        let history = History {
            held: vec![0, growth],
            slice_ns: 100 * MS,
            late: 0,
            due,
            ended: due,
            p99_ns: p99_ms * MS,
            first_p99_ns: 0,
            medians_ns: [Some(first_ms * MS), Some(last_ms * MS)],
        };
        let end_ns = due * MS;
        let window = RunTimes { start_ns: 0, measure_ns: 0, end_ns, drained_ns: end_ns, ..RunTimes::NONE };
        let found = history.backlog("default", &window);
        assert_eq!(history.level(&found), expected, "{growth} of {due}, p99 {p99_ms} ms");
    }
}

#[test]
fn the_worst_class_is_named() {
    let of =
        |class: &str, share, level| Backlog { class: class.to_owned(), share, level, ..Backlog::default() };
    let all = [
        of("a", 0.3, BacklogLevel::Caution),
        of("b", 0.06, BacklogLevel::Invalid),
        of("c", 0.07, BacklogLevel::Invalid),
    ];
    assert_eq!(Backlog::worst(&all).map(|held| held.class.as_str()), Some("c"));
    assert_eq!(Backlog::worst(&[]), None);
}
