//! How often decisions are right where the client is stopped again and again: queues of known law, over many seeds (docs/accuracy.md,
//! "Decisions by bounds").
//!
//! Not how often the interval alone holds the truth: `confidence/replications.rs` measures that. A debug build, which is what the
//! test command makes, takes 128 runs, and numbers that a rule as good as it is stated exceeds once in 10 000 such tests; a release
//! build (`cargo xtask replications`) takes 10 000 and the stated numbers. Seeds are fixed: a result changes with the code only.
//!
//! Utilisations are 0.3 and 0.4. Stops that take a share s of the time delay s/(1 − ρ) of all requests, since those that became due
//! meanwhile come in a bunch: 0.43 and 0.5 % here, of which none can be told from a slow server, so that *holds* counts all. The
//! interval adds the scatter of 30 stops over 30 batches, again half as much. With the 0.18 to 0.25 % that are truly slower than 1.3
//! times the p99 that stays below 1 %, which a p99 allows; at ρ = 0.5 M/D/1 would exceed it, and be undecided.

mod queue;

use super::{Client, Decision};
use crate::op_summary::OpSummary;
use brunt_plan::objective::Ceiling;
use brunt_plan::quantile::Quantile;
use queue::{Queue, SERVICE_NS, Service};

const IS_FULL: bool = !cfg!(debug_assertions);
/// Of each queue.
const RUNS: u32 = if IS_FULL { 2_500 } else { 32 };
const QUEUES: [(Service, f64); 4] =
    [(Service::Exponential, 0.3), (Service::Exponential, 0.4), (Service::Fixed, 0.3), (Service::Fixed, 0.4)];
const RUNS_IN_ALL: u32 = RUNS * QUEUES.len() as u32;

const QUANTILES: [Quantile; 4] = [Quantile::P50, Quantile::P90, Quantile::P99, Quantile::P999];
/// Of these no more than a tenth may be undecided where the truth is 30 % away.
const TO_P99: usize = 3;

/// The bound, and what it is of the truth.
const FACTORS: [(&str, f64); 3] = [("truth", 1.0), ("truth x 1.3", 1.3), ("truth / 1.3", 1.0 / 1.3)];
const AT: usize = 0;
const ABOVE: usize = 1;

/// A correct rule fails one of these tests by chance no more often: once in 10 000, divided by the numbers that are held to it.
const CHANCE: f64 = 1e-4 / 11.0;

/// The true percentiles of the response time, in nanoseconds. M/M/1: exponential. M/D/1: Erlang's series (`p99_of_m_d_1` beside
/// `capacity.rs` is one of them), here computed with sixty digits, in service times.
fn truths_ns(service: Service, utilisation: f64) -> [f64; 4] {
    let in_service_times = match (service, utilisation) {
        (Service::Exponential, _) => {
            QUANTILES.map(|quantile| -quantile.share_above().ln() / (1.0 - utilisation))
        }
        (Service::Fixed, 0.3) => [1.0, 1.837_715, 2.890_873, 4.023_114],
        (Service::Fixed, 0.4) => [1.0, 2.041_925, 3.519_916, 4.940_618],
        (Service::Fixed, _) => panic!("no percentiles are known at {utilisation}"),
    };
    in_service_times.map(|times| times * SERVICE_NS)
}

/// How often each decision was taken, of one percentile and one bound.
#[derive(Clone, Copy, Default)]
struct Tally {
    holds: u32,
    fails: u32,
    undecided: u32,
}

impl Tally {
    fn count(&mut self, decision: Decision) {
        match decision {
            Decision::Holds => self.holds += 1,
            Decision::Fails => self.fails += 1,
            Decision::Undecided => self.undecided += 1,
        }
    }

    fn merge(&mut self, other: &Self) {
        self.holds += other.holds;
        self.fails += other.fails;
        self.undecided += other.undecided;
    }

    /// Where the bound is the truth every answer is one too many; where the truth is below it, *fails*; else *holds*.
    const fn wrong(&self, factor: f64) -> u32 {
        match factor {
            1.0 => self.holds + self.fails,
            1.0.. => self.fails,
            _ => self.holds,
        }
    }
}

/// By percentile and bound.
#[derive(Clone, Default)]
struct Tallies([[Tally; FACTORS.len()]; QUANTILES.len()]);

impl Tallies {
    /// Decides `pXX < bound` of a run, for each percentile and bound.
    fn count(&mut self, row: &OpSummary, truths_ns: &[f64; 4]) {
        for ((quantile, truth_ns), tallies) in QUANTILES.into_iter().zip(truths_ns).zip(&mut self.0) {
            for ((_, factor), tally) in FACTORS.into_iter().zip(tallies) {
                let ceiling = Ceiling { op: None, quantile, bound_ns: (truth_ns * factor).round() as u64 };
                tally.count(Client::default().decide_ceiling(&ceiling, row));
            }
        }
    }

    fn merge(&mut self, other: &Self) {
        self.0
            .as_flattened_mut()
            .iter_mut()
            .zip(other.0.as_flattened())
            .for_each(|(ours, theirs)| ours.merge(theirs));
    }
}

/// What was found of a queue, or of all.
#[derive(Default)]
struct Found {
    decided: Tallies,
    /// The same where the lower bound only leaves out each request's own share of the client: `R − client lag − min(g, S)`.
    without_busy_lag: Tallies,
    above_undisturbed: u64,
    requests: u64,
}

/// Makes all runs of a queue.
fn found(number: usize) -> Found {
    let (service, utilisation) = QUEUES[number];
    let (mut queue, truths_ns) = (Queue::new(service, utilisation), truths_ns(service, utilisation));
    let mut found = Found::default();
    for run in 0..RUNS {
        let mut row = queue.run(u64::from(run) * QUEUES.len() as u64 + number as u64);
        found.decided.count(&row, &truths_ns);
        row.latency.least = row.latency.without_client.clone();
        found.without_busy_lag.count(&row, &truths_ns);
    }
    (found.above_undisturbed, found.requests) = (queue.above_undisturbed, queue.requests);
    // The law is that of the queue without stops. So many requests scatter by a third of these at the most.
    let undisturbed = queue.undisturbed.take();
    for (quantile, truth_ns) in QUANTILES.into_iter().zip(truths_ns) {
        let off = undisturbed.quantile(quantile).unwrap() as f64 / truth_ns - 1.0;
        let most = if IS_FULL { 0.005 } else { 0.03 };
        assert!(off.abs() < most, "queue {number}: {quantile} of all requests is off by {off}");
    }
    found
}

/// The largest number out of `runs` that may be where each run adds to it with this probability.
fn most(runs: u32, probability: f64) -> u32 {
    let stated = (f64::from(runs) * probability) as u32;
    if IS_FULL {
        return stated;
    }
    let odds = probability / (1.0 - probability);
    let (mut term, mut below) = ((1.0 - probability).powi(runs as i32), 0.0);
    let is_enough = |k: &u32| {
        below += term;
        term *= odds * f64::from(runs - k) / f64::from(k + 1);
        below >= 1.0 - CHANCE
    };
    (0..runs).find(is_enough).unwrap_or(runs)
}

fn print(found: &Found) {
    let Found { above_undisturbed, requests, .. } = found;
    println!(
        "{RUNS_IN_ALL} runs, {requests} requests: all between R - M - min(g, S) and R, {above_undisturbed} below R - client lag \
         - min(g, S)"
    );
    println!("| percentile | bound | holds | fails | undecided | wrong | wrong without M |");
    for (quantile, row) in QUANTILES.iter().enumerate() {
        for (column, (name, factor)) in FACTORS.into_iter().enumerate() {
            let tally = found.decided.0[quantile][column];
            let Tally { holds, fails, undecided } = tally;
            let (wrong, without) =
                (tally.wrong(factor), found.without_busy_lag.0[quantile][column].wrong(factor));
            println!("| {row} | {name} | {holds} | {fails} | {undecided} | {wrong} | {without} |");
        }
    }
}

#[test]
fn decisions_are_right_when_the_client_is_stopped() {
    let mut all = Found::default();
    for one in (0..QUEUES.len()).map(found) {
        all.decided.merge(&one.decided);
        all.without_busy_lag.merge(&one.without_busy_lag);
        all.above_undisturbed += one.above_undisturbed;
        all.requests += one.requests;
    }
    print(&all);
    let mut wrong_away = 0;
    for (row, (quantile, tallies)) in QUANTILES.iter().zip(&all.decided.0).enumerate() {
        let (wrong, at_most) = (tallies[AT].wrong(1.0), most(RUNS_IN_ALL, 0.05));
        assert!(wrong <= at_most, "{quantile} at the truth: {wrong} wrong, at most {at_most}");
        for ((name, factor), tally) in FACTORS.into_iter().zip(tallies).skip(1) {
            wrong_away += tally.wrong(factor);
            let (undecided, at_most) = (tally.undecided, most(RUNS_IN_ALL, 0.1));
            assert!(row >= TO_P99 || undecided < at_most, "{quantile}, {name}: {undecided} undecided");
        }
    }
    let at_most = most(RUNS_IN_ALL, 10.0 / 10_000.0);
    assert!(wrong_away <= at_most, "{wrong_away} wrong 30 % away, at most {at_most}");
    // What the busy lag is for: without it the queue that late requests build counts as the server's queue.
    assert!(all.above_undisturbed > all.requests / 1_000, "{}", all.above_undisturbed);
    let [.., p99, p999] = &all.without_busy_lag.0;
    assert!(p99[AT].fails > RUNS_IN_ALL / 2, "p99: {} of {RUNS_IN_ALL}", p99[AT].fails);
    // Even where the truth is 30 % away.
    assert!(p999[ABOVE].fails > RUNS_IN_ALL / 4, "p99.9: {} of {RUNS_IN_ALL}", p999[ABOVE].fails);
}
