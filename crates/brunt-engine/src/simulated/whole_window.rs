//! No printed latency leaves a part of the window out, whatever went wrong in it and when.
//!
//! Each kind of trouble in each third of the window; what is printed is compared with the raw samples, sorted here. And rates of the
//! window under overload, by the law of the queue: what happens in it counts, whatever was due before it.

use crate::simulated::*;
use brunt_plan::quantile::Quantile;
use brunt_server::Outage as Script;
use brunt_stats::bound::Decision;
use brunt_stats::latency::LatencySummary;
use brunt_stats::op_summary::OpSummary;
use brunt_stats::window::WindowCounts;

const WINDOW_NS: u64 = 6 * SECOND;
/// Long enough for most keys to be missed once, and stored.
const WARMUP_NS: u64 = 3 * SECOND;
/// How long a server is gone, or stands still.
const GONE_NS: u64 = 400 * MS;

/// What happens to the server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Trouble {
    /// It goes, and comes back empty.
    Killed,
    /// It stands still.
    Stopped,
    /// It ends all connections, and keeps its data.
    Reset,
    /// Another client empties it.
    Flushed,
    /// From then on others store so much that it must forget keys.
    Evicting,
}

impl Trouble {
    const ALL: [Self; 5] = [Self::Killed, Self::Stopped, Self::Reset, Self::Flushed, Self::Evicting];

    /// A plan and a world in which it happens `at_ns` into the window.
    fn run(self, at_ns: u64) -> (Plan, Outcome) {
        let from_start_ns = WARMUP_NS + at_ns;
        let script = |for_ns| vec![Script { at_ns: from_start_ns, for_ns }];
        let server = serving(300 * US);
        let server = match self {
            Self::Killed => CoreOptions { outages: script(GONE_NS), outage_forgets: true, ..server },
            Self::Stopped => {
                CoreOptions { stalls: vec![Stall { at_ns: from_start_ns, for_ns: GONE_NS }], ..server }
            }
            Self::Reset => CoreOptions { outages: script(MS), ..server },
            Self::Flushed => server,
            Self::Evicting => CoreOptions { memory_bytes: 700 << 10, ..server },
        };
        // Others, who are a class of ours here: none until then, for ever.
        let others = format!(
            "[[class]]\nname = 'others'\nmix = 'set'\nkeys = 100000\nprefix = 'others:'\nvalue-size = 1000\n\
             rate-profile = '0s=0,{at_ns}ns=0,{at_ns}ns=1k'\non-miss = 'ignore'\n"
        );
        let others = if self == Self::Evicting { others.as_str() } else { "" };
        let plan = plan(&format!(
            "connections = 8\ndepth = 512\ntime = '{WINDOW_NS}ns'\nwarmup = '{WARMUP_NS}ns'\npreload = false\n\
             [[class]]\nname = 'own'\nmix = 'get=19,set=1'\nkeys = 2000\nvalue-size = 200\nrate = 1500\n\
             on-miss = 'set'\n{others}"
        ));
        let flush_ns = (self == Self::Flushed).then_some(EPOCH_NS + START_AHEAD_NS + from_start_ns);
        let options = SimOptions { flush_ns, ..SimOptions::of(server).latency(20 * US) };
        let outcome = simulate_plan(plan.clone(), options);
        (plan, outcome)
    }
}

/// The smallest value with at least `p·n` of them at or below it.
fn quantile(sorted: &[u64], quantile: Quantile) -> u64 {
    let rank = (sorted.len() as u128 * u128::from(quantile.millionths())).div_ceil(1_000_000);
    sorted[rank.max(1) as usize - 1]
}

/// What is printed of these values against the values themselves.
fn check(what: &str, printed: &LatencySummary, mut values: Vec<u64>) {
    values.sort_unstable();
    assert_eq!(printed.count, values.len() as u64, "{what}");
    assert_eq!((printed.min_ns, printed.max_ns), (values.first().copied(), values.last().copied()), "{what}");
    for percentile in &printed.percentiles {
        let above = values.len() as f64 * percentile.quantile.share_above();
        assert_eq!(percentile.value_ns.is_some(), above > 9.999, "{what} {}", percentile.quantile);
        if let Some(value_ns) = percentile.value_ns {
            let truth_ns = quantile(&values, percentile.quantile);
            let off_ns = value_ns.checked_sub(truth_ns);
            assert!(
                off_ns.is_some_and(|off_ns| off_ns <= truth_ns / 1_000 + 1),
                "{what} {value_ns} for {truth_ns}"
            );
        }
    }
}

fn check_row(what: &str, row: &OpSummary, samples: &[&Sample]) {
    let response = |of: &dyn Fn(&OutcomeClass) -> bool| {
        let chosen = samples.iter().filter(|sample| of(&sample.outcome.class));
        chosen.map(|sample| sample.times.response_ns()).collect::<Vec<_>>()
    };
    check(what, &row.latency.response.summary, response(&|class| class.is_completed()));
    check(&format!("{what}, with failures"), &row.including_failures(), response(&|_| true));
}

fn check_whole(trouble: Trouble, at_ns: u64) {
    let what = format!("{trouble:?} at {} ms", at_ns / MS);
    let (plan, outcome) = trouble.run(at_ns);
    let requests = outcome.requests();
    assert_eq!((requests.abandoned, requests.unsent), (0, 0), "{what}");
    let objectives = ["max < 100ms", "p99 < 100ms"].map(|text| text.parse().unwrap());
    let summary = Summary::build(outcome.record(plan)).with_assertions(&objectives);
    let of = |chosen: &dyn Fn(&Sample) -> bool| {
        outcome.samples.iter().filter(|sample| chosen(sample)).collect::<Vec<_>>()
    };
    check_row(&what, &summary.total, &of(&|_| true));
    for row in &summary.ops {
        check_row(
            &format!("{what}, {}", row.op.kind()),
            &row.summary,
            &of(&|sample| sample.op.kind() == row.op.kind()),
        );
    }
    for class in &summary.classes {
        let own = of(&|sample| sample.class == class.class);
        check_row(&format!("{what}, {}", class.name), &class.total, &own);
    }
    // The table over time is of what ended while the window lasted.
    let ended =
        of(&|sample| sample.outcome.class.is_completed() && sample.times.done_ns < summary.window.end_ns);
    let longest_ns = ended.iter().map(|sample| sample.times.response_ns()).max();
    assert_eq!(
        summary.intervals(SECOND).iter().filter_map(|point| point.latency.max_ns).max(),
        longest_ns,
        "{what}"
    );
    // It is there to be seen: who waits for 400 ms of 6 s is one of 15.
    let max_ns = summary.total.latency.response.summary.max_ns;
    let is_seen = match trouble {
        Trouble::Killed | Trouble::Stopped => {
            let p99_ns = summary.total.latency.response.summary.p99_ns();
            let decisions: Vec<_> = summary.assertions.iter().map(|held| held.decision).collect();
            assert_eq!(decisions, [Decision::Fails; 2], "{what}: {:?}", summary.assertions);
            max_ns > Some(GONE_NS - 10 * MS) && p99_ns > Some(300 * MS)
        }
        Trouble::Reset => outcome.connections().lost == 8,
        Trouble::Flushed => outcome.counters[0].cmd_flush == 1 && summary.total.in_window.missed > 1_000,
        Trouble::Evicting => {
            let late =
                |sample: &&Sample| sample.times.intended_ns + SECOND / 2 > outcome.end.data.times.end_ns;
            let is_miss = |sample: &&Sample| sample.outcome.class == OutcomeClass::Miss;
            outcome.samples.iter().filter(late).filter(is_miss).count() > 100
        }
    };
    assert!(is_seen, "{what}: {max_ns:?}");
}

#[test]
fn every_latency_covers_the_whole_window() {
    for trouble in Trouble::ALL {
        for third in 0..3 {
            // In the middle of it, half a gap behind a request.
            check_whole(trouble, third * WINDOW_NS / 3 + WINDOW_NS / 6 + 333 * US);
        }
    }
}

/// 30 000/s for a server of 10 000/s that does one request after the other, over a connection that takes ten at a time.
const OVERLOAD: &str = "rate = 30000\narrival = 'uniform'\nconnections = 1\ndepth = 10\npreload = false\ntimeout = '60s'\n\
                        drain = '10ms'\nmix = 'get=1,set=1'";

fn run(more: &str) -> Outcome {
    let server = serving(100 * US);
    simulate(&format!("{OVERLOAD}\n{more}"), SimOptions::of(server))
}

/// The counts of all operations, and how many were due in the window.
fn counts(outcome: &Outcome) -> (WindowCounts, u64) {
    let mut sum = WindowCounts::default();
    outcome.store.request_counts().entries().for_each(|entry| sum.merge(&entry.in_window()));
    (sum, outcome.requests().scheduled)
}

/// By when they were due none of the window's requests was even sent in it: 30 000 wait from the first second, and the
/// server needs two for the 20 000 that it cannot do.
#[test]
fn an_overloaded_server_is_seen_at_its_pace() {
    let outcome = run("warmup = '1s'\ntime = '1s'");
    let op_counts = outcome.op_counts(Phase::Measure);
    assert_eq!(
        (op_counts.requests.scheduled, op_counts.requests.sent, op_counts.requests.unsent),
        (30_000, 0, 30_000)
    );
    let (window, _) = counts(&outcome);
    assert_eq!((window.completed(), window.failed(), window.sent), (10_000, 0, 10_000));
    assert_eq!((window.in_flight_at_start, window.in_flight_at_end), (10, 10));
    // Of the 30 000 of the warm-up the server has done 10 000, but for those that were on their way to it at first.
    assert!(window.waiting_at_start.abs_diff(20_000 - 10) <= 10, "{window:?}");
    assert_eq!(window.waiting_at_end, window.waiting_at_start + 20_000);
}

/// One window after the other they are what one window over all of them is, and each begins with what the last one left.
#[test]
fn consecutive_windows_add_up() {
    let parts = [0, 1, 2].map(|warmup| counts(&run(&format!("warmup = '{warmup}s'\ntime = '1s'"))));
    let (whole, due) = counts(&run("time = '3s'"));
    assert_eq!(parts.map(|(_, due)| due).iter().sum::<u64>(), due);
    for pair in parts.windows(2) {
        let [(one, _), (next, _)] = pair else { unreachable!("pairs") };
        assert_eq!(one.in_flight_at_end, next.in_flight_at_start);
        assert_eq!(one.waiting_at_end, next.waiting_at_start);
    }
    let mut sum = WindowCounts::default();
    parts.iter().for_each(|(part, _)| sum.merge(part));
    assert_eq!((sum.sent, sum.outcomes), (whole.sent, whole.outcomes));
    assert_eq!((parts[0].0.in_flight_at_start, parts[2].0.in_flight_at_end), (0, whole.in_flight_at_end));
    assert_eq!(parts[2].0.waiting_at_end, whole.waiting_at_end);
}

/// Ended by hand in the warm-up, the window is empty; in the window, it ends at the instant of the wish, and all that
/// happens at this very instant is inside.
#[test]
fn windows_that_are_cut_short_balance() {
    for (at_ns, is_empty) in [(500 * MS, true), (1_500 * MS, false), (1_700 * MS + 7, false)] {
        for defers_sends in [false, true] {
            let server = serving(100 * US);
            let options = SimOptions { defers_sends, ..SimOptions::of(server) };
            let plan = plan(&format!("{OVERLOAD}\non-miss = 'set'\nwarmup = '1s'\ntime = '1s'"));
            let outcome = simulate_observed(plan, options, VIRTUAL_NS_MAX, &mut |observed| match observed {
                RunEvent::Tick { now_ns, .. } if now_ns >= EPOCH_NS + at_ns => RunDecision::Finish,
                _ => RunDecision::Continue,
            });
            let (window, _) = counts(&outcome);
            assert_eq!(window.completed() == 0, is_empty, "{window:?}");
        }
    }
}
