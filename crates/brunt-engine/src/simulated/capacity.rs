//! The search for a known capacity, in virtual time: M/D/1, whose p99 has a law.
//!
//! Not a walk with made-up steps (`brunt-stats/src/capacity_search.rs` has those): production workers load a simulated server with
//! one service time, and what `brunt search` is made of decides what a step came to and which rate is next. Here is only what
//! `brunt/src/campaign/search.rs` wires. Nothing in this world disturbs a measurement, so a capacity that is off is the decision's fault.

#[path = "../../../brunt-server/tests/it/m_d_1.rs"]
mod m_d_1;

use super::{SECOND, plan, serving, simulate_within};
use crate::simulated::sim::SimOptions;
use brunt_server::CoreOptions;
use brunt_stats::bottleneck::{Limit, LimitFacts};
use brunt_stats::capacity::Capacity;
use brunt_stats::capacity_search::{CapacitySearch, NextStep, RateRange, StepResult};
use brunt_stats::summary::Summary;

/// How far the capacity may lie from the law: two rates of a pair are up to 20 % apart, and requests that wait for one busy period come in
/// clusters, so that short steps scatter.
const TOLERANCE: f64 = 0.12;

/// A server, what is asked of it, and where to begin.
struct Known {
    service_us: u32,
    bound_us: u32,
    from: f64,
}

impl Known {
    fn slo(&self) -> String {
        format!("p99 < {}us", self.bound_us)
    }

    /// The rate at which the law has the p99 at the bound.
    fn law(&self) -> f64 {
        let bound = f64::from(self.bound_us) / f64::from(self.service_us);
        m_d_1::utilisation_at_p99(bound) * 1e6 / f64::from(self.service_us)
    }
}

/// One step of so many seconds.
fn step(known: &Known, rate: f64, seed: u64, seconds: u64) -> Summary {
    let mut plan = plan(&format!(
        "rate = {rate}\narrival = 'poisson'\nconnections = 4\ndepth = 256\ntime = '{seconds}s'\nwarmup = '300ms'\n\
         mix = 'get'\nkeys = 1000\ntimeout = '60s'"
    ));
    (plan.seed, plan.samples_max) = (seed, 0);
    let options =
        SimOptions::of(CoreOptions { script_after: 1_000, ..serving(u64::from(known.service_us) * 1_000) });
    let outcome = simulate_within(plan.clone(), options, 100 * SECOND);
    Summary::build(outcome.record(plan)).with_assertions(&[known.slo().parse().unwrap()])
}

/// A search from end to end. Every step has the next seed.
fn search(known: &Known, from: f64, seed: u64, seconds: u64) -> (Capacity, Vec<StepResult>) {
    let mut search = CapacitySearch::new(RateRange { from, lowest: from, to: None, gap: 0.05 });
    let mut ends = Vec::new();
    loop {
        let rate = match search.next() {
            NextStep::Found(capacity) => return (capacity, ends),
            NextStep::Measure { rate, .. } => rate,
        };
        let summary = step(known, rate, seed + ends.len() as u64, seconds);
        let facts = LimitFacts::of(&summary.record, &summary.window, &summary.total);
        let end = StepResult::of_run(&summary, &Limit::of(&facts));
        println!("  {rate}/s {}", end.name());
        search.record(rate, end);
        ends.push(end);
        assert!(ends.len() < 40, "{ends:?}");
    }
}

/// Searches, at full length from several rates with a seed each, and holds what is found against the law. Where a search
/// begins decides which rates it can try: from one rate alone all seeds may end at the same two.
fn check_search(known: &Known) -> Vec<StepResult> {
    let is_full = std::env::var("BRUNT_ACCURACY").is_ok_and(|value| value == "full");
    let (searches, seconds): (u32, u64) = if is_full { (5, 5) } else { (1, 1) };
    let law = known.law();
    let mut all_ends = Vec::new();
    for number in 0..searches {
        let (from, seed) = (known.from * (1.0 + 0.07 * f64::from(number)), 100 * (u64::from(number) + 1));
        let (capacity, ends) = search(known, from, seed, seconds);
        let Capacity::Between { passed, failed, is_confirmed } = capacity else {
            panic!("{capacity:?} after {ends:?}")
        };
        let off = passed / law - 1.0;
        println!("search in virtual time: {passed} to {failed}/s, law {law:.0}/s, off {:.2} %", off * 100.0);
        assert!(is_confirmed, "{capacity:?} after {ends:?}");
        assert!(
            off.abs() <= TOLERANCE,
            "from {from}, seed {seed}: {capacity:?} after {ends:?}, law {law:.0}/s"
        );
        all_ends.extend(ends);
    }
    all_ends
}

/// 7 735/s by the law, ρ = 0.7735; no rate that is tried saturates the server.
#[test]
fn the_capacity_of_a_known_queue_is_found() {
    let known = Known { service_us: 100, bound_us: 1_000, from: 4_000.0 };
    assert!((known.law() - 7_735.0).abs() < 1.0, "{}", known.law());
    check_search(&known);
}

/// Another server, another bound, and a rate on the way that is beyond the server: none of it was made to measure.
#[test]
fn the_capacity_of_another_queue_is_found() {
    let known = Known { service_us: 50, bound_us: 300, from: 3_000.0 };
    assert!((known.law() - 12_591.0).abs() < 1.0, "{}", known.law());
    let ends = check_search(&known);
    assert!(ends.contains(&StepResult::Fails), "24 000/s of 20 000/s: {ends:?}");
}
