//! How often confidence intervals hold the truth (T11 of docs/method.md): samples and queues of known law through the production
//! histograms, slices, batches and looks, over many seeds.
//!
//! Not over a network: what is tested is the statistics. A debug build, which is what the test command makes, takes few
//! replications and bounds that are as much wider as the share of so few scatters more; a release build
//! (`cargo xtask replications`) takes 4 000. Seeds are fixed: a result changes with the code only.

use super::{PercentileInterval, independent, intervals};
use crate::confidence::{BATCHES, Batch, batches};
use crate::convergence::Convergence;
use crate::histogram::{Histogram, RecordingHistogram};
use crate::interval::{IntervalRow, Latencies, SLICE_NS};
use crate::recorder::{Layout, RecorderSet};
use crate::simulated_run::Random;
use crate::store::IntervalStore;
use crate::window::RunTimes;
use brunt_plan::op::OpKind;
use brunt_plan::plan::Plan;
use brunt_plan::quantile::Quantile;
use brunt_plan::resolve::{Host, resolve};
use brunt_plan::spec::PlanSpec;

const IS_FULL: bool = !cfg!(debug_assertions);
const REPLICATIONS: u32 = if IS_FULL { 4_000 } else { 60 };
/// The p99 first: it is what is promised.
const SHOWN: &[Quantile] = match IS_FULL {
    true => &[Quantile::P99, Quantile::P50, Quantile::P90, Quantile::P999],
    false => &[Quantile::P99],
};

/// A window begins at no round time.
const MEASURE_NS: u64 = 1_234_567_890;

/// An M/M/1 queue in steady state whose requests are recorded slice by slice.
struct Queue {
    random: Random,
    /// Requests and services per nanosecond.
    arrival: f64,
    service: f64,
    /// When the next request to complete arrives, how long it waits (Lindley), and its service.
    at_ns: f64,
    wait_ns: f64,
    service_ns: f64,
    plan: Plan,
    set: Box<RecorderSet>,
    histogram: RecordingHistogram,
    store: IntervalStore,
    /// Everything that completed before is recorded.
    until_ns: u64,
}

impl Queue {
    fn new(rate: f64, load: f64, seed: u64, options: &str) -> Self {
        let spec = PlanSpec::from_toml(&format!("rate = '{rate}'\nmix = 'get'\n{options}")).unwrap();
        let plan = resolve(&spec, &Host::of(vec![0, 1], seed)).unwrap();
        let layout = Layout::of(&plan);
        let mut store = IntervalStore::new(&layout);
        store.align(MEASURE_NS);
        let (arrival, service) = (rate / 1e9, rate / load / 1e9);
        let mut random = Random(seed.wrapping_mul(0xd134_2543_de82_ef95) + 1);
        // The stationary law of the wait: none for the share of time in which the server is idle.
        let wait_ns =
            if random.unit() <= 1.0 - load { 0.0 } else { random.exponential(1.0 / (service - arrival)) };
        let at_ns = MEASURE_NS as f64 + random.exponential(1.0 / arrival);
        let service_ns = random.exponential(1.0 / service);
        Self {
            random,
            arrival,
            service,
            at_ns,
            wait_ns,
            service_ns,
            plan,
            set: RecorderSet::new(&layout),
            histogram: RecordingHistogram::default(),
            store,
            until_ns: MEASURE_NS,
        }
    }

    /// The true percentile of the response time, in nanoseconds: it is exponential with the rate μ − λ.
    fn truth_ns(&self, quantile: Quantile) -> f64 {
        -(1.0 - f64::from(quantile.millionths()) / 1e6).ln() / (self.service - self.arrival)
    }

    /// Serves what completes in the next slice.
    fn go_on(&mut self) {
        let start_ns = self.until_ns;
        self.until_ns += SLICE_NS;
        while self.at_ns + self.wait_ns + self.service_ns < self.until_ns as f64 {
            self.histogram.record((self.wait_ns + self.service_ns).round() as u64);
            let gap_ns = self.random.exponential(1.0 / self.arrival);
            self.at_ns += gap_ns;
            self.wait_ns = (self.wait_ns + self.service_ns - gap_ns).max(0.0);
            self.service_ns = self.random.exponential(1.0 / self.service);
        }
        let response = self.histogram.take();
        let latencies = Latencies { response, ..Latencies::default() };
        let mut interval = self.set.take_interval(0, start_ns, self.until_ns);
        let row = IntervalRow { class: 0, op: OpKind::Get.into(), latencies, client_lag_ns: 0 };
        interval.rows = vec![row];
        self.store.push(&interval);
    }
}

fn window(until_ns: u64) -> RunTimes {
    RunTimes { start_ns: 0, measure_ns: MEASURE_NS, end_ns: until_ns, drained_ns: until_ns, ..RunTimes::NONE }
}

/// The intervals of everything so far, as a report has them.
fn found(queue: &Queue) -> Vec<PercentileInterval> {
    let batches = batches(queue.store.timeline(), &window(queue.until_ns), MEASURE_NS, |_, _| true);
    intervals(&batches, &Quantile::PRINTED)
}

fn holds(interval: &PercentileInterval, truth_ns: f64) -> bool {
    interval.low_ns as f64 <= truth_ns && interval.high_ns.is_none_or(|high_ns| truth_ns <= high_ns as f64)
}

/// Does the textbook's interval for independent samples hold it?
fn holds_naively(queue: &Queue, quantile: Quantile, truth_ns: f64) -> bool {
    let (_, _, row) = queue.store.rows().next().unwrap();
    let response = &row.latencies.response;
    let (low, high) = independent::ranks(quantile, response.count()).unwrap();
    let (low, high) = (response.at_rank(low).unwrap(), response.at_rank(high).unwrap());
    *low.start() as f64 <= truth_ns && truth_ns <= *high.end() as f64
}

/// What was found of one percentile over all replications.
#[derive(Clone, Copy)]
struct Tally {
    quantile: Quantile,
    truth_ns: f64,
    runs: u32,
    held: u32,
    open: u32,
    design_effect: f64,
}

impl Tally {
    fn of(quantile: Quantile, truth_ns: f64) -> Self {
        Self { quantile, truth_ns, runs: 0, held: 0, open: 0, design_effect: 0.0 }
    }

    fn add(&mut self, intervals: &[PercentileInterval]) {
        let own = intervals.iter().find(|interval| interval.quantile == self.quantile).unwrap();
        self.runs += 1;
        self.held += u32::from(holds(own, self.truth_ns));
        self.open += u32::from(own.high_ns.is_none());
        self.design_effect += own.basis.design_effect;
    }

    /// Is the share of intervals that hold the truth within these bounds?
    fn check(&self, name: &str, (low, high): (f64, f64)) {
        let share = |count: u32| f64::from(count) / f64::from(self.runs);
        let held = share(self.held);
        println!(
            "T11 {name} {}: {held:.4} of {} hold the truth; open {:.3}, design effect {:.1}",
            self.quantile,
            self.runs,
            share(self.open),
            self.design_effect / f64::from(self.runs)
        );
        // Of fewer than 4 000 the share scatters more: by three standard deviations of a share of 95 %.
        let deviation = |count: u32| (0.95 * 0.05 / f64::from(count)).sqrt();
        let more = 3.0 * (deviation(self.runs) - deviation(4_000));
        assert!((low - more..=high + more).contains(&held), "{name} {}: {held}", self.quantile);
    }
}

/// Exponential values in 30 batches, whose mean in a batch is 1 us times a factor; the truth by percentile.
fn check_batches(name: &str, count: u64, factor: impl Fn(&mut Random) -> f64, truth: impl Fn(f64) -> f64) {
    let quantiles = [Quantile::P50, Quantile::P90, Quantile::P99];
    let mut tallies =
        quantiles.map(|quantile| Tally::of(quantile, 1_000_000.0 * truth(quantile.share_above())));
    let mut histogram = Histogram::new();
    for seed in 0..if IS_FULL { 4_000 } else { 200 } {
        let mut random = Random((count << 32 | seed).wrapping_mul(0xd134_2543_de82_ef95) + 1);
        let mut batch = |index: u64| {
            let rate = 1e-6 / factor(&mut random);
            histogram.clear();
            let own = count * (index + 1) / BATCHES - count * index / BATCHES;
            (0..own).for_each(|_| histogram.record(random.exponential(1.0 / rate).round() as u64));
            Batch { response: histogram.to_sparse(), ..Batch::default() }
        };
        let batches: Vec<Batch> = (0..BATCHES).map(&mut batch).collect();
        let found = intervals(&batches, &quantiles);
        tallies.iter_mut().for_each(|tally| tally.add(&found));
    }
    tallies.iter().for_each(|tally| tally.check(name, (0.93, 0.99)));
}

#[test]
fn intervals_of_independent_requests_hold_the_truth() {
    for count in [1_000, 10_000, if IS_FULL { 100_000 } else { 2_000 }] {
        check_batches(&format!("{count} independent"), count, |_| 1.0, |above| -above.ln());
    }
}

/// Half of the batches, by chance, are twice as slow: the share above x is (e^−x + e^−x/2) / 2.
#[test]
fn intervals_of_batches_that_differ_hold_the_truth() {
    let factor = |random: &mut Random| if random.unit() < 0.5 { 1.0 } else { 2.0 };
    let truth = |above: f64| -2.0 * (((1.0 + 8.0 * above).sqrt() - 1.0) / 2.0).ln();
    for count in [1_000, 30_000] {
        check_batches(&format!("{count} in batches that differ"), count, factor, truth);
    }
}

fn check_coverage(load: f64) {
    let mut tallies: Vec<Tally> = Vec::new();
    let mut held_naively = 0;
    for seed in 0..REPLICATIONS {
        // 30 slices of 7 000 requests.
        let mut queue = Queue::new(70_000.0, load, u64::from(seed), "");
        (0..30).for_each(|_| queue.go_on());
        if tallies.is_empty() {
            tallies = SHOWN.iter().map(|quantile| Tally::of(*quantile, queue.truth_ns(*quantile))).collect();
        }
        let found = found(&queue);
        tallies.iter_mut().for_each(|tally| tally.add(&found));
        held_naively += u32::from(holds_naively(&queue, Quantile::P99, queue.truth_ns(Quantile::P99)));
    }
    tallies.iter().for_each(|tally| tally.check(&format!("load {load}"), (0.91, 0.995)));
    let naively = f64::from(held_naively) / f64::from(REPLICATIONS);
    println!("T11 load {load} p99: {naively:.3} of the intervals for independent samples hold the truth");
    assert!(naively < 0.6, "{naively}");
}

#[test]
fn at_half_load_the_interval_of_the_p99_holds_the_truth() {
    check_coverage(0.5);
}

#[test]
fn at_four_fifths_of_the_load_the_interval_of_the_p99_holds_the_truth() {
    check_coverage(0.8);
}

/// Runs until the p99 is known to 5 % and returns whether the interval holds it, and when that was, in slices; `None`
/// where no look was content.
fn until_known(load: f64, seed: u64) -> Option<(bool, u64)> {
    let options = "until = 'p99=5%,max=129s'\ntime = '1s'";
    let mut queue = Queue::new(20_000.0, load, seed, options);
    let mut convergence = Convergence::of(&queue.plan).unwrap();
    let started = window(u64::MAX);
    (1..=1_280).find_map(|slice| {
        queue.go_on();
        // What was recorded is there a little later.
        let now_ns = queue.until_ns + SLICE_NS - 1;
        convergence.is_enough(now_ns, &started, &queue.plan, &queue.store, 0).then(|| {
            let intervals = found(&queue);
            let p99 = intervals.iter().find(|interval| interval.quantile == Quantile::P99).unwrap();
            (holds(p99, queue.truth_ns(Quantile::P99)), slice)
        })
    })
}

/// To stop when the interval is narrow favours intervals that are narrow by mistake; few looks keep that small. At four
/// fifths of the load a run takes a million requests, so there are fewer.
#[test]
fn runs_until_the_p99_is_known_hold_the_truth() {
    let loads: &[(f64, u32)] = if IS_FULL { &[(0.5, 300), (0.8, 100)] } else { &[(0.5, 60)] };
    for (load, replications) in loads {
        let runs = (0..*replications).map(|seed| until_known(*load, u64::from(seed) + 1_000));
        let ended: Vec<(bool, u64)> = runs.flatten().collect();
        let held = ended.iter().filter(|(held, _)| *held).count() as f64 / ended.len() as f64;
        let mut ends = std::collections::BTreeMap::<u64, u32>::new();
        ended.iter().for_each(|(_, slices)| *ends.entry(slices / 10).or_default() += 1);
        println!(
            "T11 load {load} until p99=5%: {held:.3} hold the truth; runs by their length in s: {ends:?}"
        );
        assert!(ended.len() as f64 >= 0.95 * f64::from(*replications), "{} runs ended", ended.len());
        let low =
            0.90 - 3.0 * ((0.95 * 0.05 / f64::from(*replications)).sqrt() - (0.95 * 0.05_f64 / 300.0).sqrt());
        assert!(held >= low, "load {load}: {held}, less than {low}");
    }
}
