//! No printed latency leaves a part of the window out, whatever went wrong in it and when.
//!
//! Each kind of trouble in each third of the window; what is printed is compared with the raw samples, sorted here.

use super::*;
use brunt_plan::quantile::Quantile;
use brunt_server::Outage as Script;
use brunt_stats::bound::Decision;
use brunt_stats::latency::LatencySummary;
use brunt_stats::op_summary::OpSummary;

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
        let server = CoreOptions { service: Service::Fixed(300 * US), ..CoreOptions::default() };
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
        let options = SimOptions { server, flush_ns, latency_ns: 20 * US, ..SimOptions::default() };
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
    check_books(&outcome);
    let requests = outcome.book(Phase::Measure).requests;
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
            let late = |sample: &&Sample| sample.times.intended_ns + SECOND / 2 > outcome.end.window.end_ns;
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
